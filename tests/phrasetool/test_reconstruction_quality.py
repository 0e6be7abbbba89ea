import numpy as np
import pytest
import sacrebleu

from phrasetool.reconstruction_quality import quality_by_length, reconstruction_quality

TEXTS = ["a b c d e", "a b c d e f", "x", "a b a b a b a b", "one two three four five six seven"]
BACK = ["a b c d e", "a b c f e d", "y", "a b a b a b", "one two three five six seven"]


def test_figures():
    found = reconstruction_quality(BACK, TEXTS)
    assert found.texts == 5
    assert found.bleu == sacrebleu.corpus_bleu(BACK, [TEXTS], tokenize="none", force=True).score
    assert "tok:none" in found.bleu_signature
    assert found.exact == 20
    # Matches of both kinds over the mean number of n-grams, by hand.
    assert found.rouge_1 == pytest.approx(100 * np.mean([1, 1, 0, 12 / 14, 12 / 13]))
    assert found.rouge_2 == pytest.approx(100 * np.mean([1, 4 / 10, 0, 10 / 12, 8 / 11]))


def test_spaces_make_no_difference():
    assert reconstruction_quality([" a  b c d "], ["a b c d"]).exact == 100


def test_groups_of_like_lengths():
    found = quality_by_length(BACK, TEXTS, (1, 5, 6))
    assert list(found) == [(1, 1), (2, 5), (6, 6), (7, 8)]
    assert found[2, 5] == reconstruction_quality(BACK[:1], TEXTS[:1])
    assert found[7, 8] == reconstruction_quality(BACK[3:], TEXTS[3:])
    assert sum(one.texts for one in found.values()) == len(TEXTS)
    assert list(quality_by_length(BACK, TEXTS)) == [(1, 5), (6, 10)]


def test_no_texts():
    with pytest.raises(ValueError, match="at least 1"):
        reconstruction_quality([], [])
