"""Commands that an experiment needs, and their identities, by which finished steps are reused."""

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build import open_build_store, plan_build
from moses_compat.experiments.build_commands import BuildCommand, BuildStore, commands_of
from moses_compat.experiments.config import read_experiment_config
from tests.small_experiment import DATA, write_experiment

MADE = f"""\
{DATA}[model]
dimension = 4
iterations = 1
"""
PRUNE = '[prune]\nmethods = ["composition+semantic", "significance"]\nsizes = 0.5\n'
USAGE = '[prune]\nmethods = ["composition+semantic+usage"]\nsizes = 0.5\n'
FORCED = '[prune]\nmethods = ["count"]\nsizes = 0.5\n[annotate]\ncolumns = ["forced"]\n'
PLAIN = "[build]\nleave_one_out = false\n"
# A folder that does not exist.
FOLDER = "/experiment/build"


def planned(path):
    """Return the plan and its commands by name."""
    config = read_experiment_config(str(path))
    plan = plan_build(config, config.dev, BuildStore(FOLDER).path)
    return plan, {command.name: command for command in commands_of(plan.phases)}


def made_from_a_bitext(folder, more):
    write_experiment(folder)
    path = folder / "made.toml"
    path.write_text(MADE + more)
    return planned(path)


def names_of(plan):
    return [[[command.name for command in chain] for chain in phase] for phase in plan.phases]


DECODER = [[["lm"], ["align", "extract"]], [["moses-ini", "tune"]]]
ENCODERS = [["train-n4", "scores-n4"]]


@pytest.mark.parametrize("more", [USAGE, FORCED, FORCED.replace('"forced"', '"semantic+forced", "composition"')])
def test_uses_are_counted_in_a_file_of_their_own(tmp_path, more):
    plan, commands = made_from_a_bitext(tmp_path, PLAIN + more)
    assert plan.forced_pairs == f"{FOLDER}/forced.gz"
    command = commands["count-uses"]
    assert command.arguments == (
        "force-decode", "--moses-ini", f"{FOLDER}/moses.ini", str(tmp_path / "train.src"), str(tmp_path / "train.trg"),
        "--leave-one-out", "-o", f"{FOLDER}/forced.gz",
    )  # fmt: skip
    assert (command.outputs, command.after) == (("forced.gz",), (commands["tune"],))
    if "semantic" in more:
        assert "--leave-one-out" not in commands["force-decode"].arguments
        assert names_of(plan) == [*DECODER, [["force-decode"]], [*ENCODERS, ["count-uses"]]]
    else:
        assert names_of(plan) == [*DECODER, [["count-uses"]]]


def test_models_are_trained_on_pairs_of_leave_one_out_forced_decoding(tmp_path):
    plan, commands = made_from_a_bitext(tmp_path, USAGE)
    assert plan.forced_pairs == plan.pairs == f"{FOLDER}/pairs.gz"
    assert "count-uses" not in commands
    assert "--leave-one-out" in commands["force-decode"].arguments
    # Nothing is trained.
    plan, commands = made_from_a_bitext(tmp_path, FORCED)
    assert plan.forced_pairs == f"{FOLDER}/forced.gz"
    assert "force-decode" not in commands


def test_a_finished_model(tmp_path):
    (tmp_path / "pairs.gz").write_text("a ||| v ||| 1\n")
    more = USAGE
    path = write_experiment(tmp_path, more)
    path.write_text(path.read_text().replace("[data.bitext]", 'table = "table.gz"\npairs = "pairs.gz"\n[data.bitext]'))
    plan, commands = planned(path)
    assert plan.forced_pairs == f"{FOLDER}/forced.gz"
    command = commands["count-uses"]
    assert plan.pairs == str(tmp_path / "pairs.gz")
    assert command.arguments[3:5] == ("--table", str(tmp_path / "table.gz"))
    assert command.after == ()
    assert names_of(plan) == [[["scores-n6"], ["count-uses"]]]


def test_nobody_counts_uses_in_vain(tmp_path):
    plan, _ = made_from_a_bitext(tmp_path, PRUNE)
    assert plan.forced_pairs is None
    assert names_of(plan) == [*DECODER, [["force-decode"]], ENCODERS]


# The identities at the time of the first experiments, whose results are found by them.
IDENTITIES = {
    "lm": "0d0640afd04c46e6005b",
    "align": "3db46e36d7ac2175c04b",
    "extract": "34771a91fc7fc0dc151f",
    "moses-ini": "485a3acc51ba392a4ab1",
    "tune": "9d7ced67363140aa983d",
    "force-decode": "5495391e500e10ff3ef9",
    "train-n4": "caadcc8246d9f49b7069",
    "scores-n4": "80059eef99f95f3f3277",
}


@pytest.mark.parametrize("more", [PRUNE, USAGE])
def test_steps_that_were_done_are_known_again(tmp_path, more):
    _, commands = made_from_a_bitext(tmp_path, PLAIN + more)
    store = BuildStore(FOLDER)
    assert {name: store.identity(commands[name]) for name in IDENTITIES} == IDENTITIES


def test_a_step_depends_on_the_files_that_a_given_ini_names(tmp_path):
    config = read_experiment_config(str(write_experiment(tmp_path, PRUNE)))
    command = BuildCommand("decode", ("decode", "--moses-ini", config.moses.ini), ("out",))
    identities = [open_build_store(config, FOLDER).identity(command)]
    for path in MosesModel.read(config.moses.ini).paths:
        with open(path, "ab") as file:
            file.write(b"\n")
        identities.append(open_build_store(config, FOLDER).identity(command))
    assert len(identities) == len(set(identities)) >= 3


def test_a_model_of_each_dimension(tmp_path):
    more = PRUNE + "[annotate]\ndimensions = [8, 4]\n[build]\nlm_order = 2\n"
    plan, commands = made_from_a_bitext(tmp_path, more)
    assert names_of(plan)[-1] == [*ENCODERS, ["train-n8", "scores-n8"]]
    assert plan.dimension == 4
    assert plan.models == {4: f"{FOLDER}/model-n4", 8: f"{FOLDER}/model-n8"}
    assert plan.scores[8] == f"{FOLDER}/scores-n8.parquet"
    assert commands["scores-n8"].after == (commands["extract"], commands["train-n8"])


NEIGHBOURS = '[neighbours]\nphrases = ["a"]\n'


def test_an_encoder_that_cannot_be_trained_alone_has_no_unsupervised_model_beside_it(tmp_path):
    plan, commands = made_from_a_bitext(tmp_path, PRUNE + NEIGHBOURS)
    assert plan.unsupervised == f"{FOLDER}/model-rae"
    assert names_of(plan)[-1] == [["train-rae"], *ENCODERS]
    assert "--architecture" not in commands["train-n4"].arguments
    path = tmp_path / "mean-max.toml"
    path.write_text(MADE.replace("[model]", '[model]\nencoder = "mean-max"\noptions.heads = 2') + PRUNE + NEIGHBOURS)
    plan, commands = planned(path)
    assert plan.unsupervised is None
    assert "train-rae" not in commands
    arguments = " ".join(commands["train-n4"].arguments)
    assert "--dimension 4" in arguments
    assert "--architecture mean-max" in arguments
    assert "--heads 2" in arguments
