"""Operations across a named axis: of a mesh inside shard_map, or of a batch under vmap.

Inside shard_map the types say over which mesh axes a value differs (`varying`). A value that does not may meet one that
does; its cotangent then is the sum over those axes, which the backward pass takes once for each value (see
`differentiate.backward`). So `psum`, which makes a varying value invariant, has the identity as its transpose there.
Under vmap types say nothing, and the transpose of `psum` is `psum`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.primitive import Primitive, is_unknown
from morphax.ops import elementwise as ew
from morphax.ops import family, reduce, structure
from morphax.ops.family import typeof

Axes = tuple[Any, ...]

# ---- the axes there are ----------------------------------------------------------------------------------------------


def size_of(api: str, axes: Axes) -> int:
    """Number of members along named axes.

    Raises:
        NameError: an axis that is not bound.
    """
    bound = current.axes
    for name in axes:
        if name not in bound:
            known = f"; bound here are {', '.join(map(repr, bound))}" if bound else ""
            raise NameError(
                f"{api}: the axis name {name!r} is not bound{known}. Bind it with shard_map, or vmap(axis_name=...)."
            )
    return math.prod(bound[name] for name in axes)


def manual(aval: ShapedArray, axes: Axes) -> Axes:
    """Those of the axes over which a value varies as a shard."""
    return tuple([a for a in axes if a in aval.varying])


def _without(aval: ShapedArray, axes: Axes) -> ShapedArray:
    return aval.update(varying=aval.varying - frozenset(axes)) if aval.varying else aval


def _others(axes: Axes, name: Any) -> Axes:
    return tuple([a for a in axes if a != name])


# ---- lowering --------------------------------------------------------------------------------------------------------


def _groups(low: Any, axes: Axes) -> str:
    mesh = low.module.manual_mesh
    sizes = mesh.shape
    names = list(sizes)
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))
    where = [names.index(a) for a in axes]
    rest = [i for i in range(len(names)) if i not in where]
    groups = grid.transpose(*rest, *where).reshape(-1, math.prod(sizes[a] for a in axes))
    rows = ", ".join("[" + ", ".join(map(str, g)) + "]" for g in groups)
    return f"dense<[{rows}]> : tensor<{groups.shape[0]}x{groups.shape[1]}xi64>"


def _attributes(low: Any, axes: Axes, **more: str) -> dict[str, str]:
    channel = low.module.next_channel()
    return {
        "replica_groups": _groups(low, axes),
        "channel_handle": f"#stablehlo.channel_handle<handle = {channel}, type = 1>",
        "use_global_device_ids": "unit",
        **more,
    }


def _lower_reduction(combiner: str) -> Any:
    def lower(low: Any, ins: Any, outs: Any, x: Any, *, axes: Axes, **params: Any) -> Any:
        scalar = ShapedArray((), ins[0].dtype)
        region = ((scalar, scalar), lambda a, b: low.op(combiner, (scalar,), (a, b)))
        return low.op("stablehlo.all_reduce", outs, (x,), _attributes(low, axes), (region,))

    return lower


# ---- reductions ------------------------------------------------------------------------------------------------------


def _batch_reduction(reduction: Any) -> Any:
    def collective(prim: Any, size: int, values: Any, flags: Any, name: Any, params: Any) -> Any:
        (x,), (flag,) = values, flags
        rest = _others(params["axes"], name)
        if flag:
            x = reduction(x, axes=(0,))
        elif prim is psum:
            x = ew.mul(x, family.like(x, size))
        if rest:
            x = prim(x, **{**params, "axes": rest})
        return [x], [False]

    return collective


def _psum_transpose(ct: Any, x: Any, *, axes: Axes, axis_index_groups: Any) -> Any:
    over = tuple([a for a in axes if a not in x.aval.varying])
    return (psum(ct, axes=over, axis_index_groups=axis_index_groups) if over else ct,)


def _same_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    return [prim(operands[0], **params)]


def _lowest(x: Any, *, axes: Axes) -> Any:
    return reduce.reduce_max(x, axes=axes)


psum = Primitive(
    "psum",
    type=lambda x, *, axes, axis_index_groups: _without(x, axes),
    lower=_lower_reduction("stablehlo.add"),
    linear=(0,),
    transpose=_psum_transpose,
    batch=_same_batch,
    collective=_batch_reduction(ew.reduce_sum),
)


def _extreme(name: str, combiner: str, reduction: Any) -> Primitive:
    def jvp(primals: Any, tangents: Any, *, axes: Axes, axis_index_groups: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = made(x, axes=axes, axis_index_groups=axis_index_groups)
        # Ties share, as in a reduction.
        hit = ew.convert_element_type(ew.eq(x, out), new_dtype=typeof(x).dtype, weak_type=False, sharding=None)
        count = psum(hit, axes=axes, axis_index_groups=None)
        return out, psum(ew.div(ew.mul(t, hit), count), axes=axes, axis_index_groups=None)

    made = Primitive(
        name,
        type=lambda x, *, axes, axis_index_groups: _without(x, axes),
        lower=_lower_reduction(combiner),
        jvp=jvp,
        batch=_same_batch,
        collective=_batch_reduction(reduction),
    )
    return made


pmax = _extreme("pmax", "stablehlo.maximum", reduce.reduce_max)
pmin = _extreme("pmin", "stablehlo.minimum", reduce.reduce_min)

# ---- where one is ----------------------------------------------------------------------------------------------------


def _lower_index(low: Any, ins: Any, outs: Any, *, axes: Axes, varying: frozenset) -> Any:
    mesh = low.module.manual_mesh
    sizes = mesh.shape
    names = list(sizes)
    word = ShapedArray((), np.dtype("uint32"))
    position = low.op("stablehlo.partition_id", (word,), ())[0]
    step = math.prod([sizes[n] for n in names[names.index(axes[0]) + 1 :]])
    position = low.op("stablehlo.divide", (word,), (position, low.constant(step, word)))[0]
    position = low.op("stablehlo.remainder", (word,), (position, low.constant(sizes[axes[0]], word)))
    return low.op("stablehlo.convert", outs, position)


axis_index = Primitive(
    "axis_index",
    type=lambda *, axes, varying: ShapedArray((), np.dtype("int32"), False, None, varying),
    lower=_lower_index,
    nondiff="it depends on no value",
    batch=lambda prim, size, operands, flags, params: [prim(**params)],
    collective=lambda prim, size, values, flags, name, params: (
        [structure.iota(dtype=np.dtype("int32"), shape=(size,), dimension=0, sharding=None)],
        [True],
    ),
)

# ---- permutations ----------------------------------------------------------------------------------------------------


def _lower_permute(low: Any, ins: Any, outs: Any, x: Any, *, axes: Axes, perm: tuple[tuple[int, int], ...]) -> Any:
    sizes = low.module.manual_mesh.shape
    names = list(sizes)
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))
    rows = np.moveaxis(grid, names.index(axes[0]), -1).reshape(-1, sizes[axes[0]])
    pairs = ", ".join(f"[{row[a]}, {row[b]}]" for row in rows for a, b in perm)
    count = len(rows) * len(perm)
    attributes = {
        "source_target_pairs": f"dense<[{pairs}]> : tensor<{count}x2xi64>",
        "channel_handle": f"#stablehlo.channel_handle<handle = {low.module.next_channel()}, type = 1>",
    }
    return low.op("stablehlo.collective_permute", outs, (x,), attributes)


def _permute_over_batch(prim: Any, size: int, values: Any, flags: Any, name: Any, params: Any) -> Any:
    (x,), (flag,) = values, flags
    x = x if flag else ew.broadcast(x, (size, *typeof(x).shape), (0,))
    source = np.full(size, -1, np.int32)
    for a, b in params["perm"]:
        source[b] = a
    rows = []
    for s in source:  # members that receive nothing get zeros
        row = structure.slice_axis(x, max(int(s), 0), max(int(s), 0) + 1, 0)
        rows.append(row if s >= 0 else ew.zeros(typeof(row)))
    return [structure.concatenate(*rows, dimension=0)], [True]


ppermute = Primitive(
    "ppermute",
    type=lambda x, *, axes, perm: x,
    lower=_lower_permute,
    linear=(0,),
    transpose=lambda ct, x, *, axes, perm: (ppermute(ct, axes=axes, perm=tuple([(b, a) for a, b in perm])),),
    batch=_same_batch,
    collective=_permute_over_batch,
)

# ---- gathering and scattering ----------------------------------------------------------------------------------------


def _gathered(x: ShapedArray, *, axes: Axes, axis: int, size: int, tiled: bool) -> ShapedArray:
    shape = list(x.shape)
    if tiled:
        shape[axis] *= size
    else:
        shape.insert(axis, size)
    return x.update(shape=tuple(shape))


def _lower_gather(low: Any, ins: Any, outs: Any, x: Any, *, axes: Axes, axis: int, size: int, tiled: bool) -> Any:
    aval = ins[0]
    if not tiled:
        aval = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis:]))
        x = low.op("stablehlo.reshape", (aval,), (x,))[0]
    return low.op("stablehlo.all_gather", outs, (x,), _attributes(low, axes, all_gather_dim=f"{axis} : i64"))


def _gather_over_batch(prim: Any, size: int, values: Any, flags: Any, name: Any, params: Any) -> Any:
    (x,), (flag,) = values, flags
    x = x if flag else ew.broadcast(x, (size, *typeof(x).shape), (0,))
    out = structure.move_axis(x, 0, params["axis"])
    if params["tiled"]:
        axis = params["axis"]
        shape = typeof(out).shape
        out = structure.reshape_to(out, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
    return [out], [False]


def _shifted(name: str) -> Any:
    def batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
        return [prim(operands[0], **{**params, name: params[name] + 1})]

    return batch


all_gather = Primitive(
    "all_gather",
    type=_gathered,
    lower=_lower_gather,
    linear=(0,),
    transpose=lambda ct, x, *, axes, axis, size, tiled: (
        psum_scatter(ct, axes=axes, axis=axis, size=size, tiled=tiled),
    ),
    batch=_shifted("axis"),
    collective=_gather_over_batch,
)


def _scattered(x: ShapedArray, *, axes: Axes, axis: int, size: int, tiled: bool) -> ShapedArray:
    shape = list(x.shape)
    if shape[axis] % size or (not tiled and shape[axis] != size):
        raise ValueError(
            f"psum_scatter: axis {axis} of {x} must be {'a multiple of ' if tiled else ''}the size {size} of {axes}."
        )
    if tiled:
        shape[axis] //= size
    else:
        del shape[axis]
    return x.update(shape=tuple(shape))


def _lower_scatter(low: Any, ins: Any, outs: Any, x: Any, *, axes: Axes, axis: int, size: int, tiled: bool) -> Any:
    aval = ins[0]
    scalar = ShapedArray((), aval.dtype)
    region = ((scalar, scalar), lambda a, b: low.op("stablehlo.add", (scalar,), (a, b)))
    part = aval.update(shape=(*aval.shape[:axis], aval.shape[axis] // size, *aval.shape[axis + 1 :]))
    attributes = _attributes(low, axes, scatter_dimension=f"{axis} : i64")
    out = low.op("stablehlo.reduce_scatter", (part,), (x,), attributes, (region,))
    return out if tiled else low.op("stablehlo.reshape", outs, out)


def _scatter_over_batch(prim: Any, size: int, values: Any, flags: Any, name: Any, params: Any) -> Any:
    (x,), (flag,) = values, flags
    total = ew.reduce_sum(x, axes=(0,)) if flag else ew.mul(x, family.like(x, size))
    axis = params["axis"]
    if params["tiled"]:
        shape = typeof(total).shape
        total = structure.reshape_to(total, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    return [structure.move_axis(total, axis, 0)], [True]


psum_scatter = Primitive(
    "reduce_scatter",
    type=_scattered,
    lower=_lower_scatter,
    linear=(0,),
    transpose=lambda ct, x, *, axes, axis, size, tiled: (all_gather(ct, axes=axes, axis=axis, size=size, tiled=tiled),),
    batch=_shifted("axis"),
    collective=_scatter_over_batch,
)


def _exchanged(x: ShapedArray, *, axes: Axes, split_axis: int, concat_axis: int, size: int) -> ShapedArray:
    shape = list(x.shape)
    if shape[split_axis] % size:
        raise ValueError(f"all_to_all: axis {split_axis} of {x} must be a multiple of the size {size} of {axes}.")
    shape[split_axis] //= size
    shape[concat_axis] *= size
    return x.update(shape=tuple(shape))


def _lower_exchange(
    low: Any, ins: Any, outs: Any, x: Any, *, axes: Axes, split_axis: int, concat_axis: int, size: int
) -> Any:
    attributes = _attributes(
        low, axes, split_dimension=f"{split_axis} : i64", concat_dimension=f"{concat_axis} : i64",
        split_count=f"{size} : i64",
    )  # fmt: skip
    del attributes["use_global_device_ids"]
    return low.op("stablehlo.all_to_all", outs, (x,), attributes)


def _exchange_over_batch(prim: Any, size: int, values: Any, flags: Any, name: Any, params: Any) -> Any:
    (x,), (flag,) = values, flags
    x = x if flag else ew.broadcast(x, (size, *typeof(x).shape), (0,))
    split, concat = params["split_axis"] + 1, params["concat_axis"] + 1
    shape = typeof(x).shape
    x = structure.reshape_to(x, (*shape[:split], size, shape[split] // size, *shape[split + 1 :]))
    x = structure.move_axis(x, split, 0)  # (receiver, sender, ...)
    x = structure.move_axis(x, 1, concat)  # the sender in front of the axis that grows
    shape = typeof(x).shape
    return [structure.reshape_to(x, (*shape[:concat], shape[concat] * shape[concat + 1], *shape[concat + 2 :]))], [True]


all_to_all = Primitive(
    "all_to_all",
    type=_exchanged,
    lower=_lower_exchange,
    linear=(0,),
    transpose=lambda ct, x, *, axes, split_axis, concat_axis, size: (
        all_to_all(ct, axes=axes, split_axis=concat_axis, concat_axis=split_axis, size=size),
    ),
    batch=lambda prim, size, operands, flags, params: [
        prim(
            operands[0],
            **{**params, "split_axis": params["split_axis"] + 1, "concat_axis": params["concat_axis"] + 1},
        )
    ],
    collective=_exchange_over_batch,
)

# ---- varying ---------------------------------------------------------------------------------------------------------

pvary = Primitive(
    "pvary",
    type=lambda x, *, axes: x.update(varying=x.varying | frozenset(axes)),
    lower=lambda low, ins, outs, x, *, axes: [x],
    linear=(0,),
    transpose=lambda ct, x, *, axes: (psum(ct, axes=axes, axis_index_groups=None) if is_unknown(x) else None,),
    batch=_same_batch,
    collective=lambda prim, size, values, flags, name, params: (list(values), list(flags)),
)


def summed_over(ct: Any, axes: Sequence[Any]) -> Any:
    """The cotangent of a value that does not vary over `axes`, from those of its uses, which do."""
    return psum(ct, axes=tuple(sorted(axes, key=str)), axis_index_groups=None)
