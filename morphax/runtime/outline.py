"""Repeated blocks of a flat program, such as the layers of a network written as a Python loop, as calls of a function.

XLA's CPU compiler takes more than linear time for long programs and fuses what was saved for the backward pass into
later kernels, which computes it again and again. Blocks that stay functions avoid both.

A block repeats where the equations at distance d are alike for several times d on end. Equations are alike if they
apply the same operation with the same parameters to the same types; that copies are wired alike is checked afterwards.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from morphax.control.call import call
from morphax.ir.jaxpr import Eqn, Jaxpr, Literal, subjaxprs
from morphax.ir.primitive import Var
from morphax.support import config

SMALLEST_PROGRAM = 1200  # equations; shorter programs compile as fast flat
COPIES = 3
BLOCK = 24  # equations: smaller blocks only cost memory traffic
_GRAM = 12
# Operations that a carried value may not pass on its way to the next copy: XLA fuses neither into nor across them, so
# blocks joined by them alone gain nothing.
_HEAVY = frozenset(("dot_general", "conv_general_dilated", "sort", "fft", "scan", "while", "cond", "shard_map"))


class Repeat(NamedTuple):
    """`copies` copies of `size` equations, from `start` on."""

    start: int
    size: int
    copies: int


def outlined(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its repeated blocks as calls, or itself where there are none. Remembered."""
    found = jaxpr.memo.get("outlined")
    if found is None:
        found = jaxpr
        if len(jaxpr.eqns) >= SMALLEST_PROGRAM and config.outline.value and not jaxpr.effects:
            found = _outline(jaxpr)
        jaxpr.memo["outlined"] = found
    return found


def _outline(jaxpr: Jaxpr) -> Jaxpr:
    eqns = list(jaxpr.eqns)
    keys = _keys(eqns)
    replaced: list[tuple[Repeat, list[Eqn]]] = []
    known: dict[Any, Jaxpr] = {}
    users = _users(jaxpr)
    for repeat in _repeats(keys):
        calls = _as_calls(eqns, repeat, users, known, keys)
        if calls is not None:
            replaced.append((repeat, calls))
    if not replaced:
        return jaxpr
    made: list[Eqn] = []
    at = 0
    for repeat, calls in sorted(replaced, key=lambda r: r[0].start):
        made.extend(eqns[at : repeat.start])
        made.extend(calls)
        at = repeat.start + repeat.size * repeat.copies
    made.extend(eqns[at:])
    return Jaxpr(jaxpr.constvars, jaxpr.invars, made, jaxpr.outvars, jaxpr.effects, jaxpr.debug_name)


# ---- finding ---------------------------------------------------------------------------------------------------------


def _keys(eqns: Sequence[Eqn]) -> list[int]:
    """A number for each equation, equal for equations that are alike; unique ones where nothing can be said."""
    numbers: dict[Any, int] = {}
    keys = []
    for eqn in eqns:
        types = tuple([v.aval if not isinstance(v, Literal) else ("literal", v.aval, repr(v.val)) for v in eqn.invars])
        key = (eqn.primitive, types, tuple(eqn.params.items()))
        try:
            keys.append(numbers.setdefault(key, len(numbers)))
        except TypeError:  # a parameter that cannot be compared
            keys.append(numbers.setdefault(object(), len(numbers)))
    return keys


def _repeats(keys: Sequence[int]) -> list[Repeat]:
    """Stretches where the keys repeat, longest first, none overlapping."""
    last: dict[tuple[int, ...], int] = {}
    distances: Counter[int] = Counter()
    for i in range(len(keys) - _GRAM):
        gram = tuple(keys[i : i + _GRAM])
        before = last.get(gram)
        if before is not None:
            distances[i - before] += 1
        last[gram] = i
    found: list[Repeat] = []
    taken = [False] * len(keys)
    for distance, count in distances.most_common(16):
        if count < distance * (COPIES - 1) - _GRAM:
            continue
        start = 0
        while start < len(keys) - distance:
            end = start
            while end < len(keys) - distance and keys[end] == keys[end + distance] and not taken[end]:
                end += 1
            if end - start >= distance * (COPIES - 1):
                found.append(_trimmed(keys, start, end + distance, distance))
                for i in range(start, min(end + distance, len(keys))):
                    taken[i] = True
            start = max(end, start + 1)
    return sorted(found, key=lambda r: -r.size * r.copies)


def _trimmed(keys: Sequence[int], start: int, end: int, distance: int) -> Repeat:
    size = distance
    while size < BLOCK:  # several periods together
        size += distance
    return Repeat(start, size, (end - start) // size)


# ---- making functions ------------------------------------------------------------------------------------------------


def _users(jaxpr: Jaxpr) -> dict[Any, list[int]]:
    """For each variable the positions of the equations that read it; the end of the program counts as one more."""
    users: dict[Any, list[int]] = {}
    for k, eqn in enumerate(jaxpr.eqns):
        for v in eqn.invars:
            if v.__class__ is Var:
                users.setdefault(v, []).append(k)
    for v in jaxpr.outvars:
        if v.__class__ is Var:
            users.setdefault(v, []).append(len(jaxpr.eqns))
    return users


def _as_calls(
    eqns: Sequence[Eqn], repeat: Repeat, users: dict[Any, list[int]], known: dict[Any, Jaxpr], keys: Sequence[int]
) -> list[Eqn] | None:
    """The copies as calls of one function; None where they are not wired alike, or where it would not pay."""
    size, count = repeat.size, repeat.copies
    if count < COPIES:
        return None
    phase = _best_phase(eqns, repeat, users)
    start = repeat.start + phase
    if phase:
        count -= 1
    if count < COPIES:
        return None
    blocks = [eqns[start + k * size : start + (k + 1) * size] for k in range(count)]
    wires = [_wiring(block) for block in blocks]
    if any(w != wires[0] for w in wires):
        return None
    outside = [_results(block, start + k * size, size, users) for k, block in enumerate(blocks)]
    leaving = sorted(set().union(*outside))
    slots = [i for i, wire in enumerate(wires[0]) if wire is None]
    operands = [[v for eqn in block for v in eqn.invars] for block in blocks]
    merged = _merged(slots, operands)
    if not _carried(blocks, leaving, merged, operands):
        return None
    shape = (tuple(keys[start : start + size]), tuple(wires[0]), tuple(leaving), tuple(merged.items()))
    inner = known.get(shape)
    if inner is None:
        inner = known[shape] = _function(blocks[0], wires[0], leaving, merged)
    firsts = list(dict.fromkeys(merged.values()))
    calls = []
    for block, own in zip(blocks, operands, strict=True):
        results = [v for eqn in block for v in eqn.outvars]
        outvars = [results[k] for k in leaving]
        calls.append(
            Eqn(call, [own[i] for i in firsts], {"jaxpr": inner, "name": "block"}, outvars, source=block[0].source)
        )
    before = list(eqns[repeat.start : start])
    after = list(eqns[start + count * size : repeat.start + repeat.copies * size])
    return [*before, *calls, *after]


def _best_phase(eqns: Sequence[Eqn], repeat: Repeat, users: dict[Any, list[int]]) -> int:
    """Where to cut: the offset at which the fewest bytes go from one copy to the next."""
    start, size = repeat.start, repeat.size
    middle = start + size * (repeat.copies // 2)
    crossing = [0] * (2 * size + 1)
    for k in range(middle - size, middle + size):
        for v in eqns[k].outvars:
            last = min(max(users.get(v, [k])), middle + size)
            bytes_ = v.aval.size * v.aval.dtype.itemsize
            for cut in range(k + 1, last + 1):
                crossing[cut - (middle - size)] += bytes_
    window = crossing[size : 2 * size]
    return min(range(size), key=lambda p: (window[p], p))


def _wiring(block: Sequence[Eqn]) -> list[int | None]:
    """For each operand of the block the number of the block's own result that it is, or None for one from outside."""
    place: dict[Any, int] = {}
    wires: list[int | None] = []
    for eqn in block:
        wires.extend([place.get(v) if v.__class__ is Var else -1 for v in eqn.invars])
        for v in eqn.outvars:
            place[v] = len(place)
    return wires


def _results(block: Sequence[Eqn], start: int, size: int, users: dict[Any, list[int]]) -> set[int]:
    """Numbers of the block's results that are read outside it."""
    found = set()
    k = 0
    for eqn in block:
        for v in eqn.outvars:
            if any(not start <= u < start + size for u in users.get(v, ())):
                found.add(k)
            k += 1
    return found


def _merged(slots: Sequence[int], operands: Sequence[Sequence[Any]]) -> dict[int, int]:
    """For each operand from outside the first one that is the same variable in every copy."""
    merged: dict[int, int] = {}
    first: dict[tuple[int, ...], int] = {}
    for i in slots:
        key = tuple([id(own[i]) for own in operands])
        merged[i] = first.setdefault(key, i)
    return merged


def _carried(
    blocks: Sequence[Sequence[Eqn]], leaving: Sequence[int], merged: dict[int, int], operands: Sequence[Sequence[Any]]
) -> bool:
    """Whether a value goes from copy to copy by light operations alone."""
    results = [v for eqn in blocks[0] for v in eqn.outvars]
    handed = {id(results[k]): k for k in leaving}
    entering = {i: handed[id(operands[1][i])] for i in merged if id(operands[1][i]) in handed}
    if not entering:
        # Copies of a backward pass hand on in the other direction of the program's order all the same.
        return False
    light = {operands[0][i] for i in entering}
    for eqn in blocks[0]:
        if eqn.primitive.name not in _HEAVY and any(v in light for v in eqn.invars if v.__class__ is Var):
            light.update(eqn.outvars)
    return any(results[k] in light for k in entering.values())


def _function(
    block: Sequence[Eqn], wires: Sequence[int | None], leaving: Sequence[int], merged: dict[int, int]
) -> Jaxpr:
    operands = [v for eqn in block for v in eqn.invars]
    inputs = {i: Var(operands[i].aval) for i in dict.fromkeys(merged.values())}
    results: list[Var] = []
    made = []
    at = 0
    for eqn in block:
        invars: list[Any] = []
        for v in eqn.invars:
            wire = wires[at]
            invars.append(v if wire == -1 else inputs[merged[at]] if wire is None else results[wire])
            at += 1
        outvars = [Var(v.aval) for v in eqn.outvars]
        results.extend(outvars)
        made.append(eqn.replace(invars=invars, outvars=outvars))
    return Jaxpr((), list(inputs.values()), made, [results[k] for k in leaving], debug_name="block")


def explain(jaxpr: Jaxpr) -> str:
    """What was made a function: a line for each block."""
    calls = Counter(eqn.params["jaxpr"] for eqn in outlined(jaxpr).eqns if eqn.params.get("name") == "block")
    rows = [f"{n} copies of {len(inner.eqns)} equations" for inner, n in calls.items()]
    nested = sum(len(subjaxprs(eqn.params)) for eqn in jaxpr.eqns)
    head = f"{len(jaxpr.eqns)} equations, {nested} nested programs"
    return f"{head}; outlined: {', '.join(rows) or 'nothing'}"
