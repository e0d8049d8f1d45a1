"""Bad input to functions that take functions: both types side by side, with the path of the leaf that differs."""

import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import lax
from morphax.custom_batching import custom_vmap

X = jnp.ones(3)
DOTS = jax.checkpoint_policies.dots_saveable


def body(carry, x):
    return carry, x


def drop_last(c):
    return c[:2]


def double(x):
    return {"u": x, "v": x}


def shorten(x):
    return {"u": x, "v": x[:2]}


def ruled(fun, jvp):
    fun = jax.custom_jvp(fun)
    fun.defjvp(jvp)
    return fun


def pulled(fwd, bwd):
    @jax.custom_vjp
    def product(x, y):
        return x * y["w"]

    product.defvjp(fwd, bwd)
    return lambda: jax.grad(lambda x: jnp.sum(product(x, {"w": x})))(X)


def keep(x, y):
    return x * y["w"], None


def mapped(rule):
    @custom_vmap
    def pair(x):
        return {"r": x}

    pair.def_vmap(rule)
    return lambda: jax.vmap(pair)(X)


CASES = {
    "scan_dtype": (
        lambda: lax.scan(
            lambda c, _: ({"a": c["a"], "b": c["b"] + 1.5}, None), {"a": 1.0, "b": jnp.int32(0)}, length=2
        ),
        "TypeError: scan: <lambda> must return a carry of the types that it takes; carry['b'] goes in as i32[] and "
        "comes out as f32[]. Convert one of them.",
    ),
    "scan_structure": (
        lambda: lax.scan(lambda c, _: ((c, c), None), X, length=2),
        "TypeError: scan: <lambda> must return a carry of the structure that it takes. at carry: the carry has a leaf, "
        "the result a tuple of length 2.",
    ),
    "scan_no_pair": (
        lambda: lax.scan(lambda c, _: c, X, length=2),
        "TypeError: scan: <lambda> must return a pair (carry, y); it returned one array.",
    ),
    "scan_lengths": (
        lambda: lax.scan(body, 0.0, {"p": jnp.ones(3), "q": jnp.ones(4)}),
        "ValueError: scan: the first axes must have one size: xs['p'] of type f32[3], xs['q'] of type f32[4].",
    ),
    "scan_no_length": (
        lambda: lax.scan(body, 0.0),
        "ValueError: scan: xs has no leaves, so the number of turns is unknown. Give length.",
    ),
    "scan_unroll": (
        lambda: lax.scan(body, 0.0, X, unroll=0),
        "ValueError: scan: unroll must be a positive integer or a bool; it is 0.",
    ),
    "map_lengths": (
        lambda: lax.map(jnp.sin, {"a": jnp.ones(3), "b": jnp.ones(2)}),
        "ValueError: map: the first axes must have one size: xs['a'] of type f32[3], xs['b'] of type f32[2].",
    ),
    "while_dtype": (
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1].astype("int32")), (0, X)),
        "TypeError: while_loop: <lambda> must return a carry of the types that it takes; carry[1] goes in as f32[3] "
        "and comes out as i32[3]. Convert one of them.",
    ),
    "while_condition": (
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, X),
        "TypeError: while_loop: <lambda> must return a scalar bool; it returned bool[3]. Compare, or reduce with "
        "numpy.any or numpy.all.",
    ),
    "fori_bound": (
        lambda: lax.fori_loop(0, 3.0, lambda i, c: c, X),
        "TypeError: fori_loop: upper must be a scalar integer; it has type f32[].",
    ),
    "fori_static": (
        lambda: lax.fori_loop(0, 3, lambda i, c: drop_last(c), X),
        "TypeError: fori_loop: <lambda> must return a carry of the types that it takes; carry goes in as f32[3] and "
        "comes out as f32[2]. Convert one of them.",
    ),
    "fori_dynamic": (
        lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: {"w": drop_last(c["w"])}, {"w": X}))(3),
        "TypeError: fori_loop: <lambda> must return a carry of the types that it takes; carry['w'] goes in as f32[3] "
        "and comes out as f32[2]. Convert one of them.",
    ),
    "cond_predicate": (
        lambda: lax.cond(X > 0, double, double, X),
        "TypeError: cond: pred must be a scalar; it has type bool[3]. Reduce it, or use numpy.where.",
    ),
    "cond_types": (
        lambda: lax.cond(True, double, shorten, X),
        "TypeError: cond: branches must return the same types; at output['v'] false_fun shorten returns f32[2], "
        "true_fun double returns f32[3]. Convert one of them.",
    ),
    "cond_structure": (
        lambda: lax.cond(True, lambda x: (x, None), lambda x: (x, x), X),
        "TypeError: cond: branches must return the same structure; at output[1]: false_fun <lambda> has a leaf, "
        "true_fun <lambda> None, which has no leaves.",
    ),
    "switch_types": (
        lambda: lax.switch(1, [jnp.sin, jnp.sum], X),
        "TypeError: switch: branches must return the same types; at output branch 0 sin returns f32[3], branch 1 sum "
        "returns f32[]. Convert one of them.",
    ),
    "switch_index": (
        lambda: lax.switch(1.5, [jnp.sin, jnp.cos], X),
        "TypeError: switch: index must be an integer; it has type f32[]. Use cond for a bool.",
    ),
    "static_tracer": (
        lambda: jax.jit(lambda x: jax.jit(body, static_argnums=1)(x, x))(X),
        "ValueError: jit: the static argument 1 of body is StageTracer<f32[3]> of type StageTracer, which is not "
        "hashable. Static arguments are keys of the cache of programs: pass a tuple instead of a list, or make the "
        "argument dynamic.",
    ),
    "jvp_pair": (
        lambda: jax.jvp(ruled(double, lambda p, t: 3.0), (X,), (X,)),
        "TypeError: double: its JVP rule must return a pair (output, tangent); it returned 3.0.",
    ),
    "jvp_structure": (
        lambda: jax.jvp(ruled(double, lambda p, t: (double(*p), t[0])), (X,), (X,)),
        "TypeError: double: its JVP rule must return a tangent of the structure of the output. at output: the output "
        "has a dict with the keys ['u', 'v'], the tangent a leaf.",
    ),
    "jvp_type": (
        lambda: jax.jvp(ruled(double, lambda p, t: (double(*p), shorten(*t))), (X,), (X,)),
        "TypeError: double: the tangent of output['v'] must have type f32[3]; the rule gave f32[2]. Convert or reshape "
        "it.",
    ),
    "vjp_count": (
        pulled(keep, lambda r, ct: (None,)),
        "TypeError: product: its backward rule must return a tuple with one cotangent for each of the 2 arguments; it "
        "returned (None,).",
    ),
    "vjp_type": (
        pulled(keep, lambda r, ct: (ct, {"w": ct[:2]})),
        "TypeError: product: the cotangent of args[1]['w'] must have type f32[3]; the rule gave f32[2]. Convert or "
        "reshape it.",
    ),
    "vjp_structure": (
        pulled(keep, lambda r, ct: (ct, {"v": ct})),
        "ValueError: the result of the backward rule of product: the prefix does not fit its tree, at [1]: of two "
        "dicts only the prefix has the keys ['v'], only the tree has the keys ['w']. Prefix: PyTreeDef((*, {'v': *})); "
        "tree: PyTreeDef((*, {'w': *})). Give the tree's own containers, or one leaf in place of a whole subtree.",
    ),
    "vjp_pair": (
        pulled(lambda x, y: 3.0, lambda r, ct: ct),
        "TypeError: product: its forward rule must return a pair (output, residuals), not 3.0.",
    ),
    "vmap_pair": (
        mapped(lambda n, batched, x: 3.0),
        "TypeError: pair: its batching rule must return a pair (output, out_batched); it returned 3.0.",
    ),
    "vmap_structure": (
        mapped(lambda n, batched, x: ({"s": x}, True)),
        "TypeError: pair: its batching rule must return the structure of the function. at output: of two dicts only "
        "the function has the keys ['r'], only the rule has the keys ['s'].",
    ),
    "vmap_type": (
        mapped(lambda n, batched, x: ({"r": x}, False)),
        "TypeError: pair: its batching rule must return output['r'], not batched, as f32[]; it returned f32[3]. "
        "Convert or reshape it, or mark it otherwise in out_batched.",
    ),
    "checkpoint_policy": (
        lambda: jax.checkpoint(jnp.sin, policy="dots"),
        "TypeError: checkpoint: policy must be a function; it is 'dots'. Take one of jax.checkpoint_policies.",
    ),
    "checkpoint_both": (
        lambda: jax.checkpoint(jnp.sin, policy=DOTS, memory_budget=3),
        "ValueError: checkpoint: policy and memory_budget exclude each other. Give one of them.",
    ),
    "solve_shape": (
        lambda: lax.custom_linear_solve(lambda x: x, X, lambda op, b: b[:2]),
        "TypeError: custom_linear_solve: the solution must have the shapes of the right-hand side; at the top it is "
        "f32[2] and that is f32[3].",
    ),
    "solve_transpose": (
        lambda: jax.grad(lambda b: jnp.sum(lax.custom_linear_solve(lambda x: x, b, lambda op, b: b)))(X),
        "TypeError: custom_linear_solve: reverse mode needs transpose_solve, or symmetric=True where A is symmetric.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_messages(name):
    call, message = CASES[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert f"{type(caught.value).__name__}: {caught.value}" == message


def test_rules_get_arrays_where_the_caller_gave_numbers():
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(p[0]), p[0].astype("float32") * t[0].astype("float32")))

    @jax.custom_vjp
    def g(x):
        return x * 2

    g.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * x.astype("float32"),))
    assert jax.grad(f)(2.0) == 2 == jax.jvp(f, (2.0,), (1.0,))[1]
    assert jax.grad(g)(2.0) == 2 == jax.jit(jax.grad(g))(2.0)
