import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.translated_texts import WrittenText, read_dictionary, span_words, written_words
from moses_compat.engine.extracted import format_lexical_tables
from phrasetool.errors import DataError
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.extraction.lexical import LexicalTable
from phrasetool.vocabulary import Vocabulary
from tests.commands import write


@pytest.mark.parametrize(("data", "escaped"), [(b"a &apos;s\nb's\n", True), (b"a 's\n", False), (b"a b\n\n", None)])
def test_whether_a_text_has_escapes(tmp_path, data, escaped):
    assert WrittenText.read(str(write(tmp_path / "t.gz", data))).escaped is escaped


def test_words_as_written_and_as_the_model_knows_them(tmp_path):
    text = WrittenText.read(str(write(tmp_path / "t", b"a &apos;s new\n\n's &amp;\n")))
    result = text.ids(Vocabulary([b"<unk>", b"a", b"'s", b"&"]))
    assert [sentence.tolist() for sentence in result] == [[1, 2, 0], [], [2, 3]]
    assert text.words(0) == [b"a", b"'s", b"new"]
    assert text.words(1) == []
    assert written_words([b"'s", b"a"], True) == [b"&apos;s", b"a"]
    assert written_words([b"'s", b"a"], False) == [b"'s", b"a"]


def test_a_carriage_return(tmp_path):
    with pytest.raises(DataError, match="t:2: a carriage return"):
        WrittenText.read(str(write(tmp_path / "t", b"a\nb\r\n")))


@pytest.mark.parametrize(
    "data",
    [
        b"haus ||| house\n&apos;s ||| 's\n",
        b"haus house\n&apos;s 's\n",
        # Moses' lexical table w(target|source), in which the target word is first.
        b"home haus 0.2\nhouse haus 0.7000000\nhut haus 0.7\nhouse NULL 0.9\n's &apos;s 1\nNULL haus 1\n\n",
        b"haus ||| house ||| 3\nhaus ||| home ||| 2\n's ||| 's ||| 1\n",
    ],
)
def test_every_form_gives_the_best_target_without_escapes(tmp_path, data):
    assert read_dictionary(str(write(tmp_path / "d.gz", data))) == {b"haus": b"house", b"'s": b"'s"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a b\nhaus\n", "d:2: expected `source target`, or `target source number`"),
        (b"haus house much\n", "d:1: expected `source target`, or `target source number`"),
        (b"das haus ||| house\n", "d:1: expected one source word"),
        (b"haus |||\n", "d:1: expected one source word"),
        (b"\n", "d: the dictionary has no words"),
    ],
)
def test_other_files(tmp_path, data, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read_dictionary(str(write(tmp_path / "d", data)))


def test_the_lexical_table_of_extract_gives_the_most_probable_target(tmp_path):
    """The most probable target of `mann` is `man`, but `mann` is the only source of `ban`."""
    targets, offsets = np.array([1, 2, 1, 3], np.int32), np.array([0, 0, 2, 4])
    table = LexicalTable(offsets, targets, np.array([0.9, 0.1, 0.2, 0.8]), np.array([0.6, 1.0, 0.4, 1.0]))
    forward, backward = format_lexical_tables(table, Symbols([b"mann", b"frau"]), Symbols([b"man", b"ban", b"woman"]))
    assert read_dictionary(str(write(tmp_path / "lex.f2e", forward))) == {b"mann": b"man", b"frau": b"woman"}
    assert b"mann" not in read_dictionary(str(write(tmp_path / "lex.e2f", backward)))


KNOWN = [b"x", b"y", b"z", b"&amp;"]
VOCABULARY = Vocabulary([b"<unk>", b"x", b"y", b"z", b"&"])
WORDS = st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=3)
TARGETS = st.lists(st.sampled_from([b"x", b"y", b"z", b"&amp;", b"new"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(WORDS, TARGETS), min_size=1, max_size=8), st.lists(WORDS, max_size=4))
def test_the_words_of_all_targets_of_a_sentence_s_spans(workspace, entries, sentences):
    entries = sorted(entries, key=lambda entry: entry[0])
    path = workspace / "spans"
    write(path, b"".join(b" ".join(s) + b" ||| " + b" ".join(t) + b" ||| 0.5\n" for s, t in entries))
    symbols = Symbols()
    text = symbols.read_lines(b"".join(b" ".join(s) + b"\n" for s in sentences))
    spans = [s[i:j] for s in sentences for i in range(len(s)) for j in range(i + 1, len(s) + 1)]
    if sentences and not any(s in spans and set(t) & set(KNOWN) for s, t in entries):
        with pytest.raises(DataError, match="none of its"):
            span_words(str(path), text, symbols, VOCABULARY)
        return
    result = span_words(str(path), text, symbols, VOCABULARY)
    assert len(result) == len(sentences)
    for sentence, ids in zip(sentences, result, strict=True):
        spans = [sentence[i:j] for i in range(len(sentence)) for j in range(i + 1, len(sentence) + 1)]
        expected = {VOCABULARY.id(word) for source, target in entries if source in spans for word in target} - {0}
        assert ids.tolist() == sorted(expected)


def test_a_file_that_is_no_table(tmp_path):
    symbols = Symbols()
    text = symbols.read_lines(b"a\n")
    with pytest.raises(DataError, match=re.escape("t:2: expected `source ||| target`")):
        span_words(str(write(tmp_path / "t", b"a ||| x ||| 1\nb x\n")), text, symbols, VOCABULARY)
