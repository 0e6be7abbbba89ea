"""What makes no sense to learn from, although it can be read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phrasetool.errors import PhraseToolError
from phrasetool.training.pairs import PhrasePairs
from phrasetool.watch import Watch, refuse

# Told of what makes no sense: raises, or warns and lets it pass.
Doubt = Callable[[str], None]
# Distinct pairs below which nothing can be learnt; tables of twenty lines are still fine.
_FEWEST_PAIRS = 15
# Pairs, and the share of them that may have two equal sides.  In tables made from real bitexts at most 5.7 % have (a
# manual, Spanish-English; 4.5 % Chinese-English), in Multi30k 0.7 % (German-English) and 0.1 % (Czech-English).  But
# names and code stand together in a sorted table.  Of consecutive lines of manuals' tables up to 100 % have at 50
# lines, 95 % at 100, 80 % at 500, 59 % at 1,000, 47 % at 2,000.
_MOST_EQUAL = ((2000, 0.5), (100, 0.98))


def doubting(watch: Watch, force: bool) -> Doubt:
    """What stops at the first doubt, or with `force` warns and goes on."""

    def doubt(message: str) -> None:
        refuse(PhraseToolError(message, remedy="go on"), force, watch.warn)

    return doubt


def check_pairs(name: str, pairs: PhrasePairs, doubt: Doubt) -> None:
    """Doubt pairs from which nothing can be learnt.

    Args:
        name: where they are from.
        pairs: distinct ones.
        doubt: told what is wrong.
    """
    if len(pairs) < _FEWEST_PAIRS:
        plural = "s" if len(pairs) > 1 else ""
        doubt(f"{name}: {len(pairs)} distinct phrase pair{plural} to learn from, expected some 20 at least")
    equal = _equal_sides(pairs)
    most = next((share for enough, share in _MOST_EQUAL if len(pairs) >= enough), 1.0)
    if equal > most * len(pairs):
        doubt(
            f"{name}: {equal:,} of {len(pairs):,} pairs have the same phrase on both sides, expected phrases and their "
            "translations"
        )


def _equal_sides(pairs: PhrasePairs) -> int:
    """How many pairs have the same words on both sides."""
    # Target words by the ids of the source.
    ids = {word: i for i, word in enumerate(pairs.source_vocabulary.words)}
    table = np.array([ids.get(word, -1) for word in pairs.target_vocabulary.words], np.int64)
    same_length = np.flatnonzero(pairs.sources.lengths == pairs.targets.lengths)
    sources, targets = pairs.sources.select(same_length), pairs.targets.select(same_length)
    unlike = np.concatenate([[0], np.cumsum(table[targets.words] != sources.words)])
    return int((unlike[sources.offsets[1:]] == unlike[sources.offsets[:-1]]).sum())
