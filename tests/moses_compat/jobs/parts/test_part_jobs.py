"""Tables in part files come out as the table in one file does."""

import gzip
import json

import pytest

from moses_compat.jobs.parts import part_jobs
from tests.commands import run_inside, write
from tests.tables import TABLES

DATA = TABLES["seven fields"]


@pytest.fixture
def parts(tmp_path):
    table = write(tmp_path / "t", DATA)
    done = run_inside("convert", table, "-o", tmp_path / "parts", "--part-entries", 4)
    assert done.code == 0
    assert "entries" in done.err
    assert len(list((tmp_path / "parts").glob("part-*.gz"))) > 2
    return tmp_path / "parts"


def text_of(folder):
    return b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("part-*.gz")))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("command", [("annotate",), ("prune", "-t", "0.2", "--keep-top", "1")], ids=lambda c: c[0])
def test_parts_come_out_as_the_table_does(parts, model_folder, tmp_path, command, threads):
    rest = "-m", model_folder, "--threads", threads
    alone = run_inside(*command, tmp_path / "t", *rest, "-q", "-o", tmp_path / "whole")
    done = run_inside(*command, parts, *rest, "-o", tmp_path / "out", "--json", tmp_path / "told.json")
    assert (alone.code, done.code) == (0, 0), done.err
    assert text_of(tmp_path / "out") == (tmp_path / "whole").read_bytes()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert json.loads((tmp_path / "told.json").read_text())["parts"] == manifest["parts"]
    assert (manifest["read"], manifest["entries"]) == (DATA.count(b"\n"), text_of(tmp_path / "out").count(b"\n"))
    assert f"{len(manifest['parts'])} parts" in done.err


def test_an_interrupted_run_makes_what_is_missing(parts, model_folder, tmp_path, monkeypatch):
    out, made = tmp_path / "out", []
    ask = "annotate", parts, "-m", model_folder, "-o", out, "--resume", "--threads", 1
    annotate = part_jobs.annotate

    def stop(request):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(request.table)
        return annotate(request)

    monkeypatch.setattr(part_jobs, "annotate", stop)
    assert run_inside(*ask).code == 130
    assert not (out / "manifest.json").exists()
    refused = run_inside("annotate", out, "-m", model_folder, "-o", tmp_path / "more")
    assert (refused.code, "is not finished" in refused.err) == (1, True)
    monkeypatch.setattr(part_jobs, "annotate", lambda request: made.append(request.table) or annotate(request))
    done = run_inside(*ask)
    assert (done.code, "going on from" in done.err) == (0, True)
    assert len(made) == len(set(made)) == len(list(parts.glob("part-*.gz")))
    whole = run_inside("annotate", tmp_path / "t", "-m", model_folder, "-q", "-o", "-")
    assert text_of(out) == whole.out
    again = run_inside(*ask)
    assert (again.code, "out: is whole already" in again.err) == (1, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("annotate", "--smoothing", "kneser-ney"), "part files take no --moses-ini"),
        (("prune", "--target-size", "0.5"), "pruned by a threshold of similarity"),
        (("prune", "-t", "0.5", "--rejected", "r"), "nothing else is written"),
        (("prune", "--method", "count", "--target-size", "0.5"), "pruned by a threshold of similarity"),
    ],
)
def test_what_needs_the_whole_table(parts, model_folder, tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    done = run_inside(command[0], parts, "-m", model_folder, *command[1:], "-o", tmp_path / "out")
    assert (done.code, message in done.err) == (2, True), done.err
    assert not (tmp_path / "out").exists()


def test_folders_that_are_in_the_way(parts, model_folder, tmp_path):
    same = run_inside("annotate", parts, "-m", model_folder, "-o", parts)
    assert (same.code, "the output is the input" in same.err) == (1, True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    full = run_inside("annotate", parts, "-m", model_folder, "-o", tmp_path / "out")
    assert (full.code, "holds notes already" in full.err) == (1, True)
    assert (tmp_path / "out" / "notes").read_text() == "mine"
    standard = run_inside("prune", parts, "-m", model_folder, "-t", "0.5")
    assert standard.code == 2
    assert "expected a folder" in standard.err
