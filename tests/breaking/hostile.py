"""Inputs that could exhaust memory, and unusual paths: a correct result or a one-line error within a memory limit."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.breaking.places import Place

_SCRIPT = str(Path(sys.executable).parent / "phrasetool")
_PIECE = 1 << 20
# Limit of the memory of a command in bytes, for any input.
MEMORY = 2 << 30
_LIMIT = 900


@dataclass(frozen=True)
class Hostile:
    """A large input and the commands that read it.

    Attributes:
        name: description of the input.
        pieces: yields the pieces of a text of a given size, which is compressed with gzip.
        commands: command lines; `T` stands for the file.
        fails: whether the commands must refuse the input; None if they may.
    """

    name: str
    pieces: Callable[[int], Iterator[bytes]]
    commands: tuple[str, ...]
    fails: bool | None = False


def _group(candidates: int) -> Iterator[bytes]:
    for first in range(0, candidates, 10_000):
        some = range(first, min(candidates, first + 10_000))
        yield b"".join(b"das ||| the %d ||| 0.5 0.25 0.5 0.25 ||| 0-0 ||| 2 2 1\n" % i for i in some)


def _columns(columns: int) -> Iterator[bytes]:
    scores = b" ".join(b"0.%04d" % i for i in range(columns))
    for i in range(300):
        yield b"w%03d ||| v ||| %s ||| 0-0 ||| 2 2 1\n" % (i, scores)


def _zeros(size: int) -> Iterator[bytes]:
    piece = bytes(_PIECE)
    return (piece for _ in range(size // _PIECE))


def _feeds(size: int) -> Iterator[bytes]:
    piece = b"\n" * _PIECE
    return (piece for _ in range(size // _PIECE))


def _line(size: int) -> Iterator[bytes]:
    yield b"das ||| the ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\nhaus |||"
    piece = b" house" * (_PIECE // 6)
    yield from (piece for _ in range(size // len(piece)))
    yield b" ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n"


_ONE_BY_ONE = (
    "annotate T -m @model --force -o out", "threshold-filter 0:0.6 T -o out",
    "remove-orphans T --reordering-table T --force -o out", "convert T -o out",
)  # fmt: skip
HOSTILE = (
    Hostile("a source with many candidates", _group, _ONE_BY_ONE),
    Hostile("the same where they are needed together", _group,
            ("prune T --columns 1,2 --scale raw -t 0.3 -o out", "filter-pt T -n 5 -o out"), fails=True),
    Hostile("many columns", _columns, ("prune T --columns 1,2 --scale raw -t 0.3 --keep-top 0 -o out",
                                       "annotate T -m @model --force -o out", "inspect T")),
    Hostile("a gzip bomb of zeros", _zeros, ("inspect T",), fails=None),
    Hostile("a gzip bomb of zeros", _zeros, ("prune T --columns 1,2 -t 0.3 -o out", "lm T -o out",
                                             "decode --moses-ini @moses.ini T -o out"), fails=True),
    Hostile("a gzip bomb of empty lines", _feeds,
            ("prune T --columns 1,2 -t 0.3 -o out", "annotate T -m @model -o out"), fails=True),
    Hostile("a long line", _line, ("inspect T", "prune T --columns 1,2 -t 0.3 -o out", "convert T -o out"), fails=True),
)  # fmt: skip
_SIZES = {_group: 10_000_000, _columns: 10_000, _zeros: 10 << 30, _feeds: 2 << 30, _line: 100 << 20}


def run_hostile(place: Place, share: float = 1.0) -> dict[str, object]:
    """Run all commands on inputs of a share of their full sizes; return figures and failures."""
    figures: dict[str, object] = {}
    faults: list[str] = []
    for hostile in HOSTILE:
        path = place.work.parent / "hostile.gz"
        place.work.mkdir(exist_ok=True)
        size = int(_SIZES[hostile.pieces] * share)
        with gzip.open(path, "wb", compresslevel=1) as file:
            for piece in hostile.pieces(size):
                file.write(piece)
        for command in hostile.commands:
            code, outcome, peak, seconds = _run(place, command, path)
            figures[f"{hostile.name}: {command}"] = {
                "size": size, "code": code, "peak_mb": round(peak / 1e6), "seconds": round(seconds, 1), "said": outcome,
            }  # fmt: skip
            title = f"{hostile.name} of {size:,}: {command}"
            if (
                "Traceback" in outcome
                or code not in (0, 1)
                or (hostile.fails is not None and (code == 0) == hostile.fails)
            ):
                faults.append(f"{title}: exit code {code}: {outcome}")
            if peak > MEMORY:
                faults.append(f"{title}: took {peak / 1e6:,.0f} MB")
            print(
                f"{peak / 1e6:8,.0f} MB {seconds:6.1f} s  {title}: {code} {outcome[:150]}", file=sys.stderr, flush=True
            )
        path.unlink()
    faults += _odd_places(place)
    return {"commands": figures, "faults": faults}


def _run(place: Place, command: str, path: Path) -> tuple[int, str, int, float]:
    """Return the exit code, the last line of standard error, the peak memory in bytes and the seconds."""
    words = [str(path) if word == "T" else word.replace("@", f"{place.inputs}/") for word in command.split()]
    for old in place.work.iterdir():
        old.unlink()
    began = time.monotonic()
    process = subprocess.Popen(
        [_SCRIPT, *words], cwd=place.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(place.work)},
    )  # fmt: skip
    assert process.stderr
    messages = process.stderr.read().decode(errors="replace").strip().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    last = (messages or [""])[-1].replace(str(path), "T")
    return process.returncode, last, usage.ru_maxrss * 1024, time.monotonic() - began


def _odd_places(place: Place) -> list[str]:
    """Return failures of outputs through symbolic links and of names with line feeds."""
    faults = []
    for old in place.work.iterdir():
        old.unlink()
    (place.work / "real").write_bytes(b"old\n")
    (place.work / "link").symlink_to("real")
    (place.work / "dangling").symlink_to("not there yet")
    plain = ["threshold-filter", "0:0.55", str(place.inputs / "large.gz"), "-o"]
    if place.run([*plain, "plain"]):
        return [place.said()]
    expected = (place.work / "plain").read_bytes()
    for name, real in (("link", "real"), ("dangling", "not there yet"), ("a\nname", "a\nname")):
        code = place.run([*plain, name])
        path = place.work / real
        if code or not path.is_file() or path.read_bytes() != expected:
            faults.append(f"-o {name!r}: exit code {code}: {place.said()[-200:]}")
        if name != real and not (place.work / name).is_symlink():
            faults.append(f"-o {name!r}: the link is no more")
    missing = place.run(["inspect", "no\nsuch\nfile"])
    if missing != 1 or place.said().count("\n") != 1:
        faults.append(f"a name with line feeds: {missing}: {place.said()!r}")
    return faults
