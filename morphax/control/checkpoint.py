"""Rematerialisation: a function whose intermediate values are computed again in the backward pass instead of kept."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from morphax.control.call import call
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr
from morphax.ir.primitive import Primitive, is_unknown
from morphax.ir.trace import close, stage
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs
from morphax.transforms.flat import FlatFun, check_callable, check_leaf, name_of

Policy = Callable[..., Any] | None

# ---- the checkpointed call -------------------------------------------------------------------------------------------


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr = params["jaxpr"]
    active = tuple([t is not None for t in tangents])
    given = [t for t in tangents if t is not None]
    count = len(jaxpr.outvars)
    current.trace = d.parent
    if d.tangent is d.parent:
        forward = jaxprs.jvp(jaxpr, active)
        outs = checkpoint_p(*forward.consts, *primals, *given, **{**params, "jaxpr": forward.jaxpr})
        found = iter(outs[count:])
        return outs[:count], [next(found) if has else None for has in forward.has]
    outs = checkpoint_p(*primals, **params)
    forward = jaxprs.jvp(jaxpr, active)
    emitted = d.tape.emit(
        linear_p,
        [*forward.consts, *primals, *given],
        {"jaxpr": jaxpr, "active": active, "prevent_cse": params["prevent_cse"]},
    )
    found = iter(emitted)
    return outs, [next(found) if has else None for has in forward.has]


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    made = jaxprs.batch(params["jaxpr"], trace.size, tuple(flags), trace.axis_name, trace.spmd_axis_name)
    return prim(*made.consts, *operands, **{**params, "jaxpr": made.jaxpr}), made.has


def _lower(
    low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool, policy: Policy
) -> Any:
    if prevent_cse and differentiated and operands:
        # Without the barrier XLA would merge the recomputation with the forward pass, and keep the values after all.
        operands = low.op("stablehlo.optimization_barrier", ins, operands)
    return low.equations(jaxpr, operands)


checkpoint_p = Primitive(
    "remat2",
    type=lambda *operands, jaxpr, prevent_cse, differentiated, policy: jaxpr.out_avals,
    lower=_lower,
    linearize=_linearize,
    batch=_batch,
    multiple=True,
    carrier=True,
    effects=lambda params: params["jaxpr"].effects,
)

# ---- its derivative: linear in the tangents, with the operands as the only residuals --------------------------------


def _linear_types(*operands: Any, jaxpr: Jaxpr, active: tuple[bool, ...], prevent_cse: bool) -> Any:
    has = jaxprs.jvp(jaxpr, active).has
    return tuple([avals.tangent(a) for a, h in zip(jaxpr.out_avals, has, strict=True) if h])


def _forward(jaxpr: Jaxpr, active: tuple[bool, ...]) -> Jaxpr:
    """(constants, operands, tangents) -> tangents of the results alone."""
    key = ("tangents", active)
    found = jaxpr.memo.get(key)
    if found is None:
        made = jaxprs.jvp(jaxpr, active)
        inner = made.jaxpr
        found = Jaxpr((), inner.invars, inner.eqns, inner.outvars[len(jaxpr.outvars) :], debug_name=jaxpr.debug_name)
        jaxpr.memo[key] = found
    return found


def _linear_lower(low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, active: Any, prevent_cse: bool) -> Any:
    return low.equations(_forward(jaxpr, active), operands)


def _pull_back(jaxpr: Jaxpr, active: tuple[bool, ...], has_ct: tuple[bool, ...]) -> Any:
    """(operands, present cotangents) -> cotangents of the active operands where `live`: recomputes the forward pass."""
    key = ("pull_back", active, has_ct)
    found = jaxpr.memo.get(key)
    if found is not None:
        return found
    live: tuple[bool, ...] = ()
    split = jaxprs.linearize(jaxpr, active)
    has = split.has

    def recompute(*args: Any) -> list[Any]:
        nonlocal live
        count = len(jaxpr.invars)
        operands, given = args[:count], iter(args[count:])
        results = jaxprs.evaluate(split.forward, (), [*split.consts, *operands])
        residuals = jaxprs.residuals_of(split, operands, results)
        known = dict(zip(split.tangent.invars, residuals, strict=False))
        cts = ad.transpose(split.tangent, known, [next(given) if h else None for h in has_ct])[len(residuals) :]
        live = tuple([ct is not None for ct in cts])
        return [ct for ct in cts if ct is not None]

    out_types = [a for a, h in zip(jaxpr.out_avals, has, strict=True) if h]
    types = list(jaxpr.in_avals) + [avals.tangent(a) for a, h in zip(out_types, has_ct, strict=True) if h]
    made, consts = stage(recompute, types, jaxpr.debug_name)
    found = jaxpr.memo[key] = (close(made), consts, live)
    return found


def _linear_transpose(cts: Sequence[Any], *operands: Any, jaxpr: Jaxpr, active: Any, prevent_cse: bool) -> Any:
    start = len(jaxprs.jvp(jaxpr, active).consts)
    count = start + len(jaxpr.invars)
    primals = operands[start:count]
    has_ct = tuple([ct is not None for ct in cts])
    back, consts, live = _pull_back(jaxpr, active, has_ct)
    found = iter(
        checkpoint_p(
            *consts,
            *primals,
            *[ct for ct in cts if ct is not None],
            jaxpr=back,
            prevent_cse=prevent_cse,
            differentiated=True,
            policy=None,
        )
    )
    tangent_cts = [next(found) if alive else None for alive in live]
    return [None] * count + [ct if is_unknown(x) else None for ct, x in zip(tangent_cts, operands[count:], strict=True)]


def _linear_linearize(d: ad.Differentiate, primals: Any, tangents: Any, params: Any) -> Any:
    forward = _forward(params["jaxpr"], params["active"])
    return call.linearize(d, primals, tangents, {"jaxpr": forward, "name": "checkpoint"})


def _linear_batch(trace: Any, prim: Primitive, operands: Any, flags: Any, params: Any) -> Any:
    forward = _forward(params["jaxpr"], params["active"])
    return call.batch(trace, call, operands, flags, {"jaxpr": forward, "name": "checkpoint"})


linear_p = Primitive(
    "remat_tangent",
    type=_linear_types,
    lower=_linear_lower,
    linearize=_linear_linearize,
    transpose=_linear_transpose,
    batch=_linear_batch,
    multiple=True,
    carrier=True,
)

# ---- policies and the public function --------------------------------------------------------------------------------


def everything_saveable(*args: Any, **params: Any) -> bool:
    """Keep every intermediate value: no recomputation."""
    return True


def nothing_saveable(*args: Any, **params: Any) -> bool:
    """Keep nothing but the arguments: recompute everything."""
    return False


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Policy = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: Any = None,
) -> Callable[..., Any]:
    """`fun`, whose gradient recomputes intermediate values instead of keeping them: less memory, more work.

    Args:
        fun: function of pytrees of arrays.
        prevent_cse: keep XLA from merging the recomputation with the forward pass. Not needed inside loops.
        policy: what to keep: None or `nothing_saveable` (the arguments alone), or `everything_saveable`.
        static_argnums: positions of arguments that are passed as they are.
        static_argnames: the same by name.
        concrete: accepted for compatibility.

    Raises:
        ValueError: a policy that is not one of those.

    >>> from morphax import grad, numpy as jnp
    >>> float(grad(checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    check_callable("checkpoint", fun)
    if policy not in (None, nothing_saveable, everything_saveable):
        raise ValueError(
            f"checkpoint: policy {policy!r} is not supported; use None, nothing_saveable or everything_saveable."
        )
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    @api_boundary
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = {n % len(args) for n in nums}
        dynamic = tuple([a for i, a in enumerate(args) if i not in static])
        named = {k: v for k, v in kwargs.items() if k not in names}
        fixed = {k: v for k, v in kwargs.items() if k in names}

        def of_dynamic(*others: Any, **more: Any) -> Any:
            given = iter(others)
            return fun(*[args[i] if i in static else next(given) for i in range(len(args))], **more, **fixed)

        of_dynamic.__name__ = name_of(fun)
        leaves, in_tree = tree.flatten((dynamic, named))
        types = [check_leaf("checkpoint", x, lambda: f"an argument of {name_of(fun)}") for x in leaves]
        flat = FlatFun(of_dynamic, in_tree, "checkpoint")
        jaxpr, consts = stage(flat, types, name_of(fun))
        if policy is everything_saveable:
            outs = call(*consts, *leaves, jaxpr=close(jaxpr), name=name_of(fun))
        else:
            outs = checkpoint_p(
                *consts, *leaves, jaxpr=close(jaxpr), prevent_cse=prevent_cse, differentiated=False, policy=policy
            )
        return tree.unflatten(flat.out_tree, outs)

    return functools.wraps(fun)(checkpointed)
