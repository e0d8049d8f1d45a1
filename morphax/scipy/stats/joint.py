"""Distributions of vectors: their public functions, by distribution."""

import math
from typing import Any

from morphax import numpy as jnp
from morphax.numpy import linalg, promotion
from morphax.ops import linalg as factors
from morphax.ops import special
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.scipy.special.elementary import _xlogy
from morphax.support import dtypes


def _same(name: str, *xs: Any) -> list[Any]:
    """Floating arrays of one dtype."""
    args = [jnp.asarray(x) for x in promotion.same_dtype(name, xs)]
    dtype = dtypes.to_inexact(typeof(args[0]).dtype)
    return [x.astype(dtype) for x in args]


@program()
def _dirichlet(x: Any, alpha: Any) -> Any:
    x, alpha = _same("dirichlet", x, alpha)
    if typeof(alpha).ndim != 1:
        raise ValueError(f"dirichlet: alpha must have one axis; its shape is {typeof(alpha).shape}.")
    n, given = typeof(alpha).shape[0], typeof(x).shape[0] if typeof(x).ndim else 0
    if given not in (n, n - 1):
        raise ValueError(
            f"dirichlet: x must have as many entries on axis 0 as alpha, {n}, or one fewer; it has {given}."
        )
    if given == n - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    close = jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6 if given == n else True
    inside = jnp.all(x >= 0, axis=0) & close
    weights = alpha.reshape(n, *[1] * (typeof(x).ndim - 1))
    powers = _xlogy(*jnp.broadcast_arrays(weights - 1, jnp.where(x >= 0, x, 0.5)))
    log = jnp.sum(powers, axis=0) + special.lgamma(jnp.sum(alpha)) - jnp.sum(special.lgamma(alpha))
    return jnp.where(inside, log, -jnp.inf)


def dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    """The log of the density at `x`, -inf off the simplex.

    Args:
      x: shape (k, ...), or (k - 1, ...) without the last entry, which makes the sum 1.
      alpha: shape (k,).
    """
    return _dirichlet(x, alpha)


def dirichlet_pdf(x: Any, alpha: Any) -> Any:
    """The density at `x`; see `logpdf`."""
    return jnp.exp(_dirichlet(x, alpha))


@program()
def _multinomial(x: Any, n: Any, p: Any) -> Any:
    x, n, p = _same("multinomial", x, n, p)
    x, p = jnp.broadcast_arrays(x, p)
    inside = jnp.all((x >= 0) & (x == jnp.floor(x)), axis=-1) & (jnp.sum(x, axis=-1) == n)
    terms = _xlogy(jnp.where(x >= 0, x, 0), p) - special.lgamma(jnp.where(x >= 0, x, 0) + 1)
    return jnp.where(inside, special.lgamma(n + 1) + jnp.sum(terms, axis=-1), -jnp.inf)


def multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    """The log of the probability of the counts `x`, shape (..., k), in `n` trials of probabilities `p`, shape (k,)."""
    return _multinomial(x, n, p)


def multinomial_pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability of the counts `x`; see `logpmf`."""
    return jnp.exp(_multinomial(x, n, p))


@program()
def _multivariate_normal(x: Any, mean: Any, cov: Any) -> Any:
    x, mean, cov = _same("multivariate_normal", x, mean, cov)
    if not typeof(mean).ndim and not typeof(cov).ndim:
        return -0.5 * (jnp.square(x - mean) / cov + math.log(2 * math.pi) + jnp.log(cov))
    n = typeof(mean).shape[-1] if typeof(mean).ndim else typeof(cov).shape[-1]
    if not typeof(cov).ndim:
        cov = cov * jnp.eye(n, dtype=typeof(cov).dtype)
    if typeof(cov).ndim < 2 or typeof(cov).shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal: cov must end in ({n}, {n}) for mean {typeof(mean).shape}; its shape is "
            f"{typeof(cov).shape}."
        )
    factor = linalg.cholesky(cov)
    away = x - mean
    batch = promotion.common_shape("multivariate_normal", (typeof(away).shape[:-1], typeof(factor).shape[:-2]))
    away = jnp.broadcast_to(away, (*batch, n))[..., None]
    factor_b = jnp.broadcast_to(factor, (*batch, n, n))
    y = factors.solve_triangular(factor_b, away, left_side=True, lower=True)[..., 0]
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (jnp.sum(y * y, axis=-1) + n * math.log(2 * math.pi)) - half_log_det


def multivariate_normal_logpdf(x: Any, mean: Any, cov: Any, allow_singular: bool | None = None) -> Any:
    """The log of the normal density at `x`, shape (..., n).

    Args:
      mean: shape (..., n), or a number.
      cov: shape (..., n, n), positive definite; or a number, times the identity.
      allow_singular: only None.
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: allow_singular is not supported. Add to the diagonal.")
    return _multivariate_normal(x, mean, cov)


def multivariate_normal_pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The normal density at `x`; see `logpdf`."""
    return jnp.exp(_multivariate_normal(x, mean, cov))


FUNCTIONS = {
    "dirichlet": {"logpdf": dirichlet_logpdf, "pdf": dirichlet_pdf},
    "multinomial": {"logpmf": multinomial_logpmf, "pmf": multinomial_pmf},
    "multivariate_normal": {"logpdf": multivariate_normal_logpdf, "pdf": multivariate_normal_pdf},
}
