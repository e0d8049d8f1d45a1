"""Primitives that carry jaxprs. Lowest first: effects, parts, call, checkpoint, scan, cond, while_loop, loops,
custom, linear_solve, associative_scan, monoid, platform, callback."""
