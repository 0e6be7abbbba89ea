"""Per-pair SGD on the max-margin loss, compared with automatic differentiation in double precision."""

import numpy as np
import pytest
import torch

from phrasetool.phrase_encoder.neighbours import evaluate_pairs
from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.phrase_encoder.rae_sgd_kernels import PartnerVectors
from phrasetool.phrase_encoder.settings import TrainingSettings
from phrasetool.phrase_encoder.trainer import PhraseTrainer
from phrasetool.phrases import Phrases
from tests import naive
from tests.phrasetool.phrase_encoder.toy_language import WORDS, scorer_of, settings, some_of, start

STEP = 0.05
WEIGHTS = {"lambda_words": 0.5, "lambda_rec": 0.2, "lambda_sem": 0.3}
NAMES = tuple(RaeParameters.__annotations__)


def errors_of(phrase, p, merges):
    """Return the root vector and E_rec of a phrase with known merges (Eq. 2 to 5)."""
    items, total = [p["word_vectors"][word] for word in phrase], 0.0
    for j in merges:
        children = torch.cat(items[j : j + 2])
        parent = torch.tanh(p["compose"] @ children + p["compose_bias"])
        rebuilt = torch.tanh(p["reconstruct"] @ parent + p["reconstruct_bias"])
        total = total + 0.5 * (children - rebuilt).square().sum()
        items[j : j + 2] = [parent]
    return items[0], total


def pair_objective(phrase, p, merges, partner, chosen):
    """Return the loss of one pair: its errors (Eq. 16) and the L2 terms of the parameters that it uses (Eq. 15)."""
    root, reconstruction = errors_of(phrase, p, merges)
    matrices = [p[name] for name in ("compose", "compose_bias", "reconstruct", "reconstruct_bias")]
    words = [p["word_vectors"][word] for word in set(phrase)]
    groups = {"lambda_words": words, "lambda_rec": matrices, "lambda_sem": []}
    loss = reconstruction
    if partner is not None:
        predicted = torch.tanh(p["transform"] @ root + p["transform_bias"])
        right, wrong = (0.5 * (vector - predicted).square().sum() for vector in partner)
        loss = chosen.alpha * reconstruction + (1 - chosen.alpha) * torch.relu(right - wrong + 1)
        groups["lambda_sem"] = [p["transform"], p["transform_bias"]]
    for name, parameters in groups.items():
        loss = loss + getattr(chosen, name) / 2 * sum(value.square().sum() for value in parameters)
    return loss


def naive_sgd(phrases, parameters, partners, chosen):
    """Run plain SGD on the sum of the losses of each batch, in float64."""
    p = {name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
         for name, array in parameters.arrays().items()}  # fmt: skip
    for first in range(0, len(phrases), chosen.batch_size):
        loss = 0.0
        for i in range(first, min(first + chosen.batch_size, len(phrases))):
            current = type("Now", (), {"arrays": lambda: {k: v.detach().numpy() for k, v in p.items()}, "dimension": 6})
            merges = naive.rae(phrases[i], current)[2]
            partner = None if partners is None else [torch.tensor(v[i], dtype=torch.float64) for v in partners]
            loss = loss + pair_objective(phrases[i], p, merges, partner, chosen)
        gradients = torch.autograd.grad(loss, list(p.values()), allow_unused=True)
        with torch.no_grad():
            for value, gradient in zip(p.values(), gradients, strict=True):
                if gradient is not None:
                    value -= chosen.learning_rate * gradient
    return {name: value.detach().numpy() for name, value in p.items()}


@pytest.fixture(scope="module")
def few():
    rng = np.random.default_rng(7)
    phrases = [(1 + rng.integers(0, 9, length)).tolist() for length in (1, 2, 5, 3, 2, 4, 3, 1, 2, 6)]
    # Words that a phrase repeats count once in its L2 term.
    phrases += [[3, 3], [4, 5, 4]]
    vectors = rng.normal(0, 0.5, (WORDS + 1, 6)).astype(np.float32)
    return phrases, RaeParameters.random(vectors, rng), rng.normal(0, 0.5, (2, len(phrases), 6)).astype(np.float32)


def side_of(chosen, phrases, parameters, pairs):
    both = Phrases.from_lists(phrases)
    training_pairs = type(pairs)(
        both, both, np.ones(len(both), np.int64), pairs.source_vocabulary, pairs.target_vocabulary
    )
    return PhraseTrainer(training_pairs, chosen, parameters, parameters)._sides[0]


@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("semantic", [True, False])
def test_kernel_against_the_oracle(pairs, few, batch_size, semantic):
    phrases, parameters, (true, corrupted) = few
    chosen = settings("max-margin", dimension=6, batch_size=batch_size, learning_rate=STEP, **WEIGHTS)
    side = side_of(chosen, phrases, parameters, pairs)
    rows = np.arange(len(phrases))
    partners = PartnerVectors(true, rows, corrupted, rows) if semantic else None
    side.compiled.run(side.phrases, partners)
    expected = naive_sgd(phrases, parameters, (true, corrupted) if semantic else None, chosen)
    result = side.module.numpy().arrays()
    for name in NAMES:
        np.testing.assert_allclose(result[name], expected[name], atol=2e-5, err_msg=name)
        assert (result[name] != parameters.arrays()[name]).any() == (semantic or not name.startswith("transform")), name


@pytest.mark.parametrize("force_torch", [False, True])
def test_kernel_and_torch_train_alike(pairs, force_torch):
    # 20 pairs: batches of 6, and one of 2.
    pairs = some_of(pairs, np.arange(20))
    results = []
    for kernel in (True, False):
        chosen = settings("max-margin", iterations=2, batch_size=6, learning_rate=STEP, unknown_rate=0.5, **WEIGHTS)
        trainer = PhraseTrainer(pairs, chosen, *start())
        for side in trainer._sides:
            side.module.force_torch = force_torch and not kernel
            side.compiled = side.compiled if kernel else None
        results.append(([report.joint_error for report in trainer.run()], trainer.parameters()))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-4)
    for by_kernel, by_torch in zip(results[0][1], results[1][1], strict=True):
        for name, array in by_kernel.arrays().items():
            np.testing.assert_allclose(array, by_torch.arrays()[name], atol=1e-4, err_msg=name)


@pytest.mark.parametrize("loss", ["max-margin", "sampled"])
def test_words_that_no_pair_uses_do_not_change(pairs, loss):
    used = some_of(pairs, np.arange(3))
    before = start()
    chosen = settings(loss, optimizer="sgd", iterations=1, batch_size=2, alpha=0.1, unknown_rate=0.0, **WEIGHTS)
    trainer = PhraseTrainer(used, chosen, *before)
    list(trainer.run())
    for phrases, old, new in zip((used.sources, used.targets), before, trainer.parameters(), strict=True):
        moved = (old.word_vectors != new.word_vectors).any(1)
        assert set(np.flatnonzero(moved)) == set(phrases.words)


@pytest.mark.parametrize("kernel", [True, False])
def test_the_joint_error_weights_the_words_by_the_pairs_that_use_them(pairs, kernel):
    used = some_of(pairs, np.arange(40))
    chosen = settings("max-margin", iterations=1, pretrain_iterations=0, learning_rate=1e-9, **WEIGHTS)
    before = start()
    trainer = PhraseTrainer(used, chosen, *before)
    for side in trainer._sides:
        side.compiled = side.compiled if kernel else None
    (report,) = trainer.run()
    penalty = 0.0
    for phrases, side in zip((used.sources, used.targets), before, strict=True):
        for phrase in phrases:
            penalty += 0.25 * sum(float((side.word_vectors[word] ** 2).sum()) for word in set(phrase)) / len(used)
        for name, array in side.arrays().items():
            weight = {"word_vectors": 0.0, "transform": 0.3, "transform_bias": 0.3}.get(name, 0.2)
            penalty += weight / 2 * float((array**2).sum())
    errors = chosen.alpha * report.reconstruction_error + (1 - chosen.alpha) * report.semantic_error
    assert report.joint_error - errors == pytest.approx(penalty, rel=1e-4)


def test_steps_of_sgd_are_sums_over_the_batch(pairs):
    """Two copies of every pair in a batch twice as large move parameters twice as far."""
    moved = []
    for copies in (1, 2):
        used = some_of(pairs, np.repeat(np.arange(10), copies))
        chosen = settings("in-batch", optimizer="sgd", iterations=1, pretrain_iterations=1, alpha=0.0,
                          batch_size=len(used), learning_rate=1e-3, unknown_rate=0.0)  # fmt: skip
        before = start()
        trainer = PhraseTrainer(used, chosen, *before)
        next(trainer.run())
        moved.append(trainer.parameters()[0].compose - before[0].compose)
    np.testing.assert_allclose(moved[1], 2 * moved[0], atol=1e-6)
    assert np.abs(moved[0]).max() > 1e-5


@pytest.mark.parametrize("reading", ["the preset", "means over batches"])
def test_the_preset_learns_the_toy_language(pairs, reading):
    """With mean gradients over batches of 64, at the same step size, the same equations do not learn it."""
    changes = {} if reading == "the preset" else {"learning_rate": 0.01 / 64}
    chosen = TrainingSettings.for_loss("max-margin", dimension=16, vector_scale=0.3, iterations=25, **changes)
    rng = np.random.default_rng(3)
    vectors = [rng.normal(0, 0.3, (WORDS + 1, 16)).astype(np.float32) for _ in range(2)]
    trainer = PhraseTrainer(pairs, chosen, *(chosen.kind.initial(side, 16, chosen.start, rng) for side in vectors))
    list(trainer.run())
    quality = evaluate_pairs(scorer_of(trainer), pairs.sources, pairs.targets, WORDS + 1, candidates=100)
    assert quality.auc_other_targets > 0.8 if reading == "the preset" else quality.auc_other_targets < 0.6
