"""Fuzzing with one process per target: counts of inputs, refused inputs and failures."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Number of crashes and hangs after which a target is abandoned.
_MOST_DEATHS = 5


@dataclass
class Fuzzed:
    """Results of fuzzing a target.

    Attributes:
        inputs, refused: number of inputs, and of those refused with an error message.
        seconds: duration without process starts.
        peak: peak memory in bytes.
        faults: failure and its code location -> name of the file with the input.
        deaths: hangs and crashes, each with the number of its batch.
    """

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    peak: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    deaths: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return the figures for the results file."""
        result = asdict(self)
        result["seconds"] = round(self.seconds, 1)
        result["peak"] = self.peak
        result["inputs a second"] = round(self.inputs / self.seconds) if self.seconds else 0
        return result


def target_names() -> list[str]:
    """Return the names of all targets, read from the source of their modules without importing them."""
    collected: list[str] = []
    for path in sorted((ROOT / "tests" / "fuzz").glob("*.py")):
        if path.name != "worker.py":
            collected += re.findall(r'^    Target\("([^"]+)"', path.read_text(), re.MULTILINE)
    return collected


def fuzz(name: str, seconds: float, seed: int = 1, bounds: bool = False, keep: Path | None = None) -> Fuzzed:
    """Fuzz a target for some seconds; after a crash or hang, continue with the next batch.

    Args:
        name: name of the target.
        seconds: duration of fuzzing.
        seed: seed of the inputs.
        bounds: whether numba checks each index; this compiles the kernels again, to a separate cache folder.
        keep: folder for failing inputs.
    """
    total, batch = Fuzzed(), 0
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    if bounds:
        cache = ROOT / "benchmarks" / "work" / "bounds-checked"
        environment.update(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(cache), PHRASETOOL_KERNELS="numba")
    with tempfile.NamedTemporaryFile() as progress:
        while len(total.deaths) < _MOST_DEATHS and (remaining := seconds - total.seconds) > 0:
            words = [sys.executable, "-m", "tests.fuzz.worker", name, "--seed", str(seed), "--first", str(batch),
                     "--seconds", f"{remaining:.2f}", "--progress", progress.name]  # fmt: skip
            words += ["--keep", str(keep)] if keep else []
            outcome = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            if outcome.returncode == 0:
                _add(total, json.loads(outcome.stdout.splitlines()[-1]))
                break
            failed_batch = struct.unpack("<q", Path(progress.name).read_bytes())[0]
            total.deaths.append(f"batch {failed_batch}: {_death(outcome)}")
            total.seconds += remaining / _MOST_DEATHS
            batch = failed_batch + 1
    return total


def _add(total: Fuzzed, found: dict[str, object]) -> None:
    total.inputs += int(str(found["inputs"]))
    total.refused += int(str(found["refused"]))
    total.seconds += float(str(found["seconds"]))
    total.peak = max(total.peak, int(str(found["peak"])))
    assert isinstance(found["faults"], dict)
    total.faults.update(found["faults"])


def _death(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == -signal.SIGALRM:
        return "hang"
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    return f"exit code {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:200]}"


def fuzz_all(names: Sequence[str], seconds: float, seed: int, bounds: bool, keep: Path) -> dict[str, Fuzzed]:
    """Fuzz targets one after another."""
    collected = {}
    for name in names:
        collected[name] = result = fuzz(name, seconds, seed, bounds, keep)
        rate = result.inputs / (result.seconds or 1)
        print(f"{result.inputs:10,} inputs, {result.refused:10,} refused, {rate:8,.0f} a second  {name}",
              file=sys.stderr, flush=True)  # fmt: skip
        for fault in [*result.faults.items(), *result.deaths]:
            print(f"  FAULT {fault}", file=sys.stderr, flush=True)
    return collected
