import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.pair_classifier.pair_judges import ClassifierJudge, EncoderJudge
from tests.parallel_models import random_parallel_model, toy_lines

pytest.importorskip("torch")


class Letters:
    """Counts of letters."""

    identity, dimension = "letters", 26

    def __init__(self):
        self.seen = []

    def encode(self, texts, side):
        self.seen += texts
        return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)


def test_a_classifier_says_what_its_model_says_of_each_pair():
    model = random_parallel_model()
    sources, targets = toy_lines(60)
    sources[3], targets[4] = b"", b"?!"
    found = ClassifierJudge(model)(sources, targets)
    expected = [model.probabilities([s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    assert np.flatnonzero(np.isnan(found.scores)).tolist() == [3, 4]
    assert np.nan_to_num(found.scores) == pytest.approx(np.array(expected), abs=1e-5)
    assert found.blind is None


def test_without_length_is_the_mean_over_other_lengths():
    model = random_parallel_model()
    sources, targets = toy_lines(20)
    sources[5] = b"?!"
    lengths = np.array([1, 4, 9]), np.array([2, 3, 9])
    judge = ClassifierJudge(model, lengths)
    found = judge(sources, targets)
    vectors = model.encode(sources, "source"), model.encode(targets, "target")
    each = [
        model.classify(vectors[0], np.full(20, first), vectors[1], np.full(20, second))
        for first, second in zip(*lengths, strict=True)
    ]
    assert np.isnan(found.blind[5])
    assert np.nan_to_num(found.blind) == pytest.approx(np.mean(each, axis=0), abs=1e-5)
    assert judge.columns == 2
    assert judge.signature != ClassifierJudge(model).signature


def test_an_encoder_sees_each_text_once_and_gives_cosines():
    encoders = Letters(), Letters()
    judge = EncoderJudge(encoders, lambda text, side: text.upper() if side else text, "letters", "signature")
    found = judge([b"a b", b"a  b", b"", b"&amp;a"], [b"ab", b"ab", b"a", b"a"])
    assert found.scores[:2].tolist() == pytest.approx([np.nan] * 2, nan_ok=True)
    judge = EncoderJudge(encoders, lambda text, side: text, "letters", "signature")
    encoders[0].seen.clear()
    found = judge([b"a b", b"a  b", b"", b"&amp;a"], [b"ab", b"ac", b"a", b"a"])
    assert encoders[0].seen == ["&a", "a b"]
    assert found.scores.tolist() == pytest.approx([1, 0.5, np.nan, 1], nan_ok=True)


def test_encoders_of_two_spaces_are_refused():
    short = Letters()
    short.dimension = 3
    with pytest.raises(ModelError, match="expected one space"):
        EncoderJudge((Letters(), short), lambda text, side: text, "letters", "signature")
