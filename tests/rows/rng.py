"""Rows of what XLA draws by itself."""

from samples import Sample, put, zeros

from morphax.ops import random_bits

ROWS = (
    Sample(
        "rng_uniform", lambda a, b: random_bits.rng_uniform(a, b, shape=(2, 3)), None, shapes=[((), ())],
        dtypes=("float32", "float64"), domain=[(0.0, 1.0), (2.0, 3.0)],
        errors=[
            (lambda: random_bits.rng_uniform(zeros(2), zeros(2), shape=(2,)), ValueError, "must be scalars"),
            (lambda: random_bits.rng_uniform(put(1), put(1.0), shape=(2,)), TypeError, "have dtypes"),
        ],
        gaps=dict.fromkeys(("value", "jit", "vmap", "jvp", "vjp", "second"), "every draw gives other numbers"),
    ),
)  # fmt: skip
