import sys
from fractions import Fraction

import pytest

from phrasetool.registry import registered


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
