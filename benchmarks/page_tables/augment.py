"""Tables of new entries for unknown words; see result_tables.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from page_tables.kept_results import difference, find, markdown


def _pairs() -> dict[str, Any]:
    pairs: dict[str, Any] = find("augmenting/pairs")
    return pairs


def new_entries() -> str:
    """Return a table of BLEU with new entries."""
    rows = []
    for pair, pair_results in _pairs().items():
        for weights, systems in (
            ("as they were", pair_results["as it was"]),
            ("tuned, {} seeds", pair_results["BLEU"]),
        ):
            for system, figures in systems.items():
                difference_text = difference(figures["to plain"]) if "to plain" in figures else ""
                weights_label = weights.format(len(figures["BLEU"]))
                rows.append([pair, system, weights_label, f"{np.mean(figures['BLEU']):.2f}", difference_text])
    return markdown("pair | entries | weights | BLEU | difference to plain", rows)


def rightness() -> str:
    """Return a table of the unknown tokens with an entry whose target is in the reference."""
    rows = []
    for pair, pair_results in _pairs().items():
        entries = pair_results["entries"]
        tokens = entries["tokens"]
        correct_by_source = [source["right"] for source in entries["sources"].values()]
        correct_counts = [entries["right"], entries["best_right"], *entries["rules"].values(), *correct_by_source]
        share = f"{100 * tokens / entries['running tokens']:.1f}"
        rows.append([pair, f"{tokens:,}", share, *(f"{100 * count / tokens:.0f}" for count in correct_counts)])
    first = next(iter(_pairs().values()))["entries"]
    names = [*first["rules"], *first["sources"]]
    return markdown(f"pair | unknown tokens | % of all | some | best | {' | '.join(names)}", rows)


TABLES = {"new entries": new_entries, "rightness of new entries": rightness}
