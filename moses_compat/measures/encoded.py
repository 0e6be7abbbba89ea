"""Similarities by a sentence encoder that was trained elsewhere.

Each different phrase of the table is encoded once, into a folder of vectors (see `phrasetool.text_encoders`).  A later
run needs the folder alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.lines.hashes import KeyedSums, side_keys
from moses_compat.lines.scores import OK
from moses_compat.measures.similarities import OneProcessReader, SimilarityReader
from moses_compat.measures.similarity_requests import EncoderRequest
from moses_compat.measures.table_phrases import collect_phrases
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import LineScan
from phrasetool.errors import DataError
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import ByteArray, DoubleArray, EntryBlock, FloatArray, Int32Array, Int64Array
from phrasetool.pruning.composition import HashArray
from phrasetool.text_encoders.loading import find_text_encoder
from phrasetool.text_encoders.margins import NORMALISATIONS, HalfArray, pair_similarities
from phrasetool.text_encoders.text_encoder import SIDES
from phrasetool.text_encoders.vector_store import EncoderFit, StoreKind, VectorStore
from phrasetool.watch import NOBODY, Watch, refuse


@dataclass(frozen=True)
class EncoderSimilarities:
    """Similarities by vectors in a store.

    Attributes:
        signature: its part of the signature line.
        fit: how well the encoder tells pairs of the table from others.
        store: the folder of vectors.
        keys, rows: of each side, the hashes of its phrases and the rows of their vectors.
        vectors, reached: of each side, see `pair_similarities`.
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
        """See `SimilaritySource`."""
        return _EncoderReader(table, self)


class _EncoderReader(OneProcessReader):
    owner = "a sentence encoder"

    def __init__(self, table: str, source: EncoderSimilarities) -> None:
        self._table, self._source = table, source
        # Key -> its place among the keys, from 1.
        self._places: list[KeyedSums[np.int32]] = []
        self._met = [np.zeros(len(keys), np.bool_) for keys in source.keys]
        for keys in source.keys:
            places: KeyedSums[np.int32] = KeyedSums(np.int32)
            places.add(keys, np.arange(1, len(keys) + 1, dtype=np.int32))
            self._places.append(places)

    def pass_over(self, raw: RawBlock, scan: LineScan) -> None:
        self._meet(raw.text, raw.line_offsets, np.flatnonzero(scan.faults == OK), raw.first_entry)

    def score(self, block: EntryBlock, columns: DoubleArray, taken: None) -> Scores:
        good = np.flatnonzero(~block.faulty)
        places = self._meet(block.text, block.line_offsets, good, block.first_entry)
        rows = [self._source.rows[which][places[which]] for which in range(2)]
        found, known = pair_similarities(
            rows[0], rows[1], self._source.vectors, self._source.reached, self._source.margin
        )
        similarities, opinion = np.zeros((len(block), 2), np.float32), np.zeros(len(block), np.bool_)
        # It is symmetric.
        similarities[good] = found[:, None]
        opinion[good] = known
        return Scores(similarities, opinion)

    def _meet(self, text: ByteArray, line_offsets: Int64Array, good: Int64Array, first_entry: int) -> list[Int32Array]:
        """The places of both sides of these lines among the keys, which are in the table, then."""
        found = []
        for which, hashes in enumerate(side_keys(text, line_offsets, good)):
            places: Int32Array = self._places[which].look_up(hashes) - 1
            if len(places) and places.min() < 0:
                line = first_entry + int(good[int(np.argmin(places))]) + 1
                raise self._foreign(f"holds no vector for the {SIDES[which]} of this entry", line)
            # Set by any thread, to one value.
            self._met[which][places] = True
            found.append(places)
        return found

    def finish(self, entries: int) -> None:
        if not all(met.all() for met in self._met):
            count = sum(int((~met).sum()) for met in self._met)
            raise self._foreign(f"holds {count:,} phrases that are not in it", None)

    def _foreign(self, what: str, line: int | None) -> DataError:
        message = f"{self._source.store} {what}; it was made from another table"
        return DataError(self._table, message, line, remedy="name a store")


def encoder_similarities(
    request: EncoderRequest, table: str, opened: Callable[[], Input], scan: TableScan, watch: Watch = NOBODY
) -> EncoderSimilarities:
    """Encode the phrases of a table, as far as that was not done before.

    Args:
        request: which encoder, and how.
        table: the table, by whose name the store is called.
        opened: opens it at its beginning.
        scan: how it is read.
        watch: follows the work, and is told how well the encoder tells pairs from others.

    Raises:
        ModelError: there is no such encoder, or it is refused; or the store is of another one, or damaged.
        DataError: the table is damaged or another one; or, unless forced, the encoder tells its pairs from others
            hardly better than chance.
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
        watch.say(f"{store.over_long:,} phrases are longer than {name} reads; their ends were not seen")
    how = NORMALISATIONS[request.normalise]
    vectors, reached, fit = store.normalised(how, watch, scan.threads)
    watch.say(f"{name} {fit.words}")
    if fit.by_chance:
        message = f"the encoder {name} tells pairs from others hardly better than chance (AUC {fit.auc:.2f})"
        message += ": it does not know both languages, or its vectors are not of one space"
        refuse(DataError(table, message, remedy="go on"), scan.force, watch.warn)
    (source_keys, source_rows), (target_keys, target_rows) = (store.keys(side) for side in SIDES)
    signature = f"encoder:{'+'.join(dict.fromkeys(identities))}|texts:{texts}|normalise:{how.name}".replace(
        "|prefix=''", ""
    )
    return EncoderSimilarities(
        signature, fit, str(store.folder), (source_keys, target_keys), (source_rows, target_rows), vectors, reached,
        how.margin,
    )  # fmt: skip
