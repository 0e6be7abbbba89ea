import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

from phrasetool.smt.corpus.symbols import read_words
from phrasetool.syntax.evaluation import (
    NO_GROUP,
    chance_accuracy,
    edit_distances,
    functional_dissimilarity,
    group_numbers,
    neighbour_accuracies,
    random_vectors,
    rank_correlation,
    syntax_distances,
    syntax_quality,
    tag_vectors,
    unit_vectors,
    untrained_vectors,
    word_vectors,
)
from phrasetool.tagger.data import UPOS
from tests.syntax_models import random_syntax_model, toy_lines
from tests.toy_treebanks import toy_sentences


def test_groups_are_large_enough():
    result = group_numbers(["a"] * 3 + ["b"] * 2 + ["a"], 3)
    assert result.tolist() == [0, 0, 0, NO_GROUP, NO_GROUP, 0]
    assert group_numbers([]).tolist() == []


def naive_accuracy(vectors, groups, count, sentences):
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    right = []
    for i in range(len(vectors)):
        others = [j for j in range(len(vectors)) if sentences[j] != sentences[i]]
        near = sorted(others, key=lambda j: -unit[i] @ unit[j])[:count]
        right.append(np.mean([groups[j] == groups[i] for j in near]))
    return np.mean(right)


def test_accuracies_agree_with_naive():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 8, 300)
    vectors = (rng.normal(size=(8, 5))[groups] + rng.normal(size=(300, 5))).astype(np.float32)
    sentences = rng.integers(0, 100, 300)
    for parts in (np.arange(300), sentences):
        result = neighbour_accuracies(vectors, groups, (1, 5), parts)
        expected = [naive_accuracy(vectors, groups, count, parts) for count in (1, 5)]
        assert result == pytest.approx(expected, abs=0.005)
    assert neighbour_accuracies(vectors, groups) == neighbour_accuracies(vectors, groups, (1, 5), np.arange(300))


def test_ties_are_broken_at_random():
    groups = np.repeat([0, 1], 200)
    tied = neighbour_accuracies(np.ones((400, 2), np.float32), groups, (5,))[0]
    assert tied == pytest.approx(0.5, abs=0.35)
    perfect = neighbour_accuracies(np.eye(2, dtype=np.float32)[groups], groups, (1, 5))
    assert perfect == [1, 1]


def test_chance():
    assert chance_accuracy(np.array([0, 0, 1, 1])) == pytest.approx(1 / 3)
    assert chance_accuracy(np.zeros(4, np.int64)) == 1


def test_zeros_stay_zeros():
    assert unit_vectors(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0, 0],
    ]


def levenshtein(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@given(st.lists(st.lists(st.integers(0, 3), max_size=8), max_size=6))
def test_edit_distances_agree_with_naive(sequences):
    result = edit_distances(sequences)
    for i, first in enumerate(sequences):
        for j, second in enumerate(sequences):
            assert result[i, j] == levenshtein(first, second) / max(len(first), len(second), 1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=20))
def test_rank_correlation_is_scipys(pairs):
    first, second = (np.array(side, np.float64) for side in zip(*pairs, strict=True))
    result = rank_correlation(first, second)
    if np.ptp(first) and np.ptp(second):
        assert result == pytest.approx(spearmanr(first, second).statistic)
    else:
        assert result == 0


def test_perfect_distances_in_both_definitions():
    # On a half circle, cosines rank pairs as their angles do.
    angles = np.array([0.0, 0.4, 1.1, 2.0])
    vectors = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    distances = 1 - vectors @ vectors.T
    expected = distances.astype(np.float64) / distances.max()
    default = functional_dissimilarity(vectors, expected)
    assert (default.fd, default.rho) == (pytest.approx(0, abs=1e-6), pytest.approx(1))
    literal = functional_dissimilarity(vectors, expected, literal=True)
    assert literal.fd == pytest.approx(np.linalg.norm(1 - 2 * expected) / 4, abs=1e-6)
    assert literal.rho == default.rho


def test_noise_improves_fd_but_not_rho():
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 17, rng.integers(5, 25)).tolist() for _ in range(200)]
    edits = edit_distances(sequences)
    noise = functional_dissimilarity(rng.normal(size=(200, 256)).astype(np.float32), edits)
    bag = np.array([np.bincount(sequence, minlength=17) for sequence in sequences], np.float32)
    counts = functional_dissimilarity(bag, edits)
    assert abs(noise.rho) < 0.05 < counts.rho
    assert noise.fd < counts.fd


def test_equal_vectors_are_accepted():
    result = functional_dissimilarity(np.ones((3, 2), np.float32), edit_distances([[1], [2], [1]]))
    assert (result.rho, result.fd) == (0, pytest.approx(2 / 3, abs=0.4))


TEXTS = toy_lines(30)[0]


def test_words_have_tf_idf_weights():
    # The inverse document frequency of scikit-learn adds 1 to the logarithm, so only its counts are used.
    texts, _ = read_words(TEXTS)
    result = word_vectors(texts)
    counts = (
        TfidfVectorizer(token_pattern=r"\S+", lowercase=False, use_idf=False, norm=None).fit_transform(TEXTS).toarray()
    )
    expected = counts * np.log(len(TEXTS) / (counts > 0).sum(0))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(result @ result.T - np.diag((result**2).sum(1)),
                               expected @ expected.T - np.diag((expected**2).sum(1)), atol=1e-6)  # fmt: skip
    assert result.shape[1] == ((counts > 0).sum(0) > 1).sum()


def test_words_of_all_texts_have_no_weight():
    texts, _ = read_words(["a", "a"])
    assert word_vectors(texts).tolist() == [[0], [0]]


def test_random_vectors_are_determined_by_the_seed():
    assert np.array_equal(random_vectors(3, 4, 1), random_vectors(3, 4, 1))
    assert not np.array_equal(random_vectors(3, 4, 1), random_vectors(3, 4, 2))


def test_the_untrained_encoder_is_that_of_the_seed():
    model = random_syntax_model(1)
    texts, words = read_words(TEXTS)
    result = untrained_vectors(model.in_pieces(texts, words), model.shape, 1)
    assert np.array_equal(result, model.encode_texts(texts, words))
    assert not np.array_equal(result, untrained_vectors(model.in_pieces(texts, words), model.shape, 2))


def test_tags_are_counted():
    result = tag_vectors([[1, 1, 16], []])
    assert result.shape == (2, 17)
    assert result[0, [1, 16]].tolist() == [2, 1]
    assert result.sum() == pytest.approx(3)


SENTENCES = toy_sentences("en", 120, 1)
LINES = [" ".join(form for form, _ in one.tokens).encode() for one in SENTENCES]
TAGS = [[UPOS.index(tag) for tag in one.tags] for one in SENTENCES]


def test_the_quality_of_baselines_is_measured_too():
    result = syntax_quality(random_syntax_model(), LINES, TAGS)
    assert (result.sentences, result.compared, result.literal) == (120, 120, False)
    assert result.groups == 4
    assert list(result.vectors) == ["model", "words", "untrained", "random", "tags"]
    # Counts of tags distinguish the groups of these sentences.
    assert result.vectors["tags"].nearest_1 == 1
    assert result.vectors["tags"].rho > 0.9
    assert abs(result.vectors["random"].rho) < 0.1
    assert result.vectors["random"].nearest_5 == pytest.approx(result.chance, abs=0.1)
    assert result == syntax_quality(random_syntax_model(), LINES, TAGS)
    # The model has the same random weights as the untrained encoder.
    assert result.vectors["untrained"] == result.vectors["model"]


def test_equal_sentences_count_once():
    result = syntax_quality(random_syntax_model(), [*LINES, *LINES], [*TAGS, *TAGS])
    assert result == syntax_quality(random_syntax_model(), LINES, TAGS)


def test_the_literal_definition_of_the_paper():
    plain, literal = (
        syntax_quality(random_syntax_model(), LINES, TAGS, literal=is_literal) for is_literal in (False, True)
    )
    assert literal.vectors["tags"].fd > plain.vectors["tags"].fd
    assert literal.vectors["tags"].rho == plain.vectors["tags"].rho


def test_phrases_of_the_same_sentence_are_not_neighbours():
    origins = np.zeros(len(LINES), np.int64)
    origins[0] = 1
    result = syntax_quality(random_syntax_model(), LINES, TAGS, origins=origins)
    assert result.vectors["tags"].nearest_1 != 1


def test_distances_need_no_groups():
    few = LINES[:5], TAGS[:5]
    result = syntax_distances(random_syntax_model(), *few)
    assert list(result) == ["model", "words", "untrained", "random", "tags"]
    literal = syntax_distances(random_syntax_model(), *few, literal=True)
    assert literal["tags"].rho == result["tags"].rho > 0.5
    assert literal["tags"].fd != result["tags"].fd
    quality = syntax_quality(random_syntax_model(), LINES, TAGS).vectors
    all_distances = syntax_distances(random_syntax_model(), LINES, TAGS)
    assert {name: distances.rho for name, distances in all_distances.items()} == {
        name: distances.rho for name, distances in quality.items()
    }


def test_sentences_without_groups_are_refused():
    with pytest.raises(ValueError, match="no six different sentences"):
        syntax_quality(random_syntax_model(), LINES[:1] * 9, TAGS[:1] * 9)
