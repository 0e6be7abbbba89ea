"""Table 2: the tables that are tuned, columns in memory as in an annotated table, and reuse of finished tunings."""

import os

import numpy as np
import pytest

from moses_compat.engine.model import LoadedModel, MosesModel
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.build_commands import RunStore
from moses_compat.experiments.compared_tables import (
    TuningPlan,
    annotated,
    column_values,
    tables_to_tune,
    tuned_run,
    tuned_table_frame,
    tuning_key,
    with_default_weights,
)
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.session import Session, open_run_context, read_experiment_texts
from moses_compat.experiments.settings import AnnotationSettings
from moses_compat.files.streams import Input
from moses_compat.measures.measure import MeasureRequest, measure_table
from moses_compat.measures.pair_counts import PairUses
from moses_compat.measures.similarities import ModelSimilarities
from phrasetool.errors import PhraseToolError
from phrasetool.pruning.measures import SIMILARITIES
from phrasetool.watch import SILENT
from tests.commands import run_inside, write
from tests.measures import measures_of
from tests.power_cuts import PowerCut, cut_after
from tests.small_experiment import small_model, table_lines, write_experiment

__all__ = ["cut_after"]

MORE = '[prune]\nmethods = ["count"]\nsizes = 0.5\n[annotate]\ncolumns = "composition"\n'


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    config = read_experiment_config(str(write_experiment(tmp_path_factory.mktemp("tuned") / "x", MORE)))
    session = Session(config, read_experiment_texts(config), 1, SILENT)
    return open_run_context(session, BuildPlan(config.moses.ini))


def rows(context, **asked):
    return [(table.label, table.columns, table.dimension) for table in
            tables_to_tune(context, AnnotationSettings(**asked))]  # fmt: skip


def test_the_full_table_first(context):
    assert rows(context, dimensions=(4, 8)) == [
        ("baseline", "", 0), ("annotated n=4", "semantic", 4), ("annotated n=8", "semantic", 8)
    ]  # fmt: skip
    assert rows(context, dimensions=(4,), columns=("composition", "forced+semantic")) == [
        ("baseline", "", 0),
        ("annotated (composition)", "composition", 0),
        ("annotated n=4 (forced+semantic)", "forced+semantic", 4),
    ]


def test_sizes(context):
    request = AnnotationSettings(columns=("composition",), sizes=(1.0, 0.5), method="count")
    result = list(tables_to_tune(context, request))
    assert [table.label for table in result] == ["baseline", "annotated", "count 50 %", "annotated, count 50 %"]
    assert [None if table.keep is None else table.keep.sum() for table in result] == [
        None, None, len(table_lines()) // 2, len(table_lines()) // 2
    ]  # fmt: skip
    assert rows(context, columns=("composition",), sizes=(0.5, 0.3), method="count")[0][0] == "baseline, count 50 %"


def test_a_size_that_cannot_be_had(context):
    request = AnnotationSettings(columns=("composition",), sizes=(1.0, 1e-4), method="count")
    with pytest.raises(PhraseToolError, match=r"experiment\.toml: annotate\.sizes: "):
        tuned_table_frame(context, request)


def test_where_a_tuning_starts_makes_it_another(context):
    def runs(start):
        request = AnnotationSettings(columns=("composition",), tuning_seeds=(1,), start=start, iterations=1)
        frame = tuned_table_frame(context, request)
        assert list(dict.fromkeys(frame.system)) == ["baseline", "annotated"]
        return len(os.listdir(context.store.folder))

    assert [runs(start) for start in ("default", "ini", "default")] == [2, 4, 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("annotation") / "x"
    write_experiment(folder)
    for arguments in (
        ("annotate", folder / "table.gz", "-m", folder / "model", "-o", folder / "annotated.gz", "-q"),
        ("moses-ini", folder / "moses.ini", "--table", folder / "annotated.gz", "-o", folder / "annotated.ini"),
    ):
        assert run_inside(*arguments).code == 0
    return folder


@pytest.fixture(scope="module")
def texts(folder):
    return {name: (folder / f"{name}.src").read_bytes() for name in ("dev", "one")}


@pytest.fixture(scope="module")
def measures(folder):
    with Input(str(folder / "table.gz")) as source:
        return measure_table(
            source, MeasureRequest(similarities={SIMILARITIES: ModelSimilarities(small_model())})
        ).whole()


@pytest.fixture(scope="module")
def plain(folder, texts):
    return LoadedModel.load(MosesModel.read(str(folder / "moses.ini")), texts)


def test_the_decoder_sees_what_it_would_read(folder, texts, measures, plain):
    written = LoadedModel.load(MosesModel.read(str(folder / "annotated.ini")), texts)
    loaded = annotated(plain, plain.model, column_values(measures, ["semantic"]))
    assert (written.entries.numbers == loaded.entries.numbers).all()
    assert written.entries.scores == pytest.approx(loaded.entries.scores, abs=2e-7)
    assert written.model.features == loaded.model.features
    assert (written.model.weights == loaded.model.weights).all()
    assert (written.model.tuneable == loaded.model.tuneable).all()
    weights = loaded.model.weights.copy()
    weights[-2:] = 1.5, -0.5
    assert loaded.translate(loaded.translator().with_weights(weights)) == written.translate(
        written.translator().with_weights(weights)
    )


def test_columns_of_forced_decoding_are_those_of_annotate(folder, texts, plain):
    lines = [line.split(b" ||| ") for line in table_lines()[::4]]
    pairs = str(write(folder / "pairs.gz", b"".join(b"%s ||| %s ||| %d\n" % (*line[:2], i % 4)
                                                    for i, line in enumerate(lines))))  # fmt: skip
    outcome = run_inside(
        "annotate",
        folder / "table.gz",
        "--forced-pairs",
        pairs,
        "--smoothing",
        "none",
        "-o",
        folder / "forced.gz",
        "-q",
    )
    assert outcome.code == 0, outcome.err
    outcome = run_inside(
        "moses-ini", folder / "moses.ini", "--table", folder / "forced.gz", "-o", folder / "forced.ini"
    )
    assert outcome.code == 0
    written = LoadedModel.load(MosesModel.read(str(folder / "forced.ini")), texts)
    with Input(str(folder / "table.gz")) as source:
        request = MeasureRequest(forced_pairs=PairUses.read(pairs), forced_probabilities=True)
        measured = measure_table(source, request).whole()
    loaded = annotated(plain, plain.model, column_values(measured, ["forced"]))
    assert written.entries.scores == pytest.approx(loaded.entries.scores, abs=2e-6)
    assert (written.entries.scores == loaded.entries.scores).mean() > 0.99
    assert written.model.features == loaded.model.features


def test_other_columns():
    losses = np.array([np.inf, -1, 2, 0.5], np.float32)
    table = measures_of(
        np.array([0, 4]), np.array([1]), np.zeros(4, np.bool_), losses, losses, losses=losses,
        significance=np.array([np.inf, 0, 10, 25], np.float32),
    )  # fmt: skip
    values = column_values(table, ["composition", "significance"])
    assert values.tolist() == [[-3, 0], [0, -2], [-2, -1], [-0.5, 0]]
    assert values.dtype == np.float32
    assert column_values(table, []).shape == (4, 0)


def test_columns_of_probabilities():
    result = np.array([[0.5, 0.25], [1e-30, 1], [0.125, 0.5]], np.float32)
    scored = np.array([True, True, False])
    measures = measures_of([0, 3], [1], [False] * 3, similarities=result, scored=scored)
    expected = [[np.log(0.5), np.log(0.25)], [-50, 0], [0, 0]]
    np.testing.assert_allclose(column_values(measures, ["semantic"], probable=True), expected, rtol=1e-6)
    # A single translator or a classifier gives one score only.
    alike = measures_of([0, 3], [1], [False] * 3, similarities=result[:, [0, 0]], scored=scored)
    np.testing.assert_allclose(column_values(alike, ["semantic"], probable=True), np.array(expected)[:, :1], rtol=1e-6)


def test_columns_of_forced_decoding():
    forced = np.array([[1, 0.1234567], [1e-6, 0.00098765432], [0.5, 0.99999999], [0, 0]], np.float32)
    nothing = np.zeros(4, np.float32)
    table = measures_of(np.array([0, 4]), np.array([1]), np.zeros(4, np.bool_), nothing, nothing, forced=forced)
    written = [[1, 0.123457], [1e-6, 0.000987654], [0.5, 1], [1e-6, 1e-6]]
    values = column_values(table, ["forced"])
    np.testing.assert_array_equal(values, np.log(np.array(written, np.float32)))
    assert column_values(table, ["forced", "forced"]).shape == (4, 4)


def test_smoothed_columns_are_those_of_annotate(folder, texts, plain):
    table, ini = folder / "smoothed.gz", folder / "smoothed.ini"
    options = ("--force", "--smoothing", "kneser-ney", "-m", folder / "model", "-o", table, "--moses-ini-out", ini)
    outcome = run_inside("annotate", folder / "table.gz", "--moses-ini", folder / "moses.ini", *options, "-q")
    assert outcome.code == 0, outcome.err
    written = LoadedModel.load(MosesModel.read(str(ini)), texts)
    request = MeasureRequest(similarities={SIMILARITIES: ModelSimilarities(small_model())}, smoothing="kneser-ney")
    with Input(str(folder / "table.gz")) as source:
        values = column_values(measure_table(source, request).whole(), ["semantic", "kneser-ney"])
    loaded = annotated(plain, plain.model, values)
    assert written.entries.scores == pytest.approx(loaded.entries.scores, abs=4e-7)
    assert loaded.entries.scores.shape[1] == 4 + 4


def test_a_tuning_is_what_tune_does_and_is_done_once(folder, texts, measures, plain, tmp_path):
    values = column_values(measures, ["semantic"])
    lab = annotated(plain, plain.model, values)
    plan = TuningPlan("dev", (folder / "dev.trg").read_bytes(), 3)
    store = RunStore(str(tmp_path))
    key = tuning_key("x", plain.model, values, None, plan, 2)
    ticks = []
    record = tuned_run(lambda: lab, None, plan, 2, store, key, {"system": "a"}, ticks.append)
    assert sum(ticks) == 3 * 12 + 27
    outcome = run_inside("tune", "--moses-ini", folder / "annotated.ini", "--dev", folder / "dev.src",
                         folder / "dev.trg", "--iterations", "3", "--seed", "2", "-q",
                         "-o", folder / "tuned.ini")  # fmt: skip
    assert outcome.code == 0, outcome.err
    tuned = MosesModel.read(str(folder / "tuned.ini"))
    weights = np.concatenate([record["weights"][name] for name in tuned.features.sizes])
    assert weights == pytest.approx(tuned.weights, abs=1e-5)
    assert list(record["translations"]) == ["dev", "one"]
    assert record["system"] == "a"

    assert tuned_run(pytest.fail, None, plan, 2, store, key, {}) == record


def test_keys_differ_when_anything_does(measures, plain):
    values = column_values(measures, ["semantic"])
    plan = TuningPlan("dev", b"a\n", 3)
    mask = np.ones(len(measures), np.bool_)
    keys = [
        tuning_key("x", plain.model, values, None, plan, 1),
        tuning_key("y", plain.model, values, None, plan, 1),
        tuning_key("x", with_default_weights(plain.model), values, None, plan, 1),
        tuning_key("x", plain.model, values[:, :1], None, plan, 1),
        tuning_key("x", plain.model, values[:, :0], None, plan, 1),
        tuning_key("x", plain.model, values, mask, plan, 1),
        tuning_key("x", plain.model, values, None, TuningPlan("dev", b"b\n", 3), 1),
        tuning_key("x", plain.model, values, None, TuningPlan("dev", b"a\n", 4), 1),
        tuning_key("x", plain.model, values, None, plan, 2),
    ]
    assert len(set(keys)) == len(keys)


def test_a_tuning_that_was_cut_goes_on(plain, folder, tmp_path, cut_after):
    plan = TuningPlan("dev", (folder / "dev.trg").read_bytes(), 3)

    def record(place):
        result = tuned_run(lambda: plain, None, plan, 2, RunStore(str(tmp_path / place)), "key", {})
        return {name: value for name, value in result.items() if name != "seconds"}

    expected, stops = record("whole"), 0
    while True:
        steps = cut_after(20)
        try:
            assert record("cut") == expected
            break
        except PowerCut:
            stops += 1
            assert os.listdir(tmp_path / "cut") == ["key.unfinished"]
    assert stops
    assert len(steps) < 20
    assert os.listdir(tmp_path / "cut") == ["key.json"]


def test_default_weights(plain):
    assert with_default_weights(plain.model).weights.tolist() == [0.3, 0.5, -1, 0.2, 0.2, 0.2, 0.2, 0.2]
