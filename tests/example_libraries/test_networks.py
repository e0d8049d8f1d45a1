"""Optimizers find minima and keep their states' structure; networks have the shapes they announce, and learn."""

import numpy as np
import pytest

import morphax
from morphax import numpy as jnp
from morphax import random
from morphax.example_libraries import optimizers, stax

KEY = random.key(0)
OPTIMIZERS = {
    "sgd": (0.1,), "momentum": (0.02, 0.9), "nesterov": (0.02, 0.9), "adagrad": (0.5,), "rmsprop": (0.02,),
    "rmsprop_momentum": (0.01,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.5,),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_descend(name):
    init, update, get = getattr(optimizers, name)(*OPTIMIZERS[name])
    loss = lambda p: (p["w"] ** 2).sum() + (p["v"][0] - 1) ** 2  # noqa: E731
    params = {"w": jnp.array([[1.0, -2.0]]), "v": [jnp.array(3.0)]}
    step = morphax.jit(lambda i, state: update(i, morphax.grad(loss)(get(state)), state))
    state = init(params)
    for i in range(200):
        state = step(i, state)
    assert loss(get(state)) < 0.01
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert morphax.tree.structure(again) == morphax.tree.structure(state)


def test_one_step_of_adam_is_that_of_the_paper():
    init, update, get = optimizers.adam(0.1)
    state = update(0, jnp.array([3.0, -4.0]), init(jnp.zeros(2)))
    np.testing.assert_allclose(get(state), [-0.1, 0.1], rtol=1e-6)


def test_schedules():
    assert [optimizers.polynomial_decay(1.0, 10, 0.0)(i).item() for i in (0, 5, 20)] == [1.0, 0.5, 0.0]
    assert [optimizers.piecewise_constant([2, 5], [1.0, 2.0, 3.0])(i).item() for i in (0, 3, 9)] == [1.0, 2.0, 3.0]
    assert optimizers.exponential_decay(1.0, 2, 0.25)(1) == 0.5
    assert optimizers.inverse_time_decay(1.0, 2, 2.0)(1) == 0.5
    with pytest.raises(TypeError, match="make_schedule"):
        optimizers.make_schedule(np.ones(3))
    with pytest.raises(ValueError, match="one value more"):
        optimizers.piecewise_constant([1], [1.0])


def test_gradients_are_clipped():
    clipped = optimizers.clip_grads({"a": jnp.array([3.0, 4.0])}, 1.0)
    np.testing.assert_allclose(clipped["a"], [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(optimizers.l2_norm([jnp.array([3.0]), jnp.array(4.0)]), 5.0)


def test_gradients_of_another_structure_are_refused():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="structure of the parameters"):
        update(0, [jnp.zeros(2)], init(jnp.zeros(2)))


LAYERS = {
    "conv": stax.Conv(4, (3, 3)),
    "strided": stax.Conv(4, (3, 2), (2, 1), "SAME"),
    "transposed": stax.ConvTranspose(3, (4, 3), (2, 2)),
    "batch norm": stax.BatchNorm(),
    "max pool": stax.MaxPool((2, 2), (2, 2)),
    "avg pool": stax.AvgPool((3, 3), padding="SAME"),
    "sum pool": stax.SumPool((2, 2)),
    "flatten": stax.Flatten,
    "residual": stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Identity), stax.FanInSum),
    "joined": stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Tanh), stax.FanInConcat()),
    "dropout": stax.serial(stax.Dropout(0.5), stax.Gelu),
    "dependent": stax.shape_dependent(lambda shape: stax.Dense(shape[-1] * 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_announce_their_shapes(name):
    init, apply = LAYERS[name]
    shape, params = init(KEY, (2, 8, 8, 3))
    assert apply(params, jnp.ones((2, 8, 8, 3)), rng=KEY).shape == tuple(shape)


def test_means_over_padded_windows_count_entries():
    _, apply = stax.AvgPool((2, 2), padding="SAME")
    np.testing.assert_allclose(apply((), jnp.ones((1, 3, 3, 1))), 1)


def test_dropout_needs_a_key():
    _, apply = stax.Dropout(0.5)
    with pytest.raises(ValueError, match="random key"):
        apply((), jnp.ones(3))
    kept = np.asarray(apply((), jnp.ones(1000), rng=KEY))
    assert set(kept.tolist()) == {0.0, 2.0}
    assert stax.Dropout(0.5, mode="test")[1]((), jnp.ones(2), rng=KEY).tolist() == [1.0, 1.0]


def test_a_network_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    _, params = init(KEY, (-1, 1))
    x = jnp.linspace(-1, 1, 32)[:, None]
    opt_init, opt_update, get = optimizers.adam(0.02)
    loss = lambda p: ((apply(p, x) - jnp.sin(3 * x)) ** 2).mean()  # noqa: E731
    step = morphax.jit(lambda i, s: opt_update(i, morphax.grad(loss)(get(s)), s))
    state = opt_init(params)
    for i in range(300):
        state = step(i, state)
    assert loss(get(state)) < 0.01
