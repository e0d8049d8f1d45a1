"""What the tests know of each construct that takes functions: one `Construct` a row.

`wrap(f)` uses the construct on a function `f` of a pytree of arrays into one of the same types; `plain(f)` is the same
in NumPy, with plain loops. So constructs nest in each other as they do in programs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import morphax as jax
import morphax.numpy as jnp
from morphax import lax
from morphax.custom_batching import custom_vmap, sequential_vmap

Fun = Callable[[Any], Any]
tree_map = jax.tree.map
WEIGHTS = (0.3, 0.7, -0.4)  # what loops add in each turn


@dataclass(frozen=True)
class Construct:
    """One row.

    Args:
        name: the construct.
        wrap: f -> the construct with f in it.
        plain: the same on NumPy arrays.
        refuses_closures: the words with which it refuses to differentiate a value that `f` closes over, where it does.
        gaps: property -> why the row is not held to it.
    """

    name: str
    wrap: Callable[[Fun], Fun]
    plain: Callable[[Fun], Fun]
    refuses_closures: str = ""
    gaps: dict[str, str] = field(default_factory=dict)


def total(x):
    """Sum of all entries."""
    return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))


def total_plain(x):
    return sum(np.sum(leaf) for leaf in leaves_plain(x))


def leaves_plain(x):
    return jax.tree.leaves(x)


def mix(y, x, scale):
    """y/2 + scale x, so that no state leaves the place where derivatives are moderate."""
    return tree_map(lambda a, b: 0.5 * a + scale * b, y, x)


# ---- control flow ----------------------------------------------------------------------------------------------------


def cond(f):
    return lambda x: lax.cond(total(x) > 0.5, f, lambda t: mix(t, t, 0.5), x)


def cond_plain(f):
    return lambda x: f(x) if total_plain(x) > 0.5 else x


def switch(f):
    def run(x):
        which = jnp.asarray(jnp.floor(total(x) + 0.137), dtype="int32")
        return lax.switch(which, [f, lambda t: f(mix(t, t, 1.0)), lambda t: mix(f(t), t, 1.0)], x)

    return run


def switch_plain(f):
    def run(x):
        which = int(np.clip(np.floor(total_plain(x) + 0.137), 0, 2))
        return [f, lambda t: f(mix(t, t, 1.0)), lambda t: mix(f(t), t, 1.0)][which](x)

    return run


def scan(f):
    def run(x):
        weights = jnp.asarray(WEIGHTS, dtype="float64")
        last, rows = lax.scan(lambda c, w: (mix(f(c), x, w), tree_map(lambda a: a * w, c)), x, weights)
        return tree_map(lambda a, r: a + jnp.sum(r, axis=0), last, rows)

    return run


def scan_plain(f):
    def run(x):
        c, rows = x, tree_map(lambda a: 0.0 * a, x)
        for w in WEIGHTS:
            rows = tree_map(lambda r, a: r + a * w, rows, c)
            c = mix(f(c), x, w)
        return tree_map(np.add, c, rows)

    return run


def scan_backwards(f):
    def run(x):
        weights = jnp.asarray(WEIGHTS, dtype="float64")
        return lax.scan(lambda c, w: (mix(f(c), x, w), None), x, weights, reverse=True, unroll=2)[0]

    return run


def scan_backwards_plain(f):
    def run(x):
        c = x
        for w in WEIGHTS[::-1]:
            c = mix(f(c), x, w)
        return c

    return run


def while_loop(f):
    def run(x):
        step = lambda state: (state[0] + 1, mix(f(state[1]), x, 0.3))  # noqa: E731
        return lax.while_loop(lambda state: state[0] < 3, step, (0, x))[1]

    return run


def while_loop_plain(f):
    def run(x):
        c = x
        for _ in range(3):
            c = mix(f(c), x, 0.3)
        return c

    return run


def fori_loop(f):
    return lambda x: lax.fori_loop(0, 3, lambda i, c: mix(f(c), x, 0.1 * jnp.asarray(i, dtype="float64")), x)


def fori_loop_plain(f):
    def run(x):
        c = x
        for i in range(3):
            c = mix(f(c), x, 0.1 * i)
        return c

    return run


def fori_loop_dynamic(f):
    def run(x):
        turns = 3 + 0 * jnp.asarray(total(x), dtype="int32")
        return lax.fori_loop(0, turns, lambda i, c: mix(f(c), x, 0.1 * jnp.asarray(i, dtype="float64")), x)

    return run


def map_(f):
    def run(x):
        rows = tree_map(lambda a: jnp.stack([a, 0.5 * a, a + 0.1]), x)
        return tree_map(lambda r: jnp.sum(r, axis=0), lax.map(f, rows))

    return run


def map_batched(f):
    def run(x):
        rows = tree_map(lambda a: jnp.stack([a, 0.5 * a, a + 0.1]), x)
        return tree_map(lambda r: jnp.sum(r, axis=0), lax.map(f, rows, batch_size=2))

    return run


def map_plain(f):
    def run(x):
        first, second, third = f(x), f(tree_map(lambda a: 0.5 * a, x)), f(tree_map(lambda a: a + 0.1, x))
        return tree_map(lambda a, b, c: a + b + c, first, second, third)

    return run


def associative_scan(f):
    def run(x):
        y = f(x)
        rows = tree_map(lambda a, b: jnp.stack([0.6 * a, 0.6 * b, 0.5 * b, 0.3 * a + 0.5, 0.6 * b]), x, y)
        products = lax.associative_scan(lambda a, b: tree_map(jnp.multiply, a, b), rows)
        return tree_map(lambda p: jnp.sum(p, axis=0), products)

    return run


def associative_scan_plain(f):
    def run(x):
        y = f(x)
        return tree_map(
            lambda a, b: sum(np.cumprod(np.stack([0.6 * a, 0.6 * b, 0.5 * b, 0.3 * a + 0.5, 0.6 * b]), axis=0)), x, y
        )

    return run


# ---- rules of one's own ----------------------------------------------------------------------------------------------


def custom_jvp(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return lambda x: g(x)


def custom_vjp(f):
    g = jax.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: jax.vjp(f, x)[1](ct))
    return lambda x: g(x)


def custom_gradient(f):
    return lambda x: jax.custom_gradient(lambda y: jax.vjp(f, y))(x)


def custom_linear_solve(f):
    """z with (2 + f(x)^2) z = x."""

    def run(x):
        y = f(x)
        matvec = lambda z: tree_map(lambda a, b: (2.0 + a * a) * b, y, z)  # noqa: E731
        ones = tree_map(lambda a: 0.0 * a + 1.0, x)
        solve = lambda op, b: tree_map(jnp.divide, b, op(ones))  # noqa: E731
        return lax.custom_linear_solve(matvec, x, solve, symmetric=True)

    return run


def custom_linear_solve_plain(f):
    return lambda x: tree_map(lambda a, b: b / (2.0 + a * a), f(x), x)


def _cubic_root(p):
    """z with z^3 + z = p, by Newton's method."""
    z = 0.0 * p
    for _ in range(60):
        z = z - (z**3 + z - p) / (3.0 * z**2 + 1.0)
    return z


def custom_root(f):
    def run(x):
        y = f(x)
        equation = lambda z: tree_map(lambda a, p: a * a * a + a - p, z, y)  # noqa: E731
        ones = tree_map(lambda a: 0.0 * a + 1.0, x)

        def solve(op, z):
            def step(_, z):
                slope = jax.jvp(op, (z,), (ones,))[1]
                return tree_map(lambda a, r, s: a - r / s, z, op(z), slope)

            return lax.fori_loop(0, 60, step, z)

        tangent_solve = lambda op, b: tree_map(jnp.divide, b, op(ones))  # noqa: E731
        return lax.custom_root(equation, tree_map(lambda a: 0.0 * a, x), solve, tangent_solve)

    return run


def custom_root_plain(f):
    return lambda x: tree_map(_cubic_root, f(x))


def custom_vmap_(f):
    g = custom_vmap(f)

    @g.def_vmap
    def rule(axis_size, in_batched, x):
        axes = tree_map(lambda batched: 0 if batched else None, in_batched[0])
        out = jax.vmap(f, (axes,), axis_size=axis_size)(x)
        return out, tree_map(lambda _: True, out)

    return lambda x: g(x)


def pure_callback(f):
    @jax.custom_jvp
    def sine(a):
        return jax.pure_callback(
            lambda v: np.sin(v), jax.ShapeDtypeStruct(a.shape, a.dtype), a, vmap_method="expand_dims"
        )

    @sine.defjvp
    def sine_jvp(primals, tangents):
        return sine(*primals), jnp.cos(primals[0]) * tangents[0]

    return lambda x: tree_map(sine, f(x))


def same(f):
    return f


_CLOSES = "closes over a value that is being differentiated"
_ARGUMENTS_ONLY = {"batched_closure": "the rule is told of arguments alone"}

CONSTRUCTS = (
    Construct("jit", jax.jit, same),
    Construct("cond", cond, cond_plain),
    Construct("switch", switch, switch_plain),
    Construct("scan", scan, scan_plain),
    Construct("scan_backwards", scan_backwards, scan_backwards_plain),
    Construct("while_loop", while_loop, while_loop_plain),
    Construct("fori_loop", fori_loop, fori_loop_plain),
    Construct("fori_loop_dynamic", fori_loop_dynamic, fori_loop_plain),
    Construct("map", map_, map_plain),
    Construct("map_batched", map_batched, map_plain),
    Construct("associative_scan", associative_scan, associative_scan_plain),
    Construct("custom_jvp", custom_jvp, same, refuses_closures=_CLOSES),
    Construct("custom_vjp", custom_vjp, same, refuses_closures=_CLOSES),
    Construct("custom_gradient", custom_gradient, same, refuses_closures=_CLOSES),
    Construct("custom_linear_solve", custom_linear_solve, custom_linear_solve_plain),
    Construct("custom_root", custom_root, custom_root_plain),
    Construct("checkpoint", jax.checkpoint, same),
    Construct(
        "checkpoint_saving", lambda f: jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable), same
    ),
    Construct("checkpoint_budget", lambda f: jax.checkpoint(f, memory_budget=30), same),
    Construct("custom_vmap", custom_vmap_, same, refuses_closures=_CLOSES, gaps=_ARGUMENTS_ONLY),
    Construct(
        "sequential_vmap",
        lambda f: sequential_vmap(f).__call__,
        same,
        refuses_closures=_CLOSES,
        gaps=_ARGUMENTS_ONLY,
    ),
    Construct("pure_callback", pure_callback, lambda f: lambda x: tree_map(np.sin, f(x))),
)
BY_NAME = {c.name: c for c in CONSTRUCTS}
