"""Outputs can be read again: words with separators of fields or lines, and tables without a final line feed."""

import gzip
import subprocess

import pytest

from tests.commands import run_inside, write

ROWS = (
    b"haus ||| house ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 2 ||| |||\n"
    b"kind ||| child ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 2 2 2 ||| |||"
)
REORDERING = b"haus ||| house ||| 0.2 0.2 0.6 0.2 0.2 0.6\nkind ||| child ||| 0.2 0.2 0.6 0.2 0.2 0.6"
LM = (
    b"\n\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-1\t<unk>\t0\n-99\t<s>\t0\n-1\t</s>\t0\n\n"
    b"\\2-grams:\n-1\t<s> </s>\n\n\\end\\\n"
)
INI = b"""[distortion-limit]
6
[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TM num-features=4 path=table input-factor=0 output-factor=0
Distortion
KENLM name=LM factor=0 path=lm order=2
[weight]
WordPenalty0= -1
TM= 0.2 0.2 0.2 0.2
Distortion0= 0.3
LM= 0.5
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "table", ROWS + b"\n")
    write(tmp_path / "lm", LM)
    write(tmp_path / "ini", INI)
    return tmp_path


def run(*arguments):
    outcome = run_inside(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.mark.parametrize("ended", [b"\n", b""])
@pytest.mark.parametrize("blocks", ["40", "2M"])
def test_new_entries_are_whole_lines(folder, ended, blocks):
    """New entries may come before, between, among and after those of a table with or without a last line feed."""
    write(folder / "table", ROWS + ended)
    write(folder / "reordering", REORDERING + ended)
    write(folder / "text", b"haus 4711 ida zoo kind\n")
    reordering = ("--reordering-table", "reordering", "--reordering-out", "r")
    run("augment", "table", "--text", "text", *reordering, "-o", "o", "--rare", 2, "--block-bytes", blocks)
    for name, fields in (("o", 7), ("r", 3)):
        data = (folder / name).read_bytes()
        assert data.endswith(b"\n")
        assert {line.count(b"|||") for line in data.splitlines()} == {fields - 1}
        assert {line.split(b" ")[0] for line in data.splitlines()} >= {b"4711", b"haus", b"ida", b"kind", b"zoo"}


def test_words_that_moses_takes_for_labels_stay_unknown(folder, moses):
    write(folder / "text", b"haus kind haus [foo] a|b |||x ida\n")
    outcome = run("augment", "table", "--text", "text", "-o", "new", "--moses-ini", "ini", "--moses-ini-out", "new.ini")
    assert "3 words with | or in brackets cannot be in a table, and stay unknown: [foo], a|b, |||x" in outcome.err
    assert {line.split(b" ")[0] for line in (folder / "new").read_bytes().splitlines()} == {b"haus", b"kind", b"ida"}
    outcome = subprocess.run(
        [moses(), "-f", "new.ini"], input=b"haus ida\n", capture_output=True, timeout=60, check=True
    )
    assert outcome.stdout.split() == [b"house", b"ida"]


def test_bars_of_the_source_and_n_best_lists(folder):
    """Moses reads no word that begins with a bar; of other words, it reads the part before the bar."""
    arguments = ("decode", "--moses-ini", "ini", "text", "-o", "out", "--n-best-list", "list", 2, "-q")
    write(folder / "text", b"haus\nhaus |||\n")
    outcome = run_inside(*arguments)
    assert (outcome.code, "text:2: the word ||| begins with a bar" in outcome.message) == (1, True)
    assert not (folder / "out").exists()
    assert not (folder / "list").exists()
    write(folder / "text", b"haus\nhaus a|||b\n")
    assert run_inside(*arguments).code == 0
    assert all(line.count(b"|||") == 3 for line in (folder / "list").read_bytes().splitlines())


@pytest.mark.parametrize(("word", "said"), [(b"a|||b", "the word a|||b separates"), (b"a\rb", "the word a?b holds")])
@pytest.mark.parametrize("side", ["source", "target"])
def test_words_of_a_bitext_that_contain_separators(folder, word, said, side):
    for name in ("source", "target"):
        write(folder / name, b"a b\na " + (word if name == side else b"b") + b"\n")
    write(folder / "points", b"0-0 1-1\n0-0 1-1\n")
    outcome = run_inside("extract", "source", "target", "points", "-o", "out")
    assert (outcome.code, f"{side}:2: {said}" in outcome.message) == (1, True)
    assert not (folder / "out").exists()


def test_labels_of_a_bitext(folder):
    for name in ("source", "target"):
        write(folder / name, b"a b\nsee [1] there\n")
    write(folder / "points", b"0-0 1-1\n0-0 1-1 2-2\n")
    outcome = run("extract", "source", "target", "points", "-o", "out", "-q")
    assert "source:2: the word [1] is in brackets, which Moses reads as a label" in outcome.err


# Characters at which readers split words or lines, Unicode white space included; and whether they split columns there.
@pytest.mark.parametrize(
    ("inside", "parted"),
    [("\u00a0", False), ("\u3000", False), ("\r", True), ("\x85", False), ("\v", False)],
    ids=ascii,
)
def test_dictionaries_are_read_as_they_were_written(folder, inside, parted):
    write(folder / "table", ROWS.replace(b"child", f"ch{inside}ild".encode()) + b"\n")
    outcome = run("export", "table", "--to", "bicleaner", "-o", "dict.gz")
    lines = gzip.decompress((folder / "dict.gz").read_bytes()).decode().splitlines()
    assert [line.split() for line in lines] == [["house", "haus", "0.5"]]
    assert "1 pairs were left out" in outcome.err
    lexicon = ("lexicon", "--min-probability", 0, "--stop-words", 0)
    for headers, options in ((1, lexicon), (1, ("vmap", "--always", 0)), (0, ("shortlist", "--always", 0))):
        outcome = run("export", "table", "--to", *options)
        # Marian splits the lines of a shortlist at the white space of C.
        left_out = parted or (options[0] == "shortlist" and inside == "\v")
        assert ("left out" in outcome.err) == left_out
        assert outcome.out.count(b"\n") == headers + (1 if left_out else 2)
