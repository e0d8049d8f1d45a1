"""Control flow: the functions that take functions."""

from morphax.control.associative_scan import associative_scan
from morphax.control.cond import cond, cond_p, switch
from morphax.control.linear_solve import custom_linear_solve, custom_root
from morphax.control.loops import fori_loop, scan, while_loop
from morphax.control.loops import map_ as map  # noqa: A004 - the public name
from morphax.control.platform import optimization_barrier, optimization_barrier_p, platform_dependent
from morphax.control.scan import scan_p
from morphax.control.while_loop import while_p
from morphax.runtime.place import sharding_constraint_p, with_sharding_constraint

__all__ = [
    "associative_scan",
    "cond",
    "cond_p",
    "custom_linear_solve",
    "custom_root",
    "fori_loop",
    "map",
    "optimization_barrier",
    "optimization_barrier_p",
    "platform_dependent",
    "scan",
    "sharding_constraint_p",
    "scan_p",
    "switch",
    "while_loop",
    "while_p",
    "with_sharding_constraint",
]
