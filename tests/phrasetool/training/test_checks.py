import math

import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.training.checks import StartError, divergence, doubting
from phrasetool.watch import Watch


def lines(*errors, phase="train"):
    return [{"phase": phase, "joint_error": error} for error in errors]


def starts(**errors):
    return {phase: StartError.of(error) for phase, error in errors.items()}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([math.nan], "the joint error is nan"),
        ([2, 1, math.inf], "the joint error is inf"),
        ([41], "the joint error is 41, it was 4 at the start"),
        ([3, 2, 21], "the joint error is 21, it was 2 before"),
        ([39], None),
        ([3, 2, 19], None),
        # Nearly nothing was left.
        ([3, 1e-6, 0.3], None),
        ([3, 1e-6, 0.95], "the joint error is 0.95, it was 1e-06 before"),
    ],
)
def test_the_joint_error(errors, expected):
    assert divergence(lines(*errors), starts(train=4.0)) == expected


def test_phases_have_errors_of_their_own():
    history = lines(0.1, phase="pretrain") + lines(20)
    assert divergence(history, starts(pretrain=1.0, train=25.0)) is None
    assert divergence(history, starts(pretrain=1.0, train=1.0)) == "the joint error is 20, it was 1 before"


def test_errors_that_can_be_below_zero():
    start = {"train": StartError.of(-40.0, 50.0)}
    assert divergence(lines(-60, -50), start) is None
    assert divergence(lines(-60, 400), start) is None
    assert divergence(lines(-60, 500), start) == "the joint error is 500, it was -60 before"
    assert divergence(lines(0.01, 7), {"train": StartError.of(7.0, 16.0)}) is None


def test_the_cross_entropy():
    history = [{"epoch": 1, "cross_entropy": 80.0}]
    assert divergence(history, starts(train=7.0)) == "the cross-entropy is 80, it was 7 at the start"
    assert divergence(history, starts(train=8.0)) is None


def test_a_doubt_stops_or_is_a_warning():
    class Listening(Watch):
        def warn(self, message):
            heard.append(message)

    heard = []
    with pytest.raises(PhraseToolError, match=r"^odd$") as caught:
        doubting(Listening(), force=False)("odd")
    assert caught.value.remedy == "go on"
    assert heard == []
    doubting(Listening(), force=True)("odd")
    assert heard == ["odd"]
