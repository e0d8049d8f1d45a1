"""Types for annotations."""

from typing import Any

import numpy as np

from morphax.runtime.array import Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What array functions take: arrays, NumPy arrays and scalars, Python numbers."""

DTypeLike = str | type[Any] | np.dtype | Any
"""What names a dtype: a NumPy dtype, its name, a scalar class, or an object with a `dtype`."""

__all__ = ["ArrayLike", "DTypeLike"]
