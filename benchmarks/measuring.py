"""Common functions of the benchmarks: running whole processes, naming the machine, finding the reference data."""

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


# Corpora, one of which has a real Moses run.
DATA = Path(os.environ.get("PHRASETOOL_DATA", ROOT.parent / "shared" / "data"))


def reference() -> Path:
    """The folder of a real Moses run: `phrase-table.gz`, `forced-pairs.gz`."""
    folder = DATA / "multi30k-de-en" / "moses"
    if not (folder / "phrase-table.gz").is_file():
        sys.exit(f"{folder}: no phrase-table.gz here; name the folder of the corpora with PHRASETOOL_DATA")
    return folder


# The reference run's test sets, next to its folder.
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")


def bleu(lines: list[str], references: list[str]) -> float:
    """BLEU by sacrebleu of words as they are."""
    import sacrebleu

    return round(sacrebleu.corpus_bleu(lines, [references], tokenize="none", force=True).score, 2)


def machine() -> str:
    """Processor, cores this process may use, Python."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


@dataclass(frozen=True)
class Usage:
    """Of a process that has ended: wall and CPU seconds, and its peak resident memory in bytes."""

    wall: float
    cpu: float
    peak: int


def usage(command: Sequence[str | Path] | str) -> Usage:
    """Run a process, a string through the shell; one that fails ends the benchmark."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, shell=isinstance(command, str), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    errors = process.stderr.read() if process.stderr else b""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{command} failed: {errors.decode()}")
    return Usage(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def run(command: Sequence[str] | str) -> tuple[float, int]:
    """Run a process; wall seconds and its peak resident memory in bytes."""
    used = usage(command)
    return used.wall, used.peak


def alternate(
    commands: dict[str, list[str] | str], rounds: int, outputs: Sequence[Path] = ()
) -> dict[str, list[float]]:
    """Wall seconds of each command, run in turn (machines drift), after one round that is not counted.

    Args:
        outputs: files that are removed before each run: to free the room of an old one takes time, too.
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
    """Seconds of the steps of some iterators, in turn, after one step of each that is not counted.

    Where one thread does all the work, `time.process_time` leaves out what else the machine was doing.
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
    """Minimum, median, maximum."""
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }


def report(name: str, figures: dict) -> None:
    """Print JSON, and keep it in benchmarks/results/."""
    text = json.dumps({"benchmark": name, "machine": machine(), **figures}, indent=2)
    print(text)
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(text + "\n")


def compile_bytecode(checkout: Path = ROOT) -> None:
    """Compile what installing compiles: without it, every command parses all modules again."""
    packages = [str(checkout / name) for name in ("phrasetool", "moses_compat", "cli/phrasetool_cli")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *packages], check=True)


def compile_kernels() -> None:
    """Compile bytecode and kernels (`phrasetool compile`), as installing does once, if anything has changed."""
    compile_bytecode()
    # Tests, of which benchmarks read some helpers, leave the library alone.
    os.environ.pop(MODE, None)
    for package in ("phrasetool", "moses_compat"):
        sources = next((known["sources"] for known in map(_manifest, folders(package)) if known), None)
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
    """A model trained on the reference run's forced-decoding pairs with default settings; made once."""
    folder = WORK / "model"
    if not (folder / "config.json").is_file():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run([COMMAND, "train", str(reference() / "forced-pairs.gz"), "-o", str(folder), "-q"], check=True)
    return str(folder)
