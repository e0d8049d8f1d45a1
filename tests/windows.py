"""Gather and scatter in NumPy, one window at a time, as StableHLO's specification words them."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Place = tuple[int, ...]


def places(numbers: Any, shape: Sequence[int], indices: np.ndarray, sizes: Sequence[int], mode: str) -> Iterator[Any]:
    """(place in the slices, place in the operand or None where it is outside), for every entry of the slices."""
    windows, dropped, moved, operand_batch, index_batch = (*numbers, (), ())[:5]
    kept = [d for d in range(len(shape)) if d not in dropped and d not in operand_batch]
    ndim = len(kept) + indices.ndim - 1
    for outer in itertools.product(*map(range, indices.shape[:-1])):
        start = [0] * len(shape)
        for d, i in zip(moved, indices[outer], strict=True):
            start[d] = int(i)
        if mode == "clip":
            start = [min(max(s, 0), n - size) for s, n, size in zip(start, shape, sizes, strict=True)]
        inside = all(0 <= s <= n - size for s, n, size in zip(start, shape, sizes, strict=True))
        for d, k in zip(operand_batch, index_batch, strict=True):
            start[d] = outer[k]
        for inner in itertools.product(*(range(sizes[d]) for d in kept)):
            o, w = iter(outer), iter(inner)
            at = tuple([next(w) if d in windows else next(o) for d in range(ndim)])
            place = list(start)
            for d, i in zip(kept, inner, strict=True):
                place[d] += i
            yield at, tuple(place) if inside else None


def gather(x: Any, indices: Any, numbers: Any, sizes: Sequence[int], mode: str, fill: Any) -> np.ndarray:
    """Slices of `x`; `fill` where they reach outside."""
    found = dict(places(numbers, x.shape, indices, sizes, mode))
    shape = np.max(list(found), 0) + 1
    out = np.empty(shape, x.dtype)
    for at, place in found.items():
        out[at] = fill if place is None else x[place]
    return out


def scatter(
    x: Any,
    indices: Any,
    updates: Any,
    numbers: Any,
    sizes: Sequence[int],
    combine: Callable[[Any, Any], Any],
    mode: str = "fill",
) -> np.ndarray:
    """`x` with `updates` combined into it, one after the other."""
    out = np.array(x)
    for at, place in places(numbers, x.shape, indices, sizes, mode):
        if place is not None:
            out[place] = combine(out[place], updates[at])
    return out
