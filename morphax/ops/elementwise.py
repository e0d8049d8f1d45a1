"""Elementwise operations, one row each: name, dtypes, lowering, derivative."""

import enum
from typing import Any

import numpy as np

from morphax.ir.primitive import ONE, Primitive, is_unknown
from morphax.ops import family
from morphax.ops.family import elementwise_type, like, lower_as, typeof
from morphax.support import dtypes


def _row(name: str, kinds: str, opname: str, *partials: Any, accurate: bool = False, **story: Any) -> Primitive:
    """One operation of operands of equal dtypes; `accurate` ones take the parameter `accuracy`."""
    if "nondiff" not in story and "linear" not in story:
        story["partials"] = partials
    lower = _lower_accurate(opname) if accurate else lower_as(opname)
    return Primitive(name, type=elementwise_type(name, kinds), lower=lower, elementwise=True, **story)


def _lower_accurate(opname: str) -> Any:
    def lower(low: Any, ins: Any, outs: Any, x: Any, *, accuracy: Any = None) -> Any:
        return low.op(opname, outs, (x,), None if accuracy is None else {"result_accuracy": accuracy.attribute})

    return lower


def _unbroadcast(ct: Any, operand: Any) -> Any:
    """Cotangent of an operand that may have been a scalar among arrays."""
    if not operand.aval.shape and typeof(ct).shape:
        return reduce_sum(ct, axes=tuple(range(typeof(ct).ndim)))
    return ct


def _lower_reduce_sum(low: Any, ins: Any, outs: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    return low.reduce("stablehlo.add", ins[0], outs[0], x, 0, axes)


def _reduce_sum_type(x: Any, *, axes: tuple[int, ...]) -> Any:
    family.check_kind("reduce_sum", x.dtype, "fciu")
    family.check_axes("reduce_sum", axes, x.ndim)
    return x.update(shape=tuple([s for i, s in enumerate(x.shape) if i not in axes]))


# reduce_sum stands here, not among the reductions, since the transpose of a scalar's broadcast is a sum.
reduce_sum = Primitive(
    "reduce_sum",
    type=_reduce_sum_type,
    lower=_lower_reduce_sum,
    linear=(0,),
    transpose=lambda ct, x, *, axes: (broadcast(ct, x.aval.shape, axes),),
    batch=family.shift_params("axes"),
    show=lambda params: {**params, "out_sharding": None},
    read=lambda shown, ins, outs: {"axes": shown["axes"]},
)


def _lower_broadcast(
    low: Any, ins: Any, outs: Any, x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any
) -> Any:
    return [low.broadcast(x, ins[0], shape, broadcast_dimensions)]


def _broadcast_type(x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any) -> Any:
    if len(broadcast_dimensions) != x.ndim or any(
        x.shape[i] not in (1, shape[d]) for i, d in enumerate(broadcast_dimensions)
    ):
        raise TypeError(
            f"broadcast_in_dim: an operand of shape {x.shape} does not fit shape {shape} at dimensions "
            f"{broadcast_dimensions}. Each operand dimension must be 1 or the size of the one it goes to."
        )
    return x.update(shape=tuple(shape))


def _broadcast_transpose(ct: Any, x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any) -> Any:
    kept = [d for i, d in enumerate(broadcast_dimensions) if x.aval.shape[i] == shape[d]]
    summed = tuple([d for d in range(len(shape)) if d not in kept])
    ct = reduce_sum(ct, axes=summed) if summed else ct
    if typeof(ct).shape != x.aval.shape:
        at = tuple([i for i, d in enumerate(broadcast_dimensions) if x.aval.shape[i] == shape[d]])
        ct = broadcast_in_dim(ct, shape=x.aval.shape, broadcast_dimensions=at, sharding=None)
    return (ct,)


def _broadcast_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    dims = (0, *family.shift(params["broadcast_dimensions"]))
    return [broadcast_in_dim(operands[0], shape=(size, *params["shape"]), broadcast_dimensions=dims, sharding=None)]


broadcast_in_dim = Primitive(
    "broadcast_in_dim",
    type=_broadcast_type,
    lower=_lower_broadcast,
    linear=(0,),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    show=lambda params: (
        {"broadcast_dimensions": params["broadcast_dimensions"]} if params["broadcast_dimensions"] else {}
    ),
    read=lambda shown, ins, outs: {
        "shape": outs[0].shape,
        "broadcast_dimensions": shown.get("broadcast_dimensions", ()),
        "sharding": None,
    },
)


def broadcast(x: Any, shape: tuple[int, ...], new_axes: tuple[int, ...]) -> Any:
    """`x` with the axes `new_axes` of `shape` added."""
    dims = tuple([d for d in range(len(shape)) if d not in new_axes])
    return broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=dims, sharding=None)


def full(shape: tuple[int, ...], value: Any) -> Any:
    """An array of `shape` filled with a scalar."""
    return broadcast_in_dim(value, shape=tuple(shape), broadcast_dimensions=(), sharding=None) if shape else value


def zeros(aval: Any) -> Any:
    """Zeros of that type."""
    return full(aval.shape, family.scalar(0, aval.dtype))


# ---- arithmetic ------------------------------------------------------------------------------------------------------

neg = _row("neg", "fciu", "stablehlo.negate", linear=(0,), transpose=lambda ct, x: (neg(ct),))

add = _row(
    "add", "fciub", "stablehlo.add", ONE, ONE,
    transpose=lambda ct, x, y: (
        _unbroadcast(ct, x) if is_unknown(x) else None,
        _unbroadcast(ct, y) if is_unknown(y) else None,
    ),
)  # fmt: skip

sub = _row(
    "sub", "fciu", "stablehlo.subtract", ONE, lambda z, x, y: like(z, -1),
    transpose=lambda ct, x, y: (
        _unbroadcast(ct, x) if is_unknown(x) else None,
        _unbroadcast(neg(ct), y) if is_unknown(y) else None,
    ),
)  # fmt: skip


def _mul_transpose(ct: Any, x: Any, y: Any) -> Any:
    if is_unknown(x) and is_unknown(y):
        raise family.not_linear("mul")
    if is_unknown(x):
        return _unbroadcast(mul(ct, y), x), None
    return None, _unbroadcast(mul(x, ct), y)


mul = _row("mul", "fciub", "stablehlo.multiply", lambda z, x, y: y, lambda z, x, y: x, transpose=_mul_transpose)


def _div_transpose(ct: Any, x: Any, y: Any) -> Any:
    if is_unknown(y):
        raise family.not_linear("div")
    return _unbroadcast(div(ct, y), x), None


# The second partial reuses the quotient: d(x/y)/dy = -(x/y)/y.
div = _row(
    "div", "fciu", "stablehlo.divide",
    lambda z, x, y: div(like(y, 1), y), lambda z, x, y: neg(div(z, y)),
    transpose=_div_transpose,
)  # fmt: skip

# d rem(x, y)/dy = -trunc(x/y), and x - rem(x, y) is trunc(x/y) * y, so that rounding the quotient makes it exact.
rem = _row(
    "rem", "fiu", "stablehlo.remainder",
    ONE, lambda z, x, y: neg(round(div(sub(x, z), y), rounding_method=RoundingMethod.TO_NEAREST_EVEN)),
)  # fmt: skip


def _reciprocal(x: Any) -> Any:
    return div(like(x, 1), x)


def _tie_weight(z: Any, x: Any, y: Any) -> Any:
    """Derivative of max or min, result z, with respect to x: 1 where x was taken, 1/2 where both were."""
    return select_n(eq(x, z), like(z, 0), select_n(eq(y, z), like(z, 1), like(z, 0.5)))


def _lower_extreme(opname: str, direction: str) -> Any:
    # Complex numbers are ordered by their real parts, then by their imaginary parts.
    plain = lower_as(opname)

    def lower(low: Any, ins: Any, outs: Any, x: Any, y: Any) -> Any:
        if not dtypes.is_complex(outs[0].dtype):
            return plain(low, ins, outs, x, y)
        x, y = family.spread(low, ins, outs[0].shape, (x, y))
        part = (outs[0].update(dtype=dtypes.to_real(outs[0].dtype)),)
        flag = part[0].update(dtype=dtypes.bool_)
        re, im = [[low.op(f"stablehlo.{p}", part, (v,))[0] for v in (x, y)] for p in ("real", "imag")]
        ahead = low.op("stablehlo.compare", (flag,), re, _direction(direction))[0]
        tied = low.op("stablehlo.compare", (flag,), re, _direction("EQ"))[0]
        ahead_im = low.op("stablehlo.compare", (flag,), im, _direction(direction))[0]
        first = low.op("stablehlo.select", (flag,), (tied, ahead_im, ahead))[0]
        is_nan = low.op("stablehlo.compare", (flag,), (x, x), _direction("NE"))[0]  # a NaN of y wins by itself
        first = low.op("stablehlo.or", (flag,), (first, is_nan))[0]
        return low.op("stablehlo.select", outs, (first, x, y))

    return lower


max = Primitive(
    "max", type=elementwise_type("max", "fciub"), lower=_lower_extreme("stablehlo.maximum", "GT"), elementwise=True,
    partials=(lambda z, x, y: _tie_weight(z, x, y), lambda z, x, y: _tie_weight(z, y, x)),
)  # fmt: skip

min = Primitive(
    "min", type=elementwise_type("min", "fciub"), lower=_lower_extreme("stablehlo.minimum", "LT"), elementwise=True,
    partials=(lambda z, x, y: _tie_weight(z, x, y), lambda z, x, y: _tie_weight(z, y, x)),
)  # fmt: skip


def _clamp_type(low: Any, x: Any, high: Any) -> Any:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp: {name} has shape {bound.shape} and the operand {x.shape}. Give a scalar bound, or one of the "
                "operand's shape."
            )
    return family.joined("clamp", (low, x, high), x.shape, family.common_dtype("clamp", (low, x, high)))


def _lower_clamp(low: Any, ins: Any, outs: Any, *operands: Any) -> Any:
    at_least, x, at_most = family.spread(low, ins, outs[0].shape, operands)
    if dtypes.kind(outs[0].dtype) in "cb":
        types = (outs[0], outs[0])
        raised = _lower_extreme("stablehlo.maximum", "GT")(low, types, outs, x, at_least)[0]
        return _lower_extreme("stablehlo.minimum", "LT")(low, types, outs, raised, at_most)
    return low.op("stablehlo.clamp", outs, (at_least, x, at_most))


def _where(flag: Any, z: Any) -> Any:
    """1 where `flag` holds and 0 elsewhere, in the dtype of `z`."""
    return select_n(flag, like(z, 0), like(z, 1))


# At the bounds themselves the operand has no share, as in JAX.
clamp = Primitive(
    "clamp", type=_clamp_type, lower=_lower_clamp, elementwise=True,
    partials=(
        lambda z, low, x, high: _where(and_(gt(low, x), lt(low, high)), z),
        lambda z, low, x, high: _where(and_(gt(x, low), lt(x, high)), z),
        lambda z, low, x, high: _where(gt(select_n(gt(x, low), low, x), high), z),
    ),
)  # fmt: skip


# ---- signs and rounding ----------------------------------------------------------------------------------------------


def _lower_sign(low: Any, ins: Any, outs: Any, x: Any) -> Any:
    if dtypes.kind(ins[0].dtype) != "u":
        return low.op("stablehlo.sign", outs, (x,))
    return low.op("stablehlo.minimum", outs, (x, low.constant(1, outs[0])))


def _sign_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    s = sign(x)
    if t is None or not dtypes.is_complex(typeof(x).dtype):
        return s, None
    # s = x/|x|: what t has across the direction of x turns s, what it has along it does not. At 0 there is none.
    along = real(mul(conj(s, input_dtype=typeof(s).dtype), t))
    across = sub(t, mul(s, _complex_of(along)))
    size = abs(x)
    return s, div(across, _complex_of(select_n(eq(size, like(size, 0)), size, like(size, np.inf))))


sign = Primitive(
    "sign", type=elementwise_type("sign", "fciu"), lower=_lower_sign, jvp=_sign_jvp, elementwise=True
)  # fmt: skip


def _abs_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    out = abs(x)
    if t is None:
        return out, None
    s = sign(x)
    if dtypes.is_complex(typeof(x).dtype):
        return out, real(mul(conj(s, input_dtype=typeof(s).dtype), t))
    return out, mul(t, s)


abs = Primitive(
    "abs",
    type=elementwise_type("abs", "fciu", dtypes.to_real),
    lower=lambda low, ins, outs, x: [x] if dtypes.kind(ins[0].dtype) == "u" else low.op("stablehlo.abs", outs, (x,)),
    jvp=_abs_jvp,
    elementwise=True,
)

_STEPS = "it is constant between its steps"

floor = _row("floor", "f", "stablehlo.floor", nondiff=_STEPS)
ceil = _row("ceil", "f", "stablehlo.ceil", nondiff=_STEPS)


class RoundingMethod(enum.IntEnum):
    """Which way `round` goes from halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


_ROUND = {
    RoundingMethod.AWAY_FROM_ZERO: "stablehlo.round_nearest_afz",
    RoundingMethod.TO_NEAREST_EVEN: "stablehlo.round_nearest_even",
}

round = Primitive(
    "round",
    type=elementwise_type("round", "f"),
    lower=lambda low, ins, outs, x, *, rounding_method: low.op(_ROUND[rounding_method], outs, (x,)),
    nondiff=_STEPS,
    elementwise=True,
)

is_finite = Primitive(
    "is_finite",
    type=elementwise_type("is_finite", "f", lambda dtype: dtypes.bool_),
    lower=lower_as("stablehlo.is_finite"),
    nondiff="its result is a bool",
    elementwise=True,
)

# The distance to the neighbour is constant between powers of two, so the result moves with its first operand.
nextafter = _row("nextafter", "f", "chlo.next_after", ONE, None)


def _reduce_precision_type(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    family.check_kind("reduce_precision", x.dtype, "f")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: exponent_bits is {exponent_bits} and mantissa_bits {mantissa_bits}. They must be at "
            "least 1 and 0."
        )
    return x


# Rounding is taken for the identity, so that training through it works.
reduce_precision = Primitive(
    "reduce_precision",
    type=_reduce_precision_type,
    lower=lambda low, ins, outs, x, *, exponent_bits, mantissa_bits: low.op(
        "stablehlo.reduce_precision",
        outs,
        (x,),
        {"exponent_bits": f"{exponent_bits} : i32", "mantissa_bits": f"{mantissa_bits} : i32"},
    ),
    linear=(0,),
    transpose=lambda ct, x, **params: (reduce_precision(ct, **params),),
    elementwise=True,
)

stop_gradient = Primitive(
    "stop_gradient",
    type=lambda x: x,
    lower=lambda low, ins, outs, x: [x],
    nondiff="stopping the derivative is what it is for",
    elementwise=True,
)


# ---- exponentials and powers -----------------------------------------------------------------------------------------
# `accuracy` reaches the derivatives as a parameter that they have no use for.

exp = _row("exp", "fc", "stablehlo.exponential", lambda y, x, **_: y, accurate=True)
log = _row("log", "fc", "stablehlo.log", lambda y, x, **_: _reciprocal(x), accurate=True)
# exp(x), not y + 1, which is 0 long before exp(x) is.
expm1 = _row("expm1", "fc", "stablehlo.exponential_minus_one", lambda y, x, **_: exp(x), accurate=True)
log1p = _row("log1p", "fc", "stablehlo.log_plus_one", lambda y, x, **_: _reciprocal(add(x, like(x, 1))), accurate=True)
# logistic(-x), not 1 - y, which is 0 long before logistic(-x) is.
logistic = _row("logistic", "fc", "stablehlo.logistic", lambda y, x, **_: mul(y, logistic(neg(x))), accurate=True)
sqrt = _row("sqrt", "fc", "stablehlo.sqrt", lambda y, x, **_: div(like(y, 0.5), y), accurate=True)
rsqrt = _row("rsqrt", "fc", "stablehlo.rsqrt", lambda y, x, **_: mul(like(y, -0.5), div(y, x)), accurate=True)
cbrt = _row("cbrt", "f", "stablehlo.cbrt", lambda y, x, **_: div(like(y, 1 / 3), mul(y, y)), accurate=True)


def _lower_exp2(low: Any, ins: Any, outs: Any, x: Any, **params: Any) -> Any:
    if dtypes.is_complex(outs[0].dtype):
        exponent = low.op("stablehlo.multiply", outs, (x, low.constant(np.log(2), outs[0])))
        return low.op("stablehlo.exponential", outs, exponent)
    return low.op("stablehlo.power", outs, (low.constant(2, outs[0]), x))  # exact at integers


exp2 = Primitive(
    "exp2", type=elementwise_type("exp2", "fc"), lower=_lower_exp2, elementwise=True,
    partials=(lambda y, x, **_: mul(y, like(y, float(np.log(2)))),),
)  # fmt: skip

square = Primitive(
    "square", type=elementwise_type("square", "fciu"), elementwise=True,
    lower=lambda low, ins, outs, x: low.op("stablehlo.multiply", outs, (x, x)),
    partials=(lambda y, x: mul(like(x, 2), x),),
)  # fmt: skip


def _integer_pow_type(x: Any, *, y: int) -> Any:
    family.check_kind("integer_pow", x.dtype, "fciu")
    if y < 0 and dtypes.is_integer(x.dtype):
        raise TypeError(
            f"integer_pow: integers have no negative powers: {x} was to be raised to {y}. Convert it to a float first."
        )
    return x


def _lower_integer_pow(low: Any, ins: Any, outs: Any, x: Any, *, y: int) -> Any:
    one = low.constant(1, outs[0])
    n = y if y >= 0 else -y
    product = None
    while n:
        if n & 1:
            product = x if product is None else low.op("stablehlo.multiply", outs, (product, x))[0]
        n >>= 1
        x = low.op("stablehlo.multiply", outs, (x, x))[0] if n else x
    if product is None:
        return [one]
    return [product] if y > 0 else low.op("stablehlo.divide", outs, (one, product))


def _integer_pow_partial(z: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return like(x, 0)
    if y == 1:
        return like(x, 1)
    return mul(like(x, y), x if y == 2 else integer_pow(x, y=y - 1))


integer_pow = Primitive(
    "integer_pow", type=_integer_pow_type, lower=_lower_integer_pow, partials=(_integer_pow_partial,), elementwise=True
)  # fmt: skip


def _pow_type(x: Any, y: Any) -> Any:
    family.check_kind("pow", x.dtype, "fc")
    if dtypes.is_integer(y.dtype):
        shape = family.common_shape("pow", (x, y))
        return family.joined("pow", (x,), shape, x.dtype).update(varying=x.varying | y.varying)
    return _same_pow_type(x, y)


_same_pow_type = elementwise_type("pow", "fc")


def _lower_pow(low: Any, ins: Any, outs: Any, x: Any, y: Any) -> Any:
    if ins[1].dtype != outs[0].dtype:
        converted = ins[1].update(dtype=outs[0].dtype)
        y = low.op("stablehlo.convert", (converted,), (y,))[0]
        ins = (ins[0], converted)
    x, y = family.spread(low, ins, outs[0].shape, (x, y))
    if not dtypes.is_complex(outs[0].dtype):
        return low.op("stablehlo.power", outs, (x, y))
    # XLA's complex power is exp(y log x), which is NaN at infinities that the simplest exponents should not see.
    flag = (outs[0].update(dtype=dtypes.bool_),)
    general = low.op("stablehlo.power", outs, (x, y))[0]
    for exponent, exact in ((1, x), (0, low.constant(1, outs[0]))):
        is_it = low.op("stablehlo.compare", flag, (y, low.constant(exponent, outs[0])), _direction("EQ"))[0]
        general = low.op("stablehlo.select", outs, (is_it, exact, general))[0]
    return [general]


def _pow_by_base(z: Any, x: Any, y: Any) -> Any:
    # y x^(y-1), which is 0 at y = 0 also where x^(y-1) is infinite.
    constant = eq(y, like(y, 0))
    power = pow(x, select_n(constant, sub(y, like(y, 1)), like(y, 1)))
    return mul(power, convert(select_n(constant, y, like(y, 0)), typeof(z).dtype))


def _pow_by_exponent(z: Any, x: Any, y: Any) -> Any:
    # log(x) is -inf at x = 0, but x^y = 0 is constant there, so replace x by 1.
    return mul(log(select_n(eq(x, like(x, 0)), x, like(x, 1))), z)


pow = Primitive(
    "pow", type=_pow_type, lower=_lower_pow, partials=(_pow_by_base, _pow_by_exponent), elementwise=True
)  # fmt: skip


# ---- trigonometry ----------------------------------------------------------------------------------------------------


def _one_minus_square(x: Any) -> Any:
    """1 - x^2 without cancellation near -1 and 1."""
    return mul(sub(like(x, 1), x), add(x, like(x, 1)))


def _is_complex(x: Any) -> bool:
    return dtypes.is_complex(typeof(x).dtype)


def _asin_slope(x: Any) -> Any:
    if _is_complex(x):  # two roots: on the branch cuts the root of the product may have the other sign
        return _reciprocal(mul(sqrt(sub(like(x, 1), x)), sqrt(add(x, like(x, 1)))))
    return rsqrt(_one_minus_square(x))


def _acosh_slope(x: Any) -> Any:
    if _is_complex(x):
        return _reciprocal(mul(sqrt(sub(x, like(x, 1))), sqrt(add(x, like(x, 1)))))
    return rsqrt(mul(sub(x, like(x, 1)), add(x, like(x, 1))))


sin = _row("sin", "fc", "stablehlo.sine", lambda y, x, **_: cos(x), accurate=True)
cos = _row("cos", "fc", "stablehlo.cosine", lambda y, x, **_: neg(sin(x)), accurate=True)
tan = _row("tan", "fc", "chlo.tan", lambda y, x, **_: add(mul(y, y), like(y, 1)), accurate=True)
asin = _row("asin", "fc", "chlo.asin", lambda y, x: _asin_slope(x))
acos = _row("acos", "fc", "chlo.acos", lambda y, x: neg(_asin_slope(x)))
atan = _row("atan", "fc", "chlo.atan", lambda y, x: _reciprocal(add(mul(x, x), like(x, 1))))
sinh = _row("sinh", "fc", "chlo.sinh", lambda y, x: cosh(x))
cosh = _row("cosh", "fc", "chlo.cosh", lambda y, x: sinh(x))
tanh = _row("tanh", "fc", "stablehlo.tanh", lambda y, x, **_: sub(like(y, 1), mul(y, y)), accurate=True)
asinh = _row("asinh", "fc", "chlo.asinh", lambda y, x: rsqrt(add(mul(x, x), like(x, 1))))
acosh = _row("acosh", "fc", "chlo.acosh", lambda y, x: _acosh_slope(x))
atanh = _row("atanh", "fc", "chlo.atanh", lambda y, x: _reciprocal(_one_minus_square(x)))


def _over_square(u: Any, x: Any, y: Any) -> Any:
    """u / (x^2 + y^2); real operands are scaled first, so that no square overflows or vanishes."""
    if _is_complex(u):
        return div(u, add(mul(x, x), mul(y, y)))
    size = max(abs(x), abs(y))
    x, y = div(x, size), div(y, size)
    return div(div(div(u, size), add(mul(x, x), mul(y, y))), size)


atan2 = _row(
    "atan2", "fc", "stablehlo.atan2", lambda z, x, y: _over_square(y, x, y), lambda z, x, y: neg(_over_square(x, x, y))
)  # fmt: skip


# ---- complex numbers -------------------------------------------------------------------------------------------------
# Cotangents pair with tangents as Re(ct * t), without conjugation.

real = Primitive(
    "real", type=elementwise_type("real", "c", dtypes.to_real), lower=lower_as("stablehlo.real"), elementwise=True,
    linear=(0,), transpose=lambda ct, x: (complex(ct, like(ct, 0)),),
)  # fmt: skip

imag = Primitive(
    "imag", type=elementwise_type("imag", "c", dtypes.to_real), lower=lower_as("stablehlo.imag"), elementwise=True,
    linear=(0,), transpose=lambda ct, x: (complex(like(ct, 0), neg(ct)),),
)  # fmt: skip


def _complex_dtype(dtype: Any) -> Any:
    if dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"complex: parts must be float32 or float64; they are {dtype.name}. Convert them first.")
    return dtypes.to_complex(dtype)


complex = Primitive(
    "complex", type=elementwise_type("complex", "f", _complex_dtype), lower=lower_as("stablehlo.complex"),
    elementwise=True, linear=(0, 1),
    transpose=lambda ct, x, y: (
        _unbroadcast(real(ct), x) if is_unknown(x) else None,
        _unbroadcast(neg(imag(ct)), y) if is_unknown(y) else None,
    ),
)  # fmt: skip


def _lower_conj(low: Any, ins: Any, outs: Any, x: Any, *, input_dtype: Any) -> Any:
    if not dtypes.is_complex(ins[0].dtype):
        return low.op("stablehlo.complex", outs, (x, low.constant(0, ins[0])))
    part = (outs[0].update(dtype=dtypes.to_real(outs[0].dtype)),)
    re, im = low.op("stablehlo.real", part, (x,))[0], low.op("stablehlo.imag", part, (x,))[0]
    return low.op("stablehlo.complex", outs, (re, low.op("stablehlo.negate", part, (im,))[0]))


def _conj_transpose(ct: Any, x: Any, *, input_dtype: Any) -> Any:
    if dtypes.is_complex(input_dtype):
        return (conj(ct, input_dtype=input_dtype),)
    return (real(ct),)


conj = Primitive(
    "conj",
    type=elementwise_type("conj", "fc", lambda dtype: dtype if dtypes.is_complex(dtype) else _complex_dtype(dtype)),
    lower=_lower_conj,
    linear=(0,),
    transpose=_conj_transpose,
    elementwise=True,
)


def _complex_of(x: Any) -> Any:
    return complex(x, like(x, 0))


# ---- conversions -----------------------------------------------------------------------------------------------------


def _convert_type(x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    if isinstance(x.dtype, dtypes.KeyDType) != isinstance(new_dtype, dtypes.KeyDType):
        raise TypeError(
            f"convert_element_type: cannot convert {x.dtype.name} to {new_dtype.name}. Use random.key_data or "
            "random.wrap_key_data."
        )
    return x.update(dtype=new_dtype, weak_type=weak_type)


def _lower_convert(low: Any, ins: Any, outs: Any, x: Any, **params: Any) -> Any:
    source, target = ins[0].dtype, outs[0].dtype
    if source == target:
        return [x]
    if dtypes.is_complex(source) and not dtypes.is_complex(target):
        real = ins[0].update(dtype=dtypes.to_real(source))
        x = low.op("stablehlo.real", (real,), (x,))[0]
    if target == np.bool_:
        zero = low.constant(0, ins[0].update(dtype=dtypes.to_real(source) if dtypes.is_complex(source) else source))
        return low.op("stablehlo.compare", outs, (x, zero), _direction("NE"))
    return low.op("stablehlo.convert", outs, (x,))


def _convert_transpose(ct: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    return (convert_element_type(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type, sharding=None),)


convert_element_type = Primitive(
    "convert_element_type",
    type=_convert_type,
    lower=_lower_convert,
    linear=(0,),
    transpose=_convert_transpose,
    elementwise=True,
    show=lambda params: {"new_dtype": params["new_dtype"], "weak_type": params["weak_type"]},
    read=lambda shown, ins, outs: {**shown, "sharding": None},
)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` as `dtype`; `x` itself where nothing changes. Host scalars are converted on the host."""
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if isinstance(x, np.generic) and not weak_type:
        return np.asarray(x).astype(dtype)[()]
    return convert_element_type(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


# ---- comparisons and bits --------------------------------------------------------------------------------------------

_BOOL = "its result is a bool"
_BITS = "it works on bits"


def _direction(direction: str) -> dict[str, str]:
    return {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}


def _lower_compare(attributes: dict[str, str]) -> Any:
    plain = lower_as("stablehlo.compare", attributes)
    combiner = "stablehlo.or" if "NE" in attributes["comparison_direction"] else "stablehlo.and"

    def lower(low: Any, ins: Any, outs: Any, x: Any, y: Any) -> Any:
        words = low.key_words(ins[0])
        if not words:
            return plain(low, ins, outs, x, y)
        x, y = family.spread(low, ins, outs[0].shape, (x, y))
        flags = outs[0].update(shape=(*outs[0].shape, *words))
        each = low.op("stablehlo.compare", (flags,), (x, y), attributes)[0]
        axes = range(outs[0].ndim, flags.ndim)
        return low.reduce(combiner, flags, outs[0], each, combiner == "stablehlo.and", axes)

    return lower


def _comparison(name: str, kinds: str, direction: str, total: bool = False) -> Primitive:
    attributes = _direction(direction)
    if total:
        attributes["compare_type"] = "#stablehlo<comparison_type TOTALORDER>"
    return Primitive(
        name,
        type=elementwise_type(name, kinds, lambda dtype: dtypes.bool_),
        lower=_lower_compare(attributes),
        nondiff=_BOOL,
        elementwise=True,
    )


eq = _comparison("eq", "fciubk", "EQ")
ne = _comparison("ne", "fciubk", "NE")
lt = _comparison("lt", "fiub", "LT")
le = _comparison("le", "fiub", "LE")
gt = _comparison("gt", "fiub", "GT")
ge = _comparison("ge", "fiub", "GE")
# Total order: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.
eq_to = _comparison("eq_to", "f", "EQ", total=True)
lt_to = _comparison("lt_to", "f", "LT", total=True)
le_to = _comparison("le_to", "f", "LE", total=True)

not_ = _row("not", "iub", "stablehlo.not", nondiff=_BITS)
and_ = _row("and", "iub", "stablehlo.and", nondiff=_BITS)
or_ = _row("or", "iub", "stablehlo.or", nondiff=_BITS)
xor = _row("xor", "iub", "stablehlo.xor", nondiff=_BITS)
shift_left = _row("shift_left", "iu", "stablehlo.shift_left", nondiff=_BITS)
shift_right_logical = _row("shift_right_logical", "iu", "stablehlo.shift_right_logical", nondiff=_BITS)
shift_right_arithmetic = _row("shift_right_arithmetic", "iu", "stablehlo.shift_right_arithmetic", nondiff=_BITS)
mulhi = _row("mulhi", "iu", "chlo.mulhi", nondiff=_BITS)
population_count = _row("population_count", "iu", "stablehlo.popcnt", nondiff=_BITS)
clz = _row("clz", "iu", "stablehlo.count_leading_zeros", nondiff=_BITS)


# ---- selection -------------------------------------------------------------------------------------------------------


def _select_type(which: Any, *cases: Any) -> Any:
    if which.dtype.name not in ("bool", "int32"):
        raise TypeError(f"select_n: the selector must be bool or int32; it is {which}. Compare, or convert it.")
    if which.dtype.name == "bool" and len(cases) > 2:
        raise TypeError(f"select_n: a bool selector chooses between two cases; {len(cases)} were given.")
    shape = family.common_shape("select_n", (which, *cases))
    return family.joined("select_n", cases, shape, family.common_dtype("select_n", cases))


def _lower_select(low: Any, ins: Any, outs: Any, which: Any, *operands: Any) -> Any:
    shape = outs[0].shape
    cases = family.spread(low, ins[1:], shape, operands)
    if len(cases) == 1:
        return cases
    words = low.key_words(outs[0])
    if words:
        physical = (*shape, *words)
        which = low.broadcast(which, ins[0], physical, tuple(range(ins[0].ndim)))
        shape, ins = physical, (ins[0].update(shape=physical), *ins[1:])
    if ins[0].dtype.name == "bool":
        return low.op("stablehlo.select", outs, (which, cases[1], cases[0]))
    chosen = cases[-1]
    for k in range(len(cases) - 2, -1, -1):  # from the last: case k where which <= k
        bound = low.constant(k, ins[0])
        flag = ins[0].update(dtype=dtypes.bool_)
        below = low.op("stablehlo.compare", (flag,), (which, bound), _direction("LE"))[0]
        below = below if ins[0].shape or not shape else low.broadcast(below, flag, shape, ())
        chosen = low.op("stablehlo.select", outs, (below, cases[k], chosen))[0]
    return [chosen]


def _select_transpose(ct: Any, which: Any, *cases: Any) -> Any:
    nothing = like(ct, 0)
    cts: list[Any] = [None]
    for k, case in enumerate(cases):
        mine = [ct if i == k else nothing for i in range(len(cases))]
        cts.append(_unbroadcast(select_n(which, *mine), case) if is_unknown(case) else None)
    return tuple(cts)


def _select_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    out = select_n(which, *cases)
    if not dtypes.is_inexact(typeof(out).dtype):
        return out, None
    nothing = like(out, 0)
    given = [nothing if t is None else t for t in tangents[1:]]
    shape = typeof(out).shape
    if all(not typeof(t).shape for t in given):  # the selector decides the shape, and may be a scalar
        given[0] = full(shape, given[0])
    return out, select_n(which, *given)


select_n = Primitive(
    "select_n",
    type=_select_type,
    lower=_lower_select,
    jvp=_select_jvp,
    transpose=_select_transpose,
    elementwise=True,
)
