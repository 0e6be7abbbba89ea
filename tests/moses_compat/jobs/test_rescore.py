"""What is appended to lists, and what is asked of lists and models before."""

import numpy as np
import pytest

from moses_compat.engine.n_best import read_n_best
from moses_compat.jobs.rescore import DirectedModel, NeuralColumns, SourceText, load_directed, named_values, own_share
from phrasetool.errors import DataError, ModelError
from tests.moses_compat.experiments.watching import Told
from tests.neural_models import random_model
from tests.reranking_lists import SOURCE, TARGET

LIST = b"".join(
    b"%d ||| t%d t%d  ||| LM0= %d ||| -1\n" % (number, number, other, other) for number in range(3) for other in (4, 5)
)


@pytest.fixture
def text_and_list(tmp_path):
    (tmp_path / "text").write_bytes(b"s0 s1\ns2\ns3 s4 s5\n")
    (tmp_path / "list").write_bytes(LIST)
    return SourceText.read(str(tmp_path / "text")), read_n_best(str(tmp_path / "list"))


@pytest.fixture
def folders(tmp_path):
    """Untrained models of both directions."""
    random_model(SOURCE, TARGET).save(tmp_path / "forward")
    random_model(TARGET, SOURCE, 2).save(tmp_path / "backward")
    return str(tmp_path / "forward"), str(tmp_path / "backward")


def test_a_model_tells_its_direction_by_its_vocabularies(text_and_list, folders):
    forward, backward = (load_directed(folder, *text_and_list) for folder in folders)
    assert not forward.backward
    assert backward.backward


def test_a_text_or_a_list_in_another_language_is_refused(text_and_list, folders, tmp_path):
    _, found = text_and_list
    (tmp_path / "same").write_bytes(b"t0 t1\nt2\nt3\n")
    for folder, language in zip(folders, ("target", "source"), strict=True):
        with pytest.raises(ModelError, match=f"both same and .*list are in its {language} language"):
            load_directed(folder, _named(tmp_path / "same"), found)
    (tmp_path / "none").write_bytes(b"a b\nc\nd\n")
    with pytest.raises(ModelError, match="does not translate between none"):
        load_directed(folders[0], _named(tmp_path / "none"), found)
    watch = Told()
    assert not load_directed(folders[0], _named(tmp_path / "none"), found, True, watch).backward
    assert "does not translate between none" in watch.warned[0]


def _named(path):
    read = SourceText.read(str(path))
    return SourceText(path.name, read.sentences, read.symbols)


def test_sentences_beyond_the_text_are_refused_by_line(text_and_list):
    text, found = text_and_list
    text.check(found)
    shorter = SourceText("shorter", text.sentences.part(0, 2), text.symbols)
    with pytest.raises(DataError, match="sentence 2, but shorter has 2 lines") as error:
        shorter.check(found)
    assert error.value.line == 5


def test_columns_are_means_of_models(text_and_list, folders):
    text, found = text_and_list
    forward, backward = (load_directed(folder, text, found) for folder in folders)
    other = DirectedModel(random_model(SOURCE, TARGET, 3), "other", backward=False)
    names, values = NeuralColumns([forward, other, backward]).values(text, found, 1)
    assert names == (("NeuralForward0", 1), ("NeuralBackward0", 1))
    apart, each = NeuralColumns([forward, other, backward], each=True).values(text, found, 2)
    assert [name for name, _ in apart] == ["NeuralForward0", "NeuralForward1", "NeuralBackward0"]
    np.testing.assert_allclose(values, np.stack([each[:, :2].mean(1), each[:, 2]], 1), rtol=1e-5)
    whole = NeuralColumns([forward, backward], "none").values(text, found, 1)[1]
    # Two words and the end, or the words of the source and theirs.
    per_word = whole / np.stack([np.full(6, 3), np.repeat([3, 2, 4], 2)], 1)
    np.testing.assert_allclose(per_word, each[:, [0, 2]], rtol=1e-5)


def test_values_are_written_with_six_digits_and_read_the_same():
    names = (("A", 1), ("B", 2))
    assert named_values(names, np.array([-1.23456789, -0.0, 1e-9])) == b"A= -1.23457 B= 0 1e-09"


def test_few_sentences_say_nothing_about_the_text(text_and_list, folders):
    text, found = text_and_list
    assert own_share(load_directed(folders[0], text, found), text, found, 1) is None
