"""The rows of all families: `every()` gathers the tuple `ROWS` of each module in this folder."""

import importlib
import pkgutil

from samples import Sample


def every() -> list[Sample]:
    """All rows, by module and then in their order."""
    found: list[Sample] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        found.extend(importlib.import_module(f"{__name__}.{module}").ROWS)
    return found
