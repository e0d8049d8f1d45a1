"""Histograms: counts, or sums of weights, in bins between edges."""

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, promotion, reductions, shapes, sorting, statistics, ufuncs, updates
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type


def _bins_of(name: str, bins: Any) -> Any:
    """`bins` as a number, or as an array of edges."""
    if isinstance(bins, str):
        raise NotImplementedError(
            f"{name}: rules for the number of bins, here {bins!r}, depend on values and are not supported. Give a "
            "number or edges: numpy.histogram_bin_edges(a, bins) finds them."
        )
    if promotion.is_integer(bins):
        return operator.index(creation.concrete(name, "bins", bins))
    edges = creation.asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"{name}: bins must be a number, or edges along one axis; they have shape {edges.shape}.")
    return edges


def _as_operand(x: Any) -> Any:
    return creation.asarray(x) if isinstance(x, (list, tuple)) else x


@program("bins")
def _edges(a: Any, limits: Any, bins: int) -> Any:
    a = promotion.array("histogram_bin_edges", a)
    dtype = dtypes.to_inexact(typeof(a).dtype)
    if limits is not None:
        low, high = (promotion.as_dtype(limits[k], dtype) for k in (0, 1))
    elif not typeof(a).size:
        low, high = family.scalar(0, dtype), family.scalar(1, dtype)
    else:
        a = structure.convert(a, dtype)
        low, high = reductions.min(a), reductions.max(a)
    same = ew.eq(low, high)
    half = family.scalar(0.5, dtype)
    low, high = ew.select_n(same, low, ew.sub(low, half)), ew.select_n(same, high, ew.add(high, half))
    return creation.linspace(low, high, bins + 1, dtype=dtype)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Edges of the bins that `histogram` uses.

    Args:
        a: real array.
        bins: number of bins, or their edges.
        range: least and greatest edge; those of the values by default.
        weights: not used.

    >>> from morphax import numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), bins=2).tolist()
    [0.0, 2.0, 4.0]
    """
    a, bins = promotion.checked("histogram_bin_edges", _as_operand(a)), _bins_of("histogram_bin_edges", bins)
    if not isinstance(bins, int):
        return creation.asarray(promotion.inexact("histogram_bin_edges", bins))
    if bins < 1:
        raise ValueError(f"histogram_bin_edges: bins must be at least 1; it is {bins}.")
    if range is not None and len(range) != 2:
        raise ValueError(f"histogram_bin_edges: range must be the least and the greatest edge; it is {range!r:.60}.")
    return _edges(a, None if range is None else tuple(range), bins=bins)


def _bin_numbers(a: Any, edges: Any) -> tuple[Any, Any]:
    """The bin of each value, and whether there is one: bins contain their lower edge, the last one both."""
    last = typeof(edges).shape[0] - 1
    top = structure.reshape_to(structure.slice_axis(edges, last, last + 1, 0), ())
    place = sorting.searchsorted(edges, a, side="right")
    place = ew.select_n(ew.eq(a, top), place, family.like(place, last))
    inside = ew.and_(ew.ge(place, family.like(place, 1)), ew.le(place, family.like(place, last)))
    return ew.sub(place, family.like(place, 1)), inside


def _totals(places: Any, inside: Any, weights: Any, size: int) -> Any:
    weights = ew.select_n(inside, ew.full(typeof(weights).shape, family.like(weights, 0)), weights)
    bounded = ew.select_n(inside, ew.full(typeof(places).shape, family.like(places, 0)), places)
    return updates.Place(ew.full((size,), np.zeros((), typeof(weights).dtype)), bounded).add(weights, mode="drop")


@program("density")
def _histogram(a: Any, edges: Any, weights: Any, density: bool) -> Any:
    a = promotion.array("histogram", a)
    flat = structure.reshape_to(a, (typeof(a).size,))
    flat, edges = promotion.same_dtype("histogram", (flat, edges))
    if weights is None:
        weights = ew.full(typeof(flat).shape, np.ones((), typeof(flat).dtype))
    else:
        weights = promotion.inexact("histogram", weights)
        if typeof(weights).shape != typeof(a).shape:
            raise ValueError(
                f"histogram: weights must have the shape of a, {typeof(a).shape}; they have {typeof(weights).shape}."
            )
        weights = structure.reshape_to(weights, (typeof(a).size,))
    counts = _totals(*_bin_numbers(flat, edges), weights, typeof(edges).shape[0] - 1)
    if density:
        widths = statistics.diff(edges)
        counts = ufuncs.divide(ufuncs.divide(counts, widths), reductions.sum(counts))
    return counts


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """How many values lie in each bin, as floats, and the edges of the bins.

    Args:
        a: real array, read flat.
        bins: number of bins, or their edges in rising order. A bin contains its lower edge, the last one both.
        range: least and greatest edge; those of the values by default.
        weights: what each value counts, in the shape of `a`.
        density: scale so that the integral is 1.

    >>> from morphax import numpy as jnp
    >>> jnp.histogram(jnp.array([1.0, 2.0, 2.0]), bins=2)[0].tolist()
    [1.0, 2.0]
    """
    a = _as_operand(a)
    edges = histogram_bin_edges(a, bins, range)
    return _histogram(a, edges, _as_operand(weights), density=bool(density)), edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any, Any]:
    """Counts of pairs in bins of both, and the edges along each; arguments as in `histogramdd`.

    >>> from morphax import numpy as jnp
    >>> jnp.histogram2d(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    x, y = _as_operand(x), _as_operand(y)
    if shapes.shape(x) != shapes.shape(y) or shapes.ndim(x) != 1:
        raise TypeError(
            f"histogram2d: x and y must have one axis of the same size; their shapes are {shapes.shape(x)} and "
            f"{shapes.shape(y)}."
        )
    try:
        apart = len(bins) == 2
    except TypeError:
        apart = False
    if not (apart or promotion.is_integer(bins)):
        bins = [bins, bins]
    counts, edges = histogramdd(shapes.stack([x, y], axis=1), bins, range, weights, density)
    return counts, edges[0], edges[1]


@program("density")
def _histogramdd(sample: Any, edges: list[Any], weights: Any, density: bool) -> Any:
    n = typeof(sample).shape[0]
    sizes = [typeof(e).shape[0] - 1 for e in edges]
    place, inside = ew.full((n,), np.zeros((), dtypes.default_int_dtype())), ew.full((n,), np.asarray(True))
    for k, e in enumerate(edges):
        column = structure.squeeze(structure.slice_axis(sample, k, k + 1, 1), dimensions=(1,))
        here, within = _bin_numbers(*promotion.same_dtype("histogramdd", (column, e)))
        place = ew.add(ew.mul(place, family.like(place, sizes[k])), structure.convert(here, typeof(place).dtype))
        inside = ew.and_(inside, within)
    if weights is None:
        weights = ew.full((n,), np.ones((), dtypes.default_int_dtype()))
    else:
        weights = promotion.array("histogramdd", weights)
    counts = structure.reshape_to(_totals(place, inside, weights, math.prod(sizes)), tuple(sizes))
    if density:
        counts = ufuncs.divide(counts, reductions.sum(counts))
        for k, e in enumerate(edges):
            widths = statistics.diff(e)
            counts = ufuncs.divide(counts, creation.reshaped(widths, shape=(sizes[k],) + (1,) * (len(edges) - k - 1)))
    return counts


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """How many points lie in each box of bins, and the edges along each dimension.

    Args:
        sample: points, shape (n, d).
        bins: number of bins, or for each dimension a number or edges.
        range: for each dimension the least and the greatest edge, or None.
        weights: what each point counts, shape (n,).
        density: scale so that the integral is 1.

    >>> from morphax import numpy as jnp
    >>> jnp.histogramdd(jnp.array([[1.0, 3.0], [2.0, 4.0]]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    sample = promotion.checked("histogramdd", sample)
    if shapes.ndim(sample) != 2:
        raise ValueError(f"histogramdd: sample must have shape (n, d); it has {shapes.shape(sample)}.")
    n, d = shapes.shape(sample)
    weights = _as_operand(weights)
    if weights is not None and shapes.shape(weights) != (n,):
        raise ValueError(f"histogramdd: weights must have shape ({n},); they have {shapes.shape(weights)}.")
    each = _for_each("bins", [bins] * d if promotion.is_integer(bins) else bins, d)
    limits = _for_each("range", [None] * d if range is None else range, d)
    sample = creation.asarray(sample)
    edges = [histogram_bin_edges(sample[:, k], each[k], limits[k]) for k in builtins.range(d)]
    return _histogramdd(sample, edges, weights, density=bool(density)), edges


def _for_each(what: str, values: Sequence[Any], d: int) -> Sequence[Any]:
    if len(values) != d:
        raise ValueError(f"histogramdd: {what} must have one entry for each of {d} dimensions; it has {len(values)}.")
    return values
