"""The client: devices, the process-global states of jaxlib, and the names that its C++ code looks up in `jax`."""

import atexit
import gc
import importlib
import os
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax, xla_client
from jaxlib import utils as jaxlib_utils

from morphax.ir import avals
from morphax.ir.current import on_transform
from morphax.ir.trace import Tracer
from morphax.support import config

Device = _jax.Device
SingleDeviceSharding = _jax.SingleDeviceSharding
_REPLICATED = _hlo.HloSharding.replicate()
_lock = threading.RLock()
_clients: dict[str, Any] = {}
_started_in: int = 0

# ---- states that the C++ dispatch insists on ------------------------------------------------------------------------

_inside_transform = _jax.config.Config("morphax_inside_transform", False, include_in_jit_key=True)
_never = _jax.config.Config("morphax_never", False, include_in_jit_key=False)
_post_hook = _jax.config.Config("morphax_post_hook", None, include_in_jit_key=True)


def _install_states() -> None:
    # Only `flag.raw` objects are shared with C++; a compiled call looks at each that is part of its key.
    _jax.jax_jit.set_enable_x64_state(config.enable_x64.raw)
    _jax.jax_jit.set_disable_jit_state(_never)  # with `disable_jit` single operations are compiled still: see jit.py
    _jax.jax_jit.set_post_hook_state(_post_hook)
    on_transform(_inside_transform.set_local)
    _jax.set_tracer_class(Tracer)
    # jaxlib 0.10.2 asks the sharding for this; later ones do not.
    SingleDeviceSharding._to_xla_hlo_sharding = lambda self, ndim: _REPLICATED
    jaxlib_utils.absl_set_min_log_level(3)  # what XLA logs as an error is raised as an exception too
    gc.callbacks.append(lambda phase, details: _jax.collect_garbage() if phase == "stop" else None)


def watch_results(*flags: config.Flag) -> None:
    """Have compiled calls come back to Python for as long as one of the flags is on."""

    def changed(value: object, local: bool) -> None:
        on = any(flag.value for flag in flags)
        if local:
            _post_hook.set_local(_nothing_more if on else _jax.config.unset)
        else:
            _post_hook.set_global(_nothing_more if on else None)

    for flag in flags:
        flag.watch(lambda value: changed(value, False), lambda value: changed(value, True))


def results_watched() -> bool:
    """Whether a flag of `watch_results` is on, so that no result may pass by Python."""
    return _post_hook.value is not None


def _nothing_more(*call: object) -> None:
    """What C++ calls after its own calls, of which there are none while results are watched."""


# ---- the package `jax`, as C++ looks for it -------------------------------------------------------------------------

_LOOKED_UP = ("jax", "jax.core", "jax._src", "jax._src.named_sharding", "jax._src.sharding_impls")


@contextmanager
def answering_for_jax() -> Iterator[None]:
    """While C++ code may look for names in a package `jax`, answer in its place.

    Arrays that C++ makes without being told their type look for `jax.core.ShapedArray` (once) and for
    `jax._src.sharding_impls.make_single_device_sharding` (each time); without an answer they would import the real
    package if it is installed, and give arrays of its types.
    """
    found = {
        "jax.core": {"ShapedArray": avals.ShapedArray},
        "jax._src.named_sharding": {"check_pspec": lambda mesh, spec: None},
        "jax._src.sharding_impls": {"make_single_device_sharding": single_device},
    }
    with _lock:
        saved = {name: sys.modules.get(name) for name in _LOOKED_UP}
        for name in _LOOKED_UP:
            module = types.ModuleType(name)
            module.__dict__.update(found.get(name, {}))
            sys.modules[name] = module
        try:
            yield
        finally:
            for name, module in saved.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module


_shardings: dict[tuple[Any, Any], Any] = {}


def single_device(device: Any, memory_kind: Any = None) -> Any:
    """The sharding that puts a whole array on one device; the same object for the same device."""
    key = (device, memory_kind)
    found = _shardings.get(key)
    if found is None:
        found = _shardings[key] = SingleDeviceSharding(device, memory_kind=memory_kind)
    return found


def refuse_real_jax() -> None:
    """The two libraries share jaxlib's process-global state and would corrupt each other."""
    module = sys.modules.get("jax")
    if module is not None and not getattr(module, "__morphax__", False) and hasattr(module, "__version__"):
        raise ImportError(
            "morphax: the package jax is already imported in this process, and both set jaxlib's global state. Use "
            "one of them in a process: import morphax first and call morphax.compat.install() to serve `import jax`."
        )


# ---- clients and devices --------------------------------------------------------------------------------------------


def _start_cpu() -> Any:
    count = config.num_cpu_devices.value
    return xla_client.make_cpu_client(
        asynchronous=config.cpu_enable_async_dispatch.value, num_devices=count if count > 0 else None
    )


def _plugins() -> dict[str, str]:
    """Platform -> path of a PJRT plug-in, from the `jax_plugins` namespace and the TPU library, without importing."""
    found: dict[str, str] = {}
    metadata = importlib.import_module("importlib.metadata")  # not at the top: 8 ms of every import
    for entry in metadata.entry_points(group="jax_plugins"):
        for file in entry.dist.files or () if entry.dist is not None else ():
            if file.name.endswith("plugin.so"):
                found[entry.name.removeprefix("xla_").rstrip("0123456789")] = str(file.locate())
    return found


def _start_plugin(platform: str, path: str) -> Any:
    if not xla_client.pjrt_plugin_loaded(platform):
        xla_client.load_pjrt_plugin_dynamically(platform, path)
    if not xla_client.pjrt_plugin_initialized(platform):
        xla_client.initialize_pjrt_plugin(platform)
    options = xla_client.generate_pjrt_gpu_plugin_options() if platform in ("cuda", "rocm") else {}
    return xla_client.make_c_api_client(platform, options)


_ALIASES = {"gpu": ("cuda", "rocm"), "METAL": ("metal",)}


def _start_all() -> None:
    global _started_in
    with _lock:
        if _clients:
            return
        refuse_real_jax()
        plugins = _plugins()
        wanted = [p.strip() for p in (config.platforms.value or "").split(",") if p.strip()]
        names = [n for p in wanted for n in (_ALIASES.get(p, (p,)))] or [*plugins, "cpu"]
        started: dict[str, Any] = {}
        for name in names:
            if name == "cpu":
                started["cpu"] = _start_cpu()
            elif name in plugins:
                started[name] = _start_plugin(name, plugins[name])
            elif wanted and name not in ("cuda", "rocm"):
                raise RuntimeError(
                    f"no platform named {name!r} is installed (JAX_PLATFORMS={','.join(wanted)}); there are "
                    f"{', '.join([*plugins, 'cpu'])}. Install its plug-in, or unset JAX_PLATFORMS."
                )
        if not started:
            raise RuntimeError(
                f"none of the platforms {wanted} is installed. Install a plug-in, or unset JAX_PLATFORMS."
            )
        if "cpu" not in started:
            started["cpu"] = _start_cpu()
        _clients.update(started)
        _started_in = os.getpid()
        _teach_cpp_our_types()


def _teach_cpp_our_types() -> None:
    device = next(iter(_clients.values())).local_devices()[0]
    aval = avals.ShapedArray((), np.dtype("float32"))
    with answering_for_jax():
        x = _jax.batched_device_put(
            aval, single_device(device), [np.zeros((), np.float32)], [device], committed=False, enable_x64=False
        )
        x._fully_replicated_shard()


def _check_fork() -> None:
    if _started_in and os.getpid() != _started_in:
        raise RuntimeError(
            "morphax: this process was forked after the library had started its threads, and would hang. Start "
            "processes with multiprocessing.get_context('spawn')."
        )


def client(platform: str | None = None) -> Any:
    """The PJRT client of a platform, or the default one."""
    if not _clients:
        _start_all()
    elif _started_in != os.getpid():
        _check_fork()
    if platform is None:
        return next(iter(_clients.values()))
    for name in _ALIASES.get(platform, (platform,)):
        if name in _clients:
            return _clients[name]
    raise RuntimeError(f"unknown platform {platform!r}; this machine has {', '.join(_clients)}.")


def platforms() -> list[str]:
    """Names of the platforms that are there, the default one first."""
    client()
    return list(_clients)


def default_backend() -> str:
    """Name of the default platform: 'cpu', 'gpu' or 'tpu'.

    >>> default_backend()
    'cpu'
    """
    return client().platform


def devices(backend: str | None = None) -> list[Any]:
    """All devices of a platform, in all processes.

    >>> devices()[0].platform
    'cpu'
    """
    return client(backend).devices()


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """The devices that belong to this process, or to process `process_index`.

    >>> len(local_devices()) >= 1
    True
    """
    index = process_index if process_index is not None else host_id
    found = client(backend)
    if index is None or index == found.process_index():
        return found.local_devices()
    return [d for d in found.devices() if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """Number of devices in all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """Number of this process among all."""
    return client(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """Number of processes."""
    return max(d.process_index for d in devices(backend)) + 1


def default_device() -> Any:
    """The device where uncommitted values go."""
    chosen = config.default_device.value
    if chosen is None:
        return client().local_devices()[0]
    return client(chosen).local_devices()[0] if isinstance(chosen, str) else chosen


@atexit.register
def _stop() -> None:
    _shardings.clear()


_install_states()
