"""Distributions against SciPy into their tails, their derivatives, and statistics of samples."""

import inspect

import numpy as np
import pytest
import scipy.stats as oracle

from morphax import random
from morphax.scipy import stats
from morphax.scipy.stats.distributions import ROWS
from morphax.support import config, tree
from morphax.transforms import api

LINE = np.concatenate([np.linspace(-9, 12, 43), [-40, 60.5]])
COUNTS = np.arange(-2.0, 13)
QUANTILES = np.concatenate([[0, 1, -0.1, 1.2], np.geomspace(1e-9, 0.4, 9), np.linspace(0.45, 0.999, 9)])
SHAPES = {
    "bernoulli": [(0.3,), (1.0,)], "beta": [(0.5, 2.0), (3.0, 4.5), (60.0, 80.0)], "betabinom": [(7.0, 0.6, 2.0)],
    "binom": [(7.0, 0.3), (1.0, 0.0)], "chi2": [(1.0,), (5.5,)], "gamma": [(0.4,), (1.0,), (7.0,)],
    "gennorm": [(0.7,), (2.0,)], "geom": [(0.3,)], "nbinom": [(3.0, 0.4), (2.5, 1.0)], "pareto": [(0.5,), (3.0,)],
    "poisson": [(0.0,), (3.2,)], "t": [(1.0,), (6.5,), (1e6,)], "truncnorm": [(-1.0, 2.0), (3.0, 9.0), (-40.0, -6.0)],
    "vonmises": [(0.5,), (300.0,)], "wrapcauchy": [(0.4,)],
}  # fmt: skip
CASES = [(row, kind, shapes) for row in ROWS for kind in row.public.split() for shapes in SHAPES.get(row.name, [()])]
NAMES = [f"{row.name}.{kind}{shapes}" for row, kind, shapes in CASES]


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted, tol=1e-10, floor=1e-300):
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=tol, atol=floor)


def place(row, kind):
    if not row.moved or (row.name == "bernoulli" and kind in ("cdf", "ppf")):
        return {}
    return {"loc": 1.0} if row.discrete else {"loc": 0.5, "scale": 1.7}


@pytest.mark.parametrize("row, kind, shapes", CASES, ids=NAMES)
def test_values(row, kind, shapes):
    x = QUANTILES if kind in ("ppf", "isf") else COUNTS if row.discrete else LINE
    args = shapes if kind == "entropy" else (x, *shapes)
    wanted_name = {"vonmises": "vonmises_line"}.get(row.name, row.name)
    mine, theirs = getattr(getattr(stats, row.name), kind), getattr(getattr(oracle, wanted_name), kind)
    for where in ({}, place(row, kind)):
        if kind == "entropy" and where:
            continue
        if row.name == "vonmises":
            x = args[0][np.abs(args[0]) < np.pi]
            args = (x, *shapes)
        if row.name == "bernoulli" and kind == "ppf":
            keep = (args[0] != 0) & (shapes[0] != 1)
            args = (args[0][keep], *shapes)
        with np.errstate(all="ignore"):
            wanted = theirs(*args, **where)
        # SciPy takes the difference of two numbers near 1 here.
        loose = {("logistic", "isf"): 1e-6, ("cauchy", "ppf"): 1e-6, ("gennorm", "cdf"): 1e-9}
        near(mine(*args, **where), wanted, loose.get((row.name, kind), 1e-9), 1e-14 if kind == "logpmf" else 1e-300)


SMOOTH = [case for case in CASES if case[1] in ("logpdf", "logpmf", "logcdf", "logsf")]


@pytest.mark.parametrize("row, kind, shapes", SMOOTH, ids=[f"{r.name}.{k}{s}" for r, k, s in SMOOTH])
def test_derivatives_are_limits_of_quotients(row, kind, shapes):
    fun = getattr(getattr(stats, row.name), kind)
    at = {
        "beta": 0.5,
        "truncnorm": np.mean(shapes) if shapes else 0,
        "pareto": 2.5,
        "bernoulli": 1.0,
        "uniform": 0.4,
    }.get(row.name, 2.0)
    extra = tuple(place(row, kind).values())
    if shapes in ((1.0,), (0.0,), (1.0, 0.0), (2.5, 1.0)) and row.discrete:
        return  # at the edge of the parameters
    place_of = at if not extra else at + extra[0] if row.discrete else at * extra[1] + extra[0]
    point = (place_of, *shapes, *extra)
    # Neither counts nor their places move, and igamma's row has no derivatives of the beta functions in a and b.
    fixed = {0, len(shapes) + 1} if row.discrete else set()
    if kind in ("logcdf", "logsf") and row.name == "beta":
        fixed |= {1, 2}
    for i, x in enumerate(point):
        if i in fixed or (row.name in ("binom", "betabinom") and i == 1):
            continue
        h = 1e-6 * max(abs(x), 1e-3)
        ends = [float(fun(*point[:i], x + s * h, *point[i + 1 :])) for s in (1, -1)]
        np.testing.assert_allclose(
            api.grad(fun, argnums=i)(*point), (ends[0] - ends[1]) / (2 * h), rtol=2e-4, atol=1e-6
        )


def test_derivatives_outside_the_support_are_zero():
    for name, shapes in (("gamma", (2.0,)), ("beta", (2.0, 3.0)), ("expon", ()), ("pareto", (2.0,))):
        assert api.grad(getattr(stats, name).logpdf)(-1.0, *shapes) == 0
        assert api.grad(getattr(stats, name).cdf)(-1.0, *shapes) == 0


def test_single_precision_keeps_its_dtype():
    assert stats.norm.logpdf(np.float32(1)).dtype == np.float32
    near(stats.norm.logsf(np.float32(30)), oracle.norm.logsf(30), 1e-6)


def test_signatures_have_the_names_of_scipy():
    assert str(inspect.signature(stats.beta.logpdf)) == "(x, a, b, loc=0, scale=1)"
    assert str(inspect.signature(stats.bernoulli.ppf)) == "(q, p)"


def test_poisson_entropy():
    mu = np.array([0.0, 0.1, 5, 59, 61, 500])
    near(stats.poisson.entropy(mu), [oracle.poisson.entropy(m) for m in mu], 1e-9)


# ---- vectors ---------------------------------------------------------------------------------------------------------

SIMPLEX = np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])


def test_dirichlet():
    alpha = np.array([0.5, 2.0, 3.0])
    wanted = [oracle.dirichlet.logpdf(x, alpha) for x in SIMPLEX.T]
    near(stats.dirichlet.logpdf(SIMPLEX, alpha), wanted)
    near(stats.dirichlet.pdf(SIMPLEX[:2], alpha), np.exp(wanted))
    assert stats.dirichlet.logpdf(np.ones(3), alpha) == -np.inf
    with pytest.raises(ValueError, match=r"^dirichlet: x must have"):
        stats.dirichlet.logpdf(np.ones(5), alpha)


def test_multinomial():
    x, p = np.array([[1, 2, 0], [0, 0, 3], [1, 1, 0]]), np.array([0.2, 0.8, 0.0])
    near(stats.multinomial.logpmf(x, 3, p), oracle.multinomial.logpmf(x, 3, p))
    near(stats.multinomial.pmf(x, 3, p), oracle.multinomial.pmf(x, 3, p))


def test_multivariate_normal():
    rng = np.random.default_rng(0)
    x, mean, root = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    cov = root @ root.T + np.eye(3)
    near(stats.multivariate_normal.logpdf(x, mean, cov), oracle.multivariate_normal.logpdf(x, mean, cov))
    near(stats.multivariate_normal.pdf(x, mean, 2.0), oracle.multivariate_normal.pdf(x, mean, 2 * np.eye(3)))
    near(stats.multivariate_normal.logpdf(x, 0.0, 2.0), oracle.norm.logpdf(x, 0, 2**0.5))
    many = stats.multivariate_normal.logpdf(x, mean + np.zeros((2, 1, 3)), cov)
    near(many, np.stack([oracle.multivariate_normal.logpdf(x, mean, cov)] * 2))
    with pytest.raises(ValueError, match=r"^multivariate_normal: cov must end in \(3, 3\)"):
        stats.multivariate_normal.logpdf(x, mean, np.ones(3))


# ---- samples ---------------------------------------------------------------------------------------------------------

TABLE = np.array([[1, 2, 2, 3], [3, 1, 3, 1], [1, 1, 1, 1]])


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_statistics_of_samples(axis):
    for keepdims in (False, True):
        for got, wanted in zip(stats.mode(TABLE, axis, keepdims=keepdims), oracle.mode(TABLE, axis, keepdims=keepdims)):
            np.testing.assert_array_equal(got, wanted)
    for method in ("average", "min", "max", "dense", "ordinal"):
        wanted = oracle.rankdata(TABLE, method, axis=axis)
        np.testing.assert_array_equal(
            stats.rankdata(TABLE, method, axis=axis), wanted.ravel() if axis is None else wanted
        )
    near(stats.sem(TABLE, axis), oracle.sem(TABLE, axis))
    holes = np.where(TABLE == 2, np.nan, TABLE)
    near(stats.sem(holes, axis, nan_policy="omit"), oracle.sem(holes, axis, nan_policy="omit"))
    with pytest.raises(NotImplementedError, match=r"^mode: nan_policy='omit'"):
        stats.mode(TABLE, nan_policy="omit")


@pytest.mark.parametrize("method", [None, "silverman", 0.4])
def test_kernel_density(method):
    rng = np.random.default_rng(0)
    data, weights, points = rng.normal(size=(2, 9)), rng.uniform(size=9), rng.normal(size=(2, 5))
    mine, theirs = stats.gaussian_kde(data, method, weights), oracle.gaussian_kde(data, method, weights)
    near(mine.covariance, theirs.covariance)
    near(mine.inv_cov, theirs.inv_cov)
    near(mine(points), theirs(points))
    near(mine.logpdf(points), theirs.logpdf(points))
    near(mine.integrate_gaussian([0.1, 0.2], np.eye(2)), theirs.integrate_gaussian([0.1, 0.2], np.eye(2)))
    near(mine.integrate_kde(mine), theirs.integrate_kde(theirs))
    again = tree.map(lambda x: x, mine)
    near(again.pdf(points), theirs(points))
    assert mine.resample(random.key(0), (3, 4)).shape == (2, 3, 4)
    line = stats.gaussian_kde(data[0], method)
    near(line.integrate_box_1d(-1, 0.5), oracle.gaussian_kde(data[0], method).integrate_box_1d(-1, 0.5))
    with pytest.raises(NotImplementedError, match="set_bandwidth"):
        mine.set_bandwidth(1)
