"""What an own BERT learns from: texts and pairs of texts as pieces, and how they are put together in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phrasetool.phrases import Int64Array, Mask, Phrases
from phrasetool.train.data import fingerprint, held_out_groups, text_parts
from phrasetool.training.masked_lm.word_pieces import BEGIN, END, PAD


@dataclass(frozen=True)
class TextLines:
    """Text without escapes.

    Attributes:
        sources: lines of one side, or of the only text.
        targets: their translations; empty if there are none.
        others: more text of either language.
    """

    sources: Sequence[str]
    targets: Sequence[str] = ()
    others: Sequence[str] = ()

    @property
    def all(self) -> list[str]:
        """Every line."""
        return [*self.sources, *self.targets, *self.others]

    def select(self, index: Int64Array) -> TextLines:
        """Some of the sources with their translations, and none of the others; index int64, shape (K,)."""
        targets = [self.targets[i] for i in index] if self.targets else []
        return TextLines([self.sources[i] for i in index], targets)


def held_out_lines(lines: TextLines, seed: int) -> tuple[TextLines, TextLines]:
    """What to learn from, and a development set: one source line in twenty with all its translations, at most 2,000.

    Args:
        lines: at least two different sources.
        seed: draws the lines.

    Raises:
        ValueError: there are fewer than two different sources.
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
    """Texts in ids of pieces, without special tokens.

    Attributes:
        texts: N texts of either language.
        sources, targets: M texts and their translations.
        positions: tokens of a text or of a joined pair at most, special ones included; both fit.
        cut: how many texts and pairs had more.
    """

    texts: Phrases
    sources: Phrases
    targets: Phrases
    positions: int
    cut: int

    @property
    def tokens(self) -> int:
        """Tokens of all texts and joined pairs, special ones included."""
        pieces = sum(len(part.words) for part in (self.texts, self.sources, self.targets))
        return pieces + 2 * len(self.texts) + 3 * len(self.sources)

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digits that differ when a piece differs."""
        return fingerprint(text_parts((self.texts, self.sources, self.targets)))


def piece_texts(lines: TextLines, tokenizer: Any, positions: int) -> PieceTexts:
    """Texts as pieces, cut where they have more than there is room for; those without a piece are left out.

    Args:
        lines: what to read.
        tokenizer: of `train_word_pieces`.
        positions: tokens at most, special ones included.
    """
    sources, targets, others = (_pieces(part, tokenizer) for part in (lines.sources, lines.targets, lines.others))
    everything = Phrases.concatenate([sources, targets, others])
    cut = int((everything.lengths > positions - 2).sum())
    texts = _shortened(everything, np.minimum(everything.lengths, positions - 2))
    texts = texts.select(texts.lengths > 0)
    if not len(targets):
        none = Phrases.from_lists([])
        return PieceTexts(texts, none, none, positions, cut)
    both = (sources.lengths > 0) & (targets.lengths > 0)
    sources, targets = sources.select(both), targets.select(both)
    first, second = sources.lengths, targets.lengths
    room = positions - 3
    cut += int((first + second > room).sum())
    # The longer side is cut first, as transformers does it.
    half = room // 2
    kept = np.minimum(first, np.maximum(room - second, half))
    return PieceTexts(
        texts, _shortened(sources, kept), _shortened(targets, np.minimum(second, room - kept)), positions, cut
    )


@dataclass(frozen=True)
class Batch:
    """Texts side by side.

    Attributes:
        ids: int64, shape (B, T), filled up.
        segments: int64, shape (B, T), 1 for the second text of a pair.
        there: bool, shape (B, T), where a token is.
    """

    ids: Int64Array
    segments: Int64Array
    there: Mask


def single_batch(texts: Phrases) -> Batch:
    """Texts with special tokens around them: `[CLS] text [SEP]`."""
    width = int(texts.lengths.max()) + 2
    ids = np.full((len(texts), width), PAD, np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text) + 2] = (BEGIN, *text, END)
    there = np.arange(width) < texts.lengths[:, None] + 2
    return Batch(ids, np.zeros_like(ids), there)


def joined_batch(firsts: Phrases, seconds: Phrases) -> Batch:
    """Pairs as one text each: `[CLS] first [SEP] second [SEP]`."""
    before = firsts.lengths + 2
    lengths = before + seconds.lengths + 1
    width = int(lengths.max())
    ids = np.full((len(firsts), width), PAD, np.int64)
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        ids[row, : lengths[row]] = (BEGIN, *first, END, *second, END)
    places = np.arange(width)
    there = places < lengths[:, None]
    return Batch(ids, (there & (places >= before[:, None])).astype(np.int64), there)


class Batches:
    """Every text once and every pair once, in batches of neighbouring lengths; the two kinds alternate.

    Args:
        data: what to learn from.
        batch_tokens: of a batch at most, filling included.
    """

    def __init__(self, data: PieceTexts, batch_tokens: int) -> None:
        self._data = data
        self._texts = data.texts.lengths + 2
        self._pairs = data.sources.lengths + data.targets.lengths + 3
        # Where batches begin depends on lengths alone, so that all epochs have as many.
        self._cuts = [_cuts(lengths, batch_tokens) for lengths in (self._texts, self._pairs)]

    def __len__(self) -> int:
        return sum(len(cuts) - 1 for cuts in self._cuts)

    def draw(self, rng: np.random.Generator) -> list[tuple[str, Int64Array]]:
        """The batches of an epoch: `text` or `pair`, and which of them.

        Args:
            rng: draws which texts of a length meet, and the order of the batches of each kind.
        """
        found: list[tuple[float, bool, Int64Array]] = []
        for kind, lengths, cuts in zip(("text", "pair"), (self._texts, self._pairs), self._cuts, strict=True):
            shuffled = rng.permutation(len(lengths))
            ordered = shuffled[np.argsort(lengths[shuffled], kind="stable")]
            order = rng.permutation(len(cuts) - 1)
            # Evenly among each other: where there are as many of both, in turn.
            found += [
                ((n + 0.5) / len(order), kind == "pair", ordered[cuts[i] : cuts[i + 1]]) for n, i in enumerate(order)
            ]
        found.sort(key=lambda item: item[:2])
        return [("pair" if joined else "text", rows) for _, joined, rows in found]

    def batch(self, kind: str, rows: Int64Array, rng: np.random.Generator) -> Batch:
        """One of the batches; each pair begins with either side, so that both languages are read in both segments.

        Args:
            kind, rows: of `draw`.
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
    """Where batches of texts begin that are sorted by length, and where the last ends."""
    cuts = [0]
    for place, length in enumerate(np.sort(lengths).tolist()):
        if (place + 1 - cuts[-1]) * length > batch_tokens and place > cuts[-1]:
            cuts.append(place)
    return [*cuts, len(lengths)] if len(lengths) else [0]


def _pieces(lines: Sequence[str], tokenizer: Any) -> Phrases:
    encodings = tokenizer.encode_batch(list(lines), add_special_tokens=False)
    return Phrases.from_lists([encoding.ids for encoding in encodings])


def _shortened(texts: Phrases, lengths: Int64Array) -> Phrases:
    """The first pieces of each text; lengths int64, shape (N,)."""
    places = np.arange(len(texts.words)) - np.repeat(texts.offsets[:-1], texts.lengths)
    kept = places < np.repeat(lengths, texts.lengths)
    return Phrases(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), texts.words[kept])
