"""Forgetting what was compiled, and saying what this process runs on."""

import platform
import sys
from typing import Any

import numpy as np

from morphax.ir.primitive import registry
from morphax.runtime import backend, jit, versions
from morphax.runtime import compile as compiling
from morphax.version import __version__


def clear_caches() -> None:
    """Forget every compiled program of this process; the disk cache stays.

    >>> clear_caches()
    """
    for primitive in registry.values():
        primitive.eager.clear()
    compiling.clear()
    jit.clear()


def print_environment_info(return_string: bool = False) -> Any:
    """Versions and devices, for bug reports; printed, or returned with `return_string`."""
    text = "\n".join(
        [
            f"morphax: {__version__}",
            f"jaxlib:  {versions.VERSION}",
            f"numpy:   {np.__version__}",
            f"python:  {sys.version}",
            f"device info: {', '.join(map(str, backend.devices()))}",
            f"platform: {platform.platform()}",
        ]
    )
    if return_string:
        return text
    sys.stdout.write(text + "\n")
    return None


__all__ = ["clear_caches", "print_environment_info"]
