"""Prune a phrase table: score every entry, select, write the survivors byte for byte."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moses_compat.files.streams import STANDARD, Input
from moses_compat.jobs.sinks import PrunedBlock, TableWriter, Verdict
from moses_compat.lines.insert_scores import unscale_scores
from moses_compat.measures.saved_similarities import SavedScores, ScoreWriter
from moses_compat.tables.blocks import FaultPolicy, RawBlock, TableScan, raw_blocks
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.models.bilingual import BilingualModel
from phrasetool.phrases import EntryBlock
from phrasetool.pipeline import run
from phrasetool.pruning.reasons import Reasons
from phrasetool.pruning.selection import KeepBest
from phrasetool.pruning.semantic import BelowThreshold, strength
from phrasetool.pruning.sizes import SizeCurve
from phrasetool.pruning.statistics import PruneStatistics
from phrasetool.scoring.scorer import Scores


@dataclass(frozen=True)
class ModelScores:
    """Similarities computed by a model."""

    model: BilingualModel

    @property
    def signature(self) -> str:
        """The model's part of the signature line."""
        return self.model.signature


@dataclass(frozen=True)
class ColumnScores:
    """Similarities read from two score columns of the table itself.

    Args:
        source_to_target, target_to_source: 0-based positions in the score field.
        scale: how they were written; see `score_columns`.
    """

    source_to_target: int
    target_to_source: int
    scale: str = "exp"

    @property
    def signature(self) -> str:
        """The columns' part of the signature line."""
        return f"columns:{self.source_to_target + 1},{self.target_to_source + 1}|scale:{self.scale}"


@dataclass(frozen=True)
class FileScores:
    """Similarities kept by an earlier run."""

    path: str

    @property
    def signature(self) -> str:
        """The signature of the model that made them."""
        signature: str = SavedScores(self.path).signature
        return signature


Similarities = ModelScores | ColumnScores | FileScores


@dataclass(frozen=True)
class ScoredBlock:
    """A block on its way.

    Attributes:
        raw: what was read.
        block: its entries, with the score columns that were asked for besides those of the similarities.
        scores: the similarities.
        keep: bool, shape (N,), the lines that fault handling lets through.
    """

    raw: RawBlock
    block: EntryBlock
    scores: Scores
    keep: npt.NDArray[np.bool_]


def no_columns(scores: int) -> Sequence[int]:
    """Ask for no score columns."""
    return ()


class BlockScorer:
    """Parses and scores raw blocks; may be called by several threads.

    Args:
        source: the table.
        similarities: where they come from.
        scan: how it is read.
        fingerprints: whether to fingerprint every pair.
        columns: which score columns to read besides, from 0, given how many an entry has.
    """

    def __init__(
        self,
        source: Input,
        similarities: Similarities,
        scan: TableScan,
        fingerprints: bool = False,
        columns: Callable[[int], Sequence[int]] = no_columns,
    ) -> None:
        self._policy = FaultPolicy(source.name, scan.on_error)
        self._similarities = similarities
        self._fingerprints = fingerprints
        self._columns = columns
        self._source = source
        self._scan = scan
        self._scorer = similarities.model.scorer() if isinstance(similarities, ModelScores) else None
        self.saved = SavedScores(similarities.path) if isinstance(similarities, FileScores) else None

    def inputs(self) -> Iterator[tuple[RawBlock, tuple[npt.NDArray[np.uint32], Scores] | None]]:
        """Raw blocks, each with its rows of saved similarities."""
        for raw in raw_blocks(self._source, self._scan.block_bytes):
            yield raw, self.saved.take(raw.lines) if self.saved else None

    def __call__(self, item: tuple[RawBlock, tuple[npt.NDArray[np.uint32], Scores] | None]) -> ScoredBlock:
        """Work on one of the `inputs`."""
        raw, rows = item
        similarities = self._similarities
        model = similarities.model if isinstance(similarities, ModelScores) else None
        columns: Sequence[int] = ()
        if isinstance(similarities, ColumnScores):
            columns = (similarities.source_to_target, similarities.target_to_source)
            if raw.scores >= 0 and max(columns) >= raw.scores:
                raise DataError(
                    self._source.name,
                    f"column {max(columns) + 1} was asked for, but entries have {raw.scores} scores",
                    raw.first_entry + 1,
                )
        parser = TableParser(
            model.source_vocabulary if model else None,
            model.target_vocabulary if model else None,
            raw.scores,
            (*columns, *self._columns(raw.scores)),
            self._fingerprints or rows is not None,
        )
        block, faults = parser(raw.index, raw.first_entry, raw.text)
        values, block.columns = block.columns[:, : len(columns)], block.columns[:, len(columns) :]
        keep = self._policy.keep_mask(block, faults)
        if self._scorer is not None:
            scores = self._scorer.score(block)
        elif rows is not None and self.saved is not None:
            self.saved.check(self._source.name, block, rows[0])
            scores = Scores(rows[1].similarities, rows[1].opinion & ~block.faulty)
        else:
            assert isinstance(similarities, ColumnScores)
            scores = Scores(unscale_scores(values, similarities.scale), ~block.faulty)
        return ScoredBlock(raw, block, scores, keep)


def prune_table(
    source: Input,
    writer: TableWriter,
    similarities: Similarities,
    criterion: BelowThreshold,
    best: KeepBest,
    scan: TableScan,
    save: ScoreWriter | None = None,
) -> PruneStatistics:
    """Write the entries that pass the criterion or are protected; see `BelowThreshold` and `KeepBest`.

    Lines that stay are byte-identical to the input and in its order.

    Args:
        save: receives the similarities.

    Raises:
        DataError: the table is damaged, has a faulty line, or does not fit the saved similarities.
    """
    scorer = BlockScorer(source, similarities, scan, fingerprints=save is not None)

    def work(item: tuple[RawBlock, tuple[npt.NDArray[np.uint32], Scores] | None]) -> tuple[ScoredBlock, PrunedBlock]:
        scored = scorer(item)
        scores = scored.scores
        marks = best.marks(scored.block, scores)
        fails = criterion.fails(scores)
        reasons = Reasons(("semantic",), strength(scores).astype(np.float32)[:, None], fails[:, None])
        return scored, writer.prepare(scored.block, Verdict(scored.keep, fails, marks, ~scores.opinion, reasons))

    total = PruneStatistics()
    for scored, part in run(scorer.inputs(), work, scan.threads):
        writer.write(part)
        if save:
            save.write(scored.block.fingerprints, scored.scores)
        total += part.statistics
        scan.progress(scored.raw.position, total.entries)
    if scorer.saved:
        scorer.saved.finish(source.name, total.entries)
    return total


def measure_sizes(
    source: Input,
    similarities: Similarities,
    best: KeepBest,
    scan: TableScan,
    thresholds: Sequence[float] = (),
    save: ScoreWriter | None = None,
) -> SizeCurve:
    """Count how many entries each threshold leaves, in one pass, writing no table.

    Args:
        thresholds: where exact counts are wanted.
        save: receives the similarities.

    Raises:
        DataError: as `prune_table`.
    """
    scorer = BlockScorer(source, similarities, scan, fingerprints=save is not None)

    def work(
        item: tuple[RawBlock, tuple[npt.NDArray[np.uint32], Scores] | None],
    ) -> tuple[ScoredBlock, npt.NDArray[np.float64]]:
        scored = scorer(item)
        strengths = strength(scored.scores)
        strengths[best.marks(scored.block, scored.scores)] = np.inf
        return scored, strengths[scored.keep]

    curve = SizeCurve(thresholds)
    done = 0
    for scored, strengths in run(scorer.inputs(), work, scan.threads):
        curve.add(strengths)
        if save:
            save.write(scored.block.fingerprints, scored.scores)
        done += len(scored.block)
        scan.progress(scored.raw.position, done)
    if scorer.saved:
        scorer.saved.finish(source.name, done)
    return curve


@contextlib.contextmanager
def scratch_scores(beside: str) -> Iterator[str]:
    """A path for similarities that are needed only until the block ends, beside the file `beside` if it is a file."""
    special = beside == STANDARD or (os.path.exists(beside) and not os.path.isfile(beside))
    folder = None if special else os.path.dirname(os.path.abspath(beside))
    with tempfile.TemporaryDirectory(prefix=".phrasetool-", dir=folder) as scratch:
        yield os.path.join(scratch, "scores.parquet")
