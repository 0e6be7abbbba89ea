import json

import pytest

from phrasetool.tagger.model import TaggerModel
from phrasetool_cli.progress import ItemProgress
from tests.commands import run_inside, write
from tests.toy_treebanks import FAST, treebank_file

OPTIONS = [argument for name, value in FAST.items() for argument in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture
def banks(tmp_path):
    return [
        argument
        for language in ("en", "de")
        for argument in ("--treebank", language, treebank_file(tmp_path / f"{language}.conllu.gz", language, 60, 1))
    ]


def train(*arguments):
    return run_inside("train", "tagger", "--threads", 1, *OPTIONS, *arguments)


def test_train_inspect_and_evaluate(banks, tmp_path):
    dev = [x for name in ("en", "de") for x in ("--dev", name, treebank_file(tmp_path / f"dev.{name}", name, 20, 2))]
    outcome = train(*banks, *dev, "-o", tmp_path / "m", "--json", tmp_path / "j.json")
    assert outcome.code == 0, outcome.err
    model = TaggerModel.load(tmp_path / "m")
    assert "words of 120 sentences in en, de" in outcome.err
    assert "epoch 6/6: loss " in outcome.err
    assert f"saved {model.signature} to {tmp_path / 'm'}" in outcome.err
    assert [line["epoch"] for line in json.loads((tmp_path / "j.json").read_text())["log"]] == [1, 2, 3, 4, 5, 6]
    assert model.training["treebanks"] == [["en", str(banks[2])], ["de", str(banks[5])]]

    shown = run_inside("inspect", tmp_path / "m", "--json", tmp_path / "i.json")
    assert "  languages      en, de\n" in shown.out.decode()
    assert json.loads((tmp_path / "i.json").read_text())["languages"] == ["en", "de"]

    measured = run_inside("evaluate-model", tmp_path / "dev.de", "-m", tmp_path / "m", "--language", "de",
                          "--json", tmp_path / "e.json")  # fmt: skip
    assert measured.code == 0, measured.err
    report = json.loads((tmp_path / "e.json").read_text())
    assert report["accuracy"] == model.training["development"]["de"]["accuracy"] > 0.9
    assert f"  accuracy                 {report['accuracy']:6.1%}" in measured.out.decode()


def test_the_progress_ends_at_its_total(banks, tmp_path, monkeypatch):
    """A sentence that Moses tokenises differently is two examples."""
    ends = []

    class Recorded(ItemProgress):
        def __exit__(self, *error):
            ends.append((self._done, self._total))
            super().__exit__(*error)

    monkeypatch.setattr("phrasetool_cli.train.run.ItemProgress", Recorded)
    dev = [x for name in ("en", "de") for x in ("--dev-treebank", name, treebank_file(tmp_path / name, name, 20, 2))]
    outcome = train(*banks, *dev, "-o", tmp_path / "m", "--epochs", 2)
    assert outcome.code == 0, outcome.err
    ((done, total),) = ends
    assert done == total > 2 * 120


def test_without_a_development_set_a_share_is_held_out(banks, tmp_path):
    outcome = train(*banks, "-o", tmp_path / "m", "--epochs", 1)
    assert outcome.code == 0, outcome.err
    assert "one sentence in twenty of each language is held out" in outcome.err
    assert TaggerModel.load(tmp_path / "m").training["sentences"] == {"en": 57, "de": 57}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--treebank'"),
        (("--treebank", "en", "a", "--dev-treebank", "fr", "b"), "--dev-treebank: no --treebank of 'fr'; there are en"),
        (("--treebank", "en", "-", "--treebank", "de", "-"), "only one input can be standard input"),
        (("--treebank", "en us", "a"), "'en us' is not a language code"),
        (("--treebank", "en", "a", "pairs"), "Got unexpected extra argument (pairs)"),
        (("--treebank", "en", "a", "--alpha", 1), "--alpha is for `train phrases`"),
        (("--treebank", "en", "a", "--epochs", 0), "epochs is 0, expected at least 1"),
    ],
)
def test_invalid_usage(arguments, said, tmp_path):
    outcome = run_inside("train", "tagger", *arguments, "-o", tmp_path / "m")
    assert (outcome.code, said in outcome.err) == (2, True), outcome.err
    assert not (tmp_path / "m").exists()


def test_an_invalid_treebank_is_refused_with_its_line(tmp_path):
    file = write(tmp_path / "a.conllu", b"1\ta\t_\tNN\t_\t_\t_\t_\t_\t_\n")
    outcome = run_inside("train", "tagger", "--treebank", "en", file, "-o", tmp_path / "m", "-q")
    assert outcome.code == 1
    assert f"{file}:1: unknown part of speech 'NN'" in outcome.message


def test_options_of_taggers_are_refused_elsewhere(tmp_path):
    outcome = run_inside("train", "pairs", "--treebank", "en", "a", "-o", tmp_path / "m")
    assert (outcome.code, "--treebank is for `train tagger`" in outcome.err) == (2, True)
    outcome = run_inside("train", "classifier", "a", "b", "--dev", "c", "d", "--dev", "e", "f")
    assert (outcome.code, "--dev names one development set" in outcome.err) == (2, True)


def test_evaluation_needs_one_language(banks, tmp_path):
    assert train(*banks, "-o", tmp_path / "m", "--epochs", 1, "-q").code == 0
    for arguments, message in (
        ((banks[2],), "name the language of the treebank with --language: en, de"),
        ((banks[2], "--language", "fr"), "unknown language 'fr'; the tagger knows en, de"),
        ((banks[2], banks[5], "--language", "en"), "a tagger is measured on one treebank"),
    ):
        outcome = run_inside("evaluate-model", *arguments, "-m", tmp_path / "m")
        assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_treebanks_in_the_configuration_file(banks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    several = f"treebank = [['en', '{banks[2]}'], ['de', '{banks[5]}']]\n"
    single = f"treebank = ['en', '{banks[2]}']\n"
    for text, languages in ((several, ("en", "de")), (single, ("en",))):
        write(tmp_path / "c.toml", f"[train]\n{text}".encode())
        outcome = run_inside("--config", tmp_path / "c.toml", "train", "tagger", *OPTIONS, "--epochs", 1, "-o",
                             tmp_path / "m", "--overwrite", "--threads", 1)  # fmt: skip
        assert outcome.code == 0, outcome.err
        assert TaggerModel.load(tmp_path / "m").languages == languages
    write(tmp_path / "c.toml", b"[train]\ntreebank = ['en']\n")
    outcome = run_inside("--config", tmp_path / "c.toml", "train", "tagger", "-o", tmp_path / "m")
    assert outcome.code == 1
    assert "treebank of train: expected a list of 2 values, or several" in outcome.message
