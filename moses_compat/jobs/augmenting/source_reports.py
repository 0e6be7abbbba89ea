"""What each source of evidence gave, and how much of it stands in references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phrasetool.augment.augmenter import Augmenter, NewEntry
from phrasetool.text_splitting import split_words


@dataclass(frozen=True)
class SourceReport:
    """What a source of evidence gave.

    Attributes:
        words, tokens: unknown ones that it proposed something for.
        right: tokens for which one of its proposals stands in the reference; None without references.
        trust: share of its first proposals that were right, for known words taken for unknown.
    """

    words: int
    tokens: int
    right: int | None
    trust: float


def report_sources(
    augmenter: Augmenter, new: Mapping[str, Sequence[NewEntry]], unknown: Mapping[str, int],
    sentences: Sequence[Sequence[tuple[Sequence[str], set[str]]]],
) -> tuple[dict[str, SourceReport], tuple[int, int] | None]:  # fmt: skip
    """Count.

    Args:
        augmenter: what made the entries.
        new: word -> its entries.
        unknown: word -> how often it stands in the texts.
        sentences: of each text with a reference, the words of every sentence and those of its reference.

    Returns:
        Name of a source -> what it gave; and for how many tokens some new entry stands in the reference, and the first
        does, or None without references.
    """
    some = first = 0
    right: Counter[int] = Counter()
    for text in sentences:
        for words, reference in text:
            for word in unknown.keys() & set(words):
                count = words.count(word)
                found = new.get(word, ())
                good = [entry for entry in found if set(split_words(entry.target)) <= reference]
                some += count * bool(good)
                first += count * (bool(good) and good[0] is found[0])
                for number in {number for entry in good for number in entry.sources}:
                    right[number] += count
    sources = {}
    for number, source in enumerate(augmenter.evidence):
        proposed = [word for word, found in new.items() if any(number in entry.sources for entry in found)]
        sources[source.name] = SourceReport(
            len(proposed), sum(unknown[word] for word in proposed), right[number] if sentences else None,
            augmenter.trusts[source.name].first,
        )  # fmt: skip
    return sources, (some, first) if sentences else None
