"""Operators and methods of arrays, tracers and keys."""

import inspect
import operator

import numpy as np
import pytest

from morphax import numpy as jnp
from morphax import random
from morphax.runtime.jit import jit
from morphax.support import config
from morphax.transforms import api

FLOAT_OPERATORS = "add sub mul truediv floordiv mod pow eq ne lt le gt ge".split()
INT_OPERATORS = [*FLOAT_OPERATORS, "and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.parametrize("name", INT_OPERATORS)
def test_operators(name):
    fun = getattr(operator, name)
    kinds = ["float32", "int32"] if name in FLOAT_OPERATORS else ["int32"]
    for dtype in kinds:
        x, y = np.array([1, 2, 5], dtype), np.array([3, 2, 1], dtype)
        a, b = jnp.array(x), jnp.array(y)
        wanted = fun(x, y)
        wanted = wanted.astype("float32") if wanted.dtype == "float64" else wanted
        for found in (fun(a, b), jit(fun)(a, b), fun(a, y), fun(x, b)):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
            assert found.dtype == wanted.dtype
        np.testing.assert_allclose(fun(a, 2), fun(x, 2), rtol=1e-6)
        np.testing.assert_allclose(jit(lambda a: fun(2, a))(a), fun(2, x), rtol=1e-6)
        np.testing.assert_allclose(fun(2, a), fun(2, x), rtol=1e-6)


def test_one_operand():
    x = jnp.array([-1.5, 2.5])
    assert (-x).tolist() == [1.5, -2.5] and (+x).tolist() == [-1.5, 2.5] and abs(x).tolist() == [1.5, 2.5]
    assert (~jnp.array([True, False])).tolist() == [False, True]
    assert round(x).tolist() == [-2, 2] and round(x).dtype == np.int32 and round(x, 0).tolist() == [-2.0, 2.0]
    assert [v.tolist() for v in divmod(jnp.array([7]), 2)] == [[3], [1]]
    assert (jnp.ones((2, 3)) @ np.ones((3, 1), "float32")).shape == (2, 1)
    assert (np.ones((1, 2), "float32") @ jnp.ones((2, 3))).shape == (1, 3)


METHODS = {
    "sum": lambda x: x.sum(axis=0), "prod": lambda x: x.prod(), "max": lambda x: x.max(1), "min": lambda x: x.min(),
    "mean": lambda x: x.mean(axis=0), "std": lambda x: x.std(), "var": lambda x: x.var(ddof=1),
    "all": lambda x: x.all(), "any": lambda x: x.any(axis=1), "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(0), "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "reshape": lambda x: x.reshape(3, 2), "reshape_tuple": lambda x: x.reshape((3, -1)),
    "transpose": lambda x: x.transpose(),
    "transpose_axes": lambda x: x.transpose(1, 0), "T": lambda x: x.T, "squeeze": lambda x: x[:1].squeeze(0),
    "swapaxes": lambda x: x.swapaxes(0, 1), "diagonal": lambda x: x.diagonal(), "trace": lambda x: x.trace(),
    "clip": lambda x: x.clip(1, 3),
    "round": lambda x: x.round(1), "repeat": lambda x: x.repeat(2, axis=0), "dot": lambda x: x.dot(x.T),
    "conj": lambda x: x.conj(),
    "astype": lambda x: x.astype("int32"), "take": lambda x: x.take(np.array([1, 0]), axis=1),
    "copy": lambda x: x.copy(),
    "argsort": lambda x: x.argsort(axis=1), "real": lambda x: x.real, "imag": lambda x: x.imag, "mT": lambda x: x.mT,
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    x = np.float32([[0.5, 2.25, -1], [3, 1.5, 4]])
    wanted = METHODS[name](x)
    for found in (METHODS[name](jnp.array(x)), jit(METHODS[name])(jnp.array(x))):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_more_methods():
    x = jnp.array([[3.0, 1.0], [2.0, 0.0]])
    assert x.sort().tolist() == [[1, 3], [0, 2]] and x.flat.tolist() == [3, 1, 2, 0]
    assert [i.tolist() for i in x.nonzero()] == [[0, 0, 1], [0, 1, 0]]
    assert (
        x.view("int32").dtype == np.int32
        and x.view("int8").shape == (2, 8)
        and x.view("int32").view("float32").tolist() == x.tolist()
    )
    assert x.ptp().item() == 3 and jnp.arange(3).searchsorted(2).item() == 2
    assert x.to_device(x.device).tolist() == x.tolist()
    assert x.__array_namespace__() is jnp
    assert jit(lambda x: x.nbytes * x.itemsize)(x).item() == 64


def test_signatures_begin_with_self():
    assert next(iter(inspect.signature(type(jnp.ones(1)).sum).parameters)) == "self"
    assert "Sum over axes" in type(jnp.ones(1)).sum.__doc__


def test_keys_have_structure_only():
    keys = random.split(random.key(0), 6)
    assert keys[0].shape == () and keys[1:3].shape == (2,) and keys.reshape(2, 3).T.shape == (3, 2)
    assert len(list(keys)) == 6 and (keys == keys).tolist() == [True] * 6
    assert jit(lambda k: k[jnp.array([0, 5])])(keys).shape == (2,)
    assert jnp.concatenate([keys, keys]).shape == (12,) and jnp.stack([keys[0], keys[1]]).shape == (2,)
    assert keys.at[0].set(keys[1])[0] == keys[1]
    with pytest.raises(TypeError):
        keys + 1


def test_universal_functions_have_methods():
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    for name in ("add", "multiply", "maximum", "minimum", "subtract", "logaddexp"):
        ours, theirs = getattr(jnp, name), getattr(np, name)
        np.testing.assert_allclose(ours.reduce(jnp.array(x), axis=1), theirs.reduce(x, axis=1), rtol=1e-6)
        np.testing.assert_allclose(ours.accumulate(jnp.array(x), axis=1), theirs.accumulate(x, axis=1), rtol=1e-6)
        np.testing.assert_allclose(ours.outer(jnp.array(x), jnp.array(x)), theirs.outer(x, x), rtol=1e-6)
    assert jnp.add.at(jnp.zeros(2), jnp.array([0, 0]), 1.0, inplace=False).tolist() == [2, 0]
    assert jnp.add.reduceat(jnp.arange(6), [0, 2, 4]).tolist() == [1, 5, 9]
    assert jnp.bitwise_and.reduce(jnp.array([7, 6])).item() == 6
    assert api.grad(lambda v: jnp.multiply.reduce(v))(jnp.array([2.0, 0.0, 3.0])).tolist() == [0, 6, 0]
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(jnp.zeros(2), 0, 1.0)


def test_derivatives_of_array_functions():
    assert api.grad(lambda x: jnp.sinc(x))(0.0).item() == 0
    assert api.grad(api.grad(jnp.sinc))(0.0).item() == pytest.approx(-(np.pi**2) / 3, rel=1e-5)
    assert api.grad(lambda x: x**0)(0.0).item() == 0 and api.grad(lambda x: x**2)(0.0).item() == 0
    assert api.grad(lambda y: jnp.power(0.0, y))(2.0).item() == 0
    assert api.grad(lambda x: jnp.hypot(x, 0.0))(3.0).item() == 1
    assert api.grad(lambda x: jnp.logaddexp(x, x))(-1e4).item() == 1
    assert api.grad(lambda x: jnp.maximum(x, 0.0))(0.0).item() == 0.5
    assert api.grad(lambda x: jnp.std(jnp.stack([x, x * 2])))(1.0).item() == pytest.approx(0.5)
    assert api.grad(lambda x: jnp.median(x))(jnp.array([3.0, 1.0, 2.0])).tolist() == [0, 0, 1]
    assert api.grad(lambda x: jnp.sort(x)[0])(jnp.array([3.0, 1.0, 2.0])).tolist() == [0, 1, 0]
    assert api.grad(lambda x: jnp.max(x))(jnp.array([3.0, 3.0])).tolist() == [0.5, 0.5]
    assert api.grad(lambda x: jnp.linspace(x, 2.0, 3).sum())(1.0).item() == pytest.approx(1.5)
    assert api.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((3, 2))).tolist() == [2, 2, 2]
    assert api.vmap(lambda x: jnp.einsum("i,j->ij", x, x))(jnp.ones((3, 2))).shape == (3, 2, 2)


def test_numbers_beside_64_bit_arrays_keep_their_digits():
    x = jnp.array([1.5], "float64")
    assert not config.enable_x64.value
    for found, want in [
        (x - 1.4, 1.5 - 1.4),
        (1.4 - x, 1.4 - 1.5),
        (x * 0.1, 1.5 * 0.1),
        (x**0.1, 1.5**0.1),
        (x.at[0].set(0.1), 0.1),
        (x.at[jnp.array([0])].add(0.1), 1.6),
        (jnp.maximum(x, 1.6), 1.6),
        (jnp.clip(x, 0.1, 1.1), 1.1),
    ]:
        assert found.dtype == "float64" and abs(found.item() - want) <= 2.3e-16
