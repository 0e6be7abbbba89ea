"""The tokenizer of an encoder's folder, whatever kind of encoder it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phrasetool.errors import ModelError, first_line

TOKENIZER = "tokenizer.json"


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder, a `tokenizers.Tokenizer` that neither cuts nor fills up.

    Raises:
        ModelError: there is none, or it is damaged.
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
    """How many texts have more tokens than that.

    Args:
        tokenizer: of `read_tokenizer`.
        texts: any.
        longest: tokens, those that the tokenizer adds included.
    """
    # No token is shorter than a byte, and few are added.
    candidates = [text for text in texts if len(text.encode()) + 8 > longest]
    return sum(len(encoding.ids) > longest for encoding in encode_batch(tokenizer, candidates, special=True))


def encode_batch(tokenizer: Any, texts: list[str], special: bool = False) -> Any:
    """The encodings of texts.

    Args:
        tokenizer: of `read_tokenizer`.
        texts: any.
        special: whether with the tokens that the tokenizer adds.

    Raises:
        ModelError: the tokenizer fails, as one without its token for unknown words does.
    """
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=special)
    except Exception as error:  # tokenizers raises bare exceptions
        raise ModelError(f"the tokenizer of the encoder fails: {first_line(error)}") from error
