"""The end of the way of a pruned table: lines that stay, lines that go, reasons, similarities, and what is counted.

Each sink takes decided blocks: `prepare` does what threads can do at the same time, `write` what must happen in order.
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
    """N entries of which it is decided whether they stay.

    Attributes:
        read: the entries.
        decision: about them.
        reasons: what each criterion says of them, if that is known.
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
        """bool, shape (N,): what goes by the decision."""
        return self.decision.fails & ~self.decision.protected

    @cached_property
    def keep(self) -> Mask:
        """bool, shape (N,): what stays, faulty lines as fault handling says."""
        return self.read.passes & ~self.pruned


class Sink(Protocol):
    """Takes decided blocks."""

    def prepare(self, decided: DecidedBlock) -> Any:
        """Do what threads can do at the same time."""

    def write(self, prepared: Any) -> None:
        """Do the rest, with what `prepare` returned; called for all blocks, in order, by one thread."""


@dataclass(frozen=True)
class SelectedLines:
    """Writes the lines that stay, or those that go, byte-identical and in their order."""

    output: Output
    rejected: bool = False

    def prepare(self, decided: DecidedBlock) -> bytes:
        """Select and compress."""
        block, wanted = decided.block, decided.pruned if self.rejected else decided.keep
        return self.output.encode(selected_lines(block.text, block.line_offsets, wanted))

    def write(self, prepared: bytes) -> None:
        """Write."""
        self.output.write(prepared)


class SurvivingPairs:
    """Collects the hashes of the pairs that stay, an array a block; see `PairSet`."""

    def __init__(self) -> None:
        self.hashes: list[HashArray] = []

    def prepare(self, decided: DecidedBlock) -> HashArray:
        """Hash."""
        block, keep = decided.block, decided.keep
        hashes: HashArray = hash_pairs(block.text, block.line_offsets, keep)[keep]
        return hashes

    def write(self, prepared: HashArray) -> None:
        """Collect."""
        self.hashes.append(prepared)


@dataclass(frozen=True)
class KeptScores:
    """Keeps the similarities of all entries."""

    writer: ScoreWriter

    def __getstate__(self) -> dict[str, Any]:
        # In another process it prepares, and does not write.
        return {}

    def prepare(self, decided: DecidedBlock) -> Kept:
        """Take them out of the block, whose text goes."""
        assert decided.read.scores is not None
        return LineMarks.of(decided.read.raw, decided.block), decided.read.scores

    def write(self, prepared: Kept) -> None:
        """Write."""
        self.writer.write(*prepared)


class Decisions:
    """Collects what was decided about every entry, as arrays.

    Attributes:
        blocks: for each block, name -> array of its N entries: `keep`, `fails`, `protected`, bool; `similarity_st` and
            `similarity_ts`, where the table was asked about as it streamed; and what each criterion says, by its name,
            where that was found out.
    """

    def __init__(self) -> None:
        self.blocks: list[dict[str, npt.NDArray[Any]]] = []

    def prepare(self, decided: DecidedBlock) -> dict[str, npt.NDArray[Any]]:
        """Name them."""
        decision, scores, reasons = decided.decision, decided.read.scores, decided.reasons
        found: dict[str, npt.NDArray[Any]] = {
            "keep": decided.keep, "fails": decision.fails, "protected": decision.protected
        }  # fmt: skip
        if scores:
            found |= zip(("similarity_st", "similarity_ts"), scores.similarities.T, strict=True)
        if reasons:
            found |= zip(reasons.names, reasons.worths.T, strict=True)
        return found

    def write(self, prepared: dict[str, npt.NDArray[Any]]) -> None:
        """Collect."""
        self.blocks.append(prepared)

    def joined(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array of all entries; of a table without any, `keep` alone."""
        if not self.blocks:
            return {"keep": np.zeros(0, np.bool_)}
        return {name: np.concatenate([block[name] for block in self.blocks]) for name in self.blocks[0]}


class Counts:
    """Counts what becomes of the entries.

    Args:
        frequent: count above which mutual translations are protected; None if none is.

    Attributes:
        total: of all blocks so far.
    """

    # What the statistics call an entry that went.
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
            without_opinion=int((decision.silent & ~block.faulty).sum()),
            faulty_kept=int((block.faulty & keep).sum()),
            faulty_skipped=int((block.faulty & ~keep).sum()),
            occurrences=self._occurrences(decided),
            protected_frequent=self._protected_frequent(decided),
        )
        if decided.reasons:
            statistics.removed_by = decided.reasons.part(pruned).counts()
        statistics.count_lengths(np.repeat(block.source_lengths, np.diff(block.group_offsets)), keep)
        return statistics

    def write(self, prepared: PruneStatistics) -> None:
        """Add."""
        self.total += prepared

    def _occurrences(self, decided: DecidedBlock) -> OccurrenceCounts:
        """Count the occurrences of the block's entries."""
        block, counts = decided.block, decided.read.counts
        limit = DEFAULT_COUNT if self._frequent is None else self._frequent

        def phrases(row: int) -> tuple[str, str]:
            line = block.text[block.line_offsets[row] : block.line_offsets[row + 1]].tobytes()
            source, target = (single_spaced(field) for field in line.split(b"|||", 2)[:2])
            return source.decode("utf-8", "replace"), target.decode("utf-8", "replace")

        found = OccurrenceCounts.of(counts.values, block.faulty, decided.pruned, phrases, limit)
        found.derived = int(np.count_nonzero(counts.derived))
        return found

    def _protected_frequent(self, decided: DecidedBlock) -> int:
        """Count the entries that failed and are frequent mutual translations, where these are protected."""
        if self._frequent is None:
            return 0
        rows = frequent_rows(decided.read.counts.values, self._frequent)
        return int(np.count_nonzero(decided.decision.fails[rows]))
