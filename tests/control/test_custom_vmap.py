"""Batching rules of one's own: when they run, and that derivatives follow them."""

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax.custom_batching import custom_vmap, sequential_vmap

X = jnp.arange(3.0)


def doubled(calls):
    """x, y -> sin(x) y, whose rule gives the double, so that it shows where it ran."""

    @custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def rule(size, in_batched, x, y):
        calls.append((size, in_batched))
        x, y = (a if b else jnp.broadcast_to(a, (size, *a.shape)) for a, b in zip((x, y), in_batched, strict=True))
        return 2.0 * jnp.sin(x) * y, True

    return f


def plain(x, y):
    return 2.0 * jnp.sin(x) * y


def test_the_rule_learns_what_is_batched():
    calls = []
    f = doubled(calls)
    np.testing.assert_allclose(f(X, 2.0), jnp.sin(X) * 2.0, rtol=1e-6)
    assert calls == []
    jax.vmap(f, (0, None))(X, 2.0)
    jax.vmap(f, (None, 0))(2.0, X)
    jax.vmap(lambda x: f(y=x, x=x))(X)
    assert calls == [(3, [True, False]), (3, [False, True]), (3, [True, True])]


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_derivatives_are_those_of_the_rule(axes, wrap):
    args = tuple(2.0 if axis is None else X for axis in axes)
    transforms = [
        lambda f: f,
        lambda f: jax.grad(f, 0),
        lambda f: jax.grad(f, 1),
        lambda f: jax.jacfwd(f, 0),
        lambda f: jax.grad(jax.grad(f, 1), 0),
        lambda f: jax.jacfwd(jax.grad(f, 0), 1),
        lambda f: jax.value_and_grad(f, (0, 1)),
    ]
    for transform in transforms:
        got = wrap(jax.vmap(transform(doubled([])), axes))(*args)
        want = jax.vmap(transform(plain), axes)(*args)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), got, want)
        summed = lambda f: jax.grad(lambda *a: jnp.sum(jax.vmap(f, axes)(*a)), (0, 1))  # noqa: E731
        got, want = wrap(summed(doubled([])))(*args), summed(plain)(*args)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), got, want)


def test_nested_vmap_runs_the_rule_once():
    calls = []
    f = doubled(calls)
    got = jax.vmap(jax.vmap(f, (0, None)), (None, 0))(X, X)
    np.testing.assert_allclose(got, plain(X[None], X[:, None]), rtol=1e-6)
    assert calls == [(3, [True, False])]


def test_pytrees_and_parts_that_are_not_batched():
    @custom_vmap
    def f(tree):
        return {"a": tree["a"] + 1.0, "b": (tree["b"], None)}

    @f.def_vmap
    def rule(size, in_batched, tree):
        assert in_batched == [{"a": True, "b": False}]
        return {"a": tree["a"] + 1.0, "b": (tree["b"], None)}, {"a": True, "b": False}

    out = jax.vmap(f, ({"a": 0, "b": None},))({"a": X, "b": 5.0})
    assert out["a"].tolist() == [1.0, 2.0, 3.0]
    assert out["b"][0].tolist() == [5.0] * 3
    assert out["b"][1] is None


def test_values_that_differ_must_be_arguments():
    def of(w):
        f = custom_vmap(lambda x: x * w)
        f.def_vmap(lambda size, in_batched, x: (x, True))
        return f(2.0)

    with pytest.raises(TypeError, match="closes over a value that differs within the batch"):
        jax.vmap(of)(X)
    with pytest.raises(TypeError, match="closes over a value that is being differentiated"):
        jax.grad(of)(1.0)


def test_a_rule_is_needed():
    with pytest.raises(AttributeError, match="no batching rule was given for <lambda>"):
        custom_vmap(lambda x: x)(1.0)


def test_sequential_vmap_is_a_loop():
    f = sequential_vmap(lambda x, y: jnp.sin(x) * y)
    text = str(jax.make_jaxpr(jax.vmap(f, (0, None)))(X, 2.0))
    assert "scan[" in text
    assert "length=3" in text
    np.testing.assert_allclose(jax.vmap(f, (0, None))(X, 2.0), jnp.sin(X) * 2.0, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.vmap(f))(X[None], X[None]), (jnp.sin(X) * X)[None], rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(f), (0, None))(X, 2.0), jnp.cos(X) * 2.0, rtol=1e-6)
