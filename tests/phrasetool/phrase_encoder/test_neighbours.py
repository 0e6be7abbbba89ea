import copy

import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.phrase_encoder.neighbours import NearestPhrases, language_of
from phrasetool.phrase_encoder.scoring import Calibration
from phrasetool.phrases import Phrases

# Word ids of the model that the tests share; 0 is the unknown word.
SOURCES = [[1], [1, 2], [2], [1], [3, 4], [], [5, 0], [2, 1]]
TARGETS = [[2, 1], [1], [0], [4, 4, 4], [1], [6]]


@pytest.fixture(scope="module")
def nearest(model):
    return NearestPhrases(model, Phrases.from_lists(SOURCES), Phrases.from_lists(TARGETS))


def naive(model, words, target, among_target, leave_out):
    """Return the distinct phrases without unknown words and their cosines, nearest first."""
    scorer = model.scorer()
    encode = {False: scorer.encode_sources, True: scorer.encode_targets}
    query = encode[target](Phrases.from_lists([words]))[int(among_target != target)][0]
    vocabulary = model.target_vocabulary if among_target else model.source_vocabulary
    cosines = {}
    for phrase in TARGETS if among_target else SOURCES:
        if phrase and 0 not in phrase and not (leave_out and phrase == words):
            vector = encode[among_target](Phrases.from_lists([phrase]))[0][0]
            cosines[vocabulary.phrase(phrase)] = float(vector @ query)
    return dict(sorted(cosines.items(), key=lambda item: -item[1]))


@pytest.mark.parametrize("target", [False, True])
@pytest.mark.parametrize("words", [[1], [2, 1], [7, 3]])
def test_the_nearest_of_both_languages(model, nearest, words, target):
    for count in (1, 3, 50):
        own, across = nearest.nearest(words, target, count)
        for neighbours, among, leave_out in ((own, target, True), (across, not target, False)):
            expected = list(naive(model, words, target, among, leave_out).items())[:count]
            assert [neighbour.text for neighbour in neighbours] == [text for text, _ in expected]
            np.testing.assert_allclose(
                [neighbour.similarity for neighbour in neighbours], [cosine for _, cosine in expected], atol=1e-6
            )


def test_similarities_of_the_other_language_are_calibrated(model):
    calibrated = copy.copy(model)
    calibrated.calibration = Calibration(-0.2, 0.3)
    sources, targets = Phrases.from_lists([[1, 2]] * 3), Phrases.from_lists([[1], [1, 3], [2]])
    own, across = NearestPhrases(calibrated, Phrases.from_lists([[1, 2], [3, 4]]), targets).nearest([1, 2], False, 3)
    expected = calibrated.scorer().score_pairs(sources, targets)[:, 0]
    assert sorted(neighbour.similarity for neighbour in across) == pytest.approx(sorted(expected.tolist()), abs=1e-6)
    (cosine,) = NearestPhrases(model, Phrases.from_lists([[1, 2], [3, 4]]), targets).nearest([1, 2], False, 3)[0]
    assert own == [cosine]


@pytest.mark.parametrize(
    ("text", "side", "language"),
    [
        (b"das haus", "auto", "source"),
        (b"the house das", "auto", "target"),
        # One word of each language.
        (b"the das", "auto", "source"),
        (b"the das", "target", "target"),
        (b"the the das", "source", "source"),
    ],
)
def test_the_language_is_the_one_that_knows_more_words(model, text, side, language):
    assert language_of(model, text, side) == language


@pytest.mark.parametrize(("text", "side", "named"), [("zebra", "auto", "source"), ("das", "target", "target")])
def test_a_phrase_without_a_known_word_is_refused(model, text, side, named):
    with pytest.raises(
        PhraseToolError, match=f"^no word of '{text}' is in the model's vocabulary of the {named} language$"
    ):
        language_of(model, text.encode(), side)
