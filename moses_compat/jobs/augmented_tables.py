"""Addition of entries to tables: the words that already have entries, and new lines at their sorted positions.

`read_words` collects the entries of single words, `word_orientations` the mean orientation probabilities of single
words in a reordering table, and `write_augmented` merges new lines into a sorted table.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_compat.corpora.texts import line_blocks
from moses_compat.files.streams import Input, Output
from moses_compat.lines.counts import LARGEST_COUNT, OF_PAIR, OF_SOURCE, line_counts
from moses_compat.lines.insert_scores import annotated_lines
from moses_compat.lines.numbers import TRAINED, require_trained_scores
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from moses_compat.tables.source_order import not_sorted
from phrasetool.augment.augmenter import NewEntry
from phrasetool.augment.evidence import WordEntries, WordEntry
from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray, EntryBlock, Int64Array, Mask, prefix_sums
from phrasetool.pipeline import run
from phrasetool.text_splitting import lines_with_ends, single_spaced, split_lines, split_words

TEXT = "utf-8", "surrogateescape"
BARS = b" ||| "
# Indicator feature of an entry that a source of evidence proposed: its logarithm is 1, and 0 for other entries.
FLAG = math.e


@dataclass(frozen=True)
class LineForm:
    """The format of the lines of a table.

    Attributes:
        scores: number of scores per entry.
        fields: number of fields per line.
        counts: number of counts in the fifth field: 3 with a joint count, 2 or 1 without, 0 for none.
    """

    scores: int
    fields: int
    counts: int


# Function that returns all lines of a word, sorted bytewise, for a table with a given line format.
NewLines = Callable[[bytes, LineForm], bytes]


def phrase_lines(new: Mapping[str, Sequence[NewEntry]], columns: int, appended: bool = True) -> NewLines:
    """Return a function that makes lines of a phrase table.

    Scores of the table beyond those of Moses' training are 1, which is neutral.  Every target word is aligned with the
    source.  A line has as many counts as the lines of the table, each of them 1.

    Args:
        new: word -> its entries.
        columns: number of sources of evidence; each has an indicator feature in the last columns.
        appended: whether these columns are appended to the scores of the table; otherwise it already has them.
    """

    def lines(word: bytes, form: LineForm) -> bytes:
        others = form.scores - TRAINED - (0 if appended else columns)
        return b"".join(sorted(line(word, entry, others, form) for entry in new[word.decode(*TEXT)]))

    def line(word: bytes, entry: NewEntry, others: int, form: LineForm) -> bytes:
        flags = [FLAG if number in entry.sources else 1.0 for number in range(columns)]
        target = entry.target.encode(*TEXT)
        points = " ".join(f"0-{position}" for position in range(len(split_words(target))))
        rest = [points.encode(), b" ".join([b"1"] * form.counts)][: max(0, form.fields - 3)]
        written = BARS.join([word, target, _numbers([*entry.scores, *[1.0] * others, *flags])])
        written += b"".join(b" ||| " + field if field else b" |||" for field in rest)
        return written + b" |||" * (form.fields - 3 - len(rest)) + b"\n"

    return lines


def reordering_lines(new: Mapping[str, Sequence[NewEntry]], orientations: DoubleArray) -> NewLines:
    """Return a function that makes lines of a reordering table, all with the same probabilities.

    Args:
        new: word -> its entries.
        orientations: probabilities of orientations, float64, shape (S,), see `word_orientations`.
    """
    written = _numbers(orientations.tolist())

    def lines(word: bytes, form: LineForm) -> bytes:
        targets = {entry.target.encode(*TEXT) for entry in new[word.decode(*TEXT)]}
        rest = b" |||" * (form.fields - 3) + b"\n"
        return b"".join(sorted(BARS.join([word, target, written]) + rest for target in targets))

    return lines


def _numbers(values: Sequence[float]) -> bytes:
    return " ".join(f"{value:.6g}" for value in values).encode()


# source ||| target ||| scores ||| alignment ||| counts
_COUNTS = 4
_UNSET, _SET = "1", f"{FLAG:.6g}"

Row = tuple[str, WordEntry, float, Sequence[str]]


@dataclass(frozen=True)
class WordTable:
    """The entries of a table whose source is one word.

    Attributes:
        entries: entries that were learnt from a bitext.
        known: all words that have entries.
        rare: word -> all its targets, for rare words that were learnt from a bitext.
        augmented: whether the last columns are indicator features from an earlier run.
        uncounted: number of words without a valid count c(s), which is then taken to be 1.
        lines: number of lines of the table.
    """

    entries: WordEntries
    known: Collection[str]
    rare: Mapping[str, Collection[str]]
    augmented: bool
    uncounted: int
    lines: int


def read_words(source: Input, columns: int, scan: TableScan, rare: int = 0) -> WordTable:
    """Read the entries whose source is one word; they are held in memory.

    Args:
        source: a table with the four scores of Moses' training, at its beginning.
        columns: number of sources of evidence, each with an indicator feature if the table was augmented before.
        scan: settings for reading the table.
        rare: words with at most this count are rare.

    Raises:
        DataError: the table is damaged, has a malformed line while `scan.on_error` is `fail`, has fewer scores, has
            factors, or has another number of indicator features; or `rare` is positive, and an entry has no count c(s).
    """

    def work(raw: RawBlock) -> tuple[RawBlock, list[Row]]:
        block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
        scan.passes(source.name, block.malformed, faults)
        return raw, [_row(source.name, raw, number, rare > 0) for number in np.flatnonzero(of_one_word(block)).tolist()]

    entries: dict[str, list[WordEntry]] = {}
    flagged: dict[str, list[WordEntry]] = {}
    counts: dict[str, float] = {}
    targets: dict[str, set[str]] = {}
    uncounted: set[str] = set()
    entries_read, flags = 0, _Flags()
    for raw, rows in run(scan.raw_blocks(source), work, scan.threads):
        for word, entry, count, others in rows:
            flags.see(others)
            (flagged if _SET in others[-columns:] else entries).setdefault(word, []).append(entry)
            if np.isnan(count):
                uncounted.add(word)
            counts[word] = 1.0 if np.isnan(count) else count
            if count <= rare:
                targets.setdefault(word, set()).add(entry.target)
        entries_read += raw.lines
        scan.progress(raw.position, entries_read)
    known = entries.keys() | flagged.keys()
    if augmented := flags.exist():
        flags.check(source.name, columns)
    else:
        # The columns that looked like indicator features are ordinary scores.
        for word, more in flagged.items():
            entries.setdefault(word, []).extend(more)
    # Words with only flagged entries were unknown before an earlier run.
    learnt = {word: word_targets for word, word_targets in targets.items() if word in entries}
    return WordTable(WordEntries(entries, counts), known, learnt, augmented, len(uncounted), entries_read)


def of_one_word(block: EntryBlock) -> Mask:
    """Return a mask, shape (N,), of the entries whose source is one word."""
    rows: Mask = np.repeat(block.source_lengths == 1, np.diff(block.group_offsets)) & ~block.malformed
    return rows


class _Flags:
    """Detection of indicator features: columns at the end of the scores with the values 1 and e, and no others."""

    def __init__(self) -> None:
        # Number of last columns without other values; columns, counted from the end, with a 1 and with an e.
        self._run: int | None = None
        self._unset: set[int] = set()
        self._set: set[int] = set()

    def see(self, others: Sequence[str]) -> None:
        """Update with the scores of an entry beyond those of Moses' training."""
        most = len(others) if self._run is None else self._run
        self._run = 0
        while self._run < most and (value := others[-1 - self._run]) in (_UNSET, _SET):
            (self._set if value == _SET else self._unset).add(self._run)
            self._run += 1

    def _columns(self) -> list[int]:
        return [column for column in range(self._run or 0) if column in self._set & self._unset]

    def exist(self) -> bool:
        """Return whether the table has indicator features."""
        return bool(self._columns())

    def check(self, name: str, columns: int) -> None:
        """Reject a table whose number of indicator features differs from that of the sources of evidence.

        Raises:
            DataError: the numbers differ.
        """
        if columns > (self._run or 0) or self._columns()[-1] >= columns:
            message = f"was augmented with another number of sources of evidence than {columns}"
            raise DataError(name, message, remedy="name the sources of that run")


def _row(name: str, raw: RawBlock, number: int, need_count: bool) -> Row:
    """Parse a line; the count is NaN if the line has no valid c(s)."""
    line = raw.text[raw.line_offsets[number] : raw.line_offsets[number + 1]].tobytes()
    fields = line.decode(*TEXT).rstrip("\r\n").split("|||")
    word, numbers = fields[0].strip(" \t"), split_words(fields[2])
    line_number = raw.first_entry + number + 1
    require_trained_scores(name, len(numbers), line_number)
    if "|" in word:
        raise DataError(name, f"the word {word} has factors, for which new entries cannot be made", line_number)
    scores = [float(score) for score in numbers[:TRAINED]]
    counts = split_words(fields[_COUNTS]) if len(fields) > _COUNTS else []
    try:
        count = float(counts[OF_SOURCE])
    except (IndexError, ValueError):
        count = math.nan
    if not 0 <= count <= LARGEST_COUNT:
        count = math.nan
        if need_count:
            damaged = len(counts) > OF_SOURCE
            problem = f"the counts {' '.join(counts)!r} are damaged" if damaged else "no counts"
            raise DataError(
                name, f"{problem}; rare words are determined from c(t) c(s) in the fifth field", line_number
            )
    entry = WordEntry(single_spaced(fields[1]), (scores[0], scores[1], scores[2], scores[3]))
    return word, entry, count, numbers[TRAINED:]


def words_of(text: str) -> tuple[Counter[str], bool]:
    """Return the words of a text with their counts, and whether any line has several words.

    Args:
        text: a file with one sentence per line, tokenised like the table, or with one word per line.

    Raises:
        DataError: the file cannot be read.
    """
    counts: Counter[str] = Counter()
    together = False
    for block in line_blocks(text):
        for line in split_lines(block.decode(*TEXT)):
            words = split_words(line)
            counts.update(words)
            together |= len(words) > 1
    return counts, together


# Integer sums do not depend on how the table is split into blocks.
_UNITS = 10**9


def word_orientations(source: Input, known: Collection[str], table: str, scan: TableScan) -> DoubleArray:
    """Return the mean probability of each orientation over all entries whose source is one word.

    Moses does not penalise an entry that is missing in the reordering table; this is better than any score.

    Args:
        source: a reordering table, at its beginning.
        known: the words that are sources of the phrase table.
        table: name of the phrase table in messages.
        scan: settings for reading the reordering table.

    Returns:
        float64, shape (S,), one value per score column.

    Raises:
        DataError: the table is damaged, has a malformed line while `scan.on_error` is `fail`, has no such entry, or
            none whose source is in the phrase table.
    """
    shared = False

    def work(raw: RawBlock) -> tuple[RawBlock, Int64Array, int]:
        parser = TableParser(scores=raw.scores, columns=range(max(raw.scores, 0)))
        block, faults = parser(raw.first_entry, raw.text, raw.line_offsets)
        scan.passes(source.name, block.malformed, faults)
        single = of_one_word(block)
        nonlocal shared
        shared = shared or _any_known(raw, np.flatnonzero(single).tolist(), known)
        units = np.rint(_UNITS * np.clip(block.columns[single], 0, 1)).astype(np.int64)
        return raw, units.sum(0), int(single.sum())

    total, count, lines_read = np.zeros(0, np.int64), 0, 0
    # The mean does not need whole source groups.
    for raw, sums, words in run(replace(scan, whole_groups=False).raw_blocks(source), work, scan.threads):
        total = total + sums if len(total) else sums
        count += words
        lines_read += raw.lines
        scan.progress(raw.position, lines_read)
    if not count:
        raise DataError(source.name, "has no entry whose source is one word")
    if not shared:
        message = f"none of its sources of one word is in {table}; expected the reordering table of its model"
        scan.refuse(DataError(source.name, message, remedy="go on"))
    return np.asarray(total / (count * _UNITS))


def _any_known(raw: RawBlock, rows: Sequence[int], known: Collection[str]) -> bool:
    lines = (raw.text[raw.line_offsets[row] : raw.line_offsets[row + 1]].tobytes() for row in rows)
    return any(single_spaced(line.partition(b"|||")[0]).decode(*TEXT) in known for line in lines)


def write_augmented(
    source: Input, output: Output, new: Iterable[str], new_lines: NewLines, columns: int, scan: TableScan
) -> int:
    """Write a sorted table with new entries at their sorted positions.

    Args:
        source: the table, at its beginning.
        output: the augmented table.
        new: words with new entries, some of which may already be sources of the table.
        new_lines: function that returns the lines of a word.
        columns: number of scores of 1 to append to all lines of the table.
        scan: settings for reading the table.

    Returns:
        The number of lines of the input table.

    Raises:
        DataError: the table is damaged, has a malformed line while `scan.on_error` is `fail`, or is not sorted.
    """
    words = sorted((word.encode(*TEXT) for word in new), key=_key)
    keys = [_key(word) for word in words]
    raws = scan.raw_blocks(source)
    head = _up_to_first_entry(raws)
    if not head:
        return 0
    form = _form(head[-1])

    def lines(first: int, last: int) -> list[bytes]:
        return [new_lines(word, form) for word in words[first:last]]

    def work(raw: RawBlock) -> tuple[RawBlock, _Piece]:
        block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
        passes = scan.passes(source.name, block.malformed, faults)
        groups = _Groups(block)
        if not groups.ascending:
            raise not_sorted(source.name, raw.first_entry)
        text = annotated_lines(block, np.ones((len(block), columns)), passes).tobytes()
        first, last = bisect.bisect_left(keys, groups.first), bisect.bisect_right(keys, groups.last)
        offsets = _offsets(block, passes, len(text))
        if text and not text.endswith(b"\n"):
            # Another line may be inserted after the last one.
            text += b"\n"
            offsets[-1] += 1
        parts, at = list[bytes](), 0
        for key, more in zip(keys[first:last], lines(first, last), strict=True):
            begin, end = (int(offsets[row]) for row in groups.rows(key))
            parts += [text[at:begin], _merged(text[begin:end], more)]
            at = end
        return raw, _Piece(groups.first, groups.last, first, last, output.encode(b"".join([*parts, text[at:]])))

    written, total = 0, 0
    last_key: bytes | None = None
    for raw, piece in run(itertools.chain(head, raws), work, scan.threads):
        if last_key is not None and piece.first_key <= last_key:
            raise not_sorted(source.name, raw.first_entry)
        last_key = piece.last_key
        output.write(output.encode(b"".join(lines(written, piece.first))))
        output.write(piece.data)
        written = piece.last
        total += raw.lines
        scan.progress(raw.position, total)
    output.write(output.encode(b"".join(lines(written, len(words)))))
    return total


def _up_to_first_entry(raws: Iterator[RawBlock]) -> list[RawBlock]:
    """Read the blocks up to the first one with a well-formed entry."""
    head = []
    for raw in raws:
        head.append(raw)
        if raw.scores >= 0:
            break
    return head


@dataclass(frozen=True)
class _Piece:
    """A block of output: its first and last source, and the range of new words between them."""

    first_key: bytes
    last_key: bytes
    first: int
    last: int
    data: bytes


class _Groups:
    """The sources of a block as sort keys, with which its lines begin."""

    def __init__(self, block: EntryBlock) -> None:
        self._block = block
        self._count = len(block.group_offsets) - 1
        self.first, self.last = self._key(0), self._key(self._count - 1)

    @property
    def ascending(self) -> bool:
        """Whether the keys are in ascending order."""
        if self._block.ascending:
            return True
        keys = [self._key(group) for group in range(self._count)]
        return all(key < next_key for key, next_key in itertools.pairwise(keys))

    def rows(self, key: bytes) -> tuple[int, int]:
        """Return the range of lines of a source; an empty range at its sorted position if it has no lines."""
        group = bisect.bisect_left(range(self._count), key, key=self._key)
        exists = group < self._count and self._key(group) == key
        return int(self._block.group_offsets[group]), int(self._block.group_offsets[group + exists])

    def _key(self, group: int) -> bytes:
        row = self._block.group_offsets[group]
        start, end = self._block.line_offsets[row], self._block.source_ends[row]
        return _key(self._block.text[start : end if end >= 0 else start].tobytes().strip(b" \t"))


def _merged(own: bytes, more: bytes) -> bytes:
    """Merge sorted new lines into the lines of a source, which keep their order."""
    if not own:
        return more
    return b"".join(heapq.merge(lines_with_ends(own), lines_with_ends(more)))


def _offsets(block: EntryBlock, keep: Mask, size: int) -> Int64Array:
    """Return the start of each kept line in a text of `size` bytes that adds equally many bytes to each entry."""
    lengths = np.where(keep, np.diff(block.line_offsets), 0)
    longer = keep & ~block.malformed
    more = (size - int(lengths.sum())) // max(1, int(longer.sum()))
    return prefix_sums(lengths + more * longer)


def _key(word: bytes) -> bytes:
    """Return the sort key of the lines of a source."""
    return word + BARS


def _form(raw: RawBlock) -> LineForm:
    """Return the format of the first well-formed entry, or line; an invalid joint count is treated as missing."""
    block, _ = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
    row = int(np.argmin(block.malformed))
    text = raw.text[raw.line_offsets[row] : raw.line_offsets[row + 1]]
    values, derived = line_counts(text, np.array([0, len(text)]))
    sides = int(np.count_nonzero(~np.isnan(values[0, :OF_PAIR])))
    joint = not np.isnan(values[0, OF_PAIR]) and not derived[0]
    return LineForm(raw.scores, text.tobytes().count(b"|||") + 1, OF_PAIR + 1 if joint else sides)
