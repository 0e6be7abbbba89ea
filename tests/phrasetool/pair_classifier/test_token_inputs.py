import numpy as np
import torch

from phrasetool.phrases import Phrases
from tests.parallel_models import WORDS, random_classifier


def test_each_side_has_its_own_words():
    inputs = random_classifier()[0].inputs
    texts = Phrases.from_lists([[1, 0], [], [18, 2]])
    vectors, counts = inputs.vectors(1, texts, inputs.lexicon(1, WORDS[1]))
    assert counts.tolist() == [2, 0, 2]
    assert torch.equal(vectors, inputs.target(texts, inputs.lexicon(1, WORDS[1])))
    # Its vocabulary lacks the word, but parts are known.
    other, _ = inputs.vectors(0, texts, inputs.lexicon(0, WORDS[0]))
    assert not torch.equal(vectors, other)


def test_texts_of_which_something_is_known():
    inputs = random_classifier(characters=0)[0].inputs
    words = [*WORDS[0], b"?"]
    texts = Phrases.from_lists([[1, 20], [], [20], [18, 19], [20, 20, 3]])
    assert inputs.known(0, texts, inputs.lexicon(0, words)).tolist() == [True, False, False, False, True]
    assert inputs.known(1, texts, inputs.lexicon(1, words)).tolist() == [False] * 5
    parts = random_classifier()[0].inputs
    assert parts.known(0, texts, parts.lexicon(0, words)).tolist() == [True, False, False, True, True]


def test_what_is_hidden_is_a_matter_of_the_seed():
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
