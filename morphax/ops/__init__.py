"""First-order primitives by family. Lowest first: family, elementwise, special, formulas, incomplete, bessel,
structure, reduce, contract, indexing,
sorting, convolution, window, matrices, lapack, small, linalg, spectra, fft, collectives, random_bits."""
