"""Special functions that XLA knows, a row each. Derivatives are from Abramowitz and Stegun, chapters 6, 7 and 23."""

from typing import Any

import numpy as np

from morphax.ir.primitive import Primitive
from morphax.ops import elementwise as ew
from morphax.ops.family import elementwise_type, like, lower_as

_TWO_OVER_ROOT_PI = 2 / float(np.sqrt(np.pi))


def _row(name: str, opname: str, *partials: Any) -> Primitive:
    return Primitive(
        name, type=elementwise_type(name, "f"), lower=lower_as(opname), elementwise=True, partials=partials
    )


def _bell(y: Any, x: Any) -> Any:
    """d erf(x)/dx = 2/sqrt(pi) exp(-x^2)."""
    return ew.mul(like(x, _TWO_OVER_ROOT_PI), ew.exp(ew.neg(ew.mul(x, x))))


def unknown(name: str, operand: str) -> Any:
    """A partial derivative that nobody has given."""

    def partial(*operands: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"{name}: there is no derivative with respect to {operand}. Put stop_gradient around what is constant."
        )

    return partial


erf = _row("erf", "chlo.erf", _bell)
erfc = _row("erfc", "chlo.erfc", lambda y, x: ew.neg(_bell(y, x)))
erf_inv = _row("erf_inv", "chlo.erf_inv", lambda y, x: ew.mul(like(y, 1 / _TWO_OVER_ROOT_PI), ew.exp(ew.mul(y, y))))
lgamma = _row("lgamma", "chlo.lgamma", lambda y, x: digamma(x))
digamma = _row("digamma", "chlo.digamma", lambda y, x: polygamma(like(x, 1), x))
# The derivative of order m of digamma(x); 6.4.1.
polygamma = _row(
    "polygamma",
    "chlo.polygamma",
    unknown("polygamma", "the order m"),
    lambda y, m, x: polygamma(ew.add(m, like(m, 1)), x),
)
# sum of (q + k)^-x over k >= 0; d/dq lowers each exponent by one.
zeta = _row(
    "zeta",
    "chlo.zeta",
    unknown("zeta", "the exponent x"),
    lambda y, x, q: ew.mul(ew.neg(x), zeta(ew.add(x, like(x, 1)), q)),
)
