"""What is to be exported, and what was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from moses_compat.jobs.exporting.list_coverage import Coverage
from moses_compat.lines.counts import CountTally
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import TableScan


@dataclass(frozen=True)
class CandidateRequest:
    """A list of candidates that is wanted.

    Attributes:
        table: a phrase table; `-` for standard input.
        output: where the list goes.
        shortlist: whether for single units, with probabilities (Marian), else for phrases (CTranslate2).
        binary: whether the shortlist is written as Marian maps it into memory; needs vocabularies with numbers.
        most: candidates of a source phrase.
        longest: words of a source phrase.
        always: how many of the most frequent target units are always candidates; of a shortlist, Marian is told.
        least: candidates of a phrase that are less probable are left out.
        source_vocabulary, target_vocabulary: files of the units, see `phrasetool.export.vocabularies`.
        evaluate: a text and its translation, to say how many words of the translation are candidates.
        similarities: what says how similar the sides of entries are; the probability of an entry is multiplied by
            exp(s - 1), of the mean s of both directions.
        scan: how the table is read.
        sort: whether it is sorted first.
    """

    table: str
    output: str
    shortlist: bool = False
    binary: bool = False
    most: int = 100
    longest: int = 3
    always: int = 100
    least: float = 0.01
    source_vocabulary: str | None = None
    target_vocabulary: str | None = None
    evaluate: Sequence[str] | None = None
    similarities: SimilaritySource | None = None
    scan: TableScan = field(default_factory=TableScan)
    sort: bool = False

    def __post_init__(self) -> None:
        if self.binary and not (self.shortlist and self.source_vocabulary and self.target_vocabulary):
            raise ValueError("a binary shortlist needs both vocabularies")


@dataclass
class CandidateReport:
    """What was written.

    Attributes:
        entries: lines of the table.
        sources: source phrases that are short enough.
        phrases: those that have candidates in the list.
        candidates: of them all.
        always: units that are always candidates.
        source_units, target_units: shares of the table's words, weighted by how often they were seen, that can be
            written in units of the vocabulary.
        coverage: of the text it was evaluated with.
        counts: how many entries have joint counts.
        unreadable: words left out because they hold a tab or a line end.
    """

    entries: int = 0
    sources: int = 0
    phrases: int = 0
    candidates: int = 0
    always: int = 0
    source_units: float = 1.0
    target_units: float = 1.0
    coverage: Coverage | None = None
    counts: CountTally = field(default_factory=CountTally)
    unreadable: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)
