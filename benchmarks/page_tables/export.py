"""Tables for the documentation: exports for other systems."""

from __future__ import annotations

from typing import Any

from page_tables.kept_results import find, markdown

# Indices of the shown depths of `counts`.
_SHOWN = (0, 3, 5)


def _pairs() -> dict[str, Any]:
    pairs: dict[str, Any] = find("vocabulary_maps/pairs")
    return pairs


def coverage() -> str:
    """Return a table of the coverage of reference tokens, with as many candidates as `counts`."""
    rows = []
    for pair, kinds in _pairs().items():
        for kind in ("vmap", "shortlist"):
            figures = kinds[kind]
            for index in _SHOWN:
                numbers = (figures[name][index] for name in ("candidates", "counts", "ours"))
                size, counts, exported = numbers
                rows.append(
                    [pair, kind, f"{size:.0f}", f"{counts:.1f}", f"{exported:.1f}", f"{exported - counts:+.1f}"]
                )
    return markdown("pair | list | candidates of a sentence | most frequent translations | export | difference", rows)


def lexicons() -> str:
    """Return a table of the precision of lexicons on texts that were not used for training."""
    rows = []
    for pair, kinds in _pairs().items():
        lexicon = kinds["lexicon"]
        rows.append([
            pair, f"{lexicon['pairs']:,}", f"{lexicon['seen']:,}", f"{100 * lexicon['right'] / lexicon['seen']:.0f}",
            f"{100 * lexicon['right_places'] / lexicon['places']:.0f}",
        ])  # fmt: skip
    return markdown("pair | term pairs | with a source in the text | right, % of pairs | right, % of sentences", rows)


def speed() -> str:
    """Return a table of seconds and memory of whole processes."""
    rows = []
    for timed in find("vocabulary_maps/speed").values():
        for kind in ("vmap", "shortlist", "lexicon", "bicleaner"):
            usage = timed[kind]
            rows.append([
                kind, f"{timed['entries']:,}", f"{usage['wall']['median']:.1f}", f"{usage['cpu']['median']:.1f}",
                f"{usage['peak'] / 2**20:,.0f}",
            ])  # fmt: skip
    return markdown("list | entries | seconds | of a processor | MiB", rows)


TABLES = {"candidate coverage": coverage, "lexicons": lexicons, "export speed": speed}
