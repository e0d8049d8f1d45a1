"""All contact with jaxlib. Lowest first: versions, backend, array, place, lower, cache, compile, eager, jit, export."""
