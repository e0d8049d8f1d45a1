"""Layer 0: what knows nothing of tracing.

Modules, lowest first; each imports only from those above it:

config      every flag in one table
errors      every public exception: cause and cure
tracebacks  which frames belong to the user
dtypes      sets of dtypes, and the promotion lattice as one table
tree        pytrees, on jaxlib's C++ registry
"""
