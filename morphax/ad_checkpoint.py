"""Rematerialisation: names for values, policies, and what a gradient keeps."""

from morphax.control.checkpoint import checkpoint, print_saved_residuals
from morphax.control.checkpoint import checkpoint as remat
from morphax.control.policies import Offloadable, Recompute, Saveable, checkpoint_name, checkpoint_policies

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]
