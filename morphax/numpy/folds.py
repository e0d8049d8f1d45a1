"""The methods of universal functions: reduce, accumulate, at, reduceat."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.control import loops
from morphax.ir import avals
from morphax.numpy import creation, promotion, reductions, shapes, sorting, ufuncs, updates
from morphax.ops import elementwise as ew
from morphax.ops import reduce, structure
from morphax.support import dtypes

typeof = avals.operand_type


def _lined_up(name: str, a: Any, axis: Any) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """`a` with the axes to be folded made one, in front; its shape, and these axes."""
    shape = typeof(a).shape
    axes = promotion.axes_of(name, axis, len(shape))
    rest = tuple([d for d in range(len(shape)) if d not in axes])
    order = (*axes, *rest)
    a = structure.transpose(a, permutation=order) if order != tuple(range(len(shape))) else a
    count = creation._size(tuple([shape[d] for d in axes]))
    return structure.reshape_to(a, (count, *[shape[d] for d in rest])), shape, axes


def _folded(function: Any) -> Callable[..., Any]:
    """Reduction by applying the function to one entry after another."""
    name = function.__name__

    def fold(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = promotion.array(name, a)
        a = a if dtype is None else structure.convert(a, dtypes.named_dtype(dtype))
        if where is not None:
            if function.identity is None:
                raise ValueError(f"{name}.reduce: where needs a function with an identity, which {name} has not.")
            a = sorting.where(where, a, np.asarray(function.identity, typeof(a).dtype))
        a, shape, axes = _lined_up(name, a, axis)
        if initial is None and not typeof(a).shape[0]:
            if function.identity is None:
                raise ValueError(f"{name}.reduce: shape {shape} has nothing to reduce. Give initial.")
            initial = function.identity
        if initial is None:
            carry = structure.squeeze(structure.slice_axis(a, 0, 1, 0), dimensions=(0,))
            a = structure.slice_axis(a, 1, typeof(a).shape[0], 0)
        else:
            carry = creation.full(typeof(a).shape[1:], initial, typeof(a).dtype)
        out, _ = loops.scan(lambda c, x: (function(c, x), None), carry, a)
        return reductions.kept(out, shape, axes, keepdims)

    return fold


def _accumulated(function: Any) -> Callable[..., Any]:
    """Running results by applying the function to one entry after another."""
    name = function.__name__

    def accumulate(a: Any, axis: int, dtype: Any) -> Any:
        a = promotion.array(name, a)
        a = a if dtype is None else structure.convert(a, dtypes.named_dtype(dtype))
        axis = promotion.axis_of(name, axis, typeof(a).ndim)
        a = structure.move_axis(a, axis, 0)
        if not typeof(a).shape[0]:
            return structure.move_axis(a, 0, axis)
        first = structure.squeeze(structure.slice_axis(a, 0, 1, 0), dimensions=(0,))

        def step(carry: Any, x: Any) -> tuple[Any, Any]:
            carry = function(carry, x)
            return carry, carry

        _, rest = loops.scan(step, first, structure.slice_axis(a, 1, typeof(a).shape[0], 0))
        out = structure.concatenate(structure.expand_dims(first, (0,)), rest, dimension=0)
        return structure.move_axis(out, 0, axis)

    return accumulate


def _summing(fun: Any) -> Callable[..., Any]:
    def fold(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        return fun(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    return fold


def _extreme(fun: Any) -> Callable[..., Any]:
    def fold(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = a if dtype is None else creation.astype(a, dtype)
        return fun(a, axis=axis, keepdims=keepdims, initial=initial, where=where)

    return fold


def _truth(fun: Any, combine: Any) -> Callable[..., Any]:
    def fold(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        out = fun(a, axis=axis, keepdims=keepdims, where=where)
        return out if initial is None else combine(out, initial)

    return fold


def _bits(prim: Any, combine: Any, name: str, fill: int) -> Callable[..., Any]:
    def fold(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = promotion.array(name, a)
        a = a if dtype is None else structure.convert(a, dtypes.named_dtype(dtype))
        identity = lambda d: np.True_ if d == np.bool_ and fill else np.asarray(fill).astype(d)[()]  # noqa: E731
        return reductions._reduced(name, prim, combine, identity, a, axis, keepdims, initial, where)

    return fold


def _running(prim: Any, name: str) -> Callable[..., Any]:
    def accumulate(a: Any, axis: int, dtype: Any) -> Any:
        return reductions._running(name, prim, a, axis, dtype, None)

    return accumulate


# function -> (reduce, accumulate, method of x.at); what is missing is done entry by entry.
_METHODS: dict[Any, tuple[Any, Any, str | None]] = {
    ufuncs.add: (_summing(reductions.sum), _running(reduce.cumsum, "add"), "add"),
    ufuncs.multiply: (_summing(reductions.prod), _running(reduce.cumprod, "multiply"), "multiply"),
    ufuncs.subtract: (None, None, "subtract"),
    ufuncs.maximum: (_extreme(reductions.max), _running(reduce.cummax, "maximum"), "max"),
    ufuncs.minimum: (_extreme(reductions.min), _running(reduce.cummin, "minimum"), "min"),
    ufuncs.logical_and: (_truth(reductions.all, ufuncs.logical_and), None, None),
    ufuncs.logical_or: (_truth(reductions.any, ufuncs.logical_or), None, None),
    ufuncs.logical_xor: (None, None, None),
    ufuncs.bitwise_and: (_bits(reduce.reduce_and, ew.and_, "bitwise_and", -1), None, None),
    ufuncs.bitwise_or: (_bits(reduce.reduce_or, ew.or_, "bitwise_or", 0), None, None),
    ufuncs.bitwise_xor: (_bits(reduce.reduce_xor, ew.xor, "bitwise_xor", 0), None, None),
    ufuncs.logaddexp: (None, None, None),
    ufuncs.logaddexp2: (None, None, None),
    ufuncs.negative: (None, None, None),
}


def _changing(function: Any, method: str | None) -> Callable[..., Any]:
    def at(a: Any, indices: Any, b: Any) -> Any:
        place = updates.Place(creation.asarray(a), indices)
        if function.nin == 1:
            return place.apply(function)
        if method is not None:
            return vars(updates.Place)[method](place, b)
        return place.set(function(place.get(), b))

    return at


def _segmented(function: Any) -> Callable[..., Any]:
    def reduceat(a: Any, indices: Any, axis: int, dtype: Any) -> Any:
        a = promotion.checked(function.__name__, a)
        axis = promotion.axis_of(function.__name__, axis, typeof(a).ndim)
        starts = np.asarray(indices).tolist()
        stops = [*starts[1:], typeof(a).shape[axis]]
        parts = []
        for start, stop in zip(starts, stops, strict=True):
            part = structure.slice_axis(a, start, stop if stop > start else start + 1, axis)
            parts.append(function.reduce(part, axis=axis, dtype=dtype))
        return shapes.stack(parts, axis=axis)

    return reduceat


def equip(function: Any, fold: Any = None, accumulate: Any = None, method: str | None = None) -> None:
    """Give a universal function its methods; what is missing is done entry by entry."""
    two = function.nin == 2
    function.equip(
        reduce=(fold or _folded(function)) if two else None,
        accumulate=(accumulate or _accumulated(function)) if two else None,
        at=_changing(function, method),
        reduceat=_segmented(function) if two else None,
    )


for _function, _row in _METHODS.items():
    equip(_function, *_row)
