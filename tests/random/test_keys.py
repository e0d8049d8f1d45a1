"""Keys: seeds, words, splitting, the older raw form, other generators, transforms over keys, and what is refused."""

import pickle

import numpy as np
import pytest

from morphax import random
from morphax.ir.avals import ShapedArray
from morphax.ops import random_bits
from morphax.runtime import array, backend
from morphax.runtime.jit import jit
from morphax.support import config, dtypes
from morphax.transforms import api


def put(x):
    """A host value as an Array of exactly its dtype."""
    x = np.asarray(x)
    return array.put(x, ShapedArray(x.shape, x.dtype), backend.default_device(), committed=False)


def words(keys):
    return np.asarray(random.key_data(keys)).tolist()


# ---- seeds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 7, -1, 2**31, 2**40 + 3, True, np.int8(-5), np.uint32(2**32 - 1), np.int64(-9)])
def test_a_seed_gives_the_same_key_traced_and_not(seed):
    for x64 in (False, True):
        with config.enable_x64(x64):
            assert words(jit(lambda: random.key(seed))()) == words(random.key(seed))


@pytest.mark.parametrize("seed", [0, 5, 2**31 - 1])
def test_a_seed_may_be_traced(seed):
    assert words(jit(random.key)(seed)) == words(random.key(seed))
    assert words(api.vmap(random.key)(put(np.array([seed, 1], np.int32)))) == [words(random.key(seed)), [0, 1]]


def test_a_wide_seed_array_is_honoured():
    assert words(random.key(put(np.int64(2**40 + 3)))) == [256, 3]


def test_seed_offset():
    with config.random_seed_offset(10):
        assert words(random.key(1)) == [0, 11]
        assert words(random.key(put(np.int32(1)))) == [0, 11]


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: random.key(1.5), TypeError, "must be an integer"),
        (lambda: random.key("a"), TypeError, "must be an integer"),
        (lambda: random.key(put(np.float32(1))), TypeError, "must be an integer"),
        (lambda: random.key(np.arange(3)), TypeError, "scalar seed"),
        (lambda: random.key(random.key(0)), TypeError, "random key"),
        (lambda: random.key(2**63), OverflowError, "does not fit"),
        (lambda: random.key(0, impl="nothing"), ValueError, "threefry2x32, rbg"),
        (lambda: random.key(0, impl=3), TypeError, "name of a generator"),
        (lambda: random.key(0, impl="rbg", dtype=random.key_dtype("rbg")), ValueError, "not both"),
        (lambda: random.key(0, dtype="float32"), TypeError, "key dtype"),
        (lambda: random.split(random.key(0), -1), ValueError, "negative"),
        (lambda: random.split(random.key(0), 1.5), TypeError, "integer"),
        (lambda: random.split(random.split(random.key(0))), ValueError, "single key"),
        (lambda: random.split(np.zeros((3, 2), np.uint32)), ValueError, "single key"),
        (lambda: random.fold_in(random.key(0), -1), OverflowError, "out of bounds"),
        (lambda: random.fold_in(random.key(0), 2**32), OverflowError, "out of bounds"),
        (lambda: random.fold_in(random.key(0), np.arange(3)), TypeError, "scalar"),
        (lambda: random.fold_in(random.key(0), [1]), TypeError, "fold_in"),
        (lambda: random.normal(3), TypeError, "random key"),
        (lambda: random.normal(None), TypeError, "random key"),
        (lambda: random.normal(np.zeros(2, np.int32)), TypeError, "uint32"),
        (lambda: random.normal(np.zeros(3, np.uint32)), TypeError, "shape"),
        (lambda: random.key_data(3), TypeError, "random key"),
        (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), TypeError, "of shape"),
        (lambda: random.wrap_key_data(np.zeros((2, 2), np.int32)), TypeError, "int32"),
        (lambda: random.wrap_key_data(np.zeros((2, 2), np.uint32), impl="rbg"), TypeError, "4"),
    ],
)
def test_refused(call, exception, message):
    with pytest.raises(exception, match=message):
        call()


def test_refused_under_a_transform_too():
    for call in (lambda x: random.normal(x), lambda x: random.split(x), lambda x: random.key(x)):
        with pytest.raises(TypeError):
            jit(call)(put(np.zeros(3, np.float32)))
    assert random.normal(random.key(0)).shape == ()


# ---- the two forms of keys -------------------------------------------------------------------------------------------


def test_raw_keys_give_the_same_numbers():
    key, raw = random.key(3), random.PRNGKey(3)
    assert raw.dtype == np.uint32
    assert words(raw) == words(key)
    for sampler in (random.normal, random.bits, random.uniform):
        np.testing.assert_array_equal(sampler(raw, (4,)), sampler(key, (4,)))
        np.testing.assert_array_equal(jit(sampler, static_argnums=1)(raw, (4,)), sampler(key, (4,)))
        np.testing.assert_array_equal(sampler(np.asarray(raw), (4,)), sampler(key, (4,)))
    assert random.split(raw).dtype == np.uint32
    assert np.asarray(random.split(raw, (2, 3))).tolist() == words(random.split(key, (2, 3)))
    assert np.asarray(random.fold_in(raw, 5)).tolist() == words(random.fold_in(key, 5))
    assert np.asarray(random.clone(raw)).tolist() == words(key)


def test_raw_keys_can_be_refused():
    with config.legacy_prng_key("error"), pytest.raises(ValueError, match="legacy_prng_key"):
        random.normal(np.zeros(2, np.uint32))
    with config.legacy_prng_key("warn"), pytest.warns(UserWarning, match="legacy_prng_key"):
        random.normal(np.zeros(2, np.uint32))


def test_typed_keys_from_PRNGKey_on_request():
    with config.enable_custom_prng(True):
        assert random.PRNGKey(0).dtype == random.key_dtype()


def test_words_and_keys_are_inverse():
    keys = random.split(random.key(1), (2, 3))
    assert words(random.wrap_key_data(random.key_data(keys))) == words(keys)
    assert random.wrap_key_data(np.zeros((4, 2), np.uint32)).shape == (4,)
    assert random.key_impl(keys) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert dtypes.issubdtype(keys.dtype, dtypes.prng_key)


def test_a_key_survives_pickling():
    key = random.key(5)
    assert words(pickle.loads(pickle.dumps(key))) == words(key)


# ---- other generators, as recorded from JAX on the CPU ---------------------------------------------------------------

RBG = {
    "split": [[629071667, 2343584484, 1144503774, 142997786], [629003988, 1317161160, 1441834994, 695621559]],
    "fold_in": [2052595727, 1880214352, 1746439729, 307540736],
    "bits": [512747620, 1298009047, 1267190206],
    "wide": [5574906407289874532, 3272025663544478142, 7043725020835825787],
    "batch": [[3280628599, 460599477], [1445315269, 2550286549], [2691261481, 4143742886]],
    "folds": [[629071667, 2343584484, 1144503774, 142997786], [629003988, 1317161160, 1441834994, 695621559]],
}
UNSAFE = {
    "split": [[512747620, 1298009047, 1267190206, 761827841], [2117349439, 2738932741, 2107557141, 1903717071]],
    "fold_in": [56543297, 1826787335, 2453521981, 2503663985],
    "bits": RBG["bits"],
    "wide": RBG["wide"],
    "batch": [[3026836921, 2895255799], [211222031, 1930738209], [2899975523, 4205765764]],
    "folds": [[2531852733, 718943160, 4068121406, 453177558], [2700612816, 969135823, 60494960, 2586996940]],
}


@pytest.mark.parametrize(("impl", "wanted"), [("rbg", RBG), ("unsafe_rbg", UNSAFE)])
def test_other_generators(impl, wanted):
    key = random.wrap_key_data(put(np.array([1, 2, 3, 4], np.uint32)), impl=impl)
    keys = random.split(key, 3)
    assert words(random.split(key)) == wanted["split"]
    assert words(random.fold_in(key, 3)) == wanted["fold_in"]
    assert random.bits(key, (3,)).tolist() == wanted["bits"]
    assert random.bits(key, (3,), "uint64").tolist() == wanted["wide"]
    assert api.vmap(lambda k: random.bits(k, (2,)))(keys).tolist() == wanted["batch"]
    folds = api.vmap(random.fold_in, (None, 0))(key, put(np.arange(2, dtype=np.int32)))
    assert words(folds) == wanted["folds"]
    assert random.normal(random.key(0, impl=impl), (3,)).shape == (3,)
    with config.default_prng_impl(impl):
        assert random.key(0).dtype == key.dtype
        assert random.PRNGKey(0).shape == (4,)


@pytest.mark.parametrize(
    ("algorithm", "bits"),
    [
        (random_bits.RandomAlgorithm.RNG_THREE_FRY, [2689575991, 2205648888, 150810639]),
        (random_bits.RandomAlgorithm.RNG_PHILOX, [895509795, 3230209149, 3834998268]),
    ],
)
def test_generator_operation(algorithm, bits):
    state = put(np.arange(4, dtype=np.uint32))
    options = {"dtype": np.dtype("uint32"), "algorithm": algorithm, "out_sharding": None}
    after, drawn = random_bits.rng_bit_generator(state, shape=(3,), **options)
    assert drawn.tolist() == bits
    assert after.tolist() != state.tolist()
    states = put(np.arange(8, dtype=np.uint32).reshape(2, 4))
    after, drawn = api.vmap(lambda s: random_bits.rng_bit_generator(s, shape=(3,), **options))(states)
    assert drawn.shape == (2, 3)
    assert after.tolist()[1] == [4, 5, 6, 7]


# ---- transforms ------------------------------------------------------------------------------------------------------


def test_keys_pass_through_jit():
    key = random.key(9)
    assert words(jit(random.split)(key)) == words(random.split(key))
    assert words(jit(lambda k: random.fold_in(k, 3))(key)) == words(random.fold_in(key, 3))
    assert words(jit(lambda n: random.fold_in(key, n))(3)) == words(random.fold_in(key, 3))
    assert words(jit(random.clone)(key)) == words(random.clone(key)) == words(key)


def test_vmap_of_split_and_fold_in_is_a_loop():
    keys = random.split(random.key(2), 3)
    each = [random.wrap_key_data(put(np.array(w, np.uint32))) for w in words(keys)]
    assert words(api.vmap(lambda k: random.split(k, (2, 2)))(keys)) == [words(random.split(k, (2, 2))) for k in each]
    data = put(np.arange(3, dtype=np.int32))
    assert words(api.vmap(random.fold_in)(keys, data)) == [words(random.fold_in(k, i)) for i, k in enumerate(each)]
    assert words(api.vmap(random.fold_in, (0, None))(keys, 4)) == [words(random.fold_in(k, 4)) for k in each]
    assert words(api.vmap(random.fold_in, (None, 0))(each[0], data)) == [
        words(random.fold_in(each[0], i)) for i in range(3)
    ]


def test_the_counter_scheme_is_part_of_the_cached_program():
    key = random.key(0)
    first = random.bits(key, (3,)).tolist()
    with config.threefry_partitionable(False):
        second = random.bits(key, (3,)).tolist()
    assert first != second
    assert random.bits(key, (3,)).tolist() == first


def test_jaxprs_read_as_those_of_jax():
    key = random.key(0)
    assert str(api.make_jaxpr(lambda k: random.split(k, 5))(key)) == (
        "{ lambda ; a:key<fry>[]. let\n    b:key<fry>[5] = random_split[shape=(5,)] a\n  in (b,) }"
    )
    assert "random_seed[impl=fry] -1:i32[]" in str(api.make_jaxpr(lambda: random.key(-1))())
    assert "random_fold_in a 3:u32[]" in str(api.make_jaxpr(lambda k: random.fold_in(k, 3))(key))
    raw = str(api.make_jaxpr(lambda k: random.bits(k, (3,)))(random.PRNGKey(0)))
    assert "b:key<fry>[] = random_wrap[impl=fry] a" in raw
    assert "random_bits[bit_width=32 shape=(3,)] b" in raw
