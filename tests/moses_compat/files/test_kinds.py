import bz2
import gzip
import lzma
import os
import zipfile

import pytest

from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.kinds import content_kind, folder_kind, guess, why_not_a_file
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import raw_blocks
from phrasetool.errors import DataError
from tests.commands import run_inside, write
from tests.tables import OTHER_FILES, STANDS_FOR, TABLES
from tests.variants import for_each


def refusal(path):
    with pytest.raises(DataError) as error, Input(str(path)) as source:
        list(raw_blocks(source))
    return str(error.value)


@pytest.mark.parametrize("name", ["half table", "half table, indirect", "memscore"])
def test_tables_with_their_fields_in_another_order(tmp_path, name):
    path = write(tmp_path / "t.gz", OTHER_FILES[name])
    assert refusal(path).startswith(f"{path}: is {'a table with' if name == 'memscore' else 'half of'}")


def test_no_table_is_refused():
    for name, table in TABLES.items():
        assert content_kind(table) is None, name


GRAMMARS = {
    "Moses": OTHER_FILES["hiero"],
    "cdec": b"[X] ||| [X,1] haus ||| [1] house ||| EgivenFCoherent=1.5 IsSingletonF=0\n",
    "Thrax": b"[X] ||| das [X,1] ||| the [X,1] ||| 0.5 0.3 ||| 0-0\n",
    "any label": b"[PHRASE] ||| das ||| the ||| F1=0.5 F2=0.3\n",
    "target of a number": b"[X] ||| das ||| 12 ||| F1=0.5\n[X] ||| haus ||| 12 ||| 0.3\n",
}


@for_each("name", sorted(GRAMMARS))
@for_each("command", [("prune", "--method", "probability", "--target-size", "0.5", "-o", "out"),
                                     ("convert", "-o", "out"), ("train", "-o", "out")])  # fmt: skip
def test_grammars_are_refused_by_name(tmp_path, monkeypatch, name, command):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t", GRAMMARS[name])
    outcome = run_inside(command[0], "t", *command[1:])
    assert outcome.code == 1
    assert "t: is a grammar in the format of Hiero" in outcome.message
    assert os.listdir(tmp_path) == ["t"]
    assert b"Hiero" in run_inside("inspect", "t").out


def test_tables_of_one_label_are_no_grammars():
    for text in (b"[foo] ||| bar ||| 0.5 0.5 ||| 0-0\n", b"[X] ||| x ||| 1\n", b"[X] ||| x ||| 1 ||| ||| 1 1 1\n"):
        assert content_kind(text) is None


def test_alignments_before_the_scores(tmp_path):
    for line in (
        b"das ||| the ||| 0-0 ||| 0.5 0.4 0.3 0.2 2.718\n",
        b"das ||| the ||| 0-0 ||| 1 1 1 1 2.7 ||| 3 2 1\n",
    ):
        assert "is a table with alignments before the scores" in refusal(write(tmp_path / "t", line))


def test_a_small_binary_table(tmp_path):
    """A table is detected as binary by its zero bytes, although it contains words and separators."""
    data = bytes(60) + b"das ||| \n" + bytes(40) + b"the" + bytes(90)
    for name, word in (("t.minphr", "PhraseDictionaryCompact"), ("t", "binary data")):
        path = tmp_path / name
        path.write_bytes(data)
        assert word in refusal(path)


def test_pairs_with_weights(tmp_path):
    assert "extracted phrase pairs" in refusal(write(tmp_path / "t", OTHER_FILES["extract with weights"]))


def test_every_table_of_moses_has_one_that_stands_for_it():
    assert set(STANDS_FOR.values()) <= TABLES.keys() | OTHER_FILES.keys()


def test_binary_files(tmp_path):
    table = TABLES["seven fields"]
    cases = {
        "t.xz": (lzma.compress(lzma.compress(table)), "xz inside"),
        "t.bz2": (gzip.compress(bz2.compress(table)), "bzip2 inside"),
        "twice.gz": (gzip.compress(gzip.compress(table)), "gzip inside"),
        "phrase-table.minphr": (bytes(range(256)), "PhraseDictionaryCompact"),
        "t.minphr": (b"\x01\x02", "PhraseDictionaryCompact"),
        "t.minlexr": (bytes(40), "reordering table"),
        "t.binphr.tgtvoc": (b"0 a\n1 b\n", "PhraseDictionaryBinary"),
        "corpus.en.sa_suffix": (bytes(40), "SALM"),
        "x": (bytes(40), "binary data"),
        "lm": (b"mmap lm http://kheafield.com/code format version 5\n\0", "language model"),
    }
    for name, (data, word) in cases.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert word in refusal(path), name
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("table", table)
    assert "zip" in refusal(tmp_path / "t.zip")


def test_a_table_whose_name_or_first_word_says_something_else(tmp_path):
    for name, word in (("t.minphr", b"das"), ("t", b"PAR1"), ("u", b"BZh")):
        path, text = tmp_path / name, word + b" ||| x ||| 0.5\n"
        path.write_bytes(text)
        with Input(str(path)) as source:
            assert [bytes(block.text) for block in raw_blocks(source)] == [text]


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"probing_hash.dat": "", "config": "API_VERSION\t15\nnum_scores\t5\n"}, "ProbingPT folder) with 5 scores"),
        ({"probing_hash.dat": ""}, "ProbingPT folder);"),
        ({"TargetColl.dat": "", "Misc.dat": "Version 7\nNumScores 6\n"}, "OnDisk folder) with 6 scores"),
        ({"config.json": "{}", "weights.safetensors": ""}, "model of phrasetool"),
        ({}, "expected a file"),
    ],
    ids=str,
)
def test_folders(tmp_path, files, word):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert word in refusal(tmp_path)
    assert "directory" in refusal(tmp_path)
    assert (folder_kind(str(tmp_path)) is None) == (not files)


def test_names_moses_completes(tmp_path):
    (tmp_path / "t.minphr").write_bytes(b"")
    (tmp_path / "u.gz").write_bytes(b"")
    assert "there is" in why_not_a_file(str(tmp_path / "t"))
    assert "PhraseDictionaryCompact" in refusal(tmp_path / "t")
    assert refusal(tmp_path / "u").endswith("u.gz")
    assert refusal(tmp_path / "v").endswith(": No such file or directory")
    assert refusal(tmp_path / "u.gz").endswith("0 bytes; expected gzip data")
    (tmp_path / "u.gz.binphr.idx").write_bytes(b"")
    assert f"be a placeholder for {tmp_path / 'u.gz.binphr.idx'}" in refusal(tmp_path / "u.gz")


def test_pairs_are_refused_too(tmp_path):
    path = write(tmp_path / "half.gz", OTHER_FILES["half table"])
    with pytest.raises(DataError, match="half of a phrase table"), Input(str(path)) as source:
        read_training_pairs(source)


@pytest.mark.parametrize("command", ["annotate", "prune", "convert"])
def test_every_command_refuses(model_folder, tmp_path, command):
    table = write(tmp_path / "half.gz", OTHER_FILES["half table"])
    options = {
        "annotate": ("-m", model_folder),
        "prune": ("-m", model_folder, "-t", "0.5", "-o", tmp_path / "out"),
        "convert": ("-o", tmp_path / "out.parquet"),
    }[command]
    outcome = run_inside(command, table, "-q", *options)
    assert (outcome.code, outcome.out) == (1, b"")
    assert "half of a phrase table" in outcome.message
    assert [path.name for path in tmp_path.iterdir()] == ["half.gz"]


@pytest.mark.parametrize("name", ["extract", "lexical", "n-best", "arpa", "ini", "pairs"])
def test_guesses(name):
    assert guess(OTHER_FILES[name]).name.split()[-1]
    assert guess(TABLES["seven fields"]) is None
    words = {
        "extract": "extract", "lexical": "lexical", "n-best": "n-best", "arpa": "ARPA", "ini": "moses.ini",
        "pairs": "pairs",
    }  # fmt: skip
    assert words[name] in guess(OTHER_FILES[name]).name
