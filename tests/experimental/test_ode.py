"""odeint against closed forms and SciPy, and its derivatives in both modes."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import morphax
from morphax import numpy as jnp
from morphax.experimental.ode import odeint
from morphax.test_util import check_grads


@pytest.fixture(autouse=True)
def wide():
    with morphax.enable_x64(True):
        yield


def van_der_pol(y, t, mu):
    return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


TIMES = np.linspace(0.0, 3.0, 5)


def test_solution_is_that_of_scipy():
    wanted = solve_ivp(
        lambda t, y: np.asarray([y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]]), (0, 3), [1.0, 0.0], t_eval=TIMES,
        rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    for solve in (odeint, morphax.jit(odeint, static_argnums=0)):
        got = solve(van_der_pol, jnp.array([1.0, 0.0]), TIMES, 2.0)
        np.testing.assert_allclose(got, wanted.y.T, atol=1e-6)


def test_pytrees_and_complex_numbers():
    def rotate(y, t, w):
        return {"z": 1j * w["w"] * y["z"], "decay": -y["decay"]}

    got = odeint(rotate, {"z": jnp.array(1.0 + 0j), "decay": jnp.ones((2, 3))}, TIMES, {"w": 2.0})
    np.testing.assert_allclose(got["z"], np.exp(2j * TIMES), atol=1e-6)
    np.testing.assert_allclose(got["decay"][:, 1, 2], np.exp(-TIMES), atol=1e-6)


def test_time_dependence_and_options():
    got = odeint(lambda y, t: jnp.cos(t), 0.0, TIMES, rtol=1e-9, atol=1e-9, hmax=0.1)
    np.testing.assert_allclose(got, np.sin(TIMES), atol=1e-7)
    short = odeint(lambda y, t: -y, 1.0, TIMES, mxstep=2)
    assert np.isfinite(short).all()
    with morphax.enable_x64(False):
        loose = odeint(lambda y, t: -y, 1.0, TIMES.astype("f"), rtol=1e-5, atol=1e-6)
        assert loose.dtype == np.float32
        np.testing.assert_allclose(loose, np.exp(-TIMES), atol=1e-4)


def test_equal_times():
    got = odeint(lambda y, t: -y, 1.0, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(got, [1.0, 1.0, np.exp(-1)], atol=1e-7)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_derivatives_in_everything(mode):
    check_grads(
        lambda y, t, mu: odeint(van_der_pol, y, t, mu), (jnp.array([1.0, 0.5]), TIMES, 1.5), 1, (mode,), 1e-4, 1e-4
    )


def test_gradient_by_closed_form_under_jit_and_vmap():
    def end(rate, y0):
        return odeint(lambda y, t, rate, n: -rate * y * n, y0, jnp.array([0.0, 1.0]), rate, 2)[-1]

    slopes = morphax.jit(morphax.vmap(morphax.grad(end, (0, 1)), (0, None)))(jnp.array([0.5, 1.0]), 3.0)
    np.testing.assert_allclose(slopes[0], [-6 * np.exp(-1.0), -6 * np.exp(-2.0)], rtol=1e-5)
    np.testing.assert_allclose(slopes[1], [np.exp(-1.0), np.exp(-2.0)], rtol=1e-5)
    second = morphax.grad(morphax.grad(end))(0.5, 3.0)
    np.testing.assert_allclose(second, 12 * np.exp(-1.0), rtol=1e-4)
    np.testing.assert_allclose(morphax.jacfwd(morphax.grad(end))(0.5, 3.0), 12 * np.exp(-1.0), rtol=1e-4)


def test_values_closed_over_are_differentiated():
    def f(rate):
        return odeint(lambda y, t: -rate * y, 1.0, jnp.array([0.0, 1.0]))[-1]

    np.testing.assert_allclose(morphax.grad(f)(0.5), -np.exp(-0.5), rtol=1e-6)
    np.testing.assert_allclose(morphax.jvp(f, (0.5,), (1.0,))[1], -np.exp(-0.5), rtol=1e-6)


def test_bad_input_is_explained():
    with pytest.raises(TypeError, match="vector of floats"):
        odeint(lambda y, t: -y, 1.0, jnp.arange(3))
    with pytest.raises(TypeError, match="structure and shapes"):
        odeint(lambda y, t: jnp.stack([y, y]), 1.0, TIMES)
