"""Operations outside any transform: each is a compiled program of one operation, dispatched in C++."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from morphax.ir import avals
from morphax.ir.current import install_base
from morphax.ir.jaxpr import Eqn, Jaxpr, Var, subjaxprs
from morphax.ir.primitive import Primitive
from morphax.ir.sharding import PartitionSpec
from morphax.ir.trace import Trace, Tracer, leaked
from morphax.runtime import array, backend, nonfinite, shardings, versions
from morphax.runtime import compile as compiling
from morphax.support import config, tracebacks, tree


class FastPath(NamedTuple):
    """What the C++ dispatch needs to run a program again without Python. The names are jaxlib's."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Any
    out_shardings: Any
    out_avals: Any
    out_committed: Any
    kept_var_bitvec: Any
    in_device_local_layouts: Any
    const_args: Any


CACHE = _jax.PjitFunctionCache(4096)


def fast_path(
    executable: compiling.Executable, out_tree: Any, consts: Sequence[Any], committed: bool
) -> FastPath | None:
    """The C++ fast path of an executable, or None where C++ cannot take it."""
    if executable.has_keys or executable.effects:  # programs with effects are watched from Python
        return None
    if len(executable.devices) > 1 and versions.COLLECTIVES_NEED_A_BOUND and executable.devices[0].platform == "cpu":
        return None
    inputs = len(executable.in_avals)
    outputs = len(executable.out_avals)
    return FastPath(
        executable.xla,
        out_tree,
        executable.in_shardings,
        executable.out_shardings,
        list(executable.out_avals),
        [committed] * outputs,
        [True] * inputs,
        [None] * inputs,
        list(consts),
    )


def shard_arg(x: Any, sharding: Any, layout: Any) -> Any:
    """An argument that C++ cannot place by itself, with that sharding."""
    return compiling.place(x, avals.typeof(x), sharding)


class Target(NamedTuple):
    """Where operands are: the devices, and on several the sharding of each operand."""

    devices: tuple[Any, ...]
    in_shardings: tuple[Any, ...] = ()


def target_of(args: Sequence[Any]) -> tuple[Target, bool]:
    """Where the committed operands are, or the default device, and whether any was committed.

    Raises:
        ValueError: operands are committed to different devices.
    """
    chosen: Any = None
    for x in args:
        base = x.base if isinstance(x, array.KeyArray) else x
        if base.__class__ is array.ArrayImpl and (base._committed or len(base._sharding._internal_device_list) > 1):
            sharding = base._sharding
            if chosen is None or sharding is chosen:
                chosen = sharding
            elif tuple(sharding._internal_device_list) != tuple(chosen._internal_device_list):
                raise ValueError(
                    f"operands are committed to different devices, {_named(chosen)} and {_named(sharding)}. Move one "
                    "with device_put."
                )
    if chosen is None:
        return Target((backend.default_device(),)), False
    devices = tuple(chosen._internal_device_list)
    if len(devices) == 1:
        return Target(devices), True
    return Target(devices, tuple([_on_all(x, chosen) for x in args])), True


def mesh_of(jaxpr: Jaxpr) -> Any:
    """A sharding on the first mesh of several devices that the program names, in a constraint or a shard_map."""
    if "mesh" not in jaxpr.memo:
        found = None
        for eqn in jaxpr.eqns:
            if found is None and eqn.primitive.name in ("sharding_constraint", "shard_map"):
                found = eqn.params.get("sharding") or _whole(eqn.params["mesh"])
                found = found if found is not None and len(found._internal_device_list) > 1 else None
            for inner in subjaxprs(eqn.params):
                found = found if found is not None else mesh_of(inner)
        jaxpr.memo["mesh"] = found
    return jaxpr.memo["mesh"]


def _whole(mesh: Any) -> Any:
    return shardings.NamedSharding(mesh, PartitionSpec()) if mesh._internal_device_list is not None else None


def _named(sharding: Any) -> str:
    devices = list(sharding._internal_device_list)
    return str(devices[0]) if len(devices) == 1 else str(devices)


def _on_all(x: Any, chosen: Any) -> Any:
    """The sharding of an operand of a program on the devices of `chosen`: its own, or a copy on each."""
    base = x.base if isinstance(x, array.KeyArray) else x
    if base.__class__ is array.ArrayImpl and len(base._sharding._internal_device_list) > 1:
        return base._sharding
    return replicated(chosen)


def replicated(sharding: Any) -> Any:
    """A copy on each device of a sharding."""
    if isinstance(sharding, shardings.NamedSharding):
        return shardings.NamedSharding(sharding.mesh, PartitionSpec())
    return shardings.GSPMDSharding(sharding._internal_device_list, shardings._REPLICATED)


def explain(error: Exception, args: Sequence[Any]) -> None:
    """Make an exception of a compiled call say what the user needs, before a bare `raise`.

    Raises:
        RuntimeError: in its place, where an operand has been deleted; pass it on with a bare `raise` too.
    """
    if isinstance(error, _jax.JaxRuntimeError):
        for x in tree.leaves(args):
            if isinstance(x, (array.ArrayImpl, array.KeyArray)) and x.is_deleted():
                raise RuntimeError(array.deleted(x)) from None
    tracebacks.clean(error)


class Eval(Trace):
    """Runs primitives on concrete values."""

    __slots__ = ()

    def __init__(self) -> None:
        self.parent = self  # nothing stands below
        self.done = False

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        for a in args:
            if a.__class__ is not array.ArrayImpl:
                args = [_prepared(a) for a in args]
                break
        if prim.run is not None:
            return prim.run(*args, **params)
        if prim.carrier:
            return _run_carrier(prim, args, params)
        key = tuple(params.items()) if params else ()
        program = prim.eager.get(key)
        if program is None:
            program = prim.eager[key] = _program(prim, params)
        return program(*args)

    def array(self, x: Any) -> Any:
        """A host value as an Array."""
        aval = avals.operand_type(x) if isinstance(x, (np.ndarray, np.generic)) else avals.typeof(x)
        return array.put(np.asarray(x, aval.dtype), aval, backend.default_device(), committed=False)


_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def _prepared(x: Any) -> Any:
    # C++ narrows 64-bit host values while x64 is off, but here the dtype was named. It also takes arrays without axes
    # and scalars for the same, of which only the first decide a weak type.
    if isinstance(x, (np.ndarray, np.generic)) and (x.dtype in _WIDE or x.__class__ is np.ndarray and not x.ndim):
        aval = avals.operand_type(x)
        return array.put(np.asarray(x), aval, backend.default_device(), committed=False)
    return x


EVAL = Eval()
install_base(EVAL)
_LIMIT = 4096


def refuse_tracers(args: Sequence[Any]) -> None:
    """Raise for traced values that reached the base trace: they outlived their transform."""
    for x in args:
        if isinstance(x, Tracer):
            raise leaked(x)


def _single(prim: Primitive, types: tuple[avals.ShapedArray, ...], params: dict[str, Any]) -> Jaxpr:
    inputs = [Var(t) for t in types]
    outs = [Var(t) for t in prim.types(types, params)]
    return Jaxpr((), inputs, [Eqn(prim, inputs, params, outs, prim.effects_of(params))], outs, debug_name=prim.name)


def _program(prim: Primitive, params: dict[str, Any]) -> Callable[..., list[Any]]:
    """The operation with fixed parameters, for operands of any types."""
    if len(prim.eager) >= _LIMIT:
        prim.eager.clear()
    known: dict[Any, compiling.Executable] = {}

    def miss(*args: Any) -> tuple[list[Any], FastPath | None]:
        refuse_tracers(args)
        types = tuple([avals.operand_type(x) for x in args])
        target, committed = target_of(args)
        key = (types, target, config.trace_context())
        executable = known.get(key)
        if executable is None:
            jaxpr = _single(prim, types, params)
            options = compiling.eager_options(target.devices[0], jaxpr.in_avals + jaxpr.out_avals)
            request = compiling.Request(target.devices, options=options, in_shardings=target.in_shardings)
            executable = known[key] = compiling.compiled(jaxpr, prim.name, request)
        outs = executable(args, committed)
        if backend.results_watched():
            nonfinite.check_operation(prim.name, outs)
            return outs, None
        return outs, fast_path(executable, _list_tree(len(outs)), (), committed)

    return _jax.pjit(prim.name, None, miss, [], [], (prim.name,), tree.registry, shard_arg, CACHE)


_list_trees: dict[int, Any] = {}


def _list_tree(size: int) -> Any:
    found = _list_trees.get(size)
    if found is None:
        found = _list_trees[size] = tree.flatten([0] * size)[1]
    return found


def _run_carrier(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    refuse_tracers(args)
    jaxpr = subjaxprs(params)[0]
    types = tuple([avals.operand_type(x) for x in args])
    target, committed = target_of(args)
    single = None
    if len(target.devices) == 1 and not committed:
        single = _single(prim, types, params)
        inner = mesh_of(single)
        if inner is not None:
            target = Target(tuple(inner._internal_device_list), (replicated(inner),) * len(args))
    # In the jaxpr's own memo, so that it lives as long as the jaxpr.
    others = tuple([(k, v) for k, v in params.items() if v is not jaxpr])
    key = ("eager", prim, types, target, config.trace_context(), others)
    executable = jaxpr.memo.get(key)
    if executable is None:
        request = compiling.Request(target.devices, in_shardings=target.in_shardings)
        single = single or _single(prim, types, params)
        executable = compiling.compiled(single, jaxpr.debug_name or prim.name, request)
        jaxpr.memo[key] = executable
    outs = executable(args, committed)
    if backend.results_watched():
        nonfinite.check_program(jaxpr.debug_name or prim.name, _single(prim, types, params), args, outs)
    return outs
