"""SciPy's geometry."""

from morphax.scipy.spatial import transform
