import numpy as np
import pytest
import torch

from phrasetool.pair_classifier.classifier_trainer import ParallelTrainer
from phrasetool.pair_classifier.fresh_classifier import fresh_classifier
from phrasetool.pair_classifier.pair_losses import contrast_loss, parallel_loss
from phrasetool.pair_classifier.settings import ParallelSettings
from phrasetool.train.loop import ADAM
from tests.parallel_models import FAST, toy_pairs

PAIRS, DEVELOPMENT = toy_pairs(300), toy_pairs(50, 2)


def trainer(pairs=PAIRS, **options):
    settings = ParallelSettings.from_options({**FAST, **options})
    return ParallelTrainer(pairs, DEVELOPMENT, fresh_classifier(pairs, settings).classifier, settings)


@pytest.mark.parametrize("options", [{}, {"cell": "gru"}, {"cell": "lstm"}, {"length": "add"}, {"contrast": 0.0},
                                     {"negatives": 0}, {"containment": 0}, {"containment": 2}])  # fmt: skip
def test_everything_learns(options):
    reports = list(trainer(epochs=2, **options).run())
    assert [report.updates for report in reports] == [19, 38]
    assert reports[1].loss < reports[0].loss
    assert reports[1].development_loss < 3


def test_it_learns_to_tell_pairs_and_contained_ones_from_others():
    made = trainer(toy_pairs(800), epochs=5)
    reports = list(made.run())
    assert reports[-1].best_f1 > 0.85
    assert reports[-1].auc > 0.95
    assert reports[-1].contained_f1 > 0.8
    assert reports[-1].best_f1 >= reports[-1].f1
    assert made.best["best_f1"] == max(report.best_f1 for report in reports)


def test_the_best_epoch_is_kept():
    made = trainer()
    kept = []
    for report in made.run():
        kept.append((report.best_f1, {name: value.clone() for name, value in made.module.state_dict().items()}))
    best = max(kept, key=lambda pair: pair[0])[1]
    # Pretend that the last epoch was worse.
    made.module.network.output.weight.data += 1
    found = made.kept().state_dict()
    assert all(torch.equal(found[name], best[name]) for name in best)
    assert not made.module.training


def test_the_loss_of_a_batch_with_nothing_wrong_but_one_target():
    """Two pairs, no dropout: the loss is that of two true and two wrong pairs, and the contrast of the two."""
    pairs = PAIRS.select(np.array([0, 1]))
    made = trainer(pairs, negatives=3, containment=0, dropout=0.0, hidden_words=0.0, contrast=0.5)
    loss = made._loss(np.array([0, 1]), np.random.default_rng(1))
    module = made.module
    sides = [
        module.encode(side, texts, made._lexicons[side]) for side, texts in enumerate((pairs.sources, pairs.targets))
    ]
    rows, columns = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 1, 1, 0])
    lengths = torch.from_numpy(pairs.sources.lengths)
    logits = module.network.logits(sides[0][rows], lengths[rows], sides[1][columns], lengths[columns])
    wanted = parallel_loss(logits, torch.tensor([1.0, 1.0, 0.0, 0.0]))
    wanted += 0.5 * contrast_loss(*sides, torch.eye(2, dtype=torch.bool), 0.05)
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-6)


def test_the_step_size_rises_and_falls_to_nothing():
    made = trainer(epochs=2)
    rates = []
    adam = made.learnt.optimizers[ADAM]
    step = adam.step
    adam.step = lambda: (rates.append(adam.param_groups[0]["lr"]), step())
    list(made.run())
    assert rates[0] < 0.001
    assert 0.008 < max(rates) <= 0.01
    assert rates[-1] < 0.001
    constant = trainer(epochs=1, schedule="constant")
    list(constant.run())
    assert constant.learnt.optimizers[ADAM].param_groups[0]["lr"] == 0.01
