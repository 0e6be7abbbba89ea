import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.neural.neural_scores import NeuralScores
from moses_compat.measures.neural.neural_similarities import NeuralSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests.commands import write
from tests.moses_compat.measures.neural.test_neural_scores import scores_of
from tests.table_translators import backward_translator, translator
from tests.tables import TABLES

pytest.importorskip("torch")


def similarities(path, *models):
    with Input(str(path)) as table:
        reader = EntryReader(table, TableScan(block_bytes=500), NeuralSimilarities(tuple(map(NeuralScores, models))))
        found = [reader(item).scores for item in reader.items()]
    return np.concatenate([part.similarities for part in found]), np.concatenate([part.opinion for part in found])


def test_they_are_mean_probabilities_of_words(tmp_path):
    path = write(tmp_path / "t", TABLES["latin-1"])
    both, opinion = similarities(path, translator(), backward_translator())
    turned, _ = similarities(path, backward_translator(), translator())
    assert np.array_equal(both, turned)
    one, _ = similarities(path, translator())
    assert np.array_equal(one[:, 0], one[:, 1])
    lines = [line.split(b" ||| ") for line in TABLES["latin-1"].splitlines()]
    for column, model in enumerate((translator(), backward_translator())):
        logs, says = scores_of(path, NeuralScores(model))
        lengths = [len(line[1 - column].split()) + 1 for line in lines]
        assert (says >= opinion).all()
        assert both[opinion, column] == pytest.approx(np.exp(logs / lengths)[opinion], rel=1e-5)
    assert 0 < opinion.sum() < len(opinion)
    assert not both[~opinion].any()


def test_two_models_of_one_direction_are_refused(tmp_path):
    path = write(tmp_path / "t", TABLES["latin-1"])
    with pytest.raises(DataError, match=r"both models give p\(target \| source\)"):
        similarities(path, translator(), translator(seed=2))
