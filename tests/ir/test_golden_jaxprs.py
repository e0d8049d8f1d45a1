"""Jaxprs print as JAX prints them; where the programs differ, the reason stands beside the source."""

import json
import pathlib

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import lax
from morphax.ir import show
from morphax.ir.jaxpr import check

RECORDS = json.loads((pathlib.Path(__file__).parent.parent / "data" / "jaxprs_reference.json").read_text())["records"]
RECORDS = [r for r in RECORDS if "jax.nn" not in r["source"]]  # nn has tests of its own

DIFFERENT = {
    "lambda x, y: x + y": "one broadcast to the whole shape, without an axis of size 1 on the way",
    "lambda x, i: x.at[i].add(1.0)": "the update is broadcast before the indices are wrapped",
    "lambda x: x.at[1].set(2.0)": "a static place is written by dynamic_update_slice",
    "lambda x, y: jnp.where(x > y, x, y)": "array functions are inlined under a trace",
    "lambda p, x: jnp.where(p, x, 0.0)": "array functions are inlined under a trace",
    "jax.grad(lambda x: lax.tanh(x))": "the derivative is 1 - y * y",
    "jax.grad(lambda x: lax.sin(x) * x)": "dead code is dropped; the tangent comes first in a product",
    "jax.grad(jax.grad(lambda x: lax.sin(x) * x))": "dead code is dropped",
    "jax.grad(lambda x: lax.reduce_sum(lax.exp(x) * x, axes=(0,)))": "dead code is dropped",
    "jax.value_and_grad(lambda x: jnp.sum(x ** 2))": "the tangent comes first in a product",
    "jax.grad(jax.jit(lambda x: lax.sin(x) * x))": "dead code is dropped inside calls too",
    "jax.vmap(jax.jit(lambda x: lax.reduce_sum(x, axes=(0,))))": "axes are plain ints",
    "lambda xs: lax.scan(lambda c, x: (c + x, c * x), 0.0, xs)": "the carry is strong from the start",
    "lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x)": "a counter that nothing reads is dropped",
    "lambda x: jnp.linalg.norm(x)": "the derivative at zero is zero, and array functions are inlined",
    "lambda: jax.random.uniform(jax.random.key(0), (3,))": "array functions are inlined under a trace",
    "lambda x: jax.checkpoint(lambda y: lax.sin(lax.sin(y)))(x)": "parameters of our own",
}
# Functions of Python cannot be read back from text.
UNREADABLE = ("custom_jvp_call", "custom_vjp_call")


def traced(record):
    fun = eval(record["source"], {"jax": jax, "jnp": jnp, "lax": lax, "np": np})
    args = [jax.ShapeDtypeStruct(tuple(shape), dtype) for dtype, shape in record["types"]]
    return jax.make_jaxpr(fun)(*args)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["source"])
def test_prints_as_jax_does(record):
    text = str(traced(record))
    if record["source"] in DIFFERENT:
        pytest.skip(DIFFERENT[record["source"]])
    assert text == record["text"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["source"])
def test_text_is_read_back(record):
    closed = traced(record)
    check(closed.jaxpr)
    text = str(closed)
    if any(name in text for name in UNREADABLE):
        return
    again = show.parse(text)
    check(again)
    assert str(again) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ lambda ; a:f32[4]. let b:f32[3] = sin a in (b,) }", "sin gives"),
        ("{ lambda ; a:f32[4]. let b:f32[4] = sin c in (b,) }", "used before it is defined"),
        ("{ lambda ; a:f32[4] let", "expected"),
        ("nonsense", "expected '{'"),
    ],
)
def test_wrong_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        show.parse(text)
