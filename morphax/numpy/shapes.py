"""Functions that move, join and repeat elements: reshape, transpose, concatenate, pad, roll and their relatives."""

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, promotion, reductions, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops import indexing as indexing_ops
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type

# ---- facts -----------------------------------------------------------------------------------------------------------


def shape(a: Any) -> tuple[int, ...]:
    """Sizes of the axes.

    >>> from morphax import numpy as jnp
    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    return promotion.described("shape", a)[2]


def ndim(a: Any) -> int:
    """Number of axes.

    >>> from morphax import numpy as jnp
    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return len(promotion.described("ndim", a)[2])


def size(a: Any, axis: Any = None) -> int:
    """Number of entries, or of those along some axes.

    >>> from morphax import numpy as jnp
    >>> jnp.size(jnp.ones((2, 3)), 1)
    3
    """
    found = promotion.described("size", a)[2]
    total = 1
    for d in promotion.axes_of("size", axis, len(found)):
        total *= found[d]
    return total


# ---- reshaping -------------------------------------------------------------------------------------------------------


def new_shape(name: str, a: Any, sizes: Any) -> tuple[int, ...]:
    """The shape that a user's sizes mean for `a`: at most one may be -1.

    Raises:
        TypeError: the size of `a` does not fit.
    """
    if promotion.is_integer(sizes):
        sizes = (sizes,)
    wanted = tuple([promotion.size_of(name, s) for s in sizes])
    found = typeof(a)
    unknown = [k for k, s in enumerate(wanted) if s < 0]
    if not unknown:
        if creation._size(wanted) != found.size:
            raise _misfit(name, found, wanted)
        return wanted
    if len(unknown) > 1 or wanted[unknown[0]] != -1:
        raise ValueError(f"{name}: the new shape {wanted} may have one -1, and no other negative size.")
    rest = creation._size(tuple([s for s in wanted if s >= 0]))
    if not rest or found.size % rest:
        raise _misfit(name, found, wanted)
    return tuple([found.size // rest if s < 0 else s for s in wanted])


def _misfit(name: str, found: Any, wanted: tuple[int, ...]) -> TypeError:
    return TypeError(
        f"{name}: cannot reshape array of shape {found.shape} (size {found.size}) into shape {wanted} (size "
        f"{abs(creation._size(wanted))}). Give sizes whose product is {found.size}."
    )


def _ordered(name: str, a: Any, wanted: tuple[int, ...], order: str) -> Any:
    if order == "F":
        turned = structure.transpose(a, permutation=tuple(reversed(range(typeof(a).ndim))))
        return structure.transpose(
            structure.reshape_to(turned, wanted[::-1]), permutation=tuple(reversed(range(len(wanted))))
        )
    if order not in ("C", "K"):
        raise ValueError(f"{name}: order must be 'C' or 'F'; it is {order!r}.")
    return structure.reshape_to(a, wanted)


@program("wanted", "order")
def _reshape(a: Any, wanted: tuple[int, ...], order: str) -> Any:
    a = promotion.array("reshape", a)
    return _ordered("reshape", a, wanted, order)


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Any:
    """`a` with its entries in another shape of the same size; one size may be -1.

    >>> from morphax import numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1)).shape
    (2, 3)
    """
    creation._no_sharding("reshape", out_sharding)
    a = promotion.checked("reshape", a)
    return _reshape(a, wanted=new_shape("reshape", a, shape), order=order)


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """`a` with one axis.

    >>> from morphax import numpy as jnp
    >>> jnp.ravel(jnp.ones((2, 3))).shape
    (6,)
    """
    creation._no_sharding("ravel", out_sharding)
    a = promotion.checked("ravel", a)
    return _reshape(a, wanted=(typeof(a).size,), order=order)


@program("axis")
def squeeze(a: Any, axis: Any = None) -> Any:
    """`a` without axes of size 1, all of them or those named.

    >>> from morphax import numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 2))).shape
    (2,)
    """
    a = promotion.array("squeeze", a)
    found = typeof(a).shape
    if axis is None:
        axes = tuple([d for d, s in enumerate(found) if s == 1])
    else:
        axes = promotion.axes_of("squeeze", axis, len(found))
    if any(found[d] != 1 for d in axes):
        raise ValueError(
            f"squeeze: cannot select an axis to squeeze out which has size not equal to one: axes {axes} of shape "
            f"{found}. Index with [0], or reduce."
        )
    return structure.squeeze(a, dimensions=tuple(sorted(axes))) if axes else a


@program("axis")
def expand_dims(a: Any, axis: Any) -> Any:
    """`a` with axes of size 1 at the given places of the result.

    >>> from morphax import numpy as jnp
    >>> jnp.expand_dims(jnp.ones(2), 0).shape
    (1, 2)
    """
    a = promotion.array("expand_dims", a)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = promotion.axes_of("expand_dims", tuple(axes), typeof(a).ndim + len(axes))
    return structure.expand_dims(a, axes)


def _at_least(name: str, ndim: int, arys: tuple[Any, ...]) -> Any:
    out = [_deepened(a, name=name, ndim=ndim) for a in arys]
    return out[0] if len(out) == 1 else out


@program("name", "ndim")
def _deepened(a: Any, name: str, ndim: int) -> Any:
    a = promotion.array(name, a)
    found = typeof(a).shape
    if len(found) >= ndim:
        return a
    if ndim == 3:
        wanted = {0: (1, 1, 1), 1: (1, *found, 1), 2: (*found, 1)}[len(found)]
    else:
        wanted = (1,) * (ndim - len(found)) + found
    return structure.reshape_to(a, wanted)


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis.

    >>> from morphax import numpy as jnp
    >>> jnp.atleast_1d(2.0).shape
    (1,)
    """
    return _at_least("atleast_1d", 1, arys)


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.atleast_2d(jnp.ones(3)).shape
    (1, 3)
    """
    return _at_least("atleast_2d", 2, arys)


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes.

    >>> from morphax import numpy as jnp
    >>> jnp.atleast_3d(jnp.ones(3)).shape
    (1, 3, 1)
    """
    return _at_least("atleast_3d", 3, arys)


# ---- order of axes ---------------------------------------------------------------------------------------------------


@program("axes")
def _transpose(a: Any, axes: tuple[int, ...] | None) -> Any:
    a = promotion.array("transpose", a)
    count = typeof(a).ndim
    if axes is None:
        order = tuple(reversed(range(count)))
    else:
        order = promotion.axes_of("transpose", axes, count)
        if len(order) != count:
            raise ValueError(
                f"transpose: axes don't match array: axes {axes} for shape {typeof(a).shape}. Name every axis."
            )
    return structure.transpose(a, permutation=order) if order != tuple(range(count)) else a


def transpose(a: Any, axes: Any = None) -> Any:
    """`a` with its axes in another order, reversed by default.

    >>> from morphax import numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return _transpose(a, axes=None if axes is None else tuple([operator.index(d) for d in axes]))


def permute_dims(a: Any, /, axes: Any) -> Any:
    """`a` with its axes in another order.

    >>> from morphax import numpy as jnp
    >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return transpose(a, axes)


@program()
def matrix_transpose(x: Any, /) -> Any:
    """`x` with its last two axes exchanged.

    >>> from morphax import numpy as jnp
    >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = promotion.array("matrix_transpose", x)
    count = typeof(x).ndim
    if count < 2:
        raise ValueError(f"matrix_transpose: needs at least 2 axes; the array has shape {typeof(x).shape}.")
    return structure.transpose(x, permutation=(*range(count - 2), count - 1, count - 2))


@program("axis1", "axis2")
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """`a` with two axes exchanged.

    >>> from morphax import numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = promotion.array("swapaxes", a)
    order = list(range(typeof(a).ndim))
    i, j = promotion.axis_of("swapaxes", axis1, len(order)), promotion.axis_of("swapaxes", axis2, len(order))
    order[i], order[j] = j, i
    return structure.transpose(a, permutation=tuple(order)) if i != j else a


@program("source", "destination")
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    a = promotion.array("moveaxis", a)
    count = typeof(a).ndim
    sources = promotion.axes_of("moveaxis", source, count)
    places = promotion.axes_of("moveaxis", destination, count)
    if len(sources) != len(places):
        raise ValueError(f"moveaxis: source {sources} and destination {places} must have the same number of axes.")
    order = [d for d in range(count) if d not in sources]
    for place, d in sorted(zip(places, sources, strict=True)):
        order.insert(place, d)
    return structure.transpose(a, permutation=tuple(order)) if order != list(range(count)) else a


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`a` with axes moved to other places, the others in their order.

    >>> from morphax import numpy as jnp
    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return _moveaxis(a, source=_hashable(source), destination=_hashable(destination))


def _hashable(x: Any) -> Any:
    return tuple(x) if isinstance(x, (list, tuple)) else x


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """`a` with an axis moved to stand before `start`; `moveaxis` is plainer.

    >>> from morphax import numpy as jnp
    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    count = ndim(a)
    axis = promotion.axis_of("rollaxis", axis, count)
    start = promotion.axis_of("rollaxis", start, count + 1)
    return moveaxis(a, axis, start - 1 if axis < start else start)


# ---- broadcasting ----------------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    >>> from morphax import numpy as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return promotion.common_shape("broadcast_shapes", [promotion.shape_of("broadcast_shapes", s) for s in shapes])


@program("wanted")
def _broadcast_to(a: Any, wanted: tuple[int, ...]) -> Any:
    a = promotion.array("broadcast_to", a)
    found = typeof(a).shape
    offset = len(wanted) - len(found)
    if offset < 0 or any(s not in (1, wanted[offset + k]) for k, s in enumerate(found)):
        raise ValueError(
            f"broadcast_to: Incompatible shapes for broadcasting: {found} and requested shape {wanted}. Axes, counted "
            "from the last, must be equal or 1."
        )
    return promotion.spread(a, wanted)


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """`array` repeated along new axes and axes of size 1 to a shape.

    >>> from morphax import numpy as jnp
    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    creation._no_sharding("broadcast_to", out_sharding)
    return _broadcast_to(array, wanted=promotion.shape_of("broadcast_to", shape))


@program()
def broadcast_arrays(*args: Any) -> list[Any]:
    """Arrays repeated to their common shape.

    >>> from morphax import numpy as jnp
    >>> [a.shape for a in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    args = tuple([promotion.array("broadcast_arrays", a) for a in args])
    wanted = promotion.common_shape("broadcast_arrays", [typeof(a).shape for a in args])
    return [promotion.spread(a, wanted) for a in args]


# ---- joining ---------------------------------------------------------------------------------------------------------


def parts_of(name: str, arrays: Any) -> list[Any]:
    """The arrays that a joining function is given, as a list; rows of one array too.

    Raises:
        ValueError: there is none.
    """
    if isinstance(arrays, (str, bytes, int, float, complex)):
        raise promotion.refuse(name, arrays)
    parts = [creation.array(p) if isinstance(p, (list, tuple)) else p for p in arrays]
    if not parts:
        raise ValueError(f"{name}: Need at least one array to {name}. Pass a non-empty sequence.")
    return parts


@program("name", "axis", "dtype")
def _concatenate(arrays: list[Any], name: str, axis: int | None, dtype: Any) -> Any:
    if dtype is None:
        arrays = promotion.same_dtype(name, arrays)
    else:
        arrays = [structure.convert(promotion.array(name, a), dtypes.named_dtype(dtype)) for a in arrays]
    if axis is None:
        arrays = [structure.reshape_to(a, (typeof(a).size,)) for a in arrays]
        axis = 0
    shapes = [typeof(a).shape for a in arrays]
    if not shapes[0]:
        raise ValueError(f"{name}: Zero-dimensional arrays cannot be concatenated. Use stack, or x[None].")
    axis = promotion.axis_of(name, axis, len(shapes[0]))
    first = (*shapes[0][:axis], *shapes[0][axis + 1 :])
    for s in shapes:
        if len(s) != len(shapes[0]) or (*s[:axis], *s[axis + 1 :]) != first:
            raise ValueError(
                f"{name}: shapes {shapes[0]} and {s} differ outside axis {axis}. Arrays to be joined must agree there; "
                "reshape, pad or broadcast them."
            )
    return arrays[0] if len(arrays) == 1 else structure.concatenate(*arrays, dimension=axis)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an existing axis; flat ones for axis=None.

    >>> from morphax import numpy as jnp
    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])]).tolist()
    [1, 2, 3]
    """
    return _concatenate(parts_of("concatenate", arrays), name="concatenate", axis=axis, dtype=dtype)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """As `concatenate`.

    >>> from morphax import numpy as jnp
    >>> jnp.concat([jnp.array([1]), jnp.array([3])]).tolist()
    [1, 3]
    """
    return _concatenate(parts_of("concat", arrays), name="concat", axis=axis, dtype=None)


@program("axis", "dtype")
def _stack(arrays: list[Any], axis: int, dtype: Any) -> Any:
    arrays = [promotion.array("stack", a) for a in promotion.same_dtype("stack", arrays)]
    first = typeof(arrays[0]).shape
    for a in arrays:
        if typeof(a).shape != first:
            raise ValueError(f"stack: All input arrays must have the same shape; got {first} and {typeof(a).shape}.")
    axis = promotion.axis_of("stack", axis, len(first) + 1)
    arrays = [structure.expand_dims(a, (axis,)) for a in arrays]
    out = arrays[0] if len(arrays) == 1 else structure.concatenate(*arrays, dimension=axis)
    return out if dtype is None else structure.convert(out, dtypes.named_dtype(dtype))


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new axis.

    >>> from morphax import numpy as jnp
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    ufuncs.no_out("stack", out)
    return _stack(parts_of("stack", arrays), axis=axis, dtype=dtype)


def _stack_along(name: str, tup: Any, ndim: int, axis: int, dtype: Any) -> Any:
    parts = [_deepened(a, name=name, ndim=ndim) for a in parts_of(name, tup)]
    return _concatenate(parts, name=name, axis=axis, dtype=dtype)


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined as rows.

    >>> from morphax import numpy as jnp
    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return _stack_along("vstack", tup, 2, 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along the second axis; along the first if they have one only.

    >>> from morphax import numpy as jnp
    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])]).tolist()
    [1, 2, 3]
    """
    parts = [_deepened(a, name="hstack", ndim=1) for a in parts_of("hstack", tup)]
    return _concatenate(parts, name="hstack", axis=0 if ndim(parts[0]) == 1 else 1, dtype=dtype)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along the third axis.

    >>> from morphax import numpy as jnp
    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])]).shape
    (1, 2, 2)
    """
    return _stack_along("dstack", tup, 3, 2, dtype)


@program()
def column_stack(tup: Any) -> Any:
    """Arrays joined as columns: those of one axis become columns.

    >>> from morphax import numpy as jnp
    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [promotion.array("column_stack", a) for a in parts_of("column_stack", tup)]
    parts = [structure.reshape_to(a, (typeof(a).size, 1)) if typeof(a).ndim < 2 else a for a in parts]
    return _concatenate(parts, name="column_stack", axis=1, dtype=None)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`arr` with `values` after it along an axis; both flat for axis=None.

    >>> from morphax import numpy as jnp
    >>> jnp.append(jnp.array([1, 2]), jnp.array(3)).tolist()
    [1, 2, 3]
    """
    return _concatenate([arr, values], name="append", axis=axis, dtype=None)


def block(arrays: Any) -> Any:
    """An array put together from nested lists of blocks: innermost lists along the last axis.

    >>> from morphax import numpy as jnp
    >>> jnp.block([[jnp.eye(1), jnp.zeros((1, 1))]]).tolist()
    [[1.0, 0.0]]
    """
    depth = _depth(arrays)
    widest = max(depth, *[ndim(leaf) for leaf in _blocks(arrays)])
    return _block(arrays, 1, depth, widest)


def _depth(x: Any) -> int:
    if not isinstance(x, list):
        return 0
    if not x:
        raise ValueError("block: a list of blocks is empty. Every list must hold at least one block.")
    depths = {_depth(v) for v in x}
    if len(depths) > 1:
        raise ValueError(f"block: lists are nested {sorted(depths)} deep side by side. Nest all blocks equally.")
    return depths.pop() + 1


def _blocks(x: Any) -> list[Any]:
    return [leaf for v in x for leaf in _blocks(v)] if isinstance(x, list) else [x]


def _block(x: Any, level: int, depth: int, widest: int) -> Any:
    if not isinstance(x, list):
        found = shape(x)
        return reshape(x, (1,) * (widest - len(found)) + found)
    return concatenate([_block(v, level + 1, depth, widest) for v in x], axis=level - 1 - depth)


# ---- splitting -------------------------------------------------------------------------------------------------------


@program("sizes", "axis")
def _split(a: Any, sizes: tuple[int, ...], axis: int) -> list[Any]:
    return list(structure.split(promotion.array("split", a), sizes=sizes, axis=axis))


def _split_by(name: str, ary: Any, indices_or_sections: Any, axis: int, equal: bool) -> list[Any]:
    ary = promotion.checked(name, ary)
    found = typeof(ary).shape
    axis = promotion.axis_of(name, axis, len(found))
    length = found[axis]
    if promotion.is_integer(indices_or_sections):
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError(f"{name}: number of sections must be at least 1; it is {count}.")
        if equal and length % count:
            raise ValueError(
                f"{name}: array split does not result in an equal division: {length} entries along axis {axis} into "
                f"{count} parts. Use array_split for unequal parts."
            )
        width, rest = divmod(length, count)
        sizes = tuple([width + 1] * rest + [width] * (count - rest))
        return _split(ary, sizes=sizes, axis=axis)
    cuts = [operator.index(i) for i in np.asarray(indices_or_sections).tolist()]
    edges = [0, *[min(max(i + length if i < 0 else i, 0), length) for i in cuts], length]
    if edges == sorted(edges):
        return _split(ary, sizes=tuple([b - a for a, b in itertools.pairwise(edges)]), axis=axis)
    return [structure.slice_axis(ary, a, max(a, b), axis) for a, b in itertools.pairwise(edges)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts of an array along an axis: so many equal ones, or cut at the given places.

    >>> from morphax import numpy as jnp
    >>> [part.tolist() for part in jnp.split(jnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split_by("split", ary, indices_or_sections, axis, equal=True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As `split`, but parts may differ by one entry.

    >>> from morphax import numpy as jnp
    >>> [part.tolist() for part in jnp.array_split(jnp.arange(3), 2)]
    [[0, 1], [2]]
    """
    return _split_by("array_split", ary, indices_or_sections, axis, equal=False)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 0.

    >>> from morphax import numpy as jnp
    >>> len(jnp.vsplit(jnp.ones((4, 2)), 2))
    2
    """
    return _split_by("vsplit", ary, indices_or_sections, 0, equal=True)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 1; along axis 0 if there is one only.

    >>> from morphax import numpy as jnp
    >>> len(jnp.hsplit(jnp.ones((2, 4)), 2))
    2
    """
    return _split_by("hsplit", ary, indices_or_sections, 0 if ndim(ary) == 1 else 1, equal=True)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along axis 2.

    >>> from morphax import numpy as jnp
    >>> len(jnp.dsplit(jnp.ones((1, 1, 4)), 2))
    2
    """
    return _split_by("dsplit", ary, indices_or_sections, 2, equal=True)


@program("axis")
def _rows(x: Any, axis: int) -> list[Any]:
    count = typeof(x).shape[axis]
    parts = structure.split(x, sizes=(1,) * count, axis=axis) if count else []
    return [structure.squeeze(p, dimensions=(axis,)) for p in parts]


_ROWS_AT_ONCE = 64  # results of one program: compile time grows with them


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The arrays that lie along an axis.

    >>> from morphax import numpy as jnp
    >>> [row.tolist() for row in jnp.unstack(jnp.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = promotion.checked("unstack", x)
    if not ndim(x):
        raise ValueError("unstack: needs at least one axis; the array is a scalar.")
    axis = promotion.axis_of("unstack", axis, ndim(x))
    return tuple(split_rows(x, axis))


def split_rows(x: Any, axis: int = 0) -> list[Any]:
    """The arrays that lie along an axis, some at a time for long axes."""
    count = typeof(x).shape[axis]
    if count <= _ROWS_AT_ONCE:
        return list(_rows(x, axis=axis))
    rows: list[Any] = []
    for part in _split_by("unstack", x, list(range(_ROWS_AT_ONCE, count, _ROWS_AT_ONCE)), axis, equal=False):
        rows += _rows(part, axis=axis)
    return rows


# ---- repeating and turning -------------------------------------------------------------------------------------------


@program("reps")
def _tile(a: Any, reps: tuple[int, ...]) -> Any:
    a = promotion.array("tile", a)
    found = typeof(a).shape
    reps = (1,) * (len(found) - len(reps)) + reps
    found = (1,) * (len(reps) - len(found)) + found
    between = tuple([s for pair in zip(reps, found, strict=True) for s in pair])
    odd = tuple(range(1, len(between), 2))
    a = structure.reshape_to(a, found)
    a = ew.broadcast_in_dim(a, shape=between, broadcast_dimensions=odd, sharding=None)
    return structure.reshape_to(a, tuple([r * s for r, s in zip(reps, found, strict=True)]))


def tile(A: Any, reps: Any) -> Any:
    """`A` laid out repeatedly along each axis.

    >>> from morphax import numpy as jnp
    >>> jnp.tile(jnp.array([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    return _tile(A, reps=promotion.shape_of("tile", reps))


@program("count", "axis")
def _repeat_each(a: Any, count: int, axis: int | None) -> Any:
    a = promotion.array("repeat", a)
    if axis is None:
        a, axis = structure.reshape_to(a, (typeof(a).size,)), 0
    found = typeof(a).shape
    axis = promotion.axis_of("repeat", axis, len(found))
    between = (*found[: axis + 1], count, *found[axis + 1 :])
    a = ew.broadcast(a, between, (axis + 1,))
    return structure.reshape_to(a, (*found[:axis], found[axis] * count, *found[axis + 1 :]))


@program("axis")
def flip(m: Any, axis: Any = None) -> Any:
    """`m` reversed along axes, all of them by default.

    >>> from morphax import numpy as jnp
    >>> jnp.flip(jnp.array([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    m = promotion.array("flip", m)
    axes = promotion.axes_of("flip", axis, typeof(m).ndim)
    return structure.rev(m, dimensions=axes) if axes else m


def fliplr(m: Any) -> Any:
    """`m` reversed along axis 1.

    >>> from morphax import numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2]])).tolist()
    [[2, 1]]
    """
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """`m` reversed along axis 0.

    >>> from morphax import numpy as jnp
    >>> jnp.flipud(jnp.array([[1], [2]])).tolist()
    [[2], [1]]
    """
    return flip(m, 0)


@program("k", "axes")
def _rot90(m: Any, k: int, axes: tuple[int, int]) -> Any:
    m = promotion.array("rot90", m)
    first, second = promotion.axes_of("rot90", axes, typeof(m).ndim)
    order = list(range(typeof(m).ndim))
    order[first], order[second] = second, first
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return structure.rev(m, dimensions=(first, second))
    if k % 4 == 1:
        return structure.transpose(structure.rev(m, dimensions=(second,)), permutation=tuple(order))
    return structure.rev(structure.transpose(m, permutation=tuple(order)), dimensions=(second,))


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """`m` turned by `k` quarters in the plane of two axes, from the first towards the second.

    >>> from morphax import numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    if len(axes) != 2:
        raise ValueError(f"rot90: axes must be two axes; they are {tuple(axes)}.")
    return _rot90(m, k=operator.index(k), axes=tuple(axes))


@program("shift", "axis")
def _roll_static(a: Any, shift: tuple[int, ...], axis: tuple[int, ...] | None) -> Any:
    a = promotion.array("roll", a)
    found = typeof(a).shape
    if axis is None:
        a = structure.reshape_to(a, (typeof(a).size,))
        axis = (0,) * len(shift)
    out = a
    for by, d in zip(shift, axis, strict=True):
        d = promotion.axis_of("roll", d, typeof(a).ndim)
        length = typeof(a).shape[d]
        by = by % length if length else 0
        if by:
            head = structure.slice_axis(out, length - by, length, d)
            out = structure.concatenate(head, structure.slice_axis(out, 0, length - by, d), dimension=d)
    return structure.reshape_to(out, found)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`a` with its entries moved along axes; what leaves at one end comes in at the other.

    >>> from morphax import numpy as jnp
    >>> jnp.roll(jnp.array([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    if isinstance(shift, (list, tuple)):
        shifts = tuple([operator.index(s) for s in shift])
    else:
        shifts = (shift,) if promotion.is_integer(shift) else tuple(np.asarray(shift).tolist())
    axes = None if axis is None else _hashable(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if axes is not None and len(axes) != len(shifts):
        shifts = shifts * len(axes) if len(shifts) == 1 else shifts
        axes = axes * len(shifts) if len(axes) == 1 else axes
        if len(axes) != len(shifts):
            raise ValueError(
                f"roll: shift {shifts} and axis {axes} must have the same length, or one of them length 1."
            )
    if all(isinstance(s, (int, np.integer)) for s in shifts):
        return _roll_static(a, shift=tuple([int(s) for s in shifts]), axis=axes)
    return _roll_by(a, shifts, axis=axes)


@program("axis")
def _roll_by(a: Any, shift: Sequence[Any], axis: tuple[int, ...] | None) -> Any:
    """`roll` by amounts that are not known before."""
    from_end = promotion.array("roll", a)
    found = typeof(from_end).shape
    out = from_end if axis is not None else structure.reshape_to(from_end, (typeof(from_end).size,))
    for by, d in zip(shift, axis or (0,) * len(shift), strict=True):
        d = promotion.axis_of("roll", d, typeof(out).ndim)
        length = typeof(out).shape[d]
        if length:
            out = _rolled(out, promotion.array("roll", by), d, length)
    return structure.reshape_to(out, found)


def _rolled(x: Any, by: Any, axis: int, length: int) -> Any:
    # Twice the array, read from where the first entry has come to.
    twice = structure.concatenate(x, x, dimension=axis)
    start = ufuncs.remainder(ew.neg(by), np.asarray(length, typeof(by).dtype))
    return dynamic_window(twice, start, length, axis)


def dynamic_window(x: Any, start: Any, length: int, axis: int) -> Any:
    """`length` entries along an axis from a start that is not known before."""
    sizes = list(typeof(x).shape)
    sizes[axis] = length
    zero = family.like(start, 0)
    starts = [start if d == axis else zero for d in range(len(sizes))]
    return indexing_ops.dynamic_slice(x, *starts, slice_sizes=tuple(sizes))


# ---- diagonals -------------------------------------------------------------------------------------------------------


@program("offset", "axis1", "axis2")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal in the plane of two axes, as the last axis of the result.

    >>> from morphax import numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    a = promotion.array("diagonal", a)
    count = typeof(a).ndim
    if count < 2:
        raise ValueError(f"diagonal: needs at least 2 axes; the array has shape {typeof(a).shape}.")
    i, j = promotion.axes_of("diagonal", (axis1, axis2), count)
    rest = [d for d in range(count) if d not in (i, j)]
    a = structure.transpose(a, permutation=(*rest, i, j))
    rows, columns = typeof(a).shape[-2:]
    down, across = max(-offset, 0), max(offset, 0)
    length = max(min(rows - down, columns - across), 0)
    # Rows one entry longer than the distance between diagonal entries put these into one column.
    outer = typeof(a).shape[:-2]
    flat = structure.reshape_to(a, (*outer, rows * columns))
    start = down * columns + across
    if not length:
        return structure.slice_axis(flat, 0, 0, len(outer))
    stop = start + (length - 1) * (columns + 1) + 1
    steps = (1,) * len(outer) + (columns + 1,)
    starts, limits = (0,) * len(outer) + (start,), (*outer, stop)
    return structure.slice(flat, start_indices=starts, limit_indices=limits, strides=steps if columns + 1 > 1 else None)


@program("k")
def diag(v: Any, k: int = 0) -> Any:
    """The diagonal `k` of a matrix, or the matrix with that diagonal.

    >>> from morphax import numpy as jnp
    >>> jnp.diag(jnp.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    v = promotion.array("diag", v)
    if typeof(v).ndim == 2:
        return diagonal(v, k)
    if typeof(v).ndim != 1:
        raise ValueError(f"diag: input must be 1d or 2d; it has shape {typeof(v).shape}.")
    length = typeof(v).shape[0] + abs(k)
    padded = structure.pad(v, family.like(v, 0), padding_config=((max(k, 0), max(-k, 0), 0),))
    mask = creation._diagonal_mask(shape=(length, length), offset=k, dtype=dtypes.bool_, below=False)
    columns = ew.broadcast_in_dim(padded, shape=(length, length), broadcast_dimensions=(1,), sharding=None)
    return ew.select_n(mask, family.like(v, 0), columns)


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix whose diagonal `k` has the entries of `v`, flat.

    >>> from morphax import numpy as jnp
    >>> jnp.diagflat(jnp.array([[1], [2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(ravel(v), k)


@program("offset", "axis1", "axis2", "dtype")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """Sum of the diagonal in the plane of two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]])).item()
    5
    """
    ufuncs.no_out("trace", out)
    return reductions.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Indices of the main diagonal of an array with `ndim` axes of size `n`.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    return (creation.arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """As `diag_indices`, for the shape of an array whose axes are equal.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.diag_indices_from(jnp.ones((2, 2)))]
    [[0, 1], [0, 1]]
    """
    found = shape(arr)
    if len(found) < 2 or len(set(found)) != 1:
        raise ValueError(f"diag_indices_from: needs at least 2 axes, all of one length; the shape is {found}.")
    return diag_indices(found[0], len(found))
