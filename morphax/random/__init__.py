"""Random numbers from explicit keys: the names of `jax.random`, and the same numbers for the same seeds.

Modules, lowest first: keys, draws, distributions, orders, gammas, counts, vectors.
"""

from morphax.random.counts import binomial, multinomial, poisson
from morphax.random.distributions import (
    bernoulli,
    cauchy,
    double_sided_maxwell,
    exponential,
    geometric,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rademacher,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from morphax.random.draws import bits, normal, randint, uniform
from morphax.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from morphax.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from morphax.random.orders import categorical, choice, permutation
from morphax.random.vectors import multivariate_normal, orthogonal
from morphax.support import tracebacks as _tracebacks

_tracebacks.bound_functions(globals())

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]
