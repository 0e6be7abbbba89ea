import torch

from phrasetool.phrase_encoder.losses import FrozenBatch, MaxMargin, semantic_error


def test_semantic_error_is_half_the_squared_distance():
    a, b = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[3.0, 0.0], [0.0, 0.0]])
    assert semantic_error(a, b).tolist() == [4.0, 0.0]


def test_max_semantic_margin_by_hand():
    t, good, bad = torch.zeros(3, 2), torch.zeros(3, 2), torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])

    def losses(positive, corrupted, margin):
        return MaxMargin(margin).frozen_losses(t, FrozenBatch(positive, corrupted, positive, None)).tolist()

    # E(good) = 0; E(bad) = 0, 1/2, 2
    assert losses(good, bad, 1.0) == [1.0, 0.5, 0.0]
    assert losses(bad, good, 2.0) == [2.0, 2.5, 4.0]
