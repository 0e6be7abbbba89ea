import subprocess
import sys

import pytest

from phrasetool_cli.main import COMMANDS
from tests.commands import clean_environment, run_outside


def completed(line):
    """Return bash's completions of the last word of a command line as tuples of kind and value."""
    words = line.split(" ")
    outcome = run_outside(COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), _PHRASETOOL_COMPLETE="bash_complete")
    assert (outcome.code, outcome.err) == (0, "")
    return [tuple(row.split(",", 1)) for row in outcome.out.decode().splitlines()]


def test_listing_commands_imports_none():
    """Importing a command with kernels would delay every press of the Tab key."""
    code = (
        "import sys; from phrasetool_cli.console import run\n"
        "import atexit, os; real = os._exit\n"
        "os._exit = lambda code: (print([name for name in sys.modules if 'phrasetool_cli.commands.' in name or name in "
        "('numpy', 'numba', 'torch')], file=sys.stderr, flush=True), real(code))\n"
        "run()"
    )
    words = {"COMP_WORDS": "phrasetool ", "COMP_CWORD": "1", "_PHRASETOOL_COMPLETE": "bash_complete"}
    outcome = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(**words), capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert [tuple(row.split(",", 1)) for row in outcome.stdout.splitlines()] == [("plain", name) for name in COMMANDS]
    assert outcome.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("phrasetool evaluate", [("plain", f"evaluate{of}") for of in ("-model", "", "-mining")]),
        ("phrasetool --v", [("plain", "--version")]),
        ("phrasetool prune --max-b", [("plain", "--max-bleu-loss")]),
        ("phrasetool annotate --smoothing k", [("plain", "kneser-ney")]),
        ("phrasetool annotate ta", [("file", "ta")]),
        ("phrasetool prune --method semantic+co", [("plain", "semantic+composition"), ("plain", "semantic+count")]),
        ("phrasetool prune --method si", [("plain", "significance")]),
        ("phrasetool annotate --detokenise d", [("",)]),
        ("phrasetool neighbours ha", [("",)]),
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
    outcome = run_outside(_PHRASETOOL_COMPLETE=f"{shell}_source")
    assert outcome.code == 0
    assert "_PHRASETOOL_COMPLETE" in outcome.out.decode()
