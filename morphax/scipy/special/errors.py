"""The normal distribution, error functions of real and complex numbers, and Fresnel's and Owen's integrals."""

import math
from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.ops import elementwise as ew
from morphax.ops import special
from morphax.runtime.jit import program
from morphax.scipy.operands import floats, numbers, smooth, typeof
from morphax.support import dtypes

_ROOT_TWO = math.sqrt(2)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_ROOT_PI = math.sqrt(math.pi)

# The complex error function by trapezoidal rules with the poles' residues: M. Al Azah, S. Chandler-Wilde, "Computation
# of the complex error function using modified trapezoidal rules", SIAM J. Numer. Anal. 59 (2021). With N = 11 the
# error is below 2e-15.
_N = 11
_H = math.sqrt(math.pi / (_N + 1))
_MIDPOINTS = tuple([(k + 0.5) * _H for k in range(_N + 1)])
_NODES = tuple([k * _H for k in range(1, _N + 1)])


def _floating(name: str, *xs: Any) -> list[Any]:
    for x in xs:
        dtype = typeof(jnp.asarray(x)).dtype
        if not dtypes.is_float(dtype):
            raise TypeError(f"{name}: takes floating numbers; an array of {dtype.name} was given. Convert it first.")
    return floats(name, *xs)


# ---- error functions -------------------------------------------------------------------------------------------------


@program()
def erf(x: Any) -> Any:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    >>> erf(0.0).item()
    0.0
    """
    return special.erf(*floats("erf", x))


@program()
def erfc(x: Any) -> Any:
    """1 - erf(x), accurate for large x.

    >>> erfc(0.0).item()
    1.0
    """
    return special.erfc(*floats("erfc", x))


@program()
def erfinv(x: Any) -> Any:
    """The inverse of `erf` on [-1, 1].

    >>> erfinv(0.0).item()
    0.0
    """
    return special.erf_inv(*floats("erfinv", x))


def _sum(points: tuple[float, ...], term: Any) -> Any:
    """The sum of exp(-t^2) term(t^2) over points, the small ones first."""
    terms = [math.exp(-t * t) * term(t * t) for t in reversed(points)]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return total


@smooth(lambda y, x: 2 * x * y - 2 / _ROOT_PI)
def erfcx_of(x: Any) -> Any:
    """erfcx of an operand."""
    size = jnp.abs(x)
    square = size * size
    residue_counts = size < math.pi / _H
    y = jnp.where(residue_counts, size, 1)
    residue = 2 * jnp.exp(y * y) / (1 + jnp.exp(2 * math.pi / _H * y))
    # For size > 1 the fraction is written so that squares do not overflow.
    far = jnp.where(size > 1, size, 1)
    sum_far = _sum(_MIDPOINTS, lambda t: 1 / (1 + t / far / far)) / far
    near = jnp.where(size > 1, 1, size)
    sum_near = near * _sum(_MIDPOINTS, lambda t: 1 / (t + jnp.where(size > 1, 1, square)))
    right = 2 * _H / math.pi * jnp.where(size > 1, sum_far, sum_near) + jnp.where(residue_counts, residue, 0)
    negative = jnp.where(x < 0, x, 0)
    return jnp.where(x < 0, 2 * jnp.exp(negative * negative) - right, right)


@program()
def erfcx(x: Any) -> Any:
    """exp(x^2) erfc(x): real, or complex as wofz(i x).

    >>> round(erfcx(0.0).item(), 5)
    1.0
    """
    (x,) = numbers("erfcx", x)
    if dtypes.is_complex(typeof(x).dtype):
        return _wofz(ew.complex(-jnp.imag(x), jnp.real(x)))
    return erfcx_of(x)


@smooth(lambda y, x: jnp.where(jnp.abs(x) > 50, -y / jnp.where(x == 0, 1, x), 1 - 2 * x * y))
def _dawsn(x: Any) -> Any:
    place = x / _H
    near_midpoint = jnp.abs(place - jnp.floor(place) - 0.5) < 0.25
    angle = math.pi * (place - jnp.round(place))
    bell = jnp.exp(-x * x)
    tangent = jnp.tan(jnp.where(near_midpoint, 0, angle))
    slope = jnp.tan(jnp.where(near_midpoint, angle, 1))
    huge = jnp.abs(x) > 1e4
    z = jnp.where(huge, 1, x)
    at_midpoints = 2 * _H / math.pi * z * _sum(_MIDPOINTS, lambda t: 1 / jnp.where(near_midpoint, 1, z * z - t))
    at_nodes = 2 * _H / math.pi * z * _sum(_NODES, lambda t: 1 / jnp.where(near_midpoint, z * z - t, 1))
    at_nodes = at_nodes + _H / (math.pi * jnp.where(near_midpoint, z, 1)) - bell / slope
    out = _ROOT_PI / 2 * jnp.where(near_midpoint, at_nodes, at_midpoints + bell * tangent)
    return jnp.where(huge, 0.5 / jnp.where(huge, x, 1), out)


@program()
def dawsn(x: Any) -> Any:
    """Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x, of real `x`.

    >>> dawsn(0.0).item()
    0.0
    """
    return _dawsn(*floats("dawsn", x))


def _wofz_quadrant(z: Any) -> Any:
    """w(z) for real and imaginary parts that are not negative."""
    x, y = jnp.real(z), jnp.imag(z)
    bound = math.pi / _H
    plain = y >= jnp.maximum(x, bound)
    place = x / _H
    nodes = ~plain & (y < x) & (jnp.abs(place - jnp.floor(place) - 0.5) <= 0.25)
    square = z * z
    factor = ew.complex(jnp.zeros_like(x), jnp.full_like(x, 2 * _H / math.pi)) * z
    one = jnp.ones_like(z)
    at_midpoints = factor * _sum(_MIDPOINTS, lambda t: 1 / jnp.where(nodes, one, square - t))
    at_nodes = factor * _sum(_NODES, lambda t: 1 / jnp.where(nodes, square - t, one))
    safe = jnp.where(nodes, z, one)
    at_nodes = at_nodes + ew.complex(jnp.zeros_like(x), jnp.full_like(x, _H / math.pi)) / safe
    # exp(-2 i pi z / h), of the residues; x / h only counts by its fraction.
    turn = 2 * math.pi * (place - jnp.round(place))
    growth = jnp.where(plain, 0, 2 * math.pi * y / _H)
    # |exp(-z^2)| < exp(bound^2) where residues count; beyond y of 6.2 with y < x they vanish.
    counts = ~plain & (growth < 85)
    growth = jnp.where(counts, growth, 0)
    loop = jnp.exp(ew.complex(growth, -turn))
    bell = jnp.exp(jnp.where(counts, -square, -one))
    residue = 2 * bell / jnp.where(nodes, 1 - loop, 1 + loop)
    return jnp.where(nodes, at_nodes, at_midpoints) + jnp.where(counts, residue, 0)


@smooth(lambda w, z: ew.complex(jnp.zeros_like(jnp.real(z)), jnp.full_like(jnp.real(z), 2 / _ROOT_PI)) - 2 * z * w)
def _wofz(z: Any) -> Any:
    x, y = jnp.real(z), jnp.imag(z)
    quadrant = ew.complex(jnp.abs(x), jnp.abs(y))
    w = _wofz_quadrant(quadrant)
    below = y < 0
    down = jnp.where(below, quadrant, 0)
    # w(-z) = 2 exp(-z^2) - w(z), and w(-conj z) = conj w(z)
    w = jnp.where(below, 2 * jnp.exp(-down * down) - w, w)
    return jnp.where((x < 0) ^ below, jnp.conj(w), w)


@program()
def wofz(z: Any) -> Any:
    """The Faddeeva function exp(-z^2) erfc(-i z), complex.

    >>> wofz(0.0).item().real
    1.0
    """
    (z,) = numbers("wofz", z)
    return _wofz(z.astype(dtypes.to_complex(typeof(z).dtype)))


# ---- the normal distribution -----------------------------------------------------------------------------------------


def ndtr_of(x: Any) -> Any:
    """The normal distribution function of an operand."""
    return 0.5 * special.erfc(x * (-1 / _ROOT_TWO))


@program()
def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal distribution.

    >>> ndtr(0.0).item()
    0.5
    """
    return ndtr_of(*_floating("ndtr", x))


@smooth(
    lambda y, x: jnp.where(
        x < -1,
        math.sqrt(2 / math.pi) / erfcx_of(jnp.where(x < -1, x, -1) * (-1 / _ROOT_TWO)),
        jnp.exp(-0.5 * x * x - y) / _ROOT_TWO_PI,
    )
)
def log_ndtr_of(x: Any) -> Any:
    """The log of the normal distribution function of an operand."""
    tail = jnp.where(x < -1, x, -1)
    low = jnp.log(0.5 * erfcx_of(tail * (-1 / _ROOT_TWO))) - 0.5 * tail * tail
    rest = jnp.where(x < -1, 0, x)
    return jnp.where(x < -1, low, jnp.log1p(-0.5 * special.erfc(rest * (1 / _ROOT_TWO))))


@program("series_order")
def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """log(ndtr(x)), accurate in both tails.

    Args:
      series_order: no effect but for its check, 0 to 30: the tail is exp(x^2) erfc(x), not a series.

    >>> round(log_ndtr(0.0).item(), 4)
    -0.6931
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order must be an int; it is {series_order!r}.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be 0 to 30; it is {series_order}.")
    return log_ndtr_of(*_floating("log_ndtr", x))


@smooth(lambda x, p: _ROOT_TWO_PI * jnp.exp(0.5 * x * x))
def ndtri_of(p: Any) -> Any:
    """The inverse of the normal distribution function of an operand."""
    upper = p > 0.5
    tail = jnp.where(upper, 1 - p, p)
    inside = (tail > 0) & (tail < 0.2)
    safe = jnp.where(inside, tail, 0.1)
    log = jnp.log(safe)
    t = jnp.sqrt(-2 * log)
    # Abramowitz and Stegun 26.2.23, then Newton's steps on log ndtr, which is nearly a parabola.
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(3):
        hazard = math.sqrt(2 / math.pi) / erfcx_of(x * (-1 / _ROOT_TWO))
        x = x - (log_ndtr_of(x) - log) / hazard
    x = jnp.where(upper, -x, x)
    middle = jnp.where(inside, 0.5, jnp.where((p > 0) & (p < 1), p, 0.5))
    center = _ROOT_TWO * special.erf_inv(2 * middle - 1)
    out = jnp.where(inside, x, center)
    out = jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, out))
    return jnp.where((p >= 0) & (p <= 1), out, jnp.nan)


@program()
def ndtri(p: Any) -> Any:
    """The inverse of `ndtr` on [0, 1]; nan outside.

    >>> ndtri(0.5).item()
    0.0
    """
    return ndtri_of(*_floating("ndtri", p))


# ---- integrals -------------------------------------------------------------------------------------------------------


def _half_turns(x: Any) -> Any:
    """pi x^2 / 2 less whole turns."""
    half = 0.5 * x * x
    return math.pi * (half - 2 * jnp.round(0.5 * half))


@smooth(lambda y, x: jnp.sin(_half_turns(x)))
def _fresnel_s(x: Any) -> Any:
    return _fresnel(x)[0]


@smooth(lambda y, x: jnp.cos(_half_turns(x)))
def _fresnel_c(x: Any) -> Any:
    return _fresnel(x)[1]


def _fresnel(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    small = size < 1
    u = 0.25 * math.pi**2 * jnp.where(small, size, 0) ** 4
    sine, cosine = jnp.zeros_like(u), jnp.zeros_like(u)
    for k in range(9, -1, -1):
        cosine = cosine * -u + 1 / (math.factorial(2 * k) * (4 * k + 1))
        sine = sine * -u + 1 / (math.factorial(2 * k + 1) * (4 * k + 3))
    sine, cosine = sine * 0.5 * math.pi * size**3, cosine * size
    # C + i S = (1 + i)/2 erf(sqrt(pi)/2 (1 - i) x); Abramowitz and Stegun 7.3.22.
    finite = ~small & jnp.isfinite(size)
    far = jnp.where(finite, size, 1)
    half_root = 0.5 * _ROOT_PI
    angle = _half_turns(far)
    tail = _wofz_quadrant(ew.complex(half_root * far, half_root * far)) * ew.complex(jnp.cos(angle), jnp.sin(angle))
    real, imag = 0.5 * (1 - jnp.real(tail)), -0.5 * jnp.imag(tail)
    sign = jnp.sign(x)
    s = jnp.where(finite, real + imag, jnp.where(small, sine, 0.5))
    c = jnp.where(finite, real - imag, jnp.where(small, cosine, 0.5))
    keep = jnp.isnan(x)
    return jnp.where(keep, x, sign * s), jnp.where(keep, x, sign * c)


@program()
def fresnel(x: Any) -> tuple[Any, Any]:
    """The integrals S and C of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to real x.

    >>> [y.item() for y in fresnel(0.0)]
    [0.0, 0.0]
    """
    (x,) = floats("fresnel", x)
    return _fresnel_s(x), _fresnel_c(x)


_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def _owens_core(h: Any, a: Any) -> Any:
    """T(h, a) for h >= 0 and 0 <= a <= 1, by Gauss-Legendre up to where exp(-h^2 t^2 / 2) vanishes."""
    reach = jnp.minimum(a, 9 / jnp.maximum(h, 1))
    total = jnp.zeros_like(h)
    for point, weight in zip(_POINTS.tolist(), _WEIGHTS.tolist(), strict=True):
        t = reach * (0.5 + 0.5 * point)
        total = total + weight * jnp.exp(-0.5 * (h * t) ** 2) / (1 + t * t)
    return total * 0.5 * reach * jnp.exp(-0.5 * h * h) / (2 * math.pi)


@smooth(
    lambda y, h, a: -jnp.exp(-0.5 * h * h) / _ROOT_TWO_PI * 0.5 * special.erf(a * h / _ROOT_TWO),
    lambda y, h, a: jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a)),
)
def _owens_t(h: Any, a: Any) -> Any:
    h, size = jnp.abs(h), jnp.abs(a)
    steep = size > 1
    # T(h, a) + T(a h, 1/a) = (Q(h) + Q(a h)) / 2 - Q(h) Q(a h), with Q the upper tail.
    ah = jnp.where(jnp.isinf(size), jnp.inf, jnp.where(jnp.isinf(size), 0, size) * h)
    low = jnp.where(steep, jnp.where(jnp.isinf(ah), 0, ah), h)
    core = _owens_core(low, jnp.where(steep, 1 / jnp.where(steep, size, 1), size))
    tail, far = ndtr_of(-h), ndtr_of(-ah)
    core = jnp.where(steep & jnp.isinf(ah), 0, core)
    return jnp.sign(a) * jnp.where(steep, 0.5 * (tail + far) - tail * far - core, core)


@program()
def owens_t(h: Any, a: Any) -> Any:
    """Owen's T: the probability that X > h and 0 < Y < a X, for independent standard normal X and Y.

    >>> round(owens_t(0.0, 1.0).item(), 4)
    0.125
    """
    return _owens_t(*floats("owens_t", h, a))
