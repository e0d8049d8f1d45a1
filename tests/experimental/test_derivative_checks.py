"""ravel_pytree, and derivatives held to difference quotients."""

import numpy as np
import pytest

import morphax
from morphax import flatten_util, test_util
from morphax import numpy as jnp


def test_ravel_pytree_goes_there_and_back():
    given = {"a": jnp.arange(4.0).reshape(2, 2), "b": [3, None, jnp.ones((0,))]}
    vector, unravel = flatten_util.ravel_pytree(given)
    assert vector.shape == (5,) and vector.dtype == np.float32
    back = unravel(vector)
    assert back["b"][1] is None and back["b"][0].dtype == np.int32
    np.testing.assert_array_equal(back["a"], given["a"])
    assert flatten_util.ravel_pytree(())[0].shape == (0,)


def test_ravel_pytree_is_differentiable():
    def energy(params):
        vector, unravel = flatten_util.ravel_pytree(params)
        return (vector**2).sum() + unravel(vector * 2)["w"].sum()

    slope = morphax.grad(energy)({"w": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)})
    np.testing.assert_allclose(slope["w"], [4.0, 6.0])
    np.testing.assert_allclose(slope["b"], 6.0)


def test_unravel_refuses_other_shapes_and_dtypes():
    _, unravel = flatten_util.ravel_pytree([1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        unravel(jnp.ones(3))
    with pytest.raises(TypeError, match="float32"):
        unravel(jnp.ones(2, jnp.int32))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_check_grads_accepts_right_derivatives(order):
    test_util.check_grads(lambda x, w: jnp.tanh(x @ w["w"]).sum(), (np.ones((2, 3), "f"), {"w": jnp.eye(3)}), order)


def test_check_grads_takes_integers_and_complex_numbers():
    test_util.check_grads(lambda x, n: x**2 * n, (jnp.array(1.5), 3), 2)
    test_util.check_grads(lambda z: z * z + 1.0, (jnp.array(1.5 + 2j),), 1)


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), "fwd"])
def test_check_grads_finds_wrong_derivatives(modes):
    @morphax.custom_jvp
    def wrong(x):
        return x * x

    wrong.defjvp(lambda x, t: (wrong(x[0]), 3 * x[0] * t[0]))
    with pytest.raises(AssertionError, match=r"jvp|vjp"):
        test_util.check_grads(wrong, (jnp.array(1.5),), 1, modes)


def test_check_grads_refuses_unknown_modes():
    with pytest.raises(ValueError, match="fwd"):
        test_util.check_grads(jnp.sin, (1.0,), 1, ("forward",))
