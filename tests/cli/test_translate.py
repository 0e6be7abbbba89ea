import json

import numpy as np
import pytest
import torch

from moses_compat.engine.n_best import read_n_best
from phrasetool.phrases import Phrases
from phrasetool.translator.model import TranslatorModel
from tests.cli.small_translator import sentences, vector_file
from tests.commands import read, run_inside, run_outside, write


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    lines = sentences(40, 5)[0]
    lines[7] = lines[20] = ""
    return write(tmp_path_factory.mktemp("text") / "text.de", "".join(line + "\n" for line in lines).encode())


def translate(text, model, *arguments, **options):
    outcome = run_inside("translate", text, "-m", model, "-q", *arguments, **options)
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    return outcome.out


def test_translations_line_by_line(text, translator, tmp_path):
    outcome = run_inside("translate", text, "-m", translator, "-o", tmp_path / "out.gz", "--json", "--threads", 1)
    result, expected = read(tmp_path / "out.gz").decode().splitlines(), sentences(40, 5)[1]
    assert len(result) == 40
    assert result[7] == result[20] == ""
    right = sum(translation == reference for translation, reference in zip(result, expected, strict=True))
    assert right > 20
    assert b"&apos;s" in read(tmp_path / "out.gz")
    document = json.loads(outcome.out)
    assert (document["sentences"], document["unknown_words"] < 20) == (40, True)
    assert document["signature"] == TranslatorModel.load(translator).signature
    assert "40 sentences translated in " in outcome.err


@pytest.mark.parametrize("beam", [1, 4])
def test_threads_and_splits_change_no_byte(text, translator, beam):
    whole = translate(text, translator, "--beam", beam, "--threads", 1)
    outcome = run_outside("translate", "-", "-m", translator, "--beam", beam, "--threads", 2, "-q", stdin=read(text))
    assert (outcome.code, outcome.out) == (0, whole)
    lines = read(text).splitlines(keepends=True)
    for size in (1, 13):
        parts = [b"".join(lines[i : i + size]) for i in range(0, len(lines), size)]
        assert b"".join(translate("-", translator, "--beam", beam, stdin=part) for part in parts) == whole


def test_the_best_translations_are_listed(text, translator, tmp_path):
    out = translate(text, translator, "--beam", 4, "--n-best-list", tmp_path / "list.gz", 3, "--device", "cpu")
    result = read_n_best(str(tmp_path / "list.gz"))
    assert result.names == (("Translator0", 1),)
    best = []
    for number, line in enumerate(out.splitlines()):
        rows = np.flatnonzero(result.sentences == number)
        # An empty line has one translation.
        assert len(rows) == (3 if line else 1)
        assert (np.diff(result.totals[rows]) <= 0).all()
        texts = [result.text(row) for row in rows.tolist()]
        assert texts[0] == line
        for row, hypothesis in zip(rows.tolist(), texts, strict=True):
            words = len(hypothesis.split()) + 1
            expected = result.totals[row] * words if line else 0
            assert result.features[row, 0] == pytest.approx(expected, rel=1e-4)
        best.append(texts[0])
    assert out == b"".join(line + b"\n" for line in best)
    outcome = run_inside("translate", text, "-m", translator, "--beam", 2, "--n-best-list", tmp_path / "l", 3)
    assert (outcome.code, "give --beam 3 or more" in outcome.message) == (2, True)
    assert "unknown device 'tpu'" in run_inside("translate", text, "-m", translator, "--device", "tpu").message


@pytest.mark.requires_cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_gives_the_same_translations(text, translator):
    assert translate(text, translator, "--device", "cuda") == translate(text, translator, "--device", "cpu")


def test_escapes(translator):
    assert translate("-", translator, stdin=b"hund 's ball\n").count(b" 's") == 1
    assert translate("-", translator, stdin=b"hund &apos;s ball\n").count(b" &apos;s") == 1
    assert translate("-", translator, "--escape", stdin=b"hund 's ball\n").count(b" &apos;s") == 1
    assert translate("-", translator, "--no-escape", stdin=b"hund &apos;s\n").count(b" 's") == 1


def test_escapes_of_copied_words(translator, tmp_path):
    model = TranslatorModel.load(translator)
    # Unknown words are read as `hund`, and predicted in place of the first word of its translation.
    model.arrays["words"][0] = model.arrays["words"][model.source_vocabulary.id(b"hund")]
    number = model.target_vocabulary.id(translate("-", translator, stdin=b"hund hund\n").split()[0])
    model.arrays["targets"][[0, number]] = model.arrays["targets"][[number, 0]]
    model.save(tmp_path / "m")

    def copied(line, *arguments):
        outcome = run_inside("translate", "-", "-m", tmp_path / "m", *arguments, stdin=line + b" " + line + b"\n")
        assert outcome.code == 0, outcome.err
        return outcome.out.split()[0]

    assert copied(b"b|c") == copied(b"b&#124;c", "--no-escape") == b"b|c"
    assert copied(b"b&#124;c") == copied(b"b|c", "--escape") == b"b&#124;c"
    assert copied(b"Q&amp;A", "--escape") == b"Q&amp;A"
    dictionary = write(tmp_path / "d", b"b|c it's\n")
    assert copied(b"b|c", "--dictionary", dictionary, "--escape") == b"it&apos;s"


def test_unknown_words_are_copied_or_looked_up(translator, tmp_path, text):
    """A translator predicts the unknown word in place of one known word; a dictionary replaces what it copies."""
    table = write(tmp_path / "table", b"nothing ||| new ||| 1\n")
    refused = run_inside("translate", text, "-m", translator, "--table", table, "-o", tmp_path / "out")
    assert (refused.code, (tmp_path / "out").exists()) == (1, False)
    model = TranslatorModel.load(translator)
    # Exchange the vectors of the unknown word and of a known word.
    model.arrays["targets"][[0, 3]] = model.arrays["targets"][[3, 0]]
    model.save(tmp_path / "m")
    word = model.target_vocabulary.words[3]
    before = translate(text, translator).split()
    after = translate(text, tmp_path / "m").split()
    assert before.count(word) > after.count(word)
    dictionary = write(tmp_path / "d", b"".join(b"%s X\n" % w for w in sorted(set(read(text).split()))))
    looked_up = translate(text, tmp_path / "m", "--dictionary", dictionary).split()
    assert looked_up.count(b"X") >= before.count(word)
    assert b"X" not in after


def test_a_table_limits_the_words(translator, tmp_path):
    table = write(tmp_path / "t.gz", b"hund ||| house ||| 1\nhund sieht ||| sees ||| 1\nmann ||| man ||| 1\n")
    out = translate("-", translator, "--table", table, "--beam", 2, stdin=b"hund sieht\nmann\n").splitlines()
    assert set(out[0].split()) <= {b"house", b"sees"}
    assert set(out[1].split()) <= {b"man"}


def test_sentences_without_a_candidate_are_counted(translator, tmp_path):
    table = write(tmp_path / "t", b"hund ||| dog ||| 1\n")
    outcome = run_inside("translate", "-", "-m", translator, "--table", table, stdin=b"hund\nmann\n\nfrau\n")
    assert outcome.out == b"dog\n\n\n\n"
    assert f"warning: {table}: 2 of 3 sentences have no candidate there; their translations are empty" in outcome.err


def test_repetitions_are_dropped(translator, tmp_path):
    table = write(tmp_path / "t", b"hund ||| dog ||| 1\n")
    kept = translate("-", translator, "--table", table, stdin=b"hund hund hund\n")
    assert kept.split().count(b"dog") > 1
    assert translate("-", translator, "--table", table, "--drop-repetitions", stdin=b"hund hund hund\n") == b"dog\n"


def test_words_that_are_not_in_the_training_data(translator, tmp_path):
    """The new word `hound` has the vector that is predicted for `hund`."""
    listed = run_inside("neighbours", "hund", "-m", translator, "-k", 1)
    assert listed.out.decode().splitlines()[1].split()[1] == "dog"
    model = TranslatorModel.load(translator)
    row, network = model.arrays["targets"][model.target_vocabulary.id(b"dog")], model.network
    encoded = network.encode(Phrases.from_lists([model.source_vocabulary.ids(b"hund")]))
    predicted = network.step(encoded, network.begin(encoded, 1), torch.tensor([-1]))[0].detach().numpy()[0]
    assert predicted @ row / np.linalg.norm(predicted) < 0.9999
    vectors = vector_file(tmp_path, hound=" ".join(f"{x:.5f}" for x in predicted))
    new = write(tmp_path / "new", b"hound\ndog\n")
    with_words = ("--new-words", new, "--target-vectors", vectors)
    assert translate("-", translator, stdin=b"hund\n").split()[:1] == [b"dog"]
    assert translate("-", translator, *with_words, stdin=b"hund\n").split()[:1] == [b"hound"]
    other_vectors = vector_file(tmp_path, words=["hound"], dog=" ".join(["1"] * 16))
    outcome = run_inside(
        "translate", "-", "-m", translator, "--new-words", new, "--target-vectors", other_vectors, stdin=b"a\n"
    )
    assert "not the vectors that the model was trained with: that of dog differs" in outcome.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"hund\n" + b"hund " * 512 + b"\n",
            "standard input:2: the sentence has 512 words; a translator reads at most 511",
        ),
        (b"hund\r\n", "standard input:1: a carriage return"),
    ],
)
def test_lines_that_cannot_be_translated(translator, data, message):
    outcome = run_inside("translate", "-", "-m", translator, stdin=data)
    assert (outcome.code, outcome.out) == (1, b"")
    assert message in outcome.message


def test_bad_requests(text, translator, model_folder, tmp_path):
    assert (
        "a model of phrase pairs; this needs a translator" in run_inside("translate", text, "-m", model_folder).message
    )
    assert run_inside("translate", text, "-m", translator, "--new-words", text).code == 2
    assert "the output is the input" in run_inside("translate", text, "-m", translator, "-o", text).message
    assert run_inside("translate", text, "-m", translator, "--beam", 0).code == 2
    outcome = run_inside("translate", text, "-m", translator, "--dictionary", tmp_path / "none")
    assert "none" in outcome.message
    outcome = run_inside("translate", "-", "-m", translator, "-q", stdin=b"lorem ipsum dolor\n" * 120)
    assert "warning: standard input: the model knows 0.0% of its 360 words" in outcome.message
    assert run_inside("translate", "-", "-m", translator, "-q", stdin=b"").out == b""


def test_inspect_and_neighbours(translator):
    outcome = run_inside("inspect", translator)
    lines = [line.split() for line in outcome.out.decode().splitlines()]
    for expected in (["cell", "gru"], ["units", "32"], ["preset", "gru"], ["loss", "syn-projection"]):
        assert expected in lines
    assert any(line[0] == "temperature" for line in lines)
    document = json.loads(run_inside("inspect", translator, "--json").out)
    assert document["architecture"]["dimension"] == 16
    assert document["words"] == {"source": 12, "target": 12}
    model = TranslatorModel.load(translator)
    assert document["numbers"] == sum(array.size for array in model.arrays.values())
    report = json.loads(run_inside("neighbours", "der hund", "-m", translator, "-k", 3, "--json").out)
    words = [[near["word"] for near in step] for step in report["predicted"]]
    assert [near[0] for near in words] == ["the", "dog", "</s>"]
    assert all(len(near) == 3 for near in words)
    cosines = [near["similarity"] for near in report["predicted"][0]]
    assert cosines == sorted(cosines, reverse=True)
    assert "a source sentence has no word" in run_inside("neighbours", "", "-m", translator).message
    assert run_inside("neighbours", "hund", "-m", translator, "--side", "source").code == 2
