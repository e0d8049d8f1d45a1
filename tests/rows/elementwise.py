"""Rows of the elementwise operations."""

from typing import Any

import numpy as np
from samples import COMPLEXES, FLOATS, INTEGERS, SIGNED, UNSIGNED, Sample, zeros

from morphax.ops import elementwise as ew
from morphax.ops.elementwise import RoundingMethod

INEXACT = FLOATS + COMPLEXES
NUMBERS = INEXACT + INTEGERS
REAL = FLOATS + INTEGERS
BITS = (*INTEGERS, "bool")
PAIR = [((2, 3), (2, 3)), ((), (3,)), ((3,), ()), ((), ()), ((0, 2), (0, 2))]
inf, nan = np.inf, np.nan


def away_from(*points: float, low: float = -2.0, high: float = 2.0, gap: float = 0.05) -> Any:
    """Numbers that keep a distance from kinks and poles."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        x = rng.uniform(low, high, shape)
        for p in points:
            x = np.where(np.abs(x - p) < gap, p + 2 * gap, x)
        if dtype.kind == "c":
            return x + 1j * rng.uniform(0.1, 2, shape) * rng.choice([-1, 1], shape)
        return x if dtype.kind not in "iu" else np.rint(x * 4)

    return draw


def right_half(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Away from 0 and the branch cut of roots and logarithms."""
    x = rng.uniform(0.1, 3.0, shape)
    return x + 1j * rng.uniform(-2, 2, shape) if dtype.kind == "c" else x


def few(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Few different values, so that equal ones meet; NaN among floats."""
    values = {"b": [False, True], "f": [-1.0, 0.0, 1.0, nan], "c": [1j, 1, nan]}.get(dtype.kind, [0, 1, 2])
    return rng.choice(values, shape)


def ints(low: int, high: int) -> Any:
    return lambda rng, shape, dtype: rng.integers(low, high, shape)


def trunc_div(x: Any, y: Any) -> Any:
    if np.asarray(x).dtype.kind not in "iu":
        return x / y
    return np.where(y == 0, -1, np.trunc(np.asarray(x, np.float64) / np.where(y == 0, 1, y))).astype(np.int64)


ARITHMETIC = (
    Sample("neg", ew.neg, lambda x: np.negative(x), dtypes=NUMBERS),
    Sample(
        "add", ew.add, np.add, shapes=PAIR, dtypes=NUMBERS,
        errors=[
            (lambda: ew.add(zeros(2), zeros(3)), TypeError, "need equal shapes"),
            (lambda: ew.add(zeros(2), zeros(2, dtype="int32")), TypeError, "need equal dtypes"),
        ],
    ),
    Sample("sub", ew.sub, np.subtract, shapes=PAIR, dtypes=NUMBERS),
    Sample("mul", ew.mul, np.multiply, shapes=PAIR, dtypes=NUMBERS),
    Sample(
        "div", ew.div, trunc_div, shapes=PAIR, dtypes=NUMBERS, domain=[away_from(), away_from(0, gap=0.3)],
        at=[((1.0, inf), 0.0, (0.0, -0.0)), ((0.0, 2.0), 0.0, (0.5, 0.0))],
    ),
    Sample(
        "rem", ew.rem, np.fmod, shapes=PAIR, dtypes=REAL,
        domain=[away_from(0, 1, -1, 2, -2, low=-2.9, high=2.9), lambda rng, shape, dtype: np.full(shape, 2)],
        at=[((5.3, 2.0), np.fmod(5.3, 2.0), (1.0, -2.0)), ((-5.3, 2.0), np.fmod(-5.3, 2.0), (1.0, 2.0))],
        errors=[(lambda: ew.rem(zeros(2, dtype="complex64"), zeros(2, dtype="complex64")), TypeError, "complex64")],
    ),
    Sample(
        "max", ew.max, np.maximum, shapes=PAIR, dtypes=(*NUMBERS, "bool"),
        at=[
            ((1.0, 1.0), 1.0, (0.5, 0.5)),
            ((0.0, -0.0), 0.0, (0.5, 0.5)),
            ((inf, inf), inf, (0.5, 0.5)),
            ((2.0, 1.0), 2.0, (1.0, 0.0)),
            ((nan, 1.0), nan),
        ],
    ),
    Sample(
        "max: complex with NaN", ew.max, np.maximum, shapes=[((5, 7), (5, 7))], dtypes=COMPLEXES, domain=few,
        gaps={"jvp": "there is none at NaN", "vjp": "as jvp", "second": "as jvp"},
    ),
    Sample(
        "min", ew.min, np.minimum, shapes=PAIR, dtypes=(*NUMBERS, "bool"),
        at=[((1.0, 1.0), 1.0, (0.5, 0.5)), ((2.0, 1.0), 1.0, (0.0, 1.0)), ((1.0, nan), nan)],
    ),
    Sample(
        "clamp", ew.clamp, lambda low, x, high: np.minimum(np.maximum(x, low), high),
        shapes=[((), (2, 3), ()), ((3,), (3,), (3,)), ((), (0,), ())],
        dtypes=(*NUMBERS, "bool"),
        domain=[
            lambda rng, shape, dtype: np.full(shape, -1 if dtype.kind != "u" else 1),
            away_from(-1, 1),
            lambda rng, shape, dtype: np.full(shape, 1 if dtype.kind != "u" else 3),
        ],
        at=[((0.0, 2.0, 1.0), 1.0, (0.0, 0.0, 1.0)), ((0.0, -2.0, 1.0), 0.0, (1.0, 0.0, 0.0))],
        errors=[(lambda: ew.clamp(zeros(2), zeros(3), zeros()), TypeError, "min has shape (2,)")],
        gaps={"jvp": "in complex order there is no interior", "vjp": "as jvp", "second": "as jvp"},
    ),
    Sample(
        "clamp: real", ew.clamp, lambda low, x, high: np.clip(x, low, high),
        shapes=[((), (2, 3), ()), ((3,), (3,), (3,))], domain=[(-1.1, -1.0), away_from(-1, 1), (1.0, 1.1)],
    ),
    Sample("square", ew.square, np.square, dtypes=NUMBERS, at=[((inf,), inf, (inf,))]),
    Sample(
        "integer_pow", lambda x: ew.integer_pow(x, y=3), lambda x: x**3, dtypes=NUMBERS,
        errors=[(lambda: ew.integer_pow(zeros(2, dtype="int32"), y=-1), TypeError, "no negative powers")],
    ),
    Sample("integer_pow: 0", lambda x: ew.integer_pow(x, y=0), lambda x: x**0, at=[((0.0,), 1.0, (0.0,))]),
    Sample("integer_pow: 1", lambda x: ew.integer_pow(x, y=1), lambda x: x, at=[((inf,), inf, (1.0,))]),
    Sample("integer_pow: 2", lambda x: ew.integer_pow(x, y=2), lambda x: x**2, at=[((0.0,), 0.0, (0.0,))]),
    Sample("integer_pow: 13", lambda x: ew.integer_pow(x, y=13), lambda x: x**13, dtypes=("float64",), tol=1e-12),
    Sample(
        "integer_pow: -2", lambda x: ew.integer_pow(x, y=-2), lambda x: x**-2.0, dtypes=INEXACT,
        domain=away_from(0, gap=0.5),
    ),
    Sample(
        "pow", ew.pow, np.power, shapes=PAIR, dtypes=FLOATS, domain=[(0.1, 2.0), (-2.0, 2.0)],
        at=[
            ((0.0, 0.0), 1.0, (0.0, 0.0)),
            ((0.0, 1.0), 0.0, (1.0, 0.0)),
            ((0.0, 2.0), 0.0, (0.0, 0.0)),
            ((inf, 1.0), inf, (1.0, inf)),
            ((-2.0, 3.0), -8.0),
        ],
        errors=[(lambda: ew.pow(zeros(2, dtype="int32"), zeros(2, dtype="int32")), TypeError, "int32")],
    ),
    Sample("pow: complex", ew.pow, np.power, shapes=PAIR, dtypes=COMPLEXES, domain=away_from(0), tol=1e-11),
    Sample(
        "pow: integer exponents", ew.pow, lambda x, y: x ** np.asarray(y, np.float64), shapes=PAIR,
        dtypes=[(d, "int32") for d in INEXACT], domain=[away_from(0, gap=0.5), (-3, 3)], tol={"float16": 0.05},
    ),
    Sample(
        "nextafter", ew.nextafter, np.nextafter, shapes=PAIR, dtypes=("float64",),
        at=[((0.0, 1.0), 5e-324), ((1.0, 1.0), 1.0)],
        gaps={"jvp": "the derivative is one in the mean; it steps", "vjp": "as jvp", "second": "as jvp"},
    ),
)  # fmt: skip

SIGNS = (
    Sample("sign", ew.sign, np.sign, dtypes=NUMBERS, domain=away_from(0), at=[((0.0,), 0.0, (0.0,)), ((nan,), nan)]),
    Sample(
        "abs", ew.abs, lambda x: np.abs(x), dtypes=NUMBERS, domain=away_from(0),
        at=[((0.0,), 0.0, (0.0,)), ((-inf,), inf, (-1.0,))],
    ),
    Sample("floor", ew.floor, np.floor, dtypes=FLOATS, domain=away_from(-1, 0, 1)),
    Sample("ceil", ew.ceil, np.ceil, dtypes=FLOATS, domain=away_from(-1, 0, 1)),
    Sample(
        "round", lambda x: ew.round(x, rounding_method=RoundingMethod.TO_NEAREST_EVEN), np.rint, dtypes=FLOATS,
        domain=away_from(-1.5, -0.5, 0.5, 1.5), at=[((2.5,), 2.0, (0.0,)), ((-3.5,), -4.0, (0.0,))],
    ),
    Sample(
        "round: away from zero", lambda x: ew.round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO), np.rint,
        dtypes=FLOATS, domain=away_from(-1.5, -0.5, 0.5, 1.5), at=[((2.5,), 3.0, (0.0,)), ((-2.5,), -3.0, (0.0,))],
    ),
    Sample(
        "is_finite", ew.is_finite, np.isfinite, dtypes=FLOATS,
        domain=lambda rng, shape, dtype: rng.choice([1.0, inf, -inf, nan], shape),
    ),
    Sample(
        "reduce_precision", lambda x: ew.reduce_precision(x, exponent_bits=8, mantissa_bits=23),
        lambda x: np.asarray(np.asarray(x, np.float32), np.float64), dtypes=("float32", "float64"), tol=0.0,
        errors=[
            (lambda: ew.reduce_precision(zeros(2), exponent_bits=0, mantissa_bits=1), ValueError, "exponent_bits is 0")
        ],
        gaps={"jvp": "the derivative is that of the identity, which it rounds", "second": "as jvp",
              "vjp": "tangents are rounded, in two orders"},
    ),
    Sample(
        "stop_gradient", ew.stop_gradient, lambda x: x, dtypes=(*NUMBERS, "bool"),
        at=[((2.0,), 2.0, (0.0,))],
        gaps={"jvp": "it has no derivative on purpose", "vjp": "as jvp", "second": "as jvp"},
    ),
)  # fmt: skip

EXPONENTIALS = (
    Sample("exp", ew.exp, np.exp, dtypes=INEXACT, at=[((-inf,), 0.0, (0.0,))]),
    Sample("exp2", ew.exp2, np.exp2, dtypes=FLOATS, at=[((13.0,), 8192.0), ((-inf,), 0.0, (0.0,))]),
    Sample("exp2: complex", ew.exp2, lambda x: np.power(2.0, x), dtypes=COMPLEXES),
    Sample(
        "expm1", ew.expm1, np.expm1, dtypes=INEXACT,
        at=[((1e-300,), 1e-300, (1.0,)), ((-40.0,), np.expm1(-40), (np.exp(-40),))],
    ),
    Sample(
        "log", ew.log, np.log, dtypes=INEXACT, domain=right_half,
        at=[((0.0,), -inf, (inf,)), ((inf,), inf, (0.0,))],
    ),
    Sample(
        "log1p", ew.log1p, np.log1p, dtypes=INEXACT, domain=(-0.5, 2.0),
        at=[((1e-300,), 1e-300, (1.0,)), ((-1.0,), -inf, (inf,))],
    ),
    Sample(
        "logistic", ew.logistic, lambda x: 1 / (1 + np.exp(-x)), dtypes=INEXACT,
        at=[((37.42994775023705,), 1.0, (5.551115123125775e-17,)), ((-800.0,), 0.0, (0.0,)), ((0.0,), 0.5, (0.25,))],
    ),
    Sample(
        "sqrt", ew.sqrt, np.sqrt, dtypes=INEXACT, domain=right_half,
        at=[((0.0,), 0.0, (inf,)), ((inf,), inf, (0.0,)), ((1e-300,), 1e-150, (5e149,))],
    ),
    Sample(
        "rsqrt", ew.rsqrt, lambda x: 1 / np.sqrt(x), dtypes=INEXACT,
        domain=right_half,
        at=[((inf,), 0.0, (-0.0,)), ((4.0,), 0.5, (-0.0625,))],
    ),
    Sample(
        "cbrt", ew.cbrt, np.cbrt, dtypes=FLOATS, domain=away_from(0, gap=0.2),
        at=[((0.0,), 0.0, (inf,)), ((inf,), inf, (0.0,)), ((-8.0,), -2.0, (1 / 12,))],
    ),
)  # fmt: skip

NEAR_ONE = 1 - 2.0**-40
SLOPE_NEAR_ONE = 1 / np.sqrt(2.0**-40 * (2 - 2.0**-40))

TRIGONOMETRY = (
    Sample("sin", ew.sin, np.sin, dtypes=INEXACT),
    Sample("cos", ew.cos, np.cos, dtypes=INEXACT),
    Sample("tan", ew.tan, np.tan, dtypes=INEXACT, domain=(-1.2, 1.2), tol=1e-12),
    Sample(
        "asin", ew.asin, np.arcsin, dtypes=INEXACT, domain=(-0.9, 0.9),
        at=[((1.0,), np.pi / 2, (inf,)), ((NEAR_ONE,), np.arcsin(NEAR_ONE), (SLOPE_NEAR_ONE,))],
    ),
    Sample("acos", ew.acos, np.arccos, dtypes=INEXACT, domain=(-0.9, 0.9), at=[((1.0,), 0.0, (-inf,))]),
    Sample("atan", ew.atan, np.arctan, dtypes=INEXACT, domain=(-0.9, 0.9), at=[((inf,), np.pi / 2, (0.0,))]),
    Sample("sinh", ew.sinh, np.sinh, dtypes=INEXACT, at=[((1e-300,), 1e-300, (1.0,))]),
    Sample("cosh", ew.cosh, np.cosh, dtypes=INEXACT, at=[((1e-300,), 1.0, (1e-300,))]),
    Sample("tanh", ew.tanh, np.tanh, dtypes=INEXACT, domain=(-1.2, 1.2), at=[((inf,), 1.0, (0.0,))]),
    Sample("asinh", ew.asinh, np.arcsinh, dtypes=INEXACT, domain=(-0.9, 0.9), at=[((1e-300,), 1e-300, (1.0,))]),
    Sample(
        "acosh", ew.acosh, np.arccosh, dtypes=INEXACT,
        domain=lambda rng, shape, dtype: 1 + right_half(rng, shape, dtype),
        at=[((1.0,), 0.0, (inf,))],
    ),
    Sample("atanh", ew.atanh, np.arctanh, dtypes=INEXACT, domain=(-0.9, 0.9), at=[((1e-300,), 1e-300, (1.0,))]),
    Sample(
        "atan2", ew.atan2, np.arctan2, shapes=PAIR, dtypes=FLOATS, domain=away_from(0, gap=0.2),
        at=[
            ((0.0, -0.0), np.pi),
            ((-0.0, -0.0), -np.pi),
            ((0.0, 1.0), 0.0, (1.0, 0.0)),
            ((0.0, -1.0), np.pi, (-1.0, 0.0)),
            ((3e-200, 4e-200), np.arctan2(3, 4), (0.16 / 1e-200, -0.12 / 1e-200)),
            ((3e200, 4e200), np.arctan2(3, 4), (0.16 / 1e200, -0.12 / 1e200)),
        ],
    ),
    Sample(
        "atan2: complex", ew.atan2, lambda x, y: np.arctan(x / y), shapes=PAIR, dtypes=("complex128",),
        domain=[(0.1, 0.5), (1.0, 1.5)],
    ),
)  # fmt: skip


PARTS = ("float32", "float64")
COMPLEX = (
    Sample(
        "real", ew.real, np.real, dtypes=COMPLEXES,
        errors=[(lambda: ew.real(zeros(2)), TypeError, "does not accept dtype float32")],
    ),
    Sample("imag", ew.imag, np.imag, dtypes=COMPLEXES),
    Sample(
        "complex", ew.complex, lambda x, y: x + 1j * y, shapes=PAIR, dtypes=PARTS,
        errors=[(lambda: ew.complex(zeros(2, dtype="float16"), zeros(2, dtype="float16")), TypeError, "float16")],
    ),
    Sample(
        "conj", lambda x: ew.conj(x, input_dtype=x.dtype), lambda x: np.conj(x).astype(np.complex128),
        dtypes=(*PARTS, *COMPLEXES),
    ),
)  # fmt: skip


def converted(target: str) -> Any:
    return lambda x: ew.convert_element_type(x, new_dtype=np.dtype(target), weak_type=False, sharding=None)


ALL = (*NUMBERS, "bool")
CONVERSIONS = (
    Sample("convert_element_type", converted("float64"), lambda x: x.real.astype(np.float64), dtypes=ALL),
    Sample("convert_element_type: complex", converted("complex128"), lambda x: x + 0j, dtypes=ALL),
    Sample("convert_element_type: int", converted("int32"), lambda x: x.astype(np.int32), dtypes=(*FLOATS, "bool")),
    Sample("convert_element_type: bool", converted("bool"), lambda x: x != 0, dtypes=NUMBERS),
)


def by_bits(compare: Any) -> Any:
    """Reference of total orders: floats as integers of the same order."""

    def key(x: Any) -> Any:
        bits = np.asarray(x, np.float64).view(np.int64)
        return np.where(bits < 0, np.int64(np.iinfo(np.int64).min) - bits - 1, bits)

    return lambda x, y: compare(key(x), key(y))


def signed_few(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return rng.choice([-inf, -1.0, -0.0, 0.0, 1.0, inf, nan], shape)


def shift_reference(shift: Any, beyond: Any) -> Any:
    def reference(x: Any, y: Any) -> Any:
        width = x.dtype.itemsize * 8
        outside = (np.asarray(y, np.int64) < 0) | (np.asarray(y, np.int64) >= width)
        return np.where(outside, beyond(x), shift(x, np.where(outside, 0, y).astype(x.dtype))).astype(x.dtype)

    return reference


def unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}") if x.ndim else x[None].view(f"u{x.dtype.itemsize}")[0]


COMPARISONS = tuple(
    Sample(name, fun, reference, shapes=PAIR, dtypes=dtypes, domain=few)
    for name, fun, reference, dtypes in (
        ("eq", ew.eq, np.equal, (*NUMBERS, "bool")),
        ("ne", ew.ne, np.not_equal, (*NUMBERS, "bool")),
        ("lt", ew.lt, np.less, (*REAL, "bool")),
        ("le", ew.le, np.less_equal, (*REAL, "bool")),
        ("gt", ew.gt, np.greater, (*REAL, "bool")),
        ("ge", ew.ge, np.greater_equal, (*REAL, "bool")),
    )
) + tuple(
    Sample(name, fun, by_bits(compare), shapes=[((5, 7), (5, 7))], dtypes=FLOATS, domain=signed_few)
    for name, fun, compare in (
        ("eq_to", ew.eq_to, np.equal),
        ("lt_to", ew.lt_to, np.less),
        ("le_to", ew.le_to, np.less_equal),
    )
)

BIT_OPERATIONS = (
    Sample(
        "not", ew.not_, np.invert, dtypes=BITS,
        errors=[(lambda: ew.not_(zeros(2)), TypeError, "does not accept dtype float32")],
    ),
    Sample("and", ew.and_, np.bitwise_and, shapes=PAIR, dtypes=BITS),
    Sample("or", ew.or_, np.bitwise_or, shapes=PAIR, dtypes=BITS),
    Sample("xor", ew.xor, np.bitwise_xor, shapes=PAIR, dtypes=BITS),
    Sample(
        "shift_left", ew.shift_left, shift_reference(np.left_shift, np.zeros_like), shapes=PAIR[:4], dtypes=INTEGERS,
        domain=[ints(0, 100), ints(0, 40)],
    ),
    Sample(
        "shift_right_logical", ew.shift_right_logical,
        shift_reference(lambda x, y: np.right_shift(unsigned(x), unsigned(y)), np.zeros_like), shapes=PAIR[:1],
        dtypes=INTEGERS, domain=[ints(-100, 100), ints(0, 40)],
    ),
    Sample(
        "shift_right_arithmetic", ew.shift_right_arithmetic,
        shift_reference(np.right_shift, lambda x: np.where(x < 0, -1, 0)), shapes=PAIR[:1], dtypes=SIGNED,
        domain=[ints(-100, 100), ints(0, 40)],
    ),
    Sample(
        "mulhi", ew.mulhi, lambda x, y: (x.astype(object) * y.astype(object)) >> (8 * x.dtype.itemsize),
        shapes=PAIR[:1], dtypes=("int32", "int8", "uint32", "uint8"),
        domain=lambda rng, shape, dtype: rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape),
    ),
    Sample("population_count", ew.population_count, np.bitwise_count, dtypes=UNSIGNED),
    Sample(
        "clz", ew.clz, lambda x: x.dtype.itemsize * 8 - np.ceil(np.log2(x.astype(float) + 1)), dtypes=UNSIGNED,
        domain=(0, 100),
    ),
)  # fmt: skip


def pick(which: Any, *cases_: Any) -> Any:
    return np.choose(np.clip(which, 0, len(cases_) - 1), cases_)


SELECTION = (
    Sample(
        "select_n", ew.select_n, lambda p, x, y: np.where(p, y, x),
        shapes=[((3,), (3,), (3,)), ((), (2, 2), (2, 2)), ((3,), (), (3,)), ((0,), (0,), (0,))],
        dtypes=[("bool", d, d) for d in (*NUMBERS, "bool")],
        errors=[
            (lambda: ew.select_n(zeros(2), zeros(2), zeros(2)), TypeError, "must be bool or int32"),
            (lambda: ew.select_n(np.True_, zeros(2), zeros(2), zeros(2)), TypeError, "between two cases; 3 were given"),
        ],
    ),
    Sample(
        "select_n: int", ew.select_n, pick, shapes=[((7,), (7,), (7,), (7,)), ((), (2,), (2,), (2,))],
        dtypes=[("int32", d, d, d) for d in ("float64", "int32", "bool")], domain=[ints(-1, 5), None, None, None],
    ),
)  # fmt: skip


def spread(shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    return lambda x: ew.broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims, sharding=None)


BROADCASTS = (
    Sample(
        "broadcast_in_dim", spread((2, 3, 4), (0, 2)), lambda x: np.broadcast_to(x[:, None], (2, 3, 4)),
        shapes=[((2, 4),)], dtypes=ALL,
        errors=[
            (lambda: spread((2, 3), (0, 1))(zeros(2, 2)), TypeError, "an operand of shape (2, 2) does not fit"),
            (lambda: spread((2, 3), (0,))(zeros(2, 2)), TypeError, "at dimensions (0,)"),
        ],
    ),
    Sample(
        "broadcast_in_dim: of ones", spread((2, 3, 4), (0, 1, 2)), lambda x: np.broadcast_to(x, (2, 3, 4)),
        shapes=[((2, 1, 4),), ((1, 1, 1),), ((2, 3, 4),)],
    ),
    Sample(
        "broadcast_in_dim: of a scalar", spread((2, 0), ()), lambda x: np.broadcast_to(x, (2, 0)), shapes=[((),)]
    ),
    Sample(
        "reduce_sum", lambda x: ew.reduce_sum(x, axes=(0, 2)), lambda x: np.sum(x, (0, 2)).astype(x.dtype),
        shapes=[((2, 3, 4),), ((0, 3, 4),), ((2, 0, 4),)], dtypes=NUMBERS, tol={"float16": 0.05, "bfloat16": 0.2},
    ),
    Sample("reduce_sum: of nothing", lambda x: ew.reduce_sum(x, axes=()), lambda x: x),
)  # fmt: skip

ROWS = (
    BROADCASTS
    + ARITHMETIC
    + SIGNS
    + EXPONENTIALS
    + TRIGONOMETRY
    + COMPLEX
    + CONVERSIONS
    + COMPARISONS
    + BIT_OPERATIONS
    + SELECTION
)
