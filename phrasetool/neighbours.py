"""The phrases nearest to a phrase, in its own language and in the other (Table 3 of the BRAE paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.errors import PhraseToolError
from phrasetool.models.bilingual import BilingualModel
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.unique_phrases import distinct_phrases


@dataclass(frozen=True)
class Neighbour:
    """A phrase and its similarity, in [-1, 1]."""

    text: bytes
    similarity: float


class NearestPhrases:
    """Distinct phrases of both languages with their vectors.

    Args:
        model: encodes them.
        sources, targets: phrases of the two languages, in the model's word ids; duplicates are fine.
    """

    def __init__(self, model: BilingualModel, sources: Phrases, targets: Phrases) -> None:
        self._model = model
        self._scorer = model.scorer()
        self._phrases = (_distinct_known(sources), _distinct_known(targets))
        self._vectors = (
            self._scorer.encode_sources(self._phrases[0])[0],
            self._scorer.encode_targets(self._phrases[1])[0],
        )

    def nearest(self, words: Sequence[int], target: bool, count: int) -> tuple[list[Neighbour], list[Neighbour]]:
        """The nearest phrases of the same language (the phrase itself left out), and of the other language.

        Args:
            words: the phrase, in word ids.
            target: whether it is of the target language.
            count: how many of each.
        """
        phrase = Phrases.from_lists([list(words)])
        encode = self._scorer.encode_targets if target else self._scorer.encode_sources
        own, across = encode(phrase)
        same_side, other_side = (1, 0) if target else (0, 1)
        return (
            self._best(own[0], same_side, count, np.asarray(words)),
            self._best(across[0], other_side, count, None),
        )

    def _best(
        self, vector: FloatArray, side: int, count: int, leave_out: npt.NDArray[np.integer] | None
    ) -> list[Neighbour]:
        similarities = self._vectors[side] @ vector
        vocabulary = self._model.target_vocabulary if side else self._model.source_vocabulary
        found: list[Neighbour] = []
        for i in np.argsort(-similarities, kind="stable")[: count + 1]:
            if leave_out is not None and np.array_equal(self._phrases[side][i], leave_out):
                continue
            found.append(Neighbour(vocabulary.phrase(self._phrases[side][i]), float(similarities[i])))
        return found[:count]


def _distinct_known(phrases: Phrases) -> Phrases:
    """Each phrase without unknown words once."""
    distinct = distinct_phrases(phrases)[1]
    unknown = np.zeros(len(distinct) + 1, np.int64)
    np.add.at(unknown, np.repeat(np.arange(len(distinct)), distinct.lengths), distinct.words == 0)
    return distinct.select(np.flatnonzero((unknown[:-1] == 0) & (distinct.lengths > 0)))


def language_of(model: BilingualModel, text: bytes, side: str = "auto") -> str:
    """The language of a phrase: `source` or `target`.

    Args:
        model: knows words of both.
        text: the phrase, words with spaces between.
        side: the language that it should be of; `auto`: the one that knows more of its words, the source's of equals.

    Raises:
        PhraseToolError: the model knows none of its words in that language.
    """
    sides = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    known = {name: sum(word > 0 for word in vocabulary.ids(text)) for name, vocabulary in sides.items()}
    if side == "auto":
        side = "target" if known["target"] > known["source"] else "source"
    if not known[side]:
        shown = text.decode("utf-8", "replace")
        raise PhraseToolError(f"the model knows no word of {shown!r} in the {side} language")
    return side
