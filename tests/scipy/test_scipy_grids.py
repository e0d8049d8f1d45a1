"""Cosine transforms, interpolation, quantization and integrals against SciPy."""

import numpy as np
import pytest
import scipy.cluster.vq as vq_oracle
import scipy.fft as fft_oracle
import scipy.integrate as integrate_oracle
import scipy.interpolate as interpolate_oracle
import scipy.ndimage as image_oracle

from morphax.scipy import cluster, fft, integrate, interpolate, ndimage
from morphax.support import config

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 7))


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted, tol=1e-12):
    assert np.shape(got) == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=tol, atol=tol)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_cosine_transforms(kind, norm):
    for name in ("dct", "idct"):
        for n, axis in ((None, -1), (5, 0), (6, 1)):
            got = getattr(fft, name)(X, kind, n, axis, norm)
            near(got, getattr(fft_oracle, name)(X, kind, n, axis, norm))
    for name in ("dctn", "idctn"):
        near(getattr(fft, name)(X, kind, norm=norm), getattr(fft_oracle, name)(X, kind, norm=norm))
        near(getattr(fft, name)(X, kind, (5,), [0], norm), getattr(fft_oracle, name)(X, kind, (5,), [0], norm))


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(mode, order):
    theirs = {"wrap": "grid-wrap"}.get(mode, mode)
    places = [RNG.uniform(-9, 12, size=60), RNG.uniform(-9, 15, size=60)]
    wanted = image_oracle.map_coordinates(X, places, order=order, mode=theirs, cval=3.0)
    got = np.asarray(ndimage.map_coordinates(X, places, order, mode, 3.0))
    if mode == "constant":
        # SciPy mixes nothing with cval beyond the last half entry.
        inside = (places[0] > 0) & (places[0] < 3) & (places[1] > 0) & (places[1] < 6)
        got, wanted = got[inside], wanted[inside]
    near(got, wanted)


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 2.0, None])
def test_grid_interpolation(method, fill):
    grid = (np.array([0.0, 1, 3, 4]), np.linspace(-1, 1, 7))
    at = RNG.uniform(-1.2, 4.5, size=(5, 6, 2))
    wanted = interpolate_oracle.RegularGridInterpolator(grid, X, method, False, fill)(at)
    near(interpolate.RegularGridInterpolator(grid, X, method, fill_value=fill)(at), wanted)


def test_vector_quantization():
    for obs, book in ((X, X[:3] + 0.1), (X[0], X[1])):
        for got, wanted in zip(cluster.vq.vq(obs, book), vq_oracle.vq(obs, book)):
            near(got, wanted)


def test_trapezoid():
    near(integrate.trapezoid(X, np.arange(7.0) ** 2), integrate_oracle.trapezoid(X, np.arange(7.0) ** 2))
