"""Functions made to work on whole arrays: vectorize, frompyfunc, apply_along_axis, apply_over_axes, piecewise."""

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from morphax.ir import avals
from morphax.numpy import creation, folds, promotion, shapes, sorting, ufuncs
from morphax.ops import structure
from morphax.runtime.jit import jit
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import api

typeof = avals.operand_type

# ---- vectorize -------------------------------------------------------------------------------------------------------

_CORE = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$")

Dims = tuple[str, ...]


def _parsed(signature: str) -> tuple[list[Dims], list[Dims]]:
    """The names of the core axes of inputs and of outputs: "(n),()->(n)" as [("n",), ()], [("n",)]."""
    compact = re.sub(r"\s", "", signature)
    if not _SIGNATURE.match(compact):
        raise ValueError(f"vectorize: not a signature such as '(m,n),(n)->(m)': {signature!r}.")
    sides = []
    for side in compact.split("->"):
        sides.append([tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)])
    return sides[0], sides[1]


def _core_sizes(name: str, shape: tuple[int, ...], core: Dims, sizes: dict[str, int], what: str) -> None:
    """Enter the sizes of the core axes of an array, which a name or a number stands for."""
    if len(shape) < len(core):
        raise ValueError(
            f"{name}: {what} has shape {shape}, but the signature gives it the core axes ({', '.join(core)})."
        )
    for dim, size in zip(core, shape[len(shape) - len(core) :], strict=True):
        wanted = sizes.setdefault(dim, int(dim) if dim.isdigit() else size)
        if wanted != size:
            raise ValueError(f"{name}: {what} has size {size} for the core axis {dim!r}, which has size {wanted}.")


def _checked_outputs(name: str, fun: Callable[..., Any], outs: list[Dims], sizes: dict[str, int]) -> Any:
    """`fun`, with its results held to the signature."""

    def checked(*args: Any) -> Any:
        out = fun(*args)
        if len(outs) > 1 and (not isinstance(out, tuple) or len(out) != len(outs)):
            raise TypeError(
                f"{name}: the signature promises a tuple of {len(outs)} arrays; the function gave {out!r:.60}."
            )
        found = dict(sizes)
        for k, (part, core) in enumerate(zip(out if len(outs) > 1 else (out,), outs, strict=True)):
            shape = shapes.shape(part)
            if len(shape) != len(core):
                raise ValueError(f"{name}: output {k} has shape {shape}, but its core axes are ({', '.join(core)}).")
            _core_sizes(name, shape, core, found, f"output {k}")
        return out

    return checked


def _split(fun: Callable[..., Any], excluded: frozenset[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`fun` of the arguments that are mapped; these; and their positions or names."""
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    places = [k for k, x in given.items() if k not in excluded and x is not None]

    def call(*mapped: Any) -> Any:
        full = {**given, **dict(zip(places, mapped, strict=True))}
        return fun(*[full.pop(k) for k in range(len(args))], **full)

    return call, [creation.asarray(given[k]) for k in places], places


def _mapped(fun: Callable[..., Any], arrays: list[Any], cores: list[int]) -> Any:
    """`fun` mapped over the leading axes of each array, broadcast, that its core axes leave."""
    leads = [a.shape[: a.ndim - core] for a, core in zip(arrays, cores, strict=True)]
    full = promotion.common_shape("vectorize", leads)
    # Axes of size 1, or missing, need no copies: they are not mapped over. An array drops them first.
    rank = len(full)
    mapped_over = []
    for k, (a, lead) in enumerate(zip(arrays, leads, strict=True)):
        padded = (1,) * (rank - len(lead)) + lead
        keep = [size != 1 for size in padded]
        core = a.shape[len(lead) :]
        arrays[k] = a.reshape([s for s, kept in zip(padded, keep, strict=True) if kept] + list(core))
        mapped_over.append(keep)
    for d in reversed(range(rank)):
        axes = [0 if keep[d] else None for keep in mapped_over]
        if any(keep[d] for keep in mapped_over):
            fun = api.vmap(fun, in_axes=axes, out_axes=0)
    return fun, [d for d in range(rank) if not any(keep[d] for keep in mapped_over)]


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """`pyfunc` of scalars, or of arrays with the core axes of a signature, over arrays that are broadcast.

    Args:
        pyfunc: function of arrays; its results may be any tree where no signature is given.
        excluded: positions and names of arguments that are passed as they are. So are those that are None.
        signature: core axes of inputs and outputs, such as "(m,n),(n)->(m)". A number is a size that is wanted.

    Raises:
        ValueError: sizes of core axes differ, or shapes do not broadcast.
        TypeError: another number of arguments than the signature has.

    >>> from morphax import numpy as jnp
    >>> dot = jnp.vectorize(lambda x, y: jnp.sum(x * y), signature="(n),(n)->()")
    >>> dot(jnp.ones((2, 3)), jnp.ones(3)).tolist()
    [3.0, 3.0]
    """
    excluded = frozenset(excluded)
    if any(not isinstance(e, (int, str)) for e in excluded):
        raise TypeError(f"vectorize: excluded holds positions and names of arguments; it is {set(excluded)}.")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: excluded must not hold negative positions; it is {set(excluded)}.")
    name = getattr(pyfunc, "__name__", "function")
    cores = None if signature is None else _parsed(signature)

    @functools.wraps(pyfunc)
    @api_boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        fun, arrays, places = _split(pyfunc, excluded, args, kwargs)
        counts = [0] * len(arrays)
        if cores is not None:
            named = sorted(k for k in places if isinstance(k, str))
            if len(args) != len(cores[0]) or named:
                raise TypeError(
                    f"{name}: the signature {signature!r} has {len(cores[0])} inputs; {len(args)} were given by "
                    f"position{f', and {named} by name' if named else ''}. Give all by position."
                )
            sizes: dict[str, int] = {}
            counts = [len(cores[0][k]) for k in places]
            for a, k in zip(arrays, places, strict=True):
                _core_sizes(name, a.shape, cores[0][k], sizes, f"argument {k}")
            fun = _checked_outputs(name, fun, cores[1], sizes)
        fun, single = _mapped(fun, arrays, counts)
        out = fun(*arrays)
        return tree.map(lambda x: structure.expand_dims(x, tuple(single)), out) if single else out

    return vectorized


# ---- universal functions ---------------------------------------------------------------------------------------------


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufuncs.ufunc:
    """A universal function, with `reduce`, `accumulate`, `at`, `reduceat` and `outer`, of a function of scalars.

    Args:
        func: function of `nin` scalars with `nout` results, a tuple where there are several.
        nin: number of inputs.
        nout: number of results.
        identity: what a reduction of nothing is; None where there is none.

    >>> from morphax import numpy as jnp
    >>> total = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    >>> total.reduce(jnp.arange(4)).item()
    6
    """
    inputs, outputs = ",".join(["()"] * nin), ",".join(["()"] * nout)
    call = vectorize(func, signature=f"{inputs}->{outputs}") if nin else func
    made = ufuncs.ufunc(func, nin, nout, identity=identity, call=jit(call))
    folds.equip(made)
    return made


# ---- along axes ------------------------------------------------------------------------------------------------------


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`func1d` of every line of `arr` along an axis, with what it gives in place of the line.

    Args:
        func1d: function of an array of one axis, and of `args` and `kwargs`.
        axis: axis.
        arr: array.

    >>> from morphax import numpy as jnp
    >>> jnp.apply_along_axis(jnp.sum, 1, jnp.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
    arr = creation.asarray(promotion.checked("apply_along_axis", arr))
    axis = promotion.axis_of("apply_along_axis", axis, arr.ndim)
    fun = lambda line: func1d(line, *args, **kwargs)  # noqa: E731
    for k in range(1, arr.ndim - axis):
        fun = api.vmap(fun, in_axes=k, out_axes=-1)
    for _ in range(axis):
        fun = api.vmap(fun, in_axes=0, out_axes=0)
    return fun(arr)


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Sequence[int]) -> Any:
    """`func(a, axis)` for one axis after another; an axis that it removes comes back with size 1.

    >>> from morphax import numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1)).tolist()
    [[6.0]]
    """
    a = creation.asarray(promotion.checked("apply_over_axes", a))
    for axis in (axes,) if promotion.is_integer(axes) else axes:
        number = promotion.axis_of("apply_over_axes", axis, a.ndim)
        out = func(a, number)
        if out.ndim == a.ndim - 1:
            out = shapes.expand_dims(out, number)
        if out.ndim != a.ndim:
            raise ValueError(
                f"apply_over_axes: func made shape {out.shape} of {a.shape}; it must keep the axis or remove it."
            )
        a = out
    return a


# ---- pieces ----------------------------------------------------------------------------------------------------------


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """For each entry of `x` the function, or the value, of the last condition that holds; 0 where none does.

    Args:
        x: array.
        condlist: bool arrays of the shape of `x`, or one of them.
        funclist: functions of scalars, or values; one more than conditions gives the one for none.
        args, kw: further arguments of the functions.

    >>> from morphax import numpy as jnp
    >>> x = jnp.array([-2.0, 3.0])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: 10 * v]).tolist()
    [2.0, 30.0]
    """
    x = creation.asarray(promotion.checked("piecewise", x))
    conditions = creation.asarray(condlist, bool)
    if (
        conditions.ndim == x.ndim
        and conditions.ndim < 2
        and not (conditions.ndim and isinstance(condlist, (list, tuple)))
    ):
        conditions = conditions[None]
    count = conditions.shape[0]
    functions = list(funclist)
    if len(functions) == count + 1:
        functions = functions[-1:] + functions[:-1]
    elif len(functions) == count:
        functions = [0, *functions]
    else:
        raise ValueError(
            f"piecewise: with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(functions)}."
        )
    out: Any = None
    for k, function in enumerate(functions):
        value = vectorize(lambda v, f=function: f(v, *args, **kw))(x) if callable(function) else function
        value = creation.asarray(value).astype(x.dtype)
        out = shapes.broadcast_to(value, x.shape) if k == 0 else sorting.where(conditions[k - 1], value, out)
    return out
