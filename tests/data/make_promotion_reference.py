"""Writes promotion.json: what JAX's own `result_type` gives for every pair of types. Run it with JAX installed.

Per mode (x64, x32): `names`, the types as short names, weak ones with a star; and `rows`, for each type the results
with itself and all later ones, in the order of `names`, "-" where JAX raises TypePromotionError. Also `strict`, the
pairs that strict promotion allows.
"""

import json
import pathlib
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

STRONG = (
    "bool int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64 int1 uint1 "
    "bfloat16 float16 float32 float64 complex64 complex128 "
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
    "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()
WEAK = "int32 int64 float32 float64 complex64 complex128 int8 uint8 bfloat16 float16".split()


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def pair_result(a, b):
    found = []

    def record(x, y):
        found.append(jax.dtypes.result_type(x, y, return_weak_type_flag=True))
        return 0

    try:
        jax.eval_shape(record, a, b)
    except jax.dtypes.TypePromotionError:
        return "-"
    dtype, weak = found[0]
    return dtype.name + ("*" if weak else "")


def table(x64, promotion):
    jax.config.update("jax_enable_x64", x64)
    jax.config.update("jax_numpy_dtype_promotion", promotion)
    wide = ("int64", "uint64", "float64", "complex128")
    names = [n for n in STRONG if x64 or n not in wide] + [n + "*" for n in WEAK if x64 or n not in wide]
    structs = [jax.ShapeDtypeStruct((), dtype_of(n.rstrip("*")), weak_type=n.endswith("*")) for n in names]
    rows = []
    for i, a in enumerate(structs):
        rows.append(" ".join(pair_result(a, b) for b in structs[i:]))
    return {"names": " ".join(names), "rows": rows}


warnings.simplefilter("ignore")
tables = {
    "made_with": f"make_promotion_reference.py, jax {jax.__version__}",
    "x32": table(False, "standard"),
    "x64": table(True, "standard"),
    "strict": table(True, "strict"),
}
assert jnp.result_type(1, 2.0) == np.dtype("float64")
pathlib.Path(__file__).with_name("promotion.json").write_text(json.dumps(tables, indent=0) + "\n")
