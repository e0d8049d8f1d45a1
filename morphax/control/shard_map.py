"""Programs for one device of a mesh: `shard_map` runs a function on every device's part of its arguments.

The types inside say over which mesh axes a value differs. A result may leave undivided over an axis only if it does not
differ there; a cotangent that differs over more axes than its value is summed over them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from morphax.control.parts import fill, given, present
from morphax.ir.avals import ShapedArray
from morphax.ir.current import current
from morphax.ir.jaxpr import Jaxpr, evaluate
from morphax.ir.primitive import Primitive, is_unknown
from morphax.ir.sharding import AbstractMesh, Mesh, PartitionSpec, axes_of, check_spec, current_mesh
from morphax.ir.trace import close, stage
from morphax.ops import structure
from morphax.ops.family import typeof
from morphax.support import tree
from morphax.support.tracebacks import api_boundary
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs
from morphax.transforms.flat import FlatFun, canonical, check_callable, check_leaf, name_of

Specs = tuple[PartitionSpec, ...]


def _axes(spec: PartitionSpec) -> tuple[Any, ...]:
    return tuple(itertools.chain.from_iterable(axes_of(e) for e in spec))


def _local(mesh: Any, spec: PartitionSpec, aval: ShapedArray) -> ShapedArray:
    """Type of one device's part."""
    sizes = mesh.shape
    shape = list(aval.shape)
    for dim, entry in enumerate(spec):
        shape[dim] //= math.prod(sizes[a] for a in axes_of(entry))
    return ShapedArray(tuple(shape), aval.dtype, aval.weak_type, None, aval.varying | frozenset(_axes(spec)))


def _whole(mesh: Any, spec: PartitionSpec, aval: ShapedArray, manual: frozenset) -> ShapedArray:
    """Type of the array whose parts have type `aval`."""
    sizes = mesh.shape
    shape = list(aval.shape)
    for dim, entry in enumerate(spec):
        shape[dim] *= math.prod(sizes[a] for a in axes_of(entry))
    return ShapedArray(tuple(shape), aval.dtype, aval.weak_type, None, aval.varying - manual)


# ---- lowering --------------------------------------------------------------------------------------------------------


def _lower(low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, mesh: Any, in_specs: Specs, out_specs: Specs,
           manual_axes: tuple[Any, ...], check_vma: bool) -> list[Any]:  # fmt: skip
    if math.prod(mesh.shape.values()) == 1:
        outer, low.module.manual_mesh = low.module.manual_mesh, mesh
        results = low.equations(jaxpr, operands)
        low.module.manual_mesh = outer
        return results
    return low.manual(jaxpr, mesh, ins, outs, operands, in_specs, out_specs, manual_axes)


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _params(params: dict[str, Any], jaxpr: Jaxpr, in_specs: Sequence[Any], out_specs: Sequence[Any]) -> dict[str, Any]:
    return {**params, "jaxpr": jaxpr, "in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr, in_specs, out_specs = params["jaxpr"], params["in_specs"], params["out_specs"]
    active = given(tangents)
    count = len(jaxpr.outvars)
    tangent_in = [s for s, on in zip(in_specs, active, strict=True) if on]
    current.trace = d.parent
    if d.tangent is d.parent:
        made = jaxprs.jvp(jaxpr, active)
        tangent_out = [s for s, h in zip(out_specs, made.has, strict=True) if h]
        specs = _params(params, made.jaxpr, [*_shared(made.consts), *in_specs, *tangent_in], [*out_specs, *tangent_out])
        outs = shard_map_p(*made.consts, *primals, *present(tangents), **specs)
        return outs[:count], fill(made.has, outs[count:])
    forward, consts, linear, has, sources, residual_specs = _split(jaxpr, active, _Mesh(params["mesh"]))
    specs = _params(params, forward, [*_shared(consts), *in_specs], [*out_specs, *residual_specs])
    results = shard_map_p(*consts, *primals, **specs)
    pools = {"in": (primals, in_specs), "out": (results, [*out_specs, *residual_specs])}
    residuals, specs_in = [], []
    for kind, k in sources:
        residuals.append(k if kind == "const" else pools[kind][0][k])
        specs_in.append(PartitionSpec() if kind == "const" else pools[kind][1][k])
    tangent_out = [s for s, h in zip(out_specs, has, strict=True) if h]
    emitted = d.tape.emit(
        shard_map_p, [*residuals, *present(tangents)], _params(params, linear, [*specs_in, *tangent_in], tangent_out)
    )
    return results[:count], fill(has, emitted)


def _shared(consts: Sequence[Any]) -> list[PartitionSpec]:
    return [PartitionSpec()] * len(consts)


class _Mesh:
    """A mesh as part of a key."""

    __slots__ = ("mesh",)

    def __init__(self, mesh: Any):
        self.mesh = mesh

    def __hash__(self) -> int:
        return hash(self.mesh)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Mesh) and self.mesh == other.mesh


def _split(jaxpr: Jaxpr, active: tuple[bool, ...], mesh: _Mesh) -> Any:
    """The linearized body; residuals that it computes leave stacked over the axes over which they differ."""
    key = ("shard_map", active, mesh)
    found = jaxpr.memo.get(key)
    if found is not None:
        return found
    lin = jaxprs.linearize(jaxpr, active)
    count = len(jaxpr.outvars)
    own = lin.forward.outvars[count:]
    # A result that is also a residual leaves twice: its own spec may not hold what differs.
    sources = list(lin.sources)
    extra = [("extra", k) for kind, k in sources if kind == "out" and k < count]

    def forward(*operands: Any) -> list[Any]:
        outs = evaluate(lin.forward, (), operands)
        again = [outs[k] for _, k in extra]
        return outs[:count] + [_ranked(r) for r in (*outs[count:], *again)]

    made, consts = stage(forward, lin.forward.in_avals, jaxpr.debug_name)
    kept = [v.aval for v in own] + [lin.forward.outvars[k].aval for _, k in extra]
    specs = [PartitionSpec(_names(mesh.mesh, a)) for a in kept]
    places = iter(range(count + len(own), count + len(kept)))
    sources = [("out", next(places)) if kind == "out" and k < count else (kind, k) for kind, k in sources]
    residual_types = [v.aval for v in lin.tangent.invars[: len(sources)]]

    def linear(*operands: Any) -> list[Any]:
        residuals = [
            structure.reshape_to(x, a.shape) for x, a in zip(operands[: len(sources)], residual_types, strict=True)
        ]
        return evaluate(lin.tangent, (), [*residuals, *operands[len(sources) :]])

    ranked = [
        a.update(shape=(1,)) if a.shape == () and kind == "out" else a
        for a, (kind, _) in zip(residual_types, sources, strict=True)
    ]
    tangent, tangent_consts = stage(linear, (*ranked, *lin.tangent.in_avals[len(sources) :]), jaxpr.debug_name)
    assert not tangent_consts, tangent_consts
    found = (close(made), [*consts, *lin.consts], close(tangent), lin.has, sources, specs)
    jaxpr.memo[key] = found
    return found


def _names(mesh: Any, aval: ShapedArray) -> tuple[Any, ...]:
    return tuple([n for n in mesh.axis_names if n in aval.varying])


def _ranked(x: Any) -> Any:
    return structure.reshape_to(x, (1,)) if typeof(x).shape == () else x


def _transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    jaxpr, in_specs, out_specs = params["jaxpr"], params["in_specs"], params["out_specs"]
    unknown = tuple([is_unknown(x) for x in operands])
    back = jaxprs.transpose(jaxpr, unknown, given(cts))
    known = [x for x in operands if not is_unknown(x)]
    ct_in = [s for s, ct in zip(out_specs, cts, strict=True) if ct is not None]
    specs = [s for s, u in zip(in_specs, unknown, strict=True) if not u]
    targets = [s for s, u in zip(in_specs, unknown, strict=True) if u]
    live = [s for s, alive in zip(targets, back.live, strict=True) if alive]
    outs = shard_map_p(
        *back.consts, *known, *present(cts),
        **_params(params, back.jaxpr, [*_shared(back.consts), *specs, *ct_in], live),
    )  # fmt: skip
    found = iter(fill(back.live, outs))
    return [next(found) if u else None for u in unknown]


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    made = jaxprs.batch(params["jaxpr"], trace.size, tuple(flags), trace.axis_name, trace.spmd_axis_name)
    in_specs = [PartitionSpec(None, *s) if f else s for s, f in zip(params["in_specs"], flags, strict=True)]
    out_specs = [PartitionSpec(None, *s) if f else s for s, f in zip(params["out_specs"], made.has, strict=True)]
    outs = prim(*made.consts, *operands, **_params(params, made.jaxpr, [*_shared(made.consts), *in_specs], out_specs))
    return outs, made.has


shard_map_p = Primitive(
    "shard_map",
    type=lambda *operands, jaxpr, mesh, in_specs, out_specs, manual_axes, check_vma: tuple(
        [_whole(mesh, s, a, frozenset(manual_axes)) for s, a in zip(out_specs, jaxpr.out_avals, strict=True)]
    ),
    lower=_lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple=True,
    carrier=True,
    effects=lambda params: params["jaxpr"].effects,
)

# ---- public ----------------------------------------------------------------------------------------------------------


def _spread(api: str, what: str, specs: Any, target: Any) -> list[PartitionSpec]:
    found = tree.broadcast_prefix(specs, target, is_leaf=lambda s: s is None or isinstance(s, PartitionSpec), what=what)
    for s in found:
        if not isinstance(s, PartitionSpec):
            raise TypeError(f"{api}: {what} must hold PartitionSpecs; it holds {s!r:.60}.")
    return found


@api_boundary
def shard_map(
    f: Any = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Any = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Any:
    """`f`, a function of one device's parts, on a whole mesh.

    Args:
        f: function of pytrees of arrays; inside, collectives over the mesh's axis names communicate.
        out_specs: how the results are divided, a pytree prefix of `PartitionSpec`s: parts are put together along the
            axes named, and must be equal over the others.
        in_specs: how the arguments are divided, a pytree prefix of the positional arguments.
        mesh: a `Mesh`; by default the current one.
        axis_names: the axes that are manual inside; all of them by default.
        check_vma: check that results do not differ over axes that their spec does not name.

    Raises:
        ValueError: no mesh, specs that do not fit, or a result that differs over an axis that its spec leaves out.

    >>> from morphax import lax, make_mesh, numpy as jnp, P
    >>> mesh = make_mesh((1,), ("i",))
    >>> total = shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    >>> float(total(jnp.arange(4.0)))
    6.0
    """
    if f is None:
        return lambda g: shard_map(
            g, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    check_callable("shard_map", f)

    @api_boundary
    def mapped(*args: Any) -> Any:
        on = mesh if mesh is not None else current_mesh()
        if not isinstance(on, (Mesh, AbstractMesh)):
            raise ValueError("shard_map: no mesh was given and none is set. Pass mesh=, or use set_mesh.")
        if in_specs is None:
            raise TypeError("shard_map: give in_specs, one PartitionSpec for each argument or a prefix of them.")
        return _call(f, args, on, in_specs, out_specs, axis_names, check_vma)

    return mapped


def _call(f: Any, args: tuple[Any, ...], mesh: Any, in_specs: Any, out_specs: Any, axis_names: Any, check: bool) -> Any:
    leaves, in_tree = tree.flatten((args, {}))
    if isinstance(in_specs, list):
        in_specs = tuple(in_specs)
    prefix = (in_specs if isinstance(in_specs, tuple) else (in_specs,) * len(args), {})
    specs = _spread("shard_map", f"shard_map in_specs of {name_of(f)}", prefix, (args, {}))
    names = tuple(axis_names) or tuple(mesh.axis_names)
    types = []
    for leaf, spec in zip(leaves, specs, strict=True):
        aval = check_leaf("shard_map", leaf, lambda: f"an argument of {name_of(f)}")
        check_spec(f"shard_map in_specs of {name_of(f)}", mesh, spec, aval.shape)
        types.append(_local(mesh, spec, aval))
    flat = FlatFun(f, in_tree, "shard_map")
    axes, manual = current.axes, current.manual
    current.axes = {**axes, **{n: mesh.shape[n] for n in names}}
    current.manual = manual | frozenset(names)
    try:
        jaxpr, consts = stage(flat, types, name_of(f))
    finally:
        current.axes, current.manual = axes, manual
    results = _spread("shard_map", f"shard_map out_specs of {name_of(f)}", out_specs, flat.out_tree)
    _check_results(f, mesh, names, results, jaxpr.out_avals, flat.out_tree, check)
    outs = shard_map_p(
        *consts,
        *map(canonical, leaves),
        jaxpr=close(jaxpr),
        mesh=mesh,
        in_specs=(*_shared(consts), *specs),
        out_specs=tuple(results),
        manual_axes=names,
        check_vma=check,
    )
    return tree.unflatten(flat.out_tree, outs)


def _check_results(f: Any, mesh: Any, names: Any, specs: Any, types: Any, out_tree: Any, check: bool) -> None:
    paths = [tree.keystr(keys) for keys, _ in tree.leaves_with_path(tree.unflatten(out_tree, range(len(types))))]
    for path, spec, aval in zip(paths, specs, types, strict=True):
        if len(spec) > aval.ndim:
            raise ValueError(f"shard_map: out_specs of {name_of(f)} has {spec} for output{path}, of type {aval}.")
        check_spec(f"shard_map out_specs of {name_of(f)}", mesh, spec)
        left = [n for n in names if n in aval.varying and n not in _axes(spec)]
        if check and left:
            raise ValueError(
                f"shard_map: output{path} of {name_of(f)} differs over the mesh axes {tuple(left)} (its type is "
                f"{aval}), and its out_spec {spec} does not name them. Name them, reduce with psum or pmean, or give "
                "check_vma=False."
            )


def smap(f: Any = None, /, *, in_axes: Any = None, out_axes: Any, axis_name: Any) -> Any:
    """`shard_map` over one axis of the current mesh, with axes as for `vmap`: ints, or None for undivided arguments."""
    if f is None:
        return lambda g: smap(g, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def spec(axis: Any) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    is_leaf: Callable[[Any], bool] = lambda a: a is None  # noqa: E731 - None is an axis here
    return shard_map(
        f,
        in_specs=tree.map(spec, in_axes, is_leaf=is_leaf),
        out_specs=tree.map(spec, out_axes, is_leaf=is_leaf),
        axis_names={axis_name},
    )
