"""Sorting and the largest entries."""

from typing import Any

import numpy as np

from morphax.ir.primitive import Primitive
from morphax.ops import family, indexing, structure
from morphax.ops.family import typeof
from morphax.support import dtypes

# ---- sort ------------------------------------------------------------------------------------------------------------


def _sort_type(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    first = operands[0]
    family.check_axis("sort", dimension, first.ndim)
    if any(x.shape != first.shape for x in operands):
        shapes = ", ".join(str(x.shape) for x in operands)
        raise TypeError(f"sort: operands have shapes {shapes}. Arrays sorted together need one shape; broadcast them.")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort: num_keys is {num_keys} for {len(operands)} operands. Give 1 to {len(operands)}.")
    for x in operands[:num_keys]:
        family.check_kind("sort", x.dtype, "fciub")
    return operands


def _parts(low: Any, aval: Any, x: Any) -> list[tuple[Any, Any]]:
    """What to compare, with types, most significant first: of complex numbers the real and the imaginary part."""
    if not dtypes.is_complex(aval.dtype):
        return [(_canonical(low, aval, x), aval)]
    part = aval.update(dtype=dtypes.to_real(aval.dtype))
    split = [low.op(f"stablehlo.{name}", (part,), (x,))[0] for name in ("real", "imag")]
    return [(_canonical(low, part, z), part) for z in split]


def _canonical(low: Any, aval: Any, x: Any) -> Any:
    # In the total order of floats -0 < 0 and NaNs lie at both ends: make all zeros and all NaNs alike.
    if not dtypes.is_float(aval.dtype):
        return x
    for other, value in ((low.constant(0, aval), 0), (x, np.nan)):
        direction = "EQ" if value == 0 else "NE"
        flag = _compare(low, aval, x, other, direction)
        x = low.op("stablehlo.select", (aval,), (flag, low.constant(value, aval), x))[0]
    return x


def _compare(low: Any, aval: Any, x: Any, y: Any, direction: str, total: bool = False) -> Any:
    attributes = {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}
    if total and dtypes.is_float(aval.dtype):
        attributes["compare_type"] = "#stablehlo<comparison_type TOTALORDER>"
    return low.op("stablehlo.compare", (aval.update(dtype=dtypes.bool_),), (x, y), attributes)[0]


def _lower_sort(low: Any, ins: Any, outs: Any, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    scalars = [aval.update(shape=()) for aval in ins]
    flag = scalars[0].update(dtype=dtypes.bool_)

    def before(*pairs: Any) -> list[Any]:
        """Whether the left of each pair comes first, by the first key that differs."""
        keys = []
        for k in range(num_keys):
            left, right = (_parts(low, scalars[k], pairs[2 * k + side]) for side in (0, 1))
            keys += [(aval, x, y) for (x, aval), (y, _) in zip(left, right, strict=True)]
        result = None
        for aval, x, y in reversed(keys):
            less = _compare(low, aval, x, y, "LT", total=True)
            if result is None:
                result = less
                continue
            equal = _compare(low, aval, x, y, "EQ", total=True)
            later = low.op("stablehlo.and", (flag,), (equal, result))[0]
            result = low.op("stablehlo.or", (flag,), (less, later))[0]
        return [result]

    attributes = {"dimension": f"{dimension} : i64", "is_stable": str(is_stable).lower()}
    region = ([s for s in scalars for _ in range(2)], before)
    return low.op("stablehlo.sort", outs, operands, attributes, (region,))


def _sort_jvp(primals: Any, tangents: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    # Sorting moves entries: carry their places along, and take the tangents from there.
    active = [t is not None and dtypes.is_inexact(typeof(x).dtype) for x, t in zip(primals, tangents, strict=True)]
    if not any(active):
        return sort(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys), [None] * len(primals)
    shape = typeof(primals[0]).shape
    places = structure.iota_along(np.dtype("int32"), shape, dimension)
    *outs, places = sort(*primals, places, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    moved = [
        indexing.take_along(t, places, dimension, unique=True) if on else None
        for t, on in zip(tangents, active, strict=True)
    ]
    return outs, moved


def _sort_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    operands = [structure.batched(x, flag, size) for x, flag in zip(operands, flags, strict=True)]
    return prim(*operands, **{**params, "dimension": params["dimension"] + 1})


sort = Primitive("sort", type=_sort_type, lower=_lower_sort, jvp=_sort_jvp, batch=_sort_batch, multiple=True)


# ---- largest entries -------------------------------------------------------------------------------------------------


def _top_k_type(x: Any, *, k: int, axis: int) -> Any:
    family.check_kind("top_k", x.dtype, "fiub")
    family.check_axis("top_k", axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(
            f"top_k: k = {k} must lie between 0 and the size of the axis, {x.shape[axis]} (axis {axis} of shape "
            f"{x.shape}). Give a smaller k."
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return x.update(shape=shape), x.update(shape=shape, dtype=np.dtype("int32"), weak_type=False)


def _swapped(low: Any, aval: Any, x: Any, axis: int) -> tuple[Any, Any]:
    """`x` with `axis` and the last axis exchanged, and its type."""
    order = list(range(aval.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    out = aval.update(shape=tuple([aval.shape[d] for d in order]))
    if axis == aval.ndim - 1:
        return x, out
    return low.op("stablehlo.transpose", (out,), (x,), {"permutation": family.ints(order)})[0], out


def _lower_top_k(low: Any, ins: Any, outs: Any, x: Any, *, k: int, axis: int) -> Any:
    if not outs[0].size:
        return [low.constant(0, out) for out in outs]
    x, aval = _swapped(low, ins[0], x, axis)
    shape = (*aval.shape[:-1], k)
    types = [out.update(shape=shape) for out in outs]
    if aval.dtype == np.bool_:  # the operation has no form for bools
        wide = aval.update(dtype=np.dtype("int8"))
        x = low.op("stablehlo.convert", (wide,), (x,))[0]
        found = low.op("chlo.top_k", (types[0].update(dtype=wide.dtype), types[1]), (x,), {"k": f"{k} : i64"})
        found[0] = low.op("stablehlo.convert", (types[0],), (found[0],))[0]
    else:
        found = low.op("chlo.top_k", types, (x,), {"k": f"{k} : i64"})
    return [_swapped(low, aval, value, axis)[0] for value, aval in zip(found, types, strict=True)]


def _top_k_jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    (x,), (t,) = primals, tangents
    values, places = top_k(x, k=k, axis=axis)
    if t is None or not typeof(values).size or not dtypes.is_inexact(typeof(x).dtype):
        return (values, places), (None, None)
    return (values, places), (indexing.take_along(t, places, axis, unique=True), None)


top_k = Primitive(
    "top_k",
    type=_top_k_type,
    lower=_lower_top_k,
    jvp=_top_k_jvp,
    batch=lambda prim, size, operands, flags, params: prim(operands[0], k=params["k"], axis=params["axis"] + 1),
    multiple=True,
)
