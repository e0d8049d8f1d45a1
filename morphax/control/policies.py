"""What a checkpoint keeps: names for values, the policies, and the choice of what fits a budget of memory."""

import heapq
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import Eqn, Jaxpr, Var, subjaxprs
from morphax.ir.primitive import ALL, Primitive
from morphax.ops import contract, convolution
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import as_array
from morphax.transforms.flat import canonical, check_leaf

# ---- what a policy answers -------------------------------------------------------------------------------------------


class SaveableType:
    """The answer: keep the value."""

    def __repr__(self) -> str:
        return "Saveable"


class RecomputeType:
    """The answer: compute the value again."""

    def __repr__(self) -> str:
        return "Recompute"


class Offloadable(NamedTuple):
    """The answer: keep the value in memory of the kind `dst`, and bring it back to the kind `src` for its use.

    On a CPU all memory is of one kind, so this is the same as keeping it. No backend moves the value yet.
    """

    src: Any
    dst: Any


Saveable = SaveableType()
Recompute = RecomputeType()


# ---- names -----------------------------------------------------------------------------------------------------------

name_p = Primitive(
    "name",
    type=lambda x, *, name: x,
    lower=lambda low, ins, outs, x, *, name: [x],
    linear=ALL,
    transpose=lambda ct, x, *, name: [ct],
    batch=lambda prim, size, operands, flags, params: [prim(*operands, **params)],
)


@api_boundary
def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, which checkpoint policies know by `name`.

    Args:
        x: pytree of arrays.
        name: such as "attention".

    >>> from morphax import checkpoint, checkpoint_policies, grad, numpy as jnp
    >>> f = lambda x: jnp.sin(checkpoint_name(jnp.exp(x), "power"))
    >>> g = checkpoint(f, policy=checkpoint_policies.save_only_these_names("power"))
    >>> round(float(grad(g)(0.0)), 6)
    0.540302
    """
    leaves, structure = tree.flatten(x)
    for k, leaf in enumerate(leaves):
        check_leaf("checkpoint_name", leaf, lambda: f"leaf {k}")  # noqa: B023 - called at once
    return tree.unflatten(structure, [name_p(as_array(canonical(leaf)), name=name) for leaf in leaves])


# ---- policies --------------------------------------------------------------------------------------------------------

Answer = bool | SaveableType | RecomputeType | Offloadable


class Policy:
    """A policy with the arguments that it was made from: equal ones are equal, so that what they lead to is made once.

    Called as (primitive, *operand types, **params) for each operation, it says whether to keep the results.
    """

    __slots__ = ("args", "decide", "name")

    def __init__(self, name: str, decide: Callable[..., Answer], *args: Any):
        self.name = name
        self.decide = decide
        self.args = args

    def __call__(self, prim: Any, *operands: Any, **params: Any) -> Answer:
        return self.decide(self.args, prim, params)

    def __hash__(self) -> int:
        return hash((self.name, self.args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and (self.name, self.args) == (other.name, other.args)

    def __repr__(self) -> str:
        return f"{self.name}{self.args}" if self.args else self.name


def everything_saveable(*args: Any, **params: Any) -> bool:
    """Keep every value that the backward pass needs: no recomputation."""
    return True


def nothing_saveable(*args: Any, **params: Any) -> bool:
    """Keep nothing but the arguments: recompute everything."""
    return False


def _is_dot(prim: Any) -> bool:
    return prim is contract.dot_general or prim is convolution.conv_general_dilated


def _without_batch(prim: Any, params: dict[str, Any]) -> bool:
    return prim is contract.dot_general and not params["dimension_numbers"][1][0]


dots_saveable = Policy("dots_saveable", lambda _, prim, params: _is_dot(prim))
dots_with_no_batch_dims_saveable = Policy(
    "dots_with_no_batch_dims_saveable", lambda _, prim, params: _without_batch(prim, params)
)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep matrix products without batch dimensions, in memory of another kind."""

    def decide(args: Any, prim: Any, params: Any) -> Answer:
        return Offloadable(*args) if _without_batch(prim, params) else Recompute

    return Policy("offload_dot_with_no_batch_dims", decide, offload_src, offload_dst)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep every value but those of these names."""
    names = frozenset(names_not_to_save)
    return Policy(
        "save_anything_except_these_names",
        lambda _, prim, params: prim is not name_p or params["name"] not in names,
        *names_not_to_save,
    )


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep the values that have a name, but not these names."""
    names = frozenset(names_not_to_save)
    return Policy(
        "save_any_names_but_these",
        lambda _, prim, params: prim is name_p and params["name"] not in names,
        *names_not_to_save,
    )


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep the values of these names."""
    names = frozenset(names_which_can_be_saved)
    return Policy(
        "save_only_these_names",
        lambda _, prim, params: prim is name_p and params["name"] in names,
        *names_which_can_be_saved,
    )


def save_from_both_policies(policy_1: Callable[..., Any], policy_2: Callable[..., Any]) -> Callable[..., bool]:
    """Keep what either policy keeps.

    Raises:
        ValueError: when asked, where one of them answers with something else than a bool.
    """

    def policy(prim: Any, *operands: Any, **params: Any) -> bool:
        answers = policy_1(prim, *operands, **params), policy_2(prim, *operands, **params)
        if not all(isinstance(answer, bool) for answer in answers):
            raise ValueError(
                f"save_from_both_policies: both policies must answer with a bool; they answered {answers[0]!r} and "
                f"{answers[1]!r}. Write one policy that decides between them."
            )
        return answers[0] or answers[1]

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep the values of some names where they are, and of others in memory of another kind.

    Raises:
        ValueError: a name in both lists.
    """
    saved, moved = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & moved:
        raise ValueError(
            f"save_and_offload_only_these_names: {sorted(saved & moved)} are in both lists; put each name into one."
        )

    def decide(_: Any, prim: Any, params: dict[str, Any]) -> Answer:
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in moved:
            return Offloadable(offload_src, offload_dst)
        return Recompute

    key = (tuple(sorted(saved)), tuple(sorted(moved)), offload_src, offload_dst)
    return Policy("save_and_offload_only_these_names", decide, *key)


checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)


def keeps(policy: "Callable[..., Any] | Budget | None", eqn: Eqn) -> bool:
    """Whether the results of an equation are kept. Those of an equation with effects always are: it runs once.

    Raises:
        TypeError: a policy that answers with something else than the answers there are.
    """
    if eqn.effects:
        return True
    if policy is None or isinstance(policy, Budget):
        return False
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if isinstance(answer, (SaveableType, Offloadable)):
        return True
    if isinstance(answer, RecomputeType):
        return False
    raise TypeError(
        f"checkpoint: policy {policy!r} answered {answer!r:.60} for {eqn.primitive.name}. Answer with a bool, "
        "Saveable, Recompute or Offloadable(src, dst)."
    )


# ---- a budget --------------------------------------------------------------------------------------------------------

_CANDIDATES = 256  # values that are weighed against each other; the choice takes time in proportion to its square
_UNKNOWN_TURNS = 10  # guess for while_loop


class Budget:
    """A policy that keeps what saves most recomputation for each byte, `size` bytes at most besides the arguments."""

    __slots__ = ("size",)

    def __init__(self, size: int):
        self.size = size

    def __hash__(self) -> int:
        return hash(self.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.size == other.size

    def __repr__(self) -> str:
        return f"memory_budget={self.size}"

    def choose(self, eqns: Sequence[Eqn], wanted: Collection[Var]) -> set[Any]:
        """The values to keep, of those that the equations compute, for `wanted` to be computed again from them."""
        made = {v: cost_of(eqn) for eqn in eqns for v in eqn.outvars}
        bytes_of = {v: bytes_in(v.aval) for v in made}
        kept: set[Any] = {v for eqn in eqns if eqn.effects for v in eqn.outvars}
        needed, cost = _again(eqns, wanted, kept)
        candidates = [v for v in made if v in needed and 0 < bytes_of[v] <= self.size]
        candidates.sort(key=lambda v: -made[v] / bytes_of[v])
        del candidates[_CANDIDATES:]

        def gain(v: Any) -> float:
            return cost - _again(eqns, wanted, kept | {v})[1]

        # What a value saves only falls while others are kept, so a stale gain is a bound: the greedy choice is lazy.
        heap = [(-gain(v) / bytes_of[v], k) for k, v in enumerate(candidates)]
        heapq.heapify(heap)
        free = self.size
        while heap:
            _, k = heapq.heappop(heap)
            v = candidates[k]
            saved = gain(v) if bytes_of[v] <= free else 0
            if saved <= 0:
                continue
            if heap and -saved / bytes_of[v] > heap[0][0]:
                heapq.heappush(heap, (-saved / bytes_of[v], k))
                continue
            kept.add(v)
            needed, cost = _again(eqns, wanted, kept)
            free = self.size - sum([bytes_of[u] for u in kept if u in needed])
        return kept


def _again(eqns: Sequence[Eqn], wanted: Collection[Var], kept: Collection[Var]) -> tuple[set[Any], float]:
    """The values that are needed where `wanted` is computed again from `kept`, and the cost of that."""
    needed: set[Any] = set(wanted)
    cost = 0.0
    for eqn in reversed(eqns):
        if any(v in needed and v not in kept for v in eqn.outvars):
            cost += cost_of(eqn)
            needed.update([v for v in eqn.invars if v.__class__ is Var])
    return needed, cost


def bytes_in(aval: ShapedArray) -> int:
    """Size of a value of a type."""
    if isinstance(aval.dtype, dtypes.KeyDType):
        return 4 * aval.size * int(np.prod(aval.dtype.key_shape))
    if aval.dtype == dtypes.float0:
        return 0
    return (aval.size * dtypes.itemsize_bits(aval.dtype) + 7) // 8


def _dot_cost(eqn: Eqn) -> float:
    contracted = eqn.params["dimension_numbers"][0][0]
    sizes = [eqn.invars[0].aval.shape[axis] for axis in contracted]
    return 2.0 * eqn.outvars[0].aval.size * float(np.prod(sizes))


def _conv_cost(eqn: Eqn) -> float:
    out, kernel = eqn.outvars[0].aval, eqn.invars[1].aval
    features = eqn.params["dimension_numbers"].rhs_spec[0]
    return 2.0 * out.size * kernel.size / max(kernel.shape[features], 1)


# Primitives whose work is not one operation for each element that they touch.
_COSTS: dict[str, Callable[[Eqn], float]] = {"dot_general": _dot_cost, "conv_general_dilated": _conv_cost}
_TURNS: dict[str, Callable[[Eqn], int]] = {
    "scan": lambda eqn: eqn.params["length"],
    "while": lambda eqn: _UNKNOWN_TURNS,
}
_FREE = frozenset(["name", "reshape", "broadcast_in_dim", "squeeze", "expand_dims"])


def cost_of(eqn: Eqn) -> float:
    """Rough number of operations of an equation."""
    name = eqn.primitive.name
    if name in _FREE:
        return 0.0
    if name in _COSTS:
        return _COSTS[name](eqn)
    inner = subjaxprs(eqn.params)
    if inner:
        turns = _TURNS[name](eqn) if name in _TURNS else 1
        return turns * sum([_cost_of_jaxpr(jaxpr) for jaxpr in inner])
    sizes = [v.aval.size for v in eqn.outvars] + [v.aval.size for v in eqn.invars]
    return float(max(sizes, default=0))


def _cost_of_jaxpr(jaxpr: Jaxpr) -> float:
    found = jaxpr.memo.get("cost")
    if found is None:
        found = jaxpr.memo["cost"] = sum([cost_of(eqn) for eqn in jaxpr.eqns])
    return found
