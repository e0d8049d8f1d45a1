"""`import jax` after `morphax.compat.install()`; each test in a process of its own."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest


def run(code: str, *path: pathlib.Path) -> str:
    """What a fresh Python prints that runs `code`, with the folders `path` in front of all others."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), os.getcwd()])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def other_jax(tmp_path):
    """A folder with a package named jax, as where the real one is installed."""
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '9.9'\nprint('the other jax was imported')\n")
    (package / "pallas.py").write_text("")
    metadata = tmp_path / "jax-9.9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 9.9\n")
    return tmp_path


def test_modules_are_the_same_objects(other_jax):
    code = """
        import sys
        import morphax, morphax.compat, morphax.tree
        morphax.compat.install()
        import jax.tree
        from jax import tree_util
        import jax.tree_util as again
        assert jax.tree is morphax.tree is sys.modules["jax.tree"]
        assert tree_util is again is morphax.tree_util
        assert morphax.tree.__spec__.name == morphax.tree.__name__ == "morphax.tree"
        assert jax.tree.map(lambda x: x + 1, [1, 2]) == [2, 3]
        print(jax.__version__, jax.__version_info__, jax.version.__version_info__)
    """
    assert run(code, other_jax) == "0.10.2 (0, 10, 2) (0, 10, 2)\n"


def test_other_jax_is_not_imported(other_jax):
    code = """
        import importlib.metadata, importlib.util
        from morphax.compat import install
        install()
        install()
        import jax
        print(jax.__morphax__, importlib.metadata.version("jax"), importlib.util.find_spec("jax") is not None)
    """
    assert run(code, other_jax) == "True 0.10.2 True\n"


def test_other_jax_already_imported_is_refused(other_jax):
    code = """
        import jax, morphax.compat
        try:
            morphax.compat.install()
        except ImportError as error:
            print(error)
        import jax
        print(jax.__version__)
    """
    found = run(code, other_jax)
    assert "already imported" in found
    assert str(other_jax) in found
    assert found.endswith("9.9\n")


def test_nothing_is_named_jax_without_install():
    code = """
        import sys
        import morphax.compat, morphax.runtime.backend as backend
        backend.devices()
        print([name for name in sys.modules if name.partition(".")[0] == "jax"])
    """
    assert run(code) == "[]\n"


def test_alias_outlives_the_stubs_for_jaxlib(other_jax):
    code = """
        import sys
        from morphax import compat
        compat.install()
        import jax
        import jax.tree
        from morphax.runtime import backend
        backend.devices()
        import jax as again
        assert again is jax is sys.modules["jax"]
        assert sys.modules["jax.tree"] is jax.tree
        print(sorted(name for name in sys.modules if name.partition(".")[0] == "jax"))
    """
    assert run(code, other_jax) == "['jax', 'jax.tree']\n"


@pytest.mark.parametrize(
    "name", ["pallas", "tree.nothing", "runtime", "ir.jaxpr", "support", "compat", "nothing.at.all"]
)
def test_missing_module_is_named_with_morphax(other_jax, name):
    code = f"""
        from morphax import compat, tree
        compat.install()
        try:
            import jax.{name}
        except ModuleNotFoundError as error:
            print(error.name, "|", error)
    """
    found = run(code, other_jax)
    if name == "tree.nothing":  # Python's own message: tree is no package
        assert "jax.tree.nothing" in found
        return
    first = name.partition(".")[0]
    assert found.startswith(f"jax.{first} | morphax")
    assert repr(first) in found


def test_missing_name_is_answered_with_the_nearest(other_jax):
    code = """
        import morphax
        from morphax import compat
        compat.install()
        morphax.linearize = 1
        import jax
        for name in ("linearise", "zzzz", "runtime", "_src"):
            assert not hasattr(jax, name)
            try:
                getattr(jax, name)
            except AttributeError as error:
                print(error)
        try:
            from jax import zzzz
        except ImportError as error:
            print(type(error).__name__, "morphax" in str(error))
    """
    lines = run(code, other_jax).splitlines()
    assert "morphax" in lines[0]
    assert "Did you mean jax.linearize?" in lines[0]
    assert "has no 'zzzz'" in lines[1]
    assert lines[4] == "ImportError True"


def test_dir_lists_public_names_only():
    code = """
        import morphax.compat, morphax.tree, morphax.runtime
        morphax.compat.install()
        import jax
        print("tree" in dir(jax), "__version__" in dir(jax), "runtime" in dir(jax))
    """
    assert run(code) == "True True False\n"


def test_error_inside_a_module_is_not_taken_for_its_absence(tmp_path):
    code = f"""
        import morphax
        from morphax import compat
        compat.install()
        morphax.__path__.append({str(tmp_path)!r})
        try:
            import jax.broken
        except ModuleNotFoundError as error:
            print(error.name)
    """
    (tmp_path / "broken.py").write_text("import not_installed_anywhere\n")
    assert run(code) == "not_installed_anywhere\n"
