import contextlib
from dataclasses import replace

import numpy as np
import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.ini.reading import read_moses_ini
from moses_compat.jobs.tune import TuningOptions, read_development_set, tune_model, tuned_ini
from phrasetool import __version__
from phrasetool.errors import DataError
from phrasetool.smt.tuning.loop import TuningRun
from phrasetool.watch import Watch
from tests.cli.test_tune import model as tuneable_model  # noqa: F401
from tests.commands import write


class Counting(Watch):
    """Records the progress of each run."""

    def __init__(self):
        self.runs = []

    @contextlib.contextmanager
    def items(self, label, total, unit, finished=0):
        ticks = []
        yield ticks.append
        self.runs.append((label, total, unit, sum(ticks)))


def test_weights_are_found_and_written(tuneable_model):  # noqa: F811
    folder = tuneable_model
    paths = str(folder / "dev.src"), [str(folder / "dev.ref")]
    text, references = read_development_set(*paths)
    model = MosesModel.read(str(folder / "moses.ini"))
    translator, source = model.load(text)
    options = TuningOptions(iterations=4, n_best=20, seed=3)
    watch, reports = Counting(), []
    result, weights = tune_model(
        model,
        translator,
        source,
        references,
        options,
        1,
        watch=watch,
        report=lambda *arguments: reports.append(arguments),
    )
    assert [run for run, _ in reports] == result.runs
    assert watch.runs == [(f"run {run.run}", 12, "sentence", 12) for run in result.runs]
    assert weights == reports[result.runs.index(result.best)][1]
    assert result.best.bleu > result.runs[0].bleu
    output = folder / "sub" / "tuned.ini"
    ini_text = tuned_ini(model, result, weights, options, paths[1], str(output))
    output.parent.mkdir()
    output.write_text(ini_text)
    assert ini_text.startswith(
        f"# tuned by phrasetool {__version__}: mira, 20-best, seed 3, restarts 1, best run {result.best.run}, "
        f"BLEU {result.best.bleu:.2f} on dev.ref\n"
    )
    again = read_moses_ini(str(output))
    for name, values in weights.items():
        np.testing.assert_allclose(again.weights[name], values, rtol=1e-6)
    # In its folder, the ini still refers to the same table.
    assert MosesModel.read(str(output)).table.endswith("table")


def test_invalid_development_sets(tmp_path):
    two, three, empty = (str(write(tmp_path / str(n), b"a b\n" * n)) for n in (2, 3, 0))
    assert read_development_set(two, [two]) == (b"a b\na b\n", [b"a b\na b\n"])
    with pytest.raises(DataError, match="0: the file has no lines"):
        read_development_set(empty, [two])
    with pytest.raises(DataError, match=f"3: has 3 lines, but {two} has 2"):
        read_development_set(two, [two, three])


@pytest.mark.parametrize(("restarts", "label"), [(1, "7"), (2, "7 of start 2")])
def test_runs_have_names(restarts, label):
    run = TuningRun(1, 7, np.zeros(1), 0.0, 0, 0, False)
    assert replace(TuningOptions(), restarts=restarts).label(run) == label
