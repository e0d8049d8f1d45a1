"""Reductions by any associative function: of whole axes, and of windows.

The operations hold the function as a jaxpr on scalars. Derivatives, functions that close over arrays, and batches of
starting values go through the reduction written out: halves combined again and again, one axis after the other.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import Primitive
from morphax.ir.trace import stage
from morphax.ops import elementwise as ew
from morphax.ops import family, structure, window
from morphax.ops import reduce as reductions
from morphax.ops.family import typeof
from morphax.support import dtypes
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad

Combine = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def on_arrays(jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> Combine:
    """The function of scalars `jaxpr` on arrays of equal shapes, entry by entry."""

    def combine(xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        shape = typeof(xs[0]).shape
        size = math.prod(shape)
        flat = [structure.reshape_to(x, (size,)) for x in (*xs, *ys)]
        flags = [True] * len(flat)
        outs, mine = batching.batch(lambda *each: evaluate(jaxpr, consts, each), flat, flags, size)
        full = [o if m else batching.batched(o, size) for o, m in zip(outs, mine, strict=True)]
        return [structure.reshape_to(o, shape) for o in full]

    return combine


def _spread_start(inits: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    return [ew.full(shape, init) for init in inits]


def folded(combine: Combine, operands: Sequence[Any], inits: Sequence[Any], axes: tuple[int, ...]) -> list[Any]:
    """Reduction over `axes`, in the order of the entries, in a logarithmic number of steps."""
    shape = typeof(operands[0]).shape
    kept = tuple([d for d in range(len(shape)) if d not in axes])
    out = tuple([shape[d] for d in kept])
    count = math.prod([shape[d] for d in axes])
    start = _spread_start(inits, out)
    if not count:
        return start
    order = (*axes, *kept)
    xs = [structure.transpose(x, permutation=order) if order != tuple(range(len(shape))) else x for x in operands]
    xs = [structure.reshape_to(x, (count, *out)) for x in xs]
    while count > 1:
        half = count // 2
        even = [_every_other(x, 0, 2 * half) for x in xs]
        odd = [_every_other(x, 1, 2 * half) for x in xs]
        merged = combine(even, odd)
        if count % 2:
            last = [structure.slice_axis(x, count - 1, count, 0) for x in xs]
            merged = [structure.concatenate(m, end, dimension=0) for m, end in zip(merged, last, strict=True)]
        xs, count = merged, half + count % 2
    return combine(start, [structure.squeeze(x, dimensions=(0,)) for x in xs])


def _every_other(x: Any, first: int, limit: int) -> Any:
    shape = typeof(x).shape
    return structure.slice(
        x,
        start_indices=(first, *(0 for _ in shape[1:])),
        limit_indices=(limit, *shape[1:]),
        strides=(2, *(1 for _ in shape[1:])),
    )


def folded_windows(combine: Combine, operands: Sequence[Any], inits: Sequence[Any], windows: window.Windows) -> Any:
    """Reduction of windows, one axis after the other."""
    shape = typeof(operands[0]).shape
    if not all((*windows.places(shape), *shape)):
        return _spread_start(inits, windows.places(shape))
    xs = list(operands)
    for axis in windows.axes:
        grown = [window.padded(x, init, windows, axis) for x, init in zip(xs, inits, strict=True)]
        columns = [window.taps(x, windows, axis) for x in grown]
        entries = [list(row) for row in zip(*columns, strict=True)]
        while len(entries) > 1:
            pairs = [combine(a, b) for a, b in zip(entries[::2], entries[1::2], strict=False)]
            entries = pairs + entries[len(entries) - len(entries) % 2 :]
        xs = entries[0]
    return combine(_spread_start(inits, typeof(xs[0]).shape), xs)


# ---- the operations --------------------------------------------------------------------------------------------------


def _halves(operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    half = len(operands) // 2
    return list(operands[:half]), list(operands[half:])


def _check_function(name: str, operands: Sequence[ShapedArray], inits: Sequence[ShapedArray], jaxpr: Jaxpr) -> None:
    for x, init in zip(operands, inits, strict=True):
        if init.shape or init.dtype != x.dtype:
            raise TypeError(
                f"{name}: the initial value {init} must be a scalar of the operand's dtype, {x.dtype.name}."
            )
        if x.shape != operands[0].shape:
            raise TypeError(f"{name}: operands have shapes {operands[0].shape} and {x.shape}; they must be equal.")
    outs = jaxpr.out_avals
    if [(a.shape, a.dtype) for a in outs] != [((), x.dtype) for x in operands]:
        wanted = ", ".join(f"{x.dtype.name}[]" for x in operands)
        raise TypeError(f"{name}: the computation returns {', '.join(map(str, outs))}; it must return {wanted}.")


def check_reduce(operands: Sequence[Any], axes: tuple[int, ...]) -> None:
    """Refuse operands and axes that do not fit."""
    shapes = [typeof(x).shape for x in operands]
    family.check_axes("reduce", axes, len(shapes[0]))
    if any(shape != shapes[0] for shape in shapes):
        raise TypeError(f"reduce: operands have shapes {', '.join(map(str, shapes))}; they must be equal.")


def _region(low: Any, ins: Sequence[ShapedArray], jaxpr: Jaxpr) -> Any:
    half = len(ins) // 2
    elements = [ShapedArray((), a.dtype) for a in ins[:half]]
    return ([*elements, *elements], lambda *pair: low.equations(jaxpr, pair))


def _by_writing_out(written: Callable[..., list[Any]]) -> Callable[..., Any]:
    """jvp from the reduction written out."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        active = [
            None if t is None or not dtypes.is_inexact(typeof(x).dtype) else t
            for x, t in zip(primals, tangents, strict=True)
        ]
        return ad.jvp(lambda *xs: written(xs, params), primals, active)

    return jvp


def _reduce_type(*operands: ShapedArray, dimensions: tuple[int, ...], jaxpr: Jaxpr) -> list[ShapedArray]:
    xs, inits = _halves(operands)
    family.check_axes("reduce", dimensions, xs[0].ndim)
    _check_function("reduce", xs, inits, jaxpr)
    shape = reductions.reduced_shape(xs[0].shape, dimensions)
    return [
        x.update(shape=shape, weak_type=x.weak_type and a.weak_type) for x, a in zip(xs, jaxpr.out_avals, strict=True)
    ]


def _lower_reduce(low: Any, ins: Any, outs: Any, *operands: Any, dimensions: tuple[int, ...], jaxpr: Jaxpr) -> Any:
    region = _region(low, ins, jaxpr)
    return low.op("stablehlo.reduce", outs, operands, {"dimensions": family.ints(dimensions)}, (region,))


def _written_reduce(operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    xs, inits = _halves(operands)
    return folded(on_arrays(params["jaxpr"]), xs, inits, params["dimensions"])


def _reduce_batch(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    xs, inits = _halves(operands)
    mine, starts = _halves(flags)
    if any(starts):
        return batching.batch(lambda *each: _written_reduce(each, params), operands, flags, trace.size)
    xs = [structure.batched(x, flag, trace.size) for x, flag in zip(xs, mine, strict=True)]
    outs = prim(*xs, *inits, **{**params, "dimensions": family.shift(params["dimensions"])})
    return outs, [True] * len(outs)


reduce = Primitive(
    "reduce",
    type=_reduce_type,
    lower=_lower_reduce,
    batch=_reduce_batch,
    multiple=True,
    carrier=True,
    jvp=_by_writing_out(_written_reduce),
)


def _window_type(*operands: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
    xs, inits = _halves(operands)
    windows = window.windows_of(params)
    window.check_windows("reduce_window", xs[0].shape, windows)
    _check_function("reduce_window", xs, inits, jaxpr)
    shape = windows.places(xs[0].shape)
    return [
        x.update(shape=shape, weak_type=x.weak_type and a.weak_type) for x, a in zip(xs, jaxpr.out_avals, strict=True)
    ]


def _lower_window(low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, **params: Any) -> Any:
    windows = window.windows_of(params)
    xs, inits = _halves(operands)
    if not outs[0].ndim:
        return low.equations(jaxpr, [*inits, *xs])
    if not outs[0].size:
        return [low.constant(0, out) for out in outs]
    if not ins[0].size:
        return [low.broadcast(x, ShapedArray((), out.dtype), out.shape, ()) for x, out in zip(inits, outs, strict=True)]
    return low.op("stablehlo.reduce_window", outs, operands, windows.attributes(), (_region(low, ins, jaxpr),))


def _written_window(operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    xs, inits = _halves(operands)
    return folded_windows(on_arrays(params["jaxpr"]), xs, inits, window.windows_of(params))


def _window_batch(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    xs, inits = _halves(operands)
    mine, starts = _halves(flags)
    if any(starts):
        return batching.batch(lambda *each: _written_window(each, params), operands, flags, trace.size)
    xs = [structure.batched(x, flag, trace.size) for x, flag in zip(xs, mine, strict=True)]
    moved = window.windows_of(params).batched().params()
    outs = prim(*xs, *inits, **{**params, **moved})
    return outs, [True] * len(outs)


reduce_window = Primitive(
    "reduce_window",
    type=_window_type,
    lower=_lower_window,
    batch=_window_batch,
    multiple=True,
    carrier=True,
    show=lambda params: {**params, "consts": ()},
    read=lambda shown, ins, outs: {k: v for k, v in shown.items() if k != "consts"},
    jvp=_by_writing_out(_written_window),
)


# ---- functions that have operations of their own ---------------------------------------------------------------------

_KNOWN = {
    ew.add: reductions.SUM,
    ew.mul: reductions.PROD,
    ew.max: reductions.MAX,
    ew.min: reductions.MIN,
    ew.and_: reductions.AND,
    ew.or_: reductions.OR,
    ew.xor: reductions.XOR,
}
REDUCTIONS: dict[Primitive, Callable[..., Any]] = {
    ew.add: reductions.reduce_sum,
    ew.mul: reductions.reduce_prod,
    ew.max: reductions.reduce_max,
    ew.min: reductions.reduce_min,
    ew.and_: reductions.reduce_and,
    ew.or_: reductions.reduce_or,
    ew.xor: reductions.reduce_xor,
}
WINDOWS: dict[Primitive, Callable[..., Any]] = {
    ew.add: window.reduce_window_sum,
    ew.max: window.reduce_window_max,
    ew.min: window.reduce_window_min,
}


def recognised(jaxpr: Jaxpr, init: Any, table: dict[Primitive, Callable[..., Any]]) -> Any:
    """The operation for a computation that is one known operation of its operands, started from its identity."""
    if len(jaxpr.eqns) != 1 or len(jaxpr.outvars) != 1 or jaxpr.constvars:
        return None
    eqn = jaxpr.eqns[0]
    prim = table.get(eqn.primitive)
    if prim is None or eqn.outvars[0] is not jaxpr.outvars[0]:
        return None
    if set(eqn.invars) != set(jaxpr.invars) or not isinstance(init, np.generic):
        return None
    dtype = jaxpr.in_avals[0].dtype
    combiner = _KNOWN[eqn.primitive]
    if init.dtype != dtype or dtypes.kind(dtype) not in combiner.kinds:
        return None
    identity = np.asarray(combiner.identity(dtype)).astype(dtype)
    return prim if np.array_equal(identity, init) else None


def staged(computation: Callable[[list[Any], list[Any]], list[Any]], avals: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """Jaxpr of a function of two lists of scalars, and the arrays that it closes over."""
    count = len(avals)
    types = [ShapedArray((), a.dtype) for a in (*avals, *avals)]
    return stage(lambda *xs: computation(list(xs[:count]), list(xs[count:])), types)
