"""Rows of Fourier transforms."""

import numpy as np
from samples import COMPLEXES, Sample, zeros

from morphax.ops import fft


def _transform(name, *lengths):
    kind = fft.FftType[name.upper()]
    axes = tuple(range(-len(lengths), 0))
    reference = getattr(np.fft, name + "n")
    return (
        lambda x: fft.fft(x, fft_type=kind, fft_lengths=lengths),
        lambda x: reference(x, s=lengths if name == "irfft" else None, axes=axes),
    )


REAL = ("float32", "float64")

ROWS = (
    Sample(
        "fft",
        *_transform("fft", 4),
        shapes=[((4,),), ((2, 4),), ((0, 4),)],
        dtypes=COMPLEXES,
        errors=[
            (lambda: _transform("fft", 4)[0](zeros(4)), TypeError, "does not accept dtype float32"),
            (lambda: _transform("fft", 4)[0](zeros(5, dtype="complex64")), ValueError, "must be equal to (4,)"),
            (lambda: _transform("fft", 4, 4)[0](zeros(4, dtype="complex64")), ValueError, "at least as many"),
            (lambda: _transform("fft", 1, 1, 1, 1)[0](zeros(1, dtype="complex64")), ValueError, "1 to 3 axes"),
        ],
    ),
    Sample("fft: odd", *_transform("fft", 5, 3), shapes=[((2, 5, 3),)], dtypes=COMPLEXES),
    Sample("fft: inverse", *_transform("ifft", 3, 4), shapes=[((3, 4),), ((2, 3, 4),)], dtypes=COMPLEXES),
    Sample("fft: real", *_transform("rfft", 6), shapes=[((6,),), ((2, 6),), ((0, 6),)], dtypes=REAL),
    Sample("fft: real, odd", *_transform("rfft", 2, 3, 5), shapes=[((2, 3, 5),)], dtypes=REAL),
    Sample("fft: real, one", *_transform("rfft", 1), shapes=[((3, 1),)], dtypes=REAL),
    Sample("fft: to real", *_transform("irfft", 6), shapes=[((4,),), ((2, 4),)], dtypes=COMPLEXES),
    Sample("fft: to real, odd", *_transform("irfft", 3, 4, 5), shapes=[((3, 4, 3),)], dtypes=COMPLEXES),
    Sample("fft: to real, two", *_transform("irfft", 3, 2), shapes=[((3, 2),)], dtypes=COMPLEXES),
)
