"""Functions of lax that move, join, reread and make arrays without computing."""

import math
import operator as python
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.lax.arguments import numbers
from morphax.lax.arguments import operand as _operand
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.ops.family import scalar, typeof
from morphax.support import dtypes
from morphax.transforms.api import as_array

Shape = Sequence[int]


def _ints(values: Any) -> tuple[int, ...]:
    """Static ints from a sequence, or from one int."""
    return (python.index(values),) if hasattr(values, "__index__") else tuple([python.index(v) for v in values])


def _unsharded(name: str, out_sharding: Any) -> None:
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported yet. Use device_put on the result.")


def axis_of(name: str, axis: int, ndim: int) -> int:
    """`axis` counted from 0."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is out of range for an array of {ndim} dimensions.")
    return axis % ndim


# ---- shapes ----------------------------------------------------------------------------------------------------------


def reshape(operand: Any, new_sizes: Shape, dimensions: Shape | None = None, *, out_sharding: Any = None) -> Any:
    """`operand` with its elements in a new shape, read and written with the last axis running fastest.

    Args:
        operand: array.
        new_sizes: shape of the same number of elements.
        dimensions: order in which the axes are read, a permutation; None for the present order.
        out_sharding: None.

    >>> from morphax import numpy as jnp
    >>> print(reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0)))
    [1 3 2 4]
    """
    _unsharded("reshape", out_sharding)
    x = _operand("reshape", operand)
    if dimensions is not None:
        x = transpose(x, dimensions)
    return structure.reshape_to(x, _ints(new_sizes))


def transpose(operand: Any, permutation: Shape | np.ndarray) -> Any:
    """`operand` with its axes reordered: axis `i` of the result is axis `permutation[i]` of the operand.

    >>> from morphax import numpy as jnp
    >>> transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = _operand("transpose", operand)
    order = _ints(permutation)
    ndim = typeof(x).ndim
    if sorted(order) != list(range(ndim)):
        raise TypeError(
            f"transpose: {order} is no permutation of the {ndim} axes of shape {typeof(x).shape}. Name each axis once."
        )
    return x if order == tuple(range(ndim)) else structure.transpose(x, permutation=order)


def expand_dims(array: Any, dimensions: Shape) -> Any:
    """`array` with axes of size 1 at `dimensions` of the result; negative ones count from its end.

    >>> from morphax import numpy as jnp
    >>> expand_dims(jnp.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    return structure.expand_dims(_operand("expand_dims", array), _ints(dimensions))


def squeeze(array: Any, dimensions: Shape) -> Any:
    """`array` without the axes `dimensions`, which have size 1; negative ones count from the end.

    >>> from morphax import numpy as jnp
    >>> squeeze(jnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    x = _operand("squeeze", array)
    axes = tuple(sorted([axis_of("squeeze", d, typeof(x).ndim) for d in dimensions]))
    return structure.squeeze(x, dimensions=axes) if axes else x


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """`operand` with the axes from `start_dimension` up to `stop_dimension` made one.

    >>> from morphax import numpy as jnp
    >>> collapse(jnp.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = _operand("collapse", operand)
    shape = typeof(x).shape
    merged = range(len(shape))[start_dimension:stop_dimension]
    if not merged:
        raise ValueError(
            f"collapse: axes {start_dimension} up to {stop_dimension} of shape {shape} are none. Name at least one."
        )
    first, last = merged[0], merged[-1] + 1
    return structure.reshape_to(x, (*shape[:first], math.prod(shape[first:last]), *shape[last:]))


def rev(operand: Any, dimensions: Shape) -> Any:
    """`operand` with its elements in reverse order along `dimensions`.

    >>> from morphax import numpy as jnp
    >>> print(rev(jnp.array([1, 2, 3]), (0,)))
    [3 2 1]
    """
    return structure.rev(_operand("rev", operand), dimensions=_ints(dimensions))


# ---- broadcasts ------------------------------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Shape, *, out_sharding: Any = None) -> Any:
    """`operand` repeated along new axes of `sizes` in front.

    >>> from morphax import numpy as jnp
    >>> broadcast(jnp.zeros(3), (2, 4)).shape
    (2, 4, 3)
    """
    _unsharded("broadcast", out_sharding)
    x = _operand("broadcast", operand)
    new = _ints(sizes)
    return ew.broadcast(x, (*new, *typeof(x).shape), tuple(range(len(new)))) if new else x


def broadcast_in_dim(operand: Any, shape: Shape, broadcast_dimensions: Shape, *, out_sharding: Any = None) -> Any:
    """`operand` in a larger shape: its axis `i` becomes axis `broadcast_dimensions[i]`, repeated where it has size 1.

    >>> from morphax import numpy as jnp
    >>> print(broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,)))
    [[1 1 1]
     [2 2 2]]
    """
    _unsharded("broadcast_in_dim", out_sharding)
    x = _operand("broadcast_in_dim", operand)
    full, dims = _ints(shape), _ints(broadcast_dimensions)
    if any(not 0 <= d < len(full) for d in dims) or list(dims) != sorted(set(dims)):
        raise ValueError(
            f"broadcast_in_dim: dimensions {dims} must be rising and lie in shape {full}. Transpose the operand first."
        )
    if full == typeof(x).shape:
        return x
    return ew.broadcast_in_dim(x, shape=full, broadcast_dimensions=dims, sharding=None)


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast, by NumPy's rules, to the shape of `like_arr`.

    >>> from morphax import numpy as jnp
    >>> broadcast_like(jnp.zeros(3), jnp.zeros((2, 3))).shape
    (2, 3)
    """
    x, like = _operand("broadcast_like", arr), _operand("broadcast_like", like_arr)
    shape, ndim = typeof(like).shape, typeof(x).ndim
    if broadcast_shapes(typeof(x).shape, shape) != shape:
        raise ValueError(f"broadcast_like: shape {typeof(x).shape} does not broadcast to {shape}.")
    return broadcast_in_dim(x, shape, range(len(shape) - ndim, len(shape)))


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that arrays of `shapes` broadcast to by NumPy's rules.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return np.broadcast_shapes(*[tuple(s) for s in shapes])
    except ValueError:
        given = ", ".join(str(tuple(s)) for s in shapes)
        raise ValueError(
            f"broadcast_shapes: shapes {given} do not fit: counted from the last axis, sizes must be equal or 1."
        ) from None


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """`x` with axes of size 1 in front, so that it has at least `rank` axes.

    >>> from morphax import numpy as jnp
    >>> broadcast_to_rank(jnp.zeros(3), 2).shape
    (1, 3)
    """
    x = _operand("broadcast_to_rank", x)
    return structure.expand_dims(x, tuple(range(max(0, rank - typeof(x).ndim))))


def tile(operand: Any, reps: Shape) -> Any:
    """`operand` repeated `reps[i]` times along each axis `i`.

    >>> from morphax import numpy as jnp
    >>> print(tile(jnp.array([1, 2]), (2,)))
    [1 2 1 2]
    """
    x = _operand("tile", operand)
    shape, counts = typeof(x).shape, _ints(reps)
    if len(counts) != len(shape) or any(c < 0 for c in counts):
        raise TypeError(f"tile: reps {counts} must be one count, at least 0, for each axis of shape {shape}.")
    if all(c == 1 for c in counts):
        return x
    pairs = tuple([size for pair in zip(counts, shape, strict=True) for size in pair])
    spread = ew.broadcast(x, pairs, tuple(range(0, len(pairs), 2)))
    return structure.reshape_to(spread, tuple([c * s for c, s in zip(counts, shape, strict=True)]))


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape along a new axis.

    Args:
        operands: arrays of one shape and dtype, at least one.
        axis: position of the new axis in the result; negative ones count from the end.

    >>> from morphax import numpy as jnp
    >>> print(stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    if not len(operands):
        raise ValueError("stack: no operands. Give at least one array.")
    made = [_operand("stack", x) for x in operands]
    place = axis_of("stack", axis, typeof(made[0]).ndim + 1)
    return structure.concatenate(*[structure.expand_dims(x, (place,)) for x in made], dimension=place)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The parts of an array along one axis, which they do not have.

    >>> from morphax import numpy as jnp
    >>> [part.tolist() for part in unstack(jnp.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    whole = _operand("unstack", x)
    place = axis_of("unstack", axis, typeof(whole).ndim)
    size = typeof(whole).shape[place]
    if not size:
        return ()
    parts = structure.split(whole, sizes=(1,) * size, axis=place)
    return tuple([structure.squeeze(part, dimensions=(place,)) for part in parts])


# ---- parts -----------------------------------------------------------------------------------------------------------


def slice(operand: Any, start_indices: Shape, limit_indices: Shape, strides: Shape | None = None) -> Any:
    """The part of `operand` from `start_indices` up to `limit_indices`, every `strides`-th entry.

    Args:
        operand: array.
        start_indices: static int for each axis, at least 0.
        limit_indices: static int for each axis, at most its size.
        strides: static int for each axis, at least 1; None for all 1.

    Raises:
        TypeError: a limit lies before its start or beyond the axis.

    >>> from morphax import numpy as jnp
    >>> print(slice(jnp.arange(8), (1,), (7,), (2,)))
    [1 3 5]
    """
    x = _operand("slice", operand)
    starts, limits = _ints(start_indices), _ints(limit_indices)
    steps = None if strides is None else _ints(strides)
    for what, given in (("start_indices", starts), ("limit_indices", limits), ("strides", steps)):
        if given is not None and len(given) != typeof(x).ndim:
            raise ValueError(f"slice: {what} {given} must have one entry for each axis of shape {typeof(x).shape}.")
    return structure.slice(x, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """The part of `operand` from `start_index` up to `limit_index` along one axis; negative ones count from its end.

    >>> from morphax import numpy as jnp
    >>> print(slice_in_dim(jnp.arange(5), 1, -1))
    [1 2 3]
    """
    x = _operand("slice_in_dim", operand)
    shape = typeof(x).shape
    axis = axis_of("slice_in_dim", axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else python.index(start_index)
    limit = size if limit_index is None else python.index(limit_index)
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    steps[axis] = python.index(stride)
    strides = None if steps[axis] == 1 else tuple(steps)
    return structure.slice(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The entry at a static `index` along one axis, which stays with size 1 unless `keepdims` is false.

    Raises:
        IndexError: `index` is outside the axis.

    >>> from morphax import numpy as jnp
    >>> print(index_in_dim(jnp.array([[1, 2], [3, 4]]), -1, keepdims=False))
    [3 4]
    """
    x = _operand("index_in_dim", operand)
    axis = axis_of("index_in_dim", axis, typeof(x).ndim)
    index, size = python.index(index), typeof(x).shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index_in_dim: index {index} is out of range for axis {axis} of size {size}.")
    found = structure.slice_axis(x, index % size, index % size + 1, axis)
    return found if keepdims else structure.squeeze(found, dimensions=(axis,))


def split(operand: Any, sizes: Shape, axis: int = 0) -> list[Any]:
    """`operand` cut along `axis` into consecutive parts of `sizes`, which add up to its size.

    >>> from morphax import numpy as jnp
    >>> [part.tolist() for part in split(jnp.arange(4), (1, 3))]
    [[0], [1, 2, 3]]
    """
    x = _operand("split", operand)
    return structure.split(x, sizes=_ints(sizes), axis=axis_of("split", axis, typeof(x).ndim))


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """The `operands`, of equal dtypes, one after the other along `dimension`.

    >>> from morphax import numpy as jnp
    >>> print(concatenate([jnp.array([1, 2]), jnp.array([3])], 0))
    [1 2 3]
    """
    if hasattr(operands, "aval"):
        operands = list(operands)
    if not operands:
        raise ValueError("concatenate: no operands were given. Give at least one array.")
    made = [_operand("concatenate", x) for x in operands]
    return made[0] if len(made) == 1 else structure.concatenate(*made, dimension=python.index(dimension))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """`operand` with `padding_value` around it and between its entries.

    Args:
        operand: array.
        padding_value: scalar of the same dtype.
        padding_config: for each axis (low, high, interior): how many entries come before, after, and between each two.
            Negative low and high take entries away.

    >>> from morphax import numpy as jnp
    >>> print(pad(jnp.array([1, 2]), 0, ((1, 0, 2),)))
    [0 1 0 0 2]
    """
    x, value = numbers("pad", (_operand("pad", operand), padding_value))
    return structure.pad(x, value, padding_config=tuple([_ints(entry) for entry in padding_config]))


# ---- made from nothing, and reread -----------------------------------------------------------------------------------


def iota(dtype: Any, size: int) -> Any:
    """0, 1, 2, ... below `size`.

    >>> print(iota("float32", 3))
    [0. 1. 2.]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Shape, dimension: int, *, out_sharding: Any = None) -> Any:
    """Array of `shape` whose entries are their own position along `dimension`.

    >>> print(broadcasted_iota("int32", (2, 3), 1))
    [[0 1 2]
     [0 1 2]]
    """
    _unsharded("broadcasted_iota", out_sharding)
    return structure.iota_along(dtypes.named_dtype(dtype), _ints(shape), python.index(dimension))


def empty(shape: int | Shape, dtype: Any, *, out_sharding: Any = None) -> Any:
    """Array of that shape and dtype with entries that need not mean anything (they are zeros).

    >>> empty((2, 3), "float32").shape
    (2, 3)
    """
    _unsharded("empty", out_sharding)
    sizes = _ints(shape)
    named = dtypes.named_dtype(dtype)
    if isinstance(named, dtypes.ExtendedDType):
        raise TypeError(f"empty: dtype {named.name} has no zeros. Make random keys with random.key.")
    return ew.broadcast_in_dim(scalar(0, named), shape=sizes, broadcast_dimensions=(), sharding=None)


def stage(x: Any, /) -> Any:
    """`x` as an array: a value of the program that is being traced, or an Array outside one.

    >>> stage(3.0).dtype
    dtype('float32')
    """
    return as_array(_operand("stage", x))


def dtype(x: Any) -> Any:
    """The dtype of an array, or that which a Python number or type becomes.

    >>> dtype(3.0)
    dtype('float32')
    """
    return dtypes.named_dtype(x) if isinstance(x, type) else typeof(_operand("dtype", x)).dtype


def shape_as_value(shape: Shape) -> np.ndarray:
    """A shape as an array of integers.

    >>> print(shape_as_value((2, 3)))
    [2 3]
    """
    return np.array(_ints(shape), np.int32)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of `operand` read as another dtype.

    Where the dtypes differ in size, the result has one axis more at the end, or the operand's last axis is used up.

    Raises:
        TypeError: the last axis does not hold one new element, or bools or complex numbers are reread.

    >>> print(bitcast_convert_type(1.0, "int32"))
    1065353216
    """
    x = _operand("bitcast_convert_type", operand)
    dtype = dtypes.named_dtype(new_dtype)
    return x if typeof(x).dtype == dtype else structure.bitcast_convert_type(x, new_dtype=dtype)


broadcast_in_dim_p = ew.broadcast_in_dim
concatenate_p = structure.concatenate
convert_element_type_p = structure.convert_element_type
bitcast_convert_type_p = structure.bitcast_convert_type
copy_p = structure.copy
iota_p = structure.iota
pad_p = structure.pad
reshape_p = structure.reshape
rev_p = structure.rev
slice_p = structure.slice
split_p = structure.split
squeeze_p = structure.squeeze
transpose_p = structure.transpose
