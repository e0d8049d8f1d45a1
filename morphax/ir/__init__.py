"""The language: types, equations, tracing. Lowest first: avals, primitive, jaxpr, trace, show."""
