"""Keys: made from seeds, split, folded with numbers; and how the samplers take them.

A key is an Array of a key dtype, or, as in older programs, an array of raw uint32 words of the default generator.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.numpy import promotion
from morphax.ops import elementwise as ew
from morphax.ops import family, random_bits
from morphax.runtime import array, backend
from morphax.runtime.jit import program
from morphax.support import config, dtypes

KeyDType = dtypes.KeyDType
_WORD = dtypes.uint32
_OUTSIDE = base()

# ---- what a key is ---------------------------------------------------------------------------------------------------


def _refuse(name: str, found: str) -> TypeError:
    return TypeError(
        f"{name}: a random key is wanted, got {found}. Make one with random.key(seed), or pass raw key data: uint32 of "
        f"shape (..., {default_dtype().key_shape[0]})."
    )


def default_dtype() -> KeyDType:
    """The dtype of keys of the generator in use where none is named."""
    return dtypes.key_dtype(config.default_prng_impl.value)


def _check_raw(name: str, words: Any) -> KeyDType:
    """Refuse what is neither key nor raw key data; the dtype that raw data stands for."""
    try:
        dtype, shape = words.dtype, words.shape
    except AttributeError:
        raise _refuse(name, f"{words!r:.60} of type {type(words).__name__}") from None
    key = default_dtype()
    if dtype != _WORD:
        raise _refuse(name, f"an array of dtype {dtype}")
    if tuple(shape[-1:]) != key.key_shape:
        raise _refuse(name, f"uint32 of shape {tuple(shape)}")
    policy = config.legacy_prng_key.value
    if policy != "allow":
        _legacy(name, policy)
    return key


def _legacy(name: str, policy: str) -> None:
    message = f"{name}: raw uint32 keys are refused by legacy_prng_key='{policy}'. Use random.key or wrap_key_data."
    if policy == "error":
        raise ValueError(message)
    warnings.warn(message, UserWarning, stacklevel=4)


def check_single(name: str, shape: tuple[int, ...]) -> None:
    """Refuse batches of keys.

    Raises:
        ValueError: `shape` is not ().
    """
    if shape:
        raise ValueError(
            f"{name} accepts a single key, but was given keys of shape {shape}. Use vmap for batching: "
            f"vmap({name})(keys)."
        )


def typed(name: str, key: Any) -> tuple[Any, bool]:
    """A key or keys of a key dtype, and whether they were given as raw words."""
    try:
        if isinstance(key.dtype, KeyDType):
            return key, False
    except AttributeError:
        pass
    dtype = _check_raw(name, key)
    return random_bits.random_wrap(key, impl=dtype.impl), True


def single(name: str, key: Any) -> tuple[Any, bool]:
    """As `typed`, for one key."""
    key, raw = typed(name, key)
    check_single(name, key.aval.shape)
    return key, raw


def _words(name: str, key: Any) -> tuple[Any, KeyDType, bool]:
    """The words of one key that is not traced, its dtype, and whether it was given as raw words."""
    if key.__class__ is array.KeyArray:
        aval = key.aval
        if aval.shape:
            check_single(name, aval.shape)
        return key.base, aval.dtype, False
    dtype = _check_raw(name, key)
    if len(key.shape) > 1:
        check_single(name, tuple(key.shape[:-1]))
    return key, dtype, True


# ---- samplers --------------------------------------------------------------------------------------------------------


def sampler(*static: str, exact: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for functions (key, *operands, **parameters) that draw: outside transforms they run as one program.

    The decorated function takes the public name first, for messages, and raw words as well as keys. The program takes
    the words, since C++ dispatches plain arrays in 4 us, and Python those of key dtypes in 40.

    Args:
        static: names of the parameters.
        exact: draw small arrays with the rounding of large ones; needless where nothing is rounded, and then the
            program compiles in two thirds of the time.
    """

    def decorate(draw: Callable[..., Any]) -> Callable[..., Any]:
        def with_words(words: Any, *operands: Any, impl: str, **parameters: Any) -> Any:
            return draw(random_bits.random_wrap(words, impl=impl), *operands, **parameters)

        with_words.__name__ = draw.__name__
        compiled = program("impl", *static, exact=exact)(with_words)

        def call(name: str, key: Any, *operands: Any, **parameters: Any) -> Any:
            if current.trace is _OUTSIDE:
                words, dtype, _ = _words(name, key)
                return compiled(words, *operands, impl=dtype.impl, **parameters)
            return draw(single(name, key)[0], *operands, **parameters)

        return call

    return decorate


@program("impl", "shape")
def _split_words(words: Any, *, impl: str, shape: tuple[int, ...]) -> Any:
    keys = random_bits.random_split(random_bits.random_wrap(words, impl=impl), shape=shape)
    return random_bits.random_unwrap(keys)


@program("impl")
def _fold_words(words: Any, data: Any, *, impl: str) -> Any:
    key = random_bits.random_fold_in(random_bits.random_wrap(words, impl=impl), promotion.as_dtype(data, _WORD))
    return random_bits.random_unwrap(key)


@program("impl")
def _seed_words(seed: Any, *, impl: str) -> Any:
    return random_bits.random_unwrap(random_bits.random_seed(seed, impl=impl))


# ---- making keys -----------------------------------------------------------------------------------------------------


def _dtype_of(name: str, impl: Any, dtype: Any = None) -> KeyDType:
    if impl is None and dtype is None:
        return default_dtype()
    if dtype is not None:
        if impl is not None:
            raise ValueError(f"{name}: give impl or dtype, not both; they are {impl!r} and {dtype!r}.")
        if not isinstance(dtype, KeyDType):
            raise TypeError(f"{name}: dtype must be a key dtype, got {dtype!r}. random.key_dtype() names them.")
        return dtype
    if isinstance(impl, KeyDType):
        return impl
    if not isinstance(impl, str):
        raise TypeError(f"{name}: impl must be the name of a generator, got {impl!r} of type {type(impl).__name__}.")
    return dtypes.key_dtype(impl)


_HOST_INTEGERS = (bool, int, np.integer, np.bool_)


def _host_seed(name: str, seed: Any) -> np.generic:
    """A seed that is no array yet, as a literal: int32, or int64 where that is the default and the seed's own width."""
    value = int(seed) + config.random_seed_offset.value
    if not -(2**63) <= value < (2**63 if isinstance(seed, int) else 2**64):
        raise OverflowError(f"{name}: the seed {value} does not fit 64 bits. Reduce it: seed % 2**63.")
    if config.enable_x64.value and (isinstance(seed, int) or seed.dtype.itemsize == 8):
        return np.uint64(value % 2**64).astype(np.int64)
    return np.uint32(value % 2**32).astype(np.int32)


def _seeded(name: str, seed: Any, dtype: KeyDType) -> Any:
    if seed.__class__ is np.ndarray and not seed.shape:
        seed = seed[()]
    if isinstance(seed, _HOST_INTEGERS):
        literal = _host_seed(name, seed)
        outside = current.trace is _OUTSIDE
        return _from_literal(literal, dtype) if outside else random_bits.random_seed(literal, impl=dtype.impl)
    try:
        aval = avals.typeof(seed)
    except TypeError:
        raise TypeError(
            f"{name}: the seed must be an integer, got {seed!r:.60} of type {type(seed).__name__}."
        ) from None
    if aval.shape or not dtypes.is_integer(aval.dtype):
        _refuse_seed(name, aval)
    if config.random_seed_offset.value:
        seed = ew.add(seed, family.like(seed, config.random_seed_offset.value))
    if current.trace is _OUTSIDE:
        return array.KeyArray(dtype, _seed_words(seed, impl=dtype.impl))
    return random_bits.random_seed(seed, impl=dtype.impl)


def _refuse_seed(name: str, aval: Any) -> None:
    if isinstance(aval.dtype, KeyDType):
        raise TypeError(f"{name}: accepts a scalar seed, but was given a random key. Use it as it is.")
    if aval.shape:
        raise TypeError(
            f"{name}: accepts a scalar seed, but was given an array of shape {aval.shape}. Use vmap for batching."
        )
    raise TypeError(f"{name}: the seed must be an integer, got {aval}. Convert it: seed.astype('int32').")


def _from_literal(seed: np.generic, dtype: KeyDType) -> Any:
    # On the host: a key needs no program.
    bits = int(seed) % 2 ** (8 * seed.dtype.itemsize)
    pair = (bits >> 32, bits & 0xFFFFFFFF)
    words = np.array(pair if dtype.key_shape == (2,) else pair + pair, np.uint32)
    aval = avals.ShapedArray(words.shape, _WORD)
    return array.KeyArray(dtype, array.put(words, aval, backend.default_device(), committed=False))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """A random key from an integer seed.

    Args:
        seed: an integer, scalar. Python's are taken modulo 2**64 under `enable_x64`, else modulo 2**32.
        impl: the generator, "threefry2x32", "rbg" or "unsafe_rbg"; the flag `default_prng_impl` names the default.
        dtype: the key dtype, instead of `impl`.

    Returns:
        an Array of a key dtype, shape ().

    Raises:
        TypeError: `seed` is not an integer, or not scalar.
        OverflowError: `seed` does not fit 64 bits.

    >>> from morphax import random
    >>> random.key(0).dtype
    key<fry>
    """
    return _seeded("key", seed, _dtype_of("key", impl, dtype))


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A random key from an integer seed, as raw uint32 words; `key` makes ones with a dtype of their own.

    >>> from morphax import random
    >>> random.PRNGKey(42).tolist()
    [0, 42]
    """
    made = _seeded("PRNGKey", seed, _dtype_of("PRNGKey", impl))
    return made if config.enable_custom_prng.value else key_data(made)


def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The dtype of keys of a generator, given by name, or of the default one.

    >>> key_dtype("rbg")
    key<rbg>
    """
    return _dtype_of("key_dtype", impl_spec)


def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to."""
    try:
        if isinstance(keys.dtype, KeyDType):
            return keys.dtype.impl
    except AttributeError:
        pass
    return _check_raw("key_impl", keys).impl


def key_data(keys: Any) -> Any:
    """The words of keys: uint32, shape (*keys.shape, words of a key).

    >>> from morphax import random
    >>> random.key_data(random.key(7)).tolist()
    [0, 7]
    """
    if keys.__class__ is array.KeyArray and current.trace is _OUTSIDE:
        return keys.base
    keys, _ = typed("key_data", keys)
    return random_bits.random_unwrap(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """Keys of the given words, the inverse of `key_data`.

    Args:
        key_bits_array: uint32, shape (..., words of a key).
        impl: the generator; see `key`.
        dtype: the key dtype, instead of `impl`.

    Raises:
        TypeError: other dtype or shape.
    """
    kind = _dtype_of("wrap_key_data", impl, dtype)
    try:
        given, shape = key_bits_array.dtype, tuple(key_bits_array.shape)
    except AttributeError:
        raise _refuse("wrap_key_data", f"{key_bits_array!r:.60}") from None
    if given != _WORD or shape[-1:] != kind.key_shape:
        raise TypeError(
            f"wrap_key_data: the words of {kind.name} are uint32 of shape (..., {kind.key_shape[0]}); got {given} of "
            f"shape {shape}."
        )
    if key_bits_array.__class__ is array.ArrayImpl and current.trace is _OUTSIDE:
        return array.KeyArray(kind, key_bits_array)
    return random_bits.random_wrap(key_bits_array, impl=kind.impl)


# ---- keys from keys --------------------------------------------------------------------------------------------------


def split_shape(num: Any) -> tuple[int, ...]:
    """`num` of `split` as a shape."""
    entries = tuple(num) if isinstance(num, (tuple, list)) else (num,)
    try:
        shape = tuple([n.__index__() for n in entries])
    except AttributeError:
        raise TypeError(f"split: num must be an integer or a tuple of integers; it is {num!r}.") from None
    if any(n < 0 for n in shape):
        raise ValueError(f"split: num must not be negative; it is {num!r}.")
    return shape


def split(key: Any, num: Any = 2) -> Any:
    """New keys from a key, which should not be used any more.

    Args:
        key: one key, or raw words.
        num: how many: an int, or a shape.

    Returns:
        keys of shape (num,), or `num` if that is a tuple; raw words if `key` was.

    >>> from morphax import random
    >>> random.split(random.key(0), 3).shape
    (3,)
    """
    shape = split_shape(num)
    if current.trace is _OUTSIDE:
        words, dtype, raw = _words("split", key)
        made = _split_words(words, impl=dtype.impl, shape=shape)
        return made if raw else array.KeyArray(dtype, made)
    key, raw = single("split", key)
    made = random_bits.random_split(key, shape=shape)
    return random_bits.random_unwrap(made) if raw else made


def _folded(data: Any) -> Any:
    """`data` of `fold_in` as a uint32 literal where it is a Python number."""
    if isinstance(data, (bool, int)):
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: Python integer {data} out of bounds for uint32. Reduce it: data % 2**32.")
        return np.uint32(data)
    data = promotion.checked("fold_in", data)
    shape = avals.typeof(data).shape
    if shape:
        raise TypeError(f"fold_in: accepts a scalar, but was given an array of shape {shape}. Use vmap for batching.")
    return data


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and a number.

    Args:
        key: one key, or raw words.
        data: a scalar, taken as uint32.

    Raises:
        OverflowError: a Python int outside [0, 2**32).

    >>> from morphax import random
    >>> key = random.key(0)
    >>> keys = [random.fold_in(key, epoch) for epoch in range(10)]
    """
    data = _folded(data)
    if current.trace is _OUTSIDE:
        words, dtype, raw = _words("fold_in", key)
        made = _fold_words(words, data, impl=dtype.impl)
        return made if raw else array.KeyArray(dtype, made)
    key, raw = single("fold_in", key)
    if data.__class__ is not np.uint32:
        data = promotion.as_dtype(data, _WORD)
    made = random_bits.random_fold_in(key, data)
    return random_bits.random_unwrap(made) if raw else made


def clone(key: Any) -> Any:
    """The same key, for programs that mean to use it twice."""
    key, raw = typed("clone", key)
    made = random_bits.random_clone(key)
    return random_bits.random_unwrap(made) if raw else made
