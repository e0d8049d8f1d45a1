"""Krylov solvers and minimization: solutions, and derivatives through the solved equation."""

import numpy as np
import pytest

from morphax import numpy as jnp
from morphax.control import jacobians
from morphax.runtime.jit import jit
from morphax.scipy import optimize
from morphax.scipy.sparse import linalg
from morphax.support import config
from morphax.transforms import api

RNG = np.random.default_rng(0)
A = RNG.normal(size=(7, 7)) + 5 * np.eye(7)
P = A @ A.T
Z = A + 1j * RNG.normal(size=(7, 7))
B = RNG.normal(size=7)
SOLVERS = ["cg", "bicgstab", "gmres"]


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted, tol=1e-7):
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=tol, atol=tol)


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name):
    solver = getattr(linalg, name)
    a = P if name == "cg" else A
    near(solver(a, B, tol=1e-12)[0], np.linalg.solve(a, B))
    near(solver(a, B, B, tol=1e-12, M=np.diag(1 / np.diag(a)))[0], np.linalg.solve(a, B))
    complex_a = Z @ Z.conj().T if name == "cg" else Z
    near(solver(complex_a, B + 1j, tol=1e-12)[0], np.linalg.solve(complex_a, B + 1j))
    near(jit(lambda b: solver(lambda x: a @ x, b, tol=1e-12)[0])(B), np.linalg.solve(a, B))
    near(solver(a, 0 * B)[0], 0 * B)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_solve_the_transposed_equation(name):
    a = P if name == "cg" else A
    solver = getattr(linalg, name)
    near(api.grad(lambda b: solver(a, b, tol=1e-12)[0].sum())(B), np.linalg.solve(a.T, np.ones(7)))
    x, y = np.linalg.solve(a, B), np.linalg.solve(a.T, np.ones(7))
    near(api.grad(lambda a: solver(a, B, tol=1e-12)[0].sum())(a), -np.outer(y, x), 1e-6)


def test_pytrees():
    x, _ = linalg.cg(lambda t: {"u": 2 * t["u"], "v": 3 * t["v"]}, {"u": np.ones(2), "v": np.ones((1, 2))})
    near(x["u"], np.full(2, 0.5), 1e-5)
    near(x["v"], np.full((1, 2), 1 / 3), 1e-5)


def test_restarts():
    near(linalg.gmres(A, B, tol=1e-10, restart=3)[0], np.linalg.solve(A, B))


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_minimum_by_bfgs():
    out = optimize.minimize(rosenbrock, np.zeros(4), method="BFGS")
    assert out.success and out.status == 0
    near(out.x, np.ones(4), 1e-4)
    near(out.hess_inv, np.linalg.inv(jacobians.hessian(rosenbrock)(np.ones(4))), 0.2)
    inside = jit(lambda a: optimize.minimize(lambda x, a: jnp.sum((x - a) ** 4), np.zeros(2), (a,), method="BFGS").x)
    near(inside(np.array([1.0, -2])), [1, -2], 0.05)


def test_minimize_says_why_it_stopped():
    assert optimize.minimize(rosenbrock, np.zeros(2), method="BFGS", options={"maxiter": 2}).status == 1
    with pytest.raises(ValueError, match=r"^minimize: method must be BFGS"):
        optimize.minimize(rosenbrock, np.zeros(2), method="newton")
    with pytest.raises(TypeError, match=r"^minimize: options \['eps'\]"):
        optimize.minimize(rosenbrock, np.zeros(2), method="BFGS", options={"eps": 1})
