"""Selection of the entries of each source phrase, and the scores that are computed before the search."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.smt.decoder.stack_search import score_option
from phrasetool.smt.decoder.translation_options import TranslationOptions
from tests import naive_decoder as naive
from tests.decoder_models import (
    TARGET,
    UNKNOWN,
    entries_in_order,
    random_entries,
    random_model,
    random_sentence,
    translator_of,
    weight_vector,
)
from tests.scored_words import score_words

SEEDS = st.integers(0, 2**32 - 1)


def crowded_model(seed, language_models):
    """Return a model in which some sources have dozens of entries, a sentence and a language model."""
    rng = random.Random(seed)
    number = rng.randrange(len(language_models.ours))
    sentence = random_sentence(rng, 4)
    model = random_model(rng, sentence, language_models.kenlm[number], tables=rng.choice([1, 2]))
    orientations = 0
    if model.kind:
        orientations = naive.ORIENTATIONS[model.kind] * len(model.directions)
    for _ in range(rng.choice([0, 3, 12])):
        model.entries += random_entries(rng, sentence, model.tables, orientations)
    return model, sentence, language_models.ours[number]


def chosen(model, translator, sentence):
    """Return the options of each source, as entries."""
    options, entries = translator.options, entries_in_order(model)
    entries_by_source = {}
    for source in range(len(translator.table.first) - 1):
        first, last = translator.table.index.offsets[source : source + 2]
        words = tuple(translator.table.source_symbols.words[w] for w in translator.table.index.words[first:last])
        numbers = options.entries[options.first[source] : options.first[source + 1]].tolist()
        entries_by_source[words] = [entries[n] if n < len(entries) else model.known(words)[0] for n in numbers]
    return entries_by_source


@settings(max_examples=60)
@given(SEEDS)
def test_options_are_the_best_entries_within_the_table_limit(language_models, seed):
    model, sentence, language_model = crowded_model(seed, language_models)
    translator, _ = translator_of(model, [sentence], language_model)
    result = chosen(model, translator, sentence)
    assert result.keys() == {entry.source for entry in model.entries} | {
        (word,) for word in sentence if not any(entry.source == (word,) for entry in model.entries)
    }
    for words, options in result.items():
        # Scores are compared because entries with equal scores may be in another order.
        expected = sorted(map(model.isolated, model.options(words)), reverse=True)
        assert list(map(model.isolated, options)) == pytest.approx(expected, rel=1e-5, abs=1e-4)


@settings(max_examples=40)
@given(SEEDS)
def test_scores_of_options(language_models, seed):
    model, sentence, language_model = crowded_model(seed, language_models)
    translator, _ = translator_of(model, [sentence], language_model)
    options, entries = translator.options, entries_in_order(model)
    for k, number in enumerate(options.entries.tolist()):
        if number >= len(entries):
            continue
        assert options.static[k] == pytest.approx(model.static(entries[number]), rel=1e-5, abs=1e-4)
        assert options.isolated[k] == pytest.approx(model.isolated(entries[number]), rel=1e-5, abs=1e-4)


@settings(max_examples=40)
@given(SEEDS, st.lists(st.sampled_from([*TARGET, UNKNOWN]), max_size=4))
def test_language_model_scores_of_options_after_any_context(language_models, seed, context):
    """The scores include the shortcut for words whose context no longer matters."""
    model, sentence, language_model = crowded_model(seed, language_models)
    translator, _ = translator_of(model, [sentence], language_model)
    for begin in (language_model.begin_state, 0):
        _, state = score_words(language_model, language_model.ids(context), begin)
        for k in range(0, len(translator.options.entries), 3):
            first, last = translator.options.word_offsets[k : k + 2]
            scores, end = score_words(language_model, translator.options.words[first:last], state)
            total, result = score_option(language_model.automaton, translator.options, k, state)
            assert (total, result) == (pytest.approx(float(scores.sum()), abs=1e-5), end)


@settings(max_examples=40)
@given(SEEDS)
def test_forward_classes_are_equal_where_forward_scores_are(language_models, seed):
    model, sentence, language_model = crowded_model(seed, language_models)
    options = translator_of(model, [sentence], language_model)[0].options
    rows = [tuple(row) for row in options.forward.tolist()]
    for i in range(0, len(rows), 3):
        for j in range(len(rows)):
            assert (rows[i] == rows[j]) == (options.forward_classes[i] == options.forward_classes[j])


def test_changed_weights_give_the_same_options_as_loading_again(language_models):
    model, sentence, language_model = crowded_model(3, language_models)
    translator, _ = translator_of(model, [sentence], language_model)
    changed = replace(model, weights={name: [w + 0.25 for w in values] for name, values in model.weights.items()})
    expected = translator_of(changed, [sentence], language_model)[0].options
    result = translator.with_weights(weight_vector(changed)).options
    for name in TranslationOptions._fields:
        assert np.array_equal(getattr(result, name), getattr(expected, name)), name


def test_the_earlier_entry_wins_a_tie(language_models):
    entries = [naive.Entry((b"a",), (word,), (0.0,)) for word in (b"v", b"w", b"x")]
    weights = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel")}
    for limit, expected in [(0, [0, 1, 2]), (1, [0]), (2, [0, 1]), (20, [0, 1, 2])]:
        model = naive.Model(entries, weights, language_models.kenlm[0], table_limit=limit)
        assert translator_of(model, [[b"a"]], language_models.ours[0])[0].options.entries.tolist() == expected


def test_weights_must_fit(language_models):
    model, sentence, language_model = crowded_model(3, language_models)
    translator, _ = translator_of(model, [sentence], language_model)
    with pytest.raises(ValueError, match="weights for"):
        translator.with_weights(weight_vector(model)[:-1])
