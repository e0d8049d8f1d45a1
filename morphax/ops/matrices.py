"""What linear algebra is made of: matrices as the last two axes, their triangles and diagonals, and how its operations
are declared."""

from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.primitive import Primitive
from morphax.ops import contract, family, structure
from morphax.ops import elementwise as ew
from morphax.ops.family import like, typeof
from morphax.support import dtypes

I32 = np.dtype("int32")

# ---- matrices --------------------------------------------------------------------------------------------------------


def transposed(x: Any) -> Any:
    """`x` with its last two axes exchanged."""
    ndim = typeof(x).ndim
    return structure.transpose(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real operands as they are."""
    dtype = typeof(x).dtype
    return ew.conj(x, input_dtype=dtype) if dtypes.is_complex(dtype) else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return conjugate(transposed(x))


def product(x: Any, y: Any) -> Any:
    """Matrix products of the last two axes, in full precision; all axes before are the same in both."""
    ndim = typeof(x).ndim
    batch = tuple(range(ndim - 2))
    return contract.dot(x, y, (((ndim - 1,), (ndim - 2,)), (batch, batch)), "highest")


def places(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Row and column number of each entry."""
    return tuple([structure.iota_along(I32, shape, d) for d in (len(shape) - 2, len(shape) - 1)])


def lower_part(x: Any, offset: int = 0) -> Any:
    """`x` with zeros above the diagonal number `offset`."""
    rows, columns = places(typeof(x).shape)
    return ew.select_n(ew.ge(ew.add(rows, like(rows, offset)), columns), like(x, 0), x)


def upper_part(x: Any, offset: int = 0) -> Any:
    """`x` with zeros below the diagonal number `offset`."""
    rows, columns = places(typeof(x).shape)
    return ew.select_n(ew.le(ew.add(rows, like(rows, offset)), columns), like(x, 0), x)


def on_diagonal(x: Any) -> Any:
    """`x` with zeros off the diagonal."""
    return ew.select_n(ew.eq(*places(typeof(x).shape)), like(x, 0), x)


def off_diagonal(x: Any) -> Any:
    """`x` with zeros on the diagonal."""
    return ew.select_n(ew.eq(*places(typeof(x).shape)), x, like(x, 0))


def diagonal(x: Any) -> Any:
    """The diagonal of square matrices."""
    return ew.reduce_sum(on_diagonal(x), axes=(typeof(x).ndim - 1,))


def identity(shape: tuple[int, ...], dtype: Any) -> Any:
    """Ones on the diagonal, zeros elsewhere."""
    return ew.convert(ew.eq(*places(shape)), dtype)


def along(x: Any, shape: tuple[int, ...], axis: int) -> Any:
    """A vector of factors, one for each row (axis -2) or column (-1) of matrices of that shape."""
    return ew.broadcast(x, shape, (len(shape) - 1 if axis == -2 else len(shape) - 2,))


def scale_columns(x: Any, factors: Any) -> Any:
    """Each column of `x` multiplied by its factor."""
    return ew.mul(x, along(factors, typeof(x).shape, -1))


def scale_rows(x: Any, factors: Any) -> Any:
    """Each row of `x` multiplied by its factor."""
    return ew.mul(x, along(factors, typeof(x).shape, -2))


def real_part(x: Any) -> Any:
    """The real part; real operands as they are."""
    return ew.real(x) if dtypes.is_complex(typeof(x).dtype) else x


def as_dtype_of(x: Any, y: Any) -> Any:
    """`x` in the dtype of `y`."""
    return ew.convert(x, typeof(y).dtype)


def part(x: Any, rows: slice, columns: slice) -> Any:
    """Some rows and columns of matrices."""
    shape = typeof(x).shape
    bounds = [(0, s) for s in shape[:-2]] + [rows.indices(shape[-2])[:2], columns.indices(shape[-1])[:2]]
    if all(b == (0, s) for b, s in zip(bounds, shape, strict=True)):
        return x
    starts, limits = zip(*bounds, strict=True)
    return structure.slice(x, start_indices=starts, limit_indices=limits, strides=None)


ALL = slice(None)


def total(*terms: Any) -> Any:
    """Sum of those terms that are there (not None)."""
    found = None
    for term in terms:
        if term is not None:
            found = term if found is None else ew.add(found, term)
    return found


# ---- what all operations share ---------------------------------------------------------------------------------------


def check_matrix(name: str, x: ShapedArray, square: bool = False) -> tuple[int, int]:
    """Rows and columns of an operand that must be matrices of floats or complex numbers."""
    if x.ndim < 2:
        raise ValueError(
            f"{name}: the operand must be a matrix, or an array of them; it has shape {x.shape}. Reshape it."
        )
    if x.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise TypeError(
            f"{name}: does not accept dtype {x.dtype.name}; it takes float32, float64, complex64 and complex128. "
            "Convert the operand first."
        )
    m, n = x.shape[-2:]
    if square and m != n:
        raise ValueError(f"{name}: the operand must be square matrices; it has shape {x.shape}.")
    return m, n


def check_batches(name: str, *operands: tuple[ShapedArray, int]) -> None:
    """Refuse operands (type, axes of one) that differ in dtype or in the axes before those of one."""
    family.common_dtype(name, [x for x, _ in operands])
    shapes = [x.shape[: x.ndim - own] for x, own in operands]
    if any(shape != shapes[0] for shape in shapes) or any(x.ndim < own for x, own in operands):
        listed = ", ".join(str(x.shape) for x, _ in operands)
        raise ValueError(f"{name}: operands of shapes {listed} differ in their batch axes. Broadcast them first.")


def batch_all(prim: Primitive, size: int, operands: Any, flags: Any, params: Any) -> Any:
    """All operations here work on batches: those without one are repeated."""
    outs = prim(*[structure.batched(x, f, size) for x, f in zip(operands, flags, strict=True)], **params)
    return list(outs) if prim.multiple else [outs]


def row(name: str, *, type: Callable[..., Any], lower: Any, **story: Any) -> Primitive:
    """One operation; it works on batches as they are."""
    return Primitive(name, type=type, lower=lower, batch=story.pop("batch", batch_all), **story)


def on_cpu(name: str, rule: Any) -> dict[str, Any]:
    """Lowerings of an operation that only the CPU has a kernel for."""

    def elsewhere(low: Any, *_: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"{name}: there is no kernel for platform {low.platform!r}; it runs on the CPU only. Move the operands "
            "with device_put(x, devices('cpu')[0])."
        )

    return {"cpu": rule, "default": elsewhere}


def no_derivative(name: str, instead: str) -> Callable[..., Any]:
    """Derivative rule that refuses, so that no gradient is silently zero."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{name}: its derivative is not implemented. {instead}")

    return jvp


def square_type(name: str) -> Callable[..., Any]:
    """Type rule of square matrices to matrices of the same type."""

    def rule(x: ShapedArray) -> ShapedArray:
        check_matrix(name, x, square=True)
        return x

    return rule


def with_taus(name: str) -> Callable[..., Any]:
    """Type rule of factorisations that return a packed matrix and the scales of its reflectors."""

    def rule(x: ShapedArray) -> tuple[ShapedArray, ...]:
        m, n = check_matrix(name, x, square=name == "hessenberg")
        count = max(m - 1, 0) if name == "hessenberg" else min(m, n)
        return x, x.update(shape=(*x.shape[:-2], count))

    return rule
