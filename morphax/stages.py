"""The stages of ahead-of-time compilation: `jit(f).trace(...)`, `.lower()`, `.compile()`."""

from morphax.runtime.jit import Compiled, Lowered, Traced

__all__ = ["Compiled", "Lowered", "Traced"]
