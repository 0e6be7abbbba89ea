"""Inspection of a table in one streaming pass: fields, scores, counts, order, oddities, and support by Moses' programs.

The treatment of odd lines by each program is known from the sources of mosesdecoder (2025-02, 34452895): RuleTable/
LoaderStandard.cpp, Phrase.cpp, TargetPhrase.cpp; moses2 PhraseTableMemory.cpp; CompactPT/PhraseTableCreator.cpp and
BlockHashIndex; OnDiskPt/Main.cpp; probingpt/storing.cpp and StoreTarget.cpp; and observed in the programs themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.files.kinds import HEAD_BYTES, guess
from moses_compat.files.paths import is_stream
from moses_compat.files.streams import Input
from moses_compat.lines import oddities as odd
from moses_compat.lines.numbers import FEW_FIELDS, IS_NAN, NOT_A_NUMBER, WRONG_COUNT
from moses_compat.tables.blocks import BLOCK_BYTES, Progress, RawBlock, raw_blocks
from moses_compat.tables.parser import Fault, LineScan, TableParser, scan_lines
from moses_compat.tables.source_order import SourceGroups, read_prefixes
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.pipeline import run
from phrasetool.text_splitting import split_lines, split_words

_BINS = 20
_SHOWN_FAULTS = 5
GROUP_SIZES = ("1", "2-5", "6-10", "11-20", "21-100", "more")
# Moses floors logarithms at -100: a score below this is equivalent to zero.
_AS_ZERO = 3.7e-44

# Flags of a line -> their names in the summary.
FLAG_NAMES = {
    odd.BLANK: "blank line",
    odd.EMPTY_SOURCE: "empty source",
    odd.EMPTY_TARGET: "empty target",
    odd.LABEL_AT_END: "label at the end",
    odd.BRACKET_INSIDE: "bracket inside",
    odd.NON_TERMINALS: "non-terminals differ",
    odd.BAD_ALIGNMENT: "bad alignment",
    odd.NO_ALIGNMENT: "no alignment",
    odd.ALIGNMENT_BEYOND: "alignment beyond the phrase",
    odd.BAD_COUNTS: "bad counts",
    odd.SPARSE: "sparse scores",
    odd.BAD_SPARSE: "bad sparse scores",
    odd.PROPERTIES: "properties",
    odd.BAD_PROPERTY: "bad property",
    odd.UNKNOWN_PROPERTY: "unknown property",
    odd.EXTRA_FIELDS: "more than 7 fields",
    odd.CARRIAGE_RETURN: "carriage return",
    odd.TAB: "tab",
    odd.DOUBLE_SPACE: "double space",
    odd.GAP: "gap between tokens",
    odd.TIGHT: "no space next to |||",
    odd.POINTS_WITHOUT_TARGET: "alignment of an empty target",
    odd.BEYOND_TOKENS: "alignment beyond the tokens",
    odd.BEYOND_TARGET: "alignment beyond the target",
    odd.PHRASE_GAP: "gap inside a phrase",
    odd.BARS_ONLY: "token of bars",
    odd.ZERO_BYTE: "zero byte",
    odd.BRACKETS: "token in brackets",
    odd.EMPTY_BRACKETS: "empty brackets",
    odd.TARGET_NON_TERMINAL: "non-terminal of the target alone",
}
_FAULTS = {
    FEW_FIELDS: "fewer than 3 fields",
    NOT_A_NUMBER: "score is not a number",
    WRONG_COUNT: "a different number of scores",
    IS_NAN: "score is NaN",
}


@dataclass
class ColumnSummary:
    """One score column.

    Attributes:
        smallest, largest, total: smallest, largest and sum of the scores of all entries.
        zeros, negatives: numbers of entries with such a score; Moses reads 0 as -100 and cannot use a negative score.
        histogram: int64, shape (20,), numbers of entries by score in [0, 1]; other scores are in the end bins.
    """

    smallest: float = np.inf
    largest: float = -np.inf
    total: float = 0.0
    zeros: int = 0
    negatives: int = 0
    histogram: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, np.int64))

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> ColumnSummary:
        """Summarise scores, shape (N,)."""
        if not len(values):
            return cls()
        bins = np.clip((np.clip(values, 0, 1) * _BINS).astype(np.int64), 0, _BINS - 1)
        # Infinities of both signs have no sum.
        with np.errstate(invalid="ignore", over="ignore"):
            total = float(values.sum())
        return cls(
            float(values.min()), float(values.max()), total, int((values == 0).sum()),
            int((values < 0).sum()), np.bincount(bins, minlength=_BINS),
        )  # fmt: skip

    def add(self, other: ColumnSummary) -> None:
        """Add the scores of more entries."""
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)
        self.total += other.total
        self.zeros += other.zeros
        self.negatives += other.negatives
        self.histogram = self.histogram + other.histogram


@dataclass
class Oddity:
    """Lines with the same unusual property.

    Attributes:
        lines: number of lines.
        first: number of the first line, from 1.
    """

    lines: int
    first: int


@dataclass
class TableSummary:
    """Summary of a table.

    Attributes:
        kind: `phrase table`, `rule table`, or another kind that the file appears to be.
        entries: number of lines.
        sources: number of source groups.
        bytes: size of the text.
        fields: numbers of lines by number of fields.
        scores: number of scores per entry, -1 if there is no valid line.
        columns: a summary per score.
        group_sizes: numbers of sources with 1, 2-5, 6-10, 11-20, 21-100, more entries.
        factors: most frequent numbers of factors of a source and of a target token.
        counts: numbers of entries for each of `COUNT_KINDS`.
        oddities: name -> lines; the names are those of this module.
        rules: number of lines with a left-hand side on both sides.
        faults: number of malformed lines.
        first_faults: the first few malformed lines.
        prefixes_known: whether the prefixes of sources were examined.
    """

    kind: str = "empty table"
    entries: int = 0
    sources: int = 0
    bytes: int = 0
    fields: Counter[int] = field(default_factory=Counter)
    scores: int = -1
    columns: list[ColumnSummary] = field(default_factory=list)
    group_sizes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(GROUP_SIZES), np.int64))
    factors: tuple[int, int] = (1, 1)
    counts: Counter[str] = field(default_factory=Counter)
    oddities: dict[str, Oddity] = field(default_factory=dict)
    rules: int = 0
    faults: int = 0
    first_faults: list[Fault] = field(default_factory=list)
    prefixes_known: bool = False

    def note(self, name: str, lines: int, first: int) -> None:
        """Add lines to an oddity.

        Args:
            first: number of the first line, from 1.
        """
        if not lines:
            return
        known = self.oddities.setdefault(name, Oddity(0, first))
        known.lines += lines
        known.first = min(known.first, first)

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        columns = [{**column.__dict__, "histogram": column.histogram.tolist()} for column in self.columns]
        mean = [column.total / max(self.entries - self.faults, 1) for column in self.columns]
        for column, value in zip(columns, mean, strict=True):
            del column["total"]
            column["mean"] = value
        return {
            "kind": self.kind,
            "entries": self.entries,
            "sources": self.sources,
            "bytes": self.bytes,
            "fields": {str(number): lines for number, lines in sorted(self.fields.items())},
            "scores": max(self.scores, 0),
            "columns": [{k: v if np.isfinite(np.sum(v)) else None for k, v in column.items()} for column in columns],
            "entries_per_source": dict(zip(GROUP_SIZES, self.group_sizes.tolist(), strict=True)),
            "counts": {kind: self.counts[kind] for kind in odd.COUNT_KINDS},
            "factors": {"source": self.factors[0], "target": self.factors[1]},
            "oddities": {name: oddity.__dict__ for name, oddity in sorted(self.oddities.items())},
            "faults": self.faults,
        }


# A block, and the line before it.
_Item = tuple[RawBlock, ByteArray]


@dataclass(frozen=True)
class _BlockSummary:
    """The summary of a block."""

    raw: RawBlock
    summary: TableSummary
    look: odd.LineProperties
    source_hashes: Int64Array
    group_sizes: Int64Array


def inspect_table(
    source: Input,
    progress: Progress = lambda position, entries: None,
    threads: int = 1,
    block_bytes: int = BLOCK_BYTES,
) -> TableSummary:
    """Read a table once and summarise it; takes 9 bytes of memory per source group, and twice that at the end.

    Raises:
        DataError: the file cannot be read, or is certainly not a table in text form.
    """
    head = source.peek(HEAD_BYTES)
    total = TableSummary()
    groups = SourceGroups()
    tokens, first_lines = np.zeros((2, odd.MOST_FACTORS + 1), np.int64), np.zeros((2, odd.MOST_FACTORS + 1), np.int64)
    for block in run(_items(source, block_bytes), _look_at_block, threads):
        part = block.summary
        if part.columns and not total.columns:
            total.scores, total.columns = part.scores, [ColumnSummary() for _ in part.columns]
        for column, more in zip(total.columns, part.columns, strict=True):
            column.add(more)
        total.fields.update(part.fields)
        total.group_sizes += part.group_sizes
        total.counts.update(part.counts)
        for name, oddity in part.oddities.items():
            total.note(name, oddity.lines, oddity.first)
        groups.add(block.source_hashes, block.group_sizes)
        new = (tokens == 0) & (block.look.tokens_by_factors > 0)
        first_lines[new] = total.entries + block.look.first_lines[new] + 1
        tokens += block.look.tokens_by_factors
        total.entries += part.entries
        total.sources += part.sources
        total.bytes += part.bytes
        total.rules += part.rules
        total.faults += part.faults
        total.first_faults += part.first_faults[: _SHOWN_FAULTS - len(total.first_faults)]
        progress(block.raw.position, total.entries)
    total.note("source not contiguous", *groups.returning())
    if source.has_mark:
        total.note("byte order mark", 1, 1)
    _note_factors(total, tokens, first_lines)
    _note_first_line(total, head)
    total.kind = _kind(total, head)
    _note_prefixes(total, source)
    return total


def _note_prefixes(total: TableSummary, source: Input) -> None:
    """Record problems of source prefixes for programs that store these; the table is read again if possible."""
    rules = total.kind.startswith("rule table")
    if not (rules or "out of order" in total.oddities) or is_stream(source.path):
        return
    with Input(source.path, source.name) as again:
        prefixes = read_prefixes(again, rules)
    total.note("first words come back", prefixes.returning, prefixes.first)
    total.prefixes_known = True
    if rules and prefixes.overfull:
        total.note("too many beginnings", total.rules, 1)


def _items(source: Input, block_bytes: int) -> Iterator[_Item]:
    before = np.zeros(0, np.uint8)
    for raw in raw_blocks(source, block_bytes):
        yield raw, before
        feeds = np.flatnonzero(raw.text[:-1] == 10)
        before = raw.text[feeds[-1] + 1 :] if len(feeds) else raw.text


def _look_at_block(item: _Item) -> _BlockSummary:
    """Summarise a block; the result depends only on the block and on the line before it."""
    raw, before = item
    scan = scan_lines(raw.text, raw.scores, range(max(raw.scores, 0)), raw.line_offsets)
    look = odd.line_properties(raw.text, scan.line_offsets)
    faults = TableParser(scores=raw.scores).faults(scan, raw.first_entry)
    sizes = np.diff(scan.group_offsets)
    part = TableSummary(
        entries=int(raw.lines), sources=len(sizes), bytes=len(raw.text), fields=Counter(look.fields.tolist()),
        scores=raw.scores, faults=len(faults), first_faults=list(faults[:_SHOWN_FAULTS]),
    )  # fmt: skip
    good = scan.faults == 0
    part.columns = [ColumnSummary.of(column) for column in scan.columns[good].T]
    part.group_sizes = np.bincount(np.searchsorted([1, 5, 10, 20, 100], sizes), minlength=len(GROUP_SIZES))
    part.rules = int(((look.flags & odd.RULE) > 0).sum())
    kinds = np.bincount(look.counts[good], minlength=len(odd.COUNT_KINDS)).tolist()
    part.counts = Counter(dict(zip(odd.COUNT_KINDS, kinds, strict=True)))
    first = int(raw.first_entry) + 1
    for flag, name in FLAG_NAMES.items():
        _note_lines(part, name, (look.flags & flag) > 0, first)
    for fault, name in _FAULTS.items():
        # Blank lines have a separate name.
        _note_lines(part, name, (scan.faults == fault) & ((look.flags & odd.BLANK) == 0), first)
    # A program that accepts any word as a number still counts the words.
    wrong = np.flatnonzero(scan.faults == NOT_A_NUMBER)
    if len(wrong):
        miscounted = wrong[odd.count_scores_of(raw.text, scan.line_offsets, wrong) != raw.scores]
        part.note(_FAULTS[WRONG_COUNT], len(miscounted), first + int(miscounted[0]) if len(miscounted) else 0)
    _note_scores(part, scan, good, first)
    not_utf8 = odd.lines_not_utf8(raw.text, scan.line_offsets)
    part.note("not UTF-8", len(not_utf8), first + int(not_utf8[0]) if len(not_utf8) else 0)
    _note_order(part, raw, before, scan.line_offsets)
    _note_duplicates(part, look.pair_hashes, sizes, first)
    return _BlockSummary(raw, part, look, look.source_hashes[scan.group_offsets[:-1]], sizes)


def odd_lines(text: ByteArray, line_offsets: Int64Array) -> dict[str, Oddity]:
    """Return the oddities of lines, regardless of their scores, by name.

    Args:
        text: uint8.
        line_offsets: int64, shape (N + 1,).
    """
    part = TableSummary()
    flags = odd.line_properties(text, line_offsets).flags
    every = int(np.bitwise_or.reduce(flags)) if len(flags) else 0
    for flag, name in FLAG_NAMES.items():
        if every & flag:
            _note_lines(part, name, (flags & flag) > 0, 1)
    return part.oddities


def _note_lines(part: TableSummary, name: str, mask: npt.NDArray[np.bool_], first: int) -> None:
    if mask.any():
        part.note(name, int(mask.sum()), first + int(mask.argmax()))


def _note_scores(part: TableSummary, scan: LineScan, good: npt.NDArray[np.bool_], first: int) -> None:
    values = scan.columns
    for name, wrong in (
        ("zero score", (values >= 0) & (values <= _AS_ZERO)),
        ("negative score", values < 0),
        ("infinite score", values > np.finfo(np.float32).max),
    ):
        _note_lines(part, name, wrong.any(axis=1) & good, first)


def _note_order(part: TableSummary, raw: RawBlock, before: ByteArray, line_offsets: Int64Array) -> None:
    text, first = raw.text, int(raw.first_entry)
    for name, trimmed in (("out of order", False), ("out of order without blanks", True)):
        if trimmed and "out of order" not in part.oddities:
            continue
        count, line = odd.lines_out_of_order(text, line_offsets, trimmed)
        part.note(name, count, first + line + 1)
        if len(before):
            # The border with the previous block.
            both = np.concatenate([before, text[: line_offsets[1]]])
            count, _ = odd.lines_out_of_order(both, np.array([0, len(before), len(both)]), trimmed)
            part.note(name, count, first + 1)


def _note_duplicates(part: TableSummary, hashes: Int64Array, sizes: Int64Array, first: int) -> None:
    """Record duplicate pairs of a source group."""
    if len(hashes) < 2:
        return
    order = np.lexsort((hashes, np.repeat(np.arange(len(sizes)), sizes)))
    ordered = hashes[order]
    group = np.repeat(np.arange(len(sizes)), sizes)[order]
    # The order is stable, so the second of two equal pairs is the later line.
    again = order[1:][(ordered[1:] == ordered[:-1]) & (group[1:] == group[:-1]) & (ordered[1:] != 0)]
    if len(again):
        part.note("duplicate pair", len(again), first + int(again.min()))


def _note_factors(total: TableSummary, tokens: Int64Array, first_lines: Int64Array) -> None:
    """Record the most frequent number of factors of each side, tokens with others, and those with too many."""
    factors = [int(side[1:].argmax()) + 1 for side in tokens]
    total.factors = factors[0], factors[1]
    for side, (name, most) in enumerate(zip(("source", "target"), factors, strict=True)):
        for count in range(1, odd.MOST_FACTORS + 1):
            # Too many factors remain too many if most tokens have them.
            if tokens[side, count] and (count != most or count == odd.MOST_FACTORS):
                kind = "too few factors" if count < most else "stray |"
                kind = "too many factors" if count == odd.MOST_FACTORS else kind
                total.note(f"{kind} in a {name}", int(tokens[side, count]), int(first_lines[side, count]))


def _note_first_line(total: TableSummary, head: bytes) -> None:
    """Record problems of the first line in Moses' text loader (moses/TranslationModel/RuleTable/LoaderFactory.cpp)."""
    if not head:
        return
    tokens = split_words(split_lines(head)[0])
    if not tokens:
        total.note("empty first line", 1, 1)
    elif len(tokens) == 1:
        total.note("first line of one token", 1, 1)
    elif tokens[:2] == [b"[X]", b"|||"]:
        total.note("first line of the Hiero format", 1, 1)


def _kind(total: TableSummary, head: bytes) -> str:
    good = total.entries - total.faults
    if not total.entries:
        return "empty table"
    if not good or total.fields[3] == total.entries:
        guessed = guess(head)
        if guessed is not None and (not good or guessed.name != "phrase pairs"):
            return guessed.name
        if not good:
            return "not a phrase table"
    if 2 * total.rules > good:
        return "rule table (SCFG)"
    if total.fields[3] == total.entries and total.scores == 1 and total.columns[0].largest > np.e:
        # A score of a table is a probability, or the constant 2.718 of the phrase penalty.
        return "phrase pairs with counts"
    if total.fields[3] == total.entries and _looks_like_orientations(total):
        return "phrase table, or a reordering table"
    return "phrase table"


def _looks_like_orientations(total: TableSummary) -> bool:
    """Return whether the scores may be probabilities of three or four orientations, once or for both directions."""
    for width in (3, 4):
        if total.scores in (width, 2 * width):
            means = [column.total / (total.entries - total.faults) for column in total.columns]
            sums = [sum(means[k : k + width]) for k in range(0, total.scores, width)]
            if all(abs(value - 1) < 1e-3 for value in sums):
                return True
    return False


@dataclass(frozen=True)
class Objection:
    """A problem of a table for a program.

    Attributes:
        reason: the problem and its consequence.
        lines: number of affected lines.
        first: number of the first affected line, from 1.
        stops: whether the program cannot use the table; otherwise it reads the table, but not as written.
    """

    reason: str
    lines: int
    first: int
    stops: bool


@dataclass(frozen=True)
class LoaderVerdict:
    """Whether a program supports a table.

    Attributes:
        loader: the program.
        options: its options for the number of scores of this table.
        objections: its problems with the table; those that stop it first, then by line.
    """

    loader: str
    options: str
    objections: list[Objection] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """`yes`, `yes, but` or `no`."""
        if not self.objections:
            return "yes"
        return "no" if self.objections[0].stops else "yes, but"


_NEGATIVE = {"negative score": "a score is negative: its logarithm is not a number, and poisons every hypothesis"}
_ZERO = {"zero score": "a score is 0, which is read as exp(-100)"}
_INFINITE = {"infinite score": "a score is infinite"}
_SHORT = {
    "blank line": "a blank line",
    "fewer than 3 fields": "fewer than 3 fields",
}
_BAD_ALIGNMENT = {"bad alignment": "the alignment field holds more than source-target points"}
_NO_POINTS = {"bad alignment": "an alignment that is not a list of points is not read as one"}
_SIDES = ("source", "target")
_STRAY = {
    f"stray | in a {side}": f"| in a {side} token that the others lack: the token is cut there" for side in _SIDES
}
_TOO_MANY = {f"too many factors in a {side}": f"a {side} token with more than 4 factors" for side in _SIDES}
_FACTORS = {
    **_TOO_MANY,
    **{f"too few factors in a {side}": f"a {side} token with fewer factors than others" for side in _SIDES},
}
_DROPS = {
    "sparse scores": "sparse scores are left out",
    "properties": "properties are left out",
}
_JUNK = {"score is not a number": "a score that is not a number is read as far as it is one, or as 0"}
_BEYOND_FLOAT = {**_JUNK, "infinite score": "a score beyond a float's range is read as 0, or as the largest float"}
_LABEL = {"label at the end": "a last token in brackets is taken for a label and removed"}
_PROPERTY = {
    "bad property": "the seventh field holds more than {{Key value}}",
    "unknown property": "a property that Moses does not know",
}
_BEYOND_TARGET = {
    "alignment beyond the target": "an alignment point lies beyond the target, which is not checked; at one far beyond"
    " it the decoder crashes",
}
_MARK = {"byte order mark": "a byte order mark is taken for a part of the first word, which is then not found"}
_SCORE_COUNT = "a different number of scores"
_RETURNS = {"source not contiguous": "a source occurs again after other sources: sort the table"}
_BARS = {"token of bars": "a token of bars alone has no factor"}

# Loader -> oddities that stop it, and oddities that it accepts but does not read as written.
_RULES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "moses": (
        {
            "empty first line": "the first line is empty",
            "first line of one token": "the first line is a single word, taken for a format's number",
            "first line of the Hiero format": "the first line begins with `[X] |||`, taken for the Hiero format",
            **_SHORT,
            "score is not a number": "a score is not a number",
            "score is NaN": "a score is NaN",
            _SCORE_COUNT: "a different number of scores than on the lines before",
            **_BAD_ALIGNMENT,
            "alignment of an empty target": "an alignment point of an empty target, at which the decoder crashes",
            "bracket inside": "a token in brackets inside a phrase is not of the form [A][B]",
            "non-terminals differ": "the alignment does not pair each non-terminal with one of the other side",
            **_PROPERTY,
            **_FACTORS,
            **_NEGATIVE,
        },
        {
            **_MARK, **_ZERO, **_INFINITE, **_LABEL, **_STRAY, **_BARS,
            "alignment beyond the phrase": "an alignment point lies beyond the phrase, which is not checked",
            **_BEYOND_TARGET,
            "non-terminal of the target alone": "a non-terminal of the target alone is written as its label",
            "empty source": "lines with an empty source are left out",
            "bad sparse scores": "the sixth field is not a list of names and numbers",
        },
    ),
    "moses2": (
        {
            **_SHORT, **_BAD_ALIGNMENT, **_NEGATIVE, **_BARS,
            "score is NaN": "a score is NaN",
            _SCORE_COUNT: "a different number of scores, which is not checked: weights go to other columns",
        },
        {**_MARK, **_ZERO, **_INFINITE, **_STRAY, **_FACTORS, **_DROPS, **_JUNK, **_BEYOND_TARGET},
    ),
    "processPhraseTableMin": (
        {
            **_SHORT, **_NEGATIVE, **_RETURNS,
            _SCORE_COUNT: "a different number of scores",
            "out of order without blanks": "not sorted: sort with LC_ALL=C",
            "alignment beyond the tokens": "an alignment point lies beyond the phrase, whose entry is lost",
            "gap inside a phrase": "two spaces or a tab between tokens, which hide the entry",
            **_TOO_MANY,
        },
        {
            "no alignment": "no alignment: needs -encoding None",
            "bad alignment": "an alignment that is not a list of points: needs -encoding None",
            "duplicate pair": "a pair occurs twice, which its hash cannot hold: needs -encoding None",
            **_MARK, **_ZERO, **_BEYOND_FLOAT, **_STRAY, **_DROPS, **_BARS,
            "score is NaN": "a score that is NaN is read as 0",
            "empty source": "lines with an empty source are of no use",
        },
    ),
    "CreateOnDiskPt": (
        {
            **_SHORT, **_NEGATIVE, **_RETURNS, **_PROPERTY, **_BARS,
            "first words come back": "the first words of a source come back after others: sort the table",
            "no space next to |||": "no space on a side of |||",
            "tab": "a tab, which does not separate here",
            "zero byte": "a zero byte, which ends the line",
            _SCORE_COUNT: "a different number of scores, which is not checked: memory is overwritten",
            "empty target": "an empty target, which the decoder refuses",
            "alignment beyond the target": "an alignment point beyond the target, at which the decoder crashes",
            "empty brackets": "a token of empty brackets, which its vocabulary cannot hold",
            "stray | in a target": "a target token with more factors than others",
            "too many factors in a target": _TOO_MANY["too many factors in a target"],
        },
        {
            "out of order": "not sorted: it fails where the first words of a source come back",
            "token in brackets": "the brackets of a token in brackets are removed",
            **_MARK, **_ZERO, **_BEYOND_FLOAT, **_NO_POINTS,
            "stray | in a source": _STRAY["stray | in a source"],
            "too many factors in a source": _TOO_MANY["too many factors in a source"],
            "score is NaN": "a score that is NaN is read as 0",
        },
    ),
    "CreateProbingPT": (
        {
            **_SHORT, **_NEGATIVE, **_RETURNS, **_BARS,
            _SCORE_COUNT: "a different number of scores, which is not checked: all that follows is garbage",
            "gap between tokens": "two spaces or a tab between tokens make an empty token",
            "empty source": "an empty source, with which the decoder cannot load the table",
            "empty target": "an empty target, with which the decoder cannot load the table",
            "score is NaN": "a score is NaN",
            "too many beginnings": "its hash table has room for 1.2 keys a source, and these rules need more",
        },
        {**_MARK, **_ZERO, **_INFINITE, **_JUNK, **_STRAY, **_TOO_MANY, **_DROPS, **_NO_POINTS},
    ),
}  # fmt: skip


def objections_of(loader: str, oddities: Mapping[str, Oddity]) -> list[Objection]:
    """Return the problems of a table for a program; those that stop it first, then by line.

    Args:
        loader: the program.
        oddities: name -> lines, as `TableSummary` has them.
    """
    stops, misread = _RULES[loader]
    objections = [
        Objection(reason, oddities[name].lines, oddities[name].first, names is stops)
        for names in (stops, misread)
        for name, reason in names.items()
        if name in oddities
    ]
    return sorted(objections, key=lambda objection: (not objection.stops, objection.first))


def verdicts(summary: TableSummary) -> list[LoaderVerdict]:
    """Return verdicts of Moses' programs on a table read by `inspect_table`; none for a file that is not a table."""
    if summary.entries - summary.faults <= 0 or "table" not in summary.kind:
        return []
    rules = summary.kind.startswith("rule table")
    scores = summary.scores
    for_memory = f"num-features={scores}"
    if summary.factors != (1, 1):
        for_memory += f" {factor_options(summary.factors)}"
    options = {
        "moses": for_memory,
        "moses2": for_memory,
        "processPhraseTableMin": f"-nscores {scores}" + ("" if scores == 4 else " -rankscore 2" if scores > 2 else ""),
        "CreateOnDiskPt": f"{summary.factors[0]} {summary.factors[1]} {scores} 100 {min(2, scores - 1)}",
        "CreateProbingPT": f"--num-scores {scores}" + (" --scfg" if rules else ""),
    }
    # In a rule table, a label at the end is correct.
    harmless = {"label at the end", "token in brackets"} if rules else set[str]()
    if summary.prefixes_known:
        # The prefixes matter, not the order.
        harmless |= {"out of order"}
    results = []
    for loader in _RULES:
        objections = objections_of(
            loader, {name: odd for name, odd in summary.oddities.items() if name not in harmless}
        )
        if rules and loader == "processPhraseTableMin":
            objections.insert(0, Objection("rule tables are not supported", summary.rules, 1, True))
        results.append(LoaderVerdict(loader, options[loader], objections))
    return results


def factor_options(factors: tuple[int, int]) -> str:
    """Return the arguments of a moses.ini for these numbers of factors of a source and a target token."""
    source, target = (",".join(map(str, range(count))) for count in factors)
    return f"input-factor={source} output-factor={target}"
