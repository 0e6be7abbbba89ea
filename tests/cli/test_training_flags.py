import subprocess
import sys

import pytest

from phrasetool.phrase_encoder.encoder import ENCODERS
from phrasetool.phrase_encoder.losses import OBJECTIVES
from tests.commands import clean_environment, run_inside


def help_text():
    return " ".join(run_inside("train", "--help").out.decode().split())


def test_help_names_every_loss_and_encoder_and_whose_a_flag_is():
    text = help_text()
    for name in (*OBJECTIVES, *ENCODERS):
        assert name in text
    for expected in (
        "Losses: in-batch tell the true partner",
        "Encoders: rae a recursive auto-encoder",
        "--temperature X Divisor of the cosines; at least 0.03. [default: in-",
        "--negatives X Random phrases drawn for every pair. [default: sampled 5]",
        "--learning-rate X Step size; above the default dimension matrices take smaller steps. [default: 0.006; "
        "max-margin 0.01; sampled 0.01; most-informative 0.01; ",
        "word-vector component at the start. [default: 0.3] ",
        "--word-units X Size of a word vector. [default: mean-max 128; autoencoder 128]",
        "Options of --model autoencoder: --architecture X",
    ):
        assert expected in text, text
    assert text.count("--margin X") == text.count("--heads X") == text.count("--max-length N") == 1


def test_help_loads_no_torch():
    code = (
        "import sys\nfrom phrasetool_cli.main import main\n"
        "try:\n    main(['train', '--help'])\nexcept SystemExit:\n    sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"Options of losses" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--margin", "1"), "margin belongs to the losses max-margin, sampled, most-informative"),
        (("--heads", "2"), "heads belongs to the encoder mean-max; the loss in-batch takes temperature, smoothing"),
        (("--loss", "vmf", "--negatives", "2"), "negatives belongs to the loss sampled; the loss vmf takes"),
        (("--epochs", "2"), "--epochs is for --model autoencoder"),
        (("--model", "autoencoder", "--alpha", "1"), "--alpha is for --model brae"),
        (("--model", "autoencoder", "--loss", "vmf"), "--loss is for --model brae"),
        (("--model", "autoencoder", "--min-pair-count", "2"), "--min-pair-count is for --model brae"),
        (("--model", "autoencoder", "--heads", "3"), "heads"),
        (("--model", "siamese"), "'siamese' is not one of 'brae', 'autoencoder'"),
        (("--loss", "hinge"), "'hinge' is not one of 'in-batch', 'max-margin'"),
        (("--encoder", "bert"), "'bert' is not one of 'rae', 'mean-max'"),
        (("--encoder", "mean-max", "--dimension", "30"), "4 heads cannot share 15 hidden units"),
        (("--encoder", "mean-max", "--dimension", "31"), "an even dimension"),
        (("--encoder", "mean-max", "--alpha", "0.1"), "the encoder mean-max does not reconstruct"),
        (("--freeze-encoders", "--pretrain-iterations", "1"), "frozen encoders do not learn to reconstruct"),
        (("--temperature", "0.01"), "temperature is 0.01, expected at least 0.03"),
        (("--temperature", "warm"), "'warm' is not a valid float"),
        (("--seed", "-1"), "-1 is not in the range"),
    ],
)
def test_flags_that_do_not_fit_are_bad_usage(tmp_path, arguments, message):
    done = run_inside("train", tmp_path / "pairs.gz", "-o", tmp_path / "m", *arguments)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "m").exists()


def test_a_flag_may_be_a_number_to_one_model_and_a_word_to_another():
    """Options are looked at before files, of which there is none."""
    for model, inputs, good, bad in (
        ("continuous", ("a", "b"), "2", "fixed"),
        ("masked-lm", ("a",), "2", "fixed"),
        ("brae", ("a", "--encoder", "mean-max"), "fixed", "2"),
    ):
        done = run_inside("train", "--model", model, *inputs, "--layers", good)
        assert (done.code, done.message) == (1, "phrasetool: a: No such file or directory")
        done = run_inside("train", "--model", model, *inputs, "--layers", bad)
        assert done.code == 2
        assert "layers is " in done.err
