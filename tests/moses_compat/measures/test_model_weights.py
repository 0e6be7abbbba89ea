"""What a moses.ini says an entry is worth."""

import numpy as np
import pytest

from moses_compat.ini.reading import read_moses_ini
from moses_compat.ini.tables import choose_table
from moses_compat.measures.model_weights import weights_of
from phrasetool.errors import DataError
from tests.commands import write
from tests.moses_compat.ini.ini_examples import VERSION_1, VERSION_2


def ini_of(folder, text):
    return read_moses_ini(str(write(folder / "moses.ini", text.encode())))


def test_weights_of_an_ini_of_version_2(tmp_path):
    ini = ini_of(tmp_path, VERSION_2)
    found = weights_of(ini, choose_table(ini, "new.gz", "TranslationModel0"))
    np.testing.assert_array_equal(found.scores, np.array([0.0639497231451392, 0.1], np.float32))
    assert (found.phrase_penalty, found.distortion, found.name) == (0.2, 0.3, "TranslationModel0")
    assert len(weights_of(ini, choose_table(ini, "new.gz", "PhraseDictionaryMemory0")).scores) == 4
    message = r"\[weight\] has no line Fixed=, and Moses would take 1 for every weight; give it one"
    with pytest.raises(DataError, match=message):
        weights_of(ini, choose_table(ini, "new.gz", "Fixed"))


def test_weights_of_an_ini_of_version_1(tmp_path):
    ini = ini_of(tmp_path, VERSION_1)
    found = weights_of(ini, choose_table(ini, "new.gz", "TranslationModel0"))
    np.testing.assert_array_equal(found.scores, np.array([0.0639497231451392, 0.1], np.float32))
    assert found.distortion == ini.weights["Distortion0"][0]


def test_weights_of_an_ini_without_penalty_and_distortion(tmp_path):
    text = "[feature]\nPhraseDictionaryMemory name=T num-features=1 path=t\n[weight]\nT= 0.5\n"
    ini = ini_of(tmp_path, text)
    found = weights_of(ini, ini.features[0])
    assert (found.scores.tolist(), found.phrase_penalty, found.distortion, found.size) == ([0.5], 0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("more", "message"),
    [("", "has no line PhrasePenalty0="), ("PhrasePenalty0= 1 2\n", "PhrasePenalty0 has 2 weights; expected one")],
)
def test_a_penalty_needs_one_weight(tmp_path, more, message):
    table = "PhraseDictionaryMemory name=T num-features=1 path=t"
    ini = ini_of(tmp_path, f"[feature]\n{table}\nPhrasePenalty\n[weight]\nT= 0.5\n{more}")
    with pytest.raises(DataError, match=message):
        weights_of(ini, ini.features[0])
