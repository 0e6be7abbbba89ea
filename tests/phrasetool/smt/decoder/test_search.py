"""Stack and cube search, compared with an exhaustive decoder."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive_decoder as naive
from tests.decoder_models import (
    random_model,
    random_sentence,
    search_options,
    translator_of,
)
from tests.phrasetool.smt.decoder.decoded_examples import NO_WEIGHTS, SEEDS, TOLERANCE, check_features, close, example


@settings(max_examples=120)
@given(SEEDS)
def test_without_pruning_both_find_the_naive_best(language_models, seed):
    model, sentence, translator, ids = example(seed, language_models)
    best = max(naive.score(model, d) for d in naive.derivations(model, sentence))
    for algorithm in ("stack", "cube"):
        result = translator.translate(ids, search_options(model, algorithm=algorithm))
        assert close(float(result.steps.scores[0]), best)
        check_features(model, translator, sentence, result)


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 6), st.sampled_from([0.0, 0.01, 0.5, 0.9]), st.integers(1, 5))
def test_with_pruning_the_derivation_is_one_of_the_model(language_models, seed, size, beam, pops):
    model, sentence, translator, ids = example(seed, language_models)
    best = max(naive.score(model, d) for d in naive.derivations(model, sentence))
    for algorithm in ("stack", "cube"):
        options = search_options(model, algorithm=algorithm, stack_size=size, beam_threshold=beam, pop_limit=pops)
        result = translator.translate(ids, options)
        check_features(model, translator, sentence, result)
        assert result.steps.scores[0] <= best + TOLERANCE


def check_long(model, translator, sentence, ids, options):
    for algorithm in ("stack", "cube"):
        result = translator.translate(ids, replace(options, algorithm=algorithm))
        check_features(model, translator, sentence, result)


@pytest.mark.parametrize("seed", range(6))
def test_sentences_longer_than_the_window(language_models, seed):
    """Sentences may have more words than a coverage window has bits, with and without a distortion limit."""
    rng = random.Random(seed)
    sentence = random_sentence(rng, rng.choice([64, 65, 100, 150]))
    model = random_model(rng, sentence[:12], language_models.kenlm[0])
    model = replace(model, distortion_limit=[-1, 6, 70][seed % 3], table_limit=20)
    # Jumps are free or rewarded, so that gaps stay open for long.
    model.weights["Distortion"] = [-0.3 if seed < 3 else 0.0]
    translator, texts = translator_of(model, [sentence], language_models.ours[0])
    check_long(model, translator, sentence, texts[0], search_options(model, stack_size=10, pop_limit=50))


def test_no_gap_stays_open_beyond_the_window(language_models):
    """Every jump is rewarded, but the limit of 63 words prevents the first word from being translated last."""
    rng = random.Random(1)
    sentence = [b"a", *[b"b"] * 90]
    model = random_model(rng, sentence, language_models.kenlm[0])
    model = replace(model, distortion_limit=-1, table_limit=1)
    model.weights = {name: [0.0] * len(values) for name, values in model.weights.items()}
    model.weights["Distortion"] = [-1.0]
    translator, texts = translator_of(model, [sentence], language_models.ours[0])
    result = translator.translate(texts[0], search_options(model, stack_size=20))
    check_features(model, translator, sentence, result)
    before = 0
    for start, end in zip(result.steps.starts.tolist(), result.steps.ends.tolist(), strict=True):
        assert end - before < 64
        if start == before:
            break


@settings(max_examples=60)
@given(SEEDS)
def test_the_sentence_end_is_not_scored_after_an_empty_phrase(language_models, seed):
    model, sentence, translator, ids = example(seed, language_models, longest=3, empty=0.9)
    result = {algorithm: translator.translate(ids, search_options(model, algorithm=algorithm))
              for algorithm in ("stack", "cube")}  # fmt: skip
    best = max(naive.score(model, d) for d in naive.derivations(model, sentence))
    for translation in result.values():
        assert close(float(translation.steps.scores[0]), best)
        check_features(model, translator, sentence, translation)


def test_an_empty_translation_scores_no_words(language_models):
    entries = [naive.Entry((b"a",), (), (0.0,))]
    weights = {**NO_WEIGHTS, "LM": [1.0], "WordPenalty": [1.0], "PhrasePenalty": [0.5]}
    model = naive.Model(entries, weights, language_models.kenlm[0])
    translator, texts = translator_of(model, [[b"a", b"a"]], language_models.ours[0])
    result = translator.translate(texts[0], search_options(model))
    assert translator.text(result) == b""
    assert result.features.tolist() == [[0, 0, 0, 2, 0]]
    assert result.steps.scores.tolist() == [1.0]


def spans_allowed(limit, length):
    """Return the orders of `length` single words within the distortion limit, by the naive decoder."""
    return {
        tuple(start for start, _, _ in d)
        for d in naive.derivations(single_words(limit, length), [b"%d" % i for i in range(length)])
    }


def single_words(limit, length):
    entries = [naive.Entry((b"%d" % i,), (b"v",), (0.0,)) for i in range(length)]
    return naive.Model(entries, NO_WEIGHTS, distortion_limit=limit)


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4])
def test_distortion_limit(language_models, limit):
    model = replace(single_words(limit, 5), language_model=language_models.kenlm[0])
    sentence = [b"%d" % i for i in range(5)]
    translator, texts = translator_of(model, [sentence], language_models.ours[0])
    for algorithm in ("stack", "cube"):
        options = search_options(model, algorithm=algorithm)
        result = translator.translate(texts[0], options, 1000, distinct=False, factor=1000)
        orders = {
            tuple(result.steps.starts[first:last].tolist())
            for first, last in zip(result.steps.offsets, result.steps.offsets[1:], strict=False)
        }
        assert len(orders) == len(result)
        assert orders == spans_allowed(limit, 5)
    # Consequences of Moses' two conditions for single words.
    assert ((1, 0, 2, 3, 4) in orders) == (limit < 0 or limit >= 2)
    assert ((2, 0, 1, 3, 4) in orders) == (limit < 0 or limit >= 3)
    assert (0, 1, 2, 3, 4) in orders
    if limit == 0:
        assert len(orders) == 1
    if limit < 0:
        assert len(orders) == 120


def test_a_stack_of_one_still_translates(language_models):
    model, sentence, translator, ids = example(5, language_models)
    for algorithm in ("stack", "cube"):
        result = translator.translate(ids, search_options(model, algorithm=algorithm, stack_size=1, pop_limit=1), 5)
        check_features(model, translator, sentence, result)
        assert np.all(np.diff(result.steps.scores) <= TOLERANCE)
