"""Make a table from a first to a third language out of tables to and from one or several pivot languages.

The tables to and from a pivot language are read into files (`read_leg`), checked for phrases in common
(`check_meeting`), joined batch by batch (`pivot`), and written as lines of Moses' tables (`PivotLines`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.pivot_lines import LegRequest, Orientations, PivotLines, read_leg
from moses_compat.lines.counts import OF_SOURCE, OF_TARGET, CountUse
from moses_compat.lines.scores import TRAINED
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.opening import REORDERING_TABLE, open_table
from phrasetool.errors import DataError
from phrasetool.pipeline import run
from phrasetool.pivot.batches import Middle, SourceBatch, batches
from phrasetool.pivot.composed_alignments import compose_alignments, empty_alignments
from phrasetool.pivot.leg_store import LegStore
from phrasetool.pivot.links import Links, Meeting
from phrasetool.pivot.mistaken_legs import CAPITALS, FIRST, ORDER, SECOND, mistake
from phrasetool.pivot.ways import WayRules, cut_by_ways, number_targets, sum_ways
from phrasetool.watch import NOBODY, Watch

# Of the probability that a first table gives to its middle phrases, the share of those that the second has.  Measured:
# German-English and English-Czech learnt from the same sentences of Multi30k 0.89; Chinese-English and English-Spanish
# of Python's documentation, which share no sentence, 0.24; documentation and captions of pictures 0.03; another middle
# language, or both tables the wrong way round, 0.01 to 0.02.
LEAST_MASS, LOW_MASS = 0.025, 0.15


def check_meeting(names: tuple[str, str], middle: Middle, scan: TableScan) -> None:
    """Refuse tables that hardly meet, and warn of those that meet seldom.

    Args:
        names: of the tables.
        middle: them.
        scan: with `force`, what would be refused is warned of.

    Raises:
        DataError: they hardly meet.
    """
    first, second = names
    coverage = middle.links.coverage
    if coverage.mass >= LOW_MASS or not len(middle.first):
        return
    overlap = describe_overlap(coverage, second)
    why = {
        FIRST: f"; it looks as if {first} were given the wrong way round",
        SECOND: f"; it looks as if {second} were given the wrong way round",
        ORDER: "; it looks as if both were given in the wrong order, or the wrong way round",
        CAPITALS: "; without capitals many more would be: both need one form of the middle language",
        None: "; expected tables whose middle language is tokenised and written alike",
    }[mistake(middle.first, middle.second, coverage.share)]
    if coverage.mass < LEAST_MASS:
        scan.refuse(DataError(first, f"{overlap}{why}", remedy="go on"))
    else:
        scan.warn(f"{first}: {overlap}{why}")


def describe_overlap(coverage: Meeting, second: str) -> str:
    """Describe for users how many middle phrases of the first table are sources of the second."""
    return (
        f"{100 * coverage.share:.0f}% of its {coverage.phrases:,} target phrases ({100 * coverage.share_of_words:.0f}% "
        f"of their tokens, {100 * coverage.mass:.0f}% of their probability) are sources of {second}"
    )


DEFAULT_KEEP = 100
DEFAULT_MEMORY = 2 << 30
# Of the memory, what the entries of a batch may take; as much again is needed while they are brought together.
_SHARE = 3
# Ways that a thread sums up at a time.
_WAYS_AT_ONCE = 1 << 18

# What belongs to the first and to the second leg of a middle language.
Similarities = tuple[SimilaritySource, SimilaritySource]


@dataclass(frozen=True)
class PivotRequest:
    """What is wanted.

    Attributes:
        tables: for each middle language, a table to it and a table from it, with the four scores of Moses' training.
        output: where the table through the middle goes.
        reordering_tables: for each middle language, the reordering tables of both; none without.
        reordering_out: where the reordering table goes.
        similarities: for each middle language, what says how alike both sides of the entries of its tables are.
        columns: more scores, of `pivot_lines.COLUMNS`.
        keep: entries that a source may have; 0: any number.
        least: probability p(t|s) that an entry of `tables` must have.
        least_counts: see `WayRules`.
        count_use: what needs a joint count of each entry; None if nothing does.
        scan: how the tables are read.
        sort: whether they are sorted first.
        memory: bytes for entries; never changes the output.
        folder: for temporary files; None for the system's.
    """

    tables: Sequence[tuple[str, str]]
    output: str
    reordering_tables: Sequence[tuple[str, str]] = ()
    reordering_out: str | None = None
    similarities: Sequence[Similarities] = ()
    columns: tuple[str, ...] = ()
    keep: int = DEFAULT_KEEP
    least: float = 0.0
    least_counts: bool = False
    count_use: CountUse | None = None
    scan: TableScan = field(default_factory=TableScan)
    sort: bool = False
    memory: int = DEFAULT_MEMORY
    folder: str | None = None

    def __post_init__(self) -> None:
        if not self.tables:
            raise ValueError("no tables to join")
        for name, given in (("reordering tables", self.reordering_tables), ("similarities", self.similarities)):
            if given and len(given) != len(self.tables):
                raise ValueError(f"{len(self.tables)} middle languages, but {name} for {len(given)}")
        if bool(self.reordering_tables) != (self.reordering_out is not None):
            raise ValueError("reordering tables to read and one to write need each other")

    @property
    def lines(self) -> PivotLines:
        """What is summed, and how it is written."""
        rules = WayRules(
            len(self.tables), self.keep, self.least, self.least_counts, bool(self.similarities),
            bool(self.reordering_tables),
        )  # fmt: skip
        return PivotLines(self.columns, rules)


@dataclass(frozen=True)
class PivotReport:
    """What was done.

    Attributes:
        entries: that were written.
        sources: of these.
        ways: that lead to them.
        without_alignment: entries of which the best way has no point.
        columns: what the scores behind the four say.
        middles: how much of each first table's middle phrases its second one has.
    """

    entries: int
    sources: int
    ways: int
    without_alignment: int
    columns: tuple[str, ...]
    middles: tuple[Meeting, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def pivot(request: PivotRequest, watch: Watch = NOBODY) -> PivotReport:
    """Write the table, and the reordering table if one is wanted.

    Raises:
        DataError: a table is damaged, is not sorted, has too few scores or is not in step with its reordering table;
            or, unless forced, the tables hardly meet, or no entry comes of them.
        PhraseToolError: a file cannot be written.
        ValueError: an unknown column.
    """
    with contextlib.ExitStack() as outputs:
        # The last one opened is the first one renamed: the table is the last to appear.
        table = outputs.enter_context(Output(request.output))
        beside = outputs.enter_context(Output(request.reordering_out)) if request.reordering_out else None
        middles = [_middle(request, number, watch) for number in range(len(request.tables))]
        return _write(request, middles, table, beside, watch)


def _middle(request: PivotRequest, number: int, watch: Watch) -> Middle:
    """Take in the legs of a middle language."""
    first, second = (_leg(request, number, side, watch) for side in range(2))
    links = Links(first, second, request.memory, request.folder)
    names = [display_name(path) for path in request.tables[number]]
    check_meeting((names[0], names[1]), Middle(first, second, links), replace(request.scan, warn=watch.warn))
    return Middle(first, second, links)


def _leg(request: PivotRequest, number: int, side: int, watch: Watch) -> LegStore:
    scan = replace(request.scan, warn=watch.warn)
    orientations = None
    place = os.path.join(request.folder, "leg") if request.folder else request.output
    if request.reordering_tables:
        path = request.reordering_tables[number][side]
        opened = open_table(path, place, scan, watch, "orientations", sort=request.sort, expected=REORDERING_TABLE)
        with opened as (source, followed):
            orientations = Orientations(source, request.folder, followed)
    similarities = request.similarities[number][side] if request.similarities else None
    leg = LegRequest((OF_SOURCE, OF_TARGET)[side], similarities, orientations, request.folder, request.count_use)
    path = request.tables[number][side]
    with open_table(path, place, scan, watch, "read", sort=request.sort) as (source, followed):
        store, scores, counts = read_leg(source, leg, followed)
    for sentence in counts.sentences("entries through them have no counts"):
        watch.say(f"{source.name}: {sentence}")
    _tell_ignored(source, scores, similarities is not None, watch)
    return store


def _tell_ignored(source: Input, scores: int, similarities: bool, watch: Watch) -> None:
    more = scores - TRAINED
    if more > 0 and not similarities:
        watch.say(f"{source.name}: {more} scores behind the first {TRAINED} are left out")


def _write(
    request: PivotRequest, middles: Sequence[Middle], table: Output, beside: Output | None, watch: Watch
) -> PivotReport:
    lines = request.lines
    entries = sources = ways = without = 0
    total = sum(len(middle.first) for middle in middles)
    with watch.items("join", total, "entry") as tick:
        for batch in batches(middles, request.memory // _SHARE):
            for found in _batch(batch, lines, table, beside, request.scan.threads):
                table.write(found.table)
                if beside:
                    beside.write(found.reordering)
                entries, sources, ways = entries + found.entries, sources + found.sources, ways + found.ways
                without += found.without_alignment
            tick(len(batch.first))
    if total and not entries:
        names = ", ".join(display_name(path) for pair in request.tables for path in pair)
        limit = f" over entries with p(target|source) of {request.least:g} or more" if request.least else ""
        replace(request.scan, warn=watch.warn).refuse(
            DataError(names, f"no source has a way to a target{limit}", remedy="go on")
        )
    coverages = tuple(middle.links.coverage for middle in middles)
    return PivotReport(entries, sources, ways, without, lines.names(), coverages)


@dataclass(frozen=True)
class _Written:
    """Lines of some sources, packed, and what there is of them."""

    table: bytes
    reordering: bytes
    entries: int
    sources: int
    ways: int
    without_alignment: int


def _batch(
    batch: SourceBatch, lines: PivotLines, table: Output, beside: Output | None, threads: int
) -> Iterator[_Written]:
    targets = number_targets(batch.second.targets)

    def work(sources: tuple[int, int]) -> _Written:
        found = sum_ways(batch, targets, *sources, lines.rules)
        points = compose_alignments(batch, found.best)
        text = table.encode(lines.phrase_table(batch, found, points))
        more = beside.encode(lines.reordering_table(batch, found)) if beside else b""
        distinct = int((found.sources[1:] != found.sources[:-1]).sum()) + (len(found) > 0)
        return _Written(text, more, len(found), distinct, int(found.ways.sum()), empty_alignments(points))

    return run(cut_by_ways(batch, _WAYS_AT_ONCE), work, threads)
