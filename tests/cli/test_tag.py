import json

import pytest

from tests.commands import run_inside, write
from tests.toy_treebanks import FAST, toy_sentences, treebank_file


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    options = [argument for name, value in FAST.items() for argument in (f"--{name.replace('_', '-')}", value)]
    banks = [x for name in ("en", "de") for x in ("--treebank", name, treebank_file(folder / name, name, 80, 1))]
    outcome = run_inside("train", "tagger", *banks, *options, "-o", folder / "m", "--threads", 1, "-q")
    assert (outcome.code, outcome.err) == (0, "")
    return folder / "m"


def text_of(sentences):
    return "".join(" ".join(form for form, _ in sentence.tokens) + "\n" for sentence in sentences).encode()


def test_tags_do_not_depend_on_threads(tagger, tmp_path):
    sentences = toy_sentences("de", 700, 3)
    text = write(tmp_path / "t.gz", text_of(sentences))
    outputs = []
    for threads in (1, 2):
        outcome = run_inside("tag", text, "-m", tagger, "--language", "de", "--threads", threads)
        assert outcome.code == 0, outcome.err
        outputs.append(outcome.out)
    assert outputs[0] == outputs[1]
    expected = [one.as_moses("de")[1] for one in sentences]
    result = [line.split() for line in outputs[0].decode().splitlines()]
    assert list(map(len, result)) == list(map(len, expected))
    pairs = [(a, b) for one, other in zip(result, expected, strict=True) for a, b in zip(one, other, strict=True)]
    assert sum(a == b for a, b in pairs) > 0.95 * len(pairs)
    assert ("ADP+DET", "ADP+DET") in pairs


def test_formats_files_and_standard_input(tagger, tmp_path):
    sentences = toy_sentences("en", 20, 3)
    text = text_of(sentences)
    outcome = run_inside("tag", "-", "-m", tagger, "--language", "en", "--format", "factored", stdin=text)
    assert outcome.code == 0, outcome.err
    assert [word.rpartition(b"|")[0] for word in outcome.out.split()] == text.split()
    file = write(tmp_path / "t", text)
    outcome = run_inside("tag", file, "-m", tagger, "--language", "en", "--format", "conllu", "-o",
                         tmp_path / "o.conllu", "--json", tmp_path / "j.json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert json.loads((tmp_path / "j.json").read_text())["sentences"] == 20
    measured = run_inside("evaluate-model", tmp_path / "o.conllu", "-m", tagger, "--language", "en")
    assert measured.code == 0, measured.err


def test_invalid_usage(tagger, tmp_path):
    text = write(tmp_path / "t", b"a b\n\nc\n")
    outcome = run_inside("tag", text, "-m", tagger, "--language", "de", "-o", tmp_path / "o", "-q")
    assert outcome.code == 1
    assert f"{text}:2: the line is empty" in outcome.message
    outcome = run_inside("tag", text, "-m", tagger, "--language", "xx", "-o", tmp_path / "o")
    assert (outcome.code, "unknown language 'xx'; the tagger knows en, de" in outcome.err) == (2, True)
    outcome = run_inside(
        "tag", write(tmp_path / "e", b""), "-m", tagger, "--language", "de", "-o", tmp_path / "o", "-q"
    )
    assert outcome.code == 1
    assert "the file contains no text; --allow-empty continues anyway" in outcome.message
    assert not (tmp_path / "o").exists()
    outcome = run_inside("tag", text, "-m", tmp_path / "none", "--language", "de", "-q")
    assert outcome.code == 1
    assert outcome.message.endswith("no such model folder (`phrasetool train tagger --treebank LANG FILE`)")
