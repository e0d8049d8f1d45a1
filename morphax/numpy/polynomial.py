"""Polynomials as arrays of coefficients, the highest power first; convolution, which multiplies them; gradients."""

import operator
from typing import Any

import numpy as np

from morphax.control import loops
from morphax.ir import avals
from morphax.numpy import creation, linalg, promotion, reductions, shapes, sorting, ufuncs
from morphax.numpy.einsum import dot, outer  # by name: the function `einsum` hides its module
from morphax.ops import convolution, family, structure
from morphax.ops import elementwise as ew
from morphax.ops.contract import canonical_precision
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type

# ---- convolution -----------------------------------------------------------------------------------------------------

_NUMBERS = convolution.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))


def _check_lines(name: str, a: Any, v: Any) -> None:
    sizes = [promotion.described(name, x)[2] for x in (a, v)]
    if any(len(s) != 1 for s in sizes):
        raise ValueError(f"{name}: operands must have one axis; their shapes are {sizes[0]} and {sizes[1]}.")
    if not (sizes[0][0] and sizes[1][0]):
        raise ValueError(f"{name}: operands must not be empty; their shapes are {sizes[0]} and {sizes[1]}.")


def _slid(name: str, a: Any, v: Any, mode: str, flip: bool, precision: Any, preferred: Any) -> Any:
    """Products of `v` with the windows of `a`."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid'; it is {mode!r}.")
    if preferred is None:
        a, v = promotion.inexact(name, a), promotion.inexact(name, v)
    a, v = promotion.same_dtype(name, (promotion.array(name, a), promotion.array(name, v)))
    v = v if flip or not dtypes.is_complex(typeof(v).dtype) else ufuncs.conj(v)
    m, n = typeof(a).shape[0], typeof(v).shape[0]
    swapped = m < n
    if swapped:
        a, v, m, n = v, a, n, m
    if flip:
        v = structure.rev(v, dimensions=(0,))
    out = convolution.conv_general_dilated(
        structure.reshape_to(a, (1, 1, m)),
        structure.reshape_to(v, (1, 1, n)),
        window_strides=(1,),
        padding=({"valid": (0, 0), "same": (n // 2, n - n // 2 - 1), "full": (n - 1, n - 1)}[mode],),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=_NUMBERS,
        feature_group_count=1,
        batch_group_count=1,
        precision=canonical_precision(precision),
        preferred_element_type=None if preferred is None else dtypes.named_dtype(preferred),
    )
    out = structure.reshape_to(out, (typeof(out).shape[-1],))
    # The correlation of exchanged operands is the same, backwards.
    return structure.rev(out, dimensions=(0,)) if swapped and not flip else out


@program("mode", "precision", "preferred_element_type")
def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums over k of a[k] v[n - k]; integers become floats unless `preferred_element_type` is given.

    Args:
        a, v: arrays of one axis, not empty.
        mode: "full": wherever they overlap, size M + N - 1; "same": the middle part, of size max(M, N); "valid": where
            the shorter lies inside the longer, size |M - N| + 1.
        precision: see `lax.dot_general`.
        preferred_element_type: dtype of sums and result.

    >>> from morphax import numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])).tolist()
    [1.0, 5.0, 6.0]
    """
    _check_lines("convolve", a, v)
    return _slid("convolve", a, v, mode, True, precision, preferred_element_type)


@program("mode", "precision", "preferred_element_type")
def correlate(a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sums over k of a[n + k] conj(v[k]); arguments as in `convolve`.

    >>> from morphax import numpy as jnp
    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0])).tolist()
    [2.0, 3.0]
    """
    _check_lines("correlate", a, v)
    return _slid("correlate", a, v, mode, False, precision, preferred_element_type)


# ---- coefficients ----------------------------------------------------------------------------------------------------


def _coefficients(name: str, p: Any) -> Any:
    """Coefficients as an operand of one axis."""
    p = promotion.array(name, p)
    if typeof(p).ndim > 1:
        raise ValueError(f"{name}: coefficients must have one axis; their shape is {typeof(p).shape}.")
    return p if typeof(p).ndim else structure.reshape_to(p, (1,))


def _without_leading_zeros(name: str, p: Any, tolerance: bool = False) -> Any:
    """`p` from its first coefficient that is not 0; decided on the host, so not for traced values."""
    host = sorting._host(name, p)
    zero = np.isclose(host, 0, rtol=1e-5, atol=1e-8) if tolerance else host == 0
    first = int(np.argmin(zero)) if not zero.all() else len(host)
    return p[first:]


@program("name", "minus")
def _lined_up_sum(a1: Any, a2: Any, name: str, minus: bool) -> Any:
    a1, a2 = promotion.same_dtype(name, (_coefficients(name, a1), _coefficients(name, a2)))
    if minus and typeof(a1).dtype == np.bool_:
        raise TypeError(f"{name}: does not accept bools, which have no difference. Convert them to numbers.")
    sizes = typeof(a1).shape[0], typeof(a2).shape[0]
    zero = family.like(a1, 0)
    a1, a2 = (
        structure.pad(a, zero, padding_config=((max(sizes) - size, 0, 0),))
        for a, size in zip((a1, a2), sizes, strict=True)
    )
    return ew.sub(a1, a2) if minus else ew.or_(a1, a2) if typeof(a1).dtype == np.bool_ else ew.add(a1, a2)


def polyadd(a1: Any, a2: Any) -> Any:
    """Coefficients of the sum of two polynomials.

    >>> from morphax import numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([4, 5])).tolist()
    [1, 6, 8]
    """
    return _lined_up_sum(a1, a2, "polyadd", False)


def polysub(a1: Any, a2: Any) -> Any:
    """Coefficients of the difference of two polynomials.

    >>> from morphax import numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([4, 5])).tolist()
    [1, -2, -2]
    """
    return _lined_up_sum(a1, a2, "polysub", True)


@program()
def _product(a1: Any, a2: Any) -> Any:
    a1, a2 = promotion.inexact("polymul", a1), promotion.inexact("polymul", a2)
    a1, a2 = promotion.same_dtype("polymul", (_coefficients("polymul", a1), _coefficients("polymul", a2)))
    a1, a2 = (
        a if typeof(a).shape[0] else structure.pad(a, family.like(a, 0), padding_config=((0, 1, 0),)) for a in (a1, a2)
    )
    return _slid("polymul", a1, a2, "full", True, None, None)


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Any:
    """Coefficients of the product of two polynomials.

    Args:
        a1, a2: coefficients.
        trim_leading_zeros: drop leading zeros of the operands, as NumPy does; not under `jit`.

    >>> from morphax import numpy as jnp
    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, 3])).tolist()
    [1.0, 5.0, 6.0]
    """
    if trim_leading_zeros:
        a1, a2 = (_without_leading_zeros("polymul", creation.asarray(a)) for a in (a1, a2))
    return _product(a1, a2)


@program()
def _divided(u: Any, v: Any) -> tuple[Any, Any]:
    u, v = promotion.inexact("polydiv", u), promotion.inexact("polydiv", v)
    u, v = promotion.same_dtype("polydiv", (_coefficients("polydiv", u), _coefficients("polydiv", v)))
    m, n = typeof(u).shape[0], typeof(v).shape[0]
    if m < n:
        return creation.zeros(1, typeof(u).dtype), u
    lead = structure.reshape_to(structure.slice_axis(v, 0, 1, 0), ())
    places = np.arange(n)

    def step(rest: Any, k: Any) -> tuple[Any, Any]:
        factor = ew.div(rest[k], lead)
        return rest.at[k + places].add(-factor * v), factor

    rest, quotient = loops.scan(step, u, creation.arange(m - n + 1))
    return quotient, rest


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Quotient and remainder of two polynomials.

    Args:
        u, v: coefficients; those of `v` begin with one that is not 0.
        trim_leading_zeros: drop leading zeros of the remainder, as NumPy does; not under `jit`.

    >>> from morphax import numpy as jnp
    >>> [part.tolist() for part in jnp.polydiv(jnp.array([1, 2, 3]), jnp.array([1, 1]))]
    [[1.0, 1.0], [0.0, 0.0, 2.0]]
    """
    quotient, rest = _divided(u, v)
    if trim_leading_zeros:
        rest = _without_leading_zeros("polydiv", rest, tolerance=True)
    return quotient, rest


@program("m")
def polyder(p: Any, m: int = 1) -> Any:
    """Coefficients of the m-th derivative.

    >>> from morphax import numpy as jnp
    >>> jnp.polyder(jnp.array([1, 2, 3])).tolist()
    [2.0, 2.0]
    """
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"polyder: m, the order of the derivative, must be at least 0; it is {m}.")
    p = _coefficients("polyder", promotion.inexact("polyder", p))
    n = typeof(p).shape[0]
    if m == 0:
        return p
    if n <= m:
        return structure.slice_axis(p, 0, 0, 0)
    powers = np.arange(n - 1, m - 1, -1, dtype=np.float64)
    factors = np.prod([powers - k for k in range(m)], axis=0)
    return ew.mul(structure.slice_axis(p, 0, n - m, 0), factors.astype(typeof(p).dtype))


@program("m")
def _integral(p: Any, k: Any, m: int) -> Any:
    p, k = promotion.same_dtype("polyint", (promotion.inexact("polyint", p), promotion.inexact("polyint", k)))
    p, k = _coefficients("polyint", p), _coefficients("polyint", k)
    if typeof(k).shape[0] not in (1, m):
        raise ValueError(
            f"polyint: k must be a scalar or have one entry for each of the {m} constants; it has {typeof(k).shape[0]}."
        )
    n, dtype = typeof(p).shape[0], typeof(p).dtype
    k = promotion.spread(k, (m,))
    powers = np.arange(n + m - 1, -1, -1, dtype=np.float64)  # of x in the result
    # The coefficient of x^q has been divided by q (q - 1) ... down to the power at which it came in.
    steps = np.concatenate([np.full(n, m), np.arange(m - 1, -1, -1)])
    factors = [np.prod(power - np.arange(count)) for power, count in zip(powers, steps, strict=True)]
    joined = structure.concatenate(p, k, dimension=0)
    return ew.div(joined, np.asarray(factors).astype(dtype))


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Coefficients of the m-th integral, whose constants are `k`, 0 by default.

    >>> from morphax import numpy as jnp
    >>> jnp.polyint(jnp.array([2, 2])).tolist()
    [1.0, 2.0, 0.0]
    """
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"polyint: m, the order of the integral, must be at least 0; it is {m}.")
    if m == 0:
        return polyder(p, 0)
    return _integral(p, 0 if k is None else creation.asarray(k), m=m)


@program("unroll")
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Any:
    """Value of the polynomial at `x`, by Horner's rule.

    Args:
        p: coefficients along the first axis, the highest power first; further axes broadcast with `x`.
        x: where to evaluate it.
        unroll: steps in a turn of the loop.

    >>> from morphax import numpy as jnp
    >>> jnp.polyval(jnp.array([1, 2, 3]), 2).item()
    11
    """
    p, x = promotion.same_dtype("polyval", (promotion.array("polyval", p), promotion.array("polyval", x)))
    if not typeof(p).ndim:
        raise ValueError("polyval: coefficients must have an axis; p is a scalar. Write jnp.array([p]).")
    shape = promotion.common_shape("polyval", (typeof(x).shape, typeof(p).shape[1:]))
    x = promotion.spread(x, shape)
    n = typeof(p).shape[0]
    y = ew.full(shape, family.like(x, 0))
    step = lambda y, c: (ew.add(ew.mul(y, x), promotion.spread(c, shape)), None)  # noqa: E731
    if n <= unroll:
        for k in range(n):
            y, _ = step(y, structure.reshape_to(structure.slice_axis(p, k, k + 1, 0), typeof(p).shape[1:]))
        return structure.convert(y, typeof(p).dtype)
    return loops.scan(step, structure.convert(y, typeof(p).dtype), p, unroll=unroll)[0]


# ---- roots and fits --------------------------------------------------------------------------------------------------


@program()
def _from_roots(roots: Any) -> Any:
    n, dtype = typeof(roots).shape[0], typeof(roots).dtype
    start = structure.pad(ew.full((1,), np.ones((), dtype)), family.scalar(0, dtype), padding_config=((0, n, 0),))

    def step(p: Any, root: Any) -> tuple[Any, None]:
        moved = structure.pad(p, family.scalar(0, dtype), padding_config=((1, -1, 0),))
        return ew.sub(p, ew.mul(moved, root)), None

    return loops.scan(step, start, roots)[0]


def poly(seq_of_zeros: Any) -> Any:
    """Coefficients of the polynomial with these roots, or of the characteristic polynomial of a square matrix.

    >>> from morphax import numpy as jnp
    >>> jnp.poly(jnp.array([1, 2])).tolist()
    [1.0, -3.0, 2.0]
    """
    roots = creation.asarray(promotion.inexact("poly", creation.asarray(seq_of_zeros)))
    roots = shapes.atleast_1d(roots)
    if roots.ndim == 2 and roots.shape[0] == roots.shape[1] and roots.size:
        roots = linalg.eigvals(roots)
    if roots.ndim != 1:
        raise ValueError(f"poly: needs roots along one axis, or a square matrix that is not empty; got {roots.shape}.")
    return _from_roots(roots) if roots.size else creation.ones((), roots.dtype)


@program()
def _companion_roots(p: Any) -> Any:
    """Eigenvalues of the companion matrix; the first coefficient is not 0."""
    n = typeof(p).shape[0] - 1
    if n < 1:
        return creation.zeros(0, dtypes.to_complex(typeof(p).dtype))
    lead = structure.slice_axis(p, 0, 1, 0)
    row = ew.div(ew.neg(structure.slice_axis(p, 1, n + 1, 0)), promotion.spread(lead, (n,)))
    below = ew.full((n - 1, n), family.like(p, 0)) if n == 1 else creation.eye(n - 1, n, dtype=typeof(p).dtype)
    return linalg.eigvals(structure.concatenate(structure.reshape_to(row, (1, n)), below, dimension=0))


@program()
def _padded_roots(p: Any) -> Any:
    """Roots for any number of leading zeros; NaN in place of each that is missing."""
    n = typeof(p).shape[0]
    nonzero = ew.ne(p, family.like(p, 0))
    leading = reductions.argmax(nonzero)
    empty = ew.not_(reductions.any(nonzero))
    leading = ew.select_n(empty, leading, family.like(leading, n - 1))
    # Leading zeros moved to the end are roots at 0, which come last, once the rest is in order of size.
    moved = shapes.roll(p, ew.neg(leading))
    first = ew.select_n(empty, structure.slice_axis(moved, 0, 1, 0), ew.full((1,), family.like(p, 1)))
    moved = structure.concatenate(first, structure.slice_axis(moved, 1, n, 0), dimension=0)
    found = _companion_roots(moved)
    order = sorting.argsort(ew.neg(ew.abs(found)))
    found = found[order]
    count = ew.sub(family.like(leading, n - 1), leading)
    real = ew.lt(structure.iota_along(typeof(leading).dtype, (n - 1,), 0), count)
    return ew.select_n(real, ew.full((n - 1,), family.like(found, complex(np.nan, np.nan))), found)


def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """Roots of a polynomial, complex: the eigenvalues of its companion matrix.

    Args:
        p: coefficients, the highest power first.
        strip_zeros: drop leading and trailing zeros first, which is not possible under `jit`; otherwise NaN stands
            for each root that leading zeros take away.

    >>> from morphax import numpy as jnp
    >>> sorted(jnp.roots(jnp.array([1.0, -3.0, 2.0])).real.round(3).tolist())
    [1.0, 2.0]
    """
    p = creation.asarray(promotion.inexact("roots", creation.asarray(p)))
    if p.ndim != 1:
        raise ValueError(f"roots: coefficients must have one axis; their shape is {p.shape}.")
    if p.size < 2:
        return creation.zeros(0, dtypes.to_complex(p.dtype))
    if not strip_zeros:
        return _padded_roots(p)
    places = np.flatnonzero(sorting._host("roots", p))
    if not places.size:
        return creation.zeros(0, dtypes.to_complex(p.dtype))
    inner = _companion_roots(p[int(places[0]) : int(places[-1]) + 1])
    return shapes.concatenate([inner, creation.zeros(p.size - 1 - int(places[-1]), inner.dtype)])


@program("N", "increasing")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Matrix whose columns are powers of `x`, the highest first.

    Args:
        x: array of shape (n,).
        N: number of columns, n by default.
        increasing: the power 0 first.

    >>> from morphax import numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    x = promotion.numeric("vander", x)
    if typeof(x).ndim != 1:
        raise ValueError(f"vander: x must have one axis; its shape is {typeof(x).shape}.")
    count = typeof(x).shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError(f"vander: N, the number of columns, must be at least 0; it is {count}.")
    n = typeof(x).shape[0]
    repeated = ew.broadcast_in_dim(x, shape=(n, max(count - 1, 0)), broadcast_dimensions=(0,), sharding=None)
    powers = reductions.cumprod(repeated, axis=1)
    one = ew.full((n, min(count, 1)), family.like(x, 1))
    out = structure.concatenate(one, structure.convert(powers, typeof(x).dtype), dimension=1)
    return out if increasing else structure.rev(out, dimensions=(1,))


@program("deg", "cov")
def _fitted(x: Any, y: Any, rcond: Any, w: Any, deg: int, cov: Any) -> tuple[Any, ...]:
    x, y = promotion.same_dtype("polyfit", (promotion.inexact("polyfit", x), promotion.inexact("polyfit", y)))
    shape, found = typeof(x).shape, typeof(y).shape
    if len(shape) != 1 or not shape[0] or len(found) not in (1, 2) or found[:1] != shape:
        raise TypeError(
            f"polyfit: needs x of shape (n,), n > 0, and y of shape (n,) or (n, k); got {shape} and {found}."
        )
    count, dtype = deg + 1, typeof(x).dtype
    columns = vander(x, count)
    if w is not None:
        w = promotion.as_dtype(promotion.inexact("polyfit", w), dtype)
        if typeof(w).shape != shape:
            raise TypeError(f"polyfit: w must have the shape of x, {shape}; it has {typeof(w).shape}.")
        columns = columns * w[:, None]
        y = y * (w[:, None] if len(found) == 2 else w)
    if rcond is None:
        rcond = family.scalar(float(dtypes.finfo(dtype).eps) * shape[0], dtypes.to_real(dtype))
    scale = ufuncs.sqrt(reductions.sum(ufuncs.square(ufuncs.abs(columns)), axis=0))
    scale = sorting.where(ufuncs.equal(scale, 0), 1, scale)  # a column of zeros stays
    scaled = columns / scale
    c, resids, rank, s = linalg.lstsq(scaled, y, rcond)
    c = c / (scale[:, None] if len(found) == 2 else scale)
    out = [c, resids, rank, s, rcond]
    if cov:
        base = linalg.inv(dot(ufuncs.conj(scaled.T), scaled)) / outer(scale, scale)
        factor = 1
        if cov != "unscaled":
            if shape[0] <= count:
                raise ValueError(f"polyfit: {shape[0]} points are too few to scale the covariance of degree {deg}.")
            factor = resids / (shape[0] - count)
        out.append(base * factor if len(found) == 1 else base[:, :, None] * factor)
    return tuple(out)


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """Coefficients of the polynomial of degree `deg` nearest to points, by least squares.

    Args:
        x: places, shape (n,).
        y: values, shape (n,) or (n, k).
        deg: degree.
        rcond: singular values below rcond times the largest count as 0; None for n eps.
        full: also residuals, rank, singular values and rcond.
        w: weight of each point, which multiplies its residual.
        cov: also the covariance of the coefficients, scaled by the residuals, or as it is for "unscaled".

    >>> from morphax import numpy as jnp
    >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3).tolist()
    [2.0, 1.0]
    """
    deg = operator.index(deg)
    if deg < 0:
        raise ValueError(f"polyfit: deg must be at least 0; it is {deg}.")
    c, resids, rank, s, rcond, *rest = _fitted(x, y, rcond, w, deg=deg, cov=cov)
    if full:
        return c, resids, rank, s, rcond
    return (c, *rest) if cov else c
