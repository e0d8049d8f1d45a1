"""Listeners that hear of events: what happened, how long it took, when it ran, which number it gave.

>>> seen = []
>>> register_event_listener(lambda event, **kwargs: seen.append(event))
>>> record_event("/started")
>>> seen
['/started']
>>> clear_event_listeners()
"""

from collections.abc import Callable
from typing import Any

_Listener = Callable[..., None]
_events: list[_Listener] = []
_durations: list[_Listener] = []
_spans: list[_Listener] = []
_scalars: list[_Listener] = []


def _remove(listeners: list[_Listener], callback: _Listener) -> None:
    if callback not in listeners:
        raise ValueError(f"monitoring: {callback!r} is not registered. Unregister the function that was registered.")
    listeners.remove(callback)


def record_event(event: str, **kwargs: Any) -> None:
    """Call the listeners of events with (event, **kwargs)."""
    for listener in list(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Call the listeners of durations with (event, seconds, **kwargs)."""
    for listener in list(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Call the listeners of time spans with (event, start, end, **kwargs), in seconds."""
    for listener in list(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: Any) -> None:
    """Call the listeners of scalars with (event, value, **kwargs)."""
    for listener in list(_scalars):
        listener(event, value, **kwargs)


def register_event_listener(callback: _Listener) -> None:
    """Have `callback(event, **kwargs)` called at each `record_event`."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: _Listener) -> None:
    """Have `callback(event, seconds, **kwargs)` called at each `record_event_duration_secs`."""
    _durations.append(callback)


def register_event_time_span_listener(callback: _Listener) -> None:
    """Have `callback(event, start, end, **kwargs)` called at each `record_event_time_span`."""
    _spans.append(callback)


def register_scalar_listener(callback: _Listener) -> None:
    """Have `callback(event, value, **kwargs)` called at each `record_scalar`."""
    _scalars.append(callback)


def unregister_event_listener(callback: _Listener) -> None:
    """Undo `register_event_listener`. ValueError: it was not registered."""
    _remove(_events, callback)


def unregister_event_duration_listener(callback: _Listener) -> None:
    """Undo `register_event_duration_secs_listener`. ValueError: it was not registered."""
    _remove(_durations, callback)


def unregister_event_time_span_listener(callback: _Listener) -> None:
    """Undo `register_event_time_span_listener`. ValueError: it was not registered."""
    _remove(_spans, callback)


def unregister_scalar_listener(callback: _Listener) -> None:
    """Undo `register_scalar_listener`. ValueError: it was not registered."""
    _remove(_scalars, callback)


def clear_event_listeners() -> None:
    """Forget all listeners, of every kind."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
