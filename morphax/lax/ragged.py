"""Products of lax with ragged groups."""

from typing import Any

from morphax.lax.arguments import operand as _operand
from morphax.ops import contract, ragged
from morphax.ops.contract import PrecisionLike
from morphax.ops.ragged import RaggedDotDimensionNumbers
from morphax.support import dtypes


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Products summed over contracted axes, where one axis of `lhs` consists of groups, one after the other.

    Three kinds, by what the ragged axis is: free: each of its entries meets the part of rhs that belongs to its group;
    contracted: each group is summed by itself, and the result has an axis of groups in front; batch: as `dot_general`.

    Args:
        lhs: array of numbers.
        rhs: another.
        group_sizes: integers: how many entries of the ragged axis belong to each group: shape (groups,), or with axes
            in front for the batch, and for axes of the ragged one's kind that come before it. Entries beyond the last
            group count as zeros.
        ragged_dot_dimension_numbers: see `RaggedDotDimensionNumbers`.
        precision: see `dot_general`.
        preferred_element_type: dtype of the sums and of the result.
        group_offset: None.
        out_sharding: None.

    Raises:
        TypeError: axes, sizes or dtypes that do not fit.

    Derivative: in lhs and rhs, in both modes; ragged products again.

    >>> from morphax import numpy as jnp
    >>> numbers = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> ragged_dot_general(jnp.ones((5, 2)), jnp.ones((5, 3)), jnp.array([1, 4]), numbers)[:, 0, 0].tolist()
    [1.0, 4.0]
    """
    name = "ragged_dot_general"
    if group_offset is not None or out_sharding is not None:
        raise NotImplementedError(f"{name}: group_offset and out_sharding are not supported. Cut the operands instead.")
    numbers = ragged.canonical_numbers(ragged_dot_dimension_numbers)
    lhs, rhs, sizes = _operand(name, lhs), _operand(name, rhs), _operand(name, group_sizes)
    preferred = None if preferred_element_type is None else dtypes.named_dtype(preferred_element_type)
    if ragged.is_batch(numbers):
        return contract.dot(lhs, rhs, numbers.dot_dimension_numbers, precision, preferred)
    return ragged.ragged_dot_general(
        lhs, rhs, sizes, ragged_dot_dimension_numbers=numbers, precision=contract.canonical_precision(precision),
        preferred_element_type=preferred, group_offset=None, out_sharding=None,
    )  # fmt: skip


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Rows of `lhs` times the matrix of their group: the first `group_sizes[0]` rows times `rhs[0]`, and so on.

    Args:
        lhs: array of shape (m, k).
        rhs: array of shape (groups, k, n).
        group_sizes: integers of shape (groups,); rows beyond their sum give zeros.
        precision: as all that follow: see `ragged_dot_general`.

    >>> from morphax import numpy as jnp
    >>> x, w = jnp.ones((3, 1)), jnp.array([[[1.0]], [[2.0]]])
    >>> print(ragged_dot(x, w, jnp.array([1, 2])).ravel())
    [1. 2. 2.]
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )


__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]
