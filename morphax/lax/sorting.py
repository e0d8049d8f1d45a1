"""Sorting functions of lax."""

import operator as python
from collections.abc import Sequence
from typing import Any

from morphax.lax.arguments import operand as _operand
from morphax.lax.structure import axis_of
from morphax.ops import elementwise as ew
from morphax.ops import sorting
from morphax.ops.family import typeof


def sort(operand: Any | Sequence[Any], dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """`operand` in rising order along `dimension`; several arrays are reordered together.

    -0 and 0 are equal, NaN comes last, and complex numbers are ordered by real, then by imaginary part.

    Args:
        operand: array, or a sequence of arrays of one shape.
        dimension: static int; negative ones count from the end.
        is_stable: keep the order of equal entries.
        num_keys: how many of the arrays, from the first, decide the order.

    Returns:
        One array, or a tuple of as many as were given.

    Raises:
        ValueError: `num_keys` exceeds the number of arrays, or `dimension` the number of axes.

    Derivative: moves tangents as it moves entries.

    >>> from morphax import numpy as jnp
    >>> print(sort(jnp.array([3, 1, 2])))
    [1 2 3]
    >>> keys, values = sort((jnp.array([3, 1, 2]), jnp.array([30, 10, 20])))
    >>> print(values)
    [10 20 30]
    """
    several = isinstance(operand, (tuple, list))
    operands = [_operand("sort", x) for x in (operand if several else (operand,))]
    if not operands:
        raise TypeError("sort: no operands were given. Give at least one array.")
    axis = axis_of("sort", python.index(dimension), typeof(operands[0]).ndim)
    outs = sorting.sort(*operands, dimension=axis, is_stable=bool(is_stable), num_keys=python.index(num_keys))
    return tuple(outs) if several else outs[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """`keys` in rising order along `dimension`, and `values` reordered in the same way.

    >>> from morphax import numpy as jnp
    >>> keys, values = sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
    >>> print(keys, values)
    [1 2 3] [10 20 30]
    """
    return sort((keys, values), dimension=dimension, is_stable=is_stable, num_keys=1)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """Largest `k` entries of `operand` along `axis`, in falling order, and their positions.

    Args:
        operand: array of real numbers or bools.
        k: static int, 0 <= k <= size of the axis.
        axis: static int; negative ones count from the end.

    Returns:
        values, as operand.dtype; indices, int32. Of equal entries the first comes first. NaN counts as largest.

    Raises:
        ValueError: k outside [0, n].  TypeError: complex operand.

    Derivative: gathers tangents at `indices`; none for `indices`.
    Source: StableHLO `chlo.top_k`.

    >>> from morphax import numpy as jnp
    >>> values, indices = top_k(jnp.array([3, 9, 5]), 2)
    >>> print(values, indices)
    [9 5] [1 2]
    """
    x = _operand("top_k", operand)
    return sorting.top_k(x, k=python.index(k), axis=axis_of("top_k", python.index(axis), typeof(x).ndim))


def _check_recall(name: str, recall_target: float) -> None:
    if not 0 < recall_target <= 1:
        raise ValueError(
            f"{name}: recall_target {recall_target} must lie in (0, 1]. Give the share of true hits wanted."
        )


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """Largest `k` entries along an axis and their positions, of which a share may be missed; here none is.

    Args:
        operand: array of floats.
        k: static int, 0 <= k <= size of the axis.
        reduction_dimension: static int; negative ones count from the end.
        recall_target: share of the true largest entries to be found, in (0, 1].
        reduction_input_size_override: size that the recall refers to where the operand is a part of a larger array.
        aggregate_to_topk: give `k` entries; they are given in any case.

    >>> from morphax import numpy as jnp
    >>> values, indices = approx_max_k(jnp.array([3.0, 9.0, 5.0]), 2)
    >>> print(values, indices)
    [9. 5.] [1 2]
    """
    _check_recall("approx_max_k", recall_target)
    values, indices = top_k(operand, k, axis=reduction_dimension)
    return values, indices


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """Smallest `k` entries along an axis and their positions; the arguments are those of `approx_max_k`.

    >>> from morphax import numpy as jnp
    >>> values, indices = approx_min_k(jnp.array([3.0, 9.0, 5.0]), 2)
    >>> print(values, indices)
    [3. 5.] [0 2]
    """
    _check_recall("approx_min_k", recall_target)
    values, indices = top_k(ew.neg(_operand("approx_min_k", operand)), k, axis=reduction_dimension)
    return ew.neg(values), indices


sort_p = sorting.sort
top_k_p = sorting.top_k
