"""Slices of lax at places that are computed, gathers and scatters."""

import operator as python
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.lax.arguments import operand as _operand
from morphax.lax.structure import axis_of
from morphax.ops import elementwise as ew
from morphax.ops import indexing, structure
from morphax.ops.family import like, scalar, typeof
from morphax.ops.indexing import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from morphax.support import dtypes

# ---- dynamic slices --------------------------------------------------------------------------------------------------


def _start(name: str, index: Any, dtype: Any, size: int, wraps: bool) -> Any:
    """One start index as an operand; negative ones count from the end where `wraps`."""
    if not hasattr(index, "aval"):
        index = python.index(index)
        return scalar(max(index + size, 0) if wraps and index < 0 else index, dtype)
    index = structure.convert(index, dtype, typeof(index).weak_type)
    if not wraps or dtypes.is_unsigned(dtype):
        return index
    return ew.select_n(ew.lt(index, like(index, 0)), index, ew.add(index, like(index, size)))


def _starts(name: str, shape: Sequence[int], start_indices: Any, allow_negative: bool | Sequence[bool]) -> list[Any]:
    """Start indices, given as one array or as a sequence of scalars, as operands of one dtype."""
    if hasattr(start_indices, "shape"):
        start_indices = _operand(name, start_indices)
        if typeof(start_indices).ndim != 1:
            raise TypeError(
                f"{name}: start_indices must be a vector or a sequence of scalars; it is {typeof(start_indices)}."
            )
        (count,) = typeof(start_indices).shape
        rows = [structure.slice_axis(start_indices, k, k + 1, 0) for k in range(count)]
        start_indices = [structure.squeeze(row, dimensions=(0,)) for row in rows]
    if len(start_indices) != len(shape):
        raise TypeError(
            f"{name}: {len(start_indices)} start indices were given for an operand of shape {tuple(shape)}. Give one "
            "for each axis."
        )
    made = [i if hasattr(i, "aval") else _operand(name, np.asarray(i)) for i in start_indices]
    for i in made:
        if typeof(i).shape or not dtypes.is_integer(typeof(i).dtype):
            raise TypeError(f"{name}: start indices must be integer scalars; one is {typeof(i)}.")
    dtype = np.dtype("int32")  # at least: sizes are added to the index, and XLA clamps in its type
    for i in made:
        if hasattr(i, "aval") and typeof(i).dtype.itemsize >= 4:
            dtype = dtypes.promote(dtype, dtype == np.int32, typeof(i).dtype, False)[0]
    wraps = [allow_negative] * len(shape) if isinstance(allow_negative, bool) else allow_negative
    given = [i if hasattr(i, "aval") else np.asarray(i)[()] for i in made]
    return [_start(name, i, dtype, n, bool(w)) for i, n, w in zip(given, shape, wraps, strict=True)]


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """The part of `operand` of shape `slice_sizes` that begins at `start_indices`.

    A slice that would reach outside is moved inside.

    Args:
        operand: array.
        start_indices: integer scalar for each axis, or one vector of them; they may be computed.
        slice_sizes: static ints, at most the operand's sizes.
        allow_negative_indices: whether negative indices count from the end; one bool, or one for each axis.

    Derivative: a slice of the tangent; its transpose puts a cotangent into zeros.

    >>> from morphax import numpy as jnp
    >>> print(dynamic_slice(jnp.array([0, 1, 2, 3, 4]), (3,), (2,)))
    [3 4]
    """
    x = _operand("dynamic_slice", operand)
    starts = _starts("dynamic_slice", typeof(x).shape, start_indices, allow_negative_indices)
    return indexing.dynamic_slice(x, *starts, slice_sizes=tuple([python.index(s) for s in slice_sizes]))


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Any:
    """`operand` with the part that begins at `start_indices` replaced by `update`.

    An update that would reach outside is moved inside.

    Args:
        operand: array.
        update: array of the same dtype and number of axes, no larger along any.
        start_indices: integer scalar for each axis, or one vector of them; they may be computed.
        allow_negative_indices: whether negative indices count from the end; one bool, or one for each axis.

    >>> from morphax import numpy as jnp
    >>> print(dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,)))
    [0. 1. 1. 0.]
    """
    x, new = _operand("dynamic_update_slice", operand), _operand("dynamic_update_slice", update)
    starts = _starts("dynamic_update_slice", typeof(x).shape, start_indices, allow_negative_indices)
    return indexing.dynamic_update_slice(x, new, *starts)


def _along(x: Any, index: Any, axis: int) -> list[Any]:
    """Start indices that are `index` along one axis and 0 along the others."""
    starts: list[Any] = [0] * typeof(x).ndim
    starts[axis] = index
    return starts


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Any:
    """The `slice_size` entries of `operand` along `axis` from `start_index` on, moved inside where they reach out.

    >>> from morphax import numpy as jnp
    >>> print(dynamic_slice_in_dim(jnp.array([0, 1, 2, 3]), 1, 2))
    [1 2]
    """
    x = _operand("dynamic_slice_in_dim", operand)
    axis = axis_of("dynamic_slice_in_dim", axis, typeof(x).ndim)
    sizes = list(typeof(x).shape)
    sizes[axis] = python.index(slice_size)
    return dynamic_slice(x, _along(x, start_index, axis), sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """The entry of `operand` at `index` along `axis`, which stays with size 1 unless `keepdims` is false.

    >>> from morphax import numpy as jnp
    >>> print(dynamic_index_in_dim(jnp.array([[1, 2], [3, 4]]), -1, keepdims=False))
    [3 4]
    """
    x = _operand("dynamic_index_in_dim", operand)
    axis = axis_of("dynamic_index_in_dim", axis, typeof(x).ndim)
    found = dynamic_slice_in_dim(x, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return found if keepdims else structure.squeeze(found, dimensions=(axis,))


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`operand` with the entries along `axis` from `start_index` on replaced by `update`.

    >>> from morphax import numpy as jnp
    >>> print(dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 2, 0))
    [0. 0. 1. 1.]
    """
    x = _operand("dynamic_update_slice_in_dim", operand)
    axis = axis_of("dynamic_update_slice_in_dim", axis, typeof(x).ndim)
    starts = _along(x, start_index, axis)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`operand` with the entry at `index` along `axis` replaced by `update`, which may lack that axis.

    >>> from morphax import numpy as jnp
    >>> print(dynamic_update_index_in_dim(jnp.zeros((2, 2)), jnp.ones(2), 1, 0))
    [[0. 0.]
     [1. 1.]]
    """
    x, new = _operand("dynamic_update_index_in_dim", operand), _operand("dynamic_update_index_in_dim", update)
    axis = axis_of("dynamic_update_index_in_dim", axis, typeof(x).ndim)
    if typeof(new).ndim != typeof(x).ndim:
        new = structure.expand_dims(new, (axis,))
    return dynamic_update_slice_in_dim(x, new, index, axis, allow_negative_indices=allow_negative_indices)


# ---- gather ----------------------------------------------------------------------------------------------------------


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Any:
    """The slices of `operand` that begin at the index vectors in `start_indices`.

    Args:
        operand: array.
        start_indices: integers; the last axis holds one index vector for each slice.
        dimension_numbers: how the vectors select slices and where these go.
        slice_sizes: static size of a slice along each axis of the operand.
        unique_indices: promise that no two slices meet, which makes the derivative faster on some devices.
        indices_are_sorted: promise that the index vectors rise.
        mode: what becomes of slices that reach outside: "clip" moves them inside, "fill" gives `fill_value`,
            "promise_in_bounds", the default, promises that there are none.
        fill_value: None for NaN, the lowest signed or highest unsigned integer, or True.

    Derivative: gathers the tangents; its transpose is `scatter_add`.

    >>> from morphax import numpy as jnp
    >>> numbers = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> print(gather(jnp.array([[1, 2], [3, 4], [5, 6]]), jnp.array([[2], [0]]), numbers, (1, 2)))
    [[5 6]
     [1 2]]
    """
    parsed = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    return indexing.gather(
        _operand("gather", operand),
        _operand("gather", start_indices),
        dimension_numbers=_hashable(dimension_numbers),
        slice_sizes=tuple([python.index(s) for s in slice_sizes]),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=parsed,
        fill_value=fill_value if parsed is GatherScatterMode.FILL_OR_DROP else None,
    )


def _hashable(numbers: Any) -> Any:
    """Dimension numbers with tuples of ints, whatever sequences they were given as."""
    return type(numbers)(*[tuple([python.index(d) for d in dims]) for dims in numbers])


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Any:
    """Entries of `src` at index vectors along `axes`; indices beyond an axis start again at its beginning.

    Args:
        src: array.
        idxs: for each of `axes` a vector of integers, all of one length.
        axes: static ints.

    >>> from morphax import numpy as jnp
    >>> print(index_take(jnp.array([10, 11, 12]), (jnp.array([0, -1, 4]),), (0,)))
    [10 12 11]
    """
    x = _operand("index_take", src)
    shape = typeof(x).shape
    columns = []
    for index, axis in zip(idxs, axes, strict=True):
        column = _operand("index_take", index)
        size = like(column, shape[axis])
        left = ew.rem(column, size)
        left = ew.select_n(ew.lt(left, like(left, 0)), left, ew.add(left, size))
        columns.append(structure.expand_dims(left, (1,)))
    indices = structure.concatenate(*columns, dimension=1) if len(columns) > 1 else columns[0]
    sizes = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    windows = tuple(range(1, len(shape) - len(axes) + 1))
    numbers = GatherDimensionNumbers(windows, tuple(sorted(axes)), tuple(axes))
    return gather(x, indices, numbers, sizes)


# ---- scatter ---------------------------------------------------------------------------------------------------------


def _scatter(name: str, apply: Callable[..., Any], what: str, derivative: str, example: str) -> Callable[..., Any]:
    def fun(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any:
        return apply(
            _operand(name, operand),
            _operand(name, scatter_indices),
            _operand(name, updates),
            dimension_numbers=_hashable(dimension_numbers),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"""`operand` with `updates` {what} at the places that `scatter_indices` name.

    Args:
        operand: array.
        scatter_indices: integers; the last axis holds one index vector for each window of the updates.
        updates: array of the operand's dtype.
        dimension_numbers: how the index vectors and the windows name places of the operand.
        indices_are_sorted: promise that the index vectors rise.
        unique_indices: promise that no two updates meet.
        mode: what becomes of windows that reach outside: "drop", the default, skips them, "clip" moves them inside,
            "promise_in_bounds" promises that there are none.

    Derivative: {derivative}.

    >>> from morphax import numpy as jnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> print({name}(jnp.array([5, 6, 7]), jnp.array([[1], [2], [2]]), jnp.array([1, 2, 9]), numbers))
    {example}
    """
    return fun


scatter = _scatter(
    "scatter", indexing.scatter, "put in",
    "tangents are put in as the entries are; where several updates meet, that of the one that stays", "[5 1 9]",
)  # fmt: skip
scatter_add = _scatter(
    "scatter_add", indexing.scatter_add, "added", "linear; its transpose gathers", "[ 5  7 18]"
)  # fmt: skip
scatter_sub = _scatter(
    "scatter_sub", indexing.scatter_sub, "subtracted", "linear; its transpose gathers", "[ 5  5 -4]"
)  # fmt: skip
scatter_mul = _scatter(
    "scatter_mul", indexing.scatter_mul, "multiplied in",
    "with respect to the updates only where no two of them meet", "[  5   6 126]",
)  # fmt: skip
scatter_min = _scatter(
    "scatter_min", indexing.scatter_min, "put in where they are lower", "equal extremes share the tangent", "[5 1 2]"
)
scatter_max = _scatter(
    "scatter_max", indexing.scatter_max, "put in where they are higher", "equal extremes share the tangent", "[5 6 9]"
)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """`operand` with `func`, a function of a scalar, applied at the places that `scatter_indices` name.

    Args:
        operand: array.
        scatter_indices: integers; the last axis holds one index vector for each window.
        func: function of one scalar that closes over no arrays; applied again where places meet.
        dimension_numbers: as in `scatter`.
        update_shape: shape that updates would have.
        indices_are_sorted: promise that the index vectors rise.
        unique_indices: promise that no two windows meet.
        mode: as in `scatter`.

    >>> from morphax import numpy as jnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> print(scatter_apply(jnp.array([5, 6]), jnp.array([[1]]), lambda x: x * x, numbers, update_shape=(1,)))
    [ 5 36]
    """
    return indexing.scatter_apply(
        _operand("scatter_apply", operand),
        _operand("scatter_apply", scatter_indices),
        func,
        tuple([python.index(s) for s in update_shape]),
        dimension_numbers=_hashable(dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )


dynamic_slice_p = indexing.dynamic_slice
dynamic_update_slice_p = indexing.dynamic_update_slice
gather_p = indexing.gather_p
scatter_add_p = indexing.scatter_add_p
scatter_max_p = indexing.scatter_max_p
scatter_min_p = indexing.scatter_min_p
scatter_mul_p = indexing.scatter_mul_p
scatter_p = indexing.scatter_p
scatter_sub_p = indexing.scatter_sub_p
