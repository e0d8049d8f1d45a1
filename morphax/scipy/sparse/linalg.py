"""Linear equations by Krylov spaces. The unknown may be any pytree; derivatives solve the transposed equation."""

import functools
from collections.abc import Callable
from typing import Any

from morphax import numpy as jnp
from morphax.control import loops
from morphax.control.linear_solve import custom_linear_solve
from morphax.numpy import linalg
from morphax.ops import elementwise as ew
from morphax.scipy.operands import typeof
from morphax.support import dtypes, tree

Operator = Callable[[Any], Any]


def _operator(name: str, A: Any) -> Operator:
    if callable(A):
        return A
    shape = typeof(jnp.asarray(A)).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name}: A must be a function or a square matrix; its shape is {shape}.")
    return lambda x: jnp.asarray(A) @ x


def _dot(x: Any, y: Any) -> Any:
    return functools.reduce(ew.add, [jnp.vdot(a, b) for a, b in zip(tree.leaves(x), tree.leaves(y))])


def _real_dot(x: Any, y: Any) -> Any:
    return jnp.real(_dot(x, y))


def _norm(x: Any) -> Any:
    return jnp.sqrt(_real_dot(x, x))


def _add(x: Any, y: Any, scale: Any = 1) -> Any:
    return tree.map(lambda a, b: a + scale * b, x, y)


def _start(name: str, A: Any, b: Any, x0: Any, M: Any) -> tuple[Operator, Any, Any, Operator]:
    """The operator, the right side and the first guess as floating arrays, and the preconditioner."""
    if tree.structure(b) != tree.structure(b if x0 is None else x0):
        structures = f"{tree.structure(x0)} and {tree.structure(b)}"
        raise ValueError(f"{name}: x0 and b must have one structure; they have {structures}.")
    b = tree.map(lambda v: jnp.asarray(v).astype(dtypes.to_inexact(typeof(jnp.asarray(v)).dtype)), b)
    x0 = tree.map(jnp.zeros_like, b) if x0 is None else tree.map(lambda v, w: jnp.asarray(v).astype(w.dtype), x0, b)
    shapes = [[typeof(v).shape for v in tree.leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}: x0 and b must have the same shapes; they are {shapes[0]} and {shapes[1]}.")
    return _operator(name, A), b, x0, (lambda v: v) if M is None else _operator(name, M)


def _solved(solve: Callable[..., Any], A: Operator, b: Any, x0: Any, M: Operator, symmetric: bool) -> tuple[Any, None]:
    def forward(matvec: Operator, right: Any) -> Any:
        return solve(matvec, right, x0, M)

    x0 = tree.map(ew.stop_gradient, x0)
    return custom_linear_solve(A, b, solve=forward, transpose_solve=forward, symmetric=symmetric), None


def _size(b: Any) -> int:
    return sum(int(jnp.size(v)) for v in tree.leaves(b))


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """x with A x = b by conjugate gradients, for Hermitian positive definite A.

    Args:
      A: a function of x, or a matrix.
      tol, atol: it stops when |b - A x| <= max(tol |b|, atol), or after `maxiter` steps (10 times the size).
      M: an approximate inverse of A, a function or a matrix.
    Returns:
      x, and None.
    Source: M. Hestenes, E. Stiefel (1952).

    >>> cg(jnp.array([[2.0]]), jnp.array([4.0]))[0].tolist()
    [2.0]
    """
    A, b, x0, M = _start("cg", A, b, x0, M)
    steps = 10 * _size(b) if maxiter is None else maxiter

    def solve(matvec: Operator, b: Any, x0: Any, M: Operator) -> Any:
        bound = jnp.maximum(tol**2 * _real_dot(b, b), atol**2)

        def going(state: Any) -> Any:
            _, r, _, _, k = state
            return (_real_dot(r, r) > bound) & (k < steps)

        def step(state: Any) -> Any:
            x, r, p, gamma, k = state
            ap = matvec(p)
            alpha = gamma / _real_dot(p, ap)
            x, r = _add(x, p, alpha), _add(r, ap, -alpha)
            z = M(r)
            following = _real_dot(r, z)
            return x, r, _add(z, p, following / gamma), following, k + 1

        r = _add(b, matvec(x0), -1)
        z = M(r)
        return loops.while_loop(going, step, (x0, r, z, _real_dot(r, z), jnp.asarray(0)))[0]

    return _solved(solve, A, b, x0, M, symmetric=all(not dtypes.is_complex(v.dtype) for v in tree.leaves(b)))


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """x with A x = b by stabilized bi-conjugate gradients, for any square A; arguments and results as of `cg`.

    Source: H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992).

    >>> bicgstab(jnp.array([[2.0]]), jnp.array([4.0]))[0].tolist()
    [2.0]
    """
    A, b, x0, M = _start("bicgstab", A, b, x0, M)
    steps = 10 * _size(b) if maxiter is None else maxiter

    def solve(matvec: Operator, b: Any, x0: Any, M: Operator) -> Any:
        bound = jnp.maximum(tol**2 * _real_dot(b, b), atol**2)

        def going(state: Any) -> Any:
            _, r, _, _, _, _, _, k, broken = state
            return (_real_dot(r, r) > bound) & (k < steps) & ~broken

        def step(state: Any) -> Any:
            x, r, p, v, rho, alpha, omega, k, _ = state
            following = _dot(shadow, r)
            beta = following / rho * alpha / omega
            p = _add(r, _add(p, v, -omega), beta)
            p_hat = M(p)
            v = matvec(p_hat)
            alpha = following / _dot(shadow, v)
            s = _add(r, v, -alpha)
            small = _real_dot(s, s) <= bound
            s_hat = M(s)
            t = matvec(s_hat)
            # With s solved omega is 0 / 0, and not needed.
            omega = jnp.where(small, 0, _dot(t, s) / jnp.where(small, 1, _dot(t, t)))
            x = _add(_add(x, p_hat, alpha), s_hat, omega)
            r = _add(s, t, -omega)
            broken = ~small & ((following == 0) | (omega == 0))
            return x, r, p, v, following, alpha, omega, k + 1, broken

        r = _add(b, matvec(x0), -1)
        shadow = r
        one = jnp.ones_like(_dot(r, r))
        zero = tree.map(jnp.zeros_like, r)
        state = (x0, r, zero, zero, one, one, one, jnp.asarray(0), jnp.asarray(False))
        return loops.while_loop(going, step, state)[0]

    return _solved(solve, A, b, x0, M, symmetric=False)


def _stacked(tree_of: Any, count: int) -> Any:
    return tree.map(lambda v: jnp.zeros((count, *v.shape), v.dtype), tree_of)


def _arnoldi(matvec: Operator, first: Any, count: int) -> tuple[Any, Any]:
    """An orthonormal basis of count + 1 vectors of the Krylov space, and the operator in it, (count + 1, count)."""
    basis = tree.map(lambda s, v: s.at[0].set(v), _stacked(first, count + 1), first)
    dtype = jnp.result_type(*tree.leaves(first))
    eps = dtypes.finfo(dtype).eps

    def step(k: Any, state: Any) -> Any:
        basis, h = state
        v = matvec(tree.map(lambda s: s[k], basis))
        start = _norm(v)
        column = jnp.zeros(count + 1, dtype)
        for _ in range(2):  # twice is enough for orthogonality
            parts = [jnp.conj(s).reshape(count + 1, -1) @ x.ravel() for s, x in zip(tree.leaves(basis), tree.leaves(v))]
            shares = functools.reduce(ew.add, parts)
            v = tree.map(lambda x, s, shares=shares: x - jnp.tensordot(shares, s, 1), v, basis)
            column = column + shares
        length = _norm(v)
        ended = length <= eps * start
        v = tree.map(lambda x: jnp.where(ended, 0, x / jnp.where(ended, 1, length)), v)
        column = column.at[k + 1].set(jnp.where(ended, 0, length))
        return tree.map(lambda s, x: s.at[k + 1].set(x), basis, v), h.at[:, k].set(column)

    return loops.fori_loop(0, count, step, (basis, jnp.zeros((count + 1, count), dtype)))


def gmres(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, restart: int = 20,
    maxiter: int | None = None, M: Any = None, solve_method: str = "batched",
) -> tuple[Any, None]:  # fmt: skip
    """x with A x = b by least residuals, for any square A, from Krylov spaces of `restart` dimensions.

    Args:
      A, tol, atol, M: as of `cg`.
      maxiter: at most so many spaces, 10 times the size if left out.
      solve_method: "batched" or "incremental", which here are one.
    Source: Y. Saad, M. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986).

    >>> gmres(jnp.array([[2.0]]), jnp.array([4.0]))[0].tolist()
    [2.0]
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method must be batched or incremental; it is {solve_method!r}.")
    A, b, x0, M = _start("gmres", A, b, x0, M)
    rounds = 10 * _size(b) if maxiter is None else maxiter
    count = min(restart, _size(b))

    def solve(matvec: Operator, b: Any, x0: Any, M: Operator) -> Any:
        bound = jnp.maximum(tol * _norm(b), atol)

        def going(state: Any) -> Any:
            _, r, k, best = state
            # Without progress from one space to the next there will be none.
            return (_norm(r) > bound) & (k < rounds) & best

        def step(state: Any) -> Any:
            x, r, k, _ = state
            z = M(r)
            length = _norm(z)
            first = tree.map(lambda v: v / jnp.where(length == 0, 1, length), z)
            basis, h = _arnoldi(lambda v: M(matvec(v)), first, count)
            right = jnp.zeros(count + 1, h.dtype).at[0].set(length)
            weights = linalg.lstsq(h, right)[0]
            moved = tree.map(lambda v, s: v + jnp.tensordot(weights, s[:count], 1), x, basis)
            rest = _add(b, matvec(moved), -1)
            better = _norm(rest) < _norm(r)
            keep = functools.partial(jnp.where, better)
            return tree.map(keep, moved, x), tree.map(keep, rest, r), k + 1, better

        state = (x0, _add(b, matvec(x0), -1), jnp.asarray(0), jnp.asarray(True))
        return loops.while_loop(going, step, state)[0]

    return _solved(solve, A, b, x0, M, symmetric=False)
