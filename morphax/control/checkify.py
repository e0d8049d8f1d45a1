"""Errors as values: a trace that threads the first failed check through a program, functionally.

`Checkify` wraps no values. Every operation that reaches it goes on to its parent, and what may be wrong with operands
or results becomes a code: 0, or 1 + the number of the failed check among the trace's `sites`. Bodies of control flow
are replayed once and return their own first failure; the loop, branch or call adds it to the trace's. What messages
show travels beside the code, in slots that checks with equal types share.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from morphax.control import effects
from morphax.control.call import call
from morphax.control.checkpoint import checkpoint_p
from morphax.control.cond import cond_p
from morphax.control.custom import custom_jvp_call_p, custom_vjp_call_p
from morphax.control.parts import cut, remembered, share_constants
from morphax.control.scan import scan_p
from morphax.control.while_loop import flat_while, while_p
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import Primitive
from morphax.ir.trace import Trace, close, run_under, stage, user_source
from morphax.ops import elementwise as ew
from morphax.ops import indexing, reduce, structure
from morphax.ops.family import like, scalar, typeof
from morphax.support import dtypes, tracebacks
from morphax.transforms import batch as batching

_INT = np.dtype("int32")
CHECK = effects.Effect("Check", ordered=False)


class JaxRuntimeError(ValueError):
    """A check failed: raised by `Error.throw`."""


class JaxException(Exception):
    """What can be wrong at run time. Sets of its subclasses choose the checks that `checkify` makes."""


class FailedCheckError(JaxException):
    """A `check` of the user's."""


class NaNError(JaxException):
    """An operation made a NaN."""


class DivisionByZeroError(JaxException):
    """A divisor was zero."""


class OOBError(JaxException):
    """An index was out of bounds."""


class Site(NamedTuple):
    """One check: what it raises, its message, where it stands, which slots the message shows, and their structure."""

    error: type[JaxException]
    message: str
    where: str
    slots: tuple[Any, ...] = ()
    structure: Any = None


def slots_for(values: Sequence[Any]) -> tuple[Any, ...]:
    """A slot for each value: (shape, dtype, its number among those of that type)."""
    slots: list[Any] = []
    for x in values:
        aval = typeof(x)
        slots.append((aval.shape, aval.dtype, sum(s[:2] == (aval.shape, aval.dtype) for s in slots)))
    return tuple(slots)


def here() -> str:
    """The user's line of the operation that is applied now."""
    source = current.source or user_source(2)
    return tracebacks.summarize(source[0], source[1])


def first_failure(code: Any, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Of codes and payloads with leading axes, those of the first failure."""
    shape = typeof(code).shape
    if not shape:
        return code, list(values)
    flat = structure.reshape_to(code, (typeof(code).size,))
    at = reduce.argmax(structure.convert(ew.ne(flat, scalar(0, _INT)), _INT), axes=(0,), index_dtype=_INT)

    def row(x: Any) -> Any:
        rest = typeof(x).shape[len(shape) :]
        x = structure.reshape_to(x, (typeof(flat).size, *rest))
        starts = (at, *[scalar(0, _INT)] * len(rest))
        return structure.reshape_to(indexing.dynamic_slice(x, *starts, slice_sizes=(1, *rest)), rest)

    return row(code), [row(x) for x in values]


# ---- the primitive ---------------------------------------------------------------------------------------------------


def describe(site: Site, values: Sequence[Any]) -> str:
    """The message of a failed check."""
    if site.structure is None:
        return site.message.format(*[np.asarray(v) for v in values])
    args, kwargs = site.structure.unflatten([np.asarray(v)[()] for v in values])
    return f"{site.message.format(*args, **kwargs)} (`check` failed)"


def _run(code: Any, *values: Any, sites: tuple[Site, ...], slots: tuple[Any, ...], debug: bool) -> list[Any]:
    number = int(np.asarray(code))
    if number and not debug:
        site = sites[number - 1]
        held = dict(zip(slots, values, strict=True))
        shown = describe(site, [held[s] for s in site.slots])
        raise JaxRuntimeError(f"{shown}\nThe check stands at {site.where}.")
    return []


def _lower(low: Any, ins: Any, outs: Any, *operands: Any, sites: Any, slots: Any, debug: bool) -> list[Any]:
    if debug:
        return []
    raise ValueError(
        f"check at {sites[0].where} was compiled (by jit, scan or another) without having been made functional. Wrap "
        "the outermost function with checkify, and look at the error that it returns."
    )


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    aligned = [x if f else batching.batched(x, trace.size) for x, f in zip(operands, flags, strict=True)]
    code, values = first_failure(aligned[0], aligned[1:])
    return prim(code, *values, **params), []


check_p = Primitive(
    "check",
    type=lambda code, *values, sites, slots, debug: (),
    lower=_lower,
    nondiff="A check has no result.",
    batch=_batch,
    run=_run,
    multiple=True,
    carrier=True,
    effects=lambda params: frozenset((CHECK,)),
)


# ---- the trace -------------------------------------------------------------------------------------------------------


class Checkify(Trace):
    """Applies operations and checks them. `code` and `slots` hold the first failure."""

    __slots__ = ("code", "errors", "sites", "slots")
    records = True  # operations on known values are checked too

    def __init__(self, parent: Trace, errors: frozenset):
        self.parent = parent
        self.done = False
        self.errors = errors
        self.code: Any = scalar(0, _INT)
        self.sites: list[Site] = []
        self.slots: dict[Any, Any] = {}

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        before = current.trace
        current.trace = self.parent
        try:
            rule = _RULES.get(prim)
            if rule is not None:
                return rule(self, prim, args, params)
            outs = self.parent.apply(prim, args, params)
            if NaNError in self.errors and prim.name not in _MOVERS:
                _check_nan(self, prim.name, outs)
            return outs
        finally:
            current.trace = before

    def add(self, code: Any, sites: Sequence[Site], slots: dict[Any, Any]) -> None:
        """Note failures of further checks, unless an earlier one failed. The parent must be current."""
        offset = len(self.sites)
        self.sites.extend(sites)
        if not offset:
            self.code, self.slots = code, dict(slots)
            return
        fresh = ew.and_(ew.eq(self.code, like(self.code, 0)), ew.ne(code, like(code, 0)))
        self.code = ew.select_n(fresh, self.code, ew.add(code, scalar(offset, _INT)))
        for slot, value in slots.items():
            held = self.slots.get(slot)
            self.slots[slot] = value if held is None else ew.select_n(fresh, held, value)

    def fail(self, failed: Any, error: type[JaxException], message: str, values: Sequence[Any] = ()) -> None:
        """Note a check that fails where the scalar `failed` is true."""
        slots = slots_for(values)
        site = Site(error, message, here(), slots)
        self.add(structure.convert(failed, _INT), (site,), dict(zip(slots, values, strict=True)))

    def state(self) -> list[Any]:
        """The code and the slots, as a flat list."""
        return [self.code, *self.slots.values()]


class Checked(NamedTuple):
    """jaxpr: (consts, operands) -> (results, code, slots). Without sites, (operands) -> results."""

    jaxpr: Jaxpr
    consts: list[Any]
    sites: tuple[Site, ...]
    slots: tuple[Any, ...]

    def __call__(self, *operands: Any) -> list[Any]:
        return evaluate(self.jaxpr, (), [*self.consts, *operands])


@remembered
def checked(jaxpr: Jaxpr, errors: frozenset) -> Checked:
    """A jaxpr that also returns its first failure."""
    trace: Any = None

    def run(*operands: Any) -> list[Any]:
        nonlocal trace
        trace = Checkify(current.trace, errors)
        try:
            outs = run_under(trace, lambda *xs: evaluate(jaxpr, (), xs), *operands)
        finally:
            trace.done = True
        return [*outs, *trace.state()]

    made, consts = stage(run, jaxpr.in_avals, jaxpr.debug_name)
    if not trace.sites and not any(effect is CHECK for effect in jaxpr.effects):
        return Checked(jaxpr, [], (), ())
    return Checked(close(made), consts, tuple(trace.sites), tuple(trace.slots))


def _absorb(trace: Checkify, made: Checked, outs: Sequence[Any], count: int) -> list[Any]:
    """The results proper, the failure behind them noted."""
    if made.sites:
        trace.add(outs[count], made.sites, dict(zip(made.slots, outs[count + 1 :], strict=True)))
    return list(outs[:count])


# ---- checks of operations --------------------------------------------------------------------------------------------

# These move values and make none; a NaN in them was found where it was made.
_MOVERS = frozenset((
    "broadcast_in_dim", "convert_element_type", "transpose", "reshape", "slice", "pad", "concatenate", "split", "rev",
    "squeeze", "copy", "select_n", "stop_gradient", "dynamic_slice", "dynamic_update_slice", "gather", "scatter",
    "sort", "top_k", "real", "imag", "complex", "conj", "neg", "reduce_precision", "optimization_barrier", "name",
    "device_put", "sharding_constraint", "ppermute", "all_gather", "all_to_all", "pvary", "clamp", "iota",
    "bitcast_convert_type", "random_wrap", "random_unwrap", "debug_callback",
))  # fmt: skip


def _any(flags: Any) -> Any:
    axes = tuple(range(typeof(flags).ndim))
    return reduce.reduce_or(flags, axes=axes) if axes else flags


def _check_nan(trace: Checkify, name: str, outs: Sequence[Any]) -> None:
    if NaNError not in trace.errors:
        return
    for out in outs:
        if dtypes.is_inexact(typeof(out).dtype) and typeof(out).size:
            trace.fail(_any(ew.ne(out, out)), NaNError, f"nan generated by primitive: {name}.")


def _div(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    if DivisionByZeroError in trace.errors:
        trace.fail(_any(ew.eq(args[1], like(args[1], 0))), DivisionByZeroError, "division by zero")
    outs = trace.parent.apply(prim, args, params)
    _check_nan(trace, prim.name, outs)
    return outs


def _check_bounds(trace: Checkify, x: Any, indices: Any, limits: np.ndarray, axes: np.ndarray) -> None:
    """Check a vector of indices, index k of axis `axes[k]`, which must lie in [0, limits[k]]."""
    if not len(axes):
        return
    shape = typeof(x).shape
    indices = structure.convert(indices, _INT)
    outside = ew.or_(ew.lt(indices, scalar(0, _INT)), ew.gt(indices, limits.astype(_INT)))
    at = reduce.argmax(structure.convert(outside, _INT), axes=(0,), index_dtype=_INT)
    sizes = np.asarray(shape)[axes].astype(_INT)
    shown = [
        structure.reshape_to(indexing.dynamic_slice(v, at, slice_sizes=(1,)), ())
        for v in (indices, axes.astype(_INT), sizes)
    ]
    where = f"out-of-bounds indexing for array of shape {shape}: ".replace("{", "{{").replace("}", "}}")
    message = where + "index {} is out of bounds for axis {} with size {}. "
    trace.fail(_any(outside), OOBError, message, shown)


def _dynamic_slice(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    starts = args[1:] if prim is indexing.dynamic_slice else args[2:]
    if OOBError in trace.errors and starts:
        shape = typeof(args[0]).shape
        sizes = params["slice_sizes"] if prim is indexing.dynamic_slice else typeof(args[1]).shape
        rows = [structure.reshape_to(structure.convert(s, _INT), (1,)) for s in starts]
        vector = structure.concatenate(*rows, dimension=0)
        _check_bounds(trace, args[0], vector, np.subtract(shape, sizes), np.arange(len(shape)))
    return trace.parent.apply(prim, args, params)


def _gather(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    if OOBError in trace.errors and typeof(args[1]).size:
        shape = typeof(args[0]).shape
        numbers = params["dimension_numbers"]
        if prim is indexing.gather_p:
            axes, sizes = np.asarray(numbers.start_index_map, int), np.asarray(params["slice_sizes"], int)
        else:
            axes = np.asarray(numbers.scatter_dims_to_operand_dims, int)
            sizes = _window_sizes(shape, typeof(args[2]).shape, numbers)
        count = typeof(args[1]).size
        if len(axes):
            repeats = count // len(axes)
            limits = np.subtract(shape, sizes)[axes]
            flat = structure.reshape_to(args[1], (count,))
            _check_bounds(trace, args[0], flat, np.tile(limits, repeats), np.tile(axes, repeats))
    outs = trace.parent.apply(prim, args, params)
    if prim.name not in _MOVERS:
        _check_nan(trace, prim.name, outs)
    return outs


def _window_sizes(shape: tuple[int, ...], update_shape: tuple[int, ...], numbers: Any) -> np.ndarray:
    """Extent of a scatter's window along each axis of the operand."""
    inserted = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    windows = iter(numbers.update_window_dims)
    return np.asarray([1 if axis in inserted else update_shape[next(windows)] for axis in range(len(shape))], int)


def _check(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    sites = params["sites"]
    if any(site.error in trace.errors for site in sites):
        trace.add(args[0], sites, dict(zip(params["slots"], args[1:], strict=True)))
    return []


# ---- checks inside control flow --------------------------------------------------------------------------------------


def _call(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    jaxpr = params["jaxpr"]
    made = checked(jaxpr, trace.errors)
    outs = trace.parent.apply(prim, [*made.consts, *args], {**params, "jaxpr": made.jaxpr})
    return _absorb(trace, made, outs, len(jaxpr.outvars))


def _cond(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    branches = params["branches"]
    made = [checked(b, trace.errors) for b in branches]
    if not any(m.sites for m in made) and all(m.jaxpr is b for m, b in zip(made, branches, strict=True)):
        return trace.parent.apply(prim, args, params)
    sites = tuple([site for m in made for site in m.sites])
    slots = tuple(dict.fromkeys([slot for m in made for slot in m.slots]))
    count = len(branches[0].outvars)
    shared, offset = [], 0
    for m, branch in zip(made, branches, strict=True):

        def run(*operands: Any, m: Checked = m, offset: int = offset) -> list[Any]:
            inner = Checkify(current.trace, trace.errors)
            outs = _absorb(inner, m, m(*operands), count)
            failed = ew.ne(inner.code, scalar(0, _INT))
            code = ew.select_n(failed, scalar(0, _INT), ew.add(inner.code, scalar(offset, _INT)))
            return [*outs, code, *_filled(slots, inner.slots)]

        jaxpr, consts = stage(run, branch.in_avals, branch.debug_name)
        shared.append((close(jaxpr), consts))
        offset += len(m.sites)
    jaxprs, consts = share_constants(shared)
    outs = cond_p(args[0], *consts, *args[1:], branches=jaxprs)
    return _absorb(trace, Checked(branches[0], [], sites, slots), outs, count)


def _filled(slots: Sequence[Any], held: dict[Any, Any]) -> list[Any]:
    return [held[s] if s in held else ew.full(s[0], scalar(0, s[1])) for s in slots]


def _kept(made: Checked, outs: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """The failure in `before` (code and slots), or where there is none that in `outs`."""
    code = before[0]
    fresh = ew.and_(ew.eq(code, like(code, 0)), ew.ne(outs[0], like(code, 0)))
    return [ew.select_n(fresh, old, new) for old, new in zip(before, outs, strict=True)]


def _nothing(slots: Sequence[Any]) -> list[Any]:
    return [scalar(0, _INT), *_filled(slots, {})]


def _scan(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    made = checked(jaxpr, trace.errors)
    if not made.sites:
        return trace.parent.apply(prim, [*made.consts, *args], {**params, "jaxpr": made.jaxpr})
    start = _nothing(made.slots)
    count, size = len(jaxpr.outvars), len(start)

    def body(*operands: Any) -> list[Any]:
        consts, carry, failure, xs = cut(operands, num_consts, num_carry, size)
        outs = made(*consts, *carry, *xs)
        return [*outs[:num_carry], *_kept(made, outs[count:], failure), *outs[num_carry:count]]

    types = list(jaxpr.in_avals)
    at = num_consts + num_carry
    types[at:at] = [typeof(x) for x in start]
    staged, hoisted = stage(body, types, jaxpr.debug_name)
    consts, carry, xs = cut(args, num_consts, num_carry)
    sizes = {"num_consts": num_consts + len(hoisted), "num_carry": num_carry + size}
    operands = [*hoisted, *consts, *carry, *start, *xs]
    outs = trace.parent.apply(prim, operands, {**params, "jaxpr": close(staged), **sizes})
    outs = [*outs[:num_carry], *outs[num_carry + size :], *outs[num_carry : num_carry + size]]
    return _absorb(trace, made, outs, count)


def _while(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    test = checked(params["cond_jaxpr"], trace.errors)
    body = checked(params["body_jaxpr"], trace.errors)
    if test.jaxpr is params["cond_jaxpr"] and body.jaxpr is params["body_jaxpr"]:
        return trace.parent.apply(prim, args, params)
    test_consts, consts, carry = cut(args, params["cond_nconsts"], params["body_nconsts"])
    count = len(carry)
    _absorb(trace, test, test(*test_consts, *carry), 1)
    sizes = len(_nothing(body.slots))

    def going(*state: Any) -> Any:
        return test(*test_consts, *state[:count])[0]

    def turn(*state: Any) -> list[Any]:
        carry, in_body, in_test = cut(state, count, sizes)
        outs = body(*consts, *carry)
        if body.sites:
            in_body = _kept(body, outs[count:], in_body)
        if test.sites:
            in_test = _kept(test, test(*test_consts, *outs[:count])[1:], in_test)
        return [*outs[:count], *in_body, *in_test]

    outs = flat_while(going, turn, [*carry, *_nothing(body.slots), *_nothing(test.slots)])
    _absorb(trace, body, outs[: count + sizes], count)
    if test.sites:
        _absorb(trace, test, outs[count + sizes :], 0)
    return outs[:count]


def _custom(trace: Checkify, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A function with a custom derivative keeps it, and its results are checked for NaNs. Where it makes other checks,
    those count, and the derivative is that of the checked function."""
    args, params = prim.stage(args, params)
    made = checked(params["call_jaxpr"], trace.errors - {NaNError, DivisionByZeroError})
    if made.sites:
        return _absorb(trace, made, made(*args), len(params["call_jaxpr"].outvars))
    outs = trace.parent.apply(prim, args, params)
    _check_nan(trace, params["rules"].name, outs)
    return outs


_SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
_RULES: dict[Primitive, Any] = {
    check_p: _check,
    ew.div: _div,
    indexing.dynamic_slice: _dynamic_slice,
    indexing.dynamic_update_slice: _dynamic_slice,
    indexing.gather_p: _gather,
    call: _call,
    checkpoint_p: _call,
    cond_p: _cond,
    scan_p: _scan,
    while_p: _while,
    custom_jvp_call_p: _custom,
    custom_vjp_call_p: _custom,
    **{prim: _gather for prim in vars(indexing).values() if isinstance(prim, Primitive) and prim.name in _SCATTERS},
}
