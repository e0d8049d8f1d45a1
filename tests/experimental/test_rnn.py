"""LSTMs against a plain loop in NumPy."""

import numpy as np
import pytest

import morphax
from morphax import numpy as jnp
from morphax import random
from morphax.experimental import rnn
from morphax.test_util import check_grads

INPUT, HIDDEN, LAYERS, BATCH, TIME = 3, 4, 2, 2, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(BATCH, TIME, INPUT)).astype("f")


def plain(x, h0, c0, parts, lengths, both):
    """One example at a time, one step at a time."""

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    directions = 2 if both else 1
    h_n, c_n = np.array(h0), np.array(c0)
    out = np.zeros((BATCH, TIME, HIDDEN * directions))
    for b, n in enumerate(lengths):
        rows = x[b, :n]
        for layer in range(LAYERS):
            made = np.zeros((n, HIDDEN * directions))
            for d in range(directions):
                k = layer * directions + d
                w_ih, w_hh, b_ih, b_hh = [np.asarray(part[k]) for part in parts]
                h, c = h0[k, b], c0[k, b]
                for t in range(n)[:: -1 if d else 1]:
                    i, f, g, o = np.split(w_ih @ rows[t] + b_ih + w_hh @ h + b_hh, 4)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = sigmoid(o) * np.tanh(c)
                    made[t, d * HIDDEN : (d + 1) * HIDDEN] = h
                h_n[k, b], c_n[k, b] = h, c
            rows = made
        out[b, :n] = rows
    return out, h_n, c_n


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("lengths", [(5, 5), (3, 5)])
@pytest.mark.parametrize("jitted", [False, True])
def test_values_are_those_of_a_plain_loop(both, lengths, jitted):
    k = LAYERS * (2 if both else 1)
    h0, c0 = RNG.normal(size=(2, k, BATCH, HIDDEN)).astype("f")
    sizes = (INPUT, HIDDEN, LAYERS)
    weights = rnn.init_lstm_weight(random.key(0), *sizes, both)
    parts = rnn.unpack_lstm_weights(weights, *sizes, both)
    wanted = plain(X, h0, c0, parts, lengths, both)

    def run(x, w):
        return rnn.lstm(x, h0, c0, w, jnp.array(lengths), *sizes, 0.0, both)

    got = (morphax.jit(run) if jitted else run)(X, weights)
    apart = rnn.lstm_ref(X, h0, c0, *parts, jnp.array(lengths), *sizes, 0.0, both)
    for a, b, c in zip(got, apart, wanted, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(b, c, rtol=1e-5, atol=1e-5)


def test_gradients():
    weights = rnn.init_lstm_weight(random.key(1), INPUT, HIDDEN, LAYERS, True)
    start = jnp.zeros((4, BATCH, HIDDEN))

    def run(x, w):
        return rnn.lstm(x, start, start, w, jnp.array([3, 5]), INPUT, HIDDEN, LAYERS, 0.0, True)

    check_grads(run, (X, weights), 1, rtol=1e-2, atol=1e-2)


def test_initial_weights_are_the_documented_draw():
    weights = rnn.init_lstm_weight(random.key(0), INPUT, HIDDEN, 1, False)
    np.testing.assert_allclose(weights[:3], [0.447667, 0.47857988, -0.16770852], rtol=1e-6)
    swapped = rnn.swap_lstm_gates(jnp.arange(32.0), 1, 1, 2, False)
    np.testing.assert_array_equal(swapped[:8], [0, 1, 3, 2, 4, 5, 7, 6])


def test_bad_input_is_explained():
    start = jnp.zeros((1, BATCH, HIDDEN))
    with pytest.raises(ValueError, match="init_lstm_weight"):
        rnn.lstm(X, start, start, jnp.zeros(7), jnp.array([5, 5]), INPUT, HIDDEN, 1, 0.0, False)
    weights = rnn.init_lstm_weight(random.key(0), INPUT, HIDDEN, 1, False)
    with pytest.raises(NotImplementedError, match="dropout"):
        rnn.lstm(X, start, start, weights, jnp.array([5, 5]), INPUT, HIDDEN, 1, 0.5, False)
