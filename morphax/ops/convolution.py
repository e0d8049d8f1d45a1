"""Convolution in all forms. Its derivatives and its batches are convolutions again.

A convolution has groups of two kinds. With G feature groups, output features of group g see input features of group g
alone; with B batch groups, output features of group g see examples of group g alone. The gradient of the kernel turns
one kind into the other.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from morphax.ir.primitive import Primitive, Var, is_unknown
from morphax.ir.show import readable
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops.family import typeof
from morphax.support import dtypes

# ---- dimension numbers -----------------------------------------------------------------------------------------------


@readable
class ConvDimensionNumbers(NamedTuple):
    """Which axes of the operands and of the result are batch, features and space.

    Args:
        lhs_spec: axes of lhs: batch, features, then space.
        rhs_spec: axes of the kernel: output features, input features, then space.
        out_spec: axes of the result: batch, features, then space.

    >>> ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)).lhs_spec
    (0, 3, 1, 2)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


Pads = tuple[tuple[int, int], ...]


def dilated(size: int, dilation: int) -> int:
    """Length of `size` entries with `dilation - 1` holes between neighbours."""
    return (size - 1) * dilation + 1 if size else 0


def strided(size: int, window: int, stride: int) -> int:
    """How many windows fit."""
    return max(0, (size - window) // stride + 1)


# ---- type ------------------------------------------------------------------------------------------------------------

_NAME = "conv_general_dilated"


def _check_ranks(lhs: Any, rhs: Any, params: dict[str, Any]) -> None:
    space = lhs.ndim - 2
    if lhs.ndim != rhs.ndim or space < 0:
        raise ValueError(
            f"{_NAME}: lhs of shape {lhs.shape} and rhs of shape {rhs.shape} need equally many dimensions, at least "
            "two: batch and features of lhs, output and input features of rhs."
        )
    for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation"):
        if len(params[name]) != space:
            raise ValueError(
                f"{_NAME}: {name} {params[name]} has {len(params[name])} entries; operands of {lhs.ndim} dimensions "
                f"have {space} in space. Give one entry for each."
            )
        if name != "padding" and any(d < 1 for d in params[name]):
            raise ValueError(f"{_NAME}: {name} {params[name]} must be at least 1 everywhere.")


def _check_groups(n: int, c: int, o: int, i: int, features: int, batches: int) -> None:
    if features < 1 or batches < 1 or features > 1 and batches > 1:
        raise ValueError(
            f"{_NAME}: feature_group_count {features} and batch_group_count {batches} must be positive, and only one "
            "of them above 1."
        )
    if c != i * features:
        raise ValueError(
            f"{_NAME}: lhs has {c} features in {features} group(s), and the kernel takes {i}. The features of lhs must "
            "be those of the kernel times feature_group_count."
        )
    if o % features or o % batches:
        raise ValueError(
            f"{_NAME}: the {o} output features of the kernel must be a multiple of feature_group_count {features} and "
            f"of batch_group_count {batches}."
        )
    if n % batches:
        raise ValueError(f"{_NAME}: the batch of {n} must be a multiple of batch_group_count {batches}.")


def _type(
    lhs: Any, rhs: Any, *, feature_group_count: int, batch_group_count: int, preferred_element_type: Any, **params: Any
) -> Any:
    dtype = family.common_dtype(_NAME, (lhs, rhs))
    family.check_kind(_NAME, dtype, "fciub")
    _check_ranks(lhs, rhs, params)
    numbers = params["dimension_numbers"]
    n, c, *sizes = (lhs.shape[d] for d in numbers.lhs_spec)
    o, i, *kernel = (rhs.shape[d] for d in numbers.rhs_spec)
    _check_groups(n, c, o, i, feature_group_count, batch_group_count)
    shape = [0] * lhs.ndim
    shape[numbers.out_spec[0]], shape[numbers.out_spec[1]] = n // batch_group_count, o
    for k, d in enumerate(numbers.out_spec[2:]):
        whole = dilated(sizes[k], params["lhs_dilation"][k]) + sum(params["padding"][k])
        window = dilated(kernel[k], params["rhs_dilation"][k])
        shape[d] = strided(whole, window, params["window_strides"][k])
    return family.joined(_NAME, (lhs, rhs), tuple(shape), preferred_element_type or dtype)


# ---- lowering --------------------------------------------------------------------------------------------------------


def _axes_text(spec: Sequence[int], first: str, second: str) -> str:
    names = [""] * len(spec)
    names[spec[0]], names[spec[1]] = first, second
    for k, d in enumerate(spec[2:]):
        names[d] = str(k)
    return f"[{', '.join(names)}]"


def _numbers_text(numbers: ConvDimensionNumbers) -> str:
    lhs, out = _axes_text(numbers.lhs_spec, "b", "f"), _axes_text(numbers.out_spec, "b", "f")
    return f"#stablehlo.conv<{lhs}x{_axes_text(numbers.rhs_spec, 'o', 'i')}->{out}>"


def _moved(low: Any, x: Any, aval: Any, order: Sequence[int]) -> tuple[Any, Any]:
    """Transpose of `x`, of type `aval`, with its type."""
    if list(order) == list(range(aval.ndim)):
        return x, aval
    out = aval.update(shape=tuple([aval.shape[d] for d in order]))
    return low.op("stablehlo.transpose", (out,), (x,), {"permutation": family.ints(order)})[0], out


def _reshaped(low: Any, x: Any, aval: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    out = aval.update(shape=tuple(shape))
    return low.op("stablehlo.reshape", (out,), (x,))[0], out


def _converted(low: Any, x: Any, aval: Any, dtype: Any) -> tuple[Any, Any]:
    if aval.dtype == dtype:
        return x, aval
    out = aval.update(dtype=dtype)
    return low.op("stablehlo.convert", (out,), (x,))[0], out


def _emit(low: Any, operands: Any, out: Any, numbers: ConvDimensionNumbers, params: dict[str, Any]) -> Any:
    attributes = {
        "window_strides": family.ints(params["window_strides"]),
        "lhs_dilation": family.ints(params["lhs_dilation"]),
        "rhs_dilation": family.ints(params["rhs_dilation"]),
        "dimension_numbers": _numbers_text(numbers),
        "feature_group_count": f"{params['feature_group_count']} : i64",
        "batch_group_count": f"{params['batch_group_count']} : i64",
    }
    space = len(params["window_strides"])
    if space:
        attributes["padding"] = f"dense<{[list(p) for p in params['padding']]}> : tensor<{space}x2xi64>"
    if params["precision"] is not None:
        names = ", ".join(f"#stablehlo<precision {p.name}>" for p in params["precision"])
        attributes["precision_config"] = f"[{names}]"
    return low.op("stablehlo.convolution", (out,), operands, attributes)[0]


def _lower(low: Any, ins: Any, outs: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    numbers = params["dimension_numbers"]
    if not (outs[0].size and ins[0].size and ins[1].size):
        return [low.constant(0, outs[0])]
    return [_emit(low, (lhs, rhs), outs[0], numbers, params)]


def _lower_canonical(low: Any, ins: Any, outs: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    """Batch first, features last, space between, and no batch groups, with transposes round it: the CPU's fast kernel
    knows that layout alone. XLA's own pass that brings others into it sees the outermost computation only, and
    elsewhere, as in loops, a convolution would take 7 to 27 times as long."""
    out = outs[0]
    if not (out.size and ins[0].size and ins[1].size):
        return [low.constant(0, out)]
    numbers = params["dimension_numbers"]
    inner = tuple(range(1, out.ndim - 1))
    (n, c, *space), (o, i, *window) = numbers.lhs_spec, numbers.rhs_spec
    lhs, lhs_aval = _moved(low, *_converted(low, lhs, ins[0], out.dtype), (n, *space, c))
    rhs, rhs_aval = _moved(low, *_converted(low, rhs, ins[1], out.dtype), (*window, i, o))
    groups = params["batch_group_count"]
    if groups > 1:  # examples of group g become features of group g
        size, *rest = lhs_aval.shape
        lhs, lhs_aval = _reshaped(low, lhs, lhs_aval, (groups, size // groups, *rest))
        lhs, lhs_aval = _moved(low, lhs, lhs_aval, (*range(1, lhs_aval.ndim - 1), 0, lhs_aval.ndim - 1))
        lhs, lhs_aval = _reshaped(low, lhs, lhs_aval, (*lhs_aval.shape[:-2], groups * rest[-1]))
        params = {**params, "batch_group_count": 1, "feature_group_count": groups}
    features = params["feature_group_count"]
    if features > 1 and features == lhs_aval.shape[-1] == out.shape[numbers.out_spec[1]] and _few(rhs_aval):
        made, made_aval = _depthwise(low, lhs, lhs_aval, rhs, rhs_aval, params)
        return [_restored(low, made, made_aval, numbers.out_spec)]
    last = out.ndim - 1
    canonical = ConvDimensionNumbers((0, last, *inner), (last, last - 1, *range(last - 1)), (0, last, *inner))
    b, f, *where = numbers.out_spec
    made_aval = out.update(shape=tuple([out.shape[d] for d in (b, *where, f)]))
    made = _emit(low, (lhs, rhs), made_aval, canonical, params)
    return [_restored(low, made, made_aval, numbers.out_spec)]


def _restored(low: Any, x: Any, aval: Any, spec: tuple[int, ...]) -> Any:
    """A result in canonical layout brought into the one asked for."""
    b, f, *where = spec
    order = [0] * aval.ndim
    for place, d in enumerate((b, *where, f)):
        order[d] = place
    return _moved(low, x, aval, order)[0]


_TAPS = 64


def _few(kernel: Any) -> bool:
    """Whether a kernel (space, features) has few enough entries to be written out."""
    return kernel.size <= _TAPS * kernel.shape[-1] and dtypes.is_float(kernel.dtype)


def _depthwise(low: Any, lhs: Any, aval: Any, rhs: Any, kernel: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """A convolution in canonical layout of each feature with a kernel of its own: moved operands times entries of the
    kernel, added up. They fuse into one vectorised loop, where XLA's CPU kernel takes 10 to 40 times as long."""
    strides, gaps = params["window_strides"], params["rhs_dilation"]
    config = [(0, 0, 0), *((a, b, h - 1) for (a, b), h in zip(params["padding"], params["lhs_dilation"], strict=True))]
    config.append((0, 0, 0))
    whole = [dilated(n, 1 + hole) + a + b for n, (a, b, hole) in zip(aval.shape, config, strict=True)]
    grown = aval.update(shape=tuple(whole))
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    padding = {name: family.ints([entry[k] for entry in config]) for k, name in enumerate(names)}
    zero = low.constant(0, aval.update(shape=()))
    lhs = low.op("stablehlo.pad", (grown,), (lhs, zero), padding)[0]
    sizes = kernel.shape[:-2]
    spans = zip(whole[1:-1], sizes, gaps, strides, strict=True)
    places = [strided(n, dilated(k, gap), step) for n, k, gap, step in spans]
    out = aval.update(shape=(aval.shape[0], *places, aval.shape[-1]))
    total = None
    for tap in itertools.product(*map(range, sizes)):
        starts = [k * gap for k, gap in zip(tap, gaps, strict=True)]
        ends = [s + (n - 1) * step + 1 for s, n, step in zip(starts, places, strides, strict=True)]
        moved = _cut(low, lhs, out, (0, *starts, 0), (out.shape[0], *ends, out.shape[-1]), (1, *strides, 1))
        weights = aval.update(shape=(1,) * (len(sizes) + 1) + (out.shape[-1],))
        entry = _cut(low, rhs, weights, (*tap, 0, 0), (*(k + 1 for k in tap), 1, out.shape[-1]), (1,) * kernel.ndim)
        entry = low.broadcast(entry, weights, out.shape, range(out.ndim))
        term = low.op("stablehlo.multiply", (out,), (moved, entry))[0]
        total = term if total is None else low.op("stablehlo.add", (out,), (total, term))[0]
    return total, out


def _cut(low: Any, x: Any, out: Any, starts: Any, limits: Any, strides: Any) -> Any:
    attributes = {
        "start_indices": family.ints(starts),
        "limit_indices": family.ints(limits),
        "strides": family.ints(strides),
    }
    return low.op("stablehlo.slice", (out,), (x,), attributes)[0]


# ---- transposes ------------------------------------------------------------------------------------------------------


def _regrouped(x: Any, source: int, target: int, groups: int) -> Any:
    """`x` with the `groups` slowest entries of axis `source` made the slowest of axis `target`."""
    if groups == 1:
        return x
    shape = list(typeof(x).shape)
    split = structure.reshape_to(x, (*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]))
    moved = structure.move_axis(split, source, target)
    shape[source] //= groups
    shape[target] *= groups
    return structure.reshape_to(moved, tuple(shape))


def _sizes(lhs: Any, rhs: Any, ct: Any, params: dict[str, Any]) -> Any:
    """Per spatial axis: dilated lhs, dilated kernel, strided result, low padding."""
    numbers = params["dimension_numbers"]
    for k in range(len(params["window_strides"])):
        yield (
            dilated(lhs.shape[numbers.lhs_spec[2 + k]], params["lhs_dilation"][k]),
            dilated(rhs.shape[numbers.rhs_spec[2 + k]], params["rhs_dilation"][k]),
            dilated(ct.shape[numbers.out_spec[2 + k]], params["window_strides"][k]),
            params["padding"][k][0],
        )


def _common(x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands in the wider of their dtypes: cotangents have the preferred type."""
    a, b = typeof(x).dtype, typeof(y).dtype
    if a == b:
        return x, y
    dtype = dtypes.promote(a, False, b, False)[0]
    return structure.convert(x, dtype), structure.convert(y, dtype)


def _preferred(ct: Any, other: Any, params: dict[str, Any]) -> Any:
    return params["preferred_element_type"] if typeof(ct).dtype == typeof(other).dtype else None


def _transpose_lhs(ct: Any, lhs: Var, rhs: Any, params: dict[str, Any]) -> Any:
    # Flipped kernel, features in and out exchanged, strides and dilations exchanged: it spreads what was gathered.
    numbers = params["dimension_numbers"]
    o, i, *space = numbers.rhs_spec
    features, batches = params["feature_group_count"], params["batch_group_count"]
    rhs_aval = typeof(rhs)
    padding = []
    for whole, window, result, before in _sizes(lhs.aval, rhs_aval, typeof(ct), params):
        start = window - 1 - before
        padding.append((start, whole - 1 + window - result - start))
    kernel = structure.rev(rhs, dimensions=tuple(space)) if space else rhs
    kernel = _regrouped(kernel, o, i, features * batches)
    out = conv_general_dilated(
        *_common(ct, kernel), window_strides=params["lhs_dilation"], padding=tuple(padding),
        lhs_dilation=params["window_strides"], rhs_dilation=params["rhs_dilation"],
        dimension_numbers=ConvDimensionNumbers(numbers.out_spec, (i, o, *space), numbers.lhs_spec),
        feature_group_count=features * batches, batch_group_count=1, precision=params["precision"],
        preferred_element_type=_preferred(ct, rhs, params), out_sharding=None,
    )  # fmt: skip
    out = _regrouped(out, numbers.lhs_spec[1], numbers.lhs_spec[0], batches)
    return structure.convert(out, lhs.aval.dtype, typeof(out).weak_type)


def _transpose_rhs(ct: Any, lhs: Any, rhs: Var, params: dict[str, Any]) -> Any:
    # The cotangent is the kernel, and batch and features are exchanged, so that the batch is summed over.
    numbers = params["dimension_numbers"]
    (n, c, *space), (b, f, *where) = numbers.lhs_spec, numbers.out_spec
    padding = []
    for whole, window, result, before in _sizes(typeof(lhs), rhs.aval, typeof(ct), params):
        padding.append((before, window - 1 + result - whole - before))
    o, i, *taps = numbers.rhs_spec
    out = conv_general_dilated(
        *_common(lhs, ct), window_strides=params["rhs_dilation"], padding=tuple(padding),
        lhs_dilation=params["lhs_dilation"], rhs_dilation=params["window_strides"],
        dimension_numbers=ConvDimensionNumbers((c, n, *space), (f, b, *where), (i, o, *taps)),
        feature_group_count=params["batch_group_count"], batch_group_count=params["feature_group_count"],
        precision=params["precision"], preferred_element_type=_preferred(ct, lhs, params), out_sharding=None,
    )  # fmt: skip
    return structure.convert(out, rhs.aval.dtype, typeof(out).weak_type)


def _transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    unknown, known, rule = (lhs, rhs, _transpose_lhs) if is_unknown(lhs) else (rhs, lhs, _transpose_rhs)
    if typeof(ct).size and typeof(known).size and unknown.aval.size:
        found = rule(ct, lhs, rhs, params)
    else:
        found = ew.zeros(unknown.aval)
    return (found, None) if unknown is lhs else (None, found)


# ---- batching --------------------------------------------------------------------------------------------------------


def _folded(x: Any, axis: int, groups: int = 1) -> Any:
    """`x` with its batch axis, in front, made part of `axis` of one example: within each of `groups` slowest parts."""
    size, *shape = typeof(x).shape
    merged = (*shape[:axis], size * shape[axis], *shape[axis + 1 :])
    if groups > 1:
        x = structure.reshape_to(x, (size, *shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
        axis += 1
    return structure.reshape_to(structure.move_axis(x, 0, axis), merged)


def _unfolded(x: Any, axis: int, size: int, groups: int = 1) -> Any:
    """The inverse of `_folded`."""
    shape = typeof(x).shape
    rest = shape[axis] // (size * groups)
    if groups == 1:
        x = structure.reshape_to(x, (*shape[:axis], size, rest, *shape[axis + 1 :]))
        return structure.move_axis(x, axis, 0)
    x = structure.reshape_to(x, (*shape[:axis], groups, size, rest, *shape[axis + 1 :]))
    x = structure.move_axis(x, axis + 1, 0)
    return structure.reshape_to(x, (size, *shape[:axis], groups * rest, *shape[axis + 1 :]))


def _batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    lhs, rhs = operands
    numbers = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if not size:
        avals = [typeof(x) for x in operands]
        examples = [a.update(shape=a.shape[1:]) if flag else a for a, flag in zip(avals, flags, strict=True)]
        out = prim.types(tuple(examples), params)[0]
        return [ew.zeros(out.update(shape=(0, *out.shape)))]
    if flags[0] and flags[1]:  # examples become groups: of the batch where there are such, else of the features
        kind = "batch_group_count" if batches > 1 else "feature_group_count"
        lhs = _folded(lhs, numbers.lhs_spec[0 if batches > 1 else 1])
        out = prim(lhs, _folded(rhs, numbers.rhs_spec[0]), **{**params, kind: size * params[kind]})
        return [_unfolded(out, numbers.out_spec[1], size)]
    if flags[0]:  # more examples
        out = prim(_folded(lhs, numbers.lhs_spec[0], batches), rhs, **params)
        return [_unfolded(out, numbers.out_spec[0], size)]
    out = prim(lhs, _folded(rhs, numbers.rhs_spec[0], features * batches), **params)  # more output features
    return [_unfolded(out, numbers.out_spec[1], size, features * batches)]


def _show(params: dict[str, Any]) -> dict[str, Any]:
    precision = params["precision"]
    return {**params, "precision": None if precision is None else repr(precision)}


conv_general_dilated = Primitive(
    _NAME,
    type=_type,
    lower={"cpu": _lower_canonical, "default": _lower},
    bilinear=(0, 1),
    transpose=_transpose,
    batch=_batch,
    show=_show,
)
