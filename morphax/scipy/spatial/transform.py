"""Rotations in space, as unit quaternions with the scalar last."""

import math
from typing import Any, NamedTuple

from morphax import numpy as jnp
from morphax import random
from morphax.numpy import linalg
from morphax.scipy.operands import typeof
from morphax.support import dtypes


def _floating(x: Any) -> Any:
    x = jnp.asarray(x)
    return x.astype(dtypes.to_inexact(typeof(x).dtype))


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


def _product(p: Any, q: Any) -> Any:
    """Hamilton's product."""
    a, s, b, t = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    return jnp.concatenate([s * b + t * a + jnp.cross(a, b), s * t - jnp.sum(a * b, axis=-1, keepdims=True)], axis=-1)


def _conjugate(q: Any) -> Any:
    return jnp.concatenate([-q[..., :3], q[..., 3:]], axis=-1)


def _from_rotvec(v: Any) -> Any:
    angle = _norm(v)
    return jnp.concatenate([v * 0.5 * jnp.sinc(angle / (2 * math.pi)), jnp.cos(0.5 * angle)], axis=-1)


class Rotation(NamedTuple):
    """A rotation, or a stack of them. A pytree.

    Fields: quat, of shape (4,) or (n, 4): unit quaternions x, y, z, w.

    >>> half = Rotation.from_rotvec(jnp.array([0.0, 0.0, 180.0]), degrees=True)
    >>> round(half.apply(jnp.array([1.0, 0.0, 0.0]))[0].item(), 3)
    -1.0
    """

    quat: Any

    @classmethod
    def from_quat(cls, quat: Any) -> "Rotation":
        """From quaternions of any length, the scalar last."""
        quat = _floating(quat)
        return cls(quat / _norm(quat))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> "Rotation":
        """From vectors along the axes, as long as the angles."""
        rotvec = _floating(rotvec)
        return cls(_from_rotvec(jnp.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def from_mrp(cls, mrp: Any) -> "Rotation":
        """From modified Rodrigues parameters: the axis times tan(angle / 4)."""
        mrp = _floating(mrp)
        square = jnp.sum(mrp * mrp, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_matrix(cls, matrix: Any) -> "Rotation":
        """From orthogonal matrices of determinant 1."""
        m = _floating(matrix)
        trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
        rows = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            row = {
                i: 1 - trace + 2 * m[..., i, i],
                j: m[..., j, i] + m[..., i, j],
                k: m[..., k, i] + m[..., i, k],
                3: m[..., k, j] - m[..., j, k],
            }
            rows.append(jnp.stack([row[c] for c in range(4)], axis=-1))
        axis = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace]
        rows.append(jnp.stack(axis, axis=-1))
        # Each row is a multiple of the quaternion; that of its largest entry is the most accurate.
        sizes = jnp.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], axis=-1)
        best = jnp.argmax(sizes, axis=-1)[..., None, None]
        return cls.from_quat(jnp.take_along_axis(jnp.stack(rows, axis=-2), best, axis=-2)[..., 0, :])

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> "Rotation":
        """From angles about the axes `seq`: fixed axes in lower case, those of the body in upper case."""
        if not 1 <= len(seq) <= 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
            raise ValueError(f"Rotation.from_euler: seq must be 1 to 3 of xyz or of XYZ; it is {seq!r}.")
        angles = _floating(angles)
        angles = jnp.deg2rad(angles) if degrees else angles
        if not typeof(angles).ndim or (len(seq) == 1 and typeof(angles).shape[-1] != 1):
            angles = angles[..., None]
        out: Any = None
        for i, axis in enumerate(seq):
            unit = jnp.zeros(3, typeof(angles).dtype).at["xyz".index(axis.lower())].set(1)
            turn = _from_rotvec(angles[..., i, None] * unit)
            out = turn if out is None else _product(out, turn) if seq.isupper() else _product(turn, out)
        return cls(out)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> "Rotation":
        """No rotation; a stack of `num` of them."""
        one = jnp.array([0.0, 0, 0, 1], dtype=dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> "Rotation":
        """Rotations, uniformly distributed."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Any) -> "Rotation":
        """One stack of several rotations."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """The quaternions; `canonical` takes that of the two whose scalar is not negative."""
        quat = self.quat
        if canonical:
            # Of scalar 0 the first entry that is not 0 decides.
            w, x, y, z = quat[..., 3:], quat[..., :1], quat[..., 1:2], quat[..., 2:3]
            lead = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
            quat = jnp.where(lead < 0, -quat, quat)
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> Any:
        """The matrices, shape (..., 3, 3)."""
        q = self.quat
        v, w = q[..., :3], q[..., 3]
        x, y, z = v[..., 0], v[..., 1], v[..., 2]
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """The axes times the angles, which are at most pi."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        v, w = quat[..., :3], quat[..., 3:]
        square = jnp.sum(v * v, axis=-1, keepdims=True)
        small = square < 1e-14
        size = jnp.sqrt(jnp.where(small, 1, square))
        out = v * jnp.where(small, 2, 2 * jnp.arctan2(size, w) / size)
        return jnp.rad2deg(out) if degrees else out

    def as_mrp(self) -> Any:
        """The modified Rodrigues parameters, of length at most 1."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """The angles about the three axes `seq`, as `from_euler` takes them.

        Source: E. Bernardes, S. Viollet, "Quaternion to Euler angles conversion", PLoS ONE 17 (2022).
        """
        if len(seq) != 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
            raise ValueError(f"Rotation.as_euler: seq must be three of xyz or of XYZ; it is {seq!r}.")
        body = seq.isupper()
        i, j, k = ("xyz".index(a) for a in (seq.lower()[::-1] if body else seq))
        twice = i == k
        k = 3 - i - j if twice else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q, w = self.quat, self.quat[..., 3]
        a, b, c, d = w, q[..., i], q[..., j], q[..., k] * sign
        if not twice:
            a, b, c, d = a - c, b + d, c + a, d - b
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_gap = jnp.arctan2(b, a), jnp.arctan2(d, c)
        low, high = jnp.abs(middle) < 1e-7, jnp.abs(middle - math.pi) < 1e-7
        first, last = half_sum - half_gap, half_sum + half_gap
        # At the poles only a sum counts: the last angle of fixed axes is 0, the first of the body's.
        at_pole = jnp.where(low, 2 * half_sum, 2 * half_gap * (1 if body else -1))
        first = jnp.where(low | high, 0 if body else at_pole, first)
        last = jnp.where(low | high, at_pole if body else 0, last)
        if not twice:
            middle, last = middle - 0.5 * math.pi, last * sign
        angles = [last, middle, first] if body else [first, middle, last]
        out = jnp.stack(angles, axis=-1)
        out = out - 2 * math.pi * jnp.round(out / (2 * math.pi))
        return jnp.rad2deg(out) if degrees else out

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """The vectors, shape (3,) or (n, 3), rotated."""
        matrix = self.as_matrix()
        return jnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix, _floating(vectors))

    def inv(self) -> "Rotation":
        """The inverse."""
        return Rotation(_conjugate(self.quat))

    def magnitude(self) -> Any:
        """The angles in radians, at most pi."""
        size = jnp.sqrt(jnp.sum(self.quat[..., :3] ** 2, axis=-1))
        return 2 * jnp.arctan2(size, jnp.abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> "Rotation":
        """The rotation nearest to all in the sum of squares of chords."""
        quat = jnp.atleast_2d(self.quat)
        weights = jnp.ones(typeof(quat).shape[0], typeof(quat).dtype) if weights is None else _floating(weights)
        return Rotation.from_quat(linalg.eigh((weights[:, None] * quat).T @ quat)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not a stack."""
        return typeof(self.quat).ndim == 1

    def __mul__(self, other: "Rotation") -> "Rotation":  # type: ignore[override]  # not the repetition of a tuple
        return Rotation.from_quat(_product(*jnp.broadcast_arrays(self.quat, other.quat)))

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: a single rotation has no length.")
        return typeof(self.quat).shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> "Rotation":  # type: ignore[override]  # of the stack, not of the tuple
        if self.single:
            raise TypeError("Rotation: a single rotation cannot be indexed.")
        return Rotation(self.quat[index])


class Slerp(NamedTuple):
    """Interpolation between rotations at constant speed: Slerp.init(times, rotations)(t). A pytree."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> "Slerp":
        """From rising times, shape (n,), and a stack of n rotations."""
        times = _floating(times)
        if rotations.single or typeof(times).shape != (len(rotations),):
            raise ValueError(f"Slerp.init: needs a stack of as many rotations as times, {typeof(times).shape}.")
        first, last = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        between = first.inv() * last
        return cls(times, jnp.diff(times), first, between.as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at `times`, a number or shape (m,)."""
        times = _floating(times)
        place = jnp.clip(jnp.searchsorted(self.times, times, side="right") - 1, 0, typeof(self.timedelta).shape[0] - 1)
        share = (times - self.times[place]) / self.timedelta[place]
        return self.rotations[place] * Rotation.from_rotvec(self.rotvecs[place] * share[..., None])
