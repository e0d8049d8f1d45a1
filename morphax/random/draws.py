"""The draws that all others are made of: bits, uniform and normal numbers, integers."""

import math
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.numpy import promotion
from morphax.ops import elementwise as ew
from morphax.ops import family, random_bits, special, structure
from morphax.random.keys import sampler
from morphax.runtime import array, backend
from morphax.support import dtypes

_OUTSIDE = base()

# ---- arguments -------------------------------------------------------------------------------------------------------


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple, its entries unchecked: `checked_shape` sees them when the program is traced."""
    if shape.__class__ is tuple:
        return shape
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(shape)


def checked_shape(name: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape as Python ints.

    Raises:
        TypeError: an entry is no integer.
        ValueError: an entry is negative.
    """
    try:
        sizes = tuple([s.__index__() for s in shape])
    except AttributeError:
        raise TypeError(f"{name}: shapes are sequences of integers, got {shape}. Convert them: int(size).") from None
    if any(s < 0 for s in sizes):
        raise ValueError(f"{name}: sizes must not be negative; the shape is {shape}.")
    return sizes


def float_dtype(name: str, dtype: Any, kinds: str = "f") -> np.dtype:
    """The dtype argument of a sampler of floats, the default float for None.

    Raises:
        ValueError: it is no float dtype.
    """
    named = dtypes.named_dtype(dtype)
    if dtypes.kind(named) not in kinds:
        what = "a float or complex dtype" if "c" in kinds else "a float dtype"
        raise ValueError(f"dtype argument to `{name}` must be {what}, got {named}. Convert the result instead.")
    return named  # type: ignore[return-value] - extended dtypes are of kind k


def int_dtype(name: str, dtype: Any) -> np.dtype:
    """The dtype argument of a sampler of integers, the default int for None.

    Raises:
        ValueError: it is no integer dtype.
    """
    named = dtypes.default_int_dtype() if dtype is None else dtypes.named_dtype(dtype)
    if not dtypes.is_integer(named):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {named}. Convert the result instead.")
    return named  # type: ignore[return-value] - extended dtypes are no integers


def unplaced(name: str, out_sharding: Any) -> None:
    """Refuse a sharding of the result."""
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported yet. Put the result with device_put.")


def common_shape(name: str, shape: tuple[Any, ...] | None, *operands: Any) -> tuple[int, ...]:
    """The shape of the result: `shape`, to which the operands must broadcast, or theirs for None."""
    own = promotion.common_shape(name, [family.typeof(x).shape for x in operands])
    if shape is None:
        return own
    sizes = checked_shape(name, shape)
    if promotion.common_shape(name, (sizes, own)) != sizes:
        raise ValueError(f"{name}: parameters of shape {own} do not broadcast to the requested shape {sizes}.")
    return sizes


def parameter(name: str, x: Any, dtype: Any) -> Any:
    """A parameter of a distribution as an operand of that dtype."""
    return promotion.as_dtype(promotion.checked(name, x), dtype)


def filled(x: Any, shape: tuple[int, ...]) -> Any:
    """An operand as it meets arrays of `shape`: scalars as they are, others broadcast."""
    return promotion.spread(x, shape) if family.typeof(x).shape else x


# ---- bits ------------------------------------------------------------------------------------------------------------


@sampler("shape", "dtype", exact=False)
def _bits(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    width = dtypes.itemsize_bits(dtype)
    return random_bits.random_bits(key, bit_width=width, shape=checked_shape("bits", shape))


def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform random bits.

    Args:
        key: a random key.
        shape: of the result.
        dtype: uint8, uint16, uint32 or uint64; the default unsigned integer for None.

    Raises:
        ValueError: `dtype` is not unsigned.

    >>> from morphax import random
    >>> random.bits(random.key(0), (3,), "uint8").dtype.name
    'uint8'
    """
    unplaced("bits", out_sharding)
    named = dtypes.default_uint_dtype() if dtype is None else dtypes.named_dtype(dtype)
    if not dtypes.is_unsigned(named) or dtypes.itemsize_bits(named) < 8:
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {named}. Use randint for others."
        )
    return _bits("bits", key, shape=as_shape(shape), dtype=named)


# ---- uniform ---------------------------------------------------------------------------------------------------------


def unit(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform in [0, 1): random mantissas under the exponent of one, less one."""
    info = dtypes.finfo(dtype)
    width = dtypes.itemsize_bits(dtype)
    drawn_width = 8 if info.nmant < 8 else width  # short mantissas need few random bits
    word = dtypes.BY_NAME[f"uint{width}"]
    drawn = random_bits.random_bits(key, bit_width=drawn_width, shape=shape)
    drawn = ew.convert(drawn, word)
    mantissas = ew.shift_right_logical(drawn, family.scalar(drawn_width - info.nmant, word))
    one = int(np.ones((), dtype).view(word))
    floats = structure.bitcast_convert_type(ew.or_(mantissas, family.scalar(one, word)), new_dtype=dtype)
    return ew.sub(floats, family.scalar(1, dtype))


def between(key: Any, shape: tuple[int, ...], dtype: np.dtype, low: Any, high: Any) -> Any:
    """Uniform in [low, high), operands of `dtype`; rounding may give `high` itself where the interval is short."""
    floats = unit(key, shape, dtype)
    low, high = filled(low, shape), filled(high, shape)
    return ew.max(low, ew.add(ew.mul(floats, ew.sub(high, low)), low))


@sampler("shape", "dtype", exact=False)
def _unit(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return unit(key, checked_shape("uniform", shape), dtype)


@sampler("shape", "dtype")
def _uniform(key: Any, minval: Any, maxval: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    low, high = parameter("uniform", minval, dtype), parameter("uniform", maxval, dtype)
    return between(key, common_shape("uniform", shape, low, high), dtype, low, high)


def uniform(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Any:
    """Uniform random numbers in [minval, maxval).

    Args:
        key: a random key.
        shape: of the result.
        dtype: a float dtype; the default float for None.
        minval: lower end, a number or an array that broadcasts to `shape`.
        maxval: upper end, as `minval`.

    Raises:
        ValueError: another dtype, or shapes that do not broadcast.

    >>> from morphax import random
    >>> random.uniform(random.key(0), (2, 3)).shape
    (2, 3)
    """
    unplaced("uniform", out_sharding)
    named = float_dtype("uniform", dtype)
    if minval.__class__ is float and maxval.__class__ is float and minval == 0.0 and maxval == 1.0:
        return _unit("uniform", key, shape=as_shape(shape), dtype=named)
    return _uniform("uniform", key, minval, maxval, shape=as_shape(shape), dtype=named)


# ---- normal ----------------------------------------------------------------------------------------------------------


def _above_minus_one(dtype: np.dtype) -> Any:
    """The number of `dtype` next to -1 on the side of 0."""
    minus_one, zero = (np.asarray(x).astype(dtype)[()] for x in (-1.0, 0.0))
    return np.nextafter(minus_one, zero)


def keys_of(key: Any, count: int) -> list[Any]:
    """That many new keys from a key."""
    keys = random_bits.random_split(key, shape=(count,))
    return [structure.squeeze(structure.slice_axis(keys, k, k + 1, 0), dimensions=(0,)) for k in range(count)]


def standard_normal(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Normal numbers: sqrt(2) erf_inv(u), u uniform in (-1, 1)."""
    if dtypes.is_complex(dtype):
        real_dtype = dtypes.to_real(dtype)
        parts = [ew.convert(standard_normal(k, shape, real_dtype), dtype) for k in keys_of(key, 2)]
        both = ew.add(parts[0], ew.mul(family.scalar(1j, dtype), parts[1]))
        return ew.div(both, family.scalar(np.sqrt(2).astype(real_dtype), dtype))
    u = between(key, shape, dtype, _above_minus_one(dtype), family.scalar(1, dtype))
    return ew.mul(family.scalar(math.sqrt(2), dtype), special.erf_inv(u))


@sampler("shape", "dtype")
def _normal(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return standard_normal(key, checked_shape("normal", shape), dtype)


def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard normal random numbers. Complex ones have real and imaginary parts of variance 1/2.

    Args:
        key: a random key.
        shape: of the result.
        dtype: a float or complex dtype; the default float for None.

    Raises:
        ValueError: another dtype.

    >>> from morphax import random
    >>> random.normal(random.key(0), (2, 3)).shape
    (2, 3)
    """
    unplaced("normal", out_sharding)
    return _normal("normal", key, shape=as_shape(shape), dtype=float_dtype("normal", dtype, "fc"))


# ---- integers --------------------------------------------------------------------------------------------------------


def _host_bound(x: Any, low: int, high: int, dtype: np.dtype) -> tuple[Any, bool]:
    """A Python int clipped to [low, high] as a literal, and whether it was above."""
    return family.scalar(min(max(x, low), high), dtype), x > high


def _bound(x: Any, low: int, high: int, dtype: np.dtype) -> tuple[Any, Any]:
    """An integer operand clipped to [low, high], as `dtype`, and whether it was above: False where it cannot be."""
    aval = family.typeof(x)
    limits = dtypes.iinfo(aval.dtype)
    own_low, own_high = int(limits.min), int(limits.max)
    beyond: Any = False
    if own_high > high:
        beyond = ew.gt(x, family.scalar(high, aval.dtype))
        x = ew.min(x, family.scalar(high, aval.dtype))
    if own_low < low:
        x = ew.max(x, family.scalar(low, aval.dtype))
    return ew.convert(x, dtype), beyond


def integers(key: Any, shape: tuple[int, ...], low: Any, high: Any, beyond: Any, dtype: np.dtype) -> Any:
    """Integers in [low, high), operands of `dtype`; where `beyond` in [low, largest]; `low` where the range is empty.

    Two words for each integer make the remainder nearly unbiased: (a 2^n + b) mod span, with words of n bits.
    """
    width = dtypes.itemsize_bits(dtype)
    word = dtypes.BY_NAME[f"uint{width}"]
    low, high = filled(low, shape), filled(high, shape)
    first, second = keys_of(key, 2)
    upper = random_bits.random_bits(first, bit_width=width, shape=shape)
    lower = random_bits.random_bits(second, bit_width=width, shape=shape)
    span = ew.convert(ew.sub(high, low), word)
    one = family.scalar(1, word)
    span = where(ew.le(high, low), one, span)
    if beyond is not False:
        span = where(ew.and_(filled(beyond, shape), ew.gt(high, low)), ew.add(span, one), span)
    half = ew.rem(family.scalar(2 ** (width // 2), word), span)
    multiplier = ew.rem(ew.mul(half, half), span)
    offset = ew.add(ew.mul(ew.rem(upper, span), multiplier), ew.rem(lower, span))
    return ew.add(low, ew.convert(ew.rem(offset, span), dtype))


def where(flag: Any, x: Any, y: Any) -> Any:
    """`x` where the flag is set, else `y`; scalars are spread to the flag's shape."""
    shape = family.typeof(flag).shape
    if shape:
        x, y = (v if family.typeof(v).shape else ew.full(shape, v) for v in (x, y))
    return ew.select_n(flag, y, x)


@sampler("shape", "dtype", "ends", exact=False)
def _randint(key: Any, *bounds: Any, shape: tuple[int, ...], dtype: np.dtype, ends: Any) -> Any:
    shape = checked_shape("randint", shape)
    limits = dtypes.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    # Narrow integers are drawn as 32-bit ones, which hold the bound above their largest.
    work = dtype if dtypes.itemsize_bits(dtype) >= 32 else dtypes.int32
    top = high if work is dtype else high + 1
    given = iter(bounds)
    minval = next(given) if ends[0] is None else ends[0]
    maxval = next(given) if ends[1] is None else ends[1]
    found = []
    for x, highest in ((minval, high), (maxval, top)):
        if isinstance(x, int):
            found.append(_host_bound(x, low, highest, work))
            continue
        x = promotion.array("randint", x)
        aval = family.typeof(x)
        x = x if dtypes.is_integer(aval.dtype) else ew.convert(x, dtypes.default_int_dtype())
        found.append(_bound(x, low, highest, work))
    (minimum, _), (maximum, beyond) = found
    common_shape("randint", shape, minimum, maximum)
    if beyond is True:
        beyond = np.True_
    drawn = integers(key, shape, minimum, maximum, beyond if work is dtype else False, work)
    return ew.convert(drawn, dtype)


def _end(x: Any, dtype: np.dtype) -> tuple[Any, list[Any]]:
    """A bound of `randint`: as part of the program, or None and the operand. Small ints are operands, so that one
    program serves them all."""
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        value = int(x)
        limits = dtypes.iinfo(dtype)
        if not int(limits.min) <= value <= int(limits.max) or current.trace is not _OUTSIDE:
            return value, []
        if -(2**31) <= value < 2**31:
            return None, [value]
        aval = avals.ShapedArray((), dtype)
        return None, [array.put(np.asarray(value, dtype), aval, backend.default_device(), committed=False)]
    return None, [x]


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform random integers in [minval, maxval).

    Args:
        key: a random key.
        shape: of the result.
        minval: smallest, a number or an array that broadcasts to `shape`; clipped to the range of `dtype`.
        maxval: one more than the largest, as `minval`. Where it is not above `minval`, the result is `minval`.
        dtype: an integer dtype; the default int for None.

    Raises:
        TypeError: another dtype.

    >>> from morphax import random
    >>> random.randint(random.key(0), (3,), 0, 10).shape
    (3,)
    """
    unplaced("randint", out_sharding)
    named = dtypes.default_int_dtype() if dtype is None else dtypes.named_dtype(dtype)
    if not isinstance(named, np.dtype) or not dtypes.is_integer(named) or dtypes.itemsize_bits(named) < 8:
        raise TypeError(
            f"randint only accepts integer dtypes of 8 bits or more, got {named}. Convert the result instead."
        )
    low, low_operands = _end(minval, named)
    high, high_operands = _end(maxval, named)
    return _randint(
        "randint", key, *low_operands, *high_operands, shape=as_shape(shape), dtype=named, ends=(low, high)
    )  # fmt: skip
