"""All contact with jaxlib. Lowest first: versions, backend, shardings, array, ffi, lower, cache, compile, place, eager,
jit, export."""
