import json

import numpy as np
import pytest

from phrasetool.errors import ModelError
from phrasetool.models.storage import load_model, load_parallel_model, save_model
from phrasetool.tagger.model import TaggerModel, load_tagger
from phrasetool.tagger.network import TaggerNetwork
from phrasetool.tagger.tagged_sentences import UPOS
from phrasetool.tagger.tagger_shape import TaggerShape

TAGS = (*UPOS, "ADP+DET")
SHAPE = TaggerShape(31, 4, 3, 1, len(TAGS))


def tagger(languages=("de", "en"), tags=TAGS):
    return TaggerModel(languages, tags, SHAPE, TaggerNetwork(SHAPE).arrays(), {"epochs": 1})


def test_it_comes_back_as_it_was_saved(tmp_path):
    model = tagger()
    save_model(model, tmp_path)
    again = load_tagger(tmp_path)
    assert (again.languages, again.tags, again.shape) == (model.languages, model.tags, model.shape)
    assert again.training == {"epochs": 1}
    assert again.signature == model.signature == load_model(tmp_path).signature
    assert again.tag([["Haus", "im"], []], "de") == model.tag([["Haus", "im"], []], "de")
    with pytest.raises(ModelError, match="a tagger; this needs a classifier of sentence pairs"):
        load_parallel_model(tmp_path)


def test_unknown_languages_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown language 'fr'; the tagger knows de, en"):
        tagger().tag([["maison"]], "fr")


def test_identity_tells_weights_tags_and_languages_apart():
    other = tagger()
    other.arrays["output.bias"] = other.arrays["output.bias"] + np.float32(1)
    found = {tagger().identity, other.identity, tagger(("de",)).identity, tagger(tags=(*UPOS, "A+B")).identity}
    assert len(found) == 4
    assert tagger().identity == tagger().identity


def test_parts_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ValueError, match="17 tags, expected 18"):
        tagger(tags=UPOS)
    save_model(tagger(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "shape": {"units": 3}}))
    with pytest.raises(ModelError, match=r"config\.json does not describe a tagger"):
        load_tagger(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**config, "shape": {**config["shape"], "units": 4}}))
    with pytest.raises(ModelError, match="weight_ih_l0 is float32 of shape"):
        load_tagger(tmp_path)
