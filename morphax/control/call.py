"""The call of a jaxpr: what a jitted function is under another transform."""

from collections.abc import Sequence
from typing import Any

from morphax.ir.current import current
from morphax.ir.jaxpr import Eqn, Jaxpr, prune
from morphax.ir.primitive import Primitive, is_unknown
from morphax.transforms import differentiate as ad
from morphax.transforms import jaxprs


def _linearize(d: ad.Differentiate, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    jaxpr, name = params["jaxpr"], params["name"]
    active = tuple([t is not None for t in tangents])
    given = [t for t in tangents if t is not None]
    count = len(jaxpr.outvars)
    current.trace = d.parent
    if d.tangent is d.parent:  # forward mode: residuals need not be returned
        forward = jaxprs.jvp(jaxpr, active)
        outs = call(*forward.consts, *primals, *given, jaxpr=forward.jaxpr, name=name)
        found = iter(outs[count:])
        return outs[:count], [next(found) if has else None for has in forward.has]
    split = jaxprs.linearize(jaxpr, active)
    results = call(*split.consts, *primals, jaxpr=split.forward, name=name)
    residuals = jaxprs.residuals_of(split, primals, results)
    found = iter(d.tape.emit(call, [*residuals, *given], {"jaxpr": split.tangent, "name": name}))
    return results[:count], [next(found) if has else None for has in split.has]


def _transpose(cts: Sequence[Any], *operands: Any, jaxpr: Jaxpr, name: str) -> list[Any]:
    unknown = tuple([is_unknown(x) for x in operands])
    back = jaxprs.transpose(jaxpr, unknown, tuple([ct is not None for ct in cts]))
    known = [x for x in operands if not is_unknown(x)]
    found = iter(call(*back.consts, *known, *[ct for ct in cts if ct is not None], jaxpr=back.jaxpr, name=name))
    live = iter(back.live)
    return [next(found) if u and next(live) else None for u in unknown]


def _batch(trace: Any, prim: Primitive, operands: Sequence[Any], flags: Sequence[bool], params: Any) -> Any:
    made = jaxprs.batch(params["jaxpr"], trace.size, tuple(flags), trace.axis_name, trace.spmd_axis_name)
    outs = call(*made.consts, *operands, jaxpr=made.jaxpr, name=params["name"])
    return outs, made.has


def _prune(eqn: Eqn, used: tuple[bool, ...]) -> Eqn:
    jaxpr, kept = prune(eqn.params["jaxpr"], used)
    return eqn.replace(
        params={**eqn.params, "jaxpr": jaxpr},
        invars=[v for v, k in zip(eqn.invars, kept, strict=True) if k],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
    )


call = Primitive(
    "jit",
    type=lambda *operands, jaxpr, name: jaxpr.out_avals,
    lower=lambda low, ins, outs, *operands, jaxpr, name: low.call(jaxpr, operands, name),
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    prune=_prune,
    multiple=True,
    carrier=True,
    effects=lambda params: params["jaxpr"].effects,
    show=lambda params: {"name": params["name"], "jaxpr": params["jaxpr"]},
    read=lambda shown, ins, outs: {"jaxpr": shown["jaxpr"], "name": shown["name"]},
)
