"""Outputs of pruning: kept lines, removed lines, reasons, similarities, and counts.

Each sink receives decided blocks: `prepare` does the work that threads can do in parallel, and `write` the work that
must be done in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import Output
from moses_compat.lines.hashes import hash_pairs
from moses_compat.lines.insert_scores import selected_lines
from moses_compat.measures.entry_reader import ReadBlock
from moses_compat.tables.blocks import LineMarks
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import EntryBlock, Mask
from phrasetool.pruning.composition import HashArray
from phrasetool.pruning.decision import Decision, Reasons
from phrasetool.pruning.protection import DEFAULT_COUNT, frequent_rows
from phrasetool.pruning.statistics import OccurrenceCounts, PruneStatistics
from phrasetool.text_splitting import single_spaced

if TYPE_CHECKING:
    from moses_compat.measures.saved_scores import ScoreWriter

# Marks of lines, and their similarities.
Kept = tuple[LineMarks, Scores]


@dataclass(frozen=True)
class DecidedBlock:
    """N entries with decisions.

    Attributes:
        read: the entries.
        decision: decision about them.
        reasons: their scores by each criterion, if known.
    """

    read: ReadBlock
    decision: Decision
    reasons: Reasons | None = None

    @property
    def block(self) -> EntryBlock:
        """The entries."""
        return self.read.block

    @cached_property
    def pruned(self) -> Mask:
        """Mask of the entries that the decision removes, bool, shape (N,)."""
        return self.decision.fails & ~self.decision.protected

    @cached_property
    def keep(self) -> Mask:
        """Mask of the lines to keep, bool, shape (N,); malformed lines as in `ReadBlock.passes`."""
        return self.read.passes & ~self.pruned


class Sink(Protocol):
    """Receiver of decided blocks."""

    def prepare(self, decided: DecidedBlock) -> Any:
        """Do the work that threads can do in parallel."""

    def write(self, prepared: Any) -> None:
        """Do the remaining work with the result of `prepare`; called for all blocks, in order, by one thread."""


@dataclass(frozen=True)
class SelectedLines:
    """Sink that writes the kept or the removed lines, byte-identical and in input order."""

    output: Output
    rejected: bool = False

    def prepare(self, decided: DecidedBlock) -> bytes:
        """Select and compress the lines."""
        block, selected = decided.block, decided.pruned if self.rejected else decided.keep
        return self.output.encode(selected_lines(block.text, block.line_offsets, selected))

    def write(self, prepared: bytes) -> None:
        """Write the lines."""
        self.output.write(prepared)


class SurvivingPairs:
    """Sink that collects the hashes of the kept pairs, one array per block; see `PairSet`."""

    def __init__(self) -> None:
        self.hashes: list[HashArray] = []

    def prepare(self, decided: DecidedBlock) -> HashArray:
        """Hash the kept pairs."""
        block, keep = decided.block, decided.keep
        hashes: HashArray = hash_pairs(block.text, block.line_offsets, keep)[keep]
        return hashes

    def write(self, prepared: HashArray) -> None:
        """Collect the hashes."""
        self.hashes.append(prepared)


@dataclass(frozen=True)
class KeptScores:
    """Sink that writes the similarities of all entries."""

    writer: ScoreWriter

    def __getstate__(self) -> dict[str, Any]:
        # Other processes only prepare blocks.
        return {}

    def prepare(self, decided: DecidedBlock) -> Kept:
        """Return the similarities without the text of the block."""
        assert decided.read.scores is not None
        return LineMarks.of(decided.read.raw, decided.block), decided.read.scores

    def write(self, prepared: Kept) -> None:
        """Write the similarities."""
        self.writer.write(*prepared)


class Decisions:
    """Sink that collects the decisions about all entries, as arrays.

    Attributes:
        blocks: for each block, name -> array of its N entries: `keep`, `fails`, `protected`, bool; `similarity_st` and
            `similarity_ts`, if they were computed while the table streamed; and the scores of each criterion, by its
            name, if they are known.
    """

    def __init__(self) -> None:
        self.blocks: list[dict[str, npt.NDArray[Any]]] = []

    def prepare(self, decided: DecidedBlock) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a block by name."""
        decision, scores, reasons = decided.decision, decided.read.scores, decided.reasons
        arrays: dict[str, npt.NDArray[Any]] = {
            "keep": decided.keep, "fails": decision.fails, "protected": decision.protected
        }  # fmt: skip
        if scores:
            arrays |= zip(("similarity_st", "similarity_ts"), scores.similarities.T, strict=True)
        if reasons:
            arrays |= zip(reasons.names, reasons.criterion_scores.T, strict=True)
        return arrays

    def write(self, prepared: dict[str, npt.NDArray[Any]]) -> None:
        """Collect the arrays."""
        self.blocks.append(prepared)

    def joined(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of all entries by name; only the decisions for a table without entries."""
        if not self.blocks:
            return {name: np.zeros(0, np.bool_) for name in ("keep", "fails", "protected")}
        return {name: np.concatenate([block[name] for block in self.blocks]) for name in self.blocks[0]}


class Counts:
    """Sink that counts kept and removed entries.

    Args:
        frequent: count above which mutual translations are protected; None if none is.

    Attributes:
        total: counts of all blocks so far.
    """

    # The name of removed entries in the statistics.
    CRITERION = "below_threshold"

    def __init__(self, frequent: int | None = None) -> None:
        self.total = PruneStatistics()
        self._frequent = frequent

    def prepare(self, decided: DecidedBlock) -> PruneStatistics:
        """Count one block."""
        block, decision, keep, pruned = decided.block, decided.decision, decided.keep, decided.pruned
        statistics = PruneStatistics(
            entries=len(block),
            sources=len(block.source_lengths) - decided.read.raw.continued,
            kept=int(keep.sum()),
            removed={self.CRITERION: int(pruned.sum())},
            protected=int((decision.fails & decision.protected).sum()),
            settled=decided.read.settled,
            unscored=int((decision.silent & ~block.malformed).sum()),
            malformed_kept=int((block.malformed & keep).sum()),
            malformed_skipped=int((block.malformed & ~keep).sum()),
            occurrences=self._occurrences(decided),
            protected_frequent=self._protected_frequent(decided),
        )
        if decided.reasons:
            statistics.removed_by = decided.reasons.part(pruned).counts()
        statistics.count_lengths(np.repeat(block.source_lengths, np.diff(block.group_offsets)), keep)
        return statistics

    def write(self, prepared: PruneStatistics) -> None:
        """Add the counts."""
        self.total += prepared

    def _occurrences(self, decided: DecidedBlock) -> OccurrenceCounts:
        """Count the occurrences of the block's entries."""
        block, counts = decided.block, decided.read.counts
        limit = DEFAULT_COUNT if self._frequent is None else self._frequent

        def phrases(row: int) -> tuple[str, str]:
            line = block.text[block.line_offsets[row] : block.line_offsets[row + 1]].tobytes()
            source, target = (single_spaced(field) for field in line.split(b"|||", 2)[:2])
            return source.decode("utf-8", "replace"), target.decode("utf-8", "replace")

        occurrences = OccurrenceCounts.of(counts.values, block.malformed, decided.pruned, phrases, limit)
        occurrences.derived = int(np.count_nonzero(counts.derived))
        return occurrences

    def _protected_frequent(self, decided: DecidedBlock) -> int:
        """Count the entries that failed and are frequent mutual translations, where these are protected."""
        if self._frequent is None:
            return 0
        rows = frequent_rows(decided.read.counts.values, self._frequent)
        return int(np.count_nonzero(decided.decision.fails[rows]))
