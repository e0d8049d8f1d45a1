"""The programs that are measured. Each is written once, for any `jax` and `jnp` that it is given."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A scalar function of `args[0]`, made afresh by each call of `build`, so that nothing about it is cached.

    `batched` are arguments with one more axis in front where `in_axes` is 0.
    """

    build: Callable[[], Callable[..., Any]]
    args: tuple[Any, ...]
    batched: tuple[Any, ...]
    in_axes: tuple[int | None, ...]


def arrays(jnp: Any, *shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [jnp.asarray(0.1 * generator.standard_normal(shape), dtype=jnp.float32) for shape in shapes]


def chain(jax: Any, jnp: Any) -> Program:
    """600 elementwise operations, one after the other."""

    def build() -> Callable[..., Any]:
        def run(x: Any) -> Any:
            for _ in range(200):
                x = jnp.sin(x) * 1.01 + 0.1
            return jnp.sum(x)

        return run

    one, many = arrays(jnp, (8,), (4, 8))
    return Program(build, (one,), (many,), (0,))


def mlp_loss(jnp: Any) -> Callable[..., Any]:
    def predict(params: Any, inputs: Any) -> Any:
        outputs = inputs
        for weights, bias in params:
            outputs = jnp.dot(inputs, weights) + bias
            inputs = jnp.tanh(outputs)
        return outputs

    def loss(params: Any, inputs: Any, targets: Any) -> Any:
        return jnp.sum((predict(params, inputs) - targets) ** 2)

    return loss


def mlp(jax: Any, jnp: Any) -> Program:
    """Three dense layers with tanh and a squared error."""
    sizes = (16, 32, 32, 4)
    params = [tuple(arrays(jnp, (m, n), (n,))) for m, n in pairwise(sizes)]
    x, y, xs, ys = arrays(jnp, (8, 16), (8, 4), (4, 8, 16), (4, 8, 4))
    return Program(lambda: mlp_loss(jnp), (params, x, y), (params, xs, ys), (None, 0, 0))


LAYERS, LENGTH, WIDTH, HEADS, VOCABULARY = 12, 16, 32, 2, 64


def transformer(jax: Any, jnp: Any) -> Program:
    """A decoder of 12 layers: causal attention, GELU, layer norm before each block, next-token cross-entropy."""

    def norm(x: Any, scale: Any) -> Any:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * scale

    def softmax(x: Any) -> Any:
        weights = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
        return weights / jnp.sum(weights, axis=-1, keepdims=True)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def attention(x: Any, qkv: Any, out: Any) -> Any:
        heads = jnp.transpose(jnp.reshape(x @ qkv, (LENGTH, 3, HEADS, WIDTH // HEADS)), (1, 2, 0, 3))
        query, key, value = heads[0], heads[1], heads[2]
        scores = query @ jnp.transpose(key, (0, 2, 1)) / (WIDTH // HEADS) ** 0.5
        causal = jnp.arange(LENGTH)[:, None] >= jnp.arange(LENGTH)[None, :]
        mixed = softmax(jnp.where(causal, scores, -1e9)) @ value
        return jnp.reshape(jnp.transpose(mixed, (1, 0, 2)), (LENGTH, WIDTH)) @ out

    def build() -> Callable[..., Any]:
        def loss(params: Any, tokens: Any) -> Any:
            x = params["embedding"][tokens]
            for layer in params["layers"]:
                x = x + attention(norm(x, layer["norm1"]), layer["qkv"], layer["out"])
                x = x + gelu(norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"]
            scores = x[:-1] @ jnp.transpose(params["embedding"])
            chosen = tokens[1:, None] == jnp.arange(VOCABULARY)
            return -jnp.mean(jnp.sum(jnp.where(chosen, jnp.log(softmax(scores) + 1e-9), 0.0), axis=-1))

        return loss

    shapes = {
        "norm1": (WIDTH,),
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "norm2": (WIDTH,),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    layers = [dict(zip(shapes, arrays(jnp, *shapes.values(), seed=layer))) for layer in range(LAYERS)]
    params = {"embedding": arrays(jnp, (VOCABULARY, WIDTH))[0], "layers": layers}
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (4, LENGTH))
    one, many = jnp.asarray(tokens[0], dtype=jnp.int32), jnp.asarray(tokens, dtype=jnp.int32)
    return Program(build, (params, one), (params, many), (None, 0))


PROGRAMS = {"chain": chain, "mlp": mlp, "transformer": transformer}
