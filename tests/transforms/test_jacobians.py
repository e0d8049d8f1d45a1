"""Jacobians in chunks, sparse Jacobians, and the two passes of a function."""

import numpy as np
import pytest

import morphax
from morphax import lax
from morphax import numpy as jnp
from morphax.transforms import sparse as patterns

RNG = np.random.default_rng(0)


def mixed(x, w):
    return {"a": jnp.tanh(w["m"] @ x), "b": x[0] * w["s"]}


X = RNG.normal(size=5).astype("f")
W = {"m": RNG.normal(size=(4, 5)).astype("f"), "s": np.float32(2.0)}


@pytest.mark.parametrize("transform", [morphax.jacfwd, morphax.jacrev, morphax.hessian])
@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_chunks_change_nothing(transform, chunk, argnums):
    wanted = transform(mixed, argnums)(X, W)
    for f in (transform(mixed, argnums, chunk=chunk), morphax.jit(transform(mixed, argnums, chunk=chunk))):
        got = f(X, W)
        assert morphax.tree.structure(got) == morphax.tree.structure(wanted)
        for a, b in zip(morphax.tree.leaves(got), morphax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transform", [morphax.jacfwd, morphax.jacrev])
@pytest.mark.parametrize("chunk", [None, 2])
def test_aux_passes_through(transform, chunk):
    jacobian, aux = transform(lambda x: (x**2, {"sum": x.sum(), "n": 3}), has_aux=True, chunk=chunk)(jnp.arange(3.0))
    np.testing.assert_allclose(jacobian, np.diag([0.0, 2.0, 4.0]))
    assert float(aux["sum"]) == 3.0 and int(aux["n"]) == 3


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="chunk"):
        morphax.jacfwd(jnp.sin, chunk=0)
    with pytest.raises(ValueError, match="sparse"):
        morphax.jacfwd(mixed, (0, 1), sparse=True)
    with pytest.raises(ValueError, match="ravel_pytree"):
        morphax.jacfwd(mixed, sparse=True)(X, W)


A = np.diag(np.arange(1.0, 7.0)).astype("f") + np.eye(6, k=1, dtype="f")
INDICES = np.array([3, 0, 3, 5])
SPARSE = {
    "elementwise": (lambda x: jnp.sin(x) * x + 2.0, 6),
    "differences": (lambda x: x[1:] - x[:-1], 11 - 1),
    "stencil": (lambda x: x[2:] * x[:-2] + x[1:-1] ** 2, 4 + 4 + 4),
    "pad": (lambda x: jnp.pad(x, (1, 2)) * 2, 6),
    "concatenate": (lambda x: jnp.concatenate([x[::2], x[::-1]]), 9),
    "sum": (lambda x: x.sum(), 6),
    "rows": (lambda x: (x.reshape(2, 3) ** 2).sum(1), 6),
    "cumsum": (lambda x: jnp.cumsum(x.reshape(2, 3), 1), 18),
    "matrix": (lambda x: A @ jnp.sin(x), 11),
    "matrix from the right": (lambda x: jnp.sin(x) @ A, 11),
    "batched product": (lambda x: jnp.einsum("bi,bj->bij", x.reshape(2, 3), x.reshape(2, 3)), 18 + 12),
    "product with rows": (lambda x: x.reshape(2, 3) @ np.ones((3, 4), "f"), 24),
    "gather": (lambda x: x[INDICES] * 2, 4),
    "scatter": (lambda x: jnp.zeros(7).at[INDICES].add(x[:4]), 4),
    "set": (lambda x: jnp.zeros(7).at[1].set(x[3] * x[2]), 2),
    "where": (lambda x: jnp.where(x > 0, x, x[::-1]), 12),
    "dynamic slice": (lambda x: lax.dynamic_slice(x, (2,), (3,)), 3),
    "dynamic update": (lambda x: lax.dynamic_update_slice(x, x[:2] * 3, (1,)), 6),
    "moving index": (lambda x: lax.dynamic_slice(x, (jnp.argmax(x),), (3,)), 18),
    "jit": (morphax.jit(lambda x: jnp.sin(x)), 6),
    "relu-like": (lambda x: jnp.maximum(x, 0.0), 6),
    "cond": (lambda x: lax.cond(True, lambda x: x[::-1], lambda x: x * 2, x), 12),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0], x)[1], 36),
    "constant": (lambda x: jnp.ones(3) + jnp.floor(x[:3]), 0),
    "convert": (lambda x: x.astype(jnp.bfloat16).astype(jnp.float32) * 2, 6),
    "sort": (lambda x: jnp.sort(x.reshape(2, 3), 1), 18),
}


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("jitted", [False, True])
def test_sparse_jacobians(name, jitted):
    f, entries = SPARSE[name]
    x = RNG.normal(size=6).astype("f")
    dense = np.asarray(morphax.jacfwd(f)(x)).reshape(-1, 6)
    made = morphax.jacfwd(f, sparse=True)
    got = (morphax.jit(made) if jitted else made)(x)
    np.testing.assert_allclose(got.todense(), dense, rtol=1e-5, atol=1e-6)
    assert got.shape == dense.shape
    assert len(np.asarray(got.data)) <= entries


def test_sparse_hessian_of_a_chain():
    def energy(x):
        return jnp.sum((x[1:] - x[:-1] ** 2) ** 2 + jnp.cos(x[:-1]))

    x = RNG.normal(size=9).astype("f")
    got = morphax.hessian(energy, sparse=True)(x)
    np.testing.assert_allclose(got.todense(), morphax.hessian(energy)(x), rtol=1e-4, atol=1e-5)
    assert len(np.asarray(got.data)) == 9 + 2 * 8


def test_banded_function_of_ten_thousand_inputs_takes_as_many_products_as_the_band_is_wide():
    n = 10_000

    def f(x):
        return jnp.pad(x, 1)[2:] * x - x**2 + jnp.pad(x, 1)[:-2]

    closed = morphax.make_jaxpr(f)(jnp.ones(n))
    rows, columns = patterns.pattern(closed.jaxpr, closed.consts)
    assert len(rows) == 3 * n - 2
    colour = patterns.colours(rows, columns, n)
    assert colour.max() == 2
    got = morphax.jacfwd(f, sparse=True)(jnp.full(n, 2.0))
    near = {-1: 1.0, 0: -2.0, 1: 2.0}
    inner = (np.asarray(got.row) > 0) & (np.asarray(got.row) < n - 1)
    wanted = [near[d] for d in (np.asarray(got.col) - np.asarray(got.row))[inner]]
    np.testing.assert_allclose(np.asarray(got.data)[inner], wanted)

    energy = morphax.hessian(lambda x: ((x[1:] - x[:-1]) ** 4).sum(), sparse=True)(jnp.arange(float(n)))
    assert len(np.asarray(energy.data)) == 3 * n - 2


@pytest.mark.parametrize("jitted", [False, True])
def test_fwd_and_bwd(jitted):
    forward, backward = morphax.fwd_and_bwd(lambda x, y: jnp.sin(x) * y, argnums=0, jitted=jitted)
    for x in (1.0, 2.0):
        y, residuals = forward(x, 2.0)
        np.testing.assert_allclose(y, np.sin(x) * 2, rtol=1e-6)
        np.testing.assert_allclose(backward(residuals, 3.0), 6 * np.cos(x), rtol=1e-5)
    forward, backward = morphax.fwd_and_bwd(lambda x, y: (jnp.sin(x) * y, x), (0, 1), has_aux=True, jitted=jitted)
    y, residuals, aux = forward(1.0, 2.0)
    assert float(aux) == 1.0
    np.testing.assert_allclose(backward(residuals, 1.0), [2 * np.cos(1), np.sin(1)], rtol=1e-6)
