import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.language_model.automaton import LanguageModel, NgramError, build_automaton
from phrasetool.smt.language_model.ngrams import BackoffModel, NgramTable
from tests.phrasetool.smt.language_model.naive import VOCABULARY, histories, models, ngrams_of, score
from tests.scored_words import score_sentence, score_words


def follow(model, words, state):
    scores, state = score_words(model, words, state)
    return scores.tolist(), state


@given(models(), histories(), st.booleans())
def test_every_word_is_scored_by_the_definition(model, history, begins):
    language_model = LanguageModel(model)
    ngrams = ngrams_of(model)
    state = language_model.begin_state if begins else 0
    result, _ = follow(language_model, [*history, 2], state)
    context = (1,) if begins else ()
    for word, value in zip([*history, 2], result, strict=True):
        kept = context[max(len(context) - (model.order - 1), 0) :]
        assert value == pytest.approx(score(ngrams, kept, word), abs=1e-5)
        context = (*context, word)


def meaning(ngrams, order, history):
    """Return the longest suffix of a history that matters: one with a back-off, or that begins a longer n-gram."""
    for start in range(max(len(history) - order + 1, 0), len(history)):
        suffix = tuple(history[start:])
        if suffix in ngrams and (ngrams[suffix][1] != 0 or any(g[:-1] == suffix for g in ngrams if len(g) > 1)):
            return suffix
    return ()


@given(models(min_order=2), histories(), histories())
def test_states_are_minimal(model, first, second):
    language_model = LanguageModel(model)
    ngrams = ngrams_of(model)
    states = [follow(language_model, history, language_model.begin_state)[1] for history in (first, second)]
    meanings = [meaning(ngrams, model.order, [1, *history]) for history in (first, second)]
    assert (states[0] == states[1]) == (meanings[0] == meanings[1])


@given(models(), histories(4), histories(4))
def test_scoring_in_parts_equals_scoring_at_once(model, first, second):
    language_model = LanguageModel(model)
    scores, state = follow(language_model, first, language_model.begin_state)
    more, end = follow(language_model, second, state)
    assert follow(language_model, first + second, language_model.begin_state) == (scores + more, end)


def unigrams(count):
    return NgramTable(
        np.arange(count, dtype=np.int32)[:, None], np.full(count, -1, np.float32), np.zeros(count, np.float32)
    )


def pairs(*rows):
    words = np.array(rows, np.int32).reshape(len(rows), -1)
    return NgramTable(words, np.full(len(rows), -0.5, np.float32), np.zeros(len(rows), np.float32))


def test_words_and_sentences():
    model = LanguageModel(BackoffModel(VOCABULARY, [unigrams(6), pairs((1, 3), (3, 2), (0, 0))]))
    assert model.end_word == 2
    assert model.ids([b"a", b"zzz", b"b"]).tolist() == [3, 0, 4]
    assert score_sentence(model, [b"a"]).sum() == pytest.approx(-1.0)
    assert score_sentence(model, []).sum() == pytest.approx(-1.0)
    assert score_sentence(model, [b"x", b"y"]).sum() == pytest.approx(-2.5)


def test_scores_of_many_arcs():
    generator = np.random.default_rng(5)
    rows = np.unique(generator.integers(0, 300, (20000, 2)), axis=0).astype(np.int32)
    generator.shuffle(rows)
    scores = -generator.random(len(rows)).astype(np.float32)
    words = [b"<unk>", b"<s>", b"</s>", *(b"w%d" % i for i in range(297))]
    table = NgramTable(rows, scores, np.zeros(len(rows), np.float32))
    model = LanguageModel(BackoffModel(words, [unigrams(300), table]))
    known = {tuple(row): value for row, value in zip(rows.tolist(), scores.tolist(), strict=True)}
    for first in range(300):
        _, state = follow(model, [first], 0)
        for second in range(0, 300, 7):
            assert follow(model, [second], state)[0][0] == known.get((first, second), -1.0)


def test_wrong_ngrams_are_named():
    with pytest.raises(NgramError, match="the first 2 words of this 3-gram are not listed as a 2-gram") as error:
        build_automaton([unigrams(6), pairs((3, 4)), pairs((3, 4, 5), (3, 3, 3))])
    assert (error.value.order, error.value.row) == (3, 1)
    with pytest.raises(NgramError, match="this 2-gram occurs twice") as error:
        build_automaton([unigrams(6), pairs((3, 4), (4, 3), (3, 4))])
    assert (error.value.order, error.value.row) == (2, 2)


def test_a_model_without_markers():
    with pytest.raises(ValueError, match="has no </s>"):
        LanguageModel(BackoffModel([b"<unk>", b"<s>"], [unigrams(2)]))
