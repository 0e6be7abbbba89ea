"""Tables for the documents: value of columns of models for a decoder, in addition to the six existing columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from neural_columns import COMPARED

from page_tables.kept_results import difference, find, markdown

# Addition of a comparison -> the page that describes it.
_PAGES = {
    "translators": ("plain", "translators", "six", "six, translators", "six, softmax"),
    "syntax": ("plain", "syntax", "six", "six, syntax"),
    "parallel": ("plain", "parallel", "six", "six, parallel"),
}


def columns(systems: tuple[str, ...]) -> str:
    """Mean BLEU of tables with columns over tuning seeds, and the difference to those without."""
    without = {other: one for one, other in COMPARED}
    rows = []
    for pair, found in find("neural_columns/pairs").items():
        there = [name for name in systems if name in found["BLEU"]]
        # Of pairs that were not tuned with what the page tells of, other pages tell.
        for name in there if set(there) - {"plain", "six"} else ():
            difference_text = ""
            if more := found["differences"].get(f"{name} - {without.get(name)}"):
                difference_text = f"{difference(more)} to {without[name]}"
            bleu = found["BLEU"][name]
            rows.append([pair, name, f"{len(bleu)}", f"{np.mean(bleu):.2f}", difference_text])
    return markdown("pair | columns | seeds | BLEU | difference", rows)


TABLES: dict[str, Callable[[], str]] = {
    f"columns of {page}": partial(columns, systems) for page, systems in _PAGES.items()
}  # fmt: skip
