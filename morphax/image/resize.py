"""Images at other sizes: each output pixel is a weighted sum of input pixels, axis by axis.

Pixel j covers [j, j + 1] and stands at j + 1/2.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.numpy import creation, indexing, promotion, reductions, shapes, sorting, ufuncs
from morphax.numpy.einsum import tensordot  # by name: the function `einsum` hides its module
from morphax.ops import contract
from morphax.ops import elementwise as ew
from morphax.ops.family import like, typeof
from morphax.runtime.jit import program
from morphax.support import dtypes

where = sorting.where


class ResizeMethod(enum.Enum):
    """How pixels are weighted: see `resize`."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """The method of that name.

        Raises:
            ValueError: there is none.

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        found = _NAMES.get(s)
        if found is None:
            raise ValueError(f"resize: unknown method {s!r}. Choose one of {', '.join(_NAMES)}.")
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}

# ---- kernels ---------------------------------------------------------------------------------------------------------


def _triangle(x: Any) -> Any:
    return ew.max(1 - x, like(x, 0))


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys: Cubic convolution interpolation for digital image processing, 1981, formula (4)."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return where(x >= 2, like(x, 0), where(x >= 1, far, near))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    """Lanczos: sinc(x) sinc(x / radius) within the radius. Duchon: Lanczos filtering, 1979."""
    return lambda x: where(x < radius, ufuncs.sinc(x) * ufuncs.sinc(x / radius), like(x, 0))


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),
}
_PYTORCH = _cubic(-0.75)


# ---- weights ---------------------------------------------------------------------------------------------------------


def _scaled_to_one(weights: Any) -> Any:
    """Weights over their sum; zeros where that is nearly zero."""
    total = reductions.sum(weights, axis=0, keepdims=True)
    empty = abs(total) <= 1000 * float(np.finfo(np.float32).eps)
    return where(empty, like(total, 0), weights / where(empty, like(total, 1), total))


def _edge_padded(samples: Any, size: int, dtype: np.dtype) -> Any:
    """Cubic weights of Keys with a = -3/4 whose pixels beyond the edge are those at the edge."""
    first = ew.floor(samples)
    pixels = creation.arange(size, dtype=dtype)[:, None]
    total = creation.zeros((size, typeof(samples).shape[0]), dtype)
    for step in range(-1, 3):
        place = ew.min(ew.max(first + step, like(first, 0)), like(first, size - 1))
        total = total + where(pixels == place[None, :], _PYTORCH(abs(samples - first - step))[None, :], like(total, 0))
    return total


def _overlaps(starts: Any, width: Any, size: int, dtype: np.dtype) -> Any:
    """How much of each input pixel (first axis) lies in [start, start + width]."""
    pixels = creation.arange(size, dtype=dtype)[:, None]
    ends = ufuncs.minimum(pixels + 1, (starts + width)[None, :])
    return ufuncs.maximum(ends - ufuncs.maximum(pixels, starts[None, :]), 0)


def _weights(
    size: int, new_size: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool, dtype: np.dtype
) -> Any:
    """How much each input pixel (first axis) counts in each output pixel (second)."""
    inverse = 1 / scale
    out = creation.arange(new_size, dtype=dtype)
    samples = (out + 0.5) * inverse - translation * inverse - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _edge_padded(samples, size, dtype)
    if method is ResizeMethod.AREA:
        weights = _overlaps(out * inverse - translation * inverse, inverse, size, dtype)
    else:
        stretch = ufuncs.maximum(inverse, 1) if antialias else like(samples, 1)
        distance = abs(samples[None, :] - creation.arange(size, dtype=dtype)[:, None]) / stretch
        weights = _KERNELS[method](distance)
    weights = _scaled_to_one(weights)
    inside = (samples >= -0.5) & (samples <= size - 0.5)
    return where(inside[None, :], weights, like(weights, 0))


def _apply(image: Any, weights: Any, axis: int, precision: Any) -> Any:
    out = tensordot(weights, image, axes=((0,), (axis,)), precision=precision)
    return shapes.moveaxis(out, 0, axis)


@program("shape", "axes", "method", "antialias", "precision")
def _scale_and_translate(
    image: Any,
    scale: Any,
    translation: Any,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Any:
    image = promotion.inexact("scale_and_translate", image)
    dtype = dtypes.to_real(typeof(image).dtype)
    scale, translation = (promotion.as_dtype(x, dtype) for x in (scale, translation))
    for k, axis in enumerate(axes):
        size = typeof(image).shape[axis]
        weights = _weights(size, shape[axis], scale[k], translation[k], method, antialias, dtype)
        image = _apply(image, weights.astype(typeof(image).dtype), axis, precision)
    return image


@program("shape", "method", "antialias", "precision")
def _resize(image: Any, shape: tuple[int, ...], method: ResizeMethod, antialias: bool, precision: Any) -> Any:
    image = promotion.array("resize", image)
    changed = [d for d, size in enumerate(typeof(image).shape) if size != shape[d]]
    if method is ResizeMethod.NEAREST:
        for d in changed:
            size = typeof(image).shape[d]
            places = np.floor((np.arange(shape[d]) + 0.5) * (size / shape[d])).astype(np.int32)
            image = indexing.take(image, places, axis=d)
        return image
    image = promotion.inexact("resize", image)
    dtype = dtypes.to_real(typeof(image).dtype)
    for d in changed:
        size = typeof(image).shape[d]
        scale = promotion.as_dtype(creation.full((), shape[d] / size), dtype)
        weights = _weights(size, shape[d], scale, like(scale, 0), method, antialias, dtype)
        image = _apply(image, weights.astype(typeof(image).dtype), d, precision)
    return image


# ---- functions -------------------------------------------------------------------------------------------------------


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _shape(name: str, image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape argument as ints.

    Raises:
        ValueError: it has not as many sizes as the image has axes.
    """
    sizes = tuple([s.__index__() for s in shape])
    own = typeof(promotion.array(name, image)).shape
    if len(sizes) != len(own):
        raise ValueError(f"{name}: shape must have one size for each axis of the image {own}; got {sizes}.")
    if any(s < 0 for s in sizes):
        raise ValueError(f"{name}: sizes must not be negative; the shape is {sizes}.")
    return sizes


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = contract.Precision.HIGHEST,
) -> Any:
    """The image at another size.

    Args:
        image: array; integers become floats, except with "nearest".
        shape: of the result, a size for each axis; axes of batches and channels keep theirs.
        method: "nearest"; "linear", also "bilinear", "trilinear", "triangle"; "cubic", also "bicubic", "tricubic";
            "cubic-pytorch", also "bicubic-pytorch"; "lanczos3"; "lanczos5"; "area"; or a `ResizeMethod`.
        antialias: widen the kernel where the image shrinks.
        precision: of the products.

    Raises:
        ValueError: another method, or a shape of another length.

    >>> from morphax import image, numpy as jnp
    >>> image.resize(jnp.array([0.0, 1.0]), (4,), "linear").tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    sizes = _shape("resize", image, shape)
    return _resize(image, shape=sizes, method=_method(method), antialias=bool(antialias), precision=precision)


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = contract.Precision.HIGHEST,
) -> Any:
    """The image scaled and moved: what stood at x stands at x * scale + translation; zero where nothing stood.

    Args:
        image: array.
        shape: of the result; axes not in `spatial_dims` keep their sizes.
        spatial_dims: the K axes that are resampled.
        scale: shape (K,).
        translation: shape (K,), in output pixels.
        method: as in `resize`, but not "nearest".
        antialias: widen the kernel where the image shrinks.
        precision: of the products.

    Raises:
        ValueError: "nearest", or shapes that do not fit.

    Derivative: in `image`, `scale` and `translation`.

    >>> from morphax import image, numpy as jnp
    >>> one = jnp.ones(1)
    >>> image.scale_and_translate(jnp.array([1.0, 2.0, 3.0]), (3,), (0,), one, one, "linear").tolist()
    [0.0, 1.0, 2.0]
    """
    sizes = _shape("scale_and_translate", image, shape)
    chosen = _method(method)
    if chosen is ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate: the method 'nearest' is not supported. Use resize, or 'linear'.")
    own = typeof(promotion.array("scale_and_translate", image)).shape
    axes = promotion.axes_of("scale_and_translate", tuple(spatial_dims), len(own))
    for d, size in enumerate(own):
        if d not in axes and size != sizes[d]:
            raise ValueError(
                f"scale_and_translate: axis {d} is not in spatial_dims {axes}, so its size must stay {size}; the shape "
                f"is {sizes}."
            )
    scale, translation = (creation.asarray(x) for x in (scale, translation))
    for what, x in (("scale", scale), ("translation", translation)):
        if typeof(x).shape != (len(axes),):
            raise ValueError(
                f"scale_and_translate: {what} needs the shape ({len(axes)},), a number for each of spatial_dims; got "
                f"{typeof(x).shape}."
            )
    options = {"method": chosen, "antialias": bool(antialias), "precision": precision}
    return _scale_and_translate(image, scale, translation, shape=sizes, axes=axes, **options)
