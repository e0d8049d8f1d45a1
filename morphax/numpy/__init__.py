"""NumPy's functions on arrays and tracers of this library."""
