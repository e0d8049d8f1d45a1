"""Arguments of lax functions as operands. Nothing is promoted here but Python numbers, which take the dtype of the
other operands where that can hold their kind."""

from collections.abc import Sequence
from typing import Any

from morphax.numpy import promotion
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof
from morphax.support import dtypes

_PYTHON = frozenset((bool, int, float, complex))


def operand(name: str, x: Any) -> Any:
    """One argument as an operand with its own dtype.

    Raises:
        TypeError: it is no array and no number.
    """
    return x if hasattr(x, "aval") else promotion.array(name, x)


def operands(name: str, args: Sequence[Any]) -> list[Any]:
    """Arguments as operands; those of equal rank with sides of length 1 are stretched to one shape."""
    made = numbers(name, args)
    shape: tuple[int, ...] = ()
    for x in made:
        mine = typeof(x).shape
        if mine and mine != shape:
            if shape:
                return _stretched(made)
            shape = mine
    return made


def numbers(name: str, args: Sequence[Any]) -> list[Any]:
    """Arguments as operands, Python numbers in the dtype of the first that is not one."""
    dtype = None
    for x in args:
        if x.__class__ not in _PYTHON:
            dtype = typeof(operand(name, x)).dtype
            break
    return [_number(name, x, dtype) if x.__class__ in _PYTHON else operand(name, x) for x in args]


def _number(name: str, x: Any, dtype: Any) -> Any:
    if dtype is not None and not dtypes.is_extended(dtype):
        kind = x.__class__
        if dtypes.promote(dtype, False, dtypes.python_scalar_dtype(kind), kind is not bool)[0] == dtype:
            return promotion.literal(x, dtype)
    return promotion.array(name, x)


def _stretched(made: list[Any]) -> list[Any]:
    shapes = [typeof(x).shape for x in made if typeof(x).shape]
    if len({len(s) for s in shapes}) != 1:
        return made  # the primitive's type rule says what is wrong
    full = tuple([next((s for s in sides if s != 1), 1) for sides in zip(*shapes, strict=True)])
    if any(side not in (1, whole) for s in shapes for side, whole in zip(s, full, strict=True)):
        return made
    dims = tuple(range(len(full)))
    return [
        x
        if typeof(x).shape in ((), full)
        else ew.broadcast_in_dim(x, shape=full, broadcast_dimensions=dims, sharding=None)
        for x in made
    ]
