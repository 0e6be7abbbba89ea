"""Phrase and reordering tables of a decoder: arrays of the entries that the text to translate can use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.engine.model_lines import MAX_PHRASE_LENGTH
from moses_compat.files.streams import Input
from moses_compat.lines.counts import OF_PAIR, line_counts
from moses_compat.lines.fields import find_separator, gather, is_separator
from moses_compat.lines.numbers import log_scores, read_position
from moses_compat.tables.blocks import Progress, RawBlock, raw_blocks
from moses_compat.tables.parser import Fault, LineScan, TableParser, scan_lines
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF, MINUS, PIPE, is_blank
from phrasetool.kernels.hashing import FNV_BASIS, find_hashed_bytes, fnv
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, FloatArray, Int64Array, Phrases, prefix_sums
from phrasetool.pipeline import run
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import (
    Entries,
    PhraseIndex,
    TranslationTable,
    find_phrase,
    find_phrases,
    index_phrases,
    spans_of,
)

_FACTORS = "factored tables are not supported, and a bar that does not separate factors is written as &#124;"


@exact_kernel
def _read_alignments(
    text: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    offsets: Int64Array,
    points: npt.NDArray[np.int32],
) -> int:
    """Read the alignment fields that follow the scores; return the first malformed line, or -1.

    A point is 256 * source position + target position.
    """
    used = 0
    for line in range(len(starts)):
        end = ends[line]
        bar = find_separator(text, starts[line], end)
        if bar >= 0:
            after = find_separator(text, bar + 3, end)
            stop = after if after >= 0 else end
            i = bar + 3
            while i < stop:
                if is_blank(text[i]) or text[i] == LF or text[i] == CR:
                    i += 1
                    continue
                source, i = read_position(text, i, stop)
                if source < 0 or i == stop or text[i] != MINUS:
                    return line
                target, i = read_position(text, i + 1, stop)
                if target < 0 or source > 255 or target > 255:
                    return line
                points[used] = 256 * source + target
                used += 1
        offsets[line + 1] = used
    return -1


@exact_kernel
def _find_lines(
    text: ByteArray,
    line_offsets: Int64Array,
    known: tuple[ByteArray, Int64Array, npt.NDArray[np.int32]],
    index: PhraseIndex,
    buffer: npt.NDArray[np.int32],
    lines: Int64Array,
) -> int:
    """Write the numbers of the lines whose source is in the index to `lines`, and return their count.

    Two kinds of malformed lines are selected, too, so that the parser reports them: lines that consist of known words
    and have no source field, and lines with a word of several factors (`word|TAG`).

    Args:
        known: the text of known words, the offset of each, and their slots (see `Symbols.tables`).
        buffer: int32, holds the words of the longest phrase of the index.
    """
    words, offsets, slots = known
    count = 0
    for line in range(len(line_offsets) - 1):
        i, end = line_offsets[line], line_offsets[line + 1]
        size = 0
        selected = True
        while selected:
            while i < end and (is_blank(text[i]) or text[i] == LF or text[i] == CR):
                i += 1
            first = i
            h = FNV_BASIS
            factored = False
            while i < end and not (is_blank(text[i]) or text[i] == LF or text[i] == CR or is_separator(text, i, end)):
                factored |= text[i] == PIPE and i > first
                h = fnv(h, text[i])
                i += 1
            if factored:
                break
            if i == first:
                selected = i == end or find_phrase(index, buffer, 0, size) >= 0
                break
            word = slots[find_hashed_bytes(text, first, i, h, words, offsets, slots)]
            selected = word >= 0 and size < len(buffer)
            if selected:
                buffer[size] = word
                size += 1
        if selected:
            lines[count] = line
            count += 1
    return count


@dataclass(frozen=True)
class InputPhrases:
    """Phrases that may be looked up: all word sequences of the text to translate.

    Attributes:
        symbols: source words; those of the text have the first ids.
        sentences: the text.
        index: its word sequences.
    """

    symbols: Symbols
    sentences: Phrases
    index: PhraseIndex

    @classmethod
    def of(cls, text: bytes | ByteArray, longest: int = MAX_PHRASE_LENGTH) -> InputPhrases:
        """Index the phrases of at most `longest` words of a text with one tokenised sentence per line."""
        symbols = Symbols()
        return cls.of_sentences(symbols, symbols.read_lines(text), longest)

    @classmethod
    def of_sentences(cls, symbols: Symbols, sentences: Phrases, longest: int = MAX_PHRASE_LENGTH) -> InputPhrases:
        """Index the phrases of at most `longest` words of sentences whose words are the first of `symbols`."""
        return cls(symbols, sentences, index_phrases(spans_of(sentences, longest))[0])


@dataclass(frozen=True)
class _Lines:
    """The selected lines of a block, with their fields still as text."""

    text: ByteArray
    scan: LineScan
    numbers: Int64Array
    sources: Phrases
    scores: FloatArray


@dataclass(frozen=True)
class _Selector:
    """Selects the lines of a block whose source occurs in the text; a pure function of the block, safe in any thread.

    Other lines are read only up to the first word that the text does not have, so that loading a large table for a few
    sentences is fast.
    """

    name: str
    source: InputPhrases
    columns: int
    check: Callable[[LineScan, int], Sequence[Fault]]

    def __call__(self, block: RawBlock) -> _Lines:
        text, offsets, lines = self._selected(block)
        scan = scan_lines(text, self.columns, range(self.columns), offsets)
        if faults := self.check(scan, 0):
            raise DataError(self.name, faults[0].message, block.first_entry + int(lines[faults[0].entry]) + 1)
        numbers = block.first_entry + lines
        scores = log_scores(self.name, scan.columns, numbers)
        sources = self.source.symbols.read_fields(text, offsets[:-1], scan.source_ends, add=False)
        if len(factored := np.flatnonzero(sources.words < 0)):
            line = int(np.searchsorted(sources.offsets, factored[0], "right")) - 1
            raise DataError(self.name, f"the source has a word with a bar; {_FACTORS}", int(numbers[line]) + 1)
        return _Lines(text, scan, numbers, sources, scores)

    def _selected(self, block: RawBlock) -> tuple[ByteArray, Int64Array, Int64Array]:
        """Return the text of the selected lines, their offsets (and the end of the last), and their line numbers."""
        source = self.source
        lines, buffer = np.empty(block.lines, np.int64), np.empty(int(source.index.longest[0]), np.int32)
        count = _find_lines(block.text, block.line_offsets, source.symbols.tables, source.index, buffer, lines)
        lines = lines[:count]
        text, offsets = gather(block.text, block.line_offsets[lines], block.line_offsets[lines + 1])
        # Read-only, like the texts of blocks for which the kernels were compiled.
        text.flags.writeable = False
        return text, offsets, lines


def _selected_lines(
    path: str, name: str, source: InputPhrases, columns: int, threads: int, progress: Progress | None
) -> Iterator[_Lines]:
    """Yield the selected lines of a table, block by block."""

    def checked_blocks(stream: Input) -> Iterator[RawBlock]:
        for block in raw_blocks(stream):
            if block.scores >= 0 and block.scores != columns:
                message = f"the entries have {block.scores} scores, but the model expects {columns}"
                raise DataError(name, message, block.first_entry + 1)
            yield block
            if progress is not None:
                progress(block.position, block.first_entry + block.lines)

    with Input(path, name) as stream:
        selector = _Selector(name, source, columns, TableParser(scores=columns).faults)
        yield from run(checked_blocks(stream), selector, threads)


def _target_fields(part: _Lines) -> tuple[Int64Array, Int64Array]:
    return part.scan.source_ends + 3, part.scan.target_ends


def load_entries(
    path: str,
    source: InputPhrases,
    targets: Symbols,
    columns: int,
    threads: int = 1,
    progress: Progress | None = None,
    name: str | None = None,
) -> Entries:
    """Read the entries of a phrase table whose source occurs in a text.

    Args:
        path: the table, compressed or not.
        source: the text.
        targets: target words; new ones are added.
        columns: number of scores that each entry must have.
        threads: number of threads for reading.
        progress: called with the number of bytes and of lines read so far.
        name: the table's name in messages; its path if None.

    Raises:
        DataError: a line is not an entry, has a different number of scores, a negative score or a bad alignment.
    """
    name = name or path
    sources, target_phrases, scores, alignments, counts, numbers = [], [], [], [], [], []
    for part in _selected_lines(path, name, source, columns, threads, progress):
        starts, ends = _target_fields(part)
        sources.append(part.sources)
        target_phrases.append(targets.read_fields(part.text, starts, ends))
        scores.append(part.scores)
        after = part.scan.score_ends
        line_ends = part.scan.line_offsets[1:]
        offsets = np.zeros(len(after) + 1, np.int64)
        points = np.empty(int((line_ends - after).sum()) // 4 + 1, np.int32)
        bad = _read_alignments(part.text, after, line_ends, offsets, points)
        if bad >= 0:
            message = "the alignment is not a list of source-target points such as 0-0 1-2"
            raise DataError(name, message, int(part.numbers[bad]) + 1)
        _refuse_bars(name, targets, target_phrases[-1], part.numbers)
        alignments.append(Phrases(offsets, points[: offsets[-1]].copy()))
        counted = line_counts(part.text, part.scan.line_offsets)
        # Leave-one-out scores use only counts that the table states, not derived ones.
        counted.values[counted.derived, OF_PAIR] = np.nan
        counts.append(counted.values.astype(np.float32))
        numbers.append(part.numbers)
    return Entries(
        Phrases.concatenate(sources),
        Phrases.concatenate(target_phrases),
        np.concatenate([np.zeros((0, columns), np.float32), *scores]),
        np.zeros((sum(map(len, scores)), 0), np.float32),
        Phrases.concatenate(alignments),
        np.concatenate([np.zeros((0, 3), np.float32), *counts]),
        np.concatenate([np.zeros(0, np.int64), *numbers]),
        np.zeros(sum(map(len, numbers)), np.int32),
    )


def _refuse_bars(name: str, symbols: Symbols, targets: Phrases, numbers: Int64Array) -> None:
    """Raise DataError for a target phrase with a bar in a word, because Moses would split the word there."""
    used = np.unique(targets.words)
    barred = [word for word in used.tolist() if b"|" in symbols.words[word]]
    if barred:
        position = int(np.flatnonzero(np.isin(targets.words, barred))[0])
        line = int(numbers[np.searchsorted(targets.offsets, position, "right") - 1])
        word = symbols.words[targets.words[position]].decode(errors="replace")
        raise DataError(name, f"the target word {word} has a bar; {_FACTORS}", line + 1)


def load_reordering(
    path: str,
    entries: Entries,
    source: InputPhrases,
    targets: Symbols,
    columns: int,
    source_only: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> FloatArray:
    """Read the reordering scores of entries; if a pair has several lines, the last one is used, as in Moses.

    Args:
        path: the reordering table.
        entries: N phrase-table entries.
        source, targets, threads, progress: as for `load_entries`.
        columns: number of scores that each line must have.
        source_only: whether the lines are `source ||| scores`, conditioned on the source alone.

    Returns:
        float32, shape (N, columns), natural logarithms; 0 for an entry without a line, as in Moses.

    Raises:
        DataError: see `load_entries`; or the last line has no line feed.
    """
    if source_only:
        raise DataError(path, "reordering tables conditioned on the source alone (-f) are not supported; expected -fe")
    index, numbers = index_phrases(_pairs(entries.sources, entries.targets))
    by_pair = np.zeros((len(index.offsets), columns), np.float32)
    for part in _selected_lines(path, path, source, columns, threads, progress):
        if len(part.text) and part.text[-1] != LF:
            message = "the last line has no line feed, so Moses ignores it; add a line feed, or remove the line"
            raise DataError(path, message, int(part.numbers[-1]) + 1)
        starts, ends = _target_fields(part)
        pairs = _pairs(part.sources, targets.read_fields(part.text, starts, ends, add=False))
        rows = find_phrases(index, pairs)
        # The scores of a pair that the phrase table lacks are written to the extra last row.
        by_pair[np.where(rows >= 0, rows, len(by_pair) - 1)] = part.scores
    return by_pair[numbers]


def _pairs(sources: Phrases, targets: Phrases) -> Phrases:
    """Return one phrase for each pair: its source words, -2, and its target words."""
    lengths = np.stack([sources.lengths, np.ones(len(sources), np.int64), targets.lengths], axis=1)
    offsets = prefix_sums(lengths.sum(axis=1))
    words = np.full(offsets[-1], -2, np.int32)
    for phrases, first in ((sources, offsets[:-1]), (targets, offsets[:-1] + lengths[:, 0] + 1)):
        positions = np.arange(len(phrases.words)) + np.repeat(first - phrases.offsets[:-1], phrases.lengths)
        words[positions] = phrases.words
    return Phrases(offsets, words)


def used_pairs(table: TranslationTable, uses: Int64Array) -> bytes:
    """Return lines `source ||| target ||| count` of the used entries, sorted bytewise; see `corpora.training_pairs`.

    Args:
        table: N entries.
        uses: int64, shape (N,), number of uses of each entry; copies and unused entries are left out.
    """
    used = np.flatnonzero((uses > 0) & ~table.copies)
    sources = table.sources_of(used)
    totals: dict[bytes, int] = {}
    for entry, source in zip(used.tolist(), sources.tolist(), strict=True):
        first, last = table.index.offsets[source : source + 2]
        key = b"%s ||| %s" % (
            table.source_symbols.join(table.index.words[first:last]),
            table.target_symbols.join(table.targets[entry]),
        )
        totals[key] = totals.get(key, 0) + int(uses[entry])
    return b"".join(sorted(b"%s ||| %d\n" % pair for pair in totals.items()))
