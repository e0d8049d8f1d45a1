"""Resampling against what each method means, computed pixel by pixel in NumPy; derivatives against differences."""

import numpy as np
import pytest

import morphax
from morphax import image
from morphax import numpy as jnp
from morphax.support import config

X = np.random.RandomState(0).randn(6, 7, 2)
METHODS = ("linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")


@pytest.fixture(autouse=True)
def wide():
    with config.enable_x64(True):
        yield


def cubic(x, a=-0.5):
    x = abs(x)
    if x >= 2:
        return 0.0
    return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x < 1 else a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a


def lanczos(radius):
    return lambda x: np.sinc(x) * np.sinc(x / radius) if abs(x) < radius else 0.0


KERNELS = {
    "linear": lambda x: max(0.0, 1 - abs(x)),
    "cubic": cubic,
    "cubic-pytorch": cubic,
    "lanczos3": lanczos(3),
    "lanczos5": lanczos(5),
}


def weights_of(size, new_size, scale, shift, method, antialias):
    """(new_size, size)."""
    out = np.zeros((new_size, size))
    for i in range(new_size):
        at = (i + 0.5 - shift) / scale - 0.5
        if method == "cubic-pytorch" and not antialias:
            for j in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
                out[i, np.clip(j, 0, size - 1)] += cubic(at - j, -0.75)
            continue
        if not -0.5 <= at <= size - 0.5:
            continue
        for j in range(size):
            if method == "area":
                out[i, j] = max(0.0, min(j + 1, (i + 1 - shift) / scale) - max(j, (i - shift) / scale))
            else:
                out[i, j] = KERNELS[method]((at - j) / (max(1 / scale, 1) if antialias else 1))
        out[i] /= out[i].sum()
    return out


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(3, 10, 2), (12, 2, 2), (6, 5, 2)])
def test_resize(method, antialias, shape):
    rows = weights_of(6, shape[0], shape[0] / 6, 0, method, antialias) if shape[0] != 6 else np.eye(6)
    columns = weights_of(7, shape[1], shape[1] / 7, 0, method, antialias)
    wanted = np.einsum("ia,jb,abc->ijc", rows, columns, X)
    np.testing.assert_allclose(image.resize(X, shape, method, antialias), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_scale_and_translate(method, antialias):
    scale, shift = np.array([0.7, 1.4]), np.array([0.31, -1.2])
    rows = weights_of(6, 5, 0.7, 0.31, method, antialias)
    columns = weights_of(7, 9, 1.4, -1.2, method, antialias)
    wanted = np.einsum("ia,jb,abc->ijc", rows, columns, X)
    found = image.scale_and_translate(X, (5, 9, 2), (0, -2), scale, shift, method, antialias)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives(method):
    def f(x, scale, shift):
        return jnp.sin(image.scale_and_translate(x, (5, 9, 2), (0, 1), scale, shift, method)).sum()

    args, h = (X, np.array([0.7, 1.4]), np.array([0.31, -1.23])), 1e-6
    for k, slope in enumerate(morphax.grad(f, (0, 1, 2))(*args)):
        v = np.random.RandomState(1).randn(*args[k].shape)
        ends = [f(*args[:k], args[k] + s * v, *args[k + 1 :]) for s in (h, -h)]
        np.testing.assert_allclose(np.vdot(slope, v), (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


def test_nearest_keeps_the_dtype():
    x = np.arange(10, dtype=np.uint8).reshape(5, 2)
    found = image.resize(x, (3, 2), "nearest")
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, x[[0, 2, 4]])
    np.testing.assert_array_equal(image.resize(x, (8, 2), "nearest"), x[[0, 0, 1, 2, 2, 3, 4, 4]])


@pytest.mark.parametrize("method", METHODS)
def test_constant_images_stay(method):
    for dtype in ("float32", "float16", "bfloat16"):
        found = image.resize(jnp.ones((4, 5), dtype), (7, 3), method)
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found).astype(float), 1, rtol=0.02)
    assert image.resize(np.arange(4), (3,), method).dtype == np.float64


def test_under_transforms():
    f = lambda x: image.resize(x, (3, 4), image.ResizeMethod.CUBIC)  # noqa: E731
    x = np.moveaxis(X, -1, 0)
    np.testing.assert_allclose(morphax.vmap(f)(x)[1], f(x[1]), rtol=1e-12)
    np.testing.assert_allclose(morphax.jit(f)(x[0]), f(x[0]), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: image.resize(X, (3, 4), "linear"), "one size for each axis"),
        (lambda: image.resize(X, (3, 4, -1), "linear"), "negative"),
        (lambda: image.resize(X, (3, 4, 2), "sharp"), "unknown method 'sharp'"),
        (lambda: image.scale_and_translate(X, (3, 7, 2), (0,), np.ones(1), np.ones(1), "nearest"), "'nearest'"),
        (lambda: image.scale_and_translate(X, (3, 4, 2), (0,), np.ones(1), np.ones(1), "linear"), "must stay 7"),
        (lambda: image.scale_and_translate(X, (3, 7, 2), (0,), np.ones(2), np.ones(1), "linear"), "scale needs"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
