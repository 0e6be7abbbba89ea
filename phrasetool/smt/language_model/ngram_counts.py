"""The n-grams of a corpus, counted as Kneser-Ney smoothing needs them.

Sentences stand one after another in one array, each as `<s> w1 .. wm </s>`.  The n-grams of order n are separated by
sorting one 64-bit key for every place: the n-gram without its first word, which has a number already, and that word.
So n-grams come out sorted by their last word, then by the one before, and so on, and every order costs one sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.smt.language_model.ngrams import BEGIN_WORD, END_WORD, UNKNOWN_WORD

# The first words of every vocabulary that is counted with.
MARKERS = [UNKNOWN_WORD, BEGIN_WORD, END_WORD]
UNKNOWN_ID, BEGIN_ID, END_ID = range(3)


@dataclass(frozen=True)
class NgramCounts:
    """The distinct n-grams of one order n, N of them.

    Attributes:
        order: n.
        raw: int64, shape (N,), how often each occurs.
        adjusted: int64, shape (N,).  Of the highest order, and of n-grams that begin with `<s>`: as often as they
            occur.  Of others: the number of distinct words before them (Kneser & Ney 1995; Chen & Goodman 1998,
            section 2.7).
        contexts: int32, shape (N,), the n-gram without its last word, its row in the table of order n - 1.
        suffixes: int32, shape (N,), the n-gram without its first word, its row in the table of order n - 1.
        places: int64, shape (N,), where in the text the last word of one occurrence is.
    """

    order: int
    raw: Int64Array
    adjusted: Int64Array
    contexts: Int32Array
    suffixes: Int32Array
    places: Int64Array

    def __len__(self) -> int:
        return len(self.raw)


@dataclass(frozen=True)
class CorpusCounts:
    """All n-grams of a corpus.

    Attributes:
        text: int32, the sentences with their markers.
        orders: the n-grams of order 1, 2 and so on; those of order 1 are all words of the vocabulary in id order, seen
            or not.
    """

    text: Int32Array
    orders: list[NgramCounts]

    def words(self, order: int, rows: Int64Array) -> Int32Array:
        """The word ids of some n-grams, int32, shape (len(rows), order)."""
        places = self.orders[order - 1].places[rows]
        if order == 1:
            return rows.astype(np.int32)[:, None]
        return self.text[places[:, None] + np.arange(1 - order, 1)]


def mark_sentences(sentences: Phrases) -> tuple[Int32Array, Int32Array]:
    """The text with markers, and the place of every word in its sentence (`<s>` is at 0)."""
    lengths = sentences.lengths
    starts = sentences.offsets[:-1] + 2 * np.arange(len(sentences))
    text = np.full(len(sentences.words) + 2 * len(sentences), END_ID, np.int32)
    text[starts] = BEGIN_ID
    inner = np.ones(len(text), np.bool_)
    inner[starts] = False
    inner[starts + lengths + 1] = False
    text[inner] = sentences.words
    return text, (np.arange(len(text)) - np.repeat(starts, lengths + 2)).astype(np.int32)


def count_ngrams(sentences: Phrases, vocabulary: int, order: int) -> CorpusCounts:
    """Count the n-grams of all orders up to `order`.

    Memory: some 50 bytes a word of the corpus, and 40 bytes a distinct n-gram.

    Args:
        sentences: word ids, 3 or more: the ids 0, 1 and 2 are those of `MARKERS`.
        vocabulary: the number of words, markers included.
        order: 1 or more.

    Raises:
        ValueError: an id is outside the vocabulary or is a marker's, or `order` is below 1.
    """
    if order < 1:
        raise ValueError(f"the order is {order}, expected 1 or more")
    if len(sentences.words) and not len(MARKERS) <= sentences.words.min() <= sentences.words.max() < vocabulary:
        raise ValueError(f"a word id is outside {len(MARKERS)}..{vocabulary - 1}")
    text, depths = mark_sentences(sentences)
    places = np.flatnonzero(depths > 0)
    raw = np.bincount(text[places], minlength=vocabulary)
    nowhere = np.zeros(vocabulary, np.int32)
    # Rows of the table of the order at hand, for every place of the text.
    rows = text
    orders = [NgramCounts(1, raw, raw, nowhere, nowhere, np.zeros(vocabulary, np.int64))]
    for n in range(2, order + 1):
        places = places[depths[places] >= n - 1]
        keys = rows[places].astype(np.int64) << 32 | text[places - (n - 1)]
        permutation = np.argsort(keys)
        keys = keys[permutation]
        new = np.concatenate([np.ones(min(len(keys), 1), np.bool_), keys[1:] != keys[:-1]])
        firsts = np.flatnonzero(new)
        sorted_places = places[permutation]
        del permutation
        examples = sorted_places[firsts]
        raw = np.diff(np.append(firsts, len(keys)))
        suffixes = (keys[firsts] >> 32).astype(np.int32)
        orders[-1] = _adjust(orders[-1], suffixes, text)
        orders.append(NgramCounts(n, raw, raw, rows[examples - 1], suffixes, examples))
        del keys
        rows = np.empty(len(text), np.int32)
        rows[sorted_places] = np.cumsum(new, dtype=np.int32) - 1
        del sorted_places
    return CorpusCounts(text, orders)


def _adjust(counts: NgramCounts, suffixes: Int32Array, text: Int32Array) -> NgramCounts:
    """Replace raw counts by the numbers of distinct words before, given the suffixes of the next order's n-grams."""
    adjusted = np.bincount(suffixes, minlength=len(counts))
    if counts.order > 1:
        begins = text[counts.places - (counts.order - 1)] == BEGIN_ID
        adjusted[begins] = counts.raw[begins]
    return NgramCounts(counts.order, counts.raw, adjusted, counts.contexts, counts.suffixes, counts.places)
