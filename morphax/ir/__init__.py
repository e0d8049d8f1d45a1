"""The language: types, equations, tracing. Lowest first: avals, current, primitive, jaxpr, trace, show."""
