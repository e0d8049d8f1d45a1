"""Linear algebra: NumPy's `linalg`. Matrices are the last two axes, all axes before are batches."""

import itertools
import operator as python
from typing import Any, NamedTuple

import numpy as np

from morphax.control.custom import custom_jvp
from morphax.numpy import promotion, reductions, shapes, statistics
from morphax.numpy.einsum import matmul as _matmul
from morphax.numpy.einsum import outer as _outer
from morphax.numpy.einsum import tensordot as _tensordot
from morphax.numpy.einsum import vecdot as _vecdot
from morphax.ops import contract, family, indexing, linalg, reduce, sorting, spectra, structure
from morphax.ops import elementwise as ew
from morphax.ops import matrices as mx
from morphax.ops.family import like, typeof
from morphax.runtime.jit import program
from morphax.support import dtypes, tracebacks


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Any
    logabsdet: Any


# ---- arguments -------------------------------------------------------------------------------------------------------


def _matrices(name: str, a: Any) -> Any:
    a = promotion.inexact(name, a)
    if typeof(a).ndim < 2:
        raise ValueError(
            f"{name}: Argument must have ndim >= 2; it has shape {typeof(a).shape}. Reshape it to a matrix."
        )
    return a


def _squares(name: str, a: Any) -> Any:
    a = _matrices(name, a)
    shape = typeof(a).shape
    if shape[-1] != shape[-2]:
        raise ValueError(f"{name}: Argument to {name} must have shape [..., n, n], got {shape}. Give square matrices.")
    return a


def _symmetrized(a: Any) -> Any:
    return ew.div(ew.add(a, mx.adjoint(a)), like(a, 2))


def _lower(name: str, uplo: Any) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO must be one of None, 'L', or 'U', got {uplo!r}.")
    return uplo != "U"


def _eps(x: Any) -> float:
    return float(dtypes.finfo(typeof(x).dtype).eps)


def _both(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of one inexact dtype; their shapes stay."""
    dtype, weak = promotion.common(name, (x, y))
    dtype = dtypes.to_inexact(dtype)
    return promotion.as_dtype(x, dtype, weak), promotion.as_dtype(y, dtype, weak)


def _spread_batches(name: str, *operands: Any) -> list[Any]:
    """Matrices with their batch axes broadcast."""
    lead = promotion.common_shape(name, [typeof(x).shape[:-2] for x in operands])
    return [promotion.spread(x, lead + typeof(x).shape[-2:]) for x in operands]


# ---- factorisations --------------------------------------------------------------------------------------------------


@program("upper", "symmetrize_input")
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The triangular factor L of positive definite matrices, a = L L^H, or its adjoint with `upper`.

    Args:
        a: array of shape (..., n, n).
        upper: return the upper triangular factor.
        symmetrize_input: take (a + a^H) / 2; without it only the lower triangle is read.

    Returns:
        Array of the same shape; NaN where a matrix is not positive definite.

    Raises:
        ValueError: matrices that are not square.

    Derivative: I. Murray, Differentiation of the Cholesky decomposition, 2016.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    a = _squares("cholesky", a)
    if symmetrize_input:
        a = _symmetrized(a)
    elif upper:
        a = mx.adjoint(a)
    factor = linalg.cholesky(a)
    return mx.adjoint(factor) if upper else factor


@program("mode")
def qr(a: Any, mode: str = "reduced") -> Any:
    """Orthonormal Q and upper triangular R with a = Q R.

    Args:
        a: array of shape (..., m, n).
        mode: "reduced" for Q of shape (..., m, min(m, n)), "complete" for Q of shape (..., m, m), "r" for R alone,
            "raw" for LAPACK's reflectors, transposed, and their scales.

    Raises:
        ValueError: another mode.

    Derivative: S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra functions, 2010.

    >>> from morphax import numpy as jnp
    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(jnp.allclose(q @ r, jnp.array([[3.0, 1.0], [4.0, 2.0]]), atol=1e-5))
    True
    """
    a = _matrices("qr", a)
    if mode == "raw":
        packed, taus = linalg.geqrf(a)
        return QRResult(mx.transposed(packed), taus)
    if mode not in ("reduced", "complete", "r", "full"):
        raise ValueError(f"qr: Unsupported QR decomposition mode {mode!r}. Use 'reduced', 'complete', 'r' or 'raw'.")
    q, r = linalg.qr(a, pivoting=False, full_matrices=mode in ("complete", "full"), use_magma=None)
    return r if mode == "r" else QRResult(q, r)


@program("full_matrices", "compute_uv", "hermitian", "subset_by_index")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular values S, falling, and vectors U, Vh with a = U S Vh.

    Args:
        a: array of shape (..., m, n).
        full_matrices: give m left and n right vectors, rather than min(m, n) of each.
        compute_uv: without it return S alone.
        hermitian: the matrices are Hermitian, which is faster.
        subset_by_index: (start, stop) of the singular values wanted; needs full_matrices=False.

    Derivative: J. Townsend, Differentiating the singular value decomposition, 2016. Where singular values are equal,
    functions of the space that their vectors span have it.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False).tolist()
    [4.0, 3.0]
    """
    a = _matrices("svd", a)
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be set. Pass full_matrices=False.")
    u, s, vh = _svd(a, full_matrices, compute_uv, hermitian)
    if subset_by_index is not None:
        start, stop = subset_by_index
        s = structure.slice_axis(s, start, stop, typeof(s).ndim - 1)
        if compute_uv:
            u = structure.slice_axis(u, start, stop, typeof(u).ndim - 1)
            vh = structure.slice_axis(vh, start, stop, typeof(vh).ndim - 2)
    return SVDResult(u, s, vh) if compute_uv else s


def _svd(a: Any, full_matrices: bool, compute_uv: bool, hermitian: bool) -> tuple[Any, Any, Any]:
    if hermitian:
        return _svd_hermitian(_squares("svd", a))
    if not compute_uv:
        return None, _singular_values(a), None
    s, u, vh = spectra.svd_of(a, full_matrices)
    return u, s, vh


def _singular_values(a: Any) -> Any:
    return spectra.svd(a, full_matrices=False, compute_uv=False, subset_by_index=None, algorithm=None)[0]


def _svd_hermitian(a: Any) -> tuple[Any, Any, Any]:
    w, v = spectra.eigh_of(_symmetrized(a))
    last = typeof(w).ndim - 1
    size = ew.abs(w)
    place = structure.iota_along(mx.I32, typeof(w).shape, last)
    _, order = sorting.sort(ew.neg(ew.stop_gradient(size)), place, dimension=last, is_stable=True, num_keys=1)
    columns = ew.broadcast(order, typeof(v).shape, (last,))
    v = indexing.take_along(v, columns, last + 1, unique=True)
    w = indexing.take_along(w, order, last, unique=True)
    signs = ew.select_n(ew.lt(w, like(w, 0)), like(w, 1), like(w, -1))
    return v, ew.mul(w, signs), mx.adjoint(mx.scale_columns(v, mx.as_dtype_of(signs, v)))


@program()
def svdvals(x: Any, /) -> Any:
    """Singular values, falling.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, -4.0]])).tolist()
    [4.0, 3.0]
    """
    return _singular_values(_matrices("svdvals", x))


# ---- eigenvalues -----------------------------------------------------------------------------------------------------


@program()
def eig(a: Any) -> EigResult:
    """Eigenvalues, in no particular order, and right eigenvectors of square matrices, both complex.

    Derivative: M. Giles, An extended collection of matrix derivative results, 2008. Eigenvectors have norm 1, and their
    largest entry is real.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    return EigResult(*spectra.eig_of(_squares("eig", a)))


@program()
def eigvals(a: Any) -> Any:
    """Eigenvalues of square matrices, complex, in no particular order.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).tolist()
    [1j, -1j]
    """
    a = _squares("eigvals", a)
    values, = spectra.eig(
        a, compute_left_eigenvectors=False, compute_right_eigenvectors=False, enable_eigvec_derivs=False,
        implementation=None,
    )  # fmt: skip
    return values


@program("UPLO", "symmetrize_input")
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, rising, and orthonormal eigenvectors of symmetric or Hermitian matrices.

    Args:
        a: array of shape (..., n, n).
        UPLO: which triangle is read, "L" or "U"; None for "L".
        symmetrize_input: take (a + a^H) / 2 first.

    Derivative: M. Giles, An extended collection of matrix derivative results, 2008. Where eigenvalues are equal,
    functions of the space that their eigenvectors span, and of the sum of the eigenvalues, have it. What is put
    together from both, as v f(w) v^H, misses a term there that no derivative of w and v can give.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    lower = _lower("eigh", UPLO)
    a = _squares("eigh", a)
    return EighResult(*spectra.eigh_of(_symmetrized(a) if symmetrize_input else a, lower))


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """Eigenvalues of symmetric or Hermitian matrices, rising. Arguments as in `eigh`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return eigh(a, UPLO, symmetrize_input=symmetrize_input)[0]


# ---- solving ---------------------------------------------------------------------------------------------------------


@program()
def solve(a: Any, b: Any) -> Any:
    """x where a x = b.

    Args:
        a: array of shape (..., n, n).
        b: array of shape (n,), or (..., n, k); the batch axes are broadcast.

    Returns:
        Array of the shape of `b`, with the batch axes of both.

    Raises:
        ValueError: shapes that do not fit.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = _both("solve", a, b)
    left, right = typeof(a).shape, typeof(b).shape
    if len(left) < 2 or left[-1] != left[-2] or not right or right[-2 if len(right) > 1 else -1] != left[-1]:
        raise ValueError(
            f"solve: Invalid shapes for solve: {left}, {right}. It needs (..., n, n), and (n,) or (..., n, k). For a "
            "vector for each matrix, use solve(a, b[..., None])[..., 0]."
        )
    if len(right) == 1:
        return structure.squeeze(_solve(a, structure.expand_dims(b, (1,))), dimensions=(len(left) - 1,))
    return _solve(a, b)


def _solve(a: Any, b: Any) -> Any:
    if typeof(a).ndim == 2 and typeof(b).ndim > 2:  # right-hand sides of one matrix stand beside each other
        ndim = typeof(b).ndim
        columns = structure.transpose(b, permutation=(ndim - 2, *range(ndim - 2), ndim - 1))
        shape = typeof(columns).shape
        solved = linalg.solve(a, structure.reshape_to(columns, (shape[0], int(np.prod(shape[1:])))))
        return structure.transpose(structure.reshape_to(solved, shape), permutation=(*range(1, ndim - 1), 0, ndim - 1))
    return linalg.solve(*_spread_batches("solve", a, b))


@program()
def inv(a: Any) -> Any:
    """Inverse matrices.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = _squares("inv", a)
    return linalg.solve(a, mx.identity(typeof(a).shape, typeof(a).dtype))


@program("hermitian")
def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """Pseudoinverse (Moore and Penrose), by singular values.

    Args:
        a: array of shape (..., m, n).
        rtol: singular values below rtol times the largest count as 0; None for 10 max(m, n) eps.
        hermitian: the matrices are Hermitian.
        rcond: an older name of rtol.

    Derivative: G. Golub, V. Pereyra, The differentiation of pseudo-inverses, 1973; the rank is taken for constant.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    a = _squares("pinv", a) if hermitian else _matrices("pinv", a)
    if rtol is None:
        rtol = rcond
    elif rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be given.")
    shape = typeof(a).shape
    size = dtypes.to_real(typeof(a).dtype)
    rtol = family.scalar(10 * max(shape[-2:]) * _eps(a), size) if rtol is None else promotion.as_dtype(rtol, size)
    return (_pinv_hermitian if hermitian else _pinv)(a, rtol)


def _cut(s: Any, rtol: Any) -> Any:
    """Inverses of singular values, 0 for those that count as 0."""
    shape = typeof(s).shape
    if not shape[-1]:
        return s
    largest = reduce.reduce_max(s, axes=(len(shape) - 1,))
    batch = tuple(range(len(shape) - 1))
    rtol = promotion.as_dtype(rtol, typeof(s).dtype)  # custom_jvp narrows host values to the default types
    rtol = promotion.spread(rtol, typeof(largest).shape) if typeof(rtol).ndim else rtol
    limit = ew.broadcast_in_dim(ew.mul(largest, rtol), shape=shape, broadcast_dimensions=batch, sharding=None)
    large = ew.gt(s, limit)
    return ew.select_n(large, like(s, 0), ew.div(like(s, 1), ew.select_n(large, like(s, 1), s)))


@custom_jvp
def _pinv(a: Any, rtol: Any) -> Any:
    s, u, vh = spectra.svd_of(a)
    return _pinv_from(u, s, vh, rtol)


@custom_jvp
def _pinv_hermitian(a: Any, rtol: Any) -> Any:
    return _pinv_from(*_svd_hermitian(a), rtol)


def _pinv_from(u: Any, s: Any, vh: Any, rtol: Any) -> Any:
    return mx.product(mx.scale_columns(mx.adjoint(vh), mx.as_dtype_of(_cut(s, rtol), u)), mx.adjoint(u))


def _pinv_jvp(fun: Any) -> Any:
    def jvp(primals: Any, tangents: Any) -> Any:
        # dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P.
        (a, rtol), (t, _) = primals, tangents
        p = fun(a, rtol)
        ph, th = mx.adjoint(p), mx.adjoint(t)
        first = mx.product(mx.product(p, ph), ew.sub(th, mx.product(mx.product(th, a), p)))
        second = ew.sub(th, mx.product(p, mx.product(a, th)))
        second = mx.product(second, mx.product(ph, p))
        return p, ew.sub(ew.add(first, second), mx.product(mx.product(p, t), p))

    return jvp


_pinv.defjvp(_pinv_jvp(_pinv))
_pinv_hermitian.defjvp(_pinv_jvp(_pinv_hermitian))


def lstsq(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> tuple[Any, Any, Any, Any]:
    """Least-squares solution x of a x = b, by singular values.

    Args:
        a: array of shape (m, n).
        b: array of shape (m,) or (m, k).
        rcond: singular values below rcond times the largest count as 0; None for max(m, n) eps.
        numpy_resid: as NumPy, no residuals where they are 0 or the rank is below n. Not under `jit`.

    Returns:
        x of shape (n,) or (n, k); sums of the squares of b - a x, shape (k,) or (1,); rank of a; its singular values.

    >>> from morphax import numpy as jnp
    >>> x, _, rank, _ = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> round(float(x[0]), 4), int(rank)
    (2.0, 1)
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid and (int(rank) < typeof(x).shape[0] or np.shape(a)[0] <= np.shape(a)[1]):
        residuals = structure.slice_axis(residuals, 0, 0, 0)
    return x, residuals, rank, s


@program()
def _lstsq(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    a, b = _both("lstsq", a, b)
    left, right = typeof(a).shape, typeof(b).shape
    if len(left) != 2 or len(right) not in (1, 2) or left[0] != right[0]:
        raise ValueError(f"lstsq: needs a of shape (m, n) and b of shape (m,) or (m, k); they have {left} and {right}.")
    matrix = b if len(right) == 2 else structure.expand_dims(b, (1,))
    s = _singular_values(a)
    size = typeof(s).dtype
    rcond = family.scalar(max(left) * _eps(a), size) if rcond is None else promotion.as_dtype(rcond, size)
    rcond = ew.select_n(ew.lt(rcond, like(rcond, 0)), rcond, like(rcond, _eps(a)))
    x = mx.product(_pinv(a, rcond), matrix)
    rank = ew.reduce_sum(ew.convert(ew.ne(_cut(s, rcond), like(s, 0)), mx.I32), axes=(0,))
    rest = ew.sub(matrix, mx.product(a, x))
    residuals = ew.reduce_sum(mx.real_part(ew.mul(rest, mx.conjugate(rest))), axes=(0,))
    return x if len(right) == 2 else structure.squeeze(x, dimensions=(1,)), residuals, rank, s


# ---- determinants and ranks ------------------------------------------------------------------------------------------


@program()
def det(a: Any) -> Any:
    """Determinants.

    Derivative: the transposed cofactors, also of singular matrices.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])).item()
    -2.0
    """
    a = _squares("det", a)
    n = typeof(a).shape[-1]
    return _EXPLICIT[n](_entries(a)) if n in _EXPLICIT else spectra.det(a)


def _entries(a: Any) -> list[list[Any]]:
    shape = typeof(a).shape
    flat = [structure.slice_axis(a, i, i + 1, len(shape) - 2) for i in range(shape[-2])]
    cells = [[structure.slice_axis(x, j, j + 1, len(shape) - 1) for j in range(shape[-1])] for x in flat]
    return [[structure.reshape_to(x, shape[:-2]) for x in cell] for cell in cells]


def _det_2(a: list[list[Any]]) -> Any:
    return ew.sub(ew.mul(a[0][0], a[1][1]), ew.mul(a[0][1], a[1][0]))


def _det_3(a: list[list[Any]]) -> Any:
    minors = [_det_2([[row[j] for j in (0, 1, 2) if j != k] for row in a[1:]]) for k in range(3)]
    first, second, third = (ew.mul(x, y) for x, y in zip(a[0], minors, strict=True))
    return ew.add(ew.sub(first, second), third)


# Polynomials: exact derivatives of every order, and vectorised over batches.
_EXPLICIT = {1: lambda a: a[0][0], 2: _det_2, 3: _det_3}


@program("method")
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Signs of determinants, and logarithms of their absolute values.

    Args:
        a: array of shape (..., n, n).
        method: None, "lu" or "qr"; all are computed by LU.

    Returns:
        sign: 1, -1 or 0, of absolute value 1 or 0 for complex matrices; logabsdet, -inf where the determinant is 0.

    >>> from morphax import numpy as jnp
    >>> sign, logabsdet = jnp.linalg.slogdet(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> float(sign), round(float(jnp.exp(logabsdet)), 4)
    (-1.0, 2.0)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: Unknown slogdet method '{method}'. Supported methods are 'lu' and 'qr'.")
    a = _squares("slogdet", a)
    factors, pivots, _ = linalg.lu(a)
    pivot = mx.diagonal(factors)
    last = (typeof(pivot).ndim - 1,)
    sign = reduce.reduce_prod(ew.sign(pivot), axes=last)
    sign = ew.select_n(spectra.parity(pivots), sign, ew.neg(sign))
    return SlogdetResult(sign, ew.reduce_sum(ew.log(ew.abs(pivot)), axes=last))


@program("hermitian")
def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """Ranks: how many singular values exceed a limit.

    Args:
        M: array of shape (..., m, n), or (n,) for the rank of one vector.
        rtol: the limit as a fraction of the largest; None for max(m, n) eps.
        hermitian: the matrices are Hermitian.
        tol: the limit itself.

    >>> from morphax import numpy as jnp
    >>> int(jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]])))
    1
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    a = promotion.inexact("matrix_rank", M)
    if typeof(a).ndim < 2:
        nonzero = ew.convert(ew.ne(a, like(a, 0)), mx.I32)
        return reduce.reduce_max(nonzero, axes=tuple(range(typeof(a).ndim)))
    s = _svd_hermitian(a)[1] if hermitian else _singular_values(a)
    shape = typeof(s).shape
    last = len(shape) - 1
    if not shape[-1]:
        return ew.full(shape[:-1], np.int32(0))
    if tol is None:
        rtol = family.scalar(max(typeof(a).shape[-2:]) * _eps(s), typeof(s).dtype) if rtol is None else rtol
        largest = reduce.reduce_max(s, axes=(last,))
        rtol = promotion.as_dtype(rtol, typeof(s).dtype)
        tol = ew.mul(largest, promotion.spread(rtol, typeof(largest).shape) if typeof(rtol).ndim else rtol)
    tol = promotion.as_dtype(tol, typeof(s).dtype)
    if typeof(tol).ndim:
        tol = ew.broadcast_in_dim(tol, shape=shape, broadcast_dimensions=tuple(range(last)), sharding=None)
    return ew.reduce_sum(ew.convert(ew.gt(s, tol), mx.I32), axes=(last,))


@program("p")
def cond(x: Any, p: Any = None) -> Any:
    """Condition numbers: norms of matrices times those of their inverses.

    Args:
        x: array of shape (..., m, n).
        p: the norm, as in `norm`; None for 2, which needs no square matrices.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.cond(jnp.array([[1.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    x = _matrices("cond", x)
    shape = typeof(x).shape
    if not shape[-1] or not shape[-2]:
        raise ValueError(f"cond: is not defined on empty arrays; the operand has shape {shape}.")
    if p in (None, 2, -2):
        s = _singular_values(x)
        last = typeof(s).ndim - 1
        ends = [
            structure.squeeze(structure.slice_axis(s, k, k + 1, last), dimensions=(last,))
            for k in (0, typeof(s).shape[-1] - 1)
        ]
        found = ew.div(ends[1], ends[0]) if p == -2 else ew.div(ends[0], ends[1])
    else:
        _squares("cond", x)
        found = ew.mul(_matrix_norm("cond", x, p), _matrix_norm("cond", inv(x), p))
    # NaN only for NaN in the matrix: a singular matrix has the condition number inf.
    axes = (len(shape) - 2, len(shape) - 1)
    has_nan = reduce.reduce_or(ew.ne(x, x), axes=axes)
    undefined = ew.and_(ew.ne(found, found), ew.not_(has_nan))
    return ew.select_n(undefined, found, like(found, np.inf))


# ---- norms -----------------------------------------------------------------------------------------------------------


def _guarded_power(s: Any, exponent: float) -> Any:
    """s ** exponent for s >= 0, with derivative 0 at 0."""
    if exponent < 0:
        return ew.pow(s, like(s, exponent))
    is_zero = ew.eq(s, like(s, 0))
    safe = ew.select_n(is_zero, s, like(s, 1))
    power = ew.sqrt(safe) if exponent == 0.5 else ew.pow(safe, like(s, exponent))
    return ew.select_n(is_zero, power, s)


def _largest(x: Any, axes: tuple[int, ...]) -> Any:
    """The greatest of numbers that are not negative; 0 for none."""
    shape = typeof(x).shape
    if any(not shape[d] for d in axes):
        return ew.reduce_sum(x, axes=axes)
    return reduce.reduce_max(x, axes=axes)


def _least(x: Any, axes: tuple[int, ...]) -> Any:
    shape = typeof(x).shape
    if any(not shape[d] for d in axes):
        raise ValueError(f"norm: the least entry of an empty array, of shape {shape}, is not defined.")
    return reduce.reduce_min(x, axes=axes)


def _euclidean(x: Any, axes: tuple[int, ...]) -> Any:
    square = mx.real_part(ew.mul(x, mx.conjugate(x))) if dtypes.is_complex(typeof(x).dtype) else ew.square(x)
    return _guarded_power(ew.reduce_sum(square, axes=axes), 0.5)


def _vector_norm(name: str, x: Any, order: Any, axes: tuple[int, ...]) -> Any:
    if order is None or order == 2:
        return _euclidean(x, axes)
    if isinstance(order, str):
        raise ValueError(f"{name}: Invalid order {order!r} for vector norm. Give a number.")
    size = ew.abs(x)
    if order == np.inf:
        return _largest(size, axes)
    if order == -np.inf:
        return _least(size, axes)
    if order == 0:
        return ew.reduce_sum(ew.convert(ew.ne(x, like(x, 0)), typeof(size).dtype), axes=axes)
    if order == 1:
        return ew.reduce_sum(size, axes=axes)
    powers = ew.pow(size, like(size, float(order)))
    return _guarded_power(ew.reduce_sum(powers, axes=axes), 1 / float(order))


def _column_sums(x: Any, axis: int) -> Any:
    return ew.reduce_sum(ew.abs(x), axes=(typeof(x).ndim + axis,))


def _over_last(extreme: Any) -> Any:
    return lambda x: extreme(x, (typeof(x).ndim - 1,))


_MATRIX_NORMS: dict[Any, Any] = {
    None: lambda x: _euclidean(x, (typeof(x).ndim - 2, typeof(x).ndim - 1)),
    "fro": lambda x: _euclidean(x, (typeof(x).ndim - 2, typeof(x).ndim - 1)),
    "f": lambda x: _euclidean(x, (typeof(x).ndim - 2, typeof(x).ndim - 1)),
    "nuc": lambda x: _over_last(lambda s, axes: ew.reduce_sum(s, axes=axes))(_singular_values(x)),
    2: lambda x: _over_last(_largest)(_singular_values(x)),
    -2: lambda x: _over_last(_least)(_singular_values(x)),
    1: lambda x: _over_last(_largest)(_column_sums(x, -2)),
    -1: lambda x: _over_last(_least)(_column_sums(x, -2)),
    np.inf: lambda x: _over_last(_largest)(_column_sums(x, -1)),
    -np.inf: lambda x: _over_last(_least)(_column_sums(x, -1)),
}


def _matrix_norm(name: str, x: Any, order: Any) -> Any:
    rule = _MATRIX_NORMS.get(order)
    if rule is None:
        raise ValueError(
            f"{name}: Invalid order {order!r} for matrix norm. Give None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2."
        )
    return rule(x)


@program("ord", "axis", "keepdims")
def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    x = promotion.inexact("norm", x)
    shape = typeof(x).shape
    if axis is None:
        if ord is None:
            axes = tuple(range(len(shape)))
            return reductions.kept(_euclidean(x, axes), shape, axes, keepdims)
        axis = tuple(range(len(shape)))
    axes = promotion.axes_of("norm", axis, len(shape))
    if len(axes) == 1:
        return reductions.kept(_vector_norm("norm", x, ord, axes), shape, axes, keepdims)
    if len(axes) == 2:
        return reductions.kept(_matrix_norm("norm", _at_end(x, axes), ord), shape, axes, keepdims)
    raise ValueError(f"norm: Improper number of axes for norm: {axis}. Name one axis for vectors, two for matrices.")


def _at_end(x: Any, axes: tuple[int, ...]) -> Any:
    count = typeof(x).ndim
    return structure.transpose(x, permutation=(*[d for d in range(count) if d not in axes], *axes))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors or matrices.

    Args:
        x: array.
        ord: None for the root of the sum of squares; for vectors a number, inf or -inf; for matrices "fro", "nuc", inf,
            -inf, 1, -1, 2 or -2.
        axis: one axis for vectors, two for matrices; None for all of one or two axes, and any number if ord is None.
        keepdims: keep the axes, with size 1.

    Raises:
        ValueError: an order or a number of axes that has no norm.

    Derivative: 0 where the norm is 0, which is its minimum.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0])).item()
    5.0
    """
    return _norm(x, ord=ord, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norms of the matrices of the last two axes; `ord` as in `norm`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    return norm(x, ord, (-2, -1), keepdims)


@program("axis", "keepdims", "ord")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Norms of vectors along one axis, or of all entries of several; None for all axes. `ord` as in `norm`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    x = promotion.inexact("vector_norm", x)
    shape = typeof(x).shape
    axes = promotion.axes_of("vector_norm", axis, len(shape))
    return reductions.kept(_vector_norm("vector_norm", x, ord, axes), shape, axes, keepdims)


# ---- products --------------------------------------------------------------------------------------------------------


@program("n")
def matrix_power(a: Any, n: int) -> Any:
    """Powers of square matrices; negative ones of their inverses.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3).tolist()
    [[1, 3], [0, 1]]
    """
    try:
        n = python.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: exponent must be an integer, got {n!r}.") from None
    a = promotion.array("matrix_power", a)
    shape = typeof(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"matrix_power: needs square matrices; the operand has shape {shape}.")
    if n < 0:
        a, n = inv(a), -n
    found = None
    while n:
        if n & 1:
            found = a if found is None else mx.product(found, a)
        n >>= 1
        a = mx.product(a, a) if n else a
    return mx.identity(shape, typeof(a).dtype) if found is None else found


@program("precision")
def multi_dot(arrays: Any, *, precision: Any = None) -> Any:
    """Product of several matrices, in the order that costs least; the first and last may be vectors.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((1, 3)), jnp.ones((3, 2)), jnp.ones((2,))]).tolist()
    [6.0]
    """
    factors = promotion.same_dtype("multi_dot", list(arrays))
    if not factors:
        raise ValueError("multi_dot: needs at least one array.")
    if len(factors) == 1:
        return factors[0]
    ranks = [typeof(x).ndim for x in factors]
    if ranks[0] not in (1, 2) or ranks[-1] not in (1, 2) or any(rank != 2 for rank in ranks[1:-1]):
        raise ValueError(f"multi_dot: input arrays must have exactly two dimensions, the ends one or two, not {ranks}.")
    if ranks[0] == 1:
        factors[0] = structure.expand_dims(factors[0], (0,))
    if ranks[-1] == 1:
        factors[-1] = structure.expand_dims(factors[-1], (1,))
    sides = [typeof(x).shape for x in factors]
    if any(left[1] != right[0] for left, right in itertools.pairwise(sides)):
        raise ValueError(
            f"multi_dot: shapes {sides} do not chain: each must have as many columns as the next has rows."
        )
    out = _chain(factors, _cheapest([sides[0][0], *[s[1] for s in sides]]), 0, len(factors) - 1, precision)
    dropped = (0,) * (ranks[0] == 1) + (1,) * (ranks[-1] == 1)
    return structure.squeeze(out, dimensions=dropped) if dropped else out


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of factors i to j, factor k being of shape (sizes[k], sizes[k + 1])."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i, j] = min(costs)
            split[i, j] = i + costs.index(cost[i, j])
    return split


def _chain(factors: list[Any], split: dict[tuple[int, int], int], i: int, j: int, precision: Any) -> Any:
    if i == j:
        return factors[i]
    k = split[i, j]
    left, right = _chain(factors, split, i, k, precision), _chain(factors, split, k + 1, j, precision)
    return contract.dot(left, right, (((1,), (0,)), ((), ())), precision)


@program("ind")
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of an array as a linear map from its last axes to its first `ind`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4), ind=2).shape
    (4, 2, 2)
    """
    a = promotion.inexact("tensorinv", a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be a positive integer; got {ind}.")
    shape = typeof(a).shape
    rows, columns = (int(np.prod(part)) for part in (shape[:ind], shape[ind:]))
    if rows != columns:
        raise ValueError(
            f"tensorinv: the product of the first {ind} sizes of {shape} is {rows}, and that of the others {columns}. "
            "They must be equal."
        )
    return structure.reshape_to(inv(structure.reshape_to(a, (rows, columns))), (*shape[ind:], *shape[:ind]))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """x where tensordot(a, x, x.ndim) = b.

    Args:
        a: array of shape (*b.shape, *x.shape), or one that has it once `axes` are moved to the end.
        b: array.
        axes: axes of `a` to move to the end first.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2))).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    return _tensorsolve(a, b, axes=tuple(axes) if axes is not None else None)


@program("axes")
def _tensorsolve(a: Any, b: Any, axes: Any) -> Any:
    a, b = _both("tensorsolve", a, b)
    if axes is not None:
        count = typeof(a).ndim
        moved = promotion.axes_of("tensorsolve", axes, count)
        a = structure.transpose(a, permutation=(*[d for d in range(count) if d not in moved], *moved))
    wanted = typeof(a).shape[typeof(b).ndim :]
    size = int(np.prod(wanted))
    if typeof(b).size != size or typeof(a).size != size * size:
        raise ValueError(
            f"tensorsolve: a of shape {typeof(a).shape} and b of shape {typeof(b).shape} do not fit: a needs the shape "
            "of b, followed by that of the result, of as many entries."
        )
    x = linalg.solve(structure.reshape_to(a, (size, size)), structure.reshape_to(b, (size, 1)))
    return structure.reshape_to(x, wanted)


# ---- the same under the array API's names ----------------------------------------------------------------------------


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Vector product of vectors with three entries along `axis`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x1, x2 = promotion.array("cross", x1), promotion.array("cross", x2)
    sizes = [typeof(x).shape[promotion.axis_of("cross", axis, typeof(x).ndim)] for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(
            f"cross: both arrays must be (arrays of) 3-dimensional vectors, but they have {sizes} entries."
        )
    return statistics.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Diagonals of the matrices of the last two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return shapes.diagonal(x, offset, -2, -1)


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Matrix product; as `numpy.matmul`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.matmul(jnp.array([[1, 2]]), jnp.array([[3], [4]])).tolist()
    [[11]]
    """
    return _matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def matrix_transpose(x: Any, /) -> Any:
    """`x` with its last two axes exchanged.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2]])).tolist()
    [[1], [2]]
    """
    return shapes.matrix_transpose(x)


def outer(x1: Any, x2: Any, /) -> Any:
    """Products of every entry of one vector with every entry of another.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = promotion.array("outer", x1), promotion.array("outer", x2)
    if typeof(x1).ndim != 1 or typeof(x2).ndim != 1:
        raise ValueError(
            f"outer: Input arrays must be one-dimensional, but they have shapes {typeof(x1).shape} and "
            f"{typeof(x2).shape}. Ravel them first."
        )
    return _outer(x1, x2)


def tensordot(
    x1: Any, x2: Any, /, *, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Sum over pairs of axes; as `numpy.tensordot`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.tensordot(jnp.array([1, 2]), jnp.array([3, 4]), axes=1).item()
    11
    """
    return _tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of the matrices of the last two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]])).item()
    5
    """
    return shapes.trace(x, offset, -2, -1, dtype)


def vecdot(
    x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None
) -> Any:  # fmt: skip
    """Sum of conj(x1) * x2 along an axis; as `numpy.vecdot`.

    >>> from morphax import numpy as jnp
    >>> jnp.linalg.vecdot(jnp.array([1, 2]), jnp.array([3, 4])).item()
    11
    """
    return _vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


tracebacks.bound_functions(globals())
