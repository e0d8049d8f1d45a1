"""scipy.signal against SciPy."""

import numpy as np
import pytest
import scipy.signal as oracle

from morphax.scipy import signal
from morphax.support import config

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=40), RNG.normal(size=7)
IMAGE, KERNEL = RNG.normal(size=(6, 7)), RNG.normal(size=(3, 2))


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted, tol=1e-10):
    got, wanted = (list(x) if isinstance(x, tuple) else [x] for x in (got, wanted))
    for x, y in zip(got, wanted, strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("method", ["direct", "fft"])
def test_convolution(mode, method):
    for x, y in ((X, Y), (Y, X), (X + 1j, Y - 2j), (IMAGE, KERNEL), (KERNEL, IMAGE)):
        for name in ("convolve", "correlate"):
            near(getattr(signal, name)(x, y, mode, method), getattr(oracle, name)(x, y, mode, method))
    for name in ("convolve2d", "correlate2d"):
        near(getattr(signal, name)(IMAGE, KERNEL, mode), getattr(oracle, name)(IMAGE, KERNEL, mode))
    near(signal.fftconvolve(IMAGE, KERNEL[:, :1] + np.zeros(7), mode, 0), oracle.fftconvolve(IMAGE, KERNEL[:, :1] + np.zeros(7), mode, 0))  # fmt: skip  # noqa: E501
    assert signal.convolve(np.arange(4), np.arange(3)).dtype.kind == "i"


def test_detrending():
    for args in ((1, "constant"), (0, "linear"), (1, "linear", [3])):
        near(signal.detrend(IMAGE, *args), oracle.detrend(IMAGE, *args))


SPECTRA = [{}, {"noverlap": 3}, {"nfft": 20}, {"window": "hamming"}, {"window": np.ones(8)}, {"return_onesided": False}]


@pytest.mark.parametrize("options", SPECTRA, ids=str)
def test_spectra(options):
    options = {"nperseg": 8, "fs": 3.0} | options
    for extra in ({}, {"scaling": "spectrum"}, {"average": "median"}, {"detrend": "linear"}):
        near(signal.welch(X, **options, **extra), oracle.welch(X, **options, **extra))
        near(signal.csd(X, X[::-1].copy(), **options, **extra), oracle.csd(X, X[::-1].copy(), **options, **extra))
    for extra in ({}, {"boundary": None}, {"padded": False}, {"boundary": "even"}, {"boundary": "odd"}):
        near(signal.stft(X, **options, **extra), oracle.stft(X, **options, **extra))
    if options.get("noverlap") is None and "nfft" not in options:
        one = options.pop("return_onesided", True)
        z = oracle.stft(X, return_onesided=one, **options)[2]
        near(signal.istft(z, input_onesided=one, **options), oracle.istft(z, input_onesided=one, **options))


def test_axes():
    table = RNG.normal(size=(40, 3))
    near(signal.welch(table, nperseg=8, axis=0), oracle.welch(table, nperseg=8, axis=0))
    near(signal.stft(table, nperseg=8, axis=0), oracle.stft(table, nperseg=8, axis=0))
