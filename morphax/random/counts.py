"""Counts: Poisson, binomial and multinomial numbers, by rejection."""

import math
from typing import Any

import numpy as np

from morphax.control import loops
from morphax.numpy import creation, promotion, reductions, shapes, sorting
from morphax.ops import elementwise as ew
from morphax.ops import family, random_bits, reduce, special
from morphax.random import distributions, draws
from morphax.random.keys import sampler

like, typeof = family.like, family.typeof
where = sorting.where


def _centre(u: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Distance of u to its nearer end, u uniform in (-1/2, 1/2), and the count that it proposes."""
    near = like(u, 0.5) - abs(u)
    return near, ew.floor((2 * a / near + b) * u + c)


def _rejection(key: Any, shape: tuple[int, ...], dtype: np.dtype, decide: Any) -> Any:
    """Counts by rounds of rejection: decide(u, v) -> proposals and which are accepted, until each place has one.

    Places that have one may get another in later rounds, which is as good.
    """

    def step(state: Any) -> Any:
        key, u_key, v_key = draws.keys_of(state[2], 3)
        u = draws.unit(u_key, shape, dtype) - like(state[0], 0.5)
        count, accepted = decide(u, draws.unit(v_key, shape, dtype))
        return where(accepted, count, state[0]), state[1] | accepted, key

    start = creation.full(shape, -1, dtype), creation.zeros(shape, bool), key
    return loops.while_loop(lambda state: reductions.any(~state[1]), step, start)[0]


# ---- Poisson ---------------------------------------------------------------------------------------------------------


def _poisson_by_products(key: Any, rate: Any) -> Any:
    """How many uniform numbers it takes for their product to fall below e^-rate, less one. Knuth, TAOCP 2, 3.4.1."""
    shape, dtype = typeof(rate).shape, typeof(rate).dtype

    def step(state: Any) -> Any:
        count, log_product, key = state
        key, u_key = draws.keys_of(key, 2)
        count = where(log_product > -rate, count + 1, count)
        return count, log_product + ew.log(draws.unit(u_key, shape, dtype)), key

    start = creation.zeros(shape, np.int32), creation.zeros(shape, dtype), key
    return loops.while_loop(lambda state: reductions.any(state[1] > -rate), step, start)[0] - 1


def _poisson_by_rejection(key: Any, rate: Any) -> Any:
    """Algorithm PTRS. Hoermann: The transformed rejection method for generating Poisson random variables, 1993."""
    log_rate = ew.log(rate)
    b = 0.931 + 2.53 * ew.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = 0.9277 - 3.6224 / (b - 2)

    def decide(u: Any, v: Any) -> tuple[Any, Any]:
        near, count = _centre(u, a, b, rate + 0.43)
        left = ew.log(v * inverse_alpha / (a / (near * near) + b))
        right = -rate + count * log_rate - special.lgamma(count + 1)
        outside = (count < 0) | ((near < 0.013) & (v > near))
        return count, ((near >= 0.07) & (v <= quick)) | (~outside & (left <= right))

    return _rejection(key, typeof(rate).shape, typeof(rate).dtype, decide)


@sampler("shape", "dtype")
def _poisson(key: Any, lam: Any, *, shape: tuple[int, ...] | None, dtype: np.dtype) -> Any:
    lam = promotion.inexact("poisson", lam)
    full = draws.common_shape("poisson", shape, lam)
    rate = promotion.spread(ew.convert(lam, np.dtype(np.float32)), full)
    small = (rate != rate) | (rate < 10)
    few = _poisson_by_products(key, where(small, rate, like(rate, 0)))
    many = _poisson_by_rejection(key, where(small, like(rate, 1e5), rate))
    drawn = where(small, few.astype(dtype), many.astype(dtype))
    return where(rate == 0, like(drawn, 0), drawn)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Poisson random numbers.

    Args:
        key: a random key.
        lam: mean, not negative, a number or an array. Negative ones and NaN give -1.
        shape: of the result; that of `lam` for None.
        dtype: an integer dtype; the default int for None.

    Raises:
        ValueError: another dtype.

    >>> from morphax import random
    >>> random.poisson(random.key(0), 0.0).item()
    0
    """
    draws.unplaced("poisson", out_sharding)
    named = draws.int_dtype("poisson", dtype)
    return _poisson("poisson", key, lam, shape=distributions.optional(shape), dtype=named)


# ---- binomial --------------------------------------------------------------------------------------------------------


def _binomial_by_gaps(key: Any, count: Any, p: Any) -> Any:
    """Successes among trials, by the gaps between successes, which are geometric numbers. Devroye: Non-uniform random
    variate generation, 1986, X.4.3."""
    shape, dtype = typeof(count).shape, typeof(count).dtype
    log_miss = ew.log1p(-p)

    def step(state: Any) -> Any:
        successes, trials, key = state
        u_key, key = draws.keys_of(key, 2)
        successes = where(trials <= count, successes + 1, successes)
        gap = ew.ceil(ew.log(draws.unit(u_key, shape, dtype)) / log_miss)
        return successes, trials + gap, key

    start = creation.zeros(shape, dtype), creation.zeros(shape, dtype), key
    return loops.while_loop(lambda state: reductions.any(state[1] <= count), step, start)[0] - 1


# log k! less Stirling's formula for it, of k + 1: log(k!) - (log(2 pi) / 2 + (k + 1/2) log(k + 1) - (k + 1)).
_STIRLING = [math.lgamma(k + 1) - math.log(2 * math.pi) / 2 - (k + 0.5) * math.log(k + 1) + k + 1 for k in range(10)]


def _stirling_tail(k: Any) -> Any:
    x = k + 1
    square = x * x
    far = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / x
    for place, value in enumerate(_STIRLING):
        far = where(k == place, like(k, value), far)
    return far


def _binomial_by_rejection(key: Any, n: Any, p: Any) -> Any:
    """Algorithm BTRS. Hoermann: The generation of binomial random variates, Journal of Statistical Computation and
    Simulation 46 (1993)."""
    q = 1 - p
    spread = ew.sqrt(n * p * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    quick = 0.92 - 4.2 / b
    odds = p / q
    alpha = (2.83 + 5.1 / b) * spread
    mode = ew.floor((n + 1) * p)
    at_mode = _stirling_tail(mode) + _stirling_tail(n - mode)

    def decide(u: Any, v: Any) -> tuple[Any, Any]:
        near, k = _centre(u, a, b, n * p + 0.5)
        outside = (k < 0) | (k > n)
        k_in = ew.min(ew.max(k, like(k, 0)), n)
        left = ew.log(v * alpha / (a / (near * near) + b))
        right = (
            (mode + 0.5) * ew.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * ew.log((n - mode + 1) / (n - k_in + 1))
            + (k_in + 0.5) * ew.log(odds * (n - k_in + 1) / (k_in + 1))
            + at_mode
            - _stirling_tail(k_in)
            - _stirling_tail(n - k_in)
        )
        return k, ((near >= 0.07) & (v <= quick)) | (~outside & (left <= right))

    return _rejection(key, typeof(n).shape, typeof(n).dtype, decide)


def _binomial_of(key: Any, n: Any, p: Any) -> Any:
    """Binomial numbers: n and p operands of the shape and dtype of the result."""
    rare = p < 0.5
    part = where(rare, p, 1 - p)
    bad_n, bad_p = ~(n >= 0), ~(part >= 0)
    safe = where(bad_p, like(p, 0.01), part)
    few = bad_n | (n * safe <= 10)
    endless = n == math.inf
    few = few | endless
    whole = ew.floor(n)
    gaps = _binomial_by_gaps(key, where(few & ~bad_n & ~endless, whole, like(n, 0)), safe)
    rejection = _binomial_by_rejection(key, where(few, like(n, 1e4), whole), where(few, like(p, 0.5), safe))
    drawn = where(few, gaps, rejection)
    drawn = where(rare, drawn, whole - drawn)
    drawn = where(endless, where(p == 0, like(n, 0), n), drawn)
    return where(bad_n | bad_p, like(n, math.nan), drawn)


@distributions.with_parameters("binomial")
def _binomial(key: Any, n: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return _binomial_of(key, promotion.spread(n, shape), promotion.spread(p, shape))


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Binomial random numbers, as floats: successes among `n` trials of probability `p`.

    Args:
        key: a random key.
        n: trials, a number or an array. Negative ones give NaN.
        p: in [0, 1], a number or an array. Others give NaN.
        shape: of the result; for None that of `n` and `p` broadcast together.
        dtype: a float dtype; the default float for None.

    >>> from morphax import random
    >>> random.binomial(random.key(0), 10, 1.0).item()
    10.0
    """
    return _binomial(key, n, p, shape=distributions.optional(shape), dtype=draws.float_dtype("binomial", dtype))


@sampler("shape", "dtype", "unroll")
def _multinomial(key: Any, n: Any, p: Any, *, shape: tuple[int, ...] | None, dtype: np.dtype, unroll: int) -> Any:
    n, p = draws.parameter("multinomial", n, dtype), draws.parameter("multinomial", p, dtype)
    own = typeof(p).shape
    if not own:
        raise ValueError("multinomial: p must have at least one axis, that of the outcomes; got a scalar.")
    batch = own[:-1] if shape is None else draws.checked_shape("multinomial", shape)
    batch = draws.common_shape("multinomial", batch, n, creation.zeros(own[:-1], dtype))
    p = promotion.spread(p, (*batch, own[-1]))
    rest = reduce.cumsum(p, axis=len(batch), reverse=True)
    share = p / where(rest == 0, like(p, 1), rest)
    share = shapes.moveaxis(ew.min(ew.max(share, like(p, 0)), like(p, 1)), -1, 0)

    def step(remaining: Any, inputs: Any) -> tuple[Any, Any]:
        count = _binomial_of(inputs[1], remaining, inputs[0])
        return remaining - count, count

    keys = random_bits.random_split(key, shape=(own[-1],))
    _, counts = loops.scan(step, promotion.spread(n, batch), (share, keys), unroll=unroll)
    return shapes.moveaxis(counts, 0, -1)


def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: int = 1) -> Any:
    """Multinomial random counts, as floats: how often each outcome comes in `n` trials.

    Args:
        key: a random key.
        n: trials, a number or an array that broadcasts to p.shape[:-1].
        p: probabilities of the outcomes, along the last axis.
        shape: of the result without its last axis; p.shape[:-1] for None.
        dtype: a float dtype; the default float for None.
        unroll: how many outcomes one round of the loop draws.

    >>> from morphax import random, numpy as jnp
    >>> random.multinomial(random.key(0), 20, jnp.array([0.5, 0.3, 0.2])).sum().item()
    20.0
    """
    named = draws.float_dtype("multinomial", dtype)
    return _multinomial("multinomial", key, n, p, shape=distributions.optional(shape), dtype=named, unroll=int(unroll))
