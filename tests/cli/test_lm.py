import os

import pytest

from tests.commands import read, run_inside, write

CORPUS = b"the cat sat\na dog sat\n\nthe dog saw a cat\n"


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    # Hides an installed lmplz; a test that needs one adds its own script.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def lmplz(folder, monkeypatch, script):
    program = folder / "bin" / "lmplz"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin:/bin")
    return program


def test_built_in(tmp_path):
    corpus, output = write(tmp_path / "corpus.gz", CORPUS), tmp_path / "lm.arpa.gz"
    outcome = run_inside("lm", corpus, write(tmp_path / "more", CORPUS), "--order", 3, "-o", output)
    assert outcome.code == 0
    assert outcome.err.splitlines() == [
        "phrasetool: lm: estimating with the built-in estimator",
        "phrasetool: lm: 9 1-grams, 13 2-grams, 11 3-grams from 8 sentences",
        "phrasetool: lm: warning: the corpus is too small or odd to estimate the discounts of order 2, 3; they are "
        "0.5 1 1.5",
    ]
    text = read(output)
    assert text.startswith(b"\\data\\\nngram 1=9\nngram 2=13\nngram 3=11\n\n\\1-grams:\n")
    assert text.endswith(b"\n\\end\\\n")
    again = run_inside("lm", "-", "--order", 3, "--estimator", "built-in", "-q", stdin=CORPUS + CORPUS)
    assert again.out == text
    assert again.err.startswith("phrasetool: lm: warning")


@pytest.mark.parametrize(
    "arguments",
    [["--prune", 0, 0, 1], ["--prune", "0 0 1"], ["--order", 3, "--prune=0 0 1"], ["--prune", 0, 0, 1, "--order", 3]],
)
def test_prune_takes_numbers_as_lmplz_does(tmp_path, arguments):
    corpus = write(tmp_path / "corpus", CORPUS + b"the cat sat\n")
    outcome = run_inside("lm", "--order", 3, *arguments, corpus)
    assert outcome.code == 0
    assert b"ngram 3=3\n" in outcome.out
    assert "3 of 11 3-grams" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prune", 1, 0], "below that of a lower order"),
        (["--order", 2, "--prune", 0, 0, 0], "3 pruning thresholds for a model of order 2"),
        (["--prune", "x"], "expected numbers, found 'x'"),
        (["--order", 0], "0 is not in the range"),
    ],
)
def test_bad_usage(tmp_path, arguments, message):
    outcome = run_inside("lm", *arguments, "--", write(tmp_path / "corpus", CORPUS))
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize(
    ("text", "message"), [(b"", "the corpus is empty"), (b"\n \r\n\t\n", "the corpus has no words; expected")]
)
@pytest.mark.parametrize("estimator", ["lmplz", "built-in"])
def test_nothing_to_learn_from(tmp_path, monkeypatch, text, message, estimator):
    # lmplz itself would estimate a model.
    lmplz(tmp_path, monkeypatch, "cat > /dev/null; echo model")
    output = tmp_path / "lm.arpa"
    outcome = run_inside("lm", write(tmp_path / "corpus", text), "-o", output, "--estimator", estimator, "-q")
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {tmp_path / 'corpus'}: {message}")
    assert not output.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [(b"a\nb </s> c\n", ":2: the word </s> is the language model's own")],
)
@pytest.mark.parametrize("estimator", ["lmplz", "built-in"])
def test_bad_corpus(tmp_path, monkeypatch, text, message, estimator):
    # lmplz's own message is about an option that `lm` lacks.
    lmplz(tmp_path, monkeypatch, "cat > /dev/null; echo 'use --skip_symbols' >&2; exit 1")
    output = tmp_path / "lm.arpa"
    outcome = run_inside("lm", write(tmp_path / "corpus", text), "-o", output, "--estimator", estimator, "-q")
    assert outcome.code == 1
    assert message in outcome.message
    assert not output.exists()


def test_counts_that_do_not_fit_in_memory_are_written_to_files(tmp_path):
    corpus, folder = write(tmp_path / "corpus", CORPUS * 3 + b"a cat saw a cat\n"), tmp_path / "there"
    folder.mkdir()
    whole, small = (run_inside("lm", corpus, "--prune", 0, 1, "--memory", size) for size in ("2G", 500))
    assert small.out == whole.out
    assert "with files" in small.err
    assert "with files" not in whole.err
    outcome = run_inside("lm", corpus, "--memory", 500, "--temporary", folder)
    assert outcome.code == 0
    assert not list(folder.iterdir())
    assert "none' does not exist" in run_inside("lm", corpus, "--temporary", tmp_path / "none").message


def test_lmplz_on_the_path_is_used(tmp_path, monkeypatch):
    script = """\
echo "$@"
cat
echo "=== 2/5 ===" >&2
echo "Substituting fallback discounts for order 1: D1=0.5 D2=1 D3+=1.5" >&2"""
    program = lmplz(tmp_path, monkeypatch, script)
    corpus, output = write(tmp_path / "corpus.gz", CORPUS[:-1]), tmp_path / "lm.arpa.gz"
    more = write(tmp_path / "more", CORPUS)
    outcome = run_inside("lm", corpus, more, "--order", 4, "--prune", 0, 1, "-o", output)
    assert outcome.code == 0
    assert outcome.err.splitlines() == [
        f"phrasetool: lm: estimating with {program}",
        "phrasetool: lm: warning: the corpus is too small or odd to estimate the discounts of order 2; they are "
        "0.5 1 1.5",
    ]
    assert read(output) == b"-o 4 -S 2147483648b --prune 0 1 --discount_fallback\n" + CORPUS + CORPUS


def test_lmplz_that_fails(tmp_path, monkeypatch):
    program = lmplz(tmp_path, monkeypatch, "echo '=== 1/5 ===' >&2; echo 'Special word <s> is not allowed' >&2; exit 3")
    output = tmp_path / "lm.arpa"
    # More than a pipe holds, so that phrasetool writes to a closed pipe.
    outcome = run_inside("lm", write(tmp_path / "corpus", CORPUS * 10000), "-o", output, "-q")
    assert outcome.code == 1
    assert outcome.message == f"phrasetool: {program}: Special word <s> is not allowed"
    assert not output.exists()


def test_a_damaged_corpus_stops_lmplz(tmp_path, monkeypatch):
    lmplz(tmp_path, monkeypatch, "cat")
    corpus = write(tmp_path / "corpus.gz", CORPUS)
    corpus.write_bytes(corpus.read_bytes()[:-12])
    output = tmp_path / "lm.arpa"
    outcome = run_inside("lm", corpus, "-o", output, "-q")
    assert outcome.code == 1
    assert "the gzip data end too early" in outcome.message
    assert not output.exists()


def test_lmplz_that_is_not_installed(tmp_path):
    outcome = run_inside("lm", write(tmp_path / "corpus", CORPUS), "--estimator", "lmplz")
    assert outcome.code == 1
    assert "lmplz is not on the PATH" in outcome.message


def test_the_input_is_not_the_output(tmp_path):
    corpus = write(tmp_path / "corpus", CORPUS)
    outcome = run_inside("lm", corpus, "-o", corpus)
    assert outcome.code == 1
    assert corpus.read_bytes() == CORPUS


def test_a_corpus_that_is_given_twice(tmp_path):
    corpus, link = write(tmp_path / "corpus", CORPUS), tmp_path / "link"
    link.symlink_to(corpus)
    outcome = run_inside("lm", corpus, link, "--order", 2, "--estimator", "built-in", "-q")
    assert outcome.code == 0
    assert outcome.err.splitlines()[0] == f"phrasetool: warning: {link}: is given twice; its words count twice"
