"""Functions with derivatives of their own: custom_jvp, custom_vjp, custom_gradient, and linear_call below them.

The user's functions stay Python until a transform needs them: only recording traces, and only the primal one. In
reverse mode a custom_vjp is one linear equation on the tape, of which the transpose is the user's backward function.
Forward mode through it uses the forward rule where one was given, else the transpose of the backward function, which is
linear in the cotangent.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control.parts import fill, given, present
from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import Primitive, is_unknown
from morphax.ir.trace import close, stage
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.ops.family import typeof
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad
from morphax.transforms.api import as_array
from morphax.transforms.flat import canonical, check_callable, check_leaf, check_output, name_of

# ---- linear_call: a linear map known by two functions ----------------------------------------------------------------


class Linear:
    """`forward(residuals, tangents)` and `transpose(residuals, cotangents)`, of flat lists; `types` of the results.

    They may close over types and programs only: every value comes through the operands. Cotangents that are absent
    are None.
    """

    __slots__ = ("forward", "memo", "transpose", "types")

    def __init__(
        self,
        forward: Callable[[list[Any], list[Any]], list[Any]],
        transpose: Callable[[list[Any], list[Any]], list[Any]],
        types: tuple[ShapedArray, ...],
    ):
        self.forward = forward
        self.transpose = transpose
        self.types = types
        self.memo: dict[Any, tuple[Jaxpr, list[Any]]] = {}


def _linear_run(*operands: Any, rule: Linear, residual_count: int) -> list[Any]:
    return rule.forward(list(operands[:residual_count]), list(operands[residual_count:]))


def _linear_lower(low: Any, ins: Any, outs: Any, *operands: Any, rule: Linear, residual_count: int) -> list[Any]:
    key = tuple(ins)
    found = rule.memo.get(key)
    if found is None:
        found = stage(lambda *xs: _linear_run(*xs, rule=rule, residual_count=residual_count), key)
        rule.memo[key] = found
    jaxpr, consts = found
    values = [low.constant(np.asarray(c), typeof(c)) for c in consts]
    return low.equations(close(jaxpr), [*values, *operands])


def _linear_linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: Any) -> Any:
    """Where only the tangents vary it is linear and stays one equation; else differentiate what it computes."""
    rule, count = params["rule"], params["residual_count"]
    if not any(given(tangents[:count])):
        outs = linear_call_p(*primals, **params)
        current.trace = d.tangent
        filled = [ew.zeros(typeof(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        if d.tangent is d.parent:
            return outs, linear_call_p(*primals[:count], *filled[count:], **params)
        return outs, d.tape.emit(linear_call_p, [*primals[:count], *filled[count:]], params)
    current.trace = d
    duals = [p if t is None else ad.DualTracer(d, p, t) for p, t in zip(primals, tangents, strict=True)]
    outs = rule.forward(duals[:count], duals[count:])
    return tuple(zip(*map(d.split, outs), strict=True)) if outs else ((), ())


def _linear_transpose(cts: Sequence[Any], *operands: Any, rule: Linear, residual_count: int) -> list[Any]:
    back = rule.transpose(list(operands[:residual_count]), list(cts))
    unknown = operands[residual_count:]
    return [None] * residual_count + [ct if is_unknown(x) else None for ct, x in zip(back, unknown, strict=True)]


def _over(trace: Any, fun: Callable[..., Sequence[Any]], flags: Sequence[bool]) -> Callable[..., list[Any]]:
    """`fun` on batched operands; all results get a batch axis."""

    def run(*operands: Any) -> list[Any]:
        outs, mine = batching.again(trace, fun, operands, flags)
        return [o if m or o is None else batching.batched(o, trace.size) for o, m in zip(outs, mine, strict=True)]

    return run


def _summed(cts: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """Cotangents of operands that all examples share are added up."""
    return [
        ct if ct is None or shared_not else ew.reduce_sum(ct, axes=(0,))
        for ct, shared_not in zip(cts, flags, strict=True)
    ]


def _linear_batch(trace: Any, prim: Primitive, operands: Any, flags: Any, params: Any) -> Any:
    rule, count = params["rule"], params["residual_count"]
    linear_flags = list(flags[count:])

    def forward(residuals: list[Any], tangents: list[Any]) -> list[Any]:
        return _over(trace, lambda *xs: rule.forward(list(xs[:count]), list(xs[count:])), flags)(*residuals, *tangents)

    def transpose(residuals: list[Any], cts: list[Any]) -> list[Any]:
        has = given(cts)
        run = _over(
            trace,
            lambda *xs: rule.transpose(list(xs[:count]), fill(has, xs[count:])),
            [*flags[:count], *[True] * sum(has)],
        )
        return _summed(run(*residuals, *present(cts)), linear_flags)

    types = tuple([ShapedArray((trace.size, *t.shape), t.dtype) for t in rule.types])
    made = Linear(forward, transpose, types)
    return linear_call_p(*operands, rule=made, residual_count=count), [True] * len(types)


linear_call_p = Primitive(
    "linear_call",
    type=lambda *operands, rule, residual_count: rule.types,
    lower=_linear_lower,
    linearize=_linear_linearize,
    transpose=_linear_transpose,
    batch=_linear_batch,
    run=_linear_run,
    multiple=True,
    carrier=True,
)

# ---- the rules of a custom function, on flat lists -------------------------------------------------------------------


class SymbolicZero:
    """A tangent or cotangent that is known to be zero: it has a type, and no elements."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    @staticmethod
    def from_primal_value(val: Any) -> "SymbolicZero":
        """The zero tangent of a value."""
        return SymbolicZero(avals.tangent(avals.typeof(val)))

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


class CustomVJPPrimal:
    """An argument of the forward rule under `symbolic_zeros`: its value, and whether it is being differentiated."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    shape = property(lambda self: avals.typeof(self.value).shape)
    dtype = property(lambda self: avals.typeof(self.value).dtype)


class Rules:
    """`fun(*xs)`; `jvp(xs, tangents)`; `fwd(xs, perturbed)` and `bwd(residuals, cts)`: flat lists, None for zeros.

    `const_count` leading operands are values that the primal function closed over.
    """

    __slots__ = ("bwd", "const_count", "fun", "fwd", "jvp", "name")

    def __init__(self, name: str, fun: Any, jvp: Any, fwd: Any, bwd: Any, const_count: int = 0):
        self.name = name
        self.fun = fun
        self.jvp = jvp
        self.fwd = fwd
        self.bwd = bwd
        self.const_count = const_count

    def __repr__(self) -> str:
        return self.name


def _run(*operands: Any, rules: Rules, call_jaxpr: Jaxpr | None) -> list[Any]:
    return rules.fun(*operands) if call_jaxpr is None else evaluate(call_jaxpr, (), operands)


def _stage(args: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    rules = params["rules"]
    if params["call_jaxpr"] is not None:
        return args, params
    jaxpr, consts = stage(rules.fun, [avals.operand_type(a) for a in args], rules.name)
    closed = Rules(rules.name, None, rules.jvp, rules.fwd, rules.bwd, len(consts))
    return (*consts, *args), {"rules": closed, "call_jaxpr": close(jaxpr)}


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    rules = params["rules"]
    count = rules.const_count
    if any(given(tangents[:count])):
        raise TypeError(
            f"{rules.name} has a custom derivative and closes over a value that is being differentiated. Pass that "
            "value as an argument."
        )
    current.trace = d.parent
    xs, ts = [as_array(x) for x in primals[count:]], list(tangents[count:])  # the user's rule gets no bare numbers
    forward_mode = d.tangent is d.parent
    if rules.jvp is not None and (rules.bwd is None or forward_mode):
        current.trace = d.tangent
        outs, out_ts = rules.jvp(xs, [t if t is None else as_array(t) for t in ts])
        _check_outputs(rules.name, "JVP", outs, params["call_jaxpr"])
        return outs, out_ts
    if rules.fwd is None:
        raise AttributeError(f"no derivative rule was given for {rules.name}. Call its defjvp or defvjp.")
    live = given(ts)
    current.trace = d.parent
    outs, residuals = rules.fwd(xs, live)
    _check_outputs(rules.name, "forward", outs, params["call_jaxpr"])
    # No tangent for integer results.
    has = tuple([dtypes.is_inexact(typeof(o).dtype) for o in outs])
    out_types = tuple([avals.tangent(typeof(o)) for o, h in zip(outs, has, strict=True) if h])

    def transpose(residuals: list[Any], cts: list[Any]) -> list[Any]:
        return [ct for ct, on in zip(rules.bwd(residuals, fill(has, cts)), live, strict=True) if on]

    def forward(residuals: list[Any], given_: list[Any]) -> list[Any]:
        return _transposed_backward(rules, transpose, residuals, given_, out_types)

    rule = Linear(forward, transpose, out_types)
    operands = [*residuals, *present(ts)]
    params = {"rule": rule, "residual_count": len(residuals)}
    if forward_mode:
        return outs, fill(has, linear_call_p(*operands, **params))
    return outs, fill(has, d.tape.emit(linear_call_p, operands, params))


def _check_outputs(name: str, which: str, outs: Sequence[Any], call_jaxpr: Jaxpr | None) -> None:
    """Refuse a rule whose output is not that of the function, where that has been traced."""
    if call_jaxpr is None:
        return
    got = [typeof(o) for o in outs]
    want = call_jaxpr.out_avals
    if [(a.shape, a.dtype) for a in got] != [(a.shape, a.dtype) for a in want]:
        raise TypeError(
            f"{name}: its {which} rule must return the output of the function, of types "
            f"({', '.join(map(str, want))}); it returned ({', '.join(map(str, got))})."
        )


def _transposed_backward(
    rules: Rules, transpose: Any, residuals: list[Any], tangents: list[Any], types: Any
) -> list[Any]:
    """Forward mode from the backward rule, which is linear in the cotangents."""
    tape = ad.Tape(current.trace, rules.name)
    inputs = [tape.input(t) for t in types]
    back = ad.run_under(tape, transpose, residuals, inputs)
    on_tape = [b if b is not None and hasattr(b, "owner") and b.owner is tape else None for b in back]
    try:
        cts = ad.pull_back(tape, on_tape, tangents)
    except TypeError as error:
        raise TypeError(
            f"{rules.name}: forward mode through a custom_vjp transposes its backward function, and that is not linear "
            f"in the cotangent ({error}). Give a forward rule with defjvp."
        ) from None
    return [ew.zeros(t) if ct is None else ct for t, ct in zip(types, cts, strict=True)]


def _batch(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    rules, call_jaxpr = params["rules"], params["call_jaxpr"]
    count = rules.const_count
    own = list(flags[count:])

    def jvp(xs: list[Any], ts: list[Any]) -> Any:
        has = given(ts)
        tangent_flags = [h for h in has if h]
        out_has: list[bool] = []

        def both(*values: Any) -> list[Any]:
            outs, out_ts = rules.jvp(list(values[: len(xs)]), fill(has, values[len(xs) :]))
            out_has[:] = given(out_ts)
            return [*outs, *present(out_ts)]

        results = _over(trace, both, [*own, *tangent_flags])(
            *xs, *[t if f else batching.batched(t, trace.size) for t, f in zip(present(ts), tangent_flags, strict=True)]
        )
        outs = results[: len(out_has)]
        return outs, fill(out_has, results[len(out_has) :])

    def fwd(xs: list[Any], perturbed: Sequence[bool]) -> Any:
        sizes: list[int] = []

        def both(*values: Any) -> list[Any]:
            outs, residuals = rules.fwd(list(values), perturbed)
            sizes[:] = [len(outs)]
            return [*outs, *residuals]

        results = _over(trace, both, own)(*xs)
        return results[: sizes[0]], results[sizes[0] :]

    def bwd(residuals: list[Any], cts: list[Any]) -> list[Any]:
        has = given(cts)
        run = _over(
            trace,
            lambda *xs: rules.bwd(list(xs[: len(residuals)]), fill(has, xs[len(residuals) :])),
            [True] * (len(residuals) + sum(has)),
        )
        return _summed(run(*residuals, *present(cts)), own)

    made = Rules(
        rules.name,
        _over(trace, lambda *xs: _run(*xs, rules=rules, call_jaxpr=call_jaxpr), flags),
        rules.jvp and jvp,
        rules.fwd and fwd,
        rules.bwd and bwd,
        count,
    )
    outs = prim(*operands, rules=made, call_jaxpr=None)
    return outs, [True] * len(outs)


def _carrier(name: str) -> Primitive:
    return Primitive(
        name,
        type=lambda *operands, rules, call_jaxpr: call_jaxpr.out_avals,
        lower=lambda low, ins, outs, *operands, rules, call_jaxpr: low.equations(call_jaxpr, operands),
        linearize=_linearize,
        batch=_batch,
        run=_run,
        stage=_stage,
        multiple=True,
        carrier=True,
        effects=lambda params: params["call_jaxpr"].effects,
        show=lambda params: {"name": params["rules"].name, "call_jaxpr": params["call_jaxpr"]},
    )


custom_jvp_call_p = _carrier("custom_jvp_call")
custom_vjp_call_p = _carrier("custom_vjp_call")

# ---- the decorators --------------------------------------------------------------------------------------------------


def positional(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position."""
    if not kwargs:
        try:
            bound = inspect.signature(fun).bind(*args)
        except (TypeError, ValueError):
            return args
        if len(bound.signature.parameters) == len(args):
            return args
    else:
        try:
            bound = inspect.signature(fun).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name_of(fun)}: {error}.") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{name_of(fun)} has a custom derivative and keyword-only parameters {sorted(bound.kwargs)}. Make them "
            "positional."
        )
    return bound.args


class _Custom:
    """What custom_jvp and custom_vjp share: the split of the arguments, and the names of the function."""

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        check_callable(type(self).__name__, fun)
        wrapped: Any = self  # typing knows only functions as wrappers
        functools.update_wrapper(wrapped, fun)
        self.fun = fun
        named = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        nums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        if named:
            names = list(inspect.signature(fun).parameters)
            nums = (*nums, *[names.index(n) for n in named])
        self.nondiff_argnums = tuple(sorted(set(nums)))

    __name__: str

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        bound: Any = self
        return self if instance is None else functools.partial(bound, instance)

    def _split(self, args: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...], Callable[[Any], list[Any]]]:
        nums = [n % len(args) for n in self.nondiff_argnums] if args else []
        fixed = [args[n] for n in nums]
        dynamic = tuple([a for i, a in enumerate(args) if i not in nums])

        def merge(others: Sequence[Any]) -> list[Any]:
            found = iter(others)
            return [args[i] if i in nums else next(found) for i in range(len(args))]

        return fixed, dynamic, merge


def _flat_result(name: str, fun: Any, out: Any) -> tuple[list[Any], Any]:
    leaves, structure_ = tree.flatten(out)
    if any(not hasattr(x, "aval") for x in leaves):
        check_output(name, fun, out)
    return [as_array(canonical(x)) for x in leaves], structure_


def _tangent_in(x: Any, t: Any, symbolic: bool) -> Any:
    aval = avals.tangent(typeof(x))
    if t is not None:
        return t
    if symbolic:
        return SymbolicZero(aval)
    return np.zeros(aval.shape, dtypes.float0) if aval.dtype == dtypes.float0 else ew.zeros(aval)


def _absent(t: Any) -> bool:
    return t is None or isinstance(t, SymbolicZero) or (isinstance(t, np.ndarray) and t.dtype == dtypes.float0)


class _Path:
    """Where the k-th leaf of a structure stands; worked out only when it is shown."""

    __slots__ = ("k", "structure")

    def __init__(self, structure_: Any, k: int):
        self.structure = structure_
        self.k = k

    def __str__(self) -> str:
        filled = tree.unflatten(self.structure, range(self.structure.num_leaves))
        return next((tree.keystr(keys) for keys, leaf in tree.leaves_with_path(filled) if leaf == self.k), "")


def _fitting(name: str, what: str, path: _Path, t: Any, want: ShapedArray) -> Any:
    """A tangent or cotangent from the user's rule, checked against the type that it must have."""
    if _absent(t):
        return None
    got = check_leaf(name, t, lambda: f"{what}{path}")
    if want.dtype == dtypes.float0:
        return None
    if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
        raise TypeError(f"{name}: {what}{path} must have type {want}; the rule gave {got}. Convert or reshape it.")
    return structure.convert(t, want.dtype) if got.dtype != want.dtype else t


class custom_jvp(_Custom):
    """A function whose derivative is given by a forward rule; reverse mode follows from it.

    Args:
        fun: function of pytrees of arrays.
        nondiff_argnums: positions of arguments that are passed to the rules as they are, first.
        nondiff_argnames: the same by name.

    >>> from morphax import grad, numpy as jnp
    >>> @custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 2.0 * tangents[0]
    >>> float(grad(f)(0.5))
    2.0
    """

    jvp: Callable[..., Any] | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the rule: (*nondiff, primals, tangents) -> (output, tangent of the output).

        With `symbolic_zeros`, tangents known to be zero come as `SymbolicZero`.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give a rule for each argument: (tangent, output, *primals) -> term of the output's tangent; None for zero."""
        if self.nondiff_argnums:
            raise TypeError(f"{self.__name__}: defjvps does not go with nondiff_argnums; use defjvp.")

        def rule(primals: Any, tangents: Any) -> Any:
            out = self(*primals)
            terms = [r(t, out, *primals) for r, t in zip(jvps, tangents, strict=True) if r is not None]
            zero = tree.map(zero_tangent, out)
            total = functools.reduce(lambda a, b: tree.map(ew.add, a, b), terms) if terms else zero
            return out, total

        self.defjvp(rule)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(f"no JVP rule was given for {self.__name__}. Call its defjvp.")
        return _call_jvp(self, self.jvp, positional(self.fun, args, kwargs))


def zero_tangent(x: Any) -> Any:
    """The zero tangent of a value."""
    return _tangent_in(x, None, False)


@api_boundary
def _call_jvp(self: custom_jvp, rule: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    fixed, dynamic, merge = self._split(args)
    leaves, in_tree = tree.flatten(dynamic)
    name = self.__name__
    seen: dict[str, Any] = {}

    def fun(*xs: Any) -> list[Any]:
        outs, seen["out"] = _flat_result(name, self.fun, self.fun(*merge(tree.unflatten(in_tree, xs))))
        return outs

    jvp = _flat_jvp(name, rule, fixed, in_tree, self.symbolic_zeros, seen)
    for k, leaf in enumerate(leaves):
        check_leaf(name, leaf, lambda: f"argument leaf {k}")  # noqa: B023 - called at once
    outs = custom_jvp_call_p(*map(canonical, leaves), rules=Rules(name, fun, jvp, None, None), call_jaxpr=None)
    return tree.unflatten(seen["out"], outs)


def _flat_jvp(name: str, rule: Any, fixed: list[Any], in_tree: Any, symbolic: bool, seen: dict[str, Any]) -> Any:
    def jvp(xs: list[Any], ts: list[Any]) -> Any:
        tangents = [_tangent_in(x, t, symbolic) for x, t in zip(xs, ts, strict=True)]
        result = rule(*fixed, tree.unflatten(in_tree, xs), tree.unflatten(in_tree, tangents))
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(f"{name}: its JVP rule must return a pair (output, tangent); it returned {result!r:.60}.")
        outs, out_tree = _flat_result(name, rule, result[0])
        out_ts, tangent_tree = tree.flatten(result[1])
        if tangent_tree != out_tree:  # None stands for a tangent that is zero
            out_ts, tangent_tree = tree.flatten(result[1], is_leaf=lambda x: x is None)
        if tangent_tree != out_tree:
            difference = "; ".join(
                f"at output{tree.keystr(keys)}: {what}"
                for keys, what in tree.structure_difference(out_tree, tangent_tree, names=("the output", "the tangent"))
            )
            raise TypeError(f"{name}: its JVP rule must return a tangent of the structure of the output. {difference}.")
        seen["out"] = out_tree
        rows = enumerate(zip(out_ts, outs, strict=True))
        return outs, [
            _fitting(name, "the tangent of output", _Path(out_tree, k), t, avals.tangent(typeof(o)))
            for k, (t, o) in rows
        ]

    return jvp


class custom_vjp(_Custom):
    """A function whose derivative is given by a backward rule.

    Args:
        fun: function of pytrees of arrays.
        nondiff_argnums: positions of arguments that the backward rule gets as they are, first; the forward rule gets
            them in their places.
        nondiff_argnames: the same by name.

    >>> from morphax import grad, numpy as jnp
    >>> @custom_vjp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (2.0 * ct,))
    >>> float(grad(f)(0.5))
    2.0
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    symbolic_zeros = False
    optimize_remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Give the rules.

        Args:
            fwd: (*args) -> (output, residuals), residuals being any pytree of arrays.
            bwd: (*nondiff, residuals, cotangent of the output) -> a tuple with a cotangent, or None, for each argument.
            symbolic_zeros: `fwd` gets `CustomVJPPrimal`s, and `bwd` gets a `SymbolicZero` for a cotangent that is zero.
            optimize_remat: accepted; the forward rule never runs where its result is not differentiated.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Give a rule for forward mode too: (*nondiff, primals, tangents) -> (output, tangent)."""
        self.jvp = jvp
        return jvp

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"no VJP rules were given for {self.__name__}. Call its defvjp.")
        return _call_vjp(self, self.fwd, self.bwd, positional(self.fun, args, kwargs))


@api_boundary
def _call_vjp(self: custom_vjp, fwd: Callable[..., Any], bwd: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    fixed, dynamic, merge = self._split(args)
    leaves, in_tree = tree.flatten(dynamic)
    name = self.__name__
    seen: dict[str, Any] = {}

    def fun(*xs: Any) -> list[Any]:
        outs, seen["out"] = _flat_result(name, self.fun, self.fun(*merge(tree.unflatten(in_tree, xs))))
        return outs

    def forward(xs: list[Any], perturbed: Sequence[bool]) -> Any:
        values = xs
        if self.symbolic_zeros:
            values = [CustomVJPPrimal(x, p) for x, p in zip(xs, perturbed, strict=True)]
        result = fwd(*merge(tree.unflatten(in_tree, values)))
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise TypeError(f"{name}: its forward rule must return a pair (output, residuals), not {result!r:.60}.")
        outs, seen["out"] = _flat_result(name, fwd, result[0])
        residuals, seen["residuals"] = tree.flatten(result[1])
        seen["types"] = [avals.tangent(typeof(x)) for x in xs]
        seen["out_types"] = [avals.tangent(typeof(o)) for o in outs]
        return outs, [canonical(r) for r in residuals]

    def backward(residuals: list[Any], cts: list[Any]) -> list[Any]:
        filled = [_ct_in(ct, a, self.symbolic_zeros) for ct, a in zip(cts, seen["out_types"], strict=True)]
        back = bwd(*fixed, tree.unflatten(seen["residuals"], residuals), tree.unflatten(seen["out"], filled))
        return _flat_cotangents(name, bwd, back, dynamic, in_tree, seen["types"])

    jvp = _flat_jvp(name, self.jvp, fixed, in_tree, False, seen) if self.jvp is not None else None
    for k, leaf in enumerate(leaves):
        check_leaf(name, leaf, lambda: f"argument leaf {k}")  # noqa: B023 - called at once
    rules = Rules(name, fun, jvp, forward, backward)
    outs = custom_vjp_call_p(*map(canonical, leaves), rules=rules, call_jaxpr=None)
    return tree.unflatten(seen["out"], outs)


def _ct_in(ct: Any, aval: ShapedArray, symbolic: bool) -> Any:
    if ct is not None:
        return ct
    if symbolic:
        return SymbolicZero(aval)
    return np.zeros(aval.shape, dtypes.float0) if aval.dtype == dtypes.float0 else ew.zeros(aval)


def _flat_cotangents(name: str, bwd: Any, back: Any, dynamic: Any, in_tree: Any, types: Any) -> list[Any]:
    """The backward rule's result as a flat list; None anywhere in it stands for zeros of what is there."""
    if isinstance(back, list):
        back = tuple(back)
    if not isinstance(back, tuple) or len(back) != len(dynamic):
        raise TypeError(
            f"{name}: its backward rule must return a tuple with one cotangent for each of the {len(dynamic)} "
            f"arguments; it returned {back!r:.60}."
        )
    is_leaf = lambda x: x is None or isinstance(x, SymbolicZero)  # noqa: E731 - said once, used twice
    spread = tree.broadcast_prefix(
        tree.map(lambda x: _Nothing if is_leaf(x) else x, back, is_leaf=is_leaf),
        in_tree,
        what=f"the result of the backward rule of {name}",
    )
    return [
        None if ct is _Nothing else _fitting(name, "the cotangent of args", _Path(in_tree, k), ct, want)
        for k, (ct, want) in enumerate(zip(spread, types, strict=True))
    ]


class _Nothing:
    """Stands for an absent cotangent, where None would be an empty pytree."""


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives its own pullback: `fun(*args)` returns (output, pullback).

    >>> from morphax import grad, numpy as jnp
    >>> f = custom_gradient(lambda x: (x**2, lambda ct: (ct * 100.0,)))
    >>> float(grad(f)(3.0))
    100.0
    """
    check_callable("custom_gradient", fun)

    @custom_vjp
    @functools.wraps(fun)
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    def fwd(*args: Any) -> Any:
        out, pullback = fun(*args)
        # The pullback is Python that closes over values; tracing it makes them residuals.
        leaves, out_tree = tree.flatten(out)
        jaxpr, consts = stage(
            lambda *cts: _as_tuple(pullback(tree.unflatten(out_tree, cts)), seen), [typeof(x) for x in leaves]
        )
        return out, tree.Partial(_Replay(close(jaxpr), seen["tree"]), consts)

    seen: dict[str, Any] = {}

    def bwd(replay: Any, ct: Any) -> Any:
        return replay(tree.leaves(ct))

    wrapped.defvjp(fwd, bwd)
    return wrapped


def _as_tuple(cts: Any, seen: dict[str, Any]) -> list[Any]:
    cts = tuple(cts) if isinstance(cts, (tuple, list)) else (cts,)
    leaves, seen["tree"] = tree.flatten(cts)
    return [as_array(x) for x in leaves]


class _Replay:
    """A traced pullback: called with its residuals and the cotangents."""

    __slots__ = ("jaxpr", "out_tree")

    def __init__(self, jaxpr: Jaxpr, out_tree: Any):
        self.jaxpr = jaxpr
        self.out_tree = out_tree

    def __call__(self, residuals: list[Any], cts: list[Any]) -> Any:
        return tree.unflatten(self.out_tree, evaluate(self.jaxpr, (), [*residuals, *cts]))


@api_boundary
def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """`fun(residual_args, linear_args)`, linear in the second, with `fun_transpose(residual_args, ct)` as transpose.

    >>> from morphax import grad
    >>> f = lambda x: linear_call(lambda r, x: r * x, lambda r, ct: 10.0 * r * ct, 3.0, x)
    >>> float(grad(f)(1.0))
    30.0
    """
    residuals, residual_tree = tree.flatten(residual_args)
    operands, linear_tree = tree.flatten(linear_args)
    seen: dict[str, Any] = {}

    def forward(r: list[Any], x: list[Any]) -> list[Any]:
        out = fun(tree.unflatten(residual_tree, r), tree.unflatten(linear_tree, x))
        outs, seen["out"] = _flat_result("linear_call", fun, out)
        return outs

    types = stage(
        lambda *xs: forward(list(xs[: len(residuals)]), list(xs[len(residuals) :])),
        [avals.typeof(canonical(x)) for x in (*residuals, *operands)],
    )[0].out_avals

    def transpose(r: list[Any], cts: list[Any]) -> list[Any]:
        filled = [ew.zeros(a) if ct is None else ct for ct, a in zip(cts, types, strict=True)]
        back = fun_transpose(tree.unflatten(residual_tree, r), tree.unflatten(seen["out"], filled))
        return tree.leaves(back)

    rule = Linear(forward, transpose, tuple(types))
    outs = linear_call_p(*map(canonical, (*residuals, *operands)), rule=rule, residual_count=len(residuals))
    return tree.unflatten(seen["out"], outs)


__all__ = ["CustomVJPPrimal", "SymbolicZero", "custom_gradient", "custom_jvp", "custom_vjp", "linear_call"]
