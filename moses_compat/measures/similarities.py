"""Similarity sources for the entries of a table, their settings, and the folders of unfinished scores.

Each kind of source is a small class: a model, two score columns of the table itself, and a file saved by an earlier
run.  A pass through a table requests a reader from its source, passes it the blocks in order, and gets an array for
each block.  Settings of encoders (`EncoderRequest`, `LikelihoodRequest`) are plain values; neither they nor this module
load an encoder or Parquet.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from moses_compat.files.packing import without_ending
from moses_compat.files.paths import scratch_place
from moses_compat.lines.insert_scores import scale_range, unscale_scores
from moses_compat.measures.model_fit import FitCheck
from moses_compat.tables.blocks import RawBlock
from moses_compat.tables.parser import LineScan
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrase_encoder.model import CPU, BilingualModel
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.phrases import DoubleArray, EntryBlock
from phrasetool.vocabulary import Vocabulary

if TYPE_CHECKING:
    from moses_compat.measures.saved_scores import SavedScores


_LONGEST = 230

# Tolerance for the bounds of a scale, because scores are written with six decimals.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class EncoderRequest:
    """Settings of an external encoder.

    Attributes:
        folder: folder of the encoder.
        target_folder: folder of the encoder for the target side, if it is a different one.
        detokenise: language whose rules join tokens, or two languages separated by a comma, source first.
        prefix: text inserted before every phrase.
        normalise: one of `NORMALISATIONS`.
        store: folder of vectors; next to the table if None.

    Raises:
        ValueError: the language or the normalisation is unknown.
    """

    folder: str
    target_folder: str | None = None
    detokenise: str | None = None
    prefix: str = ""
    normalise: str = "centred-margin"
    store: str | None = None

    def __post_init__(self) -> None:
        from phrasetool.text_encoders.margins import NORMALISATIONS

        if self.normalise not in NORMALISATIONS:
            raise ValueError(f"unknown normalisation {self.normalise!r}; expected one of {', '.join(NORMALISATIONS)}")
        _ = self.ready

    @property
    def ready(self) -> Callable[[str, int], str]:
        """Function that converts the words of a phrase and its side, 0 or 1, to the text that is encoded.

        Raises:
            ValueError: `detokenise` names an unknown language, or more than two.
        """
        from phrasetool.text_encoders.text_encoder import detokeniser

        languages = (self.detokenise or "").split(",")
        if len(languages) > 2:
            raise ValueError(f"expected a language, or one for each side, not {self.detokenise!r}")
        detokenisers = [detokeniser(language) if self.detokenise else str for language in languages]
        prefix = self.prefix
        return lambda text, side: prefix + detokenisers[min(side, len(detokenisers) - 1)](text)

    def store_for(self, table: str, identities: tuple[str, str]) -> str:
        """Return the folder of vectors: the requested one, or one next to the table, named after the encoder."""
        names = [identity.rpartition("-")[2][:8] for identity in dict.fromkeys(identities)]
        return self.store or f"{without_ending(table)}.{'-'.join(names)}.vectors"


# Names of columns: the cosine, and the probabilities of the parts of speech of one side given the other.
COSINE, FORWARD, BACKWARD = "cosine", "forward", "backward"
SYNTAX_COLUMNS = {"cosine": (COSINE,), "likelihood": (FORWARD, BACKWARD), "all": (COSINE, FORWARD, BACKWARD)}


@dataclass(frozen=True)
class LikelihoodRequest:
    """Requested columns of a syntactic encoder.

    Attributes:
        kinds: columns in order.
        tagger: folder of a tagger that supports both languages.
        languages: languages of the table's sources and targets.
    """

    kinds: tuple[str, ...]
    tagger: str
    languages: tuple[str, str]


def parts_folder(output: str, number: int) -> str | None:
    """Return the folder for the finished scores of a translator; None for a stream, or without Parquet.

    Args:
        output: the output file of the run.
        number: number of the model, from 1.
    """
    if scratch_place(output) is None or not importlib.util.find_spec("pyarrow"):
        return None
    folder, name = os.path.split(output)
    # A file name has at most 255 bytes, including the ending.
    return os.path.join(folder, f"{os.fsdecode(os.fsencode(name)[:_LONGEST])}.scores-{number}")


@contextlib.contextmanager
def finishing(folders: Sequence[str | None]) -> Iterator[None]:
    """Run work that stores its finished scores in folders, and remove the folders when the work succeeds."""
    yield
    remove_finished_scores(folders)


def remove_finished_scores(folders: Sequence[str | None]) -> None:
    """Remove the folders of finished scores that exist."""
    if existing := [folder for folder in folders if folder and Path(folder).is_dir()]:
        from moses_compat.measures.saved_scores import remove_parts

        remove_parts(existing)


class SimilaritySource(Protocol):
    """Source of similarities of the two sides of entries."""

    @property
    def signature(self) -> str:
        """The source's part of the signature line."""

    def reader(self, table: str) -> SimilarityReader:
        """Return a reader for one pass through a table from its beginning.

        Args:
            table: name of the table in messages.

        Raises:
            DataError: the source cannot be read.
        """


class SimilarityReader:
    """Reader of the similarities of one table; by default, it needs only the table's blocks.

    Attributes:
        vocabularies: source and target vocabulary for parsing blocks; None if words are not needed.
        fingerprints: whether blocks must have fingerprints of their pairs.
        by_entry: whether a similarity depends only on its entry, so that some entries can be left out.
    """

    vocabularies: tuple[Vocabulary | None, Vocabulary | None] = (None, None)
    fingerprints = False
    by_entry = False

    def columns(self, scores: int, first_entry: int) -> Sequence[int]:
        """Return the 0-based score columns that the reader needs.

        Args:
            scores: number of scores per entry; -1 before the first valid entry.
            first_entry: 0-based number of a block's first entry.

        Raises:
            DataError: the entries do not have a column.
        """
        return ()

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        """Yield the blocks of the table; a reader that examines the first blocks may hold them back.

        Raises:
            DataError: the source does not match the table.
        """
        return raws

    @property
    def judged(self) -> bool:
        """Whether the source is known to match the table; until then, results of blocks must be held back."""
        return True

    def take(self, lines: int) -> Any:
        """Return the part of the source for the next block; called for all blocks, in order, by one thread.

        Raises:
            DataError: the source is damaged.
        """
        return None

    def recognise(self, raw: RawBlock, taken: Any) -> tuple[EntryBlock, Scores] | None:
        """Return a block and its similarities without parsing it, if possible; may be called by several threads.

        Args:
            raw: the block.
            taken: result of `take`.

        Returns:
            The block with only its groups, all lines being valid entries, and its similarities; or None.
        """
        return None

    def score(self, block: EntryBlock, columns: DoubleArray, taken: Any) -> Scores:
        """Return the similarities of a block's N entries; may be called by several threads.

        Args:
            block: the entries.
            columns: float64, shape (N, C), the score columns that `columns` returned.
            taken: result of `take`.

        Raises:
            DataError: the source does not match the table.
        """
        raise NotImplementedError

    def pass_over(self, raw: RawBlock, scan: LineScan) -> None:
        """Register a block whose stored result is reused; may be called by several threads.

        Args:
            raw: the block.
            scan: the positions of its fields.

        Raises:
            DataError: the source does not match the table.
        """

    def finish(self, entries: int) -> None:
        """Check the end of the table; called after the last block.

        Raises:
            DataError: the source has more entries.
        """


class OneProcessReader(SimilarityReader):
    """A reader that works in one process only, because its data are not sent to other processes.

    Attributes:
        owner: name of the source, for a message.
    """

    owner: str
    _table: str

    def __getstate__(self) -> dict[str, Any]:
        message = f"{self._table}: similarities of {self.owner} are looked up by one process"
        raise PhraseToolError(message, remedy="use threads")


@dataclass(frozen=True)
class ModelSimilarities:
    """Similarities computed by a model.

    Args:
        model: the model.
        check: the check that it matches the table; None for no check.
        device: the device that encodes, see `BilingualModel.scorer`.
    """

    model: BilingualModel
    check: FitCheck | None = None
    device: str = CPU

    @property
    def signature(self) -> str:
        """The model's part of the signature line."""
        return self.model.signature

    def reader(self, table: str) -> SimilarityReader:
        """Return a reader for one pass through a table."""
        return _ModelReader(table, self.model, self.check, self.device)


class _ModelReader(SimilarityReader):
    by_entry = True

    def __init__(self, table: str, model: BilingualModel, check: FitCheck | None, device: str) -> None:
        self._table, self._model, self._check = table, model, check
        self.vocabularies = model.source_vocabulary, model.target_vocabulary
        self._scorer = model.scorer(device)

    def __getstate__(self) -> dict[str, Any]:
        # Another process does not repeat the check, which uses the first blocks.
        return {**self.__dict__, "_check": None}

    def look_at(self, raws: Iterator[RawBlock]) -> Iterator[RawBlock]:
        return self._check.look(self._table, self._model, raws) if self._check else raws

    @property
    def judged(self) -> bool:
        return self._check is None or self._check.judged

    def score(self, block: EntryBlock, columns: DoubleArray, taken: Any) -> Scores:
        return self._scorer.score(block)


@dataclass(frozen=True)
class ColumnSimilarities:
    """Similarities read from two score columns of the table itself.

    Args:
        source_to_target, target_to_source: 0-based positions in the score field.
        scale: scale of the written similarities; see `insert_scores`.
    """

    source_to_target: int
    target_to_source: int
    scale: str = "exp"

    @property
    def signature(self) -> str:
        """The columns' part of the signature line."""
        return f"columns:{self.source_to_target + 1},{self.target_to_source + 1}|scale:{self.scale}"

    def reader(self, table: str) -> SimilarityReader:
        """Return a reader for one pass through a table."""
        return _ColumnReader(table, self)


class _ColumnReader(SimilarityReader):
    def __init__(self, table: str, source: ColumnSimilarities) -> None:
        self._table, self._source = table, source

    def columns(self, scores: int, first_entry: int) -> Sequence[int]:
        positions = self._source.source_to_target, self._source.target_to_source
        if 0 <= scores <= max(positions):
            message = f"column {max(positions) + 1} was requested, but entries have {scores} scores"
            raise DataError(self._table, message, first_entry + 1)
        return positions

    def score(self, block: EntryBlock, columns: DoubleArray, taken: Any) -> Scores:
        self._check_range(block, columns)
        return Scores(unscale_scores(columns, self._source.scale), ~block.malformed)

    def _check_range(self, block: EntryBlock, columns: DoubleArray) -> None:
        """Reject scores outside the range of the scale: they belong to other columns, or are on another scale."""
        lowest, highest = scale_range(self._source.scale)
        least, most = lowest - _ROUNDING, highest + _ROUNDING
        if not len(columns) or (least <= columns.min() and columns.max() <= most):
            return
        outside = ~((least <= columns) & (columns <= most)) & ~block.malformed[:, None]
        if outside.any():
            row = int(np.argmax(outside.any(axis=1)))
            side = int(np.argmax(outside[row]))
            column = (self._source.source_to_target, self._source.target_to_source)[side]
            message = (
                f"score {column + 1} is {columns[row, side]:g}; a similarity on the scale {self._source.scale} lies "
                f"between {lowest:g} and {highest:g}"
            )
            raise DataError(self._table, message, block.first_entry + row + 1)


@dataclass(frozen=True)
class FileSimilarities:
    """Similarities saved by an earlier run."""

    path: str

    @property
    def signature(self) -> str:
        """The signature of the source that computed them."""
        return self._saved().signature

    def reader(self, table: str) -> SimilarityReader:
        """Return a reader for one pass through a table."""
        return _FileReader(table, self._saved())

    def _saved(self) -> SavedScores:
        # Parquet is slow to import.
        from moses_compat.measures.saved_scores import SavedScores

        return SavedScores(self.path)


class _FileReader(SimilarityReader):
    fingerprints = True

    def __init__(self, table: str, saved: SavedScores) -> None:
        self._table, self._saved = table, saved

    def take(self, lines: int) -> Any:
        return self._saved.take(lines)

    def recognise(self, raw: RawBlock, taken: Any) -> tuple[EntryBlock, Scores] | None:
        marks, scores = taken
        block = marks.recognise(raw)
        return (block, scores) if block else None

    def score(self, block: EntryBlock, columns: DoubleArray, taken: Any) -> Scores:
        marks, scores = taken
        self._saved.check(self._table, block, marks)
        return Scores(scores.similarities, np.asarray(scores.scored & ~block.malformed))

    def finish(self, entries: int) -> None:
        self._saved.finish(self._table, entries)
