"""Elementwise functions: NumPy's universal functions, most of them one row of a table each."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import promotion
from morphax.ops import elementwise as ew
from morphax.ops import family, structure
from morphax.runtime.jit import program
from morphax.support import dtypes, tracebacks
from morphax.support.tracebacks import api_boundary

typeof = avals.operand_type

# ---- what tables are made with ---------------------------------------------------------------------------------------


def _public(fun: Callable[..., Any], name: str, summary: str, example: str, parameters: str) -> Callable[..., Any]:
    """`fun` under its public name, with a docstring and a signature."""
    call, _, result = example.partition(" -> ")
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"{summary}\n\n    >>> from morphax import numpy as jnp\n    >>> {call}\n    {result}\n    "
    kind = inspect.Parameter.POSITIONAL_ONLY
    fun.__signature__ = inspect.Signature([inspect.Parameter(p, kind) for p in parameters.split()])
    return program(literals=" " in parameters)(fun)


def _of_floats(name: str, operation: Any, summary: str, example: str) -> Callable[..., Any]:
    """A function of one floating or complex array; integers and bools are converted."""

    def fun(x: Any, /) -> Any:
        return operation(promotion.inexact(name, x))

    return _public(fun, name, f"{summary}; integers become floats.", example, "x")


def _of_any(name: str, operation: Any, summary: str, example: str) -> Callable[..., Any]:
    """A function of one array, in its own dtype."""

    def fun(x: Any, /) -> Any:
        return operation(promotion.array(name, x))

    return _public(fun, name, f"{summary}.", example, "x")


def _of_two(name: str, operation: Any, summary: str, example: str, parameters: str = "x1 x2") -> Callable[..., Any]:
    """A function of two arrays in their common dtype."""

    def fun(x: Any, y: Any, /) -> Any:
        x, y = promotion.pair(name, x, y)
        return operation(x, y)

    return _public(fun, name, f"{summary}.", example, parameters)


def _of_two_floats(
    name: str, operation: Any, summary: str, example: str, parameters: str = "x1 x2"
) -> Callable[..., Any]:
    """A function of two arrays in their common dtype, made floating."""

    def fun(x: Any, y: Any, /) -> Any:
        x, y = promotion.inexact_pair(name, x, y)
        return operation(x, y)

    return _public(fun, name, f"{summary}; integers become floats.", example, parameters)


class ufunc:
    """An elementwise function with NumPy's methods: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

    Args:
        func: function of `nin` scalars (traced), or of arrays when it broadcasts by itself.
        nin: number of inputs.
        nout: number of outputs.
        name: the function's name.
        identity: the value that a reduction of nothing has.
        call: the function of arrays, where there is one already.
        reduce: function (a, axis, dtype, keepdims, initial, where) used by the method of this name.
        accumulate: function (a, axis, dtype) used by the method of this name.

    >>> from morphax import numpy as jnp
    >>> jnp.add.reduce(jnp.array([1, 2, 3])).item()
    6
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        self.__name__ = self.__qualname__ = name or func.__name__
        self.__doc__ = func.__doc__
        self.__module__ = __name__
        self._counts = (nin, nout, nargs or nin)
        self._identity = identity
        self._call: Any = call or func
        self._reduce = reduce
        self._accumulate = accumulate
        self._at = at
        self._reduceat = reduceat

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        try:
            if out is not None or where is not None:
                raise NotImplementedError(
                    f"{self.__name__}: out= and where= are not supported, since arrays do not change. Use the result, "
                    "and jnp.where."
                )
            if len(args) != self.nin:
                raise TypeError(f"{self.__name__}: takes {self.nin} arrays; {len(args)} were given.")
            return self._call(*args)
        except Exception as error:
            tracebacks.clean(error)
            raise

    nin = property(lambda self: self._counts[0], doc="Number of inputs.")
    nout = property(lambda self: self._counts[1], doc="Number of results.")
    nargs = property(lambda self: self._counts[2], doc="Number of inputs that arrays may be given for.")
    identity = property(lambda self: self._identity, doc="What a reduction of nothing is; None where there is none.")

    @property
    def compiled(self) -> Any:
        return self._call.compiled

    def plain(self, *args: Any) -> Any:
        """The function as it runs under a transform."""
        return self._call.__wrapped__(*args)

    def equip(self, *, reduce: Any, accumulate: Any, at: Any, reduceat: Any) -> None:
        """Give the function its methods; `folds.py` does."""
        self._reduce, self._accumulate, self._at, self._reduceat = reduce, accumulate, at, reduceat

    def _needed(self, method: str, found: Any) -> Any:
        if found is None:
            raise ValueError(
                f"{self.__name__}.{method}: only functions of two arrays have it, by which it was defined."
            )
        return found

    @api_boundary
    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """The function folded over an axis, or over all for axis=None."""
        no_out(self.__name__, out)
        reduce = self._needed("reduce", self._reduce)
        return reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    @api_boundary
    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Running results of the function along an axis."""
        no_out(self.__name__, out)
        return self._needed("accumulate", self._accumulate)(a, axis=axis, dtype=dtype)

    @api_boundary
    def outer(self, A: Any, B: Any, /) -> Any:
        """The function of every element of `A` with every element of `B`."""
        if self.nin != 2:
            raise ValueError(f"{self.__name__}.outer: needs a function of two arrays; this one takes {self.nin}.")
        A = promotion.array(self.__name__, A)
        B = promotion.array(self.__name__, B)
        return self(structure.reshape_to(A, typeof(A).shape + (1,) * typeof(B).ndim), B)

    @api_boundary
    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """`a` with the function applied at `indices`; a new array: pass inplace=False to say that you know."""
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at: arrays do not change. Pass inplace=False and use the result."
            )
        return self._needed("at", self._at)(a, indices, b)

    @api_boundary
    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Reductions of the slices between consecutive `indices`."""
        no_out(self.__name__, out)
        return self._needed("reduceat", self._reduceat)(a, indices, axis, dtype)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"


def no_out(name: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(f"{name}: out= is not supported, since arrays do not change. Use the result.")


# ---- one operand -----------------------------------------------------------------------------------------------------

exp = _of_floats("exp", ew.exp, "e to the power `x`", "jnp.exp(0.0).item() -> 1.0")
exp2 = _of_floats("exp2", ew.exp2, "2 to the power `x`", "jnp.exp2(3.0).item() -> 8.0")
expm1 = _of_floats("expm1", ew.expm1, "exp(x) - 1, exact near 0", "jnp.expm1(0.0).item() -> 0.0")
log = _of_floats("log", ew.log, "Natural logarithm", "jnp.log(1.0).item() -> 0.0")
log1p = _of_floats("log1p", ew.log1p, "log(1 + x), exact near 0", "jnp.log1p(0.0).item() -> 0.0")
sin = _of_floats("sin", ew.sin, "Sine of radians", "jnp.sin(0.0).item() -> 0.0")
cos = _of_floats("cos", ew.cos, "Cosine of radians", "jnp.cos(0.0).item() -> 1.0")
tan = _of_floats("tan", ew.tan, "Tangent of radians", "jnp.tan(0.0).item() -> 0.0")
arcsin = _of_floats("arcsin", ew.asin, "Angle in radians whose sine is `x`", "jnp.arcsin(0.0).item() -> 0.0")
arccos = _of_floats("arccos", ew.acos, "Angle in radians whose cosine is `x`", "jnp.arccos(1.0).item() -> 0.0")
arctan = _of_floats("arctan", ew.atan, "Angle in radians whose tangent is `x`", "jnp.arctan(0.0).item() -> 0.0")
sinh = _of_floats("sinh", ew.sinh, "Hyperbolic sine", "jnp.sinh(0.0).item() -> 0.0")
cosh = _of_floats("cosh", ew.cosh, "Hyperbolic cosine", "jnp.cosh(0.0).item() -> 1.0")
tanh = _of_floats("tanh", ew.tanh, "Hyperbolic tangent", "jnp.tanh(0.0).item() -> 0.0")
arcsinh = _of_floats("arcsinh", ew.asinh, "Inverse of sinh", "jnp.arcsinh(0.0).item() -> 0.0")
arccosh = _of_floats("arccosh", ew.acosh, "Inverse of cosh", "jnp.arccosh(1.0).item() -> 0.0")
arctanh = _of_floats("arctanh", ew.atanh, "Inverse of tanh", "jnp.arctanh(0.0).item() -> 0.0")
sqrt = _of_floats("sqrt", ew.sqrt, "Square root", "jnp.sqrt(4.0).item() -> 2.0")
cbrt = _of_floats("cbrt", ew.cbrt, "Cube root", "jnp.cbrt(0.0).item() -> 0.0")
asin, acos, atan = arcsin, arccos, arctan
asinh, acosh, atanh = arcsinh, arccosh, arctanh


def _scaled(factor: float) -> Callable[[Any], Any]:
    return lambda x: ew.mul(x, family.like(x, factor))


degrees = _of_floats("degrees", _scaled(180 / np.pi), "Radians as degrees", "jnp.degrees(0.0).item() -> 0.0")
radians = _of_floats("radians", _scaled(np.pi / 180), "Degrees as radians", "jnp.radians(0.0).item() -> 0.0")
rad2deg = _of_floats("rad2deg", _scaled(180 / np.pi), "Radians as degrees", "jnp.rad2deg(0.0).item() -> 0.0")
deg2rad = _of_floats("deg2rad", _scaled(np.pi / 180), "Degrees as radians", "jnp.deg2rad(0.0).item() -> 0.0")
log2 = _of_floats(
    "log2", lambda x: _scaled(1 / np.log(2.0))(ew.log(x)), "Logarithm to base 2", "jnp.log2(1.0).item() -> 0.0"
)
log10 = _of_floats(
    "log10", lambda x: _scaled(1 / np.log(10.0))(ew.log(x)), "Logarithm to base 10", "jnp.log10(1.0).item() -> 0.0"
)
reciprocal = _of_floats(
    "reciprocal", lambda x: ew.div(family.like(x, 1), x), "1 / x", "jnp.reciprocal(4.0).item() -> 0.25"
)


def _signed(operation: Any) -> Callable[[Any], Any]:
    """An operation on signed values, the identity on bools and unsigned integers."""
    return lambda x: x if dtypes.kind(typeof(x).dtype) in "bu" else operation(x)


def _rounding(operation: Any) -> Callable[[Any], Any]:
    """An operation on real floats, the identity on integers and bools."""
    return lambda x: x if dtypes.kind(typeof(x).dtype) in "iub" else operation(x)


def _to_nearest(x: Any) -> Any:
    if dtypes.is_complex(typeof(x).dtype):
        return ew.complex(_to_nearest(ew.real(x)), _to_nearest(ew.imag(x)))
    return ew.round(x, rounding_method=ew.RoundingMethod.TO_NEAREST_EVEN)


def _truncated(x: Any) -> Any:
    return ew.select_n(ew.lt(x, family.like(x, 0)), ew.floor(x), ew.ceil(x))


def _conjugate(x: Any) -> Any:
    return ew.conj(x, input_dtype=typeof(x).dtype) if dtypes.is_complex(typeof(x).dtype) else x


def _square(x: Any) -> Any:
    return ew.and_(x, x) if typeof(x).dtype == np.bool_ else ew.square(x)


def _invert(x: Any) -> Any:
    return ew.not_(x)


def _magnitude(x: Any) -> Any:
    if dtypes.is_complex(typeof(x).dtype):
        raise TypeError("fabs: does not accept complex numbers. Use abs.")
    return ew.abs(x)


_MODULUS = "Absolute value; the modulus of complex numbers"
absolute = _of_any("absolute", _signed(ew.abs), _MODULUS, "jnp.absolute(-2).item() -> 2")
abs = _of_any("abs", _signed(ew.abs), _MODULUS, "jnp.abs(-2).item() -> 2")
fabs = _of_floats("fabs", _magnitude, "Absolute value", "jnp.fabs(-1).item() -> 1.0")
sign = _of_any("sign", _signed(ew.sign), "-1, 0 or 1; x/|x| for complex numbers", "jnp.sign(-2.0).item() -> -1.0")
square = _of_any("square", _square, "x * x", "jnp.square(3.0).item() -> 9.0")
floor = _of_any("floor", _rounding(ew.floor), "Greatest integer not above `x`", "jnp.floor(1.5).item() -> 1.0")
ceil = _of_any("ceil", _rounding(ew.ceil), "Least integer not below `x`", "jnp.ceil(1.5).item() -> 2.0")
rint = _of_floats("rint", _to_nearest, "Nearest integer, the even one of two", "jnp.rint(2.5).item() -> 2.0")
conjugate = _of_any("conjugate", _conjugate, "Complex conjugate", "jnp.conjugate(1j).item() -> -1j")
conj = _of_any("conj", _conjugate, "Complex conjugate", "jnp.conj(1j).item() -> -1j")
positive = _of_any("positive", lambda x: x, "`x` itself", "jnp.positive(2).item() -> 2")
_FLIPPED = "Every bit flipped; the negation of bools"
invert = _of_any("invert", _invert, _FLIPPED, "jnp.invert(True).item() -> False")
bitwise_not = _of_any("bitwise_not", _invert, _FLIPPED, "jnp.bitwise_not(0).item() -> -1")
bitwise_invert = _of_any("bitwise_invert", _invert, _FLIPPED, "jnp.bitwise_invert(0).item() -> -1")


@program()
def trunc(x: Any) -> Any:
    """The integer part, rounding towards zero.

    >>> from morphax import numpy as jnp
    >>> jnp.trunc(-1.5).item()
    -1.0
    """
    return _rounding(_truncated)(promotion.array("trunc", x))


@program()
def bitwise_count(x: Any, /) -> Any:
    """Number of bits set in |x|, as uint8.

    >>> from morphax import numpy as jnp
    >>> jnp.bitwise_count(jnp.array([1, 3, -7])).tolist()
    [1, 2, 3]
    """
    x = promotion.numeric("bitwise_count", x)
    return structure.convert(ew.population_count(_signed(ew.abs)(x)), dtypes.uint8)


@program()
def real(val: Any, /) -> Any:
    """Real part; real arrays as they are.

    >>> from morphax import numpy as jnp
    >>> jnp.real(3 + 4j).item()
    3.0
    """
    val = promotion.array("real", val)
    return ew.real(val) if dtypes.is_complex(typeof(val).dtype) else val


@program()
def imag(val: Any, /) -> Any:
    """Imaginary part; zeros for real arrays.

    >>> from morphax import numpy as jnp
    >>> jnp.imag(3 + 4j).item()
    4.0
    """
    val = promotion.array("imag", val)
    return ew.imag(val) if dtypes.is_complex(typeof(val).dtype) else zeros_of(val)


def zeros_of(x: Any) -> Any:
    """Zeros with the shape and dtype of an operand."""
    aval = typeof(x)
    zero = np.zeros((), aval.dtype)
    return ew.broadcast_in_dim(zero, shape=aval.shape, broadcast_dimensions=(), sharding=None)


@program("deg")
def angle(z: Any, deg: bool = False) -> Any:
    """Argument of complex numbers, in radians or degrees.

    >>> from morphax import numpy as jnp
    >>> jnp.angle(1j, deg=True).item()
    90.0
    """
    z = promotion.inexact("angle", z)
    if dtypes.is_complex(typeof(z).dtype):
        re, im = ew.real(z), ew.imag(z)
    else:
        re, im = z, zeros_of(z)
    out = ew.atan2(im, re)
    return ew.mul(out, family.like(out, 180 / np.pi)) if deg else out


@program()
def sinc(x: Any, /) -> Any:
    """sin(pi x) / (pi x), 1 at 0.

    >>> from morphax import numpy as jnp
    >>> jnp.sinc(0.0).item()
    1.0
    """
    x = promotion.inexact("sinc", x)
    turned = ew.mul(x, family.like(x, np.pi))
    # Near 0 the quotient and all its derivatives are those of the polynomial 1 - t^2/6 + t^4/120 - t^6/5040.
    size = ew.abs(turned)
    small = ew.lt(size, family.like(size, 0.05))
    safe = ew.select_n(small, turned, family.like(x, 1))
    t2 = ew.square(ew.select_n(small, family.like(x, 0), turned))
    series = family.like(x, -1 / 5040)
    for coefficient in (1 / 120, -1 / 6, 1.0):
        series = ew.add(ew.mul(series, t2), family.like(x, coefficient))
    return ew.select_n(small, ew.div(ew.sin(safe), safe), series)


# ---- tests -----------------------------------------------------------------------------------------------------------


def _constant(x: Any, value: bool) -> Any:
    shape = typeof(x).shape
    return ew.broadcast_in_dim(np.asarray(value), shape=shape, broadcast_dimensions=(), sharding=None)


def _is_finite(x: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.is_complex(dtype):
        return ew.and_(ew.is_finite(ew.real(x)), ew.is_finite(ew.imag(x)))
    return ew.is_finite(x) if dtypes.is_float(dtype) else _constant(x, True)


def _is_inf(x: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.is_complex(dtype):
        return ew.or_(_is_inf(ew.real(x)), _is_inf(ew.imag(x)))
    return ew.eq(ew.abs(x), family.like(x, np.inf)) if dtypes.is_float(dtype) else _constant(x, False)


def _is_nan(x: Any) -> Any:
    return ew.ne(x, x) if dtypes.is_inexact(typeof(x).dtype) else _constant(x, False)


isfinite = _of_any("isfinite", _is_finite, "Whether neither infinite nor NaN", "jnp.isfinite(1.0).item() -> True")
isinf = _of_any("isinf", _is_inf, "Whether infinite", "jnp.isinf(jnp.inf).item() -> True")
isnan = _of_any("isnan", _is_nan, "Whether NaN", "jnp.isnan(jnp.nan).item() -> True")


def _infinity(name: str, x: Any, out: Any, value: float) -> Any:
    no_out(name, out)
    x = promotion.array(name, x)
    dtype = typeof(x).dtype
    if dtypes.is_complex(dtype):
        raise ValueError(f"{name}: does not accept complex numbers, which have no sign. Use isinf.")
    return ew.eq(x, family.like(x, value)) if dtypes.is_float(dtype) else _constant(x, False)


@program()
def isposinf(x: Any, /, out: None = None) -> Any:
    """Whether +infinity.

    >>> from morphax import numpy as jnp
    >>> jnp.isposinf(-jnp.inf).item()
    False
    """
    return _infinity("isposinf", x, out, np.inf)


@program()
def isneginf(x: Any, /, out: None = None) -> Any:
    """Whether -infinity.

    >>> from morphax import numpy as jnp
    >>> jnp.isneginf(-jnp.inf).item()
    True
    """
    return _infinity("isneginf", x, out, -np.inf)


@program()
def isreal(x: Any) -> Any:
    """Whether the imaginary part is 0.

    >>> from morphax import numpy as jnp
    >>> jnp.isreal(jnp.array([1j, 2.0])).tolist()
    [False, True]
    """
    x = promotion.array("isreal", x)
    if not dtypes.is_complex(typeof(x).dtype):
        return _constant(x, True)
    return ew.eq(ew.imag(x), family.like(ew.imag(x), 0))


@program()
def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is not 0.

    >>> from morphax import numpy as jnp
    >>> jnp.iscomplex(jnp.array([1j, 2.0])).tolist()
    [True, False]
    """
    return ew.not_(isreal(x))


def _sign_bit(x: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.is_float(dtype):
        bits = dtypes.itemsize_bits(dtype)
        word = dtypes.BY_NAME[f"int{bits}"]
        return ew.lt(structure.bitcast_convert_type(x, new_dtype=word), family.scalar(0, word))
    return ew.lt(x, family.like(x, 0))


signbit = _of_any(
    "signbit", _sign_bit, "Whether the sign bit is set, also of -0 and NaN", "jnp.signbit(-0.0).item() -> True"
)


def truth(name: str, x: Any) -> Any:
    """An argument as bools: whether it is not 0."""
    x = promotion.array(name, x)
    dtype = typeof(x).dtype
    return x if dtype == np.bool_ else ew.ne(x, family.like(x, 0))


@program()
def logical_not(x: Any, /) -> Any:
    """Whether 0 or False.

    >>> from morphax import numpy as jnp
    >>> jnp.logical_not(jnp.array([0, 2])).tolist()
    [True, False]
    """
    return ew.not_(truth("logical_not", x))


# ---- two operands ----------------------------------------------------------------------------------------------------


def _divided(x: Any, y: Any) -> Any:
    return ew.div(x, y)


divide = _of_two_floats("divide", _divided, "x1 / x2", "jnp.divide(3, 2).item() -> 1.5")
true_divide = _of_two_floats("true_divide", _divided, "x1 / x2", "jnp.true_divide(3, 2).item() -> 1.5")


def _floor_of_quotient(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.is_unsigned(dtype):
        return ew.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = ew.div(x, y)
        rest = ew.rem(x, y)
        # Division of integers rounds towards zero; one less where the signs differ and something is left.
        lower = ew.and_(ew.ne(rest, family.like(x, 0)), ew.ne(ew.sign(rest), ew.sign(y)))
        return ew.select_n(lower, quotient, ew.sub(quotient, family.like(x, 1)))
    _no_complex("floor_divide", dtype)
    rest = _floored_rest(x, y)
    # x - rest is a multiple of y up to rounding: the nearest integer to the quotient is exact.
    quotient = _to_nearest(ew.div(ew.sub(x, rest), y))
    ratio = ew.div(x, y)
    # By an infinity: -1 where the signs differ, for then the rest is the infinity; else 0.
    beyond = ew.select_n(ew.eq(rest, y), ratio, family.like(y, -1))
    quotient = ew.select_n(ew.eq(ew.abs(y), family.like(y, np.inf)), quotient, beyond)
    return ew.select_n(ew.eq(y, family.like(y, 0)), quotient, ratio)


def _floored_rest(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    rest = ew.rem(x, y)
    _no_complex("remainder", dtype)
    zero = family.like(x, 0)
    if dtypes.is_integer(dtype):  # the rest of a division by zero is zero, as in NumPy
        rest = ew.select_n(ew.eq(y, zero), rest, zero)
    if dtypes.is_unsigned(dtype):
        return rest
    below = ew.lt(y, zero)
    other = ew.and_(ew.ne(rest, zero), ew.ne(ew.lt(rest, zero), below))
    out = ew.select_n(other, rest, ew.add(rest, y))
    if dtypes.is_integer(dtype):
        return out
    # A rest of 0 has the sign of y. (rest + x) - x is +0 with the derivative of the rest.
    plus = ew.sub(ew.add(rest, x), x)
    minus = ew.neg(ew.sub(ew.sub(x, rest), x))
    return ew.select_n(ew.eq(rest, zero), out, ew.select_n(below, plus, minus))


def _no_complex(name: str, dtype: Any) -> None:
    if dtypes.is_complex(dtype):
        raise TypeError(f"{name}: does not accept complex numbers. Take real or imaginary parts first.")


def _numbers_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Operands of one numeric dtype: two bools become int32."""
    x, y = promotion.pair(name, x, y)
    if typeof(x).dtype == np.bool_:
        int_dtype = dtypes.default_int_dtype()
        return promotion.as_dtype(x, int_dtype), promotion.as_dtype(y, int_dtype)
    return x, y


def _of_two_numbers(name: str, operation: Any, summary: str, example: str) -> Callable[..., Any]:
    def fun(x: Any, y: Any, /) -> Any:
        return operation(*_numbers_pair(name, x, y))

    return _public(fun, name, f"{summary}.", example, "x1 x2")


floor_divide = _of_two_numbers(
    "floor_divide", _floor_of_quotient, "Greatest integer not above x1 / x2", "jnp.floor_divide(-7, 2).item() -> -4"
)
_REST = "Rest of the division that rounds down; it has the sign of x2"
remainder = _of_two_numbers("remainder", _floored_rest, _REST, "jnp.remainder(-7, 2).item() -> 1")
mod = _of_two_numbers("mod", _floored_rest, _REST, "jnp.mod(-7, 2).item() -> 1")
fmod = _of_two_numbers(
    "fmod",
    ew.rem,
    "Rest of the division that rounds towards zero; it has the sign of x1",
    "jnp.fmod(-7, 2).item() -> -1",
)


@program(literals=True)
def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    """Quotient rounded down, and rest.

    >>> from morphax import numpy as jnp
    >>> [v.item() for v in jnp.divmod(7, 2)]
    [3, 1]
    """
    x, y = _numbers_pair("divmod", x1, x2)
    return _floor_of_quotient(x, y), _floored_rest(x, y)


@program()
def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """Fractional and integer parts, both with the sign of `x`.

    >>> from morphax import numpy as jnp
    >>> [v.item() for v in jnp.modf(-1.5)]
    [-0.5, -1.0]
    """
    no_out("modf", out)
    x = promotion.inexact("modf", x)
    whole = _truncated(x)
    rest = ew.select_n(_is_inf(x), ew.sub(x, whole), family.like(x, 0))
    return rest, whole


# ---- powers ----------------------------------------------------------------------------------------------------------


def power_static(x: Any, exponent: int) -> Any:
    """`x` to a power that is part of the program."""
    x = promotion.numeric("power", x)
    if exponent == 2:
        return ew.integer_pow(x, y=2)
    if exponent < 0 and dtypes.is_integer(typeof(x).dtype):
        raise ValueError(
            f"power: Integers cannot be raised to negative powers; the exponent is {exponent}. Convert the base: "
            "x.astype(float)."
        )
    return ew.integer_pow(x, y=exponent)


power_of = program("exponent")(power_static)


def _integer_power(x: Any, y: Any) -> Any:
    """Integers to integer powers, by squaring; negative powers of anything but 1 and -1 are 0."""
    one, zero = family.like(x, 1), family.like(x, 0)
    bits = dtypes.itemsize_bits(typeof(x).dtype)
    result: Any = None
    square_of, left = x, y
    for k in range(bits - (not dtypes.is_unsigned(typeof(x).dtype))):
        factor = ew.select_n(ew.ne(ew.and_(left, one), zero), one, square_of)
        result = factor if result is None else ew.mul(result, factor)
        left = ew.shift_right_logical(left, one)
        square_of = ew.mul(square_of, square_of) if k + 2 < bits else square_of
    if dtypes.is_unsigned(typeof(x).dtype):
        return result
    odd = ew.ne(ew.and_(y, one), zero)
    inverse = ew.select_n(ew.eq(x, one), ew.select_n(ew.eq(x, family.like(x, -1)), zero, _sign_of_power(odd, x)), one)
    return ew.select_n(ew.lt(y, zero), result, inverse)


def _sign_of_power(odd: Any, x: Any) -> Any:
    return ew.select_n(odd, family.like(x, 1), family.like(x, -1))


@program(literals=True)
def _general_power(x1: Any, x2: Any, /) -> Any:
    x, y = _numbers_pair("power", x1, x2)
    if typeof(x).weak_type and not typeof(y).weak_type:  # the primitive's result is as weak as its base
        x = structure.convert(x, typeof(x).dtype, False)
    return _integer_power(x, y) if dtypes.is_integer(typeof(x).dtype) else ew.pow(x, y)


_POWER = "x1 to the power x2; integers stay integers, and must not have negative powers. An int as x2 is static."


def _power(name: str) -> Callable[..., Any]:
    def fun(x1: Any, x2: Any, /) -> Any:
        if x2.__class__ is int and x1.__class__ not in _PYTHON_NUMBERS:
            return power_of(x1, exponent=x2)
        return _general_power(x1, x2)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = f"{_POWER}\n\n    >>> from morphax import numpy as jnp\n    >>> jnp.{name}(2, 3).item()\n    8\n    "
    return fun


_PYTHON_NUMBERS = (bool, int, float, complex)
power = _power("power")
pow = _power("pow")


def _float_power(x: Any, y: Any) -> Any:
    return ew.pow(x, y)


float_power = _of_two_floats(
    "float_power", _float_power, "x to the power y", "jnp.float_power(2, -1).item() -> 0.5", "x y"
)
arctan2 = _of_two_floats(
    "arctan2", ew.atan2, "Angle in radians of the point (x2, x1)", "jnp.arctan2(0.0, 1.0).item() -> 0.0"
)
atan2 = _of_two_floats("atan2", ew.atan2, "Angle in radians of the point (x2, x1)", "jnp.atan2(0.0, 1.0).item() -> 0.0")
nextafter = _of_two_floats(
    "nextafter", ew.nextafter, "Next float after x, towards y", "jnp.nextafter(0.0, 0.0).item() -> 0.0", "x y"
)


def _hypotenuse(x: Any, y: Any) -> Any:
    # Scaled by the greater leg, so that no square overflows or vanishes.
    x, y = _signed(ew.abs)(x), _signed(ew.abs)(y)
    longer, shorter = ew.max(x, y), ew.min(x, y)
    zero = family.like(longer, 0)
    plain = ew.or_(ew.eq(longer, zero), ew.eq(longer, family.like(longer, np.inf)))
    safe = ew.select_n(plain, longer, family.like(longer, 1))
    ratio = ew.select_n(plain, ew.div(shorter, safe), zero)
    out = ew.mul(longer, ew.sqrt(ew.add(ew.square(ratio), family.like(x, 1))))
    infinite = ew.or_(_is_inf(x), _is_inf(y))  # whatever the other leg is, NaN included
    return ew.select_n(infinite, out, ew.full(typeof(out).shape, family.like(out, np.inf)))


hypot = _of_two_floats(
    "hypot", _hypotenuse, "sqrt(x1^2 + x2^2), without overflow between", "jnp.hypot(3, 4).item() -> 5.0"
)


def _copy_sign(x: Any, y: Any) -> Any:
    size = ew.abs(x)
    return ew.select_n(_sign_bit(y), size, ew.neg(size))


copysign = _of_two_floats("copysign", _copy_sign, "|x1| with the sign of x2", "jnp.copysign(2.0, -1.0).item() -> -2.0")


def _heaviside(x: Any, y: Any) -> Any:
    zero, one = family.like(x, 0), family.like(x, 1)
    step = ew.select_n(ew.lt(x, zero), ew.select_n(ew.gt(x, zero), y, one), zero)
    return ew.select_n(ew.ne(x, x), step, x)


heaviside = _of_two_floats(
    "heaviside", _heaviside, "0 below 0, 1 above, x2 at 0", "jnp.heaviside(0.0, 0.5).item() -> 0.5"
)


@program()
def ldexp(x1: Any, x2: Any, /) -> Any:
    """x1 * 2**x2.

    >>> from morphax import numpy as jnp
    >>> jnp.ldexp(3.0, 2).item()
    12.0
    """
    exponent = promotion.numeric("ldexp", x2)
    if not dtypes.is_integer(typeof(exponent).dtype):
        raise ValueError(f"ldexp: x2 must have an integer dtype; it has {typeof(exponent).dtype.name}.")
    x = promotion.inexact("ldexp", x1)
    x, exponent = promotion.align("ldexp", (x, exponent))
    # In two halves, so that neither power of two overflows where the result does not.
    half = ew.shift_right_arithmetic(exponent, family.like(exponent, 1))
    rest = ew.sub(exponent, half)
    for part in (half, rest):
        x = ew.mul(x, ew.exp2(structure.convert(part, typeof(x).dtype, typeof(x).weak_type)))
    return x


# ---- functions with methods ------------------------------------------------------------------------------------------


def _ufunc(name: str, fun: Callable[..., Any], nin: int, summary: str, example: str, identity: Any = None) -> ufunc:
    call = _public(fun, name, summary, example, "x" if nin == 1 else "x1 x2")
    return ufunc(call, nin, 1, name=name, identity=identity)


def _paired(name: str, operation: Any) -> Callable[..., Any]:
    def fun(x: Any, y: Any, /) -> Any:
        x, y = promotion.pair(name, x, y)
        return operation(x, y)

    return fun


def _logical(name: str, operation: Any) -> Callable[..., Any]:
    def fun(x: Any, y: Any, /) -> Any:
        return operation(*promotion.align(name, (truth(name, x), truth(name, y))))

    return fun


def _negative(x: Any, /) -> Any:
    x = promotion.array("negative", x)
    if typeof(x).dtype == np.bool_:
        raise TypeError("negative: bools have no negative. Use logical_not, or convert to integers.")
    return ew.neg(x)


def _log_sum(name: str, exponential: Any, logarithm1p: Any) -> Callable[..., Any]:
    def fun(x: Any, y: Any, /) -> Any:
        x, y = promotion.inexact_pair(name, x, y)
        if dtypes.is_complex(typeof(x).dtype):
            return _complex_log_sum(name, x, y)
        # max + log(1 + exp(min - max)); equal infinities have no difference. Chosen, not folded: either choice is the
        # same smooth function, so that derivatives of every order are right also where x = y.
        most, least = _greater_first(x, y)
        gap = ew.sub(least, most)
        same = ew.ne(gap, gap)
        gap = ew.select_n(same, gap, family.like(gap, 0))
        total = ew.add(most, logarithm1p(exponential(gap)))
        return ew.select_n(same, total, ew.add(x, y))

    return fun


def _greater_first(x: Any, y: Any) -> tuple[Any, Any]:
    """The operand with the greater real part, and the other one."""
    first = ew.ge(ew.real(x), ew.real(y)) if dtypes.is_complex(typeof(x).dtype) else ew.ge(x, y)
    return ew.select_n(first, y, x), ew.select_n(first, x, y)


def _complex_log_sum(name: str, x: Any, y: Any) -> Any:
    if name == "logaddexp2":
        raise NotImplementedError("logaddexp2: does not accept complex numbers. Use logaddexp.")
    most, least = _greater_first(x, y)
    return ew.add(most, ew.log1p(ew.exp(ew.sub(least, most))))


def _log2_1p(x: Any) -> Any:
    return ew.mul(ew.log1p(x), family.like(x, 1 / np.log(2.0)))


add = _ufunc("add", _paired("add", ew.add), 2, "x1 + x2; the logical or of bools.", "jnp.add(1, 2).item() -> 3", 0)
subtract = _ufunc("subtract", _paired("subtract", ew.sub), 2, "x1 - x2.", "jnp.subtract(1, 2).item() -> -1")
multiply = _ufunc("multiply", _paired("multiply", ew.mul), 2, "x1 * x2.", "jnp.multiply(2, 3).item() -> 6", 1)
negative = _ufunc("negative", _negative, 1, "-x.", "jnp.negative(2).item() -> -2")
maximum = _ufunc(
    "maximum", _paired("maximum", ew.max), 2, "The greater of both, or NaN.", "jnp.maximum(1, 2).item() -> 2"
)
minimum = _ufunc("minimum", _paired("minimum", ew.min), 2, "The less of both, or NaN.", "jnp.minimum(1, 2).item() -> 1")
logaddexp = _ufunc(
    "logaddexp", _log_sum("logaddexp", ew.exp, ew.log1p), 2, "log(exp(x1) + exp(x2)), without overflow.",
    "jnp.logaddexp(-jnp.inf, 0.0).item() -> 0.0", -np.inf,
)  # fmt: skip
logaddexp2 = _ufunc(
    "logaddexp2", _log_sum("logaddexp2", ew.exp2, _log2_1p), 2, "log2(2**x1 + 2**x2), without overflow.",
    "jnp.logaddexp2(-jnp.inf, 0.0).item() -> 0.0", -np.inf,
)  # fmt: skip
bitwise_and = _ufunc(
    "bitwise_and", _paired("bitwise_and", ew.and_), 2, "Bits set in both.", "jnp.bitwise_and(6, 3).item() -> 2", -1
)
bitwise_or = _ufunc(
    "bitwise_or", _paired("bitwise_or", ew.or_), 2, "Bits set in either.", "jnp.bitwise_or(6, 3).item() -> 7", 0
)
bitwise_xor = _ufunc(
    "bitwise_xor", _paired("bitwise_xor", ew.xor), 2, "Bits set in one only.", "jnp.bitwise_xor(6, 3).item() -> 5", 0
)
logical_and = _ufunc(
    "logical_and",
    _logical("logical_and", ew.and_),
    2,
    "Whether both are not 0.",
    "jnp.logical_and(2, 0).item() -> False",
    True,
)
logical_or = _ufunc(
    "logical_or",
    _logical("logical_or", ew.or_),
    2,
    "Whether either is not 0.",
    "jnp.logical_or(2, 0).item() -> True",
    False,
)
logical_xor = _ufunc(
    "logical_xor",
    _logical("logical_xor", ew.xor),
    2,
    "Whether one only is not 0.",
    "jnp.logical_xor(2, 0).item() -> True",
    False,
)


def _beside_nan(name: str, operation: Any, example: str) -> Callable[..., Any]:
    def fun(x1: Any, x2: Any) -> Any:
        x, y = promotion.pair(name, x1, x2)
        best = operation(x, y)
        if not dtypes.is_inexact(typeof(x).dtype):
            return best
        return ew.select_n(ew.ne(x, x), ew.select_n(ew.ne(y, y), best, x), y)

    call, _, result = example.partition(" -> ")
    fun.__name__ = fun.__qualname__ = name
    example_text = f">>> from morphax import numpy as jnp\n    >>> {call}\n    {result}"
    fun.__doc__ = f"As {name[1:]}imum, but a number beats NaN.\n\n    {example_text}\n    "
    return program(literals=True)(fun)


fmax = _beside_nan("fmax", ew.max, "jnp.fmax(jnp.nan, 1.0).item() -> 1.0")
fmin = _beside_nan("fmin", ew.min, "jnp.fmin(jnp.nan, 1.0).item() -> 1.0")


# ---- comparisons and shifts ------------------------------------------------------------------------------------------


def _ordered(operation: Any) -> Callable[..., Any]:
    """A comparison that orders complex numbers by real parts, then imaginary parts, as NumPy does."""
    strict: Any = {ew.le: ew.lt, ew.ge: ew.gt}.get(operation, operation)

    def compare(x: Any, y: Any) -> Any:
        if not dtypes.is_complex(typeof(x).dtype):
            return operation(x, y)
        x_re, y_re = ew.real(x), ew.real(y)
        return ew.select_n(ew.eq(x_re, y_re), strict(x_re, y_re), operation(ew.imag(x), ew.imag(y)))

    return compare


def _comparison(
    name: str, operation: Any, compare: Callable[[int, int], bool], summary: str, example: str
) -> Callable[..., Any]:
    """A comparison of two arrays; ints that a dtype does not hold are compared as they are, as NumPy does."""

    def fun(x: Any, y: Any, /) -> Any:
        if x.__class__ is int or y.__class__ is int:
            found = promotion.decided(x, y, compare)
            if found is not None:
                return found
        x, y = promotion.pair(name, x, y)
        return operation(x, y)

    return _public(fun, name, f"{summary}.", example, "x y")


_lt, _le, _gt, _ge = map(_ordered, (ew.lt, ew.le, ew.gt, ew.ge))
equal = _comparison("equal", ew.eq, operator.eq, "Whether x == y", "jnp.equal(1, 1.0).item() -> True")
not_equal = _comparison("not_equal", ew.ne, operator.ne, "Whether x != y", "jnp.not_equal(1, 2).item() -> True")
less = _comparison("less", _lt, operator.lt, "Whether x < y", "jnp.less(1, 2).item() -> True")
less_equal = _comparison("less_equal", _le, operator.le, "Whether x <= y", "jnp.less_equal(1, 1).item() -> True")
greater = _comparison("greater", _gt, operator.gt, "Whether x > y", "jnp.greater(1, 2).item() -> False")
greater_equal = _comparison(
    "greater_equal", _ge, operator.ge, "Whether x >= y", "jnp.greater_equal(1, 1).item() -> True"
)


def _shift_right(x: Any, y: Any) -> Any:
    unsigned = dtypes.is_unsigned(typeof(x).dtype)
    return (ew.shift_right_logical if unsigned else ew.shift_right_arithmetic)(x, y)


def _of_two_integers(name: str, operation: Any, summary: str, example: str, parameters: str) -> Callable[..., Any]:
    def fun(x: Any, y: Any, /) -> Any:
        return operation(*_numbers_pair(name, x, y))

    return _public(fun, name, summary, example, parameters)


_LEFT = "x * 2**y, on the bits of integers."
left_shift = _of_two_integers("left_shift", ew.shift_left, _LEFT, "jnp.left_shift(1, 3).item() -> 8", "x y")
bitwise_left_shift = _of_two_integers(
    "bitwise_left_shift", ew.shift_left, _LEFT, "jnp.bitwise_left_shift(1, 3).item() -> 8", "x y"
)
_RIGHT = "x1 // 2**x2, on the bits of integers; the sign stays."
right_shift = _of_two_integers("right_shift", _shift_right, _RIGHT, "jnp.right_shift(8, 2).item() -> 2", "x1 x2")
bitwise_right_shift = _of_two_integers(
    "bitwise_right_shift", _shift_right, _RIGHT, "jnp.bitwise_right_shift(8, 2).item() -> 2", "x1 x2"
)


# ---- selection -------------------------------------------------------------------------------------------------------


@program(literals=True)
def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """`arr` with what lies below `min` or above `max` replaced by the bound.

    >>> from morphax import numpy as jnp
    >>> jnp.clip(jnp.array([1, 5, 9]), 2, 6).tolist()
    [2, 5, 6]
    """
    if arr is None:
        raise ValueError("clip: no array was given. Pass one as the first argument.")
    for bound in (arr, min, max):
        if bound is not None:
            _no_complex("clip", promotion.described("clip", bound)[0])
    out = promotion.array("clip", arr)
    min, max = (promotion.saturated(bound, typeof(out).dtype) for bound in (min, max))
    if min is not None:
        out = maximum.plain(out, min)
    if max is not None:
        out = minimum.plain(out, max)
    return out


@program(literals=True)
def choose_by(condition: Any, x: Any, y: Any) -> Any:
    """Entries of `x` where the condition holds, of `y` elsewhere: `where` with three arguments."""
    flag = truth("where", condition)
    x, y = promotion.pair("where", x, y)
    own, left, right = typeof(flag).shape, typeof(x).shape, typeof(y).shape
    if own == left == right:
        return ew.select_n(flag, y, x)
    shape = promotion.common_shape("where", (own, left, right))
    if own:  # the cases may be scalars beside a selector of the whole shape
        flag = promotion.spread(flag, shape)
        x, y = [v if not typeof(v).shape else promotion.spread(v, shape) for v in (x, y)]
    else:
        x, y = promotion.spread(x, shape), promotion.spread(y, shape)
    return ew.select_n(flag, y, x)


@program("decimals")
def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """`a` rounded to that many decimals, to the even neighbour from halfway.

    >>> from morphax import numpy as jnp
    >>> jnp.round(jnp.array([0.5, 1.5, 2.25]), 1).tolist()
    [0.5, 1.5, 2.200000047683716]
    """
    return _round("round", a, decimals, out)


@program("decimals")
def around(a: Any, decimals: int = 0, out: None = None) -> Any:
    """As `round`.

    >>> from morphax import numpy as jnp
    >>> jnp.around(2.5).item()
    2.0
    """
    return _round("around", a, decimals, out)


def _round(name: str, a: Any, decimals: int, out: None) -> Any:
    no_out(name, out)
    decimals = decimals.__index__()
    a = promotion.array(name, a)
    dtype = typeof(a).dtype
    if dtypes.is_integer(dtype) or dtype == np.bool_:
        if decimals < 0:
            raise NotImplementedError(f"{name}: integers are not rounded to {decimals} decimals. Convert to floats.")
        return a
    if decimals == 0:
        return _to_nearest(a)
    factor = family.like(a, 10.0**decimals)
    scaled = _to_nearest(ew.mul(a, factor))
    return ew.div(scaled, factor)


@program("copy", "nan", "posinf", "neginf")
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """`x` with NaN and infinities replaced; infinities by the largest finite numbers if nothing is given.

    >>> from morphax import numpy as jnp
    >>> jnp.nan_to_num(jnp.array([jnp.nan, 1.0])).tolist()
    [0.0, 1.0]
    """
    x = promotion.array("nan_to_num", x)
    dtype = typeof(x).dtype
    if not dtypes.is_inexact(dtype):
        return x
    if dtypes.is_complex(dtype):
        parts = [nan_to_num(p, copy, nan, posinf, neginf) for p in (ew.real(x), ew.imag(x))]
        return ew.complex(*parts)
    limits = dtypes.finfo(dtype)
    highest = promotion.as_dtype(limits.max if posinf is None else posinf, dtype)
    lowest = promotion.as_dtype(limits.min if neginf is None else neginf, dtype)
    out = ew.select_n(_is_nan(x), x, promotion.as_dtype(nan, dtype))
    out = ew.select_n(ew.eq(x, family.like(x, np.inf)), out, highest)
    return ew.select_n(ew.eq(x, family.like(x, -np.inf)), out, lowest)
