"""Extracted phrase pairs as lines of Moses' tables: phrase table, reordering table, lexical tables.

The text equals the output of `consolidate`, `lexical-reordering-score` and `train-model.perl`, byte for byte.  As in
Moses, counts of a million or more are rounded to six digits, but probabilities are computed from the exact counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Output
from moses_compat.lines.fields import write_bars
from moses_compat.lines.numbers import MAX_WIDTH, write_integer, write_numbers
from phrasetool import pipeline
from phrasetool.kernels.bytes import LF, MINUS, SPACE, copy_bytes
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.lexical import LexicalTable
from phrasetool.smt.extraction.phrase_table import (
    DEFAULT_REORDERING_SMOOTHING,
    ExtractedEntries,
    PairBlock,
    PhraseTable,
    reordering_probabilities,
)

# Moses' empty word in lexical tables.
_NULL_WORD = b"NULL"


@borrowing_kernel
def _write_words(
    out: ByteArray, place: int, ids: Int32Array, first: int, last: int, text: ByteArray, offsets: Int64Array
) -> int:
    """Write words, each followed by a space; return the offset after them."""
    for k in range(first, last):
        place = copy_bytes(text, offsets[ids[k]], offsets[ids[k] + 1], out, place)
        out[place] = SPACE
        place += 1
    return place


@exact_kernel
def _format(
    sources: Int32Array,
    source_offsets: Int64Array,
    source_text: ByteArray,
    source_text_offsets: Int64Array,
    targets: Int32Array,
    target_offsets: Int64Array,
    target_text: ByteArray,
    target_text_offsets: Int64Array,
    values: npt.NDArray[np.float64],
    with_more: bool,
    alignment_offsets: Int64Array,
    aligned_source: Int32Array,
    aligned_target: Int32Array,
    counts: npt.NDArray[np.float64],
    out: ByteArray,
) -> int:
    """Write one line per pair: phrases and values, and if `with_more`, the further fields of a phrase table."""
    position = 0
    for i in range(len(source_offsets) - 1):
        position = _write_words(
            out, position, sources, source_offsets[i], source_offsets[i + 1], source_text, source_text_offsets
        )
        position = write_bars(out, position)
        out[position] = SPACE
        position = _write_words(
            out, position + 1, targets, target_offsets[i], target_offsets[i + 1], target_text, target_text_offsets
        )
        position = write_bars(out, position)
        position = write_numbers(out, position, values[i])
        if with_more:
            out[position] = SPACE
            position = write_bars(out, position + 1)
            # Points ascend by target position here.
            for t in range(target_offsets[i + 1] - target_offsets[i]):
                for p in range(alignment_offsets[i], alignment_offsets[i + 1]):
                    if aligned_target[p] == t:
                        out[position] = SPACE
                        position = write_integer(out, position + 1, aligned_source[p])
                        out[position] = MINUS
                        position = write_integer(out, position + 1, t)
            out[position] = SPACE
            position = write_bars(out, position + 1)
            position = write_numbers(out, position, counts[i])
            # No sparse features, no properties.
            for _ in range(2):
                out[position] = SPACE
                position = write_bars(out, position + 1)
        out[position] = LF
        position += 1
    return position


def _format_lines(
    entries: ExtractedEntries,
    symbols: tuple[Symbols, Symbols],
    values: npt.NDArray[np.floating],
    counts: npt.NDArray[np.float64] | None,
) -> ByteArray:
    arguments: list[npt.NDArray[np.generic]] = []
    size = len(entries) * (48 + (values.shape[1] + 3) * (MAX_WIDTH + 1))
    for phrases, language in zip((entries.sources, entries.targets), symbols, strict=True):
        text, offsets = language.text
        # A space follows each word.
        size += int(np.diff(offsets)[phrases.words].sum()) + len(phrases.words)
        arguments += [phrases.words, phrases.offsets, text, offsets]
    points = entries.alignments
    # A point takes a space, a minus, and positions that are below 100 in a phrase.
    out = np.empty(size + 6 * len(points.source), np.uint8)
    used = _format(
        *arguments, np.ascontiguousarray(values, np.float64), counts is not None,
        points.offsets, points.source, points.target, np.zeros((0, 3)) if counts is None else counts, out,
    )  # fmt: skip
    return out[:used]


def format_phrase_table(entries: ExtractedEntries, symbols: tuple[Symbols, Symbols]) -> ByteArray:
    """Return lines of a phrase table: four scores, alignment, counts c(t) c(s) c(s,t), and two empty fields.

    Args:
        entries: phrase pairs.
        symbols: words of the source and the target language.
    """
    counts = np.stack([entries.counts.target, entries.counts.source, entries.counts.joint], axis=1)
    return _format_lines(entries, symbols, entries.scores, counts.astype(np.float64))


def format_reordering_table(
    entries: ExtractedEntries, symbols: tuple[Symbols, Symbols], smoothing: float = DEFAULT_REORDERING_SMOOTHING
) -> ByteArray:
    """Return lines of a reordering table `wbe-msd-bidirectional-fe`: three probabilities backward, three forward."""
    return _format_lines(entries, symbols, reordering_probabilities(entries.orientations, smoothing), None)


def format_lexical_tables(table: LexicalTable, source: Symbols, target: Symbols) -> tuple[bytes, bytes]:
    """Return the sorted lines of `lex.f2e` (`target source w(t|s)`) and of `lex.e2f` (`source target w(s|t)`)."""
    source_words, target_words = [_NULL_WORD, *source.words], [_NULL_WORD, *target.words]
    pairs = [
        (source_words[s], target_words[t]) for s, t in zip(table.sources.tolist(), table.targets.tolist(), strict=True)
    ]
    forward = [b"%s %s %.7f\n" % (t, s, p) for (s, t), p in zip(pairs, table.target_given_source, strict=True)]
    backward = [b"%s %s %.7f\n" % (s, t, p) for (s, t), p in zip(pairs, table.source_given_target, strict=True)]
    return b"".join(sorted(forward)), b"".join(sorted(backward))


def write_extraction(
    table: PhraseTable,
    source: Symbols,
    target: Symbols,
    phrase_table: str,
    reordering_table: str | None = None,
    lexical: tuple[str, str] | None = None,
    reordering_smoothing: float = DEFAULT_REORDERING_SMOOTHING,
    threads: int = 1,
    progress: Callable[[int], None] = lambda pairs: None,
) -> None:
    """Write extracted tables to files; the phrase table is the last file to appear.

    Args:
        table: the extracted phrase pairs and lexical tables.
        source, target: words of the two languages.
        phrase_table: path of the phrase table, or `-` for standard output.
        reordering_table: path of the reordering table, or `-`; None to write none.
        lexical: paths of the lexical tables, `.f2e` first; None to write none.
        reordering_smoothing: added to each count of an orientation.
        threads: number of blocks that are scored and compressed in parallel.
        progress: called with the number of phrase pairs written so far.

    Raises:
        PhraseToolError: a file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        # The output that is opened last is renamed first.
        outputs = [stack.enter_context(Output(path)) for path in (phrase_table, reordering_table) if path]
        if lexical:
            for path, text in zip(lexical, format_lexical_tables(table.lexical_table, source, target), strict=True):
                stack.enter_context(Output(path)).write(text)

        def work(block: PairBlock) -> tuple[int, list[bytes]]:
            entries = table.entries(block)
            texts = [format_phrase_table(entries, (source, target))]
            if reordering_table:
                texts.append(format_reordering_table(entries, (source, target), reordering_smoothing))
            return len(block), [o.encode(t) for t, o in zip(texts, outputs, strict=True)]

        written = 0
        for pairs, texts in pipeline.run(table.blocks(), work, threads):
            for text, output in zip(texts, outputs, strict=True):
                output.write(text)
            written += pairs
            progress(written)
