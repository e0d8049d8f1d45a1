"""Rematerialisation: a function whose intermediate values are computed again in the backward pass instead of kept.

The body is linearized. Of the values that its tangent program reads, the policy says which are kept; the others are
computed again from those by a slice of the forward program, which stands in front of the tangent program in one
equation. Where that is transposed, the slice runs just before, behind an optimisation barrier.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from morphax.control.call import call
from morphax.control.parts import fill, given, present, remembered
from morphax.control.policies import Budget, keeps
from morphax.ir.current import current
from morphax.ir.jaxpr import Eqn, Jaxpr, Literal, evaluate, live
from morphax.ir.primitive import Primitive, Var, is_unknown
from morphax.ir.trace import Stage, close, stage
from morphax.support import dtypes, tracebacks, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs
from morphax.transforms.flat import FlatFun, argument_path, check_callable, check_leaf, name_of

Policy = Callable[..., Any] | Budget | None

# ---- what is kept, and the slice that computes the rest again --------------------------------------------------------


class Split(NamedTuple):
    """forward: (consts, primals) -> (results, kept values). again: (known, tangents) -> tangents where `has`.

    `known` are the values of `sources`: ("in", k) an input of forward, ("out", k) one of its results, ("const", value).
    """

    forward: Jaxpr
    consts: list[Any]
    again: Jaxpr
    sources: list[tuple[str, Any]]
    has: tuple[bool, ...]


@remembered
def _split(jaxpr: Jaxpr, active: tuple[bool, ...], policy: Policy) -> Split:
    lin = jaxprs.linearize(inlined(jaxpr) if policy is not None else jaxpr, active)
    forward, start = lin.forward, len(lin.consts)
    found = {"in": forward.invars[start:], "out": forward.outvars}
    replaced: dict[Any, Any] = {}
    edge: dict[Any, tuple[str, Any]] = {}
    for (kind, k), v in zip(lin.sources, lin.tangent.invars, strict=False):
        if kind == "const":
            edge[v] = ("const", k)
        else:
            replaced[v] = found[kind][k]
    wanted = set(replaced.values())
    kept, again = _sliced(forward.eqns, wanted, policy)
    places = {v: ("in", k) for k, v in enumerate(forward.invars)}
    results = list(forward.outvars[: len(jaxpr.outvars)])
    for v in kept:
        places[v] = ("out", len(results))
        results.append(v)
    read = wanted.union(*[eqn.invars for eqn in again])
    edge.update({v: place for v, place in places.items() if v in read})
    tangent = [eqn.replace(invars=[replaced.get(v, v) for v in eqn.invars]) for eqn in lin.tangent.eqns]
    inputs = (*edge, *lin.tangent.invars[len(lin.sources) :])
    eqns, _ = live(forward.eqns, results)
    return Split(
        Jaxpr((), forward.invars, eqns, results, debug_name=jaxpr.debug_name),
        lin.consts,
        Jaxpr((), inputs, [*again, *tangent], lin.tangent.outvars, debug_name=jaxpr.debug_name),
        list(edge.values()),
        lin.has,
    )


def _sliced(eqns: Sequence[Eqn], wanted: Iterable[Any], policy: Policy) -> tuple[list[Var], list[Eqn]]:
    """The values that are kept, and the equations that compute the other `wanted` ones from them."""
    needed = set(wanted)
    chosen = policy.choose(eqns, needed) if isinstance(policy, Budget) else None
    kept: list[Var] = []
    again: list[Eqn] = []
    for eqn in reversed(eqns):
        used = [v in needed for v in eqn.outvars]
        if True not in used:
            continue
        if chosen is None:
            keep = used if keeps(policy, eqn) else [False] * len(used)
        else:
            keep = [v in chosen for v in eqn.outvars]
        kept += [v for v, u, k in zip(eqn.outvars, used, keep, strict=True) if u and k]
        used = [u and not k for u, k in zip(used, keep, strict=True)]
        if True not in used:
            continue
        if eqn.primitive.prune is not None and False in used:
            eqn = eqn.primitive.prune(eqn, tuple(used)) or eqn
        elif False in used:  # what is kept of a result with several parts must not be defined twice
            outs = [v if u else Var(v.aval) for v, u in zip(eqn.outvars, used, strict=True)]
            eqn = eqn.replace(outvars=outs)
        again.append(eqn)
        needed.update([v for v in eqn.invars if v.__class__ is not Literal])
    return kept[::-1], again[::-1]


@remembered
def inlined(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with the equations of jitted functions in the place of their calls, so that a policy sees them."""
    if not any(eqn.primitive is call for eqn in jaxpr.eqns):
        return jaxpr
    made: list[Eqn] = []
    outs = _inline(jaxpr, list(jaxpr.invars), made)
    return Jaxpr((), jaxpr.invars, made, outs, jaxpr.effects, jaxpr.debug_name)


def _inline(jaxpr: Jaxpr, operands: Sequence[Any], made: list[Eqn]) -> list[Any]:
    env: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
    for eqn in jaxpr.eqns:
        invars = [v if v.__class__ is Literal else env[v] for v in eqn.invars]
        if eqn.primitive is call:
            env.update(zip(eqn.outvars, _inline(eqn.params["jaxpr"], invars, made), strict=True))
            continue
        outvars = [Var(v.aval) for v in eqn.outvars]
        env.update(zip(eqn.outvars, outvars, strict=True))
        made.append(eqn.replace(invars=invars, outvars=outvars))
    return [v if v.__class__ is Literal else env[v] for v in jaxpr.outvars]


# ---- the checkpointed call -------------------------------------------------------------------------------------------


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr = params["jaxpr"]
    active, count = given(tangents), len(jaxpr.outvars)
    current.trace = d.parent
    if d.tangent is d.parent:
        made = jaxprs.jvp(jaxpr, active)
        outs = checkpoint_p(*made.consts, *primals, *present(tangents), **{**params, "jaxpr": made.jaxpr})
        return outs[:count], fill(made.has, outs[count:])
    split = _split(jaxpr, active, params["policy"])
    operands = [*split.consts, *primals]
    if d.parent.__class__ is Stage:  # nothing differentiates here again
        outs = evaluate(split.forward, (), operands)
    else:
        outs = checkpoint_p(*operands, **{**params, "jaxpr": split.forward})
    places = {"in": operands, "out": outs}
    known = [k if kind == "const" else places[kind][k] for kind, k in split.sources]
    again = {**params, "jaxpr": split.again, "differentiated": True}
    return outs[:count], fill(split.has, d.tape.emit(checkpoint_p, [*known, *present(tangents)], again))


@remembered
def _transposed(jaxpr: Jaxpr, unknown: tuple[bool, ...], has: tuple[bool, ...]) -> jaxprs.Transposed:
    """Transpose of a program that is linear in the inputs `unknown`, with what it computes from the others."""
    inputs = [v for v, u in zip(jaxpr.invars, unknown, strict=True) if u]
    others = [v for v, u in zip(jaxpr.invars, unknown, strict=True) if not u]
    moving = set(inputs)
    known: list[Eqn] = []
    linear: list[Eqn] = []
    for eqn in jaxpr.eqns:
        depends = any(v in moving for v in eqn.invars)
        (linear if depends else known).append(eqn)
        if depends:
            moving.update(eqn.outvars)
    computed = [v for eqn in known for v in eqn.outvars]
    slice_ = Jaxpr((), others, known, computed)
    alive: tuple[bool, ...] = ()

    def walk(*args: Any) -> list[Any]:
        nonlocal alive
        values = args[: len(others)]
        env = dict(zip(others, values, strict=True))
        env.update(zip(computed, evaluate(slice_, (), values), strict=True))
        cts = ad.backward(linear, inputs, jaxpr.outvars, env, fill(has, args[len(others) :]))
        alive = given(cts)
        return present(cts)

    types = [v.aval for v in others] + [a for a, h in zip(jaxpr.out_avals, has, strict=True) if h]
    made, consts = stage(walk, types, jaxpr.debug_name)
    return jaxprs.Transposed(close(made), consts, alive)


def _transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    unknown = tuple([is_unknown(x) for x in operands])
    back = _transposed(params["jaxpr"], unknown, given(cts))
    known = [x for x in operands if not is_unknown(x)]
    outs = checkpoint_p(*back.consts, *known, *present(cts), **{**params, "jaxpr": back.jaxpr, "differentiated": True})
    return fill(unknown, fill(back.live, outs))


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    made = jaxprs.batch(params["jaxpr"], trace.size, tuple(flags), trace.axis_name, trace.spmd_axis_name)
    return prim(*made.consts, *operands, **{**params, "jaxpr": made.jaxpr}), made.has


def _lower(
    low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool, policy: Policy
) -> Any:
    """Behind a barrier, without which XLA would merge the recomputation with the forward pass and keep the values."""
    if prevent_cse and differentiated and operands:
        operands = low.op("stablehlo.optimization_barrier", [low.storage(a) for a in ins], operands)
    return low.equations(jaxpr, operands)


def _lower_on_cpu(
    low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool, policy: Policy
) -> Any:
    """As a function that is not inlined: XLA's CPU compiler removes barriers before it merges equal operations."""
    if not (prevent_cse and differentiated and operands):
        return low.equations(jaxpr, operands)
    return low.call(jaxpr, operands, f"{jaxpr.debug_name or 'checkpoint'}_again", apart=True)


checkpoint_p = Primitive(
    "remat2",
    type=lambda *operands, jaxpr, prevent_cse, differentiated, policy: jaxpr.out_avals,
    lower={"cpu": _lower_on_cpu, "default": _lower},
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    prune=call.prune,
    multiple=True,
    carrier=True,
    effects=lambda params: params["jaxpr"].effects,
)

# ---- public ----------------------------------------------------------------------------------------------------------


def _policy(policy: Policy, memory_budget: int | None) -> Policy:
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint: policy must be a function; it is {policy!r:.60}. Take one of jax.checkpoint_policies."
        )
    if memory_budget is None:
        return policy
    if policy is not None:
        raise ValueError("checkpoint: policy and memory_budget exclude each other. Give one of them.")
    if isinstance(memory_budget, bool) or not isinstance(memory_budget, int) or memory_budget < 0:
        raise ValueError(f"checkpoint: memory_budget must be a number of bytes; it is {memory_budget!r}.")
    return Budget(memory_budget)


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Policy = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: Any = None,
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """`fun`, whose gradient recomputes intermediate values instead of keeping them: less memory, more work.

    Args:
        fun: function of pytrees of arrays.
        prevent_cse: keep XLA from merging the recomputation with the forward pass. Not needed inside loops.
        policy: what to keep besides the arguments: None for nothing, one of `checkpoint_policies`, or a function
            (primitive, *operand types, **params) -> whether to keep its results: a bool, Saveable, Recompute or
            Offloadable. Policies look into functions under `jit`, not into loops and branches.
        static_argnums: positions of arguments that are passed as they are.
        static_argnames: the same by name.
        concrete: accepted for compatibility.
        memory_budget: bytes that may be kept besides the arguments, instead of a policy: what saves most operations
            for each byte is kept.

    Raises:
        TypeError: `fun` or `policy` is not a function, or `policy` answers with something else.
        ValueError: both a policy and a budget.

    >>> from morphax import grad, numpy as jnp
    >>> float(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    check_callable("checkpoint", fun)
    policy = _policy(policy, memory_budget)
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    @api_boundary
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        for n in nums:
            if not -len(args) <= n < len(args):
                raise ValueError(f"checkpoint: static_argnums has {n}, but {name_of(fun)} got {len(args)} arguments.")
        static = {n % len(args) for n in nums}
        dynamic = tuple([a for i, a in enumerate(args) if i not in static])
        named = {k: v for k, v in kwargs.items() if k not in names}
        fixed = {k: v for k, v in kwargs.items() if k in names}

        def of_dynamic(*others: Any, **more: Any) -> Any:
            found = iter(others)
            return fun(*[args[i] if i in static else next(found) for i in range(len(args))], **more, **fixed)

        of_dynamic.__name__ = name_of(fun)
        paths = tree.leaves_with_path((dynamic, named))
        types = [check_leaf("checkpoint", x, lambda: f"{argument_path(keys)} of {name_of(fun)}") for keys, x in paths]  # noqa: B023 - called at once
        flat = FlatFun(of_dynamic, tree.structure((dynamic, named)), "checkpoint")
        jaxpr, consts = stage(flat, types, name_of(fun))
        outs = checkpoint_p(
            *consts,
            *[x for _, x in paths],
            jaxpr=close(jaxpr),
            prevent_cse=prevent_cse,
            differentiated=False,
            policy=policy,
        )
        return tree.unflatten(flat.out_tree, outs)

    return functools.wraps(fun)(checkpointed)


# ---- what a gradient keeps -------------------------------------------------------------------------------------------


def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """Types of the values that the gradient of `fun` keeps from the forward pass, and where each comes from."""
    paths = tree.leaves_with_path((args, kwargs))
    flat = FlatFun(fun, tree.structure((args, kwargs)), "saved_residuals")
    types = [check_leaf("saved_residuals", x, lambda: argument_path(keys)) for keys, x in paths]  # noqa: B023
    opened, consts = stage(flat, types, name_of(fun))
    jaxpr = inlined(close(opened))
    active = [False] * len(consts) + [dtypes.is_inexact(t.dtype) for t in types]
    lin = jaxprs.linearize(jaxpr, tuple(active))
    names = _parameter_names(fun, args)
    words = [f"from the argument {_argument(keys, names)}" for keys, _ in paths]
    inputs = ["from a constant"] * len(consts) + words
    found, seen = [], set()
    for (kind, k), v in zip(lin.sources, lin.tangent.invars, strict=False):
        var = lin.forward.outvars[k] if kind == "out" else v
        origin = "from a constant" if kind == "const" else inputs[k] if kind == "in" else _made_by(lin.forward, var)
        key = (kind, id(k) if kind == "const" else k)
        if key not in seen:
            seen.add(key)
            found.append((kind == "out", v.aval, origin))
    found.sort(key=lambda row: row[0])
    return [(aval, origin) for _, aval, origin in found]


def _parameter_names(fun: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    code = getattr(inspect.unwrap(fun), "__code__", None)
    if code is None:
        return [f"args[{k}]" for k in range(len(args))]
    count = code.co_argcount
    rest = code.co_varnames[count + code.co_kwonlyargcount] if code.co_flags & 0x04 else "args"
    return [code.co_varnames[k] if k < count else f"{rest}[{k - count}]" for k in range(len(args))]


def _argument(keys: Any, names: list[str]) -> str:
    which, place, *rest = keys
    return (names[place.idx] if which.idx == 0 else str(place.key)) + tree.keystr(tuple(rest))


def _made_by(jaxpr: Jaxpr, var: Any) -> str:
    eqn = next(eqn for eqn in jaxpr.eqns if var in eqn.outvars)
    where = f" from {tracebacks.summarize(*eqn.source[:2])}" if eqn.source is not None else ""
    if eqn.primitive.name == "name":
        return f"named {eqn.params['name']!r}{where}"
    return f"output of {eqn.primitive.name}{where}"


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the type and the origin of each value that the gradient of `f` keeps from the forward pass.

    >>> from morphax import numpy as jnp
    >>> def f(x):
    ...     return jnp.sum(x * x)
    >>> print_saved_residuals(f, jnp.ones(3))
    f32[3] from the argument x
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval} {origin}")  # noqa: T201 - what it is for
