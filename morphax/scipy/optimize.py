"""Minimization of functions of many variables."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from morphax import numpy as jnp
from morphax.control import loops
from morphax.numpy import linalg
from morphax.scipy.operands import typeof
from morphax.support import dtypes
from morphax.transforms import api

# The conditions of Wolfe: sufficient decrease and curvature; J. Nocedal, S. Wright, "Numerical Optimization", (3.7).
_DECREASE, _CURVATURE = 1e-4, 0.9


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    Fields: the place x; success; status, 0 for success, 1 for too many steps, 3 for a failed line search, 5 for values
    that are not numbers; the value fun, the gradient jac and the inverse Hessian hess_inv there; the numbers of
    evaluations nfev and njev and of steps nit.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _Search(NamedTuple):
    step: Any
    low: Any
    high: Any  # inf until the interval is bounded
    value: Any
    gradient: Any
    found: Any
    tries: Any


def _line_search(both: Callable[[Any], Any], x: Any, p: Any, f0: Any, g0: Any, tries: int) -> _Search:
    """A step along `p` with Wolfe's conditions, by doubling and then halving the interval."""
    slope = jnp.dot(g0, p)

    def going(s: _Search) -> Any:
        return ~s.found & (s.tries < tries)

    def step(s: _Search) -> _Search:
        value, gradient = both(x + s.step * p)
        far = ~(value <= f0 + _DECREASE * s.step * slope)
        here = jnp.dot(gradient, p)
        flat = jnp.abs(here) <= -_CURVATURE * slope
        beyond = far | (here >= 0)
        low, high = jnp.where(beyond, s.low, s.step), jnp.where(beyond, s.step, s.high)
        found = ~far & flat
        following = jnp.where(jnp.isinf(high), 2 * s.step, 0.5 * (low + high))
        return _Search(jnp.where(found, s.step, following), low, high, value, gradient, found, s.tries + 1)

    zero = jnp.zeros_like(f0)
    start = _Search(zero + 1, zero, zero + jnp.inf, f0, g0, jnp.asarray(False), jnp.asarray(0))
    return loops.while_loop(going, step, start)


def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """A local minimum of `fun(x, *args)`, a number.

    Args:
      x0: the start, shape (n,).
      method: "BFGS".
      tol: it stops when no entry of the gradient exceeds this (1e-5).
      options: maxiter, the highest number of steps (200 n); gtol, in place of tol; line_search_maxiter (30); norm, the
        order of the gradient's norm (inf).
    Source: J. Nocedal, S. Wright, "Numerical Optimization", algorithm 6.1.

    >>> round(minimize(lambda x: jnp.sum((x - 3) ** 2), jnp.zeros(1), method="BFGS").x.item(), 3)
    3.0
    """
    if method.lower() != "bfgs":
        raise ValueError(f"minimize: method must be BFGS; it is {method!r}.")
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple; it is {args!r}.")
    unknown = set(options or ()) - {"maxiter", "gtol", "line_search_maxiter", "norm"}
    if unknown:
        known = "maxiter, gtol, line_search_maxiter, norm"
        raise TypeError(f"minimize: options {sorted(unknown)} are not known; {known} are.")
    x0 = jnp.asarray(x0)
    x0 = x0.astype(dtypes.to_inexact(typeof(x0).dtype))
    if typeof(x0).ndim != 1:
        raise ValueError(f"minimize: x0 must have one axis; its shape is {typeof(x0).shape}.")
    given = dict(options or {})
    bound = given.get("gtol", 1e-5 if tol is None else tol)
    steps = given.get("maxiter") or 200 * typeof(x0).shape[0]
    both = api.value_and_grad(lambda x: fun(x, *args))
    return _bfgs(both, x0, bound, steps, given.get("line_search_maxiter", 30), given.get("norm", jnp.inf))


def _updated(h: Any, s: Any, y: Any) -> Any:
    """The inverse Hessian after a step s that changed the gradient by y; (6.17)."""
    curvature = jnp.dot(s, y)
    safe = curvature > 0
    rho = jnp.where(safe, 1 / jnp.where(safe, curvature, 1), 0)
    hy = h @ y
    outer = jnp.outer(s, hy)
    return h - rho * (outer + outer.T) + (rho * rho * jnp.dot(y, hy) + rho) * jnp.outer(s, s)


def _bfgs(both: Callable[[Any], Any], x0: Any, bound: Any, steps: int, tries: int, order: Any) -> OptimizeResults:
    def converged(gradient: Any) -> Any:
        return linalg.norm(gradient, ord=order) <= bound

    def going(r: OptimizeResults) -> Any:
        return ~r.success & (r.status == 0) & (r.nit < steps)

    def step(r: OptimizeResults) -> OptimizeResults:
        p = -(r.hess_inv @ r.jac)
        search = _line_search(both, r.x, p, r.fun, r.jac, tries)
        s = search.step * p
        failed = ~search.found
        x = jnp.where(failed, r.x, r.x + s)
        value, gradient = jnp.where(failed, r.fun, search.value), jnp.where(failed, r.jac, search.gradient)
        hess_inv = jnp.where(failed, r.hess_inv, _updated(r.hess_inv, s, gradient - r.jac))
        nan = ~jnp.isfinite(value) | ~jnp.all(jnp.isfinite(gradient))
        status = jnp.where(nan, 5, jnp.where(failed, 3, 0))
        counts = r.nfev + search.tries, r.njev + search.tries, r.nit + 1
        return OptimizeResults(x, converged(gradient), status, value, gradient, hess_inv, *counts)

    value, gradient = both(x0)
    one = jnp.eye(typeof(x0).shape[0], dtype=typeof(x0).dtype)
    counts = [jnp.asarray(n) for n in (1, 1, 0)]
    start = OptimizeResults(x0, converged(gradient), jnp.asarray(0), value, gradient, one, *counts)
    out = loops.while_loop(going, step, start)
    return out._replace(status=jnp.where(~out.success & (out.status == 0), 1, out.status))
