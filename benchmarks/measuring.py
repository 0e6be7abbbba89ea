"""Common functions of the benchmarks: run and time processes, describe the machine, find the reference data."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phrasetool.kernels.jit import MANIFEST, MODE, checksum, folders

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "benchmarks" / "work"
COMMAND = str(Path(sys.executable).parent / "phrasetool")


# The corpora; one includes a real Moses run.
DATA = Path(os.environ.get("PHRASETOOL_DATA", ROOT.parent / "shared" / "data"))


def reference() -> Path:
    """Return the folder of a real Moses run, with `phrase-table.gz` and `forced-pairs.gz`."""
    folder = DATA / "multi30k-de-en" / "moses"
    if not (folder / "phrase-table.gz").is_file():
        sys.exit(f"{folder}: no phrase-table.gz here; name the folder of the corpora with PHRASETOOL_DATA")
    return folder


# The reference run's test sets, in the parent of its folder.
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")


def bleu(lines: list[str], references: list[str]) -> float:
    """Return sacrebleu's BLEU without further tokenisation."""
    import sacrebleu

    return round(sacrebleu.corpus_bleu(lines, [references], tokenize="none", force=True).score, 2)


def machine() -> str:
    """Return the processor, the number of cores available to this process, and the Python version."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


@dataclass(frozen=True)
class Usage:
    """Wall seconds, CPU seconds and peak resident memory, in bytes, of a finished process."""

    wall: float
    cpu: float
    peak: int


def usage(command: Sequence[str | Path] | str) -> Usage:
    """Run a process, a string through the shell; exit with an error if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, shell=isinstance(command, str), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    errors = process.stderr.read() if process.stderr else b""
    _, status, resource_usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{command} failed: {errors.decode()}")
    return Usage(
        seconds,
        resource_usage.ru_utime + resource_usage.ru_stime,
        resource_usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    )


def run(command: Sequence[str] | str) -> tuple[float, int]:
    """Run a process; return its wall seconds and its peak resident memory in bytes."""
    process = usage(command)
    return process.wall, process.peak


def alternate(
    commands: dict[str, list[str] | str], rounds: int, outputs: Sequence[Path] = ()
) -> dict[str, list[float]]:
    """Return wall seconds of each command, run in turn because machines drift, without a first warm-up round.

    Args:
        outputs: files to remove before each run, because freeing their disk space takes time.
    """
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            for output in outputs:
                output.unlink(missing_ok=True)
            seconds, _ = run(command)
            if number:
                times[name].append(seconds)
    return times


def turns(
    runs: Mapping[str, Iterator[Any]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the seconds of each iterator's steps, taken in turn, without a first warm-up step of each.

    For single-threaded work, `time.process_time` as the clock excludes other load of the machine.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, steps in runs.items():
            began = clock()
            next(steps)
            if number:
                seconds[name].append(clock() - began)
    return seconds


def summary(values: list[float]) -> dict[str, float]:
    """Return minimum, median and maximum."""
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }


def report(name: str, figures: dict) -> None:
    """Print the figures as JSON, and store them in benchmarks/results/."""
    text = json.dumps({"benchmark": name, "machine": machine(), **figures}, indent=2)
    print(text)
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(text + "\n")


def compile_bytecode(checkout: Path = ROOT) -> None:
    """Compile all modules to bytecode, as an installation does; otherwise every command parses them again."""
    packages = [str(checkout / name) for name in ("phrasetool", "moses_compat", "cli/phrasetool_cli")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *packages], check=True)


def compile_kernels() -> None:
    """Compile the bytecode, and the kernels (`phrasetool compile`) if their sources have changed."""
    compile_bytecode()
    # The package of tests, which some benchmarks import, sets this variable; commands run with its default.
    os.environ.pop(MODE, None)
    for package in ("phrasetool", "moses_compat"):
        sources = next((manifest["sources"] for manifest in map(_manifest, folders(package)) if manifest), None)
        modules = {} if sources is None else {name: importlib.util.find_spec(name) for name in sources}
        if sources is None or any(
            spec is None or checksum(str(spec.origin)) != sources[name] for name, spec in modules.items()
        ):
            subprocess.run([COMMAND, "compile"], check=True)
            return


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / MANIFEST
    return json.loads(path.read_text()) if path.is_file() else None


def model() -> str:
    """Return the folder of a model trained once with default settings on the reference run's forced-decoding pairs."""
    folder = WORK / "model"
    if not (folder / "config.json").is_file():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run([COMMAND, "train", str(reference() / "forced-pairs.gz"), "-o", str(folder), "-q"], check=True)
    return str(folder)
