"""N-best lists, compared with the list of all derivations."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive_decoder as naive
from tests.decoder_models import naive_steps, search_options, translator_of
from tests.phrasetool.smt.decoder.decoded_examples import NO_WEIGHTS, SEEDS, check_features, close, example

ALL = 100_000


def steps_of(derivation):
    return tuple((start, end, entry.target, entry.scores, entry.reordering) for start, end, entry in derivation)


def our_steps(model, translator, sentence, found):
    return [steps_of(naive_steps(model, translator, sentence, found, d)) for d in range(len(found))]


@pytest.mark.parametrize("algorithm", ["stack", "cube"])
@settings(max_examples=60)
@given(SEEDS)
def test_all_derivations(language_models, algorithm, seed):
    model, sentence, translator, ids = example(seed, language_models, longest=4)
    expected = sorted(((naive.score(model, d), d) for d in naive.derivations(model, sentence)), key=lambda p: -p[0])
    result = translator.translate(ids, search_options(model, algorithm=algorithm), ALL, distinct=False)
    assert close(result.steps.scores.tolist(), [score for score, _ in expected])
    derivations = our_steps(model, translator, sentence, result)
    assert Counter(derivations) == Counter(steps_of(d) for _, d in expected)
    for d in range(0, len(result), 7):
        check_features(model, translator, sentence, result, d)


@settings(max_examples=60)
@given(SEEDS)
def test_distinct_translations(language_models, seed):
    model, sentence, translator, ids = example(seed, language_models, longest=4, empty=0.3)
    best = {}
    for d in naive.derivations(model, sentence):
        words, score = naive.target(d), naive.score(model, d)
        best[words] = max(best.get(words, -np.inf), score)
    result = translator.translate(ids, search_options(model), ALL)
    scores = {tuple(translator.text(result, d).split()): result.steps.scores[d] for d in range(len(result))}
    assert len(scores) == len(result)
    assert scores.keys() == best.keys()
    assert all(close(float(score), best[words]) for words, score in scores.items())
    assert np.all(np.diff(result.steps.scores) <= 1e-9)


@settings(max_examples=40)
@given(SEEDS, st.integers(2, 12), st.booleans())
def test_a_short_list_is_the_head_of_the_long_one(language_models, seed, count, distinct):
    model, _, translator, ids = example(seed, language_models)
    options = search_options(model)
    long = translator.translate(ids, options, ALL, distinct)
    short = translator.translate(ids, options, count, distinct, factor=1000)
    assert len(short) == min(count, len(long))
    assert close(short.steps.scores.tolist(), long.steps.scores[:count].tolist())
    assert np.array_equal(short.features, translator.score_steps(short.steps.offsets, np.stack(short.steps[1:4])))


def test_the_first_of_a_list_is_the_best(language_models):
    for seed in range(30):
        model, _, translator, ids = example(seed, language_models)
        options = search_options(model)
        single, several = translator.translate(ids, options), translator.translate(ids, options, 3)
        assert close(float(single.steps.scores[0]), float(several.steps.scores[0]))


def test_the_search_for_distinct_translations_ends(language_models):
    """If many derivations give one translation, the search stops after count * factor derivations."""
    entries = [naive.Entry((b"a",) * size, (b"v",) * size, (0.0,)) for size in (1, 2, 3)]
    model = naive.Model(entries, NO_WEIGHTS, language_models.kenlm[0], distortion_limit=0)
    translator, texts = translator_of(model, [[b"a"] * 8], language_models.ours[0])
    derivations = sum(1 for _ in naive.derivations(model, [b"a"] * 8))
    for count, factor, expected in [(5, 1, 5), (5, 4, 20), (ALL, 1, derivations)]:
        result = translator.translate(texts[0], search_options(model), count, distinct=False, factor=factor)
        assert len(result) == min(count, expected)
        assert len(translator.translate(texts[0], search_options(model), count, factor=factor)) == 1


def test_a_large_score_difference_keeps_its_order(language_models):
    """Copies cost 100 each, while the differences between the derivations are small."""
    model, sentence, translator, ids = example(17, language_models)
    result = translator.translate(ids, search_options(model), 50, distinct=False)
    for d in range(len(result)):
        check_features(model, translator, sentence, result, d)
