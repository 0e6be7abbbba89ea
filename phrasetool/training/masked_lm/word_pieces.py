"""The pieces of words of an own BERT: WordPiece, cased, with all characters of the text among the pieces.

Words are what stands between spaces, without the punctuation, as in BERT.  WordPiece reads a word as unknown when it
has no piece for a part of it.  So each character that is seen often enough is a piece in both forms, at the start of
a word and within one: text without spaces, and words that were segmented in another way, have pieces too.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from phrasetool.training.masked_lm.masked_lm_settings import MaskedLmSettings

# In this order they are the first ids.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN_PIECE, BEGIN, END, MASK = range(5)
_WITHIN = "##"
# Characters of nobody's, planes 15 and 16.
_PRIVATE, _MOST_FORMS = 0xF0000, 0x1FFF0
# Control characters, and those of nobody's.
_NO_TEXT = ("Cc", "Cf", "Cn", "Co", "Cs")
# Words in a line that the trainer reads.
_TOGETHER = 1000


def train_word_pieces(lines: Sequence[str], settings: MaskedLmSettings) -> Any:
    """Learn pieces: the characters, and what byte pair encoding joins of them.

    Args:
        lines: text, words between spaces, without escapes.
        settings: how many pieces, and what becomes of Chinese characters.

    Returns:
        A `tokenizers.Tokenizer` that puts special tokens around a text, and between the two of a pair.  It has fewer
        pieces than were asked for when the text does not give more.

    Raises:
        ValueError: there is no character to make pieces of.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    empty = _parts(Tokenizer(models.WordPiece(unk_token=SPECIAL[UNKNOWN_PIECE])), settings)
    words: Counter[str] = Counter()
    for line in lines:
        found = empty.pre_tokenizer.pre_tokenize_str(empty.normalizer.normalize_str(line))
        words.update(word for word, _ in found)
    starts, within = _characters(words, settings)
    if not starts:
        raise ValueError("there is no text to learn pieces from")
    # The trainer of WordPiece settles ties by chance, that of characters does not.  So a character within a word is
    # written as one of its own, and forms with `##` come back at the end.
    forms = {character: chr(_PRIVATE + i) for i, character in enumerate(within)}
    plain = {form: character for character, form in forms.items()}
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocabulary_size - len(SPECIAL), min_frequency=settings.min_count,
        initial_alphabet=[*starts, *plain], show_progress=False,
    )  # fmt: skip
    joined = Tokenizer(models.BPE())
    joined.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    joined.train_from_iterator(_written(words, set(starts), forms), trainer)
    pieces = list(SPECIAL)
    for token, _ in sorted(joined.get_vocab().items(), key=lambda item: item[1]):
        text = "".join(plain.get(character, character) for character in token)
        pieces.append(_WITHIN + text if token[0] in plain else text)
    model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token=SPECIAL[UNKNOWN_PIECE])
    return _with_special_tokens(_parts(Tokenizer(model), settings))


def _characters(words: Counter[str], settings: MaskedLmSettings) -> tuple[list[str], list[str]]:
    """Those at the start of a word, and those within one; the most frequent where they would take over half of all."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    starts: list[str] = []
    within: list[str] = []
    most = min(settings.vocabulary_size // 2, _MOST_FORMS)
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count < settings.min_count or unicodedata.category(character) in _NO_TEXT:
            continue
        alone = _alone(character, settings)
        if len(starts) + len(within) + 2 - alone > most:
            break
        starts.append(character)
        if not alone:
            within.append(character)
    return starts, within


def _written(words: Counter[str], starts: set[str], forms: Mapping[str, str]) -> Iterator[str]:
    """The words as often as they are seen, those with a character that is no piece left out."""
    for word, count in words.items():
        if word[0] in starts and all(character in forms for character in word[1:]):
            written = word[0] + "".join(forms[character] for character in word[1:])
            for first in range(0, count, _TOGETHER):
                yield " ".join([written] * min(_TOGETHER, count - first))


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
