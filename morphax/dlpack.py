"""Arrays shared with other libraries through DLPack."""

from typing import Any

from morphax.numpy import facts
from morphax.numpy.facts import is_supported_dtype


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """The array of another library, through DLPack; any strides.

    Args:
        external_array: an object with `__dlpack__` and `__dlpack_device__`.
        device: where the result should be; where the array is by default.
        copy: True copies, False refuses to, None copies where it must.

    >>> import numpy
    >>> from morphax import dlpack
    >>> dlpack.from_dlpack(numpy.ones((2, 3), "float32").T).shape
    (3, 2)
    """
    return facts.from_dlpack(external_array, device=device, copy=copy)


__all__ = ["from_dlpack", "is_supported_dtype"]
