"""Linear algebra of lax: the factorisations and solves that LAPACK stands behind. Matrices are the last two axes."""

import operator as python
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.control.cond import cond
from morphax.control.loops import while_loop
from morphax.numpy import creation, promotion
from morphax.ops import elementwise as ew
from morphax.ops import linalg as ops
from morphax.ops import matrices as mx
from morphax.ops import reduce, spectra, structure
from morphax.ops.family import like, typeof
from morphax.ops.spectra import EighImplementation, EigImplementation, SvdAlgorithm
from morphax.support import dtypes

# ---- arguments -------------------------------------------------------------------------------------------------------


def _matrix(name: str, x: Any) -> Any:
    x = promotion.inexact(name, x)
    if typeof(x).ndim < 2:
        raise ValueError(f"{name}: the operand must be a matrix, or an array of them; it has shape {typeof(x).shape}.")
    return x


def _symmetrized(name: str, x: Any) -> Any:
    shape = typeof(x).shape
    if shape[-1] != shape[-2]:
        raise ValueError(f"{name}: the operand must be square matrices; it has shape {shape}.")
    return ew.div(ew.add(x, mx.adjoint(x)), like(x, 2))


def _available(name: str, given: Any, kind: Any, usable: tuple[Any, ...]) -> Any:
    if given is None or given in usable:
        return given
    if not isinstance(given, kind):
        raise ValueError(f"{name}: {given!r} must be None or one of {', '.join(map(repr, kind))}.")
    raise NotImplementedError(f"{name}: {given!r} has no kernel here. Give None, or {' or '.join(map(repr, usable))}.")


def _range(name: str, subset: Any, size: int) -> tuple[int, int] | None:
    if subset is None:
        return None
    start, stop = (python.index(k) for k in subset)
    if not 0 <= start <= stop <= size:
        raise ValueError(f"{name}: subset_by_index {subset} must lie in order between 0 and {size}.")
    return start, stop


def _columns(x: Any, start: int, stop: int) -> Any:
    return structure.slice_axis(x, start, stop, typeof(x).ndim - 1)


# ---- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular factor L of positive definite matrices, x = L L^H; NaN where there is none.

    Args:
        x: array of shape (..., n, n).
        symmetrize_input: take (x + x^H) / 2; without it only the lower triangle is read.

    >>> from morphax import numpy as jnp
    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = _matrix("cholesky", x)
    return ops.cholesky(_symmetrized("cholesky", x) if symmetrize_input else x)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """Upper triangular S with S^T S = R^T R + w w^T, in O(n^2).

    Args:
        r_matrix: upper triangular R of shape (..., n, n), real.
        w_vector: w of shape (..., n).

    >>> from morphax import numpy as jnp
    >>> cholesky_update(jnp.array([[3.0]]), jnp.array([4.0])).tolist()
    [[5.0]]
    """
    return ops.cholesky_update(*_same("cholesky_update", r_matrix, w_vector))


def _same(name: str, *args: Any) -> list[Any]:
    """Operands as they are, Python numbers and integers apart: their shapes stay."""
    return [promotion.inexact(name, x) for x in args]


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """alpha a a^T + beta c for symmetric c.

    Args:
        a_matrix: array of shape (..., n, k).
        c_matrix: array of shape (..., n, n).
        alpha: static float.
        beta: static float.
        symmetrize_output: take the lower triangle for the upper one too.

    >>> from morphax import numpy as jnp
    >>> symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2))).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    a, c = _same("symmetric_product", a_matrix, c_matrix)
    out = ops.symmetric_product(a, c, alpha=float(alpha), beta=float(beta))
    if not symmetrize_output:
        return out
    low = mx.lower_part(out, -1)
    return ew.add(mx.lower_part(out), mx.transposed(low))


# ---- solves ----------------------------------------------------------------------------------------------------------


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """x where x op(a) = b, or op(a) x = b with `left_side`, for triangular matrices a.

    Args:
        a: array of shape (..., n, n).
        b: array of shape (..., m, n), or (..., n, m) with `left_side`; or (..., n).
        left_side: on which side of x the matrix stands.
        lower: a is lower rather than upper triangular; its other triangle is not read.
        transpose_a: op transposes.
        conjugate_a: op conjugates.
        unit_diagonal: take ones for the diagonal, which is not read.

    Returns:
        Array of the shape of b.

    >>> from morphax import numpy as jnp
    >>> triangular_solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]), left_side=True).tolist()
    [1.0, 0.5]
    """
    a, b = _same("triangular_solve", a, b)
    vectors = typeof(b).ndim == typeof(a).ndim - 1
    if vectors:
        b = structure.expand_dims(b, (typeof(b).ndim if left_side else typeof(b).ndim - 1,))
    out = ops.solve_triangular(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and dtypes.is_complex(typeof(a).dtype),
        unit_diagonal=bool(unit_diagonal),
    )
    return structure.squeeze(out, dimensions=(typeof(out).ndim - (1 if left_side else 2),)) if vectors else out


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """x where a x = b for tridiagonal matrices a.

    Args:
        dl: entries below the diagonal, a[i, i - 1] = dl[i], shape (..., n); the first is not read.
        d: the diagonal, shape (..., n).
        du: entries above it, a[i, i + 1] = du[i], shape (..., n); the last is not read.
        b: array of shape (..., n, k).
        perturb_singular: replace pivots of 0 by small ones, so that the result is finite.

    >>> from morphax import numpy as jnp
    >>> none = jnp.zeros(2)
    >>> tridiagonal_solve(none, jnp.array([2.0, 4.0]), none, jnp.ones((2, 1))).tolist()
    [[0.5], [0.25]]
    """
    return ops.tridiagonal_solve(*_same("tridiagonal_solve", dl, d, du, b), perturb_singular=bool(perturb_singular))


# ---- LU and QR -------------------------------------------------------------------------------------------------------


def lu(x: Any) -> tuple[Any, Any, Any]:
    """LU factorisation with exchanges of rows: x[permutation] = L U.

    Args:
        x: array of shape (..., m, n).

    Returns:
        L below and U on and above the diagonal of one array, as x; pivots, int32, of shape (..., min(m, n)): row k was
        exchanged with row pivots[k]; the permutation, int32, of shape (..., m).

    >>> from morphax import numpy as jnp
    >>> factors, pivots, permutation = lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
    >>> factors.tolist(), permutation.tolist()
    ([[2.0, 2.0], [0.5, 1.0]], [1, 0])
    """
    factors, pivots, permutation = ops.lu(_matrix("lu", x))
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation that the exchanges of rows k and pivots[k], one after the other, make.

    >>> from morphax import numpy as jnp
    >>> lu_pivots_to_permutation(jnp.array([2, 2, 2]), 3).tolist()
    [2, 0, 1]
    """
    return ops.lu_pivots_to_permutation(
        promotion.array("lu_pivots_to_permutation", pivots), permutation_size=python.index(permutation_size)
    )


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """Orthonormal Q and upper triangular R with x = Q R.

    Args:
        x: array of shape (..., m, n).
        pivoting: order the columns by falling norm of what is left: x[..., p] = Q R.
        full_matrices: Q of shape (..., m, m) rather than (..., m, min(m, n)).
        use_magma: None or a bool; there is one implementation.

    Returns:
        Q, R; and with `pivoting` p, int32, of shape (..., n).

    >>> from morphax import numpy as jnp
    >>> q, r, p = qr(jnp.array([[1.0, 3.0], [0.0, 4.0]]), pivoting=True)
    >>> p.tolist()
    [1, 0]
    """
    x = _matrix("qr", x)
    return tuple(ops.qr(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=use_magma))


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of the product of reflections H_1 ... H_k, H_i = 1 - taus[i] v_i v_i^H.

    Args:
        a: array of shape (..., m, n), m >= n; v_i is column i below the diagonal, with 1 on it and 0 above.
        taus: array of shape (..., k), k <= n.

    >>> from morphax import numpy as jnp
    >>> householder_product(jnp.zeros((2, 1)), jnp.array([2.0])).shape
    (2, 1)
    """
    return ops.householder_product(*_same("householder_product", a, taus))


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """Q c, or c Q without `left`, for the product Q of the reflections in `a` and `taus`; with `transpose` Q^H for Q.

    Args:
        a: array of shape (..., m, k), as in `householder_product`.
        taus: array of shape (..., k).
        c: array of shape (..., m, n), or (..., n, m) without `left`.

    >>> from morphax import numpy as jnp
    >>> ormqr(jnp.zeros((2, 1)), jnp.array([2.0]), jnp.ones((2, 1))).tolist()
    [[-1.0], [1.0]]
    """
    return ops.ormqr(*_same("ormqr", a, taus, c), left=bool(left), transpose=bool(transpose))


# ---- spectra ---------------------------------------------------------------------------------------------------------


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Left vectors, singular values in falling order, and right vectors: x = U S Vh.

    Args:
        x: array of shape (..., m, n).
        full_matrices: give m left and n right vectors, rather than min(m, n) of each.
        compute_uv: without it return the singular values alone.
        subset_by_index: (start, stop) of those wanted; needs full_matrices=False.
        algorithm: None, SvdAlgorithm.DEFAULT or DIVIDE_AND_CONQUER, or QR.

    >>> from morphax import numpy as jnp
    >>> svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False).tolist()
    [4.0, 3.0]
    """
    x = _matrix("svd", x)
    usable = (SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER)
    algorithm = _available("svd", algorithm, SvdAlgorithm, usable)
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be set. Pass full_matrices=False.")
    subset = _range("svd", subset_by_index, min(typeof(x).shape[-2:]))
    outs = spectra.svd(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), subset_by_index=None, algorithm=algorithm
    )
    s = outs[0] if subset is None else _columns(outs[0], *subset)
    if not compute_uv:
        return s
    _, u, vh = outs
    if subset is not None:
        u, vh = _columns(u, *subset), structure.slice_axis(vh, *subset, typeof(vh).ndim - 2)
    return u, s, vh


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Orthonormal eigenvectors and eigenvalues of symmetric or Hermitian matrices.

    Args:
        x: array of shape (..., n, n).
        lower: which triangle is read without `symmetrize_input`.
        symmetrize_input: take (x + x^H) / 2 first.
        sort_eigenvalues: they are in rising order in any case.
        subset_by_index: (start, stop) of those wanted.
        implementation: None or EighImplementation.QR.

    Returns:
        eigenvectors, in columns, as x; eigenvalues, real, of shape (..., n).

    >>> from morphax import numpy as jnp
    >>> eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1].tolist()
    [1.0, 2.0]
    """
    x = _matrix("eigh", x)
    implementation = _available("eigh", implementation, EighImplementation, (EighImplementation.QR,))
    subset = _range("eigh", subset_by_index, typeof(x).shape[-1])
    v, w = spectra.eigh(
        _symmetrized("eigh", x) if symmetrize_input else x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=None,
        algorithm=implementation,
    )
    return (v, w) if subset is None else (_columns(v, *subset), _columns(w, *subset))


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues, and left and right eigenvectors, of square matrices; all are complex.

    Args:
        x: array of shape (..., n, n).
        compute_left_eigenvectors: return u with u^H x = w u^H, in columns.
        compute_right_eigenvectors: return v with x v = w v, in columns.
        enable_eigvec_derivs: eigenvectors have derivatives in any case: those of vectors of norm 1 whose largest entry
            is real. They are what was asked for where eigenvalues differ, and not otherwise.
        implementation: None or EigImplementation.LAPACK.
        use_magma: None or a bool; there is one implementation.

    Returns:
        A list of the eigenvalues, in no particular order, and of the vectors that were asked for.

    >>> from morphax import numpy as jnp
    >>> eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0].tolist()
    [1j, -1j]
    """
    implementation = _available("eig", implementation, EigImplementation, (EigImplementation.LAPACK,))
    return list(
        spectra.eig(
            _matrix("eig", x),
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
            implementation=implementation,
        )
    )


# ---- other normal forms ----------------------------------------------------------------------------------------------


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """Schur form T, (quasi) upper triangular, and unitary Z with x = Z T Z^H.

    Args:
        x: array of shape (..., n, n).
        compute_schur_vectors: without it return T alone, in a tuple.
        sort_eig_vals: False.
        select_callable: None.

    >>> from morphax import numpy as jnp
    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0].tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("schur: eigenvalues cannot be sorted. Leave sort_eig_vals and select_callable out.")
    outs = spectra.schur(
        _matrix("schur", x),
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=False,
        select_callable=None,
    )
    return tuple(outs)


def hessenberg(a: Any) -> tuple[Any, ...]:
    """Hessenberg form, by unitary similarity, and the reflectors that make it.

    Args:
        a: array of shape (..., n, n).

    Returns:
        The form on and above the first subdiagonal, with the reflectors below it, as a; their scales, (..., n - 1).

    >>> from morphax import numpy as jnp
    >>> hessenberg(jnp.eye(3))[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return tuple(spectra.hessenberg(_matrix("hessenberg", a)))


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """Tridiagonal form of symmetric or Hermitian matrices, by unitary similarity.

    Args:
        a: array of shape (..., n, n).
        lower: which triangle is read.

    Returns:
        The reflectors, as a; the diagonal, real, (..., n); what stands beside it, real, (..., n - 1); the scales of the
        reflectors, (..., n - 1).

    >>> from morphax import numpy as jnp
    >>> tridiagonal(jnp.array([[1.0, 2.0], [2.0, 3.0]]))[1].tolist()
    [1.0, 3.0]
    """
    packed, d, e, taus = spectra.tridiagonal(_matrix("tridiagonal", a), lower=bool(lower))
    return packed, d, e, taus


# ---- polar decomposition ---------------------------------------------------------------------------------------------


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Polar decomposition x = u h, by QR-based dynamically weighted Halley iteration.

    Args:
        x: matrix of shape (m, n), m >= n, of full rank.
        is_hermitian: x is Hermitian, which changes nothing here.
        max_iterations: at most that many steps; None for 10, where 6 suffice in double precision.
        eps: a relative precision; None for that of the dtype.
        dynamic_shape: None.

    Returns:
        u with orthonormal columns; h, positive semidefinite; the number of steps; whether they converged.

    Source: Y. Nakatsukasa, N. J. Higham, Stable and efficient spectral divide and conquer algorithms for the symmetric
    eigenvalue decomposition and the SVD, SIAM J. Sci. Comput. 35, 2013.

    >>> from morphax import numpy as jnp
    >>> u, h, _, converged = qdwh(jnp.array([[-2.0]]))
    >>> round(float(u[0, 0])), round(float(h[0, 0])), bool(converged)
    (-1, 2, True)
    """
    x = _matrix("qdwh", x)
    shape = typeof(x).shape
    if len(shape) != 2 or shape[0] < shape[1]:
        raise ValueError(f"qdwh: needs a matrix with at least as many rows as columns; it has shape {shape}.")
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh: dynamic_shape is not supported. Slice the matrix first.")
    real = dtypes.to_real(typeof(x).dtype)
    eps = float(dtypes.finfo(real).eps) if eps is None else float(eps)
    limit = 10 if max_iterations is None else python.index(max_iterations)
    size = ew.abs(x)
    one, most = (reduce.reduce_max(ew.reduce_sum(size, axes=(d,)), axes=(0,)) for d in (0, 1))
    scale = ew.sqrt(ew.mul(one, most))
    start = mx.as_dtype_of(ew.div(like(scale, 1), scale), x)
    first = ew.mul(x, start)
    moving = np.True_
    carry = (first, creation.full((), eps, real), np.int32(0), moving)

    def turn(carry: Any) -> Any:
        u, low, count, _ = carry
        moved, low = _halley(u, low)
        step = ew.sub(moved, u)
        change = ew.sqrt(ew.reduce_sum(mx.real_part(ew.mul(step, mx.conjugate(step))), axes=(0, 1)))
        far = ew.gt(change, like(change, (4 * eps) ** (1 / 3)))
        open_ = ew.gt(ew.abs(ew.sub(low, like(low, 1))), like(low, 5 * eps))
        return moved, low, ew.add(count, np.int32(1)), ew.or_(far, open_)

    u, _, count, moving = while_loop(lambda c: ew.and_(c[3], ew.lt(c[2], np.int32(limit))), turn, carry)
    # One Newton-Schulz step takes away what rounding left.
    u = ew.sub(ew.mul(u, like(u, 1.5)), ew.mul(mx.product(u, mx.product(mx.adjoint(u), u)), like(u, 0.5)))
    h = mx.product(mx.adjoint(u), x)
    return u, ew.mul(ew.add(h, mx.adjoint(h)), like(h, 0.5)), count, ew.not_(moving)


def _halley(u: Any, low: Any) -> tuple[Any, Any]:
    """One step, and the lower bound of the singular values after it."""
    l2 = ew.mul(low, low)
    root = ew.cbrt(ew.div(ew.mul(like(low, 4), ew.sub(like(low, 1), l2)), ew.mul(l2, l2)))
    h = ew.sqrt(ew.add(like(low, 1), root))
    inner = ew.sub(like(low, 8), ew.mul(root, like(low, 4)))
    inner = ew.add(inner, ew.div(ew.mul(like(low, 8), ew.sub(like(low, 2), l2)), ew.mul(l2, h)))
    a = ew.add(h, ew.mul(ew.sqrt(inner), like(low, 0.5)))
    b = ew.div(ew.square(ew.sub(a, like(low, 1))), like(low, 4))
    c = ew.sub(ew.add(a, b), like(low, 1))
    quotient = ew.div(b, c)
    kept = ew.mul(u, mx.as_dtype_of(quotient, u))
    moved = cond(ew.gt(c, like(c, 100)), _by_qr, _by_cholesky, u, c, ew.sub(a, quotient))
    bound = ew.div(ew.mul(low, ew.add(a, ew.mul(b, l2))), ew.add(like(low, 1), ew.mul(c, l2)))
    return ew.add(kept, moved), ew.min(bound, like(bound, 1))


def _by_qr(u: Any, c: Any, weight: Any) -> Any:
    """weight u (1 + c u^H u)^-1, stably for large c."""
    m, n = typeof(u).shape
    root = ew.sqrt(c)
    stacked = structure.concatenate(
        ew.mul(u, mx.as_dtype_of(root, u)), mx.identity((n, n), typeof(u).dtype), dimension=0
    )
    q, _ = ops.qr(stacked, pivoting=False, full_matrices=False, use_magma=None)
    first, second = structure.split(q, sizes=(m, n), axis=0)
    return ew.mul(mx.product(first, mx.adjoint(second)), mx.as_dtype_of(ew.div(weight, root), u))


def _by_cholesky(u: Any, c: Any, weight: Any) -> Any:
    n = typeof(u).shape[1]
    gram = ew.add(mx.identity((n, n), typeof(u).dtype), ew.mul(mx.product(mx.adjoint(u), u), mx.as_dtype_of(c, u)))
    factor = ops.cholesky(gram)
    y = ops.solve_triangular(factor, u, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    y = ops.solve_triangular(factor, y, left_side=False, lower=True)
    return ew.mul(y, mx.as_dtype_of(weight, u))


cholesky_p = ops.cholesky
cholesky_update_p = ops.cholesky_update
eig_p = spectra.eig
eigh_p = spectra.eigh
hessenberg_p = spectra.hessenberg
householder_product_p = ops.householder_product
lu_p = ops.lu
lu_pivots_to_permutation_p = ops.lu_pivots_to_permutation
ormqr_p = ops.ormqr
qr_p = ops.qr
schur_p = spectra.schur
svd_p = spectra.svd
symmetric_product_p = ops.symmetric_product
triangular_solve_p = ops.triangular_solve
tridiagonal_p = spectra.tridiagonal
tridiagonal_solve_p = ops.tridiagonal_solve
