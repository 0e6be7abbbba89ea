import json

import pytest

from phrasetool.autoencoder.model import AutoencoderModel
from tests.cli.conftest import SENTENCES
from tests.commands import run_inside, write


def nearest(sentence, *arguments):
    outcome = run_inside("neighbours", sentence, *arguments, "--threads", 1, "-q", "--json")
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    return json.loads(outcome.out)


def naive(model, sentence, sentences):
    """Return sentence -> cosine, computed one by one in double precision."""
    import numpy as np

    from phrasetool.autoencoder.inference import encode_texts
    from phrasetool.phrases import Phrases

    def vector(line):
        words = model.vocabulary.words
        ids = [words.index(word) if word in words else 0 for word in line.replace("&apos;", "'").encode().split()]
        return encode_texts(model, Phrases.from_lists([ids]))[0].astype(np.float64)

    query = vector(sentence)
    cosines = {}
    for line in sentences:
        encoded = vector(line)
        cosines[line.replace("&apos;", "'")] = encoded @ query / np.linalg.norm(encoded) / np.linalg.norm(query)
    return cosines


def test_sentences_by_cosine(text, autoencoder):
    sentence = "the cat &apos;s hat is red ."
    result = nearest(sentence, "-m", autoencoder, "--sentences", text, "-k", 6)
    assert result["sentence"] == sentence
    assert result["searched"] == len(SENTENCES)
    others = [line for line in SENTENCES[:-1] if line != sentence]
    expected = naive(AutoencoderModel.load(autoencoder), sentence, others)
    similarities = {row["sentence"]: row["similarity"] for row in result["nearest"]}
    assert similarities == pytest.approx(
        {line: expected[line] for line in sorted(expected, key=expected.get)[-6:]}, abs=1e-5
    )
    assert list(similarities.values()) == sorted(similarities.values(), reverse=True)
    assert any(line.startswith("the cat 's hat is") for line in similarities)


def test_the_sentence_itself_is_left_out(text, autoencoder):
    result = nearest("a dog", "-m", autoencoder, "--sentences", text, "-k", 99)["nearest"]
    assert len(result) == len(SENTENCES) - 1
    assert "a dog" not in {row["sentence"] for row in result}
    assert "two old men & a dog see the big red ball ." in {row["sentence"] for row in result}
    # A sentence that is not in the file, with an unknown word: no sentence is left out.
    assert len(nearest("a grey dog", "-m", autoencoder, "--sentences", text, "-k", 99)["nearest"]) == len(SENTENCES)


def test_sentences_with_equal_vectors_are_listed_separately(autoencoder, tmp_path):
    file = write(tmp_path / "text", b"a zebra\na zebu\na cat\n")
    (first, second) = nearest("a zebra", "-m", autoencoder, "--sentences", file)["nearest"]
    assert (first["sentence"], first["similarity"]) == ("a zebu", pytest.approx(1, abs=1e-5))
    assert second["similarity"] < 1


def test_readable_output(text, autoencoder, tmp_path):
    long = write(tmp_path / "long", b"a cat\n" + b"a " * 512 + b"\na dog\n")
    outcome = run_inside("neighbours", "a", "dog", "-m", autoencoder, "--sentences", long, "--threads", 1)
    assert outcome.code == 0
    assert outcome.message == "phrasetool: 1 lines of more than 511 words are left out"
    title, line = outcome.out.decode().splitlines()
    assert title == "nearest of 2 sentences"
    assert line.endswith("  a cat")


def test_bad_requests(text, autoencoder, model_folder, tmp_path):
    def fails(*arguments, code=1):
        outcome = run_inside("neighbours", *arguments)
        assert (outcome.code, outcome.out) == (code, b"")
        return outcome.err

    for more in ((), ("--sentences", text)):
        message = fails("a dog", "-m", model_folder, *more, "--device", "cpu", code=2)
        assert "--device is for an autoencoder" in message
    assert "with an autoencoder or a syntactic encoder, name texts with --sentences" in fails(
        "a dog", "-m", autoencoder
    )
    assert "this needs an autoencoder of one language" in fails("a dog", "-m", model_folder, "--sentences", text)
    options = ("-m", autoencoder, "--sentences")
    assert "the model knows no word of 'zebras'" in fails("zebras", *options, text)
    assert "the sentence has 512 words; an autoencoder encodes at most 511" in fails("a " * 512, *options, text)
    file = write(tmp_path / "text", b"a cat\n\n")
    assert "text:2: the line is empty" in fails("a dog", *options, file)
    assert "leave them out with --sentences" in fails("a dog", *options, text, "--side", "source", code=2)
    assert "leave them out with --sentences" in fails("a dog", *options, text, "--pairs", text, code=2)


def test_missing_training_pairs(demo_files):
    outcome = run_inside("neighbours", "do not agree", "-m", demo_files / "demo/model")
    expected = "demo-output/train.txt: the training pairs of the model do not exist; name phrases with --pairs"
    assert (outcome.code, expected in outcome.message) == (1, True), outcome.err
