"""Tables for the documentation: results of killing, starving and fuzzing the commands."""

from __future__ import annotations

from typing import Any

from measuring import ROOT

from page_tables.kept_results import find, markdown


def _sum(counts: dict[str, int], *names: str) -> int:
    return sum(counts.get(name, 0) for name in names)


def kills() -> str:
    """Return a table of the kills of each command and the state of its outputs afterwards."""
    rows = []
    for name, counts in sorted(find("faults/kill/commands").items()):
        outputs = [_sum(counts, f"outputs {state}") for state in ("old", "absent", "new", "torn")]
        reruns = _sum(counts, "reruns", "reruns with --resume")
        rows.append([f"`{name}`", *(f"{count:,}" for count in (counts.get("killed", 0), *outputs, reruns))])
    head = "command | killed in mid-run | outputs unchanged | absent | complete | anything else | identical reruns"
    return markdown(head, rows)


def hostile() -> str:
    """Return a table of inputs designed to exhaust memory, and their outcome."""
    rows = []
    for name, run in find("faults/hostile/commands").items():
        description, _, command = name.partition(": ")
        rows.append([description, f"`{command.split()[0]}`", "completed" if run["code"] == 0 else "rejected",
                     f"{run['peak_mb']:,} MB", f"{run['seconds']:.0f} s"])  # fmt: skip
    return markdown("input | command | outcome | peak memory | time", rows, right=3)


def _left(results: dict[str, Any]) -> int:
    """Count unfixed bugs of a parser; inputs of fixed bugs are part of the tests."""
    return len(results["deaths"]) + sum(not (_FOUND / name).exists() for name in results["faults"].values())


def _fuzz_left() -> int:
    parts = [part for part in find("faults/fuzz").values() if isinstance(part, dict)]
    return sum(_left(target) for part in parts for target in part["targets"].values())


def _row(name: str, results: dict[str, Any]) -> list[str]:
    faults = len(results["faults"]) + len(results["deaths"])
    numbers = results["inputs"], results["refused"], results["inputs a second"], faults, _left(results)
    return [name, *(f"{number:,}" for number in numbers)]


def fuzzing() -> str:
    """Return a table of inputs, rejections and bugs of each parser."""
    rows = [_row(name, target) for name, target in sorted(find("faults/fuzz/plain/targets").items())]
    return markdown("parser | inputs | rejected | inputs per second | bugs found | unfixed", rows)


_FOUND = ROOT / "tests" / "fuzz" / "found"
_PARTS = ("kill", "hostile")
TABLES = {"kills": kills, "hostile inputs": hostile, "fuzzing": fuzzing}
VALUES = {
    "fuzzed inputs": lambda: f"{find('faults/fuzz/plain/inputs') // 100_000 / 10:.1f}",
    "faults left": lambda: f"{sum(len(find(f'faults/{part}/faults')) for part in _PARTS) + _fuzz_left()}",
}  # fmt: skip
