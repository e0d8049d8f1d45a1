"""Discrete Fourier transforms over the last axes."""

import math
from enum import IntEnum
from typing import Any

from morphax.ir.avals import ShapedArray
from morphax.ir.primitive import Primitive
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops.family import like, typeof
from morphax.support import dtypes


class FftType(IntEnum):
    """Which transform: forward, inverse, forward of real numbers, inverse to real numbers.

    >>> FftType.RFFT
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _fft_type(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    rank = len(fft_lengths)
    family.check_kind("fft", x.dtype, "f" if fft_type == FftType.RFFT else "c")
    if not 1 <= rank <= 3:
        raise ValueError(
            f"fft: fft_lengths {fft_lengths} must name 1 to 3 axes. Transform further axes in another call."
        )
    if x.ndim < rank:
        raise ValueError(
            f"fft: FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths {fft_lengths}."
        )
    wanted = fft_lengths
    if fft_type == FftType.IRFFT:
        wanted = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
        if not fft_lengths[-1]:
            wanted = (*fft_lengths[:-1], 0)
    if x.shape[-rank:] != wanted:
        raise ValueError(
            f"fft: FFT input shape {x.shape} minor dimensions must be equal to {wanted}, since fft_lengths is "
            f"{fft_lengths}. Pad or slice the operand first."
        )
    outer = x.shape[: x.ndim - rank]
    if fft_type == FftType.RFFT:
        last = fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0
        return x.update(shape=(*outer, *fft_lengths[:-1], last), dtype=dtypes.to_complex(x.dtype))
    if fft_type == FftType.IRFFT:
        return x.update(shape=(*outer, *fft_lengths), dtype=dtypes.to_real(x.dtype))
    return x


def _lower_fft(low: Any, ins: Any, outs: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if not outs[0].size or not ins[0].size:
        return [low.constant(0, outs[0])]
    attributes = {
        "fft_type": f"#stablehlo<fft_type {FftType(fft_type).name}>",
        "fft_length": family.ints(fft_lengths),
    }
    return low.op("stablehlo.fft", outs, (x,), attributes)


def _end_weights(x: Any, n: int, inner: float) -> Any:
    """`x` times `inner` along its last axis, but for frequencies 0 and n / 2, which real signals have once."""
    shape = typeof(x).shape
    place = structure.iota_along(dtypes.named_dtype("int32"), shape, len(shape) - 1)
    alone = ew.eq(place, like(place, 0))
    if n % 2 == 0:
        alone = ew.or_(alone, ew.eq(place, like(place, n // 2)))
    return ew.select_n(alone, ew.mul(x, like(x, inner)), x)


def _fft_transpose(ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    # The matrix exp(-2 pi i j k / n) is its own transpose. Cotangents pair without conjugation.
    size = math.prod(fft_lengths)
    n = fft_lengths[-1]
    if fft_type == FftType.RFFT:
        # x_j = Re sum_k ct_k exp(-2 pi i j k / n): an inverse transform that would count most frequencies twice.
        half = _end_weights(ew.conj(ct, input_dtype=typeof(ct).dtype), n, 0.5)
        out = fft(half, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
        return (ew.mul(out, like(out, size)),)
    if fft_type == FftType.IRFFT:
        out = fft(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        out = _end_weights(ew.conj(out, input_dtype=typeof(out).dtype), n, 2.0)
        return (ew.mul(out, like(out, 1 / size if size else 0)),)
    return (fft(ct, fft_type=fft_type, fft_lengths=fft_lengths),)


fft = Primitive(
    "fft",
    type=_fft_type,
    lower=_lower_fft,
    linear=(0,),
    transpose=_fft_transpose,
    batch=lambda prim, size, operands, flags, params: [prim(operands[0], **params)],
)
