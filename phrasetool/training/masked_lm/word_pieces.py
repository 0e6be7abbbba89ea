"""The pieces of words of an own BERT: WordPiece, cased, with all characters of the text among the pieces.

Words are what stands between spaces, without the punctuation, as in BERT.  WordPiece reads a word as unknown when it
has no piece for a part of it.  So each character that is seen often enough is a piece in both forms, at the start of
a word and within one: text without spaces, and words that were segmented in another way, have pieces too.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from phrasetool.training.masked_lm.masked_lm_settings import MaskedLmSettings

# In this order they are the first ids.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN_PIECE, BEGIN, END, MASK = range(5)
_WITHIN = "##"


def train_word_pieces(lines: Sequence[str], settings: MaskedLmSettings) -> Any:
    """Learn pieces.

    Args:
        lines: text, words between spaces, without escapes.
        settings: how many pieces, and what becomes of Chinese characters.

    Returns:
        A `tokenizers.Tokenizer` that puts special tokens around a text, and between the two of a pair.  It has fewer
        pieces than were asked for when the text does not give more.

    Raises:
        ValueError: there is no character to make pieces of.
    """
    from tokenizers import Tokenizer, models, trainers

    characters = _characters(lines, settings)
    if not characters:
        raise ValueError("there is no text to learn pieces from")
    tokenizer = _parts(Tokenizer(models.WordPiece(unk_token=SPECIAL[UNKNOWN_PIECE])), settings)
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.vocabulary_size, min_frequency=settings.min_count, special_tokens=list(SPECIAL),
        continuing_subword_prefix=_WITHIN, show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(lines, trainer, length=len(lines))
    learnt = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    # Behind the characters what was learnt, in the order of learning.
    merged = [piece for piece, _ in learnt if len(piece.removeprefix(_WITHIN)) > 1 and piece not in SPECIAL]
    pieces = [*SPECIAL, *characters, *merged][: settings.vocabulary_size]
    model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token=SPECIAL[UNKNOWN_PIECE])
    return _with_special_tokens(_parts(Tokenizer(model), settings))


def _characters(lines: Sequence[str], settings: MaskedLmSettings) -> list[str]:
    """Characters in the forms that occur; the most frequent ones where they would take more than half of the pieces."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
    forms: list[str] = []
    most = settings.vocabulary_size // 2
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count < settings.min_count or character.isspace() or unicodedata.category(character) in ("Cc", "Cf", "Cn"):
            continue
        own = [character] if _alone(character, settings) else [character, _WITHIN + character]
        if len(forms) + len(own) > most:
            break
        forms += own
    return forms


def _alone(character: str, settings: MaskedLmSettings) -> bool:
    """Whether a character is always a word by itself."""
    ascii_mark = character.isascii() and not character.isalnum()
    if ascii_mark or unicodedata.category(character).startswith("P"):
        return True
    return settings.han == "characters" and _normalizer(settings).normalize_str(character) != character


def _normalizer(settings: MaskedLmSettings) -> Any:
    from tokenizers import normalizers

    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=settings.han == "characters", strip_accents=False, lowercase=False
    )


def _parts(tokenizer: Any, settings: MaskedLmSettings) -> Any:
    from tokenizers import decoders, pre_tokenizers

    tokenizer.normalizer = _normalizer(settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=_WITHIN)
    return tokenizer


def _with_special_tokens(tokenizer: Any) -> Any:
    from tokenizers import processors

    tokenizer.add_special_tokens(list(SPECIAL))
    begin, end = SPECIAL[BEGIN], SPECIAL[END]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1", special_tokens=[(begin, BEGIN), (end, END)]
    )
    return tokenizer
