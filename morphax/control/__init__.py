"""Primitives that carry jaxprs. Lowest first: effects, parts, call, policies, checkpoint, scan, cond, while_loop,
loops, custom, custom_vmap, linear_solve, associative_scan, monoid, platform, callback, shard_map."""
