"""jaxlib's profiler under names of ours: sessions, annotations, and the data of traces."""

from typing import Any

from jaxlib import _profile_data, _profiler

from morphax.runtime import backend

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfilePlane = _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
ProfilerSession = _profiler.ProfilerSession
TraceMe = _profiler.TraceMe
start_server = _profiler.start_server
register_subprocess = _profiler.register_subprocess


def heap_profile(platform: str | None) -> bytes:
    """What is in the memory of the devices of a platform, in the format of pprof."""
    return backend.client(platform).heap_profile()


def start_clients() -> Any:
    """The devices, which must be there before a trace can cover them."""
    return backend.devices()
