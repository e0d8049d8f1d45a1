"""SciPy's distributions, each a module of functions, and statistics of samples.

The chapters: distributions, joint, samples.

>>> from morphax.scipy.stats import norm
>>> norm.cdf(0.0).item()
0.5
"""

import sys
import types
from collections.abc import Callable
from typing import Any

from morphax.scipy.stats import distributions, joint
from morphax.scipy.stats.samples import ModeResult, gaussian_kde, mode, rankdata, sem


def _module(name: str, functions: dict[str, Callable[..., Any]]) -> types.ModuleType:
    """A distribution's functions as a module that `import` finds."""
    module = types.ModuleType(f"{__name__}.{name}", f"The functions of the distribution scipy.stats.{name}.")
    for kind, function in functions.items():
        function.__name__ = function.__qualname__ = kind
        function.__module__ = module.__name__
        setattr(module, kind, function)
    sys.modules[module.__name__] = module
    return module


_MODULES = {row.name: _module(row.name, distributions.functions(row)) for row in distributions.ROWS}
_MODULES |= {name: _module(name, functions) for name, functions in joint.FUNCTIONS.items()}
globals().update(_MODULES)
