from phrasetool.smt.decoder.features import FeatureSet
from phrasetool.smt.decoder.orientation import ReorderingModel


def test_the_layout_of_a_feature_vector():
    features = FeatureSet((4,), ReorderingModel.parse("msd-bidirectional-fe"), {"LM": "KENLM0"})
    assert list(features.sizes) == [
        "LexicalReordering", "Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel",
    ]  # fmt: skip
    assert len(features) == 14
    assert features.slices["LexicalReordering"] == slice(0, 6)
    assert features.slices["TranslationModel"] == slice(10, 14)
    assert (features.name("LM"), features.name("Distortion")) == ("KENLM0", "Distortion0")
    # What train-model.perl writes.
    assert features.default_weights().tolist() == [*[0.3] * 6, 0.3, 0.5, -1, 0.2, *[0.2] * 4]
    assert len(FeatureSet((5,))) == 9
