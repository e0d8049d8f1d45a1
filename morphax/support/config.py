"""Every flag of the library in one table: name, default, meaning, where its value comes from.

A flag has one value for the process and, inside `with flag(value):`, another for the current thread. Reading
`flag.value` costs one C++ look-up. The values of the flags marked `traced` are part of every trace and compile key.

A value given in the environment holds from import on: `MORPHAX_<NAME>` first, then JAX's own variable (`JAX_<NAME>`).

>>> config.update("jax_debug_nans", False)
>>> with enable_x64(True):
...     enable_x64.value
True
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from jaxlib import _jax

_TRUE = frozenset(("1", "true", "t", "yes", "y", "on"))
_FALSE = frozenset(("0", "false", "f", "no", "n", "off"))
_UNSET = _jax.config.unset

trace_context: Callable[[], tuple[object, ...]] = _jax.config.trace_context
"""The values of all traced flags in this thread, as one hashable tuple."""


class Flag(_jax.config.Config):
    """One flag: its value, and `with flag(value):` to change it in the current thread.

    `value` (read in C++: a thread's own value, else the process's) and `name` come from jaxlib's Config, of which a
    Flag is a kind, so that `raw` is the flag itself. The values are of type `kind`, one of `choices` where those exist,
    and None where `optional`.
    """

    __slots__ = ("accepted", "choices", "default", "doc", "kind", "members", "on_global", "on_local", "optional",
                 "public_name", "traced")  # fmt: skip

    def __init__(
        self,
        name: str,
        default: object,
        doc: str,
        *,
        kind: type,
        optional: bool,
        choices: tuple[str, ...],
        traced: bool,
        accepted: str,
        members: tuple[Flag, ...],
        public_name: str,
    ) -> None:
        super().__init__(name, default, include_in_jit_key=traced, include_in_trace_context=traced)
        self.default = default
        self.doc = doc
        self.kind = kind
        self.optional = optional
        self.choices = choices
        self.traced = traced
        self.accepted = accepted
        self.members = members or (self,)
        self.public_name = public_name
        self.on_global: Callable[[Any], None] | None = None  # Any: a flag's value, of the flag's own kind
        self.on_local: Callable[[Any], None] | None = None

    @property
    def raw(self) -> _jax.config.Config:
        """jaxlib's object for this flag, for the places where its C++ code asks for one."""
        return self

    @property
    def environment_variables(self) -> tuple[str, str]:
        """The variables that set this flag at import; the first one given wins."""
        return (f"MORPHAX_{self.name.upper()}", self.public_name.upper())

    def watch(
        self, on_global: Callable[[Any], None] | None = None, on_local: Callable[[Any], None] | None = None
    ) -> None:
        """Calls `on_global(value)` now and at each change for the process, `on_local(value | None)` in a thread."""
        self.on_global = on_global
        self.on_local = on_local
        if on_global is not None:
            on_global(self.get_global())

    def set_global(self, value: object) -> None:
        """Sets the value for the process; a thread inside `with flag(...)` keeps its own."""
        value = self.parse(value)
        for flag in {self, *self.members}:
            super(Flag, flag).set_global(value)
            if flag.on_global is not None:
                flag.on_global(value)

    def parse(self, value: object) -> object:
        """`value` as this flag's kind. ValueError: it is not one of the values that the flag takes."""
        if value is None and self.optional:
            return None
        parsed = _PARSERS[self.kind](value)
        if parsed is None or (self.choices and parsed not in self.choices):
            raise ValueError(
                f"config: {self.public_name} cannot be {value!r} (a {type(value).__name__}). Give {self._wanted()}."
            )
        return parsed

    def _wanted(self) -> str:
        wanted = "one of " + ", ".join(map(repr, self.choices)) if self.choices else _KIND_NAMES[self.kind]
        return f"{wanted}, or None" if self.optional else wanted

    def __call__(self, new_val: object = _UNSET) -> _Override:
        """A context manager, or a decorator, inside which the flag is `new_val` in this thread (a bool: True)."""
        if new_val is _UNSET:
            if self.kind is not bool:
                raise TypeError(f"config.{self.name}: no value given. Write `with {self.name}(value):`.")
            new_val = True
        return _Override(self.members, self.parse(new_val))

    def __repr__(self) -> str:
        return f"<Flag {self.public_name} = {self.value!r}>"


class _Override(contextlib.ContextDecorator):
    """Flags set to one value in the current thread, between `__enter__` and `__exit__`; may be entered again inside."""

    def __init__(self, flags: tuple[Flag, ...], value: object) -> None:
        self._flags = flags
        self._value = value
        self._saved: list[tuple[object, ...]] = []

    def _recreate_cm(self) -> _Override:
        return _Override(self._flags, self._value)  # threads that run one decorated function must not share _saved

    def __enter__(self) -> None:
        self._saved.append(tuple(_swap_local(flag, self._value) for flag in self._flags))

    def __exit__(self, *exc_info: object) -> None:
        for flag, saved in zip(self._flags, self._saved.pop(), strict=True):
            _swap_local(flag, saved)


def _swap_local(flag: Flag, value: object) -> object:
    saved = flag.swap_local(value)
    if flag.on_local is not None:
        flag.on_local(None if value is _UNSET else value)
    return saved


def _parse_bool(value: object) -> bool | None:
    if isinstance(value, str):
        lowered = value.strip().lower()
        return True if lowered in _TRUE else False if lowered in _FALSE else None
    return bool(value) if value in (True, False) else None


def _parse_int(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if value.strip().lstrip("+-").isdecimal() else None
    return int(value) if isinstance(value, (int, float)) and value == int(value) else None


def _parse_float(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if value.strip().lstrip("+-").replace(".", "", 1).isdecimal() else None
    return float(value) if isinstance(value, (int, float)) else None


def _parse_str(value: object) -> str | None:
    return str(value) if isinstance(value, (str, os.PathLike)) else None


def _parse_device(value: object) -> object:
    return value if isinstance(value, (str, _jax.Device)) else None


_PARSERS: dict[type, Callable[[object], object]] = {
    bool: _parse_bool,
    int: _parse_int,
    float: _parse_float,
    str: _parse_str,
    object: _parse_device,
}

_KIND_NAMES: dict[type, str] = {
    bool: "True or False",
    int: "an int",
    float: "a float",
    str: "a str",
    object: "a Device such as devices('cpu')[0], or the name of a platform such as 'cpu'",
}

FLAGS: dict[str, Flag] = {}
"""All flags by name, in the order of the table below."""

_BY_PUBLIC_NAME: dict[str, Flag] = {}


def _flag(
    name: str,
    default: object,
    doc: str,
    *,
    kind: type | None = None,
    choices: tuple[str, ...] = (),
    traced: bool = False,
    accepted: str = "",
    members: tuple[Flag, ...] = (),
    prefix: str = "jax_",
) -> Flag:
    """One row of the table. `accepted`: why the flag may be set although nothing reads it."""
    flag = Flag(
        name,
        default,
        doc,
        kind=kind or type(default),
        optional=default is None,
        choices=choices,
        traced=traced,
        accepted=accepted,
        members=members,
        public_name=prefix + name,
    )
    FLAGS[name] = flag
    _BY_PUBLIC_NAME[flag.public_name] = flag
    _BY_PUBLIC_NAME[f"morphax_{name}"] = flag
    for variable in flag.environment_variables:
        if os.environ.get(variable):
            flag.set_global(os.environ[variable])
            break
    return flag


_X64_DOC = (
    "64-bit defaults: Python numbers and unnamed host data stay 64 bits wide. A dtype that is named always holds."
)
_GUARD_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_EFFORT_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
_PRNG_IMPLS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
_CHECK_BEHAVIOURS = ("ignore", "raise")
_LOG_LEVELS = ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_DOT_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip

# Why a flag is accepted although nothing reads it.
_NO_CHOICE = "there is one implementation here, so there is nothing to choose"
_NO_STAGES = "it guards a transition in JAX's own development"
_NO_PALLAS = "kernels written in Pallas are outside this library"
_NO_MOCK = "it serves tests of JAX itself"
_NO_READER = "no module reads it"

# fmt: off
# Types and numbers.
enable_x64 = _flag("enable_x64", False, _X64_DOC, traced=True)
explicit_x64_dtypes = _flag("explicit_x64_dtypes", "allow", "What a named 64-bit dtype means without enable_x64.",
    choices=("allow", "warn", "error"), accepted="a named dtype is honoured always")
numpy_dtype_promotion = _flag("numpy_dtype_promotion", "standard", "'strict': mixing different named dtypes raises.",
    choices=("standard", "strict"), traced=True)
numpy_rank_promotion = _flag("numpy_rank_promotion", "allow", "Whether operands of different rank may be broadcast.",
    choices=("allow", "warn", "raise"), traced=True)
default_matmul_precision = _flag("default_matmul_precision", None, "Precision of products that name none.",
    kind=str, choices=_DOT_PRECISIONS, traced=True)
allow_f16_reductions = _flag("allow_f16_reductions", True, "False: reduce_sum of 16-bit floats raises.", traced=True)
softmax_custom_jvp = _flag("softmax_custom_jvp", False, "The stable derivative of softmax.", traced=True,
    accepted="the derivative is always the stable one")
cpu_fast_paths = _flag("cpu_fast_paths", True, "Shortcuts for small operations on the CPU.", traced=True,
    prefix="morphax_")

# Indices and checks.
bounds = _flag("bounds", "raise", "Static or eager indices out of range: an error, or the nearest valid index.",
    choices=("raise", "clamp"), traced=True, prefix="morphax_")
check_static_indices = _flag("check_static_indices", False, "Check static indices under promise_in_bounds too.",
    traced=True)
debug_nans = _flag("debug_nans", False, "Raise FloatingPointError where a result first holds a NaN.")
debug_infs = _flag("debug_infs", False, "Raise FloatingPointError where a result first holds an infinity.")
enable_checks = _flag("enable_checks", False, "Check the library's own invariants: every jaxpr after every transform.")
check_tracer_leaks = _flag("check_tracer_leaks", False, "Raise when a tracer outlives its trace.")
mutable_array_checks = _flag("mutable_array_checks", True, "Reject aliased references.", traced=True)
error_checking_behavior_nan = _flag("error_checking_behavior_nan", "ignore", "NaN under error_check.",
    choices=_CHECK_BEHAVIOURS, traced=True)
error_checking_behavior_divide = _flag("error_checking_behavior_divide", "ignore", "x / 0 under error_check.",
    choices=_CHECK_BEHAVIOURS, traced=True)
error_checking_behavior_oob = _flag("error_checking_behavior_oob", "ignore", "Indices out of range under error_check.",
    choices=_CHECK_BEHAVIOURS, traced=True)
experimental_unsafe_xla_runtime_errors = _flag("experimental_unsafe_xla_runtime_errors", False,
    "Run-time errors from checkify.check without functionalising it.", traced=True, accepted=_NO_READER)
disable_bwd_checks = _flag("disable_bwd_checks", False, "Skip type checks of custom_vjp backward results.",
    accepted=_NO_STAGES)
disable_vmap_shmap_error = _flag("disable_vmap_shmap_error", False, "Skip a check of vmap over shard_map.",
    accepted=_NO_STAGES)

# Tracing.
disable_jit = _flag("disable_jit", False, "Run jitted functions and control flow operation by operation.", traced=True)
no_tracing = _flag("no_tracing", False, "Raise when a function is traced anew.")
no_execution = _flag("no_execution", False, "Raise when an operation is executed.", traced=True)
check_vma = _flag("check_vma", False, "Inside shard_map: track over which axes values vary.", traced=True, prefix="",
    accepted="shard_map sets this itself")
auto_pcast = _flag("auto_pcast", True, "Insert pcast where operands vary over different mesh axes.", traced=True)
remove_size_one_mesh_axis_from_type = _flag("remove_size_one_mesh_axis_from_type", False,
    "Leave mesh axes of size 1 out of array types.", traced=True)
eager_constant_folding = _flag("eager_constant_folding", False, "Fold constants while tracing.", traced=True,
    prefix="", accepted="XLA folds constants")
captured_constants_warn_bytes = _flag("captured_constants_warn_bytes", 2_000_000_000,
    "Warn when a program closes over more bytes of arrays than this; -1: never.")
captured_constants_report_frames = _flag("captured_constants_report_frames", 0, "Frames in that warning; -1: all.")
embedded_constants_max_bytes = _flag("embedded_constants_max_bytes", 32, "Larger constants become arguments.",
    traced=True, accepted="arrays that a function closes over always become arguments")
use_simplified_jaxpr_constants = _flag("use_simplified_jaxpr_constants", False, "Constants in jaxprs.",
    accepted=_NO_STAGES)
use_direct_linearize = _flag("use_direct_linearize", True, "Linearize in one pass.", accepted=_NO_CHOICE)
custom_vjp3 = _flag("custom_vjp3", False, "A design of custom rules.", accepted=_NO_STAGES)
remat3 = _flag("remat3", False, "A design of checkpoint.", accepted=_NO_STAGES)
scan3 = _flag("scan3", False, "A design of scan.", accepted=_NO_STAGES)
refs_to_pins = _flag("refs_to_pins", False, "Pinned buffers for references.", accepted=_NO_STAGES)
use_emit_pipeline_primitive = _flag("use_emit_pipeline_primitive", False, "A Pallas primitive.", accepted=_NO_PALLAS)
log_checkpoint_residuals = _flag("log_checkpoint_residuals", False, "Log what each checkpoint saves.")

# Random numbers.
default_prng_impl = _flag("default_prng_impl", "threefry2x32", "Generator of keys made without naming one.",
    choices=_PRNG_IMPLS, traced=True)
enable_custom_prng = _flag("enable_custom_prng", False, "PRNGKey returns typed keys, as key does.", traced=True)
threefry_partitionable = _flag("threefry_partitionable", True, "Counters that need no communication when sharded.",
    traced=True)
threefry_gpu_kernel_lowering = _flag("threefry_gpu_kernel_lowering", False, "threefry as one GPU kernel.", traced=True)
random_seed_offset = _flag("random_seed_offset", 0, "Added to every seed.", traced=True)
legacy_prng_key = _flag("legacy_prng_key", "allow", "What raw uint32 keys given to random functions do.",
    choices=("allow", "warn", "error"))
debug_key_reuse = _flag("debug_key_reuse", False, "Raise KeyReuseError when a key is used twice.", traced=True)
high_dynamic_range_gumbel = _flag("high_dynamic_range_gumbel", False, "Two draws for each Gumbel sample, so that rare"
    " events keep their probability.", traced=True)

# Devices and backends.
platforms = _flag("platforms", None, "Comma-separated platforms to start, the default one first.", kind=str)
platform_name = _flag("platform_name", "", "The older name of platforms.")
default_device = _flag("default_device", None, "Where uncommitted results live: a Device, or a platform's name.",
    kind=object, traced=True)
num_cpu_devices = _flag("num_cpu_devices", -1, "Virtual CPU devices, before the first use; -1: what XLA_FLAGS says.")
cpu_enable_async_dispatch = _flag("cpu_enable_async_dispatch", True, "Return before a CPU program has finished.")
cpu_collectives_implementation = _flag("cpu_collectives_implementation", "gloo", "Collectives between processes.",
    choices=("gloo", "mpi", "megascale"))
cpu_get_local_topology_timeout_minutes = _flag("cpu_get_local_topology_timeout_minutes", 2,
    "How long to wait for the devices of one process.")
cpu_get_global_topology_timeout_minutes = _flag("cpu_get_global_topology_timeout_minutes", 5,
    "How long to wait for the devices of all processes.")
cuda_visible_devices = _flag("cuda_visible_devices", "all", "'all', or ids of the CUDA devices to use.")
rocm_visible_devices = _flag("rocm_visible_devices", "all", "'all', or ids of the ROCm devices to use.")
oneapi_visible_devices = _flag("oneapi_visible_devices", "all", "'all', or ids of the oneAPI devices to use.")
pjrt_client_create_options = _flag("pjrt_client_create_options", None, "'key:value;...' given to the client.",
    kind=str)
sort_devices_by_process_index = _flag("sort_devices_by_process_index", True, "Order devices by process, then id.")
xla_backend = _flag("xla_backend", "", "The oldest name of platforms.", accepted="platforms says it")
backend_target = _flag("backend_target", "", "Address of a remote service.", accepted="platforms says it")
mock_num_gpu_processes = _flag("mock_num_gpu_processes", 0, "Pretended GPU processes.", prefix="", accepted=_NO_MOCK)
mock_gpu_topology = _flag("mock_gpu_topology", "", "Pretended GPU topology.", accepted=_NO_MOCK)
debug_leaked_clients_on_clear_backends = _flag("debug_leaked_clients_on_clear_backends", False,
    "Check that clear_backends frees the clients.", accepted=_NO_MOCK)

# Several hosts.
enable_recoverability = _flag("enable_recoverability", False, "Go on when another process has failed.")
enable_preemption_service = _flag("enable_preemption_service", True, "Agree on a step to stop at when preempted.")
distributed_debug = _flag("distributed_debug", False, "Log what helps to debug programs on several hosts.")
check_proxy_envs = _flag("check_proxy_envs", True, "Warn of proxy variables when connecting hosts.")
cross_host_transfer_socket_address = _flag("cross_host_transfer_socket_address", "", "Address for transfers.")
cross_host_transport_addresses = _flag("cross_host_transport_addresses", "", "Addresses of the transports.")
cross_host_transfer_timeout_seconds = _flag("cross_host_transfer_timeout_seconds", None, "Limit of its metadata.",
    kind=int)
cross_host_transfer_transfer_size = _flag("cross_host_transfer_transfer_size", None, "Bytes in one piece.", kind=int)
force_dcn_cross_host_transfers = _flag("force_dcn_cross_host_transfers", False, "Use sockets even where not needed.")
share_binary_between_hosts = _flag("share_binary_between_hosts", False, "One host compiles for all.",
    accepted=_NO_READER)
share_binary_between_hosts_timeout_ms = _flag("share_binary_between_hosts_timeout_ms", 1_200_000, "Its limit.",
    accepted=_NO_READER)

# Guards.
transfer_guard_host_to_device = _flag("transfer_guard_host_to_device", None, "Implicit transfers to a device.",
    kind=str, choices=_GUARD_LEVELS)
transfer_guard_device_to_device = _flag("transfer_guard_device_to_device", None, "Implicit transfers of devices.",
    kind=str, choices=_GUARD_LEVELS)
transfer_guard_device_to_host = _flag("transfer_guard_device_to_host", None, "Implicit transfers to the host.",
    kind=str, choices=_GUARD_LEVELS)
transfer_guard = _flag("transfer_guard", None, "Sets the three transfer guards.", kind=str, choices=_GUARD_LEVELS,
    members=(transfer_guard_host_to_device, transfer_guard_device_to_device, transfer_guard_device_to_host))
array_garbage_collection_guard = _flag("array_garbage_collection_guard", None,
    "What happens when an array is freed by the cycle collector instead of its last reference.",
    kind=str, choices=("allow", "log", "fatal"))
thread_guard = _flag("thread_guard", False, "Raise when another thread starts a program that spans processes.")

# Compiling.
outline = _flag("outline", True, "Repeated blocks become functions called many times.", traced=True,
    prefix="morphax_")
disable_most_optimizations = _flag("disable_most_optimizations", False, "Compile fast rather than well.", traced=True)
optimization_level = _flag("optimization_level", "UNKNOWN", "Effort of the compiler for speed.",
    choices=_EFFORT_LEVELS, traced=True)
memory_fitting_level = _flag("memory_fitting_level", "O2", "Effort of the compiler to fit into memory.",
    choices=_EFFORT_LEVELS, traced=True)
exec_time_optimization_effort = _flag("exec_time_optimization_effort", 0.0, "Effort for speed, in [-1, 1].",
    traced=True)
memory_fitting_effort = _flag("memory_fitting_effort", 0.0, "Effort to fit into memory, in [-1, 1].", traced=True)
compiler_enable_remat_pass = _flag("compiler_enable_remat_pass", True, "Let XLA recompute to save memory.",
    traced=True)
use_shardy_partitioner = _flag("use_shardy_partitioner", True, "Partition with Shardy.", accepted=_NO_CHOICE)
xla_profile_version = _flag("xla_profile_version", 0, "Version of profile-guided compilation.", traced=True)
enable_pgle = _flag("enable_pgle", False, "Recompile with measured latencies.", accepted=_NO_READER)
pgle_profiling_runs = _flag("pgle_profiling_runs", 3, "Runs to measure for that.", accepted=_NO_READER)
pgle_aggregation_percentile = _flag("pgle_aggregation_percentile", 90, "Percentile over devices.",
    accepted=_NO_READER)
use_magma = _flag("use_magma", "auto", "MAGMA for lax.linalg.eig on the GPU.", choices=("off", "on", "auto"),
    traced=True)
bcoo_cusparse_lowering = _flag("bcoo_cusparse_lowering", False, "BCOO products through cuSPARSE.",
    accepted=_NO_READER)
ragged_dot_use_ragged_dot_instruction = _flag("ragged_dot_use_ragged_dot_instruction", True,
    "ragged_dot as one instruction where the compiler has it.", accepted=_NO_READER)
ragged_dot_use_gpu_pallas_triton_lowering = _flag("ragged_dot_use_gpu_pallas_triton_lowering", False,
    "ragged_dot through Pallas.", accepted=_NO_PALLAS)
mosaic_allow_hlo = _flag("mosaic_allow_hlo", False, "HLO inside Mosaic.", accepted=_NO_PALLAS)
pallas_enable_debug_checks = _flag("pallas_enable_debug_checks", False, "Checks in kernels.", accepted=_NO_PALLAS)
pallas_poison_buffers = _flag("pallas_poison_buffers", False, "NaN in fresh scratch.", accepted=_NO_PALLAS)
pallas_use_mosaic_gpu = _flag("pallas_use_mosaic_gpu", True, "Mosaic for GPU kernels.", accepted=_NO_PALLAS)
pallas_verbose_errors = _flag("pallas_verbose_errors", False, "Longer kernel errors.", accepted=_NO_PALLAS)

# The compilation cache on disk.
enable_compilation_cache = _flag("enable_compilation_cache", True, "Keep compiled programs on disk.")
compilation_cache_dir = _flag("compilation_cache_dir", None, "Its folder; None: in the user's cache folder.", kind=str)
compilation_cache_max_size = _flag("compilation_cache_max_size", 2 << 30, "Its bytes; -1: no limit, 0: no cache.")
persistent_cache_min_compile_time_secs = _flag("persistent_cache_min_compile_time_secs", 0.0,
    "Keep only what took longer to compile.")
persistent_cache_min_entry_size_bytes = _flag("persistent_cache_min_entry_size_bytes", 0, "Keep only what is larger.")
persistent_cache_enable_xla_caches = _flag("persistent_cache_enable_xla_caches",
    "xla_gpu_per_fusion_autotune_cache_dir", "XLA's own caches to keep in the same folder.")
raise_persistent_cache_errors = _flag("raise_persistent_cache_errors", False, "Raise, not warn, when it fails.")
compilation_cache_check_contents = _flag("compilation_cache_check_contents", False,
    "Compile on a hit too, and compare.")
compilation_cache_include_metadata_in_key = _flag("compilation_cache_include_metadata_in_key", False,
    "File names and lines are part of the key.")
compilation_cache_expect_pgle = _flag("compilation_cache_expect_pgle", False, "Prefer profiled programs.",
    accepted=_NO_READER)
remove_custom_partitioning_ptr_from_cache_key = _flag("remove_custom_partitioning_ptr_from_cache_key", False,
    "Leave the addresses of Python partitioners out of the key.", accepted=_NO_READER)

# Messages, sources and dumps.
traceback_filtering = _flag("traceback_filtering", "auto", "How frames inside the library leave tracebacks.",
    choices=("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"))
tracer_error_num_traceback_frames = _flag("tracer_error_num_traceback_frames", 5, "Frames in errors about tracers.")
include_full_tracebacks_in_locations = _flag("include_full_tracebacks_in_locations", True,
    "All user frames, not only the nearest, in the locations of lowered operations.", traced=True)
traceback_in_locations_limit = _flag("traceback_in_locations_limit", 100, "Frames in a location; -1: all.",
    traced=True)
hlo_source_file_canonicalization_regex = _flag("hlo_source_file_canonicalization_regex", None,
    "What to cut out of file names in lowered programs.", kind=str, traced=True)
send_traceback_to_runtime = _flag("send_traceback_to_runtime", "off", "Frames that the runtime gets at dispatch.",
    choices=("off", "on", "full"))
log_compiles = _flag("log_compiles", False, "Log each compilation as a warning.")
explain_cache_misses = _flag("explain_cache_misses", False, "Log why a function is traced again.")
logging_level = _flag("logging_level", "NOTSET", "Level of the library's loggers.", choices=_LOG_LEVELS)
debug_log_modules = _flag("debug_log_modules", "", "Modules whose loggers are set to DEBUG, comma-separated.")
compiler_detailed_logging_min_ops = _flag("compiler_detailed_logging_min_ops", 10, "Smaller programs log less.")
pprint_use_color = _flag("pprint_use_color", True, "Colours in printed jaxprs on a terminal.")
source_url_schema = _flag("source_url_schema", None, "Links to sources in HTML dumps, with {file} and {line}.",
    kind=str)
dump_ir_to = _flag("dump_ir_to", "", "Folder for dumps of every program.")
dump_ir_modes = _flag("dump_ir_modes", "stablehlo", "Which forms to dump, comma-separated.")
include_debug_info_in_dumps = _flag("include_debug_info_in_dumps", True, "Locations in dumps.")

# Export and the rest.
export_calling_convention_version = _flag("export_calling_convention_version", 10, "Version that export writes.")
export_ignore_forward_compatibility = _flag("export_ignore_forward_compatibility", False,
    "Export with operations that older readers may lack.")
serialization_version = _flag("serialization_version", 0, "The older name of the export version.",
    accepted="export_calling_convention_version says it")
disallow_mesh_context_manager = _flag("disallow_mesh_context_manager", False, "`with mesh:` raises; use set_mesh.")
jax2tf_associative_scan_reductions = _flag("jax2tf_associative_scan_reductions", False, "Cumulative sums in jax2tf.",
    prefix="", accepted="there is no jax2tf here")
jax2tf_default_native_serialization = _flag("jax2tf_default_native_serialization", True, "Serialisation in jax2tf.",
    prefix="", accepted="there is no jax2tf here")
# fmt: on


def without_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context in which jitted functions and control flow run operation by operation, as plain Python would.

    >>> import morphax
    >>> with morphax.disable_jit():
    ...     print(morphax.jit(lambda x: x + 1)(1))
    2
    """
    return disable_jit(disable)


def checking_leaks() -> contextlib.AbstractContextManager[None]:
    """A context in which a traced value that outlives its function raises as soon as the function ends.

    >>> import morphax
    >>> held = []
    >>> with checking_leaks():
    ...     morphax.jit(held.append)(1.0)
    Traceback (most recent call last):
        ...
    Exception: Leaked trace Stage: 1 of its values outlive it:
      ...
    """
    return check_tracer_leaks(True)


class Config:
    """The flags under their public names: read `config.jax_enable_x64`, set with `config.update`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # Any: a flag's value, of the flag's own kind
        flag = _BY_PUBLIC_NAME.get(name)
        if flag is None:
            _raise_unknown(name)
        return flag.value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        if name not in _BY_PUBLIC_NAME:
            _raise_unknown(name)
        raise AttributeError(
            f"config.{name} cannot be assigned. Write `config.update({name!r}, {value!r})`, "
            f"or `with {_BY_PUBLIC_NAME[name].name}({value!r}):` for a block of this thread."
        )

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(flag.public_name for flag in FLAGS.values())])

    def update(self, name: str, val: object) -> None:
        """Sets a flag for the whole process, as `config.update("jax_enable_x64", True)`."""
        flag = _BY_PUBLIC_NAME.get(name)
        if flag is None:
            _raise_unknown(name)
        flag.set_global(val)

    def read(self, name: str) -> Any:  # Any: a flag's value, of the flag's own kind
        """The flag's value, in this thread."""
        return self.__getattr__(name)

    @property
    def values(self) -> dict[str, Any]:  # Any: values of flags, each of its own kind
        """All flags and their values in this thread, by public name."""
        return {flag.public_name: flag.value for flag in FLAGS.values()}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit defaults hold in this thread."""
        return enable_x64.value

    def config_with_absl(self) -> None:
        """Defines each flag for absl, if the program has imported absl; a command line then sets them."""
        absl_flags = sys.modules.get("absl.flags")
        if absl_flags is None:
            return
        define = {bool: absl_flags.DEFINE_bool, int: absl_flags.DEFINE_integer, float: absl_flags.DEFINE_float}
        for flag in FLAGS.values():
            if flag.public_name not in absl_flags.FLAGS:
                default = None if flag.kind is object else flag.get_global()
                define.get(flag.kind, absl_flags.DEFINE_string)(flag.public_name, default, flag.doc)
        absl_app = sys.modules.get("absl.app")
        if absl_app is not None:
            absl_app.call_after_init(self._read_absl)

    def parse_flags_with_absl(self) -> None:
        """Sets the flags from the command line through absl; does nothing unless the program has imported absl."""
        absl_flags = sys.modules.get("absl.flags")
        if absl_flags is None:
            return
        self.config_with_absl()
        absl_flags.FLAGS(sys.argv, known_only=True)
        self._read_absl()

    def _read_absl(self) -> None:
        absl_values = sys.modules["absl.flags"].FLAGS
        for flag in FLAGS.values():
            if absl_values[flag.public_name].present:
                flag.set_global(absl_values[flag.public_name].value)


def _raise_unknown(name: str) -> NoReturn:
    public_names = [flag.public_name for flag in FLAGS.values()]
    nearest = difflib.get_close_matches(name, public_names, n=1, cutoff=0.4)
    hint = f"The nearest flag is {nearest[0]!r}." if nearest else "`config.values` lists the flags."
    raise AttributeError(f"config: there is no flag {name!r}. {hint}")


config = Config()
"""The flags as programs see them."""
