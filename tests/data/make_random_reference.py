"""Records what real JAX draws, so that tests can check that seeds carry over without installing it.

Run once, with an interpreter that has jax 0.10.2, on the CPU:

    python tests/data/make_random_reference.py

It writes `random_reference.json` beside itself: {"jax": version, "records": [...]}, one record a line. A record is

    call          Python text over the names `random` (jax.random), `jnp` (jax.numpy), `np` and, where used, `k`
    seed          `k` is `random.key(seed)`
    x64           the value of jax_enable_x64
    partitionable the value of jax_threefry_partitionable
    dtype, shape  of the result
    values        the flat result: integers, booleans, or floats as `float.hex` text
or  error         the name of the exception in place of the last three

Integers, uniforms and all else that is exact in the bits must agree in every bit; what passes through log, erf_inv or
trigonometry may differ by a few ulp between versions of XLA and kinds of CPU.
"""

import json
import pathlib
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

SEEDS = (0, 1, 42, 2**31, 2**32 + 5, -1)
SMALL_SHAPES = ((), (1,), (3,), (4, 5))

# What the two settings of jax_threefry_partitionable answer differently.
KEY_CALLS = (
    "random.key_data(random.split(k))",
    "random.key_data(random.split(k, 5))",
    "random.key_data(random.split(k, (2, 3)))",
    "random.key_data(random.split(k, 1))",
    "random.key_data(random.fold_in(k, 0))",
    "random.key_data(random.fold_in(k, 7))",
    "random.key_data(random.fold_in(k, 2**31 + 3))",
    "random.key_data(random.fold_in(random.split(k, 3)[1], jnp.uint32(12)))",
    "random.key_data(random.clone(k))",
)

SAMPLER_CALLS = (
    "random.uniform(k, (3,), minval=-2.0, maxval=5.0)",
    "random.uniform(k, (4, 5), 'bfloat16', minval=1.0, maxval=3.0)",
    "random.uniform(k, (2, 3), minval=jnp.array([0.0, 1.0, 2.0]), maxval=jnp.array([[1.0], [9.0]]))",
    "random.uniform(k, (), minval=3.0, maxval=3.0)",
    "random.randint(k, (), 0, 10)",
    "random.randint(k, (4, 5), 0, 10)",
    "random.randint(k, (7,), -3, 4)",
    "random.randint(k, (7,), 5, 5)",
    "random.randint(k, (7,), 5, 2)",
    "random.randint(k, (7,), -(2**31), 2**31 - 1)",
    "random.randint(k, (7,), 0, 2**31 - 1, 'int32')",
    "random.randint(k, (9,), -128, 128, 'int8')",
    "random.randint(k, (9,), -128, 127, 'int8')",
    "random.randint(k, (9,), 0, 256, 'uint8')",
    "random.randint(k, (9,), 3, 200, 'uint8')",
    "random.randint(k, (9,), -1000, 1000, 'int16')",
    "random.randint(k, (9,), 0, 65536, 'uint16')",
    "random.randint(k, (9,), 0, 2**32 - 1, 'uint32')",
    "random.randint(k, (2, 3), jnp.array([0, 10, 100]), jnp.array([[5], [1000]]))",
    "random.permutation(k, 1)",
    "random.permutation(k, 10)",
    "random.permutation(k, 100)",
    "random.permutation(k, jnp.arange(12).reshape(3, 4))",
    "random.permutation(k, jnp.arange(12).reshape(3, 4), axis=1)",
    "random.permutation(k, jnp.arange(12).reshape(3, 4), axis=1, independent=True)",
    "random.permutation(k, jnp.arange(12).reshape(3, 4), independent=True)",
    "random.permutation(k, jnp.array([2.5, 0.5, 1.5]))",
    "random.choice(k, 10)",
    "random.choice(k, 10, (6,))",
    "random.choice(k, 10, (6,), replace=False)",
    "random.choice(k, 4, (6,), p=jnp.array([0.1, 0.2, 0.3, 0.4]))",
    "random.choice(k, 4, (3,), replace=False, p=jnp.array([0.1, 0.2, 0.3, 0.4]))",
    "random.choice(k, jnp.array([3.0, 1.0, 4.0, 1.5]), (2, 2))",
    "random.choice(k, jnp.arange(12).reshape(3, 4), (2,), axis=1)",
    "random.choice(k, jnp.arange(12).reshape(3, 4), (2,), replace=False, axis=1)",
    "random.bernoulli(k)",
    "random.bernoulli(k, 0.3, (10,))",
    "random.bernoulli(k, jnp.array([0.1, 0.5, 0.9]), (4, 3))",
    "random.bernoulli(k, 0.3, (10,), mode='high')",
    "random.rademacher(k, (10,))",
    "random.rademacher(k, (5,), 'float32')",
    "random.exponential(k, (4,))",
    "random.exponential(k, (4,), 'bfloat16')",
    "random.gumbel(k, (4,))",
    "random.gumbel(k, (4,), mode='high')",
    "random.gumbel(k, (4,), 'bfloat16')",
    "random.categorical(k, jnp.array([0.0, 1.0, -1.0, 2.0]))",
    "random.categorical(k, jnp.array([0.0, 1.0, -1.0, 2.0]), shape=(9,))",
    "random.categorical(k, jnp.log(jnp.arange(1.0, 13.0).reshape(3, 4)))",
    "random.categorical(k, jnp.log(jnp.arange(1.0, 13.0).reshape(3, 4)), axis=0)",
    "random.categorical(k, jnp.log(jnp.arange(1.0, 13.0).reshape(3, 4)), shape=(2, 3))",
    "random.categorical(k, jnp.arange(6.0), shape=(3,), replace=False)",
    "random.truncated_normal(k, -1.0, 2.0, (4,))",
    "random.truncated_normal(k, jnp.array([-2.0, 0.0]), jnp.array([0.0, 3.0]))",
    "random.truncated_normal(k, -1.0, 2.0, (4,), 'bfloat16')",
    "random.laplace(k, (4,))",
    "random.logistic(k, (4,))",
    "random.cauchy(k, (4,))",
    "random.pareto(k, 2.0, (4,))",
    "random.rayleigh(k, 1.5, (4,))",
    "random.weibull_min(k, 2.0, 1.5, (4,))",
    "random.maxwell(k, (4,))",
    "random.double_sided_maxwell(k, 0.5, 2.0, (4,))",
    "random.geometric(k, 0.3, (6,))",
    "random.triangular(k, 0.0, 0.25, 1.0, (4,))",
    "random.lognormal(k, 0.5, (4,))",
    "random.wald(k, 2.0, (4,))",
    "random.gamma(k, 2.5, (4,))",
    "random.gamma(k, jnp.array([0.1, 1.0, 30.0]))",
    "random.loggamma(k, 0.5, (4,))",
    "random.beta(k, 2.0, 3.0, (4,))",
    "random.dirichlet(k, jnp.array([1.0, 2.0, 3.0]), (2,))",
    "random.chisquare(k, 3.0, (4,))",
    "random.t(k, 4.0, (4,))",
    "random.f(k, 5.0, 7.0, (4,))",
    "random.generalized_normal(k, 1.5, (4,))",
    "random.ball(k, 3, shape=(2,))",
    "random.orthogonal(k, 3)",
    "random.poisson(k, 2.5, (6,))",
    "random.poisson(k, 25.0, (6,))",
    "random.binomial(k, 10.0, 0.3, (6,))",
    "random.binomial(k, 100.0, 0.4, (6,))",
    "random.multinomial(k, 20.0, jnp.array([0.2, 0.3, 0.5]))",
    "random.multivariate_normal(k, jnp.array([1.0, 2.0]), jnp.array([[2.0, 0.5], [0.5, 1.0]]), (3,))",
)

# Meaningful only with jax_enable_x64: without it JAX narrows the 64-bit types.
WIDE_CALLS = (
    "random.randint(k, (7,), -(2**63), 2**63 - 1, 'int64')",
    "random.randint(k, (7,), 0, 10**12, 'int64')",
    "random.randint(k, (7,), 0, 10, 'int32')",
    "random.randint(k, (7,), 0, 2**63, 'uint64')",
    "random.uniform(k, (3,), 'float64', minval=-2.0, maxval=5.0)",
    "random.exponential(k, (4,), 'float64')",
    "random.gumbel(k, (4,), 'float64')",
    "random.truncated_normal(k, -1.0, 2.0, (4,), 'float64')",
    "random.normal(k, (3,), 'complex128')",
)

# Seeds of the kinds that programs pass.
SEED_CALLS = (
    "random.key_data(random.key(np.int64(-1)))",
    "random.key_data(random.key(np.uint32(4294967295)))",
    "random.key_data(random.key(np.int32(-5)))",
    "random.key_data(random.key(jnp.int32(-5)))",
    "random.key_data(random.key(jnp.uint8(200)))",
    "random.key_data(random.key(True))",
    "random.key_data(random.key(1.0))",
    "random.key_data(random.key(2**63 - 1))",
    "random.key_data(random.key(-(2**63)))",
    "random.key_data(random.key(2**63))",
    "random.key_data(random.key(2**64))",
    "random.key_data(random.wrap_key_data(jnp.array([3, 4], 'uint32')))",
)


def bits_calls(x64: bool) -> list[str]:
    """Calls of `random.bits` over dtypes and shapes, odd sizes included."""
    dtypes = ("uint8", "uint16", "uint32") + ("uint64",) * x64
    return [f"random.bits(k, {shape}, '{d}')" for d in dtypes for shape in (*SMALL_SHAPES, (0,), (2, 0, 3), (1001,))]


def float_calls(x64: bool) -> list[str]:
    """Calls of `uniform` and `normal` over dtypes and shapes."""
    dtypes = ("float32", "bfloat16", "float16") + ("float64",) * x64
    samplers = ("uniform", "normal")
    calls = [f"random.{s}(k, {shape}, '{d}')" for s in samplers for d in dtypes for shape in (*SMALL_SHAPES, (33,))]
    return [*calls, "random.normal(k, (3,), 'complex64')"]


def plain(x: np.ndarray) -> list[Any]:
    """The entries of `x`, flat, as JSON can hold them without loss; complex entries as re, im, re, im."""
    if np.iscomplexobj(x):
        x = np.stack([x.real, x.imag], axis=-1)
    if x.dtype.kind in "bui":
        return x.ravel().tolist()
    return [float(entry).hex() for entry in x.ravel()]


def record(call: str, seed: int, *, x64: bool, partitionable: bool) -> dict[str, Any]:
    """One line of the file: the call, its setting, its result."""
    setting = {"call": call, "seed": seed, "x64": x64, "partitionable": partitionable}
    try:
        k = random.key(seed) if "(k" in call else None
        result = eval(call, {"random": random, "jnp": jnp, "np": np, "k": k})
    except (OverflowError, TypeError, ValueError) as error:
        return setting | {"error": type(error).__name__}
    return setting | {"dtype": str(result.dtype), "shape": list(result.shape), "values": plain(np.asarray(result))}


def calls_of(x64: bool) -> list[tuple[str, int]]:
    """Every (call, seed) of the default setting."""
    seeds = [(f"random.{f}({seed})", seed) for seed in SEEDS for f in ("PRNGKey",)]
    seeds += [(f"random.key_data(random.key({seed}))", seed) for seed in SEEDS]
    keys = [(call, seed) for seed in (0, 42, -1) for call in KEY_CALLS]
    bits = [(call, seed) for seed in (0, 42) for call in bits_calls(x64) if seed == 42 or "1001" not in call]
    samplers = SAMPLER_CALLS + WIDE_CALLS * x64
    rest = [(call, 42) for call in (*float_calls(x64), *samplers)]
    return [*seeds, *((call, 0) for call in SEED_CALLS), *keys, *bits, *rest]


def main() -> None:
    warnings.simplefilter("ignore")
    records = []
    for x64 in (False, True):
        jax.config.update("jax_enable_x64", x64)
        jax.config.update("jax_threefry_partitionable", True)
        records += [record(call, seed, x64=x64, partitionable=True) for call, seed in calls_of(x64)]
        jax.config.update("jax_threefry_partitionable", False)
        sequential = [call for call in (*KEY_CALLS, *bits_calls(x64)) if "1001" not in call or "uint32" in call]
        records += [record(call, 42, x64=x64, partitionable=False) for call in sequential]
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in records)
    path = pathlib.Path(__file__).with_name("random_reference.json")
    path.write_text(f'{{"jax":"{jax.__version__}","records":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
