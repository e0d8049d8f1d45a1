"""Rows of linear algebra."""

import numpy as np
import scipy.linalg
from samples import COMPLEXES, Sample, zeros

from morphax.ops import elementwise as ew
from morphax.ops import linalg as la
from morphax.ops import matrices as mx
from morphax.ops import spectra as sp

BOTH = ("float32", "float64", *COMPLEXES)
REAL = ("float32", "float64")
WIDE = ("float64", "complex128")


def t(x):
    return np.swapaxes(x, -1, -2)


def h(x):
    return np.conj(t(x))


def each(fun):
    """`fun` of single matrices, for batches of them; several results are stacked apart."""

    def batched(*operands):
        batch = operands[0].shape[: operands[0].ndim - 2]
        if not batch:
            return fun(*operands)
        made = [each(fun)(*[x[k] for x in operands]) for k in range(batch[0])]
        if isinstance(made[0], (list, tuple)):
            return [np.stack(parts) for parts in zip(*made, strict=True)]
        return np.stack(made)

    return batched


def _random(rng, shape, dtype):
    drawn = rng.normal(size=shape)
    return drawn + 1j * rng.normal(size=shape) if dtype.kind == "c" else drawn


def _positive(rng, shape, dtype):
    x = _random(rng, shape, dtype)
    return x @ h(x) + np.eye(shape[-1])


def _regular(rng, shape, dtype):
    return _random(rng, shape, dtype) + 3 * np.eye(*shape[-2:])


def _band(rng, shape, dtype):
    return _random(rng, shape, dtype) + 4


def _reflectors(rng, shape, dtype):
    return 0.5 * _random(rng, shape, dtype)


def _shrinking(rng, shape, dtype):
    """Columns of clearly different norms, so that pivots are never close."""
    return np.linalg.qr(_random(rng, shape, dtype))[0] @ np.triu(np.full(shape[-1:] * 2, 0.1), 1) + np.linalg.qr(
        _random(rng, shape, dtype)
    )[0] * 2.0 ** -np.arange(shape[-1])


def _lower_half(x):
    """The Hermitian matrix of which x has the lower triangle."""
    low = np.tril(x, -1)
    return low + h(low) + np.real(x) * np.eye(x.shape[-1])


def _cholesky(x):
    return np.linalg.cholesky(_lower_half(x)) if x.size else x


def _lu(x):
    if not x.size:
        return x, np.zeros(min(x.shape), int), np.arange(x.shape[0])
    factors, pivots = scipy.linalg.lu_factor(x)
    order = np.arange(x.shape[0])
    for k, p in enumerate(pivots):
        order[[k, p]] = order[[p, k]]
    return factors, pivots, order


def _permutation(pivots):
    order = np.broadcast_to(np.arange(5), (*pivots.shape[:-1], 5)).copy()
    for b in np.ndindex(pivots.shape[:-1]):
        for k, p in enumerate(pivots[b]):
            order[b][[k, p]] = order[b][[p, k]]
    return order


def _triangular(lower=True, left=True, transpose=False, conjugate=False, unit=False):
    def fun(a, b):
        return la.solve_triangular(
            a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit
        )

    def reference(a, b):
        a = np.tril(a) if lower else np.triu(a)
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1]) if unit else a
        a = t(a) if transpose else a
        a = np.conj(a) if conjugate else a
        return np.linalg.solve(a, b) if left else t(np.linalg.solve(t(a), t(b)))

    return fun, reference


def _tridiagonal_matrix(dl, d, du):
    n = d.shape[-1]
    rows, columns = np.arange(n)[:, None], np.arange(n)
    return (
        np.where(rows == columns, d[..., :, None], 0)
        + np.where(rows == columns + 1, dl[..., :, None], 0)
        + np.where(rows == columns - 1, du[..., :, None], 0)
    )


def _tridiagonal_solve(perturb=False):
    return (
        lambda dl, d, du, b: la.tridiagonal_solve(dl, d, du, b, perturb_singular=perturb),
        lambda dl, d, du, b: np.linalg.solve(_tridiagonal_matrix(dl, d, du), b),
    )


def _solve(transpose):
    return lambda a, b: la.solve(a, b, transpose), lambda a, b: np.linalg.solve(t(a) if transpose else a, b)


def _qr(pivoting=False, full=False):
    def fun(x):
        return la.qr(x, pivoting=pivoting, full_matrices=full, use_magma=None)

    def reference(x):
        if pivoting:
            return scipy.linalg.qr(x, mode="full" if full else "economic", pivoting=True)
        return np.linalg.qr(x, mode="complete" if full else "reduced")

    return fun, each(reference)


def _geqrf(x):
    packed, taus = np.linalg.qr(x, mode="raw")
    return t(packed), taus


def _reflection(a, taus):
    q = np.eye(a.shape[-2], dtype=np.result_type(a, taus))
    for k, tau in enumerate(taus):
        v = np.where(np.arange(a.shape[-2]) > k, a[:, k], 0)
        v[k] = 1
        q = q @ (np.eye(len(v)) - tau * np.outer(v, np.conj(v)))
    return q


def _householder(a, taus):
    if a.ndim > 2:
        return np.stack([_householder(x, y) for x, y in zip(a, taus, strict=True)])
    return _reflection(a, taus)[:, : a.shape[1]]


def _ormqr(left, transpose):
    def reference(a, taus, c):
        q = _reflection(a, taus)
        q = h(q) if transpose else q
        return q @ c if left else c @ q

    return lambda a, taus, c: la.ormqr(a, taus, c, left=left, transpose=transpose), reference


def _svd(full=False, uv=True, algorithm=None):
    return (
        lambda x: sp.svd(x, full_matrices=full, compute_uv=uv, subset_by_index=None, algorithm=algorithm),
        lambda x: (lambda u, s, vt: [s, u, vt] if uv else [s])(*np.linalg.svd(x, full_matrices=full)),
    )


def _complements(x):
    """Projections on what U and V have beside the singular vectors: their bases are free."""
    s, u, vt = sp.svd_of(x, full_matrices=True)
    k = s.shape[-1]
    left, right = mx.part(u, mx.ALL, slice(k, None)), mx.part(vt, slice(k, None), mx.ALL)
    return s, mx.product(left, mx.adjoint(left)), mx.product(mx.adjoint(right), right)


def _complements_reference(x):
    u, s, vt = np.linalg.svd(x)
    k = len(s)
    return s, u[:, k:] @ h(u[:, k:]), h(vt[k:]) @ vt[k:]


def _phaseless(x):
    """What does not depend on the phases of complex singular vectors."""
    s, u, vt = sp.svd_of(x)
    return s, mx.product(mx.scale_columns(u, mx.as_dtype_of(s, u)), vt), mx.product(u, vt)


def _phaseless_reference(x):
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    return s, x, u @ vt


def _eigh(lower=True):
    def reference(x):
        w, v = np.linalg.eigh(x, "L" if lower else "U")
        return v, w

    return lambda x: sp.eigh_of(x, lower)[::-1], reference


def _powers(x):
    """Eigenvalues, and the matrix to the third power, from its spectrum, which does not depend on phases."""
    w, v = sp.eigh_of(x)
    cubes = mx.as_dtype_of(ew.mul(ew.mul(w, w), w), v)
    return w, mx.product(mx.scale_columns(v, cubes), mx.adjoint(v))


def _powers_reference(x):
    return np.linalg.eigvalsh(x), np.linalg.matrix_power(_lower_half(x), 3)


def _eig(left=True, right=True):
    def reference(x):
        w, vl, vr = scipy.linalg.eig(x, left=True, right=True)
        return [w, *[vl] * left, *[vr] * right]

    return (
        lambda x: sp.eig(
            x,
            compute_left_eigenvectors=left,
            compute_right_eigenvectors=right,
            enable_eigvec_derivs=True,
            implementation=None,
        ),
        each(reference),
    )


def _recomposed(x):
    """The matrix from its spectrum, which does not depend on the signs of eigenvectors."""
    w, v = sp.eig_of(x)
    return mx.transposed(la.solve(mx.transposed(v), mx.transposed(mx.scale_columns(v, w))))


def _spread(rng, shape, dtype):
    """Real and distinct eigenvalues."""
    return 0.3 * _random(rng, shape, dtype) + np.diag(np.arange(shape[-1]) + 1.0)


def _schur(x):
    return sp.schur(x, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)


def _hessenberg(x):
    if not x.size:
        return x, np.zeros(0)
    (gehrd,) = scipy.linalg.get_lapack_funcs(("gehrd",), (x,))
    packed, taus, _ = gehrd(x)
    return packed, taus


def _adjugate(x):
    n = x.shape[-1]
    out = np.zeros_like(x)
    for b in np.ndindex(x.shape[:-2]):
        for i in range(n):
            for j in range(n):
                out[(*b, j, i)] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x[b], i, 0), j, 1))
    return out


def _singular(rng, shape, dtype):
    x = _random(rng, shape, dtype)
    x[..., 0, :] = x[..., 1, :]
    return x


def _nilpotent(rng, shape, dtype):
    """Rank n - 2, so that every minor of size n - 1 is zero, and those of size n - 2 are not."""
    x = _singular(rng, shape, dtype)
    x[..., 2, :] = 0
    return x


NO_DERIVATIVE = {"jvp": "not implemented", "vjp": "not implemented", "second": "not implemented"}
CHOLESKY_UPDATED = (
    la.cholesky_update,
    lambda r, w: h(np.linalg.cholesky(t(np.triu(r)) @ np.triu(r) + w[..., :, None] * w[..., None, :])),
)
RIGHT = [_regular, (-2, 2)]

ROWS = (
    Sample(
        "cholesky",
        la.cholesky,
        _cholesky,
        shapes=[((3, 3),), ((2, 4, 4),), ((0, 0),), ((0, 3, 3),), ((1, 1),)],
        dtypes=BOTH,
        domain=_positive,
        errors=[
            (lambda: la.cholesky(zeros(3)), ValueError, "must be a matrix"),
            (lambda: la.cholesky(zeros(3, 2)), ValueError, "must be square"),
            (lambda: la.cholesky(zeros(2, 2, dtype="float16")), TypeError, "does not accept dtype float16"),
        ],
    ),
    Sample(
        "cholesky: fails",
        la.cholesky,
        None,
        shapes=[((2, 2),)],
        domain=_positive,
        gaps={"value": "see at"},
        at=[(([[1.0, 0], [0, -1]],), [[np.nan, 0], [np.nan, np.nan]])],
    ),
    Sample(
        "cholesky_update",
        *CHOLESKY_UPDATED,
        shapes=[((3, 3), (3,)), ((2, 3, 3), (2, 3)), ((0, 0), (0,))],
        domain=[_positive, (-2, 2)],
        errors=[(lambda: la.cholesky_update(zeros(2, 2), zeros(3)), ValueError, "does not fit")],
    ),
    Sample(
        "symmetric_product",
        lambda a, c: la.symmetric_product(a, c, alpha=2.0, beta=0.5),
        lambda a, c: 2 * a @ t(a) + 0.5 * c,
        shapes=[((3, 2), (3, 3)), ((2, 3, 2), (2, 3, 3))],
        dtypes=BOTH,
        errors=[
            (lambda: la.symmetric_product(zeros(2, 3), zeros(3, 3), alpha=1.0, beta=0.0), ValueError, "does not fit")
        ],
    ),
    Sample(
        "triangular_solve",
        *_triangular(),
        shapes=[((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2)), ((0, 0), (0, 2)), ((3, 3), (3, 0))],
        dtypes=BOTH,
        domain=RIGHT,
        errors=[
            (lambda: _triangular()[0](zeros(3, 3), zeros(2, 2)), ValueError, "needs 3 rows"),
            (lambda: _triangular()[0](zeros(2, 3, 3), zeros(3, 2)), ValueError, "differ in their batch axes"),
        ],
    ),
    Sample(
        "triangular_solve: upper, right",
        *_triangular(lower=False, left=False),
        shapes=[((3, 3), (2, 3)), ((2, 3, 3), (2, 2, 3))],
        dtypes=BOTH,
        domain=RIGHT,
    ),
    Sample(
        "triangular_solve: adjoint",
        *_triangular(transpose=True, conjugate=True),
        shapes=[((3, 3), (3, 2))],
        dtypes=BOTH,
        domain=RIGHT,
    ),
    Sample(
        "triangular_solve: conjugate, unit",
        *_triangular(conjugate=True, unit=True, lower=False),
        shapes=[((3, 3), (3, 2))],
        dtypes=BOTH,
        domain=RIGHT,
    ),
    Sample(
        "triangular_solve: transposed, right, unit",
        *_triangular(transpose=True, left=False, unit=True),
        shapes=[((3, 3), (2, 3))],
        dtypes=BOTH,
        domain=RIGHT,
    ),
    Sample(
        "tridiagonal_solve",
        *_tridiagonal_solve(),
        shapes=[((4,), (4,), (4,), (4, 2)), ((2, 3), (2, 3), (2, 3), (2, 3, 1)), ((0,), (0,), (0,), (0, 1))],
        dtypes=BOTH,
        domain=[(-1, 1), _band, (-1, 1), (-1, 1)],
        errors=[
            (lambda: _tridiagonal_solve()[0](zeros(3), zeros(4), zeros(4), zeros(4, 1)), ValueError, "dl of shape (3,)")
        ],
    ),
    Sample(
        "tridiagonal_solve: perturbed",
        *_tridiagonal_solve(True),
        shapes=[((4,), (4,), (4,), (4, 2))],
        domain=[(-1, 1), _band, (-1, 1), (-1, 1)],
    ),
    Sample(
        "lu",
        la.lu,
        each(_lu),
        shapes=[((3, 3),), ((2, 4, 3),), ((3, 5),), ((5, 3),), ((0, 0),), ((3, 0),)],
        dtypes=BOTH,
        domain=_random,
        errors=[(lambda: la.lu(zeros(3)), ValueError, "must be a matrix")],
    ),
    Sample(
        "lu: many small",
        la.lu,
        each(_lu),
        shapes=[((32, 3, 3),), ((40, 3, 2),), ((8, 5, 2, 3),)],
        dtypes=BOTH,
        domain=_random,
    ),
    *[
        Sample(
            f"triangular_solve: many small, {options}",
            *_triangular(*options),
            shapes=[((32, 3, 3), (32, 3, 2) if options[1] else (32, 2, 3))],
            dtypes=BOTH,
            domain=RIGHT,
        )
        for options in (
            (True, True, False),
            (False, False, True, True),
            (True, False, True),
            (False, True, True, False, True),
        )
    ],
    Sample(
        "lu_pivots_to_permutation",
        lambda p: la.lu_pivots_to_permutation(p, permutation_size=5),
        _permutation,
        shapes=[((4,),), ((2, 3),), ((0,),)],
        dtypes=("int32",),
        domain=(0, 4),
        errors=[(lambda: la.lu_pivots_to_permutation(zeros(3), permutation_size=3), ValueError, "must be int32")],
    ),
    Sample(
        "solve",
        *_solve(False),
        shapes=[((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((0, 0), (0, 2))],
        dtypes=BOTH,
        domain=RIGHT,
        errors=[(lambda: la.solve(zeros(3, 3), zeros(2, 2)), ValueError, "needs 3 rows")],
        gaps={"text": "two operations"},
    ),
    Sample("solve: transposed", *_solve(True), shapes=[((3, 3), (3, 2))], dtypes=BOTH, domain=RIGHT),
    Sample(
        "det",
        sp.det,
        np.linalg.det,
        shapes=[((4, 4),), ((2, 3, 3),), ((0, 0),), ((1, 1),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: sp.det(zeros(2, 3)), ValueError, "must be square")],
        at=[
            ((np.diag([1.0, 2.0, 0.0]).tolist(),), 0.0, ([np.diag([0, 0, 2.0]).tolist()])),
            ((np.zeros((4, 4)).tolist(),), 0.0, [np.zeros((4, 4))]),
        ],
    ),
    Sample(
        "det: singular",
        sp.det,
        np.linalg.det,
        shapes=[((4, 4),), ((2, 3, 3),)],
        dtypes=WIDE,
        domain=_nilpotent,
        tol=1e-12,
    ),
    Sample(
        "adjugate",
        sp.adjugate,
        _adjugate,
        shapes=[((4, 4),), ((2, 3, 3),), ((1, 1),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: sp.adjugate(zeros(2, 3)), ValueError, "must be square")],
    ),
    Sample(
        "adjugate: singular",
        sp.adjugate,
        _adjugate,
        shapes=[((4, 4),), ((2, 3, 3),)],
        dtypes=WIDE,
        domain=_singular,
        tol=1e-12,
    ),
    Sample(
        "qr",
        *_qr(),
        shapes=[((3, 3),), ((2, 4, 3),), ((3, 5),), ((0, 0),), ((0, 3),), ((3, 0),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: _qr()[0](zeros(3)), ValueError, "must be a matrix")],
    ),
    Sample(
        "qr: full",
        *_qr(full=True),
        shapes=[((4, 2),), ((2, 5, 3),), ((3, 5),), ((3, 0),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
    ),
    Sample(
        "qr: pivoting", *_qr(pivoting=True), shapes=[((4, 3),), ((3, 3),)], dtypes=BOTH, domain=_shrinking, tol=1e-12
    ),
    Sample(
        "qr: full, pivoting",
        *_qr(pivoting=True, full=True),
        shapes=[((4, 3),)],
        dtypes=BOTH,
        domain=_shrinking,
        tol=1e-12,
    ),
    Sample(
        "geqrf",
        la.geqrf,
        each(_geqrf),
        shapes=[((4, 3),), ((2, 3, 3),), ((3, 5),), ((3, 0),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: la.geqrf(zeros(3)), ValueError, "must be a matrix")],
    ),
    Sample(
        "householder_product",
        la.householder_product,
        _householder,
        shapes=[((4, 3), (3,)), ((2, 4, 3), (2, 2)), ((3, 3), (3,))],
        dtypes=BOTH,
        domain=[_reflectors, (-1, 1)],
        errors=[
            (lambda: la.householder_product(zeros(2, 3), zeros(2)), ValueError, "as many rows"),
            (lambda: la.householder_product(zeros(3, 2), zeros(3)), ValueError, "3 taus do not fit"),
        ],
    ),
    Sample(
        "ormqr",
        *_ormqr(True, False),
        shapes=[((4, 3), (3,), (4, 2)), ((3, 3), (3,), (3, 3))],
        dtypes=BOTH,
        domain=[_reflectors, (-1, 1), (-1, 1)],
        errors=[(lambda: _ormqr(True, False)[0](zeros(3, 2), zeros(2), zeros(2, 2)), ValueError, "do not fit c")],
    ),
    Sample(
        "ormqr: adjoint, right",
        *_ormqr(False, True),
        shapes=[((4, 3), (3,), (2, 4))],
        dtypes=BOTH,
        domain=[_reflectors, (-1, 1), (-1, 1)],
    ),
    Sample(
        "ormqr: adjoint",
        *_ormqr(True, True),
        shapes=[((4, 3), (3,), (4, 2))],
        dtypes=BOTH,
        domain=[_reflectors, (-1, 1), (-1, 1)],
    ),
    Sample(
        "ormqr: right",
        *_ormqr(False, False),
        shapes=[((4, 3), (3,), (2, 4))],
        dtypes=BOTH,
        domain=[_reflectors, (-1, 1), (-1, 1)],
    ),
    Sample(
        "svd",
        *_svd(),
        shapes=[((3, 3),), ((2, 4, 3),), ((3, 5),), ((0, 3),), ((0, 0),)],
        dtypes=REAL,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: _svd()[0](zeros(3)), ValueError, "must be a matrix")],
    ),
    Sample(
        "svd: full",
        *_svd(full=True),
        shapes=[((4, 2),), ((2, 3, 5),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
        gaps=dict.fromkeys(("jvp", "second", "vjp"), "bases of complements, and phases, are free: see the rows below"),
    ),
    Sample(
        "svd: complements",
        _complements,
        _complements_reference,
        shapes=[((4, 2),), ((2, 3),)],
        dtypes=WIDE,
        domain=_random,
        tol=1e-12,
    ),
    Sample(
        "svd: phases",
        _phaseless,
        _phaseless_reference,
        shapes=[((3, 3),), ((4, 3),)],
        dtypes=WIDE,
        domain=_random,
        tol=1e-12,
    ),
    Sample(
        "svd: values",
        *_svd(uv=False),
        shapes=[((3, 3),), ((2, 4, 3),), ((3, 0),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
    ),
    Sample(
        "svd: QR",
        *_svd(algorithm=sp.SvdAlgorithm.QR),
        shapes=[((4, 3),)],
        dtypes=REAL,
        domain=_random,
        tol=1e-12,
        gaps={"value": "signs of the vectors differ from NumPy's, which divides and conquers"},
    ),
    Sample(
        "eigh",
        *_eigh(),
        shapes=[((3, 3),), ((2, 4, 4),), ((0, 0),), ((1, 1),)],
        dtypes=REAL,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: sp.eigh_of(zeros(2, 3)), ValueError, "must be square")],
    ),
    Sample("eigh: upper", *_eigh(False), shapes=[((3, 3),)], dtypes=REAL, domain=_random, tol=1e-12),
    Sample("eigh: phases", _powers, _powers_reference, shapes=[((3, 3),)], dtypes=WIDE, domain=_random, tol=1e-12),
    Sample(
        "eig",
        *_eig(),
        shapes=[((3, 3),), ((2, 3, 3),), ((0, 0),)],
        dtypes=WIDE,
        domain=_random,
        tol=1e-12,
        errors=[(lambda: _eig()[0](zeros(2, 3)), ValueError, "must be square")],
    ),
    Sample(
        "eig: signs",
        _recomposed,
        lambda x: x + 0j,
        shapes=[((3, 3),), ((2, 4, 4),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
    ),
    Sample("eig: real", *_eig(False), shapes=[((3, 3),)], dtypes=("float64",), domain=_spread, tol=1e-12),
    Sample("eig: values", *_eig(False, False), shapes=[((4, 4),)], dtypes=BOTH, domain=_random, tol=1e-12),
    Sample(
        "schur",
        _schur,
        each(lambda x: scipy.linalg.schur(x)),
        shapes=[((3, 3),), ((2, 4, 4),), ((0, 0),)],
        dtypes=WIDE,
        domain=_random,
        tol=1e-12,
        gaps=NO_DERIVATIVE,
        errors=[(lambda: _schur(zeros(2, 3)), ValueError, "must be square")],
    ),
    Sample(
        "hessenberg",
        sp.hessenberg,
        each(_hessenberg),
        shapes=[((4, 4),), ((2, 3, 3),), ((0, 0),)],
        dtypes=BOTH,
        domain=_random,
        tol=1e-12,
        gaps=NO_DERIVATIVE,
        errors=[(lambda: sp.hessenberg(zeros(2, 3)), ValueError, "must be square")],
    ),
    Sample(
        "tridiagonal",
        lambda x: sp.tridiagonal(x, lower=True),
        None,
        shapes=[((4, 4),), ((2, 3, 3),)],
        dtypes=BOTH,
        domain=_positive,
        tol=1e-12,
        gaps={
            **NO_DERIVATIVE,
            "value": "see tests/numpy/test_linalg.py: SciPy leaves other entries beside the result",
        },
        errors=[(lambda: sp.tridiagonal(zeros(2, 3), lower=True), ValueError, "must be square")],
    ),
)
