"""Fisher's exact test of the pairs of a table, based on the bitext that the table was made from.

Each side of the bitext has an index of its sentences (`CorpusIndex`), which is stored in a folder on request.  The
folder holds, for each side, `SIDE.json` (size, time and SHA-256 of the corpus) and a folder `SIDE-HASH` of npy files
that are mapped into memory.  `SIDE.json` is written last; an index is used only if the corpus has not changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moses_compat.corpora.bitexts import check_line_counts
from moses_compat.corpora.texts import read_corpus
from moses_compat.files.paths import STANDARD, display_name
from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import DataError, PhraseToolError, reason
from phrasetool.kernels.bytes import skip_blanks, token_end
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, Int64Array, Mask, Phrases
from phrasetool.pipeline import run
from phrasetool.pruning.significance import FisherExactTest, count_co_occurrences
from phrasetool.smt.corpus.sentence_index import SentenceIndex
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.vocabulary import is_label

_FORMAT = 1
_ARRAYS = ("text", "suffixes", "starts")

# Number of entries that are checked: if more than half of them have a side that does not occur in the corpora, the
# corpora do not belong to the table.
_TRIAL = 10_000


@dataclass(frozen=True)
class CorpusIndex:
    """One side of a bitext.

    Attributes:
        name: name of the corpus in messages.
        symbols: words of the corpus.
        sentences: index of the occurrences of these words.
        note: message about the stored index; empty if none was requested.
    """

    name: str
    symbols: Symbols
    sentences: SentenceIndex
    note: str = ""


def read_index(path: str, threads: int = 1) -> CorpusIndex:
    """Read and index a corpus with one sentence per line, words separated by spaces; lines may be empty.

    Args:
        path: the file, compressed or not; `-` for standard input.
        threads: number of threads for sorting.

    Raises:
        DataError: the file cannot be read, has no line, or is too large (2^31 words).
    """
    name = display_name(path)
    symbols = Symbols()
    try:
        corpus = read_corpus(path, symbols)
    except DataError as error:
        if not os.path.exists(path) and os.path.exists(f"{path}.sa_suffix"):
            raise DataError(name, "there are SALM files of this name, but a plain corpus is needed") from error
        raise
    if not len(corpus):
        raise DataError(name, "the corpus is empty")
    try:
        return CorpusIndex(name, symbols, SentenceIndex.build(corpus, len(symbols), threads))
    except ValueError as error:
        raise DataError(name, str(error)) from error


def kept_index(path: str, folder: str, side: str, threads: int = 1) -> CorpusIndex:
    """Return the index of a corpus stored in `folder`; build and store it if it is missing or the corpus has changed.

    Args:
        path: a file.
        side: name of the index in the folder: `source` or `target`.
        threads: number of threads for sorting.

    Raises:
        DataError: see `read_index`; or the corpus is standard input.
        PhraseToolError: the folder cannot be written to.
    """
    if path == STANDARD:
        raise DataError(display_name(path), "an index can be kept of a file only")
    try:
        status = os.stat(path)
    except OSError:
        return read_index(path, threads)
    index_folder = Path(folder)
    known = _read_key(index_folder / f"{side}.json")
    fresh = {"format": _FORMAT, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    unchanged = fresh.items() <= known.items()
    sha256 = "" if unchanged else _hash_file(path)
    if unchanged or (known.get("format"), known.get("sha256")) == (_FORMAT, sha256):
        loaded = _load(index_folder, side, known, path)
        if loaded:
            return loaded
    sha256 = sha256 or _hash_file(path)
    index = read_index(path, threads)
    _save(index_folder, side, index, {**fresh, "sha256": sha256})
    note = f"{index_folder}: the index of {path} was " + ("out of date and has been rebuilt" if known else "made")
    return CorpusIndex(index.name, index.symbols, index.sentences, note)


def read_indexes(
    source: str, target: str, threads: int = 1, folder: str | None = None
) -> tuple[CorpusIndex, CorpusIndex]:
    """Read and index both sides of a bitext, two at a time, with half of the threads each.

    Args:
        source, target: the files.
        threads: number of threads for both sides together.
        folder: folder for stored indexes, which are used if the corpora have not changed; see `kept_index`.

    Raises:
        DataError: see `read_index` and `kept_index`; or the files have different numbers of lines.
    """

    def load(side: tuple[str, str]) -> CorpusIndex:
        name, path = side
        share = max(threads // 2, 1)
        return kept_index(path, folder, name, share) if folder else read_index(path, share)

    first, second = run((("source", source), ("target", target)), load, min(threads, 2))
    check_line_counts(first.name, first.sentences.sentences, second.name, second.sentences.sentences)
    return first, second


def _hash_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(path, reason(error)) from error


def _read_key(path: Path) -> dict[str, Any]:
    """Return the stored description of an index's corpus; empty if it is missing or damaged."""
    try:
        key = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return key if isinstance(key, dict) else {}


def _data_folder(side: str, sha256: str) -> str:
    return f"{side}-{sha256[:16]}"


def _load(place: Path, side: str, key: dict[str, Any], path: str) -> CorpusIndex | None:
    """Return the stored index, or None if its files are missing or damaged."""
    folder = place / _data_folder(side, str(key.get("sha256")))
    try:
        # Copy on write, because kernels are compiled for writable arrays.
        text, suffixes, starts = (
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)) for name in _ARRAYS
        )
        words = np.load(folder / "words.npy", allow_pickle=False)
    except (OSError, ValueError):
        return None
    symbols = Symbols()
    symbols.read_lines(words.tobytes())
    types = [array.dtype.name for array in (text, suffixes, starts)]
    if (
        types != ["int32", "int32", "int64"]
        or len(starts) != len(symbols) + 1
        or starts[-1] != len(suffixes)
        or len(suffixes) > len(text)
    ):
        return None
    return CorpusIndex(display_name(path), symbols, SentenceIndex(text, suffixes, starts), f"{place}: using the index")


def _save(place: Path, side: str, index: CorpusIndex, key: dict[str, Any]) -> None:
    """Write the arrays to a new folder, then the key, then remove outdated folders."""
    sentences = index.sentences
    arrays = {name: getattr(sentences, name) for name in _ARRAYS}
    arrays["words"] = np.frombuffer(b"\n".join(index.symbols.words), np.uint8)
    final = place / _data_folder(side, key["sha256"])
    try:
        place.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place, f".{side}-") as scratch:
            new_folder = Path(scratch)
            for name, array in arrays.items():
                np.save(new_folder / f"{name}.npy", array, allow_pickle=False)
            (new_folder / "key").write_text(json.dumps(key))
            if final.exists():
                shutil.rmtree(final)
            os.replace(new_folder, final)
            os.replace(final / "key", place / f"{side}.json")
    except OSError as error:
        raise PhraseToolError(f"{place}: cannot write the index: {reason(error)}") from error
    for old in place.glob(f"{side}-*"):
        if old != final:
            shutil.rmtree(old, ignore_errors=True)


class CorpusMismatchError(DataError):
    """Error for corpora that are not those that the table was made from."""


@dataclass(frozen=True)
class PairTestResults:
    """Results of the test for M entries.

    Attributes:
        counts: int64, shape (M, 3): numbers of sentence pairs with both sides, with the source, and with the target.
        values: float64, shape (M,): -ln p.
        wordless: bool, shape (M,): a side has no word, so the entry cannot be tested.
        absent_sources, absent_targets: bool, shape (M,): that side does not occur in its corpus.
    """

    counts: Int64Array
    values: DoubleArray
    wordless: Mask
    absent_sources: Mask
    absent_targets: Mask


class PairTest:
    """Test of phrase pairs; may be called by several threads.

    Args:
        source, target: the corpora.
        hierarchical: whether to look up the runs of words between labels such as `[X]`, as filter-pt's `-h` does.

    Raises:
        ValueError: the corpora have different numbers of sentences.
    """

    def __init__(self, source: CorpusIndex, target: CorpusIndex, hierarchical: bool = False) -> None:
        if source.sentences.sentences != target.sentences.sentences:
            raise ValueError("the corpora have different numbers of sentences")
        self.source, self.target = source, target
        self._hierarchical = hierarchical
        self._test = FisherExactTest(source.sentences.sentences)

    @property
    def alpha(self) -> float:
        """-ln p of a pair whose sides each occur once, together."""
        return self._test.alpha

    def __call__(
        self, text: ByteArray, starts: Int64Array, source_ends: Int64Array, target_ends: Int64Array
    ) -> PairTestResults:
        """Test the pairs of M entries of a text.

        Args:
            text: uint8.
            starts, source_ends, target_ends: int64, shape (M,), positions of the lines, and of their first two `|||`.
        """
        sides = [
            (self.source, starts, source_ends),
            (self.target, source_ends + 3, target_ends),
        ]
        phrases: list[Phrases] = []
        parts: list[Int64Array | None] = []
        wordless = np.zeros(len(starts), np.bool_)
        for corpus, firsts, ends in sides:
            borders = None
            if self._hierarchical:
                firsts, ends, borders = _terminal_runs(text, firsts, ends)
            side_phrases = corpus.symbols.read_fields(text, firsts, ends, add=False)
            phrases.append(side_phrases)
            parts.append(borders)
            wordless |= np.diff(borders) == 0 if borders is not None else side_phrases.lengths == 0
        indexes = self.source.sentences, self.target.sentences
        counts = count_co_occurrences(*indexes, phrases[0], phrases[1], parts[0], parts[1])
        values = self._test.negative_log_p(*counts)
        _, absent_sources, absent_targets = (counts == 0) & ~wordless
        return PairTestResults(counts.T, values, wordless, absent_sources, absent_targets)


class CorpusCheck:
    """Check whether the first entries of a table occur in the corpora at all.

    Args:
        table: name of the table in messages.
        test: test of the table's pairs.
    """

    def __init__(self, table: str, test: PairTest) -> None:
        self._table = table
        self._test = test
        self._absent = np.zeros((0, 2), np.bool_)
        self.passed = False

    def add(self, tested: PairTestResults) -> None:
        """Add the results of the next entries.

        Raises:
            CorpusMismatchError: there are enough entries, and more than half have a side that does not occur.
        """
        if not self.passed:
            absent = np.column_stack([tested.absent_sources, tested.absent_targets])[~tested.wordless]
            self._absent = np.concatenate([self._absent, absent])[:_TRIAL]
            if len(self._absent) == _TRIAL:
                self.check()

    def check(self) -> None:
        """Check the entries added so far; must be called after the last entry at the latest.

        Raises:
            CorpusMismatchError: see `add`.
        """
        if 2 * int(self._absent.any(axis=1).sum()) > len(self._absent):
            sources, targets = self._absent.sum(axis=0).tolist()
            raise CorpusMismatchError(
                self._table,
                f"of its first {len(self._absent):,} entries, {sources:,} have a source that does not occur in "
                f"{self._test.source.name}, {targets:,} a target that does not occur in "
                f"{self._test.target.name}; another corpus, other tokens, or the two swapped?",
            )
        self.passed = True


@exact_kernel
def _find_runs(
    text: ByteArray, starts: Int64Array, ends: Int64Array, run_starts: Int64Array, run_ends: Int64Array,
    borders: Int64Array,
) -> None:  # fmt: skip
    """Split fields at labels; field i has the runs borders[i]..borders[i + 1] - 1."""
    count = 0
    for field in range(len(starts)):
        inside = False
        i = skip_blanks(text, starts[field], ends[field])
        while i < ends[field]:
            first = i
            i = token_end(text, i, ends[field])
            if is_label(text, first, i):
                inside = False
            else:
                if not inside:
                    run_starts[count] = first
                    count += 1
                    inside = True
                run_ends[count - 1] = i
            i = skip_blanks(text, i, ends[field])
        borders[field + 1] = count


def _terminal_runs(text: ByteArray, starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the runs of words between labels of N fields: starts, ends, and the first run of each field (N + 1)."""
    # Two runs are separated by a label of at least three bytes and two blanks.
    room = int(((ends - starts) // 6 + 1).sum())
    run_starts, run_ends = np.empty((2, room), np.int64)
    borders = np.zeros(len(starts) + 1, np.int64)
    _find_runs(text, starts, ends, run_starts, run_ends, borders)
    return run_starts[: borders[-1]], run_ends[: borders[-1]], borders
