"""Optimizers as triples of functions of pytrees: `init_fn(params)`, `update_fn(step, grads, state)`,
`params_fn(state)`.

>>> from morphax import grad, numpy as jnp
>>> init, update, params = sgd(0.1)
>>> state = init({"w": jnp.float32(1.0)})
>>> for step in range(3):
...     state = update(step, grad(lambda p: p["w"] ** 2)(params(state)), state)
>>> round(params(state)["w"].item(), 3)
0.512
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from morphax import numpy as jnp
from morphax.support import tree

map = map
zip = zip
Step = int
Params = State = Updates = Any
InitFn = Callable[[Any], Any]
ParamsFn = Callable[[Any], Any]
Schedule = Callable[[Any], Any]
UpdateFn = Callable[[Any, Any, Any], Any]

# ---- states of pytrees -----------------------------------------------------------------------------------------------


class OptimizerState(NamedTuple):
    """States of the leaves of a pytree of parameters: for each the leaves of its state; and both structures."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


def _state_children(state: OptimizerState) -> tuple[tuple[Any, ...], tuple[Any, Any]]:
    return (state.packed_state,), (state.tree_def, state.subtree_defs)


tree.register_pytree_node(OptimizerState, _state_children, lambda fixed, children: OptimizerState(*children, *fixed))


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


class JoinPoint:
    """Marks where the state of one parameter begins in a pytree of parameters."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def _flat(states: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The leaves of each state as a tuple of lists, and their structures."""
    flat = [tree.flatten(state) for state in states]
    return tuple([leaves for leaves, _ in flat]), tuple([structure for _, structure in flat])


def optimizer(opt_maker: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Optimizer]:
    """Decorator: the optimizer of pytrees from one of single arrays.

    Args:
        opt_maker: hyperparameters -> (init, update, get), functions of one array, its gradient and its state.
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get = opt_maker(*args, **kwargs)

        def init_fn(params: Any) -> OptimizerState:
            leaves, structure = tree.flatten(params)
            return OptimizerState(*_with_structure(_flat([init(x) for x in leaves]), structure))

        def update_fn(step: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, structure = tree.flatten(grads)
            if structure != state.tree_def:
                raise TypeError(
                    "optimizer update_fn: the gradients do not have the structure of the parameters: "
                    f"{structure} and {state.tree_def}. Pass gradients of params_fn(state)."
                )
            states = [tree.unflatten(s, x) for s, x in zip(state.subtree_defs, state.packed_state, strict=True)]
            packed, structures = _flat([update(step, g, s) for g, s in zip(leaves, states, strict=True)])
            for old, new in zip(state.subtree_defs, structures, strict=True):
                if old != new:
                    raise TypeError(f"optimizer update_fn: a state of structure {old} became one of structure {new}.")
            return OptimizerState(packed, structure, structures)

        def params_fn(state: OptimizerState) -> Any:
            states = [tree.unflatten(s, x) for s, x in zip(state.subtree_defs, state.packed_state, strict=True)]
            return tree.unflatten(state.tree_def, [get(s) for s in states])

        return Optimizer(init_fn, update_fn, params_fn)

    return make


def _with_structure(flat: tuple[Any, Any], structure: Any) -> tuple[Any, Any, Any]:
    return flat[0], structure, flat[1]


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a pytree of the parameters' structure, whose leaves are JoinPoints: for saving it."""
    packed, structure, structures = opt_state
    states = [JoinPoint(tree.unflatten(s, x)) for s, x in zip(structures, packed, strict=True)]
    return tree.unflatten(structure, states)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`."""
    points, structure = tree.flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError("pack_optimizer_state: every leaf must be a JoinPoint, as unpack_optimizer_state gives them.")
    return OptimizerState(*_with_structure(_flat([p.subtree for p in points]), structure))


# ---- optimizers ------------------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent.

    Args:
        step_size: positive, or a schedule: a function of the step.
    """
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Gradient descent along a running sum of gradients, of which `mass` is kept at each step. Polyak, 1964."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """`momentum` that looks one step ahead. Nesterov, 1983."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, _first


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), 0 where x is 0."""
    return jnp.where(x > 0, 1 / jnp.sqrt(jnp.where(x > 0, x, 1)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """AdaGrad with momentum. Duchi, Hazan, Singer: JMLR 12 (2011)."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - rate(i) * mean, squares, mean

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """RMSProp. Tieleman, Hinton: Lecture 6.5, 2012."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, square = state
        square = square * gamma + jnp.square(g) * (1 - gamma)
        return x - rate(i) * g / jnp.sqrt(square + eps), square

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """`rmsprop` with momentum of the steps."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, square, velocity = state
        square = square * gamma + jnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + rate(i) * g / jnp.sqrt(square + eps)
        return x - velocity, square, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam. Kingma, Ba: arXiv 1412.6980.

    Args:
        step_size: positive, or a schedule: a function of the step.
        b1: how much of the mean of gradients is kept at each step.
        b2: how much of the mean of their squares.
        eps: added to the root of the latter.
    """
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, square = state
        mean = (1 - b1) * g + b1 * mean
        square = (1 - b2) * jnp.square(g) + b2 * square
        unbiased, unbiased_square = mean / (1 - b1 ** (i + 1)), square / (1 - b2 ** (i + 1))
        return x - rate(i) * unbiased / (jnp.sqrt(unbiased_square) + eps), mean, square

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """AdaMax: `adam` with the largest in place of the root mean square. Kingma, Ba: arXiv 1412.6980, section 7."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        return x - rate(i) / (1 - b1 ** (i + 1)) * mean / (largest + eps), mean, largest

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


def _along(vector: Any, axis: int, ndim: int) -> Any:
    """A vector as an array of `ndim` axes that broadcasts, the vector along `axis`."""
    return vector.reshape([-1 if d == axis else 1 for d in range(ndim)])


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3, which keeps one vector for each axis. Anil, Gupta, Koren, Singer: arXiv 1901.11150.

    Args:
        step_size: positive, or a schedule: a function of the step.
        momentum: how much of the mean of steps is kept.
    """
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        return x, jnp.zeros_like(x), [jnp.zeros(size, x.dtype) for size in jnp.shape(x)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, vectors = state
        ndim = jnp.ndim(x)
        bounds = [_along(v, d, ndim) for d, v in enumerate(vectors)]
        squares = (functools.reduce(jnp.minimum, bounds) if bounds else 0.0) + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        vectors = [squares.max(axis=tuple([k for k in range(ndim) if k != d])) for d in range(ndim)]
        return x - rate(i) * mean, mean, vectors

    return init, update, _first


# ---- schedules -------------------------------------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """The same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size decay_rate^(i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate i / decay_steps); with `staircase` in steps of `decay_steps`."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From `step_size` to `final_step_size`, along (1 - i / decay_steps)^power."""

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] from boundaries[k - 1] on.

    Raises:
        ValueError: there is not one value more than boundaries, or these are no vectors.
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if boundaries.ndim != 1 or values.ndim != 1:
        raise ValueError("piecewise_constant: boundaries and values must be sequences of numbers.")
    if boundaries.shape[0] + 1 != values.shape[0]:
        raise ValueError(
            f"piecewise_constant: {boundaries.shape[0]} boundaries need one value more; got {values.shape[0]}."
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule itself, or the constant one of a number.

    Raises:
        TypeError: it is neither.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"make_schedule: needs a number or a function of the step, got {type(scalar_or_schedule)}.")


# ---- gradients -------------------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all entries of a pytree."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in _leaves(tree)))


def _leaves(x: Any) -> list[Any]:
    return tree.leaves(x)


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down so that their common norm is at most `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
