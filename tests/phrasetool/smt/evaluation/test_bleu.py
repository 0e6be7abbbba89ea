import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import (
    COLUMNS,
    BleuSamples,
    Bootstrap,
    bleu_of_sums,
    bleu_statistics,
    corpus_bleu,
    corpus_bleu_plus_half,
    sentence_bleu_plus_one,
    sentence_statistics,
)
from phrasetool.smt.evaluation.metrics import evaluate

# Few words and short sentences: repeated n-grams, matches of every order, and none.
SENTENCES = st.lists(st.integers(0, 3), max_size=9)
WORDS = ["the", "a", "house", "tree", "is", "was", "green", "red", "big", ".", ",", "not"]


@st.composite
def corpora(draw):
    """Draw (sentence of each candidate, candidates, references)."""
    size = draw(st.integers(1, 4))
    references = draw(st.lists(st.lists(SENTENCES, min_size=size, max_size=size), min_size=1, max_size=3))
    numbers = draw(st.lists(st.integers(0, size - 1), max_size=12))
    candidates = draw(st.lists(SENTENCES, min_size=len(numbers), max_size=len(numbers)))
    return numbers, candidates, references


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def naive_statistics(candidate, references):
    matches, totals = [], []
    for n in range(1, 5):
        result = ngrams(candidate, n)
        limits = Counter()
        for reference in references:
            limits |= ngrams(reference, n)
        matches.append(sum((result & limits).values()))
        totals.append(sum(result.values()))
    closest = min((len(r) for r in references), key=lambda length: (abs(length - len(candidate)), length))
    return [*matches, *totals, closest]


def arrays(numbers, candidates, references):
    return np.array(numbers, np.int32), Phrases.from_lists(candidates), [Phrases.from_lists(r) for r in references]


def text(words):
    return " ".join(f"w{word}" for word in words)


@given(corpora())
def test_statistics_are_those_of_the_plain_definition(corpus):
    numbers, candidates, references = corpus
    expected = [naive_statistics(c, [r[s] for r in references]) for s, c in zip(numbers, candidates, strict=True)]
    result = bleu_statistics(*arrays(*corpus))
    assert result.dtype == np.int32
    assert result.tolist() == np.array(expected, int).reshape(-1, COLUMNS).tolist()


@given(corpora())
def test_corpus_bleu_is_sacrebleus(corpus):
    _, _, references = corpus
    numbers = list(range(len(references[0])))
    candidates = [(references[0][s] * 2)[s : s + 6] for s in numbers]
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    expected = metric.corpus_score([text(c) for c in candidates], [[text(s) for s in r] for r in references])
    result = corpus_bleu(bleu_statistics(*arrays(numbers, candidates, references)))
    assert result == pytest.approx(expected.score, abs=1e-9)


@given(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3))
def test_bleu_plus_one_is_sacrebleus_add_k(candidate, references):
    metric = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, effective_order=True)
    expected = metric.sentence_score(text(candidate), [text(reference) for reference in references]).score
    statistics = bleu_statistics(*arrays([0], [candidate], [[reference] for reference in references]))
    assert sentence_bleu_plus_one(statistics)[0] == pytest.approx(expected, abs=1e-9)


def test_a_smoothed_brevity_penalty_takes_the_reference_for_longer():
    statistics = np.array([[4, 3, 2, 1, 4, 3, 2, 1, 4], [4, 3, 2, 1, 5, 4, 3, 2, 4]])
    plain, smooth = sentence_bleu_plus_one(statistics), sentence_bleu_plus_one(statistics, smooth_brevity=True)
    assert plain[0] == pytest.approx(100)
    assert smooth[0] == pytest.approx(100 * np.exp(1 - 5 / 4))
    assert smooth[1] == plain[1]


def test_candidates_of_a_sentence_need_not_be_together():
    numbers, candidates = [1, 0, 1, 0], [[1, 2], [3, 4, 5], [2, 1, 2], [3, 4]]
    references = [[[3, 4, 5, 6], [1, 2, 1, 2]]]
    expected = [naive_statistics(c, [references[0][s]]) for s, c in zip(numbers, candidates, strict=True)]
    assert bleu_statistics(*arrays(numbers, candidates, references)).tolist() == expected


def test_a_word_without_an_id_equals_nothing():
    assert bleu_statistics(*arrays([0], [[1, -1, 2]], [[[1, -1, 2]]])).tolist() == [[2, 0, 0, 0, 3, 2, 1, 0, 3]]


def test_large_ids_and_long_sentences():
    rng = np.random.default_rng(1)
    reference = rng.integers(0, 2**31 - 1, 300).tolist()
    candidate = reference[:200] + reference[50:]
    result = bleu_statistics(*arrays([0], [candidate], [[reference]]))
    assert result.tolist() == [naive_statistics(candidate, [reference])]


def test_no_candidates_and_no_sentences():
    assert bleu_statistics(*arrays([], [], [[[1, 2]]])).shape == (0, COLUMNS)
    assert bleu_statistics(*arrays([], [], [[]])).shape == (0, COLUMNS)
    assert corpus_bleu(np.zeros((0, COLUMNS))) == 0
    assert len(sentence_bleu_plus_one(np.zeros((0, COLUMNS), np.int32))) == 0


@pytest.mark.parametrize(
    ("numbers", "candidates", "references", "message"),
    [
        ([0], [[1], [2]], [[[1]]], "2 candidates"),
        ([1], [[1]], [[[1]]], "sentence numbers from 1 to 1"),
        ([-1], [[1]], [[[1]]], "sentence numbers from -1"),
        ([0], [[1]], [], "none"),
        ([0], [[1]], [[[1]], [[1], [2]]], r"\[1, 2\]"),
    ],
)
def test_what_does_not_fit_is_refused(numbers, candidates, references, message):
    with pytest.raises(ValueError, match=message):
        bleu_statistics(*arrays(numbers, candidates, references))


@pytest.mark.requires_reference
@pytest.mark.parametrize(
    ("name", "bleu"), [("2016_flickr", 41.79), ("2017_flickr", 37.38), ("2017_mscoco", 28.22), ("2018_flickr", 33.89)]
)
def test_bleu_of_the_reference_run(reference, name, bleu):
    symbols = Symbols()
    translations = symbols.read_lines((reference / f"test_{name}.moses.en").read_bytes())
    truth = symbols.read_lines((reference.parent / f"test_{name}.en").read_bytes())
    statistics = bleu_statistics(np.arange(len(truth), dtype=np.int32), translations, [truth])
    assert round(corpus_bleu(statistics), 2) == bleu


def test_half_a_match_more_counts_little_in_a_corpus():
    few, many = np.array([[2, 1, 0, 0, 2, 1, 0, 0, 2]]), np.array([[900, 700, 500, 400, 1000, 900, 800, 700, 1000]])
    assert corpus_bleu(few) == 0
    assert corpus_bleu_plus_half(few) == pytest.approx(100)
    assert corpus_bleu_plus_half(np.array([[0, 0, 0, 0, 2, 1, 0, 0, 2]])) == pytest.approx(100 * (1 / 15) ** 0.25)
    assert corpus_bleu_plus_half(np.array([[1, 0, 0, 0, 1, 0, 0, 0, 2]])) == pytest.approx(100 / np.e)
    assert corpus_bleu_plus_half(np.array([[0, 0, 0, 0, 0, 0, 0, 0, 2]])) == pytest.approx(100 / np.e**3)
    assert corpus_bleu_plus_half(many) == pytest.approx(corpus_bleu(many), rel=1e-3)
    assert corpus_bleu_plus_half(np.concatenate([few, many])) == corpus_bleu_plus_half(few + many)


def corpus(seed, sentences, noise):
    """Return references, and translations with some of their words changed."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(sentences)]
    systems = []
    for share in noise:
        lines = [[w for w in line.split() if rng.random() > share / 2] for line in references]
        systems.append([" ".join(rng.choice(WORDS) if rng.random() < share else w for w in line) for line in lines])
    return references, systems


@pytest.mark.parametrize(("seed", "sentences"), [(1, 300), (2, 40), (3, 3)])
def test_scores_intervals_and_p_values_are_those_of_sacrebleu(seed, sentences):
    references, systems = corpus(seed, sentences, (0.2, 0.25, 0.5))
    expected = evaluate(systems, [references], metrics=["bleu"])[0].systems
    draw = Bootstrap(sentences)
    result = [draw(sentence_statistics(system, references)) for system in systems]
    for our_system, sacrebleu_system in zip(result, expected, strict=True):
        assert our_system.bleu == pytest.approx(sacrebleu_system.score, abs=1e-9)
        low, high = our_system.interval
        assert (high - low) / 2 == pytest.approx(
            sacrebleu_system.interval, abs=1e-6 if our_system is not result[0] else 1.5
        )
        assert low <= np.median(our_system.samples) <= high
    for our_system, sacrebleu_system in zip(result[1:], expected[1:], strict=True):
        assert our_system.p_value(result[0]) == sacrebleu_system.p_value
    assert result[0].p_value(result[0]) == 1


def test_mean_of_runs():
    """The interval of a mean over runs contains the variation between runs; a single run is its own mean."""
    references, systems = corpus(4, 100, (0.1, 0.3, 0.5))
    draw = Bootstrap(100)
    runs = [draw(sentence_statistics(system, references)) for system in systems]
    mean = BleuSamples.mean_of(runs)
    assert mean.bleu == pytest.approx(sum(run.bleu for run in runs) / 3)
    drawn = np.random.default_rng(777).integers(0, 3, (1000, 3))
    assert mean.samples == pytest.approx([np.mean([runs[r].samples[i] for r in row]) for i, row in enumerate(drawn)])
    averaged = BleuSamples(mean.bleu, np.mean([run.samples for run in runs], 0))
    assert np.ptp(mean.interval) > 2 * np.ptp(averaged.interval)
    single = BleuSamples.mean_of(runs[:1])
    assert single.bleu == runs[0].bleu
    assert np.array_equal(single.samples, runs[0].samples)


def test_orders_without_a_match():
    """Orders without a match are smoothed as in sacrebleu; the score is 0 for too short texts and without any match."""
    for hypothesis, reference in ((["a b x d"], ["a b c d"]), (["a"], ["a"]), (["x y"], ["a b"]), ([""], ["a"])):
        expected = evaluate([hypothesis], [reference], metrics=["bleu"], samples=2)[0].systems[0].score
        assert bleu_of_sums(sentence_statistics(hypothesis, reference).sum(0)) == pytest.approx(expected, abs=1e-9)


def test_systems_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 translations of 1"):
        sentence_statistics(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no sentences"):
        Bootstrap(0)
    with pytest.raises(ValueError, match="for 2 sentences"):
        Bootstrap(2)(np.zeros((3, 9), np.int32))
