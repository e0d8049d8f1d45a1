"""Reductions, positions of extremes and cumulative operations of lax."""

import operator as python
from collections.abc import Callable, Sequence
from typing import Any

from morphax.ir.primitive import Primitive
from morphax.lax.arguments import operand as _operand
from morphax.ops import reduce
from morphax.support import dtypes

# ---- reductions ------------------------------------------------------------------------------------------------------


def _axes(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([python.index(a) for a in axes])


def _reduction(name: str, prim: Primitive, what: str, takes: str, example: tuple[str, str]) -> Callable[..., Any]:
    def fun(operand: Any, axes: Sequence[int]) -> Any:
        return prim(_operand(name, operand), axes=_axes(axes))

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = (
        f"{what} over `axes`, which the result does not have.\n\n"
        f"Args:\n    operand: array of {takes}.\n    axes: static ints, at least 0, none twice.\n\n"
        ">>> from morphax import numpy as jnp\n"
        f">>> print({name}(jnp.array({example[0]}), (0,)))\n{example[1]}\n"
    )
    return fun


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """Sum over `axes`, which the result does not have.

    Args:
        operand: array of numbers.
        axes: static ints, at least 0, none twice.
        out_sharding: None.

    >>> from morphax import numpy as jnp
    >>> print(reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,)))
    [4 6]
    """
    if out_sharding is not None:
        raise NotImplementedError("reduce_sum: out_sharding is not supported yet. Use device_put on the result.")
    return reduce.reduce_sum(_operand("reduce_sum", operand), axes=_axes(axes))


reduce_prod = _reduction("reduce_prod", reduce.reduce_prod, "Product", "numbers", ("[2, 3, 4]", "24"))
reduce_max = _reduction(
    "reduce_max", reduce.reduce_max, "Maximum, NaN where there is one,", "numbers or bools", ("[2, 4, 3]", "4")
)
reduce_min = _reduction(
    "reduce_min", reduce.reduce_min, "Minimum, NaN where there is one,", "numbers or bools", ("[2, 4, 3]", "2")
)
reduce_and = _reduction("reduce_and", reduce.reduce_and, "Bitwise and", "integers or bools", ("[7, 3]", "3"))
reduce_or = _reduction("reduce_or", reduce.reduce_or, "Bitwise or", "integers or bools", ("[4, 1]", "5"))
reduce_xor = _reduction("reduce_xor", reduce.reduce_xor, "Bitwise exclusive or", "integers or bools", ("[7, 3]", "4"))


# ---- positions of extremes -------------------------------------------------------------------------------------------


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Position of the maximum along `axis`: of equal ones, or of several NaNs, the first.

    Args:
        operand: array of real numbers or bools.
        axis: static int, at least 0; the axis must not be empty.
        index_dtype: integer dtype of the result.

    >>> from morphax import numpy as jnp
    >>> print(argmax(jnp.array([2.0, 5.0, 5.0]), 0, "int32"))
    1
    """
    axes = (python.index(axis),)
    return reduce.argmax(_operand("argmax", operand), axes=axes, index_dtype=dtypes.named_dtype(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Position of the minimum along `axis`: of equal ones, or of several NaNs, the first.

    Args:
        operand: array of real numbers or bools.
        axis: static int, at least 0; the axis must not be empty.
        index_dtype: integer dtype of the result.

    >>> from morphax import numpy as jnp
    >>> print(argmin(jnp.array([2.0, 1.0, jnp.nan]), 0, "int32"))
    2
    """
    axes = (python.index(axis),)
    return reduce.argmin(_operand("argmin", operand), axes=axes, index_dtype=dtypes.named_dtype(index_dtype))


# ---- cumulative operations -------------------------------------------------------------------------------------------


def _cumulative(name: str, prim: Primitive, what: str, takes: str, example: tuple[str, str]) -> Callable[..., Any]:
    def fun(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        return prim(_operand(name, operand), axis=python.index(axis), reverse=bool(reverse))

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = (
        f"{what} of all entries up to each one along `axis`, or from it on with `reverse`.\n\n"
        f"Args:\n    operand: array of {takes}.\n    axis: static int, at least 0.\n"
        f"    reverse: accumulate from the end.\n\n"
        ">>> from morphax import numpy as jnp\n"
        f">>> print({name}(jnp.array({example[0]})))\n{example[1]}\n"
    )
    return fun


cumsum = _cumulative("cumsum", reduce.cumsum, "Sum", "numbers", ("[1, 2, 3]", "[1 3 6]"))
cumprod = _cumulative("cumprod", reduce.cumprod, "Product", "numbers", ("[1, 2, 3]", "[1 2 6]"))
cummax = _cumulative("cummax", reduce.cummax, "Maximum", "numbers", ("[1, 3, 2]", "[1 3 3]"))
cummin = _cumulative("cummin", reduce.cummin, "Minimum", "numbers", ("[2, 3, 1]", "[2 2 1]"))
cumlogsumexp = _cumulative(
    "cumlogsumexp", reduce.cumlogsumexp, "Logarithm of the sum of the exponentials", "floats",
    ("[-jnp.inf, 0.0]", "[-inf   0.]"),
)  # fmt: skip

argmax_p = reduce.argmax
argmin_p = reduce.argmin
cumlogsumexp_p = reduce.cumlogsumexp
cummax_p = reduce.cummax
cummin_p = reduce.cummin
cumprod_p = reduce.cumprod
cumsum_p = reduce.cumsum
reduce_and_p = reduce.reduce_and
reduce_max_p = reduce.reduce_max
reduce_min_p = reduce.reduce_min
reduce_or_p = reduce.reduce_or
reduce_prod_p = reduce.reduce_prod
reduce_sum_p = reduce.reduce_sum
reduce_xor_p = reduce.reduce_xor
