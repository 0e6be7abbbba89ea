import numpy as np
import torch

from phrasetool.objectives import objective
from phrasetool.objectives.in_batch_cross_entropy import cosines, in_batch_cross_entropy


def test_the_class_equals_its_functions_bit_for_bit():
    vectors = np.random.default_rng(0).normal(size=(2, 40, 50))
    predicted, positive = torch.tensor(vectors, dtype=torch.float32)
    for options in ({}, {"temperature": 0.2, "smoothing": 0.0}):
        wanted = {"temperature": 0.1, "smoothing": 0.25, **options}
        stated = in_batch_cross_entropy(cosines(predicted, positive), wanted["temperature"], wanted["smoothing"])
        assert torch.equal(objective("in-batch", options).batch_losses(predicted, positive), stated)
