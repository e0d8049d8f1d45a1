"""Functions with batching rules of their own: custom_vmap, sequential_vmap.

The rule is Python, and runs when a batch of examples comes. The derivative of such a function is again one: its rule is
the derivative of the user's rule, so that vmap of grad and grad of vmap agree.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from morphax.control.custom import Linear, linear_call_p, positional
from morphax.control.loops import scan
from morphax.control.parts import cut, fill, given, pick, present, with_axis
from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import Primitive
from morphax.ir.trace import close, stage
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs
from morphax.transforms.api import as_array
from morphax.transforms.flat import FlatFun, argument_path, canonical, check_callable, check_leaf, name_of

FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


class Rule:
    """(size, flags, operands) -> (results, flags), flat; `const_count` leading operands of the call are not its own."""

    __slots__ = ("const_count", "name", "run")

    def __init__(self, name: str, run: FlatRule, const_count: int):
        self.name = name
        self.run = run
        self.const_count = const_count

    def __repr__(self) -> str:
        return self.name


# ---- the carrier -----------------------------------------------------------------------------------------------------


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
    rule: Rule = params["rule"]
    count = rule.const_count
    if any(flags[:count]):
        raise TypeError(
            f"{rule.name} has a batching rule and closes over a value that differs within the batch. Pass that value "
            "as an argument."
        )
    return rule.run(trace.size, tuple(flags[count:]), operands[count:])


def _check_constants(rule: Rule, tangents: Sequence[Any]) -> None:
    if any(given(tangents[: rule.const_count])):
        raise TypeError(
            f"{rule.name} has a batching rule and closes over a value that is being differentiated. Pass that value "
            "as an argument."
        )


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    call, rule = params["call"], params["rule"]
    _check_constants(rule, tangents)
    active, count = given(tangents), len(call.outvars)
    current.trace = d.parent
    made, of_tangents = _forward(call, rule, active)
    if d.tangent is d.parent:
        outs = custom_vmap_p(*made.consts, *primals, *present(tangents), call=made.jaxpr, rule=of_tangents)
        return outs[:count], fill(made.has, outs[count:])
    outs = custom_vmap_p(*primals, **params)
    back, back_consts, of_cotangents = _backward(call, rule, active)
    own = [*made.consts, *back_consts]
    types = tuple([avals.tangent(a) for a, h in zip(call.out_avals, made.has, strict=True) if h])

    def forward(residuals: list[Any], given_: list[Any]) -> list[Any]:
        consts, _, values = cut(residuals, len(made.consts), len(back_consts))
        return custom_vmap_p(*consts, *values, *given_, call=made.jaxpr, rule=of_tangents)[count:]

    def transpose(residuals: list[Any], cts: list[Any]) -> list[Any]:
        _, consts, values = cut(residuals, len(made.consts), len(back_consts))
        filled = [ew.zeros(t) if ct is None else ct for ct, t in zip(cts, types, strict=True)]
        return custom_vmap_p(*consts, *values, *filled, call=back, rule=of_cotangents)

    operands = [*own, *primals, *present(tangents)]
    linear = {"rule": Linear(forward, transpose, types), "residual_count": len(own) + len(primals)}
    return outs, fill(made.has, d.tape.emit(linear_call_p, operands, linear))


def _forward(call: Jaxpr, rule: Rule, active: tuple[bool, ...]) -> tuple[jaxprs.Jvp, Rule]:
    """(constants, primals, tangents) -> results and tangents, and its batching rule: the derivative of the rule."""
    made = jaxprs.jvp(call, active)
    own = active[rule.const_count :]

    def run(size: int, flags: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        xs, ts = cut(operands, len(own))
        x_flags, t_flags = cut(flags, len(own))
        t_flags = [bool(f) for f in fill(own, t_flags)]
        both = [a or b for a, b in zip(x_flags, t_flags, strict=True)]
        xs = [_spread(x, f, b, size) for x, f, b in zip(xs, x_flags, both, strict=True)]
        rows = zip(fill(own, ts), t_flags, both, strict=True)
        ts = [None if t is None else _spread(t, f, b, size) for t, f, b in rows]
        out_flags: list[bool] = []

        def batched(*values: Any) -> list[Any]:
            outs, out_flags[:] = rule.run(size, both, values)
            return outs

        outs, out_ts = ad.jvp(batched, xs, ts)
        rows = zip(outs, out_ts, made.has, strict=True)
        tangents = [ew.zeros(avals.tangent(typeof(o))) if t is None else t for o, t, h in rows if h]
        return outs + tangents, out_flags + pick(out_flags, made.has)

    return made, Rule(rule.name, run, len(made.consts) + rule.const_count)


def _backward(call: Jaxpr, rule: Rule, active: tuple[bool, ...]) -> tuple[Jaxpr, list[Any], Rule]:
    """(constants, primals, cotangents) -> cotangents of the active primals, and its rule: the pullback of the rule."""
    has = jaxprs.jvp(call, active).has
    types = tuple([avals.tangent(a) for a, h in zip(call.out_avals, has, strict=True) if h])
    own = active[rule.const_count :]

    def pull(fun: Any, xs: Sequence[Any], on: Sequence[bool], cts: Sequence[Any]) -> list[Any]:
        _, tangents, tape = ad.linearize(fun, xs, on)
        back = ad.pull_back(tape, tangents, fill(has, cts))
        targets = [avals.tangent(typeof(x)) for x, f in zip(xs, on, strict=True) if f]
        return [ew.zeros(a) if ct is None else ct for ct, a in zip(back, targets, strict=True)]

    def plain(*operands: Any) -> list[Any]:
        xs, cts = cut(operands, len(active))
        return pull(lambda *values: evaluate(call, (), values), xs, active, cts)

    def run(size: int, flags: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        xs, cts = cut(operands, len(own))
        x_flags, ct_flags = cut(flags, len(own))
        # A cotangent differs for each example even where the operand does not.
        both = [a or b for a, b in zip(x_flags, own, strict=True)]
        xs = [_spread(x, f, b, size) for x, f, b in zip(xs, x_flags, both, strict=True)]
        cts = [_spread(ct, f, True, size) for ct, f in zip(cts, ct_flags, strict=True)]

        def batched(*values: Any) -> list[Any]:
            outs, out_flags = rule.run(size, both, values)
            return [_spread(o, f, True, size) for o, f in zip(outs, out_flags, strict=True)]

        back = pull(batched, xs, own, cts)
        return back, [True] * len(back)

    made, consts = stage(plain, (*call.in_avals, *types), rule.name)
    return close(made), consts, Rule(rule.name, run, len(consts) + rule.const_count)


def _spread(x: Any, flag: bool, wanted: bool, size: int) -> Any:
    return batching.batched(x, size) if wanted and not flag else x


custom_vmap_p = Primitive(
    "custom_vmap_call",
    type=lambda *operands, call, rule: call.out_avals,
    lower=lambda low, ins, outs, *operands, call, rule: low.equations(call, operands),
    linearize=_linearize,
    batch=_batch,
    multiple=True,
    carrier=True,
    effects=lambda params: params["call"].effects,
)


# ---- public ----------------------------------------------------------------------------------------------------------


class custom_vmap:
    """A function whose batches are computed by a rule.

    Args:
        fun: function of pytrees of arrays.

    >>> from morphax import numpy as jnp, vmap
    >>> @custom_vmap
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.def_vmap
    ... def f_vmap(axis_size, in_batched, x):
    ...     return jnp.full(axis_size, 7.0), True
    >>> vmap(f)(jnp.zeros(2)).tolist()
    [7.0, 7.0]
    """

    __name__: str

    def __init__(self, fun: Callable[..., Any]):
        check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., tuple[Any, Any]] | None = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Give the rule: (axis_size, in_batched, *args) -> (output, out_batched).

        `in_batched` is the list of the arguments with bools for their leaves: which of them have the batch axis, in
        front. `out_batched` says the same of the output; one bool stands for a whole subtree.
        """
        check_callable("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(f"no batching rule was given for {self.__name__}. Call its def_vmap.")
        return _call(self.fun, self.vmap_rule, positional(self.fun, args, kwargs))


@api_boundary
def _call(fun: Callable[..., Any], vmap_rule: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    name = name_of(fun)
    paths = tree.leaves_with_path((args, {}))
    for keys, leaf in paths:
        check_leaf(name, leaf, lambda: argument_path(keys))  # noqa: B023 - called at once
    leaves = [canonical(leaf) for _, leaf in paths]
    flat = FlatFun(fun, tree.structure((args, {})), name)
    jaxpr, consts = stage(flat, [typeof(x) for x in leaves], name)
    args_tree = tree.structure(args)
    rule = Rule(name, _flat_rule(name, vmap_rule, args_tree, flat.out_tree, jaxpr.out_avals), len(consts))
    return tree.unflatten(flat.out_tree, custom_vmap_p(*consts, *leaves, call=close(jaxpr), rule=rule))


def _flat_rule(name: str, vmap_rule: Any, args_tree: Any, out_tree: Any, types: Sequence[ShapedArray]) -> FlatRule:
    def run(size: int, flags: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        in_batched = list(tree.unflatten(args_tree, [bool(f) for f in flags]))
        result = vmap_rule(size, in_batched, *tree.unflatten(args_tree, [as_array(x) for x in operands]))
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(
                f"{name}: its batching rule must return a pair (output, out_batched); it returned {result!r:.60}."
            )
        out, out_batched = result
        outs, got_tree = tree.flatten(out)
        if got_tree != out_tree:
            difference = "; ".join(
                f"at output{tree.keystr(keys)}: {what}"
                for keys, what in tree.structure_difference(out_tree, got_tree, names=("the function", "the rule"))
            )
            raise TypeError(f"{name}: its batching rule must return the structure of the function. {difference}.")
        marks = tree.broadcast_prefix(out_batched, out_tree, what=f"out_batched of the batching rule of {name}")
        paths = [keys for keys, _ in tree.leaves_with_path(out)]
        rows = zip(paths, outs, marks, types, strict=True)
        return [_fitting(name, keys, x, bool(mark), size, t) for keys, x, mark, t in rows], [bool(m) for m in marks]

    return run


def _fitting(name: str, keys: Any, x: Any, mark: bool, size: int, want: ShapedArray) -> Any:
    got = check_leaf(name, x, lambda: f"output{tree.keystr(keys)} of its batching rule")
    wanted = with_axis(size, want) if mark else want
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        how = "batched" if mark else "not batched"
        raise TypeError(
            f"{name}: its batching rule must return output{tree.keystr(keys)}, {how}, as {wanted}; it returned {got}. "
            "Convert or reshape it, or mark it otherwise in out_batched."
        )
    return as_array(canonical(x))


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """`f`, whose batches are computed one example after the other, in a loop.

    >>> from morphax import numpy as jnp, vmap
    >>> vmap(sequential_vmap(lambda x, y: x * y), (0, None))(jnp.arange(3.0), 2.0).tolist()
    [0.0, 2.0, 4.0]
    """
    made = custom_vmap(f)

    @made.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        leaves, structure = tree.flatten(args)
        marks = tree.leaves(in_batched)

        def one(_: Any, rows: Sequence[Any]) -> tuple[Any, Any]:
            found = iter(rows)
            mixed = [next(found) if m else x for x, m in zip(leaves, marks, strict=True)]
            return (), made(*tree.unflatten(structure, mixed))

        out = scan(one, (), pick(leaves, marks), length=axis_size)[1]
        return out, tree.map(lambda _: True, out)

    return made


__all__ = ["custom_vmap", "sequential_vmap"]
