import numpy as np
import torch

from phrasetool.tagger.data import learnt_tags, tagger_examples
from phrasetool.tagger.settings import TaggerSettings
from phrasetool.tagger.training import TaggerTrainer
from tests.toy_treebanks import FAST, toy_sentences

BANKS = {language: toy_sentences(language, 60, 1) for language in ("en", "de")}
HELD = {language: toy_sentences(language, 20, 2) for language in ("en", "de")}
TAGS = learnt_tags(BANKS, 5)


def trainer(**changes):
    settings = TaggerSettings(**{**FAST, **changes})
    return TaggerTrainer(tagger_examples(BANKS, TAGS, settings.buckets), HELD, TAGS, settings)


def test_it_learns_endings_and_what_stands_beside_them():
    made = trainer()
    reports = list(made.run())
    assert [report.epoch for report in reports] == [1, 2, 3, 4, 5, 6]
    assert reports[-1].loss < 0.3 * reports[0].loss
    assert reports[-1].accuracy > 0.95
    assert reports[-1].lower_accuracy > 0.95
    assert made.best["accuracy"] + made.best["lower_accuracy"] == max(r.accuracy + r.lower_accuracy for r in reports)


def test_the_best_epoch_is_kept():
    made = trainer(epochs=3)
    seen = []
    for report in made.run():
        seen.append((report, made.network.arrays()))
    best = seen[made.best["epoch"] - 1][1]
    kept = made.kept().arrays()
    assert all(np.array_equal(best[name], kept[name]) for name in best)


def test_it_goes_on_bit_for_bit():
    whole = trainer(epochs=4)
    list(whole.run())
    first = trainer(epochs=4)
    reports = first.run()
    next(reports), next(reports)
    tensors, progress = first.tensors(), first.progress()
    again = trainer(epochs=4)
    again.restore({name: value.clone() for name, value in tensors.items()}, progress)
    assert [report.epoch for report in again.run()] == [3, 4]
    assert again.best == whole.best
    for name, value in whole.tensors().items():
        assert torch.equal(value, again.tensors()[name]), name


def test_only_features_of_the_batch_move():
    made = trainer(epochs=1)
    list(made.run())
    table = made.network.arrays()["features.weight"]
    used = np.unique(made.examples.rows)
    assert not np.delete(table, used, axis=0).any()
    assert not table[0].any()
    assert table[used[1:]].any(axis=1).mean() > 0.8


def test_a_seed_fixes_it_and_another_changes_it():
    one, same, other = trainer(epochs=1), trainer(epochs=1), trainer(epochs=1, seed=2)
    for made in (one, same, other):
        list(made.run())
    assert np.array_equal(one.network.arrays()["output.weight"], same.network.arrays()["output.weight"])
    assert not np.array_equal(one.network.arrays()["output.weight"], other.network.arrays()["output.weight"])
