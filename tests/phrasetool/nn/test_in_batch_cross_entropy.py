import numpy as np
import pytest
import torch

from phrasetool.nn.losses import cosines, in_batch_cross_entropy
from tests.phrasetool.phrase_encoder.naive_objectives import in_batch


def test_cosines_of_every_pair():
    a, b = np.random.default_rng(2).normal(size=(2, 6, 4))
    naive = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    np.testing.assert_allclose(cosines(torch.tensor(a), torch.tensor(b)).numpy(), naive, rtol=1e-12)
    assert cosines(torch.zeros(2, 4), torch.ones(2, 4)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_in_batch_equals_the_obvious_formula_and_so_does_its_gradient(smoothing, corrected):
    rng = np.random.default_rng(2)
    similarities = torch.tensor(rng.uniform(-1, 1, (6, 6)), requires_grad=True)
    shares = rng.uniform(0.01, 1, (2, 6)) if corrected else (None, None)
    logs = tuple(torch.tensor(np.log(one)) for one in shares) if corrected else None
    found = in_batch_cross_entropy(similarities, 0.2, smoothing, logs)
    naive = in_batch(similarities.detach().numpy(), 0.2, smoothing, *shares)
    np.testing.assert_allclose(found.detach().numpy(), naive, rtol=1e-9)
    assert torch.autograd.gradcheck(lambda s: in_batch_cross_entropy(s, 0.2, smoothing, logs), (similarities,))


def fitted_scores(pairs, weights, corrected):
    """The score matrix that minimises the weighted loss over all pairs as one batch, without constraints.

    Args:
        pairs: of a source and a target, int, shape (B, 2); a pair may occur several times.
        weights: of their losses, shape (B,).
        corrected: whether candidates are corrected for their frequency.
    """
    s, t = torch.tensor(pairs).T
    scores = torch.zeros(int(s.max()) + 1, int(t.max()) + 1, dtype=torch.double, requires_grad=True)
    shares = [torch.bincount(side)[side].double().div(len(side)).log() for side in (s, t)]
    optimizer = torch.optim.LBFGS([scores], lr=1, max_iter=3000, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        found = in_batch_cross_entropy(scores[s][:, t], 1.0, 0.0, tuple(shares) if corrected else None)
        loss = (torch.tensor(weights) * found).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return scores.detach().numpy()


def centred(matrix):
    """Without what is constant over the whole matrix."""
    return matrix - matrix.mean()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_the_log_probability_and_without_correction_the_pointwise_mutual_information(weighted):
    """Counts of a toy distribution come from repeated pairs, or from pairs that occur once and weigh as much."""
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 9, (4, 5)) * np.array([1, 4, 1, 12, 2])
    cells = np.argwhere(counts > 0)
    if weighted:
        pairs, weights = cells, counts[tuple(cells.T)] / counts.mean()
    else:
        pairs = np.repeat(cells, counts[tuple(cells.T)], axis=0)
        weights = np.ones(len(pairs))
    joint = np.log(counts / counts.sum())
    given_source = joint - np.log(counts.sum(1) / counts.sum())[:, None]

    corrected = fitted_scores(pairs, weights, corrected=True)
    np.testing.assert_allclose(centred(corrected), centred(joint), atol=1e-3)
    # That is log p(t|s) plus a constant for each source.
    constants = corrected - given_source
    np.testing.assert_allclose(constants, np.repeat(constants[:, :1], 5, axis=1), atol=1e-3)

    if not weighted:
        information = given_source - np.log(counts.sum(0) / counts.sum())
        np.testing.assert_allclose(
            centred(fitted_scores(pairs, weights, corrected=False)), centred(information), atol=1e-3
        )


def test_in_batch_is_finite_for_zero_vectors_and_far_ends():
    a = torch.zeros(3, 4, requires_grad=True)
    loss = in_batch_cross_entropy(cosines(a, torch.ones(3, 4)), temperature=0.03).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(a.grad).all()
    opposite = torch.full((3, 3), -1.0, requires_grad=True)
    loss = in_batch_cross_entropy(opposite, temperature=0.03).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(opposite.grad).all()
