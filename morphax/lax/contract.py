"""Products of lax that sum over axes."""

from typing import Any

from morphax.lax.arguments import operand as _operand
from morphax.ops import contract, structure
from morphax.ops import elementwise as ew
from morphax.ops.contract import DotAlgorithm, DotAlgorithmPreset, DotDimensionNumbers, Precision, PrecisionLike
from morphax.ops.family import typeof
from morphax.support import dtypes


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Products of `lhs` and `rhs` summed over contracted axes, for each entry of the batch axes.

    Args:
        lhs: array of numbers or bools.
        rhs: another; a narrower dtype is promoted.
        dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
        precision: for devices with inexact units: None, a name, a Precision, a pair of these (one for each operand), or
            a DotAlgorithm or DotAlgorithmPreset.
        preferred_element_type: dtype of the sums and of the result; None for that of the operands.
        out_sharding: None.

    Returns:
        Array with the batch axes, then the other axes of lhs, then those of rhs.

    Raises:
        TypeError: sizes of axes that belong together differ.

    >>> from morphax import numpy as jnp
    >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
    >>> dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    if out_sharding is not None:
        raise NotImplementedError("dot_general: out_sharding is not supported yet. Use device_put on the result.")
    preferred = None if preferred_element_type is None else dtypes.named_dtype(preferred_element_type)
    operands = _operand("dot_general", lhs), _operand("dot_general", rhs)
    return contract.dot(*operands, dimension_numbers, precision, preferred)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Product of two vectors, a matrix and a vector, or two matrices; or `dot_general` with `dimension_numbers`.

    Args:
        lhs: array of numbers or bools.
        rhs: another; a narrower dtype is promoted.
        dimension_numbers: as in `dot_general`; None for operands of one or two axes.
        precision: as in `dot_general`.
        preferred_element_type: dtype of the sums and of the result; None for that of the operands.
        out_sharding: None.

    >>> from morphax import numpy as jnp
    >>> print(dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    11.0
    """
    x, y = _operand("dot", lhs), _operand("dot", rhs)
    ndims = typeof(x).ndim, typeof(y).ndim
    if dimension_numbers is None:
        if not all(ndim in (1, 2) for ndim in ndims):
            raise ValueError(
                f"dot: operands of shapes {typeof(x).shape} and {typeof(y).shape} are no vectors or matrices. Give "
                "dimension_numbers, or use numpy.matmul."
            )
        dimension_numbers = (((ndims[0] - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Any:
    """Matrix products of the last two axes, for each entry of the axes before, which are the same in both.

    >>> from morphax import numpy as jnp
    >>> batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = _operand("batch_matmul", lhs), _operand("batch_matmul", rhs)
    ndim = typeof(x).ndim
    if ndim < 2 or typeof(y).ndim != ndim:
        raise ValueError(
            f"batch_matmul: operands of shapes {typeof(x).shape} and {typeof(y).shape} need the same number of axes, "
            "at least two."
        )
    batch = tuple(range(ndim - 2))
    return dot_general(x, y, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Any:
    """`dot_general` of operands that are stored in blocks with a scale each: (lhs * lhs_scale) @ (rhs * rhs_scale).

    Args:
        lhs: array of floats.
        rhs: another.
        lhs_scale: scales, of as many axes as lhs: each size divides that of lhs. None for 1.
        rhs_scale: the same of rhs.
        dimension_numbers: as in `dot_general`; None for matrices, or batches of them along the first axis.
        preferred_element_type: bfloat16 or float32: of the scaled operands, the sums and the result; None for bfloat16.

    >>> from morphax import numpy as jnp
    >>> scaled_dot(jnp.ones((2, 8)), jnp.ones((8, 2)), lhs_scale=jnp.full((2, 4), 3.0)).tolist()
    [[24.0, 24.0], [24.0, 24.0]]
    """
    preferred = dtypes.named_dtype(preferred_element_type or "bfloat16")
    x = _scaled("lhs", _operand("scaled_dot", lhs), lhs_scale, preferred)
    y = _scaled("rhs", _operand("scaled_dot", rhs), rhs_scale, preferred)
    if dimension_numbers is None:
        batch = typeof(x).ndim - 2
        if batch not in (0, 1):
            raise ValueError(f"scaled_dot: lhs of shape {typeof(x).shape} needs dimension_numbers.")
        outer = tuple(range(batch))
        dimension_numbers = (((batch + 1,), (batch,)), (outer, outer))
    return dot_general(x, y, dimension_numbers, preferred_element_type=preferred)


def _scaled(name: str, x: Any, scale: Any, dtype: Any) -> Any:
    x = structure.convert(x, dtype)
    if scale is None:
        return x
    factor = structure.convert(_operand("scaled_dot", scale), dtype)
    shape, blocks = typeof(x).shape, typeof(factor).shape
    if len(blocks) != len(shape) or any(not b or n % b for n, b in zip(shape, blocks, strict=True)):
        raise ValueError(
            f"scaled_dot: {name}_scale of shape {blocks} must divide {name} of shape {shape} into equal blocks."
        )
    wide = tuple([side for n, b in zip(shape, blocks, strict=True) for side in (b, n // b)])
    spread = ew.broadcast_in_dim(factor, shape=wide, broadcast_dimensions=tuple(range(0, len(wide), 2)), sharding=None)
    return ew.mul(x, structure.reshape_to(spread, shape))


dot_general_p = contract.dot_general

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "batch_matmul",
    "dot",
    "dot_general",
    "dot_general_p",
    "scaled_dot",
]
