"""Commands with limited resources: disk space, memory, file descriptors, a pipe reader, open standard streams.

Each must exit with 0 and correct output, or with 1 and a one-line error; it must not leave partial or stray files.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.breaking.places import Place, Tree
from tests.breaking.writers import Writer

_SCRIPT = Path(sys.executable).parent / "phrasetool"
_SHIM = Path(__file__).with_name("starving.c")
# Seconds; less than the timeout of pytest, so that the error names the command that hangs.
_LIMIT = 200


@dataclass(frozen=True)
class Lack:
    """A resource that a command lacks.

    Attributes:
        name: name of the resource.
        amounts: available amounts, from which trials draw.
        limit: sets the limit in the process that becomes the command.
        variables: returns environment variables of the command.
        redirections: redirections of its standard streams, in the syntax of `sh`.
        silent: whether it cannot print errors, because standard error is missing.
        disk: whether its folder is a file system with that number of bytes.
    """

    name: str
    amounts: tuple[int, ...]
    limit: Callable[[int], None] = lambda amount: None
    variables: Callable[[Place, int], Mapping[str, str]] = lambda place, amount: {}
    redirections: str = ""
    silent: bool = False
    disk: bool = False


def _limited(number: int) -> Callable[[int], None]:
    def limit(amount: int) -> None:
        resource.setrlimit(number, (amount, amount))

    return limit


def _eio(place: Place, amount: int) -> Mapping[str, str]:
    return {"LD_PRELOAD": str(place.inputs / "starving.so"), "FAULT_FOLDER": str(place.work),
            "FAULT_AFTER": str(amount)}  # fmt: skip


def with_amount(lack: Lack, amount: int) -> Lack:
    """Return a copy with a single amount."""
    return replace(lack, amounts=(amount,))


# Exit codes of processes that C libraries abort when memory runs out, which Python cannot catch.
_ABORTED = (127, 134, 139, -6)
LACKS = (
    Lack("RLIMIT_FSIZE", (0, 1, 100, 1000, 5000, 20_000, 60_000, 200_000), _limited(resource.RLIMIT_FSIZE)),
    Lack("EIO", (0, 1, 100, 1000, 5000, 20_000, 60_000, 200_000), variables=_eio),
    Lack("small disk", (4096, 8192, 32_768, 131_072, 1 << 20), disk=True),
    Lack("RLIMIT_AS", tuple(mega << 20 for mega in (300, 520, 600, 800, 1200, 2000)), _limited(resource.RLIMIT_AS)),
    Lack("RLIMIT_NOFILE", (6, 7, 8, 12, 16, 24, 48), _limited(resource.RLIMIT_NOFILE)),
    Lack("standard output closed", (0,), redirections=">&-"),
    Lack("standard input closed", (0,), redirections="<&-"),
    Lack("all streams closed", (0,), redirections="<&- >&- 2>&-", silent=True),
    Lack("a reader that goes away", (0, 1), redirections="| head -c %d > /dev/null"),
    Lack("standard output full", (0,), redirections="> /dev/full"),
)


@dataclass
class Lacked:
    """Results of a command with limited resources: counts of outcomes, and one line per failure."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def build_shim(place: Place) -> bool:
    """Compile the library that makes writes fail; return whether that succeeded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return False
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(place.inputs / "starving.so"), str(_SHIM), "-ldl"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def starve(place: Place, writer: Writer, lacks: tuple[Lack, ...], amounts: int, seed: int = 1) -> Lacked:
    """Run a command with each of the limits, in several amounts."""
    result = Lacked()
    variant = next(iter(writer.ways()))
    place.empty(variant)
    if place.run(variant.arguments(str(place.inputs))):
        result.faults.append(f"{variant.words}: fails without any limit: {place.said()[-200:]}")
        return result
    whole = place.tree()
    rng = random.Random(f"{seed} {variant.words}")
    for lack in lacks:
        for amount in rng.sample(lack.amounts, min(amounts, len(lack.amounts))):
            _starve_once(place, variant, lack, amount, whole, result)
    return result


def _starve_once(place: Place, writer: Writer, lack: Lack, amount: int, whole: Tree, found: Lacked) -> None:
    place.empty(writer)
    if lack.disk and writer.copies:
        return
    before = place.tree()
    with small_disk(place.work, amount) if lack.disk else contextlib.nullcontext(True) as mounted:
        if not mounted:
            return
        code, outcome = _run(place, writer.arguments(str(place.inputs)), lack, amount)
        after = place.tree()
    title = f"{writer.words}: {lack.name} {amount}"
    found.counts[lack.name] += 1
    if code == 0:
        if after != whole:
            found.faults.append(
                f"{title}: exit code 0, but {sorted(n for n in whole if after.get(n) != whole[n])} differ"
            )
        return
    if lack.name == "RLIMIT_AS" and code in _ABORTED:
        found.counts["aborted by a library"] += 1
        if place.run(writer.arguments(str(place.inputs))) or place.tree() != whole:
            found.faults.append(f"{title}: aborted, and a rerun leaves other files than a first run")
        return
    found.counts["refused"] += 1
    if code not in (1, 2):
        found.faults.append(f"{title}: exit code {code}: {outcome[-300:]}")
    if not lack.silent and not _is_told(outcome, lack):
        found.faults.append(f"{title}: no line: {outcome[-300:]!r}")
    for name in after.keys() - before.keys():
        kept = any(name == kept_name or name.startswith(f"{kept_name}/") for kept_name in writer.kept)
        if not kept and after[name] != whole.get(name) and not _of_training(name, writer):
            found.faults.append(f"{title}: leaves {name}")


def _is_told(said: str, lack: Lack) -> bool:
    """Return whether the last line is phrasetool's and no line starts a traceback.

    Lines of other programs begin with the names of these programs.
    """
    lines = said.strip().splitlines()
    if any(line.startswith("Traceback") for line in lines):
        return False
    # If the reader of a pipe has exited, no message is needed.
    return "|" in lack.redirections or (bool(lines) and lines[-1].startswith("phrasetool: "))


def _of_training(name: str, writer: Writer) -> bool:
    """Return whether a file may remain after an interrupted training: not the files that complete a model."""
    return bool(writer.overwrite) and not name.endswith(("config.json", ".vocab"))


def _run(place: Place, words: list[str], lack: Lack, amount: int) -> tuple[int, str]:
    """Run a command in a separate process; return its exit code and standard error."""
    redirections = lack.redirections % amount if "%" in lack.redirections else lack.redirections
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8",
                   "TMPDIR": str(place.temporary), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                   # Python 3.11 accepts byte code files that a full disk truncated.
                   "PYTHONDONTWRITEBYTECODE": "1",
                   **lack.variables(place, amount)}  # fmt: skip
    script = f'set -o pipefail; "$@" {redirections}'
    outcome = subprocess.run(
        ["bash", "-c", script, "bash", str(_SCRIPT), *words], cwd=place.work, env=environment, timeout=_LIMIT,
        preexec_fn=lambda: lack.limit(amount), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    return outcome.returncode, outcome.stderr.decode(errors="replace")


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """Mount a file system of `size` bytes on a folder; yield whether mounting is permitted."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)
