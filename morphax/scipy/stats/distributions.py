"""Univariate distributions, a row each: the log of the density and what else has a formula of its own.

A row's functions take the standardized variable and the shapes. `functions` makes the public ones from them: with
`loc` and `scale`, the support, and what follows by complement, logarithm and exponential.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from morphax import numpy as jnp
from morphax.ops import bessel, incomplete, special
from morphax.runtime.jit import program
from morphax.scipy.operands import floats
from morphax.scipy.special.elementary import _xlog1py as xlog1py
from morphax.scipy.special.elementary import _xlogy as xlogy
from morphax.scipy.special.errors import log_ndtr_of, ndtr_of, ndtri_of
from morphax.scipy.special.gammas import _betaln as betaln

Formula = Callable[..., Any]
_ALL = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Row(NamedTuple):
    """A distribution. `public` has the names of its functions, and `formulas` those that are not derived."""

    name: str
    public: str
    log: Formula
    shapes: tuple[str, ...] = ()
    support: Any = _ALL  # two numbers, or a function of the shapes
    formulas: dict[str, Formula] = {}  # noqa: RUF012  never changed
    discrete: bool = False
    moved: str = "loc scale"
    first: dict[str, str] = {}  # noqa: RUF012  the name of the first parameter where it is not the usual


# ---- formulas --------------------------------------------------------------------------------------------------------


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0."""
    small = x < math.log(2)
    return jnp.where(small, jnp.log(-jnp.expm1(-jnp.where(small, x, 1))), jnp.log1p(-jnp.exp(-jnp.where(small, 1, x))))


def _cauchy_lower(y: Any) -> Any:
    return jnp.arctan2(jnp.ones_like(y), -y) / math.pi


def _cauchy_quantile(q: Any) -> Any:
    tail = jnp.minimum(q, 1 - q)
    cotangent = 1 / jnp.tan(math.pi * tail)
    return jnp.where(q < 0.5, -cotangent, cotangent)


def _logistic_log(y: Any) -> Any:
    size = jnp.abs(y)
    return -size - 2 * jnp.log1p(jnp.exp(-size))


def _gumbel_logsf(y: Any) -> Any:
    return _log1mexp(jnp.exp(-y))


def _t_log(y: Any, df: Any) -> Any:
    return -betaln(df / 2, jnp.full_like(df, 0.5)) - 0.5 * jnp.log(df) - (df + 1) / 2 * jnp.log1p(y * y / df)


def _gennorm_tail(y: Any, b: Any) -> Any:
    power = jnp.where(y == 0, 0, jnp.abs(jnp.where(y == 0, 1, y)) ** b)
    return 0.5 * incomplete.igammac(1 / b, power)


def _gennorm_log(y: Any, b: Any) -> Any:
    power = jnp.where(y == 0, 0, jnp.abs(jnp.where(y == 0, 1, y)) ** b)
    return jnp.log(b / 2) - special.lgamma(1 / b) - power


def _log_mass(a: Any, b: Any) -> Any:
    """log of the normal probability of [a, b]."""
    mirror = a > 0
    a, b = jnp.where(mirror, -b, a), jnp.where(mirror, -a, b)
    upper = log_ndtr_of(b)
    left = b <= 0
    gap = jnp.where(left, upper - log_ndtr_of(a), 1)
    across = jnp.log1p(-jnp.where(left, 0, ndtr_of(a) + ndtr_of(-b)))
    return jnp.where(left, upper + _log1mexp(gap), across)


def _truncnorm_logcdf(y: Any, a: Any, b: Any) -> Any:
    return _near_one(_log_mass(a, y) - _log_mass(a, b), _log_mass(y, b) - _log_mass(a, b))


def _truncnorm_logsf(y: Any, a: Any, b: Any) -> Any:
    return _near_one(_log_mass(y, b) - _log_mass(a, b), _log_mass(a, y) - _log_mass(a, b))


def _near_one(log: Any, complement: Any) -> Any:
    """log p, from log(1 - p) where p is near 1."""
    close = log > -0.5
    return jnp.where(close, jnp.log1p(-jnp.exp(jnp.where(close, complement, -1))), log)


def _truncnorm_log(y: Any, a: Any, b: Any) -> Any:
    return -0.5 * y * y - _HALF_LOG_TWO_PI - _log_mass(a, b)


def _von_mises_log(x: Any, kappa: Any) -> Any:
    return -2 * kappa * jnp.sin(0.5 * x) ** 2 - jnp.log(2 * math.pi * bessel.bessel_i0e(kappa))


def _wrapped_cauchy_log(x: Any, c: Any) -> Any:
    away = (1 - c) ** 2 + 4 * c * jnp.sin(0.5 * x) ** 2
    return jnp.where((c > 0) & (c < 1), jnp.log((1 - c) * (1 + c) / (2 * math.pi * away)), jnp.nan)


def _log_choose(n: Any, k: Any) -> Any:
    return -betaln(1 + n - k, 1 + k) - jnp.log1p(n)


def _bernoulli_quantile(q: Any, p: Any) -> Any:
    valid = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    return jnp.where(valid, jnp.where(q <= 1 - p, 0, 1), jnp.nan).astype(q.dtype)


def _poisson_entropy(mu: Any) -> Any:
    """By the sum of -p log p below 60, from there on by the series in 1/mu of Evans and Boersma (1988)."""
    small = mu < 60
    rate = jnp.expand_dims(jnp.where(small, mu, 1), -1)
    k = jnp.arange(256, dtype=mu.dtype)
    log = xlogy(*jnp.broadcast_arrays(k, rate)) - special.lgamma(k + 1) - rate
    total = -jnp.sum(jnp.where(jnp.isfinite(log), jnp.exp(log) * jnp.where(jnp.isfinite(log), log, 0), 0), axis=-1)
    w = 1 / jnp.where(small, 60, mu)
    series = 0.5 * jnp.log(2 * math.pi * math.e / w) - w * (1 / 12 + w * (1 / 24 + w * (19 / 360 + w * 9 / 80)))
    return jnp.where(mu < 0, jnp.nan, jnp.where(small, total, series))


_ALL_TAILS = "logpdf pdf cdf logcdf sf logsf"

ROWS = (
    Row("bernoulli", "logpmf pmf cdf ppf", lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), ("p",), (0.0, 1.0), {
        "cdf": lambda k, p: jnp.where(k < 1, 1 - p, 1),
        "ppf": _bernoulli_quantile,
    }, discrete=True),
    Row("beta", _ALL_TAILS, lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b),
        ("a", "b"), (0.0, 1.0), {
        "cdf": lambda y, a, b: incomplete.regularized_incomplete_beta(a, b, y),
        "sf": lambda y, a, b: incomplete.regularized_incomplete_beta(b, a, 1 - y),
    }),
    Row("betabinom", "logpmf pmf", lambda k, n, a, b: _log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b),
        ("n", "a", "b"), lambda n, a, b: (0.0, n), discrete=True),
    Row("binom", "logpmf pmf", lambda k, n, p: _log_choose(n, k) + xlogy(k, p) + xlog1py(n - k, -p),
        ("n", "p"), lambda n, p: (0.0, n), discrete=True),
    Row("cauchy", f"{_ALL_TAILS} ppf isf", lambda y: -math.log(math.pi) - jnp.log1p(y * y), formulas={
        "cdf": _cauchy_lower,
        "sf": lambda y: _cauchy_lower(-y),
        "ppf": _cauchy_quantile,
        "isf": lambda q: -_cauchy_quantile(q),
    }),
    Row("chi2", _ALL_TAILS, lambda y, df: xlogy(df / 2 - 1, y / 2) - y / 2 - special.lgamma(df / 2) - math.log(2),
        ("df",), _POSITIVE, {
        "cdf": lambda y, df: incomplete.igamma(df / 2, y / 2),
        "sf": lambda y, df: incomplete.igammac(df / 2, y / 2),
    }),
    Row("expon", f"{_ALL_TAILS} ppf", lambda y: -y, (), _POSITIVE, {
        "cdf": lambda y: -jnp.expm1(-y),
        "logsf": lambda y: -y,
        "logcdf": _log1mexp,
        "ppf": lambda q: -jnp.log1p(-q),
    }),
    Row("gamma", _ALL_TAILS, lambda y, a: xlogy(a - 1, y) - y - special.lgamma(a), ("a",), _POSITIVE, {
        "cdf": lambda y, a: incomplete.igamma(a, y),
        "sf": lambda y, a: incomplete.igammac(a, y),
    }),
    Row("gennorm", "logpdf pdf cdf", _gennorm_log, ("beta",), moved="", formulas={
        "cdf": lambda y, b: jnp.where(y < 0, _gennorm_tail(y, b), 1 - _gennorm_tail(y, b)),
    }),
    Row("geom", "logpmf pmf", lambda k, p: xlog1py(k - 1, -p) + jnp.log(p), ("p",), (1.0, math.inf), discrete=True),
    Row("gumbel_l", f"{_ALL_TAILS} ppf", lambda y: y - jnp.exp(y), first={"ppf": "p"}, formulas={
        "cdf": lambda y: -jnp.expm1(-jnp.exp(y)),
        "logcdf": lambda y: _gumbel_logsf(-y),
        "logsf": lambda y: -jnp.exp(y),
        "ppf": lambda p: jnp.log(-jnp.log1p(-p)),
    }),
    Row("gumbel_r", f"{_ALL_TAILS} ppf", lambda y: -y - jnp.exp(-y), first={"ppf": "p"}, formulas={
        "logcdf": lambda y: -jnp.exp(-y),
        "sf": lambda y: -jnp.expm1(-jnp.exp(-y)),
        "logsf": _gumbel_logsf,
        "ppf": lambda p: -jnp.log(-jnp.log(p)),
    }),
    Row("laplace", "logpdf pdf cdf", lambda y: -jnp.abs(y) - math.log(2), formulas={
        "cdf": lambda y: jnp.where(y < 0, 0.5 * jnp.exp(-jnp.abs(y)), 1 - 0.5 * jnp.exp(-jnp.abs(y))),
    }),
    Row("logistic", "logpdf pdf cdf sf ppf isf", _logistic_log, first={"ppf": "x", "isf": "x"}, formulas={
        "cdf": lambda y: 1 / (1 + jnp.exp(-y)),
        "sf": lambda y: 1 / (1 + jnp.exp(y)),
        "ppf": lambda q: jnp.log(q) - jnp.log1p(-q),
        "isf": lambda q: jnp.log1p(-q) - jnp.log(q),
    }),
    Row("nbinom", "logpmf pmf",
        lambda k, n, p: -jnp.log(n + k) - betaln(n, k + 1) + xlogy(n, p) + xlog1py(k, -p),
        ("n", "p"), _POSITIVE, discrete=True),
    Row("norm", f"{_ALL_TAILS} ppf isf", lambda y: -0.5 * y * y - _HALF_LOG_TWO_PI, formulas={
        "cdf": ndtr_of,
        "sf": lambda y: ndtr_of(-y),
        "logcdf": log_ndtr_of,
        "logsf": lambda y: log_ndtr_of(-y),
        "ppf": ndtri_of,
        "isf": lambda q: -ndtri_of(q),
    }),
    Row("pareto", f"{_ALL_TAILS} ppf", lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y), ("b",), (1.0, math.inf), {
        "cdf": lambda y, b: -jnp.expm1(-b * jnp.log(y)),
        "logcdf": lambda y, b: _log1mexp(b * jnp.log(y)),
        "logsf": lambda y, b: -b * jnp.log(y),
        "ppf": lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
    }),
    Row("poisson", "logpmf pmf cdf entropy", lambda k, mu: xlogy(k, mu) - special.lgamma(k + 1) - mu,
        ("mu",), _POSITIVE, {
        "cdf": lambda k, mu: incomplete.igammac(jnp.floor(k) + 1, mu),
    }, discrete=True),
    Row("t", "logpdf pdf", _t_log, ("df",)),
    Row("truncnorm", _ALL_TAILS, _truncnorm_log, ("a", "b"), lambda a, b: (a, b), {
        "logcdf": _truncnorm_logcdf,
        "logsf": _truncnorm_logsf,
    }),
    Row("uniform", "logpdf pdf cdf ppf", jnp.zeros_like, (), (0.0, 1.0), {"cdf": lambda y: y, "ppf": lambda q: q}),
    Row("vonmises", "logpdf pdf", _von_mises_log, ("kappa",), moved=""),
    Row("wrapcauchy", "logpdf pdf", _wrapped_cauchy_log, ("c",), (0.0, 2 * math.pi), moved=""),
)  # fmt: skip

# ---- the public functions --------------------------------------------------------------------------------------------

SUMMARIES = {
    "logpdf": "The log of the density at `x`, -inf outside the support",
    "pdf": "The density at `x`, 0 outside the support",
    "logpmf": "The log of the probability of `k`, -inf outside the support",
    "pmf": "The probability of `k`, 0 outside the support",
    "cdf": "The probability of what is at most the first argument",
    "logcdf": "The log of the probability of what is at most `x`, accurate in the lower tail",
    "sf": "The probability of what is greater than `x`, accurate in the upper tail",
    "logsf": "The log of the probability of what is greater than `x`, accurate in the upper tail",
    "ppf": "The quantile: the inverse of `cdf`, nan outside [0, 1]",
    "isf": "The inverse of `sf`, nan outside [0, 1]",
    "entropy": "The entropy in nats",
}
# What a function follows from where a row has no formula for it, the best source first.
_DERIVED: dict[str, tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    "cdf": (("logcdf", jnp.exp), ("sf", lambda s: 1 - s)),
    "sf": (("logsf", jnp.exp), ("cdf", lambda c: 1 - c)),
    "logcdf": (("cdf", jnp.log), ("sf", lambda s: jnp.log1p(-s))),
    "logsf": (("sf", jnp.log), ("cdf", lambda c: jnp.log1p(-c))),
}
_BELOW = {"cdf": 0.0, "sf": 1.0, "logcdf": -math.inf, "logsf": 0.0}
_ABOVE = {"cdf": 1.0, "sf": 0.0, "logcdf": 0.0, "logsf": -math.inf}


def _formula(row: Row, kind: str) -> Formula:
    found = row.formulas.get(kind)
    if found is not None:
        return found
    lower, upper = row.formulas.get("cdf"), row.formulas.get("sf")
    if kind in ("logcdf", "logsf") and lower and upper:
        lower, upper = (lower, upper) if kind == "logcdf" else (upper, lower)
        return lambda *xs: _log_of_either(lower(*xs), upper(*xs))
    for source, change in _DERIVED[kind]:
        base = row.formulas.get(source)
        if base is not None:
            return lambda *xs: change(base(*xs))
    raise AssertionError(f"{row.name}.{kind} has no formula")


def _log_of_either(p: Any, complement: Any) -> Any:
    """log p from p, or from 1 - p where that is the smaller."""
    small = p < 0.5
    return jnp.where(small, jnp.log(jnp.where(small, p, 0.5)), jnp.log1p(-jnp.where(small, 0.5, complement)))


def _bounds(row: Row, shapes: list[Any]) -> tuple[Any, Any]:
    return row.support if isinstance(row.support, tuple) else row.support(*shapes)


def _inner_point(row: Row, low: Any, high: Any) -> Any:
    """A place within the support, for the lanes outside."""
    if row.discrete:
        return low
    if not isinstance(row.support, tuple):
        return 0.5 * (jnp.clip(low, -10, 10) + jnp.clip(high, -10, 10))
    return 0.5 if row.support == (0.0, 1.0) else low + 1


def _density(row: Row, exponential: bool) -> Formula:
    def fun(x: Any, shapes: list[Any], scale: Any) -> Any:
        low, high = _bounds(row, shapes)
        inside = (x >= low) & (x <= high)
        if row.discrete:
            inside = inside & (x == jnp.floor(x))
        y = x if row.support is _ALL else jnp.where(inside, x, _inner_point(row, low, high))
        out = row.log(y, *shapes) - (0 if scale is None else jnp.log(scale))
        if row.support is not _ALL:
            out = jnp.where(inside | jnp.isnan(out), out, -jnp.inf)
        out = jnp.where(jnp.isnan(x), x, out)
        return jnp.exp(out) if exponential else out

    return fun


def _tail(row: Row, kind: str) -> Formula:
    formula = _formula(row, kind)

    def fun(x: Any, shapes: list[Any], scale: Any) -> Any:
        low, high = _bounds(row, shapes)
        inside = (x > low) & (x < high)
        if row.discrete:
            inside = (x >= low) & (x < high)
        y = x if row.support is _ALL else jnp.where(inside, x, _inner_point(row, low, high))
        out = formula(y, *shapes)
        out = out if scale is None else jnp.where(scale > 0, out, jnp.nan)
        if row.support is not _ALL:
            out = jnp.where(inside | jnp.isnan(out), out, jnp.where(x >= high, _ABOVE[kind], _BELOW[kind]))
        return jnp.where(jnp.isnan(x), x, out)

    return fun


def _make(row: Row, kind: str) -> Callable[..., Any]:
    moved = [m for m in row.moved.split() if not (row.discrete and m == "scale")]
    if row.name == "bernoulli" and kind in ("cdf", "ppf"):
        moved = []
    names = [row.first.get(kind, "q" if kind in ("ppf", "isf") else "k" if row.discrete else "x"), *row.shapes, *moved]
    if kind == "entropy":
        names = names[1:]
    signature = _signature(names)
    label = f"{row.name}.{kind}"
    quantile, count = kind in ("ppf", "isf"), len(row.shapes)
    direct = _density(row, not kind.startswith("log")) if kind in ("logpdf", "pdf", "logpmf", "pmf") else None
    direct = direct or (None if quantile or kind == "entropy" else _tail(row, kind))

    def fun(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if kind == "entropy":
            return _poisson_entropy(*floats(label, bound.arguments["mu"]))
        x, *rest = floats(label, *bound.arguments.values())
        shapes, place = rest[:count], rest[count:]
        scale = place[1] if len(place) > 1 else None
        if direct is not None:
            x = x - place[0] if place else x
            return direct(x if scale is None else x / scale, shapes, scale)
        out = row.formulas[kind](jnp.where((x >= 0) & (x <= 1), x, 0.5), *shapes)
        out = jnp.where((x >= 0) & (x <= 1), out, jnp.nan)
        return out if scale is None else out * scale + place[0]

    fun.__name__ = kind
    fun.__qualname__ = kind
    fun.__module__ = f"morphax.scipy.stats.{row.name}"
    fun.__doc__ = f"{SUMMARIES[kind]}; see scipy.stats.{row.name} for the parameters."
    # The signature is made of the row's names, of which type checkers know nothing.
    fun.__signature__ = signature  # type: ignore[attr-defined]
    return program()(fun)


def _signature(names: list[str]) -> inspect.Signature:
    defaults = {"loc": 0, "scale": 1}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(n, kind, default=defaults.get(n, empty)) for n in names])


def functions(row: Row) -> dict[str, Callable[..., Any]]:
    """The public functions of a distribution by name."""
    return {kind: _make(row, kind) for kind in row.public.split()}
