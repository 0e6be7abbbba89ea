# ruff: noqa: E501  (rows are whole command lines)
"""Every option of `phrasetool train` changes the model: training with the option gives other parameters than without.

The options are those of the commands and those that kinds of models, losses and encoders declare.  A setting without a
row is an error.
"""

import hashlib
import re
import shlex
import shutil

import click
import numpy as np
import pytest

from phrasetool.options import declared_options
from phrasetool.pair_classifier.settings import PairClassifierSettings
from phrasetool.phrase_encoder.losses import OBJECTIVES
from phrasetool.syntax.settings import SyntaxSettings
from phrasetool.translator.settings import TranslatorSettings
from phrasetool_cli.commands.train import KINDS
from phrasetool_cli.main import cli
from phrasetool_cli.train.setting_options import SettingOption
from tests.cli.small_translator import bitext, sentences, vector_file
from tests.cli.test_every_option import ROOT, Why
from tests.commands import run_inside, write
from tests.parallel_models import bert_folder, toy_lines
from tests.syntax_models import toy_lines as syntax_lines
from tests.toy_treebanks import treebank_file
from tests.variants import for_each

pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("transformers", reason="the extra `encoders` is not installed")

PAIRS = "phrases in/pairs --dimension 8 --epochs 3 --vectors random --batch-size 16 --threads 1"
MEAN_MAX = "phrases in/pairs --architecture mean-max --dimension 8 --word-units 8 --heads 2 --epochs 2 --vectors random --batch-size 16 --threads 1"
AUTOENCODER = "autoencoder in/text --word-units 8 --hidden 8 --heads 2 --epochs 1 --min-count 1 --batch-size 16 --threads 1 --force"
# Kind, loss or encoder -> a command line that trains in seconds.
BASES = {
    "phrases": PAIRS,
    "autoencoder": AUTOENCODER,
    "translator": "translator in/train.de in/train.en --units 8 --word-units 8 --dimension 8 --epochs 1 --batch-size 16 --min-count 1 --threads 1",
    "bert": "bert in/train.de in/train.en --preset tiny --epochs 1 --vocabulary-size 60 --batch-tokens 256 --threads 1",
    "classifier": "classifier in/toy.s in/toy.t --word-units 8 --units 8 --hidden 8 --length-units 4 --batch-size 16 --epochs 1 --min-count 1 --search-units 8 --search-epochs 1 --threads 1 --force",
    "tagger": "tagger --treebank en in/bank.en --treebank de in/bank.de --buckets 499 --word-units 8 --units 6 --batch-size 8 --epochs 1 --learning-rate 0.03 --threads 1",
    "syntax": "syntax --language-bitext en in/plain.en de in/plain.de --tagger in/tagger --pieces 330 --piece-units 8 --units 6 --tag-units 4 --language-units 3 --decoder-units 6 --batch-size 8 --epochs 1 --min-length 1 --threads 1",
    "mean": "phrases in/pairs --architecture mean --dimension 8 --epochs 2 --vectors random --batch-size 16 --threads 1",
    "mean-max": MEAN_MAX,
    **{loss: f"{PAIRS} --loss {loss}" for loss in OBJECTIVES},
}  # fmt: skip
HF = "classifier in/toy.s in/toy.t --embeddings hf:in/bert --units 8 --hidden 8 --length-units 4 --batch-size 16 --epochs 1 --search-units 8 --search-epochs 1 --threads 1 --force"
TRANSFORMER = f"{BASES['translator']} --preset transformer --heads 2"
MANY_PAIRS = "phrases in/many-pairs --dimension 8 --epochs 2 --vectors random --threads 1"
PRECISION = Why("bfloat16 gives what the processor makes of it", "tests/phrasetool/nn/test_device.py")
# Owner -> setting -> a value that changes the parameters; or a pair of command lines.
ROWS = {
    "phrases": {
        "dimension": "6",
        "iterations": "2",
        "patience": (f"{PAIRS} --schedule constant --epochs 60 --learning-rate 0.1", f"{PAIRS} --schedule constant --epochs 60 --learning-rate 0.1 --patience 20"),
        "pretrain_iterations": "2",
        "alpha": "0.5",
        "learning_rate": "0.02",
        "schedule": "constant",
        "batch_size": "8",
        "optimizer": "sgd",
        "lambda_words": "0.1",
        "lambda_rec": "0.1",
        "lambda_sem": "0.1",
        "count_exponent": "0",
        "unknown_rate": "0.9",
        "vectors": "word2vec",
        "vector_scale": "0.7",
        "calibration": Why("changes cosines, not parameters", "tests/phrasetool/phrase_encoder/test_calibration.py"),
        "held_out": (MANY_PAIRS, f"{MANY_PAIRS} --held-out 0.4"),
    },
    "in-batch": {"temperature": "0.2", "smoothing": "0", "correction": "0"},
    "max-margin": {"margin": "0.001", "corruption": "uniform"},
    "sampled": {"margin": "0.1", "negatives": "2"},
    "most-informative": {"margin": "0.1", "pool_size": "4"},
    "syn-projection": {"margin": "0.1"},
    "syn-difference": {"margin": "0.1"},
    "vmf": {"concentration": "5", "length_weight": "0.5", "alignment_weight": "0.5"},
    "mean-max": {"word_units": "6", "heads": "1", "feed_forward": "3", "dropout": "0.5", "layers": "trained"},
    "mean": {"transformation": ("phrases in/pairs --architecture mean --dimension 16 --epochs 2 --source-vectors in/vectors --target-vectors in/vectors --threads 1", "phrases in/pairs --architecture mean --dimension 16 --transformation identity --source-vectors in/vectors --target-vectors in/vectors --threads 1")},
    "autoencoder": {
        "architecture": (AUTOENCODER.replace(" --heads 2", ""), AUTOENCODER.replace("--heads 2", "--architecture lstm")),
        "word_units": "6", "hidden": "6", "heads": "1", "feed_forward": "3", "dropout": "0.6",
        "learning_rate": "0.02", "batch_size": "8", "epochs": "2", "clip": "0.01", "min_count": "200",
        "vocabulary_size": "5", "max_length": "3", "precision": PRECISION,
    },
    "translator": {
        "preset": "lstm", "word_units": "6", "units": "6", "layers": "2",
        "heads": (TRANSFORMER, f"{TRANSFORMER} --heads 1"), "feed_forward": (TRANSFORMER, f"{TRANSFORMER} --feed-forward 5"),
        "dimension": "6", "centring": "plain", "unknown_vector": "negated", "dropout": "0.6", "learning_rate": "0.02",
        "schedule": (f"{BASES['translator']} --epochs 2", f"{BASES['translator']} --epochs 2 --schedule constant"),
        "batch_size": "8", "epochs": "2", "clip": "0.001", "min_count": "30", "vocabulary_size": "5", "max_length": "3",
        "precision": PRECISION,
    },
    "bert": {
        "preset": "smaller", "units": "16", "layers": "2", "heads": "1", "feed_forward": "10", "positions": "8",
        "vocabulary_size": "40", "min_count": "40", "han": ("bert in/han --preset tiny --epochs 1 --vocabulary-size 60 --batch-tokens 256 --min-count 1 --threads 1 --force", "bert in/han --preset tiny --epochs 1 --vocabulary-size 60 --batch-tokens 256 --min-count 1 --threads 1 --force --han characters"),
        "mask_share": "0.5", "dropout": "0.5", "learning_rate": "0.02", "warm_up": "0.5", "batch_tokens": "128",
        "epochs": "2", "clip": "0.01", "precision": PRECISION,
    },
    "classifier": {
        "preset": (HF, f"{HF} --preset paper"), "word_units": "6", "units": "6", "hidden": "6", "cell": "gru",
        "layer": (HF, f"{HF} --layer static"), "length": (BASES["classifier"].replace(" --length-units 4", ""), BASES["classifier"].replace("--length-units 4", "--length none")), "length_units": "3", "characters": "0", "parts": "1",
        "hidden_words": "0.9", "negatives": "2", "containment": "0", "contrast": "0", "contrast_temperature": "0.5",
        "search_units": "6", "search_epochs": "2", "dropout": "0.7", "output_dropout": "0.7", "learning_rate": "0.03",
        "layers_learning_rate": (f"{HF} --tune-embeddings", f"{HF} --tune-embeddings --layers-learning-rate 0.01"),
        "precision": PRECISION, "schedule": (f"{BASES['classifier']} --epochs 2", f"{BASES['classifier']} --epochs 2 --schedule constant"),
        "batch_size": "8", "epochs": "2", "clip": "0.001", "min_count": "30", "vocabulary_size": "5", "max_length": "3",
    },
    "tagger": {
        "buckets": "97", "word_units": "6", "units": "5", "lstm_layers": "2", "dropout": "0.7", "hidden_words": "0.9",
        "lower_cased": "1", "min_joint": "1000", "learning_rate": "0.1", "batch_size": "4", "epochs": "2", "clip": "0.01",
    },
    "syntax": {
        "preset": "paper", "pieces": "300",
        "piece_units": "6", "units": "5", "layers": "1", "tag_units": "3", "language_units": "2", "decoder_units": "5",
        "dropout": "0.7", "learning_rate": "0.02",
        "schedule": (f"{BASES['syntax']} --epochs 2", f"{BASES['syntax']} --epochs 2 --schedule constant"),
        "batch_size": "4", "epochs": "2", "clip": "0.001", "precision": PRECISION, "min_length": "5",
        "patience": Why("matters after many passes", "tests/phrasetool/syntax/test_training.py"),
    },
}  # fmt: skip
SYNTAX = BASES["syntax"]
OTHER_BITEXT = SYNTAX.replace("in/plain", "in/plain2")
# Option of the command itself -> command lines whose models differ.
OWN = {
    "--output": (PAIRS, f"{PAIRS} -o other"),
    "--architecture": (PAIRS, BASES["mean"]),
    "--embeddings": (BASES["classifier"], f"{BASES['classifier']} --embeddings word2vec"),
    "--loss": (PAIRS, f"{PAIRS} --loss cosine"),
    "--seed": (PAIRS, f"{PAIRS} --seed 2"),
    "--device": Why("there is no other device", "tests/cli/test_train.py"),
    "--threads": Why("changes speed alone", "tests/cli/test_train.py"),
    "--resume": Why("matters after an interruption", "tests/cli/test_train.py"),
    "--overwrite": Why("of a folder that holds a model", "tests/cli/test_train_refusals.py"),
    "--force": Why("of pairs that make no sense", "tests/cli/test_train_refusals.py"),
    "--treebank": (BASES["tagger"], f"{BASES['tagger']} --treebank xx in/bank.en"),
    "--language-bitext": (SYNTAX, OTHER_BITEXT),
    "--language-text": (SYNTAX, f"{SYNTAX} --language-text en in/plain2.en"),
    "--tagger": (SYNTAX, SYNTAX.replace("in/tagger", "in/tagger2")),
    "--own-language": (SYNTAX, f"{SYNTAX} --no-own-language"),
    "--decoder-dropout": (SYNTAX, f"{SYNTAX} --no-decoder-dropout"),
    "--dev-treebank": Why("chooses the best epoch", "tests/cli/test_train_tagger.py"),
    "--dev": (BASES["translator"], f"{BASES['translator']} --dev in/dev.de in/dev.en"),
    "--monolingual": (BASES["bert"], f"{BASES['bert']} --monolingual in/text"),
    "--max-length": (PAIRS, f"{PAIRS} --max-length 2"),
    "--min-pair-count": (PAIRS, f"{PAIRS} --min-pair-count 3"),
    "--start": Why("needs a trained model of syntax", "tests/cli/test_train_syntax.py"),
    "--source-text": (f"{PAIRS} --vectors word2vec", f"{PAIRS} --vectors word2vec --source-text in/train.de"),
    "--target-text": (f"{PAIRS} --vectors word2vec", f"{PAIRS} --vectors word2vec --target-text in/train.en"),
    "--source-vectors": (f"{PAIRS} --dimension 16 --vectors word2vec", f"{PAIRS} --dimension 16 --vectors word2vec --source-vectors in/vectors"),
    "--target-vectors": (f"{PAIRS} --dimension 16 --vectors word2vec", f"{PAIRS} --dimension 16 --vectors word2vec --target-vectors in/vectors"),
    "--source-autoencoder": Why("needs a trained autoencoder", "tests/cli/test_train_start.py"),
    "--target-autoencoder": Why("needs a trained autoencoder", "tests/cli/test_train_start.py"),
    "--freeze-encoders": (PAIRS, f"{PAIRS} --freeze-encoders"),
    "--tune-embeddings": (HF, f"{HF} --tune-embeddings"),
    "--json": Why("as in every command", "tests/cli/test_json_output.py"),
    "--quiet": Why("as in every command", "tests/cli/test_train.py"),
    "--verbose": Why("as in every command", "tests/cli/test_verbosity.py"),
}  # fmt: skip


def options():
    """Yield the kind of model and the option for all options of `train`."""
    with (
        cli.make_context("phrasetool", [], resilient_parsing=True) as overview,
        click.Context(cli.get_command(overview, "train"), parent=overview, info_name="train") as group,
    ):
        for kind in KINDS:
            command = group.command.get_command(group, kind)
            with click.Context(command, parent=group, info_name=kind) as context:
                yield from (
                    (kind, parameter)
                    for parameter in command.get_params(context)
                    if isinstance(parameter, click.Option)
                )


# Owner and name of a setting -> its option.
DECLARED = {
    (declared.owner or kind, declared.name): option.opts[0]
    for kind, option in options() if isinstance(option, SettingOption) for declared in option.declared
}  # fmt: skip


def own_options():
    """Return the longest spelling of each option that no settings, loss or architecture declares."""
    return {max(option.opts, key=len) for _, option in options() if not isinstance(option, SettingOption)} - {"--help"}


def test_every_setting_and_option_has_a_row():
    assert {(owner, name) for owner, rows in ROWS.items() for name in rows} == set(DECLARED)
    assert own_options() == set(OWN)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs") / "in"
    bitext(folder, "train", 80)
    bitext(folder, "dev", 10, 2)
    rng = np.random.default_rng(4)
    sides = sentences(120, 3)
    pairs = {pair for pair in zip(*sides, strict=True) if len(pair[0].split()) < 6}
    write(
        folder / "pairs",
        "".join(
            f"{s} ||| {t} ||| {rng.integers(1, 6)}\n"
            for s, t in [*sorted(pairs), ("einmal", "once"), ("nie hund", "never dog")]
        ).encode(),
    )
    write(
        folder / "many-pairs", b"".join(b"s%d s%d ||| t%d t%d\n" % (i, j, i, j) for i in range(20) for j in range(10))
    )
    write(folder / "text", "".join(line + "\n" for line in sides[1]).encode())
    vector_file(folder)
    for side, lines in zip("st", toy_lines(80), strict=True):
        write(folder / f"toy.{side}", b"".join(line + b"\n" for line in lines))
    for name, seed in (("plain", 1), ("plain2", 2)):
        for language, lines in zip(("en", "de"), syntax_lines(40, seed), strict=True):
            write(folder / f"{name}.{language}", "".join(line + "\n" for line in lines).encode())
    for language in ("en", "de"):
        treebank_file(folder / f"bank.{language}", language, 40, 5)
    characters = list("天地玄黄宇宙洪荒日月盈昃辰宿列张")
    lines = ["".join(rng.choice(characters, 6)) + " " + "".join(rng.choice(characters, 3)) for _ in range(80)]
    write(folder / "han", "".join(line + "\n" for line in lines).encode())
    bert_folder(folder / "bert")
    for name, seed in (("tagger", 1), ("tagger2", 2)):
        line = BASES["tagger"].replace("in/", f"{folder}/")
        assert run_inside("train", *shlex.split(line), "-o", folder / name, "--seed", seed, "-q").code == 0
    return folder


@pytest.fixture
def place(inputs, tmp_path, monkeypatch):
    (tmp_path / "in").symlink_to(inputs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


LEARNT = {}


def _with_folder(words):
    """Return the words with `-o model` unless they name a folder."""
    return words if "-o" in words else [*words, "-o", "model"]


def learnt(line, place):
    """Train; return digests of the learnt parameters and vocabularies, without settings, which a model also stores."""
    if line not in LEARNT:
        for path in place.iterdir():
            if path.name != "in":
                shutil.rmtree(path)
        outcome = run_inside("train", *_with_folder(shlex.split(line)), "-q")
        assert outcome.code == 0, outcome.err
        LEARNT[line] = {
            str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(place.rglob("*"))
            if path.is_file() and "in" not in path.relative_to(place).parts and path.suffix not in (".json", ".jsonl")
        }
        assert LEARNT[line]
    return LEARNT[line]


def runs(rows):
    """Return the names of the rows with command lines."""
    return [name for name, row in rows.items() if not isinstance(row, Why)]


def check_setting(owner, name, place):
    row = ROWS[owner][name]
    if not isinstance(row, tuple):
        row = BASES[owner], f"{BASES[owner]} {DECLARED[owner, name]} {row}"
    assert learnt(row[0], place) != learnt(row[1], place)


@pytest.mark.parametrize("owner", ROWS)
def test_settings_change_the_model(owner, place):
    for_each("name", runs(ROWS[owner]))(check_setting)(owner=owner, place=place)


@for_each("option", runs(OWN))
def test_an_option_changes_the_model(option, place):
    before, after = OWN[option]
    assert learnt(before, place) != learnt(after, place)


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_training_gives_the_same_model(kind, place):
    first = dict(learnt(BASES[kind], place))
    LEARNT.pop(BASES[kind])
    assert learnt(BASES[kind], place) == first


def test_the_file_of_a_reason_names_the_option():
    for rows in (OWN, *({DECLARED[owner, n]: row for n, row in r.items()} for owner, r in ROWS.items())):
        for option, row in rows.items():
            if isinstance(row, Why):
                assert row.reason, option
                text = (ROOT / row.file).read_text("utf-8") if row.file else option
                assert option in text or option[2:].replace("-", "_") in text, option


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("classifier", PairClassifierSettings), ("syntax", SyntaxSettings), ("translator", TranslatorSettings)],
)
def test_the_help_shows_the_values_of_presets(kind, settings):
    text = " ".join(run_inside("train", kind, "--help").out.decode().split())
    options = declared_options(settings)
    for preset, values in settings.preset_overrides.items():
        for name, value in values.items():
            if name in options:
                help_text, flag = options[name].metadata["help"].removesuffix("."), "--" + name.replace("_", "-")
                shown = f"{value:g}" if isinstance(value, int | float) else value
                assert re.search(rf"{flag} \S+ {re.escape(help_text)} \(preset {preset}: {shown}\)\.", text), name


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("classifier", {"--word-units": "small: 128, paper: 512", "--hidden": "small: 128, paper: 256"}),
        ("translator", {"--units": "lstm: 1024, gru: 256, transformer: 256"}),
        ("bert", {"--layers": "small: 4, smaller: 3, tiny: 1"}),
    ],
)
def test_the_help_shows_the_sizes_of_presets(kind, sizes):
    text = " ".join(run_inside("train", kind, "--help").out.decode().split())
    for flag, values in sizes.items():
        assert re.search(rf"{flag} N [\w' ]+; 0: preset \({values}\)\. \[default: 0\]", text), flag
