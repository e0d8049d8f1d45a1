"""Solvers whose derivative is another solve: custom_linear_solve and custom_root, by the implicit function theorem."""

from collections.abc import Callable
from typing import Any

from morphax.control.custom import custom_jvp, linear_call, zero_tangent
from morphax.ir.current import base, current
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import closure_convert, jvp, linear_transpose, linearize
from morphax.transforms.flat import check_callable


def _same_structure(api: str, what: str, got: Any, want: Any) -> None:
    differences = tree.structure_difference(got, want, names=(what, "the right-hand side"))
    if differences:
        listed = "; ".join(f"at {tree.keystr(keys) or 'the top'}: {text}" for keys, text in differences)
        raise TypeError(f"{api}: {what} must have the structure of the right-hand side. {listed}.")
    for (keys, a), b in zip(tree.leaves_with_path(got), tree.leaves(want), strict=True):
        if typeof(a).shape != typeof(b).shape:
            raise TypeError(
                f"{api}: {what} must have the shapes of the right-hand side; at {tree.keystr(keys) or 'the top'} it is "
                f"{typeof(a)} and that is {typeof(b)}."
            )


@api_boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x with matvec(x) = b, by `solve`; differentiated implicitly: A dx = db - dA x.

    Args:
        matvec: linear function x -> A x; what it closes over is differentiated too.
        b: right-hand side, a pytree of arrays.
        solve: (matvec, b) -> x; it is never differentiated.
        transpose_solve: (vecmat, b) -> x with A^T x = b, for reverse mode.
        symmetric: A = A^T, so that `solve` serves for both.
        has_aux: `solve` and `transpose_solve` return (x, aux).

    Returns:
        x, or (x, aux).

    Raises:
        TypeError: a solution of another structure or shape than b; reverse mode without a transposed solver.

    >>> from morphax import grad
    >>> f = lambda a: custom_linear_solve(lambda x: a * x, 6.0, lambda matvec, b: b / matvec(1.0), symmetric=True)
    >>> float(f(2.0)), float(grad(f)(2.0))
    (3.0, -1.5)
    """
    check_callable("custom_linear_solve", matvec)
    check_callable("custom_linear_solve", solve)
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    matvec_of, captured = closure_convert(matvec, b)
    aux_of = _Aux(has_aux)
    params = tuple(captured)
    forward_of, forward_captured = _hoisted(lambda p, r: solve(lambda x: matvec_of(x, *p), r), params, b)
    back_of, back_captured = _no_transpose, ()
    if transpose_solve is not None:
        back_of, back_captured = _hoisted(_transposed_solver(transpose_solve, matvec_of), params, b)

    def solve_linear(params: Any, extra: Any, rhs: Any) -> Any:
        """A^-1 rhs, linear in rhs, with the transposed solver as its transpose."""
        return linear_call(
            lambda known, r: aux_of(forward_of(known[1], known[0], r))[0],
            lambda known, ct: aux_of(back_of(known[2], known[0], ct))[0],
            (params, *extra),
            rhs,
        )

    @custom_jvp
    def run(params: Any, extra: Any, rhs: Any) -> Any:
        x, aux = aux_of(forward_of(extra[0], params, rhs))
        _same_structure("custom_linear_solve", "the solution", x, rhs)
        return x, aux

    @run.defjvp
    def run_jvp(primals: Any, tangents: Any) -> Any:
        params, extra, rhs = primals
        t_params, _, t_rhs = tangents
        x, aux = run(params, extra, rhs)
        # A dx = db - dA x
        if tree.leaves(t_params):
            _, moved = jvp(lambda p: matvec_of(x, *p), (params,), (t_params,))
            t_rhs = tree.map(ew.sub, t_rhs, moved)
        return (x, aux), (solve_linear(params, extra, t_rhs), tree.map(zero_tangent, aux))

    x, aux = run(params, (forward_captured, back_captured), b)
    return (x, aux) if has_aux else x


def _hoisted(fun: Callable[..., Any], *examples: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`fun(*args)` as a function (captured, *args), and the traced values that it captures.

    Rules of derivatives run later, where values of the transforms around the call may no longer be used.
    """
    if current.trace is base():
        return lambda captured, *args: fun(*args), ()
    converted, captured = closure_convert(fun, *examples)
    return lambda captured, *args: converted(*args, *captured), tuple(captured)


def _transposed_solver(transpose_solve: Any, matvec_of: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def solve(params: Any, ct: Any) -> Any:
        return transpose_solve(lambda y: linear_transpose(lambda x: matvec_of(x, *params), ct)(y)[0], ct)

    return solve


def _no_transpose(*args: Any) -> Any:
    raise TypeError("custom_linear_solve: reverse mode needs transpose_solve, or symmetric=True where A is symmetric.")


class _Aux:
    """Splits what a solver returns into (x, aux)."""

    __slots__ = ("has_aux",)

    def __init__(self, has_aux: bool):
        self.has_aux = has_aux

    def __call__(self, result: Any) -> tuple[Any, Any]:
        return tuple(result) if self.has_aux else (result, None)  # pyright: ignore[reportReturnType] - a pair


@api_boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """x with f(x) = 0, by `solve`; differentiated by the implicit function theorem: f'(x) dx = -df.

    Args:
        f: function with a root; what it closes over is differentiated too.
        initial_guess: pytree of arrays; its derivative is zero.
        solve: (f, initial_guess) -> x; it is never differentiated.
        tangent_solve: (g, y) -> x with g(x) = y, for the linear g = f'(x).
        has_aux: `solve` returns (x, aux).

    Returns:
        x, or (x, aux).

    >>> from morphax import grad
    >>> newton = lambda f, x: x - 0.0 * x
    >>> root = lambda a: custom_root(lambda x: x * x - a, 3.0, newton, lambda g, y: y / g(1.0))
    >>> round(float(grad(root)(9.0)), 6)
    0.166667
    """
    check_callable("custom_root", f)
    check_callable("custom_root", solve)
    check_callable("custom_root", tangent_solve)
    f_of, captured = closure_convert(f, initial_guess)
    aux_of = _Aux(has_aux)
    params = tuple(captured)

    def slope(params: Any, x: Any) -> Callable[[Any], Any]:
        return linearize(lambda y: f_of(y, *params), x)[1]

    def transposed(params: Any, x: Any, y: Any) -> Any:
        return tangent_solve(lambda ct: linear_transpose(slope(params, x), x)(ct)[0], y)

    of_root = (params, initial_guess, initial_guess)
    solve_of, for_solve = _hoisted(lambda p, guess: solve(lambda x: f_of(x, *p), guess), params, initial_guess)
    forward_of, for_forward = _hoisted(lambda p, x, y: tangent_solve(slope(p, x), y), *of_root)
    back_of, for_back = _hoisted(transposed, *of_root)

    @custom_jvp
    def run(params: Any, extra: Any, guess: Any) -> Any:
        return aux_of(solve_of(extra[0], params, guess))

    @run.defjvp
    def run_jvp(primals: Any, tangents: Any) -> Any:
        params, extra, guess = primals
        x, aux = run(params, extra, guess)
        _, moved = jvp(lambda p: f_of(x, *p), (params,), (tangents[0],))
        dx = custom_linear_solve(
            slope(params, x),
            tree.map(ew.neg, moved),
            lambda _, y: forward_of(extra[1], params, x, y),
            lambda _, y: back_of(extra[2], params, x, y),
        )
        return (x, aux), (dx, tree.map(zero_tangent, aux))

    x, aux = run(params, (for_solve, for_forward, for_back), initial_guess)
    return (x, aux) if has_aux else x
