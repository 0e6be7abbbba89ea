"""Text encoders: their protocol, their tokenizers, and detokenisation of the texts that they encode.

Detokenisation follows Moses' rules (detokenizer.perl) as far as phrases need them: punctuation that attaches to the
preceding or the following token, and languages that are written without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from phrasetool.errors import ModelError, first_line
from phrasetool.phrases import FloatArray

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
TOKENIZER = "tokenizer.json"
# Languages that are written without spaces.
_WITHOUT_SPACES = {"zh", "ja", "th", "lo", "km", "my", "bo", "yue"}
# Punctuation that attaches to the preceding token, and to the following token.
_TO_THE_LEFT = re.compile(r"[,.?!:;)\]}%»”’…]+")
_TO_THE_RIGHT = re.compile(r"[(\[{¿¡«„“‘$£€]+")
# Contractions: Moses' tokeniser splits before them in English, after them in `_ELIDING`.
_ENGLISH_END = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll|t))", re.IGNORECASE)
_ELIDED = re.compile(r"[^\W\d_]+['’]")
_ELIDING = {"fr", "it", "ca", "ga"}
_ASCII = re.compile(r"[\x20-\x7e]+")


class TextEncoder(Protocol):
    """Encodes texts of two languages into one space.

    Three optional attributes are used if they exist: `parallel`, true if several threads may call the encoder at once;
    `over_long(texts)`, which returns the number of texts that the encoder truncates; and `at_work()`, a context manager
    within which the encoder is called.

    Attributes:
        dimension: n, size of its vectors.
        identity: text that differs when the vector of a text differs.
    """

    dimension: int
    identity: str

    def encode(self, texts: list[str], side: Side) -> FloatArray:
        """Return the vectors of N texts.

        Args:
            texts: at least one text.
            side: side of the table that the texts are from.

        Returns:
            float32, shape (N, n); zeros for a text without known tokens.
        """


def encoded(encoder: TextEncoder, texts: list[str], side: Side, name: str) -> FloatArray:
    """Encode texts and check the result.

    Args:
        encoder: the encoder.
        texts, side: see `TextEncoder.encode`.
        name: name of the encoder in messages.

    Raises:
        ModelError: the vectors do not have the expected shape, or are not finite.
    """
    vectors = np.asarray(encoder.encode(texts, side), np.float32)
    if vectors.shape != (len(texts), encoder.dimension):
        expected = f"{len(texts)} vectors of dimension {encoder.dimension}"
        raise ModelError(f"{name}: gave an array of shape {vectors.shape}, expected {expected}")
    if not np.isfinite(vectors).all():
        text = texts[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
        raise ModelError(f"{name}: the vector of {text!r} is not finite")
    return vectors


def read_tokenizer(folder: Path) -> Any:
    """Read the tokenizer of a folder, a `tokenizers.Tokenizer`, and disable truncation and padding.

    Raises:
        ModelError: the tokenizer is missing or damaged.
    """
    file = folder / TOKENIZER
    if not file.is_file():
        raise ModelError(f"{folder}: has no {TOKENIZER}; save the tokenizer in its fast form")
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises bare exceptions
        raise ModelError(f"{file}: not a tokenizer ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def over_long(tokenizer: Any, texts: list[str], longest: int) -> int:
    """Return the number of texts with more than `longest` tokens, including those that the tokenizer adds.

    Args:
        tokenizer: result of `read_tokenizer`.
        texts: the texts.
        longest: maximum number of tokens.
    """
    # Every token has at least one byte, and few tokens are added.
    candidates = [text for text in texts if len(text.encode()) + 8 > longest]
    return sum(len(encoding.ids) > longest for encoding in encode_batch(tokenizer, candidates, special=True))


def encode_batch(tokenizer: Any, texts: list[str], special: bool = False) -> Any:
    """Tokenize texts; return their encodings.

    Args:
        tokenizer: result of `read_tokenizer`.
        texts: the texts.
        special: whether the tokenizer adds special tokens.

    Raises:
        ModelError: the tokenizer fails, for example because its token for unknown words is missing.
    """
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=special)
    except Exception as error:  # tokenizers raises bare exceptions
        raise ModelError(f"the tokenizer of the encoder fails: {first_line(error)}") from error


def detokeniser(language: str) -> Callable[[str], str]:
    """Return a function that joins the tokens of a phrase as in plain text.

    Args:
        language: code of two or three letters.

    Raises:
        ValueError: the code is invalid.
    """
    if not re.fullmatch(r"[a-z]{2,3}", language):
        raise ValueError(f"{language!r} is not a language code; expected one such as de, en or zh")
    if language in _WITHOUT_SPACES:
        return _without_spaces
    return lambda text: _with_spaces(text, language)


def _without_spaces(text: str) -> str:
    """Join tokens without spaces, except between words of Latin letters."""
    joined = ""
    for token in text.split(" "):
        joined += (" " if joined and _ASCII.fullmatch(token) and _ASCII.fullmatch(joined[-1]) else "") + token
    return joined


def _with_spaces(text: str, language: str) -> str:
    joined, attached, quotes = "", True, 0
    for token in text.split(" "):
        left = bool(_TO_THE_LEFT.fullmatch(token)) or (language == "en" and bool(_ENGLISH_END.fullmatch(token)))
        # Moses' tokeniser marks hyphens within a word.
        hyphen = token == "@-@"
        closing = token in ('"', "'") and quotes % 2 == 1
        joined += ("" if attached or left or hyphen or closing else " ") + ("-" if hyphen else token)
        opening = token in ('"', "'") and not closing
        quotes += token in ('"', "'")
        elided = language in _ELIDING and bool(_ELIDED.fullmatch(token))
        attached = hyphen or opening or elided or bool(_TO_THE_RIGHT.fullmatch(token))
    return joined
