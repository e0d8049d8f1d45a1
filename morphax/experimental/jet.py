"""Taylor-mode differentiation: derivatives of any order along a curve, at a cost that grows with the order's square."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from morphax.control import taylor
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.trace import run_under
from morphax.ops import elementwise as _ew
from morphax.ops import structure as _structure
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import as_array
from morphax.transforms.flat import FlatFun, canonical, check_callable, check_leaf


@api_boundary
def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """The value of `fun` and the derivatives of t -> fun(x(t)) at 0, for a curve x given by its derivatives there.

    Args:
        fun: function of the primals, pytrees of arrays.
        primals: x(0), a sequence of arguments.
        series: for each argument a sequence of the same length n: its derivatives of order 1 to n, each like the
            argument.
        factorial_scaled: series hold derivatives; False for the coefficients of t^k, which are derivatives over k!.

    Returns:
        (output, series of the output): in the place of each leaf a list of its derivatives of order 1 to n.

    Raises:
        ValueError: series of different lengths, or that do not fit the primals.

    >>> from morphax import numpy as jnp
    >>> y, (y1, y2) = jet(lambda x: x**3, (2.0,), ((1.0, 0.0),))
    >>> float(y), float(y1), float(y2)
    (8.0, 12.0, 12.0)
    """
    check_callable("jet", fun)
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals need as many series; there are {len(series)}.")
    orders = {len(s) for s in series}
    if len(orders) > 1:
        raise ValueError(f"jet: series must have equal lengths; they have {[len(s) for s in series]}. Pad with zeros.")
    order = orders.pop() if orders else 0
    leaves, in_tree = tree.flatten((tuple(primals), {}))
    columns = _columns(primals, series, in_tree, order)
    flat = FlatFun(fun, in_tree, "jet")
    trace = taylor.Jet(current.trace, order)
    tracers = []
    for position, leaf in enumerate(leaves):
        terms = [_term(leaf, row[position], k + 1, factorial_scaled) for k, row in enumerate(columns)]
        tracers.append(trace.join(canonical(leaf), terms))
    try:
        outs = run_under(trace, flat, *tracers) if order else flat(*tracers)
    finally:
        trace.done = True
    values, found = [], []
    for out in outs:
        value, terms = trace.split(out)
        values.append(as_array(value))
        zero = _ew.zeros(avals.typeof(values[-1]))
        full = [zero if t is None else t for t in (terms or [None] * order)]
        found.append([as_array(_scaled(t, math.factorial(k + 1), factorial_scaled)) for k, t in enumerate(full)])
    return tree.unflatten(flat.out_tree, values), tree.unflatten(flat.out_tree, found)


def _columns(primals: Sequence[Any], series: Sequence[Any], in_tree: Any, order: int) -> list[list[Any]]:
    """For each order the leaves of that order's terms, in step with those of the primals."""
    columns = []
    for k in range(order):
        row, row_tree = tree.flatten((tuple([s[k] for s in series]), {}))
        if row_tree != in_tree:
            raise ValueError(f"jet: the terms of order {k + 1} must have the structure of the primals.")
        columns.append(row)
    return columns


def _term(leaf: Any, term: Any, k: int, factorial_scaled: bool) -> Any:
    aval = check_leaf("jet", leaf, lambda: "a primal")
    got = check_leaf("jet", term, lambda: f"a term of order {k}")
    if got.shape != aval.shape:
        raise ValueError(f"jet: a term of order {k} has shape {got.shape}, and its primal {aval.shape}.")
    if not dtypes.is_inexact(aval.dtype):
        return None
    term = _structure.convert(as_array(canonical(term)), aval.dtype)
    return _ew.div(term, _ew.like(term, math.factorial(k))) if factorial_scaled and k > 1 else term


def _scaled(term: Any, factor: int, factorial_scaled: bool) -> Any:
    return _ew.mul(term, _ew.like(term, factor)) if factorial_scaled and factor > 1 else term


__all__ = ["jet"]
