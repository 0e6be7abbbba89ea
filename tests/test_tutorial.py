"""The commands of the tutorial, run in a fresh clone, print the documented output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import clean_environment
from tests.shell_pages import Block, blocks, is_right, run

ROOT = Path(__file__).parent.parent
TUTORIAL = blocks((ROOT / "docs/tutorial.md").read_text("utf-8"))
# Enables tests that install all dependencies from a package index.
FRESH = os.environ.get("PHRASETOOL_FRESH_INSTALL")


@pytest.fixture
def clone(tmp_path):
    """A fresh clone of the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository to clone")
    folder = tmp_path / "phrasetool"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, folder], check=True, timeout=60)
    return folder


def follow(found, clone, path, timeout):
    """Run blocks in the clone and compare their output with the page."""
    outputs = run(found, clone, clean_environment(PATH=path, PWD=str(clone)), timeout)
    for block, output in zip(found, outputs, strict=True):
        assert is_right(block, output), f"{block.commands}\n" + "\n".join(output)


@pytest.mark.timeout(600)
def test_each_command_prints_the_documented_output(clone):
    install, *rest = TUTORIAL
    assert "pip install" in install.commands
    assert len(rest) > 12
    assert sum(block.output is not None for block in rest) > 9
    follow(rest, clone, f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", timeout=580)
    files = {path.name for path in (clone.parent / "first-table").iterdir()}
    assert {"phrase-table.gz", "small.gz", "annotated.gz", "annotated.ini", "model"} <= files


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not FRESH, reason="installs everything anew: PHRASETOOL_FRESH_INSTALL=1 and a network")
def test_installation_from_a_fresh_clone(clone):
    follow(TUTORIAL, clone, os.environ["PATH"], timeout=1700)


def test_the_install_commands_match_the_readme():
    commands = TUTORIAL[0].commands.replace("--quiet ", "")
    assert f"```sh\n{commands}```" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("printed", "real", "varies", "right"),
    [
        (["a 1.0 b"], ["a 1.1 b"], False, True),
        (["a 1.0 b"], ["a 2.0 b"], False, False),
        (["a 1.0 b"], ["c 1.0 b"], False, False),
        (["aligned after 1 s"], ["aligned after 75.2 s"], False, True),
        (["x  36.28   ±5.26", "y 35.54 -0.73   0.1329"], ["x  36.20   ±4.26", "y 35.60 +1.73   0.9000"], False, True),
        (["model:rae+in-batch-38f292ac|n:50"], ["model:rae+in-batch-0e6f0f82|n:50"], False, True),
        (["a", "...", "d"], ["a", "b", "c", "d"], False, True),
        (["a", "...", "d"], ["a", "b", "c"], False, False),
        (["a"], ["a", "b"], False, False),
        (["a", "b"], ["a"], False, False),
        (["a", "b", "...", "c"], ["c", "b", "x"], True, True),
        (["a", "b", "c"], ["c", "x", "y"], True, False),
    ],
)
def test_comparison_with_the_printed_output(printed, real, varies, right):
    assert is_right(Block("", printed, varies), real) == right


def test_a_command_that_fails_ends_the_run(tmp_path):
    with pytest.raises(AssertionError, match="no such thing"):
        run([Block("echo no such thing\nfalse\n"), Block("touch late\n")], tmp_path, clean_environment(), 20)
    assert not (tmp_path / "late").exists()
