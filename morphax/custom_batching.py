"""Functions with batching rules of their own."""

from morphax.control.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
