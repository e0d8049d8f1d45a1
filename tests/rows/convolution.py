"""Rows of the convolutions."""

import numpy as np
from convolutions import convolve
from samples import COMPLEXES, Sample, zeros

from morphax.ops import convolution as cv

NCH = cv.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
NCHW = cv.ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
NHWC = cv.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
MIXED = cv.ConvDimensionNumbers((2, 0, 3, 1), (1, 3, 0, 2), (3, 1, 2, 0))  # CWNH, HOWI, WCHN
NDHWC = cv.ConvDimensionNumbers((0, 4, 1, 2, 3), (4, 3, 0, 1, 2), (0, 4, 1, 2, 3))
NC = cv.ConvDimensionNumbers((0, 1), (0, 1), (0, 1))
KINDS = ("float32", "float64", "float16", "bfloat16", *COMPLEXES, "int32", "int8", "uint8")


def _params(numbers, strides, padding, lhs_dilation=None, rhs_dilation=None, features=1, batches=1, preferred=None):
    ones = (1,) * len(strides)
    return {
        "window_strides": strides,
        "padding": padding,
        "lhs_dilation": lhs_dilation or ones,
        "rhs_dilation": rhs_dilation or ones,
        "dimension_numbers": numbers,
        "feature_group_count": features,
        "batch_group_count": batches,
        "precision": None,
        "preferred_element_type": preferred and np.dtype(preferred),
        "out_sharding": None,
    }


def _row(name, shapes, *given, dtypes=("float32", "float64"), errors=(), tol=1e-12, **more):
    params = _params(*given, **more)
    preferred = more.pop("preferred", None)

    def reference(x, w):
        if preferred:
            x, w = x.astype(preferred), w.astype(preferred)
        return convolve(x, w, *given, **more)

    return Sample(
        name, lambda x, w: cv.conv_general_dilated(x, w, **params), reference, shapes=shapes, dtypes=dtypes, tol=tol,
        errors=errors,
    )  # fmt: skip


def _wrong(lhs, rhs, *given, **more):
    return lambda: cv.conv_general_dilated(zeros(*lhs), zeros(*rhs), **_params(*given, **more))


def _bad(lhs, rhs, changed):
    params = {**_params(NCH, (1,), ((0, 0),)), **changed}
    return lambda: cv.conv_general_dilated(zeros(*lhs), zeros(*rhs), **params)


ONE = ((0, 0),)
ERRORS = [
    (
        _wrong((1, 3, 8), (4, 2, 3), NCH, (1,), ONE),
        ValueError,
        "lhs has 3 features in 1 group(s), and the kernel takes 2",
    ),
    (_wrong((1, 3, 8), (4, 3, 3, 3), NCH, (1,), ONE), ValueError, "equally many dimensions"),
    (_wrong((3,), (4,), NCH, (1,), ONE), ValueError, "at least two"),
    (_wrong((1, 3, 8), (4, 3, 3), NCH, (1, 1), ONE), ValueError, "window_strides (1, 1) has 2 entries"),
    (_bad((1, 3, 8), (4, 3, 3), {"rhs_dilation": (0,)}), ValueError, "rhs_dilation (0,) must be at least 1"),
    (_wrong((1, 4, 8), (3, 2, 3), NCH, (1,), ONE, features=2), ValueError, "3 output features"),
    (_wrong((3, 4, 8), (4, 4, 3), NCH, (1,), ONE, batches=2), ValueError, "the batch of 3"),
    (_wrong((2, 4, 8), (4, 2, 3), NCH, (1,), ONE, features=2, batches=2), ValueError, "only one of them above 1"),
    (
        lambda: cv.conv_general_dilated(zeros(1, 1, 1), zeros(1, 1, 1, dtype="int32"), **_params(NCH, (1,), ONE)),
        TypeError,
        "have dtypes float32, int32",
    ),
]
CONV = "conv_general_dilated"

ROWS = (
    _row(
        CONV, [((2, 3, 7), (4, 3, 3)), ((0, 3, 7), (4, 3, 3)), ((2, 3, 1), (4, 3, 3))], NCH, (2,), ((1, 2),),
        dtypes=KINDS, errors=ERRORS,
    ),
    _row(f"{CONV}: two axes", [((2, 3, 5, 6), (4, 3, 3, 2))], NCHW, (1, 2), ((1, 1), (0, 1))),
    _row(f"{CONV}: channels last", [((2, 5, 6, 3), (3, 2, 3, 4))], NHWC, (2, 1), ((1, 1), (2, 0)), (1, 2), (2, 1)),
    _row(f"{CONV}: any order", [((3, 6, 2, 5), (3, 4, 2, 3))], MIXED, (1, 2), ((1, 0), (0, 2)), (2, 1), (1, 2)),
    _row(f"{CONV}: three axes", [((1, 3, 4, 3, 2), (2, 1, 2, 2, 3))], NDHWC, (1, 2, 1), ((1, 0), (0, 1), (0, 0))),
    _row(f"{CONV}: no axes", [((2, 3), (4, 3))], NC, (), ()),
    _row(f"{CONV}: cut off", [((2, 3, 9), (4, 3, 2))], NCH, (2,), ((-1, -2),), (2,)),
    _row(f"{CONV}: what the last window misses", [((1, 2, 8), (3, 2, 2))], NCH, (5,), ((0, 1),)),
    _row(f"{CONV}: window too large", [((1, 2, 3), (3, 2, 5))], NCH, (1,), ((0, 0),)),
    _row(f"{CONV}: no features", [((1, 0, 3), (3, 0, 2))], NCH, (1,), ((0, 0),)),
    _row(
        f"{CONV}: feature groups", [((2, 6, 7), (4, 3, 3)), ((1, 4, 5), (2, 2, 2))], NCH, (2,), ((1, 2),), (2,), (2,),
        features=2,
    ),
    _row(f"{CONV}: depthwise", [((2, 5, 5, 3), (2, 2, 1, 6))], NHWC, (1, 1), ((1, 0), (0, 1)), features=3),
    _row(f"{CONV}: feature groups in any order", [((6, 5, 2, 4), (2, 4, 2, 3))], MIXED, (1, 2), ((1, 0), (0, 2)),
         features=2),
    _row(f"{CONV}: batch groups", [((6, 2, 7), (6, 2, 3))], NCH, (2,), ((1, 2),), (2,), (2,), batches=3),
    _row(f"{CONV}: batch groups in any order", [((3, 5, 4, 6), (2, 4, 2, 3))], MIXED, (1, 2), ((1, 0), (0, 2)),
         batches=2),
    _row(f"{CONV}: preferred type", [((2, 3, 7), (4, 3, 3))], NCH, (1,), ((1, 1),), dtypes=("int8", "int32"),
         preferred="int64"),
    _row(f"{CONV}: preferred wider float", [((2, 3, 7), (4, 3, 3))], NCH, (1,), ((1, 1),),
         dtypes=("float32", "bfloat16"), preferred="float64"),
)  # fmt: skip
