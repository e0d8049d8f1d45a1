"""Rows of the special functions."""

from typing import Any

import numpy as np
import scipy.special as reference
from samples import FLOATS, Sample, put

from morphax.ops import special
from morphax.transforms import api

# XLA's rational and continued-fraction approximations; they lose some digits where gamma passes 1.
GAMMA = {"float64": 1e-11, "float32": 1e-4}


def orders(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return rng.integers(1, 4, shape)


ROWS = (
    Sample("erf", special.erf, reference.erf, dtypes=FLOATS),
    Sample("erfc", special.erfc, reference.erfc, dtypes=FLOATS, at=[((10.0,), 2.0884875837625446e-45)]),
    Sample("erf_inv", special.erf_inv, reference.erfinv, dtypes=FLOATS, domain=(-0.9, 0.9), tol=1e-11),
    Sample("lgamma", special.lgamma, reference.gammaln, dtypes=FLOATS, domain=(0.3, 4.0), tol=GAMMA),
    Sample("digamma", special.digamma, reference.digamma, dtypes=FLOATS, domain=(0.3, 4.0), tol=GAMMA),
    Sample(
        "polygamma", lambda m, x: special.polygamma(m, x), reference.polygamma, shapes=[((2, 3), (2, 3)), ((), (3,))],
        dtypes=("float32", "float64"), domain=[orders, (1.0, 3.0)], tol=GAMMA,
        errors=[(lambda: api.grad(special.polygamma)(put(1.0), put(2.0)), NotImplementedError, "the order m")],
        gaps={"jvp": "there is no derivative in the order", "vjp": "as jvp", "second": "as jvp"},
    ),
    Sample(
        "polygamma: of order 1", lambda x: special.polygamma(np.float64(1), x), lambda x: reference.polygamma(1, x),
        dtypes=("float64",), domain=(1.0, 3.0), tol=GAMMA,
    ),
    Sample(
        "zeta", lambda x, q: special.zeta(x, q), reference.zeta, shapes=[((2, 3), (2, 3)), ((), (3,))],
        dtypes=("float32", "float64"), domain=[(1.5, 3.0), (1.0, 3.0)], tol=GAMMA,
        errors=[(lambda: api.grad(special.zeta)(put(2.0), put(2.0)), NotImplementedError, "the exponent x")],
        gaps={"jvp": "there is no derivative in the exponent", "vjp": "as jvp", "second": "as jvp"},
    ),
    Sample(
        "zeta: of exponent 2", lambda q: special.zeta(np.float64(2), q), lambda q: reference.zeta(2, q),
        dtypes=("float64",), domain=(1.0, 3.0), tol=GAMMA,
    ),
)  # fmt: skip
