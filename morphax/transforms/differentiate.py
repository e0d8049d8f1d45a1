"""Automatic differentiation: one forward pass, and a walk backwards.

`Differentiate(parent, tangent)` sends each primal operation to `parent` and its derivative to `tangent`. With
`tangent = parent` that is forward mode; with `tangent = Tape(parent)` the tangent program is recorded, and `backward`
walks it with the transpose rules, which is reverse mode.
"""

from collections.abc import Callable, Sequence
from typing import Any

from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, Literal, Var
from morphax.ir.primitive import ALL, ONE, Primitive
from morphax.ir.trace import Stage, StageTracer, Trace, Tracer, check_leaks, run_under
from morphax.ops import collectives
from morphax.ops import elementwise as ew
from morphax.ops.family import not_linear, scalar, typeof
from morphax.support import config, dtypes

is_inexact = dtypes.is_inexact


class Tape(Stage):
    """Records only what depends on one of its own values; everything else goes to `parent`."""

    __slots__ = ()
    records = False

    def __init__(self, parent: Trace, name: str = ""):
        super().__init__(name)
        self.parent = parent

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        for a in args:
            if a.__class__ is StageTracer and a.owner is self:
                if prim.carrier:
                    return self._split(prim, args, params)
                return self.emit(prim, args, params)
        before = current.trace
        current.trace = self.parent
        try:
            return self.parent.apply(prim, args, params)
        finally:
            current.trace = before

    def emit(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[StageTracer]:
        """Record the equation as it is: for finished linear equations."""
        ins = [a.variable if a.__class__ is StageTracer and a.owner is self else self.atom(a) for a in args]
        types = prim.types(tuple([v.aval for v in ins]), params)
        return [StageTracer(self, v) for v in self.record(prim, ins, params, types)]

    def zeros(self, aval: ShapedArray) -> StageTracer:
        """Zeros as a value of the tape."""
        params = {"shape": aval.shape, "broadcast_dimensions": (), "sharding": None}
        return self.emit(ew.broadcast_in_dim, [scalar(0, aval.dtype)], params)[0]

    def _split(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        # A linear map is its own derivative: a carrier called by a derivative rule with a tangent beside known values
        # is linearized at zero, which separates what depends on known values alone.
        on_tape = [a.__class__ is StageTracer and a.owner is self for a in args]
        before = current.trace
        current.trace = self.parent
        try:
            primals = [ew.zeros(a.aval) if on else a for a, on in zip(args, on_tape, strict=True)]
            tangents = [a if on else None for a, on in zip(args, on_tape, strict=True)]
            outs, out_tangents = prim.linearize(Differentiate(self.parent, self), primals, tangents, params)
        finally:
            current.trace = before
        return [out if t is None else t for out, t in zip(outs, out_tangents, strict=True)]


class DualTracer(Tracer):
    """A primal value with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: "Differentiate", primal: Any, tangent: Any):
        self.owner = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = typeof(primal)

    def known(self) -> Any:
        return self.primal


Rule = Callable[["Differentiate", Primitive, list[Any], list[Any], dict[str, Any]], tuple[list[Any], list[Any]]]


class Differentiate(Trace):
    """Sends primal operations to `parent` and tangent operations to `tangent`."""

    __slots__ = ("tangent",)

    def __init__(self, parent: Trace, tangent: Trace):
        self.parent = parent
        self.tangent = tangent
        self.done = False

    @property
    def tape(self) -> Tape:
        """The tape that tangent operations go to, in reverse mode."""
        assert isinstance(self.tangent, Tape), self.tangent
        return self.tangent

    def split(self, x: Any) -> tuple[Any, Any]:
        """Primal and tangent of a value; no tangent (None) where it is constant."""
        if x.__class__ is DualTracer and x.owner is self:
            return x.primal, x.tangent
        return x, None

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        primals: list[Any] = []
        tangents: list[Any] = []
        active = False
        for a in args:
            if a.__class__ is DualTracer and a.owner is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
                active = True
            else:
                primals.append(a)
                tangents.append(None)
        before = current.trace
        current.trace = self.parent
        try:
            if not active:
                return self.parent.apply(prim, primals, params)
            outs, out_tangents = _RULES[prim.story](self, prim, primals, tangents, params)
        finally:
            current.trace = before
        return [o if t is None else DualTracer(self, o, t) for o, t in zip(outs, out_tangents, strict=True)]


# ---- one rule for each derivative story ------------------------------------------------------------------------------
# Each is entered with `parent` current and may leave any trace current: `apply` restores the one before.


def _match(trace: Differentiate, tangent: Any, aval: ShapedArray) -> Any:
    """A tangent of the shape of the result: that of a scalar operand may still have to be broadcast."""
    if typeof(tangent).shape != aval.shape:
        current.trace = trace.tangent
        return ew.full(aval.shape, tangent)
    return tangent


def _by_partials(d: Differentiate, prim: Primitive, primals: Any, tangents: Any, params: Any) -> Any:
    out = d.parent.apply(prim, primals, params)[0]
    aval = typeof(out)
    if not is_inexact(aval.dtype):
        return (out,), (None,)
    total = None
    tangent_trace = d.tangent
    for t, partial in zip(tangents, prim.partials, strict=True):
        if t is None or partial is None:
            continue
        if partial is not ONE:
            current.trace = d.parent
            k = partial(out, *primals, **params)
            current.trace = tangent_trace
            t = tangent_trace.apply(ew.mul, (t, k), {})[0]
        t = _match(d, t, aval)
        if total is None:
            total = t
        else:
            current.trace = tangent_trace
            total = tangent_trace.apply(ew.add, (total, t), {})[0]
    return (out,), (total,)


def _by_linear(d: Differentiate, prim: Primitive, primals: Any, tangents: Any, params: Any) -> Any:
    outs = d.parent.apply(prim, primals, params)
    if prim.linear == ALL:
        positions: Sequence[int] = range(len(primals))
    else:
        positions = prim.linear
    if all(tangents[i] is None for i in positions):
        return outs, [None] * len(outs)
    operands = list(primals)
    current.trace = d.tangent
    for i in positions:
        t = tangents[i]
        operands[i] = ew.zeros(typeof(primals[i])) if t is None else t
    out_tangents = d.tangent.apply(prim, operands, params)
    return outs, [t if is_inexact(typeof(o).dtype) else None for o, t in zip(outs, out_tangents, strict=True)]


def _by_bilinear(d: Differentiate, prim: Primitive, primals: Any, tangents: Any, params: Any) -> Any:
    outs = d.parent.apply(prim, primals, params)
    current.trace = d.tangent
    totals: list[Any] = [None] * len(outs)
    for i in prim.bilinear:
        if tangents[i] is None:
            continue
        operands = list(primals)
        operands[i] = tangents[i]
        terms = d.tangent.apply(prim, operands, params)
        totals = [term if total is None else ew.add(total, term) for total, term in zip(totals, terms, strict=True)]
    return outs, [t if is_inexact(typeof(o).dtype) else None for o, t in zip(outs, totals, strict=True)]


def _by_jvp(d: Differentiate, prim: Primitive, primals: Any, tangents: Any, params: Any) -> Any:
    current.trace = d.tangent
    outs, out_tangents = prim.jvp(primals, tangents, **params)
    return (outs, out_tangents) if prim.multiple else ((outs,), (out_tangents,))


def _by_linearize(d: Differentiate, prim: Primitive, primals: Any, tangents: Any, params: Any) -> Any:
    return prim.linearize(d, primals, tangents, params)


def _no_derivative(d: Differentiate, prim: Primitive, primals: Any, tangents: Any, params: Any) -> Any:
    outs = d.parent.apply(prim, primals, params)
    return outs, [None] * len(outs)


_RULES: dict[str, Rule] = {
    "partials": _by_partials,
    "linear": _by_linear,
    "bilinear": _by_bilinear,
    "jvp": _by_jvp,
    "linearize": _by_linearize,
    "nondiff": _no_derivative,
}


# ---- flat functions: sequences of arrays in and out ------------------------------------------------------------------

FlatFun = Callable[..., Sequence[Any]]


def jvp(fun: FlatFun, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Results of `fun` and their tangents; a tangent that is None means constant, in and out."""
    parent = current.trace
    d = Differentiate(parent, parent)
    duals = [x if t is None else DualTracer(d, x, t) for x, t in zip(primals, tangents, strict=True)]
    try:
        outs = run_under(d, fun, *duals)
        split = [d.split(o) for o in outs]
    finally:
        d.done = True
    if config.check_tracer_leaks.value:
        del duals, outs
        check_leaks(d)
    return [p for p, _ in split], [t for _, t in split]


def linearize(fun: FlatFun, primals: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any], Tape]:
    """Results of `fun`, their tangents on the tape (None where constant), and the tape, one input per active primal."""
    parent = current.trace
    tape = Tape(parent)
    d = Differentiate(parent, tape)
    duals = []
    for x, on in zip(primals, active, strict=True):
        duals.append(DualTracer(d, x, tape.input(avals.tangent(avals.typeof(x)))) if on else x)
    try:
        outs = run_under(d, fun, *duals)
        split = [d.split(o) for o in outs]
    finally:
        d.done = True
        tape.done = True
    if config.check_tracer_leaks.value:
        del duals, outs
        check_leaks(d)
    return [p for p, _ in split], [t for _, t in split], tape


def pull_back(tape: Tape, tangents: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Cotangents of the tape's inputs, None where there is none, for cotangents `cts` of `tangents`."""
    known = dict(tape.constants.values())
    outs = [None if t is None else t.variable for t in tangents]
    return backward(tape.eqns, tape.inputs, outs, known, cts)


def transpose(jaxpr: Jaxpr, known: dict[Var, Any], cts: Sequence[Any]) -> list[Any]:
    """Cotangents of the inputs of a jaxpr, linear in those that `known` has no value for."""
    return backward(jaxpr.eqns, jaxpr.invars, jaxpr.outvars, known, cts)


def backward(
    eqns: Any,
    inputs: Sequence[Var],
    outs: Sequence[Any],
    known: dict[Var, Any],
    cts: Sequence[Any],
    start: dict[Var, Any] | None = None,
) -> list[Any]:
    """Walk linear equations backwards. `known` has the values of the variables that are not linear unknowns; `start`
    has what the cotangents of some inputs are added to."""
    totals: dict[Any, Any] = dict(start or {})
    for v, ct in zip(outs, cts, strict=True):
        if ct is not None and v is not None and v.__class__ is not Literal and v not in known:
            totals[v] = accumulate(totals.get(v), ct)
    before = current.source
    try:
        for eqn in reversed(eqns):
            prim = eqn.primitive
            if prim.multiple:
                ct: Any = [_settled(totals.pop(v, None), v) for v in eqn.outvars]
                if all(c is None for c in ct):
                    continue
            else:
                ct = _settled(totals.pop(eqn.outvars[0], None), eqn.outvars[0])
                if ct is None:
                    continue
            current.source = eqn.source
            if not eqn.invars or all(v.__class__ is Literal for v in eqn.invars):
                continue  # zeros
            operands = [v.val if v.__class__ is Literal else known.get(v, v) for v in eqn.invars]
            if prim.transpose is None:
                raise TypeError(
                    f"{prim.name} was applied to an unknown of a linear program but is not linear, so it has no "
                    "transpose. linear_transpose takes linear functions only."
                )
            if prim.bilinear is not None and sum(operands[i].__class__ is Var for i in prim.bilinear) > 1:
                raise not_linear(prim.name)
            for v, c in zip(eqn.invars, prim.transpose(ct, *operands, **eqn.params), strict=True):
                if c is not None and v.__class__ is Var and v not in known:
                    total = totals.get(v)
                    totals[v] = c if total is None else accumulate(total, c)
    finally:
        current.source = before
    return [_settled(totals.get(v), v) for v in inputs]


def _settled(ct: Any, v: Var) -> Any:
    """The cotangent of a value, summed over the mesh axes over which it differs and the value does not."""
    if ct is None:
        return None
    differing = typeof(ct).varying
    return collectives.summed_over(ct, differing - v.aval.varying) if differing - v.aval.varying else ct


def accumulate(total: Any, ct: Any) -> Any:
    """Sum of two cotangents, either of which may be absent."""
    if total is None:
        return ct
    return total if ct is None else ew.add(total, ct)
