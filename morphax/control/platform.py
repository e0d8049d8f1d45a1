"""What is said to the compiler, or decided by the platform that a program is compiled for."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.control.cond import switch
from morphax.ir import avals
from morphax.ir.primitive import ALL, Primitive
from morphax.ops.structure import batched
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.flat import canonical

# ---- barriers --------------------------------------------------------------------------------------------------------


def _present_barrier(cts: Any, *operands: Any) -> list[Any]:
    found = iter(optimization_barrier_p(*[ct for ct in cts if ct is not None]))
    return [None if ct is None else next(found) for ct in cts]


optimization_barrier_p = Primitive(
    "optimization_barrier",
    type=lambda *operands: operands,
    lower=lambda low, ins, outs, *operands: (
        low.op("stablehlo.optimization_barrier", outs, operands) if operands else []
    ),
    linear=ALL,
    transpose=_present_barrier,
    batch=lambda prim, size, operands, flags, params: prim(
        *[batched(x, f, size) for x, f in zip(operands, flags, strict=True)]
    ),
    multiple=True,
)


def optimization_barrier(operand: Any, /) -> Any:
    """`operand`, a pytree of arrays, behind a line that the compiler moves no computation across.

    >>> from morphax import lax
    >>> float(lax.optimization_barrier(2.0))
    2.0
    """
    leaves, structure = tree.flatten(operand)
    return tree.unflatten(structure, optimization_barrier_p(*map(canonical, leaves)))


# ---- platforms -------------------------------------------------------------------------------------------------------

_ALIASES = {"cuda": "gpu", "rocm": "gpu"}


def _lower_index(low: Any, ins: Any, outs: Any, *, platforms: tuple[tuple[str, ...], ...]) -> list[Any]:
    for k, names in enumerate(platforms):
        if not names or low.platform in names or any(_ALIASES.get(n) == low.platform for n in names):
            return [low.constant(k, outs[0])]
    raise NotImplementedError(
        f"platform_dependent: the program is compiled for {low.platform}, and there is no branch for it among "
        f"{[n for names in platforms for n in names]}. Give a default."
    )


platform_index_p = Primitive(
    "platform_index",
    type=lambda *, platforms: avals.ShapedArray((), np.dtype("int32")),
    lower=_lower_index,
    nondiff="it depends on no value",
    batch=lambda prim, size, operands, flags, params: [prim(**params)],
)


@api_boundary
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The function of the platform that the program is compiled for, applied to `args`.

    Args:
        args: pytrees of arrays.
        default: function for the other platforms.
        per_platform: functions by platform: cpu, cuda, rocm, gpu, tpu. All return the same types.

    Raises:
        ValueError: no function at all.
        NotImplementedError: when compiled, no function for the platform.

    >>> from morphax import lax
    >>> int(lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x))
    4
    """
    names = tuple([(name,) for name in per_platform])
    branches = list(per_platform.values())
    if default is not None:
        names, branches = (*names, ()), [*branches, default]
    if not branches:
        raise ValueError("platform_dependent: no function was given; name at least one platform, or a default.")
    if len(branches) == 1 and default is not None:
        return default(*args)
    index = platform_index_p(platforms=names)
    if len(branches) == 1:  # twice, so that a choice remains, which the other platforms refuse to compile
        branches *= 2
    return switch(index, branches, *args)
