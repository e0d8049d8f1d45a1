"""Dtypes: sets, names, widths, and the whole promotion table against JAX's."""

import json
import pathlib
import pickle

import ml_dtypes
import numpy as np
import pytest

from morphax.support import config, dtypes, errors

REFERENCE = json.loads((pathlib.Path(__file__).parents[1] / "data" / "promotion.json").read_text())
FRY = dtypes.key_dtype("threefry2x32")
MODES = {"x32": (False, "standard"), "x64": (True, "standard"), "strict": (True, "strict")}


def _typed(name):
    return dtypes.BY_NAME[name.rstrip("*")], name.endswith("*")


def _joined(a, b):
    try:
        dtype, weak = dtypes.promote(*_typed(a), *_typed(b))
    except errors.TypePromotionError:
        return "-"
    return dtype.name + "*" * weak


@pytest.mark.parametrize("mode", MODES)
def test_promotion_table_is_that_of_jax(mode):
    x64, promotion = MODES[mode]
    names = REFERENCE[mode]["names"].split()
    with config.enable_x64(x64), config.numpy_dtype_promotion(promotion):
        for i, row in enumerate(REFERENCE[mode]["rows"]):
            for a, b, expected in zip([names[i]] * len(names), names[i:], row.split(), strict=False):
                assert _joined(a, b) == expected, (a, b)
                assert _joined(b, a) == expected, (b, a)


def test_promotion_is_associative_where_it_is_defined():
    names = [n for n in REFERENCE["x64"]["names"].split() if "uint8*" not in n]
    with config.enable_x64(True):
        for a in names:
            for b in names:
                for c in names[::3]:
                    left, right = _joined(a, b), _joined(b, c)
                    if left != "-" and right != "-":
                        assert _joined(left, c) == _joined(a, right), (a, b, c)


@pytest.mark.parametrize(
    "a, b, expected",
    [
        ("float64", "float32", "float64"),
        ("float64", "float32*", "float64"),
        ("int64", "int32", "int64"),
        ("uint32", "int64", "int64"),
        ("int64", "float32", "float32"),
        ("complex64", "float64", "complex128"),
        ("float64*", "float32*", "float64*"),
        ("int64", "float32*", "float64*"),
        ("uint32", "int32", "int32"),
    ],
)
def test_named_64_bit_types_stay_wide_without_x64(a, b, expected):
    assert _joined(a, b) == expected


def test_promote_refuses_extended_dtypes_but_their_own():
    assert dtypes.promote(FRY, False, FRY, False) == (FRY, False)
    for other in (dtypes.float32, dtypes.float0, dtypes.key_dtype("rbg")):
        with pytest.raises(errors.TypePromotionError, match=r"promote: key<fry> and .* Convert one operand"):
            dtypes.promote(FRY, False, other, False)


def test_strict_promotion_says_so():
    with (
        config.numpy_dtype_promotion("strict"),
        pytest.raises(errors.TypePromotionError, match="i32 and f32 differ, and numpy_dtype_promotion is 'strict'"),
    ):
        dtypes.promote(dtypes.int32, False, dtypes.float32, False)


@pytest.mark.parametrize(
    "args, x32, x64",
    [
        ((1,), ("int32", True), ("int64", True)),
        ((1, 2.0), ("float32", True), ("float64", True)),
        ((True,), ("bool", False), ("bool", False)),
        ((True, 1), ("int32", True), ("int64", True)),
        ((np.float32(1), 1j), ("complex64", False), ("complex64", False)),
        ((np.float64(1),), ("float32", False), ("float64", False)),
        ((np.ones(2, np.int64), 1), ("int32", False), ("int64", False)),
        ((None, 1), ("float32", False), ("float64", False)),
        (("float32", 1), ("float32", False), ("float32", False)),
        (("float64", 1), ("float64", False), ("float64", False)),
        ((float, "bfloat16"), ("bfloat16", False), ("bfloat16", False)),
        ((int, np.int8), ("int8", False), ("int8", False)),
        ((np.int8, np.uint8, 1.0), ("float32", True), ("float64", True)),
    ],
)
def test_result_type(args, x32, x64):
    for wide, expected in ((False, x32), (True, x64)):
        with config.enable_x64(wide):
            dtype, weak = dtypes.result_type(*args, return_weak_type_flag=True)
            assert (dtype.name, weak) == expected
            assert dtypes.result_type(*args) == dtype


def test_result_type_of_nothing_or_of_no_array():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()
    for wrong in (object(), "foo", np.array(["a"])):
        with pytest.raises(TypeError, match="no "):
            dtypes.result_type(wrong)


def test_promote_types_takes_python_types_as_weak():
    assert dtypes.promote_types("int4", int) == dtypes.BY_NAME["int4"]
    assert dtypes.promote_types("int32", float) == dtypes.float32
    assert dtypes.promote_types(np.float16, np.dtype("bfloat16")) == dtypes.float32


@pytest.mark.parametrize(
    "named, expected",
    [
        ("float64", "float64"), (np.int64, "int64"), (np.dtype("complex128"), "complex128"), ("f4", "float32"),
        (np.bool_, "bool"), (ml_dtypes.bfloat16, "bfloat16"), ("float8_e4m3fn", "float8_e4m3fn"), ("int4", "int4"),
        (float, "float32"), (int, "int32"), (complex, "complex64"), (bool, "bool"), (None, "float32"),
        (np.ones(2, np.float64), "float64"), (np.float16(1), "float16"), (dtypes.float0, dtypes.float0.name),
    ],
)  # fmt: skip
def test_named_dtype_honours_what_is_named(named, expected):
    assert dtypes.named_dtype(named).name == expected


def test_python_types_follow_x64():
    with config.enable_x64(True):
        assert dtypes.named_dtype(float) is dtypes.float64
        assert dtypes.python_scalar_dtype(int) is dtypes.int64
        assert dtypes.default_complex_dtype() is dtypes.complex128
    assert dtypes.default_int_dtype() is dtypes.int32
    assert dtypes.default_float_dtype() is dtypes.float32
    assert dtypes.default_uint_dtype() is dtypes.uint32


@pytest.mark.parametrize(
    "wrong", ["foo", object, "S3", "datetime64[s]", 3, ">f4", [("a", "i4")], str, np.ones(1, object)]
)
def test_named_dtype_refuses_what_arrays_cannot_hold(wrong):
    with pytest.raises(TypeError, match="is no dtype of arrays"):
        dtypes.named_dtype(wrong)
    with pytest.raises(TypeError, match=r"^zeros: .* is no dtype of arrays"):
        dtypes.check_valid_dtype(wrong, "zeros")


def test_other_byte_order_names_its_cure():
    with pytest.raises(TypeError, match="newbyteorder"):
        dtypes.named_dtype(np.dtype(">f4"))


def test_canonicalize_narrows_unless_x64():
    pairs = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64", "int8": "int8"}
    for wide, narrow in pairs.items():
        assert dtypes.canonicalize_dtype(wide).name == narrow
        with config.enable_x64(True):
            assert dtypes.canonicalize_dtype(wide).name == wide
    assert dtypes.canonicalize_dtype(FRY, allow_extended_dtype=True) is FRY
    with pytest.raises(ValueError, match="allow_extended_dtype"):
        dtypes.canonicalize_dtype(FRY)


class _Aval:
    dtype = dtypes.float16
    weak_type = True


class _Traced:
    aval = _Aval()


class _Typed:
    dtype = np.dtype("float64")


def test_dtype_and_weak():
    assert dtypes.dtype_and_weak(1) == (dtypes.int32, True)
    assert dtypes.dtype_and_weak(True) == (dtypes.bool_, False)
    assert dtypes.dtype_and_weak(np.float64(1)) == (dtypes.float32, False)
    assert dtypes.dtype_and_weak(np.zeros(2, "i8")) == (dtypes.int32, False)
    assert dtypes.dtype_and_weak(np.zeros(2, dtypes.float0)) == (dtypes.float0, False)
    assert dtypes.dtype_and_weak(_Traced()) == (dtypes.float16, True)
    assert dtypes.dtype_and_weak(_Typed()) == (dtypes.float64, False)
    for wrong in ("a", None, [1], np.array(["a"]), np.array(None)):
        with pytest.raises(TypeError):
            dtypes.dtype_and_weak(wrong)


@pytest.mark.parametrize(
    "dtype", [*dtypes.ALL, dtypes.float0, *map(dtypes.key_dtype, ("threefry2x32", "rbg", "unsafe_rbg"))]
)
def test_short_names_go_there_and_back(dtype):
    assert dtypes.from_short_name(dtypes.short_name(dtype)) is dtype


def test_short_names_are_those_of_jaxprs():
    names = {"float32": "f32", "bfloat16": "bf16", "uint8": "u8", "bool": "bool", "complex64": "c64", "int4": "i4"}
    names |= {"float8_e4m3fn": "f8_e4m3fn", "float4_e2m1fn": "f4_e2m1fn"}
    assert {name: dtypes.short_name(dtypes.BY_NAME[name]) for name in names} == names
    assert dtypes.short_name(dtypes.float0) == "float0"
    with pytest.raises(ValueError, match="q7"):
        dtypes.from_short_name("q7")


TYPES = "bool int4 uint8 int32 int64 bfloat16 float8_e4m3fn float4_e2m1fn float32 float64 complex64 complex128".split()


@pytest.mark.parametrize(
    "above, below",
    [
        (np.number, TYPES[1:]),
        (np.generic, TYPES),
        (np.floating, ["bfloat16", "float8_e4m3fn", "float4_e2m1fn", "float32", "float64"]),
        (np.integer, ["int4", "uint8", "int32", "int64"]),
        (np.signedinteger, ["int4", "int32", "int64"]),
        (np.unsignedinteger, ["uint8"]),
        (np.inexact, TYPES[5:]),
        (np.complexfloating, ["complex64", "complex128"]),
        (float, ["float64"]),
        (int, ["int64"]),
        (bool, ["bool"]),
        (ml_dtypes.bfloat16, ["bfloat16"]),
        ("float32", ["float32"]),
        (object, []),
        (dtypes.extended, []),
    ],
)
def test_issubdtype(above, below):
    assert [name for name in TYPES if dtypes.issubdtype(dtypes.BY_NAME[name], above)] == below


def test_issubdtype_of_keys_and_classes():
    assert dtypes.issubdtype(FRY, dtypes.prng_key)
    assert dtypes.issubdtype(FRY, dtypes.extended)
    assert dtypes.issubdtype(FRY, np.generic)
    assert dtypes.issubdtype(FRY, FRY)
    assert not dtypes.issubdtype(FRY, np.number)
    assert not dtypes.issubdtype(FRY, dtypes.key_dtype("rbg"))
    assert not dtypes.issubdtype(dtypes.float32, FRY)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert dtypes.issubdtype(np.floating, np.number)
    assert dtypes.issubdtype(float, np.floating)
    assert not dtypes.issubdtype(dtypes.float0, np.inexact)
    assert not dtypes.issubdtype(np.dtype("S1"), np.number)


def test_isdtype():
    kinds = {name: [k for k in dtypes._KINDS if dtypes.isdtype(name, k)] for name in ("int4", "uint8", "bfloat16")}
    assert kinds == {
        "int4": ["signed integer", "integral", "numeric"],
        "uint8": ["unsigned integer", "integral", "numeric"],
        "bfloat16": ["real floating", "numeric"],
    }
    assert dtypes.isdtype(np.float32, ("integral", np.float32))
    assert not dtypes.isdtype(FRY, "numeric")
    with pytest.raises(ValueError, match="no kind"):
        dtypes.isdtype(np.float32, "prng")


def test_sets_and_relatives():
    kinds = {"bool": "b", "int4": "i", "uint8": "u", "bfloat16": "f", "float8_e5m2": "f", "complex64": "c"}
    assert {name: dtypes.kind(dtypes.BY_NAME[name]) for name in kinds} == kinds
    assert dtypes.kind(FRY) == "k"
    assert dtypes.kind(dtypes.float0) == "0"
    assert dtypes.is_float(dtypes.bfloat16)
    assert not dtypes.is_float(dtypes.complex64)
    assert dtypes.is_complex(dtypes.complex64)
    assert dtypes.is_integer(dtypes.BY_NAME["uint4"])
    assert dtypes.is_unsigned(dtypes.uint8)
    assert not dtypes.is_integer(dtypes.bool_)
    assert not dtypes.is_inexact(FRY)
    assert dtypes.tangent_dtype(dtypes.int32) == dtypes.float0 == dtypes.tangent_dtype(FRY)
    assert dtypes.tangent_dtype(dtypes.bfloat16) is dtypes.bfloat16
    assert dtypes.to_real(dtypes.complex128) is dtypes.float64
    assert dtypes.to_complex(dtypes.bfloat16) is dtypes.complex64
    assert dtypes.to_complex(dtypes.float64) is dtypes.complex128
    assert dtypes.to_inexact(dtypes.int8) is dtypes.float32
    assert dtypes.to_inexact(dtypes.int64) is dtypes.float64
    assert dtypes.to_inexact(dtypes.float16) is dtypes.float16
    assert dtypes.itemsize_bits("int4") == 4
    assert dtypes.itemsize_bits(np.complex128) == 128
    assert [dtypes.scalar_type_of(x) for x in (True, 1, 1.0, 1j, np.ones(2), np.int8(1))] == [
        bool, int, float, complex, float, int,
    ]  # fmt: skip
    with pytest.raises(TypeError, match="key<fry>"):
        dtypes.python_type(FRY)


def test_machine_limits():
    assert dtypes.finfo("float8_e4m3fn").max == 448
    assert dtypes.finfo(float).dtype == dtypes.float32
    assert dtypes.finfo(np.complex64).eps == np.finfo(np.float32).eps
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("int4").max) == (-8, 7)
    with pytest.raises(ValueError, match="iinfo for integers"):
        dtypes.finfo(int)
    with pytest.raises(ValueError, match="finfo for floating"):
        dtypes.iinfo(float)


@pytest.mark.parametrize(
    "name, low, high",
    [
        ("bool", 0, 1),
        ("int8", -128, 127),
        ("uint4", 0, 15),
        ("uint64", 0, 2**64 - 1),
        ("float32", -np.inf, np.inf),
        ("bfloat16", -np.inf, np.inf),
        ("float8_e4m3fn", -448, 448),
        ("float4_e2m1fn", -6, 6),
        ("float8_e5m2", -np.inf, np.inf),
    ],
)
def test_scalar_limits(name, low, high):
    dtype = dtypes.BY_NAME[name]
    found = dtypes.scalar_limits(dtype)
    assert found == (low, high)
    assert all(np.asarray(x).dtype == dtype for x in found)


def test_key_dtypes_are_one_object_for_each_generator():
    assert (FRY.name, FRY.impl, FRY.key_shape, FRY.itemsize, FRY.type) == (
        "key<fry>", "threefry2x32", (2,), 8, dtypes.prng_key,
    )  # fmt: skip
    assert dtypes.key_dtype("unsafe_rbg").name == "key<urbg>"
    assert pickle.loads(pickle.dumps(FRY)) is FRY
    assert {FRY: 1}[dtypes.key_dtype("threefry2x32", "fry", (2,))] == 1
    with pytest.raises(ValueError, match="no generator is named 'mt19937'"):
        dtypes.key_dtype("mt19937")
    with pytest.raises(ValueError, match="is taken"):
        dtypes.key_dtype("rbg", "rbg", (8,))
