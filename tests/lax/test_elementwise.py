"""What the elementwise functions of lax do with their arguments, beyond what the primitives promise."""

from typing import Any

import numpy as np
import pytest

from morphax import lax
from morphax.ir import show
from morphax.ir.avals import ShapedArray
from morphax.runtime import array, backend
from morphax.transforms import api


def put(x: Any, dtype: str = "float32") -> Any:
    host = np.asarray(x).astype(np.dtype(dtype))
    return array.put(host, ShapedArray(host.shape, host.dtype), backend.default_device(), committed=False)


def test_python_numbers_take_the_dtype_of_the_others() -> None:
    for dtype in ("float16", "float64", "complex64"):
        assert lax.add(put([1, 2], dtype), 1.5).dtype == dtype
        assert lax.max(2, put([1, 2], dtype)).dtype == dtype
    assert lax.clamp(0, put([1, 2], "uint8"), 1).tolist() == [1, 1]
    assert lax.select(True, 1.0, put(2, "float16")).dtype == "float16"


def test_nothing_else_is_promoted() -> None:
    for call in (
        lambda: lax.add(put([1], "int32"), 1.5),
        lambda: lax.add(put([1], "float32"), put([1], "float64")),
        lambda: lax.mul(put([1], "int8"), put([1], "int32")),
        lambda: lax.select(True, put(1.0), put(1, "int32")),
    ):
        with pytest.raises(TypeError, match="equal dtypes"):
            call()


def test_weak_types() -> None:
    assert lax.sin(1.0).weak_type
    assert not lax.sin(np.float32(1)).weak_type
    assert not lax.add(put(1.0), 1.0).weak_type
    assert not lax.full((2,), 1.0).weak_type
    assert lax.full_like(1.0, 2).weak_type
    assert not lax.convert_element_type(1.0, float).weak_type
    assert [str(a) for a in api.make_jaxpr(lambda x: (lax.lt(x, 2.0), lax.full((2,), x)))(1.0).out_avals] == [
        "bool[]",
        "f32[2]",
    ]


def test_host_arrays_have_the_default_width() -> None:
    assert lax.sin(np.ones(2)).dtype == "float32"
    assert lax.full((2,), 1.0, "float64").dtype == "float64"
    assert lax.convert_element_type(np.ones(2), "float64").dtype == "float64"


def test_sides_of_one_are_stretched() -> None:
    assert lax.add(put(np.ones((2, 1))), put(np.ones((1, 3)))).shape == (2, 3)
    with pytest.raises(TypeError, match=r"shapes \(1, 2\), \(2,\)"):
        lax.add(put(np.ones((1, 2))), put(np.ones(2)))


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: lax.sin("a"), TypeError, "sin requires ndarray or scalar arguments; got a str: 'a'"),
        (lambda: lax.add(put(1.0), [1.0]), TypeError, "add requires ndarray or scalar arguments; got a list"),
        (lambda: lax.sin(1), TypeError, "sin: does not accept dtype int32"),
        (lambda: lax.full((2,), put([1.0, 2.0])), TypeError, r"full: fill_value must be a scalar; it has shape \(2,\)"),
        (lambda: lax.full((2, -1), 0.0), TypeError, r"full: shape \(2, -1\) has a negative side"),
        (lambda: lax.round(1.5, 7), ValueError, "round: rounding_method must be a RoundingMethod; it is 7"),
        (lambda: lax.integer_pow(1.5, 2.5), TypeError, "integer_pow: the exponent must be a static int; it is 2.5"),
        (lambda: lax.exp(1.0, accuracy=3), TypeError, "exp: accuracy must be a Tolerance or an AccuracyMode; it is 3"),
        (lambda: lax.Tolerance(rtol=-1.0), ValueError, "Tolerance: atol 0.0, rtol -1.0 and ulps 0"),
        (lambda: lax.stop_gradient({"a": "b"}), TypeError, "stop_gradient requires ndarray or scalar arguments"),
        (lambda: lax.convert_element_type(1.0, None), ValueError, "convert_element_type: new_dtype is None"),
        (lambda: lax.select_n(True), TypeError, "select_n: no cases were given"),
        (lambda: lax.add(2**40, 1), OverflowError, "Python integer 1099511627776 out of bounds for int32"),
    ],
)
def test_errors(call: Any, exception: type[Exception], message: str) -> None:
    with pytest.raises(exception, match=message):
        call()


def test_accuracy_is_part_of_the_program() -> None:
    for accuracy in (lax.Tolerance(rtol=1e-3, ulps=2), lax.AccuracyMode.HIGHEST):
        text = str(api.make_jaxpr(lambda x: lax.exp(x, accuracy=accuracy))(1.0))
        assert "accuracy=" in text
        assert str(show.parse(text)) == text
        np.testing.assert_allclose(api.grad(lambda x: lax.exp(x, accuracy=accuracy))(1.0), np.e, rtol=1e-3)


def test_stop_gradient_keeps_structure() -> None:
    tree = {"a": put([1.0, 2.0]), "b": (3, 4.0)}
    assert lax.stop_gradient(tree) == tree
    assert api.grad(lambda x: lax.mul(x, lax.stop_gradient({"x": x})["x"]))(3.0).item() == 3.0


def test_multiplication_in_a_wider_dtype() -> None:
    product = lax.mul(put(100, "int8"), put(100, "int8"), out_dtype="int32")
    assert (product.item(), product.dtype) == (10000, "int32")


def test_gradients_at_the_edges() -> None:
    """Cases of public bug reports."""
    double = {"dtype": "float64"}
    assert api.grad(lax.expm1)(put(-40.0, **double)).item() == 4.248354255291589e-18
    assert api.grad(api.grad(lax.tanh))(put(1e-300, **double)).item() == -2e-300
    np.testing.assert_allclose(api.grad(lax.logistic)(put(37.42994775023705, **double)), 5.551115123125775e-17)
    assert api.grad(lambda z: lax.real(lax.pow(z, 1.0)))(put(complex(np.inf, 0), "complex128")).item() == 1
    powers = api.vmap(lambda t, k: api.grad(lambda x: lax.pow(x, k))(t), (None, 0))
    assert powers(put(0.0), put(np.arange(3), "int32")).tolist() == [0.0, 1.0, 0.0]


def test_integer_division() -> None:
    x, y = put([7, -7, 5, -(2**31)], "int32"), put([2, 2, 0, -1], "int32")
    assert lax.div(x, y).tolist() == [3, -3, -1, -(2**31)]
    assert lax.rem(x, y).tolist() == [1, -1, 5, 0]
