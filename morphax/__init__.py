"""Morphax: composable transformations of Python and NumPy programs, compiled and scaled by XLA.

>>> import morphax as jax
>>> import morphax.numpy as jnp
>>> print(jax.grad(jnp.tanh)(1.0))
0.41997433
"""

import importlib
from typing import TYPE_CHECKING, Any

from morphax.version import __version__

if TYPE_CHECKING:
    from morphax import (
        ad_checkpoint,
        custom_batching,
        custom_derivatives,
        debug,
        dtypes,
        errors,
        experimental,
        lax,
        numpy,
        random,
        sharding,
        stages,
        tree,
        tree_util,
        typing,
    )
    from morphax.control.callback import pure_callback
    from morphax.control.checkpoint import checkpoint
    from morphax.control.checkpoint import checkpoint as remat
    from morphax.control.custom import custom_gradient, custom_jvp, custom_vjp
    from morphax.control.jacobians import hessian, jacfwd, jacrev
    from morphax.control.jacobians import jacrev as jacobian
    from morphax.control.policies import checkpoint_policies
    from morphax.control.shard_map import shard_map, smap
    from morphax.environment import clear_caches, print_environment_info
    from morphax.ir.avals import ShapeDtypeStruct
    from morphax.ir.sharding import PartitionSpec as P
    from morphax.ir.sharding import set_mesh
    from morphax.runtime.array import Array, Shard
    from morphax.runtime.backend import (
        Device,
        SingleDeviceSharding,
        default_backend,
        device_count,
        devices,
        local_device_count,
        local_devices,
        process_count,
        process_index,
    )
    from morphax.runtime.jit import jit
    from morphax.runtime.passes import fwd_and_bwd
    from morphax.runtime.place import block_until_ready, copy_to_host_async, device_get, device_put, live_arrays, typeof
    from morphax.runtime.shardings import NamedSharding, make_mesh
    from morphax.support.config import checking_leaks, config
    from morphax.support.config import without_jit as disable_jit
    from morphax.support.dtypes import float0
    from morphax.transforms.api import (
        closure_convert,
        ensure_compile_time_eval,
        eval_shape,
        grad,
        jvp,
        linear_transpose,
        linearize,
        make_jaxpr,
        named_call,
        named_scope,
        value_and_grad,
        vjp,
        vmap,
    )

# Where each public name is defined. Modules are loaded when a name is first asked for: that halves the import time of
# programs that use a part.
_API = "morphax.transforms.api"
_BACKEND = "morphax.runtime.backend"
_PLACE = "morphax.runtime.place"
_NAMES: dict[str, tuple[str, str]] = {
    **{
        name: (_API, name)
        for name in (
            "closure_convert", "ensure_compile_time_eval", "eval_shape", "grad", "jvp",
            "linear_transpose", "linearize", "make_jaxpr", "named_call", "named_scope", "value_and_grad", "vjp", "vmap",
        )
    },
    **{
        name: (_BACKEND, name)
        for name in (
            "Device", "default_backend", "device_count", "devices", "local_device_count", "local_devices",
            "process_count", "process_index",
        )
    },
    **{
        name: (_PLACE, name)
        for name in ("block_until_ready", "copy_to_host_async", "device_get", "device_put", "live_arrays")
    },
    "Array": ("morphax.runtime.array", "Array"),
    "Shard": ("morphax.runtime.array", "Shard"),
    "ShapeDtypeStruct": ("morphax.ir.avals", "ShapeDtypeStruct"),
    "checkpoint": ("morphax.control.checkpoint", "checkpoint"),
    "checkpoint_policies": ("morphax.control.policies", "checkpoint_policies"),
    "custom_gradient": ("morphax.control.custom", "custom_gradient"),
    "custom_jvp": ("morphax.control.custom", "custom_jvp"),
    "custom_vjp": ("morphax.control.custom", "custom_vjp"),
    "NamedSharding": ("morphax.runtime.shardings", "NamedSharding"),
    "P": ("morphax.ir.sharding", "PartitionSpec"),
    "make_mesh": ("morphax.runtime.shardings", "make_mesh"),
    "shard_map": ("morphax.control.shard_map", "shard_map"),
    "smap": ("morphax.control.shard_map", "smap"),
    "set_mesh": ("morphax.ir.sharding", "set_mesh"),
    "effects_barrier": ("morphax.runtime.compile", "wait_for_effects"),
    "pure_callback": ("morphax.control.callback", "pure_callback"),
    "clear_caches": ("morphax.environment", "clear_caches"),
    "checking_leaks": ("morphax.support.config", "checking_leaks"),
    "config": ("morphax.support.config", "config"),
    "disable_jit": ("morphax.support.config", "without_jit"),
    "float0": ("morphax.support.dtypes", "float0"),
    "fwd_and_bwd": ("morphax.runtime.passes", "fwd_and_bwd"),
    "host_count": (_BACKEND, "process_count"),
    "host_id": (_BACKEND, "process_index"),
    **{name: ("morphax.control.jacobians", name) for name in ("hessian", "jacfwd", "jacrev")},
    "jacobian": ("morphax.control.jacobians", "jacrev"),
    "jit": ("morphax.runtime.jit", "jit"),
    "print_environment_info": ("morphax.environment", "print_environment_info"),
    "remat": ("morphax.control.checkpoint", "checkpoint"),
    "typeof": (_PLACE, "typeof"),
}  # fmt: skip
_FLAGS = frozenset(
    [
        "allow_f16_reductions",
        "array_garbage_collection_guard",
        "auto_pcast",
        "check_tracer_leaks",
        "debug_infs",
        "debug_key_reuse",
        "debug_nans",
        "default_device",
        "default_matmul_precision",
        "default_prng_impl",
        "enable_checks",
        "enable_custom_prng",
        "enable_x64",
        "explain_cache_misses",
        "jax2tf_associative_scan_reductions",
        "legacy_prng_key",
        "log_compiles",
        "no_execution",
        "no_tracing",
        "numpy_dtype_promotion",
        "numpy_rank_promotion",
        "remove_size_one_mesh_axis_from_type",
        "softmax_custom_jvp",
        "thread_guard",
        "threefry_partitionable",
        "transfer_guard",
        "transfer_guard_device_to_device",
        "transfer_guard_device_to_host",
        "transfer_guard_host_to_device",
    ]
)
_MODULES = frozenset(
    [
        "ad_checkpoint",
        "compat",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "dlpack",
        "example_libraries",
        "experimental",
        "dtypes",
        "errors",
        "flatten_util",
        "image",
        "lax",
        "monitoring",
        "nn",
        "numpy",
        "profiler",
        "random",
        "scipy",
        "sharding",
        "stages",
        "test_util",
        "tree",
        "tree_util",
        "typing",
        "version",
    ]
)


def __getattr__(name: str) -> Any:
    found = _NAMES.get(name)
    if found is not None:
        importlib.import_module("morphax.numpy")  # arrays get their operators there
        value = getattr(importlib.import_module(found[0]), found[1])
    elif name in _FLAGS:
        value = getattr(importlib.import_module("morphax.support.config"), name)
    elif name in _MODULES:
        return importlib.import_module(f"morphax.{name}")
    else:
        raise AttributeError(f"module 'morphax' has no attribute {name!r}{_nearest(name)}")
    globals()[name] = value
    return value


def _nearest(name: str) -> str:
    difflib = importlib.import_module("difflib")
    close = difflib.get_close_matches(name, __dir__(), 1)
    return f". Did you mean {close[0]!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted({*_NAMES, *_FLAGS, *_MODULES, "__version__"})


__all__ = ["__version__", *_NAMES, *_FLAGS, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll] - lazily loaded
