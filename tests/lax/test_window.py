"""Reductions by any associative function: of axes and of windows."""

import numpy as np
import pytest
from convolutions import reduce_windows

from morphax import lax
from morphax import numpy as jnp
from morphax.runtime import lower
from morphax.runtime.jit import jit
from morphax.transforms import api

RNG = np.random.default_rng(0)


def draw(*shape):
    return jnp.asarray(RNG.normal(size=shape).astype(np.float32))


def close(got, wanted, tol=2e-5):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=tol, atol=tol)


def names(fun, *args):
    return [eqn.primitive.name for eqn in api.make_jaxpr(fun)(*args).jaxpr.eqns]


# ---- which operation is used -----------------------------------------------------------------------------------------

KNOWN = [
    (lax.add, 0.0, "reduce_sum", "reduce_window_sum"),
    (lambda a, b: b + a, 0, "reduce_sum", "reduce_window_sum"),
    (lax.max, -np.inf, "reduce_max", "reduce_window_max"),
    (lax.min, np.float32(np.inf), "reduce_min", "reduce_window_min"),
    (jnp.maximum, jnp.float32(-jnp.inf), "reduce_max", "reduce_window_max"),
    (lax.mul, 1.0, "reduce_prod", "reduce_window"),
    (lax.mul, 2.0, "reduce", "reduce_window"),
    (lax.max, 0.0, "reduce", "reduce_window"),
    (lambda a, b: a + a, 0.0, "reduce", "reduce_window"),
    (lambda a, b: a, 0.0, "reduce", "reduce_window"),
]


@pytest.mark.parametrize(("fun", "init", "whole", "windows"), KNOWN)
def test_known_functions_have_operations_of_their_own(fun, init, whole, windows):
    x = draw(3, 4)
    assert names(lambda x: lax.reduce(x, init, fun, (0,)), x) == [whole]
    assert names(lambda x: lax.reduce_window(x, init, fun, (2, 2)), x) == [windows]


def test_known_functions_of_bits():
    x = jnp.asarray([[1, 2], [5, 7]])
    assert names(lambda x: lax.reduce(x, -1, lax.bitwise_and, (0,)), x) == ["reduce_and"]
    assert names(lambda x: lax.reduce(x > 2, False, lax.bitwise_or, (0,)), x)[-1] == "reduce_or"
    assert lax.reduce(x, 0, lax.bitwise_xor, (0,)).tolist() == [4, 5]
    assert lax.reduce_window(x, 0, lax.max, (2, 1)).tolist() == [[5, 7]]  # 0 is no identity here, and no harm


# ---- any function ----------------------------------------------------------------------------------------------------


def affine(f, g):
    """Composition of x -> a x + b: associative, not commutative."""
    return f[0] * g[0], f[1] * g[0] + g[1]


def composed(a, b):
    out = (1.0, 0.0)
    for pair in zip(a, b, strict=True):
        out = affine(out, pair)
    return out


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8])
def test_order_is_kept(size):
    a, b = draw(size, 2), draw(size, 2)

    def fun(a, b):
        return lax.reduce((a, b), (1.0, 0.0), affine, (0,))

    wanted = np.array([composed(np.asarray(a)[:, k], np.asarray(b)[:, k]) for k in range(2)]).T
    close(fun(a, b), wanted)
    close(api.jvp(fun, (a, b), (a, b))[0], wanted)
    batched = api.vmap(lambda a, b: lax.reduce((a, b), (1.0, 0.0), affine, (0,)), 1)(a, b)
    close(batched, wanted)


def test_dictionaries_and_several_axes():
    x = {"a": draw(3, 4, 2), "b": draw(3, 4, 2)}

    def fun(p, q):
        return {"a": p["a"] * q["a"], "b": p["b"] + q["b"]}

    out = lax.reduce(x, {"a": 1.0, "b": 0.0}, fun, (2, 0))
    close(out["a"], np.prod(np.asarray(x["a"]), (0, 2)))
    close(out["b"], np.sum(np.asarray(x["b"]), (0, 2)))


def test_initial_value_counts_once():
    x = draw(3, 4)
    close(lax.reduce(x, 2.0, lax.mul, (0,)), 2 * np.prod(np.asarray(x), 0))
    slope = api.grad(lambda x, c: lax.reduce(x, c, lax.mul, (0, 1)), 1)(x, 2.0)
    close(slope, np.prod(np.asarray(x)))


def test_derivative_of_products_at_zeros():
    x = jnp.asarray([2.0, 0.0, 3.0], np.float32)
    close(api.grad(lambda x: lax.reduce(x, 1.0, lambda a, b: b * a * 1, (0,)))(x), [0, 6, 0])


def test_batch_of_initial_values():
    x, start = draw(4), draw(3)
    close(api.vmap(lambda c: lax.reduce(x, c, lax.mul, (0,)))(start), np.prod(np.asarray(x)) * np.asarray(start))
    seen = api.vmap(lambda c: lax.reduce_window(x, c, lax.max, (2,), padding=[(1, 0)]))(start)
    wanted = [np.maximum(np.maximum(np.asarray(x), [c, *np.asarray(x)[:-1]]), c) for c in np.asarray(start)]
    close(seen, wanted)


def test_functions_that_close_over_arrays():
    x, c = draw(5), draw(2)

    def fun(x, c):
        def scaled(a, b):
            return jnp.log(jnp.exp(a * c[0]) + jnp.exp(b * c[0])) / c[0]

        return lax.reduce(x, -np.inf, scaled, (0,)), lax.reduce_window(x, -np.inf, scaled, (2,))

    k, host = float(c[0]), np.asarray(x)
    c = jnp.abs(c)
    k = float(c[0])
    for made in (fun, jit(fun)):
        whole, windows = made(x, c)
        close(whole, np.log(np.sum(np.exp(host * k))) / k)
        close(windows, np.log(np.exp(host[1:] * k) + np.exp(host[:-1] * k)) / k)
    assert np.isfinite(np.asarray(api.grad(lambda x: fun(x, c)[1].sum())(x))).all()


# ---- windows ---------------------------------------------------------------------------------------------------------


def products(x, sizes, strides, padding, base=None, dilation=None):
    return reduce_windows(np.asarray(x), lambda w: np.prod(w, -1), 1, sizes, strides, padding, base, dilation)


@pytest.mark.parametrize(
    "given",
    [
        ((2, 3), (1, 1), ((0, 0), (0, 0))),
        ((2, 2), (2, 1), ((1, 0), (-1, 2))),
        ((2, 3), (1, 2), ((1, 1), (2, 2)), (2, 1), (1, 2)),
    ],
)
def test_products_of_windows_and_their_derivatives(given):
    x = draw(5, 6)

    def fun(x):
        return lax.reduce_window(x, 1.0, lax.mul, *given)

    def again(x):
        return jnp.exp(lax.reduce_window(jnp.log(jnp.abs(x)), 0.0, lax.add, *given))

    close(fun(x), products(x, *given))
    close(api.jvp(fun, (x,), (x,))[0], products(x, *given))
    away = jnp.abs(x) + 0.5
    close(api.grad(lambda x: fun(x).sum())(away), api.grad(lambda x: again(x).sum())(away), 1e-3)
    pair = jnp.stack([x, 2 * x])
    close(api.vmap(fun)(pair), np.stack([products(x, *given), products(2 * x, *given)]))
    text = str(api.make_jaxpr(fun)(x))
    assert "consts=()" in text


def test_padding_by_name_and_shapes():
    x = draw(7, 6)
    assert lax.reduce_window(x, 0.0, lax.add, (3, 2), (2, 3), "SAME").shape == (4, 2)
    assert lax.reduce_window_shape_tuple((7, 6), (3, 2), (2, 3), ((0, 0), (0, 0))) == (3, 2)
    assert lax.reduce_window(x[:0], 0.0, lax.mul, (1, 2)).shape == (0, 5)
    close(lax.reduce_window(x[:0], 3.0, lax.add, (1, 2), padding=[(1, 0), (0, 0)]), np.full((1, 5), 3.0))


def test_global_pooling_of_integers():
    x = jnp.arange(24).reshape(2, 3, 4)
    assert lax.reduce_window(x, 0, lax.add, (1, 3, 4)).ravel().tolist() == [66, 210]


@pytest.mark.parametrize("pool", [lax.max, lax.min])
def test_first_of_equal_extremes_takes_the_derivative(pool):
    init = -np.inf if pool is lax.max else np.inf
    x = jnp.zeros((3, 3), np.float32)
    slope = api.grad(lambda x: lax.reduce_window(x, init, pool, (2, 2)).sum())(x)
    assert slope.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_other_platforms_use_operations_of_xla():
    x = draw(4, 4)

    def loss(x):
        return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "SAME").sum()

    text = str(lower.lower(api.make_jaxpr(lambda x: (loss(x), api.grad(loss)(x)))(x).jaxpr, "f", "cuda").mlir)
    assert "select_and_scatter" in text
    assert text.count("reduce_window") == 1


# ---- bad input -------------------------------------------------------------------------------------------------------

ERRORS = [
    (lambda x: lax.reduce(x, 0.0, lax.add, (0, 0)), ValueError, "axis twice"),
    (lambda x: lax.reduce(x, 0.0, lax.add, (-1,)), ValueError, "axis -1 is out of range"),
    (lambda x: lax.reduce(x, (0.0, 0.0), lax.add, (0,)), ValueError, "same structure"),
    (lambda x: lax.reduce((), (), lax.add, (0,)), ValueError, "at least one leaf"),
    (lambda x: lax.reduce(x, 0.0, lambda a, b: (a, b), (0,)), TypeError, "must return that of the operands"),
    (lambda x: lax.reduce(x, 0.0, lambda a, b: a > b, (0,)), TypeError, "must return float32[]"),
    (lambda x: lax.reduce((x, x[0]), (0.0, 0.0), lambda a, b: a, (0,)), TypeError, "they must be equal"),
    (lambda x: lax.reduce(x, jnp.zeros(2), lax.add, (0,)), TypeError, "must be scalars"),
    (lambda x: lax.reduce(x, 1j, lax.mul, (0,)), TypeError, "dtype"),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,)), TypeError, "window_dimensions (2,) has 1 entries"),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (0, 1)), ValueError, "at least 1"),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), padding=[(0, 0)]), TypeError, "must be 2 pairs"),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), padding="FULL"), RuntimeError, "is not known"),
]


@pytest.mark.parametrize(("call", "exception", "message"), ERRORS)
def test_error_says_what_is_wrong(call, exception, message):
    with pytest.raises(exception) as caught:
        call(draw(3, 4))
    assert message in str(caught.value)
