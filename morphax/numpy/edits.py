"""Entries put in, taken out and replaced, and positions counted in the flat array."""

import math
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, indexing, promotion, reductions, shapes, sorting, ufuncs, updates
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.runtime.jit import program
from morphax.support import dtypes, errors

typeof = avals.operand_type

# ---- in and out ------------------------------------------------------------------------------------------------------


def _along(name: str, arr: Any, axis: int | None) -> tuple[Any, int]:
    arr = creation.asarray(promotion.checked(name, arr))
    if axis is None:
        return shapes.ravel(arr), 0
    return arr, promotion.axis_of(name, axis, arr.ndim)


def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Any:
    """`arr` without the entries, or the slices along an axis, at given positions.

    Args:
        arr: array.
        obj: an integer, a slice, integers, or bools of the size of the axis. Under `jit` it must be static, or integers
            with `assume_unique_indices`.
        axis: axis, or None for the flat array.
        assume_unique_indices: promise that no position comes twice.

    >>> from morphax import numpy as jnp
    >>> jnp.delete(jnp.array([5, 6, 7]), 1).tolist()
    [5, 7]
    """
    arr, axis = _along("delete", arr, axis)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    promotion.checked("delete", obj)
    if assume_unique_indices and np.shape(obj) and not _is_mask(obj):
        return _without(arr, creation.asarray(obj), axis=axis)
    keep = np.ones(n, np.bool_)
    host = _concrete_positions("delete", obj)
    if host.dtype == np.bool_:
        if host.shape != (n,):
            raise ValueError(f"delete: the bools in obj must have shape ({n},); they have {host.shape}.")
        keep = ~host
    elif host.size:
        if not np.issubdtype(host.dtype, np.integer):
            raise ValueError(f"delete: obj must be integers, bools or a slice; its dtype is {host.dtype}.")
        outside = host[(host < -n) | (host >= n)] if host.ndim else host[None][[not -n <= host < n]]
        if outside.size:
            raise IndexError(
                f"delete: position {outside.flat[0]} is out of bounds for axis {axis} of size {n}. Give positions in "
                f"[{-n}, {n - 1}]."
            )
        keep[host] = False
    return indexing.take(arr, np.flatnonzero(keep), axis=axis, mode="clip")


def _is_mask(obj: Any) -> bool:
    return promotion.described("delete", obj)[0] == np.bool_


def _concrete_positions(name: str, obj: Any) -> np.ndarray:
    try:
        return np.asarray(obj)
    except errors.TracerArrayConversionError as error:
        raise errors.ConcretizationTypeError(
            f"{name}: the size of the result depends on the values of obj, which is traced. Give static positions, or "
            f"integers with assume_unique_indices=True. {error}"
        ) from None


@program("axis")
def _without(arr: Any, obj: Any, axis: int) -> Any:
    n = typeof(arr).shape[axis]
    obj = structure.reshape_to(obj, (typeof(obj).size,))
    count = typeof(obj).shape[0]
    obj = sorting.sort(indexing.wrapped(obj, n))
    shift = ew.sub(obj, structure.iota_along(typeof(obj).dtype, (count,), 0))
    # The k-th place of the result lies as many places further as removed positions stand at or before it.
    places = structure.iota_along(typeof(obj).dtype, (max(n - count, 0),), 0)
    places = ew.add(places, structure.convert(sorting.searchsorted(shift, places, side="right"), typeof(obj).dtype))
    return indexing.take(arr, places, axis=axis, mode="clip")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """`arr` with values put in before given positions.

    Args:
        arr: array.
        obj: an integer, a slice, or integers; positions in `arr`, of which several may be equal.
        values: what to put in, broadcast; converted to the dtype of `arr`.
        axis: axis, or None for the flat array.

    >>> from morphax import numpy as jnp
    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    arr, axis = _along("insert", arr, axis)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(arr.shape[axis]))
    dtype, _, found = promotion.described("insert", obj)
    if len(found) > 1:
        raise ValueError(f"insert: obj must be an integer or integers along one axis; its shape is {found}.")
    if not dtypes.is_integer(dtype) and found != (0,):
        raise ValueError(f"insert: obj must be integers; its dtype is {dtype.name}. Use jnp.flatnonzero for bools.")
    return _inserted(arr, obj, promotion.checked("insert", values), axis=axis)


@program("axis")
def _inserted(arr: Any, obj: Any, values: Any, axis: int) -> Any:
    int_dtype = dtypes.default_int_dtype()
    obj = structure.convert(promotion.array("insert", obj), int_dtype)
    values = promotion.as_dtype(promotion.array("insert", values), typeof(arr).dtype)
    arr = structure.move_axis(arr, axis, 0)
    n, *rest = typeof(arr).shape
    missing = len(rest) + 1 - typeof(values).ndim
    values = structure.expand_dims(values, tuple(range(missing))) if missing > 0 else values
    if typeof(obj).ndim:  # for a single place NumPy takes the first axis of what is put in as the axis
        values = structure.move_axis(values, axis, 0)
    places = structure.reshape_to(obj, (typeof(obj).size,))
    count = typeof(places).shape[0] if typeof(places).shape[0] != 1 else typeof(values).shape[0]
    values = promotion.spread(values, (count, *rest))
    zero, size = family.like(places, 0), family.like(places, n)
    places = ew.select_n(ew.lt(places, zero), places, ew.add(places, size))
    places = promotion.spread(ew.min(ew.max(places, zero), size), (count,))
    order = sorting.argsort(places)
    target = ew.add(indexing.take(places, order, mode="clip"), structure.iota_along(int_dtype, (count,), 0))
    new = updates.Place(ew.full((n + count,), np.asarray(False)), target).set(True)
    old = ew.sub(reductions.cumsum(ew.not_(new), dtype=int_dtype), family.scalar(1, int_dtype))
    rank = reductions.cumsum(new, dtype=int_dtype)
    source = ew.add(rank, family.scalar(n - 1, int_dtype))
    joined = structure.concatenate(arr, indexing.take(values, order, axis=0, mode="clip"), dimension=0)
    out = indexing.take(joined, ew.select_n(new, old, source), axis=0, mode="clip")
    return structure.move_axis(out, 0, axis)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`filt` without the zeros at its ends, along every axis or those given.

    Args:
        filt: array; not traced, since the shape depends on the values.
        trim: "f" for the front, "b" for the back.
        axis: axis or axes, or None for all.

    >>> from morphax import numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 0])).tolist()
    [1]
    """
    filt = creation.asarray(promotion.checked("trim_zeros", filt))
    host = sorting._host("trim_zeros", filt)
    front, back = "f" in trim.lower(), "b" in trim.lower()
    places = np.nonzero(host)
    part = [slice(None)] * host.ndim
    for d in range(host.ndim) if axis is None else promotion.axes_of("trim_zeros", axis, host.ndim):
        some = places[d].size
        first = int(places[d].min()) if some else host.shape[d]
        last = int(places[d].max()) + 1 if some else 0
        part[d] = slice(first if front else 0, max(last, first if front else 0) if back else host.shape[d])
    return filt[tuple(part)] if front or back else filt


def resize(a: Any, new_shape: Any) -> Any:
    """The entries of `a`, repeated as often as needed, in another shape; zeros where `a` has none.

    >>> from morphax import numpy as jnp
    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    wanted = promotion.shape_of("resize", new_shape)
    a = creation.asarray(promotion.checked("resize", a)).reshape(-1)
    size = math.prod(wanted)
    if not a.size or not size:
        return creation.zeros(wanted, a.dtype)
    repeated = shapes.tile(a, -(-size // a.size))[:size] if size != a.size else a
    return repeated.reshape(wanted)


# ---- replaced --------------------------------------------------------------------------------------------------------


@program()
def _placed(arr: Any, mask: Any, vals: Any) -> Any:
    size, count = typeof(arr).size, typeof(vals).size
    flags = ufuncs.truth("place", structure.reshape_to(mask, (size,)))
    number = ew.sub(reductions.cumsum(flags, dtype=np.int32), family.scalar(1, np.dtype(np.int32)))
    chosen = indexing.take(structure.reshape_to(vals, (count,)), number, mode="wrap")
    flat = structure.reshape_to(arr, (size,))
    return structure.reshape_to(
        ew.select_n(flags, flat, structure.convert(chosen, typeof(arr).dtype)), typeof(arr).shape
    )


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """`arr` with its entries where the mask holds replaced, in order, by `vals`, repeated; pass inplace=False.

    >>> from morphax import numpy as jnp
    >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([True, False, True]), jnp.array([7, 8]), inplace=False).tolist()
    [7, 2, 8]
    """
    if inplace:
        raise ValueError("place: arrays do not change. Pass inplace=False and use the result.")
    arr, mask, vals = (creation.asarray(promotion.checked("place", x)) for x in (arr, mask, vals))
    if mask.size != arr.size:
        raise ValueError(f"place: mask must have as many entries as arr; shapes are {mask.shape} and {arr.shape}.")
    if not vals.size:
        if not arr.size:
            return arr
        raise ValueError(f"place: vals, of shape {vals.shape}, has nothing to put. Give at least one value.")
    return _placed(arr, mask, vals) if arr.size else arr


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """`a` with `val`, repeated, along its main diagonal; pass inplace=False.

    Args:
        a: array of two axes, or of more of equal size.
        val: values, read flat.
        wrap: not supported.
        inplace: must be False.

    >>> from morphax import numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    if inplace:
        raise NotImplementedError("fill_diagonal: arrays do not change. Pass inplace=False and use the result.")
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported. Leave it out.")
    a, val = (creation.asarray(promotion.checked("fill_diagonal", x)) for x in (a, val))
    if a.ndim < 2:
        raise ValueError(f"fill_diagonal: needs at least two axes; the shape is {a.shape}.")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"fill_diagonal: more than two axes must have equal sizes; the shape is {a.shape}.")
    n = min(a.shape)
    if val.ndim:
        if not val.size:
            raise ValueError(f"fill_diagonal: val, of shape {val.shape}, has nothing to put. Give at least one value.")
        val = resize(val, n)
    return a.at[(np.arange(n),) * a.ndim].set(val)


# ---- positions -------------------------------------------------------------------------------------------------------


def mask_indices(n: int, mask_func: Any, k: Any = 0, *, size: int | None = None) -> tuple[Any, Any]:
    """Positions in an n x n array that `mask_func`, such as `triu`, leaves different from 0.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.mask_indices(2, jnp.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = sorting.nonzero(mask_func(creation.ones((n, n)), k), size=size)
    return rows, columns


@program("shape")
def _unraveled(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    indices = promotion.array("unravel_index", indices)
    if not dtypes.is_integer(typeof(indices).dtype):
        raise TypeError(f"unravel_index: indices must be integers; they are {typeof(indices)}.")
    total = math.prod(shape)
    size = family.like(indices, total)
    zero = family.like(indices, 0)
    # Outside, the first or the last position: programs do not raise.
    inside = ew.select_n(ew.lt(indices, zero), indices, ew.add(indices, size))
    rest = ew.min(ew.max(inside, zero), ew.sub(size, family.like(indices, 1)))
    out = []
    for n in reversed(shape):
        step = family.like(rest, max(n, 1))
        out.append(ew.rem(rest, step))
        rest = ew.div(rest, step)
    return tuple(out[::-1])


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Positions along each axis of positions in the flat array; negative ones count from the end.

    Args:
        indices: integers; those outside count as the first or the last position.
        shape: shape of the array.

    >>> from morphax import numpy as jnp
    >>> [i.item() for i in jnp.unravel_index(5, (2, 3))]
    [1, 2]
    """
    indices = creation.asarray(indices) if isinstance(indices, (list, tuple)) else indices
    return _unraveled(indices, shape=promotion.shape_of("unravel_index", shape))


@program("dims", "mode", "order", "dtype")
def _raveled(parts: list[Any], dims: tuple[int, ...], mode: str, order: str, dtype: Any) -> Any:
    strides = np.cumprod((1, *dims[:0:-1]))[::-1] if order == "C" else np.cumprod((1, *dims[:-1]))
    parts = promotion.operands("ravel_multi_index", parts)
    total: Any = None
    for part, n, stride in zip(parts, dims, strides.tolist(), strict=True):
        if mode == "wrap":
            part = ufuncs.remainder(part, family.like(part, n))
        elif mode == "clip":
            part = ew.min(ew.max(part, family.like(part, 0)), family.like(part, n - 1))
        part = part if dtype is None else structure.convert(part, dtype)
        part = ew.mul(part, family.like(part, stride))
        total = part if total is None else ufuncs.add.plain(total, part)
    return total


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None) -> Any:
    """Positions in the flat array of positions along each axis.

    Args:
        multi_index: integers for each axis.
        dims: shape of the array.
        mode: outside the array, "raise", which `jit` does not allow, "wrap" or "clip".
        order: "C" or "F".
        dtype: dtype of the result.

    >>> from morphax import numpy as jnp
    >>> jnp.ravel_multi_index((1, 2), (2, 3)).item()
    5
    """
    dims = promotion.shape_of("ravel_multi_index", dims)
    parts = list(multi_index)
    if len(parts) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(parts)} arrays of positions for {len(dims)} axes {dims}.")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"ravel_multi_index: mode must be 'raise', 'wrap' or 'clip'; it is {mode!r}.")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order must be 'C' or 'F'; it is {order!r}.")
    parts = [creation.asarray(promotion.checked("ravel_multi_index", p)) for p in parts]
    if dtype is not None:
        dtype = dtypes.named_dtype(dtype)
    for p, n in zip(parts, dims, strict=True):
        if not dtypes.is_integer(p.dtype):
            raise ValueError(f"ravel_multi_index: positions must be integers; their dtype is {p.dtype.name}.")
        if mode == "raise":
            _check_inside(p, n)
    if not parts:
        return creation.zeros((), dtypes.default_int_dtype())
    return _raveled(parts, dims=dims, mode=mode, order=order, dtype=dtype)


def _check_inside(p: Any, n: int) -> None:
    try:
        host = np.asarray(p)
    except errors.TracerArrayConversionError as error:
        raise errors.ConcretizationTypeError(
            "ravel_multi_index: mode='raise' needs concrete positions. Under jit use mode='wrap' or mode='clip'. "
            f"{error}"
        ) from None
    if host.size and not (host.min() >= 0 and host.max() < n):
        raise ValueError(
            f"ravel_multi_index: positions from {host.min()} to {host.max()} do not lie in [0, {n - 1}]. Use "
            "mode='wrap' or mode='clip'."
        )
