"""Collectives over vmap's named axes: values against NumPy, derivatives of both modes, nesting. Over meshes they are
held to the same in tests/test_sharding.py."""

import itertools

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import lax
from morphax.ir.primitive import registry

N = 3
X = np.random.default_rng(0).normal(size=(N, N, 2))

# name: (function of one example, the same on the whole batch in NumPy)
COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda b: np.broadcast_to(b.sum(0), b.shape)),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda b: np.broadcast_to(b.mean(0), b.shape)),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda b: np.broadcast_to(b.max(0), b.shape)),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda b: np.broadcast_to(b.min(0), b.shape)),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]),
        lambda b: np.concatenate([np.zeros_like(b[:1]), b[:2]]),
    ),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), lambda b: b[[2, 0, 1]]),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda b: np.broadcast_to(b, (N, *b.shape))),
    "all_gather last": (
        lambda x: lax.all_gather(x, "i", axis=-1),
        lambda b: np.broadcast_to(np.moveaxis(b, 0, -1), (N, N, 2, N)),
    ),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", tiled=True),
        lambda b: np.broadcast_to(b.reshape(N * N, 2), (N, N * N, 2)),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda b: b.sum(0)),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        lambda b: b.sum(0).reshape(N, 1, 2),
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda b: b.swapaxes(0, 1)),
    "all_to_all moved": (lambda x: lax.all_to_all(x, "i", 0, 1), lambda b: np.moveaxis(b, 0, 2).swapaxes(0, 0)),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        lambda b: np.stack([np.concatenate([b[s, r : r + 1] for s in range(N)], axis=1) for r in range(N)]),
    ),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda b: b.swapaxes(0, 1)),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 1), lambda b: np.broadcast_to(b[1], b.shape)),
    "pcast": (lambda x: lax.pcast(x, "i", to="varying"), lambda b: b),
    "axis_index": (
        lambda x: x * lax.axis_index("i"),
        lambda b: b * np.arange(N)[:, None, None],
    ),
    "axis_size": (lambda x: x * lax.axis_size("i"), lambda b: b * N),
}


def mapped(name):
    return jax.vmap(COLLECTIVES[name][0], axis_name="i")


def operand():
    return jnp.asarray(X, dtype="float64")


@pytest.mark.parametrize("name", COLLECTIVES)
def test_value(name):
    want = COLLECTIVES[name][1](X)
    for fun in (mapped(name), jax.jit(mapped(name)), jax.vmap(jax.jit(COLLECTIVES[name][0]), axis_name="i")):
        np.testing.assert_allclose(fun(operand()), want, rtol=1e-12)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_reverse_is_the_transpose_of_forward_and_both_are_right(name):
    fun = mapped(name)
    rng = np.random.default_rng(1)
    v = jnp.asarray(rng.normal(size=X.shape), dtype="float64")
    y, t = jax.jvp(fun, (operand(),), (v,))
    step = 1e-6
    numeric = (np.asarray(fun(operand() + step * v)) - np.asarray(fun(operand() - step * v))) / (2 * step)
    np.testing.assert_allclose(t, numeric, rtol=1e-6, atol=1e-7)
    u = jnp.asarray(rng.normal(size=y.shape), dtype="float64")
    (ct,) = jax.vjp(fun, operand())[1](u)
    np.testing.assert_allclose(np.sum(ct * v), np.sum(u * t), rtol=1e-10)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_per_example_derivatives_sum_over_the_axis(name):
    """grad inside vmap differentiates the sum of all examples' losses."""

    def one(x):
        return jnp.sum(jnp.sin(COLLECTIVES[name][0](x)))

    inside = jax.vmap(jax.grad(one), axis_name="i")(operand())
    outside = jax.grad(lambda b: jnp.sum(jax.vmap(one, axis_name="i")(b)))(operand())
    np.testing.assert_allclose(inside, outside, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(["psum", "all_gather", "pmax"], repeat=2)))
def test_two_named_axes(first, second):
    outer = {"psum": np.sum, "pmax": np.max, "all_gather": None}

    def one(x):
        return COLLECTIVES[first][0](x), COLLECTIVES[second][0](x * 2.0)

    b = np.stack([X, X + 1.0])
    got = jax.vmap(jax.vmap(one, axis_name="i"), axis_name="j")(jnp.asarray(b, dtype="float64"))
    for k in range(2):
        np.testing.assert_allclose(got[0][k], COLLECTIVES[first][1](b[k]), rtol=1e-12)
        np.testing.assert_allclose(got[1][k], COLLECTIVES[second][1](b[k] * 2.0), rtol=1e-12)
    if outer[first] is not None:
        both = jax.vmap(jax.vmap(lambda x: getattr(lax, first)(x, ("i", "j")), axis_name="i"), axis_name="j")
        want = np.broadcast_to(outer[first](b, axis=(0, 1)), b.shape)
        np.testing.assert_allclose(both(jnp.asarray(b, dtype="float64")), want, rtol=1e-12)


def test_pytrees_and_numbers():
    out = jax.vmap(lambda x: lax.psum({"a": x, "n": 1}, "i"), axis_name="i")(jnp.ones(4))
    assert out["a"].tolist() == [4.0] * 4
    assert out["n"].tolist() == [4] * 4


def test_every_collective_is_here():
    named = {"reduce_scatter": "psum_scatter", "pvary": "pcast"}
    for name, prim in registry.items():
        if prim.collective is not None:
            assert named.get(name, name) in COLLECTIVES


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lax.psum(1.0, "q"), "the axis name 'q' is not bound"),
        (lambda: jax.vmap(lambda x: lax.psum(x, "q"), axis_name="i")(jnp.ones(2)), "bound here are 'i'"),
    ],
)
def test_unbound_axes(call, message):
    with pytest.raises(NameError, match=message):
        call()


def test_wrong_permutations():
    with pytest.raises(ValueError, match="receivers"):
        jax.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 1)]), axis_name="i")(jnp.ones(3))
    with pytest.raises(ValueError, match="permutation"):
        jax.vmap(lambda x: lax.pshuffle(x, "i", [0, 0, 1]), axis_name="i")(jnp.ones(3))
