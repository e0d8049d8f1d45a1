"""Parts whose interface may still change."""

from morphax.control.callback import io_callback

__all__ = ["io_callback"]
