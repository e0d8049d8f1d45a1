"""Compiling jaxprs and running what was compiled. Programs are kept by what they compute, not by who asked."""

import collections
import hashlib
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _hlo, _jax

from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal
from morphax.runtime import array, backend, cache, lower, outline, shardings, versions
from morphax.support import config, dtypes

# ---- executables ----------------------------------------------------------------------------------------------------

_pending: collections.deque[Any] = collections.deque(maxlen=64)  # tokens of the latest programs with effects


def wait_for_effects() -> None:
    """Return when every program with effects that was started has finished."""
    while _pending:
        _pending.popleft().block_until_ready()


class Executable:
    """A compiled program, and what is needed to call it."""

    __slots__ = (
        "_in",
        "devices",
        "effects",
        "handlers",
        "has_keys",
        "in_avals",
        "in_shardings",
        "out_avals",
        "out_shardings",
        "xla",
    )

    def __init__(
        self,
        xla: Any,
        request: "Request",
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        effects: frozenset = frozenset(),
    ):
        self.xla = xla
        self.effects = effects
        self.devices = request.devices
        self.in_avals = tuple(in_avals)
        self.out_avals = tuple(out_avals)
        self.has_keys = any(isinstance(a.dtype, dtypes.KeyDType) for a in (*in_avals, *out_avals))
        physical = [array.physical(a) for a in out_avals]
        if len(self.devices) == 1:
            single = backend.single_device(self.devices[0])
            self.in_shardings = [single] * len(self.in_avals)
            self.out_shardings = [single] * len(self.out_avals)
        else:
            self.in_shardings = list(request.in_shardings)
            self.out_shardings = _results(xla, request, physical)
        pairs = list(zip(physical, self.out_shardings, strict=True))
        self.handlers = [[versions.result_handler(a, s, c) for a, s in pairs] for c in (False, True)]
        self._in = list(zip([array.physical(a) for a in in_avals], self.in_shardings, strict=True))

    def __call__(self, args: Sequence[Any], committed: bool = False) -> list[Any]:
        """Run the program on flat operands; asynchronous."""
        buffers = [
            x if x.__class__ is array.ArrayImpl and x._sharding is s else place(x, a, s)
            for x, (a, s) in zip(args, self._in, strict=True)
        ]
        if len(self.devices) > 1:
            return self._run_on_many(buffers)
        if self.effects:
            outs = self._run_with_effects(buffers, committed)
        else:
            outs = self.xla.execute_sharded(buffers).consume_with_handlers(self.handlers[committed])
        return array.wrap_outputs(self.out_avals, outs) if self.has_keys else outs

    def _run_with_effects(self, buffers: list[Any], committed: bool) -> list[Any]:
        if any(effect.ordered for effect in self.effects):
            wait_for_effects()  # programs may overlap, effects that keep their order may not
        results = self.xla.execute_sharded(buffers, with_tokens=True)
        _pending.append(results.consume_token())
        return results.consume_with_handlers(self.handlers[committed])

    def _run_on_many(self, buffers: list[Any]) -> list[Any]:
        if versions.COLLECTIVES_NEED_A_BOUND and self.devices[0].platform == "cpu":
            while len(_in_flight) >= _IN_FLIGHT:  # more than 32 at once make this jaxlib abort the process
                _in_flight.popleft().block_until_ready()
        if self.effects:
            outs = self._run_with_effects(buffers, True)
        else:
            outs = self.xla.execute_sharded(buffers).consume_with_handlers(self.handlers[True])
        if outs:
            _in_flight.append(outs[0])
        return array.wrap_outputs(self.out_avals, outs) if self.has_keys else outs


_IN_FLIGHT = 16
_in_flight: collections.deque[Any] = collections.deque()


def place(x: Any, aval: ShapedArray, sharding: Any) -> Any:
    """An operand as a buffer with that sharding."""
    if isinstance(x, array.KeyArray):
        x = x.base
    if x.__class__ is not array.ArrayImpl:
        if hasattr(type(x), "__jax_array__"):  # a protocol, looked up on the class as Python does
            return place(x.__jax_array__(), aval, sharding)
        return put_sharded(np.asarray(x, aval.dtype), aval, sharding)
    if x.is_deleted():
        array.check_alive(x)
    if x._sharding == sharding:
        return x
    devices = list(sharding._internal_device_list)
    if len(devices) == 1 and len(x._sharding._internal_device_list) == 1:
        return _jax.batched_device_put(aval, sharding, [x], devices, True, enable_x64=True)
    if x._sharding.is_equivalent_to(sharding, aval.ndim):
        return x._rewrap_with_aval_and_sharding(aval, sharding)
    if len(x._sharding._internal_device_list) == 1 and sharding.is_fully_replicated:
        return _jax.batched_device_put(aval, sharding, [x] * len(devices), devices, True, enable_x64=True)
    return put_sharded(x._value, aval, sharding)


def put_sharded(value: np.ndarray, aval: ShapedArray, sharding: Any, committed: bool = False) -> Any:
    """A host array as an Array with that sharding."""
    devices = list(sharding._internal_device_list)
    if len(devices) == 1:
        return array.put(value, aval, devices[0], committed)
    indices = sharding.devices_indices_map(aval.shape)
    shards = [np.array(value[indices[d]], order="C") for d in devices]
    return _jax.batched_device_put(aval, sharding, shards, devices, True, True, enable_x64=True)


def _results(xla: Any, request: "Request", types: Sequence[ShapedArray]) -> list[Any]:
    """Shardings of the results: those asked for, else what XLA chose, as specs on the mesh where they are that."""
    wanted = request.out_shardings or [None] * len(types)
    if all(w is not None for w in wanted):
        return list(wanted)
    known = (*request.in_shardings, *wanted)
    mesh = next((s.mesh for s in known if s is not None and isinstance(s, shardings.NamedSharding)), None)
    chosen = xla.get_output_shardings() or []
    found = []
    for k, (w, a) in enumerate(zip(wanted, types, strict=True)):
        if w is not None:
            found.append(w)
            continue
        hlo = _hlo.HloSharding.from_proto(chosen[k]) if k < len(chosen) else shardings._REPLICATED
        spec = None if mesh is None else shardings.spec_of(hlo, mesh, a.ndim)
        found.append(
            shardings.NamedSharding(mesh, spec)
            if spec is not None
            else shardings.GSPMDSharding(_jax.DeviceList(request.devices), hlo)
        )
    return found


# ---- what a program computes, as a key ------------------------------------------------------------------------------


def fingerprint(jaxpr: Jaxpr) -> Any:
    """A hashable value that is equal for programs that compute the same; None where a parameter cannot be hashed."""
    found = jaxpr.memo.get("fingerprint")
    if found is None:
        try:
            found = _fingerprint(jaxpr)
            hash(found)
        except TypeError:
            found = ("unique", id(jaxpr))
        jaxpr.memo["fingerprint"] = found
    return None if found[0] == "unique" else found


def _fingerprint(jaxpr: Jaxpr) -> tuple:
    number: dict[Any, int] = {}
    for v in (*jaxpr.constvars, *jaxpr.invars):
        number[v] = len(number)

    def atom(v: Any) -> Any:
        if v.__class__ is Literal:
            return (v.aval, np.asarray(v.val).tobytes())
        return number[v]

    rows = []
    for eqn in jaxpr.eqns:
        row = (eqn.primitive.name, tuple([atom(v) for v in eqn.invars]), _params(eqn.params))
        for v in eqn.outvars:
            number[v] = len(number)
        rows.append(row)
    inputs = tuple([v.aval for v in (*jaxpr.constvars, *jaxpr.invars)])
    return (inputs, tuple(rows), tuple([atom(v) for v in jaxpr.outvars]))


def _params(params: dict[str, Any]) -> tuple:
    return tuple([(k, _param(v)) for k, v in params.items()]) if params else ()


def _param(value: Any) -> Any:
    if isinstance(value, Jaxpr):
        return _fingerprint(value)
    if isinstance(value, ClosedJaxpr):
        return (_fingerprint(value.jaxpr), *map(id, value.consts))
    if isinstance(value, (tuple, list)):
        return tuple(map(_param, value))
    return value


# ---- compiling ------------------------------------------------------------------------------------------------------

_PROGRAMS_KEPT = 2048
_programs: collections.OrderedDict[Any, Executable] = collections.OrderedDict()
_lock = threading.Lock()
count = {"compiled": 0, "from_disk": 0}  # how many programs this process compiled, or read from the disk cache

# Options for programs of one operation or one array function on the CPU. Measured on exp, mul, tanh of a million floats
# (jaxlib 0.10.2): without the fusion emitters compile time halves and run time stays; without optimisation it is a
# third, but vector code is lost and large arrays take 6 to 17 times longer.
_LIGHT: tuple[tuple[str, Any], ...] = (
    (("xla_cpu_use_fusion_emitters", False),) if versions.HAS_FUSION_EMITTER_FLAG else ()
)
_CHEAP = (*_LIGHT, ("xla_backend_optimization_level", 0), ("xla_llvm_disable_expensive_passes", True))
_SMALL = 4096


def eager_options(device: Any, types: Sequence[ShapedArray], exact: bool = False) -> tuple[tuple[str, Any], ...]:
    """Compile options for a program that is called outside `jit`: quick to compile where the arrays are small, unless
    it must round as an optimised one does."""
    if device.platform != "cpu":
        return ()
    return _CHEAP if not exact and all(a.size <= _SMALL for a in types) else _LIGHT


class Request(NamedTuple):
    """What to compile, besides the jaxpr."""

    devices: tuple[Any, ...]
    donated: tuple[bool, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    in_shardings: tuple[Any, ...] = ()  # for several devices: one for each operand
    out_shardings: tuple[Any, ...] = ()  # for several devices: one for each result, None where XLA chooses

    @property
    def device(self) -> Any:
        return self.devices[0]


def compiled(jaxpr: Jaxpr, name: str, request: Request) -> Executable:
    """The executable of a jaxpr; its constants are operands, first."""
    key = (fingerprint(jaxpr), request, config.trace_context())
    if key[0] is not None:
        found = _programs.get(key)
        if found is not None:
            _programs.move_to_end(key)
            return found
    module = lowered(jaxpr, name, request)
    executable = build(module, jaxpr, name, request)
    if key[0] is not None:
        with _lock:
            _programs[key] = executable
            if len(_programs) > _PROGRAMS_KEPT:
                _programs.popitem(last=False)
    return executable


def clear() -> None:
    """Forget every compiled program."""
    _programs.clear()


def lowered(jaxpr: Jaxpr, name: str, request: Request) -> lower.Module:
    """The StableHLO module of a jaxpr, donations marked."""
    arg_attributes = _donations(jaxpr, request.donated) if True in request.donated else None
    if request.device.platform == "cpu":
        jaxpr = outline.outlined(jaxpr)
    if len(request.devices) == 1:
        return lower.lower(jaxpr, name, request.device.platform, arg_attributes)
    meshes = Meshes()
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    arg_attributes = arg_attributes or [{} for _ in inputs]
    for attributes, v, s in zip(arg_attributes, inputs, request.in_shardings, strict=True):
        attributes.update(meshes.attribute(s, array.physical(v.aval).ndim))
    wanted = request.out_shardings or (None,) * len(jaxpr.outvars)
    result_attributes = [
        meshes.attribute(s, array.physical(v.aval).ndim) for s, v in zip(wanted, jaxpr.outvars, strict=True)
    ]
    return lower.lower(
        jaxpr, name, request.device.platform, arg_attributes, result_attributes, meshes, len(request.devices)
    )


class Meshes:
    """The meshes of one program, by the names that they have in its module."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}

    def name(self, mesh: Any) -> str:
        """The symbol of a mesh."""
        shape = (mesh.axis_names, tuple(mesh.shape.values()))
        return self.names.setdefault(shape, f"mesh{len(self.names) or ''}")

    def attribute(self, sharding: Any, ndim: int) -> dict[str, str]:
        """The attribute of an argument or result with that sharding."""
        if sharding is None:
            return {}
        if isinstance(sharding, shardings.NamedSharding):
            return {"sdy.sharding": shardings.shardy_of(self.name(sharding.mesh), sharding.spec, ndim)}
        return {"mhlo.sharding": f'"{sharding._to_xla_hlo_sharding(ndim)!r}"'}

    def declarations(self) -> list[tuple[str, str]]:
        """(symbol, attribute) of each mesh."""
        found = []
        for (names, sizes), symbol in self.names.items():
            axes = ", ".join(f'"{n}"={s}' for n, s in zip(names, sizes, strict=True))
            found.append((symbol, f"#sdy.mesh<[{axes}]>"))
        return found


def _donations(jaxpr: Jaxpr, donated: Sequence[bool]) -> list[dict[str, str]]:
    free: dict[tuple, list[int]] = collections.defaultdict(list)
    for k, a in enumerate(jaxpr.out_avals):
        free[a.shape, a.dtype].append(k)
    attributes: list[dict[str, str]] = []
    for v, give in zip((*jaxpr.constvars, *jaxpr.invars), donated, strict=True):
        fitting = free.get((v.aval.shape, v.aval.dtype)) if give else None
        if fitting:
            attributes.append({"tf.aliasing_output": f"{fitting.pop(0)} : i32"})
        else:
            attributes.append({"jax.buffer_donor": "true"} if give else {})
    return attributes


def options(request: Request) -> Any:
    """XLA's compile options for a program."""
    made = _jax.CompileOptions()
    count_ = len(request.devices)
    made.num_replicas = 1
    made.num_partitions = count_
    build_options = made.executable_build_options
    build_options.num_replicas = 1
    build_options.num_partitions = count_
    ids = np.array([[d.id for d in request.devices]], np.int32)
    build_options.device_assignment = _jax.DeviceAssignment.create(ids)
    made.device_assignment = build_options.device_assignment
    if count_ > 1:
        build_options.use_spmd_partitioning = True
        build_options.use_shardy_partitioner = True
        free = [s is None for s in request.out_shardings] or [True]
        build_options.allow_spmd_sharding_propagation_to_output = free
    if request.options:
        made.env_option_overrides = list(request.options)
    return made


def build(module: lower.Module, jaxpr: Jaxpr, name: str, request: Request) -> Executable:
    """Compile a lowered module, or take it from the disk cache."""
    opts = options(request)
    in_avals = [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)]
    kept = cache.enabled() and not any(option.startswith("xla_dump") for option, _ in request.options)
    key = cache_key(module, opts, request) if kept else None
    xla = None if key is None else _from_disk(module, key, opts, request)
    if xla is None:
        xla = _from_xla(module, key, opts, request)
    return Executable(xla, request, in_avals, jaxpr.out_avals, jaxpr.effects)


def _from_disk(module: lower.Module, key: str, opts: Any, request: Request) -> Any:
    stored = None if config.compilation_cache_check_contents.value else cache.load(key)
    if stored is None:
        return None
    try:
        devices = _jax.DeviceList(request.devices)
        xla = request.device.client.deserialize_executable(stored, devices, opts, host_callbacks=module.callbacks)
    except Exception:  # whatever XLA raises: compile anew, and overwrite the entry
        cache.forget(key)
        return None
    count["from_disk"] += 1
    return xla


def _from_xla(module: lower.Module, key: str | None, opts: Any, request: Request) -> Any:
    client = request.device.client
    started = time.perf_counter()
    devices = _jax.DeviceList(request.devices)
    xla = client.compile_and_load(module.mlir, devices, opts, module.callbacks)
    seconds = time.perf_counter() - started
    count["compiled"] += 1
    if key is None or seconds < config.persistent_cache_min_compile_time_secs.value:
        return xla
    try:
        program = client.serialize_executable(xla)
    except _jax.JaxRuntimeError:  # a platform whose programs cannot be written
        return xla
    if config.compilation_cache_check_contents.value:
        cache.compare(key, program)
    cache.store(key, program)
    return xla


_machine: dict[Any, bytes] = {}


def cache_key(module: lower.Module, opts: Any, request: Request) -> str:
    """Name of the program in the disk cache: everything that the compiled code depends on."""
    device = request.device
    machine = _machine.get(device.platform)
    if machine is None:
        topology = _jax.get_topology_for_devices([device]).fingerprint()
        parts = (versions.VERSION, device.client.platform_version, device.device_kind, topology, cache.surroundings())
        machine = _machine[device.platform] = repr(parts).encode()
    digest = hashlib.sha256(machine)
    digest.update(opts.SerializeAsString())
    with_lines = config.compilation_cache_include_metadata_in_key.value
    digest.update(module.mlir.operation.get_asm(enable_debug_info=with_lines).encode())
    return digest.hexdigest()
