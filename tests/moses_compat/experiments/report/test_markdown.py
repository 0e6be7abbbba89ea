import re

from hypothesis import given
from hypothesis import strategies as st

from moses_compat.experiments.report.frame_tables import Cell, Column, Row, Table
from moses_compat.experiments.report.markdown import code_block, escape_markdown, markdown_table
from tests.moses_compat.experiments.report.report_frames import NASTY


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
