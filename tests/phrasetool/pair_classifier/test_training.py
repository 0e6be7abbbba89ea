import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from phrasetool.disk import folders
from phrasetool.embeddings.training import train_word2vec
from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.nn.losses import contrastive_loss
from phrasetool.pair_classifier import training as module
from phrasetool.pair_classifier.labelled_pairs import random_pairs
from phrasetool.pair_classifier.model import PairClassifierModel
from phrasetool.pair_classifier.network import SearchVectors
from phrasetool.pair_classifier.quality import best_quality
from phrasetool.pair_classifier.settings import PairClassifierSettings
from phrasetool.pair_classifier.training import (
    PairClassifierTrainer,
    SearchReport,
    SearchTrainer,
    distinct_targets,
    fresh_classifier,
    label_loss,
    train_pair_classifier,
)
from phrasetool.phrases import Phrases
from phrasetool.training.data import TextPairs
from phrasetool.training.loop import ADAM
from phrasetool.training.run import CHECKPOINT, DivergedError, TrainingRun
from tests.parallel_models import FAST, WORDS, bert_folder, toy_pairs

PAIRS, DEVELOPMENT = toy_pairs(300), toy_pairs(50, 2)


class _StopError(Exception):
    pass


def settings(encoder="words", tuned=False, **options):
    return PairClassifierSettings.from_options({**FAST, **options}, encoder=encoder, tuned=tuned)


def lines(texts, side):
    return [b" ".join(WORDS[side][i] for i in text) for text in texts]


def test_the_saved_model_and_its_log(tmp_path):
    model = train_pair_classifier(PAIRS, DEVELOPMENT, settings(), TrainingRun(tmp_path, record={"escaped": False}))
    assert not (tmp_path / CHECKPOINT).exists()
    log = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log] == [1, 2, 3]
    loaded = PairClassifierModel.load(tmp_path)
    assert loaded.identity == model.identity
    training = loaded.training
    assert (training["escaped"], training["pairs"], training["epochs_done"]) == (False, 300, 3)
    best = max(log, key=lambda line: line["best_f1"])
    assert training["best_epoch"] == best["epoch"]
    # The threshold is that of calibrated probabilities with the best quality on the development set.
    labelled = random_pairs(DEVELOPMENT, 5, 1)
    sources, targets = lines(DEVELOPMENT.sources, 0), lines(DEVELOPMENT.targets, 1)
    result = loaded.probabilities([sources[i] for i in labelled.rows], [targets[i] for i in labelled.columns])
    quality = best_quality(result, labelled.parallel)
    assert quality.f1 == pytest.approx(best["best_f1"], abs=1e-6)
    assert loaded.thresholds["best"] == pytest.approx(quality.threshold, abs=1e-6)
    assert loaded.thresholds["half"] == 0.5
    assert 0 <= training["development"]["calibration_error"] < 0.5
    assert loaded.search_dimension == 16
    vectors = model.search_vectors(sources, "source")
    np.testing.assert_array_equal(loaded.search_vectors(sources, "source"), vectors)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_without_search_vectors_sentence_vectors_are_used(tmp_path):
    model = train_pair_classifier(PAIRS, DEVELOPMENT, settings(epochs=1, search_units=0), TrainingRun(tmp_path))
    assert (model.search, model.search_dimension) == (None, model.dimension)
    sources = lines(DEVELOPMENT.sources, 0)
    np.testing.assert_array_equal(model.search_vectors(sources, "source"), model.encode(sources, "source"))


@pytest.mark.parametrize("given", ["words", "static", "contextual"])
def test_an_interrupted_training_goes_on_bit_for_bit(tmp_path, given):
    encoder = "words" if given == "words" else f"hf:{bert_folder(tmp_path / 'bert')}"
    chosen = settings(encoder, given != "words", **({} if given == "words" else {"layer": given}))

    def stop(report):
        if report.epoch == 2:
            raise _StopError

    def stop_searching(report):
        if isinstance(report, SearchReport):
            raise _StopError

    uninterrupted = train_pair_classifier(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "whole"))
    with pytest.raises(_StopError):
        train_pair_classifier(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part", on_report=stop))
    with pytest.raises(ModelError, match="unfinished training"):
        train_pair_classifier(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part"))
    with pytest.raises(_StopError):
        train_pair_classifier(
            PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part", resume=True, on_report=stop_searching)
        )
    part = train_pair_classifier(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "part", resume=True))
    assert not (tmp_path / "part/search").exists()
    assert part.identity == uninterrupted.identity
    names = ["weights.safetensors", "training.jsonl", "config.json"]
    for file in names + ([] if given == "words" else ["encoder/model.safetensors"]):
        assert (tmp_path / "part" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_search_vectors_of_an_earlier_training_are_not_resumed(tmp_path):
    def stop_searching(report):
        if isinstance(report, SearchReport):
            raise _StopError

    def stop(report):
        raise _StopError

    run = TrainingRun(tmp_path, overwrite=True)
    with pytest.raises(_StopError):
        train_pair_classifier(PAIRS, DEVELOPMENT, settings(epochs=1), replace(run, on_report=stop_searching))
    assert (tmp_path / "search" / CHECKPOINT).exists()
    other = replace(settings(epochs=1), seed=2)
    with pytest.raises(_StopError):
        train_pair_classifier(PAIRS, DEVELOPMENT, other, replace(run, on_report=stop))
    model = train_pair_classifier(PAIRS, DEVELOPMENT, other, TrainingRun(tmp_path, resume=True))
    assert model.search is not None
    assert not (tmp_path / "search").exists()


def test_layers_of_a_tuned_encoder_have_their_own_learning_rate(tmp_path):
    """A learning rate that is right for a new network would ruin one that was trained before."""
    folder = bert_folder(tmp_path / "bert")
    rates = {}
    for layer in ("contextual", "static"):
        chosen = settings(f"hf:{folder}", True, layer=layer, learning_rate=0.01, layers_learning_rate=0.0002)
        trainer = PairClassifierTrainer(PAIRS, DEVELOPMENT, fresh_classifier(PAIRS, chosen).classifier, chosen)
        groups = trainer.learnt.optimizers[ADAM].param_groups
        rates[layer] = [(group["lr"], len(group["params"])) for group in groups]
        learnt = sum(parameter.requires_grad for parameter in trainer.module.parameters())
        assert sum(count for _, count in rates[layer]) == learnt
        next(iter(trainer.run()))
        # The schedule keeps the ratio of the learning rates.
        ratios = [group["lr"] / full for group, (full, _) in zip(groups, rates[layer], strict=True)]
        assert ratios == pytest.approx([ratios[0]] * len(ratios))
    assert [rate for rate, _ in rates["contextual"]] == [0.01, 0.0002]
    assert [rate for rate, _ in rates["static"]] == [0.01]


def test_a_tuned_encoder_changes_and_a_frozen_one_does_not(tmp_path):
    folder = bert_folder(tmp_path / "bert")
    weights = (folder / "model.safetensors").read_bytes()
    for tuned in (True, False):
        train_pair_classifier(
            PAIRS, DEVELOPMENT, settings(f"hf:{folder}", tuned, epochs=1), TrainingRun(tmp_path / "m", overwrite=True)
        )
        saved = (tmp_path / "m/encoder/model.safetensors").read_bytes()
        assert (saved != weights) == tuned


def test_a_checkpoint_of_other_texts_settings_or_encoders(tmp_path):
    def stop(report):
        raise _StopError

    folder = bert_folder(tmp_path / "bert")
    chosen = settings(f"hf:{folder}")
    with pytest.raises(_StopError):
        train_pair_classifier(PAIRS, DEVELOPMENT, chosen, TrainingRun(tmp_path / "m", on_report=stop))

    def resume(pairs=PAIRS, chosen=chosen):
        train_pair_classifier(pairs, DEVELOPMENT, chosen, TrainingRun(tmp_path / "m", resume=True))

    with pytest.raises(ModelError, match="the texts differ"):
        resume(toy_pairs(300, 3))
    with pytest.raises(ModelError, match="units was 24, not 16"):
        resume(chosen=settings(f"hf:{folder}", units=16))
    bert_folder(folder, intermediate_size=40)
    with pytest.raises(ModelError, match="the encoder's weights differ"):
        resume()


def test_what_cannot_be_trained(tmp_path, monkeypatch):
    repeated_pair = PAIRS.select(np.array([0, 0, 0]))
    assert distinct_targets(repeated_pair) == 1
    with pytest.raises(ValueError, match="1 distinct pair to learn from, expected at least two"):
        train_pair_classifier(repeated_pair, DEVELOPMENT, settings(), TrainingRun(tmp_path))
    with pytest.raises(ValueError, match="1 distinct pair in the development set"):
        train_pair_classifier(PAIRS, repeated_pair, settings(), TrainingRun(tmp_path))
    with pytest.raises(DivergedError, match="smaller learning rate"):
        train_pair_classifier(PAIRS, DEVELOPMENT, settings(learning_rate=1e30), TrainingRun(tmp_path))
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(PhraseToolError, match="make room"):
        train_pair_classifier(PAIRS, DEVELOPMENT, settings(), TrainingRun(tmp_path / "full"))


def test_a_classifier_at_chance_level_is_not_saved_silently(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHANCE", 1.1)
    with pytest.raises(DivergedError, match="model is no better than chance: the area under its curve") as caught:
        train_pair_classifier(PAIRS, DEVELOPMENT, settings(epochs=1), TrainingRun(tmp_path))
    assert caught.value.remedy == "keep a poor model"
    assert not (tmp_path / "config.json").exists()
    warnings = []
    train_pair_classifier(
        PAIRS, DEVELOPMENT, settings(epochs=1), TrainingRun(tmp_path, resume=True, force=True, warn=warnings.append)
    )
    assert "no better than chance" in warnings[0]
    assert PairClassifierModel.load(tmp_path).training["epochs_done"] == 1


FEW_PAIRS = toy_pairs(120)


def test_words_and_their_parts():
    fresh = fresh_classifier(FEW_PAIRS, PairClassifierSettings.from_options(FAST))
    assert set(fresh.vocabularies[1].words[1:]) == set(WORDS[1])
    # All source words start like `saa`, so they share these parts.
    assert set(fresh.vocabularies[2].words) >= {b"s", b"\x02s"}
    inputs = fresh.classifier.inputs
    assert [len(known) for known in fresh.vocabularies] == [
        len(rows) for rows in (inputs.source.words, inputs.target.words, inputs.source.parts, inputs.target.parts)
    ]
    assert fresh.architecture.word_units == 24
    assert fresh.encoder is None


def test_rare_words_are_unknown():
    pairs = FEW_PAIRS.select(np.arange(8))
    counts = np.bincount(pairs.sources.words, minlength=20)
    fresh = fresh_classifier(pairs, PairClassifierSettings.from_options({**FAST, "min_count": 2}))
    assert len(fresh.vocabularies[0]) == 1 + (counts >= 2).sum() < 1 + (counts >= 1).sum()


def test_initial_arrays_are_determined_by_the_seed():
    arrays = [
        fresh_classifier(FEW_PAIRS, PairClassifierSettings.from_options(FAST, seed=seed)).classifier.arrays()
        for seed in (1, 1, 2)
    ]
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])
    assert not any(np.array_equal(arrays[0][name], arrays[2][name]) for name in arrays[0])


@pytest.mark.parametrize("which", [0, 1])
def test_vectors_of_word2vec_centred_and_scaled(which):
    fresh = fresh_classifier(FEW_PAIRS, PairClassifierSettings.from_options(FAST, encoder="word2vec"))
    sentences = [[WORDS[which][i] for i in text] for text in FEW_PAIRS.sources]
    known = train_word2vec(sentences, 24, 1)
    words = fresh.vocabularies[which].words[1:]
    expected = np.array([known[word] for word in words])
    expected -= expected.mean(0)
    expected *= 0.1 / np.sqrt(np.mean(expected**2))
    inputs = (fresh.classifier.inputs.source, fresh.classifier.inputs.target)[which]
    assert np.allclose(inputs.words.detach().numpy()[1:], expected, atol=1e-5)


def test_an_encoder(tmp_path):
    folder = bert_folder(tmp_path / "bert")
    fresh = fresh_classifier(FEW_PAIRS, PairClassifierSettings.from_options(FAST, encoder=f"hf:{folder}"))
    assert fresh.vocabularies == []
    assert fresh.encoder is fresh.classifier.inputs
    assert fresh.architecture.word_units == 16
    assert not any(value.requires_grad for value in fresh.encoder.parameters())


def test_cross_entropy_of_pairs():
    logits, parallel = np.array([2.0, -1.0, 0.5]), np.array([1.0, 1.0, 0.0])
    p = 1 / (1 + np.exp(-logits))
    expected = -np.mean(parallel * np.log(p) + (1 - parallel) * np.log(1 - p))
    assert float(label_loss(torch.tensor(logits), torch.tensor(parallel))) == pytest.approx(expected)


def test_contrastive_loss_of_a_batch():
    rng = np.random.default_rng(1)
    sources, targets = rng.normal(size=(2, 4, 5))
    translations = np.eye(4, dtype=bool)
    translations[0, 2] = translations[3, 1] = True
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (sources, targets)]
    scores = unit[0] @ unit[1].T / 0.2
    losses = []
    for i in range(4):
        # Each source is contrasted with its wrong targets, and each target with its wrong sources.
        row = [scores[i, j] for j in range(4) if j == i or not translations[i, j]]
        column = [scores[j, i] for j in range(4) if j == i or not translations[j, i]]
        losses += [np.log(np.exp(row).sum()) - scores[i, i], np.log(np.exp(column).sum()) - scores[i, i]]
    arguments = [torch.tensor(array) for array in (sources, targets, translations)]
    assert float(contrastive_loss(*arguments, 0.2)) == pytest.approx(np.mean(losses))


def trainer(pairs=PAIRS, **options):
    settings = PairClassifierSettings.from_options({**FAST, **options})
    return PairClassifierTrainer(pairs, DEVELOPMENT, fresh_classifier(pairs, settings).classifier, settings)


@pytest.mark.parametrize("options", [{}, {"cell": "gru"}, {"cell": "lstm"}, {"length": "add"}, {"contrast": 0.0},
                                     {"negatives": 0}, {"containment": 0}, {"containment": 2}])  # fmt: skip
def test_all_variants_learn(options):
    reports = list(trainer(epochs=2, **options).run())
    assert [report.updates for report in reports] == [19, 38]
    assert reports[1].loss < reports[0].loss
    assert reports[1].development_loss < 3


def test_pairs_are_distinguished_from_random_and_contained_negatives():
    pair_trainer = trainer(toy_pairs(800), epochs=5)
    reports = list(pair_trainer.run())
    assert reports[-1].best_f1 > 0.85
    assert reports[-1].auc > 0.95
    assert reports[-1].contained_f1 > 0.8
    assert reports[-1].best_f1 >= reports[-1].f1
    assert pair_trainer.best["best_f1"] == max(report.best_f1 for report in reports)


def test_the_best_epoch_is_kept():
    pair_trainer = trainer()
    kept = []
    for report in pair_trainer.run():
        kept.append((report.best_f1, {name: value.clone() for name, value in pair_trainer.module.state_dict().items()}))
    best = max(kept, key=lambda pair: pair[0])[1]
    # Pretend that the last epoch was worse.
    pair_trainer.module.network.output.weight.data += 1
    result = pair_trainer.kept().state_dict()
    assert all(torch.equal(result[name], best[name]) for name in best)
    assert not pair_trainer.module.training


def test_the_loss_of_a_batch_of_two_pairs():
    """Without dropout, the loss of two pairs is that of two true and two wrong pairs, plus their contrastive loss."""
    pairs = PAIRS.select(np.array([0, 1]))
    pair_trainer = trainer(pairs, negatives=3, containment=0, dropout=0.0, hidden_words=0.0, contrast=0.5)
    loss = pair_trainer._loss(np.array([0, 1]), np.random.default_rng(1))
    module = pair_trainer.module
    sides = [
        module.encode(side, texts, pair_trainer._lexicons[side])
        for side, texts in enumerate((pairs.sources, pairs.targets))
    ]
    rows, columns = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 1, 1, 0])
    lengths = torch.from_numpy(pairs.sources.lengths)
    logits = module.network.logits(sides[0][rows], lengths[rows], sides[1][columns], lengths[columns])
    expected = label_loss(logits, torch.tensor([1.0, 1.0, 0.0, 0.0]))
    expected += 0.5 * contrastive_loss(*sides, torch.eye(2, dtype=torch.bool), 0.05)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


def test_the_learning_rate_rises_and_falls_to_zero():
    pair_trainer = trainer(epochs=2)
    rates = []
    adam = pair_trainer.learnt.optimizers[ADAM]
    step = adam.step
    adam.step = lambda: (rates.append(adam.param_groups[0]["lr"]), step())
    list(pair_trainer.run())
    assert rates[0] < 0.001
    assert 0.008 < max(rates) <= 0.01
    assert rates[-1] < 0.001
    constant = trainer(epochs=1, schedule="constant")
    list(constant.run())
    assert constant.learnt.optimizers[ADAM].param_groups[0]["lr"] == 0.01


SETTINGS = PairClassifierSettings(search_units=32, search_epochs=20)


def accuracy(trainer, texts):
    vectors = SearchVectors(trainer.vectors())
    sides = (texts.sources, texts.source_words), (texts.targets, texts.target_words)
    sources, targets = (vectors.encode(*side) for side in sides)
    nearest = np.argmax(sources @ targets.T, 1)
    return np.mean([sorted(texts.targets[i]) == sorted(texts.targets[j]) for i, j in enumerate(nearest)])


def test_search_vectors_of_translations_become_similar():
    trainer, held_out = SearchTrainer(toy_pairs(400), SETTINGS), toy_pairs(50, 2)
    before = accuracy(trainer, held_out)
    losses = [report.loss for report in trainer.run()]
    assert losses[-1] < losses[0] / 2
    assert before < 0.2
    assert accuracy(trainer, held_out) > 0.9


def test_search_vectors_are_determined_by_the_seed():
    vectors = []
    for seed in (1, 1, 2):
        trainer = SearchTrainer(toy_pairs(40), PairClassifierSettings(search_units=4, search_epochs=1, seed=seed))
        assert [report.epoch for report in trainer.run()] == [1]
        vectors.append(trainer.vectors())
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert (vectors[0] != vectors[2]).any()


def test_repeated_pairs_are_not_negatives():
    texts = Phrases.from_lists([[0, 1]] * 8)
    first, *_ = SearchTrainer(TextPairs(texts, texts, *WORDS), SETTINGS).run()
    assert first.loss == pytest.approx(0.0, abs=1e-6)
