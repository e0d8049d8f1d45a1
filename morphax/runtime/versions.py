"""Everything that differs between jaxlib versions."""

from typing import Any

from jaxlib import _jax, xla_client

EXTENSION: int = xla_client._version
VERSION: str = __import__("jaxlib.version", fromlist=["__version__"]).__version__

# Versions below this one abort the process when many multi-device CPU programs with collectives are in flight.
COLLECTIVES_NEED_A_BOUND = EXTENSION < 505
HAS_FUSION_EMITTER_FLAG = EXTENSION < 505


def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
    """What makes an Array of an executable's output."""
    if EXTENSION < 489:
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)
    return _jax.array_result_handler(aval, sharding, committed)
