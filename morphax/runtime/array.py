"""The Array type: jaxlib's arrays, with what a NumPy user expects of them. Operators come from `numpy/methods.py`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.runtime import backend
from morphax.support import dtypes
from morphax.support.tracebacks import api_boundary

Array = _jax.Array
ArrayImpl = _jax.ArrayImpl


def put(x: Any, aval: ShapedArray, device: Any, committed: bool, *, copy: bool = True) -> Any:
    """A host value on a device, as an Array of type `aval`."""
    return _jax.batched_device_put(
        aval,
        backend.single_device(device),
        [x],
        [device],
        committed,
        copy,  # without a copy, a well aligned NumPy buffer would be shared with its owner
        enable_x64=True,
    )


# ---- NumPy and Python conversions -----------------------------------------------------------------------------------


def deleted(x: Any) -> str:
    """Why an array cannot be used."""
    return (
        f"Array of type {x.aval} has been deleted: it was donated to a jitted function, or .delete() was called. Use "
        "the function's result instead, or do not donate the argument."
    )


def check_alive(self: Any) -> None:
    """Raise for an array whose buffer is gone."""
    if self.is_deleted():
        raise RuntimeError(deleted(self))


# Dtypes that the buffer protocol has a code for.
_BUFFERED = frozenset(
    np.dtype(name) for name in ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
) | {np.dtype("float32"), np.dtype("float64")}
_SMALL = 4096


def _on_host(x: Any) -> np.ndarray:
    # The buffer protocol takes 3 us where jaxlib's own conversion takes 100. What is small is copied, so that a view
    # that is kept does not stand in the way of donating the array later.
    if x.aval.dtype in _BUFFERED and next(iter(x._sharding._internal_device_list)).platform == "cpu":
        view = np.asarray(memoryview(x))
        return view.copy() if view.nbytes <= _SMALL else view
    return x._single_device_array_to_np_array_did_copy()[0]


def _value(self: Any) -> np.ndarray:
    """The array as a read-only NumPy array. Waits for the result."""
    check_alive(self)
    if self._npy_value is None:
        sharding = self._sharding
        if len(sharding._internal_device_list) == 1 or sharding.is_fully_replicated:
            whole = self if len(sharding._internal_device_list) == 1 else self._fully_replicated_shard()
            value = _on_host(whole)
        else:
            value = np.empty(self.aval.shape, self.aval.dtype)
            for shard in self.addressable_shards:
                value[shard.index] = shard.data._value
        value.flags.writeable = False
        self._npy_value = value
    return self._npy_value


def _array(self: Any, dtype: Any = None, context: Any = None, copy: bool | None = None) -> np.ndarray:
    value = _value(self)
    if dtype is not None and np.dtype(dtype) != value.dtype:
        if copy is False:
            raise ValueError(f"numpy.asarray: dtype {np.dtype(dtype)} needs a copy of this array of {value.dtype}.")
        return value.astype(dtype)
    return value.copy() if copy else value


def _scalar(self: Any, kind: str) -> Any:
    if self.size != 1 or self.ndim:
        raise TypeError(
            f"{kind}: only a scalar array converts to a Python scalar, and this one has shape {self.shape}. Index it, "
            "or use .item() for an array with a single element."
        )
    return _value(self)


def _bool(self: Any) -> bool:
    if self.size != 1:
        what = "an empty array" if self.size == 0 else f"an array of shape {self.shape}"
        raise ValueError(f"The truth value of {what} is ambiguous. Use .any() or .all().")
    return bool(_value(self))


def _index(self: Any) -> int:
    if self.ndim or not dtypes.is_integer(self.dtype):
        raise TypeError(f"only integer scalar arrays can be an index; this one is {self.aval}.")
    return int(_value(self))


def _item(self: Any, *args: int) -> Any:
    """The single element, or the one at a position, as a Python scalar."""
    return _value(self).item(*args)


def _tobytes(self: Any, order: Any = "C") -> bytes:
    """The elements as bytes, in C or Fortran order."""
    return _value(self).tobytes(order)


def _iter(self: Any) -> Iterator[Any]:
    if not self.ndim:
        raise TypeError("iteration over a 0-d array")
    return iter(self._split_rows())


def _len(self: Any) -> int:
    if not self.ndim:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def _hash(self: Any) -> int:
    raise TypeError(
        "unhashable type: an Array cannot be a dictionary key, a set member or a static argument. Use its bytes or a "
        "tuple of its values."
    )


# ---- printing -------------------------------------------------------------------------------------------------------


def _repr(self: Any) -> str:
    if self.is_deleted():
        return f"Array({self.aval}, deleted)"
    weak = ", weak_type=True" if self.weak_type else ""
    options = np.get_printoptions()
    if self.size == 0:
        return f"Array([], shape={self.shape}, dtype={self.dtype.name}{weak})"
    prefix = "Array("
    tail = f"dtype={self.dtype.name}{weak})"
    body = np.array2string(_value(self), prefix=prefix, suffix=",", separator=", ")
    last_line = body.rsplit("\n", 1)[-1]
    one_line = len(last_line) + len(tail) + 2 + (len(prefix) if "\n" not in body else 0) <= options["linewidth"]
    gap = " " if one_line else "\n" + " " * len(prefix)
    return f"{prefix}{body},{gap}{tail}"


def _str(self: Any) -> str:
    return str(_value(self))


def _format(self: Any, format_spec: str) -> str:
    return format(_value(self)[()], format_spec) if self.ndim == 0 else format(_value(self), format_spec)


# ---- copies, pickles, DLPack ----------------------------------------------------------------------------------------


def _reduce(self: Any) -> tuple:
    return restore, (np.asarray(_value(self)), self.aval.dtype, self.weak_type)


def restore(value: np.ndarray, dtype: Any, weak_type: bool) -> Any:
    """The Array of a pickle, on the default device."""
    aval = ShapedArray(value.shape, dtype, weak_type)
    return put(value, aval, backend.default_device(), committed=False)


def _copy(self: Any) -> Any:
    check_alive(self)
    return self.clone()


def _dlpack(self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """A DLPack capsule of the buffer, shared without a copy where the consumer allows it."""
    check_alive(self)
    return _jax.buffer_to_dlpack_managed_tensor(self.block_until_ready(), stream=stream)


def _dlpack_device(self: Any) -> tuple[int, int]:
    device = next(iter(self.devices()))
    return {"cpu": 1, "gpu": 2, "cuda": 2, "rocm": 10}[device.platform], device.local_hardware_id or 0


# ---- where it is ----------------------------------------------------------------------------------------------------


class Shard:
    """The part of an array that one device holds: `device`, `index` (slices into the whole) and `data`."""

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Any, index: tuple[slice, ...], data: Any, replica_id: int = 0):
        self.device = device
        self.index = index
        self.data = data
        self.replica_id = replica_id

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data!r})"


def _devices(self: Any) -> set[Any]:
    """The devices that hold the array.

    >>> from morphax import numpy as jnp
    >>> len(jnp.zeros(3).devices())
    1
    """
    check_alive(self)
    return set(self._sharding.device_set)


def _device(self: Any) -> Any:
    devices = self._sharding.device_set
    return next(iter(devices)) if len(devices) == 1 else self._sharding


def _shards(self: Any) -> list[Shard]:
    """The parts that the devices of this process hold."""
    check_alive(self)
    sharding = self._sharding
    devices = list(sharding._internal_device_list)
    if len(devices) == 1:
        return [Shard(devices[0], (slice(None),) * self.ndim, self)]
    with backend.answering_for_jax():  # the parts are arrays that C++ makes by itself
        parts = list(self._arrays)
    indices = sharding.devices_indices_map(self.shape)
    seen: dict[Any, int] = {}
    found = []
    for part in parts:
        device = part._sharding._device
        index = indices[device]
        key = tuple([(s.start, s.stop) for s in index])
        seen[key] = seen.get(key, -1) + 1
        found.append(Shard(device, index, part, seen[key]))
    return found


def _nbytes(self: Any) -> int:
    return self.size * self.dtype.itemsize


def _on_device_size(self: Any) -> int:
    return self.on_device_size_in_bytes()


_ATTRIBUTES: dict[str, Any] = {
    "shape": property(lambda self: self.aval.shape),
    "dtype": property(lambda self: self.aval.dtype),
    "ndim": property(lambda self: self.aval.ndim),
    "size": property(lambda self: self.aval.size),
    "weak_type": property(lambda self: self.aval.weak_type),
    "itemsize": property(lambda self: self.aval.dtype.itemsize),
    "nbytes": property(_nbytes, doc="Bytes of the elements: size times itemsize."),
    "sharding": property(lambda self: self._sharding),
    "committed": property(lambda self: self._committed),
    "device": property(_device),
    "devices": _devices,
    "addressable_shards": property(_shards),
    "global_shards": property(_shards),
    "addressable_data": lambda self, index: _shards(self)[index].data,
    "is_fully_addressable": property(lambda self: self._sharding.is_fully_addressable),
    "is_fully_replicated": property(lambda self: self._sharding.is_fully_replicated),
    "_value": property(_value),
    "__array__": api_boundary(_array),
    "__array_priority__": 100,
    "__bool__": api_boundary(_bool),
    "__int__": api_boundary(lambda self: int(_scalar(self, "int()"))),
    "__float__": api_boundary(lambda self: float(_scalar(self, "float()"))),
    "__complex__": api_boundary(lambda self: complex(_scalar(self, "complex()"))),
    "__index__": api_boundary(_index),
    "__iter__": api_boundary(_iter),
    "__len__": api_boundary(_len),
    "__hash__": api_boundary(_hash),
    "__repr__": _repr,
    "__str__": _str,
    "__format__": api_boundary(_format),
    "__reduce__": _reduce,
    "__copy__": _copy,
    "__deepcopy__": lambda self, memo: _copy(self),
    "__dlpack__": api_boundary(_dlpack),
    "__dlpack_device__": _dlpack_device,
    "item": api_boundary(_item),
    "tolist": api_boundary(lambda self: _value(self).tolist()),
    "tobytes": api_boundary(_tobytes),
    "copy_to_host_async": lambda self: self._copy_single_device_array_to_host_async(),
    "unsafe_buffer_pointer": ArrayImpl.unsafe_buffer_pointer,
}

for _name, _attribute in _ATTRIBUTES.items():
    setattr(ArrayImpl, _name, _attribute)

backend.SingleDeviceSharding.is_fully_replicated = property(lambda self: True)
backend.SingleDeviceSharding.__repr__ = lambda self: f"SingleDeviceSharding(device={self._device!r})"
backend.SingleDeviceSharding.__eq__ = lambda self, other: (
    self is other
    or type(other) is backend.SingleDeviceSharding
    and self._device == other._device
    and self._memory_kind == other._memory_kind
)
backend.SingleDeviceSharding.__hash__ = lambda self: hash(self._device)


# ---- random keys ----------------------------------------------------------------------------------------------------


class KeyArray(Array):
    """An array of random keys: `base` holds their words in one more axis."""

    __slots__ = ("aval", "base")

    def __init__(self, dtype: Any, base: Any):
        key_ndim = len(dtype.key_shape)
        shape = base.shape[: base.ndim - key_ndim]
        self.base = base
        self.aval = ShapedArray(shape, dtype)

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: False)
    itemsize = property(lambda self: self.aval.dtype.itemsize)
    nbytes = property(lambda self: self.base.nbytes)
    sharding = property(lambda self: self.base.sharding)
    committed = property(lambda self: self.base.committed)
    device = property(lambda self: self.base.device)
    is_fully_addressable = property(lambda self: True)
    is_fully_replicated = property(lambda self: True)

    def devices(self) -> set[Any]:
        return self.base.devices()

    def block_until_ready(self) -> "KeyArray":
        self.base.block_until_ready()
        return self

    def is_ready(self) -> bool:
        return self.base.is_ready()

    def is_deleted(self) -> bool:
        return self.base.is_deleted()

    def delete(self) -> None:
        self.base.delete()

    def copy(self) -> "KeyArray":
        return KeyArray(self.dtype, self.base.clone())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> "KeyArray":
        return self.copy()

    def __len__(self) -> int:
        return _len(self)

    def __iter__(self) -> Iterator[Any]:
        return _iter(self)

    def __reduce__(self) -> tuple:
        return KeyArray, (self.dtype, self.base)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            f"an array of random keys ({self.dtype.name}) has no NumPy form. Use random.key_data(keys) for its words."
        )

    def __bool__(self) -> bool:
        raise TypeError("a random key has no truth value.")

    def __hash__(self) -> int:
        return _hash(self)

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self.base}"


def wrap_outputs(types: Sequence[ShapedArray], outs: Sequence[Any]) -> list[Any]:
    """Outputs of a program, those of key types wrapped."""
    return [
        KeyArray(t.dtype, o) if isinstance(t.dtype, dtypes.KeyDType) else o for t, o in zip(types, outs, strict=True)
    ]


def physical(aval: ShapedArray) -> ShapedArray:
    """Type of the buffer behind a value."""
    if isinstance(aval.dtype, dtypes.KeyDType):
        return avals.ShapedArray(aval.shape + aval.dtype.key_shape, np.dtype("uint32"))
    return aval
