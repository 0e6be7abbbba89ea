"""Translations as Moses prints them: the words, marks around unknown ones and the word alignment, as an ini asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moses_compat.ini.lines import boolean
from moses_compat.ini.moses_ini import MosesIni
from phrasetool.smt.decoder.translator import Translation, Translator


@dataclass(frozen=True)
class Printing:
    """How to print translations; see moses/Manager.cpp (`OutputSurface`).

    Attributes:
        prefix, suffix: written around each word that was copied because no entry translates it; empty for no marks.
        aligned: whether the word alignment follows a translation.
    """

    prefix: bytes = b""
    suffix: bytes = b""
    aligned: bool = False

    @classmethod
    def of(cls, ini: MosesIni) -> Printing:
        """Read `[mark-unknown]`, `[unknown-word-prefix]`, `[unknown-word-suffix]` and `[print-alignment-info]`.

        Raises:
            DataError: a value is not a truth value.
        """
        aligned = _switch(ini, "print-alignment-info")
        if not _switch(ini, "mark-unknown"):
            return cls(aligned=aligned)
        prefix, suffix = (
            (ini.sections.get(section) or [default])[0].encode("utf-8", "surrogateescape")
            for section, default in (("unknown-word-prefix", "UNK"), ("unknown-word-suffix", ""))
        )
        return cls(prefix, suffix, aligned)

    def words(self, translator: Translator, translation: Translation, derivation: int = 0) -> bytes:
        """The words of a derivation, with marks, single spaces between them."""
        if not self.prefix and not self.suffix:
            return translator.text(translation, derivation)
        table, steps = translator.table, translation.steps
        first, last = steps.offsets[derivation : derivation + 2]
        found = []
        for entry in steps.entries[first:last].tolist():
            text = table.target_symbols.join(table.targets[entry])
            found.append(self.prefix + text + self.suffix if table.copies[entry] else text)
        return b" ".join(text for text in found if text)

    def line(self, translator: Translator, translation: Translation) -> bytes:
        """The line of the best derivation, with its line feed."""
        words = self.words(translator, translation)
        if not self.aligned:
            return words + b"\n"
        return (words + b" " if words else b"") + b"||| " + word_alignment(translator, translation, 0).encode() + b"\n"


PLAIN = Printing()


def phrases_of(
    translator: Translator, translation: Translation, derivation: int
) -> Iterator[tuple[int, int, int, int]]:
    """The phrases of a derivation, in target order: entry, first and last source word, first target word."""
    steps, at = translation.steps, 0
    for p in range(steps.offsets[derivation], steps.offsets[derivation + 1]):
        yield steps.entries[p], steps.starts[p], steps.ends[p], at
        at += len(translator.table.targets[steps.entries[p]])


def word_alignment(translator: Translator, translation: Translation, derivation: int) -> str:
    """`0-0 1-2`: which source word gave which target word, by phrase, then in order of the source."""
    return " ".join(
        f"{start + (a >> 8)}-{at + (a & 255)}"
        for entry, start, _, at in phrases_of(translator, translation, derivation)
        # Moses keeps the points of a phrase as a set.
        for a in np.unique(translator.table.alignments[entry]).tolist()
    )


def _switch(ini: MosesIni, section: str) -> bool:
    if not (values := ini.values(section)):
        return False
    value, line = values[0]
    if (switched := boolean(value)) is None:
        raise ini.error(f"[{section}]: expected true or false, found {value!r}", line)
    return switched
