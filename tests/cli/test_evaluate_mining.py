"""`phrasetool evaluate-mining`."""

import json

import pytest

from tests.commands import run_inside


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mined.tsv").write_text("1.5\ta b\tx  y\n1.2\tc\tz\tcopy\n1.1\td\tw\n0.9\te\tv\n")
    (tmp_path / "gold.tsv").write_text("a  b\tx y\nd\tw\nf\tu\n")
    return tmp_path


def test_figures(files):
    outcome = run_inside("evaluate-mining", "mined.tsv", "gold.tsv", "--json", "j", "--figure", "c.svg")
    assert outcome.code == 0, outcome.err
    rows = outcome.out.decode().splitlines()
    assert rows[0] == "4 pairs mined, 3 right ones, accuracy@1 66.7%"
    assert rows[2].split() == ["all", "pairs", "0.9000", "4", "50.00", "66.67", "57.14"]
    assert rows[3].split() == ["best", "threshold", "1.1000", "3", "66.67", "66.67", "66.67"]
    report = json.loads((files / "j").read_text())
    assert [point["threshold"] for point in report["curve"]] == [1.5, 1.2, 1.1, 0.9]
    assert report["best"]["f1"] == pytest.approx(2 / 3)
    figure = (files / "c.svg").read_text()
    assert "<svg" in figure
    assert "recall" in figure
    run_inside("evaluate-mining", "mined.tsv", "gold.tsv", "--figure", "d.svg")
    assert (files / "d.svg").read_text() == figure


def test_nothing_mined(files):
    (files / "mined.tsv").write_text("")
    outcome = run_inside("evaluate-mining", "mined.tsv", "gold.tsv", "--figure", "c.png")
    assert outcome.code == 0, outcome.err
    assert outcome.out.decode().splitlines()[-1].split()[2:] == ["0.0000", "0", "0.00", "0.00", "0.00"]
    assert (files / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "warning: mined.tsv holds no pairs" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("gold.tsv", "gold.tsv"), 1, "gold.tsv:1: expected a score, a source and a target"),
        (("bad.tsv", "gold.tsv"), 1, "bad.tsv:2: 'nan' is not a score; expected a finite number"),
        (("mined.tsv", "empty.tsv"), 1, "empty.tsv: has no pairs"),
        (("mined.tsv", "half.tsv"), 1, "half.tsv:1: expected a source and a target, with a tab between"),
        (("mined.tsv", "none.tsv"), 1, "none.tsv: "),
        (("-", "-"), 2, "only one input can be standard input"),
        (("mined.tsv", "gold.tsv", "--figure", "c.bmp"), 2, "expected a name that ends with .svg, .png or .pdf"),
        (("mined.tsv", "gold.tsv", "--figure", "gold.svg.svg/x.svg"), 1, "cannot write"),
    ],
)
def test_bad_usage(files, arguments, code, message):
    (files / "bad.tsv").write_text("1\ta\tb\nnan\ta\tb\n")
    (files / "empty.tsv").write_text("\n")
    (files / "half.tsv").write_text("a\t \n")
    outcome = run_inside("evaluate-mining", *arguments)
    assert outcome.code == code
    assert message in outcome.message
    assert not list(files.glob("c.*"))
