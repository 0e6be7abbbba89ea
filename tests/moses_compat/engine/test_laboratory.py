"""Tables and weights that are changed in memory have the same effect as in files."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from moses_compat.engine.model import LoadedModel, MosesModel
from tests.small_experiment import table_lines, write_experiment


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loaded") / "x"
    write_experiment(folder)
    # Unknown words, and a line without words.
    (folder / "odd.src").write_bytes(b"a zzz b\n\nzzz yyy\n")
    return folder


@pytest.fixture(scope="module")
def texts(folder):
    return {name: (folder / f"{name}.src").read_bytes() for name in ("one", "odd")}


@pytest.fixture(scope="module")
def model(folder):
    return MosesModel.read(str(folder / "moses.ini"))


def test_a_mask_is_a_table_with_fewer_entries(folder, model, texts):
    loaded = LoadedModel.load(model, texts)
    lines = table_lines()
    full = loaded.translate(loaded.translator())
    everything = np.ones(len(lines), np.bool_)
    assert loaded.translate(loaded.translator(everything)) == full
    for keep in (np.arange(len(lines)) % 3 == 0, ~everything):
        small = folder / "small.gz"
        small.write_bytes(gzip.compress(b"".join(lines[i] for i in np.flatnonzero(keep))))
        written = LoadedModel.load(replace(model, table_files=(str(small),)), texts)
        ticks = []
        result = loaded.translate(loaded.translator(keep), lambda ticks=ticks: ticks.append(1))
        assert result == written.translate(written.translator())
        assert result != full
        assert len(ticks) == 15 + 3
    # Without entries, all words are copied.
    assert [line.split() for line in result["odd"]] == [[b.decode() for b in line.split()] for line in
                                                       texts["odd"].split(b"\n")[:-1]]  # fmt: skip


def test_weights_instead_of_the_models(model, texts):
    loaded = LoadedModel.load(model, texts)
    reweighted = replace(model, weights=model.weights * np.array([-1.0, *[1] * (len(model.weights) - 1)]))
    expected = LoadedModel.load(reweighted, texts)
    result = loaded.translate(loaded.translator().with_weights(reweighted.weights))
    assert result == expected.translate(expected.translator())
    assert result != loaded.translate(loaded.translator())
