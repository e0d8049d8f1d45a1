"""Elementwise functions of lax: thin wrappers of the primitives, which say what they compute and of which dtypes."""

import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.primitive import Primitive
from morphax.ir.show import readable
from morphax.lax.arguments import numbers, operand, operands
from morphax.ops import elementwise as ew
from morphax.ops import special
from morphax.ops.elementwise import RoundingMethod
from morphax.runtime import array, backend, eager
from morphax.support import dtypes, tree

# ---- what the tables are made with -----------------------------------------------------------------------------------

_KINDS = {
    "f": "floats",
    "fc": "floats or complex numbers",
    "c": "complex numbers",
    "fciu": "any numbers",
    "fiu": "real numbers",
    "fciub": "numbers or bools",
    "fiub": "real numbers or bools",
    "iu": "integers",
    "iub": "integers or bools",
}


def _document(fun: Callable[..., Any], name: str, summary: str, args: str, example: Sequence[str]) -> None:
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"{summary}\n\nArgs:\n    {args}\n\n>>> print({example[0]})\n{example[1]}\n"


def _unary(name: str, prim: Primitive, kinds: str, summary: str, *example: str) -> Callable[[Any], Any]:
    def fun(x: Any) -> Any:
        return prim(operand(name, x))

    _document(fun, name, summary, f"x: array of {_KINDS[kinds]}.", example)
    return fun


def _accurate(name: str, prim: Primitive, summary: str, *example: str) -> Callable[..., Any]:
    def fun(x: Any, *, accuracy: Any = None) -> Any:
        if accuracy is None:
            return prim(operand(name, x))
        return prim(operand(name, x), accuracy=_checked_accuracy(name, accuracy))

    args = (
        f"x: array of {_KINDS['fc']}.\n"
        "    accuracy: a `Tolerance` or an `AccuracyMode`, a request to the compiler; None for its default."
    )
    _document(fun, name, summary, args, example)
    return fun


def _binary(name: str, prim: Primitive, kinds: str, summary: str, *example: str) -> Callable[[Any, Any], Any]:
    def fun(x: Any, y: Any) -> Any:
        return prim(*operands(name, (x, y)))

    args = f"x: array of {_KINDS[kinds]}.\n    y: another of the same dtype, and of the same shape or a scalar."
    _document(fun, name, summary, args, example)
    return fun


@readable
class AccuracyMode(enum.Enum):
    """How accurate an elementary function shall be: as the platform's default, or as well as it can.

    >>> print(exp(0.0, accuracy=AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2

    @property
    def attribute(self) -> str:
        """In MLIR's syntax."""
        return f"#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<{self.name}>>"


@readable
class Tolerance:
    """Largest error that an elementary function may have: absolute, relative, and in units in the last place.

    >>> print(exp(0.0, accuracy=Tolerance(rtol=1e-3)))
    1.0
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerance: atol {atol}, rtol {rtol} and ulps {ulps} must not be negative.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    @property
    def attribute(self) -> str:
        """In MLIR's syntax."""
        return (
            f"#stablehlo.result_accuracy<atol = {float(self.atol):e}, rtol = {float(self.rtol):e}, "
            f"ulps = {self.ulps}, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tolerance) and self.attribute == other.attribute

    def __hash__(self) -> int:
        return hash(self.attribute)

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def _checked_accuracy(name: str, accuracy: Any) -> Any:
    if not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"{name}: accuracy must be a Tolerance or an AccuracyMode; it is {accuracy!r}.")
    return accuracy


# ---- arithmetic ------------------------------------------------------------------------------------------------------

neg = _unary("neg", ew.neg, "fciu", "Each element of `x` with the other sign: -x.", "neg(2.0)", "-2.0")
sign = _unary(
    "sign", ew.sign, "fciu",
    "Sign of each element: -1, 0 or 1; NaN for NaN; x/|x|, or 0 at 0, for complex numbers.", "sign(-3.0)", "-1.0",
)  # fmt: skip
abs = _unary("abs", ew.abs, "fciu", "Absolute value of each element, real also for complex `x`.", "abs(3 - 4j)", "5.0")
add = _binary("add", ew.add, "fciu", "Sum x + y.", "add(1.0, 2.5)", "3.5")
sub = _binary("sub", ew.sub, "fciu", "Difference x - y.", "sub(1.0, 2.5)", "-1.5")
div = _binary(
    "div", ew.div, "fciu",
    "Quotient x / y. That of integers is rounded towards 0; division by 0 gives all bits set, which is -1.",
    "div(-7, 2)", "-3",
)  # fmt: skip
rem = _binary(
    "rem", ew.rem, "fiu", "Remainder of x / y, with the sign of `x`. For integers it is `x` where y = 0.",
    "rem(-7, 2)", "-1",
)  # fmt: skip
max = _binary(
    "max", ew.max, "fciub",
    "Larger of x and y, NaN where one is NaN; complex numbers are ordered by real, then by imaginary parts. The "
    "derivative is shared evenly where both are equal.",
    "max(1.0, 2.0)", "2.0",
)  # fmt: skip
min = _binary(
    "min", ew.min, "fciub",
    "Smaller of x and y, NaN where one is NaN; complex numbers are ordered by real, then by imaginary parts. The "
    "derivative is shared evenly where both are equal.",
    "min(1.0, 2.0)", "1.0",
)  # fmt: skip
square = _unary("square", ew.square, "fciu", "Square of each element.", "square(-3)", "9")
atan2 = _binary(
    "atan2", ew.atan2, "fc", "Angle in radians, from -pi to pi, of the point with ordinate `x` and abscissa `y`.",
    "atan2(0.0, -1.0)", "3.1415927",
)  # fmt: skip


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """Product x * y.

    Args:
        x: array of any numbers.
        y: another of the same dtype, and of the same shape or a scalar.
        out_dtype: dtype in which to multiply and of the result; that of the operands without it.

    >>> print(mul(3.0, 2.5))
    7.5
    """
    x, y = operands("mul", (x, y))
    if out_dtype is not None:
        dtype = dtypes.named_dtype(out_dtype)
        x, y = ew.convert(x, dtype), ew.convert(y, dtype)
    return ew.mul(x, y)


def mulhi(x: Any, y: Any, /) -> Any:
    """Upper half of the bits of the exact product of two integers.

    Args:
        x: array of integers.
        y: another of the same dtype, and of the same shape or a scalar.

    >>> print(mulhi(2**30, 8))
    2
    """
    return ew.mulhi(*operands("mulhi", (x, y)))


def reciprocal(x: Any) -> Any:
    """1 / x of each element.

    Args:
        x: array of floats or complex numbers.

    >>> print(reciprocal(4.0))
    0.25
    """
    return ew.integer_pow(operand("reciprocal", x), y=-1)


def pow(x: Any, y: Any) -> Any:
    """`x` raised to `y`. The derivative with respect to `x` is exact at x = 0 and y = 0 too.

    Args:
        x: array of floats or complex numbers.
        y: exponents of the same dtype, or integers; of the same shape or a scalar.

    >>> print(pow(2.0, 3))
    8.0
    """
    if isinstance(y, int):  # an integer exponent stays one
        return ew.pow(operand("pow", x), operand("pow", y))
    return ew.pow(*operands("pow", (x, y)))


def integer_pow(x: Any, y: Any) -> Any:
    """`x` raised to the static integer `y`, by repeated multiplication.

    Args:
        x: array of any numbers; floats or complex numbers for negative `y`.
        y: int.

    >>> print(integer_pow(3, 4))
    81
    """
    try:
        exponent = operator.index(y)
    except TypeError:
        raise TypeError(f"integer_pow: the exponent must be a static int; it is {y!r}. Use pow instead.") from None
    return ew.integer_pow(operand("integer_pow", x), y=exponent)


def nextafter(x1: Any, x2: Any) -> Any:
    """The floating-point number next to `x1` in the direction of `x2`.

    Args:
        x1: array of floats.
        x2: another of the same dtype, and of the same shape or a scalar.

    >>> print(gt(nextafter(1.0, 2.0), 1.0))
    True
    """
    return ew.nextafter(*operands("nextafter", (x1, x2)))


# ---- rounding --------------------------------------------------------------------------------------------------------

floor = _unary("floor", ew.floor, "f", "Largest integer that is not above each element.", "floor(-1.5)", "-2.0")
ceil = _unary("ceil", ew.ceil, "f", "Smallest integer that is not below each element.", "ceil(-1.5)", "-1.0")
is_finite = _unary(
    "is_finite", ew.is_finite, "f", "Whether each element is neither infinite nor NaN.",
    "is_finite(float('inf'))", "False",
)  # fmt: skip


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Nearest integer to each element.

    Args:
        x: array of floats.
        rounding_method: where halves go, `AWAY_FROM_ZERO` or `TO_NEAREST_EVEN`.

    Raises:
        ValueError: another rounding method.

    >>> print(round(2.5), round(2.5, RoundingMethod.TO_NEAREST_EVEN))
    3.0 2.0
    """
    if rounding_method not in tuple(RoundingMethod):
        raise ValueError(f"round: rounding_method must be a RoundingMethod; it is {rounding_method!r}.")
    return ew.round(operand("round", x), rounding_method=RoundingMethod(rounding_method))


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Floats rounded to a format of fewer bits, in their own dtype. The derivative is that of the identity.

    Args:
        operand: array of floats.
        exponent_bits: at least 1.
        mantissa_bits: at least 0.

    >>> print(reduce_precision(1.2, 5, 2))
    1.25
    """
    bits = {"exponent_bits": operator.index(exponent_bits), "mantissa_bits": operator.index(mantissa_bits)}
    return ew.reduce_precision(numbers("reduce_precision", (operand,))[0], **bits)


# ---- exponentials ----------------------------------------------------------------------------------------------------

exp = _accurate("exp", ew.exp, "e raised to each element.", "exp(0.0)", "1.0")
exp2 = _accurate("exp2", ew.exp2, "2 raised to each element, exact at integers.", "exp2(10.0)", "1024.0")
expm1 = _accurate("expm1", ew.expm1, "exp(x) - 1, accurate for small `x`.", "expm1(0.0)", "0.0")
log = _accurate("log", ew.log, "Natural logarithm of each element; NaN for negative ones.", "log(1.0)", "0.0")
log1p = _accurate("log1p", ew.log1p, "log(1 + x), accurate for small `x`.", "log1p(0.0)", "0.0")
logistic = _accurate("logistic", ew.logistic, "The sigmoid 1 / (1 + exp(-x)).", "logistic(0.0)", "0.5")
sqrt = _accurate("sqrt", ew.sqrt, "Square root of each element; NaN for negative ones.", "sqrt(9.0)", "3.0")
rsqrt = _accurate("rsqrt", ew.rsqrt, "1 / sqrt(x) of each element.", "rsqrt(4.0)", "0.5")
cbrt = _accurate("cbrt", ew.cbrt, "Real cube root of each element, of negative ones too.", "cbrt(-8.0)", "-2.0")

# ---- trigonometry ----------------------------------------------------------------------------------------------------

sin = _accurate("sin", ew.sin, "Sine of each element, in radians.", "sin(0.0)", "0.0")
cos = _accurate("cos", ew.cos, "Cosine of each element, in radians.", "cos(0.0)", "1.0")
tan = _accurate("tan", ew.tan, "Tangent of each element, in radians.", "tan(0.0)", "0.0")
tanh = _accurate("tanh", ew.tanh, "Hyperbolic tangent of each element.", "tanh(0.0)", "0.0")
asin = _unary("asin", ew.asin, "fc", "Arc sine, in radians from -pi/2 to pi/2.", "asin(0.0)", "0.0")
acos = _unary("acos", ew.acos, "fc", "Arc cosine, in radians from 0 to pi.", "acos(1.0)", "0.0")
atan = _unary("atan", ew.atan, "fc", "Arc tangent, in radians from -pi/2 to pi/2.", "atan(0.0)", "0.0")
sinh = _unary("sinh", ew.sinh, "fc", "Hyperbolic sine of each element.", "sinh(0.0)", "0.0")
cosh = _unary("cosh", ew.cosh, "fc", "Hyperbolic cosine of each element.", "cosh(0.0)", "1.0")
asinh = _unary("asinh", ew.asinh, "fc", "Inverse hyperbolic sine of each element.", "asinh(0.0)", "0.0")
acosh = _unary("acosh", ew.acosh, "fc", "Inverse hyperbolic cosine; NaN below 1.", "acosh(1.0)", "0.0")
atanh = _unary("atanh", ew.atanh, "fc", "Inverse hyperbolic tangent; NaN outside [-1, 1].", "atanh(0.0)", "0.0")

# ---- special functions -----------------------------------------------------------------------------------------------

erf = _unary("erf", special.erf, "f", "Error function: 2/sqrt(pi) times the integral of exp(-t^2) to `x`.", "erf(0.0)", "0.0")  # fmt: skip # noqa: E501
erfc = _unary("erfc", special.erfc, "f", "1 - erf(x), accurate for large `x`.", "erfc(0.0)", "1.0")
erf_inv = _unary("erf_inv", special.erf_inv, "f", "The number whose error function is `x`.", "erf_inv(0.0)", "0.0")
lgamma = _unary("lgamma", special.lgamma, "f", "log |gamma(x)|.", "lgamma(5.0)", "3.1780548")
digamma = _unary(
    "digamma", special.digamma, "f", "Logarithmic derivative of the gamma function.", "digamma(0.5)", "-1.96351"
)


def polygamma(m: Any, x: Any) -> Any:
    """Derivative of order `m` of `digamma` at `x`. There is no derivative with respect to `m`.

    Args:
        m: array of floats with integral values that are not negative.
        x: another of the same dtype, and of the same shape or a scalar.

    >>> print(polygamma(1.0, 1.0))
    1.644934
    """
    return special.polygamma(*operands("polygamma", (m, x)))


def zeta(x: Any, q: Any) -> Any:
    """Hurwitz zeta function: the sum of (q + k)^-x over k >= 0. There is no derivative with respect to `x`.

    Args:
        x: array of floats above 1.
        q: another of the same dtype, and of the same shape or a scalar.

    >>> print(zeta(2.0, 1.0))
    1.644934
    """
    return special.zeta(*operands("zeta", (x, q)))


# ---- complex numbers -------------------------------------------------------------------------------------------------

real = _unary("real", ew.real, "c", "Real part of each element.", "real(3 - 4j)", "3.0")
imag = _unary("imag", ew.imag, "c", "Imaginary part of each element.", "imag(3 - 4j)", "-4.0")


def complex(x: Any, y: Any) -> Any:
    """The complex numbers with real parts `x` and imaginary parts `y`.

    Args:
        x: array of float32 or float64.
        y: another of the same dtype, and of the same shape or a scalar.

    >>> print(complex(3.0, -4.0))
    (3-4j)
    """
    return ew.complex(*operands("complex", (x, y)))


def conj(x: Any) -> Any:
    """Complex conjugate of each element; complex also for real `x`.

    Args:
        x: array of floats or complex numbers.

    >>> print(conj(3 - 4j))
    (3+4j)
    """
    x = operand("conj", x)
    return ew.conj(x, input_dtype=avals.operand_type(x).dtype)


# ---- comparisons and bits --------------------------------------------------------------------------------------------

eq = _binary("eq", ew.eq, "fciub", "Whether x = y, a bool; NaN equals nothing.", "eq(1, 2)", "False")
ne = _binary("ne", ew.ne, "fciub", "Whether x and y differ, a bool; NaN differs from everything.", "ne(1, 2)", "True")
lt = _binary("lt", ew.lt, "fiub", "Whether x < y, a bool.", "lt(1, 2)", "True")
le = _binary("le", ew.le, "fiub", "Whether x <= y, a bool.", "le(1, 2)", "True")
gt = _binary("gt", ew.gt, "fiub", "Whether x > y, a bool.", "gt(1, 2)", "False")
ge = _binary("ge", ew.ge, "fiub", "Whether x >= y, a bool.", "ge(1, 2)", "False")
bitwise_not = _unary("bitwise_not", ew.not_, "iub", "Each bit of `x` inverted.", "bitwise_not(5)", "-6")
bitwise_and = _binary("bitwise_and", ew.and_, "iub", "Bits set in both x and y.", "bitwise_and(6, 3)", "2")
bitwise_or = _binary("bitwise_or", ew.or_, "iub", "Bits set in x or y.", "bitwise_or(6, 3)", "7")
bitwise_xor = _binary("bitwise_xor", ew.xor, "iub", "Bits set in one of x and y alone.", "bitwise_xor(6, 3)", "5")
shift_left = _binary(
    "shift_left", ew.shift_left, "iu", "Bits of `x` moved up by `y`; 0 where `y` is negative or at least the width.",
    "shift_left(3, 2)", "12",
)  # fmt: skip
shift_right_logical = _binary(
    "shift_right_logical", ew.shift_right_logical, "iu",
    "Bits of `x` moved down by `y`, zeros coming in; 0 where `y` is negative or at least the width.",
    "shift_right_logical(12, 2)", "3",
)  # fmt: skip
shift_right_arithmetic = _binary(
    "shift_right_arithmetic", ew.shift_right_arithmetic, "iu",
    "Bits of `x` moved down by `y`, copies of the highest coming in: floor(x / 2**y).",
    "shift_right_arithmetic(-12, 2)", "-3",
)  # fmt: skip
population_count = _unary(
    "population_count", ew.population_count, "iu", "Number of set bits of each element.", "population_count(7)", "3"
)
clz = _unary("clz", ew.clz, "iu", "Number of leading zero bits of each element.", "clz(1)", "31")

# ---- choices ---------------------------------------------------------------------------------------------------------


def clamp(min: Any, x: Any, max: Any) -> Any:
    """`x` where it lies between `min` and `max`, else the bound that it passes; `max` where the bounds cross.

    Args:
        min: scalar, or array like `x`.
        x: array of numbers or bools.
        max: scalar, or array like `x`.

    >>> print(clamp(0.0, 1.5, 1.0))
    1.0
    """
    at_least, x, at_most = numbers("clamp", (min, x, max))
    return ew.clamp(at_least, x, at_most)


def select_n(which: Any, *cases: Any) -> Any:
    """For each element the one of `cases` that `which` numbers.

    Args:
        which: bool for two cases (False is the first), else int32, of the cases' shape or a scalar. An int below 0 or
            above the last case means the nearest one.
        cases: arrays of equal shapes and dtypes.

    >>> print(select_n(2, 10.0, 20.0, 30.0))
    30.0
    """
    if not cases:
        raise TypeError("select_n: no cases were given. Give at least one after the selector.")
    return ew.select_n(operand("select_n", which), *numbers("select_n", cases))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred` holds, else `on_false`.

    Args:
        pred: bool, of the shape of the others or a scalar.
        on_true: array of any dtype.
        on_false: array of the same shape and dtype.

    >>> print(select(True, 1.0, 2.0))
    1.0
    """
    on_false, on_true = numbers("select", (on_false, on_true))
    return ew.select_n(operand("select", pred), on_false, on_true)


def stop_gradient(x: Any) -> Any:
    """`x` itself, taken for a constant by differentiation.

    Args:
        x: pytree of arrays and numbers.

    >>> from morphax import grad
    >>> print(grad(lambda x: mul(stop_gradient(x), x))(3.0))
    3.0
    """
    if current.trace is eager.EVAL:
        return tree.map(lambda leaf: _checked_leaf(leaf), x)
    return tree.map(lambda leaf: ew.stop_gradient(operand("stop_gradient", leaf)), x)


def _checked_leaf(leaf: Any) -> Any:
    operand("stop_gradient", leaf)
    return leaf


# ---- conversions and constants ---------------------------------------------------------------------------------------


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """`operand` with its elements converted to a dtype: floats to integers towards 0, complex numbers to their real
    parts, numbers to bools by whether they are not 0.

    Args:
        operand: array or number.
        new_dtype: dtype, or a Python type for its default dtype.

    >>> print(convert_element_type(-1.5, int))
    -1
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: new_dtype is None. Name a dtype.")
    dtype = dtypes.named_dtype(new_dtype)
    if hasattr(operand, "aval") or isinstance(dtype, dtypes.ExtendedDType):
        return ew.convert(operand, dtype)
    (x,) = numbers("convert_element_type", (operand,))
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = x.real
    return _put(np.asarray(x).astype(dtype))


def _put(host: np.ndarray, weak: bool = False) -> Any:
    aval = avals.ShapedArray(host.shape, host.dtype, weak)
    return array.put(host, aval, backend.default_device(), committed=False)


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """Array filled with one value.

    Args:
        shape: int or sequence of ints.
        fill_value: number or scalar array.
        dtype: that of `fill_value` without it.
        sharding: where to put the result.

    Raises:
        TypeError: `fill_value` is no scalar, or `shape` has negative sides.

    >>> print(full((2, 2), 7))
    [[7 7]
     [7 7]]
    """
    made = _full("full", shape, fill_value, dtype)
    return made if sharding is None else _sharded("full", made)


def _sharded(name: str, made: Any) -> Any:
    raise NotImplementedError(f"{name}: sharding is not supported yet. Use device_put on the result.")


def _full(name: str, shape: Any, fill_value: Any, dtype: Any, weak: bool = False) -> Any:
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else shape
    sizes = tuple([operator.index(s) for s in sizes])
    if any(s < 0 for s in sizes):
        raise TypeError(f"{name}: shape {sizes} has a negative side. Give sizes of at least 0.")
    value = operand(name, fill_value)
    aval = avals.operand_type(value)
    if aval.shape:
        raise TypeError(f"{name}: fill_value must be a scalar; it has shape {aval.shape}. Use broadcast_in_dim.")
    weak = weak or dtype is None and hasattr(value, "aval") and aval.weak_type
    value = ew.convert(value, aval.dtype if dtype is None else dtypes.named_dtype(dtype), weak)
    if isinstance(value, (np.generic, np.ndarray)) and (not sizes or current.trace is eager.EVAL):
        return _put(np.full(sizes, value), weak)
    made = ew.full(sizes, value)
    return ew.convert(made, avals.operand_type(made).dtype, weak)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None) -> Any:
    """Array filled with one value, of the shape and dtype of `x`.

    Args:
        x: array or number.
        fill_value: number or scalar array.
        dtype: instead of that of `x`.
        shape: instead of that of `x`.
        sharding: where to put the result.

    >>> print(full_like(full(3, 1.0), 2))
    [2. 2. 2.]
    """
    aval = avals.operand_type(operand("full_like", x))
    shape = aval.shape if shape is None else shape
    weak = dtype is None and aval.weak_type
    made = _full("full_like", shape, fill_value, aval.dtype if dtype is None else dtype, weak)
    return made if sharding is None else _sharded("full_like", made)


# ---- the primitives themselves, under the names that JAX gives them --------------------------------------------------

abs_p = ew.abs
acos_p = ew.acos
acosh_p = ew.acosh
add_p = ew.add
and_p = ew.and_
asin_p = ew.asin
asinh_p = ew.asinh
atan2_p = ew.atan2
atan_p = ew.atan
atanh_p = ew.atanh
cbrt_p = ew.cbrt
ceil_p = ew.ceil
clamp_p = ew.clamp
clz_p = ew.clz
complex_p = ew.complex
conj_p = ew.conj
cos_p = ew.cos
cosh_p = ew.cosh
digamma_p = special.digamma
div_p = ew.div
eq_p = ew.eq
eq_to_p = ew.eq_to
erf_inv_p = special.erf_inv
erf_p = special.erf
erfc_p = special.erfc
exp2_p = ew.exp2
exp_p = ew.exp
expm1_p = ew.expm1
floor_p = ew.floor
ge_p = ew.ge
gt_p = ew.gt
imag_p = ew.imag
integer_pow_p = ew.integer_pow
is_finite_p = ew.is_finite
le_p = ew.le
le_to_p = ew.le_to
lgamma_p = special.lgamma
log1p_p = ew.log1p
log_p = ew.log
logistic_p = ew.logistic
lt_p = ew.lt
lt_to_p = ew.lt_to
max_p = ew.max
min_p = ew.min
mul_p = ew.mul
mulhi_p = ew.mulhi
ne_p = ew.ne
neg_p = ew.neg
nextafter_p = ew.nextafter
not_p = ew.not_
or_p = ew.or_
polygamma_p = special.polygamma
population_count_p = ew.population_count
pow_p = ew.pow
real_p = ew.real
reduce_precision_p = ew.reduce_precision
rem_p = ew.rem
round_p = ew.round
rsqrt_p = ew.rsqrt
select_n_p = ew.select_n
shift_left_p = ew.shift_left
shift_right_arithmetic_p = ew.shift_right_arithmetic
shift_right_logical_p = ew.shift_right_logical
sign_p = ew.sign
sin_p = ew.sin
sinh_p = ew.sinh
sqrt_p = ew.sqrt
square_p = ew.square
stop_gradient_p = ew.stop_gradient
sub_p = ew.sub
tan_p = ew.tan
tanh_p = ew.tanh
xor_p = ew.xor
zeta_p = special.zeta
