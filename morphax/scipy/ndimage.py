"""Interpolation in images."""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.support import dtypes


def _mirrored(index: Any, size: int) -> Any:
    period = max(2 * (size - 1), 1)
    return (size - 1) - jnp.abs(jnp.mod(index, period) - (size - 1)) if size > 1 else index * 0


def _reflected(index: Any, size: int) -> Any:
    inside = jnp.mod(index, 2 * size)
    return jnp.where(inside < size, inside, 2 * size - 1 - inside)


# What stands beyond the edge: the index within.
_MODES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: jnp.mod(index, size),
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0) -> Any:
    """The values of an array at places between its entries, by the nearest (order 0) or linear interpolation (1).

    Args:
      coordinates: for each axis of `input` an array of places, all of one shape.
      mode: what stands beyond the edges: "constant" (`cval`), "nearest", "wrap" (with period n), "mirror" or "reflect".

    >>> map_coordinates(jnp.array([0.0, 10.0]), [jnp.array([0.25])], order=1).tolist()
    [2.5]
    """
    return _map_coordinates(input, tuple(coordinates), cval, order=operator.index(order), mode=mode)


def _nearest(x: Any) -> list[tuple[Any, Any]]:
    floor = jnp.floor(x)
    up = x - floor >= 0.5
    return [((floor + up).astype("int32"), 1)]


def _linear(x: Any) -> list[tuple[Any, Any]]:
    floor = jnp.floor(x)
    upper = x - floor
    low = floor.astype("int32")
    return [(low, 1 - upper), (low + 1, upper)]


@program("order", "mode")
def _map_coordinates(image: Any, coordinates: Any, cval: Any, order: int, mode: str) -> Any:
    image = jnp.asarray(image)
    shape, dtype = typeof(image).shape, typeof(image).dtype
    if len(coordinates) != len(shape):
        raise ValueError(f"map_coordinates: needs coordinates for {len(shape)} axes; {len(coordinates)} were given.")
    if mode not in _MODES:
        raise NotImplementedError(f"map_coordinates: mode must be one of {', '.join(_MODES)}; it is {mode!r}.")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order must be 0 or 1; it is {order}.")
    places = [jnp.asarray(c) for c in coordinates]
    places = [c.astype(dtypes.to_inexact(typeof(c).dtype)) for c in places]
    axes = [(_nearest if order == 0 else _linear)(c) for c in places]
    total: Any = 0
    for corner in itertools.product(*axes):
        indices = tuple([_MODES[mode](index, size) for (index, _), size in zip(corner, shape)])
        weight = functools.reduce(operator.mul, [w for _, w in corner], 1)
        if mode == "constant":
            inside = functools.reduce(
                operator.and_, [(i >= 0) & (i < size) for i, size in zip(indices, shape)], np.True_
            )
            indices = tuple([jnp.clip(i, 0, size - 1) for i, size in zip(indices, shape)])
            value = jnp.where(inside, image[indices], jnp.asarray(cval).astype(dtype))
        else:
            value = image[indices]
        total = total + value * weight
    return jnp.round(total).astype(dtype) if dtypes.is_integer(dtype) else jnp.asarray(total).astype(dtype)
