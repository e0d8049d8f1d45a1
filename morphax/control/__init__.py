"""Primitives that carry jaxprs. Lowest first: parts, call, checkpoint, cond, scan, while_loop, loops, custom,
linear_solve, associative_scan, platform."""
