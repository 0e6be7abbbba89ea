import io
import math

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.measures import windowed_scores
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.model_fit import FitCheck
from moses_compat.measures.translator_scores import NeuralScores, NeuralSimilarities
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError, ModelError
from phrasetool.pipeline import run
from tests.commands import write
from tests.table_translators import backward_translator, naive_score, translator
from tests.tables import MALFORMED, TABLES

pytest.importorskip("torch")


def scores_of(path, source, threads=1, size=1 << 21):
    scan = TableScan("keep", threads, size, allow_empty=True)
    with Input(str(path)) as table:
        reader = EntryReader(table, scan, source)
        result = [read.scores for read in run(reader.items(), reader, threads)]
    empty = np.zeros((0, 1), np.float32)
    return (
        np.concatenate([empty, *(scores.similarities for scores in result)])[:, 0],
        np.concatenate([np.zeros(0, np.bool_), *(scores.scored for scores in result)]),
    )


@pytest.mark.parametrize("name", ["latin-1", "seven fields", "lexicalised", "multi-factor", "filtering"])
@pytest.mark.parametrize("way", ["forward", "backward", "density"])
def test_each_entry_has_the_score_of_its_pair(name, way, tmp_path):
    model = backward_translator() if way == "backward" else translator()
    path = write(tmp_path / "t", TABLES[name])
    reading = "density" if way == "density" else "normalised"
    source = NeuralScores(model, reading=reading)
    logs, scored = scores_of(path, source)
    vocabularies = model.source_vocabulary, model.target_vocabulary
    block = TableParser(*(vocabularies[::-1] if way == "backward" else vocabularies))(
        0, np.frombuffer(TABLES[name], np.uint8)
    )[0]
    groups = np.repeat(np.arange(len(block.sources)), np.diff(block.group_offsets))
    pairs = [(block.sources[g].tolist(), target.tolist()) for g, target in zip(groups, block.targets, strict=True)]
    pairs = [pair[::-1] for pair in pairs] if way == "backward" else pairs
    assert source.column == ("p(source | target)" if way == "backward" else "p(target | source)")
    assert logs == pytest.approx([naive_score(model, *pair, reading) for pair in pairs], rel=3e-4, nan_ok=True)
    assert scored.tolist() == [any(a) and any(b) for a, b in pairs]


def test_the_number_of_torch_threads_is_restored(tmp_path):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(2)
    scores_of(write(tmp_path / "t", TABLES["latin-1"]), NeuralScores(translator()))
    assert torch.get_num_threads() == 2


def test_neither_threads_nor_blocks_change_a_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 50)
    path = write(tmp_path / "t", TABLES["latin-1"] + MALFORMED)
    source = NeuralScores(translator())
    expected, scored = scores_of(path, source)
    assert np.isnan(expected[~scored]).any()
    for threads, size in ((1, 1), (2, 64), (2, 1 << 21), (3, 700)):
        again, same = scores_of(path, NeuralScores(translator(), threads=threads), threads, size)
        assert np.array_equal(again, expected, equal_nan=True)
        assert np.array_equal(same, scored)


def test_finished_windows_are_not_scored_again(tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 50)
    path, folder = write(tmp_path / "t", TABLES["latin-1"]), tmp_path / "parts"
    source = NeuralScores(translator(), folder=str(folder))
    calls, score = [], NeuralScores.scores

    def interrupted(self, sources, targets):
        calls.append(len(sources))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(self, sources, targets)

    monkeypatch.setattr(NeuralScores, "scores", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scores_of(path, source)
    finished = len(list(folder.iterdir()))
    assert finished >= 2
    calls[:] = [0, 0, 0]
    result = scores_of(path, source)
    monkeypatch.setattr(NeuralScores, "scores", score)
    assert len(calls) - 3 == len(list(folder.iterdir())) - finished
    expected = scores_of(path, NeuralScores(translator()))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(result, expected, strict=True))
    with pytest.raises(DataError, match="holds scores of another model"):
        scores_of(path, NeuralScores(translator(seed=2), folder=str(folder)))
    with pytest.raises(DataError, match="holds scores of another model or other scoring settings"):
        scores_of(path, NeuralScores(translator(), reading="density", folder=str(folder)))
    other_table = write(tmp_path / "u", TABLES["filtering"])
    with pytest.raises(DataError, match="holds scores of another table"):
        scores_of(other_table, source)


def test_long_phrases_are_counted_and_have_no_score(tmp_path):
    path = write(tmp_path / "t", b"das ||| the ||| 1\n" + b"haus " * 512 + b"||| house ||| 1\nx ||| the ||| 1\n")
    source = NeuralScores(translator())
    logs, scored = scores_of(path, source)
    assert scored.tolist() == [True, False, False]
    assert np.isnan(logs).tolist() == [False, True, False]
    assert source.too_long == 1


def test_a_softmax_has_no_densities():
    with pytest.raises(ModelError, match="no densities"):
        NeuralScores(translator(output="softmax"), reading="density")


def many_pairs(words, swapped=False):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(900):
        drawn = rng.integers(1, len(words[0]), rng.integers(1, 4))
        sides = [b" ".join(side[i] for i in drawn) for side in words]
        lines.append(b" ||| ".join(sides[::-1] if swapped else sides) + b" ||| 1\n")
    return b"".join(sorted(set(lines)))


WORDS = [[b"<unk>", *(f"{side}{i}".encode() for i in range(200))] for side in "st"]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_direction_is_found_and_chance_is_refused(tmp_path, swapped):
    path = write(tmp_path / "t", many_pairs(WORDS, swapped))
    source = NeuralScores(translator(*WORDS), FitCheck("m"), reading="density")
    with pytest.raises(DataError, match=r"the model m does not match: it ranks true pairs .* chance \(AUC 0\.[45]"):
        scores_of(path, source)
    assert source.backward == swapped
    other_words = [[b"<unk>", b"nothing"]] * 2
    with pytest.raises(DataError, match="trained on other languages"):
        scores_of(path, NeuralScores(translator(*other_words), FitCheck("m"), reading="density"))


def test_an_existing_column_is_refused(tmp_path):
    model, table = translator(), TABLES["latin-1"]
    logs, _ = scores_of(write(tmp_path / "t", table), NeuralScores(model))
    out = io.BytesIO()
    for line, log in zip(table.splitlines(), logs, strict=True):
        fields = line.split(b" ||| ")
        fields[2] += b" %g" % (1.0 if math.isnan(log) else math.exp(max(log, -50)))
        out.write(b" ||| ".join(fields) + b"\n")
    path = write(tmp_path / "u", out.getvalue())
    with pytest.raises(DataError, match="column 6 already holds the scores of the model m"):
        scores_of(path, NeuralScores(model, FitCheck("m", appended=True)))
    scores_of(path, NeuralScores(translator(seed=5), FitCheck("m", appended=True)))


pytest.importorskip("torch")


def similarities(path, *models):
    with Input(str(path)) as table:
        reader = EntryReader(table, TableScan(block_bytes=500), NeuralSimilarities(tuple(map(NeuralScores, models))))
        result = [reader(item).scores for item in reader.items()]
    return np.concatenate([part.similarities for part in result]), np.concatenate([part.scored for part in result])


def test_similarities_are_mean_probabilities_of_words(tmp_path):
    path = write(tmp_path / "t", TABLES["latin-1"])
    both, scored = similarities(path, translator(), backward_translator())
    swapped, _ = similarities(path, backward_translator(), translator())
    assert np.array_equal(both, swapped)
    forward, _ = similarities(path, translator())
    assert np.array_equal(forward[:, 0], forward[:, 1])
    lines = [line.split(b" ||| ") for line in TABLES["latin-1"].splitlines()]
    for column, model in enumerate((translator(), backward_translator())):
        logs, scored_by_model = scores_of(path, NeuralScores(model))
        lengths = [len(line[1 - column].split()) + 1 for line in lines]
        assert (scored_by_model >= scored).all()
        assert both[scored, column] == pytest.approx(np.exp(logs / lengths)[scored], rel=1e-5)
    assert 0 < scored.sum() < len(scored)
    assert not both[~scored].any()


def test_two_models_of_one_direction_are_refused(tmp_path):
    path = write(tmp_path / "t", TABLES["latin-1"])
    with pytest.raises(DataError, match=r"both models compute p\(target \| source\)"):
        similarities(path, translator(), translator(seed=2))
