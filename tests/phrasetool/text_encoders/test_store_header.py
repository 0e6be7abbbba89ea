import pytest

from phrasetool.text_encoders.store_header import header_fault

GOOD = {"encoders": ["a", "b"], "phrases": [3, 0], "dimension": 4, "over_long": 0, "made": ["source.centred"],
        "fits": {"cosine": {"pairs": 2, "quantiles": {"0.5": 0.1}, "auc": None}}}  # fmt: skip


def test_as_it_is_written():
    assert header_fault(GOOD) is None
    assert header_fault({"encoders": ["a", "a"], "phrases": [0, 0], "dimension": 1}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoders", ["a"]), ("encoders", "ab"),
        ("phrases", None), ("phrases", [1]), ("phrases", [1, -1]), ("phrases", [1, 1.0]), ("phrases", [True, 1]),
        ("dimension", 0), ("dimension", "4"), ("dimension", None), ("over_long", None), ("made", {}), ("fits", []),
        ("fits", {"x": 1}), ("fits", {"x": {"pairs": 1}}), ("fits", {"x": {"pairs": 1, "quantiles": [], "auc": 1}}),
    ],
)  # fmt: skip
def test_what_it_is_not(name, value):
    """As fuzzing found them: each was a traceback."""
    assert f"`{name}` " in header_fault({**GOOD, name: value})
