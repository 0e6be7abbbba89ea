import json
import re

import pytest
import sacrebleu

from phrasetool.autoencoder.model import AutoencoderModel
from tests.cli.conftest import SENTENCES
from tests.commands import read, run_inside, write


def reconstruct(*arguments, **options):
    """Run `reconstruct` successfully, and return its standard output."""
    outcome = run_inside("reconstruct", *arguments, "--threads", 1, **options)
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    return outcome.out.decode()


def figures(*arguments, **options):
    return json.loads(reconstruct(*arguments, "--json", **options))


def test_memorised_texts_are_reconstructed_with_their_escapes(text, autoencoder, tmp_path):
    result = figures(text, "-m", autoencoder, "-o", tmp_path / "back.gz", "--by-length")
    reconstructed = read(tmp_path / "back.gz").decode()
    expected = read(text).decode()
    assert result["exact"] > 50
    assert result["bleu"] > 70
    assert reconstructed.count("&apos;s") > 0.7 * expected.count("&apos;s")
    assert "'" not in reconstructed
    lines = reconstructed.splitlines(), expected.splitlines()
    assert result["texts"] == len(lines[0]) == len(lines[1])
    assert result["exact"] == round(100 * sum(a == b for a, b in zip(*lines, strict=True)) / len(lines[0]), 4)
    assert result["words"] == len(expected.split())
    assert result["unknown_words"] == 0
    assert result["dimension"] == 96
    assert result["signature"] == AutoencoderModel.load(autoencoder).signature
    groups = [(group["from"], group["to"], group["texts"]) for group in result["by_length"]]
    assert groups == [(1, 5, 4), (6, 10, 24), (11, 15, 2)]


def test_scores_equal_those_of_evaluate(text, autoencoder, tmp_path):
    file = write(tmp_path / "other", "".join(f"{line} dog\n" for line in SENTENCES).encode())
    result = figures(file, "-m", autoencoder, "-o", tmp_path / "back")
    lines = [path.read_text().splitlines() for path in (tmp_path / "back", file)]
    expected = sacrebleu.corpus_bleu(lines[0], [lines[1]], tokenize="none", force=True).score
    assert result["bleu"] == round(expected, 4)
    assert 0 < result["bleu"] < 95
    evaluation = json.loads(run_inside("evaluate", tmp_path / "back", "-r", file, "--metrics", "bleu", "--json").out)
    assert round(evaluation["metrics"][0]["systems"][0]["score"], 4) == result["bleu"]
    assert result["bleu_signature"] == evaluation["metrics"][0]["signature"].replace("|bs:1000|seed:12345", "")
    assert 0 < result["rouge_2"] < result["rouge_1"] < 100


def test_unknown_words_are_not_reconstructed(autoencoder, tmp_path):
    path = write(tmp_path / "new", b"a zebra\na cat\n")
    result = figures(path, "-m", autoencoder, "-o", tmp_path / "back")
    assert result["unknown_words"] == 1
    assert result["exact"] <= 50
    assert "zebra" not in (tmp_path / "back").read_text()


def test_readable_output(text, autoencoder):
    lines = reconstruct(text, "-m", autoencoder).splitlines()
    words = len(read(text).split())
    assert lines[0] == f"30 texts of {words} words, 0.0% of them unknown to the model, from 96 numbers each"
    assert lines[1].split() == ["words", "texts", "BLEU", "ROUGE-1", "ROUGE-2", "word", "for", "word"]
    assert re.fullmatch(r" +all +30 +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d %", lines[2])
    assert lines[3].startswith("BLEU: nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:")
    assert len(lines) == 4
    by_length = reconstruct(text, "-m", autoencoder, "--by-length").splitlines()
    assert by_length[:3] + by_length[-1:] == lines
    assert [line.split()[0] for line in by_length[3:-1]] == ["1-5", "6-10", "11-15"]


def test_reconstructions_on_standard_output(text, autoencoder, tmp_path):
    figures(text, "-m", autoencoder, "-o", tmp_path / "back")
    outcome = run_inside("reconstruct", "-", "-m", autoencoder, "-o", "-", "--limit", 3, "-q", stdin=read(text))
    assert outcome.out.splitlines() == (tmp_path / "back").read_bytes().splitlines()[:3]
    assert outcome.err.startswith("3 texts of ")


def test_bytes_that_are_not_utf8(autoencoder, tmp_path):
    path = write(tmp_path / "latin", b"a caf\xe9\na cat\n")
    assert figures(path, "-m", autoencoder)["unknown_words"] == 1


def test_words_that_sacrebleu_splits(autoencoder, tmp_path):
    path = write(tmp_path / "odd", "a cat\u00a0dog\na cat\n".encode())
    outcome = run_inside("reconstruct", path, "-m", autoencoder, "-q", "--json")
    assert "warning: 1 words of" in outcome.err
    assert "contain white space other than spaces and tabs, such as U+00A0; sacrebleu splits them there" in outcome.err
    assert json.loads(outcome.out)["words"] == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a cat\n\na dog\n", "text:2: the line is empty; leave out lines without a word"),
        (b"a cat\n" + b"a " * 512 + b"\n", "text:2: the line has 512 words; an autoencoder encodes at most 511"),
        (b"", "text: the file contains no text"),
    ],
)
def test_lines_that_cannot_be_encoded(autoencoder, tmp_path, data, message):
    path = write(tmp_path / "text", data)
    outcome = run_inside("reconstruct", path, "-m", autoencoder, "-o", tmp_path / "out", "-q")
    assert (outcome.code, outcome.out) == (1, b"")
    assert outcome.message.endswith(message)
    assert not (tmp_path / "out").exists()


def test_bad_requests(text, autoencoder, model_folder, tmp_path):
    outcome = run_inside("reconstruct", text, "-m", model_folder)
    assert outcome.code == 1
    assert "a model of phrase pairs; this needs an autoencoder of one language" in outcome.message
    assert run_inside("reconstruct", text, "-m", tmp_path / "none").message.count("no such model folder") == 1
    assert run_inside("reconstruct", text, "-m", autoencoder, "--limit", 0).code == 2
    assert "expected cpu, cuda or auto" in run_inside("reconstruct", text, "-m", autoencoder, "--device", "tpu").message
    outcome = run_inside("reconstruct", text, "-m", autoencoder, "-o", text)
    assert outcome.code == 1
    assert "the output is the input" in outcome.message
