"""All contact with jaxlib. Lowest first: versions, backend, nonfinite, shardings, array, ffi, lower, outline, cache,
compile, place, eager, jit, passes, export."""
