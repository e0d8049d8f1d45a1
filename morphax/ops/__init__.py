"""First-order primitives by family. Lowest first: family, elementwise, special, formulas, incomplete, bessel,
structure, reduce, contract, indexing,
sorting, convolution, window, matrices, lapack, small, linalg, spectra, fft, collectives, random_bits."""

import importlib
from typing import Any

_PUBLIC = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def __getattr__(name: str) -> Any:
    """`jax.ops` has four public functions; for programs that say `import morphax as jax` they are found here too."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'morphax.ops' has no attribute {name!r}")
    return getattr(importlib.import_module("morphax.compat.ops"), name)
