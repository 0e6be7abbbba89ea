"""Whether a syntactic encoder fits pairs: how many of their words it knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.models.fit import ModelFit, measure_fit
from phrasetool.phrases import Phrases
from phrasetool.sentences import read_words
from phrasetool.syntax.model import SyntaxModel
from phrasetool.vocabulary import UNKNOWN, UNKNOWN_WORD, Vocabulary


def fit_of_syntax(model: SyntaxModel, sources: Sequence[bytes], targets: Sequence[bytes]) -> ModelFit:
    """How well an encoder fits pairs, see `measure_fit`; how well it tells them from others is not asked.

    Many pairs have one syntax, so that it need not tell a pair from another.

    Args:
        model: any.
        sources, targets: N phrases each, words between spaces.
    """
    sides, vocabularies = [], []
    for lines in (sources, targets):
        phrases, words = read_words(lines)
        alone = Phrases(np.arange(len(words) + 1), np.arange(len(words), dtype=np.int32))
        says = model.has_opinion(model.in_pieces(alone, words))
        known = [word for word, good in zip(words, says.tolist(), strict=True) if good and word != UNKNOWN_WORD]
        numbers = {word: number for number, word in enumerate(known, 1)}
        ids = np.array([numbers.get(word, UNKNOWN) for word in words], np.int32)
        sides.append(Phrases(phrases.offsets, ids[phrases.words] if words else phrases.words))
        vocabularies.append(Vocabulary([UNKNOWN_WORD, *known]))
    return measure_fit(None, (sides[0], sides[1]), (vocabularies[0], vocabularies[1]), (sources, targets))
