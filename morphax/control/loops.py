"""The public loops: scan, map, fori_loop, while_loop; and what they ask of their bodies."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from morphax.control.scan import scan_p
from morphax.control.while_loop import while_p
from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ir.current import base, current
from morphax.ir.jaxpr import Jaxpr
from morphax.ir.trace import Tracer, close, stage
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.ops.family import like, typeof
from morphax.support import config, dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import as_array, vmap
from morphax.transforms.flat import FlatFun, canonical, check_callable, check_leaf, name_of


def _leaves(api: str, what: str, value: Any) -> tuple[list[Any], Any]:
    paths = tree.leaves_with_path(value)
    for keys, leaf in paths:
        check_leaf(api, leaf, lambda: f"{what}{tree.keystr(keys)}")  # noqa: B023 - called at once
    return [canonical(leaf) for _, leaf in paths], tree.structure(value)


class _Loop(NamedTuple):
    """What messages call a loop and its carry: `inside` parts of a key path lead to what the user calls the carry."""

    api: str
    fun: Callable[..., Any]
    inside: int = 0

    def path(self, keys: Any) -> str:
        return f"carry{tree.keystr(tuple(keys)[self.inside :])}"

    @property
    def name(self) -> str:
        return name_of(self.fun)


def _carry_types(
    loop: _Loop, init: list[Any], tree_in: Any, types_out: Sequence[ShapedArray], tree_out: Any
) -> list[ShapedArray]:
    """Types that the carry must start with so that a turn does not change them.

    Raises:
        TypeError: the body changes the structure, a shape or a dtype of the carry.
    """
    if tree_in != tree_out:
        difference = "; ".join(
            f"at {loop.path(keys)}: {what}"
            for keys, what in tree.structure_difference(tree_in, tree_out, names=("the carry", "the result"))
        )
        raise TypeError(f"{loop.api}: {loop.name} must return a carry of the structure that it takes. {difference}.")
    types_in = [typeof(x) for x in init]
    filled = tree.unflatten(tree_in, range(len(init)))
    paths = {leaf: loop.path(keys) for keys, leaf in tree.leaves_with_path(filled)}
    started = []
    for k, (a, b) in enumerate(zip(types_in, types_out, strict=True)):
        joined, _ = dtypes.promote(a.dtype, a.weak_type, b.dtype, b.weak_type)
        promotes = a.weak_type and a.shape == b.shape and joined == b.dtype
        if (a.shape, a.dtype) != (b.shape, b.dtype) and not promotes:
            raise TypeError(
                f"{loop.api}: {loop.name} must return a carry of the types that it takes; {paths[k]} goes in as {a} "
                f"and comes out as {b}. Convert one of them."
            )
        started.append(b if a != b else a)
    return started


def _started(init: list[Any], types: Sequence[ShapedArray]) -> list[Any]:
    started = []
    for x, t in zip(init, types, strict=True):
        if typeof(x) == t:
            started.append(x)
        elif isinstance(x, (bool, int, float, complex)) and not t.weak_type:
            started.append(np.asarray(x, t.dtype))  # a literal of that type
        else:
            started.append(structure.convert(as_array(x), t.dtype, t.weak_type))
    return started


# ---- scan ------------------------------------------------------------------------------------------------------------


def _scan_length(api: str, xs: Any, length: int | None) -> int:
    sizes = {}
    for keys, leaf in tree.leaves_with_path(xs):
        shape = typeof(leaf).shape
        if not shape:
            raise ValueError(
                f"{api}: xs{tree.keystr(keys)} is a scalar; {api} goes along the first axis of each leaf of xs."
            )
        sizes.setdefault(shape[0], f"xs{tree.keystr(keys)} of type {typeof(leaf)}")
    if length is not None:
        length = length.__index__()
        sizes.setdefault(length, f"length={length}")
    if len(sizes) > 1:
        raise ValueError(f"{api}: the first axes must have one size: {', '.join(sizes.values())}.")
    if not sizes:
        raise ValueError(f"{api}: xs has no leaves, so the number of turns is unknown. Give length.")
    return next(iter(sizes))


@api_boundary
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """A loop over the first axis of `xs` that carries a state and stacks results; differentiable in both modes.

    Args:
        f: (carry, x) -> (carry, y), with a carry of the same types.
        init: the first carry, a pytree of arrays.
        xs: pytree of arrays of equal first axis, or None.
        length: number of turns; needed where xs has no leaves.
        reverse: go from the last x to the first; ys keep the order of xs.
        unroll: turns in one pass of the compiled loop; True for all.

    Returns:
        (the last carry, the y's stacked along a new first axis).

    Raises:
        TypeError: the body changes the types of the carry, or does not return a pair.
        ValueError: sizes that differ, or an unknown number of turns.

    >>> from morphax import lax, numpy as jnp
    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, jnp.array([1.0, 2.0, 3.0]))
    >>> float(total), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    check_callable("scan", f)
    return _scan(_Loop("scan", f), f, init, xs, length, reverse, unroll)


def _scan(
    loop: _Loop, f: Any, init: Any, xs: Any, length: int | None, reverse: bool = False, unroll: int | bool = 1
) -> tuple[Any, Any]:
    init_leaves, init_tree = _leaves(loop.api, "init", init)
    x_leaves, x_tree = _leaves(loop.api, "xs", xs)
    length = _scan_length(loop.api, xs, length)
    if config.disable_jit.value:
        return _scan_in_python(f, init, x_leaves, x_tree, length, reverse)
    row_types = [ShapedArray(typeof(x).shape[1:], typeof(x).dtype, typeof(x).weak_type) for x in x_leaves]
    in_tree = tree.structure(((tree.unflatten(init_tree, init_leaves), tree.unflatten(x_tree, x_leaves)), {}))
    jaxpr, consts, out_tree = _stage_body(loop, f, in_tree, init_leaves, init_tree, row_types)
    count = len(init_leaves)
    types = list(jaxpr.out_avals[:count])
    outs = scan_p(
        *consts,
        *_started(init_leaves, types),
        *x_leaves,
        jaxpr=jaxpr,
        length=length,
        num_consts=len(consts),
        num_carry=count,
        reverse=bool(reverse),
        unroll=_unroll(unroll, length),
    )
    return tree.unflatten(init_tree, outs[:count]), tree.unflatten(out_tree, outs[count:])


def _unroll(unroll: int | bool, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    if unroll < 1:
        raise ValueError(f"scan: unroll must be a positive integer or a bool; it is {unroll}.")
    return int(unroll)


def _stage_body(
    loop: _Loop, f: Any, in_tree: Any, init: list[Any], init_tree: Any, row_types: list[ShapedArray]
) -> tuple[Jaxpr, list[Any], Any]:
    types = [typeof(x) for x in init]
    while True:  # each round makes a weak carry strong
        flat = FlatFun(f, in_tree, loop.api)
        jaxpr, consts = stage(flat, [*types, *row_types], loop.name)
        carry_tree, y_tree = _pair(f, flat.out_tree)
        count = len(init)
        if carry_tree != init_tree:
            _carry_types(loop, init, init_tree, jaxpr.out_avals[: carry_tree.num_leaves], carry_tree)
        structs = [avals.ShapeDtypeStruct.of(t) for t in types]
        wanted = _carry_types(loop, structs, init_tree, jaxpr.out_avals[:count], carry_tree)
        if wanted == types:
            break
        types = wanted
    return close(jaxpr), consts, y_tree


def _pair(f: Any, out_tree: Any) -> tuple[Any, Any]:
    children = tree.treedef_children(out_tree)
    data = out_tree.node_data()
    if len(children) != 2 or data is None or data[0] not in (tuple, list):
        returned = "one array" if data is None and out_tree.num_leaves else str(out_tree)
        raise TypeError(f"scan: {name_of(f)} must return a pair (carry, y); it returned {returned}.")
    return children[0], children[1]


def _scan_in_python(f: Any, init: Any, xs: list[Any], x_tree: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    carry, ys = init, []
    order = range(length)[:: -1 if reverse else 1]
    for i in order:
        row = [structure.reshape_to(structure.slice_axis(x, i, i + 1, 0), typeof(x).shape[1:]) for x in xs]
        carry, y = f(carry, tree.unflatten(x_tree, row))
        ys.append(y)
    if not ys:
        raise ValueError("scan: under disable_jit a loop of no turns has no result types. Enable jit for it.")
    return carry, tree.map(_stacked, *ys[:: -1 if reverse else 1])


def _stacked(*rows: Any) -> Any:
    rows = tuple(as_array(r) for r in rows)
    return structure.concatenate(*[structure.reshape_to(r, (1, *typeof(r).shape)) for r in rows], dimension=0)


@api_boundary
def map_(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """`f` of each row of `xs`, one after the other; the results stacked.

    Args:
        f: function of one row.
        xs: pytree of arrays of equal first axis.
        batch_size: rows that are computed at once, with `vmap`.

    >>> from morphax import lax, numpy as jnp
    >>> lax.map(lambda x: x * x, jnp.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 4.0, 9.0]
    """
    if batch_size is None:
        return _scan(_Loop("map", f), lambda _, x: ((), f(x)), (), xs, None)[1]
    leaves, x_tree = _leaves("map", "xs", xs)
    length = _scan_length("map", xs, None)
    whole = length // batch_size
    split = (whole, batch_size)
    batches = [
        structure.reshape_to(structure.slice_axis(x, 0, whole * batch_size, 0), (*split, *typeof(x).shape[1:]))
        for x in leaves
    ]
    mapped = vmap(f)
    parts = []
    if whole:
        out = scan(lambda _, x: ((), mapped(x)), (), tree.unflatten(x_tree, batches))[1]
        parts.append(tree.map(lambda y: structure.reshape_to(y, (whole * batch_size, *typeof(y).shape[2:])), out))
    if whole * batch_size < length or not parts:
        rest = [structure.slice_axis(x, whole * batch_size, length, 0) for x in leaves]
        parts.append(mapped(tree.unflatten(x_tree, rest)))
    return parts[0] if len(parts) == 1 else tree.map(lambda *p: structure.concatenate(*p, dimension=0), *parts)


# ---- while and fori --------------------------------------------------------------------------------------------------


@api_boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`body_fun` applied to the state for as long as `cond_fun` of the state is true; differentiable in both modes.

    Reverse mode keeps O(1) states and recomputes: binomial checkpointing (Griewank & Walther, Algorithm 799, ACM
    Transactions on Mathematical Software 26, 2000).

    Args:
        cond_fun: state -> scalar bool.
        body_fun: state -> state of the same types.
        init_val: the first state, a pytree of arrays.

    Raises:
        TypeError: a condition that is not a scalar bool, or a body that changes the types of the state.

    >>> from morphax import lax
    >>> int(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    check_callable("while_loop", cond_fun)
    check_callable("while_loop", body_fun)
    if config.disable_jit.value:
        state = init_val
        while cond_fun(state):
            state = body_fun(state)
        return state
    return _while(_Loop("while_loop", body_fun), cond_fun, body_fun, init_val)


def _while(loop: _Loop, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    leaves, state_tree = _leaves(loop.api, "init_val", init_val)
    in_tree = tree.structure(((init_val,), {}))
    types = [typeof(x) for x in leaves]
    while True:  # each round makes a weak carry strong
        flat = FlatFun(body_fun, in_tree, loop.api)
        body, body_consts = stage(flat, types, loop.name)
        structs = [avals.ShapeDtypeStruct.of(t) for t in types]
        wanted = _carry_types(loop, structs, state_tree, body.out_avals, flat.out_tree)
        if wanted == types:
            break
        types = wanted
    test_flat = FlatFun(cond_fun, in_tree, loop.api)
    test, test_consts = stage(test_flat, types, name_of(cond_fun))
    if len(test.outvars) != 1 or test.out_avals[0].shape != () or test.out_avals[0].dtype != np.bool_:
        returned = ", ".join(map(str, test.out_avals)) or "nothing"
        raise TypeError(
            f"while_loop: {name_of(cond_fun)} must return a scalar bool; it returned {returned}. Compare, or reduce "
            "with numpy.any or numpy.all."
        )
    outs = while_p(
        *test_consts,
        *body_consts,
        *_started(leaves, types),
        body_jaxpr=close(body),
        body_nconsts=len(body_consts),
        cond_jaxpr=close(test),
        cond_nconsts=len(test_consts),
    )
    return tree.unflatten(state_tree, outs)


def _static_bound(x: Any) -> int | None:
    if isinstance(x, Tracer):
        return None
    if isinstance(x, (int, np.integer)):
        return int(x)
    return int(x) if current.trace is base() else None


@api_boundary
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """`body_fun(i, state)` for i from `lower` up to `upper`, exclusive; differentiable in both modes.

    Bounds known while tracing make a `scan`, others a `while_loop`.

    Args:
        lower, upper: scalar integers of one dtype.
        body_fun: (index, state) -> state of the same types.
        init_val: the first state, a pytree of arrays.
        unroll: as for `scan`; only with known bounds.

    Raises:
        TypeError: bounds that are not integers, or a body that changes the types of the state.

    >>> from morphax import lax
    >>> int(lax.fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    check_callable("fori_loop", body_fun)
    for what, bound in (("lower", lower), ("upper", upper)):
        aval = check_leaf("fori_loop", bound, lambda: what)  # noqa: B023 - called at once
        if aval.shape != () or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"fori_loop: {what} must be a scalar integer; it has type {aval}.")
    first, last = _static_bound(lower), _static_bound(upper)
    dtype, weak = dtypes.promote(*_kind(lower), *_kind(upper))
    if config.disable_jit.value and first is not None and last is not None:
        state = init_val
        for i in range(first, last):
            state = body_fun(i, state)
        return state
    start = structure.convert(as_array(lower), dtype, weak)
    loop = _Loop("fori_loop", body_fun, inside=1)
    if first is not None and last is not None:

        def turn(carry: Any, _: Any) -> Any:
            i, state = carry
            return (ew.add(i, like(i, 1)), body_fun(i, state)), None

        turns = max(last - first, 0)
        return _scan(loop, turn, (start, init_val), None, turns, unroll=unroll or 1)[0][1]
    if unroll not in (None, 1, False):
        raise ValueError("fori_loop: unroll needs bounds that are known while tracing.")
    end = structure.convert(as_array(upper), dtype, weak)

    def step(carry: Any) -> Any:
        i, end, state = carry
        return ew.add(i, like(i, 1)), end, body_fun(i, state)

    return _while(loop, lambda c: ew.lt(c[0], c[1]), step, (start, end, init_val))[2]


def _kind(x: Any) -> tuple[Any, bool]:
    aval = avals.typeof(x)
    return aval.dtype, aval.weak_type
