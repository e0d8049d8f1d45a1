"""Every nesting of the transforms to depth three gives the values that NumPy gives."""

import itertools

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp

X = np.linspace(0.2, 1.1, 4)


def f(x):
    return jnp.sum(jnp.sin(x) * jnp.exp(x) / (1.0 + x * x))


def value(x):
    return np.sum(np.sin(x) * np.exp(x) / (1.0 + x * x))


def checkpointed(fun):
    return jax.checkpoint(fun)


# Each keeps the kind of a function from a vector to a scalar, and says what it does to a NumPy function.


def by_grad(fun):
    return lambda x: jnp.sum(jnp.cos(jax.grad(fun)(x)))


def by_grad_numpy(fun):
    return lambda x: np.sum(np.cos(numeric(fun, x)))


def by_jvp(fun):
    return lambda x: jax.jvp(fun, (x,), (jnp.cos(x),))[1]


def by_jvp_numpy(fun):
    return lambda x: numeric(fun, x) @ np.cos(x)


def by_vmap(fun):
    return lambda x: jnp.sum(jax.vmap(lambda s: fun(s * x))(jnp.array([0.5, 1.0, 1.5], x.dtype)))


def by_vmap_numpy(fun):
    return lambda x: sum(fun(s * x) for s in (0.5, 1.0, 1.5))


def by_linearize(fun):
    return lambda x: jax.linearize(fun, x)[1](jnp.sin(x))


def by_linearize_numpy(fun):
    return lambda x: numeric(fun, x) @ np.sin(x)


def numeric(fun, x, step=1e-5):
    eye = np.eye(x.size) * step
    # Fourth order, so that three nested derivatives still have digits left.
    return np.array([(8 * (fun(x + e) - fun(x - e)) - (fun(x + 2 * e) - fun(x - 2 * e))) / (12 * step) for e in eye])


WRAPPERS = {
    "grad": (by_grad, by_grad_numpy),
    "jvp": (by_jvp, by_jvp_numpy),
    "vmap": (by_vmap, by_vmap_numpy),
    "linearize": (by_linearize, by_linearize_numpy),
    "jit": (jax.jit, lambda fun: fun),
    "checkpoint": (checkpointed, lambda fun: fun),
}
DERIVATIVES = {"grad", "jvp", "linearize"}


def chains(depth):
    return list(itertools.product(WRAPPERS, repeat=depth))


def check(chain):
    ours, theirs = f, value
    order = sum(name in DERIVATIVES for name in chain)
    for name in chain:
        wrap, wrap_numpy = WRAPPERS[name]
        ours, theirs = wrap(ours), wrap_numpy(theirs)
    x = jnp.asarray(X, dtype="float64")
    got = np.asarray(ours(x))
    assert got.dtype == np.float64
    # Differences of differences lose five digits each time.
    if order <= 2:
        np.testing.assert_allclose(got, theirs(X), rtol=10.0 ** (-9 + 4 * order))
    else:
        jitted = np.asarray(jax.jit(ours)(x))
        np.testing.assert_allclose(got, jitted, rtol=1e-10)


@pytest.mark.parametrize("chain", chains(1) + chains(2), ids="-".join)
def test_depth_two(chain):
    check(chain)


@pytest.mark.parametrize("chain", chains(3)[::5], ids="-".join)
def test_depth_three(chain):
    check(chain)


@pytest.mark.full
@pytest.mark.parametrize("chain", chains(3), ids="-".join)
def test_depth_three_all(chain):
    check(chain)
