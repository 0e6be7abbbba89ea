import numpy as np
import pytest
import torch

from phrasetool.pair_classifier.pair_losses import contrast_loss, parallel_loss


def test_cross_entropy_of_pairs():
    logits, parallel = np.array([2.0, -1.0, 0.5]), np.array([1.0, 1.0, 0.0])
    p = 1 / (1 + np.exp(-logits))
    wanted = -np.mean(parallel * np.log(p) + (1 - parallel) * np.log(1 - p))
    assert float(parallel_loss(torch.tensor(logits), torch.tensor(parallel))) == pytest.approx(wanted)


def test_contrast_of_a_batch():
    rng = np.random.default_rng(1)
    sources, targets = rng.normal(size=(2, 4, 5))
    translations = np.eye(4, dtype=bool)
    translations[0, 2] = translations[3, 1] = True
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (sources, targets)]
    scores = unit[0] @ unit[1].T / 0.2
    losses = []
    for i in range(4):
        # A source is told from targets that are wrong for it, and a target from sources that it is wrong for.
        row = [scores[i, j] for j in range(4) if j == i or not translations[i, j]]
        column = [scores[j, i] for j in range(4) if j == i or not translations[j, i]]
        losses += [np.log(np.exp(row).sum()) - scores[i, i], np.log(np.exp(column).sum()) - scores[i, i]]
    given = [torch.tensor(array) for array in (sources, targets, translations)]
    assert float(contrast_loss(*given, 0.2)) == pytest.approx(np.mean(losses))
