"""Derivatives held to finite differences."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.support import dtypes, tree
from morphax.transforms import api

# Tolerance of a derivative, and step of the difference quotient, by the bytes of the narrowest real type that takes
# part. The step balances the quotient's two errors: rounding, of the size of eps(dtype) / step, and curvature, step^2.
_TOLERANCES = {1: 0.5, 2: 1e-1, 4: 2e-3, 8: 1e-5}
_STEPS = {1: 0.25, 2: 0.1, 4: 4e-3, 8: 1e-4}


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Hold a forward-mode derivative to the difference quotient of `f` in a random direction.

    Args:
        f: function of arrays or pytrees of them.
        f_jvp: (primals, tangents) -> (output, tangent of the output).
        args: the point.
        atol, rtol: tolerances; None chooses them by dtype.
        eps: step of the difference quotient; None chooses it by dtype.
        err_msg: begins the message of the error.

    Raises:
        AssertionError: value or derivative differ.

    >>> check_jvp(lambda x: x * x, lambda x, t: (x[0] * x[0], 2 * x[0] * t[0]), (3.0,), eps=1e-2)
    """
    args = tuple(args)
    random = np.random.default_rng(0)
    tangents = tree.map(lambda x: _random_like(random, x), args)
    out, tangent = f_jvp(args, tangents)
    width = _width((args, out))
    _close(out, f(*args), width, atol, rtol, f"{err_msg} the value that comes with the jvp".strip())
    expected = _quotient(f, args, tangents, eps or _STEPS[width])
    _close(tangent, expected, width, atol, rtol, f"{err_msg} the jvp".strip())


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Hold a reverse-mode derivative to the difference quotient of `f`: ⟨pullback(u), v⟩ = ⟨u, df(v)⟩ for random u, v.

    Args:
        f: function of arrays or pytrees of them.
        f_vjp: args -> (output, pullback).
        args: the point.
        atol, rtol: tolerances; None chooses them by dtype.
        eps: step of the difference quotient; None chooses it by dtype.
        err_msg: begins the message of the error.

    Raises:
        AssertionError: value or derivative differ.

    >>> check_vjp(lambda x: x * x, lambda x: (x * x, lambda u: (2 * x * u,)), (3.0,), eps=1e-2)
    """
    args = tuple(args)
    random = np.random.default_rng(1)
    out, pullback = f_vjp(*args)
    width = _width((args, out))
    _close(out, f(*args), width, atol, rtol, f"{err_msg} the value that comes with the vjp".strip())
    tangents = tree.map(lambda x: _random_like(random, x), args)
    cotangents = tree.map(lambda x: _random_like(random, x), out)
    pushed = _quotient(f, args, tangents, eps or _STEPS[width])
    # Without conjugates, as the transpose of a complex linear map has none.
    got = _inner(tangents, pullback(cotangents))
    _close(got, _inner(pushed, cotangents), width, atol, rtol, f"{err_msg} the vjp".strip())


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Hold the derivatives of `f` up to `order` to difference quotients, in every mixture of `modes`.

    Args:
        f: function of arrays or pytrees of them.
        args: the point.
        order: up to which derivative.
        modes: "fwd" for forward mode, "rev" for reverse mode.
        atol, rtol: tolerances; None chooses them by dtype.
        eps: step of the difference quotient; None chooses it by dtype.

    Raises:
        AssertionError: a derivative differs.
        ValueError: an unknown mode.

    >>> from morphax import numpy as jnp
    >>> check_grads(jnp.sin, (0.5,), order=2)
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown or not modes:
        raise ValueError(f'check_grads: modes must be "fwd", "rev" or both; they are {modes}.')
    _check_grads(f, tuple(args), order, modes, atol, rtol, eps, "f")


def _check_grads(f: Any, args: Any, order: int, modes: Any, atol: Any, rtol: Any, eps: Any, name: str) -> None:
    if order < 1:
        return
    random = np.random.default_rng(order)
    if "fwd" in modes:
        f_jvp = functools.partial(_jvp, f)
        check_jvp(f, f_jvp, args, atol, rtol, eps, f"jvp of {name}:")
        tangents = tree.map(lambda x: _random_like(random, x), args)
        if order > 1:
            pushed = lambda *xs: f_jvp(xs, tangents)  # noqa: E731 - one line, used once
            _check_grads(pushed, args, order - 1, modes, atol, rtol, eps, f"jvp of {name}")
    if "rev" in modes:
        f_vjp = functools.partial(api.vjp, f)
        check_vjp(f, f_vjp, args, atol, rtol, eps, f"vjp of {name}:")
        if order > 1:
            cotangents = tree.map(lambda x: _random_like(random, x), f(*args))

            def pulled(*xs: Any) -> Any:
                out, pullback = f_vjp(*xs)
                return out, [g for g in tree.leaves(pullback(cotangents)) if g.dtype != dtypes.float0]

            _check_grads(pulled, args, order - 1, modes, atol, rtol, eps, f"vjp of {name}")


def _jvp(f: Any, primals: Any, tangents: Any) -> Any:
    return api.jvp(f, primals, tangents)


# ---- arithmetic on the host, so that what is checked does not check itself -------------------------------------------


def _width(values: Any) -> int:
    widths = []
    for leaf in tree.leaves(values):
        dtype = avals.typeof(leaf).dtype
        if dtypes.is_inexact(dtype):
            widths.append(dtype.itemsize // (2 if dtypes.is_complex(dtype) else 1))
    return min(widths, default=4)


def _is_float(x: Any) -> bool:
    return dtypes.is_inexact(avals.typeof(x).dtype)


def _random_like(random: Any, x: Any) -> Any:
    aval = avals.typeof(x)
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    drawn: Any = random.standard_normal(aval.shape)
    if dtypes.is_complex(aval.dtype):
        drawn = drawn + 1j * random.standard_normal(aval.shape)
    return np.asarray(drawn).astype(aval.dtype)


def _wide(x: Any) -> np.ndarray:
    array = np.asarray(x)
    return array.astype(np.complex128 if dtypes.is_complex(array.dtype) else np.float64)


def _quotient(f: Any, args: Any, tangents: Any, step: float) -> Any:
    """(f(x + h v) - f(x - h v)) / 2h, with float0 for outputs that have no derivative."""

    def moved(sign: float) -> Any:
        def move(x: Any, t: Any) -> Any:
            if not _is_float(x):
                return x
            return (_wide(x) + sign * step * _wide(t)).astype(avals.typeof(x).dtype)

        return f(*tree.map(move, args, tangents))

    def divided(above: Any, below: Any) -> Any:
        if not _is_float(above):
            return np.zeros(avals.typeof(above).shape, dtypes.float0)
        return (_wide(above) - _wide(below)) / (2 * step)

    return tree.map(divided, moved(1.0), moved(-1.0))


def _inner(xs: Any, ys: Any) -> Any:
    total: Any = 0.0
    for x, y in zip(tree.leaves(xs), tree.leaves(ys), strict=True):
        if x.dtype != dtypes.float0:
            total = total + np.sum(_wide(x) * _wide(y))
    return np.real(total)


def _close(got: Any, want: Any, width: int, atol: float | None, rtol: float | None, what: str) -> None:
    tolerance = _TOLERANCES[width]
    atol = tolerance if atol is None else atol
    rtol = tolerance if rtol is None else rtol
    got_leaves, want_leaves = tree.leaves(got), tree.leaves(want)
    assert len(got_leaves) == len(want_leaves), f"{what}: {len(got_leaves)} leaves instead of {len(want_leaves)}"
    for a, b in zip(got_leaves, want_leaves, strict=True):
        if np.asarray(a).dtype == dtypes.float0:
            continue
        # XLA may round a division or a fused sum otherwise than NumPy does, hence never exactly.
        np.testing.assert_allclose(_wide(a), _wide(b), rtol=rtol, atol=atol, err_msg=what)
