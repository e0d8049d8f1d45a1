"""Incomplete gamma and beta functions, with the derivative that draws of gamma variates need.

Formulas: NIST Digital Library of Mathematical Functions, chapters 5 and 8 (dlmf.nist.gov), named where they are used.
Everything is computed in float64, and the series and fractions run until all elements have converged.
"""

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from morphax.ir.primitive import Primitive
from morphax.ops import elementwise as ew
from morphax.ops import family, special
from morphax.ops.family import like
from morphax.ops.formulas import Number, State, Work, choose, horner, lowering, of

_exp, _log, _log1p, _expm1, _sqrt, _abs = map(of, (ew.exp, ew.log, ew.log1p, ew.expm1, ew.sqrt, ew.abs))
_pow, _digamma, _erfc = map(of, (ew.pow, special.digamma, special.erfc))


_EPS = 2.0**-53


# ---- what both families share ----------------------------------------------------------------------------------------

_LARGE = 20.0  # from here on the expansions in 1 / a hold to all digits
_NEAR = 0.5  # and where x lies within a half of a, there are expansions in x - a


def _log1pmx(x: Number) -> Number:
    """x - log(1 + x) for |x| < 1/2, without cancellation near 0.

    With s = x / (2 + x), log(1 + x) = 2 (s + s^3/3 + s^5/5 + ...), and x - 2 s = s x.
    """
    s = x / (x + 2.0)
    square = s * s
    return s * x - 2.0 * s * square * horner(square, [1.0 / k for k in range(3, 37, 2)])


@functools.cache
def _inverse_series(count: int) -> tuple[Fraction, ...]:
    """alpha with mu = alpha_1 eta + alpha_2 eta^2 + ..., where eta^2 / 2 = mu - log(1 + mu). DLMF 8.12.13."""
    alpha = [Fraction(0), Fraction(1)]
    for m in range(2, count):
        inner = sum((i * alpha[i] * alpha[m + 1 - i] for i in range(2, m)), Fraction(0))
        alpha.append((alpha[m - 1] - inner) / (m + 1))
    return tuple(alpha)


_ORDER, _DEGREE = 14, 30


@functools.cache
def _stirling() -> tuple[Fraction, ...]:
    """g with the scaled gamma function = 1 + g_1 / a + g_2 / a^2 + ...; g_k = (2k+1)!! alpha_{2k+1}. DLMF 5.11.3."""
    alpha = _inverse_series(2 * _ORDER + _DEGREE + 4)
    found, factor = [], Fraction(1)
    for k in range(_ORDER + 1):
        factor *= 2 * k + 1
        found.append(factor * alpha[2 * k + 1])
    return tuple(found)


@functools.cache
def _uniform() -> tuple[tuple[float, ...], ...]:
    """d with c_k(eta) = d_{k,0} + d_{k,1} eta + ... of Temme's expansion. DLMF 8.12.12."""
    alpha, g = _inverse_series(2 * _ORDER + _DEGREE + 4), _stirling()
    count = 2 * _ORDER + _DEGREE
    first = [2 * alpha[2] - 1, *((n + 2) * alpha[n + 2] for n in range(1, count))]
    rows = [first]
    for k in range(1, _ORDER):
        last = rows[-1]
        rows.append([(n + 2) * last[n + 2] + (-1) ** k * g[k] * first[n] for n in range(len(last) - 2)])
    # |eta| < 0.63 where |mu| < 1/2: leave out what stays below the last digit for all large a.
    sizes = [[abs(d) * 0.63**n / _LARGE**k for n, d in enumerate(row[:_DEGREE])] for k, row in enumerate(rows)]
    kept = [max([3, *(n + 1 for n, size in enumerate(row) if size > 1e-18)]) for row in sizes]
    return tuple([tuple(map(float, row[:count])) for row, count in zip(rows, kept, strict=True)])


_SHIFT = 12


def _gamma1p(a: Number) -> Number:
    """Gamma(1 + a) for 0 <= a < 20, as Gamma(1 + z) / ((a + 1) ... (a + 12)), z = a + 12, by Stirling's series."""
    z = a + float(_SHIFT)
    product = a + 1.0
    for k in range(2, _SHIFT + 1):
        product = product * (a + float(k))
    series = horner(1.0 / z, [float(g) for g in _stirling()])
    return _pow(z, z) * _exp(-z) * _sqrt(z * (2 * np.pi)) * series / product


def _scaled_gamma(a: Number) -> Number:
    """Gamma(a) / (sqrt(2 pi / a) (a / e)^a), for a > 0. DLMF 5.11.3 where a is large."""
    large = a >= _LARGE
    b = choose(large, a, _LARGE)
    stirling = horner(1.0 / b, [float(g) for g in _stirling()])
    c = choose(large, 1.0, a)
    direct = _gamma1p(c) * _exp(c) * _pow(c, -0.5 - c) * (1.0 / np.sqrt(2 * np.pi))
    return choose(large, stirling, direct)


def _excess(shape: Number, gap: Number, ratio: Number) -> Number:
    """shape (gap - log(1 + gap)), where 1 + gap is `ratio`."""
    near = _abs(gap) < _NEAR
    return shape * choose(near, _log1pmx(choose(near, gap, 0.0)), gap - _log(ratio))


# ---- incomplete gamma functions --------------------------------------------------------------------------------------


def _weight(a: Number, x: Number) -> Number:
    """x^a e^-x / Gamma(a) for a, x > 0. For large a as sqrt(a / 2 pi) e^(-a (mu - log(1 + mu))) / scaled gamma."""
    large = a >= _LARGE
    b = choose(large, a, _LARGE)
    far = _sqrt(b * (0.5 / np.pi)) * _exp(-_excess(b, (x - b) / b, x / b)) / _scaled_gamma(b)
    c = choose(large, 1.0, a)
    near = c * _pow(x, c) * _exp(-x) / _gamma1p(c)
    return choose(large, far, near)


def _regions(a: Number, x: Number) -> tuple[Number, Number, Number]:
    """Where the series, the continued fraction and the uniform expansion converge best."""
    uniform = (a >= _LARGE) & (_abs(x - a) < a * _NEAR)
    series = (x < a + 1.0) & ~uniform
    return series, ~series & ~uniform, uniform


def _series_step(state: State, n: Number, a: Number, x: Number) -> tuple[State, Number]:
    """1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ...; with a longer state also its derivative in a. DLMF 8.7.1."""
    term, total, *slopes = state
    ratio = x / (a + n)
    found = []
    moving = None
    if slopes:
        change = (slopes[0] - term / (a + n)) * ratio
        found = [change, slopes[1] + change]
        moving = _abs(change) > _abs(found[1]) * _EPS
    term = term * ratio
    total = total + term
    growing = term > total * _EPS
    return [term, total, *found], growing if moving is None else growing | moving


def _fraction_step(state: State, n: Number, a: Number, x: Number) -> tuple[State, Number]:
    """Two more terms of 1/(x + (1-a)/(1 + 1/(x + (2-a)/(1 + 2/(x + ...))))) by its convergents p/q; with a longer state
    also its derivative in a. DLMF 8.9.2; the fraction with half as many terms would cancel."""
    p0, p1, q0, q1, before, *slopes = state
    factor = n - a
    p2, q2 = p1 + factor * p0, q1 + factor * q0
    p3, q3 = x * p2 + n * p1, x * q2 + n * q1
    scale = 1.0 / q3
    value = p3 * scale
    moving = _abs(value - before) > _abs(value) * (4 * _EPS)
    found = []
    if slopes:
        dp0, dp1, dq0, dq1, last = slopes
        dp2, dq2 = dp1 + factor * dp0 - p0, dq1 + factor * dq0 - q0
        dp3, dq3 = x * dp2 + n * dp1, x * dq2 + n * dq1
        change = (dp3 - value * dq3) * scale
        moving = moving | (_abs(change - last) > _abs(change) * (4 * _EPS) + _abs(value) * 1e-17)
        found = [dp2 * scale, dp3 * scale, dq2 * scale, dq3 * scale, change]
    return [p2 * scale, value, q2 * scale, q3 * scale, value, *found], moving


def _loops(work: Work, a: Any, x: Any, slopes: bool) -> list[Any]:
    """Series and continued fraction, with derivatives in a if wanted, each where it is used, elsewhere at harmless
    points."""

    def harmless(a: Number, x: Number) -> list[Number]:
        series, fraction, _ = _regions(a, x)
        good = (a > 0.0) & (x > 0.0) & (x < np.inf) & (a < np.inf)
        series, fraction = series & good, fraction & good
        return [choose(series, a, 1.0), choose(series, x, 0.0), choose(fraction, a, 0.5), choose(fraction, x, 9.0)]

    a1, x1, a2, x2 = work.run(harmless, a, x)
    one, zero = work.low.constant(1, work.aval), work.low.constant(0, work.aval)
    start = [one, one, zero, zero] if slopes else [one, one]
    _, *series = work.loop(_series_step, start, [a1, x1])
    # Convergents 0/1 and 1/x.
    start = [zero, one, one, x2, zero]
    fraction = work.loop(_fraction_step, [*start, *([zero] * 5 if slopes else [])], [a2, x2])
    return [series[0], fraction[4], series[2], fraction[9]] if slopes else [series[0], fraction[4]]


def _eta(a: Number, x: Number) -> tuple[Number, Number]:
    """mu = x / a - 1, and eta with the sign of mu and eta^2 / 2 = mu - log(1 + mu). DLMF 8.12.1."""
    mu = (x - a) / a
    eta = _sqrt(2.0 * _log1pmx(mu))
    return mu, choose(mu < 0.0, -eta, eta)


def _uniform_values(a: Number, x: Number) -> list[Number]:
    """For P and Q the error function, and what is subtracted from the one and added to the other, over the weight.
    DLMF 8.12.3, 8.12.4 and 8.12.7."""
    _, eta = _eta(a, x)
    root = eta * _sqrt(0.5 * a)
    added = _descending(1.0 / a, [horner(eta, row) for row in _uniform()])
    return [0.5 * _erfc(-root), 0.5 * _erfc(root), added * _scaled_gamma(a) / a]


def _descending(x: Number, terms: list[Number]) -> Number:
    """terms[0] + terms[1] x + terms[2] x^2 + ..."""
    total = terms[-1]
    for term in terms[-2::-1]:
        total = total * x + term
    return total


def _uniform_slope(a: Number, x: Number) -> list[Number]:
    """The derivative of P in a over the weight, from the same formulas.

    With e^(-a eta^2 / 2) = weight * scaled gamma * sqrt(2 pi / a), and d eta / da = -ratio / a, ratio = mu / eta.
    """
    mu, eta = _eta(a, x)
    centre = eta.equals(0.0)
    ratio = choose(centre, 1.0, mu / choose(centre, 1.0, eta))
    inverse, log = 1.0 / a, _log1p(mu)
    changes = []
    for k, row in enumerate(_uniform()):
        slope = horner(eta, [n * d for n, d in enumerate(row)][1:])
        changes.append(horner(eta, row) * (log - (k + 0.5) * inverse) - slope * ratio * inverse)
    return [_scaled_gamma(a) * inverse * (0.5 * eta - ratio - _descending(inverse, changes))]


_ZETA = (
    1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.03692775514337, 1.0173430619844491,
    1.008349277381923, 1.0040773561979443, 1.0020083928260821, 1.000994575127818, 1.000494188604119,
    1.0002460865533080, 1.0001227133475785, 1.0000612481350587, 1.0000305882363070, 1.0000152822594086,
)  # fmt: skip


def _lgamma1p(a: Number) -> Number:
    """log Gamma(1 + a) for a >= 0, exact to first order at 0. DLMF 5.7.3."""
    near = a < 0.1
    series = [-np.euler_gamma, *((-1) ** k * z / k for k, z in enumerate(_ZETA, 2))]
    b = choose(near, a, 0.0)
    return choose(near, b * horner(b, series), _log(_gamma1p(a)))


def _small_upper(a: Number, x: Number) -> list[Number]:
    """Q for small a and x, where 1 - P would cancel: 1 - x^a / Gamma(1 + a) (1 + a sum of (-x)^n / ((a + n) n!)).
    DLMF 8.7.1."""
    small = _is_small(a, x)
    a, x = choose(small, a, 0.25), choose(small, x, 0.5)
    term = -x
    total = term / (a + 1.0)
    for n in range(2, 22):
        term = term * x * (-1.0 / n)
        total = total + term / (a + float(n))
    power = a * _log(x) - _lgamma1p(a)
    return [-_expm1(power) - a * _exp(power) * total]


def _is_small(a: Number, x: Number) -> Number:
    lower = (x <= 0.5) & (a < -0.4 / _log(choose(x <= 0.5, x, 0.5)))
    return lower | ((x > 0.5) & (x <= 1.1) & (a < 0.75 * x))


def _sane(a: Number, x: Number) -> list[Number]:
    """Which points are inside the domain, and the points with those outside replaced, everywhere and where the uniform
    expansion is used."""
    inside = _inside(a, x)
    b, y = choose(inside, a, 1.0), choose(inside, x, 1.0)
    _, _, uniform = _regions(b, y)
    return [b, y, choose(uniform, b, _LARGE), choose(uniform, y, _LARGE)]


def _inside(a: Number, x: Number) -> Number:
    return (a > 0.0) & (x > 0.0) & (a < np.inf) & (x < np.inf)


def _gamma_values(upper: bool) -> Callable[..., Any]:
    """P, or Q with `upper`."""

    def combined(a: Number, x: Number, *parts: Number) -> list[Number]:
        b, y, weight, total, fraction, lower_erf, upper_erf, added, small_upper = parts
        series, far, _ = _regions(b, y)
        by_series, by_fraction = weight * total / b, weight * fraction
        p = choose(series, by_series, choose(far, 1.0 - by_fraction, lower_erf - weight * added))
        if not upper:
            return [_at_edges(a, x, p, 1.0)]
        q = choose(series, 1.0 - by_series, choose(far, by_fraction, upper_erf + weight * added))
        return [_at_edges(a, x, choose(_is_small(b, y), small_upper, q), 0.0)]

    def build(work: Work, a: Any, x: Any) -> Any:
        total, fraction = _loops(work, a, x, False)
        b, y, uniform_a, uniform_x = work.run(_sane, a, x)
        parts = [*work.run(lambda a, x: [_weight(a, x)], b, y), total, fraction]
        parts += work.run(_uniform_values, uniform_a, uniform_x)
        parts += work.run(_small_upper, b, y) if upper else [total]
        return work.run(combined, a, x, b, y, *parts)[0]

    return build


def _gamma_slopes(draw: bool) -> Callable[..., Any]:
    """The derivative of P in a; with `draw`, that of a gamma variate x in a: -(dP/da) / (dP/dx)."""

    def combined(a: Number, x: Number, b: Number, y: Number, *parts: Number) -> list[Number]:
        scale, digamma, uniform, total, fraction, slope, fraction_slope = parts
        series, far, _ = _regions(b, y)
        log = _log(y) - digamma
        near_slope = (total * log + slope) / b
        far_slope = -(fraction * (log + 1.0 / b) + fraction_slope)
        change = scale * choose(series, near_slope, choose(far, far_slope, uniform))
        edge = (a > 0.0) & (x.equals(0.0) | x.equals(np.inf))
        return [choose(_inside(a, x), change, choose(edge, 0.0, np.nan))]

    def build(work: Work, a: Any, x: Any) -> Any:
        loops = _loops(work, a, x, True)
        b, y, uniform_a, uniform_x = work.run(_sane, a, x)
        scale = work.run(lambda a, x: [-x if draw else _weight(a, x), _digamma(a + 1.0)], b, y)
        uniform = work.run(_uniform_slope, uniform_a, uniform_x)
        return work.run(combined, a, x, b, y, *scale, *uniform, *loops)[0]

    return build


def _at_edges(a: Number, x: Number, value: Number, whole: float) -> Number:
    """P or Q, `whole` being its value beyond all mass."""
    before = (x.equals(0.0) & (a > 0.0)) | (a.equals(np.inf) & (x >= 0.0) & (x < np.inf))
    beyond = (x.equals(np.inf) & (a >= 0.0) & (a < np.inf)) | (a.equals(0.0) & (x > 0.0))
    edge = choose(before, x * 0.0 + (1.0 - whole), np.nan)
    return choose(_inside(a, x), value, choose(beyond, whole, edge))


# ---- incomplete beta function ----------------------------------------------------------------------------------------


def _beta_step(state: State, m: Number, a: Number, b: Number, x: Number) -> tuple[State, Number]:
    """Two more terms of 1/(1 + d_1/(1 + d_2/(1 + ...))) by its convergents p/q. DLMF 8.17.22."""
    p0, p1, q0, q1, before = state
    twice = a + 2.0 * m
    even = m * (b - m) * x / ((twice - 1.0) * twice)
    odd = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0))
    p0, q0 = p1 + even * p0, q1 + even * q0
    p1, q1 = p0 + odd * p1, q0 + odd * q1
    scale = 1.0 / q1
    value = p1 * scale
    moving = _abs(value - before) > _abs(value) * (8 * _EPS)
    return [p0 * scale, value, q0 * scale, q1 * scale, value], moving


def _beta_weight(a: Number, b: Number, x: Number) -> Number:
    """x^a (1 - x)^b / B(a, b), as sqrt(a b / (2 pi (a + b))) e^-(a f(u) + b f(v)) and scaled gamma functions, where
    f(u) = u - log(1 + u), 1 + u = x (a + b) / a, 1 + v = (1 - x)(a + b) / b, and a u + b v = 0."""
    y, whole = 1.0 - x, a + b
    excess = x * b - y * a
    parts = []
    for shape, share, gap in ((a, x, excess / a), (b, y, -excess / b)):
        parts.append(_excess(shape, gap, share * (whole / shape)))
    root = _sqrt(a * (b / whole) * (0.5 / np.pi))
    scaled = _scaled_gamma(whole) / (_scaled_gamma(a) * _scaled_gamma(b))
    return root * scaled * _exp(-(parts[0] + parts[1]))


def _beta(work: Work, a: Any, b: Any, x: Any) -> Any:
    def inside_of(a: Number, b: Number, x: Number) -> Number:
        return (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < np.inf) & (b < np.inf)

    def chosen(a: Number, b: Number, x: Number) -> list[Number]:
        """Operands of the fraction: exchanged beyond the mean, where it converges slowly."""
        inside = inside_of(a, b, x)
        a, b, x = (choose(inside, z, safe) for z, safe in ((a, 1.0), (b, 1.0), (x, 0.5)))
        swap = x > (a + 1.0) / (a + b + 2.0)
        return [choose(swap, b, a), choose(swap, a, b), choose(swap, 1.0 - x, x)]

    def start(a: Number, b: Number, x: Number) -> list[Number]:
        one = x * 0.0 + 1.0
        first = 1.0 - (a + b) * x / (a + 1.0)
        return [one, one, one, first, x * 0.0]

    given = work.run(chosen, a, b, x)
    *_, fraction = work.loop(_beta_step, work.run(start, *given), given)

    def finish(a: Number, b: Number, x: Number, fraction: Number) -> list[Number]:
        inside = inside_of(a, b, x)
        c, d, y = (choose(inside, z, safe) for z, safe in ((a, 1.0), (b, 1.0), (x, 0.5)))
        swap = y > (c + 1.0) / (c + d + 2.0)
        part = _beta_weight(c, d, y) * fraction / choose(swap, d, c)
        result = choose(swap, 1.0 - part, part)
        valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
        ambiguous = (a.equals(0.0) & b.equals(0.0)) | (a.equals(np.inf) & b.equals(np.inf))
        top = x.equals(1.0) | (a.equals(0.0) & (x > 0.0)) | (b.equals(np.inf) & (x > 0.0))
        edge = choose(top, x * 0.0 + 1.0, 0.0)
        edge = choose(valid & ~ambiguous, edge, np.nan)
        return [choose(inside, result, edge)]

    return work.run(finish, a, b, x, fraction)[0]


# ---- the operations --------------------------------------------------------------------------------------------------


def _density(a: Any, x: Any) -> Any:
    """x^(a-1) e^-x / Gamma(a): the derivative of P in x."""
    power = ew.sub(a, like(a, 1))
    constant = ew.eq(power, like(a, 0))
    log = ew.mul(power, ew.log(ew.select_n(constant, x, like(x, 1))))
    return ew.exp(ew.sub(ew.sub(log, x), special.lgamma(a)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b)."""
    logs = []
    for shape, log, base in ((a, ew.log, x), (b, ew.log1p, ew.neg(x))):
        power = ew.sub(shape, like(x, 1))
        constant = ew.eq(power, like(x, 0))
        safe = ew.select_n(constant, base, like(x, 0.5))
        logs.append(ew.mul(power, log(safe)))
    scale = ew.sub(ew.sub(special.lgamma(ew.add(a, b)), special.lgamma(a)), special.lgamma(b))
    return ew.exp(ew.add(ew.add(logs[0], logs[1]), scale))


def _row(name: str, fun: Callable[..., Any], *partials: Any) -> Primitive:
    return Primitive(
        name, type=family.elementwise_type(name, "f"), lower=lowering(fun), elementwise=True, partials=partials
    )


igamma = _row(
    "igamma",
    _gamma_values(False),
    lambda y, a, x: igamma_grad_a(a, x),
    lambda y, a, x: _density(a, x),
)
igammac = _row(
    "igammac",
    _gamma_values(True),
    lambda y, a, x: ew.neg(igamma_grad_a(a, x)),
    lambda y, a, x: ew.neg(_density(a, x)),
)
# The second derivative in a and x is that of the density in a.
igamma_grad_a = _row(
    "igamma_grad_a",
    _gamma_slopes(False),
    special.unknown("igamma_grad_a", "the shape a"),
    lambda y, a, x: ew.mul(_density(a, x), ew.sub(ew.log(x), special.digamma(a))),
)
random_gamma_grad = _row(
    "random_gamma_grad",
    _gamma_slopes(True),
    special.unknown("random_gamma_grad", "the shape a"),
    special.unknown("random_gamma_grad", "the draw x"),
)
regularized_incomplete_beta = _row(
    "regularized_incomplete_beta",
    _beta,
    special.unknown("regularized_incomplete_beta", "a"),
    special.unknown("regularized_incomplete_beta", "b"),
    lambda y, a, b, x: _beta_density(a, b, x),
)
