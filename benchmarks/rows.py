"""What the benchmark measures: one row a measurement, and the ratio to JAX that Morphax means to reach."""

from typing import NamedTuple


class Row(NamedTuple):
    """One measurement: `scale` turns seconds into `unit`; the time is divided by the operations of `program`."""

    name: str
    group: str
    unit: str
    scale: float
    target: float | None = None
    program: str | None = None


PROGRAMS = {"chain": "600-operation chain", "mlp": "3-layer MLP", "transformer": "12-layer transformer"}

START = {
    "import": (0.6, "pass"),
    "import and first grad": (None, "jax.grad(jnp.tanh)(1.0)"),
    "import and first jit(grad)": (None, "jax.jit(jax.grad(jnp.tanh))(1.0)"),
    "the same, second process": (None, "jax.jit(jax.grad(jnp.tanh))(1.0)"),
}

STAGES = {"trace": 0.5, "trace grad": 0.2, "trace vmap": None, "lower": 0.5, "lower grad": 0.5}

ARGUMENTS = {"1 argument": 1, "10 arguments": 10, "100 arguments": 100}

DISPATCH = [*ARGUMENTS, "dict of 100, one result", "dict of 100, dict of 100"]

EAGER = {"x + y": 1.0, "x[1:3]": 1.0, "jnp.where": 1.0, "x.at[2].set": 1.0, "grad of a 3-layer MLP": 0.3}


def stage_rows() -> list[Row]:
    rows = []
    for stage, target in STAGES.items():
        for program, title in PROGRAMS.items():
            rows.append(Row(f"{stage}: {title}", "stages", "µs/op", 1e6, target, program))
    return rows


ROWS = [
    *(Row(name, "start", "ms", 1e3, target) for name, (target, _) in START.items()),
    *stage_rows(),
    *(Row(f"jit call: {name}", "dispatch", "µs", 1e6, 1.1) for name in DISPATCH),
    *(Row(f"eager: {name}", "eager", "µs", 1e6, target) for name, target in EAGER.items()),
]
