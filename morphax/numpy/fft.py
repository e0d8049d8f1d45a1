"""Discrete Fourier transforms: NumPy's `fft`."""

import math
import operator as python
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.numpy import creation, promotion, shapes
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.ops import fft as ops
from morphax.ops.family import like, typeof
from morphax.ops.fft import FftType
from morphax.runtime.jit import program
from morphax.support import dtypes, tracebacks

_INVERSE = (FftType.IFFT, FftType.IRFFT)
_MOST_AXES = 3  # of one operation

# ---- transforms over any axes ----------------------------------------------------------------------------------------


def _operand(name: str, a: Any, kind: FftType) -> Any:
    a = promotion.inexact(name, a)
    dtype = typeof(a).dtype
    if kind == FftType.RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError(f"{name}: only real valued inputs supported for rfft. Take the real part, or use fft.")
        return a if dtype == dtypes.float64 else ew.convert(a, dtypes.float32)
    if dtypes.is_complex(dtype):
        return a
    return ew.convert(a, dtypes.named_dtype("complex128" if dtype == dtypes.float64 else "complex64"))


def _resized(x: Any, sizes: Sequence[int]) -> Any:
    """The last axes cut, or padded with zeros, to `sizes`."""
    shape = typeof(x).shape
    wanted = (*shape[: len(shape) - len(sizes)], *sizes)
    if wanted == shape:
        return x
    cut = tuple([min(a, b) for a, b in zip(shape, wanted, strict=True)])
    if cut != shape:
        x = structure.slice(x, start_indices=(0,) * len(shape), limit_indices=cut, strides=None)
    config = tuple([(0, b - a, 0) for a, b in zip(cut, wanted, strict=True)])
    return x if cut == wanted else structure.pad(x, like(x, 0), padding_config=config)


def _lengths(name: str, shape: Sequence[int], given: Sequence[int] | None, kind: FftType) -> tuple[int, ...]:
    if given is None:
        sizes = list(shape)
        if kind == FftType.IRFFT:
            sizes[-1] = max(2 * (sizes[-1] - 1), 0)
    else:
        if any(n <= 0 for n in given):
            raise ValueError(f"{name}: Shape should be positive; it is {tuple(given)}.")
        sizes = list(given)
    return tuple(sizes)


def _applied(x: Any, kind: FftType, sizes: tuple[int, ...]) -> Any:
    """The transform over the last axes, some at a time."""
    rest = len(sizes) - _MOST_AXES
    if rest <= 0:
        return ops.fft(x, fft_type=kind, fft_lengths=sizes)
    complex_kind = FftType.IFFT if kind in _INVERSE else FftType.FFT
    ndim = typeof(x).ndim
    if kind == FftType.RFFT:  # the real axis first
        x = ops.fft(x, fft_type=kind, fft_lengths=sizes[rest:])
        return _outer(x, complex_kind, sizes[:rest], ndim)
    return ops.fft(_outer(x, complex_kind, sizes[:rest], ndim), fft_type=kind, fft_lengths=sizes[rest:])


def _outer(x: Any, kind: FftType, sizes: tuple[int, ...], ndim: int) -> Any:
    """The transform over the axes before the last three."""
    lead = ndim - _MOST_AXES - len(sizes)
    order = (*range(lead), *range(ndim - _MOST_AXES, ndim), *range(lead, lead + len(sizes)))
    back = tuple([order.index(d) for d in range(ndim)])
    return structure.transpose(_applied(structure.transpose(x, permutation=order), kind, sizes), permutation=back)


_NORMS = {"backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}


def _scale(name: str, norm: Any, inverse: bool, size: int) -> float:
    """What the transform, which XLA divides by `size` when it is an inverse one, is multiplied by."""
    powers = _NORMS.get("backward" if norm is None else norm)
    if powers is None:
        raise ValueError(f'{name}: Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    if not size:
        return 1.0
    return size ** (1 - powers[1]) if inverse else size ** -powers[0]


@program("name", "kind", "s", "axes", "norm")
def _transform(a: Any, name: str, kind: FftType, s: Any, axes: Any, norm: Any) -> Any:
    count = len(promotion.described(name, a)[2])
    if axes is None:
        axes = tuple(range(count)) if s is None else tuple(range(-len(s), 0))
    places = tuple([promotion.axis_of(name, d, count) for d in axes])
    if len(set(places)) != len(places):
        raise ValueError(f"{name}: does not support repeated axes. Got axes {tuple(axes)}.")
    if s is not None and len(s) != len(places):
        raise ValueError(f"{name}: s {s} and axes {tuple(axes)} must be of one length.")
    x = _operand(name, a, kind)
    if not places:
        return x
    order = (*[d for d in range(count) if d not in places], *places)
    moved = structure.transpose(x, permutation=order) if order != tuple(range(count)) else x
    sizes = _lengths(name, typeof(moved).shape[count - len(places) :], s, kind)
    operand_sizes = (*sizes[:-1], sizes[-1] // 2 + 1) if kind == FftType.IRFFT and sizes[-1] else sizes
    out = _applied(_resized(moved, operand_sizes), kind, sizes)
    factor = _scale(name, norm, kind in _INVERSE, math.prod(sizes))
    if factor != 1.0:
        out = ew.mul(out, like(out, factor))
    back = tuple([order.index(d) for d in range(count)])
    return structure.transpose(out, permutation=back) if order != tuple(range(count)) else out


def _fixed(name: str, value: Any) -> Any:
    if value is None:
        return None
    try:
        return tuple([python.index(v) for v in value])
    except TypeError:
        raise TypeError(f"{name}: s and axes must be sequences of integers, or None; got {value!r}.") from None


def _along(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"{name}: only supports a single axis; got axis={axis!r}. Use {name}n.")
    return _transform(a, name, kind, None if n is None else (python.index(n),), (python.index(axis),), norm)


def _over(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    return _transform(a, name, kind, _fixed(name, s), _fixed(name, axes), norm)


def _two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    if len(axes) != 2:
        raise ValueError(f"{name}: only supports 2 axes. Got axes = {axes}.")
    return _over(name, kind, a, s, axes, norm)


# ---- complex transforms ----------------------------------------------------------------------------------------------


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Fourier transform along an axis: sum_j a[j] exp(-2 pi i j k / n).

    Args:
        a: array.
        n: length that the axis is cut or padded with zeros to; None for its own.
        axis: static int.
        norm: where 1 / n goes: "backward" (or None) to the inverse, "forward" here, "ortho" its root to both.

    Returns:
        complex128 for float64 and complex128, else complex64.

    Raises:
        ValueError: an unknown norm, an axis that is not there, n below 1.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.fft(jnp.array([1.0, 2.0])).tolist()
    [(3+0j), (-1+0j)]
    """
    return _along("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Inverse of `fft`, with its arguments.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.ifft(jnp.array([3.0, -1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    return _along("ifft", FftType.IFFT, a, n, axis, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """`fftn` over two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.fft2(jnp.ones((2, 2)))[0].tolist()
    [(4+0j), 0j]
    """
    return _two("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """Inverse of `fft2`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.ifft2(jnp.ones((2, 2)))[0].tolist()
    [(1+0j), 0j]
    """
    return _two("ifft2", FftType.IFFT, a, s, axes, norm)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Fourier transform along several axes.

    Args:
        a: array.
        s: lengths that the axes are cut or padded with zeros to; None for their own.
        axes: static ints; None for all, or for the last len(s).
        norm: as in `fft`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.fftn(jnp.ones((2, 2)))[0].tolist()
    [(4+0j), 0j]
    """
    return _over("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Inverse of `fftn`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.ifftn(jnp.ones((2, 2)))[0].tolist()
    [(1+0j), 0j]
    """
    return _over("ifftn", FftType.IFFT, a, s, axes, norm)


# ---- transforms of real signals --------------------------------------------------------------------------------------


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """`fft` of a real array: the frequencies 0 to n // 2, which determine the others.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.rfft(jnp.array([1.0, 2.0])).tolist()
    [(3+0j), (-1+0j)]
    """
    return _along("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Inverse of `rfft`.

    Args:
        a: array of frequencies 0 to n // 2.
        n: length of the result; None for 2 (m - 1), where m is that of the axis.
        axis: static int.
        norm: as in `fft`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.irfft(jnp.array([3.0, -1.0])).tolist()
    [1.0, 2.0]
    """
    return _along("irfft", FftType.IRFFT, a, n, axis, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """`rfftn` over two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.rfft2(jnp.ones((2, 2)))[0].tolist()
    [(4+0j), 0j]
    """
    return _two("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """Inverse of `rfft2`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.irfft2(jnp.ones((2, 2)))[0].tolist()
    [1.0, 0.0]
    """
    return _two("irfft2", FftType.IRFFT, a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """`fftn` of a real array: frequencies 0 to n // 2 along the last of the axes.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _over("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Inverse of `rfftn`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _over("irfftn", FftType.IRFFT, a, s, axes, norm)


# Hermitian signals: the spectra are real, and the roles of the two directions are exchanged.
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _swapped(name: str, norm: Any) -> Any:
    if norm not in _SWAPPED:
        raise ValueError(f'{name}: Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return _SWAPPED[norm]


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """`fft` of a signal whose entries -j and j are conjugates, of which `a` has those from 0 to n // 2; it is real.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 2.0])).tolist()
    [3.0, -1.0]
    """
    x = _operand("hfft", a, FftType.FFT)
    return irfft(ew.conj(x, input_dtype=typeof(x).dtype), n, axis, _swapped("hfft", norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Inverse of `hfft`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.ihfft(jnp.array([3.0, -1.0])).tolist()
    [(1-0j), (2-0j)]
    """
    out = rfft(a, n, axis, _swapped("ihfft", norm))
    return ew.conj(out, input_dtype=typeof(out).dtype)


# ---- frequencies -----------------------------------------------------------------------------------------------------


def _frequencies(name: str, n: Any, d: Any, dtype: Any, device: Any, places: Any) -> Any:
    if isinstance(n, (list, tuple)) or promotion.described(name, d)[2]:
        raise ValueError(f"{name}: n must be an integer and d a scalar; they are {n!r} and {d!r}.")
    n = python.index(n)
    kind: Any = dtypes.default_float_dtype() if dtype is None else dtypes.named_dtype(dtype)
    counts = creation.from_host(np.asarray(places(n)).astype(kind), *creation.device_of(name, device))
    span = d * n if isinstance(d, (int, float)) else ew.mul(promotion.as_dtype(d, kind), family.scalar(n, kind))
    return ew.div(counts, promotion.as_dtype(span, kind))


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `fft`, in cycles per unit of `d`: 0 and the positive ones, then the negative ones.

    Args:
        n: length of the signal.
        d: distance of its samples.
        dtype: of the result; None for the default float type.
        device: where the result goes.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies("fftfreq", n, d, dtype, device, lambda n: np.r_[0 : (n + 1) // 2, -(n // 2) : 0])


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `rfft`, in cycles per unit of `d`. Arguments as in `fftfreq`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies("rfftfreq", n, d, dtype, device, lambda n: np.arange(n // 2 + 1))


def fftshift(x: Any, axes: Any = None) -> Any:
    """`x` with frequency 0 moved to the middle of each axis, or of those named.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.fftshift(jnp.array([0, 1, 2, -2, -1])).tolist()
    [-2, -1, 0, 1, 2]
    """
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Inverse of `fftshift`.

    >>> from morphax import numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2])).tolist()
    [0, 1, 2, -2, -1]
    """
    return _shifted("ifftshift", x, axes, lambda size: -(size // 2))


def _shifted(name: str, x: Any, axes: Any, by: Any) -> Any:
    shape = promotion.described(name, x)[2]
    places = promotion.axes_of(name, axes, len(shape))
    return shapes.roll(x, tuple([by(shape[d]) for d in places]), places)


tracebacks.bound_functions(globals())
