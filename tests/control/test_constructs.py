"""Every construct that takes functions keeps every promise, alone and inside each other one."""

import itertools
import pathlib

import numpy as np
import pytest
from constructs import BY_NAME, CONSTRUCTS, total, total_plain
from samples import put

import morphax as jax
import morphax.numpy as jnp
from morphax.ir import jaxpr as programs

X = np.array([0.3, -0.5, 0.9])
W = np.array([1.1, 0.7, -0.6])
GOLDEN = pathlib.Path(__file__).with_name("gradients.txt")


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def over_constructs(gap):
    chosen = [c for c in CONSTRUCTS if gap not in c.gaps]
    return pytest.mark.parametrize("construct", chosen, ids=lambda c: c.name)


def base(x):
    return jax.tree.map(lambda a: jnp.sin(a) * a + 0.4, x)


def base_plain(x):
    return jax.tree.map(lambda a: np.sin(a) * a + 0.4, x)


def f64(x):
    return put(x, "float64")


def close(got, want, tol=1e-12):
    got = np.asarray(got)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def numeric(fun, x, step=1e-4):
    """Gradient by central differences of fourth order."""
    eye = np.eye(x.size) * step
    return np.array([(8 * (fun(x + e) - fun(x - e)) - (fun(x + 2 * e) - fun(x - 2 * e))) / (12 * step) for e in eye])


def loss(construct):
    fun = construct.wrap(base)
    return lambda x: total(jnp.cos(fun(x)))


def loss_plain(construct):
    fun = construct.plain(base_plain)
    return lambda x: total_plain(np.cos(fun(x)))


def check_program(fun, *args):
    programs.check(jax.make_jaxpr(fun)(*args).jaxpr)


@over_constructs("value")
def test_value_is_that_of_plain_loops(construct):
    fun = construct.wrap(base)
    want = construct.plain(base_plain)(X)
    close(fun(f64(X)), want)
    close(jax.jit(fun)(f64(X)), want)
    check_program(fun, f64(X))


@over_constructs("jvp")
def test_jvp_is_that_of_differences(construct):
    fun, t = loss(construct), f64(np.cos(X))
    want = numeric(loss_plain(construct), X) @ np.cos(X)
    forward = lambda x: jax.jvp(fun, (x,), (t,))[1]  # noqa: E731
    close(forward(f64(X)), want, 1e-10)
    close(jax.jit(forward)(f64(X)), want, 1e-10)
    check_program(forward, f64(X))


@over_constructs("grad")
def test_gradient_is_that_of_differences(construct):
    want = numeric(loss_plain(construct), X)
    gradient = jax.grad(loss(construct))
    close(gradient(f64(X)), want, 1e-10)
    close(jax.jit(gradient)(f64(X)), want, 1e-10)
    check_program(gradient, f64(X))


@over_constructs("linearize")
def test_linearized_function_is_jvp(construct):
    fun, t = loss(construct), f64(np.cos(X))
    close(jax.linearize(fun, f64(X))[1](t), jax.jvp(fun, (f64(X),), (t,))[1])


@over_constructs("second")
def test_second_derivatives_are_those_of_differences(construct):
    fun = loss(construct)
    plain = loss_plain(construct)
    v = np.array([0.7, -0.2, 0.5])
    want = numeric(lambda x: numeric(plain, x) @ v, X, 1e-3)
    tol = 1e-6  # differences of differences
    reverse = jax.grad(lambda x: jax.grad(fun)(x) @ f64(v))
    mixed = lambda x: jax.jvp(jax.grad(fun), (x,), (f64(v),))[1]  # noqa: E731
    other = jax.grad(lambda x: jax.jvp(fun, (x,), (f64(v),))[1])
    exact = np.asarray(jax.jit(mixed)(f64(X)))
    close(exact, want, tol)
    close(mixed(f64(X)), exact)
    close(reverse(f64(X)), exact)
    close(jax.jit(reverse)(f64(X)), exact)
    close(jax.jit(other)(f64(X)), exact)
    check_program(reverse, f64(X))


@over_constructs("vmap")
def test_vmap_is_a_loop(construct):
    fun = construct.wrap(base)
    rows = np.stack([X, 0.5 * X, X + 1.0, -X])
    batched = jax.vmap(fun)
    want = np.stack([construct.plain(base_plain)(r) for r in rows])
    close(batched(f64(rows)), want)
    close(jax.jit(batched)(f64(rows)), want)
    check_program(batched, f64(rows))


@over_constructs("vmap")
def test_vmap_and_grad_commute(construct):
    fun = loss(construct)
    rows = np.stack([X, 0.5 * X, X + 1.0, -X])
    want = np.stack([np.asarray(jax.grad(fun)(f64(r))) for r in rows])
    inside = jax.vmap(jax.grad(fun))
    outside = jax.grad(lambda xs: jnp.sum(jax.vmap(fun)(xs)))
    close(inside(f64(rows)), want)
    close(jax.jit(outside)(f64(rows)), want)
    check_program(inside, f64(rows))
    check_program(outside, f64(rows))


@over_constructs("vmap")
def test_nested_vmap_is_a_loop(construct):
    fun = construct.wrap(base)
    grid = np.stack([X, 0.5 * X, X + 1.0])[:, None] * np.array([1.0, -0.5])[None, :, None]
    want = np.stack([[construct.plain(base_plain)(x) for x in row] for row in grid])
    close(jax.vmap(jax.vmap(fun))(f64(grid)), want)
    close(jax.vmap(jax.vmap(fun), (1,), 1)(f64(grid)), want)


@over_constructs("closure")
def test_values_that_the_function_closes_over_are_differentiated(construct):
    def of_weights(w):
        return total(construct.wrap(lambda x: jnp.sin(x * w))(f64(X)))

    def plain(w):
        return total_plain(construct.plain(lambda x: np.sin(x * w))(X))

    close(of_weights(f64(W)), plain(W))
    if construct.refuses_closures:
        with pytest.raises(TypeError, match=construct.refuses_closures):
            jax.grad(of_weights)(f64(W))
        return
    close(jax.grad(of_weights)(f64(W)), numeric(plain, W), 1e-10)
    close(jax.jit(jax.grad(of_weights))(f64(W)), numeric(plain, W), 1e-10)
    close(jax.jvp(of_weights, (f64(W),), (f64(X),))[1], numeric(plain, W) @ X, 1e-10)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@over_constructs("batched_closure")
def test_functions_may_close_over_other_examples_of_a_batch(construct, wrap):
    def of_weights(w):
        return total(construct.wrap(lambda x: jnp.sin(x * w))(w + f64(X)))

    weights = np.stack([W, 2.0 * W])
    want = [total_plain(construct.plain(lambda x: np.sin(x * w))(w + X)) for w in weights]
    close(wrap(jax.vmap(of_weights))(f64(weights)), want)


@over_constructs("tree")
def test_pytrees_with_none(construct):
    fun = construct.wrap(base)
    state = lambda x: {"a": (x[:2], None), "b": x[2]}  # noqa: E731
    want = construct.plain(base_plain)(state(X))
    got = fun(state(f64(X)))
    assert got["a"][1] is None
    close(got["a"][0], want["a"][0])
    close(got["b"], want["b"])
    gradient = jax.grad(lambda t: total(fun(t)))(state(f64(X)))
    plain = lambda x: total_plain(construct.plain(base_plain)(state(x)))  # noqa: E731
    assert gradient["a"][1] is None
    close(np.append(gradient["a"][0], gradient["b"]), numeric(plain, X), 1e-10)


@over_constructs("empty")
def test_arrays_without_elements(construct):
    fun, empty = construct.wrap(base), f64(np.zeros((0,)))
    assert fun(empty).shape == (0,)
    assert jax.grad(lambda x: total(fun(x)))(empty).shape == (0,)
    assert jax.vmap(fun)(f64(np.zeros((2, 0)))).shape == (2, 0)


PAIRS = list(itertools.product(CONSTRUCTS, CONSTRUCTS))


def check_pair(outer, inner):
    fun = outer.wrap(inner.wrap(base))
    plain = outer.plain(inner.plain(base_plain))
    gradient = jax.jit(jax.grad(lambda x: total(fun(x))))
    close(jax.jit(fun)(f64(X)), plain(X))
    close(gradient(f64(X)), numeric(lambda x: total_plain(plain(x)), X), 1e-9)
    rows = np.stack([X, 0.5 * X])
    close(jax.jit(jax.vmap(gradient))(f64(rows)), np.stack([np.asarray(gradient(f64(r))) for r in rows]))


@pytest.mark.parametrize(("outer", "inner"), PAIRS[::7], ids=lambda c: c.name)
def test_nested_in_each_other(outer, inner):
    check_pair(outer, inner)


@pytest.mark.full
@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=lambda c: c.name)
def test_nested_in_each_other_all(outer, inner):
    check_pair(outer, inner)


# ---- golden programs -------------------------------------------------------------------------------------------------


def gradient_text(name):
    """The gradient of the sum of the construct around the sine, as a jaxpr."""
    return str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(BY_NAME[name].wrap(jnp.sin)(x))))(f64(X)))


def golden():
    sections = GOLDEN.read_text().split("\n# ")[1:] if GOLDEN.exists() else []
    return {title: text.strip() for title, _, text in (s.partition("\n") for s in sections)}


@pytest.mark.parametrize("name", golden())
def test_gradients_print_as_they_did(name):
    assert gradient_text(name) == golden()[name]
