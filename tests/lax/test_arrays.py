"""Functions of lax on whole arrays: what they make of arguments as users write them, and their errors."""

import itertools

import numpy as np
import pytest

from morphax import lax, random
from morphax.control import jacobians
from morphax.ir.avals import ShapedArray
from morphax.ops import reduce
from morphax.runtime import array, backend
from morphax.runtime.jit import jit
from morphax.support import config
from morphax.transforms import api


def put(x):
    host = np.asarray(x)
    return array.put(host, ShapedArray(host.shape, host.dtype), backend.default_device(), committed=False)


X = put(np.arange(12, dtype=np.float32).reshape(4, 3))
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))


def same(got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


# ---- structure -------------------------------------------------------------------------------------------------------


def test_shapes_are_as_documented():
    x = np.asarray(X)
    same(lax.reshape(X, (12,), (1, 0)), x.T.ravel())
    same(lax.reshape(X, 12), x.ravel())
    same(lax.squeeze(lax.expand_dims(X, (0, -1)), (-1, 0)), x)
    same(lax.collapse(X, -2, 2), x.ravel())
    same(lax.tile(X, (2, 1)), np.tile(x, (2, 1)))
    same(lax.broadcast_like(lax.index_in_dim(X, 0, keepdims=False), X), np.broadcast_to(x[0], (4, 3)))
    same(lax.slice_in_dim(X, -3, None, 2), x[-3::2])
    same(lax.index_in_dim(X, -1, 1), x[:, -1:])
    assert [part.shape for part in lax.split(X, (1, 2), -1)] == [(4, 1), (4, 2)]
    assert lax.broadcast_to_rank(X, 1).shape == (4, 3)
    assert lax.transpose(X, (0, 1)) is X
    assert lax.concatenate([X], 0) is X


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: lax.transpose(X, (1, 1)), TypeError, "(1, 1) is no permutation"),
        (lambda: lax.reshape(X, (-1,)), TypeError, "has 12 elements"),
        (lambda: lax.slice(X, (0,), (2,)), ValueError, "one entry for each axis"),
        (lambda: lax.index_in_dim(X, 4), IndexError, "index 4 is out of range for axis 0 of size 4"),
        (lambda: lax.tile(X, (2,)), TypeError, "one count"),
        (lambda: lax.collapse(X, 1, 1), ValueError, "Name at least one"),
        (lambda: lax.broadcast_in_dim(X, (4, 3, 2), (1, 0)), ValueError, "must be rising"),
        (lambda: lax.broadcast_shapes((2,), (3,)), ValueError, "(2,), (3,)"),
        (lambda: lax.broadcast_like(X, lax.iota("int32", 3)), ValueError, "does not broadcast"),
        (lambda: lax.concatenate([], 0), ValueError, "no operands"),
        (lambda: lax.bitcast_convert_type(X, bool), TypeError, "does not accept dtype bool"),
        (lambda: lax.split(X, (1, 1)), ValueError, "add up to 2"),
        (lambda: lax.dot(X, 2.0), ValueError, "no vectors or matrices"),
        (lambda: lax.batch_matmul(X, lax.iota("float32", 3)), ValueError, "same number of axes"),
        (lambda: lax.dot(X, X, precision="best"), ValueError, "precision 'best' is not known"),
        (lambda: lax.sort(()), TypeError, "no operands"),
        (lambda: lax.sort(X, dimension=2), ValueError, "axis 2 is out of range"),
        (lambda: lax.top_k(X, 4), ValueError, "k = 4"),
        (lambda: lax.dynamic_slice(X, (0,), (2, 2)), TypeError, "Give one for each axis"),
        (lambda: lax.dynamic_slice(X, (0.5, 0), (2, 2)), TypeError, "integer scalars"),
        (lambda: lax.dynamic_slice(X, (0, 0), (5, 2)), TypeError, "does not fit in shape (4, 3)"),
        (lambda: lax.dynamic_slice(X, X, (2, 2)), TypeError, "must be a vector"),
        (lambda: lax.gather(X, put(np.int32([[0]])), ROWS, (1, 3), mode="wrap"), ValueError, "mode 'wrap'"),
        (lambda: lax.reduce_sum([1.0], (0,)), TypeError, "list"),
    ],
)
def test_errors_say_what_is_wrong(call, exception, message):
    with pytest.raises(exception) as caught:
        call()
    assert message in str(caught.value)


# ---- products --------------------------------------------------------------------------------------------------------


def test_default_precision_comes_from_the_configuration():
    def dot(x):
        return lax.dot(x, x)

    square = put(np.eye(2, dtype=np.float32))
    assert "precision" not in str(api.make_jaxpr(dot)(square))
    with config.default_matmul_precision("float32"):
        assert "Precision.HIGHEST" in str(api.make_jaxpr(dot)(square))
    with config.default_matmul_precision("BF16_BF16_F32"):
        assert "precision=DotAlgorithmPreset.BF16_BF16_F32" in str(api.make_jaxpr(dot)(square))


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4))])
def test_dot_is_that_of_numpy(shapes):
    x, y = (np.random.default_rng(0).normal(size=s) for s in shapes)
    np.testing.assert_allclose(lax.dot(put(x), put(y)), x @ y, rtol=1e-14)


# ---- lowerings of other platforms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences_by_doubling_are_those_of_the_loop(monkeypatch, reverse):
    x = np.random.default_rng(0).normal(size=(3, 11))

    def slopes(x):
        return api.vmap(api.grad(lambda row: _total(lax.cumprod(row, 0, reverse))))(x)

    loop = np.asarray(slopes(put(x)))
    monkeypatch.setattr(reduce.linear_recurrence, "lower", reduce.linear_recurrence.lower["default"])
    doubling = jit(lambda x: lax.slice(slopes(x), (0, 0), (3, 11)))(put(x))
    np.testing.assert_allclose(doubling, loop, rtol=1e-12)


# ---- slices at computed places ---------------------------------------------------------------------------------------


def test_negative_starts_count_from_the_end():
    x = np.asarray(X)
    one = put(np.int32(-1))
    for start in (-1, np.int32(-1), one, put(np.int8(-1))):
        same(lax.dynamic_slice(X, (start, 0), (1, 3)), x[-1:])
        same(lax.dynamic_index_in_dim(X, start, 0, False), x[-1])
        same(lax.dynamic_slice_in_dim(X, start, 1, 1), x[:, -1:])
    same(lax.dynamic_slice(X, (one, 0), (1, 3), allow_negative_indices=False), x[:1])
    same(lax.dynamic_slice(X, (one, one), (1, 1), allow_negative_indices=(True, False)), x[-1:, :1])
    same(lax.dynamic_slice(X, put(np.int32([1, -2])), (2, 1)), x[1:3, 1:2])
    same(lax.dynamic_slice(X, (-9, 9), (1, 1)), x[:1, 2:])


def test_narrow_indices_reach_the_end_of_long_axes():
    long = put(np.arange(1000))
    same(lax.dynamic_slice(long, (put(np.int8(-1)),), (1,)), [999])
    same(lax.dynamic_slice(long, (put(np.uint8(255)),), (1,)), [255])
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    same(lax.gather(long, put(np.uint8([[255]])), numbers, (1,), mode="clip"), [255])
    same(lax.gather(long, put(np.int8([[-1]])), numbers, (1,), mode="clip"), [0])


def test_updates_go_where_they_should():
    x = np.array(X)
    x[2] = 1
    same(lax.dynamic_update_index_in_dim(X, np.ones(3, np.float32), 2, 0), x)
    same(lax.dynamic_update_slice_in_dim(X, np.ones((1, 3), np.float32), -2, 0), x)


def test_gather_modes():
    indices = put(np.int32([[3], [4], [-1]]))
    x = np.asarray(X)
    same(lax.gather(X, indices, ROWS, (1, 3), mode="clip"), x[[3, 3, 0]])
    same(lax.gather(X, indices, ROWS, (1, 3), mode="fill", fill_value=7), [x[3], [7] * 3, [7] * 3])
    same(lax.gather(X, indices, ROWS, (1, 3), mode="fill"), [x[3], [np.nan] * 3, [np.nan] * 3])
    same(lax.index_take(X, (np.array([0, -1, 5]), np.array([0, 1, 2])), (0, 1)), x[[0, 3, 1], [0, 1, 2]])


# ---- random keys: their words ride along -----------------------------------------------------------------------------

WORDS = np.arange(24, dtype=np.uint32).reshape(4, 3, 2)
POINT = put(np.int32([[1], [9], [0]]))
STRUCTURAL = {
    "broadcast_in_dim": (lambda k: lax.broadcast_in_dim(k, (2, 4, 3), (1, 2)), np.broadcast_to(WORDS, (2, 4, 3, 2))),
    "reshape": (lambda k: lax.reshape(k, (12,)), WORDS.reshape(12, 2)),
    "transpose": (lambda k: lax.transpose(k, (1, 0)), WORDS.transpose(1, 0, 2)),
    "slice": (lambda k: lax.slice(k, (1, 0), (4, 3), (2, 1)), WORDS[1:4:2]),
    "dynamic_slice": (lambda k: lax.dynamic_slice(k, (1, 0), (2, 2)), WORDS[1:3, :2]),
    "squeeze": (lambda k: lax.squeeze(lax.expand_dims(k, (0,)), (0,)), WORDS),
    "concatenate": (lambda k: lax.concatenate([k, k], 1), np.concatenate([WORDS, WORDS], 1)),
    "rev": (lambda k: lax.rev(k, (0,)), WORDS[::-1]),
    "split": (lambda k: lax.split(k, (1, 3))[1], WORDS[1:]),
    "gather": (lambda k: lax.gather(k, POINT, ROWS, (1, 3), mode="clip"), WORDS[[1, 3, 0]]),
    "select_n": (lambda k: lax.select(put(True), lax.rev(k, (0,)), k), WORDS[::-1]),
    "dynamic_update_slice": (
        lambda k: lax.dynamic_update_slice(k, lax.slice(k, (0, 0), (1, 3)), (2, 0)),
        WORDS[[0, 1, 0, 3]],
    ),
    "scatter": (
        lambda k: lax.scatter(
            k, put(np.int32([[2]])), lax.slice(k, (0, 0), (1, 3)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
        ),
        WORDS[[0, 1, 0, 3]],
    ),
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_operations_move_random_keys(name):
    fun, wanted = STRUCTURAL[name]
    words = put(WORDS)
    keys = random.wrap_key_data(words)
    same(random.key_data(fun(keys)), wanted)
    stacked = random.wrap_key_data(put(np.stack([WORDS, WORDS[::-1]])))
    same(np.asarray(random.key_data(api.vmap(fun)(stacked)))[0], wanted)


# ---- transforms of transforms ----------------------------------------------------------------------------------------


def _total(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


FUNCTIONS = {
    "sort": lambda x: _total(lax.mul(lax.sort(x), lax.sort(lax.mul(x, x)))),
    "cumprod": lambda x: _total(lax.cumprod(lax.mul(x, x))),
    "cumlogsumexp": lambda x: _total(lax.mul(lax.cumlogsumexp(x), x)),
    "reduce_prod": lambda x: lax.reduce_prod(x, (0,)),
    "reduce_max": lambda x: lax.mul(lax.reduce_max(x, (0,)), _total(x)),
    "top_k": lambda x: _total(lax.exp(lax.top_k(x, 2)[0])),
    "dot": lambda x: lax.dot(lax.sin(x), lax.mul(x, x)),
    "gather": lambda x: _total(lax.exp(lax.gather(x, put(np.int32([[1], [1], [3]])), POINTS, (1,), mode="clip"))),
    "dynamic_slice": lambda x: _total(lax.exp(lax.dynamic_slice(x, (1,), (2,)))),
    "dynamic_update_slice": lambda x: _total(
        lax.exp(lax.dynamic_update_slice(x, lax.dynamic_slice(x, (1,), (2,)), (2,)))
    ),
}
POINTS = lax.GatherDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessians_by_all_modes_agree(name):
    fun = FUNCTIONS[name]
    x = np.array([[0.5, -1.5, 2.0, 0.25], [1.0, 3.0, -0.5, 2.5]])
    modes = (jacobians.jacfwd, jacobians.jacrev)
    made = [np.asarray(api.vmap(a(b(fun)))(put(x))) for a, b in itertools.product(modes, modes)]
    for other in made[1:]:
        np.testing.assert_allclose(other, made[0], rtol=1e-12, atol=1e-12)
    step = 1e-5
    gradient = api.vmap(api.grad(fun))
    for k in range(4):
        moved = [np.asarray(gradient(put(x + s * step * np.eye(4)[k]))) for s in (1, -1)]
        np.testing.assert_allclose(made[0][:, k], (moved[0] - moved[1]) / (2 * step), rtol=1e-7, atol=1e-7)
