"""Array programs on accelerators and their transforms, under the public names of JAX."""
