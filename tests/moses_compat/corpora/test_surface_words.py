"""Factored words in a text to translate: the first factor counts, as in Moses."""

import pytest

from moses_compat.corpora.surface_words import surface_words
from moses_compat.files import notices
from phrasetool.errors import DataError
from tests import moses_settings
from tests.commands import run_inside


def test_the_first_factor_is_read_and_it_is_said(monkeypatch):
    heard = []
    monkeypatch.setattr(notices, "listeners", [heard.append])
    plain = b"das haus &#124;\n\nx <seg> <b> *EPS*x\n"
    assert surface_words(plain) is plain
    assert heard == []
    assert surface_words(b"das|ART haus|N\tist||V x|\n|y".replace(b"|y", b"y|1|2|3"), "f") == b"das haus\tist x\ny"
    assert heard == ["f: 5 words have factors, as in word|TAG; as by Moses, only the first of each is read"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\n| b\n", r"f:2: the word \| begins with a bar, .* write a bar as &#124;$"),
        (b"a |x\n", r"f:1: the word \|x begins with a bar"),
        (b"a\n <SEG id=1> b </seg>\n", "f:2: <SEG is markup to Moses"),
        (b'a <dlt type="x"/> b\n', "f:1: <dlt is markup to Moses"),
        (b"a\n*EPS* b\n", r"f:2: \*EPS\* is no word to Moses"),
        (
            b"a [ x ] [y\nb [x]\n",
            r"f:2: the word \[x\] stands in brackets, and Moses stops at it; write the brackets as &",
        ),
        (b"[]\n", r"f:1: the word \[\] stands in brackets"),
        (b"a|b|c|d|e\n", r"f:1: the word a\|b\|c\|d\|e has more than 4 factors; Moses stops at it"),
    ],
)
def test_words_that_moses_drops_or_stops_at(text, message):
    with pytest.raises(DataError, match=message):
        surface_words(text, "f")


@pytest.fixture
def model(tmp_path, monkeypatch):
    moses_settings.write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.requires_moses
def test_a_real_moses_reads_the_same_words(model, moses):
    (model / "text").write_text("a|X b|Y c , q1|N\nd||x a\n")
    assert moses_settings.verdict(moses_settings.of_moses(moses(), moses_settings.INI),
                                  moses_settings.of_ours(moses_settings.INI)) == "same"  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a|X b ||| v ||| 1 1\n", "the source has a word with a bar"),
        ("a b|Y ||| v ||| 1 1\n", "the source has a word with a bar"),
        ("a b ||| v|N w ||| 1 1\n", r"the target word v|N has a bar"),
        ("a b ||| v | w ||| 1 1\n", r"the target word | has a bar"),
    ],
)
def test_factored_tables_are_refused(model, line, message):
    table = (model / "table").read_text()
    (model / "table").write_text(line + table)
    (model / "moses.ini").write_text(moses_settings.INI)
    for command in (["decode", "text"], ["force-decode", "text", "text2", "-o", "pairs"]):
        (model / "text2").write_text(moses_settings.TEXT)
        done = run_inside(*command, "--moses-ini", "moses.ini", "-q")
        assert done.code == 1
        assert done.message.startswith(f"phrasetool: table:1: {message}; factored tables are not supported, ")
