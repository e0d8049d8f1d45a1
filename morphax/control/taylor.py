"""Taylor mode: `Jet` computes with truncated power series, x(t) = x_0 + x_1 t + ... + x_n t^n.

Linear operations act on each coefficient, bilinear ones are convolutions, and the common functions have recurrences
(A. Griewank, A. Walther, "Evaluating Derivatives", 2008, chapter 13). Everything else follows from its derivative: with
z = f(x), z'(t) = df(x(t), x'(t)), one order lower, so z_k = (coefficient k - 1 of z') / k.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from morphax.control.call import call
from morphax.control.checkpoint import checkpoint_p
from morphax.control.cond import cond_p
from morphax.control.parts import cut, remembered, share_constants, union
from morphax.control.scan import scan_p
from morphax.control.while_loop import flat_while, while_p
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import ALL, ONE, Primitive
from morphax.ir.trace import Trace, Tracer, close, run_under, stage
from morphax.ops import elementwise as ew
from morphax.ops import indexing
from morphax.ops.family import like, typeof
from morphax.support import dtypes
from morphax.transforms import differentiate as ad

Terms = list[Any]  # coefficients 1 to n; None stands for zero


class JetTracer(Tracer):
    """A value with the coefficients of its power series."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: "Jet", primal: Any, terms: Terms):
        self.owner = trace
        self.primal = primal
        self.terms = terms
        self.aval = typeof(primal)

    def known(self) -> Any:
        return self.primal


class Jet(Trace):
    """Computes with power series up to `order`."""

    __slots__ = ("order",)

    def __init__(self, parent: Trace, order: int):
        self.parent = parent
        self.order = order
        self.done = False

    def split(self, x: Any) -> tuple[Any, Terms | None]:
        """The value at 0, and the coefficients; None where it is constant."""
        if x.__class__ is JetTracer and x.owner is self:
            return x.primal, x.terms
        return x, None

    def join(self, primal: Any, terms: Terms | None) -> Any:
        """A value with its series, plain where that is zero."""
        if terms is None or all(t is None for t in terms):
            return primal
        aval = typeof(primal)
        spread = [t if t is None or typeof(t).shape == aval.shape else ew.full(aval.shape, t) for t in terms]
        return JetTracer(self, primal, spread)

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        pairs = [self.split(a) for a in args]
        primals, series = [p for p, _ in pairs], [t for _, t in pairs]
        before = current.trace
        current.trace = self.parent
        try:
            if all(t is None for t in series):
                return self.parent.apply(prim, primals, params)
            rule = _RULES.get(prim) or _STORIES[prim.story]
            outs, terms = rule(self, prim, primals, series, params)
            return [self.join(o, t) for o, t in zip(outs, terms, strict=True)]
        finally:
            current.trace = before


# ---- sums of products of coefficients, of which some are zero --------------------------------------------------------


def _add(x: Any, y: Any) -> Any:
    if x is None or y is None:
        return y if x is None else x
    return ew.add(x, y)


def _sub(x: Any, y: Any) -> Any:
    if y is None:
        return x
    return ew.neg(y) if x is None else ew.sub(x, y)


def _mul(x: Any, y: Any) -> Any:
    return None if x is None or y is None else ew.mul(x, y)


def _scale(x: Any, factor: float) -> Any:
    return x if x is None or factor == 1 else ew.mul(x, like(x, factor))


def _over(x: Any, y: Any) -> Any:
    return None if x is None else ew.div(x, y)


def _sum(terms: Sequence[Any]) -> Any:
    total = None
    for t in terms:
        total = _add(total, t)
    return total


def _convolved(x: Sequence[Any], y: Sequence[Any], k: int, product: Callable[[Any, Any], Any] = _mul) -> Any:
    """Coefficient k of the product of two full series."""
    return _sum([product(x[j], y[k - j]) for j in range(k + 1)])


def _slope(x: Sequence[Any], y: Sequence[Any], k: int) -> Any:
    """Coefficient k of z where z' = x' y: (1 / k) sum of j x_j y_{k-j}."""
    return _scale(_sum([_scale(_mul(x[j], y[k - j]), j) for j in range(1, k + 1)]), 1.0 / k)


def _full(jet: Jet, primal: Any, terms: Terms | None) -> list[Any]:
    return [primal, *(terms or [None] * jet.order)]


# ---- rules: (jet, primitive, values, series, params) -> values, series -----------------------------------------------

Rule = Callable[[Jet, Primitive, list[Any], list[Any], dict[str, Any]], tuple[Any, Any]]


def _constant(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    outs = jet.parent.apply(prim, primals, params)
    return outs, [None] * len(outs)


def _linear_in(positions: Callable[[Primitive, int], Sequence[int]]) -> Rule:
    def rule(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
        outs = jet.parent.apply(prim, primals, params)
        chosen = positions(prim, len(primals))
        if any(t is not None and i not in chosen for i, t in enumerate(series)):
            return _by_derivative(jet, prim, primals, series, params)
        columns = []
        for k in range(jet.order):
            given = {i: series[i][k] for i in chosen if series[i] is not None and series[i][k] is not None}
            if not given:
                columns.append([None] * len(outs))
                continue
            operands = list(primals)
            for i in chosen:
                operands[i] = given[i] if i in given else ew.zeros(typeof(primals[i]))
            columns.append(jet.parent.apply(prim, operands, params))
        terms = [list(row) for row in zip(*columns, strict=True)]
        return outs, [t if dtypes.is_inexact(typeof(o).dtype) else None for o, t in zip(outs, terms, strict=True)]

    return rule


def _bilinear(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    first, second = prim.bilinear

    def product(x: Any, y: Any) -> Any:
        if x is None or y is None:
            return None
        operands = list(primals)
        operands[first], operands[second] = x, y
        return jet.parent.apply(prim, operands, params)[0]

    x, y = [_full(jet, primals[i], series[i]) for i in (first, second)]
    z = [_convolved(x, y, k, product) for k in range(jet.order + 1)]
    return (z[0],), (z[1:],)


def _by_partials(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    """z_k = (1 / k) sum over operands and j of j x_j p_{k-j}, p being the series of the partial derivative, which may
    contain z: each order needs those below."""
    out = jet.parent.apply(prim, primals, params)[0]
    if not dtypes.is_inexact(typeof(out).dtype):
        return (out,), (None,)
    terms: Terms = []
    for k in range(1, jet.order + 1):
        lower = Jet(jet.parent, k - 1)
        z = _lowered(lower, out, terms)
        xs = [_lowered(lower, p, t) for p, t in zip(primals, series, strict=True)]
        total = None
        for p, t, partial in zip(primals, series, prim.partials, strict=True):
            if t is None or partial is None:
                continue
            if partial is ONE:
                total = _add(total, t[k - 1])
                continue
            current.trace = lower if lower.order else jet.parent
            value, slopes = lower.split(partial(z, *xs, **params))
            current.trace = jet.parent
            total = _add(total, _slope([p, *t], _full(lower, value, slopes), k))
        terms.append(total)
    return (out,), (terms,)


def _lowered(lower: Jet, primal: Any, terms: Terms | None) -> Any:
    return lower.join(primal, None if terms is None else terms[: lower.order])


def _by_derivative(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    """The derivative's series, integrated."""
    lower = Jet(jet.parent, jet.order - 1)
    xs = [_lowered(lower, p, t) for p, t in zip(primals, series, strict=True)]
    vs = []
    for p, t in zip(primals, series, strict=True):
        if t is None:
            vs.append(None)
            continue
        first, *rest = [_scale(x, j + 1) for j, x in enumerate(t)]
        vs.append(lower.join(ew.zeros(avals.tangent(typeof(p))) if first is None else first, rest))
    current.trace = lower if lower.order else jet.parent
    results, slopes = ad.jvp(lambda *args: current.trace.apply(prim, args, params), xs, vs)
    current.trace = jet.parent
    outs, terms = [], []
    for out, slope in zip(results, slopes, strict=True):
        outs.append(lower.split(out)[0])
        if slope is None:
            terms.append(None)
            continue
        full = _full(lower, *lower.split(slope))
        terms.append([_scale(v, 1.0 / (j + 1)) for j, v in enumerate(full)])
    return outs, terms


_STORIES: dict[str, Rule] = {
    "nondiff": _constant,
    "linear": _linear_in(lambda prim, n: range(n) if prim.linear == ALL else prim.linear),
    "bilinear": _bilinear,
    "partials": _by_partials,
    "jvp": _by_derivative,
    "linearize": _by_derivative,
}


# ---- recurrences -----------------------------------------------------------------------------------------------------


def _recurrence(step: Callable[[list[Any], list[Any], int], Any]) -> Rule:
    """For functions of one operand: `step(x, z, k)` is z_k, from x_0 to x_k and z_0 to z_{k-1}."""

    def rule(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
        x = _full(jet, primals[0], series[0])
        z = [jet.parent.apply(prim, primals, params)[0]]
        for k in range(1, jet.order + 1):
            z.append(step(x, z, k))
        return (z[0],), (z[1:],)

    return rule


def _log_step(x: Any, z: Any, k: int) -> Any:
    return _over(_sub(x[k], _scale(_sum([_scale(_mul(z[j], x[k - j]), j) for j in range(1, k)]), 1.0 / k)), x[0])


def _sqrt_step(x: Any, z: Any, k: int) -> Any:
    return _over(_sub(x[k], _sum([_mul(z[j], z[k - j]) for j in range(1, k)])), _scale(z[0], 2))


def _through_own(derivative: Callable[[list[Any], int], Any]) -> Callable[[list[Any], list[Any], int], Any]:
    """z' = x' w, where `derivative(z, k)` is the coefficient w_k of a polynomial in z."""
    return lambda x, z, k: _slope(x, [derivative(z, j) for j in range(k)], k)


def _pair(mine: Primitive, other: Primitive, to_other: float, to_mine: float) -> Rule:
    """For z' = to_mine x' w, w' = to_other x' z: sine and cosine, of the circle and the hyperbola."""

    def rule(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
        x = _full(jet, primals[0], series[0])
        z, w = [mine(primals[0], **params)], [other(primals[0], **params)]
        for k in range(1, jet.order + 1):
            z_k, w_k = _scale(_slope(x, w, k), to_mine), _scale(_slope(x, z, k), to_other)
            z.append(z_k)
            w.append(w_k)
        return (z[0],), (z[1:],)

    return rule


def _product(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    x, y = [_full(jet, p, t) for p, t in zip(primals, series, strict=True)]
    z = [_convolved(x, y, k) for k in range(jet.order + 1)]
    return (z[0],), (z[1:],)


def _quotient(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    x, y = [_full(jet, p, t) for p, t in zip(primals, series, strict=True)]
    z = jet.parent.apply(prim, primals, params)
    for k in range(1, jet.order + 1):
        z.append(_over(_sub(x[k], _sum([_mul(y[j], z[k - j]) for j in range(1, k + 1)])), y[0]))
    return (z[0],), (z[1:],)


def _integer_power(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    """By repeated squaring, which holds at zero too."""
    x = _full(jet, primals[0], series[0])
    count = abs(params["y"])
    if count == 0:
        return jet.parent.apply(prim, primals, params), (None,)
    power = None
    square = x
    while count:
        if count & 1:
            power = square if power is None else [_convolved(power, square, k) for k in range(jet.order + 1)]
        count >>= 1
        if count:
            square = [_convolved(square, square, k) for k in range(jet.order + 1)]
    assert power is not None
    if params["y"] > 0:
        return (power[0],), (power[1:],)
    z = [ew.div(like(power[0], 1), power[0])]
    for k in range(1, jet.order + 1):
        z.append(_over(_sub(None, _sum([_mul(power[j], z[k - j]) for j in range(1, k + 1)])), power[0]))
    return (z[0],), (z[1:],)


def _absolute(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    if dtypes.is_complex(typeof(primals[0]).dtype):
        return _by_derivative(jet, prim, primals, series, params)
    sign = ew.sign(primals[0])
    return jet.parent.apply(prim, primals, params), ([_mul(t, sign) for t in series[0]],)


# ---- control flow ----------------------------------------------------------------------------------------------------


class Jetted(NamedTuple):
    """jaxpr: (consts, values, coefficients of those that have some) -> (results, coefficients of those in `has`)."""

    jaxpr: Jaxpr
    consts: list[Any]
    has: tuple[bool, ...]


@remembered
def _jetted(jaxpr: Jaxpr, order: int, active: tuple[bool, ...], force: tuple[bool, ...]) -> Jetted:
    """A jaxpr on power series. Results in `force` have coefficients, be they zeros."""
    has: tuple[bool, ...] = ()

    def run(*args: Any) -> list[Any]:
        nonlocal has
        jet = Jet(current.trace, order)
        given = iter(args[len(active) :])
        xs = [
            jet.join(x, [next(given) for _ in range(order)] if on else None)
            for x, on in zip(args, active, strict=False)
        ]
        try:
            outs = run_under(jet, lambda *xs: evaluate(jaxpr, (), xs), *xs)
        finally:
            jet.done = True
        pairs = [jet.split(o) for o in outs]
        has = tuple([t is not None or f for (_, t), f in zip(pairs, force or (False,) * len(pairs), strict=True)])
        return [p for p, _ in pairs] + _flat([t for _, t in pairs], [p for p, _ in pairs], has, order)

    tangents = [avals.tangent(a) for a, on in zip(jaxpr.in_avals, active, strict=True) if on for _ in range(order)]
    made, consts = stage(run, [*jaxpr.in_avals, *tangents], jaxpr.debug_name)
    return Jetted(close(made), consts, has)


def _flat(series: Sequence[Any], primals: Sequence[Any], has: Sequence[bool], order: int) -> list[Any]:
    """The coefficients of the values in `has`, one after the other, with zeros written out."""
    flat = []
    for t, p, on in zip(series, primals, has, strict=True):
        if on:
            flat += [ew.zeros(avals.tangent(typeof(p))) if x is None else x for x in (t or [None] * order)]
    return flat


def _restored(flat: Sequence[Any], has: Sequence[bool], order: int) -> list[Terms | None]:
    found = iter(flat)
    return [[next(found) for _ in range(order)] if on else None for on in has]


def _present(series: Sequence[Any]) -> tuple[bool, ...]:
    return tuple([t is not None for t in series])


def _replay(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    jaxpr = params["jaxpr"]
    active = _present(series)
    made = _jetted(jaxpr, jet.order, active, ())
    operands = [*made.consts, *primals, *_flat(series, primals, active, jet.order)]
    outs = jet.parent.apply(prim, operands, {**params, "jaxpr": made.jaxpr})
    count = len(jaxpr.outvars)
    return outs[:count], _restored(outs[count:], made.has, jet.order)


def _cond(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    branches = params["branches"]
    active = _present(series[1:])
    has = union([_jetted(b, jet.order, active, ()).has for b in branches])
    made = [_jetted(b, jet.order, active, has) for b in branches]
    shared, consts = share_constants([(m.jaxpr, m.consts) for m in made])
    terms = _flat(series[1:], primals[1:], active, jet.order)
    outs = cond_p(primals[0], *consts, *primals[1:], *terms, branches=shared)
    count = len(has)
    return outs[:count], _restored(outs[count:], has, jet.order)


def _inexact(xs: Sequence[Any]) -> tuple[bool, ...]:
    return tuple([dtypes.is_inexact(typeof(x).dtype) for x in xs])


def _scan(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    """The loop on series; every carry of floats has one."""
    jaxpr, num_consts, num_carry, order = params["jaxpr"], params["num_consts"], params["num_carry"], jet.order
    consts, carry, xs = cut(primals, num_consts, num_carry)
    const_on, carry_on, x_on = (
        _present(series[:num_consts]),
        _inexact(carry),
        _present(series[num_consts + num_carry :]),
    )
    force = carry_on + (False,) * (len(jaxpr.outvars) - num_carry)
    made = _jetted(jaxpr, order, (*const_on, *carry_on, *x_on), force)
    on = (const_on, carry_on, x_on)
    sizes = [order * sum(flags) for flags in on]
    groups = [
        _flat(t, p, flags, order)
        for t, p, flags in zip(cut(series, num_consts, num_carry), (consts, carry, xs), on, strict=True)
    ]

    def body(*operands: Any) -> list[Any]:
        own, w, dw, c, dc, x, dx = cut(operands, len(made.consts), num_consts, sizes[0], num_carry, sizes[1], len(xs))
        outs = evaluate(made.jaxpr, (), [*own, *w, *c, *x, *dw, *dc, *dx])
        c, y, dc, dy = cut(outs, num_carry, len(jaxpr.outvars) - num_carry, sizes[1])
        return [*c, *dc, *y, *dy]

    tangents = [[avals.tangent(a) for a, f in zip(types, flags, strict=True) if f for _ in range(order)]
                for types, flags in zip(cut(jaxpr.in_avals, num_consts, num_carry), on, strict=True)]  # fmt: skip
    w, c, x = cut(jaxpr.in_avals, num_consts, num_carry)
    types = [*[typeof(v) for v in made.consts], *w, *tangents[0], *c, *tangents[1], *x, *tangents[2]]
    staged, hoisted = stage(body, types, jaxpr.debug_name)
    operands = [*hoisted, *made.consts, *consts, *groups[0], *carry, *groups[1], *xs, *groups[2]]
    counts = {
        "num_consts": len(hoisted) + len(made.consts) + num_consts + sizes[0],
        "num_carry": num_carry + sizes[1],
    }
    outs = jet.parent.apply(prim, operands, {**params, "jaxpr": close(staged), **counts})
    c, dc, y, dy = cut(outs, num_carry, sizes[1], len(jaxpr.outvars) - num_carry)
    return [*c, *y], _restored([*dc, *dy], made.has, order)


def _while(jet: Jet, prim: Primitive, primals: Any, series: Any, params: Any) -> Any:
    test, body, order = params["cond_jaxpr"], params["body_jaxpr"], jet.order
    test_consts, consts, carry = cut(primals, params["cond_nconsts"], params["body_nconsts"])
    _, const_series, carry_series = cut(series, params["cond_nconsts"], params["body_nconsts"])
    const_on, carry_on = _present(const_series), _inexact(carry)
    made = _jetted(body, order, (*const_on, *carry_on), carry_on)
    const_terms = _flat(const_series, consts, const_on, order)
    count = len(carry)

    def turn(*state: Any) -> list[Any]:
        return evaluate(made.jaxpr, (), [*made.consts, *consts, *state[:count], *const_terms, *state[count:]])

    start = [*carry, *_flat(carry_series, carry, carry_on, order)]
    outs = flat_while(lambda *state: evaluate(test, (), [*test_consts, *state[:count]])[0], turn, start)
    return outs[:count], _restored(outs[count:], carry_on, order)


_RULES: dict[Primitive, Rule] = {
    ew.mul: _product,
    ew.div: _quotient,
    ew.integer_pow: _integer_power,
    ew.abs: _absolute,
    ew.exp: _recurrence(_through_own(lambda z, k: z[k])),
    ew.tanh: _recurrence(_through_own(lambda z, k: _sub(like(z[0], 1) if k == 0 else None, _convolved(z, z, k)))),
    ew.logistic: _recurrence(_through_own(lambda z, k: _sub(z[k], _convolved(z, z, k)))),
    ew.log: _recurrence(_log_step),
    ew.sqrt: _recurrence(_sqrt_step),
    ew.sin: _pair(ew.sin, ew.cos, -1, 1),
    ew.cos: _pair(ew.cos, ew.sin, 1, -1),
    ew.sinh: _pair(ew.sinh, ew.cosh, 1, 1),
    ew.cosh: _pair(ew.cosh, ew.sinh, 1, 1),
    ew.select_n: _linear_in(lambda prim, n: range(1, n)),
    indexing.gather_p: _linear_in(lambda prim, n: (0,)),
    indexing.scatter_p: _linear_in(lambda prim, n: (0, 2)),
    call: _replay,
    checkpoint_p: _replay,
    cond_p: _cond,
    scan_p: _scan,
    while_p: _while,
}
