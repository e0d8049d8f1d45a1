"""Random bits: keys, how they are made from seeds and from each other, and the bits that a key stands for.

The default generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
1, 2, 3; SC 2011): a function of a key and a counter, both two words. Counters and splitting are those of JAX, bit for
bit, so that seeds carry over.
"""

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.jaxpr import Eqn, Jaxpr, Var
from morphax.ir.primitive import Primitive
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.support import config, dtypes

_WORD = dtypes.uint32
_DOUBLE = dtypes.uint64
_SEQUENTIAL_LIMIT = 2**32 - 1

# ---- unsigned words, for lowering ------------------------------------------------------------------------------------


class _Words:
    """An MLIR value of unsigned integers with Python's operators; ints stand for constants."""

    __slots__ = ("aval", "low", "value")

    def __init__(self, low: Any, value: Any, aval: ShapedArray):
        self.low = low
        self.value = value
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    def _emit(
        self, name: str, operands: Sequence[Any], shape: tuple[int, ...], dtype: Any = None, **attributes: str
    ) -> "_Words":
        out = ShapedArray(shape, dtype or self.aval.dtype)
        return _Words(self.low, self.low.op(f"stablehlo.{name}", (out,), operands, attributes)[0], out)

    def _with(self, name: str, other: "_Words | int") -> "_Words":
        if isinstance(other, int):
            operand = self.low.constant(other, self.aval)
        else:
            operand = other.value
        return _Words(self.low, self.low.op(name, (self.aval,), (self.value, operand))[0], self.aval)

    def __add__(self, other: "_Words | int") -> "_Words":
        return self._with("stablehlo.add", other)

    def __mul__(self, other: int) -> "_Words":
        return self._with("stablehlo.multiply", other)

    def __xor__(self, other: "_Words | int") -> "_Words":
        return self._with("stablehlo.xor", other)

    def __or__(self, other: "_Words | int") -> "_Words":
        return self._with("stablehlo.or", other)

    def __and__(self, other: int) -> "_Words":
        return self._with("stablehlo.and", other)

    def __lshift__(self, count: int) -> "_Words":
        return self._with("stablehlo.shift_left", count)

    def __rshift__(self, count: "_Words | int") -> "_Words":
        return self._with("stablehlo.shift_right_logical", count)

    def rotated(self, count: int) -> "_Words":
        """Each word's bits moved up by `count`, those that leave coming back below."""
        return (self << count) | (self >> (32 - count))

    def reshape(self, shape: tuple[int, ...]) -> "_Words":
        return self if shape == self.shape else self._emit("reshape", (self.value,), shape)

    def convert(self, dtype: Any) -> "_Words":
        return self if dtype == self.aval.dtype else self._emit("convert", (self.value,), self.shape, dtype)

    def spread(self, shape: tuple[int, ...], dims: Sequence[int]) -> "_Words":
        """Broadcast to `shape`, the axes going to `dims`."""
        return _Words(
            self.low, self.low.broadcast(self.value, self.aval, shape, dims), ShapedArray(shape, self.aval.dtype)
        )

    def part(self, axis: int, start: int, limit: int, stride: int = 1) -> "_Words":
        """The slice [start:limit:stride] of one axis."""
        axis %= len(self.shape)
        starts = [0] * len(self.shape)
        limits = list(self.shape)
        strides = [1] * len(self.shape)
        starts[axis], limits[axis], strides[axis] = start, limit, stride
        shape = list(self.shape)
        shape[axis] = -(-(limit - start) // stride)
        return self._emit(
            "slice", (self.value,), tuple(shape), start_indices=family.ints(starts), limit_indices=family.ints(limits),
            strides=family.ints(strides),
        )  # fmt: skip

    def entry(self, position: int) -> "_Words":
        """The entries at one position of the last axis, which goes."""
        return self.part(-1, position, position + 1).reshape(self.shape[:-1])

    def iota(self, shape: tuple[int, ...], axis: int) -> "_Words":
        """Positions along one axis, of this dtype."""
        return self._emit("iota", (), shape, iota_dimension=f"{axis} : i64")


def _joined(parts: Sequence[_Words], axis: int) -> _Words:
    """The parts one after the other along an axis."""
    first = parts[0]
    axis %= len(first.shape)
    shape = list(first.shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    return first._emit("concatenate", [p.value for p in parts], tuple(shape), dimension=f"{axis} : i64")


def _stacked(parts: Sequence[_Words]) -> _Words:
    """The parts side by side in a new last axis."""
    return _joined([p.reshape((*p.shape, 1)) for p in parts], -1)


# ---- Threefry --------------------------------------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _lower_threefry(low: Any, ins: Any, outs: Any, *operands: Any) -> list[Any]:
    # Unrolled: 20 rounds are one fused loop, 4.7 times as fast on the CPU as a rolled one.
    shape = outs[0].shape
    k0, k1, x0, x1 = (_Words(low, x, ShapedArray(a.shape, _WORD)) for x, a in zip(operands, ins, strict=True))
    if k0.shape != k1.shape:
        k0, k1 = (k if k.shape else k.spread(shape, ()) for k in (k0, k1))
    x0, x1 = (x if x.shape else x.spread(shape, ()) for x in (x0, x1))
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)

    def injected(x: _Words, key: _Words) -> _Words:
        return x + (key if key.shape else key.spread(shape, ()))

    x0, x1 = injected(x0, k0), injected(x1, k1)
    for block in range(5):
        for count in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = x1.rotated(count) ^ x0
        x0 = injected(x0, keys[(block + 1) % 3])
        x1 = injected(x1, keys[(block + 2) % 3] + (block + 1))
    return [x0.value, x1.value]


def _threefry_type(*operands: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    shape = family.common_shape("threefry2x32", operands)
    dtype = family.common_dtype("threefry2x32", operands)
    if dtype != _WORD:
        raise TypeError(f"threefry2x32: key and counter must be uint32; they are {dtype.name}. Convert them.")
    out = family.joined("threefry2x32", operands, shape, dtype).update(weak_type=False)
    return out, out


_NO_DERIVATIVE = "keys and bits are discrete"

threefry2x32 = Primitive(
    "threefry2x32",
    type=_threefry_type,
    lower=_lower_threefry,
    nondiff=_NO_DERIVATIVE,
    elementwise=True,
    multiple=True,
)


@functools.lru_cache(256)
def _threefry_program(key_shape: tuple[int, ...], shape: tuple[int, ...]) -> Jaxpr:
    ins = [Var(ShapedArray(s, _WORD)) for s in (key_shape, key_shape, shape, shape)]
    outs = [Var(ShapedArray(shape, _WORD)) for _ in range(2)]
    return Jaxpr((), ins, [Eqn(threefry2x32, ins, {}, outs)], outs, debug_name="threefry2x32")


def _threefry(keys: _Words, x0: _Words, x1: _Words) -> tuple[_Words, _Words]:
    """Both words of each counter (x0, x1), enciphered; keys of shape (..., 2), counters of shape (..., *any)."""
    batch = keys.shape[:-1]
    shape = x0.shape
    pair = [keys.entry(0), keys.entry(1)]
    if batch:
        pair = [k.spread(shape, range(len(batch))) for k in pair]
    # A function of the module: the 120 operations are lowered once for each shape, however many draws there are.
    program = _threefry_program(pair[0].shape, shape)
    outs = keys.low.call(program, [p.value for p in (*pair, x0, x1)], "threefry2x32")
    return _Words(keys.low, outs[0], x0.aval), _Words(keys.low, outs[1], x0.aval)


def _counters(words: _Words, batch: tuple[int, ...], shape: tuple[int, ...]) -> tuple[_Words, _Words]:
    """High and low words of the row-major positions in `shape`, the same for each of a batch.

    Sums of one iota for each axis, so that every shard of a sharded result makes its own.
    """
    full = (*batch, *shape)
    wide = math.prod(shape) > 2**32
    source = words if not wide else _Words(words.low, None, ShapedArray((), _DOUBLE))
    total = None
    stride = 1
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] != 1:
            along = source.iota(full, len(batch) + axis)
            along = along * stride if stride != 1 else along
            total = along if total is None else total + along
        stride *= max(shape[axis], 1)
    aval = ShapedArray(full, _WORD)
    zero = _Words(words.low, words.low.constant(0, aval), aval)
    if total is None:
        return zero, zero
    return ((total >> 32).convert(_WORD), total.convert(_WORD)) if wide else (zero, total)


def _sequence(keys: _Words, count: int) -> _Words:
    """`count` words from each key: counters 0, 1, ... enciphered in pairs (i, i + half)."""
    if count > _SEQUENTIAL_LIMIT:
        raise NotImplementedError(
            f"random_bits: {count} words from one key need threefry_partitionable=True, the default: older counters "
            "end at 2**32."
        )
    batch = keys.shape[:-1]
    axis = len(batch)
    half = (count + 1) // 2
    first = keys.iota((*batch, half), axis)
    second = first + half
    if count % 2:  # the padding at the end is the counter 0
        pad = ShapedArray((*batch, 1), _WORD)
        second = _joined((second.part(axis, 0, half - 1), _Words(keys.low, keys.low.constant(0, pad), pad)), axis)
    made = _joined(_threefry(keys, first, second), axis)
    return made.part(axis, 0, count) if count % 2 else made


def _threefry_seed(seeds: _Words) -> _Words:
    if dtypes.itemsize_bits(seeds.aval.dtype) > 32:
        high = seeds.convert(_DOUBLE) >> 32
        return _stacked((high.convert(_WORD), seeds.convert(_WORD)))
    aval = ShapedArray(seeds.shape, _WORD)
    return _stacked((_Words(seeds.low, seeds.low.constant(0, aval), aval), seeds.convert(_WORD)))


def _threefry_split(keys: _Words, shape: tuple[int, ...]) -> _Words:
    batch = keys.shape[:-1]
    if config.threefry_partitionable.value:
        return _stacked(_threefry(keys, *_counters(keys, batch, shape)))
    return _sequence(keys, 2 * math.prod(shape)).reshape((*batch, *shape, 2))


def _threefry_fold_in(keys: _Words, data: _Words) -> _Words:
    batch = keys.shape[:-1]
    if not batch and data.shape:
        keys = keys.spread((*data.shape, 2), (len(data.shape),))
    elif batch and not data.shape:
        data = data.spread(batch, ())
    zero = _Words(keys.low, keys.low.constant(0, data.aval), data.aval)
    return _stacked(_threefry(keys, zero, data))


def _threefry_bits(keys: _Words, width: int, shape: tuple[int, ...]) -> _Words:
    batch = keys.shape[:-1]
    dtype = dtypes.BY_NAME[f"uint{width}"]
    if not config.threefry_partitionable.value:
        return _sequential_bits(keys, width, shape, dtype)
    high, low = _threefry(keys, *_counters(keys, batch, shape))
    if width == 64:
        return (high.convert(_DOUBLE) << 32) | low.convert(_DOUBLE)
    return (high ^ low).convert(dtype)


def _sequential_bits(keys: _Words, width: int, shape: tuple[int, ...], dtype: Any) -> _Words:
    batch = keys.shape[:-1]
    axis = len(batch)
    size = math.prod(shape)
    count = -(-size * width // 32)
    words = _sequence(keys, count)
    if width == 64:
        words = (words.part(axis, 0, size).convert(_DOUBLE) << 32) | words.part(axis, size, count).convert(_DOUBLE)
    elif width < 32:  # each word gives several, its lowest bits first
        each = 32 // width
        every = (*batch, count, each)
        shifts = words.iota(every, axis + 1) * width
        words = words.spread(every, range(axis + 1)) >> shifts
        words = (words & (2**width - 1)).convert(dtype).reshape((*batch, each * count)).part(axis, 0, size)
    return words.reshape((*batch, *shape))


# ---- XLA's own generator ---------------------------------------------------------------------------------------------


class RandomAlgorithm(enum.IntEnum):
    """The generators of XLA: the platform's choice, Threefry, or Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def _generate(state: _Words, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm) -> tuple[_Words, _Words]:
    """The next state, and bits of an unsigned dtype, from a state of four words, or of two double ones."""
    low = state.low
    double = ShapedArray((2,), _DOUBLE)
    given = state.value
    if state.aval.dtype == _WORD:
        given = low.op("stablehlo.bitcast_convert", (double,), (state.reshape((2, 2)).value,))[0]
    drawn = ShapedArray(shape, dtype if dtype == _DOUBLE else _WORD)
    attributes = {"rng_algorithm": f"#stablehlo<rng_algorithm {algorithm.name.removeprefix('RNG_')}>"}
    after, bits = low.op("stablehlo.rng_bit_generator", (double, drawn), (given,), attributes)
    if state.aval.dtype == _WORD:
        pairs = ShapedArray((2, 2), _WORD)
        after = _Words(low, low.op("stablehlo.bitcast_convert", (pairs,), (after,))[0], pairs).reshape((4,))
    else:
        after = _Words(low, after, double)
    return after, _Words(low, bits, drawn).convert(dtype)


def _first(keys: _Words) -> _Words:
    """The first key of a batch: XLA's generator takes one, and draws for the whole batch from it."""
    while len(keys.shape) > 1:
        keys = keys.part(0, 0, 1).reshape(keys.shape[1:])
    return keys


def _rbg_seed(seeds: _Words) -> _Words:
    half = _threefry_seed(seeds)
    return _joined((half, half), -1)


def _halves(keys: _Words) -> tuple[_Words, _Words]:
    return keys.part(-1, 0, 2), keys.part(-1, 2, 4)


def _rbg_split(keys: _Words, shape: tuple[int, ...]) -> _Words:
    return _joined([_threefry_split(half, shape) for half in _halves(keys)], -1)


def _rbg_fold_in(keys: _Words, data: _Words) -> _Words:
    return _joined([_threefry_fold_in(half, data) for half in _halves(keys)], -1)


def _rbg_bits(keys: _Words, width: int, shape: tuple[int, ...]) -> _Words:
    dtype = dtypes.BY_NAME[f"uint{width}"]
    return _generate(_first(keys), (*keys.shape[:-1], *shape), dtype, RandomAlgorithm.RNG_DEFAULT)[1]


# Keys of unsafe_rbg come from the first or the last of ten blocks of the generator, as in JAX.
_STEP = 10


def _unsafe_split(keys: _Words, shape: tuple[int, ...]) -> _Words:
    batch = keys.shape[:-1]
    blocks = (*batch, _STEP * math.prod(shape), 4)
    drawn = _generate(_first(keys), blocks, _WORD, RandomAlgorithm.RNG_DEFAULT)[1]
    return drawn.part(len(batch), 0, blocks[-2], _STEP).reshape((*batch, *shape, 4))


def _unsafe_fold_in(keys: _Words, data: _Words) -> _Words:
    blocks = (*data.shape, _STEP, 4)
    drawn = _generate(_first(_rbg_seed(data)), blocks, _WORD, RandomAlgorithm.RNG_DEFAULT)[1]
    drawn = drawn.part(-2, _STEP - 1, _STEP).reshape((*data.shape, 4))
    if keys.shape != drawn.shape:
        rank = max(len(keys.shape), len(drawn.shape)) - 1
        shape = max(keys.shape, drawn.shape, key=len)
        keys, drawn = (x if x.shape == shape else x.spread(shape, (rank,)) for x in (keys, drawn))
    return keys ^ drawn


class Generator(NamedTuple):
    """What a key of a kind can do, on words of shape (..., words of a key)."""

    seed: Callable[[_Words], _Words]
    split: Callable[[_Words, tuple[int, ...]], _Words]
    fold_in: Callable[[_Words, _Words], _Words]
    bits: Callable[[_Words, int, tuple[int, ...]], _Words]


GENERATORS = {
    "threefry2x32": Generator(_threefry_seed, _threefry_split, _threefry_fold_in, _threefry_bits),
    "rbg": Generator(_rbg_seed, _rbg_split, _rbg_fold_in, _rbg_bits),
    "unsafe_rbg": Generator(_rbg_seed, _unsafe_split, _unsafe_fold_in, _rbg_bits),
}


# ---- the generator as an operation -----------------------------------------------------------------------------------


def _generator_type(
    state: ShapedArray, *, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm, out_sharding: Any
) -> tuple[ShapedArray, ShapedArray]:
    if (state.dtype, state.shape) not in ((_WORD, (4,)), (_DOUBLE, (2,))):
        raise TypeError(f"rng_bit_generator: the state must be uint32[4] or uint64[2]; it is {state}.")
    if not dtypes.is_unsigned(dtype) or dtypes.itemsize_bits(dtype) < 8:
        raise TypeError(f"rng_bit_generator: dtype must be uint8, uint16, uint32 or uint64; it is {dtype}.")
    return state.update(weak_type=False), state.update(shape=tuple(shape), dtype=dtype, weak_type=False)


def _lower_generator(
    low: Any, ins: Any, outs: Any, state: Any, *, shape: Any, dtype: Any, algorithm: RandomAlgorithm, out_sharding: Any
) -> list[Any]:
    return [w.value for w in _generate(_Words(low, state, ins[0]), shape, dtype, algorithm)]


def _generator_batch(prim: Primitive, size: int, operands: Any, flags: Any, params: dict[str, Any]) -> list[Any]:
    # One draw for the whole batch, from its first state.
    states = operands[0]
    first = structure.squeeze(structure.slice_axis(states, 0, 1, 0), dimensions=(0,))
    after, bits = prim(first, **{**params, "shape": (size, *params["shape"])})
    rest = structure.slice_axis(states, 1, size, 0)
    return [structure.concatenate(structure.expand_dims(after, (0,)), rest, dimension=0), bits]


rng_bit_generator = Primitive(
    "rng_bit_generator",
    type=_generator_type,
    lower=_lower_generator,
    nondiff="states and bits are discrete",
    batch=_generator_batch,
    multiple=True,
    read=lambda shown, ins, outs: {**shown, "algorithm": RandomAlgorithm[str(shown["algorithm"])]},
)


def _uniform_type(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    dtype = family.common_dtype("rng_uniform", (a, b))
    family.check_kind("rng_uniform", dtype, "fiub")
    if a.shape or b.shape:
        raise ValueError(f"rng_uniform: the bounds must be scalars; they have shapes {a.shape} and {b.shape}.")
    return a.update(shape=tuple(shape), weak_type=False)


def _lower_uniform(low: Any, ins: Any, outs: Any, a: Any, b: Any, *, shape: tuple[int, ...]) -> Any:
    sizes = low.constant(shape, ShapedArray((len(shape),), dtypes.int64))
    return low.op("stablehlo.rng", outs, (a, b, sizes), {"rng_distribution": "#stablehlo<rng_distribution UNIFORM>"})


def _uniform_batch(prim: Primitive, size: int, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    low, high = (structure.batched(x, flag, size) for x, flag in zip(operands, flags, strict=True))
    dtype = family.typeof(low).dtype
    if not dtypes.is_float(dtype):
        raise NotImplementedError("rng_uniform: vmap over bounds is there for floats only. Use random.randint.")
    shape = (size, *params["shape"])
    unit = prim(family.scalar(0, dtype), family.scalar(1, dtype), shape=shape)
    low, high = (ew.broadcast_in_dim(x, shape=shape, broadcast_dimensions=(0,), sharding=None) for x in (low, high))
    return [ew.add(low, ew.mul(unit, ew.sub(high, low)))]


# Draws without a key: every run gives other numbers.
rng_uniform = Primitive(
    "rng_uniform",
    type=_uniform_type,
    lower=_lower_uniform,
    nondiff="what is drawn does not follow its bounds in a way that could be differentiated",
    batch=_uniform_batch,
)


# ---- primitives on keys ----------------------------------------------------------------------------------------------


def _words(low: Any, keys: Any, aval: ShapedArray) -> _Words:
    return _Words(low, keys, ShapedArray(aval.shape + aval.dtype.key_shape, _WORD))


def _check_keys(name: str, aval: ShapedArray) -> None:
    if not isinstance(aval.dtype, dtypes.KeyDType):
        raise TypeError(f"{name}: needs random keys, got {aval}. Make them with random.key or random.wrap_key_data.")


def _same_batch(prim: Primitive, size: int, operands: Any, flags: Any, params: dict[str, Any]) -> list[Any]:
    # Every key stands for itself, so that a batch of keys needs nothing but one more axis in front.
    return current.trace.apply(prim, operands, params)


def _show_impl(params: dict[str, Any]) -> dict[str, Any]:
    return {"impl": dtypes.key_dtype(params["impl"]).tag}


def _read_impl(shown: dict[str, Any], ins: Any, outs: Sequence[ShapedArray]) -> dict[str, Any]:
    return {"impl": outs[0].dtype.impl}


def _seed_type(seeds: ShapedArray, *, impl: str) -> ShapedArray:
    if not dtypes.is_integer(seeds.dtype):
        raise TypeError(f"random_seed: seeds must be integers; they are {seeds}. Convert them.")
    return seeds.update(dtype=dtypes.key_dtype(impl), weak_type=False)


random_seed = Primitive(
    "random_seed",
    type=_seed_type,
    lower=lambda low, ins, outs, seeds, *, impl: [GENERATORS[impl].seed(_Words(low, seeds, ins[0])).value],
    nondiff=_NO_DERIVATIVE,
    elementwise=True,
    show=_show_impl,
    read=_read_impl,
)


def _split_type(keys: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    _check_keys("random_split", keys)
    return keys.update(shape=keys.shape + shape)


random_split = Primitive(
    "random_split",
    type=_split_type,
    lower=lambda low, ins, outs, keys, *, shape: [
        GENERATORS[ins[0].dtype.impl].split(_words(low, keys, ins[0]), shape).value
    ],
    nondiff=_NO_DERIVATIVE,
    batch=_same_batch,
)


def _fold_in_type(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    _check_keys("random_fold_in", keys)
    if data.dtype != _WORD:
        raise TypeError(f"random_fold_in: data must be uint32; it is {data}. Convert it.")
    return keys.update(shape=family.common_shape("random_fold_in", (keys, data)))


random_fold_in = Primitive(
    "random_fold_in",
    type=_fold_in_type,
    lower=lambda low, ins, outs, keys, data: [
        GENERATORS[ins[0].dtype.impl].fold_in(_words(low, keys, ins[0]), _Words(low, data, ins[1])).value
    ],
    nondiff=_NO_DERIVATIVE,
    elementwise=True,
)


def _bits_type(keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...]) -> ShapedArray:
    _check_keys("random_bits", keys)
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"random_bits: bit_width must be 8, 16, 32 or 64; it is {bit_width}.")
    return keys.update(shape=keys.shape + shape, dtype=dtypes.BY_NAME[f"uint{bit_width}"])


random_bits = Primitive(
    "random_bits",
    type=_bits_type,
    lower=lambda low, ins, outs, keys, *, bit_width, shape: [
        GENERATORS[ins[0].dtype.impl].bits(_words(low, keys, ins[0]), bit_width, shape).value
    ],
    nondiff=_NO_DERIVATIVE,
    batch=_same_batch,
)


def _wrap_type(words: ShapedArray, *, impl: str) -> ShapedArray:
    dtype = dtypes.key_dtype(impl)
    count = len(dtype.key_shape)
    if words.dtype != _WORD or words.shape[words.ndim - count :] != dtype.key_shape or words.ndim < count:
        raise TypeError(
            f"random_wrap: the words of {dtype.name} are uint32 of shape (..., {dtype.key_shape[0]}); got {words}."
        )
    return words.update(shape=words.shape[: words.ndim - count], dtype=dtype, weak_type=False)


def _unwrap_type(keys: ShapedArray) -> ShapedArray:
    _check_keys("random_unwrap", keys)
    return keys.update(shape=keys.shape + keys.dtype.key_shape, dtype=_WORD)


def _clone_type(keys: ShapedArray) -> ShapedArray:
    _check_keys("random_clone", keys)
    return keys


def _lower_nothing(low: Any, ins: Any, outs: Any, x: Any, **params: Any) -> list[Any]:
    return [x]


random_wrap = Primitive(
    "random_wrap",
    type=_wrap_type,
    lower=_lower_nothing,
    nondiff=_NO_DERIVATIVE,
    batch=_same_batch,
    show=_show_impl,
    read=_read_impl,
)
random_unwrap = Primitive(
    "random_unwrap", type=_unwrap_type, lower=_lower_nothing, nondiff=_NO_DERIVATIVE, batch=_same_batch
)
random_clone = Primitive(
    "random_clone", type=_clone_type, lower=_lower_nothing, nondiff=_NO_DERIVATIVE, elementwise=True
)
