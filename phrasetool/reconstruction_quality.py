"""How much of texts their reconstructions give back: BLEU and ROUGE, of all and by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phrasetool.nn.positions import LONGEST
from phrasetool.smt.evaluation.metrics import evaluate
from phrasetool.smt.evaluation.rouge import rouge_n
from phrasetool.text_splitting import split_words

# Texts of like lengths go together: 1 to 5 words, 6 to 10 and so on.
LENGTH_BOUNDS = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, LONGEST)


@dataclass(frozen=True)
class ReconstructionQuality:
    """Figures of some texts, from 0 to 100.

    Attributes:
        texts: how many texts there are.
        bleu: of the corpus, by sacrebleu, of words as spaces separate them.
        bleu_signature: sacrebleu's, which tells how to get the same figure again.
        rouge_1, rouge_2: mean F1 of the words, and of the pairs of neighbouring words; see `rouge_n`.
        exact: how many texts in a hundred came back word for word.
    """

    texts: int
    bleu: float
    bleu_signature: str
    rouge_1: float
    rouge_2: float
    exact: float


def reconstruction_quality(reconstructions: Sequence[str], texts: Sequence[str]) -> ReconstructionQuality:
    """Compare reconstructions with the texts.

    Args:
        reconstructions: words with spaces between.
        texts: as many, likewise.

    Raises:
        ValueError: there is none, or not as many of the ones as of the others.
    """
    # One sample is none: there is no interval.
    bleu = evaluate([reconstructions], [texts], metrics=("bleu",), samples=1)[0]
    ours, theirs = [split_words(line) for line in reconstructions], [split_words(line) for line in texts]
    rouge = [100 * float(rouge_n(ours, theirs, order).mean()) for order in (1, 2)]
    exact = float(np.mean([a == b for a, b in zip(ours, theirs, strict=True)]))
    return ReconstructionQuality(len(texts), bleu.systems[0].score, bleu.signature, rouge[0], rouge[1], 100 * exact)


def quality_by_length(
    reconstructions: Sequence[str], texts: Sequence[str], bounds: Sequence[int] = LENGTH_BOUNDS
) -> dict[tuple[int, int], ReconstructionQuality]:
    """Figures of texts of like lengths apart (figure 2 of Zhang, Wu, Li and Zhang).

    Args:
        reconstructions, texts: as in `reconstruction_quality`.
        bounds: the most words of each group but the last, ascending.

    Returns:
        By the fewest and the most words of a group; groups without a text are left out.
    """
    lengths = np.array([len(split_words(line)) for line in texts])
    groups = np.searchsorted(bounds, lengths)
    starts, ends = [1, *(bound + 1 for bound in bounds)], [*bounds, max(lengths.max(initial=0), bounds[-1] + 1)]
    found = {}
    for group in np.unique(groups).tolist():
        members = np.flatnonzero(groups == group).tolist()
        found[int(starts[group]), int(ends[group])] = reconstruction_quality(
            [reconstructions[i] for i in members], [texts[i] for i in members]
        )
    return found
