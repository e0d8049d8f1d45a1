"""Pytrees: values as JAX 0.10.2 gives them, messages, and round trips."""

import collections
import dataclasses
import functools
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morphax import tree, tree_util
from morphax.support import tree as internal

Point = collections.namedtuple("Point", "x y")


class Node:
    """A custom node without key names."""

    def __init__(self, *children):
        self.children = children

    def __eq__(self, other):
        return isinstance(other, Node) and self.children == other.children

    __hash__ = None


tree_util.register_pytree_node(Node, lambda n: (n.children, "static"), lambda _, children: Node(*children))


@tree_util.register_pytree_with_keys_class
class Keyed:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def tree_flatten_with_keys(self):
        return [(tree_util.GetAttrKey("low"), self.low), (tree_util.GetAttrKey("high"), self.high)], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: object
    name: str = tree.static(default="dense")
    bias: object = 0


@tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    value: str


def none_is_leaf(x):
    return x is None


LEAVES = [
    (3, [3]),
    (None, []),
    ((), []),
    ([1, (2, [3])], [1, 2, 3]),
    ({"b": 1, "a": 2}, [2, 1]),
    (collections.OrderedDict([("b", 1), ("a", 2)]), [1, 2]),
    (collections.defaultdict(list, {"b": 1, "a": 2}), [2, 1]),
    (Point(1, [2]), [1, 2]),
    (Node(1, Node(2)), [1, 2]),
    (Keyed(1, 2), [1, 2]),
    (Layer([1, 2], "s", 3), [1, 2, 3]),
    ([Mode("a"), 2], [2]),
    (tree_util.Partial(print, [1], b=2, a=3), [1, 3, 2]),
]


@pytest.mark.parametrize("value, expected", LEAVES, ids=lambda value: type(value).__name__)
def test_leaves_of_every_node_type(value, expected):
    leaves, treedef = tree.flatten(value)
    assert leaves == expected
    assert leaves == tree.leaves(value) == [leaf for _, leaf in tree.leaves_with_path(value)]
    rebuilt = tree.unflatten(treedef, leaves)
    assert type(rebuilt) is type(value)
    assert tree.structure(rebuilt) == treedef
    assert hash(tree.structure(rebuilt)) == hash(treedef)
    assert tree.leaves(rebuilt) == leaves


@pytest.mark.parametrize("base", [dict, list, tuple, collections.OrderedDict], ids=lambda base: base.__name__)
def test_subclass_of_a_container_is_a_leaf(base):
    value = type("Sub", (base,), {})()
    assert tree.leaves(value)[0] is value


def test_subclass_of_a_named_tuple_is_a_node():
    sub = type("Sub", (Point,), {})
    assert tree.leaves(sub(1, 2)) == [1, 2]
    assert type(tree.map(str, sub(1, 2))) is sub


def trees(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.tuples(inner, inner),
            st.dictionaries(st.text(max_size=3), inner, max_size=3),
            st.builds(Point, inner, inner),
            st.builds(Node, inner, inner),
            st.builds(Layer, inner, st.text(max_size=2), inner),
            st.lists(st.tuples(st.text(max_size=2), inner), max_size=2).map(collections.OrderedDict),
        ),
        max_leaves=20,
    )


TREES = trees(st.integers() | st.none())


@given(TREES)
def test_unflatten_inverts_flatten(value):
    leaves, treedef = tree.flatten(value)
    assert tree.unflatten(treedef, iter(leaves)) == value
    assert treedef.num_leaves == len(leaves)


@given(TREES)
def test_paths_are_distinct_and_follow_the_leaves(value):
    pairs, treedef = tree.flatten_with_path(value)
    assert treedef == tree.structure(value)
    assert [leaf for _, leaf in pairs] == tree.leaves(value)
    assert len({path for path, _ in pairs}) == len(pairs)


@given(TREES, TREES)
def test_structure_difference_is_empty_exactly_for_equal_structures(a, b):
    a_def, b_def = tree.structure(a), tree.structure(b)
    assert internal.structure_difference(a, a) == internal.structure_difference(a, a_def) == []
    assert bool(internal.structure_difference(a, b)) == (a_def != b_def)
    assert bool(internal.structure_difference(a_def, b_def)) == (a_def != b_def)


@given(TREES, st.data())
def test_broadcast_prefix_takes_any_top_of_a_tree(value, data):
    labels = itertools.count()
    prefix = tree.map(lambda _: next(labels), value, is_leaf=lambda _: data.draw(st.booleans()))
    expected = []
    tree.map(lambda label, subtree: expected.extend([label] * len(tree.leaves(subtree))), prefix, value)
    assert internal.broadcast_prefix(prefix, value, what="test") == expected
    assert internal.broadcast_prefix(prefix, tree.structure(value), what="test") == expected
    assert tree.leaves(tree.broadcast(prefix, value)) == expected


def test_none_is_a_leaf_where_is_leaf_says_so():
    assert tree.structure([None, 1], is_leaf=none_is_leaf) == tree.structure([0, 0])
    assert tree.leaves_with_path([None], is_leaf=none_is_leaf) == [((tree_util.SequenceKey(0),), None)]
    assert tree.all([None, 1], is_leaf=none_is_leaf) is False
    assert tree.all([None, 1]) is True


PATHS = [
    ({"a": [1]}, ["['a'][0]"]),
    (collections.OrderedDict(z=1, y=2), ["['z']", "['y']"]),
    (collections.defaultdict(list, k=3), ["['k']"]),
    ([Point(1, (2,))], ["[0].x", "[0].y[0]"]),
    ((Node(5),), ["[0][<flat index 0>]"]),
    (Keyed(1, [2]), [".low", ".high[0]"]),
    (Layer([1]), [".weight[0]", ".bias"]),
    (tree_util.Partial(print, 1, k=2), ["[<flat index 0>][0]", "[<flat index 1>]['k']"]),
    (3, [""]),
]


@pytest.mark.parametrize("value, expected", PATHS, ids=lambda value: type(value).__name__)
def test_key_paths(value, expected):
    assert [tree_util.keystr(path) for path, _ in tree.leaves_with_path(value)] == expected


def test_keystr_forms():
    path = (
        tree_util.DictKey("a"),
        tree_util.SequenceKey(3),
        tree_util.GetAttrKey("q"),
        tree_util.FlattenedIndexKey(4),
        tree_util.DictKey(("x", 1)),
    )
    assert tree_util.keystr(path) == "['a'][3].q[<flat index 4>][('x', 1)]"
    assert tree_util.keystr(path, simple=True, separator="/") == "a/3/q/4/('x', 1)"
    assert tree_util.keystr(path, separator="/") == "['a']/[3]/.q/[<flat index 4>]/[('x', 1)]"
    assert tree_util.keystr((1, "foo"), simple=True, separator=".") == "1.foo"


def test_is_leaf_can_take_the_path():
    seen = []

    def is_leaf(path, node):
        seen.append((tree_util.keystr(path), node))
        return len(path) == 1

    pairs, treedef = tree.flatten_with_path({"a": [1, 2]}, is_leaf, is_leaf_takes_path=True)
    assert pairs == [((tree_util.DictKey("a"),), [1, 2])]
    assert treedef == tree.structure({"a": 0})
    assert seen == [("", {"a": [1, 2]}), ("['a']", [1, 2])]
    assert tree.map_with_path(lambda p, x: len(p), [(1,), 2], is_leaf=is_leaf, is_leaf_takes_path=True) == [1, 1]


def test_map_gives_whole_subtrees_of_the_other_trees():
    assert tree.map(lambda a, b: (a, b), [1, 2], [(1, 2), None]) == [(1, (1, 2)), (2, None)]
    assert tree.map(lambda x: x, 3) == 3
    tuples = [1, (2, 3)]
    assert tree.map(lambda a, b: (a, b), tuples, [(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [
        (1, (1, 2)),
        ((2, 3), 3),
    ]
    assert tree.map_with_path(lambda p, x, y: (tree_util.keystr(p), x, y), {"a": [1]}, {"a": [(2,)]}) == {
        "a": [("['a'][0]", 1, (2,))]
    }


MISMATCHES = [
    (
        [1, {"a": 2}],
        [1, {"b": 2}],
        "at [1]: of two dicts only tree has the keys ['a'], only rest[0] has the keys ['b']",
    ),
    ([1, 2], (1, 2), "at the root: tree has a list of length 2, rest[0] a tuple of length 2"),
    ([1, 2], [1, 2, 3], "at the root: tree has a list of length 2, rest[0] a list of length 3"),
    ([1, 2], None, "rest[0] None, which has no leaves"),
    ([1, None], [1, 2], "at [1]: tree has None, which has no leaves, rest[0] a leaf of type int"),
    ({"a": (1, 2)}, {"a": 3}, "at ['a']: tree has a tuple of length 2, rest[0] a leaf of type int"),
    (Point(1, 2), (1, 2), "tree has a Point with 2 children, rest[0] a tuple of length 2"),
    (Layer(1, "s", 3), Layer(1, "t", 3), "tree has a Layer with the static part ('s',), rest[0] one with ('t',)"),
    ([Keyed(1, [2])], [Keyed(1, (2,))], "at [0].high: tree has a list of length 1, rest[0] a tuple of length 1"),
    (
        collections.OrderedDict(b=1, a=2),
        collections.OrderedDict(a=1, b=2),
        "tree has a OrderedDict with the static part ('b', 'a'), rest[0] one with ('a', 'b')",
    ),
    (
        collections.defaultdict(list, a=1),
        collections.defaultdict(int, a=1),
        "a defaultdict with the static part (<class 'list'>, ('a',)), rest[0] one with (<class 'int'>, ('a',))",
    ),
    ([[1], [2]], [(1,), (2,)], "at [0] (and 1 more): tree has a list"),
]


@pytest.mark.parametrize("first, second, message", MISMATCHES, ids=[str(row) for row in range(len(MISMATCHES))])
def test_map_over_different_structures_names_the_place_and_both_sides(first, second, message):
    with pytest.raises(ValueError) as caught:
        tree.map(lambda a, b: a, first, second)
    assert message in str(caught.value)
    assert str(caught.value).startswith("tree.map: tree and rest[0] have different structures, at ")
    with pytest.raises(ValueError, match=r"tree\.map_with_path: tree and rest\[1\]"):
        tree.map_with_path(lambda p, a, b, c: a, first, first, second)


def test_structure_difference_names_fields_where_only_structures_are_known():
    a, b = tree.structure([Layer((1, 2))]), tree.structure([Layer([1, 2])])
    ((path, text),) = internal.structure_difference(a, b, names=("branch 0", "branch 1"))
    assert tree_util.keystr(path) == "[0].weight"
    assert text == "branch 0 has a tuple of length 2, branch 1 a list of length 2"
    ((path, text),) = internal.structure_difference(tree.structure(Point(1, {"a": 2})), Point(1, 2))
    assert tree_util.keystr(path) == ".y"
    assert text == "the first has a dict with the keys ['a'], the second a leaf of type int"
    assert internal.structure_difference(tree.structure({"a": 1, "b": 2}), {"b": 3, "a": 4}) == []


def test_reduce():
    assert tree.reduce(lambda a, b: a + b, [1, (2,)]) == 3
    assert tree.reduce(lambda a, b: a + b, [1, 2], 10) == 13
    assert tree.reduce(lambda a, b: a, [], None) is None
    assert tree.reduce(lambda a, b: (a, b), [None, 1], 0, none_is_leaf) == ((0, None), 1)
    with pytest.raises(TypeError, match=r"tree\.reduce: \[\] has no leaves and there is no initializer"):
        tree.reduce(lambda a, b: a + b, [])


@pytest.mark.parametrize(
    "letters, expected",
    [("a", "a"), ("abc", "(a(bc))"), ("abcde", "((ab)(c(de)))"), ("abcdefg", "((a(bc))((de)(fg)))")],
)
def test_reduce_associative_is_a_balanced_tree(letters, expected):
    assert tree.reduce_associative(lambda a, b: f"({a}{b})", list(letters), identity="unused") == expected


def test_reduce_associative_without_leaves():
    assert tree.reduce_associative(max, [], identity=5) == 5
    with pytest.raises(TypeError, match=r"tree\.reduce_associative: \[\] has no leaves\. Give `identity`"):
        tree.reduce_associative(max, [])


def test_transpose():
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    assert tree.transpose(outer, inner, rows) == {"a": [1, 3], "b": [2, 4]}
    assert tree.transpose(outer, None, rows) == {"a": [1, 3], "b": [2, 4]}
    assert tree.transpose(tree.structure([0]), tree.structure({}), [{}]) == {}
    # JAX raises here; the transpose of no rows is a row of empty columns.
    assert tree.transpose(tree.structure([]), tree.structure({"a": 0}), []) == {"a": []}


@pytest.mark.parametrize(
    "outer, inner, value, message",
    [
        ([0, 0], {"a": 0}, [{"a": 1, "b": 2}, {"a": 3}], "at [0]: of two dicts only the tree has the keys ['b']"),
        ([0, 0, 0], {"a": 0}, [{"a": 1}], "outer of inner has a list of length 3, the tree a list of length 1"),
        ([0, 0], None, [{"a": 1}, {"a": 3, "b": 4}], "at [1]: of two dicts only the tree has the keys ['b']"),
        ([0, 0], None, (1, 2), "outer has a list of length 2, the tree a tuple of length 2"),
        ([], None, [], "Give `inner_treedef`"),
    ],
)
def test_transpose_of_another_structure(outer, inner, value, message):
    inner_treedef = None if inner is None else tree.structure(inner)
    with pytest.raises(TypeError) as caught:
        tree.transpose(tree.structure(outer), inner_treedef, value)
    assert message in str(caught.value)
    assert str(caught.value).startswith("tree.transpose: ")


def test_broadcast():
    assert tree.broadcast([1, (2, None)], [(5, 6), ({"a": 7}, None)]) == [(1, 1), ({"a": 2}, None)]
    assert tree.broadcast([1, None], [(5, 6), 8], is_leaf=none_is_leaf) == [(1, 1), None]
    assert tree.broadcast([1, 2], [(5, 6), (None, 4)], is_leaf=none_is_leaf) == [(1, 1), (None, 2)]
    assert tree.broadcast([1, (2, 3)], [(5, 6), (None, 4)], is_leaf=lambda x: isinstance(x, tuple)) == [
        (1, 1),
        (None, (2, 3)),
    ]


def test_broadcast_prefix_of_a_tree_or_a_structure():
    full = ({"a": [1, 2]}, Layer(3), None, 4)
    for target in (full, tree.structure(full)):
        prefix = (0, None, 1, {"x": 5})
        found = internal.broadcast_prefix(prefix, target, lambda x: x is None or isinstance(x, dict), what="test")
        assert found == [0, 0, None, None, {"x": 5}]
        assert internal.broadcast_prefix(None, target, none_is_leaf, what="test") == [None] * 5
        assert internal.broadcast_prefix(9, target, what="test") == [9] * 5


@pytest.mark.parametrize(
    "prefix, full, message",
    [
        ([1, 2], [(5, 6), 4, 3], "at the root: the prefix has a list of length 2, the tree a list of length 3"),
        ({"a": 1}, {"b": 1}, "of two dicts only the prefix has the keys ['a'], only the tree has the keys ['b']"),
        ([1, (2, 3)], [0, 4], "at [1]: the prefix has a tuple of length 2, the tree a leaf of type int"),
        ([1, None], [0, 4], "at [1]: the prefix has None, which has no leaves, the tree a leaf of type int"),
        ({"w": [1]}, {"w": (1,)}, "at ['w']: the prefix has a list of length 1, the tree a tuple of length 1"),
    ],
)
def test_broadcast_prefix_that_does_not_fit(prefix, full, message):
    with pytest.raises(ValueError) as caught:
        internal.broadcast_prefix(prefix, full, what="vmap in_axes")
    text = str(caught.value)
    assert text.startswith("vmap in_axes: the prefix does not fit its tree, ")
    assert message in text
    assert repr(tree.structure(prefix)) in text
    assert repr(tree.structure(full)) in text
    with pytest.raises(ValueError, match="vmap in_axes"):
        internal.broadcast_prefix(prefix, tree.structure(full), what="vmap in_axes")


@pytest.mark.parametrize("function", [tree.flatten, tree.leaves, tree.structure, tree.flatten_with_path])
@pytest.mark.parametrize("mapping", [dict, lambda items: collections.defaultdict(int, items)], ids=["dict", "default"])
def test_dict_with_keys_of_mixed_types(function, mapping):
    with pytest.raises(ValueError) as caught:
        function([0, mapping({"a": 1, 2: 3})])
    assert "with the keys ['a', 2] cannot be a node, since they cannot be sorted: '<' not supported" in str(
        caught.value
    )
    if mapping is dict:
        assert "the dict at [1] with" in str(caught.value)
    ordered = collections.OrderedDict({"a": 1, 2: 3})
    assert tree.leaves(ordered) == [1, 3]


def test_errors_of_custom_functions_pass_through():
    class Broken:
        pass

    def fail(_):
        raise ValueError("my own message")

    tree_util.register_pytree_node(Broken, fail, lambda *_: None)
    with pytest.raises(ValueError, match=r"^my own message$"):
        tree.flatten([Broken()])
    with pytest.raises(ValueError, match=r"^my own message$"):
        tree.flatten([1], is_leaf=fail)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_deep_trees():
    assert tree.leaves(nested(300)) == [1]
    assert tree.map(str, nested(300)) != nested(300)
    assert len(tree.leaves_with_path(nested(300))[0][0]) == 300
    assert internal.structure_difference(nested(300), nested(301))
    for function in (tree.leaves, tree.leaves_with_path):
        with pytest.raises(RecursionError, match="nested too deep for the recursion limit"):
            function(nested(100_000))


def test_a_tree_that_contains_itself():
    circle = []
    circle.append(circle)
    with pytest.raises(RecursionError, match="contains itself"):
        tree.flatten(circle)


def test_unflatten_counts_the_leaves():
    treedef = tree.structure([1, 2])
    with pytest.raises(
        ValueError, match=r"tree\.unflatten: Too few leaves for PyTreeDef; expected 2, got 1\. Give one"
    ):
        tree.unflatten(treedef, [1])
    with pytest.raises(ValueError, match=r"tree\.unflatten: Too many leaves for PyTreeDef; expected 2, got 3"):
        tree.unflatten(treedef, [1, 2, 3])
    with pytest.raises(ValueError, match="got another number of them"):
        tree.unflatten(treedef, iter([1]))
    with pytest.raises(TypeError, match=r"tree\.unflatten: 3 is not a PyTreeDef"):
        tree.unflatten(3, [1])


def test_one_level():
    assert tree_util.flatten_one_level(Node([1, 2])) == (([1, 2],), "static")
    assert tree_util.flatten_one_level({"b": 1, "a": 2}) == ((2, 1), ("a", "b"))
    assert tree_util.flatten_one_level(None) == ((), None)
    pairs, _ = tree_util.flatten_one_level_with_keys(Point(1, 2))
    assert pairs == [(tree_util.GetAttrKey("x"), 1), (tree_util.GetAttrKey("y"), 2)]
    assert tree_util.flatten_one_level_with_keys(Node(3))[0] == [(tree_util.FlattenedIndexKey(0), 3)]
    for function in (tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
            function(3)


def test_node_and_leaf_predicates():
    nodes = (Node, list, type(None), Point, collections.OrderedDict, dict, tree_util.Partial)
    assert all(tree_util.is_tree_node(kind) for kind in nodes)
    assert not tree_util.is_tree_node(int)
    assert not tree_util.is_tree_node([1])
    assert tree_util.all_leaves([1, 2])
    assert tree_util.all_leaves([])
    assert not tree_util.all_leaves([1, [2]])
    assert not tree_util.all_leaves([None])
    assert tree_util.all_leaves([None], is_leaf=none_is_leaf)
    assert not tree_util.all_leaves([None, [1]], is_leaf=none_is_leaf)
    assert [tree_util.treedef_is_leaf(tree.structure(x)) for x in (1, None, [], [1])] == [True, True, True, False]


def test_treedef_functions():
    treedef = tree_util.treedef_tuple(tree.structure(x) for x in (1, [1]))
    assert treedef == tree.structure((1, [1]))
    assert tree_util.treedef_children(treedef) == [tree.structure(1), tree.structure([1])]
    with pytest.raises(TypeError, match="treedef_tuple: 1 is not a PyTreeDef"):
        tree_util.treedef_tuple([1])


def test_structures_survive_pickling():
    treedef = tree.structure([1, {"a": Point(2, 3)}, Layer(4), None])
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    partial = tree_util.Partial(max, 1)
    assert pickle.loads(pickle.dumps(partial))(3) == 3


def test_registering_twice():
    message = "Duplicate custom PyTreeDef type registration for "
    calls = [
        lambda: tree_util.register_pytree_node(Node, None, None),
        lambda: tree_util.register_pytree_node(list, None, None),
        lambda: tree_util.register_pytree_with_keys(Node, None, None),
        lambda: tree_util.register_pytree_with_keys_class(Keyed),
        lambda: tree_util.register_dataclass(Layer),
        lambda: tree_util.register_static(Mode),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="register_pytree_node: 3 is not a class"):
        tree_util.register_pytree_node(3, None, None)


def test_a_named_tuple_can_get_functions_of_its_own():
    half_static = collections.namedtuple("half_static", "x y")
    tree_util.register_pytree_node(half_static, lambda n: ((n.x,), n.y), lambda y, children: half_static(*children, y))
    assert tree.leaves(half_static(1, 2)) == [1]
    assert tree.map(str, half_static(1, 2)) == half_static("1", 2)
    with pytest.raises(ValueError, match="Duplicate"):
        tree_util.register_pytree_node(half_static, lambda n: (n, None), lambda _, children: half_static(*children))


def test_register_class_without_its_methods():
    with pytest.raises(AttributeError, match=r"register_pytree_node_class: .*needs the methods tree_flatten and"):
        tree_util.register_pytree_node_class(type("Bare", (), {}))
    with pytest.raises(AttributeError, match=r"register_pytree_with_keys_class: .*tree_flatten_with_keys"):
        tree_util.register_pytree_with_keys_class(type("Bare", (), {}))


def test_register_with_keys_of_any_kind():
    class Wrapper:
        def __init__(self, *children):
            self.children = children

    tree_util.register_pytree_with_keys(
        Wrapper, lambda w: ([("foo", w.children[0]), (3, w.children[1])], None), lambda _, c: Wrapper(*c)
    )
    assert tree.leaves_with_path(Wrapper(1, 2)) == [(("foo",), 1), ((3,), 2)]
    assert tree.leaves(Wrapper(1, 2)) == [1, 2]


def triple():
    @dataclasses.dataclass
    class Triple:
        a: int
        b: int
        c: int = dataclasses.field(default=3, init=False)

    return Triple


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"data_fields": ["a"], "meta_fields": []}, ValueError, "Missing fields: ['b']"),
        ({"data_fields": ["a"]}, TypeError, "must both be specified when either is specified"),
        ({"meta_fields": ["a"]}, TypeError, "must both be specified when either is specified"),
        ({"data_fields": ["a", "b", "z"], "meta_fields": []}, ValueError, "Unexpected fields: ['z']"),
        ({"data_fields": ["a", "b", "c"], "meta_fields": []}, ValueError, "Unexpected fields: ['c']"),
        ({"data_fields": ["a", "b"], "meta_fields": ["b"]}, ValueError, "must not overlap; both have ['b']"),
        ({}, ValueError, "Unexpected fields: ['c']"),
    ],
)
def test_register_dataclass_with_wrong_fields(arguments, error, message):
    cls = triple()
    with pytest.raises(error) as caught:
        tree_util.register_dataclass(cls, **arguments)
    assert message in str(caught.value)
    assert str(caught.value).startswith("register_dataclass: ")
    assert not tree_util.is_tree_node(cls)


def test_register_dataclass_forms():
    cls = functools.partial(tree_util.register_dataclass, data_fields=["a"], meta_fields=["b"])(triple())
    assert tree.flatten(cls(1, 2))[0] == [1]
    assert tree.map(str, cls(1, 2)) == cls("1", 2)
    dropped = tree_util.register_dataclass(triple(), drop_fields=["c"])
    assert tree.leaves(dropped(1, 2)) == [1, 2]
    assert tree.map(lambda x: 10 * x, dropped(1, 2)) == dropped(10, 20)

    class Plain:
        def __init__(self, a, b):
            self.a, self.b = a, b

    with pytest.raises(TypeError, match="are required when nodetype is not a dataclass"):
        tree_util.register_dataclass(Plain)
    tree_util.register_dataclass(Plain, ["a"], ["b"])
    assert tree.leaves_with_path(Plain(1, 2)) == [((tree_util.GetAttrKey("a"),), 1)]


def test_static_field():
    field = tree.static(default=3, metadata={"unit": "m"})
    assert field.default == 3
    assert field.metadata == {"static": True, "unit": "m"}
    assert not tree.static(metadata={"static": False}).metadata["static"]


def test_static_nodes_are_part_of_the_structure():
    assert tree.structure(Mode("a")) == tree.structure(Mode("a")) != tree.structure(Mode("b"))
    assert tree.map(str, [Mode("a"), 2]) == [Mode("a"), "2"]
    assert tree.leaves_with_path([Mode("a"), 2]) == [((tree_util.SequenceKey(1),), 2)]


def test_partial():
    partial = tree_util.Partial(max, 3)
    assert partial(4) == 4
    assert isinstance(partial, functools.partial)
    assert "Partial(<built-in function max>, 3)" in repr(partial)
    assert tree.structure(partial) == tree.structure(tree_util.Partial(max, 5))
    assert tree.map(lambda x: x + 10, partial)(4) == 13
    with pytest.raises(TypeError, match="callable"):
        tree_util.Partial(3)


@pytest.mark.parametrize("kind", [functools.partial, tree_util.Partial])
def test_partial_of_a_partial_keeps_the_inner_arguments_in_the_function(kind):
    inner = kind(max, 3)
    outer = tree_util.Partial(inner, 1)
    assert tree.leaves(outer) == [1]
    assert tree.map(lambda x: x - 9, outer)() == 3
    assert tree.structure(outer) == tree.structure(tree_util.Partial(inner, 2))
    assert hash(tree.structure(outer)) == hash(tree.structure(tree_util.Partial(inner, 2)))
    assert tree.structure(outer) != tree.structure(tree_util.Partial(kind(max, 3), 2))


def test_mapping_keeps_the_kind_and_order_of_dicts():
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    assert list(tree.map(str, ordered).items()) == [("b", "1"), ("a", "2")]
    default = tree.map(str, collections.defaultdict(list, a=1))
    assert default == {"a": "1"}
    assert default.default_factory is list


def test_public_names_are_those_of_the_reference():
    assert set(tree.__all__) == {
        *("all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path"),
        *("reduce", "reduce_associative", "static", "structure", "transpose", "unflatten"),
    }
    for module in (tree, tree_util):
        assert {name for name in dir(module) if name[0].isalpha()} == set(module.__all__)
    assert tree_util.default_registry is internal.registry
    for name in tree.__all__:
        if name != "static":
            assert getattr(tree_util, "tree_" + name) is getattr(tree, name)
