import time

import pytest

from phrasetool_cli.main import COMMANDS
from tests.commands import run_outside


def completed(line):
    """What bash is told about the last word of a command line: kinds and values."""
    words = line.split(" ")
    done = run_outside(COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), _PHRASETOOL_COMPLETE="bash_complete")
    assert (done.code, done.err) == (0, "")
    return [tuple(row.split(",", 1)) for row in done.out.decode().splitlines()]


def test_commands_are_listed_fast():
    best = min(timed() for _ in range(3))
    # Importing one command of those with kernels takes longer.
    assert best < 0.5


def timed():
    began = time.monotonic()
    assert completed("phrasetool ") == [("plain", name) for name in COMMANDS]
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("phrasetool evaluate", [("plain", f"evaluate{of}") for of in ("-model", "-mining", "")]),
        ("phrasetool --v", [("plain", "--version")]),
        ("phrasetool prune --max-b", [("plain", "--max-bleu-loss")]),
        ("phrasetool annotate --smoothing k", [("plain", "kneser-ney")]),
        ("phrasetool annotate ta", [("file", "ta")]),
        ("phrasetool prune --dev de", [("file", "de")]),
        ("phrasetool ems-prune ta", [("file", "ta")]),
        ("phrasetool train --loss v", [("plain", "vmf")]),
        ("phrasetool no-such-command ", [("plain", name) for name in COMMANDS]),
    ],
)
def test_completion(line, expected):
    assert completed(line) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_for_a_shell(shell):
    done = run_outside(_PHRASETOOL_COMPLETE=f"{shell}_source")
    assert done.code == 0
    assert "_PHRASETOOL_COMPLETE" in done.out.decode()
