"""Entropies, logistic functions, powers and sums of exponentials."""

from typing import Any

import scipy.special

from morphax import numpy as jnp
from morphax.ops import elementwise as ew
from morphax.runtime.jit import program
from morphax.scipy.operands import floats, numbers, smooth, typeof
from morphax.support import dtypes


@program()
def logit(x: Any) -> Any:
    """log(x / (1 - x)), the inverse of `expit`.

    >>> logit(0.5).item()
    0.0
    """
    (x,) = floats("logit", x)
    return jnp.log(x) - jnp.log1p(-x)


@program()
def expit(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x)).

    >>> expit(0.0).item()
    0.5
    """
    return ew.logistic(numbers("expit", x)[0])


@smooth(lambda z, x, y: jnp.log(y), lambda z, x, y: x / y)
def _xlogy(x: Any, y: Any) -> Any:
    zero = x == 0
    return jnp.where(zero, jnp.where(jnp.isnan(y), y, 0), x * jnp.log(jnp.where(zero, 1, y)))


@smooth(lambda z, x, y: jnp.log1p(y), lambda z, x, y: x / (1 + y))
def _xlog1py(x: Any, y: Any) -> Any:
    zero = x == 0
    return jnp.where(zero, jnp.where(jnp.isnan(y), y, 0), x * jnp.log1p(jnp.where(zero, 0, y)))


@program()
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), which is 0 at x = 0.

    >>> xlogy(0.0, 0.0).item()
    0.0
    """
    return _xlogy(*numbers("xlogy", x, y))


@program()
def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), which is 0 at x = 0.

    >>> xlog1py(0.0, -1.0).item()
    0.0
    """
    return _xlog1py(*numbers("xlog1py", x, y))


@smooth(lambda y, x: -jnp.log(x) - 1)
def _entr(x: Any) -> Any:
    return jnp.where(x < 0, -jnp.inf, -_xlogy(x, x))


@program()
def entr(x: Any) -> Any:
    """-x log(x): 0 at 0 and -inf below.

    >>> entr(1.0).item() == 0
    True
    """
    return _entr(*floats("entr", x))


def _ratio_term(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """p log(p / q) where both are positive, and the masks of that and of the zeros of p with q >= 0."""
    inside, edge = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    p, q = jnp.where(inside, p, 1), jnp.where(inside, q, 1)
    return p * jnp.log(p / q), inside, edge


@program()
def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q): 0 at p = 0, inf outside the domain.

    >>> rel_entr(1.0, 1.0).item()
    0.0
    """
    p, q = floats("rel_entr", p, q)
    term, inside, edge = _ratio_term(p, q)
    return jnp.where(jnp.isnan(p + q), jnp.nan, jnp.where(inside, term, jnp.where(edge, 0, jnp.inf)))


@program()
def kl_div(p: Any, q: Any) -> Any:
    """p log(p / q) - p + q, inf outside the domain.

    >>> kl_div(0.0, 2.0).item()
    2.0
    """
    p, q = floats("kl_div", p, q)
    term, inside, edge = _ratio_term(p, q)
    return jnp.where(jnp.isnan(p + q), jnp.nan, jnp.where(inside, term - p + q, jnp.where(edge, q, jnp.inf)))


@smooth(
    lambda y, x, l: _power(l - 1, jnp.log(x)),
    lambda y, x, l: jnp.where(
        jnp.abs(l * jnp.log(x)) < 1e-3,
        jnp.log(x) ** 2 * (0.5 + l * jnp.log(x) / 3),
        (_power(l, jnp.log(x)) * jnp.log(x) - y) / jnp.where(l == 0, 1, l),
    ),
)
def _boxcox(x: Any, l: Any) -> Any:
    return _box(jnp.log(x), l)


@smooth(
    lambda y, x, l: _power(l - 1, jnp.log1p(x)),
    lambda y, x, l: jnp.where(
        jnp.abs(l * jnp.log1p(x)) < 1e-3,
        jnp.log1p(x) ** 2 * (0.5 + l * jnp.log1p(x) / 3),
        (_power(l, jnp.log1p(x)) * jnp.log1p(x) - y) / jnp.where(l == 0, 1, l),
    ),
)
def _boxcox1p(x: Any, l: Any) -> Any:
    return _box(jnp.log1p(x), l)


def _power(exponent: Any, log: Any) -> Any:
    return jnp.exp(exponent * log)


def _box(log: Any, l: Any) -> Any:
    return jnp.where(l == 0, log, jnp.expm1(l * log) / jnp.where(l == 0, 1, l))


@program()
def boxcox(x: Any, lmbda: Any) -> Any:
    """(x^lmbda - 1) / lmbda, which is log(x) at lmbda = 0.

    >>> boxcox(3.0, 1.0).item()
    2.0
    """
    return _boxcox(*floats("boxcox", x, lmbda))


@program()
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """((1 + x)^lmbda - 1) / lmbda, which is log(1 + x) at lmbda = 0.

    >>> boxcox1p(0.0, 2.0).item()
    0.0
    """
    return _boxcox1p(*floats("boxcox1p", x, lmbda))


# ---- sums of exponentials --------------------------------------------------------------------------------------------


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log(sum(b exp(a))) over `axis`, without overflow.

    Args:
        b: weights, which may be negative or zero.
        return_sign: also return the sign (of modulus 1 for complex numbers) of the sum, and the log of its modulus.
        where: entries that count.

    >>> round(logsumexp([0.0, 0.0]).item(), 4)
    0.6931
    """
    a = jnp.asarray(a) if isinstance(a, (list, tuple)) else a
    b = jnp.asarray(b) if isinstance(b, (list, tuple)) else b
    out, sign = _logsumexp(a, b, where, axis=_axes(axis), keepdims=keepdims)
    if return_sign:
        return out, sign
    if b is not None and not dtypes.is_complex(typeof(out).dtype) and not dtypes.is_complex(typeof(sign).dtype):
        return jnp.where(sign < 0, jnp.nan, out)
    return out + jnp.log(sign) if dtypes.is_complex(typeof(sign).dtype) else out


@program("axis", "keepdims")
def _logsumexp(a: Any, b: Any, where: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    if b is None:
        (a,) = numbers("logsumexp", a)
    else:
        a, b = numbers("logsumexp", a, b)
        a = jnp.where(b == 0, -jnp.inf, a)
    if where is not None:
        a = jnp.where(where, a, -jnp.inf)
    top = jnp.max(jnp.real(a), axis=axis, keepdims=True, initial=-jnp.inf)
    top = ew.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    terms = jnp.exp(a - top)
    terms = terms if b is None else jnp.where(b == 0, 0, b * terms)
    total = jnp.sum(terms, axis=axis, keepdims=keepdims)
    top = top if keepdims else jnp.squeeze(top, axis=axis)
    sign = jnp.sign(total)
    return jnp.log(jnp.abs(total)) + top, ew.stop_gradient(sign) if b is not None else sign


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over `axis`, over all axes for None.

    >>> softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    return _softmax(jnp.asarray(x) if isinstance(x, (list, tuple)) else x, axis=_axes(axis))


@program("axis")
def _softmax(x: Any, axis: Any) -> Any:
    (x,) = numbers("softmax", x)
    top = ew.stop_gradient(jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(x - top)
    return terms / jnp.sum(terms, axis=axis, keepdims=True)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """x - log(sum(exp(x))) over `axis`, over all axes for None.

    >>> round(log_softmax([0.0, 0.0])[1].item(), 4)
    -0.6931
    """
    return _log_softmax(jnp.asarray(x) if isinstance(x, (list, tuple)) else x, axis=_axes(axis))


@program("axis")
def _log_softmax(x: Any, axis: Any) -> Any:
    (x,) = numbers("log_softmax", x)
    shifted = x - ew.stop_gradient(jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=axis, keepdims=True))


@program("n")
def bernoulli(n: int) -> Any:
    """The Bernoulli numbers B_0 to B_n, with B_1 = -1/2. `n` is a static int.

    >>> bernoulli(2).tolist()
    [1.0, -0.5, 0.1666...]
    """
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative; it is {n}.")
    return jnp.asarray(scipy.special.bernoulli(max(n, 2))[: n + 1], dtype=dtypes.default_float_dtype())
