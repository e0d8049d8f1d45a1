"""SciPy's clustering."""

from morphax.scipy.cluster import vq
