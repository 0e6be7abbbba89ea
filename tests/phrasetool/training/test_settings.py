from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from phrasetool.options import option
from phrasetool.training.settings import DeclaredSettings


@dataclass(frozen=True)
class Sizes(DeclaredSettings):
    kind: ClassVar[str] = "toy"
    preset_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = {"large": {"units": 9, "both": False}}

    preset: str = option("small", "")
    units: int = option(3, "")
    rate: float = option(0.5, "")
    both: bool = True
    seed: int = 1


def test_what_is_said_stands_above_the_preset_and_that_above_the_defaults():
    assert Sizes.from_options({}) == Sizes()
    assert Sizes.from_options({"preset": "large"}) == Sizes("large", 9, both=False)
    assert Sizes.from_options({"preset": "large", "units": 4}, both=True, seed=2) == Sizes("large", 4, seed=2)
    assert Sizes.from_options({"preset": "large"}, both=None, seed=None) == Sizes("large", 9, both=False)
    assert Sizes.from_options({"rate": 1}).as_dict() == {
        "preset": "small", "units": 3, "rate": 1.0, "both": True, "seed": 1,
    }  # fmt: skip


def test_other_options_and_types_are_refused():
    with pytest.raises(ValueError, match="toy has no option both; it takes preset, units, rate"):
        Sizes.from_options({"both": False})
    with pytest.raises(ValueError, match=r"units is 2\.5, expected a whole number"):
        Sizes.from_options({"units": 2.5})
