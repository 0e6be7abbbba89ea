import subprocess
import sys

import numpy as np
import pytest
import torch

from phrasetool.options import declared_options
from phrasetool.phrase_encoder.losses import OBJECTIVES, FrozenBatch, objective
from phrasetool.phrase_encoder.settings import TrainingSettings
from tests.commands import clean_environment
from tests.variants import for_each

EVERY = [objective(name) for name in OBJECTIVES]
CO_TRAINING = [loss for loss in EVERY if not hasattr(loss, "batch_losses")]


def losses(loss, predicted, frozen):
    """Return the losses of an objective of either kind."""
    if hasattr(loss, "batch_losses"):
        even = predicted.new_full((len(predicted),), -1.0)
        return loss.batch_losses(predicted, frozen.positive, (even, even))
    return loss.frozen_losses(predicted, frozen)


def test_every_objective_has_a_name_a_summary_and_settings_that_training_knows():
    assert [loss.name for loss in EVERY] == list(OBJECTIVES)
    for loss in EVERY:
        assert 5 <= len(loss.summary.split()) <= 14
        assert set(loss.defaults) <= set(TrainingSettings.__dataclass_fields__)
        assert not set(loss.defaults) & set(declared_options(type(loss)))


def test_no_torch_is_loaded_until_there_are_vectors():
    code = (
        "import sys; from phrasetool.phrase_encoder.losses import OBJECTIVES, objective\n"
        "for name in OBJECTIVES: objective(name)\n"
        "sys.exit('torch' in sys.modules)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], env=clean_environment(), timeout=120, check=False)
    assert outcome.returncode == 0


@for_each(
    ("name", "options", "message"),
    [
        ("in-batch", {"temperature": 0.02}, "temperature is 0.02, expected at least 0.03"),
        ("in-batch", {"temperature": float("nan")}, "temperature is nan"),
        ("in-batch", {"smoothing": 1.5}, "smoothing is 1.5, expected from 0 to 1"),
        ("in-batch", {"correction": -0.5}, "correction is -0.5, expected from 0 to 1"),
        ("max-margin", {"margin": -1.0}, "margin is -1.0, expected at least 0"),
        ("sampled", {"margin": float("nan")}, "margin is nan"),
        ("sampled", {"negatives": 0}, "negatives is 0, expected at least 1"),
        ("most-informative", {"margin": -0.5}, "margin is -0.5"),
        ("most-informative", {"pool_size": -1}, "pool_size is -1, expected at least 0"),
        ("syn-projection", {"margin": -0.5}, "margin is -0.5"),
        ("syn-difference", {"margin": float("inf")}, "margin is inf"),
        ("vmf", {"concentration": 0.0}, "concentration is 0.0, expected more than 0"),
        ("vmf", {"margin": 0.5}, "vmf has no option margin; it takes concentration"),
        ("hinge", {}, "unknown loss 'hinge'; expected one of in-batch, max-margin, sampled"),
    ],
)
def test_bad_options_are_refused_in_one_line(name, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        objective(name, options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_degenerate_vectors_have_finite_losses_and_gradients(loss):
    for dimension in (1, 2, 50):
        for dtype in (torch.float32, torch.float64):
            check_degenerate_vectors(loss, dimension, dtype)


def check_degenerate_vectors(loss, dimension, dtype):
    rng = np.random.default_rng(dimension)
    u = torch.tensor(rng.normal(size=dimension), dtype=dtype)
    zero, other = torch.zeros_like(u), torch.tensor(rng.normal(size=dimension), dtype=dtype)
    cases = [
        (u, u), (-u, u), (2 * u, u), (zero, u), (u, zero), (zero, zero), (1e-30 * u, u), (u, 1e-30 * u), (1e-6 * u, u),
        (u * (1 + 1e-7), u), (u + 1e-7 * other, u), (1e8 * u, u), (other, u),
    ]  # fmt: skip
    positive, unit = torch.stack([case[1] for case in cases]), u / u.norm()
    for pool in ([unit], [zero], [unit, zero, -unit], [unit, other / other.norm()]):
        predicted = torch.stack([case[0] for case in cases]).requires_grad_()
        batch = FrozenBatch(positive, -positive, torch.stack(pool), np.random.default_rng(1))
        result = losses(loss, predicted, batch)
        result.sum().backward()
        assert result.shape == (len(cases),)
        assert result.dtype == dtype
        assert torch.isfinite(result).all()
        assert torch.isfinite(predicted.grad).all()


@pytest.mark.parametrize("loss", [loss for loss in CO_TRAINING if "margin" in declared_options(type(loss))])
def test_margin_losses_of_equal_and_of_zero_vectors(loss):
    """If p is u, the loss is the margin minus 1 (max-margin: 0.5), at least 0; if both are zero, it is the margin."""
    u = torch.nn.functional.normalize(torch.tensor(np.random.default_rng(0).normal(size=(1, 8))))
    zero = torch.zeros_like(u)
    result = [
        float(losses(loss, p, FrozenBatch(t, zero, zero, np.random.default_rng(0)))) for p, t in ((u, u), (zero, zero))
    ]
    assert result[0] == pytest.approx(max(0.0, loss.margin - (0.5 if loss.name == "max-margin" else 1)))
    assert result[1] == pytest.approx(loss.margin)


@pytest.mark.parametrize("loss", CO_TRAINING, ids=lambda loss: loss.name)
def test_no_gradient_goes_into_the_frozen_side(loss):
    vectors = torch.tensor(np.random.default_rng(0).normal(size=(3, 6, 8))).unbind(0)
    predicted, positive, corrupted = vectors
    predicted.requires_grad_()
    frozen = FrozenBatch(positive, corrupted, torch.nn.functional.normalize(positive), np.random.default_rng(0))
    before = [tensor.clone() for tensor in (positive, corrupted, frozen.pool)]
    losses(loss, predicted, frozen).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(before, (positive, corrupted, frozen.pool), strict=True))
    assert predicted.grad.abs().sum() > 0


@pytest.mark.requires_cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_gpu_equals_cpu(loss):
    vectors = torch.tensor(np.random.default_rng(0).normal(size=(4, 20, 8)), dtype=torch.float64)
    collected = []
    for device in ("cpu", "cuda"):
        predicted, positive, corrupted, pool = vectors.to(device).unbind(0)
        predicted = predicted.clone().requires_grad_()
        pool = torch.nn.functional.normalize(pool)
        batch = losses(loss, predicted, FrozenBatch(positive, corrupted, pool, np.random.default_rng(0)))
        (gradient,) = torch.autograd.grad(batch.sum(), predicted)
        collected.append((batch.detach().cpu(), gradient.cpu()))
    torch.testing.assert_close(collected[1], collected[0])
