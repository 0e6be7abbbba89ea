"""Model scores of entries by the weights of a moses.ini."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.ini.reading import read_moses_ini
from moses_compat.ini.tables import TableWeights, choose_table, weights_of
from phrasetool.errors import DataError
from tests.commands import write
from tests.moses_compat.ini.ini_examples import VERSION_1, VERSION_2


def ini_of(folder, text):
    return read_moses_ini(str(write(folder / "moses.ini", text.encode())))


def test_weights_of_an_ini_of_version_2(tmp_path):
    ini = ini_of(tmp_path, VERSION_2)
    result = weights_of(ini, choose_table(ini, "new.gz", "TranslationModel0"))
    np.testing.assert_array_equal(result.scores, np.array([0.0639497231451392, 0.1], np.float32))
    assert (result.phrase_penalty, result.distortion, result.name) == (0.2, 0.3, "TranslationModel0")
    assert len(weights_of(ini, choose_table(ini, "new.gz", "PhraseDictionaryMemory0")).scores) == 4
    message = r"\[weight\] has no line Fixed=, and Moses would take 1 for every weight; give it one"
    with pytest.raises(DataError, match=message):
        weights_of(ini, choose_table(ini, "new.gz", "Fixed"))


def test_weights_of_an_ini_of_version_1(tmp_path):
    ini = ini_of(tmp_path, VERSION_1)
    result = weights_of(ini, choose_table(ini, "new.gz", "TranslationModel0"))
    np.testing.assert_array_equal(result.scores, np.array([0.0639497231451392, 0.1], np.float32))
    assert result.distortion == ini.weights["Distortion0"][0]


def test_weights_of_an_ini_without_penalty_and_distortion(tmp_path):
    text = "[feature]\nPhraseDictionaryMemory name=T num-features=1 path=t\n[weight]\nT= 0.5\n"
    ini = ini_of(tmp_path, text)
    result = weights_of(ini, ini.features[0])
    assert (result.scores.tolist(), result.phrase_penalty, result.distortion, result.size) == ([0.5], 0.0, 0.0, 0.5)


def test_weights_that_are_overwritten(tmp_path):
    text = "[feature]\nPhraseDictionaryMemory name=T num-features=2 path=t\n[weight]\nT= 0.5 1\n"
    ini = ini_of(tmp_path, f"{text}[weight-overwrite]\nT= x -2\n")
    assert weights_of(ini, ini.features[0]).scores.tolist() == [0.5, -2]


@pytest.mark.parametrize(
    ("more", "message"),
    [("", "has no line PhrasePenalty0="), ("PhrasePenalty0= 1 2\n", "PhrasePenalty0 has 2 weights; expected one")],
)
def test_a_penalty_needs_one_weight(tmp_path, more, message):
    table = "PhraseDictionaryMemory name=T num-features=1 path=t"
    ini = ini_of(tmp_path, f"[feature]\n{table}\nPhrasePenalty\n[weight]\nT= 0.5\n{more}")
    with pytest.raises(DataError, match=message):
        weights_of(ini, ini.features[0])


@given(st.lists(st.tuples(*[st.floats(-100, 1, width=32)] * 3), max_size=12), st.integers(0, 12))
def test_an_entry_adds_its_weighed_logarithms_and_a_penalty(rows, cut):
    weights = TableWeights(np.array([0.5, -0.1, 0.3], np.float32), 0.25)
    logs = np.array(rows, np.float32).reshape(-1, 3)
    total = weights.total(logs)
    assert total.dtype == np.float32
    numbers = weights.scores.tolist()
    expected = [0.25 + math.fsum(w * x for w, x in zip(numbers, row, strict=True)) for row in logs.tolist()]
    np.testing.assert_allclose(total, expected, rtol=1e-6, atol=1e-6)
    # Blocks of any size give the same bytes.
    parts = [weights.total(logs[:cut]), weights.total(logs[cut:])]
    assert np.concatenate(parts).tobytes() == total.tobytes()


def test_the_size_of_all_weights_but_that_of_unknown_words(tmp_path):
    features = "PhraseDictionaryMemory name=T num-features=2 path=t\nUnknownWordPenalty\nWordPenalty\nPhrasePenalty\n"
    weights = "T= 0.5 -0.25\nUnknownWordPenalty0= 100\nWordPenalty0= -2\nPhrasePenalty0= 0.125\n"
    ini = ini_of(tmp_path, f"[feature]\n{features}[weight]\n{weights}")
    result = weights_of(ini, ini.features[0])
    assert (result.size, result.phrase_penalty) == (0.5 + 0.25 + 2 + 0.125, 0.125)
    nothing = ini_of(tmp_path, f"[feature]\n{features}[weight]\nT= 0 0\nWordPenalty0= 0\nPhrasePenalty0= 0\n")
    assert weights_of(nothing, nothing.features[0]).size == 1.0
