"""All prefixes of a sequence under an associative operation, in a logarithmic number of steps."""

from collections.abc import Callable
from typing import Any

from morphax.ops import structure
from morphax.ops.family import typeof
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import as_array
from morphax.transforms.flat import canonical, check_callable


def _every_other(x: Any, first: int, last: int, axis: int) -> Any:
    shape = typeof(x).shape
    start = tuple([first if i == axis else 0 for i in range(len(shape))])
    limit = tuple([last if i == axis else n for i, n in enumerate(shape)])
    step = tuple([2 if i == axis else 1 for i in range(len(shape))])
    return structure.slice(x, start_indices=start, limit_indices=limit, strides=step)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """x with x[::2] = even and x[1::2] = odd."""
    shape = typeof(odd).shape
    pairs = min(typeof(even).shape[axis], shape[axis])
    split = (*shape[:axis], pairs, 1, *shape[axis + 1 :])
    head = structure.slice_axis(even, 0, pairs, axis)
    woven = structure.concatenate(
        structure.reshape_to(head, split), structure.reshape_to(odd, split), dimension=axis + 1
    )
    woven = structure.reshape_to(woven, (*shape[:axis], 2 * pairs, *shape[axis + 1 :]))
    if typeof(even).shape[axis] == pairs:
        return woven
    return structure.concatenate(woven, structure.slice_axis(even, pairs, pairs + 1, axis), dimension=axis)


@api_boundary
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """elems[0], fn(elems[0], elems[1]), … along an axis, for an associative `fn`; work O(n), depth O(log n).

    Pairs are combined, the scan of the half as many results gives the odd prefixes, and one more application the even
    ones (Blelloch, Prefix Sums and Their Applications, 1990).

    Args:
        fn: (a, b) -> c on pytrees of arrays, elementwise along `axis`, associative.
        elems: pytree of arrays of equal size along `axis`.
        reverse: scan from the end.
        axis: int; may be negative.

    Returns:
        A pytree like `elems`.

    Raises:
        TypeError: `fn` is not a function.  ValueError: sizes that differ, or an axis that there is not.

    >>> from morphax import lax, numpy as jnp
    >>> lax.associative_scan(jnp.add, jnp.arange(5)).tolist()
    [0, 1, 3, 6, 10]
    """
    check_callable("associative_scan", fn)
    leaves, structure_ = tree.flatten(elems)
    leaves = [as_array(canonical(x)) for x in leaves]
    sizes = set()
    axes = []
    for x in leaves:
        shape = typeof(x).shape
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"associative_scan: axis {axis} is out of range for a leaf of type {typeof(x)}.")
        axes.append(axis % len(shape))
        sizes.add(shape[axis])
    if len(sizes) > 1:
        raise ValueError(f"associative_scan: the leaves have different sizes {sorted(sizes)} along axis {axis}.")

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        out = fn(tree.unflatten(structure_, a), tree.unflatten(structure_, b))
        return [as_array(x) for x in tree.leaves(out)]

    def run(xs: list[Any]) -> list[Any]:
        n = typeof(xs[0]).shape[axes[0]]
        if n < 2:
            return xs
        pairs = n // 2 * 2
        rows = list(zip(xs, axes, strict=True))
        odd = run(
            combine([_every_other(x, 0, pairs, a) for x, a in rows], [_every_other(x, 1, pairs, a) for x, a in rows])
        )
        later = [_every_other(x, 2, n, a) for x, a in rows] if n > 2 else []
        if later:
            count = typeof(later[0]).shape[axes[0]]
            before = [structure.slice_axis(x, 0, count, a) for x, a in zip(odd, axes, strict=True)]
            later = combine(before, later)
        first = [structure.slice_axis(x, 0, 1, a) for x, a in rows]
        even = [
            structure.concatenate(f, x, dimension=a) for f, x, a in zip(first, later, axes, strict=True)
        ] if later else first  # fmt: skip
        return [_interleave(e, o, a) for e, o, a in zip(even, odd, axes, strict=True)]

    if not leaves:
        return elems
    if reverse:
        flipped = [structure.rev(x, dimensions=(a,)) for x, a in zip(leaves, axes, strict=True)]
        back = [structure.rev(x, dimensions=(a,)) for x, a in zip(run(flipped), axes, strict=True)]
        return tree.unflatten(structure_, back)
    return tree.unflatten(structure_, run(leaves))
