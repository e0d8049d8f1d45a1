"""Incomplete gamma and beta functions over their whole domain, against values of 40 and more digits."""

import numpy as np
import pytest
from samples import put

from morphax import lax
from morphax import numpy as jnp
from morphax.transforms import api

# a, x, P(a, x), Q(a, x)
GAMMA = [
    (1e-08, 0.001, 0.9999999366846083, 6.331539171908876e-08),
    (1e-08, 1.6, 0.9999999991369166, 8.630833489211599e-10),
    (0.19, 1.05, 0.95424830421855, 0.045751695781450046),
    (0.5, 1e-12, 1.1283791670951364e-06, 0.9999988716208329),
    (4.6, 5.85, 0.7549174464922513, 0.2450825535077486),
    (19.9, 21.0, 0.6242479395434345, 0.3757520604565655),
    (20.1, 12.0, 0.02006460962851145, 0.9799353903714886),
    (35.0, 1e-05, 9.677498871380321e-216, 1.0),
    (150.0, 100.0, 1.88421046603867e-06, 0.999998115789534),
    (150.0, 224.0, 0.9999999385119995, 6.148800046228994e-08),
    (743.5, 1443.75, 1.0, 2.29172880313395e-92),
    (5000.0, 4800.0, 0.0021027954807304734, 0.9978972045192696),
    (20000.0, 20400.0, 0.9975393540563543, 0.0024606459436456764),
]
# a, b, x, I_x(a, b)
BETA = [
    (0.001, 2.0, 0.5, 0.9998067465369478),
    (0.3, 0.4, 1e-09, 0.0013010085434921616),
    (14.0, 1.5, 0.885, 0.3233309362273037),
    (190.0, 132.0, 0.272, 3.576163801351514e-33),
    (2000.0, 3000.0, 0.41, 0.9252621262083042),
    (50.0, 0.01, 0.999, 0.02453969479842518),
    (3.0, 1000.0, 0.0001, 0.00015512845333859546),
]
# a, x, dP/da, dx/da of draws
SLOPES = [
    (0.0001, 2.0, -0.04891578858071385, 7227.911912978638),
    (0.5, 0.1, -0.8229360969795988, 0.5097655670826973),
    (3.0, 9.0, -0.008695466419742526, 1.7397554120638798),
    (15.25, 17.0, -0.0885757594959546, 1.0669058126720072),
    (60.0, 58.0, -0.050695831594377176, 0.9858802819738316),
    (1000.0, 1010.0, -0.011945731337225441, 1.0051509296765342),
]


def columns(rows):
    return [put(np.array(column)) for column in zip(*rows, strict=True)]


def test_incomplete_gamma_functions():
    a, x, lower, upper = columns(GAMMA)
    np.testing.assert_allclose(lax.igamma(a, x), lower, rtol=2e-14)
    np.testing.assert_allclose(lax.igammac(a, x), upper, rtol=2e-13)


def test_incomplete_beta_function():
    a, b, x, wanted = columns(BETA)
    np.testing.assert_allclose(lax.betainc(a, b, x), wanted, rtol=3e-13)


def test_derivatives_in_the_shape():
    a, x, slope, draw = columns(SLOPES)
    np.testing.assert_allclose(lax.igamma_grad_a(a, x), slope, rtol=1e-12)
    np.testing.assert_allclose(lax.random_gamma_grad(a, x), draw, rtol=1e-12)


@pytest.mark.parametrize("deviation", [-3.0, 0.0, 2.0])
def test_large_shapes_are_normal(deviation):
    # P(a, a + d sqrt(a)) -> normal distribution function of d, with an error of order 1 / sqrt(a).
    a = put(1e12)
    got = float(lax.igamma(a, a + deviation * 1e6))
    np.testing.assert_allclose(got, 0.5 * float(lax.erfc(put(-deviation / np.sqrt(2)))), rtol=1e-5)


def test_narrow_dtypes_round_once():
    a, x, _, _ = columns(GAMMA[:8])
    narrow = [jnp.asarray(np.asarray(z), "float32") for z in (a, x)]
    exact = lax.igamma(*[put(np.asarray(z, np.float64)) for z in narrow])
    np.testing.assert_array_equal(lax.igamma(*narrow), np.asarray(exact, np.float32))


def test_no_elements():
    empty = put(np.zeros((0, 2)))
    assert lax.igamma(empty, empty).shape == lax.betainc(empty, empty, empty).shape == (0, 2)


def test_density_at_zero():
    slope = api.grad(lambda x: lax.igamma(1.0, x))
    np.testing.assert_allclose(slope(0.0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(api.grad(lambda x: lax.betainc(1.0, 2.0, x))(0.0), 2.0, rtol=1e-6)
