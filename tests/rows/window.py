"""Rows of the reductions of windows, and of their derivatives."""

import itertools

import numpy as np
from convolutions import reduce_windows, windows
from samples import FLOATS, INTEGERS, Sample, zeros

from morphax.ops import elementwise as ew
from morphax.ops import reduce
from morphax.ops import window as wd


def _params(sizes, strides, padding, base=None, dilation=None):
    ones = (1,) * len(sizes)
    return wd.Windows(sizes, strides, padding, base or ones, dilation or ones).params()


PLAIN = _params((2, 3), (1, 1), ((0, 0), (0, 0)))
PAIRS = _params((2, 2), (2, 2), ((0, 1), (1, 0)))
WIDE = _params((1, 3, 4), (1, 2, 1), ((0, 0), (1, 1), (2, 0)))
HOLES = _params((2, 3), (2, 1), ((1, 0), (-1, 3)), (2, 3), (3, 2))
FULL = _params((3, 3), (2, 1), ((1, 0), (-1, 2)), (2, 3), (1, 2))  # holes, but no window of nothing else
SHAPES = (((4, 5),), ((0, 5),), ((1, 3),))
CASES = (
    ("", PLAIN, [((4, 5),), ((0, 5),), ((1, 4),)]),
    (": pairs", PAIRS, SHAPES),
    (": three axes", WIDE, [((2, 5, 4),)]),
    (": holes", HOLES, [((4, 5),)]),
)


def _numpy(fold, identity, params):
    given = [params[name] for name in ("window_dimensions", "window_strides", "padding", "base_dilation")]

    def reference(x):
        fill = identity(x.dtype)
        return reduce_windows(x, lambda w: fold(w, -1), fill, *given, params["window_dilation"])

    return reference


def _distinct(rng, shape, dtype):
    """Entries without ties."""
    return rng.permutation(int(np.prod(shape))).reshape(shape) - 3


def _rows(name, fold, identity, dtypes, **more):
    prim = getattr(wd, name)
    wrong = [
        (lambda: prim(zeros(3), **PLAIN), TypeError, "window_dimensions (2, 3) has 2 entries"),
        (lambda: prim(zeros(3), **_params((0,), (1,), ((0, 0),))), ValueError, "must be at least 1"),
        (lambda: prim(zeros(3), **_params((1,), (1,), ((-2, -2),))), ValueError, "cuts more off axis 0"),
    ]
    for case, params, shapes in CASES:
        params = FULL if params is HOLES and name != "reduce_window_sum" else params
        reference = _numpy(fold, identity, params)
        yield Sample(
            name + case, lambda x, p=params: prim(x, **p), reference, shapes=shapes, dtypes=dtypes,
            errors=() if case else wrong, **more,
        )  # fmt: skip


def _choose(t, x, params, lower):
    """For each window of `x`: places of the window, and the place of its first extreme."""
    sizes, strides, padding, base, dilation = wd.windows_of(params)
    places = np.arange(x.size).reshape(x.shape)
    fill = np.inf if lower else -np.inf
    seen = windows(_grown(x, base, padding, fill), sizes, strides, dilation)
    where = windows(_grown(places, base, padding, -1), sizes, strides, dilation)
    for at in itertools.product(*map(range, seen.shape[: x.ndim])):
        k = int(seen[at].argmin() if lower else seen[at].argmax())
        yield at, int(where[at].ravel()[k])


def _grown(x, base, padding, fill):
    holes = reduce_windows(np.asarray(x, float), lambda w: w[..., 0], fill, (1,) * x.ndim, (1,) * x.ndim, padding, base)
    return holes.astype(x.dtype) if fill == -1 else holes


def _gather(params, lower=False):
    def reference(t, x):
        shape = wd.windows_of(params).places(x.shape)
        out = np.zeros(shape, t.dtype)
        for at, place in _choose(t, x, params, lower):
            out[at] = t.ravel()[place] if place >= 0 else 0
        return out

    return reference


def _scatter(params, lower=False):
    def reference(source, x):
        out = np.zeros(x.size, source.dtype)
        for at, place in _choose(source, x, params, lower):
            if place >= 0:
                out[place] += source[at]
        return out.reshape(x.shape)

    return reference


def _selected(name, params, select):
    prim = getattr(wd, name)
    if name == "select_and_scatter_add":
        params = {k: v for k, v in params.items() if "dilation" not in k}
    return lambda a, b: prim(a, b, **params, select_prim=select)


NORMAL = lambda rng, shape, dtype: rng.normal(size=shape)  # noqa: E731 - short
CHOICE = {"domain": [NORMAL, _distinct], "dtypes": FLOATS}
SCATTER = "select_and_scatter_add"
GATHER = "select_and_gather_add"

ROWS = (
    *_rows("reduce_window_sum", np.sum, lambda d: 0, (*FLOATS, "complex128", *INTEGERS)),
    *_rows("reduce_window_max", np.max, reduce.lowest, (*FLOATS, *INTEGERS, "bool"), domain=_distinct),
    *_rows("reduce_window_min", np.min, reduce.highest, (*FLOATS, *INTEGERS, "bool"), domain=_distinct),
    Sample(
        "reduce_window_max: ties and NaN", lambda x: wd.reduce_window_max(x, **_params((3,), (1,), ((0, 0),))),
        _numpy(np.max, reduce.lowest, _params((3,), (1,), ((0, 0),))), shapes=[((5,),)], domain=_distinct,
        at=[(([1, 2, 2, 1, 0],), [2, 2, 2], ([0, 2, 1, 0, 0],)), (([1, np.nan, 2, 1, 0],), [np.nan, np.nan, 2])],
    ),
    Sample(
        "reduce_window_sum: no axes", lambda x: wd.reduce_window_sum(x, **_params((), (), ())), lambda x: x,
        shapes=[((),)],
    ),
    Sample(
        GATHER, _selected(GATHER, PAIRS, ew.ge), _gather(PAIRS), shapes=[((4, 5), (4, 5)), ((0, 2), (0, 2))], **CHOICE,
        errors=[
            (lambda: _selected(GATHER, PAIRS, ew.ge)(zeros(4, 4), zeros(4, 5)), TypeError, "they must be equal"),
            (lambda: _selected(GATHER, PAIRS, ew.lt)(zeros(4, 4), zeros(4, 4)), ValueError, "must be ge or le"),
        ],
    ),
    Sample(f"{GATHER}: of the least", _selected(GATHER, WIDE, ew.le), _gather(WIDE, True),
           shapes=[((2, 5, 4), (2, 5, 4))], **CHOICE),
    Sample(f"{GATHER}: holes", _selected(GATHER, HOLES, ew.ge), _gather(HOLES), shapes=[((4, 5), (4, 5))], **CHOICE),
    Sample(
        SCATTER, _selected(SCATTER, PAIRS, ew.ge), _scatter(PAIRS), shapes=[((2, 3), (4, 5)), ((0, 1), (0, 1))],
        **CHOICE,
        errors=[
            (lambda: _selected(SCATTER, PAIRS, ew.ge)(zeros(1), zeros(4, 5)), TypeError, "the source has shape (1,)")
        ],
    ),
    Sample(f"{SCATTER}: of the least", _selected(SCATTER, WIDE, ew.le), _scatter(WIDE, True),
           shapes=[((2, 3, 3), (2, 5, 4))], **CHOICE),
)  # fmt: skip
