"""Reductions of lax by any associative function: of whole axes, and of windows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control import monoid
from morphax.lax.arguments import numbers
from morphax.lax.arguments import operand as _operand
from morphax.lax.convolution import Padding, ints, padtype_to_pads, pairs
from morphax.ops import window
from morphax.ops.convolution import dilated
from morphax.ops.family import typeof
from morphax.runtime import array
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import as_array

Computation = Callable[[Any, Any], Any]


def _start(name: str, operand: Any, init: Any) -> Any:
    """An initial value in the dtype of its operand; a host scalar where the value is known."""
    if init.__class__ is array.ArrayImpl and not init.shape:
        init = np.asarray(init)[()]
    elif isinstance(init, np.ndarray) and not init.shape:
        init = init[()]
    dtype = typeof(operand).dtype
    if isinstance(init, np.generic) and dtypes.kind(init.dtype) == dtypes.kind(dtype):
        return np.asarray(init).astype(dtype)[()]
    found = numbers(name, (operand, init))[1]
    if typeof(found).shape:
        raise TypeError(f"{name}: initial values must be scalars; one has shape {typeof(found).shape}.")
    return found


class _Reduction:
    """Flat operands, initial values, and the computation as a jaxpr with what it closes over."""

    def __init__(self, name: str, operands: Any, init_values: Any, computation: Computation):
        leaves, self.structure = tree.flatten(operands)
        inits, init_structure = tree.flatten(init_values)
        if init_structure != self.structure or not leaves:
            raise ValueError(
                f"{name}: operands and initial values must have the same structure, with at least one leaf; they have "
                f"{self.structure} and {init_structure}."
            )
        self.operands = [_operand(name, x) for x in leaves]
        self.inits = [_start(name, x, init) for x, init in zip(self.operands, inits, strict=True)]

        def flat(xs: list[Any], ys: list[Any]) -> list[Any]:
            out = computation(tree.unflatten(self.structure, xs), tree.unflatten(self.structure, ys))
            results, out_structure = tree.flatten(out)
            if out_structure != self.structure:
                raise TypeError(
                    f"{name}: the computation returns the structure {out_structure}; it must return that of the "
                    f"operands, {self.structure}."
                )
            return [as_array(r) for r in results]

        self.jaxpr, self.consts = monoid.staged(flat, [typeof(x) for x in self.operands])

    def known(self, table: dict[Any, Any]) -> Any:
        """The operation of `table` that this is, or None."""
        return monoid.recognised(self.jaxpr, self.inits[0], table) if len(self.operands) == 1 else None

    def finish(self, outs: Sequence[Any]) -> Any:
        """Results in the structure of the operands."""
        return tree.unflatten(self.structure, list(outs))


@api_boundary
def reduce(
    operands: Any, init_values: Any, computation: Computation, dimensions: Sequence[int], out_sharding: Any = None
) -> Any:
    """Reduction of arrays over `dimensions` by an associative function.

    Args:
        operands: array, or pytree of arrays of one shape that are reduced together.
        init_values: scalars, in the same structure: the identity of `computation`.
        computation: (a, b) -> c on pytrees of scalars, associative and commutative.
        dimensions: static ints, at least 0, none twice.
        out_sharding: None.

    Returns:
        Arrays without `dimensions`, in the structure of the operands.

    Raises:
        TypeError, ValueError: structures, shapes or dtypes that differ.

    Derivative: that of the computation, in both modes.

    >>> from morphax import numpy as jnp
    >>> print(reduce(jnp.array([[1, 2], [3, 4]]), 0, lambda a, b: a + b, (0,)))
    [4 6]
    """
    if out_sharding is not None:
        raise NotImplementedError("reduce: out_sharding is not supported yet. Use device_put on the result.")
    made = _Reduction("reduce", operands, init_values, computation)
    axes = ints("reduce", "dimensions", dimensions)
    known = made.known(monoid.REDUCTIONS)
    if known is not None:
        return made.finish([known(made.operands[0], axes=axes)])
    if made.consts:
        monoid.check_reduce(made.operands, axes)
        combine = monoid.on_arrays(made.jaxpr, made.consts)
        return made.finish(monoid.folded(combine, made.operands, made.inits, axes))
    return made.finish(monoid.reduce(*made.operands, *made.inits, dimensions=axes, jaxpr=made.jaxpr))


def _windows(
    name: str,
    shape: tuple[int, ...],
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    base: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> window.Windows:
    ones = (1,) * len(shape)
    sizes = ints(name, "window_dimensions", sizes)
    steps = ones if strides is None else ints(name, "window_strides", strides)
    holes = ones if base is None else ints(name, "base_dilation", base)
    gaps = ones if dilation is None else ints(name, "window_dilation", dilation)
    if isinstance(padding, str):
        nothing = ((0, 0),) * len(shape)
        window.check_windows(name, shape, window.Windows(sizes, steps, nothing, holes, gaps))
        whole = [dilated(n, h) for n, h in zip(shape, holes, strict=True)]
        spans = [dilated(k, g) for k, g in zip(sizes, gaps, strict=True)]
        padding = padtype_to_pads(whole, spans, steps, padding)
    return window.Windows(sizes, steps, pairs(name, padding, len(shape)), holes, gaps)


@api_boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduction of every window of an array by an associative function, as in pooling.

    Args:
        operand: array, or pytree of arrays of one shape that are reduced together.
        init_value: scalars, in the same structure: the identity of `computation`, and what padding holds.
        computation: (a, b) -> c on pytrees of scalars, associative and commutative.
        window_dimensions: sizes of the window, one for each axis.
        window_strides: int for each axis: how far the window moves; None for 1.
        padding: "SAME", "SAME_LOWER", "VALID" (see `padtype_to_pads`) or (low, high) for each axis.
        base_dilation: int for each axis: d - 1 initial values go between neighbours; None for 1.
        window_dilation: int for each axis: d - 1 entries are left out between neighbours in a window; None for 1.

    Derivative: of sums, sums; of extremes, that of the first of equal ones; of others, that of the computation.

    >>> from morphax import lax, numpy as jnp
    >>> print(reduce_window(jnp.array([1, 5, 2, 3]), 0, lax.max, (2,), (2,)))
    [5 3]
    """
    made = _Reduction("reduce_window", operand, init_value, computation)
    shape = typeof(made.operands[0]).shape
    given = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    windows = _windows("reduce_window", shape, *given)
    known = made.known(monoid.WINDOWS)
    if known is not None:
        return made.finish([known(made.operands[0], **windows.params())])
    if made.consts:
        window.check_windows("reduce_window", shape, windows)
        combine = monoid.on_arrays(made.jaxpr, made.consts)
        return made.finish(monoid.folded_windows(combine, made.operands, made.inits, windows))
    return made.finish(monoid.reduce_window(*made.operands, *made.inits, jaxpr=made.jaxpr, **windows.params()))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """How many windows there are along each axis.

    >>> reduce_window_shape_tuple((8, 8), (2, 2), (2, 2), ((0, 0), (0, 1)))
    (4, 4)
    """
    name = "reduce_window_shape_tuple"
    shape = ints(name, "operand_shape", operand_shape)
    windows = _windows(name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    window.check_windows(name, shape, windows)
    return windows.places(shape)


reduce_p = monoid.reduce
reduce_window_p = monoid.reduce_window
reduce_window_max_p = window.reduce_window_max
reduce_window_min_p = window.reduce_window_min
reduce_window_sum_p = window.reduce_window_sum
select_and_gather_add_p = window.select_and_gather_add
select_and_scatter_add_p = window.select_and_scatter_add

__all__ = [
    "reduce",
    "reduce_p",
    "reduce_window",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_shape_tuple",
    "reduce_window_sum_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
]
