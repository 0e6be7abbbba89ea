"""Table 1: what writes its tables, and which of them are looked at."""

import shlex

import pytest

from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.pruned_tables import prune_command, pruned_table_frames
from moses_compat.experiments.session import Session
from moses_compat.experiments.text_sets import read_experiment_texts
from moses_compat.experiments.workbench import open_workbench
from phrasetool.experiments.config import read_experiment_config
from phrasetool.experiments.systems import PruningGrid, PruningSystem
from phrasetool.watch import NOBODY
from tests.small_experiment import table_lines, write_experiment

MORE = '[prune]\nmethods = ["count", "composition"]\nsizes = 0.5\n'


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned") / "x"
    config = read_experiment_config(str(write_experiment(folder, MORE)))
    session = Session(config, read_experiment_texts(config), 1, NOBODY)
    plan = BuildPlan("tuned.ini", config.moses.ini.replace("moses.ini", "table.gz"), dimension=6,
                     scores={6: "scores.parquet"}, forced_pairs="forced.gz")  # fmt: skip
    plan.ini = config.moses.ini
    return open_workbench(session, plan)


@pytest.mark.parametrize(
    ("system", "options"),
    [
        (PruningSystem("count", "", "size", 0.5, "words", 3), "--target-size 0.5 --protect words --keep-top 3"),
        (PruningSystem("count", "", "threshold", 2.0, "all", 10), "--threshold 2 --protect all --keep-top 10"),
        # Criteria with thresholds of their own need no other.
        (PruningSystem("count:2", "", "threshold", 0.0), "--protect none --keep-top 0"),
    ],
)
def test_how_a_table_is_cut(bench, system, options):
    *command, out, path = shlex.split(prune_command(bench, system))
    assert (out, path) == ("-o", "pruned.gz")
    assert command[:2] == ["phrasetool", "prune"]
    assert command[2].endswith("table.gz")
    assert " ".join(command[3:]) == f"{options} --method {system.method}"


@pytest.mark.parametrize(
    ("system", "given"),
    [
        (PruningSystem("semantic", "", "size", 0.5), ["--scores"]),
        (PruningSystem("random", "", "size", 0.5, seed=3), ["--seed"]),
        (PruningSystem("composition+count", "rank", "size", 0.5), ["--combine", "--moses-ini"]),
        (PruningSystem("top", "", "size", 0.5), ["--moses-ini"]),
        (PruningSystem("usage", "", "size", 0.5), ["--forced-pairs"]),
        (PruningSystem("significance+semantic", "product", "size", 0.5), ["--combine", "--scores", "--corpus"]),
    ],
)
def test_what_a_method_needs_is_given(bench, system, given):
    always = {"--target-size", "--protect", "--keep-top", "--method"}
    found = [part for part in shlex.split(prune_command(bench, system)) if part.startswith("--")]
    assert [part for part in found if part not in always] == given


def test_the_full_table_is_there(bench):
    assert prune_command(bench, PruningSystem()) == ""


def test_tables_nearest_to_a_tenth_are_looked_at(bench):
    grid = PruningGrid(("count", "composition", "random"), sizes=(0.5, 0.15, 0.08), protect=("none",))
    frames = pruned_table_frames(bench, grid)
    assert list(frames) == ["pruning", "contests", "surprises"]
    sizes = frames["pruning"].drop_duplicates("system").set_index("system")["entries"]
    assert len(sizes) == 10
    assert sizes["full"] == len(table_lines())
    assert sizes["count 8 %"] == int(0.08 * len(table_lines()))
    assert set(frames["surprises"].method) == {"count", "composition"}
    kept = frames["surprises"][frames["surprises"].kind == "kept"]
    assert len(kept) <= 2 * sizes["count 8 %"]
    assert bench.session.seconds["all pruning runs, when they were done"] > 0
