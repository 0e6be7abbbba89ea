"""What a table loses without an entry: the composition criterion (Zens, Stanton and Xu 2012; Ling et al. 2012).

An entry that two shorter entries of the table make up between them can be missed: the decoder puts the two together,
and what is lost is the difference of the model scores.  The loss of an entry is its weighted score minus that of its
best composition; of a part, its own score or that of its own best composition counts, whichever is better, so a
composition may have as many parts as the phrase has words, as long as every step of it is an entry.

The score has what an entry alone knows: its logarithms times the weights, and the phrase penalty.  Language model,
word penalty and lexical reordering are left out, for they are the same for both or depend on the sentence.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.interning import NO_KEY, find_key
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import FloatArray, Int32Array, Int64Array, Phrases
from phrasetool.pruning.measures import NumberedEntries
from phrasetool.smt.decoder.table import PhraseIndex, find_phrase, index_phrases

_HALF = np.uint64(32)


@exact_kernel
def _find_affixes(index: PhraseIndex, starts: Int32Array, ends: Int32Array) -> None:
    """For every word of every indexed phrase: which phrase is all before it, and which is it with all after it."""
    for phrase in range(len(index.offsets) - 1):
        first, last = index.offsets[phrase], index.offsets[phrase + 1]
        for i in range(first + 1, last):
            starts[i] = find_phrase(index, index.words, first, i)
            ends[i] = find_phrase(index, index.words, i, last)


@exact_kernel
def _enter_pairs(
    keys: npt.NDArray[np.uint64], scores: FloatArray, slots: npt.NDArray[np.uint64], found: Int32Array
) -> None:
    """found[slot] = the entry with the key in the slot; of entries that stand twice, the better one is kept."""
    for entry in range(len(keys)):
        slot = find_key(slots, keys[entry])
        if slots[slot] == NO_KEY or scores[entry] > scores[found[slot]]:
            slots[slot] = keys[entry]
            found[slot] = entry


@exact_kernel
def _compose(
    entries: Int64Array,
    keys: npt.NDArray[np.uint64],
    slots: npt.NDArray[np.uint64],
    found: Int32Array,
    source_offsets: Int64Array,
    target_offsets: Int64Array,
    source_starts: Int32Array,
    source_ends: Int32Array,
    target_starts: Int32Array,
    target_ends: Int32Array,
    best: FloatArray,
    swap: float,
    composed: FloatArray,
) -> None:
    """composed[e] = the best sum of the scores of two entries that make up entry e, in order or swapped."""
    for entry in entries:
        source = np.int64(keys[entry] >> _HALF) - 1
        target = np.int64(keys[entry] & np.uint64(0xFFFFFFFF))
        first, last = source_offsets[source], source_offsets[source + 1]
        jump = np.float32(swap * (last - first))
        top = np.float32(-np.inf)
        for i in range(first + 1, last):
            if source_starts[i] < 0 or source_ends[i] < 0:
                continue
            left = np.uint64(source_starts[i] + 1) << _HALF
            right = np.uint64(source_ends[i] + 1) << _HALF
            for k in range(target_offsets[target] + 1, target_offsets[target + 1]):
                if target_starts[k] < 0 or target_ends[k] < 0:
                    continue
                a, b = np.uint64(target_starts[k]), np.uint64(target_ends[k])
                x = find_key(slots, left | a)
                if slots[x] != NO_KEY:
                    y = find_key(slots, right | b)
                    if slots[y] != NO_KEY:
                        top = max(top, best[found[x]] + best[found[y]])
                x = find_key(slots, left | b)
                if slots[x] != NO_KEY:
                    y = find_key(slots, right | a)
                    if slots[y] != NO_KEY:
                        top = max(top, best[found[x]] + best[found[y]] - jump)
        composed[entry] = top


def composition_losses(
    entries: NumberedEntries, scores: FloatArray, distortion_weight: float = 0.0, threads: int = 1
) -> FloatArray:
    """What the model score of each entry is above that of its best composition.

    Takes some 70 bytes an entry, and 20 bytes a word of the distinct phrases.

    Args:
        entries: N entries; of one that stands twice, the better score counts as a part.
        scores: float32, shape (N,), finite: logarithms times weights, and the weight of the phrase penalty.
        distortion_weight: of Moses' Distortion feature.  Two parts whose order is swapped jump twice the words of the
            source phrase in all: to the second part, back to the first, and behind the second again.
        threads: worker threads; they do not change the result.

    Returns:
        float32, shape (N,): infinite where an entry has no composition; zero or less where nothing is lost.

    Raises:
        ValueError: the arrays do not fit each other.
    """
    if scores.shape != (len(entries),) or scores.dtype != np.float32:
        raise ValueError(f"scores are {scores.dtype} of shape {scores.shape}, expected float32 of ({len(entries)},)")
    keys = (entries.source_numbers.astype(np.uint64) + np.uint64(1)) << _HALF | entries.target_numbers.astype(np.uint64)
    slots, found = np.zeros(2 * len(keys) + 1, np.uint64), np.empty(2 * len(keys) + 1, np.int32)
    _enter_pairs(keys, scores, slots, found)
    lengths = entries.sources.lengths[entries.source_numbers]
    by_length = np.argsort(lengths, kind="stable")
    borders = np.searchsorted(lengths[by_length], np.arange(2, int(lengths.max(initial=0)) + 2))
    best = scores.copy()
    composed = np.full(len(scores), -np.inf, np.float32)

    def work(part: Int64Array) -> None:
        _compose(
            part, keys, slots, found, entries.sources.offsets, entries.targets.offsets, *affixes, best,
            np.float32(2 * distortion_weight), composed,
        )  # fmt: skip

    with ThreadPoolExecutor(threads) as pool:
        affixes = [part for side in pool.map(_affixes, (entries.sources, entries.targets)) for part in side]
        # Parts have shorter sources than the whole, so once a length is done its entries are ready to be parts.
        for first, last in pairwise(borders):
            level = by_length[first:last]
            list(pool.map(work, np.array_split(level, 4 * threads)))
            best[level] = np.maximum(best[level], composed[level])
    losses: FloatArray = scores - composed
    return losses


def _affixes(phrases: Phrases) -> tuple[Int32Array, Int32Array]:
    """Beginnings and ends of distinct phrases, as phrase numbers by word position; -1 where that is no phrase."""
    index, numbers = index_phrases(phrases)
    if len(index.offsets) != len(phrases.offsets):
        raise ValueError(f"{len(phrases)} phrases are only {int(numbers.max(initial=-1)) + 1} distinct ones")
    starts = np.full(len(phrases.words), -1, np.int32)
    ends = np.full(len(phrases.words), -1, np.int32)
    _find_affixes(index, starts, ends)
    return starts, ends
