"""Arrays as sets: union, intersection, differences, and the distinct values as the array API standard asks."""

import operator
from typing import Any, NamedTuple

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, indexing, promotion, shapes, sorting
from morphax.ops import elementwise as ew
from morphax.ops import family, reduce, structure
from morphax.runtime.jit import program

typeof = avals.operand_type

# ---- two sets --------------------------------------------------------------------------------------------------------


@program("name")
def _flat_pair(ar1: Any, ar2: Any, name: str) -> tuple[Any, Any]:
    ar1, ar2 = promotion.same_dtype(name, (promotion.array(name, ar1), promotion.array(name, ar2)))
    return tuple([structure.reshape_to(x, (typeof(x).size,)) for x in (ar1, ar2)])


def _static(name: str, size: Any) -> int:
    return operator.index(creation.concrete(name, "size", size))


def _on_host(name: str, *operands: Any) -> list[np.ndarray]:
    return [sorting._host(name, x) for x in operands]


def _changes(ordered: Any, front: bool) -> Any:
    """Whether each entry of a sorted array is the first of its run of equal ones, or the last. NaNs differ."""
    n = typeof(ordered).shape[0]
    if n < 2:
        return ew.full((n,), np.asarray(True))
    differs = ew.ne(structure.slice_axis(ordered, 0, n - 1, 0), structure.slice_axis(ordered, 1, n, 0))
    return structure.pad(differs, np.True_, padding_config=((1, 0, 0) if front else (0, 1, 0),))


def _picked(values: Any, keep: Any, size: int, fill: Any, *positions: Any) -> tuple[Any, ...]:
    """The kept values, and positions, cut or filled to a size; by default with the first of them."""
    n = typeof(values).shape[0]
    if not n:
        fill = 0 if fill is None else fill
        return (creation.full((size,), fill, typeof(values).dtype), *[creation.full((size,), 0) for _ in positions])
    places = sorting.nonzero(keep, size=size, fill_value=n)[0]
    out = indexing.take(values, places, mode="clip")
    if fill is None and size:
        fill = structure.reshape_to(structure.slice_axis(out, 0, 1, 0), ())
    chosen = sorting.where(ew.lt(places, family.like(places, n)), out, 0 if fill is None else fill)
    found = [indexing.take(p, places, mode="fill", fill_value=count) for p, count in positions]
    return structure.convert(chosen, typeof(values).dtype), *found


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct values of two arrays together, in order.

    Args:
        ar1, ar2: arrays, read flat.
        size: number of results, which is needed under jit: more are cut off, missing ones filled.
        fill_value: for missing ones; the least value by default.

    >>> from morphax import numpy as jnp
    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2])).tolist()
    [1, 2, 3]
    """
    joined = shapes.concatenate(_flat_pair(ar1, ar2, "union1d"))
    return sorting.unique(joined, size=size, fill_value=fill_value)


@program("assume_unique", "size")
def _setdiff(ar1: Any, ar2: Any, fill_value: Any, assume_unique: bool, size: int) -> Any:
    ar1 = ar1 if assume_unique else sorting.sort(ar1)
    keep = sorting.isin(ar1, ar2, invert=True)
    keep = keep if assume_unique else ew.and_(keep, _changes(ar1, True))
    return _picked(ar1, keep, size, 0 if fill_value is None else fill_value)[0]


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The distinct values of `ar1` that `ar2` has not, in order.

    Args:
        ar1, ar2: arrays, read flat.
        assume_unique: no value comes twice in an array; the results then stand in the order of `ar1`.
        size: number of results, which is needed under jit: more are cut off, missing ones filled.
        fill_value: for missing ones; 0 by default.

    >>> from morphax import numpy as jnp
    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([1])).tolist()
    [2, 3]
    """
    ar1 = promotion.array("setdiff1d", ar1)
    if size is None:
        left, right = _on_host("setdiff1d", ar1, ar2)
        return creation.asarray(np.setdiff1d(left, right, assume_unique=bool(assume_unique)), left.dtype)
    ar1 = shapes.ravel(ar1)
    return _setdiff(ar1, ar2, fill_value, assume_unique=bool(assume_unique), size=_static("setdiff1d", size))


def _merged(ar1: Any, ar2: Any) -> tuple[Any, Any, Any]:
    """Both arrays in one order; where each entry was in the joined array; whether it is of the second.

    The order is stable: among equal entries those of the first array stand first, in their own order.
    """
    joined = structure.concatenate(ar1, ar2, dimension=0)
    order = sorting.argsort(joined)
    second = ew.ge(order, family.like(order, typeof(ar1).shape[0]))
    return indexing.take(joined, order, mode="clip"), order, second


@program("size")
def _setxor(ar1: Any, ar2: Any, fill_value: Any, size: int) -> Any:
    values, _, second = _merged(ar1, ar2)
    # The last of a run is of the first array where all are; the first of a run is of the second where all are.
    keep = ew.or_(
        ew.and_(_changes(values, False), ew.not_(second)),
        ew.and_(_changes(values, True), second),
    )
    return _picked(values, keep, size, fill_value)[0]


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The distinct values that only one of two arrays has, in order.

    Args:
        ar1, ar2: arrays, read flat.
        assume_unique: no value comes twice in an array.
        size: number of results, which is needed under jit: more are cut off, missing ones filled.
        fill_value: for missing ones; the least value by default.

    >>> from morphax import numpy as jnp
    >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3])).tolist()
    [1, 3]
    """
    ar1, ar2 = _flat_pair(ar1, ar2, "setxor1d")
    if size is None:
        out = np.setxor1d(*_on_host("setxor1d", ar1, ar2), assume_unique=bool(assume_unique))
        return creation.asarray(out, out.dtype)
    return _setxor(ar1, ar2, fill_value, size=_static("setxor1d", size))


@program("size")
def _intersection(ar1: Any, ar2: Any, fill_value: Any, size: int) -> tuple[Any, Any, Any]:
    values, order, second = _merged(ar1, ar2)
    left, n = typeof(ar1).shape[0], typeof(values).shape[0]
    if n < 2:
        zeros = structure.slice_axis(order, 0, 0, 0)
        return _picked(structure.slice_axis(values, 0, 0, 0), zeros, size, fill_value, (zeros, 0), (zeros, 0))
    # A value is in both where, in its run, an entry of the first array stands before one of the second.
    here, after = [structure.slice_axis(values, k, n - 1 + k, 0) for k in (0, 1)]
    from_first, from_second = ew.not_(structure.slice_axis(second, 0, n - 1, 0)), structure.slice_axis(second, 1, n, 0)
    both = ew.and_(ew.eq(here, after), ew.and_(from_first, from_second))
    places = structure.iota_along(typeof(order).dtype, (n,), 0)
    starts = reduce.cummax(
        ew.select_n(_changes(values, True), ew.full((n,), family.like(places, 0)), places), axis=0, reverse=False
    )
    in_first = structure.slice_axis(indexing.take(order, starts, mode="clip"), 0, n - 1, 0)
    in_second = ew.sub(structure.slice_axis(order, 1, n, 0), family.like(order, left))
    return _picked(here, both, size, fill_value, (in_first, left), (in_second, n - left))


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct values that two arrays have in common, in order.

    Args:
        ar1, ar2: arrays, read flat.
        assume_unique: no value comes twice in an array.
        return_indices: also the position where each value comes first in either array.
        size: number of results, which is needed under jit: more are cut off, missing ones filled, with positions past
            the end.
        fill_value: for missing ones; the least value by default.

    >>> from morphax import numpy as jnp
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 5])).tolist()
    [2, 3]
    """
    ar1, ar2 = _flat_pair(ar1, ar2, "intersect1d")
    if size is None:
        host = _on_host("intersect1d", ar1, ar2)
        out = np.intersect1d(*host, assume_unique=bool(assume_unique), return_indices=True)
        found = (creation.asarray(out[0], host[0].dtype), *[creation.asarray(i) for i in out[1:]])
    else:
        found = _intersection(ar1, ar2, fill_value, size=_static("intersect1d", size))
    return found if return_indices else found[0]


# ---- one set ---------------------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Distinct values, where each comes first, where each entry is among them, and how often each comes."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each comes."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Distinct values, and where each entry is among them."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """As `unique` with all its results; NaNs differ from one another.

    >>> from morphax import numpy as jnp
    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    return UniqueAll(*sorting.unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """The distinct values and how often each comes; NaNs differ from one another.

    >>> from morphax import numpy as jnp
    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    out = sorting.unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*out)


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """The distinct values, and where each entry is among them; NaNs differ from one another.

    >>> from morphax import numpy as jnp
    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    out = sorting.unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*out)


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct values, in order; NaNs differ from one another.

    >>> from morphax import numpy as jnp
    >>> jnp.unique_values(jnp.array([3, 1, 3])).tolist()
    [1, 3]
    """
    return sorting.unique(x, equal_nan=False, size=size, fill_value=fill_value)
