"""Operators, methods and properties of arrays and tracers: one table, installed on both at import."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.ir.trace import Tracer
from morphax.numpy import creation, indexing, promotion, reductions, shapes, sorting, ufuncs, updates
from morphax.numpy.einsum import dot, matmul  # by name: the function `einsum` hides its module
from morphax.ops import structure
from morphax.runtime import array as arrays
from morphax.runtime import eager
from morphax.runtime.jit import holds
from morphax.support import dtypes, tracebacks
from morphax.support.tracebacks import api_boundary

typeof = avals.operand_type
_outside = base()
_PYTHON = (bool, int, float, complex)
_LITERALS = frozenset((int, float, complex))
_LARGE = 2**31 - 1

# ---- operators -------------------------------------------------------------------------------------------------------

# Classes that operators take; found out once for each class.
_ACCEPTED: set[type] = {arrays.ArrayImpl, np.ndarray, *_PYTHON}


def _accepts(name: str, other: Any) -> bool:
    """Whether an operator takes this operand; other classes may know what to do with an array.

    Raises:
        TypeError: a list or tuple, which NumPy would convert element by element.
    """
    kind = type(other)
    if kind in (list, tuple):
        raise promotion.refuse(name, other)
    if issubclass(kind, (arrays.Array, Tracer, np.ndarray, np.generic, *_PYTHON)):
        if len(_ACCEPTED) < 256:
            _ACCEPTED.add(kind)
        return True
    return "__jax_array__" in dir(kind)


def _infix(function: Any, swapped: bool = False) -> Callable[..., Any]:
    """The operator of a function of two arrays.

    Outside transforms it calls the compiled program at once: 1 us less than through the function.
    """
    name = function.__name__
    compiled = function.compiled
    plain = function.plain if isinstance(function, ufuncs.ufunc) else function.__wrapped__

    def operate(self: Any, other: Any) -> Any:
        try:
            kind = other.__class__
            if kind not in _ACCEPTED and not _accepts(name, other):
                return NotImplemented
            if current.trace is _outside and (kind not in _LITERALS or holds(self, other)):
                return compiled(other, self) if swapped else compiled(self, other)
            return plain(other, self) if swapped else plain(self, other)
        except Exception as error:
            try:
                eager.explain(error, (self, other))
            except RuntimeError as better:
                tracebacks.clean(better)
                raise
            raise

    return operate


@api_boundary
def _power(self: Any, other: Any) -> Any:
    kind = other.__class__
    if kind is int and -_LARGE <= other <= _LARGE:
        if self.aval.dtype == np.bool_ or dtypes.is_integer(self.aval.dtype) and other > 64:
            return _general_power(self, other)
        return ufuncs.power_of(self, exponent=other)
    return _general_power(self, other)


_general_power = _infix(ufuncs._general_power)


@api_boundary
def _matmul(self: Any, other: Any) -> Any:
    if other.__class__ not in _ACCEPTED and not _accepts("matmul", other):
        return NotImplemented
    return matmul(self, other)


@api_boundary
def _rmatmul(self: Any, other: Any) -> Any:
    if other.__class__ not in _ACCEPTED and not _accepts("matmul", other):
        return NotImplemented
    return matmul(other, self)


_INFIX: dict[str, Any] = {
    "add": ufuncs.add,
    "sub": ufuncs.subtract,
    "mul": ufuncs.multiply,
    "truediv": ufuncs.true_divide,
    "floordiv": ufuncs.floor_divide,
    "mod": ufuncs.remainder,
    "divmod": ufuncs.divmod,
    "and": ufuncs.bitwise_and,
    "or": ufuncs.bitwise_or,
    "xor": ufuncs.bitwise_xor,
    "lshift": ufuncs.left_shift,
    "rshift": ufuncs.right_shift,
}
_COMPARISONS: dict[str, Any] = {
    "eq": ufuncs.equal,
    "ne": ufuncs.not_equal,
    "lt": ufuncs.less,
    "le": ufuncs.less_equal,
    "gt": ufuncs.greater,
    "ge": ufuncs.greater_equal,
}


def _nonzero(self: Any, *, fill_value: Any = None, size: int | None = None) -> Any:
    """Positions of the entries that are not 0."""
    return sorting.nonzero(self, size=size, fill_value=fill_value)


def _compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """The parts along an axis where the condition holds."""
    return sorting.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


@api_boundary
def _setitem(self: Any, i: Any, x: Any) -> None:
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = "
        f"x.at[idx].set(y): here x is {self.aval}, and idx is {i!r:.40}."
    )


# ---- methods ---------------------------------------------------------------------------------------------------------


def _method(function: Callable[..., Any], **renamed: Any) -> Callable[..., Any]:
    """A function of an array as a method: the first parameter becomes `self`."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except Exception as error:
            tracebacks.clean(error)
            raise

    parameters = list(inspect.signature(function).parameters.values())
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        p.replace(kind=kind) if p.kind is p.POSITIONAL_ONLY else p for p in parameters if p.name not in renamed
    ]
    parameters[0] = inspect.Parameter("self", kind)
    method.__signature__ = inspect.Signature(parameters)
    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The entries in another shape: x.reshape(2, 3) or x.reshape((2, 3))."""
    shape = args[0] if len(args) == 1 else args
    return shapes.reshape(self, shape, order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    """The axes in another order, reversed by default: x.transpose(1, 0) or x.transpose((1, 0))."""
    axes = (
        None
        if not args or args == (None,)
        else args[0]
        if len(args) == 1 and isinstance(args[0], (tuple, list))
        else args
    )
    return shapes.transpose(self, axes)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The same values in another dtype; 64-bit ones are honoured."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The entries with one axis."""
    return shapes.ravel(self, order, out_sharding=out_sharding)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """Entries below `min` or above `max` replaced by the bound."""
    return ufuncs.clip(self, min, max)


def _copy(self: Any) -> Any:
    """A new array with the same values."""
    return creation.array(self, copy=True)


def _dot(self: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """As numpy.dot."""
    return dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _round(self: Any, decimals: int = 0, out: None = None) -> Any:
    """Rounded to so many decimals."""
    return ufuncs.round(self, decimals, out)


def _dunder_round(number: Any, ndigits: int | None = None) -> Any:
    return creation.astype(ufuncs.round(number), int) if ndigits is None else ufuncs.round(number, ndigits)


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on a device."""
    if stream is not None:
        raise NotImplementedError("to_device: stream is not supported. Leave it out.")
    return creation.asarray(self, device=device)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The bits read as another dtype; the last axis shrinks or grows with the width."""
    if type is not None:
        raise NotImplementedError("view: type is not supported. Give a dtype.")
    if dtype is None:
        return self
    wanted = dtypes.named_dtype(dtype)
    own = self.aval
    if wanted == own.dtype:
        return self
    if np.bool_ in (wanted, own.dtype):
        as_int = creation.astype(self, np.uint8) if own.dtype == np.bool_ else _view(self, np.uint8)
        return ufuncs.not_equal(as_int, 0) if wanted == np.bool_ else _view(as_int, wanted)
    before, after = dtypes.itemsize_bits(own.dtype), dtypes.itemsize_bits(wanted)
    if before == after:
        return structure.bitcast_convert_type(self, new_dtype=wanted)
    if not own.ndim or before < after and own.shape[-1] * before % after:
        raise ValueError(
            f"view: the last axis of shape {own.shape} has {own.shape[-1:] or 'no'} entries of {before} bits, which do "
            f"not make up entries of {after} bits."
        )
    if before > after:
        bits = structure.bitcast_convert_type(self, new_dtype=wanted)
        return shapes.reshape(bits, (*own.shape[:-1], own.shape[-1] * (before // after)))
    count = after // before
    grouped = shapes.reshape(self, (*own.shape[:-1], own.shape[-1] // count, count))
    return structure.bitcast_convert_type(grouped, new_dtype=wanted)


def _byteswap(self: Any) -> Any:
    """The bytes of each number in reverse."""
    bytes_of = _view(shapes.expand_dims(self, -1), np.uint8)
    return structure.squeeze(_view(shapes.flip(bytes_of, -1), self.aval.dtype), dimensions=(self.aval.ndim,))


def _gone(name: str, instead: str) -> property:
    def refuse(self: Any) -> Any:
        raise AttributeError(f"arr.{name} has been removed. Use {instead}.")

    return property(refuse)


@api_boundary
def _iterate(self: Any) -> Any:
    if not self.aval.ndim:
        raise TypeError("iteration over a 0-d array")
    return iter(shapes.split_rows(self))


@api_boundary
def _length(self: Any) -> int:
    if not self.aval.ndim:
        raise TypeError("len() of unsized object")
    return self.aval.shape[0]


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module with the functions of arrays, as the array API standard asks."""
    if api_version not in (None, "2024.12", "2023.12", "2022.12", "2021.12"):
        raise ValueError(f"__array_namespace__: version {api_version!r} is not supported. Leave it out.")
    return NAMESPACE[0]


NAMESPACE: list[Any] = []  # the package itself, which names this module and fills this in

# Of all arrays, keys included.
_STRUCTURAL: dict[str, Any] = {
    "__getitem__": indexing.getitem,
    "__setitem__": _setitem,
    "_split_rows": shapes.split_rows,
    "at": property(updates.At, doc="Indexed updates that return a new array: x.at[index].set(value)."),
    "T": property(shapes.transpose, doc="The axes reversed."),
    "mT": property(shapes.matrix_transpose, doc="The last two axes exchanged."),
    "flat": property(shapes.ravel, doc="The entries with one axis."),
    "reshape": _reshape,
    "transpose": _transpose,
    "ravel": _method(shapes.ravel),
    "flatten": _flatten,
    "squeeze": _method(shapes.squeeze),
    "swapaxes": _method(shapes.swapaxes),
    "take": _method(indexing.take),
    "diagonal": _method(shapes.diagonal),
    "repeat": _method(sorting.repeat),
    "__eq__": _infix(ufuncs.equal),
    "__ne__": _infix(ufuncs.not_equal),
}

_NUMERICAL: dict[str, Any] = {
    **{f"__{name}__": _infix(function) for name, function in _INFIX.items()},
    **{f"__r{name}__": _infix(function, swapped=True) for name, function in _INFIX.items()},
    **{f"__{name}__": _infix(function) for name, function in _COMPARISONS.items()},
    "__pow__": _power,
    "__rpow__": _infix(ufuncs._general_power, swapped=True),
    "__matmul__": _matmul,
    "__rmatmul__": _rmatmul,
    "__neg__": ufuncs.negative._call,
    "__pos__": ufuncs.positive,
    "__abs__": ufuncs.abs,
    "__invert__": ufuncs.invert,
    "__round__": _dunder_round,
    "__array_namespace__": _namespace,
    "real": property(ufuncs.real, doc="Real parts."),
    "imag": property(ufuncs.imag, doc="Imaginary parts."),
    "astype": _astype,
    "clip": _clip,
    "copy": _copy,
    "dot": _dot,
    "round": _round,
    "view": _view,
    "to_device": _to_device,
    "byteswap": _byteswap,
    "device_buffer": _gone("device_buffer", "arr.addressable_data(0)"),
    "device_buffers": _gone("device_buffers", "[x.data for x in arr.addressable_shards]"),
    "conj": _method(ufuncs.conj),
    "conjugate": _method(ufuncs.conjugate),
    "trace": _method(shapes.trace),
    "nonzero": _nonzero,
    "searchsorted": _method(sorting.searchsorted),
    "sort": _method(sorting.sort),
    "argsort": _method(sorting.argsort, dtype=None),
    "argpartition": _method(sorting.argpartition),
    "choose": _method(sorting.choose),
    "compress": _compress,
    "std": _method(reductions.std, mean=None),
    "var": _method(reductions.var, mean=None),
    **{
        name: _method(vars(reductions)[name])
        for name in (
            ["sum", "prod", "max", "min", "mean", "all", "any", "argmax", "argmin", "cumsum", "cumprod", "ptp"]
        )
    },
}
_OF_TRACERS: dict[str, Any] = {
    "__iter__": _iterate,
    "__len__": _length,
    "itemsize": property(lambda self: self.aval.dtype.itemsize),
    "nbytes": property(lambda self: self.aval.size * self.aval.dtype.itemsize),
}

# Methods written here, whose errors must end where they were called. The others see to that themselves.
_LONG = frozenset(
    [_nonzero, _compress, _reshape, _transpose, _astype, _flatten, _clip, _copy, _dot, _round, _dunder_round]
    + [_to_device, _view, _namespace, _byteswap]
)


def install() -> None:
    """Give arrays and tracers their operators, methods and properties."""
    for name, attribute in {**_STRUCTURAL, **_NUMERICAL}.items():
        attribute = api_boundary(attribute) if attribute in _LONG else attribute
        setattr(arrays.ArrayImpl, name, attribute)
        setattr(Tracer, name, attribute)
        if name in _STRUCTURAL:
            setattr(arrays.KeyArray, name, attribute)
    for name, attribute in _OF_TRACERS.items():
        setattr(Tracer, name, attribute)


install()
