"""Distributions that are functions of uniform and normal numbers. Each cites its formula in terms of u, uniform in
[0, 1), or z, standard normal."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.numpy import promotion
from morphax.ops import elementwise as ew
from morphax.ops import family, special, structure
from morphax.random import draws
from morphax.random.keys import sampler
from morphax.support import config, dtypes

like = family.like

# ---- without parameters ----------------------------------------------------------------------------------------------


def exponential_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Exponential numbers of rate 1: -log(1 - u)."""
    return ew.neg(ew.log1p(ew.neg(draws.unit(key, shape, dtype))))


def _laplace(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    u = draws.between(
        key, shape, dtype, family.scalar(-1.0 + dtypes.finfo(dtype).epsneg, dtype), family.scalar(1, dtype)
    )
    return ew.mul(ew.sign(u), ew.log1p(ew.neg(ew.abs(u))))


def _logistic(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    u = draws.between(key, shape, dtype, family.scalar(dtypes.finfo(dtype).tiny, dtype), family.scalar(1, dtype))
    return ew.sub(ew.log(u), ew.log1p(ew.neg(u)))


def _cauchy(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    u = draws.between(key, shape, dtype, family.scalar(dtypes.finfo(dtype).eps, dtype), family.scalar(1, dtype))
    return ew.tan(ew.mul(family.scalar(math.pi, dtype), ew.sub(u, family.scalar(0.5, dtype))))


def _maxwell_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    z = draws.standard_normal(key, (*shape, 3), dtype)
    return ew.sqrt(ew.reduce_sum(ew.mul(z, z), axes=(len(shape),)))


def gumbel_of(key: Any, shape: tuple[int, ...], dtype: np.dtype, mode: str) -> Any:
    """Gumbel numbers: -log(-log u). In mode "high" u has twice the digits near zero, for the far tail."""
    info = dtypes.finfo(dtype)
    if mode == "low":
        u = draws.between(key, shape, dtype, family.scalar(info.tiny, dtype), family.scalar(1, dtype))
        return ew.neg(ew.log(ew.neg(ew.log(u))))
    coarse, fine = _two_units(key, shape, dtype)
    finer = ew.add(ew.mul(family.scalar(info.eps, dtype), fine), coarse)
    u = draws.where(ew.ge(coarse, family.scalar(0.5, dtype)), coarse, ew.add(finer, family.scalar(info.tiny, dtype)))
    return ew.neg(ew.log(ew.neg(ew.log1p(ew.neg(u)))))


def _two_units(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
    both = draws.unit(key, (2, *shape), dtype)
    first, second = (structure.squeeze(structure.slice_axis(both, k, k + 1, 0), dimensions=(0,)) for k in (0, 1))
    return first, second


def gumbel_mode(name: str, mode: Any) -> str:
    """The `mode` argument of a sampler that draws Gumbel numbers, the configured one for None.

    Raises:
        ValueError: neither "high" nor "low".
    """
    if mode is None:
        return "high" if config.high_dynamic_range_gumbel.value else "low"
    if mode not in ("high", "low"):
        raise ValueError(f"{name}: mode must be 'high' or 'low'; it is {mode!r}.")
    return mode


def _plain(draw: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The public function of a sampler of floats that has no parameters."""

    @sampler("shape", "dtype")
    def drawn(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return draw(key, draws.checked_shape(name, shape), dtype)

    def public(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
        draws.unplaced(name, out_sharding)
        return drawn(name, key, shape=draws.as_shape(shape), dtype=draws.float_dtype(name, dtype))

    public.__name__ = public.__qualname__ = name
    public.__doc__ = _PLAIN_DOC.format(name=name, what=_PLAIN[name])
    return public


_PLAIN = {
    "exponential": "Exponential random numbers of rate 1: -log(1 - u)",
    "laplace": "Laplace random numbers: sign(v) log(1 - |v|), v uniform in (-1, 1)",
    "logistic": "Logistic random numbers: log(u / (1 - u))",
    "cauchy": "Cauchy random numbers: tan(pi (u - 1/2))",
    "maxwell": "Maxwell random numbers of scale 1: the length of three standard normal numbers",
}
_PLAIN_DOC = """{what}.

    Args:
        key: a random key.
        shape: of the result.
        dtype: a float dtype; the default float for None.

    Raises:
        ValueError: another dtype.

    >>> from morphax import random
    >>> random.{name}(random.key(0), (2, 3)).shape
    (2, 3)
    """

exponential = _plain(exponential_of, "exponential")
laplace = _plain(_laplace, "laplace")
logistic = _plain(_logistic, "logistic")
cauchy = _plain(_cauchy, "cauchy")
maxwell = _plain(_maxwell_of, "maxwell")


@sampler("shape", "dtype", "mode")
def _gumbel(key: Any, *, shape: tuple[int, ...], dtype: np.dtype, mode: str) -> Any:
    return gumbel_of(key, draws.checked_shape("gumbel", shape), dtype, mode)


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: Any = None) -> Any:
    """Gumbel random numbers: -log(-log u).

    Args:
        key: a random key.
        shape: of the result.
        dtype: a float dtype; the default float for None.
        mode: "low" or "high"; "high" takes two draws for each number, so that rare events keep their probability.

    Raises:
        ValueError: another dtype or mode.

    >>> from morphax import random
    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    draws.unplaced("gumbel", out_sharding)
    named = draws.float_dtype("gumbel", dtype)
    return _gumbel("gumbel", key, shape=draws.as_shape(shape), dtype=named, mode=gumbel_mode("gumbel", mode))


# ---- with parameters -------------------------------------------------------------------------------------------------


def optional(shape: Any) -> tuple[int, ...] | None:
    return None if shape is None else draws.as_shape(shape)


def with_parameters(name: str) -> Callable[..., Any]:
    """Decorator for (key, *parameters, shape, dtype): parameters arrive as operands of `dtype`, each a scalar or
    broadcast to the shape of the result."""

    def decorate(draw: Callable[..., Any]) -> Callable[..., Any]:
        @sampler("shape", "dtype")
        @functools.wraps(draw)
        def drawn(key: Any, *parameters: Any, shape: tuple[int, ...] | None, dtype: np.dtype) -> Any:
            operands = [draws.parameter(name, p, dtype) for p in parameters]
            full = draws.common_shape(name, shape, *operands)
            return draw(key, *[draws.filled(p, full) for p in operands], shape=full, dtype=dtype)

        return functools.partial(drawn, name)

    return decorate


@with_parameters("truncated_normal")
def _truncated_normal(key: Any, lower: Any, upper: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    root = family.scalar(math.sqrt(2), dtype)
    ends = [special.erf(ew.div(x, root)) for x in (lower, upper)]
    z = ew.mul(root, special.erf_inv(draws.between(key, shape, dtype, *ends)))
    least = ew.nextafter(ew.stop_gradient(lower), family.scalar(math.inf, dtype))
    most = ew.nextafter(ew.stop_gradient(upper), family.scalar(-math.inf, dtype))
    return ew.min(most, ew.max(least, z))


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Standard normal random numbers given that they lie in (lower, upper).

    Args:
        key: a random key.
        lower: lower end, a number or an array.
        upper: upper end, as `lower`.
        shape: of the result; for None that of `lower` and `upper` broadcast together.
        dtype: a float dtype; the default float for None.

    Raises:
        ValueError: another dtype, or shapes that do not broadcast.

    >>> from morphax import random
    >>> x = random.truncated_normal(random.key(0), -1.0, 2.0, (100,))
    >>> x.shape
    (100,)
    """
    draws.unplaced("truncated_normal", out_sharding)
    named = draws.float_dtype("truncated_normal", dtype)
    return _truncated_normal(key, lower, upper, shape=optional(shape), dtype=named)


@with_parameters("pareto")
def _pareto(key: Any, b: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return ew.exp(ew.div(exponential_of(key, shape, dtype), b))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Pareto random numbers: exp(e / b), e exponential of rate 1.

    Args:
        key: a random key.
        b: tail index, positive, a number or an array.
        shape: of the result; that of `b` for None.
        dtype: a float dtype; the default float for None.
    """
    draws.unplaced("pareto", out_sharding)
    return _pareto(key, b, shape=optional(shape), dtype=draws.float_dtype("pareto", dtype))


@with_parameters("rayleigh")
def _rayleigh(key: Any, scale: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    log_u = ew.log(draws.unit(key, shape, dtype))
    return ew.mul(scale, ew.sqrt(ew.mul(log_u, family.scalar(-2, dtype))))


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Rayleigh random numbers: scale sqrt(-2 log u).

    Args:
        key: a random key.
        scale: positive, a number or an array.
        shape: of the result; that of `scale` for None.
        dtype: a float dtype; the default float for None.
    """
    draws.unplaced("rayleigh", out_sharding)
    return _rayleigh(key, scale, shape=optional(shape), dtype=draws.float_dtype("rayleigh", dtype))


@with_parameters("weibull_min")
def _weibull_min(key: Any, scale: Any, concentration: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    power = draws.filled(ew.div(family.scalar(1, dtype), concentration), shape)
    return ew.mul(ew.pow(exponential_of(key, shape, dtype), power), scale)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Weibull random numbers: scale (-log(1 - u))^(1 / concentration).

    Args:
        key: a random key.
        scale: positive, a number or an array that broadcasts to `shape`.
        concentration: positive, as `scale`.
        shape: of the result.
        dtype: a float dtype; the default float for None.
    """
    named = draws.float_dtype("weibull_min", dtype)
    return _weibull_min(key, scale, concentration, shape=draws.as_shape(shape), dtype=named)


@with_parameters("double_sided_maxwell")
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    length_key, sign_key = draws.keys_of(key, 2)
    signs = rademacher_of(sign_key, shape, dtype)
    return ew.add(ew.mul(ew.mul(signs, _maxwell_of(length_key, shape, dtype)), scale), loc)


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Maxwell random numbers with random signs, times `scale`, plus `loc`.

    Args:
        key: a random key.
        loc: a number or an array that broadcasts to `shape`.
        scale: as `loc`.
        shape: of the result.
        dtype: a float dtype; the default float for None.
    """
    named = draws.float_dtype("double_sided_maxwell", dtype)
    return _double_sided_maxwell(key, loc, scale, shape=draws.as_shape(shape), dtype=named)


@with_parameters("triangular")
def _triangular(key: Any, left: Any, mode: Any, right: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    width = ew.sub(right, left)
    turn = draws.filled(ew.div(ew.sub(mode, left), width), shape)
    u = draws.unit(key, shape, dtype)
    rising = ew.add(left, ew.sqrt(ew.mul(ew.mul(u, width), ew.sub(mode, left))))
    falling = ew.mul(ew.mul(ew.sub(family.scalar(1, dtype), u), width), ew.sub(right, mode))
    return draws.where(ew.lt(u, turn), rising, ew.sub(right, ew.sqrt(falling)))


def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Random numbers whose density rises linearly from `left` to `mode` and falls to `right`.

    Args:
        key: a random key.
        left: a number or an array.
        mode: as `left`.
        right: as `left`.
        shape: of the result; for None that of the parameters broadcast together.
        dtype: a float dtype; the default float for None.
    """
    draws.unplaced("triangular", out_sharding)
    named = draws.float_dtype("triangular", dtype)
    return _triangular(key, left, mode, right, shape=optional(shape), dtype=named)


@with_parameters("lognormal")
def _lognormal(key: Any, sigma: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return ew.exp(ew.mul(draws.standard_normal(key, shape, dtype), sigma))


_ONE = np.float32(1.0)


def lognormal(key: Any, sigma: Any = _ONE, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Log-normal random numbers: exp(sigma z).

    Args:
        key: a random key.
        sigma: standard deviation of the logarithm, a number or an array.
        shape: of the result; that of `sigma` for None.
        dtype: a float dtype; the default float for None.
    """
    draws.unplaced("lognormal", out_sharding)
    return _lognormal(key, sigma, shape=optional(shape), dtype=draws.float_dtype("lognormal", dtype))


@with_parameters("wald")
def _wald(key: Any, mean: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    normal_key, choice_key = draws.keys_of(key, 2)
    mean = mean if family.typeof(mean).shape == shape else ew.full(shape, mean)
    z = draws.standard_normal(normal_key, shape, dtype)
    u = draws.unit(choice_key, shape, dtype)
    z2 = ew.mul(z, z)
    mean2 = ew.mul(mean, mean)
    root = ew.sqrt(ew.add(ew.mul(ew.mul(like(z, 4), mean), z2), ew.mul(mean2, ew.mul(z2, z2))))
    middle = ew.add(mean, ew.div(ew.mul(mean2, z2), like(z, 2)))
    x = ew.sub(middle, ew.mul(ew.div(mean, like(z, 2)), root))
    return draws.where(ew.le(u, ew.div(mean, ew.add(mean, x))), x, ew.div(mean2, x))


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Wald (inverse Gaussian) random numbers of scale 1.

    Michael, Schucany, Haas: Generating random variates using transformations with multiple roots; The American
    Statistician 30 (1976).

    Args:
        key: a random key.
        mean: positive, a number or an array.
        shape: of the result; that of `mean` for None.
        dtype: a float dtype; the default float for None.
    """
    draws.unplaced("wald", out_sharding)
    return _wald(key, mean, shape=optional(shape), dtype=draws.float_dtype("wald", dtype))


# ---- bools and integers ----------------------------------------------------------------------------------------------


def _bernoulli_of(key: Any, p: Any, shape: tuple[int, ...], dtype: np.dtype, mode: str) -> Any:
    p = draws.filled(p, shape)
    if mode == "low":
        return ew.lt(draws.unit(key, shape, dtype), p)
    coarse, fine = _two_units(key, shape, dtype)
    return ew.lt(ew.mul(fine, family.scalar(dtypes.finfo(dtype).eps, dtype)), ew.sub(p, coarse))


@sampler("shape", "mode")
def _bernoulli(key: Any, p: Any, *, shape: tuple[int, ...] | None, mode: str) -> Any:
    p = promotion.array("bernoulli", p)
    dtype = family.typeof(p).dtype
    if not dtypes.is_float(dtype):
        raise TypeError(f"bernoulli: the probability p must be a float, got {dtype.name}. Convert it: p / 1.0.")
    return _bernoulli_of(key, p, draws.common_shape("bernoulli", shape, p), dtype, mode)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Any:
    """Random bools that are True with probability `p`.

    Args:
        key: a random key.
        p: float, a number or an array; below 0 counts as 0 and above 1 as 1.
        shape: of the result; that of `p` for None.
        mode: "low" or "high"; "high" takes two draws for each, so that tiny probabilities are kept.

    Raises:
        TypeError: `p` is no float.  ValueError: another mode, or shapes that do not broadcast.

    >>> from morphax import random
    >>> random.bernoulli(random.key(0), 0.3, (2, 3)).shape
    (2, 3)
    """
    draws.unplaced("bernoulli", out_sharding)
    return _bernoulli("bernoulli", key, p, shape=optional(shape), mode=gumbel_mode("bernoulli", mode))


def rademacher_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 or -1, evenly."""
    float_ = dtypes.default_float_dtype()
    heads = _bernoulli_of(key, family.scalar(0.5, float_), shape, float_, "low")
    return ew.sub(ew.mul(family.scalar(2, dtype), ew.convert(heads, dtype)), family.scalar(1, dtype))


@sampler("shape", "dtype", exact=False)
def _rademacher(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return rademacher_of(key, draws.checked_shape("rademacher", shape), dtype)


def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """1 or -1, each with probability 1/2.

    Args:
        key: a random key.
        shape: of the result.
        dtype: a numeric dtype; the default int for None.
    """
    draws.unplaced("rademacher", out_sharding)
    named = dtypes.default_int_dtype() if dtype is None else dtypes.named_dtype(dtype)
    return _rademacher("rademacher", key, shape=draws.as_shape(shape), dtype=named)


@sampler("shape", "dtype")
def _geometric(key: Any, p: Any, *, shape: tuple[int, ...] | None, dtype: np.dtype) -> Any:
    p = promotion.inexact("geometric", p)
    float_ = family.typeof(p).dtype
    full = draws.common_shape("geometric", shape, p)
    u = draws.unit(key, full, dtypes.default_float_dtype())
    u = ew.convert(draws.where(ew.eq(u, like(u, 0)), like(u, 1), u), float_)
    miss = draws.filled(ew.log1p(ew.neg(p)), full)
    return ew.convert(ew.add(ew.floor(ew.div(ew.log(u), miss)), family.scalar(1, float_)), dtype)


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """How many trials of probability `p` until the first success: floor(log u / log(1 - p)) + 1.

    Args:
        key: a random key.
        p: in (0, 1), a number or an array.
        shape: of the result; that of `p` for None.
        dtype: an integer dtype; the default int for None.

    Raises:
        ValueError: another dtype.
    """
    draws.unplaced("geometric", out_sharding)
    return _geometric("geometric", key, p, shape=optional(shape), dtype=draws.int_dtype("geometric", dtype))
