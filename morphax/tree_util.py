"""Functions of pytrees, and how a class becomes a node: `jax.tree_util`'s names.

>>> from morphax import tree_util
>>> tree_util.tree_leaves({"b": 1, "a": [2, 3]})
[2, 3, 1]
"""

from morphax.support import tree as _tree

default_registry = _tree.registry
DictKey = _tree.DictKey
FlattenedIndexKey = _tree.FlattenedIndexKey
GetAttrKey = _tree.GetAttrKey
KeyEntry = _tree.KeyEntry
KeyPath = _tree.KeyPath
Partial = _tree.Partial
PyTreeDef = _tree.PyTreeDef
SequenceKey = _tree.SequenceKey
all_leaves = _tree.all_leaves
flatten_one_level = _tree.flatten_one_level
flatten_one_level_with_keys = _tree.flatten_one_level_with_keys
is_tree_node = _tree.is_tree_node
keystr = _tree.keystr
register_dataclass = _tree.register_dataclass
register_pytree_node = _tree.register_pytree_node
register_pytree_node_class = _tree.register_pytree_node_class
register_pytree_with_keys = _tree.register_pytree_with_keys
register_pytree_with_keys_class = _tree.register_pytree_with_keys_class
register_static = _tree.register_static
treedef_children = _tree.treedef_children
treedef_is_leaf = _tree.treedef_is_leaf
treedef_tuple = _tree.treedef_tuple

tree_all = _tree.all
tree_broadcast = _tree.broadcast
tree_flatten = _tree.flatten
tree_flatten_with_path = _tree.flatten_with_path
tree_leaves = _tree.leaves
tree_leaves_with_path = _tree.leaves_with_path
tree_map = _tree.map
tree_map_with_path = _tree.map_with_path
tree_reduce = _tree.reduce
tree_reduce_associative = _tree.reduce_associative
tree_structure = _tree.structure
tree_transpose = _tree.transpose
tree_unflatten = _tree.unflatten

__all__ = [
    "default_registry",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
]
