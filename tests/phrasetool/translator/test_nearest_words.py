import numpy as np
import pytest

from phrasetool.errors import LengthError
from phrasetool.phrases import Phrases
from phrasetool.translator.beam import translate
from phrasetool.translator.nearest_words import nearest_words
from tests.naive_translator import NaiveTranslator, unit
from tests.phrasetool.translator.small_translators import small


@pytest.mark.parametrize("kind", ["lstm", "gru", "transformer"])
def test_every_position_has_its_nearest_words(kind):
    module = small(kind, 8, 12)
    naive = NaiveTranslator(module.architecture, module.arrays())
    sentence = Phrases.from_lists([[3, 1]])
    (translation,) = translate(module, sentence, 0.3)
    found = nearest_words(module, sentence, 0.3, 4)
    assert len(found) == len(translation.words) + 1
    for place, near in enumerate(found):
        vector = unit(naive.predict([3, 1], translation.words[:place])[0])
        cosines = module.targets.numpy() @ vector
        best = np.argsort(-cosines)[:4]
        assert near.words.tolist() == best.tolist()
        np.testing.assert_allclose(near.cosines, cosines[best], atol=1e-5)
    ends = [near.words[0] for near in found]
    assert ends[:-1] == list(translation.words)


def test_no_vectors_and_too_many_words():
    with pytest.raises(ValueError, match="a distribution"):
        nearest_words(small("softmax"), Phrases.from_lists([[1]]), 1.0, 3)
    with pytest.raises(LengthError):
        nearest_words(small("gru"), Phrases.from_lists([[1] * 512]), 1.0, 3)
    assert len(nearest_words(small("gru"), Phrases.from_lists([[1]]), 1.0, 100)[0].words) == 7
