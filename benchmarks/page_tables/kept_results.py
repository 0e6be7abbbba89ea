"""What benchmarks/results/ holds, for the documents: JSON files, in which values are found by a path of names.

table_speed/seconds/annotate/median                  a value of benchmarks/results/table_speed.json
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from measuring import ROOT

RESULTS = ROOT / "benchmarks" / "results"


@cache
def results(name: str) -> dict[str, Any]:
    """The JSON file that a benchmark wrote."""
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return results


def find(path: str) -> Any:
    """Return the value at a path; see the module.

    Raises:
        KeyError: the path does not exist; the message lists the existing names.
    """
    first, *names = path.split("/")
    if not (RESULTS / f"{first}.json").is_file():
        raise KeyError(f"{path}: no benchmarks/results/{first}.json")
    value: Any = results(first)
    for name in names:
        if isinstance(value, list):
            value = value[int(name)]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            there = ", ".join(map(repr, value)) if isinstance(value, Mapping) else repr(value)
            raise KeyError(f"{path}: no {name!r} in {there}")
    return value


def mark(p: float, low: float, high: float) -> str:
    """One star below 0.05, two below 0.01; none where the 95 % interval contains 0."""
    if low <= 0 <= high:
        return ""
    return "\\*\\*" if p < 0.01 else "\\*" if p < 0.05 else ""


def difference(found: Mapping[str, Any]) -> str:
    """What `neural_columns.compared` found: the difference, its interval, stars."""
    low, high = found["interval"]
    return f"{found['difference']:+.2f} ({low:+.2f} to {high:+.2f}){mark(found['p'], low, high)}"


def markdown(head: str, rows: list[list[str]], right: int = 1) -> str:
    """A table in Markdown.

    Args:
        head: its first line, with `|` between the names of columns.
        rows: of cells.
        right: the columns from here on are numbers.
    """
    columns = [name.strip() for name in re.split(r"(?<!\\)\|", head)]
    rule = ["---" if place < right else "---:" for place in range(len(columns))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (columns, rule, *rows))
