"""x.at[...]: changed copies of arrays, and the functions that are made of them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.numpy import creation, indexing, promotion, shapes, ufuncs
from morphax.numpy.indexing import How, Mode, Plan
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops import indexing as ops
from morphax.runtime.jit import holds, program
from morphax.support import dtypes
from morphax.support.tracebacks import api_boundary

typeof = avals.operand_type
_outside = base()
_INT = np.dtype("int32")
_LITERALS = frozenset((int, float, complex))

# ---- changes ---------------------------------------------------------------------------------------------------------


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


def _result_shape(shape: tuple[int, ...], plan: Plan, block: tuple[int, ...]) -> tuple[int, ...]:
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


@program("plan", "name", "how", literals=True)
def _update(x: Any, given: list[Any], value: Any, plan: Plan, name: str, how: How) -> Any:
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


def _scattered(x: Any, given: list[Any], value: Any, plan: Plan, block: tuple[int, ...], scatter: Any, how: How) -> Any:
    # The axes of the indices stand in the order of the result: those of the index arrays, and one for each slice with a
    # step. Other slices are windows, with their start as one more index where it is not 0.
    outer: list[int] = []
    windows: list[int] = []
    places: dict[Any, int] = {}  # where the axes of index arrays, and those of slices with steps, begin
    at = 0
    for item in plan.layout:
        entry = plan.entries[item[1]] if item[0] == "axis" else item
        if entry[0] == "arrays":
            places["arrays"] = len(outer)
            outer += block
            at += len(block)
        elif entry[0] != "new":
            if entry[0] == "strided":
                places[item[1]] = len(outer)
                outer.append(entry[3])
            else:
                windows.append(at)
            at += 1
    indices, moved, inserted = _positions(typeof(x).shape, given, plan, places, len(block), how.wrap)
    return scatter(
        x,
        _spread_vectors(indices, tuple(outer)),
        value,
        dimension_numbers=ops.ScatterDimensionNumbers(tuple(windows), tuple(inserted), tuple(moved)),
        indices_are_sorted=how.is_sorted,
        unique_indices=how.unique or not given,
        mode=how.mode,
    )


def _positions(
    shape: tuple[int, ...], given: list[Any], plan: Plan, places: dict[Any, int], width: int, wrap: bool
) -> tuple[list[tuple[Any, tuple[int, ...]]], list[int], list[int]]:
    """Index arrays with the axes that they run along, the axes of the array that they move along, and those of these
    that the updates do not have."""
    indices: list[Any] = []
    moved: list[int] = []
    inserted: list[int] = []
    for d, entry in enumerate(plan.entries):
        kind = entry[0]
        if kind == "all" or kind == "window" and entry[1] == 0:
            continue
        dims: tuple[int, ...] = ()
        if kind == "array":
            index = indexing.wrapped(given[entry[1]], shape[d]) if wrap else given[entry[1]]
            stop = places["arrays"] + width
            dims = tuple(range(stop - typeof(index).ndim, stop))
        elif kind == "strided":
            _, start, step, length = entry
            index, dims = np.arange(start, start + step * length, step, dtype=_INT)[:length], (places[d],)
        else:
            index = np.asarray(entry[1], _INT)
        moved.append(d)
        if kind != "window":
            inserted.append(d)
        indices.append((index, dims))
    return indices, moved, inserted


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
@program("window", "name")
def _write_window(x: Any, starts: tuple[Any, ...], value: Any, window: indexing.Window, name: str) -> Any:
    x, value = _same_kind(name, x, value)
    found = typeof(x).shape
    sizes, dropped = window.sizes, window.dropped
    given = iter(starts)
    zero = family.scalar(0, _INT)
    places = [promotion.as_dtype(next(given), _INT) if s != n else zero for s, n in zip(sizes, found, strict=True)]
    kept = [s for d, s in enumerate(sizes) if d not in dropped]
    for d in window.new:
        kept.insert(d, 1)
    value = _fitted(name, value, tuple(kept))
    value = structure.squeeze(value, dimensions=window.new) if window.new else value
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


def _change(
    name: str, done: str, example: str, shown: str, combine: Callable[[Any, Any], Any] | None = None
) -> Callable[..., Any]:
    """A method of `Place`: a copy of the array with the entries changed.

    With `combine` the array and the values, spread over ones of its shape, are its operands.
    """

    def change(
        self: "Place",
        values: Any,
        *,
        out_sharding: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        options = (out_sharding, indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if combine is None:
            return self._changed(name, values, *options)
        spread = Place(creation.ones_like(self.array), self.index)._changed("multiply", values, *options)
        return combine(self.array, spread)

    change.__name__, change.__qualname__ = name, f"Place.{name}"
    change.__doc__ = f"""A copy with the entries {done}.

        >>> from morphax import numpy as jnp
        >>> {example}
        {shown}
        """
    return api_boundary(change)


_REPEATED = "jnp.zeros(2).at[jnp.array([0, 0])].add(1.0).tolist()"


def _divided(x: Any, divisor: Any) -> Any:
    return creation.astype(ufuncs.divide(x, divisor), x.dtype)


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

    @api_boundary
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
            return indexing.getitem(x, self.index)
        if mode is None:
            chosen = Mode.FILL_OR_DROP if fill_value is not None else Mode.PROMISE_IN_BOUNDS
        else:
            chosen = Mode.from_any(mode)
        how = How(chosen, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)
        index = self.index if wrap_negative_indices else _unwrapped(self.index)
        plan, given = indexing.read("at[].get", x.aval.shape, index, mode is None)
        plan, given = _loose(plan, given, x.aval.shape)
        return indexing._take(x, given, plan=plan, how=how)

    set = _change("set", "replaced", "jnp.zeros(2).at[0].set(5.0).tolist()", "[5.0, 0.0]")
    add = _change("add", "added to; values at repeated places add up", _REPEATED, "[2.0, 0.0]")
    subtract = _change("subtract", "subtracted from", "jnp.zeros(2).at[0].subtract(1.0).tolist()", "[-1.0, 0.0]")
    multiply = mul = _change("multiply", "multiplied", "jnp.ones(2).at[0].multiply(3.0).tolist()", "[3.0, 1.0]")
    divide = _change("divide", "divided", "jnp.ones(2).at[0].divide(4.0).tolist()", "[0.25, 1.0]", _divided)
    power = _change(
        "power", "raised to a power", "jnp.full(2, 3.0).at[0].power(2).tolist()", "[9.0, 3.0]", ufuncs.power
    )
    min = _change("min", "lowered to the values", "jnp.ones(2).at[0].min(-1.0).tolist()", "[-1.0, 1.0]")
    max = _change("max", "raised to the values", "jnp.ones(2).at[0].max(2.0).tolist()", "[2.0, 1.0]")

    @api_boundary
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
        index = self.index if wrap else _unwrapped(self.index)
        plan, given = indexing.read(f"at[].{name}", shape, index, mode is None)
        if current.trace is _outside and mode is None and wrap:
            unchecked = values.__class__ not in _LITERALS or holds(x, values)
            if (
                unchecked
                and plan.window is not None
                and 0 not in plan.window[1].sizes
                and not dtypes.is_extended(x.aval.dtype)
            ):
                return _write_window.compiled(x, plan.window[0], values, plan.window[1], name)
            given = [indexing.checked_index(f"at[].{name}", shape, d, i) for d, i in indexing.with_axes(plan, given)]
        how = _how(Mode.from_any(mode), is_sorted, unique, wrap)
        return _update(x, given, values, plan, name, how)


@functools.lru_cache(256)
def _how(mode: Mode, is_sorted: bool, unique: bool, wrap: bool) -> How:
    return How(mode, None, is_sorted, unique, wrap)


def _unwrapped(index: Any) -> Any:
    """An index whose negative ints are arrays, so that they count as outside."""
    parts = index if isinstance(index, tuple) else (index,)
    return tuple([np.asarray(p, _INT) if p.__class__ is int and p < 0 else p for p in parts])


def _loose(plan: Plan, given: list[Any], shape: tuple[int, ...]) -> tuple[Plan, list[Any]]:
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
    return indexing.plan_of(shape, entries, (*plan.layout, ("arrays",))), given


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
    flat, indices, axis = indexing.in_step("put_along_axis", arr, indices, axis)
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
