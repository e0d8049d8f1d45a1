"""debug_nans and debug_infs name the operation and the user's line."""

import numpy as np
import pytest

import morphax
from morphax import lax
from morphax import numpy as jnp


@pytest.fixture(autouse=True)
def watching():
    with morphax.debug_nans(True):
        yield


def line_of(fun, offset=1):
    return f"test_nonfinite.py:{fun.__code__.co_firstlineno + offset}"


def logarithm(x):
    return jnp.log(x) + 1.0


def in_scan(x):
    def turn(c, k):
        return c - 1.0, jnp.sqrt(c)

    return lax.scan(turn, x + 2.0, jnp.arange(4))[1].sum()


def in_while(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.log(c[1])), (0, x + 3.0))[1]


def in_cond(x):
    return lax.cond(x < 0, logarithm, lambda x: x, x)


PROGRAMS = {
    "jit": (logarithm, "log", line_of(logarithm)),
    "jit in jit": (lambda x: morphax.jit(logarithm)(x) * 2, "log", line_of(logarithm)),
    "checkpoint": (morphax.checkpoint(logarithm), "log", line_of(logarithm)),
    "scan": (in_scan, "sqrt", line_of(in_scan, 2)),
    "while": (in_while, "log", line_of(in_while)),
    "cond": (in_cond, "log", line_of(logarithm)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_name_operation_and_line(name):
    f, operation, line = PROGRAMS[name]
    jitted = morphax.jit(f)
    with pytest.raises(FloatingPointError, match=rf"\(nan\) encountered in {operation} at .*{line}"):
        jitted(-1.0 if name != "scan" else -0.5)
    with pytest.raises(FloatingPointError):  # the second call does not go past
        jitted(-1.0 if name != "scan" else -0.5)
    if name not in ("scan", "while"):
        assert np.isfinite(jitted(2.0))


def test_calls_before_and_after_are_fast_and_unwatched():
    f = morphax.jit(jnp.log)
    with morphax.debug_nans(False):
        assert np.isnan(f(-1.0)) and np.isnan(f(-1.0)) and np.isnan(lax.log(jnp.array(-1.0)))
    with pytest.raises(FloatingPointError):
        f(-1.0)
    with pytest.raises(FloatingPointError):
        lax.log(jnp.array(-1.0))
    with morphax.debug_nans(False):
        assert np.isnan(f(-1.0)) and np.isnan(lax.log(jnp.array(-1.0)))


def test_eager_operations():
    x = jnp.array(-1.0)
    with pytest.raises(FloatingPointError, match=r"encountered in log at .*test_nonfinite.py"):
        lax.log(x)
    with pytest.raises(FloatingPointError, match=r"encountered in log at .*test_nonfinite.py"):
        jnp.log(x)
    assert lax.log(jnp.array(1.0)) == 0


def broken_root(x):
    y = jnp.sqrt(x)
    return (y * 0.0).sum()


@pytest.mark.parametrize("wrap", [lambda f: f, morphax.jit, lambda f: morphax.grad(morphax.jit(broken_root))])
def test_backward_pass_names_the_forward_line(wrap):
    with pytest.raises(FloatingPointError, match=line_of(broken_root)):
        wrap(morphax.grad(broken_root))(jnp.array([0.0, 1.0]))


def test_lanes_that_where_throws_away_are_silent():
    f = morphax.jit(lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), jnp.sqrt(x)))
    g = morphax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))
    np.testing.assert_allclose(g(jnp.array([-1.0, 1.0])), [0.0, 0.0])
    with pytest.raises(FloatingPointError, match="sqrt"):
        f(jnp.array([-1.0, 1.0]))


def test_infinities():
    with morphax.debug_nans(False), morphax.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
            morphax.jit(lambda x: 1 / x)(0.0)
        assert np.isnan(jnp.log(jnp.array(-1.0)))


def test_bad_arguments_are_called_so():
    with morphax.debug_nans(False):
        x = jnp.array(float("nan"))
    with pytest.raises(FloatingPointError, match="its arguments"):
        morphax.jit(lambda x: x + 1)(x)


def test_donated_arguments():
    with pytest.raises(FloatingPointError, match=r"donated|encountered in log"):
        morphax.jit(jnp.log, donate_argnums=0)(jnp.array([-1.0]))


def test_global_flag():
    with morphax.debug_nans(False):
        pass
    f = morphax.jit(jnp.log)
    before = morphax.config.jax_debug_infs
    morphax.config.update("jax_debug_infs", True)
    try:
        with pytest.raises(FloatingPointError, match="inf"):
            f(0.0)
    finally:
        morphax.config.update("jax_debug_infs", before)
    assert np.isinf(f(0.0))


def test_functions_compiled_ahead_of_time():
    compiled = morphax.jit(logarithm).lower(1.0).compile()
    with pytest.raises(FloatingPointError, match="encountered in log"):
        compiled(-1.0)
