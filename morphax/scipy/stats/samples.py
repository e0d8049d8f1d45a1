"""Statistics of samples: the mode, ranks, the standard error, and the density by kernels."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from morphax import numpy as jnp
from morphax import random
from morphax.numpy import linalg
from morphax.ops import linalg as factors
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.scipy.special.elementary import logsumexp
from morphax.scipy.special.errors import ndtr_of
from morphax.support import dtypes, tree

_KEPT = "propagate"


class ModeResult(NamedTuple):
    """What `mode` returns: the most frequent value, and how often it is there."""

    mode: Any
    count: Any


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along `axis`, the smallest of them, and its count.

    >>> mode(jnp.array([3, 1, 3])).mode.item()
    3
    """
    _check_policy("mode", nan_policy, (_KEPT,))
    return ModeResult(*_mode(a, axis=axis, keepdims=keepdims))


def _check_policy(name: str, policy: str, known: tuple[str, ...]) -> None:
    if policy in known:
        return
    if policy in ("omit", "raise"):
        raise NotImplementedError(f"{name}: nan_policy={policy!r} is not supported. Use one of {', '.join(known)}.")
    raise ValueError(f"{name}: nan_policy must be one of propagate, omit, raise; it is {policy!r}.")


@program("axis", "keepdims")
def _mode(a: Any, axis: int | None, keepdims: bool) -> tuple[Any, Any]:
    a = jnp.asarray(a)
    rank = typeof(a).ndim
    a = jnp.ravel(a) if axis is None else jnp.moveaxis(a, axis, 0)
    size = typeof(a).shape[0]
    if not size:
        found = jnp.full(typeof(a).shape[1:], jnp.nan, dtypes.to_inexact(typeof(a).dtype))
        counts = jnp.zeros_like(found)
    else:
        rows = jnp.sort(a, axis=0)
        fresh = jnp.concatenate([jnp.ones_like(rows[:1], dtype=bool), rows[1:] != rows[:-1]])
        place = jnp.arange(size).reshape(size, *[1] * (typeof(rows).ndim - 1))
        start = jnp.maximum.accumulate(jnp.where(fresh, place, 0), axis=0)
        runs = place - start + 1
        best = jnp.argmax(runs, axis=0)[None]
        found = jnp.take_along_axis(rows, best, axis=0)[0]
        counts = jnp.take_along_axis(runs, best, axis=0)[0]
    if not keepdims:
        return found, counts
    if axis is None:
        return found.reshape([1] * rank), counts.reshape([1] * rank)
    return jnp.expand_dims(found, axis), jnp.expand_dims(counts, axis)


_RANKS: dict[str, Callable[..., Any]] = {
    "average": lambda low, high, dense: (low + high + 1) / 2,
    "min": lambda low, high, dense: low + 1,
    "max": lambda low, high, dense: high,
    "dense": lambda low, high, dense: dense,
}


def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Any:
    """The ranks of the entries, from 1 on, as floats; of all entries, flat, for axis=None.

    Args:
      method: what equal entries get: the "average", "min" or "max" of their ranks, "dense" (min, and the next value
        gets the next rank) or "ordinal" (distinct ranks in their order).

    >>> rankdata(jnp.array([2, 1, 2])).tolist()
    [2.5, 1.0, 2.5]
    """
    _check_policy("rankdata", nan_policy, (_KEPT,))
    if method not in _RANKS and method != "ordinal":
        raise ValueError(f"rankdata: method must be one of {', '.join(_RANKS)}, ordinal; it is {method!r}.")
    return _rankdata(a, method=method, axis=axis)


@program("method", "axis")
def _rankdata(a: Any, method: str, axis: int | None) -> Any:
    a = jnp.asarray(a)
    a = jnp.ravel(a) if axis is None else jnp.moveaxis(a, axis, 0)
    size, out_type = typeof(a).shape[0], dtypes.default_float_dtype()
    order = jnp.argsort(a, axis=0, stable=True)
    back = jnp.argsort(order, axis=0, stable=True)
    if method == "ordinal":
        ranks = back + 1
    else:
        rows = jnp.take_along_axis(a, order, axis=0)
        fresh = jnp.concatenate([jnp.ones_like(rows[:1], dtype=bool), rows[1:] != rows[:-1]])
        place = jnp.arange(size).reshape(size, *[1] * (typeof(rows).ndim - 1))
        low = jnp.maximum.accumulate(jnp.where(fresh, place, 0), axis=0)
        ends = jnp.concatenate([fresh[1:], jnp.ones_like(fresh[:1])])
        high = jnp.flip(jnp.minimum.accumulate(jnp.flip(jnp.where(ends, place + 1, size), 0), axis=0), 0)
        ranks = _RANKS[method](low, high, jnp.cumsum(fresh, axis=0))
        ranks = jnp.take_along_axis(ranks, back, axis=0)
    ranks = ranks.astype(out_type)
    if dtypes.is_inexact(typeof(a).dtype):
        ranks = jnp.where(jnp.any(jnp.isnan(a), axis=0), jnp.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, 0, axis)


def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean: the standard deviation, by n - `ddof`, over the root of n.

    >>> sem(jnp.array([1.0, 1.0])).item()
    0.0
    """
    if nan_policy == "raise":
        raise ValueError("sem: nan_policy='raise' would need values while tracing. Use propagate or omit.")
    _check_policy("sem", nan_policy, (_KEPT, "omit"))
    return _sem(a, axis=axis, ddof=ddof, omit=nan_policy == "omit", keepdims=keepdims)


@program("axis", "ddof", "omit", "keepdims")
def _sem(a: Any, axis: int | None, ddof: int, omit: bool, keepdims: bool) -> Any:
    a = jnp.asarray(a)
    deviation = (jnp.nanstd if omit else jnp.std)(a, axis=axis, ddof=ddof, keepdims=keepdims)
    counts = jnp.sum(~jnp.isnan(a) if omit else jnp.ones_like(a, dtype=bool), axis=axis, keepdims=keepdims)
    return deviation / jnp.sqrt(counts.astype(typeof(deviation).dtype))


# ---- density by kernels ----------------------------------------------------------------------------------------------

_BANDWIDTHS = {
    "scott": lambda n, d: n ** (-1.0 / (d + 4)),
    "silverman": lambda n, d: (n * (d + 2) / 4.0) ** (-1.0 / (d + 4)),
}


@tree.register_pytree_node_class
class gaussian_kde:
    """The density of a sample as a mean of normal densities around its points. A pytree.

    Args:
      dataset: shape (n,) or (d, n), the points as columns.
      bw_method: "scott" (the default), "silverman", a number, or a function of this object: the factor of the
        sample's standard deviation.
      weights: shape (n,), the points' weights.

    >>> kde = gaussian_kde(jnp.array([0.0, 1.0]))
    >>> kde.n, kde.d
    (2, 1)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        dataset = jnp.atleast_2d(jnp.asarray(dataset))
        if dtypes.is_complex(typeof(dataset).dtype):
            raise NotImplementedError("gaussian_kde: does not take complex data. Give its real and imaginary parts.")
        if typeof(dataset).shape[1] < 2:
            raise ValueError(f"gaussian_kde: needs at least two points; dataset has shape {typeof(dataset).shape}.")
        dataset = dataset.astype(dtypes.to_inexact(typeof(dataset).dtype))
        d, n = typeof(dataset).shape
        if weights is None:
            weights = jnp.full(n, 1 / n, typeof(dataset).dtype)
        else:
            weights = jnp.asarray(weights).astype(typeof(dataset).dtype)
            if typeof(weights).shape != (n,):
                raise ValueError(f"gaussian_kde: weights must have shape ({n},); it is {typeof(weights).shape}.")
            weights = weights / jnp.sum(weights)
        self.neff = 1 / jnp.sum(weights**2)
        self.dataset, self.weights = dataset, weights
        factor = self._factor(bw_method, d)
        spread = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self.covariance = spread * factor**2
        self.inv_cov = linalg.inv(spread) / factor**2

    def _factor(self, method: Any, d: int) -> Any:
        method = "scott" if method is None else method
        if isinstance(method, str):
            if method not in _BANDWIDTHS:
                raise ValueError(f"gaussian_kde: bw_method is {method!r}; it must be scott or silverman.")
            return _BANDWIDTHS[method](self.neff, d)
        return method(self) if callable(method) else method

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return typeof(self.dataset).shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return typeof(self.dataset).shape[1]

    def __repr__(self) -> str:
        return f"gaussian_kde(d={self.d}, n={self.n})"

    def tree_flatten(self) -> tuple[Any, None]:
        """The arrays of the estimate; a pytree's method."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> "gaussian_kde":
        """The inverse of `tree_flatten`."""
        out = cls.__new__(cls)
        out.neff, out.dataset, out.weights, out.covariance, out.inv_cov = children
        return out

    def _points(self, points: Any) -> Any:
        points = jnp.atleast_2d(jnp.asarray(points)).astype(typeof(self.dataset).dtype)
        d, m = typeof(points).shape
        if d == self.d:
            return points
        if d == 1 and m == self.d:
            return points.reshape(self.d, 1)
        raise ValueError(f"gaussian_kde: points must have {self.d} rows; their shape is {(d, m)}.")

    def evaluate(self, points: Any) -> Any:
        """The density at `points`, shape (d, m) or (m,) in one dimension: shape (m,)."""
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: Any) -> Any:
        return self.evaluate(points)

    def pdf(self, x: Any) -> Any:
        """The density at `x`, as `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Any:
        """The log of the density at `x`, shape (d, m): shape (m,)."""
        return _log_mixture(self.dataset, self.weights, self.covariance, self._points(x))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times a normal density with `mean`, shape (d,), and `cov`, shape (d, d)."""
        mean, cov = jnp.atleast_1d(jnp.asarray(mean)), jnp.atleast_2d(jnp.asarray(cov))
        if typeof(mean).shape != (self.d,) or typeof(cov).shape != (self.d, self.d):
            raise ValueError(
                f"gaussian_kde.integrate_gaussian: mean must have shape ({self.d},) and cov ({self.d}, {self.d}); they "
                f"are {typeof(mean).shape} and {typeof(cov).shape}."
            )
        return jnp.exp(_log_mixture(self.dataset, self.weights, self.covariance + cov, mean[:, None]))[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability of [low, high], of an estimate in one dimension."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde.integrate_box_1d: takes estimates in one dimension; this one has {self.d}.")
        deviation = jnp.sqrt(self.covariance[0, 0])
        ends = [ndtr_of((end - self.dataset[0]) / deviation) for end in (low, high)]
        return jnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_kde(self, other: "gaussian_kde") -> Any:
        """The integral of the product of two estimated densities."""
        if other.d != self.d:
            raise ValueError(f"gaussian_kde.integrate_kde: dimensions differ: {self.d} and {other.d}.")
        logs = _log_mixture(self.dataset, self.weights, self.covariance + other.covariance, other.dataset)
        return jnp.sum(other.weights * jnp.exp(logs))

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Draws from the estimated density, shape (d, *shape)."""
        first, second = random.split(key)
        picked = random.choice(first, self.n, shape=tuple(shape), p=self.weights)
        zero = jnp.zeros(self.d, typeof(self.dataset).dtype)
        noise = random.multivariate_normal(second, zero, self.covariance, shape=tuple(shape))
        return self.dataset[:, picked] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not supported: only boxes in one dimension are, by `integrate_box_1d`."""
        raise NotImplementedError("gaussian_kde.integrate_box: not supported. Use integrate_box_1d in one dimension.")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: the estimate does not change once made."""
        raise NotImplementedError("gaussian_kde.set_bandwidth: the estimate does not change. Make a new gaussian_kde.")


@program()
def _log_mixture(dataset: Any, weights: Any, covariance: Any, points: Any) -> Any:
    factor = linalg.cholesky(covariance)
    d = typeof(dataset).shape[0]
    sample = factors.solve_triangular(factor, dataset, left_side=True, lower=True)
    points = factors.solve_triangular(factor, points.astype(typeof(dataset).dtype), left_side=True, lower=True)
    away = points[:, :, None] - sample[:, None, :]
    log_scale = jnp.sum(jnp.log(jnp.diagonal(factor))) + 0.5 * d * math.log(2 * math.pi)
    return logsumexp(-0.5 * jnp.sum(away * away, axis=0), b=weights, axis=1) - log_scale
