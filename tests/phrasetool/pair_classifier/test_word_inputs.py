import numpy as np
import torch

from phrasetool.pair_classifier.lexicon import LexiconMaker
from phrasetool.pair_classifier.word_inputs import WordInputs, random_vectors
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary

VOCABULARY, PARTS = Vocabulary([b"<unk>", b"ab", b"cd"]), Vocabulary([b"<unk>", b"a", b"b", b"c"])
RNG = np.random.default_rng(1)
WORD_ROWS, PART_ROWS = random_vectors(RNG, 3, 4), random_vectors(RNG, 4, 4)
LEXICON = LexiconMaker(VOCABULARY, PARTS, 1)([b"ab", b"cd", b"bx", b"x"])
TEXTS = Phrases.from_lists([[0, 3], [2], [1, 0]])


def test_a_word_and_the_mean_of_its_parts():
    wanted = {
        0: WORD_ROWS[1] + (PART_ROWS[1] + PART_ROWS[2]) / 2, 1: WORD_ROWS[2] + PART_ROWS[3],
        2: WORD_ROWS[0] + PART_ROWS[2], 3: WORD_ROWS[0],
    }  # fmt: skip
    found = WordInputs(WORD_ROWS, PART_ROWS).eval()(TEXTS, LEXICON).detach().numpy()
    assert np.allclose(found, [wanted[i] for i in (0, 3, 2, 1, 0)], atol=1e-7)


def test_words_alone():
    lexicon = LexiconMaker(VOCABULARY, PARTS, 0)([b"ab", b"cd", b"bx", b"x"])
    found = WordInputs(WORD_ROWS, PART_ROWS).eval()(TEXTS, lexicon).detach().numpy()
    assert np.array_equal(found, WORD_ROWS[[1, 0, 0, 2, 1]])


def test_hidden_words_are_read_by_their_parts_in_training_alone():
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
