"""Windows for signals, and the Bessel function that one of them needs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, promotion
from morphax.ops import bessel
from morphax.ops import elementwise as ew
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type


@program()
def i0(x: Any) -> Any:
    """Modified Bessel function of the first kind, of order 0 (Abramowitz and Stegun, 9.6.12).

    >>> from morphax import numpy as jnp
    >>> round(jnp.i0(1.0).item(), 4)
    1.2661
    """
    x = promotion.inexact("i0", x)
    if dtypes.is_complex(typeof(x).dtype):
        raise ValueError(f"i0: does not accept complex numbers; x is {typeof(x)}.")
    return ew.mul(ew.exp(ew.abs(x)), bessel.bessel_i0e(x))


def _size(name: str, M: Any) -> int:
    M = creation.concrete(name, "M", M)
    if M < 0:
        raise ValueError(f"{name}: M is the number of samples and must be at least 0; it is {M}.")
    return int(M)


def _window(name: str, M: Any, formula: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A window from its formula on [-1, 1]; a single sample is 1. Computed in float64 on the host."""
    size = _size(name, M)
    dtype = dtypes.default_float_dtype()
    values = formula(np.linspace(-1.0, 1.0, size)) if size > 1 else np.ones(size)
    return creation.asarray(values.astype(dtype), dtype)


def bartlett(M: int) -> Any:
    """Triangle that falls to 0 at both ends, with M samples.

    >>> from morphax import numpy as jnp
    >>> jnp.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", M, lambda t: 1 - abs(t))


def blackman(M: int) -> Any:
    """0.42 + 0.5 cos(pi t) + 0.08 cos(2 pi t) for M values of t from -1 to 1.

    >>> from morphax import numpy as jnp
    >>> jnp.blackman(3).round(3).tolist()[1]
    1.0
    """
    return _window("blackman", M, lambda t: 0.42 + 0.5 * np.cos(np.pi * t) + 0.08 * np.cos(2 * np.pi * t))


def hamming(M: int) -> Any:
    """0.54 + 0.46 cos(pi t) for M values of t from -1 to 1.

    >>> from morphax import numpy as jnp
    >>> jnp.hamming(3).round(2).tolist()[1]
    1.0
    """
    return _window("hamming", M, lambda t: 0.54 + 0.46 * np.cos(np.pi * t))


def hanning(M: int) -> Any:
    """0.5 + 0.5 cos(pi t) for M values of t from -1 to 1.

    >>> from morphax import numpy as jnp
    >>> jnp.hanning(3).tolist()
    [0.0, 1.0, 0.0]
    """
    return _window("hanning", M, lambda t: 0.5 + 0.5 * np.cos(np.pi * t))


@program("size")
def _kaiser(beta: Any, size: int) -> Any:
    beta = promotion.inexact("kaiser", beta)
    dtype = dtypes.default_float_dtype()
    arch = np.sqrt(np.maximum(1 - np.linspace(-1.0, 1.0, size) ** 2, 0)).astype(dtype)
    beta = promotion.as_dtype(beta, dtype)
    # I0(beta a) / I0(beta), with the growth exp(beta a - beta) apart, so that no great beta overflows.
    scaled = ew.mul(arch, beta)
    size_of = ew.abs(beta)
    growth = ew.exp(ew.sub(ew.abs(scaled), size_of))
    return ew.mul(growth, ew.div(bessel.bessel_i0e(scaled), bessel.bessel_i0e(beta)))


def kaiser(M: int, beta: Any) -> Any:
    """I0(beta sqrt(1 - t^2)) / I0(beta) for M values of t from -1 to 1.

    >>> from morphax import numpy as jnp
    >>> jnp.kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    size = _size("kaiser", M)
    if size < 2:
        return creation.ones(size)
    return _kaiser(beta, size=size)
