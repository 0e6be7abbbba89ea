from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from moses_compat.pages.drawing import Series, draw_bars, draw_histogram, draw_outlines, draw_shares, short_number


def titles(drawing, kind):
    root = ElementTree.fromstring(drawing)
    return [item.find("title").text for item in root.iter("g") if item.get("class") == kind]


def texts(drawing):
    return {item.text for item in ElementTree.fromstring(drawing).iter("text")}


@pytest.mark.parametrize("logarithmic", [False, True])
def test_each_bar_has_its_number_and_any_text_is_shown(logarithmic):
    series = [Series("kept", [3, 0, 12000]), Series("<b>", [0, 1, 2])]
    drawn = draw_bars("x", "label", ["a", "$x$", "<i>"], series, "of & what", logarithmic)
    result = titles(drawn, "bar")
    # Zero has no bar on a logarithmic axis.
    expected = {"a: 3 kept", "<i>: 12,000 kept", "$x$: 1 <b>", "<i>: 2 <b>"}
    assert expected <= set(result) <= expected | {"a: 0 <b>", "$x$: 0 kept"}
    assert {"a", "$x$", "<i>", "of & what"} <= texts(drawn)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("values", [[], [0, 0]])
def test_bars_without_data(values, logarithmic):
    assert draw_bars("x", "y", ["a", "b"][: len(values)], [Series("s", values)], "z", logarithmic).startswith("<svg")


def test_histograms_and_curves_have_their_numbers():
    series = [Series("kept", [1, 2]), Series("removed", [30, 4])]
    bars = titles(draw_histogram("x", "y", [-1.0, 0.0, 1.0], series, "similarity"), "bar")
    assert sorted(set(bars)) == ["0.00 to 1.00: 2 kept, 4 removed", "−1.00 to 0.00: 1 kept, 30 removed"]
    lines = titles(draw_outlines("x", "y", [-1.0, 0.0, 1.0], series, "similarity"), "line")
    assert lines == ["kept: 3", "removed: 34"]
    points = titles(draw_shares("x", "y", [0.4, 0.5], [Series("of all", [0.25, 0.5])], "threshold"), "point")
    assert points == ["0.40: 25 % of all", "0.50: 50 % of all"]


def test_short_numbers():
    assert [short_number(value) for value in (0, 999, 12000, 2.5e6, 3e9)] == ["0", "999", "12k", "2.5M", "3G"]
