"""Which steps make what an experiment needs; and that experiments which are done stay done."""

import pytest

from phrasetool.experiments.config import read_experiment_config
from phrasetool_cli.shared.experiment_build import Builder
from phrasetool_cli.shared.experiment_steps import build
from tests.small_experiment import DATA, write_experiment

MADE = f"""\
{DATA}[model]
dimension = 4
iterations = 1
"""
PRUNE = '[prune]\nmethods = ["composition+semantic", "significance"]\nsizes = 0.5\n'
USAGE = '[prune]\nmethods = ["composition+semantic+usage"]\nsizes = 0.5\n'
FORCED = '[prune]\nmethods = ["count"]\nsizes = 0.5\n[annotate]\ncolumns = ["forced"]\n'
LEAVE_ONE_OUT = "[build]\nleave_one_out = true\n"
# Where nothing is.
FOLDER = "/experiment/build"


class _Told(Builder):
    """A builder that does nothing but remember."""

    def __init__(self):
        super().__init__(FOLDER, 1, True)

    def run(self, steps):
        self.steps = {step.name: step for step in steps}
        return {}, {}


def steps_of(path):
    builder = _Told()
    config = read_experiment_config(str(path))
    built = build(config, (config.dev.source, config.dev.target), builder)
    return builder, built


def made_from_a_bitext(folder, more):
    write_experiment(folder)
    path = folder / "made.toml"
    path.write_text(MADE + more)
    return steps_of(path)


@pytest.mark.parametrize("more", [USAGE, FORCED, FORCED.replace('"forced"', '"semantic+forced", "composition"')])
def test_uses_are_counted_in_a_file_of_their_own(tmp_path, more):
    builder, built = made_from_a_bitext(tmp_path, more)
    assert built.forced_pairs == f"{FOLDER}/forced.gz"
    step = builder.steps["count-uses"]
    assert step.arguments == (
        "force-decode", "--moses-ini", f"{FOLDER}/moses.ini", str(tmp_path / "train.src"), str(tmp_path / "train.trg"),
        "--leave-one-out", "-o", f"{FOLDER}/forced.gz",
    )  # fmt: skip
    assert (step.outputs, step.after) == (("forced.gz",), ("tune",))
    if "semantic" in more:
        assert "--leave-one-out" not in builder.steps["force-decode"].arguments


def test_one_file_is_enough_where_training_takes_such_pairs(tmp_path):
    builder, built = made_from_a_bitext(tmp_path, LEAVE_ONE_OUT + USAGE)
    assert built.forced_pairs == built.pairs == f"{FOLDER}/pairs.gz"
    assert "count-uses" not in builder.steps
    assert "--leave-one-out" in builder.steps["force-decode"].arguments
    # Nothing is trained.
    builder, built = made_from_a_bitext(tmp_path, LEAVE_ONE_OUT + FORCED)
    assert built.forced_pairs == f"{FOLDER}/forced.gz"
    assert "force-decode" not in builder.steps


def test_a_finished_model(tmp_path):
    (tmp_path / "pairs.gz").write_text("a ||| v ||| 1\n")
    more = USAGE.replace("0.5", "0.5\n[build]\nleave_one_out = true")
    path = write_experiment(tmp_path, more)
    path.write_text(path.read_text().replace("[data.bitext]", 'table = "table.gz"\npairs = "pairs.gz"\n[data.bitext]'))
    builder, built = steps_of(path)
    assert built.forced_pairs == f"{FOLDER}/forced.gz"
    step = builder.steps["count-uses"]
    assert step.arguments[3:5] == ("--table", str(tmp_path / "table.gz"))
    assert step.after == ()


def test_nobody_counts_uses_in_vain(tmp_path):
    builder, built = made_from_a_bitext(tmp_path, PRUNE)
    assert built.forced_pairs is None
    assert list(builder.steps) == [
        "lm", "align", "extract", "moses-ini", "tune", "force-decode", "train-n4", "scores-n4"
    ]  # fmt: skip


# As they were when the first experiments were run: what is kept in their folders is found by these.
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
    builder, _ = made_from_a_bitext(tmp_path, more)
    found = builder.identities(list(builder.steps.values()))
    assert {name: found[name] for name in IDENTITIES} == IDENTITIES


NEIGHBOURS = '[neighbours]\nphrases = ["a"]\n'


def test_an_encoder_that_cannot_be_trained_alone_has_no_unsupervised_model_beside_it(tmp_path):
    builder, built = made_from_a_bitext(tmp_path, PRUNE + NEIGHBOURS)
    assert built.unsupervised == f"{FOLDER}/model-rae"
    assert "--encoder" not in builder.steps["train-n4"].arguments
    path = tmp_path / "mean-max.toml"
    path.write_text(MADE.replace("[model]", '[model]\nencoder = "mean-max"\noptions.heads = 2') + PRUNE + NEIGHBOURS)
    builder, built = steps_of(path)
    assert built.unsupervised is None
    assert "train-rae" not in builder.steps
    arguments = " ".join(builder.steps["train-n4"].arguments)
    assert "--dimension 4" in arguments
    assert "--encoder mean-max" in arguments
    assert "--heads 2" in arguments
