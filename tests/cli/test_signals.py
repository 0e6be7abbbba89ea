import os
import signal
import subprocess
import sys

import pytest

from phrasetool_cli import process
from phrasetool_cli.main import main
from tests.commands import clean_environment

# A command whose work is replaced by one of three functions.
CODE = """
import os, signal, sys
import phrasetool_cli.main as command
import phrasetool_cli.console as console
signal.signal(signal.SIGINT, signal.default_int_handler)
NUMBER = int(sys.argv[1])


class Swallows:
    def __del__(self):
        signal.raise_signal(NUMBER)


def swallowed(*arguments, **options):
    Swallows()
    import time
    time.sleep(20)


def renamed(*arguments, **options):
    try:
        signal.raise_signal(NUMBER)
    except BaseException as error:
        raise RuntimeError("numba gave up") from error


def kept(*arguments, **options):
    try:
        signal.raise_signal(NUMBER)
    except BaseException:
        pass


command.cli.main = globals()[sys.argv[2]]
console.run()
"""


@pytest.mark.parametrize("how", ["swallowed", "renamed", "kept"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_signal_is_lost(number, how):
    outcome = subprocess.run(
        [sys.executable, "-c", CODE, str(int(number)), how],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert outcome.returncode == 128 + number
    assert outcome.stderr == ("phrasetool: interrupted\n" if number == signal.SIGINT else "")


def test_an_interrupt_while_modules_are_imported():
    code = (
        "import sys, signal, phrasetool_cli.console as console\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'click':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "console.run()\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (outcome.returncode, outcome.stderr) == (130, "phrasetool: interrupted\n")


def test_an_ignored_interrupt_remains_ignored(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.watch_signals()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_in_another_thread(monkeypatch):
    import threading

    codes = []

    def work():
        try:
            main(["inspect", os.devnull + "/none"])
        except SystemExit as end:
            codes.append(end.code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert codes == [1]
