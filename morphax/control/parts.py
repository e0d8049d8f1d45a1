"""What the carriers share: cutting operand lists, optional values, fixpoints, and branches with common constants."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import Jaxpr
from morphax.ir.primitive import Var
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof

Flags = tuple[bool, ...]


def cut(xs: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Consecutive pieces of `xs`; the rest comes last."""
    pieces, at = [], 0
    for n in sizes:
        pieces.append(list(xs[at : at + n]))
        at += n
    return [*pieces, list(xs[at:])]


def fill(flags: Sequence[bool], values: Sequence[Any]) -> list[Any]:
    """`values` in the places that `flags` marks, None in the others."""
    found = iter(values)
    return [next(found) if f else None for f in flags]


def present(xs: Sequence[Any]) -> list[Any]:
    """The values that are there."""
    return [x for x in xs if x is not None]


def given(xs: Sequence[Any]) -> Flags:
    """Which values are there."""
    return tuple([x is not None for x in xs])


def pick(xs: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The values that `flags` marks."""
    return [x for x, f in zip(xs, flags, strict=True) if f]


def union(rows: Sequence[Flags]) -> Flags:
    """Where any of the rows is true."""
    return tuple([any(column) for column in zip(*rows, strict=True)])


def fixpoint(step: Callable[[Flags], Sequence[bool]], flags: Flags) -> Flags:
    """The smallest `flags` that `step` does not enlarge. Usually one or two rounds, each remembered."""
    while True:
        grown = tuple([a or b for a, b in zip(flags, step(flags), strict=True)])
        if grown == flags:
            return flags
        flags = grown


def with_axis(size: int, aval: ShapedArray) -> ShapedArray:
    """The type with one more axis in front."""
    return ShapedArray((size, *aval.shape), aval.dtype, aval.weak_type, None, aval.varying)


def zeros_of(x: Any) -> Any:
    """Zeros of the type of a value."""
    return ew.zeros(typeof(x))


def share_constants(branches: Sequence[tuple[Jaxpr, Sequence[Any]]]) -> tuple[tuple[Jaxpr, ...], list[Any]]:
    """Jaxprs that all take the constants of all of them, first, so that they can be branches of one equation."""
    consts = [c for _, own in branches for c in own]
    if not consts:
        return tuple([jaxpr for jaxpr, _ in branches]), consts
    made, at = [], 0
    for jaxpr, own in branches:
        inputs = [Var(typeof(c)) for c in consts]
        inputs[at : at + len(own)] = jaxpr.invars[: len(own)]
        rest = jaxpr.invars[len(own) :]
        made.append(Jaxpr((), (*inputs, *rest), jaxpr.eqns, jaxpr.outvars, jaxpr.effects, jaxpr.debug_name))
        at += len(own)
    return tuple(made), consts


def remembered(build: Callable[..., Any]) -> Callable[..., Any]:
    """A pass over a jaxpr (or several: the first owns the memory) whose other arguments are hashable."""

    @functools.wraps(build)
    def derived(jaxpr: Jaxpr, *key: Any) -> Any:
        full = (build.__qualname__, build.__module__, *key)
        found = jaxpr.memo.get(full)
        if found is None:
            found = jaxpr.memo[full] = build(jaxpr, *key)
        return found

    return derived


def flatten(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """One list of the parts."""
    return list(itertools.chain.from_iterable(parts))
