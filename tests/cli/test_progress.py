import io

import pytest

from phrasetool.phrase_encoder.trainer import IterationReport
from phrasetool_cli import progress
from phrasetool_cli.messages import hint
from phrasetool_cli.progress import ItemProgress, TableProgress, TerminalWatch, TrainingProgress


class Clock:
    """Replacement of `time` with a clock that tests advance."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_tables_are_reported_every_half_minute(clock, capsys):
    with TableProgress("measure", 1000) as bar:
        bar(10, 1)
        clock.now += 30
        bar(250, 600)
        clock.now += 29
        bar(500, 1000)
    assert capsys.readouterr().err == "phrasetool: measure: 600 entries, 20 a second, 25%, 1:30 left\n"
    with TableProgress("pipe", 0) as bar:
        clock.now += 4000
        bar(10, 4000)
    assert capsys.readouterr().err == "phrasetool: pipe: 4,000 entries, 1 a second\n"


@pytest.mark.parametrize("way", ["tick", "reach"])
def test_items(clock, capsys, way):
    with ItemProgress("translating", 7000, "sentence") as bar:
        bar.tick(100)
        clock.now += 30
        bar.tick(100) if way == "tick" else bar.reach(200)
        assert bar.seconds == 30
    expected = "phrasetool: translating: 200 of 7,000 sentences, 6.7 a second, 0:17:00 left\n"
    assert capsys.readouterr().err == expected.replace("0:17:00", "17:00")
    with ItemProgress("slow", 10, "text") as bar:
        clock.now += 60
        bar.reach(0)
    assert "slow: 0 of 10 texts" in capsys.readouterr().err
    with ItemProgress("unknown", None, "text") as bar:
        clock.now += 60
        bar.tick(120)
    assert capsys.readouterr().err == "phrasetool: unknown: 120 texts, 2.0 a second\n"


def test_training_reports_every_iteration(clock, capsys):
    with TrainingProgress(600, 1, 2) as bar:
        for report in (
            IterationReport("pretrain", 1, 0.25, None, 0.125),
            IterationReport("train", 1, 0.25, 0.5, 0.125, 0.75, 0.8125),
            IterationReport("train", 2, 0.25, 0.5, 0.125, 0.75, 0.8125),
        ):
            clock.now += 2
            bar.report(report)
    assert capsys.readouterr().err.splitlines() == [
        "phrasetool: pretrain 1/1: error 0.1250 (300 pairs/s, 0:04 left)",
        "phrasetool: train 1/2: error 0.1250, accuracy@1 0.750, AUC 0.812 (300 pairs/s, 0:02 left)",
        "phrasetool: train 2/2: error 0.1250, accuracy@1 0.750, AUC 0.812 (300 pairs/s)",
    ]


def test_a_resumed_training_counts_finished_items(clock, capsys):
    with ItemProgress("train", 1000, "text", finished=400) as bar:
        bar.tick(10)
        clock.now += 30
        bar.tick(50)
    assert capsys.readouterr().err == "phrasetool: train: 460 of 1,000 texts, 2.0 a second, 4:30 left\n"


def test_time_before_the_first_item_does_not_count(clock, capsys):
    with ItemProgress("run 1", 1014, "sentence") as bar:
        clock.now += 40
        bar.tick()
        clock.now += 30
        bar.tick(300)
    assert capsys.readouterr().err.splitlines() == [
        "phrasetool: run 1: 1 of 1,014 sentences",
        "phrasetool: run 1: 301 of 1,014 sentences, 10.0 a second, 1:11 left",
    ]


def test_the_first_iteration_does_not_count_compilation(clock, capsys):
    with TrainingProgress(600, 0, 3) as bar:
        clock.now += 100
        bar.tick(200)
        for _ in range(2):
            clock.now += 2
            bar.tick(200)
        bar.report(IterationReport("train", 1, 0.25, 0.5, 0.125, 0.75, 0.8125))
    assert capsys.readouterr().err == (
        "phrasetool: train 1/3: error 0.1250, accuracy@1 0.750, AUC 0.812 (100 pairs/s, 0:12 left)\n"
    )


def test_quiet_shows_only_warnings(clock, capsys):
    watch = TerminalWatch(quiet=True)
    with watch.file("read", 10) as file, watch.items("do", 10, "thing") as tick:
        clock.now += 100
        file(5, 5)
        tick(5)
    watch.say("well")
    watch.warn("beware")
    assert capsys.readouterr().err == "phrasetool: warning: beware\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def shown():
        # Called by the test itself, because pytest replaces sys.stderr after the fixtures.
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        return terminal

    return shown


def test_a_terminal_shows_bars(terminal):
    shown = terminal()
    with TrainingProgress(10, 0, 1) as bar:
        bar.tick(10)
    assert "10.0/10.0" in shown.getvalue()


@pytest.mark.parametrize("columns", [60, 200])
def test_a_bar_fits_the_terminal_and_gives_way_to_messages(terminal, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = terminal()
    with ItemProgress("a label of some length, which takes much of the line", 10**9, "sentence") as bar:
        bar._bar.delay, bar._bar.mininterval = 0, 0
        bar.tick(5)
        progress.say("a message")
        bar.tick(5)
    # On a terminal, the text after a carriage return overwrites the line.
    shown = screen.getvalue().split("\n")
    assert "phrasetool: a message" in [line.rpartition("\r")[2] for line in shown]
    drawn = [part for line in shown for part in line.split("\r") if "sentence" in part or "%" in part]
    assert drawn
    assert max(map(len, drawn)) <= min(columns, 80)
    # The first five of a billion sentences give no estimate of the time left.
    assert all("<?" in part for part in drawn if "<" in part)


def test_labels_have_colours_on_a_terminal(terminal, monkeypatch):
    shown = terminal()
    TerminalWatch().warn("beware")
    hint("try")
    assert shown.getvalue() == "phrasetool: \x1b[33mwarning\x1b[0m: beware\nphrasetool: \x1b[36mhint\x1b[0m: try\n"
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            shown = terminal()
            TerminalWatch().warn("beware")
            assert shown.getvalue() == "phrasetool: warning: beware\n"
