"""Every primitive keeps every promise: properties over all rows of `samples.py`."""

import importlib
import itertools
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import rows
from samples import Sample, put

from morphax import ops
from morphax.ir import jaxpr as programs
from morphax.ir import show
from morphax.ir.primitive import registry
from morphax.ops import elementwise as ew
from morphax.runtime.jit import jit
from morphax.support import dtypes, tree
from morphax.transforms import api

for _module in pkgutil.iter_modules(ops.__path__):
    importlib.import_module(f"{ops.__name__}.{_module.name}")
# Carriers, and the few primitives of higher layers, are held to their properties in tests/control and
# tests/test_sharding.py, collectives in tests/lax/test_collectives.py.
OPERATIONS = {
    name: prim
    for name, prim in registry.items()
    if not prim.carrier and prim.collective is None and prim.type.__module__.startswith("morphax.ops.")
}

SAMPLES = rows.every()


def over_samples(gap: str, differentiable: bool = False) -> Callable[[Any], Any]:
    """Parametrize by the rows that are held to the property `gap`."""
    chosen = [s for s in SAMPLES if gap not in s.gaps and (s.differentiable or not differentiable)]
    return pytest.mark.parametrize("sample", chosen, ids=lambda s: s.name)


def cases(sample: Sample, full: bool) -> list[tuple[Any, Any]]:
    """(shapes, dtypes): all pairs with --full, else each of either at least once."""
    if full:
        return list(itertools.product(sample.shapes, sample.dtypes))
    first = [(sample.shapes[0], d) for d in sample.dtypes]
    return first + [(shapes, sample.dtypes[0]) for shapes in sample.shapes[1:]]


def wide(x: np.ndarray) -> np.ndarray:
    """A host operand as the reference wants it: floats of 64 bits, complex numbers of 128."""
    kind = dtypes.kind(x.dtype)
    return x.astype({"f": np.float64, "c": np.complex128}.get(kind, x.dtype))


def host(out: Any) -> list[np.ndarray]:
    """Results as NumPy arrays."""
    return [np.asarray(leaf) for leaf in tree.leaves(out)]


def assert_close(got: Any, wanted: Any, tol: float) -> None:
    got, wanted = host(got), host(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        if tol == 0:
            np.testing.assert_array_equal(wide(a), wide(b))
        else:
            np.testing.assert_allclose(wide(a), wide(b), rtol=tol, atol=tol)


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--full")


# ---- values and types ------------------------------------------------------------------------------------------------


@over_samples("value")
def test_value_is_that_of_the_reference(sample: Sample, full: bool) -> None:
    assert sample.reference is not None, "a row without a reference needs the gap 'value'"
    for shapes, case in cases(sample, full):
        operands = sample.operands(shapes, case)
        with np.errstate(all="ignore"):
            wanted = sample.reference(*[wide(x) for x in operands])
        got = sample.fun(*[put(x) for x in operands])
        wanted = [np.asarray(w) for w in (wanted if isinstance(wanted, (list, tuple)) else [wanted])]
        for a, w in zip(host(got), wanted, strict=True):
            assert_close(a, w.astype(wide(a).dtype), sample.tolerance(a.dtype))


@over_samples("xla")
def test_type_is_the_one_that_xla_gives(sample: Sample, full: bool) -> None:
    for shapes, case in cases(sample, full):
        operands = [put(x) for x in sample.operands(shapes, case)]
        types = api.make_jaxpr(sample.fun)(*operands).out_avals
        for aval, out in zip(types, host(sample.fun(*operands)), strict=True):
            assert (aval.shape, aval.dtype) == (out.shape, out.dtype)


@over_samples("jit")
def test_jit_is_eager(sample: Sample) -> None:
    for shapes in sample.shapes:
        operands = [put(x) for x in sample.operands(shapes, sample.dtypes[0])]
        out = sample.fun(*operands)
        assert_close(jit(sample.fun)(*operands), out, max(sample.tolerance(o.dtype) for o in host(out)))


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.at], ids=lambda s: s.name)
def test_special_points(sample: Sample) -> None:
    dtype = dtypes.BY_NAME[sample.at_dtype]
    for given, wanted, *derivatives in sample.at:
        operands = [put(x, dtype) for x in given]
        np.testing.assert_allclose(host(sample.fun(*operands))[0], wanted, rtol=1e-14)
        if derivatives:
            positions = tuple(range(len(operands)))

            def total(*x: Any) -> Any:
                out = sample.fun(*x)
                return ew.reduce_sum(out, axes=tuple(range(out.ndim)))

            for got, slope in zip(api.grad(total, positions)(*operands), derivatives[0], strict=True):
                np.testing.assert_allclose(np.asarray(got), slope, rtol=1e-14)


# ---- derivatives -----------------------------------------------------------------------------------------------------


class Restricted:
    """A row's function of its inexact operands alone, with random points and directions."""

    def __init__(self, sample: Sample, shapes: Sequence[tuple[int, ...]], case: Any):
        operands = sample.operands(shapes, case)
        self.positions = [k for k, x in enumerate(operands) if dtypes.is_inexact(x.dtype)]
        self.x = [operands[k] for k in self.positions]
        rng = np.random.default_rng(1)
        self.v = [random_like(x, rng) for x in self.x]
        fixed = [put(x) for x in operands]

        def fun(*x: Any) -> list[Any]:
            every = list(fixed)
            for k, value in zip(self.positions, x, strict=True):
                every[k] = value
            return [o for o in tree.leaves(sample.fun(*every)) if dtypes.is_inexact(o.dtype)]

        self.fun = fun
        self.u = [random_like(np.zeros(a.shape, a.dtype), rng) for a in api.eval_shape(fun, *self.placed)]

    @property
    def placed(self) -> list[Any]:
        return [put(x) for x in self.x]

    def moved(self, step: float) -> list[Any]:
        """The point, moved along the direction."""
        return [put(x + step * v) for x, v in zip(self.x, self.v, strict=True)]


def random_like(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.normal(size=x.shape)
    if dtypes.is_complex(x.dtype):
        return (drawn + 1j * rng.normal(size=x.shape)).astype(x.dtype)
    return np.asarray(drawn).astype(x.dtype)


def inner(u: Sequence[Any], v: Sequence[Any]) -> float:
    """Pairing of cotangents with tangents: Re sum u v, without conjugation. They are of the same types."""
    assert [(a.shape, a.dtype) for a in u] == [(b.shape, b.dtype) for b in v]
    return float(sum(np.real(np.sum(np.asarray(a) * np.asarray(b))) for a, b in zip(u, v, strict=True)))


def forward(fun: Any, x: Sequence[Any], v: Sequence[Any]) -> list[Any]:
    return api.jvp(fun, tuple(x), tuple(v))[1]


def restricted(sample: Sample) -> list[Restricted]:
    return [Restricted(sample, shapes, case) for shapes in sample.shapes for case in sample.differentiable]


def central(r: Restricted, fun: Any) -> list[np.ndarray]:
    """Derivative of `fun` at the point of `r` along its direction, from its values nearby."""
    step = 1e-5
    return [(a - b) / (2 * step) for a, b in zip(host(fun(r.moved(step))), host(fun(r.moved(-step))), strict=True)]


@over_samples("jvp", differentiable=True)
def test_jvp_is_the_limit_of_differences(sample: Sample) -> None:
    for r in restricted(sample):
        got = jit(lambda x, v: forward(r.fun, x, v))(r.placed, [put(v) for v in r.v])
        compiled = jit(lambda x: r.fun(*x))
        assert_close(got, central(r, compiled), 1e-7)


@over_samples("vjp", differentiable=True)
def test_vjp_is_the_transpose_of_jvp(sample: Sample) -> None:
    def both(r: Restricted, x: Any, v: Any, u: Any) -> Any:
        return forward(r.fun, x, v), api.vjp(r.fun, *x)[1](u)

    for r in restricted(sample):
        v, u = [put(v) for v in r.v], [put(u) for u in r.u]
        tangent, cotangent = jit(lambda x, v, u: both(r, x, v, u))(r.placed, v, u)
        assert_close(inner(r.u, tangent), inner(cotangent, r.v), 1e-10)


@over_samples("second", differentiable=True)
def test_second_derivative(sample: Sample) -> None:
    r = restricted(sample)[0]
    v, u = [put(v) for v in r.v], [put(u) for u in r.u]

    def slope(x: Any) -> Any:
        return forward(r.fun, x, v)

    def pulled(x: Any) -> Any:
        return api.vjp(r.fun, *x)[1](u)

    def both(x: Any) -> Any:
        return forward(lambda *y: slope(y), x, v), forward(lambda *y: pulled(y), x, v)

    twice, reverse = jit(both)(r.placed)
    assert_close(twice, central(r, jit(slope)), 1e-6)
    assert_close(inner(r.u, twice), inner(reverse, r.v), 1e-10)


# ---- batching --------------------------------------------------------------------------------------------------------


def subsets(count: int) -> list[tuple[bool, ...]]:
    """Which operands have a batch axis: each alone, and all."""
    alone = [tuple(k == i for k in range(count)) for i in range(count)]
    return alone + [(True,) * count] * (count > 1)


@over_samples("vmap")
def test_vmap_is_a_loop(sample: Sample, full: bool) -> None:
    for shapes in sample.shapes if full else sample.shapes[:2]:
        for flags in subsets(len(shapes)):
            examples = [sample.operands(shapes, sample.dtypes[0], seed) for seed in range(3)]
            stacked = [
                put(np.stack([e[k] for e in examples]) if flag else examples[0][k]) for k, flag in enumerate(flags)
            ]
            in_axes = tuple(0 if flag else None for flag in flags)
            got = host(api.vmap(sample.fun, in_axes)(*stacked))
            each = []
            for k in range(3):
                each.append(host(sample.fun(*[put(examples[k * f][i]) for i, f in enumerate(flags)])))
            wanted = [np.stack([e[i] for e in each]) for i in range(len(got))]
            for a, w in zip(got, wanted, strict=True):
                assert a.dtype == w.dtype
                assert_close(a, w, sample.tolerance(a.dtype))


@over_samples("vmap")
def test_vmap_over_an_empty_batch(sample: Sample) -> None:
    shapes = sample.shapes[0]
    operands = [put(np.stack([x] * 2)[:0]) for x in sample.operands(shapes, sample.dtypes[0])]
    example = api.eval_shape(sample.fun, *[put(x) for x in sample.operands(shapes, sample.dtypes[0])])
    for out, one in zip(tree.leaves(api.vmap(sample.fun)(*operands)), tree.leaves(example), strict=True):
        assert (out.shape, out.dtype) == ((0, *one.shape), one.dtype)


# ---- programs --------------------------------------------------------------------------------------------------------


@over_samples("text")
def test_text_parses_back(sample: Sample) -> None:
    for case in sample.dtypes:
        operands = [put(x) for x in sample.operands(sample.shapes[0], case)]
        text = str(api.make_jaxpr(sample.fun)(*operands))
        parsed = show.parse(text)
        assert str(parsed) == text
        programs.check(getattr(parsed, "jaxpr", parsed))


@over_samples("check")
def test_programs_of_transforms_are_well_typed(sample: Sample) -> None:
    shapes = sample.shapes[0]
    operands = [put(x) for x in sample.operands(shapes, sample.dtypes[0])]
    stacked = [put(np.stack([x, x])) for x in sample.operands(shapes, sample.dtypes[0])]
    made = [api.make_jaxpr(sample.fun)(*operands), api.make_jaxpr(api.vmap(sample.fun))(*stacked)]
    if sample.differentiable and "jvp" not in sample.gaps:
        r = restricted(sample)[0]
        made.append(api.make_jaxpr(lambda x, v: forward(r.fun, x, v))(r.placed, [put(v) for v in r.v]))
        made.append(api.make_jaxpr(lambda x: api.linearize(r.fun, *x)[1](*r.placed))(r.placed))
    if sample.differentiable and not {"jvp", "vjp"} & set(sample.gaps):
        made.append(api.make_jaxpr(lambda x, u: api.vjp(r.fun, *x)[1](u))(r.placed, [put(u) for u in r.u]))
    for closed in made:
        programs.check(closed.jaxpr)


# ---- errors, and whether all are here --------------------------------------------------------------------------------

ERRORS = [(s.name, *error) for s in SAMPLES for error in s.errors]


@pytest.mark.parametrize(("name", "call", "exception", "message"), ERRORS, ids=[e[0] for e in ERRORS])
def test_error_says_what_is_wrong(name: str, call: Any, exception: type[Exception], message: str) -> None:
    with pytest.raises(exception) as caught:
        call()
    text = str(caught.value)
    assert message in text
    assert text.startswith(name.partition(":")[0]), "the message starts with the name of the operation"


def test_every_primitive_has_a_row() -> None:
    assert sorted(set(OPERATIONS) - {s.primitive for s in SAMPLES}) == []
