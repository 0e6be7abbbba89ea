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
    made = TaggerNetwork(SHAPE, seed, dropout)
    with torch.no_grad():
        made.features.weight[1:].normal_(generator=torch.Generator().manual_seed(3))
    return made


def rows(lengths, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 50, (sum(lengths), 3)))


def test_a_batch_gives_what_each_sentence_alone_gives():
    made, lengths = network(), np.array([3, 1, 7])
    features = rows(lengths)
    whole = made(features, lengths)
    first = 0
    for length in lengths.tolist():
        vectors = made.features.weight[features[first : first + length]].sum(1)
        states, _ = made.lstm(vectors[None])
        torch.testing.assert_close(whole[first : first + length], made.output(states[0]), rtol=1e-5, atol=1e-6)
        first += length


def test_what_was_not_seen_says_nothing_at_first():
    assert not TaggerNetwork(SHAPE).features.weight.any()
    assert not TaggerNetwork(SHAPE).features(rows([4])).any()


def test_dropout_is_what_its_seed_says_and_in_training_alone():
    made, lengths = network(dropout=0.5), np.array([200])
    made.seed_dropout(1)
    first = made(rows(lengths), lengths)
    assert not torch.equal(first, made(rows(lengths), lengths))
    made.seed_dropout(1)
    assert torch.equal(first, made(rows(lengths), lengths))
    assert torch.equal(made.eval()(rows(lengths), lengths), network()(rows(lengths), lengths))


def test_a_seed_fixes_the_values():
    assert np.array_equal(network(2).arrays()["output.weight"], network(2).arrays()["output.weight"])
    assert not np.array_equal(network(2).arrays()["output.weight"], network(3).arrays()["output.weight"])


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
    kept = made.best_model(["en", "de"]).arrays
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


SETTINGS = TaggerSettings(**{**FAST, "epochs": 3})


class _Enough(Exception):
    pass


def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path):
    whole = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "whole"))

    def stop(report):
        if report.epoch == 2:
            raise _Enough

    with pytest.raises(_Enough):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts", on_report=stop))
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    with pytest.raises(ModelError, match="unfinished training"):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts"))
    again = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "parts", resume=True))
    assert not (tmp_path / "parts" / CHECKPOINT).exists()
    assert again.identity == whole.identity == TaggerModel.load(tmp_path / "whole").identity
    assert again.training == whole.training
    for name in ("weights.safetensors", "config.json", "training.jsonl"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_other_treebanks_cannot_be_resumed(tmp_path):
    def stop(report):
        raise _Enough

    with pytest.raises(_Enough):
        train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "m", on_report=stop))
    with pytest.raises(ModelError, match="the treebanks are other ones"):
        train_tagger(HELD, HELD, SETTINGS, TrainingRun(tmp_path / "m", resume=True))


def test_the_model_remembers_what_it_learnt_from(tmp_path):
    model = train_tagger(BANKS, HELD, SETTINGS, TrainingRun(tmp_path / "m", record={"treebanks": [["en", "a"]]}))
    assert model.languages == ("en", "de")
    assert model.training["sentences"] == {"en": 60, "de": 60}
    assert model.training["treebanks"] == [["en", "a"]]
    assert model.training["development"]["de"]["words"] == sum(len(one.words) for one in HELD["de"])
    assert "ADP+DET" in model.tags


def test_one_sentence_in_twenty_is_held_out():
    kept, held = held_out_sentences(BANKS, 1)
    for language, sentences in BANKS.items():
        assert (len(kept[language]), len(held[language])) == (57, 3)
        both = [*map(id, kept[language]), *map(id, held[language])]
        assert sorted(both) == sorted(map(id, sentences))
    with pytest.raises(ValueError, match="1 sentence of en, expected two"):
        held_out_sentences({"en": BANKS["en"][:1]}, 1)
