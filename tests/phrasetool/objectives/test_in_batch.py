import numpy as np
import torch

from phrasetool.objectives import objective
from phrasetool.objectives.in_batch_cross_entropy import cosines, in_batch_cross_entropy
from phrasetool.objectives.max_semantic_margin import max_semantic_margin
from phrasetool.objectives.objective import FrozenBatch


def test_classes_equal_their_functions_bit_for_bit():
    vectors = np.random.default_rng(0).normal(size=(3, 40, 50))
    predicted, positive, corrupted = torch.tensor(vectors, dtype=torch.float32)
    frozen = FrozenBatch(positive, corrupted, positive, np.random.default_rng(0))
    for options in ({}, {"temperature": 0.2, "smoothing": 0.0}):
        wanted = {"temperature": 0.1, "smoothing": 0.25, **options}
        stated = in_batch_cross_entropy(cosines(predicted, positive), wanted["temperature"], wanted["smoothing"])
        assert torch.equal(objective("in-batch", options).batch_losses(predicted, positive), stated)
    stated = max_semantic_margin(predicted, positive, corrupted, 1.0)
    assert torch.equal(objective("max-margin").frozen_losses(predicted, frozen), stated)
    stated = max_semantic_margin(predicted, positive, corrupted, 30.0)
    assert torch.equal(objective("max-margin", {"margin": 30.0}).frozen_losses(predicted, frozen), stated)
