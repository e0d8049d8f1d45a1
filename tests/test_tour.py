"""The tour in docs/ runs, prints what it promises, and stays short enough to read."""

import ast
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tokenize
from types import ModuleType

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[1]
TOUR = ROOT / "docs" / "tour.py"
JAXPRS = json.loads((ROOT / "tests" / "data" / "jaxprs_reference.json").read_text())["records"]


@pytest.fixture(scope="module")
def tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tour", TOUR)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tour"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tour"]


def test_tour_runs_and_prints():
    run = subprocess.run([sys.executable, TOUR], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert "{ lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }" in run.stdout
    assert "if under grad: 1.0 -1.0" in run.stdout
    assert run.stdout.endswith("XLA agrees with NumPy\n")


def test_tour_has_at_most_600_lines_of_code_and_comments():
    source = TOUR.read_text()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    skipped = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = {n for t in tokens if t.type not in skipped for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    assert len(lines) <= 600


@pytest.mark.parametrize(
    ("source", "fun"),
    [
        ("lambda x: lax.sin(x)", lambda tour: tour.sin),
        ("lambda x: x", lambda tour: lambda x: x),
        ("lambda x: 2.0 * lax.sin(x) + 1.0", lambda tour: lambda x: 2.0 * tour.sin(x) + 1.0),
        ("lambda x: lax.gt(x, lax.neg(x))", lambda tour: lambda x: tour.gt(x, -x)),
        ("lambda x: x + np.arange(4, dtype='float32')", lambda tour: lambda x: x + np.arange(4, dtype="float32")),
        ("jax.vmap(lambda x: lax.sin(x) * 2.0)", lambda tour: tour.vmap(lambda x: tour.sin(x) * 2.0)),
    ],
)
def test_tour_prints_jaxprs_as_jax_does(tour, source, fun):
    record = next(r for r in JAXPRS if r["source"] == source)
    operands = [np.ones(shape, dtype) for dtype, shape in record["types"]]
    assert str(tour.make_jaxpr(fun(tour))(*operands)) == record["text"]


def test_jit_prints_its_jaxpr_as_an_equation(tour):
    def double(x):
        return tour.sin(x) * 2.0

    text = """{ lambda ; a:f32[4]. let
    b:f32[4] = jit[
      name=double
      jaxpr={ lambda ; c:f32[4]. let
          d:f32[4] = sin c
          e:f32[4] = mul d 2.0:f32[]
        in (e,) }
    ] a
  in (b,) }"""
    assert str(tour.make_jaxpr(tour.jit(double))(np.ones(4))) == text


def test_derivatives_agree_with_formulas(tour):
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    cases = [
        (tour.sin, np.cos(x)),
        (tour.exp, np.exp(x)),
        (lambda x: x * tour.cos(x) - 3.0 * x, np.cos(x) - x * np.sin(x) - 3),
        (tour.logistic, np.exp(-x) / (1 + np.exp(-x)) ** 2),
    ]
    for fun, expected in cases:
        for wrapped in (fun, tour.jit(fun), tour.jit(tour.jit(fun))):
            assert np.allclose(tour.vmap(tour.grad(wrapped))(x), expected, atol=1e-5)
            assert np.allclose(tour.jit(tour.vmap(tour.grad(wrapped)))(x), expected, atol=1e-5)
            assert np.allclose(tour.jvp(wrapped, (x,), (np.ones_like(x),))[1], expected, atol=1e-5)
            assert np.allclose(tour.vjp(wrapped, x)[1](np.ones_like(x))[0], expected, atol=1e-5)
            assert np.allclose(tour.linearize(wrapped, x)[1](np.ones_like(x)), expected, atol=1e-5)


def test_third_derivatives_through_jit_and_vmap(tour):
    x = np.linspace(0.1, 1, 4, dtype=np.float32)
    grad, jit, vmap = tour.grad, tour.jit, tour.vmap
    expected = -np.cos(x)
    assert np.allclose(vmap(grad(grad(grad(tour.sin))))(x), expected, atol=1e-5)
    assert np.allclose(vmap(jit(grad(jit(grad(jit(grad(jit(tour.sin))))))))(x), expected, atol=1e-5)
    assert np.allclose(vmap(grad(lambda x: tour.jvp(grad(jit(tour.sin)), (x,), (1.0,))[1]))(x), expected, atol=1e-5)


def test_vmap_shares_what_is_closed_over(tour):
    x, y = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    outer = tour.vmap(lambda a: tour.vmap(lambda b: a * b + 1.0)(y))(x)
    assert np.allclose(outer, np.outer(x, y) + 1)
    scale = np.float32(2)
    gradient = tour.grad(lambda s: tour.reduce_sum(tour.vmap(lambda a: s * a)(x), axes=(0,)))(scale)
    assert np.allclose(gradient, x.sum())


def test_errors_say_what_to_do(tour):
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="Branch on shapes"):
        tour.jit(lambda x: x if x > 0.0 else -x)(np.float32(1))
    with pytest.raises(TypeError, match="Reduce it to one number"):
        tour.grad(tour.sin)(x)
    leaked = []
    tour.vmap(lambda a: leaked.append(a) or a)(x)
    with pytest.raises(TypeError, match="has left its transform"):
        tour.sin(leaked[0])
