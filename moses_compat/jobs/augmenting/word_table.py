"""The entries of a table whose source is one word, and the words of texts that have none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moses_compat.corpora.texts import line_blocks
from moses_compat.files.streams import Input
from moses_compat.jobs.augmenting.new_lines import FLAG, TEXT
from moses_compat.lines.counts import LARGEST_COUNT, OF_SOURCE
from moses_compat.lines.trained_scores import TRAINED, require_trained_scores
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.augment.word_entries import WordEntries, WordEntry
from phrasetool.errors import DataError
from phrasetool.phrases import EntryBlock, Mask
from phrasetool.pipeline import run
from phrasetool.text_splitting import single_spaced, split_lines, split_words

# source ||| target ||| scores ||| alignment ||| counts
_COUNTS = 4
_UNSET, _SET = "1", f"{FLAG:.6g}"

Row = tuple[str, WordEntry, float, Sequence[str]]


@dataclass(frozen=True)
class WordTable:
    """What a table says of words.

    Attributes:
        entries: those that were learnt from a bitext.
        known: all words that have entries.
        rare: word -> all its targets, of words that were learnt from a bitext and seen so seldom as was asked for.
        augmented: whether others have flags, so that the last columns are those of an earlier run.
        uncounted: how many words lack a valid count c(s); they are taken as seen once.
    """

    entries: WordEntries
    known: Collection[str]
    rare: Mapping[str, Collection[str]]
    augmented: bool
    uncounted: int


def read_words(source: Input, columns: int, scan: TableScan, rare: int = 0) -> WordTable:
    """Read the entries whose source is one word; they are held in memory.

    Args:
        source: a table with the four scores of Moses' training, at its beginning.
        columns: sources of evidence, each with a column of flags if the table was augmented before.
        scan: how it is read.
        rare: words are rare that were seen at most so often.

    Raises:
        DataError: the table is damaged, has a faulty line and the scan says `fail`, has fewer scores, has factors, or
            has flags in other columns; or words are rare by their counts, and an entry has no count c(s).
    """

    def work(raw: RawBlock) -> tuple[RawBlock, list[Row]]:
        block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
        scan.passes(source.name, block.faulty, faults)
        return raw, [_row(source.name, raw, number, rare > 0) for number in np.flatnonzero(of_one_word(block)).tolist()]

    entries: dict[str, list[WordEntry]] = {}
    flagged: dict[str, list[WordEntry]] = {}
    counts: dict[str, float] = {}
    targets: dict[str, set[str]] = {}
    uncounted: set[str] = set()
    done, flags = 0, _Flags()
    for raw, rows in run(scan.raw_blocks(source), work, scan.threads):
        for word, entry, count, others in rows:
            flags.see(others)
            (flagged if _SET in others[-columns:] else entries).setdefault(word, []).append(entry)
            if np.isnan(count):
                uncounted.add(word)
            counts[word] = 1.0 if np.isnan(count) else count
            if count <= rare:
                targets.setdefault(word, set()).add(entry.target)
        done += raw.lines
        scan.progress(raw.position, done)
    known = entries.keys() | flagged.keys()
    if augmented := flags.are_there():
        flags.check(source.name, columns)
    else:
        # What looked like a flag was a score.
        for word, more in flagged.items():
            entries.setdefault(word, []).extend(more)
    # Words that have nothing but flagged entries were unknown before.
    learnt = {word: found for word, found in targets.items() if word in entries}
    return WordTable(WordEntries(entries, counts), known, learnt, augmented, len(uncounted))


def of_one_word(block: EntryBlock) -> Mask:
    """bool, shape (N,): entries whose source is one word."""
    found: Mask = np.repeat(block.source_lengths == 1, np.diff(block.group_offsets)) & ~block.faulty
    return found


class _Flags:
    """Which of the last scores are flags: 1 or e in all entries, and not e in all."""

    def __init__(self) -> None:
        # Counted from the end: columns without another value, with a 1, with an e.
        self._run: int | None = None
        self._unset: set[int] = set()
        self._set: set[int] = set()

    def see(self, others: Sequence[str]) -> None:
        """Look at the scores of an entry beyond those of Moses' training."""
        most = len(others) if self._run is None else self._run
        self._run = 0
        while self._run < most and (value := others[-1 - self._run]) in (_UNSET, _SET):
            (self._set if value == _SET else self._unset).add(self._run)
            self._run += 1

    def _columns(self) -> list[int]:
        return [place for place in range(self._run or 0) if place in self._set & self._unset]

    def are_there(self) -> bool:
        """Whether there are some."""
        return bool(self._columns())

    def check(self, name: str, columns: int) -> None:
        """Refuse a table with flags of other sources of evidence than as many as are asked for."""
        if columns > (self._run or 0) or self._columns()[-1] >= columns:
            message = f"was augmented with another number of sources of evidence than {columns}"
            raise DataError(name, message, remedy="name those of then")


def _row(name: str, raw: RawBlock, number: int, need_count: bool) -> Row:
    """What a line says; the count is NaN where the line has no valid c(s)."""
    line = raw.text[raw.line_offsets[number] : raw.line_offsets[number + 1]].tobytes()
    fields = line.decode(*TEXT).rstrip("\r\n").split("|||")
    word, numbers = fields[0].strip(" \t"), split_words(fields[2])
    place = raw.first_entry + number + 1
    require_trained_scores(name, len(numbers), place)
    if "|" in word:
        raise DataError(name, f"the word {word} has factors, of which nothing new can be made", place)
    scores = [float(score) for score in numbers[:TRAINED]]
    counts = split_words(fields[_COUNTS]) if len(fields) > _COUNTS else []
    try:
        seen = float(counts[OF_SOURCE])
    except (IndexError, ValueError):
        seen = math.nan
    if not 0 <= seen <= LARGEST_COUNT:
        seen = math.nan
        if need_count:
            damaged = len(counts) > OF_SOURCE
            what = f"the counts {' '.join(counts)!r} are damaged" if damaged else "no counts"
            raise DataError(name, f"{what}; which words are rare is read from c(t) c(s) in the fifth field", place)
    entry = WordEntry(single_spaced(fields[1]), (scores[0], scores[1], scores[2], scores[3]))
    return word, entry, seen, numbers[TRAINED:]


def words_of(text: str) -> tuple[Counter[str], bool]:
    """Words of a text, how often they are there, and whether some stand together on a line.

    Args:
        text: a file with a sentence a line, tokenised as the table, or with a word a line.

    Raises:
        DataError: the file cannot be read.
    """
    found: Counter[str] = Counter()
    together = False
    for block in line_blocks(text):
        for line in split_lines(block.decode(*TEXT)):
            words = split_words(line)
            found.update(words)
            together |= len(words) > 1
    return found, together
