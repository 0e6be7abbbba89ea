"""Two phrase tables and two language models, one a binary kenlm file, compared with an exhaustive decoder."""

import random
from pathlib import Path

import kenlm
import pytest
from hypothesis import given, settings

from moses_compat.engine.language_models import load_language_models
from tests import naive_decoder as naive
from tests.decoder_models import (
    TARGET,
    UNKNOWN,
    random_model,
    random_sentence,
    search_options,
    translator_of,
)
from tests.phrasetool.smt.decoder.decoded_examples import SEEDS, check_features, close

BINARY = Path(__file__).parents[3] / "golden/kenlm/model.probing"


@pytest.fixture(scope="module")
def two(language_models):
    """Return the models as loaded by kenlm, and by phrasetool."""
    paths = [str(BINARY), str(language_models.paths[1])]
    return [kenlm.Model(path) for path in paths], load_language_models(paths, [*TARGET, UNKNOWN, b"a", b"b", b"c"])


def several(seed, two, longest=5, empty=0.1):
    rng = random.Random(seed)
    sentence = random_sentence(rng, rng.randint(1, longest))
    model = random_model(rng, sentence, two[0], empty, tables=2)
    translator, texts = translator_of(model, [sentence], two[1])
    return model, sentence, translator, texts[0]


@settings(max_examples=60)
@given(SEEDS)
def test_without_pruning_both_searches_find_the_naive_best(two, seed):
    model, sentence, translator, ids = several(seed, two)
    best = max(naive.score(model, d) for d in naive.derivations(model, sentence))
    for algorithm in ("stack", "cube"):
        result = translator.translate(ids, search_options(model, algorithm=algorithm))
        assert close(float(result.steps.scores[0]), best)
        check_features(model, translator, sentence, result)


@settings(max_examples=30)
@given(SEEDS)
def test_n_best_lists_are_complete(two, seed):
    model, sentence, translator, ids = several(seed, two, 3)
    scores = sorted((naive.score(model, d) for d in naive.derivations(model, sentence)), reverse=True)
    result = translator.translate(ids, search_options(model), 2000, distinct=False)
    assert close(result.steps.scores.tolist(), scores[: len(result)])
    assert len(result) == min(len(scores), 2000)
    for d in range(min(len(result), 30)):
        check_features(model, translator, sentence, result, d)


def test_many_states(two):
    """More states than the initial memory holds do not change the result, in sentences longer than a window."""
    rng = random.Random(5)
    sentence = random_sentence(rng, 90)
    model = random_model(rng, sentence[:20], two[0], tables=2)
    translator, texts = translator_of(model, [sentence], two[1])
    for algorithm in ("stack", "cube"):
        options = search_options(model, algorithm=algorithm, stack_size=300, pop_limit=3000)
        roomy = translator.translate(texts[0], options, 5)
        check_features(model, translator, sentence, roomy)
        narrow = translator.with_weights(translator.weights)
        narrow._room = 1
        result = narrow.translate(texts[0], options, 5)
        assert narrow._room > 10
        assert result.steps.scores.tolist() == roomy.steps.scores.tolist()
