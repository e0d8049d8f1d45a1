"""Moving values between the host and devices."""

from typing import Any

import numpy as np
from jaxlib import _jax

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.ir.primitive import ALL, Primitive
from morphax.ir.trace import Tracer
from morphax.runtime import array, backend
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary

# Under a trace the program decides where values live: the request is kept as an equation and lowered to nothing.
device_put_p = Primitive(
    "device_put",
    type=lambda *xs, devices: xs,
    lower=lambda low, ins, outs, *xs, devices: list(xs),
    linear=ALL,
    transpose=lambda cts, *xs, devices: cts,
    batch=lambda prim, size, operands, flags, params: [
        prim(x, **params)[0] if flag else prim(_repeat(x, size), **params)[0]
        for x, flag in zip(operands, flags, strict=True)
    ],
    multiple=True,
)


def _repeat(x: Any, size: int) -> Any:
    return np.broadcast_to(np.asarray(x), (size, *np.shape(x)))


def as_device(api: str, where: Any) -> Any:
    """The device that a device, or the sharding of one device, names; None for the default."""
    if where is None or isinstance(where, _jax.Device):
        return where
    devices = getattr(where, "device_set", None)
    if devices is None:
        raise TypeError(
            f"{api}: {where!r} of type {type(where).__name__} is not a device or a sharding. Pass one of devices(), or "
            "SingleDeviceSharding(device)."
        )
    if len(devices) != 1:
        raise ValueError(f"{api}: the sharding {where!r} spans {len(devices)} devices; one is supported here.")
    return next(iter(devices))


@api_boundary
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """`x`, a pytree of arrays or numbers, on a device.

    Args:
        x: pytree of arrays, NumPy arrays or numbers.
        device: a device, the sharding of one, or a pytree prefix of `x` of those. Results are committed to it. None:
            the default device for host values, and where it is for an array; not committed.
        src: accepted for compatibility.
        donate: the source arrays may be deleted; True, or a pytree prefix of bools.
        may_alias: the result may share memory with an array of this library on the same device.

    Raises:
        TypeError: a leaf that is not an array or a number, or a `device` that is none.

    >>> from morphax import devices
    >>> device_put(3.0, devices()[0]).devices() == {devices()[0]}
    True
    """
    leaves, structure = tree.flatten(x)
    if device is None or isinstance(device, _jax.Device) or hasattr(device, "device_set"):
        targets = [device] * len(leaves)
    else:
        targets = tree.broadcast_prefix(device, x, is_leaf=lambda d: d is None, what="device_put device")
    devices = [as_device("device_put", t) for t in targets]
    if current.trace is not base() or any(isinstance(leaf, Tracer) for leaf in leaves):
        return tree.unflatten(structure, device_put_p(*leaves, devices=tuple(devices)) if leaves else [])
    gives = [donate] * len(leaves) if isinstance(donate, bool) else tree.broadcast_prefix(donate, x, what="donate")
    moved = [move(leaf, d) for leaf, d in zip(leaves, devices, strict=True)]
    for old, new, give in zip(leaves, moved, gives, strict=True):
        if give and hasattr(old, "delete") and old is not new:
            old.delete()
    return tree.unflatten(structure, moved)


def move(x: Any, device: Any) -> Any:
    """One concrete value on a device (committed), or on the default one."""
    if isinstance(x, array.KeyArray):
        return array.KeyArray(x.dtype, move(x.base, device))
    if isinstance(x, array.ArrayImpl):
        if x.is_deleted():
            array.check_alive(x)
        target = device or x.sharding._device
        committed = device is not None or x._committed
        if x._committed == committed and x.sharding._device == target:
            return x
        sharding = backend.single_device(target)
        return _jax.batched_device_put(x.aval, sharding, [x], [target], committed, enable_x64=True)
    if hasattr(x, "__jax_array__"):
        return move(x.__jax_array__(), device)
    aval = avals.typeof(x)
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        raise TypeError("device_put: a float0 array has no elements to put on a device. Leave it on the host.")
    return array.put(np.asarray(x, aval.dtype), aval, device or backend.default_device(), device is not None)


@api_boundary
def device_get(x: Any) -> Any:
    """`x`, a pytree of arrays, as the same pytree of NumPy arrays. Waits for the results.

    >>> from morphax import numpy as jnp
    >>> device_get({"a": jnp.zeros(2)})
    {'a': array([0., 0.], dtype=float32)}
    """
    leaves, structure = tree.flatten(x)
    for leaf in leaves:
        if isinstance(leaf, array.ArrayImpl) and not leaf.is_deleted():
            leaf.copy_to_host_async()
    return tree.unflatten(structure, [leaf.__array__() if hasattr(leaf, "__array__") else leaf for leaf in leaves])


@api_boundary
def block_until_ready(x: Any) -> Any:
    """`x`, a pytree, after all its arrays have been computed. Other leaves are passed through.

    >>> from morphax import numpy as jnp
    >>> block_until_ready(jnp.zeros(2) + 1.0).tolist()
    [1.0, 1.0]
    """
    for leaf in tree.leaves(x):
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


@api_boundary
def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a pytree to the host; returns the pytree."""
    for leaf in tree.leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays on the devices of a platform that have not been deleted."""
    return backend.client(platform).live_arrays()
