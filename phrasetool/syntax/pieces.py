"""Pieces of words, shared by all languages: byte-pair encoding (Sennrich et al. 2016) by sentencepiece.

Pieces never cross a blank, so the pieces of a word owe nothing to its sentence, and can be kept.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from phrasetool.phrases import Int32Array, Mask, Phrases

# Stands before the first piece of a word; alone it says nothing.
_BLANK = "▁"
# Of a character that has no piece there are those of its bytes.
_OPTIONS: dict[str, Any] = {
    "model_type": "bpe", "input_format": "tsv", "character_coverage": 1.0, "byte_fallback": True, "num_threads": 1,
    "normalization_rule_name": "identity", "bos_id": -1, "eos_id": -1, "pad_id": -1, "minloglevel": 3,
    "shuffle_input_sentence": False,
}  # fmt: skip
# A longer word is no word, and the search for pieces is for words.
_LONGEST_WORD = 400
UNKNOWN_PIECE = 0


def learn_pieces(counts: Mapping[bytes, int], size: int) -> bytes:
    """Learn pieces from words.

    Args:
        counts: word -> how often it was seen.
        size: how many pieces; fewer where the words give no more.

    Returns:
        A model of sentencepiece, as it is stored.

    Raises:
        ValueError: the size is too small for the characters, or there is no word.
    """
    lines = sorted((_text(word), count) for word, count in counts.items() if len(word) <= _LONGEST_WORD and word)
    if not lines:
        raise ValueError("there is no word to learn pieces from")
    try:
        return _learnt(lines, size)
    except RuntimeError as error:
        found = re.search(r"too high .*<= (\d+)", str(error))
        if not found:
            least = re.search(r"\((\d+)\).*required_chars.*|required_chars", str(error))
            raise ValueError(f"{size} pieces are too few for the characters" if least else str(error)) from error
        return _learnt(lines, int(found[1]))


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
    """Gives words their pieces.

    Args:
        stored: of `learn_pieces`.

    Attributes:
        stored: the same.
        pieces: as text; the first stands for what is unknown.
        silent: bool, shape (len(pieces),), those that say nothing: the unknown one, and the mere beginning of a word.

    Raises:
        ValueError: it is no model of sentencepiece.
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
        self._known: dict[bytes, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def of_word(self, word: bytes) -> list[int]:
        """The numbers of the pieces of a word without escapes."""
        found = self._known.get(word)
        if found is None:
            found = [UNKNOWN_PIECE] if len(word) > _LONGEST_WORD else self._processor.encode(_text(word))
            self._known[word] = found
        return found

    def of_texts(self, texts: Phrases, words: Sequence[bytes]) -> Phrases:
        """Texts in numbers of pieces, given texts in numbers of their distinct words."""
        return in_parts(texts, Phrases.from_lists([self.of_word(word) for word in words]))


def in_parts(texts: Phrases, parts: Phrases) -> Phrases:
    """Texts in which each word is replaced by its parts.

    Args:
        texts: in numbers of words.
        parts: of each word.
    """
    chosen = parts.select(texts.words.astype(np.int64))
    return Phrases(chosen.offsets[texts.offsets], chosen.words)


def known_pieces(texts: Phrases, known: Mask) -> Phrases:
    """The same texts with the unknown piece for those that are not known; known bool, shape (pieces,)."""
    words: Int32Array = np.where(known[texts.words], texts.words, UNKNOWN_PIECE).astype(np.int32)
    return Phrases(texts.offsets, words)


def _text(word: bytes) -> str:
    # A tabulator would end a word where pieces are learnt.
    return word.decode("utf-8", "replace").replace("\t", " ")
