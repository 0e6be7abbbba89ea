import importlib.util

import pytest

from phrasetool.models.families import FAMILIES, saved_families
from phrasetool.models.saved_model import SavedModel
from phrasetool.options import imported


@pytest.mark.parametrize("name", saved_families())
def test_a_family_names_the_class_of_its_models(name):
    model = imported(FAMILIES[name].model)
    assert issubclass(model, SavedModel)
    assert model.name == name


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_a_family_names_its_training(family):
    assert importlib.util.find_spec(f"phrasetool_cli.train.{family.training}")
    assert family.summary.startswith("Train ")
    assert family.description.split(" ")[0] in ("a", "an")
