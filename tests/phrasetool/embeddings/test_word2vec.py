import numpy as np

from phrasetool.embeddings.word2vec import phrase_sentences, train_word2vec
from phrasetool.phrases import Phrases
from phrasetool.vocabulary import Vocabulary


def test_word2vec_is_fixed_by_its_seed_and_takes_any_bytes():
    vocabulary = Vocabulary([b"<unk>", b"gr\xfcn", b"haus", b"baum"])
    phrases = Phrases.from_lists([[1, 2], [1, 3], [2, 3]] * 10)
    made = [train_word2vec(phrase_sentences(phrases, vocabulary), 5, seed) for seed in (1, 1, 2)]
    assert set(made[0]) == {b"gr\xfcn", b"haus", b"baum"}
    np.testing.assert_array_equal(made[0][b"gr\xfcn"], made[1][b"gr\xfcn"])
    assert (made[0][b"haus"] != made[2][b"haus"]).any()
    assert train_word2vec([], 5, 1) == {}
