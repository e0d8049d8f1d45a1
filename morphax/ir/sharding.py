"""Meshes of devices, and how the dimensions of arrays go to their axes. Devices are opaque here."""

import enum
import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


class AxisType(enum.Enum):
    """How a mesh axis is used: by XLA's choice, as part of types, or by the program inside `shard_map`."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()

# ---- specs -----------------------------------------------------------------------------------------------------------


class PartitionSpec:
    """For each dimension of an array the mesh axes that it is divided over: a name, a tuple of names, or None.

    Dimensions that are not mentioned are not divided.

    >>> PartitionSpec("data", None)
    PartitionSpec('data', None)
    """

    __slots__ = ("_hash", "partitions", "reduced", "unreduced")

    UNCONSTRAINED = _UNCONSTRAINED

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()):
        self.partitions = tuple([_entry(p) for p in partitions])
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)
        self._hash = hash((self.partitions, self.unreduced, self.reduced))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, index: Any) -> Any:
        return self.partitions[index]

    def __add__(self, other: Any) -> "PartitionSpec":
        return PartitionSpec(*self.partitions, *other)

    def __radd__(self, other: Any) -> "PartitionSpec":
        return PartitionSpec(*other, *self.partitions)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            return self.partitions == other
        return isinstance(other, PartitionSpec) and (
            (self.partitions, self.unreduced, self.reduced) == (other.partitions, other.unreduced, other.reduced)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple:
        return _spec, (self.partitions, self.unreduced, self.reduced)

    def index(self, value: Any) -> int:
        """Position of an entry."""
        return self.partitions.index(value)

    def count(self, value: Any) -> int:
        """How often an entry occurs."""
        return self.partitions.count(value)

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> "PartitionSpec":
        """The same spec with the named parts replaced."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def __repr__(self) -> str:
        parts = [repr(p) for p in self.partitions]
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(map(repr, sorted(axes)))}}}")
        return f"PartitionSpec({', '.join(parts)}{',' if len(parts) == 1 and self.partitions else ''})"


def _spec(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _entry(p: Any) -> Any:
    if isinstance(p, (list, tuple)):
        names = tuple(p)
        return None if not names else names[0] if len(names) == 1 else names
    return p


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The mesh axes of one entry of a spec."""
    if entry is None or entry is _UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


# ---- meshes ----------------------------------------------------------------------------------------------------------


def _types(axis_types: Any, count: int, names: Sequence[Any]) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * count
    if isinstance(axis_types, AxisType):
        return (axis_types,) * count
    types = tuple(axis_types)
    if len(types) != count or not all(isinstance(t, AxisType) for t in types):
        raise ValueError(f"Mesh: axis_types must hold one AxisType for each of {tuple(names)}; it is {axis_types!r}.")
    return types


class AbstractMesh:
    """The shape of a mesh, with the names and types of its axes, without devices.

    >>> AbstractMesh((2, 4), ("x", "y")).shape["y"]
    4
    """

    __slots__ = ("__weakref__", "_hash", "abstract_device", "axis_names", "axis_sizes", "axis_types")
    _internal_device_list = None  # jaxlib asks every mesh

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, *, abstract_device: Any = None
    ):
        self.axis_sizes = tuple(int(s) for s in axis_sizes)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(f"AbstractMesh: {len(self.axis_sizes)} sizes were given for the axes {self.axis_names}.")
        self.axis_types = _types(axis_types, len(self.axis_names), self.axis_names)
        self.abstract_device = abstract_device
        self._hash = hash((self.axis_sizes, self.axis_names, self.axis_types))

    @property
    def shape(self) -> dict[Any, int]:
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        return not self.axis_names

    @property
    def abstract_mesh(self) -> "AbstractMesh":
        return self

    def _of(self, wanted: AxisType) -> tuple[Any, ...]:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is wanted])

    auto_axes = property(lambda self: self._of(AxisType.Auto))
    explicit_axes = property(lambda self: self._of(AxisType.Explicit))
    manual_axes = property(lambda self: self._of(AxisType.Manual))
    are_all_axes_auto = property(lambda self: all(t is AxisType.Auto for t in self.axis_types))
    are_all_axes_explicit = property(lambda self: all(t is AxisType.Explicit for t in self.axis_types))
    are_all_axes_manual = property(lambda self: all(t is AxisType.Manual for t in self.axis_types))

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **kwargs: Any
    ) -> "AbstractMesh":
        """The same mesh with the named parts replaced."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> "AbstractMesh":
        """The same mesh with other types for the named axes."""
        types = [name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return self.update(axis_types=types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and (
            (self.axis_sizes, self.axis_names, self.axis_types)
            == (other.axis_sizes, other.axis_names, other.axis_types)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        dims = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)
        return f"AbstractMesh({dims}, axis_types={self.axis_types})"


class Mesh:
    """Devices in a grid with named axes. Equal meshes are the same object; a context manager that sets the mesh.

    Args:
        devices: array, or nested sequence, of devices.
        axis_names: one name for each axis of `devices`.
        axis_types: one `AxisType` for each; Auto by default.
    """

    __slots__ = (
        "__weakref__", "_hash", "_internal_device_list", "_outer", "abstract_mesh", "axis_names", "axis_types",
        "devices",
    )  # fmt: skip
    _known: dict[Any, "Mesh"] = {}  # noqa: RUF012 - one for all, so that C++ may compare meshes by identity

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> "Mesh":
        grid = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(names):
            raise ValueError(
                f"Mesh: devices has {grid.ndim} axes (shape {grid.shape}), and axis_names {names} has {len(names)}. "
                "Give one name for each axis."
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: axis_names {names} repeats a name.")
        types = _types(axis_types, len(names), names)
        key = (tuple(grid.flat), grid.shape, names, types)
        found = cls._known.get(key)
        if found is not None:
            return found
        self = object.__new__(cls)
        grid.flags.writeable = False
        self.devices = grid
        self.axis_names = names
        self.axis_types = types
        self.abstract_mesh = AbstractMesh(grid.shape, names, types)
        self._hash = hash(key)
        self._outer = []
        self._internal_device_list = device_list(tuple(grid.flat)) if grid.size else None
        if len(cls._known) < _MESHES_KEPT:
            cls._known[key] = self
        return self

    def __reduce__(self) -> tuple:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types
            and self.devices.shape == other.devices.shape
            and all(self.devices.flat == other.devices.flat)
        )

    size = property(lambda self: self.devices.size)
    shape = property(lambda self: self.abstract_mesh.shape)
    shape_tuple = property(lambda self: self.abstract_mesh.shape_tuple)
    axis_sizes = property(lambda self: self.devices.shape)
    empty = property(lambda self: self.devices.size == 0 or not self.axis_names)
    is_scalar = property(lambda self: self.devices.size == 1)
    auto_axes = property(lambda self: self.abstract_mesh.auto_axes)
    explicit_axes = property(lambda self: self.abstract_mesh.explicit_axes)
    manual_axes = property(lambda self: self.abstract_mesh.manual_axes)
    are_all_axes_auto = property(lambda self: self.abstract_mesh.are_all_axes_auto)
    are_all_axes_explicit = property(lambda self: self.abstract_mesh.are_all_axes_explicit)
    are_all_axes_manual = property(lambda self: self.abstract_mesh.are_all_axes_manual)
    device_ids = property(lambda self: np.vectorize(lambda d: d.id, otypes=[int])(self.devices))
    is_multi_process = property(lambda self: len({d.process_index for d in self.devices.flat}) > 1)

    @property
    def local_devices(self) -> list[Any]:
        here = self.devices.flat[0].client.process_index()
        return [d for d in self.devices.flat if d.process_index == here]

    @property
    def local_mesh(self) -> "Mesh":
        if not self.is_multi_process:
            return self
        here = self.devices.flat[0].client.process_index()
        mine = np.vectorize(lambda d: d.process_index == here, otypes=[bool])(self.devices)
        where = [np.unique(w) for w in np.nonzero(mine)]
        return Mesh(self.devices[np.ix_(*where)], self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> "Mesh":
        """The same mesh with the named parts replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> "Mesh":
        self._outer.append(context.mesh)
        context.mesh = self
        return self

    def __exit__(self, *exc: Any) -> None:
        context.mesh = self._outer.pop()

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        dims = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)
        return f"Mesh({dims}, axis_types={self.axis_types})"


_MESHES_KEPT = 1024


def device_list(devices: tuple[Any, ...]) -> Any:
    """What jaxlib wants a mesh to keep; the runtime replaces this function."""
    return devices


# ---- the current mesh ------------------------------------------------------------------------------------------------


class _Context(threading.local):
    mesh: Any = None  # a Mesh or an AbstractMesh
    default: Any = None


context = _Context()


def current_mesh() -> Any:
    """The mesh of the innermost `with`, or the one that `set_mesh` set for the process; None without any."""
    return context.mesh if context.mesh is not None else _process_mesh[0]


_process_mesh: list[Any] = [None]


class set_mesh:
    """Make a mesh the current one: called as a statement, for the process; as a context manager, inside it.

    Specs are then enough where shardings are asked for.
    """

    __slots__ = ("_entered", "mesh", "prev_abstract_mesh", "prev_mesh")

    def __init__(self, mesh: Mesh):
        if not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh: expected a Mesh, got {mesh!r:.80}. Make one with make_mesh.")
        self.mesh = mesh
        self.prev_mesh = _process_mesh[0]
        self.prev_abstract_mesh = None if self.prev_mesh is None else self.prev_mesh.abstract_mesh
        self._entered: list[Any] = []
        _process_mesh[0] = mesh

    def __enter__(self) -> Mesh:
        # Inside `with` it holds for this thread alone, and for the process no longer.
        _process_mesh[0] = self.prev_mesh
        self._entered.append(context.mesh)
        context.mesh = self.mesh
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        context.mesh = self._entered.pop()


class use_abstract_mesh:
    """Inside, the current mesh is one without devices."""

    __slots__ = ("mesh", "prev")

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"use_abstract_mesh: expected an AbstractMesh, got {mesh!r:.80}.")
        self.mesh = mesh
        self.prev: Any = None

    def __enter__(self) -> AbstractMesh:
        self.prev = context.mesh
        context.mesh = self.mesh
        return self.mesh

    def __exit__(self, *exc: Any) -> None:
        context.mesh = self.prev


_EMPTY_ABSTRACT = AbstractMesh((), ())


def get_abstract_mesh() -> AbstractMesh:
    """The current mesh without its devices; an empty one where none is set."""
    mesh = current_mesh()
    return _EMPTY_ABSTRACT if mesh is None else mesh.abstract_mesh


def get_mesh() -> Mesh:
    """The current mesh; an empty one where none is set.

    Raises:
        ValueError: inside `use_abstract_mesh`.
    """
    mesh = current_mesh()
    if mesh is None:
        return Mesh(np.empty((0,), object), ("empty",))
    if isinstance(mesh, AbstractMesh):
        raise ValueError("get_mesh: the current mesh is abstract; use get_abstract_mesh.")
    return mesh


class TypeSharding:
    """How a type is divided over the explicit axes of a mesh: part of `ShapedArray`."""

    __slots__ = ("_hash", "mesh", "spec")

    def __init__(self, mesh: AbstractMesh, spec: PartitionSpec):
        self.mesh = mesh
        self.spec = spec
        self._hash = hash((mesh, spec))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"TypeSharding({self.mesh}, {self.spec})"


def explicit_part(mesh: Any, spec: PartitionSpec) -> TypeSharding | None:
    """What of a spec belongs to the type: its explicit axes; None without any in the mesh."""
    explicit = mesh.explicit_axes
    if not explicit:
        return None
    kept = [tuple([a for a in axes_of(entry) if a in explicit]) for entry in spec]
    return TypeSharding(mesh.abstract_mesh, PartitionSpec(*kept))


# ---- specs against shapes and meshes ---------------------------------------------------------------------------------


def check_spec(what: str, mesh: Any, spec: PartitionSpec, shape: tuple[int, ...] | None = None) -> None:
    """Refuse a spec that does not fit.

    Raises:
        ValueError: an axis that the mesh does not have or that is used twice, a spec longer than the rank, or a size
            that is not divided evenly.
    """
    used: list[Any] = []
    sizes = mesh.shape
    for entry in spec:
        for axis in axes_of(entry):
            if axis not in sizes:
                raise ValueError(
                    f"{what}: {spec} names the axis {axis!r}, which the mesh does not have: {mesh}. Use one of "
                    f"{tuple(sizes)}."
                )
            if axis in used:
                raise ValueError(f"{what}: {spec} uses the mesh axis {axis!r} twice. Each may divide one dimension.")
            used.append(axis)
    if shape is None:
        return
    if len(spec) > len(shape):
        raise ValueError(
            f"{what}: {spec} has {len(spec)} entries, and the array of shape {shape} has {len(shape)} axes."
        )
    for dim, entry in enumerate(spec):
        parts = math.prod(sizes[a] for a in axes_of(entry))
        if shape[dim] % parts:
            raise ValueError(
                f"{what}: {spec} divides axis {dim} of the array of shape {shape} into {parts} parts, and {shape[dim]} "
                f"is not a multiple of {parts}. Pad it, or use other mesh axes of {mesh}."
            )


def shard_shape(mesh: Any, spec: PartitionSpec, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of one device's part."""
    check_spec("sharding", mesh, spec, shape)
    sizes = mesh.shape
    entries = (*spec, *itertools.repeat(None, len(shape) - len(spec)))
    return tuple([n // math.prod(sizes[a] for a in axes_of(e)) for n, e in zip(shape, entries, strict=True)])


def shard_index(mesh: Any, spec: PartitionSpec, shape: tuple[int, ...], position: int) -> tuple[slice, ...]:
    """Slices into the whole array of the part of the device at `position` in the mesh."""
    sizes = mesh.shape
    coordinates = dict(zip(mesh.axis_names, np.unravel_index(position, tuple(sizes.values())), strict=True))
    entries = (*spec, *itertools.repeat(None, len(shape) - len(spec)))
    index = []
    for n, entry in zip(shape, entries, strict=True):
        axes = axes_of(entry)
        if not axes:
            index.append(slice(None))
            continue
        part = 0
        for a in axes:
            part = part * sizes[a] + int(coordinates[a])
        step = n // math.prod(sizes[a] for a in axes)
        index.append(slice(part * step, (part + 1) * step))
    return tuple(index)
