"""Functions of matrices, and Sylvester's equation."""

from collections.abc import Callable
from typing import Any

from morphax import numpy as jnp
from morphax.control import loops
from morphax.numpy import linalg
from morphax.ops import linalg as ops
from morphax.ops import matrices as mx
from morphax.runtime.jit import program
from morphax.scipy.linalg.factorizations import matched, matrix, real_if_real, schur
from morphax.scipy.operands import typeof
from morphax.support import dtypes
from morphax.transforms import api

# The coefficients of the [13/13] Pade approximant of exp, and the norm up to which it is exact in float64: N. Higham,
# "The scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. 26 (2005).
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_THETA = 5.371920351148152


@program("upper_triangular", "max_squarings")
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """The matrix exponential; nan where the 1-norm exceeds 5.4 * 2^max_squarings.

    >>> expm(jnp.zeros((1, 1))).tolist()
    [[1.0]]
    """
    a = matrix("expm", A, True)
    real = dtypes.to_real(typeof(a).dtype)
    norm = jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1, initial=0)
    squarings = jnp.maximum(0, jnp.ceil(jnp.log2(jnp.where(norm > 0, norm, 1) / _THETA)))
    squarings = squarings.astype(real)[..., None, None]
    scaled = a * jnp.exp2(-squarings).astype(typeof(a).dtype)
    # Scaled by the last coefficient but one, so that float32 holds them.
    c = [x / _PADE[0] for x in _PADE]
    one = jnp.broadcast_to(jnp.eye(typeof(a).shape[-1], dtype=typeof(a).dtype), typeof(a).shape)
    a2 = scaled @ scaled
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2) + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2) + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    odd = scaled @ odd
    if upper_triangular:
        out = ops.solve_triangular(even - odd, even + odd, left_side=True, lower=False)
    else:
        out = linalg.solve(even - odd, even + odd)
    out = loops.fori_loop(0, max_squarings, lambda k, x: jnp.where(k < squarings, x @ x, x), out)
    return jnp.where(squarings > max_squarings, jnp.nan, out)


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The matrix exponential of `A` and its derivative in the direction `E`; only the latter without `compute_expm`.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)))[1].tolist()
    [[1.0]]
    """
    a, e = matched(matrix("expm_frechet", A, True), matrix("expm_frechet", E, True))
    value, slope = api.jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


def _bands(t: Any) -> Any:
    """The number of each entry's diagonal."""
    places = jnp.arange(typeof(t).shape[-1])
    return places[None, :] - places[:, None]


@program("blocksize")
def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """The principal square root of a matrix, complex.

    Source: A. Bjorck, S. Hammarling, "A Schur method for the square root of a matrix" (1983), a diagonal at a time.

    >>> sqrtm(jnp.array([[4.0]])).real.tolist()
    [[2.0]]
    """
    if blocksize > 1:
        raise NotImplementedError("sqrtm: blocksize above 1 is not supported. Leave it out.")
    t, z = schur(matrix("sqrtm", A, True), output="complex")
    band = _bands(t)
    roots = jnp.sqrt(jnp.diagonal(t))
    sums = roots[:, None] + roots[None, :]
    sums = jnp.where(sums == 0, 1, sums)
    start = jnp.diag(roots)

    def step(k: Any, r: Any) -> Any:
        return jnp.where(band == k, (t - r @ r) / sums, r)

    return z @ loops.fori_loop(1, typeof(t).shape[0], step, start) @ mx.adjoint(z)


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """func(A) for an analytic function of arrays of eigenvalues, which should be apart; with disp=False, and an error
    estimate in the 1-norm.

    Source: Parlett's recurrence on the Schur form, a diagonal at a time.

    >>> round(funm(jnp.array([[2.0]]), jnp.square).real.item(), 4)
    4.0
    """
    a = matrix("funm", A, True)
    t, z = schur(a, output="complex")
    band = _bands(t)
    values = jnp.diagonal(t)
    gaps = values[None, :] - values[:, None]
    small = jnp.abs(gaps) < dtypes.finfo(typeof(t).dtype).tiny
    gaps = jnp.where(small, 1, gaps)
    image = func(values).astype(typeof(t).dtype)

    def step(k: Any, f: Any) -> Any:
        return jnp.where(band == k, (t @ f - f @ t) / gaps, f)

    f = loops.fori_loop(1, typeof(t).shape[0], step, jnp.diag(image))
    out = z @ f @ mx.adjoint(z)
    if disp:
        return out
    eps = dtypes.finfo(typeof(t).dtype).eps
    least = jnp.min(jnp.where(band > 0, jnp.abs(gaps), 1), initial=1)
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * linalg.norm(jnp.triu(t, 1), 1)))
    return out, jnp.where(jnp.all(jnp.isfinite(out)), error, jnp.inf)


@program("method", "tol")
def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """X with A X + X B = C; nan where an eigenvalue of A is within `tol` of minus one of B.

    Source: R. Bartels, G. Stewart (1972) for method="schur"; "eigen" divides in the bases of eigenvectors.

    >>> solve_sylvester(jnp.eye(1), jnp.eye(1), jnp.ones((1, 1))).tolist()
    [[0.5]]
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be schur or eigen; it is {method!r}.")
    a, b, c = matched(matrix("solve_sylvester", A, True), matrix("solve_sylvester", B, True), C)
    m, n = typeof(a).shape[0], typeof(b).shape[0]
    if typeof(c).shape != (m, n):
        raise ValueError(f"solve_sylvester: C must have shape {(m, n)}; it is {typeof(c).shape}.")
    if method == "eigen":
        (wa, va), (wb, vb) = linalg.eig(a), linalg.eig(b)
        sums = wa[:, None] + wb[None, :]
        x = va @ (linalg.solve(va, c.astype(typeof(va).dtype) @ vb) / sums) @ linalg.inv(vb)
    else:
        (ta, za), (tb, zb) = schur(a, output="complex"), schur(b, output="complex")
        sums = jnp.diagonal(ta)[:, None] + jnp.diagonal(tb)[None, :]
        right = mx.adjoint(za) @ c.astype(typeof(ta).dtype) @ zb
        one = jnp.eye(m, dtype=typeof(ta).dtype)

        def step(k: Any, y: Any) -> Any:
            rest = right[:, k] - y @ tb[:, k]
            column = ops.solve_triangular(ta + tb[k, k] * one, rest[:, None], left_side=True, lower=False)
            return y.at[:, k].set(column[:, 0])

        x = za @ loops.fori_loop(0, n, step, jnp.zeros_like(right)) @ mx.adjoint(zb)
    x = jnp.where(jnp.any(jnp.abs(sums) < tol), jnp.nan, x)
    return real_if_real(x, a)
