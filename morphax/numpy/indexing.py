"""x[...] and x.at[...]: NumPy's indexing on arrays that do not change.

An index is read in three steps. `Plan` says, from shapes alone, what each entry does: keep, slice or drop an axis, add
one, or take entries by an index array. What is static in it becomes a hashable key, and what is not (positions that
differ from call to call, index arrays) becomes operands, so that one compiled program serves x[0], x[1], ....
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.numpy import creation, promotion, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops import indexing as ops
from morphax.runtime import array as arrays
from morphax.runtime import eager
from morphax.runtime.jit import program
from morphax.support import config, dtypes, errors, tracebacks

typeof = avals.operand_type
Mode = ops.GatherScatterMode
_outside = base()
_INT = np.dtype("int32")

# ---- entries of an index ---------------------------------------------------------------------------------------------


class Plan:
    """What an index does, static parts only. Equal plans are one object, so that programs are found by identity.

    `entries` has one item per axis of the array, in order: ("all",), ("window", start, size), ("strided", start, step,
    size), ("int", position) or ("array", k) for the k-th index array. `layout` has one item per axis or group of axes
    of the result: ("new",), ("axis", d), or ("arrays",) for the broadcast axes of all index arrays. `window` is what a
    plan without arrays and steps reads: the starts of the axes that it cuts, and a `Window`.
    """

    __slots__ = ("entries", "layout", "window")

    def __init__(self, entries: tuple[tuple[Any, ...], ...], layout: tuple[tuple[Any, ...], ...], window: Any):
        self.entries = entries
        self.layout = layout
        self.window = window


class Window:
    """A block of fixed sizes: which axes the result drops, and where it has new ones. Equal ones are one object."""

    __slots__ = ("dropped", "new", "sizes")

    def __init__(self, sizes: tuple[int, ...], dropped: tuple[int, ...], new: tuple[int, ...]):
        self.sizes = sizes
        self.dropped = dropped
        self.new = new


_KEPT = 4096
_plans: dict[Any, Plan] = {}
_windows: dict[Any, Window] = {}
_read_before: dict[Any, Plan] = {}


def _kept(table: dict[Any, Any], key: Any, make: Callable[..., Any], *args: Any) -> Any:
    """The entry of a bounded table, made if there is none."""
    found = table.get(key)
    if found is None:
        if len(table) >= _KEPT:
            table.clear()
        found = table[key] = make(*args)
    return found


def plan_of(shape: tuple[int, ...], entries: Sequence[Any], layout: Sequence[Any]) -> Plan:
    """The plan with these entries and this layout for arrays of that shape."""
    entries, layout = tuple(entries), tuple(layout)
    return _kept(_plans, (shape, entries, layout), lambda: Plan(entries, layout, _as_window(entries, layout, shape)))


def window_of(sizes: tuple[int, ...], dropped: tuple[int, ...], new: tuple[int, ...]) -> Window:
    """The window with these fields."""
    return _kept(_windows, (sizes, dropped, new), Window, sizes, dropped, new)


def _as_window(entries: Any, layout: Any, shape: tuple[int, ...]) -> Any:
    """(starts, window) of a plan without arrays and steps, all inside; None for others."""
    starts, sizes, dropped = [], [], []
    for d, (entry, size) in enumerate(zip(entries, shape, strict=True)):
        tag = entry[0]
        if tag in ("strided", "array") or tag == "int" and not 0 <= entry[1] < size:
            return None
        length = size if tag == "all" else 1 if tag == "int" else entry[2]
        sizes.append(length)
        if length != size:
            starts.append(entry[1])
        if tag == "int":
            dropped.append(d)
    new = tuple([k for k, item in enumerate(layout) if item[0] == "new"])
    return tuple(starts), window_of(tuple(sizes), tuple(dropped), new)


_INT_OR_NONE = (int, type(None))


def _key_of(index: Any) -> tuple[Any, list[Any]] | None:
    """A hashable form of an index of ints, slices, None, ... and integer arrays, and the arrays; None for others."""
    key: list[Any] = []
    given: list[Any] = []
    ints = False
    for part in index if index.__class__ is tuple else (index,):
        kind = part.__class__
        if kind is int:
            ints = True
            key.append(part)
        elif kind is slice:
            start, stop, step = part.start, part.stop, part.step
            for bound in (start, stop, step):
                if bound.__class__ not in _INT_OR_NONE:
                    return None
            key.append((start, stop, step))
        elif part is None or part is Ellipsis:
            key.append(part)
        else:
            try:
                dtype = part.aval.dtype
            except AttributeError:
                return None
            if not dtypes.is_integer(dtype):
                return None
            key.append("array")
            given.append(part)
    return None if ints and given else (tuple(key), given)


def read(name: str, shape: tuple[int, ...], index: Any, strict: bool) -> tuple[Plan, list[Any]]:
    """Plan and index arrays of an index into an array of that shape. Remembered: 5 us less than reading anew.

    Args:
        name: the operation, for messages.
        shape: shape of the array.
        index: what stands in the brackets.
        strict: whether static positions must lie inside.
    """
    known = _key_of(index)
    if known is None:
        return _read(name, shape, index, strict)
    key = (shape, known[0], strict, config.bounds.value)
    plan = _read_before.get(key)
    if plan is None:
        if len(_read_before) >= _KEPT:
            _read_before.clear()
        plan = _read_before[key] = _read(name, shape, index, strict)[0]
    return plan, known[1]


def _read(name: str, shape: tuple[int, ...], index: Any, strict: bool) -> tuple[Plan, list[Any]]:
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
    return plan_of(shape, entries, layout), given


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
        if isinstance(part, (list, tuple)) and isinstance(index, tuple):
            part = _listed(name, part, parts)
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


def _listed(name: str, part: Any, parts: Sequence[Any]) -> Any:
    """A list or tuple inside a tuple index as the array that it stands for."""
    try:
        array = np.asarray(part)
    except errors.TracerArrayConversionError:
        return creation.asarray(part)  # entries that are traced are stacked
    if array.dtype == object:
        raise ValueError(
            f"{name}: {part!r:.60} in {_shown(parts)} is no array of ints or bools. Give one axis its own entry of the "
            "index: x[i, j], x[i, None]."
        )
    return array if array.size else array.astype(_INT)


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
        f"{name}: index {position} is out of bounds for axis {axis} with size {size}. Give one in [{-size}, {size}), "
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
            f"{name}: Array slice indices must have static start/stop/step to be used with NumPy indexing syntax. "
            f"Found {part}. Use lax.dynamic_slice for a start that is traced."
        )
    return TypeError(f"{name}: slice indices must be integers or None; found {part}.")


# ---- reading ---------------------------------------------------------------------------------------------------------


def _static(x: Any, plan: Plan) -> Any:
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


def _new_axes(x: Any, plan: Plan, width: int) -> Any:
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


class How(NamedTuple):
    """How entries outside the array are met, and what is promised of the indices."""

    mode: Any = Mode.PROMISE_IN_BOUNDS
    fill_value: Any = None
    is_sorted: bool = False
    unique: bool = False
    wrap: bool = True


PLAIN = How()


@program("plan", "how")
def _take(x: Any, given: list[Any], plan: Plan, how: How) -> Any:
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
    kinds: set[Any] = {typeof(i).dtype for i in given}
    dtype = next(iter(kinds)) if len(kinds) == 1 else _INT
    dtype = dtype if dtype.itemsize >= 4 else _INT
    starts = [promotion.literal(0, dtype)] * len(found)
    for i, d in zip(given, axes, strict=True):
        starts[d] = promotion.as_dtype(i, dtype)
    sizes = tuple([1 if d in axes else s for d, s in enumerate(found)])
    return structure.squeeze(ops.dynamic_slice(x, *starts, slice_sizes=sizes), dimensions=tuple(axes))


def _of_nothing(x: Any, plan: Plan, axes: Sequence[int], shape: tuple[int, ...], how: How) -> Any:
    found = typeof(x).shape
    sizes: list[int] = []
    rest = iter([s for d, s in enumerate(found) if d not in axes])
    for item in plan.layout:
        sizes += {"new": [1], "arrays": list(shape), "axis": []}[item[0]] if item[0] != "axis" else [next(rest)]
    if 0 not in sizes and how.mode is not Mode.FILL_OR_DROP:
        raise IndexError(f"indexing: an axis of shape {found} is empty, so there is nothing to take from it.")
    value = ops.fill_of(typeof(x).dtype) if how.fill_value is None else how.fill_value
    return ew.full(tuple(sizes), np.asarray(value, typeof(x).dtype))


# Plans of ints and slices of step 1 read windows from positions that are operands: one program for x[0], x[1], ....


@program("window")
def _take_window(x: Any, starts: tuple[Any, ...], window: Window) -> Any:
    found = typeof(x).shape
    sizes = window.sizes
    given = iter(starts)
    zero = promotion.literal(0, _INT)
    places = [promotion.as_dtype(next(given), _INT) if s != n else zero for s, n in zip(sizes, found, strict=True)]
    out = ops.dynamic_slice(x, *places, slice_sizes=sizes) if sizes != found else x
    out = structure.squeeze(out, dimensions=window.dropped) if window.dropped else out
    return structure.expand_dims(out, window.new) if window.new else out


_compiled_window = _take_window.compiled
_first_of: dict[tuple[int, ...], Window] = {}


def getitem(self: Any, idx: Any, /) -> Any:
    """self[idx]."""
    try:
        x, index = self, idx
        aval = x.aval
        shape = aval.shape
        if current.trace is not _outside or aval.dtype.__class__ is dtypes.KeyDType:
            plan, given = read("getitem", shape, index, True)
            return _take.__wrapped__(x, given, plan, PLAIN)
        if index.__class__ is int and shape and shape[0] > 1:  # the commonest index: 1 us less than the general way
            size = shape[0]
            if -size <= index < size:
                window = _first_of.get(shape)
                if window is None:
                    window = _kept(_first_of, shape, window_of, (1, *shape[1:]), (0,), ())
                return _compiled_window(x, (index if index >= 0 else index + size,), window)
        plan, given = read("getitem", shape, index, True)
        if plan.window is not None:
            starts, window = plan.window
            if not window.dropped and not window.new and window.sizes == shape:
                return x
            return _compiled_window(x, starts, window)
        if given:
            given = [checked_index("getitem", shape, d, i) for d, i in with_axes(plan, given)]
        return _take.compiled(x, given, plan, PLAIN)
    except Exception as error:
        try:
            eager.explain(error, self)
        except RuntimeError as better:
            tracebacks.clean(better)
            raise
        raise


def with_axes(plan: Plan, given: Sequence[Any]) -> list[tuple[int, Any]]:
    """The axis that each index array is for, and the array."""
    axes = [d for d, entry in enumerate(plan.entries) if entry[0] == "array"]
    return list(zip(axes, given, strict=True))


_least, _greatest = np.minimum.reduce, np.maximum.reduce  # half the time of .min() and .max()
_CHECKED = 1 << 16  # index arrays up to this size are looked at before use: 5 us on the CPU


def checked_index(name: str, shape: tuple[int, ...], axis: int, index: Any) -> Any:
    """A concrete index array, once its entries were seen to lie inside the axis.

    Raises:
        IndexError: an entry lies outside, and config.bounds is 'raise'.
    """
    if axis >= len(shape):
        raise IndexError(f"{name}: too many indices for array: the array has {len(shape)} axes, of sizes {shape}.")
    on_host = isinstance(index, np.ndarray)
    at_hand = on_host or index.__class__ is arrays.ArrayImpl and index.device.platform == "cpu"
    if at_hand and 0 < index.size <= _CHECKED and config.bounds.value == "raise":
        values = index if on_host else index._value
        size = shape[axis]
        low, high = _least(values, axis=None), _greatest(values, axis=None)
        if low < -size or high >= size:
            wrong = low if low < -size else high
            raise IndexError(
                f"{name}: index {wrong} is out of bounds for axis {axis} with size {size}. Use "
                ".at[...].get(mode='clip') or mode='fill' for positions outside."
            )
    if on_host and index.dtype.itemsize == 8 and shape[axis] < 2**31:
        return index.astype(_INT)
    return index


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
        indices = ufuncs.remainder(indices, np.asarray(found[axis], typeof(indices).dtype))
    chosen = Mode.PROMISE_IN_BOUNDS if mode == "wrap" else Mode.FILL_OR_DROP if mode is None else Mode.from_any(mode)
    entries = tuple([("array", 0) if d == axis else ("all",) for d in range(len(found))])
    layout = tuple([("arrays",) if d == axis else ("axis", d) for d in range(len(found))])
    how = How(chosen, fill_value, indices_are_sorted, unique_indices, wrap)
    return _take.__wrapped__(a, [indices], plan=plan_of(found, entries, layout), how=how)


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


def in_step(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
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
    arr, indices, axis = in_step("take_along_axis", arr, indices, axis)
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
