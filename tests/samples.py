"""What the property tests know of each primitive: one `Sample` a row, the rows of a family in `rows/<family>.py`.

A row says how to call the primitive, on what, and what must come out; `test_primitives.py` holds every row to every
property. A module of rows ends in one tuple `ROWS`; `rows/__init__.py` finds the modules by itself. For example:

    ROWS = (
        Sample("sin", ew.sin, np.sin, dtypes=FLOATS + COMPLEXES),
        Sample("log", ew.log, np.log, dtypes=FLOATS, domain=(0.1, 3.0)),
        Sample("add", ew.add, np.add, shapes=[((2, 3), (2, 3)), ((), (3,))], dtypes=FLOATS + INTEGERS,
               errors=[(lambda: ew.add(zeros(2), zeros(3)), TypeError, "need equal shapes")]),
        Sample("select_n", ew.select_n, lambda p, x, y: np.where(p, y, x), shapes=[((4,), (4,), (4,))],
               dtypes=[("bool", d, d) for d in FLOATS]),
        Sample("cumsum", lambda x: reduce.cumsum(x, axis=1, reverse=False), lambda x: np.cumsum(x, 1),
               shapes=[((2, 3),), ((0, 3),)], dtypes=FLOATS),
    )
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.runtime import array, backend, eager  # noqa: F401 - eager runs what these samples call
from morphax.support import dtypes as dt

FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEXES = ("complex64", "complex128")
SIGNED = ("int32", "int8", "int64")
UNSIGNED = ("uint32", "uint8")
INTEGERS = SIGNED + UNSIGNED

Domain = tuple[float, float]
Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype], np.ndarray]


@dataclass(frozen=True)
class Sample:
    """One row.

    Args:
        name: the primitive's name; a second row for the same one is called "name: what differs".
        fun: function of the operands alone that applies the primitive, once, parameters fixed.
        reference: the same on NumPy arrays; low-precision floats reach it as float64 (float32 too), results are
            converted back. None only with a gap "value" that says why.
        shapes: per case the shapes of the operands. Without it: one operand, of shape (2, 3).
        dtypes: per case one name for all operands, or a tuple of names. Derivatives are tested in the cases of 64 bits
            (float64, complex128), so have one of those.
        domain: operands are drawn evenly from (low, high); or one such pair for each operand; or functions (rng, shape,
            dtype) -> array instead of pairs. Integers are drawn from the same interval, bools at random. Without it:
            (-2, 2) for floats, (-8, 8) for integers, (0, 8) for unsigned ones. Stay clear of kinks and poles here; put
            those into `at`.
        at: special points: (operands, result) or (operands, result, derivatives), the operands as Python numbers or
            nested lists, computed in `at_dtype`; derivatives, one for each operand, are of the sum of the result.
        errors: (call without arguments, exception, part of its message).
        tol: relative and absolute tolerance in float64; narrower types have one by their resolution. Or a dict from
            names of dtypes to tolerances, for those that need another.
        gaps: property (see test_primitives.py: "value", "jvp", "vjp", "second", "vmap", "jit", "text", "xla") -> why
            the row is not held to it.
    """

    name: str
    fun: Callable[..., Any]
    reference: Callable[..., Any] | None
    shapes: Sequence[tuple[tuple[int, ...], ...]] = (((2, 3),),)
    dtypes: Sequence[str | tuple[str, ...]] = ("float32", "float64")
    domain: Domain | Draw | Sequence[Domain | Draw] | None = None
    at: Sequence[tuple[Any, ...]] = ()
    at_dtype: str = "float64"
    errors: Sequence[tuple[Callable[[], Any], type[Exception], str]] = ()
    tol: float | dict[str, float] = 1e-13
    gaps: dict[str, str] = field(default_factory=dict)

    @property
    def primitive(self) -> str:
        """Name of the primitive."""
        return self.name.partition(":")[0]

    @property
    def differentiable(self) -> list[Any]:
        """The cases of `dtypes` of 64 bits, in which derivatives are tested."""
        return [d for d in self.dtypes if {"float64", "complex128"} & set((d,) if isinstance(d, str) else d)]

    def tolerance(self, dtype: np.dtype) -> float:
        """Relative and absolute tolerance of results of that dtype."""
        if isinstance(self.tol, dict) and dtype.name in self.tol:
            return self.tol[dtype.name]
        if dt.kind(dtype) not in "fc":
            return 0.0
        in_double = self.tol.get("float64", 1e-13) if isinstance(self.tol, dict) else self.tol
        bits = dt.itemsize_bits(dt.to_real(dtype))
        return in_double if bits == 64 else float(dt.finfo(dt.to_real(dtype)).eps) * (64 if bits == 32 else 8)

    def dtypes_of(self, case: str | tuple[str, ...], count: int) -> tuple[np.dtype, ...]:
        """The dtype of each of `count` operands."""
        names = (case,) * count if isinstance(case, str) else case
        return tuple([dt.BY_NAME[n] for n in names])

    def operands(self, shapes: Sequence[tuple[int, ...]], case: Any, seed: int = 0) -> list[np.ndarray]:
        """Host operands of those shapes and dtypes."""
        rng = np.random.default_rng(seed)
        kinds = self.dtypes_of(case, len(shapes))
        domain = self.domain
        each = domain if isinstance(domain, (list, tuple)) and not _is_pair(domain) else [domain] * len(shapes)
        return [draw(rng, shape, dtype, d) for shape, dtype, d in zip(shapes, kinds, each, strict=True)]


def _is_pair(domain: Any) -> bool:
    return len(domain) == 2 and all(isinstance(bound, (int, float)) for bound in domain)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, domain: Any) -> np.ndarray:
    """Random operand; see `Sample.domain`."""
    if callable(domain):
        return np.asarray(domain(rng, shape, dtype), dtype)
    kind = dt.kind(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        low, high = domain or ((-8, 8) if kind == "i" else (0, 8))
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(dtype)
    low, high = domain or (-2.0, 2.0)
    drawn = rng.uniform(low, high, shape)
    if kind == "c":
        return (drawn + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return np.asarray(drawn).astype(dtype)


def put(x: Any, dtype: Any = None) -> Any:
    """A host value as an Array whose dtype is exactly that of the value, or `dtype`: 64 bits need no flag."""
    host = np.asarray(x) if dtype is None else np.asarray(x).astype(dt.named_dtype(dtype))
    return array.put(host, ShapedArray(host.shape, host.dtype), backend.default_device(), committed=False)


def zeros(*shape: int, dtype: str = "float32") -> Any:
    """An Array of zeros, for error cases."""
    return put(np.zeros(shape, dt.BY_NAME[dtype]))
