"""platform_dependent, optimization_barrier and checkpoint_name: identities or choices under every transform."""

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import lax
from morphax.ad_checkpoint import checkpoint_name

X = jnp.array([0.5, -1.25, 2.0])

CONSTRUCTS = {
    "platform_dependent": lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=lambda x: x / 0.0),
    "default": lambda x: lax.platform_dependent(x, tpu=lambda x: x / 0.0, default=jnp.sin),
    "optimization_barrier": lambda x: jnp.sin(lax.optimization_barrier(x)),
    "checkpoint_name": lambda x: checkpoint_name(jnp.sin(x), "sine"),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_values_and_derivatives(name, wrap):
    f = CONSTRUCTS[name]
    np.testing.assert_allclose(wrap(f)(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(wrap(jax.grad(lambda x: jnp.sum(f(x) ** 2)))(X), np.sin(2 * X), rtol=1e-5, atol=1e-7)
    value, tangent = wrap(lambda x, t: jax.jvp(f, (x,), (t,)))(X, 2 * X)
    np.testing.assert_allclose(value, np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(tangent, 2 * X * np.cos(X), rtol=1e-6)
    second = wrap(jax.vmap(jax.grad(jax.grad(f))))(X)
    np.testing.assert_allclose(second, -np.sin(X), rtol=1e-6)


def test_a_barrier_takes_trees_and_stays_in_the_program():
    tree = {"a": X, "b": (jnp.arange(3), None)}
    out = jax.jit(lax.optimization_barrier)(tree)
    assert jax.tree.structure(out) == jax.tree.structure(tree)
    assert out["b"][0].tolist() == [0, 1, 2]
    assert "optimization_barrier" in jax.jit(lax.optimization_barrier).lower(tree).as_text()


def test_a_platform_that_no_branch_names_is_refused():
    with pytest.raises(NotImplementedError, match="cpu"):
        jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin))(X)


def test_a_constraint_and_a_placement_of_batches():
    device = jax.devices()[0]
    rows = jnp.arange(6.0).reshape(2, 3)
    placed = jax.vmap(lambda x: jax.device_put(x, device) * 2)(rows)
    np.testing.assert_array_equal(placed, rows * 2)
    mesh = jax.make_mesh((1,), ("x",))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    constrained = jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(lax.with_sharding_constraint(x, spec) ** 2))))
    np.testing.assert_array_equal(constrained(rows), rows * 2)
