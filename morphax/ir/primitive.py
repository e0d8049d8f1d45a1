"""The record of an operation: all that the library knows of it, in one place."""

from collections.abc import Callable, Sequence
from typing import Any

from morphax.ir import avals
from morphax.ir.current import current
from morphax.support import tracebacks

Rule = Callable[..., Any]


class Var:
    """A variable: where the result of an equation, or an input, is named."""

    __slots__ = ("aval",)

    def __init__(self, aval: avals.ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


_MEMO_LIMIT = 8192

# In `partials`: the derivative with respect to that operand is the constant one.
ONE = object()


class Primitive:
    """One operation: its type, its derivative, its batching and its lowering.

    Exactly one derivative story is demanded, so that no gradient is silently zero:

    Args:
        name: as printed in jaxprs.
        type: (*operand types, **params) -> result type, or a tuple of them when `multiple`.
        lower: (lowering, result types, operands, **params) -> list of MLIR values; `runtime/lower.py` documents
            `lowering`. A dict from platform to such a function, with "default", gives a platform its own.
        partials: for elementwise operations, per operand a function (result, *operands, **params) -> derivative,
            `ONE` for the constant one, or None where the derivative is zero everywhere.
        linear: positions of the operands in which the operation is jointly linear; `ALL` for all of them.
        bilinear: positions of the operands in each of which alone the operation is linear.
        transpose: (ct, *operands, **params) -> cotangent or None for each operand. Operands that the equation is
            linear in are `Var`s (see `is_unknown`), the others values. `ct` is a list when `multiple`.
        jvp: (primals, tangents, **params) -> (results, tangents), written with ordinary operations. A missing tangent
            is None. Lists of results when `multiple`.
        linearize: for carriers of jaxprs: (trace, primals, tangents, params) -> (results, tangents).
        nondiff: why there is no derivative. The results then have no tangent.
        batch: (primitive, size, operands, flags, params) -> list of results, each with the batch axis at 0. Operands
            whose flag is set have it at 0, the others have none. Carriers return (results, flags). Elementwise
            operations batch themselves.
        multiple: the operation has a list of results.
        carrier: the operation carries jaxprs in its parameters.
        effects: (params) -> frozenset of effects; an equation with effects is never dropped.
        stage: (args, params) -> (args, params), applied before the equation is recorded.
        prune: (equation, used) -> equation or None, with fewer results, for carriers.
        run: for carriers of Python functions: (*operands, **params) -> results, outside any trace.
        show: (params) -> params as printed.
        read: (params as printed, operand types, result types) -> params; the inverse of `show`.
    """

    __slots__ = (
        "__weakref__",
        "_types",
        "batch",
        "bilinear",
        "carrier",
        "collective",
        "eager",
        "effects",
        "elementwise",
        "jvp",
        "linear",
        "linearize",
        "lower",
        "multiple",
        "name",
        "nondiff",
        "partials",
        "prune",
        "read",
        "run",
        "show",
        "stage",
        "story",
        "transpose",
        "type",
    )

    def __init__(
        self,
        name: str,
        *,
        type: Rule,
        lower: Rule | dict[str, Rule] | None,
        partials: Sequence[Any] | None = None,
        linear: Sequence[int] | str | None = None,
        bilinear: Sequence[int] | None = None,
        transpose: Rule | None = None,
        jvp: Rule | None = None,
        linearize: Rule | None = None,
        nondiff: str | None = None,
        batch: Rule | None = None,
        elementwise: bool = False,
        multiple: bool = False,
        carrier: bool = False,
        collective: Rule | None = None,
        effects: Rule | None = None,
        stage: Rule | None = None,
        prune: Rule | None = None,
        run: Rule | None = None,
        show: Rule | None = None,
        read: Rule | None = None,
    ):
        stories = {"partials": partials, "linear": linear, "bilinear": bilinear, "linearize": linearize}
        self.story = _only_story(name, {**stories, "jvp": None if linearize else jvp, "nondiff": nondiff})
        _check_complete(name, transpose is None and (linear or bilinear) is not None, batch is None and not elementwise)
        # The rules are Any: each kind has its own signature, given in the class docstring.
        self.name = name
        self.type = type
        self.lower: Any = lower
        self.partials: Any = tuple(partials) if partials is not None else None
        self.linear: Any = linear
        self.bilinear: Any = tuple(bilinear) if bilinear is not None else None
        self.transpose: Any = transpose
        self.jvp: Any = jvp
        self.linearize: Any = linearize
        self.nondiff = nondiff
        self.batch: Any = batch
        self.elementwise = elementwise
        self.multiple = multiple
        self.carrier = carrier
        self.collective: Any = collective
        self.effects: Any = effects
        self.stage: Any = stage
        self.prune: Any = prune
        self.run: Any = run
        self.show: Any = show
        self.read: Any = read
        self.eager: dict[Any, Any] = {}
        self._types: dict[Any, tuple[avals.ShapedArray, ...]] = {}
        registry[name] = self

    def __call__(self, *args: Any, **params: Any) -> Any:
        try:
            outs = current.trace.apply(self, args, params)
            return outs if self.multiple else outs[0]
        except Exception as error:
            tracebacks.clean(error)
            raise

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the operation under the current trace."""
        return self(*args, **params)

    def types(self, operands: tuple[avals.ShapedArray, ...], params: dict[str, Any]) -> tuple[avals.ShapedArray, ...]:
        """Types of the results. Remembered, since most programs ask the same few questions again and again."""
        if self.carrier:  # a memo keyed by params would keep every jaxpr alive
            return tuple(self.type(*operands, **params))
        key = (operands, tuple(params.items())) if params else operands
        try:
            found = self._types.get(key)
        except TypeError:  # unhashable parameter
            found, key = None, None
        if found is None:
            result = self.type(*operands, **params)
            found = tuple(result) if self.multiple else (result,)
            if self.collective is None and any(a.varying for a in operands):
                varying = frozenset().union(*[a.varying for a in operands])
                found = tuple([a.update(varying=varying) for a in found])
            if key is not None:
                if len(self._types) >= _MEMO_LIMIT:
                    self._types.clear()
                self._types[key] = found
        return found

    def effects_of(self, params: dict[str, Any]) -> frozenset:
        """Effects of an equation with these parameters."""
        return self.effects(params) if self.effects is not None else avals.NO_AXES

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return named, (self.name,)


def _only_story(name: str, stories: dict[str, Any]) -> str:
    told = [story for story, given in stories.items() if given is not None]
    if len(told) != 1:
        raise TypeError(
            f"Primitive {name!r} has the derivative stories {told or 'none'}; give exactly one of partials, linear, "
            "bilinear, jvp, linearize (with jvp) or nondiff='why'."
        )
    return told[0]


def _check_complete(name: str, lacks_transpose: bool, lacks_batch: bool) -> None:
    if lacks_transpose:
        raise TypeError(f"Primitive {name!r} is declared linear; give its transpose rule.")
    if lacks_batch:
        raise TypeError(f"Primitive {name!r} has no batch rule; give batch=, or elementwise=True.")


ALL = "all"


def is_unknown(operand: Any) -> bool:
    """Whether a transpose rule's operand is one that the equation is linear in: rules get a variable for those."""
    return operand.__class__ is Var


# Every primitive by name: for parsing jaxprs, for tests over all of them, and for unpickling.
registry: dict[str, Primitive] = {}


def named(name: str) -> Primitive:
    """The primitive of that name."""
    return registry[name]
