"""Matrices of a given form."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from morphax import numpy as jnp
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.support import dtypes


@program()
def block_diag(*arrs: Any) -> Any:
    """The arrays, of at most two axes, one below and beside the other; zeros elsewhere.

    >>> block_diag(jnp.ones((1, 1)), 2.0).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    blocks = [jnp.atleast_2d(jnp.asarray(x)) for x in arrs] or [jnp.zeros((1, 0))]
    bad = [typeof(b).shape for b in blocks if typeof(b).ndim > 2]
    if bad:
        raise ValueError(f"block_diag: takes arrays of at most two axes; one has shape {bad[0]}.")
    dtype = jnp.result_type(*blocks)
    width = sum(typeof(b).shape[1] for b in blocks)
    rows, before = [], 0
    for b in blocks:
        columns = typeof(b).shape[1]
        rows.append(jnp.pad(b.astype(dtype), ((0, 0), (before, width - before - columns))))
        before += columns
    return jnp.concatenate(rows)


def _vector(name: str, x: Any) -> Any:
    x = jnp.atleast_1d(jnp.asarray(x))
    if not typeof(x).shape[-1]:
        raise ValueError(f"{name}: needs at least one entry; the shape is {typeof(x).shape}.")
    return x


@program()
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with c[i - j] on and below the diagonal and r[j - i] above, `r` being conj(c) if left out.

    >>> toeplitz(jnp.array([1, 2])).tolist()
    [[1, 2], [2, 1]]
    """
    c = _vector("toeplitz", c)
    r = jnp.conj(c) if r is None else _vector("toeplitz", r)
    m, n = typeof(c).shape[-1], typeof(r).shape[-1]
    batch = jnp.broadcast_shapes(typeof(c).shape[:-1], typeof(r).shape[:-1])
    parts = [jnp.broadcast_to(jnp.flip(r[..., 1:], -1), (*batch, n - 1)), jnp.broadcast_to(c, (*batch, m))]
    return jnp.concatenate(parts, axis=-1)[..., np.arange(m)[:, None] - np.arange(n) + n - 1]


@program()
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with entries (i, j) of i + j: the first column `c`, the last row `r`, zeros if left out.

    >>> hankel(jnp.array([1, 2])).tolist()
    [[1, 2], [2, 0]]
    """
    c = _vector("hankel", c)
    r = jnp.zeros_like(c) if r is None else _vector("hankel", r)
    m, n = typeof(c).shape[-1], typeof(r).shape[-1]
    return jnp.concatenate([c, r[..., 1:]], axis=-1)[..., np.arange(m)[:, None] + np.arange(n)]


@program()
def circulant(c: Any) -> Any:
    """The matrix with entries c[(i - j) mod n].

    >>> circulant(jnp.array([1, 2])).tolist()
    [[1, 2], [2, 1]]
    """
    c = _vector("circulant", c)
    places = np.arange(typeof(c).shape[-1])
    return c[..., (places[:, None] - places) % max(places.size, 1)]


def _floating(x: Any) -> Any:
    x = jnp.asarray(x)
    return x.astype(dtypes.to_inexact(typeof(x).dtype))


def _below(n: int, like: Any) -> Any:
    """Ones below the diagonal, in a batch as `like`."""
    return jnp.broadcast_to(jnp.eye(n, k=-1, dtype=typeof(like).dtype), (*typeof(like).shape[:-1], n, n))


@program()
def companion(a: Any) -> Any:
    """The companion matrix of the polynomial with coefficients `a`, the highest power first.

    >>> companion(jnp.array([1.0, -3.0])).tolist()
    [[3.0]]
    """
    a = _floating(a)
    if typeof(a).shape[-1] < 2:
        raise ValueError(f"companion: needs at least two coefficients; the shape is {typeof(a).shape}.")
    return _below(typeof(a).shape[-1] - 1, a).at[..., 0, :].set(-a[..., 1:] / a[..., :1])


@program()
def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of a population: fecundities `f` in the first row, survivals `s` below the diagonal.

    >>> leslie(jnp.array([1.0, 2.0]), jnp.array([0.5])).tolist()
    [[1.0, 2.0], [0.5, 0.0]]
    """
    f, s = jnp.asarray(f), jnp.asarray(s)
    n = typeof(f).shape[-1]
    if typeof(s).shape[-1] != n - 1:
        raise ValueError(f"leslie: s must have {n - 1} entries, one fewer than f; it has {typeof(s).shape[-1]}.")
    dtype = jnp.result_type(f, s)
    rows = np.arange(n - 1)
    out = jnp.zeros((*typeof(f).shape, n), dtype)
    return out.at[..., 0, :].set(f.astype(dtype)).at[..., rows + 1, rows].set(s.astype(dtype))


@program()
def fiedler(a: Any) -> Any:
    """The matrix of |a[i] - a[j]|.

    >>> fiedler(jnp.array([1, 4])).tolist()
    [[0, 3], [3, 0]]
    """
    a = _vector("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@program()
def fiedler_companion(a: Any) -> Any:
    """A companion matrix of five diagonals of the polynomial with coefficients `a`, the highest power first.

    Source: M. Fiedler, "A note on companion matrices" (2003): the product of elementary factors, the odd ones first.

    >>> fiedler_companion(jnp.array([1.0, -3.0])).tolist()
    [[3.0]]
    """
    a = _floating(a)
    if typeof(a).ndim != 1:
        raise ValueError(f"fiedler_companion: takes one axis; the shape is {typeof(a).shape}.")
    n = typeof(a).shape[0] - 1
    if n < 1:
        return jnp.zeros((0,), typeof(a).dtype)
    a = a / a[0]
    odd = even = jnp.eye(n, dtype=typeof(a).dtype)
    for k in range(1, n + 1):
        factor = jnp.eye(n, dtype=typeof(a).dtype).at[k - 1, k - 1].set(-a[k])
        if k < n:
            factor = factor.at[k - 1, k].set(1).at[k, k - 1].set(1).at[k, k].set(0)
        odd, even = (odd @ factor, even) if k % 2 else (odd, even @ factor)
    return odd @ even


_MODES = ("full", "same", "valid")


@program("n", "mode")
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with v, of length `n`, is convolve(a, v, mode).

    >>> convolution_matrix(jnp.array([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    a = _vector("convolution_matrix", a)
    if n < 1 or mode not in _MODES:
        raise ValueError(f"convolution_matrix: needs n >= 1 and mode full, same or valid; they are {n} and {mode!r}.")
    m = typeof(a).shape[-1]
    full = jnp.pad(a, [(0, 0)] * (typeof(a).ndim - 1) + [(n - 1, n - 1)])
    full = full[..., np.arange(m + n - 1)[:, None] - np.arange(n) + n - 1]
    size = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    start = (m + n - 1 - size) // 2
    return full[..., start : start + size, :]


def _constant(name: str, build: Callable[..., Any], dtype: Any, *args: Any, **kwargs: Any) -> Any:
    """A matrix that only depends on its size, from SciPy."""
    n = operator.index(args[0])
    if n < 0:
        raise ValueError(f"{name}: the size must not be negative; it is {n}.")
    return jnp.asarray(build(n, *args[1:], **kwargs)).astype(dtype)


def hilbert(n: int) -> Any:
    """The matrix of 1 / (i + j + 1).

    >>> hilbert(1).tolist()
    [[1.0]]
    """
    return _constant("hilbert", scipy.linalg.hilbert, dtypes.default_float_dtype(), n)


def invhilbert(n: int) -> Any:
    """The inverse of `hilbert(n)`.

    >>> invhilbert(1).tolist()
    [[1.0]]
    """
    return _constant("invhilbert", scipy.linalg.invhilbert, dtypes.default_float_dtype(), n)


def pascal(n: int, kind: str | None = None) -> Any:
    """Binomial coefficients: "symmetric" (the default), "lower" or "upper".

    >>> pascal(2).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """
    return _constant("pascal", _pascal, dtypes.default_float_dtype(), n, kind)


def _pascal(n: int, kind: str | None) -> Any:
    return scipy.linalg.pascal(n, kind or "symmetric", exact=False)


def invpascal(n: int, kind: str | None = None) -> Any:
    """The inverse of `pascal(n, kind)`.

    >>> invpascal(1).tolist()
    [[1.0]]
    """
    return _constant("invpascal", _invpascal, dtypes.default_float_dtype(), n, kind)


def _invpascal(n: int, kind: str | None) -> Any:
    return scipy.linalg.invpascal(n, kind or "symmetric", exact=False)


def hadamard(n: int, dtype: Any = int) -> Any:
    """Hadamard's matrix of 1 and -1, for powers of two.

    >>> hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    return _constant("hadamard", scipy.linalg.hadamard, dtypes.canonicalize_dtype(dtype), n)


def helmert(n: int, full: bool = False) -> Any:
    """Helmert's matrix; without `full`, less its first row.

    >>> helmert(1, full=True).tolist()
    [[1.0]]
    """
    return _constant("helmert", scipy.linalg.helmert, dtypes.default_float_dtype(), n, full=full)


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """The matrix of the discrete Fourier transform; `scale` "sqrtn" or "n" divides.

    >>> dft(1).real.tolist()
    [[1.0]]
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n'; it is {scale!r}.")
    chosen = dtypes.default_complex_dtype() if dtype is None else dtypes.canonicalize_dtype(dtype)
    return _constant("dft", scipy.linalg.dft, chosen, n, scale)
