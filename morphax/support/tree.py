"""Pytrees: nested containers of leaves, on jaxlib's C++ registry.

A pytree is a leaf, or a node whose children are pytrees. Nodes are None (no children), tuples, named tuples, lists,
dicts (children in the order of the sorted keys), OrderedDicts (in their own order), defaultdicts, `Partial`, and the
types given to one of the `register_*` functions. Every other object is a leaf, and so is an instance of a subclass of a
node type. Flattening a tree gives its leaves from left to right and a `PyTreeDef`, which holds everything else: types,
keys and static fields.

`map` and `all` are the tree functions here and hide the builtins of those names in this file.
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import functools
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

from jaxlib._jax import pytree as _pytree
from jaxlib._jax.pytree import DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey

from morphax.support import tracebacks

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath: TypeAlias = tuple[KeyEntry, ...]

# Any: a pytree is an object of any type, and what comes back has the type that went in.
Tree: TypeAlias = Any
IsLeaf: TypeAlias = Callable[[Any], bool] | None
# Any: with is_leaf_takes_path the predicate is called as is_leaf(path, node), else as is_leaf(node).
IsLeafOrPath: TypeAlias = Callable[..., bool] | None
Path: TypeAlias = tuple[Any, ...]

_T = TypeVar("_T")
_Class = TypeVar("_Class", bound=type)
_UNSPECIFIED: Any = object()

registry = _pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
"""The node types of this library. jaxlib's default registry belongs to other libraries of the same process."""


def _own_registry() -> _pytree.PyTreeRegistry:
    return registry


def _reduce_registry(instance: _pytree.PyTreeRegistry) -> str | tuple[Any, ...]:
    return (_own_registry, ()) if instance is registry else instance.__reduce__()


# A pickled PyTreeDef names its registry; jaxlib can restore its default registry only.
copyreg.pickle(_pytree.PyTreeRegistry, _reduce_registry)


# Flatten and unflatten


def flatten(tree: Tree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of `tree` from left to right, and its structure.

    Args:
        tree: any pytree.
        is_leaf: called on every node and leaf; where it is true, that subtree counts as one leaf.
    Raises:
        ValueError: a dict whose keys cannot be sorted. RecursionError: a tree too deep, or one that contains itself.

    >>> from morphax import tree
    >>> leaves, treedef = tree.flatten({"b": [1, 2], "a": None})
    >>> leaves, treedef
    ([1, 2], PyTreeDef({'a': None, 'b': [*, *]}))
    """
    try:
        return registry.flatten(tree, is_leaf)
    except (ValueError, SystemError) as error:
        _raise_flatten_error("tree.flatten", error, tree, is_leaf)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Tree:
    """The tree of structure `treedef` with the given leaves: the inverse of `flatten`.

    Raises:
        ValueError: too few or too many leaves. TypeError: `treedef` is not a PyTreeDef.

    >>> from morphax import tree
    >>> tree.unflatten(tree.structure((0, [0, 0])), "abc")
    ('a', ['b', 'c'])
    """
    _check_treedef("tree.unflatten", treedef)
    try:
        return treedef.unflatten(leaves)
    except ValueError as error:
        if not str(error).startswith(("Too few leaves for PyTreeDef", "Too many leaves for PyTreeDef")):
            raise
        count = str(len(leaves)) if isinstance(leaves, Sequence) else "another number of them"
        problem = str(error).partition(" for ")[0]
        raise ValueError(
            f"tree.unflatten: {problem} for PyTreeDef; expected {treedef.num_leaves}, got {count}. "
            f"Give one leaf for each * of {_abbreviated(treedef)}."
        ) from None


def leaves(tree: Tree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree` from left to right; `is_leaf` as in `flatten`.

    >>> from morphax import tree
    >>> tree.leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Tree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of `tree`: its node types, keys and static fields without the leaves; `is_leaf` as in `flatten`.

    >>> from morphax import tree
    >>> tree.structure([1, (2, 3)])
    PyTreeDef([*, (*, *)])
    """
    return flatten(tree, is_leaf)[1]


def flatten_with_path(
    tree: Tree, is_leaf: IsLeafOrPath = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Path, Any]], PyTreeDef]:
    """The pairs (key path, leaf) of `tree` from left to right, and its structure.

    Args:
        tree: any pytree.
        is_leaf: as in `flatten`.
        is_leaf_takes_path: call `is_leaf(path, node)` and not `is_leaf(node)`.
    Raises:
        ValueError: a dict whose keys cannot be sorted. RecursionError: a tree too deep, or one that contains itself.

    >>> from morphax import tree
    >>> tree.flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    predicate = is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, node: is_leaf(node)
    try:
        return registry.flatten_with_path(tree, predicate)
    except (ValueError, SystemError) as error:
        nodes_only = None if is_leaf_takes_path else is_leaf
        _raise_flatten_error("tree.flatten_with_path", error, tree, nodes_only)


def leaves_with_path(
    tree: Tree, is_leaf: IsLeafOrPath = None, is_leaf_takes_path: bool = False
) -> list[tuple[Path, Any]]:
    """The pairs (key path, leaf) of `tree` from left to right; arguments as in `flatten_with_path`.

    >>> from morphax import tree, tree_util
    >>> [(tree_util.keystr(path), leaf) for path, leaf in tree.leaves_with_path({"a": [5, 6]})]
    [("['a'][0]", 5), ("['a'][1]", 6)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def keystr(keys: Path, *, simple: bool = False, separator: str = "") -> str:
    """The key path `keys` as text that follows Python's own notation, such as `['a'][0].x`.

    Args:
        keys: a key path, as from `leaves_with_path`.
        simple: only the names and indices, without brackets, quotes and dots.
        separator: what stands between two keys.

    >>> from morphax import tree_util
    >>> path = (tree_util.DictKey("a"), tree_util.SequenceKey(0), tree_util.GetAttrKey("x"))
    >>> tree_util.keystr(path), tree_util.keystr(path, simple=True, separator="/")
    ("['a'][0].x", 'a/0/x')
    """
    return separator.join(_simple_key(key) if simple else str(key) for key in keys)


def _simple_key(key: object) -> str:
    match key:
        case DictKey(key=name) | FlattenedIndexKey(key=name) | SequenceKey(idx=name) | GetAttrKey(name=name):
            return str(name)
    return str(key)


def flatten_one_level(tree: Tree) -> tuple[Iterable[Any], Hashable]:
    """The children of the node `tree` and its static part (keys, fields), without going deeper.

    Raises:
        ValueError: `tree` is a leaf.

    >>> from morphax import tree_util
    >>> tree_util.flatten_one_level({"b": [1], "a": 2})
    ((2, [1]), ('a', 'b'))
    """
    level = registry.flatten_one_level(tree)
    if level is None:
        _raise_leaf_error("flatten_one_level", tree)
    return level


def flatten_one_level_with_keys(tree: Tree) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The pairs (key, child) of the node `tree` and its static part, without going deeper.

    Raises:
        ValueError: `tree` is a leaf.

    >>> from morphax import tree_util
    >>> tree_util.flatten_one_level_with_keys([5])
    (((SequenceKey(idx=0), 5),), None)
    """
    level = registry.flatten_one_level_with_keys(tree)
    if level is None:
        _raise_leaf_error("flatten_one_level_with_keys", tree)
    pairs, static_part = level
    if isinstance(tree, tuple) and static_part is type(tree):
        # jaxlib 0.10.2 gives every field of a named tuple the name of the first.
        return list(zip(_child_keys(type(tree), None, len(tree)), tree)), static_part
    return pairs, static_part


def is_tree_node(typ: type) -> bool:
    """Whether instances of `typ` are nodes; False for leaves.

    >>> from morphax import tree_util
    >>> tree_util.is_tree_node(dict), tree_util.is_tree_node(int)
    (True, False)
    """
    return isinstance(typ, type) and registry.is_node(typ)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element of `iterable` is a leaf; `is_leaf` as in `flatten`.

    >>> from morphax import tree_util
    >>> tree_util.all_leaves([1, 2]), tree_util.all_leaves([1, (2,)])
    (True, False)
    """
    if is_leaf is None:
        return _pytree.all_leaves(registry, iterable)
    for element in iterable:
        found = leaves(element, is_leaf)
        if len(found) != 1 or found[0] is not element:
            return False
    return True


# Map, reduce, rearrange


def map(f: Callable[..., Any], tree: Tree, *rest: Tree, is_leaf: IsLeaf = None) -> Tree:
    """The tree of `f(leaf, *others)` for every leaf of `tree`, where `others` stand at its place in each of `rest`.

    Args:
        f: called once per leaf, from left to right.
        tree: gives the structure of the result.
        rest: trees of the structure of `tree`; where `tree` has a leaf they may have a subtree, which `f` gets whole.
        is_leaf: as in `flatten`, for `tree`.
    Raises:
        ValueError: a tree of `rest` has another structure; names the first key path at which they differ.

    >>> from morphax import tree
    >>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    try:
        first, treedef = flatten(tree, is_leaf)
        if not rest:
            return treedef.unflatten([f(leaf) for leaf in first])
        columns = _aligned("tree.map", treedef, tree, rest, is_leaf)
        return treedef.unflatten([f(*column) for column in zip(first, *columns)])
    except Exception as error:
        tracebacks.clean(error)
        raise


def map_with_path(
    f: Callable[..., Any],
    tree: Tree,
    *rest: Tree,
    is_leaf: IsLeafOrPath = None,
    is_leaf_takes_path: bool = False,
) -> Tree:
    """The tree of `f(path, leaf, *others)` for every leaf of `tree`; otherwise as `map`.

    Raises:
        ValueError: a tree of `rest` has another structure; names the first key path at which they differ.

    >>> from morphax import tree, tree_util
    >>> tree.map_with_path(lambda path, x: tree_util.keystr(path) + "=" + str(x), {"a": [5, 6]})
    {'a': ["['a'][0]=5", "['a'][1]=6"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    nodes_only = None if is_leaf_takes_path else is_leaf
    paths = [path for path, _ in pairs]
    first = [leaf for _, leaf in pairs]
    columns = _aligned("tree.map_with_path", treedef, tree, rest, nodes_only)
    return treedef.unflatten([f(*arguments) for arguments in zip(paths, first, *columns)])


def _aligned(function: str, treedef: PyTreeDef, tree: Tree, rest: tuple[Tree, ...], is_leaf: IsLeaf) -> list[list[Any]]:
    columns = []
    for position, other in enumerate(rest):
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError:
            name = f"rest[{position}]"
            differences = structure_difference(tree, other, prefix=True, is_leaf=is_leaf, names=("tree", name))
            if not differences:
                raise
            raise ValueError(
                f"{function}: tree and {name} have different structures, {_first_of(differences)} "
                f"Give every tree the structure of the first; where that has a leaf, the others may have any subtree."
            ) from None
    return columns


def reduce(function: Callable[[_T, Any], _T], tree: Tree, initializer: _T = _UNSPECIFIED, is_leaf: IsLeaf = None) -> _T:
    """`function(...function(function(initializer, leaf0), leaf1)..., leafn)` over the leaves from left to right.

    Args:
        function: called as function(accumulated, leaf).
        tree: any pytree.
        initializer: where to start; without it, start at the first leaf.
        is_leaf: as in `flatten`.
    Raises:
        TypeError: no leaves and no initializer.

    >>> from morphax import tree
    >>> tree.reduce(lambda total, x: total + x, [1, (2, 3)], 10)
    16
    """
    found = leaves(tree, is_leaf)
    if initializer is not _UNSPECIFIED:
        return functools.reduce(function, found, initializer)
    if not found:
        raise TypeError(f"tree.reduce: {_abbreviated(tree)} has no leaves and there is no initializer. Give one.")
    return functools.reduce(function, found)


def reduce_associative(
    operation: Callable[[_T, _T], _T], tree: Tree, *, identity: _T = _UNSPECIFIED, is_leaf: IsLeaf = None
) -> _T:
    """The leaves combined by `operation` in a balanced binary tree, so that the depth is log2 of their number.

    Args:
        operation: associative; called as operation(left, right).
        tree: any pytree.
        identity: the result for a tree without leaves.
        is_leaf: as in `flatten`.
    Raises:
        TypeError: no leaves and no identity.

    >>> from morphax import tree
    >>> tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    found = leaves(tree, is_leaf)
    if found:
        return _combine_halves(operation, found)
    if identity is _UNSPECIFIED:
        raise TypeError(
            f"tree.reduce_associative: {_abbreviated(tree)} has no leaves. Give `identity`, the result then."
        )
    return identity


def _combine_halves(operation: Callable[[_T, _T], _T], items: list[_T]) -> _T:
    if len(items) == 1:
        return items[0]
    middle = len(items) // 2
    return operation(_combine_halves(operation, items[:middle]), _combine_halves(operation, items[middle:]))


def all(tree: Tree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true; True for a tree without leaves.

    >>> from morphax import tree
    >>> tree.all([True, {"a": 1}]), tree.all([0, 1])
    (True, False)
    """
    return not any(not leaf for leaf in leaves(tree, is_leaf))


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Tree) -> Tree:
    """The tree of trees with the two levels exchanged: from an outer tree of inner trees to the reverse.

    Args:
        outer_treedef: structure of the outer tree.
        inner_treedef: structure of every inner tree; None means that of the first.
        pytree_to_transpose: a tree of structure `outer_treedef.compose(inner_treedef)`.
    Raises:
        TypeError: the tree has another structure.

    >>> from morphax import tree
    >>> rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    >>> tree.transpose(tree.structure([0, 0]), tree.structure({"a": 0, "b": 0}), rows)
    {'a': [1, 3], 'b': [2, 4]}
    """
    _check_treedef("tree.transpose", outer_treedef)
    inner = _first_inner(outer_treedef, pytree_to_transpose) if inner_treedef is None else inner_treedef
    _check_treedef("tree.transpose", inner)
    found, treedef = flatten(pytree_to_transpose)
    expected = outer_treedef.compose(inner)
    if treedef != expected:
        differences = structure_difference(expected, treedef, names=("outer of inner", "the tree"))
        raise TypeError(
            f"tree.transpose: Mismatch of structures, {_first_of(differences)} The tree must have the structure "
            f"{_abbreviated(expected)}, it has {_abbreviated(treedef)}."
        )
    width = inner.num_leaves
    return inner.unflatten([outer_treedef.unflatten(found[column::width]) for column in range(width)])


def _first_inner(outer: PyTreeDef, tree: Tree) -> PyTreeDef:
    differences = structure_difference(outer, tree, prefix=True, names=("outer", "the tree"))
    if differences:
        raise TypeError(
            f"tree.transpose: Mismatch of structures, {_first_of(differences)} Give the tree that outer has."
        )
    if not outer.num_leaves:
        raise TypeError(f"tree.transpose: {outer} has no leaves to tell the inner structure. Give `inner_treedef`.")
    return structure(outer.flatten_up_to(tree)[0])


def broadcast(prefix_tree: Tree, full_tree: Tree, is_leaf: IsLeaf = None) -> Tree:
    """The tree with the structure of `full_tree` in which each leaf of `prefix_tree` fills the subtree at its place.

    Args:
        prefix_tree: the top of `full_tree`: it may end in a leaf where `full_tree` goes on.
        full_tree: any pytree.
        is_leaf: as in `flatten`, for `prefix_tree` only.
    Raises:
        ValueError: `prefix_tree` has a node where `full_tree` has a leaf or another node.

    >>> from morphax import tree
    >>> tree.broadcast([1, 2], [(0, 0), {"a": 0}])
    [(1, 1), {'a': 2}]
    """
    treedef = structure(full_tree)
    return treedef.unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf, what="tree.broadcast"))


def broadcast_prefix(prefix: Tree, full: Tree | PyTreeDef, is_leaf: IsLeaf = None, *, what: str) -> list[Any]:
    """One leaf of `prefix` for each leaf of `full`, from left to right.

    Args:
        prefix: a tree that is the top of `full`.
        full: a tree, or its structure.
        is_leaf: as in `flatten`, for `prefix` only. With `lambda x: x is None`, None is a leaf of the prefix.
        what: what the prefix is, as `vmap in_axes`: the first words of the message.
    Raises:
        ValueError: the prefix has a node where `full` has a leaf or another node.

    >>> broadcast_prefix([0, None], [(1, 2), {"a": 3}], lambda x: x is None, what="vmap in_axes")
    [0, 0, None]
    """
    prefix_leaves, prefix_def = flatten(prefix, is_leaf)
    full_def = full if isinstance(full, PyTreeDef) else structure(full)
    if prefix_def == _LEAF:  # the usual in_axes=0
        return prefix_leaves * full_def.num_leaves
    counts: list[int] = []
    if not _count_under_leaves(prefix_def, full_def, counts):
        differences = structure_difference(prefix, full, prefix=True, is_leaf=is_leaf, names=("the prefix", "the tree"))
        raise ValueError(
            f"{what}: the prefix does not fit its tree, {_first_of(differences)} Prefix: {_abbreviated(prefix_def)}; "
            f"tree: {_abbreviated(full_def)}. Give the tree's own containers, or one leaf in place of a whole subtree."
        )
    result = []
    for leaf, count in zip(prefix_leaves, counts):
        result.extend([leaf] * count)
    return result


def _count_under_leaves(prefix: PyTreeDef, full: PyTreeDef, counts: list[int]) -> bool:
    node = prefix.node_data()
    if node is None:
        counts.append(full.num_leaves)
        return True
    if node != full.node_data():
        return False
    children, full_children = prefix.children(), full.children()
    if len(children) != len(full_children):
        return False
    return not any(not _count_under_leaves(*pair, counts) for pair in zip(children, full_children))


def static(**kwargs: Any) -> Any:  # Any: the arguments and the type of dataclasses.field
    """`dataclasses.field(**kwargs)` marked as static: for `register_dataclass`, a part of the structure, not a child.

    >>> import dataclasses
    >>> from morphax import tree, tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = tree.static(default="dense")
    >>> tree.leaves(Layer(1.0))
    [1.0]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


# Structures


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    >>> from morphax import tree, tree_util
    >>> tree_util.treedef_children(tree.structure((1, [2])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    _check_treedef("treedef_children", treedef)
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of the tuple of trees with the structures `treedefs`.

    >>> from morphax import tree, tree_util
    >>> tree_util.treedef_tuple([tree.structure(1), tree.structure([2])])
    PyTreeDef((*, [*]))
    """
    children = list(treedefs)
    for child in children:
        _check_treedef("treedef_tuple", child)
    return _pytree.treedef_tuple(registry, children)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether `treedef` is one node without children: a leaf, None or an empty container.

    >>> from morphax import tree, tree_util
    >>> tree_util.treedef_is_leaf(tree.structure(1)), tree_util.treedef_is_leaf(tree.structure([1]))
    (True, False)
    """
    _check_treedef("treedef_is_leaf", treedef)
    return treedef.num_nodes == 1


class _Level(NamedTuple):
    """One node: its type, its static part, and what lies below it."""

    kind: type
    static_part: Any  # Any: whatever the type's flatten function gives
    keys: Sequence[Any]
    children: Sequence[Any]


def structure_difference(
    a: Tree | PyTreeDef,
    b: Tree | PyTreeDef,
    *,
    prefix: bool = False,
    is_leaf: IsLeaf = None,
    names: tuple[str, str] = ("the first", "the second"),
) -> list[tuple[Path, str]]:
    """Every place at which two structures differ, as (key path, what differs), for messages; empty when they agree.

    Args:
        a: a tree or a structure.
        b: a tree or a structure.
        prefix: whether a leaf of `a` agrees with every subtree.
        is_leaf: as in `flatten`, for `a` only, where `a` is a tree.
        names: what the text calls `a` and `b`.

    >>> structure_difference([1, (2, 3)], [1, [2, 3]], names=("carry in", "carry out"))
    [((SequenceKey(idx=1),), 'carry in has a tuple of length 2, carry out a list of length 2')]
    """
    differences: list[tuple[Path, str]] = []
    level_a = _treedef_level if isinstance(a, PyTreeDef) else _tree_level
    level_b = _treedef_level if isinstance(b, PyTreeDef) else _tree_level
    pending: list[tuple[Path, Any, Any]] = [((), a, b)]
    while pending:
        path, node_a, node_b = pending.pop()
        stops = is_leaf is not None and level_a is _tree_level and is_leaf(node_a)
        one = None if stops else level_a(node_a)
        if one is None and prefix:
            continue
        two = level_b(node_b)
        text = _node_difference(one, two, node_a, node_b, names)
        if text:
            differences.append((path, text))
        elif one is not None and two is not None:
            below = [(path + (key,), x, y) for key, x, y in zip(one.keys, one.children, two.children)]
            pending.extend(reversed(below))
    return differences


def _node_difference(one: _Level | None, two: _Level | None, a: Tree, b: Tree, names: tuple[str, str]) -> str:
    """What differs between two nodes, themselves and not their children, or ''."""
    if one is None and two is None:
        return ""
    first, second = names
    if one is None or two is None or one.kind is not two.kind:
        return f"{first} has {_describe(one, a)}, {second} {_describe(two, b)}"
    if one.static_part != two.static_part:
        return _static_difference(one, two, names)
    if len(one.children) != len(two.children):
        return f"{first} has {_describe(one, a)}, {second} {_describe(two, b)}"
    return ""


# How the static part of a mapping gives its keys.
_MAPPING_KEYS: dict[type, Callable[[Any], Sequence[Any]]] = {
    dict: lambda static_part: static_part,
    collections.OrderedDict: lambda static_part: static_part,
    collections.defaultdict: lambda static_part: static_part[1],
}


def _static_difference(one: _Level, two: _Level, names: tuple[str, str]) -> str:
    first, second = names
    kind = one.kind.__qualname__
    if one.kind in _MAPPING_KEYS:
        keys_of = _MAPPING_KEYS[one.kind]
        keys, others = keys_of(one.static_part), keys_of(two.static_part)
        missing = [key for key in others if key not in keys]
        extra = [key for key in keys if key not in others]
        found = [(first, extra), (second, missing)]
        parts = [f"only {name} has the keys {_abbreviated(only)}" for name, only in found if only]
        if parts:
            return f"of two {kind}s " + ", ".join(parts)
    one_part, two_part = _abbreviated(one.static_part), _abbreviated(two.static_part)
    return f"{first} has a {kind} with the static part {one_part}, {second} one with {two_part}"


def _describe(level: _Level | None, node: Tree) -> str:
    if level is None:
        return "a leaf" if isinstance(node, PyTreeDef) else f"a leaf of type {type(node).__qualname__}"
    kind, count = level.kind, len(level.children)
    if kind is type(None):
        return "None, which has no leaves"
    if kind in _MAPPING_KEYS:
        return f"a {kind.__qualname__} with the keys {_abbreviated(list(_MAPPING_KEYS[kind](level.static_part)))}"
    if kind in (tuple, list):
        return f"a {kind.__qualname__} of length {count}"
    return f"a {kind.__qualname__} with {count} {'child' if count == 1 else 'children'}"


def _treedef_level(treedef: PyTreeDef) -> _Level | None:
    node = treedef.node_data()
    if node is None:
        return None
    kind, static_part = node
    children = treedef.children()
    if kind is dict:
        static_part = tuple(static_part)
    return _Level(kind, static_part, _child_keys(kind, static_part, len(children)), children)


def _tree_level(tree: Tree) -> _Level | None:
    level = registry.flatten_one_level_with_keys(tree)
    if level is None:
        return None
    pairs, static_part = level
    kind = type(tree)
    children = [child for _, child in pairs]
    if static_part is kind:  # a named tuple, for which node_data has None
        return _Level(kind, None, _child_keys(kind, None, len(children)), children)
    return _Level(kind, static_part, [key for key, _ in pairs], children)


# The data fields of the types given to register_dataclass: the keys of their children where only a structure is known.
_dataclass_fields: dict[type, tuple[str, ...]] = {}


def _child_keys(kind: type, static_part: Any, count: int) -> list[Any]:
    if kind in _MAPPING_KEYS:
        return [DictKey(key) for key in _MAPPING_KEYS[kind](static_part)]
    if kind in (tuple, list):
        return [SequenceKey(index) for index in range(count)]
    fields = _dataclass_fields.get(kind)
    if fields is None and issubclass(kind, tuple):
        # getattr: this attribute is all that makes a tuple subclass a named tuple, for jaxlib too.
        fields = getattr(kind, "_fields", None)
    if fields is not None and len(fields) == count:
        return [GetAttrKey(field) for field in fields]
    return [FlattenedIndexKey(index) for index in range(count)]


# Registration


def register_pytree_node(
    nodetype: type[_T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_with_keys_func: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make instances of `nodetype` nodes.

    Args:
        nodetype: a class; its subclasses stay leaves.
        flatten_func: from an instance to (children, static part); the static part is hashable and has an `==`.
        unflatten_func: from (static part, children) to an instance. The children may be any objects.
        flatten_with_keys_func: from an instance to (pairs (key, child), static part), for key paths.
    Raises:
        ValueError: `nodetype` is registered already, or is a container that every tree knows.

    >>> from morphax import tree, tree_util
    >>> class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> tree_util.register_pytree_node(Pair, lambda p: ((p.left, p.right), None), lambda _, children: Pair(*children))
    >>> tree.leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    _check_registrable("register_pytree_node", nodetype)
    registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(
    nodetype: type[_T],
    flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], _T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make instances of `nodetype` nodes whose children have names in key paths.

    Args:
        nodetype: a class; its subclasses stay leaves.
        flatten_with_keys: from an instance to (pairs (key, child), static part).
        unflatten_func: from (static part, children) to an instance.
        flatten_func: from an instance to (children, static part): the same without the keys, where that is faster.
    Raises:
        ValueError: `nodetype` is registered already, or is a container that every tree knows.

    >>> from morphax import tree, tree_util
    >>> class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    >>> key = tree_util.GetAttrKey("content")
    >>> tree_util.register_pytree_with_keys(Box, lambda b: (((key, b.content),), None), lambda _, c: Box(*c))
    >>> tree_util.keystr(tree.leaves_with_path([Box(1)])[0][0])
    '[0].content'
    """
    _check_registrable("register_pytree_with_keys", nodetype)

    def without_keys(node: _T) -> tuple[list[Any], Hashable]:
        pairs, static_part = flatten_with_keys(node)
        return [child for _, child in pairs], static_part

    registry.register_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: _Class) -> _Class:
    """`cls`, made a node type by its methods `tree_flatten(self)` and `tree_unflatten(cls, static_part, children)`.

    Raises:
        AttributeError: a method is missing. ValueError: `cls` is registered already.

    >>> from morphax import tree, tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static_part, children):
    ...         return cls(*children)
    >>> tree.map(lambda x: 2 * x, Point(1, 2)).y
    4
    """
    flatten_func, unflatten_func = _methods("register_pytree_node_class", cls, "tree_flatten", "tree_unflatten")
    _check_registrable("register_pytree_node_class", cls)
    registry.register_node(cls, flatten_func, unflatten_func)
    return cls


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """`cls`, made a node type by its methods `tree_flatten_with_keys(self)` and `tree_unflatten`.

    `tree_unflatten(cls, static_part, children)` is a class method. A method `tree_flatten(self)`, where there is one,
    serves when no keys are needed.

    Raises:
        AttributeError: a method is missing. ValueError: `cls` is registered already.

    >>> from morphax import tree, tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Interval:
    ...     def __init__(self, low):
    ...         self.low = low
    ...     def tree_flatten_with_keys(self):
    ...         return [(tree_util.GetAttrKey("low"), self.low)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, static_part, children):
    ...         return cls(*children)
    >>> tree.leaves_with_path(Interval(1))
    [((GetAttrKey(name='low'),), 1)]
    """
    function = "register_pytree_with_keys_class"
    flatten_with_keys, unflatten_func = _methods(function, cls, "tree_flatten_with_keys", "tree_unflatten")
    _check_registrable(function, cls)
    # getattr: the method is optional by the protocol.
    register_pytree_with_keys(cls, flatten_with_keys, unflatten_func, getattr(cls, "tree_flatten", None))
    return cls


def register_dataclass(
    nodetype: _Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Class:
    """`nodetype`, made a node type by its fields; also a class decorator.

    A node is rebuilt by calling `nodetype` with the data and static fields as keyword arguments.

    Args:
        nodetype: a dataclass, or, when the fields are given, any class with such attributes and such a constructor.
        data_fields: the fields that are children. By default all that are not static.
        meta_fields: the fields that are static: hashable and compared by `==`. By default those made by `tree.static`,
            or by `dataclasses.field(metadata={"static": True})`.
        drop_fields: fields that a rebuilt node does not keep: its constructor sets them.
    Raises:
        TypeError: one of `data_fields` and `meta_fields` without the other, or neither for a class not a dataclass.
        ValueError: a field of the constructor is missing, superfluous or both data and static; or `nodetype` is
            registered already.

    >>> import dataclasses
    >>> from morphax import tree, tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Dense:
    ...     weight: float
    ...     bias: float
    ...     name: str = tree.static(default="dense")
    >>> tree.map(lambda x: x + 1, Dense(1, 2))
    Dense(weight=2, bias=3, name='dense')
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            f"register_dataclass: data_fields and meta_fields must both be specified when either is specified. "
            f"Got {data_fields=} {meta_fields=}."
        )
    fields = _fields(nodetype)
    if data_fields is None or meta_fields is None:
        if fields is None:
            raise TypeError(
                f"register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. "
                f"Got {nodetype=}. Decorate it with dataclasses.dataclass first."
            )
        kept = [field for field in fields if field.name not in drop_fields]
        meta_fields = [field.name for field in kept if field.metadata.get("static", False)]
        data_fields = [field.name for field in kept if not field.metadata.get("static", False)]
    if fields is not None:
        constructor_fields = {field.name for field in fields if field.init}
        _check_fields(nodetype, constructor_fields - set(drop_fields), data_fields, meta_fields)
    _check_registrable("register_dataclass", nodetype)
    registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    _dataclass_fields[nodetype] = tuple(data_fields)
    return nodetype


def _fields(nodetype: object) -> tuple[dataclasses.Field[Any], ...] | None:
    if not (isinstance(nodetype, type) and dataclasses.is_dataclass(nodetype)):
        return None
    return dataclasses.fields(nodetype)


def _check_fields(nodetype: type, wanted: set[str], data_fields: Sequence[str], meta_fields: Sequence[str]) -> None:
    where = f"register_dataclass: {nodetype.__qualname__}:"
    overlap = sorted(set(data_fields) & set(meta_fields))
    if overlap:
        raise ValueError(f"{where} data_fields and meta_fields must not overlap; both have {overlap}. Keep one.")
    given = {*data_fields, *meta_fields}
    rule = "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only them."
    if wanted - given:
        raise ValueError(
            f"{where} {rule} Missing fields: {sorted(wanted - given)}. Add them to one of the two, or to drop_fields "
            f"when the constructor can do without them."
        )
    if given - wanted:
        raise ValueError(
            f"{where} {rule} Unexpected fields: {sorted(given - wanted)}. Leave them out; a field with init=False that "
            f"the class sets itself belongs in drop_fields."
        )


def register_static(cls: _Class) -> _Class:
    """`cls`, made a node type without children: an instance is static, a part of the structure.

    Instances must be hashable and have an `==`: what is compiled for one holds for all equal ones.

    Raises:
        ValueError: `cls` is registered already.

    >>> from morphax import tree, tree_util
    >>> @tree_util.register_static
    ... class Name(str):
    ...     pass
    >>> tree.leaves([Name("a"), 1])
    [1]
    """
    _check_registrable("register_static", cls)
    registry.register_node(cls, lambda node: ((), node), lambda node, _: node, lambda node: ((), node))
    return cls


def _check_registrable(function: str, nodetype: type) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{function}: {nodetype!r} is not a class. Give the class whose instances are nodes.")
    # jaxlib counts every named tuple as a node; it may get functions of its own, once.
    if registry.is_node(nodetype) and not (issubclass(nodetype, tuple) and nodetype is not tuple):
        raise ValueError(
            f"{function}: Duplicate custom PyTreeDef type registration for {nodetype}. Register each class once, "
            f"beside its definition; containers such as list and dict are nodes already."
        )


# Any: methods of a class that is known only when it is registered.
def _methods(function: str, cls: type, *names: str) -> list[Any]:
    try:
        return [getattr(cls, name) for name in names]
    except AttributeError as error:
        raise AttributeError(f"{function}: {error}. The class needs the methods {' and '.join(names)}.") from None


# Node types of our own


class _Opaque:
    """A callable equal to the one it holds. `functools.partial` does not merge it with a partial around it."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """`functools.partial` as a node: its arguments are children, its function is static.

    So a function with arguments can go into and out of transformed functions as a value. Two have the same structure
    when their functions are equal; the arguments of a partial that is itself the function belong to that function.

    >>> from morphax import tree, tree_util
    >>> add = tree_util.Partial(lambda x, y: x + y, 1)
    >>> tree.map(lambda x: 10 * x, add)(2)
    12
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **kw)


def _sorted_keys(mapping: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(mapping))
    except TypeError as error:
        raise ValueError(f"a {type(mapping).__qualname__} with {_unsortable(mapping, error)}") from None


def _unsortable(mapping: dict[Any, Any], error: TypeError) -> str:
    return (
        f"the keys {_abbreviated(list(mapping))} cannot be a node, since they cannot be sorted: {error}. "
        f"Use keys of one type, or an OrderedDict, which keeps its own order."
    )


def _flatten_defaultdict(node: collections.defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Hashable]:
    keys = _sorted_keys(node)
    return tuple(node[key] for key in keys), (node.default_factory, keys)


def _flatten_defaultdict_with_keys(node: collections.defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Hashable]:
    keys = _sorted_keys(node)
    return tuple((DictKey(key), node[key]) for key in keys), (node.default_factory, keys)


registry.register_node(
    collections.OrderedDict,
    lambda node: (tuple(node.values()), tuple(node)),
    lambda keys, children: collections.OrderedDict(zip(keys, children)),
    lambda node: (tuple((DictKey(key), child) for key, child in node.items()), tuple(node)),
)
registry.register_node(
    collections.defaultdict,
    _flatten_defaultdict,
    lambda static_part, children: collections.defaultdict(static_part[0], zip(static_part[1], children)),
    _flatten_defaultdict_with_keys,
)
registry.register_node(
    Partial,
    lambda node: ((node.args, node.keywords), node.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)

_LEAF = structure(0)


# Messages


def _abbreviated(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-45:]}"


def _first_of(differences: list[tuple[Path, str]]) -> str:
    path, text = differences[0]
    where = f"at {keystr(path)}" if path else "at the root"
    more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return f"{where}{more}: {text}."


def _check_treedef(function: str, treedef: object) -> None:
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(f"{function}: {_abbreviated(treedef)} is not a PyTreeDef. Use tree.structure(...) of a tree.")


def _raise_leaf_error(function: str, leaf: object) -> NoReturn:
    raise ValueError(
        f"{function}: can't tree-flatten type: {type(leaf)}, a leaf. Register the class to make its instances nodes."
    )


def _raise_flatten_error(function: str, error: Exception, tree: Tree, is_leaf: IsLeaf) -> NoReturn:
    """Raise `error` with its place and cure when it is a known one, else as it is."""
    if isinstance(error.__cause__, RecursionError):
        raise RecursionError(
            f"{function}: the tree is nested too deep for the recursion limit, {sys.getrecursionlimit()}, or contains "
            f"itself. Make it flatter, or break the circle."
        ) from None
    if isinstance(error.__cause__, TypeError):
        _raise_for_unsortable_dict(function, tree, is_leaf)
    raise error


def _raise_for_unsortable_dict(function: str, tree: Tree, is_leaf: IsLeaf) -> None:
    pending: list[tuple[Path, Any]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        if is_leaf is not None and is_leaf(node):
            continue
        if type(node) is dict:
            try:
                sorted(node)
            except TypeError as error:
                place = f" at {keystr(path)}" if path else ""
                raise ValueError(f"{function}: the dict{place} with {_unsortable(node, error)}") from None
        level = _tree_level(node)
        if level is not None:
            pending.extend((path + (key,), child) for key, child in zip(level.keys, level.children))
