"""Operations that move elements without computing: transposes, reshapes, conversions."""

import math
from typing import Any

import numpy as np

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


# ---- conversions -----------------------------------------------------------------------------------------------------


def _convert_type(x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    if isinstance(x.dtype, dtypes.KeyDType) != isinstance(new_dtype, dtypes.KeyDType):
        raise TypeError(
            f"convert_element_type: cannot convert {x.dtype.name} to {new_dtype.name}. Use random.key_data or "
            "random.wrap_key_data."
        )
    return x.update(dtype=new_dtype, weak_type=weak_type)


def _lower_convert(low: Any, ins: Any, outs: Any, x: Any, **params: Any) -> Any:
    source, target = ins[0].dtype, outs[0].dtype
    if source == target:
        return [x]
    if dtypes.is_complex(source) and not dtypes.is_complex(target):
        real = ins[0].update(dtype=dtypes.to_real(source))
        x = low.op("stablehlo.real", (real,), (x,))[0]
    if target == np.bool_:
        zero = low.constant(0, ins[0].update(dtype=dtypes.to_real(source) if dtypes.is_complex(source) else source))
        return low.op("stablehlo.compare", outs, (x, zero), {"comparison_direction": _NOT_EQUAL})
    return low.op("stablehlo.convert", outs, (x,))


_NOT_EQUAL = "#stablehlo<comparison_direction NE>"


def _convert_transpose(ct: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    return (convert_element_type(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type, sharding=None),)


convert_element_type = Primitive(
    "convert_element_type",
    type=_convert_type,
    lower=_lower_convert,
    linear=(0,),
    transpose=_convert_transpose,
    elementwise=True,
)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` as `dtype`; `x` itself where nothing changes. Host scalars are converted on the host."""
    aval = family.typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if isinstance(x, np.generic) and not weak_type:
        return np.asarray(x).astype(dtype)[()]
    return convert_element_type(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


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


slice = Primitive(  # noqa: A001 - the field's word
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
        raise ValueError(f"pad: padding_config {padding_config} gives shape {shape} for {x}; sizes must not be negative.")
    return family.joined("pad", (x, value), shape, x.dtype)


def _lower_pad(low: Any, ins: Any, outs: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
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
    "pad", type=_pad_type, lower=_lower_pad, linear=(0, 1), transpose=_pad_transpose, batch=_pad_batch
)  # fmt: skip
