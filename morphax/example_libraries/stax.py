"""Neural networks as pairs of functions: `init_fun(rng, input_shape) -> (output_shape, params)` and
`apply_fun(params, inputs, rng=None) -> outputs`. Layers are such pairs; combinators make pairs of pairs.

>>> from morphax import random, numpy as jnp
>>> init, apply = serial(Dense(8), Relu, Dense(3), LogSoftmax)
>>> shape, params = init(random.key(0), (-1, 4))
>>> shape
(-1, 3)
>>> apply(params, jnp.ones((2, 4))).shape
(2, 3)
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from morphax import lax, nn, random
from morphax import numpy as jnp
from morphax.nn.activations import log_softmax as logsoftmax
from morphax.nn.initializers import glorot_normal as glorot
from morphax.nn.initializers import normal as randn
from morphax.nn.initializers import ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "glorot",
    "logsoftmax",
    "ones",
    "parallel",
    "randn",
    "serial",
    "shape_dependent",
    "zeros",
]

Layer = tuple[Callable[..., Any], Callable[..., Any]]
_WEIGHTS, _BIAS, _SMALL_BIAS = glorot(), randn(), randn(1e-6)

# ---- with parameters -------------------------------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Any = _WEIGHTS, b_init: Any = _BIAS) -> Layer:
    """x W + b.

    Args:
        out_dim: last size of the outputs.
        W_init: initializer of the matrix.
        b_init: of the vector.
    """

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        weights_key, bias_key = random.split(rng)
        weights = W_init(weights_key, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(bias_key, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return jnp.dot(inputs, weights) + bias

    return init_fun, apply_fun


def _kernel_shape(spec: str, channels: int, out_chan: int, filter_shape: Sequence[int]) -> tuple[int, ...]:
    sizes = iter(filter_shape)
    return tuple([out_chan if c == "O" else channels if c == "I" else next(sizes) for c in spec])


def _convolution(
    transposed: bool,
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any,
    padding: Any,
    W_init: Any,
    b_init: Any,
) -> Layer:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = tuple(strides) if strides else (1,) * len(filter_shape)
    weights_init = W_init or glorot(rhs_spec.index("I"), rhs_spec.index("O"))

    def convolve(inputs: Any, weights: Any) -> Any:
        function = lax.conv_transpose if transposed else lax.conv_general_dilated
        return function(inputs, weights, strides, padding, dimension_numbers=dimension_numbers)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        kernel = _kernel_shape(rhs_spec, input_shape[lhs_spec.index("C")], out_chan, filter_shape)
        bias = tuple([out_chan if c == "C" else 1 for c in out_spec])
        weights_key, bias_key = random.split(rng)
        shape_function = lax.conv_transpose_shape_tuple if transposed else lax.conv_general_shape_tuple
        out = shape_function(tuple(input_shape), kernel, strides, padding, dimension_numbers)
        return tuple(map(int, out)), (weights_init(weights_key, kernel), b_init(bias_key, bias))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return convolve(inputs, weights) + bias

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL_BIAS,
) -> Layer:
    """Convolution plus a vector over channels.

    Args:
        dimension_numbers: such as ("NHWC", "HWIO", "NHWC"): of inputs, kernel and outputs.
        out_chan: channels of the outputs.
        filter_shape: of the kernel's window.
        strides: of the window; ones for None.
        padding: "VALID", "SAME", or pairs.
        W_init: initializer of the kernel; `glorot` for None.
        b_init: of the vector.
    """
    return _convolution(False, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL_BIAS,
) -> Layer:
    """Transposed convolution plus a vector over channels; arguments as in `GeneralConv`."""
    return _convolution(True, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: Any = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """`nn.standardize` over the axes, times gamma, plus beta. Ioffe, Szegedy: arXiv 1502.03167.

    Args:
        axis: over which mean and variance are taken.
        epsilon: added to the variance.
        center: whether there is a beta.
        scale: whether there is a gamma.
        beta_init: initializer of beta.
        gamma_init: of gamma.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple([size for d, size in enumerate(input_shape) if d not in axes])
        keys = random.split(rng)
        beta = beta_init(keys[0], shape) if center else ()
        gamma = gamma_init(keys[1], shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        line = [1 if d in axes else size for d, size in enumerate(jnp.shape(x))]
        z = nn.standardize(x, axes, epsilon=epsilon)
        z = jnp.reshape(gamma, line) * z if scale else z
        return z + jnp.reshape(beta, line) if center else z

    return init_fun, apply_fun


# ---- without parameters ----------------------------------------------------------------------------------------------


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer that applies a function of arrays; `fun_kwargs` go to it."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init_fun, apply_fun


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity = elementwise(lambda x: x)


def _pooling(reducer: Callable[..., Any], start: float, rescale: Any = None) -> Callable[..., Layer]:
    def Pool(
        window_shape: Sequence[int], strides: Any = None, padding: Any = "VALID", spec: str | None = None
    ) -> Layer:
        """Pooling over windows.

        Args:
            window_shape: of the axes that are neither batch nor channel.
            strides: of the window; ones for None.
            padding: "VALID", "SAME", or pairs.
            spec: names of the axes, "N" and "C" among them; batch first and channel last for None.
        """
        strides = tuple(strides) if strides else (1,) * len(window_shape)
        names = spec or "N" + "W" * len(window_shape) + "C"
        window, steps = iter(window_shape), iter(strides)
        dims = tuple([1 if c in "NC" else next(window) for c in names])
        moves = tuple([1 if c in "NC" else next(steps) for c in names])

        def pool(x: Any) -> Any:
            return lax.reduce_window(x, jnp.asarray(start, x.dtype)[()], reducer, dims, moves, padding)

        def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
            pads = lax.padtype_to_pads(input_shape, dims, moves, padding) if isinstance(padding, str) else padding
            pairs = zip(input_shape, dims, moves, pads, strict=True)
            return tuple([(int(n) + sum(p) - w) // s + 1 for n, w, s, p in pairs]), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            out = pool(inputs)
            return rescale(out, inputs, pool) if rescale else out

        return init_fun, apply_fun

    return Pool


MaxPool = _pooling(lax.max, -math.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, lambda out, inputs, pool: out / pool(jnp.ones_like(inputs)))


def _flattened(shape: Sequence[int]) -> tuple[int, ...]:
    return (shape[0], math.prod(shape[1:]))


Flatten: Layer = (
    lambda rng, input_shape: (_flattened(input_shape), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (jnp.shape(inputs)[0], -1)),
)


def FanOut(num: int) -> Layer:
    """The layer that gives its input `num` times."""
    return lambda rng, shape: ([shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(jnp.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """The layer that joins its inputs along an axis."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        place = axis % len(input_shape[0])
        total = sum(shape[place] for shape in input_shape)
        return (*input_shape[0][:place], total, *input_shape[0][place + 1 :]), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: Any, mode: str = "train") -> Layer:
    """Entries are kept with probability `rate`, over which they are divided; the others become 0.

    Args:
        rate: probability to be kept.
        mode: "train"; otherwise the layer changes nothing.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout: apply_fun needs a random key: apply_fun(params, inputs, rng=random.key(0)).")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, jnp.shape(inputs)), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# ---- combinators -----------------------------------------------------------------------------------------------------


def _keys(rng: Any, count: int) -> Any:
    return random.split(rng, count) if rng is not None else (None,) * count


def serial(*layers: Layer) -> Layer:
    """The layers one after another."""
    inits, applies = zip(*layers, strict=True)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in inits:
            rng, key = random.split(rng)
            input_shape, param = init(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for apply, param, key in zip(applies, params, keys, strict=True):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers beside each other: a sequence of inputs, one for each, gives a sequence of outputs."""
    inits, applies = zip(*layers, strict=True)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        pairs = [init(key, shape) for init, key, shape in zip(inits, keys, input_shape, strict=True)]
        return [shape for shape, _ in pairs], [params for _, params in pairs]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        rows = zip(applies, params, inputs, keys, strict=True)
        return [apply(p, x, rng=key, **kwargs) for apply, p, x, key in rows]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer that `make_layer` makes of the input shape, once that is known."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(jnp.shape(inputs))[1](params, inputs, **kwargs)

    return init_fun, apply_fun
