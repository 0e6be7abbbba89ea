import pytest

from phrasetool.experiments.report_answers import answers
from tests.phrasetool.experiments.report_frames import LOSSES, NAN, annotation, contests, pruning


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
