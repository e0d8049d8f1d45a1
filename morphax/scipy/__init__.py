"""SciPy's functions on arrays and tracers of this library.

>>> import morphax.scipy as jsp
>>> jsp.special.expit(0.0).item()
0.5
"""

import importlib
from typing import Any

_MODULES = (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"morphax.scipy.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
