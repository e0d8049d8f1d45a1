"""SciPy's linear algebra: factorizations, functions of matrices, matrices of a given form.

>>> from morphax import numpy as jnp
>>> from morphax.scipy import linalg
>>> linalg.toeplitz(jnp.array([1, 2])).tolist()
[[1, 2], [2, 1]]
"""

from morphax.scipy.linalg.factorizations import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    eigh,
    eigh_tridiagonal,
    hessenberg,
    inv,
    lu,
    lu_factor,
    lu_solve,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    solve,
    solve_triangular,
    svd,
)
from morphax.scipy.linalg.functions import expm, expm_frechet, funm, solve_sylvester, sqrtm
from morphax.scipy.linalg.matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
