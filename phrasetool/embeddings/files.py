"""Read word vectors: word2vec (text and binary), GloVe (text), fastText (text and binary), gzip or not."""

from __future__ import annotations

import gzip
import logging
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from phrasetool.errors import DataError
from phrasetool.phrases import FloatArray

_FASTTEXT_MAGIC = struct.pack("<i", 793712314)


def load_vectors(path: str, words: Collection[bytes], dimension: int | None = None) -> dict[bytes, FloatArray]:
    """The vectors of `words` (and of their lower-cased forms) that a file has.

    fastText binary files give every word a vector, from its character n-grams.

    Args:
        path: the file; its form is told by its content.
        words: which vectors are wanted.
        dimension: what the vectors must have; None for any.

    Returns:
        word -> float32 of shape (n,).

    Raises:
        DataError: the file cannot be read, is damaged, or has another dimension.
    """
    try:
        with _open(path) as file:
            head = file.read(1 << 16)
    except (OSError, EOFError) as error:
        raise DataError(path, f"cannot read word vectors: {error}") from error
    wanted = {*words, *(word.lower() for word in words)}
    if head.startswith(_FASTTEXT_MAGIC):
        vectors = _load_fasttext_binary(path, wanted)
    else:
        first, _, rest = head.partition(b"\n")
        header = first.split()
        counted = len(header) == 2 and all(part.isdigit() for part in header)
        if counted and _looks_binary(rest, int(header[1])):
            vectors = _load_word2vec_binary(path, wanted)
        else:
            vectors = _load_text(path, wanted, counted)
    for vector in vectors.values():
        if dimension is not None and len(vector) != dimension:
            raise DataError(path, f"the vectors have dimension {len(vector)}, but dimension {dimension} was asked for")
        break
    return vectors


def _open(path: str) -> Any:
    with open(path, "rb") as file:
        magic = file.read(2)
    return gzip.open(path, "rb") if magic == b"\x1f\x8b" else open(path, "rb")


def _looks_binary(rest: bytes, dimension: int) -> bool:
    """Whether the first entry is a word followed by floats in binary."""
    space = rest.find(b" ")
    values = rest[space + 1 : space + 1 + 4 * dimension]
    line = rest.partition(b"\n")[0].split()
    if len(line) == dimension + 1:
        try:
            [float(part) for part in line[1:]]
        except ValueError:
            return True
        return False
    return space >= 0 and len(values) == 4 * dimension


def _load_text(path: str, wanted: set[bytes], counted: bool) -> dict[bytes, FloatArray]:
    vectors: dict[bytes, FloatArray] = {}
    size: int | None = None
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and counted:
                size = int(line.split()[1])
                continue
            # Words may hold spaces (GloVe's 840B file has some), so count from the end.
            parts = line.rstrip().split(b" ")
            if size is None:
                size = len(parts) - 1
                if size < 1:
                    raise DataError(path, "expected a word and its vector", number)
            word = b" ".join(parts[:-size])
            if not word:
                raise DataError(path, f"expected a word and {size} numbers, found {len(parts)} fields", number)
            if word in wanted and word not in vectors:
                try:
                    vectors[word] = np.array(parts[-size:], np.float32)
                except ValueError as error:
                    raise DataError(path, f"expected {size} numbers after the word", number) from error
    return vectors


def _load_word2vec_binary(path: str, wanted: set[bytes]) -> dict[bytes, FloatArray]:
    vectors: dict[bytes, FloatArray] = {}
    with _open(path) as file:
        count, size = (int(part) for part in file.readline().split())
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
            if bytes(word) in wanted:
                vectors[bytes(word)] = np.frombuffer(data, "<f4").astype(np.float32)
    return vectors


def _load_fasttext_binary(path: str, wanted: set[bytes]) -> dict[bytes, FloatArray]:
    from gensim.models.fasttext import load_facebook_vectors

    logging.getLogger("gensim").setLevel(logging.ERROR)
    try:
        model = load_facebook_vectors(Path(path))
    except Exception as error:  # gensim raises whatever the damaged bytes lead to
        raise DataError(path, f"damaged fastText file ({error})") from error
    vectors = {}
    for word in wanted:
        text = word.decode("utf-8", "replace")
        if text:
            vectors[word] = np.asarray(model[text], np.float32)
    return vectors
