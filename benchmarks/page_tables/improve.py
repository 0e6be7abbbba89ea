"""Tables for the documentation: gain of each step of `phrasetool improve`; see `benchmarks/improve.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from page_tables.kept_results import find, markdown

_NAMES = {
    "given model": "as Moses trained it", "+ entries": "+ entries for unknown words",
    "+ columns": "+ probabilities, smoothed and by forced decoding", "+ pruning": "pruned",
    "+ reranking": "+ a neural reranker",
}  # fmt: skip


def _steps(run: str) -> Mapping[str, dict[str, Any]]:
    return find(f"improve/{run}/steps")


def _interval(cell: Mapping[str, float], low: str, high: str) -> str:
    return f"{cell['gain']:+.2f} ({cell[low]:+.2f} to {cell[high]:+.2f})"


def benefits() -> str:
    """Return the README's table: entries, BLEU, gain and minutes of each step."""
    rows = []
    for step, cell in _steps("a tenth").items():
        gain = "" if cell["gain"] is None else _interval(cell, "gain_low", "gain_high")
        name = _NAMES[step] + (" to a tenth" if step == "+ pruning" else "")
        minutes = "" if cell["gain"] is None else f"{cell['seconds'] / 60:.0f}"
        rows.append([name, f"{cell['entries']:,}", f"{cell['bleu']:.2f}", gain, minutes])
    return markdown("Multi30k German-English | entries | BLEU | gain (95 % interval) | minutes", rows)


def by_test() -> str:
    """Return a table of gains on each test set, for a tenth of the entries and for the size chosen on dev."""
    rows = []
    for run in ("a tenth", "non-inferior on dev"):
        for step, cell in _steps(run).items():
            if cell["gain"] is None or (run != "a tenth" and step not in ("+ pruning", "+ reranking")):
                continue
            tests = [_interval(test_gain, "low", "high") for test_gain in cell["tests"].values()]
            rows.append([run, _NAMES[step], f"{cell['entries']:,}", *tests])
    names = [name.replace("_", "\\_") for name in _steps("a tenth")["given model"]["tests"]]
    return markdown(" | ".join(["size", "step", "entries", *names]), rows, 2)


def chosen_share() -> str:
    """Return the share of entries kept when the size is chosen on the development set, in per cent."""
    steps = _steps("non-inferior on dev")
    return f"{100 * steps['+ pruning']['entries'] / steps['+ columns']['entries']:.1f}"


TABLES: dict[str, Callable[[], str]] = {"improve: benefits": benefits, "improve: test sets": by_test}
VALUES: dict[str, Callable[[], str]] = {"improve: chosen share, %": chosen_share}
