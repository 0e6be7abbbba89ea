import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.errors import LengthError
from phrasetool.phrases import Phrases
from phrasetool.translator import decoding
from phrasetool.translator.decoding import (
    TranslatedSentence,
    list_scores,
    log_probabilities,
    max_output_lengths,
    n_best_translations,
    nearest_words,
    pair_order,
    pair_scores,
    remove_repetitions,
    replace_unknown_words,
    translate,
)
from phrasetool.translator.network import padded_targets
from tests.naive_translator import NaiveTranslator, unit
from tests.neural_models import random_translator
from tests.phrasetool.translator.small_translators import EVEN, KINDS, sentences, small
from tests.table_translators import naive_score, translator

TEMPERATURE = 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_beam_finds_the_best_of_all_translations(kind, monkeypatch):
    monkeypatch.setattr(decoding, "max_output_lengths", lambda lengths: np.full(len(lengths), 3))
    module = small(kind, target_words=3)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 4)
    # The beam has room for all prefixes, so no hypothesis is lost.
    for source, translation in zip(sources, translate(module, sources, TEMPERATURE, 40), strict=True):
        score, words = naive.best(source.tolist(), TEMPERATURE, 3)
        assert translation.words == words
        assert translation.score == pytest.approx(score, abs=1e-5)


def test_the_best_translations_in_order(monkeypatch):
    monkeypatch.setattr(decoding, "max_output_lengths", lambda lengths: np.full(len(lengths), 3))
    module = small("gru", target_words=3)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 4)
    everything = [words for length in range(4) for words in itertools.product(range(3), repeat=length)]
    # The beam has room for all prefixes, so no hypothesis is lost.
    for source, translations in zip(sources, n_best_translations(module, sources, TEMPERATURE, 9, 40), strict=True):
        scores = {words: naive.score(source.tolist(), list(words), TEMPERATURE) for words in everything}
        expected = sorted(everything, key=lambda words: -scores[words] / (len(words) + 1))[:9]
        assert [translation.words for translation in translations] == expected
        assert [t.log_probability for t in translations] == pytest.approx(
            [scores[words] for words in expected], abs=1e-5
        )
    assert translate(module, sources, TEMPERATURE, 40) == [
        translations[0] for translations in n_best_translations(module, sources, TEMPERATURE, 2, 40)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_takes_the_nearest_word_at_every_step(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(5, 8, 3)
    for source, translation in zip(sources, translate(module, sources, TEMPERATURE), strict=True):
        words = []
        while len(words) < 2 * len(source) + 5:
            best = int(naive.log_probabilities(source.tolist(), words, TEMPERATURE).argmax())
            if best == module.end:
                break
            words.append(best)
        assert translation.words == tuple(words)
        attended = [int(naive.predict(source.tolist(), words[:i])[1].argmax()) for i in range(len(words))]
        assert translation.attended == tuple(attended)
        expected = naive.score(source.tolist(), words, TEMPERATURE) / (len(words) + 1)
        assert translation.score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru", "transformer"])
@pytest.mark.parametrize("width", [1, 3])
def test_other_sentences_and_threads_change_no_bit(kind, width):
    module = small(kind, 30, 40, sizes=EVEN)
    sources = sentences(45, 30, 5)
    expected = translate(module, sources, TEMPERATURE, width)
    assert translate(module, sources, TEMPERATURE, width, threads=2) == expected
    order = np.random.default_rng(1).permutation(45)
    assert translate(module, sources.select(order), TEMPERATURE, width) == [expected[i] for i in order]
    for i in (0, 20, 44):
        assert translate(module, sources.part(i, i + 1), TEMPERATURE, width) == [expected[i]]


def test_only_candidates_are_used():
    module = small("gru", 8, 20)
    sources = sentences(6, 8, 4)
    candidates = [np.array([i + 1, i + 2]) for i in range(6)]
    result = translate(module, sources, TEMPERATURE, 2, candidates)
    assert any(translation.words for translation in result)
    for i, translation in enumerate(result):
        assert set(translation.words) <= {i + 1, i + 2}
    everything = [np.arange(20)] * 6
    assert translate(module, sources, TEMPERATURE, 2, everything) == translate(module, sources, TEMPERATURE, 2)


def test_a_wider_beam_is_better_on_average_and_threads_are_restored():
    module = small("gru", 8, 20, seed=5, scale=8.0)
    before = torch.get_num_threads()
    ticks = []
    means = [
        np.mean([t.score for t in translate(module, sentences(20, 8, 4), 0.02, width, tick=ticks.append)])
        for width in (1, 8)
    ]
    assert means[0] < means[1]
    assert sum(ticks) == 40
    assert torch.get_num_threads() == before
    assert translate(module, Phrases.from_lists([]), TEMPERATURE) == []


def test_lengths():
    assert max_output_lengths(np.array([1, 10, 511])).tolist() == [7, 25, 511]
    module = small("transformer")
    (result,) = translate(module, Phrases.from_lists([[1] * 300]), TEMPERATURE, candidates=[np.array([1])])
    assert len(result.words) <= 511


def test_unknown_words_are_copied_or_looked_up():
    translation = TranslatedSentence((2, 0, 0, 1), (0, 1, 0, 1), 0.0)
    words = [b"<unk>", b"one", b"two"]
    assert replace_unknown_words(translation, words, [b"a", b"b"], {}) == [b"two", b"b", b"a", b"one"]
    assert replace_unknown_words(translation, words, [b"a", b"b"], {b"b": b"B"}) == [b"two", b"B", b"a", b"one"]
    assert remove_repetitions([b"a", b"a", b"b", b"a", b"a", b"a"]) == [b"a", b"b", b"a"]
    assert remove_repetitions([]) == []


@pytest.mark.parametrize("kind", ["lstm", "gru", "transformer"])
def test_every_position_has_its_nearest_words(kind):
    module = small(kind, 8, 12)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sentence = Phrases.from_lists([[3, 1]])
    (translation,) = translate(module, sentence, 0.3)
    result = nearest_words(module, sentence, 0.3, 4)
    assert len(result) == len(translation.words) + 1
    for position, near in enumerate(result):
        vector = unit(naive.predict([3, 1], translation.words[:position])[0])
        cosines = module.targets.numpy() @ vector
        best = np.argsort(-cosines)[:4]
        assert near.words.tolist() == best.tolist()
        np.testing.assert_allclose(near.cosines, cosines[best], atol=1e-5)
    nearest = [near.words[0] for near in result]
    assert nearest[:-1] == list(translation.words)


def test_no_vectors_and_too_many_words():
    with pytest.raises(ValueError, match="a distribution"):
        nearest_words(small("softmax"), Phrases.from_lists([[1]]), 1.0, 3)
    with pytest.raises(LengthError):
        nearest_words(small("gru"), Phrases.from_lists([[1] * 512]), 1.0, 3)
    assert len(nearest_words(small("gru"), Phrases.from_lists([[1]]), 1.0, 100)[0].words) == 7


SCORING_TEMPERATURE = 0.2


def scores(module, sources, pairs, reading):
    """Return the scores of pairs of a source number and a target, in the order of the pairs."""
    numbers = np.array([number for number, _ in pairs])
    targets = Phrases.from_lists([target for _, target in pairs])
    order = pair_order(numbers, targets)
    result = np.empty(len(pairs))
    result[order] = pair_scores(module, sources, targets.select(order), numbers[order], reading, SCORING_TEMPERATURE)
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_scores_agree_with_naive(kind):
    module = small(kind)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(4, 8, 3)
    pairs = [(0, [1, 2]), (0, [1, 2, 3]), (0, [1]), (3, [4]), (1, [0, 0]), (1, [5, 2]), (2, [1]), (0, [2, 2])]
    expected = [naive.score(sources[number].tolist(), target, SCORING_TEMPERATURE) for number, target in pairs]
    np.testing.assert_allclose(scores(module, sources, pairs, "normalised"), expected, rtol=1e-4, atol=1e-5)


def test_densities_depend_only_on_the_target_word():
    module = small("gru")
    naive = NaiveTranslator(module.architecture, module.arrays())
    sources = sentences(2, 8, 3)
    pairs = [(0, [1, 2]), (1, [3]), (1, [3, 4])]
    expected = []
    for number, target in pairs:
        words = [*target, module.end]
        vectors = [unit(naive.predict(sources[number].tolist(), words[:i])[0]) for i in range(len(words))]
        cosines = [vector @ module.targets[word].numpy() for vector, word in zip(vectors, words, strict=True)]
        expected.append(sum((cosine - 1) / SCORING_TEMPERATURE for cosine in cosines))
    result = scores(module, sources, pairs, "density")
    np.testing.assert_allclose(result, expected, rtol=1e-4)
    assert (result < 0).all()
    with pytest.raises(ValueError, match="no densities"):
        scores(small("softmax"), sources, pairs, "density")


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 2), min_size=1, max_size=4)), min_size=1))
def test_shared_prefixes_do_not_change_scores(pairs):
    module, sources = small("gru"), sentences(3, 8, 3)
    together = scores(module, sources, pairs, "normalised")
    alone = [scores(module, sources, [pair], "normalised")[0] for pair in pairs]
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_no_pairs_and_their_order():
    module = small("gru")
    empty = Phrases.from_lists([])
    assert len(pair_scores(module, sentences(1, 8, 3), empty, np.zeros(0, np.int64), "normalised", 1.0)) == 0
    targets = Phrases.from_lists([[2], [1, 3], [1], [1]])
    assert pair_order(np.array([0, 0, 0, -1]), targets).tolist() == [3, 2, 1, 0]


pytest.importorskip("torch")


def pairs(count, seed=0):
    rng = np.random.default_rng(seed)

    def sides():
        result = [rng.integers(0, 13, rng.integers(0, 7)).tolist() for _ in range(count // 2)]
        return [result[i] for i in rng.integers(0, len(result), count)]

    sources, targets = sides(), sides()
    return [*sources, [1] * 512, [2], [3] * 511], [*targets, [2], [1] * 512, [4]]


@pytest.mark.parametrize(("cell", "output"), [("gru", "vectors"), ("transformer", "vectors"), ("gru", "softmax")])
@pytest.mark.parametrize("reading", ["normalised", "density"])
def test_scores_are_those_of_each_pair_alone(cell, output, reading, monkeypatch):
    model = translator(cell=cell, output=output)
    sources, targets = pairs(60)
    sides = Phrases.from_lists(sources), Phrases.from_lists(targets)
    monkeypatch.setattr(decoding, "_PAIRS_OF_A_BATCH", 7)
    if reading == "density" and output == "softmax":
        with pytest.raises(ValueError, match="no densities"):
            decoding.scores_of_pairs(model.network, *sides, reading, model.temperature)
        return
    scores = decoding.scores_of_pairs(model.network, *sides, reading, model.temperature)
    expected = [naive_score(model, *pair, reading) for pair in zip(sources, targets, strict=True)]
    assert 3 < np.isnan(expected).sum() < 40
    assert scores == pytest.approx(expected, rel=2e-4, abs=2e-4, nan_ok=True)


def test_the_order_of_pairs_changes_next_to_nothing():
    model = translator()
    sources, targets = map(Phrases.from_lists, pairs(3000))
    scores = decoding.scores_of_pairs(model.network, sources, targets, "normalised", model.temperature)
    order = np.random.default_rng(1).permutation(len(sources))
    permuted = decoding.scores_of_pairs(
        model.network, sources.select(order), targets.select(order), "normalised", model.temperature
    )
    # Equal pairs may be in different batches.
    equal = np.nan_to_num(permuted) == np.nan_to_num(scores[order])
    assert equal.mean() > 0.999
    assert permuted == pytest.approx(scores[order], rel=1e-5, nan_ok=True)


def test_long_phrases_are_detected():
    sources, targets = map(Phrases.from_lists, pairs(4))
    assert decoding.is_too_long(sources, targets).tolist() == [False] * 4 + [True, True, False]


WORDS = 7


def alone(module, source, target):
    """Return log p of one target, computed for all steps at once."""
    ids = padded_targets(Phrases.from_lists([target]), module.end)
    with torch.no_grad():
        predicted = module.predict(module.encode(Phrases.from_lists([source])), ids)
        logs = log_probabilities(module, predicted, 1.0)
    return float(logs.gather(1, ids[0][:, None]).double().sum())


@pytest.fixture(scope="module")
def lists():
    """Return sources, hypotheses (with repetitions, shared prefixes and an empty one) and the sentence of each."""
    rng = np.random.default_rng(3)
    sources = [rng.integers(0, WORDS, rng.integers(1, 6)).tolist() for _ in range(6)]
    hypotheses, sentences = [[]], [0]
    for sentence in (0, 1, 3, 4, 5):
        beginning = rng.integers(0, WORDS, 2).tolist()
        for _ in range(7):
            ending = rng.integers(0, WORDS, rng.integers(0, 4)).tolist()
            hypotheses += [beginning + ending] * rng.integers(1, 3)
        sentences += [sentence] * (len(hypotheses) - len(sentences))
    return Phrases.from_lists(sources), Phrases.from_lists(hypotheses), np.array(sentences)


@pytest.mark.parametrize("backward", [False, True])
def test_scores_are_those_of_each_hypothesis_alone(lists, backward):
    sources, hypotheses, sentences = lists
    module = random_translator(WORDS, WORDS)
    result = list_scores(module, 1.0, sources, hypotheses, sentences, backward=backward)
    for i, sentence in enumerate(sentences):
        source, hypothesis = sources[sentence].tolist(), hypotheses[i].tolist()
        # An empty text is read as one unknown word.
        expected = alone(module, hypothesis or [0], source) if backward else alone(module, source, hypothesis)
        assert result[i] == pytest.approx(expected, abs=2e-4)
    assert np.ptp(result) > 1


@pytest.mark.parametrize("backward", [False, True])
def test_neither_threads_nor_a_split_nor_the_order_of_a_list_changes_a_bit(lists, backward):
    sources, hypotheses, sentences = lists
    module = random_translator(WORDS, WORDS)
    ticks = []
    expected = list_scores(module, 1.0, sources, hypotheses, sentences, backward=backward, tick=ticks.append)
    assert sum(ticks) == len(set(sentences.tolist()))
    for threads in (2, 3):
        result = list_scores(module, 1.0, sources, hypotheses, sentences, backward=backward, threads=threads)
        assert result.tobytes() == expected.tobytes()
    for sentence in np.unique(sentences):
        rows = np.flatnonzero(sentences == sentence)[::-1]
        part = list_scores(module, 1.0, sources, hypotheses.select(rows), sentences[rows], backward=backward)
        assert part.tobytes() == expected[rows].tobytes()


def test_sentences_that_do_not_ascend_or_do_not_exist_are_refused(lists):
    sources, hypotheses, sentences = lists
    module = random_translator(WORDS, WORDS)
    for wrong in (sentences[::-1], sentences + 1, sentences - 1):
        with pytest.raises(ValueError, match="ascending"):
            list_scores(module, 1.0, sources, hypotheses, wrong, backward=False)


def test_the_number_of_threads_of_torch_is_restored(lists):
    sources, hypotheses, sentences = lists
    before = torch.get_num_threads()
    list_scores(random_translator(WORDS, WORDS), 1.0, sources, hypotheses, sentences, backward=False)
    assert torch.get_num_threads() == before


def test_a_list_of_empty_hypotheses():
    module = random_translator(WORDS, WORDS)
    sources, hypotheses = Phrases.from_lists([[1, 2], []]), Phrases.from_lists([[], []])
    result = list_scores(module, 1.0, sources, hypotheses, np.array([0, 1]), backward=False)
    assert result == pytest.approx([alone(module, [1, 2], []), alone(module, [0], [])], abs=2e-4)
