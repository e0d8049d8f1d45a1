"""Integrals of sampled functions."""

from typing import Any

from morphax import numpy as jnp


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule, over the places `x`, or `dx` apart.

    >>> trapezoid(jnp.array([1.0, 2.0])).item()
    1.5
    """
    return jnp.trapezoid(y, x, dx, axis)
