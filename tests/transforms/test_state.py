"""After any exception inside a transform the next call works, and threads do not disturb each other."""

import threading

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax.ir.current import base, current


class Boom(Exception):
    pass


def boom(x):
    jnp.sin(x)
    raise Boom


def f(x):
    return jnp.sum(jnp.sin(x) * x)


X = np.arange(3, dtype="float32")
TRANSFORMS = {
    "grad": lambda fun: jax.grad(fun)(X),
    "value_and_grad": lambda fun: jax.value_and_grad(fun)(X),
    "vjp": lambda fun: jax.vjp(fun, X)[0],
    "jvp": lambda fun: jax.jvp(fun, (X,), (X,)),
    "linearize": lambda fun: jax.linearize(fun, X)[0],
    "vmap": lambda fun: jax.vmap(fun)(np.stack([X, X])),
    "jit": lambda fun: jax.jit(fun)(X),
    "jacfwd": lambda fun: jax.jacfwd(fun)(X),
    "jacrev": lambda fun: jax.jacrev(fun)(X),
    "hessian": lambda fun: jax.hessian(fun)(X),
    "make_jaxpr": lambda fun: str(jax.make_jaxpr(fun)(X)),
    "eval_shape": lambda fun: jax.eval_shape(fun, X),
    "checkpoint": lambda fun: jax.grad(jax.checkpoint(fun))(X),
    "linear_transpose": lambda fun: jax.linear_transpose(lambda x: x * 2.0 + 0.0 * fun(X), X)(X),
    "closure_convert": lambda fun: jax.closure_convert(fun, X)[0](X),
    "named_scope": lambda fun: jax.named_call(fun)(X),
}


@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_exception_leaves_nothing_behind(outer, name):
    def inner(x):
        TRANSFORMS[name](boom)
        return f(x)

    with pytest.raises(Boom):
        TRANSFORMS[name](boom)
    assert current.trace is base()
    with pytest.raises(Boom):
        TRANSFORMS[outer](inner)
    assert current.trace is base()
    assert current.source is None
    assert current.scope == ""
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X), np.cos(X) * X + np.sin(X), rtol=1e-6)


def test_ensure_compile_time_eval_restores_the_trace():
    def g(x):
        with pytest.raises(Boom), jax.ensure_compile_time_eval():
            raise Boom
        with jax.ensure_compile_time_eval():
            assert float(jnp.sum(jnp.ones(3))) == 3.0
        return x * 2.0

    assert float(jax.jit(g)(2.0)) == 4.0


def test_threads_that_call_one_jitted_function():
    traces = []

    @jax.jit
    def g(x):
        traces.append(threading.get_ident())
        return jnp.sum(jnp.sin(x)) + jax.grad(f)(x)[0]

    want = float(np.sum(np.sin(X)) + (np.cos(X) * X + np.sin(X))[0])
    errors: list[BaseException] = []

    def work():
        try:
            for _ in range(50):
                assert abs(float(g(X)) - want) < 1e-5
                assert abs(float(jax.vmap(f)(np.stack([X, X]))[0]) - float(np.sum(np.sin(X) * X))) < 1e-5
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[0]
    assert len(traces) <= 8


def test_transforms_in_threads_do_not_see_each_other():
    inside = threading.Event()
    done = threading.Event()

    def slow(x):
        inside.set()
        assert done.wait(30)
        return x * 2.0

    thread = threading.Thread(target=lambda: jax.jit(slow)(1.0))
    thread.start()
    assert inside.wait(30)
    assert current.trace is base()
    assert float(jnp.float32(2.0) * 3.0) == 6.0
    done.set()
    thread.join()


def test_no_tracing_refuses_new_traces_only():
    f = jax.jit(lambda x: x + 1)
    f(1.0)
    with jax.no_tracing():
        again = f(2.0)
        with pytest.raises(RuntimeError, match="'no_tracing' is set"):
            f(1)
    assert again == 3.0 and f(1) == 2


def test_disable_jit_runs_operation_by_operation():
    seen = []
    with jax.disable_jit():
        assert jax.jit(lambda x: (seen.append(float(x[0])), x + 1)[1])(jnp.ones(2)).tolist() == [2, 2]
        assert jnp.sin(jnp.zeros(2)).tolist() == [0, 0] and jnp.arange(3)[2] == 2
        assert jax.grad(lambda x: jnp.dot(x, x))(jnp.ones(2)).tolist() == [2, 2]
        assert jax.vmap(jnp.cos)(jnp.zeros(2)).tolist() == [1, 1]
        assert jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0))[0] == 3
    assert seen == [1.0]
