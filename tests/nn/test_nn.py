"""Activations, softmax and its kin, attention and initializers against NumPy and SciPy, in the tails too."""

import functools
import math

import numpy as np
import pytest
import scipy.special

from morphax import nn, random
from morphax import numpy as jnp
from morphax.control import jacobians
from morphax.control.jacobians import hessian
from morphax.runtime.jit import jit
from morphax.support import config
from morphax.transforms.api import grad, make_jaxpr, vmap

INF = math.inf
GRID = np.array([-700.0, -40.0, -9.0, -3.5, -2.0, -1.5, -0.7, -1e-3, 1e-12, 0.3, 0.9, 1.7, 2.5, 5.0, 8.0, 45.0, 700.0])


@pytest.fixture(autouse=True)
def wide():
    with config.enable_x64(True):
        yield


def _softplus(x):
    return np.logaddexp(x, 0)


def _gelu_tanh(x):
    return x * scipy.special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


# name -> (reference, limit of the value at -inf, derivative at -inf, derivative at +inf)
ACTIVATIONS = {
    "relu": (lambda x: np.maximum(x, 0), 0, 0, 1),
    "relu6": (lambda x: np.clip(x, 0, 6), 0, 0, 0),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.01 * x), -INF, 0.01, 1),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), -1, 0, 0),
    "hard_sigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, 0, 0, 0),
    "hard_silu": (lambda x: x * np.clip(x + 3, 0, 6) / 6, 0, 0, 1),
    "sparse_plus": (lambda x: np.where(x > 1, x, np.where(x < -1, 0, (x + 1) ** 2 / 4)), 0, 0, 1),
    "sparse_sigmoid": (lambda x: np.clip((x + 1) / 2, 0, 1), 0, 0, 0),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -1, 0, 1),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), -1, 0, 1),
    "selu": (
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
        -1.7580993408473768, 0, 1.0507009873554805,
    ),
    "sigmoid": (scipy.special.expit, 0, 0, 0),
    "softplus": (_softplus, 0, 0, 1),
    "log_sigmoid": (scipy.special.log_expit, -INF, 1, 0),
    "silu": (lambda x: x * scipy.special.expit(x), 0, 0, 1),
    "mish": (lambda x: x * np.tanh(_softplus(x)), 0, 0, 1),
    "soft_sign": (lambda x: x / (1 + np.abs(x)), -1, 0, 0),
    "gelu": (_gelu_tanh, 0, 0, 1),
    "gelu exact": (lambda x: x * scipy.special.ndtr(x), 0, 0, 1),
    "squareplus": (lambda x: np.where(x > 0, x + np.hypot(x, 2), 4 / (np.hypot(x, 2) - x)) / 2, 0, 0, 1),
}  # fmt: skip


def activation(name):
    return functools.partial(nn.gelu, approximate=False) if name == "gelu exact" else getattr(nn, name)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_their_values(name):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(activation(name)(GRID), ACTIVATIONS[name][0](GRID), rtol=5e-14, atol=1e-320)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_derivatives(name):
    f, reference = activation(name), ACTIVATIONS[name][0]
    inner = GRID[(np.abs(GRID) < 30) & (np.abs(GRID) > 1e-4)]  # no kink within the step
    h = 1e-5
    slopes = vmap(grad(f))(inner)
    np.testing.assert_allclose(slopes, (reference(inner + h) - reference(inner - h)) / (2 * h), rtol=1e-7, atol=1e-9)
    second = vmap(grad(grad(f)))(inner)
    first = lambda x: np.asarray(vmap(grad(f))(x))  # noqa: E731
    np.testing.assert_allclose(second, (first(inner + h) - first(inner - h)) / (2 * h), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_limits(name):
    f = activation(name)
    _, low, slope_low, slope_high = ACTIVATIONS[name]
    np.testing.assert_allclose(f(-INF), low)
    np.testing.assert_allclose([grad(f)(-INF), grad(f)(INF)], [slope_low, slope_high])
    assert np.isnan(f(math.nan))
    assert not np.isnan([grad(grad(f))(v).item() for v in (-INF, -700.0, 0.0, 700.0, INF)]).any()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_keep_narrow_floats(name):
    x = jnp.asarray(GRID[3:-1], "bfloat16")
    assert activation(name)(x).dtype == jnp.bfloat16
    assert activation(name)(np.array([1, 2])).dtype in (np.int64, np.float64)


def test_second_derivative_of_softplus_at_zero():
    np.testing.assert_allclose(grad(grad(nn.softplus))(0.0), 0.25)
    np.testing.assert_allclose(grad(grad(nn.log_sigmoid))(0.0), -0.25)


def test_log1mexp():
    x = np.array([1e-300, 1e-12, 0.5, 0.6931, 0.7, 30.0, 700.0])
    small = np.where(x < 0.6, x, 1)
    wanted = np.where(x < 0.6, np.log(-np.expm1(-small)), np.log1p(-np.exp(-np.maximum(x, 0.1))))
    np.testing.assert_allclose(nn.log1mexp(x), wanted, rtol=1e-13)
    np.testing.assert_allclose(vmap(grad(nn.log1mexp))(x), np.exp(-x) / -np.expm1(-x), rtol=1e-12)
    assert np.isnan(nn.log1mexp(-1.0))


def test_squareplus_takes_arrays_of_b():
    x, b = np.array([[-1e200], [-3.0], [0.0], [2.0]]), np.array([0.0, 4.0, 9.0])
    y = np.asarray(nn.squareplus(x, b))
    np.testing.assert_allclose(y[1:], (x[1:] + np.sqrt(x[1:] ** 2 + b)) / 2, atol=1e-15)
    np.testing.assert_allclose(grad(nn.squareplus, 1)(3.0, 7.0), 1 / 16, rtol=1e-12)


def test_glu():
    x = np.arange(8.0).reshape(2, 4) - 3
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * scipy.special.expit(x[:, 2:]))
    np.testing.assert_allclose(nn.glu(x, axis=0), x[:1] * scipy.special.expit(x[1:]))
    with pytest.raises(ValueError, match="glu: axis 1 has size 3"):
        nn.glu(np.ones((2, 3)), 1)


@pytest.mark.parametrize("name", ["relu", "silu", "gelu", "softmax", "log_softmax", "standardize"])
def test_eager_and_compiled_and_batched_agree(name):
    f = getattr(nn, name)
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-15)
    np.testing.assert_allclose(vmap(f)(x), f(x), rtol=1e-14)
    assert "pjit" not in str(make_jaxpr(f)(x))


# ---- sums of exponentials --------------------------------------------------------------------------------------------

TAIL = 37.42994775023705  # where 1 + e^-x rounds to 1
SMALL = math.exp(-TAIL)


def test_softmax_and_log_softmax():
    x = np.random.RandomState(0).randn(3, 4, 5) * 4
    for axis in (-1, 0, (0, 2), None):
        np.testing.assert_allclose(nn.softmax(x, axis), scipy.special.softmax(x, axis), rtol=1e-13)
        np.testing.assert_allclose(nn.log_softmax(x, axis), scipy.special.log_softmax(x, axis), rtol=1e-10)


def test_softmax_in_the_tail():
    z = np.array([TAIL, 0.0])
    np.testing.assert_allclose(grad(lambda z: nn.softmax(z)[0])(z), [SMALL, -SMALL], rtol=1e-12)
    np.testing.assert_allclose(jacobians.jacfwd(nn.softmax)(z), [[SMALL, -SMALL], [-SMALL, SMALL]], rtol=1e-12)
    np.testing.assert_allclose(nn.log_softmax(z), [-SMALL, -TAIL], rtol=1e-12)
    np.testing.assert_allclose(jacobians.jacrev(nn.log_softmax)(z), [[SMALL, -SMALL], [-1, 1]], rtol=1e-12)
    wide = np.array([0.0, 800.0, -1e300, -INF])
    assert nn.softmax(wide).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert np.isfinite(jacobians.jacrev(nn.softmax)(wide)).all()


def test_softmax_has_second_derivatives():
    x = np.array([0.3, -1.0, 2.0, 2.0])
    p = scipy.special.softmax(x)
    found = hessian(lambda x: nn.logsumexp(x))(x)
    np.testing.assert_allclose(found, np.diag(p) - np.outer(p, p), atol=1e-15)
    found = hessian(lambda x: nn.log_softmax(x)[1])(x)
    np.testing.assert_allclose(found, np.outer(p, p) - np.diag(p), atol=1e-15)
    h = 1e-6
    first = grad(lambda x: nn.softmax(x)[0])
    near = [(np.asarray(first(x + h * e)) - np.asarray(first(x - h * e))) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(hessian(lambda x: nn.softmax(x)[0])(x), near, atol=1e-9)


def test_masks_hide_entries():
    x = np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0]])
    mask = np.array([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(nn.softmax(x, where=mask), [[*scipy.special.softmax([1.0, 2.0]), 0], [0, 0, 0]])
    assert np.isneginf(nn.log_softmax(x, where=mask)[1]).all()
    np.testing.assert_allclose(nn.logsumexp(x, axis=1, where=mask), [np.logaddexp(1, 2), -INF])
    np.testing.assert_allclose(nn.logmeanexp(x[0], where=mask[0]), np.logaddexp(1, 2) - np.log(2))
    for f in (nn.softmax, lambda x, where: nn.logsumexp(x, axis=1, where=where)):
        slopes = np.asarray(grad(lambda x, f=f: f(x, where=mask)[0].sum())(x))
        assert (slopes[~mask] == 0).all()
    slopes = grad(lambda a: nn.logsumexp(a, where=np.array([True, False])))(np.array([0.0, 1000.0]))
    assert slopes.tolist() == [1.0, 0.0]


def test_logsumexp():
    rng = np.random.RandomState(1)
    a, b = rng.randn(3, 4) * 300, rng.randn(3, 4)
    for axis in (None, 0, 1, (0, 1)):
        np.testing.assert_allclose(nn.logsumexp(a, axis), scipy.special.logsumexp(a, axis), rtol=1e-13)
        found = nn.logsumexp(a, axis, b, keepdims=True, return_sign=True)
        wanted = scipy.special.logsumexp(a, axis, b, keepdims=True, return_sign=True)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-13)
        np.testing.assert_allclose(found[1], wanted[1])
    np.testing.assert_allclose(nn.logsumexp(a + 1j), scipy.special.logsumexp(a + 1j))
    assert np.isnan(nn.logsumexp(np.zeros(2), b=np.array([1.0, -2.0])))


def test_logsumexp_of_infinities():
    assert nn.logsumexp(np.array([INF, 1.0])) == INF
    assert nn.logsumexp(np.array([-INF, -INF])) == -INF
    assert nn.logsumexp(np.zeros((0,))) == -INF
    assert grad(lambda t: nn.logsumexp(jnp.stack([-jnp.inf, -jnp.inf + t])))(1.0) == 0.0
    assert grad(nn.logsumexp)(np.array([-INF, 0.0])).tolist() == [0.0, 1.0]
    np.testing.assert_allclose(nn.logsumexp(np.array([1000.0, 0.0, INF]), b=np.array([0.0, 1.0, 0.0])), 0.0)
    slopes = grad(lambda b: nn.logsumexp(np.array([1.0, 0.0]), b=b))(np.array([0.0, 1.0]))
    np.testing.assert_allclose(slopes, [math.e, 1.0])


def test_standardize():
    x = np.random.RandomState(2).randn(4, 5) * 3 + 2
    wanted = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    np.testing.assert_allclose(nn.standardize(x, 0), wanted, rtol=1e-12)
    far = x + 1e8
    np.testing.assert_allclose(nn.standardize(far, 0, algorithm="stable"), wanted, rtol=1e-6)
    assert np.isfinite(nn.standardize(np.full(7, 1e8 + 0.1))).all()
    mask = x > 0
    m, v = x.mean(where=mask), x.var(where=mask)
    np.testing.assert_allclose(nn.standardize(x, None, where=mask), (x - m) / np.sqrt(v + 1e-5), rtol=1e-12)
    np.testing.assert_allclose(nn.standardize(x, mean=1.0, variance=4.0, epsilon=0.0), (x - 1) / 2)
    with pytest.raises(ValueError, match="'slow'"):
        nn.standardize(x, algorithm="slow")


def test_one_hot():
    x = np.array([[0, 2], [-1, 3]])
    wanted = x[..., None] == np.arange(3)
    np.testing.assert_array_equal(nn.one_hot(x, 3), wanted)
    assert nn.one_hot(x, 3, dtype="bfloat16", axis=0).shape == (3, 2, 2)
    np.testing.assert_array_equal(nn.one_hot(x, 3, dtype=bool, axis=1), np.moveaxis(wanted, -1, 1))


# ---- attention -------------------------------------------------------------------------------------------------------

Q, K, V = (np.random.RandomState(3).randn(2, s, n, 8) for s, n in ((5, 4), (7, 2), (7, 2)))
BIAS = np.random.RandomState(4).randn(2, 4, 5, 7)
MASK = np.random.RandomState(5).rand(2, 1, 5, 7) > 0.3


def reference(q, k, v, bias=0.0, mask=True, scale=None):
    group = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, group, axis=2) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    logits = np.where(mask, np.einsum("btnh,bsnh->bnts", q, k) * scale + bias, -0.7 * float(np.finfo(np.float32).max))
    out = np.einsum("bnts,bsnh->btnh", scipy.special.softmax(logits, -1), v)
    return out, np.moveaxis(scipy.special.logsumexp(logits, -1), 1, 2)


T, S = np.arange(5)[:, None], np.arange(7)[None]
LENGTHS = (T < np.array([3, 5])[:, None, None, None]) & (S < np.array([7, 2])[:, None, None, None])
# options -> what they mean as bias and mask
CASES = {
    "plain": ({}, {}),
    "bias": ({"bias": BIAS}, {"bias": BIAS}),
    "bias for all heads": ({"bias": BIAS[:1, :1]}, {"bias": BIAS[:1, :1]}),
    "mask": ({"mask": MASK, "scale": 0.3}, {"mask": MASK, "scale": 0.3}),
    "causal": ({"is_causal": True}, {"mask": T >= S}),
    "window": ({"local_window_size": 2}, {"mask": abs(T - S) <= 2}),
    "window of two": ({"local_window_size": (1, 3)}, {"mask": (S >= T - 1) & (S <= T + 3)}),
    "all": (
        {"bias": BIAS, "mask": MASK, "is_causal": True, "local_window_size": (2, 0), "implementation": "xla"},
        {"bias": BIAS, "mask": MASK & (T >= S) & (S >= T - 2)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_attention(name):
    options, meaning = CASES[name]
    out, residual = nn.dot_product_attention(Q, K, V, **options, return_residual=True)
    wanted, total = reference(Q, K, V, **meaning)
    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(residual, total, rtol=1e-12)
    np.testing.assert_allclose(nn.dot_product_attention(Q, K, V, **options), wanted, rtol=1e-12, atol=1e-14)


def test_attention_of_sequences_of_different_lengths():
    lengths = {"query_seq_lengths": np.array([3, 5]), "key_value_seq_lengths": np.array([7, 2])}
    out = np.asarray(nn.dot_product_attention(Q, K, V, **lengths))
    wanted = reference(Q, K, V, mask=LENGTHS)[0]
    np.testing.assert_allclose(out[0, :3], wanted[0, :3], rtol=1e-12)
    np.testing.assert_allclose(out[1], wanted[1], rtol=1e-12)
    assert (out[0, 3:] == 0).all()


def test_attention_without_batch():
    out, residual = nn.dot_product_attention(Q[0], K[0], V[0], BIAS[0], return_residual=True)
    wanted, total = reference(Q, K, V, BIAS)
    np.testing.assert_allclose(out, wanted[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(residual, total[0], rtol=1e-12)
    batched = vmap(nn.dot_product_attention)(Q, K, V, BIAS)
    np.testing.assert_allclose(batched, wanted, rtol=1e-12, atol=1e-14)


def test_attention_has_derivatives():
    weights = np.random.RandomState(6).randn(2, 5, 4, 8)
    f = lambda *a: (nn.dot_product_attention(*a, is_causal=True) * weights).sum()  # noqa: E731
    args, h = (Q, K, V, BIAS), 1e-6
    for k, slope in enumerate(grad(f, (0, 1, 2, 3))(*args)):
        v = np.random.RandomState(7).randn(*args[k].shape)
        moved = [[*args[:k], args[k] + s * v, *args[k + 1 :]] for s in (h, -h)]
        np.testing.assert_allclose(np.vdot(slope, v), (f(*moved[0]) - f(*moved[1])) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: nn.dot_product_attention(Q, K[..., :3], V[..., :3]), ValueError, "same batch size and width"),
        (lambda: nn.dot_product_attention(Q, K, V[:, :3]), ValueError, "must have the same shape"),
        (lambda: nn.dot_product_attention(Q[:, :, :3], K, V), ValueError, "multiple"),
        (lambda: nn.dot_product_attention(Q[0, 0], K, V), ValueError, "axes"),
        (lambda: nn.dot_product_attention(Q, K, V, BIAS[:, :3]), ValueError, "bias of shape"),
        (lambda: nn.dot_product_attention(Q, K, V, mask=BIAS), TypeError, "bools"),
        (lambda: nn.dot_product_attention(Q.astype("f"), K, V), TypeError, "one dtype"),
        (lambda: nn.dot_product_attention(Q, K, V, implementation="cudnn"), ValueError, "cudnn"),
        (lambda: nn.relu([1.0]), TypeError, "jnp.array"),
        (lambda: nn.relu(1j), TypeError, "relu: needs real input"),
        (lambda: nn.initializers.he_normal()(random.key(0), (3,)), ValueError, "at least two axes"),
        (lambda: nn.initializers.orthogonal()(random.key(0), (3,)), ValueError, "two axes"),
        (lambda: nn.initializers.delta_orthogonal()(random.key(0), (3, 3)), ValueError, "3, 4 or 5"),
        (lambda: nn.initializers.variance_scaling(1.0, "fan", "normal"), ValueError, "invalid mode"),
        (lambda: nn.initializers.variance_scaling(1.0, "fan_in", "cauchy"), ValueError, "invalid distribution"),
        (lambda: nn.scaled_matmul(Q[0], Q[0], Q[0], Q[0, :, :, :3]), ValueError, "rhs of shape"),
    ],
)
def test_refused(call, exception, message):
    with pytest.raises(exception, match=message):
        call()


def test_scaled_matmul():
    rng = np.random.RandomState(8)
    a, b, s, t = rng.rand(2, 3, 8), rng.rand(2, 4, 8), rng.rand(2, 3, 2), rng.rand(2, 4, 4)
    wanted = np.einsum("bmk,bnk->bmn", a * np.repeat(s, 4, 2), b * np.repeat(t, 2, 2))
    np.testing.assert_allclose(nn.scaled_matmul(a, b, s, t), wanted, rtol=1e-5)


# ---- initializers ----------------------------------------------------------------------------------------------------

VARIANCES = {
    "glorot_normal": 2 / 170, "glorot_uniform": 2 / 170, "he_normal": 2 / 80, "he_uniform": 2 / 80,
    "lecun_normal": 1 / 80, "lecun_uniform": 1 / 80,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("name", VARIANCES)
def test_variances_follow_the_shape(name, dtype):
    drawn = np.asarray(getattr(nn.initializers, name)()(random.key(1), (80, 90), dtype))
    assert drawn.dtype == dtype
    np.testing.assert_allclose(np.mean(np.abs(drawn) ** 2), VARIANCES[name], rtol=0.05)
    assert abs(drawn.mean()) < 0.01


def test_windows_count_for_both_fans():
    init = nn.initializers.variance_scaling(1.0, "fan_out", "normal", in_axis=1, out_axis=0, batch_axis=3)
    drawn = np.asarray(init(random.key(1), (20, 30, 5, 6)))
    np.testing.assert_allclose(drawn.var(), 1 / (20 * 5), rtol=0.05)


def test_orthogonal_columns():
    for shape in ((4, 3), (3, 4), (2, 3, 5)):
        drawn = np.asarray(nn.initializers.orthogonal(2.0)(random.key(1), shape)).reshape(-1, shape[-1])
        small = drawn.T @ drawn if drawn.shape[0] >= drawn.shape[1] else drawn @ drawn.T
        np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)
    window = np.asarray(nn.initializers.delta_orthogonal()(random.key(1), (3, 3, 2, 4)))
    np.testing.assert_allclose(window[1, 1] @ window[1, 1].T, np.eye(2), atol=1e-12)
    assert np.count_nonzero(window) == 8


def test_simple_initializers():
    key = random.key(2)
    init = nn.initializers
    assert init.zeros(key, (2,)).tolist() == [0.0, 0.0]
    assert init.ones(key, 2, np.int32).dtype == np.int32
    assert init.constant(np.arange(3.0))(key, (2, 3)).tolist() == [[0, 1, 2]] * 2
    np.testing.assert_allclose(np.asarray(init.normal(0.1)(key, (10000,))).std(), 0.1, rtol=0.05)
    assert np.abs(init.truncated_normal(0.1)(key, (10000,))).max() <= 0.2
    assert np.asarray(init.uniform(0.1)(key, (10000,))).max() < 0.1
    assert jit(lambda k: init.he_normal()(k, (2, 3)))(key).shape == (2, 3)


def test_complex_numbers_pass_where_they_make_sense():
    z = np.array([0.5 + 1j, -2.0 - 0.3j])
    np.testing.assert_allclose(nn.silu(z), z / (1 + np.exp(-z)), rtol=1e-12)
    np.testing.assert_allclose(nn.softplus(z), np.log(1 + np.exp(z)), rtol=1e-12)
