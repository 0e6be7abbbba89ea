"""`phrasetool augment` through the command line."""

import json

import pytest

from tests.commands import read, run_inside, write
from tests.phrasetool.augment.toy_words import toy_entries

TEXT, REFERENCE = (
    "das grünst haus .\ntischwald , haus tischwald haus\n",
    "the green house .\nthe table forest , a house\n",
)


@pytest.fixture
def files(tmp_path):
    entries = toy_entries()
    lines = [
        f"{word} ||| {entry.target} ||| {' '.join(f'{score:g}' for score in entry.scores)} ||| 0-0 ||| 9 9 1\n"
        for word in entries
        for entry in entries[word]
    ]
    table = write(tmp_path / "table.gz", "".join(sorted(lines, key=str.encode)).encode())
    ini = (
        f"[feature]\nPhraseDictionaryMemory name=T num-features=4 path={table} input-factor=0 output-factor=0\n"
        "[weight]\nT= 0.1 0.2 0.3 0.4\n"
    )
    write(tmp_path / "moses.ini", ini.encode())
    write(tmp_path / "text", TEXT.encode())
    write(tmp_path / "reference", REFERENCE.encode())
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--threads", 2, "--block-bytes", 100)])
def test_a_table_gets_entries_and_an_ini(files, options):
    table, ini, document = files / "table.gz", files / "out.ini", files / "json"
    outcome = run_inside(
        "augment", table, "--text", files / "text", "--reference", files / "reference", "--moses-ini",
        files / "moses.ini", "--moses-ini-out", ini, "--json", document, "--list", files / "list", *options,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    report = json.loads(document.read_text())
    before, after = read(table).splitlines(), read(files / "table.augmented.gz").splitlines()
    assert len(after) == len(before) + report["entries"] == report["lines"] + report["entries"]
    assert len(read(files / "list").splitlines()) == report["entries"]
    assert "num-features=8" in ini.read_text()
    messages = outcome.err.splitlines()
    assert messages[0] == "phrasetool: 3 words (4 in the text) had no entry; 3 have " + f"{report['entries']:,} now"
    assert [line.split(":")[1].strip() for line in messages[1:5]] == ["compound", "inflection", "meaning", "copy"]
    assert messages[5].startswith("phrasetool: in the reference: some translation of ")
    assert messages[6].endswith("with 8 scores instead of 4; the new weights are 0: tune them")
    # The other options do not change the table.
    again = run_inside("augment", table, "--text", files / "text", "-o", files / "again.gz")
    assert again.err.splitlines()[-1] == (
        "phrasetool: entries have 4 more scores: set num-features in moses.ini, and give the weight line 4 more numbers"
    )
    assert read(files / "again.gz") == read(files / "table.augmented.gz")


@pytest.mark.parametrize("options", [(), ("--threads", 2, "--block-bytes", 100)])
def test_rare_words_get_more_entries(files, options):
    """A word that occurs once and has one, wrong, translation gets more; other words of the toy table occur 9 times."""
    table = files / "table.gz"
    lines = [
        *read(table).splitlines(keepends=True),
        b"gr\xc3\xbcner ||| wrong ||| 0.5 0.25 1 0.125 ||| 0-0 ||| 1 1 1\n",
    ]
    lines = [line for line in lines if not line.startswith(b"gr\xc3\xbcner ||| green")]
    write(table, b"".join(sorted(lines)))
    write(files / "text", "das grüner haus .\n".encode())
    write(files / "reference", b"the green house .\n")
    outcome = run_inside("augment", table, "--text", files / "text", "--rare", 1, "--list", files / "list", *options)
    assert outcome.code == 0, outcome.err
    result = read(files / "table.augmented.gz").decode().splitlines()
    assert result == sorted(result, key=str.encode)
    translations = [line.split(" ||| ")[1] for line in result if line.startswith("grüner |||")]
    assert "green" in translations
    assert translations.count("wrong") == 1
    assert "phrasetool: 1 words (1 in the text) were rare; 1 have " in outcome.err
    assert b"gr\xc3\xbcner\tgreen\t" in read(files / "list")
    outcome = run_inside("augment", table, "--text", files / "text", "--rare", 1, "--reference", files / "reference",
                         "-o", files / "again.gz", "--json", files / "json")  # fmt: skip
    assert outcome.code == 0
    report = json.loads((files / "json").read_text())
    assert report["rare"] == {
        "words": 1, "tokens": 1, "translated": 1, "entries": len(translations) - 1, "right": 1,
    }  # fmt: skip
    assert read(files / "again.gz") == read(files / "table.augmented.gz")
    # Without --rare, the word keeps its one entry.
    assert run_inside("augment", table, "--text", files / "text", "-o", files / "plain.gz").code == 0
    assert len(read(files / "plain.gz").splitlines()) == len(result) - len(translations) + 1


def test_known_words_get_no_entries(files):
    write(files / "known", b"haus\n")
    outcome = run_inside("augment", files / "table.gz", "--text", files / "known", "--evidence", "copy")
    assert outcome.code == 0
    assert outcome.err.splitlines()[0] == "phrasetool: all words of the text have entries; none was added"
    assert len(read(files / "table.augmented.gz").splitlines()) == len(read(files / "table.gz").splitlines())


def test_an_empty_table_gets_no_entries(files):
    empty = write(files / "empty", b"")
    options = ("--text", files / "text", "--allow-empty", "--force", "-o", files / "out", "--list", files / "list")
    outcome = run_inside("augment", empty, *options, "--rare", "1", "--json", files / "json")
    assert outcome.code == 0, outcome.err
    report = json.loads((files / "json").read_text())
    assert (report["translated"], report["entries"]) == (0, 0)
    assert read(files / "out") == read(files / "list") == b""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-", "--text", "text"], 2, "tables are read twice"),
        (["table.gz"], 2, "Missing option '--text'"),
        (["table.gz", "--text", "text", "--evidence", "magic"], 2, "'magic' is not one of compound, inflection"),
        (["table.gz", "--text", "text", *["--reference", "reference"] * 2], 2, "1 --text, but 2 --reference"),
        (["table.gz", "--text", "text", "--reordering-out", "r"], 2, "or neither"),
        (["table.gz", "--text", "text", "-o", "text"], 1, "the output is the input text"),
        (["table.gz", "--text", "-", "--text", "-"], 2, "only one input can be standard input"),
        (["table.gz", "--text", "-", "--reference", "reference"], 2, "texts are read twice; they must be files"),
        (["table.gz", "--text", "reference"], 1, "of its 10 tokens have an entry in table.gz; expected text of"),
        (["table.gz", "--text", "nowhere"], 1, "nowhere: No such file or directory"),
        (["moses.ini", "--text", "text"], 1, "looks like a moses.ini"),
        (["table.gz", "--text", "text", "--moses-ini", "moses.ini", "--moses-ini-out", "x.ini", "--reordering-table",
          "reordering.gz", "--reordering-out", "/dev/stdout"], 2, "--reordering-out must be a file"),
    ],
)  # fmt: skip
def test_bad_usage(files, monkeypatch, arguments, code, said):
    monkeypatch.chdir(files)
    before = sorted(path.name for path in files.iterdir())
    outcome = run_inside("augment", *arguments)
    assert outcome.code == code
    assert said in outcome.message
    assert sorted(path.name for path in files.iterdir()) == before
