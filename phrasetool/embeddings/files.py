"""Read word vectors: word2vec (text and binary), GloVe (text), fastText (text and binary)."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import struct
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO

import numpy as np

from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import DataError
from phrasetool.phrases import FloatArray
from phrasetool.text_splitting import split_words
from phrasetool.vocabulary import UNKNOWN_WORD

_FASTTEXT_MAGIC = struct.pack("<i", 793712314)
# Number of bytes from which the format of a file is detected.
_HEAD_BYTES = 1 << 16


def open_plain(path: str) -> BinaryIO:
    """Open a file that is not compressed.

    Raises:
        DataError: the file cannot be opened.
    """
    try:
        return open(path, "rb", buffering=_HEAD_BYTES)
    except OSError as error:
        raise DataError(path, f"cannot read word vectors: {error}") from error


def load_vectors(
    path: str,
    words: Collection[bytes],
    dimension: int | None = None,
    opened: Callable[[str], BinaryIO] = open_plain,
) -> dict[bytes, FloatArray]:
    """Load the vectors of `words` (and of their lower-cased forms) that a file contains.

    A fastText binary file has a vector for every word, computed from its character n-grams.

    Args:
        path: the file; its format is detected from its content.
        words: words whose vectors are loaded.
        dimension: required dimension of the vectors; None for any.
        opened: opens the file, decompresses it if necessary, and returns a stream with `peek`; called once.

    Returns:
        word -> float32 of shape (n,).

    Raises:
        DataError: the file cannot be read, is damaged, has another dimension, or has a vector for none of the words; or
            a vector has a number that is not finite.
    """
    forms = {*words, *(word.lower() for word in words)}
    with opened(path) as file:
        try:
            vectors, size = _load(path, file, forms)
        except OSError as error:
            raise DataError(path, f"cannot read word vectors: {error}") from error
    for word, vector in vectors.items():
        if not np.isfinite(vector).all():
            raise DataError(path, f"the vector of {word.decode('utf-8', 'replace')!r} has a number that is not finite")
    if dimension is not None and size != dimension:
        raise DataError(path, f"the vectors have dimension {size}, but dimension {dimension} was requested")
    if not vectors.keys() - {UNKNOWN_WORD}:
        needed = len(set(words) - {UNKNOWN_WORD})
        raise DataError(
            path, f"has vectors for none of the {needed:,} words that need one; expected vectors of their language"
        )
    return vectors


def _load(path: str, file: BinaryIO, needed: set[bytes]) -> tuple[dict[bytes, FloatArray], int]:
    """Return the vectors of the needed words from a file of any format, and the dimension of all its vectors."""
    head: bytes = file.peek(_HEAD_BYTES)  # type: ignore[attr-defined]
    if head.startswith(_FASTTEXT_MAGIC):
        return _load_fasttext_binary(path, file, needed)
    first, _, rest = head.partition(b"\n")
    header = split_words(first.removesuffix(b"\r"))
    counted = len(header) == 2 and all(part.isdigit() and len(part) < 19 for part in header)
    if counted and _looks_binary(rest, int(header[1])):
        return _load_word2vec_binary(path, file, needed)
    return _load_text(path, file, needed, counted)


def _looks_binary(rest: bytes, dimension: int) -> bool:
    """Return whether the first entry is a word followed by binary floats."""
    space = rest.find(b" ")
    values = rest[space + 1 : space + 1 + 4 * dimension]
    line = split_words(rest.partition(b"\n")[0].removesuffix(b"\r"))
    if len(line) == dimension + 1:
        try:
            [float(part) for part in line[1:]]
        except ValueError:
            return True
        return False
    return space >= 0 and len(values) == 4 * dimension


def _load_text(path: str, file: BinaryIO, needed: set[bytes], counted: bool) -> tuple[dict[bytes, FloatArray], int]:
    vectors: dict[bytes, FloatArray] = {}
    size: int | None = None
    count = number = 0
    for number, line in enumerate(file, 1):
        if number == 1 and counted:
            count, size = (int(part) for part in split_words(line.rstrip(b"\r\n")))
            continue
        # Words may contain spaces (as in GloVe's 840B file), so fields are counted from the end.
        parts = line.rstrip(b" \t\r\n").split(b" ")
        if size is None:
            size = len(parts) - 1
            if size < 1:
                raise DataError(path, "expected a word and its vector", number)
        word = b" ".join(parts[:-size])
        if not word:
            raise DataError(path, f"expected a word and {size} numbers, found {len(parts)} fields", number)
        if word in needed and word not in vectors:
            try:
                with np.errstate(over="ignore"):
                    vectors[word] = np.array(parts[-size:], np.float32)
            except ValueError as error:
                raise DataError(path, f"expected {size} numbers after the word", number) from error
    if size is None:
        raise DataError(path, "the file contains no vectors")
    if counted and number - 1 < count:
        raise DataError(path, f"the file ends after {number - 1:,} of {count:,} vectors")
    return vectors, size


def _load_word2vec_binary(path: str, file: BinaryIO, needed: set[bytes]) -> tuple[dict[bytes, FloatArray], int]:
    vectors: dict[bytes, FloatArray] = {}
    count, size = (int(part) for part in split_words(file.readline().rstrip(b"\r\n")))
    for entry in range(count):
        word = bytearray()
        while (character := file.read(1)) != b" ":
            if not character:
                raise DataError(path, f"the file ends after {entry} of {count} vectors")
            if character != b"\n":
                word += character
        data = file.read(4 * size)
        if len(data) < 4 * size:
            raise DataError(path, f"the file ends after {entry} of {count} vectors")
        if bytes(word) in needed:
            vectors[bytes(word)] = np.frombuffer(data, "<f4").astype(np.float32)
    return vectors, size


def _load_fasttext_binary(path: str, file: BinaryIO, needed: set[bytes]) -> tuple[dict[bytes, FloatArray], int]:
    from gensim.models.fasttext import load_facebook_vectors

    logging.getLogger("gensim").setLevel(logging.ERROR)
    with scratch_folder(None, "phrasetool-") as scratch:
        # Gensim reads from a path, and interprets its extension.
        plain = Path(scratch, "vectors.bin")
        if _is_plain(path):
            plain.symlink_to(os.path.abspath(path))
        else:
            with plain.open("wb") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
        try:
            model = load_facebook_vectors(plain)
        except Exception as error:  # gensim raises various exceptions for damaged files
            raise DataError(path, f"damaged fastText file ({error})") from error
    vectors = {}
    for word in needed:
        text = word.decode("utf-8", "replace")
        if text:
            vectors[word] = np.asarray(model[text], np.float32)
    return vectors, int(model.vector_size)


def _is_plain(path: str) -> bool:
    """Return whether the path is a regular, uncompressed fastText file; anything else is copied, maybe gigabytes."""
    with contextlib.suppress(OSError):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return file.read(len(_FASTTEXT_MAGIC)) == _FASTTEXT_MAGIC
    return False
