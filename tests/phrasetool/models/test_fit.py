"""Compatibility of models with phrase pairs."""

from dataclasses import replace

import numpy as np
import pytest

from phrasetool.models.fit import FEWEST, MIN_KNOWN_SHARE, ModelCompatibility, measure_fit, mismatch_reason
from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.scoring import by_cosine
from phrasetool.phrases import Phrases
from phrasetool.ranking import CHANCE
from phrasetool.vocabulary import Vocabulary
from tests.conftest import random_parameters

RIGHT = ModelCompatibility(2000, 7000, 7000, 0.99, 0.98, 1900, 1000, 0.98)
SWAPPED = replace(RIGHT, source_known=0.44, target_known=0.12, compared=372, different=49, auc=0.6)
OTHER = replace(RIGHT, source_known=0.01, compared=40, different=9, auc=0.6)
OTHER_DOMAIN = replace(RIGHT, source_known=0.3, target_known=0.44, compared=1060, auc=0.7)


@pytest.mark.parametrize(
    ("fit", "turned", "message"),
    [
        (SWAPPED, RIGHT, "swapped: it knows 44.0% of the source's words and 12.0% of the target's, but the other way"),
        (SWAPPED, SWAPPED, "it was trained on other languages"),
        (SWAPPED, None, "it was trained on other languages"),
        (OTHER, OTHER, "it knows 1.0% of the source's words and 98.0% of the target's: it was trained on other"),
        (replace(RIGHT, auc=CHANCE - 0.01), RIGHT, "hardly better than chance"),
    ],
)
def test_incompatible_models(fit, turned, message):
    assert message in mismatch_reason(fit, lambda: turned)


@pytest.mark.parametrize(
    "fit",
    [
        RIGHT,
        OTHER_DOMAIN,
        replace(RIGHT, source_known=MIN_KNOWN_SHARE, auc=CHANCE),
        # Too few words, pairs, distinct words or other targets for a judgement.
        replace(OTHER, source_words=FEWEST - 1),
        replace(RIGHT, compared=FEWEST - 1, auc=0.5),
        replace(RIGHT, different=12, auc=0.5),
        replace(RIGHT, auc=None),
    ],
)
def test_models_that_may_be_compatible(fit):
    assert mismatch_reason(fit, lambda: OTHER) is None


def test_a_fit_is_described_only_with_enough_pairs():
    assert RIGHT.words.endswith("and ranks true pairs above random ones with AUC 0.98 (2,000 entries)")
    assert replace(RIGHT, compared=20).words is None


def test_known_words_and_pairs_by_hand():
    vocabularies = (
        Vocabulary([b"<unk>", b"das", b"haus", b",", b"rom"]),
        Vocabulary([b"<unk>", b"the", b"house", b"rom"]),
    )
    sides = random_parameters(5, 6, 1), random_parameters(4, 6, 2)
    scorer = BilingualModel(*vocabularies, *sides, Rae()).scorer()
    texts = ([b"das haus ,", b"[X] das boot 12", b",", b"rom das"], [b"the house", b"the [X][X]", b"the", b"rom the"])
    phrases = tuple(
        Phrases.from_lists([[vocabulary.id(word) for word in text.split() if word[:1] != b"["] for text in side])
        for vocabulary, side in zip(vocabularies, texts, strict=True)
    )
    fit = measure_fit(by_cosine(scorer), phrases, vocabularies, texts)
    # Of the words das, haus, das, boot, rom and das, boot is unknown; commas, numbers and labels do not count.
    assert (fit.source_words, fit.source_known) == (6, pytest.approx(5 / 6))
    assert (fit.target_words, fit.target_known) == (6, 1)
    # Commas alone, and pairs that share a name, are not compared.
    assert (fit.compared, fit.different) == (2, 2)
    assert 0 <= fit.auc <= 1


def test_auc_of_equal_words_and_of_permuted_words():
    """A model with the same vectors on both sides ranks every pair of equal words above all others."""
    words = [b"<unk>", *(b"w%d" % i for i in range(40))]
    vocabularies = Vocabulary(words), Vocabulary([words[0], *(word.upper() for word in words[1:])])
    side = random_parameters(41, 50, 1)
    arrays = side.arrays() | {
        "transform": 0.1 * np.eye(50, dtype=np.float32),
        "transform_bias": np.zeros(50, np.float32),
    }
    encoder = type(side)(**arrays)
    model = BilingualModel(*vocabularies, encoder, encoder, Rae())
    ids = Phrases.from_lists([[1 + i % 40] for i in range(400)])
    permuted = Phrases.from_lists([[1 + (i * 7 + 3) % 40] for i in range(400)])
    assert measure_fit(by_cosine(model.scorer()), (ids, ids), vocabularies).auc == 1
    assert measure_fit(by_cosine(model.scorer()), (ids, permuted), vocabularies).auc < 0.8
    assert measure_fit(by_cosine(model.scorer()), (ids, ids), vocabularies).as_dict()["compared"] == 400
