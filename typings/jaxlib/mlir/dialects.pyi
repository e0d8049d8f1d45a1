# jaxlib ships no types for its compiled modules.
from typing import Any

def __getattr__(name: str) -> Any: ...
