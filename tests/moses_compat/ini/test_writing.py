"""A new moses.ini describes the requested model when it is read."""

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.ini.editing import new_moses_ini
from moses_compat.ini.reading import read_moses_ini
from phrasetool.errors import PhraseToolError
from tests.commands import write
from tests.pairwise import pairwise
from tests.variants import for_each

TYPES = {"wbe-msd-bidirectional-fe-allff": 6, "wbe-mslr-bidirectional-fe-allff": 8,
         "wbe-monotonicity-backward-fe-allff": 2, "msd-backward-fe-collapseff": 1}  # fmt: skip


@for_each(("columns", "kind", "limit"), pairwise([1, 4, 7], [None, *TYPES], [-1, 0, 6]))
def test_it_is_the_model_that_was_asked_for(tmp_path, columns, kind, limit):
    more = {"reordering": "/x/r.gz", "reordering_type": kind} if kind else {}
    text = new_moses_ini("/x/t.gz", columns, "/x/lm.arpa", 5, distortion_limit=limit, **more)
    path = str(write(tmp_path / "moses.ini", text.encode()))
    ini = read_moses_ini(path)
    ini.check_weights()
    assert ini.version == 2
    arguments = {feature.name: feature.arguments for feature in ini.features}
    assert arguments["TranslationModel0"]["path"] == "/x/t.gz"
    assert arguments["TranslationModel0"]["num-features"] == str(columns)
    assert (arguments["LM0"]["path"], arguments["LM0"]["order"]) == ("/x/lm.arpa", "5")
    # train-model.perl's default weights.
    expected = {
        "UnknownWordPenalty0": [1], "WordPenalty0": [-1], "PhrasePenalty0": [0.2],
        "TranslationModel0": [0.2] * columns, "Distortion0": [0.3], "LM0": [0.5],
    }  # fmt: skip
    if kind:
        expected["LexicalReordering0"] = [0.3] * TYPES[kind]
        assert arguments["LexicalReordering0"]["num-features"] == str(TYPES[kind])
        assert (arguments["LexicalReordering0"]["path"], arguments["LexicalReordering0"]["type"]) == ("/x/r.gz", kind)
    assert ini.weights == expected
    model = MosesModel.read(path)
    assert (model.table, model.language_models) == ("/x/t.gz", ("/x/lm.arpa",))
    assert model.search.distortion_limit == limit


@pytest.mark.parametrize("place", [0, 2, 4])
def test_paths_that_no_ini_can_hold(place):
    arguments = ["t", 4, "lm", 3, "r"]
    arguments[place] = "a b"
    with pytest.raises(PhraseToolError, match="no blank and no #"):
        new_moses_ini(*arguments)
