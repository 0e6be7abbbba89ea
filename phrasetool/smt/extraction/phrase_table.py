"""A phrase table and a reordering table from an aligned bitext: counts, probabilities, lexical weights, alignments.

Every occurrence of a phrase pair is counted; see `occurrences`.  The distinct pairs are in the order of a sorted Moses
table.  Pairs that do not fit in memory are sorted with temporary files; see `counted_rows`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.smt.aligning.alignments import Alignments, Bitext
from phrasetool.smt.extraction.counted_rows import CountedRows, Rows, find
from phrasetool.smt.extraction.lexical import (
    LexicalTable,
    choose_alignments,
    estimate_lexical_table,
    lexical_weights,
    unpack_alignments,
)
from phrasetool.smt.extraction.occurrences import COUNT_WORDS, RowLayout, extract_occurrences, unpack_phrases
from phrasetool.smt.extraction.smoothing import JointCounts, PairStatistics, smoothing_of, translation_probabilities

DEFAULT_MAX_LENGTH = 7
DEFAULT_MEMORY = 2 << 30
# Added to each count (Moses: phrase-extract/lexical-reordering, called with 0.5 by train-model.perl).
DEFAULT_REORDERING_SMOOTHING = 0.5
# Phrase pairs scored at a time: a unit of work for a thread.
_BLOCK_PAIRS = 1 << 16
# Counts of targets may take up the memory divided by this.
_TARGET_SHARE = 4
# Guesses to start from: distinct pairs per sentence pair and targets per pair (Multi30k German-English: 39 and 0.69).
_PAIRS_A_SENTENCE = 40
_TARGETS_A_PAIR = 0.8

_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class ExtractedEntries:
    """N phrase pairs with their scores, in the order of the table.

    Attributes:
        sources, targets: the phrases, as ids of the bitext's symbols.
        counts: of the pairs and their sides.
        scores: float32, shape (N, 4): phi(s|t), lex(s|t), phi(t|s), lex(t|s), the order of Moses.
        alignments: the most frequent alignment of each pair.
        orientations: int64, shape (N, 6), counts of monotone, swap and other: with respect to the previous phrase, then
            to the next.
    """

    sources: Phrases
    targets: Phrases
    counts: JointCounts
    scores: FloatArray
    alignments: Alignments
    orientations: Int64Array

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class PairBlock:
    """Counted phrase pairs that are yet to be scored.

    Attributes:
        rows: uint64, shape (R, W), their occurrences by alignment, sorted.
        first: int64, shape (N + 1,), the first row of each pair.
        joint, source, source_distinct: see `JointCounts`.
    """

    rows: Rows
    first: Int64Array
    joint: Int64Array
    source: Int64Array
    source_distinct: Int64Array

    def __len__(self) -> int:
        return len(self.joint)


@exact_kernel
def _starts(rows: Rows, words: int, starts: npt.NDArray[np.bool_]) -> None:
    """Set starts[i] to whether row i differs from the previous one in its leading words."""
    for i in range(len(rows)):
        starts[i] = i == 0
        for w in range(words):
            if i > 0 and rows[i, w] != rows[i - 1, w]:
                starts[i] = True
                break


def _first_rows(rows: Rows, words: int) -> Int64Array:
    """Return the starts of runs of rows with equal leading words, and the number of rows."""
    starts = np.empty(len(rows), np.bool_)
    _starts(rows, words, starts)
    return np.append(np.flatnonzero(starts), len(rows))


class PhraseTable:
    """The phrase pairs of a bitext.  Use it as a context manager: on exit it removes temporary files.

    Args:
        bitext: sentences and alignments.
        max_length: maximum number of words of a phrase.
        smoothing: of the translation probabilities, a key of `smoothing.METHODS`.
        memory: bytes for the phrase pairs; pairs that do not fit are written to temporary files.
        folder: folder of the temporary files; by default the system's.
        progress: called at intervals with the number of sentence pairs processed.

    Raises:
        ValueError: the length is not from 1 to 50, or the smoothing is unknown.
        PhraseToolError: the disk is full.
    """

    def __init__(
        self,
        bitext: Bitext,
        max_length: int = DEFAULT_MAX_LENGTH,
        smoothing: str = "none",
        memory: int = DEFAULT_MEMORY,
        folder: str | None = None,
        progress: Callable[[int], None] = lambda pairs: None,
    ) -> None:
        if not 1 <= max_length <= 50:
            raise ValueError(f"phrases of at most {max_length} words; expected a limit from 1 to 50")
        self.lexical_table: LexicalTable = estimate_lexical_table(bitext)
        self._layout = layout = RowLayout.of(bitext, max_length)
        with contextlib.ExitStack() as stack:
            self._pairs = stack.enter_context(
                CountedRows(
                    layout.key_words, COUNT_WORDS, memory - memory // _TARGET_SHARE, folder,
                    _PAIRS_A_SENTENCE * len(bitext),
                )
            )  # fmt: skip
            extract_occurrences(bitext, layout, self._pairs, progress)
            guess = int(_TARGETS_A_PAIR * self._pairs.size)
            targets = stack.enter_context(CountedRows(layout.target.words, 2, memory // _TARGET_SHARE, folder, guess))
            self.statistics = PairStatistics.of(np.zeros(0, np.int64))
            for block in self._counted():
                self.statistics += PairStatistics.of(block.joint)
                rows = np.empty((len(block), layout.target.words + 2), np.uint64)
                rows[:, :-2] = block.rows[block.first[:-1], layout.source.words : layout.phrase_words]
                rows[:, -2], rows[:, -1] = block.joint, 1
                targets.add(rows)
            self._targets = targets.table()
            self._smoothing = smoothing_of(smoothing, self.statistics)
            self._stack = stack.pop_all()

    def __len__(self) -> int:
        return self.statistics.pairs

    @property
    def spilled(self) -> bool:
        """Whether temporary files were needed."""
        return self._pairs.spilled

    def _counted(self) -> Iterator[PairBlock]:
        """Yield all pairs, in blocks as large as memory allows; the pairs of a source are never split."""
        layout = self._layout
        for rows in self._pairs.blocks(layout.source.words):
            first = _first_rows(rows, layout.phrase_words)
            joint = np.add.reduceat(_occurrences(rows[:, layout.key_words :]), first[:-1]) if len(rows) else first[:-1]
            pair_rows = rows[first[:-1], : layout.source.words]
            groups = _first_rows(np.ascontiguousarray(pair_rows), layout.source.words)
            distinct = np.diff(groups)
            totals = np.add.reduceat(joint, groups[:-1]) if len(joint) else joint
            yield PairBlock(rows, first, joint, np.repeat(totals, distinct), np.repeat(distinct, distinct))

    def blocks(self) -> Iterator[PairBlock]:
        """Yield all pairs in the order of the table, in blocks for `entries`; may be called repeatedly."""
        for block in self._counted():
            for start in range(0, len(block), _BLOCK_PAIRS):
                part = slice(start, start + _BLOCK_PAIRS)
                first = block.first[start : start + _BLOCK_PAIRS + 1]
                yield PairBlock(
                    block.rows[first[0] : first[-1]], first - first[0],
                    block.joint[part], block.source[part], block.source_distinct[part],
                )  # fmt: skip

    def entries(self, block: PairBlock) -> ExtractedEntries:
        """Score a block; may be called from any thread."""
        layout, rows = self._layout, block.rows
        heads = np.ascontiguousarray(rows[block.first[:-1], : layout.phrase_words])
        sources = unpack_phrases(heads, 0, layout.source, layout.max_length)
        targets = unpack_phrases(heads, layout.source.words, layout.target, layout.max_length)
        target_rows = self._targets[find(self._targets, heads[:, layout.source.words :])]
        counts = JointCounts(
            block.joint, block.source, target_rows[:, -2].astype(np.int64), block.source_distinct,
            target_rows[:, -1].astype(np.int64),
        )  # fmt: skip
        times = rows[:, layout.key_words :]
        offset = layout.phrase_words
        direct, inverse = choose_alignments(rows, _occurrences(times), block.first, offset, layout.max_length)
        scores = np.empty((len(block), 4), np.float32)
        scores[:, 0], scores[:, 2] = translation_probabilities(counts, self._smoothing)
        scores[:, 1], scores[:, 3] = lexical_weights(
            rows, direct, inverse, offset, layout.max_length, sources, targets, self.lexical_table
        )
        halves = [times & _LOWER, times >> _HALF]
        orientations = np.concatenate(halves, axis=1).astype(np.int64)
        if len(block):
            orientations = np.add.reduceat(orientations, block.first[:-1], axis=0)
        alignments = unpack_alignments(rows, direct, offset, layout.max_length)
        return ExtractedEntries(sources, targets, counts, scores, alignments, orientations)

    def __enter__(self) -> PhraseTable:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _occurrences(times: Rows) -> Int64Array:
    """Return the occurrences of rows from their count words: each has one orientation to the previous phrase."""
    return (times & _LOWER).sum(axis=1).astype(np.int64)


def reordering_probabilities(
    counts: Int64Array, smoothing: float = DEFAULT_REORDERING_SMOOTHING
) -> npt.NDArray[np.float64]:
    """Return reordering probabilities (Tillmann 2004, Koehn et al. 2005), as Moses' `wbe-msd-bidirectional-fe`.

    Args:
        counts: int64, shape (N, 6): monotone, swap, other with respect to the previous phrase, then to the next.
        smoothing: number added to every count.

    Returns:
        Probabilities, float64, shape (N, 6); the first three of a row sum to 1, and so do the last three.
    """
    smoothed = counts.reshape(-1, 2, 3) + smoothing
    # Summed from the left, as Moses does.
    total = smoothed[:, :, 0] + smoothed[:, :, 1] + smoothed[:, :, 2]
    return (smoothed / total[:, :, None]).reshape(-1, 6)
