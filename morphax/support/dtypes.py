"""Dtypes: which there are, how they are named, what two of them give together.

Two policies meet here. A dtype that the program names holds, 64-bit ones too; the flag `enable_x64` only sets the width
of what nobody named: Python numbers and host data. And a weak type, that of a Python number, adapts to what it meets.

Functions on the path of every operation are one dictionary look-up.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from morphax.support import config, errors

float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])  # Any: as DType
"""The dtype of tangents of integers and bools: there is one such tangent, so it holds no bytes."""


class extended(np.generic):
    """The kind of all dtypes that NumPy does not know: `issubdtype(x.dtype, dtypes.extended)`."""


class prng_key(extended):
    """The kind of all dtypes of random keys: `issubdtype(key.dtype, dtypes.prng_key)`."""


class ExtendedDType:
    """A dtype whose elements NumPy does not know; its arrays are made of arrays of plain dtypes."""

    __slots__ = ("itemsize", "name", "type")

    def __init__(self, name: str, itemsize: int, kind: type[extended]) -> None:
        self.name = name
        self.itemsize = itemsize
        self.type = kind

    def __repr__(self) -> str:
        return self.name


class KeyDType(ExtendedDType):
    """The dtype of keys of one random generator: `key<fry>`. Made by `key_dtype`, one object for each generator.

    Each key is a uint32 array of shape `key_shape`; `impl` is the generator's name, `tag` its short one.
    """

    __slots__ = ("impl", "key_shape", "tag")

    def __init__(self, impl: str, tag: str, key_shape: tuple[int, ...]) -> None:
        super().__init__(f"key<{tag}>", 4 * int(np.prod(key_shape)), prng_key)
        self.impl = impl
        self.tag = tag
        self.key_shape = key_shape

    def __reduce__(self) -> tuple[Any, ...]:  # Any: what pickle asks for
        return key_dtype, (self.impl, self.tag, self.key_shape)


DType = np.dtype[Any] | ExtendedDType  # Any: NumPy's scalar classes, all of them

_KEY_DTYPES: dict[str, KeyDType] = {}


def key_dtype(impl: str, tag: str | None = None, key_shape: tuple[int, ...] = ()) -> KeyDType:
    """The dtype of keys of the generator `impl`; a `tag` and a `key_shape` introduce a generator.

    ValueError: no such generator, or one of this name that differs.
    """
    found = _KEY_DTYPES.get(impl)
    if found is None:
        if tag is None:
            raise ValueError(f"key_dtype: no generator is named {impl!r}. Choose one of {', '.join(_KEY_DTYPES)}.")
        found = _KEY_DTYPES[impl] = KeyDType(impl, tag, key_shape)
    if tag is not None and (found.tag, found.key_shape) != (tag, key_shape):
        raise ValueError(f"key_dtype: {impl!r} is taken by {found} with keys {found.key_shape}. Choose another name.")
    return found


key_dtype("threefry2x32", "fry", (2,))
key_dtype("rbg", "rbg", (4,))
key_dtype("unsafe_rbg", "urbg", (4,))


# ----------------------------------------------------------------------------------------------------- sets of dtypes

_SIGNED = ("int1", "int2", "int4", "int8", "int16", "int32", "int64")
_UNSIGNED = ("uint1", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64")
_SMALL_FLOATS = (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
_FLOATS = ("bfloat16", "float16", "float32", "float64", *_SMALL_FLOATS)
_COMPLEX = ("complex64", "complex128")

# The abstract NumPy class of each family, and the dtypes in it.
_FAMILIES: dict[type, tuple[str, ...]] = {
    np.bool_: ("bool",),
    np.signedinteger: _SIGNED,
    np.unsignedinteger: _UNSIGNED,
    np.floating: _FLOATS,
    np.complexfloating: _COMPLEX,
}


def _dtype_of_name(name: str) -> np.dtype:
    # Some names of ml_dtypes are unknown to np.dtype until their class has been used once.
    return np.dtype(vars(ml_dtypes).get(name, name))


BY_NAME: dict[str, np.dtype] = {
    name: _dtype_of_name(name)
    for names in _FAMILIES.values()
    for name in names
    if name in vars(ml_dtypes) or name in np.sctypeDict
}
"""All plain dtypes by name, `float0` excepted."""

ALL = frozenset(BY_NAME.values())
"""The plain dtypes that arrays may have, `float0` excepted."""

_FAMILY_OF = {BY_NAME[name]: family for family, names in _FAMILIES.items() for name in names if name in BY_NAME}
INTEGERS = frozenset(d for d, family in _FAMILY_OF.items() if issubclass(family, np.integer))
_FLOATING = frozenset(d for d, family in _FAMILY_OF.items() if family is np.floating)
_COMPLEXES = frozenset(d for d, family in _FAMILY_OF.items() if family is np.complexfloating)
_INEXACT = _FLOATING | _COMPLEXES
_ANCESTORS = {d: frozenset((*family.__mro__, d.type)) for d, family in _FAMILY_OF.items()}

bool_, int8, int16, int32, int64 = (BY_NAME[n] for n in ("bool", "int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (BY_NAME[n] for n in ("uint8", "uint16", "uint32", "uint64"))
bfloat16, float16, float32, float64 = (BY_NAME[n] for n in ("bfloat16", "float16", "float32", "float64"))
complex64, complex128 = (BY_NAME[n] for n in _COMPLEX)


def is_float(dtype: DType) -> bool:
    """Whether `dtype` is a real floating type, of any width."""
    return dtype in _FLOATING


def is_complex(dtype: DType) -> bool:
    """Whether `dtype` is complex."""
    return dtype in _COMPLEXES


def is_inexact(dtype: DType) -> bool:
    """Whether `dtype` is floating or complex, so that derivatives exist."""
    return dtype in _INEXACT


def is_integer(dtype: DType) -> bool:
    """Whether `dtype` is a signed or unsigned integer; bool is not."""
    return dtype in INTEGERS


def is_unsigned(dtype: DType) -> bool:
    """Whether `dtype` is an unsigned integer."""
    return _FAMILY_OF.get(dtype) is np.unsignedinteger  # type: ignore[call-overload]


_FAMILY_LETTERS = {
    np.bool_: "b",
    np.signedinteger: "i",
    np.unsignedinteger: "u",
    np.floating: "f",
    np.complexfloating: "c",
}
_KIND_LETTERS: dict[DType, str] = {dtype: _FAMILY_LETTERS[family] for dtype, family in _FAMILY_OF.items()}
_KIND_LETTERS[float0] = "0"


def kind(dtype: DType) -> str:
    """b(ool), i(nteger), u(nsigned), f(loat) or c(omplex), ml_dtypes' types included; k for keys, 0 for `float0`."""
    return _KIND_LETTERS.get(dtype, "k")


def is_extended(dtype: object) -> bool:
    """Whether `dtype` is a key or another dtype that NumPy does not know."""
    return isinstance(dtype, ExtendedDType)


# -------------------------------------------------------------------------------------------- names, widths, relatives

_WIDE_TO_NARROW = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_NARROW_TO_WIDE = {narrow: wide for wide, narrow in _WIDE_TO_NARROW.items()}
_WIDE = frozenset(_WIDE_TO_NARROW)
_PYTHON_DEFAULTS: dict[type, tuple[np.dtype, np.dtype]] = {
    bool: (bool_, bool_),
    int: (int32, int64),
    float: (float32, float64),
    complex: (complex64, complex128),
}
_PYTHON_TYPE_OF: dict[type, type] = {
    np.bool_: bool,
    np.signedinteger: int,
    np.unsignedinteger: int,
    np.floating: float,
    np.complexfloating: complex,
}
_SHORT_PREFIXES = (("bfloat", "bf"), ("complex", "c"), ("float", "f"), ("uint", "u"), ("int", "i"))


def _short_name(name: str) -> str:
    for long, short in _SHORT_PREFIXES:
        if name.startswith(long):
            return short + name[len(long) :]
    return name


_SHORT_NAMES: dict[DType, str] = {dtype: _short_name(name) for name, dtype in BY_NAME.items()}
_SHORT_NAMES[float0] = "float0"
_BY_SHORT_NAME: dict[str, DType] = {short: dtype for dtype, short in _SHORT_NAMES.items()}
_BITS = {
    dtype: int(digits) if (digits := "".join(filter(str.isdigit, name.partition("_")[0]))) else 8
    for name, dtype in BY_NAME.items()
} | {float0: 0}
_NAMED: dict[object, np.dtype] = {float0: float0}
for _name, _dtype in BY_NAME.items():
    _NAMED |= {_name: _dtype, _dtype: _dtype, _dtype.type: _dtype}
_REAL = {d: d for d in ALL} | {complex64: float32, complex128: float64}
_INEXACT_OF = {d: float64 if _BITS[d] == 64 else float32 for d in ALL} | {d: d for d in _INEXACT}
_COMPLEX_OF = {d: complex128 if _BITS[d] == 64 else complex64 for d in ALL} | {d: d for d in _COMPLEXES}
_TANGENT: dict[DType, np.dtype] = {d: d if d in _INEXACT else float0 for d in ALL}


def short_name(dtype: DType) -> str:
    """The name in printed jaxprs: `f32`, `bf16`, `i32`, `u8`, `bool`, `c64`, `f8_e4m3fn`, `key<fry>`."""
    return _SHORT_NAMES.get(dtype) or (dtype.name if isinstance(dtype, ExtendedDType) else str(dtype))


def from_short_name(name: str) -> DType:
    """The dtype that `short_name` names so. ValueError: there is none."""
    found = _BY_SHORT_NAME.get(name)
    if found is not None:
        return found
    for key in _KEY_DTYPES.values():
        if key.name == name:
            return key
    raise ValueError(f"from_short_name: {name!r} names no dtype. Names look like f32, bf16, i8, u32, bool, key<fry>.")


def itemsize_bits(dtype: object) -> int:
    """Bits of one element: 4 for int4, although NumPy keeps it in a byte.  ValueError: an extended dtype."""
    named = named_dtype(dtype)
    if isinstance(named, ExtendedDType):
        raise ValueError(f"itemsize_bits: {named} has no width of its own. Ask for the dtype of its key data.")
    return _BITS[named]


def canonicalize_dtype(
    dtype: object, allow_extended_dtype: bool = False
) -> Any:  # Any: np.dtype, or extended if so asked
    """`dtype` as the default width allows: 64-bit types become 32-bit ones unless `enable_x64` holds.

    For host data and Python numbers, whose dtype nobody named; what is named goes through `named_dtype`.
    """
    try:
        named = _NAMED[dtype]
    except (KeyError, TypeError):
        found = named_dtype(dtype)
        if isinstance(found, ExtendedDType):
            if allow_extended_dtype:
                return found
            raise ValueError(
                f"canonicalize_dtype: {found} is an extended dtype. Pass allow_extended_dtype=True."
            ) from None
        named = found
    return named if config.enable_x64.value else _WIDE_TO_NARROW.get(named, named)


def named_dtype(dtype: object) -> DType:
    """The dtype that the program names, honoured as it is: float64 is float64 whatever `enable_x64` says.

    Args:
      dtype: a dtype, its name, a scalar class, an object with a `dtype`; the Python types bool, int, float and complex,
        and None for float, mean the default dtypes.
    Raises:
      TypeError: no dtype of arrays is meant.
    """
    try:
        found = _NAMED.get(dtype)
        if found is not None:
            return found
        python = _PYTHON_DEFAULTS.get(float if dtype is None else dtype)  # type: ignore[call-overload]
        if python is not None:
            return python[config.enable_x64.value]
    except TypeError:  # unhashable: an array, say
        pass
    if isinstance(dtype, ExtendedDType):
        return dtype
    return _unusual_dtype(dtype)


def _unusual_dtype(dtype: object) -> DType:
    """What `dtype` means, if it is neither a dtype nor a common name for one."""
    try:
        inner = dtype.dtype  # type: ignore[attr-defined]
    except AttributeError:
        inner = None
    if isinstance(inner, (np.dtype, ExtendedDType)):
        return inner if isinstance(inner, ExtendedDType) else _supported(inner, dtype)
    try:
        return _supported(np.dtype(dtype), dtype)  # type: ignore[call-overload]
    except TypeError:
        raise _no_dtype(dtype) from None


def _supported(found: np.dtype, dtype: object) -> np.dtype:
    if found in _NAMED:
        return _NAMED[found]
    raise _no_dtype(dtype)


def _no_dtype(dtype: object) -> TypeError:
    cure = "Arrays hold numbers, bools and keys: name a dtype such as 'float32'."
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        cure = "Its bytes are in the other order: convert with x.astype(x.dtype.newbyteorder('='))."
    return TypeError(f"dtypes: {dtype!r} (a {type(dtype).__name__}) is no dtype of arrays. {cure}")


def check_valid_dtype(dtype: object, fun: str) -> None:
    """TypeError, in the name of `fun`, unless arrays can have this dtype (or None)."""
    if dtype is None:
        return
    try:
        named_dtype(dtype)
    except TypeError as error:
        raise TypeError(f"{fun}: {str(error).removeprefix('dtypes: ')}") from None


def python_scalar_dtype(kind: type) -> np.dtype:
    """The default dtype of the Python type bool, int, float or complex."""
    return _PYTHON_DEFAULTS[kind][config.enable_x64.value]


def default_int_dtype() -> np.dtype:
    """int32, or int64 under `enable_x64`."""
    return int64 if config.enable_x64.value else int32


def default_uint_dtype() -> np.dtype:
    """uint32, or uint64 under `enable_x64`."""
    return uint64 if config.enable_x64.value else uint32


def default_float_dtype() -> np.dtype:
    """float32, or float64 under `enable_x64`."""
    return float64 if config.enable_x64.value else float32


def default_complex_dtype() -> np.dtype:
    """complex64, or complex128 under `enable_x64`."""
    return complex128 if config.enable_x64.value else complex64


def scalar_type_of(x: object) -> type:
    """The Python type, bool, int, float or complex, of the elements of `x`."""
    return python_type(dtype_and_weak(x)[0])


def python_type(dtype: DType) -> type:
    """The Python type of the elements: bool, int, float or complex.  TypeError: an extended dtype, or float0."""
    family = _FAMILY_OF.get(dtype)  # type: ignore[call-overload]
    if family is None:
        raise TypeError(f"dtypes: the elements of {dtype} are no Python numbers. Convert to a plain dtype first.")
    return _PYTHON_TYPE_OF[family]


def to_real(dtype: np.dtype) -> np.dtype:
    """The dtype of real and imaginary parts; a real dtype itself."""
    return _REAL[dtype]


def to_complex(dtype: np.dtype) -> np.dtype:
    """The complex dtype that holds `dtype`: complex128 for 64-bit types, else complex64."""
    return _COMPLEX_OF[dtype]


def to_inexact(dtype: np.dtype) -> np.dtype:
    """`dtype` itself if floating or complex; for integers and bools float32, or float64 where they have 64 bits."""
    return _INEXACT_OF[dtype]


def tangent_dtype(dtype: DType) -> np.dtype:
    """The dtype of tangents: `dtype` if floating or complex, else `float0`."""
    return _TANGENT.get(dtype, float0)


# ------------------------------------------------------------------------------------------- subtypes, kinds, limits

_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def issubdtype(a: object, b: object) -> bool:
    """Whether `a` is, or lies below, `b` in NumPy's hierarchy, where ml_dtypes' types count among their families.

    Args:
      a: a dtype, a scalar class or an abstract class such as `np.integer`.
      b: the same, or `extended` or `prng_key`. The Python types mean their 64-bit dtypes, as in NumPy.
    """
    if isinstance(b, ExtendedDType):
        return a is b
    above = b if isinstance(b, type) and issubclass(b, np.generic) else _numpy_dtype(b).type
    if isinstance(a, ExtendedDType):
        return issubclass(a.type, above)
    if isinstance(a, type) and issubclass(a, np.generic) and a not in _NAMED:
        return issubclass(a, above)
    below = _numpy_dtype(a)
    ancestors = _ANCESTORS.get(below)
    return above in ancestors if ancestors is not None else issubclass(below.type, above)


def _numpy_dtype(dtype: object) -> np.dtype:
    if isinstance(dtype, str) and dtype in BY_NAME:
        return BY_NAME[dtype]
    return np.dtype(dtype)  # type: ignore[call-overload]


def isdtype(dtype: object, kind: object) -> bool:
    """Whether `dtype` is of the array-API kind, the dtype, or any in the tuple `kind`.

    Kinds: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric'.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    named = named_dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return any(issubdtype(named, above) for above in _KINDS[kind])
    try:
        return named == named_dtype(kind)
    except TypeError:
        raise ValueError(f"isdtype: {kind!r} is no kind and no dtype. Kinds: {', '.join(map(repr, _KINDS))}.") from None


@functools.cache
def _finfo(dtype: np.dtype) -> np.finfo[Any]:  # Any: as DType
    return ml_dtypes.finfo(dtype)


@functools.cache
def _iinfo(dtype: np.dtype) -> ml_dtypes.iinfo:
    return ml_dtypes.iinfo(dtype)


def finfo(dtype: object) -> np.finfo[Any]:  # Any: as DType
    """Machine limits of a floating dtype, or of the parts of a complex one.  ValueError: any other dtype."""
    named = named_dtype(dtype)
    if named not in _INEXACT:
        raise ValueError(f"finfo: {named} is not floating. Use iinfo for integers.")
    return _finfo(to_real(named))  # type: ignore[arg-type]


def iinfo(int_type: object) -> ml_dtypes.iinfo:
    """Limits of an integer dtype.  ValueError: any other dtype."""
    named = named_dtype(int_type)
    if named not in INTEGERS:
        raise ValueError(f"iinfo: {named} is no integer type. Use finfo for floating types.")
    return _iinfo(named)  # type: ignore[arg-type]


@functools.cache
def scalar_limits(dtype: np.dtype) -> tuple[Any, Any]:  # Any: NumPy scalars of `dtype`
    """The lowest and the highest value of a real dtype, infinities included, as scalars of it."""
    if dtype == bool_:
        return np.False_, np.True_
    if dtype in INTEGERS:
        return dtype.type(_iinfo(dtype).min), dtype.type(_iinfo(dtype).max)
    info = _finfo(dtype)
    with np.errstate(all="ignore"):
        low, high = dtype.type(-np.inf), dtype.type(np.inf)
    if np.isinf(float(low)) and np.isinf(float(high)):
        return low, high
    return dtype.type(info.min), dtype.type(info.max)


# ------------------------------------------------------------------------------------------------------ type promotion

# Each type below the types that it promotes to: JAX's documented lattice. A star marks the weak types.
_LATTICE: dict[str, tuple[str, ...]] = {
    "bool": ("int*",),
    "int*": ("uint8", "int8", "int1", "uint1", "int2", "uint2", "int4", "uint4"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("float*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("float*",),
    "float*": ("bfloat16", "float16", "complex*", *_SMALL_FLOATS),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex*": ("complex64",),
    "complex64": ("complex128",),
}
# Strict promotion: a Python number meets an array of its kind or a higher one, and nothing else promotes.
_STRICT_LATTICE: dict[str, tuple[str, ...]] = {
    "int*": ("float*", *_SIGNED, *_UNSIGNED),
    "float*": ("complex*", *_FLOATS),
    "complex*": _COMPLEX,
}
_WEAK_NODES = {"int*": int, "float*": float, "complex*": complex}
_WEAK_NODE_OF: dict[type, str] = {
    np.bool_: "bool",
    np.signedinteger: "int*",
    np.unsignedinteger: "int*",
    np.floating: "float*",
    np.complexfloating: "complex*",
}


def _upper_bounds(lattice: dict[str, tuple[str, ...]]) -> dict[str, frozenset[str]]:
    bounds: dict[str, frozenset[str]] = {}

    def visit(node: str) -> frozenset[str]:
        if node not in bounds:
            bounds[node] = frozenset((node,)).union(*map(visit, lattice.get(node, ())))
        return bounds[node]

    for node in (*BY_NAME, *_WEAK_NODES):
        visit(node)
    return bounds


_UPPER_BOUNDS = {"standard": _upper_bounds(_LATTICE), "strict": _upper_bounds(_STRICT_LATTICE)}
_promotions: dict[tuple[DType, bool, DType, bool, bool, str], tuple[DType, bool]] = {}  # at most a few thousand


def promote(dtype_a: DType, weak_a: bool, dtype_b: DType, weak_b: bool) -> tuple[DType, bool]:
    """The dtype that two operands have together, and whether it is weak still.

    JAX's lattice. With `enable_x64` off a result is 32 bits wide, as the defaults are, unless an operand has 64.
    TypePromotionError: there is no such dtype, or strict promotion forbids it.
    """
    if dtype_a is dtype_b and not weak_a and not weak_b:
        return dtype_a, False
    key = (dtype_a, weak_a, dtype_b, weak_b, config.enable_x64.value, config.numpy_dtype_promotion.value)
    found = _promotions.get(key)
    if found is None:
        found = _promotions[key] = _join(*key)
    return found


def _join(dtype_a: DType, weak_a: bool, dtype_b: DType, weak_b: bool, x64: bool, promotion: str) -> tuple[DType, bool]:
    if dtype_a == dtype_b and not weak_a and not weak_b:
        return dtype_a, False
    family_a, family_b = _FAMILY_OF.get(dtype_a), _FAMILY_OF.get(dtype_b)  # type: ignore[call-overload]
    if family_a is None or family_b is None:
        raise errors.TypePromotionError(_no_promotion(dtype_a, dtype_b, promotion))
    wide = x64 or dtype_a in _WIDE or dtype_b in _WIDE
    if weak_a and weak_b and family_a is family_b is np.unsignedinteger and promotion == "standard":
        return (uint64 if wide else uint32), True
    node_a = _WEAK_NODE_OF[family_a] if weak_a else _node_name(dtype_a)
    node_b = _WEAK_NODE_OF[family_b] if weak_b else _node_name(dtype_b)
    upper = _UPPER_BOUNDS[promotion]
    common = upper[node_a] & upper[node_b]
    least = next((node for node in common if upper[node] == common), None)
    if least is None:
        raise errors.TypePromotionError(_no_promotion(dtype_a, dtype_b, promotion))
    weak = least in _WEAK_NODES
    joined = _PYTHON_DEFAULTS[_WEAK_NODES[least]][1] if weak else BY_NAME[least]
    return joined if wide else _WIDE_TO_NARROW.get(joined, joined), weak


def _node_name(dtype: DType) -> str:
    return dtype.name


def _no_promotion(dtype_a: DType, dtype_b: DType, promotion: str) -> str:
    if promotion == "strict":
        why = "differ, and numpy_dtype_promotion is 'strict'"
    else:
        why = "have no common dtype to promote to"
    return f"promote: {short_name(dtype_a)} and {short_name(dtype_b)} {why}. Convert one operand: x.astype(dtype)."


def dtype_and_weak(x: Any) -> tuple[DType, bool]:  # Any: whatever an array function is given
    """The dtype of `x` and whether it is weak: a Python number, a NumPy array or scalar, or anything with an `aval`.

    TypeError: `x` is no array and no number.
    """
    kind = type(x)
    python = _PYTHON_DEFAULTS.get(kind)
    if python is not None:
        return python[config.enable_x64.value], kind is not bool
    if isinstance(x, (np.ndarray, np.generic)):
        return _host_dtype(x.dtype), False
    try:
        aval = x.aval
    except AttributeError:
        return _dtype_and_weak_of_other(x)
    return aval.dtype, aval.weak_type


def _host_dtype(dtype: np.dtype) -> np.dtype:
    if dtype not in _NAMED:
        raise _no_dtype(dtype)
    return dtype if config.enable_x64.value else _WIDE_TO_NARROW.get(dtype, dtype)


def _dtype_and_weak_of_other(x: Any) -> tuple[DType, bool]:  # Any: whatever an array function is given
    for kind in _PYTHON_DEFAULTS:
        if isinstance(x, kind):  # an IntEnum, say
            return python_scalar_dtype(kind), kind is not bool
    try:
        dtype = x.dtype
    except AttributeError:
        raise TypeError(f"dtypes: {x!r} (a {type(x).__name__}) is no array and no number.") from None
    try:
        weak = x.weak_type
    except AttributeError:
        weak = False
    return named_dtype(dtype), bool(weak)


def _argument_type(x: object) -> tuple[DType, bool]:
    if x is None:
        return default_float_dtype(), False
    if isinstance(x, type) and x in _PYTHON_DEFAULTS:
        return python_scalar_dtype(x), x is not bool
    if isinstance(x, (str, type, np.dtype, ExtendedDType)):
        return named_dtype(x), False
    return dtype_and_weak(x)


def result_type(*args: object, return_weak_type_flag: bool = False) -> Any:  # Any: a DType, or (DType, bool)
    """The dtype that all arguments, arrays, numbers or dtypes, have together; on request also whether it is weak.

    ValueError: no argument.  TypePromotionError: no common dtype.
    """
    if not args:
        raise ValueError("result_type: no argument. Pass at least one array or dtype.")
    dtype, weak = _argument_type(args[0])
    if weak and len(args) == 1:
        dtype, weak = promote(dtype, weak, dtype, weak)
    for arg in args[1:]:
        dtype, weak = promote(dtype, weak, *_argument_type(arg))
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: object, b: object) -> DType:
    """The dtype that dtypes `a` and `b` have together; the Python types count as weak.

    TypePromotionError: there is none.
    """
    a_is_weak = isinstance(a, type) and a in (int, float, complex)
    b_is_weak = isinstance(b, type) and b in (int, float, complex)
    return promote(named_dtype(a), a_is_weak, named_dtype(b), b_is_weak)[0]
