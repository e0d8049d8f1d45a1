"""Order and membership: sort, argsort, searchsorted, unique, nonzero, sets, and what selects by conditions."""

import operator
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base
from morphax.numpy import creation, indexing, promotion, reductions, shapes, ufuncs, updates
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops import sorting as ops
from morphax.runtime.jit import program
from morphax.support import dtypes, errors

typeof = avals.operand_type
_outside = base()

# ---- sorting ---------------------------------------------------------------------------------------------------------


def _check_order(name: str, kind: Any, order: Any) -> None:
    if kind is not None and kind not in ("stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"{name}: kind must be None or a name of NumPy's; it is {kind!r}. It is not used.")
    if order is not None:
        raise NotImplementedError(f"{name}: order is for arrays with fields, which do not exist here. Leave it out.")


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """`a` and the axis to sort along: flat where axis is None."""
    a = promotion.array(name, a)
    if axis is None:
        return structure.reshape_to(a, (typeof(a).size,)), 0
    return a, promotion.axis_of(name, axis, typeof(a).ndim)


@program("axis", "kind", "order", "stable", "descending")
def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """`a` in rising order along an axis, NaNs last; in falling order if `descending`.

    >>> from morphax import numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    _check_order("sort", kind, order)
    a, axis = _along("sort", a, axis)
    out = ops.sort(a, dimension=axis, is_stable=stable, num_keys=1)[0]
    return structure.rev(out, dimensions=(axis,)) if descending else out


@program("axis", "kind", "order", "stable", "descending", "dtype")
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """Positions that put `a` in order along an axis; equal entries stay in theirs.

    >>> from morphax import numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    _check_order("argsort", kind, order)
    a, axis = _along("argsort", a, axis)
    dtype = dtypes.default_int_dtype() if dtype is None else dtypes.named_dtype(dtype)
    if descending:  # sorted from behind, so that equal entries come out in order
        a = structure.rev(a, dimensions=(axis,))
    shape = typeof(a).shape
    places = structure.iota_along(dtype, shape, axis)
    out = ops.sort(a, places, dimension=axis, is_stable=stable, num_keys=1)[1]
    if descending:
        out = ew.sub(family.scalar(shape[axis] - 1, dtype), structure.rev(out, dimensions=(axis,)))
    return out


@program("axis")
def _lexsort(keys: list[Any], axis: int) -> Any:
    keys = [promotion.array("lexsort", k) for k in keys]
    axis = promotion.axis_of("lexsort", axis, typeof(keys[0]).ndim)
    places = structure.iota_along(dtypes.default_int_dtype(), typeof(keys[0]).shape, axis)
    return ops.sort(*keys[::-1], places, dimension=axis, is_stable=True, num_keys=len(keys))[-1]


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Positions that put several keys in order, the last key first in rank.

    >>> from morphax import numpy as jnp
    >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([0, 0, 1]))).tolist()
    [1, 0, 2]
    """
    keys = shapes.parts_of("lexsort", keys)
    return _lexsort(keys, axis=axis) if shapes.ndim(keys[0]) else creation.zeros((), int)


@program("kth", "axis")
def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """`a` with the entry of rank `kth` in its place, none greater before and none less after: in full order here.

    >>> from morphax import numpy as jnp
    >>> jnp.partition(jnp.array([3, 1, 2]), 1).tolist()
    [1, 2, 3]
    """
    _check_rank("partition", a, kth, axis)
    return sort(a, axis)


def _check_rank(name: str, a: Any, kth: Any, axis: int) -> None:
    found = promotion.described(name, a)[2]
    size = found[promotion.axis_of(name, axis, len(found))]
    if not -size <= operator.index(kth) < size:
        raise ValueError(f"{name}: kth(={kth}) out of bounds ({size}). Give one in [{-size}, {size - 1}].")


@program("kth", "axis")
def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """Positions that partition `a` by the entry of rank `kth`.

    >>> from morphax import numpy as jnp
    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1).tolist()
    [1, 2, 0]
    """
    _check_rank("argpartition", a, kth, axis)
    return argsort(a, axis)


@program()
def sort_complex(a: Any) -> Any:
    """`a` sorted along its last axis, as complex numbers.

    >>> from morphax import numpy as jnp
    >>> jnp.sort_complex(jnp.array([2.0, 1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    a = promotion.array("sort_complex", a)
    return sort(structure.convert(a, dtypes.to_complex(typeof(a).dtype)))


# ---- searching -------------------------------------------------------------------------------------------------------


@program("side", "method")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Any:
    """Where the values `v` would have to be put into the sorted array `a` to keep it sorted.

    Args:
        a: sorted array of one axis.
        v: values.
        side: "left": before equal entries; "right": after them.
        sorter: positions that sort `a`.
        method: "scan", "scan_unrolled", "sort" or "compare_all". The result is the same.

    >>> from morphax import numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 3, 5]), 3, side="right").item()
    2
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right'; it is {side!r}.")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ValueError(
            f"searchsorted: method must be 'scan', 'scan_unrolled', 'sort' or 'compare_all'; it is {method!r}."
        )
    a, v = promotion.same_dtype(
        "searchsorted", (promotion.array("searchsorted", a), promotion.array("searchsorted", v))
    )
    if typeof(a).ndim != 1:
        raise ValueError(f"searchsorted: a should be 1-dimensional; it has shape {typeof(a).shape}.")
    if sorter is not None:
        a = indexing.take(a, sorter)
    int_dtype = dtypes.default_int_dtype()
    n = typeof(a).shape[0]
    shape = typeof(v).shape
    zeros = ew.full(shape, np.zeros((), int_dtype))
    if not n or not typeof(v).size:
        return zeros
    if n * typeof(v).size <= 4096:
        return _by_comparing(a, v, side, n, shape, int_dtype)
    return _by_halving(a, v, side, n, shape, int_dtype)


def _goes_after(entry: Any, v: Any, side: str) -> Any:
    """Whether `v` belongs behind `entry`, in the order that has NaN last."""
    if not dtypes.is_inexact(typeof(v).dtype):
        return (ew.lt if side == "left" else ew.le)(entry, v)
    less = ufuncs._ordered(ew.lt if side == "left" else ew.le)(entry, v)
    entry_nan, v_nan = ew.ne(entry, entry), ew.ne(v, v)
    beyond = v_nan if side == "right" else ew.and_(v_nan, ew.not_(entry_nan))
    return ew.or_(less, beyond)


def _by_comparing(a: Any, v: Any, side: str, n: int, shape: tuple[int, ...], int_dtype: Any) -> Any:
    full = (*shape, n)
    entries = ew.broadcast_in_dim(a, shape=full, broadcast_dimensions=(len(shape),), sharding=None)
    values = ew.broadcast_in_dim(v, shape=full, broadcast_dimensions=tuple(range(len(shape))), sharding=None)
    return reductions.sum(_goes_after(entries, values, side), axis=-1, dtype=int_dtype)


def _by_halving(a: Any, v: Any, side: str, n: int, shape: tuple[int, ...], int_dtype: Any) -> Any:
    # Bit by bit from the highest: a step is taken where the entry in front of its end still goes before v.
    found = ew.full(shape, np.zeros((), int_dtype))
    for k in reversed(range(n.bit_length())):
        step = family.scalar(1 << k, int_dtype)
        ahead = ew.add(found, step)
        entry = indexing.take(a, ew.sub(ahead, family.scalar(1, int_dtype)), mode="clip")
        fits = ew.le(ahead, family.scalar(n, int_dtype))
        found = ew.select_n(ew.and_(fits, _goes_after(entry, v, side)), found, ahead)
    return found


@program("right", "method")
def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """Number of the bin that each entry lies in, for rising or falling edges.

    >>> from morphax import numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([0.0, 1.0, 2.0])).tolist()
    [1, 3]
    """
    bins = promotion.array("digitize", bins)
    if typeof(bins).ndim != 1:
        raise ValueError(f"digitize: bins must have one axis; its shape is {typeof(bins).shape}.")
    n = typeof(bins).shape[0]
    if not n:
        return ew.full(promotion.described("digitize", x)[2], np.zeros((), dtypes.default_int_dtype()))
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side=side)
    other = "right" if right else "left"
    backwards = searchsorted(structure.rev(bins, dimensions=(0,)), x, side=other)
    falling = ew.sub(family.like(backwards, n), backwards)
    first, last = (structure.reshape_to(structure.slice_axis(bins, k, k + 1, 0), ()) for k in (0, n - 1))
    return ew.select_n(ew.ge(last, first), falling, rising)


# ---- conditions ------------------------------------------------------------------------------------------------------


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Entries of `x` where the condition holds, of `y` elsewhere; with the condition alone, as `nonzero`.

    >>> from morphax import numpy as jnp
    >>> jnp.where(jnp.array([True, False]), 1, jnp.array([5, 6])).tolist()
    [1, 6]
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: Either both or neither of the x and y arguments should be provided.")
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for a condition alone. Leave them out.")
    return ufuncs.choose_by(condition, x, y)


def _host(name: str, x: Any) -> np.ndarray:
    """The value of an array that decides the shape of the result."""
    x = promotion.checked(name, x)
    try:
        return np.asarray(x)
    except errors.TracerArrayConversionError as error:
        raise errors.ConcretizationTypeError(
            f"{name}: the size of the result depends on the values of a traced array of shape {x.shape}. Give size=, "
            f"the greatest number of results, or call it outside jit. {error}"
        ) from None


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """Positions of the entries that are not 0, one array for each axis.

    Args:
        a: array of at least one axis.
        size: number of results, which is needed under jit: more are cut off, missing ones filled.
        fill_value: for missing ones, a scalar or one for each axis; 0 by default.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.nonzero(jnp.array([0, 5, 6]))]
    [[1, 2]]
    """
    a = promotion.checked("nonzero", a)
    found = typeof(a).shape
    if not found:
        raise ValueError("nonzero: Calling nonzero on 0d arrays is not allowed. Use atleast_1d(x).nonzero().")
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(found)
    if len(fills) != len(found):
        raise ValueError(
            f"nonzero: fill_value {fill_value} must be a scalar, or have one entry for each of {len(found)} axes."
        )
    if size is None:
        return tuple([creation.asarray(i) for i in np.nonzero(_host("nonzero", a))])
    size = operator.index(creation.concrete("nonzero", "size", size))
    return tuple(_nonzero_padded(a, tuple([0 if f is None else f for f in fills]), size=size))


@program("size")
def _nonzero_padded(a: Any, fills: tuple[Any, ...], size: int) -> list[Any]:
    flags = ufuncs.truth("nonzero", a)
    found = typeof(flags).shape
    int_dtype = dtypes.default_int_dtype()
    flat = structure.reshape_to(flags, (typeof(flags).size,))
    count = reductions.sum(flat, dtype=int_dtype)
    if not typeof(flat).size or not size:
        return [ew.full((size,), promotion.as_dtype(f, int_dtype)) for f in fills]
    # The k-th position is where the running count first reaches k + 1.
    running = reductions.cumsum(flat, dtype=int_dtype)
    wanted = ew.add(structure.iota_along(int_dtype, (size,), 0), family.scalar(1, int_dtype))
    places = searchsorted(running, wanted)
    use = ew.lt(structure.iota_along(int_dtype, (size,), 0), count)
    out = []
    stride = 1
    for d in reversed(range(len(found))):
        along = ew.rem(ew.div(places, family.scalar(stride, int_dtype)), family.scalar(max(found[d], 1), int_dtype))
        out.append(ew.select_n(use, promotion.as_dtype(fills[d], int_dtype), along))
        stride *= found[d]
    return out[::-1]


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Positions in the flat array of the entries that are not 0.

    >>> from morphax import numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 0]])).tolist()
    [1, 2]
    """
    return nonzero(shapes.ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Positions of the entries that are not 0, one row each.

    >>> from morphax import numpy as jnp
    >>> jnp.argwhere(jnp.array([[0, 5], [6, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if not shapes.ndim(a):
        count = int(np.count_nonzero(_host("argwhere", a))) if size is None else size
        return creation.zeros((count, 0), int)
    return shapes.stack(nonzero(a, size=size, fill_value=fill_value), axis=-1)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The entries of `arr`, flat, where the condition holds.

    >>> from morphax import numpy as jnp
    >>> jnp.extract(jnp.array([True, False, True]), jnp.array([5, 6, 7])).tolist()
    [5, 7]
    """
    return compress(shapes.ravel(condition), shapes.ravel(arr), size=size, fill_value=fill_value)


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Any:
    """The parts of `a` along an axis where the condition holds.

    >>> from morphax import numpy as jnp
    >>> jnp.compress(jnp.array([True, False]), jnp.array([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2]]
    """
    ufuncs.no_out("compress", out)
    condition = creation.asarray(condition)
    if condition.ndim != 1:
        raise ValueError(f"compress: condition must have one axis; its shape is {condition.shape}.")
    a = creation.asarray(a)
    if axis is None:
        a, axis = shapes.ravel(a), 0
    axis = promotion.axis_of("compress", axis, a.ndim)
    if condition.shape[0] > a.shape[axis]:
        condition = condition[: a.shape[axis]]
    if size is None:
        return indexing.take(a, np.nonzero(_host("compress", condition))[0], axis=axis, mode="clip")
    places = nonzero(condition, size=size, fill_value=a.shape[axis])[0]
    return indexing.take(a, places, axis=axis, mode="fill", fill_value=fill_value)


@program()
def _select(condlist: list[Any], choicelist: list[Any], default: Any) -> Any:
    out = promotion.array("select", default)
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        out = ufuncs.choose_by(condition, choice, out)
    return out


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each place the choice of the first condition that holds there, or the default.

    >>> from morphax import numpy as jnp
    >>> x = jnp.arange(3)
    >>> jnp.select([x < 1, x < 2], [x, x * 10], 7).tolist()
    [0, 10, 7]
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions stand against {len(choicelist)} choices. Give as many.")
    if not len(condlist):
        raise ValueError("select: condlist must be non-empty.")
    return _select(list(condlist), list(choicelist), default)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each place the entry of the choice whose number `a` has there; mode "clip" or "wrap" for other numbers.

    >>> from morphax import numpy as jnp
    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([5, 6]), jnp.array([7, 8])]).tolist()
    [7, 6]
    """
    ufuncs.no_out("choose", out)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip'; it is {mode!r}.")
    choices = shapes.parts_of("choose", choices)
    if mode == "raise":
        host = _host("choose", a)
        if host.size and not 0 <= host.min() <= host.max() < len(choices):
            raise ValueError(
                f"choose: invalid entry in choice array: numbers must lie in [0, {len(choices)}). Use mode='clip'."
            )
    return _choose(a, choices, mode=mode)


@program("mode")
def _choose(a: Any, choices: list[Any], mode: str) -> Any:
    a, *choices = promotion.align("choose", [promotion.array("choose", a), *promotion.same_dtype("choose", choices)])
    count = family.like(a, len(choices))
    a = (
        ufuncs._floored_rest(
            a, ew.broadcast_in_dim(np.asarray(count), shape=typeof(a).shape, broadcast_dimensions=(), sharding=None)
        )
        if mode == "wrap"
        else a
    )
    shape = promotion.common_shape("choose", [typeof(v).shape for v in (a, *choices)])
    out = promotion.spread(choices[0], shape)
    for k, choice in enumerate(choices[1:], 1):
        out = ew.select_n(promotion.spread(ew.ge(a, family.like(a, k)), shape), out, promotion.spread(choice, shape))
    return out


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Any:
    """Each entry of `a` repeated so many times along an axis, or in the flat array.

    Args:
        a: array.
        repeats: an int, or one for each entry.
        axis: axis, or None.
        total_repeat_length: size of the result along the axis, which is needed where `repeats` is traced.
        out_sharding: not supported.

    >>> from morphax import numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    creation._no_sharding("repeat", out_sharding)
    if isinstance(repeats, (list, tuple)):
        repeats = np.asarray(repeats)
    if isinstance(repeats, (int, np.integer)) and total_repeat_length is None:
        if repeats < 0:
            raise ValueError(f"repeat: repeats must not be negative; it is {repeats}.")
        return shapes._repeat_each(a, count=int(repeats), axis=axis)
    a = promotion.checked("repeat", a)
    if axis is None:
        a, axis = shapes.ravel(a), 0
    axis = promotion.axis_of("repeat", axis, typeof(a).ndim)
    length = typeof(a).shape[axis]
    if total_repeat_length is None:
        host = np.broadcast_to(_host("repeat", repeats), (length,))
        return indexing.take(a, np.repeat(np.arange(length), host), axis=axis, mode="clip")
    counts = shapes.broadcast_to(creation.asarray(repeats), (length,))
    return _repeat_to(a, counts, axis=axis, total=operator.index(total_repeat_length))


@program("axis", "total")
def _repeat_to(a: Any, counts: Any, axis: int, total: int) -> Any:
    ends = reductions.cumsum(counts)
    places = searchsorted(ends, structure.iota_along(typeof(ends).dtype, (total,), 0), side="right")
    return indexing.take(a, places, axis=axis, mode="clip")


# ---- sets ------------------------------------------------------------------------------------------------------------


@program("size", "return_inverse", "equal_nan")
def _unique_padded(a: Any, fill: Any, size: int, return_inverse: bool, equal_nan: bool) -> tuple[Any, ...]:
    """Sorted values without repetition, cut or filled to a size; first positions, inverse, counts."""
    int_dtype = dtypes.default_int_dtype()
    n = typeof(a).shape[0]
    order = argsort(a)
    values = indexing.take(a, order, mode="clip")
    if n > 1:
        before, after = structure.slice_axis(values, 0, n - 1, 0), structure.slice_axis(values, 1, n, 0)
        differs = ew.ne(before, after)
        if equal_nan and dtypes.is_inexact(typeof(values).dtype):
            differs = ew.and_(differs, ew.not_(ew.and_(ew.ne(before, before), ew.ne(after, after))))
        new = structure.pad(differs, np.True_, padding_config=((1, 0, 0),))
    else:
        new = ew.full((n,), np.asarray(True))
    starts = nonzero(new, size=size, fill_value=n)[0]
    count = reductions.sum(new, dtype=int_dtype)
    use = ew.lt(structure.iota_along(int_dtype, (size,), 0), count)
    taken = indexing.take(values, starts, mode="clip")
    least = structure.reshape_to(structure.slice_axis(values, 0, 1, 0), ())
    fill = promotion.as_dtype(fill, typeof(values).dtype) if fill is not None else least
    fill = ew.broadcast_in_dim(fill, shape=(size,), broadcast_dimensions=(), sharding=None)
    unique_values = ew.select_n(use, fill, taken)
    first = indexing.take(order, starts, mode="clip")
    if size:
        least_at = structure.reshape_to(structure.slice_axis(first, 0, 1, 0), ())
        first = ew.select_n(
            use, ew.broadcast_in_dim(least_at, shape=(size,), broadcast_dimensions=(), sharding=None), first
        )
    group = ew.sub(reductions.cumsum(new, dtype=int_dtype), family.scalar(1, int_dtype))
    inverse = updates.Place(ew.full((n,), np.zeros((), int_dtype)), order).set(group)
    stops = structure.pad(starts, family.scalar(n, int_dtype), padding_config=((-1, 1, 0),)) if size else starts
    return unique_values, first, inverse, ew.sub(stops, starts)


def _rows_as_groups(ar: Any, axis: int) -> tuple[np.ndarray, int]:
    host = _host("unique", ar)
    return host, promotion.axis_of("unique", axis, host.ndim)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The distinct entries, or slices along an axis, in order.

    Args:
        ar: array.
        return_index: also the position where each comes first.
        return_inverse: also where each entry of `ar` is among the results.
        return_counts: also how often each comes.
        axis: axis, or None for entries of the flat array.
        equal_nan: whether NaNs are one value.
        size: number of results, which is needed under jit: more are cut off, missing ones filled.
        fill_value: for missing ones; the least entry by default.
        sorted: not used; the results are sorted always.

    >>> from morphax import numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ar = promotion.checked("unique", ar)
    if axis is not None or size is None:
        return _unique_on_host(ar, return_index, return_inverse, return_counts, axis, equal_nan, size, fill_value)
    flat = shapes.ravel(ar)
    size = operator.index(creation.concrete("unique", "size", size))
    if not flat.size:
        raise ValueError("unique: size must be 0 for an array without entries.") if size else _empty_unique(flat)
    values, first, inverse, counts = _unique_padded(
        flat, fill_value, size=size, return_inverse=return_inverse, equal_nan=equal_nan
    )
    out = [values]
    out += [first] if return_index else []
    out += [shapes.reshape(inverse, typeof(ar).shape)] if return_inverse else []
    out += [counts] if return_counts else []
    return out[0] if len(out) == 1 else tuple(out)


def _empty_unique(flat: Any) -> Exception:
    return ValueError(f"unique: an array of shape {flat.shape} has no entries; leave size out.")


def _unique_on_host(
    ar: Any, index: bool, inverse: bool, counts: bool, axis: int | None, equal_nan: bool, size: Any, fill: Any
) -> Any:
    host = _host("unique", ar)
    found = np.unique(host, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan)
    values, first, where_each, numbers = found
    if size is not None:
        values, first, numbers = _padded_unique(values, first, numbers, axis or 0, size, fill)
    out = [creation.asarray(values, values.dtype)]
    out += [creation.asarray(first)] if index else []
    out += (
        [creation.asarray(where_each.reshape(host.shape) if axis is None else where_each.reshape(-1))]
        if inverse
        else []
    )
    out += [creation.asarray(numbers)] if counts else []
    return out[0] if len(out) == 1 else tuple(out)


def _padded_unique(values: Any, first: Any, numbers: Any, axis: int, size: int, fill: Any) -> tuple[Any, Any, Any]:
    have = values.shape[axis]
    if have >= size:
        cut = (slice(None),) * axis + (slice(0, size),)
        return values[cut], first[:size], numbers[:size]
    missing = size - have
    filler = (
        np.take(values, [0] * missing, axis=axis)
        if fill is None
        else np.full_like(np.take(values, [0] * missing, axis=axis), fill)
    )
    padding = np.full(missing, first[0] if len(first) else 0, first.dtype)
    return (
        np.concatenate([values, filler], axis),
        np.concatenate([first, padding]),
        np.concatenate([numbers, 0 * padding]),
    )


@program("invert")
def _isin(element: Any, test_elements: Any, invert: bool) -> Any:
    element, tests = promotion.same_dtype(
        "isin", (promotion.array("isin", element), promotion.array("isin", test_elements))
    )
    tests = structure.reshape_to(tests, (typeof(tests).size,))
    shape = typeof(element).shape
    n = typeof(tests).size
    if not n:
        return ew.full(shape, np.asarray(invert))
    if n * typeof(element).size <= 1 << 16 or dtypes.is_complex(typeof(tests).dtype):
        full = (*shape, n)
        left = ew.broadcast_in_dim(element, shape=full, broadcast_dimensions=tuple(range(len(shape))), sharding=None)
        right = ew.broadcast_in_dim(tests, shape=full, broadcast_dimensions=(len(shape),), sharding=None)
        found = reductions.any(ew.eq(left, right), axis=-1)
    else:
        tests = sort(tests)
        found = ew.eq(indexing.take(tests, searchsorted(tests, element), mode="clip"), element)
    return ew.not_(found) if invert else found


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Any:
    """Whether each entry is among the test entries.

    >>> from morphax import numpy as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([1, 3])).tolist()
    [True, False, True]
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: method must be 'auto', 'compare_all', 'binary_search' or 'sort'; it is {method!r}.")
    element, test_elements = [
        creation.array(v) if isinstance(v, (list, tuple)) else v for v in (element, test_elements)
    ]
    return _isin(element, test_elements, invert=bool(invert))
