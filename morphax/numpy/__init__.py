"""NumPy's functions on arrays and tracers of this library.

The chapters, each of which uses those above it: promotion, ufuncs, creation, reductions, shapes, einsum, indexing,
updates, sorting, folds, statistics, arithmetic, windows, sets, linalg, polynomial, histograms, edits, mapping, facts,
scalars, methods.

>>> from morphax import numpy as jnp
>>> jnp.sum(jnp.arange(4) ** 2).item()
14
"""

import importlib
import sys
from typing import Any

import numpy as np

from morphax.numpy import folds as _folds  # gives universal functions their methods
from morphax.numpy import methods, scalars
from morphax.numpy.arithmetic import (
    frexp,
    gcd,
    lcm,
    packbits,
    spacing,
    unpackbits,
    unwrap,
)
from morphax.numpy.creation import (
    arange,
    array,
    asarray,
    astype,
    copy,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    geomspace,
    identity,
    indices,
    linspace,
    logspace,
    meshgrid,
    ones,
    ones_like,
    tri,
    tril,
    tril_indices,
    tril_indices_from,
    triu,
    triu_indices,
    triu_indices_from,
    zeros,
    zeros_like,
)
from morphax.numpy.edits import (
    delete,
    fill_diagonal,
    insert,
    mask_indices,
    place,
    ravel_multi_index,
    resize,
    trim_zeros,
    unravel_index,
)
from morphax.numpy.einsum import (
    dot,
    einsum,
    einsum_path,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    vdot,
    vecdot,
    vecmat,
)
from morphax.numpy.facts import (
    array_repr,
    array_str,
    c_,
    can_cast,
    from_dlpack,
    frombuffer,
    fromfile,
    fromfunction,
    fromiter,
    fromstring,
    get_printoptions,
    index_exp,
    iscomplexobj,
    isrealobj,
    isscalar,
    issubdtype,
    iterable,
    ix_,
    load,
    mgrid,
    ogrid,
    printoptions,
    r_,
    result_type,
    s_,
    save,
    savez,
    set_printoptions,
)
from morphax.numpy.histograms import (
    histogram,
    histogram2d,
    histogram_bin_edges,
    histogramdd,
)
from morphax.numpy.indexing import (
    take,
    take_along_axis,
)
from morphax.numpy.mapping import (
    apply_along_axis,
    apply_over_axes,
    frompyfunc,
    piecewise,
    vectorize,
)
from morphax.numpy.polynomial import (
    convolve,
    correlate,
    poly,
    polyadd,
    polyder,
    polydiv,
    polyfit,
    polyint,
    polymul,
    polysub,
    polyval,
    roots,
    vander,
)
from morphax.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    average,
    count_nonzero,
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    nanargmax,
    nanargmin,
    nancumprod,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
    prod,
    ptp,
    std,
    sum,
    var,
)
from morphax.numpy.sets import (
    intersect1d,
    setdiff1d,
    setxor1d,
    union1d,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from morphax.numpy.shapes import (
    append,
    array_split,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    column_stack,
    concat,
    concatenate,
    diag,
    diag_indices,
    diag_indices_from,
    diagflat,
    diagonal,
    dsplit,
    dstack,
    expand_dims,
    flip,
    fliplr,
    flipud,
    hsplit,
    hstack,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    roll,
    rollaxis,
    rot90,
    shape,
    size,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    trace,
    transpose,
    unstack,
    vsplit,
    vstack,
)
from morphax.numpy.sorting import (
    argpartition,
    argsort,
    argwhere,
    choose,
    compress,
    digitize,
    extract,
    flatnonzero,
    isin,
    lexsort,
    nonzero,
    partition,
    repeat,
    searchsorted,
    select,
    sort,
    sort_complex,
    unique,
    where,
)
from morphax.numpy.statistics import (
    allclose,
    array_equal,
    array_equiv,
    bincount,
    corrcoef,
    cov,
    cross,
    diff,
    ediff1d,
    gradient,
    interp,
    isclose,
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    pad,
    percentile,
    quantile,
    trapezoid,
)
from morphax.numpy.ufuncs import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    around,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    cbrt,
    ceil,
    clip,
    conj,
    conjugate,
    copysign,
    cos,
    cosh,
    deg2rad,
    degrees,
    divide,
    divmod,
    equal,
    exp,
    exp2,
    expm1,
    fabs,
    float_power,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    greater,
    greater_equal,
    heaviside,
    hypot,
    imag,
    invert,
    iscomplex,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    ldexp,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    modf,
    multiply,
    nan_to_num,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    power,
    rad2deg,
    radians,
    real,
    reciprocal,
    remainder,
    right_shift,
    rint,
    round,
    sign,
    signbit,
    sin,
    sinc,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
    ufunc,
)
from morphax.numpy.updates import (
    put,
    put_along_axis,
)
from morphax.numpy.windows import (
    bartlett,
    blackman,
    hamming,
    hanning,
    i0,
    kaiser,
)
from morphax.runtime.array import Array as ndarray
from morphax.support import tracebacks
from morphax.support.dtypes import finfo, iinfo, isdtype, promote_types

float4_e2m1fn = scalars.TYPES["float4_e2m1fn"]
float6_e2m3fn = scalars.TYPES["float6_e2m3fn"]
float6_e3m2fn = scalars.TYPES["float6_e3m2fn"]
float8_e3m4 = scalars.TYPES["float8_e3m4"]
float8_e4m3 = scalars.TYPES["float8_e4m3"]
float8_e4m3b11fnuz = scalars.TYPES["float8_e4m3b11fnuz"]
float8_e4m3fn = scalars.TYPES["float8_e4m3fn"]
float8_e4m3fnuz = scalars.TYPES["float8_e4m3fnuz"]
float8_e5m2 = scalars.TYPES["float8_e5m2"]
float8_e5m2fnuz = scalars.TYPES["float8_e5m2fnuz"]
float8_e8m0fnu = scalars.TYPES["float8_e8m0fnu"]
bfloat16 = scalars.TYPES["bfloat16"]
float16 = scalars.TYPES["float16"]
float32 = single = scalars.TYPES["float32"]
float64 = double = float_ = scalars.TYPES["float64"]
complex64 = csingle = scalars.TYPES["complex64"]
complex128 = cdouble = complex_ = scalars.TYPES["complex128"]
int1, uint1 = scalars.TYPES.get("int1"), scalars.TYPES.get("uint1")
int2, int4, int8 = scalars.TYPES["int2"], scalars.TYPES["int4"], scalars.TYPES["int8"]
int16, int32 = scalars.TYPES["int16"], scalars.TYPES["int32"]
int64 = int_ = scalars.TYPES["int64"]
uint2, uint4, uint8 = scalars.TYPES["uint2"], scalars.TYPES["uint4"], scalars.TYPES["uint8"]
uint16, uint32 = scalars.TYPES["uint16"], scalars.TYPES["uint32"]
uint64 = uint = scalars.TYPES["uint64"]
bool_ = bool = scalars.TYPES["bool"]

character, complexfloating, flexible, floating = np.character, np.complexfloating, np.flexible, np.floating
generic, inexact, integer, number = np.generic, np.inexact, np.integer, np.number
object_, signedinteger, unsignedinteger = np.object_, np.signedinteger, np.unsignedinteger
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning

pi, e, euler_gamma, inf, nan, newaxis = np.pi, np.e, np.euler_gamma, np.inf, np.nan, None


def __getattr__(name: str) -> Any:
    if name in ("fft", "linalg"):  # loaded when first asked for
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


tracebacks.bound_functions(globals())
methods.NAMESPACE.append(sys.modules[__name__])
