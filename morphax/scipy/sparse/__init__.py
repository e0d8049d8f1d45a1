"""SciPy's solvers for matrices that are only known by their products."""

from morphax.scipy.sparse import linalg
