import pytest

from phrasetool.watch import SILENT


def test_the_silent_watch_prints_nothing(capsys):
    SILENT.say("a message")
    SILENT.warn("a warning")
    with SILENT.file("reading", 10) as report:
        report(5, 1)
    with SILENT.items("training", 3, "pair") as report:
        report(2)
    with SILENT.reading({"table": "a.gz"}) as report:
        report("table", 5, 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "watched", [lambda: SILENT.file("", 0), lambda: SILENT.items("", 0, ""), lambda: SILENT.reading({})]
)
def test_exceptions_in_the_watched_block_propagate(watched):
    with pytest.raises(KeyboardInterrupt), watched():
        raise KeyboardInterrupt
