"""Vector quantization."""

from typing import Any

from morphax import numpy as jnp
from morphax.runtime.jit import program
from morphax.scipy.operands import typeof
from morphax.support import dtypes


@program("check_finite")
def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """For each row of `obs`, the index of the nearest row of `code_book`, and the distance.

    Args:
      obs: shape (m, n), or (m,) for n = 1.
      code_book: shape (k, n), or (k,).

    >>> vq(jnp.array([0.2, 0.9]), jnp.array([0.0, 1.0]))[0].tolist()
    [0, 1]
    """
    obs, code_book = jnp.asarray(obs), jnp.asarray(code_book)
    if typeof(obs).ndim != typeof(code_book).ndim or typeof(obs).ndim not in (1, 2):
        raise ValueError(
            f"vq: takes two arrays of 1 or 2 axes; the shapes are {typeof(obs).shape} and {typeof(code_book).shape}."
        )
    if typeof(obs).shape[1:] != typeof(code_book).shape[1:]:
        raise ValueError(f"vq: rows differ in length: {typeof(obs).shape} and {typeof(code_book).shape}.")
    dtype = dtypes.to_inexact(jnp.result_type(obs, code_book))
    obs, code_book = obs.astype(dtype), code_book.astype(dtype)
    if typeof(obs).ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    away = jnp.sqrt(jnp.sum((obs[:, None, :] - code_book[None, :, :]) ** 2, axis=-1))
    return jnp.argmin(away, axis=-1), jnp.min(away, axis=-1)
