"""Transforms on traces. Lowest first: differentiate, batch, jaxprs, flat, api, sparse."""
