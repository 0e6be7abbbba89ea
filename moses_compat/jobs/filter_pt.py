"""Filter a phrase table as Moses' filter-pt does: the best entries of each source, and a test of significance.

See contrib/sigtest-filter/filter-pt.cpp in mosesdecoder.  Unlike there, lines stay in their order, no source group is
cut at the border of a block, and no line is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.phrase_index import CorpusIndex
from moses_compat.files.streams import Input, Output
from moses_compat.lines.append_fields import lines_with_fields
from moses_compat.lines.insert_scores import DIRECT_COLUMN, selected_lines
from moses_compat.lines.scores import OK
from moses_compat.tables.blocks import BLOCK_BYTES, FaultPolicy, Progress, RawBlock, raw_blocks
from moses_compat.tables.parser import LineScan, TableParser, scan_lines
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import skip_blanks, token_end
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, EntryBlock, Int64Array, Mask, Phrases
from phrasetool.pipeline import run
from phrasetool.pruning.best_entries import best_of_groups
from phrasetool.pruning.significance import FisherExactTest, Insignificant, count_co_occurrences
from phrasetool.vocabulary import is_label

# The fields that Moses reads; what comes after the seventh, it ignores.
MOSES_FIELDS = 7
# If a side of more than half of so many entries does not occur in the corpora, they are not the table's.
_TRIAL = 10_000


class CorpusMismatchError(DataError):
    """The corpora are not those that the table was made from."""


@dataclass(frozen=True)
class Significance:
    """The test of significance, and what of it to write.

    Attributes:
        source, target: the corpora.
        threshold: entries with a smaller -ln p go.
        hierarchical: look up the runs of words between labels such as `[X]`, not the labels.
        append_counts: add a field ` ||| cfe cf ce`.
        append_values: add a field ` ||| -ln p`.
        force: go on when the corpora do not match the table.

    Raises:
        ValueError: the corpora have different numbers of sentences.
    """

    source: CorpusIndex
    target: CorpusIndex
    threshold: float = 0.0
    hierarchical: bool = False
    append_counts: bool = False
    append_values: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        if self.source.sentences.sentences != self.target.sentences.sentences:
            raise ValueError("the corpora have different numbers of sentences")

    @property
    def appends(self) -> bool:
        """Whether lines get more fields."""
        return self.append_counts or self.append_values


@dataclass
class FilterCounts:
    """What a run did, in lines.

    Attributes:
        entries: read.
        kept: written.
        not_best: removed because others of their source are better.
        insignificant: removed by the test.
        tested: that went through the test.
        absent_sources, absent_targets: tested, though that side does not occur in its corpus.
        wordless: kept without a test, because a side has no word.
        faulty_kept, faulty_skipped: lines that could not be read, passed through or left out.
        fields: of the first entry, 0 if there is none.
    """

    entries: int = 0
    kept: int = 0
    not_best: int = 0
    insignificant: int = 0
    tested: int = 0
    absent_sources: int = 0
    absent_targets: int = 0
    wordless: int = 0
    faulty_kept: int = 0
    faulty_skipped: int = 0
    fields: int = 0

    def __iadd__(self, other: FilterCounts) -> FilterCounts:
        first = self.fields or other.fields
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        self.fields = first
        return self


@dataclass(frozen=True)
class Tested:
    """What the test says of M entries.

    Attributes:
        counts: int64, shape (M, 3): sentence pairs with both, sentences with the source, with the target.
        values: float64, shape (M,): -ln p.
        wordless: bool, shape (M,): a side has no word, so that there is nothing to test.
        absent_sources, absent_targets: bool, shape (M,): that side does not occur in its corpus.
    """

    counts: Int64Array
    values: npt.NDArray[np.float64]
    wordless: Mask
    absent_sources: Mask
    absent_targets: Mask


def filter_table(
    source: Input,
    output: Output,
    *,
    top: int = 0,
    column: int = DIRECT_COLUMN,
    significance: Significance | None = None,
    on_error: str = "fail",
    threads: int = 1,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = lambda position, entries: None,
) -> FilterCounts:
    """Write the entries that are among the best of their source and significant, in their order.

    Args:
        top: keep so many entries of each source, those with the largest score in `column`, ties to the earlier one;
            0 keeps all.  Applied before the test.
        column: 0-based score column.
        significance: the test; none by default.  An entry with a side without words is never removed by it.
        on_error: `fail`, `skip` or `keep`, for lines that are not entries.
        progress: called with the bytes of the file consumed and the entries written so far.

    Raises:
        DataError: the table is damaged, has a faulty line and `on_error` is `fail`, or has no such column.
        CorpusMismatchError: more than half of the first entries do not occur in the corpora.
    """
    work = _BlockFilter(source, output, top, column, significance, FaultPolicy(source.name, on_error))
    trial = CorpusCheck(source.name, significance) if significance and not significance.force else None
    total = FilterCounts()
    held: list[bytes] = []
    for raw, data, counts, tested in run(raw_blocks(source, block_bytes), work, threads):
        total += counts
        held.append(data)
        if trial and tested:
            trial.add(tested)
        # Nothing is written before it is clear that the corpora match.
        if not trial or trial.passed:
            for piece in held:
                output.write(piece)
            held = []
        progress(raw.position, total.entries)
    if trial:
        trial.check()
    for piece in held:
        output.write(piece)
    return total


class _BlockFilter:
    """Filters one block; may be called by several threads."""

    def __init__(
        self, source: Input, output: Output, top: int, column: int, significance: Significance | None,
        policy: FaultPolicy,
    ) -> None:  # fmt: skip
        self._name, self._output = source.name, output
        self._top, self._column = top, column
        self._significance = significance
        self._policy = policy
        if significance:
            self._test = PairTest(significance)
            self._criterion = Insignificant(significance.threshold)

    def __call__(self, raw: RawBlock) -> tuple[RawBlock, bytes, FilterCounts, Tested | None]:
        if self._top and 0 <= raw.scores <= self._column:
            message = f"column {self._column} (from 0) was asked for, but entries have {raw.scores} scores"
            raise DataError(self._name, message, raw.first_entry + 1)
        scan = scan_lines(raw.text, raw.scores, (self._column,) if self._top else ())
        block = _entry_block(raw, scan)
        passed = self._policy.keep_mask(block, TableParser(scores=raw.scores).faults(scan, raw.first_entry))
        best = ~block.faulty
        if self._top:
            best = best_of_groups(block.group_offsets, block.columns[:, 0], self._top, best)
        rows = np.flatnonzero(best)
        tested = None
        if self._significance:
            starts, middles = scan.line_offsets[:-1][rows], scan.source_ends[rows]
            tested = self._test(raw.text, starts, middles, scan.target_ends[rows])
        fails = np.zeros(len(block), np.bool_)
        if tested:
            fails[rows] = self._criterion.fails(tested.values) & ~tested.wordless
        keep = (best & ~fails) | (block.faulty & passed)
        counts = FilterCounts(
            entries=len(block),
            kept=int(keep.sum()),
            not_best=int((~best & ~block.faulty).sum()),
            insignificant=int(fails.sum()),
            faulty_kept=int((block.faulty & passed).sum()),
            faulty_skipped=int((block.faulty & ~passed).sum()),
            fields=_count_fields(raw.text, scan),
        )
        if tested:
            counts.tested = int((~tested.wordless).sum())
            counts.absent_sources = int(tested.absent_sources.sum())
            counts.absent_targets = int(tested.absent_targets.sum())
            counts.wordless = int(tested.wordless.sum())
        return raw, self._encode(block, keep, rows, tested), counts, tested

    def _encode(self, block: EntryBlock, keep: Mask, rows: Int64Array, tested: Tested | None) -> bytes:
        significance = self._significance
        if tested and significance and significance.appends:
            counts = np.zeros((len(block), 3 * significance.append_counts), np.int64)
            values = np.zeros((len(block), int(significance.append_values)), np.float64)
            if significance.append_counts:
                counts[rows] = tested.counts
            if significance.append_values:
                values[rows, 0] = tested.values
            text = lines_with_fields(block, keep, counts, values)
        else:
            text = selected_lines(block, keep)
        return self._output.encode(text)


class PairTest:
    """Tests pairs of phrases; may be called by several threads."""

    def __init__(self, significance: Significance) -> None:
        self._significance = significance
        self._test = FisherExactTest(significance.source.sentences.sentences)

    @property
    def alpha(self) -> float:
        """-ln p of a pair that occurs once, together."""
        return self._test.alpha

    def __call__(self, text: ByteArray, starts: Int64Array, source_ends: Int64Array, target_ends: Int64Array) -> Tested:
        """Test the pairs of M entries of a text.

        Args:
            text: uint8.
            starts, source_ends, target_ends: int64, shape (M,), where the lines begin, and their first two `|||`.
        """
        significance = self._significance
        sides = [
            (significance.source, starts, source_ends),
            (significance.target, source_ends + 3, target_ends),
        ]
        phrases: list[Phrases] = []
        parts: list[Int64Array | None] = []
        wordless = np.zeros(len(starts), np.bool_)
        for corpus, firsts, ends in sides:
            borders = None
            if significance.hierarchical:
                firsts, ends, borders = _terminal_runs(text, firsts, ends)
            found = corpus.symbols.read_fields(text, firsts, ends, add=False)
            phrases.append(found)
            parts.append(borders)
            wordless |= np.diff(borders) == 0 if borders is not None else found.lengths == 0
        indexes = significance.source.sentences, significance.target.sentences
        pairs = count_co_occurrences(*indexes, phrases[0], phrases[1], parts[0], parts[1])
        values = self._test.negative_log_p(pairs.joint, pairs.source, pairs.target)
        counts = np.column_stack([pairs.joint, pairs.source, pairs.target])
        return Tested(counts, values, wordless, (pairs.source == 0) & ~wordless, (pairs.target == 0) & ~wordless)


class CorpusCheck:
    """Watches whether the first entries of a table occur in the corpora at all."""

    def __init__(self, table: str, significance: Significance) -> None:
        self._table = table
        self._significance = significance
        self._absent = np.zeros((0, 2), np.bool_)
        self.passed = False

    def add(self, tested: Tested) -> None:
        """Look at the next entries.

        Raises:
            CorpusMismatchError: enough were seen, and more than half have a side that does not occur.
        """
        if not self.passed:
            absent = np.column_stack([tested.absent_sources, tested.absent_targets])[~tested.wordless]
            self._absent = np.concatenate([self._absent, absent])[:_TRIAL]
            if len(self._absent) == _TRIAL:
                self.check()

    def check(self) -> None:
        """Decide, after the last entry at the latest.

        Raises:
            CorpusMismatchError: see `add`.
        """
        if 2 * int(self._absent.any(axis=1).sum()) > len(self._absent):
            sources, targets = self._absent.sum(axis=0).tolist()
            raise CorpusMismatchError(
                self._table,
                f"of its first {len(self._absent):,} entries, {sources:,} have a source that does not occur in "
                f"{self._significance.source.name}, {targets:,} a target that does not occur in "
                f"{self._significance.target.name}; another corpus, other tokens, or the two swapped?",
            )
        self.passed = True


def _entry_block(raw: RawBlock, scan: LineScan) -> EntryBlock:
    """The lines of a block; phrases and their lengths are left out."""
    nothing = Phrases(np.zeros(1, np.int64), np.zeros(0, np.int32))
    return EntryBlock(
        raw.index, raw.first_entry, raw.text, scan.line_offsets, scan.score_ends, scan.group_offsets,
        np.zeros(0, np.int64), nothing, nothing, scan.faults != OK, scan.columns,
    )  # fmt: skip


def _count_fields(text: ByteArray, scan: LineScan) -> int:
    """Fields of the first entry; 0 if there is none."""
    good = np.flatnonzero(scan.faults == OK)
    if not len(good):
        return 0
    line: bytes = text[scan.line_offsets[good[0]] : scan.line_offsets[good[0] + 1]].tobytes()
    return line.count(b"|||") + 1


@exact_kernel
def _find_runs(
    text: ByteArray, starts: Int64Array, ends: Int64Array, run_starts: Int64Array, run_ends: Int64Array,
    borders: Int64Array,
) -> None:  # fmt: skip
    """Split fields at labels: field i has the runs borders[i]..borders[i + 1] - 1."""
    count = 0
    for field in range(len(starts)):
        inside = False
        i = skip_blanks(text, starts[field], ends[field])
        while i < ends[field]:
            first = i
            i = token_end(text, i, ends[field])
            if is_label(text, first, i):
                inside = False
            else:
                if not inside:
                    run_starts[count] = first
                    count += 1
                    inside = True
                run_ends[count - 1] = i
            i = skip_blanks(text, i, ends[field])
        borders[field + 1] = count


def _terminal_runs(text: ByteArray, starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The runs of words between the labels of N fields: starts, ends, and the first run of each field (N + 1)."""
    # Two runs have a label of three bytes or more and two blanks between them.
    room = int(((ends - starts) // 6 + 1).sum())
    run_starts, run_ends = np.empty((2, room), np.int64)
    borders = np.zeros(len(starts) + 1, np.int64)
    _find_runs(text, starts, ends, run_starts, run_ends, borders)
    return run_starts[: borders[-1]], run_ends[: borders[-1]], borders
