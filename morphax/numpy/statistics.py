"""Comparisons of whole arrays, order statistics, differences, padding and what counts."""

import operator
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, indexing, promotion, reductions, shapes, sorting, ufuncs, updates
from morphax.numpy.einsum import dot  # by name: the function `einsum` hides its module
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type

# ---- equality --------------------------------------------------------------------------------------------------------


@program("equal_nan")
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol |b|.

    >>> from morphax import numpy as jnp
    >>> jnp.isclose(1.0, 1.0 + 1e-7).item()
    True
    """
    a, b = promotion.operands("isclose", (a, b))
    dtype = typeof(a).dtype
    if dtype == np.bool_:
        return ew.eq(a, b)
    if dtypes.is_integer(dtype):
        computing = dtypes.to_inexact(dtype)
        near = _near(structure.convert(a, computing), structure.convert(b, computing), rtol, atol)
        return ew.or_(ew.eq(a, b), near)
    near = ew.and_(ew.and_(ufuncs._is_finite(a), ufuncs._is_finite(b)), _near(a, b, rtol, atol))
    out = ew.or_(ew.eq(a, b), near)
    if equal_nan:
        out = ew.or_(out, ew.and_(ew.ne(a, a), ew.ne(b, b)))
    return out


def _near(a: Any, b: Any, rtol: Any, atol: Any) -> Any:
    distance, size = ew.abs(ew.sub(a, b)), ew.abs(b)
    dtype = typeof(size).dtype
    rtol, atol = promotion.as_dtype(rtol, dtype), promotion.as_dtype(atol, dtype)
    return ew.le(distance, ew.add(atol, ew.mul(rtol, size)))


@program("equal_nan")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all entries are close, as `isclose` says.

    >>> from morphax import numpy as jnp
    >>> jnp.allclose(jnp.ones(2), 1.0).item()
    True
    """
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


@program("equal_nan")
def _array_equal(a: Any, b: Any, equal_nan: bool) -> Any:
    a, b = promotion.operands("array_equal", (a, b))
    same = ew.eq(a, b)
    if equal_nan:
        same = ew.or_(same, ew.and_(ufuncs._is_nan(a), ufuncs._is_nan(b)))
    return reductions.all(same)


def _as_arrays(*xs: Any) -> list[Any]:
    return [creation.array(x) if isinstance(x, (list, tuple)) else x for x in xs]


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have the same shape and entries.

    >>> from morphax import numpy as jnp
    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2])).item()
    True
    """
    try:
        a1, a2 = _as_arrays(a1, a2)
        left, right = shapes.shape(a1), shapes.shape(a2)
    except TypeError:
        return creation.array(False)
    return _array_equal(a1, a2, equal_nan=equal_nan) if left == right else creation.array(False)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays broadcast to the same entries.

    >>> from morphax import numpy as jnp
    >>> jnp.array_equiv(jnp.array([1, 1]), 1).item()
    True
    """
    try:
        a1, a2 = _as_arrays(a1, a2)
        promotion.common_shape("array_equiv", (shapes.shape(a1), shapes.shape(a2)))
    except (TypeError, ValueError):
        return creation.array(False)
    return reductions.all(ufuncs.equal(a1, a2))


# ---- quantiles -------------------------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@program("name", "axis", "method", "keepdims", "skip_nan")
def _quantile(a: Any, q: Any, name: str, axis: Any, method: str, keepdims: bool, skip_nan: bool) -> Any:
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(_METHODS)}; it is {method!r}.")
    a, q = promotion.inexact(name, a), promotion.inexact(name, q)
    dtype, _ = dtypes.promote(typeof(a).dtype, typeof(a).weak_type, typeof(q).dtype, True)
    if dtypes.is_complex(dtype):
        raise ValueError(f"{name}: does not accept complex numbers, which have no order.")
    if typeof(q).ndim > 1:
        raise ValueError(f"{name}: q must be a scalar or have one axis; its shape is {typeof(q).shape}.")
    computing = dtypes.float32 if reductions._is_half(dtype) else dtype
    a = structure.convert(a, computing, typeof(a).weak_type)
    shape = typeof(a).shape
    axes = promotion.axes_of(name, axis, len(shape))
    rest = tuple([d for d in range(len(shape)) if d not in axes])
    a = (
        structure.transpose(a, permutation=(*axes, *rest))
        if axes != tuple(range(len(axes))) or rest != tuple(range(len(axes), len(shape)))
        else a
    )
    outer = tuple([shape[d] for d in rest])
    count = creation._size(tuple([shape[d] for d in axes]))
    a = structure.reshape_to(a, (count, *outer))
    out = _ranked(a, promotion.as_dtype(q, computing), count, outer, method, skip_nan)
    if keepdims:
        lead = typeof(q).ndim
        places = tuple([lead + d for d in sorted(axes)])
        out = structure.expand_dims(out, places)
    return out if computing == dtype else structure.convert(out, dtype)


def _ranked(a: Any, q: Any, count: int, outer: tuple[int, ...], method: str, skip_nan: bool) -> Any:
    """Quantiles over axis 0 of `a`; the axis of `q` comes first."""
    dtype = typeof(a).dtype
    lead = typeof(q).shape
    full = (*lead, *outer)
    ordered = sorting.sort(a, axis=0)
    q = ew.broadcast_in_dim(q, shape=full, broadcast_dimensions=tuple(range(len(lead))), sharding=None)
    nan = ew.ne(a, a)
    if skip_nan:
        last = ew.sub(reductions.sum(ew.not_(nan), axis=0, dtype=dtype), family.scalar(1, dtype))
        last = promotion.spread(last, full)
    else:
        last = ew.full(full, family.scalar(count - 1, dtype))
    place = ew.mul(q, last)
    low, high = ew.floor(place), ew.ceil(place)
    share = ew.sub(place, low)
    int_dtype = dtypes.default_int_dtype()
    below, above = [_rank(ordered, structure.convert(v, int_dtype), count) for v in (low, high)]
    if method == "linear":
        out = ew.add(ew.mul(below, ew.sub(family.scalar(1, dtype), share)), ew.mul(above, share))
        out = ew.select_n(ew.eq(below, above), out, below)  # infinities have no difference
    elif method == "midpoint":
        out = ew.mul(ew.add(below, above), family.scalar(0.5, dtype))
    elif method == "nearest":
        upper = ew.gt(place, ew.add(low, family.scalar(0.5, dtype)))
        odd = ew.ne(ew.rem(low, family.scalar(2, dtype)), family.scalar(0, dtype))
        tied = ew.eq(share, family.scalar(0.5, dtype))
        out = ew.select_n(ew.or_(upper, ew.and_(tied, odd)), below, above)
    else:
        out = below if method == "lower" else above
    lost = reductions.all(nan, axis=0) if skip_nan else reductions.any(nan, axis=0)
    return ew.select_n(promotion.spread(lost, full), out, family.scalar(np.nan, dtype))


def _rank(ordered: Any, place: Any, count: int) -> Any:
    place = ew.clamp(family.like(place, 0), place, family.like(place, max(count - 1, 0)))
    outer = typeof(ordered).ndim - 1
    if typeof(place).ndim == outer:
        taken = indexing.take_along_axis(ordered, structure.expand_dims(place, (0,)), axis=0)
        return structure.squeeze(taken, dimensions=(0,))
    return indexing.take_along_axis(ordered, place, axis=0)


def _check_quantile(name: str, out: Any, overwrite_input: bool, weights: Any) -> None:
    ufuncs.no_out(name, out)
    if overwrite_input:
        raise ValueError(f"{name}: overwrite_input=True is not possible, since arrays do not change. Leave it out.")
    if weights is not None:
        raise NotImplementedError(f"{name}: weights are not supported. Sort and accumulate the weights instead.")


def _axes_key(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """The values below which the shares `q` of the entries lie, over axes; NaN if there is one.

    >>> from morphax import numpy as jnp
    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), 0.5).item()
    2.0
    """
    _check_quantile("quantile", out, overwrite_input, weights)
    return _quantile(
        a, _as_arrays(q)[0], name="quantile", axis=_axes_key(axis), method=method, keepdims=keepdims, skip_nan=False
    )


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """As `quantile`, of the entries that are not NaN.

    >>> from morphax import numpy as jnp
    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5).item()
    2.0
    """
    _check_quantile("nanquantile", out, overwrite_input, weights)
    return _quantile(
        a, _as_arrays(q)[0], name="nanquantile", axis=_axes_key(axis), method=method, keepdims=keepdims, skip_nan=True
    )


def _share(q: Any) -> Any:
    return ufuncs.true_divide(_as_arrays(q)[0], 100)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    out_sharding: Any = None,
) -> Any:
    """As `quantile`, with `q` in hundredths.

    >>> from morphax import numpy as jnp
    >>> jnp.percentile(jnp.array([1.0, 2.0, 4.0]), 50).item()
    2.0
    """
    creation._no_sharding("percentile", out_sharding)
    return quantile(a, _share(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """As `percentile`, of the entries that are not NaN.

    >>> from morphax import numpy as jnp
    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50).item()
    2.0
    """
    return nanquantile(a, _share(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle entry in order, or the mean of the middle two, over axes.

    >>> from morphax import numpy as jnp
    >>> jnp.median(jnp.array([1.0, 2.0, 4.0, 8.0])).item()
    3.0
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """As `median`, of the entries that are not NaN.

    >>> from morphax import numpy as jnp
    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 3.0])).item()
    2.0
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


# ---- differences and sums --------------------------------------------------------------------------------------------


@program("n", "axis")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, taken `n` times.

    >>> from morphax import numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9])).tolist()
    [3, 5]
    """
    if n < 0:
        raise ValueError(f"diff: order must be non-negative but got {n}.")
    a = promotion.array("diff", a)
    if not typeof(a).ndim:
        raise ValueError("diff: requires input that is at least one dimensional; got a scalar.")
    if n == 0:
        return a
    axis = promotion.axis_of("diff", axis, typeof(a).ndim)
    parts = [_edge(prepend, a, axis), a, _edge(append, a, axis)]
    parts = promotion.same_dtype("diff", [p for p in parts if p is not None])
    a = structure.concatenate(*parts, dimension=axis) if len(parts) > 1 else a
    for _ in range(n):
        size = typeof(a).shape[axis]
        first = min(1, size)
        later = structure.slice_axis(a, first, size, axis)
        earlier = structure.slice_axis(a, 0, max(size - 1, 0), axis)
        a = ew.xor(later, earlier) if typeof(a).dtype == np.bool_ else ew.sub(later, earlier)
    return a


def _edge(x: Any, a: Any, axis: int) -> Any:
    if x is None:
        return None
    x = promotion.array("diff", x)
    if typeof(x).ndim:
        return x
    shape = typeof(a).shape
    return promotion.spread(x, (*shape[:axis], 1, *shape[axis + 1 :]))


@program()
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours in the flat array, between what is given for the ends.

    >>> from morphax import numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9])).tolist()
    [3, 5]
    """
    ary = promotion.array("ediff1d", ary)
    inner = diff(structure.reshape_to(ary, (typeof(ary).size,)))
    ends = [
        None if v is None else promotion.as_dtype(promotion.array("ediff1d", v), typeof(ary).dtype)
        for v in (to_begin, to_end)
    ]
    ends = [None if v is None else structure.reshape_to(v, (typeof(v).size,)) for v in ends]
    parts = [p for p in (ends[0], inner, ends[1]) if p is not None]
    return structure.concatenate(*parts, dimension=0) if len(parts) > 1 else inner


@program("axis")
def _slope(f: Any, h: Any, axis: int) -> Any:
    """Second-order differences along an axis, first-order ones at the ends; `h` is a step, or positions."""
    f = promotion.inexact("gradient", f)
    h = promotion.inexact("gradient", h)
    f, h = promotion.same_dtype("gradient", (f, h))
    n, ndim = typeof(f).shape[axis], typeof(f).ndim
    part = lambda start, stop: structure.slice_axis(f, start, stop, axis)  # noqa: E731
    steps = ew.sub(part(1, n), part(0, n - 1))
    if not typeof(h).ndim:
        inner = ew.div(ew.sub(part(2, n), part(0, n - 2)), ew.mul(h, family.like(h, 2)))
        slopes = ew.div(steps, h)
    else:
        wide = tuple([typeof(f).shape[d] if d != axis else n - 1 for d in range(ndim)])
        h = ew.broadcast_in_dim(diff(h), shape=wide, broadcast_dimensions=(axis,), sharding=None)
        slopes = ew.div(steps, h)
        # The slope of the parabola through three points: the mean of both slopes, each weighted by the other's step.
        near, far = [structure.slice_axis(slopes, k, n - 2 + k, axis) for k in (0, 1)]
        before, after = [structure.slice_axis(h, k, n - 2 + k, axis) for k in (0, 1)]
        inner = ew.div(ew.add(ew.mul(near, after), ew.mul(far, before)), ew.add(before, after))
    first, last = structure.slice_axis(slopes, 0, 1, axis), structure.slice_axis(slopes, n - 2, n - 1, axis)
    return structure.concatenate(first, inner, last, dimension=axis)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Derivatives of samples along axes, by central differences, one-sided at the ends.

    Args:
        f: samples, at least two along each of the axes.
        varargs: the step, or for each axis a step or the positions of the samples.
        axis: axis or axes, or None for all.
        edge_order: not supported.

    Returns:
        An array for one axis, a list for several.

    >>> from morphax import numpy as jnp
    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 1.5, 2.0]
    """
    if edge_order is not None:
        raise NotImplementedError("gradient: edge_order is not supported; ends are of first order. Leave it out.")
    shape = promotion.described("gradient", f)[2]
    axes = tuple(range(len(shape))) if axis is None else promotion.axes_of("gradient", axis, len(shape))
    steps = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if len(steps) != len(axes):
        raise TypeError(
            f"gradient: {len(steps)} steps were given for {len(axes)} axes. Give one, or one for each axis."
        )
    out = []
    for d, h in zip(axes, steps, strict=True):
        h = creation.asarray(h) if isinstance(h, (list, tuple)) else h
        found = shapes.shape(h)
        if shape[d] < 2:
            raise ValueError(f"gradient: axis {d} of shape {shape} has fewer than 2 samples, which give no slope.")
        if found and found != (shape[d],):
            raise ValueError(f"gradient: positions along axis {d} must have shape ({shape[d]},); they have {found}.")
        out.append(_slope(f, h, axis=d))
    return out[0] if len(axes) == 1 else out


@program("axis")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral of samples along an axis by the trapezoidal rule.

    >>> from morphax import numpy as jnp
    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0])).item()
    4.0
    """
    if x is None:
        y, dx = promotion.same_dtype("trapezoid", (promotion.inexact("trapezoid", y), promotion.array("trapezoid", dx)))
        y = structure.move_axis(y, promotion.axis_of("trapezoid", axis, typeof(y).ndim), -1)
    else:
        y, x = promotion.same_dtype("trapezoid", (promotion.inexact("trapezoid", y), promotion.inexact("trapezoid", x)))
        if typeof(x).ndim == 1:
            y = structure.move_axis(y, promotion.axis_of("trapezoid", axis, typeof(y).ndim), -1)
        else:
            x, y = [structure.move_axis(v, promotion.axis_of("trapezoid", axis, typeof(v).ndim), -1) for v in (x, y)]
        dx = diff(x)
    last = typeof(y).ndim - 1
    n = typeof(y).shape[last]
    pairs = ew.add(structure.slice_axis(y, 1, n, last), structure.slice_axis(y, 0, n - 1, last))
    total = reductions.sum(ufuncs.multiply.plain(dx, pairs), axis=-1)
    return ew.mul(total, family.like(total, 0.5))


@program("axisa", "axisb", "axisc", "axis")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Vector product of vectors with three entries, or the third entry of that of vectors with two.

    >>> from morphax import numpy as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promotion.same_dtype("cross", (promotion.array("cross", a), promotion.array("cross", b)))
    a = structure.move_axis(a, promotion.axis_of("cross", axisa, typeof(a).ndim), -1)
    b = structure.move_axis(b, promotion.axis_of("cross", axisb, typeof(b).ndim), -1)
    n, m = typeof(a).shape[-1], typeof(b).shape[-1]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(f"cross: vectors must have 2 or 3 entries; they have {n} and {m}.")
    a1, b1 = _entries(a), _entries(b)
    mul, sub = ufuncs.multiply.plain, ufuncs.subtract.plain
    third = sub(mul(a1[0], b1[1]), mul(a1[1], b1[0]))
    if n == 2 and m == 2:
        return third
    zero = family.like(a, 0)
    ax, ay, az = (*a1, zero)[:3]
    bx, by, bz = (*b1, zero)[:3]
    parts = [sub(mul(ay, bz), mul(az, by)), sub(mul(az, bx), mul(ax, bz)), third]
    out = shapes.stack(broadcast_all(parts), axis=-1)
    return structure.move_axis(out, -1, promotion.axis_of("cross", axisc, typeof(out).ndim))


def broadcast_all(parts: list[Any]) -> list[Any]:
    """Operands broadcast to their common shape."""
    shape = promotion.common_shape("broadcast", [typeof(p).shape for p in parts])
    return [promotion.spread(p, shape) for p in parts]


def _entries(x: Any) -> list[Any]:
    last = typeof(x).ndim - 1
    return [
        structure.squeeze(structure.slice_axis(x, k, k + 1, last), dimensions=(last,))
        for k in range(typeof(x).shape[last])
    ]


# ---- padding ---------------------------------------------------------------------------------------------------------

_PAD_OPTIONS = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """`array` made longer at both ends of each axis.

    Args:
        array: array.
        pad_width: an int, a pair (before, after), one pair for each axis, or a dict from axis to either.
        mode: "constant" (constant_values=0), "edge", "reflect", "symmetric" (reflect_type="even"), "wrap", "empty",
            "linear_ramp" (end_values=0), "maximum", "minimum", "mean", "median" (stat_length=None).
        kwargs: the option in brackets above.

    >>> from morphax import numpy as jnp
    >>> jnp.pad(jnp.array([1, 2]), (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    """
    array = promotion.checked("pad", array)
    if mode not in _PAD_OPTIONS:
        raise NotImplementedError(f"pad: mode must be one of {', '.join(_PAD_OPTIONS)}; it is {mode!r}.")
    options = dict(_PAD_OPTIONS[mode])
    wrong = set(kwargs) - set(options)
    if wrong:
        raise ValueError(
            f"pad: mode {mode!r} takes {', '.join(options) or 'no options'}; {', '.join(sorted(wrong))} given."
        )
    options.update(kwargs)
    widths = _widths(pad_width, typeof(array).ndim)
    if mode in ("constant", "empty"):
        values = options.get("constant_values", 0)
        return _pad_constant(array, _as_arrays(values)[0], widths=widths)
    extra = next(iter(options.values()), None)
    if mode == "linear_ramp":
        return _pad_ramp(array, _as_arrays(extra)[0], widths=widths)
    return _pad_from_itself(array, widths=widths, mode=mode, option=extra)


def _widths(given: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    if isinstance(given, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in given.items():
            pairs[promotion.axis_of("pad", axis, ndim)] = (
                (width, width) if promotion.is_integer(width) else tuple(width)
            )
        given = pairs
    found = np.asarray(given)
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"pad: pad_width must consist of integers; it is {given!r}.")
    try:
        found = np.broadcast_to(found if found.ndim != 1 or found.size != 1 else found[0], (ndim, 2))
    except ValueError:
        raise ValueError(
            f"pad: pad_width {given!r} does not fit an array of {ndim} axes. Give an int, a pair, or one pair for each "
            "axis."
        ) from None
    if found.size and found.min() < 0:
        raise ValueError(
            f"pad: index can't contain negative values: pad_width is {given!r}. Slice to make arrays shorter."
        )
    return tuple([(int(a), int(b)) for a, b in found.tolist()])


def _paired_values(name: str, values: Any, ndim: int) -> Any:
    """Values at both ends of each axis, as an array (ndim, 2)."""
    shape = typeof(values).shape
    if shape == (1,):
        values, shape = structure.reshape_to(values, ()), ()
    if shape not in ((), (2,), (1, 2), (ndim, 2), (ndim, 1)):
        raise ValueError(f"pad: {name} has shape {shape}. Give a scalar, a pair, or one pair for each of {ndim} axes.")
    return promotion.spread(values, (ndim, 2))


@program("widths")
def _pad_constant(a: Any, values: Any, widths: Any) -> Any:
    a = promotion.array("pad", a)
    values = promotion.as_dtype(promotion.array("pad", values), typeof(a).dtype)
    if not typeof(values).shape:
        return structure.pad(a, values, padding_config=tuple([(b, e, 0) for b, e in widths]))
    values = _paired_values("constant_values", values, len(widths))
    for d, (before, after) in enumerate(widths):
        for end, config in ((0, (before, 0, 0)), (1, (0, after, 0))):
            value = structure.reshape_to(
                structure.slice(values, start_indices=(d, end), limit_indices=(d + 1, end + 1), strides=None), ()
            )
            full = tuple([config if k == d else (0, 0, 0) for k in range(len(widths))])
            a = structure.pad(a, value, padding_config=full)
    return a


@program("widths")
def _pad_ramp(a: Any, ends: Any, widths: Any) -> Any:
    a = promotion.array("pad", a)
    dtype = typeof(a).dtype
    computing = dtypes.to_inexact(dtype)
    ends = _paired_values("end_values", promotion.as_dtype(promotion.array("pad", ends), computing), len(widths))
    for d, (before, after) in enumerate(widths):
        size = typeof(a).shape[d]
        parts = [a]
        for end, width in ((0, before), (1, after)):
            if not width:
                continue
            end_value = structure.reshape_to(
                structure.slice(ends, start_indices=(d, end), limit_indices=(d + 1, end + 1), strides=None), ()
            )
            edge = structure.slice_axis(a, 0, 1, d) if end == 0 else structure.slice_axis(a, size - 1, size, d)
            edge = structure.convert(edge, computing)
            shape = tuple([width if k == d else s for k, s in enumerate(typeof(edge).shape)])
            edge = promotion.spread(edge, shape)
            k = structure.iota_along(dtypes.to_real(computing), shape, d)
            k = k if end == 0 else ew.sub(family.like(k, width), ew.add(k, family.like(k, 1)))
            share = promotion.as_dtype(ew.div(k, family.like(k, width)), computing)
            ramp = ew.add(end_value, ew.mul(ew.sub(edge, end_value), share))
            ramp = structure.convert(ew.floor(ramp) if dtypes.is_integer(dtype) else ramp, dtype)
            parts = [ramp, *parts] if end == 0 else [*parts, ramp]
        a = structure.concatenate(*parts, dimension=d) if len(parts) > 1 else a
    return a


@program("widths", "mode", "option")
def _pad_from_itself(a: Any, widths: Any, mode: str, option: Any) -> Any:
    a = promotion.array("pad", a)
    for d, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if not typeof(a).shape[d]:
            raise ValueError(f"pad: can't extend empty axis {d} using modes other than 'constant' or 'empty'.")
        a = _extended(a, d, before, after, mode, option)
    return a


def _extended(a: Any, axis: int, before: int, after: int, mode: str, option: Any) -> Any:
    size = typeof(a).shape[axis]
    if mode in ("maximum", "minimum", "mean", "median"):
        lengths = np.broadcast_to(size if option is None else option, (2,)).tolist()
        parts = [
            _statistic(a, axis, mode, min(length, size), front)
            for length, front in zip(lengths, (True, False), strict=True)
        ]
        shapes_of = [tuple([w if k == axis else s for k, s in enumerate(typeof(a).shape)]) for w in (before, after)]
        ends = [promotion.spread(p, s) for p, s in zip(parts, shapes_of, strict=True)]
        return structure.concatenate(ends[0], a, ends[1], dimension=axis)
    if option == "odd":
        return _reflected_odd(a, axis, before, after, mode)
    source = np.pad(np.arange(size), (before, after), mode=mode)
    return indexing.take(a, source, axis=axis, mode="clip")


def _statistic(a: Any, axis: int, mode: str, length: int, front: bool) -> Any:
    size = typeof(a).shape[axis]
    part = structure.slice_axis(a, 0, length, axis) if front else structure.slice_axis(a, size - length, size, axis)
    fun = {"maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean, "median": median}[mode]
    out = fun(part, axis=axis, keepdims=True)
    dtype = typeof(a).dtype
    out = ufuncs._to_nearest(out) if dtypes.is_integer(dtype) and dtypes.is_inexact(typeof(out).dtype) else out
    return structure.convert(out, dtype)


def _reflected_odd(a: Any, axis: int, before: int, after: int, mode: str) -> Any:
    # The continuation through the edge: twice the edge minus the mirror image, as often as it is needed.
    while before or after:
        size = typeof(a).shape[axis]
        reach = size - 1 if mode == "reflect" and size > 1 else size
        skip = 1 if mode == "reflect" and size > 1 else 0
        parts = [a]
        for front, width in ((True, min(before, reach)), (False, min(after, reach))):
            if not width:
                continue
            edge = structure.slice_axis(a, 0, 1, axis) if front else structure.slice_axis(a, size - 1, size, axis)
            if front:
                mirror = structure.slice_axis(a, skip, skip + width, axis)
            else:
                mirror = structure.slice_axis(a, size - skip - width, size - skip, axis)
            mirror = structure.rev(mirror, dimensions=(axis,))
            end = ew.sub(promotion.spread(ew.mul(edge, family.like(edge, 2)), typeof(mirror).shape), mirror)
            parts = [end, *parts] if front else [*parts, end]
        before, after = before - min(before, reach), after - min(after, reach)
        a = structure.concatenate(*parts, dimension=axis)
    return a


# ---- counts ----------------------------------------------------------------------------------------------------------


@program("length")
def _bincount(x: Any, weights: Any, length: int) -> Any:
    x = promotion.array("bincount", x)
    if typeof(x).ndim != 1 or not (dtypes.is_integer(typeof(x).dtype) or typeof(x).dtype == np.bool_):
        raise TypeError(f"bincount: x must be integers along one axis; it is {typeof(x)}.")
    x = promotion.numeric("bincount", x)
    x = ew.max(x, family.like(x, 0))
    weights = np.ones((), dtypes.default_int_dtype()) if weights is None else promotion.array("bincount", weights)
    zeros = ew.full((length,), np.zeros((), typeof(weights).dtype))
    return updates.Place(zeros, x).add(weights, mode="drop")


def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Any:
    """How often each number 0, 1, 2, ... comes in `x`, or the sum of its weights.

    Args:
        x: integers along one axis, none negative.
        weights: a weight for each.
        minlength: least size of the result.
        length: size of the result, which is needed under jit; greater numbers are not counted.
        out_sharding: not supported.

    >>> from morphax import numpy as jnp
    >>> jnp.bincount(jnp.array([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    creation._no_sharding("bincount", out_sharding)
    if length is None:
        host = sorting._host("bincount", x)
        length = max(operator.index(minlength), int(host.max(initial=-1)) + 1)
    return _bincount(x, weights, length=operator.index(length))


@program("rowvar", "bias", "ddof", "dtype")
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Any:
    """Covariance matrix of variables, one in each row unless rowvar=False.

    >>> from morphax import numpy as jnp
    >>> jnp.cov(jnp.array([[1.0, 3.0], [2.0, 6.0]])).tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """
    x = _variables(m, rowvar)
    if y is not None:
        x = structure.concatenate(*promotion.same_dtype("cov", (x, _variables(y, rowvar))), dimension=0)
    if dtype is not None:
        x = structure.convert(x, dtypes.named_dtype(dtype))
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    for w in (fweights, aweights):
        if w is not None:
            w = promotion.as_dtype(promotion.array("cov", w), typeof(x).dtype)
            weights = w if weights is None else ew.mul(weights, w)
    average = reductions.average(x, axis=1, weights=weights)
    x = ufuncs.subtract.plain(x, structure.expand_dims(average, (1,)))
    other = x if weights is None else ufuncs.multiply.plain(x, weights)
    out = dot(x, ufuncs._conjugate(structure.transpose(other, permutation=(1, 0))))
    if weights is None:
        factor: Any = family.like(out, max(typeof(x).shape[1] - ddof, 0))
    else:
        total = reductions.sum(weights)
        share = (
            family.like(total, 1)
            if aweights is None or not ddof
            else ew.div(reductions.sum(ufuncs.multiply.plain(weights, aweights)), total)
        )
        factor = promotion.as_dtype(ew.sub(total, ew.mul(family.like(total, ddof), share)), typeof(out).dtype)
    out = ew.div(out, factor)
    ones = tuple([d for d, s in enumerate(typeof(out).shape) if s == 1])
    return structure.squeeze(out, dimensions=ones) if ones else out


def _variables(m: Any, rowvar: bool) -> Any:
    m = promotion.inexact("cov", m)
    if typeof(m).ndim > 2:
        raise ValueError(f"cov: arrays must have at most 2 axes; this one has shape {typeof(m).shape}.")
    if typeof(m).ndim < 2:
        return structure.reshape_to(m, (1, typeof(m).size))
    return m if rowvar or typeof(m).shape[0] == 1 else structure.transpose(m, permutation=(1, 0))


@program("rowvar", "dtype")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """Correlation matrix of variables, one in each row unless rowvar=False.

    >>> from morphax import numpy as jnp
    >>> jnp.corrcoef(jnp.array([[1.0, 3.0], [2.0, 6.0]])).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not typeof(c).ndim:
        return ew.div(c, c)
    n = typeof(c).shape[0]
    deviation = ew.sqrt(real_part(shapes.diagonal(c)))
    deviation = promotion.as_dtype(deviation, typeof(c).dtype)
    out = ew.div(c, ew.broadcast_in_dim(deviation, shape=(n, n), broadcast_dimensions=(0,), sharding=None))
    out = ew.div(out, ew.broadcast_in_dim(deviation, shape=(n, n), broadcast_dimensions=(1,), sharding=None))
    if dtypes.is_complex(typeof(out).dtype):
        parts = [ew.clamp(family.like(p, -1), p, family.like(p, 1)) for p in (ew.real(out), ew.imag(out))]
        return ew.complex(*parts)
    return ew.clamp(family.like(out, -1), out, family.like(out, 1))


def real_part(x: Any) -> Any:
    """The real part; real operands as they are."""
    return ew.real(x) if dtypes.is_complex(typeof(x).dtype) else x


@program("period")
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Any:
    x, xp = promotion.same_dtype("interp", (promotion.inexact("interp", x), promotion.inexact("interp", xp)))
    fp = promotion.inexact("interp", fp)
    if typeof(xp).ndim != 1 or typeof(fp).shape != typeof(xp).shape:
        raise ValueError(
            f"interp: xp and fp must be one-dimensional arrays of equal size; shapes are {typeof(xp).shape} and "
            f"{typeof(fp).shape}."
        )
    if period is not None:
        turn = np.asarray(abs(period), typeof(x).dtype)
        x, xp = ufuncs._floored_rest(x, _full_like(x, turn)), ufuncs._floored_rest(xp, _full_like(xp, turn))
        order = sorting.argsort(xp)
        xp, fp = indexing.take(xp, order, mode="clip"), indexing.take(fp, order, mode="clip")
        n = typeof(xp).shape[0]
        xp = structure.concatenate(
            ew.sub(structure.slice_axis(xp, n - 1, n, 0), turn),
            xp,
            ew.add(structure.slice_axis(xp, 0, 1, 0), turn),
            dimension=0,
        )
        fp = structure.concatenate(
            structure.slice_axis(fp, n - 1, n, 0), fp, structure.slice_axis(fp, 0, 1, 0), dimension=0
        )
    n = typeof(xp).shape[0]
    place = sorting.searchsorted(xp, x, side="right")
    place = ew.clamp(family.like(place, 1), place, family.like(place, max(n - 1, 1)))
    before = ew.sub(place, family.like(place, 1))
    x0, x1 = indexing.take(xp, before, mode="clip"), indexing.take(xp, place, mode="clip")
    f0, f1 = indexing.take(fp, before, mode="clip"), indexing.take(fp, place, mode="clip")
    width = ew.sub(x1, x0)
    flat = ew.eq(width, family.like(width, 0))
    share = ew.div(ew.sub(x, x0), ew.select_n(flat, width, family.like(width, 1)))
    share = promotion.as_dtype(share, typeof(f0).dtype)
    out = ew.select_n(flat, ew.add(f0, ew.mul(share, ew.sub(f1, f0))), f0)
    if period is None:
        first, last = (
            structure.reshape_to(structure.slice_axis(v, k, k + 1, 0), ()) for v in (fp,) for k in (0, n - 1)
        )
        low, high = (structure.reshape_to(structure.slice_axis(xp, k, k + 1, 0), ()) for k in (0, n - 1))
        left = first if left is None else promotion.as_dtype(promotion.array("interp", left), typeof(out).dtype)
        right = last if right is None else promotion.as_dtype(promotion.array("interp", right), typeof(out).dtype)
        out = ew.select_n(ew.lt(x, low), out, left)
        out = ew.select_n(ew.gt(x, high), out, right)
    return out


def _full_like(x: Any, value: Any) -> Any:
    return ew.broadcast_in_dim(value, shape=typeof(x).shape, broadcast_dimensions=(), sharding=None)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Values at `x` of the line through the points (xp, fp), with `left` and `right` beyond its ends.

    >>> from morphax import numpy as jnp
    >>> jnp.interp(1.5, jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])).item()
    15.0
    """
    if isinstance(left, str) or isinstance(right, str):
        raise NotImplementedError("interp: extrapolation is not supported. Give numbers for left and right.")
    if period is not None and period == 0:
        raise ValueError("interp: period must be a non-zero value; it is 0.")
    return _interp(x, xp, fp, left, right, period=None if period is None else float(period))
