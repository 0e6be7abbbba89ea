"""The kinds of models of `train`: help, options of each kind, and the options of earlier releases."""

import subprocess
import sys

import pytest

from phrasetool.options import declared_options, registered
from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool_cli.commands.train import KINDS
from tests.commands import clean_environment, run_inside, whole_commands
from tests.variants import for_each


def help_text(*arguments):
    """Return the help of `train` without line breaks, which may follow hyphens."""
    return " ".join(run_inside("train", *arguments, "--help").out.decode().split()).replace("- ", "-")


def test_help_of_a_kind_shows_its_defaults_and_those_of_loss_and_architecture():
    text = help_text("phrases")
    for name in (*OBJECTIVES, *ENCODERS):
        assert name in text
    for expected in (
        "--temperature X Divisor of the cosines; at least 0.03. [default: 0.05]",
        "--learning-rate X Step size. [default: 0.006]",
        "--count-exponent X Exponent of counts. [default: 0.7]",
    ):
        assert expected in text, text
    assert "--margin" not in text
    text = help_text("phrases", "--loss=max-margin", "--architecture", "mean-max")
    for expected in ("--margin X", "--word-units N", "--dimension N Size of a phrase vector. [default: 512]"):
        assert expected in text, text
    assert "--temperature" not in text
    text = help_text("translator", "--loss", "vmf")
    assert "--length-weight X Weight of the length of the prediction, a regulariser. [default: 0.02]" in text
    for arguments, margin in (
        ((), 0.25),
        (("--preset", "lstm"), 0.5),
        (("--preset", "lstm", "--centring=centred"), 0.25),
    ):
        assert f"--margin X Margin between true and negative partner. [default: {margin}]" in help_text(
            "translator", *arguments
        )


@pytest.mark.parametrize("kind", ["phrases", "translator"])
def test_every_loss_and_architecture_shows_all_its_options(kind):
    for option, registry, description in (("--loss", OBJECTIVES, "loss"), ("--architecture", ENCODERS, "encoder")):
        for name in registry if kind == "phrases" else ("syn-projection", "vmf"):
            shown = help_text(kind, option if kind == "phrases" else "--loss", name)
            for declared in declared_options(
                registered(registry if kind == "phrases" else OBJECTIVES, name, description)
            ):
                assert declared.split("_")[-1] in shown, (name, declared)


@pytest.mark.parametrize("kind", KINDS)
def test_help_of_a_kind_loads_no_torch_and_ends_with_an_example(kind):
    code = (
        "import sys\nfrom phrasetool_cli.main import main\n"
        f"try:\n    main(['train', '{kind}', '--help'])\nexcept SystemExit:\n    sys.exit('torch' in sys.modules)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    lines = outcome.stdout.decode().rstrip().splitlines()
    assert lines[0].startswith(f"Usage: phrasetool train {kind} ")
    assert lines[2].strip() == KINDS[kind]
    assert whole_commands(outcome.stdout.decode())[-1].startswith("phrasetool train ")


@for_each(
    ("arguments", "message"),
    [
        (("--margin", "1"), "margin belongs to the losses max-margin, sampled, most-informative"),
        (("--heads", "2"), "heads belongs to the encoder mean-max; the loss in-batch takes temperature, smoothing"),
        (("--loss", "vmf", "--negatives", "2"), "negatives belongs to the loss sampled; the loss vmf takes"),
        (("--positions", "2"), "--positions is for `train bert`"),
        (("--own-language",), "--own-language is for `train syntax`"),
        (("--alhpa", "1"), "No such option '--alhpa'"),
        (("--loss", "hinge"), "'hinge' is not one of 'in-batch', 'max-margin'"),
        (("--architecture", "bert"), "'bert' is not one of 'rae', 'mean-max'"),
        (("--architecture", "mean-max", "--dimension", "30"), "4 heads cannot share 15 hidden units"),
        (("--architecture", "mean-max", "--dimension", "31"), "an even dimension"),
        (("--architecture", "mean-max", "--alpha", "0.1"), "the encoder mean-max does not reconstruct"),
        (("--freeze-encoders", "--pretrain-epochs", "1"), "frozen encoders do not learn to reconstruct"),
        (("--freeze-encoders", "--unknown-rate", "0.9"), "--unknown-rate is for encoders that are trained"),
        (("--patience", "3"), "--patience is for --schedule constant"),
        (("--temperature", "0.01"), "temperature is 0.01, expected at least 0.03"),
        (("--temperature", "warm"), "'warm' is not a valid float"),
        (("--seed", "-1"), "-1 is not in the range"),
        (("--model", "siamese"), "unknown kind of model 'siamese'; expected one of phrases, translator"),
        (("more",), "Got unexpected extra argument (more)"),
        (("-o", "x", "bert"), "the kind of model comes first, as in `train bert ...`"),
    ],
)
def test_incompatible_options_are_refused(tmp_path, arguments, message):
    outcome = run_inside("train", tmp_path / "pairs.gz", "-o", tmp_path / "m", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert not (tmp_path / "m").exists()


def test_phrases_are_the_default_kind(tmp_path):
    assert (
        run_inside("train", "a", "--heads", "2").message == run_inside("train", "phrases", "a", "--heads", "2").message
    )
    # A folder may have the name of a kind.
    assert run_inside("train", "a", "-o", "bert").message == "phrasetool: a: No such file or directory"
    assert run_inside("train").code == 2
    assert "Kinds of models:" in run_inside("train").err


@pytest.mark.parametrize(
    ("former", "kind"),
    [("brae", "phrases"), ("continuous", "translator"), ("parallel", "classifier"), ("masked-lm", "bert")],
)
def test_former_names_of_kinds_give_a_hint(former, kind):
    for arguments in (("a", "--model", former), (f"--model={former}", "a")):
        outcome = run_inside("train", *arguments)
        assert outcome.err.splitlines() == [
            f"phrasetool: hint: `train --model {former}` is now `train {kind}`; "
            "the old form works for one more release",
            "phrasetool: error: a: No such file or directory",
        ]
    assert run_inside("train", "a", "--model", former, "-q").message == "phrasetool: a: No such file or directory"


def test_former_names_of_options_give_one_hint_each(tmp_path, monkeypatch):
    outcome = run_inside("train", "a", "--iterations", "2", "--encoder=mean-max", "--iterations", "3")
    assert outcome.err.splitlines() == [
        "phrasetool: hint: --iterations is now called --epochs; the old name works for one more release",
        "phrasetool: hint: --encoder is now called --architecture; the old name works for one more release",
        "phrasetool: error: a: No such file or directory",
    ]
    monkeypatch.chdir(tmp_path)
    for text, hinted in (("iterations = 0", True), ("epochs = 0", False), ("[train.phrases]\nepochs = 0", False)):
        (tmp_path / "phrasetool.toml").write_text(f"[train]\n{text}\n")
        outcome = run_inside("train", "a")
        assert "epochs is 0, expected at least 1" in outcome.err
        assert ("hint: phrasetool.toml: iterations of train is now called epochs" in outcome.err) == hinted
    (tmp_path / "phrasetool.toml").write_text("[train]\nmodel = 'masked-lm'\nunits = 3\n")
    assert "units is 3" in run_inside("train", "a").err
