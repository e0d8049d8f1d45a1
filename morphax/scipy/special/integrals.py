"""Exponential, sine and cosine integrals, Spence's function, and hypergeometric functions."""

import math
from collections.abc import Callable
from typing import Any

import scipy.special

from morphax import numpy as jnp
from morphax.control import loops
from morphax.ops import elementwise as ew
from morphax.ops import special
from morphax.runtime.jit import program
from morphax.scipy.operands import floats, smooth, typeof
from morphax.scipy.special.gammas import _gammasgn
from morphax.support import dtypes

_EULER = 0.57721566490153286061


def _repeat(count: int, step: Callable[[Any, Any], Any], state: Any, dtype: Any) -> Any:
    """`state` after step(state, k) for k = 1 ... count, k being of `dtype`."""
    return loops.fori_loop(1, count + 1, lambda k, s: step(s, k.astype(dtype)), state)


# ---- exponential integrals -------------------------------------------------------------------------------------------


def _expn_fraction(n: Any, x: Any) -> Any:
    """E_n(x) for x > 1 by Lentz's continued fraction; Abramowitz and Stegun 5.1.22, the even part."""

    def step(state: Any, k: Any) -> Any:
        b, c, d, h = state
        a = -k * (n - 1 + k)
        b = b + 2
        d = 1 / (a * d + b)
        c = b + a / c
        return b, c, d, h * c * d

    b = x + n
    start = (b, jnp.full_like(x, 1e30), 1 / b, 1 / b)
    return _repeat(90, step, start, typeof(x).dtype)[3] * jnp.exp(-x)


def _expn_series(n: Any, x: Any) -> Any:
    """E_n(x) for 0 < x <= 1 and n >= 1; Abramowitz and Stegun 5.1.12."""
    log = jnp.log(x)

    def step(state: Any, k: Any) -> Any:
        total, power = state
        power = power * -x / k
        odd = k == n - 1
        plain = -power / jnp.where(odd, 1, k - (n - 1))
        return total + jnp.where(odd, power * (special.digamma(n) - log), plain), power

    first = jnp.where(n == 1, -log - _EULER, 1 / jnp.where(n == 1, 1, n - 1))
    # The term of k = n - 1 carries the logarithm, also where it lies behind the sum; it is negligible there.
    return _repeat(22, step, (first, jnp.ones_like(x)), typeof(x).dtype)[0]


def _expn_slope(y: Any, n: Any, x: Any) -> Any:
    return -_expn(n - 1, x)


@smooth(None, _expn_slope)
def _expn(n: Any, x: Any) -> Any:
    valid = (n >= 0) & (n == jnp.floor(n)) & (x >= 0)
    inner = valid & (n >= 1) & (x > 0)
    large = inner & (x > 1)
    small = inner & ~large
    one = jnp.ones_like(x)
    fraction = _expn_fraction(jnp.where(large, n, one), jnp.where(large, x, 2 * one))
    series = _expn_series(jnp.where(small, n, one), jnp.where(small, x, one))
    out = jnp.where(large, fraction, series)
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, one), jnp.inf)
    out = jnp.where(x == 0, at_zero, out)
    out = jnp.where(n == 0, _expn_zero(jnp.where(x > 0, x, one)), out)
    out = jnp.where((n == 0) & (x == 0), jnp.inf, out)
    # Derivatives of E_0 have order -1: exp(-x) (1 + x) / x^2.
    safe = jnp.where(x > 0, x, one)
    below = jnp.exp(-safe) * (1 + safe) / (safe * safe)
    out = jnp.where((n == -1) & (x > 0), below, out)
    return jnp.where(jnp.isposinf(x), 0, jnp.where(valid | (n == -1), out, jnp.nan))


def _expn_zero(x: Any) -> Any:
    return jnp.exp(-x) / x


@program()
def expn(n: Any, x: Any) -> Any:
    """The integral of exp(-x t) / t^n for t from 1 on, for integers n >= 0 and real x >= 0.

    >>> expn(2, 0.0).item()
    1.0
    """
    n, x = floats("expn", n, x)
    return _expn(ew.stop_gradient(jnp.where(n < 0, jnp.nan, n)), x)


@program()
def exp1(x: Any) -> Any:
    """The integral of exp(-t) / t from x to infinity, for x >= 0.

    >>> round(exp1(1.0).item(), 4)
    0.2194
    """
    (x,) = floats("exp1", x)
    return _expn(jnp.ones_like(x), x)


@smooth(lambda y, x: jnp.exp(x) / x)
def _expi(x: Any) -> Any:
    one = jnp.ones_like(x)
    negative = -_expn(one, jnp.where(x < 0, -x, one))
    near, far = (x > 0) & (x <= 40), x > 40
    small = jnp.where(near, x, one)

    def power(state: Any, k: Any) -> Any:
        total, term = state
        term = term * small / k
        return total + term / k, term

    def falling(state: Any, k: Any) -> Any:
        total, term = state
        term = term * k / large
        return total + term, term

    large = jnp.where(far & jnp.isfinite(x), x, 41 * one)
    dtype = typeof(x).dtype
    series = _repeat(140, power, (_EULER + jnp.log(small), one), dtype)[0]
    asymptotic = _repeat(38, falling, (one, one), dtype)[0] * jnp.exp(large) / large
    out = jnp.where(near, series, jnp.where(far, asymptotic, negative))
    out = jnp.where(jnp.isposinf(x), jnp.inf, out)
    return jnp.where(x == 0, -jnp.inf, jnp.where(jnp.isnan(x), x, out))


@program()
def expi(x: Any) -> Any:
    """The exponential integral Ei: of exp(t) / t from minus infinity to x, its principal value.

    >>> round(expi(1.0).item(), 4)
    1.8951
    """
    return _expi(*floats("expi", x))


# ---- sine and cosine integrals, the dilogarithm ----------------------------------------------------------------------


def _sici(x: Any) -> tuple[Any, Any]:
    """Si and Ci of x >= 0."""
    near = x <= 4
    u = jnp.where(near, x, 0) ** 2
    sine, cosine = jnp.zeros_like(u), jnp.zeros_like(u)
    for k in range(20, 0, -1):
        sine = (sine + 1 / (math.factorial(2 * k + 1) * (2 * k + 1))) * -u
        cosine = (cosine + 1 / (math.factorial(2 * k) * (2 * k))) * -u
    sine = (sine + 1) * x
    cosine = cosine + _EULER + jnp.log(jnp.where(near, x, 1))
    # E_1(i x) = -Ci(x) + i (Si(x) - pi/2), Abramowitz and Stegun 5.2.20 and following
    finite = ~near & jnp.isfinite(x)
    far = jnp.where(finite, x, 5)
    b = ew.complex(jnp.ones_like(far), far)

    def step(state: Any, k: Any) -> Any:
        b, c, d, h = state
        b = b + 2
        d = 1 / (-k * k * d + b)
        c = b - k * k / c
        return b, c, d, h * c * d

    start = (b, jnp.full_like(b, 1e30), 1 / b, 1 / b)
    h = _repeat(60, step, start, typeof(x).dtype)[3]
    e = ew.complex(jnp.cos(far), -jnp.sin(far)) * h
    s = jnp.where(finite, jnp.imag(e) + 0.5 * math.pi, jnp.where(near, sine, 0.5 * math.pi))
    return s, jnp.where(finite, -jnp.real(e), jnp.where(near, cosine, 0))


@smooth(lambda y, x: jnp.sinc(x / math.pi))
def _si(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), x, jnp.sign(x) * _sici(jnp.abs(x))[0])


@smooth(lambda y, x: jnp.cos(x) / x)
def _ci(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), x, _sici(jnp.abs(x))[1])


@program()
def sici(x: Any) -> tuple[Any, Any]:
    """The sine integral Si(x), of sin(t) / t from 0, and the cosine integral Ci(|x|).

    >>> sici(0.0)[0].item()
    0.0
    """
    (x,) = floats("sici", x)
    return _si(x), _ci(x)


_BERNOULLI = [b / math.factorial(2 * k + 1) for k, b in enumerate(scipy.special.bernoulli(24)[::2].tolist())]


def _spence_middle(x: Any) -> Any:
    """Li_2(1 - x) for x in [1/2, 2] as the series of Bernoulli numbers in u = -log x."""
    u = -jnp.log(x)
    w = u * u
    total = jnp.full_like(x, _BERNOULLI[-1])
    for c in reversed(_BERNOULLI[1:-1]):
        total = total * w + c
    return u * (1 - 0.25 * u + w * total)


@smooth(
    lambda y, x: jnp.where(
        jnp.abs(x - 1) < 1e-3,
        -1 + (x - 1) / 2 - (x - 1) ** 2 / 3 + (x - 1) ** 3 / 4 - (x - 1) ** 4 / 5,
        jnp.log(x) / jnp.where(x == 1, 1, 1 - x),
    )
)
def _spence(x: Any) -> Any:
    large = x > 2
    # x -> 1/x, then x -> 1 - x; Abramowitz and Stegun 27.7.3 and following
    y = jnp.where(large, 1 / jnp.where(large, x, 1), x)
    small = y < 0.5
    z = jnp.where(small, 1 - y, y)
    value = _spence_middle(jnp.where(z > 0, z, 1))
    safe = jnp.where(small & (y > 0), y, 0.25)
    reflected = math.pi**2 / 6 - jnp.log(safe) * jnp.log1p(-safe) - value
    value = jnp.where(small, jnp.where(y == 0, math.pi**2 / 6, reflected), value)
    value = jnp.where(large, -0.5 * jnp.log(jnp.where(large, x, 1)) ** 2 - value, value)
    return jnp.where(x < 0, jnp.nan, value)


@program()
def spence(x: Any) -> Any:
    """Spence's function Li_2(1 - x): the integral of log(t) / (1 - t) from 1 to x >= 0.

    >>> spence(1.0).item() == 0
    True
    """
    return _spence(*floats("spence", x))


# ---- hypergeometric functions ----------------------------------------------------------------------------------------

_TERMS = 50000


def _series(ups: tuple[Any, ...], down: Any, x: Any) -> tuple[Any, list[Any], Any]:
    """The hypergeometric series sum of (a)_k ... x^k / ((c)_k k!), and its derivatives in each a and in c.

    It stops when no term and no derivative's term counts any more, or after 50 000 terms.
    """
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    eps = float(dtypes.finfo(typeof(x).dtype).eps) / 4

    def going(state: Any) -> Any:
        k, terms, sums = state
        counts = [jnp.abs(t) > eps * jnp.abs(s) for t, s in zip(terms, sums, strict=True)]
        return (k < _TERMS) & ((k < 3) | jnp.any(jnp.stack(counts)))

    def step(state: Any) -> Any:
        k, (term, *slopes), sums = state
        n = k.astype(typeof(x).dtype)
        scale = x / ((down + n) * (n + 1))
        factors = [a + n for a in ups]
        ratio = scale * math.prod(factors[1:], start=factors[0])
        changed = []
        for i, slope in enumerate(slopes[:-1]):
            rest = math.prod([f for j, f in enumerate(factors) if j != i], start=scale)
            changed.append(slope * ratio + term * rest)
        changed.append(slopes[-1] * ratio - term * ratio / (down + n))
        terms = (term * ratio, *changed)
        return k + 1, terms, tuple([s + t for s, t in zip(sums, terms, strict=True)])

    start = (one, *[zero] * (len(ups) + 1))
    _, _, sums = loops.while_loop(going, step, (jnp.asarray(0, "int32"), start, start))
    return sums[0], list(sums[1:-1]), sums[-1]


def _kummer(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """1F1 and its derivatives in a and b; negative x by 1F1(a, b, x) = exp(x) 1F1(b - a, b, -x)."""
    left = x < 0
    y, (by_a,), by_b = _series((jnp.where(left, b - a, a),), b, jnp.abs(x))
    scale = jnp.where(left, jnp.exp(jnp.where(left, x, 0)), 1)
    return y * scale, jnp.where(left, -by_a, by_a) * scale, jnp.where(left, by_a + by_b, by_b) * scale


def _far(a: Any, b: Any, x: Any) -> Any:
    """1F1 for large |x|; Abramowitz and Stegun 13.5.1, the leading part of the side of x."""
    left = x < 0
    size = jnp.abs(x)
    top = jnp.where(left, b - a, a)
    other = b - top

    def step(state: Any, k: Any) -> Any:
        total, term, live = state
        following = term * (other + k - 1) * (k - top) / (k * size)
        live = live & (jnp.abs(following) <= jnp.abs(term))
        return total + jnp.where(live, following, 0), following, live

    one = jnp.ones_like(x)
    total, _, _ = _repeat(40, step, (one, one, one == one), typeof(x).dtype)
    power = jnp.where(left, 0, x) - other * jnp.log(size)
    scale = special.lgamma(b) - special.lgamma(top) + power
    return _gammasgn(b) * _gammasgn(top) * jnp.exp(scale) * total


def _kummer_slope(y: Any, a: Any, b: Any, x: Any) -> Any:
    return a / b * _hyp1f1(a + 1, b + 1, x)


@smooth(
    lambda y, a, b, x: _kummer(a, b, x)[1],
    lambda y, a, b, x: _kummer(a, b, x)[2],
    _kummer_slope,
)
def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    top = jnp.where(x < 0, b - a, a)
    far = (jnp.abs(x) > 60 + jnp.maximum(jnp.abs(a), jnp.abs(b)) ** 2) & ~((top <= 0) & (top == jnp.floor(top)))
    near = _kummer(a, b, jnp.where(far, 0, x))[0]
    # exp(x) with a = b, whose other side is empty
    out = jnp.where(far, _far(a, b, jnp.where(far, x, 100)), near)
    out = jnp.where(a == b, jnp.exp(x), out)
    return jnp.where((b <= 0) & (b == jnp.floor(b)), jnp.inf, out)


@program()
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's function 1F1(a; b; x) of real numbers; derivatives in all three.

    >>> round(hyp1f1(1.0, 1.0, 1.0).item(), 4)
    2.7183
    """
    return _hyp1f1(*floats("hyp1f1", a, b, x))


def _gauss(a: Any, b: Any, c: Any, x: Any) -> tuple[Any, list[Any], Any]:
    """2F1 and its derivatives in a, b and c for x < 1; below 0 by (1 - x)^-a 2F1(a, c - b; c; x / (x - 1))."""
    left = x < 0
    z = jnp.where(left, x / (x - 1), x)
    y, (by_a, by_b), by_c = _series((a, jnp.where(left, c - b, b)), c, z)
    log = jnp.where(left, jnp.log1p(jnp.where(left, -x, 0)), 0)
    scale = jnp.exp(-a * log)
    by_a = by_a - jnp.where(left, y * log, 0)
    by_c = jnp.where(left, by_c + by_b, by_c)
    by_b = jnp.where(left, -by_b, by_b)
    return y * scale, [by_a * scale, by_b * scale], by_c * scale


def _ratio(top: tuple[Any, Any], bottom: tuple[Any, Any]) -> Any:
    """gamma gamma / (gamma gamma); 0 at a pole below."""
    logs = sum(map(special.lgamma, top)) - sum(map(special.lgamma, bottom))
    sign = math.prod(map(_gammasgn, (*top, *bottom)))
    pole = jnp.any(jnp.stack([(g <= 0) & (g == jnp.floor(g)) for g in bottom]), axis=0)
    return jnp.where(pole, 0, sign * jnp.exp(logs))


def _gauss_slope(y: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    return a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x)


@smooth(
    lambda y, a, b, c, x: _gauss(a, b, c, x)[1][0],
    lambda y, a, b, c, x: _gauss(a, b, c, x)[1][1],
    lambda y, a, b, c, x: _gauss(a, b, c, x)[2],
    _gauss_slope,
)
def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    s = c - a - b
    ends = ((a <= 0) & (a == jnp.floor(a))) | ((b <= 0) & (b == jnp.floor(b)))
    # Near 1 by 1 - x where the two solutions there are apart; Abramowitz and Stegun 15.3.6.
    apart = jnp.abs(s - jnp.round(s)) > 0.05
    close = (x > 0.9) & (x < 1) & apart & ~ends
    inside = (x < 1) | ends
    near = _gauss(a, b, c, jnp.where(close | ~inside, 0, jnp.where(x < 1, x, 0)))[0]
    rest = jnp.where(close, 1 - x, 0.05)
    s_safe = jnp.where(close, s, 0.5)
    first = _ratio((c, s_safe), (c - a, c - b)) * _series((a, b), 1 - s_safe, rest)[0]
    second = _series((c - a, c - b), 1 + s_safe, rest)[0]
    second = second * jnp.exp(s_safe * jnp.log(rest)) * _ratio((c, -s_safe), (a, b))
    polynomial = _series((a, b), c, jnp.where(ends & (x >= 1), x, 0))[0]
    out = jnp.where(close, first + second, jnp.where(ends & (x >= 1), polynomial, near))
    at_one = jnp.where(s > 0, _ratio((c, jnp.where(s > 0, s, 1)), (c - a, c - b)), jnp.inf)
    out = jnp.where(~ends & (x == 1), at_one, jnp.where(~ends & (x > 1), jnp.inf, out))
    out = jnp.where((c <= 0) & (c == jnp.floor(c)), jnp.inf, out)
    return jnp.where(jnp.isnan(x + a + b + c), jnp.nan, out)


@program()
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's function 2F1(a, b; c; x) of real numbers, x <= 1 (inf beyond, but for polynomials); derivatives in all.

    >>> round(hyp2f1(1.0, 1.0, 1.0, 0.5).item(), 4)
    2.0
    """
    return _hyp2f1(*floats("hyp2f1", a, b, c, x))
