import pytest

from moses_compat.corpora.tagged_text import read_tagged_text
from phrasetool.errors import DataError
from phrasetool.tagger.data import UPOS
from tests.commands import write

NOUN, DET, ADP = (UPOS.index(tag) for tag in ("NOUN", "DET", "ADP"))


def test_words_with_tags(tmp_path):
    path = write(tmp_path / "f", b"a|DET b|c|NOUN\nim|ADP+DET\n")
    assert read_tagged_text(str(path)) == ([b"a b|c", b"im"], [[DET, NOUN], [ADP, DET]])


def test_tags_beside_words(tmp_path):
    tags, words = write(tmp_path / "t", b"DET NOUN\nADP+DET\n"), write(tmp_path / "w", b"a b\nim\n")
    assert read_tagged_text(str(tags), str(words)) == ([b"a b", b"im"], [[DET, NOUN], [ADP, DET]])


@pytest.mark.parametrize(
    ("tagged", "words", "said"),
    [
        (b"a|DET\nb\n", None, r"f:2: 'b' is no word with its tag, expected word\|TAG"),
        (b"|DET\n", None, "f:1: '|DET' is no word with its tag"),
        (b"a|DET\n\n", None, "f:2: the line is empty"),
        (b"a|FOO\n", None, "f:1: unknown part of speech 'FOO'"),
        (b"DET+_\n", b"a\n", r"f:1: unknown part of speech 'DET\+_'"),
        (b"DET\n", b"a b\n", "f:1: 1 tags for 2 words"),
        (b"DET\nDET\n", b"a\n", "f"),
        (b"DET\nDET\n", b"a\n\n", "w:2: the line is empty"),
    ],
)
def test_bad_lines_are_named(tagged, words, said, tmp_path):
    sentences = None if words is None else str(write(tmp_path / "w", words))
    with pytest.raises(DataError, match=said):
        read_tagged_text(str(write(tmp_path / "f", tagged)), sentences)
