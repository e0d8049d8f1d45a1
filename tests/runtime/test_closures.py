"""Compiled functions that close over arrays: the arrays are hidden arguments of the program."""

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ops import elementwise as ew
from morphax.runtime import array, backend
from morphax.runtime.jit import jit


def ones(size: int) -> array.Array:
    aval = ShapedArray((size,), np.dtype("float32"))
    return array.put(np.ones(size, np.float32), aval, backend.default_device(), committed=False)


def test_repeated_calls_get_their_constants() -> None:
    for size in range(1, 9):
        held = ones(size)
        fun = jit(lambda unused, x: ew.add(x, held))
        for _ in range(3):
            assert np.asarray(fun(ones(2), ones(size))).tolist() == [2.0] * size
