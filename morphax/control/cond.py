"""Branches: y = f_i(x). The derivative is a branch on the same i; its transpose, of the transposed branches."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control.parts import fill, given, pick, present, remembered, share_constants, union
from morphax.control.scan import lane_by_lane
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.jaxpr import Eqn, Jaxpr, evaluate, prune
from morphax.ir.primitive import Primitive, Var, is_unknown
from morphax.ir.trace import close, stage
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.ops.family import like, typeof
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs
from morphax.transforms.api import as_array
from morphax.transforms.flat import FlatFun, check_leaf, name_of

Branches = tuple[Jaxpr, ...]


def _lower(low: Any, ins: Any, outs: Any, index: Any, *operands: Any, branches: Branches) -> Any:
    regions = [((), lambda b=b: low.equations(b, operands)) for b in branches]
    return low.op("stablehlo.case", outs, (index,), regions=regions)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    branches = params["branches"]
    index, xs, ts = primals[0], primals[1:], tangents[1:]
    active = given(ts)
    current.trace = d.parent
    if d.tangent is d.parent:
        has = union([jaxprs.jvp(b, active).has for b in branches])
        made = [jaxprs.jvp(b, active, force=has) for b in branches]
        shared, consts = share_constants([(m.jaxpr, m.consts) for m in made])
        outs = cond_p(index, *consts, *xs, *present(ts), branches=shared)
        return outs[: len(has)], fill(has, outs[len(has) :])
    forward, consts, linear, has, sources = _linearized(branches[0], branches[1:], active)
    outs = cond_p(index, *consts, *xs, branches=forward)
    residuals = [xs[k] if kind == "in" else k for kind, k in sources] + outs[len(has) :]
    out_tangents = d.tape.emit(cond_p, [index, *residuals, *present(ts)], {"branches": linear})
    return outs[: len(has)], fill(has, out_tangents)


@remembered
def _linearized(first: Jaxpr, others: Branches, active: tuple[bool, ...]) -> Any:
    """Forward branches with their constants, linear branches, which results have tangents, shared residual sources.

    Only one branch runs, so the residuals that they compute share slots by type: what is kept is the largest branch's,
    not the sum.
    """
    branches = (first, *others)
    has = union([jaxprs.linearize(b, active).has for b in branches])
    split = [jaxprs.linearize(b, active, force=has) for b in branches]
    slots: list[Any] = []
    common: dict[Any, tuple[tuple[str, Any], Any]] = {}
    placed: list[list[Any]] = []
    for lin in split:
        free = list(range(len(slots)))
        mine: list[Any] = []
        for (kind, k), v in zip(lin.sources, lin.tangent.invars, strict=False):
            if kind != "out":
                mine.append(common.setdefault((kind, k if kind == "in" else id(k)), ((kind, k), v.aval)))
                continue
            slot = next((s for s in free if slots[s] == v.aval), None)
            if slot is None:
                slot = len(slots)
                slots.append(v.aval)
            else:
                free.remove(slot)
            mine.append(slot)
        placed.append(mine)
    order = list(common.values())
    forward = [_padded(first, lin, mine, slots) for lin, mine in zip(split, placed, strict=True)]
    linear = []
    for lin, mine in zip(split, placed, strict=True):
        own = {id(m) if isinstance(m, tuple) else m: v for m, v in zip(mine, lin.tangent.invars, strict=False)}
        inputs = [own.get(id(m)) or Var(m[1]) for m in order] + [own.get(s) or Var(t) for s, t in enumerate(slots)]
        rest = lin.tangent.invars[len(mine) :]
        linear.append(Jaxpr((), (*inputs, *rest), lin.tangent.eqns, lin.tangent.outvars))
    made, consts = share_constants(forward)
    return made, consts, tuple(linear), has, [source for source, _ in order]


def _padded(first: Jaxpr, lin: jaxprs.Linearized, mine: list[Any], slots: list[Any]) -> tuple[Jaxpr, list[Any]]:
    """A forward branch that fills every residual slot, those that are not its own with zeros."""
    count = len(first.outvars)
    saved = {s: k for s, (kind, k) in zip(mine, lin.sources, strict=True) if kind == "out"}

    def run(*operands: Any) -> list[Any]:
        outs = evaluate(lin.forward, (), [*lin.consts, *operands])
        return outs[:count] + [outs[saved[s]] if s in saved else ew.zeros(t) for s, t in enumerate(slots)]

    made, consts = stage(run, first.in_avals)
    return close(made), consts


@remembered
def _transposed(first: Jaxpr, others: Branches, unknown: tuple[bool, ...], has: tuple[bool, ...]) -> Any:
    branches = (first, *others)
    live = union([jaxprs.transpose(b, unknown, has).live for b in branches])
    made = [jaxprs.transpose(b, unknown, has, force=live) for b in branches]
    shared, consts = share_constants([(m.jaxpr, m.consts) for m in made])
    return shared, consts, live


def _transpose(cts: Sequence[Any], index: Any, *operands: Any, branches: Branches) -> list[Any]:
    unknown = tuple([is_unknown(x) for x in operands])
    back, consts, live = _transposed(branches[0], branches[1:], unknown, given(cts))
    known = [x for x in operands if not is_unknown(x)]
    found = iter(fill(live, cond_p(index, *consts, *known, *present(cts), branches=back)))
    return [None] + [next(found) if u else None for u in unknown]


# ---- batching --------------------------------------------------------------------------------------------------------


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    branches = params["branches"]
    key = (trace.size, tuple(flags[1:]), trace.axis_name, trace.spmd_axis_name)
    index, xs = operands[0], operands[1:]
    if flags[0] and any(b.effects for b in branches):
        outs = lane_by_lane(prim, trace.size, operands, flags, params)
        return outs, [True] * len(outs)
    if flags[0]:
        force = (True,) * len(branches[0].outvars)
    else:
        force = union([jaxprs.batch(b, *key).has for b in branches])
    made = [jaxprs.batch(b, *key, force=force) for b in branches]
    if not flags[0]:
        shared, consts = share_constants([(m.jaxpr, m.consts) for m in made])
        return cond_p(index, *consts, *xs, branches=shared), force
    # The predicate differs within the batch: every branch runs, and each example takes its own.
    results = [evaluate(m.jaxpr, (), [*m.consts, *xs]) for m in made]
    which = structure.convert(index, np.dtype("int32"))
    return [_select(which, cases) for cases in zip(*results, strict=True)], force


def _select(which: Any, cases: Sequence[Any]) -> Any:
    shape = typeof(cases[0]).shape
    if len(shape) > 1:
        which = ew.broadcast_in_dim(which, shape=shape, broadcast_dimensions=(0,), sharding=None)
    if len(cases) == 2:
        which = ew.ne(which, like(which, 0))
    return ew.select_n(which, *cases) if len(cases) > 1 else cases[0]


def _prune(eqn: Eqn, used: tuple[bool, ...]) -> Eqn:
    pruned = [prune(b, used) for b in eqn.params["branches"]]
    kept = union([k for _, k in pruned])
    branches = []
    for original, (jaxpr, _) in zip(eqn.params["branches"], pruned, strict=True):
        branches.append(Jaxpr((), pick(original.invars, kept), jaxpr.eqns, jaxpr.outvars, jaxpr.effects))
    return eqn.replace(
        params={"branches": tuple(branches)},
        invars=[eqn.invars[0], *pick(eqn.invars[1:], kept)],
        outvars=pick(eqn.outvars, used),
    )


cond_p = Primitive(
    "cond",
    type=lambda index, *operands, branches: branches[0].out_avals,
    lower=_lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    prune=_prune,
    multiple=True,
    carrier=True,
    effects=lambda params: frozenset().union(*[b.effects for b in params["branches"]]),
)


# ---- public ----------------------------------------------------------------------------------------------------------


def _stage_branches(
    api: str, funs: Sequence[Callable[..., Any]], roles: Sequence[str], operands: Sequence[Any]
) -> tuple[Branches, list[Any], Any]:
    leaves, in_tree = tree.flatten((tuple(operands), {}))
    types = [check_leaf(api, x, lambda: "an operand") for x in leaves]
    made, trees = [], []
    for fun, role in zip(funs, roles, strict=True):
        if not callable(fun):
            raise TypeError(f"{api}: branches must be functions; {role} is {fun!r:.60}.")
        flat = FlatFun(fun, in_tree, api)
        jaxpr, consts = stage(flat, types, name_of(fun))
        made.append((close(jaxpr), consts))
        trees.append(flat.out_tree)
    made = _same_results(api, [f"{r} {name_of(f)}" for f, r in zip(funs, roles, strict=True)], made, trees)
    branches, consts = share_constants(made)
    return branches, [*consts, *leaves], trees[0]


def _same_results(api: str, names: Any, made: list[tuple[Jaxpr, list[Any]]], trees: list[Any]) -> Any:
    """The branches with equal result types: where only weak types differ, the results become strong."""
    for name, out_tree in zip(names[1:], trees[1:], strict=True):
        if out_tree != trees[0]:
            difference = "; ".join(
                f"at output{tree.keystr(keys)}: {what}"
                for keys, what in tree.structure_difference(trees[0], out_tree, names=(names[0], name))
            )
            raise TypeError(f"{api}: branches must return the same structure; {difference}.")
    columns = list(zip(*[jaxpr.out_avals for jaxpr, _ in made], strict=True))
    for k, column in enumerate(columns):
        if len({(a.shape, a.dtype) for a in column}) > 1:
            filled = tree.unflatten(trees[0], range(len(columns)))
            path = next((tree.keystr(p) for p, leaf in tree.leaves_with_path(filled) if leaf == k), "")
            types = ", ".join(f"{name} returns {a}" for name, a in zip(names, column, strict=True))
            raise TypeError(
                f"{api}: branches must return the same types; at output{path} {types}. Convert one of them."
            )
    mixed = [len({a.weak_type for a in column}) > 1 for column in columns]
    if not any(mixed):
        return made
    return [(_strengthened(jaxpr, mixed), consts) for jaxpr, consts in made]


def _strengthened(jaxpr: Jaxpr, which: Sequence[bool]) -> Jaxpr:
    def run(*operands: Any) -> list[Any]:
        outs = evaluate(jaxpr, (), operands)
        return [structure.convert(as_array(o), typeof(o).dtype) if w else o for o, w in zip(outs, which, strict=True)]

    return close(stage(run, jaxpr.in_avals, jaxpr.debug_name)[0])


def _selector(api: str, what: str, x: Any) -> avals.ShapedArray:
    aval = check_leaf(api, x, lambda: what)
    if aval.shape != ():
        raise TypeError(f"{api}: {what} must be a scalar; it has type {aval}. Reduce it, or use numpy.where.")
    return aval


_NO_OPERAND = object()


@api_boundary
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NO_OPERAND,
) -> Any:
    """`true_fun(*operands)` where `pred` is true, else `false_fun(*operands)`; only one of them runs.

    Under `vmap` with a batch of predicates both run, and each example takes its own.

    Args:
        pred: scalar bool, or a number (true where it is not 0).
        true_fun: function of the operands.
        false_fun: function of the operands, with results of the same structure, shapes and dtypes.
        operands: pytrees of arrays.

    Raises:
        TypeError: a predicate that is not a scalar, or branches whose results differ.

    >>> from morphax import lax
    >>> float(lax.cond(True, lambda x: x + 1.0, lambda x: x - 1.0, 3.0))
    4.0
    """
    if operand is not _NO_OPERAND:
        operands = (*operands, operand)
    aval = _selector("cond", "pred", pred)
    branches, values, out_tree = _stage_branches("cond", (false_fun, true_fun), ("false_fun", "true_fun"), operands)
    if aval.dtype != np.bool_:
        pred = ew.ne(pred, like(pred, 0))
    index = structure.convert_element_type(pred, new_dtype=np.dtype("int32"), weak_type=False, sharding=None)
    outs = cond_p(index, *values, branches=branches)
    return tree.unflatten(out_tree, outs)


@api_boundary
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`branches[index](*operands)`, with the index clamped to the branches there are; only one of them runs.

    Args:
        index: scalar integer.
        branches: functions of the operands, with results of the same structure, shapes and dtypes.
        operands: pytrees of arrays.

    Raises:
        TypeError: an index that is not a scalar integer, or branches whose results differ.
        ValueError: no branches.

    >>> from morphax import lax
    >>> float(lax.switch(1, [lambda x: x, lambda x: 2.0 * x, lambda x: 3.0 * x], 5.0))
    10.0
    """
    if operand is not _NO_OPERAND:
        operands = (*operands, operand)
    aval = _selector("switch", "index", index)
    if not np.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"switch: index must be an integer; it has type {aval}. Use cond for a bool.")
    if not len(branches):
        raise ValueError("switch: branches is empty; give at least one function.")
    if len(branches) == 1:
        return branches[0](*operands)
    made, values, out_tree = _stage_branches(
        "switch", tuple(branches), [f"branch {k}" for k in range(len(branches))], operands
    )
    which = structure.convert(as_array(index), np.dtype("int32"))
    which = ew.clamp(like(which, 0), which, like(which, len(branches) - 1))
    return tree.unflatten(out_tree, cond_p(which, *values, branches=made))
