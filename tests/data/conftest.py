"""The recorders run by hand, with an interpreter that has JAX; the test run must not import them for doctests."""

collect_ignore_glob = ["make_*.py"]
