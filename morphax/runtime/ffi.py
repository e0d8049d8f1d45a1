"""Kernels outside XLA that compiled programs call: jaxlib's LAPACK, registered when the first program needs it."""

import threading

from jaxlib import _jax, xla_client
from jaxlib.cpu import _lapack  # type: ignore[reportMissingImports] - a C++ module in a folder without __init__

_lock = threading.Lock()
_kernels: dict[str, object] = {}


def prepare(target: str) -> None:
    """Register the kernel that `stablehlo.custom_call` names, if it is one of jaxlib's and not known yet.

    Programs that come from the disk cache need it as much as those that XLA compiles.
    """
    if _kernels or not target.startswith(("lapack_", "tridiagonal_solve_perturbed")):
        return
    with _lock:
        if _kernels:
            return
        # Looks up SciPy's BLAS and LAPACK, which takes about 100 ms: only programs with linear algebra pay for it.
        _lapack.initialize()
        kernels = _lapack.registrations()
        for name, kernel in kernels.items():
            api_version = 1 if name.endswith("_ffi") else 0
            xla_client.register_custom_call_target(name, kernel, platform="cpu", api_version=api_version)
            _jax.register_custom_call_as_batch_partitionable(name)
        _kernels.update(kernels)
