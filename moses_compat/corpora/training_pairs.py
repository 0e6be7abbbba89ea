"""Phrase pairs for training: `source ||| target[ ||| count]`, or any phrase table.

A line of two fields has count 1.  In a line of exactly three fields whose third is a single number, that number is the
count.  In a phrase table the count is c(s,t) of the fifth field, or derived if this field has only c(t) and c(s).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Input
from moses_compat.lines.counts import LARGEST_COUNT, OF_PAIR, CountTally, count_tokens, line_counts
from moses_compat.lines.fields import find_separators, line_offsets_of
from moses_compat.lines.numbers import OK, check_number, read_number
from moses_compat.tables.blocks import blocks
from moses_compat.tables.parser import tokenise
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF, skip_blanks, token_end
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.training.data import PhrasePairs
from phrasetool.vocabulary import UNKNOWN_WORD, Vocabulary, is_label, unescape

_BLOCK_BYTES = 1 << 22
# The consequence of a missing count, see `CountTally.sentences`.
UNCOUNTED = "each pair without one counts once"
# Number of fields before the counts in a phrase table.
_COUNTS = 4


@dataclass(frozen=True)
class _Fields:
    """The N pairs of a block: starts and ends of source and target, int64, shape (4, N), and their counts."""

    text: ByteArray
    places: Int64Array
    counts: npt.NDArray[np.float64]

    def side(self, target: bool) -> tuple[Int64Array, Int64Array]:
        """Return the starts and ends of one side."""
        return self.places[2 * target], self.places[2 * target + 1]


@exact_kernel
def _find_pairs(
    text: ByteArray, line_offsets: Int64Array, places: Int64Array, counts: npt.NDArray[np.float64], fields: Int64Array
) -> None:
    """Set places[line] to source start and end, target start and end, or to -1 if the line has no `|||`.

    fields[line] is set to the number of fields, at most five.  counts[line] is set to the count of a line of up to
    three fields: NaN if the third field has several tokens or none, -1 if it has one that is not a number.
    """
    bars = np.empty(5, np.int64)
    for line in range(len(counts)):
        start, end = line_offsets[line], line_offsets[line + 1]
        while end > start and (text[end - 1] == LF or text[end - 1] == CR):
            end -= 1
        separators = find_separators(text, start, end, bars)
        fields[line] = separators + 1
        places[line] = -1
        counts[line] = 1.0
        if separators > 0:
            places[line, 0] = start
            places[line, 1] = bars[0]
            places[line, 2] = bars[0] + 3
            places[line, 3] = bars[1]
        if separators < 2:
            continue
        counts[line] = np.nan
        if separators > 2:
            continue
        last = bars[4]
        i = skip_blanks(text, bars[1] + 3, last)
        begin = i
        i = token_end(text, i, last)
        if i > begin and skip_blanks(text, i, last) == last:
            counts[line] = read_number(text, begin, i) if check_number(text, begin, i) == OK else -1.0


class PairFields(NamedTuple):
    """The N pairs of a block of lines.

    Attributes:
        places: source start and end, target start and end, int64, shape (N, 4); -1 for a line without `|||`.
        counts: the count of each pair, float64, shape (N,); NaN if it is missing, out of range if it is malformed.
        tally: numbers of missing and derived counts.
        damaged: the first line with a malformed count, and the text of that count; None if all are valid.
    """

    places: Int64Array
    counts: npt.NDArray[np.float64]
    tally: CountTally
    damaged: tuple[int, str] | None


def pair_places(text: ByteArray) -> Int64Array:
    """Return the `places` of the pairs of a block of lines, see `PairFields`."""
    return _pairs_of_lines(text, line_offsets_of(text))[0]


def _pairs_of_lines(text: ByteArray, offsets: Int64Array) -> tuple[Int64Array, npt.NDArray[np.float64], Int64Array]:
    """Return the places, counts and numbers of fields of lines, see `_find_pairs`."""
    places = np.empty((len(offsets) - 1, 4), np.int64)
    counts, fields = np.empty(len(places), np.float64), np.empty(len(places), np.int64)
    _find_pairs(text, offsets, places, counts, fields)
    return places, counts, fields


def pair_fields(text: ByteArray) -> PairFields:
    """Find the pairs of a block of lines; see the module for the format of a line."""
    offsets = line_offsets_of(text)
    places, counts, fields = _pairs_of_lines(text, offsets)
    derived = 0
    if len(fields) and fields.max() > _COUNTS:
        table = line_counts(text, offsets)
        rows = np.flatnonzero(fields > _COUNTS)
        counts[rows] = table.values[rows, OF_PAIR]
        derived = int(np.count_nonzero(table.derived))
        unknown = rows[np.isnan(counts[rows])]
        if len(unknown):
            counts[unknown[count_tokens(text, offsets, unknown) > 1]] = -1.0
    valid = (counts >= 0) & (counts <= LARGEST_COUNT)
    bad = np.flatnonzero(~valid & ~np.isnan(counts))
    damaged = None
    if len(bad):
        line = text[offsets[bad[0]] : offsets[bad[0] + 1]].tobytes().split(b"|||")
        damaged = int(bad[0]), line[_COUNTS if len(line) > _COUNTS else -1].strip(b" \t\r\n").decode("utf-8", "replace")
    missing = int(np.count_nonzero(np.isnan(counts)))
    return PairFields(places, counts, CountTally(len(counts), missing, derived), damaged)


def check_counts(name: str, pairs: PairFields, before: int) -> None:
    """Check that a block has no malformed count.

    Args:
        name: the name of the file, for the message.
        pairs: the pairs of the block.
        before: the number of lines of the file before the block.

    Raises:
        DataError: a count is malformed.
    """
    if pairs.damaged:
        line, text = pairs.damaged
        raise DataError(name, f"expected a count, a number of at least 0, found {text!r}", before + line + 1)


def read_training_pairs(
    source: Input,
    *,
    max_length: int = 7,
    min_count: float = 0,
    vocabularies: tuple[Vocabulary, Vocabulary] | None = None,
    progress: Callable[[int, int], None] = lambda position, entries: None,
    seen: Callable[[ByteArray], None] = lambda text: None,
    counted: Callable[[CountTally], None] = lambda tally: None,
) -> PhrasePairs:
    """Read phrase pairs; duplicates are merged, and pairs with an empty or too long side are left out.

    Args:
        source: the file.
        max_length: maximum number of words of a side (7 in the paper).
        min_count: pairs with a smaller count are left out.
        vocabularies: words outside them become unknown; by default every word of the pairs is known.
        progress: called with the numbers of bytes and pairs read so far.
        seen: called with the text of the file, in blocks of whole lines.
        counted: called at the end with the numbers of missing and derived counts; a missing count is read as 1.

    Raises:
        DataError: the file is damaged, a line has fewer than two fields or a malformed count, a pair has no count
            although `min_count` is positive, or no pairs remain.
    """
    parts: list[_Fields] = []
    lines, tally = 0, CountTally()
    for text in blocks(source, _BLOCK_BYTES, whole_groups=False):
        block = pair_fields(text)
        counts = block.counts
        fields = _Fields(text, np.ascontiguousarray(block.places.T), counts)
        if len(malformed := np.flatnonzero(fields.places[1] < 0)):
            line = lines + int(malformed[0]) + 1
            message = "expected `source ||| target`, found no |||"
            raise DataError(source.name, message, line, remedy="train an autoencoder on text")
        check_counts(source.name, block, lines)
        unknown = np.isnan(counts)
        if min_count > 0 and unknown.any():
            message = f"the pair has no count, but a count of at least {min_count:g} is required"
            raise DataError(source.name, message, lines + int(np.argmax(unknown)) + 1, remedy="take pairs of any count")
        counts[unknown] = 1.0
        tally += block.tally
        lines += len(counts)
        parts.append(fields)
        seen(text)
        progress(source.position(), lines)
    counted(tally)
    source_vocabulary, target_vocabulary = vocabularies or (
        _collect_vocabulary(parts, target=False),
        _collect_vocabulary(parts, target=True),
    )
    sources = Phrases.concatenate([tokenise(part.text, *part.side(False), source_vocabulary) for part in parts])
    targets = Phrases.concatenate([tokenise(part.text, *part.side(True), target_vocabulary) for part in parts])
    counts = np.concatenate([np.zeros(0), *(part.counts for part in parts)])
    longest = np.maximum(sources.lengths, targets.lengths)
    shortest = np.minimum(sources.lengths, targets.lengths)
    good = np.flatnonzero((shortest > 0) & (longest <= max_length) & (counts >= min_count))
    if not len(good):
        raise DataError(
            source.name, f"no phrase pair of 1 to {max_length} words a side with a count of at least {min_count:g}"
        )
    pairs = PhrasePairs(
        sources.select(good), targets.select(good), np.maximum(counts[good], 1).astype(np.int64),
        source_vocabulary, target_vocabulary,
    ).merged()  # fmt: skip
    return pairs if vocabularies else _with_used_words(pairs)


def _collect_vocabulary(parts: Sequence[_Fields], target: bool) -> Vocabulary:
    """Return all words of one side, the most frequent first, ties in byte order."""
    symbols = Symbols()
    counts = np.zeros(0, np.int64)
    for part in parts:
        block_counts = np.bincount(symbols.read_fields(part.text, *part.side(target)).words, minlength=len(symbols))
        block_counts[: len(counts)] += counts
        counts = block_counts
    counter: Counter[bytes] = Counter()
    for token, count in zip(symbols.words, counts.tolist(), strict=True):
        if not is_label(np.frombuffer(token, np.uint8), 0, len(token)):
            counter[unescape(token)] += count
    counter.pop(UNKNOWN_WORD, None)
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return Vocabulary([UNKNOWN_WORD, *(word for word, _ in ordered)], [0, *(count for _, count in ordered)])


def _with_used_words(pairs: PhrasePairs) -> PhrasePairs:
    """Remove words that occur only in pairs that were left out, and count the others over distinct pairs."""
    sides = []
    for phrases, vocabulary in (
        (pairs.sources, pairs.source_vocabulary),
        (pairs.targets, pairs.target_vocabulary),
    ):
        counts = np.bincount(phrases.words, minlength=len(vocabulary))
        counts[0] = 0
        # The most frequent word first, ties in byte order; the unknown word remains the first.
        order = sorted(np.flatnonzero(counts).tolist(), key=lambda word: (-counts[word], vocabulary.words[word]))
        kept = Vocabulary(
            [UNKNOWN_WORD, *(vocabulary.words[word] for word in order)], [0, *(int(counts[word]) for word in order)]
        )
        renumber = np.zeros(len(vocabulary), np.int32)
        renumber[order] = np.arange(1, len(order) + 1)
        sides.append((Phrases(phrases.offsets, renumber[phrases.words]), kept))
    (sources, source_vocabulary), (targets, target_vocabulary) = sides
    return PhrasePairs(sources, targets, pairs.counts, source_vocabulary, target_vocabulary)
