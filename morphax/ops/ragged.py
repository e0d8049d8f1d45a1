"""Products with ragged groups: each row of one operand meets the matrix of the group that it belongs to."""

from typing import Any, NamedTuple

from morphax.ir.primitive import Primitive, is_unknown
from morphax.ir.show import readable
from morphax.ir.trace import stage
from morphax.ops import contract, family, reduce, structure
from morphax.ops import elementwise as ew
from morphax.ops.family import typeof
from morphax.support import dtypes


@readable
class RaggedDotDimensionNumbers(NamedTuple):
    """Which axes of a ragged product are contracted, batch, cut into groups, and count the groups.

    Args:
        dot_dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
        lhs_ragged_dimensions: the one axis of lhs that consists of groups.
        rhs_group_dimensions: the one axis of rhs that counts the groups; none where the ragged axis is contracted.

    >>> RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: tuple[int, ...]
    rhs_group_dimensions: tuple[int, ...]


_NAME = "ragged_dot_general"


def canonical_numbers(given: Any) -> RaggedDotDimensionNumbers:
    """Dimension numbers with tuples of plain ints."""
    return RaggedDotDimensionNumbers(
        contract.canonical_dimensions(given.dot_dimension_numbers),
        tuple([int(d) for d in given.lhs_ragged_dimensions]),
        tuple([int(d) for d in given.rhs_group_dimensions]),
    )


def ragged_axis(numbers: RaggedDotDimensionNumbers) -> int:
    """The axis of lhs that consists of groups."""
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(f"{_NAME}: lhs_ragged_dimensions {numbers.lhs_ragged_dimensions} must name exactly one axis.")
    return numbers.lhs_ragged_dimensions[0]


def is_contracted(numbers: RaggedDotDimensionNumbers) -> bool:
    """Whether the ragged axis is summed over, so that every group has a result of its own."""
    return ragged_axis(numbers) in numbers.dot_dimension_numbers[0][0]


def is_batch(numbers: RaggedDotDimensionNumbers) -> bool:
    """Whether the ragged axis is a batch axis."""
    return ragged_axis(numbers) in numbers.dot_dimension_numbers[1][0]


def _free(ndim: int, *taken: tuple[int, ...]) -> tuple[int, ...]:
    used = {d for dims in taken for d in dims}
    return tuple([d for d in range(ndim) if d not in used])


def outer_axes(ndim: int, numbers: RaggedDotDimensionNumbers) -> tuple[int, ...]:
    """Axes of lhs for whose entries group sizes may differ: batch, and those of the ragged axis's kind before it."""
    (contracted, _), (batch, _) = numbers.dot_dimension_numbers
    ragged = ragged_axis(numbers)
    if is_batch(numbers):
        return batch[: batch.index(ragged)]
    kind = contracted if is_contracted(numbers) else _free(ndim, batch, contracted)
    return (*batch, *kind[: kind.index(ragged)])


def _type(
    lhs: Any, rhs: Any, sizes: Any, *, ragged_dot_dimension_numbers: Any, precision: Any, preferred_element_type: Any,
    group_offset: Any, out_sharding: Any,
) -> Any:  # fmt: skip
    numbers = ragged_dot_dimension_numbers
    (contracted, rhs_contracted), (batch, rhs_batch) = numbers.dot_dimension_numbers
    inner = is_contracted(numbers)
    groups = numbers.rhs_group_dimensions
    if is_batch(numbers) or len(groups) != (0 if inner else 1):
        raise TypeError(
            f"{_NAME}: rhs_group_dimensions {groups} must name {'no axis' if inner else 'one axis'} where the ragged "
            f"axis of lhs is {'' if inner else 'not '}contracted."
        )
    if not dtypes.is_integer(sizes.dtype):
        raise TypeError(f"{_NAME}: group_sizes must be integers; they are {sizes}.")
    prefix = tuple([lhs.shape[d] for d in outer_axes(lhs.ndim, numbers)])
    count = sizes.shape[-1] if sizes.ndim else 0
    if not sizes.ndim or sizes.shape[:-1] not in ((), prefix):
        raise TypeError(
            f"{_NAME}: group_sizes of shape {sizes.shape} must have shape (groups,) or {(*prefix, 'groups')}."
        )
    if groups and rhs.shape[groups[0]] != count:
        raise TypeError(
            f"{_NAME}: rhs {rhs.shape} axis {groups[0]} has {rhs.shape[groups[0]]} groups, and group_sizes has {count}."
        )
    # The group axis of rhs has no part in the dot.
    kept = _free(rhs.ndim, groups)
    place = {d: k for k, d in enumerate(kept)}
    if groups and groups[0] in (*rhs_contracted, *rhs_batch):
        raise TypeError(f"{_NAME}: the group axis {groups[0]} of rhs must be neither contracted nor a batch axis.")
    plain = (
        (contracted, tuple([place.get(d, -1) for d in rhs_contracted])),
        (batch, tuple([place.get(d, -1) for d in rhs_batch])),
    )
    out = contract.dot_general.types(
        (lhs, rhs.update(shape=tuple([rhs.shape[d] for d in kept]))),
        {
            "dimension_numbers": plain, "precision": precision, "preferred_element_type": preferred_element_type,
            "out_sharding": None,
        },
    )[0]  # fmt: skip
    return out.update(shape=(count, *out.shape)) if inner else out


# ---- by masks --------------------------------------------------------------------------------------------------------


def _along(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """`x` with its axes at `axes`, in any order, of `shape`."""
    order = tuple(sorted(range(len(axes)), key=lambda k: axes[k]))
    if order != tuple(range(len(axes))):
        x = structure.transpose(x, permutation=order)
    return ew.broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(sorted(axes)), sharding=None)


def _written(
    lhs: Any, rhs: Any, sizes: Any, *, ragged_dot_dimension_numbers: Any, precision: Any, preferred_element_type: Any,
    **params: Any,
) -> Any:  # fmt: skip
    """One dot: lhs has one more axis, along which each row stands in the place of its group, zeros elsewhere."""
    numbers = ragged_dot_dimension_numbers
    (contracted, rhs_contracted), batch = numbers.dot_dimension_numbers
    shape = typeof(lhs).shape
    ragged = ragged_axis(numbers)
    count = typeof(sizes).shape[-1]
    outer = outer_axes(len(shape), numbers)[: typeof(sizes).ndim - 1]
    wide, last = (*shape, count), len(shape)
    ends = reduce.cumsum(sizes, axis=typeof(sizes).ndim - 1, reverse=False)
    place = structure.iota_along(typeof(sizes).dtype, wide, ragged)
    before = ew.lt(place, _along(ends, wide, (*outer, last)))
    after = ew.ge(place, _along(ew.sub(ends, sizes), wide, (*outer, last)))
    spread = _along(lhs, wide, tuple(range(last)))
    spread = ew.select_n(ew.and_(before, after), family.like(lhs, 0), spread)
    groups = numbers.rhs_group_dimensions
    if groups:
        numbers = (((*contracted, last), (*rhs_contracted, *groups)), batch)
        return contract.dot(spread, rhs, numbers, precision, preferred_element_type)
    out = contract.dot(spread, rhs, ((contracted, rhs_contracted), batch), precision, preferred_element_type)
    return structure.move_axis(out, len(shape) - len(contracted), 0)


def _lower(low: Any, ins: Any, outs: Any, *operands: Any, **params: Any) -> Any:
    return low.equations(stage(lambda *xs: [_written(*xs, **params)], ins)[0], operands)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _placed(x: Any, places: tuple[int, ...], aval: Any) -> Any:
    """`x` with axis k at `places[k]`, in the dtype of `aval`."""
    order = tuple(sorted(range(len(places)), key=lambda k: places[k]))
    if order != tuple(range(len(places))):
        x = structure.transpose(x, permutation=order)
    return structure.convert(x, aval.dtype, typeof(x).weak_type)


def _ordered(x: Any, order: tuple[int, ...]) -> Any:
    return x if order == tuple(range(len(order))) else structure.transpose(x, permutation=order)


def _by(order: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """`order` rearranged as sorting would rearrange `other`."""
    return tuple([order[k] for k in sorted(range(len(other)), key=lambda k: other[k])])


def _dot(lhs: Any, rhs: Any, sizes: Any, dot: Any, ragged: int, groups: tuple[int, ...], params: Any) -> Any:
    same = typeof(lhs).dtype == typeof(rhs).dtype
    numbers = RaggedDotDimensionNumbers(dot, (ragged,), groups)
    preferred = params["preferred_element_type"] if same else None
    changed = {"ragged_dot_dimension_numbers": numbers, "preferred_element_type": preferred}
    return ragged_dot_general(lhs, rhs, sizes, **{**params, **changed})


def _transpose(ct: Any, lhs: Any, rhs: Any, sizes: Any, **params: Any) -> Any:
    numbers = params["ragged_dot_dimension_numbers"]
    (kl, kr), (bl, br) = numbers.dot_dimension_numbers
    x = lhs.aval if is_unknown(lhs) else typeof(lhs)
    y = rhs.aval if is_unknown(rhs) else typeof(rhs)
    ragged, groups = ragged_axis(numbers), numbers.rhs_group_dimensions
    free_x, free_y = _free(x.ndim, kl, bl), _free(y.ndim, kr, br, groups)
    start = 0 if groups else 1  # results of contracted ragged axes have the groups in front
    at_b = tuple(range(start, start + len(bl)))
    at_x = tuple(range(start + len(bl), start + len(bl) + len(free_x)))
    at_y = tuple(range(start + len(bl) + len(free_x), typeof(ct).ndim))
    if is_unknown(lhs) and groups:
        out = _dot(ct, rhs, sizes, ((at_y, free_y), (at_b, br)), at_x[free_x.index(ragged)], groups, params)
        return _placed(out, (*bl, *free_x, *_by(kl, kr)), x), None, None
    count = len(bl)
    mine = count + kl.index(ragged) if ragged in kl else ragged
    if is_unknown(lhs):  # group sizes are ordered by the contracted axes, so these come first
        rhs = _ordered(rhs, (*br, *kr, *free_y))
        dot = (tuple(range(count + len(kr), y.ndim)), at_y), (tuple(range(count)), at_b)
        out = _dot(rhs, ct, sizes, dot, mine, (0,), params)
        return _placed(out, (*bl, *kl, *free_x), x), None, None
    if groups:
        out = _dot(lhs, ct, sizes, ((free_x, at_x), (bl, at_b)), ragged, (), params)
        return None, _placed(out, (*groups, *br, *_by(kr, kl), *free_y), y), None
    lhs = _ordered(lhs, (*bl, *kl, *free_x))
    dot = (tuple(range(count + len(kl), x.ndim)), at_x), (tuple(range(count)), at_b)
    out = _dot(lhs, ct, sizes, dot, mine, (0,), params)
    return None, _placed(out, (*br, *kr, *free_y), y), None


def _batch(prim: Primitive, size: int, operands: Any, flags: Any, params: dict[str, Any]) -> Any:
    numbers = params["ragged_dot_dimension_numbers"]
    lhs, rhs, sizes = operands
    example = typeof(lhs).ndim - flags[0]
    outer = outer_axes(example, numbers)
    shape = tuple([typeof(lhs).shape[d + flags[0]] for d in outer])
    own = typeof(sizes).shape[flags[2] :]
    if len(own) != len(shape) + 1:  # equal groups for all
        full = (*typeof(sizes).shape[: flags[2]], *shape, *own)
        sizes = _along(sizes, full, (*range(int(flags[2])), len(full) - 1))
    lhs, rhs, sizes = (structure.batched(x, f, size) for x, f in zip((lhs, rhs, sizes), flags, strict=True))
    (kl, kr), (bl, br) = numbers.dot_dimension_numbers
    dot = (family.shift(kl), family.shift(kr)), ((0, *family.shift(bl)), (0, *family.shift(br)))
    moved = RaggedDotDimensionNumbers(
        dot, family.shift(numbers.lhs_ragged_dimensions), family.shift(numbers.rhs_group_dimensions)
    )
    out = prim(lhs, rhs, sizes, **{**params, "ragged_dot_dimension_numbers": moved})
    return [out if numbers.rhs_group_dimensions else structure.move_axis(out, 1, 0)]


def _show(params: dict[str, Any]) -> dict[str, Any]:
    precision = params["precision"]
    return {**params, "precision": repr(precision) if isinstance(precision, tuple) else precision}


ragged_dot_general = Primitive(
    _NAME,
    type=_type,
    lower=_lower,
    bilinear=(0, 1),
    transpose=_transpose,
    batch=_batch,
    show=_show,
)
