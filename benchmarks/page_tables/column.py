"""Tables for the documentation: gain from columns of neural models, alone and in addition to the six existing ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from neural_columns import COMPARED

from page_tables.kept_results import difference, find, markdown

# Page -> the systems that it describes.
_PAGES = {
    "translators": ("plain", "translators", "six", "six, translators", "six, softmax"),
    "syntax": ("plain", "syntax", "six", "six, syntax"),
    "parallel": ("plain", "parallel", "six", "six, parallel"),
}


def columns(systems: tuple[str, ...]) -> str:
    """Return a table of mean BLEU over tuning seeds with columns, and the difference to tables without them."""
    without = {system: baseline for baseline, system in COMPARED}
    rows = []
    for pair, pair_results in find("neural_columns/pairs").items():
        tuned = [name for name in systems if name in pair_results["BLEU"]]
        # Pairs without results of the page's own columns are on other pages.
        for name in tuned if set(tuned) - {"plain", "six"} else ():
            difference_text = ""
            if more := pair_results["differences"].get(f"{name} - {without.get(name)}"):
                difference_text = f"{difference(more)} to {without[name]}"
            bleu = pair_results["BLEU"][name]
            rows.append([pair, name, f"{len(bleu)}", f"{np.mean(bleu):.2f}", difference_text])
    return markdown("pair | columns | seeds | BLEU | difference", rows)


TABLES: dict[str, Callable[[], str]] = {
    f"columns of {page}": partial(columns, systems) for page, systems in _PAGES.items()
}  # fmt: skip
