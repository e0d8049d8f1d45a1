"""jaxlib's sharding classes with what a user expects of them, and their translation to XLA and Shardy.

`NamedSharding` is jaxlib's own class, since only for that does its C++ code take the short ways; methods are put on it
from the table below.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax

from morphax.ir import sharding as ir
from morphax.ir.sharding import AbstractMesh, Mesh, PartitionSpec, axes_of
from morphax.runtime import backend

Sharding = _jax.Sharding
NamedSharding = _jax.NamedSharding
GSPMDSharding = _jax.GSPMDSharding
SingleDeviceSharding = _jax.SingleDeviceSharding
_REPLICATED = _hlo.HloSharding.replicate()

ir.device_list = lambda devices: _jax.DeviceList(devices)
_spec_to_hlo: dict[Any, Any] = {}


def hlo_of(mesh: Any, spec: PartitionSpec, ndim: int) -> Any:
    """XLA's form of a spec."""
    key = (mesh, spec, ndim)
    found = _spec_to_hlo.get(key)
    if found is None:
        if len(_spec_to_hlo) > 4096:
            _spec_to_hlo.clear()
        found = _spec_to_hlo[key] = _hlo_of(mesh, spec, ndim)
    return found


def _hlo_of(mesh: Any, spec: PartitionSpec, ndim: int) -> Any:
    names = list(mesh.axis_names)
    sizes = mesh.shape
    entries = [axes_of(spec[i]) if i < len(spec) else () for i in range(ndim)]
    order = [names.index(a) for axes in entries for a in axes]
    if math.prod(sizes[names[i]] for i in order) == 1:
        return _REPLICATED
    rest = [i for i in range(len(names)) if i not in order]
    copies = math.prod(sizes[names[i]] for i in rest)
    tile = [math.prod(sizes[a] for a in axes) for axes in entries]
    return _hlo.HloSharding.iota_tile(
        (*tile, copies) if copies > 1 else tuple(tile),
        reshape_dims=tuple(sizes.values()),
        transpose_perm=(*order, *rest),
        subgroup_types=[_hlo.OpSharding.Type.REPLICATED] if copies > 1 else [],
    )


def shardy_of(mesh_name: str, spec: Any, ndim: int) -> str:
    """Shardy's form of a spec, as an attribute's text."""
    dims = []
    for i in range(ndim):
        entry = spec[i] if i < len(spec) else None
        if entry is PartitionSpec.UNCONSTRAINED:
            dims.append("{?}")
        else:
            dims.append("{" + ", ".join(f'"{a}"' for a in axes_of(entry)) + "}")
    return f"#sdy.sharding<@{mesh_name}, [{', '.join(dims)}]>"


def spec_of(hlo: Any, mesh: Mesh, ndim: int) -> PartitionSpec | None:
    """The spec on a mesh that XLA's sharding is, or None where there is none."""
    if hlo.is_replicated():
        return PartitionSpec()
    if not hlo.is_tiled():
        return None
    tiles = list(hlo.tile_assignment_dimensions())[:ndim]
    sizes = mesh.shape
    options = []
    for n in tiles:
        fitting: list[Any] = []
        for count in range(len(sizes) + 1):
            for axes in itertools.permutations(sizes, count):
                if math.prod(sizes[a] for a in axes) == n and all(sizes[a] > 1 for a in axes):
                    fitting.append(axes)
        options.append(fitting)
    for chosen in itertools.product(*options):
        used = [a for axes in chosen for a in axes]
        if len(set(used)) == len(used):
            spec = PartitionSpec(*chosen)
            if hlo_of(mesh, spec, ndim) == hlo:
                return _trimmed(spec)
    return None


def _trimmed(spec: PartitionSpec) -> PartitionSpec:
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


# ---- methods of the sharding classes ---------------------------------------------------------------------------------


def _devices(self: Any) -> tuple[Any, ...]:
    return tuple(self._internal_device_list)


def _named_indices(self: Any, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
    """For each device the slices of its part of an array of that shape."""
    shape = tuple(global_shape)
    ir.check_spec("NamedSharding", self.mesh, self.spec, shape)
    return {d: ir.shard_index(self.mesh, self.spec, shape, k) for k, d in enumerate(self.mesh.devices.flat)}


def _named_shard_shape(self: Any, global_shape: Sequence[int]) -> tuple[int, ...]:
    return ir.shard_shape(self.mesh, self.spec, tuple(global_shape))


def _tile_indices(self: Any, shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
    hlo = self._hlo_sharding
    shape = tuple(shape)
    if hlo.is_replicated():
        return {d: (slice(None),) * len(shape) for d in _devices(self)}
    dims = list(hlo.tile_assignment_dimensions())
    grid = np.array(list(hlo.tile_assignment_devices())).reshape(dims)
    found = {}
    for coordinate in np.ndindex(*dims):
        index = []
        for n, tiles, k in zip(shape, dims[: len(shape)], coordinate, strict=False):
            step = -(-n // tiles)
            index.append(slice(None) if tiles == 1 else slice(k * step, min((k + 1) * step, n)))
        found[_devices(self)[grid[coordinate]]] = tuple(index)
    return found


def _same(self: Any, other: Any, ndim: int) -> bool:
    """Whether both put every part of an array of that rank on the same device."""
    return _devices(self) == _devices(other) and self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)


def _named_repr(self: Any) -> str:
    kind = f", memory_kind={self.memory_kind}" if self.memory_kind is not None else ""
    return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


def _check_aval(self: Any, aval_shape: Sequence[int]) -> None:
    ir.check_spec("NamedSharding", self.mesh, self.spec, tuple(aval_shape))


_COMMON = {
    "device_set": property(lambda self: set(_devices(self))),
    "num_devices": property(lambda self: len(_devices(self))),
    "addressable_devices": property(
        lambda self: {d for d in _devices(self) if d.process_index == d.client.process_index()}
    ),
    "has_addressable_devices": property(lambda self: bool(self.addressable_devices)),
    "is_fully_addressable": property(lambda self: len(self.addressable_devices) == len(_devices(self))),
    "memory_kind": property(lambda self: self._memory_kind),
    "is_equivalent_to": _same,
    "addressable_devices_indices_map": lambda self, global_shape: {
        d: index for d, index in self.devices_indices_map(global_shape).items() if d in self.addressable_devices
    },
}
_NAMED = {
    "_to_xla_hlo_sharding": lambda self, ndim: hlo_of(self.mesh, self.spec, ndim),
    "devices_indices_map": _named_indices,
    "shard_shape": _named_shard_shape,
    "is_fully_replicated": property(
        lambda self: math.prod(self.mesh.shape[a] for e in self.spec for a in axes_of(e)) == 1
    ),
    "check_compatible_aval": _check_aval,
    "with_memory_kind": lambda self, kind: NamedSharding(self.mesh, self.spec, memory_kind=kind),
    "with_spec": lambda self, spec: NamedSharding(
        self.mesh, as_spec("NamedSharding", spec), memory_kind=self.memory_kind
    ),
    "update": lambda self, **kwargs: NamedSharding(kwargs.get("mesh", self.mesh), kwargs.get("spec", self.spec)),
    "replicated_axes": property(
        lambda self: frozenset(self.mesh.axis_names) - {a for e in self.spec for a in axes_of(e)}
    ),
    "__repr__": _named_repr,
    "__reduce__": lambda self: (NamedSharding, (self.mesh, self.spec, self.memory_kind)),
}
_TILED = {
    "_to_xla_hlo_sharding": lambda self, ndim: self._hlo_sharding,
    "devices_indices_map": _tile_indices,
    "shard_shape": lambda self, shape: tuple(
        [len(range(*s.indices(n))) for s, n in zip(next(iter(_tile_indices(self, shape).values())), shape, strict=True)]
    ),
    "is_fully_replicated": property(lambda self: self._hlo_sharding.is_replicated()),
    "__repr__": lambda self: f"GSPMDSharding({self._hlo_sharding!r})",
}
_SINGLE = {
    "_internal_device_list": property(lambda self: _jax.DeviceList((self._device,))),
    "devices_indices_map": lambda self, global_shape: {self._device: (slice(None),) * len(global_shape)},
    "shard_shape": lambda self, global_shape: tuple(global_shape),
    "with_memory_kind": lambda self, kind: backend.single_device(self._device, kind),
}


def _install() -> None:
    for cls, own in ((NamedSharding, _NAMED), (GSPMDSharding, _TILED), (SingleDeviceSharding, _SINGLE)):
        for name, attribute in {**_COMMON, **own}.items():
            setattr(cls, name, attribute)
    # The constructor looks for a function of the package `jax` once, and keeps what it finds.
    with backend.answering_for_jax():
        NamedSharding(AbstractMesh((), ()), PartitionSpec())


_install()


# ---- what users pass -------------------------------------------------------------------------------------------------


def as_spec(api: str, spec: Any) -> PartitionSpec:
    """A spec from what stands for one."""
    if isinstance(spec, PartitionSpec):
        return spec
    if spec is None or isinstance(spec, (tuple, str)):
        return PartitionSpec(*((spec,) if isinstance(spec, str) else spec or ()))
    raise TypeError(f"{api}: {spec!r:.80} of type {type(spec).__name__} is not a PartitionSpec.")


def as_sharding(api: str, where: Any) -> Any:
    """The sharding that a sharding, a device, or a spec on the current mesh names.

    Raises:
        ValueError: a spec where no mesh is set.
        TypeError: something else.
    """
    if where is None or isinstance(where, Sharding):
        return where
    if isinstance(where, _jax.Device):
        return backend.single_device(where)
    if isinstance(where, PartitionSpec):
        mesh = ir.current_mesh()
        if mesh is None:
            raise ValueError(
                f"{api}: {where} needs a mesh, and none is set. Use set_mesh(mesh), or NamedSharding(mesh, spec)."
            )
        return NamedSharding(mesh, where)
    raise TypeError(
        f"{api}: {where!r:.80} of type {type(where).__name__} is not a device, a sharding or a spec. Pass one of "
        "devices(), NamedSharding(mesh, P(...)), or P(...) under set_mesh."
    )


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of that shape over the devices there are.

    Args:
        axis_shapes: size of each axis; their product is at most the number of devices.
        axis_names: name of each axis.
        axis_types: `AxisType` of each; Auto by default.
        devices: the devices, in order; all of them by default.

    Raises:
        ValueError: more devices are asked for than there are.

    >>> make_mesh((1,), ("data",)).shape["data"]
    1
    """
    if isinstance(axis_names, str):
        axis_names = (axis_names,)
    shapes = tuple([int(n) for n in axis_shapes])
    available = list(backend.devices() if devices is None else devices)
    wanted = math.prod(shapes)
    if len(shapes) != len(tuple(axis_names)):
        raise ValueError(f"make_mesh: axis_shapes {shapes} and axis_names {tuple(axis_names)} have different lengths.")
    if wanted > len(available):
        raise ValueError(
            f"make_mesh: a mesh of shape {shapes} needs {wanted} devices, and there are {len(available)}. On the CPU, "
            "set jax_num_cpu_devices before the first use to have more."
        )
    return Mesh(np.array(available[:wanted], dtype=object).reshape(shapes), tuple(axis_names), axis_types)


def make_single_device_sharding(device: Any, *, memory_kind: Any = None) -> Any:
    """The sharding that puts a whole array on one device.

    >>> from morphax import devices
    >>> make_single_device_sharding(devices()[0]).num_devices
    1
    """
    return backend.single_device(device, memory_kind)
