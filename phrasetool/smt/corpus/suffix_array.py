"""A suffix array over the words of a corpus.

The corpus is one array of word ids; each sentence is followed by a negative number that says which sentence it was, so
that no comparison runs past a sentence's end and a position needs no table to find its sentence.  The suffixes are
sorted by their first `SORTED_WORDS` words, which bounds the work on corpora that repeat themselves.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.pipeline import run

# Words by which suffixes are sorted.
SORTED_WORDS = 32
# Below this many suffixes, insertion is faster than partition.
_FEW = 12
# The stack of the sort is at most some 3 entries for each halving of 2^31 suffixes.
_STACK = 256
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
def _is_before(text: Int32Array, first: int, second: int, depth: int) -> bool:
    """Whether the suffix at `first` sorts before that at `second`; their first `depth` words are equal."""
    while depth < SORTED_WORDS:
        a, b = text[first + depth], text[second + depth]
        if a < 0 or b < 0:
            return a < 0 and b >= 0
        if a != b:
            return a < b
        depth += 1
    return False


@exact_kernel
def _sort_suffixes(text: Int32Array, starts: Int64Array, suffixes: Int32Array, first_word: int, last_word: int) -> None:
    """Sort the suffixes that begin with the words first_word..last_word - 1.

    Multikey quicksort (Bentley and Sedgewick 1997): partition by one word into less, equal and greater; the equal part
    goes on with the next word.
    """
    stack = np.empty((_STACK, 3), np.int64)
    parts = np.empty((3, 3), np.int64)
    for bucket in range(first_word, last_word):
        stack[0, 0], stack[0, 1], stack[0, 2] = starts[bucket], starts[bucket + 1], 1
        height = 1
        while height > 0:
            height -= 1
            low, high, depth = stack[height, 0], stack[height, 1], stack[height, 2]
            if depth >= SORTED_WORDS:
                continue
            if high - low <= _FEW:
                for i in range(low + 1, high):
                    moving = suffixes[i]
                    j = i
                    while j > low and _is_before(text, moving, suffixes[j - 1], depth):
                        suffixes[j] = suffixes[j - 1]
                        j -= 1
                    suffixes[j] = moving
                continue
            # All ends of sentences are one key.
            a = max(text[suffixes[low] + depth], -1)
            b = max(text[suffixes[(low + high) // 2] + depth], -1)
            c = max(text[suffixes[high - 1] + depth], -1)
            pivot = max(min(a, b), min(max(a, b), c))
            less, i, greater = low, low, high
            while i < greater:
                suffix = suffixes[i]
                key = max(text[suffix + depth], -1)
                if key < pivot:
                    suffixes[i] = suffixes[less]
                    suffixes[less] = suffix
                    less += 1
                    i += 1
                elif key > pivot:
                    greater -= 1
                    suffixes[i] = suffixes[greater]
                    suffixes[greater] = suffix
                else:
                    i += 1
            parts[0, 0], parts[0, 1], parts[0, 2] = low, less, depth
            parts[1, 0], parts[1, 1], parts[1, 2] = less, greater, depth + 1
            parts[2, 0], parts[2, 1], parts[2, 2] = greater, high, depth
            if pivot < 0:
                parts[1, 1] = less
            # The largest part is pushed first and taken last, which keeps the stack low.
            for _ in range(3):
                largest = 0
                for part in range(1, 3):
                    if parts[part, 1] - parts[part, 0] > parts[largest, 1] - parts[largest, 0]:
                        largest = part
                if parts[largest, 1] - parts[largest, 0] > 1:
                    stack[height, 0], stack[height, 1] = parts[largest, 0], parts[largest, 1]
                    stack[height, 2] = parts[largest, 2]
                    height += 1
                parts[largest, 1] = parts[largest, 0]


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
    for _ in run(pairwise(bounds), lambda part: _sort_suffixes(text, starts, suffixes, *part), threads):
        pass
    return text, suffixes, starts
