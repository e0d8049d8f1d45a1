"""`jax` as a name for this package, for programs that say `import jax`.

After `install()`, `import jax.X` gives `morphax.compat.X` where that exists (views that other libraries expect under
JAX's name alone), and else the module `morphax.X` itself. `jax` is a module of its own, since it has a version of its
own: that of the JAX whose names and meanings these are. Until `install()` is called nothing is named `jax`.

>>> import morphax.compat
>>> morphax.compat.install()  # doctest: +SKIP
>>> import jax.numpy as jnp  # doctest: +SKIP
"""

import difflib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import pathlib
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import morphax
from morphax.compat import version

_LAYERS = frozenset(("compat", "control", "ir", "ops", "runtime", "support", "transforms"))
"""Folders of this package that are no public modules."""


def install() -> None:
    """Let `import jax` give this package, in this process, from here on; calling it again changes nothing.

    The package `jax` is not imported then, even where it is installed. Processes that this one starts with
    `multiprocessing` import their main program before they could call this: call it there at the top.

    Raises:
      ImportError: the real package `jax` is imported already.
    """
    present = sys.modules.get("jax")
    if present is not None and not isinstance(present, _Jax):
        raise ImportError(
            "morphax.compat.install: the package jax is already imported in this process, from "
            f"{getattr(present, '__file__', None)}. Call install() before anything imports jax."
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


# ---- which module stands for which ----------------------------------------------------------------------------------


def _target(path: str) -> str | None:
    """Name of the module that answers for `jax.<path>`; None if there is none."""
    names = [f"morphax.compat.{path}"]
    if path.partition(".")[0] not in _LAYERS:
        names.append(f"morphax.{path}")
    return next(filter(_exists, names), None)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):  # a parent is missing, or is no package
            return False
        raise


class _Jax(types.ModuleType):
    """The module `jax`: the names of `morphax`, and JAX's version."""

    __morphax__ = True
    __version__: str
    __version_info__: tuple[int, int, int]

    def __getattr__(self, name: str) -> Any:  # Any: a public object
        if name.startswith("__"):
            raise AttributeError(f"module 'jax' has no attribute {name!r}")
        value = _public(name)
        setattr(self, name, value)  # found without this function from now on
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(morphax)} - _LAYERS)


def _public(name: str) -> Any:  # Any: a public object
    cause = None
    if name not in _LAYERS and not _exists(f"morphax.compat.{name}"):
        try:
            return getattr(morphax, name)
        except AttributeError as error:
            cause = error if name in dir(morphax) else None  # a name that is there, but cannot be loaded
    target = _target(name)
    if target is not None:
        return importlib.import_module(target)
    near = difflib.get_close_matches(name, dir(morphax), 1)
    hint = f" Did you mean jax.{near[0]}?" if near else ""
    raise AttributeError(f"morphax, which stands for jax in this process, has no {name!r}.{hint}") from cause


class _Loader(importlib.abc.Loader):
    """Loads `jax`, or puts the module that stands for `jax.X` in its place."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        if spec.name == "jax":
            return _Jax("jax", morphax.__doc__)
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if isinstance(module, _Jax):
            module.__version__ = version.__version__
            module.__version_info__ = version.__version_info__
            module.__file__ = morphax.__file__
            return
        target = _target(module.__name__.removeprefix("jax."))
        assert target is not None, module.__name__
        sys.modules[module.__name__] = importlib.import_module(target)


_ANY = importlib.metadata.DistributionFinder.Context()


class _Finder(importlib.metadata.DistributionFinder):
    """Answers for `jax` and all below it, and for the version of the distribution of that name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, below = fullname.partition(".")
        if root != "jax":
            return None
        if below and _target(below) is None:
            raise ModuleNotFoundError(
                f"morphax, which stands for jax in this process, has no module {below!r} (asked for as {fullname})",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, _LOADER, is_package=True)

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context = _ANY
    ) -> Iterator[importlib.metadata.Distribution]:
        if context.name in ("jax", None):
            yield _Distribution()


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata.version("jax")` reads."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {version.__version__}\n"
        return None

    def locate_file(self, path: Any) -> Any:  # Any: as in the base class, which differs between Pythons
        return pathlib.Path(morphax.__path__[0], path)


_LOADER = _Loader()
_FINDER = _Finder()
