"""Arguments of array functions as operands: checked, promoted to one dtype, broadcast to one shape.

Every function of this package takes its arguments through here, so that NumPy's rules stand in one place. What comes
out are operands of primitives: arrays, tracers, NumPy arrays, and NumPy scalars for the Python numbers among them,
which never decide a weak type. NumPy scalars come out as arrays without axes, which do.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.support import config, dtypes, errors

_PYTHON = frozenset((bool, int, float, complex))


# ---- one argument ----------------------------------------------------------------------------------------------------


def refuse(name: str, x: Any) -> TypeError:
    """The error for an argument that is no array and no number."""
    kind = type(x).__name__
    if isinstance(x, (list, tuple)):
        return TypeError(
            f"{name} requires ndarray or scalar arguments; got a {kind}. Convert it first: jnp.array({kind})."
        )
    return TypeError(
        f"{name} requires ndarray or scalar arguments; got a {kind}: {x!r:.60}. Pass an array or a number."
    )


def checked(name: str, x: Any) -> Any:
    """`x` itself if it can be an operand; what its `__jax_array__` returns.

    Raises:
        TypeError: a list, a string, or another object that is no array.
    """
    if x.__class__ in _PYTHON or isinstance(x, (np.ndarray, np.generic, int, float, complex)) or hasattr(x, "aval"):
        return x
    if hasattr(type(x), "__jax_array__"):  # a protocol, looked up on the class as Python does
        return x.__jax_array__()
    raise refuse(name, x)


def described(name: str, x: Any) -> tuple[Any, bool, tuple[int, ...]]:
    """dtype, weakness and shape of an argument.

    Raises:
        TypeError: it is no array and no number.
    """
    try:
        aval = x.aval
    except AttributeError:
        x = checked(name, x)
        dtype, weak = dtypes.dtype_and_weak(x)
        return dtype, weak, np.shape(x) if isinstance(x, (np.ndarray, np.generic)) else avals.typeof(x).shape
    return aval.dtype, aval.weak_type, aval.shape


def literal(value: Any, dtype: Any) -> np.generic:
    """A Python number as a literal of that dtype.

    Raises:
        OverflowError: an int that `dtype` does not hold.
    """
    if value.__class__ is not int:
        return family.scalar(value, dtype)
    found = _ints.get((value, dtype))
    if found is None:
        if len(_ints) >= _INTS_KEPT:
            _ints.clear()
        found = _ints[value, dtype] = _checked_int(value, dtype)
    return found


_ints: dict[tuple[int, Any], np.generic] = {}  # so that an int is checked when it is first met
_INTS_KEPT = 4096


def _checked_int(value: int, dtype: Any) -> np.generic:
    if not dtypes.is_integer(dtype):
        return family.scalar(dtypes.python_type(dtype)(value), dtype)
    if fits(value, dtype):
        made: Any = np.asarray(value).astype(dtype)[()]
        return made
    raise OverflowError(
        f"Python integer {value} out of bounds for {dtype.name}. Use a float dtype, or name a wider one: "
        "jnp.asarray(value, 'int64')."
    )


def decided(x: Any, y: Any, compare: Callable[[int, int], bool]) -> Any:
    """The comparison of an integer array with an int that its dtype does not hold, which is the same everywhere: as of
    0 with the int. None if that is not what `x` and `y` are."""
    if x.__class__ is int:
        return decided(y, x, lambda zero, value: compare(value, zero)) if y.__class__ is not int else None
    if y.__class__ is not int or 0 <= y <= 1:
        return None
    dtype, _, shape = described("comparison", x)
    if not dtypes.is_integer(dtype) or fits(y, dtype):
        return None
    return ew.full(shape, np.asarray(compare(0, y)))


def saturated(value: Any, dtype: Any) -> Any:
    """An int that an integer dtype does not hold as the nearest one that it does; anything else as it is."""
    if value.__class__ is not int or not dtypes.is_integer(dtype) or fits(value, dtype):
        return value
    limits = dtypes.iinfo(dtype)
    return int(limits.min) if value < 0 else int(limits.max)


def fits(value: int, dtype: Any) -> bool:
    """Whether an integer dtype holds `value`."""
    limits = dtypes.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def as_dtype(x: Any, dtype: Any, weak: bool = False) -> Any:
    """An argument as an operand of that dtype; `x` itself where it has it. Host values are converted on the host."""
    try:
        aval = x.aval
    except AttributeError:
        if x.__class__ in _PYTHON:
            return literal(x, dtype)
        if isinstance(x, (np.ndarray, np.generic)):
            return x if x.__class__ is np.ndarray and x.dtype == dtype else np.asarray(x).astype(dtype)
        if isinstance(x, (int, float, complex)):  # an IntEnum, say
            return literal(dtypes.python_type(dtypes.dtype_and_weak(x)[0])(x), dtype)
        return as_dtype(checked("convert", x), dtype, weak)
    if aval.dtype == dtype and (aval.weak_type == weak or not aval.weak_type):
        return x
    if aval.dtype == dtype and not weak:
        return x  # a weak operand among others: the result is weak only where all are
    return structure.convert(x, dtype, weak)


def array(name: str, x: Any) -> Any:
    """One argument as an operand with its own dtype. Numbers become literals."""
    if hasattr(x, "aval"):
        return x
    x = checked(name, x)
    dtype, _ = dtypes.dtype_and_weak(x)
    return as_dtype(x, dtype)


def inexact(name: str, x: Any) -> Any:
    """One argument as a floating or complex operand: integers and bools become floats."""
    try:
        aval = x.aval
    except AttributeError:
        x = checked(name, x)
        return as_dtype(x, _inexact_dtype(name, dtypes.dtype_and_weak(x)[0]))
    if dtypes.is_inexact(aval.dtype):
        return x
    return structure.convert(x, _inexact_dtype(name, aval.dtype), aval.weak_type)


def _inexact_dtype(name: str, dtype: Any) -> Any:
    if dtypes.is_extended(dtype) or dtype == dtypes.float0:
        raise TypeError(
            f"{name}: does not accept dtype {dtype}; it takes numbers and bools. Convert the operand first."
        )
    return dtypes.to_inexact(dtype)


def numeric(name: str, x: Any) -> Any:
    """One argument as a number: bools become integers."""
    x = array(name, x)
    aval = avals.operand_type(x)
    return as_dtype(x, dtypes.default_int_dtype()) if aval.dtype == np.bool_ else x


# ---- several arguments -----------------------------------------------------------------------------------------------


def common(name: str, args: Sequence[Any]) -> tuple[Any, bool]:
    """The dtype that the arguments have together, and whether it is weak."""
    dtype, weak, _ = described(name, args[0])
    for x in args[1:]:
        other, other_weak, _ = described(name, x)
        dtype, weak = dtypes.promote(dtype, weak, other, other_weak)
    return dtype, weak


# Kinds of dtypes that a Python number of each kind leaves as they are, whatever the flags say.
_STAYS = {bool: "", int: "iufc", float: "fc", complex: "c"}


def pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two arguments as operands of one dtype, and of one shape where neither is a scalar."""
    try:
        a = x.aval
        kind = y.__class__
        if kind in _PYTHON:  # 1 us less than the general way
            if dtypes.kind(a.dtype) in _STAYS[kind]:
                return x, literal(y, a.dtype)
        else:
            b = y.aval
            return (x, y) if a is b else _joined(name, x, y, a, b, False)
    except AttributeError:
        pass
    x, y = operands(name, (x, y))
    return x, y


def inexact_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """As `pair`, in a floating or complex dtype."""
    try:
        a = x.aval
        kind = y.__class__
        if kind in _PYTHON:
            if dtypes.is_inexact(a.dtype) and dtypes.kind(a.dtype) in _STAYS[kind]:
                return x, literal(y, a.dtype)
        else:
            b = y.aval
            return (x, y) if a is b and dtypes.is_inexact(a.dtype) else _joined(name, x, y, a, b, True)
    except AttributeError:
        pass
    x, y = operands(name, (x, y), inexact=True)
    return x, y


_plans: dict[Any, tuple[Any, ...]] = {}  # what two types need to meet: 5 us less than finding it out
_PLANS_KEPT = 4096


def _joined(name: str, x: Any, y: Any, a: ShapedArray, b: ShapedArray, inexact: bool) -> tuple[Any, Any]:
    key = (a, b, inexact, config.trace_context())
    plan = _plans.get(key)
    if plan is None:
        dtype, weak = dtypes.promote(a.dtype, a.weak_type, b.dtype, b.weak_type)
        if inexact:
            dtype = _inexact_dtype(name, dtype)
        shape = common_shape(name, (a.shape, b.shape))
        if config.numpy_rank_promotion.value != "allow":  # warns at each use
            return tuple(align(name, (as_dtype(x, dtype, weak), as_dtype(y, dtype, weak))))
        if len(_plans) >= _PLANS_KEPT:
            _plans.clear()
        steps = [(v.dtype != dtype, v.shape != shape and v.shape != ()) for v in (a, b)]
        plan = _plans[key] = (dtype, weak, shape, *steps)
    dtype, weak, shape, (convert_x, spread_x), (convert_y, spread_y) = plan
    if convert_x:
        x = structure.convert_element_type(x, new_dtype=dtype, weak_type=weak, sharding=None)
    if convert_y:
        y = structure.convert_element_type(y, new_dtype=dtype, weak_type=weak, sharding=None)
    return (spread(x, shape) if spread_x else x), (spread(y, shape) if spread_y else y)


def operands(name: str, args: Sequence[Any], inexact: bool = False) -> list[Any]:
    """Arguments as operands of one dtype, and of one shape except for the scalars.

    Raises:
        TypePromotionError: there is no common dtype.
        ValueError: the shapes do not broadcast.
    """
    dtype, weak = common(name, args)
    if inexact:
        dtype = _inexact_dtype(name, dtype)
    return align(name, [as_dtype(x, dtype, weak) for x in args])


def same_dtype(name: str, args: Sequence[Any]) -> list[Any]:
    """Arguments as operands of one dtype; their shapes stay."""
    dtype, weak = common(name, args)
    return [as_dtype(x, dtype, weak) for x in args]


# ---- shapes ----------------------------------------------------------------------------------------------------------


def common_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Raises:
        IncompatibleShapesError: they do not.
        ValueError: ranks differ and numpy_rank_promotion is 'raise'.
    """
    full = [s for s in shapes if s]
    if not full:
        return ()
    rank = max(map(len, full))
    if any(len(s) != rank for s in full) and config.numpy_rank_promotion.value != "allow":
        _rank_promotion(name, full)
    result = [1] * rank
    for shape in full:
        offset = rank - len(shape)
        for k, size in enumerate(shape, offset):
            if size != 1 and result[k] not in (1, size):
                listed = " and ".join(map(str, full))
                raise errors.IncompatibleShapesError(
                    f"{name}: Incompatible shapes for broadcasting: {listed}. Axes, counted from the last, must be "
                    "equal or 1; reshape or transpose one operand."
                )
            if size != 1:
                result[k] = size
    return tuple(result)


def _rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    listed = " ".join(map(str, shapes))
    message = (
        f"{name}: operands of different rank, {listed}, were broadcast, and numpy_rank_promotion is "
        f"'{config.numpy_rank_promotion.value}'. Give them equal ranks: x[None] adds an axis."
    )
    if config.numpy_rank_promotion.value == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=3)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """An operand broadcast to `shape`, as NumPy would; `x` itself where it has it."""
    found = family.typeof(x).shape
    if found == shape:
        return x
    dims = tuple(range(len(shape) - len(found), len(shape)))
    return ew.broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims, sharding=None)


def align(name: str, args: Sequence[Any]) -> list[Any]:
    """Operands broadcast to one shape, except for scalars, which primitives accept among arrays."""
    shapes = [family.typeof(x).shape for x in args]
    first = next((s for s in shapes if s), ())
    for s in shapes:
        if s != first and s:
            break
    else:
        return list(args)
    shape = common_shape(name, shapes)
    return [spread(x, shape) if s else x for x, s in zip(args, shapes, strict=True)]


# ---- axes and shapes that users write --------------------------------------------------------------------------------


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """An axis as a number in [0, ndim).

    Raises:
        ValueError: there is no such axis.
        TypeError: it is no integer.
    """
    try:
        number = axis.__index__()
    except AttributeError:
        raise TypeError(f"{name}: axis must be an integer; it is {axis!r:.60}, a {type(axis).__name__}.") from None
    if not -ndim <= number < ndim:
        raise ValueError(
            f"{name}: axis {number} is out of bounds for array of dimension {ndim}. Give one in [{-ndim}, {ndim - 1}]."
        )
    return number % ndim


def axes_of(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a tuple of numbers in [0, ndim), in the order given; None means all.

    Raises:
        ValueError: there is no such axis, or one is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)):
        axes = tuple([axis_of(name, a, ndim) for a in axis])
        if len(set(axes)) != len(axes):
            raise ValueError(f"{name}: duplicate value in 'axis': {tuple(axis)}. Name each axis once.")
        return axes
    return (axis_of(name, axis, ndim),)


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints, from an int or a sequence of ints.

    Raises:
        TypeError: entries that are no integers, or not known while tracing.
        ValueError: a negative size.
    """
    if is_integer(shape):
        shape = (shape,)
    sizes = tuple([size_of(name, s) for s in shape])
    if any(s < 0 for s in sizes):
        raise ValueError(f"{name}: shape {sizes} has a negative size. Sizes must be at least 0.")
    return sizes


def is_integer(x: Any) -> bool:
    """Whether `x` is one integer rather than a sequence."""
    if isinstance(x, (int, np.integer)):
        return True
    if isinstance(x, (tuple, list)):
        return False
    try:
        return x.ndim == 0
    except AttributeError:
        return False


def size_of(name: str, size: Any) -> int:
    """One size, as an int."""
    try:
        return int(size.__index__())
    except AttributeError:
        raise TypeError(
            f"{name}: Shapes must be 1D sequences of concrete values of integer type; got {size!r:.60}, a "
            f"{type(size).__name__}."
        ) from None
