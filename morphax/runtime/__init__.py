"""All contact with jaxlib. Lowest first: versions, backend, array, place, lower, compile, cache, eager, jit, export."""
