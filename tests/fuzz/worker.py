"""Fuzz one target in one process: `python -m tests.fuzz.worker TARGET --seed S --first B --seconds T`.

Inputs come in batches with separate seeds, so that a batch can be reproduced from its number.  Standard output is a
line of JSON.  A batch that takes too long ends the process by a signal, as a crash of compiled code does; the file
given by `--progress` then contains the number of that batch.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import mmap
import resource
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
FAMILIES = ("tables", "engine", "corpora", "vectors", "models", "stored", "settings")
# Inputs per batch if an input is a file, and the time limit of a batch in seconds.
_FILES = 50
_LIMIT = 60
# Memory limit in bytes; inputs are too small to need as much.
_MEMORY = 6 << 30


def targets() -> dict[str, Any]:
    """Return all targets by name."""
    result = (target for family in FAMILIES for target in importlib.import_module(f"tests.fuzz.{family}").TARGETS)
    return {target.name: target for target in result}


def family_of(name: str) -> Any:
    """Return the target with a name; only the module of its family is loaded."""
    for family in FAMILIES:
        text = (Path(__file__).parent / f"{family}.py").read_text()
        if f'Target("{name}"' in text:
            return next(t for t in importlib.import_module(f"tests.fuzz.{family}").TARGETS if t.name == name)
    raise SystemExit(f"there is no target {name!r}")


def inputs_of(target: Any, seed: int, batch: int) -> list[bytes]:
    """Return the inputs of a batch."""
    from tests.fuzz.mutator import Mutator

    mutator = Mutator((seed, target.name, batch), target.seeds, target.words)
    return [mutator.one() for _ in range(target.lines or _FILES)]


def as_file(target: Any, inputs: Sequence[bytes]) -> bytes:
    """Join lines to one file, after the head of the target."""
    return b"".join(line + b"\n" for line in ([target.head] if target.head else []) + list(inputs))


def smallest(fails: Callable[[Sequence[bytes]], bool], inputs: Sequence[bytes]) -> list[bytes]:
    """Reduce inputs that fail to a few that still fail, by leaving out halves, quarters and so on."""
    kept, size = list(inputs), len(inputs) // 2
    while size:
        start = 0
        while start < len(kept):
            without = kept[:start] + kept[start + size :]
            if without and fails(without):
                kept = without
            else:
                start += size
        size //= 2
    return kept


class Worker:
    """Runner of batches that stores one failing input for each failure location.

    Args:
        target: the target to fuzz.
        keep: folder for failing inputs.
    """

    def __init__(self, target: Any, keep: Path) -> None:
        self.target, self.keep = target, keep
        self.inputs = self.refused = 0
        self.faults: dict[str, str] = {}

    def run(self, inputs: list[bytes]) -> None:
        """Run a batch."""
        if self.target.lines:
            self._try(as_file(self.target, inputs), inputs)
        else:
            for data in inputs:
                self._try(data, None)
        self.inputs += len(inputs)

    def _try(self, data: bytes, lines: list[bytes] | None) -> None:
        failure = self._fault(data)
        if failure is None or failure in self.faults:
            return
        if lines:
            fewest = smallest(lambda some: self._fault(as_file(self.target, some)) == failure, lines)
            data = as_file(self.target, fewest)
        self.keep.mkdir(parents=True, exist_ok=True)
        name = f"{self.target.name.replace(' ', '-')}-{hashlib.sha256(data).hexdigest()[:12]}"
        (self.keep / name).write_bytes(data)
        self.faults[failure] = name

    def _fault(self, data: bytes) -> str | None:
        """Return the failure and its code location, None without a failure."""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self.refused += self.target.attempt(data)
        except Exception as error:
            frames = [
                frame for frame in traceback.extract_tb(error.__traceback__) if "/site-packages/" not in frame.filename
            ]
            innermost = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
            path = innermost.filename.removeprefix(f"{ROOT}/")
            return f"{type(error).__name__}: {str(error)[:150]!r} at {path}:{innermost.lineno}"
        return None


def batches(first: int, count: int | None, seconds: float) -> Iterator[int]:
    """Yield batch numbers: `count` of them, or as many as fit into `seconds` if it is None."""
    ends = time.monotonic() + seconds
    batch = first
    while batch < first + count if count is not None else time.monotonic() < ends:
        yield batch
        batch += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first batch")
    parser.add_argument("--count", type=int, help="batches; otherwise as many as there is time for")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--progress", help="a file of 8 bytes")
    parser.add_argument("--keep", default=str(ROOT / "benchmarks" / "work" / "fuzz"))
    options = parser.parse_args()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    target = family_of(options.target)
    worker = Worker(target, Path(options.keep))
    progress = _progress(options.progress)
    # Valid inputs compile or load the kernels.
    for seed in target.seeds:
        worker.run([seed] * (target.lines or 1))
    began, next_batch = time.monotonic(), options.first
    worker.inputs = worker.refused = 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for batch in batches(options.first, options.count, options.seconds):
        progress(batch)
        signal.setitimer(signal.ITIMER_REAL, _LIMIT)
        worker.run(inputs_of(target, options.seed, batch))
        next_batch = batch + 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "inputs": worker.inputs, "refused": worker.refused, "next": next_batch, "seconds": time.monotonic() - began,
        "peak": peak, "faults": worker.faults,
    }))  # fmt: skip


def _progress(path: str | None) -> Callable[[int], None]:
    if path is None:
        return lambda batch: None
    with open(path, "w+b") as file:
        file.write(bytes(8))
        file.flush()
        memory = mmap.mmap(file.fileno(), 8)
    return lambda batch: struct.pack_into("<q", memory, 0, batch)


if __name__ == "__main__":
    main()
