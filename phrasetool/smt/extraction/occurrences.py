"""Phrase pairs that are consistent with a word alignment, as Moses' `extract` finds them.

A source span and a target span are a phrase pair if no point connects a word inside one to a word outside the other and
at least one point lies in both (Och & Ney 2004).  Unaligned words at the borders may be included or not: every choice
is a separate pair.  Neither span is longer than the limit.

An occurrence is stored as a row of 64-bit words (see `counted_rows`): the words of the source, those of the target, the
alignment inside, and its counts by orientation.  Words are packed by rank, so that rows sort like the lines of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import Int32Array, Int64Array, Phrases
from phrasetool.smt.aligning.alignments import SEPARATOR, Bitext
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.counted_rows import CountedRows, Rows, add_row

# Orientation of a phrase to the previous one in the target: in the same order, swapped, or any other.
MONOTONE, SWAP, OTHER = range(3)

# Counts of a row: one word per orientation, with respect to the previous phrase in its lower half, and to the next
# phrase in its upper half.
COUNT_WORDS = 3
_HALF = np.uint64(32)
_ONE = np.uint64(1)

_NO_POSITION = 1 << 30
# Initial room for phrase pairs of a sentence pair.
_SPANS = 1 << 12
# Sentence pairs per kernel call; after each call progress is reported, and it can be interrupted.
_BATCH = 1 << 13


@exact_kernel
def _find_spans(
    source_length: int,
    target_length: int,
    source: Int32Array,
    target: Int32Array,
    max_length: int,
    bounds: Int32Array,
    spans: Int32Array,
) -> int:
    """Fill spans, one row per phrase pair: first and last source position, first and last target position.

    Returns the number of phrase pairs, even if they do not all fit.

    bounds: int32, shape (at least both lengths, 4), working memory: the first and last target word that each source
    word is aligned to, and the first and last source word of each target word.
    """
    for i in range(max(source_length, target_length)):
        bounds[i, 0] = bounds[i, 2] = _NO_POSITION
        bounds[i, 1] = bounds[i, 3] = -1
    for p in range(len(source)):
        s, t = source[p], target[p]
        bounds[s, 0], bounds[s, 1] = min(bounds[s, 0], t), max(bounds[s, 1], t)
        bounds[t, 2], bounds[t, 3] = min(bounds[t, 2], s), max(bounds[t, 3], s)
    count = 0
    for first_target in range(target_length):
        low, high = _NO_POSITION, -1
        for last_target in range(first_target, min(target_length, first_target + max_length)):
            low, high = min(low, bounds[last_target, 2]), max(high, bounds[last_target, 3])
            if high < 0:
                continue
            if high - low >= max_length:
                break
            consistent = True
            for s in range(low, high + 1):
                if bounds[s, 1] >= 0 and (bounds[s, 0] < first_target or bounds[s, 1] > last_target):
                    consistent = False
                    break
            if not consistent:
                continue
            first_source = low
            while first_source >= 0 and first_source > high - max_length:
                if first_source < low and bounds[first_source, 1] >= 0:
                    break
                last_source = high
                while last_source < source_length and last_source < first_source + max_length:
                    if last_source > high and bounds[last_source, 1] >= 0:
                        break
                    if count < len(spans):
                        spans[count, 0], spans[count, 1] = first_source, last_source
                        spans[count, 2], spans[count, 3] = first_target, last_target
                    count += 1
                    last_source += 1
                first_source -= 1
    return count


@exact_kernel
def _is_aligned(linked: npt.NDArray[np.bool_], source_length: int, target_length: int, s: int, t: int) -> bool:
    """Return whether two words are aligned; the corners outside the sentence pair count as aligned."""
    if s < 0 or t < 0:
        return s < 0 and t < 0
    if s >= source_length or t >= target_length:
        return s == source_length and t == target_length
    return linked[s, t]


@exact_kernel
def _orientation(follows: bool, precedes: bool) -> int:
    if follows != precedes:
        return MONOTONE if follows else SWAP
    return OTHER


@exact_kernel
def _orientations(
    linked: npt.NDArray[np.bool_], source_length: int, target_length: int, span: Int32Array
) -> tuple[int, int]:
    """Return a phrase pair's orientations to the word-aligned context before and after its target (Moses: wbe, msd)."""
    first_source, last_source, before, after = span[0], span[1], span[2] - 1, span[3] + 1
    previous = _orientation(
        _is_aligned(linked, source_length, target_length, first_source - 1, before),
        _is_aligned(linked, source_length, target_length, last_source + 1, before),
    )
    following = _orientation(
        _is_aligned(linked, source_length, target_length, last_source + 1, after),
        _is_aligned(linked, source_length, target_length, first_source - 1, after),
    )
    return previous, following


@exact_kernel
def _pack(words: Int32Array, first: int, last: int, bits: int, separator: int, row: Rows, place: int, end: int) -> None:
    """Pack the words first..last into row[place:end], from the highest bits down, padded with the separator."""
    each = 64 // bits
    k = first
    for w in range(place, end):
        packed = np.uint64(0)
        for _ in range(each):
            packed = (packed << np.uint64(bits)) | np.uint64(words[k] if k <= last else separator)
            k += 1
        row[w] = packed


@exact_kernel
def _extract(
    source_offsets: Int64Array,
    source_words: Int32Array,
    target_offsets: Int64Array,
    target_words: Int32Array,
    offsets: Int64Array,
    source: Int32Array,
    target: Int32Array,
    layout: Int64Array,
    max_length: int,
    linked: npt.NDArray[np.bool_],
    bounds: Int32Array,
    spans: Int32Array,
    first: int,
    last: int,
    store: Rows,
    slots: Int32Array,
    size: int,
) -> tuple[int, int, int]:
    """Add the occurrences of the sentence pairs first..last - 1.

    Returns:
        The first sentence pair that was not added, the number of rows in store, and the number of phrase pairs of that
        sentence pair, which did not fit into the store or into spans; 0 if all were added.
    """
    source_bits, source_separator, source_end = layout[0], layout[1], layout[2]
    target_bits, target_separator, target_end = layout[3], layout[4], layout[5]
    key_end = layout[6]
    row = np.empty(key_end + COUNT_WORDS, np.uint64)
    for pair in range(first, last):
        s0, t0 = source_offsets[pair], target_offsets[pair]
        source_length, target_length = source_offsets[pair + 1] - s0, target_offsets[pair + 1] - t0
        p0, p1 = offsets[pair], offsets[pair + 1]
        count = _find_spans(source_length, target_length, source[p0:p1], target[p0:p1], max_length, bounds, spans)
        if count > len(spans) or size + count > len(store):
            return pair, size, count
        for p in range(p0, p1):
            linked[source[p], target[p]] = True
        for i in range(count):
            first_source, last_source, first_target, last_target = spans[i]
            _pack(source_words, s0 + first_source, s0 + last_source, source_bits, source_separator, row, 0, source_end)
            _pack(
                target_words, t0 + first_target, t0 + last_target, target_bits, target_separator, row, source_end,
                target_end,
            )  # fmt: skip
            row[target_end:] = 0
            for t in range(first_target, last_target + 1):
                for s in range(bounds[t, 2], bounds[t, 3] + 1):
                    if linked[s, t]:
                        bit = (t - first_target) * max_length + s - first_source
                        row[target_end + bit // 64] |= _ONE << np.uint64(bit % 64)
            previous, following = _orientations(linked, source_length, target_length, spans[i])
            row[key_end + previous] += _ONE
            row[key_end + following] += _ONE << _HALF
            size = add_row(store, slots, size, row, key_end)
        for p in range(p0, p1):
            linked[source[p], target[p]] = False
    return last, size, 0


@dataclass(frozen=True)
class SideLayout:
    """Packing of the phrases of one language.

    Attributes:
        ids: int32, shape (V + 1,), the id of each rank; -1 for the separator.
        ranks: int32, shape (V,), the rank of each id.
        separator: the rank of the separator.
        bits: number of bits of a rank.
        words: 64-bit words of a packed phrase.
    """

    ids: Int32Array
    ranks: Int32Array
    separator: int
    bits: int
    words: int

    @classmethod
    def of(cls, symbols: Symbols, max_length: int) -> SideLayout:
        """Rank words as bytes, each followed by a space, as the lines of a table sort under LC_ALL=C."""
        count = len(symbols)
        keys = [word + b" " for word in symbols.words] + [SEPARATOR + b" "]
        order = np.array(sorted(range(count + 1), key=keys.__getitem__), np.int32)
        ranks = np.empty(count + 1, np.int32)
        ranks[order] = np.arange(count + 1, dtype=np.int32)
        bits = max(count.bit_length(), 1)
        each = 64 // bits
        ids = np.where(order == count, np.int32(-1), order)
        return cls(ids, ranks[:count].copy(), int(ranks[count]), bits, -(-max_length // each))


@dataclass(frozen=True)
class RowLayout:
    """Packing of an occurrence in a row: source, target, alignment, counts.

    Attributes:
        source, target: packing of the phrases.
        max_length: maximum number of words of a side.
        alignment_words: 64-bit words of the alignment; bit t * max_length + s stands for the point s-t.
    """

    source: SideLayout
    target: SideLayout
    max_length: int
    alignment_words: int

    @classmethod
    def of(cls, bitext: Bitext, max_length: int) -> RowLayout:
        """Return the layout for phrases of a bitext's languages."""
        return cls(
            SideLayout.of(bitext.source_symbols, max_length),
            SideLayout.of(bitext.target_symbols, max_length),
            max_length,
            -(-max_length * max_length // 64),
        )

    @property
    def phrase_words(self) -> int:
        """Number of 64-bit words of both phrases."""
        return self.source.words + self.target.words

    @property
    def key_words(self) -> int:
        """Number of 64-bit words of the phrases and the alignment."""
        return self.phrase_words + self.alignment_words


def extract_occurrences(
    bitext: Bitext,
    layout: RowLayout,
    rows: CountedRows,
    progress: Callable[[int], None] = lambda pairs: None,
) -> None:
    """Add every occurrence of a phrase pair in a bitext to `rows`, whose keys are those of the layout.

    Args:
        bitext: sentences and alignments.
        layout: packing of the rows.
        rows: receives the rows to count.
        progress: called at intervals with the number of sentence pairs processed.

    Raises:
        PhraseToolError: the disk is full.
    """
    alignments = bitext.alignments
    sources = Phrases(bitext.sources.offsets, layout.source.ranks[bitext.sources.words])
    targets = Phrases(bitext.targets.offsets, layout.target.ranks[bitext.targets.words])
    longest_source = int(sources.lengths.max(initial=1))
    longest_target = int(targets.lengths.max(initial=1))
    linked = np.zeros((longest_source, longest_target), np.bool_)
    bounds = np.empty((max(longest_source, longest_target), 4), np.int32)
    spans = np.empty((_SPANS, 4), np.int32)
    source, target = layout.source, layout.target
    described = np.array([
        source.bits, source.separator, source.words,
        target.bits, target.separator, layout.phrase_words, layout.key_words,
    ])  # fmt: skip
    pair = 0
    while pair < len(bitext):
        last = min(pair + _BATCH, len(bitext))
        pair, rows.size, needed = _extract(
            sources.offsets, sources.words, targets.offsets, targets.words, alignments.offsets, alignments.source,
            alignments.target, described, layout.max_length, linked, bounds, spans, pair, last, rows.store, rows.slots,
            rows.size,
        )  # fmt: skip
        if needed > len(spans):
            spans = np.empty((2 * needed, 4), np.int32)
        rows.make_room(needed)
        progress(pair)


@exact_kernel
def _unpack(
    rows: Rows, place: int, words: int, bits: int, separator: int, offsets: Int64Array, ids: Int32Array
) -> None:
    """Unpack the words of the phrases in rows[:, place:place + words]."""
    each = 64 // bits
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    count = 0
    for i in range(len(rows)):
        ended = False
        for w in range(place, place + words):
            for k in range(each):
                word = np.int64((rows[i, w] >> np.uint64(bits * (each - 1 - k))) & mask)
                if word == separator:
                    ended = True
                    break
                ids[count] = word
                count += 1
            if ended:
                break
        offsets[i + 1] = count


def unpack_phrases(rows: Rows, place: int, side: SideLayout, max_length: int) -> Phrases:
    """Return the phrases packed in rows[:, place:place + side.words], as ids."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    ranks = np.empty(len(rows) * max_length, np.int32)
    _unpack(rows, place, side.words, side.bits, side.separator, offsets, ranks)
    return Phrases(offsets, side.ids[ranks[: offsets[-1]]])
