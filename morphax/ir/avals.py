"""Types of values. Equal types are the same object, so that `is` compares them on the tracing path."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.support import dtypes

_POOL_LIMIT = 1 << 16
_pool: dict[tuple, "ShapedArray"] = {}
NO_AXES: frozenset = frozenset()


class ShapedArray:
    """Type of an array: shape, dtype, weak type, explicit sharding and the manual mesh axes over which it varies.

    Args:
        shape: tuple of ints.
        dtype: NumPy dtype or extended dtype.
        weak_type: whether the dtype yields to that of any other operand in promotion.
        sharding: sharding in the type (explicit mesh axes), or None.
        varying: frozenset of manual mesh axis names over which the value differs.

    >>> from morphax.ir import avals
    >>> avals.ShapedArray((2, 3), avals.np.dtype("float32"))
    ShapedArray(float32[2,3])
    """

    __slots__ = ("__weakref__", "_hash", "dtype", "ndim", "shape", "sharding", "size", "varying", "weak_type")

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: Any,
        weak_type: bool = False,
        sharding: Any = None,
        varying: frozenset = NO_AXES,
    ) -> "ShapedArray":
        key = (shape, dtype, weak_type, sharding, varying)
        try:
            found = _pool.get(key)
        except TypeError:  # an unhashable shape or a dtype given by a name
            return cls(tuple(int(s) for s in shape), dtypes.named_dtype(dtype), weak_type, sharding, varying)
        if found is not None:
            return found
        if not isinstance(dtype, (np.dtype, dtypes.ExtendedDType)) or type(shape) is not tuple:
            return cls(tuple(shape), dtypes.named_dtype(dtype), weak_type, sharding, varying)
        self = object.__new__(cls)
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.sharding = sharding
        self.varying = varying
        self.ndim = len(shape)
        size = 1
        for s in shape:
            size *= s
        self.size = size
        self._hash = hash(key)
        if len(_pool) >= _POOL_LIMIT:  # equality compares fields too, so forgetting a type is safe
            _pool.clear()
        _pool[key] = self
        return self

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(other) is ShapedArray
            and self._hash == other._hash
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.sharding == other.sharding
            and self.varying == other.varying
        )

    def __reduce__(self) -> tuple:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.sharding, self.varying)

    @property
    def vma(self) -> frozenset:
        return self.varying

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def update(self, **changes: Any) -> "ShapedArray":
        """The same type with the named fields replaced."""
        fields = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "sharding", "varying")}
        return ShapedArray(**{**fields, **changes})

    def _dims(self) -> str:
        spec = self.sharding.spec if self.sharding is not None else ()
        spec = tuple(spec) + (None,) * (self.ndim - len(spec))
        names = []
        for size, axis in zip(self.shape, spec, strict=True):
            if axis is None:
                names.append(str(size))
            else:
                names.append(f"{size}@{axis if isinstance(axis, str) else '(' + ','.join(axis) + ')'}")
        axes = ",".join(sorted(self.varying))
        varying = "" if not axes else f"{{V:{axes}}}" if len(self.varying) == 1 else f"{{V:({axes})}}"
        return f"[{','.join(names)}]{varying}"

    def str_short(self, short_dtypes: bool = False) -> str:
        """The type as a jaxpr prints it: `f32[2,3]`, or `float32[2,3]`."""
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        return f"{'~' if self.weak_type and not short_dtypes else ''}{name}{self._dims()}"

    def __str__(self) -> str:
        return self.str_short(short_dtypes=True)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.dtype.name}{self._dims()}{weak})"


def strengthen(aval: ShapedArray) -> ShapedArray:
    """The type without its weakness."""
    return ShapedArray(aval.shape, aval.dtype, False, aval.sharding, aval.varying) if aval.weak_type else aval


def tangent(aval: ShapedArray) -> ShapedArray:
    """Type of the tangents of a value: the same for floating and complex values, float0 for the others."""
    dtype = dtypes.tangent_dtype(aval.dtype)
    if dtype is aval.dtype:
        return aval
    return ShapedArray(aval.shape, dtype, False, aval.sharding, aval.varying)


# ---- types of the values that a program may hold ---------------------------------------------------------------------

Scalar = bool | int | float | complex
_scalar_avals: dict[Any, ShapedArray] = {}


def scalar(dtype: Any) -> ShapedArray:
    """Weakly typed scalar of `dtype`: what a literal is."""
    found = _scalar_avals.get(dtype)
    if found is None:
        found = _scalar_avals[dtype] = ShapedArray((), dtype, True)
    return found


def _python_scalar(x: Scalar) -> ShapedArray:
    return ShapedArray((), dtypes.python_scalar_dtype(type(x)), True)


def _host_array(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))


_BY_TYPE: dict[type, Callable[[Any], ShapedArray]] = {
    bool: _python_scalar,
    int: _python_scalar,
    float: _python_scalar,
    complex: _python_scalar,
    np.ndarray: _host_array,
}


def typeof(x: Any) -> ShapedArray:
    """Type of an array, a tracer, a NumPy array or scalar, or a Python scalar.

    Raises:
        TypeError: `x` is none of these.

    >>> typeof(3.0)
    ShapedArray(float32[], weak_type=True)
    """
    try:
        return x.aval
    except AttributeError:
        return host_type(x)


def host_type(x: Any) -> ShapedArray:
    """Type of a value that is neither an array of this library nor a tracer."""
    rule = _BY_TYPE.get(type(x))
    if rule is not None:
        dtypes.check_valid_dtype(x.dtype, "array") if type(x) is np.ndarray else None
        return rule(x)
    if isinstance(x, (np.ndarray, np.generic)):
        dtypes.check_valid_dtype(x.dtype, "array")
        return _host_array(x)
    for cls in (bool, int, float, complex):  # subclasses: numpy.float64 is handled above, enums of ints come here
        if isinstance(x, cls):
            return ShapedArray((), dtypes.python_scalar_dtype(cls), True)
    shaped = getattr(x, "__jax_array__", None)
    if shaped is not None:
        return typeof(shaped())
    raise TypeError(
        f"a value of type {type(x).__name__} is not an array: {x!r:.80}. Pass arrays, numbers, or pytrees of them; "
        "convert lists with numpy.array."
    )


def operand_type(x: Any) -> ShapedArray:
    """Type of an operand of a primitive, as the library's own rules give it: host arrays have the dtype they say, and
    host scalars are literals, which never decide the weak type."""
    try:
        return x.aval
    except AttributeError:
        if isinstance(x, np.generic):
            return scalar(x.dtype)
        if x.__class__ is np.ndarray:
            return ShapedArray(x.shape, x.dtype)
        return host_type(x)


class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist: for `eval_shape`, `jit(f).lower` and their results.

    >>> import numpy as np
    >>> ShapeDtypeStruct((2, 3), np.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval", "is_ref", "manual_axis_type", "sharding")

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified; it is None. Name one, such as numpy.float32.")
        self.aval = ShapedArray(tuple(shape), dtypes.named_dtype(dtype), weak_type)
        self.sharding = sharding
        self.manual_axis_type = manual_axis_type
        self.is_ref = is_ref

    @classmethod
    def of(cls, aval: ShapedArray) -> "ShapeDtypeStruct":
        """The struct of a type."""
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    @staticmethod
    def like(x: Any) -> "ShapeDtypeStruct":
        """The struct of an array."""
        return ShapeDtypeStruct.of(typeof(x))

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    def update(self, **kwargs: Any) -> "ShapeDtypeStruct":
        """The same struct with the named fields replaced."""
        fields = {name: getattr(self, name) for name in ("shape", "dtype", "sharding", "weak_type")}
        return ShapeDtypeStruct(**{**fields, **kwargs})

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.aval, self.sharding) == (other.aval, other.sharding)

    def __hash__(self) -> int:
        return hash((self.aval, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{where}{weak})"
