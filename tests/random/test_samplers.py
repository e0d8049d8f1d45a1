"""Samplers: the right distribution, the same numbers in every form of call, and what they refuse."""

import numpy as np
import pytest
import scipy.stats

import morphax
from morphax import random
from morphax.ir.avals import ShapedArray
from morphax.ops import elementwise as ew
from morphax.runtime import array, backend
from morphax.runtime.jit import jit
from morphax.support import config, dtypes
from morphax.transforms import api

KEY = random.key(17)
MANY = (20000,)


def put(x):
    """A host value as an Array of exactly its dtype."""
    x = np.asarray(x)
    return array.put(x, ShapedArray(x.shape, x.dtype), backend.default_device(), committed=False)


# name -> (draw, cumulative distribution)
CONTINUOUS = {
    "uniform": (lambda k, s: random.uniform(k, s), scipy.stats.uniform().cdf),
    "uniform between": (lambda k, s: random.uniform(k, s, minval=-2, maxval=5.0), scipy.stats.uniform(-2, 7).cdf),
    "normal": (lambda k, s: random.normal(k, s), scipy.stats.norm().cdf),
    "exponential": (lambda k, s: random.exponential(k, s), scipy.stats.expon().cdf),
    "laplace": (lambda k, s: random.laplace(k, s), scipy.stats.laplace().cdf),
    "logistic": (lambda k, s: random.logistic(k, s), scipy.stats.logistic().cdf),
    "cauchy": (lambda k, s: random.cauchy(k, s), scipy.stats.cauchy().cdf),
    "maxwell": (lambda k, s: random.maxwell(k, s), scipy.stats.maxwell().cdf),
    "gumbel": (lambda k, s: random.gumbel(k, s), scipy.stats.gumbel_r().cdf),
    "gumbel high": (lambda k, s: random.gumbel(k, s, mode="high"), scipy.stats.gumbel_r().cdf),
    "truncated_normal": (lambda k, s: random.truncated_normal(k, -1, 2.0, s), scipy.stats.truncnorm(-1, 2).cdf),
    "pareto": (lambda k, s: random.pareto(k, 3.0, s), scipy.stats.pareto(3).cdf),
    "rayleigh": (lambda k, s: random.rayleigh(k, 2.0, s), scipy.stats.rayleigh(scale=2).cdf),
    "weibull_min": (lambda k, s: random.weibull_min(k, 2.0, 1.5, s), scipy.stats.weibull_min(1.5, scale=2).cdf),
    "triangular": (lambda k, s: random.triangular(k, 0.0, 0.25, 1.0, s), scipy.stats.triang(0.25).cdf),
    "lognormal": (lambda k, s: random.lognormal(k, 0.5, s), scipy.stats.lognorm(0.5).cdf),
    "wald": (lambda k, s: random.wald(k, 2.0, s), scipy.stats.invgauss(2.0).cdf),
    "double_sided_maxwell": (
        lambda k, s: random.double_sided_maxwell(k, 0.0, 1.0, s),
        lambda x: (1 + np.sign(x) * scipy.stats.maxwell().cdf(np.abs(x))) / 2,
    ),
    "gamma": (lambda k, s: random.gamma(k, 2.5, s), scipy.stats.gamma(2.5).cdf),
    "gamma small": (lambda k, s: random.gamma(k, 0.3, s), scipy.stats.gamma(0.3).cdf),
    "loggamma": (lambda k, s: random.loggamma(k, 0.1, s), scipy.stats.loggamma(0.1).cdf),
    "beta": (lambda k, s: random.beta(k, 0.5, 2.0, s), scipy.stats.beta(0.5, 2).cdf),
    "chisquare": (lambda k, s: random.chisquare(k, 3.0, s), scipy.stats.chi2(3).cdf),
    "f": (lambda k, s: random.f(k, 5.0, 7.0, s), scipy.stats.f(5, 7).cdf),
    "t": (lambda k, s: random.t(k, 4.0, s), scipy.stats.t(4).cdf),
    "generalized_normal": (lambda k, s: random.generalized_normal(k, 1.5, s), scipy.stats.gennorm(1.5).cdf),
    "dirichlet": (lambda k, s: random.dirichlet(k, np.array([1.0, 2.0, 3.0]), s)[..., 1], scipy.stats.beta(2, 4).cdf),
    "multivariate_normal": (
        lambda k, s: random.multivariate_normal(k, np.ones(2), np.array([[2.0, 1.0], [1.0, 4.0]]), s)[..., 1],
        scipy.stats.norm(1, 2).cdf,
    ),
    "ball": (lambda k, s: (random.ball(k, 3, shape=s) ** 2).sum(-1) ** 1.5, scipy.stats.uniform().cdf),
}
# name -> (draw, probabilities of its values)
DISCRETE = {
    "bernoulli": (lambda k, s: random.bernoulli(k, 0.3, s), {0: 0.7, 1: 0.3}),
    "bernoulli high": (lambda k, s: random.bernoulli(k, 0.3, s, mode="high"), {0: 0.7, 1: 0.3}),
    "rademacher": (lambda k, s: random.rademacher(k, s), {-1: 0.5, 1: 0.5}),
    "randint": (lambda k, s: random.randint(k, s, -2, 3), dict.fromkeys(range(-2, 3), 0.2)),
    "randint int8": (lambda k, s: random.randint(k, s, 100, 1000, "int8"), dict.fromkeys(range(100, 128), 1 / 28)),
    "choice": (lambda k, s: random.choice(k, 4, s), dict.fromkeys(range(4), 0.25)),
    "choice p": (
        lambda k, s: random.choice(k, 4, s, p=np.array([0.1, 0.2, 0.3, 0.4])),
        dict(enumerate((0.1, 0.2, 0.3, 0.4))),
    ),
    "categorical": (
        lambda k, s: random.categorical(k, np.log(np.array([0.1, 0.2, 0.7])), shape=s),
        dict(enumerate((0.1, 0.2, 0.7))),
    ),
    "binomial": (lambda k, s: random.binomial(k, 3, 0.7, s), dict(enumerate(scipy.stats.binom(3, 0.7).pmf(range(4))))),
}
GAMMAS = ("gamma", "gamma small", "loggamma", "beta", "chisquare", "f", "t", "generalized_normal", "dirichlet", "ball")
EVERY = {name: row[0] for name, row in (CONTINUOUS | DISCRETE).items()}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution(name):
    draw, cumulative = CONTINUOUS[name]
    drawn = np.asarray(draw(KEY, MANY), np.float64)
    assert scipy.stats.kstest(drawn, cumulative).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_frequencies(name):
    draw, wanted = DISCRETE[name]
    values, counts = np.unique(np.asarray(draw(KEY, MANY)).astype(int), return_counts=True)
    assert values.tolist() == list(wanted)
    assert scipy.stats.chisquare(counts, np.array(list(wanted.values())) * MANY[0]).pvalue > 1e-3


def test_geometric_counts_trials():
    drawn = np.asarray(random.geometric(KEY, 0.3, MANY))
    assert drawn.min() == 1
    assert abs(drawn.mean() - 1 / 0.3) < 0.05


@pytest.mark.parametrize("name", EVERY)
def test_jit_and_vmap_draw_what_eager_calls_draw(name):
    draw = EVERY[name]
    eager = np.asarray(draw(KEY, (7,)))
    close = 5e-7 if name in GAMMAS else 0  # loops and what follows them are rounded as XLA fuses them
    np.testing.assert_allclose(jit(lambda k: draw(k, (7,)))(KEY), eager, rtol=close)
    keys = random.split(KEY, 3)
    each = [random.wrap_key_data(put(w)) for w in np.asarray(random.key_data(keys))]
    batch = np.asarray(jit(api.vmap(lambda k: draw(k, (7,))))(keys))
    wanted = np.stack([np.asarray(draw(k, (7,))) for k in each])
    if name in (
        "cauchy",
        "multivariate_normal",
        *GAMMAS,
    ):  # XLA computes tan in vectors of eight otherwise than one by one
        np.testing.assert_allclose(batch, wanted, rtol=2e-6)
    else:
        np.testing.assert_array_equal(batch, wanted)


@pytest.mark.parametrize("name", EVERY)
def test_small_draws_are_the_beginning_of_large_ones(name):
    if name in ("maxwell", "double_sided_maxwell", "gumbel high", "bernoulli high", "dirichlet", "ball", "binomial"):
        pytest.skip("draws several numbers for each")
    if name == "multivariate_normal":
        pytest.skip("draws several numbers for each")
    draw = EVERY[name]
    np.testing.assert_array_equal(np.asarray(draw(KEY, MANY))[:5], draw(KEY, (5,)))


@pytest.mark.parametrize("name", EVERY)
def test_empty_and_scalar_shapes(name):
    assert EVERY[name](KEY, (0,)).shape == (0,)
    assert EVERY[name](KEY, (2, 0, 3)).shape == (2, 0, 3)
    assert EVERY[name](KEY, ()).shape == ()


@pytest.mark.parametrize("shape", [3, (3,), [3], np.int64(3), (np.int32(3),)])
def test_forms_of_a_shape(shape):
    assert random.normal(KEY, shape).shape == (3,)
    assert jit(lambda k: random.normal(k, shape))(KEY).shape == (3,)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("sampler", [random.uniform, random.normal, random.exponential])
def test_float_dtypes(sampler, dtype):
    drawn = sampler(KEY, (100,), dtype)
    assert drawn.dtype == dtypes.BY_NAME[dtype]
    assert np.isfinite(np.asarray(drawn).astype(np.float64)).all()


def test_eight_bit_floats_as_jax_draws_them():
    key = random.key(0)
    assert np.asarray(random.normal(key, (2,), "float8_e4m3fn")).astype(float).tolist() == [0.375, 0.078125]
    assert np.asarray(random.uniform(key, (2,), "float8_e4m3fn")).astype(float).tolist() == [0.625, 0.5]


def test_named_wide_dtypes_need_no_flag():
    assert random.normal(KEY, (), "float64").dtype == np.float64
    assert random.bits(KEY, (), "uint64").dtype == np.uint64
    drawn = np.asarray(random.randint(KEY, (100,), 0, 2**63, "uint64"))
    assert drawn.dtype == np.uint64
    assert drawn.max() > 2**60
    assert np.asarray(random.randint(KEY, (100,), 0, 2**32 - 1, "uint32")).max() > 2**31


def test_defaults_follow_the_flag():
    with config.enable_x64(True):
        assert random.normal(KEY).dtype == np.float64
        assert random.randint(KEY, (), 0, 3).dtype == np.int64
        assert random.bits(KEY).dtype == np.uint64


def test_derivatives_pass_through_parameters():
    z = random.normal(KEY, (3,))
    total = api.grad(lambda s: ew.reduce_sum(ew.mul(random.normal(KEY, (3,)), s), axes=(0,)))(2.0)
    np.testing.assert_allclose(total, np.asarray(z).sum(), rtol=1e-6)
    slope = api.grad(lambda b: random.uniform(KEY, (), minval=0.0, maxval=b))(2.0)
    np.testing.assert_allclose(slope, random.uniform(KEY), rtol=1e-6)
    slope = api.grad(lambda b: random.truncated_normal(random.key(42), -1.0, b))(2.0)
    np.testing.assert_allclose(slope, 0.066865034, rtol=1e-5)


def test_parameters_broadcast_and_batch():
    scales = put(np.array([1.0, 2.0, 3.0], np.float32))
    drawn = np.asarray(random.rayleigh(KEY, scales))
    np.testing.assert_allclose(drawn, np.asarray(random.rayleigh(KEY, 1.0, (3,))) * [1, 2, 3], rtol=1e-6)
    assert random.rayleigh(KEY, scales, (2, 3)).shape == (2, 3)
    batch = np.asarray(api.vmap(lambda s: random.rayleigh(KEY, s, (2,)))(scales))
    np.testing.assert_allclose(batch[2], np.asarray(random.rayleigh(KEY, 3.0, (2,))), rtol=1e-6)
    ends = api.vmap(lambda low, high: random.randint(KEY, (2,), low, high))
    low, high = put(np.array([0, 10], np.int32)), put(np.array([3, 20], np.int32))
    wanted = [np.asarray(random.randint(KEY, (2,), a, b)) for a, b in ((0, 3), (10, 20))]
    np.testing.assert_array_equal(ends(low, high), wanted)


# ---- gamma variates and counts ---------------------------------------------------------------------------------------


def gamma_quantile_slope(a, x):
    """d/da of the quantile of x, by differences of the distribution function."""
    h = 1e-6 * a
    return -(scipy.stats.gamma.cdf(x, a + h) - scipy.stats.gamma.cdf(x, a - h)) / (2 * h) / scipy.stats.gamma.pdf(x, a)


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 3.0, 40.0])
def test_gamma_variates_follow_their_shape(a):
    with config.enable_x64(True):
        key = random.key(5)
        x = np.asarray(random.gamma(key, a, (20,)))
        slope = np.asarray(morphax.jacfwd(lambda a: random.gamma(key, a, (20,)))(a))
        fits = x > 1e-12
        np.testing.assert_allclose(slope[fits], gamma_quantile_slope(a, x)[fits], rtol=1e-5)
        log_slope = np.asarray(morphax.jacfwd(lambda a: random.loggamma(key, a, (20,)))(a))
        np.testing.assert_allclose(log_slope[fits], (slope / x)[fits], rtol=1e-10)
        np.testing.assert_allclose(np.exp(random.loggamma(key, a, (20,))), x, rtol=1e-12)
        reverse = api.grad(lambda a: random.gamma(key, a, (20,)).sum())(a)
        np.testing.assert_allclose(reverse, slope.sum(), rtol=1e-12)


def test_far_logarithms_of_gamma_variates_have_derivatives():
    with config.enable_x64(True):
        key = random.key(6)
        y, slope = api.jvp(lambda a: random.loggamma(key, a, (50,)), (1e-3,), (1.0,))
        y, slope = np.asarray(y), np.asarray(slope)
        far = y < -60
        assert far.any()
        # There log x = (log u + log Gamma(a + 1)) / a.
        np.testing.assert_allclose(slope[far], (scipy.special.digamma(1.001) - y[far]) / 1e-3, rtol=1e-10)


def test_beta_and_dirichlet_have_derivatives():
    with config.enable_x64(True):
        key, a, b = random.key(8), 1.5, 0.7
        x = random.beta(key, a, b).item()
        cdf, pdf = scipy.stats.beta.cdf, scipy.stats.beta.pdf
        # E[x] = a / (a + b): the mean of the derivatives is that of the mean.
        slopes = np.asarray(morphax.jacfwd(lambda a: random.beta(key, a, b, (20000,)))(a))
        assert 0 < cdf(x, a, b) < 1 < pdf(x, a, b) + 1
        np.testing.assert_allclose(slopes.mean(), b / (a + b) ** 2, rtol=0.05)
        alpha = np.array([1.0, 2.0, 3.0])
        jacobian = np.asarray(morphax.jacrev(lambda v: random.dirichlet(key, v))(alpha))
        np.testing.assert_allclose(jacobian.sum(0), 0, atol=1e-14)


def test_ends_of_gamma_variates():
    tiny = np.asarray(random.gamma(KEY, 1e-3, MANY))
    assert tiny.min() > 0
    parts = np.asarray(random.beta(KEY, 1e-3, 1e-3, MANY))
    assert 0 < parts.min() <= parts.max() < 1
    assert np.isfinite(random.loggamma(KEY, 1e-3, MANY)).all()
    assert random.gamma(KEY, 0.0).item() == 0
    assert random.loggamma(KEY, 0.0).item() == -np.inf
    assert np.isnan(random.gamma(KEY, np.array([-1.0, np.nan]))).all()


@pytest.mark.parametrize("rate", [0.5, 9.0, 11.0, 200.0])
def test_poisson(rate):
    drawn = np.asarray(random.poisson(KEY, rate, MANY))
    assert drawn.dtype == np.int32
    low, high = (int(v) for v in scipy.stats.poisson(rate).ppf([0.01, 0.99]))
    values = np.arange(low, high + 1)
    p = scipy.stats.poisson(rate).pmf(values)
    counts = np.array([(drawn == v).sum() for v in values])
    wanted = np.append(p, 1 - p.sum()) * drawn.size
    assert scipy.stats.chisquare(np.append(counts, drawn.size - counts.sum()), wanted).pvalue > 1e-3


def test_poisson_takes_arrays():
    drawn = np.asarray(random.poisson(KEY, np.array([0.0, 3.0, 1000.0, -1.0, np.nan]), (100, 5), "int16"))
    assert drawn.dtype == np.int16
    assert (drawn[:, 0] == 0).all()
    assert (drawn[:, 3:] == -1).all()
    assert abs(drawn[:, 2].mean() - 1000) < 20
    batch = api.vmap(lambda k, m: random.poisson(k, m, (3,)))(random.split(KEY, 2), put(np.array([2.0, 30.0], "f")))
    assert batch.shape == (2, 3)


@pytest.mark.parametrize(("n", "p"), [(30.0, 0.2), (100.0, 0.4), (1000.0, 0.97), (50.0, 0.5)])
def test_binomial(n, p):
    drawn = np.asarray(random.binomial(KEY, n, p, MANY))
    low, high = (int(v) for v in scipy.stats.binom(n, p).ppf([0.01, 0.99]))
    values = np.arange(low, high + 1)
    mass = scipy.stats.binom(n, p).pmf(values)
    counts = np.array([(drawn == v).sum() for v in values])
    wanted = np.append(mass, 1 - mass.sum()) * drawn.size
    assert scipy.stats.chisquare(np.append(counts, drawn.size - counts.sum()), wanted).pvalue > 1e-3


def test_ends_of_binomial_numbers():
    n, p = np.array([10.0, 10, 0, 5, -1, 5, np.nan]), np.array([0.0, 1, 0.5, np.nan, 0.5, 1.5, 0.5])
    found = np.asarray(random.binomial(KEY, n, p))
    np.testing.assert_array_equal(found, [0, 10, 0, np.nan, np.nan, np.nan, np.nan])
    assert random.binomial(KEY, np.inf, 0.5).item() == np.inf


def test_multinomial():
    p = np.array([0.2, 0.3, 0.5, 0.0])
    drawn = np.asarray(random.multinomial(KEY, 20, p, shape=(2000,)))
    assert (drawn.sum(-1) == 20).all()
    assert (drawn[:, 3] == 0).all()
    np.testing.assert_allclose(drawn.mean(0), 20 * p, atol=0.15)


def test_orthogonal_matrices():
    for n, m, dtype in ((3, None, "float32"), (2, 4, "float32"), (4, 2, "complex64")):
        q = np.asarray(random.orthogonal(KEY, n, (5,), dtype, m))
        assert q.shape == (5, n, m or n)
        product = q @ np.conj(np.swapaxes(q, 1, 2)) if n <= (m or n) else np.conj(np.swapaxes(q, 1, 2)) @ q
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=1e-5)


@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
def test_covariances(method):
    cov = np.array([[2.0, 1.0], [1.0, 4.0]])
    drawn = np.asarray(random.multivariate_normal(KEY, np.array([1.0, -1.0]), cov, MANY, method=method))
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.15)
    np.testing.assert_allclose(drawn.mean(0), [1, -1], atol=0.05)


# ---- orders ----------------------------------------------------------------------------------------------------------


def test_permutations_permute():
    x = put(np.arange(24, dtype=np.int32).reshape(4, 6))
    assert sorted(random.permutation(KEY, 1000).tolist()) == list(range(1000))
    rows = np.asarray(random.permutation(KEY, x))
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], np.asarray(x))
    columns = np.asarray(random.permutation(KEY, x, axis=-1))
    np.testing.assert_array_equal(columns[:, np.argsort(columns[0])], np.asarray(x))
    each = np.asarray(random.permutation(KEY, x, axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(each, axis=1), np.asarray(x))
    assert random.permutation(KEY, 0).shape == random.permutation(KEY, -3).shape == (0,)
    assert random.permutation(KEY, put(np.zeros((0, 3), np.float32))).shape == (0, 3)
    assert jit(lambda k: random.permutation(k, 5))(KEY).tolist() == random.permutation(KEY, 5).tolist()


def test_samples_without_replacement_are_distinct():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    for drawn in (
        random.choice(KEY, 30, (5, 6), replace=False),
        random.choice(KEY, 4, (4,), replace=False, p=p),
        random.categorical(KEY, np.zeros(9, np.float32), shape=(9,), replace=False),
    ):
        assert len(np.unique(np.asarray(drawn))) == drawn.size


def test_choice_takes_along_an_axis():
    x = np.arange(24).reshape(2, 3, 4)
    drawn = random.choice(KEY, put(x.astype(np.int32)), (5, 2), axis=1)
    places = np.asarray(random.choice(KEY, 3, (5, 2)))
    np.testing.assert_array_equal(drawn, np.take(x, places, axis=1))
    assert random.choice(KEY, 0, (0,)).shape == (0,)
    assert random.choice(KEY, put(np.zeros((0, 3), np.float32)), (0,)).shape == (0, 3)


def test_categorical_shapes():
    logits = put(np.zeros((2, 3, 4), np.float32))
    assert random.categorical(KEY, logits).shape == (2, 3)
    assert random.categorical(KEY, logits, axis=1, shape=(5, 2, 4)).shape == (5, 2, 4)
    without = random.categorical(KEY, logits, axis=1, shape=(2, 2, 4), replace=False)
    assert without.shape == (2, 2, 4)
    assert (np.asarray(without)[0] != np.asarray(without)[1]).all()


# ---- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: random.poisson(KEY, 1.0, (2,), "float32"), ValueError, "dtype argument to `poisson`"),
        (lambda: random.gamma(KEY, np.ones(3), (2,)), ValueError, "broadcast"),
        (lambda: random.dirichlet(KEY, 1.0), ValueError, "at least one axis"),
        (lambda: random.dirichlet(KEY, np.ones((2, 3)), (4,)), ValueError, "broadcast"),
        (lambda: random.multinomial(KEY, 3, 1.0), ValueError, "at least one axis"),
        (lambda: random.multivariate_normal(KEY, np.ones(3), np.eye(2)), ValueError, "cov of shape"),
        (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="lu"), ValueError, "'lu'"),
        (lambda: random.normal(KEY, (2,), "int32"), ValueError, "dtype argument to `normal`"),
        (lambda: random.uniform(KEY, (2,), "complex64"), ValueError, "dtype argument to `uniform`"),
        (lambda: random.bits(KEY, (2,), "int32"), ValueError, "dtype argument to `bits`"),
        (lambda: random.geometric(KEY, 0.5, (2,), "float32"), ValueError, "dtype argument to `geometric`"),
        (lambda: random.randint(KEY, (2,), 0, 3, "float32"), TypeError, "randint only accepts integer"),
        (lambda: random.randint(KEY, (2,), 0, 3, bool), TypeError, "randint only accepts integer"),
        (lambda: random.normal(KEY, (-1,)), ValueError, "negative"),
        (lambda: random.normal(KEY, -1), ValueError, "negative"),
        (lambda: random.normal(KEY, (2.5,)), TypeError, "integers"),
        (lambda: random.normal(random.split(KEY)), ValueError, "normal accepts a single key"),
        (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), ValueError, "broadcast"),
        (lambda: random.uniform(KEY, (3,), minval=np.zeros((2, 3))), ValueError, "broadcast"),
        (lambda: random.uniform(KEY, (3,), minval=[0.0]), TypeError, "list"),
        (lambda: random.pareto(KEY, np.ones(2), (3,)), ValueError, "broadcast"),
        (lambda: random.bernoulli(KEY, 1, (3,)), TypeError, "must be a float"),
        (lambda: random.bernoulli(KEY, 0.5, (3,), mode="x"), ValueError, "'high' or 'low'"),
        (lambda: random.gumbel(KEY, (3,), mode="x"), ValueError, "'high' or 'low'"),
        (lambda: random.permutation(KEY, 3.5), TypeError, "integer"),
        (lambda: random.permutation(KEY, [1, 2]), TypeError, "list"),
        (lambda: random.permutation(KEY, np.arange(3), axis=1), ValueError, "axis"),
        (lambda: random.choice(KEY, 0), ValueError, "empty"),
        (lambda: random.choice(KEY, 3, 5), TypeError, "sequence"),
        (lambda: random.choice(KEY, 3, (5,), replace=False), ValueError, "replace=False"),
        (lambda: random.choice(KEY, 3, (5,), p=np.ones(4)), ValueError, "p must be None"),
        (lambda: random.categorical(KEY, np.zeros(3, np.int32)), ValueError, "float"),
        (lambda: random.categorical(KEY, np.zeros((2, 3)), shape=(3,)), ValueError, "broadcast"),
        (lambda: random.categorical(KEY, np.zeros(3), shape=(5,), replace=False), ValueError, "replace=True"),
        (lambda: random.categorical(KEY, 3.0), ValueError, "axis"),
        (lambda: random.normal(KEY, (), out_sharding=1), NotImplementedError, "out_sharding"),
    ],
)
def test_refused(call, exception, message):
    with pytest.raises(exception, match=message):
        call()
    assert random.normal(KEY).shape == ()


def test_a_traced_shape_is_explained():
    with pytest.raises(TypeError, match="mark the argument static"):
        jit(lambda n: random.normal(KEY, (n,)))(3)
