"""Commands killed at random moments: afterwards the old file or the whole new one, and a rerun makes the same bytes."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.breaking.places import Place, Tree
from tests.breaking.writers import Writer

# Moments are drawn over so much of the time that a run takes: a little beyond its end.
_SPAN = 1.05
# Kills before a run is let go to its end.
_IN_A_ROW = 4
# What a command that writes JSON takes for an old file of its own; saved similarities are read, if they are there.
_OLD = b"{}\n"
_READ_FIRST = ("scores",)
# Of a model folder: what belongs to the model is named in its configuration, and training leaves the rest.
_CONFIG, _CHECKPOINT, _CHECKSUMS = "config.json", "checkpoint.safetensors", "sha256"


@dataclass
class Kills:
    """What was seen of a command.

    Attributes:
        counts: kills, those in mid-run, reruns and so on.
        faults: a line for each thing that should not have been.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@dataclass
class _Way:
    """A command in one of its ways, run once to the end.

    Attributes:
        writer: the command.
        whole: what is there after a run that nobody killed.
        seconds: it takes; the least of all runs so far, as the first ones load what later ones find loaded.
        old: a copy of what an earlier run wrote.
    """

    writer: Writer
    whole: Tree
    seconds: float
    old: Path


def kill_command(place: Place, writer: Writer, kills: int, seed: int = 1) -> Kills:
    """Kill a command in each of its ways, so many times in all."""
    result = Kills()
    ways = list(writer.ways())
    place.empty(writer)
    words = ways[0].arguments(str(place.inputs))
    place.run(words, warm=True)
    for number, way in enumerate(ways):
        rng = random.Random(f"{seed} {way.words}")
        share = kills // len(ways) + (number < kills % len(ways))
        if share:
            _kill_way(place, way, share, rng, result)
    return result


def _kill_way(place: Place, writer: Writer, kills: int, rng: random.Random, found: Kills) -> None:
    way = _whole(place, writer, found)
    if way is None:
        return
    # Where most runs end before they are killed, they are more.
    for _ in range(4 * kills):
        before = found.counts["killed"]
        if kills > 0:
            _trial(place, way, min(kills, _IN_A_ROW), rng, found)
            kills -= found.counts["killed"] - before


def _whole(place: Place, writer: Writer, found: Kills) -> _Way | None:
    """Run a command to its end, twice: what it writes is the same."""
    trees, seconds = [], 0.0
    for _ in range(2):
        place.empty(writer)
        began = time.monotonic()
        code = place.run(writer.arguments(str(place.inputs)))
        seconds = time.monotonic() - began
        if code:
            found.faults.append(f"{writer.words}: exit code {code}: {place.said().strip()[-300:]}")
            return None
        trees.append(place.tree())
    if trees[0] != trees[1]:
        found.faults.append(f"{writer.words}: two runs differ in {sorted(_differing(*trees))}")
        return None
    if strays := [name for name in trees[0] if name.startswith("tmp/")]:
        found.faults.append(f"{writer.words}: leaves {strays}")
    old = place.work.parent / "old"
    shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(place.work, old)
    return _Way(writer, trees[0], seconds, old)


def _trial(place: Place, way: _Way, most: int, rng: random.Random, found: Kills) -> None:
    """Kill a command once or more in a row, look, run it to its end, and look again."""
    writer, kills = way.writer, rng.randint(1, most)
    place.empty(writer)
    there_before = rng.random() < 0.5
    if there_before:
        _put_old(place, way)
    before = place.tree()
    resume, resumed = (rng.random() < 0.7, rng.random() < 0.7) if writer.resume else (False, False)
    for _ in range(kills):
        moment = rng.uniform(0, _SPAN * way.seconds)
        began = time.monotonic()
        code = place.run(_arguments(place, writer, resume), kill=moment)
        found.counts["killed" if code == -9 else "ended before"] += 1
        if not code:
            way.seconds = min(way.seconds, time.monotonic() - began)
        if code not in (0, -9):
            found.faults.append(f"{writer.words}: killed at {moment:.3f} s: exit code {code}: {place.said()[-300:]}")
        now = place.tree()
        for name in writer.outputs:
            state = _state(name, place, before, now, way)
            found.counts[f"outputs {state}"] += 1
            if state == "torn":
                found.faults.append(f"{writer.words}: killed at {moment:.3f} s: {name} is neither old nor new")
    found.counts["left something"] += any(_is_stray(name, writer) for name in now)
    _rerun(place, way, resumed, found)


def _rerun(place: Place, way: _Way, resume: bool, found: Kills) -> None:
    words = _arguments(place, way.writer, resume)
    code = place.run(words)
    found.counts["reruns with --resume" if "--resume" in words else "reruns"] += 1
    if code:
        found.faults.append(f"{' '.join(words)}: the rerun: exit code {code}: {place.said().strip()[-300:]}")
        return
    if differing := _differing(place.tree(), way.whole):
        found.faults.append(f"{' '.join(words)}: after the rerun {sorted(differing)} differ")


def _arguments(place: Place, writer: Writer, resume: bool) -> list[str]:
    """The command line; training is resumed only where there is a checkpoint, and else told to begin anew."""
    more = ["--resume"] if resume else []
    if writer.overwrite and not (resume and (place.work / writer.outputs[0] / _CHECKPOINT).is_file()):
        more = [writer.overwrite]
    return writer.arguments(str(place.inputs), *more)


def _put_old(place: Place, way: _Way) -> None:
    """Put older outputs there: files of a few bytes, folders as an earlier run made them."""
    for name in way.writer.outputs:
        path = place.work / name
        if (way.old / name).is_dir():
            shutil.copytree(way.old / name, path)
            if (path / _CONFIG).is_file():
                # Another model, to be told from the new one.
                (path / "old").touch()
        elif name not in _READ_FIRST:
            path.write_bytes(_OLD)


def _state(name: str, place: Place, before: Tree, now: Tree, way: _Way) -> str:
    """What an output is: `absent`, `old`, `new`, or `torn`."""
    if name in way.writer.kept:
        return "kept"
    if way.whole[name] == "folder":
        return _folder_state(place.work / name, _inside(name, way.whole), _inside(name, now))
    if now.get(name) == way.whole[name]:
        return "new"
    if name not in now:
        return "torn" if name in before else "absent"
    return "old" if now[name] == before.get(name) else "torn"


def _folder_state(folder: Path, whole: Tree, there: Tree) -> str:
    """Of a folder of a model, or of a binary table."""
    if _CONFIG in whole:
        if _CONFIG not in there:
            return "absent"
        names = {_CONFIG, *json.loads((folder / _CONFIG).read_text()).get(_CHECKSUMS, {})}
        same = all(there.get(name) == whole.get(name) for name in names)
        return "torn" if not same else "old" if "old" in there else "new"
    if not there:
        return "absent"
    return "new" if there == whole else "torn"


def _inside(folder: str, tree: Tree) -> Tree:
    """What is in a folder, by paths from there."""
    return {name.removeprefix(f"{folder}/"): digest for name, digest in tree.items() if name.startswith(f"{folder}/")}


def _is_stray(name: str, writer: Writer) -> bool:
    ours = (*writer.outputs, *writer.kept, *(copy for _, copy in writer.copies))
    return not any(name == one or name.startswith(f"{one}/") for one in ours)


def _differing(one: Tree, other: Tree) -> set[str]:
    """Names of files that differ; the mark of an old model does not count."""
    return {name for name in one.keys() | other.keys()
            if one.get(name) != other.get(name) and not name.endswith("/old")}  # fmt: skip


def kill_all(place: Place, writers: tuple[Writer, ...], kills: int, slow_kills: int, seed: int) -> dict[str, Kills]:
    """Kill each command `kills` times on all its inputs, slow ones `slow_kills` times; by the names of commands."""
    collected: dict[str, Kills] = {}
    inputs = Counter(writer.command for writer in writers)
    for writer in writers:
        began = time.monotonic()
        # Rounded up: a command is killed no less often than was asked for.
        share = -(-(slow_kills if writer.slow else kills) // inputs[writer.command])
        result = kill_command(place, writer, share, seed)
        there = collected.setdefault(writer.command, Kills())
        there.counts.update(result.counts)
        there.faults += result.faults
        print(
            f"{time.monotonic() - began:6.1f} s  {writer.command}: {dict(result.counts)}", file=sys.stderr, flush=True
        )
        for fault in result.faults:
            print(f"  FAULT {fault}", file=sys.stderr, flush=True)
    return collected
