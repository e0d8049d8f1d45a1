"""Resampling of images. The names of `jax.image`."""

from morphax.image.resize import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
