import numpy as np

from phrasetool.pruning.measures import COUNTS, USES
from phrasetool.pruning.methods import parse_method
from tests.phrasetool.pruning.measured_tables import FACTORS, MEASURES, SCORES
from tests.variants import for_each


@for_each("name", sorted(SCORES))
def test_scores_and_factor(name):
    method = parse_method(name)
    scores = method.scores(MEASURES)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, SCORES[name], rtol=1e-6)
    factor = method.parts[0].factor(MEASURES)
    assert factor.dtype == np.float32
    np.testing.assert_allclose(factor[:4], FACTORS[name], rtol=1e-5)


def test_usage_without_uses_or_without_extracted_counts():
    nothing = np.zeros(5, np.float32)
    for measure in (USES, COUNTS):
        measures = MEASURES.with_columns({measure: nothing})
        factor = parse_method("usage").parts[0].factor(measures)
        assert factor.tolist() == measures[USES].tolist()


def test_random_is_fixed_by_its_seed():
    first, same, other_seed = (parse_method("random", seed=seed).scores(MEASURES) for seed in (1, 1, 2))
    assert first.tolist() == same.tolist() != other_seed.tolist()
    assert ((first[:4] >= 0) & (first[:4] < 1)).all()
