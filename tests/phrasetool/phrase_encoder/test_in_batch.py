import numpy as np
import torch

from phrasetool.nn.losses import cosines, in_batch_cross_entropy
from phrasetool.phrase_encoder.losses import objective


def test_the_class_equals_its_functions_bit_for_bit():
    vectors = np.random.default_rng(0).normal(size=(2, 40, 50))
    predicted, positive = torch.tensor(vectors, dtype=torch.float32)
    shares = torch.rand(2, 40).log().unbind(0)
    for options in ({}, {"temperature": 0.2, "smoothing": 0.0}, {"correction": 0.5}):
        chosen = objective("in-batch", options)
        correction = [options.get("correction", 1.0) * share for share in shares]
        expected = in_batch_cross_entropy(
            cosines(predicted, positive), chosen.temperature, chosen.smoothing, tuple(correction)
        )
        assert torch.equal(chosen.batch_losses(predicted, positive, shares), expected)
