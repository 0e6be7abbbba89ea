"""Access to the JSON files of benchmarks/results/ for the documentation, by paths of names.

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
    """Return the contents of the JSON file of a benchmark."""
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return results


def find(path: str) -> Any:
    """Return the value at a path, as described in the module docstring.

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
            existing = ", ".join(map(repr, value)) if isinstance(value, Mapping) else repr(value)
            raise KeyError(f"{path}: no {name!r} in {existing}")
    return value


def mark(p: float, low: float, high: float) -> str:
    """Return one star for p < 0.05 and two for p < 0.01, but none if the 95 % interval contains 0."""
    if low <= 0 <= high:
        return ""
    return "\\*\\*" if p < 0.01 else "\\*" if p < 0.05 else ""


def difference(comparison: Mapping[str, Any]) -> str:
    """Format a result of `neural_columns.compared`: the difference, its interval and stars."""
    low, high = comparison["interval"]
    return f"{comparison['difference']:+.2f} ({low:+.2f} to {high:+.2f}){mark(comparison['p'], low, high)}"


def markdown(head: str, rows: list[list[str]], right: int = 1) -> str:
    """Return a Markdown table.

    Args:
        head: header line, with `|` between the names of columns.
        rows: cells of each row.
        right: index of the first right-aligned column.
    """
    columns = [name.strip() for name in re.split(r"(?<!\\)\|", head)]
    rule = ["---" if column < right else "---:" for column in range(len(columns))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (columns, rule, *rows))
