"""A word-aligned bitext: sentences of two languages as word ids, and the points between them."""

from __future__ import annotations

from dataclasses import dataclass

from phrasetool.phrases import Phrases
from phrasetool.smt.aligning.alignments import Alignments
from phrasetool.smt.corpus.symbols import Symbols

# Separator of the fields of a table; a word that equals it cannot be distinguished from it.
SEPARATOR = b"|||"


@dataclass(frozen=True)
class Bitext:
    """Sentence pairs with their word alignments.

    Attributes:
        sources, targets: N sentences each, as ids of the symbols.
        alignments: their N alignments.
        source_symbols, target_symbols: the words.

    Raises:
        ValueError: the parts do not fit together (see `fault`).
    """

    sources: Phrases
    targets: Phrases
    alignments: Alignments
    source_symbols: Symbols
    target_symbols: Symbols

    def __post_init__(self) -> None:
        if not len(self.sources) == len(self.targets) == len(self.alignments):
            raise ValueError(
                f"{len(self.sources)} source sentences, {len(self.targets)} target sentences,"
                f" {len(self.alignments)} alignments"
            )
        for name, sentences in (("source", self.sources), ("target", self.targets)):
            if len(sentences) and not sentences.lengths.all():
                raise ValueError(f"{name} sentence {int((sentences.lengths == 0).argmax())} is empty")
        outside = self.alignments.first_outside(self.sources.lengths, self.targets.lengths)
        if outside >= 0:
            raise ValueError(f"alignment {outside} has a point outside of its sentences")
        for symbols in (self.source_symbols, self.target_symbols):
            if symbols.id(SEPARATOR) >= 0:
                raise ValueError("a word is written |||, which separates the fields of a table")

    def __len__(self) -> int:
        return len(self.sources)
