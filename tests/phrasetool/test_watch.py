import pytest

from phrasetool.watch import SILENT


def test_nobody_is_told_anything(capsys):
    SILENT.say("a message")
    SILENT.warn("a warning")
    with SILENT.file("reading", 10) as told:
        told(5, 1)
    with SILENT.items("training", 3, "pair") as told:
        told(2)
    with SILENT.reading({"table": "a.gz"}) as told:
        told("table", 5, 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "watched", [lambda: SILENT.file("", 0), lambda: SILENT.items("", 0, ""), lambda: SILENT.reading({})]
)
def test_errors_of_the_work_come_through(watched):
    with pytest.raises(KeyboardInterrupt), watched():
        raise KeyboardInterrupt
