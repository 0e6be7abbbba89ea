"""What a tagger learns from: sentences of several treebanks as rows of features and numbers of tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array
from phrasetool.tagger.tagged_sentences import JOINT, UPOS, TaggedSentence, lower_cased
from phrasetool.tagger.word_features import feature_rows

# Language -> its sentences.
Treebanks = Mapping[str, Sequence[TaggedSentence]]
# Of a word that nothing is learnt from.
NO_TAG = -1


@dataclass(frozen=True)
class TaggerExamples:
    """N sentences of W words in all, each distinct word with its features once.

    Attributes:
        offsets: where sentences begin, and the end, int64, shape (N + 1,).
        words, lower: which of D words each word is, as it is and without capitals, int32, shape (W,).
        rows: features of words, int32, shape (D, F).
        tags: number of each word's tag, `NO_TAG` if it is not learnt, int64, shape (W,).
    """

    offsets: Int64Array
    words: Int32Array
    lower: Int32Array
    rows: Int32Array
    tags: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64Array:
        """Words of each sentence, int64, shape (N,)."""
        return np.diff(self.offsets)


def learnt_tags(treebanks: Treebanks, min_joint: int) -> tuple[str, ...]:
    """The universal tags, and the joined ones that are frequent.

    Args:
        treebanks: what is learnt from.
        min_joint: a joined tag has to be seen so often.
    """
    counts: Counter[str] = Counter()
    for language, sentences in treebanks.items():
        for sentence in sentences:
            if found := sentence.as_moses(language):
                counts.update(tag for tag in found[1] if JOINT in tag)
    return (*UPOS, *sorted(tag for tag, count in counts.items() if count >= min_joint))


def tagger_examples(treebanks: Treebanks, tags: Sequence[str], buckets: int) -> TaggerExamples:
    """Each sentence as words, and, where Moses would part its tokens otherwise, a copy as it does.

    Args:
        treebanks: what is learnt from.
        tags: that are learnt.
        buckets: rows of the table of features.
    """
    numbers = {tag: number for number, tag in enumerate(tags)}
    known: dict[tuple[str, str], int] = {}
    words: list[int] = []
    lower: list[int] = []
    learnt: list[int] = []
    lengths: list[int] = []
    for language, sentences in treebanks.items():
        for sentence in sentences:
            plain, moses = sentence.as_words(), sentence.as_moses(language)
            for forms, own in [plain] if moses is None or moses == plain else [plain, moses]:
                words += [known.setdefault((language, word), len(known)) for word in forms]
                lower += [known.setdefault((language, word), len(known)) for word in lower_cased(forms)]
                learnt += [numbers.get(tag, NO_TAG) for tag in own]
                lengths.append(len(forms))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    rows = np.concatenate([feature_rows([word], language, buckets) for language, word in known])
    return TaggerExamples(
        offsets, np.array(words, np.int32), np.array(lower, np.int32), rows, np.array(learnt, np.int64)
    )
