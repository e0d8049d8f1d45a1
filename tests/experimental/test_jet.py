"""Taylor mode against derivatives of the curve, taken one after the other."""

import math

import numpy as np
import pytest

import morphax
from morphax import lax
from morphax import numpy as jnp
from morphax.experimental.jet import jet

ORDER = 3
RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 0.8, size=(ORDER + 1, 4))
Y = RNG.uniform(0.2, 0.8, size=(ORDER + 1, 4))


@pytest.fixture(autouse=True)
def wide():
    with morphax.enable_x64(True):
        yield


@morphax.custom_jvp
def custom(x):
    return lax.stop_gradient(x * x)


custom.defjvp(lambda x, t: (custom(x[0]), 2 * x[0] * t[0]))


@morphax.custom_vjp
def custom_back(x):
    return lax.stop_gradient(x**3)


custom_back.defvjp(lambda x: (custom_back(x), x), lambda x, ct: (3 * x**2 * ct,))


def scanned(x):
    w = x[0]
    return lax.scan(lambda c, a: (c * a + w, jnp.sin(c)), x[1], x)


def looped(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, jnp.ones(4)))[1]


UNARY = {
    name: getattr(jnp, name)
    for name in """sin cos tan sinh cosh tanh exp expm1 exp2 log log1p sqrt cbrt square reciprocal arcsin arccos arctan
    arcsinh arctanh abs sign floor negative cumsum sort prod max min""".split()
}
FUNCTIONS = {
    **UNARY,
    "logistic": lax.logistic,
    "rsqrt": lax.rsqrt,
    "erf": lax.erf,
    "lgamma": lax.lgamma,
    "power": lambda x: x**2.5,
    "integer power": lambda x: x**5 + x**-3,
    "power of zero": lambda x: (x - x[0]) ** 3,
    "exponent": lambda x: x ** x[::-1],
    "division": lambda x: (1 + x[0]) / (x * x + 1.0) + 1 / x,
    "product": lambda x: jnp.outer(x, jnp.sin(x)) @ x,
    "scalar and array": lambda x: jnp.maximum(x[0], x * 2) + x[1],
    "where": lambda x: jnp.where(x > 0.5, jnp.sin(x), x**2),
    "indices": lambda x: x[np.array([2, 0, 2])] * jnp.zeros(5).at[np.array([1, 3, 1])].add(x[:3])[1:4],
    "logsumexp": lambda x: jnp.log(jnp.exp(x - x.max()).sum()) + x.max(),
    "solve": lambda x: jnp.linalg.solve(jnp.diag(x) + 1.0, x),
    "jit": morphax.jit(lambda x: jnp.sin(x) * x),
    "checkpoint": morphax.checkpoint(lambda x: jnp.sin(x) * x),
    "cond": lambda x: lax.cond(x[0] < 1, lambda x: jnp.sin(x), lambda x: jnp.ones(4), x),
    "scan": scanned,
    "while": looped,
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x),
    "custom_jvp": custom,
    "custom_vjp": custom_back,
    "gradient": morphax.grad(lambda x: (jnp.sin(x) * x[::-1]).sum()),
    "vmap": morphax.vmap(lambda a: jnp.tanh(a) * a),
    "constant": lambda x: jnp.ones(3),
    "integers": lambda x: x * jnp.argmax(x),
    "tree": lambda x: {"a": jnp.sin(x), "b": (x[0], 3)},
}


def along_curve(f, coefficients):
    """Derivatives of t -> f(x(t)) at 0, by nested forward mode."""

    def curve(t):
        return sum(c * t**k / math.factorial(k) for k, c in enumerate(coefficients))

    def derivative(g):
        def slope(t):
            tangents = morphax.jvp(g, (t,), (1.0,))[1]
            return morphax.tree.map(lambda x: 0.0 if x.dtype == morphax.float0 else x, tangents)

        return slope

    def g(t):
        return f(curve(t))

    found = []
    for _ in coefficients:
        found.append(morphax.tree.leaves(g(0.0)))
        g = derivative(g)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_series_are_the_derivatives_along_the_curve(name):
    f = FUNCTIONS[name]
    wanted = along_curve(f, X)
    out, series = jet(f, (X[0],), (list(X[1:]),))
    rows = morphax.tree.leaves(series, is_leaf=lambda s: isinstance(s, list) and len(s) == ORDER)
    leaves = morphax.tree.leaves(out)
    for position, (value, row) in enumerate(zip(leaves, rows, strict=True)):
        np.testing.assert_allclose(value, wanted[0][position], rtol=1e-12)
        for k in range(ORDER):
            np.testing.assert_allclose(row[k], wanted[k + 1][position], rtol=1e-8, atol=1e-9, err_msg=f"order {k + 1}")


@pytest.mark.parametrize("f", [jnp.multiply, jnp.divide, jnp.power, jnp.arctan2, jnp.dot, jnp.subtract, jnp.hypot])
def test_two_arguments(f):
    wanted = along_curve(lambda xy: f(xy[0], xy[1]), [np.stack(p) for p in zip(X, Y, strict=True)])
    out, series = jet(f, (X[0], Y[0]), (list(X[1:]), list(Y[1:])))
    for k, value in enumerate([out, *series]):
        np.testing.assert_allclose(value, wanted[k][0], rtol=1e-9, atol=1e-10)


def test_the_two_conventions():
    out, series = jet(jnp.exp, (0.5,), ((1.0, 0.0, 0.0, 0.0),))
    np.testing.assert_allclose([out, *series], [np.exp(0.5)] * 5)
    out, series = jet(jnp.exp, (0.5,), ((1.0, 0.0, 0.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose(series, [np.exp(0.5) / math.factorial(k) for k in range(1, 5)])


def test_under_other_transforms():
    def third(x):
        return jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]

    np.testing.assert_allclose(morphax.jit(third)(0.5), -np.cos(0.5))
    np.testing.assert_allclose(morphax.grad(third)(0.5), np.sin(0.5))
    np.testing.assert_allclose(morphax.vmap(third)(np.array([0.1, 0.2])), -np.cos([0.1, 0.2]))
    np.testing.assert_allclose(jet(third, (0.5,), ((1.0, 0.0),))[1], [np.sin(0.5), np.cos(0.5)])


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="equal lengths"):
        jet(jnp.add, (1.0, 2.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(ValueError, match="as many series"):
        jet(jnp.add, (1.0, 2.0), ((1.0,),))
    with pytest.raises(ValueError, match="shape"):
        jet(jnp.sin, (1.0,), ((jnp.ones(2),),))
