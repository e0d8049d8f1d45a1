"""Dynamic slices, gathers and scatters.

A gather and a scatter of the same index map are each other's transpose. The two kinds of dimension numbers have the
same fields in the same order, and one meaning: where the window axes lie in the slices, which operand axes have no
window axis, which operand axes the index vectors move along, and which axes of operand and indices run in step.
"""

import math
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from morphax.ir import trace
from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import Eqn, Jaxpr
from morphax.ir.primitive import Primitive, Var, is_unknown
from morphax.ir.show import readable
from morphax.ops import elementwise as ew
from morphax.ops import family, reduce, structure
from morphax.ops.family import typeof
from morphax.support import dtypes

# ---- dynamic slices --------------------------------------------------------------------------------------------------


def _check_starts(name: str, x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise TypeError(
            f"{name}: an operand of shape {x.shape} needs {x.ndim} start indices and slice sizes; there are "
            f"{len(starts)} and {len(sizes)}. Give one for each axis."
        )
    for start in starts:
        if start.shape or not dtypes.is_integer(start.dtype) or start.dtype != starts[0].dtype:
            given = ", ".join(map(str, starts))
            raise TypeError(f"{name}: start indices must be integer scalars of one dtype; they are {given}.")
    if any(not 0 <= s <= n for s, n in zip(sizes, x.shape, strict=True)):
        raise TypeError(
            f"{name}: a slice of shape {tuple(sizes)} does not fit in shape {x.shape}. Make it no larger than the "
            "operand along every axis."
        )


def _dynamic_slice_type(x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    _check_starts("dynamic_slice", x, starts, slice_sizes)
    return x.update(shape=tuple(slice_sizes))


def _all_starts(low: Any, aval: Any, ins: Any, starts: Sequence[Any]) -> list[Any]:
    """Start indices, with zeros for the words of random keys."""
    index = ShapedArray((), ins[-1].dtype) if starts else ShapedArray((), np.dtype("int32"))
    return [*starts, *(low.constant(0, index) for _ in low.key_words(aval))]


def _lower_dynamic_slice(low: Any, ins: Any, outs: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    sizes = (*slice_sizes, *low.key_words(ins[0]))
    if not sizes:
        return [x]
    operands = (x, *_all_starts(low, ins[0], ins, starts))
    return low.op("stablehlo.dynamic_slice", outs, operands, {"slice_sizes": family.ints(sizes)})


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    return (dynamic_update_slice(ew.zeros(x.aval), ct, *starts), *(None for _ in starts))


def _zero_like(starts: Sequence[Any]) -> Any:
    return family.like(starts[0], 0) if starts else family.scalar(0, np.dtype("int32"))


def _index_vectors(starts: Sequence[Any], flags: Sequence[bool], size: int) -> Any:
    """Batched start indices as one array (size, number of indices)."""
    columns = [structure.batched(s, flag, size) for s, flag in zip(starts, flags, strict=True)]
    columns = [structure.expand_dims(c, (1,)) for c in columns]
    return structure.concatenate(*columns, dimension=1) if len(columns) > 1 else columns[0]


def _moving(shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Axes along which a slice can move: one that spans its axis always starts at 0."""
    return [d for d, (n, s) in enumerate(zip(shape, sizes, strict=True)) if n != s]


def _dynamic_slice_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    x, *starts = operands
    sizes = params["slice_sizes"]
    shape = typeof(x).shape[1:] if flags[0] else typeof(x).shape
    axes = _moving(shape, sizes)
    if not any(flags[1:]) or not axes:
        x = structure.batched(x, flags[0], size)
        starts = [s if not flag else _zero_like(starts) for s, flag in zip(starts, flags[1:], strict=True)]
        return [dynamic_slice(x, _zero_like(starts), *starts, slice_sizes=(size, *sizes))]
    indices = _index_vectors([starts[d] for d in axes], [flags[d + 1] for d in axes], size)
    windows = tuple(range(1, len(sizes) + 1))
    if flags[0]:
        numbers = GatherDimensionNumbers(windows, (), family.shift(axes), (0,), (0,))
        sizes = (min(size, 1), *sizes)
    else:
        numbers = GatherDimensionNumbers(windows, (), tuple(axes))
    mode = GatherScatterMode.CLIP
    return [gather(x, indices, dimension_numbers=numbers, slice_sizes=sizes, mode=mode)]


dynamic_slice = Primitive(
    "dynamic_slice",
    type=_dynamic_slice_type,
    lower=_lower_dynamic_slice,
    linear=(0,),
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
)


def _dynamic_update_slice_type(x: Any, update: Any, *starts: Any) -> Any:
    family.common_dtype("dynamic_update_slice", (x, update))
    if update.ndim != x.ndim:
        raise TypeError(
            f"dynamic_update_slice: the update has shape {update.shape} and the operand {x.shape}. Give both the same "
            "number of axes."
        )
    _check_starts("dynamic_update_slice", x, starts, update.shape)
    return family.joined("dynamic_update_slice", (x, update), x.shape, x.dtype)


def _lower_dynamic_update_slice(low: Any, ins: Any, outs: Any, x: Any, update: Any, *starts: Any) -> Any:
    if not ins[0].ndim and not low.key_words(ins[0]):
        return [update]
    return low.op("stablehlo.dynamic_update_slice", outs, (x, update, *_all_starts(low, ins[0], ins, starts)))


def _dynamic_update_slice_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> Any:
    ct_x = ct_update = None
    if is_unknown(x):
        ct_x = dynamic_update_slice(ct, ew.zeros(typeof(update)), *starts)
    if is_unknown(update):
        ct_update = dynamic_slice(ct, *starts, slice_sizes=update.aval.shape)
    return (ct_x, ct_update, *(None for _ in starts))


def _dynamic_update_slice_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    x, update, *starts = operands
    x, update = structure.batched(x, flags[0], size), structure.batched(update, flags[1], size)
    shape, sizes = typeof(x).shape[1:], typeof(update).shape[1:]
    axes = _moving(shape, sizes)
    if not any(flags[2:]) or not axes:
        starts = [s if not flag else _zero_like(starts) for s, flag in zip(starts, flags[2:], strict=True)]
        return [dynamic_update_slice(x, update, _zero_like(starts), *starts)]
    indices = _index_vectors([starts[d] for d in axes], [flags[d + 2] for d in axes], size)
    windows = tuple(range(1, len(sizes) + 1))
    numbers = ScatterDimensionNumbers(windows, (), family.shift(axes), (0,), (0,))
    mode = GatherScatterMode.CLIP
    return [scatter(x, indices, update, dimension_numbers=numbers, mode=mode, unique_indices=True)]


dynamic_update_slice = Primitive(
    "dynamic_update_slice",
    type=_dynamic_update_slice_type,
    lower=_lower_dynamic_update_slice,
    linear=(0, 1),
    transpose=_dynamic_update_slice_transpose,
    batch=_dynamic_update_slice_batch,
)


# ---- index maps ------------------------------------------------------------------------------------------------------


@readable
class GatherDimensionNumbers(NamedTuple):
    """How a gather's indices select slices, and where these go.

    Args:
        offset_dims: axes of the result that run inside a slice, rising; the others run over the indices.
        collapsed_slice_dims: operand axes, of slice size 1, that the result does not have.
        start_index_map: operand axis that each entry of an index vector (the last axis of the indices) moves along.
        operand_batching_dims: operand axes that run in step with start_indices_batching_dims, of slice size 1.
        start_indices_batching_dims: axes of the indices, one for each of operand_batching_dims.

    >>> GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)).offset_dims
    (1,)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@readable
class ScatterDimensionNumbers(NamedTuple):
    """How a scatter's indices say where its updates go: a gather's dimension numbers, read backwards.

    Args:
        update_window_dims: axes of the updates that run inside a window, rising; the others run over the indices.
        inserted_window_dims: operand axes, of window size 1, that the updates do not have.
        scatter_dims_to_operand_dims: operand axis that each entry of an index vector moves along.
        operand_batching_dims: operand axes that run in step with scatter_indices_batching_dims.
        scatter_indices_batching_dims: axes of the indices, one for each of operand_batching_dims.

    >>> ScatterDimensionNumbers((), (0,), (0,)).inserted_window_dims
    (0,)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


@readable
class GatherScatterMode(Enum):
    """What becomes of slices that reach outside the operand.

    CLIP moves them inside. FILL_OR_DROP gives the fill value in a gather and skips the update in a scatter.
    PROMISE_IN_BOUNDS says that there are none: what happens then is not defined. ONE_HOT gathers zeros there.

    >>> GatherScatterMode.from_any("fill")
    <GatherScatterMode.FILL_OR_DROP: 2>
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """The mode of that name; FILL_OR_DROP for None.

        Raises:
            ValueError: an unknown name.
        """
        if isinstance(s, GatherScatterMode):
            return s
        found = _MODES.get(s)
        if found is None:
            names = ", ".join(repr(m) for m in _MODES if m)
            raise ValueError(f"mode {s!r} of a gather or scatter is not known. Give None or one of {names}.")
        return found


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}

IndexMap = GatherDimensionNumbers | ScatterDimensionNumbers


def _in_step(numbers: IndexMap) -> IndexMap:
    """The index map over a batch of operands and a batch of indices, both in front."""
    windows, dropped, moved, operand, indices = map(family.shift, numbers)
    return type(numbers)(windows, dropped, moved, (0, *operand), (0, *indices))


def _windowed(numbers: IndexMap) -> IndexMap:
    """The index map over a batch of operands, the same indices for all: the batch is one more window axis."""
    windows, dropped, moved, operand = map(family.shift, numbers[:4])
    return type(numbers)((0, *windows), dropped, moved, operand, numbers[4])


def _shared(numbers: IndexMap) -> IndexMap:
    """The index map over a batch of indices into one operand."""
    return type(numbers)(family.shift(numbers[0]), *numbers[1:4], family.shift(numbers[4]))


def _slice_shape(name: str, numbers: IndexMap, x: Any, indices: Any, sizes: Sequence[int]) -> tuple[int, ...]:
    """Shape of the slices that `indices` select from `x`; checks that all fits."""
    windows, dropped, moved, operand_batch, index_batch = numbers
    if not dtypes.is_integer(indices.dtype) or not indices.ndim:
        raise TypeError(f"{name}: the indices must be integer vectors along their last axis; they are {indices}.")
    if len(moved) != indices.shape[-1]:
        raise TypeError(
            f"{name}: index vectors have {indices.shape[-1]} entries (indices {indices}), and {len(moved)} operand "
            f"axes are named for them in {numbers}. Name one axis for each entry."
        )
    family.check_axes(f"{name}: operand", (*dropped, *operand_batch), x.ndim)
    family.check_axes(f"{name}: operand", (*moved, *operand_batch), x.ndim)
    family.check_axes(f"{name}: indices", index_batch, indices.ndim - 1)
    if len(sizes) != x.ndim or any(not 0 <= s <= n for s, n in zip(sizes, x.shape, strict=True)):
        raise TypeError(f"{name}: slices of sizes {tuple(sizes)} do not fit in shape {x.shape}.")
    absent = (*dropped, *operand_batch)
    if any(sizes[d] > 1 for d in absent):
        raise TypeError(f"{name}: slice sizes {tuple(sizes)} must be 1 at the axes {absent}, which slices do not have.")
    kept = [s for d, s in enumerate(sizes) if d not in absent]
    if len(kept) != len(windows) or list(windows) != sorted(set(windows)):
        raise TypeError(
            f"{name}: slices of sizes {tuple(sizes)} keep {len(kept)} axes, and the window axes {windows} must be as "
            "many, in rising order."
        )
    if [x.shape[d] for d in operand_batch] != [indices.shape[d] for d in index_batch]:
        raise TypeError(
            f"{name}: axes {operand_batch} of the operand {x} and {index_batch} of the indices {indices} run in step, "
            "so their sizes must be equal."
        )
    outer, inner = iter(indices.shape[:-1]), iter(kept)
    ndim = len(kept) + indices.ndim - 1
    family.check_axes(f"{name}: slices", windows, ndim)
    return tuple([next(inner) if d in windows else next(outer) for d in range(ndim)])


def _wide_enough(low: Any, aval: Any, indices: Any, index_aval: Any) -> tuple[Any, Any]:
    """Indices in a type that can name every place of the operand: XLA clamps in the type of the indices."""
    if index_aval.dtype.itemsize >= 4:
        return indices, index_aval
    wide = index_aval.update(dtype=np.dtype("int32"))
    return low.op("stablehlo.convert", (wide,), (indices,))[0], wide


def _bounds(low: Any, x: Any, index_aval: Any, numbers: IndexMap, sizes: Sequence[int]) -> Any:
    """The last valid start along each moved axis, broadcast to the shape of the indices."""
    most = np.array([x.shape[d] - sizes[d] for d in numbers[2]])
    most = np.minimum(most, dtypes.iinfo(index_aval.dtype).max).astype(index_aval.dtype)
    row = ShapedArray(most.shape, index_aval.dtype)
    return low.broadcast(low.constant(most, row), row, index_aval.shape, (index_aval.ndim - 1,))


def _compare(low: Any, aval: Any, x: Any, y: Any, direction: str) -> Any:
    attributes = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
    return low.op("stablehlo.compare", (ShapedArray(aval.shape, dtypes.bool_),), (x, y), attributes)[0]


def _inside(
    low: Any, x: Any, indices: Any, index_aval: Any, numbers: IndexMap, sizes: Sequence[int]
) -> tuple[Any, Any]:
    """Which index vectors select slices inside `x`: the mask and its type."""
    flags = ShapedArray(index_aval.shape, dtypes.bool_)
    if any(not x.shape[d] for d in numbers[2]):  # nothing lies inside an empty axis
        mask = flags.update(shape=flags.shape[:-1])
        return low.constant(np.False_, mask), mask
    fits = _compare(low, index_aval, indices, _bounds(low, x, index_aval, numbers, sizes), "LE")
    positive = _compare(low, index_aval, indices, low.constant(0, index_aval), "GE")
    fits = low.op("stablehlo.and", (flags,), (fits, positive))[0]
    mask = flags.update(shape=flags.shape[:-1])
    return reduce.lower_reduce(low, reduce.AND, flags, mask, fits, (flags.ndim - 1,))[0], mask


# ---- gather ----------------------------------------------------------------------------------------------------------


def _gather_type(x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, **params: Any) -> Any:
    return x.update(shape=_slice_shape("gather", dimension_numbers, x, indices, slice_sizes))


def fill_of(dtype: Any) -> Any:
    """What a gather gives outside the operand: NaN, the lowest signed or the highest unsigned integer, or True."""
    if isinstance(dtype, dtypes.KeyDType):
        return np.uint32(0xFFFFFFFF)
    if dtypes.is_inexact(dtype):
        return np.asarray(np.nan).astype(dtype)[()]
    if dtypes.kind(dtype) == "i":
        return reduce.lowest(dtype)
    return reduce.highest(dtype)


def _lower_gather(
    low: Any,
    ins: Any,
    outs: Any,
    x: Any,
    indices: Any,
    *,
    dimension_numbers: Any,
    slice_sizes: Any,
    indices_are_sorted: bool,
    mode: Any,
    fill_value: Any,
    **params: Any,
) -> Any:
    aval, out = ins[0], outs[0]
    indices, index_aval = _wide_enough(low, aval, indices, ins[1])
    words = low.key_words(aval)
    windows, dropped, moved, operand_batch, index_batch = dimension_numbers
    numbers = (
        f"#stablehlo.gather<offset_dims = {[*windows, *range(out.ndim, out.ndim + len(words))]}, "
        f"collapsed_slice_dims = {list(dropped)}, operand_batching_dims = {list(operand_batch)}, "
        f"start_indices_batching_dims = {list(index_batch)}, start_index_map = {list(moved)}, "
        f"index_vector_dim = {index_aval.ndim - 1}>"
    )
    attributes = {
        "dimension_numbers": numbers,
        "slice_sizes": family.ints((*slice_sizes, *words)),
        "indices_are_sorted": str(indices_are_sorted).lower(),
    }
    if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
        return low.op("stablehlo.gather", outs, (x, indices), attributes)
    taken = low.op("stablehlo.gather", outs, (x, indices), attributes)[0]
    mask, mask_aval = _inside(low, aval, indices, index_aval, dimension_numbers, slice_sizes)
    shape = (*out.shape, *words)
    outer = [d for d in range(out.ndim) if d not in windows]
    mask = low.broadcast(mask, mask_aval, shape, outer)
    physical = ShapedArray(shape, np.dtype("uint32") if words else out.dtype)
    if mode is GatherScatterMode.ONE_HOT:
        fill_value = 0
    fill = fill_of(aval.dtype) if fill_value is None else np.asarray(fill_value).astype(physical.dtype)
    return low.op("stablehlo.select", outs, (mask, taken, low.constant(fill, physical)))


def _gather_transpose(ct: Any, x: Any, indices: Any, *, dimension_numbers: Any, mode: Any, **params: Any) -> Any:
    back = scatter_add(
        ew.zeros(x.aval),
        indices,
        ct,
        dimension_numbers=ScatterDimensionNumbers(*dimension_numbers),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=mode,
    )
    return back, None


def _gather_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # Outside the operand the result is a constant, so its tangent is zero there.
    t = tangents[0]
    out = gather_p(*primals, **params)
    if t is None or not dtypes.is_inexact(typeof(out).dtype):
        return out, None
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        params = {**params, "fill_value": 0}
    return out, gather_p(t, primals[1], **params)


def _gather_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    changed = dict(params)
    if flags[0] and flags[1]:
        changed.update(dimension_numbers=_in_step(numbers), slice_sizes=(min(size, 1), *sizes))
    elif flags[0]:
        changed.update(dimension_numbers=_windowed(numbers), slice_sizes=(size, *sizes))
    else:
        changed.update(dimension_numbers=_shared(numbers), unique_indices=False, indices_are_sorted=False)
    return [prim(*operands, **changed)]


gather_p = Primitive(
    "gather",
    type=_gather_type,
    lower=_lower_gather,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
)


def gather(
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode = GatherScatterMode.FILL_OR_DROP,
    fill_value: Any = None,
) -> Any:
    """The slices of `x` that `indices` name."""
    return gather_p(
        x,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=tuple(slice_sizes),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        fill_value=fill_value,
    )


def take_along(x: Any, positions: Any, axis: int, *, unique: bool = False) -> Any:
    """Entries of `x` at `positions` along `axis`, all other axes in step; positions are inside the axis."""
    ndim = typeof(x).ndim
    others = tuple([d for d in range(ndim) if d != axis])
    return gather(
        x,
        structure.expand_dims(positions, (ndim,)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=tuple([min(1, n) for n in typeof(x).shape]),
        unique_indices=unique,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


# ---- scatter ---------------------------------------------------------------------------------------------------------


def _window_sizes(x: ShapedArray, updates: ShapedArray, numbers: IndexMap) -> tuple[int, ...]:
    """Sizes of a scatter's windows along the axes of the operand."""
    windows, dropped, _, operand_batch, _ = numbers
    inner = iter([updates.shape[d] for d in windows if d < updates.ndim])
    fixed = {*dropped, *operand_batch}
    return tuple([min(1, n) if d in fixed else next(inner, 0) for d, n in enumerate(x.shape)])


def _scatter_type(name: str) -> Callable[..., Any]:
    def rule(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, **params: Any) -> Any:
        family.common_dtype(name, (x, updates))
        sizes = _window_sizes(x, updates, dimension_numbers)
        expected = _slice_shape(name, dimension_numbers, x, indices, sizes)
        if expected != updates.shape:
            raise TypeError(
                f"{name}: indices of shape {indices.shape} and windows of sizes {sizes} need updates of shape "
                f"{expected}; they have {updates.shape}. Broadcast the updates."
            )
        return family.joined(name, (x, updates), x.shape, x.dtype)

    return rule


def _lower_scatter(
    low: Any,
    ins: Any,
    outs: Any,
    x: Any,
    indices: Any,
    updates: Any,
    *,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    update_jaxpr: Any,
    update_consts: Any,
) -> Any:
    aval, _, update_aval = ins
    indices, index_aval = _wide_enough(low, aval, indices, ins[1])
    if mode is GatherScatterMode.CLIP:
        sizes = _window_sizes(aval, update_aval, dimension_numbers)
        last = _bounds(low, aval, index_aval, dimension_numbers, sizes)
        indices = low.op("stablehlo.clamp", (index_aval,), (low.constant(0, index_aval), indices, last))[0]
    windows, dropped, moved, operand_batch, index_batch = dimension_numbers
    words = range(update_aval.ndim, update_aval.ndim + len(low.key_words(aval)))
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {[*windows, *words]}, inserted_window_dims = {list(dropped)}, "
        f"input_batching_dims = {list(operand_batch)}, scatter_indices_batching_dims = {list(index_batch)}, "
        f"scatter_dims_to_operand_dims = {list(moved)}, index_vector_dim = {index_aval.ndim - 1}>"
    )
    attributes = {
        "scatter_dimension_numbers": numbers,
        "indices_are_sorted": str(indices_are_sorted).lower(),
        "unique_indices": str(unique_indices).lower(),
    }

    def body(old: Any, new: Any) -> Any:
        return [new] if update_jaxpr is None else low.equations(update_jaxpr, (old, new))

    element = ShapedArray((), np.dtype("uint32") if words else aval.dtype)
    return low.op("stablehlo.scatter", outs, (x, indices, updates), attributes, (((element, element), body),))


def _scatter_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    x, indices, updates = operands
    x, updates = structure.batched(x, flags[0], size), structure.batched(updates, flags[2], size)
    numbers = params["dimension_numbers"]
    numbers = _in_step(numbers) if flags[1] else _windowed(numbers)
    return [prim(x, indices, updates, **{**params, "dimension_numbers": numbers})]


def _gathered(source: Any, primals: Sequence[Any], params: dict[str, Any], fill: Any = 0) -> Any:
    """From `source`, of the operand's shape, what lies where a scatter's updates go; `fill` for those dropped."""
    x, indices, updates = primals
    mode = params["mode"]
    return gather(
        source,
        indices,
        dimension_numbers=GatherDimensionNumbers(*params["dimension_numbers"]),
        slice_sizes=_window_sizes(_aval(x), _aval(updates), params["dimension_numbers"]),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=mode,
        fill_value=fill if mode is GatherScatterMode.FILL_OR_DROP else None,
    )


def _aval(x: Any) -> ShapedArray:
    return x.aval if is_unknown(x) else typeof(x)


def _added(x: Any, indices: Any, updates: Any, params: dict[str, Any]) -> Any:
    """Scatter-add with the index map and mode of another scatter."""
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    return scatter_add(x, indices, updates, **{name: params[name] for name in names})


def _sum_transpose(sign: Callable[[Any], Any]) -> Callable[..., Any]:
    def transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
        ct_updates = None
        if is_unknown(updates):
            ct_updates = sign(_gathered(ct, (x, indices, updates), params))
        return ct if is_unknown(x) else None, None, ct_updates

    return transpose


def _mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    out = scatter_mul_p(x, indices, updates, **params)
    t_x, _, t_updates = tangents
    if not dtypes.is_inexact(typeof(out).dtype):
        return out, None
    total = None if t_x is None else scatter_mul_p(t_x, indices, updates, **params)
    if t_updates is None:
        return out, total
    if not _is_unique(indices, params):
        raise NotImplementedError(
            "scatter_mul: the derivative with respect to the updates is defined only where no two of them meet in one "
            "place. Pass unique_indices=True if that is so, or gather, multiply and set."
        )
    start = ew.zeros(typeof(x)) if total is None else total
    return out, _added(start, indices, ew.mul(t_updates, _gathered(x, primals, params)), params)


def _mul_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    return scatter_mul_p(ct, indices, updates, **params), None, None


def _is_unique(indices: Any, params: dict[str, Any]) -> bool:
    return params["unique_indices"] or math.prod(typeof(indices).shape[:-1]) <= 1


def _set_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    if params["update_jaxpr"] is not None:
        raise NotImplementedError(
            "scatter_apply: there is no derivative. Gather, apply the function and scatter the results instead."
        )
    out = scatter_p(x, indices, updates, **params)
    t_x, _, t_updates = tangents
    if not dtypes.is_inexact(typeof(out).dtype) or t_x is t_updates is None:
        return out, None
    if t_updates is None or _is_unique(indices, params):
        t_x = ew.zeros(typeof(x)) if t_x is None else t_x
        t_updates = ew.zeros(typeof(updates)) if t_updates is None else t_updates
        return out, scatter_p(t_x, indices, t_updates, **params)
    # Of updates that meet in one place one wins: number them, scatter the numbers, and see which are still there.
    kept = ew.zeros(typeof(x)) if t_x is None else scatter_p(t_x, indices, ew.zeros(typeof(updates)), **params)
    shape = typeof(updates).shape
    index = np.dtype("int32")
    numbers = structure.reshape_to(structure.iota_along(index, (math.prod(shape),), 0), shape)
    marked = scatter_p(ew.zeros(ShapedArray(typeof(x).shape, index)), indices, numbers, **params)
    won = ew.eq(_gathered(marked, primals, params, fill=-1), numbers)
    return out, _added(kept, indices, ew.select_n(won, family.like(t_updates, 0), t_updates), params)


def _set_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    ct_x = ct_updates = None
    if is_unknown(x):
        ct_x = scatter_p(ct, indices, ew.zeros(_aval(updates)), **params)
    if is_unknown(updates):
        ct_updates = _gathered(ct, (x, indices, updates), params)
    return ct_x, None, ct_updates


def _extreme_jvp(prim: Callable[[], Primitive]) -> Callable[..., Any]:
    """All that equal the extreme, updates and operand alike, share the tangent equally."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        x, indices, updates = primals
        out = prim()(x, indices, updates, **params)
        t_x, _, t_updates = tangents
        dtype = typeof(out).dtype
        if not dtypes.is_inexact(dtype) or t_x is t_updates is None:
            return out, None
        won = structure.convert(ew.eq(updates, _gathered(out, primals, params, fill=np.nan)), dtype)
        kept = structure.convert(ew.eq(x, out), dtype)
        kept = ew.select_n(ew.ne(x, x), kept, family.like(kept, 1))  # NaN equals nothing, not even itself
        count = _added(kept, indices, won, params)
        total = ew.zeros(typeof(x)) if t_x is None else ew.mul(t_x, ew.div(kept, ew.max(count, family.like(count, 1))))
        if t_updates is None:
            return out, total
        share = ew.div(won, ew.max(_gathered(count, primals, params, fill=1), family.like(count, 1)))
        return out, _added(total, indices, ew.mul(t_updates, share), params)

    return jvp


def _scatter(name: str, **story: Any) -> Primitive:
    return Primitive(name, type=_scatter_type(name), lower=_lower_scatter, batch=_scatter_batch, **story)


scatter_p = _scatter("scatter", jvp=_set_jvp, transpose=_set_transpose)
scatter_add_p = _scatter("scatter-add", linear=(0, 2), transpose=_sum_transpose(lambda ct: ct))
scatter_sub_p = _scatter("scatter-sub", linear=(0, 2), transpose=_sum_transpose(lambda ct: ew.neg(ct)))
scatter_mul_p = _scatter("scatter-mul", jvp=_mul_jvp, transpose=_mul_transpose)
scatter_min_p = _scatter("scatter-min", jvp=_extreme_jvp(lambda: scatter_min_p))
scatter_max_p = _scatter("scatter-max", jvp=_extreme_jvp(lambda: scatter_max_p))


@lru_cache(maxsize=256)
def _pairwise(prim: Primitive, dtype: Any) -> Jaxpr:
    """The program (old, new) -> prim(old, new) on scalars."""
    scalar = ShapedArray((), dtype)
    old, new, out = Var(scalar), Var(scalar), Var(scalar)
    return Jaxpr((), (old, new), [Eqn(prim, [old, new], {}, [out])], (out,))


def _scatter_function(prim: Primitive, combine: Primitive | None, does: str) -> Callable[..., Any]:
    def scatter_function(
        x: Any,
        indices: Any,
        updates: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode = GatherScatterMode.FILL_OR_DROP,
    ) -> Any:
        return prim(
            x,
            indices,
            updates,
            dimension_numbers=dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            update_jaxpr=None if combine is None else _pairwise(combine, typeof(x).dtype),
            update_consts=(),
        )

    scatter_function.__doc__ = f"`x` with `updates` {does} at the places that `indices` name."
    return scatter_function


scatter = _scatter_function(scatter_p, None, "set")
scatter_add = _scatter_function(scatter_add_p, ew.add, "added")
scatter_sub = _scatter_function(scatter_sub_p, ew.sub, "subtracted")
scatter_mul = _scatter_function(scatter_mul_p, ew.mul, "multiplied")
scatter_min = _scatter_function(scatter_min_p, ew.min, "put in where they are lower")
scatter_max = _scatter_function(scatter_max_p, ew.max, "put in where they are higher")


def scatter_apply(
    x: Any,
    indices: Any,
    fun: Callable[[Any], Any],
    update_shape: tuple[int, ...],
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode = GatherScatterMode.FILL_OR_DROP,
) -> Any:
    """`x` with the scalar function `fun` applied at the places that `indices` name.

    Raises:
        NotImplementedError: `fun` closes over arrays.
    """
    scalar = ShapedArray((), typeof(x).dtype)
    jaxpr, consts = trace.stage(lambda old, new: [fun(old)], (scalar, scalar), "scatter_apply")
    if consts:
        raise NotImplementedError("scatter_apply: the function closes over arrays. Let it use its argument alone.")
    updates = ew.full(update_shape, family.scalar(0, typeof(x).dtype))
    return scatter_p(
        x,
        indices,
        updates,
        dimension_numbers=dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        update_jaxpr=jaxpr,
        update_consts=(),
    )
