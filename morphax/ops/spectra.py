"""Spectra of matrices, which are the last two axes of their operands: singular values, eigenvalues, determinants.

Where a derivative divides by a difference of eigenvalues or singular values that are equal to rounding, the term is
left out: in a function of the subspace that they share it has no part.

[Giles] M. Giles, An extended collection of matrix derivative results, Oxford NA-08/01, 2008.
[Townsend] J. Townsend, Differentiating the singular value decomposition, 2016.
"""

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.show import readable
from morphax.ops import elementwise as ew
from morphax.ops import lapack, linalg, reduce, structure
from morphax.ops.family import like, typeof
from morphax.ops.matrices import (
    ALL,
    I32,
    adjoint,
    along,
    as_dtype_of,
    check_matrix,
    conjugate,
    diagonal,
    identity,
    no_derivative,
    off_diagonal,
    on_cpu,
    on_diagonal,
    part,
    places,
    product,
    real_part,
    row,
    scale_columns,
    scale_rows,
    square_type,
    transposed,
    upper_part,
    with_taus,
)
from morphax.support import dtypes

# ---- spectra ---------------------------------------------------------------------------------------------------------


@readable
class SvdAlgorithm(enum.Enum):
    """How singular values are computed. CPUs have divide and conquer, the default, and QR."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


@readable
class EighImplementation(enum.Enum):
    """How eigenvalues of symmetric matrices are computed. CPUs have QR (with divide and conquer) only."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


@readable
class EigImplementation(enum.Enum):
    """Which library computes eigenvalues of general matrices. CPUs have LAPACK only."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


def _inverse_gaps(w: Any) -> Any:
    """1 / (w[j] - w[i]), and 0 where the two are equal to rounding."""
    shape = typeof(w).shape
    square = (*shape, shape[-1])
    rows, columns = along(w, square, -2), along(w, square, -1)
    gap = ew.sub(columns, rows)
    size = ew.abs(w)
    last = (len(shape) - 1,)
    scale = reduce.reduce_max(size, axes=last) if shape[-1] else ew.reduce_sum(size, axes=last)
    limit = ew.mul(scale, like(size, 4 * float(dtypes.finfo(typeof(size).dtype).eps)))
    close = ew.le(ew.abs(gap), ew.broadcast(limit, square, (len(shape) - 1, len(shape))))
    return ew.select_n(close, ew.div(like(gap, 1), ew.select_n(close, gap, like(gap, 1))), like(gap, 0))


def _guarded_inverse(x: Any) -> Any:
    """1 / x, and 0 where x is 0."""
    is_zero = ew.eq(x, like(x, 0))
    return ew.select_n(is_zero, ew.div(like(x, 1), ew.select_n(is_zero, x, like(x, 1))), like(x, 0))


def _svd_type(
    x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any
) -> tuple[ShapedArray, ...]:
    m, n = check_matrix("svd", x)
    k = min(m, n)
    batch = x.shape[:-2]
    s = ShapedArray((*batch, k), dtypes.to_real(x.dtype))
    if not compute_uv:
        return (s,)
    rows, columns = (m, n) if full_matrices else (k, k)
    return s, x.update(shape=(*batch, m, rows), weak_type=False), x.update(shape=(*batch, columns, n), weak_type=False)


def svd_of(x: Any, full_matrices: bool = False, algorithm: Any = None) -> list[Any]:
    """Singular values, left and right vectors."""
    return svd(x, full_matrices=full_matrices, compute_uv=True, subset_by_index=None, algorithm=algorithm)


def _svd_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (a,), (t,) = primals, tangents
    if t is None:
        outs = svd(a, **params)
        return outs, [None] * len(outs)
    if not params["compute_uv"]:
        s, u, vt = svd_of(a, algorithm=params["algorithm"])
        return [s], [real_part(diagonal(product(product(adjoint(u), t), adjoint(vt))))]
    s, u, vt = outs = svd_of(a, params["full_matrices"], params["algorithm"])
    k = typeof(s).shape[-1]
    left, right = part(u, ALL, slice(k)), adjoint(part(vt, slice(k), ALL))
    ts, tu, tv = _svd_tangents(s, left, right, t)
    # Columns that complete U or V stay orthogonal to the others.
    if typeof(u).shape[-1] > k:
        rest = part(u, ALL, slice(k, None))
        tu = structure.concatenate(tu, ew.neg(product(left, product(adjoint(tu), rest))), dimension=typeof(u).ndim - 1)
    tvt = adjoint(tv)
    if typeof(vt).shape[-2] > k:
        rest = part(vt, slice(k, None), ALL)
        moved = ew.neg(product(product(rest, tv), adjoint(right)))
        tvt = structure.concatenate(tvt, moved, dimension=typeof(vt).ndim - 2)
    return outs, [ts, tu, tvt]


def _svd_tangents(s: Any, u: Any, v: Any, t: Any) -> tuple[Any, Any, Any]:
    # With M = U^H dA V: dS = Re diag(M) and U^H dU, V^H dV have, off the diagonal, the entries
    # h_ij / (s_j - s_i) +- k_ij / (s_j + s_i), where h and k are the Hermitian and skew parts of M. This is
    # [Townsend, section 2] with s_j^2 - s_i^2 taken apart, so that equal singular values leave k in.
    moved = product(adjoint(u), t)
    m = product(moved, v)
    half = ew.mul(m, like(m, 0.5))
    hermitian, skew = ew.add(half, adjoint(half)), ew.sub(half, adjoint(half))
    square = typeof(m).shape
    sums = ew.add(along(s, square, -2), along(s, square, -1))
    # Phases of complex vectors are free: what turns U against V is shared by both, as the diagonal of k.
    turning = ew.mul(skew, as_dtype_of(_guarded_inverse(sums), m))
    mixing = ew.mul(hermitian, as_dtype_of(_inverse_gaps(s), m))
    tu, tv = product(u, ew.add(mixing, turning)), product(v, ew.sub(mixing, turning))
    inverse = as_dtype_of(_guarded_inverse(s), m)
    rows, columns = typeof(t).shape[-2:]
    if rows > columns:
        outside = ew.sub(product(t, v), product(u, m))
        tu = ew.add(tu, scale_columns(outside, inverse))
    if columns > rows:
        outside = ew.sub(adjoint(moved), product(v, adjoint(m)))
        tv = ew.add(tv, scale_columns(outside, inverse))
    return real_part(diagonal(m)), tu, tv


svd = row("svd", type=_svd_type, lower=on_cpu("svd", lapack.lower_svd), jvp=_svd_jvp, multiple=True)


def _eigh_type(
    x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, algorithm: Any
) -> tuple[ShapedArray, ...]:
    check_matrix("eigh", x, square=True)
    return x.update(weak_type=False), ShapedArray(x.shape[:-1], dtypes.to_real(x.dtype))


def _eigh_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # With M = V^H dA V: dw = diag(M) and dV = V (M_ij / (w_j - w_i)) [Giles, section 3.1].
    (a,), (t,) = primals, tangents
    v, w = outs = eigh(a, **params)
    if t is None:
        return outs, [None, None]
    m = product(product(adjoint(v), linalg.hermitian_from(t, params["lower"])), v)
    tv = product(v, ew.mul(m, as_dtype_of(_inverse_gaps(w), m)))
    return outs, [tv, real_part(diagonal(m))]


eigh = row("eigh", type=_eigh_type, lower=on_cpu("eigh", lapack.lower_eigh), jvp=_eigh_jvp, multiple=True)


def eigh_of(x: Any, lower: bool = True) -> tuple[Any, Any]:
    """Eigenvalues in rising order, and eigenvectors, of symmetric or Hermitian matrices."""
    v, w = eigh(x, lower=lower, sort_eigenvalues=True, subset_by_index=None, algorithm=None)
    return w, v


def _eig_type(
    x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool, implementation: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    check_matrix("eig", x, square=True)
    dtype = dtypes.to_complex(x.dtype)
    vectors = ShapedArray(x.shape, dtype)
    return (ShapedArray(x.shape[:-1], dtype), *[vectors] * (compute_left_eigenvectors + compute_right_eigenvectors))


def eig_of(x: Any) -> list[Any]:
    """Eigenvalues and right eigenvectors."""
    return eig(
        x, compute_left_eigenvectors=False, compute_right_eigenvectors=True, enable_eigvec_derivs=True,
        implementation=None,
    )  # fmt: skip


def _eigenvector_tangents(w: Any, v: Any, t: Any) -> tuple[Any, Any]:
    # With M = V^-1 dA V: dw = diag(M) and dV = V (M_ij / (w_j - w_i)) up to a factor for each column [Giles, section
    # 3.1]. LAPACK's columns have norm 1, and their largest entry is real, which decides the factor.
    m = linalg.solve(v, product(t, v))
    moved = product(v, ew.mul(m, _inverse_gaps(w)))
    rows = typeof(v).ndim - 2
    stretched = ew.reduce_sum(ew.real(ew.mul(conjugate(v), moved)), axes=(rows,))
    moved = ew.sub(moved, scale_columns(v, as_dtype_of(stretched, v)))
    turned = ew.mul(_at_largest(v, ew.imag(moved)), _guarded_inverse(_at_largest(v, ew.real(v))))
    return diagonal(m), ew.sub(moved, scale_columns(v, ew.complex(like(turned, 0), turned)))


def _at_largest(v: Any, x: Any) -> Any:
    """Entries of `x` where the columns of `v` have their largest entries."""
    shape = typeof(v).shape
    rows = len(shape) - 2
    if not shape[-1]:
        return ew.reduce_sum(x, axes=(rows,))
    largest = reduce.argmax(ew.abs(v), axes=(rows,), index_dtype=I32)
    here = ew.eq(structure.iota_along(I32, shape, rows), along(largest, shape, -1))
    return ew.reduce_sum(ew.select_n(here, like(x, 0), x), axes=(rows,))


def _eig_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (a,), (t,) = primals, tangents
    outs = list(eig(a, **params))
    if t is None:
        return outs, [None] * len(outs)
    w = outs[0]
    t = as_dtype_of(t, w)
    right = outs[-1] if params["compute_right_eigenvectors"] else eig_of(a)[1]
    tw, tv = _eigenvector_tangents(w, right, t)
    moved = [tw]
    if params["compute_left_eigenvectors"]:  # right eigenvectors of A^H, whose eigenvalues are the conjugates
        moved.append(_eigenvector_tangents(conjugate(w), outs[1], adjoint(t))[1])
    return outs, moved + [tv] * params["compute_right_eigenvectors"]


eig = row("eig", type=_eig_type, lower=on_cpu("eig", lapack.lower_eig), jvp=_eig_jvp, multiple=True)


# ---- other normal forms ----------------------------------------------------------------------------------------------


def _schur_type(
    x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> tuple[ShapedArray, ...]:
    check_matrix("schur", x, square=True)
    return (x,) * (1 + compute_schur_vectors)


schur = row(
    "schur",
    type=_schur_type,
    lower=on_cpu("schur", lapack.lower_schur),
    jvp=no_derivative("schur", "Differentiate eig instead, or a function of the matrix that has its own rule."),
    multiple=True,
)

hessenberg = row(
    "hessenberg",
    type=with_taus("hessenberg"),
    lower=on_cpu("hessenberg", lapack.lower_hessenberg),
    jvp=no_derivative("hessenberg", "Differentiate what is computed from the matrix itself."),
    multiple=True,
)


def _tridiagonal_type(x: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    _, n = check_matrix("tridiagonal", x, square=True)
    if not n:
        raise ValueError(f"tridiagonal: a matrix of shape {x.shape} has no diagonal. Give matrices with rows.")
    real = dtypes.to_real(x.dtype)
    batch = x.shape[:-2]
    return x, ShapedArray((*batch, n), real), ShapedArray((*batch, n - 1), real), ShapedArray((*batch, n - 1), x.dtype)


tridiagonal = row(
    "tridiagonal",
    type=_tridiagonal_type,
    lower=on_cpu("tridiagonal", lapack.lower_tridiagonal),
    jvp=no_derivative("tridiagonal", "Differentiate eigh instead."),
    multiple=True,
)


# ---- determinants ----------------------------------------------------------------------------------------------------


def _vector_type(name: str) -> Callable[..., Any]:
    def rule(x: ShapedArray) -> ShapedArray:
        check_matrix(name, x, square=True)
        return x.update(shape=x.shape[:-2])

    return rule


def parity(pivots: Any) -> Any:
    """Whether the exchanges of `lu` are odd in number."""
    shape = typeof(pivots).shape
    moved = ew.ne(pivots, structure.iota_along(I32, shape, len(shape) - 1))
    count = ew.reduce_sum(ew.convert(moved, I32), axes=(len(shape) - 1,))
    return ew.eq(ew.and_(count, np.int32(1)), np.int32(1))


def _det_by_lu(x: Any) -> Any:
    factors, pivots, _ = linalg.lu(x)
    size = reduce.reduce_prod(diagonal(factors), axes=(typeof(x).ndim - 2,))
    return ew.select_n(parity(pivots), size, ew.neg(size))


def _det_jvp(primals: Any, tangents: Any) -> Any:
    # Jacobi: d det(A) = tr(adj(A) dA), for every A.
    (a,), (t,) = primals, tangents
    if t is None:
        return det(a), None
    terms = ew.mul(t, transposed(adjugate(a)))
    ndim = typeof(a).ndim
    return det(a), ew.reduce_sum(terms, axes=(ndim - 2, ndim - 1))


det = row("det", type=_vector_type("det"), lower=lapack.composed(lambda x: _det_by_lu(x)), jvp=_det_jvp)


def _orientation(u: Any, vt: Any) -> Any:
    return ew.mul(det(u), det(vt))


def _products_without(s: Any) -> tuple[Any, Any]:
    """The products of all entries but one, and of all but two (a matrix, zeros on its diagonal), without division."""
    shape = typeof(s).shape
    square = (*shape, shape[-1])
    last = len(shape) - 1
    before = reduce.cumprod(_shifted_in(s, 1), axis=last, reverse=False)
    after = reduce.cumprod(_shifted_in(s, -1), axis=last, reverse=True)
    rows, columns = places(square)
    # Row i of `between`: the products of s[i+1], ..., s[j-1].
    later = ew.select_n(ew.gt(columns, rows), like(s, 1), along(s, square, -1))
    between = reduce.cumprod(_shifted_in(later, 1), axis=last + 1, reverse=False)
    pairs = upper_part(scale_columns(scale_rows(between, before), after), 1)
    return ew.mul(before, after), ew.add(pairs, transposed(pairs))


def _shifted_in(x: Any, by: int) -> Any:
    """The last axis moved by one, ones coming in."""
    config = [(0, 0, 0)] * (typeof(x).ndim - 1) + [(by, -by, 0)]
    return structure.pad(x, like(x, 1), padding_config=tuple(config))


def _adjugate_by_svd(x: Any) -> Any:
    # A = U S V^H: adj(A) = det(U V^H) V adj(S) U^H, and adj(S) has the products of all singular values but one.
    s, u, vt = svd_of(x)
    single, _ = _products_without(s)
    return _turned(x, u, vt, on_diagonal(along(single, typeof(x).shape, -1)))


def _turned(x: Any, u: Any, vt: Any, middle: Any) -> Any:
    """det(U V^H) V middle U^H."""
    orientation = ew.broadcast(_orientation(u, vt), typeof(x).shape, (typeof(x).ndim - 2, typeof(x).ndim - 1))
    return ew.mul(orientation, product(product(adjoint(vt), as_dtype_of(middle, x)), adjoint(u)))


def _adjugate_jvp(primals: Any, tangents: Any) -> Any:
    # For a diagonal S and M = U^H dA V: d adj(S) has -M_ij prod_(k not i, j) s_k off the diagonal, and
    # sum_k M_kk prod_(l not i, k) s_l on it.
    (a,), (t,) = primals, tangents
    if t is None:
        return adjugate(a), None
    s, u, vt = svd_of(a)
    _, pairs = _products_without(s)
    pairs = as_dtype_of(pairs, a)
    m = product(product(adjoint(u), t), adjoint(vt))
    diagonals = ew.reduce_sum(scale_columns(pairs, diagonal(m)), axes=(typeof(a).ndim - 1,))
    middle = ew.sub(on_diagonal(along(diagonals, typeof(a).shape, -1)), off_diagonal(ew.mul(m, pairs)))
    return adjugate(a), _turned(a, u, vt, middle)


def _lower_adjugate(low: Any, ins: Any, outs: Any, x: Any) -> Any:
    """det(A) A^-1 where no matrix of the batch is near a singular one, which is faster; else by the singular values."""
    by_svd, by_lu = lapack.composed(_adjugate_by_svd), lapack.composed(_adjugate_by_lu)
    regular = lapack.composed(_all_regular)(low, ins, (ShapedArray((), dtypes.bool_),), x)
    branches = [((), lambda: by_lu(low, ins, outs, x)), ((), lambda: by_svd(low, ins, outs, x))]
    return low.op("stablehlo.if", outs, regular, None, branches)


def _all_regular(x: Any) -> Any:
    pivots = ew.abs(diagonal(linalg.lu(x)[0]))
    shape = typeof(pivots).shape
    if not typeof(pivots).size:
        return np.True_
    last = (len(shape) - 1,)
    limit = like(pivots, float(np.sqrt(dtypes.finfo(typeof(pivots).dtype).eps)))
    least, most = reduce.reduce_min(pivots, axes=last), reduce.reduce_max(pivots, axes=last)
    return reduce.reduce_and(ew.gt(least, ew.mul(most, limit)), axes=tuple(range(len(shape) - 1)))


def _adjugate_by_lu(x: Any) -> Any:
    shape = typeof(x).shape
    size = ew.broadcast(_det_by_lu(x), shape, (len(shape) - 2, len(shape) - 1))
    return ew.mul(size, linalg.solve(x, identity(shape, typeof(x).dtype)))


adjugate = row("adjugate", type=square_type("adjugate"), lower=_lower_adjugate, jvp=_adjugate_jvp)
