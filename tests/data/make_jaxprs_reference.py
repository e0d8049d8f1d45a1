"""Records how real JAX prints the jaxprs of small functions, so that ours can be compared with them.

Run once, with an interpreter that has jax 0.10.2, on the CPU:

    python tests/data/make_jaxprs_reference.py

It writes `jaxprs_reference.json` beside itself: {"jax": version, "records": [...]}. A record is

    source  Python text of a function over the names `jax`, `jnp`, `lax`, `np`
    types   of its arguments, as [dtype, shape] pairs
    text    str(jax.make_jaxpr(function)(*arguments)) with default settings
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

F4, F3, F, I, I4, M23, M34, M43 = "f32[4]", "f32[3]", "f32[]", "i32[]", "i32[4]", "f32[2,3]", "f32[3,4]", "f32[4,3]"
DTYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "i32": "int32", "bool": "bool", "u8": "uint8"}

# (types of the arguments, source)
FUNCTIONS = (
    (F4, "lambda x: lax.sin(x)"),
    (F4, "lambda x: x"),
    (F4, "lambda x: (x, 1.0, 2)"),
    ("", "lambda: 3.0"),
    (F4, "lambda x: {'b': lax.cos(x), 'a': x}"),
    (F4, "lambda x: 2.0 * lax.sin(x) + 1.0"),
    (F4, "lambda x: x * 2 - x / 3.0"),
    (F, "lambda x: lax.exp(-x) + 1e-6"),
    (F, "lambda x: x * np.float32(2.5)"),
    (I4, "lambda x: x * 2 + 1"),
    ("bf16[4]", "lambda x: x * 2.0"),
    (F4, "lambda x: lax.integer_pow(x, 3)"),
    (F4, "lambda x: x ** 2"),
    (F4, "lambda x: lax.tanh(lax.log(lax.abs(x)))"),
    (f"{F4} {F4}", "lambda x, y: lax.max(x, y) - lax.min(x, y)"),
    (f"{F4} {F4}", "lambda x, y: lax.atan2(x, y)"),
    (F4, "lambda x: x > 0.0"),
    (F4, "lambda x: lax.gt(x, lax.neg(x))"),
    (F4, "lambda x: lax.convert_element_type(x, jnp.int32)"),
    (I4, "lambda x: x.astype(jnp.bfloat16)"),
    (I4, "lambda x: x + 1.5"),
    ("bool[4]", "lambda x: lax.bitwise_not(x)"),
    (M23, "lambda x: lax.reduce_sum(x, axes=(0, 1))"),
    (M23, "lambda x: lax.reduce_max(x, axes=(1,))"),
    (M23, "lambda x: x.sum(axis=0)"),
    (M23, "lambda x: jnp.max(x)"),
    (M23, "lambda x: jnp.mean(x, axis=1)"),
    (f"{M23} {M34}", "lambda x, y: lax.dot(x, y)"),
    (f"{M23} {M34}", "lambda x, y: x @ y"),
    (f"{M23} {M23}", "lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,))))"),
    (f"{M23} {M34}", "lambda x, y: lax.dot(x, y, precision=lax.Precision.HIGHEST)"),
    (M23, "lambda x: lax.reshape(x, (6,))"),
    (M23, "lambda x: x.reshape(3, 2)"),
    (M23, "lambda x: lax.transpose(x, (1, 0))"),
    (M23, "lambda x: x.T"),
    (F3, "lambda x: lax.broadcast_in_dim(x, (2, 3), (1,))"),
    (F3, "lambda x: lax.broadcast(x, (2,))"),
    (f"{M23} {F3}", "lambda x, y: x + y"),
    (F3, "lambda x: x[:, None]"),
    (M34, "lambda x: lax.squeeze(lax.slice(x, (1, 0), (2, 4)), (0,))"),
    (F4, "lambda x: lax.slice(x, (0,), (4,), (2,))"),
    (F4, "lambda x: x[1:3]"),
    (F4, "lambda x: x[2]"),
    (F4, "lambda x: x[::-1]"),
    (M34, "lambda x: x[..., 1]"),
    (f"{F4} {I}", "lambda x, i: lax.dynamic_slice(x, (i,), (2,))"),
    (f"{F4} f32[2] {I}", "lambda x, y, i: lax.dynamic_update_slice(x, y, (i,))"),
    (f"{F4} {I4}", "lambda x, i: x[i]"),
    (f"{F4} {I4}", "lambda x, i: x.at[i].get(mode='clip')"),
    (f"{F4} {I4}", "lambda x, i: x.at[i].add(1.0)"),
    (F4, "lambda x: x.at[1].set(2.0)"),
    (f"{F4} {F3}", "lambda x, y: lax.concatenate([x, y], 0)"),
    (F4, "lambda x: lax.pad(x, 0.0, ((1, 2, 0),))"),
    (F4, "lambda x: lax.rev(x, (0,))"),
    (f"bool[4] {F4} {F4}", "lambda p, x, y: lax.select(p, x, y)"),
    (f"{F4} {F4}", "lambda x, y: jnp.where(x > y, x, y)"),
    (f"bool[4] {F4}", "lambda p, x: jnp.where(p, x, 0.0)"),
    (F4, "lambda x: lax.clamp(0.0, x, 1.0)"),
    (F4, "lambda x: lax.cumsum(x)"),
    (F4, "lambda x: lax.cumsum(x, axis=0, reverse=True)"),
    (F4, "lambda x: lax.sort(x)"),
    (f"{F4} {I4}", "lambda x, y: lax.sort((x, y), num_keys=1)"),
    (F4, "lambda x: lax.top_k(x, 2)"),
    (M34, "lambda x: lax.argmax(x, 1, jnp.int32)"),
    (M34, "lambda x: jnp.argmax(x, axis=1)"),
    (F, "lambda x: lax.iota(jnp.float32, 3) * x"),
    (F, "lambda x: x * jnp.arange(3)"),
    (F, "lambda x: lax.full((2, 2), x)"),
    (F, "lambda x: x + jnp.zeros(3)"),
    (F4, "lambda x: jax.jit(lambda y: lax.sin(y) * 2.0)(x)"),
    (F4, "lambda x: jax.jit(lax.sin)(jax.jit(lax.cos)(x))"),
    (F4, "lambda x: (lambda f: f(f(x)))(jax.jit(lambda y: y * 2.0))"),
    (F, "jax.grad(lambda x: lax.tanh(x))"),
    (F, "jax.grad(lambda x: lax.sin(x) * x)"),
    (F, "jax.grad(jax.grad(lambda x: lax.sin(x) * x))"),
    (F4, "jax.grad(lambda x: lax.reduce_sum(lax.exp(x) * x, axes=(0,)))"),
    (F4, "jax.value_and_grad(lambda x: jnp.sum(x ** 2))"),
    (F, "jax.grad(jax.jit(lambda x: lax.sin(x) * x))"),
    (f"{F} {F}", "lambda x, t: jax.jvp(lax.sin, (x,), (t,))"),
    (M23, "jax.vmap(lambda x: lax.sin(x) * 2.0)"),
    (f"{M23} {M23}", "jax.vmap(lambda x, y: lax.dot(x, y))"),
    (f"{M23} {M34}", "jax.vmap(lambda x, y: lax.dot(x, y), in_axes=(0, None))"),
    (f"{M43} {M34}", "lambda x, w: jax.vmap(lambda v: jnp.tanh(v @ w))(x)"),
    (M23, "jax.vmap(jax.jit(lambda x: lax.reduce_sum(x, axes=(0,))))"),
    (F4, "lambda x: x + np.arange(4, dtype='float32')"),
    (F4, "lambda x, c=jnp.ones(4): x + c"),
    (F, "lambda x: lax.cond(x > 0, lambda y: lax.sin(y), lambda y: y, x)"),
    (F, "lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)"),
    (F4, "lambda xs: lax.scan(lambda c, x: (c + x, c * x), 0.0, xs)"),
    (F, "lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x)"),
    (F4, "lambda x: jax.checkpoint(lambda y: lax.sin(lax.sin(y)))(x)"),
    (F4, "lambda x: lax.stop_gradient(x)"),
    (F4, "lambda x: jax.nn.relu(x)"),
    (F4, "lambda x: jax.nn.softmax(x)"),
    (F4, "lambda x: jnp.linalg.norm(x)"),
    ("", "lambda: jax.random.uniform(jax.random.key(0), (3,))"),
    (
        f"{M34} {F4} {F3}",
        "lambda w, b, x: lax.reduce_sum(lax.tanh(lax.tanh(lax.tanh(lax.dot(x, w) + b) + b) + b), axes=(0,))",
    ),
)


def parse(short: str) -> tuple[str, list[int]]:
    """(dtype name, shape) of a type written as in a jaxpr: `f32[2,3]`."""
    dtype, dims = short.rstrip("]").split("[")
    return DTYPES[dtype], [int(n) for n in dims.split(",") if n]


def record(types: str, source: str) -> str:
    """One line of the file."""
    arguments = [parse(t) for t in types.split()]
    function = eval(source, {"jax": jax, "jnp": jnp, "lax": lax, "np": np})
    jaxpr = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in arguments))
    return json.dumps({"source": source, "types": arguments, "text": str(jaxpr)})


def main() -> None:
    lines = ",\n".join(record(types, source) for types, source in FUNCTIONS)
    path = pathlib.Path(__file__).with_name("jaxprs_reference.json")
    path.write_text(f'{{"jax":"{jax.__version__}","records":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
