from dataclasses import replace

import pytest

from phrasetool.pruning.methods import parse_method
from tests.phrasetool.pruning.measured_tables import MEASURES


@pytest.mark.parametrize(
    ("text", "limit"), [("a+e", 5.001), ("a-e", 4.999), ("5", 5.0), ("1e+1", 10.0), ("1e-2", 0.01)]
)
def test_thresholds_of_significance(text, limit):
    measures = replace(MEASURES, alpha=5.0)
    method = parse_method(f"count:2+significance:{text}+semantic:-1", None)
    assert (method.combine, method.names) == ("intersection", ("count", "significance", "semantic"))
    assert method.thresholds[1].value(5.0) == pytest.approx(limit)
    assert method.below(method.criterion_scores(measures), 5.0)[:4, 1].tolist() == [
        scores < limit for scores in (30, 5, 0, 12)
    ]
    # With one sentence pair, alpha is 0.
    assert parse_method("significance:a-e").thresholds[0].value(0.0) == 0
