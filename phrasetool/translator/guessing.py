"""Whether a translator is better than guessing: are translations likelier after their sentences than after others?"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.ranking import CHANCE, chance_to_tell
from phrasetool.train.data import PhrasePairs
from phrasetool.translator.network import NeuralTranslator, padded_targets
from phrasetool.unique_phrases import number_distinct

# Pairs that are looked at, and how many are enough to say something.
_MOST, _FEWEST = 500, 100
_BATCH = 64


def fault_of_guessing(module: NeuralTranslator, pairs: PhrasePairs, seed: int) -> str | None:
    """Why a translator is of no use: its predictions do not depend on what it reads; None if they do.

    Each translation is read word by word beside its own sentence and beside others.  That also holds a translator of
    frequent words to what it knows of the sentence.

    Args:
        module: not in training.
        pairs: sentences and their translations, which it did not learn from; too few say nothing.
        seed: of the sample that is taken of them, and of the other sentences.
    """
    chosen = np.random.default_rng(seed).permutation(len(pairs))[:_MOST]
    sources, targets = pairs.sources.select(chosen), pairs.targets.select(chosen)
    numbers, firsts = number_distinct(sources)
    if len(firsts) < _FEWEST:
        return None

    def worth(which: Int64Array) -> FloatArray:
        return _worth(module, sources.select(firsts[which]), targets)

    auc = chance_to_tell(worth(numbers), numbers, worth, seed)
    if auc is None or auc >= CHANCE:
        return None
    return f"it tells sentences from others by their translations with AUC {auc:.2f}, that of guessing is 0.5"


@torch.no_grad()
def _worth(module: NeuralTranslator, sources: Phrases, targets: Phrases) -> FloatArray:
    """How well N translations are predicted, a word: cosines, or logarithms of a softmax; shape (N,)."""
    found = np.empty(len(sources), np.float32)
    for first in range(0, len(sources), _BATCH):
        part = slice(first, first + _BATCH)
        chosen = targets.part(first, min(first + _BATCH, len(targets)))
        words = padded_targets(chosen, module.end).to(module.words.device)
        predicted = module.predict(module.encode(sources.part(first, first + len(chosen))), words)
        wanted = words[words >= 0]
        if module.architecture.continuous:
            right = functional.cosine_similarity(predicted, module.targets[wanted], 1)
        else:
            right = module.logits(predicted).log_softmax(1).gather(1, wanted[:, None])[:, 0]
        ends = np.cumsum(chosen.lengths + 1)
        found[part] = np.add.reduceat(right.cpu().numpy(), ends - chosen.lengths - 1) / (chosen.lengths + 1)
    return found
