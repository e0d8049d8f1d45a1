"""Gamma, beta, incomplete and Bessel functions, and what is made of them. Numbers in comments are of Abramowitz and
Stegun."""

import math
import operator
from typing import Any

from morphax import numpy as jnp
from morphax.control import loops
from morphax.ops import bessel, incomplete, special
from morphax.ops import elementwise as ew
from morphax.runtime.jit import program
from morphax.scipy.operands import floats, numbers, smooth, typeof
from morphax.support import dtypes

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# Stirling's series of log gamma in 1/x, 6.1.41: B_2k / (2k (2k - 1)).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


@program()
def gammaln(x: Any) -> Any:
    """log |gamma(x)| for real `x`.

    >>> round(gammaln(3.0).item(), 4)
    0.6931
    """
    return special.lgamma(*floats("gammaln", x))


@program()
def loggamma(x: Any) -> Any:
    """The principal branch of log gamma(x): real for real x (nan below zero), analytic off the negative axis.

    >>> loggamma(2.0).item()
    0.0
    """
    (x,) = numbers("loggamma", x)
    if dtypes.is_complex(typeof(x).dtype):
        return _loggamma(x)
    return jnp.where(x < 0, jnp.nan, special.lgamma(x))


_SHIFT = 12  # the recurrence raises the real part to where Stirling's series has full accuracy


def _loggamma(z: Any) -> Any:
    left = jnp.real(z) < 0
    x, y = jnp.real(z), jnp.imag(z)
    mirrored = _log_gamma_right(jnp.where(left, 1 - z, z))
    # 6.1.17 with log sin(pi z) of the sheet on which the result is continuous in each half plane:
    # sin(pi z) = exp(s i pi (1/2 - z)) (1 - exp(2 s i pi z)) / 2 with s = sign(y).
    s = jnp.where(y < 0, -1.0, 1.0).astype(x.dtype)
    turn = ew.complex(jnp.zeros_like(y), s * math.pi)
    near = x - jnp.round(x)
    small = jnp.exp(2 * turn * ew.complex(near, y))
    log_sin = turn * (0.5 - z) + jnp.log(1 - small) - math.log(2.0)
    return jnp.where(left, math.log(math.pi) - log_sin - mirrored, mirrored)


def _log_gamma_right(z: Any) -> Any:
    shift = jnp.zeros_like(z)
    for k in range(_SHIFT):
        shift = shift + jnp.log(z + k)
    z = z + _SHIFT
    return (z - 0.5) * jnp.log(z) - z + _HALF_LOG_TWO_PI + _stirling(z) - shift


def _stirling(x: Any) -> Any:
    w = 1 / (x * x)
    total = jnp.full_like(x, _STIRLING[-1])
    for c in reversed(_STIRLING[:-1]):
        total = total * w + c
    return total / x


@program()
def gammasgn(x: Any) -> Any:
    """The sign of gamma(x); nan at the negative integers.

    >>> gammasgn(-0.5).item()
    -1.0
    """
    (x,) = floats("gammasgn", x)
    return _gammasgn(x)


def _gammasgn(x: Any) -> Any:
    whole = jnp.floor(x)
    sign = jnp.where(jnp.mod(whole, 2) == 0, 1, -1).astype(x.dtype)
    sign = jnp.where(jnp.isnan(x) | ((x == whole) & (x < 0)), jnp.nan, sign)
    return jnp.where((x > 0) | ((x == 0) & ~jnp.signbit(x)), 1, jnp.where(x == 0, -1, sign))


@smooth(lambda y, x: y * special.digamma(x))
def _gamma(x: Any) -> Any:
    return _gammasgn(x) * jnp.exp(special.lgamma(x))


@program()
def gamma(x: Any) -> Any:
    """The gamma function of real `x`; nan at the negative integers.

    >>> round(gamma(5.0).item(), 3)
    24.0
    """
    return _gamma(*floats("gamma", x))


@program()
def _factorial(n: Any) -> Any:
    (n,) = floats("factorial", n)
    return jnp.where(n < 0, 0, _gamma(n + 1))


def factorial(n: Any, exact: bool = False) -> Any:
    """gamma(n + 1), and 0 for negative `n`.

    >>> round(factorial(4).item(), 3)
    24.0
    """
    if exact:
        raise NotImplementedError("factorial: exact=True needs integers of any length. Use math.factorial.")
    return _factorial(n)


@smooth(
    lambda y, z, m: jnp.where(m == 0, 0, y * (special.digamma(z + m) - special.digamma(z))),
    lambda y, z, m: y * special.digamma(z + m),
)
def _poch(z: Any, m: Any) -> Any:
    top = z + m
    pole, falls = (z <= 0) & (z == jnp.floor(z)), (top <= 0) & (top == jnp.floor(top))
    # At poles of both, the ratio by reflection: (-1)^m gamma(1 - z) / gamma(1 - z - m).
    mirrored = jnp.where(jnp.mod(m, 2) == 0, 1, -1) * jnp.exp(special.lgamma(1 - z) - special.lgamma(1 - top))
    plain = _gammasgn(z) * _gammasgn(top) * jnp.exp(special.lgamma(top) - special.lgamma(z))
    out = jnp.where(pole & falls, mirrored, jnp.where(pole, 0, plain))
    return jnp.where(m == 0, 1, out)


@program()
def poch(z: Any, m: Any) -> Any:
    """Pochhammer's symbol gamma(z + m) / gamma(z).

    >>> round(poch(3.0, 2.0).item(), 3)
    12.0
    """
    return _poch(*floats("poch", z, m))


def betaln_of(a: Any, b: Any) -> Any:
    """log |B(a, b)| of operands. From 8 on by differences of Stirling's series, where log gammas would cancel."""
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    direct = special.lgamma(a) + (special.lgamma(b) - special.lgamma(a + b))
    big, both = b >= 8, (a >= 8) & (b >= 8)
    one = jnp.ones_like(a)
    x, y = jnp.where(big & (a > 0), a, one), jnp.where(big, b, 8 * one)
    ratio = jnp.log1p(x / y)
    one_large = special.lgamma(x) - (y - 0.5) * ratio - x * jnp.log(x + y) + x + _stirling(y) - _stirling(x + y)
    x, y = jnp.where(both, a, 8 * one), jnp.where(both, b, 8 * one)
    both_large = _HALF_LOG_TWO_PI - 0.5 * jnp.log(y) + (x - 0.5) * jnp.log(x / (x + y)) - y * jnp.log1p(x / y)
    both_large = both_large + _stirling(x) + (_stirling(y) - _stirling(x + y))
    return jnp.where(both, both_large, jnp.where(big & (a > 0), one_large, direct))


@smooth(
    lambda y, a, b: special.digamma(a) - special.digamma(a + b),
    lambda y, a, b: special.digamma(b) - special.digamma(a + b),
)
def _betaln(a: Any, b: Any) -> Any:
    return betaln_of(a, b)


@program()
def betaln(a: Any, b: Any) -> Any:
    """log |B(a, b)|, accurate also where both are large.

    >>> round(betaln(1.0, 2.0).item(), 4)
    -0.6931
    """
    return _betaln(*floats("betaln", a, b))


@program()
def beta(a: Any, b: Any) -> Any:
    """The beta function gamma(a) gamma(b) / gamma(a + b).

    >>> round(beta(2.0, 2.0).item(), 4)
    0.1667
    """
    a, b = floats("beta", a, b)
    sign = _gammasgn(a) * _gammasgn(b) * _gammasgn(a + b)
    return ew.stop_gradient(sign) * jnp.exp(_betaln(a, b))


@program("repetition")
def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:
    """The number of ways to choose `k` of `N` things; 0 outside 0 <= k <= N.

    >>> round(comb(5, 2).item(), 3)
    10.0
    """
    n, k = floats("comb", N, k)
    if repetition:
        n = n + k - 1
    inside = (k >= 0) & (n >= 0) & (k <= n)
    n, k = jnp.where(inside, n, 1), jnp.where(inside, k, 0)
    count = jnp.exp(-_betaln(1 + n - k, 1 + k)) / (n + 1)
    return jnp.where(inside, count, 0)


def _dimension(d: Any) -> int:
    try:
        return operator.index(d)
    except TypeError as error:
        raise TypeError(f"multigammaln: d must be a static int; it is {d!r}.") from error


@program("d")
def _multigammaln(a: Any, d: int) -> Any:
    (a,) = floats("multigammaln", a)
    shifted = jnp.expand_dims(a, -1) - jnp.arange(d, dtype=typeof(a).dtype) / 2
    return d * (d - 1) / 4 * math.log(math.pi) + jnp.sum(special.lgamma(shifted), axis=-1)


def multigammaln(a: Any, d: int) -> Any:
    """log of the multivariate gamma function of dimension `d`, a static int.

    Source: d (d - 1) / 4 log(pi) + sum of gammaln(a - j / 2) over 0 <= j < d.

    >>> round(multigammaln(1.0, 1).item(), 4)
    0.0
    """
    return _multigammaln(a, _dimension(d))


@program()
def digamma(x: Any) -> Any:
    """The derivative of log gamma(x).

    >>> round(digamma(1.0).item(), 4)
    -0.5772
    """
    return special.digamma(*floats("digamma", x))


def _polygamma_slope(y: Any, n: Any, x: Any) -> Any:
    return _polygamma(n + 1, x)


@smooth(None, _polygamma_slope)
def _polygamma(n: Any, x: Any) -> Any:
    return jnp.where(n == 0, special.digamma(x), special.polygamma(n, x))


@program()
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order `n` of digamma(x), for integers n >= 0.

    >>> round(polygamma(1, 1.0).item(), 4)
    1.6449
    """
    if not dtypes.is_integer(typeof(jnp.asarray(n)).dtype):
        raise TypeError(f"polygamma: n must be an integer; its dtype is {typeof(jnp.asarray(n)).dtype.name}.")
    (x,) = floats("polygamma", x)
    n, x = jnp.broadcast_arrays(jnp.asarray(n).astype(typeof(x).dtype), x)
    return _polygamma(ew.stop_gradient(n), x)


@program()
def zeta(x: Any, q: Any = None) -> Any:
    """The sum of (q + k)^-x over k >= 0, for x > 1: Riemann's zeta function where q is None.

    >>> round(zeta(2.0, 1.0).item(), 4)
    1.6449
    """
    return special.zeta(*floats("zeta", x, 1.0 if q is None else q))


@program()
def gammainc(a: Any, x: Any) -> Any:
    """The lower incomplete gamma function, regularized: P(a, x).

    >>> round(gammainc(1.0, 1.0).item(), 4)
    0.6321
    """
    return incomplete.igamma(*floats("gammainc", a, x))


@program()
def gammaincc(a: Any, x: Any) -> Any:
    """The upper incomplete gamma function, regularized: Q(a, x) = 1 - P(a, x).

    >>> round(gammaincc(1.0, 1.0).item(), 4)
    0.3679
    """
    return incomplete.igammac(*floats("gammaincc", a, x))


@program()
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The incomplete beta function, regularized: I_x(a, b).

    >>> round(betainc(1.0, 1.0, 0.25).item(), 4)
    0.25
    """
    return incomplete.regularized_incomplete_beta(*floats("betainc", a, b, x))


# ---- Bessel functions ------------------------------------------------------------------------------------------------


@program()
def i0e(x: Any) -> Any:
    """exp(-|x|) I_0(x), I_0 being a modified Bessel function.

    >>> i0e(0.0).item()
    1.0
    """
    return bessel.bessel_i0e(*floats("i0e", x))


@program()
def i1e(x: Any) -> Any:
    """exp(-|x|) I_1(x), I_1 being a modified Bessel function.

    >>> i1e(0.0).item()
    0.0
    """
    return bessel.bessel_i1e(*floats("i1e", x))


def _i0_slope(y: Any, x: Any) -> Any:
    return _i1(x)


@smooth(_i0_slope)
def _i0(x: Any) -> Any:
    return jnp.exp(jnp.abs(x)) * bessel.bessel_i0e(x)


@smooth(lambda y, x: _i0(x) - jnp.where(x == 0, 0.5, y / jnp.where(x == 0, 1, x)))
def _i1(x: Any) -> Any:
    return jnp.exp(jnp.abs(x)) * bessel.bessel_i1e(x)


@program()
def i0(x: Any) -> Any:
    """The modified Bessel function I_0(x).

    >>> i0(0.0).item()
    1.0
    """
    return _i0(*floats("i0", x))


@program()
def i1(x: Any) -> Any:
    """The modified Bessel function I_1(x).

    >>> i1(0.0).item()
    0.0
    """
    return _i1(*floats("i1", x))


@program("v", "n_iter")
def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """The Bessel functions J_0(z) to J_v(z), on a new leading axis.

    Args:
      z: real; accurate for |z| below about n_iter - 20.
      v: static int, the highest order.
      n_iter: static int, the order at which the downward recurrence starts.

    Source: Miller's algorithm, Abramowitz and Stegun 9.12, with 1 = J_0 + 2 J_2 + 2 J_4 + ...

    >>> bessel_jn(0.0, v=1).tolist()
    [1.0, 0.0]
    """
    (z,) = floats("bessel_jn", z)
    if v < 0 or n_iter < v:
        raise ValueError(f"bessel_jn: needs 0 <= v <= n_iter; v is {v} and n_iter {n_iter}.")
    origin = z == 0
    safe = jnp.where(origin, 1, z)
    large, zero = 1e30, jnp.zeros_like(safe)

    def step(state: Any, k: Any) -> Any:
        upper, here, total = state
        below = 2 * k / safe * here - upper
        total = total + jnp.where(jnp.mod(k, 2) == 1, jnp.where(k == 1, below, 2 * below), 0)
        # Only ratios count: all is divided where it grows beyond bounds.
        scale = jnp.where(jnp.abs(below) > large, 1 / large, 1)
        return (here * scale, below * scale, total * scale), (below, scale)

    orders = jnp.arange(n_iter, 0, -1).astype(typeof(safe).dtype)
    start = (zero, jnp.full_like(safe, 1e-30), zero)
    (_, _, total), (values, scales) = loops.scan(step, start, orders)
    # values[i] is of order n_iter - 1 - i, before the scales of the steps from i on.
    after = jnp.flip(jnp.cumprod(jnp.flip(scales, 0), axis=0), 0)
    found = jnp.flip(values * after / total, 0)[: v + 1]
    at_zero = jnp.zeros((v + 1, *typeof(safe).shape), typeof(safe).dtype).at[0].set(1)
    found = jnp.concatenate([found, jnp.zeros((v + 1 - found.shape[0], *found.shape[1:]), found.dtype)])
    return jnp.where(origin, at_zero, found)
