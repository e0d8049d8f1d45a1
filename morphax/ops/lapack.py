"""Lowerings of linear algebra to LAPACK, one kernel or two each.

Matrices are the last two axes, and all axes before are batches, which the kernels loop over themselves. LAPACK wants
columns one after the other in memory, so operands and results get that layout and XLA transposes where it must. Where a
factorisation fails, its results are NaN.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.trace import stage
from morphax.ops import family
from morphax.support import dtypes

I32 = np.dtype("int32")
_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# Kernels of complex matrices that have a name of their own.
_COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}

# ---- what all share --------------------------------------------------------------------------------------------------


def composed(fun: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Lowering rule of an operation that is a composition of others: `fun` of the operands and parameters."""

    def lower(low: Any, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *operands: Any, **params: Any) -> Any:
        jaxpr, consts = _staged(fun, tuple(ins), tuple(params.items()))
        made = [low.constant(c, family.typeof(c)) for c in consts]
        return low.equations(jaxpr, (*made, *operands))

    return lower


@lru_cache(maxsize=256)
def _staged(fun: Callable[..., Any], ins: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> Any:
    def flat(*operands: Any) -> Any:
        out = fun(*operands, **dict(params))
        return out if isinstance(out, (list, tuple)) else [out]

    return stage(flat, ins)


def _char(letter: str) -> str:
    return f"{ord(letter)} : ui8"


def _layout(aval: ShapedArray, rank: int) -> tuple[int, ...]:
    """Dimensions from the fastest to the slowest: for matrices the column-major order."""
    backwards = tuple(range(aval.ndim - 1, -1, -1))
    return (backwards[1], backwards[0], *backwards[2:]) if aval.ndim == rank else backwards


def _kernel(
    low: Any,
    name: str,
    outs: Sequence[ShapedArray],
    ins: Sequence[ShapedArray],
    operands: Sequence[Any],
    options: dict[str, str] | None = None,
    aliases: dict[int, int] | None = None,
) -> list[Any]:
    """Call a LAPACK kernel; operands and results of the highest rank are matrices."""
    dtype = ins[0].dtype
    if dtypes.is_complex(dtype):
        name = _COMPLEX_NAMES.get(name, name)
    rank = max(a.ndim for a in (*ins, *outs))
    return low.custom_call(
        f"lapack_{_PREFIX[dtype.name]}{name}_ffi",
        outs,
        operands,
        options,
        [_layout(a, rank) for a in ins],
        [_layout(a, rank) for a in outs],
        aliases,
        rank - 2,
    )


def _info(x: ShapedArray) -> ShapedArray:
    return ShapedArray(x.shape[:-2], I32)


def _nan_where_failed(
    low: Any, info: Any, aval: ShapedArray, outs: Sequence[ShapedArray], values: Sequence[Any], lowest: int = 0
) -> list[Any]:
    """The values, NaN in those batches in which the kernel reported an error (`info` below 0, or above `lowest`)."""
    flag = aval.update(dtype=dtypes.bool_)
    good = low.op(
        "stablehlo.compare", (flag,), (info, low.constant(0, aval)), _compare("GE" if lowest < 0 else "EQ")
    )[0]  # fmt: skip
    results = []
    for out, value in zip(outs, values, strict=True):
        everywhere = low.broadcast(good, flag, out.shape, tuple(range(aval.ndim)))
        nan = low.constant(complex(np.nan, np.nan) if dtypes.is_complex(out.dtype) else np.nan, out)
        results += low.op("stablehlo.select", (out,), (everywhere, value, nan))
    return results


def _compare(direction: str) -> dict[str, str]:
    return {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"}


def _zeros(low: Any, outs: Sequence[ShapedArray]) -> list[Any]:
    return [low.constant(0, out) for out in outs]


def _eye(low: Any, out: ShapedArray) -> Any:
    """The identity matrix, also one that is not square."""
    square = out.update(dtype=I32)
    diagonal = low.op("stablehlo.compare", (out.update(dtype=dtypes.bool_),), _places(low, square), _compare("EQ"))
    return low.op("stablehlo.select", (out,), (*diagonal, low.constant(1, out), low.constant(0, out)))[0]


def _places(low: Any, aval: ShapedArray) -> list[Any]:
    """Row and column number of each entry."""
    return [
        low.op("stablehlo.iota", (aval,), (), {"iota_dimension": f"{d} : i64"})[0]
        for d in (aval.ndim - 2, aval.ndim - 1)
    ]


def _triangle(low: Any, out: ShapedArray, x: Any, direction: str) -> Any:
    """Entries of `x` where row `direction` column holds, zeros elsewhere."""
    flag = low.op(
        "stablehlo.compare", (out.update(dtype=dtypes.bool_),), _places(low, out.update(dtype=I32)), _compare(direction)
    )
    return low.op("stablehlo.select", (out,), (*flag, x, low.constant(0, out)))[0]


def _part(low: Any, aval: ShapedArray, x: Any, rows: int, columns: int) -> tuple[Any, ShapedArray]:
    """The first `rows` and `columns` of a matrix."""
    shape = (*aval.shape[:-2], rows, columns)
    if shape == aval.shape:
        return x, aval
    out = aval.update(shape=shape)
    bounds = {
        "start_indices": family.ints((0,) * aval.ndim),
        "limit_indices": family.ints(shape),
        "strides": family.ints((1,) * aval.ndim),
    }
    return low.op("stablehlo.slice", (out,), (x,), bounds)[0], out


def _minus_one(low: Any, aval: ShapedArray, x: Any) -> Any:
    """Numbers of Fortran, counted from 1, as numbers counted from 0."""
    return low.op("stablehlo.subtract", (aval,), (x, low.constant(1, aval)))[0]


# ---- triangular matrices ---------------------------------------------------------------------------------------------


def lower_cholesky(low: Any, ins: Any, outs: Any, x: Any) -> list[Any]:
    """potrf of the lower triangle."""
    if not ins[0].size:
        return [x]
    info = _info(ins[0])
    factor, failed = _kernel(low, "potrf", (outs[0], info), ins, (x,), {"uplo": _char("L")}, {0: 0})
    good = _nan_where_failed(low, failed, info, outs, (factor,))[0]
    return [_triangle(low, outs[0], good, "GE")]


def lower_cholesky_xla(low: Any, ins: Any, outs: Any, x: Any) -> list[Any]:
    """XLA's own decomposition."""
    factor = low.op("stablehlo.cholesky", outs, (x,), {"lower": "true"})[0]
    return [_triangle(low, outs[0], factor, "GE")]


def lower_triangular_solve(
    low: Any, ins: Any, outs: Any, a: Any, b: Any, *,
    left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool,
) -> list[Any]:  # fmt: skip
    """trsm."""
    if not outs[0].size:
        return [b]
    conjugate = conjugate_a and dtypes.is_complex(ins[0].dtype)
    if conjugate and not transpose_a:
        a = low.op("chlo.conj", (ins[0],), (a,))[0]
    options = {
        "side": _char("L" if left_side else "R"),
        "uplo": _char("L" if lower else "U"),
        "trans_x": _char(("C" if conjugate else "T") if transpose_a else "N"),
        "diag": _char("U" if unit_diagonal else "N"),
    }
    return _kernel(low, "trsm", outs, ins, (a, b), options, {0: 1})


def lower_triangular_solve_xla(
    low: Any, ins: Any, outs: Any, a: Any, b: Any, *,
    left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool,
) -> list[Any]:  # fmt: skip
    """XLA's own substitution."""
    if conjugate_a and not transpose_a and dtypes.is_complex(ins[0].dtype):
        a = low.op("chlo.conj", (ins[0],), (a,))[0]
    mode = ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
    attributes = {
        "left_side": str(left_side).lower(),
        "lower": str(lower).lower(),
        "unit_diagonal": str(unit_diagonal).lower(),
        "transpose_a": f"#stablehlo<transpose {mode}>",
    }
    return low.op("stablehlo.triangular_solve", outs, (a, b), attributes)


def lower_tridiagonal_solve(
    low: Any, ins: Any, outs: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool
) -> list[Any]:
    """gtsv, or jaxlib's kernel that replaces pivots of 0 by small ones."""
    out = outs[0]
    if not out.size:
        return [b]
    rank = out.ndim
    if perturb_singular:
        layouts = [_layout(a, rank) for a in ins]
        return low.custom_call(
            "tridiagonal_solve_perturbed_ffi", outs, (dl, d, du, b), None, layouts, layouts[3:], None, rank - 2
        )
    info = _info(out)
    results = (*ins, info)
    aliases = {k: k for k in range(4)}
    solved = _kernel(low, "gtsv", results, ins, (dl, d, du, b), None, aliases)
    return _nan_where_failed(low, solved[4], info, outs, (solved[3],))


# ---- LU --------------------------------------------------------------------------------------------------------------


def lower_lu(low: Any, ins: Any, outs: Any, x: Any) -> list[Any]:
    """getrf. A pivot of 0 is no failure: the factors are right all the same."""
    if not ins[0].size:
        rows = low.op("stablehlo.iota", (outs[2],), (), {"iota_dimension": f"{outs[2].ndim - 1} : i64"})
        return [x, low.constant(0, outs[1]), *rows]
    info = _info(ins[0])
    factors, pivots, failed = _kernel(low, "getrf", (*outs[:2], info), ins, (x,), None, {0: 0})
    pivots = _minus_one(low, outs[1], pivots)
    order = lower_permutation(low, outs[1:2], outs[2:], pivots, permutation_size=outs[2].shape[-1])
    return [*_nan_where_failed(low, failed, info, outs[:1], (factors,), lowest=-1), pivots, *order]


_UNROLLED = 16  # rows: 240 comparisons in one loop over the batch


def lower_permutation(low: Any, ins: Any, outs: Any, pivots: Any, *, permutation_size: int) -> list[Any]:
    """The exchanges that `pivots` asks for, made one after the other."""
    order = low.op("stablehlo.iota", (outs[0],), (), {"iota_dimension": f"{outs[0].ndim - 1} : i64"})[0]
    if not ins[0].size:
        return [order]
    if permutation_size <= _UNROLLED:
        return _exchanged_in_registers(low, ins[0], outs[0], pivots)
    last = ins[0].ndim - 1
    by_row = (last, *range(last))
    rows = [aval.update(shape=(aval.shape[-1], *aval.shape[:-1])) for aval in (ins[0], outs[0])]
    turned = [
        low.op("stablehlo.transpose", (aval,), (x,), {"permutation": family.ints(by_row)})[0]
        for aval, x in zip(rows, (pivots, order), strict=True)
    ]
    moved = _exchanged_in_turn(low, *rows, *turned)
    back = (*range(1, last + 1), 0)
    return low.op("stablehlo.transpose", outs, (moved,), {"permutation": family.ints(back)})


def _exchanged_in_registers(low: Any, pivots: ShapedArray, out: ShapedArray, x: Any) -> list[Any]:
    """Every exchange as a choice between values: one loop over the batch, 100 times faster than one over exchanges."""
    one, flag = pivots.update(shape=pivots.shape[:-1]), pivots.update(shape=pivots.shape[:-1], dtype=dtypes.bool_)
    places = [low.constant(k, one) for k in range(out.shape[-1])]
    order = list(places)
    for k in range(pivots.shape[-1]):
        pivot = _column(low, pivots, one, x, k)
        mine = order[k]
        for j in [j for j in range(len(order)) if j != k]:
            chosen = low.op("stablehlo.compare", (flag,), (pivot, places[j]), _compare("EQ"))[0]
            there = order[j]
            order[j] = low.op("stablehlo.select", (one,), (chosen, mine, there))[0]
            order[k] = low.op("stablehlo.select", (one,), (chosen, there, order[k]))[0]
    column = out.update(shape=(*one.shape, 1))
    columns = [low.op("stablehlo.reshape", (column,), (v,))[0] for v in order]
    return low.op("stablehlo.concatenate", (out,), columns, {"dimension": f"{out.ndim - 1} : i64"})


def _column(low: Any, aval: ShapedArray, one: ShapedArray, x: Any, k: int) -> Any:
    """`x[..., k]`, for a static k."""
    taken = aval.update(shape=(*one.shape, 1))
    none = (0,) * one.ndim
    bounds = {"start_indices": (*none, k), "limit_indices": (*one.shape, k + 1), "strides": (1,) * aval.ndim}
    part = low.op("stablehlo.slice", (taken,), (x,), {name: family.ints(v) for name, v in bounds.items()})
    return low.op("stablehlo.reshape", (one,), part)[0]


def _exchanged_in_turn(low: Any, pivots: ShapedArray, out: ShapedArray, x: Any, order: Any) -> Any:
    """A loop over the exchanges, which come first in both: row k of `order` and the row that `x[k]` names."""
    counter, row = ShapedArray((), I32), out.update(shape=out.shape[1:])
    types = (counter, out, pivots)
    places = low.op("stablehlo.iota", (out,), (), {"iota_dimension": "0 : i64"})[0]

    def more(k: Any, order: Any, pivots_: Any) -> list[Any]:
        end = low.constant(pivots.shape[0], counter)
        return low.op("stablehlo.compare", (counter.update(dtype=dtypes.bool_),), (k, end), _compare("LT"))

    def exchange(k: Any, order: Any, pivots_: Any) -> list[Any]:
        pivot = low.row(pivots_, pivots, k)
        mine = low.row(order, out, k)
        step = low.op("stablehlo.add", (counter,), (k, low.constant(1, counter)))[0]
        if not row.shape:
            other = low.row(order, out, pivot)
            order = low.set_row(order, out, other, k)
            return [step, low.set_row(order, out, mine, pivot), pivots_]
        spread = low.broadcast(pivot, row, out.shape, tuple(range(1, out.ndim)))
        chosen = low.op("stablehlo.compare", (out.update(dtype=dtypes.bool_),), (places, spread), _compare("EQ"))[0]
        masked = low.op("stablehlo.select", (out,), (chosen, order, low.constant(0, out)))[0]
        other = low.reduce("stablehlo.add", out, row, masked, 0, (0,))[0]
        everywhere = low.broadcast(mine, row, out.shape, tuple(range(1, out.ndim)))
        order = low.op("stablehlo.select", (out,), (chosen, everywhere, order))[0]
        return [step, low.set_row(order, out, other, k), pivots_]

    start = (low.constant(0, counter), order, x)
    return low.op("stablehlo.while", types, start, None, ((types, more), (types, exchange)))[1]


# ---- QR --------------------------------------------------------------------------------------------------------------


def lower_qr(
    low: Any, ins: Any, outs: Any, x: Any, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
) -> list[Any]:
    """geqrf or geqp3, and orgqr."""
    a = ins[0]
    m, n = a.shape[-2:]
    k = min(m, n)
    if not a.size:
        order = (
            low.op("stablehlo.iota", (outs[2],), (), {"iota_dimension": f"{outs[2].ndim - 1} : i64"})
            if pivoting
            else []
        )
        return [_eye(low, outs[0]), low.constant(0, outs[1]), *order]
    tau = ShapedArray((*a.shape[:-2], k), a.dtype)
    order = []
    if pivoting:
        free = low.constant(0, outs[2])  # every column may move
        both = {0: 0, 1: 1}
        made, places, taus = _kernel(low, "geqp3", (a, outs[2], tau), (a, outs[2]), (x, free), None, both)
        order = [_minus_one(low, outs[2], places)]
    else:
        made, taus = _kernel(low, "geqrf", (a, tau), ins, (x,), None, {0: 0})
    triangle, _ = _part(low, a, made, outs[1].shape[-2], n)
    triangle = _triangle(low, outs[1], triangle, "LE")
    vectors, columns = _part(low, a, made, m, k)
    if outs[0].shape[-1] > k:
        vectors = _widened(low, columns, vectors, outs[0])
    return [*_kernel(low, "orgqr", outs[:1], (outs[0], tau), (vectors, taus), None, {0: 0}), triangle, *order]


def lower_geqrf(low: Any, ins: Any, outs: Any, x: Any) -> list[Any]:
    """geqrf."""
    if not ins[0].size:
        return [x, low.constant(0, outs[1])]
    return _kernel(low, "geqrf", outs, ins, (x,), None, {0: 0})


def _widened(low: Any, aval: ShapedArray, x: Any, out: ShapedArray) -> Any:
    """`x` with columns of zeros added."""
    none = (0,) * aval.ndim
    high = (*none[:-1], out.shape[-1] - aval.shape[-1])
    edges = {"edge_padding_low": none, "edge_padding_high": high, "interior_padding": none}
    zero = low.constant(0, ShapedArray((), aval.dtype))
    return low.op("stablehlo.pad", (out,), (x, zero), {k: family.ints(v) for k, v in edges.items()})[0]


def lower_householder_product(low: Any, ins: Any, outs: Any, a: Any, taus: Any) -> list[Any]:
    """orgqr."""
    if not outs[0].size:
        return [a]
    return _kernel(low, "orgqr", outs, ins, (a, taus), None, {0: 0})


def lower_ormqr(low: Any, ins: Any, outs: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> list[Any]:
    """ormqr."""
    if not ins[0].size or not ins[2].size:
        return [c]
    options = {"left": str(left).lower(), "transpose": str(transpose).lower()}
    return _kernel(low, "ormqr", outs, ins, (a, taus, c), options, {0: 2})


# ---- spectra ---------------------------------------------------------------------------------------------------------


def lower_svd(
    low: Any, ins: Any, outs: Any, x: Any, *,
    full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any,
) -> list[Any]:  # fmt: skip
    """gesdd, or gesvd where the algorithm is QR."""
    a = ins[0]
    m, n = a.shape[-2:]
    k = min(m, n)
    if not a.size:
        return [low.constant(0, outs[0]), *[_eye(low, out) for out in outs[1:]]]
    batch = a.shape[:-2]
    whole = compute_uv and full_matrices
    u = a.update(shape=(*batch, m, m if whole else k))
    vt = a.update(shape=(*batch, n if whole else k, n))
    info = _info(a)
    name = "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd"
    mode = {"mode": _char(("A" if full_matrices else "S") if compute_uv else "N")}
    _, s, *rest, failed = _kernel(low, name, (a, outs[0], u, vt, info), ins, (x,), mode, {0: 0})
    return _nan_where_failed(low, failed, info, outs, (s, *rest) if compute_uv else (s,))


def lower_eigh(
    low: Any, ins: Any, outs: Any, x: Any, *,
    lower: bool, sort_eigenvalues: bool, subset_by_index: Any, algorithm: Any,
) -> list[Any]:  # fmt: skip
    """syevd: eigenvalues come in rising order."""
    if not ins[0].size:
        return _zeros(low, outs)
    info = _info(ins[0])
    options = {"mode": _char("V"), "uplo": _char("L" if lower else "U")}
    vectors, values, failed = _kernel(low, "syevd", (*outs, info), ins, (x,), options, {0: 0})
    return _nan_where_failed(low, failed, info, outs, (vectors, values))


def _joined(low: Any, out: ShapedArray, re: Any, im: Any) -> Any:
    return low.op("stablehlo.complex", (out,), (re, im))[0]


def lower_eig(
    low: Any,
    ins: Any,
    outs: Any,
    x: Any,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    **_: Any,
) -> list[Any]:
    """geev."""
    a = ins[0]
    if not a.size:
        return _zeros(low, outs)
    is_complex = dtypes.is_complex(a.dtype)
    info = _info(a)
    values = outs[0] if is_complex else outs[0].update(dtype=a.dtype)
    vectors = a.update(dtype=outs[0].dtype)
    parts = 1 if is_complex else 2
    options = {
        "compute_left": _char("V" if compute_left_eigenvectors else "N"),
        "compute_right": _char("V" if compute_right_eigenvectors else "N"),
    }
    results = (*(values,) * parts, vectors, vectors, info)
    *w, left, right, failed = _kernel(low, "geev", results, ins, (x,), options)
    found = [w[0] if is_complex else _joined(low, outs[0], *w)]
    found += [left] * compute_left_eigenvectors + [right] * compute_right_eigenvectors
    return _nan_where_failed(low, failed, info, outs, found)


def lower_schur(
    low: Any, ins: Any, outs: Any, x: Any, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
) -> list[Any]:
    """gees."""
    a = ins[0]
    if not a.size:
        return _zeros(low, outs)
    info = _info(a)
    values = ShapedArray(a.shape[:-1], a.dtype)
    options = {"mode": _char("V" if compute_schur_vectors else "N"), "sort": _char("N")}
    if dtypes.is_complex(a.dtype):
        results = (a, a, values, info, info)
    else:
        results = (a, a, values, values, info, info)
    triangle, vectors, *_, failed = _kernel(low, "gees", results, ins, (x,), options, {0: 0})
    return _nan_where_failed(low, failed, info, outs, (triangle, vectors) if compute_schur_vectors else (triangle,))


def lower_hessenberg(low: Any, ins: Any, outs: Any, x: Any) -> list[Any]:
    """gehrd."""
    if not ins[0].size:
        return _zeros(low, outs)
    info = _info(ins[0])
    options = {"low": "1 : i32", "high": f"{ins[0].shape[-1]} : i32"}
    made, taus, failed = _kernel(low, "gehrd", (*outs, info), ins, (x,), options, {0: 0})
    return _nan_where_failed(low, failed, info, outs, (made, taus))


def lower_tridiagonal(low: Any, ins: Any, outs: Any, x: Any, *, lower: bool) -> list[Any]:
    """sytrd."""
    if not ins[0].size:
        return _zeros(low, outs)
    info = _info(ins[0])
    options = {"uplo": _char("L" if lower else "U")}
    *made, failed = _kernel(low, "sytrd", (*outs, info), ins, (x,), options, {0: 0})
    return _nan_where_failed(low, failed, info, outs, made)


# ---- updates ---------------------------------------------------------------------------------------------------------


def lower_cholesky_update(low: Any, ins: Any, outs: Any, r: Any, w: Any) -> list[Any]:
    """Givens rotations, one for each row, that turn `w` into zeros."""
    if not ins[0].size:
        return [r]
    *batch, n, _ = ins[0].shape
    first = (ins[0].ndim - 2, *range(ins[0].ndim - 2), ins[0].ndim - 1)
    rows = ins[0].update(shape=(n, *batch, n))
    row, one = ins[1], ins[1].update(shape=tuple(batch))
    counter = ShapedArray((), I32)
    r = low.op("stablehlo.transpose", (rows,), (r,), {"permutation": family.ints(first)})[0]

    def more(k: Any, r: Any, w: Any) -> list[Any]:
        return low.op(
            "stablehlo.compare", (counter.update(dtype=dtypes.bool_),), (k, low.constant(n, counter)), _compare("LT")
        )

    def rotate(k: Any, r: Any, w: Any) -> list[Any]:
        def both(name: str, x: Any, y: Any, aval: ShapedArray = row) -> Any:
            return low.op(f"stablehlo.{name}", (aval,), (x, y))[0]

        mine = low.row(r, rows, k)
        diagonal, entry = _entry(low, row, one, mine, k), _entry(low, row, one, w, k)
        size = low.op(
            "stablehlo.sqrt",
            (one,),
            (both("add", both("multiply", diagonal, diagonal, one), both("multiply", entry, entry, one), one),),
        )[0]
        is_zero = low.op(
            "stablehlo.compare", (one.update(dtype=dtypes.bool_),), (size, low.constant(0, one)), _compare("EQ")
        )[0]
        safe = low.op("stablehlo.select", (one,), (is_zero, low.constant(1, one), size))[0]
        cosine = low.op(
            "stablehlo.select", (one,), (is_zero, low.constant(1, one), both("divide", diagonal, safe, one))
        )[0]
        sine = both("divide", entry, safe, one)
        c, s = (low.broadcast(v, one, row.shape, tuple(range(len(batch)))) for v in (cosine, sine))
        turned = both("add", both("multiply", c, mine), both("multiply", s, w))
        w = both("subtract", both("multiply", c, w), both("multiply", s, mine))
        step = low.op("stablehlo.add", (counter,), (k, low.constant(1, counter)))[0]
        return [step, low.set_row(r, rows, turned, k), w]

    types = (counter, rows, row)
    start = low.constant(0, counter)
    ended = low.op("stablehlo.while", types, (start, r, w), None, ((types, more), (types, rotate)))
    back = (*range(1, rows.ndim - 1), 0, rows.ndim - 1)
    turned = low.op("stablehlo.transpose", outs, (ended[1],), {"permutation": family.ints(back)})[0]
    return [_triangle(low, outs[0], turned, "LE")]


def _entry(low: Any, row: ShapedArray, one: ShapedArray, x: Any, k: Any) -> Any:
    """`x[..., k]`."""
    taken = row.update(shape=(*one.shape, 1))
    zero = low.constant(0, ShapedArray((), I32))
    starts = [zero] * one.ndim + [k]
    part = low.op("stablehlo.dynamic_slice", (taken,), (x, *starts), {"slice_sizes": family.ints(taken.shape)})
    return low.op("stablehlo.reshape", (one,), part)[0]
