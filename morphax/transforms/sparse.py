"""Which entries of a Jacobian can differ from zero, found from the jaxpr, and columns that one product can share.

A pattern is a sorted array of keys, row * width + column, one for each entry that may differ from zero; the rows are
the elements of a value in row-major order, the columns those of the input. None stands for a value that does not depend
on the input. Operations without a rule make every row depend on every column that occurs in an operand: too much is
slow, too little would be wrong.

Colouring: A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the estimation of sparse Jacobian matrices", 1974.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir.current import base, current
from morphax.ir.jaxpr import Eqn, Jaxpr, Literal
from morphax.ir.primitive import Var, registry
from morphax.ir.trace import Tracer
from morphax.support import dtypes

Keys = Any  # an int64 array or None


class _Walk:
    """Patterns of the values of one jaxpr. `known` gives values that do not depend on the input, where they are needed:
    they say where indices point."""

    def __init__(self, width: int, jaxpr: Jaxpr, operands: Sequence[Keys], values: Sequence[Callable[[], Any]]):
        self.width = width
        self.env: dict[Any, Keys] = dict(zip(jaxpr.invars, operands, strict=True))
        self.values: dict[Any, Callable[[], Any]] = dict(zip(jaxpr.invars, values, strict=True))
        self.found: dict[Any, Any] = {}
        self.made: dict[Any, Eqn] = {}
        self.jaxpr = jaxpr

    def results(self) -> list[Keys]:
        """The patterns of the outputs."""
        for eqn in self.jaxpr.eqns:
            self.made.update(dict.fromkeys(eqn.outvars, eqn))
            keys = [self.keys(v) for v in eqn.invars]
            if eqn.primitive.story == "nondiff" or all(k is None for k in keys):
                outs: Sequence[Keys] = [None] * len(eqn.outvars)
            else:
                outs = self.rule(eqn)(self, eqn, keys)
            for v, k in zip(eqn.outvars, outs, strict=True):
                self.env[v] = k if dtypes.is_inexact(v.aval.dtype) else None
        return [self.keys(v) for v in self.jaxpr.outvars]

    def keys(self, v: Any) -> Keys:
        """The pattern of a variable."""
        return None if v.__class__ is Literal else self.env[v]

    def known(self, v: Any) -> Any:
        """The value of a variable that does not depend on the input, or None if it is not known."""
        if v.__class__ is Literal:
            return v.val
        if v not in self.found:
            self.found[v] = None
            if v in self.values:
                self.found[v] = self.values[v]()
            elif v in self.made and self.keys(v) is None:
                eqn = self.made[v]
                operands = [self.known(u) for u in eqn.invars]
                if not eqn.effects and all(x is not None for x in operands):
                    self.found.update(zip(eqn.outvars, _run(eqn.primitive, operands, eqn.params), strict=True))
        return self.found[v]

    def rule(self, eqn: Eqn) -> Any:
        """The rule of an equation."""
        name = eqn.primitive.name
        return _RULES.get(name) or (_elementwise if eqn.primitive.elementwise else _dense)

    # ---- arithmetic of patterns ----

    def take(self, keys: Keys, source: np.ndarray) -> Keys:
        """Rows `source` of a pattern; a negative entry is an empty row."""
        if keys is None:
            return None
        rows, columns = np.divmod(keys, self.width)
        source = source.reshape(-1)
        count = int(max(source.max(initial=-1), rows.max(initial=-1))) + 2
        starts = np.searchsorted(rows, np.arange(count + 1))
        sizes = np.where(source >= 0, starts[source + 1] - starts[source], 0)
        total = int(sizes.sum())
        within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        picked = columns[np.repeat(np.where(source >= 0, starts[source], 0), sizes) + within]
        return np.repeat(np.arange(len(source), dtype=np.int64), sizes) * self.width + picked

    def gather_rows(self, keys: Keys, target: np.ndarray) -> Keys:
        """Row k of the pattern added to row `target[k]`; to none where that is negative."""
        if keys is None:
            return None
        rows, columns = np.divmod(keys, self.width)
        to = target.reshape(-1)[rows]
        return np.unique(to[to >= 0].astype(np.int64) * self.width + columns[to >= 0])


def _union(parts: Sequence[Keys]) -> Keys:
    there = [p for p in parts if p is not None]
    if len(there) < 2:
        return there[0] if there else None
    return np.unique(np.concatenate(there))


def _run(prim: Any, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    before = current.trace
    current.trace = base()
    try:
        return base().apply(prim, operands, params)
    finally:
        current.trace = before


def _places(shape: Sequence[int]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


# ---- rules: (walk, equation, patterns of the operands) -> patterns of the results ------------------------------------


def _dense(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    columns = np.unique(np.concatenate([k % walk.width for k in keys if k is not None]))
    outs = []
    for v in eqn.outvars:
        rows = np.arange(v.aval.size, dtype=np.int64)[:, None]
        outs.append((rows * walk.width + columns).reshape(-1))
    return outs


def _elementwise(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    out = eqn.outvars[0].aval
    partials = eqn.primitive.partials or (True,) * len(keys)
    parts = []
    for v, k, partial in zip(eqn.invars, keys, partials, strict=True):
        if k is None or partial is None:
            continue
        spread = v.aval.shape != out.shape
        parts.append(walk.take(k, np.zeros(out.size, np.int64)) if spread else k)
    return [_union(parts)]


def _moved(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    """For operations that only choose elements: they are applied to the elements' numbers."""
    operands, offsets, count = [], [], 1  # 0 stands for no element
    for v in eqn.invars:
        if dtypes.is_inexact(v.aval.dtype):
            operands.append((_places(v.aval.shape) + count).astype(np.int32))
            offsets.append(count)
            count += v.aval.size
        else:
            operands.append(walk.known(v))
            offsets.append(None)
            if operands[-1] is None:
                return _dense(walk, eqn, keys)
    outs = []
    for chosen in _run(eqn.primitive, operands, eqn.params):
        numbers = np.asarray(chosen).astype(np.int64)
        parts = []
        for v, k, offset in zip(eqn.invars, keys, offsets, strict=True):
            if k is not None:
                inside = (numbers >= offset) & (numbers < offset + v.aval.size)
                parts.append(walk.take(k, np.where(inside, numbers - offset, -1)))
        outs.append(_union(parts))
    return outs


def _added(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    x, indices, updates = eqn.invars
    where = walk.known(indices)
    if where is None:
        return _dense(walk, eqn, keys)
    # The transpose of adding updates is reading at their places.
    numbers = (_places(x.aval.shape) + 1).astype(np.int32)
    add = registry["scatter-add"]
    before, current.trace = current.trace, base()
    try:
        target = add.transpose(numbers, Var(x.aval), where, Var(updates.aval), **eqn.params)[2]
    finally:
        current.trace = before
    return [_union([keys[0], walk.gather_rows(keys[2], np.asarray(target).astype(np.int64) - 1)])]


def _reduced(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    axes = eqn.params["axes"]
    shape = eqn.invars[0].aval.shape
    kept = [1 if a in axes else n for a, n in enumerate(shape)]
    target = np.broadcast_to(_places(kept), shape)
    return [_union([walk.gather_rows(k, target) for k in keys])] * len(eqn.outvars)


def _along(axis_name: str) -> Any:
    def rule(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
        shape = eqn.invars[0].aval.shape
        axis = eqn.params[axis_name]
        kept = [1 if a == axis else n for a, n in enumerate(shape)]
        target = np.broadcast_to(_places(kept), shape)
        return [walk.take(_union([walk.gather_rows(k, target) for k in keys]), target)] * len(eqn.outvars)

    return rule


def _product(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    (contracted, batched) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    parts = []
    for side, k in enumerate(keys):
        if k is None:
            continue
        shape = eqn.invars[side].aval.shape
        other = walk.known(eqn.invars[1 - side]) if keys[1 - side] is None else None
        if other is not None and len(shape) == 1 and len(np.shape(other)) == 2:  # zeros of a known matrix count
            matrix = np.asarray(other)
            matrix = matrix.T if contracted[1 - side][0] == 0 else matrix
            to, from_ = np.nonzero(matrix)
            read = walk.take(k, from_)
            parts.append(walk.gather_rows(read, to))
            continue
        free = [a for a in range(len(shape)) if a not in contracted[side] and a not in batched[side]]
        order = [*batched[side], *free]
        sizes = [shape[a] for a in order]
        places = np.expand_dims(_places(sizes), tuple(range(len(sizes), len(shape))))
        full = np.broadcast_to(places, [*sizes, *[shape[a] for a in contracted[side]]])
        target = np.transpose(full, np.argsort([*order, *contracted[side]]))
        grouped = walk.gather_rows(k, target)
        others = len(out.shape) - len(order)
        lead = len(batched[side]) if side else len(order)
        spread = np.expand_dims(_places(sizes), tuple(range(lead, lead + others)))
        parts.append(walk.take(grouped, np.broadcast_to(spread, out.shape)))
    return [_union(parts)]


def _called(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    jaxpr = eqn.params.get("jaxpr") or eqn.params["call_jaxpr"]
    return _inside(walk, jaxpr, eqn.invars, keys)


def _branched(walk: _Walk, eqn: Eqn, keys: Sequence[Keys]) -> list[Keys]:
    rows = [_inside(walk, b, eqn.invars[1:], keys[1:]) for b in eqn.params["branches"]]
    return [_union(column) for column in zip(*rows, strict=True)]


def _inside(walk: _Walk, jaxpr: Jaxpr, operands: Sequence[Any], keys: Sequence[Keys]) -> list[Keys]:
    values = [lambda v=v: walk.known(v) for v in operands]
    return _Walk(walk.width, jaxpr, keys, values).results()


_RULES: dict[str, Any] = {
    **dict.fromkeys(
        ("broadcast_in_dim", "transpose", "reshape", "slice", "rev", "squeeze", "concatenate", "split", "pad", "copy",
         "dynamic_slice", "dynamic_update_slice", "gather", "name", "optimization_barrier"),
        _moved,
    ),
    **dict.fromkeys(("scatter-add", "scatter-sub", "scatter"), _added),
    **dict.fromkeys(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"), _reduced),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _along("axis")),
    "sort": _along("dimension"),
    "dot_general": _product,
    **dict.fromkeys(("jit", "remat2", "custom_jvp_call", "custom_vjp_call"), _called),
    "cond": _branched,
}  # fmt: skip


# ---- what the Jacobians use ------------------------------------------------------------------------------------------


def pattern(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that may differ from zero in the Jacobian of a jaxpr of one input and output."""
    width = jaxpr.invars[0].aval.size
    closed = Jaxpr((), (*jaxpr.constvars, *jaxpr.invars), jaxpr.eqns, jaxpr.outvars)
    values = [lambda c=c: None if isinstance(c, Tracer) else c for c in consts] + [lambda: None]
    own = np.arange(width, dtype=np.int64) * (width + 1)
    (keys,) = _Walk(max(width, 1), closed, [None] * len(consts) + [own], values).results()
    rows, columns = np.divmod(np.zeros(0, np.int64) if keys is None else np.unique(keys), max(width, 1))
    return rows, columns


def colours(rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    """A number for each column, so that columns with the same number share no row: one product finds them all."""
    order = np.lexsort((rows, columns))
    starts = np.searchsorted(columns[order], np.arange(width + 1))
    sorted_rows = rows[order].tolist()
    taken: list[set[int]] = [set() for _ in range(int(rows.max(initial=-1)) + 1)]
    found = np.zeros(width, np.int64)
    for column in range(width):
        touched = sorted_rows[starts[column] : starts[column + 1]]
        used = set().union(*[taken[r] for r in touched])
        colour = next(c for c in range(len(used) + 1) if c not in used)
        found[column] = colour
        for r in touched:
            taken[r].add(colour)
    return found


__all__ = ["colours", "pattern"]
