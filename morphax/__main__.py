"""Run a program that says `import jax` on Morphax."""

import io
import linecache
import os
import runpy
import sys
import types
from typing import NoReturn

from morphax import compat

USAGE = """\
Usage: python -m morphax program.py [argument ...]
       python -m morphax -m module [argument ...]
       python -m morphax -c 'code' [argument ...]

Run a Python program in which `import jax` gives Morphax. Otherwise it runs as `python` runs it, and the real package
jax is not imported, even where it is installed.
"""


def main(arguments: list[str]) -> None:
    """Run the program that `arguments` name, in this process; what it raises passes through."""
    if not arguments:
        _refuse(f"there is no program to run\n{USAGE}")
    first, *others = arguments
    if first in ("-h", "--help"):
        print(USAGE, end="")
        return
    if first in ("-m", "-c") and not others:
        _refuse(f"{first} wants an argument\n{USAGE}")
    if first.startswith("-") and first not in ("-m", "-c"):
        _refuse(f"unknown option {first}\n{USAGE}")
    compat.install()
    sys.excepthook = _show
    if first == "-m":
        sys.argv[:] = others  # runpy puts the module's file in the first place
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv[:] = ["-c", *others[1:]]
        _look_first_in("")
        if sys.version_info >= (3, 13):  # these show the source of -c in tracebacks
            linecache.cache["<string>"] = (len(others[0]), None, others[0].splitlines(keepends=True), "<string>")
        _run(compile(others[0], "<string>", "exec", dont_inherit=True))
    else:
        sys.argv[:] = arguments
        _run_file(first)


def _refuse(why: str) -> NoReturn:
    print(f"python -m morphax: {why}", file=sys.stderr)
    sys.exit(2)


def _run_file(path: str) -> None:
    if os.path.isdir(path) or path.endswith((".pyz", ".zip")):
        if not sys.flags.safe_path:
            del sys.path[0]  # runpy puts `path` in its place
        runpy.run_path(path, run_name="__main__")
        return
    file = os.path.abspath(path)
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        _refuse(f"can't open file {path!r}: {error}")
    _look_first_in(os.path.dirname(os.path.realpath(file)))
    _run(compile(source, file, "exec", dont_inherit=True), __file__=file, __cached__=None)


def _look_first_in(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder  # in place of the working folder, which `python -m` puts there


def _run(code: types.CodeType, **names: str | None) -> None:
    program = types.ModuleType("__main__")
    vars(program).update(names, __builtins__=__builtins__)
    sys.modules["__main__"] = program
    exec(code, vars(program))


def _show(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
    """Print an exception that ended the program, from the program's own first line on."""
    entry = traceback
    while entry is not None and entry.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>", runpy.__file__):
        entry = entry.tb_next
    sys.__excepthook__(kind, error.with_traceback(entry), entry)


if __name__ == "__main__":
    main(sys.argv[1:])
