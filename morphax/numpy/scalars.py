"""The dtypes by name: `float32` and the others are dtypes wherever one is asked for, and make arrays when called."""

from typing import Any

import numpy as np

from morphax.numpy import creation
from morphax.support import dtypes


class ScalarType:
    """A dtype that makes arrays of itself: float32(3). Each dtype is a subclass.

    >>> from morphax import numpy as jnp
    >>> jnp.float32(3).dtype.name, jnp.zeros(2, jnp.int8).dtype.name
    ('float32', 'int8')
    """

    dtype: np.dtype[Any]

    def __new__(cls, x: Any) -> Any:
        return creation.array(x, cls.dtype)


def _scalar_type(name: str, dtype: np.dtype[Any]) -> type[ScalarType]:
    doc = f"The dtype {dtype.name}; called, an array of it."
    return type(name, (ScalarType,), {"dtype": dtype, "__doc__": doc, "__module__": "morphax.numpy"})


TYPES: dict[str, type[ScalarType]] = {name: _scalar_type(name, dtype) for name, dtype in dtypes.BY_NAME.items()}
