"""Tables in part files: jobs on them have the same results as on the table in one file."""

import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.jobs import table_parts
from moses_compat.jobs.table_parts import Part, PartFolder, part_names, read_manifest, split_table
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import run_inside, write
from tests.tables import TABLES

LINES = [b"%s ||| e%d ||| 0.5\n" % (source, i) for source in (b"a", b"a b", b"b", b"c") for i in range(3)]


def split(folder, data, entries):
    folder.mkdir(exist_ok=True)
    with Input(str(write(folder / "t", data))) as source:
        return split_table(source, str(folder / "parts"), entries)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 9)), max_size=12), st.integers(1, 20))
def test_parts_join_to_the_table_and_split_no_source(tmp_path_factory, groups, entries):
    folder = tmp_path_factory.mktemp("split")
    sources = [f"{word}{number}" for number, (word, _) in enumerate(groups)]
    data = "".join(
        f"{source} ||| e{i} ||| 0.5\n" for source, (_, size) in zip(sources, groups, strict=True) for i in range(size)
    )
    parts = split(folder, data.encode(), entries)
    texts = [gzip.decompress((folder / "parts" / name).read_bytes()).decode() for name in part_names(folder / "parts")]
    assert "".join(texts) == data
    assert [part.entries for part in parts] == [text.count("\n") for text in texts]
    sources_of_parts = [{line.split(" ||| ")[0] for line in text.splitlines()} for text in texts]
    assert sum(map(len, sources_of_parts)) == len(sources)
    assert read_manifest(str(folder / "parts" / "manifest.json")) == parts
    for part in parts:
        result = (folder / "parts" / part.name).read_bytes()
        assert (part.bytes, part.sha256) == (len(result), hashlib.sha256(result).hexdigest())
    # Only the last part may be smaller than requested.
    assert all(part.entries >= entries for part in parts[:-1])


def test_sources_of_a_part(tmp_path):
    parts = split(tmp_path, b"stray\n" + b"".join(LINES), 100)
    assert [(part.read, part.first, part.last) for part in parts] == [(13, "", "c")]
    assert split(tmp_path / "empty", b"", 5) == [Part("part-00000.gz", 0, 0, *_size(tmp_path), "", "")]


def _size(tmp_path):
    data = (tmp_path / "empty" / "parts" / "part-00000.gz").read_bytes()
    return len(data), hashlib.sha256(data).hexdigest()


def test_invalid_part_folders(tmp_path):
    split(tmp_path, b"".join(LINES), 3)
    folder = tmp_path / "parts"
    (folder / "other.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"other\.gz is not of the table"):
        part_names(str(folder))
    (folder / "other.gz").unlink()
    first = folder / "part-00000.gz"
    data = first.read_bytes()
    first.write_bytes(data + b"x")
    with pytest.raises(DataError, match=rf"part-00000.gz: does not have the {len(data)} bytes"):
        part_names(str(folder))
    first.unlink()
    with pytest.raises(DataError, match=r"part-00000\.gz is missing"):
        part_names(str(folder))
    (folder / ".unfinished").write_text("{}\n")
    with pytest.raises(DataError, match="is incomplete"):
        part_names(str(folder))
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="has no part files"):
        part_names(str(tmp_path / "nothing"))
    (tmp_path / "nothing" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match="the folder of a model of phrasetool; expected a file"):
        part_names(str(tmp_path / "nothing"))
    with pytest.raises(DataError, match="No such file"):
        part_names(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 1, "parts": [{}]}', "nul\0"])
def test_damaged_manifests(tmp_path, text):
    with pytest.raises(DataError, match="is not a manifest"):
        read_manifest(str(write(tmp_path / "manifest.json", text.encode())))
    with pytest.raises(DataError, match="has format 2; this program supports 1"):
        read_manifest(str(write(tmp_path / "manifest.json", b'{"format": 2, "parts": []}')))


def part(folder, name, first, last, lines=2):
    data = f"{name}".encode()
    (folder / name).write_bytes(data)
    return Part(name, lines, lines, len(data), "", first, last)


def test_a_source_in_two_parts(tmp_path):
    part_folder = PartFolder(str(tmp_path / "out"), {})
    parts = (part(tmp_path / "out", *row) for row in (("1", "a", "b"), ("2", "", "", 0), ("3", "b", "c")))
    with pytest.raises(DataError, match="3: begins with the source that 1 ends with, 'b'"):
        list(part_folder.add(parts))
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_an_interrupted_run_is_resumed(tmp_path):
    folder = tmp_path / "out"
    part_folder = PartFolder(str(folder), {"model": "m"})
    parts = part_folder.add(part(folder, name, name, name) for name in ("1", "2", "3"))
    next(parts), next(parts)
    parts.close()
    # First, the last line of the notes is truncated; then, a part has changed, too.
    (folder / ".unfinished").write_text((folder / ".unfinished").read_text() + '{"name": "3", "re')
    again = PartFolder(str(folder), {"model": "m"}, resume=True)
    assert sorted(again.finished) == ["1", "2"]
    (folder / "1").write_text("longer")
    again = PartFolder(str(folder), {"model": "m"}, resume=True)
    assert sorted(again.finished) == ["2"]
    result = list(again.add(again.finished.get(name) or part(folder, name, name, name) for name in ("1", "2", "3")))
    assert read_manifest(str(folder / "manifest.json")) == result
    assert not (folder / ".unfinished").exists()


def test_unusable_output_folders(tmp_path):
    folder = tmp_path / "out"
    PartFolder(str(folder), {"model": "m"})
    with pytest.raises(DataError, match="belongs to another run: model was m and is now n"):
        PartFolder(str(folder), {"model": "n"}, resume=True)
    for damaged in ("[1]\n", '{"model": "m"}\n{\n', '{"model": "m"}\n{"name": "1"}\n', ""):
        (folder / ".unfinished").write_text(damaged)
        with pytest.raises(DataError, match="is damaged"):
            PartFolder(str(folder), {"model": "m"}, resume=True)
    # Without `resume`, the run starts from scratch.
    assert not PartFolder(str(folder), {"model": "n"}).finished
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(PhraseToolError, match="holds notes already"):
        PartFolder(str(tmp_path / "full"), {})
    with pytest.raises(PhraseToolError, match="cannot write"):
        PartFolder(str(tmp_path / "full" / "notes" / "out"), {})
    with pytest.raises(ValueError, match="at least one entry"):
        split(tmp_path, b"".join(LINES), 0)


DATA = TABLES["seven fields"]


@pytest.fixture
def parts(tmp_path):
    table = write(tmp_path / "t", DATA)
    outcome = run_inside("convert", table, "-o", tmp_path / "parts", "--part-entries", 4)
    assert outcome.code == 0
    assert "entries" in outcome.err
    assert len(list((tmp_path / "parts").glob("part-*.gz"))) > 2
    return tmp_path / "parts"


def text_of(folder):
    return b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("part-*.gz")))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("command", [("annotate",), ("prune", "-t", "0.2", "--keep-top", "1")], ids=lambda c: c[0])
def test_parts_have_the_same_output_as_the_table(parts, model_folder, tmp_path, command, threads):
    rest = "-m", model_folder, "--threads", threads
    alone = run_inside(*command, tmp_path / "t", *rest, "-q", "-o", tmp_path / "whole")
    outcome = run_inside(*command, parts, *rest, "-o", tmp_path / "out", "--json", tmp_path / "told.json")
    assert (alone.code, outcome.code) == (0, 0), outcome.err
    assert text_of(tmp_path / "out") == (tmp_path / "whole").read_bytes()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert json.loads((tmp_path / "told.json").read_text())["parts"] == manifest["parts"]
    assert (manifest["read"], manifest["entries"]) == (DATA.count(b"\n"), text_of(tmp_path / "out").count(b"\n"))
    assert f"{len(manifest['parts'])} parts" in outcome.err


def test_an_interrupted_job_resumes_with_the_missing_parts(parts, model_folder, tmp_path, monkeypatch):
    out, annotated = tmp_path / "out", []
    command = "annotate", parts, "-m", model_folder, "-o", out, "--resume", "--threads", 1
    annotate = table_parts.annotate

    def stop(request):
        if len(annotated) == 2:
            raise KeyboardInterrupt
        annotated.append(request.table)
        return annotate(request)

    monkeypatch.setattr(table_parts, "annotate", stop)
    assert run_inside(*command).code == 130
    assert not (out / "manifest.json").exists()
    refused = run_inside("annotate", out, "-m", model_folder, "-o", tmp_path / "more")
    assert (refused.code, "is incomplete" in refused.err) == (1, True)
    monkeypatch.setattr(table_parts, "annotate", lambda request: annotated.append(request.table) or annotate(request))
    outcome = run_inside(*command)
    assert (outcome.code, "resuming " in outcome.err) == (0, True)
    assert len(annotated) == len(set(annotated)) == len(list(parts.glob("part-*.gz")))
    whole = run_inside("annotate", tmp_path / "t", "-m", model_folder, "-q", "-o", "-")
    assert text_of(out) == whole.out
    again = run_inside(*command)
    assert (again.code, "out: is complete already" in again.err) == (1, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("annotate", "--smoothing", "kneser-ney"), "part files take no --smoothing kneser-ney; -m and --forced-pairs"),
        (("prune", "--target-size", "0.5"), "pruned by a threshold of similarity"),
        (("prune", "-t", "0.5", "--rejected", "r"), "nothing else is written"),
        (("prune", "--method", "semantic+count", "--target-size", "0.5"), "pruned by a threshold of similarity"),
        (("prune", "-t", "0.5", "--dry-run"), "part files take no --dry-run"),
    ],
)
def test_options_that_need_the_whole_table(parts, model_folder, tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    outcome = run_inside(command[0], parts, "-m", model_folder, *command[1:], "-o", tmp_path / "out")
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err
    assert not (tmp_path / "out").exists()


def test_unusable_outputs_of_jobs(parts, model_folder, tmp_path):
    same = run_inside("annotate", parts, "-m", model_folder, "-o", parts)
    assert (same.code, "the output is the input" in same.err) == (1, True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    full = run_inside("annotate", parts, "-m", model_folder, "-o", tmp_path / "out")
    assert (full.code, "holds notes already" in full.err) == (1, True)
    assert (tmp_path / "out" / "notes").read_text() == "mine"


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/2"])
def test_part_files_are_not_written_to_standard_output(parts, model_folder, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for command in (
        ("prune", parts, "-m", model_folder, "-t", "0.5"),
        ("annotate", parts, "-m", model_folder),
        ("convert", "t", "--part-entries", "4"),
    ):
        outcome = run_inside(*command, "-o", output)
        assert (outcome.code, "expected a folder to write part files to" in outcome.err) == (2, True), outcome.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_sweep_of_part_files_is_refused(parts, model_folder):
    outcome = run_inside("prune", parts, "-m", model_folder, "--sweep", "0:1:0.5")
    assert (outcome.code, "part files take no --sweep" in outcome.err) == (2, True), outcome.err


def test_a_job_that_fails_at_the_first_part_leaves_no_folder(parts, tmp_path):
    command = ("annotate", parts, "--forced-pairs", tmp_path / "missing", "--smoothing", "none", "-o", tmp_path / "out")
    for made in (False, True):
        outcome = run_inside(*command)
        assert (outcome.code, "missing: No such file" in outcome.err) == (1, True), outcome.err
        assert (tmp_path / "out").exists() == made
        # A folder that existed before is kept.
        (tmp_path / "out").mkdir(exist_ok=True)
        assert not any((tmp_path / "out").iterdir())


def test_starting_again_removes_the_parts_of_an_interrupted_run(tmp_path):
    """The second run has fewer parts than the first."""
    table = b"".join(b"s%d ||| t ||| 1\n" % i for i in range(9))
    with (
        Input(str(write(tmp_path / "cut", gzip.compress(table * 2000)[:-40]))) as source,
        pytest.raises(DataError, match="cut: the gzip data end too early"),
    ):
        split_table(source, str(tmp_path / "parts"), 2000)
    assert len(list((tmp_path / "parts").glob("part-*.gz"))) > 1
    parts = split(tmp_path, table, 20)
    assert [part.entries for part in parts] == [9]
    assert part_names(str(tmp_path / "parts")) == ["part-00000.gz"]


@pytest.mark.parametrize("start", [b"\xef\xbb\xbfb", b"\xff\xfe", b"\xfe\xff b"])
def test_no_part_begins_with_bytes_that_mean_something_at_the_start_of_a_file(tmp_path, start):
    # Each line is longer than a block.
    data = b"".join(source + b" ||| " + b"x" * 40 + b" ||| 1\n" for source in (b"a", start, b"c"))
    assert [part.entries for part in split(tmp_path, data, 1)] == [2, 1]
    files = sorted((tmp_path / "parts").glob("part-*.gz"))
    assert b"".join(gzip.decompress(file.read_bytes()) for file in files) == data


def test_sources_in_another_encoding_differ(tmp_path):
    parts = split(tmp_path, f"ä ||| {'x' * 40} ||| 1\nö ||| {'x' * 40} ||| 1\n".encode("latin-1"), 1)
    assert [(part.first, part.last) for part in parts] == [("\\xe4", "\\xe4"), ("\\xf6", "\\xf6")]
