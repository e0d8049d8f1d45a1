"""Reductions of segments against NumPy's at-methods."""

import numpy as np
import pytest

import morphax
from morphax.compat import ops

DATA = np.random.RandomState(0).randn(10, 3).astype("f")
IDS = np.array([0, 2, 2, 5, 0, -1, 1, 7, 2, 5], np.int32)
CASES = {"sum": (np.add, 0), "prod": (np.multiply, 1), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}


@pytest.mark.parametrize("bucket_size", [None, 4])
@pytest.mark.parametrize("name", CASES)
def test_segments(name, bucket_size):
    function, start = CASES[name]
    wanted = np.full((6, 3), start, np.float32)
    inside = (IDS >= 0) & (IDS < 6)
    function.at(wanted, IDS[inside], DATA[inside])
    reduction = getattr(ops, f"segment_{name}")
    np.testing.assert_allclose(reduction(DATA, IDS, 6, bucket_size=bucket_size), wanted, rtol=1e-6)
    compiled = morphax.jit(lambda d, i: reduction(d, i, 6, bucket_size=bucket_size))
    np.testing.assert_allclose(compiled(DATA, IDS), wanted, rtol=1e-6)


def test_the_number_of_segments_is_found():
    assert ops.segment_sum(np.arange(5), np.array([0, 0, 1, 1, 2])).tolist() == [1, 5, 4]
    assert ops.segment_max(np.arange(3, dtype=np.int8), np.array([0, 0, 2])).tolist() == [1, -128, 2]
    assert ops.segment_min(np.zeros(0), np.zeros(0, np.int32)).shape == (0,)


def test_segments_have_derivatives():
    slopes = morphax.grad(lambda d: (ops.segment_sum(d, IDS, 6) ** 2).sum())(DATA)
    sums = np.asarray(ops.segment_sum(DATA, IDS, 6))
    inside = (IDS >= 0) & (IDS < 6)
    np.testing.assert_allclose(slopes, np.where(inside[:, None], 2 * sums[np.where(inside, IDS, 0)], 0), rtol=1e-6)


def test_refused():
    with pytest.raises(ValueError, match="negative"):
        ops.segment_sum(DATA, IDS, -1)
