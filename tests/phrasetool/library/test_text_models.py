"""Python interfaces of sentence models: results equal the output of the commands."""

import numpy as np
import pytest

import phrasetool
from tests.commands import read, run_inside, write
from tests.neural_models import random_model
from tests.parallel_models import random_parallel_model
from tests.parallel_models import toy_lines as toy_pairs
from tests.phrasetool.autoencoder.test_model import make
from tests.phrasetool.tagger.test_model import tagger
from tests.syntax_models import random_syntax_model, toy_lines

# Ordinary words, an unknown word, an escape sequence of Moses, and a byte that is not UTF-8.
SENTENCES = ["a b &apos;s c", "b", "strange a", "c \udcff a a"]


@pytest.fixture
def at(tmp_path):
    """Return a function that saves a model, writes sentences to a file, and returns both paths."""

    def save(model, sentences):
        model.save(tmp_path / "model")
        text = "".join(f"{sentence}\n" for sentence in sentences).encode("utf-8", "surrogateescape")
        return tmp_path / "model", write(tmp_path / "text", text)

    return save


def lines_of(path):
    return read(path).decode("utf-8", "surrogateescape").splitlines()


def ran(*arguments):
    outcome = run_inside(*arguments)
    assert outcome.code == 0, outcome.err


def test_every_family_is_loaded_as_its_class(tmp_path, model):
    families = {
        phrasetool.PhraseModel: model, phrasetool.Tagger: tagger(), phrasetool.Autoencoder: make(),
        phrasetool.SyntaxEncoder: random_syntax_model(), phrasetool.PairClassifier: random_parallel_model(),
        phrasetool.Translator: random_model([b"a"], [b"x"]),
    }  # fmt: skip
    for number, (kind, saved) in enumerate(families.items()):
        folder = tmp_path / str(number)
        saved.save(folder)
        loaded = phrasetool.load_model(folder)
        assert type(loaded) is kind
        assert loaded.signature == kind.load(str(folder)).signature == saved.signature
        assert saved.signature in repr(loaded)
    with pytest.raises(phrasetool.ModelError, match="an autoencoder of one language; this needs a tagger"):
        phrasetool.Tagger.load(tmp_path / "2")


def test_tags(at, tmp_path):
    folder, text = at(tagger(), SENTENCES)
    ran("tag", text, "-m", folder, "--language", "de", "-o", tmp_path / "tags")
    model = phrasetool.Tagger.load(folder)
    assert model.languages == ("de", "en")
    assert [" ".join(tags) for tags in model.tag(SENTENCES, "de")] == lines_of(tmp_path / "tags")
    universal = model.tag(SENTENCES * 9, "de", joined=False)
    assert not any("+" in tag for tags in universal for tag in tags)
    with pytest.raises(ValueError, match="unknown language 'fr'"):
        model.tag(SENTENCES, "fr")
    with pytest.raises(TypeError, match="expected several sentences"):
        model.tag("a b", "de")


@pytest.mark.parametrize("beam", [1, 3])
def test_translations(at, tmp_path, beam):
    folder, text = at(random_model([b"a", b"b", b"'s"], [b"x", b"y", b"z"]), [*SENTENCES, ""])
    ran("translate", text, "-m", folder, "--beam", beam, "--no-escape", "-o", tmp_path / "out")
    model = phrasetool.Translator.load(folder)
    translations = model.translate([*SENTENCES, ""], beam=beam)
    assert translations == lines_of(tmp_path / "out")
    assert translations[-1] == ""
    assert model.translate([*SENTENCES, ""], beam=beam, threads=2) == translations
    assert model.translate([]) == []
    with pytest.raises(ValueError, match="the beam is 0"):
        model.translate(SENTENCES, beam=0)


def test_probabilities_of_pairs(at, tmp_path):
    folder, _ = at(random_parallel_model(), [])
    sides = [[line.decode() for line in lines] for lines in toy_pairs(40)]
    paths = [
        write(tmp_path / name, "".join(f"{line}\n" for line in lines).encode())
        for name, lines in zip("st", sides, strict=True)
    ]
    outputs = ["-o", tmp_path / "kept.s", tmp_path / "kept.t", "--scores", tmp_path / "scores", "--force"]
    ran("filter-bitext", *paths, "-m", folder, *outputs)
    model = phrasetool.PairClassifier.load(folder)
    result = model.probability(*sides)
    written = [float(line.split("\t")[0]) for line in lines_of(tmp_path / "scores")]
    np.testing.assert_allclose(result, written, atol=1e-5)
    assert result.std() > 0.001
    assert model.threshold == 0.4
    assert model.encode(sides[0], "source").shape == (40, model.dimension)
    assert np.isnan(model.probability([""], [sides[1][0]])).all()
    with pytest.raises(ValueError, match="1 sources and 2 targets"):
        model.probability(["a"], ["b", "c"])
    with pytest.raises(ValueError, match=r"^unknown side 'foo'; expected source or target$"):
        model.encode(["a"], "foo")


def test_syntax_vectors(at):
    folder, _ = at(random_syntax_model(), [])
    model = phrasetool.SyntaxEncoder.load(folder)
    sources, targets = toy_lines(9)
    vectors = [model.encode(side) for side in (sources, targets)]
    assert vectors[0].shape == (9, model.dimension)
    lengths = [np.linalg.norm(side, axis=1) for side in vectors]
    cosines = (vectors[0] * vectors[1]).sum(axis=1) / (lengths[0] * lengths[1])
    np.testing.assert_allclose(model.similarity(sources, targets), cosines, atol=1e-6)


def test_reconstructions(at, tmp_path):
    folder, text = at(make(), SENTENCES)
    ran("reconstruct", text, "-m", folder, "-o", tmp_path / "back", "--json", tmp_path / "figures")
    model = phrasetool.Autoencoder.load(folder)
    assert model.reconstruct(SENTENCES) == [line.replace("&apos;", "'") for line in lines_of(tmp_path / "back")]
    vectors = model.encode(SENTENCES)
    assert vectors.shape == (4, model.dimension)
    np.testing.assert_allclose(model.encode(SENTENCES[2:]), vectors[2:], atol=1e-5)
