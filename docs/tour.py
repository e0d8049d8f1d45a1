"""A tour of the core: the whole machine rebuilt in one file, to be read from top to bottom and run.

    python docs/tour.py

What stands here is the plan of the library with everything taken away that hides it: NumPy evaluates, the only number
type is float32 (and bool for comparisons), a function takes and returns single arrays, and speed does not matter. The
words are the library's own, and each heading says where the real thing lives.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from jaxlib import _jax, utils, xla_client

Operand: TypeAlias = Any  # a Python number, a NumPy array or a Tracer: no static type covers the three
Params: TypeAlias = dict[str, Any]

# ---- 1. Types and jaxprs (ir/avals.py, ir/jaxpr.py, ir/show.py) ------------------------------------------------------
# The language is small. A `Var` is a name with a type, a `Literal` a number, an `Eqn` one operation, a `Jaxpr` a
# function: inputs, equations in order, outputs. Arrays that a function closed over enter by `consts`, so that no array
# is ever written into a program. Two equal types are one object: comparing types costs nothing, and they can be keys.


@dataclasses.dataclass(eq=False, slots=True)
class ShapedArray:
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype.replace('float', 'f')}[{','.join(map(str, self.shape))}]"


@functools.cache
def aval_with(shape: tuple[int, ...], dtype: str) -> ShapedArray:
    """The one type of this shape and dtype."""
    return ShapedArray(shape, dtype)


@dataclasses.dataclass(eq=False, slots=True)
class Var:
    aval: ShapedArray


@dataclasses.dataclass(eq=False, slots=True)
class Literal:
    value: float
    aval: ClassVar[ShapedArray] = aval_with((), "float32")


Atom: TypeAlias = Var | Literal


@dataclasses.dataclass(eq=False, slots=True)
class Eqn:
    primitive: "Primitive"
    inputs: list[Atom]
    params: Params
    outputs: list[Var]


@dataclasses.dataclass(eq=False, slots=True)
class Jaxpr:
    consts: list[Var]
    inputs: list[Var]
    eqns: list[Eqn]
    outputs: list[Atom]
    memo: dict[Any, Any] = dataclasses.field(default_factory=dict)  # transforms of this jaxpr, see section 8

    def closed(self) -> "Jaxpr":
        """The same function with its constants as leading inputs."""
        return Jaxpr([], self.consts + self.inputs, self.eqns, self.outputs)

    def __str__(self) -> str:
        return "\n".join(show(self, {}))


def show(jaxpr: Jaxpr, names: dict[Var, str], width: int = 80) -> list[str]:
    """Lines of `jaxpr` in JAX's notation; `names` holds the letters given so far."""

    def name(atom: Atom) -> str:
        if isinstance(atom, Literal):
            return f"{atom.value}:{atom.aval}"
        number = len(names)
        return names.setdefault(atom, (chr(97 + number // 26) if number > 25 else "") + chr(97 + number % 26))

    def typed(variables: list[Var]) -> str:
        return " ".join(f"{name(v)}:{v.aval}" for v in variables)

    def show_eqn(eqn: Eqn) -> list[str]:
        outputs, operands = typed(eqn.outputs), " ".join(map(name, eqn.inputs))
        params = []
        for key, value in sorted(eqn.params.items(), key=lambda item: isinstance(item[1], Jaxpr)):  # jaxprs last
            first, *rest = show(value, names, width - 6 - len(f"{key}=")) if isinstance(value, Jaxpr) else [str(value)]
            params += [f"{key}={first}", *rest]
        bracket = f"[{' '.join(params)}]" if params else ""
        start = f"{outputs} = {eqn.primitive.name}"
        line = f"{start}{bracket} {operands}"
        if len(line) <= width - 4:
            return [line]
        return [f"{start}[", *(f"  {param}" for param in params), f"] {operands}"]

    head = f"{{ lambda {typed(jaxpr.consts)}; {typed(jaxpr.inputs)}. let"
    body = [show_eqn(eqn) for eqn in jaxpr.eqns]
    results = ", ".join(map(name, jaxpr.outputs)) + "," * (len(jaxpr.outputs) == 1)
    tail = f"in ({results}) }}"
    line = f"{head} {'; '.join(lines[0] for lines in body)} {tail}"
    if len(line) <= width and all(len(lines) == 1 for lines in body):
        return [line]
    return [head, *(f"    {line}" for lines in body for line in lines), f"  {tail}"]


# ---- 2. Primitives, and the current trace (ir/primitive.py, ir/trace.py, runtime/eager.py) ---------------------------
# All that is known of an operation is one record, a `Primitive`. Calling it asks the current trace to apply it; which
# trace that is sits in one slot per thread. So a transform is a trace: it runs the user's function with itself in the
# slot, on operands that it will know again, its tracers. It holds the trace that was current before, its `parent`, and
# hands its own operations down to it: that is all of nesting. An operand that is not a trace's own, be it an array or
# the tracer of an outer trace, is a constant to it. `Eval`, the trace at the bottom, computes.


class Trace:
    def apply(self, primitive: "Primitive", operands: Sequence[Operand], params: Params) -> list[Operand]:
        raise NotImplementedError


class Eval(Trace):
    def apply(self, primitive: "Primitive", operands: Sequence[Operand], params: Params) -> list[Operand]:
        results = primitive.evaluate(*map(concrete, operands), **params)
        return results if primitive.multiple else [results]


class Slot(threading.local):
    trace: Trace = Eval()


current = Slot()


@contextlib.contextmanager
def entered(trace: Trace) -> Iterator[None]:
    outer, current.trace = current.trace, trace
    try:
        yield
    finally:
        current.trace = outer


@dataclasses.dataclass(eq=False, slots=True)
class Primitive:
    name: str
    type: Callable[..., Any]  # (*avals, **params) -> aval, or the list of them where `multiple`
    evaluate: Callable[..., Any]  # (*arrays, **params) -> array
    derivative: "Derivative"  # section 4
    batch: Callable[..., list[Operand]]  # section 7
    lower: str  # section 9
    multiple: bool = False

    def __call__(self, *operands: Operand, **params: Any) -> Any:
        results = current.trace.apply(self, operands, params)
        return results if self.multiple else results[0]


class Tracer:
    """Stands for an array while a function is transformed; its operators come from the table of section 5."""

    __array_ufunc__ = None  # NumPy's operators then leave `array * tracer` to the tracer

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self.trace, self.aval = trace, aval

    def __bool__(self) -> bool:
        raise TypeError(f"bool: {self.aval} has no value while it is traced. Branch on shapes or on concrete arrays.")


def owns(trace: Trace, x: Operand) -> bool:
    return isinstance(x, Tracer) and x.trace is trace


def is_number(x: Operand) -> bool:
    return isinstance(x, (int, float))


def concrete(x: Operand) -> np.ndarray:
    if isinstance(x, Tracer):
        raise TypeError(f"evaluate: a tracer of type {x.aval} has left its transform. Return it from the function.")
    array = np.asarray(x)
    return array if array.dtype == bool else array.astype(np.float32, copy=False)


def aval_of(x: Operand) -> ShapedArray:
    if isinstance(x, (Tracer, Var, Literal)):
        return x.aval
    array = concrete(x)
    return aval_with(array.shape, array.dtype.name)


# ---- 3. Stage: make_jaxpr (ir/trace.py, ir/jaxpr.py) -----------------------------------------------------------------
# `Stage` computes nothing: it records an equation and answers with tracers that stand for its outputs. It has no
# parent, since what it wrote down can be run by anyone.


class StageTracer(Tracer):
    def __init__(self, trace: "Stage", var: Var) -> None:
        super().__init__(trace, var.aval)
        self.var = var


class Stage(Trace):
    def __init__(self) -> None:
        self.inputs: list[Var] = []
        self.eqns: list[Eqn] = []
        self.consts: dict[int, tuple[Var, Operand]] = {}  # by id; the pair keeps the operand, and so its id, alive

    def input(self, aval: ShapedArray) -> StageTracer:
        self.inputs.append(Var(aval))
        return StageTracer(self, self.inputs[-1])

    def atom(self, x: Operand) -> Atom:
        if owns(self, x):
            return x.var
        if is_number(x):
            return Literal(float(x))
        return self.consts.setdefault(id(x), (Var(aval_of(x)), x))[0]

    def apply(self, primitive: Primitive, operands: Sequence[Operand], params: Params) -> list[Operand]:
        inputs = [self.atom(x) for x in operands]
        types = primitive.type(*[atom.aval for atom in inputs], **params)
        outputs = [Var(aval) for aval in (types if primitive.multiple else [types])]
        self.eqns.append(Eqn(primitive, inputs, params, outputs))
        return [StageTracer(self, var) for var in outputs]

    def finish(self, results: Sequence[Operand]) -> tuple[Jaxpr, list[Operand]]:
        """The jaxpr that computes `results`, less what they do not need, and the values of its constants."""
        outputs = [self.atom(x) for x in results]
        needed, eqns = set(outputs), []
        for eqn in reversed(self.eqns):
            if not needed.isdisjoint(eqn.outputs):
                eqns.append(eqn)
                needed.update(eqn.inputs)
        consts = [(var, x) for var, x in self.consts.values() if var in needed]
        return Jaxpr([var for var, _ in consts], self.inputs, eqns[::-1], outputs), [x for _, x in consts]


def stage(fun: Callable[..., Operand], avals: Sequence[ShapedArray]) -> tuple[Jaxpr, list[Operand]]:
    trace = Stage()
    with entered(trace):
        result = fun(*[trace.input(aval) for aval in avals])
    return trace.finish([result])


def make_jaxpr(fun: Callable[..., Operand]) -> Callable[..., Jaxpr]:
    return lambda *operands: stage(fun, [aval_of(x) for x in operands])[0]


def eval_jaxpr(jaxpr: Jaxpr, operands: Sequence[Operand]) -> list[Operand]:
    """Results of `jaxpr` under the current trace; `operands` for its constants come first."""
    values: dict[Atom, Operand] = dict(zip(jaxpr.consts + jaxpr.inputs, operands, strict=True))

    def read(atom: Atom) -> Operand:
        return atom.value if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        results = current.trace.apply(eqn.primitive, [read(atom) for atom in eqn.inputs], eqn.params)
        values.update(zip(eqn.outputs, results, strict=True))
    return [read(atom) for atom in jaxpr.outputs]


# ---- 4. Differentiate: jvp (transforms/differentiate.py) -------------------------------------------------------------
# A tracer of `Differentiate` is a pair, a primal and a tangent. Of every operation the primal part goes to `parent`
# and the tangent part to `tangent`, another trace. With `tangent = parent` this is forward mode; section 6 puts
# something else there. A tangent that is zero is absent: the result is then the bare primal, not a pair.
#
# How the tangent part looks is the derivative story of the primitive, and it has exactly one:
#   partials  elementwise; the partial derivative for each operand, from the result and the operands
#   linear    jointly in all operands: the tangent of A x is A t
#   bilinear  in each of its operands: the product rule
#   jvp       anything else, written with ordinary functions
#   nondiff   no derivative
# What occurs in tangent parts must be linear, and has a `transpose` rule: that is what section 6 walks back with.


class Derivative(NamedTuple):
    push: Callable[..., tuple[list[Operand], list[Operand | None]]]  # run with the trace's parent current
    transpose: Callable[..., Sequence[Operand | None]] | None = None


class DifferentiateTracer(Tracer):
    def __init__(self, trace: "Differentiate", primal: Operand, tangent: Operand) -> None:
        super().__init__(trace, aval_of(primal))
        self.primal, self.tangent = primal, tangent


class Differentiate(Trace):
    def __init__(self, parent: Trace, tangent: Trace) -> None:
        self.parent, self.tangent = parent, tangent

    def split(self, x: Operand) -> tuple[Operand, Operand | None]:
        return (x.primal, x.tangent) if owns(self, x) else (x, None)

    def join(self, primal: Operand, tangent: Operand | None) -> Operand:
        return primal if tangent is None else DifferentiateTracer(self, primal, tangent)

    def apply(self, primitive: Primitive, operands: Sequence[Operand], params: Params) -> list[Operand]:
        primals = [self.split(x)[0] for x in operands]
        tangents = [self.split(x)[1] for x in operands]
        with entered(self.parent):
            if all(t is None for t in tangents):
                return self.parent.apply(primitive, primals, params)
            results, result_tangents = primitive.derivative.push(self, primitive, primals, tangents, params)
        return [self.join(*pair) for pair in zip(results, result_tangents, strict=True)]


def story(tangent: Callable[..., Operand | None], transpose: Callable[..., Any] | None = None) -> Derivative:
    """Derivative whose tangent part is `tangent(primitive, y, primals, tangents, params)`."""

    def push(trace: Differentiate, primitive: Primitive, primals: list, tangents: list, params: Params) -> tuple:
        y = primitive(*primals, **params)
        with entered(trace.tangent):  # primal operations in a rule are no matter: a Tape tells them apart
            return [y], [tangent(primitive, y, primals, tangents, params)]

    return Derivative(push, transpose)


def partials(*rules: Callable[..., Operand]) -> Derivative:
    def tangent(primitive: Primitive, y: Operand, primals: list, tangents: list, params: Params) -> Operand:
        terms = [mul(t, rule(y, *primals)) for t, rule in zip(tangents, rules, strict=True) if t is not None]
        return functools.reduce(add, terms)

    return story(tangent)


def linear(transpose: Callable[..., Any]) -> Derivative:
    def tangent(primitive: Primitive, y: Operand, primals: list, tangents: list, params: Params) -> Operand:
        return primitive(*[0.0 if t is None else t for t in tangents], **params)

    return story(tangent, transpose)


def bilinear(transpose: Callable[..., Any]) -> Derivative:
    def tangent(primitive: Primitive, z: Operand, primals: list, tangents: list, params: Params) -> Operand:
        (x, y), (tx, ty) = primals, tangents
        terms = [(tx, y)] * (tx is not None) + [(x, ty)] * (ty is not None)
        return functools.reduce(add, [primitive(*term, **params) for term in terms])

    return story(tangent, transpose)


def by_jvp(rule: Callable[..., tuple[Operand, Operand]]) -> Derivative:
    def push(trace: Differentiate, primitive: Primitive, primals: list, tangents: list, params: Params) -> tuple:
        with entered(trace.tangent):
            y, t = rule(primals, tangents, **params)
        return [y], [t]

    return Derivative(push)


nondiff = story(lambda primitive, y, primals, tangents, params: None)


def jvp(fun: Callable[..., Operand], primals: Sequence[Operand], tangents: Sequence[Operand]) -> tuple:
    """Result of `fun` and its derivative along `tangents`."""
    trace = Differentiate(current.trace, current.trace)
    with entered(trace):
        result = fun(*map(trace.join, primals, tangents))
    y, t = trace.split(result)
    return y, np.zeros(aval_of(y).shape, np.float32) if t is None else t


# Where the primal is a plain array, Python may look at it. So `if x > 0:` works under `grad`: a comparison has no
# tangent, and its result is a bare NumPy bool. Under `jit` and `vmap` there is no one answer, and `__bool__` says so.

# ---- 5. A handful of operations (ops/, a file for each family) -------------------------------------------------------
# Families are tables. An elementwise operation is a row: name, NumPy's function, its story, StableHLO's name. Operands
# have one shape, but a Python number may stand among arrays; other scalars are broadcast in the open, by an equation,
# so that their derivative is the transpose of that equation and no rule has to think of it.


def same_type(*avals: ShapedArray) -> ShapedArray:
    largest = max(avals, key=lambda aval: len(aval.shape))
    if any(aval.dtype != "float32" or aval.shape not in ((), largest.shape) for aval in avals):
        raise TypeError(f"elementwise: operands {', '.join(map(str, avals))} differ. Broadcast or convert one of them.")
    return largest


def bool_type(*avals: ShapedArray) -> ShapedArray:
    return aval_with(same_type(*avals).shape, "bool")


def elementwise(name: str, ufunc: Callable, derivative: Derivative, hlo: str, type: Callable = same_type) -> Callable:
    lower = f"stablehlo.{hlo} {{operands}} : ({{types}}) -> {{results}}"
    primitive = Primitive(name, type, ufunc, derivative, batch_elementwise, lower)

    def apply(*operands: Operand) -> Operand:
        shape = np.broadcast_shapes(*(aval_of(x).shape for x in operands))
        return primitive(*[x if is_number(x) else broadcast_to(x, shape) for x in operands])

    return apply


def broadcast_to(x: Operand, shape: tuple[int, ...]) -> Operand:
    """`x` repeated along new leading axes, up to `shape`."""
    rank = len(aval_of(x).shape)
    dims = tuple(range(len(shape) - rank, len(shape)))
    return x if rank == len(shape) else broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def batch_elementwise(primitive: Primitive, size: int, operands: list, batched: list, params: Params) -> list[Operand]:
    full = [x if b or is_number(x) else broadcast_to(x, (size, *aval_of(x).shape)) for x, b in zip(operands, batched)]
    return [primitive(*full, **params)]


def transpose_mul(ct: Operand, x: Operand, y: Operand) -> tuple[Operand | None, Operand | None]:
    return mul(ct, y) if isinstance(x, Var) else None, mul(x, ct) if isinstance(y, Var) else None


def logistic_jvp(primals: list[Operand], tangents: list[Operand]) -> tuple[Operand, Operand]:
    y = logistic(*primals)
    return y, tangents[0] * (y * (1.0 - y))


sin = elementwise("sin", np.sin, partials(lambda y, x: cos(x)), "sine")
cos = elementwise("cos", np.cos, partials(lambda y, x: neg(sin(x))), "cosine")
exp = elementwise("exp", np.exp, partials(lambda y, x: y), "exponential")
neg = elementwise("neg", np.negative, linear(lambda ct, x: (neg(ct),)), "negate")
add = elementwise("add", np.add, linear(lambda ct, x, y: (ct, ct)), "add")
sub = elementwise("sub", np.subtract, linear(lambda ct, x, y: (ct, neg(ct))), "subtract")
mul = elementwise("mul", np.multiply, bilinear(transpose_mul), "multiply")
logistic = elementwise("logistic", lambda x: 1 / (1 + np.exp(-x)), by_jvp(logistic_jvp), "logistic")
gt = elementwise("gt", np.greater, nondiff, "compare GT,", bool_type)

OPERATORS = {"__neg__": neg, "__add__": add, "__sub__": sub, "__mul__": mul, "__gt__": gt}
REFLECTED = {"__radd__": lambda x, y: add(y, x), "__rsub__": lambda x, y: sub(y, x), "__rmul__": lambda x, y: mul(y, x)}
for operator, function in (OPERATORS | REFLECTED).items():
    setattr(Tracer, operator, function)

# `reduce_sum` and `broadcast_in_dim` are each other's transpose. Dimension `broadcast_dimensions[i]` of the result is
# dimension i of the operand; the others are new.


def without(shape: Sequence[int], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def shifted(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in axes)


reduce_sum = Primitive(
    "reduce_sum",
    type=lambda x, *, axes: aval_with(without(x.shape, axes), x.dtype),
    evaluate=lambda x, *, axes: np.sum(x, axis=axes),
    derivative=linear(lambda ct, x, *, axes: (broadcast_except(axes, ct, x.aval.shape),)),
    batch=lambda p, size, operands, batched, params: [p(*operands, axes=shifted(params["axes"]))],
    lower="stablehlo.reduce({operands} init: %zero) applies stablehlo.add across dimensions = {axes}"
    " : ({types}, tensor<f32>) -> {results}",
)


def broadcast_except(axes: tuple[int, ...], x: Operand, shape: tuple[int, ...]) -> Operand:
    return broadcast_in_dim(x, shape=shape, broadcast_dimensions=without(range(len(shape)), axes))


def new_axes(*, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> tuple[int, ...]:
    return without(range(len(shape)), broadcast_dimensions)


def batch_broadcast(primitive: Primitive, size: int, operands: list, batched: list, params: Params) -> list[Operand]:
    dims = (0, *shifted(params["broadcast_dimensions"]))
    return [primitive(*operands, shape=(size, *params["shape"]), broadcast_dimensions=dims)]


broadcast_in_dim = Primitive(
    "broadcast_in_dim",
    type=lambda x, *, shape, broadcast_dimensions: aval_with(shape, x.dtype),
    evaluate=lambda x, **params: np.broadcast_to(np.expand_dims(x, new_axes(**params)), params["shape"]),
    derivative=linear(lambda ct, x, **params: (reduce_sum(ct, axes=new_axes(**params)),)),
    batch=batch_broadcast,
    lower="stablehlo.broadcast_in_dim {operands}, dims = {broadcast_dimensions} : ({types}) -> {results}",
)


def matvec(w: Operand, x: Operand) -> Operand:
    """Product of a matrix and a vector: an ordinary function, so every transform knows it already."""
    return reduce_sum(mul(w, x), axes=(1,))


# ---- 6. Tape: linearize, vjp and grad (transforms/differentiate.py) --------------------------------------------------
# Reverse mode is forward mode with its tangent half written down and then read backwards. `Tape` is a Stage that
# records only what depends on its inputs, the tangents; everything else goes to `parent` and is computed there. So
# `Differentiate(parent, Tape(parent))` runs the user's function once, on real values if there are any, and leaves a
# linear jaxpr behind. The primal values which that needs are its constants: the residuals.


class Tape(Stage):
    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent = parent

    def apply(self, primitive: Primitive, operands: Sequence[Operand], params: Params) -> list[Operand]:
        if any(owns(self, x) for x in operands):
            return super().apply(primitive, operands, params)
        with entered(self.parent):
            return self.parent.apply(primitive, operands, params)


def record_tangent(fun: Callable[..., Operand], primals: Sequence[Operand]) -> tuple[Operand, Jaxpr, list[Operand]]:
    """Result of `fun`, the linear jaxpr from its tangents to the result's, and the residuals."""
    tape = Tape(current.trace)
    trace = Differentiate(current.trace, tape)
    with entered(trace):
        result = fun(*[trace.join(x, tape.input(aval_of(x))) for x in primals])
    y, t = trace.split(result)
    return y, *tape.finish([np.zeros(aval_of(y).shape, np.float32) if t is None else t])


def linearize(fun: Callable[..., Operand], *primals: Operand) -> tuple[Operand, Callable[..., Operand]]:
    y, jaxpr, residuals = record_tangent(fun, primals)
    return y, lambda *tangents: eval_jaxpr(jaxpr, [*residuals, *tangents])[0]


# A linear jaxpr is a composition of linear maps; its transpose applies their transposes in the opposite order. A value
# that was used twice receives the sum of both cotangents. In what a transpose rule is given, a `Var` stands for an
# operand in which the operation is linear, and everything else is a known value.


def backward_pass(jaxpr: Jaxpr, operands: Sequence[Operand], cotangents: Sequence[Operand]) -> list[Operand | None]:
    """Cotangents of the operands that are Vars; None for the others, and for zero."""
    variables = jaxpr.consts + jaxpr.inputs
    known = {v: x for v, x in zip(variables, operands, strict=True) if not isinstance(x, Var)}
    cts: dict[Var, Operand] = {}

    def read(atom: Atom) -> Operand:
        return atom.value if isinstance(atom, Literal) else known.get(atom, atom)

    def accumulate(atom: Atom, ct: Operand | None) -> None:
        if ct is not None and isinstance(atom, Var) and atom not in known:
            cts[atom] = add(cts[atom], ct) if atom in cts else ct

    linear_eqns = []
    for eqn in jaxpr.eqns:
        inputs = [read(atom) for atom in eqn.inputs]
        if any(isinstance(x, Var) for x in inputs):
            linear_eqns.append((eqn, inputs))
        else:
            known.update(zip(eqn.outputs, current.trace.apply(eqn.primitive, inputs, eqn.params), strict=True))
    for atom, ct in zip(jaxpr.outputs, cotangents, strict=True):
        accumulate(atom, ct)
    for eqn, inputs in reversed(linear_eqns):
        result_cts = [cts.pop(v, None) for v in eqn.outputs]
        if any(ct is not None for ct in result_cts):
            transpose = eqn.primitive.derivative.transpose
            assert transpose is not None, f"{eqn.primitive.name} is on a tape and has no transpose"
            input_cts = transpose(result_cts if eqn.primitive.multiple else result_cts[0], *inputs, **eqn.params)
            for atom, ct in zip(eqn.inputs, input_cts, strict=True):
                accumulate(atom, ct)
    return [cts.get(v) for v in variables]


def vjp(fun: Callable[..., Operand], *primals: Operand) -> tuple[Operand, Callable[[Operand], tuple[Operand, ...]]]:
    """Result of `fun`, and the function from its cotangent to those of `primals`."""
    y, jaxpr, residuals = record_tangent(fun, primals)

    def pullback(ct: Operand) -> tuple[Operand, ...]:
        cts = backward_pass(jaxpr, [*residuals, *jaxpr.inputs], [ct])[len(residuals) :]
        return tuple(
            np.zeros(v.aval.shape, np.float32) if ct is None else ct for v, ct in zip(jaxpr.inputs, cts, strict=True)
        )

    return y, pullback


def grad(fun: Callable[..., Operand]) -> Callable[..., Operand]:
    """Gradient of a scalar function in its first argument."""

    def gradient(x: Operand, *others: Operand) -> Operand:
        y, pullback = vjp(lambda x: fun(x, *others), x)
        if aval_of(y) is not aval_with((), "float32"):
            raise TypeError(f"grad: the function returned {aval_of(y)}. Reduce it to one number, or use vjp.")
        return pullback(1.0)[0]

    return gradient


# ---- 7. Batch: vmap (transforms/batch.py) ----------------------------------------------------------------------------
# A tracer of `Batch` is an array with one more axis than it shows, always axis 0. A batch rule gets the operands with
# that axis, which of them have it, and answers with results that all have it, by means of ordinary operations.


class BatchTracer(Tracer):
    def __init__(self, trace: "Batch", value: Operand) -> None:
        aval = aval_of(value)
        super().__init__(trace, aval_with(aval.shape[1:], aval.dtype))
        self.value = value


class Batch(Trace):
    def __init__(self, parent: Trace, size: int) -> None:
        self.parent, self.size = parent, size

    def apply(self, primitive: Primitive, operands: Sequence[Operand], params: Params) -> list[Operand]:
        batched = [owns(self, x) for x in operands]
        values = [x.value if b else x for x, b in zip(operands, batched, strict=True)]
        with entered(self.parent):
            if not any(batched):
                return self.parent.apply(primitive, values, params)
            results = primitive.batch(primitive, self.size, values, batched, params)
        return [BatchTracer(self, y) for y in results]

    def unwrap(self, x: Operand) -> Operand:
        return x.value if owns(self, x) else broadcast_to(x, (self.size, *aval_of(x).shape))


def vmap(fun: Callable[..., Operand]) -> Callable[..., Operand]:
    """`fun` over the leading axis of all its arguments; what it closes over is shared."""

    def mapped(*operands: Operand) -> Operand:
        trace = Batch(current.trace, aval_of(operands[0]).shape[0])
        with entered(trace):
            result = fun(*[BatchTracer(trace, x) for x in operands])
        return trace.unwrap(result)

    return mapped


# ---- 8. call: a primitive that carries a jaxpr; jit (transforms/jaxprs.py, control/call.py, runtime/jit.py) ----------
# `jit` stages its function once for each tuple of types and then applies one primitive, `call`, whose parameter is the
# jaxpr. Its rules transform that jaxpr, and there is nothing new in them: replay the equations under the trace in
# question, over a Stage as parent, and call what the Stage wrote. The answer is kept in the jaxpr, so a function that
# is called a hundred times is transformed once. Loops and branches are built the same way.


def memoized(transform: Callable[..., Any]) -> Callable[..., Any]:
    """`transform`, run once for each jaxpr and setting."""

    def lookup(jaxpr: Jaxpr, *setting: Any) -> Any:
        key = (transform, *setting)
        if key not in jaxpr.memo:
            jaxpr.memo[key] = transform(jaxpr, *setting)
        return jaxpr.memo[key]

    return lookup


@memoized
def linearize_jaxpr(jaxpr: Jaxpr, active: tuple[bool, ...]) -> tuple[Jaxpr, list[Operand], Jaxpr, list[bool]]:
    """A jaxpr of results and residuals, its constants, the linear jaxpr, and which results have a tangent."""
    forward = Stage()
    tape = Tape(forward)
    trace = Differentiate(forward, tape)
    primals = [forward.input(v.aval) for v in jaxpr.inputs]
    operands = [trace.join(x, tape.input(x.aval) if a else None) for x, a in zip(primals, active, strict=True)]
    with entered(trace):
        pairs = [trace.split(y) for y in eval_jaxpr(jaxpr, operands)]
    linear_jaxpr, residuals = tape.finish([t for _, t in pairs if t is not None])
    forward_jaxpr, consts = forward.finish([y for y, _ in pairs] + residuals)
    return forward_jaxpr.closed(), consts, linear_jaxpr.closed(), [t is not None for _, t in pairs]


@memoized
def transpose_jaxpr(jaxpr: Jaxpr, is_linear: tuple[bool, ...], has_ct: tuple[bool, ...]) -> tuple:
    """The jaxpr from known operands and present cotangents to cotangents, its constants, and which those are."""
    trace = Stage()
    operands = [v if linear else trace.input(v.aval) for v, linear in zip(jaxpr.inputs, is_linear, strict=True)]
    cts = [trace.input(v.aval) if has else None for v, has in zip(jaxpr.outputs, has_ct, strict=True)]
    with entered(trace):
        input_cts = backward_pass(jaxpr, operands, cts)
    transposed, consts = trace.finish([ct for ct in input_cts if ct is not None])
    return transposed.closed(), consts, [ct is not None for ct in input_cts]


@memoized
def batch_jaxpr(jaxpr: Jaxpr, size: int, batched: tuple[bool, ...]) -> tuple[Jaxpr, list[Operand]]:
    parent = Stage()
    trace = Batch(parent, size)
    operands = []
    for v, b in zip(jaxpr.inputs, batched, strict=True):
        full = aval_with((size, *v.aval.shape), v.aval.dtype)
        operands.append(BatchTracer(trace, parent.input(full)) if b else parent.input(v.aval))
    with entered(trace):
        results = eval_jaxpr(jaxpr, operands)
    with entered(parent):
        staged, consts = parent.finish([trace.unwrap(y) for y in results])
    return staged.closed(), consts


def linearize_call(trace: Differentiate, primitive: Primitive, primals: list, tangents: list, params: Params) -> tuple:
    jaxpr, name = params["jaxpr"], params["name"]
    forward, consts, linear_jaxpr, has_tangent = linearize_jaxpr(jaxpr, tuple(t is not None for t in tangents))
    values = call(*consts, *primals, jaxpr=forward, name=name)
    results, residuals = values[: len(jaxpr.outputs)], values[len(jaxpr.outputs) :]
    with entered(trace.tangent):
        present = iter(call(*residuals, *[t for t in tangents if t is not None], jaxpr=linear_jaxpr, name=name))
    return results, [next(present) if has else None for has in has_tangent]


def transpose_call(cts: list[Operand | None], *operands: Operand, jaxpr: Jaxpr, name: str) -> list[Operand | None]:
    is_linear = tuple(isinstance(x, Var) for x in operands)
    transposed, consts, has_ct = transpose_jaxpr(jaxpr, is_linear, tuple(ct is not None for ct in cts))
    known = [x for x in operands if not isinstance(x, Var)]
    present = iter(call(*consts, *known, *[ct for ct in cts if ct is not None], jaxpr=transposed, name=name))
    return [next(present) if has else None for has in has_ct]


def batch_call(primitive: Primitive, size: int, operands: list, batched: list[bool], params: Params) -> list[Operand]:
    jaxpr, consts = batch_jaxpr(params["jaxpr"], size, tuple(batched))
    return call(*consts, *operands, jaxpr=jaxpr, name=params["name"])


call = Primitive(
    "jit",
    type=lambda *avals, jaxpr, name: [atom.aval for atom in jaxpr.outputs],
    evaluate=lambda *operands, jaxpr, name: eval_jaxpr(jaxpr, operands),
    derivative=Derivative(linearize_call, transpose_call),
    batch=batch_call,
    lower="func.call @{jaxpr}({operands}) : ({types}) -> ({results})",
    multiple=True,
)


def jit(fun: Callable[..., Operand]) -> Callable[..., Operand]:
    staged: dict[tuple[ShapedArray, ...], tuple[Jaxpr, list[Operand]]] = {}

    @functools.wraps(fun)
    def compiled(*operands: Operand) -> Operand:
        avals = tuple(aval_of(x) for x in operands)
        if avals not in staged:
            jaxpr, consts = stage(fun, avals)
            staged[avals] = jaxpr.closed(), consts
        jaxpr, consts = staged[avals]
        return call(*consts, *operands, jaxpr=jaxpr, name=fun.__name__)[0]

    return compiled


# ---- 9. Lowering to StableHLO (runtime/lower.py, runtime/compile.py) -------------------------------------------------
# XLA compiles StableHLO. A jaxpr becomes a function, an equation the line that its primitive's `lower` describes, and a
# jaxpr among the parameters another function, once however often it is called.


def tensor(aval: ShapedArray) -> str:
    return f"tensor<{''.join(f'{n}x' for n in aval.shape)}{'i1' if aval.dtype == 'bool' else 'f32'}>"


def lower_jaxpr(jaxpr: Jaxpr, name: str, functions: dict[Jaxpr, str]) -> None:
    """Adds the text of `jaxpr`, and of those it calls, to `functions`; symbols are `name` with a number."""
    names = {v: f"%a{i}" for i, v in enumerate(jaxpr.inputs)}
    lines = ["%zero = stablehlo.constant dense<0.0> : tensor<f32>"]

    def read(atom: Atom, aval: ShapedArray) -> str:
        if isinstance(atom, Var):
            return names[atom]
        lines.append(f"%c{len(lines)} = stablehlo.constant dense<{atom.value:.8e}> : {tensor(aval)}")
        return f"%c{len(lines) - 1}"

    def write(param: Any) -> Any:
        if not isinstance(param, Jaxpr):
            return list(param) if isinstance(param, tuple) else param
        if param not in functions:
            lower_jaxpr(param, f"{name}_{len(functions)}", functions)
        return functions[param].split("@")[1].split("(")[0]

    for eqn in jaxpr.eqns:
        avals = [atom.aval for atom in eqn.inputs]
        if eqn.primitive.batch is batch_elementwise:  # StableHLO wants a number in the shape of the arrays beside it
            avals = [aval_with(eqn.outputs[0].aval.shape, aval.dtype) for aval in avals]
        operands = ", ".join(map(read, eqn.inputs, avals))
        params = {key: write(p) for key, p in eqn.params.items()}
        types, results = (", ".join(map(tensor, group)) for group in (avals, [v.aval for v in eqn.outputs]))
        text = eqn.primitive.lower.format(operands=operands, types=types, results=results, **params)
        names |= {v: f"%r{len(lines)}#{i}" for i, v in enumerate(eqn.outputs)}
        lines.append(f"%r{len(lines)}:{len(eqn.outputs)} = {text}")
    outputs, types = ", ".join(read(x, x.aval) for x in jaxpr.outputs), ", ".join(tensor(x.aval) for x in jaxpr.outputs)
    inputs = ", ".join(f"{names[v]}: {tensor(v.aval)}" for v in jaxpr.inputs)
    body = "\n    ".join([*lines, f"func.return {outputs} : {types}"])
    functions[jaxpr] = f"  func.func @{name}({inputs}) -> ({types}) {{\n    {body}\n  }}"


def lower(jaxpr: Jaxpr) -> str:
    functions: dict[Jaxpr, str] = {}
    lower_jaxpr(jaxpr.closed(), "main", functions)
    return "module @tour {\n" + "\n".join(functions.values()) + "\n}"


def run_on_xla(module: str, operands: Sequence[Operand]) -> list[np.ndarray]:
    utils.absl_set_min_log_level(1)
    client = xla_client.make_cpu_client()
    devices = client.local_devices()[:1]
    executable = client.compile_and_load(module, _jax.DeviceList(tuple(devices)), _jax.CompileOptions())
    buffers = [_jax.dlpack_managed_tensor_to_buffer(concrete(x).__dlpack__(), devices[0], None) for x in operands]
    return [np.array(y) for y in executable.execute(buffers)]


# ---- 10. The tour itself ---------------------------------------------------------------------------------------------


def absolute(x: Operand) -> Operand:
    return x if x > 0.0 else -x


def layer(w: Operand, x: Operand) -> Operand:
    return logistic(matvec(w, x))


def loss(w: Operand, x: Operand) -> Operand:
    hidden = jit(layer)
    error = hidden(w, hidden(w, x)) - 0.5
    return reduce_sum(error * error, axes=(0,))


def main() -> None:
    x = np.linspace(0.1, 0.4, 4, dtype=np.float32)
    xs = np.stack([x, 2 * x, 3 * x])
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 16

    print("sin:          ", make_jaxpr(sin)(x))
    assert str(make_jaxpr(sin)(x)) == "{ lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }"

    print("jvp:          ", *jvp(sin, (x,), (np.ones_like(x),)))
    second = grad(grad(lambda x: x * sin(x)))
    print("grad of grad: ", second(np.float32(1)))
    assert np.isclose(second(np.float32(1)), 2 * np.cos(1) - np.sin(1))
    print("if under grad:", grad(absolute)(np.float32(3)), grad(absolute)(np.float32(-3)))

    # A network that calls the same jitted layer twice: its gradient calls the layer's forward and backward jaxprs.
    print("grad of loss: ", make_jaxpr(grad(loss))(w, x), sep="\n")
    expected = np.stack([grad(loss)(w, row) for row in xs])
    batched_loss = jit(lambda ws, rows: reduce_sum(vmap(jit(loss))(ws, rows), axes=(0,)))
    orders = {
        "vmap(grad)": vmap(lambda row: grad(loss)(w, row)),
        "vmap(jit(grad))": vmap(lambda row: jit(grad(loss))(w, row)),
        "jit(vmap(grad))": jit(vmap(lambda row: grad(loss)(w, row))),
        "grad(jit(sum(vmap(jit))))": lambda rows: grad(batched_loss)(np.stack([w, w, w]), rows),
    }
    for name, fun in orders.items():
        assert np.allclose(fun(xs), expected, atol=1e-6), name
    print("one gradient, by", ", ".join(orders))

    # Reverse mode is the transpose of forward mode: <u, J v> = <J' u, v>.
    u, v = np.cos(x), np.sin(3 * x)
    (vjp_u,) = vjp(lambda x: layer(w, x), x)[1](u)
    assert np.isclose(u @ jvp(lambda x: layer(w, x), (x,), (v,))[1], vjp_u @ v)

    module = lower(make_jaxpr(grad(loss))(w, x))
    print("StableHLO:    ", module.count("func.func"), "functions,", module.count("func.call"), "calls")
    assert np.allclose(run_on_xla(module, [w, x])[0], grad(loss)(w, x), atol=1e-6)
    print("XLA agrees with NumPy")


if __name__ == "__main__":
    main()
