import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from moses_compat.experiments.report.figures import (
    curve_points,
    curves_of,
    draw_curve_file,
    draw_curves,
    draw_histogram,
    draw_map,
    drawn_protections,
    mining_figure,
    protections,
    text_width,
)
from moses_compat.pages.drawing import printable
from phrasetool.bitext.mining_quality import evaluate_mining
from tests.moses_compat.experiments.report.report_frames import (
    LOSSES,
    NASTY,
    histogram,
    phrase_map,
    pruning,
)

NAN = float("nan")


@pytest.fixture(scope="module")
def drawing():
    return ElementTree.fromstring(draw_curves(pruning(), "words", "ALL", "here"))


def titles(root, kind):
    return [item.findtext("title") for item in root.iter("g") if item.get("class") == kind]


def all_text(root):
    return [element.text for element in root.iter("text")]


def test_points_say_their_numbers(drawing):
    result = titles(drawing, "point")
    start = "composition+semantic: 10 % (200 entries): BLEU 35.95 (35.15 to 36.75)"
    assert f"{start}, −0.05 to the full table, p = 0.200" in result
    assert any("composition: 5 % (100 entries): BLEU 35.00" in title and "p < 0.001" in title for title in result)
    # The panel near the full table has no points of the random tables; the other one has each point once.
    assert sum(title.startswith("random") for title in result) == 3
    assert sum(title.startswith("composition:") for title in result) == 6
    assert titles(drawing, "full") == ["full table: BLEU 36.00 (35.20 to 36.80)"] * 2


def hollow_points(root):
    """Whether each point is hollow, by its title."""
    return {
        item.findtext("title"): "fill: var(--paper)" in ElementTree.tostring(item, "unicode").partition("<use")[2]
        for item in root.iter("g")
        if item.get("class") == "point"
    }


def test_points_that_are_significantly_worse_are_hollow(drawing):
    for title, is_hollow in hollow_points(drawing).items():
        p = float(re.search(r"p [=<] ([\d.]+)", title)[1])
        assert is_hollow == (p < 0.05 or "p <" in title), title


def test_points_with_an_interval_that_contains_0_are_filled():
    frame = pruning(("all",), {"a": {0.5: (-0.09, 0.04), 0.1: (-0.02, 0.04)}})
    points = hollow_points(ElementTree.fromstring(draw_curves(frame, "all", "ALL", "here")))
    assert {title[:7]: is_hollow for title, is_hollow in points.items()} == {"a: 50 %": True, "a: 10 %": False}


def test_every_method_is_a_series_with_line_and_band(drawing):
    for number in "012":
        kinds = {item.get("class") for item in drawing.iter() if item.get("data-series") == number}
        assert {"band", "line", "point"} <= kinds
    assert not [item for item in drawing.iter() if item.get("data-series") == "3"]


def test_text_is_text_and_colours_are_the_pages(drawing):
    text = ElementTree.tostring(drawing, "unicode")
    assert "BLEU on ALL; full table 36.00; green: less than 0.3 below" in all_text(drawing)
    assert {"50", "10", "5", "100"} <= set(all_text(drawing))
    assert not re.search(r"#[0-9a-f]{6}", text)
    assert "font-family" not in text


def test_identifiers_are_of_this_drawing_and_resolve(drawing):
    names = [item.get("id") for item in drawing.iter() if item.get("id")]
    assert len(names) == len(set(names))
    assert all(name.startswith("here-") for name in names)
    text = ElementTree.tostring(drawing, "unicode")
    assert set(re.findall(r"url\(#(.*?)\)", text)) | set(re.findall(r'href="#(.*?)"', text)) <= set(names)


def test_one_panel_where_all_are_near():
    losses = {"composition": {0.5: (-0.02, 0.4), 0.1: (-0.3, 0.01)}}
    root = ElementTree.fromstring(draw_curves(pruning(losses=losses), "words", "ALL", "x"))
    assert "BLEU on ALL; full table 36.00; green: less than 0.3 below" in all_text(root)
    assert "all of it" not in all_text(root)


def test_one_method_one_size_no_full_table():
    frame = pruning(("all",), {"composition": {0.1: (-0.3, NAN)}}, ("test a",))
    frame = frame[frame["method"] != "full"].reset_index(drop=True)
    frame[["low", "high", "difference"]] = NAN
    root = ElementTree.fromstring(draw_curves(frame, "all", "test a", "x", narrow=True))
    assert titles(root, "point") == ["composition: 10 % (200 entries): BLEU 39.70"]
    assert b"composition" in draw_curve_file(frame)


def test_a_text_without_rows_is_an_empty_drawing():
    assert ElementTree.fromstring(draw_curves(pruning(), "words", "no such", "x")).tag == "svg"


def test_seeds_become_their_mean():
    points = curve_points(pruning(seeds=3), "all", "ALL")
    _, curves = curves_of(pruning(seeds=3))
    random = points[next(curve.number for curve in curves if curve.label == "random")]
    assert list(random["wanted"]) == [0.05, 0.1, 0.5]
    assert list(random["seeds"]) == [3, 3, 3]
    assert random["bleu"].iloc[1] == pytest.approx(16.0 - 0.2 / 3)
    assert random["p"].isna().all()
    title = titles(ElementTree.fromstring(draw_curves(pruning(seeds=3), "all", "ALL", "x")), "point")
    assert any(text.endswith("−20.07 to the full table, mean of 3 seeds") for text in title)


def test_ways_to_combine_and_thresholds_are_curves_of_their_own():
    frame = pruning(("all",), {"a+semantic": LOSSES["composition"]})
    ranked = frame[frame["method"] != "full"].assign(combine="rank", system="r")
    named = ranked.assign(method="a+semantic (rank)", system="n")
    threshold = ranked.assign(combine="product", rule="threshold", wanted=0.7, system="t")
    together = pd.concat([frame, ranked, named, threshold], ignore_index=True)
    labels, curves = curves_of(together)
    assert [curve.label for curve in curves] == ["a+semantic", "a+semantic (rank)", "a+semantic (threshold)"]
    assert all(curve.semantic and curve.dash == "-" for curve in curves)
    assert set(labels) == {"full", *(curve.label for curve in curves)}


def test_many_methods_look_different():
    losses = {f"m{number}": {0.1: (-0.1, 0.4)} for number in range(30)}
    _, curves = curves_of(pruning(losses=losses))
    assert len({(curve.colour, curve.marker) for curve in curves}) == 30


def test_the_file_stands_alone_and_is_the_same_twice():
    first = draw_curve_file(pruning())
    assert first == draw_curve_file(pruning())
    root = ElementTree.fromstring(first)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = first.decode()
    assert "var(--" not in text
    assert set(re.findall(r"https?://[^\" ]*", text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    for label in (
        "composition+semantic",
        "random",
        "full table",
        "--protect all: BLEU on ALL; full table 36.00; green: less than 0.3 below",
    ):
        assert f">{label}<" in text
    assert protections(pruning()) == ["all", "words"]


def test_a_protection_without_a_curve_is_not_drawn():
    frame = pruning()
    lonely = frame[frame["method"] != "full"].groupby("text").head(1).assign(protect="none", system="alone")
    assert drawn_protections(pd.concat([frame, lonely], ignore_index=True)) == protections(frame)
    assert drawn_protections(pd.concat([frame[frame["method"] == "full"], lonely], ignore_index=True)) == ["none"]


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
    result = titles(root, "source")
    assert len(result) == 60
    for phrase in NASTY:
        assert any(title.startswith(f"{printable(phrase)} – <{printable(phrase)}> (") for title in result)
    named = set(all_text(root))
    assert len(named) > 10
    # Each label has the class that gives it a halo in the page.
    assert sum(item.get("class") == "halo" for item in root.iter("g")) == len(all_text(root))
    assert named <= {printable(phrase) for phrase in phrase_map()["phrase"]}


def test_map_of_one_phrase_and_of_none():
    frame = phrase_map()
    assert "&apos;s" in "".join(all_text(ElementTree.fromstring(draw_map(frame[:1], "m"))))
    assert ElementTree.fromstring(draw_map(frame[:0], "m")).tag == "svg"


def test_widths_of_scripts():
    assert text_width("北京") > 1.8 * text_width("ab")


def test_a_figure_of_mining_has_the_same_bytes_and_all_curves():
    quality = evaluate_mining(np.array([3.0, 2.0, 1.0]), [(1, 1), (2, 3), (3, 3)], {(1, 1), (3, 3)})
    drawn = mining_figure(quality, "svg")
    assert drawn == mining_figure(quality, "svg")
    for name in (b"precision", b"recall", b"F1", b"threshold"):
        assert b">" + name in drawn
    assert mining_figure(quality, "pdf").startswith(b"%PDF")
