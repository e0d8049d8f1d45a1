"""Compiled functions that close over arrays: the arrays are hidden arguments of the program."""

import gc
import weakref

import numpy as np

import morphax as jax
import morphax.numpy as jnp
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


def test_jitted_functions_and_their_programs_are_collected():
    client = jax.devices()[0].client

    def make(k):
        fun = jax.jit(lambda x: jnp.sort(x * k) + 0.03125)
        fun(jnp.ones(3))
        return weakref.ref(fun.__wrapped__)

    functions = [make(k + 0.28125) for k in range(5)]
    gc.collect()
    assert [f() for f in functions] == [None] * 5
    kept = jax.jit(lambda x: x * 0.71875)
    kept(1.0)
    jax.clear_caches()
    gc.collect()
    assert not client.live_executables()
    assert kept(2.0) == 1.4375
