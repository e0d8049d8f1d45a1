"""Vectorisation: `Batch` replaces each operation on examples by one on batches. The batch axis is always 0."""

from collections.abc import Callable, Sequence
from typing import Any

from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.primitive import Primitive
from morphax.ir.trace import Trace, Tracer, check_leaks, run_under
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof
from morphax.support import config


class BatchTracer(Tracer):
    """One example of a batch."""

    __slots__ = ("val",)

    def __init__(self, trace: "Batch", val: Any):
        self.owner = trace
        self.val = val
        aval = typeof(val)
        self.aval = ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type, None, aval.varying)


class Batch(Trace):
    """Applies batch rules. `axis_name` names the mapped axis for collectives."""

    __slots__ = ("axis_name", "size", "spmd_axis_name")

    def __init__(self, parent: Trace, size: int, axis_name: Any = None, spmd_axis_name: Any = None):
        self.parent = parent
        self.size = size
        self.axis_name = axis_name
        self.spmd_axis_name = spmd_axis_name
        self.done = False

    def describe(self, tracer: Tracer) -> str:
        """Words that say what the traced value is."""
        return f" (one example of a batch of {self.size} under vmap)"

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        values: list[Any] = []
        flags: list[bool] = []
        for a in args:
            mine = a.__class__ is BatchTracer and a.owner is self
            values.append(a.val if mine else a)
            flags.append(mine)
        before = current.trace
        current.trace = self.parent
        try:
            if prim.collective is not None and self.axis_name in params["axes"]:
                outs, out_flags = prim.collective(prim, self.size, values, flags, self.axis_name, params)
                return [BatchTracer(self, o) if f else o for o, f in zip(outs, out_flags, strict=True)]
            if True not in flags:
                return self.parent.apply(prim, values, params)
            if prim.elementwise:
                outs = self.parent.apply(prim, align(values, flags, self.size), params)
            elif prim.carrier:
                outs, out_flags = prim.batch(self, prim, values, flags, params)
                return [BatchTracer(self, o) if f else o for o, f in zip(outs, out_flags, strict=True)]
            else:
                outs = prim.batch(prim, self.size, values, flags, params)
        finally:
            current.trace = before
        return [BatchTracer(self, o) for o in outs]


def align(values: Sequence[Any], flags: Sequence[bool], size: int) -> list[Any]:
    """Operands of an elementwise operation with their batch axes lined up; scalars without one stay scalars."""
    rank = max(typeof(x).ndim - flag for x, flag in zip(values, flags, strict=True))
    if rank == 0:
        return list(values)
    shape = next(typeof(x).shape[flag:] for x, flag in zip(values, flags, strict=True) if typeof(x).ndim - flag == rank)
    full = (size, *shape)
    aligned = []
    for x, flag in zip(values, flags, strict=True):
        ndim = typeof(x).ndim
        if ndim == 0 or ndim == rank + 1 and flag:
            aligned.append(x)
        else:
            dims = (0,) if flag else tuple(range(1, rank + 1))
            aligned.append(ew.broadcast_in_dim(x, shape=full, broadcast_dimensions=dims, sharding=None))
    return aligned


def batched(x: Any, size: int) -> Any:
    """`x`, which has no batch axis, repeated along a new one in front."""
    shape = typeof(x).shape
    return ew.broadcast(x, (size, *shape), (0,))


def batch(
    fun: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    flags: Sequence[bool],
    size: int,
    axis_name: Any = None,
    spmd_axis_name: Any = None,
) -> tuple[list[Any], list[bool]]:
    """Results of `fun` over a batch, and which of them have a batch axis (0)."""
    trace = Batch(current.trace, size, axis_name, spmd_axis_name)
    outside = current.axes
    if axis_name is not None:
        current.axes = {**outside, axis_name: size}
    tracers = [BatchTracer(trace, x) if flag else x for x, flag in zip(args, flags, strict=True)]
    try:
        outs = run_under(trace, fun, *tracers)
    finally:
        trace.done = True
        current.axes = outside
    mine = [o.__class__ is BatchTracer and o.owner is trace for o in outs]
    values = [o.val if m else o for o, m in zip(outs, mine, strict=True)]
    if config.check_tracer_leaks.value:
        del outs, tracers
        check_leaks(trace)
    return values, mine


def again(
    trace: Batch, fun: Callable[..., Sequence[Any]], args: Sequence[Any], flags: Sequence[bool]
) -> tuple[list[Any], list[bool]]:
    """Results of `fun` over the batch of `trace`, interpreted by the current trace instead of its parent.

    For rules that run later than the call that they belong to: they may close over other examples of that batch.
    """
    before = trace.parent, trace.done
    trace.parent, trace.done = current.trace, False
    tracers = [BatchTracer(trace, x) if flag else x for x, flag in zip(args, flags, strict=True)]
    try:
        outs = run_under(trace, fun, *tracers)
    finally:
        trace.parent, trace.done = before
    mine = [o.__class__ is BatchTracer and o.owner is trace for o in outs]
    return [o.val if m else o for o, m in zip(outs, mine, strict=True)], mine
