import json

import pytest

from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.settings import SIZES
from tests.commands import read, run_inside, write
from tests.syntax_models import FAST, toy_lines

OPTIONS = [argument for name, value in FAST.items() for argument in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture
def bitext(tmp_path):
    files = [
        write(tmp_path / f"toy.{language}", "".join(line + "\n" for line in lines).encode())
        for language, lines in zip(("en", "de"), toy_lines(80), strict=True)
    ]
    return ("--language-bitext", "en", files[0], "de", files[1])


def train(*arguments):
    return run_inside("train", "syntax", "--threads", 1, *arguments)


def test_train_inspect_and_continue_training(bitext, toy_tagger_folder, tmp_path):
    outcome = train(
        *bitext, "--tagger", toy_tagger_folder, *OPTIONS, "-o", tmp_path / "m", "--json", tmp_path / "j.json"
    )
    assert outcome.code == 0, outcome.err
    model = SyntaxModel.load(tmp_path / "m")
    assert f"{model.training['examples']:,} examples, 8 more as the development set; 330 pieces" in outcome.err
    assert "epoch 3/3: loss " in outcome.err
    assert f"saved {model.signature} to {tmp_path / 'm'}" in outcome.err
    assert [line["epoch"] for line in json.loads((tmp_path / "j.json").read_text())["log"]] == [1, 2, 3]
    assert model.training["bitexts"] == [list(map(str, bitext[1:]))]

    shown = run_inside("inspect", tmp_path / "m", "--json", tmp_path / "i.json")
    assert "  languages      en, de\n" in shown.out.decode()
    assert "  targets        en, de\n" in shown.out.decode()
    assert json.loads((tmp_path / "i.json").read_text())["shape"]["units"] == FAST["units"]

    sizes = [("--batch-size", 8), ("--epochs", 1), ("--min-length", 1), ("--start", tmp_path / "m")]
    options = [argument for pair in sizes for argument in pair]
    again = train(*bitext, "--tagger", toy_tagger_folder, *options, "-o", tmp_path / "n", "--no-own-language")
    assert again.code == 0, again.err
    continued = SyntaxModel.load(tmp_path / "n")
    training = continued.training
    assert {name: training[name] for name in SIZES} == {name: getattr(continued.shape, name) for name in SIZES}
    assert (training["start"], training["own_language"]) == (model.signature, False)
    assert training["examples"] < model.training["examples"]
    refused = train(*bitext, "--tagger", toy_tagger_folder, *options, "--units", 3, "-o", tmp_path / "o")
    assert (refused.code, "the model of --start decides --units; leave it out" in refused.err) == (2, True)


def test_sentences_of_too_many_pieces_are_counted(bitext, toy_tagger_folder, tmp_path):
    """The encoder reads four pieces per word of the longest training sentence, and keeps this limit with --start."""
    for file in bitext[2::2]:
        file.write_bytes(read(file) + b" ".join([b"qxzj" * 20] * 8) + b"\n")
    arguments = (*bitext, "--tagger", toy_tagger_folder, "--epochs", 1, "--min-length", 1)
    outcome = train(*arguments, *OPTIONS, "--max-length", 9, "-o", tmp_path / "m")
    assert outcome.code == 0, outcome.err
    longest = SyntaxModel.load(tmp_path / "m").shape.longest
    message = f"2 sentences of more than {longest} pieces, the most that the encoder reads, are left out"
    assert message in outcome.err
    again = train(*arguments, "--start", tmp_path / "m", "--max-length", 90, "-o", tmp_path / "n")
    assert (again.code, message in again.err) == (0, True), again.err


def test_texts_without_translations_are_learnt_with_their_own_tags(bitext, toy_tagger_folder, tmp_path):
    arguments = ("--language-text", "de", bitext[4], "--language-text", "en", bitext[2], "--tagger", toy_tagger_folder)
    outcome = train(*arguments, *OPTIONS, "-o", tmp_path / "m")
    assert outcome.code == 0, outcome.err
    model = SyntaxModel.load(tmp_path / "m")
    assert model.languages == model.targets == ("de", "en")
    assert sum(model.training["pairs"].values()) == model.training["examples"]
    assert set(model.training["pairs"]) == {"de-de", "en-en"}
    assert model.training["texts"] == [list(map(str, arguments[1:3])), list(map(str, arguments[4:6]))]
    combined = train(*bitext, *arguments, *OPTIONS, "-o", tmp_path / "n")
    assert combined.code == 0, combined.err
    # Texts of the bitext are also learnt with their own tags.
    assert SyntaxModel.load(tmp_path / "n").training["pairs"]["en-de"] > 0
    unknown_language = train(
        "--language-text", "xx", bitext[2], "--tagger", toy_tagger_folder, *OPTIONS, "-o", tmp_path / "o"
    )
    assert (
        unknown_language.code,
        "--language-text: unknown language 'xx'; the tagger knows en, de" in unknown_language.err,
    ) == (2, True)
    contradiction = train(*arguments, "--no-own-language", *OPTIONS, "-o", tmp_path / "o")
    assert (contradiction.code, "leave out --no-own-language" in contradiction.err) == (2, True)
    empty = tmp_path / "empty"
    empty.write_text("The cat\n\nThe dog\n")
    empty_line = train("--language-text", "en", empty, "--tagger", toy_tagger_folder, *OPTIONS, "-o", tmp_path / "o")
    assert (empty_line.code, f"{empty}:2: " in empty_line.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tagger", "t"), "learns from bitexts; name one with --language-bitext LANG FILE LANG FILE"),
        (("--language-bitext", "en", "a", "de", "b"), "Missing option '--tagger'"),
        (
            ("--language-bitext", "en", "a", "en", "b", "--tagger", "t"),
            "--language-bitext: both sides are 'en'; expected two languages",
        ),
        (
            ("--language-bitext", "e n", "a", "de", "b", "--tagger", "t"),
            "--language-bitext: 'e n' is not a language code",
        ),
        (
            ("--language-bitext", "en", "-", "de", "-", "--tagger", "t"),
            "only one input can be standard input",
        ),
        (
            ("file", "--tagger", "t"),
            "Got unexpected extra argument (file)",
        ),
        (("--treebank", "en", "a"), "--treebank is for `train tagger`"),
        (
            ("--language-bitext", "en", "a", "de", "b", "--tagger", "t", "--dropout", "1"),
            "dropout is 1.0, expected at least 0",
        ),
    ],
)
def test_invalid_usage(arguments, said, tmp_path):
    outcome = train(*arguments, "-o", tmp_path / "m")
    assert (outcome.code, said in outcome.err) == (2, True), outcome.err
    assert not (tmp_path / "m").exists()


def test_bad_inputs(bitext, toy_tagger_folder, tmp_path):
    tagger = ("--tagger", toy_tagger_folder)
    files = bitext[2], bitext[4]
    unknown_languages = train("--language-bitext", "ja", files[0], "ko", files[1], *tagger, "-o", tmp_path / "m")
    assert unknown_languages.code == 2
    assert "unknown languages 'ja' and 'ko'; the tagger knows en, de" in unknown_languages.err
    short = write(tmp_path / "short", b"a b c\n")
    uneven = train("--language-bitext", "en", files[0], "de", short, *tagger, "-o", tmp_path / "m", "-q")
    assert (uneven.code, "short" in uneven.message) == (1, True)
    empty = write(tmp_path / "empty", b"a b c\n\nb\n")
    empty_line = train("--language-bitext", "en", empty, "de", short, *tagger, "-o", tmp_path / "m", "-q")
    assert (empty_line.code, f"{empty}:2: the line is empty" in empty_line.message) == (1, True), empty_line.err
    few = write(tmp_path / "few", b"d e f\n")
    too_few_pairs = train("--language-bitext", "en", short, "de", few, *tagger, "-o", tmp_path / "m", "-q")
    assert (too_few_pairs.code, "too few pairs" in too_few_pairs.message) == (1, True)
    too_few_pieces = train(*bitext, *tagger, "--pieces", 20, "-o", tmp_path / "m", "-q")
    assert (too_few_pieces.code, "20 pieces are too few for the characters" in too_few_pieces.message) == (1, True), (
        too_few_pieces.err
    )
