"""Convolutions of lax: layouts, padding, shapes, relatives."""

import re

import numpy as np
import pytest
from convolutions import convolve, spread

from morphax import lax
from morphax import numpy as jnp
from morphax.runtime.jit import jit
from morphax.transforms import api

RNG = np.random.default_rng(0)


def draw(*shape):
    return jnp.asarray(RNG.normal(size=shape).astype(np.float32))


def close(got, wanted):
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-5, atol=2e-5)


# ---- the layout in the lowered program -------------------------------------------------------------------------------

LAYOUTS = {1: "b0f_0io->b0f", 2: "b01f_01io->b01f", 3: "b012f_012io->b012f"}


def layouts(fun, *args):
    """Dimension numbers of all convolutions in the lowered text."""
    text = jit(fun).lower(*args).as_text()
    found = re.findall(r"dim_numbers = \[(.*?)\]x\[(.*?)\]->\[(.*?)\]", text)
    assert found
    return ["{}_{}->{}".format(*(part.replace(", ", "") for part in parts)) for parts in found]


@pytest.mark.parametrize("space", [1, 2, 3])
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_lowered_in_canonical_layout(space, groups):
    features = 4 // groups.get("feature_group_count", 1)
    x, w = draw(2, 4, *(6,) * space), draw(4, features, *(3,) * space)

    def loss(x, w):
        return lax.conv_general_dilated(x, w, (1,) * space, "SAME", **groups).sum()

    def twice(x, w):
        return jnp.sum(api.grad(loss, 1)(x, w) ** 2)

    everything = layouts(lambda x, w: (api.grad(loss, (0, 1))(x, w), api.grad(twice)(x, w)), x, w)
    assert set(everything) == {LAYOUTS[space]}
    stacked = layouts(api.vmap(loss), jnp.stack([x, x]), jnp.stack([w, w]))
    assert set(stacked) == {LAYOUTS[space]}


def test_canonical_layout_in_loops():
    x, w = draw(1, 3, 8, 8), draw(3, 3, 3, 3)

    def fun(x, w):
        return lax.scan(lambda c, _: (lax.conv(c, w, (1, 1), "SAME"), None), x, None, length=3)[0].sum()

    assert set(layouts(api.grad(fun, (0, 1)), x, w)) == {LAYOUTS[2]}


# ---- dimension numbers and padding -----------------------------------------------------------------------------------


def test_dimension_numbers_follow_the_kernel():
    numbers = lax.conv_dimension_numbers((1, 2, 3, 4), (5, 6, 7, 8), ("NWHC", "HWIO", "CNHW"))
    assert numbers == lax.ConvDimensionNumbers((0, 3, 2, 1), (3, 2, 0, 1), (1, 0, 2, 3))
    assert lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), None) == lax.ConvDimensionNumbers(*((0, 1, 2),) * 3)


@pytest.mark.parametrize(
    ("numbers", "exception", "message"),
    [
        (("NCHW", "OIHW"), TypeError, "three"),
        (((0, 1), (0, 1), (0, 1)), TypeError, "must be strings"),
        (("NCH", "OIH", "NCH"), TypeError, "need 4 letters"),
        (("NCHH", "OIHW", "NCHW"), ValueError, "each letter once"),
        (("NCHW", "OIHX", "NCHW"), ValueError, "different axes of space"),
    ],
)
def test_wrong_dimension_numbers(numbers, exception, message):
    with pytest.raises(exception, match=re.escape(message)):
        lax.conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), numbers)


def test_padding_by_name():
    assert lax.padtype_to_pads((8, 8), (3, 3), (1, 2), "SAME") == [(1, 1), (0, 1)]
    assert lax.padtype_to_pads((8, 8), (3, 3), (1, 2), "same_lower") == [(1, 1), (1, 0)]
    assert lax.padtype_to_pads((8, 8), (3, 3), (1, 2), "VALID") == [(0, 0), (0, 0)]
    assert lax.padtype_to_pads((8,), (1,), (3,), "SAME") == [(0, 0)]
    with pytest.raises(RuntimeError, match="'FOO' is not known"):
        lax.padtype_to_pads((8,), (3,), (1,), "FOO")
    with pytest.raises(TypeError, match="padding 3"):
        lax.padtype_to_pads((8,), (3,), (1,), 3)


def test_arguments_that_do_not_fit():
    x, w = draw(1, 3, 8), draw(4, 3, 3)
    with pytest.raises(ValueError, match="not defined with lhs_dilation"):
        lax.conv_general_dilated(x, w, (1,), "SAME", lhs_dilation=(2,))
    with pytest.raises(TypeError, match=r"must be 1 pairs"):
        lax.conv_general_dilated(x, w, (1,), [(0, 0), (0, 0)])
    with pytest.raises(ValueError, match="need 1 entries"):
        lax.conv_general_dilated(x, w, (1, 1), "SAME")
    with pytest.raises(TypeError, match="static ints"):
        lax.conv_general_dilated(x, w, 1, [(0, 0)])
    with pytest.raises(TypeError, match="equally many"):
        lax.conv_general_dilated(x, draw(4, 3), (1,), "SAME")
    with pytest.raises(ValueError, match="filter_shape"):
        lax.conv_general_dilated_patches(x, (2, 2), (1,), "VALID")
    with pytest.raises(ValueError, match="conv_transpose: padding 'FOO'"):
        lax.conv_transpose(x, draw(3, 8, 2), (1,), "FOO")


def test_shapes():
    assert lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), [(0, 0), (1, 1)]) == (2, 4, 6, 4)
    assert lax.conv_shape_tuple((2, 3, 8), (4, 3, 3), (1,), "SAME", 2) == (1, 4, 8)
    layout = ("NHWC", "HWIO", "NHWC")
    assert lax.conv_general_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 2), "SAME", layout) == (2, 8, 4, 4)
    assert lax.conv_transpose_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 2), "VALID", layout) == (2, 10, 17, 4)
    with pytest.raises(TypeError, match="pairs of padding"):
        lax.conv_shape_tuple((2, 3, 8), (4, 3, 3), (1,), [])


# ---- relatives -------------------------------------------------------------------------------------------------------

ORDER = lax.conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "NHWC"))


def test_same_padding_in_another_order():
    x, w = draw(2, 7, 6, 3), draw(3, 2, 3, 4)
    got = lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=ORDER)
    pads = lax.padtype_to_pads((7, 6), (3, 3), (2, 1), "SAME")
    close(got, convolve(x, w, ORDER, (2, 1), pads, None, (1, 2)))


def test_general_padding():
    x, w = draw(2, 3, 7), draw(4, 3, 2)
    axes = ((0, 1, 2),) * 3
    dilated = ((1,), [(2, -1)], (2,), (3,))
    close(lax.conv_with_general_padding(x, w, *dilated), convolve(x, w, axes, *dilated))
    close(lax.conv(x, w, (2,), "VALID"), convolve(x, w, axes, (2,), [(0, 0)]))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_transposed_kernel_is_the_derivative(padding, stride, size):
    # The transpose of a convolution whose result has the shape of x.
    x, w = draw(1, 7, 2), draw(size, 3, 2)
    got = lax.conv_transpose(x, w, (stride,), padding, transpose_kernel=True)
    grown = got.shape[1]
    assert grown == (7 * stride if padding == "SAME" else 7 * stride + max(size - stride, 0))

    def forward(z):
        return lax.conv_general_dilated(z, w, (stride,), padding, dimension_numbers=("NHC", "HIO", "NHC"))

    zeros = jnp.zeros((1, grown, 3), np.float32)
    close(got, np.asarray(api.vjp(forward, zeros)[1](x)[0]))


def test_transpose_with_explicit_padding():
    x, w = draw(1, 7, 3), draw(4, 3, 3)
    axes = lax.conv_dimension_numbers((1,) * 3, (1,) * 3, ("NHC", "HIO", "NHC"))
    close(lax.conv_transpose(x, w, (2,), [(1, 2)]), convolve(x, w, axes, (1,), [(1, 2)], (2,)))
    consistent = lax.conv_transpose(x, w, (2,), [(1, 2)], use_consistent_padding=True)
    close(consistent, convolve(x, w, axes, (1,), [(2, 1)], (2,)))


def test_patches_are_windows():
    x = draw(2, 3, 6, 5)
    got = np.asarray(lax.conv_general_dilated_patches(x, (2, 3), (2, 1), [(1, 0), (0, 1)], rhs_dilation=(1, 2)))
    grown = spread(np.asarray(x), (1,) * 4, [(0, 0), (0, 0), (1, 0), (0, 1)])
    for i in range(got.shape[2]):
        for j in range(got.shape[3]):
            window = grown[:, :, 2 * i : 2 * i + 2, j : j + 5 : 2]
            np.testing.assert_array_equal(got[:, :, i, j], window.reshape(2, -1))
    moved = lax.conv_general_dilated_patches(
        x.transpose(1, 3, 0, 2), (3, 2), (1, 2), [(0, 1), (1, 0)], rhs_dilation=(2, 1),
        dimension_numbers=("CWNH", "IWOH", "WHCN"),
    )  # fmt: skip
    order = got.reshape(2, 3, 2, 3, *got.shape[2:]).swapaxes(2, 3).reshape(got.shape)
    np.testing.assert_array_equal(np.asarray(moved), order.transpose(3, 2, 1, 0))


def test_local_convolution_of_equal_kernels_is_a_convolution():
    x, w = draw(2, 3, 6, 5), draw(4, 3, 2, 3)
    kernels = jnp.broadcast_to(w.reshape(4, 18, 1, 1), (4, 18, 5, 3))
    got = lax.conv_general_dilated_local(x, kernels, (1, 1), "VALID", (2, 3))
    close(got, np.asarray(lax.conv(x, w, (1, 1), "VALID")))


def test_precision_and_preferred_type():
    x, w = draw(1, 3, 8).astype("bfloat16"), draw(4, 3, 3).astype("bfloat16")
    out = lax.conv(x, w, (1,), "SAME", precision="highest", preferred_element_type=np.float32)
    assert out.dtype == np.float32
    grads = api.grad(lambda x, w: lax.conv(x, w, (1,), "SAME", preferred_element_type=np.float32).sum(), (0, 1))(x, w)
    assert [g.dtype.name for g in grads] == ["bfloat16"] * 2
    text = str(api.make_jaxpr(lambda x, w: lax.conv(x, w, (1,), "SAME", "highest"))(x, w))
    assert "precision=(Precision.HIGHEST, Precision.HIGHEST)" in text
