"""Where arrays live."""

from jaxlib._jax import Sharding

from morphax.runtime.backend import SingleDeviceSharding
from morphax.runtime.backend import single_device as make_single_device_sharding

__all__ = ["Sharding", "SingleDeviceSharding", "make_single_device_sharding"]
