import pytest

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.model_sources import columns_of_model, is_translator, model_source
from moses_compat.measures.similarities import ModelSimilarities
from moses_compat.measures.translator_scores import NeuralScores
from phrasetool.errors import ModelError
from tests.table_translators import translator


def test_each_family_has_its_source(model_folder, tmp_path):
    translator().save(tmp_path / "m")
    assert (is_translator(str(tmp_path / "m")), is_translator(str(model_folder))) == (True, False)
    assert (columns_of_model(str(tmp_path / "m")), columns_of_model(str(model_folder))) == (1, 2)
    source = model_source(FitCheck(str(tmp_path / "m")), "density", 2, "parts")
    assert isinstance(source, NeuralScores)
    assert (source.reading, source.threads) == ("density", 2)
    assert source.signature.endswith("|reading:density")
    assert isinstance(model_source(FitCheck(str(model_folder))), ModelSimilarities)
    with pytest.raises(ModelError, match="no such model folder"):
        model_source(FitCheck(str(tmp_path / "none")))
