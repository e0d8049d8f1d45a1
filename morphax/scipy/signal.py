"""Convolution, correlation, detrending, and spectra of stretches of a signal."""

import itertools
from typing import Any

import numpy as np
import scipy.signal

from morphax import numpy as jnp
from morphax.numpy import fft, promotion
from morphax.ops import convolution
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.support import dtypes

_MODES = ("full", "same", "valid")


def _pair(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be full, same or valid; it is {mode!r}.")
    x, y = (jnp.asarray(v) for v in (in1, in2))
    if typeof(x).ndim != typeof(y).ndim:
        raise ValueError(f"{name}: in1 and in2 differ in rank: {typeof(x).ndim} and {typeof(y).ndim}.")
    dtype = jnp.result_type(x, y)
    return x.astype(dtype), y.astype(dtype)


def _swapped(name: str, mode: str, x: Any, y: Any) -> bool:
    """Whether the second array is the larger, which mode "valid" needs to be so on all axes."""
    first, second = typeof(x).shape, typeof(y).shape
    if mode != "valid" or all(m >= n for m, n in zip(first, second)):
        return False
    if all(n >= m for m, n in zip(first, second)):
        return True
    raise ValueError(f"{name}: mode valid needs one array larger on all axes; the shapes are {first} and {second}.")


def _centered(x: Any, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    where = [slice(None)] * typeof(x).ndim
    for axis, size in zip(axes, sizes):
        start = (typeof(x).shape[axis] - size) // 2
        where[axis] = slice(start, start + size)
    return x[tuple(where)]


def _direct(x: Any, y: Any, mode: str, precision: Any) -> Any:
    """The convolution of all axes by XLA's."""
    rank = typeof(x).ndim
    shape, kernel = typeof(x).shape, typeof(y).shape
    if dtypes.is_complex(typeof(x).dtype):
        sides = [(jnp.real(v), jnp.imag(v)) for v in (x, y)]
        parts = [_direct(a, b, mode, precision) for a in sides[0] for b in sides[1]]
        return (parts[0] - parts[3]) + 1j * (parts[1] + parts[2])
    exact = dtypes.is_integer(typeof(x).dtype) or typeof(x).dtype == np.bool_
    numbers = convolution.ConvDimensionNumbers(*[tuple(range(rank + 2))] * 3)
    widths = tuple([(0, 0) if mode == "valid" else (n - 1, n - 1) for n in kernel])
    out = convolution.conv_general_dilated(
        x[None, None], jnp.flip(y)[None, None], window_strides=(1,) * rank, padding=widths, lhs_dilation=(1,) * rank,
        rhs_dilation=(1,) * rank, dimension_numbers=numbers, feature_group_count=1, batch_group_count=1,
        precision=precision, preferred_element_type=None if exact else typeof(x).dtype,
    )[0, 0]  # fmt: skip
    return _centered(out, shape, tuple(range(rank))) if mode == "same" else out


def _by_fft(x: Any, y: Any, mode: str, axes: tuple[int, ...]) -> Any:
    shape, kernel = typeof(x).shape, typeof(y).shape
    sizes = tuple([shape[a] + kernel[a] - 1 for a in axes])
    dtype = dtypes.to_inexact(typeof(x).dtype)
    x, y = x.astype(dtype), y.astype(dtype)
    if dtypes.is_complex(dtype):
        out = fft.ifftn(fft.fftn(x, sizes, axes) * fft.fftn(y, sizes, axes), sizes, axes)
    else:
        out = fft.irfftn(fft.rfftn(x, sizes, axes) * fft.rfftn(y, sizes, axes), sizes, axes)
    wanted = {
        "full": sizes,
        "same": tuple([shape[a] for a in axes]),
        "valid": tuple([shape[a] - kernel[a] + 1 for a in axes]),
    }
    return _centered(out, wanted[mode], axes)


@program("mode", "axes")
def _fftconvolve(in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    x, y = _pair("fftconvolve", in1, in2, mode)
    rank = typeof(x).ndim
    if not rank:
        return x * y
    axes = tuple(range(rank)) if axes is None else promotion.axes_of("fftconvolve", axes, rank)
    if not axes:
        return x * y
    if _swapped("fftconvolve", mode, x, y):
        x, y = y, x
    return _by_fft(x, y, mode, axes)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of `in1` and `in2` over `axes`, all for None, by Fourier transforms.

    >>> fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0])).round(3).tolist()
    [1.0, 2.0]
    """
    return _fftconvolve(in1, in2, mode=mode, axes=tuple(axes) if isinstance(axes, (list, tuple)) else axes)


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """The convolution over all axes: "full", the "same" size as `in1`, or "valid" without edges.

    Args:
      method: "direct" (also "auto") or "fft".

    >>> convolve(jnp.array([1, 2]), jnp.array([1, 1])).tolist()
    [1, 3, 2]
    """
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"convolve: method must be auto, direct or fft; it is {method!r}.")
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _convolve(in1, in2, name="convolve", mode=mode, precision=precision)


@program("name", "mode", "precision")
def _convolve(in1: Any, in2: Any, name: str, mode: str, precision: Any) -> Any:
    x, y = _pair(name, in1, in2, mode)
    if not typeof(x).ndim:
        return x * y
    if _swapped(name, mode, x, y):
        x, y = y, x
    return _direct(x, y, mode, precision)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Any:
    """The correlation over all axes: the convolution of `in1` with conj(in2) reversed.

    >>> correlate(jnp.array([1, 2]), jnp.array([0, 1])).tolist()
    [1, 2, 0]
    """
    return convolve(in1, jnp.flip(jnp.conj(jnp.asarray(in2))), mode, method, precision)


def _plane(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}: only boundary='fill' with fillvalue=0 is supported. Pad in1 first.")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name}: takes arrays of two axes; they have {jnp.ndim(in1)} and {jnp.ndim(in2)}.")


def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Any:
    """The convolution of two arrays of two axes.

    >>> convolve2d(jnp.ones((1, 2)), jnp.ones((1, 1))).tolist()
    [[1.0, 1.0]]
    """
    _plane("convolve2d", in1, in2, boundary, fillvalue)
    return _convolve(in1, in2, name="convolve2d", mode=mode, precision=precision)


def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Any:
    """The correlation of two arrays of two axes.

    >>> correlate2d(jnp.ones((1, 2)), jnp.ones((1, 1))).tolist()
    [[1.0, 1.0]]
    """
    _plane("correlate2d", in1, in2, boundary, fillvalue)
    if mode != "same":
        return correlate(in1, in2, mode, precision=precision)
    # Of even kernels the middle is the second of the two entries there, unlike in convolutions.
    starts, sizes = [n // 2 for n in jnp.shape(in2)], jnp.shape(in1)
    out = correlate(in1, in2, "full", precision=precision)
    return out[tuple([slice(start, start + size) for start, size in zip(starts, sizes)])]


@program("axis", "type", "breaks")
def _detrend(data: Any, axis: int, type: str, breaks: tuple[int, ...]) -> Any:
    x = jnp.asarray(data)
    x = jnp.moveaxis(x.astype(dtypes.to_inexact(typeof(x).dtype)), axis, 0)
    if type == "constant":
        return jnp.moveaxis(x - jnp.mean(x, axis=0, keepdims=True), 0, axis)
    ends = sorted({0, *breaks, typeof(x).shape[0]})
    pieces = []
    for start, stop in itertools.pairwise(ends):
        # The orthonormal basis of lines on the piece is known in advance.
        basis, _ = np.linalg.qr(np.stack([np.ones(stop - start), np.arange(stop - start) + 1.0], axis=1))
        lines = jnp.asarray(basis).astype(typeof(x).dtype)
        piece = x[start:stop]
        pieces.append(piece - jnp.tensordot(lines, jnp.tensordot(lines.T, piece, 1), 1))
    return jnp.moveaxis(jnp.concatenate(pieces), 0, axis)


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None) -> Any:
    """The data less their mean ("constant") or their line of least squares ("linear"), a line between breaks `bp`.

    >>> abs(detrend(jnp.array([1.0, 2.0, 3.0]))).max().item() < 1e-5
    True
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data is not supported, since arrays do not change.")
    if type not in ("constant", "linear", "c", "l"):
        raise ValueError(f"detrend: type must be linear or constant; it is {type!r}.")
    breaks = tuple(np.atleast_1d(np.asarray(bp)).tolist())
    size = jnp.shape(data)[axis]
    if any(not 0 <= b <= size for b in breaks):
        raise ValueError(f"detrend: breaks must lie within the {size} entries; they are {breaks}.")
    return _detrend(data, axis=axis, type={"c": "constant", "l": "linear"}.get(type, type), breaks=breaks)


# ---- spectra ---------------------------------------------------------------------------------------------------------


def _stretch(name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, size: int) -> tuple[Any, int, int, int]:
    """The window's values, its length, the overlap and the transform's length."""
    if isinstance(window, (str, tuple)):
        length = min(256 if nperseg is None else int(nperseg), size)
        values = scipy.signal.get_window(window, length)
    else:
        values = jnp.asarray(window)
        length = typeof(values).shape[0]
        if length > size or nperseg not in (None, length):
            raise ValueError(f"{name}: a window of {length} does not fit {size} entries and nperseg {nperseg}.")
    overlap = length // 2 if noverlap is None else int(noverlap)
    points = length if nfft is None else int(nfft)
    if not 0 <= overlap < length or points < length:
        raise ValueError(f"{name}: needs noverlap < nperseg <= nfft; they are {overlap}, {length} and {points}.")
    return values, length, overlap, points


def _stretches(x: Any, length: int, step: int) -> Any:
    count = (typeof(x).shape[-1] - length) // step + 1
    return x[..., np.arange(count)[:, None] * step + np.arange(length)]


def _spectra(x: Any, values: Any, length: int, overlap: int, points: int, detrending: Any, onesided: bool) -> Any:
    """The transforms of windowed stretches: (..., stretches, frequencies)."""
    pieces = _stretches(x, length, length - overlap)
    if callable(detrending):
        pieces = detrending(pieces)
    elif detrending:
        pieces = detrend(pieces, type=detrending)
    pieces = pieces * jnp.asarray(values).astype(typeof(pieces).dtype)
    return fft.rfft(pieces, points) if onesided else fft.fft(pieces, points)


def _frequencies(points: int, fs: Any, onesided: bool) -> Any:
    return (fft.rfftfreq if onesided else fft.fftfreq)(points, 1 / fs)


def _floating(*xs: Any) -> list[Any]:
    dtype = dtypes.to_inexact(jnp.result_type(*xs))
    return [jnp.asarray(x).astype(dtype) for x in xs]


def csd(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Any, Any]:  # fmt: skip
    """The frequencies, and the cross power spectrum of `x` and `y` (`x` with itself for None) by Welch's method.

    >>> csd(jnp.ones(8), None, nperseg=4)[0].tolist()
    [0.0, 0.25, 0.5]
    """
    if scaling not in ("density", "spectrum") or average not in ("mean", "median"):
        raise ValueError(f"csd: scaling must be density or spectrum, average mean or median; {scaling!r}, {average!r}.")
    x, *other = _floating(x) if y is None or y is x else _floating(x, y)
    x, *other = (jnp.moveaxis(v, axis, -1) for v in (x, *other))
    size = max(typeof(v).shape[-1] for v in (x, *other))
    x, *other = (jnp.pad(v, [(0, 0)] * (typeof(v).ndim - 1) + [(0, size - typeof(v).shape[-1])]) for v in (x, *other))
    values, length, overlap, points = _stretch("csd", window, nperseg, noverlap, nfft, size)
    onesided = return_onesided and not any(dtypes.is_complex(typeof(v).dtype) for v in (x, *other))
    first, *second = (_spectra(v, values, length, overlap, points, detrend, onesided) for v in (x, *other))
    power = jnp.conj(first) * second[0] if second else jnp.abs(first) ** 2
    scale = 1 / (fs * (values**2).sum()) if scaling == "density" else 1 / values.sum() ** 2
    power = power * scale
    if onesided:
        doubled = np.full(points // 2 + 1, 2.0)
        doubled[0] = 1
        if points % 2 == 0:
            doubled[-1] = 1
        power = power * jnp.asarray(doubled).astype(dtypes.to_real(typeof(power).dtype))
    if average == "median":
        count = typeof(power).shape[-2]
        odd = np.arange(1, (count - 1) // 2 + 1) * 2.0
        bias = 1 + np.sum(1 / (odd + 1) - 1 / odd)
        middle = jnp.median(jnp.real(power), axis=-2)
        if dtypes.is_complex(typeof(power).dtype):
            middle = middle + 1j * jnp.median(jnp.imag(power), axis=-2)
        out = middle / float(bias)
    else:
        out = jnp.mean(power, axis=-2)
    return _frequencies(points, fs, onesided), jnp.moveaxis(out, -1, axis)


def welch(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Any, Any]:  # fmt: skip
    """The frequencies, and the power spectrum of `x` by Welch's method.

    >>> welch(jnp.ones(8), nperseg=4)[1].shape
    (3,)
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


_EXTENSIONS = {"even": "reflect", "zeros": "constant", "constant": "edge"}


def stft(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int = 256, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = False, return_onesided: bool = True, boundary: str | None = "zeros",
    padded: bool = True, axis: int = -1,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Frequencies, times, and the transforms of windowed stretches: the axis of frequencies, and times last.

    >>> stft(jnp.ones(8), nperseg=4)[2].shape
    (3, 5)
    """
    (x,) = _floating(x)
    x = jnp.moveaxis(x, axis, -1)
    values, length, overlap, points = _stretch("stft", window, nperseg, noverlap, nfft, typeof(x).shape[-1])
    edge = [(0, 0)] * (typeof(x).ndim - 1)
    if boundary == "odd":
        half = length // 2
        front, back = 2 * x[..., :1] - x[..., half:0:-1], 2 * x[..., -1:] - x[..., -2 : -half - 2 : -1]
        x = jnp.concatenate([front, x, back], axis=-1)
    elif boundary is not None:
        if boundary not in _EXTENSIONS:
            raise ValueError(f"stft: boundary must be odd, {', '.join(_EXTENSIONS)} or None; it is {boundary!r}.")
        x = jnp.pad(x, [*edge, (length // 2, length // 2)], mode=_EXTENSIONS[boundary])
    step = length - overlap
    if padded:
        x = jnp.pad(x, [*edge, (0, -(typeof(x).shape[-1] - length) % step)])
    onesided = return_onesided and not dtypes.is_complex(typeof(x).dtype)
    out = _spectra(x, values, length, overlap, points, detrend, onesided) / values.sum()
    count = typeof(out).shape[-2]
    times = (jnp.arange(count) * step + (0 if boundary is not None else length / 2)) / fs
    out = jnp.moveaxis(out, -1, axis - 1 if axis < 0 else axis)
    return _frequencies(points, fs, onesided), times, out


def istft(
    Zxx: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:  # fmt: skip
    """Times, and the signal whose `stft` with the same arguments is `Zxx`.

    >>> x = jnp.arange(8.0)
    >>> abs(istft(stft(x, nperseg=4)[2], nperseg=4)[1] - x).max().item() < 1e-5
    True
    """
    z = jnp.moveaxis(jnp.asarray(Zxx), (time_axis, freq_axis), (-2, -1))
    bins = typeof(z).shape[-1]
    longest = 2 * (bins - 1) if input_onesided else bins
    length = longest if nperseg is None else int(nperseg)
    points = (length if input_onesided and length == longest + 1 else longest) if nfft is None else int(nfft)
    values, length, overlap, _ = _stretch("istft", window, length, noverlap, max(points, length), length)
    step = length - overlap
    pieces = (fft.irfft(z, points) if input_onesided else fft.ifft(z, points))[..., :length]
    weights = jnp.asarray(values).astype(dtypes.to_real(typeof(pieces).dtype))
    count = typeof(z).shape[-2]
    places = np.arange(count)[:, None] * step + np.arange(length)
    total = length + (count - 1) * step
    out = jnp.zeros((*typeof(pieces).shape[:-2], total), typeof(pieces).dtype)
    out = out.at[..., places].add(pieces * weights * weights.sum())
    norm = jnp.zeros(total, typeof(weights).dtype).at[places].add(jnp.broadcast_to(weights**2, places.shape))
    if boundary:
        half = length // 2
        out, norm = out[..., half : total - half], norm[half : total - half]
    out = out / jnp.where(norm > 1e-10, norm, 1)
    return jnp.arange(typeof(out).shape[-1]) / fs, out
