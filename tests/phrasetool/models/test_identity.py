import hashlib

import numpy as np

from phrasetool.models.identity import model_identity
from phrasetool.vocabulary import Vocabulary

ARRAYS = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.zeros(2, np.float32)}
WORDS = Vocabulary([b"<unk>", b"x"], [1, 1])


def test_all_that_makes_a_model_in_order():
    expected = hashlib.sha256(b"head" + b"a" + bytes(8) + b"b" + ARRAYS["b"].tobytes() + b"<unk>\nx" * 2 + b"tail")
    assert model_identity("head", ARRAYS, (WORDS, WORDS), "tail") == expected.hexdigest()[:8]


def test_a_view_counts_as_what_it_shows():
    turned = {**ARRAYS, "b": np.ascontiguousarray(ARRAYS["b"].T).T}
    assert model_identity("", turned, (WORDS,)) == model_identity("", ARRAYS, (WORDS,))


def test_every_difference_shows():
    other = Vocabulary([b"<unk>", b"y"], [1, 1])
    found = [
        model_identity("", ARRAYS, (WORDS,)),
        model_identity("h", ARRAYS, (WORDS,)),
        model_identity("", ARRAYS, (WORDS,), "t"),
        model_identity("", ARRAYS, (other,)),
        model_identity("", {**ARRAYS, "a": np.ones(2, np.float32)}, (WORDS,)),
        model_identity("", {"b": ARRAYS["b"], "c": ARRAYS["a"]}, (WORDS,)),
    ]
    assert len(set(found)) == len(found)
