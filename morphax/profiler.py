"""Traces of what processors and devices do, for TensorBoard and Perfetto, and profiles of device memory.

>>> from morphax import profiler, numpy as jnp
>>> with profiler.trace("/tmp/profile"):  # doctest: +SKIP
...     jnp.ones(3).block_until_ready()
"""

import contextlib
import functools
import gzip
import pathlib
import socketserver
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from typing import Any

from morphax.runtime import profiling
from morphax.runtime.profiling import ProfileData, ProfileEvent, ProfileOptions, ProfilePlane

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

# ---- annotations -----------------------------------------------------------------------------------------------------


class TraceAnnotation(profiling.TraceMe):
    """A `with` block that shows in traces under a name, with the keyword arguments as its metadata.

    >>> with TraceAnnotation("load", batch=3):
    ...     pass
    """


class StepTraceAnnotation(TraceAnnotation):
    """A `with` block that shows as one step of training; give `step_num`.

    >>> with StepTraceAnnotation("train", step_num=1):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """The function, whose calls show in traces.

    Args:
        func: to be annotated.
        name: under which they show; the function's own for None.
        decorator_kwargs: metadata of the calls.

    >>> @annotate_function
    ... def f(x):
    ...     return x + 1
    >>> f(1)
    2
    """
    shown = name or getattr(func, "__qualname__", None) or func.__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


# ---- traces ----------------------------------------------------------------------------------------------------------


class _Running:
    """The trace that is being taken, if any."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Any = None
        self.folder = ""
        self.perfetto = False
        self.link = False
        self.server: Any = None


_running = _Running()


def start_trace(
    log_dir: str | pathlib.Path,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Begin to record; `stop_trace` ends it and writes the trace.

    Args:
        log_dir: folder for the traces, as TensorBoard reads it: `plugins/profile/<time>/`.
        create_perfetto_link: at the end print a link to the Perfetto viewer, and wait until it has read the trace.
        create_perfetto_trace: also write `perfetto_trace.json.gz`, for https://ui.perfetto.dev.
        profiler_options: a `ProfileOptions`.

    Raises:
        RuntimeError: another trace is being taken.
    """
    with _running.lock:
        if _running.session is not None:
            raise RuntimeError("start_trace: only one trace can be taken at a time. Call stop_trace first.")
        profiling.start_clients()
        options = () if profiler_options is None else (profiler_options,)
        _running.session = profiling.ProfilerSession(*options)
        _running.folder = str(log_dir)
        _running.link = create_perfetto_link
        _running.perfetto = create_perfetto_trace or create_perfetto_link


def stop_trace() -> None:
    """End the trace that `start_trace` began, and write it.

    Raises:
        RuntimeError: no trace is being taken.
    """
    with _running.lock:
        session, _running.session = _running.session, None
        if session is None:
            raise RuntimeError("stop_trace: no trace is being taken. Call start_trace first.")
        session.export(session.stop(), _running.folder)
        if _running.perfetto:
            path = _write_perfetto(pathlib.Path(_running.folder))
            if _running.link:
                _serve_once(path)


def _write_perfetto(folder: pathlib.Path) -> pathlib.Path:
    """The newest trace of the folder once more, under the name that Perfetto's users look for."""
    traces = sorted(folder.glob("plugins/profile/*/*.trace.json.gz"), key=lambda p: p.stat().st_mtime)
    if not traces:
        raise RuntimeError(f"stop_trace: no trace was written below {folder}. Is there room, and may files be written?")
    path = traces[-1].parent / "perfetto_trace.json.gz"
    path.write_bytes(traces[-1].read_bytes())
    return path


_PERFETTO = "https://ui.perfetto.dev"


def _serve_once(path: pathlib.Path) -> None:
    """Give the file to Perfetto, which asks for it at port 9001 of this machine, and return when it has."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any):
            super().__init__(*args, directory=str(path.parent))

        def end_headers(self) -> None:
            self.send_header("Access-Control-Allow-Origin", _PERFETTO)
            super().end_headers()

        def do_GET(self) -> None:
            self.server.asked = True  # type: ignore[attr-defined] - the attribute is ours
            super().do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(socketserver.TCPServer):
        allow_reuse_address = True
        asked = False

    with Server(("127.0.0.1", 9001), Handler) as server:
        address = urllib.parse.quote(f"http://127.0.0.1:9001/{path.name}", safe="")
        sys.stdout.write(f"Open URL in browser: {_PERFETTO}/#!/?url={address}\n")
        while not server.asked:
            server.handle_request()


@contextlib.contextmanager
def trace(
    log_dir: str | pathlib.Path,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """A `with` block of which a trace is taken. Arguments as in `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


# ---- servers ---------------------------------------------------------------------------------------------------------


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start the server that TensorBoard takes traces from.

    Args:
        port: of this machine.
        requires_backend: start the devices first.

    Returns:
        The server, which runs until `stop_server`.

    Raises:
        ValueError: one runs already.
    """
    if _running.server is not None:
        raise ValueError("start_server: only one profiler server can run at a time. Call stop_server first.")
    if requires_backend:
        profiling.start_clients()
    _running.server = profiling.start_server(port)
    return _running.server


def stop_server() -> None:
    """Stop the profiler server.

    Raises:
        ValueError: none runs.
    """
    if _running.server is None:
        raise ValueError("stop_server: no profiler server runs. Call start_server first.")
    _running.server = None  # it ends with its last reference


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Take traces of another process together with those of this one, from its profiler server.

    Args:
        pid: id of the process.
        port: of its server.

    Returns:
        A function that undoes it.
    """
    return profiling.register_subprocess(pid, port)


# ---- memory ----------------------------------------------------------------------------------------------------------


def device_memory_profile(backend: str | None = None) -> bytes:
    """What is in the memory of the devices, and what put it there, in the gzipped format of pprof.

    Args:
        backend: platform; the default one for None.
    """
    return gzip.compress(profiling.heap_profile(backend))


def save_device_memory_profile(filename: str, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file."""
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))
