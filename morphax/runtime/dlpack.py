"""Arrays of other libraries, taken over through DLPack."""

from typing import Any

import numpy as np
from jaxlib import _jax

from morphax.ir.avals import ShapedArray
from morphax.runtime import array, backend

_ON_HOST = 1  # kDLCPU of the DLPack specification
_ALIGNED = 64  # bytes: what XLA's CPU client asks of a buffer that it shares


def take_over(x: Any, device: Any, committed: bool, copy: bool | None) -> Any:
    """An Array of what another library holds, of any strides; it shares the memory where it can.

    Args:
        x: object with `__dlpack__` and `__dlpack_device__`.
        device: where the result should be.
        committed: whether it must stay there.
        copy: True copies, False refuses to, None copies where it must.

    Raises:
        TypeError: `x` has not the methods of the protocol.
        ValueError: copy=False, and the strides, the alignment or the device need a copy.
    """
    if not (hasattr(type(x), "__dlpack__") and hasattr(type(x), "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack: needs an array with __dlpack__ and __dlpack_device__; got a {type(x).__name__}. Capsules do "
            "not say where their memory is: pass the array itself."
        )
    if x.__dlpack_device__()[0] != _ON_HOST:
        return _from_accelerator(x, device, copy)
    try:
        host = np.from_dlpack(x)
    except (BufferError, RuntimeError):  # a dtype that NumPy has not, such as bfloat16
        return _compact(_jax.dlpack_managed_tensor_to_buffer(x.__dlpack__(), device, None, copy=copy), committed)
    shared = device.platform == "cpu" and host.flags.c_contiguous and host.ctypes.data % _ALIGNED == 0
    if copy is False and not shared:
        raise ValueError(
            f"from_dlpack: copy=False, but an array with strides {host.strides} at address {host.ctypes.data} needs a "
            f"copy for {device}. It must be contiguous and lie at a multiple of {_ALIGNED} bytes."
        )
    host = host if host.flags.c_contiguous else np.ascontiguousarray(host).reshape(host.shape)
    return array.put(host, ShapedArray(host.shape, host.dtype), device, committed, copy=copy is True or not shared)


def _from_accelerator(x: Any, device: Any, copy: bool | None) -> Any:
    number = x.__dlpack_device__()[1]
    source = next((d for d in backend.local_devices() if (d.local_hardware_id or 0) == number), None)
    if source is None or source.platform == "cpu":
        raise ValueError(f"from_dlpack: the array is on device {x.__dlpack_device__()}, which is not in use here.")
    made = _compact(_jax.dlpack_managed_tensor_to_buffer(x.__dlpack__(), source, None, copy=copy), True)
    if device == source:
        return made
    return array.put(np.asarray(made), made.aval, device, True)


def _compact(made: Any, committed: bool) -> Any:
    """`made` with its axes in the usual order in memory; strides may have come as another layout."""
    aval = ShapedArray(made.shape, made.dtype)
    usual = ",".join(map(str, reversed(range(len(made.shape)))))
    if str(made._pjrt_layout).startswith(f"{{{usual}"):
        return made
    return array.put(np.asarray(made), aval, next(iter(made.devices())), committed)
