"""Calls from compiled programs back into Python: pure_callback, io_callback, debug.callback and debug.print."""

import logging
import string
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control import effects
from morphax.control.loops import scan
from morphax.ir import avals
from morphax.ir.avals import ShapedArray
from morphax.ir.current import base
from morphax.ir.primitive import Primitive
from morphax.ops import structure
from morphax.ops.family import typeof
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import batch as batching
from morphax.transforms.flat import canonical, check_callable, name_of

_log = logging.getLogger("morphax")

# ---- the function that XLA calls -------------------------------------------------------------------------------------


class Callback:
    """A Python function on flat NumPy arrays, with its result types. An exception in it is kept: XLA passes on only its
    text."""

    __slots__ = ("fun", "in_tree", "name", "types")

    def __init__(self, fun: Callable[..., Any], in_tree: Any, types: tuple[ShapedArray, ...]):
        self.fun = fun
        self.name = name_of(fun)
        self.in_tree = in_tree
        self.types = types

    def __call__(self, *leaves: Any) -> tuple[np.ndarray, ...]:
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        try:
            return self.checked(self.fun(*args, **kwargs))
        except BaseException as error:
            failures.error = error
            raise

    def checked(self, out: Any) -> tuple[np.ndarray, ...]:
        """The results as arrays of the types that were promised."""
        leaves = tree.leaves(out)
        if len(leaves) != len(self.types):
            raise RuntimeError(
                f"callback {self.name}: {len(self.types)} results were promised, not {len(leaves)}: {out!r:.60}."
            )
        results = []
        for leaf, want in zip(leaves, self.types, strict=True):
            value = np.asarray(leaf)
            if value.shape != want.shape:
                raise RuntimeError(
                    f"callback {self.name}: a result of shape {want.shape} was promised, it returned {value.shape}."
                )
            # Python numbers take the dtype that was promised.
            typed = isinstance(leaf, (np.ndarray, np.generic))
            if typed and want.dtype not in (value.dtype, dtypes.canonicalize_dtype(value.dtype)):
                raise RuntimeError(
                    f"callback {self.name}: a result of dtype {want.dtype} was promised, it returned {value.dtype}."
                )
            results.append(value.astype(want.dtype, copy=False))
        return tuple(results)

    def __repr__(self) -> str:
        return self.name


class _Failures(threading.local):
    error: BaseException | None = None


failures = _Failures()


def _run(*operands: Any, callback: Callback, **params: Any) -> list[Any]:
    """Outside any trace: the function itself, on the host."""
    return [base().array(x) for x in callback(*[_host(x) for x in operands])]


def _host(x: Any) -> np.ndarray:
    value = np.asarray(x, typeof(x).dtype)
    value = value.view() if value.flags.owndata else value
    if value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


# ---- pure_callback ---------------------------------------------------------------------------------------------------

_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def _no_derivative(primals: Any, tangents: Any, *, callback: Callback, **params: Any) -> Any:
    raise ValueError(
        f"pure_callback: the Python function {callback.name} has no derivative. Wrap the call in a function with "
        "custom_jvp or custom_vjp."
    )


def _row(x: Any, k: int) -> Any:
    return structure.reshape_to(structure.slice_axis(x, k, k + 1, 0), typeof(x).shape[1:])


def _sequentially(prim: Primitive, operands: Any, flags: Any, size: int, params: Any, unroll: bool) -> list[Any]:
    """One call for each example, in order."""

    def one(rows: Sequence[Any]) -> list[Any]:
        found = iter(rows)
        return prim(*[next(found) if f else x for x, f in zip(operands, flags, strict=True)], **params)

    batched = [x for x, f in zip(operands, flags, strict=True) if f]
    if not unroll:
        return scan(lambda _, rows: ((), one(rows)), (), batched, length=size)[1]
    results = [one([_row(x, k) for x in batched]) for k in range(size)]
    return [
        structure.concatenate(*[structure.reshape_to(r, (1, *typeof(r).shape)) for r in column], dimension=0)
        for column in zip(*results, strict=True)
    ]


def _batch_pure(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    method, callback, size = params["vmap_method"], params["callback"], trace.size
    if method is None:
        raise NotImplementedError(
            f"pure_callback: vmap needs to know how {callback.name} takes a batch. Give vmap_method: one of "
            f"{', '.join(_METHODS)}."
        )
    if method in ("sequential", "sequential_unrolled"):
        outs = _sequentially(prim, operands, flags, size, params, method == "sequential_unrolled")
        return outs, [True] * len(outs)
    if method == "expand_dims":
        operands = [
            x if f else structure.reshape_to(x, (1, *typeof(x).shape)) for x, f in zip(operands, flags, strict=True)
        ]
    elif method == "broadcast_all":
        operands = [x if f else batching.batched(x, size) for x, f in zip(operands, flags, strict=True)]
    types = tuple([ShapedArray((size, *t.shape), t.dtype) for t in callback.types])
    made = Callback(callback.fun, callback.in_tree, types)
    outs = prim(*operands, callback=made, vmap_method=method)
    return outs, [True] * len(outs)


pure_callback_p = Primitive(
    "pure_callback",
    type=lambda *operands, callback, vmap_method: callback.types,
    lower=lambda low, ins, outs, *operands, callback, vmap_method: low.python_callback(callback, outs, operands, False),
    jvp=_no_derivative,
    batch=_batch_pure,
    run=_run,
    multiple=True,
    carrier=True,
)


def _promised(api: str, result: Any) -> tuple[list[ShapedArray], Any]:
    leaves, structure_ = tree.flatten(result)
    types = []
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(
                f"{api}: result_shape_dtypes must hold objects with shape and dtype, such as ShapeDtypeStruct; it "
                f"holds {leaf!r:.60}."
            )
        types.append(ShapedArray(tuple(leaf.shape), dtypes.named_dtype(leaf.dtype)))
    return types, structure_


@api_boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)`, a Python function without side effects, called from compiled programs.

    It may be called more often than written, or not at all where its result is not used.

    Args:
        callback: function of NumPy arrays, in the pytrees of the arguments.
        result_shape_dtypes: pytree of objects with shape and dtype: what it returns.
        args, kwargs: pytrees of arrays.
        sharding: accepted for compatibility.
        vmap_method: what `vmap` does: "sequential" (a call for each example), "sequential_unrolled", "expand_dims" (one
            call; arguments that are not batched get a first axis of size 1), "broadcast_all" (one call, every argument
            batched). None: an error.

    Raises:
        ValueError: an unknown vmap_method, or a derivative.  RuntimeError: a result of another shape or dtype.

    >>> import numpy as np
    >>> from morphax import jit, ShapeDtypeStruct
    >>> f = jit(lambda x: pure_callback(np.sin, ShapeDtypeStruct((), np.float32), x))
    >>> float(f(0.0))
    0.0
    """
    check_callable("pure_callback", callback)
    if vmap_method is not None and vmap_method not in _METHODS:
        raise ValueError(
            f"pure_callback: vmap_method must be one of {', '.join(_METHODS)} or None, not {vmap_method!r}."
        )
    types, out_tree = _promised("pure_callback", result_shape_dtypes)
    leaves, in_tree = tree.flatten((args, kwargs))
    rule = Callback(callback, in_tree, tuple(types))
    outs = pure_callback_p(*map(canonical, leaves), callback=rule, vmap_method=vmap_method)
    return tree.unflatten(out_tree, outs)


# ---- io_callback and debug.callback ----------------------------------------------------------------------------------


def _batch_io(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    if params["effect"] is effects.ORDERED_IO:
        raise ValueError(
            f"io_callback: {params['callback'].name} is ordered, and vmap has no order among examples. Use "
            "ordered=False, or lax.map."
        )
    outs = _sequentially(prim, operands, flags, trace.size, params, unroll=False)
    return outs, [True] * len(outs)


def _io_derivative(primals: Any, tangents: Any, **params: Any) -> Any:
    raise ValueError(
        f"io_callback: the Python function {params['callback'].name} has no derivative. Wrap the call in a function "
        "with custom_jvp or custom_vjp, or stop_gradient its arguments."
    )


io_callback_p = Primitive(
    "io_callback",
    type=lambda *operands, callback, effect: callback.types,
    lower=lambda low, ins, outs, *operands, callback, effect: low.python_callback(callback, outs, operands, True),
    jvp=_io_derivative,
    batch=_batch_io,
    run=_run,
    multiple=True,
    carrier=True,
    effects=lambda params: frozenset((params["effect"],)),
)


@api_boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)`, a Python function with side effects, called from compiled programs once each time.

    Args:
        callback, result_shape_dtypes, args, kwargs, sharding: as for `pure_callback`.
        ordered: keep the order of the calls, also between programs.

    >>> import morphax as jax
    >>> seen = []
    >>> f = jax.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x))
    >>> f(3.0); jax.effects_barrier(); seen
    [3.0]
    """
    check_callable("io_callback", callback)
    types, out_tree = _promised("io_callback", result_shape_dtypes)
    leaves, in_tree = tree.flatten((args, kwargs))
    rule = Callback(callback, in_tree, tuple(types))
    effect = effects.ORDERED_IO if ordered else effects.IO
    return tree.unflatten(out_tree, io_callback_p(*map(canonical, leaves), callback=rule, effect=effect))


def _batch_debug(trace: Any, prim: Primitive, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    if params["effect"] is effects.ORDERED_DEBUG:
        raise ValueError("debug.callback: ordered callbacks cannot be mapped with vmap. Use ordered=False.")
    _sequentially(prim, operands, flags, trace.size, params, unroll=False)
    return [], []


def _debug_derivative(primals: Any, tangents: Any, **params: Any) -> Any:
    debug_callback_p(*primals, **params)
    return [], []


debug_callback_p = Primitive(
    "debug_callback",
    type=lambda *operands, callback, effect: (),
    lower=lambda low, ins, outs, *operands, callback, effect: low.python_callback(callback, outs, operands, True),
    jvp=_debug_derivative,
    transpose=lambda cts, *operands, **params: [None] * len(operands),
    batch=_batch_debug,
    run=_run,
    multiple=True,
    carrier=True,
    effects=lambda params: frozenset((params["effect"],)),
)


class _Discarding:
    """A function whose result is not used."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
        self.__name__ = name_of(fun)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple:
        self.fun(*args, **kwargs)
        return ()


@api_boundary
def debug_callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> None:
    """Call a Python function with the values of traced arguments, for looking into compiled programs.

    Under `grad` it is called in the forward pass; under `vmap`, once for each example.

    Args:
        callback: function of NumPy arrays, in the pytrees of the arguments; its result is dropped.
        ordered: keep the order of the calls.
        partitioned: accepted for compatibility.
        args, kwargs: pytrees; leaves that are not arrays are passed as they are.

    >>> import morphax as jax
    >>> seen = []
    >>> jax.jit(lambda x: debug_callback(lambda v: seen.append(int(v)), x))(7)
    >>> jax.effects_barrier(); seen
    [7]
    """
    check_callable("debug.callback", callback)
    leaves, in_tree = tree.flatten((args, kwargs))
    array = [_is_array(x) for x in leaves]
    fixed = [None if a else x for x, a in zip(leaves, array, strict=True)]

    def call(*values: Any) -> None:
        found = iter(values)
        merged = [next(found) if a else x for x, a in zip(fixed, array, strict=True)]
        own_args, own_kwargs = tree.unflatten(in_tree, merged)
        callback(*own_args, **own_kwargs)

    call.__name__ = name_of(callback)
    values = [canonical(x) for x, a in zip(leaves, array, strict=True) if a]
    rule = Callback(_Discarding(call), tree.structure((tuple(values), {})), ())
    effect = effects.ORDERED_DEBUG if ordered else effects.DEBUG
    debug_callback_p(*values, callback=rule, effect=effect)


def _is_array(x: Any) -> bool:
    try:
        avals.typeof(x)
    except TypeError:
        return False
    return True


class _Formatter(string.Formatter):
    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [k for k in range(len(args)) if k not in used_args] + [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(
                f"debug.print: arguments {unused} do not appear in the format string. Write {{}} or {{name}} for each; "
                "f-strings are filled in before the value is known."
            )


_formatter = _Formatter()


@api_boundary
def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> None:
    """Print values from inside compiled programs.

    Args:
        fmt: format string with {} or {name} for the arguments; without it the values are printed in a row.
        args, kwargs: pytrees of arrays, or other values.
        ordered: keep the order of the prints.
        partitioned: accepted for compatibility.
        skip_format_check: allow arguments that do not appear in `fmt`.

    Raises:
        ValueError: an argument that does not appear in `fmt`.

    >>> import morphax as jax
    >>> jax.jit(lambda x: debug_print("x is {}", x))(3); jax.effects_barrier()
    x is 3
    """
    if fmt is None:
        fmt = " ".join(["{}"] * len(args) + [f"{k}={{{k}}}" for k in kwargs])
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print: fmt must be a format string; it is {fmt!r:.60}. Write debug.print('{{}}', x).")
    if not skip_format_check:
        _formatter.format(fmt, *[_Anything()] * len(args), **{k: _Anything() for k in kwargs})
    text = fmt

    def show(*values: Any, **named: Any) -> None:
        line = string.Formatter().format(text, *values, **named)
        if _use_logging:
            _log.info(line)
        else:
            sys.stdout.write(line + "\n")

    debug_callback(show, *args, ordered=ordered, partitioned=partitioned, **kwargs)


class _Anything:
    """Formats with any specification; stands for a value when a format string is checked."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> "_Anything":
        return self

    def __getitem__(self, key: Any) -> "_Anything":
        return self
