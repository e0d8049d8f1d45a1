"""Measure the rows of one group with one implementation; one JSON object a line.

    python benchmarks/measure.py morphax eager "eager: x + y" ...

Tracing and lowering are counted in CPU seconds of this process, the best of several; calls in wall-clock seconds, the
smallest of several medians. Both stand up to other programs on the machine.
"""

import gc
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import rows
import workloads

Measurement = tuple[str, Callable[[], float]]


def cpu_seconds(prepare: Callable[[], Callable[[], Any]], repeats: int = 5) -> float:
    """Least CPU time of the call that `prepare` returns, over `repeats` after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        call = prepare()
        gc.collect()
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times[1:])


def seconds_a_call(jax: Any, call: Callable[[], Any], batch_seconds: float = 4e-3) -> float:
    """Least of seven medians of eleven batches; a batch ends when its last result is there."""

    def batch(count: int) -> float:
        result = None
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        jax.block_until_ready(result)
        return (time.perf_counter() - start) / count

    batch(3)
    count = max(1, round(batch_seconds / min(batch(3) for _ in range(5))))
    return min(statistics.median(batch(count) for _ in range(11)) for _ in range(7))


def operations(jaxpr: Any) -> int:
    """Equations of `jaxpr`, those of the jaxprs inside it in place of the equations that carry them."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [param.jaxpr for param in eqn.params.values() if hasattr(param, "jaxpr")]
        total += sum(operations(jaxpr) for jaxpr in inner) if inner else 1
    return total


def same(fun: Callable[..., Any]) -> Callable[..., Any]:
    return fun


def stage_measures(jax: Any, program: workloads.Program) -> dict[str, Callable[[], float]]:
    def trace(transform: Callable[..., Any], args: tuple[Any, ...]) -> float:
        def prepare() -> Callable[[], Any]:
            fun = transform(program.build())
            return lambda: jax.make_jaxpr(fun)(*args)

        return cpu_seconds(prepare)

    def lower(transform: Callable[..., Any]) -> float:
        return cpu_seconds(lambda: jax.jit(transform(program.build())).trace(*program.args).lower)

    return {
        "trace": lambda: trace(same, program.args),
        "trace grad": lambda: trace(jax.grad, program.args),
        "trace vmap": lambda: trace(lambda fun: jax.vmap(fun, in_axes=program.in_axes), program.batched),
        "lower": lambda: lower(same),
        "lower grad": lambda: lower(jax.grad),
    }


def stages(jax: Any, jnp: Any) -> Iterator[Measurement]:
    for name, title in rows.PROGRAMS.items():
        for stage, measure in stage_measures(jax, workloads.PROGRAMS[name](jax, jnp)).items():
            yield f"{stage}: {title}", measure


def dispatch(jax: Any, jnp: Any) -> Iterator[Measurement]:
    (x,) = arrays = workloads.arrays(jnp, (8,))
    add_all = jax.jit(lambda *xs: sum(xs[1:], xs[0] + 1.0))
    for name, count in rows.ARGUMENTS.items():
        args = arrays * count
        yield f"jit call: {name}", lambda args=args: seconds_a_call(jax, lambda: add_all(*args))
    tree = {f"leaf{index}": x + index for index in range(100)}
    add_leaves = jax.jit(lambda tree: sum(tree.values()))
    double = jax.jit(lambda tree: {name: 2.0 * leaf for name, leaf in tree.items()})
    yield "jit call: dict of 100, one result", lambda: seconds_a_call(jax, lambda: add_leaves(tree))
    yield "jit call: dict of 100, dict of 100", lambda: seconds_a_call(jax, lambda: double(tree))


def eager(jax: Any, jnp: Any) -> Iterator[Measurement]:
    x, y = workloads.arrays(jnp, (8,), (8,))
    mask = x > 0.0
    program = workloads.mlp(jax, jnp)
    grad = jax.grad(program.build())
    calls = {
        "x + y": lambda: x + y,
        "x[1:3]": lambda: x[1:3],
        "jnp.where": lambda: jnp.where(mask, x, y),
        "x.at[2].set": lambda: x.at[2].set(1.0),
        "grad of a 3-layer MLP": lambda: grad(*program.args),
    }
    for name, call in calls.items():
        yield f"eager: {name}", lambda call=call: seconds_a_call(jax, call)


GROUPS = {"stages": stages, "dispatch": dispatch, "eager": eager}


def main() -> None:
    implementation, group, *wanted = sys.argv[1:]
    jax = importlib.import_module(implementation)
    jnp = importlib.import_module(f"{implementation}.numpy")
    if implementation == "jax" and group == "stages":
        for name, make in workloads.PROGRAMS.items():
            program = make(jax, jnp)
            count = operations(jax.make_jaxpr(program.build())(*program.args).jaxpr)
            print(json.dumps({"program": name, "operations": count}), flush=True)
    for row, measure in GROUPS[group](jax, jnp):
        if row not in wanted:
            continue
        try:
            print(json.dumps({"row": row, "seconds": measure()}), flush=True)
        except Exception as error:  # one row that cannot run must not cost the others
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            print(json.dumps({"row": row, "error": reason[:200]}), flush=True)


if __name__ == "__main__":
    main()
