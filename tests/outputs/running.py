"""Runs of a case by both sides in the same folder, so that all paths in messages and outputs are equal."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.outputs.cases import Case, Step
from tests.outputs.compare import compare_folders
from tests.outputs.sides import Server, Side

INPUTS = "in"

_QUICK_PACKAGES = ("click", "numpy", "pyarrow.parquet", "pandas")
_SLOW_PACKAGES = (*_QUICK_PACKAGES, "scipy.stats", "sacrebleu", "torch", "gensim.models")
# These files have many small cases, which run in warm processes, except those with words that load slow packages.
_WARM_FILES = ("usage", "tables", "demo")
_SLOW_WORDS = {"train", "reconstruct", "experiment", "--sentences", "evaluate"}
# Commands that warm a process up: common uses of the commands that read tables.
_WARM_UP = """\
inspect @tables/seven-fields --json found.json
convert @tables/seven-fields -o t.parquet
convert t.parquet -o back.gz
prune @tables/seven-fields -m @odd/rae -t 0.1 --keep-top 1 -o a --rejected b --reasons c --stats d --scores e \
  --reordering-table @tables/reordering --reordering-out r --on-error skip --threads 2
prune @tables/seven-fields -m @odd/mean-max --target-size 0.9 --keep-top 0 -o a.gz
prune @tables/seven-fields --columns 1,2 --sweep 0:1:0.5
prune @tables/seven-fields --method composition+semantic+usage+significance+count+probability+top+random -m @odd/rae \
  --moses-ini @other/4.ini --corpus @odd/source @odd/target --forced-pairs @odd/pairs --target-size 0.9 --protect none \
  -o a --reasons b --stats c
annotate @tables/seven-fields -m @odd/rae -m @odd/mean-max --forced-pairs @odd/pairs --smoothing kneser-ney -o a.gz
filter-pt @tables/seven-fields -f @odd/source -e @odd/target -l a-e -n 2 -c -p --force -o a
threshold-filter 0:0.1 @tables/seven-fields --keep-words -o a
remove-orphans @tables/seven-fields --reordering-table @tables/reordering -o a --on-error skip
moses-ini --table @tables/seven-fields --lm @odd/lm.arpa -o a
moses-ini @other/4.ini --table @tables/seven-fields -o a
decode --moses-ini @other/4.ini --table @tables/seven-fields @odd/source -o a --n-best-list b 3
force-decode --moses-ini @other/4.ini --table @tables/seven-fields @odd/source @odd/target -o a
evaluate-model @tables/seven-fields -m @odd/rae --candidates 5
neighbours das haus -m @odd/rae --pairs @tables/seven-fields
neighbours das haus -m @odd/mean-max --pairs @tables/seven-fields
"""


@dataclass
class Outcome:
    """Result of a case.

    Attributes:
        case: the case.
        files: number of compared files and folders.
        codes: exit codes of its commands, before.
        seconds: duration of both sides.
        differences: one line for each difference.
        allowed: numbers of permitted differences, by reason.
        wrong: problem of the case itself, empty if it has none.
    """

    case: Case
    files: int
    codes: list[int]
    seconds: float
    differences: list[str]
    allowed: Counter[str] = field(default_factory=Counter)
    wrong: str = ""


class Place:
    """A folder in which the cases of one worker are run, one after another.

    Args:
        folder: a new folder next to the inputs; its path is part of the paths that commands write.
        sides: before and after.
        moses: the folder of Moses' programs, None without them.
        fresh: see `Server`.
    """

    def __init__(self, folder: Path, sides: tuple[Side, Side], moses: str | None, fresh: bool) -> None:
        self._folder, self._sides, self._moses, self._fresh = folder, sides, moses, fresh
        self._servers: dict[tuple[str, bool], Server] = {}
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, case: Case, keep: Path | None = None) -> Outcome:
        """Run a case by both sides and compare the outputs.

        Args:
            case: the case to run.
            keep: folder for outputs that differ, None to discard them.
        """
        folders, began = [], time.monotonic()
        codes: list[list[int]] = []
        warm = case.file in _WARM_FILES and not any(_SLOW_WORDS & set(step.words) for step in case.steps)
        for side in self._sides:
            server = self._server(side, warm and not self._fresh)
            (self._folder / "work").mkdir(parents=True)
            (self._folder / "tmp").mkdir()
            codes.append([self._run_step(i, step, side, server) for i, step in enumerate(case.steps, 1)])
            folders.append(self._folder.with_name(f"{self._folder.name}.{side.name}"))
            shutil.rmtree(folders[-1], ignore_errors=True)
            self._folder.rename(folders[-1])
        result = compare_folders(*folders)
        if codes[0] != codes[1]:
            result.differences.insert(0, f"exit codes: {codes[0]} before, {codes[1]} after")
        wrong = _wrong(case, codes[0], folders[0])
        outcome = Outcome(
            case, result.files, codes[0], time.monotonic() - began, result.differences, result.allowed, wrong
        )
        if keep and (outcome.differences or outcome.wrong):
            keep.mkdir(parents=True)
            (keep / "case").write_text("\n".join([case.text, *outcome.differences, outcome.wrong]) + "\n")
            for side, folder in zip(self._sides, folders, strict=True):
                folder.rename(keep / side.name)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        return outcome

    def _server(self, side: Side, warm: bool) -> Server:
        """Return a server of a side, started when it is first needed."""
        server = self._servers.get((side.name, warm))
        if server is None:
            packages = _QUICK_PACKAGES if warm else _SLOW_PACKAGES
            server = self._servers[side.name, warm] = Server(side, packages, self._fresh)
            if warm:
                self._warm_up(server)
        return server

    def _warm_up(self, server: Server) -> None:
        (self._folder / "work").mkdir(parents=True)
        for line in _WARM_UP.replace("\\\n", " ").splitlines():
            words = [self._path(word) for word in line.split()]
            server.run(warm=True, folder=str(self._folder / "work"), arguments=words)
        shutil.rmtree(self._folder)

    def _run_step(self, number: int, step: Step, side: Side, server: Server) -> int:
        """Run a command; its standard output and error are written to files, which are compared as well."""
        folder = self._folder / "work"
        words = [self._path(word) for word in step.words]
        if words[0] == "cp":
            source, target = folder / words[1], folder / words[2]
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
            return 0
        request = {"arguments": words}
        streams = {name: str(self._folder / f"{name}.{number}") for name in ("stdout", "stderr")}
        stdin = str(folder / self._path(step.stdin)) if step.stdin else os.devnull
        stop = step.variables.get("STOP", "")
        code = server.run(
            folder=str(folder), environment=self._environment(step), stdin=stdin, stop=stop, **streams, **request
        )
        if stop:
            # The progress before the interruption is random; only the result of the next command is compared.
            for path in streams.values():
                os.unlink(path)
        return code

    def _path(self, word: str) -> str:
        """Return a word of a command line with inputs replaced by paths."""
        word = word.replace("$MOSES", self._moses or "")
        return f"../../{INPUTS}/{word[1:]}" if word.startswith("@") else word

    def _environment(self, step: Step) -> dict[str, str]:
        """Return the environment of a command: minimal, and without programs that happen to be on the PATH."""
        result = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "COLUMNS": "100", "HOME": os.environ.get("HOME", "/"),
                  "TMPDIR": str(self._folder / "tmp")}  # fmt: skip
        return result | {name: self._path(value) for name, value in step.variables.items() if name != "STOP"}

    def close(self) -> None:
        """End the servers."""
        for server in self._servers.values():
            server.close()


def _wrong(case: Case, codes: list[int], folder: Path) -> str:
    """Return why a case is invalid, an empty string if it is valid."""
    if case.fails is False and any(codes) and "STOP=" not in case.text:
        last = "".join(path.read_text(errors="replace") for path in sorted(folder.glob("stderr.*"))).splitlines()[-1:]
        return f"should succeed, but before ends with {codes}: {' '.join(last)}"
    if case.fails and not any(codes):
        return "should fail, but before succeeds"
    for path in folder.glob("stderr.*"):
        if "--debug" not in case.text and b"Traceback" in path.read_bytes():
            return "a traceback, before"
    return ""


class Places:
    """One `Place` for each thread."""

    def __init__(self, folder: Path, sides: tuple[Side, Side], moses: str | None, fresh: bool) -> None:
        self._arguments = sides, moses, fresh
        self._folder = folder
        self._own = threading.local()
        self._lock = threading.Lock()
        self._made: list[Place] = []

    def mine(self) -> Place:
        """Return the place of the current thread."""
        if not hasattr(self._own, "place"):
            with self._lock:
                place = Place(self._folder / f"run-{len(self._made)}", *self._arguments)
                self._made.append(place)
            self._own.place = place
        return self._own.place

    def close(self) -> None:
        """End all servers."""
        for place in self._made:
            place.close()
