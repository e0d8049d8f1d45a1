"""The public transforms of functions: grad, jvp, vjp, linearize, vmap, and tracing to jaxprs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from morphax.ir import avals
from morphax.ir import show as _show  # noqa: F401 - jaxprs get their printer there
from morphax.ir.current import base, current
from morphax.ir.jaxpr import ClosedJaxpr, Jaxpr, evaluate
from morphax.ir.trace import StageTracer, Tracer, run_under, stage
from morphax.ops import elementwise as ew
from morphax.ops import structure
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import batch as batching
from morphax.transforms import differentiate as ad
from morphax.transforms.flat import (
    FlatFun,
    argument_path,
    canonical,
    check_callable,
    check_leaf,
    dce_names,
    name_of,
)

F = TypeVar("F", bound=Callable[..., Any])


def named_after(fun: Any, made: Any, prefix: str) -> Any:
    """`made` with the name, documentation and signature of `fun`."""
    functools.update_wrapper(made, fun, assigned=("__module__", "__doc__", "__annotations__"), updated=())
    made.__name__ = f"{prefix}_{name_of(fun)}" if prefix else name_of(fun)
    made.__wrapped__ = fun
    return made


def as_array(x: Any) -> Any:
    """A host value, such as a literal that a rule gave, as an array."""
    if hasattr(x, "aval"):
        return x
    if current.trace is base():
        return base().array(x)
    shape = np.shape(x)
    return ew.broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(len(shape))), sharding=None)


def _auxiliary(flat: FlatFun, leaves: Sequence[Any]) -> Any:
    """The second output of a function with `has_aux`, its numbers as arrays."""
    return tree.unflatten(flat.aux_tree, [as_array(x) for x in leaves])


# ---- reverse mode ----------------------------------------------------------------------------------------------------


def argument_positions(api: str, fun: Any, argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """`argnums` as positions in [0, count)."""
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in nums:
        if not -count <= n < count:
            raise TypeError(
                f"{api}: argnums={argnums} asks for the derivative with respect to positional argument {n}, but "
                f"{name_of(fun)} was called with {count} positional arguments. Pass that argument by position."
            )
    return tuple([n % count for n in nums])


def check_argnums(api: str, argnums: Any) -> None:
    """Refuse what is not an int or a sequence of ints."""
    ok = isinstance(argnums, (int, np.integer)) or (
        isinstance(argnums, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in argnums)
    )
    if not ok:
        raise TypeError(f"{api}: argnums must be an int or a sequence of ints; it is {argnums!r}.")


def check_input(api: str, aval: avals.ShapedArray, holomorphic: bool, allow_int: bool, where: str) -> None:
    """Refuse arguments of types that have no derivative of the kind that is asked for."""
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(f"{api}: with holomorphic=True inputs must be complex; {where} is {aval}.")
    elif dtypes.is_complex(dtype):
        if api == "jacfwd":  # its columns are real directions; reverse mode has cotangents for both parts
            raise TypeError(
                f"{api}: inputs must be real; {where} is {aval}. Give holomorphic=True for a holomorphic function, or "
                "take real and imaginary parts."
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"{api}: inputs must be floating point (or complex with holomorphic=True); {where} is {aval}. Convert it "
            "with astype(float), leave it out of argnums, or give allow_int=True for float0 gradients."
        )


def _scalar_output(api: str, fun: Any, flat: FlatFun, out: Any, holomorphic: bool) -> None:
    if flat.out_count != 1 or not tree.treedef_is_leaf(flat.out_tree):
        raise TypeError(
            f"{api}: {name_of(fun)} must return a single scalar, and it returned a {flat.out_tree}. Return one number, "
            "and the rest as aux with has_aux=True, or use jacrev."
        )
    aval = avals.typeof(out)
    if aval.shape != ():
        raise TypeError(
            f"{api}: gradient only defined for scalar-output functions; {name_of(fun)} returned {aval}. Reduce it, for "
            "example with .sum() or .mean(), or use jacrev or vjp."
        )
    if holomorphic:
        if not dtypes.is_complex(aval.dtype):
            raise TypeError(f"{api}: with holomorphic=True the output must be complex; {name_of(fun)} returned {aval}.")
    elif not dtypes.is_float(aval.dtype):
        cure = "Take its real part, or give holomorphic=True." if dtypes.is_complex(aval.dtype) else "Return a float."
        raise TypeError(f"{api}: the output must be a real float; {name_of(fun)} returned {aval}. {cure}")


def _reverse(
    api: str, fun: Any, nums: tuple[int, ...], args: Sequence[Any], kwargs: Any, aux: bool, holo: bool, allow_int: bool
) -> tuple[FlatFun, Any, list[Any], list[Any], Any, Any, Any]:
    """One forward pass over `args[n] for n in nums`, everything else held constant."""
    chosen = tuple([args[n] for n in nums])
    leaves, in_tree = tree.flatten(chosen)
    types = []
    for k, leaf in enumerate(leaves):
        aval = check_leaf(api, leaf, lambda: leaf_name(chosen, nums, k))  # noqa: B023 - called at once
        if not dtypes.is_float(aval.dtype) or holo:
            check_input(api, aval, holo, allow_int, leaf_name(chosen, nums, k))
        types.append(aval)

    def with_others(*selected: Any) -> Any:
        merged = list(args)
        for n, value in zip(nums, selected, strict=True):
            merged[n] = value
        return fun(*merged, **kwargs)

    with_others.__name__ = name_of(fun)
    leaves = [canonical(x) for x in leaves]
    flat = FlatFun(with_others, tree.flatten((chosen, {}))[1], api, aux)
    active = [dtypes.is_inexact(t.dtype) for t in types]
    outs, tangents, tape = ad.linearize(flat, leaves, active)
    return flat, in_tree, outs, tangents, tape, types, active


def leaf_name(chosen: Any, nums: tuple[int, ...], position: int) -> str:
    """Words for a leaf of the arguments at `nums`, such as args[0]['w']."""
    keys, _ = tree.leaves_with_path(chosen)[position]
    return f"args[{nums[keys[0].idx]}]" + tree.keystr(tuple(keys[1:]))


def _float0(aval: avals.ShapedArray) -> np.ndarray:
    return np.zeros(aval.shape, dtypes.float0)


def _gradients(tape: ad.Tape, tangents: Sequence[Any], cts: Sequence[Any], types: Any, active: Any) -> list[Any]:
    """Cotangents of all inputs: zeros where nothing flowed, float0 for integer inputs."""
    found = iter(ad.pull_back(tape, tangents, cts))
    grads = []
    for aval, on in zip(types, active, strict=True):
        if not on:
            grads.append(_float0(aval))
            continue
        ct = next(found)
        grads.append(as_array(ew.zeros(aval) if ct is None else ct))
    return grads


@api_boundary
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that returns the value of `fun` and its gradient.

    Args:
        fun: function whose output is a scalar, or a pair (scalar, aux) with `has_aux`.
        argnums: position or positions of the arguments to differentiate; each may be a pytree of floats.
        has_aux: `fun` returns a pair, of which the second is passed through.
        holomorphic: `fun` is holomorphic, with complex inputs and output.
        allow_int: integer inputs are allowed and get float0 gradients.
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        A function of the same arguments: (value, gradient) or ((value, aux), gradient). The gradient has the structure
        of the argument, or is a tuple of such for a sequence of positions.

    Raises:
        TypeError: inputs that are not floats, an output that is not a real scalar, or argnums out of range.

    >>> from morphax import numpy as jnp
    >>> value, slope = value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)


def _value_and_grad(
    api: str, fun: Any, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, reduce_axes: Any
) -> Callable[..., Any]:
    check_callable(api, fun)
    check_argnums(api, argnums)
    _refuse_reduce_axes(api, reduce_axes)

    @api_boundary
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        nums = argument_positions(api, fun, argnums, len(args))
        flat, in_tree, outs, tangents, tape, types, active = _reverse(
            api, fun, nums, args, kwargs, has_aux, holomorphic, allow_int
        )
        _scalar_output(api, fun, flat, outs[0] if outs else None, holomorphic)
        one = ew.like(outs[0], 1)
        grads = tree.unflatten(in_tree, _gradients(tape, tangents[:1], [one], types, active))
        value = as_array(outs[0])
        grads = grads[0] if isinstance(argnums, (int, np.integer)) else grads
        if has_aux:
            return (value, _auxiliary(flat, outs[1:])), grads
        return value, grads

    return named_after(fun, value_and_grad_fun, "value_and_grad")


def _refuse_reduce_axes(api: str, reduce_axes: Any) -> None:
    if tuple(reduce_axes):
        raise NotImplementedError(
            f"{api}: reduce_axes={reduce_axes!r} was withdrawn from the public interface; leave it."
        )


@api_boundary
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a scalar-valued function, by reverse mode.

    Args and errors are those of `value_and_grad`.

    Returns:
        A function of the same arguments: the gradient, or (gradient, aux) with `has_aux`.

    >>> from morphax import numpy as jnp
    >>> print(grad(jnp.tanh)(1.0))
    0.41997433
    """
    both = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @api_boundary
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return named_after(fun, grad_fun, "grad")


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()) -> Any:
    """The value of `fun` and the function that pulls cotangents back.

    Args:
        fun: function of the primals.
        primals: pytrees of arrays. Integer leaves get float0 cotangents.
        has_aux: `fun` returns (output, aux).

    Returns:
        (output, pullback) or (output, pullback, aux). `pullback(ct)` takes a cotangent with the structure, shapes and
        dtypes of the output and returns a tuple with one cotangent for each primal. It is a pytree of the residuals.

    Raises:
        TypeError, ValueError: a leaf that is not an array; a cotangent of the wrong structure, shape or dtype.

    >>> y, pullback = vjp(lambda x: x * x, 3.0)
    >>> float(pullback(1.0)[0])
    6.0
    """
    check_callable("vjp", fun)
    _refuse_reduce_axes("vjp", reduce_axes)
    return _vjp(fun, primals, has_aux)


@api_boundary
def _vjp(fun: Any, primals: tuple[Any, ...], has_aux: bool) -> Any:
    nums = tuple(range(len(primals)))
    flat, in_tree, outs, tangents, tape, types, active = _reverse("vjp", fun, nums, primals, {}, has_aux, False, True)
    results, aux = outs[: flat.out_count], outs[flat.out_count :]
    tangents = tangents[: flat.out_count]
    linear, residuals = tape.finish([t for t in tangents if t is not None])
    plan = _Pullback(
        linear, tuple([t is not None for t in tangents]), flat.out_tree, in_tree, tuple(types), tuple(active),
        tuple([avals.typeof(o) for o in results]), name_of(fun),
    )  # fmt: skip
    pullback = tree.Partial(plan, residuals)
    out = tree.unflatten(flat.out_tree, [as_array(o) for o in results])
    return (out, pullback, _auxiliary(flat, aux)) if has_aux else (out, pullback)


class _Pullback:
    """What a pullback knows besides its residuals."""

    __slots__ = ("active", "has", "in_tree", "linear", "name", "out_tree", "out_types", "types")

    def __init__(
        self, linear: Jaxpr, has: Any, out_tree: Any, in_tree: Any, types: Any, active: Any, out_types: Any, name: str
    ):
        self.linear = linear
        self.has = has
        self.out_tree = out_tree
        self.in_tree = in_tree
        self.types = types
        self.active = active
        self.out_types = out_types
        self.name = name

    @api_boundary
    def __call__(self, residuals: list[Any], ct: Any) -> Any:
        cts = _check_cotangents(self, ct)
        linear = self.linear
        known = dict(zip(linear.constvars, residuals, strict=True))
        given = [c for c, has in zip(cts, self.has, strict=True) if has]
        found = iter(ad.transpose(linear, known, given))
        grads = []
        for aval, on in zip(self.types, self.active, strict=True):
            if not on:
                grads.append(_float0(aval))
                continue
            c = next(found)
            grads.append(as_array(ew.zeros(aval) if c is None else c))
        return tree.unflatten(self.in_tree, grads)


def _check_cotangents(pullback: _Pullback, ct: Any) -> list[Any]:
    leaves, structure_ = tree.flatten(ct)
    api = f"the pullback of {pullback.name}"
    if structure_ != pullback.out_tree:
        difference = "; ".join(
            f"at {tree.keystr(keys) or 'the top'}: {what}"
            for keys, what in tree.structure_difference(
                structure_, pullback.out_tree, names=("the cotangent", "the output")
            )
        )
        raise ValueError(f"{api}: the cotangent must have the structure of the output. {difference}.")
    checked: list[Any] = []
    for leaf, aval in zip(leaves, pullback.out_types, strict=True):
        want = avals.tangent(aval)
        got = avals.typeof(leaf) if not _is_float0(leaf) else None
        if got is None or want.dtype == dtypes.float0:
            checked.append(None)
            continue
        if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
            raise ValueError(
                f"{api}: a cotangent of type {got} was given for an output of type {aval}, which needs {want}. Give "
                "one of the same shape and dtype."
            )
        checked.append(leaf if got.dtype == want.dtype else structure.convert(leaf, want.dtype))
    return checked


def _is_float0(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == dtypes.float0


# ---- forward mode ----------------------------------------------------------------------------------------------------


@api_boundary
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of `fun` and its directional derivative, by forward mode.

    Args:
        fun: function of the primals.
        primals: sequence of pytrees of arrays.
        tangents: the same structure, shapes and dtypes; float0 for integer primals.
        has_aux: `fun` returns (output, aux).

    Returns:
        (output, tangent of the output), or (output, tangent, aux).

    Raises:
        TypeError, ValueError: primals and tangents that do not match.

    >>> y, t = jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(y), float(t)
    (9.0, 6.0)
    """
    check_callable("jvp", fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            f"jvp: primals and tangents must be tuples or lists; they are {type(primals).__name__} and "
            f"{type(tangents).__name__}."
        )
    leaves, in_tree = tree.flatten((tuple(primals), {}))
    directions, tangent_tree = tree.flatten((tuple(tangents), {}))
    if in_tree != tangent_tree:
        difference = "; ".join(
            f"at {tree.keystr(keys[1:]) or 'the top'}: {what}"
            for keys, what in tree.structure_difference(
                (tuple(primals), {}), (tuple(tangents), {}), names=("the primals", "the tangents")
            )
        )
        raise TypeError(f"jvp: primals and tangents must have the same structure. {difference}.")
    flat = FlatFun(fun, in_tree, "jvp", has_aux)
    checked = [canonical(_check_tangent("jvp", x, t)) for x, t in zip(leaves, directions, strict=True)]
    leaves = [canonical(x) for x in leaves]
    outs, out_tangents = ad.jvp(flat, leaves, checked)
    count = flat.out_count
    results = tree.unflatten(flat.out_tree, [as_array(o) for o in outs[:count]])
    derivatives = tree.unflatten(flat.out_tree, _full_tangents(outs[:count], out_tangents[:count]))
    return (results, derivatives, _auxiliary(flat, outs[count:])) if has_aux else (results, derivatives)


def _check_tangent(api: str, x: Any, t: Any) -> Any:
    aval = check_leaf(api, x, lambda: "a primal")
    want = avals.tangent(aval)
    if _is_float0(t):
        if want.dtype == dtypes.float0 and t.shape == aval.shape:
            return None
        raise TypeError(f"{api}: a float0 tangent was given for a primal of type {aval}, which needs {want}.")
    got = check_leaf(api, t, lambda: "a tangent")
    if want.dtype == dtypes.float0:
        raise TypeError(
            f"{api}: the primal of type {aval} is not floating point, so its tangent must be numpy.zeros(shape, "
            f"float0); it is {got}. Convert the primal to float to differentiate."
        )
    if got.shape != want.shape:
        raise ValueError(f"{api}: primal and tangent must have the same shape; they have {aval.shape} and {got.shape}.")
    if got.dtype != want.dtype and not got.weak_type:
        raise TypeError(f"{api}: primal and tangent must have the same dtype; they are {aval} and {got}.")
    return t if got.dtype == want.dtype else structure.convert(t, want.dtype)


def _full_tangents(outs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    full = []
    for out, t in zip(outs, tangents, strict=True):
        aval = avals.tangent(avals.typeof(out))
        if aval.dtype == dtypes.float0:
            full.append(np.zeros(aval.shape, dtypes.float0))
        else:
            full.append(as_array(ew.zeros(aval) if t is None else t))
    return full


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` and its derivative there as a linear function, without evaluating `fun` again.

    Returns:
        (output, derivative) or (output, derivative, aux); `derivative(*tangents)` is the tangent of the output.

    >>> y, derivative = linearize(lambda x: x * x, 3.0)
    >>> float(derivative(1.0))
    6.0
    """
    check_callable("linearize", fun)
    nums = tuple(range(len(primals)))
    flat, in_tree, outs, tangents, tape, types, active = _reverse(
        "linearize", fun, nums, primals, {}, has_aux, False, True
    )
    count = flat.out_count
    results, tangents = outs[:count], tangents[:count]
    linear, residuals = tape.finish([t for t in tangents if t is not None])
    has = [t is not None for t in tangents]
    out_types = [avals.typeof(o) for o in results]

    @api_boundary
    def derivative(*directions: Any) -> Any:
        leaves, structure_ = tree.flatten(directions)
        if structure_ != in_tree:
            raise TypeError(
                f"linearize: the derivative of {name_of(fun)} takes tangents of structure {in_tree}, not {structure_}."
            )
        given = [_check_tangent("linearize", _Typed(a), t) for a, t in zip(types, leaves, strict=True)]
        given = [ew.zeros(a) if t is None else t for a, t, on in zip(types, given, active, strict=True) if on]
        found = iter(evaluate(linear, residuals, given))
        full = [next(found) if h else None for h in has]
        return tree.unflatten(flat.out_tree, _full_tangents([_Typed(a) for a in out_types], full))

    out = tree.unflatten(flat.out_tree, [as_array(o) for o in results])
    return (out, derivative, _auxiliary(flat, outs[count:])) if has_aux else (out, derivative)


class _Typed:
    """Stands for a value where only its type is asked for."""

    __slots__ = ("aval",)

    def __init__(self, aval: avals.ShapedArray):
        self.aval = aval


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[[Any], Any]:
    """The transpose of a linear function: ⟨transpose(u), v⟩ = ⟨u, fun(v)⟩.

    Args:
        fun: linear function of its arguments.
        primals: arrays or `ShapeDtypeStruct`s that give the types of its arguments; values are not used.

    Returns:
        A function of a cotangent of the output that returns a tuple of cotangents of the arguments.

    Raises:
        TypeError: `fun` is not linear in its arguments, or a cotangent does not match.

    >>> transposed = linear_transpose(lambda x: 3.0 * x, 1.0)
    >>> float(transposed(2.0)[0])
    6.0
    """
    check_callable("linear_transpose", fun)
    _refuse_reduce_axes("linear_transpose", reduce_axes)
    leaves, full_tree = tree.flatten((primals, {}))
    in_tree = tree.structure(primals)
    types = [avals.strengthen(check_leaf("linear_transpose", x, lambda: "an argument")) for x in leaves]
    for aval in types:
        if not dtypes.is_inexact(aval.dtype):
            raise TypeError(f"linear_transpose: arguments must be float or complex; one is {aval}.")
    flat = FlatFun(fun, full_tree, "linear_transpose")
    jaxpr, consts = stage(flat, types, name_of(fun))
    # Replayed on a tape, so that what does not depend on the arguments is computed and only the linear part remains.
    tape = ad.Tape(current.trace, name_of(fun))
    try:
        outs = run_under(tape, lambda *xs: evaluate(jaxpr, consts, xs), *[tape.input(t) for t in types])
    finally:
        tape.done = True
    has = tuple([o.__class__ is StageTracer and o.owner is tape for o in outs])
    linear, residuals = tape.finish([o for o, h in zip(outs, has, strict=True) if h])
    plan = _Pullback(
        linear, has, flat.out_tree, in_tree, tuple(types), (True,) * len(types), jaxpr.out_avals, name_of(fun)
    )

    @api_boundary
    def transposed(ct: Any) -> Any:
        return plan(residuals, ct)

    return transposed


# ---- vmap ------------------------------------------------------------------------------------------------------------


@api_boundary
def vmap(
    fun: F,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> F:
    """`fun`, a function of examples, as a function of batches.

    Args:
        fun: function of pytrees of arrays.
        in_axes: which axis of each argument is the batch: an int, None for an argument that all examples share, or a
            pytree prefix of the positional arguments (a tuple or list) of such. Keyword arguments are mapped over 0.
        out_axes: where the batch goes in each output; None for an output that is equal for all examples.
        axis_name: name of the batch axis, for collectives.
        axis_size: size of the batch, where no argument tells.
        spmd_axis_name: mesh axis over which the batch is sharded.
        sum_match: accepted for compatibility.

    Raises:
        ValueError: sizes that differ, an axis that an argument does not have, axes that do not fit the arguments.
        TypeError: axes that are not ints or None.

    >>> from morphax import numpy as jnp
    >>> vmap(jnp.dot)(jnp.ones((3, 4)), jnp.ones((3, 4))).shape
    (3,)
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise TypeError(
            f"vmap: in_axes must be an int, None, or a tuple of entries for the arguments; it is {in_axes!r}."
        )
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)

    @api_boundary
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap: in_axes={in_axes} has {len(in_axes)} entries, but {name_of(fun)} was called with {len(args)} "
                "positional arguments. Give one entry for each; keyword arguments are mapped over axis 0."
            )
        leaves, in_tree = tree.flatten((args, kwargs))
        prefix = (in_axes, 0)
        axes = tree.broadcast_prefix(
            prefix, (args, kwargs), is_leaf=lambda x: x is None, what=f"vmap in_axes of {name_of(fun)}"
        )
        size = _batch_size(fun, args, kwargs, leaves, axes, axis_size)
        leaves = [canonical(x) for x in leaves]
        moved = [x if a is None else structure.move_axis(x, a, 0) for x, a in zip(leaves, axes, strict=True)]
        flat = FlatFun(fun, in_tree, "vmap")
        flags = [a is not None for a in axes]
        outs, batched = batching.batch(flat, moved, flags, size, axis_name, spmd_axis_name)
        targets = tree.broadcast_prefix(
            out_axes, flat.out_tree, is_leaf=lambda x: x is None, what=f"vmap out_axes of {name_of(fun)}"
        )
        return tree.unflatten(
            flat.out_tree,
            [_place_batch(fun, o, b, a, size) for o, b, a in zip(outs, batched, targets, strict=True)],
        )

    return named_after(fun, vmap_fun, "")


def _check_axes(what: str, axes: Any) -> None:
    for axis in tree.leaves(axes):
        if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
            raise TypeError(f"vmap: {what} must hold ints and None; it holds {axis!r} of type {type(axis).__name__}.")


def _batch_size(fun: Any, args: Any, kwargs: Any, leaves: Any, axes: Any, axis_size: int | None) -> int:
    sizes: set[int] = set()
    for k, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        aval = check_leaf("vmap", leaf, lambda: _vmap_leaf(args, kwargs, k))  # noqa: B023 - called at once
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"vmap: in_axes asks for axis {axis} of {_vmap_leaf(args, kwargs, k)}, which has type {aval} and "
                f"{aval.ndim} axes. Give an axis that it has, or None to share it between examples."
            )
        sizes.add(aval.shape[axis])
    if axis_size is not None:
        sizes.add(axis_size)
    if not sizes:
        raise ValueError(
            f"vmap: {name_of(fun)} has no mapped argument, so the size of the batch is unknown. Give an axis in "
            "in_axes other than None, or axis_size."
        )
    if len(sizes) > 1:
        rows = [
            f"{_vmap_leaf(args, kwargs, k)} of type {avals.typeof(x)}, axis {a} has size {avals.typeof(x).shape[a]}"
            for k, (x, a) in enumerate(zip(leaves, axes, strict=True))
            if a is not None
        ]
        given = f"axis_size is {axis_size}; " if axis_size is not None else ""
        raise ValueError(
            f"vmap: the mapped axes of {name_of(fun)} got inconsistent sizes: {given}{'; '.join(rows)}. All must be "
            "equal."
        )
    return next(iter(sizes))


def _vmap_leaf(args: Any, kwargs: Any, position: int) -> str:
    return argument_path(tree.leaves_with_path((args, kwargs))[position][0])


def _place_batch(fun: Any, out: Any, batched: bool, axis: int | None, size: int) -> Any:
    if axis is None:
        if batched:
            raise ValueError(
                f"vmap: out_axes is None for an output of {name_of(fun)} that depends on the mapped arguments (type "
                f"{avals.typeof(out)} over the batch). Give the axis where the batch goes."
            )
        return as_array(out)
    out = out if batched else batching.batched(out, size)
    ndim = avals.typeof(out).ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"vmap: out_axes asks for axis {axis} of an output of {name_of(fun)} that has {ndim} axes with the batch."
        )
    return structure.move_axis(out, 0, axis)


# ---- tracing ---------------------------------------------------------------------------------------------------------


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Any = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` for arguments of given types.

    Args:
        fun: function of pytrees of arrays or `ShapeDtypeStruct`s.
        static_argnums: positions of arguments that are passed as they are.
        axis_env: accepted for compatibility; must be None.
        return_shape: return (jaxpr, pytree of `ShapeDtypeStruct`s) instead.

    >>> from morphax import lax
    >>> make_jaxpr(lambda x: lax.sin(x))(1.0)
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    check_callable("make_jaxpr", fun)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @api_boundary
    def make(*args: Any, **kwargs: Any) -> Any:
        closed, out_tree = trace_to_jaxpr("make_jaxpr", fun, args, kwargs, static)
        if return_shape:
            structs = [avals.ShapeDtypeStruct.of(a) for a in closed.out_avals]
            return closed, tree.unflatten(out_tree, structs)
        return closed

    return named_after(fun, make, "make_jaxpr")


def trace_to_jaxpr(
    api: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[int] = ()
) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of `fun` with its constants, and the structure of its output."""
    fixed = {n % len(args) for n in static}
    dynamic = [a for i, a in enumerate(args) if i not in fixed]
    leaves, in_tree = tree.flatten((tuple(dynamic), kwargs))
    types = []
    for k, leaf in enumerate(leaves):
        types.append(check_leaf(api, leaf, lambda: _vmap_leaf(tuple(dynamic), kwargs, k)))  # noqa: B023 - called at once

    def with_static(*others: Any, **named: Any) -> Any:
        given = iter(others)
        return fun(*[args[i] if i in fixed else next(given) for i in range(len(args))], **named)

    with_static.__name__ = name_of(fun)
    flat = FlatFun(with_static if fixed else fun, in_tree, api)
    jaxpr, consts = stage(flat, types, name_of(fun), dce_names(in_tree))
    return ClosedJaxpr(jaxpr, consts), flat.out_tree


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of what `fun` would return, without computing anything.

    Returns:
        The output's pytree with `ShapeDtypeStruct`s for leaves.

    >>> from morphax import numpy as jnp
    >>> eval_shape(jnp.dot, jnp.ones((2, 3)), jnp.ones((3, 4)))
    ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable("eval_shape", fun)
    closed, out_tree = trace_to_jaxpr("eval_shape", fun, args, kwargs)
    return tree.unflatten(out_tree, [avals.ShapeDtypeStruct.of(a) for a in closed.out_avals])


@api_boundary
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """`fun` with the traced values that it closes over as further arguments.

    Returns:
        (converted, hoisted): `converted(*args, *hoisted)` equals `fun(*args)`.

    >>> converted, hoisted = closure_convert(lambda x: x + 1.0, 2.0)
    >>> float(converted(2.0, *hoisted)[()])
    3.0
    """
    check_callable("closure_convert", fun)
    closed, out_tree = trace_to_jaxpr("closure_convert", fun, example_args, {})
    jaxpr, consts = closed.jaxpr, closed.consts
    hoist = [isinstance(c, Tracer) for c in consts]
    hoisted = [c for c, h in zip(consts, hoist, strict=True) if h]
    count = len(hoisted)

    def converted(*args: Any) -> Any:
        given = iter(args[len(args) - count :])
        values = [next(given) if h else c for c, h in zip(consts, hoist, strict=True)]
        leaves = tree.leaves((args[: len(args) - count], {}))
        return tree.unflatten(out_tree, [as_array(o) for o in evaluate(jaxpr, values, leaves)])

    return converted, hoisted


class named_scope:
    """Prefixes the names of the operations traced inside, as seen in compiled programs and profiles.

    >>> with named_scope("encoder"):
    ...     pass
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope: name must be a string; it is {name!r}.")
        self.name = name
        self._before = ""

    def __enter__(self) -> "named_scope":
        self._before = current.scope
        current.scope = f"{self._before}/{self.name}" if self._before else self.name
        return self

    def __exit__(self, *exc: Any) -> None:
        current.scope = self._before

    def __call__(self, fun: F) -> F:
        @functools.wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with named_scope(self.name):
                return fun(*args, **kwargs)

        return scoped  # pyright: ignore[reportReturnType] - same signature as fun


def named_call(fun: F, *, name: str | None = None) -> F:
    """`fun` inside a `named_scope` of its name."""
    return named_scope(name or name_of(fun))(fun)


class ensure_compile_time_eval:
    """Inside, operations on concrete values run at once, also while a function is being traced.

    Raises:
        UnexpectedTracerError: an operation inside depends on a traced value.

    >>> with ensure_compile_time_eval():
    ...     pass
    """

    def __enter__(self) -> None:
        self._before = current.trace
        current.trace = base()
        current.mark_inside(False)

    def __exit__(self, *exc: Any) -> None:
        current.trace = self._before
        current.mark_inside(self._before is not base())
