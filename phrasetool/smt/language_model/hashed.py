"""Back-off models in kenlm's hash tables, in memory in the layout of the file.

An n-gram is identified by a 64-bit number computed from its words, the last one first, and a word only by a hash, so
n-grams and words cannot be listed.  Defined by kenlm's source: lm/search_hashed.hh (tables and numbers), lm/vocab.hh
and lm/vocab.cc (words), util/probing_hash_table.hh (slots), lm/weights.hh and lm/blank.hh (meaning of signs),
util/murmur_hash.cc (MurmurHash64A), lm/model.cc (`ScoreExceptBackoff`, computation of a score).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, FloatArray, Int32Array, Int64Array, prefix_sums

Words32 = npt.NDArray[np.uint32]

MAX_ORDER = 16
# Columns of `layouts`: the order, the 1-grams, then a table and its number of slots for each higher order.
ORDER, UNIGRAMS, TABLES = range(3)
LAYOUT_WIDTH = TABLES + 2 * (MAX_ORDER - 1)
# A slot of a table: a 64-bit number, then probability and back-off; no back-off in the highest order.
MIDDLE_SLOT, LONGEST_SLOT = 4, 3
# A slot of the vocabulary: a 64-bit hash, then the word's id.
WORD_SLOT = 3
# A back-off of zero is -0 if no longer n-gram extends the n-gram, otherwise 0.
_NO_EXTENSION = np.uint32(0x80000000)
_SIGN = np.uint32(31)
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_CONTEXT, _WORD = np.uint64(8978948897894561157), np.uint64(17894857484156487943)
_MURMUR, _SHIFT, _BYTE = np.uint64(0xC6A4A7935BD1E995), np.uint64(47), np.uint64(8)


@dataclass(frozen=True)
class HashedModel:
    """A model from one of kenlm's files.

    Attributes:
        memory: uint32, read only: the file.
        layout: int64, shape (LAYOUT_WIDTH,): positions of the parts in the memory.
        vocabulary: position in the memory and number of the slots of words.
        words: one more than the largest id of a word.
    """

    memory: Words32
    layout: Int64Array
    vocabulary: tuple[int, int]
    words: int

    @property
    def order(self) -> int:
        """Length of its longest n-grams."""
        return int(self.layout[ORDER])

    def ids(self, words: Sequence[bytes]) -> Int32Array:
        """Return the ids of words, int32; 0, the id of the unknown word, for words that the model does not have.

        Raises:
            ValueError: the file gives a word an id that is not a 1-gram.
        """
        ids = np.zeros(len(words), np.int64)
        _find_words(word_hashes(words), self.memory, *self.vocabulary, ids)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.words):
            raise ValueError("a word has an id beyond the 1-grams")
        return ids.astype(np.int32)


@exact_kernel
def _hash_words(text: ByteArray, offsets: Int64Array, hashes: npt.NDArray[np.uint64]) -> None:
    """Hash words with MurmurHash64A, seed 0."""
    for word in range(len(hashes)):
        first, last = offsets[word], offsets[word + 1]
        h = np.uint64(last - first) * _MURMUR
        whole = first + (last - first) // 8 * 8
        for position in range(first, whole, 8):
            k = np.uint64(0)
            for i in range(7, -1, -1):
                k = (k << _BYTE) | np.uint64(text[position + i])
            k *= _MURMUR
            k ^= k >> _SHIFT
            k *= _MURMUR
            h ^= k
            h *= _MURMUR
        if whole < last:
            k = np.uint64(0)
            for i in range(last - 1, whole - 1, -1):
                k = (k << _BYTE) | np.uint64(text[i])
            h ^= k
            h *= _MURMUR
        h ^= h >> _SHIFT
        h *= _MURMUR
        h ^= h >> _SHIFT
        hashes[word] = h


def word_hashes(words: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return kenlm's hashes of words, uint64."""
    offsets = prefix_sums([len(word) for word in words])
    hashes = np.empty(len(words), np.uint64)
    _hash_words(np.frombuffer(b"".join(words), np.uint8), offsets, hashes)
    return hashes


@borrowing_kernel
def _find_slot(memory: Words32, table: int, slots: int, size: int, key: np.uint64) -> int:
    """Return the position in the memory of a key's slot, or -1: linear probing, 0 for a free slot."""
    slot = np.int64(key % np.uint64(slots))
    for _ in range(slots):
        position = table + slot * size
        stored_key = np.uint64(memory[position]) | np.uint64(memory[position + 1]) << _HALF
        if stored_key == key:
            return np.int64(position)
        if stored_key == 0:
            break
        slot += 1
        if slot == slots:
            slot = np.int64(0)
    return np.int64(-1)


@exact_kernel
def _find_words(hashes: npt.NDArray[np.uint64], memory: Words32, table: int, slots: int, ids: Int64Array) -> None:
    for i in range(len(hashes)):
        position = _find_slot(memory, table, slots, WORD_SLOT, hashes[i])
        ids[i] = memory[position + 2] if position >= 0 else 0


@borrowing_kernel
def read_hashed(
    memory: Words32,
    numbers: FloatArray,
    layout: Int64Array,
    contexts: Int32Array,
    backoffs: FloatArray,
    before: int,
    after: int,
    word: int,
) -> float:
    """Read one word; for use inside other kernels.

    A context consists of its length n, its words, the last one first, and its back-offs, that of the last word alone
    first: 1 + 2 (order - 1) numbers of 32 bits, of which 1 + n and n are meaningful.

    Args:
        memory, layout: of a `HashedModel`.
        numbers: float32, the same memory.
        contexts: int32; backoffs: float32, the same memory.
        before: position of a context.
        after: position to which the context after the word is written.
        word: an id of the model.  Nothing is checked.

    Returns:
        log10 of the word's probability, float32.
    """
    order = layout[ORDER]
    length = np.int64(contexts[before])
    position = layout[UNIGRAMS] + 2 * word
    # The sign is set if no longer n-gram ends with this one.
    longest = (memory[position] >> _SIGN) != 0
    score = -np.abs(numbers[position])
    contexts[after + 1] = word
    backoffs[after + order] = numbers[position + 1]
    kept = np.int64(memory[position + 1] != _NO_EXTENSION)
    matched = np.int64(1)
    key = np.uint64(word)
    while matched <= length and not longest:
        key = (key * _CONTEXT) ^ ((np.uint64(contexts[before + matched]) + _ONE) * _WORD)
        n = matched + 1
        table = TABLES + 2 * (n - 2)
        size = LONGEST_SLOT if n == order else MIDDLE_SLOT
        position = _find_slot(memory, layout[table], layout[table + 1], size, key)
        if position < 0:
            break
        matched = n
        score = -np.abs(numbers[position + 2])
        if n == order:
            break
        longest = (memory[position + 2] >> _SIGN) != 0
        contexts[after + n] = contexts[before + n - 1]
        backoffs[after + order + n - 1] = numbers[position + 3]
        if memory[position + 3] != _NO_EXTENSION:
            kept = n
    for i in range(matched - 1, length):
        score += backoffs[before + order + i]
    contexts[after] = kept
    return score
