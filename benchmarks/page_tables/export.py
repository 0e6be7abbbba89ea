"""Tables of what is exported for other systems; see result_tables.py."""

from __future__ import annotations

from typing import Any

from page_tables.kept_results import find, markdown

# Depths of the counts-only way that are shown.
_SHOWN = (0, 3, 5)


def _pairs() -> dict[str, Any]:
    pairs: dict[str, Any] = find("vocabulary_maps/pairs")
    return pairs


def coverage() -> str:
    """Reference tokens that are candidates, at the candidates of the counts-only way."""
    rows = []
    for pair, kinds in _pairs().items():
        for kind in ("vmap", "shortlist"):
            figures = kinds[kind]
            for place in _SHOWN:
                numbers = (figures[name][place] for name in ("candidates", "counts", "ours"))
                size, counts, ours = numbers
                rows.append([pair, kind, f"{size:.0f}", f"{counts:.1f}", f"{ours:.1f}", f"{ours - counts:+.1f}"])
    return markdown("pair | list | candidates of a sentence | most frequent translations | export | difference", rows)


def lexicons() -> str:
    """How often pairs of lexicons are right in texts that nothing was learnt from."""
    rows = []
    for pair, kinds in _pairs().items():
        lexicon = kinds["lexicon"]
        rows.append([
            pair, f"{lexicon['pairs']:,}", f"{lexicon['seen']:,}", f"{100 * lexicon['right'] / lexicon['seen']:.0f}",
            f"{100 * lexicon['right_places'] / lexicon['places']:.0f}",
        ])  # fmt: skip
    return markdown("pair | term pairs | with a source in the text | right, % of pairs | right, % of sentences", rows)


def speed() -> str:
    """Seconds and memory of whole processes."""
    rows = []
    for found in find("vocabulary_maps/speed").values():
        for kind in ("vmap", "shortlist", "lexicon", "bicleaner"):
            used = found[kind]
            rows.append([
                kind, f"{found['entries']:,}", f"{used['wall']['median']:.1f}", f"{used['cpu']['median']:.1f}",
                f"{used['peak'] / 2**20:,.0f}",
            ])  # fmt: skip
    return markdown("list | entries | seconds | of a processor | MiB", rows)


TABLES = {"candidate coverage": coverage, "lexicons": lexicons, "export speed": speed}
