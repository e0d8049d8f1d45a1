"""Repeated blocks of flat programs become functions: found where they are, equal in value, and left alone elsewhere."""

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax.ir.jaxpr import check
from morphax.runtime import outline

rng = np.random.default_rng(0)


def draw(*shape):
    return (rng.normal(size=shape) * 0.1).astype("float32")


def residual(layers):
    weights = [(draw(8, 16), draw(16, 8), draw(8)) for _ in range(layers)]

    def loss(weights, x):
        for w, v, b in weights:
            mean = x.mean(-1, keepdims=True)
            h = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
            h = jnp.tanh(h @ w)
            h = h / (1.0 + jnp.exp(-h))
            x = x + (h @ v) * 0.5 + b
        return (x * x).sum()

    return jax.value_and_grad(loss), (weights, draw(4, 8))


def recurrent(steps):
    weights, xs = draw(8, 32), draw(steps, 2, 8)

    def loss(w, xs):
        h = c = jnp.zeros((2, 8))
        for t in range(steps):
            z = xs[t] @ w + h @ w
            i, f, g, o = (z[:, k * 8 : (k + 1) * 8] for k in range(4))
            c = c / (1 + jnp.exp(-f)) + jnp.tanh(g) / (1 + jnp.exp(-i))
            h = jnp.tanh(c) / (1 + jnp.exp(-o))
        return (h * h).sum()

    return jax.value_and_grad(loss), (weights, xs)


def chain(steps):
    def fun(x, a, b):
        for _ in range(steps):
            x = jnp.sin(x) * a + b
        return x

    return fun, (draw(16), draw(16), draw(16))


def perceptron(layers):
    weights = [draw(8, 8) for _ in range(layers)]

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x * x).sum()

    return jax.value_and_grad(loss), (weights, draw(4, 8))


def blocks(fun, args):
    program = jax.jit(fun).trace(*args).program
    out = outline.outlined(program)
    check(out)
    calls = [eqn for eqn in out.eqns if eqn.params.get("name") == "block"]
    return program, calls


@pytest.mark.parametrize(
    ("make", "size", "functions", "least"),
    [(residual, 24, 2, 22), (recurrent, 24, 1, 20), (chain, 600, 1, 70)],
    ids=["residual", "recurrent", "chain"],
)
def test_blocks_are_found_and_change_no_value(make, size, functions, least):
    fun, args = make(size)
    _, calls = blocks(fun, args)
    assert len({eqn.params["jaxpr"] for eqn in calls}) >= functions
    assert len(calls) >= least
    outlined = jax.jit(fun)(*args)
    with_flag_off(fun, args, outlined)


def with_flag_off(fun, args, outlined):
    jax.config.update("morphax_outline", False)
    try:
        flat = jax.jit(lambda *a: fun(*a))
        program = flat.trace(*args).program
        assert outline.outlined(program) is program
        expected = flat(*args)
    finally:
        jax.config.update("morphax_outline", True)
    for a, b in zip(jax.tree.leaves(outlined), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("make", "size"), [(perceptron, 200), (residual, 3)], ids=["no carry", "short"])
def test_programs_that_gain_nothing_stay_flat(make, size):
    _, calls = blocks(*make(size))
    assert calls == []


def test_the_compiled_program_keeps_the_functions():
    fun, args = chain(600)
    text = jax.jit(fun).lower(*args).as_text()
    assert text.count("func.call @block") + text.count("call @block") >= 20
    assert 'inlineable = "false"' in text
    assert jax.jit(fun).lower(*args).compile().as_text().count(" call(") >= 20


def test_jitted_blocks_called_often_stay_functions():
    @jax.jit
    def layer(x, w):
        h = jnp.tanh(x @ w)
        return x + h / (1.0 + jnp.exp(-h)) * 0.5 - h.mean()

    def loss(ws, x):
        for w in ws:
            x = layer(x, w)
        return (x * x).sum()

    ws = [draw(8, 8) for _ in range(4)]
    lowered = jax.jit(jax.grad(loss)).lower(ws, draw(4, 8))
    # Three of four, forwards and backwards: the first layer's input has no gradient, so its functions are others.
    assert lowered.as_text().count('inlineable = "false"') == 6
    assert lowered.as_text().count("func.func private @layer") == 4


def test_explain_says_what_was_done():
    fun, args = chain(600)
    assert "copies of" in jax.jit(fun).explain(*args)
    assert "outlined: nothing" in jax.jit(lambda x: x + 1).explain(1.0)


def test_a_block_with_different_literals_is_not_one():
    def fun(x):
        for k in range(600):
            x = jnp.sin(x) * (1.0 + k / 1000.0) + 0.5
        return x

    _, calls = blocks(fun, (draw(4),))
    assert calls == []
