"""What every primitive call reads: the current trace, and where the program being replayed came from."""

import threading
from typing import Any


class _Current(threading.local):
    """Per thread. `trace` interprets primitives; `source` overrides the frame of new equations; `scope` names them."""

    trace: Any = None
    source: Any = None
    scope: str = ""
    recording: int = 0  # how many traces that record programs are active
    axes: dict[Any, int] = {}  # noqa: RUF012 - replaced, never changed: names and sizes of the bound axes
    manual: frozenset = frozenset()  # those that are axes of a mesh

    @staticmethod
    def mark_inside(inside: bool) -> None:
        """Told when the outermost transform begins and ends in this thread; the runtime replaces it."""


current = _Current()


def install_base(trace: Any) -> None:
    """Make `trace` the interpreter of primitives where no transform is active, in every thread."""
    _Current.trace = trace


def base() -> Any:
    """The trace where no transform is active."""
    return _Current.trace


def on_transform(mark: Any) -> None:
    """Have `mark(True)` and `mark(False)` called when the outermost transform of a thread begins and ends."""
    _Current.mark_inside = staticmethod(mark)
