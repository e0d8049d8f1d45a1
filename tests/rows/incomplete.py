"""Rows of the incomplete gamma and beta functions and of the Bessel functions."""

import numpy as np
from samples import FLOATS, Sample, put
from scipy import special as reference

from morphax.ops import bessel, incomplete
from morphax.transforms import api

PAIR = [((2, 3), (2, 3)), ((), (3,))]
KINDS = ("float32", "float64", "bfloat16")
SHAPES = (0.3, 6.0)
INF, NAN = float("inf"), float("nan")
HALF = 0.5


def _slope(a, x):
    """Derivative of P in a, from differences of 1 - Q or P, whichever is smaller. SciPy has none."""
    h = 1e-5
    return (reference.gammainc(a + h, x) - reference.gammainc(a - h, x)) / (2 * h)


def _draw(a, x):
    return -_slope(a, x) / np.exp((a - 1) * np.log(x) - x - reference.gammaln(a))


def _grad(fun, *args):
    return lambda: api.grad(fun)(*[put(x) for x in args])


NO_SHAPE = {"jvp": "no derivative in the shape", "vjp": "as jvp", "second": "as jvp"}
# SciPy's values for the differences are good to 1e-15, which the step makes 1e-10.
BY_DIFFERENCES = {"float64": 1e-8, "float32": 1e-5}

ROWS = (
    Sample(
        "igamma", incomplete.igamma, reference.gammainc, shapes=PAIR, dtypes=KINDS, domain=SHAPES, tol=1e-13,
        at=[
            ((1.0, 1.0), 0.6321205588285577), ((0.5, 0.0), 0.0), ((2.0, INF), 1.0), ((0.0, 1.0), 1.0),
            ((-1.0, 1.0), NAN),
            ((1.0, -1.0), NAN), ((INF, 1.0), 0.0), ((0.0, 0.0), NAN), ((1.0, 0.0), 0.0, (0.0, 1.0)),
        ],
        gaps={"second": "no second derivative in the shape"},
    ),
    Sample(
        "igamma: of x", lambda x: incomplete.igamma(np.float64(2.5), x), lambda x: reference.gammainc(2.5, x),
        dtypes=("float64",), domain=SHAPES,
    ),
    Sample(
        "igammac", incomplete.igammac, reference.gammaincc, shapes=PAIR, dtypes=KINDS, domain=SHAPES, tol=1e-13,
        at=[
            ((1.0, 1.0), 0.36787944117144233), ((0.5, 0.0), 1.0), ((2.0, INF), 0.0), ((0.0, 1.0), 0.0),
            ((INF, 1.0), 1.0), ((1.0, -1.0), NAN),
        ],
        gaps={"second": "no second derivative in the shape"},
    ),
    Sample(
        "igamma_grad_a", incomplete.igamma_grad_a, _slope, shapes=PAIR, dtypes=("float32", "float64"), domain=SHAPES,
        tol=BY_DIFFERENCES, at=[((2.0, 0.0), 0.0), ((2.0, INF), 0.0), ((-1.0, 1.0), NAN)], gaps=NO_SHAPE,
        errors=[(_grad(incomplete.igamma_grad_a, 1.0, 2.0), NotImplementedError, "the shape a")],
    ),
    Sample(
        "igamma_grad_a: of x", lambda x: incomplete.igamma_grad_a(np.float64(2.5), x), lambda x: _slope(2.5, x),
        dtypes=("float64",), domain=SHAPES, tol=1e-8,
    ),
    Sample(
        "random_gamma_grad", incomplete.random_gamma_grad, _draw, shapes=PAIR, dtypes=("float32", "float64"),
        domain=SHAPES, tol=BY_DIFFERENCES, at=[((2.0, 0.0), 0.0)], gaps=NO_SHAPE,
        errors=[(_grad(incomplete.random_gamma_grad, 1.0, 2.0), NotImplementedError, "the shape a")],
    ),
    Sample(
        "regularized_incomplete_beta", incomplete.regularized_incomplete_beta, reference.betainc,
        shapes=[((2, 3), (2, 3), (2, 3)), ((), (), (3,))], dtypes=KINDS, domain=[SHAPES, SHAPES, (0.0, 1.0)], tol=1e-13,
        at=[
            ((1.0, 1.0, 0.25), 0.25), ((2.0, 3.0, 0.0), 0.0), ((2.0, 3.0, 1.0), 1.0), ((2.0, 3.0, 1.5), NAN),
            ((-2.0, 3.0, 0.5), NAN), ((0.0, 3.0, 0.5), 1.0), ((3.0, 0.0, 0.5), 0.0),
        ],
        errors=[(_grad(incomplete.regularized_incomplete_beta, 1.0, 1.0, 0.5), NotImplementedError, "respect to a")],
        gaps=NO_SHAPE,
    ),
    Sample(
        "regularized_incomplete_beta: of x",
        lambda x: incomplete.regularized_incomplete_beta(np.float64(2.5), np.float64(1.5), x),
        lambda x: reference.betainc(2.5, 1.5, x), dtypes=("float64",), domain=(0.1, 0.9),
    ),
    Sample(
        "bessel_i0e", bessel.bessel_i0e, reference.i0e, shapes=[((5,),), ((),)], dtypes=FLOATS, domain=(-20.0, 20.0),
        tol=1e-14, at=[((0.0,), 1.0, (0.0,)), ((INF,), 0.0), ((NAN,), NAN)],
    ),
    Sample(
        "bessel_i1e", bessel.bessel_i1e, reference.i1e, shapes=[((5,),), ((),)], dtypes=FLOATS, domain=(-20.0, 20.0),
        tol=1e-14, at=[((0.0,), 0.0, (HALF,)), ((-INF,), 0.0), ((1e-300,), 5e-301)],
    ),
)  # fmt: skip
