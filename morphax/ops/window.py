"""Reductions of windows: sums, maxima and minima, and what their derivatives need.

A reduction of windows is one of its axes after the other, last axis first: that keeps the order of the entries, so that
of equal extremes the first wins, and takes as many steps as the sides of a window add up to, not their product.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.primitive import Primitive, named
from morphax.ir.trace import stage
from morphax.ops import elementwise as ew
from morphax.ops import family, reduce, structure
from morphax.ops.convolution import dilated, strided
from morphax.ops.family import typeof
from morphax.support import dtypes

Pads = tuple[tuple[int, int], ...]


class Windows(NamedTuple):
    """Where windows lie: a size, stride, padding and two dilations for each axis of the operand."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Pads
    base: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def axes(self) -> list[int]:
        """Axes along which something happens, last first."""
        trivial = (1, 1, (0, 0), 1)
        rows = zip(self.sizes, self.strides, self.padding, self.base, strict=True)
        return [d for d, row in enumerate(rows) if row != trivial][::-1]

    def places(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        found = []
        for d, size in enumerate(shape):
            whole = dilated(size, self.base[d]) + sum(self.padding[d])
            found.append(strided(whole, dilated(self.sizes[d], self.dilation[d]), self.strides[d]))
        return tuple(found)

    def only(self, axis: int) -> "Windows":
        """The same along one axis, and nothing along the others."""
        before, after = (1,) * axis, (1,) * (len(self.sizes) - axis - 1)

        def ones_but(values: tuple[int, ...]) -> tuple[int, ...]:
            return (*before, values[axis], *after)

        padding = (*(((0, 0),) * axis), self.padding[axis], *(((0, 0),) * len(after)))
        sizes, strides, base, dilation = map(ones_but, (self.sizes, self.strides, self.base, self.dilation))
        return Windows(sizes, strides, padding, base, dilation)

    def batched(self) -> "Windows":
        """The same with one more axis in front."""
        return Windows(
            (1, *self.sizes), (1, *self.strides), ((0, 0), *self.padding), (1, *self.base), (1, *self.dilation)
        )

    def attributes(self) -> dict[str, str]:
        """As attributes of `stablehlo.reduce_window`."""
        return {
            "window_dimensions": family.ints(self.sizes),
            "window_strides": family.ints(self.strides),
            "base_dilations": family.ints(self.base),
            "window_dilations": family.ints(self.dilation),
            "padding": f"dense<{[list(p) for p in self.padding]}> : tensor<{len(self.sizes)}x2xi64>",
        }

    def params(self) -> dict[str, Any]:
        """As parameters of a primitive."""
        return {
            "window_dimensions": self.sizes,
            "window_strides": self.strides,
            "padding": self.padding,
            "base_dilation": self.base,
            "window_dilation": self.dilation,
        }


def windows_of(params: dict[str, Any]) -> Windows:
    """Windows from the parameters of a primitive; absent dilations are 1."""
    sizes = params["window_dimensions"]
    ones = (1,) * len(sizes)
    return Windows(
        sizes,
        params["window_strides"],
        params["padding"],
        params.get("base_dilation", ones),
        params.get("window_dilation", ones),
    )


def check_windows(name: str, shape: Sequence[int], windows: Windows) -> None:
    """Refuse windows that do not fit an operand."""
    for what, values in windows.params().items():
        if len(values) != len(shape):
            raise TypeError(
                f"{name}: {what} {values} has {len(values)} entries for an operand of shape {tuple(shape)}. Give one "
                "for each dimension."
            )
        if what != "padding" and any(v < 1 for v in values):
            raise ValueError(f"{name}: {what} {values} must be at least 1 everywhere.")
    for d, size in enumerate(shape):
        whole = dilated(size, windows.base[d]) + sum(windows.padding[d])
        if whole < 0:
            raise ValueError(f"{name}: padding {windows.padding[d]} cuts more off axis {d} than there is: {size}.")


# ---- one axis of windows by slices, as ordinary operations -----------------------------------------------------------


def padded(x: Any, fill: Any, windows: Windows, axis: int) -> Any:
    """`x` with the padding and the holes that windows along one axis see, both holding `fill`."""
    low, high = windows.padding[axis]
    base = windows.base[axis]
    if (low, high, base) == (0, 0, 1):
        return x
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (low, high, base - 1)
    return structure.pad(x, fill, padding_config=tuple(config))


def taps(x: Any, windows: Windows, axis: int) -> list[Any]:
    """For each entry of a window along one axis of a padded operand, its values at all places."""
    shape = typeof(x).shape
    step, gap = windows.strides[axis], windows.dilation[axis]
    count = strided(shape[axis], dilated(windows.sizes[axis], gap), step)
    found = []
    for k in range(windows.sizes[axis]):
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        starts[axis] = k * gap
        limits[axis] = k * gap + (count - 1) * step + 1 if count else k * gap
        strides[axis] = step
        cut = {"start_indices": tuple(starts), "limit_indices": tuple(limits)}
        found.append(structure.slice(x, **cut, strides=tuple(strides) if step > 1 else None))
    return found


def _spread(x: Any, k: int, windows: Windows, axis: int, size: int) -> Any:
    """Transpose of taking the k-th entry of each window, padding and the rest."""
    low, base = windows.padding[axis][0], windows.base[axis]
    step, start = windows.strides[axis], k * windows.dilation[axis]
    count = typeof(x).shape[axis]
    whole = dilated(size, base)
    before = start - low
    after = whole - before - dilated(count, step)
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (before, after, step - 1)
    grown = structure.pad(x, family.like(x, 0), padding_config=tuple(config))
    if base == 1:
        return grown
    shape = typeof(grown).shape
    strides = tuple([base if d == axis else 1 for d in range(len(shape))])
    return structure.slice(grown, start_indices=(0,) * len(shape), limit_indices=shape, strides=strides)


# ---- sums and extremes -----------------------------------------------------------------------------------------------


def _emit_windows(low: Any, combiner: Any, aval: Any, x: Any, windows: Windows) -> tuple[Any, Any]:
    element = aval.update(shape=())
    start = low.constant(combiner.identity(aval.dtype), element)
    out = aval.update(shape=windows.places(aval.shape))
    body = ((element, element), lambda a, b: [combiner.combine(low, element, a, b)])
    return low.op("stablehlo.reduce_window", (out,), (x, start), windows.attributes(), (body,))[0], out


def _lowering(combiner: Any) -> Callable[..., Any]:
    def lower(low: Any, ins: Any, outs: Any, x: Any, **params: Any) -> Any:
        if not outs[0].ndim:
            return [x]
        if not (outs[0].size and ins[0].size):
            return [low.constant(combiner.identity(outs[0].dtype), outs[0])]
        return [_emit_windows(low, combiner, ins[0], x, windows_of(params))[0]]

    return lower


def _lowering_by_axes(combiner: Any, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """For the CPU, whose loops over windows are scalar code: one axis after the other, 2 to 14 times as fast. Strided
    windows of sides 1 and 2 are slices, which fuse into one vectorised loop."""
    direct = _lowering(combiner)

    def lower(low: Any, ins: Any, outs: Any, x: Any, **params: Any) -> Any:
        windows = windows_of(params)
        if not (outs[0].size and ins[0].size) or not windows.axes:
            return direct(low, ins, outs, x, **params)
        if max(windows.sizes) > 2 or max(windows.strides) == 1:
            aval = ins[0]
            for axis in windows.axes:
                x, aval = _emit_windows(low, combiner, aval, x, windows.only(axis))
            return [x]

        def run(y: Any) -> list[Any]:
            fill = family.scalar(combiner.identity(ins[0].dtype), ins[0].dtype)
            for axis in windows.axes:
                first, *rest = taps(padded(y, fill, windows, axis), windows, axis)
                y = combine(first, *rest) if rest else first
            return [y]

        return low.equations(stage(run, (_plain(ins[0]),))[0], [x])

    return lower


def _plain(aval: ShapedArray) -> ShapedArray:
    """The type without what lowering has no use for."""
    return ShapedArray(aval.shape, aval.dtype)


def _batch(prim: Primitive, size: int, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    operands = [structure.batched(x, flag, size) for x, flag in zip(operands, flags, strict=True)]
    moved = windows_of(params).batched().params()
    return [prim(*operands, **{name: moved.get(name, value) for name, value in params.items()})]


def _reduction(name: str, combiner: Any, combine: Callable[[Any, Any], Any], **story: Any) -> Primitive:
    def type_rule(x: Any, **params: Any) -> Any:
        family.check_kind(name, x.dtype, combiner.kinds)
        windows = windows_of(params)
        check_windows(name, x.shape, windows)
        return x.update(shape=windows.places(x.shape))

    lower = {"cpu": _lowering_by_axes(combiner, combine), "default": _lowering(combiner)}
    return Primitive(name, type=type_rule, lower=lower, batch=_batch, **story)


def _sum_transpose(ct: Any, x: Any, **params: Any) -> Any:
    # Spread over the dilated, padded operand; then each entry sums over the windows in which it was.
    windows = windows_of(params)
    if not (typeof(ct).size and x.aval.size):
        return (ew.zeros(x.aval),)
    config = []
    for d, size in enumerate(x.aval.shape):
        span = dilated(windows.sizes[d], windows.dilation[d])
        low = span - 1 - windows.padding[d][0]
        whole = dilated(size, windows.base[d])
        high = whole + span - 1 - dilated(typeof(ct).shape[d], windows.strides[d]) - low
        config.append((low, high, windows.strides[d] - 1))
    grown = structure.pad(ct, family.like(ct, 0), padding_config=tuple(config))
    ones = (1,) * len(windows.sizes)
    nothing = ((0, 0),) * len(windows.sizes)
    back = Windows(windows.sizes, windows.base, nothing, ones, windows.dilation)
    return (reduce_window_sum(grown, **back.params()),)


def _extreme_jvp(prim: Callable[[], Primitive], select: Primitive) -> Callable[..., Any]:
    """The tangent is that of the extreme; of equal ones the first in the window."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        y = prim()(x, **params)
        if t is None or not dtypes.is_inexact(typeof(x).dtype):
            return y, None
        return y, select_and_gather_add(t, x, **{**params, "select_prim": select})

    return jvp


reduce_window_sum = _reduction("reduce_window_sum", reduce.SUM, ew.add, linear=(0,), transpose=_sum_transpose)
reduce_window_max = _reduction(
    "reduce_window_max", reduce.MAX._replace(kinds="fiub"), ew.max, jvp=_extreme_jvp(lambda: reduce_window_max, ew.ge)
)
reduce_window_min = _reduction(
    "reduce_window_min", reduce.MIN._replace(kinds="fiub"), ew.min, jvp=_extreme_jvp(lambda: reduce_window_min, ew.le)
)


# ---- entries chosen by those of another array ------------------------------------------------------------------------


def _worst(select: Primitive, dtype: Any) -> np.generic:
    """What padding holds, so that it is not chosen."""
    return family.scalar((reduce.lowest if select is ew.ge else reduce.highest)(dtype), dtype)


def _gathered(t: Any, x: Any, windows: Windows, select: Primitive) -> Any:
    """From each window of `t` the entry that stands where `x` is extreme."""
    fill = _worst(select, typeof(x).dtype)
    for axis in windows.axes:
        given = taps(padded(x, fill, windows, axis), windows, axis)
        moving = taps(padded(t, family.like(t, 0), windows, axis), windows, axis)
        x, t = given[0], moving[0]
        for other, moved in zip(given[1:], moving[1:], strict=True):
            kept = select(x, other)
            x = ew.select_n(kept, other, x)
            t = ew.select_n(kept, moved, t)
    return t


def _scattered(source: Any, x: Any, windows: Windows, select: Primitive) -> Any:
    """Transpose of `_gathered`: each entry of `source` added to zeros like `x`, where `x` is extreme in its window."""
    fill = _worst(select, typeof(x).dtype)
    chosen = []
    for axis in windows.axes:
        size = typeof(x).shape[axis]
        first, *rest = taps(padded(x, fill, windows, axis), windows, axis)
        index = ew.full(typeof(first).shape, np.int32(0))
        for k, other in enumerate(rest, 1):
            kept = select(first, other)
            first = ew.select_n(kept, other, first)
            index = ew.select_n(kept, np.int32(k), index)
        x = first
        chosen.append((axis, size, index))
    for axis, size, index in reversed(chosen):
        total = None
        for k in range(windows.sizes[axis]):
            mine = ew.select_n(ew.eq(index, np.int32(k)), family.like(source, 0), source)
            part = _spread(mine, k, windows, axis, size)
            total = part if total is None else ew.add(total, part)
        source = total
    return source


def _check_selection(name: str, first: Any, x: Any, select: Primitive) -> None:
    dtype = family.common_dtype(name, (first, x))
    family.check_kind(name, dtype, "fiu")
    if select not in (ew.ge, ew.le):
        raise ValueError(f"{name}: select_prim {select} must be ge or le.")


def _gather_type(t: Any, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
    name = "select_and_gather_add"
    _check_selection(name, t, x, select_prim)
    windows = windows_of(params)
    check_windows(name, x.shape, windows)
    if t.shape != x.shape:
        raise TypeError(f"{name}: the operands have shapes {t.shape} and {x.shape}; they must be equal.")
    return family.joined(name, (t, x), windows.places(x.shape), t.dtype)


def _scatter_type(source: Any, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
    name = "select_and_scatter_add"
    _check_selection(name, source, x, select_prim)
    windows = windows_of(params)
    check_windows(name, x.shape, windows)
    if source.shape != windows.places(x.shape):
        raise TypeError(
            f"{name}: the source has shape {source.shape}; an operand of shape {x.shape} has {windows.places(x.shape)} "
            "windows."
        )
    return family.joined(name, (source, x), x.shape, x.dtype)


def _lower_selection(rule: Callable[..., Any]) -> Callable[..., Any]:
    def lower(low: Any, ins: Any, outs: Any, a: Any, b: Any, *, select_prim: Primitive, **params: Any) -> Any:
        if not (outs[0].size and ins[0].size):
            return [low.constant(0, outs[0])]
        windows = windows_of(params)
        made = stage(lambda x, y: [rule(x, y, windows, select_prim)], tuple([_plain(a) for a in ins]))[0]
        return low.equations(made, [a, b])

    return lower


def _lower_scatter(low: Any, ins: Any, outs: Any, source: Any, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
    """XLA's own operation, for devices that have a kernel for it."""
    out = outs[0]
    if not (out.size and ins[0].size):
        return [low.constant(0, out)]
    element = out.update(shape=())
    flag = element.update(dtype=dtypes.bool_)
    direction = "GE" if select_prim is ew.ge else "LE"
    compare = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
    windows = windows_of(params)
    # Padding must not be chosen, but XLA's operation pads with what it starts from: pad by hand.
    config = tuple([(low_, high, 0) for low_, high in windows.padding])
    grown = out.update(shape=tuple([n + sum(p) for n, p in zip(out.shape, windows.padding, strict=True)]))
    x = _pad(low, x, grown, _worst(select_prim, out.dtype), config)
    attributes = {
        "window_dimensions": family.ints(windows.sizes),
        "window_strides": family.ints(windows.strides),
        "padding": f"dense<0> : tensor<{out.ndim}x2xi64>",
    }
    bodies = (
        ((element, element), lambda a, b: low.op("stablehlo.compare", (flag,), (a, b), compare)),
        ((element, element), lambda a, b: low.op("stablehlo.add", (element,), (a, b))),
    )
    start = low.constant(0, element)
    made = low.op("stablehlo.select_and_scatter", (grown,), (x, source, start), attributes, bodies)[0]
    return [_pad(low, made, out, 0, tuple([(-a, -b, 0) for a, b, _ in config]))]


def _pad(low: Any, x: Any, out: Any, value: Any, config: Any) -> Any:
    fill = low.constant(value, out.update(shape=()))
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    attributes = {name: family.ints([entry[k] for entry in config]) for k, name in enumerate(names)}
    return low.op("stablehlo.pad", (out,), (x, fill), attributes)[0]


def _gather_transpose(ct: Any, t: Any, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
    windows = windows_of(params)
    ones = (1,) * len(windows.sizes)
    if not (typeof(ct).size and typeof(x).size):
        return ew.zeros(t.aval), None
    if windows.base != ones or windows.dilation != ones:
        return _scattered(ct, x, windows, select_prim), None
    made = {"window_dimensions": windows.sizes, "window_strides": windows.strides, "padding": windows.padding}
    return select_and_scatter_add(ct, x, select_prim=select_prim, **made), None


def _scatter_transpose(ct: Any, source: Any, x: Any, **params: Any) -> Any:
    return select_and_gather_add(ct, x, **{**windows_of(params).params(), "select_prim": params["select_prim"]}), None


def _read(shown: dict[str, Any], ins: Any, outs: Any) -> dict[str, Any]:
    return {**shown, "select_prim": named(str(shown["select_prim"]))}


select_and_gather_add = Primitive(
    "select_and_gather_add",
    type=_gather_type,
    lower=_lower_selection(_gathered),
    linear=(0,),
    transpose=_gather_transpose,
    batch=_batch,
    read=_read,
)
select_and_scatter_add = Primitive(
    "select_and_scatter_add",
    type=_scatter_type,
    lower={"cpu": _lower_selection(_scattered), "default": _lower_scatter},
    linear=(0,),
    transpose=_scatter_transpose,
    batch=_batch,
    read=_read,
)
