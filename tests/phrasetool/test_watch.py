import pytest

from phrasetool.watch import NOBODY


def test_nobody_is_told_anything(capsys):
    NOBODY.say("a message")
    NOBODY.warn("a warning")
    with NOBODY.file("reading", 10) as told:
        told(5, 1)
    with NOBODY.items("training", 3, "pair") as told:
        told(2)
    with NOBODY.reading({"table": "a.gz"}) as told:
        told("table", 5, 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "watched", [lambda: NOBODY.file("", 0), lambda: NOBODY.items("", 0, ""), lambda: NOBODY.reading({})]
)
def test_errors_of_the_work_come_through(watched):
    with pytest.raises(KeyboardInterrupt), watched():
        raise KeyboardInterrupt
