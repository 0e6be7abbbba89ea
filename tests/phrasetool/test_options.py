import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from phrasetool.options import (
    DeclaredSettings,
    Options,
    checked,
    declared_options,
    limited,
    option,
    option_values,
    registered,
    require,
    with_options,
)


@dataclass(frozen=True)
class Chosen(Options):
    inner: int = limited(3, ge=2)
    free: object = None
    size: int = option(4, "How many.", ge=1, le=9)
    share: float = option(0.5, "How much.", ge=0, lt=1)
    rate: float = option(0.1, "How fast.", gt=0)
    way: str = option("straight", "Which way.", choices=("straight", "round"))


@dataclass(frozen=True)
class Nothing(Options):
    pass


def test_options_are_the_fields_with_a_help_text_in_order():
    declared = declared_options(Chosen)
    assert list(declared) == ["size", "share", "rate", "way"]
    assert (declared["share"].default, declared["share"].metadata["help"]) == (0.5, "How much.")
    assert option_values(Chosen(share=0.25)) == {"size": 4, "share": 0.25, "rate": 0.1, "way": "straight"}


def test_missing_options_have_their_defaults():
    assert with_options(Chosen, "chosen", {"size": 9}) == Chosen(size=9)
    # A file may contain 0 where 0.0 is meant.
    chosen = with_options(Chosen, "chosen", {"share": 0})
    assert type(chosen.share) is float


def test_options_that_are_not_declared_are_refused():
    with pytest.raises(ValueError, match=r"^chosen has no option inner; it takes size, share, rate, way$"):
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "size is 0, expected from 1 to 9"),
        ({"size": 10}, "size is 10, expected from 1 to 9"),
        ({"share": 1}, "share is 1.0, expected at least 0 and less than 1"),
        ({"share": -0.5}, "share is -0.5, expected at least 0 and less than 1"),
        ({"rate": 0}, "rate is 0.0, expected more than 0"),
        ({"way": "back"}, "way is 'back', expected one of straight, round"),
        ({"inner": 1}, "inner is 1, expected at least 2"),
        ({"size": "4"}, "size is '4', expected a whole number"),
    ],
)
def test_values_that_are_not_valid_are_refused(values, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Chosen(**values)


def test_the_bounds_themselves_are_valid():
    assert Chosen(inner=2, free=object, size=1, share=0.0, rate=1e-9, way="round").size == 1
    assert Chosen(size=9).size == 9


def test_a_registered_class_is_imported_on_first_use(tmp_path, monkeypatch):
    (tmp_path / "registered_late.py").write_text("class Late:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = {"late": "registered_late:Late", "fraction": "fractions:Fraction"}
    assert registered(registry, "fraction", "number") is Fraction
    assert "registered_late" not in sys.modules
    assert registered(registry, "late", "number").__name__ == "Late"
    del sys.modules["registered_late"]


def test_an_unknown_name_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match=r"^unknown number 'third'; expected one of first, second$"):
        registered({"first": "a:B", "second": "c:D"}, "third", "number")


def test_require():
    require(Chosen(), True, "share", "more than 0")
    with pytest.raises(ValueError, match=r"^share is 0\.0, expected more than 0$"):
        require(Chosen(share=0.0), False, "share", "more than 0")


@dataclass(frozen=True)
class Sizes(DeclaredSettings):
    kind: ClassVar[str] = "toy"
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = {"large": {"units": 9, "both": False}}

    preset: str = option("small", "")
    units: int = option(3, "")
    rate: float = option(0.5, "")
    both: bool = True
    seed: int = 1


def test_explicit_values_override_the_preset_and_the_preset_overrides_the_defaults():
    assert Sizes.from_options({}) == Sizes()
    assert Sizes.from_options({"preset": "large"}) == Sizes("large", 9, both=False)
    assert Sizes.from_options({"preset": "large", "units": 4}, both=True, seed=2) == Sizes("large", 4, seed=2)
    assert Sizes.from_options({"preset": "large"}, both=None, seed=None) == Sizes("large", 9, both=False)
    assert Sizes.from_options({"rate": 1}).as_dict() == {
        "preset": "small", "units": 3, "rate": 1.0, "both": True, "seed": 1,
    }  # fmt: skip


def test_unknown_options_and_wrong_types_are_refused():
    with pytest.raises(ValueError, match="toy has no option both; it takes preset, units, rate"):
        Sizes.from_options({"both": False})
    with pytest.raises(ValueError, match=r"units is 2\.5, expected a whole number"):
        Sizes.from_options({"units": 2.5})
