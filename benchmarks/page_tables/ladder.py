"""Tables for the documentation: cumulative ablations (ladders)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from page_tables.kept_results import find, mark, markdown


def _cell(row: Mapping[str, Any], name: str) -> str:
    """Return a gain with its interval, marked if it is significant."""
    if row.get(name) is None:
        return ""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:+.2f} ({low:+.2f} to {high:+.2f}){mark(row[f'{name}_p'], low, high)}"


def ladder() -> str:
    """Return a table of BLEU and gain of each step of each pair on all its test sets."""
    return _ladders("ladders/pairs")


def both_ways() -> str:
    """Return the same for pairs whose development and test set were exchanged, on both sets."""
    return _ladders("ladders/turned")


def _ladders(place: str) -> str:
    rows = []
    for pair_results in find(place).values():
        for step, row in pair_results["steps"].items():
            rows.append([
                pair_results["name"], step, f"{row['entries']:,}", f"{row['bleu']:.2f}", _cell(row, "gain"),
                _cell(row, "total"),
            ])  # fmt: skip
    return markdown("pair | step | entries | BLEU | gain over previous step | gain over `table`", rows, right=2)


def means() -> str:
    """Return a table of mean gains over the pairs."""
    mean = find("ladders/mean")
    return markdown("step | pairs | mean gain over `table`", [
        [step, str(figures["pairs"]), f"{figures['total']:+.2f}"] for step, figures in mean.items()
    ])  # fmt: skip


TABLES = {"ladder": ladder, "ladder both ways": both_ways, "means of the ladder": means}
