"""Programs as values: variables, literals, equations, jaxprs; evaluation, checking, dead code."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir.avals import NO_AXES, ShapedArray
from morphax.ir.current import current
from morphax.ir.primitive import Primitive, Var


class DropVar(Var):
    """A result that nothing uses; printed as `_`."""

    __slots__ = ()


class Literal:
    """A scalar written into the program."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval}"


Atom = Var | Literal


class Eqn:
    """One equation. `source` is (code, instruction offset, scope), resolved to a line only when shown."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        params: dict[str, Any],
        outvars: Sequence[Var],
        effects: frozenset = NO_AXES,
        source: Any = None,
    ):
        self.primitive = primitive
        self.invars = invars
        self.params = params
        self.outvars = outvars
        self.effects = effects
        self.source = source

    def replace(self, **changes: Any) -> "Eqn":
        """The same equation with the named fields replaced."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return Eqn(**{**fields, **changes})

    def __repr__(self) -> str:
        from_ = " ".join(map(repr, self.invars))
        return f"{' '.join(map(repr, self.outvars))} = {self.primitive.name} {from_}"


class Jaxpr:
    """A first-order program: typed inputs, equations, outputs. Never changed once made.

    `constvars` are inputs that stand for values which the traced function closed over; they come before `invars`.
    `memo` holds what was derived from this jaxpr (its transforms, its compiled programs) and lives as long as it.
    """

    __slots__ = ("__weakref__", "constvars", "debug_name", "effects", "eqns", "invars", "memo", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        eqns: Sequence[Eqn],
        outvars: Sequence[Atom],
        effects: frozenset | None = None,
        debug_name: str = "",
    ):
        self.constvars = tuple(constvars)
        self.invars = tuple(invars)
        self.eqns = eqns
        self.outvars = tuple(outvars)
        self.effects = join_effects(eqns) if effects is None else effects
        self.debug_name = debug_name
        self.memo: dict[Any, Any] = {}

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([v.aval for v in self.invars])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([v.aval for v in self.outvars])

    def __repr__(self) -> str:
        return printer[0](self)


class ClosedJaxpr:
    """A jaxpr together with the values of its constants."""

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]):
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(f"ClosedJaxpr: {len(jaxpr.constvars)} constants are needed, {len(consts)} were given.")
        self.jaxpr = jaxpr
        self.consts = list(consts)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return list(self.jaxpr.in_avals)

    @property
    def out_avals(self) -> list[ShapedArray]:
        return list(self.jaxpr.out_avals)

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def eqns(self) -> Sequence[Eqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset:
        return self.jaxpr.effects

    def __repr__(self) -> str:
        return printer[0](self.jaxpr)


# `show.py` puts its printer here: it stands above this module.
printer: list[Callable[[Jaxpr], str]] = [object.__repr__]


def join_effects(eqns: Sequence[Eqn]) -> frozenset:
    """Union of the effects of equations."""
    joined = NO_AXES
    for eqn in eqns:
        if eqn.effects:
            joined |= eqn.effects
    return joined


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Results of the program on `args`, each equation interpreted by the current trace."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    trace = current.trace
    before = current.source
    try:
        for eqn in jaxpr.eqns:
            operands = [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]
            current.source = eqn.source
            for v, out in zip(eqn.outvars, trace.apply(eqn.primitive, operands, eqn.params), strict=True):
                env[v] = out
    finally:
        current.source = before
    return [v.val if isinstance(v, Literal) else env[v] for v in jaxpr.outvars]


def live(eqns: Sequence[Eqn], outvars: Sequence[Atom]) -> tuple[list[Eqn], set[Any]]:
    """The equations that `outvars` depend on or that have effects, and every variable they read."""
    needed: set[Any] = {v for v in outvars if v.__class__ is not Literal}
    kept: list[Eqn] = []
    for eqn in reversed(eqns):
        used = [v in needed for v in eqn.outvars]
        if True not in used and not eqn.effects:
            continue
        if eqn.primitive.prune is not None and False in used:
            eqn = eqn.primitive.prune(eqn, tuple(used)) or eqn
        kept.append(eqn)
        needed.update(v for v in eqn.invars if v.__class__ is not Literal)
    kept.reverse()
    return kept, needed


def prune(jaxpr: Jaxpr, used: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr with only the outputs in `used`, and which of its inputs are still read. Remembered."""
    key = ("prune", used)
    found = jaxpr.memo.get(key)
    if found is None:
        outvars = [v for v, u in zip(jaxpr.outvars, used, strict=True) if u]
        eqns, needed = live(jaxpr.eqns, outvars)
        kept = tuple(v in needed for v in jaxpr.invars)
        invars = [v for v, k in zip(jaxpr.invars, kept, strict=True) if k]
        pruned = Jaxpr(jaxpr.constvars, invars, eqns, outvars, debug_name=jaxpr.debug_name)
        found = jaxpr.memo[key] = (pruned, kept)
    return found


def subjaxprs(params: dict[str, Any]) -> list[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    found: list[Jaxpr] = []
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Jaxpr):
                found.append(item)
            elif isinstance(item, ClosedJaxpr):
                found.append(item.jaxpr)
    return found


def check(jaxpr: Jaxpr) -> None:
    """Verify that every variable is defined before use and that every type rule gives the type that is recorded.

    Raises:
        TypeError: naming the equation and what is wrong with it.
    """
    defined: set[Any] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        if v in defined:
            raise TypeError(f"check: input {v!r} is bound twice")
        defined.add(v)

    def read(atom: Atom, where: str) -> None:
        if isinstance(atom, Literal):
            if np.shape(atom.val) != ():
                raise TypeError(f"check: the literal {atom!r} in {where} is not a scalar")
        elif atom not in defined:
            raise TypeError(f"check: {atom!r} is used in {where} before it is defined")

    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            read(v, repr(eqn))
        types = eqn.primitive.types(tuple([v.aval for v in eqn.invars]), eqn.params)
        recorded = tuple([v.aval for v in eqn.outvars])
        if types != recorded:
            raise TypeError(f"check: {eqn.primitive.name} gives {types}, but {recorded} is recorded: {eqn!r}")
        for v in eqn.outvars:
            if v in defined:
                raise TypeError(f"check: {v!r} is defined twice, again by {eqn!r}")
            defined.add(v)
        for inner in subjaxprs(eqn.params):
            check(inner)
    for v in jaxpr.outvars:
        read(v, "the outputs")
