"""Figures of several runs with other seeds, put together: millions of inputs need not be of one night."""

from __future__ import annotations

from collections import Counter
from typing import Any

# What the runs were seeded with, before they said so.
_FIRST = (1,)


def check_seed(there: dict[str, Any], part: str, names: list[str], seed: int) -> None:
    """Refuse to count the same moments or inputs twice.

    Args:
        there: all results.
        part: kill or fuzz.
        names: of commands or targets.
        seed: of the run to come.

    Raises:
        SystemExit: one of them was run with that seed.
    """
    for found in _entries(there, part):
        for name in names:
            if name in found and seed in found[name].get("seeds", _FIRST):
                raise SystemExit(f"seed {seed} of {name} is counted already; name another with --seed")


def _entries(there: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """By name, of one part."""
    result = there.get(part, {})
    if part == "kill":
        return [result.get("commands", {})]
    return [one["targets"] for one in result.values() if isinstance(one, dict)]


def of_commands(commands: dict[str, Any], faults: list[str]) -> dict[str, Any]:
    """Kills of each command and of all together."""
    total: Counter[str] = Counter()
    for counts in commands.values():
        total.update({what: count for what, count in counts.items() if what != "seeds"})
    return {"commands": commands, "all": dict(sorted(total.items())), "faults": faults}


def of_targets(targets: dict[str, Any]) -> dict[str, Any]:
    """Inputs of each target and of all together."""
    sums = {name: sum(one[name] for one in targets.values()) for name in ("inputs", "refused")}
    faults = [f"{name}: {fault}" for name, one in targets.items() for fault in [*one["faults"], *one["deaths"]]]
    return {"targets": targets, **sums, "faults": faults}


def added_kills(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both together, command by command; faults of commands that were run again count as mended, if not found again."""
    commands = {name: dict(counts) for name, counts in old.get("commands", {}).items()}
    for name, counts in new["commands"].items():
        commands[name] = _sum(commands.get(name, {"seeds": []}), counts)
    again = tuple(f"{name} " for name in new["commands"])
    before = old.get("faults", [])
    left = [fault for fault in before if not fault.startswith(again)]
    mended = [*old.get("mended", ()), *(fault for fault in before if fault.startswith(again))]
    return {**of_commands(commands, [*left, *new["faults"]]), "mended": mended}


def added_inputs(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both together, target by target, with numba's checks of bounds and without."""
    collected: dict[str, Any] = {}
    for title in (name for name in ("plain", "bounds checked") if name in old or name in new):
        targets = {name: dict(one) for name, one in old.get(title, {}).get("targets", {}).items()}
        for name, one in new.get(title, {}).get("targets", {}).items():
            before = targets.get(name, {"seeds": []})
            both = _sum({**before, "peak": 0, "inputs a second": 0}, {**one, "peak": 0, "inputs a second": 0})
            both["peak"] = max(before.get("peak", 0), one["peak"])
            both["seconds"] = round(both["seconds"], 1)
            both["inputs a second"] = round(both["inputs"] / both["seconds"]) if both["seconds"] else 0
            targets[name] = both
        collected[title] = of_targets(targets)
    return {**collected, "faults": [fault for part in collected.values() for fault in part["faults"]]}


def _sum(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Numbers are added, lists and dictionaries joined."""
    both = {**old, "seeds": [*old.get("seeds", _FIRST), *new["seeds"]]}
    for name, value in new.items():
        if name != "seeds":
            there = both.get(name, type(value)())
            both[name] = {**there, **value} if isinstance(value, dict) else there + value
    return both
