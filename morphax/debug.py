"""Looking into compiled programs."""

from morphax.control.callback import debug_callback as callback
from morphax.control.callback import debug_print as print  # noqa: A004 - the public name

__all__ = ["callback", "print"]
