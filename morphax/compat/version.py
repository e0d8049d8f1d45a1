"""`jax.version`: the JAX whose public names and meanings this package has. Libraries compare it to choose names."""

__version_info__: tuple[int, int, int] = (0, 10, 2)
__version__: str = "0.10.2"
