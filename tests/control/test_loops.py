"""Loops: unrolling, lengths zero and one, what is stacked and what is not."""

import re

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import lax

ROWS = jnp.arange(21.0).reshape(7, 3) / 10.0


def body(c, x):
    c = jnp.sin(c) + x
    return c, c * c


def both(n, **options):
    fun = lambda c, xs: lax.scan(body, c, xs, **options)  # noqa: E731
    gradient = jax.grad(lambda c, xs: sum(jnp.sum(leaf) for leaf in fun(c, xs)), (0, 1))
    args = (jnp.ones(3), ROWS[:n])
    return [*fun(*args), *gradient(*args), *jax.jit(fun)(*args)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_unrolled_loops_give_the_same(n, reverse):
    want = both(n, reverse=reverse)
    for unroll in (2, 3, 7, 10, True, False):
        for a, b in zip(both(n, reverse=reverse, unroll=unroll), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("unroll", "sines", "loops"), [(1, 1, 1), (2, 3, 1), (3, 4, 1), (7, 7, 0), (True, 7, 0)])
def test_unrolling_repeats_the_body(unroll, sines, loops):
    text = jax.jit(lambda xs: lax.scan(body, jnp.ones(3), xs, unroll=unroll)).lower(ROWS).as_text()
    assert text.count("stablehlo.sine") == sines
    assert text.count("stablehlo.while") == loops


def test_split_transpose_is_accepted():
    fun = lambda split: jax.grad(lambda c: jnp.sum(lax.scan(body, c, ROWS, _split_transpose=split)[0]))(jnp.ones(3))  # noqa: E731
    np.testing.assert_allclose(fun(True), fun(False))


def test_loops_of_no_turns():
    none = jnp.zeros((0, 3))
    assert lax.map(jnp.sin, none).shape == (0, 3)
    assert lax.map(jnp.sin, none, batch_size=2).shape == (0, 3)
    assert lax.associative_scan(jnp.add, none).shape == (0, 3)
    assert lax.fori_loop(3, 3, lambda i, c: c + 1.0, X := jnp.ones(3)).tolist() == X.tolist()
    assert lax.while_loop(lambda c: c < 0.0, lambda c: c + 1.0, 2.0) == 2.0
    gradient = jax.grad(lambda c: lax.while_loop(lambda c: c < 0.0, lambda c: c * 3.0, c))
    assert gradient(2.0) == 1.0
    assert jax.grad(lambda c: lax.fori_loop(0, jnp.asarray(0), lambda i, c: c * 3.0, c))(2.0) == 1.0


def shapes_of_scans(fun, *args):
    """Shapes of the results of each scan in the program."""
    jaxpr = jax.make_jaxpr(fun)(*args).jaxpr
    return [[v.aval.shape for v in eqn.outvars] for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]


def test_what_does_not_change_is_not_stacked():
    def loss(w, x):
        return jnp.sum(lax.scan(lambda c, _: (c * jnp.sin(w), None), x, None, length=5)[0])

    forward, backward = shapes_of_scans(jax.grad(loss, (0, 1)), jnp.ones(3), jnp.ones(3))
    assert forward == [(3,), (5, 3)]  # the carries; sin(w) and cos(w) are computed before the loop
    assert sorted(backward) == [(3,), (3,)]


def test_xs_are_not_stacked_again():
    forward, _ = shapes_of_scans(
        jax.value_and_grad(lambda w, xs: jnp.sum(lax.scan(lambda c, x: (c + w * x, None), jnp.zeros(3), xs)[0])),
        jnp.ones(3),
        ROWS,
    )
    assert forward == [(3,)]


def test_transposes_of_batched_loops_cancel_in_the_compiled_program():
    fun = jax.vmap(jax.grad(lambda c, xs: jnp.sum(lax.scan(body, c, xs)[1]), (0, 1)))
    compiled = jax.jit(fun).lower(jnp.ones((5, 3)), jnp.ones((5, 7, 3))).compile().as_text()
    assert not list(moves(compiled))


def moves(compiled):
    """The transposes of a compiled program that move data: others only give the bytes new names for their axes."""
    layouts = dict(re.findall(r"(%[\w.-]+) = \w+\[[\d,]*\]\{([\d,]*)", compiled))
    pattern = r"(%[\w.-]+) = \S+ transpose\((%[\w.-]+)\), dimensions=\{([\d,]*)\}"
    for name, operand, dimensions in re.findall(pattern, compiled):
        permutation = dimensions.split(",")
        if [permutation[int(axis)] for axis in layouts[name].split(",")] != layouts[operand].split(","):
            yield name


def test_moves_are_told_from_names():
    same = "%a = f32[5,7,3]{2,1,0} parameter(0)\n%b = f32[7,5,3]{2,0,1} transpose(%a), dimensions={1,0,2}"
    assert list(moves(same)) == []
    assert list(moves(same.replace("{2,0,1}", "{2,1,0}"))) == ["%b"]
