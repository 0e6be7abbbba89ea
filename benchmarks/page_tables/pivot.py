"""Tables of what comes through a middle language; see result_tables.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from page_tables.kept_results import difference, find, markdown

_NAMES = {"de-cs": "German-Czech", "cs-de": "Czech-German", "zh-es": "Chinese-Spanish"}
_SIZES = (50, 30, 15, 10, 5)


def _pairs() -> dict[str, dict[str, Any]]:
    """Name of a pair -> its systems, those with figures; pairs in the order of their names here."""
    found = find("pivoting/pairs")
    return {name: found[pair]["systems"] for pair, name in _NAMES.items() if pair in found}


def systems() -> str:
    """BLEU of tables with more scores, tuned."""
    rows = []
    for pair, found in _pairs().items():
        names = [name for name in found if not name.startswith(("pruned-", "direct-"))]
        for name in sorted(names, key=lambda name: name != "plain"):
            figures = found[name]
            told = [difference(figures[to]) if to in figures else "" for to in ("to plain", "to control")]
            rows.append([pair, name, str(len(figures["BLEU"])), f"{np.mean(figures['BLEU']):.2f}", *told])
    return markdown("pair | scores | tuning seeds | BLEU | difference to plain | to control", rows, right=2)


def pruned() -> str:
    """BLEU of pruned tables, with the weights of the whole one."""
    rows = []
    for pair, found in _pairs().items():
        names = [name.removeprefix("pruned-").rpartition("-")[0] for name in found if name.startswith("pruned-")]
        for name in dict.fromkeys(names):
            method, _, by = name.rpartition("-")
            of = {"table": "", "legs": ", two halves", "model": ", of pairs"}[by]
            cells = [_pruned(found.get(f"pruned-{name}-{size}")) for size in _SIZES]
            rows.append([pair, f"`{method}`{of}", *cells])
    return markdown(f"pair | method | {' | '.join(f'{size} %' for size in _SIZES)}", rows, right=2)


def _pruned(figures: dict[str, Any] | None) -> str:
    """BLEU; with its difference to the best method without meaning where it is significant."""
    if figures is None:
        return ""
    told = figures.get("to counts")
    mark = f" ({difference(told)})" if told and told["p"] < 0.05 else ""
    return f"{np.mean(figures['BLEU']):.2f}{mark}"


def direct() -> str:
    """BLEU of tables of direct bitexts."""
    rows = []
    for pair, found in _pairs().items():
        for size in sorted(int(name.removeprefix("direct-")) for name in found if name.startswith("direct-")):
            figures = found[f"direct-{size}"]
            rows.append([pair, f"{size:,}", f"{np.mean(figures['BLEU']):.2f}", difference(figures["to plain"])])
    return markdown("pair | sentence pairs | BLEU | difference to the table through English", rows)


TABLES = {"systems through English": systems, "pruned tables through English": pruned, "direct bitexts": direct}
