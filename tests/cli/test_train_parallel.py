import json
import shutil

import numpy as np
import pytest

from phrasetool.pair_classifier.model import PairClassifierModel
from tests.commands import run_inside, write
from tests.parallel_models import FAST, bert_folder, toy_lines

OPTIONS = [argument for name, value in FAST.items() for argument in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture
def files(tmp_path):
    def bitext(name, count, seed):
        return [
            write(tmp_path / f"{name}.{side}", b"".join(line + b"\n" for line in lines))
            for side, lines in zip("st", toy_lines(count, seed), strict=True)
        ]

    return bitext("train", 300, 1), bitext("dev", 50, 2)


# Options without those of word vectors.
FOLDER_OPTIONS = [
    argument for pair in zip(OPTIONS[::2], OPTIONS[1::2], strict=True)
    if pair[0] not in ("--word-units", "--min-count") for argument in pair
]  # fmt: skip


def train(*arguments, options=OPTIONS):
    return run_inside("train", "classifier", "--threads", 1, *options, *arguments)


def test_train_inspect_and_evaluate(files, tmp_path):
    (source, target), development = files
    outcome = train(source, target, "--dev", *development, "-o", tmp_path / "m", "--json", tmp_path / "j.json")
    assert outcome.code == 0, outcome.err
    model = PairClassifierModel.load(tmp_path / "m")
    lines = [line for line in outcome.err.splitlines() if " left" not in line and "phrasetool: read" not in line]
    assert lines[0] == "phrasetool: 300 pairs; development set of 50 pairs"
    assert lines[1] == f"phrasetool: training on cpu, preset small, reads words, into {tmp_path / 'm'}"
    assert "epoch 1/3: loss " in lines[2]
    assert "; development set: P " in lines[2]
    assert lines[5].startswith("phrasetool: vectors to search by, epoch 1/2: loss ")
    assert lines[7].startswith(f"phrasetool: saved {model.signature} to ")
    document = json.loads((tmp_path / "j.json").read_text())
    assert document["signature"] == model.signature
    assert [line["epoch"] for line in document["log"]] == [1, 2, 3]
    assert model.training["source_file"] == str(source)
    again = train(source, target, "--dev", *development, "-o", tmp_path / "m", "-q")
    assert "the folder already has a finished model" in again.message

    shown = run_inside("inspect", tmp_path / "m")
    assert f"{tmp_path / 'm'}: {model.signature}" in shown.out.decode()
    assert "  length         concat" in shown.out.decode()
    assert "  source words   20 (most frequent: " in shown.out.decode()

    measured = run_inside("evaluate-model", *development, "-m", tmp_path / "m", "--json", tmp_path / "e.json")
    assert measured.code == 0, measured.err
    assert measured.out.decode().startswith(f"50 pairs, {model.signature}\n")
    assert "random, at 0.5" in measured.out.decode()
    report = json.loads((tmp_path / "e.json").read_text())
    assert report["random_half"]["f1"] == pytest.approx(model.training["development"]["f1"])
    assert report["random_best"]["threshold"] == model.thresholds["best"]


def test_phrase_pairs_and_a_share_held_out(tmp_path):
    pairs = b"".join(b"%s ||| %s\n" % pair for pair in sorted(set(zip(*toy_lines(200), strict=True))))
    outcome = train(write(tmp_path / "pairs", pairs), "-o", tmp_path / "m", "--epochs", 1)
    assert outcome.code == 0, outcome.err
    assert "pairs are held out as the development set" in outcome.err
    model = PairClassifierModel.load(tmp_path / "m")
    assert model.training["pairs_file"] == str(tmp_path / "pairs")
    assert run_inside("evaluate-model", tmp_path / "pairs", "-m", tmp_path / "m").code == 0


@pytest.mark.parametrize("options", [["--layer", "static"], ["--tune-embeddings"]])
def test_a_model_does_not_need_the_folder_of_its_embeddings(files, tmp_path, options):
    (source, target), development = files
    folder = bert_folder(tmp_path / "bert")
    arguments = [source, target, "--dev", *development, "--embeddings", f"hf:{folder}", "--epochs", 1, *options]
    outcome = train(*arguments, "-o", tmp_path / "m", "-q", options=FOLDER_OPTIONS)
    assert (outcome.code, outcome.err) == (0, "")
    shutil.rmtree(folder)
    model = PairClassifierModel.load(tmp_path / "m")
    assert model.architecture.tuned == (options == ["--tune-embeddings"])
    assert np.isfinite(model.probabilities(["saa sbb"], ["taa tbb"])).all()
    assert run_inside("inspect", tmp_path / "m").code == 0


def test_invalid_usage(files, tmp_path):
    (source, target), development = files
    folder = bert_folder(tmp_path / "bert")
    short = write(tmp_path / "short", b"taa\n")
    latin = write(tmp_path / "latin", b"saa\ns\xe9\n" + b"sbb\n" * 298)
    pickled = shutil.copytree(folder, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    repeated_pair = [write(tmp_path / f"one.{side}", line * 3) for side, line in (("s", b"saa\n"), ("t", b"taa\n"))]
    for arguments, code, message in (
        ([source, short], 1, "short:2: the file ends after 1 lines"),
        ([latin, target, "--embeddings", f"hf:{folder}"], 1, "latin:2: not UTF-8"),
        ([*repeated_pair, "--dev", *development], 1, "1 distinct pair to learn from"),
        ([source, target, "--embeddings", f"hf:{tmp_path}/none"], 1, "no such folder"),
        ([source, target, "--embeddings", f"hf:{pickled}"], 1, "may hold code or a pickle"),
        ([source, target, "--embeddings", "mean"], 2, "embeddings is 'mean', expected words, word2vec or hf:FOLDER"),
        ([source, target, "--embeddings", "hf:"], 2, "embeddings is 'hf:', expected words, word2vec or hf:FOLDER"),
        ([source, target, "--layer", "static"], 2, "--layer is for --embeddings hf:FOLDER"),
        ([source, target, "--precision", "bfloat16"], 2, "--precision is for tuned layers of an encoder"),
        ([source, target, "--characters", 0, "--parts", 5], 2, "--parts is for character n-grams; --characters is 0"),
        ([source, target, "--length", "none"], 2, "--length-units is for --length concat or shared"),
        ([source, target, "--length", "add"], 2, "--length-units is for --length concat or shared"),
        ([source, target, "--search-units", 0], 2, "--search-epochs is for search vectors; --search-units is 0"),
        (
            [source, target, "--contrast", 0, "--contrast-temperature", 3],
            2,
            "--contrast-temperature is for the contrastive loss; --contrast is 0",
        ),
        *(
            (
                [source, target, "--embeddings", "hf:bert", *more],
                2,
                f"{more[0]} is for word vectors; hf:bert has its own",
            )
            for more in (
                ("--word-units", 3),
                ("--characters", 2),
                ("--parts", 9),
                ("--hidden-words", 0.3),
                ("--min-count", 2),
                ("--vocabulary-size", 9),
            )
        ),
        (
            [source, target, "--embeddings", "hf:bert", "--layers-learning-rate", 0.1],
            2,
            "--layers-learning-rate is for tuned layers of an encoder, which --tune-embeddings trains",
        ),
        ([source, target, "--tune-embeddings"], 2, "--tune-embeddings is for --embeddings hf:FOLDER"),
        ([source, target, "--length", "yes"], 2, "length is 'yes'"),
        ([source, target, "--loss", "cosine"], 2, "--loss is for `train phrases or translator`"),
        ([source, source], 1, "is also the source file"),
        ([source, target, short], 2, "3 files were given"),
        ([source, target, "--min-pair-count", 2], 2, "--min-pair-count is for phrase pairs, which have counts"),
        (["-", "-"], 2, "only one input can be standard input"),
    ):
        options = FOLDER_OPTIONS if "--embeddings" in arguments else OPTIONS
        outcome = train(*arguments, "-o", tmp_path / "m", "-q", options=options)
        assert outcome.code == code, arguments
        assert message in outcome.err, arguments
        assert not (tmp_path / "m/config.json").exists()
    refused = run_inside("train", source, "--embeddings", "words", "-o", tmp_path / "m")
    assert (refused.code, "--embeddings is for `train classifier`" in refused.err) == (2, True)


def test_a_classifier_is_not_a_model_of_phrase_pairs(files, tmp_path, model_folder):
    (source, target), development = files
    assert train(source, target, "--dev", *development, "-o", tmp_path / "m", "-q", "--epochs", 1).code == 0
    two = run_inside("evaluate-model", source, target, "-m", model_folder)
    assert (two.code, "one file of phrase pairs" in two.err) == (2, True)
    three = run_inside("evaluate-model", source, target, source, "-m", tmp_path / "m")
    assert (three.code, "two sides of a bitext" in three.err) == (2, True)
