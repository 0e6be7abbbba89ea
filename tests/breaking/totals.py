"""Totals of several runs with different seeds, so that millions of inputs can be spread over several nights."""

from __future__ import annotations

from collections import Counter
from typing import Any

# Seeds of results that were stored before they recorded seeds.
_FIRST = (1,)


def check_seed(there: dict[str, Any], part: str, names: list[str], seed: int) -> None:
    """Refuse to count the same kill times or inputs twice.

    Args:
        there: all results.
        part: kill or fuzz.
        names: names of commands or targets.
        seed: seed of the next run.

    Raises:
        SystemExit: one of the commands or targets was already run with that seed.
    """
    for entries in _entries(there, part):
        for name in names:
            if name in entries and seed in entries[name].get("seeds", _FIRST):
                raise SystemExit(f"seed {seed} of {name} is counted already; name another with --seed")


def _entries(there: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """Return dictionaries of the results of a part, by name of command or target."""
    result = there.get(part, {})
    if part == "kill":
        return [result.get("commands", {})]
    return [figures["targets"] for figures in result.values() if isinstance(figures, dict)]


def of_commands(commands: dict[str, Any], faults: list[str]) -> dict[str, Any]:
    """Return the counts of each command and their totals."""
    total: Counter[str] = Counter()
    for counts in commands.values():
        total.update({kind: count for kind, count in counts.items() if kind != "seeds"})
    return {"commands": commands, "all": dict(sorted(total.items())), "faults": faults}


def of_targets(targets: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of each target and the total numbers of inputs."""
    sums = {name: sum(figures[name] for figures in targets.values()) for name in ("inputs", "refused")}
    faults = [
        f"{name}: {fault}" for name, figures in targets.items() for fault in [*figures["faults"], *figures["deaths"]]
    ]
    return {"targets": targets, **sums, "faults": faults}


def added_kills(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Add results by command; earlier faults of commands that were run again move to `mended`."""
    commands = {name: dict(counts) for name, counts in old.get("commands", {}).items()}
    for name, counts in new["commands"].items():
        commands[name] = _sum(commands.get(name, {"seeds": []}), counts)
    rerun_prefixes = tuple(f"{name} " for name in new["commands"])
    old_faults = old.get("faults", [])
    other_faults = [fault for fault in old_faults if not fault.startswith(rerun_prefixes)]
    mended = [*old.get("mended", ()), *(fault for fault in old_faults if fault.startswith(rerun_prefixes))]
    return {**of_commands(commands, [*other_faults, *new["faults"]]), "mended": mended}


def added_inputs(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Add results by target, separately with and without numba's bounds checks."""
    collected: dict[str, Any] = {}
    for title in (name for name in ("plain", "bounds checked") if name in old or name in new):
        targets = {name: dict(figures) for name, figures in old.get(title, {}).get("targets", {}).items()}
        for name, figures in new.get(title, {}).get("targets", {}).items():
            earlier = targets.get(name, {"seeds": []})
            total = _sum({**earlier, "peak": 0, "inputs a second": 0}, {**figures, "peak": 0, "inputs a second": 0})
            total["peak"] = max(earlier.get("peak", 0), figures["peak"])
            total["seconds"] = round(total["seconds"], 1)
            total["inputs a second"] = round(total["inputs"] / total["seconds"]) if total["seconds"] else 0
            targets[name] = total
        collected[title] = of_targets(targets)
    return {**collected, "faults": [fault for part in collected.values() for fault in part["faults"]]}


def _sum(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Add numbers and join lists and dictionaries."""
    total = {**old, "seeds": [*old.get("seeds", _FIRST), *new["seeds"]]}
    for name, value in new.items():
        if name != "seeds":
            old_value = total.get(name, type(value)())
            total[name] = {**old_value, **value} if isinstance(value, dict) else old_value + value
    return total
