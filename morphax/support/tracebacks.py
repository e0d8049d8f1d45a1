"""Which frames of a traceback belong to the user, and how the others leave it.

An exception that crosses an `api_boundary` loses the frames inside this package, so that the traceback ends at the
line that the user wrote. `config.traceback_filtering` says how: "off" keeps every frame.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from jaxlib import _jax

from morphax.support import config

P = ParamSpec("P")
R = TypeVar("R")

NOTE = "Frames inside the library were left out; set JAX_TRACEBACK_FILTERING=off to see all."

_USER, _PLATFORM, _INTERNAL = range(3)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_JAXLIB = os.path.dirname(os.path.abspath(_jax.__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = tuple(f"{os.sep}{folder}{os.sep}" for folder in ("site-packages", "dist-packages"))

_excluded: list[str] = [_PACKAGE, _JAXLIB]


def _owner(filename: str) -> int:
    if filename.startswith(tuple(_excluded)):
        return _INTERNAL
    if filename.startswith((_NUMPY, "<frozen ")):
        return _PLATFORM
    if filename.startswith(_STANDARD_LIBRARY) and not any(folder in filename for folder in _INSTALLED):
        return _PLATFORM
    return _USER


class _Owners(dict[str, int]):
    """Owners of files, found once each; there are no more entries than source files."""

    def __missing__(self, filename: str) -> int:
        owner = self[filename] = _owner(filename)
        return owner


internal_files = _Owners()
"""For a file's name: 0 for the user's files, else true. A dict, so asking costs 20 ns for each frame of a stack."""


def register_exclusion(path: str | os.PathLike[str]) -> None:
    """From here on, frames of the file `path`, or of files in the folder `path`, count as the library's own."""
    path = os.fspath(path)
    _excluded.append(os.path.join(path, "") if os.path.isdir(path) else path)
    internal_files.clear()


def is_internal(code: types.CodeType) -> bool:
    """Whether `code` belongs to this package, to jaxlib, or to a path given to `register_exclusion`."""
    return internal_files[code.co_filename] == _INTERNAL


def user_frame(skip: int = 1) -> tuple[types.CodeType, int] | None:
    """The nearest frame of the user as (code, instruction offset), which `summarize` resolves; None if there is none.

    `skip` frames are passed over at the start, the caller's own being the first.
    """
    frame: types.FrameType | None = sys._getframe(skip)
    while frame is not None and internal_files[frame.f_code.co_filename] != _USER:
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def locate(code: types.CodeType, lasti: int) -> tuple[str, int, int, str]:
    """The file, line, column and function of an instruction; line and column count from 1, 0 where unknown."""
    line, _, column, _ = next(itertools.islice(code.co_positions(), lasti // 2, None), (None, None, None, None))
    return code.co_filename, line or code.co_firstlineno, 0 if column is None else column + 1, code.co_qualname


def summarize(code: types.CodeType, lasti: int) -> str:
    """An instruction as 'file.py:12:8 (function)'."""
    filename, line, column, function = locate(code, lasti)
    return f"{filename}:{line}:{column} ({function})" if column else f"{filename}:{line} ({function})"


def api_boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """`fun`, whose exceptions reach the caller without the frames of this package, `fun`'s own included.

    Costs nothing but a call while nothing is raised. KeyboardInterrupt and its kind pass unchanged.
    """

    @functools.wraps(fun)
    def boundary(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            clean(error)
            raise  # A bare raise adds no entry for this frame to the traceback.

    return boundary


def bound_functions(namespace: dict[str, Any]) -> None:
    """Make every public function of a module or package an `api_boundary`.

    Args:
        namespace: its `globals()`. Functions from elsewhere stay as they are, and those that `program` made, which are
            boundaries already.
    """
    module = namespace["__name__"]
    for name, value in list(namespace.items()):
        own = isinstance(value, types.FunctionType) and f"{value.__module__}.".startswith(f"{module}.")
        if own and name[0] != "_" and "compiled" not in vars(value):
            bounded = api_boundary(value)
            bounded.__module__ = module  # where pickle finds it
            namespace[name] = bounded


def clean(error: BaseException) -> None:
    """Drop the frames of this package from an exception that is about to be raised again by a bare `raise`."""
    mode = config.traceback_filtering.value
    if mode != "off":
        _FILTERS[mode](error)


def _remove_frames(error: BaseException) -> None:
    _quietly_remove_frames(error)
    if NOTE not in vars(error).get("__notes__", ()):
        error.add_note(NOTE)


def _quietly_remove_frames(error: BaseException) -> None:
    seen: set[int] = set()
    chained: BaseException | None = error
    while chained is not None and id(chained) not in seen:
        seen.add(id(chained))
        chained.__traceback__ = filtered(chained.__traceback__)
        chained = chained.__cause__ or (None if chained.__suppress_context__ else chained.__context__)


def _hide_frames(error: BaseException) -> None:
    for entry in _entries(error.__traceback__):
        if is_internal(entry.tb_frame.f_code):
            entry.tb_frame.f_locals["__tracebackhide__"] = True  # IPython and pytest skip such frames


_FILTERS: dict[str, Callable[[BaseException], None]] = {
    "auto": _remove_frames,
    "remove_frames": _remove_frames,
    "quiet_remove_frames": _quietly_remove_frames,
    "tracebackhide": _hide_frames,
}


def _entries(traceback: types.TracebackType | None) -> list[types.TracebackType]:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries


def filtered(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """`traceback` without internal frames, and without those of NumPy or the standard library that they called."""
    kept = []
    owner = _USER
    for entry in _entries(traceback):
        file_owner = internal_files[entry.tb_frame.f_code.co_filename]
        owner = owner if file_owner == _PLATFORM else file_owner
        if owner != _INTERNAL:
            kept.append(entry)
    result = None
    for entry in reversed(kept):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
