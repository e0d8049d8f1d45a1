"""numpy.linalg against NumPy, its derivatives where matrices are singular or spectra degenerate, and lax.linalg."""

import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
from samples import put

from morphax.control import jacobians
from morphax.lax import linalg as lax_linalg
from morphax.numpy import linalg
from morphax.ops import matrices as mx
from morphax.runtime.jit import jit
from morphax.transforms import api

RNG = np.random.default_rng(0)


def random(*shape: int, is_complex: bool = False) -> np.ndarray:
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if is_complex else x


def same(got, wanted, tol=1e-11):
    got, wanted = (list(x) if isinstance(x, (tuple, list)) else [x] for x in (got, wanted))
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted, strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


SQUARE = {
    "real": random(4, 4),
    "complex": random(4, 4, is_complex=True),
    "batch": random(2, 3, 3, 3),
    "two": random(3, 2, 2, is_complex=True),
    "one": random(2, 1, 1),
    "none": np.zeros((0, 0)),
}
RECTANGULAR = {
    "tall": random(2, 5, 3),
    "wide": random(3, 5, is_complex=True),
    "square": random(3, 3),
    "ones": np.ones((3, 3)),
    "empty": np.zeros((3, 0)),
}
squares = pytest.mark.parametrize("x", SQUARE.values(), ids=SQUARE)
rectangles = pytest.mark.parametrize("x", RECTANGULAR.values(), ids=RECTANGULAR)
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
VECTOR_ORDERS = [None, 0, 1, 2, 3, 0.5, -2, np.inf, -np.inf]

# ---- values ----------------------------------------------------------------------------------------------------------


@squares
@pytest.mark.parametrize("name", ["det", "inv", "slogdet", "eigvals"])
def test_of_square_matrices(x, name):
    wanted = getattr(np.linalg, name)(x)
    same(getattr(linalg, name)(put(x)), wanted)
    same(jit(getattr(linalg, name))(put(x)), wanted)


@squares
def test_spectra(x):
    w, v = map(np.asarray, linalg.eig(put(x)))
    same(x @ v, v * w[..., None, :])
    h = x + adjoint(x)
    w, v = map(np.asarray, linalg.eigh(put(h)))
    same(h @ v, v * w[..., None, :])
    same(linalg.eigvalsh(put(h)), np.linalg.eigvalsh(h))
    u, s, vh = map(np.asarray, linalg.svd(put(h), hermitian=True))
    same(u * s[..., None, :] @ vh, h)
    same(s, np.linalg.svd(h, compute_uv=False))
    same(linalg.pinv(put(h), hermitian=True), np.linalg.pinv(h), 1e-8)


@squares
@pytest.mark.parametrize("n", [0, 1, 2, 5, -3])
def test_matrix_power(x, n):
    same(linalg.matrix_power(put(x), n), np.linalg.matrix_power(x, n), 1e-8)


@squares
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(x, upper):
    a = x @ adjoint(x) + np.eye(x.shape[-1])
    same(linalg.cholesky(put(a), upper=upper), np.linalg.cholesky(a, upper=upper))
    same(linalg.cholesky(put(a), upper=upper, symmetrize_input=False), np.linalg.cholesky(a, upper=upper))


@rectangles
def test_of_any_matrices(x):
    same(linalg.pinv(put(x)), np.linalg.pinv(x))
    same(linalg.svdvals(put(x)), np.linalg.svd(x, compute_uv=False))
    same(linalg.svd(put(x), compute_uv=False), np.linalg.svd(x, compute_uv=False))
    same(linalg.matrix_rank(put(x)), np.linalg.matrix_rank(x) if x.size else 0)
    for mode in ("reduced", "complete", "r", "raw"):
        same(linalg.qr(put(x), mode), np.linalg.qr(x, mode))
    for full in (False, True):
        u, s, vh = map(np.asarray, linalg.svd(put(x), full_matrices=full))
        k = s.shape[-1]
        same(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x)
        assert u.shape == np.linalg.svd(x, full_matrices=full)[0].shape


@pytest.mark.parametrize("p", MATRIX_ORDERS)
def test_condition_numbers(p):
    for x in (SQUARE["real"], SQUARE["batch"]):
        same(linalg.cond(put(x), p), np.linalg.cond(x, p), 1e-9)
    assert linalg.cond(put(np.zeros((2, 2))), p) == np.inf


@rectangles
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms(x, keepdims):
    a = put(x)
    for order in [p for p in MATRIX_ORDERS if x.size or p not in (-1, -2, -np.inf)]:
        wanted = np.linalg.norm(x, order, (-2, -1), keepdims)
        same(linalg.norm(a, order, (-2, -1), keepdims), wanted)
        same(linalg.matrix_norm(a, ord=order, keepdims=keepdims), wanted)
    for order in [p for p in VECTOR_ORDERS if x.size or p not in (-2, -np.inf)]:
        for axis in (0, -1):
            wanted = np.linalg.norm(x, order, axis, keepdims)
            same(linalg.norm(a, order, axis, keepdims), wanted)
            same(linalg.vector_norm(a, ord=2 if order is None else order, axis=axis, keepdims=keepdims), wanted)
    same(linalg.norm(a, keepdims=keepdims), np.linalg.norm(x, keepdims=keepdims))


def test_solve_broadcasts_and_shares_factors():
    a, b = random(4, 4), random(2, 3, 4, 4)
    for left, right in ((a, a[0]), (a, b), (b, a), (b, a[0]), (a, a[:, :0]), (b[0], b[:, :1])):
        same(linalg.solve(put(left), put(right)), np.linalg.solve(left, right))
    text = str(api.make_jaxpr(api.vmap(linalg.solve, (None, 0)))(put(a), put(b[0])))
    assert " = lu " in text
    assert not re.search(r"f64\[3,4,4\].* = lu ", text)


@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 4)])
def test_least_squares(m, n):
    a = random(m, n)
    for b in (random(m), random(m, 2)):
        same(linalg.lstsq(put(a), put(b), numpy_resid=True), np.linalg.lstsq(a, b, rcond=None), 1e-9)
    x, _, rank, _ = jit(linalg.lstsq)(put(np.ones((3, 2))), put(np.ones(3)))
    same(x, np.array([0.5, 0.5]))
    assert rank == 1


def test_products():
    v, a, t = random(4), random(4, 4), random(4, 6, 8, 3)
    same(linalg.multi_dot([put(v), put(a), put(a[:, :2])]), v @ a @ a[:, :2])
    same(linalg.multi_dot([put(v), put(a), put(v)]), v @ a @ v)
    same(linalg.tensorinv(put(t)), np.linalg.tensorinv(t), 1e-8)
    same(linalg.tensorsolve(put(t), put(random(4, 6) * 0)), np.zeros((8, 3)))
    b = random(6, 2, 3)
    same(linalg.tensorsolve(put(b), put(b[0]), (0,)), np.linalg.tensorsolve(b, b[0], (0,)))
    same(linalg.cross(put(a[:, :3]), put(a[:, 1:])), np.linalg.cross(a[:, :3], a[:, 1:]))
    same(linalg.outer(put(v), put(v)), np.outer(v, v))
    same(linalg.vecdot(put(a), put(v)), a @ v)
    same(linalg.matmul(put(a), put(a)), a @ a)
    same(linalg.tensordot(put(a), put(a)), np.tensordot(a, a))
    for name in ("diagonal", "trace", "matrix_transpose"):
        same(getattr(linalg, name)(put(t)), getattr(np.linalg, name)(t))


def test_many_small_matrices():
    a, b = random(1000, 3, 3), random(1000, 3, 1)
    same(linalg.solve(put(a), put(b)), np.linalg.solve(a, b), 1e-8)
    same(linalg.det(put(a)), np.linalg.det(a))
    a = random(100, 20, 20)
    same(linalg.inv(put(a)), np.linalg.inv(a), 1e-7)


def test_integers_become_floats():
    a = put(np.array([[2, 1], [1, 3]], np.int32))
    for fun in (linalg.inv, linalg.det, linalg.cholesky, linalg.norm, lambda x: linalg.solve(x, x)):
        assert fun(a).dtype == np.float32
    assert linalg.eigvals(a).dtype == np.complex64
    assert linalg.matrix_power(a, 2).dtype == np.int32


# ---- derivatives where they need care --------------------------------------------------------------------------------


def test_determinant_of_singular_matrices():
    gradient = api.grad(linalg.det)
    same(gradient(put(np.zeros((4, 4)))), np.zeros((4, 4)))
    same(gradient(put(np.diag([1.0, 2.0, 0.0]))), np.diag([0.0, 0.0, 2.0]))
    same(gradient(put(np.diag([1.0, 2.0, 0.0, 3.0]))), np.diag([0.0, 0.0, 6.0, 0.0]))
    hessian = jacobians.hessian(linalg.det)(put(np.diag([1.0, 2.0, 0.0, 0.0])))
    assert float(hessian[2, 2, 3, 3]) == pytest.approx(2.0)
    assert float(hessian[2, 3, 3, 2]) == pytest.approx(-2.0)


def test_norm_at_zero():
    for order in (None, 2, 3):
        same(api.grad(lambda v, p=order: linalg.norm(v, p) ** 2)(put(np.zeros(2))), np.zeros(2))


def test_pseudoinverse_with_equal_singular_values():
    t = random(3, 3)
    same(api.jvp(linalg.pinv, (put(np.eye(3)),), (put(t),))[1], -t)
    same(api.jvp(lambda a: linalg.pinv(a, hermitian=True), (put(np.eye(3)),), (put(t),))[1], -t)


def test_functions_of_degenerate_spectra():
    # The sum of the eigenvalues is the trace, the sum of the two projectors the identity.
    a, t = put(np.diag([1.0, 1.0, 2.0])), put(random(3, 3))
    same(api.jvp(lambda a: linalg.eigvalsh(a).sum(), (a,), (t,))[1], np.trace(t))

    def projector(a):
        v = linalg.eigh(a)[1]
        return mx.product(v[:, :2], mx.transposed(v[:, :2]))

    tangent = np.asarray(api.jvp(projector, (a,), (t,))[1])
    sym = (np.asarray(t) + np.asarray(t).T) / 2
    wanted = np.zeros((3, 3))
    wanted[2, :2] = wanted[:2, 2] = -sym[2, :2]
    same(tangent, wanted)
    same(api.jvp(lambda a: linalg.norm(a, "nuc"), (put(np.eye(3)),), (t,))[1], np.trace(t))
    close = put((2.0**24 + np.diag([0.0, 2, 4])).astype(np.float32) * np.eye(3, dtype=np.float32))
    assert np.isfinite(np.asarray(jacobians.jacfwd(lambda m: linalg.eigh(m)[1].sum())(close))).all()


def test_hessian_of_the_sum_of_eigenvalues():
    a = put(np.array([[1.0, 2.0], [0.5, 3.0]]))
    same(jacobians.hessian(lambda m: linalg.eigvals(m).real.sum())(a), np.zeros((2, 2, 2, 2)))


DIFFERENTIABLE = {
    "inv": linalg.inv,
    "slogdet": lambda a: linalg.slogdet(a)[1],
    "cond": lambda a: linalg.cond(a, 1),
    "matrix_power": lambda a: linalg.matrix_power(a, -3),
    "pinv": lambda a: linalg.pinv(a[:, :2]),
    "lstsq": lambda a: linalg.lstsq(a[:, :2], a[0])[0],
    "qr": lambda a: linalg.qr(a[:, :2], "complete")[0],
    "svd": lambda a: linalg.svd(a)[1],
    "norm": lambda a: linalg.norm(a, 2),
    "cholesky": lambda a: linalg.cholesky(mx.product(a, mx.transposed(a)), upper=True),
    "svd, hermitian": lambda a: linalg.svd(a, hermitian=True)[1],
}


@pytest.mark.parametrize("fun", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_derivatives(fun):
    a, t = random(3, 3) + 2 * np.eye(3), random(3, 3)
    step = 1e-6
    got = np.asarray(api.jvp(fun, (put(a),), (put(t),))[1])
    same(got, (np.asarray(fun(put(a + step * t))) - np.asarray(fun(put(a - step * t)))) / (2 * step), 1e-6)
    gradient = np.asarray(api.grad(lambda a: fun(a).sum())(put(a)))
    same(np.sum(gradient * t), got.sum(), 1e-9)


# ---- lax.linalg ------------------------------------------------------------------------------------------------------


def test_tridiagonal_form_has_the_spectrum():
    for x in (random(2, 5, 5), random(2, 5, 5, is_complex=True)):
        h = x + adjoint(x)
        for lower in (True, False):
            _, d, e, _ = map(np.asarray, lax_linalg.tridiagonal(put(h), lower=lower))
            for k in range(2):
                same(scipy.linalg.eigvalsh_tridiagonal(d[k], e[k]), np.linalg.eigvalsh(h[k]))


@pytest.mark.parametrize("shape", [(5, 5), (7, 4)])
@pytest.mark.parametrize("is_complex", [False, True])
def test_polar_decomposition(shape, is_complex):
    x = random(*shape, is_complex=is_complex)
    u, h, count, converged = jit(lax_linalg.qdwh)(put(x))
    same(np.asarray(u) @ np.asarray(h), x)
    same(adjoint(np.asarray(u)) @ np.asarray(u), np.eye(shape[1]))
    assert converged and count <= 7 and np.linalg.eigvalsh(h).min() > 0


def test_subsets():
    x = random(4, 4)
    x = x + x.T
    w = np.linalg.eigvalsh(x)
    v, found = lax_linalg.eigh(put(x), subset_by_index=(1, 3))
    same(found, w[1:3])
    assert v.shape == (4, 2)
    u, s, vh = lax_linalg.svd(put(x), subset_by_index=(1, 3), full_matrices=False)
    assert (u.shape, s.shape, vh.shape) == ((4, 2), (2,), (2, 4))


def test_one_triangle_is_read():
    x = random(3, 3)
    low = np.tril(x) + np.tril(x, -1).T
    same(lax_linalg.eigh(put(x), symmetrize_input=False)[1], np.linalg.eigvalsh(low))
    same(api.grad(lambda x: lax_linalg.eigh(x, symmetrize_input=False)[1].sum())(put(x)), np.eye(3))
    out = lax_linalg.symmetric_product(put(x), put(x), alpha=2.0, beta=0.5, symmetrize_output=True)
    same(out, np.tril(2 * x @ x.T + 0.5 * x) + np.tril(2 * x @ x.T + 0.5 * x, -1).T)


def test_vectors_on_the_right():
    a, b = np.triu(random(3, 3)) + 3 * np.eye(3), random(3)
    same(lax_linalg.triangular_solve(put(a), put(b), left_side=True), np.linalg.solve(a, b))
    same(lax_linalg.triangular_solve(put(a), put(b)), np.linalg.solve(a.T, b))


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda x: linalg.inv(x), ValueError, "inv: Argument to inv must have shape"),
        (lambda x: linalg.det(x[0]), ValueError, "ndim >= 2"),
        (lambda x: linalg.solve(x, x), ValueError, "Invalid shapes for solve"),
        (lambda x: linalg.norm(x, "x"), ValueError, "Invalid order 'x' for matrix norm"),
        (lambda x: linalg.norm(x[0], "fro"), ValueError, "Invalid order 'fro' for vector norm"),
        (lambda x: linalg.norm(x[None], 2), ValueError, "Improper number of axes"),
        (lambda x: linalg.qr(x, "x"), ValueError, "Unsupported QR decomposition mode"),
        (lambda x: linalg.eigh(x @ x.T, "X"), ValueError, "UPLO must be one of"),
        (lambda x: linalg.slogdet(x @ x.T, method="x"), ValueError, "Unknown slogdet method"),
        (lambda x: linalg.matrix_power(x, 2), ValueError, "needs square matrices"),
        (lambda x: linalg.matrix_power(x @ x.T, 0.5), TypeError, "exponent must be an integer"),
        (lambda x: linalg.lstsq(x, x[0]), ValueError, "needs a of shape"),
        (lambda x: linalg.multi_dot([x, x]), ValueError, "do not chain"),
        (lambda x: linalg.tensorinv(x, 1), ValueError, "must be equal"),
        (lambda x: linalg.cross(x[:, :2], x[:, :2]), ValueError, "3-dimensional vectors"),
        (lambda x: linalg.outer(x, x), ValueError, "must be one-dimensional"),
        (lambda x: linalg.svd(x, subset_by_index=(0, 1)), ValueError, "cannot both be set"),
        (lambda x: linalg.cond(x[:0]), ValueError, "not defined on empty arrays"),
        (lambda x: lax_linalg.svd(x, algorithm=lax_linalg.SvdAlgorithm.JACOBI), NotImplementedError, "has no kernel"),
        (lambda x: lax_linalg.schur(x @ x.T, sort_eig_vals=True), NotImplementedError, "cannot be sorted"),
        (
            lambda x: api.grad(lambda y: lax_linalg.schur(y)[0].sum())(x @ x.T),
            NotImplementedError,
            "schur: its derivative",
        ),
    ],
)
def test_errors(call, exception, message):
    with pytest.raises(exception, match=message):
        call(put(random(2, 3)))


# ---- devices ---------------------------------------------------------------------------------------------------------

SHARDED = """
import numpy as np
import morphax as jax, morphax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 4)
from morphax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",))
x = np.random.default_rng(0).normal(size=(8, 5, 5)).astype("f4")
x = x @ x.swapaxes(1, 2) + np.eye(5, dtype="f4")
wide = np.pad(x, ((0, 0), (0, 3), (0, 3))) + np.diag([0] * 5 + [1] * 3)
for fun in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.eigvalsh, jnp.linalg.svdvals, jnp.linalg.det,
            lambda a: jnp.linalg.qr(a)[1], lambda a: jnp.linalg.solve(a, a[:, 0, :, None])):
    for spec, gathers in ((P("x"), False), (P(None, "x"), True)):
        placed = jax.device_put(wide, NamedSharding(mesh, spec))
        f = jax.jit(fun)
        np.testing.assert_allclose(f(placed), fun(np.asarray(placed)), rtol=1e-3, atol=1e-3)
        if not gathers:
            assert f(placed).sharding.spec == spec
            assert "all-gather" not in f.lower(placed).compile().as_text()
"""


def test_devices_share_batches():
    done = subprocess.run([sys.executable, "-c", SHARDED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
