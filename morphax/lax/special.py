"""Incomplete gamma and beta functions and Bessel functions of lax. They are computed in float64, whatever the dtype."""

from typing import Any

from morphax.lax.arguments import operand, operands
from morphax.ops import bessel, incomplete


def igamma(a: Any, x: Any) -> Any:
    """Regularised lower incomplete gamma function P(a, x): the chance that a gamma variate of shape `a` is below `x`.

    Args:
        a: array of floats, at least 0.
        x: another of the same dtype, and of the same shape or a scalar, at least 0. NaN comes of negative ones.

    Derivative: in both operands; of the second order not twice in `a`.

    >>> print(igamma(1.0, 1.0))
    0.63212055
    """
    return incomplete.igamma(*operands("igamma", (a, x)))


def igammac(a: Any, x: Any) -> Any:
    """Regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), exact also where it is small.

    Args:
        a: array of floats, at least 0.
        x: another of the same dtype, and of the same shape or a scalar, at least 0.

    >>> print(igammac(1.0, 1.0))
    0.36787945
    """
    return incomplete.igammac(*operands("igammac", (a, x)))


def igamma_grad_a(a: Any, x: Any) -> Any:
    """Derivative of `igamma(a, x)` in `a`.

    Args:
        a: array of floats, at least 0.
        x: another of the same dtype, and of the same shape or a scalar, at least 0.

    >>> print(igamma_grad_a(1.0, 1.0))
    -0.4317297
    """
    return incomplete.igamma_grad_a(*operands("igamma_grad_a", (a, x)))


def random_gamma_grad(*args: Any) -> Any:
    """Derivative in `a` of a draw `x` from the gamma distribution of shape `a`: -(dP/da) / (dP/dx).

    Args:
        args: a and x, arrays of floats of one dtype, of one shape or scalars.

    Source: Figurnov, Mohamed, Mnih, Implicit Reparameterization Gradients (2018).

    >>> print(random_gamma_grad(1.0, 1.0))
    1.173563
    """
    return incomplete.random_gamma_grad(*operands("random_gamma_grad", args))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Regularised incomplete beta function: the chance that a beta variate of shapes `a` and `b` is below `x`.

    Args:
        a: array of floats, at least 0.
        b: another of the same dtype, and of the same shape or a scalar, at least 0.
        x: another, in [0, 1]; NaN comes of others.

    Derivative: in `x` only.

    >>> print(betainc(2.0, 1.0, 0.5))
    0.25
    """
    return incomplete.regularized_incomplete_beta(*operands("regularized_incomplete_beta", (a, b, x)))


def bessel_i0e(x: Any) -> Any:
    """e^-|x| I_0(x), of the modified Bessel function of order 0.

    Args:
        x: array of floats.

    >>> print(bessel_i0e(1.0))
    0.4657596
    """
    return bessel.bessel_i0e(operand("bessel_i0e", x))


def bessel_i1e(x: Any) -> Any:
    """e^-|x| I_1(x), of the modified Bessel function of order 1.

    Args:
        x: array of floats.

    >>> print(bessel_i1e(1.0))
    0.20791042
    """
    return bessel.bessel_i1e(operand("bessel_i1e", x))


bessel_i0e_p = bessel.bessel_i0e
bessel_i1e_p = bessel.bessel_i1e
igamma_grad_a_p = incomplete.igamma_grad_a
igamma_p = incomplete.igamma
igammac_p = incomplete.igammac
regularized_incomplete_beta_p = incomplete.regularized_incomplete_beta

__all__ = [
    "bessel_i0e",
    "bessel_i0e_p",
    "bessel_i1e",
    "bessel_i1e_p",
    "betainc",
    "igamma",
    "igamma_grad_a",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac",
    "igammac_p",
    "random_gamma_grad",
    "regularized_incomplete_beta_p",
]
