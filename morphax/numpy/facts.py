"""Questions about dtypes, values and shapes, printing and files: functions that compute nothing."""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from morphax.numpy import creation, promotion, shapes
from morphax.runtime import array as arrays
from morphax.runtime import dlpack
from morphax.support import dtypes

# ---- dtypes ----------------------------------------------------------------------------------------------------------


def issubdtype(arg1: Any, arg2: Any) -> builtins.bool:
    """Whether the dtype `arg1` is, or lies below, `arg2` in NumPy's hierarchy.

    >>> from morphax import numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    return dtypes.issubdtype(arg1, arg2)


def result_type(*args: Any) -> Any:
    """The dtype that arrays, numbers and dtypes have together.

    >>> from morphax import numpy as jnp
    >>> jnp.result_type(jnp.int8, jnp.bfloat16, 1.0).name
    'bfloat16'
    """
    return dtypes.result_type(*args)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> builtins.bool:
    """Whether NumPy would convert one dtype to the other under a rule.

    >>> from morphax import numpy as jnp
    >>> jnp.can_cast(jnp.int32, jnp.int8)
    False
    """
    source: Any = dtypes.named_dtype(from_)
    target: Any = dtypes.named_dtype(to)
    return np.can_cast(source, target, casting)


def iscomplexobj(x: Any) -> builtins.bool:
    """Whether the dtype of `x` is complex.

    >>> from morphax import numpy as jnp
    >>> jnp.iscomplexobj(jnp.array([1j]))
    True
    """
    if isinstance(x, (list, tuple)):
        x = creation.array(x)
    return x is not None and dtypes.is_complex(promotion.described("iscomplexobj", x)[0])


def isrealobj(x: Any) -> builtins.bool:
    """Whether the dtype of `x` is not complex.

    >>> from morphax import numpy as jnp
    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> builtins.bool:
    """Whether `element` is a number, or an array without axes.

    >>> from morphax import numpy as jnp
    >>> jnp.isscalar(3.0), jnp.isscalar(jnp.ones(1))
    (True, False)
    """
    if np.isscalar(element):
        return True
    try:
        return promotion.described("isscalar", element)[2] == ()
    except TypeError:
        return False


def iterable(y: Any) -> builtins.bool:
    """Whether `y` can be iterated over.

    >>> from morphax import numpy as jnp
    >>> jnp.iterable(jnp.ones(2)), jnp.iterable(jnp.ones(()))
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


# ---- printing and files ----------------------------------------------------------------------------------------------


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The text of an array with its dtype, as NumPy writes it.

    >>> from morphax import numpy as jnp
    >>> jnp.array_repr(jnp.array([1, 2]))
    'Array([1, 2], dtype=int32)'
    """
    if max_line_width is None and precision is None and suppress_small is None:
        return repr(arr)
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The text of an array's entries, as NumPy writes it.

    >>> from morphax import numpy as jnp
    >>> jnp.array_str(jnp.array([1, 2]))
    '[1 2]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def get_printoptions() -> dict[str, Any]:
    """NumPy's options for printing, which hold for arrays here too.

    >>> from morphax import numpy as jnp
    >>> jnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set NumPy's options for printing, which hold for arrays here too.

    >>> from morphax import numpy as jnp
    >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """NumPy's options for printing, for a block.

    >>> from morphax import numpy as jnp
    >>> with jnp.printoptions(precision=2):
    ...     print(jnp.array([1.2345]))
    [1.23]
    """
    return np.printoptions(*args, **kwargs)


def save(file: Any, arr: Any, allow_pickle: builtins.bool = True) -> None:
    """Write an array to a file, as numpy.save.

    >>> import io
    >>> from morphax import numpy as jnp
    >>> jnp.save(io.BytesIO(), jnp.ones(2))
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: builtins.bool = True, **kwds: Any) -> None:
    """Write several arrays to a file, as numpy.savez.

    >>> import io
    >>> from morphax import numpy as jnp
    >>> jnp.savez(io.BytesIO(), a=jnp.ones(2))
    """
    np.savez(
        file, *[np.asarray(a) for a in args], allow_pickle=allow_pickle, **{k: np.asarray(a) for k, a in kwds.items()}
    )


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array in a file that `save` wrote; what numpy.load gives for other files.

    >>> import io
    >>> from morphax import numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.ones(2)); _ = file.seek(0)
    >>> jnp.load(file).tolist()
    [1.0, 1.0]
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype.kind == "V":
        raise TypeError(
            f"load: the file's dtype {found.dtype} is not known; NumPy loses the name of bfloat16. Load it "
            "with numpy.load, and give the result a dtype with .view."
        )
    return creation.asarray(found, found.dtype)


# ---- from other sources ----------------------------------------------------------------------------------------------


def from_dlpack(x: Any, /, *, device: Any = None, copy: builtins.bool | None = None) -> Any:
    """The array of another library, through DLPack.

    >>> import numpy
    >>> from morphax import numpy as jnp
    >>> jnp.from_dlpack(numpy.ones(2, "float32")).tolist()
    [1.0, 1.0]
    """
    if isinstance(x, arrays.Array):
        return creation.array(x, copy=bool(copy), device=device)
    target, committed = creation.device_of("from_dlpack", device)
    return dlpack.take_over(x, target, committed, copy)


def is_supported_dtype(dtype: Any) -> builtins.bool:
    """Whether DLPack can hand over arrays of that dtype: bools, numbers of whole bytes, and float8 not.

    >>> from morphax import dlpack
    >>> dlpack.is_supported_dtype("float32"), dlpack.is_supported_dtype("int4")
    (True, False)
    """
    return dtypes.named_dtype(dtype).name in _IN_DLPACK


_IN_DLPACK = frozenset(
    ["bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """The numbers in a buffer of bytes, as one axis.

    >>> from morphax import numpy as jnp
    >>> jnp.frombuffer(b"\\x01\\x02", dtype="uint8").tolist()
    [1, 2]
    """
    return creation.asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset), _named(dtype))


def _named(dtype: Any) -> Any:
    return None if dtype in (float, int, complex) else dtype


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not supported: a program should not depend on files that change.

    >>> from morphax import numpy as jnp
    >>> jnp.fromfile("x")
    Traceback (most recent call last):
      ...
    NotImplementedError: fromfile: not supported. Read with numpy.fromfile, and convert with jnp.array...
    """
    raise NotImplementedError("fromfile: not supported. Read with numpy.fromfile, and convert with jnp.array.")


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not supported: an iterator can be read only once.

    >>> from morphax import numpy as jnp
    >>> jnp.fromiter(iter([1]), int)
    Traceback (most recent call last):
      ...
    NotImplementedError: fromiter: not supported. Write jnp.array(list(iterator))...
    """
    raise NotImplementedError("fromiter: not supported. Write jnp.array(list(iterator)).")


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """The numbers written in a text, parted by `sep`.

    >>> from morphax import numpy as jnp
    >>> jnp.fromstring("1 2", dtype=int, sep=" ").tolist()
    [1, 2]
    """
    return creation.asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep), _named(dtype))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """`function` of the position of each entry.

    >>> from morphax import numpy as jnp
    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int).tolist()
    [[0, 1], [10, 11]]
    """
    places = np.indices(promotion.shape_of("fromfunction", shape))
    return function(*[creation.asarray(i, dtype) for i in places], **kwargs)


# ---- helpers for indexing --------------------------------------------------------------------------------------------


def ix_(*args: Any) -> tuple[Any, ...]:
    """Index arrays for the grid of all combinations of positions.

    >>> from morphax import numpy as jnp
    >>> jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1]))].tolist()
    [[1], [7]]
    """
    count = len(args)
    out = []
    for d, a in enumerate(args):
        a = creation.asarray(a)
        if a.ndim != 1:
            raise ValueError(f"ix_: arguments must have one axis; argument {d} has shape {a.shape}.")
        a = creation.asarray(np.flatnonzero(np.asarray(a))) if a.dtype == np.bool_ else a
        out.append(creation.reshaped(a, shape=(1,) * d + (a.size,) + (1,) * (count - d - 1)))
    return tuple(out)


class _Grid:
    """`mgrid` and `ogrid`: grids of the ranges written as slices.

    >>> from morphax import numpy as jnp
    >>> jnp.mgrid[0:2, 0:2].tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """

    def __init__(self, sparse: builtins.bool):
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        found = np.ogrid[key] if self._sparse else np.mgrid[key]
        if isinstance(found, (tuple, list)):
            return [creation.asarray(f) for f in found]
        return creation.asarray(found)

    def __repr__(self) -> str:
        return "ogrid" if self._sparse else "mgrid"


mgrid, ogrid = _Grid(False), _Grid(True)
index_exp, s_ = np.index_exp, np.s_


def _range(part: slice) -> Any:
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return creation.linspace(start, part.stop, int(abs(step)))
    return creation.arange(start, part.stop, step)


class _Joined:
    """`r_` and `c_`: arrays, numbers and ranges written in brackets, joined along an axis.

    >>> from morphax import numpy as jnp
    >>> jnp.r_[1:3, 7].tolist()
    [1, 2, 7]
    """

    def __init__(self, name: str, columns: builtins.bool):
        self._name = name
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if parts and isinstance(parts[0], str):
            raise NotImplementedError(
                f"{self._name}: directives such as {parts[0]!r} are not supported. Use concatenate."
            )
        parts = [_range(p) if isinstance(p, slice) else creation.asarray(p) for p in parts]
        if self._columns:
            parts = [
                creation.reshaped(p, shape=p.shape + (1,) * (2 - p.ndim)) if p.ndim else p[None, None] for p in parts
            ]
            return shapes.concatenate(parts, axis=-1)
        return shapes.concatenate([p if p.ndim else p[None] for p in parts], axis=0)

    def __repr__(self) -> str:
        return self._name


r_, c_ = _Joined("r_", False), _Joined("c_", True)
