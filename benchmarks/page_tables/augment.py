"""Tables of new entries for unknown words; see result_tables.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from page_tables.kept_results import difference, find, markdown


def _pairs() -> dict[str, Any]:
    pairs: dict[str, Any] = find("augmenting/pairs")
    return pairs


def new_entries() -> str:
    """BLEU of tables with new entries."""
    rows = []
    for pair, found in _pairs().items():
        for weights, systems in (("as they were", found["as it was"]), ("tuned, {} seeds", found["BLEU"])):
            for system, figures in systems.items():
                difference_text = difference(figures["to plain"]) if "to plain" in figures else ""
                of = weights.format(len(figures["BLEU"]))
                rows.append([pair, system, of, f"{np.mean(figures['BLEU']):.2f}", difference_text])
    return markdown("pair | entries | weights | BLEU | difference to plain", rows)


def rightness() -> str:
    """How many unknown tokens have entries that stand in the reference."""
    rows = []
    for pair, found in _pairs().items():
        entries = found["entries"]
        tokens = entries["tokens"]
        of_sources = [one["right"] for one in entries["sources"].values()]
        rights = [entries["right"], entries["best_right"], *entries["rules"].values(), *of_sources]
        share = f"{100 * tokens / entries['running tokens']:.1f}"
        rows.append([pair, f"{tokens:,}", share, *(f"{100 * right / tokens:.0f}" for right in rights)])
    first = next(iter(_pairs().values()))["entries"]
    names = [*first["rules"], *first["sources"]]
    return markdown(f"pair | unknown tokens | % of all | some | best | {' | '.join(names)}", rows)


TABLES = {"new entries": new_entries, "rightness of new entries": rightness}
