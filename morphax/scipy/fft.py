"""Cosine transforms, types 1 to 4, of the last axes asked for."""

from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.numpy import fft, promotion
from morphax.runtime.jit import program
from morphax.scipy.operands import floats, typeof
from morphax.support import dtypes

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = (None, "backward", "ortho", "forward")


def _phase(x: Any, turns: np.ndarray) -> Any:
    return jnp.asarray(np.exp(2j * np.pi * turns)).astype(dtypes.to_complex(typeof(x).dtype))


def _plain(x: Any, kind: int) -> Any:
    """The transform of the last axis as SciPy defines it for norm="backward"."""
    n = typeof(x).shape[-1]
    k = np.arange(n)
    if kind == 1:
        mirrored = jnp.concatenate([x, jnp.flip(x[..., 1:-1], -1)], axis=-1)
        return jnp.real(fft.rfft(mirrored, axis=-1))
    if kind == 2:
        mirrored = jnp.concatenate([x, jnp.flip(x, -1)], axis=-1)
        return jnp.real(fft.rfft(mirrored, axis=-1)[..., :n] * _phase(x, -k / (4 * n)))
    if kind == 3:
        # The transpose of type 2: half a spectrum of length 2n, whose other half follows by symmetry.
        half = x.astype(dtypes.to_complex(typeof(x).dtype)) * _phase(x, k / (4 * n))
        spectrum = jnp.concatenate([half, jnp.zeros_like(half[..., :1])], axis=-1)
        return fft.irfft(spectrum, n=2 * n, axis=-1)[..., :n] * (2 * n)
    shifted = x.astype(dtypes.to_complex(typeof(x).dtype)) * _phase(x, -k / (4 * n))
    long = fft.fft(shifted, n=2 * n, axis=-1)[..., :n]
    return 2 * jnp.real(long * _phase(x, -(2 * k + 1) / (8 * n)))


def _transformed(x: Any, kind: int, axis: int, norm: str | None, inverse: bool) -> Any:
    x = jnp.moveaxis(x, axis, -1)
    n = typeof(x).shape[-1]
    if kind == 1 and n < 2:
        raise ValueError(f"dct: type 1 needs at least two entries; axis {axis} has {n}.")
    length = 2 * (n - 1) if kind == 1 else 2 * n
    root = np.ones(n)
    if norm == "ortho":
        ends = [0, -1] if kind == 1 else [0] if kind in (2, 3) else []
        root[ends] = np.sqrt(0.5)
    root = jnp.asarray(root).astype(typeof(x).dtype)
    before, after = (kind in (1, 3), kind in (1, 2)) if norm == "ortho" else (False, False)
    out = _plain(x / root if before else x, kind)
    out = out * root if after else out
    scales = {None: (1.0, 1 / length), "forward": (1 / length, 1.0), "ortho": (length**-0.5,) * 2}
    scale = scales[None if norm == "backward" else norm][inverse]
    return jnp.moveaxis(out * scale, -1, axis)


def _sized(name: str, x: Any, axis: int, n: int | None) -> Any:
    if n is None:
        return x
    if n < 1:
        raise ValueError(f"{name}: the length must be at least 1; it is {n}.")
    size = typeof(x).shape[axis]
    if n <= size:
        return jnp.take(x, np.arange(n), axis=axis)
    widths = [(0, 0)] * typeof(x).ndim
    widths[axis] = (0, n - size)
    return jnp.pad(x, widths)


@program("name", "kind", "sizes", "axes", "norm", "inverse")
def _transform(x: Any, name: str, kind: int, sizes: Any, axes: Any, norm: str | None, inverse: bool) -> Any:
    (x,) = floats(name, x)
    if kind not in _INVERSE or norm not in _NORMS:
        raise ValueError(f"{name}: type must be 1 to 4, norm backward, ortho or forward; they are {kind} and {norm!r}.")
    kind = _INVERSE[kind] if inverse else kind
    rank = typeof(x).ndim
    if axes is None:
        axes = tuple(range(rank)) if sizes is None else tuple(range(rank - len(sizes), rank))
    axes = tuple([promotion.axis_of(name, axis, rank) for axis in axes])
    sizes = sizes or (None,) * len(axes)
    if len(sizes) != len(axes):
        raise ValueError(f"{name}: s and axes must be as many; they are {sizes} and {axes}.")
    for axis, n in zip(axes, sizes):
        x = _transformed(_sized(name, x, axis, n), kind, axis, norm, inverse)
    return x


def _tuple(x: Any) -> Any:
    return None if x is None else tuple(x) if isinstance(x, (list, tuple)) else (x,)


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The cosine transform of an axis, cut or padded to length `n`.

    >>> from morphax import numpy as jnp
    >>> dct(jnp.array([1.0, 1.0])).tolist()
    [4.0, 0.0]
    """
    return _transform(x, name="dct", kind=type, sizes=_tuple(n), axes=(axis,), norm=norm, inverse=False)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `dct` with the same arguments.

    >>> from morphax import numpy as jnp
    >>> idct(jnp.array([4.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    return _transform(x, name="idct", kind=type, sizes=_tuple(n), axes=(axis,), norm=norm, inverse=True)


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The cosine transform of several axes, all for None.

    >>> from morphax import numpy as jnp
    >>> dctn(jnp.ones((1, 2))).tolist()
    [[8.0, 0.0]]
    """
    return _transform(x, name="dctn", kind=type, sizes=_tuple(s), axes=_tuple(axes), norm=norm, inverse=False)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The inverse of `dctn` with the same arguments.

    >>> from morphax import numpy as jnp
    >>> idctn(jnp.array([[8.0, 0.0]])).tolist()
    [[1.0, 1.0]]
    """
    return _transform(x, name="idctn", kind=type, sizes=_tuple(s), axes=_tuple(axes), norm=norm, inverse=True)
