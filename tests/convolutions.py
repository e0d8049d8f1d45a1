"""Convolutions and reductions of windows in NumPy, straight from their definitions."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def spread(x: np.ndarray, dilation: Sequence[int], padding: Sequence[tuple[int, int]], fill: Any = 0) -> np.ndarray:
    """`x` with holes between neighbours, then padded; negative padding cuts off."""
    shape = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape, dilation, strict=True)]
    holes = np.full(shape, fill, x.dtype)
    holes[tuple([slice(None, None, d) for d in dilation])] = x
    grown = np.pad(holes, [(max(low, 0), max(high, 0)) for low, high in padding], constant_values=fill)
    kept = []
    for n, (low, high) in zip(grown.shape, padding, strict=True):
        start = min(max(-low, 0), n)
        kept.append(slice(start, max(start, n - max(-high, 0))))
    return grown[tuple(kept)]


def windows(x: np.ndarray, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> np.ndarray:
    """Windows of `x`: shape (places..., window...)."""
    spans = [(k - 1) * d + 1 for k, d in zip(sizes, dilation, strict=True)]
    places = [max(0, (n - w) // s + 1) for n, w, s in zip(x.shape, spans, strides, strict=True)]
    out = np.empty((*places, *sizes), x.dtype)
    for at in itertools.product(*map(range, places)):
        starts = [p * s for p, s in zip(at, strides, strict=True)]
        rows = zip(starts, spans, dilation, strict=True)
        out[at] = x[tuple([slice(start, start + span, d) for start, span, d in rows])]
    return out


def convolve(
    lhs: Any, rhs: Any, numbers: Any, strides: Any, padding: Any, lhs_dilation: Any = None, rhs_dilation: Any = None,
    features: int = 1, batches: int = 1,
) -> np.ndarray:  # fmt: skip
    """Convolution by one einsum for each example and group."""
    lhs, rhs = np.transpose(lhs, numbers[0]), np.transpose(rhs, numbers[1])
    space = lhs.ndim - 2
    ones = (1,) * space
    lhs = spread(lhs, (1, 1, *(lhs_dilation or ones)), ((0, 0), (0, 0), *padding))
    groups, part = features * batches, rhs.shape[0] // (features * batches)
    seen = rhs.shape[1:]
    examples = lhs.shape[0] // batches
    out = []
    for g in range(groups):
        mine = lhs[g * examples : (g + 1) * examples] if batches > 1 else lhs
        mine = mine[:, g * seen[0] : (g + 1) * seen[0]] if features > 1 else mine
        kernel = rhs[g * part : (g + 1) * part]
        each = windows(mine, (1, *seen), (1, 1, *strides), (1, 1, *(rhs_dilation or ones)))
        each = each.reshape(each.shape[0], *each.shape[2 : space + 2], *seen)
        axes = tuple(range(-space - 1, 0))
        out.append(np.moveaxis(np.tensordot(each, kernel, (axes, tuple(range(1, space + 2)))), -1, 1))
    joined = np.concatenate(out, axis=1)
    return np.transpose(joined, np.argsort(numbers[2])).astype(lhs.dtype)


def reduce_windows(
    x: np.ndarray, fold: Callable[[np.ndarray], np.ndarray], fill: Any, sizes: Any, strides: Any, padding: Any,
    base: Any = None, dilation: Any = None,
) -> np.ndarray:  # fmt: skip
    """`fold` of each window, laid out along the last axis, of `x` padded with `fill`."""
    ones = (1,) * x.ndim
    seen = windows(spread(x, base or ones, padding, fill), sizes, strides, dilation or ones)
    return fold(seen.reshape(*seen.shape[: x.ndim], math.prod(sizes)))
