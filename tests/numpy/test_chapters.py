"""Polynomials, sets, windows, histograms, edits, mapped functions and bits against NumPy, empty ones included."""

import pickle
import traceback

import numpy as np
import pytest

from morphax import dlpack
from morphax import numpy as jnp
from morphax.runtime.jit import jit
from morphax.support import errors
from morphax.transforms import api

RNG = np.random.default_rng(0)


def same(found, wanted, tol=2e-5):
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            same(f, w, tol)
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    if wanted.dtype.kind in "fc":
        np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol)
    else:
        np.testing.assert_array_equal(found, wanted)


def put(x):
    return jnp.array(x, x.dtype) if isinstance(x, np.ndarray) else x


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ints(low, high, *shape):
    return RNG.integers(low, high, shape).astype("int32")


# (function, operands, keyword arguments): the call on arrays, and under jit where it is `jit`, gives what NumPy gives.
CASES = [
    *[("gcd", (ints(-30, 30, 4, 5), ints(-30, 30, 5)), {}), ("gcd", (ints(0, 9, 0), ints(0, 9, 1)), {})],
    ("lcm", (ints(-30, 30, 4, 5), ints(-30, 30, 5)), {}),
    *[("gcd", (np.uint8([0, 12, 255]), np.uint8([0, 0, 85])), {})],
    ("frexp", (np.float32([0.0, -0.0, 1.0, -3.5, 1e-40, 3e38, np.inf, -np.inf]),), {}),
    ("frexp", (np.float16([0.0, 1e-7, 6.1e-5, -65504.0, np.inf]),), {}),
    ("frexp", (np.float64([5e-324, 1e-310, -1.7e308, 0.75]),), {}),
    ("spacing", (np.float64([0.0, 1.0, -1.0, 1e-310, 5e-324, 1e-300, 1.7e308]),), {}),
    ("spacing", (np.float16([0.0, 1.0, 2.0, 6e-8, 6.2e-5, 60000.0]),), {}),
    *[("packbits", (ints(0, 2, 3, n),), {"axis": axis}) for n in (0, 7, 8, 17) for axis in (None, 0, -1)],
    *[("packbits", (ints(0, 3, 11),), {"bitorder": order}) for order in ("big", "little")],
    *[("unpackbits", (RNG.integers(0, 256, (2, 3)).astype("uint8"),), {"axis": a, "count": c})
      for a in (None, 0, -1) for c in (None, 0, 5, 11, -2)],
    ("unpackbits", (np.uint8([[2], [7], [23]]),), {"axis": 1, "bitorder": "little"}),
    *[("unwrap", (10 * floats(3, 6),), {"axis": axis}) for axis in (0, 1)],
    *[("unwrap", (ints(-20, 20, 9),), {"period": period}) for period in (4, 5, 7)],
    *[("unwrap", (10 * floats(7),), {"discont": 4.0}), ("unwrap", (floats(0),), {}), ("unwrap", (floats(1),), {})],
    *[("gradient", (floats(5, 4),), {"axis": axis}) for axis in (None, 0, 1, (0, 1), -1)],
    ("gradient", (floats(6), np.cumsum(np.abs(floats(6)) + np.float32(0.5))), {}),
    ("gradient", (floats(5, 4), 2.0, 0.5), {}),
    *[("vander", (ints(-3, 4, 4),), {"N": n, "increasing": up}) for n in (None, 0, 1, 3, 6) for up in (False, True)],
    ("vander", (floats(0),), {}),
    *[("polyval", (floats(n), floats(2, 3)), {}) for n in (0, 1, 5, 40)],
    *[("polyadd", (ints(-5, 5, n), ints(-5, 5, 3)), {}) for n in (1, 3, 6)],
    *[("polysub", (ints(-5, 5, n), ints(-5, 5, 3)), {}) for n in (1, 3, 6)],
    *[("polymul", (1 + np.abs(floats(n)), 1 + np.abs(floats(3))), {}) for n in (1, 4)],
    *[("polyder", (floats(5),), {"m": m}) for m in (0, 1, 2, 5, 6)],
    *[("polyint", (floats(4),), {"m": m, "k": k}) for m, k in ((1, None), (2, 3.0), (3, np.float32([1, 2, 3])))],
    ("convolve", (floats(7), floats(3)), {"mode": "full"}),
    *[("convolve", (floats(m), floats(n)), {"mode": mode})
      for m, n in ((7, 3), (3, 7), (4, 4), (5, 2), (1, 1)) for mode in ("full", "same", "valid")],
    *[("correlate", (floats(m) + 1j * floats(m), floats(n) - 1j * floats(n)), {"mode": mode})
      for m, n in ((7, 3), (3, 7), (4, 4), (5, 2), (2, 5)) for mode in ("full", "valid")],
    *[("correlate", (floats(m), floats(n)), {"mode": "same"}) for m, n in ((7, 3), (4, 4), (3, 5))],
    *[("i0", (5 * floats(9),), {}), ("i0", (floats(0),), {})],
    *[("resize", (ints(0, 9, 2, 3), shape), {}) for shape in ((4, 4), (2,), (0, 3), 7, ())],
    ("unravel_index", (ints(0, 24, 5), (2, 3, 4)), {}),
    *[("ravel_multi_index", (tuple(ints(-9, 9, 5) for _ in range(3)), (2, 3, 4)), {"mode": mode, "order": order})
      for mode in ("clip", "wrap") for order in "CF"],
    ("ravel_multi_index", ((ints(0, 2, 5), ints(0, 3, 5)), (2, 3)), {}),
    *[("delete", (ints(0, 9, 4, 5), obj), {"axis": axis})
      for obj in (0, -1, slice(0, 4, 2), np.array([0, 2, 2]), np.array([True, False, True, False])) for axis in (0,)],
    *[("delete", (ints(0, 9, 2, 3), obj), {}) for obj in (3, -6, slice(None, None, -2), np.array([], int))],
    *[("insert", (ints(0, 9, 3, 4), obj, values), {"axis": axis}) for obj, values, axis in (
        (1, 7, None), (1, 7, 0), (-1, ints(0, 9, 4), 0), (2, ints(0, 9, 3), 1), (3, ints(0, 9, 2, 4), 0),
        (np.array([0, 2, 2]), ints(0, 9, 3, 4), 0), (np.array([1]), ints(0, 9, 3, 2), 1), (slice(0, 2), 5, 1),
        (np.array([2, 0]), ints(0, 9, 2), None), (np.array([3, -3]), 1, 0))],
    *[("trim_zeros", (x,), {"trim": trim}) for x in (np.array([0, 0, 1, 0, 2, 0]), np.zeros(3), np.zeros(0))
      for trim in ("fb", "f", "b")],
    *[("apply_over_axes", (np.sum, floats(2, 3, 4), axes), {}) for axes in ((0,), (0, 2), (-1,))],
    *[("union1d", (ints(0, 9, m), ints(5, 14, n)), {}) for m, n in ((6, 8), (0, 3), (0, 0))],
    *[(name, (ints(0, 9, m), ints(5, 14, n)), {})
      for name in ("intersect1d", "setdiff1d", "setxor1d") for m, n in ((6, 8), (0, 3), (3, 0), (0, 0))],
    ("intersect1d", (ints(0, 9, 2, 5), ints(5, 14, 7)), {"return_indices": True}),
    *[(name, (ints(0, 4, 3, 4),), {}) for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")],
    *[("histogram", (floats(50),), {"bins": bins, "range": limits, "density": density})
      for bins, limits in ((10, None), (3, (-1, 1)), (np.float32([-2, -1, 0, 3]), None)) for density in (False, True)],
    ("histogram", (ints(0, 5, 30),), {"bins": 4, "weights": floats(30)}),
    *[("histogram", (np.full(4, 2.0, "float32"),), {}), ("histogram", (floats(0),), {"bins": 3})],
    ("histogram2d", (floats(40), floats(40)), {"bins": (3, 4)}),
    ("histogram2d", (floats(40), floats(40)), {"bins": 3, "density": True, "range": ((-1, 1), (-2, 2))}),
    ("histogramdd", (floats(40, 3),), {"bins": (2, 3, 4)}),
    ("histogramdd", (floats(40, 2),), {"bins": 3, "weights": floats(40)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "options"), CASES, ids=[f"{k}-{c[0]}" for k, c in enumerate(CASES)])
def test_values_are_those_of_numpy(name, operands, options):
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(*operands, **options)
    fun = getattr(jnp, name)
    if name == "apply_over_axes":
        operands = (jnp.sum, *operands[1:])
    given = [tuple(map(put, x)) if isinstance(x, tuple) else put(x) for x in operands]
    same(fun(*given, **options), wanted, 1e-3 if name == "i0" else 3e-5)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 16])
def test_windows(name, size):
    same(getattr(jnp, name)(size), getattr(np, name)(size), 1e-6)
    same(jnp.kaiser(size, 14.0), np.kaiser(size, 14.0), 1e-5)


def test_kaiser_is_finite_for_great_beta():
    assert np.isfinite(np.asarray(jnp.kaiser(9, 500.0))).all()


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
@pytest.mark.parametrize("sizes", [(7, 5), (1, 1), (0, 4), (4, 0)])
def test_sets_of_fixed_size_under_jit(name, sizes):
    a, b = ints(0, 6, sizes[0]), ints(3, 9, sizes[1])
    wanted = getattr(np, name)(a, b)
    fun = jit(lambda x, y: getattr(jnp, name)(x, y, size=12, fill_value=-1))
    found = np.asarray(fun(put(a), put(b)))
    same(found[: len(wanted)], wanted)
    assert (found[len(wanted) :] == -1).all()
    cut = jit(lambda x, y: getattr(jnp, name)(x, y, size=1))(put(a), put(b))
    assert not len(wanted) or cut[0] == wanted[0]


def test_positions_of_an_intersection_are_the_first():
    a, b = np.array([5, 3, 3, 1, 5]), np.array([2, 5, 3, 5])
    found = jit(lambda x, y: jnp.intersect1d(x, y, return_indices=True, size=3))(put(a), put(b))
    same(found, [[3, 5, 3], [1, 0, 5], [2, 1, 4]])


def test_quotients_of_polynomials():
    for m, n in ((6, 3), (3, 3), (2, 4)):
        u, v = floats(m), floats(n) + np.float32(3)
        wanted, rest = np.polydiv(u, v)
        found, left = jit(jnp.polydiv)(u, v)
        same(found, wanted, 1e-4)
        assert np.allclose(np.asarray(left)[len(left) - min(len(rest), len(left)) :], rest[-len(left) :], atol=1e-4)
    same(jnp.polydiv(jnp.array([1.0, 2, 1]), jnp.array([1.0, 1]), trim_leading_zeros=True)[1], np.zeros(0))


def test_roots_and_their_polynomial():
    for p in ([1.0, -6, 11, -6], [0, 0, 2.0, 0, -2, 0, 0], [3.0], [0.0, 0.0], []):
        wanted = np.sort_complex(np.roots(p))
        found = jnp.roots(jnp.array(p, "float64"))
        same(np.sort_complex(np.asarray(found)), wanted, 1e-9)
    found = np.asarray(jit(lambda p: jnp.roots(p, strip_zeros=False))(jnp.array([0, 1.0, -3, 2, 0])))
    same(np.sort_complex(found[:3]), [0, 1, 2], 1e-5)
    assert np.isnan(found[3])
    same(jnp.poly(jnp.array([1.0, 2, 3])), np.poly([1, 2, 3]))
    same(jnp.poly(jnp.array([[2.0, 1], [1, 3]])).real, np.poly([[2, 1], [1, 3]]), 1e-5)
    same(jnp.poly(jnp.zeros(0)), np.poly([]))


def test_fits():
    x, y, w = (np.asarray(floats(12), "float64") for _ in range(3))
    a, b, c = put(x), put(y), put(np.abs(w))
    same(jnp.polyfit(a, b, 3), np.polyfit(x, y, 3), 1e-8)
    same(jnp.polyfit(a, b, 2, w=c), np.polyfit(x, y, 2, w=np.abs(w)), 1e-8)
    same(jnp.polyfit(a, b, 2, full=True), np.polyfit(x, y, 2, full=True), 1e-8)
    for cov in (True, "unscaled"):
        same(jnp.polyfit(a, b, 2, cov=cov), np.polyfit(x, y, 2, cov=cov), 1e-8)
    ys = np.stack([y, 2 * y + x], axis=1)
    same(jnp.polyfit(a, put(ys), 2), np.polyfit(x, ys, 2), 1e-8)
    same(jnp.polyfit(jnp.array([1.0, 1, 1]), jnp.array([1.0, 2, 3]), 2), [2 / 3] * 3, 1e-5)
    slope = api.grad(lambda y: jnp.polyfit(a, y, 1)[0])(b)
    same(slope, (x - x.mean()) / ((x - x.mean()) ** 2).sum(), 1e-8)


def test_vectorize():
    x, y = floats(4, 1, 3), floats(5, 3)
    same(jnp.vectorize(lambda a, b: a * b)(x, y), x * y)
    same(jnp.vectorize(jnp.dot, signature="(n),(n)->()")(x, y), np.einsum("aon,bn->ab", x, y))
    mats = jnp.vectorize(lambda m, v: (m @ v, v), signature="(m,n), (n) -> (m), (n)")(floats(2, 3), floats(4, 3))
    assert [m.shape for m in mats] == [(4, 2), (4, 3)]
    same(jnp.vectorize(lambda a, n: a + n, excluded={1})(x, 2), x + 2)
    same(jnp.vectorize(lambda a, n: a + n)(x, n=x), x + x)
    same(jnp.vectorize(lambda a, n=None: a if n is None else n)(x, None), x)
    assert jnp.vectorize(lambda a: a)(jnp.zeros((0, 2))).shape == (0, 2)
    same(api.vmap(jnp.vectorize(jnp.sin))(x), np.sin(x))
    with pytest.raises(ValueError, match="argument 1 has size 2 for the core axis 'n', which has size 3"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones(3), jnp.ones(2))
    with pytest.raises(ValueError, match="not a signature"):
        jnp.vectorize(jnp.dot, signature="n->")
    with pytest.raises(TypeError, match="2 inputs; 1 were given"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones(3))


def test_functions_made_universal():
    power = jnp.frompyfunc(lambda a, b: a * b % 7, 2, 1, identity=1)
    other = np.frompyfunc(lambda a, b: a * b % 7, 2, 1)
    x = ints(1, 7, 3, 4)
    same(power(put(x), 3), np.asarray(other(x, 3), int))
    same(power.reduce(put(x), axis=1), np.asarray(other.reduce(x, axis=1), int))
    same(power.accumulate(put(x), axis=1), np.asarray(other.accumulate(x, axis=1), int))
    same(power.outer(put(x[0]), put(x[1])), np.asarray(other.outer(x[0], x[1]), int))
    assert (power.nin, power.nout, power.identity) == (2, 1, 1)
    both = jnp.frompyfunc(lambda a, b: (a + b, a - b), 2, 2)
    same(both(put(x), 1), [x + 1, x - 1])


def test_mapped_along_axes():
    x = floats(2, 3, 4)
    for axis in (0, 1, -1):
        same(
            jnp.apply_along_axis(lambda v: v[::-1] * 2, axis, put(x)),
            np.apply_along_axis(lambda v: v[::-1] * 2, axis, x),
        )
        same(jnp.apply_along_axis(jnp.sum, axis, put(x)), x.sum(axis))
        outer = np.apply_along_axis(lambda v: np.outer(v, v), axis, x)
        same(jnp.apply_along_axis(lambda v: jnp.outer(v, v), axis, put(x)), outer)


def test_piecewise():
    x = floats(3, 4)
    conditions, functions = [x < -0.5, x > 0.5], [lambda v: -v, lambda v: v**2, 9.0]
    found = jnp.piecewise(put(x), [put(c) for c in conditions], functions)
    same(found, np.piecewise(x, conditions, functions))
    same(jnp.piecewise(put(x), [put(conditions[0])], [5]), np.piecewise(x, [conditions[0]], [5]))
    same(api.grad(lambda v: jnp.piecewise(v, [v < 0, v >= 0], [lambda t: -t, lambda t: t**2]))(3.0), 6.0)


def test_replaced_entries():
    x, mask, values = ints(0, 9, 3, 4), ints(0, 2, 3, 4) > 0, ints(10, 20, 3)
    wanted = x.copy()
    np.place(wanted, mask, values)
    same(jnp.place(put(x), put(mask), put(values), inplace=False), wanted)
    for shape, value in (((3, 4), 7), ((4, 3), np.array([1, 2])), ((2, 2, 2), 5)):
        wanted = np.zeros(shape)
        np.fill_diagonal(wanted, value)
        same(jnp.fill_diagonal(jnp.zeros(shape), put(value), inplace=False), wanted)
    same(jnp.mask_indices(4, jnp.tril, -1), np.mask_indices(4, np.tril, -1))


def test_traced_positions():
    x = ints(0, 9, 6)
    found = jit(lambda v, i: jnp.delete(v, i, assume_unique_indices=True))(put(x), jnp.array([4, 1]))
    same(found, np.delete(x, [1, 4]))
    found = jit(lambda v, i: jnp.insert(v, i, jnp.array([7, 8])))(put(x), jnp.array([4, -5]))
    same(found, np.insert(x, [4, -5], [7, 8]))
    with pytest.raises(errors.ConcretizationTypeError, match="assume_unique_indices=True"):
        jit(jnp.delete)(put(x), jnp.array([1]))
    with pytest.raises(errors.ConcretizationTypeError, match="mode='wrap'"):
        jit(lambda i: jnp.ravel_multi_index((i, i), (2, 2)))(1)
    same(jnp.unravel_index(jnp.array([6, -1, -7]), (2, 3)), [[1, 1, 0], [2, 2, 0]])


# ---- other libraries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"])
def test_dlpack_both_ways(dtype):
    x = ints(0, 2, 4, 6).astype(dtype)
    same(np.from_dlpack(jnp.array(x, x.dtype)), x)
    for view in (x, x.T, x[::2, ::-3], x[1:, 2:4], x[:0], x[2:3, 3]):
        found = jnp.from_dlpack(view)
        same(found, view)
        same(found + found if dtype != "bool" else found, view + view if dtype != "bool" else view)
        assert found.dtype == view.dtype
    assert dlpack.is_supported_dtype(dtype)


def test_dlpack_shares_or_copies_as_asked():
    buffer = np.zeros(64, "float32")
    start = (-buffer.ctypes.data % 64) // 4
    aligned = buffer[start : start + 16]
    shared, copied = jnp.from_dlpack(aligned), jnp.from_dlpack(aligned, copy=True)
    assert shared.unsafe_buffer_pointer() == aligned.ctypes.data != copied.unsafe_buffer_pointer()
    assert dlpack.from_dlpack(aligned, copy=False).unsafe_buffer_pointer() == aligned.ctypes.data
    with pytest.raises(ValueError, match="strides"):
        jnp.from_dlpack(aligned[::2], copy=False)
    with pytest.raises(TypeError, match="__dlpack__"):
        jnp.from_dlpack("text")
    same(jnp.from_dlpack(jnp.arange(3)), [0, 1, 2])
    assert not dlpack.is_supported_dtype("int4")


def test_functions_can_be_pickled():
    for fun in (jnp.where, jnp.sum, jnp.concatenate, jnp.linalg.norm, jnp.vectorize):
        assert pickle.loads(pickle.dumps(fun)) is fun


# ---- ints that do not fit --------------------------------------------------------------------------------------------

TOO_LARGE = {
    "operator": lambda x: x + 1000,
    "swapped operator": lambda x: 1000 * x,
    "function": lambda x: jnp.add(x, 1000),
    "where": lambda x: jnp.where(True, x, 1000),
    "maximum": lambda x: jnp.maximum(1000, x),
    "negative": lambda x: x - (-129),
    "update": lambda x: x.at[0].set(1000),
    "addition at": lambda x: x.at[jnp.array([0])].add(1000),
    "huge": lambda x: x + 2**100,
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_ints_that_do_not_fit_are_refused_everywhere(name):
    x = jnp.array([1, 2], "int8")
    for call in (TOO_LARGE[name], jit(TOO_LARGE[name]), api.vmap(lambda v: TOO_LARGE[name](v[None]))):
        with pytest.raises(OverflowError, match="out of bounds for int8") as found:
            call(x)
        assert traceback.extract_tb(found.value.__traceback__)[-1].filename == __file__


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons_with_ints_that_do_not_fit(name):
    fun, wanted = getattr(jnp, name), getattr(np, name)
    for dtype, value in (("uint8", -1), ("int8", 1000), ("int8", -1000), ("int32", 2**40), ("uint8", 255)):
        x = np.array([0, 1, 100], dtype)
        y = jnp.array(x, dtype)
        for call in (fun, jit(fun, static_argnums=1)):
            same(call(y, value), wanted(x, value))
        same(fun(value, y), wanted(value, x))


def test_ints_that_fit_and_bounds():
    x = jnp.array([1, 200], "uint8")
    same(x + 55, [56, 255])
    same(jnp.array([1], "uint32") * 3_000_000_000, np.uint32([3_000_000_000]))
    same(jnp.clip(x, -5, 300), [1, 200])
    same(jnp.clip(x, min=-5, max=100), [1, 100])
    same(jnp.ones(2) + 2**40, np.float32([1 + 2**40] * 2))
    same(jnp.multiply(2**100, 3.0), np.float32(2**100 * 3.0))


# ---- special values, as the Python array API standard states them ----------------------------------------------------

INF, NAN = np.inf, np.nan
SPECIAL = {  # function: rows (operands..., result)
    "acos": [(NAN, NAN), (1.5, NAN), (-1.5, NAN), (1.0, 0.0)],
    "acosh": [(NAN, NAN), (0.5, NAN), (1.0, 0.0), (INF, INF)],
    "asin": [(NAN, NAN), (2.0, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, np.pi / 2), (-INF, -np.pi / 2)],
    "atanh": [(-1.5, NAN), (-1.0, -INF), (1.0, INF), (0.0, 0.0), (-0.0, -0.0)],
    "ceil": [(-0.5, -0.0), (-0.0, -0.0), (INF, INF), (NAN, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0)],
    "floor": [(-0.0, -0.0), (0.5, 0.0), (-INF, -INF), (NAN, NAN)],
    "log": [(-1.0, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log1p": [(-2.0, NAN), (-1.0, -INF), (-0.0, -0.0), (0.0, 0.0), (INF, INF)],
    "log2": [(-1.0, NAN), (0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log10": [(-1.0, NAN), (0.0, -INF), (1.0, 0.0), (INF, INF)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "round": [(0.5, 0.0), (-0.5, -0.0), (1.5, 2.0), (2.5, 2.0), (-0.0, -0.0), (INF, INF)],
    "sign": [(NAN, NAN), (0.0, 0.0), (-3.0, -1.0), (INF, 1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "sqrt": [(-1.0, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF)],
    "square": [(-0.0, 0.0), (-INF, INF), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (-INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "trunc": [(-0.5, -0.0), (0.5, 0.0), (-0.0, -0.0), (INF, INF), (NAN, NAN)],
    "add": [(INF, -INF, NAN), (INF, INF, INF), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (NAN, 1.0, NAN)],
    "multiply": [(INF, 0.0, NAN), (INF, -1.0, -INF), (-0.0, 2.0, -0.0)],
    "divide": [(INF, INF, NAN), (0.0, 0.0, NAN), (1.0, 0.0, INF), (1.0, -0.0, -INF), (1.0, -INF, -0.0)],
    "floor_divide": [
        (INF, INF, NAN), (0.0, 0.0, NAN), (1.0, 0.0, INF), (1.0, -0.0, -INF), (-0.0, 3.0, -0.0), (0.0, -3.0, -0.0),
        (2.0, INF, 0.0), (-2.0, INF, -1.0), (2.0, -INF, -1.0), (-2.0, -INF, 0.0),
    ],
    "remainder": [
        (INF, 2.0, NAN), (2.0, 0.0, NAN), (-0.0, 3.0, 0.0), (0.0, -3.0, -0.0), (-4.0, 2.0, 0.0), (4.0, -2.0, -0.0),
        (2.0, INF, 2.0), (-2.0, INF, INF), (2.0, -INF, -INF), (-5.0, 3.0, 1.0), (0.0, INF, 0.0),
    ],
    "pow": [
        (1.0, NAN, 1.0), (NAN, 0.0, 1.0), (NAN, 1.0, NAN), (2.0, INF, INF), (2.0, -INF, 0.0), (-1.0, INF, 1.0),
        (0.5, INF, 0.0), (INF, -1.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, -3.0, -0.0), (0.0, -1.0, INF),
        (-0.0, 3.0, -0.0), (-0.0, -3.0, -INF), (-2.0, 0.5, NAN),
    ],
    "atan2": [
        (NAN, 1.0, NAN), (0.0, 0.0, 0.0), (0.0, -0.0, np.pi), (-0.0, 0.0, -0.0), (-0.0, -0.0, -np.pi),
        (1.0, 0.0, np.pi / 2), (INF, INF, np.pi / 4), (INF, -INF, 3 * np.pi / 4), (-INF, INF, -np.pi / 4),
        (1.0, -INF, np.pi), (-1.0, INF, -0.0),
    ],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (-0.0, 3.0, 3.0)],
    "copysign": [(1.0, -0.0, -1.0), (-1.0, 0.0, 1.0), (NAN, 1.0, NAN), (3.0, NAN, 3.0)],
    "logaddexp": [(NAN, 0.0, NAN), (INF, 1.0, INF), (-INF, -INF, -INF), (-INF, 2.0, 2.0)],
    "maximum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (-INF, 1.0, 1.0)],
    "minimum": [(NAN, 1.0, NAN), (1.0, NAN, NAN), (-INF, 1.0, -INF)],
    "nextafter": [(NAN, 1.0, NAN), (1.0, 1.0, 1.0), (-0.0, 0.0, 0.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_of_the_array_api_standard(name, dtype):
    *operands, wanted = np.array(SPECIAL[name], dtype).T
    for fun in (getattr(jnp, name), jit(getattr(jnp, name))):
        found = np.asarray(fun(*[jnp.array(x, dtype) for x in operands]))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=str(np.array(SPECIAL[name])))
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[real], np.signbit(wanted)[real])


def test_dtypes_of_the_array_api_standard():
    x = jnp.ones((2, 3), "int8")
    assert x.__array_namespace__() is jnp
    for name in ("sum", "prod"):
        assert getattr(jnp, name)(x).dtype == np.int32
    for name in ("max", "min", "cumulative_sum", "abs", "sign", "bitwise_invert", "floor", "round", "square"):
        assert getattr(jnp, name)(x if name != "cumulative_sum" else x[0]).dtype in (np.int8, np.int32), name
    for name in ("mean", "std", "var"):
        assert getattr(jnp, name)(jnp.ones(3, "float16")).dtype == np.float16
    for name in ("argmax", "argmin", "argsort", "count_nonzero"):
        assert getattr(jnp, name)(x).dtype == np.int32
    assert jnp.bitwise_count(x).dtype == np.uint8
    assert jnp.real(jnp.ones(2, "complex64")).dtype == np.float32
