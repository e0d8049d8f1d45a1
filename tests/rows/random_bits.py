"""Rows of the operations on random keys. Their operands are words, since keys have no NumPy form."""

import numpy as np
from samples import Sample, put, zeros

from morphax.ops import random_bits as rb

FRY = "threefry2x32"


def _any_word(rng, shape, dtype):
    return rng.integers(0, 2**32, shape)


def _key(words, impl=FRY):
    return rb.random_wrap(words, impl=impl)


def _words(keys):
    return rb.random_unwrap(keys)


def _rotated(x, count):
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


def threefry(k0, k1, x0, x1):
    """Threefry-2x32 with 20 rounds, after the paper's appendix."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for step in range(20):
        x0 = x0 + x1
        x1 = _rotated(x1, (13, 15, 26, 6, 17, 29, 16, 24)[step % 8]) ^ x0
        if step % 4 == 3:
            block = step // 4 + 1
            x0, x1 = x0 + keys[block % 3], x1 + keys[(block + 1) % 3] + np.uint32(block)
    return x0, x1


def _drawn(words, size):
    k0, k1 = words[..., :1], words[..., 1:]
    return threefry(k0, k1, np.uint32(0), np.arange(size, dtype=np.uint32))


def _bits(words, size, width):
    high, low = _drawn(words, size)
    if width == 64:
        return (high.astype(np.uint64) << np.uint64(32)) | low
    return (high ^ low).astype(f"uint{width}")


def _fold(words, data):
    return np.stack(threefry(words[..., 0], words[..., 1], np.uint32(0), data), -1)


WORDS = {"dtypes": ("uint32",), "domain": _any_word, "tol": 0}
KEYS = {"shapes": (((2,),), ((3, 2),)), **WORDS}

ROWS = (
    Sample(
        "threefry2x32", rb.threefry2x32, threefry, shapes=[((2, 3),) * 4, ((), (), (5,), (5,)), ((),) * 4], **WORDS,
        errors=[
            (lambda: rb.threefry2x32(*[zeros(2, dtype="int32")] * 4), TypeError, "must be uint32"),
            (lambda: rb.threefry2x32(*[zeros(n, dtype="uint32") for n in (2, 2, 2, 3)]), TypeError, "equal shapes"),
        ],
    ),
    Sample(
        "random_seed", lambda x: _words(rb.random_seed(x, impl=FRY)),
        lambda x: np.stack([np.zeros_like(x).astype("uint32"), x.astype(np.uint32)], -1),
        shapes=[((),), ((3,),)], dtypes=("int32", "uint32", "uint8", "int8"), tol=0,
        errors=[
            (lambda: rb.random_seed(zeros(), impl=FRY), TypeError, "must be integers"),
        ],
    ),
    Sample(
        "random_seed: wide", lambda x: _words(rb.random_seed(x, impl="rbg")),
        lambda x: np.stack([x.astype(np.uint64) >> np.uint64(32), x.astype(np.uint64) & np.uint64(2**32 - 1)] * 2, -1)
        .astype(np.uint32),
        shapes=[((),), ((3,),)], dtypes=("int64", "uint64"), tol=0,
    ),
    Sample(
        "random_split", lambda w: _words(rb.random_split(_key(w), shape=(4,))),
        lambda w: np.stack(_drawn(w, 4), -1), **KEYS,
        errors=[(lambda: rb.random_split(zeros(2), shape=(2,)), TypeError, "needs random keys")],
    ),
    Sample(
        "random_split: shape", lambda w: _words(rb.random_split(_key(w), shape=(2, 3))),
        lambda w: np.stack(_drawn(w, 6), -1).reshape(*w.shape[:-1], 2, 3, 2), **KEYS,
    ),
    Sample(
        "random_fold_in", lambda w, data: _words(rb.random_fold_in(_key(w), data)), _fold,
        shapes=[((2,), ()), ((3, 2), (3,))], **WORDS,
        errors=[
            (lambda: rb.random_fold_in(zeros(2), put(np.uint32(0))), TypeError, "needs random keys"),
            (lambda: rb.random_fold_in(_key(zeros(2, dtype="uint32")), zeros()), TypeError, "must be uint32"),
        ],
    ),
    *[
        Sample(
            f"random_bits: {width}" if width != 32 else "random_bits",
            lambda w, width=width: rb.random_bits(_key(w), bit_width=width, shape=(5,)),
            lambda w, width=width: _bits(w, 5, width), **KEYS,
            errors=[
                (lambda: rb.random_bits(_key(zeros(2, dtype="uint32")), bit_width=7, shape=()), TypeError, "8, 16"),
            ],
        )
        for width in (8, 16, 32, 64)
    ],
    Sample(
        "random_bits: axes", lambda w: rb.random_bits(_key(w), bit_width=32, shape=(3, 1, 2)),
        lambda w: _bits(w, 6, 32).reshape(*w.shape[:-1], 3, 1, 2), **KEYS,
    ),
    Sample("random_bits: none", lambda w: rb.random_bits(_key(w), bit_width=32, shape=()),
           lambda w: _bits(w, 1, 32)[..., 0], **KEYS),
    Sample("random_bits: empty", lambda w: rb.random_bits(_key(w), bit_width=32, shape=(2, 0)),
           lambda w: np.zeros((*w.shape[:-1], 2, 0), np.uint32), **KEYS),
    Sample(
        "random_wrap", lambda w: _words(_key(w)), lambda w: w, **KEYS,
        errors=[
            (lambda: _key(zeros(3, dtype="uint32")), TypeError, "of shape (..., 2)"),
            (lambda: _key(zeros(2)), TypeError, "are uint32"),
            (lambda: _key(zeros(dtype="uint32")), TypeError, "of shape"),
        ],
    ),
    Sample("random_unwrap", lambda w: _words(_key(w)), lambda w: w, **KEYS,
           errors=[(lambda: _words(zeros(2)), TypeError, "needs random keys")]),
    Sample("random_clone", lambda w: _words(rb.random_clone(_key(w))), lambda w: w, **KEYS,
           errors=[(lambda: rb.random_clone(zeros(2)), TypeError, "needs random keys")]),
    Sample(
        "rng_bit_generator",
        lambda s: rb.rng_bit_generator(
            s, shape=(3,), dtype=np.dtype("uint32"), algorithm=rb.RandomAlgorithm.RNG_DEFAULT, out_sharding=None
        ),
        None, shapes=[((4,),)], **WORDS,
        gaps={
            "value": "the algorithm is the platform's own; tests/random compares it with recorded draws",
            "vmap": "a batch is drawn from its first state, as in JAX",
        },
        errors=[
            (lambda: rb.rng_bit_generator(
                zeros(3, dtype="uint32"), shape=(), dtype=np.dtype("uint32"),
                algorithm=rb.RandomAlgorithm.RNG_DEFAULT, out_sharding=None), TypeError, "uint32[4] or uint64[2]"),
            (lambda: rb.rng_bit_generator(
                zeros(4, dtype="uint32"), shape=(), dtype=np.dtype("int32"),
                algorithm=rb.RandomAlgorithm.RNG_DEFAULT, out_sharding=None), TypeError, "dtype must be uint8"),
        ],
    ),
)  # fmt: skip
