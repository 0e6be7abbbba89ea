"""Table 1: commands that write its tables, entries that systems keep, surprising entries, and reuse of decoded runs."""

import gzip
import shlex
from dataclasses import replace

import numpy as np
import pytest

from moses_compat.engine.model import LoadedModel, MosesModel
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.build_commands import RunStore, decoder_identity
from moses_compat.experiments.compared_tables import (
    TuningPlan,
    decode_run,
    plan_runs,
    prune_command,
    pruned_table_frames,
    read_entries,
    tuning_key,
    with_default_weights,
)
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.session import Session, open_run_context, read_experiment_texts
from moses_compat.experiments.settings import PruningGrid, PruningSystem, labels_of
from moses_compat.files.streams import Input
from moses_compat.ini.tables import choose_table, weights_of
from moses_compat.measures.measure import MeasureRequest, measure_table
from moses_compat.measures.similarities import ModelSimilarities
from phrasetool.pruning.measures import OCCURRENCES, SIMILARITIES
from phrasetool.watch import SILENT
from tests.commands import read, run_inside
from tests.small_experiment import small_model, table_lines, write_experiment

MORE = '[prune]\nmethods = ["count", "composition"]\nsizes = 0.5\n'


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned") / "x"
    config = read_experiment_config(str(write_experiment(folder, MORE)))
    session = Session(config, read_experiment_texts(config), 1, SILENT)
    plan = BuildPlan("tuned.ini", config.moses.ini.replace("moses.ini", "table.gz"), dimension=6,
                     scores={6: "scores.parquet"}, forced_pairs="forced.gz")  # fmt: skip
    plan.ini = config.moses.ini
    return open_run_context(session, plan)


@pytest.mark.parametrize(
    ("system", "options"),
    [
        (PruningSystem("count", "", "size", 0.5, "words", 3), "--target-size 0.5 --protect words --keep-top 3"),
        (PruningSystem("count", "", "threshold", 2.0, "all", 10), "--threshold 2 --protect all --keep-top 10"),
        # Criteria with their own thresholds need no other.
        (PruningSystem("count:2", "", "threshold", 0.0), "--protect none --keep-top 0"),
    ],
)
def test_how_a_table_is_cut(context, system, options):
    *command, out, path = shlex.split(prune_command(context, system))
    assert (out, path) == ("-o", "pruned.gz")
    assert command[:2] == ["phrasetool", "prune"]
    assert command[2].endswith("table.gz")
    assert " ".join(command[3:]) == f"{options} --method {system.method}"


@pytest.mark.parametrize(
    ("system", "given"),
    [
        (PruningSystem("semantic", "", "size", 0.5), ["--similarities"]),
        (PruningSystem("random", "", "size", 0.5, seed=3), ["--seed"]),
        (PruningSystem("count", "", "size", 0.5, protect_frequent=7), ["--protect-frequent"]),
        (PruningSystem("composition+count", "rank", "size", 0.5), ["--combine", "--moses-ini"]),
        (PruningSystem("top", "", "size", 0.5), ["--moses-ini"]),
        (PruningSystem("usage", "", "size", 0.5), ["--forced-pairs"]),
        (PruningSystem("significance+semantic", "product", "size", 0.5), ["--combine", "--similarities", "--bitext"]),
    ],
)
def test_what_a_method_needs_is_given(context, system, given):
    always = {"--target-size", "--protect", "--keep-top", "--method"}
    result = [part for part in shlex.split(prune_command(context, system)) if part.startswith("--")]
    assert [part for part in result if part not in always] == given


def test_counts_are_measured_where_frequent_entries_are_protected(context):
    """By default, frequent entries are protected if similarity alone decides at a threshold."""
    config = context.session.config
    for grid, needed in (
        (PruningGrid(("semantic",), sizes=(0.5,)), False),
        (PruningGrid(("semantic",), sizes=(0.5,), thresholds={"semantic": (0.3,)}), True),
        (PruningGrid(("semantic:0.3",)), True),
        (PruningGrid(("count",), thresholds={"count": (2.0,)}), False),
    ):
        assert (OCCURRENCES in replace(config, prune=grid).needs) == needed


def test_the_full_table_is_there(context):
    assert prune_command(context, PruningSystem()) == ""


def test_tables_nearest_to_a_tenth_are_looked_at(context):
    grid = PruningGrid(("count", "composition", "random"), sizes=(0.5, 0.15, 0.08), protect=("none",))
    frames = pruned_table_frames(context, grid)
    assert list(frames) == ["pruning", "contests", "surprises"]
    sizes = frames["pruning"].drop_duplicates("system").set_index("system")["entries"]
    assert len(sizes) == 10
    assert sizes["full"] == len(table_lines())
    assert sizes["count 8 %"] == int(0.08 * len(table_lines()))
    assert set(frames["surprises"].method) == {"count", "composition"}
    kept = frames["surprises"][frames["surprises"].kind == "kept"]
    assert len(kept) <= 2 * sizes["count 8 %"]
    assert context.session.seconds["all pruning runs, when they were done"] > 0


METHODS = {
    "semantic": ["-m"],
    "semantic:0.3": ["-m"],
    "count": [],
    "random": ["--seed", "3"],
    "composition*2+semantic": ["-m", "--moses-ini"],
    "count:4+semantic:0.2": ["-m"],
    "top": ["--moses-ini"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "x"
    write_experiment(folder)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return MosesModel.read(str(folder / "moses.ini"))


@pytest.fixture(scope="module")
def texts(folder):
    return {name: (folder / f"{name}.src").read_bytes() for name in ("dev", "one")}


@pytest.fixture(scope="module")
def measures(folder, model):
    with Input(model.table) as source:
        weights = weights_of(model.ini, choose_table(model.ini, model.table))
        similar = ModelSimilarities(small_model())
        return measure_table(
            source, MeasureRequest(weights, {SIMILARITIES: similar}, losses=True, occurrences=True)
        ).whole()


def plan(systems, measures, model, identity="x"):
    skipped = []
    runs = list(plan_runs(labels_of(systems), measures, identity, model.weights,
                          lambda label, reason: skipped.append((label, reason))))  # fmt: skip
    return runs, skipped


@pytest.mark.parametrize("method", METHODS)
def test_a_system_keeps_what_prune_writes(folder, model, measures, method):
    grid = PruningGrid((method,), sizes=(0.6, 0.2), thresholds={"semantic": (0.4,), "count": (3,)} if ":" not in method
                       else {}, protect=("words", "all", "none"), keep_top={0.3: 1}, seeds=(3,))  # fmt: skip
    systems = [system for system in grid.systems() if system.method == method]
    runs, _ = plan(systems, measures, model)
    assert len(runs) > len(systems) / 2
    paths = {"-m": folder / "model", "--moses-ini": folder / "moses.ini"}
    arguments = [part for option in METHODS[method] for part in (option, *([paths[option]] if option in paths else []))]
    for run in runs:
        system = run.system
        assert system.keep_top >= 0
        rule = ["--target-size" if system.rule == "size" else "--threshold", system.wanted] if system.wanted else []
        outcome = run_inside(
            "prune", folder / "table.gz", "-o", folder / "out", "--method", method, *arguments, *rule, "--protect",
            system.protect, "--keep-top", system.keep_top, "-q",
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
        lines = table_lines()
        assert run.of == len(lines)
        assert read(folder / "out") == b"".join(lines[i] for i in np.flatnonzero(run.keep))
        assert run.entries == run.keep.sum()


def test_a_size_that_is_too_small_is_skipped(measures, model):
    systems = [PruningSystem(), PruningSystem("count", "", "size", 0.01, "all", 2)]
    runs, skipped = plan(systems, measures, model)
    assert [run.label for run in runs] == ["full"]
    assert skipped[0][0] == "count 1 %"
    assert "are kept at any threshold, more than the requested 1.0%" in skipped[0][1]


def test_a_run_is_decoded_once(folder, model, measures, texts, tmp_path):
    loaded = LoadedModel.load(model, texts)
    identity = decoder_identity(model, texts)
    systems = [PruningSystem(), PruningSystem("count", "", "size", 0.4, "none", 0)]
    runs, _ = plan(systems, measures, model, identity)
    store = RunStore(str(tmp_path / "runs"))
    ticks = []
    records = [decode_run(lambda: loaded, run, store, lambda: ticks.append(1)) for run in runs]
    assert len(ticks) == 2 * 27
    assert [record["entries"] for record in records] == [run.entries for run in runs]
    # The table of the second run, written to a file for `decode`.
    lines = table_lines()
    small = tmp_path / "small.gz"
    small.write_bytes(gzip.compress(b"".join(lines[i] for i in np.flatnonzero(runs[1].keep))))
    outcome = run_inside("decode", "--moses-ini", folder / "moses.ini", "--table", small, folder / "one.src",
                         "-o", tmp_path / "one.out", "-q")  # fmt: skip
    assert outcome.code == 0
    assert (tmp_path / "one.out").read_text().splitlines() == records[1]["translations"]["one"]

    assert [decode_run(pytest.fail, run, store) for run in runs] == records


def test_keys_differ_when_anything_does(folder, model, measures, texts):
    from dataclasses import replace

    systems = [PruningSystem(), PruningSystem("count", "", "size", 0.4, "none", 0)]
    identities = [
        decoder_identity(model, texts),
        decoder_identity(model, {**texts, "one": b"a\n"}),
        decoder_identity(replace(model, search=replace(model.search, stack_size=7)), texts),
        decoder_identity(replace(model, table_files=model.language_models), texts),
        decoder_identity(replace(model, longest=3), texts),
        decoder_identity(replace(model, features=replace(model.features, has_distortion=False)), texts),
    ]
    keys = [run.key for identity in identities for run in plan(systems, measures, model, identity)[0]]
    reweighted = replace(model, weights=model.weights * 2)
    keys += [run.key for run in plan(systems, measures, reweighted, identities[0])[0]]
    assert len(set(keys)) == len(keys) == 14
    same = plan([replace(systems[1], keep_top=5)], measures, model, identities[0])[0]
    assert same[0].key == keys[1]


# The keys at the time of the first experiments, whose results are found by them.
KEYS = {
    "full": "77b92646a196094354a9",
    "semantic 40 %": "6c0fb1fbc1c5d8ac63af",
    "semantic at 0.3": "35bb26722ed4313a2dcf",
    "count 40 %": "db19fe09844eb6b92544",
    "composition 40 %": "e2d3db0580b45b99025b",
    "composition+semantic 40 %": "539b7ab2328ad1bac60b",
    "composition+semantic (rank) 40 %": "49e605997e75e245728d",
    "random 40 %": "9212f00b5cd89042ef5b",
}
TUNING_KEY = "f89c5f1f449bd3099f24"


def test_runs_that_were_done_are_known_again(tmp_path, measures, texts):
    write_experiment(tmp_path)
    # Uncompressed, because gzip data of the same text may differ.
    (tmp_path / "table.gz").write_bytes(b"".join(table_lines()))
    model = MosesModel.read(str(tmp_path / "moses.ini"))
    identity = decoder_identity(model, texts)
    methods = ("semantic", "count", "composition", "composition+semantic", "random")
    grid = PruningGrid(methods, ("product", "rank"), (0.4,), {"semantic": (0.3,)})
    runs, _ = plan([PruningSystem(), *grid.systems()], measures, model, identity)
    assert {run.label: run.key for run in runs} == KEYS
    columns = np.zeros((len(measures), 0), np.float32)
    plan_of_tuning = TuningPlan("dev", b"a\n", 3)
    assert tuning_key(identity, with_default_weights(model), columns, None, plan_of_tuning, 2) == TUNING_KEY


def test_entries_are_read_by_number(folder):
    lines = table_lines()
    expected = np.array([0, 3, 4, len(lines) - 1])
    result = read_entries(str(folder / "table.gz"), expected)
    assert result == [tuple(lines[i].split(b" ||| ")[:2]) for i in expected]
    assert read_entries(str(folder / "table.gz"), expected[:0]) == []
