"""The programs of the document that the project was created from, unchanged but for the import line."""

import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp


def predict(params, inputs):
    for W, b in params:
        outputs = jnp.dot(inputs, W) + b
        inputs = jnp.tanh(outputs)  # inputs to the next layer
    return outputs  # no activation on last layer


def loss(params, inputs, targets):
    preds = predict(params, inputs)
    return jnp.sum((preds - targets) ** 2)


def tanh(x):
    y = jnp.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


def abs_val(x):
    if x > 0:
        return x
    else:
        return -x


def slow_f(x):
    # Element-wise ops see a large benefit from fusion
    return x * x + x * 2.0


def l1_distance(x, y):
    assert x.ndim == y.ndim == 1  # only works on 1D inputs
    return jnp.sum(jnp.abs(x - y))


def pairwise_distances(dist1D, xs):
    return jax.vmap(jax.vmap(dist1D, (0, None)), (None, 0))(xs, xs)


@pytest.fixture
def network():
    rng = np.random.default_rng(0)
    sizes = [3, 5, 2]
    params = [
        (rng.normal(size=(m, n)).astype("float32"), rng.normal(size=n).astype("float32"))
        for m, n in itertools.pairwise(sizes)
    ]
    return params, rng.normal(size=(7, 3)).astype("float32"), rng.normal(size=(7, 2)).astype("float32")


def numeric_gradient(params, inputs, targets):
    """Central differences in float64, in NumPy alone."""

    def value(flat):
        x, at = inputs.astype(float), 0
        for k, (W, b) in enumerate(params):
            w = flat[at : at + W.size].reshape(W.shape)
            c = flat[at + W.size : at + W.size + b.size]
            at += W.size + b.size
            out = x @ w + c
            x = np.tanh(out) if k + 1 < len(params) else out
        return np.sum((x - targets) ** 2)

    flat = np.concatenate([a.ravel() for pair in params for a in pair]).astype(float)
    eye = np.eye(flat.size) * 1e-6
    return np.array([(value(flat + e) - value(flat - e)) / 2e-6 for e in eye])


def test_derivative_of_tanh():
    grad_tanh = jax.grad(tanh)
    assert str(grad_tanh(1.0)) == "0.4199743"


def test_third_derivative_of_tanh():
    third = jax.grad(jax.grad(jax.grad(tanh)))(1.0)
    np.testing.assert_allclose(third, 0.62162673, rtol=3e-7)


def test_branches_on_values_under_grad():
    abs_val_grad = jax.grad(abs_val)
    assert str(abs_val_grad(1.0)) == "1.0"
    assert str(abs_val_grad(-1.0)) == "-1.0"


def test_compiled_gradient_of_a_network(network):
    params, inputs, targets = network
    grad_loss = jax.jit(jax.grad(loss))
    grads = grad_loss(params, inputs, targets)
    flat = np.concatenate([np.ravel(g) for pair in grads for g in pair])
    np.testing.assert_allclose(flat, numeric_gradient(params, inputs, targets), rtol=2e-4, atol=2e-4)


def test_per_example_gradients(network):
    params, inputs, targets = network
    grad_loss = jax.jit(jax.grad(loss))
    for perex_grads in (
        jax.jit(jax.vmap(grad_loss, in_axes=(None, 0, 0))),
        jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))),
    ):
        (dW, _), _ = perex_grads(params, inputs, targets)
        assert dW.shape == (7, 3, 5)
        for k in range(7):
            np.testing.assert_allclose(dW[k], grad_loss(params, inputs[k], targets[k])[0][0], rtol=1e-4, atol=1e-5)


def test_compilation_changes_no_value():
    x = jnp.ones((5000, 50))
    fast_f = jax.jit(slow_f)
    np.testing.assert_array_equal(fast_f(x), slow_f(x))
    assert float(fast_f(x)[0, 0]) == 3.0


def test_pairwise_distances():
    xs = jax.random.normal(jax.random.key(0), (100, 3))
    dists = pairwise_distances(l1_distance, xs)
    assert dists.shape == (100, 100)
    host = np.asarray(xs)
    np.testing.assert_allclose(dists, np.abs(host[:, None] - host[None]).sum(-1), rtol=1e-5)


def test_loops_recursion_and_closures_under_grad():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert float(jax.grad(lambda x: power(x, 5))(2.0)) == 80.0

    def loop(x):
        total = 0.0
        for k in range(4):
            total = total + x**k
            while total > 100.0:
                total = total / 2.0
        return total

    assert float(jax.grad(loop)(2.0)) == 1 + 4 + 12

    scale = jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(scale * x))(jnp.ones(3)), scale)
    # A closure over the variable of an outer derivative.
    assert float(jax.grad(lambda x: jax.grad(lambda y: x * y**2)(3.0))(2.0)) == 6.0


@pytest.mark.parametrize("first", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("second", [jax.jacfwd, jax.jacrev])
def test_forward_and_reverse_in_any_order(first, second):
    def f(x):
        return jnp.sum(jnp.sin(x) * x)

    x = np.array([0.3, -0.5, 1.2], "float32")
    want = np.diag(2 * np.cos(x) - x * np.sin(x))
    np.testing.assert_allclose(first(second(f))(x), want, rtol=1e-5, atol=1e-6)


def test_program_that_imports_jax_runs_unchanged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import jax
        import jax.numpy as jnp

        def tanh(x):
          y = jnp.exp(-2.0 * x)
          return (1.0 - y) / (1.0 + y)

        grad_tanh = jax.grad(tanh)
        print(grad_tanh(1.0))
        xs = jax.random.normal(jax.random.key(0), (100, 3))
        print(jax.vmap(jax.vmap(lambda x, y: jnp.sum(jnp.abs(x - y)), (0, None)), (None, 0))(xs, xs).shape)
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "morphax", str(program)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split("\n")[:2] == ["0.4199743", "(100, 100)"]
