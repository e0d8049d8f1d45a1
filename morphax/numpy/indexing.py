"""x[...] and x.at[...]: NumPy's indexing on arrays that do not change.

An index is read in three steps. `_Plan` says, from shapes alone, what each entry does: keep, slice or drop an axis, add
one, or take entries by an index array. What is static in it becomes a hashable key, and what is not (positions that
differ from call to call, index arrays) becomes operands, so that one compiled program serves all of `x[0]`, `x[1]`, ....
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.numpy import creation, promotion, shapes, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops import indexing as ops
from morphax.runtime import array as arrays
from morphax.runtime.jit import program
from morphax.support import config, dtypes, errors

typeof = avals.operand_type
Mode = ops.GatherScatterMode
_outside = base()
_INT = np.dtype("int32")

# ---- entries of an index ---------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What an index does, static parts only.

    `entries` has one item per axis of the array, in order: ("all",), ("window", start, size), ("strided", start, step,
    size), ("int", position) or ("array", k) for the k-th index array. `layout` has one item per axis or group of axes
    of the result: ("new",), ("axis", d), or ("arrays",) for the broadcast axes of all index arrays.
    """

    entries: tuple[tuple[Any, ...], ...]
    layout: tuple[tuple[Any, ...], ...]


def _read(name: str, shape: tuple[int, ...], index: Any, strict: bool) -> tuple[_Plan, list[Any]]:
    """Plan and index arrays of an index into an array of that shape.

    Args:
        name: the operation, for messages.
        shape: shape of the array.
        index: what stands in the brackets.
        strict: whether static positions must lie inside.
    """
    parts = _expanded(name, shape, index)
    entries: list[tuple[Any, ...]] = []
    layout: list[tuple[Any, ...]] = []
    given: list[Any] = []
    places: list[int] = []  # where arrays stand among the parts, to see whether they are neighbours
    has_arrays = any(_is_array(p) for p in parts)
    for place, part in enumerate(parts):
        axis = len(entries)
        if part is None:
            layout.append(("new",))
        elif part.__class__ is slice:
            entry = _slice_entry(name, shape, axis, part)
            entries.append(entry)
            layout.append(("axis", axis))
        elif not has_arrays and _is_static_int(part):
            entries.append(("int", _position(name, shape, axis, operator.index(part), strict)))
        else:
            if _is_static_int(part):
                part = np.asarray(_position(name, shape, axis, operator.index(part), strict), _INT)
            entries.append(("array", len(given)))
            given.append(part)
            if ("arrays",) not in layout:
                layout.append(("arrays",))
            places.append(place)
    if places and places[-1] - places[0] != len(places) - 1:  # separated by slices: NumPy puts their axes first
        layout.remove(("arrays",))
        layout.insert(0, ("arrays",))
    return _Plan(tuple(entries), tuple(layout)), given


def _is_array(x: Any) -> bool:
    return x is not None and x.__class__ is not slice and not _is_static_int(x)


def _is_static_int(x: Any) -> bool:
    return x.__class__ is int or isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.bool_))


def _expanded(name: str, shape: tuple[int, ...], index: Any) -> list[Any]:
    """One part for each axis, and None for new ones: Ellipsis filled in, masks turned into positions."""
    parts = list(index) if isinstance(index, tuple) else [index]
    out: list[Any] = []
    taken = 0
    hole = None
    for part in parts:
        if part is None or part is Ellipsis:
            if part is Ellipsis:
                if hole is not None:
                    raise IndexError(
                        f"{name}: an index can only have a single ellipsis ('...'); {_shown(parts)} has more."
                    )
                hole = len(out)
                continue
            out.append(None)
            continue
        if part.__class__ is slice or _is_static_int(part):
            out.append(part)
            taken += 1
            continue
        made = _array_parts(name, shape, taken if hole is None else None, part, parts)
        out += made
        taken += len(made)
        if isinstance(part, (bool, np.bool_)) or _is_scalar_mask(part):
            raise NotImplementedError(
                f"{name}: scalar bools are not supported in {_shown(parts)}. Use where, or x[None]."
            )
    missing = len(shape) - taken
    if missing < 0:
        raise IndexError(
            f"{name}: too many indices for array: array is {len(shape)}-dimensional, but {taken} were indexed by "
            f"{_shown(parts)}. Drop some."
        )
    at = len(out) if hole is None else hole
    return out[:at] + [slice(None)] * missing + out[at:]


def _is_scalar_mask(x: Any) -> bool:
    try:
        return x.dtype == np.bool_ and x.ndim == 0
    except AttributeError:
        return False


def _shown(parts: Sequence[Any]) -> str:
    words = []
    for p in parts:
        shape = np.shape(p) if isinstance(p, (np.ndarray, list)) else None
        words.append("..." if p is Ellipsis else f"array{shape}" if shape else f"{p!r:.30}")
    return f"[{', '.join(words)}]"


def _array_parts(name: str, shape: tuple[int, ...], axis: int | None, part: Any, parts: Sequence[Any]) -> list[Any]:
    """A part that is no int and no slice, as index arrays; a mask becomes one for each of its axes."""
    if isinstance(part, (list, tuple)):
        if part and not any(isinstance(p, (slice, type(None))) for p in part) or not part and isinstance(part, list):
            cure = f"x[jnp.array({part!r:.40})]" if isinstance(part, list) else f"x[{', '.join(map(repr, part))}]"
        else:
            cure = "x[tuple(index)]"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` instead of "
            f"`arr[seq]`: write {cure}. ({name}: {_shown(parts)} holds a {type(part).__name__}.)"
        )
    try:
        dtype = part.dtype
    except AttributeError:
        raise TypeError(
            f"{name}: {part!r:.60} of type {type(part).__name__} cannot be an index. Use ints, slices, None, ..., and "
            "integer or bool arrays."
        ) from None
    if dtype == np.bool_:
        return _mask_parts(name, shape, axis, part)
    if not dtypes.is_integer(dtype):
        raise TypeError(
            f"{name}: Indexer must have integer or boolean type, got indexer with type {dtype} in {_shown(parts)}. "
            "Convert it: index.astype(int)."
        )
    return [part]


def _mask_parts(name: str, shape: tuple[int, ...], axis: int | None, mask: Any) -> list[Any]:
    try:
        host = np.asarray(mask)
    except errors.TracerArrayConversionError:
        raise errors.NonConcreteBooleanIndexError(
            f"{name}: Array boolean indices must be concrete; this mask of shape {mask.shape} is traced, so that the "
            "shape of the result is not known. Use jnp.where(mask, x, 0), or jnp.nonzero(mask, size=n)."
        ) from None
    if not host.ndim:
        return []
    if axis is not None and host.shape != shape[axis : axis + host.ndim]:
        raise IndexError(
            f"{name}: boolean index did not match shape of indexed array: the mask has shape {host.shape}, the array "
            f"{shape} from axis {axis} on. Give a mask of the axes' sizes."
        )
    return list(np.nonzero(host))


def _position(name: str, shape: tuple[int, ...], axis: int, position: int, strict: bool) -> int:
    """A static position as a number in [0, size), or as it is where it lies outside and that is allowed."""
    if axis >= len(shape):
        raise IndexError(f"{name}: too many indices for array: the array has {len(shape)} axes, of sizes {shape}.")
    size = shape[axis]
    if -size <= position < size:
        return position + size if position < 0 else position
    if config.bounds.value == "clamp" and size:
        return 0 if position < 0 else size - 1
    if not strict:
        return position + size if position < 0 else position
    raise IndexError(
        f"{name}: index {position} is out of bounds for axis {axis} with size {size}. Give one in [{-size}, {size - 1}], "
        "or use .at[...].get(mode='clip')."
    )


def _slice_entry(name: str, shape: tuple[int, ...], axis: int, part: slice) -> tuple[Any, ...]:
    size = shape[axis] if axis < len(shape) else 0
    if part.start is None and part.stop is None and part.step is None:
        return ("all",)
    try:
        start, stop, step = part.indices(size)
    except TypeError as error:
        raise _bad_slice(name, part, error) from None
    length = len(range(start, stop, step))
    if step == 1:
        return ("all",) if length == size else ("window", start if length else 0, length)
    return ("strided", start, step, length) if length else ("window", 0, 0)


def _bad_slice(name: str, part: slice, error: TypeError) -> Exception:
    if isinstance(error, errors.TracerIntegerConversionError):
        return IndexError(
            f"{name}: Array slice indices must have static start/stop/step to be used with NumPy indexing syntax. Found "
            f"{part}. Use lax.dynamic_slice for a start that is traced."
        )
    return TypeError(f"{name}: slice indices must be integers or None; found {part}.")


# ---- reading ---------------------------------------------------------------------------------------------------------


def _static(x: Any, plan: _Plan) -> Any:
    """`x` sliced by the entries that are not arrays; ints drop their axes."""
    starts, limits, strides, flipped, dropped = [], [], [], [], []
    found = typeof(x).shape
    for d, (entry, size) in enumerate(zip(plan.entries, found, strict=True)):
        start, limit, step = 0, size, 1
        if entry[0] == "window":
            start, limit = entry[1], entry[1] + entry[2]
        elif entry[0] == "strided":
            _, first, step, length = entry
            last = first + (length - 1) * step
            if step < 0:
                flipped.append(d)
                first, last, step = last, first, -step
            start, limit = first, last + 1
        elif entry[0] == "int":
            start, limit = entry[1], entry[1] + 1
            dropped.append(d)
        starts.append(start)
        limits.append(limit)
        strides.append(step)
    if any(starts) or tuple(limits) != found or any(s != 1 for s in strides):
        steps = tuple(strides) if any(s != 1 for s in strides) else None
        x = structure.slice(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=steps)
    if flipped:
        x = structure.rev(x, dimensions=tuple(flipped))
    return structure.squeeze(x, dimensions=tuple(dropped)) if dropped else x


def _new_axes(x: Any, plan: _Plan, width: int) -> Any:
    """`x` with the new axes of the layout; the arrays' axes are `width` many."""
    places = []
    at = 0
    for item in plan.layout:
        if item[0] == "new":
            places.append(at)
        at += width if item[0] == "arrays" else 1
    return structure.expand_dims(x, tuple(places)) if places else x


def wrapped(index: Any, size: int) -> Any:
    """Positions with negative ones counted from the end."""
    if not isinstance(index, (np.ndarray, np.generic)):
        dtype = typeof(index).dtype
        if dtypes.is_unsigned(dtype):
            return index
        if dtypes.itemsize_bits(dtype) < 32:
            index = structure.convert(index, _INT)
        zero, span = family.like(index, 0), family.like(index, size)
        return ew.select_n(ew.lt(index, zero), index, ew.add(index, span))
    index = np.asarray(index)
    wide = index.astype(_INT if size < 2**31 else np.int64)
    return np.where(wide < 0, wide + wide.dtype.type(size), wide)


def _vectors(indices: Sequence[Any]) -> tuple[Any, tuple[int, ...]]:
    """Index arrays broadcast to one shape, and side by side along a last axis."""
    shape = promotion.common_shape("indexing", [typeof(i).shape for i in indices])
    wide = np.dtype("int64") if any(typeof(i).dtype.itemsize == 8 for i in indices) else None
    if wide is None and len({typeof(i).dtype for i in indices}) > 1:
        wide = _INT
    if wide is not None:
        indices = [promotion.as_dtype(i, wide) for i in indices]
    columns = []
    for i in indices:
        own = typeof(i).ndim
        dims = tuple(range(len(shape) - own, len(shape)))
        columns.append(ew.broadcast_in_dim(i, shape=(*shape, 1), broadcast_dimensions=dims, sharding=None))
    return (columns[0] if len(columns) == 1 else structure.concatenate(*columns, dimension=len(shape))), shape


class _How(NamedTuple):
    """How entries outside the array are met, and what is promised of the indices."""

    mode: Any = Mode.PROMISE_IN_BOUNDS
    fill_value: Any = None
    is_sorted: bool = False
    unique: bool = False
    wrap: bool = True


_PLAIN = _How()


@program("plan", "how")
def _take(x: Any, given: list[Any], plan: _Plan, how: _How) -> Any:
    """`x` read by a plan and its index arrays."""
    if not given:
        return _new_axes(_static(x, plan), plan, 0)
    axes = [d for d, entry in enumerate(plan.entries) if entry[0] == "array"]
    x = _static(x, plan)
    found = typeof(x).shape
    if all(typeof(i).ndim == 0 for i in given) and how.mode in (Mode.PROMISE_IN_BOUNDS, Mode.CLIP):
        return _new_axes(_take_one(x, given, axes, how.wrap), plan, 0)
    if how.wrap:
        given = [wrapped(i, found[d]) for i, d in zip(given, axes, strict=True)]
    vectors, shape = _vectors(given)
    if any(found[d] == 0 for d in axes):
        return _of_nothing(x, plan, axes, shape, how)
    offsets = []
    at = 0
    for item in plan.layout:
        if item[0] == "axis":
            offsets.append(at)
        at += {"axis": 1, "arrays": len(shape), "new": 0}[item[0]]
    numbers = ops.GatherDimensionNumbers(tuple(offsets), tuple(axes), tuple(axes))
    sizes = tuple([1 if d in axes else s for d, s in enumerate(found)])
    out = ops.gather(
        x,
        vectors,
        dimension_numbers=numbers,
        slice_sizes=sizes,
        indices_are_sorted=how.is_sorted,
        unique_indices=how.unique,
        mode=how.mode,
        fill_value=how.fill_value,
    )
    return _new_axes(out, plan, len(shape))


def _take_one(x: Any, given: Sequence[Any], axes: Sequence[int], wrap: bool) -> Any:
    """`x` at one position along some axes: a slice that XLA moves inside the array."""
    found = typeof(x).shape
    if any(found[d] == 0 for d in axes):
        raise IndexError(f"indexing: an axis of shape {found} is empty, so there is nothing to take from it.")
    given = [wrapped(i, found[d]) if wrap else i for i, d in zip(given, axes, strict=True)]
    dtype = max([typeof(i).dtype for i in given], key=lambda t: t.itemsize)
    dtype = dtype if dtype.itemsize >= 4 and len({typeof(i).dtype for i in given}) == 1 else _INT
    starts = [promotion.literal(0, dtype)] * len(found)
    for i, d in zip(given, axes, strict=True):
        starts[d] = promotion.as_dtype(i, dtype)
    sizes = tuple([1 if d in axes else s for d, s in enumerate(found)])
    return structure.squeeze(ops.dynamic_slice(x, *starts, slice_sizes=sizes), dimensions=tuple(axes))


def _of_nothing(x: Any, plan: _Plan, axes: Sequence[int], shape: tuple[int, ...], how: _How) -> Any:
    found = typeof(x).shape
    sizes: list[int] = []
    rest = iter([s for d, s in enumerate(found) if d not in axes])
    for item in plan.layout:
        sizes += {"new": [1], "arrays": list(shape), "axis": []}[item[0]] if item[0] != "axis" else [next(rest)]
    if 0 not in sizes and how.mode is not Mode.FILL_OR_DROP:
        raise IndexError(f"indexing: an axis of shape {found} is empty, so there is nothing to take from it.")
    value = ops.fill_of(typeof(x).dtype) if how.fill_value is None else how.fill_value
    return ew.full(tuple(sizes), np.asarray(value, typeof(x).dtype))


# Plans of ints and slices of step 1 read windows of fixed sizes from positions that are operands: one program for
# x[0], x[1], .... A plan becomes ((size, drops its axis) for each axis, new axes).


@program("sizes", "dropped", "new")
def _window(x: Any, starts: tuple[Any, ...], sizes: tuple[int, ...], dropped: Any, new: Any) -> Any:
    found = typeof(x).shape
    given = iter(starts)
    zero = promotion.literal(0, _INT)
    places = [next(given) if s != n else zero for s, n in zip(sizes, found, strict=True)]
    places = [promotion.as_dtype(p, _INT) for p in places]
    out = ops.dynamic_slice(x, *places, slice_sizes=sizes)
    out = structure.squeeze(out, dimensions=dropped) if dropped else out
    return structure.expand_dims(out, new) if new else out


def getitem(x: Any, index: Any) -> Any:
    """x[index]."""
    aval = x.aval
    if current.trace is not _outside or aval.dtype.__class__ is dtypes.KeyDType:
        return _getitem_traced(x, aval, index)
    kind = index.__class__
    if kind is int:  # the commonest index: 1 us less than the general way
        shape = aval.shape
        if shape and -shape[0] <= index < shape[0]:
            if shape[0] == 1:
                return _window.compiled(x, (), sizes=shape, dropped=(0,), new=())
            place = index if index >= 0 else index + shape[0]
            return _window.compiled(x, (place,), sizes=(1, *shape[1:]), dropped=(0,), new=())
    plan, given = _read("getitem", aval.shape, index, True)
    if given:
        given = [_eager_index("getitem", aval.shape, d, i) for d, i in _with_axes(plan, given)]
        return _take.compiled(x, given, plan=plan, how=_PLAIN)
    starts: list[int] = []
    sizes: list[int] = []
    dropped: list[int] = []
    for d, (entry, size) in enumerate(zip(plan.entries, aval.shape, strict=True)):
        tag = entry[0]
        if tag == "all":
            sizes.append(size)
            continue
        if tag == "strided":
            return _take.compiled(x, [], plan=plan, how=_PLAIN)
        length = 1 if tag == "int" else entry[2]
        sizes.append(length)
        if length != size:
            starts.append(entry[1])
        if tag == "int":
            dropped.append(d)
    new = tuple([k for k, item in enumerate(plan.layout) if item[0] == "new"])
    if not dropped and not new and tuple(sizes) == aval.shape:
        return x
    return _window.compiled(x, tuple(starts), sizes=tuple(sizes), dropped=tuple(dropped), new=new)


def _with_axes(plan: _Plan, given: Sequence[Any]) -> list[tuple[int, Any]]:
    axes = [d for d, entry in enumerate(plan.entries) if entry[0] == "array"]
    return list(zip(axes, given, strict=True))


_CHECKED = 1 << 16  # index arrays up to this size are looked at before use: 5 us on the CPU


def _eager_index(name: str, shape: tuple[int, ...], axis: int, index: Any) -> Any:
    """A concrete index array, once its entries were seen to lie inside the axis.

    Raises:
        IndexError: an entry lies outside, and config.bounds is 'raise'.
    """
    if axis >= len(shape):
        raise IndexError(f"{name}: too many indices for array: the array has {len(shape)} axes, of sizes {shape}.")
    on_host = isinstance(index, np.ndarray)
    if config.bounds.value == "raise" and index.size and index.size <= _CHECKED:
        if on_host or index.__class__ is arrays.ArrayImpl and index.device.platform == "cpu":
            values = index if on_host else index._value
            size = shape[axis]
            low, high = int(values.min()), int(values.max())
            if low < -size or high >= size:
                wrong = low if low < -size else high
                raise IndexError(
                    f"{name}: index {wrong} is out of bounds for axis {axis} with size {size}. Use "
                    ".at[...].get(mode='clip') or mode='fill' for positions outside."
                )
    if on_host and index.dtype.itemsize == 8 and shape[axis] < 2**31:
        return index.astype(_INT)
    return index


def _getitem_traced(x: Any, aval: Any, index: Any) -> Any:
    plan, given = _read("getitem", aval.shape, index, True)
    return _take.__wrapped__(x, given, plan=plan, how=_PLAIN)


# ---- x.at ------------------------------------------------------------------------------------------------------------


def _combined(combine: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    return combine if combine is not None else lambda old, new: new


# name -> (scatter, the same on two arrays)
_UPDATES: dict[str, tuple[Any, Any]] = {
    "set": (ops.scatter, None),
    "add": (ops.scatter_add, ew.add),
    "subtract": (ops.scatter_sub, ew.sub),
    "multiply": (ops.scatter_mul, ew.mul),
    "min": (ops.scatter_min, ew.min),
    "max": (ops.scatter_max, ew.max),
}


def _result_shape(shape: tuple[int, ...], plan: _Plan, block: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of x[index]."""
    out: list[int] = []
    for item in plan.layout:
        if item[0] == "new":
            out.append(1)
        elif item[0] == "arrays":
            out += block
        else:
            out.append(_length(plan.entries[item[1]], shape[item[1]]))
    return tuple(out)


def _length(entry: tuple[Any, ...], size: int) -> int:
    return {"all": size, "window": entry[-1], "strided": entry[-1]}[entry[0]]


def _fitted(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A value broadcast to the shape of x[index]."""
    found = typeof(value).shape
    while len(found) > len(shape) and found[0] == 1:
        value = structure.squeeze(value, dimensions=(0,))
        found = found[1:]
    offset = len(shape) - len(found)
    if offset < 0 or any(s not in (1, shape[offset + k]) for k, s in enumerate(found)):
        raise ValueError(
            f"at[].{name}: Incompatible shapes for broadcasting: a value of shape {found} does not fit the indexed "
            f"part, of shape {shape}. Reshape the value, or index other entries."
        )
    return promotion.spread(value, shape)


@program("plan", "name", "how")
def _update(x: Any, given: list[Any], value: Any, plan: _Plan, name: str, how: _How) -> Any:
    """`x` with a value put in, added, ... at the places of a plan."""
    x, value = _same_kind(name, x, value)
    found = typeof(x).shape
    scatter, combine = _UPDATES[name]
    block = promotion.common_shape("indexing", [typeof(i).shape for i in given])
    value = _fitted(name, value, _result_shape(found, plan, block))
    at = 0
    new = []
    for item in plan.layout:
        if item[0] == "new":
            new.append(at)
        at += len(block) if item[0] == "arrays" else 1
    value = structure.squeeze(value, dimensions=tuple(new)) if new else value
    if not typeof(value).size:
        return x
    if not given and all(
        e[0] in ("all", "window") or e[0] == "int" and 0 <= e[1] < n for e, n in zip(plan.entries, found, strict=True)
    ):
        starts = [family.scalar(e[1] if e[0] in ("window", "int") else 0, _INT) for e in plan.entries]
        return _written(x, value, starts, [e[0] == "int" for e in plan.entries], combine)
    return _scattered(x, given, value, plan, block, scatter, how)


def _written(x: Any, value: Any, starts: list[Any], dropped: list[bool], combine: Any) -> Any:
    """`x` with a block written or combined at a position known to lie inside."""
    axes = tuple([d for d, drop in enumerate(dropped) if drop])
    value = structure.expand_dims(value, axes)
    if combine is not None:
        old = ops.dynamic_slice(x, *starts, slice_sizes=typeof(value).shape)
        value = combine(old, value)
    return ops.dynamic_update_slice(x, value, *starts) if starts else value


def _scattered(
    x: Any, given: list[Any], value: Any, plan: _Plan, block: tuple[int, ...], scatter: Any, how: _How
) -> Any:
    # The axes of the indices stand in the order of the result: those of the index arrays, and one for each slice with a
    # step. Other slices are windows, with their start as one more index where it is not 0.
    found = typeof(x).shape
    outer: list[int] = []
    windows: list[int] = []
    stepped: dict[int, int] = {}
    first_of_block = 0
    at = 0
    for item in plan.layout:
        if item[0] == "arrays":
            first_of_block = len(outer)
            outer += block
            at += len(block)
        elif item[0] == "axis":
            entry = plan.entries[item[1]]
            if entry[0] == "strided":
                stepped[item[1]] = len(outer)
                outer.append(entry[3])
            else:
                windows.append(at)
            at += 1
    indices: list[Any] = []
    moved: list[int] = []
    inserted: list[int] = []
    for d, entry in enumerate(plan.entries):
        kind = entry[0]
        if kind == "all" or kind == "window" and entry[1] == 0:
            continue
        moved.append(d)
        if kind == "array":
            i = given[entry[1]]
            i = wrapped(i, found[d]) if how.wrap else i
            dims = tuple(range(first_of_block + len(block) - typeof(i).ndim, first_of_block + len(block)))
        elif kind == "strided":
            _, start, step, length = entry
            i, dims = np.arange(start, start + step * length, step, dtype=_INT)[:length], (stepped[d],)
        else:
            i, dims = np.asarray(entry[1], _INT), ()
        if kind != "window":
            inserted.append(d)
        indices.append((i, dims))
    vectors = _spread_vectors(indices, tuple(outer))
    numbers = ops.ScatterDimensionNumbers(tuple(windows), tuple(inserted), tuple(moved))
    only_static = not given
    return scatter(
        x,
        vectors,
        value,
        dimension_numbers=numbers,
        indices_are_sorted=how.is_sorted,
        unique_indices=how.unique or only_static,
        mode=how.mode,
    )


def _spread_vectors(indices: Sequence[tuple[Any, tuple[int, ...]]], outer: tuple[int, ...]) -> Any:
    kinds = {typeof(i).dtype for i, _ in indices}
    dtype = next(iter(kinds)) if len(kinds) == 1 else np.dtype("int64") if np.dtype("int64") in kinds else _INT
    columns = []
    for i, dims in indices:
        i = promotion.as_dtype(i, dtype)
        columns.append(ew.broadcast_in_dim(i, shape=(*outer, 1), broadcast_dimensions=dims, sharding=None))
    if not columns:
        return np.zeros((*outer, 0), _INT)
    return columns[0] if len(columns) == 1 else structure.concatenate(*columns, dimension=len(outer))


def _same_kind(name: str, x: Any, value: Any) -> tuple[Any, Any]:
    """The array and the value in the array's dtype."""
    x, value = promotion.array(f"at[].{name}", x), promotion.checked(f"at[].{name}", value)
    dtype = typeof(x).dtype
    if dtypes.is_extended(dtype):
        return x, value
    kind, weak, _ = promotion.described(f"at[].{name}", value)
    joined, _ = dtypes.promote(dtype, typeof(x).weak_type, kind, weak)
    if joined != dtype and dtypes.is_complex(kind) and not dtypes.is_complex(dtype):
        raise TypeError(
            f"at[].{name}: a complex value does not fit an array of {dtype.name}. Take its real part, or convert the "
            "array first."
        )
    if value.__class__ is int and dtypes.is_integer(dtype) and not promotion.fits(value, dtype):
        raise OverflowError(
            f"at[].{name}: Python integer {value} out of bounds for {dtype.name}. Convert the array first."
        )
    return x, promotion.as_dtype(value, dtype)


# x.at[int or window].set(value), outside transforms: positions are operands.
@program("sizes", "dropped", "new", "name")
def _write_window(
    x: Any, starts: tuple[Any, ...], value: Any, sizes: tuple[int, ...], dropped: Any, new: Any, name: str
) -> Any:
    x, value = _same_kind(name, x, value)
    found = typeof(x).shape
    given = iter(starts)
    zero = family.scalar(0, _INT)
    places = [promotion.as_dtype(next(given), _INT) if s != n else zero for s, n in zip(sizes, found, strict=True)]
    kept = [s for d, s in enumerate(sizes) if d not in dropped]
    for d in new:
        kept.insert(d, 1)
    value = _fitted(name, value, tuple(kept))
    value = structure.squeeze(value, dimensions=new) if new else value
    return _written(x, value, places, [d in dropped for d in range(len(sizes))], _UPDATES[name][1])


class At:
    """`x.at`: index it, then call a method, to get a changed copy of `x`.

    >>> from morphax import numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.0).tolist()
    [0.0, 5.0, 0.0]
    """

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> "Place":
        return Place(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class Place:
    """`x.at[index]`: what to do there. Each method returns a new array.

    Entries outside the array: by default reading gives the nearest entry and writing skips them; `mode` is "clip",
    "drop" or "fill" (NaN, or `fill_value`), or "promise_in_bounds". Static positions outside are an IndexError unless a
    mode is given.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"Place({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The entries, as x[index].

        >>> from morphax import numpy as jnp
        >>> jnp.arange(3).at[jnp.array([5])].get(mode="fill", fill_value=-1).tolist()
        [-1]
        """
        creation._no_sharding("at[].get", out_sharding)
        x = self.array
        if mode is None and fill_value is None and wrap_negative_indices and not (indices_are_sorted or unique_indices):
            return getitem(x, self.index)
        if mode is None:
            chosen = Mode.FILL_OR_DROP if fill_value is not None else Mode.PROMISE_IN_BOUNDS
        else:
            chosen = Mode.from_any(mode)
        how = _How(chosen, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)
        plan, given = _read("at[].get", x.aval.shape, self.index, mode is None)
        plan, given = _loose(plan, given, x.aval.shape)
        return _take(x, given, plan=plan, how=how)

    def set(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the entries replaced.

        >>> from morphax import numpy as jnp
        >>> jnp.zeros(3).at[jnp.array([0, 2])].set(1.0).tolist()
        [1.0, 0.0, 1.0]
        """
        return self._changed(
            "set", values, out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )

    def add(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the values added; those at repeated places add up.

        >>> from morphax import numpy as jnp
        >>> jnp.zeros(2).at[jnp.array([0, 0])].add(1.0).tolist()
        [2.0, 0.0]
        """
        return self._changed(
            "add", values, out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )

    def subtract(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the values subtracted.

        >>> from morphax import numpy as jnp
        >>> jnp.zeros(2).at[0].subtract(1.0).tolist()
        [-1.0, 0.0]
        """
        return self._changed(
            "subtract", values, out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )

    def multiply(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the entries multiplied.

        >>> from morphax import numpy as jnp
        >>> jnp.ones(2).at[0].multiply(3.0).tolist()
        [3.0, 1.0]
        """
        return self._changed(
            "multiply", values, out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )

    mul = multiply

    def divide(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the entries divided.

        >>> from morphax import numpy as jnp
        >>> jnp.ones(2).at[0].divide(4.0).tolist()
        [0.25, 1.0]
        """
        ones = creation.ones_like(self.array)
        divisor = Place(ones, self.index).multiply(
            values,
            out_sharding=out_sharding,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=wrap_negative_indices,
        )
        return creation.astype(ufuncs.divide(self.array, divisor), self.array.dtype)

    def power(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the entries raised to a power.

        >>> from morphax import numpy as jnp
        >>> jnp.full(2, 3.0).at[0].power(2).tolist()
        [9.0, 3.0]
        """
        exponent = Place(creation.ones_like(self.array), self.index).multiply(
            values,
            out_sharding=out_sharding,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=wrap_negative_indices,
        )
        return ufuncs.power(self.array, exponent)

    def min(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the values where they are lower.

        >>> from morphax import numpy as jnp
        >>> jnp.ones(2).at[0].min(-1.0).tolist()
        [-1.0, 1.0]
        """
        return self._changed(
            "min", values, out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )

    def max(
        self,
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with the values where they are higher.

        >>> from morphax import numpy as jnp
        >>> jnp.ones(2).at[0].max(2.0).tolist()
        [2.0, 1.0]
        """
        return self._changed(
            "max", values, out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """A copy with `func` applied to the entries, once for each place.

        >>> from morphax import numpy as jnp
        >>> jnp.ones(2).at[0].apply(jnp.negative).tolist()
        [-1.0, 1.0]
        """
        creation._no_sharding("at[].apply", out_sharding)
        old = self.get(mode="clip" if mode is None else mode, wrap_negative_indices=wrap_negative_indices)
        return self.set(
            func(old),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=wrap_negative_indices,
        )

    def _changed(
        self, name: str, values: Any, out_sharding: Any, is_sorted: bool, unique: bool, mode: Any, wrap: bool
    ) -> Any:
        creation._no_sharding(f"at[].{name}", out_sharding)
        x = self.array
        values = creation.array(values) if isinstance(values, (list, tuple)) else values
        shape = x.aval.shape
        if _is_full_mask(self.index, shape):
            masked = _by_mask(name, x, self.index, values)
            if masked is not None:
                return masked
        plan, given = _read(f"at[].{name}", shape, self.index, mode is None)
        eager = current.trace is _outside
        if eager and not given and mode is None and not dtypes.is_extended(x.aval.dtype):
            window = _as_window(plan, shape)
            if window is not None:
                starts, sizes, dropped, new = window
                return _write_window.compiled(x, starts, values, sizes=sizes, dropped=dropped, new=new, name=name)
        if eager and mode is None:
            given = [_eager_index(f"at[].{name}", shape, d, i) for d, i in _with_axes(plan, given)]
        how = _How(Mode.from_any(mode), None, is_sorted, unique, wrap)
        return _update(x, given, values, plan=plan, name=name, how=how)


def _loose(plan: _Plan, given: list[Any], shape: tuple[int, ...]) -> tuple[_Plan, list[Any]]:
    """Static positions outside the array as index arrays, which modes apply to."""
    if all(entry[0] != "int" or 0 <= entry[1] < n for entry, n in zip(plan.entries, shape, strict=True)):
        return plan, given
    entries = []
    given = list(given)
    for entry in plan.entries:
        if entry[0] == "int":
            entries.append(("array", len(given)))
            given.append(np.asarray(entry[1], _INT))
        else:
            entries.append(entry)
    return _Plan(tuple(entries), (*plan.layout, ("arrays",))), given


def _as_window(plan: _Plan, shape: tuple[int, ...]) -> Any:
    """(starts, sizes, dropped axes, new axes) of a plan without arrays and steps; None for others."""
    starts, sizes, dropped = [], [], []
    for d, (entry, size) in enumerate(zip(plan.entries, shape, strict=True)):
        if entry[0] == "strided":
            return None
        length = size if entry[0] == "all" else 1 if entry[0] == "int" else entry[2]
        sizes.append(length)
        if length != size:
            starts.append(entry[1])
        if entry[0] == "int":
            dropped.append(d)
    if 0 in sizes:
        return None
    return (
        tuple(starts),
        tuple(sizes),
        tuple(dropped),
        tuple([k for k, item in enumerate(plan.layout) if item[0] == "new"]),
    )


def _is_full_mask(index: Any, shape: tuple[int, ...]) -> bool:
    """Whether an index is one mask over the leading axes of the array."""
    try:
        return index.dtype == np.bool_ and index.ndim > 0 and index.shape == shape[: index.ndim]
    except AttributeError:
        return False


@program("name")
def _by_mask(name: str, x: Any, mask: Any, value: Any) -> Any:
    """An update by a mask where no position has to be known: a scalar value. None for others."""
    if promotion.described(f"at[].{name}", value)[2]:
        return None
    x, value = _same_kind(name, x, value)
    combine = _UPDATES[name][1]
    shape = typeof(x).shape
    mask = promotion.array("at", mask)
    dims = tuple(range(typeof(mask).ndim))
    mask = (
        ew.broadcast_in_dim(mask, shape=shape, broadcast_dimensions=dims, sharding=None)
        if typeof(mask).shape != shape
        else mask
    )
    return ew.select_n(mask, x, value if combine is None else combine(x, value))


# ---- functions -------------------------------------------------------------------------------------------------------

_TAKE_MODES = {"raise": None, "wrap": "wrap", "clip": Mode.CLIP, "fill": Mode.FILL_OR_DROP, None: None}


@program("axis", "mode", "unique_indices", "indices_are_sorted", "fill_value")
def _take_along_one(
    a: Any, indices: Any, axis: int | None, mode: Any, unique_indices: bool, indices_are_sorted: bool, fill_value: Any
) -> Any:
    a, indices = promotion.array("take", a), promotion.array("take", indices)
    if axis is None:
        a, axis = structure.reshape_to(a, (typeof(a).size,)), 0
    found = typeof(a).shape
    axis = promotion.axis_of("take", axis, len(found))
    if not dtypes.is_integer(typeof(indices).dtype):
        raise TypeError(
            f"take: indices must be integers; they are {typeof(indices)}. Convert them: indices.astype(int)."
        )
    wrap = mode != "clip"
    if mode == "wrap":
        indices = ufuncs.remainder.__wrapped__(indices, np.asarray(found[axis], typeof(indices).dtype))
    chosen = Mode.PROMISE_IN_BOUNDS if mode == "wrap" else Mode.FILL_OR_DROP if mode is None else Mode.from_any(mode)
    entries = tuple([("array", 0) if d == axis else ("all",) for d in range(len(found))])
    layout = tuple([("arrays",) if d == axis else ("axis", d) for d in range(len(found))])
    how = _How(chosen, fill_value, indices_are_sorted, unique_indices, wrap)
    return _take.__wrapped__(a, [indices], plan=_Plan(entries, layout), how=how)


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Entries of `a` at positions along an axis, or in the flat array.

    Args:
        a: array.
        indices: integers of any shape; negative ones count from the end.
        axis: axis, or None.
        out: not supported.
        mode: "fill" (the default: NaN, or `fill_value`, outside), "clip", "wrap" or "promise_in_bounds".
        unique_indices: promise that no position is given twice.
        indices_are_sorted: promise that positions rise.
        fill_value: value outside.

    >>> from morphax import numpy as jnp
    >>> jnp.take(jnp.array([5, 6, 7]), jnp.array([2, 0])).tolist()
    [7, 5]
    """
    ufuncs.no_out("take", out)
    if mode == "raise":
        raise NotImplementedError(
            "take: mode='raise' is not supported, since programs do not raise. Use 'fill' or 'clip'."
        )
    if isinstance(indices, (list, tuple)):
        indices = creation.array(indices)
    if isinstance(a, (list, tuple)):
        raise promotion.refuse("take", a)
    return _take_along_one(
        a,
        indices,
        axis=axis,
        mode=mode,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        fill_value=fill_value,
    )


def _in_step(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
    arr, indices = promotion.array(name, arr), promotion.array(name, indices)
    if not dtypes.is_integer(typeof(indices).dtype):
        raise TypeError(
            f"{name}: indices must be integers; they are {typeof(indices)}. Convert them: indices.astype(int)."
        )
    if axis is None:
        arr, axis = structure.reshape_to(arr, (typeof(arr).size,)), 0
    left, right = typeof(arr).shape, typeof(indices).shape
    if len(left) != len(right):
        raise ValueError(
            f"{name}: indices and arr must have the same number of dimensions; shapes are {right} and {left}. Add axes "
            "with indices[..., None]."
        )
    axis = promotion.axis_of(name, axis, len(left))
    outer = promotion.common_shape(name, [s[:axis] + (1,) + s[axis + 1 :] for s in (left, right)])
    arr = promotion.spread(arr, (*outer[:axis], left[axis], *outer[axis + 1 :]))
    indices = promotion.spread(indices, (*outer[:axis], right[axis], *outer[axis + 1 :]))
    return arr, indices, axis


@program("axis", "mode", "fill_value", "wrap_negative_indices")
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """Entries of `arr` at positions along an axis, the other axes in step.

    >>> from morphax import numpy as jnp
    >>> jnp.take_along_axis(jnp.array([[5, 6], [7, 8]]), jnp.array([[1], [0]]), axis=1).tolist()
    [[6], [7]]
    """
    arr, indices, axis = _in_step("take_along_axis", arr, indices, axis)
    shape = typeof(arr).shape
    if wrap_negative_indices or wrap_negative_indices is None:
        indices = wrapped(indices, shape[axis])
    others = tuple([d for d in range(len(shape)) if d != axis])
    if not shape[axis] or not typeof(indices).size:
        return ew.full(typeof(indices).shape, np.zeros((), typeof(arr).dtype))
    vectors = structure.expand_dims(indices, (len(shape),))
    numbers = ops.GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return ops.gather(
        arr,
        vectors,
        dimension_numbers=numbers,
        slice_sizes=(1,) * len(shape),
        mode=Mode.from_any(mode),
        fill_value=fill_value,
    )


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: str | None = None
) -> Any:
    """`arr` with values put at positions along an axis, the other axes in step; pass inplace=False.

    >>> from morphax import numpy as jnp
    >>> x = jnp.zeros((2, 2))
    >>> jnp.put_along_axis(x, jnp.array([[1], [0]]), 5.0, 1, inplace=False).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    _not_in_place("put_along_axis", inplace)
    original = promotion.array("put_along_axis", arr)
    flat, indices, axis = _in_step("put_along_axis", arr, indices, axis)
    shape = typeof(indices).shape
    grid = [structure.iota_along(_INT, shape, d) for d in range(len(shape))]
    grid[axis] = indices
    out = Place(creation.asarray(flat), tuple(grid)).set(values, mode=mode)
    return structure.reshape_to(out, typeof(original).shape)


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """`a` with values put at positions of the flat array; pass inplace=False.

    >>> from morphax import numpy as jnp
    >>> jnp.put(jnp.zeros(3), jnp.array([1]), 5.0, inplace=False).tolist()
    [0.0, 5.0, 0.0]
    """
    _not_in_place("put", inplace)
    a = creation.asarray(a)
    ind = shapes.ravel(creation.asarray(ind))
    v = shapes.ravel(creation.asarray(v))
    if not ind.size or not v.size:
        return a
    v = shapes.tile(v, -(-ind.size // v.size))[: ind.size]
    chosen = {"clip": "clip", "wrap": None, None: None}.get(mode, mode)
    if mode == "wrap":
        ind = ufuncs.remainder(ind, a.size)
    flat = shapes.ravel(a)
    return shapes.reshape(Place(flat, ind).set(v, mode=chosen), a.shape)


def _not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{name}: arrays do not change. Pass inplace=False and use the result.")
