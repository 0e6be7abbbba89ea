"""Tables for the documents: what dirt in a bitext costs, and what filtering and pruning bring back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from page_tables.kept_results import find, markdown

_TITLES = {"tatoeba-zh-en": "Tatoeba Chinese-English", "multi30k-de-en": "Multi30k German-English"}
_BITEXTS = ("dirty", "filtered", "filtered twice", "filtered loosely", "clean half", "clean")
_SIZES = (50, 30, 10, 5)


def _pairs() -> list[tuple[str, Mapping[str, Any]]]:
    found = find("dirty_bitexts/pairs")
    return [(title, found[name]) for name, title in _TITLES.items() if name in found]


def filters() -> str:
    """How right the filter is about single pairs, at the threshold that was best on the development set."""
    rows = []
    for title, found in _pairs():
        for kind, figures in found["filter"].items():
            shares = ("precision", "recall", "kept of misaligned", "kept of contained")
            cells = [f"{100 * figures[name]:.1f}" if name in figures else "" for name in shares]
            rows.append([f"{title}, {kind}", *cells])
    head = "bitext | clean of what stays, % | clean that stay, % | misaligned that stay, % | cut or joined that stay, %"
    return markdown(head, rows)


def bitexts() -> str:
    """BLEU with the whole table of each bitext."""
    rows = []
    for title, found in _pairs():
        for kind in _BITEXTS:
            if kind in found:
                full = found[kind]["full"]
                rows.append([
                    f"{title}, {kind}", f"{full['BLEU']:.2f}", f"{full['recovered']:.0%}",
                    *(_difference(full[f"to the {other} table"]) for other in ("dirty", "clean")),
                ])  # fmt: skip
    return markdown("bitext | BLEU | recovered | to the dirty one | to the clean one", rows)


def _difference(compared: Mapping[str, float]) -> str:
    return f"{compared['difference']:+.2f} (p = {compared['p']:.3f})" if compared["difference"] else ""


def pruned() -> str:
    """BLEU of the pruned tables of the dirty and of the filtered bitexts."""
    rows = []
    for title, found in _pairs():
        for kind in _BITEXTS:
            systems = found.get(kind, {})
            methods = dict.fromkeys(system.rpartition(" ")[0].rpartition(" ")[0] for system in sorted(systems))
            for method in methods:
                cells = [systems.get(f"{method} {size} %") for size in _SIZES]
                if method and all(cells):
                    rows.append([f"{title}, {kind}", method, *map(_cell, cells)])
    return markdown("bitext | method | " + " | ".join(f"{size} %" for size in _SIZES), rows, right=2)


def _cell(figures: Any) -> str:
    """BLEU, marked where it is above the whole table of the dirty bitext at p < 0.05."""
    compared = figures["to the dirty table"]
    above = compared["difference"] > 0 and compared["p"] < 0.05
    return f"**{figures['BLEU']:.2f}**" if above else f"{figures['BLEU']:.2f}"


TABLES = {"filters of dirty bitexts": filters, "dirty bitexts": bitexts, "pruned tables of dirty bitexts": pruned}
