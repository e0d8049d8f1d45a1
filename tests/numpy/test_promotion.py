"""Promotion, broadcasting, what is accepted and what is refused."""

import json
import pathlib

import numpy as np
import pytest

from morphax import numpy as jnp
from morphax.runtime.jit import jit
from morphax.support import config, dtypes, errors
from morphax.transforms import api

NAMES = ["bool", "uint8", "int8", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("left", NAMES)
def test_results_have_the_promoted_dtype(left):
    x = jnp.ones(2, left)
    for right in NAMES:
        y = jnp.ones(2, right)
        for fun in (jnp.multiply, jnp.maximum, lambda a, b: jnp.where(True, a, b)):
            assert fun(x, y).dtype == jnp.result_type(x, y) == jit(fun)(x, y).dtype
    for number in (1, 1.5, 1j):
        found = x * number
        assert found.dtype == dtypes.result_type(x, number)
        assert found.dtype == jit(lambda a, n=number: a * n)(x).dtype == jit(lambda a, n=number: n * a)(x).dtype


def test_python_numbers_yield_and_numpy_scalars_do_not():
    x = jnp.ones(2, "bfloat16")
    assert (x * 2.5).dtype == jnp.bfloat16
    assert (x * np.float32(2.5)).dtype == np.float32
    assert (jnp.arange(3) * 1.5).weak_type and (jnp.arange(3) * 1.5).dtype == np.float32
    for fun in (lambda: jnp.zeros(3), lambda: jnp.sin(np.float32(2)), lambda: jnp.asarray(2.0, "float32")):
        assert not fun().weak_type
        assert not jit(fun)().weak_type
    assert jnp.sin(2.0).weak_type and jit(lambda: jnp.sin(2.0))().weak_type
    assert jit(lambda x: x * np.float32(2))(2.0).weak_type is False


def test_named_64_bit_dtypes_hold_without_a_flag():
    x = jnp.array([1.5], "float64")
    assert x.dtype == (x * 2).dtype == jnp.sin(x).dtype == (x + jnp.ones(1)).dtype == np.float64
    assert jnp.asarray(np.ones(2)).dtype == np.float32
    assert jnp.arange(3, dtype="int64").dtype == jnp.array([1]).astype("int64").dtype == np.int64
    assert jnp.float64(2).dtype == np.float64
    assert float(jnp.float64(0.1) + jnp.float64(0.2)) == 0.1 + 0.2
    with config.enable_x64(True):
        assert jnp.asarray(np.ones(2)).dtype == np.float64
        assert jnp.ones(2).dtype == np.float64
        assert (jnp.arange(3) / 2).dtype == np.float64


def test_large_python_ints():
    x = jnp.float32(1)
    for fun in (lambda x: x + 2**100, lambda x: 2**100 * x, lambda x: jnp.add(x, float(2**100))):
        assert fun(x) == jit(fun)(x) == np.float32(2.0**100)
    assert jnp.array(2**100, "float32") == np.float32(2.0**100)
    for fun in (lambda: jnp.array(2**40), lambda: jnp.array([1]) + 2**40, lambda: jnp.array([300], "uint8")):
        with pytest.raises(OverflowError):
            fun()
        with pytest.raises(OverflowError):
            jit(fun)()
    assert (jnp.array([1], "int64") + 2**40).item() == 1 + 2**40
    assert (jnp.array([1], "uint32") + (2**32 - 2)).item() == 2**32 - 1


def test_strict_promotion_and_rank_promotion_are_honoured():
    with config.numpy_dtype_promotion("strict"):
        assert (jnp.ones(2) * 2).dtype == np.float32
        with pytest.raises(errors.TypePromotionError, match="strict"):
            jnp.ones(2) * jnp.arange(2)
    with config.numpy_rank_promotion("raise"):
        assert (jnp.ones((2, 3)) * 2.0).shape == (2, 3)
        with pytest.raises(ValueError, match="rank"):
            jnp.ones((2, 3)) + jnp.ones(3)
    with config.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        jit(lambda x, y: x + y)(jnp.ones((2, 3)), jnp.ones(3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: jnp.add(jnp.ones(2), [1, 2]),
            TypeError,
            r"add requires ndarray or scalar arguments.*jnp.array\(list\)",
        ),
        (lambda: jnp.ones(2) + [1, 2], TypeError, r"jnp.array"),
        (lambda: jnp.sin("x"), TypeError, "str|not an array"),
        (
            lambda: jnp.ones(2) + jnp.ones(3),
            ValueError,
            r"add: Incompatible shapes for broadcasting: \(2,\) and \(3,\)",
        ),
        (lambda: jnp.ones(2) + None, TypeError, "unsupported operand"),
        (lambda: jnp.sum(jnp.ones(2), axis=1), ValueError, "sum: axis 1 is out of bounds for array of dimension 1"),
        (lambda: jnp.sum(jnp.ones(2), axis=(0, 0)), ValueError, "duplicate"),
        (lambda: jnp.sum([1, 2]), TypeError, "sum requires ndarray"),
        (lambda: jnp.max(jnp.ones(0)), ValueError, "no identity"),
        (lambda: jnp.argmax(jnp.ones(0)), ValueError, "empty"),
        (lambda: jnp.reshape(jnp.ones(6), (4, 2)), TypeError, r"cannot reshape array of shape \(6,\).*\(4, 2\)"),
        (lambda: jnp.ones(2).reshape(-1, -1), ValueError, "one -1"),
        (lambda: jnp.zeros(-1), ValueError, "negative"),
        (lambda: jnp.zeros("a"), TypeError, "concrete values of integer type"),
        (lambda: jnp.array([1, "a"]), TypeError, "'a'"),
        (lambda: jnp.array(None), TypeError, "NoneType"),
        (lambda: jnp.array([[1], [1, 2]]), ValueError, "shape"),
        (lambda: jnp.array([jnp.ones(1), jnp.ones(2)]), ValueError, "different shapes"),
        (lambda: jnp.matmul(jnp.ones((2, 3)), jnp.ones((2, 3))), TypeError, "contracted sizes differ"),
        (lambda: jnp.matmul(jnp.ones(2), 1.0), ValueError, "at least one axis"),
        (lambda: jnp.einsum("ij", jnp.ones(2)), ValueError, "ij"),
        (lambda: jnp.concatenate([]), ValueError, "Need at least one array"),
        (lambda: jnp.concatenate([jnp.ones((2, 2)), jnp.ones((3, 3))]), ValueError, "differ outside axis 0"),
        (lambda: jnp.stack([jnp.ones(2), jnp.ones(3)]), ValueError, "same shape"),
        (lambda: jnp.squeeze(jnp.ones((2, 1)), 0), ValueError, "not equal to one"),
        (lambda: jnp.split(jnp.ones(5), 2), ValueError, "equal division"),
        (lambda: jnp.transpose(jnp.ones((2, 3)), (0,)), ValueError, "axes don't match"),
        (lambda: jnp.broadcast_to(jnp.ones(3), (2,)), ValueError, r"\(3,\) and requested shape \(2,\)"),
        (lambda: jnp.sum(jnp.ones(2), out=jnp.ones(2)), NotImplementedError, "out="),
        (lambda: jnp.where(True, 1), ValueError, "both or neither"),
        (lambda: jnp.arange(0, 3, 0), ValueError, "step"),
        (lambda: -jnp.array([True]), TypeError, "bool"),
        (lambda: jnp.left_shift(1.0, 2), TypeError, "float"),
        (lambda: bool(jnp.ones(2)), ValueError, "ambiguous"),
    ],
)
def test_errors_name_function_values_and_cure(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_none_compares_unequal_and_unknown_classes_get_their_turn():
    class Other:
        def __radd__(self, x):
            return "radd"

        def __rmatmul__(self, x):
            return "rmatmul"

    x = jnp.ones(2)
    assert (x == None) is False  # noqa: E711
    assert x + Other() == "radd" and x @ Other() == "rmatmul"
    assert (np.ones(2, "float32") + x).tolist() == [2, 2]
    assert isinstance(np.float32(2) * x, jnp.ndarray)


class Wrapped:
    def __jax_array__(self):
        return jnp.arange(3)


def test_objects_that_know_their_array():
    assert jnp.sin(Wrapped()).shape == (3,)
    assert (jnp.ones(3) + Wrapped()).tolist() == [1, 2, 3]
    assert jnp.asarray(Wrapped()).tolist() == [0, 1, 2]


RECORDS = json.loads((pathlib.Path(__file__).parents[1] / "data/jaxprs_reference.json").read_text())["records"]
PLAIN = "x * 2|2.0 \\*|x [+-] |x \\*\\* 2|x > 0|\\.T|x\\[|astype|\\.sum|jnp.max|jnp.mean|argmax|arange|zeros|x @ y"


def test_traced_functions_record_few_equations():
    x = jnp.ones(4)
    for fun, count in [
        (lambda x: x * 2.0, 1),
        (lambda x: x * 2 - x / 3.0, 3),
        (lambda x: x**2, 1),
        (lambda x: x[1:3], 1),
        (lambda x: x[2], 2),
        (lambda x: x[::-1], 1),
        (lambda x: jnp.where(x > 0, x, 0.0), 2),
        (lambda x: jnp.mean(x), 2),
        (lambda x: jnp.maximum(x, 0), 1),
        (lambda x: x + jnp.zeros(4), 2),
        (lambda x: x.at[1].set(2.0), 3),
        (lambda x: jnp.concatenate([x, x]), 1),
        (lambda x: x @ x, 1),
        (lambda x: jnp.clip(x, 0, 1), 2),
    ]:
        assert len(api.make_jaxpr(fun)(x).eqns) <= count, api.make_jaxpr(fun)(x)


def test_scalar_types_are_dtypes_and_make_arrays():
    assert np.dtype(jnp.float32) == np.float32 and jnp.zeros(2, jnp.int8).dtype == jnp.int8
    assert jnp.int32(3).dtype == np.int32 and not jnp.float32(3).weak_type
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and jnp.promote_types(jnp.int8, jnp.bfloat16) == jnp.bfloat16
    assert jnp.finfo(jnp.bfloat16).bits == 16 and jnp.iinfo("int8").max == 127
