"""Rows of the operations that move elements without computing."""

import numpy as np
from samples import COMPLEXES, FLOATS, INTEGERS, Sample, zeros

from morphax.ops import elementwise as ew
from morphax.ops import structure as st
from morphax.support.dtypes import BY_NAME

EVERY = FLOATS + COMPLEXES + INTEGERS + ("bool",)
I32 = np.dtype("int32")


def _slice(x):
    return st.slice(x, start_indices=(1, 0), limit_indices=(4, 3), strides=(2, 1))


def _pad(x, value):
    return st.pad(x, value, padding_config=((1, 2, 0), (-1, 0, 1)))


def _spread(x):
    return ew.broadcast_in_dim(x, shape=(2, 3, 4), broadcast_dimensions=(0, 1), sharding=None)


def _padded(x, value):
    out = np.full((x.shape[0] + 3, max(2 * x.shape[1] - 2, 0)), value)
    out[1 : 1 + x.shape[0], 1::2] = x[:, 1:]
    return out


def _split(x):
    return st.split(x, sizes=(1, 0, 2), axis=1)


ROWS = (
    Sample(
        "broadcast_in_dim",
        _spread,
        lambda x: np.broadcast_to(x[:, :, None], (2, 3, 4)),
        shapes=[((2, 3),), ((2, 1),), ((1, 1),)],
        dtypes=EVERY,
        errors=[(lambda: _spread(zeros(3, 3)), TypeError, "does not fit shape (2, 3, 4)")],
    ),
    Sample(
        "transpose",
        lambda x: st.transpose(x, permutation=(2, 0, 1)),
        lambda x: np.transpose(x, (2, 0, 1)),
        shapes=[((2, 3, 4),), ((0, 3, 1),)],
        dtypes=EVERY,
    ),
    Sample(
        "reshape",
        lambda x: st.reshape_to(x, (x.size // 2, 2)),
        lambda x: np.reshape(x, (x.size // 2, 2)),
        shapes=[((4, 3),), ((0, 3),), ((2, 1, 1),)],
        dtypes=EVERY,
        errors=[(lambda: st.reshape_to(zeros(2, 3), (4,)), TypeError, "has 6 elements")],
    ),
    Sample(
        "slice",
        _slice,
        lambda x: x[1:4:2, 0:3],
        shapes=[((4, 3),), ((5, 4),)],
        dtypes=EVERY,
        errors=[(lambda: _slice(zeros(3, 3)), TypeError, "do not fit shape (3, 3)")],
    ),
    Sample(
        "pad",
        _pad,
        _padded,
        shapes=[((2, 3), ()), ((0, 3), ())],
        dtypes=EVERY,
        errors=[
            (lambda: _pad(zeros(2, 3), zeros(1)), TypeError, "scalar padding value"),
            (lambda: _pad(zeros(2, 0), zeros()), ValueError, "must not be negative"),
        ],
    ),
    Sample(
        "concatenate",
        lambda x, y: st.concatenate(x, y, x, dimension=1),
        lambda x, y: np.concatenate([x, y, x], 1),
        shapes=[((2, 3), (2, 1)), ((2, 0), (2, 4)), ((0, 2), (0, 2))],
        dtypes=EVERY,
        errors=[
            (lambda: st.concatenate(zeros(2), zeros(2, 1), dimension=0), TypeError, "differ outside dimension 0"),
            (lambda: st.concatenate(zeros(2), zeros(2, dtype="int32"), dimension=0), TypeError, "dtypes"),
            (lambda: st.concatenate(zeros(2), dimension=1), ValueError, "axis 1 is out of range"),
        ],
    ),
    Sample(
        "split",
        _split,
        lambda x: np.split(x, (1, 1), 1),
        shapes=[((2, 3),), ((0, 3),)],
        dtypes=EVERY,
        errors=[(lambda: _split(zeros(3, 4)), ValueError, "add up to 3")],
    ),
    Sample(
        "rev",
        lambda x: st.rev(x, dimensions=(0, 2)),
        lambda x: np.flip(x, (0, 2)),
        shapes=[((2, 3, 4),), ((0, 3, 1),)],
        dtypes=EVERY,
        errors=[
            (lambda: st.rev(zeros(3), dimensions=(1,)), ValueError, "axis 1 is out of range"),
            (lambda: st.rev(zeros(3), dimensions=(0, 0)), ValueError, "an axis twice"),
        ],
    ),
    Sample(
        "squeeze",
        lambda x: st.squeeze(x, dimensions=(0, 2)),
        lambda x: np.squeeze(x, (0, 2)),
        shapes=[((1, 3, 1),), ((1, 0, 1),)],
        dtypes=EVERY,
        errors=[(lambda: st.squeeze(zeros(2, 1), dimensions=(0,)), ValueError, "more than one entry")],
    ),
    Sample(
        "iota",
        lambda: st.iota_along(I32, (2, 3), 1),
        lambda: np.broadcast_to(np.arange(3), (2, 3)),
        shapes=[()],
        dtypes=("int32",),
        errors=[
            (lambda: st.iota_along(I32, (2,), 1), ValueError, "dimension 1 is out of range"),
            (lambda: st.iota_along(np.dtype(bool), (2,), 0), TypeError, "does not accept dtype bool"),
        ],
        gaps={"vmap": "it has no operands", "check": "it has no operands"},
    ),
    Sample(
        "iota: floats",
        lambda: st.iota_along(np.dtype("float64"), (3, 2), 0),
        lambda: np.array([[0.0, 0], [1, 1], [2, 2]]),
        shapes=[()],
        dtypes=("float64",),
        gaps={"vmap": "it has no operands", "check": "it has no operands"},
    ),
    Sample("copy", st.copy, np.copy, shapes=[((2, 3),), ((0,),)], dtypes=EVERY),
    Sample(
        "bitcast_convert_type",
        lambda x: st.bitcast_convert_type(x, new_dtype=I32),
        lambda x: x.astype(np.float32).view(np.int32),
        dtypes=("float32",),
        errors=[
            (
                lambda: st.bitcast_convert_type(zeros(3), new_dtype=BY_NAME["float64"]),
                TypeError,
                "last dimension of size 2",
            ),
            (
                lambda: st.bitcast_convert_type(zeros(3), new_dtype=BY_NAME["bool"]),
                TypeError,
                "does not accept dtype bool",
            ),
        ],
    ),
    Sample(
        "bitcast_convert_type: narrower",
        lambda x: st.bitcast_convert_type(x, new_dtype=BY_NAME["uint8"]),
        lambda x: x.view(np.uint8).reshape(*x.shape, x.dtype.itemsize),
        dtypes=("int32", "int64", "uint8"),
        shapes=[((2, 3),), ((0, 3),)],
        gaps={"value": "covered by the wider one: the shape of an equal size differs"},
    ),
    Sample(
        "bitcast_convert_type: wider",
        lambda x: st.bitcast_convert_type(x, new_dtype=I32),
        lambda x: x.view(np.int32)[..., 0],
        shapes=[((2, 4),)],
        dtypes=("uint8",),
    ),
)
