"""Dynamic slices, gathers and scatters."""
