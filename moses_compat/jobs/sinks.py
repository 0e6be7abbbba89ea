"""The end of the way of a pruned table: lines that stay, lines that go, and what is counted of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moses_compat.files.streams import Output
from moses_compat.lines.insert_scores import selected_lines
from moses_compat.lines.pair_hashes import HashArray, hash_pairs
from phrasetool.phrases import EntryBlock, Mask
from phrasetool.pruning.reasons import Reasons
from phrasetool.pruning.statistics import PruneStatistics

if TYPE_CHECKING:
    from moses_compat.jobs.reasons import ReasonsWriter, RecordBatch


@dataclass(frozen=True)
class Verdict:
    """What was decided about the N entries of a block; bool, shape (N,).

    Attributes:
        passes: what fault handling lets through.
        fails: what the criterion would remove.
        protected: what stays whatever the criterion says.
        silent: the criterion has no opinion of these.
        reasons: what each criterion says of them, if that is known.
    """

    passes: Mask
    fails: Mask
    protected: Mask
    silent: Mask
    reasons: Reasons | None = None

    def part(self, rows: slice, passes: Mask) -> Verdict:
        """What was decided about some of the entries."""
        reasons = self.reasons.part(rows) if self.reasons else None
        return Verdict(passes, self.fails[rows], self.protected[rows], self.silent[rows], reasons)


@dataclass(frozen=True)
class PrunedBlock:
    """A block ready to be written.

    Attributes:
        kept, rejected: bytes in the form of their files.
        hashes: of the pairs that stay, if they were wanted.
        reasons: rows for the file of reasons, if they were wanted.
        statistics: of this block.
    """

    kept: bytes
    rejected: bytes
    hashes: HashArray | None
    reasons: RecordBatch | None
    statistics: PruneStatistics


@dataclass(frozen=True)
class TableWriter:
    """Writes pruned blocks.

    Attributes:
        output: receives the lines that stay, byte-identical and in their order.
        criterion: its name in the statistics.
        rejected: receives the lines that are pruned.
        surviving: receives the hashes of the pairs of the lines written, an array a block; see `PairSet`.
        reasons: receives what was decided about the entries that failed, where verdicts have reasons.
    """

    output: Output
    criterion: str
    rejected: Output | None = None
    surviving: list[HashArray] | None = None
    reasons: ReasonsWriter | None = None

    def prepare(self, block: EntryBlock, verdict: Verdict) -> PrunedBlock:
        """Select, compress and count; may be called by several threads."""
        pruned = verdict.fails & ~verdict.protected
        keep = verdict.passes & ~pruned
        statistics = PruneStatistics(
            entries=len(block),
            sources=len(block.source_lengths),
            kept=int(keep.sum()),
            removed={self.criterion: int(pruned.sum())},
            protected=int((verdict.fails & verdict.protected).sum()),
            without_opinion=int((verdict.silent & ~block.faulty).sum()),
            faulty_kept=int((block.faulty & keep).sum()),
            faulty_skipped=int((block.faulty & ~keep).sum()),
        )
        if verdict.reasons:
            statistics.removed_by = verdict.reasons.part(pruned).counts()
        statistics.count_lengths(np.repeat(block.source_lengths, np.diff(block.group_offsets)), keep)
        return PrunedBlock(
            self.output.encode(selected_lines(block, keep)),
            self.rejected.encode(selected_lines(block, pruned)) if self.rejected else b"",
            hash_pairs(block.text, block.line_offsets, keep)[keep] if self.surviving is not None else None,
            self._rows_of(block, verdict, keep),
            statistics,
        )

    def _rows_of(self, block: EntryBlock, verdict: Verdict, keep: Mask) -> RecordBatch | None:
        if self.reasons is None or verdict.reasons is None:
            return None
        return self.reasons.rows(block, verdict.fails, keep, verdict.reasons)

    def write(self, part: PrunedBlock) -> None:
        """Write a block; blocks must come in order."""
        self.output.write(part.kept)
        if self.rejected:
            self.rejected.write(part.rejected)
        if self.surviving is not None and part.hashes is not None:
            self.surviving.append(part.hashes)
        if self.reasons and part.reasons is not None:
            self.reasons.write(part.reasons)
