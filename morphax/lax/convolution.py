"""Convolutions of lax."""

import math
import operator as python
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.lax.arguments import operand as _operand
from morphax.ops import contract, structure
from morphax.ops import convolution as ops
from morphax.ops.contract import PrecisionLike, canonical_precision
from morphax.ops.convolution import ConvDimensionNumbers, dilated, strided
from morphax.ops.family import typeof
from morphax.support import dtypes

ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
Padding = str | Sequence[tuple[int, int]]
Pads = tuple[tuple[int, int], ...]


# ---- dimension numbers -----------------------------------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Axes of lhs, rhs and the result in the order batch, features, space (of rhs: output, input features, space).

    Args:
        dimension_numbers: three strings, one letter for each axis: N and C for batch and features, O and I for those of
            the kernel, others for space. Space is ordered as in the second.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    letters = ("NC", "OI", "NC")
    for spec, pair in zip(dimension_numbers, letters, strict=True):
        if len(set(spec)) != len(spec) or not set(pair) <= set(spec):
            raise ValueError(
                f"convolution: dimension numbers {spec!r} need each letter once, among them {pair[0]} and {pair[1]}."
            )
    space = [c for c in dimension_numbers[1] if c not in "OI"]
    for spec, pair in zip(dimension_numbers, letters, strict=True):
        if set(spec) - set(pair) != set(space):
            raise ValueError(
                f"convolution: dimension numbers {tuple(dimension_numbers)} name different axes of space; use the same "
                "letters in all three."
            )
    order = [(*pair, *space) for pair in letters]
    return tuple([tuple([spec.index(c) for c in names]) for spec, names in zip(dimension_numbers, order, strict=True)])


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: ConvGeneralDilatedDimensionNumbers
) -> ConvDimensionNumbers:
    """Dimension numbers as axes.

    Args:
        lhs_shape: shape of lhs.
        rhs_shape: shape of the kernel, of equally many dimensions.
        dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC"), in which N, C, O and I stand for batch,
            features, output and input features of the kernel; None for ("NCHW", "OIHW", "NCHW").

    Raises:
        TypeError, ValueError: the strings do not fit the shapes.

    >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(
            f"convolution: lhs of shape {tuple(lhs_shape)} and kernel of shape {tuple(rhs_shape)} need equally many "
            "dimensions."
        )
    if dimension_numbers is None:
        axes = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise TypeError(
            f"convolution: dimension_numbers {dimension_numbers!r} must be None, a ConvDimensionNumbers or three "
            "strings."
        )
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError(f"convolution: dimension_numbers {dimension_numbers} must be strings.")
    if any(len(spec) != len(lhs_shape) for spec in dimension_numbers):
        raise TypeError(
            f"convolution: dimension_numbers {tuple(dimension_numbers)} need {len(lhs_shape)} letters each, one for "
            f"every dimension of shape {tuple(lhs_shape)}."
        )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


# ---- padding ---------------------------------------------------------------------------------------------------------


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Padding (low, high) of each axis.

    Args:
        in_shape: sizes of the operand in space.
        window_shape: sizes of the window, dilation included.
        window_strides: ints.
        padding: "VALID" for none; "SAME" for as many windows as there are entries, divided by the stride, an odd entry
            at the high end; "SAME_LOWER" for the same with the odd entry at the low end.

    Raises:
        RuntimeError: another string.  TypeError: no string.

    >>> padtype_to_pads((8, 8), (3, 3), (1, 2), "SAME")
    [(1, 1), (0, 1)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"padding {padding!r} must be 'SAME', 'SAME_LOWER', 'VALID' or pairs (low, high).")
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"padding {padding!r} is not known. Give 'SAME', 'SAME_LOWER', 'VALID' or pairs (low, high)."
        )
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + window - size)
        half = total // 2
        pads.append((half, total - half) if name == "SAME" else (total - half, half))
    return pads


def ints(name: str, what: str, values: Any) -> tuple[int, ...]:
    """Static ints."""
    try:
        return tuple([python.index(v) for v in values])
    except TypeError:
        raise TypeError(f"{name}: {what} must be a sequence of static ints; it is {values!r}.") from None


def pairs(name: str, padding: Any, count: int) -> Pads:
    """Explicit padding as static ints."""
    given = list(padding)
    if len(given) != count or any(len(tuple(p)) != 2 for p in given):
        raise TypeError(f"{name}: padding {padding!r} must be {count} pairs (low, high), one for each axis of space.")
    return tuple([(python.index(low), python.index(high)) for low, high in given])


# ---- shapes ----------------------------------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Shape of a convolution of operands in the order batch, features, space (kernel: output, input features, space).

    >>> conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), "SAME")
    (2, 4, 8, 4)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"conv_shape_tuple: {len(pads)} pairs of padding for {len(lhs_shape) - 2} axes of space.")
    rows = zip(lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True)
    space = [strided(size + low + high, window, stride) for size, window, stride, (low, high) in rows]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def _taken(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple([int(shape[d]) for d in order])


def _placed(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple([shape[order.index(d)] for d in range(len(order))])


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Shape of a convolution of operands in the order that `dimension_numbers` (three strings) give.

    >>> conv_general_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (2, 8, 4, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(_taken(lhs_shape, lhs), _taken(rhs_shape, rhs), window_strides, padding)
    return _placed(shape, out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Shape of `conv_transpose` of operands in the order that `dimension_numbers` (three strings) give.

    >>> conv_transpose_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (2, 8, 16, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    n, _, *sizes = _taken(lhs_shape, lhs)
    o, _, *kernel = _taken(rhs_shape, rhs)
    if isinstance(padding, str):
        rows = zip(kernel, window_strides, strict=True)
        padding = [_transposed_pads(k, s, padding) for k, s in rows]
    rows = zip(sizes, kernel, window_strides, padding, strict=True)
    space = [strided(dilated(size, s) + low + high, k, 1) for size, k, s, (low, high) in rows]
    return _placed((n, o, *space), out)


# ---- convolutions ----------------------------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Convolution (in the sense of neural networks: the kernel is not flipped) in any number of dimensions.

    Args:
        lhs: array of numbers: batch, features and space, in the order of `dimension_numbers`.
        rhs: the kernel, of the same dtype: output features, input features and space.
        window_strides: int for each axis of space: how far the window moves.
        padding: "SAME", "SAME_LOWER", "VALID" (see `padtype_to_pads`) or (low, high) for each axis of space; negative
            ones cut off.
        lhs_dilation: int for each axis of space: d - 1 zeros go between neighbours of lhs. None for 1.
        rhs_dilation: the same of the kernel.
        dimension_numbers: see `conv_dimension_numbers`.
        feature_group_count: number of groups into which features are cut; output features of a group see input
            features of the same group.
        batch_group_count: number of groups into which the batch is cut; output features of a group see examples of the
            same group.
        precision: see `dot_general`.
        preferred_element_type: dtype of the sums and of the result; None for that of the operands.
        out_sharding: None.

    Raises:
        TypeError, ValueError: arguments that do not fit the shapes.

    Derivative: in both operands, in both modes; convolutions again.

    >>> from morphax import numpy as jnp
    >>> x, w = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4))
    >>> conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
    (1, 4, 4, 4)
    """
    name = "conv_general_dilated"
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding is not supported yet. Use device_put on the result.")
    lhs, rhs = _operand(name, lhs), _operand(name, rhs)
    shapes = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(*shapes, dimension_numbers)
    space = max(0, len(shapes[0]) - 2)
    strides = ints(name, "window_strides", window_strides)
    holes = (1,) * space if lhs_dilation is None else ints(name, "lhs_dilation", lhs_dilation)
    gaps = (1,) * space if rhs_dilation is None else ints(name, "rhs_dilation", rhs_dilation)
    if isinstance(padding, str):
        if any(h != 1 for h in holes):
            raise ValueError(
                f"{name}: padding {padding!r} is not defined with lhs_dilation {holes}. Give pairs (low, high), or use "
                "conv_transpose."
            )
        if len(strides) != space or len(gaps) != space:
            raise ValueError(
                f"{name}: window_strides {strides} and rhs_dilation {gaps} need {space} entries, one for each axis of "
                "space."
            )
        window = [dilated(shapes[1][d], gap) for d, gap in zip(numbers.rhs_spec[2:], gaps, strict=True)]
        pads: Pads = tuple(padtype_to_pads(_taken(shapes[0], numbers.lhs_spec[2:]), window, strides, padding))
    else:
        pads = pairs(name, padding, space)
    preferred = None if preferred_element_type is None else dtypes.named_dtype(preferred_element_type)
    return ops.conv_general_dilated(
        lhs, rhs, window_strides=strides, padding=pads, lhs_dilation=holes, rhs_dilation=gaps,
        dimension_numbers=numbers, feature_group_count=python.index(feature_group_count),
        batch_group_count=python.index(batch_group_count), precision=canonical_precision(precision),
        preferred_element_type=preferred, out_sharding=None,
    )  # fmt: skip


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolution of operands ordered batch, features, space, and kernels ordered output, input features, space.

    >>> from morphax import numpy as jnp
    >>> conv(jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3)), (1, 1), "VALID").shape
    (1, 4, 6, 6)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Any:
    """`conv` with explicit padding and dilations.

    >>> from morphax import numpy as jnp
    >>> conv_with_general_padding(jnp.ones((1, 3, 8)), jnp.ones((4, 3, 3)), (1,), [(2, 0)], None, (2,)).shape
    (1, 4, 6)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transposed_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding of the dilated operand such that the result is what a convolution with `padding` could have come from."""
    name = padding.upper()
    if name == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif name == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise ValueError(f"conv_transpose: padding {padding!r} must be 'SAME', 'VALID' or pairs (low, high).")
    return low, total - low


_CHANNELS_LAST = ("NC", "NHC", "NHWC", "NHWDC")
_KERNEL_LAST = ("IO", "HIO", "HWIO", "HWDIO")


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """Fractionally strided convolution: `strides - 1` zeros go between neighbours of `lhs`, then the window moves by 1.

    Args:
        lhs: array of numbers: batch, features and space.
        rhs: the kernel.
        strides: int for each axis of space.
        padding: "SAME": the result is `strides` times as large; "VALID": as large as what a convolution without
            padding would take to `lhs`; or (low, high) for each axis of space, by which the dilated `lhs` is padded.
        rhs_dilation: int for each axis of space, of the kernel.
        dimension_numbers: see `conv_dimension_numbers`; None for ("NHWC", "HWIO", "NHWC").
        transpose_kernel: flip the kernel and exchange its features, so that this is the derivative of a convolution.
        precision: see `dot_general`.
        preferred_element_type: dtype of the sums and of the result; None for that of the operands.
        use_consistent_padding: take explicit padding as that of the convolution of which this is the transpose.

    >>> from morphax import numpy as jnp
    >>> conv_transpose(jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4)), (2, 2), "SAME").shape
    (1, 16, 16, 4)
    """
    lhs, rhs = _operand("conv_transpose", lhs), _operand("conv_transpose", rhs)
    lhs_shape, rhs_shape = typeof(lhs).shape, typeof(rhs).shape
    if dimension_numbers is None:
        if not 2 <= len(lhs_shape) <= 5:
            raise ValueError(f"conv_transpose: lhs of {len(lhs_shape)} dimensions needs explicit dimension_numbers.")
        layout = _CHANNELS_LAST[len(lhs_shape) - 2]
        dimension_numbers = (layout, _KERNEL_LAST[len(lhs_shape) - 2], layout)
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    space = len(lhs_shape) - 2
    gaps = (1,) * space if rhs_dilation is None else ints("conv_transpose", "rhs_dilation", rhs_dilation)
    window = [dilated(rhs_shape[d], gap) for d, gap in zip(numbers.rhs_spec[2:], gaps, strict=True)]
    if isinstance(padding, str):
        rows = zip(window, strides, strict=True)
        pads: Pads = tuple([_transposed_pads(k, python.index(s), padding) for k, s in rows])
    else:
        pads = pairs("conv_transpose", padding, space)
        if use_consistent_padding:
            pads = tuple([(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, pads, strict=True)])
    if transpose_kernel:
        o, i, *taps = numbers.rhs_spec
        order = list(range(len(rhs_shape)))
        order[o], order[i] = order[i], order[o]
        rhs = structure.transpose(structure.rev(rhs, dimensions=tuple(taps)), permutation=tuple(order))
    return conv_general_dilated(
        lhs, rhs, (1,) * space, pads, strides, gaps, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


# ---- patches ---------------------------------------------------------------------------------------------------------


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Any:
    """What a convolution would see at each place of its result: windows of `lhs`, laid out along the features.

    Args:
        lhs: array of numbers: batch, features and space.
        filter_shape: sizes of the window.
        window_strides: as all that follow: see `conv_general_dilated`.

    Returns:
        Array whose features are (features of lhs, window), the last axis of the window running fastest.

    >>> from morphax import numpy as jnp
    >>> print(conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")[0])
    [[0. 1. 2.]
     [1. 2. 3.]]
    """
    name = "conv_general_dilated_patches"
    lhs = _operand(name, lhs)
    aval = typeof(lhs)
    window = ints(name, "filter_shape", filter_shape)
    if len(window) != aval.ndim - 2:
        raise ValueError(f"{name}: filter_shape {window} needs a size for each of the {aval.ndim - 2} axes of space.")
    numbers = conv_dimension_numbers(aval.shape, (1,) * aval.ndim, dimension_numbers)
    features, count = aval.shape[numbers.lhs_spec[1]], math.prod(window)
    # One output feature for each entry of the window, for each feature a group.
    kernel = np.tile(np.eye(count, dtype=aval.dtype), (features, 1)).reshape(features * count, 1, *window)
    order = sorted(range(aval.ndim), key=lambda d: numbers.rhs_spec[d])
    placed = structure.transpose(_operand(name, kernel), permutation=tuple(order))
    return conv_general_dilated(
        lhs, placed, window_strides, padding, lhs_dilation, rhs_dilation, numbers, feature_group_count=features,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Any:
    """Convolution with a kernel of its own at each place of the result: a locally connected layer.

    Args:
        lhs: array of numbers: batch, features and space.
        rhs: kernels: output features; (input features, window) along one axis, the window running fastest; and the
            places of the result, in the order of `dimension_numbers`.
        window_strides: as all others: see `conv_general_dilated`.
        filter_shape: sizes of the window.

    >>> from morphax import numpy as jnp
    >>> conv_general_dilated_local(jnp.ones((2, 3, 8)), jnp.ones((4, 9, 6)), (1,), "VALID", (3,)).shape
    (2, 4, 6)
    """
    lhs, rhs = _operand("conv_general_dilated_local", lhs), _operand("conv_general_dilated_local", rhs)
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation,
        ConvDimensionNumbers(numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec), precision,
    )  # fmt: skip
    (n, c, *where), (_, i, *places) = numbers.out_spec, numbers.rhs_spec
    made = contract.dot(patches, rhs, (((c,), (i,)), (tuple(where), tuple(places))), precision)
    space = len(where)
    order = [0] * len(numbers.out_spec)
    order[n], order[c] = space, space + 1
    for place, d in enumerate(where):
        order[d] = place
    return structure.transpose(made, permutation=tuple(order))


conv_general_dilated_p = ops.conv_general_dilated

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_p",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
    "padtype_to_pads",
]
