"""Vectors of a table's phrases in a folder: encoded once, used by every later run, without the encoder.

| file | what it holds |
|---|---|
| `store.json` | which encoders, texts and table it is of, and whether it is complete |
| `SIDE.keys.npy`, `SIDE.rows.npy` | a hash for each distinct phrase, and the row of its vector, or -1 |
| `SIDE.vectors` | float16, a row for each distinct text, of length one: shortest text first, then by bytes |
| `SIDE.centred`, `SIDE.*.nearness.npy` | made of the vectors when they are asked for |
| `sample.npy` | some pairs of the table, by rows, to measure the encoder on |

Vectors are appended batch by batch, so an interrupted run goes on where it was, and a full disk leaves what was done.
A batch holds the same texts in every run, so the vectors do not depend on threads or interruptions.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from phrasetool.disk.writable import check_folder, check_space
from phrasetool.errors import ModelError, PhraseToolError, reason
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.pipeline import run
from phrasetool.text_encoders.encoder_fit import EncoderFit, measure_encoder
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
from phrasetool.text_encoders.store_header import header_fault
from phrasetool.text_encoders.text_encoder import SIDES, Side, TextEncoder, encoded
from phrasetool.watch import NOBODY, Watch

_SCHEMA = 1
_HEADER, _SAMPLE, _LOCK = "store.json", "sample.npy", ".lock"
_FIRST = (*(f"{side}.{what}.npy" for side in SIDES for what in ("keys", "rows")), _SAMPLE)
_BEFORE_HEADER = {_LOCK, *_FIRST, *(f".{name}.part" for name in (*_FIRST, _HEADER))}
# Texts that an encoder sees at a time.
BATCH = 256


@dataclass(frozen=True)
class StoreKind:
    """What the vectors of a store depend on besides the phrases.

    Attributes:
        encoders: identities, source first.
        texts: what becomes of a phrase before it is encoded.
        holder: what messages call that which the phrases are of.
    """

    encoders: tuple[str, str]
    texts: str
    holder: str = "table"


@dataclass(frozen=True)
class StoredPhrases:
    """The phrases of a table.

    Attributes:
        keys: uint64, shape (K,), of each side, ascending: hashes of the different phrases.
        rows: int64, shape (K,), of each side: the text of each phrase; -1 for one that has none.
        texts: of each side, in canonical order.
        sample: int64, shape (M, 3): source row and target row of some pairs, and 1 where the pair could be told from
            others by what it means.
    """

    keys: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
    rows: tuple[Int64Array, Int64Array]
    texts: tuple[Sequence[str], Sequence[str]]
    sample: Int64Array

    @property
    def fingerprint(self) -> str:
        """Differs when a phrase differs."""
        import hashlib

        digest = hashlib.sha256()
        for keys in self.keys:
            digest.update(len(keys).to_bytes(8, "little"))
            digest.update(keys.tobytes())
        return digest.hexdigest()[:16]


class VectorStore:
    """A folder of vectors; see the module.

    Args:
        folder: it; need not be there.
        kind: what the vectors must be of.

    Attributes:
        complete: whether all vectors are there.

    Raises:
        ModelError: the folder is something else, or holds vectors of another encoder or of other texts.
    """

    def __init__(self, folder: str | os.PathLike[str], kind: StoreKind) -> None:
        self.folder, self.kind = Path(folder), kind
        self._header = self._read_header()
        self.complete = bool(self._header.get("complete"))

    def _read_header(self) -> dict[str, Any]:
        file = self.folder / _HEADER
        if not file.is_file():
            # The header is written behind these; it is missing where a run was killed before.
            if self.folder.is_dir() and any(path.name not in _BEFORE_HEADER for path in self.folder.iterdir()):
                raise ModelError(f"{self.folder}: is no store of vectors", remedy="name a store")
            return {}
        try:
            found = json.loads(file.read_text("utf-8"))
            encoders, texts, schema = tuple(found["encoders"]), found["texts"], found["schema"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelError(f"{file}: not of a store of vectors ({error})") from error
        if schema != _SCHEMA:
            raise ModelError(f"{file}: of version {schema}, expected {_SCHEMA}", remedy="name a store")
        if fault := header_fault(found):
            raise ModelError(f"{file}: damaged ({fault})", remedy="name a store")
        if encoders != self.kind.encoders:
            message = f"{self.folder}: holds vectors of another encoder, {encoders[0]}"
            raise ModelError(message + (f" and {encoders[1]}" if encoders[0] != encoders[1] else ""),
                             remedy="name a store")  # fmt: skip
        if texts != self.kind.texts:
            message = f"{self.folder}: its phrases were encoded otherwise, {texts}; now {self.kind.texts}"
            raise ModelError(message, remedy="name a store")
        return dict(found)

    @property
    def counts(self) -> tuple[int, int]:
        """How many texts each side has."""
        source, target = self._header["phrases"]
        return source, target

    def is_of(self, phrases: StoredPhrases) -> bool:
        """Whether the store is of these phrases."""
        return bool(self._header.get("table") == phrases.fingerprint)

    @property
    def over_long(self) -> int:
        """How many texts were cut by the encoders."""
        return int(self._header.get("over_long", 0))

    def fill(
        self, phrases: StoredPhrases, load: Callable[[], tuple[TextEncoder, TextEncoder]], name: str,
        watch: Watch = NOBODY, threads: int = 1,
    ) -> None:  # fmt: skip
        """Encode what is not there yet.

        Args:
            phrases: of the table.
            load: gives the encoders.
            name: what messages call them.
            watch: follows the work.
            threads: worker threads, for encoders that can be called by several.

        Raises:
            ModelError: it is of another table; or an encoder cannot be loaded, or gives something else than vectors of
                one dimension.
            PhraseToolError: it cannot be written.
        """
        if self._header and not self.is_of(phrases):
            message = f"{self.folder}: holds vectors of the phrases of another {self.kind.holder}"
            raise ModelError(message, remedy="name a store")
        encoders = load()
        dimension = encoders[0].dimension
        for what, found in (("target encoder", encoders[1].dimension), ("store", self._header.get("dimension"))):
            if found not in (None, dimension):
                raise ModelError(f"{name}: has dimension {dimension}, but the {what} has {found}; both must be one")
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
            there = file.seek(0, os.SEEK_END)
            # What was cut off in the middle of a batch is done again.
            there = whole if there >= whole else there - there % batch_bytes
            file.truncate(there)
            done = there // (2 * encoder.dimension)
            tick(done)
            batches = (texts[first : first + BATCH] for first in range(done, len(texts), BATCH))

            def work(batch: Sequence[str]) -> HalfArray:
                return unit_rows(encoded(encoder, list(batch), side, name)).astype(np.float16)

            at_work = getattr(encoder, "at_work", contextlib.nullcontext)
            with at_work():
                for vectors in run(batches, work, threads if getattr(encoder, "parallel", False) else 1):
                    file.write(vectors.tobytes())
                    # A batch that cannot be written is no use later.
                    file.flush()
                    tick(len(vectors))

    def vectors(self, side: Side) -> HalfArray:
        """The vectors of a side, float16, shape (N, n), in memory only where they are looked at."""
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
        """The hashes of a side's phrases, and the row of each."""
        keys, rows = self._load(f"{side}.keys.npy", np.uint64), self._load(f"{side}.rows.npy", np.int64)
        if len(keys) != len(rows) or (
            len(rows) and not -1 <= rows.min() <= rows.max() < self.counts[SIDES.index(side)]
        ):
            raise ModelError(f"{self.folder / side}.rows.npy: damaged", remedy="name a store")
        return keys, rows

    def normalised(
        self, how: Normalisation, watch: Watch = NOBODY, threads: int = 1
    ) -> tuple[tuple[HalfArray, HalfArray], tuple[FloatArray, FloatArray], EncoderFit]:
        """Vectors, what they reach with their nearest, and how well they tell pairs; made when first asked for.

        Raises:
            ModelError: the store is damaged.
            PhraseToolError: it cannot be written.
        """
        if any(name not in self._header.get("made", ()) for name in self._wanted(how)):
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

    def _wanted(self, how: Normalisation) -> list[str]:
        names = [f"{side}.centred" for side in SIDES] if how.centred else []
        return names + ([self._reached(side, how) for side in SIDES] if how.margin else [])

    def _reached(self, side: Side, how: Normalisation) -> str:
        return f"{side}.{'centred' if how.centred else 'plain'}.nearness.npy"

    def _units(self, side: Side, how: Normalisation) -> HalfArray:
        if not how.centred:
            return self.vectors(side)
        return self._mapped(f"{side}.centred", self.counts[SIDES.index(side)])

    def _normalise(self, how: Normalisation, watch: Watch, threads: int) -> None:
        made = list(self._header.get("made", ()))
        if how.centred and "source.centred" not in made:
            for side in SIDES:
                vectors = self.vectors(side)
                self._replace(
                    f"{side}.centred", (part.tobytes() for part in prepared(vectors, mean_direction(vectors)))
                )
                made.append(f"{side}.centred")
        if how.margin:
            units = [self._units(side, how) for side in SIDES]
            samples = [sample_rows(rows) for rows in units]
            with watch.items("nearest phrases", sum(map(len, units)), "phrase") as tick:
                for which, side in enumerate(SIDES):
                    self._save(self._reached(side, how), nearness(units[which], samples[1 - which], threads))
                    made.append(self._reached(side, how))
                    tick(len(units[which]))
        self._write_header(made=made)

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
            found: npt.NDArray[Any] = np.load(self.folder / name, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ModelError(f"{self.folder / name}: cannot be read ({error})", remedy="name a store") from error
        if found.dtype != kind:
            raise ModelError(f"{self.folder / name}: damaged", remedy="name a store")
        return found

    def _save(self, name: str, array: npt.NDArray[Any]) -> None:
        import io

        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        self._replace(name, [buffer.getvalue()])

    def _write_header(self, **changes: Any) -> None:
        self._header = {**self._header, **changes}
        self._replace(_HEADER, [(json.dumps(self._header, indent=1) + "\n").encode()])

    def _replace(self, name: str, parts: Sequence[bytes] | Iterator[bytes]) -> None:
        """Write a file that appears under its name when it is whole."""
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
            message = (
                f"{self.folder}: cannot write: {reason(error)}; what was encoded is kept, and the same command goes on"
            )
            raise PhraseToolError(message) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[IO[bytes]]:
    """Nobody else writes to the folder.

    Raises:
        PhraseToolError: somebody does.
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
