"""Scores of entries by a classifier, compared with scoring each pair separately."""

import math

import numpy as np
import pytest

from moses_compat.measures import windowed_scores
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.text_model_scores import ParallelScores
from phrasetool.errors import DataError
from tests.commands import write
from tests.moses_compat.measures.test_translator_scores import scores_of
from tests.parallel_models import random_parallel_model, toy_lines
from tests.tables import MALFORMED

pytest.importorskip("torch")

PAIRS = sorted(set(zip(*toy_lines(120), strict=True)))
TABLE = b"".join(b"%b ||| %b ||| 0.5 0.25 ||| 0-0 ||| 3 3 1\n" % pair for pair in PAIRS)


def naive_logs(model, pairs):
    """Yield the logarithm of the probability of each pair, scored separately."""
    for source, target in pairs:
        yield math.log(model.probabilities([source], [target])[0])


@pytest.mark.parametrize("window", [7, 1 << 14])
def test_each_entry_has_the_log_of_its_pairs_probability(window, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", window)
    model = random_parallel_model()
    unknown = b"?? ||| !! ||| 0.5 0.25\n"
    source = ParallelScores(model)
    logs, scored = scores_of(write(tmp_path / "t", TABLE + unknown), source)
    assert logs[:-1] == pytest.approx(list(naive_logs(model, PAIRS)), abs=1e-4)
    # Unknown words have no score.
    assert np.isnan(logs[-1])
    assert scored.tolist() == [True] * len(PAIRS) + [False]
    assert (source.column, source.backward, source.signature) == ("p(parallel)", False, model.signature)


def test_escapes_and_factors_do_not_change_scores(tmp_path):
    model = random_parallel_model()
    plain = b"saa sbb ||| taa & tbb ||| 0.5\n"
    escaped = b"saa|N sbb|V ||| taa|N &amp;|X tbb|V ||| 0.5\n"
    first, _ = scores_of(write(tmp_path / "p", plain), ParallelScores(model))
    again, _ = scores_of(write(tmp_path / "e", plain.replace(b"&", b"&amp;")), ParallelScores(model))
    factored, _ = scores_of(write(tmp_path / "f", escaped), ParallelScores(model))
    assert first[0] == again[0] == factored[0]
    different, _ = scores_of(write(tmp_path / "o", plain.replace(b"&", b"tcc")), ParallelScores(model))
    assert different[0] != first[0]


def test_neither_threads_nor_blocks_change_a_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 30)
    path, model = write(tmp_path / "t", TABLE + MALFORMED), random_parallel_model()
    expected, scored = scores_of(path, ParallelScores(model))
    for threads, size in ((1, 64), (2, 500), (2, 1 << 21)):
        again, same = scores_of(path, ParallelScores(model, threads=threads), threads, size)
        assert np.array_equal(again, expected, equal_nan=True)
        assert np.array_equal(same, scored)


def test_long_phrases_are_counted_for_each_table(tmp_path):
    source = ParallelScores(random_parallel_model())
    long = b"saa ||| " + b"taa " * 12 + b"||| 0.5\n"
    scores_of(write(tmp_path / "t", long + TABLE), source)
    # The model reads nine words; toy phrases have at most seven.
    assert source.too_long == 1
    scores_of(write(tmp_path / "u", TABLE), source)
    assert source.too_long == 0


def test_other_languages_and_existing_columns_are_refused(tmp_path):
    model = random_parallel_model()
    foreign = b"".join(b"x%d ||| y%d ||| 0.5 0.25\n" % (i, i) for i in range(300))
    with pytest.raises(DataError, match="trained on other languages"):
        scores_of(write(tmp_path / "f", foreign), ParallelScores(model, FitCheck("m")))
    logs, _ = scores_of(write(tmp_path / "t", TABLE), ParallelScores(model))
    annotated = b"".join(
        line.replace(b"0.5 0.25", b"0.5 0.25 %.6g" % math.exp(log))
        for line, log in zip(TABLE.splitlines(True), logs, strict=True)
    )
    with pytest.raises(DataError, match="column 3 already holds the probabilities of the model m"):
        scores_of(write(tmp_path / "h", annotated), ParallelScores(model, FitCheck("m", appended=True)))
    # The column may exist if scores are not appended, as for pruning.
    again, _ = scores_of(tmp_path / "h", ParallelScores(model, FitCheck("m")))
    assert np.array_equal(again, logs)
