"""What the tables of operations are made with: types, lowerings and batch rules that whole families share."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray, operand_type
from morphax.ir.current import current
from morphax.ir.primitive import Primitive
from morphax.support import dtypes

typeof = operand_type

_scalars: dict[tuple[Any, ...], np.generic] = {}
_SCALARS_KEPT = 4096


def scalar(value: Any, dtype: np.dtype) -> np.generic:
    """`value` as a literal of that dtype. Remembered: rules ask for the same few constants all the time."""
    if value.__class__ in (float, int) and not value:  # 0.0 and -0.0 are equal as keys
        key: tuple[Any, ...] = (0, dtype, math.copysign(1.0, value))
    else:
        key = (value, dtype)
    found = _scalars.get(key)
    if found is None:
        with np.errstate(over="ignore", invalid="ignore"):
            made: Any = np.asarray(value).astype(dtype)[()]
        if value == 0 and len(key) == 2:
            return made
        if len(_scalars) >= _SCALARS_KEPT:
            _scalars.clear()
        found = _scalars[key] = made
    return found


def like(x: Any, value: Any) -> np.generic:
    """`value` as a literal of the dtype of `x`."""
    return scalar(value, typeof(x).dtype)


# ---- types -----------------------------------------------------------------------------------------------------------


def common_shape(name: str, operands: Sequence[ShapedArray]) -> tuple[int, ...]:
    """Shape of an elementwise result: that of the operands, among which scalars may stand."""
    shape: tuple[int, ...] = ()
    for aval in operands:
        if aval.shape != shape and aval.shape:
            if shape:
                shapes = ", ".join(str(a.shape) for a in operands)
                raise TypeError(
                    f"{name}: operands have shapes {shapes}. Elementwise operations of lax need equal shapes or "
                    "scalars; broadcast first, or use the functions of numpy."
                )
            shape = aval.shape
    return shape


def common_dtype(name: str, operands: Sequence[ShapedArray]) -> Any:
    """The one dtype of the operands."""
    dtype = operands[0].dtype
    for aval in operands:
        if aval.dtype != dtype:
            names = ", ".join(a.dtype.name for a in operands)
            raise TypeError(
                f"{name}: operands have dtypes {names}. Operations of lax need equal dtypes; convert one with "
                "lax.convert_element_type, or use the functions of numpy, which promote."
            )
    return dtype


def check_kind(name: str, dtype: Any, kinds: str) -> None:
    """Refuse dtypes outside `kinds`: letters of f(loat) c(omplex) i(nteger) u(nsigned) b(ool) k(ey)."""
    if dtypes.kind(dtype) not in kinds:
        allowed = ", ".join(_KIND_NAMES[k] for k in kinds)
        raise TypeError(f"{name}: does not accept dtype {dtype.name}; it takes {allowed}. Convert the operand first.")


_KIND_NAMES = {
    "f": "floats",
    "c": "complex numbers",
    "i": "signed integers",
    "u": "unsigned integers",
    "b": "bools",
    "k": "random keys",
}


def check_axis(name: str, axis: int, ndim: int) -> None:
    """Refuse axes outside [0, ndim)."""
    if not 0 <= axis < ndim:
        raise ValueError(
            f"{name}: axis {axis} is out of range for an operand of {ndim} dimensions. Axes of lax count from 0 and "
            "are not negative."
        )


def check_axes(name: str, axes: tuple[int, ...], ndim: int) -> None:
    """Refuse axes outside [0, ndim), and axes named twice."""
    for axis in axes:
        check_axis(name, axis, ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: axes {axes} name an axis twice. Name each axis once.")


def joined(name: str, operands: Sequence[ShapedArray], shape: tuple[int, ...], dtype: Any) -> ShapedArray:
    """Result type that keeps what the operands share: it is weak where all are, and varies where any does."""
    weak = True
    sharding = None
    varying = operands[0].varying
    for aval in operands:
        weak = weak and aval.weak_type
        sharding = sharding or aval.sharding
        if aval.varying is not varying:
            varying |= aval.varying
    return ShapedArray(shape, dtype, weak, sharding, varying)


def elementwise_type(name: str, kinds: str, result: Callable[[Any], Any] | None = None) -> Callable[..., ShapedArray]:
    """Type rule: equal dtypes of the given kinds, equal shapes or scalars; `result` maps the dtype to the result's."""

    def rule(*operands: ShapedArray, **params: Any) -> ShapedArray:
        first = operands[0]
        dtype = first.dtype
        for aval in operands:
            if aval is not first:
                break
        else:
            check_kind(name, dtype, kinds)
            if result is None:
                return first
        shape = common_shape(name, operands)
        dtype = common_dtype(name, operands)
        check_kind(name, dtype, kinds)
        return joined(name, operands, shape, dtype if result is None else result(dtype))

    return rule


def not_linear(name: str) -> TypeError:
    """The error for an operation on unknowns of a linear program in which it is not linear."""
    return TypeError(
        f"{name} of values that both depend on the arguments is not linear, so it has no transpose. Transposes are of "
        "linear functions only; use vjp for the others."
    )


# ---- lowering --------------------------------------------------------------------------------------------------------


def spread(low: Any, ins: Sequence[ShapedArray], shape: tuple[int, ...], operands: Sequence[Any]) -> list[Any]:
    """The operands with scalars broadcast to `shape`: StableHLO wants equal shapes."""
    if not shape:
        return list(operands)
    return [x if a.shape else low.broadcast(x, a, shape, ()) for x, a in zip(operands, ins, strict=True)]


def lower_as(opname: str, attributes: dict[str, str] | None = None) -> Callable[..., list[Any]]:
    """Lowering to one StableHLO or CHLO operation of the same operands, scalars broadcast."""

    def lower(low: Any, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *operands: Any, **params: Any) -> Any:
        return low.op(opname, outs, spread(low, ins, outs[0].shape, operands), attributes)

    return lower


# ---- batching --------------------------------------------------------------------------------------------------------

BatchRule = Callable[..., list[Any]]


def shift(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of one example as axes of the batch, which has one more in front."""
    return tuple([a + 1 for a in axes])


def shift_params(*names: str) -> BatchRule:
    """Batch rule of a one-operand operation: the named parameters are axes, or tuples of axes, and move up by one."""

    def batch(
        prim: Primitive, size: int, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]
    ) -> Any:
        moved = dict(params)
        for name in names:
            value = params[name]
            moved[name] = value + 1 if isinstance(value, int) else shift(value)
        return current.trace.apply(prim, operands, moved)

    return batch


def ints(values: Sequence[int]) -> str:
    """Integers as an MLIR attribute."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"
