"""Jacobians and Hessians: all directions at once, in chunks, or those that colouring leaves of a sparse one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.control.loops import map_
from morphax.ir import avals
from morphax.ops import elementwise as ew
from morphax.ops import indexing, structure
from morphax.support import dtypes, tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import api, sparse
from morphax.transforms.api import (
    argument_positions,
    check_argnums,
    check_input,
    jvp,
    leaf_name,
    named_after,
    vjp,
    vmap,
)
from morphax.transforms.flat import check_callable, check_leaf, name_of


def _directions(k: Any, types: Sequence[avals.ShapedArray]) -> list[Any]:
    """Vector `k` of the standard basis of the space of all inputs together."""
    total = sum(a.size for a in types)
    marks = ew.eq(np.arange(total, dtype=np.int32), ew.full((total,), k))
    pieces, start = [], 0
    for a in types:
        piece = structure.slice_axis(marks, start, start + a.size, 0)
        pieces.append(structure.reshape_to(structure.convert(piece, a.dtype), a.shape))
        start += a.size
    return pieces


def _along_basis(push: Callable[..., Any], types: Sequence[avals.ShapedArray], chunk: int | None) -> Any:
    """`push` of each vector of the standard basis, stacked; at most `chunk` at once."""
    numbers = np.arange(sum(a.size for a in types), dtype=np.int32)
    return _mapped(lambda k: push(*_directions(k, types)), numbers, chunk)


def _mapped(fun: Callable[[Any], Any], rows: Any, chunk: int | None) -> Any:
    if chunk is None or chunk >= rows.shape[0]:
        return vmap(fun)(rows)
    return map_(fun, rows, batch_size=chunk)


def _selected(name: str, fun: Any, argnums: Any, args: Any, kwargs: Any, holomorphic: bool, allow_int: bool) -> Any:
    nums = argument_positions(name, fun, argnums, len(args))
    chosen = tuple([args[n] for n in nums])

    def of_chosen(*selected: Any) -> Any:
        merged = list(args)
        for n, value in zip(nums, selected, strict=True):
            merged[n] = value
        return fun(*merged, **kwargs)

    of_chosen.__name__ = name_of(fun)
    for k, leaf in enumerate(tree.leaves(chosen)):
        aval = check_leaf(name, leaf, lambda: leaf_name(chosen, nums, k))  # noqa: B023 - called at once
        check_input(name, aval, holomorphic, allow_int, leaf_name(chosen, nums, k))
    return of_chosen, chosen


def _check_output(name: str, fun: Any, out: Any, holomorphic: bool) -> None:
    for leaf in tree.leaves(out):
        aval = avals.typeof(leaf)
        if holomorphic != dtypes.is_complex(aval.dtype) or not dtypes.is_inexact(aval.dtype):
            kind = "complex" if holomorphic else "real floating point"
            raise TypeError(
                f"{name}: outputs must be {kind} with holomorphic={holomorphic}; {name_of(fun)} returned {aval}."
            )


def _check_options(name: str, chunk: int | None, sparse: bool, argnums: Any, has_aux: bool) -> None:
    if chunk is not None and not (isinstance(chunk, (int, np.integer)) and chunk > 0):
        raise ValueError(f"{name}: chunk must be a positive int or None; it is {chunk!r}.")
    if sparse and (has_aux or not isinstance(argnums, (int, np.integer))):
        raise ValueError(f"{name}: sparse=True takes a function of one chosen argument, without has_aux.")


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk: int | None = None,
    sparse: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, column by column, by forward mode: best for more outputs than inputs.

    Args:
        fun: function of pytrees of arrays.
        argnums: position or positions of the arguments to differentiate.
        has_aux: `fun` returns (output, aux).
        holomorphic: `fun` is holomorphic, with complex inputs and output.
        chunk: how many directions are pushed forward at once; None for all. Less memory, more time.
        sparse: find from the jaxpr which entries can differ from zero, and compute only those, several columns with one
            product where they share no row: for a banded Jacobian, as many products as the band is wide. `fun` maps one
            array to one array. Where indices depend on the argument, and in loops, every entry counts.

    Returns:
        A function of the same arguments. Each leaf of the output's structure holds the structure of the argument, of
        arrays of shape (*output shape, *input shape); with `has_aux`, (Jacobian, aux); with `sparse`, a `Coo`.

    >>> from morphax import numpy as jnp
    >>> jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacfwd", fun)
    check_argnums("jacfwd", argnums)
    _check_options("jacfwd", chunk, sparse, argnums, has_aux)

    @api_boundary
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        of_chosen, chosen = _selected("jacfwd", fun, argnums, args, kwargs, holomorphic, False)
        leaves, in_tree = tree.flatten(chosen)
        types = [avals.typeof(x) for x in leaves]
        if sparse:
            return _sparse("jacfwd", of_chosen, chosen, chunk)
        seen: list[Any] = []

        def push(*directions: Any) -> Any:
            out, column, *aux = jvp(of_chosen, chosen, tree.unflatten(in_tree, directions), has_aux=has_aux)
            _check_output("jacfwd", fun, out, holomorphic)
            seen[:] = aux
            return column

        if chunk is None:
            columns, aux = _at_once(push, types, seen)
        else:
            columns = _along_basis(push, types, chunk)
            aux = of_chosen(*chosen)[1] if has_aux else None
        columns = tree.map(lambda c: structure.move_axis(c, 0, -1), columns)
        single = isinstance(argnums, (int, np.integer))
        jacobian = tree.map(lambda c: _split_last(c, types, in_tree, single), columns)
        return (jacobian, aux) if has_aux else jacobian

    return named_after(fun, jacobian_fun, "jacfwd")


def _at_once(push: Callable[..., Any], types: Sequence[avals.ShapedArray], seen: list[Any]) -> tuple[Any, Any]:
    """The images of the basis, and what `push` noted on the way, which does not depend on the direction."""
    columns = _along_basis(push, types, None)
    return columns, seen[0] if seen else None


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, row by row, by reverse mode: best for more inputs than outputs.

    Args:
        chunk: how many rows are pulled back at once; None for all. The others are those of `jacfwd`.

    Returns:
        As `jacfwd`.

    >>> from morphax import numpy as jnp
    >>> jacrev(lambda x: x**2)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacrev", fun)
    check_argnums("jacrev", argnums)
    _check_options("jacrev", chunk, False, argnums, has_aux)

    @api_boundary
    def jacobian_fun(*args: Any, **kwargs: Any) -> Any:
        of_chosen, chosen = _selected("jacrev", fun, argnums, args, kwargs, holomorphic, allow_int)
        out, pullback, *aux = vjp(of_chosen, *chosen, has_aux=has_aux)
        _check_output("jacrev", fun, out, holomorphic)
        leaves, out_tree = tree.flatten(out)
        types = [avals.typeof(x) for x in leaves]
        rows = _along_basis(lambda *cts: pullback(tree.unflatten(out_tree, cts)), types, chunk)
        rows = rows[0] if isinstance(argnums, (int, np.integer)) else rows
        row_leaves, row_tree = tree.flatten(rows)
        pieces = [_split_first(r, types) for r in row_leaves]
        jacobian = tree.unflatten(
            out_tree, [tree.unflatten(row_tree, [p[k] for p in pieces]) for k in range(len(types))]
        )
        return (jacobian, aux[0]) if has_aux else jacobian

    return named_after(fun, jacobian_fun, "jacrev")


def _split_last(columns: Any, types: Sequence[avals.ShapedArray], in_tree: Any, single: bool) -> Any:
    shape = avals.typeof(columns).shape[:-1]
    pieces, start = [], 0
    for a in types:
        piece = structure.slice_axis(columns, start, start + a.size, len(shape))
        pieces.append(structure.reshape_to(piece, (*shape, *a.shape)))
        start += a.size
    parts = tree.unflatten(in_tree, pieces)
    return parts[0] if single else parts


def _split_first(rows: Any, types: Sequence[avals.ShapedArray]) -> list[Any]:
    shape = avals.typeof(rows).shape[1:]
    pieces, start = [], 0
    for a in types:
        piece = structure.slice_axis(rows, start, start + a.size, 0)
        pieces.append(structure.reshape_to(piece, (*a.shape, *shape)))
        start += a.size
    return pieces


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk: int | None = None,
    sparse: bool = False,
) -> Callable[..., Any]:
    """The Hessian of `fun`: forward mode over reverse mode.

    Args:
        chunk: how many columns are computed at once; None for all.
        sparse: as for `jacfwd`, of a scalar function of one array. The others are those of `jacfwd`.

    Returns:
        A function of the same arguments: arrays of shape (*output shape, *input shape, *input shape) in the structure
        of the argument twice over; with `has_aux`, (Hessian, aux); with `sparse`, a `Coo`.

    >>> from morphax import numpy as jnp
    >>> hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    _check_options("hessian", chunk, sparse, argnums, has_aux)
    if sparse:
        return jacfwd(
            api.grad(fun, argnums, holomorphic=holomorphic), argnums, False, holomorphic, chunk=chunk, sparse=True
        )
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux=has_aux, holomorphic=holomorphic, chunk=chunk)


# ---- sparse ----------------------------------------------------------------------------------------------------------


@tree.register_pytree_node_class
class Coo:
    """A sparse matrix: `data[k]` stands in row `row[k]` and column `col[k]`, the rest are zeros.

    Of a Jacobian, the rows are the elements of the output and the columns those of the input, in row-major order.
    `scipy.sparse.coo_matrix((c.data, (c.row, c.col)), c.shape)` takes it over.
    """

    __slots__ = ("col", "data", "row", "shape")

    def __init__(self, data: Any, row: Any, col: Any, shape: tuple[int, int]):
        self.data = data
        self.row = row
        self.col = col
        self.shape = shape

    def todense(self) -> Any:
        """The matrix as an array of all entries."""
        zeros = ew.full((self.shape[0] * self.shape[1],), ew.like(self.data, 0))
        width = np.asarray(self.shape[1], avals.typeof(self.row).dtype)
        places = ew.add(ew.mul(self.row, width[()]), self.col)
        numbers = indexing.ScatterDimensionNumbers((), (0,), (0,), (), ())
        places = structure.expand_dims(places, (1,))
        flat = indexing.scatter_add(zeros, places, self.data, dimension_numbers=numbers)
        return structure.reshape_to(flat, self.shape)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.data, self.row, self.col), self.shape

    @classmethod
    def tree_unflatten(cls, shape: Any, children: Any) -> "Coo":
        data, row, col = children
        return cls(data, row, col, shape)

    def __repr__(self) -> str:
        return f"Coo(shape={self.shape}, entries={avals.typeof(self.data).size})"


def _sparse(name: str, fun: Any, chosen: tuple[Any, ...], chunk: int | None) -> Coo:
    closed, out_tree = api.trace_to_jaxpr(name, fun, chosen, {})
    leaves, in_tree = tree.flatten(chosen)
    if len(leaves) != 1 or out_tree.num_leaves != 1:
        raise ValueError(
            f"{name}: sparse=True takes a function of one array that returns one array; this one takes {len(leaves)} "
            f"and returns {out_tree.num_leaves}. Ravel them with flatten_util.ravel_pytree."
        )
    (x,), (out,) = [avals.typeof(leaf) for leaf in leaves], closed.out_avals
    _check_output(name, fun, tree.unflatten(out_tree, [avals.ShapeDtypeStruct.of(out)]), dtypes.is_complex(x.dtype))
    rows, columns = sparse.pattern(closed.jaxpr, closed.consts)
    colour = sparse.colours(rows, columns, x.size)
    count = int(colour.max(initial=-1)) + 1
    numbers = colour.astype(np.int32).reshape(x.shape)

    def push(k: Any) -> Any:
        direction = structure.convert(ew.eq(numbers, ew.full(x.shape, k)), x.dtype)
        return tree.leaves(jvp(fun, chosen, tree.unflatten(in_tree, [direction]))[1])[0]

    products = structure.reshape_to(_mapped(push, np.arange(count, dtype=np.int32), chunk), (count * out.size,))
    places = (colour[columns] * out.size + rows).astype(np.int32)
    data = indexing.take_along(products, places, 0)
    return Coo(data, rows.astype(np.int32), columns.astype(np.int32), (out.size, x.size))


__all__ = ["Coo", "hessian", "jacfwd", "jacrev"]
