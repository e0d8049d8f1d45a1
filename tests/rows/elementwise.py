"""Rows of the elementwise operations."""

import numpy as np
from samples import COMPLEXES, FLOATS, INTEGERS, Sample, zeros

from morphax.ops import elementwise as ew

ROWS = (
    Sample("sin", ew.sin, np.sin, dtypes=FLOATS + COMPLEXES),
    Sample("log", ew.log, np.log, dtypes=FLOATS, domain=(0.1, 3.0)),
    Sample(
        "add", ew.add, np.add,
        shapes=[((2, 3), (2, 3)), ((), (3,)), ((0, 2), (0, 2))],
        dtypes=FLOATS + COMPLEXES + INTEGERS,
        errors=[(lambda: ew.add(zeros(2), zeros(3)), TypeError, "need equal shapes")],
    ),
)  # fmt: skip
