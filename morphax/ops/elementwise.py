"""Elementwise operations, one row each: name, dtypes, lowering, derivative."""

from typing import Any

from morphax.ir.primitive import ONE, Primitive, is_unknown
from morphax.ops import family
from morphax.ops.family import elementwise_type, like, lower_as, typeof
from morphax.support import dtypes


def _unary(name: str, kinds: str, opname: str, derivative: Any = None, **more: Any) -> Primitive:
    story = {} if "nondiff" in more or "linear" in more or "jvp" in more else {"partials": (derivative,)}
    return Primitive(
        name, type=elementwise_type(name, kinds), lower=lower_as(opname), elementwise=True, **story, **more
    )


def _binary(name: str, kinds: str, opname: str, *derivatives: Any, **more: Any) -> Primitive:
    story = {} if "nondiff" in more or "linear" in more or "jvp" in more else {"partials": derivatives}
    return Primitive(
        name, type=elementwise_type(name, kinds), lower=lower_as(opname), elementwise=True, **story, **more
    )


def _unbroadcast(ct: Any, operand: Any) -> Any:
    """Cotangent of an operand that may have been a scalar among arrays."""
    if not operand.aval.shape and typeof(ct).shape:
        return reduce_sum(ct, axes=tuple(range(typeof(ct).ndim)))
    return ct


def _lower_reduce_sum(low: Any, ins: Any, outs: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    return low.reduce("stablehlo.add", ins[0], outs[0], x, 0, axes)


# reduce_sum stands here, not among the reductions, since the transpose of a scalar's broadcast is a sum.
reduce_sum = Primitive(
    "reduce_sum",
    type=lambda x, *, axes: x.update(shape=tuple([s for i, s in enumerate(x.shape) if i not in axes])),
    lower=_lower_reduce_sum,
    linear=(0,),
    transpose=lambda ct, x, *, axes: (broadcast(ct, x.aval.shape, axes),),
    batch=family.shift_params("axes"),
)


def _lower_broadcast(low: Any, ins: Any, outs: Any, x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any) -> Any:
    return [low.broadcast(x, ins[0], shape, broadcast_dimensions)]


def _broadcast_type(x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any) -> Any:
    if len(broadcast_dimensions) != x.ndim or any(
        x.shape[i] not in (1, shape[d]) for i, d in enumerate(broadcast_dimensions)
    ):
        raise TypeError(
            f"broadcast_in_dim: an operand of shape {x.shape} does not fit shape {shape} at dimensions "
            f"{broadcast_dimensions}. Each operand dimension must be 1 or the size of the one it goes to."
        )
    return x.update(shape=tuple(shape))


def _broadcast_transpose(ct: Any, x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any) -> Any:
    kept = [d for i, d in enumerate(broadcast_dimensions) if x.aval.shape[i] == shape[d]]
    summed = tuple([d for d in range(len(shape)) if d not in kept])
    ct = reduce_sum(ct, axes=summed) if summed else ct
    if typeof(ct).shape != x.aval.shape:
        at = tuple([i for i, d in enumerate(broadcast_dimensions) if x.aval.shape[i] == shape[d]])
        ct = broadcast_in_dim(ct, shape=x.aval.shape, broadcast_dimensions=at, sharding=None)
    return (ct,)


def _broadcast_batch(prim: Any, size: int, operands: Any, flags: Any, params: Any) -> Any:
    dims = (0, *family.shift(params["broadcast_dimensions"]))
    return [broadcast_in_dim(operands[0], shape=(size, *params["shape"]), broadcast_dimensions=dims, sharding=None)]


broadcast_in_dim = Primitive(
    "broadcast_in_dim",
    type=_broadcast_type,
    lower=_lower_broadcast,
    linear=(0,),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
)


def broadcast(x: Any, shape: tuple[int, ...], new_axes: tuple[int, ...]) -> Any:
    """`x` with the axes `new_axes` of `shape` added."""
    dims = tuple([d for d in range(len(shape)) if d not in new_axes])
    return broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=dims, sharding=None)


def full(shape: tuple[int, ...], value: Any) -> Any:
    """An array of `shape` filled with a scalar."""
    return broadcast_in_dim(value, shape=tuple(shape), broadcast_dimensions=(), sharding=None) if shape else value


def zeros(aval: Any) -> Any:
    """Zeros of that type."""
    return full(aval.shape, family.scalar(0, aval.dtype))


# ---- arithmetic ------------------------------------------------------------------------------------------------------

neg = _unary("neg", "fciu", "stablehlo.negate", linear=(0,), transpose=lambda ct, x: (neg(ct),))

add = _binary(
    "add", "fciub", "stablehlo.add", ONE, ONE,
    transpose=lambda ct, x, y: (
        _unbroadcast(ct, x) if is_unknown(x) else None,
        _unbroadcast(ct, y) if is_unknown(y) else None,
    ),
)  # fmt: skip

sub = _binary(
    "sub", "fciu", "stablehlo.subtract", ONE, lambda z, x, y: like(z, -1),
    transpose=lambda ct, x, y: (
        _unbroadcast(ct, x) if is_unknown(x) else None,
        _unbroadcast(neg(ct), y) if is_unknown(y) else None,
    ),
)  # fmt: skip


def _mul_transpose(ct: Any, x: Any, y: Any) -> Any:
    if is_unknown(x):
        return _unbroadcast(mul(ct, y), x), None
    return None, _unbroadcast(mul(x, ct), y)


mul = _binary(
    "mul", "fciub", "stablehlo.multiply", lambda z, x, y: y, lambda z, x, y: x, transpose=_mul_transpose
)

# The second partial reuses the quotient: d(x/y)/dy = -(x/y)/y.
div = _binary(
    "div", "fciu", "stablehlo.divide",
    lambda z, x, y: div(like(y, 1), y), lambda z, x, y: neg(div(z, y)),
    transpose=lambda ct, x, y: (_unbroadcast(div(ct, y), x), None),
)  # fmt: skip

sin = _unary("sin", "fc", "stablehlo.sine", lambda y, x: cos(x))
cos = _unary("cos", "fc", "stablehlo.cosine", lambda y, x: neg(sin(x)))
exp = _unary("exp", "fc", "stablehlo.exponential", lambda y, x: y)
log = _unary("log", "fc", "stablehlo.log", lambda y, x: div(like(x, 1), x))
tanh = _unary("tanh", "fc", "stablehlo.tanh", lambda y, x: sub(like(y, 1), mul(y, y)))


# ---- selection -------------------------------------------------------------------------------------------------------


def _select_type(which: Any, *cases: Any) -> Any:
    if which.dtype.name not in ("bool", "int32"):
        raise TypeError(f"select_n: the selector must be bool or int32; it is {which}. Compare, or convert it.")
    if which.dtype.name == "bool" and len(cases) > 2:
        raise TypeError(f"select_n: a bool selector chooses between two cases; {len(cases)} were given.")
    shape = family.common_shape("select_n", (which, *cases))
    return family.joined("select_n", cases, shape, family.common_dtype("select_n", cases))


def _lower_select(low: Any, ins: Any, outs: Any, which: Any, *cases: Any) -> Any:
    shape = outs[0].shape
    cases = family.spread(low, ins[1:], shape, cases)
    if len(cases) == 1:
        return cases
    if ins[0].dtype.name == "bool":
        return low.op("stablehlo.select", outs, (which, cases[1], cases[0]))
    chosen = cases[-1]
    for k in range(len(cases) - 2, -1, -1):  # from the last: case k where which <= k
        bound = low.constant(k, ins[0])
        flag = ins[0].update(dtype=dtypes.bool_)
        attributes = {"comparison_direction": "#stablehlo<comparison_direction LE>"}
        below = low.op("stablehlo.compare", (flag,), (which, bound), attributes)[0]
        below = below if ins[0].shape or not shape else low.broadcast(below, flag, shape, ())
        chosen = low.op("stablehlo.select", outs, (below, cases[k], chosen))[0]
    return [chosen]


def _select_transpose(ct: Any, which: Any, *cases: Any) -> Any:
    nothing = like(ct, 0)
    cts: list[Any] = [None]
    for k, case in enumerate(cases):
        mine = [ct if i == k else nothing for i in range(len(cases))]
        cts.append(_unbroadcast(select_n(which, *mine), case) if is_unknown(case) else None)
    return tuple(cts)


def _select_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    out = select_n(which, *cases)
    if not dtypes.is_inexact(typeof(out).dtype):
        return out, None
    nothing = like(out, 0)
    given = [nothing if t is None else t for t in tangents[1:]]
    shape = typeof(out).shape
    if all(not typeof(t).shape for t in given):  # the selector decides the shape, and may be a scalar
        given[0] = full(shape, given[0])
    return out, select_n(which, *given)


select_n = Primitive(
    "select_n",
    type=_select_type,
    lower=_lower_select,
    jvp=_select_jvp,
    transpose=_select_transpose,
    elementwise=True,
)
