"""Checks at run time that work under every transform: a checked function returns its first failure as a value.

>>> from morphax import numpy as jnp
>>> def f(x):
...     check(x > 0, "x must be positive; it is {x}", x=x)
...     return jnp.log(x)
>>> error, out = checkify(f)(jnp.array(-1.0))
>>> error.get()
'x must be positive; it is -1.0 (`check` failed)'
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.control import checkify as _checking
from morphax.control.checkify import (
    DivisionByZeroError,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    NaNError,
    OOBError,
)
from morphax.ir import avals
from morphax.ir.current import current
from morphax.ir.trace import run_under
from morphax.ops import elementwise as _ew
from morphax.ops import structure as _structure
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.api import as_array
from morphax.transforms.flat import FlatFun, canonical, check_callable, check_leaf, name_of

ErrorCategory = type[JaxException]
user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks: frozenset[ErrorCategory] = nan_checks | div_checks
automatic_checks: frozenset[ErrorCategory] = float_checks | index_checks
all_checks: frozenset[ErrorCategory] = automatic_checks | user_checks


class Error:
    """The first failure of a checked function, or none. A pytree: it can be returned from jitted functions, mapped and
    carried by loops.

    >>> init_error.get() is None
    True
    """

    __slots__ = ("_code", "_metadata", "_payload", "_pred")

    def __init__(self, _pred: Any, _code: Any, _metadata: Any, _payload: Any):
        self._pred = _pred  # whether there is one
        self._code = _code  # its number among the checks, from 1
        self._metadata = _metadata  # (checks, slots)
        self._payload = _payload  # what messages show: a value for each slot

    def get(self) -> str | None:
        """The message of the failure, or None. For mapped functions, a line for each failure."""
        failures = self._failures()
        if not failures:
            return None
        return "\n".join([f"{_place(index)}{text}" for index, _, text in failures])

    def get_exception(self) -> JaxException | None:
        """The failure as an exception that says where the check stands, or None."""
        failures = self._failures()
        if not failures:
            return None
        lines = [f"{_place(index)}{text}\nThe check stands at {site.where}." for index, site, text in failures]
        return failures[0][1].error("\n".join(lines))

    def throw(self) -> None:
        """Raise the failure, if there is one.

        Raises:
            JaxRuntimeError: a check failed.
        """
        check_error(self)

    def _failures(self) -> list[tuple[tuple[int, ...], Any, str]]:
        codes = np.asarray(self._code)
        sites, slots = self._metadata
        found = []
        for index in np.argwhere(codes != 0) if codes.ndim else [()] if codes else []:
            at = tuple(int(i) for i in index)
            site = sites[int(codes[at]) - 1]
            held = dict(zip(slots, self._payload, strict=True))
            found.append((at, site, _checking.describe(site, [np.asarray(held[s])[at] for s in site.slots])))
        return found

    def tree_flatten(self) -> tuple[Any, Any]:
        """Children and structure of the pytree node."""
        return (self._pred, self._code, tuple(self._payload)), self._metadata

    @classmethod
    def tree_unflatten(cls, metadata: Any, data: Any) -> "Error":
        """The error with that structure and these children."""
        return cls(data[0], data[1], metadata, data[2])

    def __repr__(self) -> str:
        return f"Error({len(self._metadata[0])} checks, code={self._code})"


def _place(index: tuple[int, ...]) -> str:
    return f"at mapped index {', '.join(map(str, index))}: " if index else ""


tree.register_pytree_node_class(Error)
init_error = Error(np.False_, np.int32(0), ((), ()), ())


@api_boundary
def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., Any]:
    """`f` as a function that also returns the first failed check, instead of raising.

    Args:
        f: function of pytrees of arrays. It may be jitted, mapped, differentiated, and use control flow.
        errors: which checks to make: `user_checks` (those of `check`), `nan_checks`, `div_checks`, `index_checks`,
            their unions `float_checks`, `automatic_checks` and `all_checks`, or a set of error classes.

    Returns:
        A function of the same arguments: (error, output). It can be jitted, mapped and differentiated.

    >>> from morphax import numpy as jnp
    >>> checkify(lambda x: 1 / x, errors=float_checks)(jnp.array(0.0))[0].get()
    'division by zero'
    """
    check_callable("checkify", f)
    chosen = frozenset(errors)
    wrong = [e for e in chosen if not (isinstance(e, type) and issubclass(e, JaxException))]
    if wrong:
        raise TypeError(f"checkify: errors must be a set of error classes such as user_checks; it holds {wrong[0]!r}.")

    @api_boundary
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, in_tree = tree.flatten((args, kwargs))
        for leaf in leaves:
            check_leaf("checkify", leaf, lambda: f"an argument of {name_of(f)}")
        flat = FlatFun(f, in_tree, "checkify")
        trace = _checking.Checkify(current.trace, chosen)
        try:
            outs = run_under(trace, flat, *[as_array(canonical(x)) for x in leaves])
        finally:
            trace.done = True
        code = as_array(trace.code)
        pred = _ew.ne(code, np.int32(0))
        payload = tuple([as_array(v) for v in trace.slots.values()])
        error = Error(pred, code, (tuple(trace.sites), tuple(trace.slots)), payload)
        return error, tree.unflatten(flat.out_tree, [as_array(o) for o in outs])

    functools.update_wrapper(checked, f, updated=())
    checked.__name__ = f"checkify_{name_of(f)}"
    return checked


@api_boundary
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fail where `pred` is false.

    Inside a function given to `checkify` the failure is returned; elsewhere it is raised at once, and compiled
    functions that were not given to `checkify` refuse to hold checks.

    Args:
        pred: scalar bool.
        msg: format string of the message.
        fmt_args, fmt_kwargs: arrays that the message shows, as in `msg.format(*fmt_args, **fmt_kwargs)`.
        debug: skip the check silently where there is no `checkify`.

    Raises:
        JaxRuntimeError: the check fails outside `checkify`.
        TypeError: `pred` is not a scalar bool, or something to show is not an array.

    >>> from morphax import numpy as jnp
    >>> check(jnp.array(True), "never shown")
    """
    if not isinstance(msg, str):
        raise TypeError(f"check: msg must be a string; it is {msg!r:.60}.")
    aval = check_leaf("check", pred, lambda: "pred")
    if aval.shape != () or aval.dtype != np.dtype("bool"):
        raise TypeError(f"check takes a scalar bool as pred; it has type {aval}. Reduce it, for example with .all().")
    values, structure = tree.flatten((fmt_args, fmt_kwargs))
    for value in values:
        try:
            avals.typeof(value)
        except TypeError:
            raise TypeError(
                f"check: what the message shows must be pytrees of arrays; got {value!r:.60} of type "
                f"{type(value).__name__}. Write other things into the message itself."
            ) from None
    values = [as_array(canonical(v)) for v in values]
    slots = _checking.slots_for(values)
    site = _checking.Site(FailedCheckError, msg, _checking.here(), slots, structure)
    failed = _structure.convert(_ew.not_(as_array(pred)), np.dtype("int32"))
    _checking.check_p(failed, *values, sites=(site,), slots=slots, debug=bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` that is skipped silently where there is no `checkify`.

    >>> from morphax import numpy as jnp
    >>> debug_check(jnp.array(False), "skipped here")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@api_boundary
def check_error(error: Error) -> None:
    """Fail where an error that a checked function returned holds a failure: `check` for errors.

    Raises:
        JaxRuntimeError: there is a failure, outside `checkify`. TypeError: `error` is not an `Error`.

    >>> check_error(init_error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got {error!r:.60} of type {type(error).__name__}.")
    sites, slots = error._metadata
    if sites:
        code, values = _checking.first_failure(error._code, error._payload)
        _checking.check_p(code, *values, sites=sites, slots=slots, debug=False)


__all__ = [
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
