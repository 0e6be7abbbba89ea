"""Similarities by an external sentence encoder.

Each distinct phrase of the table is encoded once, into a folder of vectors (see `phrasetool.text_encoders`).  A later
run needs only the folder.  A sample of the pairs shows whether the encoder matches the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.fields import phrase_text
from moses_compat.lines.hashes import KeyedSums, side_keys
from moses_compat.lines.numbers import OK
from moses_compat.measures.similarities import EncoderRequest, OneProcessReader, SimilarityReader
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import LineScan, TableParser
from phrasetool.errors import DataError
from phrasetool.models.fit import has_letter
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import ByteArray, DoubleArray, EntryBlock, FloatArray, Int32Array, Int64Array
from phrasetool.pipeline import run
from phrasetool.pruning.composition import HashArray
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.text_encoders.margins import NORMALISATIONS, HalfArray, pair_similarities
from phrasetool.text_encoders.text_encoder import SIDES
from phrasetool.text_encoders.vector_store import EncoderFit, StoredPhrases, StoreKind, VectorStore
from phrasetool.text_splitting import split_words
from phrasetool.watch import SILENT, Watch, raise_or_warn

# Number of pairs on which an encoder is evaluated.
_SAMPLE = 20_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class _BlockPhrases:
    """The distinct phrases of a block, with their keys and positions in its text, and pairs for the sample."""

    text: ByteArray
    keys: tuple[HashArray, HashArray]
    places: tuple[Int64Array, Int64Array]
    pairs: HashArray


def collect_phrases(
    source: Input, scan: TableScan, ready: Callable[[str, int], str], watch: Watch = SILENT
) -> StoredPhrases:
    """Read the distinct phrases of a table.

    This takes some 100 bytes per distinct phrase.

    Args:
        source: the table.
        scan: settings for reading the table.
        ready: converts the words of a phrase and its side (0 or 1) to the text that is encoded.
        watch: progress listener.

    Raises:
        DataError: the table is damaged, or has a malformed line and `on_error` is `fail`.
    """
    sides = _Side(), _Side()
    pairs: list[HashArray] = []
    with watch.file("phrases", source.size()) as progress:
        scan = replace(scan, progress=progress)

        def work(raw: RawBlock) -> tuple[RawBlock, _BlockPhrases]:
            return raw, _look(source.name, raw, scan)

        for raw, block_phrases in run(scan.raw_blocks(source), work, scan.threads):
            for which, side in enumerate(sides):
                side.add(block_phrases.text, block_phrases.keys[which], block_phrases.places[which])
            pairs.append(block_phrases.pairs)
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


def _look(name: str, raw: RawBlock, scan: TableScan) -> _BlockPhrases:
    block, faults = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
    scan.passes(name, block.malformed, faults)
    rows = np.flatnonzero(~block.malformed)
    hashes = side_keys(block.text, block.line_offsets, rows)
    starts = block.line_offsets[:-1][rows], block.source_ends[rows] + 3
    ends = block.source_ends[rows], block.target_ends[rows]
    keys, positions = [], []
    for which in range(2):
        different, firsts = np.unique(hashes[which], return_index=True)
        keys.append(different)
        positions.append(np.stack([starts[which][firsts], ends[which][firsts]], axis=1))
    mixed = (hashes[0] * _MIX) ^ (hashes[1] + (hashes[0] << np.uint64(7)))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    pairs = _smallest(np.stack([mixed, hashes[0], hashes[1]]))
    return _BlockPhrases(block.text, (keys[0], keys[1]), (positions[0], positions[1]), pairs)


def _smallest(pairs: HashArray) -> HashArray:
    """Return the pairs with the smallest hashes, shape (3, at most `_SAMPLE`); the choice does not depend on blocks."""
    order = np.lexsort((pairs[2], pairs[1], pairs[0]))[:_SAMPLE]
    return pairs[:, order]


class _Side:
    """The distinct phrases of a side."""

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
        """Return the keys, ascending; the row of each, -1 for an empty text; and the texts in canonical order."""
        keys = np.sort(np.concatenate([np.zeros(0, np.uint64), *self._keys]))
        plain_texts = [phrase_text(self.phrases[key]) for key in keys.tolist()]
        texts = [ready(text) if text else "" for text in plain_texts]
        different = sorted({text for text in texts if text}, key=_canonical)
        rows = {text: row for row, text in enumerate(different)}
        return keys, np.array([rows.get(text, -1) for text in texts], np.int64), different


def _canonical(text: str) -> tuple[int, bytes]:
    """Return a sort key: shortest first, then by bytes."""
    data = text.encode()
    return len(data), data


def _telling(sides: tuple[_Side, _Side], sample: HashArray) -> Int64Array:
    """Return 1 for informative pairs: with letters and without a common word, such as a name, on both sides."""
    telling = np.zeros(sample.shape[1], np.int64)
    for i, (source, target) in enumerate(zip(sample[1].tolist(), sample[2].tolist(), strict=True)):
        source_text, target_text = (
            phrase_text(side.phrases[key]) for side, key in zip(sides, (source, target), strict=True)
        )
        letters = has_letter(source_text.encode()) and has_letter(target_text.encode())
        telling[i] = letters and not set(split_words(source_text.lower())) & set(split_words(target_text.lower()))
    return telling


@dataclass(frozen=True)
class EncoderSimilarities:
    """Similarities from vectors in a store.

    Attributes:
        signature: the encoder's part of the signature line.
        fit: how well the encoder separates pairs of the table from random ones.
        store: the folder of vectors.
        keys, rows: for each side, the hashes of its phrases and the rows of their vectors.
        vectors, reached: for each side, see `pair_similarities`.
        margin: whether the margin is the similarity.
    """

    signature: str
    fit: EncoderFit
    store: str
    keys: tuple[HashArray, HashArray] = field(repr=False)
    rows: tuple[Int64Array, Int64Array] = field(repr=False)
    vectors: tuple[HalfArray, HalfArray] = field(repr=False)
    reached: tuple[FloatArray, FloatArray] = field(repr=False)
    margin: bool = True

    def reader(self, table: str) -> SimilarityReader:
        """Return a reader for one pass through a table."""
        return _EncoderReader(table, self)


class _EncoderReader(OneProcessReader):
    owner = "a sentence encoder"

    def __init__(self, table: str, source: EncoderSimilarities) -> None:
        self._table, self._source = table, source
        # Key -> its position among the keys, from 1.
        self._places: list[KeyedSums[np.int32]] = []
        self._met = [np.zeros(len(keys), np.bool_) for keys in source.keys]
        for keys in source.keys:
            positions: KeyedSums[np.int32] = KeyedSums(np.int32)
            positions.add(keys, np.arange(1, len(keys) + 1, dtype=np.int32))
            self._places.append(positions)

    def pass_over(self, raw: RawBlock, scan: LineScan) -> None:
        self._meet(raw.text, raw.line_offsets, np.flatnonzero(scan.faults == OK), raw.first_entry)

    def score(self, block: EntryBlock, columns: DoubleArray, taken: None) -> Scores:
        good = np.flatnonzero(~block.malformed)
        positions = self._meet(block.text, block.line_offsets, good, block.first_entry)
        rows = [self._source.rows[which][positions[which]] for which in range(2)]
        pair_scores, known = pair_similarities(
            rows[0], rows[1], self._source.vectors, self._source.reached, self._source.margin
        )
        similarities, scored = np.zeros((len(block), 2), np.float32), np.zeros(len(block), np.bool_)
        # The similarity is symmetric.
        similarities[good] = pair_scores[:, None]
        scored[good] = known
        return Scores(similarities, scored)

    def _meet(self, text: ByteArray, line_offsets: Int64Array, good: Int64Array, first_entry: int) -> list[Int32Array]:
        """Return the positions of both sides of these lines among the keys, and mark these keys as used."""
        positions_of_sides = []
        for which, hashes in enumerate(side_keys(text, line_offsets, good)):
            positions: Int32Array = self._places[which].look_up(hashes) - 1
            if len(positions) and positions.min() < 0:
                line = first_entry + int(good[int(np.argmin(positions))]) + 1
                raise self._foreign(f"holds no vector for the {SIDES[which]} of this entry", line)
            # Several threads may set this, always to the same value.
            self._met[which][positions] = True
            positions_of_sides.append(positions)
        return positions_of_sides

    def finish(self, entries: int) -> None:
        if not all(met.all() for met in self._met):
            count = sum(int((~met).sum()) for met in self._met)
            raise self._foreign(f"holds {count:,} phrases that are not in it", None)

    def _foreign(self, what: str, line: int | None) -> DataError:
        message = f"{self._source.store} {what}; it was made from another table"
        return DataError(self._table, message, line, remedy="name a store")


def encoder_similarities(
    request: EncoderRequest, table: str, opened: Callable[[], Input], scan: TableScan, watch: Watch = SILENT
) -> EncoderSimilarities:
    """Encode the phrases of a table that are not yet in the store.

    Args:
        request: the encoder and its settings.
        table: the table; the default name of the store is derived from its name.
        opened: opens the table.
        scan: settings for reading the table.
        watch: progress listener, which also receives the quality of the encoder on a sample.

    Raises:
        ModelError: the encoder does not exist or is rejected, or the store belongs to another encoder or is damaged.
        DataError: the table is damaged, or is not the table of the store; or, unless forced, the encoder is near chance
            level on its pairs.
        PhraseToolError: the store cannot be written.
    """
    source = find_text_encoder(request.folder)
    target = find_text_encoder(request.target_folder) if request.target_folder else source
    identities = source.identity, target.identity
    texts = f"detokenise={request.detokenise or 'none'}|prefix={request.prefix!r}"
    store = VectorStore(request.store_for(table, identities), StoreKind(identities, texts))
    name = request.folder if target is source else f"{request.folder} and {request.target_folder}"
    if not store.complete:
        with opened() as file:
            phrases = collect_phrases(file, scan, request.ready, watch)
        loaded = source.load()

        def both() -> tuple[object, object]:
            return loaded, loaded if target is source else target.load()

        store.fill(phrases, both, name, watch, scan.threads)  # type: ignore[arg-type]
        watch.say(f"{store.folder} holds vectors of {store.counts[0]:,} sources and {store.counts[1]:,} targets")
    if store.over_long:
        watch.say(f"{store.over_long:,} phrases are longer than {name} reads; they were truncated")
    normalisation = NORMALISATIONS[request.normalise]
    vectors, reached, fit = store.normalised(normalisation, watch, scan.threads)
    watch.say(f"{name} {fit.words}")
    if fit.by_chance:
        message = f"the encoder {name} ranks true pairs hardly better than chance (AUC {fit.auc:.2f})"
        message += ": it does not know both languages, or its vectors are not of one space"
        raise_or_warn(DataError(table, message, remedy="go on"), scan.force, watch.warn)
    (source_keys, source_rows), (target_keys, target_rows) = (store.keys(side) for side in SIDES)
    signature = f"encoder:{'+'.join(dict.fromkeys(identities))}|texts:{texts}|normalise:{normalisation.name}".replace(
        "|prefix=''", ""
    )
    return EncoderSimilarities(
        signature, fit, str(store.folder), (source_keys, target_keys), (source_rows, target_rows), vectors, reached,
        normalisation.margin,
    )  # fmt: skip
