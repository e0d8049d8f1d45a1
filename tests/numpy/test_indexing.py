"""x[...] and x.at[...] against NumPy: outside transforms, under jit, vmap and grad."""

import numpy as np
import pytest

from morphax import numpy as jnp
from morphax.runtime.jit import jit
from morphax.support import config, errors
from morphax.transforms import api

SHAPE = (4, 3, 5)


def _index(rng, shape):
    """A random index expression, as NumPy would accept it."""
    parts = []
    dims = list(shape)
    common = tuple(rng.integers(1, 4, rng.integers(0, 3)))
    arrays = rng.random() < 0.6
    for size in dims[: rng.integers(0, len(dims) + 1)]:
        choice = rng.random()
        if choice < 0.25:
            parts.append(int(rng.integers(-size, size)))
        elif choice < 0.55:
            start, stop = (None if rng.random() < 0.3 else int(rng.integers(-size - 1, size + 2)) for _ in range(2))
            step = [None, 1, 2, -1, -2][rng.integers(5)]
            parts.append(slice(start, stop, step))
        elif choice < 0.85 and arrays:
            own = common if rng.random() < 0.7 else (1,) * len(common)
            parts.append(rng.integers(-size, size, own).astype([np.int32, np.int64, np.int8][rng.integers(3)]))
        else:
            parts.append(slice(None))
    if rng.random() < 0.4:
        parts.insert(rng.integers(len(parts) + 1), None)
    if rng.random() < 0.3:
        parts.insert(rng.integers(len(parts) + 1), Ellipsis)
    return tuple(parts) if len(parts) != 1 or rng.random() < 0.5 else parts[0]


INDICES = [_index(np.random.default_rng(seed), SHAPE) for seed in range(120)]
X = np.arange(60, dtype="float32").reshape(SHAPE)


def ours(index):
    """The index with arrays of this library."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple([jnp.array(p) if isinstance(p, np.ndarray) else p for p in parts])
    return parts if isinstance(index, tuple) else parts[0]


@pytest.mark.parametrize("k", range(len(INDICES)))
def test_reading(k):
    index = INDICES[k]
    wanted = X[index]
    x = jnp.array(X)
    for made in (index, ours(index)):
        found = x[made]
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(jit(lambda x: x[index])(x), wanted)


@pytest.mark.parametrize("k", range(0, len(INDICES), 2))
def test_reading_under_transforms(k):
    index = INDICES[k]
    x = jnp.array(np.stack([X, X + 1]))
    np.testing.assert_array_equal(api.vmap(lambda x: x[index])(x), np.stack([X[index], X[index] + 1]))
    ct = np.random.default_rng(k).standard_normal(X[index].shape).astype("float32")
    wanted = np.zeros_like(X)
    np.add.at(wanted, index, ct)
    np.testing.assert_allclose(api.grad(lambda x: jnp.sum(x[index] * ct))(jnp.array(X)), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", range(len(INDICES)))
def test_writing(k):
    index = INDICES[k]
    rng = np.random.default_rng(k)
    x = jnp.array(X)
    shape = X[index].shape
    value = rng.standard_normal(shape[rng.integers(len(shape) + 1) :]).astype("float32")
    added, lowered = X.copy(), X.copy()
    np.add.at(added, index, value)
    np.minimum.at(lowered, index, value * 30)
    np.testing.assert_allclose(x.at[ours(index)].add(value), added, rtol=1e-5)
    np.testing.assert_allclose(jit(lambda x, v: x.at[index].add(v))(x, value), added, rtol=1e-5)
    np.testing.assert_allclose(x.at[index].min(value * 30), lowered, rtol=1e-5)
    one = X.copy()
    one[index] = 7
    np.testing.assert_array_equal(x.at[index].set(7), one)
    np.testing.assert_array_equal(jit(lambda x: x.at[index].set(7))(x), one)


@pytest.mark.parametrize("name", "set add subtract multiply divide power min max".split())
def test_each_change(name):
    x, v = X[:, 0, 0] + 1, np.float32([2, 3])
    operation = {"set": lambda a, b: b, "subtract": np.subtract, "min": np.minimum, "max": np.maximum}
    operation = operation.get(name) or getattr(np, name)
    for index in (slice(1, 3), np.array([0, 2]), slice(0, 4, 2)):
        wanted = x.copy()
        wanted[index] = operation(x[index], v)
        for made in (index, jnp.array(index) if isinstance(index, np.ndarray) else index):
            np.testing.assert_allclose(getattr(jnp.array(x).at[made], name)(v), wanted, rtol=1e-6)
    assert getattr(jnp.array([1, 2]).at[0], name)(2).dtype == np.int32


def test_apply_and_mul():
    x = jnp.array([1.0, 4.0])
    assert x.at[1].apply(jnp.sqrt).tolist() == [1, 2]
    assert x.at[0].mul(3).tolist() == [3, 4]


def test_masks():
    x = jnp.array(X)
    mask = X > 30
    for made in (mask, jnp.array(mask)):
        np.testing.assert_array_equal(x[made], X[mask])
        np.testing.assert_array_equal(x.at[made].set(0), np.where(mask, 0, X))
        np.testing.assert_array_equal(x.at[made].add(1.0), np.where(mask, X + 1, X))
    np.testing.assert_array_equal(x[mask[:, 0, 0]], X[mask[:, 0, 0]])
    np.testing.assert_array_equal(x[1, mask[0, :, 0] | True], X[1, mask[0, :, 0] | True])
    np.testing.assert_array_equal(jit(lambda x: x.at[x > 30].set(0))(x), np.where(mask, 0, X))
    values = np.arange(mask.sum(), dtype="float32")
    wanted = X.copy()
    wanted[mask] = values
    np.testing.assert_array_equal(x.at[mask].set(values), wanted)
    with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"jnp\.where"):
        jit(lambda x: x[x > 30])(x)
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[np.ones(3, bool)]


def test_positions_that_differ_from_call_to_call_share_one_program():
    x = jnp.arange(50.0)
    x[0], x[1:3], x.at[0].set(1.0)
    from_compile = __import__("morphax.runtime.compile", fromlist=["count"]).count
    before = from_compile["compiled"] + from_compile["from_disk"]
    assert [float(x[k]) for k in range(50)] == list(range(50))
    assert [x[k : k + 2].tolist()[0] for k in range(1, 48)] == list(range(1, 48))
    assert float(sum(x.at[k].set(100.0)[k] for k in range(5))) == 500
    assert from_compile["compiled"] + from_compile["from_disk"] - before <= 3


def test_positions_outside():
    x = jnp.arange(4.0)
    for call in (lambda x: x[4], lambda x: x[-5], lambda x: x.at[4].set(1.0), lambda x: x[0, 0]):
        with pytest.raises(IndexError):
            call(x)
        with pytest.raises(IndexError):
            jit(call)(x)
    for index in (np.array([0, 4]), jnp.array([0, 4]), jnp.array(4), jnp.array([-5])):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 4"):
            x[index]
        with pytest.raises(IndexError, match="out of bounds"):
            x.at[index].add(1.0)
    outside = jnp.array([1, 4, -9])
    assert jit(lambda x, i: x[i])(x, outside).tolist() == [1, 3, 0]
    assert jit(lambda x, i: x.at[i].set(9.0))(x, outside).tolist() == [0, 9, 2, 3]
    assert x.at[outside].get(mode="clip").tolist() == [1, 3, 0]
    assert x.at[outside].get(mode="fill", fill_value=-1).tolist() == [1, -1, -1]
    assert np.isnan(np.asarray(x.at[outside].get(mode="fill"))).tolist() == [False, True, True]
    assert x.at[outside].add(1.0, mode="drop").tolist() == [0, 2, 2, 3]
    assert x.at[7].get(mode="clip").item() == 3 and x.at[7].get(mode="fill", fill_value=5).item() == 5
    assert x.at[7].set(1.0, mode="drop").tolist() == [0, 1, 2, 3]
    with config.bounds("clamp"):
        assert x[7].item() == 3 and x[outside].tolist() == [1, 3, 0]


def test_traced_positions():
    x = jnp.array(X)
    i = jnp.array(-1)
    assert jit(lambda x, i: x[i, 1])(x, i).tolist() == X[-1, 1].tolist()
    assert jit(lambda x, i: x[1, i, ::2])(x, i).tolist() == X[1, -1, ::2].tolist()
    rows = api.vmap(lambda x, i: x[i])(x, jnp.array([0, 2, 1, -1]))
    np.testing.assert_array_equal(rows, np.stack([X[0, 0], X[1, 2], X[2, 1], X[3, -1]]))
    changed = api.vmap(lambda x, i: x.at[i, 0].set(-1.0))(x, jnp.array([0, 2, 1, -1]))
    assert [changed[k, j, 0].item() for k, j in enumerate([0, 2, 1, 2])] == [-1] * 4
    with pytest.raises(IndexError, match="static start/stop/step"):
        jit(lambda x, i: x[i:])(x, i)


def test_gradients_of_changes():
    x, v = jnp.arange(4.0), jnp.float32(2.0)
    assert api.grad(lambda x: jnp.sum(x.at[1].set(5.0) ** 2))(x).tolist() == [0, 0, 4, 6]
    assert api.grad(lambda v: jnp.sum(x.at[jnp.array([1, 2])].add(v) ** 2))(v).item() == 14
    assert api.grad(lambda v: jnp.sum(x.at[1:3].multiply(v)))(v).item() == 3


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        ([0, 1], TypeError, "non-tuple sequence.*jnp.array"),
        ("a", TypeError, "cannot be an index"),
        (1.5, TypeError, "cannot be an index"),
        (np.array([1.5]), TypeError, "integer or boolean type"),
        ((0, 0, 0, 0), IndexError, "too many indices"),
        ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
        (slice("a"), TypeError, "slice indices must be integers"),
    ],
)
def test_indices_that_are_refused(index, error, words):
    for fun in (lambda x: x[index], jit(lambda x: x[index])):
        with pytest.raises(error, match=words):
            fun(jnp.array(X))


def test_assignment_explains_at():
    with pytest.raises(TypeError, match=r"x\.at\[idx\]\.set\(y\)"):
        jnp.zeros(3)[0] = 1
    with pytest.raises(ValueError, match=r"shape \(3,\) does not fit the indexed part, of shape \(2,\)"):
        jnp.zeros(4).at[:2].set(jnp.zeros(3))


def test_empty_arrays():
    x = jnp.zeros((0, 3))
    assert x[:, 1].shape == (0,) and x[jnp.zeros(0, "int32")].shape == (0, 3)
    assert x.at[jnp.zeros(0, "int32")].set(1.0).shape == (0, 3) and x.at[:0].add(1.0).shape == (0, 3)
    assert jnp.arange(3)[jnp.zeros((0, 2), "int32")].shape == (0, 2)
    assert list(x) == []


def test_take_put_and_along():
    x, rng = X[0], np.random.default_rng(0)
    i = rng.integers(-5, 5, (3, 2))
    np.testing.assert_array_equal(jnp.take_along_axis(jnp.array(x), jnp.array(i), axis=1), np.take_along_axis(x, i, 1))
    assert jnp.take(jnp.arange(3), jnp.array([5, -4]), mode="wrap").tolist() == [2, 2]
    assert jnp.take(jnp.arange(3), jnp.array([5, 1]), mode="clip").tolist() == [2, 1]
    wanted = x.copy()
    np.put_along_axis(wanted, i[:, :1], 9, 1)
    np.testing.assert_array_equal(jnp.put_along_axis(jnp.array(x), jnp.array(i[:, :1]), 9, 1, inplace=False), wanted)


def test_iteration_and_length():
    x = jnp.arange(150.0)
    assert [float(v) for v in x] == list(range(150)) and len(x) == 150
    a, b = jit(lambda x: list(x))(jnp.array([1.0, 2.0]))
    assert (a.item(), b.item()) == (1, 2)
    with pytest.raises(TypeError, match="0-d"):
        iter(jnp.float32(1))


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), [0, 2]),
        ([0, 1], [1, 2]),
        (slice(None), (0, -1)),
        ([True, False, True],),
        (Ellipsis, [[0], [1]]),
        (0, []),
    ],
)
def test_lists_inside_a_tuple_are_arrays(index):
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(jnp.array(x)[index], x[index])
    changed = x.copy()
    changed[index] = -1
    np.testing.assert_array_equal(jnp.array(x).at[index].set(-1), changed)


def test_lists_alone_are_refused():
    with pytest.raises(TypeError, match="non-tuple sequence"):
        jnp.arange(3)[[0, 2]]
    with pytest.raises(ValueError, match="no array of ints or bools"):
        jnp.ones((3, 4))[:, [0, None]]
