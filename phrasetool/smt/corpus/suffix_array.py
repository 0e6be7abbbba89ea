"""A suffix array over the words of a corpus.

The corpus is one array of word ids; each sentence is followed by a negative number that identifies the sentence, so
that no comparison runs past a sentence's end and a position needs no table to find its sentence.  The suffixes are
sorted by their first `SORTED_WORDS` words, which bounds the work on corpora that repeat themselves.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.kernels.sorting import sort_strings
from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.pipeline import run

# Words by which suffixes are sorted.
SORTED_WORDS = 32
_LARGEST = np.iinfo(np.int32).max


@exact_kernel
def _fill_buckets(text: Int32Array, starts: Int64Array, suffixes: Int32Array) -> None:
    """Group the positions of words by word; starts[w] becomes where the suffixes that begin with w are."""
    for word in text:
        if word >= 0:
            starts[word + 1] += 1
    for word in range(1, len(starts)):
        starts[word] += starts[word - 1]
    place = starts[:-1].copy()
    for position in range(len(text)):
        word = text[position]
        if word >= 0:
            suffixes[place[word]] = position
            place[word] += 1


@exact_kernel
def _sort_buckets(
    letters: npt.NDArray[np.uint32], starts: Int64Array, suffixes: Int32Array, first_word: int, last_word: int
) -> None:
    """Sort the suffixes that begin with the words first_word..last_word - 1; letters = words + 1, and 0 for an end."""
    for word in range(first_word, last_word):
        if starts[word + 1] - starts[word] > 1:
            sort_strings(letters, 1, suffixes, starts[word], starts[word + 1], 1, SORTED_WORDS, True)


def build_suffix_array(sentences: Phrases, words: int, threads: int = 1) -> tuple[Int32Array, Int32Array, Int64Array]:
    """Sort the suffixes of a corpus's sentences.

    Args:
        sentences: the sentences, which may be empty.
        words: W, one more than the largest id.
        threads: how many sort.

    Returns:
        text: int32, shape (T,), the ids of the words of every sentence, then -1 - (number of the sentence).
        suffixes: int32, the positions in `text` of all words, sorted by what begins there.
        starts: int64, shape (W + 1,), where the suffixes that begin with each word are.

    Raises:
        ValueError: an id is not below `words`, or there are 2^31 words and sentences or more.
    """
    if len(sentences.words) + len(sentences) > _LARGEST:
        raise ValueError(f"{len(sentences.words)} words are more than an index can hold")
    if len(sentences.words) and not 0 <= sentences.words.min() <= sentences.words.max() < words:
        raise ValueError(f"an id is not below {words}")
    numbers = np.arange(len(sentences), dtype=np.int64)
    ends = sentences.offsets[1:] + numbers
    text = np.empty(len(sentences.words) + len(sentences), np.int32)
    is_word = np.ones(len(text), np.bool_)
    is_word[ends] = False
    text[is_word] = sentences.words
    text[ends] = -1 - numbers
    starts = np.zeros(words + 1, np.int64)
    suffixes = np.empty(len(sentences.words), np.int32)
    _fill_buckets(text, starts, suffixes)
    # More shares than threads, because frequent words take longer.
    shares = 8 * threads if threads > 1 else 1
    bounds = np.searchsorted(starts, np.linspace(0, len(suffixes), shares + 1)).tolist()
    bounds[-1] = words
    letters = text + np.int32(1)
    np.maximum(letters, 0, out=letters)
    for _ in run(
        pairwise(bounds), lambda part: _sort_buckets(letters.view(np.uint32), starts, suffixes, *part), threads
    ):
        pass
    return text, suffixes, starts
