from hypothesis import given
from hypothesis import strategies as st

from tests import naive_extraction as naive
from tests.phrasetool.smt.extraction.small_bitexts import bitext_of, extract_phrase_pairs, sentence_pairs


@given(sentence_pairs(most=9), st.sampled_from([1, 2, 3, 7, 12]))
def test_one_sentence_agrees_with_naive(pair, max_length):
    """Every word is its position, so that all occurrences are different phrase pairs."""
    lengths, points = (len(pair[0]), len(pair[1])), pair[2]
    expected = naive.spans(*lengths, points, max_length)
    if expected:
        bitext = bitext_of(*([[b"%d" % position for position in range(length)]] for length in lengths), [points])
        entries = extract_phrase_pairs(bitext, max_length)
        result = [(s[0], s[-1], t[0], t[-1]) for s, t in zip(entries.sources, entries.targets, strict=True)]
        assert sorted(result) == expected
        assert entries.counts.joint.tolist() == [1] * len(expected)
