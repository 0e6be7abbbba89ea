import click
import pytest

from phrasetool_cli.shared.parameter_types import Factors, FiniteNumber, NamesOf, Size


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (NamesOf(("bleu", "ter")), "TER, bleu,ter", ("ter", "bleu")),
        (Size(), "12", 12),
        (Size(), "3k", 3 << 10),
        (Size(), "2GB", 2 << 30),
        (Factors(), "1,2", (1, 2)),
        (FiniteNumber(), "-1e3", -1000.0),
    ],
)
def test_values(kind, text, value):
    assert kind.convert(text, None, None) == value
    # What was converted already stays.
    assert kind.convert(value, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (NamesOf(("bleu", "ter")), "bleu,rouge", "'rouge' is not one of bleu, ter"),
        (Size(), "2 GB", "'2 GB' is not a number of bytes, as in 500M or 2G"),
        (Size(), "-1", "is not a number of bytes"),
        (Factors(), "1", "'1' is not two counts of factors, as in 1,2"),
        (Factors(), "0,1", "is not two counts"),
        (FiniteNumber(), "nan", "'nan' is not a finite number"),
        (FiniteNumber(), "much", "is not a finite number"),
    ],
)
def test_what_is_none(kind, text, message):
    with pytest.raises(click.BadParameter, match=message):
        kind.convert(text, None, None)
