"""One process that fuzzes one target: `python -m tests.fuzz.worker TARGET --seed S --first B --seconds T`.

Inputs come in batches, each from a seed of its own, so that a batch can be made again by its number.  Standard output
is a line of JSON.  A batch that takes too long ends the process by a signal, as a crash of compiled code does;
`--progress` names a file that then tells which batch it was.
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
# Files in a batch, where an input is a file; and the seconds that a batch may take.
_FILES = 50
_LIMIT = 60
# No input is so large that reading it could need this.
_MEMORY = 6 << 30


def targets() -> dict[str, Any]:
    """All targets, by name."""
    result = (target for family in FAMILIES for target in importlib.import_module(f"tests.fuzz.{family}").TARGETS)
    return {target.name: target for target in result}


def family_of(name: str) -> Any:
    """The target of a name; no other family is loaded than needed."""
    for family in FAMILIES:
        text = (Path(__file__).parent / f"{family}.py").read_text()
        if f'Target("{name}"' in text:
            return next(t for t in importlib.import_module(f"tests.fuzz.{family}").TARGETS if t.name == name)
    raise SystemExit(f"there is no target {name!r}")


def inputs_of(target: Any, seed: int, batch: int) -> list[bytes]:
    """The inputs of a batch."""
    from tests.fuzz.mutator import Mutator

    mutator = Mutator((seed, target.name, batch), target.seeds, target.words)
    return [mutator.one() for _ in range(target.lines or _FILES)]


def as_file(target: Any, inputs: Sequence[bytes]) -> bytes:
    """Lines as one file, its head first."""
    return b"".join(line + b"\n" for line in ([target.head] if target.head else []) + list(inputs))


def smallest(fails: Callable[[Sequence[bytes]], bool], inputs: Sequence[bytes]) -> list[bytes]:
    """A few of the inputs that together fail as all do: halves, quarters and so on are left out while it fails."""
    left, size = list(inputs), len(inputs) // 2
    while size:
        place = 0
        while place < len(left):
            without = left[:place] + left[place + size :]
            if without and fails(without):
                left = without
            else:
                place += size
        size //= 2
    return left


class Worker:
    """Runs batches, and keeps what fails once for each place where it does.

    Args:
        target: it.
        keep: where failing inputs go.
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
        place = self._fault(data)
        if place is None or place in self.faults:
            return
        if lines:
            few = smallest(lambda some: self._fault(as_file(self.target, some)) == place, lines)
            data = as_file(self.target, few)
        self.keep.mkdir(parents=True, exist_ok=True)
        name = f"{self.target.name.replace(' ', '-')}-{hashlib.sha256(data).hexdigest()[:12]}"
        (self.keep / name).write_bytes(data)
        self.faults[place] = name

    def _fault(self, data: bytes) -> str | None:
        """Where it fails and how; None if it does not."""
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self.refused += self.target.attempt(data)
        except Exception as error:
            frames = [
                frame for frame in traceback.extract_tb(error.__traceback__) if "/site-packages/" not in frame.filename
            ]
            where = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
            path = where.filename.removeprefix(f"{ROOT}/")
            return f"{type(error).__name__}: {str(error)[:150]!r} at {path}:{where.lineno}"
        return None


def batches(first: int, count: int | None, seconds: float) -> Iterator[int]:
    """Numbers of batches, so many or for so long."""
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
    # Kernels are compiled, or loaded, by what is right.
    for seed in target.seeds:
        worker.run([seed] * (target.lines or 1))
    began, result = time.monotonic(), options.first
    worker.inputs = worker.refused = 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for batch in batches(options.first, options.count, options.seconds):
        progress(batch)
        signal.setitimer(signal.ITIMER_REAL, _LIMIT)
        worker.run(inputs_of(target, options.seed, batch))
        result = batch + 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "inputs": worker.inputs, "refused": worker.refused, "next": result, "seconds": time.monotonic() - began,
        "peak": peak, "faults": worker.faults,
    }))  # fmt: skip


def _progress(path: str | None) -> Callable[[int], None]:
    if path is None:
        return lambda batch: None
    with open(path, "w+b") as file:
        file.write(bytes(8))
        file.flush()
        there = mmap.mmap(file.fileno(), 8)
    return lambda batch: struct.pack_into("<q", there, 0, batch)


if __name__ == "__main__":
    main()
