"""Products that sum over axes: dot_general and its precisions."""

from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from morphax.ir.primitive import Primitive, is_unknown
from morphax.ir.show import readable
from morphax.ops import family, structure
from morphax.ops.family import typeof
from morphax.support import config, dtypes

# ---- precision -------------------------------------------------------------------------------------------------------


@readable
class Precision(Enum):
    """Precision of products on devices that have faster, less exact units. CPUs compute in full always.

    DEFAULT is the fastest, HIGH about three bfloat16 passes, HIGHEST the full precision of the operands.

    >>> Precision("high")
    Precision.HIGH
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> "Precision | None":
        return _PRECISION_NAMES.get(value) if isinstance(value, (str, type(None))) else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISION_NAMES: dict[str | None, Precision] = {
    None: Precision.DEFAULT,
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


@readable
class DotAlgorithm(NamedTuple):
    """How a product is computed: types that the operands are rounded to, type of the sums, parts per operand.

    >>> DotAlgorithm(np.float32, np.float32, np.float32).num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


@readable
class DotAlgorithmPreset(Enum):
    """Named algorithms: operand type, operand type, type of the sums, and how often the product is repeated.

    >>> DotAlgorithmPreset.BF16_BF16_F32_X3
    DotAlgorithmPreset.BF16_BF16_F32_X3
    """

    DEFAULT = 0
    ANY_F8_ANY_F8_F32 = 1
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 2
    ANY_F8_ANY_F8_ANY = 3
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 4
    F16_F16_F16 = 5
    F16_F16_F32 = 6
    BF16_BF16_BF16 = 7
    BF16_BF16_F32 = 8
    BF16_BF16_F32_X3 = 9
    BF16_BF16_F32_X6 = 10
    BF16_BF16_F32_X9 = 11
    TF32_TF32_F32 = 12
    TF32_TF32_F32_X3 = 13
    F32_F32_F32 = 14
    F64_F64_F64 = 15

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


PrecisionLike = Any  # None, a name, a Precision, a pair of either, a DotAlgorithm or a DotAlgorithmPreset


def _one_precision(given: Any) -> Precision:
    if isinstance(given, Precision):
        return given
    found = _PRECISION_NAMES.get(given)
    if found is None:
        names = ", ".join(repr(n) for n in _PRECISION_NAMES if n)
        raise ValueError(f"precision {given!r} is not known. Give None, a Precision, or one of {names}.")
    return found


def canonical_precision(given: PrecisionLike) -> Any:
    """A precision as parameters hold it: None, a pair of Precision, or an algorithm.

    Raises:
        ValueError: an unknown name.
    """
    if given is None:
        given = config.default_matmul_precision.value
        if given is None:
            return None
    if isinstance(given, (DotAlgorithm, DotAlgorithmPreset)):
        return given
    if isinstance(given, str) and given in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[given]
    if isinstance(given, (tuple, list)):
        if len(given) != 2:
            raise ValueError(f"precision {given!r} must be one precision, or a pair, one for each operand.")
        return (_one_precision(given[0]), _one_precision(given[1]))
    return (_one_precision(given),) * 2


# ---- dot_general -----------------------------------------------------------------------------------------------------

# ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))
DotDimensionNumbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def canonical_dimensions(numbers: Any) -> DotDimensionNumbers:
    """Dimension numbers given as any nested sequences."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    ints = tuple([tuple([int(d) for d in dims]) for dims in (lhs_contract, rhs_contract, lhs_batch, rhs_batch)])
    return (ints[0], ints[1]), (ints[2], ints[3])


def _check_dimensions(lhs: Any, rhs: Any, numbers: DotDimensionNumbers) -> None:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    for what, a, b in (("contracted", lhs_contract, rhs_contract), ("batch", lhs_batch, rhs_batch)):
        if len(a) != len(b):
            raise TypeError(
                f"dot_general: {len(a)} {what} axes of lhs, {a}, stand against {len(b)} of rhs, {b}. Name as many of "
                "each."
            )
    family.check_axes("dot_general: lhs", (*lhs_batch, *lhs_contract), lhs.ndim)
    family.check_axes("dot_general: rhs", (*rhs_batch, *rhs_contract), rhs.ndim)
    for what, a, b in (("contracted", lhs_contract, rhs_contract), ("batch", lhs_batch, rhs_batch)):
        for i, j in zip(a, b, strict=True):
            if lhs.shape[i] != rhs.shape[j]:
                raise TypeError(
                    f"dot_general: {what} sizes differ: lhs {lhs.shape} axis {i} has {lhs.shape[i]}, rhs {rhs.shape} "
                    f"axis {j} has {rhs.shape[j]}. Transpose one operand, or name other axes."
                )


def _free(ndim: int, *taken: tuple[int, ...]) -> tuple[int, ...]:
    used = {d for dims in taken for d in dims}
    return tuple([d for d in range(ndim) if d not in used])


def _dot_dtype(lhs: Any, rhs: Any, preferred: Any) -> Any:
    dtype = lhs.dtype if lhs.dtype == rhs.dtype else dtypes.promote(lhs.dtype, False, rhs.dtype, False)[0]
    if preferred is None:
        return dtype
    order = "buifc"
    kind, wanted = dtypes.kind(dtype), dtypes.kind(preferred)
    if wanted not in order or kind in "fc" and order.index(wanted) < order.index(kind):
        raise TypeError(
            f"dot_general: preferred_element_type {preferred.name} cannot hold products of {lhs.dtype.name} and "
            f"{rhs.dtype.name}. Choose a type of the same kind or a wider one."
        )
    return preferred


def _dot_type(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any, preferred_element_type: Any, out_sharding: Any
) -> Any:
    for operand in (lhs, rhs):
        family.check_kind("dot_general", operand.dtype, "fciub")
    _check_dimensions(lhs, rhs, dimension_numbers)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    shape = (
        *(lhs.shape[d] for d in lhs_batch),
        *(lhs.shape[d] for d in _free(lhs.ndim, lhs_batch, lhs_contract)),
        *(rhs.shape[d] for d in _free(rhs.ndim, rhs_batch, rhs_contract)),
    )
    dtype = _dot_dtype(lhs, rhs, preferred_element_type)
    return family.joined("dot_general", (lhs, rhs), shape, dtype)


def _numbers_text(numbers: DotDimensionNumbers) -> str:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    return (
        f"#stablehlo.dot<lhs_batching_dimensions = {list(lhs_batch)}, rhs_batching_dimensions = {list(rhs_batch)}, "
        f"lhs_contracting_dimensions = {list(lhs_contract)}, rhs_contracting_dimensions = {list(rhs_contract)}>"
    )


# Per preset: type of the operands, type that they are rounded to, type of the sums, products. Those not named here
# leave the choice to XLA.
_ALGORITHMS = {
    "F16_F16_F16": ("float16", "f16", "f16", 1),
    "F16_F16_F32": ("float16", "f16", "f32", 1),
    "BF16_BF16_BF16": ("bfloat16", "bf16", "bf16", 1),
    "BF16_BF16_F32": ("float32", "bf16", "f32", 1),
    "BF16_BF16_F32_X3": ("float32", "bf16", "f32", 3),
    "BF16_BF16_F32_X6": ("float32", "bf16", "f32", 6),
    "BF16_BF16_F32_X9": ("float32", "bf16", "f32", 9),
    "TF32_TF32_F32": ("float32", "tf32", "f32", 1),
    "TF32_TF32_F32_X3": ("float32", "tf32", "f32", 3),
    "F32_F32_F32": ("float32", "f32", "f32", 1),
    "F64_F64_F64": ("float64", "f64", "f64", 1),
}
_SUM_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def _algorithm(precision: Any) -> tuple[Any, Any, str] | None:
    """Type of the operands, type of the sums, and the MLIR attribute of an algorithm; None for plain precisions."""
    if isinstance(precision, DotAlgorithmPreset) and precision.name in _ALGORITHMS:
        storage, rounded, sums, products = _ALGORITHMS[precision.name]
        counts, imprecise = (1, 1, products), False
        names = (rounded, rounded, sums)
        types = dtypes.BY_NAME[storage], dtypes.BY_NAME[_SUM_TYPES[sums]]
    elif isinstance(precision, DotAlgorithm):
        given = [dtypes.named_dtype(d) for d in precision[:3]]
        counts, imprecise = precision[3:6], precision[6]
        names = tuple([dtypes.short_name(d) for d in given])
        types = given[0], given[2]
    else:
        return None
    text = (
        f"lhs_precision_type = {names[0]}, rhs_precision_type = {names[1]}, accumulation_type = {names[2]}, "
        f"lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, allow_imprecise_accumulation = {str(imprecise).lower()}"
    )
    return types[0], types[1], f"#stablehlo.dot_algorithm<{text}>"


def _lower_dot(
    low: Any, ins: Any, outs: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any, **params: Any
) -> Any:
    out = outs[0]
    lhs_aval, rhs_aval = ins
    attributes = {"dot_dimension_numbers": _numbers_text(dimension_numbers)}
    algorithm = _algorithm(precision)
    if algorithm is not None:
        joint, sums, attributes["algorithm"] = algorithm
    else:
        # One type for both operands, on the CPU that of the result: XLA has no mixed products there. Elsewhere equal
        # narrow operands stay narrow, for the matrix units.
        joint, sums = _dot_dtype(lhs_aval, rhs_aval, None), out.dtype
        if low.platform == "cpu" and joint != np.bool_:
            joint = sums
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        names = ", ".join(f"#stablehlo<precision {p.name}>" for p in precision)
        attributes["precision_config"] = f"[{names}]"
    lhs = _converted(low, lhs, lhs_aval, joint)
    rhs = _converted(low, rhs, rhs_aval, joint)
    result = out.update(dtype=sums)
    return [_converted(low, low.op("stablehlo.dot_general", (result,), (lhs, rhs), attributes)[0], result, out.dtype)]


def _converted(low: Any, x: Any, aval: Any, dtype: Any) -> Any:
    if aval.dtype == dtype:
        return x
    return low.op("stablehlo.convert", (aval.update(dtype=dtype),), (x,))[0]


def _transpose_one(ct: Any, x: Any, y: Any, swapped: bool, params: dict[str, Any]) -> Any:
    """Cotangent of `x` in dot(x, y), or in dot(y, x) where `swapped`."""
    (x_contract, y_contract), (x_batch, y_batch) = params["dimension_numbers"]
    if swapped:
        x_contract, y_contract, x_batch, y_batch = y_contract, x_contract, y_batch, x_batch
    aval = x.aval
    x_free = _free(aval.ndim, x_batch, x_contract)
    y_free = _free(typeof(y).ndim, y_batch, y_contract)
    batch = tuple(range(len(x_batch)))
    first = len(batch) + (0 if swapped else len(x_free))
    contracted = tuple(range(first, first + len(y_free)))
    same = typeof(ct).dtype == aval.dtype == typeof(y).dtype
    numbers = ((contracted, y_free), (batch, y_batch))
    out = dot_general(
        ct, y, dimension_numbers=numbers, precision=params["precision"],
        preferred_element_type=params["preferred_element_type"] if same else None, out_sharding=None,
    )  # fmt: skip
    # The result has the axes batch, free of x, and contracted, these in y's order.
    by_y = sorted(range(len(y_contract)), key=lambda i: y_contract[i])
    places = (*x_batch, *x_free, *(x_contract[i] for i in by_y))
    order = tuple(sorted(range(aval.ndim), key=lambda i: places[i]))
    if order != tuple(range(aval.ndim)):
        out = structure.transpose(out, permutation=order)
    return structure.convert(out, aval.dtype, typeof(out).weak_type)


def _dot_transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    if is_unknown(lhs):
        return _transpose_one(ct, lhs, rhs, False, params), None
    return None, _transpose_one(ct, rhs, lhs, True, params)


def _dot_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    both = flags[0] and flags[1]
    if flags[0]:
        lhs_contract, lhs_batch = family.shift(lhs_contract), family.shift(lhs_batch)
    if flags[1]:
        rhs_contract, rhs_batch = family.shift(rhs_contract), family.shift(rhs_batch)
    if both:
        lhs_batch, rhs_batch = (0, *lhs_batch), (0, *rhs_batch)
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    out = prim(*operands, **{**params, "dimension_numbers": numbers})
    if both:
        return [out]
    # The batch axis is the first free axis of its operand.
    place = len(lhs_batch)
    if flags[1]:
        place += typeof(operands[0]).ndim - len(lhs_batch) - len(lhs_contract)
    return [structure.move_axis(out, place, 0)]


def _show(params: dict[str, Any]) -> dict[str, Any]:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    shown: dict[str, Any] = {k: v for k, v in params.items() if v is not None}
    shown["dimension_numbers"] = (
        (list(lhs_contract), list(rhs_contract)),
        (list(lhs_batch), list(rhs_batch)),
    )
    if isinstance(params["precision"], tuple):
        shown["precision"] = repr(params["precision"])
    return shown


def _read(shown: dict[str, Any], ins: Any, outs: Any) -> dict[str, Any]:
    absent = {"precision": None, "preferred_element_type": None, "out_sharding": None}
    return {"dimension_numbers": canonical_dimensions(shown["dimension_numbers"]), **absent, **{
        k: v for k, v in shown.items() if k != "dimension_numbers"}}  # fmt: skip


dot_general = Primitive(
    "dot_general",
    type=_dot_type,
    lower=_lower_dot,
    bilinear=(0, 1),
    transpose=_dot_transpose,
    batch=_dot_batch,
    show=_show,
    read=_read,
)


def dot(lhs: Any, rhs: Any, numbers: Any, precision: PrecisionLike = None, preferred: Any = None) -> Any:
    """`dot_general` with dimension numbers and precision in any of the forms that users may write."""
    return dot_general(
        lhs,
        rhs,
        dimension_numbers=canonical_dimensions(numbers),
        precision=canonical_precision(precision),
        preferred_element_type=preferred,
        out_sharding=None,
    )
