"""The entries of a table whose source is one word, and the words of texts that have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np

from moses_compat.corpora.texts import line_blocks
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.augment.word_entries import WordEntries, WordEntry
from phrasetool.errors import DataError
from phrasetool.pipeline import run

SCORES = 4
_TEXT = "utf-8", "surrogateescape"
# source ||| target ||| scores ||| alignment ||| counts
_COUNTS = 4

Row = tuple[str, WordEntry, float]


def read_word_entries(source: Input, scan: TableScan) -> WordEntries:
    """Read the entries whose source is one word; they are held in memory.

    Args:
        source: a table with the four scores of Moses' training, at its beginning.
        scan: how it is read.

    Raises:
        DataError: the table is damaged, has a faulty line and the scan says `fail`, has fewer scores, or has factors.
    """

    def work(raw: RawBlock) -> tuple[RawBlock, list[Row]]:
        block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
        scan.passes(source.name, block.faulty, faults)
        single = np.repeat(block.source_lengths == 1, np.diff(block.group_offsets)) & ~block.faulty
        return raw, [_row(source.name, raw, number) for number in np.flatnonzero(single).tolist()]

    entries: dict[str, list[WordEntry]] = {}
    counts: dict[str, float] = {}
    done = 0
    for raw, rows in run(scan.raw_blocks(source), work, scan.threads):
        for word, entry, count in rows:
            entries.setdefault(word, []).append(entry)
            counts[word] = count
        done += raw.lines
        scan.progress(raw.position, done)
    return WordEntries(entries, counts)


def _row(name: str, raw: RawBlock, number: int) -> Row:
    """What a line says."""
    line = raw.text[raw.line_offsets[number] : raw.line_offsets[number + 1]].tobytes()
    fields = [field.strip() for field in line.decode(*_TEXT).split("|||")]
    scores = [float(score) for score in fields[2].split()[:SCORES]]
    place = raw.first_entry + number + 1
    if len(scores) < SCORES:
        raise DataError(name, f"the entries have {len(scores)} scores, expected the {SCORES} of Moses' training", place)
    if "|" in fields[0]:
        raise DataError(name, f"the word {fields[0]} has factors, of which nothing new can be made", place)
    counts = fields[_COUNTS].split() if len(fields) > _COUNTS else []
    seen = float(counts[1]) if len(counts) > 1 else 1.0
    return fields[0], WordEntry(" ".join(fields[1].split()), (scores[0], scores[1], scores[2], scores[3])), seen


def unknown_words(texts: Iterable[str], known: Collection[str]) -> Counter[str]:
    """Words of texts that are not known, and how often they are there.

    Args:
        texts: files with a sentence a line, tokenised as the table.
        known: words that have entries.

    Raises:
        DataError: a file cannot be read.
    """
    found: Counter[str] = Counter()
    for path in texts:
        for block in line_blocks(path):
            found.update(block.decode(*_TEXT).split())
    return Counter({word: count for word, count in found.items() if word not in known})
