"""Values of the array functions against NumPy's, over dtypes, shapes and axes, empty ones included."""

import warnings

import numpy as np
import pytest

from morphax import numpy as jnp

SHAPES = [(), (0,), (5,), (2, 3), (2, 0), (2, 1, 3)]
FLOATS = ["float32", "float64", "float16"]
INTS = ["int32", "int8", "uint8", "int64"]


def draw(rng, shape, dtype, positive=False):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(1 if positive or np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)
    x = rng.standard_normal(shape) * 2
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(np.abs(x) + 0.5 if positive else x).astype(dtype)


def tolerance(dtype):
    return {"float16": 4e-3, "float64": 1e-12, "complex128": 1e-12}.get(str(np.dtype(dtype)), 3e-6)


def assert_same(found, wanted, tol=None, dtype=True):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    if dtype:
        assert found.dtype == wanted.dtype
    found = np.asarray(found)
    if wanted.dtype.kind in "fc":
        tol = tolerance(wanted.dtype) if tol is None else tol
        np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol)
    else:
        np.testing.assert_array_equal(found, wanted)


def reference(fun, *args, **kwargs):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fun(*args, **kwargs)


UNARY_FLOAT = (
    "sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 cbrt degrees radians deg2rad rad2deg sinc rint trunc "
    "floor ceil fabs square sign abs absolute negative positive reciprocal isnan isinf isfinite signbit isposinf "
    "isneginf"
).split()
UNARY_POSITIVE = ["log", "log1p", "log2", "log10", "sqrt", "arccosh"]
BINARY = (
    "add subtract multiply divide true_divide floor_divide remainder mod fmod maximum minimum fmax fmin arctan2 hypot "
    "copysign heaviside logaddexp logaddexp2 equal not_equal less less_equal greater greater_equal nextafter "
    "logical_and logical_or logical_xor float_power"
).split()
BINARY_INT = (
    "add subtract multiply floor_divide remainder fmod maximum minimum bitwise_and bitwise_or bitwise_xor".split()
)


@pytest.mark.parametrize("name", UNARY_FLOAT + UNARY_POSITIVE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_one_float_array(name, dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = draw(rng, shape, dtype, positive=name in UNARY_POSITIVE)
        if name == "arccosh":
            x = x + np.asarray(1, dtype)
        assert_same(getattr(jnp, name)(jnp.array(x, dtype)), reference(getattr(np, name), x), tol=2 * tolerance(dtype))


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "log", "degrees", "true_divide"])
def test_integers_become_default_floats(name):
    x = jnp.array([1, 2, 3])
    found = getattr(jnp, name)(x, x) if name == "true_divide" else getattr(jnp, name)(x)
    assert found.dtype == np.float32 and not found.weak_type
    assert getattr(jnp, name)(*[jnp.array([1], "int64")] * (1 + (name == "true_divide"))).dtype == np.float64


@pytest.mark.parametrize("name", "sin cos exp log sqrt tanh square conj real imag abs angle isnan sign".split())
def test_functions_of_complex_numbers(name):
    x = draw(np.random.default_rng(1), (4,), "complex64")
    assert_same(getattr(jnp, name)(jnp.array(x)), getattr(np, name)(x), tol=1e-5)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_float_arrays(name):
    rng = np.random.default_rng(2)
    for left, right in [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (3,)), ((0, 3), (3,)), ((2, 3), ())]:
        x, y = draw(rng, left, "float32"), draw(rng, right, "float32")
        x = abs(x) if name == "float_power" else x
        wanted = reference(getattr(np, name), x, y)
        wanted = wanted.astype("float32") if wanted.dtype == "float64" else wanted
        assert_same(getattr(jnp, name)(jnp.array(x), jnp.array(y)), wanted, tol=1e-5)


@pytest.mark.parametrize("name", BINARY_INT)
@pytest.mark.parametrize("dtype", INTS)
def test_functions_of_two_integer_arrays(name, dtype):
    rng = np.random.default_rng(3)
    x, y = draw(rng, (6,), dtype), draw(rng, (6,), dtype)
    if name in ("floor_divide", "remainder", "fmod"):
        y = np.where(y == 0, 1, y).astype(dtype)
    assert_same(getattr(jnp, name)(jnp.array(x, dtype), jnp.array(y, dtype)), getattr(np, name)(x, y))


def test_floor_division_and_rest_fit_together():
    x = np.float32([7, -7, 7, -7, 5.5, -1e-20, 0.0, np.inf, 3, np.nan, 1e30])
    y = np.float32([2, 2, -2, -2, 0.5, 1, 3, 2, np.inf, 1, 3])
    quotient, rest = jnp.divmod(jnp.array(x), jnp.array(y))
    wanted = reference(np.divmod, x, y)
    assert_same(quotient, wanted[0], tol=1e-6)
    assert_same(rest, wanted[1], tol=1e-6)
    assert np.isinf(jnp.floor_divide(jnp.float32(1), 0.0))
    assert np.isnan(jnp.remainder(jnp.float32(1), 0.0))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 7])
def test_powers_by_static_integers(exponent):
    x = np.float32([-2, 0.5, 3])
    assert_same(jnp.array(x) ** exponent, x**exponent)
    assert_same(jnp.power(jnp.array(x), exponent), x**exponent)


def test_powers_of_integers():
    x, y = np.int32([2, 3, -2, 0, 5, 7]), np.int32([10, 4, 3, 0, 1, 0])
    assert_same(jnp.power(jnp.array(x), jnp.array(y)), x**y)
    assert_same(jnp.array([2, 3], "uint8") ** jnp.array([3, 2], "uint8"), np.uint8([8, 9]))
    assert (jnp.array([1, -1, 2]) ** jnp.array([-3, -3, -1])).tolist() == [1, -1, 0]
    assert jnp.power(2, jnp.array([3.0, 0.5])).tolist() == pytest.approx([8.0, 2**0.5])
    with pytest.raises(ValueError, match="negative powers"):
        jnp.array([2]) ** -1


def test_shifts_and_bits():
    x = np.int32([1, -8, 5])
    assert_same(jnp.left_shift(jnp.array(x), 2), x << 2)
    assert_same(jnp.array(x) >> 1, x >> 1)
    assert_same(jnp.array([200], "uint8") >> 3, np.uint8([25]))
    assert_same(~jnp.array(x), ~x)
    assert jnp.bitwise_count(jnp.array([7, 8])).tolist() == [3, 1]


@pytest.mark.parametrize(
    "name", "sum prod max min mean var std any all ptp count_nonzero nansum nanmax nanmean".split()
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_reductions(name, dtype):
    if dtype == "bool" and name == "ptp":
        return
    rng = np.random.default_rng(4)
    for shape, axis in [
        ((), None),
        ((4,), 0),
        ((2, 3), None),
        ((2, 3), 1),
        ((2, 3, 2), (0, 2)),
        ((2, 3), -2),
        ((0, 3), 1),
    ]:
        x = draw(rng, shape, dtype)
        for keepdims in (False, True):
            wanted = np.asarray(reference(getattr(np, name), x, axis=axis, keepdims=keepdims))
            found = getattr(jnp, name)(jnp.array(x, dtype), axis=axis, keepdims=keepdims)
            if wanted.dtype.kind in "iu" or name in ("mean", "var", "std", "nanmean") and dtype in ("int32", "bool"):
                wanted = wanted.astype(found.dtype)
            assert_same(found, wanted, tol=1e-5)


def test_reductions_with_masks_and_initial_values():
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    mask = np.array([[True, False, True], [False, False, True]])
    a, m = jnp.array(x), jnp.array(mask)
    assert_same(jnp.sum(a, axis=1, where=m, initial=10.0), np.sum(x, axis=1, where=mask, initial=10.0))
    assert_same(jnp.max(a, axis=0, where=m, initial=-1.0), np.max(x, axis=0, where=mask, initial=-1.0))
    assert_same(jnp.mean(a, where=m), np.mean(x, where=mask))
    assert_same(jnp.var(a, axis=1, where=m), np.var(x, axis=1, where=mask))
    assert_same(jnp.all(a > 2, where=m), np.all(x > 2, where=mask))
    with pytest.raises(ValueError, match="initial"):
        jnp.max(a, where=m)


def test_small_types_are_summed_in_wide_ones():
    assert jnp.sum(jnp.full(300, 1, "int8")).item() == 300
    assert jnp.sum(jnp.ones(4096, "bfloat16")).item() == 4096
    assert jnp.mean(jnp.full(70000, 2.0, "float16")).item() == 2.0
    assert jnp.sum(jnp.array([True, True])).dtype == np.int32


@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum", "cumprod", "nanargmax", "nancumsum"])
def test_positions_and_running_totals(name):
    x = draw(np.random.default_rng(5), (3, 4), "float32")
    for axis in (None, 0, 1, -1):
        wanted = getattr(np, name)(x, axis=axis)
        found = getattr(jnp, name)(jnp.array(x), axis=axis)
        assert_same(found, wanted.astype(found.dtype), tol=1e-5)
    if name.startswith("arg"):
        assert_same(
            getattr(jnp, name)(jnp.array(x), axis=1, keepdims=True),
            getattr(np, name)(x, axis=1, keepdims=True),
            dtype=False,
        )


def test_means_and_spreads_of_complex_numbers():
    x = draw(np.random.default_rng(6), (5,), "complex64")
    assert_same(jnp.mean(jnp.array(x)), np.mean(x), tol=1e-5)
    assert_same(jnp.var(jnp.array(x)), np.var(x), tol=1e-5)
    assert_same(jnp.max(jnp.array(x)), np.max(x))
    assert_same(jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0])), np.float32(1.25))


SHAPED = {
    "reshape": ((2, 6), lambda m, x: m.reshape(x, (3, -1))),
    "reshape_F": ((2, 6), lambda m, x: m.reshape(x, (3, 4), order="F")),
    "ravel": ((2, 3), lambda m, x: m.ravel(x)),
    "transpose": ((2, 3, 4), lambda m, x: m.transpose(x, (2, 0, 1))),
    "swapaxes": ((2, 3, 4), lambda m, x: m.swapaxes(x, 0, -1)),
    "moveaxis": ((2, 3, 4), lambda m, x: m.moveaxis(x, (0, 1), (-1, 0))),
    "rollaxis": ((2, 3, 4), lambda m, x: m.rollaxis(x, 2, 1)),
    "squeeze": ((1, 3, 1), lambda m, x: m.squeeze(x, 0)),
    "expand_dims": ((3,), lambda m, x: m.expand_dims(x, (0, 2))),
    "broadcast_to": ((3, 1), lambda m, x: m.broadcast_to(x, (2, 3, 4))),
    "flip": ((2, 3), lambda m, x: m.flip(x, 1)),
    "flip_all": ((2, 3), lambda m, x: m.flip(x)),
    "rot90": ((2, 3), lambda m, x: m.rot90(x)),
    "rot90_3": ((2, 3), lambda m, x: m.rot90(x, 3)),
    "roll": ((2, 3), lambda m, x: m.roll(x, 2)),
    "roll_axes": ((2, 3), lambda m, x: m.roll(x, (1, -1), (0, 1))),
    "tile": ((2, 3), lambda m, x: m.tile(x, (2, 1, 2))),
    "repeat": ((2, 3), lambda m, x: m.repeat(x, 2, axis=1)),
    "repeat_each": ((3,), lambda m, x: m.repeat(x, np.array([1, 0, 2]))),
    "concatenate": ((2, 3), lambda m, x: m.concatenate([x, x, x], axis=1)),
    "concatenate_flat": ((2, 3), lambda m, x: m.concatenate([x, x], axis=None)),
    "stack": ((2, 3), lambda m, x: m.stack([x, x], axis=-1)),
    "vstack": ((3,), lambda m, x: m.vstack([x, x])),
    "hstack": ((3, 1), lambda m, x: m.hstack([x, x])),
    "dstack": ((3,), lambda m, x: m.dstack([x, x])),
    "column_stack": ((3,), lambda m, x: m.column_stack([x, x])),
    "append": ((3,), lambda m, x: m.append(x, x)),
    "atleast_3d": ((3, 2), lambda m, x: m.atleast_3d(x)),
    "diagonal": ((3, 4, 2), lambda m, x: m.diagonal(x, 1, 0, 1)),
    "diagonal_below": ((3, 4), lambda m, x: m.diagonal(x, -1)),
    "diag": ((3,), lambda m, x: m.diag(x, -2)),
    "diag_of": ((3, 4), lambda m, x: m.diag(x, 2)),
    "trace": ((3, 4), lambda m, x: m.trace(x, 1)),
    "tril": ((3, 4), lambda m, x: m.tril(x, 1)),
    "triu": ((2, 3, 3), lambda m, x: m.triu(x, -1)),
    "split": ((6, 2), lambda m, x: m.concatenate(m.split(x, 3)[::-1])),
    "array_split": ((7,), lambda m, x: m.concatenate(m.array_split(x, 3)[::-1])),
    "split_at": ((7,), lambda m, x: m.concatenate(m.split(x, [2, 5])[::-1])),
    "pad": ((2, 3), lambda m, x: m.pad(x, ((1, 2), (0, 3)), constant_values=5)),
    "pad_ends": ((3,), lambda m, x: m.pad(x, (1, 2), constant_values=(4, 6))),
    "pad_edge": ((2, 3), lambda m, x: m.pad(x, 2, mode="edge")),
    "pad_reflect": ((2, 4), lambda m, x: m.pad(x, ((1, 1), (5, 7)), mode="reflect")),
    "pad_symmetric": ((4,), lambda m, x: m.pad(x, (5, 2), mode="symmetric")),
    "pad_wrap": ((4,), lambda m, x: m.pad(x, (5, 2), mode="wrap")),
    "pad_ramp": ((4,), lambda m, x: m.pad(x, (3, 2), mode="linear_ramp", end_values=(5, -4))),
    "pad_mean": ((4,), lambda m, x: m.pad(x, (3, 2), mode="mean", stat_length=2)),
    "pad_maximum": ((3, 4), lambda m, x: m.pad(x, 1, mode="maximum")),
    "pad_odd": ((4,), lambda m, x: m.pad(x, (2, 3), mode="reflect", reflect_type="odd")),
    "sort": ((3, 4), lambda m, x: m.sort(x, axis=0)),
    "sort_flat": ((3, 4), lambda m, x: m.sort(x, axis=None)),
    "argsort": ((3, 4), lambda m, x: m.argsort(x)),
    "median": ((3, 4), lambda m, x: m.median(x, axis=1)),
    "percentile": ((3, 4), lambda m, x: m.percentile(x, 30, axis=0)),
    "quantile_q": ((5,), lambda m, x: m.quantile(x, m.asarray([0.1, 0.5, 0.77]))),
    "quantile_keep": ((5, 2), lambda m, x: m.quantile(x, m.asarray([0.1, 0.5]), axis=0, keepdims=True)),
    "diff": ((3, 4), lambda m, x: m.diff(x, 2, axis=1)),
    "diff_ends": ((4,), lambda m, x: m.diff(x, prepend=0, append=m.asarray([1.0, 2.0], "float32"))),
    "ediff1d": ((4,), lambda m, x: m.ediff1d(x)),
    "trapezoid": ((3, 4), lambda m, x: m.trapezoid(x, axis=0)),
    "cov": ((3, 4), lambda m, x: m.cov(x)),
    "corrcoef": ((3, 4), lambda m, x: m.corrcoef(x)),
    "cross": ((4, 3), lambda m, x: m.cross(x, x[::-1])),
    "outer": ((3,), lambda m, x: m.outer(x, x)),
    "kron": ((2, 3), lambda m, x: m.kron(x, x.T)),
    "vander_free": ((3,), lambda m, x: m.meshgrid(x, x)[1]),
    "clip": ((5,), lambda m, x: m.clip(x, -0.5, 0.5)),
    "round": ((5,), lambda m, x: m.round(x, 1)),
    "nan_to_num": ((5,), lambda m, x: m.nan_to_num(x / 0 if m is np else x / 0.0)),
    "where": ((5,), lambda m, x: m.where(x > 0, x, 0)),
    "select": ((5,), lambda m, x: m.select([x > 1, x > 0], [x, -x], 9)),
    "interp": ((5,), lambda m, x: m.interp(x, m.asarray([-1.0, 0.0, 2.0]), m.asarray([3.0, 5.0, 4.0]))),
    "take": ((3, 4), lambda m, x: m.take(x, m.asarray([[0, 2], [1, 1]]), axis=1)),
    "take_along_axis": ((3, 4), lambda m, x: m.take_along_axis(x, m.argsort(x, axis=1), axis=1)),
    "compress": ((3, 4), lambda m, x: m.compress(m.asarray([True, False, True]), x, axis=0)),
    "partition": ((5,), lambda m, x: m.sort(m.partition(x, 2)[:2])),
    "searchsorted": ((5,), lambda m, x: m.searchsorted(m.sort(x), x, side="right")),
    "digitize": ((5,), lambda m, x: m.digitize(x, m.asarray([1.0, 0.0, -1.0], "float32"))),
    "unique": ((2, 3), lambda m, x: m.unique(m.round(x))),
    "nonzero": ((3, 4), lambda m, x: m.nonzero(x > 0)[1]),
    "argwhere": ((3, 4), lambda m, x: m.argwhere(x > 0)),
    "isin": ((3, 4), lambda m, x: m.isin(m.round(x), m.asarray([0.0, 1.0]))),
    "tri": ((), lambda m, x: m.tri(3, 4, 1, dtype="float32")),
    "eye": ((), lambda m, x: m.eye(3, 4, -1, dtype="float32")),
    "indices": ((), lambda m, x: m.indices((2, 3), dtype="int32")),
    "bincount": ((), lambda m, x: m.bincount(m.asarray([1, 1, 4]))),
    "linspace": ((), lambda m, x: m.linspace(-1, 3, 7, dtype="float32")),
    "linspace_open": ((), lambda m, x: m.linspace(0, 1, 4, endpoint=False, dtype="float32")),
    "logspace": ((), lambda m, x: m.logspace(0, 2, 5, dtype="float32")),
    "geomspace": ((), lambda m, x: m.geomspace(1.0, 1000.0, 4, dtype="float32")),
    "arange": ((), lambda m, x: m.arange(1, 9, 3, dtype="int32")),
    "arange_float": ((), lambda m, x: m.arange(0.0, 1.0, 0.3, dtype="float32")),
    "block": ((2, 2), lambda m, x: m.block([[x, x], [x, x]])),
    "isclose": ((5,), lambda m, x: m.isclose(x, x + 1e-6)),
    "average": ((3, 4), lambda m, x: m.average(x, axis=1, weights=m.asarray([1.0, 2.0, 3.0, 4.0], "float32"))),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPED)
def test_functions_that_shape_and_select(name):
    shape, fun = SHAPED[name]
    x = draw(np.random.default_rng(7), shape, "float32")
    wanted = np.asarray(reference(fun, np, x))
    found = fun(jnp, jnp.array(x))
    if wanted.dtype != found.dtype:  # NumPy's defaults are twice as wide
        assert wanted.dtype.itemsize == 2 * found.dtype.itemsize and wanted.dtype.kind == found.dtype.kind
        wanted = wanted.astype(found.dtype)
    assert_same(found, wanted, tol=1e-5)


PRODUCTS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((3,), (5, 3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 4)),
    ((7, 1, 2, 3), (1, 5, 3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul(left, right):
    rng = np.random.default_rng(8)
    x, y = draw(rng, left, "float32"), draw(rng, right, "float32")
    assert_same(jnp.array(x) @ jnp.array(y), x @ y, tol=1e-5)
    if len(left) <= 2:
        assert_same(jnp.dot(jnp.array(x), jnp.array(y)), np.dot(x, y), tol=1e-5)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii->", (3, 3)), ("ii->i", (3, 3)), ("ij->ji", (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("i,j->ij", (2,), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,ij->", (2, 3), (2, 3)), ("iij,jk->ik", (3, 3, 2), (2, 4)),
    ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)), ("ij->", (2, 3)), ("i...->...", (2, 3, 4)), ("ab,cd->", (2, 3),
    (4, 5)),
    ("ij,jk", (2, 1), (3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case):
    subscripts, *shapes = case
    rng = np.random.default_rng(9)
    arrays = [draw(rng, s, "float32") for s in shapes]
    wanted = np.einsum(subscripts, *arrays)
    for optimize in ("auto", False):
        assert_same(jnp.einsum(subscripts, *map(jnp.array, arrays), optimize=optimize), wanted, tol=1e-5)


def test_einsum_with_lists_of_axes():
    x, y = np.ones((2, 3), "float32"), np.ones((3, 4), "float32")
    assert_same(jnp.einsum(jnp.array(x), [0, 1], jnp.array(y), [1, 2], [0, 2]), x @ y)


def test_other_products():
    rng = np.random.default_rng(10)
    x, y = draw(rng, (2, 3, 4), "float32"), draw(rng, (4, 3, 5), "float32")
    a, b = jnp.array(x), jnp.array(y)
    assert_same(jnp.tensordot(a, b, axes=([1, 2], [1, 0])), np.tensordot(x, y, axes=([1, 2], [1, 0])), tol=1e-5)
    assert_same(jnp.inner(a, a), np.inner(x, x), tol=1e-5)
    assert_same(jnp.vecdot(a, a), np.sum(x * x, -1), tol=1e-5)
    assert_same(jnp.vdot(a, a), np.vdot(x, x), tol=1e-5)
    assert_same(jnp.matvec(a, a[:, 0]), np.einsum("nij,nj->ni", x, x[:, 0]), tol=1e-5)
    assert_same(jnp.vecmat(a[..., 0], a), np.einsum("nj,njk->nk", x[..., 0], x), tol=1e-5)


def test_sizes_make_searches_static():
    x = jnp.array([0, 3, 0, 5])
    assert [i.tolist() for i in jnp.nonzero(x, size=3, fill_value=-1)] == [[1, 3, -1]]
    assert jnp.unique(jnp.array([3, 1, 3, 2]), size=4, fill_value=0).tolist() == [1, 2, 3, 0]
    values, first, inverse, counts = jnp.unique(
        jnp.array([3, 1, 3]), return_index=True, return_inverse=True, return_counts=True, size=2
    )
    assert (values.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0], [1, 0, 1], [1, 2])
    assert jnp.repeat(jnp.array([1, 2]), jnp.array([2, 1]), total_repeat_length=4).tolist() == [1, 1, 2, 2]
    assert jnp.bincount(jnp.array([0, 5]), length=2).tolist() == [1, 0]
