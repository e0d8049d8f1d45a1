"""Options of the whole test run."""

import gc
import itertools
import pathlib
import sys
from collections.abc import Iterator

import pytest

# Programs that wrote the reference values; they need JAX.
collect_ignore_glob = ["tests/data/*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the tests marked `full` too; they take minutes")


_ended = itertools.count()


@pytest.fixture(autouse=True)
def few_programs() -> Iterator[None]:
    """Compiled programs take memory maps, of which Linux gives a process 65,530: a long run forgets them in between."""
    yield
    if next(_ended) % 50 or "morphax" not in sys.modules:
        return
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        sys.modules["morphax"].clear_caches()
        gc.collect()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="long: runs with --full")
    for item in items:
        if "full" in item.keywords:
            item.add_marker(skip)
