"""Linear algebra: factorisations and solves of matrices, which are the last two axes of their operands.

Derivatives are those of the function that is computed, which reads one triangle only of a symmetric matrix.

[Murray] I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527, 2016.
[Walter] S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra functions, arXiv:1001.1654, 2010.
[Ballard] G. Ballard et al., Reconstructing Householder vectors from tall-skinny QR, J. Par. Dist. Comp. 85, 2015.
[Schreiber] R. Schreiber, C. Van Loan, A storage-efficient WY representation, SIAM J. Sci. Stat. Comp. 10, 1989.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.primitive import Primitive
from morphax.ops import elementwise as ew
from morphax.ops import family, indexing, lapack, small, structure
from morphax.ops.family import like, typeof
from morphax.ops.matrices import (
    ALL,
    I32,
    adjoint,
    as_dtype_of,
    batch_all,
    check_batches,
    check_matrix,
    conjugate,
    diagonal,
    identity,
    lower_part,
    on_cpu,
    on_diagonal,
    part,
    places,
    product,
    real_part,
    row,
    scale_columns,
    scale_rows,
    square_type,
    total,
    transposed,
    upper_part,
    with_taus,
)
from morphax.support import dtypes

# ---- Cholesky --------------------------------------------------------------------------------------------------------


def hermitian_from(x: Any, lower: bool) -> Any:
    """The symmetric or Hermitian matrices whose lower, or upper, triangle `x` has."""
    triangle = lower_part(x, -1) if lower else upper_part(x, 1)
    middle = as_dtype_of(real_part(on_diagonal(x)), x)
    return ew.add(middle, ew.add(triangle, adjoint(triangle)))


def _half_lower(x: Any) -> Any:
    """The lower triangle with its diagonal halved."""
    return ew.sub(lower_part(x), ew.mul(on_diagonal(x), like(x, 0.5)))


def _cholesky_jvp(primals: Any, tangents: Any) -> Any:
    # L^-1 dA L^-H is P + P^H where dL = L P, P lower triangular [Murray, (8)].
    factor = cholesky(primals[0])
    (t,) = tangents
    if t is None:
        return factor, None
    return factor, product(factor, _half_lower(_whitened(factor, hermitian_from(t, lower=True))))


def _whitened(factor: Any, x: Any) -> Any:
    """L^-1 x L^-H."""
    right = solve_triangular(factor, x, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    return solve_triangular(factor, right, left_side=True, lower=True)


cholesky = row(
    "cholesky",
    type=square_type("cholesky"),
    lower={"cpu": lapack.lower_cholesky, "default": lapack.lower_cholesky_xla},
    jvp=_cholesky_jvp,
)


def _update_type(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    _, n = check_matrix("cholesky_update", r, square=True)
    family.check_kind("cholesky_update", r.dtype, "f")
    check_batches("cholesky_update", (r, 2), (w, 1))
    if w.shape[-1] != n:
        raise ValueError(f"cholesky_update: a vector of shape {w.shape} does not fit matrices of shape {r.shape}.")
    return r


def _update_jvp(primals: Any, tangents: Any) -> Any:
    # With S^T S = R^T R + w w^T, the Cholesky factor S^T has the derivative of its matrix.
    (r, w), (tr, tw) = primals, tangents
    out = cholesky_update(r, w)
    r, tr = upper_part(r), None if tr is None else upper_part(tr)
    column = structure.expand_dims(w, (-1,))
    half = None if tr is None else product(transposed(r), tr)
    if tw is not None:
        half = total(half, product(column, structure.expand_dims(tw, (-2,))))
    factor = transposed(out)
    moved = _whitened(factor, ew.add(half, transposed(half)))
    return out, transposed(product(factor, _half_lower(moved)))


cholesky_update = row("cholesky_update", type=_update_type, lower=lapack.lower_cholesky_update, jvp=_update_jvp)


def _symmetric_product_type(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    m, _ = check_matrix("symmetric_product", a)
    check_batches("symmetric_product", (a, 2), (c, 2))
    if c.shape[-2:] != (m, m):
        raise ValueError(
            f"symmetric_product: c of shape {c.shape} does not fit a a^T of shape {(*a.shape[:-2], m, m)}."
        )
    return family.joined("symmetric_product", (a, c), c.shape, c.dtype)


def _symmetric_product(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    scaled = ew.mul(product(a, transposed(a)), like(a, alpha))
    return ew.add(scaled, ew.mul(c, like(c, beta))) if beta else scaled


def _symmetric_product_jvp(primals: Any, tangents: Any, *, alpha: float, beta: float) -> Any:
    (a, c), (ta, tc) = primals, tangents
    half = None if ta is None else ew.mul(product(ta, transposed(a)), like(a, alpha))
    moved = None if half is None else ew.add(half, transposed(half))
    moved = total(moved, None if tc is None else ew.mul(tc, like(tc, beta)))
    return symmetric_product(a, c, alpha=alpha, beta=beta), moved


symmetric_product = row(
    "symmetric_product",
    type=_symmetric_product_type,
    lower=lapack.composed(_symmetric_product),
    jvp=_symmetric_product_jvp,
)


# ---- triangular and tridiagonal solves -------------------------------------------------------------------------------


def _check_sides(name: str, n: int, a: ShapedArray, b: ShapedArray, left_side: bool = True) -> None:
    check_batches(name, (a, 2), (b, 2))
    if b.shape[-2 if left_side else -1] != n:
        raise ValueError(
            f"{name}: b of shape {b.shape} does not fit a of shape {a.shape} on its "
            f"{'left' if left_side else 'right'}; it needs {n} {'rows' if left_side else 'columns'}."
        )


def _triangular_type(a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: Any) -> ShapedArray:
    _, n = check_matrix("triangular_solve", a, square=True)
    _check_sides("triangular_solve", n, a, b, left_side)
    return family.joined("triangular_solve", (a, b), b.shape, b.dtype)


def solve_triangular(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool = False, conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """x where op(a) x = b, or x op(a) = b, for a triangular matrix a."""
    return triangular_solve(
        a, b, conjugate_a=conjugate_a, left_side=left_side, lower=lower, transpose_a=transpose_a,
        unit_diagonal=unit_diagonal,
    )  # fmt: skip


def _triangular_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # op(A) X = B: dX = op(A)^-1 (dB - op(dA) X).
    (a, b), (ta, tb) = primals, tangents
    x = triangular_solve(a, b, **params)
    moved = None
    if ta is not None:
        offset = 1 if params["unit_diagonal"] else 0
        moved = lower_part(ta, -offset) if params["lower"] else upper_part(ta, offset)
        moved = transposed(moved) if params["transpose_a"] else moved
        moved = conjugate(moved) if params["conjugate_a"] else moved
        moved = ew.neg(product(moved, x) if params["left_side"] else product(x, moved))
    return x, triangular_solve(a, total(moved, tb), **params)


def _triangular_transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> Any:
    return None, triangular_solve(a, ct, transpose_a=not transpose_a, **params)


def _by_columns(size: int, flag: bool, x: Any, side: int) -> Any:
    """A batch of matrices as more columns (axis -1) or rows (axis -2) of one."""
    x = structure.move_axis(x, 0, side - 1 if side == -1 else -3)
    shape = typeof(x).shape
    if side == -1:
        return structure.reshape_to(x, (*shape[:-2], shape[-2] * shape[-1]))
    return structure.reshape_to(x, (*shape[:-3], shape[-3] * shape[-2], shape[-1]))


def _from_columns(size: int, x: Any, side: int) -> Any:
    shape = typeof(x).shape
    if side == -1:
        return structure.move_axis(structure.reshape_to(x, (*shape[:-1], size, shape[-1] // size)), -2, 0)
    return structure.move_axis(structure.reshape_to(x, (*shape[:-2], size, shape[-2] // size, shape[-1])), -3, 0)


def _solve_batch(factors: int, side: Callable[[Any], int]) -> Callable[..., Any]:
    """Batch rule of solves: right-hand sides of one matrix stand beside each other, and are solved as one."""

    def rule(prim: Primitive, size: int, operands: Any, flags: Any, params: Any) -> Any:
        if any(flags[:factors]) or not size:
            return batch_all(prim, size, operands, flags, params)
        axis = side(params)
        wide = _by_columns(size, True, operands[factors], axis)
        return [_from_columns(size, prim(*operands[:factors], wide, **params), axis)]

    return rule


triangular_solve = row(
    "triangular_solve",
    type=_triangular_type,
    lower={
        "cpu": small.where_small(small.triangular_solve, lapack.lower_triangular_solve),
        "default": lapack.lower_triangular_solve_xla,
    },
    jvp=_triangular_jvp,
    transpose=_triangular_transpose,
    batch=_solve_batch(1, lambda params: -1 if params["left_side"] else -2),
)


def _tridiagonal_solve_type(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> ShapedArray:
    m, _ = check_matrix("tridiagonal_solve", b)
    check_batches("tridiagonal_solve", (dl, 1), (d, 1), (du, 1), (b, 2))
    for name, x in (("dl", dl), ("d", d), ("du", du)):
        if x.shape[-1] != m:
            raise ValueError(
                f"tridiagonal_solve: {name} of shape {x.shape} needs as many entries as b, {b.shape}, has rows."
            )
    return family.joined("tridiagonal_solve", (dl, d, du, b), b.shape, b.dtype)


def _rolled(x: Any, by: int) -> Any:
    """Rows moved down (1) or up (-1), zeros coming in."""
    axis = typeof(x).ndim - 1
    config = [(0, 0, 0)] * axis + [(by, -by, 0)]
    return structure.pad(x, like(x, 0), padding_config=tuple(config))


def _tridiagonal_solve_jvp(primals: Any, tangents: Any, *, perturb_singular: bool) -> Any:
    *bands, b = primals
    x = tridiagonal_solve(*bands, b, perturb_singular=perturb_singular)
    if all(t is None for t in tangents):
        return x, None
    turned = transposed(x)
    moved = None
    for t, by in zip(tangents[:3], (1, 0, -1), strict=True):
        if t is not None:
            neighbour = transposed(_rolled(turned, by) if by else turned)
            moved = total(moved, scale_rows(neighbour, t))
    right = total(None if moved is None else ew.neg(moved), tangents[3])
    return x, tridiagonal_solve(*bands, right, perturb_singular=perturb_singular)


def _tridiagonal_solve_transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> Any:
    return None, None, None, tridiagonal_solve(_rolled(du, 1), d, _rolled(dl, -1), ct, **params)


tridiagonal_solve = row(
    "tridiagonal_solve",
    type=_tridiagonal_solve_type,
    lower=on_cpu("tridiagonal_solve", lapack.lower_tridiagonal_solve),
    jvp=_tridiagonal_solve_jvp,
    transpose=_tridiagonal_solve_transpose,
    batch=_solve_batch(3, lambda params: -1),
)


# ---- LU and general solves -------------------------------------------------------------------------------------------


def _lu_type(x: ShapedArray) -> tuple[ShapedArray, ...]:
    m, n = check_matrix("lu", x)
    pivots = ShapedArray((*x.shape[:-2], min(m, n)), I32)
    return x, pivots, ShapedArray((*x.shape[:-2], m), I32)


def take_rows(x: Any, rows: Any) -> Any:
    """Rows of matrices in the order `rows`, which holds each once."""
    shape = typeof(x).shape
    spread = ew.broadcast(rows, shape, (len(shape) - 1,))
    return indexing.take_along(x, spread, len(shape) - 2, unique=True)


def inverse_order(order: Any) -> Any:
    """The permutation that undoes another."""
    axis = typeof(order).ndim - 1
    shape = typeof(order).shape
    n = shape[axis]
    square = (*shape, n)
    hit = ew.eq(ew.broadcast(order, square, (axis + 1,)), structure.iota_along(I32, square, axis + 1))
    return ew.reduce_sum(ew.select_n(hit, np.int32(0), structure.iota_along(I32, square, axis)), axes=(axis,))


def _squared(x: Any, size: int) -> Any:
    """A triangular factor made square: zeros added, and ones on the diagonal that was added."""
    shape = typeof(x).shape
    m, n = shape[-2:]
    if m == n:
        return x
    config = [(0, 0, 0)] * (len(shape) - 2) + [(0, size - m, 0), (0, size - n, 0)]
    padded = structure.pad(x, like(x, 0), padding_config=tuple(config))
    full = typeof(padded).shape
    rows, columns = places(full)
    added = ew.and_(ew.eq(rows, columns), ew.ge(rows, like(rows, min(m, n))))
    return ew.select_n(added, padded, like(x, 1))


def _lu_jvp(primals: Any, tangents: Any) -> Any:
    # P A = L U: L^-1 P dA U^-1 = L^-1 dL + dU U^-1, of which the first is strictly lower, the second upper triangular.
    # Factors that are not square are completed by an identity.
    (a,), (t,) = primals, tangents
    factors, pivots, order = lu(a)
    outs = [factors, pivots, order]
    if t is None:
        return outs, [None] * 3
    m, n = typeof(a).shape[-2:]
    k = min(m, n)
    left = _squared(_unit_lower(part(factors, ALL, slice(k))), m)
    right = _squared(upper_part(part(factors, slice(k), ALL)), n)
    moved = solve_triangular(left, take_rows(t, order), left_side=True, lower=True, unit_diagonal=True)
    moved = solve_triangular(right, moved, left_side=False, lower=False)
    return outs, [ew.add(product(left, lower_part(moved, -1)), product(upper_part(moved), right)), None, None]


def _unit_lower(x: Any) -> Any:
    """The strictly lower part with ones on the diagonal."""
    rows, columns = places(typeof(x).shape)
    return ew.select_n(ew.eq(rows, columns), lower_part(x, -1), like(x, 1))


_LOWER_LU = on_cpu("lu", lapack.lower_lu)

lu = row(
    "lu",
    type=_lu_type,
    lower={platform: small.where_small(small.lu, rule) for platform, rule in _LOWER_LU.items()},
    jvp=_lu_jvp,
    multiple=True,
)


def _permutation_type(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != I32 or not pivots.ndim or pivots.shape[-1] > permutation_size:
        raise ValueError(
            f"lu_pivots_to_permutation: pivots must be int32, and at most permutation_size, {permutation_size}, many; "
            f"they are {pivots}."
        )
    return pivots.update(shape=(*pivots.shape[:-1], permutation_size))


lu_pivots_to_permutation = row(
    "lu_pivots_to_permutation",
    type=_permutation_type,
    lower=lapack.lower_permutation,
    nondiff="its result is integers",
)


def lu_solve(factors: Any, order: Any, b: Any, *, transpose: bool = False, conjugate: bool = False) -> Any:
    """x where a x = b, or with a^T or a^H in place of a, from the result of `lu(a)`."""
    if not transpose:
        y = solve_triangular(factors, take_rows(b, order), left_side=True, lower=True, unit_diagonal=True)
        return solve_triangular(factors, y, left_side=True, lower=False)
    turned = {"left_side": True, "transpose_a": True, "conjugate_a": conjugate}
    y = solve_triangular(factors, b, lower=False, **turned)
    return take_rows(solve_triangular(factors, y, lower=True, unit_diagonal=True, **turned), inverse_order(order))


def _solve_type(a: ShapedArray, factors: ShapedArray, order: ShapedArray, b: ShapedArray, *, transpose: bool) -> Any:
    _, n = check_matrix("solve", a, square=True)
    _check_sides("solve", n, a, b)
    return family.joined("solve", (a, b), b.shape, b.dtype)


def _solve_jvp(primals: Any, tangents: Any, *, transpose: bool) -> Any:
    # A X = B: dX = A^-1 (dB - dA X), with the factors that are there.
    (a, factors, order, b), (ta, _, _, tb) = primals, tangents
    x = solve_factored(a, factors, order, b, transpose=transpose)
    if ta is None and tb is None:
        return x, None
    moved = None if ta is None else ew.neg(product(transposed(ta) if transpose else ta, x))
    return x, solve_factored(a, factors, order, total(moved, tb), transpose=transpose)


# x where a x = b, or a^T x = b. It computes with the factors of `lu(a)`; `a` carries the derivative.
solve_factored = row(
    "solve",
    type=_solve_type,
    lower=lapack.composed(lambda a, factors, order, b, *, transpose: lu_solve(factors, order, b, transpose=transpose)),
    jvp=_solve_jvp,
    transpose=lambda ct, a, factors, order, b, *, transpose: (
        None, None, None, solve_factored(a, factors, order, ct, transpose=not transpose)
    ),
    batch=_solve_batch(3, lambda params: -1),
)  # fmt: skip


def solve(a: Any, b: Any, transpose: bool = False) -> Any:
    """x where a x = b for square matrices a, or a^T x = b."""
    factors, _, order = lu(ew.stop_gradient(a))
    return solve_factored(a, factors, order, b, transpose=transpose)


# ---- QR --------------------------------------------------------------------------------------------------------------


def _qr_type(x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: Any) -> tuple[ShapedArray, ...]:
    m, n = check_matrix("qr", x)
    k = m if full_matrices else min(m, n)
    outs = (x.update(shape=(*x.shape[:-2], m, k)), x.update(shape=(*x.shape[:-2], k, n)))
    return (*outs, ShapedArray((*x.shape[:-2], n), I32)) if pivoting else outs


def _qr_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (a,), (t,) = primals, tangents
    outs = list(qr(a, **params))
    if t is None:
        return outs, [None] * len(outs)
    if params["pivoting"]:
        a, t = (transposed(take_rows(transposed(x), outs[2])) for x in (a, t))
    q, r = outs[:2]
    shape = typeof(a).shape
    m, n = shape[-2:]
    k = min(m, n)
    first = part(q, ALL, slice(k))
    tq, tr = _qr_tangents(first, part(r, slice(k), ALL), t)
    if typeof(q).shape[-1] > k:
        # The columns that complete Q have no equation of their own: they follow from how LAPACK makes them.
        packed, taus = geqrf(a)
        moved = _reflector_tangents(first, tq, tr, packed, taus)
        wide = [structure.pad(x, like(x, 0), padding_config=((0, 0, 0),) * (len(shape) - 1) + ((0, m - k, 0),)) for x in
                (packed, moved[0])]  # fmt: skip
        tq = _reflected_tangent(wide[0], taus, wide[1], moved[1], identity((*shape[:-1], m), typeof(a).dtype), False)
        tr = structure.pad(tr, like(tr, 0), padding_config=((0, 0, 0),) * (len(shape) - 2) + ((0, m - k, 0), (0, 0, 0)))
    return outs, [tq, tr, *[None] * (len(outs) - 2)]


def _qr_tangents(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    """Tangents of the reduced factors."""
    # With M = Q^H dA R^-1, dQ = Q W + (1 - Q Q^H) dA R^-1 and dR = (M - W) R, where W is skew and M - W upper
    # triangular [Walter, section 3.3]. LAPACK's R has a real diagonal, so that of W is the imaginary part of M's.
    k, n = typeof(r).shape[-2:]
    square = part(r, ALL, slice(k))
    scaled = solve_triangular(square, part(t, ALL, slice(k)), left_side=False, lower=False)
    m = product(adjoint(q), scaled)
    strict = lower_part(m, -1)
    skew = ew.sub(strict, adjoint(strict))
    if dtypes.is_complex(typeof(m).dtype):
        middle = on_diagonal(m)
        skew = ew.add(skew, ew.sub(middle, as_dtype_of(real_part(middle), m)))
    rest = ew.sub(m, skew)
    tq, tr = ew.sub(scaled, product(q, rest)), product(rest, square)
    if n > k:  # the columns of R that are left: R2 = Q^H A2
        others = slice(k, n)
        carried = product(product(adjoint(tq), q), part(r, ALL, others))
        moved = ew.add(carried, product(adjoint(q), part(t, ALL, others)))
        tr = structure.concatenate(tr, moved, dimension=typeof(r).ndim - 1)
    return tq, tr


qr = row("qr", type=_qr_type, lower=on_cpu("qr", lapack.lower_qr), jvp=_qr_jvp, multiple=True)


def _geqrf_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (t,) = primals, tangents
    packed, taus = geqrf(a)
    if t is None:
        return [packed, taus], [None, None]
    k = typeof(taus).shape[-1]
    q = householder_product(part(packed, ALL, slice(k)), taus)
    tq, tr = _qr_tangents(q, upper_part(part(packed, slice(k), ALL)), t)
    return [packed, taus], _reflector_tangents(q, tq, tr, packed, taus)


def _reflector_tangents(q: Any, tq: Any, tr: Any, packed: Any, taus: Any) -> list[Any]:
    """Tangents of what geqrf returns, from those of the reduced factors."""
    # Q1 = E1 - V T V1^H, so that Q1 - E1 = V U with U = -T V1^H is an LU factorisation [Ballard, (4)].
    shape = typeof(packed).shape
    m, k = shape[-2], typeof(taus).shape[-1]
    v = _unit_lower(part(packed, ALL, slice(k)))
    v1 = part(v, slice(k), ALL)
    one = {"left_side": True, "lower": True, "unit_diagonal": True}
    u = solve_triangular(v1, ew.sub(part(q, slice(k), ALL), identity((*shape[:-2], k, k), typeof(q).dtype)), **one)
    u = upper_part(u)
    # A reflection that does nothing has tau = 0. The last one of a square matrix does, and has no vector to move.
    idle = ew.and_(ew.eq(*places(typeof(u).shape)), ew.eq(u, like(u, 0)))
    moved = solve_triangular(ew.select_n(idle, u, like(u, 1)), tq, left_side=False, lower=False)
    whole = _squared(v, m)
    tv = product(whole, lower_part(solve_triangular(whole, moved, **one), -1))
    tv1 = part(tv, slice(k), ALL)
    tu = solve_triangular(v1, ew.sub(part(tq, slice(k), ALL), product(tv1, u)), **one)
    # tau is the diagonal of T = -U V1^-H.
    over = {"left_side": False, "lower": True, "transpose_a": True, "conjugate_a": True, "unit_diagonal": True}
    triangle = solve_triangular(v1, u, **over)
    tt = solve_triangular(v1, ew.sub(tu, product(triangle, adjoint(tv1))), **over)
    below = lower_part(tv, -1)
    if shape[-1] > k:
        below = structure.pad(
            below, like(below, 0), padding_config=((0, 0, 0),) * (len(shape) - 1) + ((0, shape[-1] - k, 0),)
        )
    above = tr
    if m > k:
        above = structure.pad(
            tr, like(tr, 0), padding_config=((0, 0, 0),) * (len(shape) - 2) + ((0, m - k, 0), (0, 0, 0))
        )
    return [ew.add(below, upper_part(above)), ew.neg(diagonal(tt))]


geqrf = row(
    "geqrf", type=with_taus("geqrf"), lower=on_cpu("geqrf", lapack.lower_geqrf), jvp=_geqrf_jvp, multiple=True
)  # fmt: skip


def _check_taus(name: str, a: ShapedArray, taus: ShapedArray) -> None:
    check_batches(name, (a, 2), (taus, 1))
    if taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(
            f"{name}: {taus.shape[-1]} taus do not fit reflectors of shape {a.shape}; there can be {min(a.shape[-2:])}."
        )


def _householder_type(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    m, n = check_matrix("householder_product", a)
    _check_taus("householder_product", a, taus)
    if m < n:
        raise ValueError(
            f"householder_product: needs at least as many rows as columns; the operand has shape {a.shape}."
        )
    return a


def _reflected_tangent(a: Any, taus: Any, ta: Any, ttaus: Any, c: Any, inverse: bool) -> Any:
    """Tangent of Q c, or of Q^H c, where the reflectors move and c does not."""
    # Q = 1 - V T V^H, T = D (1 + S D)^-1 with D the taus and S the strict upper triangle of V^H V [Schreiber, (2.5)].
    k = typeof(taus).shape[-1]
    v = _unit_lower(part(a, ALL, slice(k)))
    vh = adjoint(v)
    s = upper_part(product(vh, v), 1)
    system = ew.add(identity(typeof(s).shape, typeof(s).dtype), scale_columns(s, taus))
    tsystem, tv = None, None
    if ta is not None:
        tv = lower_part(part(ta, ALL, slice(k)), -1)
        half = product(vh, tv)
        tsystem = scale_columns(upper_part(ew.add(half, adjoint(half)), 1), taus)
    if ttaus is not None:
        tsystem = total(tsystem, scale_columns(s, ttaus))
    if not inverse:
        x, tx = _coefficients(system, tsystem, vh, tv, taus, ttaus, c)
    else:
        x, tx = _inverse_coefficients(system, tsystem, vh, tv, taus, ttaus, c)
    return ew.neg(total(None if tv is None else product(tv, x), product(v, tx)))


def _coefficients(system: Any, tsystem: Any, vh: Any, tv: Any, taus: Any, ttaus: Any, c: Any) -> tuple[Any, Any]:
    """T V^H c and its tangent."""
    under = {"left_side": True, "lower": False, "unit_diagonal": True}
    y = solve_triangular(system, product(vh, c), **under)
    right = total(None if tv is None else product(adjoint(tv), c), ew.neg(product(tsystem, y)))
    moved = scale_rows(solve_triangular(system, right, **under), taus)
    return scale_rows(y, taus), total(moved, None if ttaus is None else scale_rows(y, ttaus))


def _inverse_coefficients(
    system: Any, tsystem: Any, vh: Any, tv: Any, taus: Any, ttaus: Any, c: Any
) -> tuple[Any, Any]:
    """T^H V^H c and its tangent."""
    under = {"left_side": True, "lower": False, "unit_diagonal": True, "transpose_a": True, "conjugate_a": True}
    along, factors = product(vh, c), conjugate(taus)
    x = solve_triangular(system, scale_rows(along, factors), **under)
    right = total(
        None if ttaus is None else scale_rows(along, conjugate(ttaus)),
        None if tv is None else scale_rows(product(adjoint(tv), c), factors),
        ew.neg(product(adjoint(tsystem), x)),
    )
    return x, solve_triangular(system, right, **under)


def _householder_jvp(primals: Any, tangents: Any) -> Any:
    (a, taus), (ta, ttaus) = primals, tangents
    aval = typeof(a)
    c = identity(aval.shape, aval.dtype)
    return householder_product(a, taus), _reflected_tangent(a, taus, ta, ttaus, c, False)


householder_product = row(
    "householder_product",
    type=_householder_type,
    lower=on_cpu("householder_product", lapack.lower_householder_product),
    jvp=_householder_jvp,
)


def _ormqr_type(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool) -> ShapedArray:
    m, _ = check_matrix("ormqr", a)
    _check_taus("ormqr", a, taus)
    check_batches("ormqr", (a, 2), (c, 2))
    if c.shape[-2 if left else -1] != m or a.shape[-1] != taus.shape[-1]:
        raise ValueError(
            f"ormqr: reflectors of shape {a.shape} with taus of shape {taus.shape} do not fit c of shape {c.shape} on "
            f"its {'left' if left else 'right'}. It needs one column for each tau, and rows as c has "
            f"{'rows' if left else 'columns'}."
        )
    return c


def _ormqr_jvp(primals: Any, tangents: Any, *, left: bool, transpose: bool) -> Any:
    (a, taus, c), (ta, ttaus, tc) = primals, tangents
    out = ormqr(a, taus, c, left=left, transpose=transpose)
    moved = None if tc is None else ormqr(a, taus, tc, left=left, transpose=transpose)
    if ta is not None or ttaus is not None:
        if left:
            by_factors = _reflected_tangent(a, taus, ta, ttaus, c, transpose)
        else:  # c Q = (Q^H c^H)^H
            by_factors = adjoint(_reflected_tangent(a, taus, ta, ttaus, adjoint(c), not transpose))
        moved = total(moved, by_factors)
    return out, moved


ormqr = row(
    "ormqr",
    type=_ormqr_type,
    lower=on_cpu("ormqr", lapack.lower_ormqr),
    jvp=_ormqr_jvp,
    transpose=lambda ct, a, taus, c, *, left, transpose: (
        None, None, conjugate(ormqr(a, taus, conjugate(ct), left=left, transpose=not transpose))
    ),
)  # fmt: skip
