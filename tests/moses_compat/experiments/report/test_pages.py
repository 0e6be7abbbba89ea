import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.experiments.report.pages import (
    code_block,
    duration,
    escape_markdown,
    fact_lists,
    markdown_table,
    write_report,
)
from moses_compat.pages.drawing import printable
from moses_compat.pages.html import Cell, Column, Row, Table, prose
from tests.moses_compat.experiments.report.report_frames import (
    FACTS,
    NAN,
    NASTY,
    all_frames,
    phrase_map,
    pruning,
)


def test_facts_of_any_shape():
    facts = {
        "config": {"prune": {"sizes": [0.1, 0.05], "quick": True, "x": None}, "seed": 1},
        "machine": {"cores": 2},
        "commands": ["a b", ["c", "d"]],
        "seconds": {"all": 59.96},
    }
    result = {facts.name: facts for facts in fact_lists(facts)}
    assert result["config"].rows == (
        ("prune.sizes", "0.1, 0.05"),
        ("prune.quick", "yes"),
        ("prune.x", ""),
        ("seed", "1"),
    )
    assert [value for _, value in result["commands"].rows] == ["a b", "c d"]
    assert result["time"].rows == (("all", "60.0 s"),)
    assert list(fact_lists({})) == []
    write_report("x", {}, facts)


def test_durations():
    assert [duration(seconds) for seconds in (0.04, 7.25, 61, 3725)] == ["0.0 s", "7.2 s", "1 min 1 s", "1 h 2 min"]


def table_of(*texts, **more):
    columns = (Column("a", numeric=False), Column("b"))
    return Table("t", "T", columns, tuple(Row((Cell(text, **more), Cell("1"))) for text in texts))


def test_a_table():
    table = Table(
        "t",
        "T",
        (Column("method", numeric=False), Column("BLEU")),
        (
            Row((Cell("a+b", tones=("code",)), Cell("36.10", mark="▼▼"))),
            Row((Cell("c"), Cell("36.20", tones=("best",), asides=("±0.05",)))),
            Row((Cell("x\ny", asides=("0.9", "0.8")), Cell(""))),
        ),
    )
    assert markdown_table(table) == (
        "| method | BLEU |\n| --- | ---: |\n| a+b | 36.10 ▼▼ |\n| c | **36.20 ±0.05** |\n| x 0.9<br>y 0.8 |  |\n"
    )


def test_escapes():
    assert escape_markdown("a | b") == r"a \| b"
    assert escape_markdown("&apos; <b>") == "&amp;apos; &lt;b&gt;"
    assert escape_markdown("`x` *y* _z_ ~u~ [l](m) $n$ \\") == r"\`x\` \*y\* \_z\_ \~u\~ \[l\](m) \$n\$ \\"
    assert escape_markdown("a\nb\t c") == "a b c"
    assert [escape_markdown(text) for text in ("# a", "- a", "12. a", "a - b")] == [
        r"\# a",
        r"\- a",
        r"12\. a",
        "a - b",
    ]


@given(st.text() | st.sampled_from(NASTY))
def test_any_text_stays_in_its_cell(text):
    lines = markdown_table(table_of(text.replace("\n", " "))).splitlines()
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 3
    assert not re.search(r"<(?!br>)", lines[2])
    lines[2].encode("utf-8")


@given(st.lists(st.text(alphabet="`ab \n"), max_size=4))
def test_a_code_block_ends_where_it_should(texts):
    block = code_block(texts).splitlines()
    fence = block[0]
    assert block[-1] == fence
    assert not [line for line in block[1:-1] if line.strip().startswith(fence)]


VOID = {"meta", "link", "br", "wbr", "input"}


class Page(HTMLParser):
    """Parser of a page, which checks that tags are balanced and collects attributes and texts of tables."""

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


def test_files(written):
    assert list(written) == ["report.md", "report.html", "curves.svg"]


def test_the_same_frames_give_the_same_bytes_and_are_left_alone(written):
    frames = all_frames()
    assert write_report("Small & <quick>", frames, FACTS) == written
    for name, frame in all_frames().items():
        pd.testing.assert_frame_equal(frames[name], frame)


def test_markdown_holds_the_tables(markdown):
    assert markdown.startswith("# Small &amp; &lt;quick&gt;\n\n**5 % of the entries translate as well as all of them**")
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
    "contests": ("## The best method", 'id="contests-section"'),
    "annotation": ("## Table 2", 'id="annotation-section"'),
    "ladder": ("## Cumulative gains", 'id="ladder-section"'),
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
    frame[["low", "high", "p", "worst"]] = NAN
    written = write_report("one", {"pruning": frame}, {})
    page = Page(written["report.html"].decode())
    assert page.tables["sizes-all"][2] == [
        "composition", "10 %", "10", "200", "10 %", "39.70", "", "−0.30", "", "",
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


def test_six_curves_are_shown_first_and_the_rest_on_request():
    losses = {f"count*{weight}": {0.1: (-0.1 * weight, 0.2)} for weight in range(8, 0, -1)}
    page = write_report("many", {"pruning": pruning(("all",), losses)}, {})["report.html"].decode()
    boxes = re.findall(r'<input type="checkbox"( checked)? value="([^"]*)"', page)
    assert [name for checked, name in boxes if checked] == [f"count*{weight}" for weight in range(1, 7)]
    assert len(boxes) == 8
    assert ">all 8</button>" in page
    few = write_report("few", {"pruning": pruning(("all",))}, {})["report.html"].decode()
    assert 'id="every"' not in few
    assert len(re.findall(r'<input type="checkbox" checked', few)) == 3
