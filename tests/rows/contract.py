"""Rows of the products that sum over axes."""

import numpy as np
from samples import COMPLEXES, FLOATS, INTEGERS, Sample, zeros

from morphax.ops import contract

MATRICES = (((1,), (0,)), ((), ()))
F32 = np.dtype("float32")


def _dot(numbers, preferred=None, precision=None):
    return lambda x, y: contract.dot(x, y, numbers, precision, preferred)


def _einsum(spec):
    return lambda x, y: np.einsum(spec, x, y)


ROWS = (
    Sample(
        "dot_general",
        _dot(MATRICES),
        _einsum("ij,jk->ik"),
        shapes=[((2, 3), (3, 4)), ((2, 0), (0, 3)), ((0, 2), (2, 3))],
        dtypes=FLOATS + COMPLEXES + INTEGERS + ("bool",),
        tol={"float64": 1e-13, "bfloat16": 0.1},
        errors=[
            (
                lambda: _dot(MATRICES)(zeros(2, 3), zeros(4, 5)),
                TypeError,
                "contracted sizes differ: lhs (2, 3) axis 1 has 3, rhs (4, 5) axis 0 has 4",
            ),
            (lambda: _dot((((0,), ()), ((), ())))(zeros(2), zeros(2)), TypeError, "1 contracted axes of lhs"),
            (lambda: _dot((((), ()), ((0,), (0,))))(zeros(2), zeros(3)), TypeError, "batch sizes differ"),
            (lambda: _dot((((2,), (0,)), ((), ())))(zeros(2), zeros(2)), ValueError, "axis 2 is out of range"),
            (lambda: _dot((((0,), (0,)), ((0,), (0,))))(zeros(2), zeros(2)), ValueError, "an axis twice"),
            (lambda: _dot(MATRICES, np.dtype("int32"))(zeros(2, 3), zeros(3, 4)), TypeError, "cannot hold products"),
        ],
    ),
    Sample(
        "dot_general: batch and several axes",
        _dot((((1, 3), (3, 0)), ((2,), (1,)))),
        _einsum("abcd,dceb->cae"),
        shapes=[((2, 3, 4, 2), (2, 4, 3, 3)), ((2, 3, 0, 2), (2, 0, 3, 3))],
    ),
    Sample(
        "dot_general: batch only", _dot((((), ()), ((1, 0), (0, 1)))), _einsum("ab,ba->ba"), shapes=[((2, 3), (3, 2))]
    ),
    Sample("dot_general: outer", _dot((((), ()), ((), ()))), np.multiply.outer, shapes=[((2,), (3,)), ((), (2,))]),
    Sample("dot_general: inner", _dot((((0,), (0,)), ((), ()))), _einsum("a,a->"), shapes=[((3,), (3,))]),
    Sample(
        "dot_general: wider sums",
        _dot(MATRICES, F32),
        lambda x, y: (x.astype(np.float64) @ y.astype(np.float64)).astype(F32),
        shapes=[((2, 3), (3, 4))],
        dtypes=("bfloat16", "float16", "int8", "bool", ("bfloat16", "float32"), ("int8", "float32")),
    ),
    Sample(
        "dot_general: mixed types",
        _dot(MATRICES),
        _einsum("ij,jk->ik"),
        shapes=[((2, 3), (3, 4))],
        dtypes=(("float32", "float64"), ("float64", "complex128"), ("int32", "float32"), ("bfloat16", "float32")),
        gaps={
            "vjp": "the pairing compares equal types",
            "second": "float32 beside float64",
            "jvp": "float32 beside float64",
        },
    ),
    Sample(
        "dot_general: precision",
        _dot(MATRICES, precision=("high", "highest")),
        _einsum("ij,jk->ik"),
        shapes=[((2, 3), (3, 4))],
    ),
    Sample(
        "dot_general: algorithm",
        _dot(MATRICES, precision=contract.DotAlgorithmPreset.F32_F32_F32),
        _einsum("ij,jk->ik"),
        shapes=[((2, 3), (3, 4))],
        dtypes=("float32",),
    ),
)
