import re

import pytest

from moses_compat.corpora.parallel_texts import read_parallel_texts, read_phrase_texts, unescaped_words
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from tests.commands import write


def lines(phrases, words):
    return [b" ".join(words[i] for i in phrase) for phrase in phrases]


def test_both_sides_without_their_escapes(tmp_path):
    source = write(tmp_path / "s.gz", b"das ist &apos;s\ndas ist 's\n")
    target = write(tmp_path / "t", b"that &amp; is\nit\n")
    pairs = read_parallel_texts(str(source), str(target))
    assert lines(pairs.sources, pairs.source_words) == [b"das ist 's"] * 2
    assert lines(pairs.targets, pairs.target_words) == [b"that & is", b"it"]
    assert len(set(pairs.source_words)) == len(pairs.source_words) == 3
    assert pairs.escaped
    assert not read_parallel_texts(str(source), str(write(tmp_path / "u", b"it 's\nit\n"))).escaped


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (b"a\n", "t:2: the file ends after 1 lines, but"),
        (b"a\n\n", "t:2: the line is empty; leave out lines without a word"),
        (b"", "t: there is no text in it"),
    ],
)
def test_sides_that_are_no_bitext(tmp_path, target, message):
    source = write(tmp_path / "s", b"x\ny\n")
    with pytest.raises(DataError, match=re.escape(message)):
        read_parallel_texts(str(source), str(write(tmp_path / "t", target)))


def test_one_file_twice(tmp_path):
    path = str(write(tmp_path / "s", b"x\n"))
    with pytest.raises(PhraseToolError, match="is the file of the source"):
        read_parallel_texts(path, path)
    with pytest.raises(PhraseToolError, match="standard input"):
        read_parallel_texts("-", "-")


def test_distinct_phrase_pairs_and_no_counts(tmp_path):
    data = b"das ||| the &amp; ||| 5\ndas ||| the &amp; ||| 1\nhaus ||| house ||| 1\ndas haus ||| a b c ||| 9\n"
    pairs = read_phrase_texts(str(write(tmp_path / "p.gz", data)), 2, 0)
    sides = lines(pairs.sources, pairs.source_words), lines(pairs.targets, pairs.target_words)
    assert sorted(zip(*sides, strict=True)) == [(b"das", b"the &"), (b"haus", b"house")]
    assert pairs.escaped
    assert len(read_phrase_texts(str(tmp_path / "p.gz"), 3, 5)) == 2


def test_words_that_are_one_without_escapes():
    texts, words = unescaped_words(Phrases.from_lists([[0, 1], [2]]), [b"'s", b"&apos;s", b"x"])
    assert words == [b"'s", b"x"]
    assert [text.tolist() for text in texts] == [[0, 0], [1]]
    assert unescaped_words(Phrases.from_lists([[]]), [])[1] == []
