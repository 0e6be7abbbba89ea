import click
import pytest

from phrasetool_cli.parameter_types import (
    FiniteRange,
    Share,
    column_pair,
    factor_counts,
    finite_number,
    names_of,
    score_threshold,
    size_in_bytes,
    threshold_sweep,
)
from tests.variants import for_each


@for_each(
    ("kind", "text", "value"),
    [
        (names_of(("bleu", "ter")), "TER, bleu,ter", ("ter", "bleu")),
        (size_in_bytes, "12", 12),
        (size_in_bytes, "3k", 3 << 10),
        (size_in_bytes, "2GB", 2 << 30),
        (factor_counts, "1,2", (1, 2)),
        (finite_number, "-1e3", -1000.0),
        (column_pair, "5,6", (4, 5)),
        (threshold_sweep, "0.4:0.6:0.1", [0.4, 0.5, 0.6]),
        (Share(), "0.3", 0.3),
        (Share(), "30%", 0.3),
        (Share(), "30 %", 0.3),
        (Share(), "0", 0.0),
        (Share(min_open=True), "100%", 1.0),
    ],
)
def test_values(kind, text, value):
    assert kind(text) == value


@for_each(
    ("kind", "text", "message"),
    [
        (names_of(("bleu", "ter")), "bleu,rouge", "'rouge' is not one of bleu, ter"),
        (size_in_bytes, "2 GB", "'2 GB' is not a number of bytes, as in 500M or 2G"),
        (size_in_bytes, "-1", "is not a number of bytes"),
        (size_in_bytes, "0", "is not a number of bytes"),
        (factor_counts, "1", "'1' is not two counts of factors, as in 1,2"),
        (factor_counts, "0,1", "is not two counts"),
        (finite_number, "nan", "'nan' is not a finite number"),
        (column_pair, "0,1", "'0,1' is not two column numbers from 1, as in 5,6"),
        (threshold_sweep, "0:1:0", "'0:1:0' is not FIRST:LAST:STEP, as in 0.4:0.8:0.1"),
        (threshold_sweep, "0.8:0.75:0.2", "'0.8:0.75:0.2' is not FIRST:LAST:STEP, as in 0.4:0.8:0.1"),
        (Share(), "30", "30 is not in the range 0<=x<=1; for 30 in a hundred write 30%"),
        (Share(), "130%", r"1.3 is not in the range 0<=x<=1\.$"),
        (Share(min_open=True), "0%", "is not in the range 0<x<=1"),
        (Share(), "-1", "is not in the range"),
        (Share(), "nan", "'nan' is not a share; expected a number as in 0.3, or 30%"),
        (Share(), "%", "'%' is not a share"),
        (score_threshold, "nan", "a threshold must be a number"),
        (finite_number, "much", "is not a finite number"),
    ],
)
def test_invalid_values(kind, text, message):
    with pytest.raises(click.BadParameter, match=message):
        kind(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "x"])
def test_a_range_of_finite_numbers(text):
    kind = FiniteRange(0)
    assert kind.convert("2.5", None, None) == 2.5
    with pytest.raises(click.BadParameter, match="is not"):
        kind.convert(text, None, None)
