"""Tables of what comes through a middle language; see result_tables.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from page_tables.kept_results import difference, find, mark, markdown

_NAMES = {"de-cs": "German-Czech", "cs-de": "Czech-German", "zh-es": "Chinese-Spanish"}
# What similarities, or counts, a method looks at.
_BY = {"table": "", "min": " of `--counts min`", "legs": ", of the halves", "model": ", of the pairs"}
# Where the table got more entries, where a translator chose, and a table of what that was trained on.
_WORDS, _RERANKED, _TRANSLATED = "+words", "+rerank", "translated"


def _pairs() -> dict[str, dict[str, Any]]:
    """Name of a pair -> its systems, those with figures; pairs in the order of their names here."""
    found = find("pivoting/pairs")
    return {name: found[pair]["systems"] for pair, name in _NAMES.items() if pair in found}


def systems() -> str:
    """BLEU of tables with more scores, tuned."""
    others = ("pruned-", "untuned-", "direct-", "together-", _TRANSLATED)
    rows = []
    for pair, found in _pairs().items():
        names = [name for name in found if not (name.startswith(others) or name.endswith((_WORDS, _RERANKED)))]
        for name in sorted(names, key=lambda name: name != "plain"):
            figures = found[name]
            told = [difference(figures[to]) if to in figures else "" for to in ("to plain", "to control")]
            rows.append([pair, name, str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *told])
    return markdown("pair | scores | tuning seeds | BLEU | difference to plain | to control", rows, right=2)


def everything() -> str:
    """BLEU with more entries, and reranked; and of a table whose bitext was translated from English."""
    rows = []
    for pair, found in _pairs().items():
        names = [name for name in found if name.endswith((_WORDS, _RERANKED))]
        names.sort(key=lambda name: (_RERANKED in name, _WORDS in name, not name.startswith("plain"), name))
        for name in ("plain", *names, *([_TRANSLATED] if _TRANSLATED in found else [])):
            figures = found[name]
            shown = name.replace(_WORDS, " + words").replace(_RERANKED, " + rerank")
            told = [difference(figures[to]) if to in figures else "" for to in ("to plain", "to control")]
            rows.append([pair, shown, str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *told])
    return markdown("pair | system | tuning seeds | BLEU | difference to plain | to control alike", rows, right=2)


def pruned() -> str:
    """BLEU of pruned tables, with the tuned weights of the whole one."""
    return _pruned("pruned", "plain", (50, 30, 15, 10, 5))


def untuned() -> str:
    """The same with default weights."""
    return _pruned("untuned", "untuned-plain", (10, 5))


def _pruned(weights: str, whole: str, sizes: Sequence[int]) -> str:
    """Methods without meaning first; BLEU, marked where it differs from the best of these."""
    rows = []
    for pair, found in _pairs().items():
        # The first seed's weights prune.
        rows.append([pair, "the whole table", f"{found[whole]['BLEU'][0]:.2f}", *[""] * len(sizes)])
        names = [
            name.removeprefix(f"{weights}-").rpartition("-")[0] for name in found if name.startswith(f"{weights}-")
        ]
        for name in sorted(set(names) - {""}, key=_order):
            method, _, by = name.rpartition("-")
            if by in _BY:
                cells = [_marked(found.get(f"{weights}-{name}-{size}")) for size in sizes]
                rows.append([pair, f"`{method}`{_BY[by]}", "", *cells])
    return markdown(f"pair | method | all | {' | '.join(f'{size} %' for size in sizes)}", rows, right=2)


def _order(name: str) -> tuple[bool, str, bool, str]:
    """Methods without meaning first, by their names, with the usual counts before others."""
    method, _, by = name.rpartition("-")
    return "semantic" in method, method, by == "min", by


def _marked(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return ""
    stars = mark(figures["to counts"]["p"]) if "to counts" in figures else ""
    return f"{np.mean(figures['BLEU']):.2f}{stars}"


def _sizes(found: dict[str, Any], kind: str) -> list[int]:
    """Of the direct bitexts of a kind of systems, ascending."""
    return sorted(int(name.removeprefix(kind)) for name in found if name.startswith(kind))


def together() -> str:
    """BLEU of a direct table and one through English in one ini."""
    rows = []
    for pair, found in _pairs().items():
        for size in _sizes(found, "together-"):
            figures = found[f"together-{size}"]
            told = [difference(figures[to]) for to in ("to direct", "to plain")]
            rows.append([pair, f"{size:,}", str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *told])
    return markdown(
        "pair | sentence pairs | tuning seeds | BLEU of both tables | to the direct one | to the one through English",
        rows, right=2,
    )  # fmt: skip


def direct() -> str:
    """BLEU of tables of direct bitexts."""
    rows = []
    for pair, found in _pairs().items():
        for size in _sizes(found, "direct-"):
            figures = found[f"direct-{size}"]
            rows.append([pair, f"{size:,}", f"{np.mean(figures['BLEU']):.2f}", difference(figures["to plain"])])
    return markdown("pair | sentence pairs | BLEU | difference to the table through English", rows)


TABLES = {
    "systems through English": systems,
    "everything through English": everything,
    "pruned tables through English": pruned,
    "direct bitexts": direct,
    "pruned with default weights": untuned,
    "both tables": together,
}
