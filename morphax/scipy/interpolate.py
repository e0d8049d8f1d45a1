"""Interpolation on rectangular grids."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.scipy.operands import typeof
from morphax.support import dtypes


class RegularGridInterpolator:
    """Interpolation of values on a rectangular grid.

    Args:
      points: for each dimension the places of the grid, rising (or falling) strictly.
      values: shape (len(points[0]), ..., *rest).
      method: "linear" or "nearest".
      bounds_error: only False.
      fill_value: the value outside the grid; None extrapolates.

    >>> f = RegularGridInterpolator((jnp.array([0.0, 1.0]),), jnp.array([0.0, 10.0]))
    >>> f(jnp.array([[0.25]])).tolist()
    [2.5]
    """

    def __init__(
        self, points: Sequence[Any], values: Any, method: str = "linear", bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):  # fmt: skip
        if method not in ("linear", "nearest"):
            raise ValueError(f"RegularGridInterpolator: method must be linear or nearest; it is {method!r}.")
        if bounds_error:
            raise NotImplementedError("RegularGridInterpolator: bounds_error would need values while tracing.")
        values = jnp.asarray(values)
        points = [jnp.asarray(p) for p in points]
        shape = typeof(values).shape
        if len(points) > len(shape):
            raise ValueError(f"RegularGridInterpolator: {len(points)} point arrays for values of shape {shape}.")
        sizes = tuple([typeof(p).shape for p in points])
        if sizes != tuple([(n,) for n in shape[: len(points)]]):
            raise ValueError(f"RegularGridInterpolator: points of shapes {sizes} do not fit values of shape {shape}.")
        self.method, self.fill_value = method, fill_value
        self.values = values.astype(dtypes.to_inexact(typeof(values).dtype))
        self.grid = tuple(points)

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The values at `xi`, of shape (..., dimensions), or an array for each dimension: shape (..., *rest)."""
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise ValueError(f"RegularGridInterpolator: method must be linear or nearest; it is {method!r}.")
        if isinstance(xi, (list, tuple)):
            xi = jnp.stack(jnp.broadcast_arrays(*[jnp.asarray(x) for x in xi]), axis=-1)
        xi = jnp.asarray(xi)
        count = len(self.grid)
        xi = xi[:, None] if typeof(xi).ndim == 1 and count == 1 else xi
        if not typeof(xi).ndim or typeof(xi).shape[-1] != count:
            raise ValueError(f"RegularGridInterpolator: xi must end in {count}; its shape is {typeof(xi).shape}.")
        places = [self._place(grid, xi[..., i]) for i, grid in enumerate(self.grid)]
        rest = [1] * (typeof(self.values).ndim - count)
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=count):
            weight: Any = 1
            for side, (_, share, _) in zip(corner, places):
                share = jnp.where(share > 0.5, 1, 0).astype(typeof(share).dtype) if method == "nearest" else share
                weight = weight * (share if side else 1 - share)
            value = self.values[tuple([low + side for side, (low, _, _) in zip(corner, places)])]
            total = total + value * jnp.reshape(weight, (*typeof(xi).shape[:-1], *rest))
        if self.fill_value is None:
            return total
        outside = jnp.any(jnp.stack([out for _, _, out in places]), axis=0)
        return jnp.where(jnp.reshape(outside, (*typeof(xi).shape[:-1], *rest)), self.fill_value, total)

    @staticmethod
    def _place(grid: Any, x: Any) -> tuple[Any, Any, Any]:
        """The cell's lower index, the share of its upper end, and whether x lies outside the grid."""
        n = typeof(grid).shape[0]
        low = jnp.clip(jnp.searchsorted(grid, x, side="right") - 1, 0, n - 2)
        share = (x - grid[low]) / (grid[low + 1] - grid[low])
        return low, share, (x < grid[0]) | (x > grid[-1])
