import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap, sentence_statistics
from phrasetool.smt.evaluation.metrics import (
    MetricReport,
    SystemScore,
    TextForm,
    any_significant,
    equal_runs,
    evaluate,
    means_of_drawn_runs,
    rouge_n,
    score_lines,
    shared_words,
    text_form,
    unlike_references,
)

WORDS = ["a", "man", "in", "the", "blue", "shirt", "rides", "two", "dogs", "."]
# Candidate, reference, and ROUGE-1 and ROUGE-2 by rouge-score 0.1.2, for words separated by spaces.
GOLDEN = [
    ("police kill the gunman", "police killed the gunman", 0.75, 0.3333333333333333),
    ("the gunman kill police", "police killed the gunman", 0.75, 0.3333333333333333),
    ("the the the cat mat sat on", "the cat sat on the mat", 0.923076923076923, 0.3636363636363636),
    ("a a b b a a", "a a a b", 0.8, 0.7499999999999999),
    ("a man , a dog", "A man , a dog", 0.8000000000000002, 0.75),
    ("word", "word", 1.0, 0.0),
    ("x y", "a b c", 0.0, 0.0),
    ("", "a b", 0.0, 0.0),
    ("two men ride a bike down a blue hill . .", "two people ride a blue bike down the hill .",
     0.761904761904762, 0.4210526315789474),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from("abc"), max_size=7)


def corpus(seed, size=60):
    """Return a reference, a good and a bad translation."""
    rng = np.random.default_rng(seed)
    truth = [rng.choice(WORDS, 9).tolist() for _ in range(size)]

    def worse(share):
        return [" ".join(w if rng.random() > share else rng.choice(WORDS) for w in line) for line in truth]

    return [" ".join(line) for line in truth], worse(0.15), worse(0.4)


SENTENCES = 10


@pytest.fixture(scope="module")
def redrawn():
    """Return, for each metric, the sorted score differences of bootstrap samples, each scored by sacrebleu."""
    truth, good, bad = corpus(4, SENTENCES)
    differences_by_metric = []
    for metric in BLEU(tokenize="none"), CHRF(), TER():
        differences = []
        for drawn in np.random.default_rng(5).choice(SENTENCES, size=(1000, SENTENCES), replace=True):
            better, worse, reference = ([lines[i] for i in drawn] for lines in (good, bad, truth))
            scores = [metric.corpus_score(lines, [reference]).score for lines in (better, worse)]
            differences.append(scores[1] - scores[0])
        differences_by_metric.append(sorted(differences))
    return differences_by_metric


@pytest.mark.parametrize("test", ["bootstrap", "approximate-randomization"])
def test_the_interval_of_a_difference_is_that_of_sentences_drawn_together(test, redrawn):
    truth, good, bad = corpus(4, SENTENCES)
    # The number of swaps is independent of that of bootstrap samples, which is then always 1,000.
    samples = 1000 if test == "bootstrap" else 50
    reports = evaluate([good, bad, good], [truth], test=test, samples=samples, seed=5)
    for report, differences in zip(reports, redrawn, strict=True):
        _, system, same = report.systems
        assert [system.difference_low, system.difference_high] == pytest.approx(
            [differences[25], differences[974]], abs=2e-3
        )
        assert system.difference_low < system.difference < system.difference_high
        assert (same.difference_low, same.difference_high) == (0, 0)


def test_the_interval_of_a_difference_is_over_the_requested_samples():
    truth, good, bad = corpus(4, SENTENCES)
    (report,) = evaluate([good, bad], [truth], metrics=["bleu"], samples=3, seed=5)
    differences = []
    for drawn in np.random.default_rng(5).choice(SENTENCES, size=(3, SENTENCES), replace=True):
        better, worse, reference = ([lines[i] for i in drawn] for lines in (good, bad, truth))
        scores = [BLEU(tokenize="none").corpus_score(lines, [reference]).score for lines in (better, worse)]
        differences.append(scores[1] - scores[0])
    system = report.systems[1]
    expected = [min(differences), max(differences)]
    assert [system.difference_low, system.difference_high] == pytest.approx(expected, abs=2e-3)


def test_non_inferiority_is_a_loss_that_the_interval_excludes():
    truth, good, bad = corpus(2)
    for report in evaluate([good, bad, good], [truth]):
        _, worse, same = report.systems
        loss = -worse.difference_low if report.higher_is_better else worse.difference_high
        assert loss > abs(worse.difference)
        assert not report.is_non_inferior(worse, loss)
        assert report.is_non_inferior(worse, loss + 1e-6)
        assert report.is_non_inferior(same, 1e-9)
        lines = score_lines(report, ["good", "bad", "same"], 0.3)
        assert lines[4:6] == [
            "  bad is not shown to be non-inferior (margin 0.3)", "  same is non-inferior (margin 0.3)",
        ]  # fmt: skip


def test_scores_are_sacrebleus():
    truth, good, bad = corpus(1)
    metrics = [BLEU(tokenize="none"), CHRF(), TER()]
    expected = [[metric.corpus_score(lines, [truth]).score for lines in (good, bad)] for metric in metrics]
    reports = evaluate([good, bad], [truth], samples=20)
    assert [[system.score for system in report.systems] for report in reports] == expected
    assert [report.name for report in reports] == ["BLEU", "chrF2", "TER"]
    assert [report.higher_is_better for report in reports] == [True, True, False]
    alone = evaluate([good], [truth], samples=20)
    assert [report.systems[0].score for report in alone] == [scores[0] for scores in expected]
    assert all(report.systems[0].p_value is None for report in alone + reports)


def test_signatures_describe_the_evaluation():
    truth, good, bad = corpus(1)
    (bleu,) = evaluate([good], [truth, bad], metrics=["bleu"], tokenize="13a", samples=50, seed=7)
    assert bleu.signature.startswith("nrefs:2|bs:50|seed:7|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    (chrf,) = evaluate([good, bad], [truth], metrics=["chrf"], test="approximate-randomization", samples=60)
    assert chrf.signature.startswith("nrefs:1|bs:1000|ar:60|seed:12345|")


@pytest.mark.parametrize("test", ["bootstrap", "approximate-randomization"])
def test_a_real_difference_is_distinguished_from_none(test):
    truth, good, bad = corpus(2)
    copied = [good[0], *good[1:]]
    for report in evaluate([good, bad, copied], [truth], test=test, samples=300):
        first, worse, same = report.systems
        assert first.difference is None
        assert worse.difference == worse.score - first.score
        assert (worse.difference < 0) == report.higher_is_better
        assert worse.p_value < 0.01
        assert (same.difference, same.p_value) == (0, 1)
        assert abs(first.mean - first.score) < 3
        assert 0.5 < first.interval < 15


def test_a_small_difference_is_not_significant():
    truth, good, _ = corpus(3)
    changed = [*good[:-1], "a man"]
    for report in evaluate([good, changed], [truth], samples=300):
        assert report.systems[1].p_value > 0.05


def test_results_depend_on_no_randomness_but_the_seed(monkeypatch):
    truth, good, bad = corpus(4)
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    runs = [evaluate([good, bad], [truth], metrics=["bleu"], samples=100, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert os.environ["SACREBLEU_SEED"] == "99"
    monkeypatch.delenv("SACREBLEU_SEED")
    assert evaluate([good, bad], [truth], metrics=["bleu"], samples=100, seed=1) == runs[0]
    assert "SACREBLEU_SEED" not in os.environ


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        (["A man , a dog .", "Mr. Smith sleeps ."], TextForm(True, False, None)),
        (["A man, a dog.", "It sleeps."], TextForm(False, False, None)),
        (["the dog &apos;s ball ."], TextForm(True, True, True)),
        (["two dogs"], TextForm(False, True, None)),
        (["12 3"], TextForm(False, None, None)),
        (["我 喜欢 猫 。"], TextForm(True, None, None)),
        (["a dog 's ball ."], TextForm(True, True, False)),
        (["AT & T"], TextForm(False, False, False)),
        (["a \udcff [ b ]"], TextForm(False, True, False)),
        ([], TextForm(False, None, None)),
    ],
)
def test_how_text_was_prepared_is_guessed(lines, form):
    assert text_form(lines) == form


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([["a"]], [["a", "b"]]), r"got \[1, 2\]"),
        (([["a"], ["a", "b"]], [["a"]]), r"got \[1, 2\]"),
        (([[]], [[]]), r"got \[0\]"),
        (([["a"]], []), "got"),
    ],
)
def test_texts_of_different_length_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(*arguments)


def test_unknown_names_and_seeds_are_refused():
    with pytest.raises(ValueError, match="'meteor' is not one of bleu, chrf, ter"):
        evaluate([["a"]], [["a"]], metrics=["meteor"])
    with pytest.raises(ValueError, match="'foo' is not one of none, "):
        evaluate([["a"]], [["a"]], tokenize="foo")
    with pytest.raises(ValueError, match="'foo' is not one of bootstrap, approximate-randomization"):
        evaluate([["a"]], [["a"]], test="foo")
    for samples in (-5, 0):
        with pytest.raises(ValueError, match=f"samples is {samples}, expected at least 1"):
            evaluate([["a"]], [["a"]], samples=samples)
    with pytest.raises(ValueError, match="seed"):
        evaluate([["a"]], [["a"]], seed=0)


BASE = SystemScore(33.333, 33.3, 1.25)


def report(*others, higher=True):
    return MetricReport("BLEU", higher, "nrefs:1", [BASE, *others])


def test_one_system():
    assert score_lines(report(), ["folder/base.en"]) == [
        "BLEU, more is better   score    95 %",
        "  base.en              33.33   ±1.25",
        "  nrefs:1",
    ]


def test_systems_are_compared_with_the_first():
    worse = SystemScore(30, 30.1, 0.5, -3.333, 0.001, -4.5, -2.25)
    same = SystemScore(33.333, 33, 1, 0.0, 1.0, -10.5, 10.5)
    assert score_lines(report(worse, same, higher=False), ["a/one", "b/two", "b/one"]) == [
        "BLEU, less is better   score    95 %  difference            95 %        p",
        "  a/one (baseline)     33.33   ±1.25",
        "  b/two                30.00   ±0.50       -3.33  -4.50 to -2.25   0.0010 *",
        "  b/one                33.33   ±1.00       +0.00  -10.50 to +10.50   1.0000",
        "  nrefs:1",
    ]


def test_systems_of_several_runs_have_a_deviation():
    first = SystemScore(33, 33.3, 1.25, run_scores=(32.0, 34.0))
    second = SystemScore(30, 30.1, 0.5, -3, 0.001, -4.5, -2.25, (30.0, 30.0))
    assert score_lines(MetricReport("BLEU", True, "nrefs:1", [first, second]), ["a.1", "b.1"]) == [
        "BLEU, more is better       score   s.d.    95 %  difference            95 %        p",
        "  a.1, 2 runs (baseline)   33.00   1.41   ±1.25",
        "  b.1, 2 runs              30.00   0.00   ±0.50       -3.00  -4.50 to -2.25   0.0010 *",
        "  nrefs:1",
    ]


@pytest.mark.parametrize(
    ("p", "interval", "expected"),
    [
        (0.049, (0.5, 1.5), True),
        (0.049, (-1.5, -0.5), True),
        (0.05, (0.5, 1.5), False),
        (1.0, (0.5, 1.5), False),
        # If p-value and interval disagree, a difference is not called significant.
        (0.03, (-0.02, 1.1), False),
        (0.03, (0.0, 1.1), False),
    ],
)
def test_significance_requires_the_p_value_and_the_interval(p, interval, expected):
    system = SystemScore(1, 1, 1, 1, p, *interval)
    assert any_significant([report(), report(system)]) is expected
    assert score_lines(report(system), ["a", "b"])[2].endswith(" *") is expected


def test_samples_draw_runs():
    """Each sample has the mean of as many runs as there are, drawn with replacement, the same ones for each system."""
    rng = np.random.default_rng(5)
    first, second = rng.normal(20, 3, (2, 3, 500))
    drawn = np.random.default_rng(777).integers(0, 3, (500, 3))
    for scores in (first, second):
        naive = [sum(scores[run][sample] for run in runs) / 3 for sample, runs in enumerate(drawn)]
        assert means_of_drawn_runs(scores) == pytest.approx(naive)
    assert np.array_equal(means_of_drawn_runs(first[:1]), first[0])
    # Equal sentences, different runs: all of the variation is that of a mean of three drawn runs.
    runs = np.repeat([[20.0], [21.0], [25.0]], 500, 1)
    means = means_of_drawn_runs(runs)
    assert means.std() == pytest.approx(np.std([20, 21, 25]) / 3**0.5, rel=0.1)
    # Runs of two systems with the same seed are drawn together.
    assert np.ptp(means_of_drawn_runs(runs + 1) - means) < 1e-9


def test_runs_of_a_system_count_together():
    """Results agree with our own bootstrap: intervals of differences draw runs, too; p is of the runs' sums."""
    truth, good, bad = corpus(7)
    again = corpus(8)[1]
    texts = [good, again[:20] + good[20:], bad, bad[:30] + good[30:]]
    (bleu, ter) = evaluate(texts, [truth], metrics=("bleu", "ter"), runs=2)
    counts = [sentence_statistics(text, truth) for text in texts]
    bootstrap = Bootstrap(len(truth))
    first_sums, second_sums = (bootstrap(counts[i] + counts[i + 1]) for i in (0, 2))
    first_runs, second_runs = (BleuSamples.mean_of([bootstrap(one) for one in counts[i : i + 2]]) for i in (0, 2))
    alone = [BLEU(tokenize="none").corpus_score(text, [truth]).score for text in texts]
    first, second = bleu.systems
    assert [*first.run_scores, *second.run_scores] == pytest.approx(alone)
    assert (first.score, second.score) == pytest.approx((np.mean(alone[:2]), np.mean(alone[2:])))
    assert first.deviation == pytest.approx(abs(alone[0] - alone[1]) / 2**0.5)
    assert second.difference == pytest.approx(second.score - first.score)
    assert (second.difference_low, second.difference_high) == pytest.approx(
        second_runs.difference_interval(first_runs), abs=1e-4
    )
    assert second_runs.difference_interval(first_runs) != second_sums.difference_interval(first_sums)
    assert second.p_value == pytest.approx(second_sums.p_value(first_sums), abs=0.003)
    # The concatenated texts of both runs have the summed statistics, but other samples.
    assert ter.systems[1].mean == pytest.approx(TER().corpus_score(texts[2] + texts[3], [truth * 2]).score, abs=0.5)
    (alone_report,) = evaluate(texts[:2], [truth], metrics=("bleu",), runs=2)
    (alone_system,) = alone_report.systems
    assert (alone_system.run_scores, alone_system.interval) == (first.run_scores, pytest.approx(first.interval))
    with pytest.raises(ValueError, match="3 translations are not 2 of each system"):
        evaluate(texts[:3], [truth], runs=2)


def test_equal_runs_are_reported():
    texts = {"a.1": ["x"], "a.2": ["x"], "b.1": ["x"], "b.2": ["y"]}
    assert equal_runs(texts, 2) == ["Warning: a.2 and a.1 are equal, but count as two runs."]
    assert equal_runs(texts, 1) == []


def test_shared_words():
    assert shared_words(["a a b", "c"], [["a x y", "d c"]]) == 0.5
    assert shared_words(["a a b", "c"], [["a x y", "d"], ["b a a", "d"]]) == 0.75
    assert shared_words(["", ""], [["a", "b"]]) == 1


def test_texts_that_translate_something_else_are_reported():
    truth = [f"the {i} men see {i + 1} of them ." for i in range(30)]
    texts = {"right": truth, "other": ["les hommes en voient deux ."] * 30, "poor": ["them the see ."] * 30}
    reports = evaluate(list(texts.values()), [truth], metrics=("bleu", "ter"), samples=2)
    (warning,) = unlike_references(reports, texts, [truth])
    assert warning.startswith("Warning: BLEU of other is 0.")
    assert " and 16.7 % of its words are in the reference of their line" in warning
    assert unlike_references(evaluate([texts["other"]], [truth], metrics=("ter",), samples=2), texts, [truth]) == []


@pytest.mark.parametrize("order", [1, 2])
def test_golden_values(order):
    candidates, references = ([line[which].split() for line in GOLDEN] for which in (0, 1))
    expected = [line[1 + order] for line in GOLDEN]
    np.testing.assert_allclose(rouge_n(candidates, references, order), expected, atol=1e-12)


def naive(candidate, reference, order):
    """Compute ROUGE-n by removing each matching n-gram from those of the reference."""
    candidate_ngrams, reference_ngrams = (
        [words[i : i + order] for i in range(len(words) - order + 1)] for words in (candidate, reference)
    )
    remaining, matches = list(reference_ngrams), 0
    for gram in candidate_ngrams:
        if gram in remaining:
            remaining.remove(gram)
            matches += 1
    if not matches:
        return 0.0
    precision, recall = matches / len(candidate_ngrams), matches / len(reference_ngrams)
    return 2 * precision * recall / (precision + recall)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), st.integers(1, 3))
def test_against_the_definition(pairs, order):
    candidates, references = [a for a, _ in pairs], [b for _, b in pairs]
    result = rouge_n(candidates, references, order)
    np.testing.assert_allclose(result, [naive(*pair, order) for pair in pairs], atol=1e-12)
    np.testing.assert_array_equal(result, rouge_n(references, candidates, order))


def test_bad_requests():
    with pytest.raises(ValueError, match="1 candidates, 0 references"):
        rouge_n([["a"]], [], 1)
    with pytest.raises(ValueError, match="n = 0"):
        rouge_n([["a"]], [["a"]], 0)
