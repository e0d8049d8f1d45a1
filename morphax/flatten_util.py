"""A pytree of arrays as one vector, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax import numpy as jnp
from morphax.ir import avals
from morphax.ops import structure
from morphax.support import tree
from morphax.support.tracebacks import api_boundary


@api_boundary
def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a pytree as one vector, and the function that takes such a vector back to the pytree.

    Args:
        pytree: arrays and numbers of any dtypes. They are promoted to a common dtype.

    Returns:
        (vector, unravel): `unravel` takes an array of the shape and dtype of `vector`; its leaves have the shapes and
        dtypes of the leaves given.

    >>> vector, unravel = ravel_pytree({"a": 1.0, "b": jnp.arange(3.0)})
    >>> vector.tolist(), unravel(vector)["b"].tolist()
    ([1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    """
    leaves, treedef = tree.flatten(pytree)
    types = [avals.typeof(leaf) for leaf in leaves]
    vector = jnp.concatenate([jnp.ravel(jnp.asarray(leaf)) for leaf in _common(leaves)]) if leaves else jnp.zeros((0,))
    want = avals.typeof(vector)

    @api_boundary
    def unravel(vector: Any) -> Any:
        got = avals.typeof(vector)
        if got.shape != want.shape:
            raise ValueError(f"unravel: needs a vector of shape {want.shape}; it was given {got}.")
        if got.dtype != want.dtype and not got.weak_type:
            raise TypeError(
                f"unravel: needs a vector of dtype {want.dtype.name}; it was given {got}. Convert it first."
            )
        pieces, start = [], 0
        for a in types:
            piece = structure.slice_axis(vector, start, start + a.size, 0)
            pieces.append(structure.convert(structure.reshape_to(piece, a.shape), a.dtype))
            start += a.size
        return tree.unflatten(treedef, pieces)

    return vector, unravel


def _common(leaves: list[Any]) -> list[Any]:
    dtype = np.dtype(jnp.result_type(*leaves))
    return [structure.convert(jnp.asarray(leaf), dtype) for leaf in leaves]
