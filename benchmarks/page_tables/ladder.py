"""Tables of the ladder; see result_tables.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from page_tables.kept_results import find, mark, markdown


def _cell(row: Mapping[str, Any], name: str) -> str:
    """A gain with its interval, marked where it is significant."""
    if row.get(name) is None:
        return ""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:+.2f} ({low:+.2f} to {high:+.2f}){mark(row[f'{name}_p'], low, high)}"


def ladder() -> str:
    """BLEU of each step of each pair on all its test sets, and what it gains."""
    return _ladders("ladders/pairs")


def both_ways() -> str:
    """The same of pairs whose development and test set were exchanged, on both."""
    return _ladders("ladders/turned")


def _ladders(place: str) -> str:
    rows = []
    for found in find(place).values():
        for step, row in found["steps"].items():
            rows.append([
                found["name"], step, f"{row['entries']:,}", f"{row['bleu']:.2f}", _cell(row, "gain"),
                _cell(row, "total"),
            ])  # fmt: skip
    return markdown("pair | step | entries | BLEU | gain over previous step | gain over `table`", rows, right=2)


def means() -> str:
    """Mean gain over the pairs."""
    mean = find("ladders/mean")
    return markdown("step | pairs | mean gain over `table`", [
        [step, str(of["pairs"]), f"{of['total']:+.2f}"] for step, of in mean.items()
    ])  # fmt: skip


TABLES = {"ladder": ladder, "ladder both ways": both_ways, "means of the ladder": means}
