"""Traces, annotations, memory profiles, and the listeners of events."""

import gzip
import json

import pytest

import morphax
from morphax import monitoring, profiler
from morphax import numpy as jnp


def test_a_trace_holds_what_ran(tmp_path):
    @profiler.annotate_function
    def busy(x):
        return jnp.sin(x).sum().block_until_ready()

    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.TraceAnnotation("part one", size=3):
            busy(jnp.ones(1000))
        with profiler.StepTraceAnnotation("train", step_num=4):
            busy(jnp.ones(1000))
    (planes,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    names = {
        event.name
        for plane in profiler.ProfileData.from_file(str(planes)).planes
        for line in plane.lines
        for event in line.events
    }
    assert {"part one", "train"} <= names
    assert any("busy" in name for name in names)
    (path,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert any(event.get("name") == "part one" for event in events)


def test_one_trace_at_a_time(tmp_path):
    profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="only one trace"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    with pytest.raises(RuntimeError, match="no trace"):
        profiler.stop_trace()
    with pytest.raises(ValueError, match="no profiler server"):
        profiler.stop_server()


def test_memory_profile(tmp_path):
    kept = jnp.ones(1000)
    path = tmp_path / "memory.prof"
    morphax.profiler.save_device_memory_profile(str(path))
    assert len(gzip.decompress(path.read_bytes())) > 100
    assert kept.size == 1000


def test_listeners_hear_events():
    heard = []
    listeners = {
        "event": lambda *a, **k: heard.append(("event", *a, k)),
        "duration": lambda *a, **k: heard.append(("duration", *a, k)),
        "span": lambda *a, **k: heard.append(("span", *a, k)),
        "scalar": lambda *a, **k: heard.append(("scalar", *a, k)),
    }
    monitoring.register_event_listener(listeners["event"])
    monitoring.register_event_duration_secs_listener(listeners["duration"])
    monitoring.register_event_time_span_listener(listeners["span"])
    monitoring.register_scalar_listener(listeners["scalar"])
    record = [
        lambda: monitoring.record_event("a", x=1),
        lambda: monitoring.record_event_duration_secs("b", 2.0),
        lambda: monitoring.record_event_time_span("c", 1.0, 3.0),
        lambda: monitoring.record_scalar("d", 5, y=2),
    ]
    for r in record:
        r()
    assert heard == [
        ("event", "a", {"x": 1}), ("duration", "b", 2.0, {}), ("span", "c", 1.0, 3.0, {}), ("scalar", "d", 5, {"y": 2}),
    ]  # fmt: skip
    monitoring.unregister_event_listener(listeners["event"])
    monitoring.unregister_event_duration_listener(listeners["duration"])
    monitoring.unregister_event_time_span_listener(listeners["span"])
    monitoring.unregister_scalar_listener(listeners["scalar"])
    for r in record:
        r()
    assert len(heard) == 4
    with pytest.raises(ValueError, match="not registered"):
        monitoring.unregister_event_listener(listeners["event"])
    monitoring.register_scalar_listener(listeners["scalar"])
    monitoring.clear_event_listeners()
    monitoring.record_scalar("d", 5)
    assert len(heard) == 4
