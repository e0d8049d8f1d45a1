"""Functions of pytrees: `jax.tree`'s names. What a pytree is: `morphax.support.tree`.

>>> from morphax import tree
>>> tree.map(lambda x: x + 1, {"a": 1, "b": (2, None)})
{'a': 2, 'b': (3, None)}
"""

from morphax.support import tree as _tree

all = _tree.all
broadcast = _tree.broadcast
flatten = _tree.flatten
flatten_with_path = _tree.flatten_with_path
leaves = _tree.leaves
leaves_with_path = _tree.leaves_with_path
map = _tree.map
map_with_path = _tree.map_with_path
reduce = _tree.reduce
reduce_associative = _tree.reduce_associative
static = _tree.static
structure = _tree.structure
transpose = _tree.transpose
unflatten = _tree.unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
