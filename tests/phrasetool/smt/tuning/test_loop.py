import random

import numpy as np
import pytest

from phrasetool.phrases import Phrases
from phrasetool.smt.tuning.candidates import CandidatePool, NBest, first_best_bleu, normalised
from phrasetool.smt.tuning.loop import NBestDecoder, perturbed, tune
from tests.decoder_models import LanguageModels, random_model, random_sentence, search_options, translator_of
from tests.phrasetool.smt.tuning.reference_lists import SIGNS, decoder_of, read_lists, reference_pool, reference_weights

REFERENCE = [Phrases.from_lists([[1, 2, 3, 4, 5]])]


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    """Return a translator, sentences in its ids, and options without pruning."""
    rng = random.Random(4)
    sentences = [random_sentence(rng, size) for size in (3, 0, 5, 1, 4)]
    languages = LanguageModels(tmp_path_factory.mktemp("language-models"))
    model = random_model(rng, sentences[2], languages.kenlm[0])
    return (*translator_of(model, sentences, languages.ours[0]), search_options(model))


def copies(translator, translation, derivation):
    """Return the number of copied words in a derivation."""
    first, last = translation.steps.offsets[derivation : derivation + 2]
    return int(translator.table.copies[translation.steps.entries[first:last]].sum())


@pytest.mark.parametrize("threads", [1, 2])
def test_candidates_are_those_of_the_translator_with_the_tuned_weights(decoded, threads):
    translator, texts, options = decoded
    tuned = np.ones(len(translator.weights), np.bool_)
    tuned[[0, 2]] = False
    weights = np.linspace(0.2, 1.5, int(tuned.sum()))
    before, ticks = translator.weights.copy(), []
    decoder = NBestDecoder(translator, texts, options, 6, tuned, threads, lambda: ticks.append(1))
    whole = decoder.all_weights(weights)
    assert whole[tuned].tolist() == weights.tolist()
    assert whole[~tuned].tolist() == before[~tuned].tolist()
    result = decoder(weights)
    assert translator.weights.tolist() == before.tolist()
    tuned_translator = translator.with_weights(whole)
    expected = list(tuned_translator.translate_all(texts, options, 6))
    assert len(ticks) == len(expected) == 5
    assert result.sentence.tolist() == [s for s, translation in enumerate(expected) for _ in range(len(translation))]
    assert max(np.bincount(result.sentence)) > 1
    words = [
        tuned_translator.words(translation, d).tolist() for translation in expected for d in range(len(translation))
    ]
    assert [row.tolist() for row in result.words] == words
    assert result.features.dtype == np.float32
    features = np.concatenate([translation.features for translation in expected])
    np.testing.assert_allclose(result.features[:, :-1], features[:, tuned], rtol=1e-6)
    assert decoder.fixed
    np.testing.assert_allclose(result.features[:, -1], features[:, [0, 2]] @ before[[0, 2]], rtol=1e-5, atol=1e-6)
    totals = result.features @ np.append(weights, 1)
    scores = np.concatenate([translation.steps.scores for translation in expected])
    unknown = [
        -100 * translator.features.unknown_weight * copies(translator, t, d) for t in expected for d in range(len(t))
    ]
    np.testing.assert_allclose(totals + unknown, scores, rtol=1e-5, atol=1e-4)


def test_no_sentences_have_no_candidates(decoded):
    translator, _, options = decoded
    tuned = np.ones(len(translator.weights), np.bool_)
    result = NBestDecoder(translator, Phrases.from_lists([]), options, 6, tuned)(translator.weights)
    assert (len(result.sentence), len(result.words), result.features.shape) == (0, 0, (0, len(tuned)))


def new_candidates(*words):
    """Return an n-best list of one sentence without known candidates: the first feature counts the calls."""
    new_candidates.calls += 1
    features = np.full((len(words), 2), new_candidates.calls, np.float32)
    features[:, 1] = np.arange(len(words))
    return NBest(np.zeros(len(words), np.int32), features, Phrases.from_lists(words))


new_candidates.calls = 0
# BLEU of a prefix of the reference, by its length.
PREFIXES = {n: first_best_bleu(new_candidates(range(1, n + 1)), REFERENCE) for n in (4, 5)}


def scripted(lengths):
    """Return a decoder with known results, and the list of the weights that it receives."""
    recorded = []

    def decode(weights):
        recorded.append(weights.tolist())
        return new_candidates(range(1, lengths[len(recorded) - 1] + 1))

    return decode, recorded


def step(pool, weights, seed):
    """Increase the first weight by a fixed step, as an optimiser."""
    return normalised(weights + [0.1, 0])


def test_the_best_run_wins_not_the_last():
    decode, inputs = scripted([3, 4, 3, 5, 4, 5])
    reports = []
    result = tune(decode, REFERENCE, [1, 1], step, iterations=6, report=reports.append)
    assert result.best.run == 4
    assert result.weights.tolist() == inputs[3]
    assert result.best.bleu == 100
    assert [round(run.bleu, 6) for run in result.runs] == [0, *(round(PREFIXES.get(n, 0), 6) for n in [4, 3, 5, 4, 5])]
    assert reports == result.runs
    assert [run.run for run in reports] == [1, 2, 3, 4, 5, 6]
    assert [run.best for run in reports] == [True, True, False, True, False, False]
    assert [run.candidates for run in reports] == [1, 2, 3, 4, 5, 6]
    assert [run.new for run in reports] == [1] * 6
    assert inputs[0] == [0.5, 0.5]
    assert inputs[1] == normalised([0.6, 0.5]).tolist()
    assert result.reasons == ["6 runs were completed"]


def with_fixed(values, words=((1,), (2,))):
    """Return an n-best list of one sentence with these values of the last feature, the sum of fixed ones."""
    known = new_candidates(*words)
    return NBest(known.sentence, np.column_stack([known.features, np.float32(values)]), known.words)


def test_weights_keep_their_ratio_to_fixed_ones():
    inputs, pools = [], []

    def decode(weights):
        inputs.append(weights.tolist())
        return with_fixed([-1, -2])

    def follow(pool, weights, seed):
        pools.append(pool.features.shape[1])
        return normalised([1, -3, 4])

    result = tune(decode, REFERENCE, [6, 2], follow, fixed=True, iterations=2)
    # The start is not normalised; the weight of the last feature becomes 1.
    np.testing.assert_allclose(inputs, [[6, 2], [1 / 4, -3 / 4]], rtol=1e-12)
    assert pools == [3]
    assert [run.weights.tolist() for run in result.runs] == inputs


def test_the_weight_of_the_fixed_features_stays_positive():
    inputs = []

    def decode(weights):
        inputs.append(weights.tolist())
        return with_fixed([-1, -2])

    tune(decode, REFERENCE, [3, 1], lambda pool, weights, seed: normalised([8, 1, -1]), fixed=True, iterations=2)
    # Its share was 1/5, and is 1/10 now.
    np.testing.assert_allclose(inputs[1], [8, 1], rtol=1e-12)


def test_fixed_features_without_effect_do_not_matter():
    inputs = []

    def decode(weights):
        inputs.append(weights.tolist())
        return with_fixed([-1, -1])

    tune(decode, REFERENCE, [3, 1], lambda pool, weights, seed: normalised([1, 1, 2]), fixed=True, iterations=2)
    np.testing.assert_allclose(inputs, [[3, 1], [0.5, 0.5]], rtol=1e-12)


def test_tuning_stops_without_improvement():
    decode, inputs = scripted([4, 3, 5, 4, 4, 4, 5, 5])
    result = tune(decode, REFERENCE, [1, 1], step, patience=3)
    assert len(inputs) == 6
    assert result.best.run == 3
    assert result.reasons == ["no better BLEU in 3 runs"]


def test_tuning_stops_without_new_candidates():
    candidates = new_candidates([1, 2, 3], [1, 2])
    result = tune(lambda weights: candidates, REFERENCE, [1, 1], step)
    assert len(result.runs) == 2
    assert result.runs[1].new == 0
    assert result.reasons == ["the decoder found no new hypotheses"]


def test_tuning_stops_if_no_weight_changes():
    result = tune(
        lambda weights: new_candidates([1, 2, 3]), REFERENCE, [1, 1], lambda pool, weights, seed: weights + 1e-6
    )
    assert len(result.runs) == 1
    assert result.reasons == ["no weight changed by 1e-05"]


def test_candidates_of_earlier_runs_are_kept_until_a_restart():
    pools = []

    def watch(pool, weights, seed):
        assert isinstance(pool, CandidatePool)
        pools.append(len(pool))
        return step(pool, weights, seed)

    result = tune(
        lambda weights: new_candidates([1], [2]),
        REFERENCE,
        [1, -1],
        watch,
        iterations=3,
        restarts=2,
        patience=9,
        seed=5,
    )
    assert pools == [2, 4, 2, 4]
    assert [run.restart for run in result.runs] == [0, 0, 0, 1, 1, 1]
    assert len(result.reasons) == 2
    assert result.runs[0].weights.tolist() == [0.5, -0.5]
    assert result.runs[3].weights.tolist() != [0.5, -0.5]
    assert (np.sign(result.runs[3].weights) == [1, -1]).all()


def test_perturbed_weights_stay_within_bounds():
    rng = np.random.default_rng(1)
    start = normalised([1, -2, 3, 0, 0])
    drawn = np.array([perturbed(start, rng) for _ in range(500)])
    assert np.allclose(np.abs(drawn).sum(1), 1)
    assert (np.sign(drawn[:, :3]) == [1, -1, 1]).all()
    assert (drawn[:, 3] < 0).any()
    assert (drawn[:, 3] > 0).any()
    ratios = drawn[:, 2] / drawn[:, 0]
    assert ratios.min() > 3 / 4
    assert ratios.max() < 3 * 4
    assert ratios.min() < 1.2
    assert ratios.max() > 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "mert"}, "'mert' is not one of mira, pro"),
        ({"iterations": 0}, "at least 1"),
        ({"restarts": 0}, "at least 1"),
        ({"patience": 0}, "at least 1"),
        ({"start": [0, 0]}, "not all 0"),
    ],
)
def test_wrong_arguments_are_refused(changes, message):
    arguments = {"decode": new_candidates, "references": REFERENCE, "start": [1, 1], **changes}
    with pytest.raises(ValueError, match=message):
        tune(**arguments)


@pytest.mark.requires_reference
@pytest.mark.parametrize(("algorithm", "above"), [("mira", 0.6), ("pro", 0.2)])
def test_tuning_over_the_reference_lists_beats_the_reference_weights(reference, algorithm, above):
    lists, truth, _ = read_lists(reference)
    reference_bleu = reference_pool(reference).bleu(reference_weights(reference))
    result = tune(decoder_of(lists, 10), truth, SIGNS, algorithm, iterations=10, seed=1)
    assert result.runs[0].bleu < reference_bleu - 1
    assert result.best.bleu > reference_bleu + above
    again = tune(decoder_of(lists, 10), truth, SIGNS, algorithm, iterations=10, seed=1)
    assert again.weights.tolist() == result.weights.tolist()
    assert [run.bleu for run in again.runs] == [run.bleu for run in result.runs]


@pytest.mark.requires_reference
def test_restarts_are_different_and_the_best_counts(reference):
    lists, truth, _ = read_lists(reference)
    result = tune(decoder_of(lists, 10), truth, SIGNS, "mira", iterations=4, restarts=3, seed=2)
    assert {run.restart for run in result.runs} == {0, 1, 2}
    assert result.best.bleu == max(run.bleu for run in result.runs)
    assert len({run.bleu for run in result.runs if run.run == 1}) == 3
    assert sum(run.best for run in result.runs) >= 1
    assert [run for run in result.runs if run.best][-1] is result.best
