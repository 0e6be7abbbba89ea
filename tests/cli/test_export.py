"""`phrasetool export` through the command line."""

import csv
import gzip
import io
import json

import pytest

from tests.commands import run_inside, write
from tests.moses_compat.jobs.export_reading import TABLE, read_map, read_shortlist


@pytest.fixture
def files(tmp_path, monkeypatch):
    write(tmp_path / "table.gz", TABLE.encode())
    (tmp_path / "source").write_text("das haus\nklein\n")
    (tmp_path / "target").write_text("the house\nsmall thing\n")
    (tmp_path / "words").write_text("</s>\nhaus\ndas\nthe\nhouse\nsmall\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--threads", 2, "--block-bytes", 40)])
def test_a_map(files, options):
    outcome = run_inside("export", "table.gz", "--to", "vmap", "-o", "vmap", "--always", 2, "--json", "json",
                         "--evaluate", "source", "target", *options)  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert read_map((files / "vmap").read_bytes())[0]["haus"] == ["building"]
    report = json.loads((files / "json").read_text())
    assert (report["phrases"], report["always"], report["coverage"]["covered"]) == (5, 2, 3)
    assert outcome.err.splitlines() == [
        "phrasetool: 5 phrases with 6 candidates (1.2 of a phrase), 2 units are always candidates",
        "phrasetool: 75.0% of the 4 reference tokens are candidates of their sentence, 75.0% of any; in 50.0% of the 2 "
        "sentences all are",
        "phrasetool: candidates of a sentence: mean 4.5, median 4, 95th percentile 6",
    ]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--to", "bicleaner", "--min-probability", 1), "no pair of single words is probable enough"),
        (("--to", "lexicon", "--min-pair-count", 10**6), "no pair of terms is frequent and probable enough"),
        (("--to", "vmap", "--min-probability", 1, "--always", 0), "no candidate is probable enough"),
    ],
)
def test_an_empty_output_is_refused(files, options, reason):
    table = "".join(f"w{i} ||| v{j} ||| .4 .4 .4 .4 ||| 0-0 ||| 5 5 2\n" for i in range(3) for j in range(2))
    write(files / "poor", table.encode())
    failed = run_inside("export", "poor", *options, "-o", "out.gz")
    assert failed.code == 1
    assert failed.message.startswith(f"phrasetool: poor: {reason}")
    assert failed.message.endswith("so the output would be empty; --force continues anyway")
    assert not (files / "out.gz").exists()
    forced = run_inside("export", "poor", *options, "-o", "out.gz", "--force")
    assert forced.code == 0
    assert f"warning: poor: {reason}" in forced.err
    assert (files / "out.gz").exists()


def test_streams(files):
    outcome = run_inside("export", "-", "--to", "vmap", "-q", stdin=TABLE.encode())
    assert outcome.code == 0, outcome.err
    assert outcome.out == run_inside("export", "table.gz", "--to", "vmap", "-q").out != b""
    reversed_table = "".join(reversed(TABLE.splitlines(keepends=True))).encode()
    again = run_inside("export", "-", "--to", "vmap", "-q", "--sort", stdin=reversed_table)
    assert again.out == run_inside("export", "-", "--to", "vmap", "-q", "--sort", stdin=TABLE.encode()).out


def test_shortlists(files):
    vocabularies = ("--source-vocab", "words", "--target-vocab", "words", "--always", 1, "--force")
    outcome = run_inside("export", "table.gz", "--to", "shortlist", "-o", "lex.s2t.gz", *vocabularies)
    assert outcome.code == 0, outcome.err
    result = read_shortlist(gzip.decompress((files / "lex.s2t.gz").read_bytes()))
    assert result == {"das": {"the": 0.6875}, "haus": {"house": 0.6875}}
    outcome = run_inside(
        "export", "table.gz", "--to", "shortlist", "--format", "binary", "-o", "lex.bin", *vocabularies
    )
    assert outcome.code == 0, outcome.err
    assert (files / "lex.bin").read_bytes()[:8] == 0xF11A48D5013417F5.to_bytes(8, "little")


def test_lexicons(files):
    outcome = run_inside("export", "table.gz", "--to", "lexicon", "--sample", 2, "--stop-words", 0, "--evaluate",
                         "source", "target")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert [line.split(b"\t")[0] for line in outcome.out.splitlines()] == [b"source", b"klein", b"das"]
    assert "2 written" in outcome.err
    assert "of 100.0% the target is in a translation" in outcome.err
    outcome = run_inside("export", "table.gz", "--to", "bicleaner", "-o", "s.gz", "--reverse-out", "t.gz", "-q")
    assert outcome.code == 0, outcome.err
    assert b"klein small 1\n" in gzip.decompress((files / "t.gz").read_bytes())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["table.gz"], 2, "Missing option '--to'"),
        (["table.gz", "--to", "vmap", "--format", "binary"], 2, "--format cannot be used with --to vmap"),
        (["table.gz", "--to", "shortlist", "--longest", "2"], 2, "--longest cannot be used with --to shortlist"),
        (["table.gz", "--to", "shortlist", "--format", "tsv"], 2, "has the formats text, binary, not tsv"),
        (["table.gz", "--to", "shortlist", "--format", "binary"], 2, "a binary shortlist needs both vocabularies"),
        (["table.gz", "--to", "lexicon", "--format", "tbx"], 2, "--format tbx and --languages must be given together"),
        (["table.gz", "--to", "lexicon", "--languages", "german"], 2, "is not two codes of languages"),
        (["table.gz", "--to", "bicleaner", "-o", "d.txt"], 2, "expected a name with .gz, not d.txt"),
        (["table.gz", "--to", "vmap", "--scale", "raw"], 2, "--scale is for --similarity-columns"),
        (["table.gz", "--to", "vmap", "--on-error", "keep"], 2, "skip leaves them out"),
        (["table.gz", "--to", "vmap", "--similarity-columns", "1,2", "-m", "x"], 2, "give one"),
        (["-", "--to", "vmap", "--evaluate", "-", "target"], 2, "only one input can be standard input"),
        (["table.gz", "--to", "vmap", "-o", "source", "--evaluate", "source", "target"], 1, "the output is the input"),
        (["table.gz", "--to", "vmap", "--evaluate", "source", "words"], 1, "words: 6 lines, but source has 2"),
        (
            ["table.gz", "--to", "vmap", "--similarity-columns", "5,6"],
            1,
            "column 6 was requested, but entries have 4 scores",
        ),
        (["table.gz", "--to", "vmap", "--target-vocab", "no"], 1, "no: cannot read the vocabulary: No such file"),
        (["no.gz", "--to", "vmap"], 1, "no.gz: No such file or directory"),
        (["words", "--to", "lexicon"], 1, "words"),
    ],
)  # fmt: skip
def test_bad_usage(files, arguments, code, said):
    before = {path: path.read_bytes() for path in files.iterdir()}
    outcome = run_inside("export", *arguments)
    assert outcome.code == code, outcome.err
    assert said in outcome.message
    assert outcome.out == b""
    assert {path: path.read_bytes() for path in files.iterdir()} == before


@pytest.mark.parametrize("form", ["tsv", "csv"])
def test_terms_with_quotation_marks_are_read_back(tmp_path, form):
    """CSV readers take a quotation mark at the beginning of a field as an opening one, so it must be quoted."""
    pairs = [('"Haus', "house"), ("Kind", 'the"child'), ("Hund", "dog")]
    lines = "".join(f"{source} ||| {target} ||| 0.9 0.9 0.9 0.9 ||| 0-0 ||| 5 5 5\n" for source, target in pairs)
    table = write(tmp_path / "t", lines.encode())
    outcome = run_inside("export", table, "--to", "lexicon", "--format", form, "--stop-words", 0)
    assert outcome.code == 0, outcome.err
    rows = list(csv.reader(io.StringIO(outcome.out.decode()), delimiter="\t" if form == "tsv" else ","))
    assert sorted(tuple(row[:2]) for row in rows[1:]) == sorted(pairs)
