import json

import numpy as np
import pytest
import torch

from phrasetool.errors import ModelError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.pair_classifier.model import PairClassifierModel
from phrasetool.phrases import Phrases
from phrasetool.tagger.data import UPOS, feature_rows, tagger_examples
from phrasetool.tagger.model import TaggerModel, tag_accuracies, tag_accuracy, tag_scores
from phrasetool.tagger.settings import TaggerSettings, TaggerShape
from phrasetool.tagger.training import TaggerNetwork, TaggerTrainer
from tests.toy_treebanks import FAST, toy_sentences

TAGS = (*UPOS, "ADP+DET")
SHAPE = TaggerShape(31, 4, 3, 1, len(TAGS))


def tagger(languages=("de", "en"), tags=TAGS):
    return TaggerModel(languages, tags, SHAPE, TaggerNetwork(SHAPE).arrays(), {"epochs": 1})


def test_round_trip(tmp_path):
    model = tagger()
    model.save(tmp_path)
    loaded = TaggerModel.load(tmp_path)
    assert (loaded.languages, loaded.tags, loaded.shape) == (model.languages, model.tags, model.shape)
    assert loaded.training == {"epochs": 1}
    assert loaded.signature == model.signature == load_saved_model(tmp_path).signature
    assert loaded.tag([["Haus", "im"], []], "de") == model.tag([["Haus", "im"], []], "de")
    with pytest.raises(ModelError, match="a tagger; this needs a classifier of sentence pairs"):
        PairClassifierModel.load(tmp_path)


def test_unknown_languages_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown language 'fr'; the tagger knows de, en"):
        tagger().tag([["maison"]], "fr")


def test_the_identity_depends_on_weights_tags_and_languages():
    changed = tagger()
    changed.arrays["output.bias"] = changed.arrays["output.bias"] + np.float32(1)
    identities = {tagger().identity, changed.identity, tagger(("de",)).identity, tagger(tags=(*UPOS, "A+B")).identity}
    assert len(identities) == 4
    assert tagger().identity == tagger().identity


def test_invalid_parts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="17 tags, expected 18"):
        tagger(tags=UPOS)
    arrays = tagger().arrays
    arrays["output.bias"][0] = np.nan
    with pytest.raises(ValueError, match=r"output\.bias holds values that are not finite"):
        TaggerModel(["de"], TAGS, SHAPE, arrays)
    tagger().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "shape": {"units": 3}}))
    with pytest.raises(ModelError, match=r"config\.json does not describe a tagger"):
        TaggerModel.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**config, "shape": {**config["shape"], "units": 4}}))
    with pytest.raises(ModelError, match="weight_ih_l0 is float32"):
        TaggerModel.load(tmp_path)


def setting(layers, lengths, seed=1):
    rng = np.random.default_rng(seed)
    shape = TaggerShape(60, 6, 5, layers, 4)
    network = TaggerNetwork(shape, seed)
    with torch.no_grad():
        network.features.weight[1:].normal_(generator=torch.Generator().manual_seed(seed))
    rows = rng.integers(0, 60, (20, 3)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return shape, network, rows, Phrases(offsets, rng.integers(0, 20, int(offsets[-1])).astype(np.int32))


@pytest.mark.parametrize("layers", [1, 2])
def test_scores_are_those_of_torch_for_each_sentence_alone(layers):
    shape, network, rows, sentences = setting(layers, [3, 1, 0, 9, 9, 2])
    result = tag_scores(network.arrays(), shape, sentences, rows)
    assert result.dtype == np.float32
    assert result.shape == (24, 4)
    for number in range(len(sentences)):
        words = sentences[number]
        if len(words):
            with torch.no_grad():
                alone = network(torch.from_numpy(rows[words].astype(np.int64)), np.array([len(words)]))
            part = result[sentences.offsets[number] : sentences.offsets[number + 1]]
            np.testing.assert_allclose(part, alone.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_no_words_have_no_scores(lengths):
    shape, network, rows, sentences = setting(1, lengths)
    assert tag_scores(network.arrays(), shape, sentences, rows[:0]).shape == (0, 4)


def test_padding_and_neighbours_change_next_to_nothing():
    shape, network, rows, sentences = setting(1, [4, 30, 1, 8])
    whole = tag_scores(network.arrays(), shape, sentences, rows)
    for number in range(4):
        alone = Phrases(np.array([0, len(sentences[number])]), sentences[number])
        part = whole[sentences.offsets[number] : sentences.offsets[number + 1]]
        np.testing.assert_allclose(tag_scores(network.arrays(), shape, alone, rows), part, atol=1e-6)


SENTENCES = [["ein", "Haus"], [], ["Haus"], ["das", "Haus", "ist", "ein", "Haus"]]


def random_network():
    network = TaggerNetwork(SHAPE, 2)
    with torch.no_grad():
        network.features.weight[1:].normal_(std=2.0, generator=torch.Generator().manual_seed(1))
    return network


def test_each_word_has_the_tag_with_the_highest_score():
    network = random_network()
    tags_of_sentences = TaggerModel(["de"], TAGS, SHAPE, network.arrays()).tag(SENTENCES, "de")
    assert [len(tags) for tags in tags_of_sentences] == [2, 0, 1, 5]
    for words, tags in zip(SENTENCES, tags_of_sentences, strict=True):
        if words:
            rows = torch.from_numpy(feature_rows(words, "de", SHAPE.buckets).astype(np.int64))
            assert tags == [TAGS[i] for i in network(rows, np.array([len(words)])).argmax(1).tolist()]


def test_joined_tags_are_left_out_on_request():
    network = random_network()
    with torch.no_grad():
        network.output.bias[-1] = 1000
    model = TaggerModel(["de"], TAGS, SHAPE, network.arrays())
    assert {tag for tags in model.tag(SENTENCES, "de") for tag in tags} == {"ADP+DET"}
    best = TaggerModel(["de"], TAGS, SHAPE, random_network().arrays()).tag(SENTENCES, "de")
    assert "ADP+DET" not in {tag for tags in best for tag in tags}
    assert model.tag(SENTENCES, "de", joined=False) == best


def test_no_sentences():
    assert tagger().tag([], "de") == []


def test_accuracy_is_the_share_of_right_tags_word_by_word():
    banks = {language: toy_sentences(language, 30, 1) for language in ("en", "de")}
    settings = TaggerSettings(**{**FAST, "epochs": 1})
    trainer = TaggerTrainer(tagger_examples(banks, TAGS, 997), banks, TAGS, settings)
    list(trainer.run())
    model = trainer.model(["en", "de"])
    measured = tag_accuracies(model, banks)
    for language, sentences in banks.items():
        gold = [tag for sentence in sentences for tag in sentence.tags]
        for lower, accuracy in ((False, measured[language].accuracy), (True, measured[language].lower_accuracy)):
            tags = [
                tag
                for sentence in sentences
                for tag in model.tag([[w.lower() if lower else w for w in sentence.words]], language, joined=False)[0]
            ]
            assert accuracy == pytest.approx(sum(a == b for a, b in zip(tags, gold, strict=True)) / len(gold))
        assert measured[language].words == len(gold)
        shares = measured[language].by_tag
        assert set(shares) == set(gold)
        total = sum(share * gold.count(tag) for tag, share in shares.items())
        assert total == pytest.approx(measured[language].accuracy * len(gold))


def test_an_untrained_tagger_gets_one_tag_right_at_most():
    assert tag_accuracy(tagger(), toy_sentences("en", 20, 1), "en").accuracy < 0.5
