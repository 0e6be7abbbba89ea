import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.pair_classifier import bitext_scores
from phrasetool.pair_classifier.bitext_scores import (
    ClassifiedPairs,
    ClassifierScorer,
    EncoderScorer,
    find_pair_encoder,
    load_pair_model,
    pair_encoder_of,
    without_length,
)
from tests.parallel_models import random_parallel_model, toy_lines
from tests.phrasetool.pair_classifier.pair_models import WordsInCommon
from tests.text_encoder_folders import static_folder

pytest.importorskip("torch")


class Letters:
    """Encoder of texts as counts of letters."""

    identity, dimension = "letters", 26

    def __init__(self):
        self.seen = []

    def encode(self, texts, side):
        self.seen += texts
        return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)


def test_a_classifier_scores_pairs_like_its_model():
    model = random_parallel_model()
    sources, targets = toy_lines(60)
    sources[3], targets[4] = b"", b"?!"
    result = ClassifierScorer(model)(sources, targets)
    expected = [model.probabilities([s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    assert np.flatnonzero(np.isnan(result.scores)).tolist() == [3, 4]
    assert np.nan_to_num(result.scores) == pytest.approx(np.array(expected), abs=1e-5)
    assert result.blind is None


def test_without_length_is_the_mean_over_other_lengths():
    model = random_parallel_model()
    sources, targets = toy_lines(20)
    sources[5] = b"?!"
    lengths = np.array([1, 4, 9]), np.array([2, 3, 9])
    scorer = ClassifierScorer(model, lengths)
    result = scorer(sources, targets)
    vectors = model.encode(sources, "source"), model.encode(targets, "target")
    each = [
        model.classify(vectors[0], np.full(20, first), vectors[1], np.full(20, second))
        for first, second in zip(*lengths, strict=True)
    ]
    assert np.isnan(result.blind[5])
    assert np.nan_to_num(result.blind) == pytest.approx(np.mean(each, axis=0), abs=1e-5)
    assert scorer.columns == 2
    assert scorer.signature != ClassifierScorer(model).signature


def test_each_text_is_encoded_once_and_pairs_are_scored_by_cosine():
    encoders = Letters(), Letters()
    scorer = EncoderScorer(encoders, lambda text, side: text.upper() if side else text, "letters", "signature")
    result = scorer([b"a b", b"a  b", b"", b"&amp;a"], [b"ab", b"ab", b"a", b"a"])
    assert result.scores[:2].tolist() == pytest.approx([np.nan] * 2, nan_ok=True)
    scorer = EncoderScorer(encoders, lambda text, side: text, "letters", "signature")
    encoders[0].seen.clear()
    result = scorer([b"a b", b"a  b", b"", b"&amp;a"], [b"ab", b"ac", b"a", b"a"])
    assert encoders[0].seen == ["&a", "a b"]
    assert result.scores.tolist() == pytest.approx([1, 0.5, np.nan, 1], nan_ok=True)


def test_encoders_of_different_spaces_are_refused():
    short = Letters()
    short.dimension = 3
    with pytest.raises(ModelError, match="expected equal dimensions"):
        EncoderScorer((Letters(), short), lambda text, side: text, "letters", "signature")


SOURCES = ["haus grün", "hund", "rot und grün", "nicht"]
TARGETS = ["house green", "dog", "not a dog", "red and green"]
ROWS = np.array([0, 0, 1, 2, 2, 3]), np.array([0, 1, 1, 3, 0, 2])


def classified(model, rows=ROWS):
    return ClassifiedPairs(model, (SOURCES, TARGETS), rows)


def test_each_sentence_is_encoded_once_in_any_batches(monkeypatch):
    model = WordsInCommon()
    expected = np.concatenate(list(classified(model).probabilities(np.arange(6))))
    assert sorted(model.encoded) == [("source", s) for s in sorted(SOURCES)] + [("target", t) for t in sorted(TARGETS)]
    monkeypatch.setattr(bitext_scores, "BATCH", 2)
    parts = list(classified(model).probabilities(np.arange(6)))
    assert [len(part) for part in parts] == [2, 2, 2]
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    alone = [
        model.classify(model.encode([SOURCES[s]], "source"), np.array([len(SOURCES[s].split())]),
                       model.encode([TARGETS[t]], "target"), np.array([len(TARGETS[t].split())]))[0]
        for s, t in zip(*ROWS, strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(expected, alone, rtol=1e-5)
    chosen = np.array([3, 0])
    np.testing.assert_array_equal(np.concatenate(list(classified(model).probabilities(chosen))), expected[chosen])


def test_without_length():
    chosen = np.array([0, 3, 5])
    with_length = classified(WordsInCommon())
    by_hand = np.mean([
        next(with_length.probabilities(chosen, (np.full(3, len(SOURCES[ROWS[0][o]].split())),
                                         np.full(3, len(TARGETS[ROWS[1][o]].split())))))
        for o in chosen
    ], axis=0)  # fmt: skip
    np.testing.assert_allclose(without_length(with_length, chosen), by_hand)
    blind = classified(WordsInCommon(with_length=False))
    np.testing.assert_allclose(without_length(blind, chosen), next(blind.probabilities(chosen)))
    assert len(without_length(with_length, np.zeros(0, np.int64))) == 0


@pytest.mark.parametrize("wrong", [np.array([0.5]), np.full(6, 1.5), np.full(6, np.nan)])
def test_values_that_are_not_probabilities_are_refused(wrong):
    model = WordsInCommon()
    model.classify = lambda *arguments: wrong
    with pytest.raises(ModelError, match="did not return a probability"):
        list(classified(model).probabilities(np.arange(6)))


def test_a_model_as_an_encoder():
    result = pair_encoder_of(WordsInCommon(), "m")
    source, target = result.load()
    assert source is target
    assert result.identities == ("pairs-0badcafe",) * 2
    np.testing.assert_array_equal(source.encode(["hund"], "source"), source.encode(["dog"], "target"))
    assert source.over_long(["a a a a a a a", "a"]) == 1


def test_encoders_in_folders(tmp_path):
    first = static_folder(tmp_path / "one")
    second = static_folder(tmp_path / "other", config={"normalize": False})
    result = find_pair_encoder(str(first), str(second))
    assert result.model is None
    assert result.identities[0] != result.identities[1]
    assert result.name == f"{first} and {second}"
    source, target = result.load()
    assert source.identity != target.identity
    shared = find_pair_encoder(str(first)).load()
    assert shared[0] is shared[1]
    with pytest.raises(ModelError, match="no such folder"):
        find_pair_encoder(str(tmp_path / "none"))


def test_other_models_are_not_classifiers(model_folder):
    with pytest.raises(ModelError, match="not a classifier of sentence pairs") as caught:
        load_pair_model(model_folder)
    assert caught.value.remedy == "train a classifier of sentence pairs"
