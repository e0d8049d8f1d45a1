"""numpy.fft against NumPy, over lengths, axes and norms; derivatives and dtypes."""

import numpy as np
import pytest
from samples import put

from morphax.numpy import fft
from morphax.runtime.jit import jit
from morphax.transforms import api

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn")
COMPLEX_ONLY = ("rfft", "ihfft", "rfftn", "rfft2")
RNG = np.random.default_rng(0)


def signal(shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if is_complex else x


def same(got, wanted):
    assert got.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("n", [None, 1, 4, 7])
def test_along_one_axis(name, n):
    x = signal((2, 5, 4), name not in COMPLEX_ONLY)
    for axis in (-1, 0, 1):
        for norm in (None, "ortho", "forward", "backward"):
            same(getattr(fft, name)(put(x), n, axis, norm), getattr(np.fft, name)(x, n, axis, norm))


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize(("s", "axes"), [(None, None), (None, (0,)), (None, (-1, 0)), ((3,), (-1,)), ((3, 4), (0, 1))])
def test_along_several_axes(name, s, axes):
    for shape in ((3, 4), (2, 3, 2, 3, 2)):
        x = signal(shape, name not in COMPLEX_ONLY)
        same(getattr(fft, name)(put(x), s, axes), getattr(np.fft, name)(x, s, axes))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_over_two_axes(name):
    x = signal((2, 3, 4), name not in COMPLEX_ONLY)
    same(getattr(fft, name)(put(x), norm="ortho"), getattr(np.fft, name)(x, norm="ortho"))
    assert api.vmap(getattr(fft, name))(put(x)).shape == getattr(np.fft, name)(x).shape


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n):
    np.testing.assert_allclose(fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5), rtol=1e-6)
    np.testing.assert_allclose(fft.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5), rtol=1e-6)
    assert fft.fftfreq(n, dtype="float64").dtype == np.float64
    np.testing.assert_allclose(jit(lambda d: fft.fftfreq(4, d))(0.5), np.fft.fftfreq(4, 0.5), rtol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (4, 3)])
@pytest.mark.parametrize("axes", [None, 0, (0,), [-1]])
def test_shifts(shape, axes):
    x = np.arange(np.prod(shape)).reshape(shape)
    same(fft.fftshift(put(x), axes), np.fft.fftshift(x, axes))
    same(fft.ifftshift(put(x), axes), np.fft.ifftshift(x, axes))


def test_dtypes():
    wanted = {"float16": "complex64", "float32": "complex64", "float64": "complex128", "int32": "complex64"}
    for name, complex_name in wanted.items():
        assert fft.fft(put(np.ones(3, name))).dtype == complex_name
        assert fft.rfft(put(np.ones(3, name))).dtype == complex_name
    assert fft.irfft(put(np.ones(3, "complex128"))).dtype == np.float64


def test_empty():
    assert fft.fft(put(np.zeros((0, 3)))).shape == (0, 3)
    assert fft.irfft(put(np.zeros((2, 1), "complex64"))).shape == (2, 0)


def test_gradient_of_a_power_spectrum():
    # Parseval: the sum of |fft(x)|^2 is n times that of x^2.
    x = signal((6,), False)
    got = api.grad(lambda x: (abs(fft.fft(x)) ** 2).sum())(put(x))
    same(got, 12 * x)
    got = api.grad(lambda x: (fft.irfft(fft.rfft(x)) ** 2).sum())(put(x))
    same(got, 2 * x)


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda x: fft.rfft(x + 0j), ValueError, "only real valued inputs"),
        (lambda x: fft.fft(x, n=0), ValueError, "Shape should be positive"),
        (lambda x: fft.fft(x, axis=2), ValueError, "out of bounds"),
        (lambda x: fft.fft(x, norm="x"), ValueError, "Invalid norm value"),
        (lambda x: fft.fftn(x, axes=(0, 0)), ValueError, "repeated axes"),
        (lambda x: fft.fftn(x, s=(2, 2, 2), axes=(0, 1)), ValueError, "must be of one length"),
        (lambda x: fft.fft2(x, axes=(0,)), ValueError, "only supports 2 axes"),
        (lambda x: fft.fftn(x, axes=0.5), TypeError, "sequences of integers"),
        (lambda x: fft.fft(x, axis=(0, 1)), ValueError, "single axis"),
    ],
)
def test_errors(call, exception, message):
    with pytest.raises(exception, match=message):
        call(put(np.ones((2, 3))))
