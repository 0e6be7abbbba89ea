import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.tables.parser import TableParser
from phrasetool.phrase_encoder.rae_kernels import PackedRae
from phrasetool.phrase_encoder.scoring import BilingualScorer, has_known_word
from phrasetool.phrases import Phrases
from tests import naive
from tests.conftest import SOURCE_WORDS, TARGET_WORDS, random_parameters
from tests.tables import MALFORMED, TABLES
from tests.variants import for_each

PHRASES = st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=30)


@given(PHRASES)
def test_has_known_word(lists):
    known = has_known_word(Phrases.from_lists(lists))
    assert known.tolist() == [any(phrase) for phrase in lists]


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.lists(st.integers(0, 12), max_size=3)] * 2), max_size=12))
def test_score_pairs_agrees_with_naive(any_model, pairs):
    model = any_model
    result = model.scorer().score_pairs(*(Phrases.from_lists([pair[side] for pair in pairs]) for side in (0, 1)))
    assert result.shape == (len(pairs), 2)
    for pair, similarities in zip(pairs, result, strict=True):
        np.testing.assert_allclose(similarities, naive.similarities(*pair, model), atol=1e-5)


def parse(model, data, scores):
    return TableParser(model.source_vocabulary, model.target_vocabulary, scores)(0, np.frombuffer(data, np.uint8))[0]


@for_each("table", TABLES)
def test_score_of_moses_tables(model, table):
    expected = naive.first_score_count(table)
    lines, groups = naive.parse_table(table, expected)
    scores = model.scorer().score(parse(model, table, expected))
    keys = (
        [
            key
            for key, a, b in zip(naive.group_sources(lines, groups), groups, groups[1:], strict=False)
            for _ in range(a, b)
        ]
        if lines
        else []
    )
    for i, (key, line) in enumerate(zip(keys, lines, strict=True)):
        source, target = naive.word_ids(key, SOURCE_WORDS), naive.word_ids(line.target, TARGET_WORDS)
        assert scores.scored[i] == (any(source) and any(target))
        # If two merges are equally good up to rounding, a longer phrase may be built along another tree.
        if max(len(source), len(target)) <= 2:
            np.testing.assert_allclose(scores.similarities[i], naive.similarities(source, target, model), atol=1e-5)


def test_malformed_entries_have_no_similarity_and_no_score(model):
    block = parse(model, MALFORMED, 2)
    scores = model.scorer().score(block)
    assert not scores.similarities[block.malformed].any()
    assert not scores.scored[block.malformed].any()
    assert scores.similarities[~block.malformed].all()


def test_entries_with_only_unknown_words_on_a_side_have_no_score(model):
    block = parse(model, b"xx yy ||| the ||| 1\nxx das ||| the ||| 1\ndas ||| qq ||| 1\ndas |||  ||| 1\n", 1)
    scores = model.scorer().score(block)
    assert scores.scored.tolist() == [False, True, False, False]
    assert scores.similarities[0].any()
    assert scores.similarities[3].tolist() == [0, 0]


def test_capacity_and_threads_do_not_change_a_bit(any_model):
    model = any_model
    block = parse(model, TABLES["seven fields"], 4)
    expected = model.scorer().score(block).similarities.tobytes()
    small = BilingualScorer(model.kind.pack(model.source), model.kind.pack(model.target), node_capacity=1)
    collected = []
    threads = [
        threading.Thread(target=lambda: collected.append(small.score(block).similarities.tobytes())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collected == [expected] * 4


def test_parameters_and_pairs_must_fit(model):
    with pytest.raises(ValueError, match="dimensions differ"):
        BilingualScorer(PackedRae(model.source), PackedRae(random_parameters(5, 4, 0)))
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        model.scorer().score_pairs(Phrases.from_lists([[1]]), Phrases.from_lists([[1], [2]]))
