"""What becomes of each pair of a bitext, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moses_compat.jobs.bitexts.pair_blocks import SentencePairs
from moses_compat.jobs.mine import COPY, plain_words
from phrasetool.pair_classifier.bitext_scores import PairScores
from phrasetool.phrases import Int64Array, Mask
from phrasetool.sentences import sentence_lengths

# Why a pair goes, and what else is noted of it; the names stand in the files that are written.
EMPTY, UNKNOWN, LOW, LONG = b"empty", b"unknown", b"probability", b"long"
REASONS = (EMPTY, UNKNOWN, LOW, COPY)


@dataclass
class PairCounts:
    """What a run did.

    Attributes:
        pairs: all of them.
        kept: of them.
        reasons: why others went, by name; a pair that goes for several counts for each.
        copies: pairs of two equal sentences.
        over_long: pairs of which a side has more words than are read.
        certainty: sum of the scores of those kept.
    """

    pairs: int = 0
    kept: int = 0
    certainty: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    over_long: int = 0

    def add(self, other: PairCounts) -> None:
        """Add those of the block that follows."""
        self.pairs += other.pairs
        self.kept += other.kept
        self.certainty += other.certainty
        self.reasons.update(other.reasons)
        self.copies += other.copies
        self.over_long += other.over_long

    def as_dict(self) -> dict[str, Any]:
        """For statistics."""
        return {
            "pairs": self.pairs, "kept": self.kept, "rejected": self.pairs - self.kept,
            "reasons": {reason.decode(): self.reasons[reason.decode()] for reason in REASONS},
            "copies": self.copies, "over_long": self.over_long,
        }  # fmt: skip


@dataclass(frozen=True)
class PairDecisions:
    """What becomes of the N pairs of a block.

    Attributes:
        block: the pairs.
        judged: what was said of them.
        keep: bool, shape (N,).
        notes: of each, why it goes, or what else is noted.
    """

    block: SentencePairs
    judged: PairScores
    keep: Mask
    notes: Sequence[tuple[bytes, ...]]

    @classmethod
    def of(
        cls,
        block: SentencePairs,
        judged: PairScores,
        threshold: float,
        drop_copies: bool,
        longest: int | None,
        too_many: Int64Array | None = None,
    ) -> PairDecisions:
        """Decide.

        Args:
            block, judged: the pairs and what is said of them.
            threshold: the least score of a pair that stays.
            drop_copies: pairs of two equal sentences go.
            longest: words of a sentence that are read.
            too_many: rows of pairs that reach the threshold and go all the same, as a share of the pairs wants it.
        """
        below = np.isnan(judged.scores) | (judged.scores < np.float32(threshold))
        if too_many is not None:
            below[too_many] = True
        low = below.tolist()
        silent = np.isnan(judged.scores).tolist()
        keep, notes = np.ones(len(block), np.bool_), []
        words = np.maximum(*map(sentence_lengths, block.written)) if longest is not None else np.zeros(len(block))
        over_long = (words > (longest or 0)).tolist()
        for row, (source, target) in enumerate(zip(*block.written, strict=True)):
            found: list[bytes] = []
            if not source or not target:
                found.append(EMPTY)
            elif silent[row]:
                found.append(UNKNOWN)
            elif low[row]:
                found.append(LOW)
            keep[row] = not found
            if source and _same(source, target):
                found.append(COPY)
                keep[row] &= not drop_copies
            if over_long[row]:
                found.append(LONG)
            notes.append(tuple(found))
        return cls(block, judged, keep, notes)

    @property
    def counts(self) -> PairCounts:
        """Of the block."""
        gone = zip(self.keep.tolist(), self.notes, strict=True)
        reasons = Counter(note.decode() for keep, notes in gone if not keep for note in notes if note in REASONS)
        copies, over_long = (sum(name in notes for notes in self.notes) for name in (COPY, LONG))
        certainty = float(self.judged.scores[self.keep].sum(dtype=np.float64))
        return PairCounts(len(self.block), int(self.keep.sum()), certainty, reasons, copies, over_long)

    def kept_lines(self) -> tuple[bytes, bytes]:
        """What stays of both sides, as it was."""
        rows = np.flatnonzero(self.keep).tolist()
        return b"".join(self.block.sources[row] for row in rows), b"".join(self.block.targets[row] for row in rows)

    def score_lines(self) -> bytes:
        """A line a pair: score, `kept` or `rejected`, notes, source and target; and the score without length."""
        sources, targets = self.block.written
        blind = [b""] * len(sources) if self.judged.blind is None else [b"\t" + x for x in _numbers(self.judged.blind)]
        rows = zip(_numbers(self.judged.scores), self.keep.tolist(), self.notes, sources, targets, blind, strict=True)
        return b"".join(
            b"%b\t%b\t%b\t%b\t%b%b\n" % (score, b"kept" if keep else b"rejected", _noted(notes), source, target, more)
            for score, keep, notes, source, target, more in rows
        )

    def rejected_lines(self) -> bytes:
        """A line for each pair that goes: reasons, score, number of the line, source and target."""
        return b"".join(self._rejected(_numbers(self.judged.scores)))

    def _rejected(self, scores: Sequence[bytes]) -> Iterator[bytes]:
        sources, targets = self.block.written
        for row in np.flatnonzero(~self.keep).tolist():
            line = self.block.first + row + 1
            yield b"%b\t%b\t%d\t%b\t%b\n" % (_noted(self.notes[row]), scores[row], line, sources[row], targets[row])


def copies_in(block: SentencePairs) -> Mask:
    """Which pairs of a block are two equal sentences: bool, shape (N,)."""
    sides = zip(*block.written, strict=True)
    return np.array([bool(source) and _same(source, target) for source, target in sides], np.bool_)


def _numbers(scores: np.ndarray[Any, np.dtype[np.float32]]) -> list[bytes]:
    """With six decimals; 0 where nothing is said."""
    return [b"%.6f" % (score + 0.0) for score in np.nan_to_num(scores).tolist()]


def _noted(notes: Sequence[bytes]) -> bytes:
    return b",".join(notes) or b"-"


def _same(source: bytes, target: bytes) -> bool:
    if source == target:
        return True
    # Escapes are the one way in which equal words can differ in bytes.
    return (b"&" in source or b"&" in target or b"  " in source or b"  " in target) and plain_words(
        source
    ) == plain_words(target)
