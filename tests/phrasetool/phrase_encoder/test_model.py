import pytest

from phrasetool.phrase_encoder.kinds import MeanMax, Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import Vocabulary
from tests.conftest import random_encoder, random_parameters


def test_identity_tells_models_apart(any_model):
    model = any_model
    parts = [model.source_vocabulary, model.target_vocabulary, model.source, model.target, model.kind]
    assert BilingualModel(*parts).identity == model.identity
    words = [*model.source_vocabulary.words[:-1], b"other"]
    other_words = BilingualModel(Vocabulary(words), *parts[1:])
    other = random_encoder(model.kind, len(model.target_vocabulary), model.dimension, 99)
    other_weights = BilingualModel(*parts[:3], other, model.kind)
    assert len({model.identity, other_words.identity, other_weights.identity}) == 3
    assert len(model.identity) == 8


def test_identity_depends_on_the_options_of_the_encoder():
    vocabulary = Vocabulary([b"<unk>", b"a"])
    kinds = MeanMax(word_units=6, heads=2), MeanMax(word_units=6, heads=1)
    sides = [random_encoder(kinds[0], 2, 8, seed) for seed in (1, 2)]
    result = {BilingualModel(vocabulary, vocabulary, *sides, kind).identity for kind in kinds}
    assert len(result) == 2


def test_parts_must_fit(model):
    other_dimension = random_parameters(14, 4, 0)
    with pytest.raises(ValueError, match="dimension"):
        BilingualModel(model.source_vocabulary, model.target_vocabulary, model.source, other_dimension, Rae())
    with pytest.raises(ValueError, match="word vectors"):
        BilingualModel(model.source_vocabulary, Vocabulary([b"<unk>"]), model.source, model.target, Rae())


@pytest.mark.parametrize(
    ("encoder", "training", "label"),
    [
        ("rae", {"loss": "max-margin"}, "brae"),
        ("rae", {"loss": "in-batch", "iterations": 25}, "rae+in-batch"),
        ("mean-max", {"loss": "max-margin"}, "mean-max+max-margin"),
        # Models that do not record a loss, or were only pre-trained, are named after their encoder.
        ("rae", {}, "rae"),
        ("rae", {"loss": "of a later version"}, "rae"),
        ("rae", {"loss": 1}, "rae"),
        ("rae", {"loss": "in-batch", "iterations": 0, "pretrain_iterations": 5}, "rae"),
    ],
)
def test_signatures_name_the_encoder_and_the_loss(encoder, training, label):
    kind = Rae() if encoder == "rae" else MeanMax(word_units=6, heads=2)
    vocabulary = Vocabulary([b"<unk>", b"a"])
    sides = [random_encoder(kind, 2, 8, seed) for seed in (1, 2)]
    model = BilingualModel(vocabulary, vocabulary, *sides, kind, training)
    assert model.label == label
    assert model.signature == f"model:{label}-{model.identity}|n:8"
    column = "brae" if label == "brae" else encoder.replace("-", "_")
    assert model.columns == (f"{column}_st", f"{column}_ts")
