from xml.etree import ElementTree

import pytest

from moses_compat.experiments.report.drawing import printable
from moses_compat.experiments.report.phrase_figures import draw_histogram, draw_map, text_width
from tests.moses_compat.experiments.report.report_frames import (
    NASTY,
    histogram,
    phrase_map,
)


def titles(root, kind):
    return [item.findtext("title") for item in root.iter("g") if item.get("class") == kind]


def all_text(root):
    return [element.text for element in root.iter("text")]


def test_histogram_bars_say_their_numbers():
    frame = histogram(("only",))
    root = ElementTree.fromstring(draw_histogram(frame, "h"))
    bars = titles(root, "bar")
    assert len(bars) == 2 * 2 * 8
    assert bars.count("0.75 to 1.00: 70 kept, 27 removed") == 4
    assert {"source to target", "target to source"} <= set(all_text(root))


@pytest.mark.parametrize("narrow", [False, True])
def test_map_shows_any_phrase(narrow):
    root = ElementTree.fromstring(draw_map(phrase_map(), "m", narrow))
    found = titles(root, "source")
    assert len(found) == 60
    for phrase in NASTY:
        assert any(title.startswith(f"{printable(phrase)} – <{printable(phrase)}> (") for title in found)
    named = set(all_text(root))
    assert len(named) > 10
    assert named <= {printable(phrase) for phrase in phrase_map()["phrase"]}


def test_map_of_one_phrase_and_of_none():
    frame = phrase_map()
    assert "&apos;s" in "".join(all_text(ElementTree.fromstring(draw_map(frame[:1], "m"))))
    assert ElementTree.fromstring(draw_map(frame[:0], "m")).tag == "svg"


def test_widths_of_scripts():
    assert text_width("北京") > 1.8 * text_width("ab")
