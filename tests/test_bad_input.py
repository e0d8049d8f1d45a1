"""Bad input: the type of the exception, what its message says, and that the traceback ends at the user's own line."""

import traceback

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import errors, lax

ones = np.ones(3, "float32")
leaks = []


def leak(x):
    leaks.append(x)
    return x


def leaked(make):
    leaks.clear()
    make()
    return leaks[-1]


def donated():
    x = jnp.ones(4)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


# name: (call, exception, words of its message in order)
CASES = {
    "if": (
        lambda: jax.jit(lambda x: 1 if x > 0 else 2)(1.0),
        errors.TracerBoolConversionError,
        ["bool()", "bool[]", "result of gt at", "test_bad_input.py", "numpy.where, lax.cond or lax.while_loop"],
    ),
    "if under vmap": (
        lambda: jax.vmap(lambda x: x if x > 0 else -x)(ones),
        errors.TracerBoolConversionError,
        ["bool()", "one example of a batch of 3"],
    ),
    "int": (
        lambda: jax.jit(lambda x: int(x))(1.0),
        errors.ConcretizationTypeError,
        ["int()", "f32[]", "argument args[0] of <lambda>"],
    ),
    "float": (
        lambda: jax.jit(lambda p: float(p["w"]))({"w": 1.0}),
        errors.ConcretizationTypeError,
        ["float()", "args[0]['w']"],
    ),
    "range": (
        lambda: jax.jit(lambda n: sum(range(n)))(3),
        errors.TracerIntegerConversionError,
        ["integer index or size", "i32[]", "mark the argument static"],
    ),
    "NumPy": (
        lambda: jax.jit(lambda x: np.sin(x))(1.0),
        errors.TracerArrayConversionError,
        ["numpy.asarray()", "f32[]", "this library's numpy module"],
    ),
    "mask": (
        lambda: jax.jit(lambda x: x[x > 0])(ones),
        errors.NonConcreteBooleanIndexError,
        ["boolean", "(3,)", "jnp.where"],
    ),
    "leak from jit": (
        lambda: jnp.sin(leaked(lambda: jax.jit(leak)(1.0))),
        errors.UnexpectedTracerError,
        ["f32[]", "argument args[0] of leak", "Return it"],
    ),
    "leak from vmap": (
        lambda: jnp.sin(leaked(lambda: jax.vmap(leak)(ones))),
        errors.UnexpectedTracerError,
        ["f32[]", "after the transformed function"],
    ),
    "leak from grad into jit": (
        lambda: jax.jit(lambda y, x=leaked(lambda: jax.grad(leak)(1.0)): y * x)(2.0),
        errors.UnexpectedTracerError,
        ["f32[]"],
    ),
    "contracted sizes": (
        lambda: jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 3))),
        TypeError,
        ["dot", "(2, 3)", "has 3", "has 2", "Transpose"],
    ),
    "joined shapes": (
        lambda: jax.jit(lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))]))(),
        (TypeError, ValueError),
        ["concatenate", "(2, 3)", "(2, 4)"],
    ),
    "broadcast": (
        lambda: jnp.add(jnp.ones((2, 3)), jnp.ones(2)),
        (TypeError, ValueError),
        ["add", "(2, 3)", "(2,)"],
    ),
    "dtypes of lax": (
        lambda: jax.jit(lax.add)(ones, np.ones(3, "int32")),
        TypeError,
        ["add", "float32", "int32", "convert_element_type"],
    ),
    "shapes of lax": (
        lambda: jax.jit(lax.add)(ones, np.ones(2, "float32")),
        TypeError,
        ["add", "(3,)", "(2,)"],
    ),
    "output of jit": (
        lambda: jax.jit(lambda x: {"a": x, "b": "text"})(1.0),
        TypeError,
        ["jit", "<lambda>", "'text'", "output['b']"],
    ),
    "output of grad": (lambda: jax.grad(lambda x: "text")(1.0), TypeError, ["grad", "'text'"]),
    "argument of jit": (
        lambda: jax.jit(lambda x: x)({"k": "text"}),
        TypeError,
        ["jit", "args[0]['k']", "'text'", "static_argnums"],
    ),
    "vector output": (
        lambda: jax.grad(lambda x: x * 2)(ones),
        TypeError,
        ["gradient only defined for scalar-output", "f32[3]", "jacrev"],
    ),
    "tuple output": (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, ["single scalar", "has_aux=True"]),
    "integer input": (
        lambda: jax.grad(lambda x: x * 2.0)(3),
        TypeError,
        ["floating point", "args[0] is i32[]", "astype(float)", "allow_int=True"],
    ),
    "complex output": (lambda: jax.grad(lambda x: x * 1j)(1.0), TypeError, ["real float", "c64[]", "holomorphic=True"]),
    "argnums": (lambda: jax.grad(lambda x: x, argnums=2)(1.0), TypeError, ["argnums=2", "1 positional"]),
    "sizes of vmap": (
        lambda: jax.vmap(lambda a, b: a)(ones, np.ones(4, "float32")),
        ValueError,
        ["inconsistent sizes", "args[0] of type f32[3]", "size 3", "args[1] of type f32[4]", "size 4"],
    ),
    "axis of vmap": (lambda: jax.vmap(lambda a: a, in_axes=2)(ones), ValueError, ["axis 2", "args[0]", "f32[3]"]),
    "length of in_axes": (
        lambda: jax.vmap(lambda a: a, in_axes=(0, 0))(ones),
        ValueError,
        ["in_axes=(0, 0) has 2 entries", "1 positional"],
    ),
    "type of in_axes": (lambda: jax.vmap(lambda a: a, in_axes="x")(ones), TypeError, ["in_axes", "'x'"]),
    "tree of in_axes": (
        lambda: jax.vmap(lambda a: a["x"], in_axes=({"y": 0},))({"x": ones}),
        ValueError,
        ["in_axes of <lambda>", "'y'", "'x'"],
    ),
    "out_axes": (
        lambda: jax.vmap(lambda a: a, out_axes=None)(ones),
        ValueError,
        ["out_axes is None", "depends on the mapped arguments"],
    ),
    "no mapped argument": (lambda: jax.vmap(lambda a: a, in_axes=None)(ones), ValueError, ["axis_size"]),
    "unhashable static": (
        lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        ValueError,
        ["jit", "static argument", "<lambda>", "[1] of type list", "tuple instead of a list"],
    ),
    "unknown static": (lambda: jax.jit(lambda x: x, static_argnames="n"), ValueError, ["'n'", "<lambda>", "['x']"]),
    "donated": (
        lambda: jax.jit(lambda x: x + 1)(donated()),
        RuntimeError,
        ["f32[4]", "has been deleted", "donated"],
    ),
    "structures of jvp": (
        lambda: jax.jvp(lambda x: x, ({"a": 1.0},), ({"b": 1.0},)),
        TypeError,
        ["jvp", "'a'", "'b'"],
    ),
    "shapes of jvp": (
        lambda: jax.jvp(lambda x: x, (ones,), (np.ones(2, "float32"),)),
        ValueError,
        ["jvp", "(3,)", "(2,)"],
    ),
    "cotangent": (
        lambda: jax.vjp(lambda x: x, ones)[1](np.ones(2, "float32")),
        ValueError,
        ["pullback of <lambda>", "f32[2]", "f32[3]"],
    ),
    "transpose of a product": (
        lambda: jax.linear_transpose(lambda x: x * x, 1.0)(1.0),
        TypeError,
        ["mul", "not linear"],
    ),
    "carry of scan": (
        lambda: lax.scan(lambda c, x: ({"a": c["a"].astype("int32")}, x), {"a": 1.0}, ones),
        TypeError,
        ["scan", "carry['a']", "f32[]", "i32[]"],
    ),
    "branches": (lambda: lax.cond(True, lambda: 1.0, lambda: jnp.ones(3)), TypeError, ["cond", "f32[3]", "f32[]"]),
    "condition": (
        lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
        TypeError,
        ["while_loop", "scalar bool", "f32[]"],
    ),
    "axis": (lambda: jnp.sum(jnp.ones((2, 3)), axis=5), ValueError, ["sum", "axis 5"]),
    "list": (lambda: jnp.sin([1.0]), TypeError, ["sin", "list", "jnp.array"]),
    "unbound axis": (lambda: jax.jit(lambda x: lax.psum(x, "i"))(1.0), NameError, ["psum", "'i'", "shard_map"]),
    "callback": (
        lambda: jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((2,), np.float32), ones),
        RuntimeError,
        ["(2,)", "(3,)"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message_and_traceback(name):
    call, exception, words = CASES[name]
    with pytest.raises(exception) as caught:
        call()
    text = str(caught.value)
    at = 0
    for word in words:
        found = text.find(word, at)
        assert found >= 0, f"{word!r} is not in {text!r} after position {at}"
        at = found
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename == __file__, f"the traceback ends in {last.filename}:{last.lineno}"


def test_every_frame_is_there_on_demand():
    jax.config.update("jax_traceback_filtering", "off")
    try:
        with pytest.raises(TypeError) as caught:
            jax.grad(lambda x: x * 2)(ones)
    finally:
        jax.config.update("jax_traceback_filtering", "auto")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename.endswith("transforms/api.py")


def test_numbers_still_work_after_every_error():
    for call, exception, _ in CASES.values():
        with pytest.raises(exception):
            call()
    assert float(jax.jit(jax.grad(lambda x: jnp.sin(x) * x))(0.0)) == 0.0
