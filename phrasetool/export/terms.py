"""Term pairs: entries that belong into a dictionary, the surest first.

A pair is worth

    sqrt(p(e|f) p(f|e)) sqrt(shorter / longer) exp(s - 1)

with probabilities of which half a count is taken, the lengths of both sides in words, and the similarity s, if known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TermPair:
    """A term and its translation.

    Attributes:
        source, target: words with a space between.
        worth: see above.
        direct, inverse: p(target|source) and p(source|target) as in the table.
        count: how often the pair was extracted; None if that is not known.
        similarity: of both sides; None if nothing is known of it.
    """

    source: str
    target: str
    worth: float
    direct: float
    inverse: float
    count: float | None
    similarity: float | None = None


def is_term(words: Sequence[str], stop_words: Collection[str]) -> bool:
    """Whether words may be a term: with a letter, no mark at an end, and no stop word there if there are several."""
    if not any(letter.isalpha() for word in words for letter in word):
        return False
    ends = (words[0], words[-1])
    if not all(any(letter.isalnum() for letter in word) for word in ends):
        return False
    return len(words) == 1 or not any(word in stop_words for word in ends)


def ranked(pairs: Iterable[TermPair]) -> list[TermPair]:
    """Pairs from the best to the worst; equally good ones in the order of their texts."""
    return sorted(pairs, key=lambda pair: (-pair.worth, pair.source, pair.target))


def best_terms(pairs: Iterable[TermPair], most: int) -> list[TermPair]:
    """Return the best pairs: at most `most` of a source or a target, and none that only adds or lacks words.

    A pair that has one side in common with a better one, and whose other side contains the other side of that, or is
    contained in it, is one that was cut at a wrong place.

    Args:
        pairs: in any order.
        most: translations of a source, and sources of a target.
    """
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    by_target: defaultdict[str, list[str]] = defaultdict(list)
    best = []
    for pair in ranked(pairs):
        targets, sources = by_source[pair.source], by_target[pair.target]
        if len(targets) >= most or len(sources) >= most:
            continue
        nested = any(_nested(pair.target, other) for other in targets)
        if nested or any(_nested(pair.source, other) for other in sources):
            continue
        targets.append(pair.target)
        sources.append(pair.source)
        best.append(pair)
    return best


def _nested(one: str, other: str) -> bool:
    """Whether the words of one text are a part of the other's."""
    one, other = f" {one} ", f" {other} "
    return one in other or other in one


def spread(pairs: Sequence[TermPair], count: int) -> list[TermPair]:
    """So many pairs, evenly from the first to the last."""
    if len(pairs) <= count:
        return list(pairs)
    if count == 1:
        return [pairs[0]]
    return [pairs[round(k * (len(pairs) - 1) / (count - 1))] for k in range(count)]
