"""Reductions, positions of extremes, and cumulative operations: rows of (name, combiner, identity, derivative)."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.primitive import Primitive
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops.family import typeof
from morphax.support import dtypes

# ---- combiners -------------------------------------------------------------------------------------------------------


class Combiner(NamedTuple):
    """An associative operation: its lowering on two scalars, and its identity for a dtype."""

    combine: Callable[[Any, Any, Any, Any], Any]
    identity: Callable[[Any], Any]
    kinds: str


def _as_op(opname: str) -> Callable[[Any, Any, Any, Any], Any]:
    return lambda low, aval, a, b: low.op(opname, (aval,), (a, b))[0]


def _extreme(opname: str, direction: str) -> Callable[[Any, Any, Any, Any], Any]:
    """Maximum or minimum; complex numbers are ordered by real, then by imaginary part, and NaN wins."""

    def combine(low: Any, aval: Any, a: Any, b: Any) -> Any:
        if not dtypes.is_complex(aval.dtype):
            return low.op(opname, (aval,), (a, b))[0]
        part = aval.update(dtype=dtypes.to_real(aval.dtype))
        flag = aval.update(dtype=dtypes.bool_)

        def compare(x: Any, y: Any, how: str) -> Any:
            return low.op("stablehlo.compare", (flag,), (x, y), {"comparison_direction": _DIRECTION[how]})[0]

        ra, rb, ia, ib = (low.op(f"stablehlo.{name}", (part,), (z,))[0] for name in ("real", "imag") for z in (a, b))
        later = low.op("stablehlo.and", (flag,), (compare(ra, rb, "EQ"), compare(ia, ib, direction)))[0]
        first = low.op("stablehlo.or", (flag,), (compare(ra, rb, direction), later))[0]
        first = low.op("stablehlo.or", (flag,), (first, compare(a, a, "NE")))[0]
        return low.op("stablehlo.select", (aval,), (first, a, b))[0]

    return combine


_DIRECTION = {name: f"#stablehlo<comparison_direction {name}>" for name in ("EQ", "NE", "GT", "LT")}


def lowest(dtype: Any) -> Any:
    """The identity of the maximum."""
    if dtypes.is_complex(dtype):
        return dtype.type(complex(-np.inf, -np.inf))
    return dtypes.scalar_limits(dtype)[0]


def highest(dtype: Any) -> Any:
    """The identity of the minimum."""
    if dtypes.is_complex(dtype):
        return dtype.type(complex(np.inf, np.inf))
    return dtypes.scalar_limits(dtype)[1]


def _all_ones(dtype: Any) -> Any:
    return np.True_ if dtype == np.bool_ else np.array(-1).astype(dtype)[()]


def _combine_logsumexp(low: Any, aval: Any, a: Any, b: Any) -> Any:
    # log(e^a + e^b) = max + log1p(e^(min - max)), and max where both are the same infinity.
    most = low.op("stablehlo.maximum", (aval,), (a, b))[0]
    least = low.op("stablehlo.minimum", (aval,), (a, b))[0]
    flag = aval.update(dtype=dtypes.bool_)
    equal = low.op("stablehlo.compare", (flag,), (a, b), {"comparison_direction": _DIRECTION["EQ"]})[0]
    gap = low.op("stablehlo.subtract", (aval,), (least, most))[0]
    gap = low.op("stablehlo.select", (aval,), (equal, low.constant(0, aval), gap))[0]
    grown = low.op("stablehlo.log_plus_one", (aval,), low.op("stablehlo.exponential", (aval,), (gap,)))
    return low.op("stablehlo.add", (aval,), (most, *grown))[0]


SUM = Combiner(_as_op("stablehlo.add"), lambda dtype: 0, "fciu")
PROD = Combiner(_as_op("stablehlo.multiply"), lambda dtype: 1, "fciu")
MAX = Combiner(_extreme("stablehlo.maximum", "GT"), lowest, "fciub")
MIN = Combiner(_extreme("stablehlo.minimum", "LT"), highest, "fciub")
AND = Combiner(_as_op("stablehlo.and"), _all_ones, "iub")
OR = Combiner(_as_op("stablehlo.or"), lambda dtype: 0, "iub")
XOR = Combiner(_as_op("stablehlo.xor"), lambda dtype: 0, "iub")
LOGSUMEXP = Combiner(_combine_logsumexp, lowest, "f")


# ---- reductions ------------------------------------------------------------------------------------------------------


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without `axes`."""
    return tuple([s for d, s in enumerate(shape) if d not in axes])


def _reduction(name: str, combiner: Combiner, **story: Any) -> Primitive:
    def type_rule(x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        family.check_kind(name, x.dtype, combiner.kinds)
        family.check_axes(name, axes, x.ndim)
        return x.update(shape=reduced_shape(x.shape, axes))

    def lower(low: Any, ins: Any, outs: Any, x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        return lower_reduce(low, combiner, ins[0], outs[0], x, axes)

    return Primitive(name, type=type_rule, lower=lower, batch=family.shift_params("axes"), **story)


def lower_reduce(low: Any, combiner: Combiner, aval: Any, out: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Reduction of `x`, of type `aval`, over `axes`."""
    element = aval.update(shape=())
    start = low.constant(combiner.identity(aval.dtype), element)
    body = ((element, element), lambda a, b: [combiner.combine(low, element, a, b)])
    return low.op("stablehlo.reduce", (out,), (x, start), {"dimensions": family.ints(axes)}, (body,))


def _extreme_jvp(prim: Callable[[], Primitive]) -> Callable[..., Any]:
    """Equal extremes share the tangent equally."""

    def jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        y = prim()(x, axes=axes, **params)
        aval = typeof(x)
        if t is None or not aval.size or not dtypes.is_inexact(aval.dtype):
            return y, None
        chosen = ew.eq(x, ew.broadcast(y, aval.shape, axes))
        count = ew.reduce_sum(structure.convert(chosen, aval.dtype), axes=axes)
        total = ew.reduce_sum(ew.select_n(chosen, family.like(t, 0), t), axes=axes)
        return y, ew.div(total, count)

    return jvp


def _prod_jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...]) -> Any:
    (x,), (t,) = primals, tangents
    y = reduce_prod(x, axes=axes)
    aval = typeof(x)
    if t is None or not aval.size or not dtypes.is_inexact(aval.dtype):
        return y, None
    kept = tuple([d for d in range(aval.ndim) if d not in axes])
    count = math.prod([aval.shape[d] for d in axes])
    shape = (count, *reduced_shape(aval.shape, axes))
    order = (*axes, *kept)
    p, t = (structure.reshape_to(structure.transpose(z, permutation=order), shape) for z in (x, t))
    # d(pq) = dp q + p dq on halves, again and again: no division, so zeros are exact.
    while count > 1:
        if count % 2:
            config = ((0, 1, 0), *((0, 0, 0) for _ in kept))
            p = structure.pad(p, family.like(p, 1), padding_config=config)
            t = structure.pad(t, family.like(t, 0), padding_config=config)
        half = (count + 1) // 2
        (p1, p2), (t1, t2) = (structure.split(z, sizes=(half, half), axis=0) for z in (p, t))
        t = ew.add(ew.mul(t1, p2), ew.mul(p1, t2))
        p = ew.mul(p1, p2)
        count = half
    return y, structure.squeeze(t, dimensions=(0,))


reduce_sum = ew.reduce_sum
reduce_prod = _reduction("reduce_prod", PROD, jvp=_prod_jvp)
reduce_max = _reduction("reduce_max", MAX, jvp=_extreme_jvp(lambda: reduce_max))
reduce_min = _reduction("reduce_min", MIN, jvp=_extreme_jvp(lambda: reduce_min))
reduce_and = _reduction("reduce_and", AND, nondiff="it is defined on bools and integers only")
reduce_or = _reduction("reduce_or", OR, nondiff="it is defined on bools and integers only")
reduce_xor = _reduction("reduce_xor", XOR, nondiff="it is defined on bools and integers only")


# ---- positions of extremes -------------------------------------------------------------------------------------------


def _position(name: str, combiner: Combiner) -> Primitive:
    def type_rule(x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        family.check_kind(name, x.dtype, "fiub")
        family.check_axes(name, axes, x.ndim)
        if len(axes) != 1:
            raise ValueError(f"{name}: axes {axes} must name one axis. Reshape to reduce over several.")
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{name}: index_dtype must be an integer type; it is {index_dtype.name}.")
        if not x.shape[axes[0]]:
            raise ValueError(f"{name}: axis {axes[0]} of shape {x.shape} is empty, so it has no {name[3:]}imum.")
        return x.update(shape=reduced_shape(x.shape, axes), dtype=index_dtype, weak_type=False)

    def lower(low: Any, ins: Any, outs: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        # The least index of an entry that equals the extreme, or is NaN: two plain reductions, which XLA vectorises,
        # where one reduction of (value, index) pairs is scalar code and 10 to 50 times slower.
        aval, out = ins[0], outs[0]
        flag = aval.update(dtype=dtypes.bool_)
        best = lower_reduce(low, combiner, aval, out.update(dtype=aval.dtype), x, axes)[0]
        kept = [d for d in range(aval.ndim) if d not in axes]
        best = low.broadcast(best, out.update(dtype=aval.dtype), aval.shape, kept)
        hit = low.op("stablehlo.compare", (flag,), (x, best), {"comparison_direction": _DIRECTION["EQ"]})[0]
        if dtypes.is_float(aval.dtype):
            nan = low.op("stablehlo.compare", (flag,), (x, x), {"comparison_direction": _DIRECTION["NE"]})[0]
            hit = low.op("stablehlo.or", (flag,), (hit, nan))[0]
        index = aval.update(dtype=index_dtype)
        places = low.op("stablehlo.iota", (index,), (), {"iota_dimension": f"{axes[0]} : i64"})[0]
        most = low.constant(highest(index_dtype), index)
        places = low.op("stablehlo.select", (index,), (hit, places, most))[0]
        return lower_reduce(low, MIN, index, out, places, axes)

    return Primitive(
        name,
        type=type_rule,
        lower=lower,
        nondiff="a position is an integer",
        batch=family.shift_params("axes"),
    )


argmax = _position("argmax", MAX)
argmin = _position("argmin", MIN)


# ---- cumulative operations -------------------------------------------------------------------------------------------


def _lower_cumulative(combiner: Combiner) -> Callable[..., Any]:
    def lower(low: Any, ins: Any, outs: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        aval = ins[0]
        if not aval.size:
            return [x]
        element = aval.update(shape=())
        size = aval.shape[axis]
        window = [1] * aval.ndim
        window[axis] = size
        ones = family.ints([1] * aval.ndim)
        edges = [[0, 0] for _ in aval.shape]
        edges[axis] = [0, size - 1] if reverse else [size - 1, 0]
        attributes = {
            "window_dimensions": family.ints(window),
            "window_strides": ones,
            "base_dilations": ones,
            "window_dilations": ones,
            "padding": f"dense<{edges}> : tensor<{aval.ndim}x2xi64>",
        }
        start = low.constant(combiner.identity(aval.dtype), element)
        body = ((element, element), lambda a, b: [combiner.combine(low, element, a, b)])
        return low.op("stablehlo.reduce_window", outs, (x, start), attributes, (body,))

    return lower


def _cumulative(name: str, combiner: Combiner, lower: Any = None, **story: Any) -> Primitive:
    def type_rule(x: Any, *, axis: int, reverse: bool) -> Any:
        family.check_kind(name, x.dtype, combiner.kinds.replace("b", ""))
        family.check_axis(name, axis, x.ndim)
        return x

    lower = _lower_cumulative(combiner) if lower is None else lower
    return Primitive(name, type=type_rule, lower=lower, batch=family.shift_params("axis"), **story)


def _lower_loop(
    low: Any, aval: Any, operands: Sequence[Any], axis: int, reverse: bool, start: Any, step: Callable[..., Any]
) -> list[Any]:
    """y[i] = step(y[i - 1], *operands[i]) along `axis` as a loop: on a CPU the fastest to compile and to run."""
    size = aval.shape[axis]
    if not aval.size:
        return [low.constant(0, aval)]
    index = ShapedArray((), np.dtype("int32"))
    row = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis + 1 :]))
    types = (index, aval, row, *(aval for _ in operands))

    def condition(i: Any, *rest: Any) -> list[Any]:
        return low.op("stablehlo.compare", (flag,), (i, low.constant(size, index)), {"comparison_direction": less})

    def body(i: Any, out: Any, before: Any, *rest: Any) -> list[Any]:
        place = low.op("stablehlo.subtract", (index,), (low.constant(size - 1, index), i))[0] if reverse else i
        starts = [low.constant(0, index)] * aval.ndim
        starts[axis] = place
        sizes = {"slice_sizes": family.ints(row.shape)}
        rows = [low.op("stablehlo.dynamic_slice", (row,), (x, *starts), sizes)[0] for x in rest]
        after = step(row, before, *rows)
        out = low.op("stablehlo.dynamic_update_slice", (aval,), (out, after, *starts))[0]
        return [low.op("stablehlo.add", (index,), (i, low.constant(1, index)))[0], out, after, *rest]

    flag = index.update(dtype=dtypes.bool_)
    less = _DIRECTION["LT"]
    initial = (low.constant(0, index), low.constant(0, aval), low.constant(start, row), *operands)
    return [low.op("stablehlo.while", types, initial, None, ((types, condition), (types, body)))[1]]


def _delayed(x: Any, by: int, axis: int, reverse: bool, fill: Any) -> Any:
    """`x` moved `by` places along the direction of accumulation, `fill` coming in."""
    return structure.pad(x, family.like(x, fill), padding_config=_delay(typeof(x).ndim, by, axis, reverse))


def _delay(ndim: int, by: int, axis: int, reverse: bool) -> tuple[tuple[int, int, int], ...]:
    config = [(0, 0, 0)] * ndim
    config[axis] = (-by, by, 0) if reverse else (by, -by, 0)
    return tuple(config)


# ---- linear recurrence: the derivative of all cumulative operations --------------------------------------------------


def _recurrence_type(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    dtype = family.common_dtype("linear_recurrence", (a, b))
    family.check_kind("linear_recurrence", dtype, "fc")
    family.check_axis("linear_recurrence", axis, b.ndim)
    if a.shape != b.shape:
        raise TypeError(f"linear_recurrence: the factors have shape {a.shape} and the terms {b.shape}. Broadcast them.")
    return family.joined("linear_recurrence", (a, b), b.shape, dtype)


def _lower_recurrence_loop(low: Any, ins: Any, outs: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> list[Any]:
    def step(row: Any, before: Any, factor: Any, term: Any) -> Any:
        grown = low.op("stablehlo.multiply", (row,), (factor, before))[0]
        return low.op("stablehlo.add", (row,), (grown, term))[0]

    return _lower_loop(low, outs[0], (a, b), axis, reverse, 0, step)


def _lower_recurrence(low: Any, ins: Any, outs: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> list[Any]:
    # By doubling: after step k each entry has combined its 2^k neighbours, and `a` is the product over them.
    aval = outs[0]
    scalar = aval.update(shape=())

    def delayed(x: Any, by: int, fill: int) -> Any:
        config = _delay(aval.ndim, by, axis, reverse)
        return structure.lower_pad(low, (aval, scalar), (aval,), x, low.constant(fill, scalar), padding_config=config)[
            0
        ]

    by = 1
    while by < aval.shape[axis]:
        term = low.op("stablehlo.multiply", (aval,), (a, delayed(b, by, 0)))[0]
        b = low.op("stablehlo.add", (aval,), (b, term))[0]
        a = low.op("stablehlo.multiply", (aval,), (a, delayed(a, by, 1)))[0]
        by *= 2
    return [b]


def _recurrence_jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    a, b = primals
    t_a, t_b = tangents
    y = linear_recurrence(a, b, axis=axis, reverse=reverse)
    term = t_b
    if t_a is not None:
        moved = ew.mul(t_a, _delayed(y, 1, axis, reverse, 0))
        term = moved if t_b is None else ew.add(t_b, moved)
    return y, linear_recurrence(a, term, axis=axis, reverse=reverse)


def _recurrence_transpose(ct: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    back = _delayed(a, 1, axis, not reverse, 0)
    return None, linear_recurrence(back, ct, axis=axis, reverse=not reverse)


def _recurrence_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    a, b = (structure.batched(x, flag, size) for x, flag in zip(operands, flags, strict=True))
    return [prim(a, b, axis=params["axis"] + 1, reverse=params["reverse"])]


# y[i] = a[i] y[i - 1] + b[i], from y[-1] = 0. Linear in b.
linear_recurrence = Primitive(
    "linear_recurrence",
    type=_recurrence_type,
    lower={"cpu": _lower_recurrence_loop, "default": _lower_recurrence},
    jvp=_recurrence_jvp,
    transpose=_recurrence_transpose,
    batch=_recurrence_batch,
)


def _by_recurrence(prim: Callable[[], Primitive], pushed: Callable[..., Any]) -> Callable[..., Any]:
    def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        y = prim()(x, axis=axis, reverse=reverse)
        if t is None or not dtypes.is_inexact(typeof(x).dtype):
            return y, None
        return y, pushed(x, y, t, axis, reverse)

    return jvp


def _push_prod(x: Any, y: Any, t: Any, axis: int, reverse: bool) -> Any:
    # d(y x) = dy x + y dx: no division, so zeros are exact.
    return linear_recurrence(x, ew.mul(t, _delayed(y, 1, axis, reverse, 1)), axis=axis, reverse=reverse)


def _push_extreme(x: Any, y: Any, t: Any, axis: int, reverse: bool) -> Any:
    # Entries equal to the extreme so far share its tangent equally: sums of tangents and counts since it last changed.
    tied = ew.eq(x, y)
    lasts = structure.convert(ew.eq(y, _delayed(y, 1, axis, reverse, np.nan)), typeof(x).dtype)
    total = linear_recurrence(lasts, ew.select_n(tied, family.like(t, 0), t), axis=axis, reverse=reverse)
    count = linear_recurrence(lasts, structure.convert(tied, typeof(x).dtype), axis=axis, reverse=reverse)
    return ew.div(total, count)


def _push_logsumexp(x: Any, y: Any, t: Any, axis: int, reverse: bool) -> Any:
    # Weighted means of tangents, with the weights of x[i] and y[i-1] in y[i]; of equal infinities one has it all.
    before = _delayed(y, 1, axis, reverse, lowest(typeof(y).dtype))
    gap = ew.sub(x, before)
    gap = ew.select_n(ew.ne(gap, gap), gap, ew.neg(x))
    term = ew.mul(t, ew.logistic(gap))
    return linear_recurrence(ew.logistic(ew.neg(gap)), term, axis=axis, reverse=reverse)


def _lower_logsumexp(low: Any, ins: Any, outs: Any, x: Any, *, axis: int, reverse: bool) -> list[Any]:
    start = LOGSUMEXP.identity(ins[0].dtype)
    return _lower_loop(low, ins[0], (x,), axis, reverse, start, partial(LOGSUMEXP.combine, low))


cumsum = _cumulative(
    "cumsum",
    SUM,
    linear=(0,),
    transpose=lambda ct, x, *, axis, reverse: (cumsum(ct, axis=axis, reverse=not reverse),),
)
cumprod = _cumulative("cumprod", PROD, jvp=_by_recurrence(lambda: cumprod, _push_prod))
cummax = _cumulative("cummax", MAX, jvp=_by_recurrence(lambda: cummax, _push_extreme))
cummin = _cumulative("cummin", MIN, jvp=_by_recurrence(lambda: cummin, _push_extreme))
cumlogsumexp = _cumulative(
    "cumlogsumexp",
    LOGSUMEXP,
    {"cpu": _lower_logsumexp, "default": _lower_cumulative(LOGSUMEXP)},
    jvp=_by_recurrence(lambda: cumlogsumexp, _push_logsumexp),
)
