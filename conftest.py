"""Options of the whole test run."""

import pytest

# Programs that wrote the reference values; they need JAX.
collect_ignore_glob = ["tests/data/*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the tests marked `full` too; they take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="long: runs with --full")
    for item in items:
        if "full" in item.keywords:
            item.add_marker(skip)
