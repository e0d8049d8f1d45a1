"""Primitives that carry jaxprs, and what is built of them. Lowest first: effects, parts, call, policies, checkpoint,
scan, cond, while_loop, loops, jacobians, custom, custom_vmap, linear_solve, associative_scan, monoid, platform,
callback, shard_map, checkify, taylor."""
