"""`phrasetool experiment` with an existing model and with a bitext."""

import json
import random
import re
import shlex
from dataclasses import fields

import pandas as pd
import pytest

from moses_compat.engine.model import LoadedModel
from moses_compat.experiments.settings import (
    AnnotationSettings,
    BuildSettings,
    EncoderSettings,
    ExperimentConfig,
    FinishedModel,
    LadderSettings,
    NeighbourSettings,
    PretrainedEncoderSettings,
    PruningGrid,
    SearchSettings,
    TextPair,
)
from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import Vocabulary
from tests.commands import read, run_inside, run_outside
from tests.conftest import random_parameters
from tests.small_experiment import DATA, table_lines, write_experiment

PRUNE = """\
[prune]
methods = ["semantic", "composition+semantic", "count", "random"]
sizes = [0.6, 0.3, 0.001]
thresholds.semantic = [0.3]
"""
ANNOTATE = """\
[annotate]
tuning_seeds = [1, 2]
columns = ["semantic", "semantic+composition"]
sizes = [0.5, 1]
dimensions = 6
iterations = 2
"""
FRAMES = ["annotation", "contests", "histogram", "map", "pruning", "surprises"]


def frames_of(folder):
    return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def assert_same_frames(first, second, without=("command",)):
    assert list(first) == list(second)
    for name in first:
        first_frame, second_frame = (
            frame[name].drop(columns=list(without), errors="ignore") for frame in (first, second)
        )
        pd.testing.assert_frame_equal(first_frame, second_frame)


def test_the_help_names_every_key():
    text = run_inside("experiment", "--help").out.decode().partition("CONFIG is TOML")[2]
    parts = re.split(r"^ *\[(\S+)\]", text, flags=re.MULTILINE)
    described = {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
    sections = {
        "": ExperimentConfig, "data.bitext": TextPair, "data.dev": TextPair, "data.tests.NAME": TextPair,
        "moses": FinishedModel, "build": BuildSettings, "model": EncoderSettings,
        "model.text_encoder": PretrainedEncoderSettings, "prune": PruningGrid, "annotate": AnnotationSettings,
        "ladder": LadderSettings, "neighbours": NeighbourSettings, "search": SearchSettings,
    }  # fmt: skip
    assert set(described) == set(sections)
    for name, settings in sections.items():
        keys = {field.name for field in fields(settings) if "read" in field.metadata}
        assert [key for key in keys if not re.search(rf"\b{key}\b", described[name])] == [], name


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a finished experiment, run on one thread."""
    folder = tmp_path_factory.mktemp("experiment") / "x"
    config = write_experiment(folder, PRUNE + ANNOTATE)
    outcome = run_inside("experiment", config, "--threads", "1", "-q")
    assert outcome.code == 0, outcome.err
    return folder


def test_outputs(finished):
    out = finished / "out"
    frames = frames_of(out)
    assert list(frames) == FRAMES
    facts = json.loads((out / "experiment.json").read_text())
    assert facts["name"] == "experiment"
    assert facts["config"]["text"] == (finished / "experiment.toml").read_text()
    assert facts["versions"]["sacrebleu"]
    assert facts["seconds"]["pruning"] > 0
    assert (out / "report.html").stat().st_size > 1000
    pruning = frames["pruning"]
    assert set(pruning.text) == {"one", "two", "ALL", "dev"}
    assert pruning.system.nunique() == 1 + 4 * 2 + 1
    # A size that the protected entries alone exceed has no row.
    assert 0.001 not in set(pruning.wanted)
    systems = [f"annotated n=6 ({columns})" for columns in ("semantic", "semantic+composition")]
    pruned = "composition+semantic 50 %"
    assert list(dict.fromkeys(frames["annotation"].system)) == [
        "baseline", *systems, pruned, *(f"{system}, {pruned}" for system in systems)
    ]  # fmt: skip
    assert frames["annotation"].difference[frames["annotation"].system == "baseline"].eq(0).all()
    assert set(frames["annotation"].columns.drop("tuning_seeds")) >= {"deviation", "dev_bleu", "p"}
    # The full table, 8 sizes and 1 threshold; 6 systems with 2 seeds each.
    assert len(list((out / "runs").glob("*.json"))) <= 10 + 12


def test_commands_write_the_tables(finished):
    pruning = frames_of(finished / "out")["pruning"]
    rows = pruning[(pruning.text == "dev") & (pruning.system != "full")]
    assert len(rows) == 9
    records = [json.loads(path.read_text()) for path in (finished / "out" / "runs").glob("*.json")]
    for row in rows.itertuples():
        arguments = shlex.split(row.command)[1:]
        arguments[-1] = str(finished / "small.gz")
        assert run_inside(*arguments, "-q").code == 0
        lines = read(finished / "small.gz").splitlines(keepends=True)
        assert len(lines) == row.entries
        assert row.share == row.entries / len(table_lines())
        outcome = run_inside("decode", "--moses-ini", finished / "moses.ini", "--table", finished / "small.gz",
                             "--search", "cube", "--stack", "400", "--pop-limit", "400", finished / "one.src",
                             "-o", finished / "one.out", "-q")  # fmt: skip
        assert outcome.code == 0
        lines = (finished / "one.out").read_text().splitlines()
        assert any(record.get("entries") == row.entries and record["translations"]["one"] == lines
                   for record in records)  # fmt: skip


def test_finished_work_is_reused(finished, monkeypatch):
    before = frames_of(finished / "out")
    monkeypatch.setattr(LoadedModel, "load", None)
    outcome = run_inside("experiment", finished / "experiment.toml", "--threads", "1")
    assert outcome.code == 0, outcome.err
    assert "10 tables to compare, 0 to translate with" in outcome.err
    assert "12 tunings, 0 to do" in outcome.err
    assert "no table that small: semantic 0.1 % and 3 more left out (" in outcome.err
    assert_same_frames(frames_of(finished / "out"), before, ())


def test_more_threads_and_an_interruption_change_nothing(finished, tmp_path, monkeypatch):
    """An experiment that is interrupted after three runs continues with the fourth and gives the same frames."""
    config = write_experiment(tmp_path / "y", PRUNE + ANNOTATE)
    translate, calls = LoadedModel.translate, []

    def until(last):
        def counted(self, *arguments):
            if len(calls) == last:
                raise KeyboardInterrupt
            calls.append(1)
            return translate(self, *arguments)

        monkeypatch.setattr(LoadedModel, "translate", counted)

    until(3)
    outcome = run_inside("experiment", config, "--threads", "2", "-q")
    assert outcome.code == 130
    assert not list((tmp_path / "y" / "out").glob("*.parquet"))
    assert len(list((tmp_path / "y" / "out" / "runs").glob("*.json"))) == 3
    until(None)
    assert run_inside("experiment", config, "--threads", "2", "-q").code == 0
    whole = len(list((finished / "out" / "runs").glob("*.json")))
    assert len(calls) == whole == len(list((tmp_path / "y" / "out" / "runs").glob("*.json")))
    assert_same_frames(frames_of(tmp_path / "y" / "out"), frames_of(finished / "out"))


LITTLE = """\
[prune]
methods = ["composition+semantic"]
sizes = 0.5
[annotate]
tuning_seeds = 1
columns = "semantic"
dimensions = 6
iterations = 1
"""
MORE = """\
[prune]
methods = ["usage", "composition+usage", "composition+semantic+usage", "composition+semantic"]
sizes = 0.5
[annotate]
tuning_seeds = 1
columns = ["semantic", "forced", "kneser-ney", "kneser-ney+forced+semantic"]
dimensions = 6
iterations = 1
"""


def test_an_extended_experiment_reuses_finished_work(tmp_path):
    """Existing results are kept; the bitext is force-decoded once, to count usage."""
    folder = tmp_path / "u"
    config = write_experiment(folder, LITTLE)
    rng = random.Random(2)
    entries = [rng.choices([line.split(b" ||| ")[:2] for line in table_lines()], k=3) for _ in range(60)]
    for side, name in enumerate(("src", "trg")):
        text = b"".join(b" ".join(phrase[side] for phrase in phrases) + b"\n" for phrases in entries)
        (folder / f"train.{name}").write_bytes(text)
    assert run_inside("experiment", config, "--threads", "1", "-q").code == 0
    before = {path.name for path in (folder / "out" / "runs").glob("*")}
    config.write_text(config.read_text().replace(LITTLE, MORE))
    outcome = run_inside("experiment", config, "--threads", "1")
    assert outcome.code == 0, outcome.err
    assert "count-uses: done in" in outcome.err
    assert "scores-n6" not in outcome.err
    assert "5 tables to compare, 3 to translate with" in outcome.err
    assert "5 tunings, 3 to do" in outcome.err
    assert before < {path.name for path in (folder / "out" / "runs").glob("*")}
    frames = frames_of(folder / "out")
    assert list(dict.fromkeys(frames["annotation"].system)) == [
        "baseline", "annotated n=6 (semantic)", "annotated (forced)", "annotated (kneser-ney)",
        "annotated n=6 (kneser-ney+forced+semantic)",
    ]  # fmt: skip
    assert set(frames["contests"].without) <= {"usage", "composition+usage"}
    assert set(frames["contests"].with_semantics) <= {"composition+semantic+usage", "composition+semantic"}
    rows = frames["pruning"][frames["pruning"].text == "dev"]
    for row in rows[rows.system != "full"].itertuples():
        arguments = shlex.split(row.command)[1:]
        assert ("--forced-pairs" in arguments) == ("usage" in row.method)
        arguments[-1] = str(folder / "small.gz")
        assert run_inside(*arguments, "-q").code == 0
        assert read(folder / "small.gz").count(b"\n") == row.entries
    outcome = run_inside("experiment", config, "--threads", "1")
    assert "5 tables to compare, 0 to translate with" in outcome.err
    assert "count-uses" not in outcome.err
    assert "5 tunings, 0 to do" in outcome.err
    command = json.loads((folder / "out" / "experiment.json").read_text())["commands"]["count-uses"]
    assert "--leave-one-out" in command


def test_a_quick_experiment_has_a_separate_folder(tmp_path):
    config = write_experiment(tmp_path, '[prune]\nmethods = ["count", "probability"]\nsizes = 0.5\n')
    outcome = run_inside("experiment", config, "--quick", "-o", tmp_path / "there", "-q")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["quick"]
    assert list(frames_of(tmp_path / "there" / "quick")) == ["contests", "pruning", "surprises"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sizes", "size", "experiment.toml: unknown key prune.size; did you mean sizes?"),
        ("0.6", "6", "experiment.toml: prune.sizes: holds 6; a size is a share of the entries"),
        ('"count"', '"cuont"', "experiment.toml: prune.methods: unknown criterion 'cuont'; did you mean count?"),
        ("moses.ini", "noses.ini", "experiment.toml: moses.ini: there is no file "),
    ],
)
def test_errors_are_one_line(tmp_path, old, new, message):
    config = write_experiment(tmp_path, PRUNE)
    config.write_text(config.read_text().replace(old, new, 1))
    outcome = run_inside("experiment", config)
    assert outcome.code == 1
    assert message in outcome.message
    assert not (tmp_path / "out").exists()


def test_a_development_set_from_the_training_set(tmp_path):
    config = write_experiment(tmp_path, '[prune]\nmethods = ["count"]\nsizes = 0.5\n')
    for side in ("src", "trg"):
        lines = (tmp_path / f"train.{side}").read_text().splitlines(keepends=True)
        (tmp_path / f"dev.{side}").write_text("".join(lines[:10]) + "x\n")
    outcome = run_inside("experiment", config, "-q")
    assert outcome.code == 0
    assert outcome.message == (
        "phrasetool: warning: 10 of 11 sentence pairs of the development set are in the training set"
    )


def test_unrelated_development_sets(tmp_path):
    config = write_experiment(tmp_path, '[prune]\nmethods = ["count"]\nsizes = 0.5\n')
    source, target = ((tmp_path / f"dev.{side}").read_text() for side in ("src", "trg"))
    for changed, text, message in [
        ("src", "".join(f"x{word}\n" for word in range(source.count("\n"))), "expected at least 30.0 %"),
        ("trg", "zz yy xx vv uu tt ss rr qq\n" * target.count("\n"), "its lines share no more words"),
    ]:
        (tmp_path / "dev.src").write_text(source)
        (tmp_path / "dev.trg").write_text(target)
        (tmp_path / f"dev.{changed}").write_text(text)
        outcome = run_inside("experiment", config, "-q")
        assert outcome.code == 1
        assert message in outcome.message
        assert outcome.message.endswith("; --force continues anyway")
        assert not (tmp_path / "out" / "report.html").exists()
    outcome = run_inside("experiment", config, "-q", "--force")
    assert outcome.code == 0
    words, bleu = outcome.err.splitlines()
    assert f"warning: {tmp_path / 'dev.trg'}: {message}" in words
    assert "warning: " in bleu
    assert "with the whole table reaches BLEU " in bleu


def save_mismatched_model(folder):
    """Save a model that knows no word of the table."""
    words = [b"<unk>", b"ny", b"my", b"hy"]
    sides = [random_parameters(len(words), 6, seed) for seed in (1, 2)]
    BilingualModel(Vocabulary(words), Vocabulary(words), *sides, Rae()).save(folder)


def test_a_mismatched_model(tmp_path):
    config = write_experiment(tmp_path, '[prune]\nmethods = ["semantic"]\nsizes = 0.5\n')
    save_mismatched_model(tmp_path / "model")
    outcome = run_inside("experiment", config, "-q")
    assert outcome.code == 1
    assert f"table.gz: the model {tmp_path / 'model'} does not match: it knows 0.0% of" in outcome.message
    assert outcome.message.endswith("; name another model, or continue with --force")
    assert not (tmp_path / "out").exists()
    outcome = run_inside("experiment", config, "-q", "--force")
    assert outcome.code == 0, outcome.err
    assert "warning: " in outcome.message
    assert (tmp_path / "out" / "report.html").exists()


def test_the_development_set_is_checked_first(tmp_path):
    config = write_experiment(tmp_path, '[prune]\nmethods = ["semantic"]\nsizes = 0.5\n')
    source = (tmp_path / "dev.src").read_text()
    (tmp_path / "dev.src").write_text("".join(f"x{word}\n" for word in range(source.count("\n"))))
    outcome = run_inside("experiment", config, "-q")
    assert outcome.code == 1
    assert "expected at least 30.0 %" in outcome.message
    assert not (tmp_path / "out").exists()
    outcome = run_inside("experiment", config, "-q", "--force")
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("expected at least 30.0 %") == 1


def test_help_has_the_keys():
    outcome = run_inside("experiment", "--help")
    assert outcome.code == 0
    for key in (b"[data.bitext]", b"tuning_seeds", b"keep_top", b"examples/experiments/demo.toml"):
        assert key in outcome.out


BITEXT = f"""\
output = "out"
samples = 20
{DATA}[build]
lm_order = 2
[model]
dimension = 4
iterations = 1
options.batch_size = 32
options.vectors = "random"
[prune]
methods = ["composition+semantic", "significance"]
sizes = 0.5
[neighbours]
phrases = ["a", "v"]
count = 2
pretrain_iterations = 1
"""


def test_from_a_bitext(tmp_path):
    """Each step is run once, by a command of phrasetool."""
    write_experiment(tmp_path)
    rules = dict(zip("abcde", "vwxyz", strict=True))
    for name in ("train", "dev", "one"):
        text = (tmp_path / f"{name}.src").read_text()
        (tmp_path / f"{name}.trg").write_text(text.translate(str.maketrans(rules)))
    config = tmp_path / "bitext.toml"
    config.write_text(BITEXT)
    outcome = run_outside("experiment", config, "--threads", "2", "--force")
    assert outcome.code == 0, outcome.err
    out = tmp_path / "out"
    frames = frames_of(out)
    assert list(frames) == ["contests", "histogram", "map", "neighbours", "pruning", "surprises"]
    assert set(frames["neighbours"].model) == {"RAE", "RAE+IN-BATCH"}
    steps = {"lm", "align", "extract", "moses-ini", "tune", "force-decode", "train-rae", "train-n4", "scores-n4"}
    facts = json.loads((out / "experiment.json").read_text())
    assert set(facts["commands"]) == steps
    assert facts["commands"]["extract"].startswith("phrasetool extract ")
    assert all(facts["seconds"][f"build: {step}"] > 0 for step in steps)
    outcome = run_inside("experiment", config, "--force")
    assert outcome.code == 0
    assert ": done in" not in outcome.err
    assert_same_frames(frames_of(out), frames, ())


def test_a_step_that_fails(tmp_path):
    config = write_experiment(tmp_path)
    config.write_text(BITEXT)
    text = (tmp_path / "train.src").read_text()
    (tmp_path / "train.src").write_text(text.replace("\n", "\n\n", 1))
    (tmp_path / "train.trg").write_text((tmp_path / "train.trg").read_text() + "x\n")
    outcome = run_inside("experiment", config, "--force", "-q", "--threads", "1")
    assert outcome.code == 1
    assert "train.src:2: the sentence is empty" in outcome.message
    assert "(step align)" in outcome.message


@pytest.mark.parametrize(("options", "seed"), [((), 1), (("--seed", "7"), 7), (("--seed", "7", "--quick"), 7)])
def test_the_seed_of_the_command_line_is_used(tmp_path, monkeypatch, options, seed):
    from moses_compat.experiments import experiment

    seeds = []
    monkeypatch.setattr(experiment, "run_experiment", lambda config, *_: seeds.append(config.seed) or {})
    outcome = run_inside("experiment", write_experiment(tmp_path / "e", "\n[neighbours]\nphrases = ['a']\n"), *options)
    assert (outcome.code, seeds) == (0, [seed]), outcome.err


def test_an_unwritable_output_is_detected_first(tmp_path):
    config = write_experiment(tmp_path / "e", "\n[neighbours]\nphrases = ['a']\n")
    (tmp_path / "file").write_text("")
    outcome = run_inside("experiment", config, "-o", tmp_path / "file", "-q")
    assert (outcome.code, outcome.message) == (
        1,
        f"phrasetool: {tmp_path / 'file'}: is a file, expected a folder to write to",
    )
