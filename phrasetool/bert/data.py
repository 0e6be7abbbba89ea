"""Subword units of a BERT, and its training texts as their ids: batches and masking.

The units are cased WordPiece.  As in BERT, words are separated by spaces and punctuation.  WordPiece treats a word as
unknown if a part of it has no piece.  Therefore each character that is frequent enough is a piece in two forms, at the
start of a word and within one: text without spaces, and words that were segmented differently, can be represented, too.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phrasetool.bert.settings import MaskedLmSettings
from phrasetool.phrases import Int64Array, Mask, Phrases, prefix_sums
from phrasetool.training.data import fingerprint, held_out_groups, text_parts

# Special tokens, in the order of their ids, which are the lowest ids.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN_PIECE, BEGIN, END, MASK = range(5)
_WITHIN = "##"
# Unicode private use characters of planes 15 and 16: the first, and their number.
_PRIVATE, _MOST_FORMS = 0xF0000, 0x1FFF0
# Unicode categories of control, unassigned and private use characters.
_NO_TEXT = ("Cc", "Cf", "Cn", "Co", "Cs")
# Number of words per line of the trainer's input.
_BATCH = 1000
# Shares of the chosen pieces that are masked and that are replaced with random ones; the others are unchanged (Devlin
# et al. 2019, section 3.1).
_MASKED, _REPLACED = 0.8, 0.1


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
        raise ValueError("no text to learn subword units from")
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

    At most half of the vocabulary is used for them; the most frequent characters come first.
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
            for first in range(0, count, _BATCH):
                yield " ".join([encoded] * min(_BATCH, count - first))


def _alone(character: str, settings: MaskedLmSettings) -> bool:
    """Return whether a character is always a separate word."""
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


@dataclass(frozen=True)
class TextLines:
    """Text without Moses' escapes.

    Attributes:
        sources: lines of the source side, or of the only text.
        targets: translations of the lines; empty if there are none.
        others: more text of either language.
    """

    sources: Sequence[str]
    targets: Sequence[str] = ()
    others: Sequence[str] = ()

    @property
    def all(self) -> list[str]:
        """All lines."""
        return [*self.sources, *self.targets, *self.others]

    def select(self, index: Int64Array) -> TextLines:
        """Return K of the sources with their translations, without other text; index is int64, shape (K,)."""
        targets = [self.targets[i] for i in index] if self.targets else []
        return TextLines([self.sources[i] for i in index], targets)


def held_out_lines(lines: TextLines, seed: int) -> tuple[TextLines, TextLines]:
    """Split lines into training lines and a development set.

    The development set has one distinct source line in twenty with all its translations, at most 2,000 lines.

    Args:
        lines: lines with at least two distinct sources.
        seed: seed of the random draw.

    Raises:
        ValueError: there are fewer than two distinct sources.
    """
    numbers: dict[str, int] = {}
    own = np.array([numbers.setdefault(line, len(numbers)) for line in lines.sources], np.int64)
    if len(numbers) < 2:
        raise ValueError("expected at least two different lines; there is nothing to learn from one")
    held = held_out_groups(own, np.random.default_rng(seed))
    kept = lines.select(np.flatnonzero(~held))
    return TextLines(kept.sources, kept.targets, lines.others), lines.select(np.flatnonzero(held))


@dataclass(frozen=True)
class PieceTexts:
    """Texts as piece ids, without special tokens.

    Attributes:
        texts: N texts of either language.
        sources, targets: M texts and their translations.
        positions: maximum number of tokens of a text or joined pair, including special tokens; none exceeds it.
        cut: number of texts and pairs that were truncated.
    """

    texts: Phrases
    sources: Phrases
    targets: Phrases
    positions: int
    cut: int

    @property
    def tokens(self) -> int:
        """Number of tokens of all texts and joined pairs, including special tokens."""
        pieces = sum(len(part.words) for part in (self.texts, self.sources, self.targets))
        return pieces + 2 * len(self.texts) + 3 * len(self.sources)

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digits that differ when a piece differs."""
        return fingerprint(text_parts((self.texts, self.sources, self.targets)))


def piece_texts(lines: TextLines, tokenizer: Any, positions: int) -> PieceTexts:
    """Segment texts into pieces and truncate them; texts without a piece are left out.

    Args:
        lines: the texts.
        tokenizer: result of `train_word_pieces`.
        positions: maximum number of tokens, including special tokens.
    """
    sources, targets, others = (_pieces(part, tokenizer) for part in (lines.sources, lines.targets, lines.others))
    everything = Phrases.concatenate([sources, targets, others])
    cut = int((everything.lengths > positions - 2).sum())
    texts = _truncated(everything, np.minimum(everything.lengths, positions - 2))
    texts = texts.select(texts.lengths > 0)
    if not len(targets):
        none = Phrases.from_lists([])
        return PieceTexts(texts, none, none, positions, cut)
    both = (sources.lengths > 0) & (targets.lengths > 0)
    sources, targets = sources.select(both), targets.select(both)
    first, second = sources.lengths, targets.lengths
    room = positions - 3
    cut += int((first + second > room).sum())
    # The longer side is truncated first, as transformers does.
    half = room // 2
    kept = np.minimum(first, np.maximum(room - second, half))
    return PieceTexts(
        texts, _truncated(sources, kept), _truncated(targets, np.minimum(second, room - kept)), positions, cut
    )


@dataclass(frozen=True)
class Batch:
    """B padded texts.

    Attributes:
        ids: token ids, int64, shape (B, T).
        segments: 1 for tokens of the second text of a pair, else 0, int64, shape (B, T).
        attended: False for padding, bool, shape (B, T).
    """

    ids: Int64Array
    segments: Int64Array
    attended: Mask


def single_batch(texts: Phrases) -> Batch:
    """Return texts with special tokens: `[CLS] text [SEP]`."""
    width = int(texts.lengths.max()) + 2
    ids = np.full((len(texts), width), PAD, np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text) + 2] = (BEGIN, *text, END)
    attended = np.arange(width) < texts.lengths[:, None] + 2
    return Batch(ids, np.zeros_like(ids), attended)


def joined_batch(firsts: Phrases, seconds: Phrases) -> Batch:
    """Return pairs of texts, each joined to one: `[CLS] first [SEP] second [SEP]`."""
    before = firsts.lengths + 2
    lengths = before + seconds.lengths + 1
    width = int(lengths.max())
    ids = np.full((len(firsts), width), PAD, np.int64)
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        ids[row, : lengths[row]] = (BEGIN, *first, END, *second, END)
    positions = np.arange(width)
    attended = positions < lengths[:, None]
    return Batch(ids, (attended & (positions >= before[:, None])).astype(np.int64), attended)


class Batches:
    """Division of texts and joined pairs into batches of similar length; batches of the two kinds alternate.

    Args:
        data: texts and pairs.
        batch_tokens: maximum number of tokens per batch, including padding.
    """

    def __init__(self, data: PieceTexts, batch_tokens: int) -> None:
        self._data = data
        self._texts = data.texts.lengths + 2
        self._pairs = data.sources.lengths + data.targets.lengths + 3
        # The sizes of batches depend on lengths only, so that all epochs have the same number of batches.
        self._cuts = [_cuts(lengths, batch_tokens) for lengths in (self._texts, self._pairs)]

    def __len__(self) -> int:
        return sum(len(cuts) - 1 for cuts in self._cuts)

    def draw(self, rng: np.random.Generator) -> list[tuple[str, Int64Array]]:
        """Draw the batches of an epoch; return the kind of each, `text` or `pair`, and its rows.

        Args:
            rng: draws which texts of equal length share a batch, and the order of the batches of each kind.
        """
        batches: list[tuple[float, bool, Int64Array]] = []
        for kind, lengths, cuts in zip(("text", "pair"), (self._texts, self._pairs), self._cuts, strict=True):
            shuffled = rng.permutation(len(lengths))
            ordered = shuffled[np.argsort(lengths[shuffled], kind="stable")]
            order = rng.permutation(len(cuts) - 1)
            # The kinds are interleaved evenly: if there are as many batches of both, they alternate.
            batches += [
                ((n + 0.5) / len(order), kind == "pair", ordered[cuts[i] : cuts[i + 1]]) for n, i in enumerate(order)
            ]
        batches.sort(key=lambda item: item[:2])
        return [("pair" if joined else "text", rows) for _, joined, rows in batches]

    def batch(self, kind: str, rows: Int64Array, rng: np.random.Generator) -> Batch:
        """Return a batch; the sides of pairs are swapped at random, so that both languages occur in both segments.

        Args:
            kind, rows: an element of the result of `draw`.
            rng: draws the side that comes first.
        """
        if kind == "text":
            return single_batch(self._data.texts.select(rows))
        sides = self._data.sources.select(rows), self._data.targets.select(rows)
        both = Phrases.concatenate(sides)
        swapped = rng.random(len(rows)) < 0.5
        own = np.arange(len(rows))
        firsts = own + swapped * len(rows)
        return joined_batch(both.select(firsts), both.select(2 * own + len(rows) - firsts))


def _cuts(lengths: Int64Array, batch_tokens: int) -> list[int]:
    """Return where batches of texts sorted by length begin, and where the last batch ends."""
    cuts = [0]
    for row, length in enumerate(np.sort(lengths).tolist()):
        if (row + 1 - cuts[-1]) * length > batch_tokens and row > cuts[-1]:
            cuts.append(row)
    return [*cuts, len(lengths)] if len(lengths) else [0]


def _pieces(lines: Sequence[str], tokenizer: Any) -> Phrases:
    encodings = tokenizer.encode_batch(list(lines), add_special_tokens=False)
    return Phrases.from_lists([encoding.ids for encoding in encodings])


def _truncated(texts: Phrases, lengths: Int64Array) -> Phrases:
    """Return the first pieces of each text; lengths are int64, shape (N,)."""
    positions = np.arange(len(texts.words)) - np.repeat(texts.offsets[:-1], texts.lengths)
    kept = positions < np.repeat(lengths, texts.lengths)
    return Phrases(prefix_sums(lengths), texts.words[kept])


@dataclass(frozen=True)
class MaskedTexts:
    """Texts with masked pieces.

    Attributes:
        ids: input of the network, int64, shape (B, T).
        chosen: positions to predict, bool, shape (B, T).
        targets: original pieces at these positions, row by row, int64, shape (K,).
    """

    ids: Int64Array
    chosen: Mask
    targets: Int64Array


def mask_pieces(ids: Int64Array, share: float, pieces: int, rng: np.random.Generator) -> MaskedTexts:
    """Choose positions to predict, at least one if there is any piece, and mask or replace most of their pieces.

    Special tokens and unknown pieces are neither chosen nor drawn as replacements.

    Args:
        ids: token ids, int64, shape (B, T).
        share: share of the pieces that are chosen.
        pieces: size of the vocabulary, including special tokens.
        rng: draws the positions, the treatment of each, and the replacements.
    """
    ordinary = ids >= len(SPECIAL)
    chosen = ordinary & (rng.random(ids.shape) < share)
    treatment = rng.random(ids.shape)
    random_pieces = rng.integers(len(SPECIAL), pieces, ids.shape)
    if not chosen.any() and ordinary.any():
        chosen.flat[rng.choice(np.flatnonzero(ordinary))] = True
    replaced = np.where(treatment < _MASKED + _REPLACED, random_pieces, ids)
    masked = np.where(treatment < _MASKED, MASK, replaced)
    return MaskedTexts(np.where(chosen, masked, ids), chosen, ids[chosen])
