"""The different phrases of a table, each once, as texts for an encoder; and a sample of its pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.hashes import KeyedSums, side_keys
from moses_compat.lines.words import phrase_text
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.models.fit import has_letter
from phrasetool.phrases import ByteArray, Int64Array
from phrasetool.pipeline import run
from phrasetool.pruning.composition import HashArray
from phrasetool.text_encoders.vector_store import StoredPhrases
from phrasetool.text_splitting import split_words
from phrasetool.watch import NOBODY, Watch

# Pairs that an encoder is measured on.
_SAMPLE = 20_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class _Found:
    """What is different within a block: keys, and where each stands in its text; and pairs for the sample."""

    text: ByteArray
    keys: tuple[HashArray, HashArray]
    places: tuple[Int64Array, Int64Array]
    pairs: HashArray


def collect_phrases(
    source: Input, scan: TableScan, ready: Callable[[str, int], str], watch: Watch = NOBODY
) -> StoredPhrases:
    """Read a table from its beginning to its end.

    Takes some 100 bytes a distinct phrase.

    Args:
        source: the table.
        scan: how it is read.
        ready: from what a phrase says and its side (0 or 1) to the text that is encoded; not asked for empty ones.
        watch: follows the work.

    Raises:
        DataError: the table is damaged, or has a faulty line and the scan says `fail`.
    """
    sides = _Side(), _Side()
    pairs: list[HashArray] = []
    with watch.file("phrases", source.size()) as progress:
        scan = replace(scan, progress=progress)

        def work(raw: RawBlock) -> tuple[RawBlock, _Found]:
            return raw, _look(source.name, raw, scan)

        for raw, found in run(scan.raw_blocks(source), work, scan.threads):
            for which, side in enumerate(sides):
                side.add(found.text, found.keys[which], found.places[which])
            pairs.append(found.pairs)
            if len(pairs) > 64:
                pairs = [_smallest(np.concatenate(pairs, axis=1))]
            scan.progress(raw.position, raw.first_entry + raw.lines)
    sample = _smallest(np.concatenate([np.zeros((3, 0), np.uint64), *pairs], axis=1))
    source_keys, source_rows, source_texts = sides[0].in_order(lambda text: ready(text, 0))
    target_keys, target_rows, target_texts = sides[1].in_order(lambda text: ready(text, 1))
    rows = np.stack([
        source_rows[np.searchsorted(source_keys, sample[1])], target_rows[np.searchsorted(target_keys, sample[2])],
        _telling(sides, sample),
    ], axis=1) if sample.size else np.zeros((0, 3), np.int64)  # fmt: skip
    return StoredPhrases(
        (source_keys, target_keys), (source_rows, target_rows), (source_texts, target_texts), rows.astype(np.int64)
    )


def _look(name: str, raw: RawBlock, scan: TableScan) -> _Found:
    block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
    scan.passes(name, block.faulty, faults)
    rows = np.flatnonzero(~block.faulty)
    hashes = side_keys(block.text, block.line_offsets, rows)
    starts = block.line_offsets[:-1][rows], block.source_ends[rows] + 3
    ends = block.source_ends[rows], block.target_ends[rows]
    keys, places = [], []
    for which in range(2):
        different, firsts = np.unique(hashes[which], return_index=True)
        keys.append(different)
        places.append(np.stack([starts[which][firsts], ends[which][firsts]], axis=1))
    mixed = (hashes[0] * _MIX) ^ (hashes[1] + (hashes[0] << np.uint64(7)))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    pairs = _smallest(np.stack([mixed, hashes[0], hashes[1]]))
    return _Found(block.text, (keys[0], keys[1]), (places[0], places[1]), pairs)


def _smallest(pairs: HashArray) -> HashArray:
    """The pairs with the smallest hashes, shape (3, at most `_SAMPLE`): the same whatever the blocks."""
    order = np.lexsort((pairs[2], pairs[1], pairs[0]))[:_SAMPLE]
    return pairs[:, order]


class _Side:
    """The different phrases of a side."""

    def __init__(self) -> None:
        self._known = KeyedSums(np.int32)
        self._keys: list[HashArray] = []
        self.phrases: dict[int, bytes] = {}

    def add(self, text: ByteArray, keys: HashArray, places: Int64Array) -> None:
        new = self._known.look_up(keys) == 0
        keys, places = keys[new], places[new]
        self._known.add(keys, np.ones(len(keys), np.int32))
        self._keys.append(keys)
        for key, (start, end) in zip(keys.tolist(), places.tolist(), strict=True):
            self.phrases[key] = text[start:end].tobytes()

    def in_order(self, ready: Callable[[str], str]) -> tuple[HashArray, Int64Array, list[str]]:
        """Keys, ascending; the row of each, -1 where there is no text; and the texts in canonical order."""
        keys = np.sort(np.concatenate([np.zeros(0, np.uint64), *self._keys]))
        said = [phrase_text(self.phrases[key]) for key in keys.tolist()]
        texts = [ready(text) if text else "" for text in said]
        different = sorted({text for text in texts if text}, key=_canonical)
        rows = {text: row for row, text in enumerate(different)}
        return keys, np.array([rows.get(text, -1) for text in texts], np.int64), different


def _canonical(text: str) -> tuple[int, bytes]:
    """Shortest first, then by bytes."""
    data = text.encode()
    return len(data), data


def _telling(sides: tuple[_Side, _Side], sample: HashArray) -> Int64Array:
    """1 for pairs with letters on both sides and no word in common, such as a name: any encoder finds those similar."""
    found = np.zeros(sample.shape[1], np.int64)
    for i, (source, target) in enumerate(zip(sample[1].tolist(), sample[2].tolist(), strict=True)):
        one, other = (phrase_text(side.phrases[key]) for side, key in zip(sides, (source, target), strict=True))
        letters = has_letter(one.encode()) and has_letter(other.encode())
        found[i] = letters and not set(split_words(one.lower())) & set(split_words(other.lower()))
    return found
