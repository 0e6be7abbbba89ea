"""Whether a classifier can be meant for a bitext, by a sample of its first pairs.

A bitext may be dirty: half of its pairs may be wrong, and still the model fits.  Measured with models of the right
languages on 29,000 pairs of German and English, half of them exchanged: see the guide to filtering.  So only chance
itself is refused, and words that are hardly known.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moses_compat.jobs.bitexts.pair_blocks import SentencePairs
from moses_compat.measures.model_fit import FitCheck
from phrasetool.pair_classifier.model import PairClassifierModel, fit_of_pairs
from phrasetool.phrases import Int64Array
from phrasetool.sentences import sentence_lengths

# Pairs of a sample, and how many of the first pairs it is drawn from; what memory holds before work begins.
SAMPLE, LOOK_AHEAD = 2000, 1 << 16
# By how much the AUC must be higher with the sides swapped, if they are to be called so: half as much as elsewhere.
_BETTER = 0.07
# Pairs whose lengths stand for those of all.
_LENGTHS = 16


def take_sample(
    blocks: Iterator[SentencePairs], seed: int = 1
) -> tuple[tuple[list[bytes], list[bytes]], list[SentencePairs]]:
    """Some of the first pairs, both sides with a word; and the blocks that were read for it.

    Args:
        blocks: of a bitext, from its beginning.
        seed: of what is drawn.
    """
    taken: list[SentencePairs] = []
    size = 0
    while size < LOOK_AHEAD and (block := next(blocks, None)) is not None:
        taken.append(block)
        size += len(block)
    sides = [[line for block in taken for line in block.written[which]] for which in range(2)]
    good = [row for row, pair in enumerate(zip(*sides, strict=True)) if all(pair)]
    rows = np.sort(np.random.default_rng(seed).permutation(np.array(good, np.int64))[:SAMPLE]).tolist()
    return ([sides[0][row] for row in rows], [sides[1][row] for row in rows]), taken


def check_bitext(
    name: str, model: PairClassifierModel, sample: tuple[list[bytes], list[bytes]], check: FitCheck
) -> None:
    """Tell how well a classifier fits a bitext.

    Args:
        name: of the bitext, as messages call it.
        model: of the folder that the check names.
        sample: see `take_sample`.
        check: tells, and refuses.

    Raises:
        DataError: it does not fit, and nothing is forced.
    """
    check.judge(name, fit_of_pairs(model, *sample), lambda: fit_of_pairs(model, *sample, swapped=True), _BETTER)


def usual_lengths(sample: tuple[list[bytes], list[bytes]]) -> tuple[Int64Array, Int64Array]:
    """Words of the sources and the targets of some pairs, from short ones to long ones; shape (L,), L at most 16."""
    sources, targets = (sentence_lengths(side) for side in sample)
    order = np.lexsort((targets, sources))
    places = order[np.linspace(0, max(len(order) - 1, 0), min(_LENGTHS, len(order))).astype(np.int64)]
    return sources[places], targets[places]
