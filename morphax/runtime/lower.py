"""From a jaxpr to one StableHLO module, with the raw MLIR operation builder.

Lowering rules get a `Lowering` and plain Python values: attributes are written in MLIR's syntax and parsed once for
each text, so that no rule touches jaxlib.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo

from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import Jaxpr, Literal, subjaxprs
from morphax.ops.family import typeof
from morphax.runtime import ffi
from morphax.support import config, dtypes

_create = ir.Operation.create
_registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(_registry)

# ---- types and attributes, one MLIR context per thread ---------------------------------------------------------------

_ELEMENT = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN", "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e8m0fnu": "f8E8M0FNU", "float0": "i1",
}  # fmt: skip


def element(dtype: Any) -> str:
    """A dtype in MLIR's syntax. Random keys are unsigned words."""
    return (
        "ui32" if isinstance(dtype, dtypes.KeyDType) else _ELEMENT[dtype.name if dtype != dtypes.float0 else "float0"]
    )


def physical_shape(aval: ShapedArray) -> tuple[int, ...]:
    """Shape of the buffer: random keys have their words in further axes."""
    return aval.shape + aval.dtype.key_shape if isinstance(aval.dtype, dtypes.KeyDType) else aval.shape


class Context(threading.local):
    """An MLIR context with what was made in it: contexts are not thread-safe, and new ones are slow to fill."""

    def __init__(self) -> None:
        self.mlir = ir.Context()
        self.mlir.append_dialect_registry(_registry)
        self.mlir.load_all_available_dialects()
        self.mlir.enable_multithreading(False)
        stablehlo.register_dialect(self.mlir)
        chlo.register_dialect(self.mlir)
        sdy.register_dialect(self.mlir)
        self.unknown = ir.Location.unknown(self.mlir)
        self.types: dict[ShapedArray, Any] = {}
        self.attributes: dict[str, Any] = {}
        self.locations: dict[Any, Any] = {}

    def type(self, aval: ShapedArray) -> Any:
        """The tensor type of an array type."""
        found = self.types.get(aval)
        if found is None:
            if len(self.types) > 4096:
                self.types.clear()
            found = self.types[aval] = ir.RankedTensorType.get(
                physical_shape(aval), self.parse_type(element(aval.dtype)), loc=self.unknown
            )
        return found

    def parse_type(self, text: str) -> Any:
        return ir.Type.parse(text, self.mlir)

    def attribute(self, text: str) -> Any:
        """The attribute written `text`."""
        found = self.attributes.get(text)
        if found is None:
            if len(self.attributes) > 4096:
                self.attributes.clear()
            found = self.attributes[text] = ir.Attribute.parse(text, self.mlir)
        return found

    def location(self, name: str, source: Any) -> Any:
        """Where an equation was written, as an MLIR location."""
        if source is None:
            return self.unknown
        code, offset, scope = source
        key = (code.co_filename, code.co_name, code.co_firstlineno, offset, scope, name)
        found = self.locations.get(key)
        if found is None:
            if len(self.locations) > 16384:
                self.locations.clear()
            line = _jax.Traceback.code_addr2line(code, offset)
            file = ir.Location.file(code.co_filename, line, 0, self.mlir)
            label = f"{scope}/{name}" if scope else name
            found = self.locations[key] = ir.Location.name(label, file, self.mlir)
        return found


_context = Context()


def ints(values: Sequence[int]) -> str:
    """A dense array of 64-bit integers in MLIR's syntax."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


# ---- lowering --------------------------------------------------------------------------------------------------------

_RETURN = "stablehlo.return"
BlockFun = Callable[..., Sequence[Any]]


class Lowering:
    """Emits the operations of one function; what lowering rules use."""

    def __init__(self, module: "Module", block_insertion: Any, mlir: Context):
        self.module = module
        self.platform = module.platform
        self._ip = block_insertion
        self._mlir = mlir
        self._location = mlir.unknown
        self._constants: dict[Any, Any] = {}

    def op(
        self,
        name: str,
        outs: Sequence[ShapedArray],
        operands: Sequence[Any],
        attributes: dict[str, str] | None = None,
        regions: Sequence[tuple[Sequence[ShapedArray], BlockFun]] = (),
        end: str = _RETURN,
    ) -> list[Any]:
        """Emit one operation and return its results.

        Args:
            name: such as "stablehlo.add".
            outs: types of the results.
            operands: MLIR values.
            attributes: in MLIR's syntax; a value "unit" stands for a unit attribute.
            regions: per region the types of its block's arguments, and a function from the arguments to the results.
            end: the operation that ends a region's block.
        """
        mlir = self._mlir
        parsed = None
        if attributes:
            parsed = {k: mlir.attribute(v) for k, v in attributes.items()}
        made = _create(
            name,
            [mlir.type(a) for a in outs],
            operands,
            parsed,
            regions=len(regions),
            loc=self._location,
            ip=self._ip,
        )
        for region, (types, body) in zip(made.regions, regions, strict=True) if regions else ():
            self._fill(region, types, body, end)
        return [made.result] if len(outs) == 1 else list(made.results)

    def manual(
        self, jaxpr: Jaxpr, mesh: Any, ins: Any, outs: Any, operands: Any, in_specs: Any, out_specs: Any, axes: Any
    ) -> list[Any]:
        """Run a jaxpr on each device's parts of the operands."""
        module = self.module
        if module.meshes is None:
            raise ValueError(f"shard_map: the program is compiled for one device, and the mesh has several: {mesh}.")
        symbol = module.meshes.name(mesh)

        def shardings(specs: Any, types: Any) -> str:
            rows = []
            for spec, aval in zip(specs, types, strict=True):
                entries = [spec[k] if k < len(spec) else None for k in range(len(physical_shape(aval)))]
                names = [e if isinstance(e, tuple) else () if e is None else (e,) for e in entries]
                dims = ["{" + ", ".join(f'"{n}"' for n in group) + "}" for group in names]
                rows.append(f"<@{symbol}, [{', '.join(dims)}]>")
            return f"#sdy.sharding_per_value<[{', '.join(rows)}]>"

        attributes = {
            "in_shardings": shardings(in_specs, ins),
            "out_shardings": shardings(out_specs, outs),
            "manual_axes": "#sdy<manual_axes{" + ", ".join(f'"{a}"' for a in axes) + "}>",
        }
        outer, module.manual_mesh = module.manual_mesh, mesh
        region = (jaxpr.in_avals, lambda *parts: self.equations(jaxpr, parts))
        try:
            return self.op("sdy.manual_computation", outs, operands, attributes, (region,), end="sdy.return")
        finally:
            module.manual_mesh = outer

    def _fill(self, region: Any, types: Sequence[ShapedArray], body: BlockFun, end: str) -> None:
        mlir = self._mlir
        with mlir.mlir:
            block = region.blocks.append(*[mlir.type(a) for a in types], arg_locs=[self._location] * len(types))
        outside, constants = self._ip, self._constants
        self._ip, self._constants = ir.InsertionPoint(block), dict(constants)
        results = body(*block.arguments)
        _create(end, [], list(results), loc=self._location, ip=self._ip)
        self._ip, self._constants = outside, constants

    def key_words(self, aval: ShapedArray) -> tuple[int, ...]:
        """Sizes of the axes that the words of random keys add to an operand; none for other dtypes."""
        return aval.dtype.key_shape if isinstance(aval.dtype, dtypes.KeyDType) else ()

    def constant(self, value: Any, aval: ShapedArray) -> Any:
        """A constant: a scalar, splat to the shape of `aval`, or an array of that shape."""
        array = np.asarray(value, aval.dtype)
        key = (array.tobytes(), aval) if array.ndim == 0 else None
        found = self._constants.get(key) if key is not None else None
        if found is None:
            mlir = self._mlir
            attribute = _dense(array, mlir.type(aval), mlir)
            found = _create(
                "stablehlo.constant", [mlir.type(aval)], [], {"value": attribute}, loc=self._location, ip=self._ip
            ).result
            if key is not None:
                self._constants[key] = found
        return found

    def broadcast(self, x: Any, aval: ShapedArray, shape: Sequence[int], dims: Sequence[int]) -> Any:
        """`x` of type `aval` broadcast to `shape`, its dimensions going to `dims`."""
        if aval.shape == tuple(shape):
            return x
        out = ShapedArray(tuple(shape), aval.dtype)
        words = range(len(shape), len(physical_shape(out)))
        return self.op("stablehlo.broadcast_in_dim", (out,), (x,), {"broadcast_dimensions": ints((*dims, *words))})[0]

    def reduce(
        self, combiner: str, aval: ShapedArray, out: ShapedArray, x: Any, identity: Any, axes: Sequence[int]
    ) -> list[Any]:
        """Reduction of `x` over `axes` by a binary operation such as "stablehlo.add"."""
        element_type = ShapedArray((), aval.dtype)
        start = self.constant(identity, element_type)

        def body(a: Any, b: Any) -> list[Any]:
            return self.op(combiner, (element_type,), (a, b))

        region = ((element_type, element_type), body)
        return self.op("stablehlo.reduce", (out,), (x, start), {"dimensions": ints(axes)}, (region,))

    def storage(self, aval: ShapedArray) -> ShapedArray:
        """Type of the buffer of a value: random keys are words."""
        words = self.key_words(aval)
        return ShapedArray(aval.shape + words, np.dtype("uint32")) if words else aval

    def row(self, x: Any, aval: ShapedArray, index: Any) -> Any:
        """`x[index]`, for a scalar int32."""
        aval = self.storage(aval)
        zero = self.constant(0, ShapedArray((), np.dtype("int32")))
        sizes = (1, *aval.shape[1:])
        starts = [index] + [zero] * (aval.ndim - 1)
        block = ShapedArray(sizes, aval.dtype)
        taken = self.op("stablehlo.dynamic_slice", (block,), (x, *starts), {"slice_sizes": ints(sizes)})
        return self.op("stablehlo.reshape", (ShapedArray(aval.shape[1:], aval.dtype),), taken)[0]

    def set_row(self, x: Any, aval: ShapedArray, row: Any, index: Any) -> Any:
        """`x` with `x[index]` replaced."""
        aval = self.storage(aval)
        zero = self.constant(0, ShapedArray((), np.dtype("int32")))
        block = self.op("stablehlo.reshape", (ShapedArray((1, *aval.shape[1:]), aval.dtype),), (row,))
        starts = [index] + [zero] * (aval.ndim - 1)
        return self.op("stablehlo.dynamic_update_slice", (aval,), (x, *block, *starts))[0]

    def python_callback(
        self,
        callback: Callable[..., tuple[Any, ...]],
        outs: Sequence[ShapedArray],
        operands: Sequence[Any],
        effect: bool,
    ) -> list[Any]:
        """Call a Python function of NumPy arrays that returns a tuple of NumPy arrays."""
        callbacks = self.module.callbacks
        callbacks.append(callback)
        attributes = {
            "call_target_name": '"xla_ffi_python_cpu_callback"',
            "has_side_effect": "true" if effect else "false",
            "api_version": "4 : i32",
            "backend_config": f"{{index = {len(callbacks) - 1} : ui64}}",
        }
        return self.op("stablehlo.custom_call", outs, operands, attributes)

    def custom_call(
        self,
        target: str,
        outs: Sequence[ShapedArray],
        operands: Sequence[Any],
        options: dict[str, str] | None = None,
        operand_layouts: Sequence[Sequence[int]] | None = None,
        result_layouts: Sequence[Sequence[int]] | None = None,
        aliases: dict[int, int] | None = None,
        batch_axes: int = 0,
    ) -> list[Any]:
        """Call a kernel outside XLA, of the typed FFI.

        Args:
            target: the kernel's name.
            outs: types of the results.
            operands: MLIR values.
            options: the kernel's own attributes, in MLIR's syntax.
            operand_layouts: per operand its dimensions from the fastest to the slowest; None for the default, the last
                dimension first.
            result_layouts: the same for the results.
            aliases: position of a result -> that of the operand whose buffer it may take.
            batch_axes: how many of the first axes of every operand and result the kernel loops over, so that devices
                may share them.
        """
        ffi.prepare(target)
        config = ", ".join(f"{k} = {v}" for k, v in (options or {}).items())
        attributes = {
            "call_target_name": f'"{target}"',
            "api_version": "4 : i32",
            "backend_config": f"{{{config}}}",
        }
        if operand_layouts is not None and result_layouts is not None:
            attributes["operand_layouts"] = _layouts(operand_layouts)
            attributes["result_layouts"] = _layouts(result_layouts)
        if aliases:
            attributes["output_operand_aliases"] = _aliases(aliases, len(outs))
        if batch_axes:
            attributes["mhlo.frontend_attributes"] = f'{{num_batch_dims = "{batch_axes}"}}'
            attributes["sdy.sharding_rule"] = _shared_batches(operands, outs, batch_axes)
        return self.op("stablehlo.custom_call", outs, operands, attributes)

    def call(self, jaxpr: Jaxpr, operands: Sequence[Any], name: str = "", *, apart: bool = False) -> list[Any]:
        """Call a jaxpr as a function of the module, lowered once however often it is called.

        Args:
            jaxpr: what to call.
            operands: MLIR values.
            name: of the function.
            apart: keep XLA from putting the function into the caller. So are blocks that are called again and again.
        """
        attributes = {"callee": f"@{self.module.function(jaxpr, name)}"}
        if apart or self.module.repeats(jaxpr):
            attributes["mhlo.frontend_attributes"] = '{inlineable = "false"}'
        made = _create(
            "func.call",
            [self._mlir.type(a) for a in jaxpr.out_avals],
            operands,
            {name: self._mlir.attribute(text) for name, text in attributes.items()},
            loc=self._location,
            ip=self._ip,
        )
        return list(made.results)

    def equations(self, jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
        """Emit a jaxpr's equations here and return the values of its outputs."""
        env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), operands, strict=True))
        mlir = self._mlir
        platform = self.platform
        outside = self._location
        for eqn in jaxpr.eqns:
            prim = eqn.primitive
            self._location = mlir.location(prim.name, eqn.source)
            values = [self._literal(v) if isinstance(v, Literal) else env[v] for v in eqn.invars]
            rule = prim.lower
            if rule.__class__ is dict:
                rule = rule.get(platform) or rule["default"]
            ins = [v.aval for v in eqn.invars]
            results = rule(self, ins, [v.aval for v in eqn.outvars], *values, **eqn.params)
            for v, value in zip(eqn.outvars, results, strict=True):
                env[v] = value
        self._location = outside
        return [self._literal(v) if isinstance(v, Literal) else env[v] for v in jaxpr.outvars]

    def _literal(self, literal: Literal) -> Any:
        return self.constant(literal.val, literal.aval)


def _layouts(layouts: Sequence[Sequence[int]]) -> str:
    return "[" + ", ".join(f"dense<{list(dims) if dims else ''}> : tensor<{len(dims)}xindex>" for dims in layouts) + "]"


def _factor(k: int) -> str:
    """Shardy's name of a factor: i, j, ..., z, z_1, ..."""
    return chr(ord("i") + k) if k < 18 else f"z_{k - 17}"


def _shared_batches(operands: Sequence[Any], outs: Sequence[ShapedArray], batch_axes: int) -> str:
    """Shardy's rule of a kernel that loops over its first axes and needs all of the others."""
    shapes = [tuple(x.type.shape) for x in operands] + [a.shape for a in outs]
    sizes = dict(enumerate(shapes[0][:batch_axes]))
    texts = []
    for shape in shapes:
        own = range(len(sizes), len(sizes) + len(shape) - batch_axes)
        sizes.update(zip(own, shape[batch_axes:], strict=True))
        texts.append("[" + ", ".join(_factor(k) for k in (*range(batch_axes), *own)) + "]")
    count = len(operands)
    factors = ", ".join(f"{_factor(k)}={size}" for k, size in sizes.items())
    whole = ", ".join(map(_factor, range(batch_axes, len(sizes))))
    needed = f" need_replication={{{whole}}}" if whole else ""
    mapping = f"({', '.join(texts[:count])})->({', '.join(texts[count:])})"
    return f"#sdy.op_sharding_rule<{mapping} {{{factors}}}{needed}, custom>"


def _aliases(aliases: dict[int, int], result_count: int) -> str:
    items = []
    for out, operand in aliases.items():
        place = f"[{out}]" if result_count > 1 else "[]"
        items.append(
            f"#stablehlo.output_operand_alias<output_tuple_indices = {place}, operand_index = {operand}, "
            "operand_tuple_indices = []>"
        )
    return "[" + ", ".join(items) + "]"


def _dense(array: Any, tensor: Any, mlir: Context) -> Any:
    if array.dtype == np.bool_:
        packed = np.packbits(array, bitorder="little") if array.ndim else np.array([255 if array else 0], np.uint8)
        return ir.DenseElementsAttr.get(
            packed, type=ir.IntegerType.get_signless(1, mlir.mlir), shape=tensor.shape, context=mlir.mlir
        )
    if array.ndim == 0:
        array = np.array([array])
    if array.dtype.kind == "V" or array.dtype.name not in _BUFFER_DTYPES:
        return _dense_text(array, tensor, mlir)
    return ir.DenseElementsAttr.get(
        np.ascontiguousarray(array), type=mlir.parse_type(element(array.dtype)), shape=tensor.shape, context=mlir.mlir
    )


_BUFFER_DTYPES = frozenset(
    [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
)


def _dense_text(array: Any, tensor: Any, mlir: Context) -> Any:
    # Small floats and sub-byte integers have no buffer format: written as hexadecimal bits, or as numbers.
    if dtypes.kind(array.dtype) in "iu":
        items = [str(int(v)) for v in array.ravel()]
    else:
        bits = array.dtype.itemsize * 8 if array.dtype.name != "float4_e2m1fn" else 4
        items = [f"0x{int(v):0{max(bits // 4, 1)}X}" for v in array.view(f"u{array.dtype.itemsize}").ravel()]
    if array.size == 1:
        text = items[0]
    elif not array.size:
        text = ""
    else:
        text = _nested(items, array.shape)
    return ir.Attribute.parse(f"dense<{text}> : {tensor}", mlir.mlir)


def _nested(items: list[str], shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return "[" + ", ".join(items) + "]"
    step = len(items) // shape[0]
    return "[" + ", ".join(_nested(items[i : i + step], shape[1:]) for i in range(0, len(items), step)) + "]"


_REPEATS = 3  # calls, and equations, from which a called block stays a function
_BLOCK = 8


class Module:
    """One StableHLO module: a public `main` and a function for each jaxpr that it calls."""

    def __init__(self, name: str, platform: str):
        self.platform = platform
        self._mlir = _context
        self._names: set[str] = set()
        self._functions: dict[Jaxpr, str] = {}
        self.callbacks: list[Callable[..., Any]] = []
        self._calls: dict[Jaxpr, int] = {}
        self.manual_mesh: Any = None  # inside shard_map
        self._channels = 0
        self.meshes: Any = None  # of programs on several devices: names of the meshes that their shardings are on
        with self._mlir.mlir, self._mlir.unknown:
            self.mlir = ir.Module.create()
            self.mlir.operation.attributes["sym_name"] = ir.StringAttr.get(_identifier(name))
            self._ip = ir.InsertionPoint(self.mlir.body)

    def count_calls(self, jaxpr: Jaxpr) -> None:
        """Count how often each jaxpr is called from this one, directly or not."""
        for eqn in jaxpr.eqns:
            for inner in subjaxprs(eqn.params):
                if eqn.primitive.name == "jit":
                    self._calls[inner] = self._calls.get(inner, 0) + 1
                self.count_calls(inner)

    def repeats(self, jaxpr: Jaxpr) -> bool:
        """Whether a jaxpr is a block that is called often enough to stay a function.

        XLA's CPU compiler puts every function into its callers and then takes more than linear time, and fuses what was
        saved for the backward pass into later kernels. Kept apart, 12 calls of a transformer layer and their gradients
        compile in a quarter of the time, 24 in a fourteenth, and run faster.
        """
        if self.platform != "cpu" or not config.outline.value:
            return False
        return self._calls.get(jaxpr, 0) >= _REPEATS and len(jaxpr.eqns) >= _BLOCK

    def next_channel(self) -> int:
        """A number that no other collective of the module has."""
        self._channels += 1
        return self._channels

    def spread(self, partitions: int) -> None:
        """Mark the module as a program for several devices, and declare its meshes."""
        mlir = self._mlir
        attributes = self.mlir.operation.attributes
        attributes["mhlo.num_partitions"] = mlir.attribute(f"{partitions} : i32")
        attributes["mhlo.num_replicas"] = mlir.attribute("1 : i32")
        first = ir.InsertionPoint.at_block_begin(self.mlir.body)
        for symbol, mesh in self.meshes.declarations():
            named = {"sym_name": mlir.attribute(f'"{symbol}"'), "mesh": mlir.attribute(mesh)}
            _create("sdy.mesh", [], [], named, loc=mlir.unknown, ip=first)

    def function(self, jaxpr: Jaxpr, name: str) -> str:
        """The name of the private function that a jaxpr is lowered to."""
        found = self._functions.get(jaxpr)
        if found is None:
            found = self._functions[jaxpr] = self._unique(name or jaxpr.debug_name or "function")
            self.emit(jaxpr, found, "private")
        return found

    def _unique(self, name: str) -> str:
        base = unique = _identifier(name)
        count = 0
        while unique in self._names or unique == "main":
            count += 1
            unique = f"{base}_{count}"
        self._names.add(unique)
        return unique

    def emit(
        self,
        jaxpr: Jaxpr,
        name: str,
        visibility: str,
        arg_attributes: Sequence[dict[str, str]] | None = None,
        result_attributes: Sequence[dict[str, str]] | None = None,
    ) -> None:
        """Add a function with the jaxpr's equations to the module."""
        mlir = self._mlir
        inputs = [mlir.type(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)]
        outputs = [mlir.type(a) for a in jaxpr.out_avals]
        with mlir.mlir, mlir.unknown:
            made = func.FuncOp(name, ir.FunctionType.get(inputs, outputs), visibility=visibility, ip=self._ip)
            if arg_attributes is not None:
                made.arg_attrs = ir.ArrayAttr.get([self._attributes(a) for a in arg_attributes])
            if result_attributes is not None:
                made.result_attrs = ir.ArrayAttr.get([self._attributes(a) for a in result_attributes])
            block = made.add_entry_block()
        low = Lowering(self, ir.InsertionPoint(block), mlir)
        results = low.equations(jaxpr, block.arguments)
        _create("func.return", [], results, loc=mlir.unknown, ip=low._ip)

    def _attributes(self, attributes: dict[str, str]) -> Any:
        return ir.DictAttr.get({k: self._mlir.attribute(v) for k, v in attributes.items()})


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_." else "_" for c in name) or "function"


def lower(
    jaxpr: Jaxpr,
    name: str,
    platform: str,
    arg_attributes: Sequence[dict[str, str]] | None = None,
    result_attributes: Sequence[dict[str, str]] | None = None,
    meshes: Any = None,
    partitions: int = 1,
) -> Module:
    """The StableHLO module whose `main` is the jaxpr; its constants come before its inputs."""
    module = Module(name, platform)
    module.meshes = meshes
    module.count_calls(jaxpr)
    module.emit(jaxpr, "main", "public", arg_attributes, result_attributes)
    if partitions > 1:
        module.spread(partitions)
    return module


def lower_inline(low: Any, ins: Any, outs: Any, *operands: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
    """Lowering of a carrier that runs its jaxpr as part of the caller."""
    return low.equations(jaxpr, operands)


__all__ = ["Lowering", "Module", "element", "ints", "lower", "lower_inline", "physical_shape", "typeof"]
