"""Attention, and products of matrices in scaled low precision."""

import math
from typing import Any

import numpy as np

from morphax.nn import activations
from morphax.numpy import creation, promotion, shapes, sorting
from morphax.numpy.einsum import einsum  # by name: the function `einsum` hides its module
from morphax.ops import contract
from morphax.ops import elementwise as ew
from morphax.ops.family import like, typeof
from morphax.runtime.jit import program
from morphax.support import dtypes

where = sorting.where

# ---- masks -----------------------------------------------------------------------------------------------------------


def _allowed(
    queries: int, keys: int, is_causal: bool, window: tuple[int, int] | None, query_lengths: Any, key_lengths: Any
) -> Any:
    """Which query may see which key, shape (1 or B, 1, T, S); None for all."""
    t = creation.arange(queries)[:, None]
    s = creation.arange(keys)[None, :]
    allowed: Any = None
    if is_causal:
        allowed = t >= s
    if window is not None:
        near = (s >= t - window[0]) & (s <= t + window[1])
        allowed = near if allowed is None else allowed & near
    allowed = None if allowed is None else allowed[None, None]
    for lengths, place in ((query_lengths, t), (key_lengths, s)):
        if lengths is not None:
            within = place[None, None] < promotion.array("dot_product_attention", lengths)[:, None, None, None]
            allowed = within if allowed is None else allowed & within
    return allowed


def _grouped(x: Any, heads: int, groups: int) -> Any:
    """(B or 1, N or 1, T, S) as (B or 1, K or 1, G or 1, T, S)."""
    shape = typeof(x).shape
    if shape[1] == 1:
        return shapes.reshape(x, (shape[0], 1, 1, *shape[2:]))
    return shapes.reshape(x, (shape[0], heads, groups, *shape[2:]))


# What hidden logits become: finite, so that rows in which all are hidden are means, not NaN.
_HIDDEN = -0.7 * float(np.finfo(np.float32).max)


@program("is_causal", "window", "residual")
def _attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    mask: Any,
    scale: Any,
    query_lengths: Any,
    key_lengths: Any,
    is_causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> Any:
    """Attention of arrays with a batch axis; letters as in `dot_product_attention`."""
    batch, queries, count, width = typeof(query).shape
    keys, heads = typeof(key).shape[1:3]
    groups = count // heads
    dtype = typeof(query).dtype
    work = dtypes.promote(dtype, False, np.dtype(np.float32), False)[0]
    q = shapes.reshape(query, (batch, queries, heads, groups, width))
    logits = einsum("btkgh,bskh->bkgts", q, key, preferred_element_type=work)
    logits = logits * promotion.as_dtype(1 / math.sqrt(width) if scale is None else scale, work)
    if bias is not None:
        logits = logits + _grouped(bias, heads, groups).astype(work)
    allowed = _allowed(queries, keys, is_causal, window, query_lengths, key_lengths)
    for seen in (mask, allowed):
        if seen is not None:
            logits = where(_grouped(seen, heads, groups), logits, like(logits, _HIDDEN))
    weights = activations.softmax(logits).astype(typeof(value).dtype)
    out = einsum("bkgts,bskh->btkgh", weights, value)
    out = shapes.reshape(out, typeof(query).shape).astype(dtype)
    if query_lengths is not None:
        live = creation.arange(queries)[None, :] < promotion.array("dot_product_attention", query_lengths)[:, None]
        out = where(live[:, :, None, None], out, like(out, 0))
    if not residual:
        return out
    total = activations.logsumexp(logits, axis=-1).astype(dtype)
    total = shapes.reshape(shapes.moveaxis(total, 3, 1), (batch, queries, count))
    return out, ew.stop_gradient(total)


def _check_attention(query: Any, key: Any, value: Any) -> None:
    """Raise ValueError for shapes that do not fit, TypeError for unequal dtypes."""
    q, k, v = typeof(query), typeof(key), typeof(value)
    if q.ndim not in (3, 4) or k.ndim != q.ndim:
        raise ValueError(
            "dot_product_attention: query and key must both have axes (batch, length, heads, width) or "
            f"(length, heads, width); got shapes {q.shape} and {k.shape}."
        )
    if k.shape != v.shape:
        raise ValueError(f"dot_product_attention: key {k.shape} and value {v.shape} must have the same shape.")
    if q.shape[:-3] != k.shape[:-3] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"dot_product_attention: query {q.shape} and key {k.shape} must have the same batch size and width."
        )
    if not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ValueError(
            f"dot_product_attention: the number of query heads, {q.shape[-2]}, must be a multiple of that of key "
            f"heads, {k.shape[-2]}."
        )
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            "dot_product_attention: query, key and value must have one dtype; got "
            f"{q.dtype.name}, {k.dtype.name} and {v.dtype.name}. Convert them with astype."
        )


def _check_logit_operand(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    """Bias or mask with as many axes as the logits.

    Raises:
        ValueError: its shape does not broadcast to theirs.
    """
    if x is None:
        return None
    x = promotion.array("dot_product_attention", x)
    found = typeof(x).shape
    wide = found if len(found) == 4 else (1, *found)
    if len(found) not in (3, 4) or any(a not in (1, b) for a, b in zip(wide, shape, strict=True)):
        raise ValueError(
            f"dot_product_attention: {name} of shape {found} does not broadcast to (batch, heads, queries, keys) = "
            f"{shape}. Give each axis that size or 1."
        )
    return shapes.reshape(x, wide)


_IMPLEMENTATIONS = ("xla", None)


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: Any = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(scale Q K^T + bias) V for each head. Vaswani et al.: arXiv 1706.03762.

    Args:
        query: shape (B, T, N, H) or (T, N, H): batch, queries, heads, width.
        key: shape (B, S, K, H) or (S, K, H). N is a multiple of K: each head of `key` serves N / K of `query`
            (grouped queries, arXiv 2305.13245).
        value: as `key`.
        bias: added to the logits, shape that broadcasts to (B, N, T, S).
        mask: bools, as `bias`: which query sees which key. A query that sees none gets the mean of `value`.
        scale: of the logits; 1 / sqrt(H) for None.
        is_causal: query t sees no key after t.
        query_seq_lengths: ints of shape (B,): rows of the result beyond are 0.
        key_value_seq_lengths: ints of shape (B,): keys beyond are not seen.
        local_window_size: how far before and after itself a query sees: (before, after), or one int for both.
        implementation: "xla" or None, which is the same.
        return_residual: also return the logarithm of the sum of the exponentials of the logits, shape (B, T, N) or
            (T, N), without derivative.

    Returns:
        Array as `query`; with `return_residual` a pair.

    Raises:
        ValueError: shapes that do not fit, or another implementation.  TypeError: unequal dtypes, a mask of numbers.

    >>> from morphax import nn, numpy as jnp
    >>> x = jnp.ones((1, 4, 2, 8))
    >>> nn.dot_product_attention(x, x, x, is_causal=True).shape
    (1, 4, 2, 8)
    """
    if implementation not in _IMPLEMENTATIONS:
        raise ValueError(
            f"dot_product_attention: no implementation {implementation!r} here. Use 'xla', or None, which chooses."
        )
    query, key, value = (promotion.array("dot_product_attention", x) for x in (query, key, value))
    _check_attention(query, key, value)
    single = typeof(query).ndim == 3
    if single:
        query, key, value = (shapes.expand_dims(x, 0) for x in (query, key, value))
    batch, queries, count = typeof(query).shape[:3]
    logits = (batch, count, queries, typeof(key).shape[1])
    bias, mask = (_check_logit_operand(n, x, logits) for n, x in (("bias", bias), ("mask", mask)))
    if mask is not None and typeof(mask).dtype != np.bool_:
        raise TypeError(f"dot_product_attention: mask must be bools, got {typeof(mask).dtype.name}. Pass bias instead.")
    window = local_window_size
    if isinstance(window, (int, np.integer)):
        window = (int(window), int(window))
    options = {"is_causal": bool(is_causal), "window": window and tuple(window), "residual": bool(return_residual)}
    lengths = (query_seq_lengths, key_value_seq_lengths)
    out = _attention(query, key, value, bias, mask, scale, *lengths, **options)
    if not single:
        return out
    return tuple([shapes.squeeze(x, 0) for x in out]) if return_residual else shapes.squeeze(out, 0)


# ---- scaled products -------------------------------------------------------------------------------------------------


def _unscaled(name: str, x: Any, scales: Any) -> Any:
    """x times its scales, each for a block along the last axis, as float32.

    Raises:
        ValueError: shapes that do not fit.
    """
    a, b = typeof(x).shape, typeof(scales).shape
    if len(a) != 3 or len(b) != 3 or a[:2] != b[:2] or not b[2] or a[2] % b[2]:
        raise ValueError(
            f"scaled_matmul: {name} of shape {a} needs scales of shape {a[:2]} and a last size that divides its own; "
            f"got {b}."
        )
    return x.astype(np.float32) * sorting.repeat(scales.astype(np.float32), a[2] // b[2], axis=2)


@program("preferred_element_type")
def _scaled_matmul(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any) -> Any:
    lhs, rhs, lhs_scales, rhs_scales = (promotion.array("scaled_matmul", x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    x, y = _unscaled("lhs", lhs, lhs_scales), _unscaled("rhs", rhs, rhs_scales)
    return einsum("bmk,bnk->bmn", x, y, preferred_element_type=np.float32).astype(preferred_element_type)


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = np.float32
) -> Any:
    """Products of batches of matrices whose entries are stored in blocks with a scale each.

    Args:
        lhs: shape (B, M, K).
        rhs: shape (B, N, K).
        lhs_scales: shape (B, M, K / block): each scale belongs to a block along the last axis.
        rhs_scales: shape (B, N, K / block), of its own block size.
        preferred_element_type: dtype of the result, shape (B, M, N); sums are taken in float32.

    Raises:
        ValueError: shapes that do not fit.

    >>> from morphax import nn, numpy as jnp
    >>> a, b = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]])
    >>> half = jnp.full((1, 1, 1), 0.5)
    >>> nn.scaled_matmul(a, b, half, half).tolist()
    [[[8.0]]]
    """
    named = dtypes.named_dtype(preferred_element_type)
    return _scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=named)


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> Any:
    """How `scaled_dot_general` stores an operand.

    Raises:
        NotImplementedError: always: operands are not quantized here.
    """
    raise NotImplementedError(
        f"get_scaled_dot_general_config: {mode!r} is not supported. Quantize the operands, then use scaled_matmul."
    )


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Any = None,
    implementation: str | None = None,
) -> Any:
    """`lax.dot_general` of its operands; `implementation` is not used.

    Raises:
        NotImplementedError: with `configs`, which ask for operands in low precision.

    >>> from morphax import nn, numpy as jnp
    >>> nn.scaled_dot_general(jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ()))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if configs is not None:
        raise NotImplementedError(
            "scaled_dot_general: configs are not supported. Leave them out, or use scaled_matmul."
        )
    lhs, rhs = promotion.same_dtype("scaled_dot_general", (lhs, rhs))
    (lc, rc), (lb, rb) = dimension_numbers
    named = dtypes.named_dtype(preferred_element_type)
    return contract.dot(lhs, rhs, ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))), None, named)
