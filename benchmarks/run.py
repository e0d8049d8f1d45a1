"""Compare Morphax with JAX on the same jaxlib: ratios of medians, from processes that take turns.

    make bench                              or, with JAX in a folder of its own:
    python benchmarks/run.py --jax-path FOLDER --rounds 5 --filter dispatch

The two cannot share a process. In every round each group of rows runs in a new process of JAX and a new one of
Morphax, in alternating order; a row's value is the median over the rounds. The table goes to benchmarks/results.md too.
"""

import argparse
import compileall
import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import rows
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results.md"
IMPLEMENTATIONS = ("jax", "morphax")
START = (
    "import time; start = time.process_time(); import {0} as jax, {0}.numpy as jnp; {1}; "
    "print(time.process_time() - start)"
)
TIMEOUT = 900  # seconds, for one process

Samples = dict[tuple[str, str], list[float]]

console = Console(highlight=False)


class Bench:
    """Collects samples of every (implementation, row), and the reasons of those that failed."""

    def __init__(self, selected: list[rows.Row], jax_path: str | None) -> None:
        self.selected = selected
        self.jax_path = jax_path
        self.samples: Samples = {}
        self.errors: dict[tuple[str, str], str] = {}
        self.operations: dict[str, int] = {}

    def groups(self) -> list[str]:
        return list(dict.fromkeys(row.group for row in self.selected))

    def names(self, group: str) -> list[str]:
        return [row.name for row in self.selected if row.group == group]

    def child(self, implementation: str, cache: str, *arguments: str) -> list[str]:
        """Lines that a new process prints; its user cache folder is `cache`."""
        environment = os.environ | {"XDG_CACHE_HOME": cache, "TF_CPP_MIN_LOG_LEVEL": "2"}
        if implementation == "jax" and self.jax_path:
            environment["PYTHONPATH"] = str(Path(self.jax_path).resolve())
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, cwd=cache, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
        return done.stdout.splitlines()

    def measure(self, implementation: str, group: str) -> None:
        """One round of a group: adds a sample to each of its rows."""
        with tempfile.TemporaryDirectory() as cache:
            try:
                if group == "start":
                    self.measure_start(implementation, cache)
                else:
                    script = str(FOLDER / "measure.py")
                    self.record(
                        implementation,
                        self.child(implementation, cache, script, implementation, group, *self.names(group)),
                    )
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                for name in self.names(group):
                    self.errors.setdefault((implementation, name), str(error))

    def measure_start(self, implementation: str, cache: str) -> None:
        for name in self.names("start"):
            snippet = START.format(implementation, rows.START[name][1])
            if name == "the same, second process":
                self.child(implementation, cache, "-c", snippet)
                lines = self.child(implementation, cache, "-c", snippet)
            else:
                with tempfile.TemporaryDirectory() as empty:
                    lines = self.child(implementation, empty, "-c", snippet)
            self.samples.setdefault((implementation, name), []).append(float(lines[-1]))

    def record(self, implementation: str, lines: list[str]) -> None:
        for line in lines:
            found = json.loads(line)
            if "operations" in found:
                self.operations[found["program"]] = found["operations"]
            elif "error" in found:
                self.errors[implementation, found["row"]] = found["error"]
            else:
                self.samples.setdefault((implementation, found["row"]), []).append(found["seconds"])

    def value(self, implementation: str, row: rows.Row) -> float | None:
        """Median over the rounds, in the row's unit."""
        samples = self.samples.get((implementation, row.name))
        if not samples:
            return None
        return statistics.median(samples) * row.scale / self.operations.get(row.program or "", 1)


def cells(bench: Bench) -> Iterator[tuple[rows.Row, float | None, list[str]]]:
    """Each row with its ratio and the texts: ratio, target, name, Morphax, JAX, unit."""
    for row in bench.selected:
        jax, morphax = (bench.value(implementation, row) for implementation in IMPLEMENTATIONS)
        ratio = morphax / jax if morphax is not None and jax is not None else None
        values = ["failed" if value is None else f"{value:.3g}" for value in (morphax, jax)]
        ratio_text = "–" if ratio is None else f"{ratio:.2f}"
        yield row, ratio, [ratio_text, f"≤ {row.target:g}" if row.target else "", row.name, *values, row.unit]


HEADINGS = ("ratio", "target", "", "Morphax", "JAX", "")


def show(bench: Bench) -> None:
    table = Table(title="Morphax ÷ JAX, less is better")
    for heading, justify in zip(HEADINGS, ("right", "right", "left", "right", "right", "left")):
        table.add_column(heading, justify=justify, no_wrap=True)
    group = None
    for row, ratio, texts in cells(bench):
        if group not in (None, row.group):
            table.add_section()
        group = row.group
        colour = "red" if ratio is None or ratio > (row.target or 1.0) else "green"
        table.add_row(f"[{colour}]{texts[0]}[/]", *texts[1:2], texts[2].replace("[", "\\["), *texts[3:])
    console.print(table)
    for (implementation, name), error in bench.errors.items():
        console.print(f"{implementation}: {name}: {error}", style="red", markup=False)


def compile_packages(jax_path: str | None) -> None:
    """Bytecode for both, as an installation writes it: an import that compiles measures Python's compiler."""
    compileall.compile_dir(FOLDER.parent / "morphax", quiet=2)
    if jax_path:
        compileall.compile_dir(jax_path, quiet=2, workers=2)


def machine() -> str:
    """Processor, system and versions in one line."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = re.findall(r"^model name\s*: (.*)$", cpuinfo.read_text(), re.MULTILINE)
        processor = models[0] if models else processor
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("jaxlib", "numpy", "ml_dtypes")]
    cores = f"{os.cpu_count()} cores"
    return ", ".join([processor, cores, platform.system(), f"Python {platform.python_version()}", *versions])


def write(bench: Bench, rounds: int) -> None:
    taken = f"{rounds} round{'s' * (rounds > 1)} taken in turns"
    lines = [
        "# Morphax and JAX compared",
        "",
        f"{machine()}; both on this jaxlib, {taken}. Written by `make bench`.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|--:|--:|:--|--:|--:|:--|",
        *("| " + " | ".join(texts) + " |" for _, _, texts in cells(bench)),
        "",
        "The ratio is Morphax ÷ JAX: less is better. Start-up, tracing and lowering are CPU time, calls wall-clock",
        "time. µs/op divides by the equations of the program's own jaxpr in JAX, also where a gradient or a batched",
        "form is traced or lowered. *Lower* leaves tracing out. Both libraries use the same ml_dtypes.",
        "*The same, second process*: a first process has filled Morphax's disk cache; JAX keeps none unless it is",
        "given a folder.",
        "",
    ]
    RESULTS.write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Morphax with JAX on the same jaxlib.")
    parser.add_argument("--jax-path", help="folder that holds the package jax, if the environment does not")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--filter", default="", help="regular expression that the names of the rows must contain")
    options = parser.parse_args()
    selected = [row for row in rows.ROWS if re.search(options.filter, f"{row.group} {row.name}")]
    if not selected:
        parser.error(f"no row contains {options.filter!r}; the rows are: " + "; ".join(row.name for row in rows.ROWS))

    bench = Bench(selected, options.jax_path)
    compile_packages(options.jax_path)
    with Progress(console=console) as progress:
        task = progress.add_task("", total=options.rounds * len(bench.groups()) * len(IMPLEMENTATIONS))
        for turn in range(options.rounds):
            for group in bench.groups():
                for implementation in IMPLEMENTATIONS if turn % 2 else IMPLEMENTATIONS[::-1]:
                    progress.update(task, description=f"round {turn + 1}: {group}, {implementation}")
                    bench.measure(implementation, group)
                    progress.advance(task)
    show(bench)
    if not options.filter:
        write(bench, options.rounds)
        console.print(f"written to {RESULTS}")
    sys.exit(bool(bench.errors))


if __name__ == "__main__":
    main()
