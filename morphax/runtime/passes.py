"""The forward and the backward pass of a function as two functions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.runtime.jit import jit
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import argument_positions, check_argnums, named_after, vjp
from morphax.transforms.flat import check_callable


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of `fun` as two functions, each compiled once, for any number of calls.

    Args:
        fun: function of pytrees of arrays.
        argnums: position or positions of the arguments to differentiate.
        has_aux: `fun` returns (output, aux).
        jitted: compile both.

    Returns:
        (forward, backward): `forward(*args)` is (output, residuals), or (output, residuals, aux) with `has_aux`;
        `backward(residuals, ct)` is the cotangent of the argument, or a tuple of them for a sequence of positions. The
        residuals are a pytree of arrays.

    >>> forward, backward = fwd_and_bwd(lambda x, y: x * x * y, argnums=0)
    >>> y, residuals = forward(3.0, 2.0)
    >>> float(y), float(backward(residuals, 1.0))
    (18.0, 12.0)
    """
    check_callable("fwd_and_bwd", fun)
    check_argnums("fwd_and_bwd", argnums)
    single = isinstance(argnums, (int, np.integer))

    def forward(*args: Any, **kwargs: Any) -> Any:
        nums = argument_positions("fwd_and_bwd", fun, argnums, len(args))

        def of_chosen(*chosen: Any) -> Any:
            merged = list(args)
            for n, value in zip(nums, chosen, strict=True):
                merged[n] = value
            return fun(*merged, **kwargs)

        return vjp(of_chosen, *[args[n] for n in nums], has_aux=has_aux)

    def backward(residuals: Any, ct: Any) -> Any:
        cts = residuals(ct)
        return cts[0] if single else cts

    forward = named_after(fun, forward, "fwd")
    backward.__name__ = f"bwd_{forward.__name__.removeprefix('fwd_')}"
    return (jit(forward), jit(backward)) if jitted else (forward, backward)
