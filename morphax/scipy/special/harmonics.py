"""Associated Legendre functions and spherical harmonics, by recurrences of normalized functions."""

import math
import operator
from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.ops import elementwise as ew
from morphax.runtime.jit import program
from morphax.scipy.operands import floats, typeof

_WHOLE_SPHERE = math.sqrt(1 / (4 * math.pi))


@program("degree")
def _legendre(z: Any, degree: int) -> Any:
    """P_l^m(z), normalized over the sphere, for m on axis 0 and l on axis 1.

    Source: (l - m) P_l^m = (2l - 1) z P_{l-1}^m - (l + m - 1) P_{l-2}^m, Abramowitz and Stegun 8.5.3, normalized.
    """
    (z,) = floats("lpmn", z)
    root = jnp.sqrt((1 - z) * (1 + z))
    m = np.arange(degree + 1, dtype=float)
    diagonal = [jnp.full_like(z, _WHOLE_SPHERE)]
    for k in range(1, degree + 1):
        diagonal.append(-math.sqrt((2 * k + 1) / (2 * k)) * root * diagonal[-1])
    before, here = jnp.zeros((degree + 1, *typeof(z).shape), typeof(z).dtype), None
    columns = []
    for l in range(degree + 1):
        up = np.zeros(degree + 1)
        down = np.zeros(degree + 1)
        low = m[:l]
        up[:l] = np.sqrt((4 * l * l - 1) / (l * l - low * low))
        if l > 1:
            down[:l] = np.sqrt(((l - 1) ** 2 - low * low) * (2 * l + 1) / ((2 * l - 3) * (l * l - low * low)))
        column = before if here is None else _column(up, z) * z * here - _column(down, z) * before
        column = column.at[l].set(diagonal[l])
        columns.append(column)
        before, here = here if here is not None else before, column
    return jnp.stack(columns, axis=1)


def _column(weights: np.ndarray, z: Any) -> Any:
    weights = weights.reshape(-1, *[1] * typeof(z).ndim)
    return jnp.asarray(weights, dtype=typeof(z).dtype)


def _scales(degree: int) -> np.ndarray:
    """The factor of the normalized P_l^m over the plain one: sqrt((2l + 1) / (4 pi) (l - m)! / (l + m)!)."""
    out = np.ones((degree + 1, degree + 1))
    for l in range(degree + 1):
        for m in range(l + 1):
            out[m, l] = math.exp(0.5 * (math.lgamma(l - m + 1) - math.lgamma(l + m + 1)))
            out[m, l] *= _WHOLE_SPHERE * math.sqrt(2 * l + 1)
    return out


def _checked(name: str, m: Any, n: Any, z: Any) -> int:
    m, n = operator.index(m), operator.index(n)
    if m != n or n < 0:
        raise NotImplementedError(f"{name}: computes all orders up to the degree; m is {m} and n {n}. Give m = n >= 0.")
    if np.ndim(z) != 1:
        raise ValueError(f"{name}: z must have one axis; its shape is {np.shape(z)}.")
    return n


def lpmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """The associated Legendre functions P_l^k(z), for k <= l <= n, and their derivatives in z.

    Args:
      m, n: static int, equal: the highest order and degree.
      z: shape (p,), within (-1, 1).
    Returns:
      two arrays of shape (m + 1, n + 1, p), by order and degree; 0 where the order exceeds the degree.

    >>> lpmn(1, 1, jnp.array([0.5]))[0][0, :, 0].tolist()
    [1.0, 0.5]
    """
    degree = _checked("lpmn", m, n, z)
    values = _plain(z, degree=degree)
    return values, _slopes(values, z, degree=degree)


@program("degree")
def _plain(z: Any, degree: int) -> Any:
    values = _legendre(z, degree=degree)
    return values / jnp.asarray(_scales(degree)[:, :, None], dtype=typeof(values).dtype)


@program("degree")
def _slopes(values: Any, z: Any, degree: int) -> Any:
    l = jnp.asarray(np.arange(degree + 1.0)[None, :, None], dtype=typeof(values).dtype)
    order = jnp.asarray(np.arange(degree + 1.0)[:, None, None], dtype=typeof(values).dtype)
    lower = jnp.pad(values[:, :-1], ((0, 0), (1, 0), (0, 0)))
    # (1 - z^2) P_l' = (l + m) P_{l-1} - l z P_l; Abramowitz and Stegun 8.5.4
    return ((l + order) * lower - l * z * values) / ((1 - z) * (1 + z))


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Any:
    """The associated Legendre functions P_l^k(z), for k <= l <= n, as `lpmn` lays them out.

    Args:
      is_normalized: whether they are those of orthonormal spherical harmonics.

    >>> lpmn_values(1, 1, jnp.array([0.5]), False)[0, :, 0].tolist()
    [1.0, 0.5]
    """
    degree = _checked("lpmn_values", m, n, z)
    return _legendre(z, degree=degree) if is_normalized else _plain(z, degree=degree)


@program("top")
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, top: int) -> Any:
    theta, phi = floats("sph_harm_y", theta, phi)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    size = jnp.abs(m)
    sine, cosine = jnp.sin(theta), jnp.cos(theta)
    here = jnp.full_like(theta, _WHOLE_SPHERE)
    for k in range(1, top + 1):
        here = jnp.where(k <= size, -math.sqrt((2 * k + 1) / (2 * k)) * sine * here, here)
    before = jnp.zeros_like(here)
    square = (size * size).astype(here.dtype)
    for l in range(1, top + 1):
        gap = jnp.where(l > size, l * l - square, 1)
        up = jnp.sqrt((4 * l * l - 1) / gap)
        below = jnp.where(l > size, (l - 1) ** 2 - square, 0)
        down = jnp.sqrt(below * (2 * l + 1) / (max(2 * l - 3, 1) * gap))
        later = up * cosine * here - down * before
        live = (l > size) & (l <= n)
        before, here = jnp.where(live, here, before), jnp.where(live, later, here)
    here = jnp.where(size > n, 0, here)
    # Y_n^-m = (-1)^m conj(Y_n^m)
    here = jnp.where((m < 0) & (jnp.mod(size, 2) == 1), -here, here)
    angle = m.astype(phi.dtype) * phi
    return ew.complex(here * jnp.cos(angle), here * jnp.sin(angle))


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None) -> Any:
    """The spherical harmonic Y_n^m, orthonormal, with Condon and Shortley's phase.

    Args:
      n, m: integers, degree and order; 0 where |m| > n.
      theta: the polar angle in radians, 0 to pi.
      phi: the azimuth in radians.
      diff_n: only None.
      n_max: static int, at least all of `n`; needed when `n` is traced.
    Returns:
      complex, of the shape that the arguments broadcast to.

    >>> round(sph_harm_y(0, 0, 0.5, 0.5).item().real, 4)
    0.2821
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported. Differentiate with jvp.")
    if n_max is None:
        n_max = int(np.max(np.asarray(n), initial=0))
    return _sph_harm_y(jnp.asarray(n), jnp.asarray(m), theta, phi, top=operator.index(n_max))
