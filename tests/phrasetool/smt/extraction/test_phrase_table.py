import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.smt.extraction.phrase_table import PhraseTable, reordering_probabilities
from tests import naive_extraction as naive
from tests.phrasetool.smt.extraction.small_bitexts import bitext_of, extract_phrase_pairs, sentence_pairs

# Words that sort before and after `|`, and words that begin with other words.
WORDS = (b"a", b"a!", b"ab", b"!", b"~", b"\xc3\xa9", b"{", b"z")


def check(entries, bitext, expected):
    source, target = bitext.source_symbols, bitext.target_symbols
    pairs = [
        (tuple(source.words[i] for i in s), tuple(target.words[i] for i in t))
        for s, t in zip(entries.sources, entries.targets, strict=True)
    ]
    assert pairs == sorted(expected, key=naive.order)
    counts = np.stack([entries.counts.target, entries.counts.source, entries.counts.joint], axis=1)
    for i, pair in enumerate(pairs):
        scores, alignment, numbers, orientations = expected[pair]
        np.testing.assert_allclose(entries.scores[i], scores, rtol=3e-6)
        result = entries.alignments[i]
        assert [[s for s, t in result if t == k] for k in range(len(pair[1]))] == alignment
        assert tuple(counts[i]) == numbers
        assert entries.orientations[i].tolist() == orientations


@settings(max_examples=120)
@given(
    st.lists(sentence_pairs(WORDS), min_size=1, max_size=8),
    st.sampled_from([1, 2, 3, 5, 9]),
    st.sampled_from(["none", "good-turing", "kneser-ney"]),
    st.sampled_from([1, 3000, 20_000, 1 << 24]),
)
def test_agrees_with_naive(pairs, max_length, smoothing, memory):
    bitext = bitext_of(*zip(*pairs, strict=True))
    expected = naive.extract(*zip(*pairs, strict=True), max_length, smoothing)
    if expected:
        check(extract_phrase_pairs(bitext, max_length, smoothing), bitext, expected)
    with PhraseTable(bitext, max_length, smoothing, memory) as table:
        assert len(table) == len(expected)
        sizes = 0
        for block in table.blocks():
            entries = table.entries(block)
            sizes += len(entries)
            # No phrase pair occurs twice in a block.
            names = list(zip(map(bytes, entries.sources), map(bytes, entries.targets), strict=True))
            assert len(set(names)) == len(names)
        assert sizes == len(expected)


def test_blocks_are_a_partition(monkeypatch):
    """Neither the block size nor the memory changes the entries or their order."""
    rng = np.random.default_rng(3)
    sources = [[WORDS[k] for k in rng.integers(0, 8, rng.integers(1, 9))] for _ in range(60)]
    targets = [[WORDS[k] for k in rng.integers(0, 8, rng.integers(1, 9))] for _ in range(60)]
    points = [
        sorted({(int(rng.integers(len(s))), int(rng.integers(len(t)))) for _ in range(5)})
        for s, t in zip(sources, targets, strict=True)
    ]
    bitext = bitext_of(sources, targets, points)
    whole = extract_phrase_pairs(bitext)
    monkeypatch.setattr("phrasetool.smt.extraction.phrase_table._BLOCK_PAIRS", 7)
    with PhraseTable(bitext, memory=60_000) as table:
        assert table.spilled
        parts = [table.entries(block) for block in table.blocks()]
    assert len(parts) > 20
    for name in ("scores", "orientations"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    assert np.array_equal(np.concatenate([part.sources.words for part in parts]), whole.sources.words)


def test_small_batches_and_buffers(monkeypatch):
    pairs = [([b"a", b"b", b"a"], [b"x", b"y", b"z"], [(1, 1)]), ([b"a"], [b"x"], [(0, 0)])] * 5
    bitext = bitext_of(*zip(*pairs, strict=True))
    whole = extract_phrase_pairs(bitext)
    monkeypatch.setattr("phrasetool.smt.extraction.occurrences._BATCH", 3)
    monkeypatch.setattr("phrasetool.smt.extraction.occurrences._SPANS", 1)
    recorded = []
    with PhraseTable(bitext, memory=1, progress=recorded.append) as table:
        parts = [table.entries(block) for block in table.blocks()]
    assert np.array_equal(np.concatenate([part.scores for part in parts]), whole.scores)
    assert recorded == sorted(recorded)
    assert recorded[-1] == 10


def test_nothing_to_extract():
    bitext = bitext_of([[b"a"]], [[b"x"]], [[]])
    for memory in (1, 1 << 24):
        with PhraseTable(bitext, memory=memory) as table:
            assert len(table) == len(list(table.blocks())) == 0


def test_reordering_probabilities():
    result = reordering_probabilities(np.array([[3, 0, 0, 0, 1, 2], [0] * 6]))
    np.testing.assert_allclose(result[0], np.array([3.5, 0.5, 0.5, 0.5, 1.5, 2.5]) / 4.5)
    np.testing.assert_allclose(result[1], 1 / 3)


def test_invalid_arguments_are_refused():
    bitext = bitext_of([[b"a"]], [[b"x"]], [[(0, 0)]])
    with pytest.raises(ValueError, match="from 1 to 50"):
        PhraseTable(bitext, 0)
    with pytest.raises(ValueError, match="unknown smoothing loud"):
        PhraseTable(bitext, smoothing="loud")
