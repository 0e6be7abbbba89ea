import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.smt.decoder.features import FeatureSet, ReorderingModel, orientation_of
from tests import naive_decoder as naive
from tests.variants import for_each

KINDS = ["msd", "mslr", "monotonicity", "leftright"]


@given(st.sampled_from(KINDS), st.data())
def test_orientations_agree_with_naive(kind, data):
    bounds = sorted(data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=2)))
    previous = data.draw(st.sampled_from([None, (0, 0), (3, 4), (5, 5), (2, 7)]))
    if previous and not (bounds[1] < previous[0] or bounds[0] > previous[1]):
        return
    number = orientation_of(KINDS.index(kind), *(previous or (-1, -1)), *bounds)
    assert number == naive.orientation(kind, previous, tuple(bounds))
    assert number < naive.ORIENTATIONS[kind]


@pytest.mark.parametrize(
    ("previous", "span", "expected"),
    [
        # M, S, D as in Koehn et al. 2005; `leftright` distinguishes only the two directions.
        (None, (0, 2), {"msd": 0, "mslr": 0, "monotonicity": 0, "leftright": 0}),
        (None, (1, 2), {"msd": 2, "mslr": 3, "monotonicity": 1, "leftright": 0}),
        ((0, 1), (2, 2), {"msd": 0, "mslr": 0, "monotonicity": 0, "leftright": 0}),
        ((2, 3), (0, 1), {"msd": 1, "mslr": 1, "monotonicity": 1, "leftright": 1}),
        ((4, 5), (0, 1), {"msd": 2, "mslr": 2, "monotonicity": 1, "leftright": 1}),
        ((0, 1), (3, 3), {"msd": 2, "mslr": 3, "monotonicity": 1, "leftright": 0}),
    ],
)
def test_orientations_of_known_cases(previous, span, expected):
    for kind, number in expected.items():
        assert orientation_of(KINDS.index(kind), *(previous or (-1, -1)), *span) == number
        assert naive.orientation(kind, previous, span) == number


@for_each(
    ("text", "columns", "weights", "backward", "forward"),
    [
        ("wbe-msd-bidirectional-fe-allff", 6, 6, 0, 3),
        ("wbe-msd-bidirectional-fe", 6, 6, 0, 3),
        ("phrase-msd-backward-fe-collapseff", 3, 1, 0, -1),
        ("msd-backward-fe", 3, 3, 0, -1),
        ("msd-fe", 3, 3, 0, -1),
        ("mslr-forward-fe-collapseff", 4, 1, -1, 0),
        ("wbe-mslr-bidirectional-fe-allff", 8, 8, 0, 4),
        ("monotonicity-bidirectional-fe", 4, 4, 0, 2),
        ("leftright-forward-fe", 2, 2, -1, 0),
    ],
)
def test_types(text, columns, weights, backward, forward):
    model = ReorderingModel.parse(text)
    assert (model.columns, model.weights) == (columns, weights)
    assert (model.first_column("backward"), model.first_column("forward")) == (backward, forward)
    assert len(model.column_weights) == columns
    assert set(model.column_weights.tolist()) == set(range(weights))
    assert not model.source_only


def test_a_type_of_the_source_alone():
    assert ReorderingModel.parse("wbe-msd-bidirectional-f-allff").source_only


@pytest.mark.parametrize(
    "text",
    [
        "", "wbe", "wbe-bidirectional-fe", "hier-msd-bidirectional-fe", "msd-sideways-fe",
        "wbe-msd-bidirectional-fe-collapseff", "msd", "wbe-msd-backward-allff",
    ],
)  # fmt: skip
def test_unsupported_types_are_refused(text):
    with pytest.raises(ValueError, match="reordering type"):
        ReorderingModel.parse(text)


def test_the_layout_of_a_feature_vector():
    features = FeatureSet((4,), ReorderingModel.parse("msd-bidirectional-fe"), {"LM": "KENLM0"})
    assert list(features.sizes) == [
        "LexicalReordering", "Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel",
    ]  # fmt: skip
    assert len(features) == 14
    assert features.slices["LexicalReordering"] == slice(0, 6)
    assert features.slices["TranslationModel"] == slice(10, 14)
    assert (features.name("LM"), features.name("Distortion")) == ("KENLM0", "Distortion0")
    # The weights that train-model.perl writes.
    assert features.default_weights().tolist() == [*[0.3] * 6, 0.3, 0.5, -1, 0.2, *[0.2] * 4]
    assert len(FeatureSet((5,))) == 9
