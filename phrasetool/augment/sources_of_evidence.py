"""All sources of evidence, learnt from the words that a table knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phrasetool.augment.augmenter import Augmenter, measure_trust
from phrasetool.augment.compounds import Compounds, learn_compounds
from phrasetool.augment.copies import Copies
from phrasetool.augment.evidence import COMPOUND, COPY, EVIDENCE, INFLECTION, MEANING, Evidence
from phrasetool.augment.relatives import SELDOM, TAUGHT, Likeness, SharedTranslations, learn_relatives
from phrasetool.augment.scripts import has_letter
from phrasetool.augment.word_entries import WordEntries
from phrasetool.phrases import FloatArray

# Words that trust is measured on; others than those that likeness is learnt from.
_MEASURED = 500


def learn_augmenter(
    entries: WordEntries, names: Sequence[str] = EVIDENCE, vectors: Mapping[str, FloatArray] | None = None,
    seed: int = 1,
) -> Augmenter:  # fmt: skip
    """Learn from known words how unknown ones are translated.

    Words that were seen seldom are taken for unknown, as they are most like them: some teach which likeness tells, and
    on others it is measured how far each source of evidence is right.

    Args:
        entries: known words.
        names: of the requested sources, some of `EVIDENCE`.
        vectors: of known and unknown words, from monolingual text; likeness is that of letters alone without.
        seed: of the words that are drawn.

    Raises:
        ValueError: an unknown source.
    """
    if unknown := [name for name in names if name not in EVIDENCE]:
        raise ValueError(f"unknown source of evidence {unknown[0]!r}; expected some of {', '.join(EVIDENCE)}")
    seldom = [word for word in entries.ordered if entries.count(word) <= SELDOM and has_letter(word)]
    drawn = [seldom[place] for place in np.random.default_rng(seed).permutation(len(seldom)).tolist()]
    taught = min(TAUGHT, len(drawn) // 2)
    evidence: dict[str, Evidence] = {}
    if COMPOUND in names:
        evidence[COMPOUND] = Compounds(entries, learn_compounds(entries))
    if INFLECTION in names or MEANING in names:
        relatives = learn_relatives(entries, Likeness(entries, vectors), drawn[:taught])
        for name in (INFLECTION, MEANING):
            evidence[name] = SharedTranslations(name, entries, relatives, alike=name == INFLECTION)
    if COPY in names:
        evidence[COPY] = Copies(entries)
    chosen = [evidence[name] for name in EVIDENCE if name in names]
    measured = drawn[taught : taught + _MEASURED]
    return Augmenter(chosen, {source.name: measure_trust(source, entries, measured) for source in chosen})
