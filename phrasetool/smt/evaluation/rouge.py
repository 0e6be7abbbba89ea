"""ROUGE-N: the n-grams that two texts share (Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def rouge_n(
    candidates: Sequence[Sequence[str]], references: Sequence[Sequence[str]], order: int
) -> npt.NDArray[np.float64]:
    """F1 of the n-grams of every candidate and its reference: the harmonic mean of precision and recall.

    An n-gram matches as often as it stands in both (section 2; the recall is Eq. 1).  Words are neither stemmed nor
    lower-cased.  The F1 of a corpus is the mean of those of its texts, as of the package `rouge-score`.

    Args:
        candidates: N texts, words each.
        references: N texts likewise.
        order: n, at least 1.

    Returns:
        float64, shape (N,), from 0 to 1; 0 where neither text has `order` words.

    Raises:
        ValueError: there are more of the ones than of the others, or n is not positive.
    """
    if len(candidates) != len(references) or order < 1:
        raise ValueError(f"{len(candidates)} candidates, {len(references)} references, n = {order}")
    f1_scores = np.zeros(len(candidates))
    for i, (candidate, reference) in enumerate(zip(candidates, references, strict=True)):
        ours, theirs = _n_grams(candidate, order), _n_grams(reference, order)
        # 2 P R / (P + R), with P = matches / n-grams of ours, R = matches / n-grams of theirs.
        f1_scores[i] = 2 * (ours & theirs).total() / max(ours.total() + theirs.total(), 1)
    return f1_scores


def _n_grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[first:] for first in range(order)), strict=False))
