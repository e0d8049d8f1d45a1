"""Tracebacks end at the user's own line; frames resolve to file, line, column and function."""

import functools
import sys
import textwrap
import traceback
import types

import pytest

from morphax.support import config, tracebacks


@pytest.fixture
def library(tmp_path):
    """A module whose frames count as the library's own."""
    source = textwrap.dedent("""
        import contextlib
        from morphax.support import tracebacks

        @contextlib.contextmanager
        def scope():
            yield

        def call(f, *args):
            with scope():
                return f(*args)

        @tracebacks.api_boundary
        def transform(f, *args):
            "Calls f."
            return call(f, *args)

        def fail():
            raise ValueError("wrong")

        @tracebacks.api_boundary
        def operation():
            fail()

        @tracebacks.api_boundary
        def chained():
            try:
                fail()
            except ValueError as error:
                raise TypeError("outer") from error

        @tracebacks.api_boundary
        def interrupted():
            raise KeyboardInterrupt

        @tracebacks.api_boundary
        def where():
            return tracebacks.user_frame()
    """)
    path = tmp_path / "library" / "module.py"
    path.parent.mkdir()
    path.write_text(source)
    tracebacks.register_exclusion(path.parent)
    module = types.ModuleType("library")
    exec(compile(source, str(path), "exec"), vars(module))
    yield module
    tracebacks._excluded.pop()
    tracebacks.internal_files.clear()


def _frames(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_traceback_ends_at_the_line_that_called(library):
    with pytest.raises(ValueError, match="wrong") as caught:
        library.operation()
    assert _frames(caught.value) == ["test_traceback_ends_at_the_line_that_called"]


def test_frames_of_the_users_functions_stay(library):
    def inner():
        library.operation()

    def outer(x):
        return library.transform(inner)

    with pytest.raises(ValueError, match="wrong") as caught:
        library.transform(outer, 1)
    assert _frames(caught.value) == ["test_frames_of_the_users_functions_stay", "outer", "inner"]
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "library.operation()"


def test_frames_of_what_the_user_called_stay(library):
    def user():
        textwrap.dedent(3)

    with pytest.raises(TypeError) as caught:
        library.transform(user)
    assert _frames(caught.value)[:3] == ["test_frames_of_what_the_user_called_stay", "user", "dedent"]


def test_note_is_added_once(library):
    with pytest.raises(ValueError, match="wrong") as caught:
        library.transform(library.operation)
    assert caught.value.__notes__ == [tracebacks.NOTE]


def test_causes_are_filtered_too(library):
    with pytest.raises(TypeError) as caught:
        library.chained()
    assert caught.value.__cause__.__traceback__ is None
    assert _frames(caught.value) == ["test_causes_are_filtered_too"]


def test_modes(library):
    def frames(mode):
        with config.traceback_filtering(mode), pytest.raises(ValueError, match="wrong") as caught:
            library.operation()
        return _frames(caught.value), vars(caught.value).get("__notes__", []), caught.value

    assert frames("off")[:2] == (["frames", "boundary", "operation", "fail"], [])
    assert frames("quiet_remove_frames")[:2] == (["frames"], [])
    assert frames("remove_frames")[:2] == (["frames"], [tracebacks.NOTE])
    names, _, error = frames("tracebackhide")
    assert names == ["frames", "boundary", "operation", "fail"]
    hidden = [f.f_locals.get("__tracebackhide__", False) for f, _ in traceback.walk_tb(error.__traceback__)]
    assert hidden == [False, True, True, True]


def test_interrupts_pass_unchanged(library):
    with pytest.raises(KeyboardInterrupt) as caught:
        library.interrupted()
    assert "interrupted" in _frames(caught.value)


def test_boundary_keeps_name_and_result(library):
    assert library.transform.__name__ == "transform"
    assert library.transform.__doc__ == "Calls f."
    assert library.transform(max, 1, 2) == 2


def test_user_frame_is_the_callers(library):
    code, lasti = functools.partial(library.where)()
    assert code is sys._getframe().f_code
    filename, line, column, function = tracebacks.locate(code, lasti)
    assert (filename, function) == (__file__, "test_user_frame_is_the_callers")
    assert line == code.co_firstlineno + 1
    assert column == 19
    assert tracebacks.summarize(code, lasti) == f"{__file__}:{line}:19 (test_user_frame_is_the_callers)"


def test_positions_may_be_unknown():
    code = compile("x", "f.py", "eval").replace(co_linetable=b"")
    assert tracebacks.summarize(code, 0) == "f.py:1 (<module>)"
    assert tracebacks.summarize(code, 10_000) == "f.py:1 (<module>)"


def test_is_internal():
    assert tracebacks.is_internal(tracebacks.summarize.__code__)
    assert not tracebacks.is_internal(test_is_internal.__code__)
    assert not tracebacks.is_internal(textwrap.dedent.__code__)
    assert not tracebacks.is_internal(compile("x", "<stdin>", "eval"))


def test_excluded_file(tmp_path):
    path = str(tmp_path / "one.py")
    code = compile("x", path, "eval")
    assert not tracebacks.is_internal(code)
    tracebacks.register_exclusion(path)
    assert tracebacks.is_internal(code)
    tracebacks._excluded.remove(path)
    tracebacks.internal_files.clear()


def test_nothing_is_filtered_from_nothing():
    assert tracebacks.filtered(None) is None
