"""First-order primitives by family. Lowest first: family, elementwise, structure, reduce, contract, indexing, sorting,
random_bits."""
