"""Loops of unknown length: x_{k+1} = f(w, x_k) while test(v, x_k).

Forward mode is the loop on (x, dx), tested on x. Reverse mode, dx*_k = J(x_k)^T dx*_{k+1}, needs the states in
falling order. The forward loop keeps nothing but x_0 and the number of turns n. The sweep back keeps `SLOTS` states and
computes the others again from the highest one: with s slots and at most r evaluations of a step it reverses C(s + r, s)
steps (Griewank & Walther, Algorithm 799: revolve, ACM Transactions on Mathematical Software 26, 2000). It is itself
made of while loops, so that n need not be known.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control.call import call
from morphax.control.parts import Flags, cut, fill, given, present, remembered, with_axis
from morphax.control.scan import active_carries, fused_jvp, lane_by_lane
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import Primitive, Var, is_unknown
from morphax.ir.trace import close, stage
from morphax.ops import elementwise as ew
from morphax.ops import indexing, reduce, structure
from morphax.ops.family import scalar, typeof
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs

SLOTS = 16
_INT = avals.ShapedArray((), np.dtype("int32"))


def _int(value: int) -> Any:
    return scalar(value, _INT.dtype)


def _type(*operands: Any, body_jaxpr: Jaxpr, body_nconsts: int, cond_jaxpr: Jaxpr, cond_nconsts: int) -> Any:
    return body_jaxpr.out_avals


def _lower(low: Any, ins: Any, outs: Any, *operands: Any, body_jaxpr: Jaxpr, body_nconsts: int, cond_jaxpr: Jaxpr,
           cond_nconsts: int) -> Any:  # fmt: skip
    cond_consts, body_consts, carry = cut(operands, cond_nconsts, body_nconsts)
    types = ins[cond_nconsts + body_nconsts :]

    def test(*state: Any) -> Any:
        return low.equations(cond_jaxpr, [*cond_consts, *state])

    def body(*state: Any) -> Any:
        return low.equations(body_jaxpr, [*body_consts, *state])

    return low.op("stablehlo.while", types, carry, regions=((types, test), (types, body)))


def flat_while(test: Callable[..., Any], body: Callable[..., Any], init: Sequence[Any]) -> list[Any]:
    """The loop over a flat list of values: `test(*state)` is a scalar bool, `body(*state)` a list."""
    types = [avals.strengthen(typeof(x)) for x in init]
    test_jaxpr, test_consts = stage(lambda *s: [test(*s)], types)
    body_jaxpr, body_consts = stage(body, types)
    return while_p(
        *test_consts,
        *body_consts,
        *init,
        body_jaxpr=close(body_jaxpr),
        body_nconsts=len(body_consts),
        cond_jaxpr=close(test_jaxpr),
        cond_nconsts=len(test_consts),
    )


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _with_spare_inputs(test: Jaxpr, count: int, body: Jaxpr, live: Flags) -> Jaxpr:
    """The test of the loop on values and tangents: it reads the values alone."""
    del body
    own, values = cut(test.invars, count)
    tangents = [Var(avals.tangent(v.aval)) for v, on in zip(values, live, strict=True) if on]
    return Jaxpr((), (*own, *values, *tangents), test.eqns, test.outvars, test.effects)


def _fused(params: dict[str, Any], primals: Sequence[Any], tangents: Sequence[Any], active: Flags) -> list[Any]:
    """The loop on values and tangents: results, then the tangents of the live ones."""
    body, cond_count, body_count = params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
    made = fused_jvp(body, body_count, len(body.outvars), active)
    cond_consts, consts, carry = cut(primals, cond_count, body_count)
    t_consts, t_carry = cut(tangents, body_count)
    live = made.active[body_count:]
    return while_p(
        *cond_consts,
        *made.consts,
        *consts,
        *present(t_consts),
        *carry,
        *present(t_carry),
        body_jaxpr=made.jaxpr,
        body_nconsts=len(made.consts) + body_count + len(present(t_consts)),
        cond_jaxpr=_with_spare_inputs(params["cond_jaxpr"], cond_count, body, live),
        cond_nconsts=cond_count,
    )


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    body, cond_count, body_count = params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
    count = len(body.outvars)
    made = fused_jvp(body, body_count, count, given(tangents[cond_count:]))
    live = made.active[body_count:]
    reverse = d.tangent is not d.parent
    current.trace = d.parent
    filled = []
    for p, t, on in zip(primals[cond_count:], tangents[cond_count:], made.active, strict=True):
        if t is None and on:
            t = d.tape.zeros(avals.tangent(typeof(p))) if reverse else ew.zeros(avals.tangent(typeof(p)))
        filled.append(t)
    if not reverse:
        outs = _fused(params, primals, filled, made.active)
        return outs[:count], fill(live, outs[count:])
    *outs, turns = call(*primals, jaxpr=_counted(body, _Others(params)), name="while")
    operands = [*primals, turns, *present(filled)]
    emitted = d.tape.emit(while_linear_p, operands, {**params, "active": made.active})
    return outs, fill(live, emitted)


class _Others:
    """The parameters of a loop besides its body, as a key."""

    __slots__ = ("params",)

    def __init__(self, params: dict[str, Any]):
        self.params = params

    def _key(self) -> tuple:
        return tuple([(k, v) for k, v in self.params.items() if k != "body_jaxpr"])

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Others) and self._key() == other._key()


@remembered
def _counted(body: Jaxpr, others: _Others) -> Jaxpr:
    """The loop with the number of its turns as one more result."""
    params = others.params
    cond_count, body_count = params["cond_nconsts"], params["body_nconsts"]

    def run(*operands: Any) -> list[Any]:
        cond_consts, consts, carry = cut(operands, cond_count, body_count)
        return flat_while(
            lambda *s: evaluate(params["cond_jaxpr"], (), [*cond_consts, *s[:-1]])[0],
            lambda *s: [*evaluate(body, (), [*consts, *s[:-1]]), ew.add(s[-1], _int(1))],
            [*carry, _int(0)],
        )

    types = (*params["cond_jaxpr"].in_avals[:cond_count], *body.in_avals)
    return close(stage(run, types, "while")[0])


# The tangent of the loop as one linear equation: (operands, turns, tangents) -> tangents of the live results. Forwards
# it is the loop on values and tangents; its transpose is the sweep.


def _linear_type(*operands: Any, active: Flags, **params: Any) -> Any:
    body, body_count = params["body_jaxpr"], params["body_nconsts"]
    live = active[body_count:]
    return tuple([avals.tangent(a) for a, on in zip(body.out_avals, live, strict=True) if on])


@remembered
def _tangent_program(body: Jaxpr, others: _Others, active: Flags) -> Jaxpr:
    params = others.params
    cond_types = params["cond_jaxpr"].in_avals[: params["cond_nconsts"]]
    primal_types = (*cond_types, *body.in_avals)
    tangent_types = [avals.tangent(a) for a, on in zip(body.in_avals, active, strict=True) if on]

    def run(*operands: Any) -> list[Any]:
        primals, _, given_ = cut(operands, len(primal_types), 1)
        outs = _fused({**params, "body_jaxpr": body}, primals, fill(active, given_), active)
        return outs[len(body.outvars) :]

    return close(stage(run, (*primal_types, _INT, *tangent_types), "while")[0])


def _program_of(params: dict[str, Any]) -> Jaxpr:
    others = {k: v for k, v in params.items() if k != "active"}
    return _tangent_program(params["body_jaxpr"], _Others(others), params["active"])


def _linear_transpose(cts: Sequence[Any], *operands: Any, active: Flags, **params: Any) -> Any:
    body, cond_count = params["body_jaxpr"], params["cond_nconsts"]
    residual_count = cond_count + len(body.invars) + 1
    residuals, unknown = cut(operands, residual_count)
    types = _linear_type(active=active, **params)
    filled = [ew.zeros(a) if ct is None else ct for ct, a in zip(cts, types, strict=True)]
    back, consts = _sweep_program(body, params["body_nconsts"], active)
    outs = call(*consts, *residuals[cond_count:], *filled, jaxpr=back, name="while_backward")
    return [None] * residual_count + [ct if is_unknown(x) else None for ct, x in zip(outs, unknown, strict=True)]


def _linear_linearize(d: ad.Differentiate, primals: Any, tangents: Any, params: dict[str, Any]) -> Any:
    return call.linearize(d, primals, tangents, {"jaxpr": _program_of(params), "name": "while"})


def _linear_batch(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    return call.batch(trace, call, operands, flags, {"jaxpr": _program_of(params), "name": "while"})


# ---- the sweep back --------------------------------------------------------------------------------------------------


def _row(x: Any, i: Any) -> Any:
    shape = typeof(x).shape
    zero = _int(0)
    block = indexing.dynamic_slice(x, i, *[zero] * (len(shape) - 1), slice_sizes=(1, *shape[1:]))
    return structure.reshape_to(block, shape[1:])


def _set_row(x: Any, row: Any, i: Any) -> Any:
    shape = typeof(x).shape
    block = structure.reshape_to(row, (1, *shape[1:]))
    return indexing.dynamic_update_slice(x, block, i, *[_int(0)] * (len(shape) - 1))


def _where(test: Any, yes: Any, no: Any) -> Any:
    return ew.select_n(test, no, yes)


def _next_stop(pos: Any, t: Any, free: Any) -> Any:
    """Where to store the next state, or `t` to reverse there: t - pos + 1 steps remain, s = free + 1 slots are at hand.

    r is the smallest number with C(s + r, s) >= the steps; splitting these in the ratio r : s keeps both parts within
    their bound.
    """
    remaining = ew.add(ew.sub(t, pos), _int(1))
    s = ew.add(free, _int(1))
    goal = _where(ew.lt(_int(0), free), remaining, _int(0))

    def more(r: Any, reached: Any) -> list[Any]:
        r = ew.add(r, _int(1))
        # Capped, since the product would pass 2^31 for long loops.
        grown = ew.div(ew.mul(ew.min(reached, _int(1 << 20)), ew.add(s, r)), r)
        return [r, grown]

    r, _ = flat_while(lambda r, reached: ew.and_(ew.lt(reached, goal), ew.lt(r, _int(64))), more, [_int(0), _int(1)])
    # remaining * r / (s + r), in two steps so that it stays below 2^31.
    whole = ew.mul(ew.div(remaining, ew.add(s, r)), r)
    rest = ew.mul(ew.rem(remaining, ew.add(s, r)), r)
    split = ew.add(whole, ew.div(ew.add(rest, ew.sub(ew.add(s, r), _int(1))), ew.add(s, r)))
    ahead = _where(ew.lt(_int(0), free), ew.max(split, _int(1)), ew.sub(remaining, _int(1)))
    return ew.min(ew.add(pos, ahead), t)


@remembered
def _sweep_program(body: Jaxpr, body_count: int, active: Flags) -> tuple[Jaxpr, list[Any]]:
    """(body constants, x_0, turns, cotangents) -> cotangents of the active constants and carries."""
    live_consts, live = cut(active, body_count)
    count = len(body.outvars)
    split = jaxprs.linearize(body, active, force=tuple(live))

    def pull(consts: list[Any], x: list[Any], sums: list[Any], cts: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = evaluate(split.forward, (), [*split.consts, *consts, *x])
        residuals = jaxprs.residuals_of(split, [*consts, *x], outs)
        known = dict(zip(split.tangent.invars, residuals, strict=False))
        walked = ad.transpose(split.tangent, known, cts)[len(residuals) :]
        new_sums, new_cts = cut(walked, len(sums))
        new_cts = [ew.zeros(typeof(ct)) if t is None else t for t, ct in zip(new_cts, cts, strict=True)]
        return [ad.accumulate(s, t) for s, t in zip(sums, new_sums, strict=True)], new_cts

    def run(*operands: Any) -> list[Any]:
        consts, x0, (turns,), cts = cut(operands, body_count, count, 1)
        sums = [ew.zeros(avals.tangent(typeof(v))) for v, on in zip(consts, live_consts, strict=True) if on]
        step = lambda x: evaluate(body, (), [*consts, *x])  # noqa: E731 - the body with its constants
        return _sweep(step, lambda x, s, c: pull(consts, x, s, c), x0, turns, sums, cts)

    ct_types = [avals.tangent(a) for a, on in zip(body.out_avals, live, strict=True) if on]
    made, consts = stage(run, (*body.in_avals, _INT, *ct_types), "while_backward")
    return close(made), consts


def _sweep(step: Any, pull: Any, x0: list[Any], turns: Any, sums: list[Any], cts: list[Any]) -> list[Any]:
    """`sums` and `cts` pulled through `turns` steps from `x0`.

    One pass reverses one step: climb from the highest stored state to state t, storing on the way. A row more than
    there are slots takes the writes that are not wanted; a cond in its place would copy the stacks in every pass.
    """
    k, n = len(x0), len(sums)
    stacks = [_set_row(ew.zeros(with_axis(SLOTS + 1, avals.strengthen(typeof(x)))), x, _int(0)) for x in x0]

    def turn(*state: Any) -> list[Any]:
        (t, depth, places), stacks, sums, cts = cut(state, 3, k, n)

        def climb(*climber: Any) -> list[Any]:
            (pos, depth, places), stacks, x = cut(climber, 3, k)
            stop = _next_stop(pos, t, ew.sub(_int(SLOTS), depth))
            _, *x = flat_while(lambda p, *_: ew.lt(p, stop), lambda p, *x: [ew.add(p, _int(1)), *step(x)], [pos, *x])
            stacks = [_set_row(s, v, depth) for s, v in zip(stacks, x, strict=True)]
            places = _set_row(places, stop, depth)
            depth = _where(ew.lt(stop, t), ew.add(depth, _int(1)), depth)
            return [stop, depth, places, *stacks, *x]

        top = ew.sub(depth, _int(1))
        start = [_row(places, top), depth, places, *stacks, *[_row(s, top) for s in stacks]]
        climbed = flat_while(lambda p, *_: ew.lt(p, t), climb, start)
        (_, depth, places), stacks, x = cut(climbed, 3, k)
        top = ew.sub(depth, _int(1))
        depth = _where(ew.lt(_row(places, top), t), depth, top)
        sums, cts = pull(x, sums, cts)
        return [ew.sub(t, _int(1)), depth, places, *stacks, *sums, *cts]

    places = ew.zeros(avals.ShapedArray((SLOTS + 1,), _INT.dtype))
    start = [ew.sub(turns, _int(1)), _int(1), places, *stacks, *sums, *cts]
    return flat_while(lambda t, *_: ew.le(_int(0), t), turn, start)[3 + k :]


# ---- batching --------------------------------------------------------------------------------------------------------


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: dict[str, Any]) -> Any:
    body, cond_count, body_count = params["body_jaxpr"], params["cond_nconsts"], params["body_nconsts"]
    test, count, size = params["cond_jaxpr"], len(params["body_jaxpr"].outvars), trace.size
    if body.effects or test.effects:
        outs = lane_by_lane(prim, size, operands, flags, params)
        return outs, [True] * len(outs)
    names = (trace.axis_name, trace.spmd_axis_name)
    cond_flags = tuple(flags[:cond_count])

    def activity(f: Flags) -> Flags:
        differs = jaxprs.batch(test, size, (*cond_flags, *f[body_count:]), *names).has[0]
        has = jaxprs.batch(body, size, f, *names).has
        return tuple([differs or h for h in has])  # where examples stop at different times every carry is selected

    active, force = active_carries(body, body_count, count, tuple(flags[cond_count:]), activity)
    made_test = jaxprs.batch(test, size, (*cond_flags, *active[body_count:]), *names)
    made = jaxprs.batch(body, size, active, *names, force=force)
    cond_consts, consts, carry = cut(operands, cond_count, body_count)
    carry_flags = flags[cond_count + body_count :]
    live = active[body_count:]
    carry = [
        batching.batched(x, size) if on and not f else x for x, f, on in zip(carry, carry_flags, live, strict=True)
    ]

    def going(state: Sequence[Any]) -> Any:
        return evaluate(made_test.jaxpr, (), [*made_test.consts, *cond_consts, *state])[0]

    def turn(*state: Any) -> list[Any]:
        new = evaluate(made.jaxpr, (), [*made.consts, *consts, *state])
        if not made_test.has[0]:
            return new
        on = going(state)
        return [_where(_spread(on, typeof(a).shape), a, b) for a, b in zip(new, state, strict=True)]

    def test_all(*state: Any) -> Any:
        on = going(state)
        return reduce.reduce_or(on, axes=(0,)) if made_test.has[0] else on

    return flat_while(test_all, turn, carry), live


def _spread(test: Any, shape: tuple[int, ...]) -> Any:
    if len(shape) <= 1:
        return test
    return ew.broadcast_in_dim(test, shape=shape, broadcast_dimensions=(0,), sharding=None)


while_p = Primitive(
    "while",
    type=_type,
    lower=_lower,
    linearize=_linearize,
    batch=_batch,
    multiple=True,
    carrier=True,
    effects=lambda params: params["body_jaxpr"].effects | params["cond_jaxpr"].effects,
)

while_linear_p = Primitive(
    "while_tangent",
    type=_linear_type,
    lower=lambda low, ins, outs, *operands, **params: low.equations(_program_of(params), operands),
    linearize=_linear_linearize,
    transpose=_linear_transpose,
    batch=_linear_batch,
    multiple=True,
    carrier=True,
)
