"""Long short-term memory over batches of sequences, with the weights in one vector as cuDNN lays them out.

S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997, with two biases for each gate. The gates stand in the
order input, forget, cell, output. A bidirectional layer is two, forward and backward, one after the other; the vector
holds W_ih and W_hh of each, then b_ih and b_hh of each.
"""

from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax import random
from morphax.control.loops import scan
from morphax.ops import elementwise as ew
from morphax.support.tracebacks import api_boundary

Weights = dict[int, Any]


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> float(sigmoid(jnp.array(0.0)))
    0.5
    """
    return ew.logistic(x)


tanh = jnp.tanh


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    """Shapes of all weights, then of all biases, in the order of the vector."""
    directions = 2 if bidirectional else 1
    weights: list[tuple[int, ...]] = []
    for layer in range(num_layers):
        width = hidden_size * directions if layer else input_size
        weights += [(4 * hidden_size, width), (4 * hidden_size, hidden_size)] * directions
    return weights + [(4 * hidden_size,)] * len(weights)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """Length of the vector of weights.

    >>> get_num_params_in_lstm(3, 4, 1, False)
    144
    """
    return sum(int(np.prod(s)) for s in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """Weights drawn uniformly from [-k, k), k = sqrt(1 / hidden_size), float32.

    >>> init_lstm_weight(random.key(0), 3, 4, 1, False).shape
    (144,)
    """
    bound = float(np.sqrt(1.0 / hidden_size))
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), jnp.float32, minval=-bound, maxval=bound)


def _pieces(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[Any]:
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    count = sum(int(np.prod(s)) for s in shapes)
    if np.shape(weights) != (count,):
        raise ValueError(
            f"lstm: these sizes need weights of shape ({count},); they have shape {np.shape(weights)}. "
            "init_lstm_weight makes them."
        )
    pieces, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        pieces.append(jnp.reshape(weights[start : start + size], shape))
        start += size
    return pieces


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """W_ih, W_hh, b_ih and b_hh of each direction of each layer, counted from 0.

    >>> weights = init_lstm_weight(random.key(0), 3, 4, 1, False)
    >>> unpack_lstm_weights(weights, 3, 4, 1, False)[0][0].shape
    (16, 3)
    """
    pieces = _pieces(weights, input_size, hidden_size, num_layers, bidirectional)
    half = len(pieces) // 2
    parts = (pieces[:half:2], pieces[1:half:2], pieces[half::2], pieces[half + 1 :: 2])
    w_ih, w_hh, b_ih, b_hh = [dict(enumerate(part)) for part in parts]
    return w_ih, w_hh, b_ih, b_hh


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """The vector of weights with the last two gates of each, cell and output, in the other order, as AMD's want them.

    >>> swap_lstm_gates(jnp.arange(16.0), 1, 1, 1, False)[:4].tolist()
    [0.0, 1.0, 3.0, 2.0]
    """
    swapped = []
    for piece in _pieces(weights, input_size, hidden_size, num_layers, bidirectional):
        i, f, g, o = jnp.split(piece, 4, axis=0)
        swapped.append(jnp.ravel(jnp.concatenate([i, f, o, g])))
    return jnp.concatenate(swapped)


@api_boundary
def lstm(
    x: Any, h_0: Any, c_0: Any, weights: Any, seq_lengths: Any, input_size: int, hidden_size: int, num_layers: int,
    dropout: float, bidirectional: bool, precision: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The outputs of every step and the last states of layers of LSTMs.

    Args:
        x: shape (batch, longest sequence, input_size).
        h_0, c_0: first states, shape (directions * num_layers, batch, hidden_size).
        weights: vector, see `init_lstm_weight`.
        seq_lengths: lengths of the sequences, shape (batch,).
        dropout: must be 0.
        bidirectional: each layer runs in both directions.
        precision: of the products, see lax.dot_general.

    Returns:
        (y, h_n, c_n): y of shape (batch, longest sequence, directions * hidden_size), zero beyond the end of a
        sequence; h_n, c_n the states at the ends, as h_0.

    Raises:
        NotImplementedError: dropout that is not 0. ValueError: weights of another size.

    >>> weights = init_lstm_weight(random.key(0), 3, 4, 1, False)
    >>> start = jnp.zeros((1, 2, 4))
    >>> lstm(jnp.ones((2, 5, 3)), start, start, weights, jnp.array([5, 3]), 3, 4, 1, 0.0, False)[0].shape
    (2, 5, 4)
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, precision)


@api_boundary
def lstm_ref(
    x: Any, h_0: Any, c_0: Any, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights, seq_lengths: Any,
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """`lstm` with the weights of each direction of each layer apart, as `unpack_lstm_weights` gives them.

    >>> parts = unpack_lstm_weights(init_lstm_weight(random.key(0), 3, 4, 1, False), 3, 4, 1, False)
    >>> start = jnp.zeros((1, 2, 4))
    >>> lstm_ref(jnp.ones((2, 5, 3)), start, start, *parts, jnp.array([5, 3]), 3, 4, 1, 0.0, False)[1].shape
    (1, 2, 4)
    """
    return _layers(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, num_layers, dropout, bidirectional, None)


def _layers(
    x: Any, h_0: Any, c_0: Any, parts: Any, lengths: Any, num_layers: int, dropout: float, both: bool, precision: Any
) -> tuple[Any, Any, Any]:
    if dropout:
        raise NotImplementedError(f"lstm: dropout={dropout!r} between layers is not there. Give 0, or drop yourself.")
    inside = jnp.arange(np.shape(x)[1])[:, None] < jnp.asarray(lengths)[None, :]
    rows, hs, cs = jnp.swapaxes(jnp.asarray(x), 0, 1), [], []
    directions = 2 if both else 1
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            own = tuple([part[k] for part in parts])
            (h, c), y = _direction(rows, h_0[k], c_0[k], own, inside, direction == 1, precision)
            outs.append(y)
            hs.append(h)
            cs.append(c)
        rows = jnp.concatenate(outs, axis=-1)
    return jnp.swapaxes(rows, 0, 1), jnp.stack(hs), jnp.stack(cs)


def _direction(rows: Any, h: Any, c: Any, own: Any, inside: Any, reverse: bool, precision: Any) -> Any:
    """One direction of one layer over rows (time, batch, features). Steps beyond the end of a sequence keep the state,
    so that the backward direction begins at the end."""
    w_ih, w_hh, b_ih, b_hh = own
    inputs = jnp.matmul(rows, w_ih.T, precision=precision) + b_ih + b_hh  # one product for all steps

    def step(state: Any, row: Any) -> Any:
        h, c = state
        of_input, on = row
        i, f, g, o = jnp.split(of_input + jnp.matmul(h, w_hh.T, precision=precision), 4, axis=-1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = sigmoid(o) * tanh(new_c)
        on = on[:, None]
        return (jnp.where(on, new_h, h), jnp.where(on, new_c, c)), jnp.where(on, new_h, 0.0)

    return scan(step, (jnp.asarray(h), jnp.asarray(c)), (inputs, inside), reverse=reverse)
