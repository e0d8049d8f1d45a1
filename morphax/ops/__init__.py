"""First-order primitives by family. Lowest first: family, elementwise, special, structure, reduce, contract, indexing,
sorting, random_bits."""
