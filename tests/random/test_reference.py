"""Every recorded draw of JAX comes out again: bits and integers exactly, floats to a few units in the last place."""

import json
import pathlib

import jaxlib
import numpy as np
import pytest

from morphax import numpy as jnp
from morphax import random
from morphax.support import config, dtypes

_FILE = pathlib.Path(__file__).parents[1] / "data" / "random_reference.json"
_RECORDS = json.loads(_FILE.read_text())["records"]

# Units in the last place: what passes through logarithms and the like differs with the instructions of the machine.
_EXACT = (
    "bits",
    "uniform",
    "key",
    "PRNGKey",
    "randint",
    "permutation",
    "choice",
    "bernoulli",
    "rademacher",
    "categorical",
)
# The records are of jaxlib 0.10.2; erf_inv of jaxlib 0.12 is up to 9.3 ulp away from its own in double precision.
_ULPS = 8 if jaxlib.__version__.startswith("0.10.") else 12


def _name(record):
    return record["call"].removeprefix("random.").partition("(")[0]


def _named(record):
    mode = ("x64 " if record["x64"] else "") + ("" if record["partitionable"] else "sequential ")
    return f"{mode}{record['seed']} {record['call'].removeprefix('random.')}"


def _expected(record):
    dtype = dtypes.BY_NAME[record["dtype"]]
    values = record["values"]
    if values and isinstance(values[0], str):
        values = [float.fromhex(v) for v in values]
    if dtypes.is_complex(dtype):
        pairs = np.array(values, dtypes.to_real(dtype)).reshape(*record["shape"], 2)
        return (pairs[..., 0] + 1j * pairs[..., 1]).astype(dtype)
    return np.array(values, dtype).reshape(record["shape"])


def _draw(record):
    with config.enable_x64(record["x64"]), config.threefry_partitionable(record["partitionable"]):
        k = random.key(record["seed"]) if "(k" in record["call"] else None
        return eval(record["call"], {"random": random, "jnp": jnp, "np": np, "k": k})


def _ulps(found, expected):
    """Largest difference in units in the last place of the larger of value and one tenth of the largest value."""
    if dtypes.is_complex(expected.dtype):
        return max(_ulps(found.real, expected.real), _ulps(found.imag, expected.imag))
    wide = np.float64
    size = np.maximum(np.abs(expected.astype(wide)), float(dtypes.finfo(expected.dtype).tiny))
    unit = size * float(dtypes.finfo(expected.dtype).eps)
    return float(np.max(np.abs(found.astype(wide) - expected.astype(wide)) / unit, initial=0.0))


@pytest.mark.parametrize("record", _RECORDS, ids=_named)
def test_draws_are_those_of_jax(record):
    if "error" in record:
        if "randint" in record["call"]:
            pytest.skip("bounds beyond the default integer are honoured here: the dtype is named")
        with pytest.raises({"TypeError": TypeError, "OverflowError": OverflowError}[record["error"]]):
            _draw(record)
        return
    found = _draw(record)
    expected = _expected(record)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    found = np.asarray(found)
    if _name(record) in _EXACT or dtypes.kind(expected.dtype) in "bui":
        np.testing.assert_array_equal(found, expected)
    else:
        assert _ulps(found, expected) <= _ULPS, (found, expected)
