"""White space other than spaces and tabs is part of a word for Moses, and so for every command, like any letter."""

import json
import re

import pytest

from tests.commands import run_inside, write

# Hashes of files in signatures and seconds in messages, which differ between runs.
_VARYING = re.compile(r"\b[0-9a-f]{8,}\b|(?<=after )\d+ s")
# Placeholder of the white space.
MARK = "_"
WORD = f"x9{MARK}9y"
SPACES = {
    "no-break": "\u00a0", "ideographic": "\u3000", "line separator": "\u2028", "next line": "\x85",
    "vertical tab": "\v", "form feed": "\f", "file separator": "\x1c", "carriage return": "\r",
}  # fmt: skip
LINES = f"""das ||| the ||| 0.9 0.8 0.7 0.6 ||| 0-0 ||| 9 9 8 ||| |||
das haus ||| the house ||| 0.5 0.4 0.3 0.2 ||| 0-0 1-1 ||| 5 5 4 ||| |||
haus ||| house ||| 0.9 0.8 0.7 0.6 ||| 0-0 ||| 9 9 8 ||| |||
haus ||| the house ||| 0.1 0.1 0.1 0.1 ||| 0-1 ||| 5 9 1 ||| |||
{WORD} ||| {WORD} ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 9 9 8 ||| |||
{WORD} haus ||| house {WORD} ||| 0.5 0.5 0.5 0.5 ||| 0-1 1-0 ||| 4 4 3 ||| |||
"""
TABLE = "".join(line + "\n" for line in sorted(LINES.splitlines()))
REORDERING = "".join(
    " ||| ".join([*line.split(" ||| ")[:2], "0.5 0.25 0.25 0.5 0.25 0.25"]) + "\n" for line in TABLE.splitlines()
)
FILES = {
    "table": TABLE,
    "reordering": REORDERING,
    "more": f"das {WORD} new{MARK}word haus\nnew{MARK}word\n",
    "source": f"das haus\n{WORD} haus\n das  {WORD}\n",
    "target": f"the house\nhouse {WORD}\nthe\t{WORD}\n",
    "alignment": "0-0 1-1\n0-1 1-0\n0-0 1-1\n",
    "gold": f"das {WORD}\tthe {WORD}\n",
    "mined": f"0.9\tdas  {WORD}\tthe {WORD}\n",
}
COMMANDS = {
    "augment": ["augment", "table", "--text", "more", "-o", "out", "--reordering-table", "reordering",
                "--reordering-out", "second", "--list", "third"],
    "vmap": ["export", "table", "--to", "vmap", "-o", "out", "--evaluate", "source", "target", "--json", "third"],
    "lexicon": ["export", "table", "--to", "lexicon", "-o", "out", "--min-count", 1, "--stop-words", 0],
    "extract": ["extract", "source", "target", "alignment", "-o", "out", "--reordering-out", "second"],
    "language model": ["lm", "source", "--order", 2, "-o", "out"],
    "inspect": ["inspect", "table", "--json", "out"],
    "orphans": ["remove-orphans", "table", "--reordering-table", "reordering", "-o", "out"],
    "filter-pt": ["filter-pt", "table", "-e", "target", "-f", "source", "-l", "0", "-o", "out"],
    "prune": ["prune", "table", "--method", "significance", "--target-size", "50%", "-o", "out", "--bitext",
                        "source", "target", "--rejected", "second", "--stats", "third", "--force"],
    "pivot": ["pivot", "table", "table", "-o", "out", "--force"],
    "mined pairs": ["evaluate-mining", "mined", "gold", "--json", "out"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_white_space_counts_as_a_letter(tmp_path, monkeypatch, command):
    def run(name, sign):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in FILES.items():
            write(folder / file, text.replace(MARK, sign).encode())
        monkeypatch.chdir(folder)
        outcome = run_inside(*command)
        assert outcome.code == 0, (name, outcome.err)
        outputs = [folder / file for file in ("out", "second", "third") if (folder / file).exists()]
        return outcome.err, [path.read_bytes().decode().replace(sign, MARK) for path in outputs]

    messages, plain = run("plain", MARK)
    for name, space in SPACES.items():
        # lmplz ends words at carriage returns, and the other commands refuse to write them.
        if space == "\r" and command[0] in ("lm", "augment", "export", "extract"):
            continue
        odd_messages, odd = run(name, space)
        # Unprintable characters are shown as question marks.
        assert _VARYING.sub("", odd_messages.replace(space, MARK).replace("?", MARK)) == _VARYING.sub("", messages), (
            name
        )
        assert len(plain) == len(odd) > 0, name
        assert [described(text, space) for text in odd] == [described(text, space) for text in plain], name


def described(text, space):
    """Return the sorted lines of an output with the mark in place of the white space, without sizes in bytes."""
    escaped = json.dumps(space)[1:-1]
    return sorted(line for line in text.replace(escaped, MARK).split("\n") if '"bytes"' not in line)


@pytest.mark.parametrize("space", list(SPACES.values())[:-1], ids=list(SPACES)[:-1])
def test_new_entries_are_of_the_words_that_the_decoder_reads(tmp_path, monkeypatch, space):
    monkeypatch.chdir(tmp_path)
    for file, text in FILES.items():
        write(tmp_path / file, text.replace(MARK, space).encode())
    assert run_inside("augment", "table", "--text", "more", "-o", "new", "-q").code == 0
    assert run_inside("lm", "source", "--order", 2, "-o", "lm.arpa", "-q").code == 0
    assert run_inside("moses-ini", "--table", "new", "--lm", "lm.arpa", "-o", "ini", "-q").code == 0
    outcome = run_inside("decode", "--moses-ini", "ini", "more", "-o", "out")
    assert outcome.code == 0, outcome.err
    assert "0 distinct words have no translation" in outcome.err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_texts_whose_lines_end_at_carriage_returns_are_refused(tmp_path, monkeypatch, command):
    """They would be read as one line: a table of one entry, or a corpus of one sentence."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        write(tmp_path / name, text.encode())
    inputs = {word for word in command if word in FILES and FILES[word].count("\n") > 1}
    for name in sorted(inputs):
        write(tmp_path / name, FILES[name].replace("\n", "\r").encode())
        outcome = run_inside(*command)
        assert outcome.code == 1
        message = "its lines end at carriage returns; expected line feeds (tr '\\r' '\\n' makes them)"
        assert outcome.err.splitlines()[-1] == f"phrasetool: error: {name}: {message}"
        assert {path.name for path in tmp_path.iterdir()} == FILES.keys()
        write(tmp_path / name, FILES[name].encode())
