"""The target words nearest to the vectors that a translator predicts for a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.translator.beam import translate
from phrasetool.translator.network import NeuralTranslator, padded_targets


@dataclass(frozen=True)
class NearestWords:
    """What is near a predicted vector.

    Attributes:
        words: ids of target words, the nearest first; V is the end of the sentence, int64, shape (K,).
        cosines: with the prediction, float32, shape (K,).
    """

    words: Int64Array
    cosines: FloatArray


@torch.no_grad()
def nearest_words(module: NeuralTranslator, sentence: Phrases, temperature: float, count: int) -> list[NearestWords]:
    """The nearest words at every step of the greedy translation of a sentence, the step of the end included.

    Args:
        module: not in training; predicts vectors.
        sentence: one source sentence, with a word at least.
        temperature: see `log_probabilities`.
        count: K, at most all words and the end.

    Raises:
        ValueError: the translator predicts a distribution, not vectors.
        LengthError: the sentence is too long.
    """
    if not module.architecture.continuous:
        raise ValueError("this translator predicts a distribution; no vector has neighbours")
    (found,) = translate(module, sentence, temperature)
    targets = padded_targets(Phrases.from_lists([found.words]), module.end)
    predicted = module.predict(module.encode(sentence), targets.to(module.words.device))
    cosines = functional.normalize(predicted, dim=1) @ module.targets.T
    best, words = cosines.topk(min(count, module.end + 1), 1)
    pairs = zip(words.cpu().numpy(), best.cpu().numpy().astype(np.float32), strict=True)
    return [NearestWords(*pair) for pair in pairs]
