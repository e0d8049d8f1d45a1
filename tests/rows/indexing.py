"""Rows of dynamic slices, gathers and scatters."""

import numpy as np
import windows
from samples import COMPLEXES, FLOATS, INTEGERS, Sample, put, zeros

from morphax.ops import elementwise as ew
from morphax.ops import indexing as ix
from morphax.ops.indexing import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

EVERY = FLOATS + COMPLEXES + INTEGERS + ("bool",)
MODES = {"clip": GatherScatterMode.CLIP, "fill": GatherScatterMode.FILL_OR_DROP}

# Index maps: (name, dimension numbers, shape of the operand, of the indices, of the slices, sizes of a slice)
MAPS = (
    ("rows", ((1,), (0,), (0,)), (4, 3), (5, 1), (5, 3), (1, 3)),
    ("points", ((), (0, 1), (1, 0)), (4, 3), (2, 3, 2), (2, 3), (1, 1)),
    ("windows", ((0, 2), (), (1,)), (4, 3), (3, 1), (2, 3, 2), (2, 2)),
    ("in step", ((1,), (1,), (1,), (0,), (0,)), (3, 4, 2), (3, 2, 1), (3, 2, 2), (1, 1, 2)),
    ("one", ((0,), (), (0,)), (6,), (1,), (2,), (2,)),
)


def _near(rng, shape, dtype):
    """Indices, some of them outside."""
    return rng.integers(-1, 5, shape) if dtype.kind == "i" else rng.integers(0, 5, shape)


def _started(starts, sizes, shape):
    """Where a dynamic slice lies."""
    low = [min(max(int(i), 0), n - s) for i, s, n in zip(starts, sizes, shape, strict=True)]
    return tuple([slice(a, a + s) for a, s in zip(low, sizes, strict=True)])


def _dynamic(x, i, j):
    return ix.dynamic_slice(x, i, j, slice_sizes=(2, 2))


def _updated(x, update, i, j):
    out = np.array(x)
    out[_started((i, j), update.shape, x.shape)] = update
    return out


def _gather(numbers, sizes, mode):
    return lambda x, i: ix.gather(
        x, i, dimension_numbers=GatherDimensionNumbers(*numbers), slice_sizes=sizes, mode=MODES[mode], fill_value=7
    )


def _gathers():
    for name, numbers, shape, index_shape, _, sizes in MAPS:
        for mode in MODES:
            yield Sample(
                f"gather: {name}, {mode}",
                _gather(numbers, sizes, mode),
                lambda x, i, n=numbers, s=sizes, m=mode: windows.gather(x, i, n, s, m, 7),
                shapes=[(shape, index_shape)],
                dtypes=[(d, "int32") for d in EVERY]
                if name == "rows"
                else [("float32", "int8"), ("float64", "uint32")],
                domain=[None, _near],
            )


def _scatter(function, numbers, mode, unique=False):
    return lambda x, i, u: function(
        x, i, u, dimension_numbers=ScatterDimensionNumbers(*numbers), mode=MODES[mode], unique_indices=unique
    )


COMBINERS = {
    "scatter": (ix.scatter, lambda old, new: new, EVERY),
    "scatter-add": (ix.scatter_add, lambda old, new: old + new, EVERY[:-1]),
    "scatter-sub": (ix.scatter_sub, lambda old, new: old - new, EVERY[:-1]),
    "scatter-mul": (ix.scatter_mul, lambda old, new: old * new, EVERY[:-1]),
    "scatter-min": (ix.scatter_min, min, FLOATS + INTEGERS),
    "scatter-max": (ix.scatter_max, max, FLOATS + INTEGERS),
}


def _scatters():
    for prim, (function, combine, dtypes) in COMBINERS.items():
        for name, numbers, shape, index_shape, update_shape, sizes in MAPS:
            gaps = {}
            if prim == "scatter-mul":
                gaps = dict.fromkeys(("jvp", "vjp", "second"), "updates meet: see the row with unique indices")
            for mode in MODES:
                yield Sample(
                    f"{prim}: {name}, {mode}",
                    _scatter(function, numbers, mode),
                    lambda x, i, u, n=numbers, s=sizes, c=combine, m=mode: windows.scatter(x, i, u, n, s, c, m),
                    shapes=[(shape, index_shape, update_shape)],
                    dtypes=[(d, "int32", d) for d in dtypes] if name == "rows" else [("float64", "int32", "float64")],
                    domain=[None, _near, None],
                    tol={"float64": 1e-13, "float16": 0.05, "bfloat16": 0.2},
                    gaps=gaps,
                )


POINTS = ((), (0,), (0,))
META = [[2], [2], [0]]


def _meeting(function):
    """Points 2, 2 and 0 of the operand."""
    scatter = _scatter(function, POINTS, "fill")
    return lambda x, u: scatter(x, put(np.int32(META)), u)


def _apart(rng, shape, dtype):
    return rng.permutation(shape[0]).reshape(shape)


def _missing(rng, shape, dtype):
    return np.array([[1], [6]])


ROWS = (
    Sample(
        "dynamic_slice",
        _dynamic,
        lambda x, i, j: x[_started((i, j), (2, 2), x.shape)],
        shapes=[((4, 3), (), ()), ((2, 2), (), ())],
        dtypes=[(d, "int32", "int32") for d in EVERY] + [("float32", "int64", "int64"), ("float32", "uint8", "uint8")],
        domain=[None, (0, 5), _near],
        errors=[
            (
                lambda: _dynamic(zeros(1, 3), put(0, "int32"), put(0, "int32")),
                TypeError,
                "does not fit in shape (1, 3)",
            ),
            (lambda: _dynamic(zeros(3), put(0, "int32"), put(0, "int32")), TypeError, "needs 1 start indices"),
            (lambda: _dynamic(zeros(3, 3), put(0, "int32"), put(0, "int8")), TypeError, "integer scalars of one dtype"),
            (lambda: _dynamic(zeros(3, 3), put(0.0), put(0.0)), TypeError, "integer scalars of one dtype"),
        ],
    ),
    Sample(
        "dynamic_slice: a whole axis",
        lambda x, i, j: ix.dynamic_slice(x, i, j, slice_sizes=(2, 3)),
        lambda x, i, j: x[_started((i, j), (2, 3), x.shape)],
        shapes=[((4, 3), (), ())],
        dtypes=[("float64", "int32", "int32")],
        domain=[None, _near, _near],
    ),
    Sample(
        "dynamic_update_slice",
        ix.dynamic_update_slice,
        _updated,
        shapes=[((4, 3), (2, 2), (), ()), ((4, 3), (2, 3), (), ()), ((4, 3), (0, 1), (), ())],
        dtypes=[(d, d, "int32", "int32") for d in EVERY],
        domain=[None, None, _near, (0, 5)],
        errors=[
            (
                lambda: ix.dynamic_update_slice(zeros(3), zeros(4), put(0, "int32")),
                TypeError,
                "does not fit in shape (3,)",
            ),
            (lambda: ix.dynamic_update_slice(zeros(3), zeros(1, 1), put(0, "int32")), TypeError, "same number of axes"),
            (lambda: ix.dynamic_update_slice(zeros(3), zeros(1, dtype="int32"), put(0, "int32")), TypeError, "dtypes"),
        ],
    ),
    *_gathers(),
    Sample(
        "gather: errors",
        _gather(((1,), (0,), (0,)), (1, 3), "fill"),
        lambda x, i: x[i[:, 0]],
        shapes=[((4, 3), (2, 1)), ((4, 3), (0, 1))],
        dtypes=[("float32", "int32")],
        domain=[None, (0, 3)],
        errors=[
            (
                lambda: _gather(((1,), (0,), (0,)), (1, 3), "fill")(zeros(4, 3), zeros(2, 1)),
                TypeError,
                "integer vectors",
            ),
            (
                lambda: _gather(((1,), (0,), (0,)), (1, 4), "fill")(zeros(4, 3), zeros(2, 1, dtype="int32")),
                TypeError,
                "do not fit in shape (4, 3)",
            ),
            (
                lambda: _gather(((1,), (0,), (0,)), (2, 3), "fill")(zeros(4, 3), zeros(2, 1, dtype="int32")),
                TypeError,
                "must be 1 at the axes (0,)",
            ),
            (
                lambda: _gather(((), (0,), (0,)), (1, 3), "fill")(zeros(4, 3), zeros(2, 1, dtype="int32")),
                TypeError,
                "the window axes () must be as many",
            ),
            (
                lambda: _gather(((1,), (0,), (0,)), (1, 3), "fill")(zeros(4, 3), zeros(2, 2, dtype="int32")),
                TypeError,
                "index vectors have 2 entries",
            ),
            (
                lambda: _gather(((), (), (), (0,), (0,)), (1,), "fill")(zeros(4), zeros(3, 0, dtype="int32")),
                TypeError,
                "run in step",
            ),
        ],
    ),
    Sample(
        "gather: an empty axis",
        _gather(((), (0,), (0,)), (0,), "fill"),
        lambda x, i: np.full(2, 7.0),
        shapes=[((0,), (2, 1))],
        dtypes=[("float64", "int32")],
    ),
    *(
        Sample(
            f"gather: default fill of {name}",
            lambda x, i: ix.gather(x, i, dimension_numbers=GatherDimensionNumbers(*POINTS), slice_sizes=(1,)),
            lambda x, i, fill=fill: np.array([x[1], fill]),
            shapes=[((3,), (2, 1))],
            dtypes=[(name, "int32")],
            domain=[None, _missing],
            gaps={"jvp": "differences of NaN", "second": "differences of NaN"},
        )
        for name, fill in (("float64", np.nan), ("int8", -128), ("uint8", 255), ("bool", True))
    ),
    *_scatters(),
    Sample(
        "scatter-mul: unique",
        _scatter(ix.scatter_mul, POINTS, "fill", unique=True),
        lambda x, i, u: windows.scatter(x, i, u, POINTS, (1,), lambda a, b: a * b),
        shapes=[((4,), (4, 1), (4,))],
        dtypes=[("float64", "int32", "float64")],
        domain=[None, _apart, None],
    ),
    Sample(
        "scatter: unique",
        _scatter(ix.scatter, POINTS, "fill", unique=True),
        lambda x, i, u: windows.scatter(x, i, u, POINTS, (1,), lambda a, b: b),
        shapes=[((4,), (4, 1), (4,))],
        dtypes=[("float64", "int32", "float64")],
        domain=[None, _apart, None],
        errors=[
            (
                lambda: _scatter(ix.scatter, POINTS, "fill")(zeros(4), zeros(2, 1, dtype="int32"), zeros(3)),
                TypeError,
                "need updates of shape (2,)",
            )
        ],
    ),
    Sample(
        "scatter: the last one stays",
        _meeting(ix.scatter),
        None,
        shapes=[((3,), (3,))],
        gaps={"value": "see at"},
        at=[(([1, 2, 3], [4, 5, 6]), [6, 2, 5], ([0, 1, 0], [0, 1, 1]))],
    ),
    Sample(
        "scatter-max: ties",
        _meeting(ix.scatter_max),
        None,
        shapes=[((3,), (3,))],
        gaps={"value": "see at"},
        at=[(([1, 2, 3], [3, 3, 0]), [1, 2, 3], ([1, 1, 1 / 3], [1 / 3, 1 / 3, 0]))],
    ),
    Sample(
        "scatter-min: NaN elsewhere",
        _meeting(ix.scatter_min),
        None,
        shapes=[((3,), (3,))],
        gaps={"value": "see at"},
        at=[(([1, float("nan"), 3], [2, 2, 0]), [0, float("nan"), 2], ([0, 1, 0], [0.5, 0.5, 1]))],
    ),
    Sample(
        "scatter: apply",
        lambda x: ix.scatter_apply(
            x,
            put(np.int32([[2], [0]])),
            lambda y: ew.mul(y, y),
            (2,),
            dimension_numbers=ScatterDimensionNumbers(*POINTS),
        ),
        lambda x: x * np.where([True, False, True], x, 1),
        shapes=[((3,),)],
        gaps=dict.fromkeys(("jvp", "vjp", "second", "check"), "there is no derivative"),
    ),
)
