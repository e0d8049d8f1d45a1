"""Moving values between the host and devices."""

from typing import Any

import numpy as np
from jaxlib import _jax

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.ir.primitive import ALL, Primitive
from morphax.ir.sharding import PartitionSpec, check_spec, explicit_part
from morphax.ir.trace import Tracer
from morphax.runtime import array, backend, shardings
from morphax.runtime import compile as compiling
from morphax.runtime.shardings import as_sharding
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


@api_boundary
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """`x`, a pytree of arrays or numbers, on a device.

    Args:
        x: pytree of arrays, NumPy arrays or numbers.
        device: a device, a sharding, a spec on the current mesh, or a pytree prefix of `x` of those; results are
            committed to it. None: the default device for host values, and where it is for an array; not committed.
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
    if _is_place(device):
        targets = [device] * len(leaves)
    else:
        targets = tree.broadcast_prefix(device, x, is_leaf=_is_place, what="device_put device")
    devices = [shardings.as_sharding("device_put", t) for t in targets]
    if current.trace is not base() or any(isinstance(leaf, Tracer) for leaf in leaves):
        return tree.unflatten(structure, device_put_p(*leaves, devices=tuple(devices)) if leaves else [])
    gives = [donate] * len(leaves) if isinstance(donate, bool) else tree.broadcast_prefix(donate, x, what="donate")
    moved = [move(leaf, d) for leaf, d in zip(leaves, devices, strict=True)]
    for old, new, give in zip(leaves, moved, gives, strict=True):
        if give and hasattr(old, "delete") and old is not new:
            old.delete()
    return tree.unflatten(structure, moved)


def typeof(x: Any) -> avals.ShapedArray:
    """Type of an array, a tracer or a number: shape, dtype, and how it is divided over the explicit axes of its mesh.

    >>> from morphax import numpy as jnp
    >>> print(typeof(jnp.zeros((2, 3))))
    f32[2,3]
    """
    aval = avals.typeof(x)
    if isinstance(x, array.ArrayImpl) and isinstance(x._sharding, shardings.NamedSharding):
        return aval.update(sharding=explicit_part(x._sharding.mesh, x._sharding.spec))
    return aval


# ---- constraints -----------------------------------------------------------------------------------------------------


def _lower_constraint(low: Any, ins: Any, outs: Any, x: Any, *, sharding: Any) -> Any:
    meshes = low.module.meshes
    if meshes is None or not isinstance(sharding, shardings.NamedSharding):
        return [x]  # on one device there is nothing to choose
    text = shardings.shardy_of(meshes.name(sharding.mesh), sharding.spec, array.physical(outs[0]).ndim)
    return low.op("sdy.sharding_constraint", outs, (x,), {"sharding": text})


def _batch_constraint(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    sharding = params["sharding"]
    if isinstance(sharding, shardings.NamedSharding):
        spec = PartitionSpec(PartitionSpec.UNCONSTRAINED, *sharding.spec)
        sharding = shardings.NamedSharding(sharding.mesh, spec)
    return [prim(operands[0], sharding=sharding)]


sharding_constraint_p = Primitive(
    "sharding_constraint",
    type=lambda x, *, sharding: x,
    lower=_lower_constraint,
    linear=(0,),
    transpose=lambda ct, x, *, sharding: (sharding_constraint_p(ct, sharding=sharding),),
    batch=_batch_constraint,
)


@api_boundary
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """`x` with a sharding that the compiler must give it inside a jitted function.

    Args:
        x: pytree of arrays.
        shardings: a sharding, a spec on the current mesh, or a pytree prefix of `x` of those.

    Raises:
        ValueError: a spec that does not fit, or without a mesh.

    >>> from morphax import numpy as jnp, make_mesh
    >>> from morphax.sharding import NamedSharding, PartitionSpec
    >>> mesh = make_mesh((1,), ("data",))
    >>> with_sharding_constraint(jnp.zeros(4), NamedSharding(mesh, PartitionSpec("data"))).shape
    (4,)
    """
    leaves, structure = tree.flatten(x)
    spread = tree.broadcast_prefix(shardings, x, is_leaf=_is_place, what="with_sharding_constraint shardings")
    wanted = [as_sharding("with_sharding_constraint", s) for s in spread]
    constrained = []
    for leaf, sharding in zip(leaves, wanted, strict=True):
        if sharding is None:
            constrained.append(leaf)
            continue
        _check(sharding, avals.typeof(leaf))
        if current.trace is base() and not isinstance(leaf, Tracer):
            constrained.append(move(leaf, sharding))
        else:
            constrained.append(sharding_constraint_p(leaf, sharding=sharding))
    return tree.unflatten(structure, constrained)


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, (_jax.Device, shardings.Sharding, PartitionSpec))


def move(x: Any, sharding: Any) -> Any:
    """One concrete value with that sharding (committed), or on the default device."""
    if isinstance(x, array.KeyArray):
        return array.KeyArray(x.dtype, move(x.base, sharding))
    if isinstance(x, array.ArrayImpl):
        if x.is_deleted():
            array.check_alive(x)
        if sharding is None or (x._committed and x._sharding == sharding):
            return x
        _check(sharding, x.aval)
        if len(sharding._internal_device_list) == 1:
            devices = list(sharding._internal_device_list)
            whole = x if len(x._sharding._internal_device_list) == 1 else x._value
            return _jax.batched_device_put(x.aval, sharding, [whole], devices, True, enable_x64=True)
        return compiling.place(x, x.aval, sharding)
    if hasattr(x, "__jax_array__"):
        return move(x.__jax_array__(), sharding)
    aval = avals.typeof(x)
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        raise TypeError("device_put: a float0 array has no elements to put on a device. Leave it on the host.")
    value = np.asarray(x, aval.dtype)
    if sharding is None:
        return array.put(value, aval, backend.default_device(), committed=False)
    _check(sharding, aval)
    return compiling.put_sharded(value, aval, sharding, committed=True)


def _check(sharding: Any, aval: avals.ShapedArray) -> None:
    if isinstance(sharding, shardings.NamedSharding):
        check_spec("device_put", sharding.mesh, sharding.spec, aval.shape)


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
