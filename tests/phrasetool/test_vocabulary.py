import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phrasetool.errors import ModelError
from phrasetool.vocabulary import UNKNOWN_WORD, Vocabulary, escape, has_escapes, lacks_escapes, unescape
from tests import naive
from tests.variants import for_each

LETTERS = st.sampled_from([bytes([i]) for i in range(256) if bytes([i]) not in b" \t\n"])
WORDS = st.lists(LETTERS, min_size=1, max_size=8).map(b"".join)
VOCABULARIES = st.lists(WORDS, max_size=30, unique=True).map(
    lambda words: [UNKNOWN_WORD, *(word for word in words if word != UNKNOWN_WORD)]
)


@given(VOCABULARIES, st.randoms(use_true_random=False))
@example([UNKNOWN_WORD], None)
@example([UNKNOWN_WORD, b"\r", b"\x00", b"\xff", b"\x85"], None)
def test_round_trip(workspace, words, random):
    counts = [random.randint(0, 1 << 50) if random else 0 for _ in words]
    path = workspace / "words.vocab"
    Vocabulary(words, counts).save(path)
    loaded = Vocabulary.load(path)
    assert loaded.words == words
    assert loaded.counts.tolist() == counts
    loaded.save(workspace / "again.vocab")
    assert (workspace / "again.vocab").read_bytes() == path.read_bytes()


@given(VOCABULARIES, st.lists(WORDS, max_size=20))
def test_look_up_agrees_with_naive(words, others):
    vocabulary = Vocabulary(words)
    for token in [*words, *others, *(word + b"|NN" for word in words), *(b"&amp;" + word for word in words)]:
        expected = 0 if naive.is_label(token) else naive.word_id(token, words)
        assert vocabulary.id(token) == expected


@settings(max_examples=20)
@given(st.integers(0, 5000))
def test_many_words_keep_their_ids(count):
    words = [UNKNOWN_WORD, *(b"w%d" % i for i in range(count))]
    vocabulary = Vocabulary(words)
    assert len(vocabulary) == count + 1
    assert [vocabulary.id(word) for word in words[1:]] == list(range(1, count + 1))
    assert vocabulary.id(b"w%d" % count) == 0


PIECES = [*naive.ESCAPES, b"&", b"a", b"amp;", b"lt;", b";", b"#", b"&#", b"&amp", b"&apos", b"&#124", b"|"]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join))
def test_unescape_agrees_with_naive(text):
    assert unescape(text) == naive.unescape(text)


@for_each(
    ("escaped", "plain"),
    [
        *naive.ESCAPES.items(),
        (b"&amp;lt;", b"&lt;"),
        (b"&amp;amp;", b"&amp;"),
        (b"x&apos;s", b"x's"),
        (b"&AMP;", b"&AMP;"),
    ],
)
def test_escapes(escaped, plain):
    assert unescape(escaped) == plain
    vocabulary = Vocabulary([UNKNOWN_WORD, b"other", plain])
    assert vocabulary.id(escaped) == 2
    assert vocabulary.id(escaped + b"|NN") == 2


def test_plain_and_escaped_text_have_the_same_ids():
    vocabulary = Vocabulary([UNKNOWN_WORD, b"'s", b"|", b"<"])
    assert vocabulary.ids(b"'s &apos;s | &#124; &bar; &lt; <") == [1, 1, 2, 2, 2, 3, 3]


def test_factored_tokens():
    vocabulary = Vocabulary([UNKNOWN_WORD, b"a", b"a|b", b"NN"])
    assert vocabulary.ids(b"a a|NN a|b a|b|c x|NN |a") == [1, 1, 2, 1, 0, 0]


def test_labels_are_not_words():
    vocabulary = Vocabulary([UNKNOWN_WORD, b"[", b"]", b"[]", b"x"])
    assert vocabulary.ids(b"[ ] [] [X] &#91; &bra;") == [1, 2, 3, 0, 1, 1]


def test_phrase():
    vocabulary = Vocabulary([UNKNOWN_WORD, b"das", b"gr\xfcn"])
    assert vocabulary.phrase([2, 0, 1]) == b"gr\xfcn <unk> das"
    assert vocabulary.phrase(np.array([1, 1])) == b"das das"
    assert vocabulary.phrase([]) == b""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "first word"),
        ([b"a"], "first word"),
        ([UNKNOWN_WORD, b"a", b"b", b"a"], "occurs twice"),
        ([UNKNOWN_WORD, UNKNOWN_WORD], "occurs twice"),
        ([UNKNOWN_WORD, b""], "is empty"),
    ],
)
def test_invalid_vocabularies(words, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(words)


def test_wrong_number_of_counts():
    with pytest.raises(ValueError, match="2 counts for 1 words"):
        Vocabulary([UNKNOWN_WORD], [1, 2])


@for_each(
    "data",
    [
        b"",
        b"a\t1\n",
        b"<unk>\t0\nword\n",
        b"<unk>\t0\nword\tmany\n",
        b"<unk>\t0\nword\t-1\n",
        b"<unk>\t0\n\t1\n",
        b"<unk>\t0\na\t1\na\t2\n",
        b"<unk>\t0\n\n",
        b"<unk> 0\n",
        b"\x80\x04pickle",
        b"<unk>\t0\na\t1.5\n",
        b"<unk>\t0\na\t99999999999999999999999\n",
    ],
)
def test_damaged_files(tmp_path, data):
    path = tmp_path / "source.vocab"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"source\.vocab") as error:
        Vocabulary.load(path)
    assert "\n" not in str(error.value)


def test_line_number_of_damage(tmp_path):
    path = tmp_path / "source.vocab"
    path.write_bytes(b"<unk>\t0\na\t1\nb 2\n")
    with pytest.raises(ModelError, match=r"source.vocab:3: "):
        Vocabulary.load(path)


def test_missing_file(tmp_path):
    with pytest.raises(ModelError, match=r"source\.vocab: cannot read"):
        Vocabulary.load(tmp_path / "source.vocab")


@given(st.text("ab'&|<>\"[];amp#1", max_size=12))
def test_escaping_round_trip(text):
    plain = text.encode()
    escaped = escape(plain)
    assert not lacks_escapes(escaped)
    assert unescape(escaped) == plain
    assert has_escapes(escaped) == (escaped != plain)
    assert escape(b"&|<>'\"[]") == b"&amp;&#124;&lt;&gt;&apos;&quot;&#91;&#93;"
