"""The ladder of a report: gains of its steps, answers and figure."""

import re

from moses_compat.experiments.report.answers import answers, draw_ladder, ladder_table
from tests.moses_compat.experiments.report.report_frames import ladder


def test_what_each_step_adds():
    table = ladder_table(ladder())
    rows = [[" ".join([cell.text, *cell.asides, cell.mark]).strip() for cell in row.cells] for row in table.rows]
    assert [column.title for column in table.columns][3:6] == ["test a", "test b", "ALL"]
    assert rows[0] == ["table", "2,000", "3", "40.00 ±0.10", "30.00 ±0.10", "36.00 ±0.10", "", "", "", ""]
    assert rows[2] == [
        "+ augment", "2,040", "3", "41.50 ±0.10 ▲▲", "31.50 ±0.10 ▲▲", "37.50 ±0.10 ▲▲", "+1.10 ▲▲", "+0.90 to +1.30",
        "+1.50 ▲▲", "+1.00 to +2.00",
    ]  # fmt: skip
    assert rows[3][6] == "−0.30 ▼▼"


def test_a_pruned_table_that_is_as_good_is_said_to_be():
    assert answers({"ladder": ladder()}) == [
        "All steps together **add** +1.50 (+1.00 to +2.00, p = 0.004) to a table with 36.00 BLEU on `ALL`: `columns` "
        "+0.40, `augment` +1.10.",
        "With all steps, 10 % of the entries have 37.20 BLEU, +1.20 (+0.70 to +1.70, p = 0.004) to the original table; "
        "not shown to be as good as all of it (−0.30, at worst −0.50).",
    ]
    second = answers({"ladder": ladder((0.4, 1.5, 1.45))})[1]
    assert "; as good as all of it (−0.05, at worst −0.25)." in second


def test_nothing_is_claimed_that_was_not_shown():
    first = answers({"ladder": ladder((0.1, 0.2, 0.2), 0.3)})[0]
    assert first.startswith("All steps together show **no difference**: +0.20 (−0.30 to +0.70, p = 0.300)")
    # The interval contains 0.
    first = answers({"ladder": ladder((0.1, 0.2, 0.2), 0.004)})[0]
    assert first.startswith("All steps together show **no difference**: +0.20 (−0.30 to +0.70, p = 0.004)")
    assert answers({"ladder": ladder((-0.4, -1.5, -1))})[0].startswith("All steps together **cost** −1.50")


def test_figure_has_a_point_for_each_step():
    drawn = draw_ladder(ladder(), "x")
    assert re.findall("<title>([^:<]*): ", drawn) == ["+ columns", "+ augment", "all, 10 %"]
    assert "204 entries" in drawn
