"""A plain corpus as an index of its sentences; kept in a folder on request.

The folder holds, for each side, `SIDE.json` (what the index was made from: size, time and SHA-256 of the corpus) and a
folder `SIDE-HASH` of npy files that are mapped into memory.  `SIDE.json` is written last; an index is used only if the
corpus is still the one it was made from.
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
from phrasetool.pipeline import run
from phrasetool.smt.corpus.sentence_index import SentenceIndex
from phrasetool.smt.corpus.symbols import Symbols

_FORMAT = 1
_ARRAYS = ("text", "suffixes", "starts")


@dataclass(frozen=True)
class CorpusIndex:
    """One side of a bitext.

    Attributes:
        name: the corpus, as messages call it.
        symbols: its words.
        sentences: where they occur.
        note: what happened to the kept index, for people; empty if none was asked for.
    """

    name: str
    symbols: Symbols
    sentences: SentenceIndex
    note: str = ""


def read_index(path: str, threads: int = 1) -> CorpusIndex:
    """Read and index a corpus: a sentence a line, words between spaces; lines may be empty.

    Args:
        path: the file, compressed or not; `-` for standard input.
        threads: how many sort.

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
        raise DataError(name, "the corpus has no line")
    try:
        return CorpusIndex(name, symbols, SentenceIndex.build(corpus, len(symbols), threads))
    except ValueError as error:
        raise DataError(name, str(error)) from error


def kept_index(path: str, folder: str, side: str, threads: int = 1) -> CorpusIndex:
    """The index of a corpus that `folder` keeps; made, or made again if the corpus has changed, and kept.

    Args:
        path: a file.
        side: what to call it in the folder: `source` or `target`.
        threads: how many sort.

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
    place = Path(folder)
    known = _read_key(place / f"{side}.json")
    fresh = {"format": _FORMAT, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    unchanged = fresh.items() <= known.items()
    sha256 = "" if unchanged else _hash_file(path)
    if unchanged or (known.get("format"), known.get("sha256")) == (_FORMAT, sha256):
        loaded = _load(place, side, known, path)
        if loaded:
            return loaded
    sha256 = sha256 or _hash_file(path)
    index = read_index(path, threads)
    _save(place, side, index, {**fresh, "sha256": sha256})
    note = f"{place}: the index of {path} was " + ("out of date and has been made again" if known else "made")
    return CorpusIndex(index.name, index.symbols, index.sentences, note)


def read_indexes(
    source: str, target: str, threads: int = 1, folder: str | None = None
) -> tuple[CorpusIndex, CorpusIndex]:
    """Read and index both sides of a bitext, two at a time, with half of the threads each.

    Args:
        source, target: the files.
        threads: for both.
        folder: keep the indexes here, and use them if the corpora have not changed since; see `kept_index`.

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
    """What an index was made from; nothing if there is none."""
    try:
        key = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return key if isinstance(key, dict) else {}


def _data_folder(side: str, sha256: str) -> str:
    return f"{side}-{sha256[:16]}"


def _load(place: Path, side: str, key: dict[str, Any], path: str) -> CorpusIndex | None:
    """The kept index, or none if its files are damaged."""
    folder = place / _data_folder(side, str(key.get("sha256")))
    try:
        # Copy on write: kernels are compiled for arrays that can be written to.
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
    """Write the arrays to a folder of their own, then the key, then remove what is out of date."""
    sentences = index.sentences
    arrays = {name: getattr(sentences, name) for name in _ARRAYS}
    arrays["words"] = np.frombuffer(b"\n".join(index.symbols.words), np.uint8)
    final = place / _data_folder(side, key["sha256"])
    try:
        place.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place, f".{side}-") as scratch:
            made = Path(scratch)
            for name, array in arrays.items():
                np.save(made / f"{name}.npy", array, allow_pickle=False)
            (made / "key").write_text(json.dumps(key))
            if final.exists():
                shutil.rmtree(final)
            os.replace(made, final)
            os.replace(final / "key", place / f"{side}.json")
    except OSError as error:
        raise PhraseToolError(f"{place}: cannot write the index: {reason(error)}") from error
    for old in place.glob(f"{side}-*"):
        if old != final:
            shutil.rmtree(old, ignore_errors=True)
