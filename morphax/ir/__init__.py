"""The language: types, equations, tracing. Lowest first: sharding, avals, current, primitive, jaxpr, trace, show."""
