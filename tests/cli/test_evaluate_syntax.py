"""`evaluate-model` and `neighbours` with a syntactic encoder."""

import json

import pytest

from phrasetool.syntax.model import SyntaxModel
from tests.commands import run_inside, write
from tests.toy_treebanks import toy_sentences

SENTENCES = toy_sentences("en", 60, 1)


@pytest.fixture
def texts(tmp_path):
    words = write(tmp_path / "words", "".join(" ".join(sentence.words) + "\n" for sentence in SENTENCES).encode())
    tags = write(tmp_path / "tags", "".join(" ".join(sentence.tags) + "\n" for sentence in SENTENCES).encode())
    return words, tags


def test_figures_are_shown_and_written(syntax_folder, texts, tmp_path):
    words, tags = texts
    command = ("evaluate-model", tags, "-m", syntax_folder, "--words", words)
    outcome = run_inside(*command, "--json", tmp_path / "j")
    assert outcome.code == 0, outcome.err
    report = json.loads((tmp_path / "j").read_text())
    assert report["signature"] == SyntaxModel.load(syntax_folder).signature
    model = report["vectors"]["model"]
    shown = outcome.out.decode()
    assert f"{report['grouped']} of them in {report['groups']} groups with the same parts of speech" in shown
    assert (
        f"  model      {model['nearest_1']:6.1%} {model['nearest_5']:6.1%} {model['fd']:6.3f} {model['rho']:6.3f}"
        in shown
    )
    pairs = (
        " ".join(f"{word}|{tag}" for word, tag in zip(sentence.words, sentence.tags, strict=True)) + "\n"
        for sentence in SENTENCES
    )
    factored = write(tmp_path / "factored", "".join(pairs).encode())
    assert run_inside("evaluate-model", factored, "-m", syntax_folder).out == outcome.out
    literal = json.loads(run_inside(*command, "--literal", "--json", "-").out)
    assert (literal["literal"], literal["vectors"]["model"]["rho"]) == (True, model["rho"])
    assert literal["vectors"]["model"]["fd"] != model["fd"]


def test_bad_usage(syntax_folder, model_folder, texts, tmp_path):
    words, tags = texts
    few = write(tmp_path / "few", b"a|DET\n" * 5)
    outcome = run_inside("evaluate-model", few, "-m", syntax_folder)
    assert (outcome.code, f"{few}: no six different sentences" in outcome.message) == (1, True)
    bare = run_inside("evaluate-model", tags, "-m", syntax_folder)
    assert (bare.code, f"{tags}:1: expected word|TAG, found 'DET'" in bare.message) == (1, True)
    two = run_inside("evaluate-model", tags, words, "-m", syntax_folder)
    assert (two.code, "one tagged text" in two.err) == (2, True)
    semantic = run_inside("evaluate-model", tags, "-m", model_folder, "--literal")
    assert (semantic.code, "--literal is for a syntactic encoder" in semantic.err) == (2, True)


def test_neighbours_by_syntax(syntax_folder, texts):
    words, _ = texts
    sentence = " ".join(SENTENCES[0].words)
    outcome = run_inside("neighbours", sentence, "-m", syntax_folder, "--sentences", words, "-k", 3, "--json", "-")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert (report["searched"], len(report["nearest"])) == (60, 3)
    model = SyntaxModel.load(syntax_folder)
    best = report["nearest"][0]
    assert best["similarity"] == pytest.approx(model.cosines([sentence], [best["sentence"]])[0], abs=1e-5)
    shown = run_inside("neighbours", sentence, "-m", syntax_folder, "--sentences", words, "-k", 1, "-q").out.decode()
    assert shown == f"nearest of 60 sentences\n  {best['similarity']:6.3f}  {best['sentence']}\n"
    unknown = run_inside("neighbours", "☃", "-m", syntax_folder, "--sentences", words, "-q")
    assert (unknown.code, "no known subword unit" in unknown.message) == (1, True)
