"""`phrasetool improve`: steps, figures, interruptions and errors."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from moses_compat.corpora.texts import read_text_lines
from moses_compat.engine.model import MosesModel
from moses_compat.experiments import improve as module
from moses_compat.experiments.build_commands import shown_path
from moses_compat.experiments.improve import STEPS, TRANSLATOR
from moses_compat.experiments.settings import TextPair
from moses_compat.ini.reading import read_moses_ini
from moses_compat.tables.blocks import count_entries
from phrasetool.smt.evaluation.metrics import evaluate
from phrasetool_cli.commands import improve as command
from phrasetool_cli.main import cli
from tests.commands import read, run_inside, write

pytestmark = pytest.mark.slow
# Files that a repeated run must reproduce byte by byte.
RESULTS = ("moses.ini", "phrase-table.gz", "reordering-table.gz", "steps/annotated.gz", "steps/3.test")


# A translator that trains in seconds and distinguishes hypotheses of a sentence from those of other sentences.
SMALL_TRANSLATOR = (
    "--loss", "cross-entropy", "--epochs", "6", "--word-units", "32", "--units", "32", "--dimension", "32",
    "--learning-rate", "0.01", "--device", "cpu",
)  # fmt: skip
SENTENCES = 51


@pytest.fixture(scope="module")
def engine(demo_files, tmp_path_factory):
    """Return a copy of the demo's folder of model and texts, with half of the sentences for tuning and testing."""
    folder = tmp_path_factory.mktemp("engine") / "engine"
    shutil.copytree(demo_files / "demo" / "engine", folder)
    for path in (folder / f"{name}.{side}" for name in ("dev", "test") for side in ("zh", "en")):
        write(path, b"".join(read(path).splitlines(keepends=True)[:SENTENCES]))
    return folder


def arguments(engine, output, *options):
    texts = {name: (engine / f"{name}.zh", engine / f"{name}.en") for name in ("train", "dev", "test")}
    return [
        "improve", "--moses-ini", engine / "moses.ini", "--train", *texts["train"], "--dev", *texts["dev"], "--test",
        *texts["test"], "--threads", "2", "-o", output, *options,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def improved(engine, tmp_path_factory):
    """Run all steps, pruning to a quarter of the entries; return the folder and the outcome."""
    folder = tmp_path_factory.mktemp("improve") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TRANSLATOR", SMALL_TRANSLATOR)
        outcome = run_inside(*arguments(engine, folder, "--size", "25%", "--json", folder.parent / "figures.json"))
    assert outcome.code == 0, outcome.err
    return folder, outcome


def test_remaining_time_follows_the_pace_of_finished_commands():
    now = [0.0]
    expected = {"a": 60.0, "b": 120.0, "c": 0.5, "d": 240.0}
    forecast = module.Forecast(expected, threads=2, clock=lambda: now[0])
    assert forecast.minutes == pytest.approx(420.5 / 2 / 60)
    # A short command does not change the pace.
    assert forecast.end("c", 50.0) == "; about 4 minutes left"
    # Twice as long as expected: 360 s become 720 s, on two threads 6 minutes.
    assert forecast.end("a", 2 * 60.5 - 50.0) == "; about 6 minutes left"
    # The elapsed time of a running command is subtracted: 480 s less 240.
    forecast.begin("d")
    now[0] = 240.0
    assert forecast.end("b", 240.0) == "; about 2 minutes left"
    # The remaining time of an overdue command is 0, not negative.
    now[0] = 1000.0
    assert forecast.minutes == 0
    assert forecast.end("d", 1000.0) == ""


def test_the_remaining_time_is_shown_after_each_command_but_the_last(improved):
    lines = [line for line in improved[1].err.splitlines() if ": done in " in line]
    assert all(" s; about " in line and line.endswith(" minutes left") for line in lines[:-1])
    assert lines[-1].endswith(" s")


def test_each_step_has_its_figures(improved, engine):
    """The figures are those of `evaluate` and of the files."""
    folder, outcome = improved
    figures = json.loads((folder.parent / "figures.json").read_text())
    assert figures["steps"] == json.loads((folder / "improve.json").read_text())["steps"]
    names = ["given model", "+ entries", "+ columns", "+ pruning", "+ reranking"]
    assert [step["step"] for step in figures["steps"]] == names
    truth = read_text_lines(str(engine / "test.en"))
    translations = [read_text_lines(str(folder / "steps" / f"{i}.test")) for i in range(4)]
    translations.append(read_text_lines(str(folder / "steps" / "reranked.test")))
    (report,) = evaluate(translations, [truth], metrics=("bleu",))
    for step, system in zip(figures["steps"], report.systems, strict=True):
        assert step["bleu"] == pytest.approx(system.score, abs=1e-3)
        interval = (step["gain_low"], step["gain"], step["gain_high"])
        if system.difference is None:
            assert interval == (None, None, None)
        else:
            expected = (system.difference_low, system.difference, system.difference_high)
            assert interval == pytest.approx(expected, abs=2e-3)
        row = next(line for line in outcome.out.decode().splitlines() if line.startswith(step["step"]))
        assert f"{step['entries']:,}" in row
        assert f"{step['bleu']:.2f}" in row
    entries = [count_entries(str(folder / "steps" / f"{name}.gz")) for name in ("augmented", "annotated")]
    assert [step["entries"] for step in figures["steps"]] == [
        count_entries(str(engine / "phrase-table.gz")), *entries, *[count_entries(str(folder / "phrase-table.gz"))] * 2
    ]  # fmt: skip
    assert figures["steps"][3]["entries"] <= 0.25 * figures["steps"][2]["entries"]
    assert f"BLEU on the test set ({SENTENCES} sentences)" in outcome.out.decode()
    assert "minutes on 2 threads" in outcome.err
    assert f"{SENTENCES} sentences are few to tune on" in outcome.err


def test_the_printed_commands_reproduce_the_translations(improved, engine, tmp_path, monkeypatch):
    """The printed commands give the translations that were evaluated."""
    folder, result = improved
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "new.source", read(engine / "test.zh"))
    commands = json.loads((folder / "improve.json").read_text())["commands"]
    for line in commands:
        assert f"  {line}\n" in result.out.decode()
        assert run_inside(*line.split()[1:], "-q").code == 0
    assert read(tmp_path / "new.first") == read(folder / "steps" / "3.test")
    assert read(tmp_path / "new.target") == read(folder / "steps" / "reranked.test")
    ini = read_moses_ini(str(folder / "moses.ini"))
    tables = [feature.arguments["path"] for feature in ini.features if feature.arguments.get("path", "").endswith("gz")]
    assert {os.path.dirname(path) for path in tables[:2]} == {str(folder)}


def test_reranking_alone_uses_the_given_ini(engine, tmp_path, monkeypatch):
    """The printed commands name the given ini, because no other one is written."""
    monkeypatch.setattr(module, "TRANSLATOR", SMALL_TRANSLATOR)
    monkeypatch.chdir(tmp_path)
    steps = "augment,columns,prune,tune,forced-decoding,model"
    outcome = run_inside(*arguments(engine, tmp_path / "out", "--without", steps))
    assert outcome.code == 0, outcome.err
    write(tmp_path / "new.source", read(engine / "test.zh"))
    for line in json.loads((tmp_path / "out" / "improve.json").read_text())["commands"]:
        assert run_inside(*line.split()[1:], "-q").code == 0
    assert read(tmp_path / "new.target") == read(tmp_path / "out" / "steps" / "reranked.test")


def test_a_second_run_does_nothing(improved, engine, monkeypatch):
    monkeypatch.setattr(module, "TRANSLATOR", SMALL_TRANSLATOR)
    folder, first = improved
    before = {name: os.stat(folder / name).st_mtime_ns for name in RESULTS}
    outcome = run_inside(*arguments(engine, folder, "--size", "25%"))
    assert outcome.code == 0
    assert "commands to run" not in outcome.err
    assert outcome.out == first.out
    assert {name: os.stat(folder / name).st_mtime_ns for name in RESULTS} == before


def test_files_that_the_ini_names_are_read_again_if_they_change(engine, tmp_path, monkeypatch):
    ran = []
    (path,) = MosesModel.read(str(engine / "moses.ini")).language_models
    model = write(tmp_path / "lm.gz", read(Path(path)))
    ini = write(tmp_path / "moses.ini", read(engine / "moses.ini").replace(path.encode(), bytes(model)))

    def make(runner, chains):
        for step in itertools.chain(*chains):
            if not runner.store.is_done(step):
                ran.append(step.name)
                for path in map(Path, map(runner.store.path, step.outputs)):
                    path.parent.mkdir(exist_ok=True)
                    write(path, b"")
                runner.store.remember(step, done=True)

    monkeypatch.setattr(module.CommandRunner, "make", make)
    monkeypatch.setattr(module, "_result", lambda request, plan, store: module.ImproveResult("test", SENTENCES))
    dev = TextPair(str(engine / "dev.zh"), str(engine / "dev.en"))
    train = TextPair(str(engine / "train.zh"), str(engine / "train.en"))
    request = module.ImproveRequest(str(ini), train, dev, str(tmp_path / "out"), force=True)
    module.improve(request, [])
    every = ran.copy()
    assert {"translate-0", "annotate", "tune-columns", "prune", "train-translator", "rerank"} <= set(every)
    module.improve(request, [])
    assert ran == every
    # The ini itself stays the same.
    write(model, read(model) + b"\n")
    module.improve(request, [])
    assert ran == [*every, *(name for name in every if name != "train-translator")]


def test_a_run_that_is_killed_three_times_ends_with_the_same_bytes(improved, engine, tmp_path):
    code = "import sys; from phrasetool_cli.main import main; main(sys.argv[1:])"
    out, finished = tmp_path / "out", improved[0]
    command = [
        sys.executable,
        "-c",
        code,
        *map(str, arguments(engine, out, "--size", "25%", "--without", "rerank")),
    ]
    for step in ("force-decode", "tune-columns", "prune"):
        # A separate process group, so that the commands of the run are killed with it.
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while process.poll() is None and step not in _started(out):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    outcome = run_inside(*command[3:])
    assert outcome.code == 0, outcome.err
    for name in RESULTS:
        assert read(out / name).replace(bytes(out), bytes(finished)) == read(finished / name), name


def _started(folder):
    """Return the commands that a run has started."""
    record = folder / "commands.json"
    return json.loads(record.read_text()) if record.exists() else {}


def test_steps_are_left_out(engine, tmp_path):
    """Tuning alone changes only the weights; pruning alone changes only the table."""
    without = "forced-decoding,model,augment,columns,rerank"
    outcome = run_inside(*arguments(engine, tmp_path / "tuned", "--without", without + ",prune"))
    assert outcome.code == 0, outcome.err
    assert [line.split("  ")[0] for line in outcome.out.decode().splitlines()[3:5]] == ["given model", "tuned"]
    assert not (tmp_path / "tuned" / "phrase-table.gz").exists()
    outcome = run_inside(*arguments(engine, tmp_path / "pruned", "--without", without + ",tune", "--size", "0.5"))
    assert outcome.code == 0, outcome.err
    table = read(engine / "phrase-table.gz").splitlines()
    pruned = read(tmp_path / "pruned" / "phrase-table.gz").splitlines()
    assert len(pruned) == len(table) // 2
    assert set(pruned) < set(table)
    inis = [read_moses_ini(str(path)) for path in (
        engine / "moses.ini", tmp_path / "pruned" / "moses.ini"
    )]  # fmt: skip
    assert inis[0].weights == inis[1].weights


def test_options_reach_the_commands(engine, tmp_path):
    """Without a test set, the development set is evaluated; other texts provide the unknown words."""
    text = write(tmp_path / "text", "选举 的\n".encode())
    inputs = arguments(engine, tmp_path / "out", "--without", "forced-decoding,model,columns,tune,prune,rerank")
    index = inputs.index("--test")
    options = ("--oov-text", text, "--monolingual", text, "--seed", "7", "--force", "-v")
    outcome = run_inside(*inputs[:index], *inputs[index + 3 :], *options)
    assert outcome.code == 0, outcome.err
    assert (
        f"BLEU on the development set, which the weights were tuned on ({SENTENCES} sentences)" in outcome.out.decode()
    )
    line = json.loads((tmp_path / "out" / "commands.json").read_text())["augment"]["command"]
    shown = shown_path(str(text))
    for part in (f"--text {shown}", f"--monolingual {shown}", "--seed 7", "--force"):
        assert f" {part} " in line
    assert list(json.loads((tmp_path / "out" / "commands.json").read_text())) == [
        "translate-0", "augment", "result-ini", "translate-1"
    ]  # fmt: skip


def test_the_options_of_the_translator_are_valid(engine):
    """The default options are only parsed here; the other tests train a smaller translator."""
    with (
        cli.make_context("phrasetool", [], resilient_parsing=True) as overview,
        click.Context(cli.get_command(overview, "train"), parent=overview, info_name="train") as group,
    ):
        texts = [str(engine / f"train.{side}") for side in ("zh", "en")]
        kind = group.command.get_command(group, "translator")
        with kind.make_context("translator", [*texts, *TRANSLATOR], parent=group) as context:
            assert {"loss": "cross-entropy", "epochs": 4}.items() <= context.params.items()


def test_the_command_names_all_steps():
    assert command.STEPS == STEPS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--without", "tune"), "columns have no effect before tuning"),
        (("--without", "prune", "--size", "0.1"), "a size is given, but pruning is left out"),
        (("--without", "augment,columns,tune,prune,rerank"), "all steps that change the translations are left out"),
        (("--without", "magic"), "'magic' is not one of forced-decoding, model,"),
        (("--oov-text", "-"), "none can be standard input"),
        (("--without", "augment", "--oov-text", "TEST"), "texts for new entries are given, but augment is left out"),
        (("--test", "DEV"), "the test set is the development set"),
    ],
)
def test_refused_before_work(engine, tmp_path, options, message):
    # A copy of the development set is recognised, too.
    copies = [shutil.copy(engine / f"dev.{side}", tmp_path) for side in ("zh", "en")]
    texts = {"TEST": [engine / "test.zh"], "DEV": copies}
    options = [value for option in options for value in texts.get(option, [option])]
    outcome = run_inside(*arguments(engine, tmp_path / "out", *options))
    assert (outcome.code, message in outcome.message) == (2, True), outcome.err
    assert not (tmp_path / "out").exists()


def test_unrelated_texts_are_refused_before_work(engine, tmp_path):
    inputs = arguments(engine, tmp_path / "out")
    index = inputs.index("--dev")
    swapped = [*inputs[: index + 1], inputs[index + 2], inputs[index + 1], *inputs[index + 3 :]]
    outcome = run_inside(*swapped)
    assert outcome.code == 1
    assert not (tmp_path / "out" / "commands.json").exists()
    short = write(tmp_path / "short", b"a\n")
    outcome = run_inside(*inputs[: index + 2], short, *inputs[index + 3 :])
    assert (outcome.code, "lines" in outcome.message) == (1, True)


@pytest.mark.parametrize("name", ["dev", "test"])
def test_texts_that_cannot_be_translated_are_named_before_work(engine, tmp_path, name):
    for line, message in ((b"a\rb\n", "a carriage return in the sentence"), (b"<seg>\n", "<seg is markup to Moses")):
        text = write(tmp_path / "text", read(engine / f"{name}.zh").split(b"\n", 1)[1] + line)
        inputs = arguments(engine, tmp_path / "out")
        inputs[inputs.index(f"--{name}") + 1] = text
        outcome = run_inside(*inputs)
        assert (outcome.code, outcome.message.startswith(f"phrasetool: {text}:{SENTENCES}: {message}")) == (1, True)
        assert not (tmp_path / "out").exists()


def test_a_missing_file_is_reported_with_its_ini(engine, tmp_path):
    ini = write(tmp_path / "moses.ini", read(engine / "moses.ini").replace(b"table.gz", b"none.gz"))
    inputs = arguments(engine, tmp_path / "out")
    inputs[inputs.index("--moses-ini") + 1] = ini
    outcome = run_inside(*inputs)
    assert (outcome.code, f"{ini}: names a file that cannot be read: " in outcome.message) == (1, True), outcome.err
