"""Arguments of SciPy's functions as floating arrays, and functions whose derivatives are given."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from morphax import numpy as jnp
from morphax.control.custom import custom_jvp
from morphax.ir import avals
from morphax.numpy import promotion
from morphax.support import dtypes

typeof = avals.operand_type


def floats(name: str, *xs: Any) -> list[Any]:
    """The arguments as real floating arrays of one dtype and one shape.

    Raises:
        TypeError: an argument is complex.
    """
    args = promotion.operands(name, xs, inexact=True)
    if any(dtypes.is_complex(typeof(x).dtype) for x in args):
        raise TypeError(f"{name}: takes real numbers; a complex array was given. Take its real part.")
    return _same_shape(args)


def numbers(name: str, *xs: Any) -> list[Any]:
    """The arguments as floating or complex arrays of one dtype and one shape."""
    return _same_shape(promotion.operands(name, xs, inexact=True))


def _same_shape(args: Sequence[Any]) -> list[Any]:
    args = [x if hasattr(x, "aval") else jnp.asarray(x) for x in args]
    return list(jnp.broadcast_arrays(*args)) if len(args) > 1 else args


def smooth(*partials: Callable[..., Any] | None) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: an elementwise function's partial derivatives (result, *operands) -> factor; None for zero."""

    def decorate(fun: Callable[..., Any]) -> Any:
        @functools.wraps(fun)
        def of_arrays(*xs: Any) -> Any:
            return fun(*map(jnp.asarray, xs))  # under grad, numbers come as Python floats

        out = custom_jvp(of_arrays)
        out.defjvps(*[None if p is None else _rule(p) for p in partials])
        return out

    return decorate


def _rule(partial: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, y, *xs: t * partial(y, *map(jnp.asarray, xs))


def wide(x: Any) -> Any:
    """The dtype that `x` is computed in: float32 for the halves, else its own."""
    dtype = typeof(x).dtype
    return dtypes.float32 if dtype.itemsize < 4 else dtype
