"""`--resume`: commands that were stopped anywhere write the same bytes when resumed; see also `test_faults`."""

import pytest

from moses_compat.files import finished_work
from moses_compat.jobs import prune
from tests.commands import run_inside, write
from tests.power_cuts import PowerCut, cut_after
from tests.small_experiment import write_experiment
from tests.tables import TABLES

__all__ = ["cut_after"]
DATA = TABLES["seven fields"]
COLUMNS = ("--similarity-columns", "2,4", "--scale", "raw")


@pytest.mark.parametrize("arguments", [("prune", "-t", "0.5", *COLUMNS), ("annotate", "-m", "model")])
def test_resume_needs_files(tmp_path, arguments):
    table = write(tmp_path / "t", DATA)
    for paths in ((table, "-o", "-"), ("-", "-o", tmp_path / "out")):
        outcome = run_inside(*arguments, *paths, "--resume")
        assert outcome.code == 2
    assert "--resume keeps finished work next to the output; expected files to read, and -o FILE" in outcome.err
    assert not list(tmp_path.glob("*.unfinished"))


def test_other_options_make_another_run(tmp_path):
    table = write(tmp_path / "t", DATA)
    (tmp_path / "out.unfinished").mkdir()
    (tmp_path / "out.unfinished" / "settings.json").write_text("{}")
    outcome = run_inside("prune", table, "-t", "0.5", *COLUMNS, "-o", tmp_path / "out", "--resume")
    assert outcome.code == 1
    assert "out.unfinished: belongs to another run: " in outcome.err
    assert not (tmp_path / "out").exists()


def decoding(folder, command):
    """Return the arguments of a command that decodes, and the names of its outputs."""
    ini, dev = ("--moses-ini", folder / "moses.ini"), (folder / "dev.src", folder / "dev.trg")
    return {
        "decode": ((*ini, dev[0], "--n-best-list", folder / "list", 3, "-o", folder / "out.gz"), ("out.gz", "list")),
        "force-decode": ((*ini, folder / "train.src", folder / "one.src", "-o", folder / "out.gz"), ("out.gz",)),
        "tune": (
            (*ini, "--dev", dev[0], dev[1], "--iterations", 3, "--log", folder / "log", "--force", "-o",
             folder / "out.ini"), ("out.ini", "log"),
        ),
    }[command]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("command", ["decode", "force-decode", "tune"])
def test_decoding_is_resumed(tmp_path, cut_after, command, threads):
    folder = tmp_path / "x"
    write_experiment(folder)
    # As many sentences as in train.src.
    write(folder / "one.src", (folder / "train.trg").read_bytes())
    arguments, outputs = decoding(folder, command)
    arguments = (command, *arguments, "--threads", threads, "-q")
    plain = run_inside(*arguments)
    assert plain.code == 0, plain.err
    expected = {name: (folder / name).read_bytes() for name in outputs}
    for name in outputs:
        (folder / name).unlink()
    stops = 0
    while True:
        processed = cut_after(7 if command != "force-decode" else 1)
        try:
            outcome = run_inside(*arguments, "--resume")
            break
        except PowerCut:
            stops += 1
            assert not any((folder / name).exists() for name in outputs)
            assert list(folder.glob("*.unfinished"))
    assert outcome.code == 0, outcome.err
    assert (stops > 0, len(processed) < 8) == (True, True)
    assert {name: (folder / name).read_bytes() for name in outputs} == expected
    assert not list(folder.glob("*.unfinished"))


def test_a_changed_model_makes_another_run(tmp_path, cut_after):
    folder = tmp_path / "x"
    write_experiment(folder)
    arguments = ("decode", *decoding(folder, "decode")[0], "-q", "--resume")
    cut_after(3)
    with pytest.raises(PowerCut):
        run_inside(*arguments)
    cut_after(-1)
    changed = run_inside(*arguments, "--stack", 50)
    assert (changed.code, "belongs to another run: search was " in changed.err) == (1, True)
    ini = (folder / "moses.ini").read_text()
    (folder / "moses.ini").write_text(ini.replace("LM0= 0.4", "LM0= 0.5"))
    changed = run_inside(*arguments)
    assert (changed.code, "moses.ini was " in changed.err) == (1, True)
    (folder / "moses.ini").write_text(ini)
    assert run_inside(*arguments).code == 0


def test_similarities_of_an_interrupted_run_belong_to_the_same_run(tmp_path, model_folder, monkeypatch):
    """The run was stopped after the file of similarities was complete, and before the table was."""
    table, out, scores = write(tmp_path / "t", DATA), tmp_path / "out", tmp_path / "scores"
    arguments = ("prune", table, "-m", model_folder, "-t", "0.1", "-o", out, "--similarities", scores, "-q")
    assert run_inside(*arguments).code == 0
    whole, kept = out.read_bytes(), scores.read_bytes()
    out.unlink()
    scores.unlink()
    monkeypatch.setattr(finished_work, "SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(finished_work, "_remove", lambda folder: None)
        patch.setattr(prune, "forget_finished", lambda output: None)
        assert run_inside(*arguments, "--resume").code == 0
    out.unlink()
    assert (tmp_path / "out.unfinished").exists()
    outcome = run_inside(*arguments, "--resume")
    assert (outcome.code, out.read_bytes(), scores.read_bytes()) == (0, whole, kept), outcome.err
    # Another file of similarities is another run.
    with monkeypatch.context() as patch:
        patch.setattr(finished_work, "_remove", lambda folder: None)
        patch.setattr(prune, "forget_finished", lambda output: None)
        assert run_inside(*arguments, "--resume").code == 0
    scores.unlink()
    outcome = run_inside(*arguments, "--resume")
    assert (outcome.code, "belongs to another run: scores was" in outcome.err) == (1, True)
