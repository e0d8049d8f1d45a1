"""The transforms over jaxprs: each replays the equations under a trace, with a Stage as parent, and is remembered in
the jaxpr. All take and give jaxprs without constants (see `trace.close`), and return the values of those that replay
brought in as `consts`, to be passed first.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from morphax.ir import avals
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.trace import Stage, StageTracer, close, run_under, stage
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad


def _remembered(build: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(build)
    def derived(jaxpr: Jaxpr, *key: Any) -> Any:
        full = (build.__name__, *key)
        found = jaxpr.memo.get(full)
        if found is None:
            found = jaxpr.memo[full] = build(jaxpr, *key)
        return found

    return derived


def _reusing(build: Callable[..., Any]) -> Callable[..., Any]:
    """For passes whose last argument forces results to have a tangent or a batch axis: where the free result has those
    already, it is the answer. Loops ask first which there are, so this halves their time."""

    @wraps(build)
    def reuse(jaxpr: Jaxpr, *key: Any, force: tuple[bool, ...] = ()) -> Any:
        free = build(jaxpr, *key, ())
        if all(has or not forced for has, forced in zip(free.has, force, strict=False)):
            return free
        return build(jaxpr, *key, force)

    return reuse


class Jvp(NamedTuple):
    """jaxpr: (consts, primals, active tangents) -> (results, tangents where `has`)."""

    jaxpr: Jaxpr
    consts: list[Any]
    has: tuple[bool, ...]


@_reusing
@_remembered
def jvp(jaxpr: Jaxpr, active: tuple[bool, ...], force: tuple[bool, ...]) -> Jvp:
    """Forward mode of a jaxpr, for tangents of the inputs in `active`. Results in `force` get a tangent, be it zero."""
    has: tuple[bool, ...] = ()

    def forward(*args: Any) -> list[Any]:
        nonlocal has
        primals, given = args[: len(active)], iter(args[len(active) :])
        tangents = [next(given) if on else None for on in active]
        outs, out_tangents = ad.jvp(lambda *xs: evaluate(jaxpr, (), xs), primals, tangents)
        for k, forced in enumerate(force):
            if forced and out_tangents[k] is None:
                out_tangents[k] = ew.zeros(avals.tangent(typeof(outs[k])))
        has = tuple([t is not None for t in out_tangents])
        return outs + [t for t in out_tangents if t is not None]

    types = jaxpr.in_avals + tuple([avals.tangent(a) for a, on in zip(jaxpr.in_avals, active, strict=True) if on])
    made, consts = stage(forward, types, jaxpr.debug_name)
    return Jvp(close(made), consts, has)


class Linearized(NamedTuple):
    """forward: (consts, primals) -> (results, residuals that it computes). tangent: (residuals, tangents) -> tangents
    where `has`. Each residual's source is ("in", k), ("const", value) or ("out", k) of forward, so that what the
    caller has already is not computed, returned or stacked again."""

    forward: Jaxpr
    consts: list[Any]
    tangent: Jaxpr
    has: tuple[bool, ...]
    sources: list[tuple[str, Any]]


@_reusing
@_remembered
def linearize(jaxpr: Jaxpr, active: tuple[bool, ...], force: tuple[bool, ...]) -> Linearized:
    """A jaxpr as one that computes results and residuals, and a linear one that takes residuals and tangents."""
    trace = Stage(jaxpr.debug_name)
    primals = [trace.input(a) for a in jaxpr.in_avals]

    def forward() -> tuple[list[Any], list[Any], ad.Tape]:
        return ad.linearize(lambda *xs: evaluate(jaxpr, (), xs), primals, active)

    outs, tangents, tape = run_under(trace, forward)
    for k, forced in enumerate(force):
        if forced and tangents[k] is None:
            # An equation of the tape: made on the parent, the zeros would be a residual, and loops would stack them.
            tangents[k] = tape.zeros(avals.tangent(typeof(outs[k])))
    has = tuple([t is not None for t in tangents])
    linear, residuals = tape.finish([t for t in tangents if t is not None])
    inputs = {v: k for k, v in enumerate(trace.inputs)}
    results = list(outs)
    places = {x.variable: k for k, x in enumerate(outs) if x.__class__ is StageTracer and x.owner is trace}
    sources: list[tuple[str, Any]] = []
    for r in residuals:
        if r.__class__ is not StageTracer or r.owner is not trace:
            sources.append(("const", r))
        elif r.variable in inputs:
            sources.append(("in", inputs[r.variable]))
        else:
            if r.variable not in places:
                places[r.variable] = len(results)
                results.append(r)
            sources.append(("out", places[r.variable]))
    made, consts = trace.finish(results)
    return Linearized(close(made), consts, close(linear), has, sources)


def residuals_of(linearized: Linearized, args: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The residuals for the tangent jaxpr, from the operands and results of the forward one."""
    places = {"in": args, "out": results}
    return [what if kind == "const" else places[kind][what] for kind, what in linearized.sources]


class Transposed(NamedTuple):
    """jaxpr: (consts, known inputs, present cotangents) -> cotangents of the unknown inputs where `live`."""

    jaxpr: Jaxpr
    consts: list[Any]
    live: tuple[bool, ...]


def transpose(
    jaxpr: Jaxpr, unknown: tuple[bool, ...], has: tuple[bool, ...], force: tuple[bool, ...] = ()
) -> Transposed:
    """Transpose of a jaxpr that is linear in the inputs `unknown`, for the cotangents in `has`; the unknown inputs in
    `force` get one, be it zero."""
    free = _transpose(jaxpr, unknown, has, ())
    if all(live or not forced for live, forced in zip(free.live, force, strict=False)):
        return free
    return _transpose(jaxpr, unknown, has, force)


@_remembered
def _transpose(jaxpr: Jaxpr, unknown: tuple[bool, ...], has: tuple[bool, ...], force: tuple[bool, ...]) -> Transposed:
    live: tuple[bool, ...] = ()
    known_vars = [v for v, u in zip(jaxpr.invars, unknown, strict=True) if not u]

    def walk(*args: Any) -> list[Any]:
        nonlocal live
        known = dict(zip(known_vars, args, strict=False))
        given = iter(args[len(known_vars) :])
        cts = ad.transpose(jaxpr, known, [next(given) if h else None for h in has])
        cts = [ct for ct, u in zip(cts, unknown, strict=True) if u]
        if force:
            targets = [v.aval for v, u in zip(jaxpr.invars, unknown, strict=True) if u]
            rows = zip(cts, force, targets, strict=True)
            cts = [ew.zeros(a) if ct is None and forced else ct for ct, forced, a in rows]
        live = tuple([ct is not None for ct in cts])
        return [ct for ct in cts if ct is not None]

    types = [v.aval for v in known_vars] + [a for a, h in zip(jaxpr.out_avals, has, strict=True) if h]
    made, consts = stage(walk, types, jaxpr.debug_name)
    return Transposed(close(made), consts, live)


class Batched(NamedTuple):
    """jaxpr: (consts, operands, those of `flags` with a batch axis in front) -> results, batched where `has`."""

    jaxpr: Jaxpr
    consts: list[Any]
    has: tuple[bool, ...]


@_reusing
@_remembered
def batch(
    jaxpr: Jaxpr, size: int, flags: tuple[bool, ...], axis_name: Any, spmd_axis_name: Any, force: tuple[bool, ...]
) -> Batched:
    """A jaxpr over a batch; results in `force` get a batch axis even where they are equal for all examples."""
    has: tuple[bool, ...] = ()

    def over_batch(*args: Any) -> list[Any]:
        nonlocal has
        outs, mine = batching.batch(lambda *xs: evaluate(jaxpr, (), xs), args, flags, size, axis_name, spmd_axis_name)
        for k, forced in enumerate(force):
            if forced and not mine[k]:
                outs[k], mine[k] = batching.batched(outs[k], size), True
        has = tuple(mine)
        return outs

    types = [
        avals.ShapedArray((size, *a.shape), a.dtype, a.weak_type, None, a.varying) if flag else a
        for a, flag in zip(jaxpr.in_avals, flags, strict=True)
    ]
    made, consts = stage(over_batch, types, jaxpr.debug_name)
    return Batched(close(made), consts, has)
