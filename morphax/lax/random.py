"""XLA's own random numbers. The functions of `random` are what programs want: their numbers do not change."""

from collections.abc import Sequence
from typing import Any

from morphax.lax.arguments import numbers
from morphax.lax.arguments import operand as _operand
from morphax.lax.convolution import ints
from morphax.ops import random_bits
from morphax.ops.random_bits import RandomAlgorithm
from morphax.support import dtypes


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = dtypes.BY_NAME["uint32"],
    algorithm: RandomAlgorithm | str = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """Random bits from a state, and the next state. Which bits, depends on the platform for RNG_DEFAULT.

    Args:
        key: the state: uint32 of shape (4,) or uint64 of shape (2,).
        shape: static ints.
        dtype: uint8, uint16, uint32 or uint64.
        algorithm: a RandomAlgorithm, or "default", "three_fry" or "philox".
        out_sharding: None.

    Returns:
        The next state, and the bits.

    >>> from morphax import numpy as jnp
    >>> state, bits = rng_bit_generator(jnp.array([1, 2, 3, 4], "uint32"), (2, 3))
    >>> bits.shape
    (2, 3)
    """
    name = "rng_bit_generator"
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported yet. Use device_put on the result.")
    chosen = RandomAlgorithm[f"RNG_{algorithm.upper()}"] if isinstance(algorithm, str) else RandomAlgorithm(algorithm)
    state, bits = random_bits.rng_bit_generator(
        _operand(name, key), shape=ints(name, "shape", shape), dtype=dtypes.named_dtype(dtype), algorithm=chosen,
        out_sharding=None,
    )  # fmt: skip
    return state, bits


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Any:
    """Random numbers, evenly from [a, b), without a key: every run gives others.

    Args:
        a: scalar.
        b: scalar of the same dtype.
        shape: static ints.

    >>> drawn = rng_uniform(2.0, 3.0, (4,))
    >>> bool((drawn >= 2).all() & (drawn < 3).all())
    True
    """
    low, high = numbers("rng_uniform", (a, b))
    return random_bits.rng_uniform(low, high, shape=ints("rng_uniform", "shape", shape))


rng_bit_generator_p = random_bits.rng_bit_generator
rng_uniform_p = random_bits.rng_uniform

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p"]
