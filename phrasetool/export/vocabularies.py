"""Files that define the units of another system: vocabularies and segmenters.

The format is detected from the contents of the file:

* a SentencePiece model;
* a `tokenizer.json` of the Hugging Face library tokenizers;
* merges of subword-nmt (first line `#version: ...`), https://github.com/rsennrich/subword-nmt;
* a list of tokens: one per line (text after a tab or a space is ignored), JSON (a list, or an object that maps tokens
  to numbers), or one line `token: number` per token, as Marian writes them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from phrasetool.errors import DataError, PhraseToolError, first_line, reason
from phrasetool.export.units import SPACE_MARK, Pieces, Segmenter, Words
from phrasetool.text_splitting import split_lines, split_words

_JOINER = "@@"
_INNER = "##"
_LARGEST = 1 << 30


@dataclass(frozen=True)
class UnitVocabulary:
    """Contents of a vocabulary or segmenter file.

    Attributes:
        segmenter: splits words into units.
        numbers: unit -> its number; None if the file contains no numbers.
    """

    segmenter: Segmenter
    numbers: dict[str, int] | None = None


def read_vocabulary(path: str) -> UnitVocabulary:
    """Read a vocabulary or a segmenter.

    Raises:
        DataError: the file cannot be read, or has none of the formats listed above.
        PhraseToolError: the library that reads this format is not installed.
    """
    try:
        if Path(path).stat().st_size > _LARGEST:
            raise DataError(path, f"has more than {_LARGEST:,} bytes; expected a vocabulary")
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataError(path, f"cannot read the vocabulary: {reason(error)}") from error
    if not data.strip(b" \t\r\n"):
        raise DataError(path, "is empty; expected a vocabulary")
    if b"\0" in data or (data[:1] == b"\n" and b"<unk>" in data[:64]):
        return _sentencepiece(path, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, "is not UTF-8; expected a vocabulary") from error
    if text.startswith("#version"):
        return UnitVocabulary(_Merges(path, text))
    if text.lstrip(" \t\r\n")[:1] in ("{", "["):
        return _json(path, text)
    return _list(path, text)


def _sentencepiece(path: str, data: bytes) -> UnitVocabulary:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise PhraseToolError(f"{path}: a SentencePiece model needs the package sentencepiece") from error
    try:
        model = SentencePieceProcessor(model_proto=data)
    except Exception as error:
        raise DataError(path, f"is not a SentencePiece model: {first_line(error)}") from error
    numbers = {model.id_to_piece(number): number for number in range(len(model))}
    return UnitVocabulary(Pieces(lambda text: model.encode(text, out_type=str), numbers.keys()), numbers)


def _json(path: str, text: str) -> UnitVocabulary:
    try:
        numbers = json.loads(text)
    except ValueError as error:
        raise DataError(path, f"is not valid JSON: {error}") from error
    if isinstance(numbers, dict) and "model" in numbers:
        return _tokenizer(path, text)
    if isinstance(numbers, list) and all(isinstance(token, str) for token in numbers):
        return _numbered(path, {token: number for number, token in enumerate(numbers)})
    if isinstance(numbers, dict) and all(type(number) is int for number in numbers.values()):
        return _numbered(path, numbers)
    raise DataError(path, "expected a list of tokens, numbers by token, or a tokenizer.json")


def _tokenizer(path: str, text: str) -> UnitVocabulary:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        message = f"{path}: a tokenizer.json needs the package tokenizers, part of phrasetool's extra encoders"
        raise PhraseToolError(message) from error
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:
        raise DataError(path, f"cannot read the tokenizer: {first_line(error)}") from error
    encode: Callable[[str], Sequence[str]] = lambda line: tokenizer.encode(line, add_special_tokens=False).tokens  # noqa: E731
    numbers = dict(tokenizer.get_vocab())
    return UnitVocabulary(Pieces(encode, numbers.keys()), numbers)


def _list(path: str, text: str) -> UnitVocabulary:
    lines = split_lines(text)
    pairs = [line.rpartition(": ") for line in lines if split_words(line)]
    if all(token and number.strip(" \t").isdigit() for token, _, number in pairs):
        return _numbered(path, {_unquoted(token): int(number) for token, _, number in pairs})
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines):
        token = line.split("\t")[0].split(" ")[0]
        numbers.setdefault(token, number)
    return _numbered(path, numbers)


def _unquoted(token: str) -> str:
    """Return a YAML key without its quotes, if it has any."""
    if len(token) > 1 and token[0] == token[-1] == '"':
        try:
            return str(json.loads(token))
        except ValueError:
            return token[1:-1]
    return token[1:-1].replace("''", "'") if len(token) > 1 and token[0] == token[-1] == "'" else token


def _numbered(path: str, numbers: dict[str, int]) -> UnitVocabulary:
    subwords = sum(token.startswith((SPACE_MARK, _INNER)) or token.endswith(_JOINER) for token in numbers)
    if 4 * subwords > len(numbers):
        message = "is a list of subword units; name the segmenter's model or its merges"
        raise DataError(path, message)
    return UnitVocabulary(Words(), numbers)


class _Merges:
    """Byte-pair encoding of subword-nmt: a subword that does not end its word is followed by `@@`."""

    glues = False

    def __init__(self, path: str, text: str) -> None:
        lines = split_lines(text)[1:]
        self._ranks: dict[tuple[str, str], int] = {}
        for number, line in enumerate(lines, 2):
            pair = line.strip(" ").split(" ")
            if len(pair) != 2:
                raise DataError(path, "expected two subword units separated by a space", number)
            self._ranks.setdefault((pair[0], pair[1]), number)
        # In version 0.1 the end of a word is a separate symbol.
        self._apart = text.startswith("#version: 0.1")
        self._found: dict[str, Sequence[str]] = {}

    def __call__(self, word: str) -> Sequence[str]:
        """Return the subwords of a word."""
        if word not in self._found:
            self._found[word] = self._split(word)
        return self._found[word]

    glued = __call__

    def _split(self, word: str) -> Sequence[str]:
        end = "</w>"
        parts = [*word, end] if self._apart else [*word[:-1], word[-1] + end]
        while len(parts) > 1:
            best = min(itertools.pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self._ranks) + 2))
            if best not in self._ranks:
                break
            merged, i = [], 0
            while i < len(parts):
                both = i + 1 < len(parts) and (parts[i], parts[i + 1]) == best
                merged.append(parts[i] + parts[i + 1] if both else parts[i])
                i += 1 + both
            parts = merged
        parts[-1] = parts[-1].removesuffix(end)
        parts = parts if parts[-1] else parts[:-1]
        return [part + _JOINER for part in parts[:-1]] + parts[-1:]

    def text(self, line: str) -> list[str]:
        """Return the subwords of a line whose words are separated by spaces."""
        return [piece for word in split_words(line) for piece in self(word)]
