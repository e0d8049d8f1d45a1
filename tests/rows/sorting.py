"""Rows of sorting."""

import numpy as np
from samples import COMPLEXES, FLOATS, INTEGERS, Sample, zeros

from morphax.ops import sorting

INF = float("inf")
NAN = float("nan")


def _sort(*operands, num_keys=1):
    return sorting.sort(*operands, dimension=1, is_stable=True, num_keys=num_keys)


def _sorted(*operands, num_keys=1):
    order = np.stack([np.lexsort([k[i] for k in operands[num_keys - 1 :: -1]]) for i in range(len(operands[0]))])
    return [np.take_along_axis(x, order, 1) for x in operands]


def _few(rng, shape, dtype):
    """Many equal entries."""
    return rng.integers(0, 3, shape)


def _distinct(rng, shape, dtype):
    return rng.permutation(int(np.prod(shape))).reshape(shape) - 3


def _top(x):
    return sorting.top_k(x, k=2, axis=0)


def _largest(x):
    order = np.argsort(-x.astype(np.float64), 0, kind="stable")[:2]
    return [np.take_along_axis(x, order, 0), order]


ROWS = (
    Sample(
        "sort",
        _sort,
        lambda x: np.sort(x, 1),
        shapes=[((3, 5),), ((2, 0),), ((2, 1),)],
        dtypes=FLOATS + COMPLEXES + INTEGERS + ("bool",),
        tol=0,
        errors=[
            (lambda: _sort(zeros(2)), ValueError, "axis 1 is out of range"),
            (lambda: _sort(zeros(2, 3), zeros(3, 3)), TypeError, "need one shape"),
            (lambda: _sort(zeros(2, 3), num_keys=2), ValueError, "num_keys is 2 for 1 operands"),
        ],
    ),
    Sample(
        "sort: special values",
        lambda x: sorting.sort(x, dimension=0, is_stable=True, num_keys=1)[0],
        np.sort,
        shapes=[((5,),)],
        at=[(([NAN, 0.0, -0.0, -INF, 1.0, INF],), [-INF, 0.0, -0.0, 1.0, INF, NAN])],
    ),
    Sample("sort: stable", _sort, _sorted, shapes=[((2, 9), (2, 9))], dtypes=(("int32", "float64"),), domain=_few),
    Sample(
        "sort: two keys",
        lambda x, y, z: _sort(x, y, z, num_keys=2),
        lambda x, y, z: _sorted(x, y, z, num_keys=2),
        shapes=[((2, 12), (2, 12), (2, 12))],
        dtypes=(("int32", "uint8", "float64"),),
        domain=[_few, _few, (0, 1)],
    ),
    Sample(
        "top_k",
        _top,
        _largest,
        shapes=[((5, 3),), ((2, 0),)],
        dtypes=FLOATS + INTEGERS,
        domain=_distinct,
        errors=[
            (lambda: _top(zeros(1)), ValueError, "k = 2 must lie between 0 and the size of the axis, 1"),
            (lambda: _top(zeros(3, dtype="complex64")), TypeError, "does not accept dtype complex64"),
        ],
    ),
    Sample(
        "top_k: bools, and the first of equals",
        lambda x: sorting.top_k(x, k=3, axis=0),
        lambda x: _first_true(x),
        shapes=[((6,),)],
        dtypes=("bool",),
    ),
    Sample(
        "top_k: NaN",
        lambda x: sorting.top_k(x, k=3, axis=0)[0],
        None,
        shapes=[((4,),)],
        gaps={"value": "see at"},
        at=[(([1.0, NAN, INF, 0.0],), [NAN, INF, 1.0])],
    ),
    Sample("top_k: none", lambda x: sorting.top_k(x, k=0, axis=1), lambda x: [x[:, :0], x[:, :0]], shapes=[((2, 3),)]),
)


def _first_true(x):
    order = np.argsort(~x, kind="stable")[:3]
    return [x[order], order]
