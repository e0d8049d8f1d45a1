"""scipy.linalg against SciPy."""

import numpy as np
import pytest
import scipy.linalg as oracle

from morphax.scipy import linalg
from morphax.support import config
from morphax.transforms import api

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
Z = A + 1j * RNG.normal(size=(4, 4))
TALL = RNG.normal(size=(5, 3))
B = RNG.normal(size=(4, 2))
P = A @ A.T + np.eye(4)
H = Z @ Z.conj().T + np.eye(4)
V = np.array([2.0, 3, -1, 5, 4])


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted, tol=1e-10):
    got, wanted = (list(x) if isinstance(x, (tuple, list)) else [x] for x in (got, wanted))
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)


CALLS = {
    "cholesky": [(P,), (H, True)], "lu": [(A,), (TALL,), (TALL.T,), (Z, True)], "lu_factor": [(A,), (Z,)],
    "qr": [(Z,), (TALL,)], "det": [(A,)], "inv": [(Z,)], "solve": [(A, B), (A, B[:, 0])], "expm": [(A,), (Z * 9,)],
    "toeplitz": [(V,), (V, B[:, 0]), (V + 1j,)], "hankel": [(V,), (V, B[:, 0])], "circulant": [(V,)],
    "companion": [(V,)], "fiedler": [(V,)], "fiedler_companion": [(V,), (V[:4],), (V[:3],), (V[:2],)],
    "leslie": [(V, V[1:])], "block_diag": [(A, V, 3.0), ()], "hilbert": [(4,)], "invhilbert": [(4,)],
    "pascal": [(4,), (4, "lower"), (4, "upper")], "invpascal": [(4,)], "hadamard": [(4,)], "helmert": [(4,), (4, True)],
    "dft": [(4,), (4, "n"), (4, "sqrtn")], "sqrtm": [(P,), (Z,)], "solve_sylvester": [(A, P[:2, :2], B), (Z, Z + 9, Z)],
    "convolution_matrix": [(V, 3), (V, 3, "same"), (V, 3, "valid"), (V[:2], 4, "same"), (V[:2], 4, "valid")],
    "expm_frechet": [(A, A.T)], "eigh_tridiagonal": [],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    for args in CALLS[name]:
        near(getattr(linalg, name)(*args), getattr(oracle, name)(*args), 1e-9)


def test_equations_from_factors():
    near(linalg.cho_solve(linalg.cho_factor(H), B), np.linalg.solve(H, B))
    near(linalg.cho_solve(linalg.cho_factor(H, lower=True), B[:, 0]), np.linalg.solve(H, B[:, 0]))
    for trans, a in ((0, Z), (1, Z.T), (2, Z.conj().T)):
        near(linalg.lu_solve(linalg.lu_factor(Z), B, trans), np.linalg.solve(a, B))
        got = linalg.solve_triangular(Z, B, trans=trans, lower=True)
        near(got, oracle.solve_triangular(Z, B, trans=trans, lower=True))
    near(linalg.solve(P, B, assume_a="pos"), np.linalg.solve(P, B))


def test_spectra():
    b = H.real + 9 * np.eye(4)
    near(linalg.eigh(P, b, eigvals_only=True), oracle.eigh(P, b, eigvals_only=True))
    w, v = linalg.eigh(H, P)
    near(H @ v, P @ v * w)
    near(linalg.svd(TALL, compute_uv=False), oracle.svd(TALL, compute_uv=False))
    d, e = V, V[1:]
    near(linalg.eigh_tridiagonal(d, e, eigvals_only=True), oracle.eigh_tridiagonal(d, e, eigvals_only=True))
    got = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2))
    near(got, oracle.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2)))


@pytest.mark.parametrize("a", [A, Z], ids=["real", "complex"])
def test_forms(a):
    for output in ("real", "complex"):
        t, z = linalg.schur(a, output)
        near(z @ t @ np.conj(z).T, a)
    t, z = linalg.rsf2csf(*oracle.schur(A))
    near(z @ t @ np.conj(z).T, A)
    near(np.tril(t, -1), np.zeros((4, 4)))
    h, q = linalg.hessenberg(a, calc_q=True)
    near(q @ h @ np.conj(q).T, a)
    near(np.tril(h, -2), np.zeros((4, 4)))
    u, p = linalg.polar(a)
    near((u, p), oracle.polar(a))
    near(linalg.polar(a, "left"), oracle.polar(a, "left"))


def test_functions_of_matrices():
    near(linalg.funm(A, lambda x: x**2), A @ A)
    near(linalg.expm(np.triu(A), upper_triangular=True), oracle.expm(np.triu(A)))
    near(linalg.expm(np.stack([A, P])), np.stack([oracle.expm(A), oracle.expm(P)]), 1e-8)
    assert np.isnan(linalg.expm(A * 1e3, max_squarings=2)).all()
    direction = RNG.normal(size=(4, 4))
    slope = api.grad(lambda t: linalg.expm(A + t * direction).sum())(0.0)
    near(slope, oracle.expm_frechet(A, direction)[1].sum(), 1e-9)
    near(linalg.solve_sylvester(A, P, A, method="eigen"), oracle.solve_sylvester(A, P, A))
    assert np.isnan(linalg.solve_sylvester(A, -A, A)).all()


@pytest.mark.parametrize("mode", ["left", "right"])
def test_qr_multiply(mode):
    for c in (RNG.normal(size=(3, 2)) if mode == "left" else RNG.normal(size=(2, 5)), V[:3] if mode == "left" else V):
        near(linalg.qr_multiply(TALL, c, mode), oracle.qr_multiply(TALL, c, mode))
    got, wanted = linalg.qr(TALL, pivoting=True), oracle.qr(TALL, pivoting=True)
    near(got, wanted)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"^schur: output must be"):
        linalg.schur(A, "other")
    with pytest.raises(ValueError, match=r"^expm: takes square matrices"):
        linalg.expm(TALL)
    with pytest.raises(ValueError, match=r"^cho_solve: b must have 4 rows"):
        linalg.cho_solve((P, False), V)
