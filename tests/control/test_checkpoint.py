"""What checkpoint keeps, what it computes again, and that memory is saved."""

import numpy as np
import pytest

import morphax as jax
import morphax.numpy as jnp
from morphax import lax
from morphax.ad_checkpoint import Offloadable, Recompute, Saveable, checkpoint_name, print_saved_residuals
from morphax.control.checkpoint import saved_residuals
from morphax.ir import jaxpr as programs

POLICIES = jax.checkpoint_policies
X, W = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4), jnp.linspace(0.0, 1.0, 16).reshape(4, 4)


def named(x, w):
    y = checkpoint_name(jnp.dot(x, w), "product")
    z = checkpoint_name(jnp.sin(y), "sine")
    return jnp.sum(jnp.sin(jnp.dot(z, w)))


def batched(x, w):
    return jnp.sum(jnp.sin(jnp.einsum("bij,bjk->bik", jnp.sin(x), w)))


def kept(fun, *args):
    return sorted(origin.split(" from ")[0] for _, origin in saved_residuals(fun, *args) if "argument" not in origin)


OFFLOAD = {"offload_src": "device", "offload_dst": "pinned_host"}
KEPT = {
    "nothing": (None, []),
    "nothing_saveable": (POLICIES.nothing_saveable, []),
    "everything": (POLICIES.everything_saveable, ["named 'sine'", "output of cos", "output of cos"]),
    "dots": (POLICIES.dots_saveable, ["output of dot_general"] * 2),
    "dots_without_batch": (POLICIES.checkpoint_dots_with_no_batch_dims, ["output of dot_general"] * 2),
    "only": (POLICIES.save_only_these_names("sine"), ["named 'sine'"]),
    "any_but": (POLICIES.save_any_names_but_these("sine"), ["named 'product'"]),
    "except": (
        POLICIES.save_anything_except_these_names("sine"),
        ["output of cos", "output of cos", "output of sin"],
    ),
    "both": (
        POLICIES.save_from_both_policies(POLICIES.save_only_these_names("sine"), POLICIES.dots_saveable),
        ["named 'sine'", "output of dot_general", "output of dot_general"],
    ),
    "offload": (POLICIES.offload_dot_with_no_batch_dims("device", "pinned_host"), ["output of dot_general"] * 2),
    "save_and_offload": (
        POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=["sine"], names_which_can_be_offloaded=["product"], **OFFLOAD
        ),
        ["named 'product'", "named 'sine'"],
    ),
    "own": (lambda prim, *types, **params: Saveable if prim.name == "sin" else Recompute, ["output of sin"]),
    "own_offload": (lambda prim, *types, **params: Offloadable("a", "b") if prim.name == "sin" else False,
                    ["output of sin"]),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_policies_keep_what_they_say(name):
    policy, want = KEPT[name]
    fun = jax.checkpoint(named, policy=policy)
    assert kept(fun, X, W) == want
    assert kept(jax.jit(fun), X, W) == want
    np.testing.assert_allclose(jax.grad(fun)(X, W), jax.grad(named)(X, W), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(fun, 1))(X, W), jax.grad(named, 1)(X, W), rtol=1e-6)


def test_products_with_batch_dimensions():
    x, w = jnp.ones((2, 3, 4)), jnp.ones((2, 4, 4))
    assert kept(jax.checkpoint(batched, policy=POLICIES.dots_saveable), x, w) == ["output of dot_general"]
    assert kept(jax.checkpoint(batched, policy=POLICIES.dots_with_no_batch_dims_saveable), x, w) == []


def test_policies_see_into_jitted_functions():
    inner = jax.jit(lambda x, w: jnp.sin(jnp.dot(x, w)))
    fun = jax.checkpoint(lambda x, w: jnp.sum(inner(inner(x, w), w)), policy=POLICIES.dots_saveable)
    assert kept(fun, X, W) == ["output of dot_general"] * 2


def test_equal_policies_are_equal():
    assert POLICIES.save_only_these_names("a", "b") == POLICIES.save_only_these_names("a", "b")
    assert POLICIES.save_only_these_names("a") != POLICIES.save_any_names_but_these("a")
    assert len({POLICIES.save_only_these_names("a"), POLICIES.save_only_these_names("a")}) == 1


def test_policies_that_contradict_are_refused():
    with pytest.raises(ValueError, match=r"\['a'\] are in both lists"):
        POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a", "b"], **OFFLOAD
        )
    with pytest.raises(TypeError, match="answered 'yes' for cos"):
        jax.grad(jax.checkpoint(jnp.sin, policy=lambda *args, **params: "yes"))(1.0)
    mixed = POLICIES.save_from_both_policies(POLICIES.dots_saveable, lambda *args, **params: Saveable)
    with pytest.raises(ValueError, match="both policies must answer with a bool"):
        jax.grad(jax.checkpoint(jnp.sin, policy=mixed))(1.0)


def test_print_saved_residuals(capsys):
    def loss(params, x):
        return jnp.sum(jnp.sin(params["w"] * x))

    print_saved_residuals(loss, {"w": X}, X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f32[3,4] from the argument x", "f32[3,4] from the argument params['w']"]
    assert lines[2].startswith("f32[3,4] output of cos from ")
    assert lines[2].endswith("(test_print_saved_residuals.<locals>.loss)") or "test_checkpoint.py" in lines[2]
    assert len(lines) == 3


# ---- recomputation ---------------------------------------------------------------------------------------------------


def chain(x, length=6):
    for _ in range(length):
        x = jnp.sin(x)
    return jnp.sum(x)


def count(fun, word, *args):
    return str(jax.make_jaxpr(fun)(*args)).count(f"= {word} ")


def test_the_backward_pass_computes_again():
    x = jnp.ones(3)
    assert count(jax.grad(chain), "sin", x) == 5
    # Forward: dead, since a gradient needs no value. Backward: all but the last sine, and six cosines.
    assert count(jax.grad(jax.checkpoint(chain)), "sin", x) == 5
    assert count(jax.value_and_grad(jax.checkpoint(chain)), "sin", x) == 6 + 5
    saving = jax.checkpoint(chain, policy=POLICIES.everything_saveable)
    assert count(jax.value_and_grad(saving), "sin", x) == 6


def test_what_has_effects_runs_once(capsys):
    def noisy(x):
        jax.debug.print("once")
        return jnp.sum(jnp.sin(jnp.sin(x)))

    jax.grad(jax.checkpoint(noisy))(jnp.ones(3))
    jax.effects_barrier()
    assert capsys.readouterr().out == "once\n"


def layers(wrap, depth=8):
    weights = 0.01 * jnp.ones((depth, 64, 64))

    def layer(x, w):
        for _ in range(5):
            x = jnp.sin(x @ w)
        return x

    step = wrap(layer)

    def loss(x):
        for i in range(depth):
            x = step(x, weights[i])
        return jnp.sum(x)

    return loss


def scratch(fun, x):
    return jax.jit(jax.grad(fun)).lower(x).compile().memory_analysis().temp_size_in_bytes


def test_memory_is_saved():
    x = jnp.ones((512, 64))
    state = x.size * 4
    plain = scratch(layers(lambda f: f), x)
    again = scratch(layers(jax.checkpoint), x)
    some = scratch(layers(lambda f: jax.checkpoint(f, memory_budget=2 * state)), x)
    assert plain > 38 * state  # 8 layers of 5 cosines
    assert again < 16 * state  # 8 layers' inputs, and one layer's cosines
    assert again < some < plain


def test_memory_is_saved_in_loops():
    x, weights = jnp.ones((512, 64)), 0.01 * jnp.ones((8, 64, 64))

    def loss(wrap):
        def layer(x, w):
            for _ in range(5):
                x = jnp.sin(x @ w)
            return x

        step = wrap(layer)
        return lambda x: jnp.sum(lax.scan(lambda c, w: (step(c, w), None), x, weights)[0])

    plain = scratch(loss(lambda f: f), x)
    again = scratch(loss(lambda f: jax.checkpoint(f, prevent_cse=False)), x)
    assert again < 0.5 * plain


@pytest.mark.parametrize("states", [0, 1, 2, 4, 8, 100])
def test_budget_is_kept(states):
    x = jnp.ones((4, 4))

    def deep(x):
        for _ in range(8):
            x = jnp.sin(x @ W)
        return jnp.sum(x)

    fun = jax.checkpoint(deep, memory_budget=states * 64)
    sizes = [aval.size * 4 for aval, origin in saved_residuals(fun, x) if "output of" in origin]
    assert sum(sizes) <= states * 64
    assert len(sizes) == min(states, 8)
    np.testing.assert_allclose(jax.grad(fun)(x), jax.grad(deep)(x), rtol=1e-5)


# ---- with the other transforms ---------------------------------------------------------------------------------------


def test_static_arguments():
    @jax.checkpoint
    def plain(x, *, flag=True):
        return jnp.sin(x) if flag is not None else x

    fun = jax.checkpoint(lambda x, flip: -jnp.sin(x) if flip else jnp.sin(x), static_argnums=(-1,))
    assert float(jax.grad(fun)(0.0, True)) == -1.0
    assert float(jax.grad(fun)(0.0, False)) == 1.0
    named_ = jax.checkpoint(lambda x, flip: -x if flip else x, static_argnames="flip")
    assert float(jax.grad(named_)(0.0, flip=True)) == -1.0
    assert float(jax.grad(plain)(0.0)) == 1.0
    with pytest.raises(ValueError, match="static_argnums has 4, but <lambda> got 1 arguments"):
        jax.checkpoint(lambda x: x, static_argnums=4)(1.0)


@pytest.mark.parametrize("policy", [None, POLICIES.dots_saveable, POLICIES.everything_saveable])
def test_nested_checkpoints_and_higher_orders(policy):
    inner = jax.checkpoint(lambda x: jnp.sin(x @ W) * x, policy=policy)
    outer = jax.checkpoint(lambda x: jnp.sum(inner(inner(x)) ** 2), policy=policy)
    plain = lambda x: jnp.sum((lambda f: f(f(x)))(lambda x: jnp.sin(x @ W) * x) ** 2)  # noqa: E731
    v = jnp.cos(X)
    for transform in (
        jax.grad,
        lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x) * v)),
        lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (v,))[1],
        lambda f: jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1]),
        lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2.0 * x])),
    ):
        want = transform(plain)(X)
        np.testing.assert_allclose(transform(outer)(X), want, rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(jax.jit(transform(outer))(X), want, rtol=2e-5, atol=1e-5)
        programs.check(jax.make_jaxpr(transform(outer))(X).jaxpr)


def test_unused_results_are_not_computed_again():
    def pair(x):
        return jnp.sin(jnp.sin(x)), jnp.exp(jnp.exp(x))

    fun = lambda x: jnp.sum(jax.checkpoint(pair)(x)[0])  # noqa: E731
    assert count(jax.grad(fun), "exp", jnp.ones(3)) == 0
