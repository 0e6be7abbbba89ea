import pytest

from moses_compat.corpora.written_text import WrittenText, written_words
from phrasetool.errors import DataError
from phrasetool.vocabulary import Vocabulary
from tests.commands import write


@pytest.mark.parametrize(("data", "escaped"), [(b"a &apos;s\nb's\n", True), (b"a 's\n", False), (b"a b\n\n", None)])
def test_whether_a_text_has_escapes(tmp_path, data, escaped):
    assert WrittenText.read(str(write(tmp_path / "t.gz", data))).escaped is escaped


def test_words_as_written_and_as_the_model_knows_them(tmp_path):
    text = WrittenText.read(str(write(tmp_path / "t", b"a &apos;s new\n\n's &amp;\n")))
    found = text.ids(Vocabulary([b"<unk>", b"a", b"'s", b"&"]))
    assert [sentence.tolist() for sentence in found] == [[1, 2, 0], [], [2, 3]]
    assert text.words(0) == [b"a", b"&apos;s", b"new"]
    assert text.words(1) == []
    dictionary = {b"'s": b"'z", b"new": b"n"}
    assert text.copies(dictionary, True) == {b"&apos;s": b"&apos;z", b"'s": b"&apos;z", b"new": b"n"}
    assert text.copies(dictionary, False) == {b"&apos;s": b"'z", b"'s": b"'z", b"new": b"n"}
    assert written_words([b"'s", b"a"], True) == [b"&apos;s", b"a"]
    assert written_words([b"'s", b"a"], False) == [b"'s", b"a"]


def test_a_carriage_return(tmp_path):
    with pytest.raises(DataError, match="t:2: a carriage return"):
        WrittenText.read(str(write(tmp_path / "t", b"a\nb\r\n")))
