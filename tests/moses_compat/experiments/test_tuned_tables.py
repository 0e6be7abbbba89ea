"""Table 2: which tables are tuned."""

import os

import pytest

from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.session import Session
from moses_compat.experiments.text_sets import read_experiment_texts
from moses_compat.experiments.tuned_tables import tables_to_tune, tuned_table_frame
from moses_compat.experiments.workbench import open_workbench
from phrasetool.errors import PhraseToolError
from phrasetool.experiments.config import read_experiment_config
from phrasetool.experiments.settings import AnnotationSettings
from phrasetool.watch import NOBODY
from tests.small_experiment import table_lines, write_experiment

MORE = '[prune]\nmethods = ["count"]\nsizes = 0.5\n[annotate]\ncolumns = "composition"\n'


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    config = read_experiment_config(str(write_experiment(tmp_path_factory.mktemp("tuned") / "x", MORE)))
    session = Session(config, read_experiment_texts(config), 1, NOBODY)
    return open_workbench(session, BuildPlan(config.moses.ini))


def rows(bench, **asked):
    return [(table.label, table.columns, table.dimension) for table in
            tables_to_tune(bench, AnnotationSettings(**asked))]  # fmt: skip


def test_the_full_table_first(bench):
    assert rows(bench, dimensions=(4, 8)) == [
        ("baseline", "", 0), ("annotated n=4", "semantic", 4), ("annotated n=8", "semantic", 8)
    ]  # fmt: skip
    assert rows(bench, dimensions=(4,), columns=("composition", "forced+semantic")) == [
        ("baseline", "", 0),
        ("annotated (composition)", "composition", 0),
        ("annotated n=4 (forced+semantic)", "forced+semantic", 4),
    ]


def test_sizes(bench):
    asked = AnnotationSettings(columns=("composition",), sizes=(1.0, 0.5), method="count")
    found = list(tables_to_tune(bench, asked))
    assert [table.label for table in found] == ["baseline", "annotated", "count 50 %", "annotated, count 50 %"]
    assert [None if table.keep is None else table.keep.sum() for table in found] == [
        None, None, len(table_lines()) // 2, len(table_lines()) // 2
    ]  # fmt: skip
    assert rows(bench, columns=("composition",), sizes=(0.5, 0.3), method="count")[0][0] == "baseline, count 50 %"


def test_a_size_that_cannot_be_had(bench):
    asked = AnnotationSettings(columns=("composition",), sizes=(1.0, 1e-4), method="count")
    with pytest.raises(PhraseToolError, match=r"experiment\.toml: annotate\.sizes: "):
        tuned_table_frame(bench, asked)


def test_where_a_tuning_starts_makes_it_another(bench):
    def runs(start):
        asked = AnnotationSettings(columns=("composition",), tuning_seeds=(1,), start=start, iterations=1)
        frame = tuned_table_frame(bench, asked)
        assert list(dict.fromkeys(frame.system)) == ["baseline", "annotated"]
        return len(os.listdir(bench.store.folder))

    assert [runs(start) for start in ("default", "ini", "default")] == [2, 4, 4]
