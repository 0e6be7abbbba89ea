import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.pair_classifier.inputs import LexiconMaker, WordInputs, known_parts, random_vectors, word_parts
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary
from tests.parallel_models import WORDS, random_classifier


def test_each_side_has_its_own_words():
    inputs = random_classifier()[0].inputs
    texts = Phrases.from_lists([[1, 0], [], [18, 2]])
    vectors, counts = inputs.vectors(1, texts, inputs.lexicon(1, WORDS[1]))
    assert counts.tolist() == [2, 0, 2]
    assert torch.equal(vectors, inputs.target(texts, inputs.lexicon(1, WORDS[1])))
    # The vocabulary lacks word 18, but its parts are known.
    other, _ = inputs.vectors(0, texts, inputs.lexicon(0, WORDS[0]))
    assert not torch.equal(vectors, other)


def test_texts_with_known_words_or_parts():
    inputs = random_classifier(characters=0)[0].inputs
    words = [*WORDS[0], b"?"]
    texts = Phrases.from_lists([[1, 20], [], [20], [18, 19], [20, 20, 3]])
    assert inputs.known(0, texts, inputs.lexicon(0, words)).tolist() == [True, False, False, False, True]
    assert inputs.known(1, texts, inputs.lexicon(1, words)).tolist() == [False] * 5
    parts = random_classifier()[0].inputs
    assert parts.known(0, texts, parts.lexicon(0, words)).tolist() == [True, False, False, True, True]


def test_hidden_words_are_determined_by_the_seed():
    inputs = random_classifier()[0].inputs.train()
    inputs.source.hidden_share = inputs.target.hidden_share = 0.5
    texts = Phrases.from_lists([list(range(16))])

    def drawn(seed):
        inputs.seed(seed)
        return np.concatenate(
            [inputs.vectors(side, texts, inputs.lexicon(side, WORDS[side]))[0].detach().numpy() for side in (0, 1)]
        )

    assert np.array_equal(drawn(1), drawn(1))
    assert not np.array_equal(drawn(1), drawn(2))


def marked(parts):
    return [part.replace(b"\x02", b"<").replace(b"\x03", b">").decode() for part in parts]


def test_the_parts_of_a_word():
    assert marked(word_parts(b"aba", 2)) == ["a", "b", "<a", "ab", "ba", "a>"]
    assert marked(word_parts("电车".encode(), 3)) == ["电", "车", "<电", "电车", "车>", "<电车", "电车>"]


@given(st.binary(min_size=1, max_size=8), st.integers(1, 6))
def test_parts_of_any_bytes(word, longest):
    parts = word_parts(word, longest)
    whole = b"\x02" + word + b"\x03"
    assert len(set(parts)) == len(parts)
    assert all(part in whole for part in parts)
    assert all(1 <= len(part.decode("utf-8", "surrogateescape")) <= longest for part in parts)
    # Every character is a part.
    assert set(parts) >= {c.encode("utf-8", "surrogateescape") for c in word.decode("utf-8", "surrogateescape")} - {
        b"\x02", b"\x03"
    }  # fmt: skip


def test_shared_parts_are_known_most_frequent_first():
    result = known_parts([b"ab", b"ac", b"bc"], 2, 100)
    assert marked(result.words) == ["<unk>", "<a", "a", "b", "c", "c>"]
    assert result.counts.tolist() == [0, 2, 2, 2, 2, 2]
    assert marked(known_parts([b"ab", b"ac", b"ad", b"cd"], 2, 3).words) == ["<unk>", "<a", "a", "c"]
    assert known_parts([b"ab", b"ac"], 0, 100).words == [b"<unk>"]


def test_known_words_and_parts():
    vocabulary, parts = Vocabulary([b"<unk>", b"ab", b"c"]), Vocabulary([b"<unk>", b"a", b"c"])
    result = LexiconMaker(vocabulary, parts, 2)([b"ab", b"c", b"ac", b"x", b"<unk>"])
    assert result.ids.tolist() == [1, 2, 0, 0, 0]
    assert [text.tolist() for text in result.parts] == [[1], [2], [1, 2], [], []]
    assert result.known.tolist() == [True, True, True, False, False]
    assert len(result) == 5
    without = LexiconMaker(vocabulary, parts, 0)([b"ab", b"ac"])
    assert without.ids.tolist() == [1, 0]
    assert without.known.tolist() == [True, False]
    assert np.array_equal(without.parts.lengths, [0, 0])


VOCABULARY, PARTS = Vocabulary([b"<unk>", b"ab", b"cd"]), Vocabulary([b"<unk>", b"a", b"b", b"c"])
RNG = np.random.default_rng(1)
WORD_ROWS, PART_ROWS = random_vectors(RNG, 3, 4), random_vectors(RNG, 4, 4)
LEXICON = LexiconMaker(VOCABULARY, PARTS, 1)([b"ab", b"cd", b"bx", b"x"])
TEXTS = Phrases.from_lists([[0, 3], [2], [1, 0]])


def test_a_word_and_the_mean_of_its_parts():
    expected = {
        0: WORD_ROWS[1] + (PART_ROWS[1] + PART_ROWS[2]) / 2, 1: WORD_ROWS[2] + PART_ROWS[3],
        2: WORD_ROWS[0] + PART_ROWS[2], 3: WORD_ROWS[0],
    }  # fmt: skip
    result = WordInputs(WORD_ROWS, PART_ROWS).eval()(TEXTS, LEXICON).detach().numpy()
    assert np.allclose(result, [expected[i] for i in (0, 3, 2, 1, 0)], atol=1e-7)


def test_words_alone():
    lexicon = LexiconMaker(VOCABULARY, PARTS, 0)([b"ab", b"cd", b"bx", b"x"])
    result = WordInputs(WORD_ROWS, PART_ROWS).eval()(TEXTS, lexicon).detach().numpy()
    assert np.array_equal(result, WORD_ROWS[[1, 0, 0, 2, 1]])


def test_words_are_hidden_only_in_training():
    inputs = WordInputs(WORD_ROWS, PART_ROWS)
    inputs.hidden_share = 0.5
    texts, lexicon = Phrases.from_lists([list(range(200))]), LexiconMaker(VOCABULARY, PARTS, 1)([b"ab"] * 200)
    whole = WORD_ROWS[1] + (PART_ROWS[1] + PART_ROWS[2]) / 2

    def hidden():
        inputs.generator = torch.Generator().manual_seed(3)
        return ~np.isclose(inputs(texts, lexicon).detach().numpy(), whole).all(1)

    assert 60 < hidden().sum() < 140
    assert np.array_equal(hidden(), hidden())
    inputs.eval()
    assert not hidden().any()


def test_random_vectors():
    drawn = random_vectors(np.random.default_rng(2), 1000, 20)
    assert drawn.dtype == np.float32
    assert abs(drawn.std() - 0.1) < 0.002
