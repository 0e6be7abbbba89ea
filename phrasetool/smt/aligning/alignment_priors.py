"""Prior counts of word pairs, jumps and fertilities from an earlier alignment, and how many of them fit a bitext."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

NO_WORD = "<NULL>"


@dataclass(frozen=True)
class Priors:
    """Pseudo-counts that eflomal adds to its own; words are compared in lower case; `<NULL>` is not a word.

    Attributes:
        lexical: (source word, target word, weight).
        jumps: forward and reverse; jump -> weight.
        fertilities: forward, (source word, fertility, weight), and reverse, of target words.
    """

    lexical: list[tuple[str, str, float]] = field(default_factory=list)
    jumps: tuple[dict[int, float], dict[int, float]] = field(default_factory=lambda: ({}, {}))
    fertilities: tuple[list[tuple[str, int, float]], list[tuple[str, int, float]]] = field(
        default_factory=lambda: ([], [])
    )

    def __len__(self) -> int:
        return sum(map(len, (self.lexical, *self.jumps, *self.fertilities)))


def folded(words: Iterable[bytes]) -> list[str]:
    """Return words as eflomal compares them: in lower case."""
    return [word.decode("utf-8", "surrogateescape").lower() for word in words]


@dataclass(frozen=True)
class PriorUse:
    """How many priors an alignment uses.

    Attributes:
        lexical: pairs of words whose words are both in the bitext, on their sides.
        fertilities: fertilities of words that are in the bitext, on their sides; 0 if the model has no fertilities.
        jumps: all jumps; 0 if the model has no jumps.
        swapped: pairs of words whose words are both in the bitext, on the other sides.
        of_words: all pairs of words and fertilities of the file.
        total: all priors of the file.
    """

    lexical: int
    fertilities: int
    jumps: int
    swapped: int
    of_words: int
    total: int

    @classmethod
    def of(cls, priors: Priors, source: Iterable[bytes], target: Iterable[bytes], model: int) -> PriorUse:
        """Count.

        Args:
            priors: of a file.
            source, target: the words of the bitext.
            model: 1 has neither jumps nor fertilities, 2 has jumps, 3 has both.
        """
        sides = {NO_WORD, *folded(source)}, {NO_WORD, *folded(target)}
        fertilities = sum(
            word != NO_WORD and word.lower() in side
            for side, entries in zip(sides, priors.fertilities, strict=True)
            for word, _, _ in entries
        )
        return cls(
            _pairs(priors, sides[0], sides[1]), fertilities if model == 3 else 0,
            sum(map(len, priors.jumps)) if model > 1 else 0, _pairs(priors, sides[1], sides[0]),
            len(priors.lexical) + sum(map(len, priors.fertilities)), len(priors),
        )  # fmt: skip

    @property
    def used(self) -> int:
        """All that are used."""
        return self.lexical + self.fertilities + self.jumps


def _pairs(priors: Priors, source: Collection[str], target: Collection[str]) -> int:
    return sum(
        (s if s == NO_WORD else s.lower()) in source and (t if t == NO_WORD else t.lower()) in target
        for s, t, _ in priors.lexical
    )
