"""Activation functions, elementwise but for `glu`, and the softmax family. Values and derivatives hold in the tails, at
infinities too."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.control import custom, platform
from morphax.numpy import creation, promotion, reductions, shapes, sorting, ufuncs
from morphax.ops import elementwise as ew
from morphax.ops import special
from morphax.ops.family import like, typeof
from morphax.runtime.jit import program
from morphax.support import dtypes

where = sorting.where

# ---- made of pieces --------------------------------------------------------------------------------------------------
# Comparisons select the piece, so that derivatives are those of the piece, 0 where a flat one begins, and NaN stays.


def _real(name: str, x: Any) -> Any:
    """A numeric operand that is not complex.

    Raises:
        TypeError: it is complex.
    """
    x = promotion.numeric(name, x)
    if dtypes.is_complex(typeof(x).dtype):
        raise TypeError(f"{name}: needs real input, got {typeof(x).dtype.name}. Apply it to the parts: x.real, x.imag.")
    return x


def _inexact(name: str, x: Any) -> Any:
    return _real(name, promotion.inexact(name, x))


def _within(x: Any, low: float, high: float) -> Any:
    """x clipped."""
    return ew.min(ew.max(x, like(x, low)), like(x, high))


def identity(x: Any) -> Any:
    """The argument, as an array."""
    return creation.asarray(x)


@program()
def relu(x: Any) -> Any:
    """max(x, 0). The derivative at 0 is 0.

    >>> from morphax import nn, numpy as jnp
    >>> nn.relu(jnp.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    x = _real("relu", x)
    return where(x <= 0, like(x, 0), x)


@program()
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6). The derivative at 0 and 6 is 0."""
    x = _real("relu6", x)
    return where(x >= 6, like(x, 6), where(x <= 0, like(x, 0), x))


@program()
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x for x >= 0, else negative_slope x."""
    x = _inexact("leaky_relu", x)
    return where(x >= 0, x, x * negative_slope)


@program()
def hard_tanh(x: Any) -> Any:
    """x clipped to [-1, 1]. The derivative is 1 at -1 and 1."""
    x = _real("hard_tanh", x)
    return where(x > 1, like(x, 1), where(x < -1, like(x, -1), x))


@program()
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6."""
    x = _inexact("hard_sigmoid", x)
    return relu6(x + 3) / 6


@program()
def hard_silu(x: Any) -> Any:
    """x relu6(x + 3) / 6: 0 below -3, x above 3."""
    x = _inexact("hard_silu", x)
    middle = _within(x, -3, 3)
    return where(x <= -3, like(x, 0), where(x >= 3, x, middle * (middle + 3) / 6))


hard_swish = hard_silu


@program()
def sparse_plus(x: Any) -> Any:
    """0 below -1, (x + 1)^2 / 4 up to 1, x above: the integral of `sparse_sigmoid`."""
    x = _inexact("sparse_plus", x)
    middle = _within(x, -1, 1) + 1
    return where(x <= -1, like(x, 0), where(x >= 1, x, middle * middle / 4))


@program()
def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 clipped to [0, 1]."""
    x = _inexact("sparse_sigmoid", x)
    return where(x <= -1, like(x, 0), where(x >= 1, like(x, 1), (x + 1) / 2))


@program()
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x for x > 0, else alpha (e^x - 1). Clevert, Unterthiner, Hochreiter: arXiv 1511.07289."""
    x = _inexact("elu", x)
    return where(x > 0, x, alpha * ufuncs.expm1(where(x > 0, like(x, 0), x)))


@program()
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """x for x > 0, else alpha (e^(x / alpha) - 1). Barron: arXiv 1704.07483."""
    x = _inexact("celu", x)
    return where(x > 0, x, alpha * ufuncs.expm1(where(x > 0, like(x, 0), x) / alpha))


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@program()
def selu(x: Any) -> Any:
    """1.0507 elu(x, 1.6733), which keeps mean 0 and variance 1. Klambauer et al.: arXiv 1706.02515."""
    x = _inexact("selu", x)
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@program("axis")
def glu(x: Any, axis: int = -1) -> Any:
    """First half of `x` times the sigmoid of the second half. Dauphin et al.: arXiv 1612.08083.

    Raises:
        ValueError: the size of the axis is odd.

    >>> from morphax import nn, numpy as jnp
    >>> nn.glu(jnp.array([1.0, 0.0])).tolist()
    [0.5]
    """
    x = _inexact("glu", x)
    size = typeof(x).shape[promotion.axis_of("glu", axis, typeof(x).ndim)]
    if size % 2:
        raise ValueError(f"glu: axis {axis} has size {size}, which must be even. Pad it, or choose another axis.")
    first, second = shapes.split(x, 2, axis=axis)
    return first * sigmoid(second)


# ---- smooth ----------------------------------------------------------------------------------------------------------
# Products x g(x) are given their slopes: those that follow from the product are NaN at infinities.


def _smooth(name: str, value: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    """Elementwise function with its derivative: slope(x) at x within +-800, where all are flat or straight."""
    function = custom.custom_jvp(value)

    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return function(x), t * slope(_within(x, -800, 800))

    function.defjvp(rule)

    def call(x: Any) -> Any:
        x = promotion.inexact(name, x)
        return value(x) if dtypes.is_complex(typeof(x).dtype) else function(x)

    return call


def _above_lowest(x: Any) -> Any:
    """-inf as the lowest number, which times zero is zero."""
    if dtypes.is_complex(typeof(x).dtype):
        return x
    return ew.max(x, like(x, float(dtypes.finfo(typeof(x).dtype).min)))


@program()
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x).

    >>> from morphax import nn
    >>> nn.sigmoid(0.0).item()
    0.5
    """
    return ew.logistic(promotion.inexact("sigmoid", x))


def _softplus_value(x: Any) -> Any:
    if dtypes.is_complex(typeof(x).dtype):
        return ufuncs.logaddexp(x, 0.0)
    return ew.max(x, like(x, 0)) + ew.log1p(ew.exp(-abs(x)))


_softplus = _smooth("softplus", _softplus_value, ew.logistic)


@program()
def softplus(x: Any) -> Any:
    """log(1 + e^x)."""
    return _softplus(x)


@program()
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)) = -softplus(-x)."""
    x = promotion.inexact("log_sigmoid", x)
    return -softplus(-x)


def _silu_slope(x: Any) -> Any:
    return ew.logistic(x) * (1 + x * ew.logistic(-x))


_silu = _smooth("silu", lambda x: _above_lowest(x) * ew.logistic(x), _silu_slope)


@program()
def silu(x: Any) -> Any:
    """x sigmoid(x), also known as swish. Hendrycks, Gimpel: arXiv 1606.08415.

    >>> from morphax import nn
    >>> nn.silu(0.0).item()
    0.0
    """
    return _silu(x)


swish = silu


def _mish_slope(x: Any) -> Any:
    gate = ew.tanh(softplus(x))
    return gate + x * (1 - gate) * (1 + gate) * ew.logistic(x)


_mish = _smooth("mish", lambda x: _above_lowest(x) * ew.tanh(softplus(x)), _mish_slope)


@program()
def mish(x: Any) -> Any:
    """x tanh(softplus(x)). Misra: arXiv 1908.08681."""
    return _mish(x)


def _soft_sign_value(x: Any) -> Any:
    size = ew.abs(x)
    return where(size == math.inf, ew.sign(x), x / (size + 1))


def _soft_sign_slope(x: Any) -> Any:
    inverse = 1 / (ew.abs(x) + 1)
    return inverse * inverse


_soft_sign = custom.custom_jvp(_soft_sign_value)
_soft_sign.defjvp(lambda primals, tangents: (_soft_sign(*primals), tangents[0] * _soft_sign_slope(*primals)))


@program()
def soft_sign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return _soft_sign(_inexact("soft_sign", x))


_LINEAR = math.sqrt(8 / math.pi)
_CUBIC = 0.044715


def _gelu_tanh_gate(x: Any) -> Any:
    # (1 + tanh u) / 2 = sigmoid(2 u), which loses no digits for u far below 0.
    return ew.logistic(_LINEAR * x * (1 + _CUBIC * x * x))


def _gelu_tanh_slope(x: Any) -> Any:
    x = _within(x, -30, 30)
    inner = _LINEAR * x * (1 + _CUBIC * x * x)
    steep = _LINEAR * (1 + 3 * _CUBIC * x * x)
    return ew.logistic(inner) * (1 + x * ew.logistic(-inner) * steep)


def _gelu_gate(x: Any) -> Any:
    return 0.5 * special.erfc(x * -math.sqrt(0.5))


def _gelu_slope(x: Any) -> Any:
    x = _within(x, -40, 40)
    return _gelu_gate(x) + x * ew.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))


_gelu_tanh = _smooth("gelu", lambda x: _above_lowest(x) * _gelu_tanh_gate(x), _gelu_tanh_slope)
_gelu_erf = _smooth("gelu", lambda x: _above_lowest(x) * _gelu_gate(x), _gelu_slope)


@program("approximate")
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function of x. Hendrycks, Gimpel: arXiv 1606.08415.

    Args:
        x: real array.
        approximate: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 instead, which is within 5e-4.

    >>> from morphax import nn
    >>> round(nn.gelu(1.0).item(), 4), round(nn.gelu(1.0, approximate=False).item(), 4)
    (0.8412, 0.8413)
    """
    return _gelu_tanh(x) if approximate else _gelu_erf(x)


def _squareplus_value(x: Any, b: Any) -> Any:
    root = ufuncs.hypot(x, ufuncs.sqrt(b))
    below = 0.5 * b / where(root - x == 0, like(x, 1), root - x)
    return where(x > 0, 0.5 * (x + root), below)


_squareplus = custom.custom_jvp(_squareplus_value)


def _squareplus_rule(primals: Any, tangents: Any) -> Any:
    x, b = primals
    y = _squareplus(x, b)
    root = ufuncs.hypot(x, ufuncs.sqrt(b))
    flat = (root == 0) | (root == math.inf)
    safe = where(flat, like(x, 1), root)
    slope = where(flat, 0.5 * (1 + ew.sign(x)), y / safe)
    return y, slope * tangents[0] + tangents[1] / (4 * safe)


_squareplus.defjvp(_squareplus_rule)


@program()
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x^2 + b)) / 2. Barron: arXiv 2112.11687.

    Args:
        x: real array.
        b: smoothness, not negative, a number or an array that broadcasts against `x`.
    """
    x, b = promotion.operands("squareplus", (_inexact("squareplus", x), b))
    shape = promotion.common_shape("squareplus", (typeof(x).shape, typeof(b).shape))
    return _squareplus(promotion.spread(x, shape), promotion.spread(b, shape))


def _log1mexp_value(x: Any) -> Any:
    near = x < math.log(2)
    small, large = where(near, x, like(x, 1)), where(near, like(x, 1), x)
    return where(near, ufuncs.log(-ufuncs.expm1(-small)), ufuncs.log1p(-ufuncs.exp(-large)))


_log1mexp = custom.custom_jvp(_log1mexp_value)


@_log1mexp.defjvp
def _log1mexp_rule(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _log1mexp(x), t * (ufuncs.exp(-x) / -ufuncs.expm1(-x))


@program()
def log1mexp(x: Any) -> Any:
    """log(1 - e^-x) for x >= 0; NaN for others. Maechler: Accurately computing log(1 - exp(-|a|)), 2012."""
    return _log1mexp(_inexact("log1mexp", x))


# ---- sums of exponentials --------------------------------------------------------------------------------------------


def _axes(name: str, x: Any, axis: Any) -> tuple[int, ...]:
    return promotion.axes_of(name, axis, typeof(x).ndim)


def _top(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The largest entry over the axes, which stay, without derivative: as it is, and made finite."""
    top = reductions.max(x, axis=axes, keepdims=True, initial=-math.inf)
    return top, where(abs(top) == math.inf, like(top, 0), top)


def _log1p(x: Any) -> Any:
    """log(1 + x) for x >= 0, from `log`, which XLA computes in vectors. Higham: Accuracy and stability, 1.14."""
    y = x + 1
    off = where(y == 1, like(y, 1), y - 1)
    return where(y == 1, x, ew.log(y) * (x / off))


def _log_sum(e: Any, largest: Any, axes: tuple[int, ...]) -> Any:
    """log of the sum of e, which are exponentials of entries less the largest of them.

    Where one is the largest its own e is 1, and log1p of the others' sum keeps what they add, however little. If
    rounding makes XLA take another view of `largest` in one of the sums, the other formula is used.
    """
    total = reductions.sum(e, axis=axes, keepdims=True)
    rest = reductions.sum(where(largest, like(e, 0), e), axis=axes, keepdims=True)
    alone = (total - rest > 0.75) & (total - rest < 1.25)
    # A value of its own: XLA would compute it anew for each entry that it is taken from, ten times slower.
    return platform.optimization_barrier(where(alone, _log1p(rest), ew.log(total)))


def _centered(t: Any, s: Any, axes: tuple[int, ...]) -> Any:
    """Tangents less their mean under the probabilities s.

    A constant taken from all tangents changes nothing. That of a dominant entry makes its own tangent 0, so that those
    of the others are not lost beside it, and by transposition neither are their cotangents.
    """
    top = reductions.sum(where(s > 0.5, t, like(t, 0)), axis=axes, keepdims=True)
    t = t - top
    return t - reductions.sum(s * t, axis=axes, keepdims=True)


def _softmax_value(x: Any, axes: tuple[int, ...]) -> Any:
    e = ew.exp(x - _top(x, axes)[0])
    return e / reductions.sum(e, axis=axes, keepdims=True)


_softmax = custom.custom_jvp(_softmax_value, nondiff_argnums=(1,))


@_softmax.defjvp
def _softmax_rule(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    y = _softmax(x, axes)
    return y, y * _centered(t, y, axes)


def _log_softmax_value(x: Any, axes: tuple[int, ...]) -> Any:
    top = _top(x, axes)[0]
    shifted = x - top
    return shifted - _log_sum(ew.exp(shifted), x == top, axes)


_log_softmax = custom.custom_jvp(_log_softmax_value, nondiff_argnums=(1,))


@_log_softmax.defjvp
def _log_softmax_rule(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    y = _log_softmax(x, axes)
    return y, _centered(t, ew.exp(y), axes)


def _masked(name: str, x: Any, mask: Any, fill: float) -> tuple[Any, Any]:
    """x with `fill` where the mask is not set, and the mask in the shape of x; None for None."""
    if mask is None:
        return x, None
    shape = promotion.common_shape(name, (typeof(x).shape, np.shape(mask)))
    x, mask = promotion.spread(x, shape), promotion.spread(promotion.array(name, mask), shape)
    return where(mask, x, like(x, fill)), mask


@program("axis")
def _softmax_program(x: Any, mask: Any, axis: Any) -> Any:
    x, mask = _masked("softmax", promotion.inexact("softmax", x), mask, -math.inf)
    axes = _axes("softmax", x, axis)
    if mask is None:
        return _softmax(x, axes)
    # Where nothing is unmasked any numbers will do: the result is 0 there, and so are its derivatives.
    x = where(reductions.any(mask, axis=axes, keepdims=True), x, like(x, 0))
    return where(mask, _softmax(x, axes), like(x, 0))


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """e^x over its sum along the axes.

    Args:
        x: real array.
        axis: along which the result sums to 1: an int, a tuple of them, or None for all.
        where: bools that broadcast against `x`: which entries take part; the others give 0.

    Derivative: kept in the tails, where one entry is nearly 1 and the others nearly 0.

    >>> from morphax import nn, numpy as jnp
    >>> nn.softmax(jnp.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return _softmax_program(x, where, axis=_hashable(axis))


def _hashable(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


@program("axis")
def _log_softmax_program(x: Any, mask: Any, axis: Any) -> Any:
    x, mask = _masked("log_softmax", promotion.inexact("log_softmax", x), mask, -math.inf)
    axes = _axes("log_softmax", x, axis)
    if mask is None:
        return _log_softmax(x, axes)
    x = where(reductions.any(mask, axis=axes, keepdims=True), x, like(x, 0))
    return where(mask, _log_softmax(x, axes), like(x, -math.inf))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """Logarithm of `softmax`; -inf where `where` is False.

    Args:
        x: real array.
        axis: an int, a tuple of them, or None for all.
        where: bools that broadcast against `x`: which entries take part.

    >>> from morphax import nn, numpy as jnp
    >>> nn.log_softmax(jnp.zeros(1)).tolist()
    [0.0]
    """
    return _log_softmax_program(x, where, axis=_hashable(axis))


def _logsumexp_value(x: Any, axes: tuple[int, ...]) -> Any:
    top, finite = _top(x, axes)
    return where(abs(top) == math.inf, top, finite + _log_sum(ew.exp(x - finite), x == top, axes))


_logsumexp = custom.custom_jvp(_logsumexp_value, nondiff_argnums=(1,))


@_logsumexp.defjvp
def _logsumexp_rule(axes: tuple[int, ...], primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    y = _logsumexp(x, axes)
    # An infinite sum follows its infinite entries; entries of -inf, even if all are, do not move it.
    endless = abs(y) == math.inf
    share = ew.exp(x - where(endless, like(y, 0), y))
    share = where(endless, (x == math.inf).astype(typeof(x).dtype), share)
    return y, reductions.sum(share * t, axis=axes, keepdims=True)


@program("axis", "keepdims")
def _plain_logsumexp(a: Any, mask: Any, axis: Any, keepdims: bool) -> Any:
    x, _ = _masked("logsumexp", promotion.inexact("logsumexp", a), mask, -math.inf)
    if dtypes.is_complex(typeof(x).dtype):
        return _complex_logsumexp(x, axis, keepdims)
    axes = _axes("logsumexp", x, axis)
    return _kept(_logsumexp(x, axes), axes, keepdims)


def _kept(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return x if keepdims else shapes.squeeze(x, axis=axes)


def _complex_logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    axes = _axes("logsumexp", x, axis)
    _, finite = _top(ufuncs.real(x), axes)
    finite = ew.stop_gradient(finite)
    total = reductions.sum(ufuncs.exp(x - finite), axis=axes, keepdims=True)
    return _kept(ufuncs.log(total) + finite, axes, keepdims)


@program("axis", "keepdims", "return_sign")
def _weighted_logsumexp(a: Any, b: Any, mask: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    a, b = promotion.operands("logsumexp", (promotion.inexact("logsumexp", a), b))
    shape = promotion.common_shape("logsumexp", (typeof(a).shape, typeof(b).shape))
    a, mask = _masked("logsumexp", promotion.spread(a, shape), mask, -math.inf)
    b = promotion.spread(b, typeof(a).shape)
    b = b if mask is None else where(mask, b, like(b, 0))
    axes = _axes("logsumexp", a, axis)
    real = ufuncs.real(a)
    top, finite = map(ew.stop_gradient, _top(where(b != 0, real, like(real, -math.inf)), axes))
    # Entries of weight 0 may be larger than all others: they are held back, so that 0 times them is 0.
    room = math.log(float(dtypes.finfo(typeof(real).dtype).max)) / 2
    a = where((b == 0) & (real > finite + room), finite + room, a)
    total = reductions.sum(b * ufuncs.exp(a - finite), axis=axes, keepdims=True)
    sign = ew.stop_gradient(ufuncs.sign(total))
    size = abs(total)
    none = (size == 0) & (top == -math.inf)  # nothing but zeros: -inf, with derivative 0
    log = where(none, like(size, -math.inf), ufuncs.log(where(none, like(size, 1), size)) + finite)
    if not return_sign:
        log = log if dtypes.is_complex(typeof(total).dtype) else where(sign < 0, like(log, math.nan), log)
        return _kept(log, axes, keepdims)
    return _kept(log, axes, keepdims), _kept(sign, axes, keepdims)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """Logarithm of the sum of b e^a along the axes.

    Args:
        a: array.
        axis: an int, a tuple of them, or None for all.
        b: weights that broadcast against `a`; 1 for None.
        keepdims: leave the axes in place, of size 1.
        return_sign: return the logarithm of the absolute value, and the sign; else negative sums give NaN.
        where: bools that broadcast against `a`: which entries take part.

    Derivative: 0 where nothing is added (all entries -inf).

    >>> from morphax import nn, numpy as jnp
    >>> nn.logsumexp(jnp.array([1000.0, -jnp.inf])).item()
    1000.0
    """
    axis = _hashable(axis)
    if b is None and not return_sign:
        return _plain_logsumexp(a, where, axis=axis, keepdims=bool(keepdims))
    b = 1.0 if b is None else b
    return _weighted_logsumexp(a, b, where, axis=axis, keepdims=bool(keepdims), return_sign=bool(return_sign))


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """Logarithm of the mean of e^x along the axes.

    Args:
        x: array.
        axis: an int, a tuple of them, or None for all.
        where: bools that broadcast against `x`: which entries take part.
        keepdims: leave the axes in place, of size 1.

    >>> from morphax import nn, numpy as jnp
    >>> nn.logmeanexp(jnp.full(3, 2.0)).item()
    2.0
    """
    return _logmeanexp(x, where, axis=_hashable(axis), keepdims=bool(keepdims))


@program("axis", "keepdims")
def _logmeanexp(x: Any, mask: Any, axis: Any, keepdims: bool) -> Any:
    x, mask = _masked("logmeanexp", promotion.inexact("logmeanexp", x), mask, -math.inf)
    axes = _axes("logmeanexp", x, axis)
    total = _plain_logsumexp(x, None, axis=axes, keepdims=keepdims)
    if mask is None:
        return total - math.log(max(1, math.prod([typeof(x).shape[d] for d in axes])))
    count = reductions.sum(mask.astype(typeof(total).dtype), axis=axes, keepdims=keepdims)
    return total - ufuncs.log(count)


# ---- whole arrays ----------------------------------------------------------------------------------------------------

_ALGORITHMS = ("fast", "stable")


@program("axis", "algorithm")
def _standardize(x: Any, mean: Any, variance: Any, epsilon: Any, mask: Any, axis: Any, algorithm: str) -> Any:
    x = promotion.inexact("standardize", x)
    if mean is None:
        mean = _mean(x, axis, mask)
    if variance is None and algorithm == "fast":
        square = ufuncs.real(x * ufuncs.conj(x)) if dtypes.is_complex(typeof(x).dtype) else x * x
        variance = _mean(square, axis, mask) - ufuncs.square(abs(mean))
        variance = where(variance < 0, like(variance, 0), variance)  # rounding, where all entries are nearly equal
    elif variance is None:
        variance = _mean(ufuncs.square(abs(x - mean)), axis, mask)
    return (x - mean) * ew.rsqrt(promotion.as_dtype(variance + epsilon, typeof(variance).dtype))


def _mean(x: Any, axis: Any, mask: Any) -> Any:
    return reductions.mean(x, axis=axis, keepdims=True, where=mask)


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """(x - mean) / sqrt(variance + epsilon).

    Args:
        x: array.
        axis: along which mean and variance are taken: an int, a tuple of them, or None for all.
        mean: used in place of that of `x`; it broadcasts against `x`.
        variance: as `mean`.
        epsilon: added to the variance.
        where: bools that broadcast against `x`: the entries that mean and variance are taken of.
        algorithm: "fast": mean(x^2) - mean(x)^2, one pass; "stable": mean((x - mean(x))^2), exact for far means too.

    Raises:
        ValueError: another algorithm.

    >>> from morphax import nn, numpy as jnp
    >>> [round(v, 3) for v in nn.standardize(jnp.array([1.0, 3.0])).tolist()]
    [-1.0, 1.0]
    """
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"standardize: algorithm is {algorithm!r}. Choose one of {', '.join(map(repr, _ALGORITHMS))}.")
    return _standardize(x, mean, variance, epsilon, where, axis=_hashable(axis), algorithm=algorithm)


@program("num_classes", "dtype", "axis")
def _one_hot(x: Any, num_classes: int, dtype: Any, axis: int) -> Any:
    x = promotion.array("one_hot", x)
    place = promotion.axis_of("one_hot", axis, typeof(x).ndim + 1)
    x = shapes.expand_dims(x, place)
    line = [1] * typeof(x).ndim
    line[place] = num_classes
    classes = creation.arange(num_classes, dtype=typeof(x).dtype).reshape(line)
    return (x == classes).astype(dtype)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Any:
    """1 at the place that each entry of `x` names, else 0.

    Args:
        x: integers; those outside [0, num_classes) give zeros alone.
        num_classes: size of the axis that is added.
        dtype: of the result; the default float for None.
        axis: where the axis stands in the result.

    >>> from morphax import nn, numpy as jnp
    >>> nn.one_hot(jnp.array([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    named = dtypes.default_float_dtype() if dtype is None else dtypes.named_dtype(dtype)
    return _one_hot(x, num_classes=int(num_classes), dtype=named, axis=axis)
