import pytest

from moses_compat.experiments.report.answers import answers
from tests.moses_compat.experiments.report.report_frames import LOSSES, NAN, annotation, contests, pruning


def test_the_answer():
    first, second = answers({"pruning": pruning(("words",))})
    assert first == (
        "**5 % of the entries translate as well as all of them**: by `composition+semantic`, `--protect words`, 35.91 "
        "BLEU, −0.09 (at worst −0.19) to the full table, which has 36.00 (35.20 to 36.80) on `ALL`."
    )
    # On the development set every table loses 0.2 more, so none is as good there.
    assert second.startswith("Highest BLEU")


def test_a_loss_that_is_not_significant_is_not_shown_to_be_none():
    frame = pruning(("all",), {"a": {0.5: (0.0, 0.5), 0.1: (-0.05, 0.2)}})
    frame.loc[frame["wanted"] == 0.1, "worst"] = -0.3
    assert answers({"pruning": frame})[0].startswith("**50 % of the entries translate as well as all of them**")


def test_the_answer_when_nothing_serves():
    first = answers({"pruning": pruning(("all",), {"random": LOSSES["random"]})})[0]
    assert first == (
        "**No pruned table is shown to be as good** as the full one, which has 36.00 (35.20 to 36.80) on `ALL`; the "
        "nearest, 50 % by `random`, differs by −6.00 (at worst −6.10), where less than −0.3 counts as a loss."
    )


def test_what_the_development_set_would_have_chosen():
    frame = pruning(("all",), {"a": {0.5: (0.3, 0.5), 0.1: (0.15, 0.2)}, "b": {0.1: (-0.4, 0.01)}})
    second = answers({"pruning": frame})[1]
    assert "same rule on the development set chooses 10 % by `a`, `--protect all`; on `ALL` that is +0.15" in second
    assert second.endswith("(at worst +0.05), as good there too.")
    frame.loc[(frame["method"] == "b") & (frame["text"] == "dev"), "worst"] = 0.4
    frame = frame[frame["system"] != "a 10 % all 0"].reset_index(drop=True)
    second = answers({"pruning": frame})[1]
    assert "10 % by `b`" in second
    assert second.endswith("−0.40 (at worst −0.50), not shown to be as good there.")


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
            "a semantic criterion better than the best without, with p < 0.05 and a 95 % interval "
            "above 0. In 1 they are worse.",
        ),
        (
            [(0.1, 0.25, NAN)],
            "**Semantics add nothing that can be shown**: in none of 1 comparisons at one size is the best method with "
            "a semantic criterion better than the best without, with p < 0.05 and a 95 % interval above 0.",
        ),
        # The interval contains 0.
        (
            [(0.1, 0.1, 0.001), (0.05, -0.1, 0.001)],
            "**Semantics add nothing that can be shown**: in none of 2 comparisons at one size is the best method with "
            "a semantic criterion better than the best without, with p < 0.05 and a 95 % interval above 0.",
        ),
    ],
)
def test_whether_semantics_add_anything(found, sentence):
    assert answers({"contests": contests(*found)}) == [sentence]


def test_whether_annotating_helps():
    assert answers({"annotation": annotation()}) == [
        "**Annotated tables gain** in 1 of 1 cases with p < 0.05 and a 95 % interval above 0; "
        "most: `annotated n=50`, +0.25 on `ALL`, p = 0.004."
    ]
    assert answers({"annotation": annotation(0.1, 0.3)}) == [
        "**No annotated table gains** with p < 0.05 and a 95 % interval above 0; "
        "the best is `annotated n=50`, +0.10 on `ALL`, p = 0.300."
    ]
    # The interval contains 0.
    assert answers({"annotation": annotation(0.1, 0.004)})[0].startswith("**No annotated table gains**")
