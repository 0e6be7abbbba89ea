"""Subword units shared by all languages: byte-pair encoding (Sennrich et al. 2016) by sentencepiece.

Pieces never cross a space, so the pieces of a word do not depend on its sentence, and can be cached.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from phrasetool.phrases import Int32Array, Mask, Phrases

# Marks the beginning of a word; as a piece of its own it carries no information.
_BLANK = "▁"
# A character that has no piece is represented by pieces of its bytes.
_OPTIONS: dict[str, Any] = {
    "model_type": "bpe", "input_format": "tsv", "character_coverage": 1.0, "byte_fallback": True, "num_threads": 1,
    "normalization_rule_name": "identity", "bos_id": -1, "eos_id": -1, "pad_id": -1, "minloglevel": 3,
    "shuffle_input_sentence": False,
}  # fmt: skip
# Longer words are not segmented: they are hardly words, and segmentation is meant for words.
_LONGEST_WORD = 400
UNKNOWN_PIECE = 0


def learn_pieces(counts: Mapping[bytes, int], size: int) -> bytes:
    """Learn pieces from words.

    Args:
        counts: word -> number of its occurrences.
        size: number of pieces; fewer are learnt if the words do not yield as many.

    Returns:
        A serialised model of sentencepiece.

    Raises:
        ValueError: the size is too small for the characters, or `counts` has no word.
    """
    lines = sorted((_text(word), count) for word, count in counts.items() if len(word) <= _LONGEST_WORD and word)
    if not lines:
        raise ValueError("there is no word to learn pieces from")
    try:
        return _learnt(lines, size)
    except RuntimeError as error:
        maximum = re.search(r"too high .*<= (\d+)", str(error))
        if not maximum:
            too_small = "required_chars" in str(error)
            raise ValueError(f"{size} pieces are too few for the characters" if too_small else str(error)) from error
        return _learnt(lines, int(maximum[1]))


def _learnt(lines: list[tuple[str, int]], size: int) -> bytes:
    import sentencepiece

    def sentences() -> Iterator[str]:
        for text, count in lines:
            yield f"{text}\t{count}"

    stored = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences(), model_writer=stored, vocab_size=size, **_OPTIONS
    )
    return stored.getvalue()


class PieceTable:
    """Segments words into pieces.

    Args:
        stored: serialised model, as returned by `learn_pieces`.

    Attributes:
        stored: the same.
        pieces: texts of the pieces; the first is the unknown piece.
        silent: pieces that carry no information (the unknown piece, and the bare mark of the beginning of a word),
            bool, shape (len(pieces),).

    Raises:
        ValueError: `stored` is not a model of sentencepiece.
    """

    def __init__(self, stored: bytes) -> None:
        import sentencepiece

        self.stored = stored
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=stored)
        except RuntimeError as error:
            raise ValueError(f"not a model of sentencepiece ({error})") from error
        self.pieces = [self._processor.id_to_piece(i) for i in range(self._processor.get_piece_size())]
        self.silent: Mask = np.array([piece in (self.pieces[UNKNOWN_PIECE], _BLANK) for piece in self.pieces])
        self._cache: dict[bytes, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def of_word(self, word: bytes) -> list[int]:
        """Return the piece ids of a word without Moses' escapes."""
        ids = self._cache.get(word)
        if ids is None:
            ids = [UNKNOWN_PIECE] if len(word) > _LONGEST_WORD else self._processor.encode(_text(word))
            self._cache[word] = ids
        return ids

    def of_texts(self, texts: Phrases, words: Sequence[bytes]) -> Phrases:
        """Return texts as piece ids, given texts as ids of their distinct words."""
        return in_parts(texts, Phrases.from_lists([self.of_word(word) for word in words]))


def in_parts(texts: Phrases, parts: Phrases) -> Phrases:
    """Replace each word of texts by its parts.

    Args:
        texts: texts as word ids.
        parts: parts of each word.
    """
    chosen = parts.select(texts.words.astype(np.int64))
    return Phrases(chosen.offsets[texts.offsets], chosen.words)


def known_pieces(texts: Phrases, known: Mask) -> Phrases:
    """Replace pieces that are not known by the unknown piece; `known` is bool, of shape (pieces,)."""
    words: Int32Array = np.where(known[texts.words], texts.words, UNKNOWN_PIECE).astype(np.int32)
    return Phrases(texts.offsets, words)


def _text(word: bytes) -> str:
    # A tab would end the word in the input of sentencepiece's trainer.
    return word.decode("utf-8", "replace").replace("\t", " ")
