"""Store of the vectors of a table's phrases in a folder: encoded once, reused by later runs without the encoder.

| file | content |
|---|---|
| `store.json` | the encoders, texts and table of the vectors, and whether the store is complete |
| `SIDE.keys.npy`, `SIDE.rows.npy` | a hash of each distinct phrase, and the row of its vector, or -1 |
| `SIDE.vectors` | float16, one row of length one per distinct text: shortest text first, then by bytes |
| `SIDE.centred`, `SIDE.*.nearness.npy` | computed from the vectors when needed |
| `sample.npy` | some pairs of the table, by rows, on which the encoder is measured |

Vectors are appended batch by batch, so an interrupted run can be continued, and a full disk does not lose the previous
batches.  A batch has the same texts in every run, so the vectors do not depend on threads or interruptions.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from phrasetool.disk.folders import check_folder, check_space
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.phrases import FloatArray, Int64Array, Mask
from phrasetool.pipeline import run
from phrasetool.ranking import CHANCE, pairwise_auc
from phrasetool.text_encoders.margins import (
    HalfArray,
    Normalisation,
    mean_direction,
    nearness,
    pair_similarities,
    prepared,
    sample_rows,
    unit_rows,
)
from phrasetool.text_encoders.text_encoder import SIDES, Side, TextEncoder, encoded
from phrasetool.watch import SILENT, Watch

_SCHEMA = 1
_HEADER, _SAMPLE, _LOCK = "store.json", "sample.npy", ".lock"
_FIRST = (*(f"{side}.{what}.npy" for side in SIDES for what in ("keys", "rows")), _SAMPLE)
_BEFORE_HEADER = {_LOCK, *_FIRST, *(f".{name}.part" for name in (*_FIRST, _HEADER))}
# Number of texts that are encoded together.
BATCH = 256
# Shares of the quantiles of similarities that are reported.
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Minimum number of pairs and of distinct targets for the AUC.
_FEWEST, _FEWEST_TARGETS = 300, 20
Similarity = Callable[[Int64Array, Int64Array], tuple[FloatArray, Mask]]


@dataclass(frozen=True)
class EncoderFit:
    """Quality of similarities, measured on a sample of pairs.

    Attributes:
        pairs: number of pairs with vectors on both sides.
        quantiles: quantiles of their similarities, at `SHARES`.
        auc: probability that a pair is more similar than its source with the target of another pair; None if there are
            too few pairs.
    """

    pairs: int
    quantiles: tuple[float, ...]
    auc: float | None

    @property
    def by_chance(self) -> bool:
        """Whether the similarities rank true pairs above others hardly better than chance."""
        return self.auc is not None and self.auc < CHANCE

    @property
    def words(self) -> str:
        """One line that describes the quality."""
        if not self.pairs:
            return "no pair of the table has vectors on both sides"
        parts = [f"{share:.0%} {value:.3f}" for share, value in zip(SHARES, self.quantiles, strict=True)]
        auc = (
            ""
            if self.auc is None
            else f"ranks true pairs above random ones with AUC {self.auc:.2f} ({self.pairs:,} entries); "
        )
        return f"{auc}similarities at {', '.join(parts)}; thresholds of other encoders and models do not apply"

    def as_dict(self) -> dict[str, Any]:
        """Return the values for statistics in JSON."""
        values = asdict(self)
        values["quantiles"] = dict(zip(map(str, SHARES), self.quantiles, strict=False))
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> EncoderFit:
        """Restore an instance from the result of `as_dict`.

        Raises:
            KeyError, TypeError: the values have another form.
        """
        return cls(values["pairs"], tuple(values["quantiles"].values()), values["auc"])


def measure_encoder(
    similarity: Similarity, source_rows: Int64Array, target_rows: Int64Array, telling: Mask, seed: int = 1
) -> EncoderFit:
    """Measure similarities on N pairs.

    Args:
        similarity: function that returns the similarities of pairs of rows, and whether both sides have a vector.
        source_rows, target_rows: rows of the pairs, int64, shape (N,).
        telling: mask of the pairs that count for the AUC, bool, shape (N,); pairs with a word on both sides, such as a
            name, are similar for any encoder.
        seed: seed of the random other targets.
    """
    own, known = similarity(source_rows, target_rows)
    pairs = int(known.sum())
    quantiles = tuple(round(float(value), 4) + 0.0 for value in np.quantile(own[known], SHARES)) if pairs else ()
    chosen = known & telling
    own, source_rows, target_rows = own[chosen], source_rows[chosen], target_rows[chosen]
    if len(own) < _FEWEST or len(np.unique(target_rows)) < _FEWEST_TARGETS:
        return EncoderFit(pairs, quantiles, None)
    auc = pairwise_auc(own, target_rows, lambda rows: similarity(source_rows, rows)[0], seed)
    return EncoderFit(pairs, quantiles, None if auc is None else round(auc, 4))


def header_problem(header: Mapping[str, Any]) -> str | None:
    """Return which entry of a header is missing or malformed; None if the header is well-formed."""
    counts, dimension, encoders = header.get("phrases"), header.get("dimension"), header.get("encoders")
    if not (isinstance(encoders, list) and len(encoders) == len(SIDES)):
        return "`encoders` is not a pair"
    if not (isinstance(counts, list) and len(counts) == len(SIDES) and all(map(_is_count, counts))):
        return "`phrases` is not a pair of numbers"
    if not (_is_count(dimension) and dimension):
        return "`dimension` is not a number"
    if not _is_count(header.get("over_long", 0)):
        return "`over_long` is not a number"
    if not isinstance(header.get("made", []), list) or not isinstance(header.get("fits", {}), dict):
        return "`made` is not a list, or `fits` is not an object"
    try:
        for fit in header.get("fits", {}).values():
            EncoderFit.from_dict(fit)
    except (KeyError, TypeError, AttributeError):
        return "`fits` is malformed"
    return None


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


@dataclass(frozen=True)
class StoreKind:
    """Properties that the vectors of a store depend on, in addition to the phrases.

    Attributes:
        encoders: identities of the encoders, source first.
        texts: description of how a phrase is preprocessed.
        holder: name in messages of what the phrases are from.
    """

    encoders: tuple[str, str]
    texts: str
    holder: str = "table"


@dataclass(frozen=True)
class StoredPhrases:
    """The phrases of a table.

    Attributes:
        keys: hashes of the distinct phrases of each side, ascending, uint64, shape (K,).
        rows: row of the text of each phrase, for each side, -1 if it has none, int64, shape (K,).
        texts: texts of each side, in canonical order.
        sample: source row and target row of some pairs, and 1 if the pair counts for the AUC, int64, shape (M, 3).
    """

    keys: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
    rows: tuple[Int64Array, Int64Array]
    texts: tuple[Sequence[str], Sequence[str]]
    sample: Int64Array

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ when a phrase differs."""
        import hashlib

        digest = hashlib.sha256()
        for keys in self.keys:
            digest.update(len(keys).to_bytes(8, "little"))
            digest.update(keys.tobytes())
        return digest.hexdigest()[:16]


class VectorStore:
    """Folder of vectors; the description of the module lists its files.

    Args:
        folder: the folder; created if it does not exist.
        kind: expected properties of the vectors.

    Attributes:
        complete: whether the store has all vectors.

    Raises:
        ModelError: the folder is not a store, or holds vectors of another encoder or of other texts.
    """

    def __init__(self, folder: str | os.PathLike[str], kind: StoreKind) -> None:
        self.folder, self.kind = Path(folder), kind
        self._header = self._read_header()
        self.complete = bool(self._header.get("complete"))

    def _read_header(self) -> dict[str, Any]:
        file = self.folder / _HEADER
        if not file.is_file():
            # The header is written after these files; it is missing if a run was killed before.
            if self.folder.is_dir() and any(path.name not in _BEFORE_HEADER for path in self.folder.iterdir()):
                raise ModelError(f"{self.folder}: is not a store of vectors", remedy="name a store")
            return {}
        try:
            header = json.loads(file.read_text("utf-8"))
            encoders, texts, schema = tuple(header["encoders"]), header["texts"], header["schema"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelError(f"{file}: not the header of a store of vectors ({error})") from error
        if schema != _SCHEMA:
            raise ModelError(f"{file}: of version {schema}, expected {_SCHEMA}", remedy="name a store")
        if problem := header_problem(header):
            raise ModelError(f"{file}: damaged ({problem})", remedy="name a store")
        if encoders != self.kind.encoders:
            message = f"{self.folder}: holds vectors of another encoder, {encoders[0]}"
            raise ModelError(message + (f" and {encoders[1]}" if encoders[0] != encoders[1] else ""),
                             remedy="name a store")  # fmt: skip
        if texts != self.kind.texts:
            message = f"{self.folder}: its phrases were preprocessed differently: {texts}; expected {self.kind.texts}"
            raise ModelError(message, remedy="name a store")
        return dict(header)

    @property
    def counts(self) -> tuple[int, int]:
        """Number of texts of each side."""
        source, target = self._header["phrases"]
        return source, target

    def is_of(self, phrases: StoredPhrases) -> bool:
        """Return whether the store belongs to these phrases."""
        return bool(self._header.get("table") == phrases.fingerprint)

    @property
    def over_long(self) -> int:
        """Number of texts that the encoders truncated."""
        return int(self._header.get("over_long", 0))

    def fill(
        self, phrases: StoredPhrases, load: Callable[[], tuple[TextEncoder, TextEncoder]], name: str,
        watch: Watch = SILENT, threads: int = 1,
    ) -> None:  # fmt: skip
        """Encode the texts whose vectors are missing.

        Args:
            phrases: phrases of the table.
            load: loads the encoders.
            name: name of the encoders in messages.
            watch: progress reporter.
            threads: worker threads, for encoders that several threads can call.

        Raises:
            ModelError: the store belongs to another table; an encoder cannot be loaded or does not return vectors of
                its dimension; or the dimensions differ.
            PhraseToolError: the store cannot be written.
        """
        if self._header and not self.is_of(phrases):
            message = f"{self.folder}: holds vectors of the phrases of another {self.kind.holder}"
            raise ModelError(message, remedy="name a store")
        encoders = load()
        dimension = encoders[0].dimension
        for owner, size in (("target encoder", encoders[1].dimension), ("store", self._header.get("dimension"))):
            if size not in (None, dimension):
                raise ModelError(f"{name}: has dimension {dimension}, but the {owner} has {size}; they must be equal")
        check_folder(self.folder)
        missing = sum(max(2 * dimension * len(phrases.texts[i]) - self._size(side), 0) for i, side in enumerate(SIDES))
        check_space(self.folder, missing)
        with self._writing(), _locked(self.folder):
            self._begin(phrases, dimension)
            for which, side in enumerate(SIDES):
                self._encode(side, phrases.texts[which], encoders[which], name, watch, threads)
            cut = [getattr(encoder, "over_long", None) for encoder in encoders]
            count = sum(find(texts) for find, texts in zip(cut, phrases.texts, strict=True) if find)
            self._write_header(complete=True, over_long=count)
        self.complete = True

    def _size(self, side: Side) -> int:
        file = self.folder / f"{side}.vectors"
        return file.stat().st_size if file.is_file() else 0

    def _begin(self, phrases: StoredPhrases, dimension: int) -> None:
        if self._header:
            return
        for which, side in enumerate(SIDES):
            self._save(f"{side}.keys.npy", phrases.keys[which])
            self._save(f"{side}.rows.npy", phrases.rows[which])
        self._save(_SAMPLE, phrases.sample)
        self._write_header(
            schema=_SCHEMA, encoders=list(self.kind.encoders), texts=self.kind.texts, dimension=dimension,
            table=phrases.fingerprint, phrases=[len(texts) for texts in phrases.texts], complete=False,
        )  # fmt: skip

    def _encode(
        self, side: Side, texts: Sequence[str], encoder: TextEncoder, name: str, watch: Watch, threads: int
    ) -> None:
        """Append the vectors that are missing, batch by batch."""
        batch_bytes = 2 * encoder.dimension * BATCH
        whole = 2 * encoder.dimension * len(texts)
        with (
            open(self.folder / f"{side}.vectors", "ab") as file,
            watch.items(f"encode {side}", len(texts), "phrase") as tick,
        ):
            size = file.seek(0, os.SEEK_END)
            # An incomplete batch is encoded again.
            size = whole if size >= whole else size - size % batch_bytes
            file.truncate(size)
            encoded_before = size // (2 * encoder.dimension)
            tick(encoded_before)
            batches = (texts[first : first + BATCH] for first in range(encoded_before, len(texts), BATCH))

            def work(batch: Sequence[str]) -> HalfArray:
                return unit_rows(encoded(encoder, list(batch), side, name)).astype(np.float16)

            at_work = getattr(encoder, "at_work", contextlib.nullcontext)
            with at_work():
                for vectors in run(batches, work, threads if getattr(encoder, "parallel", False) else 1):
                    file.write(vectors.tobytes())
                    # Flush, so that a full disk is noticed before the next batch is encoded.
                    file.flush()
                    tick(len(vectors))

    def vectors(self, side: Side) -> HalfArray:
        """Return the vectors of a side, float16, shape (N, n), mapped into memory.

        Raises:
            ModelError: their file is damaged.
        """
        return self._mapped(f"{side}.vectors", self.counts[SIDES.index(side)])

    def _mapped(self, name: str, rows: int) -> HalfArray:
        dimension = self._header["dimension"]
        file = self.folder / name
        if not file.is_file() or file.stat().st_size != 2 * rows * dimension:
            raise ModelError(
                f"{file}: damaged; expected {rows:,} vectors of dimension {dimension}", remedy="name a store"
            )
        if not rows:
            return np.zeros((0, dimension), np.float16)
        return np.memmap(file, np.float16, "r", shape=(rows, dimension))

    def keys(self, side: Side) -> tuple[npt.NDArray[np.uint64], Int64Array]:
        """Return the hashes of a side's phrases, and the row of each.

        Raises:
            ModelError: their file is damaged.
        """
        keys, rows = self._load(f"{side}.keys.npy", np.uint64), self._load(f"{side}.rows.npy", np.int64)
        if len(keys) != len(rows) or (
            len(rows) and not -1 <= rows.min() <= rows.max() < self.counts[SIDES.index(side)]
        ):
            raise ModelError(f"{self.folder / side}.rows.npy: damaged", remedy="name a store")
        return keys, rows

    def normalised(
        self, how: Normalisation, watch: Watch = SILENT, threads: int = 1
    ) -> tuple[tuple[HalfArray, HalfArray], tuple[FloatArray, FloatArray], EncoderFit]:
        """Return normalised vectors, their nearness (see `nearness`), and the quality of the similarities.

        Whatever is missing in the store is computed and written.

        Args:
            how: the normalisation.
            watch: progress reporter.
            threads: worker threads.

        Raises:
            ModelError: the store is damaged.
            PhraseToolError: the store cannot be written.
        """
        if any(name not in self._header.get("made", ()) for name in self._files_of(how)):
            with self._writing(), _locked(self.folder):
                self._normalise(how, watch, threads)
        vectors = self._units(SIDES[0], how), self._units(SIDES[1], how)
        none = np.zeros(0, np.float32)
        reached = [self._load(self._reached(side, how), np.float32) if how.margin else none for side in SIDES]
        if how.margin and any(len(r) != count for r, count in zip(reached, self.counts, strict=True)):
            raise ModelError(f"{self.folder}: the nearness of its phrases is damaged", remedy="name a store")
        fits = self._header.get("fits", {})
        if how.name not in fits:
            fit = self._fit(how, vectors, (reached[0], reached[1]))
            with self._writing(), _locked(self.folder):
                self._write_header(fits={**fits, how.name: fit.as_dict()})
        return vectors, (reached[0], reached[1]), EncoderFit.from_dict(self._header["fits"][how.name])

    def _files_of(self, how: Normalisation) -> list[str]:
        names = [f"{side}.centred" for side in SIDES] if how.centred else []
        return names + ([self._reached(side, how) for side in SIDES] if how.margin else [])

    def _reached(self, side: Side, how: Normalisation) -> str:
        return f"{side}.{'centred' if how.centred else 'plain'}.nearness.npy"

    def _units(self, side: Side, how: Normalisation) -> HalfArray:
        if not how.centred:
            return self.vectors(side)
        return self._mapped(f"{side}.centred", self.counts[SIDES.index(side)])

    def _normalise(self, how: Normalisation, watch: Watch, threads: int) -> None:
        written = list(self._header.get("made", ()))
        if how.centred and "source.centred" not in written:
            for side in SIDES:
                vectors = self.vectors(side)
                self._replace(
                    f"{side}.centred", (part.tobytes() for part in prepared(vectors, mean_direction(vectors)))
                )
                written.append(f"{side}.centred")
        if how.margin:
            units = [self._units(side, how) for side in SIDES]
            samples = [sample_rows(rows) for rows in units]
            with watch.items("nearest phrases", sum(map(len, units)), "phrase") as tick:
                for which, side in enumerate(SIDES):
                    self._save(self._reached(side, how), nearness(units[which], samples[1 - which], threads))
                    written.append(self._reached(side, how))
                    tick(len(units[which]))
        self._write_header(made=written)

    def _fit(
        self, how: Normalisation, vectors: tuple[HalfArray, HalfArray], reached: tuple[FloatArray, FloatArray]
    ) -> EncoderFit:
        sample = self._load(_SAMPLE, np.int64)
        sources, targets, telling = (np.ascontiguousarray(column) for column in sample.reshape(-1, 3).T)

        def similarity(source_rows: Int64Array, target_rows: Int64Array) -> Any:
            return pair_similarities(source_rows, target_rows, vectors, reached, how.margin)

        return measure_encoder(similarity, sources, targets, telling == 1)

    # Files.

    def _load(self, name: str, kind: Any) -> npt.NDArray[Any]:
        try:
            array: npt.NDArray[Any] = np.load(self.folder / name, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ModelError(f"{self.folder / name}: cannot be read ({error})", remedy="name a store") from error
        if array.dtype != kind:
            raise ModelError(f"{self.folder / name}: damaged", remedy="name a store")
        return array

    def _save(self, name: str, array: npt.NDArray[Any]) -> None:
        import io

        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        self._replace(name, [buffer.getvalue()])

    def _write_header(self, **changes: Any) -> None:
        self._header = {**self._header, **changes}
        self._replace(_HEADER, [(json.dumps(self._header, indent=1) + "\n").encode()])

    def _replace(self, name: str, parts: Sequence[bytes] | Iterator[bytes]) -> None:
        """Write a file atomically."""
        scratch = self.folder / f".{name}.part"
        try:
            with open(scratch, "wb") as file:
                file.writelines(parts)
            os.replace(scratch, self.folder / name)
        finally:
            scratch.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            remedy = "encoded vectors are kept; run the same command to continue"
            raise PhraseToolError(f"{self.folder}: cannot write: {reason(error)}; {remedy}") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[IO[bytes]]:
    """Lock the folder against other writers.

    Raises:
        PhraseToolError: another process is writing to the folder.
    """
    with open(folder / _LOCK, "wb") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except BlockingIOError as error:
            raise PhraseToolError(f"{folder}: another run is writing to it") from error
        yield file
