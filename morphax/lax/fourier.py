"""Fourier transforms of lax: the last axes, lengths given."""

import operator as python
from collections.abc import Sequence
from typing import Any

from morphax.lax.arguments import operand as _operand
from morphax.ops import elementwise as ew
from morphax.ops import fft as ops
from morphax.ops.family import typeof
from morphax.ops.fft import FftType
from morphax.support import dtypes


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """Fourier transform over the last one to three axes.

    Args:
        x: array; its last sizes are `fft_lengths`, but for IRFFT the last is fft_lengths[-1] // 2 + 1.
        fft_type: an FftType, or its name in small or capital letters.
        fft_lengths: static ints.

    Returns:
        Complex array, real for IRFFT. Inverse transforms divide by the product of the lengths.

    Raises:
        ValueError: an unknown type, or sizes that do not fit.

    >>> from morphax import numpy as jnp
    >>> fft(jnp.array([1.0, 2.0]), "fft", (2,)).tolist()
    [(3+0j), (-1+0j)]
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"fft: unknown FFT type {fft_type!r}. Give one of {', '.join(FftType.__members__)}.")
        kind = FftType[fft_type.upper()]
    else:
        kind = FftType(fft_type)
    x = _operand("fft", x)
    dtype = typeof(x).dtype
    if kind == FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError("fft: only real valued inputs supported for rfft. Take the real part, or use fft.")
        x = x if dtype == dtypes.float64 else ew.convert(x, dtypes.float32)
    elif not dtypes.is_complex(dtype):
        x = ew.convert(x, dtypes.named_dtype("complex128" if dtype == dtypes.float64 else "complex64"))
    return ops.fft(x, fft_type=kind, fft_lengths=tuple([python.index(n) for n in fft_lengths]))


fft_p = ops.fft

__all__ = ["FftType", "fft", "fft_p"]
