import sys
from dataclasses import dataclass
from fractions import Fraction

import pytest

from phrasetool.options import checked, declared_options, option, option_values, registered, require, with_options


@dataclass(frozen=True)
class Chosen:
    inner: int = 3
    size: int = option(4, "How many.")
    share: float = option(0.5, "How much.")
    way: str = option("straight", "Which way.")


@dataclass(frozen=True)
class Nothing:
    pass


def test_options_are_the_fields_with_a_help_text_in_order():
    declared = declared_options(Chosen)
    assert list(declared) == ["size", "share", "way"]
    assert (declared["share"].default, declared["share"].metadata["help"]) == (0.5, "How much.")
    assert option_values(Chosen(share=1.0)) == {"size": 4, "share": 1.0, "way": "straight"}


def test_what_is_not_given_has_its_default():
    assert with_options(Chosen, "chosen", {"size": 9}) == Chosen(size=9)
    # Read from a file, 1.0 may be written as 1.
    made = with_options(Chosen, "chosen", {"share": 1})
    assert type(made.share) is float


def test_options_that_are_not_declared_are_refused():
    with pytest.raises(ValueError, match=r"^chosen has no option inner; it takes size, share, way$"):
        with_options(Chosen, "chosen", {"inner": 1})
    with pytest.raises(ValueError, match=r"^this has no option size; it takes no options$"):
        with_options(Nothing, "this", {"size": 1})


@pytest.mark.parametrize(
    ("value", "default", "message"),
    [
        (True, 1, "x is True, expected a whole number"),
        (True, 1.0, "x is True, expected a finite number"),
        (2.0, 1, "x is 2.0, expected a whole number"),
        ("2", 1.0, "x is '2', expected a finite number"),
        (float("inf"), 1.0, "x is inf, expected a finite number"),
        (float("nan"), 1.0, "x is nan, expected a finite number"),
        (1, "a", "x is 1, expected text"),
        (1, True, "x is 1, expected true or false"),
    ],
)
def test_values_of_another_type_are_refused(value, default, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        checked("x", value, default)


def test_a_class_is_imported_when_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "registered_late.py").write_text("class Late:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = {"late": "registered_late:Late", "fraction": "fractions:Fraction"}
    assert registered(registry, "fraction", "number") is Fraction
    assert "registered_late" not in sys.modules
    assert registered(registry, "late", "number").__name__ == "Late"
    del sys.modules["registered_late"]


def test_a_name_that_is_none_is_told_what_there_is():
    with pytest.raises(ValueError, match=r"^unknown number 'third'; expected one of first, second$"):
        registered({"first": "a:B", "second": "c:D"}, "third", "number")


def test_what_is_required():
    require(Chosen(), True, "share", "more than 0")
    with pytest.raises(ValueError, match=r"^share is 0\.0, expected more than 0$"):
        require(Chosen(share=0.0), False, "share", "more than 0")
