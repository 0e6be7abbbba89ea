"""Finished results of interrupted work are reused, and no others."""

import json
import subprocess
import sys

import pytest

from moses_compat.files import finished_work
from moses_compat.files.finished_work import (
    FinishedWork,
    described,
    digest_of_bytes,
    forget_finished,
    settings_before,
    settings_of,
)
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.measures.similarities import EncoderRequest
from phrasetool.disk.packed_values import packed
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pruning.thresholds import Threshold
from tests.commands import write
from tests.power_cuts import PowerCut, cut_after

__all__ = ["cut_after"]

ITEMS = list(range(10, 20))


def digest(item):
    return digest_of_bytes(str(item).encode())


def squares(folder, items=ITEMS, settings=None, said=None, threads=1):
    """Return the squares of the items, and the number of reused results."""
    say = said.append if said is not None else print
    with FinishedWork(str(folder / "out"), str(folder / "in"), settings or {"a": "1"}, say) as finished:
        result = finished.run("squares", digest, items, lambda item: item * item, threads)
        return list(result), finished.taken


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "in", b"some text")
    return tmp_path


@pytest.mark.parametrize("threads", [1, 3])
def test_what_was_made_is_not_made_again(folder, cut_after, threads):
    recorded = []
    for stop in (0, 1, 3):
        result = cut_after(stop)
        with pytest.raises(PowerCut):
            squares(folder, said=recorded, threads=threads)
        assert len(result) == stop
    assert recorded == [f"going on from {folder / 'out.unfinished'}"]
    result = cut_after(-1)
    assert squares(folder) == ([item * item for item in ITEMS], 4)
    assert result == ITEMS[4:]
    assert not (folder / "out.unfinished").exists()


def test_what_is_kept_may_be_less_than_a_result(folder, cut_after):
    def run(finished):
        return finished.run(
            "halves", digest, ITEMS, lambda item: (item, item / 2), 1, lambda result: result[1],
            lambda item, kept: (item, kept),
        )  # fmt: skip

    cut_after(5)
    with pytest.raises(PowerCut), FinishedWork(str(folder / "out"), str(folder / "in"), {}) as finished:
        list(run(finished))
    cut_after(-1)
    with FinishedWork(str(folder / "out"), str(folder / "in"), {}) as finished:
        assert list(run(finished)) == [(item, item / 2) for item in ITEMS]
        assert finished.taken == 5
        # Another pass has its own files.
        assert list(finished.run("cubes", digest, [1, 2], lambda item: item**3, 1)) == [1, 8]


def left_over(folder, cut_after):
    """Interrupt the work after two items, and return the folder with their results."""
    cut_after(2)
    with pytest.raises(PowerCut):
        squares(folder)
    cut_after(-1)
    return folder / "out.unfinished"


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (
            lambda left: None,
            {"a": "2"},
            "belongs to another run: a was 1 and is now 2; delete the folder to start again",
        ),
        (lambda left: None, {"a": "1", "b": "3"}, "belongs to another run: b was None and is now 3"),
        (lambda left: write(left.parent / "in", b"some tent"), None, "belongs to another run: input was 9 bytes, "),
        (lambda left: write(left / "settings.json", b"[" * 9), None, r"settings\.json: is damaged"),
        (lambda left: write(left / "settings.json", b"[]"), None, "a was None and is now 1"),
    ],
)
def test_another_run(folder, cut_after, change, settings, message):
    left = left_over(folder, cut_after)
    change(left)
    with pytest.raises(DataError, match=message):
        squares(folder, settings=settings)
    assert left.is_dir()


@pytest.mark.parametrize("items", [[10, 99], [10]])
def test_an_input_that_changed_where_nobody_looked(folder, cut_after, items):
    left = left_over(folder, cut_after)
    with pytest.raises(DataError, match=r"out\.unfinished: was made from other content of .*in; delete"):
        squares(folder, items=items)
    assert left.is_dir()


def test_damaged_and_hostile_files(folder, cut_after, monkeypatch):
    monkeypatch.chdir(folder)
    left = left_over(folder, cut_after)
    path = next(left.glob("*.done"))
    good = path.read_bytes()
    header = b'{"object": "os:mkdir", "parts": ["sentinel"]}'
    evil = len(header).to_bytes(8, "little") + header
    wrong_keys = packed({"neither": "digests", "nor": "results"})
    forged = [digest_of_bytes(kept) + kept for kept in (evil, wrong_keys, packed(3), packed([1, 2]))]
    for data in (good[:-1], good[:20] + b"x" + good[21:], b"", *forged):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"\.done: is damaged"):
            squares(folder)
    assert not (folder / "sentinel").exists()


def test_where_nothing_can_be_kept(folder):
    for output, source in (("-", folder / "in"), ("/dev/null", folder / "in"), (folder / "out", "-")):
        with pytest.raises(PhraseToolError, match="expected files to read and to write"):
            FinishedWork(str(output), str(source), {})
    write(folder / "out.unfinished", b"")
    with pytest.raises(PhraseToolError, match=r"out\.unfinished: cannot write: "):
        squares(folder)


def test_a_disk_that_is_full(folder, monkeypatch):
    """Results that were stored before are kept, and reused when there is space."""
    monkeypatch.setattr(finished_work, "SECONDS", 0.0)
    real, written = finished_work.os.fsync, []

    def fsync(handle):
        written.append(handle)
        if len(written) == 8:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(finished_work.os, "fsync", fsync)
    with pytest.raises(PhraseToolError, match=r"out\.unfinished: cannot write: the disk is full"):
        squares(folder)
    left = folder / "out.unfinished"
    before = {path.name for path in left.iterdir()}
    assert not [name for name in before if name.startswith(".begun")]
    assert squares(folder)[0] == [item * item for item in ITEMS]


def test_a_second_run_waits_for_the_first(folder):
    code = (
        "import sys; from moses_compat.files.finished_work import FinishedWork\n"
        "with FinishedWork(sys.argv[1], sys.argv[2], {}):\n    print('in')"
    )
    with FinishedWork(str(folder / "out"), str(folder / "in"), {}):
        command = [sys.executable, "-c", code, str(folder / "out"), str(folder / "in")]
        second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(1.5)
    assert second.communicate(timeout=60) == (b"in\n", b"")
    assert second.returncode == 0


def test_settings_are_what_files_hold(tmp_path):
    file, model = write(tmp_path / "file", b"abc"), tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"sha256": {}}))
    request = PruneRequest("t", threshold=Threshold.of(0.5), ini=str(file), model_folder=str(model), seed=3)
    before = settings_of(request, ("table",))
    assert "table" not in before
    assert (before["seed"], before["ini"][:7], before["model folder"][:7]) == ("3", "3 bytes", "14 byte")
    # The last byte of a small file, and of one of several megabytes.
    for start in (b"", bytes(3 << 20)):
        file.write_bytes(start + b"abc")
        before = settings_of(request, ("table",))
        file.write_bytes(start + b"abd")
        after = settings_of(request, ("table",))
        assert {name for name in before if before[name] != after[name]} == {"ini"}


@pytest.mark.parametrize("name", ["config.json", "modules.json", None])
def test_settings_are_what_folders_of_encoders_hold(tmp_path, name):
    folder = tmp_path / "encoder"
    folder.mkdir()
    if name:
        write(folder / name, b'{"model_type": "bert"}')
    weights = write(folder / "model.safetensors", b"abc")
    before = described(EncoderRequest(str(folder)))
    weights.write_bytes(b"abd")
    assert described(EncoderRequest(str(folder))) != before


def test_what_is_complete_needs_nothing_left(folder, cut_after):
    left = left_over(folder, cut_after)
    forget_finished(str(folder / "out"))
    assert not left.exists()
    # A folder of that name with other contents is kept.
    left.mkdir()
    write(left / "mine", b"")
    forget_finished(str(folder / "out"))
    assert left.exists()


def test_what_nobody_knows_the_settings_of_is_not_taken(folder, cut_after):
    """This is the state after an earlier version was killed while it removed the folder."""
    cut_after(3)
    with pytest.raises(PowerCut):
        squares(folder)
    (folder / "out.unfinished" / "settings.json").unlink()
    cut_after(-1)
    assert squares(folder, settings={"a": "2"}) == ([item * item for item in ITEMS], 0)


def test_settings_are_removed_last(folder, cut_after, monkeypatch):
    cut_after(3)
    with pytest.raises(PowerCut):
        squares(folder)
    assert settings_before(str(folder / "out"))["a"] == "1"

    def killed(path, ignore_errors):
        raise PowerCut

    monkeypatch.setattr(finished_work.shutil, "rmtree", killed)
    with pytest.raises(PowerCut):
        forget_finished(str(folder / "out"))
    assert [path.name for path in (folder / "out.unfinished").iterdir()] == ["settings.json"]


@pytest.mark.parametrize(("names", "there"), [([], False), ([".begun-abcdefgh"], False), (["mine"], True)])
def test_an_early_end_leaves_nothing_for_ever(folder, names, there):
    (folder / "out.unfinished").mkdir()
    for name in names:
        (folder / "out.unfinished" / name).touch()
    forget_finished(str(folder / "out"))
    assert (folder / "out.unfinished").exists() is there
    assert settings_before(str(folder / "out")) == {}
