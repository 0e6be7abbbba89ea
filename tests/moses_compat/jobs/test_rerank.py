"""Weights of features: kept, read again, and refused; what is chosen by them."""

import json

import numpy as np
import pytest

from moses_compat.engine.n_best import read_n_best
from moses_compat.jobs.rerank import (
    FeaturedList,
    RerankWeights,
    check_same_features,
    chosen_lines,
    chosen_text,
    read_references,
    reordered_lines,
    report_of,
    tune_weights,
)
from phrasetool.errors import DataError

# The total is LM0 - 2 TM0 and a hundred less for the second sentence.
LIST = b"""\
0 ||| a b  ||| LM0= -1 TM0= 1 ||| -3 ||| 0=0
0 ||| a c  ||| LM0= -5 TM0= 0 ||| -5 ||| 1=1
2 ||| b  ||| LM0= -1 TM0= 0 ||| -101
2 ||| d  ||| LM0= 0 TM0= 2 ||| -104
2 ||| e  ||| LM0= 0 TM0= 3 ||| -106
"""


@pytest.fixture
def featured(tmp_path):
    (tmp_path / "list").write_bytes(LIST)
    found = read_n_best(str(tmp_path / "list"))
    return FeaturedList.of(found, (("NeuralForward0", 1),), np.array([[-2.0], [-1], [-4], [-1], [-1]]))


def weights(*values):
    names = (("LM0", 1), ("TM0", 1), ("NeuralForward0", 1))
    return RerankWeights(names, np.array(values, np.float64), {"length": "words", "models": {}}, {})


def test_the_best_is_chosen_the_first_of_equals(featured):
    assert chosen_lines(featured, weights(1, -2, 0).weights).tolist() == [0, 2]
    assert chosen_lines(featured, weights(0, 0, 1).weights).tolist() == [1, 3]
    assert chosen_text(featured, weights(0, 0, 1).weights, 4) == b"a c\n\nd\n\n"


def test_lists_are_written_best_first_with_new_totals(featured):
    lines = reordered_lines(featured, weights(0, 0, 1).weights)
    assert lines[0] == b"0 ||| a c  ||| LM0= -5 TM0= 0 NeuralForward0= -1 ||| -1 ||| 1=1\n"
    assert [line.split(b"|||")[1].strip() for line in lines] == [b"a c", b"a b", b"d", b"e", b"b"]
    assert lines[-1] == b"2 ||| b  ||| LM0= -1 TM0= 0 NeuralForward0= -4 ||| -4\n"


def test_a_report_is_of_the_sentences_that_have_hypotheses(featured, tmp_path):
    (tmp_path / "reference").write_bytes(b"a c\nmuch else that nobody said\nd\n")
    references = read_references([str(tmp_path / "reference")], 3, featured.found)
    found = report_of(featured, weights(0, 0, 1).weights, references)
    assert (found.sentences, found.hypotheses, found.changed) == (2, 5, 2)
    # Four-grams are too many to ask of two words.
    assert found.bleu_before == found.bleu_after == 0
    assert report_of(featured, weights(1, -2, 0).weights, []).bleu_after is None
    (tmp_path / "short").write_bytes(b"a c\n")
    with pytest.raises(DataError, match="has 1 lines, but the source has 3"):
        read_references([str(tmp_path / "short")], 3, featured.found)


def test_weights_are_kept(tmp_path, featured):
    kept = weights(0.25, -0.5, 0.125)
    (tmp_path / "weights").write_bytes(kept.as_json())
    read = RerankWeights.read(str(tmp_path / "weights"))
    assert read.names == kept.names
    assert read.weights.tolist() == kept.weights.tolist()
    assert read.columns == kept.columns
    read.check(featured)
    read.check(featured, kept.columns)
    with pytest.raises(DataError, match="tuned with other models"):
        read.check(featured, {"length": "none", "models": {}})
    with pytest.raises(DataError, match="has the features LM0, TM0, but the weights are of"):
        read.check(FeaturedList.of(featured.found, (), np.zeros((5, 0))))


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 9}, {"weights": {}}, {"weights": {"LM0": [0]}}, {"weights": {"LM0": ["x"]}},
        {"weights": [1]}, {"neural": 3},
    ],
)  # fmt: skip
def test_files_that_hold_no_weights_are_refused(tmp_path, change):
    document = {**json.loads(weights(1, 1, 1).as_json()), **change}
    (tmp_path / "weights").write_text(json.dumps(document))
    with pytest.raises(DataError, match="not a file of weights"):
        RerankWeights.read(str(tmp_path / "weights"))


def test_development_lists_have_the_same_features(featured, tmp_path):
    (tmp_path / "other").write_bytes(LIST.replace(b"TM0", b"TM1"))
    check_same_features(featured.found, featured.found)
    with pytest.raises(DataError, match=r"other: has the features LM0, TM1, but .*list has LM0, TM0"):
        check_same_features(featured.found, read_n_best(str(tmp_path / "other")))


def test_old_weights_keep_their_proportion_unless_all_are_tuned(featured, tmp_path):
    (tmp_path / "reference").write_bytes(b"a c\nx\nd\n")
    references = read_references([str(tmp_path / "reference")], 3, featured.found)
    found = tune_weights(featured, references, {}, 1)
    assert found.weights[1] / found.weights[0] == pytest.approx(-2, rel=1e-3)
    assert np.abs(found.weights).sum() == pytest.approx(1)
    assert found.names == featured.names


def test_a_list_that_was_reranked_is_not_tuned_on(featured, tmp_path):
    lines = LIST.replace(b"||| -101", b"||| 7").replace(b"||| -106", b"||| 500")
    (tmp_path / "odd").write_bytes(lines)
    found = read_n_best(str(tmp_path / "odd"))
    other = FeaturedList.of(found, featured.names[2:], featured.features[:, 2:])
    with pytest.raises(DataError, match="no weighted sums of its features"):
        tune_weights(other, [found.words.part(0, 3)], {}, 1)
