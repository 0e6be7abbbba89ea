import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.span_candidates import span_words
from phrasetool.errors import DataError
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.vocabulary import Vocabulary
from tests.commands import write

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
    found = span_words(str(path), text, symbols, VOCABULARY)
    assert len(found) == len(sentences)
    for sentence, ids in zip(sentences, found, strict=True):
        spans = [sentence[i:j] for i in range(len(sentence)) for j in range(i + 1, len(sentence) + 1)]
        expected = {VOCABULARY.id(word) for source, target in entries if source in spans for word in target} - {0}
        assert ids.tolist() == sorted(expected)


def test_a_file_that_is_no_table(tmp_path):
    symbols = Symbols()
    text = symbols.read_lines(b"a\n")
    with pytest.raises(DataError, match=re.escape("t:2: expected `source ||| target`")):
        span_words(str(write(tmp_path / "t", b"a ||| x ||| 1\nb x\n")), text, symbols, VOCABULARY)
