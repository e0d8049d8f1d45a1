"""Functions that make initial weights: each returns `init(key, shape, dtype, out_sharding)`."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from morphax import random
from morphax.numpy import creation, linalg, promotion, shapes, ufuncs, updates
from morphax.runtime import place
from morphax.support import dtypes

Axes = int | Sequence[int]


class Initializer(Protocol):
    """A function from a random key and a shape to an array."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any: ...


def _placed(x: Any, out_sharding: Any) -> Any:
    return x if out_sharding is None else place.device_put(x, out_sharding)


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def _initializer(default: Any, draw: Callable[[Any, tuple[int, ...], Any], Any]) -> Initializer:
    """An initializer from a function of key, shape and dtype."""

    def init(key: Any, shape: Any, dtype: Any = default, out_sharding: Any = None) -> Any:
        named = dtypes.named_dtype(default if dtype is None else dtype)
        return _placed(draw(key, _shape(shape), named), out_sharding)

    return init


def _scalar(value: Any, dtype: Any) -> Any:
    """A number in the dtype of the weights."""
    return promotion.as_dtype(value, dtype)


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros; `key` is not used."""
    return _placed(creation.zeros(_shape(shape), dtypes.named_dtype(dtype)), out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; `key` is not used."""
    return _placed(creation.ones(_shape(shape), dtypes.named_dtype(dtype)), out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Initializer with `value` everywhere, a number or an array that broadcasts.

    >>> from morphax import random
    >>> constant(3.0)(random.key(0), (2,)).tolist()
    [3.0, 3.0]
    """
    return _initializer(dtype, lambda key, shape, d: creation.full(shape, value, d))


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Initializer with uniform numbers in [0, scale)."""
    return _initializer(dtype, lambda key, shape, d: random.uniform(key, shape, d) * _scalar(scale, d))


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Initializer with normal numbers of mean 0."""
    return _initializer(dtype, lambda key, shape, d: random.normal(key, shape, d) * _scalar(stddev, d))


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Initializer with normal numbers that lie within [lower, upper], then times `stddev`.

    `stddev` is that before truncation; what comes out varies less.
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return random.truncated_normal(key, lower, upper, shape, dtype) * _scalar(stddev, dtype)

    return _initializer(dtype, draw)


# ---- variance from the shape -----------------------------------------------------------------------------------------


def _size(shape: tuple[int, ...], axes: Axes) -> int:
    axes = (axes,) if isinstance(axes, int) else axes
    return math.prod([shape[a] for a in axes])


def _fans(shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """Numbers of inputs and outputs that meet in one entry.

    Raises:
        ValueError: fewer than two axes.
    """
    if len(shape) <= 1:
        raise ValueError(
            f"variance_scaling: can't compute fan-in and fan-out of shape {shape}. Weights need at least two axes; "
            "initialize vectors with zeros or normal."
        )
    inputs, outputs, batch = (_size(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    field = math.prod(shape) / max(inputs, 1) / max(outputs, 1) / max(batch, 1)
    return inputs * field, outputs * field


_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: math.sqrt(inputs * outputs),
}
# Standard deviation of a standard normal number truncated to [-2, 2], and of a complex one to the disk of radius 2.
_TRUNCATED, _TRUNCATED_COMPLEX = 0.87962566103423978, 0.95311164380491208


def _disk_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Complex normal numbers of variance 1 within the disk of radius 2."""
    real = dtypes.to_real(dtype)
    length, angle = random.split(key)
    square = -ufuncs.log1p(-(1 - math.exp(-4)) * random.uniform(length, shape, real))
    return (ufuncs.sqrt(square) * _circle(angle, shape, real)).astype(dtype)


def _circle(key: Any, shape: tuple[int, ...], real: Any) -> Any:
    turn = 2 * math.pi * random.uniform(key, shape, real)
    return ufuncs.cos(turn) + 1j * ufuncs.sin(turn)


def _disk_uniform(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Complex numbers uniform in the unit disk."""
    real = dtypes.to_real(dtype)
    length, angle = random.split(key)
    return (ufuncs.sqrt(random.uniform(length, shape, real)) * _circle(angle, shape, real)).astype(dtype)


def _draw_truncated(key: Any, shape: tuple[int, ...], variance: float, dtype: Any) -> Any:
    if dtypes.is_complex(dtype):
        return _disk_normal(key, shape, dtype) * _scalar(math.sqrt(variance) / _TRUNCATED_COMPLEX, dtype)
    return random.truncated_normal(key, -2, 2, shape, dtype) * _scalar(math.sqrt(variance) / _TRUNCATED, dtype)


def _draw_normal(key: Any, shape: tuple[int, ...], variance: float, dtype: Any) -> Any:
    return random.normal(key, shape, dtype) * _scalar(math.sqrt(variance), dtype)


def _draw_uniform(key: Any, shape: tuple[int, ...], variance: float, dtype: Any) -> Any:
    if dtypes.is_complex(dtype):
        return _disk_uniform(key, shape, dtype) * _scalar(math.sqrt(2 * variance), dtype)
    return random.uniform(key, shape, dtype, -1) * _scalar(math.sqrt(3 * variance), dtype)


_DISTRIBUTIONS = {"truncated_normal": _draw_truncated, "normal": _draw_normal, "uniform": _draw_uniform}


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Initializer whose numbers have mean 0 and variance scale / n.

    Args:
        scale: positive.
        mode: n is the number of inputs ("fan_in"), of outputs ("fan_out"), or their arithmetic ("fan_avg") or
            geometric ("fan_geo_avg") mean.
        distribution: "truncated_normal", "normal" or "uniform". Complex truncated and uniform ones lie in disks.
        in_axis: axis or axes of the inputs.
        out_axis: axis or axes of the outputs. All axes not named count for both: convolution windows.
        batch_axis: axis or axes that do not count.
        dtype: of the weights where the call names none.

    Raises:
        ValueError: another mode or distribution; at the call, fewer than two axes.

    >>> from morphax import random
    >>> variance_scaling(2.0, "fan_in", "normal")(random.key(0), (3, 4)).shape
    (3, 4)
    """
    for what, value, known in (("mode", mode, _MODES), ("distribution", distribution, _DISTRIBUTIONS)):
        if value not in known:
            raise ValueError(f"variance_scaling: invalid {what} {value!r}. Choose one of {', '.join(known)}.")

    def draw(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        count = _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        return _DISTRIBUTIONS[distribution](key, shape, scale / max(count, 1e-30), dtype)

    return _initializer(dtype, draw)


def _scaling(name: str, scale: float, mode: str, distribution: str, source: str) -> Callable[..., Initializer]:
    def make(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f'`variance_scaling({scale}, "{mode}", "{distribution}", ...)`. {source}\n\n'
        "    Args:\n"
        "        in_axis: axis or axes of the inputs.\n"
        "        out_axis: axis or axes of the outputs.\n"
        "        batch_axis: axis or axes that do not count.\n"
        "        dtype: of the weights where the call names none.\n"
    )
    return make


_GLOROT = "Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, 2010."
_HE = "He, Zhang, Ren, Sun: arXiv 1502.01852."
_LECUN = "LeCun, Bottou, Orr, Mueller: Efficient backprop, 1998."
glorot_uniform = _scaling("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = _scaling("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
he_uniform = _scaling("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = _scaling("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
lecun_uniform = _scaling("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _scaling("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# ---- orthogonal ------------------------------------------------------------------------------------------------------


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Initializer with matrices whose columns (rows, where those are fewer) are orthogonal, of length `scale`.

    Saxe, McClelland, Ganguli: arXiv 1312.6120.

    Args:
        scale: length of the columns.
        column_axis: the axis of the columns; all others together are the rows.
        dtype: of the weights where the call names none.

    Raises:
        ValueError: at the call, fewer than two axes.
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: the shape {shape} has fewer than two axes. Initialize vectors with normal.")
        columns = shape[column_axis]
        rows = math.prod(shape) // max(columns, 1)
        tall = (columns, rows) if rows < columns else (rows, columns)
        basis, triangle = linalg.qr(random.normal(key, tall, dtype))
        signs = linalg.diagonal(triangle)
        basis = basis * ufuncs.sign(signs)[None, :]
        basis = basis.T if rows < columns else basis
        others = [*shape[:column_axis], *(shape[column_axis + 1 :] if column_axis != -1 else ())]
        basis = shapes.reshape(basis, (*others, columns))
        return shapes.moveaxis(basis, -1, column_axis) * _scalar(scale, dtype)

    return _initializer(dtype, draw)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Initializer of convolution windows: an orthogonal matrix in the middle, zeros around it.

    Xiao et al.: arXiv 1806.05393.

    Args:
        scale: length of the columns.
        column_axis: axis of the columns, of the last two.
        dtype: of the weights where the call names none.

    Raises:
        ValueError: at the call, a shape of other than 3, 4 or 5 axes, or with more inputs than outputs.
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: the shape {shape} must have 3, 4 or 5 axes.")
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal: the shape {shape} has more inputs ({shape[-2]}) than outputs ({shape[-1]}). "
                "Use orthogonal."
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple([(size - 1) // 2 for size in shape[:-2]])
        return updates.Place(creation.zeros(shape, dtype), middle).set(matrix)

    return _initializer(dtype, draw)
