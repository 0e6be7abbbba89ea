"""What benchmarks/results/ holds, for the documents: JSON files and tables of experiments, found by a path of names.

    table_speed/seconds/annotate/median                  a value of benchmarks/results/table_speed.json
    pruning/multi30k-de-en/usage/0.1/bleu                a table pruned to a tenth, one-word sources protected
    pruning/multi30k-de-en/semantic/>= 0.7, all/share    by a threshold, the best of all sources protected
    tuned/multi30k-cs-en/semantic/difference             a table with columns, tuned again; `full` is that without
    tuned/multi30k-cs-en/semantic at 0.1/difference      the same of a pruned table
    contests/multi30k-de-en/0.1/p                        the best method with meaning against the best without

Figures of experiments are those of all test sets together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pandas as pd
from measuring import ROOT

RESULTS = ROOT / "benchmarks" / "results"
_ALL = "ALL"


@cache
def results(name: str) -> dict[str, Any]:
    """The JSON file that a benchmark wrote."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found


@cache
def facts(name: str) -> dict[str, Any]:
    """How an experiment came about."""
    found: dict[str, Any] = json.loads((RESULTS / name / "experiment.json").read_text("utf-8"))
    return found


@cache
def pruning(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Method -> rule -> the row of a pruned table; `full` -> `full` for the table as it is."""
    frame = pd.read_parquet(RESULTS / name / "pruning.parquet")
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for row in frame[frame.text == _ALL].to_dict("records"):
        if row["rule"] == "full":
            rule = "full"
        elif row["rule"] == "threshold":
            rule = f">= {row['wanted']:g}, {row['protect']}"
        else:
            rule = f"{row['wanted']:g}" if row["protect"] == "words" else f"{row['wanted']:g}, {row['protect']}"
        rows.setdefault(row["method"], {})[rule] = row
    return rows


@cache
def tuned(name: str) -> dict[str, dict[str, Any]]:
    """What was appended, ` at SIZE` for a pruned table -> the row; `full` for the table as it is."""
    frame = pd.read_parquet(RESULTS / name / "annotation.parquet")
    found = {}
    for row in frame[frame.text == _ALL].to_dict("records"):
        size = re.search(r" (\d+) %$", row["system"])
        found[(row["columns"] or "full") + (f" at {int(size[1]) / 100:g}" if size else "")] = row
    return found


@cache
def contests(name: str) -> dict[str, dict[str, Any]]:
    """Size -> the row of the comparison, one-word sources protected."""
    frame = pd.read_parquet(RESULTS / name / "contests.parquet")
    return {f"{row['wanted']:g}": row for row in frame[frame.protect == "words"].to_dict("records")}


_FRAMES = {"pruning": pruning, "tuned": tuned, "contests": contests, "facts": facts}


def find(path: str) -> Any:
    """What stands at a path; see the module.

    Raises:
        KeyError: there is nothing; with the names that there are.
    """
    first, *names = path.split("/")
    if first in _FRAMES:
        value: Any = _FRAMES[first](names.pop(0))
    elif (RESULTS / f"{first}.json").is_file():
        value = results(first)
    else:
        raise KeyError(f"{path}: no benchmarks/results/{first}.json, and not one of {', '.join(_FRAMES)}")
    for name in names:
        if isinstance(value, list):
            value = value[int(name)]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            there = ", ".join(map(repr, value)) if isinstance(value, Mapping) else repr(value)
            raise KeyError(f"{path}: no {name!r} in {there}")
    return value


def mark(p: float) -> str:
    """One star below 0.05, two below 0.01."""
    return "\\*\\*" if p < 0.01 else "\\*" if p < 0.05 else ""


def difference(found: Mapping[str, Any]) -> str:
    """What `neural_columns.compared` found: the difference, its interval, stars."""
    low, high = found["interval"]
    return f"{found['difference']:+.2f} ({low:+.2f} to {high:+.2f}){mark(found['p'])}"


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
