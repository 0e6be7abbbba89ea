import numpy as np
import pytest
import torch

from phrasetool.errors import ModelError
from phrasetool.tagger.data import learnt_tags, tagger_examples
from phrasetool.tagger.model import TaggerModel
from phrasetool.tagger.settings import TaggerSettings, TaggerShape
from phrasetool.tagger.training import TaggerNetwork, TaggerTrainer, held_out_sentences, train_tagger
from phrasetool.training.run import CHECKPOINT, TrainingRun
from tests.toy_treebanks import FAST, toy_sentences

SHAPE = TaggerShape(50, 6, 4, 2, 5)
BANKS = {language: toy_sentences(language, 60, 1) for language in ("en", "de")}
HELD = {language: toy_sentences(language, 20, 2) for language in ("en", "de")}
TAGS = learnt_tags(BANKS, 5)


def network(seed=1, dropout=0.0):
    module = TaggerNetwork(SHAPE, seed, dropout)
    with torch.no_grad():
        module.features.weight[1:].normal_(generator=torch.Generator().manual_seed(3))
    return module


def rows(lengths, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 50, (sum(lengths), 3)))


def test_scores_in_a_batch_are_those_of_each_sentence_alone():
    module, lengths = network(), np.array([3, 1, 7])
    features = rows(lengths)
    whole = module(features, lengths)
    first = 0
    for length in lengths.tolist():
        vectors = module.features.weight[features[first : first + length]].sum(1)
        states, _ = module.lstm(vectors[None])
        torch.testing.assert_close(whole[first : first + length], module.output(states[0]), rtol=1e-5, atol=1e-6)
        first += length


def test_feature_vectors_are_initially_zero():
    assert not TaggerNetwork(SHAPE).features.weight.any()
    assert not TaggerNetwork(SHAPE).features(rows([4])).any()


def test_dropout_depends_on_its_seed_and_is_off_outside_training():
    module, lengths = network(dropout=0.5), np.array([200])
    module.seed_dropout(1)
    first = module(rows(lengths), lengths)
    assert not torch.equal(first, module(rows(lengths), lengths))
    module.seed_dropout(1)
    assert torch.equal(first, module(rows(lengths), lengths))
    assert torch.equal(module.eval()(rows(lengths), lengths), network()(rows(lengths), lengths))


def test_a_seed_fixes_the_values():
    assert np.array_equal(network(2).arrays()["output.weight"], network(2).arrays()["output.weight"])
    assert not np.array_equal(network(2).arrays()["output.weight"], network(3).arrays()["output.weight"])


def trainer(**changes):
    settings = TaggerSettings(**{**FAST, **changes})
    return TaggerTrainer(tagger_examples(BANKS, TAGS, settings.buckets), HELD, TAGS, settings)


def test_endings_and_context_are_learnt():
    tagger_trainer = trainer()
    reports = list(tagger_trainer.run())
    assert [report.epoch for report in reports] == [1, 2, 3, 4, 5, 6]
    assert reports[-1].loss < 0.3 * reports[0].loss
    assert reports[-1].accuracy > 0.95
    assert reports[-1].lower_accuracy > 0.95
    assert tagger_trainer.best["accuracy"] + tagger_trainer.best["lower_accuracy"] == max(
        r.accuracy + r.lower_accuracy for r in reports
    )


def test_the_best_epoch_is_kept():
    tagger_trainer = trainer(epochs=3)
    epochs = []
    for report in tagger_trainer.run():
        epochs.append((report, tagger_trainer.network.arrays()))
    best = epochs[tagger_trainer.best["epoch"] - 1][1]
    kept = tagger_trainer.best_model(["en", "de"]).arrays
    assert all(np.array_equal(best[name], kept[name]) for name in best)


def test_a_restored_trainer_continues_bit_for_bit():
    uninterrupted = trainer(epochs=4)
    list(uninterrupted.run())
    interrupted = trainer(epochs=4)
    reports = interrupted.run()
    next(reports), next(reports)
    tensors, progress = interrupted.tensors(), interrupted.progress()
    resumed = trainer(epochs=4)
    resumed.restore({name: value.clone() for name, value in tensors.items()}, progress)
    assert [report.epoch for report in resumed.run()] == [3, 4]
    assert resumed.best == uninterrupted.best
    for name, value in uninterrupted.tensors().items():
        assert torch.equal(value, resumed.tensors()[name]), name


def test_only_vectors_of_features_in_the_examples_change():
    tagger_trainer = trainer(epochs=1)
    list(tagger_trainer.run())
    table = tagger_trainer.network.arrays()["features.weight"]
    used = np.unique(tagger_trainer.examples.rows)
    assert not np.delete(table, used, axis=0).any()
    assert not table[0].any()
    assert table[used[1:]].any(axis=1).mean() > 0.8


def test_training_is_determined_by_the_seed():
    first, second, other_seed = trainer(epochs=1), trainer(epochs=1), trainer(epochs=1, seed=2)
    for tagger_trainer in (first, second, other_seed):
        list(tagger_trainer.run())
    assert np.array_equal(first.network.arrays()["output.weight"], second.network.arrays()["output.weight"])
    assert not np.array_equal(first.network.arrays()["output.weight"], other_seed.network.arrays()["output.weight"])


SETTINGS = TaggerSettings(**{**FAST, "epochs": 3})


class _Enough(Exception):
    pass


def test_interrupted_training_ends_with_the_same_model(tmp_path):
    uninterrupted = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "whole"))

    def stop(report):
        if report.epoch == 2:
            raise _Enough

    with pytest.raises(_Enough):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts", on_report=stop))
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    with pytest.raises(ModelError, match="unfinished training"):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts"))
    resumed = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts", resume=True))
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert resumed.identity == uninterrupted.identity == TaggerModel.load(tmp_path / "whole").identity
    assert resumed.training == uninterrupted.training
    for name in ("weights.safetensors", "config.json", "training.jsonl"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_training_cannot_be_resumed_with_other_treebanks(tmp_path):
    def stop(report):
        raise _Enough

    with pytest.raises(_Enough):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "m", on_report=stop))
    with pytest.raises(ModelError, match="the treebanks differ"):
        train_tagger(HELD, HELD, SETTINGS, TrainingRun(tmp_path / "m", resume=True))


def test_the_model_records_its_training_data(tmp_path):
    model = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "m", record={"treebanks": [["en", "a"]]}))
    assert model.languages == ("en", "de")
    assert model.training["sentences"] == {"en": 60, "de": 60}
    assert model.training["treebanks"] == [["en", "a"]]
    assert model.training["development"]["de"]["words"] == sum(len(sentence.words) for sentence in HELD["de"])
    assert "ADP+DET" in model.tags


def test_one_sentence_in_twenty_is_held_out():
    kept, held = held_out_sentences(BANKS, 1)
    for language, sentences in BANKS.items():
        assert (len(kept[language]), len(held[language])) == (57, 3)
        both = [*map(id, kept[language]), *map(id, held[language])]
        assert sorted(both) == sorted(map(id, sentences))
    with pytest.raises(ValueError, match="1 sentence of en, expected two"):
        held_out_sentences({"en": BANKS["en"][:1]}, 1)
