"""Random vectors and matrices that need linear algebra."""

from typing import Any

import numpy as np

from morphax.numpy import linalg, promotion, shapes, ufuncs
from morphax.numpy.einsum import einsum  # by name: the function `einsum` hides its module
from morphax.ops import family
from morphax.random import distributions, draws
from morphax.random.keys import sampler

typeof = family.typeof


@sampler("n", "m", "shape", "dtype")
def _orthogonal(key: Any, *, n: int, m: int, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    shape = draws.checked_shape("orthogonal", (*shape, max(n, m), min(n, m)))
    basis, triangle = linalg.qr(draws.standard_normal(key, shape, dtype))
    basis = basis * shapes.expand_dims(ufuncs.sign(linalg.diagonal(triangle)), -2)
    return ufuncs.conj(linalg.matrix_transpose(basis)) if n < m else basis


def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: Any = None
) -> Any:
    """Random orthogonal matrices, uniform in O(n); unitary ones for complex dtypes.

    Mezzadri: How to generate random matrices from the classical compact groups, Notices of the AMS 54 (2007).

    Args:
        key: a random key.
        n: rows.
        shape: of the result without its last two axes.
        dtype: a float or complex dtype; the default float for None.
        m: columns; `n` for None. Of unequal sizes, the fewer rows or columns are orthonormal.

    >>> from morphax import random
    >>> random.orthogonal(random.key(0), 3, (2,)).shape
    (2, 3, 3)
    """
    draws.unplaced("orthogonal", out_sharding)
    named = draws.float_dtype("orthogonal", dtype, "fc")
    columns = n if m is None else m
    return _orthogonal("orthogonal", key, n=int(n), m=int(columns), shape=draws.as_shape(shape), dtype=named)


def _cholesky(cov: Any) -> Any:
    return linalg.cholesky(cov)


def _svd(cov: Any) -> Any:
    u, s, _ = linalg.svd(cov)
    return u * shapes.expand_dims(ufuncs.sqrt(s), -2)


def _eigh(cov: Any) -> Any:
    w, v = linalg.eigh(cov)
    return v * shapes.expand_dims(ufuncs.sqrt(ufuncs.maximum(w, 0)), -2)


_FACTORS = {"cholesky": _cholesky, "svd": _svd, "eigh": _eigh}


@sampler("shape", "dtype", "method")
def _multivariate_normal(
    key: Any, mean: Any, cov: Any, *, shape: tuple[int, ...] | None, dtype: np.dtype, method: str
) -> Any:
    mean, cov = draws.parameter("multivariate_normal", mean, dtype), draws.parameter("multivariate_normal", cov, dtype)
    m, c = typeof(mean).shape, typeof(cov).shape
    if not m or len(c) < 2 or c[-2:] != (m[-1], m[-1]):
        raise ValueError(
            f"multivariate_normal: mean of shape {m} needs cov of shape (..., n, n) with n its last size; got {c}."
        )
    own = promotion.common_shape("multivariate_normal", (m[:-1], c[:-2]))
    batch = own if shape is None else draws.checked_shape("multivariate_normal", shape)
    if promotion.common_shape("multivariate_normal", (batch, own)) != batch:
        raise ValueError(f"multivariate_normal: parameters of batch {own} do not broadcast to the shape {batch}.")
    z = draws.standard_normal(key, (*batch, m[-1]), dtype)
    return mean + einsum("...ij,...j->...i", _FACTORS[method](cov), z)


def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Any:
    """Normal random vectors: mean + A z with A A^T = cov.

    Args:
        key: a random key.
        mean: shape (..., n).
        cov: covariance, positive definite, shape (..., n, n).
        shape: of the result without its last axis; for None those of `mean` and `cov` broadcast together.
        dtype: a float dtype; the default float for None.
        method: "cholesky", or "svd" or "eigh", which take singular covariances.

    Raises:
        ValueError: another method, or shapes that do not fit.

    Derivative: in `mean` and `cov`.

    >>> from morphax import random, numpy as jnp
    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)
    """
    draws.unplaced("multivariate_normal", out_sharding)
    if method not in _FACTORS:
        raise ValueError(f"multivariate_normal: no method {method!r}. Choose one of {', '.join(_FACTORS)}.")
    named = draws.float_dtype("multivariate_normal", dtype)
    shape = distributions.optional(shape)
    return _multivariate_normal("multivariate_normal", key, mean, cov, shape=shape, dtype=named, method=method)
