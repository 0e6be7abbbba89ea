"""Models and sentences for the naive decoder, and a check of translations."""

import random

import pytest
from hypothesis import strategies as st

from tests import naive_decoder as naive
from tests.decoder_models import (
    naive_steps,
    random_model,
    random_sentence,
    translator_of,
)

SEEDS = st.integers(0, 2**32 - 1)
TOLERANCE = 1e-4
NO_WEIGHTS = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel")}


def example(seed, language_models, longest=5, empty=0.1):
    """Return a model, a sentence, its translator and the sentence in ids of the translator."""
    rng = random.Random(seed)
    number = rng.randrange(len(language_models.ours))
    sentence = random_sentence(rng, rng.randint(1, longest))
    model = random_model(rng, sentence, language_models.kenlm[number], empty)
    translator, texts = translator_of(model, [sentence], language_models.ours[number])
    return model, sentence, translator, texts[0]


def close(found, expected):
    return found == pytest.approx(expected, rel=1e-5, abs=TOLERANCE)


def check_features(model, translator, sentence, translation, derivation=0):
    """Check that the derivation is valid for the model, and its features and score against the naive decoder."""
    steps = naive_steps(model, translator, sentence, translation, derivation)
    assert naive.is_within_limit(steps, model.distortion_limit)
    naive.jumps(steps, len(sentence))
    values = naive.features(model, steps)
    expected = [value for name in translator.features.sizes for value in values[name]]
    assert close(translation.features[derivation].tolist(), expected)
    assert close(float(translation.steps.scores[derivation]), naive.score(model, steps))
