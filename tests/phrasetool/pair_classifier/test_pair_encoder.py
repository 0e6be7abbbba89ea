"""Models of sentence pairs: each sentence encoded once, probabilities checked, encoders found in folders."""

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.pair_classifier import pair_encoder
from phrasetool.pair_classifier.pair_encoder import (
    ClassifiedPairs,
    find_pair_encoder,
    load_pair_model,
    pair_encoder_of,
    without_length,
)
from tests.phrasetool.pair_classifier.pair_models import WordsInCommon
from tests.text_encoder_folders import static_folder

SOURCES = ["haus grün", "hund", "rot und grün", "nicht"]
TARGETS = ["house green", "dog", "not a dog", "red and green"]
ROWS = np.array([0, 0, 1, 2, 2, 3]), np.array([0, 1, 1, 3, 0, 2])


def classified(model, rows=ROWS):
    return ClassifiedPairs(model, (SOURCES, TARGETS), rows)


def test_each_sentence_is_encoded_once_in_any_batches(monkeypatch):
    model = WordsInCommon()
    whole = np.concatenate(list(classified(model).probabilities(np.arange(6))))
    assert sorted(model.encoded) == [("source", s) for s in sorted(SOURCES)] + [("target", t) for t in sorted(TARGETS)]
    monkeypatch.setattr(pair_encoder, "BATCH", 2)
    parts = list(classified(model).probabilities(np.arange(6)))
    assert [len(part) for part in parts] == [2, 2, 2]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    alone = [
        model.classify(model.encode([SOURCES[s]], "source"), np.array([len(SOURCES[s].split())]),
                       model.encode([TARGETS[t]], "target"), np.array([len(TARGETS[t].split())]))[0]
        for s, t in zip(*ROWS, strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(whole, alone, rtol=1e-5)
    chosen = np.array([3, 0])
    np.testing.assert_array_equal(np.concatenate(list(classified(model).probabilities(chosen))), whole[chosen])


def test_without_length():
    chosen = np.array([0, 3, 5])
    seen = classified(WordsInCommon())
    by_hand = np.mean([
        next(seen.probabilities(chosen, (np.full(3, len(SOURCES[ROWS[0][o]].split())),
                                         np.full(3, len(TARGETS[ROWS[1][o]].split())))))
        for o in chosen
    ], axis=0)  # fmt: skip
    np.testing.assert_allclose(without_length(seen, chosen), by_hand)
    blind = classified(WordsInCommon(with_length=False))
    np.testing.assert_allclose(without_length(blind, chosen), next(blind.probabilities(chosen)))
    assert len(without_length(seen, np.zeros(0, np.int64))) == 0


@pytest.mark.parametrize("wrong", [np.array([0.5]), np.full(6, 1.5), np.full(6, np.nan)])
def test_what_is_no_probability_is_refused(wrong):
    model = WordsInCommon()
    model.classify = lambda *arguments: wrong
    with pytest.raises(ModelError, match="something else than a probability"):
        list(classified(model).probabilities(np.arange(6)))


def test_a_model_as_an_encoder():
    found = pair_encoder_of(WordsInCommon(), "m")
    source, target = found.load()
    assert source is target
    assert found.identities == ("pairs-0badcafe",) * 2
    np.testing.assert_array_equal(source.encode(["hund"], "source"), source.encode(["dog"], "target"))
    assert source.over_long(["a a a a a a a", "a"]) == 1


def test_encoders_in_folders(tmp_path):
    one = static_folder(tmp_path / "one")
    other = static_folder(tmp_path / "other", config={"normalize": False})
    found = find_pair_encoder(str(one), str(other))
    assert found.model is None
    assert found.identities[0] != found.identities[1]
    assert found.name == f"{one} and {other}"
    source, target = found.load()
    assert source.identity != target.identity
    same = find_pair_encoder(str(one)).load()
    assert same[0] is same[1]
    with pytest.raises(ModelError, match="no such folder"):
        find_pair_encoder(str(tmp_path / "none"))


def test_another_model_is_no_classifier(model_folder):
    with pytest.raises(ModelError, match="no classifier of sentence pairs") as caught:
        load_pair_model(model_folder)
    assert caught.value.remedy == "train a classifier of sentence pairs"
