"""Arithmetic on integers and on the bits of numbers, and differences that need neighbours."""

import operator
from typing import Any

import numpy as np

from morphax.control import loops
from morphax.ir import avals
from morphax.numpy import promotion, reductions, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type

# ---- divisors --------------------------------------------------------------------------------------------------------


def _two_integers(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two arguments as integers of one dtype and one shape."""
    x1, x2 = promotion.numeric(name, x1), promotion.numeric(name, x2)
    x1, x2 = promotion.operands(name, (x1, x2))
    dtype = typeof(x1).dtype
    if not dtypes.is_integer(dtype):
        raise ValueError(f"{name}: arguments must be integers; their common dtype is {dtype.name}. Convert them first.")
    shape = promotion.common_shape(name, (typeof(x1).shape, typeof(x2).shape))
    return promotion.spread(x1, shape), promotion.spread(x2, shape)


def _size_of(x: Any) -> Any:
    return x if dtypes.kind(typeof(x).dtype) == "u" else ew.abs(x)


def _greatest_divisor(x: Any, y: Any) -> Any:
    """Euclid's algorithm on every pair at once, until all have ended."""

    def unfinished(pair: Any) -> Any:
        return reductions.any(ew.ne(pair[1], family.like(pair[1], 0)))

    def step(pair: Any) -> Any:
        a, b = pair
        zero = family.like(b, 0)
        ended = ew.eq(b, zero)
        rest = ew.rem(a, ew.select_n(ended, b, family.like(b, 1)))
        return ew.select_n(ended, b, a), ew.select_n(ended, rest, zero)

    return loops.while_loop(unfinished, step, (_size_of(x), _size_of(y)))[0]


@program()
def gcd(x1: Any, x2: Any) -> Any:
    """Greatest common divisor of integers; gcd(0, 0) is 0.

    >>> from morphax import numpy as jnp
    >>> jnp.gcd(12, jnp.array([8, 0])).tolist()
    [4, 12]
    """
    return _greatest_divisor(*_two_integers("gcd", x1, x2))


@program()
def lcm(x1: Any, x2: Any) -> Any:
    """Least common multiple of integers; 0 where one of them is 0.

    >>> from morphax import numpy as jnp
    >>> jnp.lcm(4, jnp.array([6, 0])).tolist()
    [12, 0]
    """
    x1, x2 = (_size_of(x) for x in _two_integers("lcm", x1, x2))
    divisor = _greatest_divisor(x1, x2)
    zero = ew.eq(divisor, family.like(divisor, 0))
    return ew.mul(x1, ew.div(x2, ew.select_n(zero, divisor, family.like(divisor, 1))))


# ---- floats as bits --------------------------------------------------------------------------------------------------


def _real_float(name: str, x: Any) -> Any:
    x = promotion.inexact(name, x)
    if dtypes.is_complex(typeof(x).dtype):
        raise TypeError(f"{name}: does not accept complex numbers. Use their real and imaginary parts.")
    return x


def _unsigned(dtype: Any) -> Any:
    return np.dtype(f"uint{dtypes.itemsize_bits(dtype)}")


@program()
def frexp(x: Any, /) -> tuple[Any, Any]:
    """Mantissa, with 1/2 <= |mantissa| < 1, and int32 exponent e with x = mantissa 2^e.

    0, infinities and NaNs are their own mantissa, with exponent 0.

    >>> from morphax import numpy as jnp
    >>> [part.item() for part in jnp.frexp(6.0)]
    [0.75, 3]
    """
    x = _real_float("frexp", x)
    dtype = typeof(x).dtype
    limits = dtypes.finfo(dtype)
    fraction, width = int(limits.nmant), dtypes.itemsize_bits(dtype)
    exponents = (1 << (width - 1 - fraction)) - 1
    bias = (exponents >> 1) - 1  # of mantissas in [1/2, 1)
    unsigned = _unsigned(dtype)
    bits = structure.bitcast_convert_type(x, new_dtype=unsigned)
    low = ew.and_(bits, family.scalar((1 << fraction) - 1, unsigned))
    field = _shifted(ew.and_(bits, family.scalar(exponents << fraction, unsigned)), fraction)
    # A subnormal number is its fraction, shifted until the first bit stands where it is implied.
    lead = ew.sub(ew.clz(low), family.scalar(width - 1 - fraction, unsigned))
    subnormal = ew.eq(field, family.scalar(0, unsigned))
    place = structure.convert(field, dtypes.int32)
    lifted = ew.sub(family.scalar(1, dtypes.int32), structure.convert(lead, dtypes.int32))
    exponent = ew.sub(ew.select_n(subnormal, place, lifted), family.scalar(bias, dtypes.int32))
    mask = family.scalar((1 << fraction) - 1, unsigned)
    low = ew.select_n(subnormal, low, ew.and_(ew.shift_left(low, lead), mask))
    sign = ew.and_(bits, family.scalar(1 << (width - 1), unsigned))
    made = ew.or_(ew.or_(sign, low), family.scalar(bias << fraction, unsigned))
    mantissa = structure.bitcast_convert_type(made, new_dtype=dtype)
    magnitude = ew.and_(bits, family.scalar((1 << (width - 1)) - 1, unsigned))
    special = ew.or_(
        ew.eq(magnitude, family.scalar(0, unsigned)), ew.ge(magnitude, family.scalar(exponents << fraction, unsigned))
    )
    return ew.select_n(special, mantissa, x), ew.select_n(special, exponent, family.scalar(0, dtypes.int32))


def _shifted(x: Any, by: int) -> Any:
    return ew.shift_right_logical(x, family.like(x, by))


@program()
def spacing(x: Any, /) -> Any:
    """Distance from `x` to the next number away from 0, with the sign of `x`; NaN where `x` is infinite.

    >>> from morphax import numpy as jnp
    >>> jnp.spacing(1.0).item() == 2.0**-23
    True
    """
    x = _real_float("spacing", x)
    dtype = typeof(x).dtype
    limits = dtypes.finfo(dtype)
    fraction, width = int(limits.nmant), dtypes.itemsize_bits(dtype)
    unsigned = _unsigned(dtype)
    bits = structure.bitcast_convert_type(x, new_dtype=unsigned)
    sign = ew.and_(bits, family.scalar(1 << (width - 1), unsigned))
    field = _shifted(ew.and_(bits, family.scalar((1 << (width - 1)) - 1, unsigned)), fraction)
    # One unit in the last place has the exponent of x less `fraction`; below the least exponent it is a subnormal bit.
    # On bits throughout: processors that flush subnormal numbers would make it 0.
    normal = ew.shift_left(ew.sub(field, family.scalar(fraction, unsigned)), family.scalar(fraction, unsigned))
    floor = ew.max(field, family.scalar(1, unsigned))
    tiny = ew.shift_left(family.like(field, 1), ew.sub(floor, family.scalar(1, unsigned)))
    unit = ew.select_n(ew.gt(field, family.scalar(fraction, unsigned)), tiny, normal)
    out = structure.bitcast_convert_type(ew.or_(unit, sign), new_dtype=dtype)
    return ew.select_n(ufuncs._is_finite(x), family.like(x, np.nan), out)


# ---- packed bits -----------------------------------------------------------------------------------------------------


def _bit_order(name: str, bitorder: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder must be 'big' or 'little'; it is {bitorder!r}.")
    places = np.arange(8, dtype=np.uint8)
    return places[::-1].copy() if bitorder == "big" else places


@program("axis", "bitorder")
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Eight entries along an axis as the bits of a uint8: 1 where they are not 0; missing ones are 0.

    >>> from morphax import numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 1])).tolist()
    [160]
    """
    a = promotion.array("packbits", a)
    dtype = typeof(a).dtype
    if not (dtypes.is_integer(dtype) or dtype == np.bool_):
        raise TypeError(f"packbits: a must be integers or bools; it is {typeof(a)}. Compare it with 0 first.")
    order = _bit_order("packbits", bitorder)
    if axis is None:
        a, axis = structure.reshape_to(a, (typeof(a).size,)), 0
    axis = promotion.axis_of("packbits", axis, typeof(a).ndim)
    a = structure.move_axis(a, axis, -1)
    *rest, n = typeof(a).shape
    last = len(rest)
    bits = structure.convert(ew.ne(a, family.like(a, 0)), dtypes.uint8)
    bits = structure.pad(bits, np.uint8(0), padding_config=((0, 0, 0),) * last + ((0, -n % 8, 0),))
    bits = structure.reshape_to(bits, (*rest, -(-n // 8), 8))
    places = ew.broadcast_in_dim(order, shape=typeof(bits).shape, broadcast_dimensions=(last + 1,), sharding=None)
    out = reductions.sum(ew.shift_left(bits, places), axis=-1, dtype=np.uint8)
    return structure.move_axis(out, -1, axis)


@program("axis", "count", "bitorder")
def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """The bits of uint8 along an axis, as zeros and ones.

    Args:
        a: uint8 array.
        axis: axis, or None for the flat array.
        count: number of bits to give, filled with zeros; a negative number cuts off as many.
        bitorder: "big" puts the highest bit first, "little" the lowest.

    >>> from morphax import numpy as jnp
    >>> jnp.unpackbits(jnp.array([5], "uint8")).tolist()
    [0, 0, 0, 0, 0, 1, 0, 1]
    """
    a = promotion.array("unpackbits", a)
    if typeof(a).dtype != np.uint8:
        raise TypeError(f"unpackbits: a must be of dtype uint8; it is {typeof(a)}. Convert it first.")
    order = _bit_order("unpackbits", bitorder)
    if axis is None:
        a, axis = structure.reshape_to(a, (typeof(a).size,)), 0
    axis = promotion.axis_of("unpackbits", axis, typeof(a).ndim)
    a = structure.move_axis(a, axis, -1)
    *rest, n = typeof(a).shape
    last = len(rest)
    shape = (*rest, n, 8)
    spread = ew.broadcast_in_dim(a, shape=shape, broadcast_dimensions=tuple(range(last + 1)), sharding=None)
    places = ew.broadcast_in_dim(order, shape=shape, broadcast_dimensions=(last + 1,), sharding=None)
    bits = ew.and_(ew.shift_right_logical(spread, places), np.uint8(1))
    bits = structure.reshape_to(bits, (*rest, 8 * n))
    if count is not None:
        count = operator.index(count)
        high = count - 8 * n if count >= 0 else max(count, -8 * n)
        bits = structure.pad(bits, np.uint8(0), padding_config=((0, 0, 0),) * last + ((0, high, 0),))
    return structure.move_axis(bits, -1, axis)


# ---- neighbours ------------------------------------------------------------------------------------------------------


@program("discont", "axis", "period")
def unwrap(p: Any, discont: float | None = None, axis: int = -1, period: float = 2 * np.pi) -> Any:
    """`p` with multiples of the period added wherever it jumps by more than half of it.

    Args:
        p: real array; angles in radians by default.
        discont: smaller jumps stay; half the period by default, and at least.
        axis: axis to go along.
        period: the period.

    >>> from morphax import numpy as jnp
    >>> jnp.unwrap(jnp.array([0, 3, 7, 9]), period=6).tolist()
    [0, 3, 1, 3]
    """
    p = promotion.array("unwrap", p)
    dtype, _ = dtypes.promote(typeof(p).dtype, typeof(p).weak_type, *dtypes.dtype_and_weak(period))
    if dtypes.is_complex(dtype):
        raise ValueError("unwrap: does not accept complex numbers. Use angle first.")
    p = structure.convert(promotion.numeric("unwrap", p), dtype)
    axis = promotion.axis_of("unwrap", axis, typeof(p).ndim)
    n = typeof(p).shape[axis]
    if n < 2:
        return p
    dtype = typeof(p).dtype
    step = ew.sub(structure.slice_axis(p, 1, n, axis), structure.slice_axis(p, 0, n - 1, axis))
    half, odd = divmod(period, 2) if dtypes.is_integer(dtype) else (period / 2, 0)
    high, low = family.scalar(half, dtype), family.scalar(-half, dtype)
    inside = ew.add(ufuncs.remainder(ew.sub(step, low), family.scalar(period, dtype)), low)
    if not odd:  # both ends of the interval are meant: the one with the sign of the step
        upper = ew.and_(ew.eq(inside, low), ew.gt(step, family.like(step, 0)))
        inside = ew.select_n(upper, inside, high)
    small = ufuncs.less(ew.abs(step), period / 2 if discont is None else discont)
    correction = ew.select_n(small, ew.sub(inside, step), family.like(step, 0))
    total = reductions.cumsum(correction, axis=axis)
    first = structure.slice_axis(p, 0, 1, axis)
    rest = ew.add(structure.slice_axis(p, 1, n, axis), structure.convert(total, dtype))
    return structure.concatenate(first, rest, dimension=axis)
