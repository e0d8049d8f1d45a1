"""The example programs keep what they promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DIGITS = Path(__file__).parents[1] / "examples" / "digits.py"
PNG = b"\x89PNG"


def run_digits(out: Path, *options: str) -> str:
    command = [sys.executable, "-W", "error", str(DIGITS), "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(text: str) -> list[str]:
    return re.findall(r"^loss +(\d\.\d+)", text, re.MULTILINE)


def test_digits_learns_and_draws(tmp_path: Path) -> None:
    text = run_digits(tmp_path)
    accuracy = re.search(r"^accuracy +([\d.]+) %", text, re.MULTILINE)
    assert accuracy, text
    assert float(accuracy[1]) >= 97.0
    assert len(re.findall(r"^  a \d  ", text, re.MULTILINE)) == 10
    assert (tmp_path / "loss.png").read_bytes().startswith(PNG)
    assert (tmp_path / "hardest.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("seed", ["0", "7"])
def test_digits_repeats_its_losses(tmp_path: Path, seed: str) -> None:
    first, second = (losses(run_digits(tmp_path, "--epochs", "2", "--seed", seed)) for _ in range(2))
    assert first
    assert first == second
