import numpy as np

from phrasetool.text_encoders.encoder_fit import EncoderFit, measure_encoder


def distances(source_rows, target_rows):
    """A pair is the more similar the nearer its rows are; row 0 has no vector."""
    found = -np.abs(source_rows - target_rows).astype(np.float32) / 1000
    return found, (source_rows != 0) & (target_rows != 0)


ROWS = np.arange(1000)
ALL = np.ones(1000, np.bool_)


def test_a_good_encoder():
    fit = measure_encoder(distances, ROWS, ROWS, ALL)
    assert (fit.pairs, fit.auc) == (999, 1.0)
    assert not fit.by_chance
    assert fit.quantiles == (0, 0, 0, 0, 0)
    assert "AUC 1.00 (999 entries); similarities at 5% 0.000, " in fit.words
    assert fit.words.endswith("thresholds of other encoders and models do not apply")


def test_quantiles_are_of_all_pairs():
    shifted = np.concatenate([ROWS[1:], ROWS[1:] + 100])
    fit = measure_encoder(distances, np.concatenate([ROWS[1:], ROWS[1:]]), shifted, np.ones(1998, np.bool_))
    assert fit.quantiles == tuple(np.quantile([-0.1, 0], [0, 0, 0.5, 1, 1]).round(4))


def test_an_encoder_of_one_language_is_no_better_than_chance():
    others = np.random.default_rng(1).permutation(1000)
    fit = measure_encoder(distances, ROWS, others, ALL)
    assert fit.by_chance
    assert 0.45 < fit.auc < 0.55


def test_pairs_that_any_encoder_tells_do_not_count():
    # Half of the pairs are names.
    targets = np.where(ROWS % 2, ROWS, np.random.default_rng(1).permutation(1000))
    assert measure_encoder(distances, ROWS, targets, ALL).auc > 0.7
    assert measure_encoder(distances, ROWS, targets, ROWS % 2 == 0).by_chance


def test_too_few_to_tell():
    fit = measure_encoder(distances, ROWS[:100], ROWS[:100], ALL[:100])
    assert (fit.pairs, fit.auc, fit.by_chance) == (99, None, False)
    nothing = measure_encoder(distances, ROWS[:1], ROWS[:1], ALL[:1])
    assert nothing == EncoderFit(0, (), None)
    assert nothing.words == "no pair of the table has vectors on both sides"


def test_kept_and_read_again():
    fit = measure_encoder(distances, ROWS, ROWS, ALL)
    assert EncoderFit.from_dict(fit.as_dict()) == fit
