"""`jit`: trace once for each signature, compile once for each program, dispatch repeated calls in C++."""

import collections
import functools
import inspect
import itertools
import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from morphax.control.call import call
from morphax.ir import avals
from morphax.ir.current import base, current
from morphax.ir.jaxpr import ClosedJaxpr, Jaxpr, evaluate
from morphax.ir.sharding import PartitionSpec, check_spec
from morphax.ir.trace import Tracer, close, stage
from morphax.runtime import array, backend, eager, nonfinite, outline, shardings
from morphax.runtime import compile as compiling
from morphax.support import config, dtypes, tracebacks, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms.flat import FlatFun, argument_path, check_callable, check_leaf, dce_names, name_of

_TRACES_KEPT = 1024
_NOTES_KEPT = 256
_numbered = itertools.count()  # tells functions apart in the C++ cache; ids would come again
_log = logging.getLogger("morphax")
UNSPECIFIED = type("UnspecifiedValue", (), {"__repr__": lambda self: "UnspecifiedValue"})()


class Traced:
    """A function traced for one signature: a jaxpr, its constants and the structure of its output.

    What `jit(f).trace(...)` returns; `lower()` goes on to StableHLO.
    """

    __slots__ = (
        "_state",
        "consts",
        "donated",
        "executables",
        "in_tree",
        "kept",
        "name",
        "open_jaxpr",
        "out_tree",
        "program",
        "types",
    )

    def __init__(self, state: "Jit", jaxpr: Jaxpr, consts: list[Any], in_tree: Any, out_tree: Any, donated: Any):
        self._state = state
        self.name = state.name
        self.open_jaxpr = jaxpr
        self.consts = consts
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.types = jaxpr.in_avals
        self.donated = donated
        self.program = close(jaxpr)  # one object, so that what is derived from it is derived once
        self.executables: dict[Any, compiling.Executable] = {}
        used = {v for eqn in jaxpr.eqns for v in eqn.invars} | set(jaxpr.outvars) if not state.keep_unused else None
        self.kept = [used is None or v in used for v in jaxpr.invars]

    @property
    def fun_name(self) -> str:
        return self.name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return ClosedJaxpr(self.open_jaxpr, self.consts)

    @property
    def out_info(self) -> Any:
        return tree.unflatten(self.out_tree, [avals.ShapeDtypeStruct.of(a) for a in self.program.out_avals])

    @property
    def in_avals(self) -> Any:
        return tree.unflatten(self.in_tree, self.types)

    @property
    def args_info(self) -> Any:
        return tree.unflatten(self.in_tree, [avals.ShapeDtypeStruct.of(a) for a in self.types])

    def lower(self, *, lowering_platforms: Sequence[str] | None = None, _private_parameters: Any = None) -> "Lowered":
        """The StableHLO module of the traced function."""
        return Lowered(self, self._state.target(self, [avals.ShapeDtypeStruct.of(t) for t in self.types])[0])

    def pruned(self) -> Jaxpr:
        """The program without the inputs that it does not read."""
        if all(self.kept):
            return self.program
        found = self.program.memo.get("kept")
        if found is None:
            count = len(self.consts)
            keep = [True] * count + self.kept
            inputs = [v for v, k in zip(self.program.invars, keep, strict=True) if k]
            found = Jaxpr((), inputs, self.program.eqns, self.program.outvars, self.program.effects, self.name)
            self.program.memo["kept"] = found
        return found

    def request(self, target: eager.Target) -> compiling.Request:
        """What to compile for devices."""
        donated: tuple[bool, ...] = ()
        if True in self.donated:
            given = [d for d, k in zip(self.donated, self.kept, strict=True) if k]
            donated = (*[False] * len(self.consts), *given)
        options = self._state.compiler_options
        if self._state.eager:
            types = self.types + self.program.out_avals
            options = compiling.eager_options(target.devices[0], types, self._state.exact)
        if len(target.devices) == 1:
            return compiling.Request(target.devices, donated, options)
        kept = [s for s, k in zip(target.in_shardings, self.kept, strict=True) if k]
        whole = eager.replicated(target.in_shardings[0] if target.in_shardings else self._state.anywhere(self))
        inputs = (*[whole] * len(self.consts), *kept)
        return compiling.Request(target.devices, donated, options, inputs, self._state.result_shardings(self))

    def executable(self, target: eager.Target) -> compiling.Executable:
        """The compiled program for devices."""
        found = self.executables.get(target)
        if found is None:
            found = compiling.compiled(self.pruned(), f"jit_{self.name}", self.request(target))
            self.executables[target] = found
        return found


_living: "weakref.WeakSet[Jit]" = weakref.WeakSet()


def clear() -> None:
    """Forget the traces and compiled programs of every function."""
    for state in list(_living):
        state.traces.clear()
        state.wide = None
    eager.CACHE.clear()


class Jit:
    """State of one jitted function: its options, its traces, and the ledger of its cache misses."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        donate_argnums: tuple[int, ...],
        donate_argnames: tuple[str, ...],
        keep_unused: bool,
        device: Any,
        inline: bool,
        compiler_options: tuple[tuple[str, Any], ...],
        eager: bool = False,
        exact: bool = False,
    ):
        self.fun = fun
        self.name = name_of(fun)
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.donate_argnums = donate_argnums
        self.donate_argnames = donate_argnames
        self.keep_unused = keep_unused
        self.device = device
        self.inline = inline
        self.compiler_options = compiler_options
        self.eager = eager
        self.exact = exact
        self.in_shardings: Any = UNSPECIFIED
        self.out_shardings: Any = UNSPECIFIED
        self.wide: Wide | None = None
        self.forget: Callable[[], None] = lambda: None
        self.traces: dict[Any, Traced] = {}
        self.ledger: collections.deque[dict[str, Any]] = collections.deque(maxlen=_NOTES_KEPT)
        _living.add(self)

    def clear(self) -> None:
        """Forget every trace and compiled program of this function."""
        self.traces.clear()
        self.wide = None
        self.forget()

    # ---- signatures ----

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Dynamic positional arguments, dynamic keyword arguments, and the static ones as a key."""
        if not self.static_argnums and not self.static_argnames:
            return args, kwargs, ()
        count = len(args)
        nums = {n % count if n < 0 else n for n in self.static_argnums if -count <= n < count}
        static = tuple([(i, args[i]) for i in sorted(nums)])
        names = tuple([(k, kwargs[k]) for k in self.static_argnames if k in kwargs])
        for where, value in (*static, *names):
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    f"jit: the static argument {where!r} of {self.name} is {value!r:.60} of type "
                    f"{type(value).__name__}, which is not hashable. Static arguments are keys of the cache of "
                    "programs: pass a tuple instead of a list, or make the argument dynamic."
                ) from None
        dynamic = tuple([a for i, a in enumerate(args) if i not in nums])
        return dynamic, {k: v for k, v in kwargs.items() if k not in self.static_argnames}, (count, static, names)

    def explain(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Make an exception of a call say what the user needs, before a bare `raise`."""
        if isinstance(error, ValueError) and "Non-hashable static" in str(error):
            try:
                self.split(args, kwargs)
            except ValueError as explained:
                error.args = explained.args
        eager.explain(error, (args, kwargs))

    def merged(self, static: Any) -> Callable[..., Any]:
        """`fun` as a function of the dynamic arguments."""
        if not static:
            return self.fun
        count, positional, named = static
        fixed = dict(positional)

        def with_static(*dynamic: Any, **kwargs: Any) -> Any:
            given = iter(dynamic)
            return self.fun(*[fixed[i] if i in fixed else next(given) for i in range(count)], **kwargs, **dict(named))

        with_static.__name__ = self.name
        return with_static

    def signature(self, args: Any, kwargs: Any) -> tuple[list[Any], Any, tuple[avals.ShapedArray, ...], Any]:
        """Leaves, structure, types and static arguments of a call."""
        dynamic, named, static = self.split(args, kwargs)
        leaves, in_tree = tree.flatten((dynamic, named))
        types = []
        for k, leaf in enumerate(leaves):
            try:
                types.append(leaf.aval)
            except AttributeError:
                types.append(check_leaf("jit", leaf, lambda: self._path(dynamic, named, k)))  # noqa: B023 - at once
        return leaves, in_tree, tuple(types), static

    def _path(self, args: Any, kwargs: Any, position: int) -> str:
        return f"{argument_path(tree.leaves_with_path((args, kwargs))[position][0])} of {self.name}"

    # ---- tracing ----

    def trace(self, in_tree: Any, types: tuple[avals.ShapedArray, ...], static: Any) -> Traced:
        """The trace for a signature, made now if there is none."""
        key = (in_tree, types, static, config.trace_context())
        try:
            found = self.traces.get(key)
        except TypeError as error:
            raise ValueError(f"jit: a static argument of {self.name} cannot be compared: {error}.") from None
        if found is not None:
            return found
        if config.no_tracing.value:
            raise RuntimeError(
                f"re-tracing function {self.name} for `jit`, but 'no_tracing' is set. It is called with new types, "
                f"({', '.join(map(str, types))}), or for the first time; call it once before."
            )
        flat = FlatFun(self.merged(static), in_tree, "jit")
        jaxpr, consts = stage(flat, types, self.name, dce_names(in_tree))
        traced = Traced(self, jaxpr, consts, in_tree, flat.out_tree, self._donated(in_tree, static))
        self._note(key)
        # A trace that closes over a traced value belongs to the transform around it, and must not outlive it.
        if not any(isinstance(c, Tracer) for c in consts):
            if len(self.traces) >= _TRACES_KEPT:
                self.traces.clear()
            self.traces[key] = traced
        return traced

    def _donated(self, in_tree: Any, static: Any) -> tuple[bool, ...]:
        if not self.donate_argnums and not self.donate_argnames:
            return (False,) * in_tree.num_leaves
        args, kwargs = tree.unflatten(in_tree, [False] * in_tree.num_leaves)
        fixed = dict(static[1]) if static else {}
        count = len(args) + len(fixed)
        places = [i for i in range(count) if i not in fixed]
        nums = {n % count for n in self.donate_argnums if -count <= n < count}
        marked = [tree.map(lambda _, i=i: i in nums, a) for i, a in zip(places, args, strict=True)]
        named = {k: tree.map(lambda _, k=k: k in self.donate_argnames, v) for k, v in kwargs.items()}
        return tuple(tree.leaves((tuple(marked), named)))

    def _note(self, key: Any) -> None:
        in_tree, types, static, flags = key
        entry = {"in_tree": in_tree, "types": types, "static": static, "flags": flags, "why": "first call"}
        if self.ledger:
            entry["why"] = min((_difference(old, entry) for old in self.ledger), key=len)
        self.ledger.append(entry)
        if config.explain_cache_misses.value or config.log_compiles.value:
            _log.warning("jit: tracing %s for (%s): %s", self.name, ", ".join(map(str, types)), entry["why"])

    # ---- calling ----

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """What C++ calls for a signature that it does not know."""
        if config.disable_jit.value and not self.eager:
            return self.fun(*args, **kwargs), None, False
        leaves, in_tree, types, static = self.signature(args, kwargs)
        traced = self.trace(in_tree, types, static)
        if current.trace is not base():
            return self.bind(traced, leaves), None, False
        for x in leaves:
            if isinstance(x, Tracer):
                return self.bind(traced, leaves), None, False
        return self.run(traced, leaves)

    def bind(self, traced: Traced, leaves: Sequence[Any]) -> Any:
        """Call under a transform: the program becomes one equation."""
        if self.inline and current.trace is not base():
            outs = _inline(traced, leaves)
        else:
            outs = call(*traced.consts, *leaves, jaxpr=traced.program, name=self.name)
        return tree.unflatten(traced.out_tree, outs)

    def run(self, traced: Traced, leaves: Sequence[Any]) -> tuple[Any, Any, bool]:
        """Run on concrete values, and the fast path for the next call."""
        operands = [x for x, k in zip(leaves, traced.kept, strict=True) if k]
        target, committed = self.target(traced, leaves)
        executable = traced.executable(target)
        outs = executable([*traced.consts, *operands], committed)
        if backend.results_watched():
            nonfinite.check_program(self.name, traced.program, [*traced.consts, *leaves], outs, self.eager)
            return tree.unflatten(traced.out_tree, outs), None, False
        fast = eager.fast_path(executable, traced.out_tree, traced.consts, committed)
        if self._suits_twin(traced, leaves) and not executable.has_keys:
            self.wide = Wide(executable, traced, leaves, committed)
        if any(isinstance(x, array.KeyArray) for x in leaves):  # C++ does not know them
            fast = None
        if fast is not None:
            # C++ reads one entry for each constant too, unchecked.
            fast = fast._replace(kept_var_bitvec=[True] * len(traced.consts) + list(traced.kept))
        return tree.unflatten(traced.out_tree, outs), fast, False

    def target(self, traced: Traced, leaves: Sequence[Any]) -> tuple[eager.Target, bool]:
        """Where to run: where the arguments are, or where the options say."""
        if self.device is not None:
            return eager.Target((self.device,)), True
        if self.in_shardings is UNSPECIFIED and self.out_shardings is UNSPECIFIED:
            found, committed = eager.target_of(leaves)
            if len(found.devices) == 1 and not committed:
                inner = eager.mesh_of(traced.program)
                if inner is not None:
                    whole = (eager.replicated(inner),) * len(leaves)
                    return eager.Target(tuple(inner._internal_device_list), whole), True
            return found, committed
        given = self.argument_shardings(traced)
        chosen = next((s for s in (*given, *self.result_shardings(traced)) if s is not None), None)
        if chosen is None:
            return eager.target_of(leaves)
        devices = tuple(chosen._internal_device_list)
        if len(devices) == 1:
            return eager.Target(devices), True
        found, _ = eager.target_of([x for x, s in zip(leaves, given, strict=True) if s is None])
        own = iter(found.in_shardings if len(found.devices) > 1 else itertools.repeat(eager.replicated(chosen)))
        return eager.Target(devices, tuple([next(own) if s is None else s for s in given])), True

    def anywhere(self, traced: Traced) -> Any:
        """Some sharding that the options name."""
        return next(s for s in (*self.argument_shardings(traced), *self.result_shardings(traced)) if s is not None)

    def argument_shardings(self, traced: Traced) -> list[Any]:
        """The sharding that `in_shardings` gives each leaf; None where it is the argument's own."""
        if self.in_shardings is UNSPECIFIED or self.in_shardings is None:
            return [None] * len(traced.types)
        args, kwargs = tree.unflatten(traced.in_tree, range(len(traced.types)))
        spread = tree.broadcast_prefix(
            (self.in_shardings, None if not kwargs else tree.map(lambda _: None, kwargs)),
            (args, kwargs),
            is_leaf=_is_sharding,
            what=f"jit in_shardings of {self.name}",
        )
        found = [shardings.as_sharding("jit in_shardings", s) for s in spread]
        _check_fit("in_shardings", self.name, found, traced.types)
        return found

    def result_shardings(self, traced: Traced) -> tuple[Any, ...]:
        """The sharding that `out_shardings` gives each result; None where XLA chooses."""
        count = traced.out_tree.num_leaves
        if self.out_shardings is UNSPECIFIED or self.out_shardings is None:
            return (None,) * count
        spread = tree.broadcast_prefix(
            self.out_shardings, traced.out_tree, is_leaf=_is_sharding, what=f"jit out_shardings of {self.name}"
        )
        found = [shardings.as_sharding("jit out_shardings", s) for s in spread]
        _check_fit("out_shardings", self.name, found, traced.program.out_avals)
        return tuple(found)

    def _suits_twin(self, traced: Traced, leaves: Sequence[Any]) -> bool:
        plain = not traced.consts and not self.static_argnums and not self.static_argnames and all(traced.kept)
        return plain and len(leaves) >= _WIDE and all(x.__class__ is array.ArrayImpl for x in leaves)


def _is_sharding(x: Any) -> bool:
    return x is None or isinstance(x, (shardings.Sharding, PartitionSpec))


def _check_fit(what: str, name: str, given: Sequence[Any], types: Sequence[avals.ShapedArray]) -> None:
    for s, t in zip(given, types, strict=True):
        if isinstance(s, shardings.NamedSharding):
            check_spec(f"jit {what} of {name}", s.mesh, s.spec, t.shape)


def _inline(traced: Traced, leaves: Sequence[Any]) -> list[Any]:
    return evaluate(traced.program, (), [*traced.consts, *leaves])


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    if old["in_tree"] != new["in_tree"]:
        return "the structure of the arguments differs from every earlier call"
    parts = [
        f"leaf {k} was {a} and is {b}"
        for k, (a, b) in enumerate(zip(old["types"], new["types"], strict=True))
        if a != b
    ]
    if old["static"] != new["static"]:
        parts.append("a static argument has another value")
    if old["flags"] != new["flags"]:
        parts.append("a configuration flag was changed")
    return "; ".join(parts) or "the earlier trace closed over values of a transform"


# ---- the public function ---------------------------------------------------------------------------------------------


def _numbers(what: str, value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    values = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not all(isinstance(v, (int, np.integer)) for v in values):
        raise TypeError(f"jit: {what} must be an int or a sequence of ints; it is {value!r}.")
    return tuple(int(v) for v in values)


def _names(what: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    values = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(v, str) for v in values):
        raise TypeError(f"jit: {what} must be a string or a sequence of strings; it is {value!r}.")
    return values


def _complete(
    fun: Any, nums: tuple[int, ...], names: tuple[str, ...], what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same parameters, so that each may be passed either way."""
    if not nums and not names:
        return nums, names
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return nums, names
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_all = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for n in nums:
        if not takes_all and not -len(positional) <= n < len(positional):
            raise ValueError(
                f"jit: {what}argnums has {n}, but {name_of(fun)} takes {len(positional)} positional arguments."
            )
    known = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for name in names:
        if not takes_any and name not in known:
            raise ValueError(
                f"jit: {what}argnames has {name!r}, but {name_of(fun)} has no such parameter: {sorted(known)}."
            )
    all_nums = set(nums) | {i for i, p in enumerate(positional) if p.name in names}
    by_name = {positional[n].name for n in nums if -len(positional) <= n < len(positional)
               and positional[n].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD}  # fmt: skip
    return tuple(sorted(all_nums)), tuple(sorted(set(names) | by_name))


@api_boundary
def jit(
    fun: Any = UNSPECIFIED,
    /,
    *,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """`fun` compiled by XLA, once for each combination of argument types and static values.

    Args:
        fun: pure function of pytrees of arrays. Without it, a decorator is returned.
        in_shardings: shardings, or specs on the current mesh, of the positional arguments: a pytree prefix of them.
            None: as the argument is.
        out_shardings: the same of the results. None: as XLA chooses.
        static_argnums: positions of arguments that are part of the program; their values must be hashable.
        static_argnames: the same by name.
        donate_argnums: positions of arguments whose buffers the program may reuse; they are deleted by the call.
        donate_argnames: the same by name.
        keep_unused: pass arguments to the program that it does not read.
        device: where to run, instead of where the arguments are.
        backend: platform whose first device is used.
        inline: under another transform, put the operations into the caller instead of a call.
        compiler_options: XLA flags by name.

    Returns:
        A function with the same signature, and with `lower`, `trace`, `eval_shape`, `clear_cache`, `cache_report` (why
        it was traced) and `explain` (which repeated blocks were made functions).

    Raises:
        TypeError: an argument that is not an array, or a wrong option.
        ValueError: a static argument that is not hashable.

    >>> from morphax import numpy as jnp
    >>> float(jit(lambda x: x * x + 2.0)(jnp.float32(3.0)))
    11.0
    """
    options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
    }
    if fun is UNSPECIFIED:
        return lambda f: jit(
            f, in_shardings=in_shardings, out_shardings=out_shardings, keep_unused=keep_unused, device=device,
            backend=backend, inline=inline, compiler_options=compiler_options, **options,
        )  # fmt: skip
    check_callable("jit", fun)
    placed = (in_shardings, out_shardings)
    return _jit(fun, options, keep_unused, _device(device, backend), inline, compiler_options, placed)


def _device(device: Any, platform: str | None) -> Any:
    if device is None:
        return None if platform is None else backend.local_devices(backend=platform)[0]
    if platform is not None:
        raise ValueError("jit: give device or backend, not both.")
    return device


def _jit(
    fun: Any,
    options: dict[str, Any],
    keep_unused: bool,
    device: Any,
    inline: bool,
    compiler_options: Any,
    placed: tuple[Any, Any],
) -> Any:
    static = _complete(
        fun,
        _numbers("static_argnums", options["static_argnums"]),
        _names("static_argnames", options["static_argnames"]),
        "static_",
    )
    donated = _complete(
        fun,
        _numbers("donate_argnums", options["donate_argnums"]),
        _names("donate_argnames", options["donate_argnames"]),
        "donate_",
    )
    if set(static[0]) & set(donated[0]):
        raise ValueError(
            f"jit: arguments {sorted(set(static[0]) & set(donated[0]))} of {name_of(fun)} are static and donated."
        )
    state = Jit(fun, *static, *donated, keep_unused, device, inline, tuple(sorted((compiler_options or {}).items())))
    state.in_shardings, state.out_shardings = placed
    made = _front(state, _dispatch(state))
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(fun, attribute):
            setattr(made, attribute, getattr(fun, attribute))
    made.__wrapped__ = fun
    made.trace = api_boundary(lambda *args, **kwargs: _traced(state, args, kwargs))
    made.lower = api_boundary(lambda *args, **kwargs: _lowered(state, args, kwargs))
    made.eval_shape = api_boundary(lambda *args, **kwargs: _traced(state, args, kwargs).out_info)
    made.clear_cache = state.clear
    made.cache_report = lambda: report(state)
    made.explain = api_boundary(lambda *args, **kwargs: outline.explain(_traced(state, args, kwargs).program))
    return made


def _dispatch(state: Jit) -> Any:
    """The callable in front of a `Jit`: jaxlib's, which dispatches known signatures without entering Python."""
    return _jax.pjit(
        state.name,
        state.fun,
        api_boundary(state.miss),
        list(state.static_argnums),
        list(state.static_argnames),
        (state.name, next(_numbered)),
        tree.registry,
        eager.shard_arg,
        eager.CACHE,
    )


_WIDE = 24  # leaves from which the Python twin is faster: 8 and 9 us at 20, 130 and 80 us at 300 (C++ and twin)
_MISSED = object()


class Wide:
    """The Python twin of the C++ dispatch, for one structure of many leaves.

    C++ builds a key from every leaf; here the types of the leaves are compared with those of the last call, which are
    the same objects. What does not fit goes to C++, and what XLA refuses too.
    """

    __slots__ = ("committed", "executable", "flags", "handlers", "in_tree", "out_tree", "types")

    def __init__(self, executable: compiling.Executable, traced: Traced, leaves: Sequence[Any], committed: bool):
        self.executable = executable.xla
        self.handlers = executable.handlers[committed]
        self.in_tree = traced.in_tree
        self.out_tree = traced.out_tree
        self.types = [x.aval for x in leaves]
        # With one device there is nothing that being committed could decide.
        self.committed = [x._committed for x in leaves] if backend.local_device_count() > 1 else None
        self.flags = config.trace_context()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, in_tree = _flatten((args, kwargs))
        if in_tree != self.in_tree or config.trace_context() != self.flags or backend.results_watched():
            return _MISSED
        try:
            if [x.aval for x in leaves] != self.types:
                return _MISSED
            if self.committed is not None and [x._committed for x in leaves] != self.committed:
                return _MISSED
            outs = self.executable.execute_sharded(leaves)
        except (
            AttributeError,
            TypeError,
            ValueError,
            RuntimeError,
        ):  # host values, tracers, other devices, deleted ones
            return _MISSED
        return self.out_tree.unflatten(outs.consume_with_handlers(self.handlers))


_flatten = tree.registry.flatten


def _front(state: Jit, dispatch: Any) -> Any:
    """The function that `jit` returns: C++ dispatch, or its twin where there are many leaves."""
    state.forget = lambda: dispatch._clear_cache()  # the bound method of C++ is unknown to the collector of cycles
    code = getattr(state.fun, "__code__", None)
    plain = code is not None and not code.co_flags & _TAKES_MORE and not code.co_kwonlyargcount
    if code is not None and plain and not state.fun.__defaults__ and 0 < code.co_argcount <= _FEW:
        names = code.co_varnames[: code.co_argcount]
        if not any(n.startswith(("_", ".")) for n in names):
            return _fixed_front(names, code.co_posonlyargcount)(
                dispatch, state, base(), current, _MISSED, tracebacks.clean
            )
    return _open_front(dispatch, state, base())


_TAKES_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_FEW = 12


def _open_front(dispatch: Callable[..., Any], state: Jit, outside: Any) -> Callable[..., Any]:
    def jitted(*args: Any, **kwargs: Any) -> Any:
        if state.wide is not None and current.trace is outside:
            out = state.wide(args, kwargs)
            if out is not _MISSED:
                return out
        try:
            return dispatch(*args, **kwargs)
        except Exception as error:
            try:
                state.explain(error, args, kwargs)
            except RuntimeError as better:
                tracebacks.clean(better)
                raise
            raise

    return jitted


@functools.lru_cache(256)
def _fixed_front(names: tuple[str, ...], positional: int) -> Callable[..., Callable[..., Any]]:
    """As `_open_front`, for functions of these parameters alone. Passing arguments on by name saves packing them into
    a tuple and a dict: 0.25 us of the 3 us of a call (CPython 3.11)."""
    passed = ", ".join(names)
    head = ", ".join((*names[:positional], "/", *names[positional:])) if positional else passed
    source = (
        "def make(_dispatch, _state, _outside, _current, _missed, _clean):\n"
        f"  def jitted({head}):\n"
        "    if _state.wide is not None and _current.trace is _outside:\n"
        f"      _out = _state.wide(({passed},), {{}})\n"
        "      if _out is not _missed:\n"
        "        return _out\n"
        "    try:\n"
        f"      return _dispatch({passed})\n"
        "    except Exception as _error:\n"
        "      try:\n"
        f"        _state.explain(_error, ({passed},), {{}})\n"
        "      except RuntimeError as _better:\n"
        "        _clean(_better)\n"
        "        raise\n"
        "      raise\n"
        "  return jitted\n"
    )
    made: dict[str, Any] = {}
    exec(compile(source, f"{__file__}:jitted", "exec"), made)
    return made["make"]


def _depends_on_tracers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for a in args:  # nearly always among the arguments themselves
        if isinstance(a, Tracer):
            return True
    return any(isinstance(x, Tracer) for x in tree.leaves((args, kwargs)))


def _outside(compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that depends on no traced value, under transforms that do not record: it runs as outside of them."""
    before = current.trace
    current.trace = base()
    current.mark_inside(False)
    try:
        return compiled(*args, **kwargs)
    finally:
        current.trace = before
        current.mark_inside(True)


_WIDE_DTYPES = frozenset(map(np.dtype, ("float64", "complex128", "int64", "uint64")))


def exact_numbers(args: tuple[Any, ...], static: Sequence[int] = ()) -> tuple[Any, ...]:
    """Python numbers beside 64-bit arrays as weak 64-bit arrays: C++ would round them to 32 bits while x64 is off."""
    if config.enable_x64.value:
        return args
    if not any(a.__class__ is array.ArrayImpl and a.aval.dtype in _WIDE_DTYPES for a in args):
        return args
    wide = {float: np.dtype("float64"), complex: np.dtype("complex128")}
    device = eager.target_of(args)[0].devices[0]
    found = []
    for k, a in enumerate(args):
        dtype = wide.get(a.__class__)
        if dtype is not None and k not in static:
            a = array.put(np.asarray(a, dtype), avals.ShapedArray((), dtype, True), device, committed=False)
        found.append(a)
    return tuple(found)


_LIMIT = 2**31 - 1
_BOUNDS = {d: (max(dtypes.iinfo(d).min, -_LIMIT), min(dtypes.iinfo(d).max, _LIMIT)) for d in dtypes.INTEGERS}
_ANY = (-_LIMIT, _LIMIT)


def holds(x: Any, value: Any) -> bool:
    """Whether a Python number beside the array `x` may go to a compiled function, which reads it in the default dtype
    and then converts it: both dtypes hold it."""
    if value.__class__ is not int:
        return x.dtype not in _WIDE_DTYPES or config.enable_x64.value
    try:
        low, high = _BOUNDS.get(x.aval.dtype, _ANY)
    except AttributeError:
        low, high = _BOUNDS.get(x.dtype, _ANY) if isinstance(x, (np.ndarray, np.generic)) else _ANY
    return low <= value <= high


def _all_hold(args: tuple[Any, ...], kwargs: dict[str, Any], nums: Sequence[int], names: Sequence[str]) -> bool:
    """Whether the ints among the arguments that are not static may be compiled."""
    arrays = args if not kwargs else (*args, *kwargs.values())
    for k, a in enumerate(args):
        if a.__class__ is int and k not in nums:
            for x in arrays:
                if x is not a and not holds(x, a):
                    return False
    for name, value in kwargs.items():
        if value.__class__ is int and name not in names:
            for x in args:
                if not holds(x, value):
                    return False
    return True


def program(*static: str, exact: bool = False, literals: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for array functions: called outside any transform they run as one compiled program; under a transform
    their operations go to it one by one, so that jaxprs stay flat.

    Args:
        static: names of the parameters that are not arrays.
        exact: round as `jit` does, also where arrays are small: optimised programs contract x * y + z, others do not.
        literals: ints take the dtype of the arrays beside them. Those that it does not hold are not compiled but left
            to the function itself, as under transforms, so that it can refuse them or know better.
    """

    def decorate(fun: Callable[..., Any]) -> Any:
        nums, names = _complete(fun, (), static, "static_")
        compiled = _dispatch(Jit(fun, nums, names, (), (), False, None, False, (), eager=True, exact=exact))
        outside = base()

        @functools.wraps(fun)
        def array_function(*args: Any, **kwargs: Any) -> Any:
            try:
                inside = current.trace is not outside
                if inside and (current.recording or _depends_on_tracers(args, kwargs)):
                    return fun(*args, **kwargs)
                inexact = False
                for a in args:
                    kind = a.__class__
                    if kind is float or kind is complex:
                        inexact = True
                    elif kind is int and literals and not 0 <= a <= 7 and not _all_hold(args, kwargs, nums, names):
                        return fun(*args, **kwargs)
                if inexact:
                    args = exact_numbers(args, nums)
                if kwargs and literals and not _all_hold(args, kwargs, nums, names):
                    return fun(*args, **kwargs)
                return _outside(compiled, args, kwargs) if inside else compiled(*args, **kwargs)
            except Exception as error:
                try:
                    eager.explain(error, (args, kwargs))
                except RuntimeError as better:
                    tracebacks.clean(better)
                    raise
                raise

        # For operators, which look at the current trace themselves.
        array_function.compiled = compiled  # pyright: ignore[reportAttributeAccessIssue]
        return array_function

    return decorate


def _traced(state: Jit, args: Any, kwargs: Any) -> Traced:
    _, in_tree, types, static = state.signature(args, kwargs)
    return state.trace(in_tree, types, static)


def _lowered(state: Jit, args: Any, kwargs: Any) -> "Lowered":
    leaves, in_tree, types, static = state.signature(args, kwargs)
    traced = state.trace(in_tree, types, static)
    return Lowered(traced, state.target(traced, leaves)[0])


def report(state: Jit) -> str:
    """One line for each trace of a function: its types, and what differed from the nearest earlier call.

    >>> f = jit(lambda x: x)
    >>> f(1.0).item(), f(1).item()
    (1.0, 1)
    >>> print(f.cache_report())
    <lambda>: 2 traces
      1. (f32[]): first call
      2. (i32[]): leaf 0 was f32[] and is i32[]
    """
    lines = [f"{state.name}: {len(state.ledger)} trace{'s' if len(state.ledger) != 1 else ''}"]
    for k, entry in enumerate(state.ledger, 1):
        lines.append(f"  {k}. ({', '.join(map(str, entry['types']))}): {entry['why']}")
    return "\n".join(lines)


# ---- ahead of time ---------------------------------------------------------------------------------------------------


class Lowered:
    """A function lowered to StableHLO for one signature: what `jit(f).lower(...)` returns."""

    __slots__ = ("_module", "_target", "_traced")

    def __init__(self, traced: Traced, target: eager.Target):
        self._traced = traced
        self._target = target
        self._module = compiling.lowered(traced.pruned(), f"jit_{traced.name}", traced.request(target))

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    out_info = property(lambda self: self._traced.out_info)
    args_info = property(lambda self: self._traced.args_info)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as StableHLO text."""
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: dialect must be 'stablehlo'; it is {dialect!r}. compile().as_text() gives HLO.")
        return self._module.mlir.operation.get_asm(enable_debug_info=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an MLIR object."""
        return self._module.mlir

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of operations and bytes, of the compiled program."""
        return self.compile().cost_analysis()

    @api_boundary
    def compile(self, compiler_options: dict[str, Any] | None = None, *, device_assignment: Any = None) -> "Compiled":
        """The executable for this signature."""
        if device_assignment is not None:
            raise ValueError("compile: device_assignment is not supported; place the arguments with device_put.")
        traced = self._traced
        request = traced.request(self._target)
        if compiler_options:
            request = request._replace(options=tuple(sorted(compiler_options.items())))
        module = self._module
        return Compiled(traced, compiling.build(module, traced.pruned(), f"jit_{traced.name}", request))


class Compiled:
    """An executable for one signature: what `jit(f).lower(...).compile()` returns. Call it with arguments of the same
    structure and types."""

    __slots__ = ("_executable", "_traced")

    def __init__(self, traced: Traced, executable: compiling.Executable):
        self._traced = traced
        self._executable = executable

    in_tree = property(lambda self: self._traced.in_tree)
    out_tree = property(lambda self: self._traced.out_tree)
    in_avals = property(lambda self: self._traced.in_avals)
    out_info = property(lambda self: self._traced.out_info)
    args_info = property(lambda self: self._traced.args_info)

    def as_text(self) -> str:
        """The optimised program as HLO text."""
        return "\n\n".join(m.to_string() for m in self._executable.xla.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of the work: 'flops', 'bytes accessed' and others."""
        found = self._executable.xla.cost_analysis()
        return found[0] if isinstance(found, list) else found

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and code."""
        return self._executable.xla.get_compiled_memory_stats()

    def runtime_executable(self) -> Any:
        """jaxlib's executable."""
        return self._executable.xla

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self._traced
        dynamic, named, _ = traced._state.split(args, kwargs)
        leaves, in_tree = tree.flatten((dynamic, named))
        if in_tree != traced.in_tree:
            raise TypeError(
                f"{traced.name}: compiled for arguments of structure {traced.in_tree}; called with {in_tree}."
            )
        for k, (x, want) in enumerate(zip(leaves, traced.types, strict=True)):
            got = avals.typeof(x)
            if (got.shape, got.dtype) != (want.shape, want.dtype):
                where = argument_path(tree.leaves_with_path((dynamic, named))[k][0])
                raise TypeError(f"{traced.name}: compiled for {where} of type {want}; called with {got}.")
        if any(isinstance(x, Tracer) for x in leaves):
            raise TypeError(f"{traced.name}: a compiled function cannot be called with traced values; use jit instead.")
        operands = [x for x, k in zip(leaves, traced.kept, strict=True) if k]
        outs = self._executable([*traced.consts, *operands], eager.target_of(leaves)[1])
        if backend.results_watched():
            nonfinite.check_program(traced.name, traced.program, [*traced.consts, *leaves], outs)
        return tree.unflatten(traced.out_tree, outs)
