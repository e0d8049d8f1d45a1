"""Operations that move elements without computing: transposes, reshapes, conversions."""

import math
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.primitive import Primitive, is_unknown
from morphax.ops import elementwise as ew
from morphax.ops import family
from morphax.support import dtypes


def _lower_transpose(low: Any, ins: Any, outs: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
    words = range(len(permutation), len(permutation) + len(low.key_words(ins[0])))
    text = ", ".join(map(str, (*permutation, *words)))
    return low.op("stablehlo.transpose", outs, (x,), {"permutation": f"array<i64: {text}>"})


transpose = Primitive(
    "transpose",
    type=lambda x, *, permutation: x.update(shape=tuple([x.shape[i] for i in permutation])),
    lower=_lower_transpose,
    linear=(0,),
    transpose=lambda ct, x, *, permutation: (transpose(ct, permutation=tuple(map(int, np.argsort(permutation)))),),
    batch=lambda prim, size, operands, flags, params: [
        transpose(operands[0], permutation=(0, *family.shift(params["permutation"])))
    ],
)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """`x` with the axis `source` moved to `destination`; both may be negative."""
    ndim = family.typeof(x).ndim
    source, destination = source % ndim, destination % ndim
    if source == destination:
        return x
    order = [i for i in range(ndim) if i != source]
    order.insert(destination, source)
    return transpose(x, permutation=tuple(order))


convert_element_type = ew.convert_element_type
convert = ew.convert


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _reshape_type(x: Any, *, new_sizes: tuple[int, ...], dimensions: Any, sharding: Any) -> Any:
    if math.prod(new_sizes) != x.size or any(s < 0 for s in new_sizes):
        raise TypeError(
            f"reshape: an array of shape {x.shape} has {x.size} elements, and shape {new_sizes} needs "
            f"{math.prod(new_sizes)}. Give a shape of the same size."
        )
    return x.update(shape=tuple(new_sizes))


reshape = Primitive(
    "reshape",
    type=_reshape_type,
    lower=lambda low, ins, outs, x, **params: low.op("stablehlo.reshape", outs, (x,)),
    linear=(0,),
    transpose=lambda ct, x, **params: (reshape_to(ct, x.aval.shape),),
    batch=lambda prim, size, operands, flags, params: [reshape_to(operands[0], (size, *params["new_sizes"]))],
)


def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` with its elements in a new shape; `x` itself where it has that shape."""
    if family.typeof(x).shape == tuple(shape):
        return x
    return reshape(x, new_sizes=tuple(shape), dimensions=None, sharding=None)


# ---- slices ----------------------------------------------------------------------------------------------------------


def _slice_type(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    strides = strides or (1,) * x.ndim
    for start, limit, stride, size in zip(start_indices, limit_indices, strides, x.shape, strict=True):
        if not 0 <= start <= limit <= size or stride < 1:
            raise TypeError(
                f"slice: start {start_indices}, limit {limit_indices}, strides {strides} do not fit shape {x.shape}. "
                "Each needs 0 <= start <= limit <= size and stride >= 1."
            )
    sizes = zip(start_indices, limit_indices, strides, strict=True)
    return x.update(shape=tuple([max(0, -(-(limit - start) // stride)) for start, limit, stride in sizes]))


def _lower_slice(low: Any, ins: Any, outs: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    words = low.key_words(ins[0])
    starts = (*start_indices, *(0 for _ in words))
    limits = (*limit_indices, *words)
    steps = (*(strides or (1,) * ins[0].ndim), *(1 for _ in words))
    attributes = {
        "start_indices": family.ints(starts),
        "limit_indices": family.ints(limits),
        "strides": family.ints(steps),
    }
    return low.op("stablehlo.slice", outs, (x,), attributes)


def _slice_transpose(ct: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    steps = strides or (1,) * x.aval.ndim
    config = []
    for start, size, step, got in zip(start_indices, x.aval.shape, steps, family.typeof(ct).shape, strict=True):
        span = (got - 1) * step + 1 if got else 0
        config.append((start, size - start - span, step - 1))
    return (pad(ct, family.like(ct, 0), padding_config=tuple(config)),)


def _slice_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    strides = params["strides"]
    return [
        slice(
            operands[0],
            start_indices=(0, *params["start_indices"]),
            limit_indices=(size, *params["limit_indices"]),
            strides=None if strides is None else (1, *strides),
        )
    ]


slice = Primitive(
    "slice",
    type=_slice_type,
    lower=_lower_slice,
    linear=(0,),
    transpose=_slice_transpose,
    batch=_slice_batch,
)


def slice_axis(x: Any, start: int, limit: int, axis: int) -> Any:
    """`x` from `start` to `limit` along one axis."""
    shape = family.typeof(x).shape
    starts = [0] * len(shape)
    limits = list(shape)
    starts[axis], limits[axis] = start, limit
    return slice(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=None)


def _strided(x: Any, strides: tuple[int, ...]) -> Any:
    if all(s == 1 for s in strides):
        return x
    shape = family.typeof(x).shape
    return slice(x, start_indices=(0,) * len(shape), limit_indices=shape, strides=strides)


# ---- padding ---------------------------------------------------------------------------------------------------------


def _pad_type(x: Any, value: Any, *, padding_config: Any) -> Any:
    family.common_dtype("pad", (x, value))
    if value.shape != () or len(padding_config) != x.ndim:
        raise TypeError(
            f"pad: padding_config {padding_config} needs one (low, high, interior) for each axis of {x}, and a scalar "
            f"padding value; it is {value}."
        )
    sizes = zip(padding_config, x.shape, strict=True)
    shape = tuple([low + high + size + max(0, size - 1) * interior for (low, high, interior), size in sizes])
    if any(s < 0 for s in shape) or any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            f"pad: padding_config {padding_config} gives shape {shape} for {x}; sizes must not be negative."
        )
    return family.joined("pad", (x, value), shape, x.dtype)


def lower_pad(low: Any, ins: Any, outs: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    attributes = {
        name: family.ints([entry[k] for entry in padding_config])
        for k, name in enumerate(("edge_padding_low", "edge_padding_high", "interior_padding"))
    }
    return low.op("stablehlo.pad", outs, (x, value), attributes)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    inverse = tuple([(-low, -high, 0) for low, high, _ in padding_config])
    strides = tuple([interior + 1 for _, _, interior in padding_config])
    trimmed = pad(ct, family.like(ct, 0), padding_config=inverse)
    kept = _strided(trimmed, strides)
    ct_x = kept if is_unknown(x) else None
    if not is_unknown(value):
        return ct_x, None
    everywhere = ew.reduce_sum(ct, axes=tuple(range(len(padding_config))))
    inside = ew.reduce_sum(kept, axes=tuple(range(len(padding_config))))
    return ct_x, ew.sub(everywhere, inside)


def _pad_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    x, value = operands
    config = params["padding_config"]
    if not flags[1]:
        return [pad(x, value, padding_config=((0, 0, 0), *config))]
    # A padding value for each example: pad with zeros, and select by a mask padded in the same way.
    shape = family.typeof(x).shape[1:] if flags[0] else family.typeof(x).shape
    x = x if flags[0] else ew.broadcast(x, (size, *shape), (0,))
    mask = pad(ew.full(shape, np.True_), np.False_, padding_config=config)
    padded = pad(x, family.like(x, 0), padding_config=((0, 0, 0), *config))
    full = family.typeof(padded).shape
    mask = ew.broadcast(mask, full, (0,))
    value = ew.broadcast_in_dim(value, shape=full, broadcast_dimensions=(0,), sharding=None)
    return [ew.select_n(mask, value, padded)]


pad = Primitive(
    "pad", type=_pad_type, lower=lower_pad, linear=(0, 1), transpose=_pad_transpose, batch=_pad_batch
)  # fmt: skip


# ---- joining and taking apart ----------------------------------------------------------------------------------------


def batched(x: Any, flag: bool, size: int) -> Any:
    """`x` with a batch axis in front: repeated where it has none."""
    return x if flag else ew.broadcast(x, (size, *family.typeof(x).shape), (0,))


def _concatenate_type(*operands: Any, dimension: int) -> Any:
    first = operands[0]
    family.common_dtype("concatenate", operands)
    family.check_axis("concatenate", dimension, first.ndim)
    outer = first.shape[:dimension], first.shape[dimension + 1 :]
    if any(x.ndim != first.ndim or (x.shape[:dimension], x.shape[dimension + 1 :]) != outer for x in operands):
        shapes = ", ".join(str(x.shape) for x in operands)
        raise TypeError(
            f"concatenate: operands of shapes {shapes} differ outside dimension {dimension}. Reshape, pad or broadcast "
            "them first."
        )
    total = sum(x.shape[dimension] for x in operands)
    return family.joined("concatenate", operands, (*outer[0], total, *outer[1]), first.dtype)


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> Any:
    sizes = tuple([family.typeof(x).shape[dimension] for x in operands])
    parts = split(ct, sizes=sizes, axis=dimension) if len(operands) > 1 else [ct]
    return tuple([part if is_unknown(x) else None for part, x in zip(parts, operands, strict=True)])


def _concatenate_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    full = [batched(x, flag, size) for x, flag in zip(operands, flags, strict=True)]
    return [concatenate(*full, dimension=params["dimension"] + 1)]


concatenate = Primitive(
    "concatenate",
    type=_concatenate_type,
    lower=lambda low, ins, outs, *operands, dimension: low.op(
        "stablehlo.concatenate", outs, operands, {"dimension": f"{dimension} : i64"}
    ),
    linear="all",
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
)


def _split_type(x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    family.check_axis("split", axis, x.ndim)
    if any(s < 0 for s in sizes) or sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"split: sizes {sizes} add up to {sum(sizes)}, but axis {axis} of shape {x.shape} has {x.shape[axis]}. "
            "Give sizes that cover the axis."
        )
    return tuple([x.update(shape=(*x.shape[:axis], s, *x.shape[axis + 1 :])) for s in sizes])


def _lower_split(low: Any, ins: Any, outs: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    parts = []
    start = 0
    for out, size in zip(outs, sizes, strict=True):
        starts, limits = [0] * out.ndim, list(ins[0].shape)
        starts[axis], limits[axis] = start, start + size
        bounds = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": None}
        parts += _lower_slice(low, ins, (out,), x, **bounds)
        start += size
    return parts


def _split_transpose(cts: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    shape = x.aval.shape
    parts = []
    for ct, size in zip(cts, sizes, strict=True):
        part = x.aval.update(shape=(*shape[:axis], size, *shape[axis + 1 :]))
        parts.append(ew.zeros(part) if ct is None else ct)
    return (concatenate(*parts, dimension=axis),)


split = Primitive(
    "split",
    type=_split_type,
    lower=_lower_split,
    linear=(0,),
    transpose=_split_transpose,
    batch=lambda prim, size, operands, flags, params: split(
        operands[0], sizes=params["sizes"], axis=params["axis"] + 1
    ),
    multiple=True,
)


# ---- axes ------------------------------------------------------------------------------------------------------------


def _rev_type(x: Any, *, dimensions: tuple[int, ...]) -> Any:
    family.check_axes("rev", dimensions, x.ndim)
    return x


rev = Primitive(
    "rev",
    type=_rev_type,
    lower=lambda low, ins, outs, x, *, dimensions: low.op(
        "stablehlo.reverse", outs, (x,), {"dimensions": family.ints(dimensions)}
    ),
    linear=(0,),
    transpose=lambda ct, x, *, dimensions: (rev(ct, dimensions=dimensions),),
    batch=family.shift_params("dimensions"),
)


def _squeeze_type(x: Any, *, dimensions: tuple[int, ...]) -> Any:
    family.check_axes("squeeze", dimensions, x.ndim)
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            f"squeeze: dimensions {dimensions} of shape {x.shape} have more than one entry. Only dimensions of size 1 "
            "can be dropped."
        )
    return x.update(shape=tuple([s for d, s in enumerate(x.shape) if d not in dimensions]))


squeeze = Primitive(
    "squeeze",
    type=_squeeze_type,
    lower=lambda low, ins, outs, x, **params: low.op("stablehlo.reshape", outs, (x,)),
    linear=(0,),
    transpose=lambda ct, x, *, dimensions: (expand_dims(ct, dimensions),),
    batch=family.shift_params("dimensions"),
)


def expand_dims(x: Any, dimensions: tuple[int, ...]) -> Any:
    """`x` with axes of size 1 at `dimensions` of the result, which may be negative."""
    ndim = family.typeof(x).ndim + len(dimensions)
    new = {d + ndim if d < 0 else d for d in dimensions}
    if len(new) != len(dimensions) or any(not 0 <= d < ndim for d in new):
        raise ValueError(
            f"expand_dims: dimensions {tuple(dimensions)} do not fit a result of {ndim} dimensions. Each must lie in "
            f"[{-ndim}, {ndim}), and none may be named twice."
        )
    if not new:
        return x
    sizes = iter(family.typeof(x).shape)
    shape = tuple([1 if d in new else next(sizes) for d in range(ndim)])
    return ew.broadcast(x, shape, tuple(new))


# ---- made from nothing, and reread -----------------------------------------------------------------------------------


def _iota_type(*, dtype: Any, shape: tuple[int, ...], dimension: int, sharding: Any) -> Any:
    family.check_kind("iota", dtype, "fciu")
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota: dimension {dimension} is out of range for shape {shape}. Give one in [0, {len(shape)})."
        )
    return ShapedArray(shape, dtype)


iota = Primitive(
    "iota",
    type=_iota_type,
    lower=lambda low, ins, outs, *, dtype, shape, dimension, sharding: low.op(
        "stablehlo.iota", outs, (), {"iota_dimension": f"{dimension} : i64"}
    ),
    nondiff="it has no operands",
    batch=lambda prim, size, operands, flags, params: [prim(**params)],
)


def iota_along(dtype: Any, shape: tuple[int, ...], dimension: int) -> Any:
    """0, 1, 2, ... along one dimension of `shape`."""
    return iota(dtype=dtype, shape=tuple(shape), dimension=dimension, sharding=None)


def _bitcast_type(x: Any, *, new_dtype: Any) -> Any:
    if x.dtype != new_dtype:
        family.check_kind("bitcast_convert_type", x.dtype, "fiu")
        family.check_kind("bitcast_convert_type", new_dtype, "fiu")
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    shape = x.shape
    if old > new and old % new == 0:
        shape = (*shape, old // new)
    elif new > old and shape and shape[-1] * old == new:
        shape = shape[:-1]
    elif old != new:
        raise TypeError(
            f"bitcast_convert_type: {x} cannot be read as {new_dtype.name}. Going from {old} to {new} bits needs a "
            f"last dimension of size {new // old or 1}."
        )
    return x.update(shape=shape, dtype=new_dtype, weak_type=False)


bitcast_convert_type = Primitive(
    "bitcast_convert_type",
    type=_bitcast_type,
    lower=lambda low, ins, outs, x, *, new_dtype: (
        [x] if ins[0].dtype == new_dtype else low.op("stablehlo.bitcast_convert", outs, (x,))
    ),
    nondiff="it reads the bits of a number, not its value",
    batch=lambda prim, size, operands, flags, params: [prim(operands[0], **params)],
)


copy = Primitive(
    "copy",
    type=lambda x: x,
    lower=lambda low, ins, outs, x: [x],
    linear=(0,),
    transpose=lambda ct, x: (ct,),
    elementwise=True,
)
