import gzip
import json

from tests.commands import run_inside, write
from tests.tables import OTHER_FILES, TABLES
from tests.variants import for_each


def inspect(*arguments, **options):
    return run_inside("inspect", *arguments, "-q", **options)


def test_the_description_of_a_table(tmp_path):
    table = TABLES["seven fields"] + b"zzz ||| a ||| 1 1 1 -1 ||| 0-0\n"
    text = inspect(write(tmp_path / "t.gz", table)).out.decode()
    number = table.count(b"\n")
    for expected in (
        f"{tmp_path / 't.gz'}: phrase table, {number} entries, 17 sources",
        "compatible programs of Moses",
        f"moses                  no        line {number}: a score is negative",
        "pairs occur twice, from line",
    ):
        assert expected in text, text


@for_each("name", sorted(TABLES))
def test_every_table_is_described(name):
    piped = inspect("-", stdin=gzip.compress(TABLES[name]))
    assert (piped.code, piped.err) == (0, "")
    assert piped.out.startswith(b"standard input: ")


def test_json(tmp_path):
    path, output = write(tmp_path / "t", TABLES["zero and negative"]), tmp_path / "found.json"
    text = inspect(path, "--json", output).out
    assert text == inspect(path).out
    document = json.loads(output.read_text())
    assert document == json.loads(inspect(path, "--json", "-").out)
    assert document["schema_version"] == 1
    assert (document["file"], document["kind"], document["entries"]) == (str(path), "phrase table", 3)
    assert document["oddities"]["negative score"] == {"lines": 2, "first": 1}
    assert document["columns"][0]["largest"] is None
    assert len(document["columns"][1]["histogram"]) == 20
    assert document["loaders"]["moses"]["answer"] == "no"
    assert document["loaders"]["moses"]["objections"][0]["first"] == 1
    assert "the output is the input" in inspect(path, "--json", path).message


def test_other_kinds_of_files(tmp_path):
    for name, word in (
        ("half table", "half of a phrase table"),
        ("memscore", "memscore"),
        ("extract with weights", "extracted phrase pairs"),
        ("extract", "extracted phrase pairs"),
        ("lexical", "lexical translation table"),
        ("arpa", "ARPA"),
    ):
        outcome = inspect(write(tmp_path / "t", OTHER_FILES[name]))
        assert outcome.code == 0
        assert word in outcome.out.decode().splitlines()[0]
        assert b"programs of Moses" not in outcome.out
    (tmp_path / "x.minphr").write_bytes(bytes(100))
    assert "PhraseDictionaryCompact" in inspect(tmp_path / "x.minphr").out.decode()
    folder = tmp_path / "probing"
    folder.mkdir()
    (folder / "probing_hash.dat").write_bytes(b"")
    (folder / "config").write_text("num_scores\t6\n")
    assert "ProbingPT folder) with 6 scores" in inspect(folder).out.decode()
    assert "no such model" in inspect(tmp_path / "none").message or "No such file" in inspect(tmp_path / "none").message


def test_threads_change_nothing(tmp_path):
    path = write(tmp_path / "t", TABLES["seven fields"] * 300)
    assert inspect(path, "--threads", 1).out == inspect(path, "--threads", 2).out


def test_a_moses_ini(tmp_path):
    """The features of a moses.ini are described; the file is not read as a table."""
    text = "[feature]\nWordPenalty\nPhraseDictionaryMemory name=TM num-features=2 path=table\n[weight]\nTM= 0.5 0.25\n"
    path = write(tmp_path / "moses.ini", text.encode())
    result = inspect(path, "--json", tmp_path / "json")
    assert result.out.decode().splitlines()[:4] == [
        f"{path}: a moses.ini of version 2, 2 features",
        "  WordPenalty0           WordPenalty, weights: none",
        "  TM                     PhraseDictionaryMemory, weights: 0.5 0.25",
        f"                         2 scores, {tmp_path / 'table'} (no such file)",
    ]
    assert json.loads((tmp_path / "json").read_text())["features"][1]["weights"] == [0.5, 0.25]
    assert "moses.ini:2: " in inspect(write(path, b"[feature]\nWordPenalty x\n")).message
    # A table whose first word looks like a section of an ini is still a table.
    assert "phrase table" in inspect(write(tmp_path / "t", b"[feature] ||| x ||| 1\n")).out.decode()
