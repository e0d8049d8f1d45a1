"""Loops of known length: (c_{i+1}, y_i) = f(w, c_i, x_i).

Forward mode is the same recurrence on (c, dc). Reverse mode: a scan of f that also stacks the residuals r_i, then the
linear scan dc_{i+1}, dy_i = L(r_i)(dw, dc_i, dx_i), whose transpose runs backwards and carries the sum for w.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from morphax.control.call import call
from morphax.control.parts import Flags, cut, fill, fixpoint, flatten, given, pick, present, remembered, with_axis
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.jaxpr import Eqn, Jaxpr, Literal, join_effects, prune
from morphax.ir.primitive import Primitive, is_unknown
from morphax.ir.trace import close, stage
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.ops.family import typeof
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs

_INT = avals.ShapedArray((), np.dtype("int32"))
_BOOL = avals.ShapedArray((), np.dtype("bool"))


def _type(
    *operands: Any, jaxpr: Jaxpr, length: int, num_consts: int, num_carry: int, reverse: bool, unroll: int
) -> tuple[Any, ...]:
    outs = jaxpr.out_avals
    return (*outs[:num_carry], *[with_axis(length, a) for a in outs[num_carry:]])


# ---- lowering --------------------------------------------------------------------------------------------------------


def _lower(low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, length: int, num_consts: int, num_carry: int,
           reverse: bool, unroll: int) -> list[Any]:  # fmt: skip
    """A while loop of passes with `unroll` turns each, and the turns that remain after it."""
    consts, carry, xs = cut(operands, num_consts, num_carry)
    x_types, y_types = ins[num_consts + num_carry :], outs[num_carry:]
    state_types = (_INT, *ins[num_consts : num_consts + num_carry], *y_types)
    whole = length // unroll * unroll
    if whole == unroll:
        whole = 0  # one pass needs no loop

    def turn(at: Any, state: Sequence[Any]) -> list[Any]:
        carry, stacks = cut(state, num_carry)
        rows = [low.row(x, t, at) for x, t in zip(xs, x_types, strict=True)]
        carry, ys = cut(low.equations(jaxpr, [*consts, *carry, *rows]), num_carry)
        return carry + [low.set_row(s, t, y, at) for s, t, y in zip(stacks, y_types, ys, strict=True)]

    def test(i: Any, *state: Any) -> list[Any]:
        return low.op("stablehlo.compare", (_BOOL,), (i, low.constant(whole, _INT)), {"comparison_direction": _LESS})

    def body(i: Any, *state: Any) -> list[Any]:
        values: Sequence[Any] = state
        for k in range(unroll):
            at = low.op("stablehlo.add", (_INT,), (i, low.constant(k, _INT)))[0] if k else i
            if reverse:
                at = low.op("stablehlo.subtract", (_INT,), (low.constant(length - 1, _INT), at))[0]
            values = turn(at, values)
        return [low.op("stablehlo.add", (_INT,), (i, low.constant(unroll, _INT)))[0], *values]

    state = [*carry, *[low.constant(0, low.storage(t)) for t in y_types]]
    if whole:
        regions = ((state_types, test), (state_types, body))
        state = low.op("stablehlo.while", state_types, (low.constant(0, _INT), *state), regions=regions)[1:]
    for k in range(whole, length):
        state = turn(low.constant(length - 1 - k if reverse else k, _INT), state)
    return state


_LESS = "#stablehlo<comparison_direction LT>"

# ---- derivatives -----------------------------------------------------------------------------------------------------


def active_carries(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, active: Flags, activity: Callable[[Flags], Flags]
) -> tuple[Flags, Flags]:
    """Which operands are active once activity has gone round the loop, and the results that are so forced to be."""
    c, k, x = cut(active, num_consts, num_carry)
    found = fixpoint(lambda k: activity((*c, *k, *x))[:num_carry], tuple(k))
    return (*c, *found, *x), found + (False,) * (len(jaxpr.outvars) - num_carry)


class FusedJvp(NamedTuple):
    """jaxpr: (consts, w, dw, c, dc, x, dx) -> (c, dc, y, dy)."""

    jaxpr: Jaxpr
    consts: list[Any]
    active: Flags
    has: Flags


@remembered
def fused_jvp(jaxpr: Jaxpr, num_consts: int, num_carry: int, active: Flags) -> FusedJvp:
    """The loop body on values and tangents together."""
    active, force = active_carries(jaxpr, num_consts, num_carry, active, lambda a: jaxprs.jvp(jaxpr, a).has)
    made = jaxprs.jvp(jaxpr, active, force=force)
    own, primals, tangents = cut(made.jaxpr.invars, len(made.consts), len(jaxpr.invars))
    pairs = zip(cut(primals, num_consts, num_carry), cut(fill(active, tangents), num_consts, num_carry), strict=True)
    inputs = flatten([p + present(t) for p, t in pairs])
    outs, out_tangents = cut(made.jaxpr.outvars, len(jaxpr.outvars))
    pairs = zip(cut(outs, num_carry), cut(fill(made.has, out_tangents), num_carry), strict=True)
    results = flatten([p + present(t) for p, t in pairs])
    fused = Jaxpr((), (*own, *inputs), made.jaxpr.eqns, results, made.jaxpr.effects, jaxpr.debug_name)
    return FusedJvp(fused, made.consts, active, made.has)


def hoist(jaxpr: Jaxpr, count: int) -> tuple[Jaxpr, Jaxpr]:
    """What depends on the first `count` inputs alone, and the rest with those results as further inputs."""
    fixed: set[Any] = set(jaxpr.invars[:count])
    outer: list[Eqn] = []
    inner: list[Eqn] = []
    for eqn in jaxpr.eqns:
        invariant = not eqn.effects and all(isinstance(v, Literal) or v in fixed for v in eqn.invars)
        (outer if invariant else inner).append(eqn)
        if invariant:
            fixed.update(eqn.outvars)
    used = {v for eqn in inner for v in eqn.invars if not isinstance(v, Literal)}
    used.update(v for v in jaxpr.outvars if not isinstance(v, Literal))
    edge = [v for eqn in outer for v in eqn.outvars if v in used]
    rest = (*jaxpr.invars[:count], *edge, *jaxpr.invars[count:])
    return (
        Jaxpr((), jaxpr.invars[:count], outer, edge, debug_name=jaxpr.debug_name),
        Jaxpr((), rest, inner, jaxpr.outvars, debug_name=jaxpr.debug_name),
    )


class SplitLoop(NamedTuple):
    """A linearized loop: `outer` runs once before the forward loop over `inner`; `linear` is the tangent loop's body.

    Each residual's source is ("value", v), ("fixed", k), ("x", k) or ("y", k) of the forward loop.
    """

    lin: jaxprs.Linearized
    outer: Jaxpr
    inner: Jaxpr
    linear: Jaxpr
    active: Flags
    sources: list[tuple[str, Any]]
    num_consts: int
    num_carry: int


@remembered
def split_loop(jaxpr: Jaxpr, num_consts: int, num_carry: int, active: Flags) -> SplitLoop:
    """The loop body split into a forward body that stacks residuals, and a linear one."""
    active, force = active_carries(jaxpr, num_consts, num_carry, active, lambda a: jaxprs.linearize(jaxpr, a).has)
    lin = jaxprs.linearize(jaxpr, active, force=force)
    fixed_count = len(lin.consts) + num_consts
    outer, inner = hoist(lin.forward, fixed_count)
    invariants = list(inner.invars[: fixed_count + len(outer.outvars)])
    _, x_in = cut(inner.invars[len(invariants) :], num_carry)
    ys = list(inner.outvars[num_carry : len(jaxpr.outvars)])
    inputs = lin.forward.invars[len(lin.consts) :]
    sources: list[tuple[str, Any]] = []
    fixed_r, stacked_r = [], []
    for (kind, k), v in zip(lin.sources, lin.tangent.invars, strict=False):
        var = None if kind == "const" else inputs[k] if kind == "in" else lin.forward.outvars[k]
        if var is None or var in invariants:  # the same in every turn: not stacked
            sources.append(("value", k) if var is None else ("fixed", invariants.index(var)))
            fixed_r.append(v)
            continue
        if var not in x_in and var not in ys:  # xs and ys are stacks already
            ys.append(var)
        sources.append(("x", x_in.index(var)) if var in x_in else ("y", ys.index(var)))
        stacked_r.append(v)
    inner = Jaxpr((), inner.invars, inner.eqns, (*inner.outvars[:num_carry], *ys), debug_name=jaxpr.debug_name)
    tangents = fill(active, lin.tangent.invars[len(sources) :])
    tc, tk, tx = map(present, cut(tangents, num_consts, num_carry))
    body = Jaxpr((), (*fixed_r, *tc, *tk, *stacked_r, *tx), lin.tangent.eqns, lin.tangent.outvars)
    return SplitLoop(lin, outer, inner, body, active, sources, len(fixed_r) + len(tc), len(tk))


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    turns = {"length": params["length"], "reverse": params["reverse"], "unroll": params["unroll"]}
    if d.tangent is d.parent:
        return _forward_mode(d, primals, tangents, jaxpr, num_consts, num_carry, turns)
    made = split_loop(jaxpr, num_consts, num_carry, given(tangents))
    current.trace = d.tape
    ts = _instantiated(d, primals, tangents, made.active)
    (c, k, x), (tc, tk, tx) = cut(primals, num_consts, num_carry), cut(ts, num_consts, num_carry)
    current.trace = d.parent
    fixed = [*made.lin.consts, *c]
    if made.outer.outvars:
        fixed += call(*fixed, jaxpr=made.outer, name="invariants")
    outs = scan_p(*fixed, *k, *x, jaxpr=made.inner, num_consts=len(fixed), num_carry=num_carry, **turns)
    pool = {"fixed": fixed, "x": x, "y": outs[num_carry:]}
    residuals = [r if kind == "value" else pool[kind][r] for kind, r in made.sources]
    stacked = [r for r, (kind, _) in zip(residuals, made.sources, strict=True) if kind in "xy"]
    once = [r for r, (kind, _) in zip(residuals, made.sources, strict=True) if kind not in "xy"]
    operands = [*once, *present(tc), *present(tk), *stacked, *present(tx)]
    linear = {"jaxpr": made.linear, "num_consts": made.num_consts, "num_carry": made.num_carry, **turns}
    out_tangents = d.tape.emit(scan_p, operands, _ordered(linear))
    return outs[: len(jaxpr.outvars)], fill(made.lin.has, out_tangents)


def _ordered(params: dict[str, Any]) -> dict[str, Any]:
    return {name: params[name] for name in ("jaxpr", "length", "num_consts", "num_carry", "reverse", "unroll")}


def _instantiated(d: ad.Differentiate, primals: Any, tangents: Any, active: Flags) -> list[Any]:
    """Tangents with zeros where the loop wants one that is absent; on the tape these are equations of its own."""
    filled = []
    for p, t, on in zip(primals, tangents, active, strict=True):
        if t is None and on:
            aval = avals.tangent(typeof(p))
            t = d.tape.zeros(aval) if d.tangent is not d.parent else ew.zeros(aval)
        filled.append(t)
    return filled


def _forward_mode(
    d: ad.Differentiate, primals: Any, tangents: Any, jaxpr: Jaxpr, num_consts: int, num_carry: int, turns: Any
) -> Any:
    made = fused_jvp(jaxpr, num_consts, num_carry, given(tangents))
    current.trace = d.parent
    ts = _instantiated(d, primals, tangents, made.active)
    parts = list(zip(cut(primals, num_consts, num_carry), map(present, cut(ts, num_consts, num_carry)), strict=True))
    live = len(parts[1][1])
    outs = scan_p(
        *made.consts,
        *flatten([p + t for p, t in parts]),
        **_ordered(
            {
                "jaxpr": made.jaxpr,
                "num_consts": len(made.consts) + num_consts + len(parts[0][1]),
                "num_carry": num_carry + live,
                **turns,
            }
        ),
    )
    k, tk, y, ty = cut(outs, num_carry, live, len(jaxpr.outvars) - num_carry)
    return k + y, fill(made.has, tk + ty)


class TransposedLoop(NamedTuple):
    """jaxpr: (consts, known invariants, sums, carry cotangents, known xs, y cotangents) -> (sums, carry, x)."""

    jaxpr: Jaxpr
    consts: list[Any]
    live: Flags
    x_live: Flags


@remembered
def transposed_loop(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, unknown: Flags, ct_carry: Flags, ct_ys: Flags
) -> TransposedLoop:
    """The body of the loop that runs backwards, for a body that is linear in the inputs `unknown`."""
    c, k, x = cut(list(zip(jaxpr.invars, unknown, strict=True)), num_consts, num_carry)
    known_c, lin_c = [v for v, on in c if not on], [v for v, on in c if on]
    known_x, lin_x = [v for v, on in x if not on], [v for v, on in x if on]
    carry = [v for v, _ in k]
    out_k, out_y = cut(jaxpr.outvars, num_carry)
    found: dict[Flags, tuple[Flags, Flags]] = {}
    made: dict[Flags, tuple[Jaxpr, list[Any]]] = {}

    def trace(live: Flags) -> Flags:
        def back(*args: Any) -> list[Any]:
            values_c, sums, cts, values_x, cts_y = cut(args, len(known_c), len(lin_c), sum(live), len(known_x))
            known = dict(zip([*known_c, *known_x], [*values_c, *values_x], strict=True))
            walked = ad.backward(
                jaxpr.eqns, [*lin_c, *carry, *lin_x], jaxpr.outvars, known, fill(live, cts) + fill(ct_ys, cts_y),
                dict(zip(lin_c, sums, strict=True)),
            )  # fmt: skip
            sums, cts, cts_x = cut(walked, len(lin_c), num_carry)
            found[live] = given(cts), given(cts_x)
            cts = [ew.zeros(v.aval) if ct is None else ct for v, ct, on in zip(carry, cts, live, strict=True) if on]
            return sums + cts + present(cts_x)

        inputs = known_c + lin_c + pick(out_k, live) + known_x + pick(out_y, ct_ys)
        jaxpr_, consts = stage(back, [v.aval for v in inputs], jaxpr.debug_name)
        made[live] = (close(jaxpr_), consts)
        return found[live][0]

    live = fixpoint(trace, ct_carry)
    return TransposedLoop(*made[live], live, found[live][1])


def _transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    unknown = [is_unknown(x) for x in operands]
    unknown[num_consts : num_consts + num_carry] = [True] * num_carry
    ct_carry, ct_ys = cut(cts, num_carry)
    back = transposed_loop(jaxpr, num_consts, num_carry, tuple(unknown), given(ct_carry), given(ct_ys))
    (c, k, x), (lc, _, lx) = cut(operands, num_consts, num_carry), cut(unknown, num_consts, num_carry)
    known_c = [a for a, on in zip(c, lc, strict=True) if not on]
    sums = [ew.zeros(a.aval) for a, on in zip(c, lc, strict=True) if on]
    outs_k = jaxpr.outvars[:num_carry]
    start = [
        ew.zeros(v.aval) if ct is None else ct for v, ct, on in zip(outs_k, ct_carry, back.live, strict=True) if on
    ]
    outs = scan_p(
        *back.consts, *known_c, *sums, *start, *[a for a, on in zip(x, lx, strict=True) if not on], *present(ct_ys),
        **_ordered({
            **params,
            "jaxpr": back.jaxpr,
            "num_consts": len(back.consts) + len(known_c),
            "num_carry": len(sums) + len(start),
            "reverse": not params["reverse"],
        }),
    )  # fmt: skip
    sums, cts_k, cts_x = cut(outs, len(sums), len(start))
    carries = [ct if is_unknown(a) else None for ct, a in zip(fill(back.live, cts_k), k, strict=True)]
    return fill(lc, sums) + carries + fill(lx, fill(back.x_live, cts_x))


# ---- batching --------------------------------------------------------------------------------------------------------


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    size = trace.size
    names = (trace.axis_name, trace.spmd_axis_name)
    active, force = active_carries(
        jaxpr, num_consts, num_carry, tuple(flags), lambda f: jaxprs.batch(jaxpr, size, f, *names).has
    )
    made = jaxprs.batch(jaxpr, size, active, *names, force=force)
    c, k, x = cut(list(zip(operands, flags, active, strict=True)), num_consts, num_carry)
    carry = [batching.batched(v, size) if on and not f else v for v, f, on in k]
    xs = [structure.move_axis(v, 0, 1) if f else v for v, f, _ in x]  # (example, turn, ...) to (turn, example, ...)
    outs = scan_p(
        *made.consts, *[v for v, _, _ in c], *carry, *xs,
        **{**params, "jaxpr": made.jaxpr, "num_consts": num_consts + len(made.consts)},
    )  # fmt: skip
    carry, ys = cut(outs, num_carry)
    ys = [structure.move_axis(y, 0, 1) if f else y for y, f in zip(ys, made.has[num_carry:], strict=True)]
    return carry + ys, made.has


def lane_by_lane(prim: Primitive, size: int, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> list[Any]:
    """A carrier applied to each example of a batch in turn: its effects then fire only where they should."""
    shared = [x for x, f in zip(operands, flags, strict=True) if not f]
    rows = [x for x, f in zip(operands, flags, strict=True) if f]

    def lane(*values: Any) -> list[Any]:
        constant, row = iter(values[: len(shared)]), iter(values[len(shared) :])
        return prim(*[next(row) if f else next(constant) for f in flags], **params)

    types = [typeof(x) for x in shared] + [avals.ShapedArray(typeof(x).shape[1:], typeof(x).dtype) for x in rows]
    jaxpr, consts = stage(lane, types, prim.name)
    return scan_p(
        *consts, *shared, *rows,
        **_ordered({
            "jaxpr": close(jaxpr), "num_consts": len(consts) + len(shared), "num_carry": 0, "length": size,
            "reverse": False, "unroll": 1,
        }),
    )  # fmt: skip


def _prune(eqn: Eqn, used: tuple[bool, ...]) -> Eqn | None:
    """Keep the carries that are used, or that a kept carry or output needs."""
    params = eqn.params
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    ys = used[num_carry:]
    kept = fixpoint(lambda k: prune(jaxpr, (*k, *ys))[1][num_consts : num_consts + num_carry], tuple(used[:num_carry]))
    outs = (*kept, *ys)
    pruned, flags = prune(jaxpr, outs)
    c, _, x = cut(flags, num_consts, num_carry)
    flags = (*c, *kept, *x)
    body = Jaxpr((), pick(jaxpr.invars, flags), pruned.eqns, pick(jaxpr.outvars, outs), join_effects(pruned.eqns))
    return eqn.replace(
        params={**params, "jaxpr": body, "num_consts": sum(c), "num_carry": sum(kept)},
        invars=pick(eqn.invars, flags),
        outvars=pick(eqn.outvars, outs),
    )


scan_p = Primitive(
    "scan",
    type=_type,
    lower=_lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    prune=_prune,
    multiple=True,
    carrier=True,
    effects=lambda params: params["jaxpr"].effects,
)
