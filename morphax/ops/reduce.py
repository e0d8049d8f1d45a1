"""Reductions, positions of extremes, and cumulative operations: rows of (name, combiner, identity, derivative)."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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


def _cumulative(name: str, combiner: Combiner, **story: Any) -> Primitive:
    def type_rule(x: Any, *, axis: int, reverse: bool) -> Any:
        family.check_kind(name, x.dtype, combiner.kinds.replace("b", ""))
        family.check_axis(name, axis, x.ndim)
        return x

    return Primitive(
        name, type=type_rule, lower=_lower_cumulative(combiner), batch=family.shift_params("axis"), **story
    )


def _delayed(x: Any, by: int, axis: int, reverse: bool, fill: Any) -> Any:
    """`x` moved `by` places along the direction of accumulation, `fill` coming in."""
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (-by, by, 0) if reverse else (by, -by, 0)
    return structure.pad(x, family.like(x, fill), padding_config=tuple(config))


def _steps(size: int) -> list[int]:
    """1, 2, 4, ... below `size`: distances at which a scan by doubling combines."""
    return [1 << k for k in range(max(size - 1, 0).bit_length())]


def _by_doubling(prim: Callable[[], Primitive], pushed: Callable[..., Any]) -> Callable[..., Any]:
    """jvp that accumulates the tangents by doubling: after step k each entry has combined 2^k neighbours."""

    def jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        y = prim()(x, axis=axis, reverse=reverse)
        aval = typeof(x)
        if t is None or not dtypes.is_inexact(aval.dtype):
            return y, None
        if not aval.size:
            return y, t
        return y, pushed(x, y, t, axis, reverse)

    return jvp


def _push_prod(x: Any, y: Any, t: Any, axis: int, reverse: bool) -> Any:
    # d(pq) = dp q + p dq: no division, so zeros are exact.
    for by in _steps(typeof(x).shape[axis]):
        before = _delayed(x, by, axis, reverse, 1)
        t = ew.add(ew.mul(_delayed(t, by, axis, reverse, 0), x), ew.mul(t, before))
        x = ew.mul(x, before)
    return t


def _push_extreme(x: Any, y: Any, t: Any, axis: int, reverse: bool) -> Any:
    # Entries equal to the extreme so far share its tangent equally: sums of tangents and counts since it last changed.
    before = _delayed(y, 1, axis, reverse, 0)
    place = structure.iota_along(np.dtype("int32"), typeof(x).shape, axis)
    last = typeof(x).shape[axis] - 1
    start = ew.eq(place, family.like(place, last if reverse else 0))
    begun = ew.select_n(start, ew.ne(y, before), np.True_)
    tied = ew.eq(x, y)
    t = ew.select_n(tied, family.like(t, 0), t)
    count = structure.convert(tied, typeof(x).dtype)
    for by in _steps(typeof(x).shape[axis]):
        moved = _delayed(t, by, axis, reverse, 0)
        t = ew.add(t, ew.select_n(begun, moved, family.like(t, 0)))
        count = ew.add(count, ew.select_n(begun, _delayed(count, by, axis, reverse, 0), family.like(count, 0)))
        begun = ew.select_n(begun, _delayed(begun, by, axis, reverse, True), np.True_)
    return ew.div(t, count)


def _push_logsumexp(x: Any, y: Any, t: Any, axis: int, reverse: bool) -> Any:
    # Each combination is a weighted mean of tangents, with weights e^(a - y) and e^(b - y) that add up to one.
    lowest_of = lowest(typeof(x).dtype)
    for by in _steps(typeof(x).shape[axis]):
        before = _delayed(x, by, axis, reverse, lowest_of)
        most = ew.max(x, before)
        base = ew.select_n(ew.eq(most, family.like(x, lowest_of)), most, family.like(x, 0))
        a, b = ew.exp(ew.sub(x, base)), ew.exp(ew.sub(before, base))
        total = ew.add(a, b)
        safe = ew.select_n(ew.eq(total, family.like(x, 0)), total, family.like(x, 1))
        t = ew.add(ew.mul(t, ew.div(a, safe)), ew.mul(_delayed(t, by, axis, reverse, 0), ew.div(b, safe)))
        x = ew.add(base, ew.log(total))
    return t


cumsum = _cumulative(
    "cumsum",
    SUM,
    linear=(0,),
    transpose=lambda ct, x, *, axis, reverse: (cumsum(ct, axis=axis, reverse=not reverse),),
)
cumprod = _cumulative("cumprod", PROD, jvp=_by_doubling(lambda: cumprod, _push_prod))
cummax = _cumulative("cummax", MAX, jvp=_by_doubling(lambda: cummax, _push_extreme))
cummin = _cumulative("cummin", MIN, jvp=_by_doubling(lambda: cummin, _push_extreme))
cumlogsumexp = _cumulative("cumlogsumexp", LOGSUMEXP, jvp=_by_doubling(lambda: cumlogsumexp, _push_logsumexp))
