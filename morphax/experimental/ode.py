"""Initial value problems: the explicit Runge-Kutta pair of Dormand and Prince, with an adjoint gradient.

J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", 1980. The interpolant is that of
L. F. Shampine, "Some practical Runge-Kutta formulas", 1986; the first step and the control of later ones are those of
E. Hairer, S. P. Nørsett, G. Wanner, "Solving Ordinary Differential Equations I", II.4.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.control.custom import custom_vjp
from morphax.control.loops import scan, while_loop
from morphax.flatten_util import ravel_pytree
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import api

# The tableau: nodes, weights of the stages, weights of the solution of order 5, of its error, and of the middle.
_ALPHA = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
_BETA = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
_SOLUTION = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_FOURTH = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
_MIDDLE = np.array(
    [
        6025192743 / 30085553152,
        0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    ]
)

Func = Callable[..., Any]


def _weigh(weights: np.ndarray, k: Any) -> Any:
    return jnp.tensordot(weights.astype(k.real.dtype), k, 1)


def runge_kutta_step(func: Func, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple[Any, Any, Any, Any]:
    """One step: y at t0 + dt, its derivative there, the error estimate, and the seven stages."""
    k = [f0]
    for alpha, beta in zip(_ALPHA, _BETA, strict=True):
        stages = jnp.stack(k)
        k.append(func(y0 + dt * _weigh(beta[: len(k)], stages), t0 + dt * alpha))
    stages = jnp.stack(k)
    y1 = y0 + dt * _weigh(_SOLUTION, stages)
    return y1, stages[-1], dt * _weigh(_SOLUTION - _FOURTH, stages), stages


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> list[Any]:
    """Coefficients, highest first, of the quartic on [0, 1] with these values at 0, 1 and 1/2 and slopes at 0 and 1."""
    a = -2 * dt * dy0 + 2 * dt * dy1 - 8 * y0 - 8 * y1 + 16 * y_mid
    b = 5 * dt * dy0 - 3 * dt * dy1 + 18 * y0 + 14 * y1 - 32 * y_mid
    c = -4 * dt * dy0 + dt * dy1 - 11 * y0 - 5 * y1 + 16 * y_mid
    return [a, b, c, dt * dy0, y0]


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """The interpolant of a step, as coefficients of a quartic on [0, 1], highest first."""
    return jnp.stack(fit_4th_order_polynomial(y0, y1, y0 + dt * _weigh(_MIDDLE / 2, k), k[0], k[-1], dt))


def mean_error_ratio(error_estimate: Any, rtol: Any, atol: Any, y0: Any, y1: Any) -> Any:
    """Root mean square of the error over the tolerance: at most 1 where a step is good enough."""
    tolerance = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(jnp.abs(error_estimate / tolerance) ** 2))


def optimal_step_size(
    last_step: Any, mean_error_ratio: Any, safety: float = 0.9, ifactor: float = 10.0, dfactor: float = 0.2,
    order: float = 5.0,
) -> Any:  # fmt: skip
    """The step for which the error ratio would be `safety`, not more than a factor away from the last."""
    shrink = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    ratio = jnp.where(mean_error_ratio == 0, 1.0, mean_error_ratio)
    factor = jnp.minimum(ifactor, jnp.maximum(ratio ** (-1.0 / order) * safety, shrink))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


def initial_step_size(fun: Func, t0: Any, y0: Any, order: int, rtol: Any, atol: Any, f0: Any) -> Any:
    """A first step from the sizes of y, its derivative, and the change of that over a small step."""
    scale = atol + jnp.abs(y0) * rtol
    d0 = _norm(y0 / scale)
    d1 = _norm(f0 / scale)
    flat = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(flat, 1e-6, 0.01 * d0 / jnp.where(flat, 1.0, d1))
    f1 = fun(y0 + h0.astype(y0.real.dtype) * f0, t0 + h0)
    d2 = _norm((f1 - f0) / scale) / h0
    still = (d1 <= 1e-15) & (d2 <= 1e-15)
    largest = jnp.where(still, 1.0, jnp.maximum(d1, d2))
    h1 = jnp.where(still, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / largest) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * h0, h1).astype(t0.dtype)


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.sum(jnp.abs(x) ** 2))


@api_boundary
def odeint(
    func: Func,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """The solution of y' = func(y, t, *args), y(t[0]) = y0, at the times `t`.

    Args:
        func: function of (y, t, *args) that returns the derivative of y, with the structure of y.
        y0: pytree of float or complex arrays.
        t: floats, shape (n,), rising.
        args: pytrees of arrays that `func` takes; those of floats, and traced values that it closes over, are
            differentiated.
        rtol, atol: each step's error is to be below atol + rtol * abs(y), in the mean. Below about 1e-6 that needs
            64-bit floats.
        mxstep: largest number of steps between two times.
        hmax: largest step.

    Returns:
        y at each time: as `y0`, each leaf with a new first axis of size n.

    Raises:
        TypeError: `func` does not return the structure and types of y0, or `t` is not a vector of floats.

    Derivative: forward mode solves the linearised problem beside the problem; reverse mode solves the adjoint problem
    backwards in time, so that memory does not grow with the number of steps.

    >>> y = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]), rtol=1e-5, atol=1e-5)
    >>> round(float(y[1]), 4)
    0.3679
    """
    t = jnp.asarray(t)
    if t.ndim != 1 or not dtypes.is_float(t.dtype):
        raise TypeError(f"odeint: t must be a vector of floats; it has type {t.aval}.")
    y0 = tree.map(_as_inexact, y0)
    args = tree.map(jnp.asarray, args)
    got = api.eval_shape(func, y0, t[0], *args)
    shapes = [[a.shape for a in tree.leaves(x)] for x in (got, y0)]
    if tree.structure(got) != tree.structure(y0) or shapes[0] != shapes[1]:
        raise TypeError(
            f"odeint: func must return the structure and shapes of y0, {_shown(y0)}; it returns {_shown(got)}."
        )
    converted, hoisted = api.closure_convert(func, y0, t[0], *args)
    leaves, arg_tree = tree.flatten((args, tuple(hoisted)))
    active = tuple([dtypes.is_inexact(x.dtype) for x in leaves])
    flat0, unravel = ravel_pytree(y0)

    def flat(y: Any, t: Any, floats: Any, others: Any) -> Any:
        found, rest = iter(floats), iter(others)
        args, hoisted = tree.unflatten(arg_tree, [next(found) if on else next(rest) for on in active])
        return ravel_pytree(converted(unravel(y), t, *args, *hoisted))[0].astype(y.dtype)

    floats = [x for x, on in zip(leaves, active, strict=True) if on]
    others = [x for x, on in zip(leaves, active, strict=True) if not on]
    options = (float(rtol), float(atol), float(mxstep), float(hmax))
    return api.vmap(unravel)(_odeint(flat, options, flat0, t, floats, others))


def _as_inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(jnp.result_type(float))


def _shown(x: Any) -> str:
    return str(tree.map(lambda a: f"{a.dtype.name}{list(a.shape)}", x))


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _odeint(func: Func, options: tuple[float, ...], y0: Any, ts: Any, floats: Any, others: Any) -> Any:
    """The solution for a vector y: one loop of steps for each time, from which the interpolant is read."""
    rtol, atol, mxstep, hmax = options
    slope = lambda y, t: func(y, t, floats, others)  # noqa: E731 - one line, used below

    def advance(state: Any) -> Any:
        i, y, f, t, dt, last_t, coefficients, target = state
        next_y, next_f, error, k = runge_kutta_step(slope, y, f, t, dt)
        ratio = mean_error_ratio(error, rtol, atol, y, next_y)
        good = ratio <= 1.0
        accepted = (next_y, next_f, t + dt, t, interp_fit_dopri(y, next_y, k, dt))
        kept = (y, f, t, last_t, coefficients)
        y, f, t, last_t, coefficients = [jnp.where(good, a, b) for a, b in zip(accepted, kept, strict=True)]
        dt = jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax).astype(ts.dtype)
        return i + 1, y, f, t, dt, last_t, coefficients, target

    def going(state: Any) -> Any:
        i, _, _, t, dt, _, _, target = state
        return (t < target) & (i < mxstep) & (dt > 0)

    def reach(carry: Any, target: Any) -> Any:
        _, *carry, _ = while_loop(going, advance, (jnp.zeros((), ts.dtype), *carry, target))
        _, _, t, _, last_t, coefficients = carry
        # A step that ends at the target needs no interpolation; before the first step there is none.
        at = jnp.where(t > last_t, (target - last_t) / jnp.where(t > last_t, t - last_t, 1.0), 1.0)
        value = coefficients[0]
        for c in coefficients[1:]:
            value = value * at + c
        return tuple(carry), value.astype(y0.dtype)

    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, 4, rtol, atol, f0), 0.0, hmax).astype(ts.dtype)
    coefficients = jnp.stack([jnp.zeros_like(y0)] * 4 + [y0])
    _, ys = scan(reach, (y0, f0, ts[0], dt, ts[0], coefficients), ts[1:])
    return jnp.concatenate([y0[None], ys])


def _forward(func: Func, options: Any, y0: Any, ts: Any, floats: Any, others: Any) -> Any:
    ys = _odeint(func, options, y0, ts, floats, others)
    return ys, (ys, ts, floats, others)


def _backward(func: Func, options: Any, residuals: Any, g: Any) -> Any:
    """The adjoint problem, from each time back to the one before, where that time's cotangent is added."""
    ys, ts, floats, others = tree.map(jnp.asarray, residuals)

    def adjoint(state: Any, t: Any, floats: Any, others: Any) -> Any:
        y, y_bar, _, _ = state
        y_dot, pullback = api.vjp(lambda y, t, floats: func(y, t, floats, others), y, -t, floats)
        return (-y_dot, *pullback(y_bar))

    rtol, atol, mxstep, hmax = options

    def back(carry: Any, i: Any) -> Any:
        y_bar, t0_bar, floats_bar = carry
        t_bar = jnp.sum(func(ys[i], ts[i], floats, others) * g[i]).real.astype(ts.dtype)
        start = (ys[i], y_bar, t0_bar - t_bar, floats_bar)
        times = jnp.stack([-ts[i], -ts[i - 1]])
        ends = odeint(adjoint, start, times, floats, others, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
        _, y_bar, t0_bar, floats_bar = tree.map(lambda x: x[1], ends)
        return (y_bar + g[i - 1], t0_bar, floats_bar), t_bar

    start = (g[-1], jnp.zeros((), ts.dtype), tree.map(jnp.zeros_like, floats))
    (y_bar, t0_bar, floats_bar), t_bars = scan(back, start, jnp.arange(len(ts) - 1, 0, -1))
    return y_bar, jnp.concatenate([t0_bar[None], t_bars[::-1]]), floats_bar, None


def _tangents(func: Func, options: Any, primals: Any, tangents: Any) -> Any:
    """The linearised problem beside the problem. A later start is a start from another point, and so is a later end."""
    y0, ts, floats, others = primals
    y0_dot, ts_dot, floats_dot, _ = tangents
    rtol, atol, mxstep, hmax = options

    def linearised(state: Any, t: Any, floats: Any, others: Any, floats_dot: Any) -> Any:
        moved = lambda y, floats: func(y, t, floats, others)  # noqa: E731 - one line, used once
        return api.jvp(moved, (state[0], floats), (state[1], floats_dot))

    start = (y0, y0_dot - func(y0, ts[0], floats, others) * ts_dot[0])
    ys, ys_dot = odeint(
        linearised, start, ts, floats, others, floats_dot, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax
    )
    slopes = api.vmap(lambda y, t: func(y, t, floats, others))(ys, ts)
    return ys, ys_dot + slopes * ts_dot[:, None]


_odeint.defvjp(_forward, _backward)
_odeint.defjvp(_tangents)
