import numpy as np
import pytest

from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.model_sources import columns_of_model, model_source, model_sources, sources_of_model
from moses_compat.measures.similarities import SYNTAX_COLUMNS, LikelihoodRequest
from moses_compat.measures.text_model_scores import SyntaxLikelihood, SyntaxScores
from moses_compat.measures.windowed_scores import TextPiece
from phrasetool.syntax.model import SyntaxModel
from tests.syntax_models import toy_lines

SOURCES, TARGETS = ([line.encode() for line in side] for side in toy_lines(20))
PIECE = TextPiece([*SOURCES, "☃".encode()], [*TARGETS, b"Die"], np.arange(21, dtype=np.uint32))


def test_written_logarithms_and_similarities_for_rules(syntax_folder):
    source = model_source(FitCheck(str(syntax_folder)))
    assert isinstance(source, SyntaxScores)
    logs = source.score(PIECE)
    cosines = SyntaxModel.load(syntax_folder).cosines(SOURCES, TARGETS)
    np.testing.assert_allclose(logs[:-1], cosines - 1, atol=1e-6)
    np.testing.assert_allclose(source.similarities(logs)[:-1], cosines, atol=1e-6)
    assert source.scored_entries(PIECE, logs).scored.tolist() == [True] * 20 + [False]
    assert source.too_long == 0


@pytest.mark.parametrize(("columns", "count"), [("cosine", 1), ("likelihood", 2), ("all", 3)])
def test_the_request_determines_the_number_of_columns(columns, count, syntax_folder, model_folder, toy_tagger_folder):
    request = LikelihoodRequest(SYNTAX_COLUMNS[columns], str(toy_tagger_folder), ("en", "de"))
    assert columns_of_model(str(syntax_folder), request) == sources_of_model(str(syntax_folder), request) == count
    assert (columns_of_model(str(model_folder), request), sources_of_model(str(model_folder), request)) == (2, 1)
    sources = model_sources(FitCheck(str(syntax_folder)), "normalised", 1, [None] * count, request)
    assert len({source.signature + source.column for source in sources}) == count
    likelihoods = [source for source in sources if isinstance(source, SyntaxLikelihood)]
    assert len(likelihoods) == 2 * (columns != "cosine")
    for source in likelihoods:
        logs = source.score(PIECE)
        assert (logs[:-1] < 0).all()
        np.testing.assert_allclose(source.similarities(logs)[:-1], np.exp(logs[:-1]), rtol=1e-6)


def test_an_unknown_language_is_refused(syntax_folder, toy_tagger_folder):
    request = LikelihoodRequest(SYNTAX_COLUMNS["likelihood"], str(toy_tagger_folder), ("en", "fr"))
    with pytest.raises(ValueError, match="unknown language 'fr'"):
        model_sources(FitCheck(str(syntax_folder)), "normalised", 1, [None] * 2, request)
