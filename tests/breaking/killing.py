"""Commands killed at random moments must leave the old or the complete new file; a rerun gives the same bytes."""

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

# Kill times are drawn from this multiple of the duration of a run: slightly beyond its end.
_SPAN = 1.05
# Maximal number of kills before a run is completed.
_IN_A_ROW = 4
# Content of old outputs, accepted by commands that write JSON; files of scores get none, because they would be read.
_OLD = b"{}\n"
_READ_FIRST = ("scores",)
# Files of a model folder.  The configuration lists the files of the model; training leaves further ones.
_CONFIG, _CHECKPOINT, _CHECKSUMS = "config.json", "checkpoint.safetensors", "sha256"


@dataclass
class Kills:
    """Results of killing a command.

    Attributes:
        counts: numbers of kills, of runs that ended before, of reruns and so on.
        faults: one line per failure.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@dataclass
class _Way:
    """A variant of a command, after an uninterrupted run.

    Attributes:
        writer: the command.
        whole: files after an uninterrupted run.
        seconds: shortest duration so far; the first runs are slower, because they load packages.
        old: folder with a copy of the outputs of an earlier run.
    """

    writer: Writer
    whole: Tree
    seconds: float
    old: Path


def kill_command(place: Place, writer: Writer, kills: int, seed: int = 1) -> Kills:
    """Kill a command `kills` times in total, distributed over its variants."""
    result = Kills()
    variants = list(writer.ways())
    place.empty(writer)
    words = variants[0].arguments(str(place.inputs))
    place.run(words, warm=True)
    for number, variant in enumerate(variants):
        rng = random.Random(f"{seed} {variant.words}")
        share = kills // len(variants) + (number < kills % len(variants))
        if share:
            _kill_way(place, variant, share, rng, result)
    return result


def _kill_way(place: Place, writer: Writer, kills: int, rng: random.Random, found: Kills) -> None:
    variant = _whole(place, writer, found)
    if variant is None:
        return
    # More trials are made if most runs end before they are killed.
    for _ in range(4 * kills):
        before = found.counts["killed"]
        if kills > 0:
            _trial(place, variant, min(kills, _IN_A_ROW), rng, found)
            kills -= found.counts["killed"] - before


def _whole(place: Place, writer: Writer, found: Kills) -> _Way | None:
    """Run a command twice to its end and check that both runs write the same files."""
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
    """Kill a command one or more times in a row, check the outputs, run it to its end, and check again."""
    writer, kills = way.writer, rng.randint(1, most)
    place.empty(writer)
    has_old = rng.random() < 0.5
    if has_old:
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
        after = place.tree()
        for name in writer.outputs:
            state = _state(name, place, before, after, way)
            found.counts[f"outputs {state}"] += 1
            if state == "torn":
                found.faults.append(f"{writer.words}: killed at {moment:.3f} s: {name} is neither old nor new")
    found.counts["left something"] += any(_is_stray(name, writer) for name in after)
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
    """Return the command line; training resumes only if there is a checkpoint, and otherwise overwrites the model."""
    more = ["--resume"] if resume else []
    if writer.overwrite and not (resume and (place.work / writer.outputs[0] / _CHECKPOINT).is_file()):
        more = [writer.overwrite]
    return writer.arguments(str(place.inputs), *more)


def _put_old(place: Place, way: _Way) -> None:
    """Create old outputs: files of a few bytes, and folders copied from an earlier run."""
    for name in way.writer.outputs:
        path = place.work / name
        if (way.old / name).is_dir():
            shutil.copytree(way.old / name, path)
            if (path / _CONFIG).is_file():
                # This file marks the old model.
                (path / "old").touch()
        elif name not in _READ_FIRST:
            path.write_bytes(_OLD)


def _state(name: str, place: Place, before: Tree, now: Tree, way: _Way) -> str:
    """Return the state of an output: `absent`, `old`, `new`, `torn` or `kept`."""
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
    """Return the state of the folder of a model or binary table."""
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
    """Return the entries of a folder, by paths relative to it."""
    return {name.removeprefix(f"{folder}/"): digest for name, digest in tree.items() if name.startswith(f"{folder}/")}


def _is_stray(name: str, writer: Writer) -> bool:
    known_names = (*writer.outputs, *writer.kept, *(copy for _, copy in writer.copies))
    return not any(name == known or name.startswith(f"{known}/") for known in known_names)


def _differing(one: Tree, other: Tree) -> set[str]:
    """Return the names of files that differ, except the marker of an old model."""
    return {name for name in one.keys() | other.keys()
            if one.get(name) != other.get(name) and not name.endswith("/old")}  # fmt: skip


def kill_all(place: Place, writers: tuple[Writer, ...], kills: int, slow_kills: int, seed: int) -> dict[str, Kills]:
    """Kill each command `kills` times over all its inputs, slow ones `slow_kills` times; return results by command."""
    collected: dict[str, Kills] = {}
    inputs = Counter(writer.command for writer in writers)
    for writer in writers:
        began = time.monotonic()
        # Rounded up, so that each command is killed at least as often as requested.
        share = -(-(slow_kills if writer.slow else kills) // inputs[writer.command])
        result = kill_command(place, writer, share, seed)
        total = collected.setdefault(writer.command, Kills())
        total.counts.update(result.counts)
        total.faults += result.faults
        print(
            f"{time.monotonic() - began:6.1f} s  {writer.command}: {dict(result.counts)}", file=sys.stderr, flush=True
        )
        for fault in result.faults:
            print(f"  FAULT {fault}", file=sys.stderr, flush=True)
    return collected
