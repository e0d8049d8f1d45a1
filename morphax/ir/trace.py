"""Tracers and the traces that need nothing but the IR: the base class, and Stage, which records equations."""

import gc
import inspect
import reprlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.avals import NO_AXES, ShapedArray
from morphax.ir.current import base, current
from morphax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, join_effects, live
from morphax.ir.primitive import Primitive
from morphax.support import config, errors, tracebacks


class Tracer:
    """A value inside a transformed function: it has a type, and an owner: the trace that knows what it stands for.

    Operators and methods are those of arrays; `numpy/methods.py` installs them from its table.
    """

    __slots__ = ("__weakref__", "aval", "owner")
    __array_priority__ = 1000

    owner: "Trace"
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def _trace(self) -> "Trace":
        return self.owner

    def _is_traced_array(self) -> bool:
        return True

    def known(self) -> Any:
        """The concrete value behind the tracer, or None where there is none."""
        return None

    def concrete(self, error: type[Exception], use: str, cure: str) -> Any:
        """The concrete value, for uses that need one.

        Raises:
            error: the value is not known while tracing.
        """
        value: Any = self
        while isinstance(value, Tracer):
            below = value.known()
            if below is None:
                raise error(f"{use} needs the value of a traced array of type {self.aval}{_origin(self)}. {cure}")
            value = below
        return value

    def __bool__(self) -> bool:
        return bool(
            self.concrete(
                errors.TracerBoolConversionError,
                "bool() (an `if`, `while`, `and`, `or` or `not`)",
                "Use numpy.where, lax.cond or lax.while_loop; or mark the argument static with "
                "jit(..., static_argnums=...).",
            )
        )

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __complex__(self) -> complex:
        return complex(self._number("complex()"))

    def _number(self, use: str) -> Any:
        return self.concrete(
            errors.ConcretizationTypeError, use, "Use .astype(...) to convert, or mark the argument static in jit."
        )

    def __index__(self) -> int:
        value = self.concrete(
            errors.TracerIntegerConversionError,
            "an integer index or size",
            "Index arrays of this library with it (numpy.asarray the list first), or mark the argument static in jit.",
        )
        return value.__index__()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        value = self.concrete(
            errors.TracerArrayConversionError,
            "numpy.asarray()",
            "Call the function of this library's numpy module instead of NumPy's.",
        )
        return np.asarray(value, *args, **kwargs)

    def item(self, *args: int) -> Any:
        return self._number(".item()").item(*args)

    def tolist(self) -> Any:
        return self._number(".tolist()").tolist()

    def __hash__(self) -> int:
        raise TypeError(
            f"unhashable type: traced array of type {self.aval}. Arrays cannot be dictionary keys, set members or "
            "static arguments."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"

    def __copy__(self) -> "Tracer":
        return self

    def __deepcopy__(self, memo: Any) -> "Tracer":
        return self


def _origin(tracer: Tracer) -> str:
    describe = getattr(tracer.owner, "describe", None)
    return describe(tracer) if describe is not None else ""


class Trace:
    """Interprets primitives. `parent` is the trace that was current when this one was made."""

    __slots__ = ("__weakref__", "done", "parent")

    parent: "Trace"
    records = False  # whether operations on known values must be recorded too
    done: bool

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__}.apply")


def run_under(trace: Trace, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `fun` with `trace` current."""
    before = current.trace
    outermost = before is base()
    current.trace = trace
    current.recording += trace.records
    source, current.source = current.source, None
    if outermost:  # compiled calls dispatched in C++ look at this flag, and come back to Python where it is set
        current.mark_inside(True)
    try:
        return fun(*args, **kwargs)
    finally:
        current.trace = before
        current.recording -= trace.records
        current.source = source
        if outermost:
            current.mark_inside(False)


def check_leaks(trace: Trace) -> None:
    """Under `check_tracer_leaks`, called at the end of a trace: none of its values may be held by anything that lives.

    Raises:
        Exception: of the class that JAX raises here, with each value and what holds it.
    """
    gc.collect()
    found = [x for x in gc.get_objects() if issubclass(type(x), Tracer) and x.owner is trace]
    if not found:
        return
    lines = []
    for tracer in found[:5]:
        holders = [h for h in gc.get_referrers(tracer) if h is not found and not inspect.isframe(h)]
        held = ", ".join(f"a {type(h).__name__} ({reprlib.repr(h)})" for h in holders[:3]) or "an unknown object"
        lines.append(f"  {tracer!r}{_origin(tracer)} is held by {held}")
    raise Exception(
        f"Leaked trace {type(trace).__name__}: {len(found)} of its values outlive it:\n"
        + "\n".join(lines)
        + "\nReturn what is needed afterwards from the function instead of storing it."
    )


# ---- where an equation was written -----------------------------------------------------------------------------------

_getframe = sys._getframe
_internal = tracebacks.internal_files  # file name -> whether it lies inside the library; asked once per frame


def user_source(depth: int) -> tuple[Any, int, str]:
    """(code, instruction offset, scope) of the innermost frame outside the library."""
    frame = _getframe(depth)
    while _internal[frame.f_code.co_filename]:
        above = frame.f_back
        if above is None:
            break
        frame = above
    return (frame.f_code, frame.f_lasti, current.scope)


# ---- Stage -----------------------------------------------------------------------------------------------------------


class StageTracer(Tracer):
    """A value whose computation is being recorded."""

    __slots__ = ("variable",)

    def __init__(self, trace: "Stage", var: Var):
        self.owner = trace
        self.variable = var
        self.aval = var.aval


def leaked(tracer: Tracer) -> errors.UnexpectedTracerError:
    """The error for a traced value that is used where its transform does not hold."""
    if not tracer.owner.done:
        return errors.UnexpectedTracerError(
            f"a traced value of type {tracer.aval}{_origin(tracer)} was used where its transform is not in force: a "
            "function with a custom derivative or batching rule, or a callback, closes over a value that is being "
            "differentiated or batched. Pass that value as an argument."
        )
    return errors.UnexpectedTracerError(
        f"a traced value of type {tracer.aval}{_origin(tracer)} was used after the transformed function that made it "
        "had finished. Return it from that function instead of storing it in a global, an attribute or a closure."
    )


class Stage(Trace):
    """Records every operation as an equation. `finish` makes the jaxpr."""

    __slots__ = ("constants", "eqns", "inputs", "name", "names")
    records = True

    def __init__(self, name: str = "", names: Callable[[int], str] | None = None):
        self.parent = current.trace
        self.done = False
        self.eqns: list[Eqn] = []
        self.inputs: list[Var] = []
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.name = name
        self.names = names

    def input(self, aval: ShapedArray) -> StageTracer:
        """A new input of that type."""
        var = Var(aval)
        self.inputs.append(var)
        return StageTracer(self, var)

    def describe(self, tracer: Any) -> str:
        """Words that say what the traced value is: an argument, or the result of a line of the user's."""
        var = tracer.variable
        for position, v in enumerate(self.inputs):
            if v is var:
                argument = self.names(position) if self.names is not None else f"argument {position}"
                return f" ({argument} of {self.name or 'the traced function'})"
        for eqn in self.eqns:
            if var in eqn.outvars and eqn.source is not None:
                where = tracebacks.summarize(eqn.source[0], eqn.source[1])
                return f" (result of {eqn.primitive.name} at {where})"
        return ""

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for a value: other values become hidden inputs."""
        if x.__class__ is StageTracer and x.owner is self:
            return x.variable
        if isinstance(x, (np.generic, float, int, complex)):  # bool is an int
            aval = avals.operand_type(x)
            return Literal(x if isinstance(x, np.generic) else np.asarray(x, aval.dtype)[()], aval)
        if x.__class__ is np.ndarray and x.ndim == 0:
            return Literal(x, avals.operand_type(x))
        found = self.constants.get(id(x))
        if found is None:
            if isinstance(x, Tracer) and x.owner.done:
                raise leaked(x)
            found = self.constants[id(x)] = (Var(avals.operand_type(x)), x)
        return found[0]

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        if prim.stage is not None:
            args, params = prim.stage(args, params)
        ins = [a.variable if a.__class__ is StageTracer and a.owner is self else self.atom(a) for a in args]
        types = prim.types(tuple([v.aval for v in ins]), params)
        return [StageTracer(self, v) for v in self.record(prim, ins, params, types)]

    def record(
        self, prim: Primitive, ins: list[Atom], params: dict[str, Any], types: Sequence[ShapedArray]
    ) -> list[Var]:
        """Append the equation and return its result variables."""
        outs = [Var(t) for t in types]
        source = current.source
        if source is None:
            source = user_source(3)
        effects = prim.effects(params) if prim.effects is not None else NO_AXES
        self.eqns.append(Eqn(prim, ins, params, outs, effects, source))
        return outs

    def finish(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The jaxpr of what was recorded, without dead code, and the values of its constants."""
        out_atoms = [self.atom(x) for x in outs]
        self.done = True
        eqns, needed = live(self.eqns, out_atoms)
        kept = [(v, value) for v, value in self.constants.values() if v in needed]
        jaxpr = Jaxpr([v for v, _ in kept], self.inputs, eqns, out_atoms, join_effects(eqns), self.name)
        return jaxpr, [value for _, value in kept]


def stage(
    fun: Callable[..., Sequence[Any]],
    types: Sequence[ShapedArray],
    name: str = "",
    names: Callable[[int], str] | None = None,
) -> tuple[Jaxpr, list[Any]]:
    """The jaxpr of `fun`, a function of flat arguments that returns a flat sequence, and its constants."""
    trace = Stage(name, names)
    try:
        outs = run_under(trace, fun, *[trace.input(t) for t in types])
        made = trace.finish(outs)
    finally:
        trace.done = True
    if config.check_tracer_leaks.value:
        del outs
        check_leaks(trace)
    return made


def close(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with its constants as ordinary inputs, first: what carriers hold."""
    if not jaxpr.constvars:
        return jaxpr
    return Jaxpr((), jaxpr.constvars + jaxpr.invars, jaxpr.eqns, jaxpr.outvars, jaxpr.effects, jaxpr.debug_name)
