import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from phrasetool.experiments.drawing import printable
from phrasetool.experiments.report import duration, fact_lists, prose, write_report
from phrasetool.experiments.report_answers import answers
from phrasetool.experiments.report_tables import (
    annotation_table,
    contest_table,
    neighbour_tables,
    overview_tables,
    significance_mark,
    size_tables,
    surprise_tables,
)
from tests.phrasetool.experiments.report_frames import (
    FACTS,
    LOSSES,
    NAN,
    NASTY,
    all_frames,
    annotation,
    contests,
    neighbours,
    phrase_map,
    pruning,
    surprises,
)

VOID = {"meta", "link", "br", "wbr", "input"}


class Page(HTMLParser):
    """What tests ask of a page: balanced tags, attributes, texts of tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.items, self.tables, self.cell = [], [], {}, None
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.items.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows = self.tables.setdefault(attributes["id"], [])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = self.rows[-1]
        if tag == "br" and self.cell is not None:
            self.cell[-1] += "\n"

    def handle_startendtag(self, tag, attributes):
        self.items.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[-1] += data


@pytest.fixture(scope="module")
def written():
    return write_report("Small & <quick>", all_frames(), FACTS)


@pytest.fixture(scope="module")
def markdown(written):
    return written["report.md"].decode()


@pytest.fixture(scope="module")
def page(written):
    return Page(written["report.html"].decode())


def rows_of(table):
    return [[cell.text + (f" {cell.mark}" if cell.mark else "") for cell in row.cells] for row in table.rows]


def test_files(written):
    assert list(written) == ["report.md", "report.html", "curves.svg"]


def test_the_same_frames_give_the_same_bytes_and_are_left_alone(written):
    frames = all_frames()
    assert write_report("Small & <quick>", frames, FACTS) == written
    for name, frame in all_frames().items():
        pd.testing.assert_frame_equal(frames[name], frame)


def test_the_answer():
    first, second = answers({"pruning": pruning(("words",))})
    assert first == (
        "**10 % of the entries** come within 0.06 BLEU of the full table, which has 36.00 (35.20 to 36.80) on `ALL` "
        "(by `composition+semantic`, `--protect words`: 35.95, −0.05); **5 %** come within 0.1 (by "
        "`composition+semantic`, `--protect words`: 35.91, −0.09)."
    )
    # On the development set every table loses 0.2 more: nothing is within 0.1 there to be picked.
    assert second.startswith("Highest BLEU")


def test_the_answer_when_one_table_serves_both_budgets():
    losses = {"a": {0.5: (0.0, 0.5), 0.1: (-0.05, 0.2), 0.05: (-0.4, 0.001)}}
    first = answers({"pruning": pruning(("all",), losses)})[0]
    assert "come within 0.06 (and so within 0.1) BLEU of the full table" in first
    assert first.count("%") == 1


def test_the_answer_when_nothing_serves():
    first = answers({"pruning": pruning(("all",), {"random": LOSSES["random"]})})[0]
    assert first == (
        "**No pruned table comes within 0.1 BLEU** of the full one, which has 36.00 (35.20 to 36.80) on `ALL`; the "
        "nearest, 50 % by `random`, differs by −6.00."
    )


def test_what_the_development_set_would_have_chosen():
    frame = pruning(("all",), {"a": {0.5: (0.3, 0.5), 0.1: (0.15, 0.2)}, "b": {0.1: (-0.4, 0.01)}})
    second = answers({"pruning": frame})[1]
    assert "on the development set, within 0.06 there: 10 % by `a`, `--protect all`; on `ALL` that is +0.15" in second
    assert second.endswith("(p = 0.200), within it too.")
    frame.loc[(frame["method"] == "b") & (frame["text"] == "dev"), "difference"] = 0.5
    frame = frame[frame["system"] != "a 10 % all 0"].reset_index(drop=True)
    second = answers({"pruning": frame})[1]
    assert "10 % by `b`" in second
    assert second.endswith("−0.40 (p = 0.010), which is not within it.")


def test_who_wins():
    sentence = next(s for s in answers({"pruning": pruning()}) if s.startswith("Highest"))
    assert sentence == (
        "Highest BLEU on `ALL` at 15 % and less: `composition+semantic` at 4 of 4 sizes (a size counts once a "
        "protection)."
    )


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            [(0.1, 0.25, 0.002), (0.05, 0.01, 0.4), (0.15, -0.2, 0.01)],
            "**Semantics win in 1 of 3 comparisons** at one size: 10 % `words` (+0.25, p = 0.002). In 1 they are "
            "worse. In 1 no difference is shown.",
        ),
        (
            [(0.1, 0.25, 0.06), (0.05, -0.3, 0.01)],
            "**Semantics add nothing that can be shown**: in none of 2 comparisons at one size is the best method with "
            "a semantic criterion better than the best without, at p < 0.05. In 1 they are worse.",
        ),
        (
            [(0.1, 0.25, NAN)],
            "**Semantics add nothing that can be shown**: in none of 1 comparisons at one size is the best method with "
            "a semantic criterion better than the best without, at p < 0.05.",
        ),
    ],
)
def test_whether_semantics_add_anything(found, sentence):
    assert answers({"contests": contests(*found)}) == [sentence]


def test_whether_annotating_helps():
    assert answers({"annotation": annotation()}) == [
        "**Annotated tables gain** in 1 of 1 cases at p < 0.05; most: `annotated n=50`, +0.25 on `ALL`, p = 0.004."
    ]
    assert answers({"annotation": annotation(0.1, 0.3)}) == [
        "**No annotated table gains** at p < 0.05; the best is `annotated n=50`, +0.10 on `ALL`, p = 0.300."
    ]


@pytest.mark.parametrize(
    ("difference", "p", "mark"),
    [
        (-1, 0.0499, "▼"), (1, 0.0499, "▲"), (-1, 0.0099, "▼▼"), (1, 0.001, "▲▲"), (1, 0.05, ""), (0, 0.001, ""),
        (1, NAN, ""), (NAN, 0.01, ""),
    ],
)  # fmt: skip
def test_marks(difference, p, mark):
    assert significance_mark(difference, p) == mark


def test_overview():
    every, words = overview_tables(pruning())
    assert (every.name, words.name) == ("overview-all", "overview-words")
    assert [column.title for column in words.columns] == ["method", "50 %", "10 %", "5 %"]
    assert rows_of(words) == [
        ["composition+semantic", "36.00", "35.95", "35.91 ▼"],
        ["composition", "35.98", "35.70 ▼▼", "35.00 ▼▼"],
        ["random", "30.00 ▼▼", "16.00 ▼▼", "11.00 ▼▼"],
    ]
    assert [cell.tones for cell in words.rows[0].cells[1:]] == [("best", "within")] * 3
    assert words.rows[1].cells[2].tones == ()


def test_table_1():
    table = next(size_tables(pruning(("words",))))
    titles = [column.title for column in table.columns]
    assert titles == [
        "method",
        "rule",
        "best k",
        "entries",
        "kept",
        "test a",
        "test b",
        "ALL",
        "95 %",
        "to full",
        "p",
        "dev",
    ]
    rows = rows_of(table)
    assert rows[0] == ["full", "full", "", "2,000", "100 %", "40.00", "30.00", "36.00", "35.2–36.8", "", "", "41.00"]
    assert rows[3] == [
        "composition+semantic", "5 %", "3", "100", "5 %", "39.91 ▼", "29.91 ▼", "35.91 ▼", "35.1–36.7", "−0.09",
        "0.040", "40.71 ▼",
    ]  # fmt: skip
    assert len(rows) == 10


def test_table_1_without_all_takes_the_first_test_set():
    table = next(size_tables(pruning(("words",), texts=("test a",))))
    assert [column.title for column in table.columns][5:] == ["test a", "95 %", "to full", "p"]


def test_a_system_that_lacks_a_text_has_an_empty_cell():
    frame = pruning(("all",))
    frame = frame[~((frame["text"].isin(["dev", "ALL"])) & (frame["method"] == "random"))].reset_index(drop=True)
    rows = rows_of(next(size_tables(frame)))
    assert rows[-1][7:] == ["", "", "", "", ""]


def test_seeds_are_rows_of_table_1():
    rows = rows_of(next(size_tables(pruning(("all",), seeds=2))))
    assert [row[0] for row in rows if row[0].startswith("random")] == ["random, seed 1", "random, seed 2"] * 3


def test_contests():
    table = contest_table(contests((0.1, 0.25, 0.002), (0.05, 0.01, 0.4), (0.07, -0.2, 0.03)))
    assert rows_of(table)[0] == [
        "10 %", "words", "composition+semantic", "composition", "36.25", "36.00", "+0.25 ▲▲", "0.002", "semantics",
        "41.20", "41.10",
    ]  # fmt: skip
    assert [row[8] for row in rows_of(table)] == ["semantics", "neither", "others"]


def test_table_2():
    first, second = rows_of(annotation_table(annotation()))
    assert first == ["baseline", "", "", "3", "40.00", "30.00", "36.00", "", "", "41.50"]
    assert second == [
        "annotated n=50",
        "semantic",
        "50",
        "3",
        "40.25 ▲▲",
        "30.25 ▲▲",
        "36.25 ▲▲",
        "+0.25",
        "0.004",
        "41.50",
    ]


def test_table_3_has_the_unsupervised_model_first_and_neighbours_in_order():
    source, _ = neighbour_tables(neighbours())
    assert [column.title for column in source.columns] == ["phrase", "RAE", "BRAE"]
    assert source.rows[0].cells[1].text == f"{NASTY[1]}\n{NASTY[2]}"
    assert source.rows[0].cells[1].asides == ("0.88", "0.75")


def test_surprises():
    (_, first), (number, second) = surprise_tables(surprises(), {"composition+semantic": 4})
    assert number == 4
    assert second.title == "composition+semantic"
    rows = rows_of(first)
    assert [row[0] for row in rows] == ["removed", "removed", "kept", "kept"]
    assert rows[0][3:] == ["3", "0.125", "0.50", "12.0", "∞"]
    assert rows[1][6] == ""


def test_markdown_holds_the_tables(markdown):
    assert markdown.startswith("# Small &amp; &lt;quick&gt;\n\n**10 % of the entries** come within 0.06 BLEU")
    assert "![size against BLEU, one curve a method](curves.svg)" in markdown
    assert "| composition+semantic | **36.00** | **35.95** | **35.91** ▼ |" in markdown
    assert "| annotated n=50 | semantic | 50 | 3 | 40.25 ±0.05 ▲▲ |" in markdown
    assert "* runs: 1 h 2 min" in markdown
    assert "[prune]\nmethods = ['composition'] # <all>\n" in markdown
    assert "phrasetool prune --method composition --target-size 0.1  # composition 10 % all 0" in markdown


def test_page_holds_the_tables(page):
    assert page.tables["overview-words"][1] == ["composition+semantic", "36.00", "35.95", "35.91 ▼"]
    assert page.tables["contests"][1][6] == "+0.25 ▲▲"
    assert page.tables["annotation"][2][4] == "40.25 ±0.05 ▲▲"
    assert len(page.tables["sizes-all"]) == 11
    for name, table in page.tables.items():
        assert len({len(row) for row in table}) == 1, name


def test_page_escapes_what_phrases_hold(page, written):
    table = page.tables["neighbours-source"]
    assert [row[0] for row in table[1:]] == NASTY[:3]
    text = written["report.html"].decode()
    assert "<b>" not in text
    assert text.count("<script>") == text.count("</script>") == 1
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert printable(NASTY[7]) in text


def test_page_refers_to_nothing_else(page, written):
    text = written["report.html"].decode()
    assert not re.search(r"https?:|//[a-z]", text.partition("</style>")[2])
    assert "url(" not in text.partition("</style>")[0]
    references = [value for _, attributes in page.items for key, value in attributes.items() if key in ("href", "src")]
    assert all(value.startswith("#") or value == "data:," for value in references)
    names = [attributes["id"] for _, attributes in page.items if "id" in attributes]
    assert len(names) == len(set(names))
    assert {value[1:] for value in references if value.startswith("#")} <= set(names)


SECTIONS = {
    "pruning": ("## Table 1: size", 'id="curves"'),
    "contests": ("## Does meaning", 'id="contests-section"'),
    "annotation": ("## Table 2", 'id="annotation-section"'),
    "neighbours": ("## Table 3", 'id="neighbours"'),
    "surprises": ("## Surprises", 'id="surprises"'),
    "histogram": (None, 'id="histograms"'),
    "map": (None, 'id="map"'),
}


@pytest.mark.parametrize("missing", SECTIONS)
def test_a_missing_frame_leaves_its_section_out(missing):
    frames = {**all_frames(), "pruning": pruning(("all",), {"a": {0.1: (-0.1, 0.2)}}, ("ALL",)), "map": phrase_map(3)}
    frames["histogram"] = frames["histogram"][:16]
    del frames[missing]
    written = write_report("x", frames, {})
    Page(written["report.html"].decode())
    for name, (heading, mark) in SECTIONS.items():
        assert (mark in written["report.html"].decode()) == (name != missing)
        if heading:
            assert (f"\n{heading}" in written["report.md"].decode()) == (name != missing)
    assert ("curves.svg" in written) == (missing != "pruning")


@pytest.mark.parametrize("frames", [{}, {name: frame[:0] for name, frame in all_frames().items()}])
def test_no_frames_at_all_or_none_with_rows(frames):
    written = write_report("nothing", frames, {})
    Page(written["report.html"].decode())
    assert list(written) == ["report.md", "report.html"]


def test_only_the_full_table():
    frame = pruning(())
    written = write_report("full", {"pruning": frame}, {})
    Page(written["report.html"].decode())
    assert "curves.svg" not in written


def test_one_method_one_size_and_no_statistics():
    frame = pruning(("all",), {"composition": {0.1: (-0.3, NAN)}}, ("test a",))
    frame[["low", "high", "p"]] = NAN
    written = write_report("one", {"pruning": frame}, {})
    page = Page(written["report.html"].decode())
    assert page.tables["sizes-all"][2] == [
        "composition", "10 %", "10", "200", "10 %", "39.70", "", "−0.30", "",
    ]  # fmt: skip
    assert "nan" not in written["report.md"].decode().lower()


def test_a_threshold_is_a_rule_of_its_own():
    frame = pruning(("all",), {"semantic": {0.7: (-0.3, 0.01)}})
    frame.loc[frame["method"] != "full", "rule"] = "threshold"
    written = write_report("t", {"pruning": frame}, {})
    page = Page(written["report.html"].decode())
    assert page.tables["sizes-all"][2][:2] == ["semantic (threshold)", "≥ 0.7"]
    assert "overview-all" not in page.tables


def test_prose():
    assert prose("**a < b** by `x**y` & `<b>`") == (
        "<strong>a &lt; b</strong> by <code>x**y</code> &amp; <code>&lt;b&gt;</code>"
    )


def test_facts_of_any_shape():
    facts = {
        "config": {"prune": {"sizes": [0.1, 0.05], "quick": True, "x": None}, "seed": 1},
        "machine": {"cores": 2},
        "commands": ["a b", ["c", "d"]],
        "seconds": {"all": 59.96},
    }
    found = {facts.name: facts for facts in fact_lists(facts)}
    assert found["config"].rows == (
        ("prune.sizes", "0.1, 0.05"),
        ("prune.quick", "yes"),
        ("prune.x", ""),
        ("seed", "1"),
    )
    assert [value for _, value in found["commands"].rows] == ["a b", "c d"]
    assert found["time"].rows == (("all", "60.0 s"),)
    assert list(fact_lists({})) == []
    write_report("x", {}, facts)


def test_durations():
    assert [duration(seconds) for seconds in (0.04, 7.25, 61, 3725)] == ["0.0 s", "7.2 s", "1 min 1 s", "1 h 2 min"]
