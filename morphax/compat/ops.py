"""`jax.ops`: reductions of segments. In this package the name `ops` belongs to a layer, so they stand here."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.numpy import creation, promotion, shapes
from morphax.ops.family import typeof
from morphax.support import dtypes

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _lowest(dtype: np.dtype) -> Any:
    if dtype == np.bool_:
        return False
    return int(dtypes.iinfo(dtype).min) if dtypes.is_integer(dtype) else -np.inf


def _highest(dtype: np.dtype) -> Any:
    if dtype == np.bool_:
        return True
    return int(dtypes.iinfo(dtype).max) if dtypes.is_integer(dtype) else np.inf


# method of x.at -> what segments begin with
_IDENTITIES: dict[str, Callable[[np.dtype], Any]] = {
    "add": lambda dtype: 0,
    "multiply": lambda dtype: 1,
    "max": _lowest,
    "min": _highest,
}


def _count(name: str, segment_ids: Any, num_segments: Any) -> int:
    """The number of segments; for None one more than the largest id.

    Raises:
        ValueError: it is negative.
    """
    if num_segments is None:
        ids = np.asarray(segment_ids)
        return int(ids.max()) + 1 if ids.size else 0
    count = num_segments.__index__()
    if count < 0:
        raise ValueError(f"{name}: num_segments must not be negative, got {count}.")
    return count


def _segments(name: str, method: str, data: Any, ids: Any, count: int, hints: dict[str, Any]) -> Any:
    data, ids = creation.asarray(data), promotion.array(name, ids)
    aval = typeof(data)
    shape = (count, *aval.shape[typeof(ids).ndim :])
    start = creation.full(shape, _IDENTITIES[method](aval.dtype), aval.dtype)
    return getattr(start.at[ids], method)(data, wrap_negative_indices=False, **hints)


def _segment_reduction(what: str, method: str, name: str) -> Callable[..., Any]:
    def reduction(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Any:
        if out_sharding is not None:
            raise NotImplementedError(f"{name}: out_sharding is not supported yet. Put the result with device_put.")
        count = _count(name, segment_ids, num_segments)
        hints = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode or "drop"}
        data, segment_ids = creation.asarray(data), creation.asarray(segment_ids)
        size = typeof(segment_ids).shape[0] if typeof(segment_ids).ndim else 0
        if bucket_size is None or size <= bucket_size:
            return _segments(name, method, data, segment_ids, count, hints)
        parts = [
            _segments(name, method, data[k : k + bucket_size], segment_ids[k : k + bucket_size], count, hints)
            for k in range(0, size, bucket_size)
        ]
        fold = {"add": "sum", "multiply": "prod"}.get(method, method)
        return getattr(shapes.stack(parts), fold)(axis=0)

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"""The {what} of the entries of each segment.

    Args:
        data: array; its first axis is that of `segment_ids`.
        segment_ids: which segment each entry belongs to, integers; those outside [0, num_segments) count for none.
        num_segments: size of the first axis of the result; for None the largest id plus 1, which needs known ids.
        indices_are_sorted: promise that ids rise.
        unique_indices: promise that no id comes twice.
        bucket_size: reduce so many entries at a time, then the results; sums round less.
        mode: what happens to ids outside the range: see `x.at`.
        out_sharding: not supported.
    """
    return reduction


segment_sum = _segment_reduction("sum", "add", "segment_sum")
segment_prod = _segment_reduction("product", "multiply", "segment_prod")
segment_max = _segment_reduction("largest", "max", "segment_max")
segment_min = _segment_reduction("smallest", "min", "segment_min")
