"""All contact with jaxlib. Lowest first: versions, backend, array, place, ffi, lower, cache, compile, eager, jit, export."""
