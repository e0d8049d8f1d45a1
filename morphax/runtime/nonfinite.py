"""`debug_nans` and `debug_infs`: results are looked at as they come, and the operation that made a NaN is found.

Of a compiled program only the outputs are looked at, so lanes that `where` throws away stay silent. When an output is
bad, the program runs again, one equation at a time, and the search goes back from that output through bad operands,
into the bodies of calls, branches and loops, to the equation that made the value from good ones.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control.call import call
from morphax.control.parts import cut
from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.ir.jaxpr import Eqn, Jaxpr, Literal
from morphax.ir.trace import user_source
from morphax.runtime import backend
from morphax.support import config, dtypes, tracebacks

_TESTS: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (config.debug_nans, "nan", np.isnan),
    (config.debug_infs, "inf", np.isinf),
)


def _kind(x: Any) -> str:
    """'nan' or 'inf' if the value holds what the flags forbid, else ''."""
    dtype = avals.typeof(x).dtype
    if not dtypes.is_inexact(dtype):
        return ""
    held = np.asarray(x)
    for flag, name, test in _TESTS:
        if flag.value and test(held).any():
            return name
    return ""


def check_operation(name: str, outs: Sequence[Any]) -> None:
    """Look at the results of an operation that ran by itself.

    Raises:
        FloatingPointError: one holds a NaN, or an infinity, as the flags say.
    """
    for out in outs:
        kind = _kind(out)
        if kind:
            raise _error(kind, name, current.source or user_source(2))


def check_program(
    name: str, jaxpr: Jaxpr, args: Sequence[Any], outs: Sequence[Any], array_function: bool = False
) -> None:
    """Look at the results of a compiled program; that of an array function knows the line that called it first only.

    Raises:
        FloatingPointError: one is bad; it names the operation that made the first such value on the way there.
    """
    bad = [(k, kind) for k, kind in enumerate(map(_kind, outs)) if kind]
    if not bad:
        return
    position, kind = bad[0]
    if any(_is_deleted(x) for x in args):
        raise FloatingPointError(
            f"invalid value ({kind}) in output {position} of {name}, whose arguments were donated, so that it cannot "
            "run again to find the operation. Do not donate them while looking for it."
        )
    found = _born(jaxpr, args, position)
    if found is None:
        raise FloatingPointError(
            f"invalid value ({kind}) in output {position} of {name}, passed on from its arguments."
        )
    source = user_source(2) if array_function else found.source
    raise _error(kind, found.primitive.name, source, f", inside {name}")


def _is_deleted(x: Any) -> bool:
    return not isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)) and x.is_deleted()


def _error(kind: str, name: str, source: Any, inside: str = "") -> FloatingPointError:
    where = f" at {tracebacks.summarize(source[0], source[1])}" if source is not None else ""
    return FloatingPointError(
        f"invalid value ({kind}) encountered in {name}{where}{inside}. The line is that of the forward operation, also "
        f"where its derivative made the value. Switch debug_{kind}s off to let it pass."
    )


# ---- the search ------------------------------------------------------------------------------------------------------


def _born(jaxpr: Jaxpr, args: Sequence[Any], position: int) -> Eqn | None:
    """The equation that made the bad value in an output from good ones, or None if an argument was bad already."""
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    made: dict[Any, Eqn] = {}
    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _apply(eqn.primitive, _operands(env, eqn), eqn.params), strict=True))
        made.update(dict.fromkeys(eqn.outvars, eqn))
    var = jaxpr.outvars[position]
    while var in made:
        eqn = made[var]
        behind = [v for v in eqn.invars if v.__class__ is not Literal and _kind(env[v])]
        if not behind:
            inner = _SEARCHES.get(eqn.primitive.name)
            found = inner(_operands(env, eqn), eqn.outvars.index(var), eqn.params) if inner is not None else None
            return found or eqn
        var = next((v for v in behind if v in made), behind[0])
    return None


def _operands(env: dict[Any, Any], eqn: Eqn) -> list[Any]:
    return [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]


def _apply(prim: Any, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    with config.debug_nans(False), config.debug_infs(False):
        return base().apply(prim, operands, params)


def _in_call(operands: Sequence[Any], position: int, params: dict[str, Any]) -> Eqn | None:
    return _born(params.get("jaxpr") or params["call_jaxpr"], operands, position)


def _in_cond(operands: Sequence[Any], position: int, params: dict[str, Any]) -> Eqn | None:
    branches = params["branches"]
    index = min(max(int(operands[0]), 0), len(branches) - 1)
    return _born(branches[index], operands[1:], position)


def _in_turn(body: Jaxpr, operands: Sequence[Any]) -> tuple[list[Any], Eqn | None]:
    """Results of one turn of a loop, and the equation that made the first bad value in it."""
    outs = _apply(call, operands, {"jaxpr": body, "name": "turn"})
    for position, out in enumerate(outs):
        if _kind(out):
            return outs, _born(body, operands, position)
    return outs, None


def _in_scan(operands: Sequence[Any], position: int, params: dict[str, Any]) -> Eqn | None:
    consts, carry, xs = cut(operands, params["num_consts"], params["num_carry"])
    length = params["length"]
    for k in range(length):
        row = length - 1 - k if params["reverse"] else k
        outs, found = _in_turn(params["jaxpr"], [*consts, *carry, *[x[row] for x in xs]])
        if found is not None:
            return found
        carry = outs[: params["num_carry"]]
    return None


def _in_while(operands: Sequence[Any], position: int, params: dict[str, Any]) -> Eqn | None:
    test_consts, consts, carry = cut(operands, params["cond_nconsts"], params["body_nconsts"])
    while _apply(call, [*test_consts, *carry], {"jaxpr": params["cond_jaxpr"], "name": "test"})[0]:
        carry, found = _in_turn(params["body_jaxpr"], [*consts, *carry])
        if found is not None:
            return found
    return None


_SEARCHES: dict[str, Callable[..., Eqn | None]] = {
    "jit": _in_call,
    "remat2": _in_call,
    "custom_jvp_call": _in_call,
    "custom_vjp_call": _in_call,
    "cond": _in_cond,
    "scan": _in_scan,
    "while": _in_while,
}


# ---- the flags and the C++ dispatch ----------------------------------------------------------------------------------

# While a flag is on, compiled calls come back to Python every time: C++ keeps what it knows apart by this state.
backend.watch_results(config.debug_nans, config.debug_infs)
