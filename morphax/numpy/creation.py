"""Arrays from values, shapes and ranges. Outside transforms they are built on the host and compile nothing."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ir.current import base, current
from morphax.ir.trace import Tracer
from morphax.numpy import promotion, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.runtime import array as arrays
from morphax.runtime import backend
from morphax.runtime.jit import program
from morphax.support import dtypes, errors, tree

typeof = avals.operand_type
_outside = base()
_HOST_LIMIT = 1 << 22  # bytes: what is cheaper to copy to an accelerator than to compute there


def device_of(name: str, device: Any) -> tuple[Any, bool]:
    """A device for new arrays, and whether they are committed to it.

    Raises:
        TypeError: `device` is neither a device nor the sharding of one.
    """
    if device is None:
        return backend.default_device(), False
    if isinstance(device, backend.Device):
        return device, True
    if isinstance(device, str):
        return backend.local_devices(backend=device)[0], True
    try:
        devices = device.device_set
    except AttributeError:
        raise TypeError(f"{name}: device must be a Device or a Sharding; it is {device!r:.60}.") from None
    if len(devices) != 1:
        raise NotImplementedError(f"{name}: device={device!r:.60} spans {len(devices)} devices. Use device_put.")
    return next(iter(devices)), True


def from_host(
    value: np.ndarray, device: Any = None, committed: bool = False, weak: bool = False, copy: bool = True
) -> Any:
    """A NumPy array of a dtype of arrays as an Array, dtype unchanged."""
    aval = ShapedArray(value.shape, value.dtype, weak)
    return arrays.put(value, aval, device or backend.default_device(), committed, copy=copy)


def _place(name: str, x: Any, device: Any) -> Any:
    """An existing array or tracer on `device`, where one is asked for."""
    if device is None or x.__class__ is not arrays.ArrayImpl:
        return x
    target, committed = device_of(name, device)
    if x._committed and x.device == target:
        return x
    return arrays.put(np.asarray(x), x.aval, target, committed)


# ---- from values -----------------------------------------------------------------------------------------------------


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else dtypes.named_dtype(dtype)


def _from_number(x: Any, dtype: Any) -> tuple[np.ndarray, bool]:
    """A Python number on the host, and whether it is weak: where no dtype is named."""
    kind = x.__class__ if x.__class__ in promotion._PYTHON else dtypes.python_type(dtypes.dtype_and_weak(x)[0])
    x = kind(x)
    if dtype is None:
        return np.asarray(_checked_int(x, dtypes.python_scalar_dtype(kind))), kind is not bool
    return np.asarray(_checked_int(x, dtype)), False


def _checked_int(x: Any, dtype: Any) -> np.generic:
    """A Python number in that dtype, which must hold it."""
    if x.__class__ is int and dtypes.is_integer(dtype) and not promotion.fits(x, dtype):
        raise OverflowError(
            f"Python integer {x} out of bounds for {dtype.name}. Name a dtype that holds it: 'int64', or a float."
        )
    if x.__class__ is complex and not dtypes.is_complex(dtype):
        raise TypeError(f"array: the complex number {x} does not fit dtype {dtype.name}. Take its real part first.")
    if x.__class__ is int and dtypes.is_inexact(dtype):
        x = float(x)
    made: Any = np.asarray(x).astype(dtype)[()]
    return made


def _from_ndarray(x: np.ndarray, dtype: Any) -> np.ndarray:
    if dtype is None:
        if x.dtype.kind in "OSUMmV" and dtypes.kind(x.dtype) == "k":
            raise _not_array(x)
        dtype = dtypes.canonicalize_dtype(x.dtype)
    return x if x.dtype == dtype else _quietly(x, dtype)


def _quietly(x: np.ndarray, dtype: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def _not_array(x: Any) -> TypeError:
    kind = f"a NumPy array of dtype {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}: {x!r:.60}"
    return TypeError(f"array: value is {kind}, which is no array of numbers. Pass numbers, or nested lists of them.")


def _is_leaf(x: Any) -> bool:
    return not isinstance(x, (list, tuple))


def _from_sequence(x: Any, dtype: Any) -> Any:
    """A nested list, on the host where it holds host values only, else stacked from its parts."""
    if set(map(type, x)) in ({float}, {int}):  # a flat list of numbers: 5 us less
        return _flat_numbers(x, dtype or dtypes.python_scalar_dtype(type(x[0])))
    leaves = tree.leaves(x, is_leaf=_is_leaf_or_none)
    on_host = True
    for leaf in leaves:
        if leaf.__class__ in promotion._PYTHON or isinstance(leaf, np.generic):
            continue
        if isinstance(leaf, np.ndarray):
            continue
        on_host = False
        break
    if on_host:
        return _host_sequence(x, leaves, dtype)
    if dtype is None:
        dtype = dtypes.result_type(*[_valued(leaf) for leaf in leaves]) if leaves else dtypes.default_float_dtype()
    if all(_on_host(leaf) for leaf in leaves):
        return _nested(x, lambda leaf: np.asarray(leaf)).astype(dtype)
    return _stacked(x, dtype)


def _flat_numbers(x: Any, dtype: Any) -> np.ndarray:
    if dtypes.is_integer(dtype) and x[0].__class__ is int:
        low, high = min(x), max(x)
        for extreme in (low, high):
            _checked_int(extreme, dtype)
        return np.array(x, np.int64 if dtype != dtypes.uint64 else dtype).astype(dtype)
    return _quietly(np.array(list(map(float, x))), dtype)


def _is_leaf_or_none(x: Any) -> bool:
    return x is None or not isinstance(x, (list, tuple))


def _valued(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, (str, bytes)):
        raise _not_array(leaf)
    if isinstance(leaf, (bool, int, float, complex)):
        return leaf
    return leaf if hasattr(leaf, "dtype") else array(leaf)


def _on_host(leaf: Any) -> bool:
    """Whether a leaf's value can be had without a trace, cheaply."""
    return (
        leaf.__class__ is arrays.ArrayImpl
        and leaf.device.platform == "cpu"
        or isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex))
    )


def _nested(x: Any, value: Callable[[Any], np.ndarray]) -> np.ndarray:
    if not isinstance(x, (list, tuple)):
        return value(x)
    parts = [_nested(v, value) for v in x]
    _same_shapes([p.shape for p in parts])
    return np.stack(parts) if parts else np.zeros(0, np.float32)


def _same_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
    for shape in shapes:
        if shape != shapes[0]:
            raise ValueError(
                f"array: the parts of a list have different shapes, {shapes[0]} and {shape}. All parts of an array "
                "must have one shape; pad them, or keep a list of arrays."
            )


def _host_sequence(x: Any, leaves: list[Any], dtype: Any) -> np.ndarray:
    kinds = {leaf.__class__ for leaf in leaves}
    if dtype is None and not leaves:
        dtype = dtypes.default_float_dtype()
    elif dtype is None:
        seen: dict[Any, Any] = {}
        for leaf in leaves:
            seen.setdefault(leaf.dtype if isinstance(leaf, (np.ndarray, np.generic)) else leaf.__class__, leaf)
        dtype = dtypes.result_type(*seen.values())
    if dtypes.is_integer(dtype) and int in kinds:
        for leaf in leaves:
            if leaf.__class__ is int and not -(2**31) <= leaf < 2**31:
                _checked_int(leaf, dtype)
    if (
        dtypes.is_inexact(dtype)
        and int in kinds
        and any(leaf.__class__ is int and abs(leaf) >= 2**63 for leaf in leaves)
    ):
        x = tree.map(lambda leaf: float(leaf) if leaf.__class__ is int else leaf, x)
    try:
        value = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"array: {error}. All parts of an array must have one shape.") from None
    if value.dtype.kind == "O":
        raise _not_array(value)
    if dtypes.is_unsigned(dtype) and value.dtype.kind == "i" and int in kinds and value.size and value.min() < 0:
        _checked_int(int(value.min()), dtype)
    return value if value.dtype == dtype else _quietly(value, dtype)


def _stacked(x: Any, dtype: Any) -> Any:
    if not isinstance(x, (list, tuple)):
        return asarray(x, dtype)
    if not x:
        return from_host(np.zeros(0, dtype))
    parts = [_stacked(v, dtype) for v in x]
    _same_shapes([typeof(p).shape for p in parts])
    return stacked(*parts)


@program()
def stacked(*parts: Any) -> Any:
    """Arrays of one shape and dtype along a new first axis."""
    rows = [structure.expand_dims(p, (0,)) for p in parts]
    return rows[0] if len(rows) == 1 else structure.concatenate(*rows, dimension=0)


def _convert(x: Any, dtype: Any) -> Any:
    """An array or tracer in that dtype, strongly typed."""
    aval = x.aval
    if aval.dtype == dtype and not aval.weak_type:
        return x
    return astype_of(x, dtype)


@program("dtype")
def astype_of(x: Any, dtype: Any) -> Any:
    """`x` in that dtype, strongly typed."""
    aval = typeof(x)
    if dtypes.is_extended(dtype) and aval.dtype is dtype:
        return x
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dtype) and dtype != np.bool_:
        x = ew.real(x)
    elif dtypes.is_float(aval.dtype) and dtypes.is_unsigned(dtype):
        return _float_to_unsigned(x, dtype)
    return structure.convert(x, dtype)


def _float_to_unsigned(x: Any, dtype: Any) -> Any:
    return structure.convert(x, dtype)


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """An array of numbers, nested lists of numbers, NumPy arrays, arrays or tracers.

    Args:
        object: the values. 64-bit NumPy data becomes 32-bit unless `dtype` or enable_x64 says otherwise; a bare Python
            number is weakly typed unless `dtype` is given.
        dtype: dtype of the result; 64-bit ones are honoured.
        copy: whether an array given is copied.
        order: "K" or "C".
        ndmin: axes of size 1 are added in front up to this many.
        device: device or sharding that the result is committed to.
        out_sharding: not supported.

    Raises:
        TypeError: values that are no numbers.
        OverflowError: an int that the dtype does not hold.

    >>> from morphax import numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if args:
        raise TypeError(f"array: takes object and dtype by position; {len(args)} more arguments were given.")
    if order not in ("K", "C", None):
        raise NotImplementedError(f"array: order={order!r} is not supported. Arrays have no order: use 'K' or 'C'.")
    if out_sharding is not None:
        raise NotImplementedError("array: out_sharding is not supported. Use device_put on the result.")
    dtype = _dtype(dtype)
    out = _array(object, dtype, device, copy)
    if ndmin > out.ndim:
        out = reshaped(out, shape=(1,) * (ndmin - out.ndim) + out.shape)
    return out


@program("shape")
def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` in a shape of the same size."""
    return structure.reshape_to(x, shape)


def _array(x: Any, dtype: Any, device: Any, copy: bool | None) -> Any:
    try:
        aval = x.aval
    except AttributeError:
        return _array_of_host(x, dtype, device, copy)
    if dtype is None or (aval.dtype == dtype and not aval.weak_type):
        if x.__class__ is arrays.ArrayImpl:
            return _place("array", x.clone() if copy else x, device)
        return x
    return _place("array", _convert(x, dtype), device)


def _array_of_host(x: Any, dtype: Any, device: Any, copy: bool | None) -> Any:
    target, committed = device_of("array", device)
    if dtypes.is_extended(dtype):
        raise TypeError(f"array: host values cannot become {dtype}. Use random.wrap_key_data.")
    if isinstance(x, np.ndarray):
        value = _from_ndarray(x, dtype)
        return from_host(value, target, committed, copy=value is x)
    if x.__class__ in promotion._PYTHON:
        value, weak = _from_number(x, dtype)
        return from_host(value, target, committed, weak)
    if isinstance(x, np.generic):
        return from_host(_from_ndarray(np.asarray(x), dtype), target, committed)
    if isinstance(x, (list, tuple)):
        value = _from_sequence(x, dtype)
        return (
            from_host(value, target, committed, copy=False)
            if isinstance(value, np.ndarray)
            else _place("array", value, device)
        )
    if isinstance(x, (int, float, complex)):
        value, weak = _from_number(x, dtype)
        return from_host(value, target, committed, weak)
    return _array_of_other(x, dtype, device, copy)


def _array_of_other(x: Any, dtype: Any, device: Any, copy: bool | None) -> Any:
    kind = type(x)
    if hasattr(kind, "__jax_array__"):  # protocols are looked up on the class, as Python does
        return _array(x.__jax_array__(), dtype, device, copy)
    if x is None or isinstance(x, (str, bytes, dict, set)):
        raise _not_array(x)
    if hasattr(kind, "__array__") or hasattr(kind, "__array_interface__") or isinstance(x, memoryview):
        return _array_of_host(np.asarray(x), dtype, device, copy)
    if isinstance(x, range):
        return _array_of_host(np.asarray(x), dtype, device, copy)
    if hasattr(kind, "__len__") and hasattr(kind, "__getitem__"):
        return _array_of_host(list(x), dtype, device, copy)
    raise _not_array(x)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """As `array`, but an array of the right dtype is returned as it is unless copy=True.

    >>> from morphax import numpy as jnp
    >>> x = jnp.ones(2)
    >>> jnp.asarray(x) is x
    True
    """
    if copy is False and not _shares(a, dtype):
        raise ValueError(
            "asarray: copy=False was given, but this value has to be copied. Pass an array of this library."
        )
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def _shares(a: Any, dtype: Any) -> bool:
    try:
        return dtype is None or a.aval.dtype == dtypes.named_dtype(dtype)
    except AttributeError:
        return False


def copy(a: Any, order: str | None = None) -> Any:
    """A new array with the same values.

    >>> from morphax import numpy as jnp
    >>> jnp.copy(jnp.array([1, 2])).tolist()
    [1, 2]
    """
    promotion.checked("copy", a)
    return array(a, copy=True, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """`x` in another dtype; complex numbers lose their imaginary part.

    >>> from morphax import numpy as jnp
    >>> jnp.astype(jnp.array([1.5, -2.5]), int).tolist()
    [1, -2]
    """
    x = promotion.checked("astype", x)
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.named_dtype(dtype)
    return _array(x, dtype, device, copy)


# ---- of one value ----------------------------------------------------------------------------------------------------


def _filled(name: str, shape: Any, value: Any, dtype: Any, device: Any, out_sharding: Any = None) -> Any:
    """An array of a host scalar of that dtype."""
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported. Use device_put on the result.")
    shape = (shape,) if shape.__class__ is int and shape >= 0 else promotion.shape_of(name, shape)
    if current.trace is not _outside and device is None:
        scalar = np.asarray(value, dtype)
        return ew.broadcast_in_dim(scalar, shape=shape, broadcast_dimensions=(), sharding=None)
    target, committed = device_of(name, device)
    if target.platform != "cpu" and dtype.itemsize * _size(shape) > _HOST_LIMIT and device is None:
        return _device_full(np.asarray(value, dtype), shape=shape)
    host = np.zeros(shape, dtype) if value is _ZERO else np.full(shape, value, dtype)
    return from_host(host, target, committed, copy=False)


_ZERO = 0


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for s in shape:
        size *= s
    return size


@program("shape")
def _device_full(value: Any, shape: tuple[int, ...]) -> Any:
    return ew.broadcast_in_dim(value, shape=shape, broadcast_dimensions=(), sharding=None)


def _default(dtype: Any) -> Any:
    dtype = dtypes.named_dtype(dtype)
    if dtypes.is_extended(dtype):
        raise TypeError(f"numpy: {dtype} has no zero. Make keys with random.key and random.split.")
    return dtype


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros of a shape; float32 unless a dtype is given.

    >>> from morphax import numpy as jnp
    >>> jnp.zeros(2).tolist()
    [0.0, 0.0]
    """
    return _filled("zeros", shape, _ZERO, _default(dtype), device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones of a shape; float32 unless a dtype is given.

    >>> from morphax import numpy as jnp
    >>> jnp.ones((1, 2)).tolist()
    [[1.0, 1.0]]
    """
    return _filled("ones", shape, 1, _default(dtype), device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros: there is no memory to be left as it was.

    >>> from morphax import numpy as jnp
    >>> jnp.empty(2).shape
    (2,)
    """
    return _filled("empty", shape, _ZERO, _default(dtype), device, out_sharding)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """An array of one value, or of an array of values broadcast.

    >>> from morphax import numpy as jnp
    >>> jnp.full(2, 7).tolist()
    [7, 7]
    """
    if out_sharding is not None:
        raise NotImplementedError("full: out_sharding is not supported. Use device_put on the result.")
    return _full("full", shape, fill_value, dtype, device, False)


def _full(name: str, shape: Any, value: Any, dtype: Any, device: Any, weak: bool) -> Any:
    value = promotion.checked(name, value) if not isinstance(value, (list, tuple)) else array(value)
    dtype = dtypes.dtype_and_weak(value)[0] if dtype is None else dtypes.named_dtype(dtype)
    if isinstance(value, (bool, int, float, complex, np.generic)) and not weak:
        if isinstance(value, int) and not isinstance(value, bool):
            value = _checked_int(int(value), dtype)
        return _filled(name, shape, np.asarray(value).astype(dtype)[()], dtype, device)
    shape = promotion.shape_of(name, shape)
    return _place(name, _spread_value(value, shape=shape, dtype=dtype, weak=weak), device)


@program("shape", "dtype", "weak")
def _spread_value(value: Any, shape: tuple[int, ...], dtype: Any, weak: bool) -> Any:
    value = promotion.array("full", value)
    aval = typeof(value)
    if aval.dtype != dtype or aval.weak_type != weak:
        value = structure.convert_element_type(value, new_dtype=dtype, weak_type=weak, sharding=None)
    return promotion.spread(value, promotion.common_shape("full", (aval.shape, shape)) if aval.shape else shape)


def _like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Any:
    found, weak, own = promotion.described(name, a)
    weak = weak and dtype is None
    dtype = found if dtype is None else dtypes.named_dtype(dtype)
    if dtypes.is_extended(dtype):
        raise TypeError(f"{name}: {dtype} has no such value. Make keys with random.key and random.split.")
    shape = own if shape is None else promotion.shape_of(name, shape)
    if device is None and a.__class__ is arrays.ArrayImpl and a._committed:
        device = a.sharding
    if value.__class__ is int and value in (0, 1) and not weak:
        return _filled(name, shape, _ZERO if value == 0 else 1, dtype, device)
    return _full(name, shape, value, dtype, device, weak)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros with the shape and dtype of `a`, where no others are given.

    >>> from morphax import numpy as jnp
    >>> jnp.zeros_like(jnp.array([1, 2])).tolist()
    [0, 0]
    """
    _no_sharding("zeros_like", out_sharding)
    return _like("zeros_like", a, 0, dtype, shape, device)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones with the shape and dtype of `a`, where no others are given.

    >>> from morphax import numpy as jnp
    >>> jnp.ones_like(jnp.array([1, 2])).tolist()
    [1, 1]
    """
    _no_sharding("ones_like", out_sharding)
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """As `zeros_like`.

    >>> from morphax import numpy as jnp
    >>> jnp.empty_like(jnp.array([1, 2])).shape
    (2,)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """One value with the shape and dtype of `a`, where no others are given.

    >>> from morphax import numpy as jnp
    >>> jnp.full_like(jnp.array([1, 2]), 5).tolist()
    [5, 5]
    """
    _no_sharding("full_like", out_sharding)
    return _like("full_like", a, fill_value, dtype, shape, device)


def _no_sharding(name: str, out_sharding: Any) -> None:
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported. Use device_put on the result.")


# ---- ranges ----------------------------------------------------------------------------------------------------------


def concrete(name: str, what: str, x: Any) -> Any:
    """A host value that the shape of a result depends on.

    Raises:
        ConcretizationTypeError: it is traced.
    """
    if isinstance(x, (bool, int, float, complex, np.generic)):
        return x
    promotion.checked(name, x)
    if np.ndim(x) if isinstance(x, np.ndarray) else x.ndim:
        raise TypeError(f"{name}: {what} must be a scalar; it has shape {x.shape}.")
    if isinstance(x, Tracer):
        cure = "Shapes must be known while tracing: mark the argument static with jit(..., static_argnums=...)."
        x = x.concrete(errors.ConcretizationTypeError, f"{name}: {what} decides the shape of the result, so it", cure)
    return np.asarray(x)[()]


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Evenly spaced numbers from `start`, or 0, up to but without `stop`.

    >>> from morphax import numpy as jnp
    >>> jnp.arange(2, 8, 3).tolist()
    [2, 5]
    """
    _no_sharding("arange", out_sharding)
    if start.__class__ is int and stop is None and step is None and dtype is None and current.trace is _outside:
        host = np.arange(start, dtype=dtypes.default_int_dtype())  # the commonest range: 4 us less
        target, committed = device_of("arange", device)
        return from_host(host, target, committed, copy=False)
    first = "stop" if stop is None else "start"
    given = [
        concrete("arange", what, v) for what, v in ((first, start), ("stop", stop), ("step", step)) if v is not None
    ]
    if dtype is None:
        dtype = dtypes.result_type(*given)
        if dtype == np.bool_:
            dtype = dtypes.default_int_dtype()
    else:
        dtype = dtypes.named_dtype(dtype)
    if stop is None and step is None:
        start, stop = 0, given[0]
    elif stop is None:
        raise TypeError("arange: step was given without stop. Give start, stop and step.")
    else:
        start, stop = given[0], given[1]
    if step is not None and given[-1] == 0:
        raise ValueError("arange: step must not be 0.")
    if (
        current.trace is not _outside
        and device is None
        and step is None
        and all(isinstance(v, (int, np.integer)) for v in given)
    ):
        return _counted(int(start), int(stop), dtype)
    value = _range_on_host(start, stop, 1 if step is None else given[-1], dtype)
    target, committed = device_of("arange", device)
    return from_host(value, target, committed, copy=False)


def _counted(start: int, stop: int, dtype: Any) -> Any:
    count = structure.iota_along(dtype, (max(stop - start, 0),), 0)
    return ew.add(count, promotion.literal(start, dtype)) if start else count


def _range_on_host(start: Any, stop: Any, step: Any, dtype: Any) -> np.ndarray:
    if (
        isinstance(start, (int, np.integer))
        and isinstance(stop, (int, np.integer))
        and isinstance(step, (int, np.integer))
    ):
        value = np.arange(int(start), int(stop), int(step))
        if value.size and dtypes.is_integer(dtype):
            _checked_int(int(value[0]), dtype)
            _checked_int(int(value[-1]), dtype)
        return value.astype(dtype)
    return _quietly(np.arange(start, stop, step), dtype)


@program("num", "endpoint", "dtype", "axis")
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    """(samples, step) in the computing dtype; see `linspace`."""
    computing = dtypes.to_inexact(promotion.common("linspace", (start, stop))[0])
    start, stop = promotion.operands("linspace", (start, stop), inexact=True)
    shape = promotion.common_shape("linspace", [typeof(v).shape for v in (start, stop)])
    start, stop = promotion.spread(start, shape), promotion.spread(stop, shape)
    divisions = num - 1 if endpoint else num
    step = ew.div(ew.sub(stop, start), family.like(start, divisions)) if divisions > 0 else None
    full_shape = (num, *shape)
    first = ew.broadcast(start, full_shape, (0,))
    if num > 1:
        place = structure.iota_along(dtypes.to_real(computing), full_shape, 0)
        share = promotion.as_dtype(ew.div(place, family.like(place, divisions)), computing)
        last = ew.broadcast(stop, full_shape, (0,))
        # (1 - s) a + s b is exact at both ends, and never leaves the interval.
        out = ew.add(ew.mul(first, ew.sub(family.like(share, 1), share)), ew.mul(last, share))
        if endpoint:
            at_end = ew.eq(place, family.like(place, num - 1))
            out = ew.select_n(at_end, out, last)
    else:
        out = first
    if dtypes.is_integer(dtype) and not dtypes.is_integer(computing):
        out = ew.floor(out)
    out = structure.convert(out, dtype)
    return structure.move_axis(out, 0, axis % len(full_shape)), step


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, with the spacing if `retstep`.

    >>> from morphax import numpy as jnp
    >>> jnp.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    num = operator.index(concrete("linspace", "num", num))
    if num < 0:
        raise ValueError(f"linspace: num must be at least 0; it is {num}.")
    start, stop = _array_if_list(start), _array_if_list(stop)
    dtype = (
        dtypes.to_inexact(promotion.common("linspace", (start, stop))[0])
        if dtype is None
        else dtypes.named_dtype(dtype)
    )
    ndim = max(len(promotion.described("linspace", v)[2]) for v in (start, stop)) + 1
    axis = promotion.axis_of("linspace", axis, ndim)
    out, step = _linspace(start, stop, num=num, endpoint=bool(endpoint), dtype=dtype, axis=axis)
    out = _place("linspace", out, device)
    if not retstep:
        return out
    return out, step if step is not None else full(out.shape[1:], np.nan, dtypes.to_inexact(dtype))


def _array_if_list(x: Any) -> Any:
    return array(x) if isinstance(x, (list, tuple)) else x


def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` numbers from base**start to base**stop, evenly spaced on a logarithmic scale.

    >>> from morphax import numpy as jnp
    >>> jnp.logspace(0, 2, 3, base=2.0).tolist()
    [1.0, 2.0, 4.0]
    """
    powers = ufuncs.power(base, linspace(start, stop, num, endpoint, False, None, axis))
    return powers if dtype is None else astype(powers, dtype)


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` numbers from `start` to `stop`, each a constant multiple of the one before.

    >>> from morphax import numpy as jnp
    >>> jnp.round(jnp.geomspace(1.0, 4.0, 3), 4).tolist()
    [1.0, 2.0, 4.0]
    """
    start, stop = asarray(start), asarray(stop)
    start, stop = promotion.same_dtype("geomspace", (start, stop))
    sign = ufuncs.sign(start)
    logs = linspace(
        ufuncs.log(ufuncs.divide(start, sign)), ufuncs.log(ufuncs.divide(stop, sign)), num, endpoint, axis=axis
    )
    sign = sign if not sign.ndim else structure.expand_dims(sign, (axis,))
    out = ufuncs.multiply(ufuncs.exp(logs), sign)
    return out if dtype is None else astype(out, dtype)


# ---- matrices --------------------------------------------------------------------------------------------------------


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """Ones on the diagonal `k` of a matrix, zeros elsewhere.

    >>> from morphax import numpy as jnp
    >>> jnp.eye(2, k=1).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    rows = operator.index(concrete("eye", "N", N))
    columns = rows if M is None else operator.index(concrete("eye", "M", M))
    if rows < 0 or columns < 0:
        raise ValueError(f"eye: sizes must be at least 0; they are {rows} and {columns}.")
    dtype = _default(dtype)
    offset = operator.index(concrete("eye", "k", k))
    target, committed = device_of("eye", device)
    small = target.platform == "cpu" or rows * columns * dtype.itemsize <= _HOST_LIMIT
    if device is not None or current.trace is _outside and small:
        return from_host(np.eye(rows, columns, offset, dtype=dtype), target, committed, copy=False)
    return _diagonal_mask(shape=(rows, columns), offset=offset, dtype=dtype, below=False)


@program("shape", "offset", "dtype", "below")
def _diagonal_mask(shape: tuple[int, int], offset: int, dtype: Any, below: bool) -> Any:
    """1 on the diagonal `offset`, with `below` also below it, and 0 elsewhere."""
    int_dtype = dtypes.default_int_dtype()
    rows = structure.iota_along(int_dtype, shape, 0)
    columns = structure.iota_along(int_dtype, shape, 1)
    rows = ew.add(rows, family.scalar(offset, int_dtype)) if offset else rows
    return structure.convert((ew.ge if below else ew.eq)(rows, columns), dtype)


def identity(n: Any, dtype: Any = None) -> Any:
    """The square matrix with ones on the diagonal.

    >>> from morphax import numpy as jnp
    >>> jnp.identity(1).tolist()
    [[1.0]]
    """
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones on and below the diagonal `k`, zeros above.

    >>> from morphax import numpy as jnp
    >>> jnp.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    rows = operator.index(N)
    columns = rows if M is None else operator.index(M)
    dtype = _default(dtype)
    if current.trace is _outside:
        return from_host(np.tri(rows, columns, k, dtype=dtype), copy=False)
    return _diagonal_mask(shape=(rows, columns), offset=operator.index(k), dtype=dtype, below=True)


@program("name", "k", "lower")
def _triangle(m: Any, name: str, k: int, lower: bool) -> Any:
    m = promotion.array(name, m)
    shape = typeof(m).shape
    if len(shape) < 2:
        raise ValueError(f"{name}: needs at least 2 axes; the array has shape {shape}.")
    mask = _diagonal_mask.__wrapped__(shape=shape[-2:], offset=k if lower else k - 1, dtype=dtypes.bool_, below=True)
    mask = promotion.spread(mask, shape)
    zero = family.like(m, 0)
    return ew.select_n(mask, zero, m) if lower else ew.select_n(mask, m, zero)


def tril(m: Any, k: int = 0) -> Any:
    """`m` with zeros above the diagonal `k` of the last two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.tril(jnp.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle(m, name="tril", k=operator.index(k), lower=True)


def triu(m: Any, k: int = 0) -> Any:
    """`m` with zeros below the diagonal `k` of the last two axes.

    >>> from morphax import numpy as jnp
    >>> jnp.triu(jnp.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _triangle(m, name="triu", k=operator.index(k), lower=False)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Row and column numbers of the lower triangle of an (n, m) matrix.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = np.tril_indices(n, k, m)
    return asarray(rows), asarray(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Row and column numbers of the upper triangle of an (n, m) matrix.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = np.triu_indices(n, k, m)
    return asarray(rows), asarray(columns)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """As `tril_indices`, for the shape of a matrix.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.tril_indices_from(jnp.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    return tril_indices(arr.shape[-2], k, arr.shape[-1])


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """As `triu_indices`, for the shape of a matrix.

    >>> from morphax import numpy as jnp
    >>> [i.tolist() for i in jnp.triu_indices_from(jnp.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    return triu_indices(arr.shape[-2], k, arr.shape[-1])


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays of the grid over the given axes.

    Args:
        xi: arrays of at most one axis.
        copy: must be True.
        sparse: leave axes of size 1 instead of repeating.
        indexing: "xy" has the first coordinate along axis 1, "ij" along axis 0.

    >>> from morphax import numpy as jnp
    >>> [g.tolist() for g in jnp.meshgrid(jnp.arange(2), jnp.arange(1))]
    [[[0, 1]], [[0, 0]]]
    """
    if not copy:
        raise ValueError("meshgrid: copy=False is not supported, since arrays have no views. Leave it True.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij'; it is {indexing!r}.")
    if any(len(promotion.described("meshgrid", x)[2]) > 1 for x in xi):
        raise ValueError("meshgrid: arguments must have at most one axis. Use x.ravel().")
    return list(_meshgrid(tuple(xi), sparse=bool(sparse), swap=indexing == "xy")) if xi else []


@program("sparse", "swap")
def _meshgrid(xi: tuple[Any, ...], sparse: bool, swap: bool) -> list[Any]:
    xi = [
        structure.reshape_to(promotion.array("meshgrid", x), (typeof(promotion.array("meshgrid", x)).size,)) for x in xi
    ]
    count = len(xi)
    place = [1, 0, *range(2, count)] if swap and count > 1 else list(range(count))
    sizes = [0] * count
    for x, axis in zip(xi, place, strict=True):
        sizes[axis] = typeof(x).size
    out = []
    for x, axis in zip(xi, place, strict=True):
        shape = tuple([s if d == axis or not sparse else 1 for d, s in enumerate(sizes)])
        out.append(ew.broadcast_in_dim(x, shape=shape, broadcast_dimensions=(axis,), sharding=None))
    return out


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """Position of each element of an array of that shape, along each axis.

    >>> from morphax import numpy as jnp
    >>> jnp.indices((2, 1)).tolist()
    [[[0], [1]], [[0], [0]]]
    """
    dtype = dtypes.default_int_dtype() if dtype is None else dtypes.named_dtype(dtype)
    shape = promotion.shape_of("indices", dimensions)
    host: Any = np.indices(shape, dtype, sparse=sparse)
    return tuple([asarray(h) for h in host]) if sparse else from_host(host, copy=False)
