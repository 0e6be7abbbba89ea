"""Kill, starve and fuzz every command; print the number of trials and every failure.

    python benchmarks/faults.py                          kill, limits, hostile and fuzz; hours
    python benchmarks/faults.py kill --kills 200 --only prune,annotate
    python benchmarks/faults.py limits --amounts 2
    python benchmarks/faults.py fuzz --seconds 60 --seed 2 --add

* kill: every command that writes is killed (SIGKILL) at random moments of its run, on one and two threads, with plain
  and compressed outputs, with and without --resume.  Its outputs must then be unchanged or complete, and a rerun must
  produce the bytes of an uninterrupted run and leave no other file.
* limits: disk space, memory, file descriptors, readers or standard streams are missing.  The output must be correct, or
  the error a single line.
* hostile: decompression bombs, groups of ten million entries, endless lines, links and unusual names.  The output must
  be correct, or the error a single line, in bounded memory.
* fuzz: every reader of files gets damaged ones.  It must raise a phrasetool error or return a result, without hanging,
  crashing or losing lines.  A second, shorter run has numba's bounds checks.

Each part that is run replaces its figures in results/faults.json; with --add, kills and fuzzing of another seed are
added to the stored ones.  The seed fixes moments and inputs, but not the timing of the machine.  The exit status is 1
after any failure; failing inputs are kept in work/fuzz.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measuring import ROOT, WORK, machine

sys.path.insert(1, str(ROOT))
from tests.breaking.fuzzing import fuzz_all, target_names
from tests.breaking.hostile import run_hostile
from tests.breaking.killing import kill_all
from tests.breaking.limits import LACKS, Lacked, build_shim, starve
from tests.breaking.places import Place
from tests.breaking.totals import added_inputs, added_kills, check_seed, of_commands, of_targets
from tests.breaking.writers import WRITERS, Writer

PARTS = ("kill", "limits", "hostile", "fuzz")
_RESULT = ROOT / "benchmarks" / "results" / "faults.json"


def wanted_writers(only: str | None) -> tuple[Writer, ...]:
    """Return the requested commands, by default all."""
    names = only.split(",") if only else []
    return tuple(
        writer for writer in WRITERS if not names or writer.command in names or writer.words.split()[0] in names
    )


def wanted_targets(only: str | None) -> list[str]:
    """Return the requested fuzzing targets, by default all."""
    return [name for name in target_names() if not only or name in only.split(",")]


def killed(place: Place, options: argparse.Namespace) -> dict[str, Any]:
    """Return figures of kills: of all commands together and of each."""
    results = kill_all(place, wanted_writers(options.only), options.kills, options.slow_kills, options.seed)
    commands = {
        name: {**dict(sorted(kills.counts.items())), "seeds": [options.seed]} for name, kills in results.items()
    }
    return of_commands(commands, [fault for kills in results.values() for fault in kills.faults])


def lacking(place: Place, options: argparse.Namespace) -> dict[str, Any]:
    """Return figures of runs with missing resources."""
    shim = build_shim(place)
    lacks = tuple(lack for lack in LACKS if shim or lack.name != "EIO")
    total = Lacked()
    commands: dict[str, int] = {}
    for writer in wanted_writers(options.only):
        outcome = starve(place, writer, lacks, options.amounts, options.seed)
        commands[writer.command] = commands.get(writer.command, 0) + sum(outcome.counts[lack.name] for lack in lacks)
        total.counts.update(outcome.counts)
        total.faults += outcome.faults
        print(
            f"{writer.command}: {dict(outcome.counts)}", *outcome.faults, sep="\n  FAULT ", file=sys.stderr, flush=True
        )
    return {"commands": commands, "all": dict(sorted(total.counts.items())), "faults": total.faults}


def hostile(place: Place, options: argparse.Namespace) -> dict[str, Any]:
    """Return figures of hostile inputs."""
    return run_hostile(place, options.share)


_WORK = {"kill": killed, "limits": lacking, "hostile": hostile}
_ADDED = {"kill": added_kills, "fuzz": added_inputs}


def fuzzed(options: argparse.Namespace) -> dict[str, Any]:
    """Return figures of fuzzing, with and without numba's bounds checks."""
    names = wanted_targets(options.only)
    results: dict[str, Any] = {}
    for title, seconds, bounds in (("plain", options.seconds, False), ("bounds checked", options.bounds_seconds, True)):
        if not seconds:
            continue
        outcome = fuzz_all(names, seconds, options.seed, bounds, WORK / "fuzz")
        results[title] = of_targets(
            {name: {**target_outcome.as_dict(), "seeds": [options.seed]} for name, target_outcome in outcome.items()}
        )
    return {**results, "faults": [fault for part in results.values() for fault in part["faults"]]}


def results() -> dict[str, Any]:
    """Return the stored figures."""
    stored: dict[str, Any] = json.loads(_RESULT.read_text()) if _RESULT.exists() else {"benchmark": "faults"}
    return stored


def keep(figures: Mapping[str, Any], add: bool) -> None:
    """Store the figures of the parts that were run, and print all results."""
    stored = results()
    for part, part_figures in figures.items():
        if add:
            spent = stored[part].get("seconds", 0) + part_figures["seconds"]
            stored[part] = {
                **_ADDED[part](stored[part], part_figures),
                "seconds": spent,
                "machine": part_figures["machine"],
            }
        else:
            stored[part] = part_figures
    text = json.dumps(stored, indent=2)
    print(text)
    _RESULT.write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=PARTS, help="one part; all if left out")
    parser.add_argument("--only", help="commands, or targets of fuzz, with commas between; kept with --add alone")
    parser.add_argument("--add", action="store_true", help="to what other seeds of kill or fuzz have found")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=200, help="of each command, over all its inputs and ways")
    parser.add_argument("--slow-kills", type=int, default=200, help="of those that take seconds")
    parser.add_argument("--amounts", type=int, default=3, help="of each thing that is lacking")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes of hostile inputs")
    parser.add_argument("--seconds", type=float, default=120, help="for each target of fuzz")
    parser.add_argument("--bounds-seconds", type=float, default=20, help="the same with numba's checks of bounds")
    parser.add_argument("--place", default=str(WORK / "faults"), help="the folder to work in")
    options = parser.parse_args()
    parts = [options.part] if options.part else list(PARTS)
    figures: dict[str, Any] = {}
    if options.add:
        if not set(parts) <= set(_ADDED):
            parser.error(f"--add is for one of {', '.join(_ADDED)}")
        chosen = [writer.command for writer in wanted_writers(options.only)], wanted_targets(options.only)
        check_seed(results(), parts[0], chosen[parts[0] == "fuzz"], options.seed)
    for part in parts:
        began = time.monotonic()
        if part == "fuzz":
            figures[part] = fuzzed(options)
        else:
            place = Place(Path(options.place).absolute())
            figures[part] = _WORK[part](place, options)
            place.close()
        figures[part] |= {"seconds": round(time.monotonic() - began), "machine": machine()}
    if options.only and not options.add:
        print(json.dumps(figures, indent=2))
    else:
        keep(figures, options.add)
    faults = [fault for part in parts for fault in figures[part]["faults"]]
    sys.exit(f"{len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
