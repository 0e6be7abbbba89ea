"""How sure a translator's predictions are: the temperature that turns cosines into probabilities.

With p the prediction and u_w the target vectors, p(w) = softmax_w(cos(p, u_w) / temperature).  The one free number is
fitted to held-out sentences by maximum likelihood.  A translator trained by the likelihood of von Mises and Fisher says
at each step itself how sure it is; here it is asked for its direction alone, so that all losses are read alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from phrasetool.train.data import PhrasePairs
from phrasetool.translator.network import NeuralTranslator, padded_targets

# Predictions that one number is fitted to: enough for three digits of it.
_MOST = 4096
_BATCH = 64
# Logarithms of temperatures that are looked at.
_RANGE = -7.0, 2.0


@torch.no_grad()
def fitted_temperature(module: NeuralTranslator, pairs: PhrasePairs, seed: int) -> float:
    """The temperature with the highest likelihood of held-out sentences; 1 for a softmax.

    Args:
        module: is asked what it predicts.
        pairs: sentences and their translations.
        seed: of the sample that is taken of them.
    """
    if not module.architecture.continuous:
        return 1.0
    found = list(_predictions(module, pairs, seed))
    predicted = functional.normalize(torch.cat([rows for rows, _ in found]), dim=1)
    wanted = torch.cat([ids for _, ids in found])
    cosines = predicted @ module.targets.T
    right = cosines.gather(1, wanted[:, None])[:, 0]

    def likelihood(logarithm: float) -> float:
        return float((right / math.exp(logarithm) - (cosines / math.exp(logarithm)).logsumexp(1)).mean())

    return math.exp(_maximum(likelihood, *_RANGE))


def _predictions(module: NeuralTranslator, pairs: PhrasePairs, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """What is predicted for random sentences, and the ids that come there, until there are enough."""
    order = np.random.default_rng(seed).permutation(len(pairs))
    count = 0
    for first in range(0, len(order), _BATCH):
        batch = order[first : first + _BATCH]
        targets = padded_targets(pairs.targets.select(batch), module.end).to(module.words.device)
        wanted = targets[targets >= 0]
        yield module.predict(module.encode(pairs.sources.select(batch)), targets), wanted
        count += len(wanted)
        if count >= _MOST:
            return


def _maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one hill is highest, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-4:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
    return (low + high) / 2
