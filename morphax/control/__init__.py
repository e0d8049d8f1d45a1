"""Primitives that carry jaxprs. Lowest first: call, checkpoint."""
