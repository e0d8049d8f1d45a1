"""Gamma variates, and the distributions made of them. Their derivatives in the parameters are those of the quantile
function at a fixed probability. Figurnov, Mohamed, Mnih: Implicit reparameterization gradients, arXiv 1805.08498."""

from typing import Any

import numpy as np

from morphax.control import custom, loops
from morphax.numpy import promotion, reductions, shapes, sorting, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, incomplete, random_bits, special
from morphax.random import distributions, draws
from morphax.random.keys import sampler
from morphax.support import dtypes
from morphax.transforms import api

like, typeof = family.like, family.typeof
where = sorting.where

# ---- one variate -----------------------------------------------------------------------------------------------------


def _proposal(key: Any, slope: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """A normal x with 1 + slope x > 0, and that."""

    def step(state: Any) -> Any:
        key, next_key = draws.keys_of(state[0], 2)
        x = draws.standard_normal(next_key, (), dtype)
        return key, x, 1 + x * slope

    none = family.scalar(0, dtype), family.scalar(-1, dtype)
    _, x, v = loops.while_loop(lambda state: state[2] <= 0, step, (key, *none))
    return x, v


def _loggamma_of(key: Any, a: Any) -> tuple[Any, Any]:
    """One gamma variate of shape a > 0: as x and b, of which the product is the variate and x > 0.

    Marsaglia, Tsang: A simple method for generating gamma variables, ACM Transactions on Mathematical Software 26
    (2000). For a < 1 a variate of shape a + 1 times u^(1 / a), of which b is the logarithm.
    """
    dtype = typeof(a).dtype
    key, boost_key = draws.keys_of(key, 2)
    small = a < 1
    boost = where(small, ew.log1p(-draws.unit(boost_key, (), dtype)) / a, like(a, 0))
    d = where(small, a + 1, a) - like(a, 1 / 3)
    c = like(a, 1 / 3) / ew.sqrt(d)

    def rejected(state: Any) -> Any:
        _, x2, v3, u = state
        # The quick test first, as in the paper; the exact one decides.
        return (u >= 1 - 0.0331 * (x2 * x2)) & (ew.log(u) >= x2 / 2 + d * (1 - v3 + ew.log(v3)))

    def step(state: Any) -> Any:
        key, x_key, u_key = draws.keys_of(state[0], 3)
        x, v = _proposal(x_key, c, dtype)
        return key, x * x, v * v * v, draws.unit(u_key, (), dtype)

    start = tuple([family.scalar(value, dtype) for value in (0, 1, 2)])  # rejected, whatever d
    _, _, v3, _ = loops.while_loop(rejected, step, (key, *start))
    return d * v3, boost


def _variates(key: Any, a: Any, log_space: bool) -> Any:
    """Gamma variates of shapes a, or their logarithms: each from a key of its own."""
    shape, dtype = typeof(a).shape, typeof(a).dtype
    size = typeof(a).size
    flat = shapes.reshape(a, (size,))
    safe = where(flat > 0, flat, like(a, 1))
    keys = random_bits.random_split(key, shape=(size,))
    x, boost = api.vmap(_loggamma_of)(keys, safe) if size else (safe, safe)
    if log_space:
        drawn, none = ew.log(x) + boost, -np.inf
    else:
        # Shapes near 0 give numbers too small for the dtype; 0 itself has probability 0.
        drawn, none = ew.max(x * ew.exp(boost), like(a, float(dtypes.finfo(dtype).tiny))), 0
    drawn = where(flat > 0, drawn, where(flat == 0, like(a, none), like(a, np.nan)))
    return shapes.reshape(drawn, shape)


gamma_of = custom.custom_jvp(_variates, nondiff_argnums=(2,))
"""Gamma variates (key, a, log_space): of shapes a, an operand that has the shape of the result."""

_FAR = -40.0  # e^-40 is nothing beside 1 in every dtype


@gamma_of.defjvp
def _gamma_rule(log_space: bool, primals: Any, tangents: Any) -> Any:
    key, a = primals
    y = gamma_of(key, a, log_space)
    safe = where(a > 0, a, like(a, 1))
    if not log_space:
        return y, tangents[1] * incomplete.random_gamma_grad(
            safe, ew.max(y, like(y, float(dtypes.finfo(a.dtype).tiny)))
        )
    near = ew.max(y, like(y, _FAR))
    slope = incomplete.random_gamma_grad(safe, ew.exp(near)) / ew.exp(near)
    # Far down P(a, x) = x^a / Gamma(a + 1), and y = log x moves by (digamma(a + 1) - y) / a.
    far = (special.digamma(safe + 1) - y) / safe
    return y, tangents[1] * where(y < _FAR, far, slope)


def _wide(a: Any, shape: tuple[int, ...]) -> Any:
    return promotion.spread(a, shape)


# ---- samplers --------------------------------------------------------------------------------------------------------


@distributions.with_parameters("gamma")
def _gamma(key: Any, a: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return gamma_of(key, _wide(a, shape), False)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Gamma random numbers of scale 1, density x^(a - 1) e^-x / Gamma(a).

    Marsaglia, Tsang: A simple method for generating gamma variables, 2000.

    Args:
        key: a random key.
        a: shape parameter, positive, a number or an array. 0 gives 0, negative ones NaN.
        shape: of the result; that of `a` for None.
        dtype: a float dtype; the default float for None.

    Derivative: in `a`, at fixed probability.

    >>> from morphax import random
    >>> random.gamma(random.key(0), 2.0, (3,)).shape
    (3,)
    """
    draws.unplaced("gamma", out_sharding)
    return _gamma(key, a, shape=distributions.optional(shape), dtype=draws.float_dtype("gamma", dtype))


@distributions.with_parameters("loggamma")
def _loggamma(key: Any, a: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return gamma_of(key, _wide(a, shape), True)


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Logarithms of gamma random numbers, exact also where those are too small for the dtype.

    Args:
        key: a random key.
        a: shape parameter, positive, a number or an array. 0 gives -inf, negative ones NaN.
        shape: of the result; that of `a` for None.
        dtype: a float dtype; the default float for None.

    Derivative: in `a`, at fixed probability.
    """
    draws.unplaced("loggamma", out_sharding)
    return _loggamma(key, a, shape=distributions.optional(shape), dtype=draws.float_dtype("loggamma", dtype))


@distributions.with_parameters("beta")
def _beta(key: Any, a: Any, b: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    first, second = draws.keys_of(key, 2)
    x = gamma_of(first, _wide(a, shape), True)
    y = gamma_of(second, _wide(b, shape), True)
    drawn = ew.logistic(x - y)
    info = dtypes.finfo(dtype)  # the ends themselves have probability 0
    return ew.min(ew.max(drawn, like(drawn, float(info.tiny))), like(drawn, 1 - float(info.epsneg)))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Beta random numbers, density x^(a - 1) (1 - x)^(b - 1) / B(a, b) on (0, 1).

    Args:
        key: a random key.
        a: positive, a number or an array.
        b: as `a`.
        shape: of the result; for None that of `a` and `b` broadcast together.
        dtype: a float dtype; the default float for None.

    Derivative: in `a` and `b`.
    """
    draws.unplaced("beta", out_sharding)
    return _beta(key, a, b, shape=distributions.optional(shape), dtype=draws.float_dtype("beta", dtype))


@sampler("shape", "dtype")
def _dirichlet(key: Any, alpha: Any, *, shape: tuple[int, ...] | None, dtype: np.dtype) -> Any:
    alpha = draws.parameter("dirichlet", alpha, dtype)
    own = typeof(alpha).shape
    if not own:
        raise ValueError("dirichlet: alpha must have at least one axis, that of the concentrations; got a scalar.")
    full = own if shape is None else (*draws.checked_shape("dirichlet", shape), own[-1])
    if promotion.common_shape("dirichlet", (full, own)) != full:
        raise ValueError(f"dirichlet: alpha of shape {own} does not broadcast to the requested shape {full}.")
    logs = gamma_of(key, _wide(alpha, full), True)
    parts = ew.exp(logs - ew.stop_gradient(reductions.max(logs, axis=-1, keepdims=True, initial=-np.inf)))
    return parts / reductions.sum(parts, axis=-1, keepdims=True)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Dirichlet random vectors: gamma numbers of shapes `alpha` over their sum.

    Args:
        key: a random key.
        alpha: concentrations, positive, along the last axis.
        shape: of the result without its last axis; that of `alpha` for None.
        dtype: a float dtype; the default float for None.

    Derivative: in `alpha`.

    >>> from morphax import random, numpy as jnp
    >>> random.dirichlet(random.key(0), jnp.ones(3), (5,)).shape
    (5, 3)
    """
    draws.unplaced("dirichlet", out_sharding)
    named = draws.float_dtype("dirichlet", dtype)
    return _dirichlet("dirichlet", key, alpha, shape=distributions.optional(shape), dtype=named)


def _chisquare_of(key: Any, df: Any, shape: tuple[int, ...]) -> Any:
    return 2 * ew.exp(gamma_of(key, _wide(df / 2, shape), True))


@distributions.with_parameters("chisquare")
def _chisquare(key: Any, df: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return _chisquare_of(key, df, shape)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Chi-squared random numbers: twice gamma numbers of shape df / 2.

    Args:
        key: a random key.
        df: degrees of freedom, positive, a number or an array.
        shape: of the result; that of `df` for None.
        dtype: a float dtype; the default float for None.

    Derivative: in `df`.
    """
    draws.unplaced("chisquare", out_sharding)
    return _chisquare(key, df, shape=distributions.optional(shape), dtype=draws.float_dtype("chisquare", dtype))


@distributions.with_parameters("f")
def _f(key: Any, dfnum: Any, dfden: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    below, above = draws.keys_of(key, 2)
    numerator = _chisquare_of(above, dfnum, shape) / dfnum
    return numerator / (_chisquare_of(below, dfden, shape) / dfden)


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """F random numbers: a chi-squared number over its degrees of freedom, over another such.

    Args:
        key: a random key.
        dfnum: degrees of freedom above, positive, a number or an array.
        dfden: below, as `dfnum`.
        shape: of the result; for None that of the parameters broadcast together.
        dtype: a float dtype; the default float for None.

    Derivative: in `dfnum` and `dfden`.
    """
    draws.unplaced("f", out_sharding)
    return _f(key, dfnum, dfden, shape=distributions.optional(shape), dtype=draws.float_dtype("f", dtype))


@distributions.with_parameters("t")
def _t(key: Any, df: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    normal_key, gamma_key = draws.keys_of(key, 2)
    half = df / 2
    return draws.standard_normal(normal_key, shape, dtype) * ew.sqrt(
        half / gamma_of(gamma_key, _wide(half, shape), False)
    )


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Student's t random numbers: normal ones over the root of chi-squared ones over their degrees of freedom.

    Args:
        key: a random key.
        df: degrees of freedom, positive, a number or an array.
        shape: of the result; that of `df` for None.
        dtype: a float dtype; the default float for None.

    Derivative: in `df`.
    """
    draws.unplaced("t", out_sharding)
    return _t(key, df, shape=distributions.optional(shape), dtype=draws.float_dtype("t", dtype))


def generalized_of(key: Any, p: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Numbers of density proportional to e^-|x|^p, p an operand of `dtype` without axes or of `shape`."""
    size_key, sign_key = draws.keys_of(key, 2)
    power = 1 / p
    size = gamma_of(size_key, _wide(power, shape), False)
    return distributions.rademacher_of(sign_key, shape, dtype) * ufuncs.power(size, power)


@distributions.with_parameters("generalized_normal")
def _generalized_normal(key: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return generalized_of(key, p, shape, dtype)


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Random numbers of density proportional to e^-|x|^p.

    Args:
        key: a random key.
        p: positive, a number or an array that broadcasts to `shape`.
        shape: of the result.
        dtype: a float dtype; the default float for None.

    Derivative: in `p`.
    """
    draws.unplaced("generalized_normal", out_sharding)
    named = draws.float_dtype("generalized_normal", dtype)
    return _generalized_normal(key, p, shape=draws.as_shape(shape), dtype=named)


@sampler("d", "shape", "dtype")
def _ball(key: Any, p: Any, *, d: int, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    p = draws.parameter("ball", p, dtype)
    direction_key, length_key = draws.keys_of(key, 2)
    shape = draws.checked_shape("ball", shape)
    x = generalized_of(direction_key, p, (*shape, d), dtype)
    e = distributions.exponential_of(length_key, shape, dtype)
    length = reductions.sum(ufuncs.power(abs(x), p), axis=-1) + e
    return x / shapes.expand_dims(ufuncs.power(length, 1 / p), -1)


def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Random points, uniform in the unit ball of the p-norm. Barthe et al.: arXiv math/0503650.

    Args:
        key: a random key.
        d: dimension of the ball, the last size of the result.
        p: of the norm, positive.
        shape: of the result without its last axis.
        dtype: a float dtype; the default float for None.

    >>> from morphax import random
    >>> random.ball(random.key(0), 3, shape=(5,)).shape
    (5, 3)
    """
    draws.unplaced("ball", out_sharding)
    named = draws.float_dtype("ball", dtype)
    return _ball("ball", key, p, d=int(d), shape=draws.as_shape(shape), dtype=named)
