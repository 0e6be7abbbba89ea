import pytest

from moses_compat.experiments.report.frame_tables import (
    annotation_table,
    contest_table,
    neighbour_tables,
    overview_tables,
    significance_mark,
    size_tables,
    surprise_tables,
)
from tests.moses_compat.experiments.report.report_frames import (
    NAN,
    NASTY,
    annotation,
    contests,
    neighbours,
    pruning,
    surprises,
)


def rows_of(table):
    return [[cell.text + (f" {cell.mark}" if cell.mark else "") for cell in row.cells] for row in table.rows]


@pytest.mark.parametrize(
    ("difference", "p", "mark"),
    [
        (-1, 0.0499, "▼"), (1, 0.0499, "▲"), (-1, 0.0099, "▼▼"), (1, 0.001, "▲▲"), (1, 0.05, ""), (0, 0.001, ""),
        (1, NAN, ""), (NAN, 0.01, ""), (0.5, 0.001, ""), (-0.5, 0.001, ""),
    ],
)  # fmt: skip
def test_marks(difference, p, mark):
    """A difference of 0.5 has an interval that contains 0."""
    assert significance_mark(difference, p, difference - 0.5, difference + 0.5) == mark


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
        "at worst",
        "p",
        "dev",
    ]
    rows = rows_of(table)
    full = ["full", "full", "", "2,000", "100 %", "40.00", "30.00", "36.00", "35.2–36.8", "", "", "", "41.00"]
    assert rows[0] == full
    assert rows[3] == [
        "composition+semantic", "5 %", "3", "100", "5 %", "39.91 ▼", "29.91 ▼", "35.91 ▼", "35.1–36.7", "−0.09",
        "−0.19", "0.040", "40.71 ▼",
    ]  # fmt: skip
    assert len(rows) == 10


def test_table_1_without_all_takes_the_first_test_set():
    table = next(size_tables(pruning(("words",), texts=("test a",))))
    assert [column.title for column in table.columns][5:] == ["test a", "95 %", "to full", "at worst", "p"]


def test_a_system_that_lacks_a_text_has_an_empty_cell():
    frame = pruning(("all",))
    frame = frame[~((frame["text"].isin(["dev", "ALL"])) & (frame["method"] == "random"))].reset_index(drop=True)
    rows = rows_of(next(size_tables(frame)))
    assert rows[-1][7:] == ["", "", "", "", "", ""]


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
    assert first == ["baseline", "", "", "3", "40.00", "30.00", "36.00", "", "", "", "41.50"]
    assert second == [
        "annotated n=50",
        "semantic",
        "50",
        "3",
        "40.25 ▲▲",
        "30.25 ▲▲",
        "36.25 ▲▲",
        "+0.25",
        "+0.05 to +0.40",
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
