"""Rows of the products with ragged groups."""

import numpy as np
from samples import Sample, zeros

from morphax.ops import ragged


def _params(dot, axis, groups):
    return {
        "ragged_dot_dimension_numbers": ragged.RaggedDotDimensionNumbers(dot, (axis,), groups),
        "precision": None,
        "preferred_element_type": None,
        "group_offset": None,
        "out_sharding": None,
    }


def _sizes(rng, shape, dtype):
    return rng.integers(0, 3, shape)


def _row(name, dot, axis, groups, reference, shapes, errors=(), dtype="int32"):
    params = _params(dot, axis, groups)
    return Sample(
        name, lambda x, y, s: ragged.ragged_dot_general(x, y, s, **params), reference, shapes=[shapes],
        dtypes=[("float32", "float32", dtype), ("float64", "float64", dtype), ("complex64", "complex64", dtype)],
        domain=[(-2, 2), (-2, 2), _sizes], errors=errors,
    )  # fmt: skip


def _groups(sizes, total):
    """Which entries belong to each group: shape (groups, total)."""
    ends = np.cumsum(sizes)
    place = np.arange(total)
    return [(place >= end - n) & (place < end) for n, end in zip(sizes, ends, strict=True)]


def _rows(x, w, sizes):
    """(m, k), (g, k, n) -> (m, n)"""
    return sum(np.where(mask[:, None], x @ w[g], 0) for g, mask in enumerate(_groups(sizes, len(x))))


def _inner(x, y, sizes):
    """(k, m), (k, n) -> (g, m, n)"""
    return np.stack([x.T @ np.where(mask[:, None], y, 0) for mask in _groups(sizes, len(x))])


def _mixed(x, w, sizes):
    """(k, b, m), (n, g, k, b), (b, g) -> (b, m, n)"""
    each = zip(np.moveaxis(x, 1, 0), np.moveaxis(w, 3, 0), np.broadcast_to(sizes, (x.shape[1], sizes.shape[-1])))
    return np.stack([_rows(a.T, np.transpose(b, (1, 2, 0)), s) for a, b, s in each])


def _mixed_inner(x, y, sizes):
    """(k, b, m, j), (b, n, j, k), (b, j, g), k ragged -> (g, b, m, n)"""
    out = np.zeros((sizes.shape[-1], x.shape[1], x.shape[2], y.shape[1]), x.dtype)
    for b in range(x.shape[1]):
        for j in range(x.shape[3]):
            out[:, b] += _inner(x[:, b, :, j], y[b, :, j].T, sizes[b, j])
    return out


def _wrong(rhs, sizes, contracted=1, groups=(0,), dtype="int32"):
    params = _params((((1,), (contracted,)), ((), ())), 0, groups)
    return lambda: ragged.ragged_dot_general(zeros(4, 5), zeros(*rhs), zeros(*sizes, dtype=dtype), **params)


ERRORS = [
    (_wrong((2, 5, 7), (3,)), TypeError, "axis 0 has 2 groups"),
    (_wrong((2, 5, 7), (2,), dtype="float32"), TypeError, "must be integers"),
    (_wrong((2, 5, 7), (4, 2)), TypeError, "must have shape"),
    (_wrong((5, 7), (2,), 0, ()), TypeError, "must name one axis"),
    (_wrong((2, 5, 7), (2,), 0), TypeError, "neither contracted"),
]

ROWS = (
    _row(
        "ragged_dot_general", (((1,), (1,)), ((), ())), 0, (0,), _rows, ((5, 2), (3, 2, 4), (3,)),
        ERRORS,
    ),
    _row("ragged_dot_general: contracted", (((0,), (0,)), ((), ())), 0, (), _inner, ((5, 2), (5, 4), (3,))),
    _row("ragged_dot_general: mixed", (((0,), (2,)), ((1,), (3,))), 2, (1,), _mixed, ((2, 3, 5), (4, 2, 2, 3), (3, 2))),
    _row("ragged_dot_general: one for all", (((0,), (2,)), ((1,), (3,))), 2, (1,), _mixed,
         ((2, 3, 5), (4, 2, 2, 3), (2,)), dtype="int64"),
    _row("ragged_dot_general: mixed, contracted", (((3, 0), (2, 3)), ((1,), (0,))), 0, (), _mixed_inner,
         ((5, 2, 3, 2), (2, 4, 2, 5), (2, 2, 3))),
)  # fmt: skip
