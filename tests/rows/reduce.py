"""Rows of the reductions, positions of extremes and cumulative operations."""

import numpy as np
from samples import COMPLEXES, FLOATS, INTEGERS, Sample, zeros

from morphax.ops import reduce as rd

NUMBERS = FLOATS + COMPLEXES + INTEGERS
REALS = FLOATS + INTEGERS
BITS = INTEGERS + ("bool",)
SHAPES = (((2, 3, 4),), ((2, 0, 3),), ((1, 1, 2),))
I32 = np.dtype("int32")


def _fold(ufunc, identity=None):
    """NumPy's reduction over the axes 0 and 2, in the operand's dtype."""

    def reference(x):
        start = {} if identity is None else {"initial": identity(x.dtype)}
        return ufunc.reduce(x, axis=(0, 2), dtype=x.dtype, **start)

    return reference


def _over(prim):
    return lambda x: prim(x, axes=(0, 2))


def _axes_errors(prim):
    return [
        (lambda: prim(zeros(2), axes=(1,)), ValueError, "axis 1 is out of range"),
        (lambda: prim(zeros(2), axes=(-1,)), ValueError, "axis -1 is out of range"),
        (lambda: prim(zeros(2), axes=(0, 0)), ValueError, "an axis twice"),
    ]


def _position(prim, reference):
    return {
        "fun": lambda x: prim(x, axes=(1,), index_dtype=I32),
        "reference": lambda x: reference(x, 1),
        "shapes": [((2, 3),), ((0, 3),), ((2, 5, 2),)],
        "dtypes": (*REALS, "bool"),
        "errors": [
            (lambda: prim(zeros(2, 0), axes=(1,), index_dtype=I32), ValueError, "is empty"),
            (lambda: prim(zeros(2, 2), axes=(0, 1), index_dtype=I32), ValueError, "one axis"),
            (lambda: prim(zeros(2), axes=(0,), index_dtype=np.dtype("float32")), TypeError, "integer type"),
            (lambda: prim(zeros(2, dtype="complex64"), axes=(0,), index_dtype=I32), TypeError, "does not accept"),
        ],
    }


def _accumulated(ufunc, reverse):
    def reference(x):
        x = np.flip(x, 1) if reverse else x
        out = ufunc.accumulate(x, 1, dtype=x.dtype)
        return np.flip(out, 1) if reverse else out

    return reference


def _cumulative(name, ufunc, dtypes, **more):
    prim = getattr(rd, name)
    shapes = [((2, 5),), ((3, 0),), ((1, 1, 2),), ((0, 2),)]
    wrong = [
        (lambda: prim(zeros(2), axis=1, reverse=False), ValueError, "axis 1 is out of range"),
        (lambda: prim(zeros(2, dtype="bool"), axis=0, reverse=False), TypeError, "does not accept dtype bool"),
    ]
    forward, back = (lambda x, r=r: prim(x, axis=1, reverse=r) for r in (False, True))
    yield Sample(name, forward, _accumulated(ufunc, False), shapes=shapes, dtypes=dtypes, errors=wrong, **more)
    yield Sample(f"{name}: reverse", back, _accumulated(ufunc, True), shapes=shapes, dtypes=dtypes, **more)


def _recurrence(a, b):
    out = np.array(b)
    for i in range(1, a.shape[1]):
        out[:, i] = a[:, i] * out[:, i - 1] + b[:, i]
    return out


def _distinct(rng, shape, dtype):
    """Entries without ties."""
    return rng.permutation(int(np.prod(shape))).reshape(shape) - 3


INF = float("inf")
NAN = float("nan")

ROWS = (
    Sample(
        "reduce_sum",
        _over(rd.reduce_sum),
        _fold(np.add),
        shapes=SHAPES,
        dtypes=NUMBERS,
        errors=[
            *_axes_errors(rd.reduce_sum),
            (lambda: rd.reduce_sum(zeros(2, dtype="bool"), axes=(0,)), TypeError, "does not accept dtype bool"),
        ],
    ),
    Sample(
        "reduce_prod",
        _over(rd.reduce_prod),
        _fold(np.multiply),
        shapes=SHAPES,
        dtypes=NUMBERS,
        domain=(-2, 2),
        errors=_axes_errors(rd.reduce_prod),
    ),
    Sample(
        "reduce_prod: zeros",
        lambda x: rd.reduce_prod(x, axes=(0,)),
        np.prod,
        shapes=[((4,),)],
        at=[(([2, 0, 3, 4],), 0, ([0, 24, 0, 0],)), (([2, 0, 0, 4],), 0, ([0, 0, 0, 0],)), (([],), 1, ([],))],
    ),
    Sample(
        "reduce_max",
        _over(rd.reduce_max),
        _fold(np.maximum, rd.lowest),
        shapes=SHAPES,
        dtypes=(*REALS, "bool"),
        errors=_axes_errors(rd.reduce_max),
    ),
    Sample(
        "reduce_max: ties",
        lambda x: rd.reduce_max(x, axes=(0,)),
        np.max,
        shapes=[((4,),)],
        at=[(([2, 4, 3, 4],), 4, ([0, 0.5, 0, 0.5],)), (([1, NAN, 3],), NAN), (([],), -INF, ([],))],
    ),
    Sample(
        "reduce_max: complex",
        lambda x: rd.reduce_max(x, axes=(1,)),
        lambda x: np.max(x, 1),
        dtypes=COMPLEXES,
        shapes=[((3, 4),)],
    ),
    Sample(
        "reduce_min",
        _over(rd.reduce_min),
        _fold(np.minimum, rd.highest),
        shapes=SHAPES,
        dtypes=(*REALS, "bool"),
        errors=_axes_errors(rd.reduce_min),
    ),
    Sample(
        "reduce_min: ties",
        lambda x: rd.reduce_min(x, axes=(0,)),
        np.min,
        shapes=[((4,),)],
        at=[(([4, 2, 3, 2],), 2, ([0, 0.5, 0, 0.5],))],
    ),
    Sample(
        "reduce_and",
        _over(rd.reduce_and),
        _fold(np.bitwise_and),
        shapes=SHAPES,
        dtypes=BITS,
        errors=[(lambda: rd.reduce_and(zeros(2), axes=(0,)), TypeError, "does not accept dtype float32")],
    ),
    Sample("reduce_or", _over(rd.reduce_or), _fold(np.bitwise_or), shapes=SHAPES, dtypes=BITS),
    Sample("reduce_xor", _over(rd.reduce_xor), _fold(np.bitwise_xor), shapes=SHAPES, dtypes=BITS),
    Sample("argmax", **_position(rd.argmax, np.argmax)),
    Sample("argmin", **_position(rd.argmin, np.argmin)),
    Sample(
        "argmax: ties and NaN",
        lambda x: rd.argmax(x, axes=(0,), index_dtype=I32),
        np.argmax,
        shapes=[((3,),)],
        at=[(([1, 4, 4],), 1), (([1, NAN, 4, NAN],), 1), (([-0.0, 0.0],), 0), (([-INF, -INF],), 0)],
    ),
    Sample(
        "argmin: ties and NaN",
        lambda x: rd.argmin(x, axes=(0,), index_dtype=I32),
        np.argmin,
        shapes=[((3,),)],
        at=[(([4, 1, 1],), 1), (([1, NAN, 4],), 1), (([INF, INF],), 0)],
    ),
    *_cumulative("cumsum", np.add, NUMBERS),
    *_cumulative("cumprod", np.multiply, NUMBERS, domain=(-2, 2)),
    *_cumulative("cummax", np.maximum, REALS, domain=_distinct),
    *_cumulative("cummin", np.minimum, REALS, domain=_distinct),
    *_cumulative("cumlogsumexp", np.logaddexp, FLOATS),
    Sample(
        "cumprod: zeros",
        lambda x: rd.cumprod(x, axis=0, reverse=False),
        np.cumprod,
        shapes=[((4,),)],
        at=[(([2, 0, 3, 4],), [2, 0, 0, 0], ([1, 2 + 6 + 24, 0, 0],))],
    ),
    Sample(
        "cummax: ties and NaN",
        lambda x: rd.cummax(x, axis=0, reverse=False),
        np.maximum.accumulate,
        shapes=[((4,),)],
        at=[(([2, 4, 3, 4],), [2, 4, 4, 4], ([1, 2.5, 0, 0.5],)), (([1, NAN, 3],), [1, NAN, NAN])],
    ),
    Sample(
        "cumlogsumexp: infinities",
        lambda x: rd.cumlogsumexp(x, axis=0, reverse=False),
        np.logaddexp.accumulate,
        shapes=[((4,),)],
        at=[
            (([-INF, -INF, 0, 0],), [-INF, -INF, 0, np.log(2)], ([1, 1, 1.5, 0.5],)),
            (([1000, 1000],), [1000, 1000 + np.log(2)], ([1.5, 0.5],)),
            (([INF, 1],), [INF, INF], ([2, 0],)),
        ],
    ),
    Sample(
        "linear_recurrence",
        lambda a, b: rd.linear_recurrence(a, b, axis=1, reverse=False),
        _recurrence,
        shapes=[((2, 5), (2, 5)), ((2, 0), (2, 0)), ((0, 3), (0, 3)), ((1, 1, 2), (1, 1, 2))],
        dtypes=FLOATS + COMPLEXES,
        errors=[
            (
                lambda: rd.linear_recurrence(zeros(2), zeros(3), axis=0, reverse=False),
                TypeError,
                "the factors have shape (2,) and the terms (3,)",
            )
        ],
    ),
    Sample(
        "linear_recurrence: reverse",
        lambda a, b: rd.linear_recurrence(a, b, axis=1, reverse=True),
        lambda a, b: np.flip(_recurrence(np.flip(a, 1), np.flip(b, 1)), 1),
        shapes=[((2, 5), (2, 5))],
    ),
)
