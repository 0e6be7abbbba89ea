"""Subword units of a BERT: cased WordPiece, with all frequent characters of the text among the pieces.

As in BERT, words are separated by spaces and punctuation.  WordPiece treats a word as unknown if a part of it has no
piece.  Therefore each character that is frequent enough is a piece in two forms, at the start of a word and within
one: text without spaces, and words that were segmented differently, can be represented, too.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from phrasetool.bert.settings import MaskedLmSettings

# Special tokens, in the order of their ids, the first of all.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN_PIECE, BEGIN, END, MASK = range(5)
_WITHIN = "##"
# Unicode private use characters of planes 15 and 16: the first, and their number.
_PRIVATE, _MOST_FORMS = 0xF0000, 0x1FFF0
# Unicode categories of control, unassigned and private use characters.
_NO_TEXT = ("Cc", "Cf", "Cn", "Co", "Cs")
# Number of words per line of the trainer's input.
_TOGETHER = 1000


def train_word_pieces(lines: Sequence[str], settings: MaskedLmSettings) -> Any:
    """Learn pieces: the characters, and sequences of them that byte pair encoding merges.

    Args:
        lines: text, words separated by spaces, without Moses' escapes.
        settings: number of pieces, and treatment of Chinese characters.

    Returns:
        A `tokenizers.Tokenizer` that adds special tokens to a text or a pair of texts.  It has fewer pieces than
        requested if the text does not yield as many.

    Raises:
        ValueError: the text has no character that is frequent enough.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    empty = _parts(Tokenizer(models.WordPiece(unk_token=SPECIAL[UNKNOWN_PIECE])), settings)
    words: Counter[str] = Counter()
    for line in lines:
        spans = empty.pre_tokenizer.pre_tokenize_str(empty.normalizer.normalize_str(line))
        words.update(word for word, _ in spans)
    starts, within = _characters(words, settings)
    if not starts:
        raise ValueError("there is no text to learn pieces from")
    # The trainer of WordPiece breaks ties at random, that of byte pair encoding does not.  Therefore a character within
    # a word is replaced by a private use character for training, and by its form with `##` afterwards.
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
    """Return the characters that are pieces at the start of a word, and within one.

    If they would be more than half of the vocabulary, the most frequent ones are taken.
    """
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
    """Yield lines with each word as often as it occurs, except words with a character that is not a piece."""
    for word, count in words.items():
        if word[0] in starts and all(character in forms for character in word[1:]):
            encoded = word[0] + "".join(forms[character] for character in word[1:])
            for first in range(0, count, _TOGETHER):
                yield " ".join([encoded] * min(_TOGETHER, count - first))


def _alone(character: str, settings: MaskedLmSettings) -> bool:
    """Return whether a character is always a word of its own."""
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
