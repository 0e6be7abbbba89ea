"""Sentence pairs that two bitexts share, such as a training set and a test set."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from moses_compat.corpora.sentences import line_blocks


def shared_pairs(bitext: tuple[str, str], texts: Mapping[str, tuple[bytes, bytes]]) -> dict[str, tuple[int, int]]:
    """Which texts share sentence pairs with a bitext: by name, how many do, and of how many.

    Sentences are the same if their words are; pairs of two sentences without words do not count.  Texts that share none
    are left out.

    Args:
        bitext: files of its two sides.
        texts: name -> source and target.
    """
    pairs = {name: [pair for pair in zip(*map(_words, sides), strict=True) if any(pair)]
             for name, sides in texts.items()}  # fmt: skip
    wanted = {pair for found in pairs.values() for pair in found}
    sides = (chain.from_iterable(map(_words, line_blocks(path))) for path in bitext)
    seen = wanted.intersection(zip(*sides, strict=False))
    counts = {name: (sum(pair in seen for pair in found), len(found)) for name, found in pairs.items()}
    return {name: (shared, of) for name, (shared, of) in counts.items() if shared}


def _words(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return [b" ".join(line.split()) for line in (lines if lines[-1] else lines[:-1])]
