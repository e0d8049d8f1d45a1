"""`python -m morphax`: programs run as Python runs them, but for what `import jax` gives."""

import os
import pathlib
import subprocess
import sys
import textwrap
import zipfile

import pytest

SHOW = """\
import sys
import jax
print(jax.__version__, jax.__morphax__, __name__, sys.modules["__main__"].__dict__ is globals())
print(sys.argv)
"""


def python(*arguments: str, at: pathlib.Path, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *flags, *arguments],
        cwd=at,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=120,
    )


def morphax(*arguments: str, at: pathlib.Path, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    return python("-m", "morphax", *arguments, at=at, flags=flags)


def write(path: pathlib.Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_program_file(tmp_path):
    write(tmp_path / "sub" / "show.py", SHOW)
    done = morphax("sub/show.py", "-m", "--flag", at=tmp_path)
    assert done.stdout == "0.10.2 True __main__ True\n['sub/show.py', '-m', '--flag']\n", done.stderr


def test_module(tmp_path):
    write(tmp_path / "package" / "__init__.py", "")
    write(tmp_path / "package" / "show.py", SHOW)
    done = morphax("-m", "package.show", "-h", at=tmp_path)
    assert done.stdout == f"0.10.2 True __main__ True\n['{tmp_path}/package/show.py', '-h']\n", done.stderr


def test_code(tmp_path):
    done = morphax("-c", SHOW, "one", "-c", at=tmp_path)
    assert done.stdout == "0.10.2 True __main__ True\n['-c', 'one', '-c']\n", done.stderr


def test_folder_and_archive(tmp_path):
    write(tmp_path / "folder" / "__main__.py", "import near, jax; print(near.X, jax.__version__, __name__)")
    write(tmp_path / "folder" / "near.py", "X = 3")
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        for name in ("__main__.py", "near.py"):
            archive.write(tmp_path / "folder" / name, name)
    for name in ("folder", "archive.pyz"):
        done = morphax(name, at=tmp_path)
        assert done.stdout == "3 0.10.2 __main__\n", done.stderr


STATE = """\
import sys, inspect
IMPLICIT = ("__loader__", "__package__", "__annotations__")
print(sys.path[:2], sys.argv, __name__, sorted(k for k in globals() if k not in IMPLICIT))
print(globals().get("__file__"), __spec__ and __spec__.name)
def f(): pass
print(f.__module__, inspect.getmodule(f) is sys.modules["__main__"])
"""


@pytest.mark.parametrize("arguments", [("sub/state.py", "x"), ("-c", STATE, "x"), ("-m", "sub.state", "x")])
@pytest.mark.parametrize("flags", [(), ("-P",)])
def test_program_sees_what_python_shows_it(tmp_path, flags, arguments):
    write(tmp_path / "sub" / "state.py", STATE)
    ours = morphax(*arguments, at=tmp_path, flags=flags)
    theirs = python(*arguments, at=tmp_path, flags=flags)
    assert ours.stdout == theirs.stdout, ours.stderr
    assert ours.returncode == theirs.returncode  # with -P no module is found in the working folder


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(7)", 7),
        ("sys.exit('text')", 1),
        ("raise KeyError(3)", 1),
        ("sys.exit()", 0),
        ("import os; os._exit(9)", 9),
    ],
)
def test_exit_codes_pass_through(tmp_path, ending, code):
    path = write(tmp_path / "end.py", f"import sys\n{ending}\n")
    assert morphax(path, at=tmp_path).returncode == code
    assert morphax("-c", f"import sys\n{ending}\n", at=tmp_path).returncode == code
    assert morphax("-m", "end", at=tmp_path).returncode == code


@pytest.mark.parametrize("arguments", [("fail.py",), ("-c", "import fail"), ("syntax.py",)])
def test_tracebacks_are_those_of_python(tmp_path, arguments):
    write(tmp_path / "fail.py", "def f():\n    return 1 / 0\n\ntry:\n    f()\nexcept ZeroDivisionError:\n    [][1]\n")
    write(tmp_path / "syntax.py", "x = (1\ny = 2)\n")
    ours = morphax(*arguments, at=tmp_path)
    theirs = python(*arguments, at=tmp_path)
    assert ours.returncode == theirs.returncode == 1
    assert ours.stderr == theirs.stderr


def test_tracebacks_of_modules_begin_in_them(tmp_path):
    write(tmp_path / "fail.py", "1 / 0\n")
    error = morphax("-m", "fail", at=tmp_path).stderr
    assert error.splitlines()[1] == f'  File "{tmp_path}/fail.py", line 1, in <module>'


def test_help(tmp_path):
    for option in ("-h", "--help"):
        done = morphax(option, at=tmp_path)
        assert done.returncode == 0
        assert "program.py" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "no program"), (("-m",), "-m wants"), (("-c",), "-c wants"), (("-x",), "option -x"), (("no.py",), "no.py")],
)
def test_wrong_use_says_what_is_wrong(tmp_path, arguments, message):
    done = morphax(*arguments, at=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_source_encoding_and_future_statements_are_the_programs_own(tmp_path):
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nprint(ascii('é'))\n".encode("latin-1"))
    assert morphax("latin.py", at=tmp_path).stdout == "'\\xe9'\n"
    write(tmp_path / "types.txt", "def f(x: int): pass\nprint(f.__annotations__)\n")
    assert morphax("types.txt", at=tmp_path).stdout == "{'x': <class 'int'>}\n"
