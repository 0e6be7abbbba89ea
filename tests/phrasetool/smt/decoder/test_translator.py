import math
import random

import numpy as np
import pytest

from phrasetool.smt.decoder.hypotheses import longest_jump
from phrasetool.smt.decoder.translator import SearchOptions, Translator
from tests import naive_decoder as naive
from tests.decoder_models import (
    feature_set,
    random_model,
    random_sentence,
    search_options,
    table_of,
    translator_of,
    weight_vector,
)
from tests.phrasetool.smt.decoder.decoded_examples import check_features, example


@pytest.fixture(scope="module")
def text_model(language_models):
    """Return one model and many sentences, some of them empty, with a translator and the sentences in its ids."""
    rng = random.Random(2)
    sentences = [random_sentence(rng, rng.choice([0, 1, 2, 5, 9, 20])) for _ in range(25)]
    model = random_model(rng, sentences[4] + sentences[5], language_models.kenlm[1])
    return model, sentences, *translator_of(model, sentences, language_models.ours[1])


@pytest.mark.parametrize("n_best", [1, 7])
@pytest.mark.parametrize("algorithm", ["stack", "cube"])
def test_threads_do_not_change_translations(text_model, algorithm, n_best):
    model, sentences, translator, texts = text_model
    options = search_options(model, algorithm=algorithm, stack_size=50, pop_limit=100)
    alone = list(translator.translate_all(texts, options, n_best))
    shared = list(translator.translate_all(texts, options, n_best, threads=2))
    assert len(alone) == len(sentences)
    for single, threaded, sentence in zip(alone, shared, sentences, strict=True):
        for a, b in zip((*single.steps, single.features), (*threaded.steps, threaded.features), strict=True):
            assert np.array_equal(a, b)
        check_features(model, translator, sentence, single)


def test_an_empty_sentence(text_model):
    model, _, translator, _ = text_model
    for n_best in (1, 5):
        result = translator.translate(np.zeros(0, np.int32), search_options(model), n_best)
        assert len(result) == 1
        assert translator.text(result) == b""
        assert result.steps.scores.tolist() == [0]
        assert not result.features.any()


def test_the_text_of_a_derivation(language_models):
    model, sentence, translator, ids = example(8, language_models)
    result = translator.translate(ids, search_options(model), 10)
    for d in range(len(result)):
        first, last = result.steps.offsets[d : d + 2]
        words = [w for e in result.steps.entries[first:last] for w in translator.table.targets[e]]
        assert translator.words(result, d).tolist() == words
        assert translator.text(result, d) == b" ".join(translator.table.target_symbols.words[w] for w in words)
        check_features(model, translator, sentence, result, d)


def test_unknown_words_are_copied_and_cost_a_hundred_each(language_models):
    entries = [naive.Entry((b"a",), (b"v",), (0.0,)), naive.Entry((b"b", b"c"), (b"w",), (0.0,))]
    weights = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel")}
    model = naive.Model(entries, weights, language_models.kenlm[0], distortion_limit=0, unknown_weight=0.5)
    translator, texts = translator_of(model, [[b"a", b"b", b"c", b"q"], [b"b", b"a"]], language_models.ours[0])
    first, second = translator.translate_all(texts, search_options(model))
    # `b` and `c` are unknown, except where the longer phrase matches.
    assert translator.text(first) == b"v w q"
    assert translator.text(second) == b"b v"
    assert first.steps.scores.tolist() == second.steps.scores.tolist() == [-50]
    assert translator.features.slices["TranslationModel"] == slice(4, 5)
    assert first.features.tolist()[0][3:] == [3, 0]


def test_a_word_that_the_table_was_not_loaded_for(text_model):
    model, _, translator, _ = text_model
    with pytest.raises(ValueError, match="not among"):
        translator.translate(np.array([0, -1], np.int32), search_options(model))


def test_a_word_without_any_option(language_models):
    model = naive.Model([naive.Entry((b"a",), (b"v",), (0.0,))], {
        name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel")
    }, language_models.kenlm[0])  # fmt: skip
    table, _ = table_of(model, [[b"a"]])
    number = table.source_symbols.add(b"new")
    translator = Translator(table, language_models.ours[0], feature_set(model), weight_vector(model))
    for algorithm in ("stack", "cube"):
        with pytest.raises(ValueError, match="no derivation"):
            translator.translate(np.array([0, number], np.int32), SearchOptions(algorithm))


def test_the_table_limit_must_be_that_of_the_translator(text_model):
    model, _, translator, texts = text_model
    with pytest.raises(ValueError, match="table limit"):
        translator.translate(texts[0], SearchOptions(table_limit=model.table_limit + 1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"algorithm": "beam"}, {"stack_size": 0}, {"pop_limit": 0}, {"table_limit": -1}, {"beam_threshold": -0.1},
        {"beam_threshold": 1.5}, {"beam_threshold": math.nan},
    ],
)  # fmt: skip
def test_options_out_of_range(wrong):
    with pytest.raises(ValueError):
        SearchOptions(**wrong)


def test_values_derived_from_options():
    assert [longest_jump(limit) for limit in (-1, 0, 6, 63, 64)] == [63, 0, 6, 63, 63]
    assert SearchOptions().beam == pytest.approx(-11.5129, abs=1e-4)
    assert SearchOptions(beam_threshold=0).beam == -math.inf
