"""Index of the sentences in which phrases of a corpus occur: sets of sentence numbers and their intersections.

Phrases are found in a suffix array by their first words; phrases of more words than the array is sorted by are then
compared to the end.  Text and suffixes take 8 bytes per word.

**Suffix array.**  The corpus is one array of word ids; each sentence is followed by a negative number that identifies
the sentence, so that no comparison runs past the end of a sentence and no table is needed to map positions to
sentences.  The suffixes are sorted by their first `SORTED_WORDS` words, which bounds the work on repetitive corpora.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel, inner_kernel
from phrasetool.kernels.sorting import sort_strings
from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.pipeline import run

# Number of leading words by which suffixes are sorted.
SORTED_WORDS = 32
_LARGEST = np.iinfo(np.int32).max
# The sentences of a phrase are cached if it occurs at least this often, and as often as this share of all sentences.
_FREQUENT = 256
_FREQUENT_SHARE = 1 / 1024


@exact_kernel
def _keep_common(values: Int32Array, count: int, others: Int32Array, first: int, last: int, write: bool) -> int:
    """Count the values[:count] that are in others[first:last], both ascending; with `write`, move them to the front.

    Exponential search (Bentley and Yao 1976), which is fast for sets of equal and of unequal size.
    """
    common = 0
    low = first
    for i in range(count):
        value = values[i]
        step = 1
        high = low
        while high < last and others[high] < value:
            low = high + 1
            high += step
            step *= 2
        high = min(high, last)
        while low < high:
            middle = (low + high) // 2
            if others[middle] < value:
                low = middle + 1
            else:
                high = middle
        if low == last:
            break
        if others[low] == value:
            if write:
                values[common] = value
            common += 1
    return common


@exact_kernel
def _count_common(
    pool_a: Int32Array, own_a: Int32Array, starts_a: Int64Array, counts_a: Int64Array, rows_a: Int64Array,
    pool_b: Int32Array, own_b: Int32Array, starts_b: Int64Array, counts_b: Int64Array, rows_b: Int64Array,
    common: Int64Array,
) -> None:  # fmt: skip
    """Set common[i] to the size of the intersection of the sets rows_a[i] and rows_b[i]; start ~s is in the pool."""
    for i in range(len(common)):
        a, b = rows_a[i], rows_b[i]
        n_a, n_b = counts_a[a], counts_b[b]
        start_a, start_b = starts_a[a], starts_b[b]
        array_a = own_a if start_a >= 0 else pool_a
        array_b = own_b if start_b >= 0 else pool_b
        start_a = start_a if start_a >= 0 else ~start_a
        start_b = start_b if start_b >= 0 else ~start_b
        if n_a <= n_b:
            common[i] = _keep_common(array_a[start_a:], n_a, array_b, start_b, start_b + n_b, False)
        else:
            common[i] = _keep_common(array_b[start_b:], n_b, array_a, start_a, start_a + n_a, False)


@exact_kernel
def _intersect(
    pool: Int32Array, own: Int32Array, starts: Int64Array, counts: Int64Array, numbers: Int64Array, parts: Int64Array,
    place: int, new_starts: Int64Array, new_counts: Int64Array,
) -> None:  # fmt: skip
    """Intersect the sets numbers[parts[i]:parts[i + 1]] into new set i, written to own[place:] if there are several."""
    for i in range(len(new_counts)):
        first, last = parts[i], parts[i + 1]
        if first == last:
            new_starts[i] = new_counts[i] = 0
            continue
        smallest = first
        for k in range(first + 1, last):
            if counts[numbers[k]] < counts[numbers[smallest]]:
                smallest = k
        start = starts[numbers[smallest]]
        count = counts[numbers[smallest]]
        if last - first == 1:
            new_starts[i], new_counts[i] = start, count
            continue
        for s in range(count):
            own[place + s] = own[start + s] if start >= 0 else pool[~start + s]
        for k in range(first, last):
            if k != smallest:
                start = starts[numbers[k]]
                array = own if start >= 0 else pool
                start = start if start >= 0 else ~start
                count = _keep_common(own[place:], count, array, start, start + counts[numbers[k]], True)
        new_starts[i], new_counts[i] = place, count
        place += count


@dataclass(frozen=True)
class SentenceSets:
    """The sentences in which each of N phrases occurs, ascending and without duplicates.

    Attributes:
        counts: int64, shape (N,), the number of sentences.
        starts: int64, shape (N,), the index in `own` at which the set begins; if negative, it begins at `~start` in
            `pool`.
        own: int32, sentence numbers from 0.
        pool: int32, sets that the index caches, shared by its results.
    """

    counts: Int64Array
    starts: Int64Array
    own: Int32Array
    pool: Int32Array

    def intersect(self, numbers: Int64Array, parts: Int64Array) -> SentenceSets:
        """Return the sets of sentences in which all parts of phrases with gaps occur.

        Args:
            numbers: int64, shape (P,), the set of each part.
            parts: int64, shape (M + 1,), ascending from 0 to P: new set i is the intersection of the sets of the parts
                parts[i]..parts[i + 1] - 1.  Without parts it is empty.
        """
        numbers, parts = (np.ascontiguousarray(array, np.int64) for array in (numbers, parts))
        several = np.flatnonzero(np.diff(parts) > 1)
        room = sum(int(self.counts[numbers[parts[i] : parts[i + 1]]].min()) for i in several)
        own = np.empty(len(self.own) + room, np.int32)
        own[: len(self.own)] = self.own
        starts, counts = np.empty((2, len(parts) - 1), np.int64)
        _intersect(self.pool, own, self.starts, self.counts, numbers, parts, len(self.own), starts, counts)
        return SentenceSets(counts, starts, own, self.pool)


def count_common(first: SentenceSets, second: SentenceSets, rows: Int64Array, columns: Int64Array) -> Int64Array:
    """Count the sentences in which both phrases of each pair occur.

    Args:
        first, second: sets of sentences of the two sides of one bitext.
        rows, columns: int64, shape (M,): pair i is the set rows[i] of `first` and the set columns[i] of `second`.

    Returns:
        int64, shape (M,).

    Raises:
        ValueError: the numbers of rows and columns differ.
    """
    if len(rows) != len(columns):
        raise ValueError(f"{len(rows)} phrases on one side, {len(columns)} on the other")
    common = np.empty(len(rows), np.int64)
    rows, columns = (np.ascontiguousarray(array, np.int64) for array in (rows, columns))
    _count_common(
        first.pool, first.own, first.starts, first.counts, rows,
        second.pool, second.own, second.starts, second.counts, columns, common,
    )  # fmt: skip
    return common


@exact_kernel
def _fill_buckets(text: Int32Array, starts: Int64Array, suffixes: Int32Array) -> None:
    """Group the positions of words by word; starts[w] becomes the index of the first suffix that begins with w."""
    for word in text:
        if word >= 0:
            starts[word + 1] += 1
    for word in range(1, len(starts)):
        starts[word] += starts[word - 1]
    next_index = starts[:-1].copy()
    for position in range(len(text)):
        word = text[position]
        if word >= 0:
            suffixes[next_index[word]] = position
            next_index[word] += 1


@exact_kernel
def _sort_buckets(
    letters: npt.NDArray[np.uint32], starts: Int64Array, suffixes: Int32Array, first_word: int, last_word: int
) -> None:
    """Sort the suffixes that begin with the words first_word..last_word - 1; letters are words + 1, 0 for an end."""
    for word in range(first_word, last_word):
        if starts[word + 1] - starts[word] > 1:
            sort_strings(letters, 1, suffixes, starts[word], starts[word + 1], 1, SORTED_WORDS, True)


def build_suffix_array(sentences: Phrases, words: int, threads: int = 1) -> tuple[Int32Array, Int32Array, Int64Array]:
    """Sort the suffixes of a corpus's sentences.

    Args:
        sentences: the sentences, which may be empty.
        words: W, one more than the largest id.
        threads: number of threads that sort.

    Returns:
        text: int32, shape (T,), the ids of the words of every sentence, then -1 - (number of the sentence).
        suffixes: int32, the positions in `text` of all words, sorted by the suffixes that begin there.
        starts: int64, shape (W + 1,), the index of the first suffix that begins with each word.

    Raises:
        ValueError: an id is not below `words`, or words and sentences together number 2^31 or more.
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


@inner_kernel
def _first_from(text: Int32Array, suffixes: Int32Array, low: int, high: int, k: int, word: int) -> int:
    """Return the first of suffixes[low:high], equal up to word k, whose word k is not below `word`; or `high`."""
    while low < high:
        middle = (low + high) // 2
        if text[suffixes[middle] + k] < word:
            low = middle + 1
        else:
            high = middle
    return low


@exact_kernel
def _find(
    text: Int32Array,
    starts: Int64Array,
    suffixes: Int32Array,
    offsets: Int64Array,
    words: Int32Array,
    firsts: Int64Array,
    lasts: Int64Array,
) -> None:
    """Find the suffixes firsts[i]..lasts[i] - 1 that begin with phrase i, or its first SORTED_WORDS words."""
    for i in range(len(firsts)):
        start = offsets[i]
        length = min(offsets[i + 1] - start, SORTED_WORDS)
        firsts[i] = lasts[i] = 0
        known = length > 0
        for k in range(start, offsets[i + 1]):
            known &= 0 <= words[k] < len(starts) - 1
        if not known:
            continue
        low, high = starts[words[start]], starts[words[start] + 1]
        # Each word narrows the range; there are few words, and ranges shrink fast.
        for k in range(1, length):
            word = np.int64(words[start + k])
            low = _first_from(text, suffixes, low, high, k, word)
            high = _first_from(text, suffixes, low, high, k, word + 1)
            if low == high:
                break
        firsts[i], lasts[i] = low, high


@exact_kernel
def _collect(
    text: Int32Array,
    suffixes: Int32Array,
    offsets: Int64Array,
    words: Int32Array,
    chosen: Int64Array,
    firsts: Int64Array,
    lasts: Int64Array,
    keys: Int64Array,
) -> int:
    """Write a key, row in `chosen` << 32 | sentence, per occurrence of the chosen phrases; return their number."""
    count = 0
    for c in range(len(chosen)):
        phrase = chosen[c]
        start, length = offsets[phrase], offsets[phrase + 1] - offsets[phrase]
        for suffix in range(firsts[phrase], lasts[phrase]):
            position = np.int64(suffixes[suffix])
            k = min(length, SORTED_WORDS)
            while k < length and text[position + k] == words[start + k]:
                k += 1
            if k < length:
                continue
            position += length
            while text[position] >= 0:
                position += 1
            keys[count] = (c << 32) | (-1 - np.int64(text[position]))
            count += 1
    return count


class SentenceIndex:
    """Index of the sentences of a corpus in which phrases occur.  May be used by several threads.

    The sentences of frequent phrases are cached, in up to 4 bytes per word of the corpus.

    Args:
        text: int32, shape (T,), the ids of the words of every sentence, then -1 - (number of the sentence).
        suffixes: int32, the positions in `text` of all words, sorted by the suffixes that begin there.
        starts: int64, shape (W + 1,), the index of the first suffix that begins with each word.
    """

    def __init__(self, text: Int32Array, suffixes: Int32Array, starts: Int64Array) -> None:
        self.text, self.suffixes, self.starts = text, suffixes, starts
        self.sentences = len(text) - len(suffixes)
        self._frequent = max(_FREQUENT, int(self.sentences * _FREQUENT_SHARE))
        self._pool = np.empty(len(suffixes), np.int32)
        self._pool_used = 0
        self._remembered: dict[tuple[int, int], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # Every process has its own cache.
        return SentenceIndex, (self.text, self.suffixes, self.starts)

    @classmethod
    def build(cls, sentences: Phrases, words: int, threads: int = 1) -> SentenceIndex:
        """Index a corpus; see `build_suffix_array`."""
        return cls(*build_suffix_array(sentences, words, threads))

    def occurrences(self, phrases: Phrases) -> Int64Array:
        """Count the occurrences of N phrases by their first SORTED_WORDS words; int64, shape (N,); see `find`."""
        firsts, lasts = self._suffixes_of(phrases)
        return np.asarray(lasts - firsts)

    def _suffixes_of(self, phrases: Phrases) -> tuple[Int64Array, Int64Array]:
        """Return the first suffix that begins with each phrase, and the one after the last."""
        offsets, words = np.ascontiguousarray(phrases.offsets), np.ascontiguousarray(phrases.words)
        firsts, lasts = np.empty((2, len(phrases)), np.int64)
        _find(self.text, self.starts, self.suffixes, offsets, words, firsts, lasts)
        return firsts, lasts

    def find(self, phrases: Phrases) -> SentenceSets:
        """Return the sentences in which phrases occur.

        Args:
            phrases: N phrases in the ids of the corpus; empty phrases and those with unknown ids occur nowhere.
        """
        offsets, words = np.ascontiguousarray(phrases.offsets), np.ascontiguousarray(phrases.words)
        firsts, lasts = self._suffixes_of(phrases)
        occurrences = lasts - firsts
        frequent = (occurrences >= self._frequent) & (phrases.lengths <= SORTED_WORDS)
        starts, counts = np.zeros((2, len(phrases)), np.int64)
        rare = np.flatnonzero((occurrences > 0) & ~frequent)
        counts[rare], own = self._collect(offsets, words, rare, firsts, lasts)
        starts[rare] = np.cumsum(counts[rare]) - counts[rare]
        parts = [own]
        size = len(own)
        for i in np.flatnonzero(frequent).tolist():
            start, counts[i], unpooled = self._recall(offsets, words, i, firsts, lasts)
            if unpooled is None:
                starts[i] = ~start
            else:
                starts[i] = size
                parts.append(unpooled)
                size += len(unpooled)
        return SentenceSets(counts, starts, np.concatenate(parts) if len(parts) > 1 else own, self._pool)

    def _collect(
        self, offsets: Int64Array, words: Int32Array, chosen: Int64Array, firsts: Int64Array, lasts: Int64Array
    ) -> tuple[Int64Array, Int32Array]:
        """Return the number of sentences of each chosen phrase, and the sets of sentences one after another."""
        keys = np.empty(int((lasts[chosen] - firsts[chosen]).sum()), np.int64)
        keys = keys[: _collect(self.text, self.suffixes, offsets, words, chosen, firsts, lasts, keys)]
        keys.sort()
        if len(keys):
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        return np.bincount(keys >> 32, minlength=len(chosen)).astype(np.int64), keys.astype(np.int32)

    def _recall(
        self, offsets: Int64Array, words: Int32Array, phrase: int, firsts: Int64Array, lasts: Int64Array
    ) -> tuple[int, int, Int32Array | None]:
        """Return the start in the pool and the size of a frequent phrase's set; also the set if the pool is full."""
        # Phrases with the same suffixes have the same sentences.
        key = int(firsts[phrase]), int(lasts[phrase])
        with self._lock:
            if key in self._remembered:
                return *self._remembered[key], None
        sentences = self._collect(offsets, words, np.array([phrase]), firsts, lasts)[1]
        with self._lock:
            if key not in self._remembered:
                start = self._pool_used
                if start + len(sentences) > len(self._pool):
                    return 0, len(sentences), sentences
                self._pool[start : start + len(sentences)] = sentences
                self._pool_used += len(sentences)
                self._remembered[key] = start, len(sentences)
            return *self._remembered[key], None
