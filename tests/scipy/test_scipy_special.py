"""Special functions against SciPy into their tails, and their derivatives against difference quotients."""

import numpy as np
import pytest
import scipy.special as oracle

from morphax.runtime.jit import jit
from morphax.scipy import special
from morphax.support import config
from morphax.transforms import api

LINE = np.concatenate([np.linspace(-30, 30, 121), [-1e-3, 1e-8, 1e-3]])
HALF = np.concatenate([np.geomspace(1e-6, 300, 80), np.linspace(0.5, 12, 47)])
UNIT = np.concatenate([np.linspace(0, 1, 41), np.geomspace(1e-30, 0.1, 15)])
WIDE = np.concatenate([LINE, -np.geomspace(1e-4, 500, 30), np.geomspace(1e-4, 500, 30)])
PAIR = tuple(x.ravel() for x in np.meshgrid(np.geomspace(0.05, 200, 15), np.geomspace(0.03, 300, 16)))
PLANE = tuple(x.ravel() for x in np.meshgrid(np.linspace(-7, 7, 29), np.linspace(-5, 8, 27)))
COMPLEX = PLANE[0] + 1j * PLANE[1]
FINITE_W = COMPLEX[(COMPLEX.imag > -4)]
OWEN = [-30, -3, -1, -0.5, 0, 0.1, 0.7, 1, 1.3, 2, 9, 100, np.inf]

# name: (operands, tolerance in float64, tolerance in float32)
ROWS = {
    "expit": ((LINE,), 1e-14, 1e-5),
    "logit": ((UNIT,), 1e-13, 1e-5),
    "xlogy": ((PAIR[0], PAIR[1]), 1e-14, 1e-5),
    "xlog1py": ((PAIR[0], PAIR[1]), 1e-14, 1e-5),
    "entr": ((np.concatenate([HALF, [0, -1]]),), 1e-13, 1e-5),
    "rel_entr": ((PAIR[0], PAIR[1]), 1e-13, 1e-4),
    "kl_div": ((PAIR[0], PAIR[1]), 1e-11, 1e-3),
    "boxcox": ((PAIR[0], np.linspace(-2, 3, PAIR[0].size)), 1e-12, 1e-4),
    "boxcox1p": ((PAIR[0], np.linspace(-2, 3, PAIR[0].size)), 1e-12, 1e-4),
    "erf": ((LINE,), 1e-14, 1e-5),
    "erfc": ((LINE[LINE < 26],), 1e-12, None),
    "erfinv": ((np.linspace(-1, 1, 41),), 1e-12, 1e-5),
    "erfcx": ((LINE[LINE > -25],), 1e-13, None),
    "dawsn": ((WIDE,), 2e-13, 2e-5),
    "wofz": ((FINITE_W,), 1e-12, 1e-3),
    "ndtr": ((LINE,), 1e-12, None),
    "log_ndtr": ((WIDE,), 1e-12, None),
    "ndtri": ((np.concatenate([UNIT, 1 - np.geomspace(1e-12, 0.1, 9)]),), 1e-10, None),
    "gammaln": ((WIDE + 0.01,), 1e-11, None),
    "gamma": ((np.linspace(-20, 100, 121) + 0.13,), 1e-11, None),
    "gammasgn": ((np.linspace(-5, 5, 21),), 0, 0),
    "loggamma": ((COMPLEX[(COMPLEX.imag != 0)],), 1e-12, 1e-4),
    "factorial": ((np.arange(-2.0, 30),), 1e-12, 1e-4),
    "digamma": ((WIDE + 0.01,), 1e-11, None),
    "beta": (PAIR, 1e-10, None),
    "betaln": (PAIR, 1e-11, 1e-3),
    "poch": (PAIR[:1] + (np.linspace(-2.2, 3.3, PAIR[0].size),), 1e-10, None),
    "gammainc": (PAIR, 1e-11, None),
    "gammaincc": (PAIR, 1e-10, None),
    "i0": ((LINE,), 1e-13, 1e-4),
    "i0e": ((WIDE,), 1e-13, 1e-5),
    "i1": ((LINE,), 1e-13, 1e-4),
    "i1e": ((WIDE,), 1e-13, 1e-5),
    "exp1": ((HALF,), 1e-13, None),
    "expi": ((np.concatenate([WIDE, [0, np.inf, -np.inf]]),), 1e-12, None),
    "spence": ((np.concatenate([HALF, [0, 1, -1]]),), 1e-12, 1e-4),
    "zeta": ((PAIR[0] + 1.05, PAIR[1]), 1e-11, None),
    "owens_t": ((np.repeat(np.linspace(-8, 8, 33), 13), np.tile(OWEN, 33)), 1e-11, None),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted, tol, floor=1e-300):
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=max(tol, 1e-15), atol=floor if tol < 1e-6 else tol)


@pytest.mark.parametrize("name", ROWS)
def test_values_in_double_precision(name):
    operands, tol, _ = ROWS[name]
    with np.errstate(all="ignore"):
        wanted = getattr(oracle, name)(*operands)
    near(getattr(special, name)(*operands), wanted, tol)


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row[2] is not None])
def test_values_in_single_precision(name):
    operands, _, tol = ROWS[name]
    single = [x.astype(np.complex64 if np.iscomplexobj(x) else np.float32) for x in operands]
    with np.errstate(all="ignore"):
        wanted = getattr(oracle, name)(*[x.astype(np.result_type(x, np.float64)) for x in single])
    got = getattr(special, name)(*single)
    assert got.dtype == (np.complex64 if np.iscomplexobj(wanted) else np.float32)
    near(got, wanted, tol)


# ---- functions of integers, of shapes, and pairs of results ----------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30, 200])
def test_expn(n):
    near(special.expn(n, HALF), oracle.expn(n, HALF), 1e-12, floor=0)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_polygamma(n):
    near(special.polygamma(n, HALF), oracle.polygamma(n, HALF), 1e-10, floor=0)


def test_pairs_of_integrals():
    for got, wanted in zip(special.fresnel(WIDE), oracle.fresnel(WIDE), strict=True):
        near(got, wanted, 1e-11, floor=0)
    x = np.concatenate([HALF, -HALF, [0, np.inf]])
    with np.errstate(all="ignore"):
        wanted = oracle.sici(x)
    near(special.sici(x)[0], wanted[0], 1e-12)
    near(special.sici(x)[1][: HALF.size], wanted[1][: HALF.size], 1e-12, floor=1e-14)
    near(special.sici(x)[1][-2:], wanted[1][-2:], 0)


def test_combinations():
    n, k = np.meshgrid(np.arange(12.0), np.arange(-2.0, 13))
    near(special.comb(n, k), oracle.comb(n, k), 1e-12)
    near(special.comb(n, k, repetition=True)[3:, 1:], oracle.comb(n, k, repetition=True)[3:, 1:], 1e-12)


def test_incomplete_beta():
    a, b, x = np.meshgrid([0.3, 1, 5, 60], [0.5, 2, 30], np.linspace(0, 1, 11))
    near(special.betainc(a, b, x), oracle.betainc(a, b, x), 1e-11)


def test_multigammaln():
    near(special.multigammaln(HALF + 2, 4), [oracle.multigammaln(x, 4) for x in HALF + 2], 1e-11, floor=1e-12)


def test_bessel_jn():
    z = np.linspace(-25, 25, 41).reshape(1, 41)
    wanted = [oracle.jv(k, z) for k in range(7)]
    near(special.bessel_jn(z, v=6, n_iter=80), wanted, 1e-10, floor=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 31, 80])
def test_bernoulli(n):
    near(special.bernoulli(n), oracle.bernoulli(max(n, 2))[: n + 1], 1e-13)


@pytest.mark.parametrize("a", [-2.5, -2, 0.3, 1, 4.2])
@pytest.mark.parametrize("b", [0.4, 1, 3.7])
def test_kummer(a, b):
    x = np.concatenate([np.linspace(-50, 50, 21), [-800, -200, 100, 300]])
    near(special.hyp1f1(a, b, x), oracle.hyp1f1(a, b, x), 1e-9)


@pytest.mark.parametrize(
    "a, b, c", [(1, 2, 3), (0.3, -1.4, 2.2), (-3, 2, 1.5), (1, 1, 2), (2.5, 0.5, 3.9), (1, 2, 1.4)]
)
def test_gauss(a, b, c):
    x = np.concatenate([-np.geomspace(0.01, 200, 12), np.linspace(0, 0.99, 12), [0.999, 1]])
    near(special.hyp2f1(a, b, c, x), oracle.hyp2f1(a, b, c, x), 1e-9)


def test_spherical_harmonics():
    n, m = np.array([(n, m) for n in range(6) for m in range(-n, n + 1)]).T
    theta, phi = np.linspace(0, np.pi, n.size), np.linspace(0, 6, n.size)
    near(special.sph_harm_y(n, m, theta, phi), oracle.sph_harm_y(n, m, theta, phi), 1e-12, floor=1e-14)


def test_legendre():
    z = np.linspace(-0.9, 0.9, 7)
    values, slopes = special.lpmn(5, 5, z)
    for l in range(6):
        for m in range(6):
            wanted = oracle.lpmv(m, l, z) if m <= l else np.zeros(7)
            near(values[m, l], wanted, 1e-12, floor=1e-12)
            h = 1e-6
            quotient = (oracle.lpmv(m, l, z + h) - oracle.lpmv(m, l, z - h)) / (2 * h) if m <= l else np.zeros(7)
            np.testing.assert_allclose(slopes[m, l], quotient, rtol=1e-6, atol=1e-5)
    normalized = special.lpmn_values(2, 2, z, True)
    near(normalized[1, 2], oracle.sph_harm_y(2, 1, np.arccos(z), 0).real, 1e-12, floor=1e-14)


# ---- sums of exponentials --------------------------------------------------------------------------------------------

MATRIX = np.random.default_rng(0).normal(size=(3, 4)) * 100


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims):
    b = np.random.default_rng(1).normal(size=(4,))
    near(special.logsumexp(MATRIX, axis, keepdims=keepdims), oracle.logsumexp(MATRIX, axis, keepdims=keepdims), 1e-14)
    got = special.logsumexp(MATRIX, axis, b, keepdims, return_sign=True)
    for x, y in zip(got, oracle.logsumexp(MATRIX, axis, b, keepdims, return_sign=True), strict=True):
        near(x, y, 1e-13)


def test_logsumexp_at_the_edges():
    assert special.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
    assert special.logsumexp(np.array([np.inf, 1.0])) == np.inf
    assert special.logsumexp(np.array([])) == -np.inf
    assert np.isnan(special.logsumexp(np.array([1.0, 2.0]), b=np.array([1.0, -3.0])))
    assert special.logsumexp(np.array([1.0, 700.0]), where=np.array([True, False])) == 1
    z = np.array([1 + 2j, 3j])
    near(special.logsumexp(z), oracle.logsumexp(z), 1e-14)
    assert np.isfinite(api.grad(special.logsumexp)(np.array([0.0, -np.inf]))).all()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_softmax(axis):
    near(special.softmax(MATRIX, axis=axis), oracle.softmax(MATRIX, axis=axis), 1e-13)
    near(special.log_softmax(MATRIX, axis=axis), oracle.log_softmax(MATRIX, axis=axis), 1e-14)


# ---- derivatives -----------------------------------------------------------------------------------------------------

SLOPES = {
    "expit": (0.3,), "logit": (0.3,), "xlogy": (0.4, 2.0), "xlog1py": (0.4, 2.0), "entr": (0.4,),
    "rel_entr": (0.4, 0.7), "kl_div": (0.4, 0.7), "boxcox": (2.0, 0.7), "boxcox1p": (2.0, 1e-5), "erf": (0.4,),
    "erfc": (0.4,), "erfinv": (0.4,), "erfcx": (-0.4,), "dawsn": (0.9,), "ndtr": (0.4,), "log_ndtr": (-12.0,),
    "ndtri": (1e-5,), "gammaln": (0.4,), "gamma": (-1.4,), "loggamma": (0.4,), "digamma": (0.4,), "beta": (0.4, 2.0),
    "betaln": (20.0, 30.0), "poch": (1.2, 0.7), "i0": (0.3,), "i1": (0.3,), "i0e": (0.3,), "i1e": (-0.3,),
    "exp1": (0.3,), "expi": (3.0,), "spence": (0.3,), "owens_t": (0.6, -1.7), "hyp1f1": (0.4, 1.2, -3.0),
    "hyp2f1": (0.4, 1.2, 2.1, -0.6), "gammainc": (1.3, 2.0), "gammaincc": (1.3, 2.0), "comb": (5.2, 2.1),
    "factorial": (2.2,),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_are_limits_of_quotients(name):
    fun, point = getattr(special, name), SLOPES[name]
    for i, x in enumerate(point):
        h = 1e-5 * max(abs(x), 1e-9) if name != "boxcox1p" else 1e-4
        ends = [float(fun(*point[:i], x + s * h, *point[i + 1 :])) for s in (1, -1)]
        quotient = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(api.grad(fun, argnums=i)(*point), quotient, rtol=1e-6, atol=1e-9)
        tangents = tuple([float(j == i) for j in range(len(point))])
        np.testing.assert_allclose(api.jvp(fun, point, tangents)[1], quotient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["log_ndtr", "dawsn", "expi", "hyp1f1", "betaln"])
def test_batched_and_compiled(name):
    point = SLOPES[name]
    rows = [np.full(3, x) for x in point]
    wanted = float(getattr(special, name)(*point))
    near(api.vmap(getattr(special, name))(*rows), np.full(3, wanted), 1e-14)
    near(jit(getattr(special, name))(*point), wanted, 1e-14)


def test_complex_derivative_of_wofz():
    z, h = 1.2 - 0.3j, 1e-6
    wanted = (oracle.wofz(z + h) - oracle.wofz(z - h)) / (2 * h)
    near(api.jvp(special.wofz, (z,), (1 + 0j,))[1], wanted, 1e-8)


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match=r"^gammaln: takes real numbers"):
        special.gammaln(1j)
    with pytest.raises(TypeError, match=r"^ndtr: takes floating numbers"):
        special.ndtr(1)
    with pytest.raises(TypeError, match=r"^polygamma: n must be an integer"):
        special.polygamma(1.5, 2.0)
    with pytest.raises(ValueError, match=r"^log_ndtr: series_order must be 0 to 30"):
        special.log_ndtr(1.0, series_order=40)
    with pytest.raises(NotImplementedError, match=r"^factorial: exact=True"):
        special.factorial(3, exact=True)
