"""Sums, products, extremes, means and running totals along axes."""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import promotion, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, reduce, structure
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type
Axis = Any  # None, an int, or a tuple of ints

# ---- what all share --------------------------------------------------------------------------------------------------


def kept(x: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """A reduction's result with the reduced axes of `shape` put back as axes of size 1."""
    if not keepdims or not axes:
        return x
    sizes = tuple([1 if d in axes else s for d, s in enumerate(shape)])
    return ew.broadcast(x, sizes, tuple(sorted(axes)))


def _masked(name: str, a: Any, where: Any, fill: Any) -> Any:
    """`a`, broadcast against the mask, with `fill` where the mask does not hold."""
    if where is None:
        return a
    mask = promotion.array(name, where)
    if typeof(mask).dtype != np.bool_:
        raise ValueError(
            f"{name}: where must have dtype bool; it has {typeof(mask).dtype.name}. Compare, or convert it."
        )
    shape = promotion.common_shape(name, [typeof(v).shape for v in (mask, a)])
    mask, a = promotion.spread(mask, shape), promotion.spread(a, shape)
    return ew.select_n(mask, family.like(a, fill), a)


def _is_half(dtype: Any) -> bool:
    return dtypes.is_float(dtype) and dtypes.itemsize_bits(dtype) < 32


def _reduced(
    name: str, prim: Any, combine: Any, fill: Any, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any
) -> Any:
    """`a` reduced by `prim`; `fill` maps a dtype to the identity, `combine` takes in `initial`."""
    a = _masked(name, a, where, None if where is None else fill(typeof(a).dtype))
    shape = typeof(a).shape
    axes = promotion.axes_of(name, axis, len(shape))
    out = prim(a, axes=axes) if axes else a
    if initial is not None:
        initial_shape = promotion.described(name, initial)[2]
        if initial_shape:
            raise ValueError(f"{name}: initial must be a scalar; it has shape {initial_shape}.")
        out = combine(out, promotion.as_dtype(initial, typeof(out).dtype))
    return kept(out, shape, axes, keepdims)


def _sum_dtype(name: str, a: Any, dtype: Any, promote_integers: bool) -> Any:
    """dtype of a sum or product: integers narrower than the default become the default of their sign."""
    if dtype is not None:
        return dtypes.named_dtype(dtype)
    found = typeof(a).dtype
    if not promote_integers or not (dtypes.is_integer(found) or found == np.bool_):
        return found
    default = dtypes.default_uint_dtype() if dtypes.is_unsigned(found) else dtypes.default_int_dtype()
    return default if found == np.bool_ or dtypes.itemsize_bits(found) < dtypes.itemsize_bits(default) else found


def _summed(
    name: str, prim: Any, combine: Any, unit: int, a: Any, axis: Axis, dtype: Any, keepdims: bool, initial: Any,
    where: Any, promote_integers: bool,
) -> Any:  # fmt: skip
    a = promotion.array(name, a)
    dtype = _sum_dtype(name, a, dtype, promote_integers)
    # Half-precision sums are carried in float32: rounding at each step would leave few digits.
    computing = dtypes.float32 if _is_half(dtype) else dtype
    a = a if typeof(a).dtype == computing else structure.convert(a, computing, typeof(a).weak_type)
    out = _reduced(name, prim, combine, lambda _: unit, a, axis, keepdims, initial, where)
    return out if computing == dtype else structure.convert(out, dtype)


# ---- sums and products -----------------------------------------------------------------------------------------------


@program("axis", "dtype", "keepdims", "promote_integers")
def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """Sum over axes, all of them by default.

    Args:
        a: array; bools and small integers are summed as int32 or uint32, half-precision floats in float32.
        axis: None, an int or a tuple of ints.
        dtype: dtype of the result.
        out: not supported.
        keepdims: keep the reduced axes, with size 1.
        initial: scalar that is added.
        where: bools, broadcast against `a`: what to include.
        promote_integers: whether small integers are widened.

    >>> from morphax import numpy as jnp
    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    ufuncs.no_out("sum", out)
    return _summed("sum", ew.reduce_sum, ew.add, 0, a, axis, dtype, keepdims, initial, where, promote_integers)


@program("axis", "dtype", "keepdims", "promote_integers")
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """Product over axes, all of them by default; arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.prod(jnp.array([2, 3, 4])).item()
    24
    """
    ufuncs.no_out("prod", out)
    return _summed("prod", reduce.reduce_prod, ew.mul, 1, a, axis, dtype, keepdims, initial, where, promote_integers)


@program("axis", "keepdims")
def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Number of entries that are not 0.

    >>> from morphax import numpy as jnp
    >>> jnp.count_nonzero(jnp.array([0, 2, 3])).item()
    2
    """
    return sum(ufuncs.truth("count_nonzero", a), axis=axis, dtype=dtypes.default_int_dtype(), keepdims=keepdims)


# ---- extremes --------------------------------------------------------------------------------------------------------


def _extreme(name: str, prim: Any, combine: Any, limit: int) -> Callable[..., Any]:
    def reduced(a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Any:
        a = promotion.array(name, a)
        shape = typeof(a).shape
        axes = promotion.axes_of(name, axis, len(shape))
        if initial is None:
            if where is not None:
                raise ValueError(f"{name}: where needs initial, since the {name} of nothing is not defined. Give it.")
            if 0 in [shape[d] for d in axes]:
                raise ValueError(
                    f"{name}: zero-size array to reduction operation {name} which has no identity; the shape is "
                    f"{shape}. Give initial, or check the size first."
                )
        dtype = typeof(a).dtype
        if dtypes.is_complex(dtype):
            return _complex_extreme(name, limit == 0, a, axes, keepdims, initial, where)
        return _reduced(
            name, prim, combine, lambda d: dtypes.scalar_limits(d)[limit], a, axes, keepdims, initial, where
        )

    return reduced


def _complex_extreme(name: str, greatest: bool, a: Any, axes: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """Extreme in the order of real parts, then imaginary parts: over one axis after another, by halving."""
    if where is not None:
        a = _masked(name, a, where, -np.inf if greatest else np.inf)
    shape = typeof(a).shape
    combine = ew.max if greatest else ew.min
    out = a
    for axis in sorted(axes, reverse=True):
        size = typeof(out).shape[axis]
        if not size:
            raise ValueError(f"{name}: complex arrays without entries, of shape {shape}, are not supported.")
        while size > 1:
            half = size // 2
            low = structure.slice_axis(out, 0, half, axis)
            high = structure.slice_axis(out, half, 2 * half, axis)
            joined = combine(low, high)
            rest = [structure.slice_axis(out, 2 * half, size, axis)] if size % 2 else []
            out = structure.concatenate(joined, *rest, dimension=axis) if rest else joined
            size = half + size % 2
        out = structure.squeeze(out, dimensions=(axis,))
    if initial is not None:
        out = combine(out, promotion.as_dtype(initial, typeof(out).dtype))
    return kept(out, shape, axes, keepdims)


_max = _extreme("max", reduce.reduce_max, ew.max, 0)
_min = _extreme("min", reduce.reduce_min, ew.min, 1)


@program("axis", "keepdims")
def max(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Greatest entry over axes, all of them by default; NaN if there is one. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.max(jnp.array([3, 9, 5])).item()
    9
    """
    ufuncs.no_out("max", out)
    return _max(a, axis, keepdims, initial, where)


@program("axis", "keepdims")
def min(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Least entry over axes, all of them by default; NaN if there is one. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.min(jnp.array([3, 9, 5])).item()
    3
    """
    ufuncs.no_out("min", out)
    return _min(a, axis, keepdims, initial, where)


@program("axis", "keepdims")
def amax(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """As `max`.

    >>> from morphax import numpy as jnp
    >>> jnp.amax(jnp.array([3, 9])).item()
    9
    """
    return max(a, axis, out, keepdims, initial, where)


@program("axis", "keepdims")
def amin(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """As `min`.

    >>> from morphax import numpy as jnp
    >>> jnp.amin(jnp.array([3, 9])).item()
    3
    """
    return min(a, axis, out, keepdims, initial, where)


@program("axis", "keepdims")
def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """Greatest entry minus the least, over axes.

    >>> from morphax import numpy as jnp
    >>> jnp.ptp(jnp.array([3, 9, 5])).item()
    6
    """
    ufuncs.no_out("ptp", out)
    return ew.sub(max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


def _position(name: str, prim: Any, a: Any, axis: Axis, keepdims: bool | None) -> Any:
    a = promotion.array(name, a)
    shape = typeof(a).shape
    if axis is None:
        a = structure.reshape_to(a, (typeof(a).size,))
        place = 0
    else:
        place = promotion.axis_of(name, axis, len(shape))
    if not typeof(a).shape[place]:
        raise ValueError(
            f"{name}: attempt to get {name} of an empty sequence: the shape is {shape}. Check the size first."
        )
    out = prim(a, axes=(place,), index_dtype=dtypes.default_int_dtype())
    if not keepdims:
        return out
    return structure.reshape_to(out, tuple([1 if axis is None or d == place else s for d, s in enumerate(shape)]))


@program("axis", "keepdims")
def argmax(a: Any, axis: Axis = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the greatest entry along an axis, or in the flat array; the first of several, or of NaNs.

    >>> from morphax import numpy as jnp
    >>> jnp.argmax(jnp.array([3, 9, 5])).item()
    1
    """
    ufuncs.no_out("argmax", out)
    return _position("argmax", reduce.argmax, a, axis, keepdims)


@program("axis", "keepdims")
def argmin(a: Any, axis: Axis = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the least entry along an axis, or in the flat array; the first of several, or of NaNs.

    >>> from morphax import numpy as jnp
    >>> jnp.argmin(jnp.array([3, 9, 5])).item()
    0
    """
    ufuncs.no_out("argmin", out)
    return _position("argmin", reduce.argmin, a, axis, keepdims)


# ---- truth -----------------------------------------------------------------------------------------------------------


@program("axis", "keepdims")
def all(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether no entry is 0, over axes.

    >>> from morphax import numpy as jnp
    >>> jnp.all(jnp.array([1, 0])).item()
    False
    """
    ufuncs.no_out("all", out)
    flags = ufuncs.truth("all", a)
    return _reduced("all", reduce.reduce_and, ew.and_, lambda _: True, flags, axis, keepdims, None, where)


@program("axis", "keepdims")
def any(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether an entry is not 0, over axes.

    >>> from morphax import numpy as jnp
    >>> jnp.any(jnp.array([1, 0])).item()
    True
    """
    ufuncs.no_out("any", out)
    flags = ufuncs.truth("any", a)
    return _reduced("any", reduce.reduce_or, ew.or_, lambda _: False, flags, axis, keepdims, None, where)


# ---- means -----------------------------------------------------------------------------------------------------------


def _count(name: str, a: Any, axes: tuple[int, ...], where: Any, dtype: Any, keepdims: bool) -> Any:
    """How many entries are averaged: a literal, or an array where there is a mask."""
    shape = typeof(a).shape
    if where is None:
        return family.scalar(int(np.prod([shape[d] for d in axes], dtype=np.int64)), dtype)
    shape = promotion.common_shape(name, [shape, promotion.described(name, where)[2]])
    mask = promotion.spread(promotion.array(name, where), shape)
    return sum(mask, axis=axes, dtype=dtype, keepdims=keepdims)


def _mean_dtypes(name: str, a: Any, dtype: Any) -> tuple[Any, Any]:
    """dtype of a mean, and the one that it is computed in."""
    found = promotion._inexact_dtype(name, typeof(a).dtype)
    if dtype is not None:
        found = dtypes.named_dtype(dtype)
    computing = dtypes.float32 if _is_half(found) else found
    return found, dtypes.to_inexact(computing)


@program("axis", "dtype", "keepdims")
def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """Arithmetic mean over axes, all of them by default; integers are averaged as floats. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=1).tolist()
    [1.5, 3.5]
    """
    ufuncs.no_out("mean", out)
    a = promotion.array("mean", a)
    dtype, computing = _mean_dtypes("mean", a, dtype)
    axes = promotion.axes_of("mean", axis, typeof(a).ndim)
    total = sum(structure.convert(a, computing, typeof(a).weak_type), axis=axes, keepdims=keepdims, where=where)
    count = _count("mean", a, axes, where, computing, keepdims)
    return structure.convert(ew.div(total, count), dtype, typeof(total).weak_type)


def _variance(
    name: str, a: Any, axis: Axis, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean_given: Any, correction: Any
) -> Any:
    """Variance in the dtype of the result, and in the one that it was computed in."""
    if correction is not None:
        if ddof:
            raise ValueError(f"{name}: ddof={ddof} and correction={correction} are one thing; give one of them.")
        ddof = correction
    a = promotion.array(name, a)
    dtype, computing = _mean_dtypes(name, a, dtype)
    if dtypes.is_complex(typeof(a).dtype) and not dtypes.is_complex(computing):
        computing = dtypes.to_complex(computing)
    axes = promotion.axes_of(name, axis, typeof(a).ndim)
    a = structure.convert(a, computing, typeof(a).weak_type)
    if mean_given is None:
        mean_given = mean(a, axis=axes, keepdims=True, where=where)
    centered = ufuncs.subtract.plain(a, promotion.as_dtype(mean_given, computing))
    if dtypes.is_complex(computing):
        squares = ew.add(ew.square(ew.real(centered)), ew.square(ew.imag(centered)))
    else:
        squares = ew.square(centered)
    real = dtypes.to_real(computing)
    total = sum(squares, axis=axes, keepdims=keepdims, where=where)
    count = _count(name, a, axes, where, real, keepdims)
    if ddof:
        count = (
            ew.sub(count, family.scalar(ddof, real)) if where is not None else family.scalar(float(count) - ddof, real)
        )
        count = np.maximum(count, 0) if where is None else ew.max(count, family.scalar(0, real))
    return ew.div(total, count), dtypes.to_real(dtype)


@program("axis", "dtype", "ddof", "keepdims", "correction")
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Variance over axes: the mean square distance from the mean, with `ddof` taken off the count.

    >>> from morphax import numpy as jnp
    >>> jnp.var(jnp.array([1.0, 3.0]), ddof=1).item()
    2.0
    """
    ufuncs.no_out("var", out)
    found, dtype = _variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return structure.convert(found, dtype, typeof(found).weak_type)


@program("axis", "dtype", "ddof", "keepdims", "correction")
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """Standard deviation over axes: the square root of `var`.

    >>> from morphax import numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0])).item()
    1.0
    """
    ufuncs.no_out("std", out)
    found, dtype = _variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction)
    return structure.convert(ew.sqrt(found), dtype, typeof(found).weak_type)


@program("axis", "returned", "keepdims")
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Weighted mean over axes, and the sum of the weights if `returned`.

    >>> from morphax import numpy as jnp
    >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3.0, 1.0])).item()
    1.5
    """
    a = promotion.inexact("average", a)
    shape = typeof(a).shape
    if weights is None:
        out = mean(a, axis=axis, keepdims=keepdims)
        if not returned:
            return out
        axes = promotion.axes_of("average", axis, len(shape))
        count = family.like(out, int(np.prod([shape[d] for d in axes], dtype=np.int64)))
        return out, ew.broadcast_in_dim(
            np.asarray(count), shape=typeof(out).shape, broadcast_dimensions=(), sharding=None
        )
    weights = _weights_along(promotion.array("average", weights), shape, axis)
    a, weights = promotion.operands("average", (a, weights), inexact=True)
    weights = promotion.spread(weights, shape)
    total = sum(weights, axis=axis, keepdims=keepdims)
    out = ew.div(sum(ew.mul(a, weights), axis=axis, keepdims=keepdims), total)
    return (out, total) if returned else out


def _weights_along(weights: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    found = typeof(weights).shape
    if found == shape:
        return weights
    axes = promotion.axes_of("average", axis, len(shape))
    if axis is None or found != tuple([shape[d] for d in axes]):
        raise ValueError(
            f"average: weights of shape {found} fit neither the shape {shape} nor the axes {axes}. Give weights of the "
            "array's shape, or one for each entry along `axis`."
        )
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    if order != list(range(len(axes))):
        weights = structure.transpose(weights, permutation=tuple(order))
    sizes = tuple([s if d in axes else 1 for d, s in enumerate(shape)])
    return structure.reshape_to(weights, sizes)


# ---- running totals --------------------------------------------------------------------------------------------------


def _running(name: str, prim: Any, a: Any, axis: Axis, dtype: Any, out: None) -> Any:
    ufuncs.no_out(name, out)
    a = promotion.array(name, a)
    dtype = _sum_dtype(name, a, dtype, True) if dtype is not None or typeof(a).dtype == np.bool_ else typeof(a).dtype
    if axis is None:
        a, axis = structure.reshape_to(a, (typeof(a).size,)), 0
    axis = promotion.axis_of(name, axis, typeof(a).ndim)
    a = a if typeof(a).dtype == dtype else structure.convert(a, dtype)
    if _is_half(dtype):
        return structure.convert(prim(structure.convert(a, dtypes.float32), axis=axis, reverse=False), dtype)
    return prim(a, axis=axis, reverse=False)


@program("axis", "dtype")
def cumsum(a: Any, axis: Axis = None, dtype: Any = None, out: None = None) -> Any:
    """Running sums along an axis, or over the flat array.

    >>> from morphax import numpy as jnp
    >>> jnp.cumsum(jnp.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _running("cumsum", reduce.cumsum, a, axis, dtype, out)


@program("axis", "dtype")
def cumprod(a: Any, axis: Axis = None, dtype: Any = None, out: None = None) -> Any:
    """Running products along an axis, or over the flat array.

    >>> from morphax import numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _running("cumprod", reduce.cumprod, a, axis, dtype, out)


def _cumulative(name: str, prim: Any, unit: int, x: Any, axis: Axis, dtype: Any, include_initial: bool) -> Any:
    x = promotion.array(name, x)
    ndim = typeof(x).ndim
    if not ndim:
        raise ValueError(f"{name}: needs at least one axis; the array is a scalar. Use x[None].")
    if axis is None and ndim > 1:
        raise ValueError(f"{name}: give axis for an array of {ndim} axes.")
    axis = promotion.axis_of(name, 0 if axis is None else axis, ndim)
    out = _running(name, prim, x, axis, _sum_dtype(name, x, dtype, True), None)
    if not include_initial:
        return out
    config = [(0, 0, 0)] * ndim
    config[axis] = (1, 0, 0)
    return structure.pad(out, family.like(out, unit), padding_config=tuple(config))


@program("axis", "dtype", "include_initial")
def cumulative_sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running sums along an axis, with a leading 0 if `include_initial`.

    >>> from morphax import numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2]), include_initial=True).tolist()
    [0, 1, 3]
    """
    return _cumulative("cumulative_sum", reduce.cumsum, 0, x, axis, dtype, include_initial)


@program("axis", "dtype", "include_initial")
def cumulative_prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Running products along an axis, with a leading 1 if `include_initial`.

    >>> from morphax import numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([1, 2]), include_initial=True).tolist()
    [1, 1, 2]
    """
    return _cumulative("cumulative_prod", reduce.cumprod, 1, x, axis, dtype, include_initial)


# ---- without NaNs ----------------------------------------------------------------------------------------------------


def _filled(name: str, a: Any, value: Any) -> tuple[Any, Any]:
    """`a` with NaNs replaced, and where they were."""
    a = promotion.array(name, a)
    nan = ufuncs._is_nan(a)
    return (ew.select_n(nan, a, family.like(a, value)) if dtypes.is_inexact(typeof(a).dtype) else a), nan


@program("axis", "dtype", "keepdims")
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Sum of the entries that are not NaN. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.nansum(jnp.array([1.0, jnp.nan])).item()
    1.0
    """
    ufuncs.no_out("nansum", out)
    return sum(_filled("nansum", a, 0)[0], axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


@program("axis", "dtype", "keepdims")
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Product of the entries that are not NaN. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.nanprod(jnp.array([2.0, jnp.nan])).item()
    2.0
    """
    ufuncs.no_out("nanprod", out)
    return prod(_filled("nanprod", a, 1)[0], axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)


def _nan_extreme(
    name: str, extreme: Any, fill: float, a: Any, axis: Axis, keepdims: bool, initial: Any, where: Any
) -> Any:
    filled, nan = _filled(name, a, fill)
    out = extreme(filled, axis=axis, keepdims=keepdims, initial=initial, where=where)
    if not dtypes.is_inexact(typeof(out).dtype) or initial is not None:
        return out
    return ew.select_n(all(nan, axis=axis, keepdims=keepdims), out, family.like(out, np.nan))


@program("axis", "keepdims")
def nanmax(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Greatest entry that is not NaN; NaN where there is none. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.nanmax(jnp.array([1.0, jnp.nan])).item()
    1.0
    """
    ufuncs.no_out("nanmax", out)
    return _nan_extreme("nanmax", max, -np.inf, a, axis, keepdims, initial, where)


@program("axis", "keepdims")
def nanmin(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Least entry that is not NaN; NaN where there is none. Arguments as in `sum`.

    >>> from morphax import numpy as jnp
    >>> jnp.nanmin(jnp.array([1.0, jnp.nan])).item()
    1.0
    """
    ufuncs.no_out("nanmin", out)
    return _nan_extreme("nanmin", min, np.inf, a, axis, keepdims, initial, where)


@program("axis", "dtype", "keepdims")
def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """Mean of the entries that are not NaN. Arguments as in `mean`.

    >>> from morphax import numpy as jnp
    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0])).item()
    2.0
    """
    ufuncs.no_out("nanmean", out)
    a, use = _numbers_only("nanmean", a, where)
    return mean(a, axis=axis, dtype=dtype, keepdims=keepdims, where=use)


def _numbers_only(name: str, a: Any, where: Any) -> tuple[Any, Any]:
    a = promotion.array(name, a)
    if not dtypes.is_inexact(typeof(a).dtype):
        return a, where
    use = ew.eq(a, a)
    filled = ew.select_n(use, family.like(a, 0), a)
    return filled, use if where is None else ufuncs.logical_and.plain(use, where)


@program("axis", "dtype", "ddof", "keepdims")
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """Variance of the entries that are not NaN. Arguments as in `var`.

    >>> from morphax import numpy as jnp
    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0])).item()
    1.0
    """
    ufuncs.no_out("nanvar", out)
    a, use = _numbers_only("nanvar", a, where)
    return var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=use, mean=mean)


@program("axis", "dtype", "ddof", "keepdims")
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """Standard deviation of the entries that are not NaN. Arguments as in `std`.

    >>> from morphax import numpy as jnp
    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0])).item()
    1.0
    """
    ufuncs.no_out("nanstd", out)
    a, use = _numbers_only("nanstd", a, where)
    return std(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=use, mean=mean)


@program("axis", "dtype")
def nancumsum(a: Any, axis: Axis = None, dtype: Any = None, out: None = None) -> Any:
    """Running sums that pass over NaNs.

    >>> from morphax import numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0])).tolist()
    [1.0, 1.0, 4.0]
    """
    return cumsum(_filled("nancumsum", a, 0)[0], axis, dtype, out)


@program("axis", "dtype")
def nancumprod(a: Any, axis: Axis = None, dtype: Any = None, out: None = None) -> Any:
    """Running products that pass over NaNs.

    >>> from morphax import numpy as jnp
    >>> jnp.nancumprod(jnp.array([1.0, jnp.nan, 3.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return cumprod(_filled("nancumprod", a, 1)[0], axis, dtype, out)


def _nan_position(name: str, position: Any, fill: float, a: Any, axis: Axis, keepdims: bool | None) -> Any:
    filled, nan = _filled(name, a, fill)
    out = position(filled, axis=axis, keepdims=keepdims)
    none = all(nan, axis=axis, keepdims=builtins.bool(keepdims))
    return ew.select_n(none, out, family.like(out, -1))


@program("axis", "keepdims")
def nanargmax(a: Any, axis: Axis = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the greatest entry that is not NaN; -1 where there is none.

    >>> from morphax import numpy as jnp
    >>> jnp.nanargmax(jnp.array([jnp.nan, 2.0, 3.0])).item()
    2
    """
    ufuncs.no_out("nanargmax", out)
    return _nan_position("nanargmax", argmax, -np.inf, a, axis, keepdims)


@program("axis", "keepdims")
def nanargmin(a: Any, axis: Axis = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the least entry that is not NaN; -1 where there is none.

    >>> from morphax import numpy as jnp
    >>> jnp.nanargmin(jnp.array([jnp.nan, 2.0, 3.0])).item()
    1
    """
    ufuncs.no_out("nanargmin", out)
    return _nan_position("nanargmin", argmin, np.inf, a, axis, keepdims)
