"""First-order primitives by family. Lowest first: family, elementwise, special, structure, reduce, contract, indexing,
sorting, convolution, window, matrices, lapack, linalg, spectra, fft, collectives, random_bits."""
