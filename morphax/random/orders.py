"""Random orders and choices: permutations, samples of a population, categories."""

import math
from typing import Any

import numpy as np

from morphax.numpy import promotion
from morphax.ops import elementwise as ew
from morphax.ops import family, indexing, random_bits, reduce, sorting, structure
from morphax.random import draws
from morphax.random.distributions import gumbel_mode, gumbel_of
from morphax.random.keys import sampler
from morphax.support import dtypes

# ---- permutations ----------------------------------------------------------------------------------------------------


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """`x` sorted along `axis` by random words, in as many rounds as make ties unlikely to matter."""
    aval = family.typeof(x)
    rounds = math.ceil(3 * math.log(max(1, aval.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, round_key = draws.keys_of(key, 2)
        words = random_bits.random_bits(round_key, bit_width=32, shape=aval.shape)
        _, x = sorting.sort(words, x, dimension=axis, is_stable=True, num_keys=1)
    return x


def _positions(key: Any, size: int) -> Any:
    """0 to size - 1 in random order."""
    return _shuffled(key, structure.iota_along(dtypes.default_int_dtype(), (size,), 0), 0)


def taken(x: Any, positions: Any, axis: int) -> Any:
    """The entries of `x` at an array of positions along an axis, which the shape of the positions replaces."""
    shape, at = family.typeof(x).shape, family.typeof(positions).shape
    rest = (*range(axis), *range(axis + len(at), len(shape) + len(at) - 1))
    numbers = indexing.GatherDimensionNumbers(rest, (axis,), (axis,), (), ())
    return indexing.gather(
        x,
        structure.expand_dims(positions, (len(at),)),
        dimension_numbers=numbers,
        slice_sizes=(*shape[:axis], 1, *shape[axis + 1 :]),
        mode=indexing.GatherScatterMode.CLIP,
    )


@sampler("axis", "independent", exact=False)
def _permutation(key: Any, x: Any, *, axis: int, independent: bool) -> Any:
    x = promotion.array("permutation", x)
    shape = family.typeof(x).shape
    if len(shape) == 1 or independent:
        return _shuffled(key, x, axis)
    return taken(x, _positions(key, shape[axis]), axis) if shape[axis] else x


@sampler("size", exact=False)
def _permuted_range(key: Any, *, size: int) -> Any:
    return _positions(key, size)


def _whole(x: Any) -> int | None:
    """`x` as a Python int where it is an integer scalar with a known value."""
    if isinstance(x, (int, np.integer)):
        return int(x)
    try:
        scalar = not x.shape and dtypes.is_integer(x.dtype)
    except AttributeError:
        return None
    return x.__index__() if scalar else None


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None) -> Any:
    """`x` in random order along an axis, or the numbers 0 to x - 1 in random order.

    Args:
        key: a random key.
        x: an array, or an integer.
        axis: along which to permute.
        independent: permute each vector along the axis by itself.

    Raises:
        TypeError: `x` is a scalar that is no integer.  ValueError: there is no such axis.

    >>> from morphax import random
    >>> sorted(random.permutation(random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    draws.unplaced("permutation", out_sharding)
    size = _whole(x)
    if size is not None:
        return _permuted_range("permutation", key, size=max(size, 0))
    _, _, shape = promotion.described("permutation", x)
    if not shape:
        raise TypeError(f"permutation: x must be an integer or have an axis at least; it is {x!r:.60}.")
    axis = promotion.axis_of("permutation", axis, len(shape))
    return _permutation("permutation", key, x, axis=axis, independent=bool(independent))


# ---- choice ----------------------------------------------------------------------------------------------------------


def _search(rising: Any, x: Any) -> Any:
    """Where each of the vector `x` would go in the rising vector: the first position with rising[i] >= x."""
    size = family.typeof(rising).shape[0]
    shape = family.typeof(x).shape
    low, high = (ew.full(shape, np.uint32(end)) for end in (0, size))
    for _ in range(math.ceil(math.log2(size + 1))):
        middle = ew.add(low, ew.shift_right_logical(ew.sub(high, low), np.uint32(1)))
        left = ew.le_to(x, taken(rising, middle, 0))
        low, high = ew.select_n(left, middle, low), ew.select_n(left, high, middle)
    return ew.convert(high, dtypes.default_int_dtype())


def _largest(x: Any, count: int, axis: int) -> Any:
    """Positions of the largest `count` entries along an axis, in falling order; of equal ones the first comes first."""
    return sorting.top_k(x, k=count, axis=axis)[1]


def _weighted(key: Any, p: Any, shape: tuple[int, ...], replace: bool, mode: str) -> Any:
    """Positions drawn with the probabilities `p`."""
    dtype = family.typeof(p).dtype
    size = family.typeof(p).shape[0]
    if not replace:  # the largest of log p + Gumbel noise: Efraimidis, Spirakis, Information Processing Letters 97
        noise = gumbel_of(key, (size,), dtype, mode)
        best = _largest(ew.add(noise, ew.log(p)), math.prod(shape), 0)
        return ew.convert(best, dtypes.default_int_dtype())
    rising = reduce.cumsum(p, axis=0, reverse=False)
    total = structure.squeeze(structure.slice_axis(rising, size - 1, size, 0), dimensions=(0,))
    u = ew.sub(family.scalar(1, dtype), draws.unit(key, shape, dtype))
    return _search(rising, ew.mul(total, u))


def _even(key: Any, size: int, shape: tuple[int, ...], replace: bool) -> Any:
    """Positions drawn evenly."""
    if replace:
        dtype = dtypes.default_int_dtype()
        ends = (family.scalar(0, dtype), family.scalar(size, dtype))
        return draws.integers(key, shape, *ends, False, dtype)
    return structure.slice_axis(_positions(key, size), 0, math.prod(shape), 0)


@sampler("size", "shape", "replace", "axis", "mode", "weighted")
def _choice(
    key: Any,
    *operands: Any,
    size: int | None,
    shape: tuple[int, ...],
    replace: bool,
    axis: int,
    mode: str,
    weighted: bool,
) -> Any:
    given = iter(operands)
    x = promotion.array("choice", next(given)) if size is None else None
    count = family.typeof(x).shape[axis] if size is None else size
    if weighted:
        positions = _weighted(key, promotion.inexact("choice", next(given)), shape, replace, mode)
    elif size is None and not replace and family.typeof(x).ndim == 1:
        return structure.reshape_to(structure.slice_axis(_shuffled(key, x, 0), 0, math.prod(shape), 0), shape)
    else:
        positions = _even(key, count, shape, replace)
    positions = structure.reshape_to(positions, shape)
    return positions if x is None else taken(x, positions, axis)


def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Any:
    """A random sample of a population.

    Args:
        key: a random key.
        a: an array, from whose entries along `axis` the sample is drawn, or an integer for the numbers below it.
        shape: of the sample, a sequence.
        replace: whether an entry may be drawn again.
        p: probabilities, shape (size of the population,), proportional to; even ones for None.
        axis: of `a`.
        mode: for samples without replacement with `p`: see `gumbel`.

    Returns:
        an array of shape (*a.shape[:axis], *shape, *a.shape[axis + 1:]), or `shape` for an integer.

    Raises:
        ValueError: an empty population, a sample larger than it without replacement, or a wrong shape of `p`.

    >>> from morphax import random
    >>> random.choice(random.key(0), 5, (3,), replace=False).shape
    (3,)
    """
    if isinstance(shape, (int, np.integer)):
        raise TypeError(f"choice: shape must be a sequence; it is {shape!r}. Write ({shape},).")
    shape = draws.checked_shape("choice", draws.as_shape(shape))
    size = _whole(a)
    own: tuple[int, ...] = ()
    if size is None:
        _, _, own = promotion.described("choice", a)
        if not own:
            size = int(a)
        else:
            axis = promotion.axis_of("choice", axis, len(own))
    count = own[axis] if size is None else size
    _check_choice(count, math.prod(shape), replace, p)
    operands = [x for x, given in ((a, size is None), (p, p is not None)) if given]
    if not math.prod(shape):
        dtype = dtypes.default_int_dtype() if size is not None else promotion.described("choice", a)[0]
        return ew.full((*own[:axis], *shape, *own[axis + 1 :]), family.scalar(0, dtype))
    return _choice(
        "choice", key, *operands, size=size, shape=shape, replace=bool(replace), axis=axis,
        mode=gumbel_mode("choice", mode), weighted=p is not None,
    )  # fmt: skip


def _check_choice(count: int, drawn: int, replace: bool, p: Any) -> None:
    if count <= 0 and drawn:
        raise ValueError(f"choice: the population is empty (size {count}), and {drawn} samples are asked for.")
    if not replace and drawn > count:
        raise ValueError(
            f"choice: cannot take a sample of {drawn} from a population of {count} with replace=False. Take a smaller "
            "sample, or replace=True."
        )
    if p is not None:
        found = promotion.described("choice", p)[2]
        if found != (count,):
            raise ValueError(f"choice: p must be None or have shape ({count},), one for each entry; it has {found}.")


# ---- categories ------------------------------------------------------------------------------------------------------


@sampler("axis", "shape", "replace", "mode")
def _categorical(key: Any, logits: Any, *, axis: int, shape: tuple[int, ...] | None, replace: bool, mode: str) -> Any:
    logits = promotion.array("categorical", logits)
    aval = family.typeof(logits)
    dtype = draws.float_dtype("gumbel", aval.dtype)
    rest = aval.shape[:axis] + aval.shape[axis + 1 :]
    full = draws.common_shape("categorical", shape, np.broadcast_to(np.float32(0), rest))
    prefix = full[: len(full) - len(rest)]
    if replace:
        inner = list(full[len(prefix) :])
        inner.insert(axis, aval.shape[axis])
        noise = gumbel_of(key, (*prefix, *inner), dtype, mode)
        noisy = ew.add(noise, promotion.spread(logits, (*prefix, *inner)))
        return reduce.argmax(noisy, axes=(len(prefix) + axis,), index_dtype=dtypes.default_int_dtype())
    count = math.prod(prefix)
    if count > aval.shape[axis]:
        raise ValueError(
            f"categorical: {count} samples without replacement exceed {aval.shape[axis]} categories. Take fewer, or "
            "replace=True."
        )
    noisy = ew.add(logits, gumbel_of(key, aval.shape, dtype, mode))
    best = structure.move_axis(_largest(noisy, count, axis), axis, 0)
    return structure.reshape_to(best, full)


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Random categories with the probabilities softmax(logits): the largest of logits + Gumbel noise.

    Args:
        key: a random key.
        logits: float, unnormalised log probabilities.
        axis: of the categories.
        shape: of the result, which must end in a shape that logits without `axis` broadcast to; that shape for None.
        replace: whether a category may be drawn again along the leading axes that `shape` adds.
        mode: see `gumbel`.

    Returns:
        positions along `axis`, the default int; int32 without replacement.

    Raises:
        ValueError: no such shape, or more samples than categories without replacement.

    >>> from morphax import random
    >>> from morphax import numpy as jnp
    >>> random.categorical(random.key(0), jnp.zeros((4, 3))).shape
    (4,)
    """
    draws.unplaced("categorical", out_sharding)
    _, _, own = promotion.described("categorical", logits)
    axis = promotion.axis_of("categorical", axis, len(own))
    shape = None if shape is None else draws.as_shape(shape)
    return _categorical(
        "categorical", key, logits, axis=axis, shape=shape, replace=bool(replace),
        mode=gumbel_mode("categorical", mode),
    )  # fmt: skip
