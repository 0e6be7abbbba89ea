"""Columns appended to n-best lists, checks of lists and models, and reranking weights."""

import json
import re

import numpy as np
import pytest

from moses_compat.engine.n_best import read_n_best
from moses_compat.jobs.rerank import (
    AppendedColumns,
    DirectedModel,
    FeaturedList,
    RerankWeights,
    SourceText,
    check_determined,
    check_same_features,
    chosen_lines,
    chosen_text,
    load_directed,
    named_values,
    own_share,
    read_references,
    reordered_lines,
    report_of,
    tune_weights,
)
from phrasetool.errors import DataError, ModelError
from tests.moses_compat.experiments.watching import RecordingWatch
from tests.neural_models import random_model
from tests.reranking_lists import SOURCE, TARGET

SCORED_LIST = b"".join(
    b"%d ||| t%d t%d  ||| LM0= %d ||| -1\n" % (number, number, other, other) for number in range(3) for other in (4, 5)
)

# The total is LM0 - 2 TM0, minus 100 for the second sentence.
LIST = b"""\
0 ||| a b  ||| LM0= -1 TM0= 1 ||| -3 ||| 0=0
0 ||| a c  ||| LM0= -5 TM0= 0 ||| -5 ||| 1=1
2 ||| b  ||| LM0= -1 TM0= 0 ||| -101
2 ||| d  ||| LM0= 0 TM0= 2 ||| -104
2 ||| e  ||| LM0= 0 TM0= 3 ||| -106
"""


@pytest.fixture
def text_and_list(tmp_path):
    (tmp_path / "text").write_bytes(b"s0 s1\ns2\ns3 s4 s5\n")
    (tmp_path / "list").write_bytes(SCORED_LIST)
    return SourceText.read(str(tmp_path / "text")), read_n_best(str(tmp_path / "list"))


@pytest.fixture
def folders(tmp_path):
    """Untrained models of both directions."""
    random_model(SOURCE, TARGET).save(tmp_path / "forward")
    random_model(TARGET, SOURCE, 2).save(tmp_path / "backward")
    return str(tmp_path / "forward"), str(tmp_path / "backward")


def test_the_direction_of_a_model_follows_from_its_vocabularies(text_and_list, folders):
    forward, backward = (load_directed(folder, *text_and_list) for folder in folders)
    assert not forward.backward
    assert backward.backward


def test_a_text_or_a_list_in_another_language_is_refused(text_and_list, folders, tmp_path):
    _, result = text_and_list
    (tmp_path / "same").write_bytes(b"t0 t1\nt2\nt3\n")
    for folder, language in zip(folders, ("target", "source"), strict=True):
        with pytest.raises(ModelError, match=f"both same and .*list are in its {language} language"):
            load_directed(folder, _named(tmp_path / "same"), result)
    (tmp_path / "none").write_bytes(b"a b\nc\nd\n")
    with pytest.raises(ModelError, match="does not translate between none"):
        load_directed(folders[0], _named(tmp_path / "none"), result)
    watch = RecordingWatch()
    assert not load_directed(folders[0], _named(tmp_path / "none"), result, True, watch).backward
    assert "does not translate between none" in watch.warned[0]


def _named(path):
    text = SourceText.read(str(path))
    return SourceText(path.name, text.sentences, text.symbols)


def test_sentences_beyond_the_text_are_refused_by_line(text_and_list):
    text, result = text_and_list
    text.check(result)
    shorter = SourceText("shorter", text.sentences.part(0, 2), text.symbols)
    with pytest.raises(DataError, match="sentence 2, but shorter has 2 lines") as error:
        shorter.check(result)
    assert error.value.line == 5


def test_columns_are_means_of_models(text_and_list, folders):
    text, result = text_and_list
    forward, backward = (load_directed(folder, text, result) for folder in folders)
    second = DirectedModel(random_model(SOURCE, TARGET, 3), "other", backward=False)
    names, values = AppendedColumns([forward, second, backward]).values(text, result, 1)
    assert names == (("NeuralForward0", 1), ("NeuralBackward0", 1))
    names_of_each, values_of_each = AppendedColumns([forward, second, backward], each=True).values(text, result, 2)
    assert [name for name, _ in names_of_each] == ["NeuralForward0", "NeuralForward1", "NeuralBackward0"]
    np.testing.assert_allclose(values, np.stack([values_of_each[:, :2].mean(1), values_of_each[:, 2]], 1), rtol=1e-5)
    whole = AppendedColumns([forward, backward], "none").values(text, result, 1)[1]
    # Lengths include the end of a sentence: targets have two words; sources have two, one and three.
    per_word = whole / np.stack([np.full(6, 3), np.repeat([3, 2, 4], 2)], 1)
    np.testing.assert_allclose(per_word, values_of_each[:, [0, 2]], rtol=1e-5)


def test_values_are_written_with_six_digits_and_read_the_same():
    names = (("A", 1), ("B", 2))
    assert named_values(names, np.array([-1.23456789, -0.0, 1e-9])) == b"A= -1.23457 B= 0 1e-09"


def test_few_sentences_have_no_share(text_and_list, folders):
    text, result = text_and_list
    assert own_share(load_directed(folders[0], text, result), text, result, 1) is None


@pytest.fixture
def featured(tmp_path):
    (tmp_path / "list").write_bytes(LIST)
    result = read_n_best(str(tmp_path / "list"))
    return FeaturedList.of(result, (("NeuralForward0", 1),), np.array([[-2.0], [-1], [-4], [-1], [-1]]))


def weights(*values):
    names = (("LM0", 1), ("TM0", 1), ("NeuralForward0", 1))
    return RerankWeights(names, np.array(values, np.float64), {"length": "words", "models": {}}, {})


def test_the_first_of_the_best_lines_is_chosen(featured):
    assert chosen_lines(featured, weights(1, -2, 0).weights).tolist() == [0, 2]
    assert chosen_lines(featured, weights(0, 0, 1).weights).tolist() == [1, 3]
    assert chosen_text(featured, weights(0, 0, 1).weights, 4) == b"a c\n\nd\n\n"


def test_lists_are_written_best_first_with_new_totals(featured):
    lines = reordered_lines(featured, weights(0, 0, 1).weights)
    assert lines[0] == b"0 ||| a c  ||| LM0= -5 TM0= 0 NeuralForward0= -1 ||| -1 ||| 1=1\n"
    assert [line.split(b"|||")[1].strip() for line in lines] == [b"a c", b"a b", b"d", b"e", b"b"]
    assert lines[-1] == b"2 ||| b  ||| LM0= -1 TM0= 0 NeuralForward0= -4 ||| -4\n"


def test_a_report_covers_the_sentences_with_hypotheses(featured, tmp_path):
    (tmp_path / "reference").write_bytes(b"a c\nmuch else that nobody said\nd\n")
    references = read_references([str(tmp_path / "reference")], 3, featured.n_best)
    result = report_of(featured, weights(0, 0, 1).weights, references)
    assert (result.sentences, result.hypotheses, result.changed) == (2, 5, 2)
    # Hypotheses of two words have no 4-grams.
    assert result.bleu_before == result.bleu_after == 0
    assert report_of(featured, weights(1, -2, 0).weights, []).bleu_after is None
    (tmp_path / "short").write_bytes(b"a c\n")
    with pytest.raises(DataError, match="has 1 lines, but the source has 3"):
        read_references([str(tmp_path / "short")], 3, featured.n_best)


def test_weights_are_saved_and_read(tmp_path, featured):
    saved = weights(0.25, -0.5, 0.125)
    (tmp_path / "weights").write_bytes(saved.as_json())
    loaded = RerankWeights.read(str(tmp_path / "weights"))
    assert loaded.names == saved.names
    assert loaded.weights.tolist() == saved.weights.tolist()
    assert loaded.columns == saved.columns
    loaded.check(featured)
    loaded.check(featured, saved.columns)
    with pytest.raises(DataError, match="tuned with other models"):
        loaded.check(featured, {"length": "none", "models": {}})
    with pytest.raises(DataError, match="has the features LM0, TM0, but the weights are of"):
        loaded.check(FeaturedList.of(featured.n_best, (), np.zeros((5, 0))))


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 9}, {"weights": {}}, {"weights": {"LM0": [0]}}, {"weights": {"LM0": ["x"]}},
        {"weights": [1]}, {"neural": 3}, {"weights": {"LM0": 1}}, {"weights": {"LM0": [True]}},
    ],
)  # fmt: skip
def test_files_that_hold_no_weights_are_refused(tmp_path, change):
    document = {**json.loads(weights(1, 1, 1).as_json()), **change}
    (tmp_path / "weights").write_text(json.dumps(document))
    with pytest.raises(DataError, match="not a file of weights") as refused:
        RerankWeights.read(str(tmp_path / "weights"))
    # The message describes the file; it is not an error message of Python.
    assert not re.search(r"object is not|attribute|convert|subscript", str(refused.value))


@pytest.mark.parametrize("text", ["3", "[1]", "{", '{"weights": {"a": [1]}}'])
def test_other_json_is_no_file_of_weights(tmp_path, text):
    (tmp_path / "weights").write_text(text)
    with pytest.raises(
        DataError, match=r"not a file of weights that `rerank` saved \((not an object|schema_version is None|Exp)"
    ):
        RerankWeights.read(str(tmp_path / "weights"))


def test_development_lists_have_the_same_features(featured, tmp_path):
    (tmp_path / "other").write_bytes(LIST.replace(b"TM0", b"TM1"))
    check_same_features(featured.n_best, featured.n_best)
    with pytest.raises(DataError, match=r"other: has the features LM0, TM1, but .*list has LM0, TM0"):
        check_same_features(featured.n_best, read_n_best(str(tmp_path / "other")))


def test_old_weights_keep_their_proportion_unless_all_are_tuned(featured, tmp_path):
    (tmp_path / "reference").write_bytes(b"a c\nx\nd\n")
    references = read_references([str(tmp_path / "reference")], 3, featured.n_best)
    result = tune_weights(featured, references, {}, 1)
    assert result.weights[1] / result.weights[0] == pytest.approx(-2, rel=1e-3)
    assert np.abs(result.weights).sum() == pytest.approx(1)
    assert result.names == featured.names


def test_a_development_list_must_determine_the_weights_of_another_list(tmp_path):
    """Two hypotheses explain any weights; those fitted to them rank other lists wrongly."""

    def featured(name, lines):
        (tmp_path / name).write_bytes(lines)
        n_best = read_n_best(str(tmp_path / name))
        return FeaturedList.of(n_best, (), np.zeros((len(n_best), 0)))

    whole, few = featured("whole", LIST), featured("few", b"".join(LIST.splitlines(True)[:2]))
    check_determined(whole, few)
    check_determined(few, few)
    with pytest.raises(DataError, match=r"few: its hypotheses are too few .* in .*whole unexplained"):
        check_determined(few, whole)


def test_features_of_the_decoder_may_begin_with_neural(featured, tmp_path):
    """Moses calls its own neural language model NeuralLM0."""
    (tmp_path / "list").write_bytes(LIST.replace(b"LM0=", b"NeuralLM0="))
    n_best = read_n_best(str(tmp_path / "list"))
    renamed = FeaturedList.of(n_best, (), np.zeros((len(n_best), 0)))
    (tmp_path / "reference").write_bytes(b"a c\nx\nd\n")
    references = read_references([str(tmp_path / "reference")], 3, n_best)
    result = tune_weights(renamed, references, {}, 1)
    assert result.weights[1] / result.weights[0] == pytest.approx(-2, rel=1e-3)


def test_a_list_that_was_reranked_is_not_tuned_on(featured, tmp_path):
    lines = LIST.replace(b"||| -101", b"||| 7").replace(b"||| -106", b"||| 500")
    (tmp_path / "odd").write_bytes(lines)
    result = read_n_best(str(tmp_path / "odd"))
    reranked = FeaturedList.of(result, featured.names[2:], featured.features[:, 2:])
    with pytest.raises(DataError, match=r"not weighted sums of its features .*edited, .* tuneable=false"):
        tune_weights(reranked, [result.words.part(0, 3)], {}, 1)
