"""Products that sum over axes: dot, matmul, tensordot, einsum and their relatives. All end in one dot_general each."""

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.numpy import creation, promotion, shapes, ufuncs
from morphax.ops import contract, structure
from morphax.ops import elementwise as ew
from morphax.runtime.jit import program
from morphax.support import dtypes

typeof = avals.operand_type

# ---- what all share --------------------------------------------------------------------------------------------------


def _factors(name: str, a: Any, b: Any, preferred: Any) -> tuple[Any, Any, Any]:
    """Two operands of one dtype, and the dtype of their product."""
    a, b = promotion.same_dtype(name, (promotion.array(name, a), promotion.array(name, b)))
    dtype = typeof(a).dtype if preferred is None else dtypes.named_dtype(preferred)
    return a, b, dtype


def _needs_axes(name: str, *operands: Any) -> None:
    for x in operands:
        if not typeof(x).ndim:
            raise ValueError(
                f"{name}: operands must have at least one axis; they have shapes "
                f"{', '.join(str(typeof(v).shape) for v in operands)}. Use multiply for scalars."
            )


def _same_sizes(name: str, a: Any, b: Any, i: int, j: int) -> None:
    left, right = typeof(a).shape, typeof(b).shape
    if left[i] != right[j]:
        raise TypeError(
            f"{name}: contracted sizes differ: {left} axis {i % len(left)} has {left[i]}, {right} axis "
            f"{j % len(right)} has {right[j]}. Transpose one operand, or contract other axes."
        )


# ---- products of two arrays ------------------------------------------------------------------------------------------


@program("precision", "preferred_element_type", "out_sharding")
def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """Sum over the last axis of `a` and the second last (or only) axis of `b`; the product where one is a scalar.

    Args:
        a: array.
        b: array.
        precision: None, a name such as "highest", a lax.Precision, or a pair of them.
        preferred_element_type: dtype of the sums and the result.
        out_sharding: not supported.

    >>> from morphax import numpy as jnp
    >>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4])).item()
    11
    """
    creation._no_sharding("dot", out_sharding)
    a, b, dtype = _factors("dot", a, b, preferred_element_type)
    left, right = typeof(a).ndim, typeof(b).ndim
    if not left or not right:
        out = ew.mul(a, b)
        return out if dtype == typeof(out).dtype else structure.convert(out, dtype)
    axis = right - 2 if right > 1 else 0
    _same_sizes("dot", a, b, left - 1, axis)
    return contract.dot(a, b, (((left - 1,), (axis,)), ((), ())), precision, dtype)


def _matmul(name: str, a: Any, b: Any, precision: Any, dtype: Any) -> Any:
    """Matrices times matrices, over broadcast leading axes."""
    left, right = typeof(a).shape, typeof(b).shape
    if len(right) == 2:  # one matrix for all: the leading axes of `a` are rows
        return contract.dot(a, b, (((len(left) - 1,), (0,)), ((), ())), precision, dtype)
    lead = promotion.common_shape(name, (left[:-2], right[:-2]))
    rank = len(lead)
    (a, own_a), (b, own_b) = _without_ones(a, left, lead), _without_ones(b, right, lead)
    shared = [d for d in own_a if d in own_b]
    only_a = [d for d in own_a if d not in own_b]
    only_b = [d for d in own_b if d not in own_a]
    batch = (tuple([own_a.index(d) for d in shared]), tuple([own_b.index(d) for d in shared]))
    out = contract.dot(a, b, (((len(own_a) + 1,), (len(own_b),)), batch), precision, dtype)
    found = [*shared, *only_a, rank, *only_b, rank + 1]
    order = tuple(sorted(range(len(found)), key=lambda k: found[k]))
    return structure.transpose(out, permutation=order) if order != tuple(range(len(order))) else out


def _without_ones(x: Any, shape: tuple[int, ...], lead: tuple[int, ...]) -> tuple[Any, list[int]]:
    """`x` without the leading axes along which it is repeated, and which of `lead` it has left."""
    offset = len(lead) - (len(shape) - 2)
    own = [d for d in range(offset, len(lead)) if shape[d - offset] == lead[d]]
    sizes = tuple([lead[d] for d in own]) + shape[-2:]
    return structure.reshape_to(x, sizes), own


@program("precision", "preferred_element_type", "out_sharding")
def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Any:
    """Matrix product over the last two axes; leading axes are broadcast. Arguments as in `dot`.

    >>> from morphax import numpy as jnp
    >>> jnp.matmul(jnp.array([[1, 2]]), jnp.array([3, 4])).tolist()
    [11]
    """
    creation._no_sharding("matmul", out_sharding)
    a, b, dtype = _factors("matmul", a, b, preferred_element_type)
    _needs_axes("matmul", a, b)
    left, right = typeof(a).shape, typeof(b).shape
    _same_sizes("matmul", a, b, -1, -2 if len(right) > 1 else 0)
    if len(left) == 1 and len(right) == 1:
        return contract.dot(a, b, (((0,), (0,)), ((), ())), precision, dtype)
    if len(right) == 1:
        return contract.dot(a, b, (((len(left) - 1,), (0,)), ((), ())), precision, dtype)
    if len(left) == 1:
        return contract.dot(a, b, (((0,), (len(right) - 2,)), ((), ())), precision, dtype)
    return _matmul("matmul", a, b, precision, dtype)


@program()
def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices times vectors, over broadcast leading axes.

    >>> from morphax import numpy as jnp
    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])).tolist()
    [3, 7]
    """
    a, b, dtype = _factors("matvec", x1, x2, None)
    if typeof(a).ndim < 2 or not typeof(b).ndim:
        raise ValueError(f"matvec: needs a matrix and a vector; shapes are {typeof(a).shape} and {typeof(b).shape}.")
    _same_sizes("matvec", a, b, -1, -1)
    count = typeof(b).ndim
    out = _matmul("matvec", a, structure.expand_dims(b, (count,)) if count > 1 else _column(b), None, dtype)
    return structure.squeeze(out, dimensions=(typeof(out).ndim - 1,))


def _column(b: Any) -> Any:
    return structure.expand_dims(b, (1,))


@program()
def vecmat(x1: Any, x2: Any, /) -> Any:
    """Vectors, conjugated, times matrices, over broadcast leading axes.

    >>> from morphax import numpy as jnp
    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    a, b, dtype = _factors("vecmat", x1, x2, None)
    if not typeof(a).ndim or typeof(b).ndim < 2:
        raise ValueError(f"vecmat: needs a vector and a matrix; shapes are {typeof(a).shape} and {typeof(b).shape}.")
    _same_sizes("vecmat", a, b, -1, -2)
    count = typeof(a).ndim
    out = _matmul("vecmat", structure.expand_dims(ufuncs._conjugate(a), (count - 1,)), b, None, dtype)
    return structure.squeeze(out, dimensions=(typeof(out).ndim - 2,))


@program("axis", "precision", "preferred_element_type")
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of conj(x1) * x2 along an axis; the others are broadcast.

    >>> from morphax import numpy as jnp
    >>> jnp.vecdot(jnp.array([[1, 2]]), jnp.array([3, 4])).tolist()
    [11]
    """
    a, b, dtype = _factors("vecdot", x1, x2, preferred_element_type)
    _needs_axes("vecdot", a, b)
    a = structure.move_axis(a, promotion.axis_of("vecdot", axis, typeof(a).ndim), -1)
    b = structure.move_axis(b, promotion.axis_of("vecdot", axis, typeof(b).ndim), -1)
    _same_sizes("vecdot", a, b, -1, -1)
    a = structure.expand_dims(ufuncs._conjugate(a), (typeof(a).ndim - 1,))
    b = structure.expand_dims(b, (typeof(b).ndim,))
    out = _matmul("vecdot", a, b, precision, dtype)
    count = typeof(out).ndim
    return structure.squeeze(out, dimensions=(count - 2, count - 1))


@program("precision", "preferred_element_type")
def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum of conj(a) * b over the flat arrays.

    >>> from morphax import numpy as jnp
    >>> jnp.vdot(jnp.array([1j]), jnp.array([1j])).item()
    (1+0j)
    """
    a, b, dtype = _factors("vdot", a, b, preferred_element_type)
    a, b = [structure.reshape_to(x, (typeof(x).size,)) for x in (a, b)]
    _same_sizes("vdot", a, b, 0, 0)
    return contract.dot(ufuncs._conjugate(a), b, (((0,), (0,)), ((), ())), precision, dtype)


@program("precision", "preferred_element_type")
def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum over the last axes of both; the product where one is a scalar.

    >>> from morphax import numpy as jnp
    >>> jnp.inner(jnp.array([[1, 2]]), jnp.array([3, 4])).tolist()
    [11]
    """
    a, b, dtype = _factors("inner", a, b, preferred_element_type)
    left, right = typeof(a).ndim, typeof(b).ndim
    if not left or not right:
        return structure.convert(ew.mul(a, b), dtype, typeof(a).weak_type and typeof(b).weak_type)
    _same_sizes("inner", a, b, -1, -1)
    return contract.dot(a, b, (((left - 1,), (right - 1,)), ((), ())), precision, dtype)


@program()
def outer(a: Any, b: Any, out: None = None) -> Any:
    """Products of every entry of `a` with every entry of `b`, both flat.

    >>> from morphax import numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    ufuncs.no_out("outer", out)
    a, b, _ = _factors("outer", a, b, None)
    n, m = typeof(a).size, typeof(b).size
    a = ew.broadcast_in_dim(structure.reshape_to(a, (n,)), shape=(n, m), broadcast_dimensions=(0,), sharding=None)
    b = ew.broadcast_in_dim(structure.reshape_to(b, (m,)), shape=(n, m), broadcast_dimensions=(1,), sharding=None)
    return ew.mul(a, b)


@program("axes", "precision", "preferred_element_type")
def _tensordot(a: Any, b: Any, axes: Any, precision: Any, preferred_element_type: Any) -> Any:
    a, b, dtype = _factors("tensordot", a, b, preferred_element_type)
    left, right = typeof(a).ndim, typeof(b).ndim
    if isinstance(axes, int):
        if not 0 <= axes <= min(left, right):
            raise TypeError(
                f"tensordot: axes={axes} must lie between 0 and the number of axes of both operands, whose shapes are "
                f"{typeof(a).shape} and {typeof(b).shape}."
            )
        pairs = tuple(range(left - axes, left)), tuple(range(axes))
    else:
        pairs = promotion.axes_of("tensordot", axes[0], left), promotion.axes_of("tensordot", axes[1], right)
        if len(pairs[0]) != len(pairs[1]):
            raise TypeError(f"tensordot: axes {axes} must name as many axes of the first operand as of the second.")
    for i, j in zip(*pairs, strict=True):
        _same_sizes("tensordot", a, b, i, j)
    return contract.dot(a, b, (pairs, ((), ())), precision, dtype)


def tensordot(
    a: Any, b: Any, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Sum over the last `axes` axes of `a` and the first of `b`, or over the pairs of axes named.

    >>> from morphax import numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1).shape
    (2, 2)
    """
    creation._no_sharding("tensordot", out_sharding)
    if isinstance(axes, (int, np.integer)):
        fixed: Any = int(axes)
    elif len(axes) == 2:
        fixed = tuple([tuple(x) if isinstance(x, (list, tuple)) else x for x in axes])
    else:
        raise TypeError(f"tensordot: axes must be an int, or a pair of axes or of sequences of axes; it is {axes!r}.")
    return _tensordot(a, b, axes=fixed, precision=precision, preferred_element_type=preferred_element_type)


@program()
def kron(a: Any, b: Any) -> Any:
    """Kronecker product: every entry of `a` times the whole of `b`.

    >>> from morphax import numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    a, b, _ = _factors("kron", a, b, None)
    rank = max(typeof(a).ndim, typeof(b).ndim)
    left = (1,) * (rank - typeof(a).ndim) + typeof(a).shape
    right = (1,) * (rank - typeof(b).ndim) + typeof(b).shape
    between = tuple([s for pair in zip(left, right, strict=True) for s in pair])
    a = structure.reshape_to(a, left)
    b = structure.reshape_to(b, right)
    even, odd = tuple(range(0, 2 * rank, 2)), tuple(range(1, 2 * rank, 2))
    a = ew.broadcast_in_dim(a, shape=between, broadcast_dimensions=even, sharding=None)
    b = ew.broadcast_in_dim(b, shape=between, broadcast_dimensions=odd, sharding=None)
    return structure.reshape_to(ew.mul(a, b), tuple([m * n for m, n in zip(left, right, strict=True)]))


# ---- einsum ----------------------------------------------------------------------------------------------------------

Path = tuple[tuple[int, ...], ...]


@functools.cache
def _planner() -> Any:
    """opt_einsum, loaded by the first einsum: it takes 5 ms, of which other programs need nothing."""
    return importlib.import_module("opt_einsum")


@functools.lru_cache(1024)
def _plan(subscripts: str, found: tuple[tuple[int, ...], ...], optimize: Any) -> tuple[tuple[str, ...], str, Path]:
    """Names of the operands' axes, of the result's, and the order of contraction."""
    inputs, output, _ = _planner().parser.parse_einsum_input([subscripts, *found], shapes=True)
    names = tuple(inputs.split(","))
    if len(names) == 1:
        return names, output, ((0,),)
    if optimize is False:
        path = [(0, 1)] + [(0, k) for k in range(len(names) - 2, 0, -1)]
    elif isinstance(optimize, tuple):
        path = [tuple(p) for p in optimize if not isinstance(p, str)]
    else:
        full = ",".join(names) + "->" + output
        path, _ = _planner().contract_path(full, *found, shapes=True, optimize="auto" if optimize is True else optimize)
    return names, output, tuple([tuple(p) for p in path])


def _arguments(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts as a string; the form einsum(x, [0, 1], y, [1, 2], [0, 2]) is rewritten."""
    if isinstance(subscripts, str):
        return subscripts, list(operands)
    given = [subscripts, *operands]
    arrays, lists = given[0 : len(given) - len(given) % 2 : 2], given[1::2]
    text = ",".join(["".join(map(_letter, names)) for names in lists])
    if len(given) % 2:
        text += "->" + "".join(map(_letter, given[-1]))
    return text, arrays


def _letter(name: Any) -> str:
    return "..." if name is Ellipsis else _planner().get_symbol(name)


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sums of products by Einstein's convention: axes of one name run together; those not in the result are summed.

    Args:
        subscripts: such as "ij,jk->ik", with "..." for broadcast axes; or the form with lists of axis numbers.
        operands: one array for each term.
        out: not supported.
        optimize: "auto", "greedy", "optimal", False for left to right, or a path.
        precision: as in `dot`.
        preferred_element_type: dtype of the sums and the result.
        out_sharding: not supported.

    >>> from morphax import numpy as jnp
    >>> jnp.einsum("ii->", jnp.eye(3)).item()
    3.0
    """
    ufuncs.no_out("einsum", out)
    creation._no_sharding("einsum", out_sharding)
    text, arrays = _arguments(subscripts, operands)
    if not arrays:
        raise ValueError(f"einsum: no operands for the subscripts {text!r}. Give one array for each term.")
    found = tuple([promotion.described("einsum", a)[2] for a in arrays])
    optimize = (
        tuple([tuple(p) if isinstance(p, list) else p for p in optimize]) if isinstance(optimize, list) else optimize
    )
    try:
        names, output, path = _plan(text.replace(" ", ""), found, optimize)
    except (ValueError, KeyError, IndexError) as error:
        shown = ", ".join(map(str, found))
        raise ValueError(f"einsum: subscripts {text!r} do not fit operands of shapes {shown}: {error}") from None
    _check_sizes(text, names, found)
    return _einsum(arrays, names=names, output=output, path=path, precision=precision, preferred=preferred_element_type)


def _check_sizes(text: str, names: Sequence[str], found: Sequence[tuple[int, ...]]) -> None:
    sizes: dict[str, int] = {}
    for term, shape in zip(names, found, strict=True):
        if len(term) != len(shape):
            raise ValueError(
                f"einsum: the term {term!r} of {text!r} names {len(term)} axes; its operand has shape {shape}."
            )
        for letter, s in zip(term, shape, strict=True):
            if sizes.setdefault(letter, s) not in (1, s) and s != 1:
                raise ValueError(
                    f"einsum: axis {letter!r} of {text!r} has size {sizes[letter]} in one operand and {s} in another; "
                    f"shapes are {', '.join(map(str, found))}. Axes of one name must agree."
                )
            sizes[letter] = max(sizes[letter], s) if s != 0 else 0


@program("names", "output", "path", "precision", "preferred")
def _einsum(
    operands: list[Any], names: tuple[str, ...], output: str, path: Path, precision: Any, preferred: Any
) -> Any:
    operands = [promotion.array("einsum", x) for x in promotion.same_dtype("einsum", operands)]
    dtype = typeof(operands[0]).dtype if preferred is None else dtypes.named_dtype(preferred)
    left = list(zip(operands, names, strict=True))
    for step in path:
        terms = [left.pop(k) for k in sorted(step, reverse=True)][::-1]
        needed = set(output).union(*[set(term) for _, term in left])
        current = terms[0]
        for k, other in enumerate(terms[1:], 2):
            wanted = needed.union(*[set(term) for _, term in terms[k:]])
            current = _product(current, other, wanted, precision, dtype)
        left.append(current)
    x, term = left[0]
    x, term = _alone(x, term, set(output))
    order = tuple([term.index(letter) for letter in output])
    x = structure.transpose(x, permutation=order) if order != tuple(range(len(order))) else x
    return x if typeof(x).dtype == dtype else structure.convert(x, dtype)


def _alone(x: Any, term: str, wanted: set[str]) -> tuple[Any, str]:
    """One operand with repeated axes reduced to their diagonal, and axes that nothing wants summed."""
    for letter in sorted(set(term)):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            x = shapes.diagonal.__wrapped__(x, 0, first, second)
            term = "".join([c for k, c in enumerate(term) if k not in (first, second)]) + letter
    axes = tuple([k for k, letter in enumerate(term) if letter not in wanted])
    if axes:
        x = ew.reduce_sum(x, axes=axes)
        term = "".join([letter for letter in term if letter in wanted])
    return x, term


def _product(first: Any, second: Any, wanted: set[str], precision: Any, dtype: Any) -> tuple[Any, str]:
    """Two terms contracted; axes that `wanted` does not have are summed."""
    (a, left), (b, right) = first, second
    a, left = _alone(a, left, wanted | set(right))
    b, right = _alone(b, right, wanted | set(left))
    a, left = _unrepeated(a, left, b, right)
    b, right = _unrepeated(b, right, a, left)
    a, left = _alone(a, left, wanted | set(right))
    b, right = _alone(b, right, wanted | set(left))
    batch = [c for c in left if c in right and c in wanted]
    summed = [c for c in left if c in right and c not in wanted]
    numbers = (
        (tuple([left.index(c) for c in summed]), tuple([right.index(c) for c in summed])),
        (tuple([left.index(c) for c in batch]), tuple([right.index(c) for c in batch])),
    )
    taken = {*batch, *summed}
    term = "".join(batch) + "".join([c for c in left if c not in taken]) + "".join([c for c in right if c not in taken])
    return contract.dot(a, b, numbers, precision, dtype), term


def _unrepeated(a: Any, left: str, b: Any, right: str) -> tuple[Any, str]:
    """`a` without axes of size 1 that stand against longer ones in `b`."""
    sizes = dict(zip(right, typeof(b).shape, strict=True))
    ones = tuple([k for k, c in enumerate(left) if typeof(a).shape[k] == 1 and sizes.get(c, 1) != 1])
    if not ones:
        return a, left
    return structure.squeeze(a, dimensions=ones), "".join([c for k, c in enumerate(left) if k not in ones])


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[Any], Any]:
    """The order in which `einsum` would contract, and a description of its cost.

    >>> from morphax import numpy as jnp
    >>> jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 2)))[0]
    ['einsum_path', (0, 1)]
    """
    text, arrays = _arguments(subscripts, operands)
    found = [promotion.described("einsum_path", a)[2] for a in arrays]
    path, info = _planner().contract_path(text, *found, shapes=True, optimize="auto" if optimize is True else optimize)
    return ["einsum_path", *path], info
