"""Scratch files: locked while their process lives, removed by the next one when it was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from phrasetool.disk.scratch import scratch_file, scratch_folder

_HOLDER = """
import sys, time
from phrasetool.disk.scratch import scratch_file, scratch_folder
handle, path = scratch_file(sys.argv[1], ".out.", ".part")
folder = scratch_folder(sys.argv[1], ".staged-")
name = folder.__enter__()
open(name + "/inside", "w").close()
print(path, name, sep="\\n", flush=True)
time.sleep(100)
"""


@pytest.fixture
def holder(tmp_path: Path):
    """A process that holds a file and a folder, and their paths."""
    process = subprocess.Popen([sys.executable, "-c", _HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield process, [Path(process.stdout.readline().strip()) for _ in range(2)]
    process.kill()
    process.wait()
    process.stdout.close()


def _make_both(folder: Path) -> None:
    handle, path = scratch_file(folder, ".out.", ".part")
    os.unlink(path)
    os.close(handle)
    with scratch_folder(folder, ".staged-"):
        pass


def test_what_a_killed_process_left_is_removed(tmp_path, holder):
    process, paths = holder
    _make_both(tmp_path)
    assert all(path.exists() for path in paths), "its process lives"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert all(path.exists() for path in paths)
    _make_both(tmp_path)
    assert not any(tmp_path.iterdir())


def test_what_has_another_name_stays(tmp_path):
    others = [".out.abcdefgh.part2", ".out.abcdefghi.part", ".other.abcdefgh.part", ".out.ABCDEFGH.part", "out"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / "target").touch()
    (tmp_path / ".out.abcdefgh.part").symlink_to(tmp_path / "target")
    _make_both(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "target", ".out.abcdefgh.part"])


def test_two_of_one_name_in_one_process_do_not_remove_each_other(tmp_path):
    first = scratch_file(tmp_path, ".out.", ".part")
    second = scratch_file(tmp_path, ".out.", ".part")
    with scratch_folder(tmp_path, ".staged-") as one, scratch_folder(tmp_path, ".staged-") as other:
        assert len({first[1], second[1], one, other}) == 4
        assert all(os.path.exists(path) for path in (first[1], second[1], one, other))
    for handle, _ in (first, second):
        os.close(handle)
    assert not os.path.exists(one)


def test_a_folder_that_was_renamed_stays(tmp_path):
    with scratch_folder(tmp_path, ".made-") as name:
        os.replace(name, tmp_path / "final")
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127])
def test_names_as_long_as_can_be(tmp_path, name):
    with scratch_folder(tmp_path, f".{name}.", ".part") as folder:
        assert folder.endswith(".part")
        assert len(os.fsencode(os.path.basename(folder))) == 255
    handle, path = scratch_file(tmp_path, f".{name}.", ".part")
    os.close(handle)
    _, again = scratch_file(tmp_path, f".{name}.", ".part")
    assert os.listdir(tmp_path) == [os.path.basename(again)] != [os.path.basename(path)]


def test_a_folder_goes_with_hardly_a_descriptor_left(tmp_path):
    """As a sorted copy does when the limit of open files stops the work."""
    script = (
        "import os, resource, sys\nfrom phrasetool.disk.scratch import scratch_folder\n"
        "with scratch_folder(sys.argv[1], '.x-') as folder:\n"
        "    open(folder + '/inside', 'w').close()\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n"
        "    assert os.path.exists(folder + '/inside')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []
