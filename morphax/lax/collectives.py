"""Communication along named axes: of a mesh inside `shard_map`, or of a batch under `vmap(axis_name=...)`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir.current import current
from morphax.ops import collectives as ops
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.ops.family import typeof
from morphax.support import tree
from morphax.transforms.api import as_array
from morphax.transforms.flat import canonical


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _no_groups(api: str, axis_index_groups: Any) -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(f"{api}: axis_index_groups is not supported; give the mesh one more axis instead.")


def _each(fun: Callable[[Any], Any], x: Any) -> Any:
    return tree.map(lambda leaf: fun(as_array(canonical(leaf))), x)


def axis_size(axis_name: Any) -> int:
    """Number of members along a named axis, or along several together.

    Raises:
        NameError: the axis is not bound.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.ones(3)).tolist()
    [3.0, 3.0, 3.0]
    """
    return ops.size_of("axis_size", _names(axis_name))


def axis_index(axis_name: Any) -> Any:
    """The position of this member along a named axis, an int32; row by row for several axes.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.axis_index("i"), axis_name="i")(jnp.ones(3)).tolist()
    [0, 1, 2]
    """
    names = _names(axis_name)
    ops.size_of("axis_index", names)
    total: Any = None
    for name in names:
        varying = frozenset((name,)) if name in current.manual else frozenset()
        index = ops.axis_index(axes=(name,), varying=varying)
        total = index if total is None else ew.add(ew.mul(total, np.int32(current.axes[name])), index)
    return total


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over a named axis, on every member.

    Args:
        x: pytree of arrays; a Python number gives the number times the size of the axis.
        axis_name: a name, or a tuple of names.
        axis_index_groups: must be None.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0)).tolist()
    [3.0, 3.0, 3.0]
    """
    _no_groups("psum", axis_index_groups)
    names = _names(axis_name)
    size = ops.size_of("psum", names)

    def total(leaf: Any) -> Any:
        if isinstance(leaf, (int, float, complex)):
            return leaf * size
        return ops.psum(_summable(as_array(canonical(leaf))), axes=names, axis_index_groups=None)

    return tree.map(total, x)


def _summable(x: Any) -> Any:
    return structure.convert(x, np.dtype("int32")) if typeof(x).dtype == np.bool_ else x


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over a named axis, on every member.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0)).tolist()
    [1.0, 1.0, 1.0]
    """
    size = ops.size_of("pmean", _names(axis_name))
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    return tree.map(lambda s: s / size, total)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum over a named axis, on every member.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.arange(3.0)).tolist()
    [2.0, 2.0, 2.0]
    """
    _no_groups("pmax", axis_index_groups)
    ops.size_of("pmax", _names(axis_name))
    return _each(lambda leaf: ops.pmax(leaf, axes=_names(axis_name), axis_index_groups=None), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum over a named axis, on every member.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.arange(3.0)).tolist()
    [0.0, 0.0, 0.0]
    """
    _no_groups("pmin", axis_index_groups)
    ops.size_of("pmin", _names(axis_name))
    return _each(lambda leaf: ops.pmin(leaf, axes=_names(axis_name), axis_index_groups=None), x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Each member's value sent to another: `perm` holds pairs (from, to). Members that get nothing get zeros.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.arange(1.0, 4.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    (name,) = _names(axis_name)
    size = ops.size_of("ppermute", (name,))
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    for what, members in (("senders", [a for a, _ in pairs]), ("receivers", [b for _, b in pairs])):
        if len(set(members)) != len(members) or not all(0 <= m < size for m in members):
            raise ValueError(f"ppermute: the {what} {members} must be different members of {name!r}, 0 to {size - 1}.")
    return _each(lambda leaf: ops.ppermute(leaf, axes=(name,), perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Member k gets the value of member perm[k].

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3.0)).tolist()
    [2.0, 0.0, 1.0]
    """
    size = ops.size_of("pshuffle", _names(axis_name))
    if sorted(perm) != list(range(size)):
        raise ValueError(f"pshuffle: perm must be a permutation of 0 to {size - 1}; it is {list(perm)}.")
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The values of all members, stacked along a new axis, or concatenated along one with `tiled`.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2.0)).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    _no_groups("all_gather", axis_index_groups)
    names = _names(axis_name)
    size = ops.size_of("all_gather", names)

    def gather(leaf: Any) -> Any:
        at = axis % (typeof(leaf).ndim + (not tiled))
        return ops.all_gather(leaf, axes=names, axis=at, size=size, tiled=tiled)

    return _each(gather, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The sum over a named axis, of which each member gets its part along `scatter_dimension`.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.ones((2, 2))).tolist()
    [2.0, 2.0]
    """
    _no_groups("psum_scatter", axis_index_groups)
    names = _names(axis_name)
    size = ops.size_of("psum_scatter", names)
    return _each(
        lambda leaf: ops.psum_scatter(
            leaf, axes=names, axis=scatter_dimension % typeof(leaf).ndim, size=size, tiled=tiled
        ),
        x,
    )


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Split each member's value along an axis, send the parts to the members, and concatenate what comes.

    Without `tiled`, the split axis has the size of the named axis and goes away, and a new one stands at `concat_axis`.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.arange(4.0).reshape(2, 2)).tolist()
    [[0.0, 2.0], [1.0, 3.0]]
    """
    _no_groups("all_to_all", axis_index_groups)
    names = _names(axis_name)
    size = ops.size_of("all_to_all", names)

    def exchange(leaf: Any) -> Any:
        shape = typeof(leaf).shape
        split, concat = split_axis % len(shape), concat_axis % len(shape)
        if tiled:
            return ops.all_to_all(leaf, axes=names, split_axis=split, concat_axis=concat, size=size)
        if shape[split] != size:
            raise ValueError(
                f"all_to_all: axis {split_axis} of {typeof(leaf)} must have the size {size} of {axis_name!r}, or give "
                "tiled=True."
            )
        rest = (*shape[:split], *shape[split + 1 :])
        # The split axis moves to the place where the members' parts are put together.
        moved = structure.move_axis(leaf, split, concat)
        out = ops.all_to_all(moved, axes=names, split_axis=concat, concat_axis=concat, size=size)
        return structure.reshape_to(out, (*rest[:concat], size, *rest[concat:]))

    return _each(exchange, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange a named axis with an axis of the array of the same size.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.arange(4.0).reshape(2, 2)).tolist()
    [[0.0, 2.0], [1.0, 3.0]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of member `source`, on every member.

    >>> from morphax import lax, numpy as jnp, vmap
    >>> vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3.0)).tolist()
    [1.0, 1.0, 1.0]
    """
    here = axis_index(axis_name)

    def send(leaf: Any) -> Any:
        mine = ew.eq(here, np.int32(source))
        return psum(ew.select_n(mine, ew.zeros(typeof(leaf)), leaf), axis_name)

    return _each(send, x)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """`x` with a type that says it may differ over the axes (`to="varying"`).

    Raises:
        ValueError: another `to`.
    """
    if to != "varying":
        raise ValueError(f"pcast: to must be 'varying'; it is {to!r}. Reduce with psum to make a value invariant.")
    names = _names(axis_name)
    ops.size_of("pcast", names)

    def cast(leaf: Any) -> Any:
        # Types say nothing about vmap's axes.
        new = tuple([n for n in names if n in current.manual and n not in typeof(leaf).varying])
        return ops.pvary(leaf, axes=new) if new else leaf

    return _each(cast, x)


all_gather_p = ops.all_gather
all_to_all_p = ops.all_to_all
axis_index_p = ops.axis_index
pmax_p = ops.pmax
pmin_p = ops.pmin
ppermute_p = ops.ppermute
psum_p = ops.psum
