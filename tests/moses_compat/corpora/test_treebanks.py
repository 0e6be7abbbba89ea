import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.treebanks import read_conllu, read_tagged_text
from phrasetool.errors import DataError
from phrasetool.tagger.data import UPOS, TaggedSentence
from tests.commands import write
from tests.toy_treebanks import conllu, toy_sentences
from tests.variants import for_each

REST = "\t_" * 6


def row(number, form, tag):
    return f"{number}\t{form}\t_\t{tag}{REST}\n"


def read(tmp_path, text):
    path = tmp_path / "a.conllu"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_conllu(str(path))


def test_words_ranges_comments_and_empty_nodes(tmp_path):
    text = (
        "# sent_id = 1\n" + row("1-2", "Im", "_") + row(1, "In", "ADP") + row(2, "dem", "DET") + row("2.1", "x", "_")
        + row(3, "10 000", "NUM") + "\n\n" + row(1, "#", "SYM") + "\n"
    )  # fmt: skip
    assert read(tmp_path, text) == [
        TaggedSentence(("In", "dem", "10_000"), ("ADP", "DET", "NUM"), (("Im", 2), ("10_000", 1))),
        TaggedSentence(("#",), ("SYM",), (("#", 1),)),
    ]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_the_last_empty_line_may_be_missing(tmp_path, end):
    assert [sentence.words for sentence in read(tmp_path, row(1, "a", "X").rstrip("\n") + end)] == [("a",)]


def test_carriage_returns_and_compressed_files(tmp_path):
    text = (row(1, "a", "X") + "\n" + row(1, "b", "X") + "\n").replace("\n", "\r\n")
    assert [sentence.words for sentence in read(tmp_path, gzip.compress(text.encode()))] == [("a",), ("b",)]


@for_each(
    ("text", "line", "message"),
    [
        (row(1, "a", "X") + "2\tb\t_\tX\n", 2, "expected 10 columns separated by tabs, found 4"),
        ("just text\n", 1, "expected 10 columns separated by tabs, found 1"),
        (row(1, "a", "_"), 1, "unknown part of speech '_', expected one of ADJ, "),
        (row(1, "a", "X") + row(2, "b", "NN"), 2, "unknown part of speech 'NN'"),
        (row(1, "a", "X") + row(3, "b", "X"), 2, "the number of the word is '3', expected 2"),
        (row("2-3", "a", "_"), 1, "words 2-3, expected words from 1 on"),
        (
            row("1-2", "a", "_") + row(1, "a", "X") + "\n",
            3,
            "the sentence ends after 1 words, but a token ends at word 2",
        ),
        (row("1-3", "a", "_") + row(1, "a", "X") + row("2-3", "b", "_"), 3, "words 2-3, expected"),
        (b"1\t\xff\t_\tX" + REST.encode(), 1, "not UTF-8"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_line(tmp_path, text, line, message):
    with pytest.raises(DataError) as error:
        read(tmp_path, text)
    assert f"a.conllu:{line}: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n"])
def test_a_file_without_a_sentence_is_refused(tmp_path, text):
    with pytest.raises(DataError, match="the file contains no sentences"):
        read(tmp_path, text)


def test_toy_treebanks_come_back(tmp_path):
    for language in ("en", "de"):
        sentences = toy_sentences(language, 30, 1)
        assert read(tmp_path, conllu(sentences)) == sentences


form = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=5)
token = st.tuples(form, st.lists(st.tuples(form, st.sampled_from(UPOS)), min_size=1, max_size=3))


@given(st.lists(st.lists(token, min_size=1, max_size=5), min_size=1, max_size=4))
def test_any_treebank_comes_back(tmp_path_factory, drawn):
    sentences = []
    for tokens in drawn:
        pairs = [pair for _, words in tokens for pair in words]
        written = tuple((form if len(words) > 1 else words[0][0], len(words)) for form, words in tokens)
        sentences.append(TaggedSentence(tuple(w for w, _ in pairs), tuple(t for _, t in pairs), written))
    assert read(tmp_path_factory.mktemp("drawn"), conllu(sentences)) == sentences


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
        (b"a|DET\nb\n", None, r"f:2: expected word\|TAG, found 'b'"),
        (b"|DET\n", None, r"f:1: expected word\|TAG, found '\|DET'"),
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
