"""Rotations against SciPy."""

import itertools

import numpy as np
import pytest
from scipy.spatial import transform as oracle

from morphax import random
from morphax.scipy.spatial.transform import Rotation, Slerp
from morphax.support import config

RNG = np.random.default_rng(0)
Q = RNG.normal(size=(6, 4))
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]


@pytest.fixture(autouse=True)
def _x64():
    before = config.config.jax_enable_x64
    config.config.update("jax_enable_x64", True)
    yield
    config.config.update("jax_enable_x64", before)


def near(got, wanted):
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-9, atol=1e-12)


def test_forms():
    mine, theirs = Rotation.from_quat(Q), oracle.Rotation.from_quat(Q)
    near(mine.as_matrix(), theirs.as_matrix())
    near(mine.as_rotvec(True), theirs.as_rotvec(True))
    near(mine.as_mrp(), theirs.as_mrp())
    near(mine.magnitude(), theirs.magnitude())
    near(mine.as_quat(True, True), np.roll(theirs.as_quat(canonical=True), 1, -1))
    near(mine.mean().as_matrix(), theirs.mean().as_matrix())
    for form in ("matrix", "rotvec", "mrp"):
        again = getattr(Rotation, f"from_{form}")(getattr(mine, f"as_{form}")())
        near(again.as_matrix(), theirs.as_matrix())
    near((mine[:3] * mine[3:]).as_matrix(), (theirs[:3] * theirs[3:]).as_matrix())
    near(mine.inv().apply(Q[:, :3]), theirs.apply(Q[:, :3], inverse=True))
    near(mine[0].apply(Q[:, :3]), theirs[0].apply(Q[:, :3]))
    near(mine.apply(Q[0, :3], True), theirs.apply(Q[0, :3], True))
    assert len(Rotation.concatenate([mine, mine[0]])) == 7 and mine[0].single
    assert Rotation.random(random.key(0), 3).quat.shape == (3, 4) and Rotation.identity(2).quat.shape == (2, 4)


@pytest.mark.parametrize("seq", SEQUENCES + [s.upper() for s in SEQUENCES])
def test_euler_angles(seq):
    mine, theirs = Rotation.from_quat(Q), oracle.Rotation.from_quat(Q)
    near(mine.as_euler(seq), theirs.as_euler(seq))
    angles = RNG.uniform(-1, 1, size=(4, 3))
    near(Rotation.from_euler(seq, angles).as_matrix(), oracle.Rotation.from_euler(seq, angles).as_matrix())


def test_interpolation():
    mine, theirs = Rotation.from_quat(Q), oracle.Rotation.from_quat(Q)
    at = np.linspace(0, 5, 13)
    near(Slerp.init(np.arange(6.0), mine)(at).as_matrix(), oracle.Slerp(np.arange(6.0), theirs)(at).as_matrix())
