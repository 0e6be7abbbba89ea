"""A file in which nothing matches is refused, and nothing is written; --force continues with a warning."""

import pytest

from tests.cli.small_translator import FAST, bitext
from tests.commands import run_inside, write

TABLE = b"""das haus ||| the house ||| 0.5 0.4 0.3 0.2 ||| 0-0 1-1 ||| 5 5 4
das ||| the ||| 0.9 0.8 0.7 0.6 ||| 0-0 ||| 9 9 8
haus ||| house ||| 0.9 0.8 0.7 0.6 ||| 0-0 ||| 9 9 8
"""
FILES = {
    "table": TABLE,
    "other": b"chat ||| cat ||| 1 1 1 1 ||| 0-0 ||| 9 9 9\nchien ||| dog ||| 1 1 1 1 ||| 0-0 ||| 9 9 9\n",
    "reordering": b"chat ||| cat ||| 0.2 0.2 0.6 0.2 0.2 0.6\nchien ||| dog ||| 0.2 0.2 0.6 0.2 0.2 0.6\n",
    "pairs": b"chat ||| cat ||| 3\n",
    "source": b"chat chien\n",
    "target": b"cat dog\n",
    "text": b"das neue haus\n",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    for name, content in FILES.items():
        write(tmp_path / name, content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message", "written"),
    [
        (("annotate", "table", "--forced-pairs", "pairs"),
         "pairs: none of its pairs with a count above 0 is in table", True),
        (("prune", "table", "--method", "usage", "--forced-pairs", "pairs", "--target-size", "50%"),
         "pairs: none of its pairs with a count above 0 is in table", False),
        (("remove-orphans", "table", "--reordering-table", "reordering"),
         "reordering: none of its 2 lines belongs to one of the 3 pairs of the phrase table", True),
        (("prune", "table", "--method", "count", "--target-size", "70%", "--reordering-table", "reordering",
          "--reordering-out", "second"), "reordering: none of its 2 lines belongs to one of the 2 pairs", True),
        (("augment", "table", "--text", "text", "--reordering-table", "reordering", "--reordering-out", "second"),
         "reordering: none of its sources of one word is in table", True),
        (("augment", "table", "--text", "text", "--monolingual", "source"),
         "source: none of its words has an entry in table", True),
        (("pivot", "table", "other"), "table: 0% of its 3 target phrases", True),
        (("export", "table", "--to", "lexicon", "--min-count", 1, "--stop-words", 0, "--evaluate", "source", "target"),
         "source: none of the 3 term pairs has its source in the text", True),
        (("export", "table", "--to", "vmap", "--evaluate", "source", "target"),
         "source: only 0% of its 2 tokens", True),
        (("prune", "table", "--method", "significance", "--bitext", "source", "target", "--target-size", "50%"),
         "table: of its first 3 entries, 3 have a source that does not occur in source", False),
        (("filter-pt", "-f", "source", "-e", "target", "-l", "a-e", "table"),
         "table: of its first 3 entries, 3 have a source that does not occur in source", False),
    ],
)  # fmt: skip
def test_nothing_matches(files, command, message, written):
    outcome = run_inside(*command, "-o", "out")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1].startswith(f"phrasetool: error: {message}")
    assert sorted(path.name for path in files.iterdir()) == sorted(FILES)
    if written:
        forced = run_inside(*command, "-o", "out", "--force")
        assert forced.code == 0, forced.err
        assert f"warning: {message}" in forced.err


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    sides = bitext(folder, "train", 400)
    outcome = run_inside("train", *FAST, *sides, "-o", folder / "m", "-q", "--force")
    assert outcome.code == 0, outcome.err
    return folder / "m"


def test_texts_dictionaries_and_tables_of_a_translator(translator, files):
    write(files / "text", b"der hund sieht\n")
    dictionary = write(files / "dictionary", b"hund X\nkatze Y\n")
    outcome = run_inside("translate", "text", "-m", translator, "--dictionary", dictionary, "-o", "out")
    assert f"{dictionary} has 1 of the 3 different words of text" in outcome.err
    # Moses' lex.e2f, in which source words are first.
    write(dictionary, b"hund dog 1\nkatze cat 1\ndog hund 0.5\nder der 1\nsieht sees 1\n")
    outcome = run_inside("translate", "text", "-m", translator, "--dictionary", dictionary, "-o", "out")
    assert outcome.code == 0
    assert (
        f"warning: {dictionary}: has 3 of the 3 different words of text as translations, but only 2 as source words"
    ) in outcome.err
    write(dictionary, b"chat cat\n")
    outcome = run_inside("translate", "text", "-m", translator, "--dictionary", dictionary, "-o", "no")
    assert (outcome.code, outcome.message) == (
        1, f"phrasetool: {dictionary}: has none of the 3 different words of text; expected words of its language"
    )  # fmt: skip
    for table in (b"chat ||| dog ||| 1\n", b"hund ||| chien ||| 1\n"):
        write(files / "other", table)
        outcome = run_inside("translate", "text", "-m", translator, "--table", "other", "-o", "no")
        assert outcome.code == 1
        assert outcome.err.splitlines()[-1].startswith(
            "phrasetool: error: other: none of its 1 entries has a source of the text"
        )
    assert not (files / "no").exists()
    write(files / "text", b"chat\n")
    outcome = run_inside("translate", "text", "-m", translator, "-o", "out")
    assert "the model knows 0.0% of its 1 words" in outcome.err
