"""Factorizations of matrices, and equations solved with them. Matrices are the last two axes."""

from typing import Any

from morphax import numpy as jnp
from morphax.numpy import linalg
from morphax.ops import elementwise as ew
from morphax.ops import linalg as ops
from morphax.ops import matrices as mx
from morphax.ops import spectra
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.support import dtypes

# The parameters overwrite_a, overwrite_b, check_finite, lwork, turbo and lapack_driver are SciPy's and have no effect.


def matrix(name: str, a: Any, square: bool = False) -> Any:
    """An argument as floating matrices."""
    a = jnp.asarray(a)
    shape = typeof(a).shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        raise ValueError(f"{name}: takes {'square ' * square}matrices; the shape is {shape}.")
    return a.astype(dtypes.to_inexact(typeof(a).dtype))


def matched(*xs: Any) -> list[Any]:
    """Floating arrays of one dtype."""
    dtype = dtypes.to_inexact(jnp.result_type(*xs))
    return [jnp.asarray(x).astype(dtype) for x in xs]


@program("lower", "overwrite_a", "check_finite")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Upper triangular R with a = R^H R, or lower triangular L with a = L L^H.

    >>> cholesky(jnp.array([[4.0]])).tolist()
    [[2.0]]
    """
    return linalg.cholesky(matrix("cholesky", a, True), upper=not lower)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """The factor as `cholesky`, and `lower`: what `cho_solve` takes.

    >>> cho_factor(jnp.array([[4.0]]))[1]
    False
    """
    return cholesky(a, lower=bool(lower)), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with a x = b, from the result of `cho_factor(a)`.

    >>> cho_solve(cho_factor(jnp.array([[4.0]])), jnp.array([2.0])).tolist()
    [0.5]
    """
    factor, lower = c_and_lower
    return _cho_solve(factor, b, lower=bool(lower))


def _columns(name: str, a: Any, b: Any) -> tuple[Any, bool]:
    """The right side as matrices with the batch of `a`, and whether it was a vector."""
    shape = typeof(b).shape
    vector = len(shape) == 1
    b = b[:, None] if vector else b
    if not shape or typeof(b).shape[-2] != typeof(a).shape[-1]:
        n = typeof(a).shape[-1]
        raise ValueError(f"{name}: b must have {n} rows for a of shape {typeof(a).shape}; its shape is {shape}.")
    batch = jnp.broadcast_shapes(typeof(a).shape[:-2], typeof(b).shape[:-2])
    return jnp.broadcast_to(b, (*batch, *typeof(b).shape[-2:])), vector


@program("lower")
def _cho_solve(factor: Any, b: Any, lower: bool) -> Any:
    factor, b = matched(factor, b)
    b, vector = _columns("cho_solve", factor, b)
    factor = jnp.broadcast_to(factor, (*typeof(b).shape[:-2], *typeof(factor).shape[-2:]))
    for adjoint in (not lower, lower):
        b = ops.solve_triangular(factor, b, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint)
    return b[..., 0] if vector else b


_TRANSPOSED = {0: (False, False), 1: (True, False), 2: (True, True)}


def _check_trans(name: str, trans: Any) -> None:
    if trans not in _TRANSPOSED:
        raise ValueError(f"{name}: trans must be 0, 1 or 2; it is {trans!r}.")


def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: Any = None, check_finite: bool = True,
) -> Any:  # fmt: skip
    """x with a x = b for triangular matrices; `trans` 1 or 2 takes a^T or a^H.

    >>> solve_triangular(jnp.array([[2.0]]), jnp.array([4.0])).tolist()
    [2.0]
    """
    trans = "NTC".index(trans) if isinstance(trans, str) and trans in tuple("NTC") else trans
    _check_trans("solve_triangular", trans)
    return _solve_triangular(a, b, trans=trans, lower=bool(lower), unit_diagonal=bool(unit_diagonal))


@program("trans", "lower", "unit_diagonal")
def _solve_triangular(a: Any, b: Any, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    a, b = matched(a, b)
    b, vector = _columns("solve_triangular", matrix("solve_triangular", a, True), b)
    a = jnp.broadcast_to(a, (*typeof(b).shape[:-2], *typeof(a).shape[-2:]))
    flip, conjugate = _TRANSPOSED[trans]
    x = ops.solve_triangular(
        a, b, left_side=True, lower=lower, transpose_a=flip, conjugate_a=conjugate, unit_diagonal=unit_diagonal
    )
    return x[..., 0] if vector else x


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, debug: bool = False,
    check_finite: bool = True, assume_a: str = "gen",
) -> Any:  # fmt: skip
    """x with a x = b, for general ("gen"), symmetric ("sym"), Hermitian ("her") or positive definite ("pos") matrices.

    >>> solve(jnp.array([[2.0]]), jnp.array([4.0])).tolist()
    [2.0]
    """
    known = ("gen", "sym", "her", "pos")
    if assume_a not in known:
        raise ValueError(f"solve: assume_a must be one of {', '.join(known)}; it is {assume_a!r}.")
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower=lower), b)
    a, b = jnp.asarray(a), jnp.asarray(b)
    if typeof(b).ndim == typeof(a).ndim - 1 and typeof(b).ndim > 1:
        return linalg.solve(a, b[..., None])[..., 0]
    return linalg.solve(a, b)


@program("overwrite_a", "check_finite")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """The triangular factors in one matrix, and the pivots: what `lu_solve` takes.

    >>> lu_factor(jnp.array([[2.0]]))[1].tolist()
    [0]
    """
    factors, pivots, _ = ops.lu(matrix("lu_factor", a))
    return factors, pivots


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with a x = b from the result of `lu_factor(a)`; `trans` 1 or 2 takes a^T or a^H.

    >>> lu_solve(lu_factor(jnp.array([[2.0]])), jnp.array([4.0])).tolist()
    [2.0]
    """
    _check_trans("lu_solve", trans)
    return _lu_solve(*lu_and_piv, b, trans=trans)


@program("trans")
def _lu_solve(factors: Any, pivots: Any, b: Any, trans: int) -> Any:
    factors, b = matched(factors, b)
    b, vector = _columns("lu_solve", factors, b)
    batch, n = typeof(b).shape[:-2], typeof(factors).shape[-1]
    factors = jnp.broadcast_to(factors, (*batch, n, n))
    pivots = jnp.broadcast_to(pivots, (*batch, n))
    order = ops.lu_pivots_to_permutation(pivots, permutation_size=n)
    flip, conjugate = _TRANSPOSED[trans]
    x = ops.lu_solve(factors, order, b, transpose=flip, conjugate=conjugate)
    return x[..., 0] if vector else x


@program("permute_l", "overwrite_a", "check_finite")
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, ...]:
    """P, L and U with a = P L U; with `permute_l`, P L and U.

    >>> [x.tolist() for x in lu(jnp.array([[2.0]]))]
    [[[1.0]], [[1.0]], [[2.0]]]
    """
    a = matrix("lu", a)
    factors, _, order = ops.lu(a)
    m, n = typeof(a).shape[-2:]
    k = min(m, n)
    lower = jnp.tril(factors[..., :, :k], -1) + jnp.eye(m, k, dtype=typeof(a).dtype)
    upper = jnp.triu(factors[..., :k, :])
    p = (jnp.arange(m)[:, None] == order[..., None, :]).astype(dtypes.to_real(typeof(a).dtype))
    return (p.astype(typeof(a).dtype) @ lower, upper) if permute_l else (p, lower, upper)


def _same_mode(name: str, mode: str, known: tuple[str, ...]) -> None:
    if mode not in known:
        raise ValueError(f"{name}: mode must be one of {', '.join(known)}; it is {mode!r}.")


@program("overwrite_a", "lwork", "mode", "pivoting", "check_finite")
def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:  # fmt: skip
    """Q and R with a = Q R, and the columns' order with `pivoting`: "full", "economic" or only "r".

    >>> abs(qr(jnp.array([[2.0]]))[1]).tolist()
    [[2.0]]
    """
    _same_mode("qr", mode, ("full", "r", "economic"))
    outs = ops.qr(matrix("qr", a), pivoting=pivoting, full_matrices=mode != "economic", use_magma=None)
    return tuple(outs[1:]) if mode == "r" else tuple(outs)


@program("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c")
def qr_multiply(
    a: Any, c: Any, mode: str = "right", pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The product of Q of a = Q R with `c`, c Q for "right" and Q c for "left"; then R, and the order of columns.

    >>> abs(qr_multiply(jnp.array([[2.0]]), jnp.array([[3.0]]))[0]).tolist()
    [[3.0]]
    """
    _same_mode("qr_multiply", mode, ("right", "left"))
    a, c = matched(a, c)
    vector = typeof(c).ndim == 1
    if vector:
        c = c[None, :] if mode == "right" else c[:, None]
    q, r, *order = ops.qr(matrix("qr_multiply", a), pivoting=pivoting, full_matrices=False, use_magma=None)
    q = jnp.conj(q) if conjugate else q
    if mode == "left" and typeof(c).shape[-2] != typeof(q).shape[-1]:
        q = ops.qr(a, pivoting=pivoting, full_matrices=True, use_magma=None)[0]
        q = jnp.conj(q) if conjugate else q
    out = c @ q if mode == "right" else q @ c
    return (jnp.ravel(out) if vector else out, r, *order)


@program("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver")
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    """U, the singular values, and V^H; or only the values.

    >>> svd(jnp.array([[2.0]]), compute_uv=False).tolist()
    [2.0]
    """
    out = linalg.svd(matrix("svd", a), full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant.

    >>> det(jnp.array([[2.0]])).item()
    2.0
    """
    return linalg.det(a)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse.

    >>> inv(jnp.array([[2.0]])).tolist()
    [[0.5]]
    """
    return linalg.inv(a)


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Any:  # fmt: skip
    """Eigenvalues in rising order, and eigenvectors, of Hermitian matrices; with `b`, of a v = w b v.

    >>> eigh(jnp.array([[2.0]]), eigvals_only=True).tolist()
    [2.0]
    """
    if eigvals is not None or type != 1:
        raise NotImplementedError("eigh: eigvals and type other than 1 are not supported. Take a slice of the result.")
    return _eigh(a, b, lower=bool(lower), eigvals_only=bool(eigvals_only))


@program("lower", "eigvals_only")
def _eigh(a: Any, b: Any, lower: bool, eigvals_only: bool) -> Any:
    uplo = "L" if lower else "U"
    a = matrix("eigh", a, True)
    if b is None:
        return linalg.eigvalsh(a, uplo) if eigvals_only else tuple(linalg.eigh(a, uplo))
    a, b = matched(a, matrix("eigh", b, True))
    a = ops.hermitian_from(a, lower)
    factor = linalg.cholesky(ops.hermitian_from(b, lower), symmetrize_input=False)
    half = ops.solve_triangular(factor, a, left_side=True, lower=True)
    both = ops.solve_triangular(factor, mx.adjoint(half), left_side=True, lower=True)
    if eigvals_only:
        return linalg.eigvalsh(both)
    w, v = linalg.eigh(both)
    return w, ops.solve_triangular(factor, v, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


@program("eigvals_only", "select", "select_range", "tol", "key")
def _eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool, select: str, select_range: Any, tol: Any, key: Any) -> Any:
    d, e = matched(d, e)
    beside = jnp.zeros((typeof(d).shape[0],) * 2, typeof(e).dtype)
    n = typeof(d).shape[0]
    rows = jnp.arange(n - 1)
    a = beside.at[rows + 1, rows].set(e).at[jnp.arange(n), jnp.arange(n)].set(d)
    low, high = (0, n) if select == "a" else (select_range[0], select_range[1] + 1)
    if eigvals_only:
        return linalg.eigvalsh(a, "L", symmetrize_input=False)[low:high]
    w, v = linalg.eigh(a, "L", symmetrize_input=False)
    return w[low:high], v[:, low:high]


def eigh_tridiagonal(
    d: Any, e: Any, *, eigvals_only: bool = False, select: str = "a", select_range: Any = None, tol: Any = None,
    key: Any = None,
) -> Any:  # fmt: skip
    """Eigenvalues (and vectors) of the Hermitian tridiagonal matrix with diagonal `d` and `e` below it.

    Args:
      select: "a" for all, "i" for those numbered select_range[0] to select_range[1], both included.

    >>> eigh_tridiagonal(jnp.array([1.0, 2.0]), jnp.array([0.0]), eigvals_only=True).tolist()
    [1.0, 2.0]
    """
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal: select='v' has a result of unknown size. Select by 'i'.")
    if select not in ("a", "i"):
        raise ValueError(f"eigh_tridiagonal: select must be a, i or v; it is {select!r}.")
    chosen = None if select_range is None else tuple(map(int, select_range))
    return _eigh_tridiagonal(d, e, eigvals_only=eigvals_only, select=select, select_range=chosen, tol=None, key=None)


@program("output")
def schur(a: Any, output: str = "real") -> tuple[Any, Any]:
    """T and unitary Z with a = Z T Z^H, T triangular: in blocks of 2 for real matrices, unless `output` is "complex".

    >>> schur(jnp.array([[2.0]]))[0].tolist()
    [[2.0]]
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be real or complex; it is {output!r}.")
    a = matrix("schur", a, True)
    if output == "complex":
        a = a.astype(dtypes.to_complex(typeof(a).dtype))
    t, z = spectra.schur(a, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)
    return t, z


@program("check_finite")
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The complex Schur form from a real one.

    >>> rsf2csf(jnp.array([[2.0]]), jnp.array([[1.0]]))[0].real.tolist()
    [[2.0]]
    """
    t, z = matched(T, Z)
    t, z = (x.astype(dtypes.to_complex(typeof(x).dtype)) for x in (t, z))
    triangle, turn = spectra.schur(t, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)
    return triangle, z @ turn


@program("calc_q", "overwrite_a", "check_finite")
def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Hessenberg form H, zero below the first subdiagonal; with `calc_q` also unitary Q with a = Q H Q^H.

    >>> hessenberg(jnp.array([[2.0]])).tolist()
    [[2.0]]
    """
    a = matrix("hessenberg", a, True)
    n = typeof(a).shape[-1]
    if n < 2:
        return (a, jnp.ones_like(a)) if calc_q else a
    packed, taus = spectra.hessenberg(a)
    form = jnp.triu(packed, -1)
    if not calc_q:
        return form
    inner = ops.householder_product(packed[..., 1:, :-1], taus)
    edge = [(0, 0)] * (typeof(a).ndim - 2) + [(1, 0), (1, 0)]
    return form, jnp.pad(inner, edge).at[..., 0, 0].set(1)


@program("side", "method", "eps", "max_iterations")
def polar(a: Any, side: str = "right", *, method: str = "qdwh", eps: Any = None, max_iterations: Any = None) -> Any:
    """Unitary U and positive semidefinite P with a = U P, or a = P U for side="left".

    Both methods, "qdwh" and "svd", go by singular values.

    >>> [x.tolist() for x in polar(jnp.array([[-2.0]]))]
    [[[-1.0]], [[2.0]]]
    """
    if side not in ("right", "left") or method not in ("qdwh", "svd"):
        raise ValueError(f"polar: side must be right or left, method qdwh or svd; they are {side!r} and {method!r}.")
    a = matrix("polar", a)
    u, s, vh = linalg.svd(a, full_matrices=False)
    s = s.astype(typeof(a).dtype)
    unitary = u @ vh
    if side == "right":
        return unitary, mx.adjoint(vh) @ (s[..., :, None] * vh)
    return unitary, (u * s[..., None, :]) @ mx.adjoint(u)


def real_if_real(x: Any, *sources: Any) -> Any:
    """The real part, where all sources are real."""
    complex_source = any(dtypes.is_complex(typeof(s).dtype) for s in sources)
    return x if complex_source else ew.real(x)
